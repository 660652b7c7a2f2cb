//! Reads a whole log, epoch after epoch, changing nothing: the common part of recovery and of `log verify`.

use super::consistent_cut::LogView;
use super::merge::{self, EpochContext, MergeOutcome};
use super::read::LaneEnd;
use super::side::DamagedCopy;
use super::{LaneReport, RecoveryReport, RedoHandler};
use crate::entry::SideRef;
use crate::error::RecoveryError;
use crate::manifest::{DiscardedSegments, LaneSpan, Manifest, RecoveryMark};
use logstead_home::LogHome;
use logstead_types::{Csn, Epoch, LaneId};

/// What reading the log has told.
#[derive(Debug)]
pub(crate) struct ReplayOutcome {
    /// The marks of every epoch that wrote something, the last one included.
    pub(crate) marks: Vec<RecoveryMark>,
    /// How the lanes of the last, unsettled epoch ended.
    pub(crate) last_ends: Vec<LaneEnd>,
    /// Side segments that survivors need.
    pub(crate) sides: Vec<SideRef>,
    /// Copies of those that are damaged, and have a good one beside them.
    pub(super) damaged_sides: Vec<DamagedCopy>,
    /// Segments given up now.
    pub(crate) discarded: Vec<DiscardedSegments>,
    pub(crate) report: RecoveryReport,
}

impl ReplayOutcome {
    pub(crate) fn nothing() -> ReplayOutcome {
        ReplayOutcome {
            marks: Vec::new(),
            last_ends: Vec::new(),
            sides: Vec::new(),
            damaged_sides: Vec::new(),
            discarded: Vec::new(),
            report: RecoveryReport::default(),
        }
    }

    fn count(&mut self, epoch: Epoch, merged: &MergeOutcome) {
        let report = &mut self.report;
        report.entries += merged.entries;
        report.bytes += merged.bytes;
        report.entries_in_checkpoint += merged.held;
        report.entries_dropped += merged.dropped;
        report.entries_later += merged.later;
        report.sides += merged.sides.len() as u64;
        report.took.waited_for_lanes += merged.waited;
        let lane = |end: &LaneEnd| LaneReport {
            epoch,
            lane: end.lane,
            first_block: end.from.block,
            blocks: end.blocks,
            end: end.end,
        };
        report.lanes.extend(merged.ends.iter().map(lane));
        self.sides.extend_from_slice(&merged.sides);
        self.damaged_sides.extend_from_slice(&merged.damaged_sides);
    }

    fn discard(&mut self, lane: LaneId, first_segment: u64, last_segment: u64) {
        if first_segment <= last_segment {
            self.discarded.push(DiscardedSegments {
                lane,
                first_segment,
                last_segment,
            });
        }
    }

    /// Records a loss in `epoch`: what lies behind each hole there, and everything that later epochs wrote, is given
    /// up.
    fn give_up_after(
        &mut self,
        home: &LogHome,
        manifest: &Manifest,
        merged: &MergeOutcome,
    ) -> Result<(), RecoveryError> {
        self.report.loss.clone_from(&merged.loss);
        let epoch = self.marks.last().map(|mark| mark.epoch);
        for end in merged.ends.iter().filter(|end| end.corruption.is_some()) {
            // A settled epoch's successor may live in the segments behind; those are given up below or by their own
            // span.
            let settled = manifest
                .marks
                .iter()
                .filter(|mark| Some(mark.epoch) == epoch)
                .flat_map(|mark| &mark.spans);
            let settled = settled
                .filter(|span| span.lane == end.lane)
                .map(|span| span.end.segment)
                .next();
            let last = settled.or(end.last_segment).unwrap_or(end.end.segment);
            self.discard(end.lane, end.end.segment, last);
        }
        for span in manifest
            .marks
            .iter()
            .filter(|mark| Some(mark.epoch) > epoch)
            .flat_map(|mark| &mark.spans)
        {
            self.discard(span.lane, span.first_segment, span.end.segment);
        }
        if epoch != Some(manifest.epoch) {
            for origin in &manifest.lanes {
                let last = home
                    .segments
                    .list_segments(origin.lane)?
                    .last()
                    .map_or(0, |info| info.segment);
                self.discard(origin.lane, origin.first_segment, last);
            }
        }
        Ok(())
    }
}

/// Reads every epoch in order, from the checkpoint on, and hands the survivors over.
pub(crate) fn replay(
    reading: &LogView<'_>,
    accept_data_loss: bool,
    survivors: &mut dyn RedoHandler,
) -> Result<ReplayOutcome, RecoveryError> {
    let (home, manifest) = (reading.home(), reading.manifest());
    let mut replayed = ReplayOutcome::nothing();
    if let Some(checkpoint) = &manifest.checkpoint {
        survivors.checkpoint(manifest.database, checkpoint)?;
        replayed.report.checkpoint = checkpoint.csn;
    }
    for mark in &manifest.marks {
        let scans = reading.settled(mark)?;
        let known = EpochContext {
            epoch: mark.epoch,
            base: mark.base,
            held_below: manifest.held_below(mark.epoch),
            first_unaccounted: Some(mark.first_unaccounted),
            annulled_from: mark.annulled_from,
            last: None,
            accept_data_loss,
        };
        let merged = merge::merge(reading, scans, known, survivors)?;
        replayed.count(mark.epoch, &merged);
        if merged.loss.is_some() {
            // Later epochs were built on what is lost and cannot survive it; their CSNs are not drawn again.
            replayed
                .marks
                .push(new_mark(mark.epoch, mark.base, &merged, manifest.base()));
            replayed.give_up_after(home, manifest, &merged)?;
            return Ok(replayed);
        }
        replayed.marks.push(mark.clone());
    }
    let scans = reading.unsettled()?;
    let base = manifest.base();
    let known = EpochContext {
        epoch: manifest.epoch,
        base,
        held_below: manifest.held_below(manifest.epoch),
        first_unaccounted: None,
        annulled_from: None,
        last: reading.last(),
        accept_data_loss,
    };
    let merged = merge::merge(reading, scans, known, survivors)?;
    replayed.count(manifest.epoch, &merged);
    let mark = new_mark(manifest.epoch, base, &merged, base);
    // A loss directly behind the starts leaves no span, but what it annuls must be known to every later start.
    if !mark.spans.is_empty() || merged.loss.is_some() {
        replayed.marks.push(mark);
    }
    if merged.loss.is_some() {
        replayed.give_up_after(home, manifest, &merged)?;
    }
    replayed.last_ends = merged.ends;
    Ok(replayed)
}

/// The mark of an epoch just read; lanes that wrote nothing, or nothing behind their starts, need no span.
fn new_mark(epoch: Epoch, base: Csn, merged: &MergeOutcome, next_min: Csn) -> RecoveryMark {
    let span = |end: &LaneEnd| LaneSpan {
        lane: end.lane,
        first_segment: end.from.at.segment,
        end: end.end,
        blocks: end.blocks,
    };
    RecoveryMark {
        epoch,
        base,
        first_unaccounted: merged.first_unaccounted,
        annulled_from: merged.annulled_from,
        next: merged.next.max(next_min),
        spans: merged
            .ends
            .iter()
            .filter(|end| end.blocks_read() > 0)
            .map(span)
            .collect(),
    }
}
