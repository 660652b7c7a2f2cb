//! Brings the entries of one epoch's lanes into CSN order and decides which survive.
//!
//! Every CSN of an epoch, from its base up to the first one unaccounted for, is in exactly one lane. So the next entry
//! to hand over is always known by its number, and lanes are read only until it turns up: memory is bounded by how far
//! the lanes were apart. What is left when every lane has ended lies above the first gap, and is little.
//!
//! The rule: an entry survives if everything on its list survives and its floor is below the first unaccounted CSN.
//! Below the gap that holds by itself, because dependencies have smaller CSNs.
//!
//! Where a checkpoint was taken in the epoch, its CSN is the base: what lies below has survived and is in it, so
//! entries below it that were written behind the starts are passed over, they are accounted for, and whatever hangs on
//! them does so rightly.
//!
//! A loss of what was durable, accepted, is another matter. A predecessor that was Committed when an entry drew its CSN
//! is on no list and may be above any floor; so once such a predecessor can be among what is lost, the lists of later
//! entries say nothing. From the first CSN that may be lost on, nothing survives, and the mark remembers it
//! (`annulled_from`).
//!
//! Does not: write anything. Tails are cut and the mark is set by [`super`], steps 4 and 5.

use super::RedoHandler;
use super::consistent_cut::LogView;
use super::read::{Batch, LaneEnd, LaneRead, LaneSource, LocatedEntry, RecordsLocation};
use super::recorded_horizon::{self, RecordedHorizon};
use super::scan::LaneScan;
use super::side::{self, DamagedCopy, VerifiedSideSegment};
use super::window::Window;
use crate::entry::{EntryDependencies, SideRef};
use crate::error::{Corruption, RecoveryError};
use logstead_types::{Csn, Epoch, LaneId};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Entries kept while a loss is dealt with and lanes go on behind a gap that nothing bounds any more.
const KEPT_AFTER_LOSS_MAX: usize = 1 << 20;

/// What became of an epoch.
#[derive(Debug, Default)]
pub(crate) struct MergeOutcome {
    pub(crate) ends: Vec<LaneEnd>,
    pub(crate) first_unaccounted: Csn,
    pub(crate) next: Csn,
    /// After an accepted loss, now or earlier: nothing from this CSN on survives.
    pub(crate) annulled_from: Option<Csn>,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    /// Entries that a checkpoint holds.
    pub(crate) held: u64,
    pub(crate) dropped: u64,
    /// Entries that came after the moment that is read.
    pub(crate) later: u64,
    pub(crate) sides: Vec<SideRef>,
    /// A loss that the caller accepted.
    pub(crate) loss: Option<Corruption>,
    /// Copies of side segments that are damaged, and have a good one beside them.
    pub(crate) damaged_sides: Vec<DamagedCopy>,
    pub(crate) waited: Duration,
}

/// What is known of the epoch before it is read.
pub(crate) struct EpochContext {
    pub(crate) epoch: Epoch,
    pub(crate) base: Csn,
    /// Entries below this CSN are in a checkpoint; then it is the base.
    pub(crate) held_below: Csn,
    /// First unaccounted CSN, if the epoch is settled.
    pub(crate) first_unaccounted: Option<Csn>,
    pub(crate) annulled_from: Option<Csn>,
    /// Entries above this CSN are not there: a moment of the log is read.
    pub(crate) last: Option<Csn>,
    pub(crate) accept_data_loss: bool,
}

struct Lane<'h> {
    lane: LaneId,
    feed: LaneSource<'h>,
    highest: Csn,
    recorded: RecordedHorizon,
    end: Option<LaneEnd>,
}

impl Lane<'_> {
    fn evidence(&self) -> recorded_horizon::LaneEvidence<'_> {
        recorded_horizon::LaneEvidence {
            lane: self.lane,
            recorded: self.recorded,
            end: self.end.as_ref(),
        }
    }
}

/// Where the records of an entry that was read are.
pub(super) enum EntryRecords {
    /// In these bytes, this part.
    Inline(Arc<Vec<u8>>, Range<usize>),
    Side(SideRef),
}

struct Waiting {
    deps: EntryDependencies,
    records: EntryRecords,
}

struct Merge<'r, 'h> {
    reading: &'r LogView<'h>,
    known: EpochContext,
    lanes: Vec<Lane<'h>>,
    /// What was read and not handed over; its due CSN is the next one expected.
    waiting: Window<Waiting>,
    /// Nothing from here on is handed over by the order alone.
    limit: Csn,
    merged: MergeOutcome,
    survivors: &'r mut dyn RedoHandler,
}

/// Reads an epoch's lanes and hands its survivors over.
pub(crate) fn merge<'h>(
    reading: &LogView<'h>,
    scans: Vec<LaneScan<'h>>,
    known: EpochContext,
    survivors: &mut dyn RedoHandler,
) -> Result<MergeOutcome, RecoveryError> {
    std::thread::scope(|scope| {
        let ids: Vec<LaneId> = scans.iter().map(|scan| scan.target().lane).collect();
        let lane = |(lane, feed)| Lane {
            lane,
            feed,
            highest: Csn::ZERO,
            recorded: RecordedHorizon::default(),
            end: None,
        };
        let feeds = LaneSource::start(scope, scans, reading.ahead());
        let annulled_from = known.annulled_from;
        let limit = known.first_unaccounted.unwrap_or(Csn(u64::MAX));
        let merge = Merge {
            reading,
            lanes: ids.into_iter().zip(feeds).map(lane).collect(),
            waiting: Window::new(known.base),
            limit: annulled_from.map_or(limit, |from| from.min(limit)),
            merged: MergeOutcome {
                next: known.base,
                annulled_from,
                ..MergeOutcome::default()
            },
            known,
            survivors,
        };
        // Whatever comes of it, the feeds are dropped before the scope ends, so no reader waits for ever.
        merge.run()
    })
}

impl Merge<'_, '_> {
    fn run(mut self) -> Result<MergeOutcome, RecoveryError> {
        loop {
            while self.waiting.due() < self.limit
                && let Some(entry) = self.waiting.take_due()
            {
                self.next_in_order(&entry.records)?;
            }
            self.check_horizon()?;
            let lanes = self.lanes.iter().enumerate();
            let unfinished = lanes.filter(|(_, lane)| lane.end.is_none());
            let Some((index, _)) = unfinished.min_by_key(|(_, lane)| lane.highest) else {
                break;
            };
            let lane = &mut self.lanes[index];
            match lane
                .feed
                .next(self.reading.clock(), &mut self.merged.waited)?
            {
                LaneRead::Blocks(batch) => {
                    lane.highest = lane.highest.max(batch.csn_highest);
                    lane.recorded.raise(batch.recorded);
                    self.take(index, batch)?;
                }
                LaneRead::End(end) => self.close(index, end)?,
            }
        }
        self.settle_rest()?;
        let ends = self.lanes.into_iter().filter_map(|lane| lane.end);
        self.merged.ends = ends.collect();
        Ok(self.merged)
    }

    fn take(&mut self, index: usize, mut batch: Batch) -> Result<(), RecoveryError> {
        let payloads = Arc::clone(&batch.payloads);
        for found in std::mem::take(&mut batch.entries) {
            let csn = found.csn;
            let due = self.waiting.due();
            if csn < self.known.held_below {
                // A side segment that it names may be gone (T8).
                self.merged.held += 1;
                continue;
            }
            if self.known.last.is_some_and(|last| csn > last) {
                self.merged.later += 1;
                continue;
            }
            if csn < due || self.waiting.contains(csn) {
                return Err(self.impossible(index, &batch, &found));
            }
            self.merged.next = self.merged.next.max(csn.next());
            if self.merged.annulled_from.is_some_and(|from| csn >= from) {
                self.merged.dropped += 1;
                continue;
            }
            let records = match found.place {
                RecordsLocation::Inline(range) => {
                    EntryRecords::Inline(Arc::clone(&payloads), range)
                }
                RecordsLocation::Side(side) => EntryRecords::Side(side),
            };
            if csn == due && csn < self.limit {
                self.next_in_order(&records)?;
                continue;
            }
            let deps = found.deps;
            self.waiting.insert(csn, Waiting { deps, records });
        }
        if self.merged.loss.is_some() && self.waiting.len() > KEPT_AFTER_LOSS_MAX {
            // What has not turned up by now is not waited for: all that was kept for it would be memory without bound.
            self.annul_from(self.waiting.due());
        }
        Ok(())
    }

    fn impossible(&self, index: usize, batch: &Batch, found: &LocatedEntry) -> RecoveryError {
        let (block, at) = batch.block_of(found);
        RecoveryError::Corrupt(Box::new(Corruption {
            lane: self.lanes[index].lane,
            epoch: self.known.epoch,
            block,
            at,
            what: format!("an entry with CSN {}, which cannot be here", found.csn),
            proof: "the block's checksums are right".to_owned(),
            may_be_removed: false,
        }))
    }

    /// Nothing from `csn` on survives.
    fn annul_from(&mut self, csn: Csn) {
        let from = self.merged.annulled_from.map_or(csn, |from| from.min(csn));
        self.merged.annulled_from = Some(from);
        self.limit = self.limit.min(from);
        self.merged.dropped += self.waiting.cut(from);
    }

    /// Hands over the entry that is next below the gap, or ends the log there.
    fn next_in_order(&mut self, records: &EntryRecords) -> Result<(), RecoveryError> {
        if self.survivor(self.waiting.due(), records)? {
            self.waiting.pass();
        } else {
            self.merged.dropped += 1;
        }
        Ok(())
    }

    /// Hands a survivor over. False: its side segment is lost, and the caller has accepted that the log ends there.
    fn survivor(&mut self, csn: Csn, records: &EntryRecords) -> Result<bool, RecoveryError> {
        let length = match records {
            EntryRecords::Inline(payloads, range) => {
                let records = payloads.get(range.clone()).unwrap_or(&[]);
                if !records.is_empty() {
                    self.survivors.redo(csn, records)?;
                }
                records.len() as u64
            }
            EntryRecords::Side(side) => {
                let home = self.reading.home();
                let damaged = &mut self.merged.damaged_sides;
                match side::check(home, self.known.epoch, csn, side, damaged)? {
                    Ok(VerifiedSideSegment::Whole(records)) => {
                        self.survivors.redo(csn, &records)?
                    }
                    Ok(VerifiedSideSegment::Long(copy)) => {
                        let survivors = &mut *self.survivors;
                        side::pieces(home, copy, csn, side, &mut |piece| {
                            survivors.redo(csn, piece)
                        })?;
                    }
                    Err(loss) if self.known.accept_data_loss => {
                        self.merged.loss.get_or_insert(loss);
                        self.annul_from(csn);
                        return Ok(false);
                    }
                    Err(loss) => return Err(RecoveryError::Corrupt(Box::new(loss))),
                }
                self.merged.sides.push(*side);
                side.length
            }
        };
        self.merged.entries += 1;
        self.merged.bytes += length;
        Ok(true)
    }

    /// A lane has ended; perhaps it should not have.
    fn close(&mut self, index: usize, end: LaneEnd) -> Result<(), RecoveryError> {
        if let Some(corruption) = &end.corruption {
            if !self.known.accept_data_loss {
                return Err(RecoveryError::of_loss(corruption.clone()));
            }
            self.merged.loss.get_or_insert(corruption.clone());
        }
        self.lanes[index].end = Some(end);
        Ok(())
    }

    /// Holds the lanes to what their blocks have recorded: the next CSN must not be missing below that.
    fn check_horizon(&mut self) -> Result<(), RecoveryError> {
        let gap = self.waiting.due();
        if !self.reading.is_whole() || gap >= self.limit {
            return Ok(());
        }
        let evidence = self.lanes.iter().map(Lane::evidence);
        let Some(loss) = recorded_horizon::loss(self.known.epoch, gap, self.known.last, evidence)
        else {
            return Ok(());
        };
        if !self.known.accept_data_loss {
            return Err(RecoveryError::Corrupt(Box::new(loss)));
        }
        for lane in &mut self.lanes {
            let may_have_lost = lane.evidence().may_have_lost(gap);
            if let Some(end) = lane.end.as_mut().filter(|_| may_have_lost) {
                // What lies behind there is given up, and kept.
                end.corruption.get_or_insert_with(|| loss.clone());
            }
        }
        self.merged.loss.get_or_insert(loss);
        self.annul_from(gap);
        Ok(())
    }

    /// Judges what lies above the first gap.
    fn settle_rest(&mut self) -> Result<(), RecoveryError> {
        let gap = self.waiting.due();
        self.merged.first_unaccounted = gap;
        self.merged.next = self.merged.next.max(gap);
        let corrupt = |lane: &Lane<'_>| {
            lane.end
                .as_ref()
                .is_some_and(|end| end.corruption.is_some())
        };
        let settled = self.known.first_unaccounted;
        if self.lanes.iter().any(corrupt) {
            // Which CSNs the lost blocks held is not known: none below the gap.
            self.annul_from(gap);
        } else if let Some(first_unaccounted) = settled.filter(|_| gap < self.limit) {
            let what = format!(
                "its mark of epoch {} says that all CSNs below {first_unaccounted} have entries, and {gap} has none",
                self.known.epoch
            );
            let home = self.reading.home().describe();
            return Err(RecoveryError::BadManifest { home, what });
        }
        if settled.is_none() {
            self.survivors.gap(gap);
        }
        let mut survived = Vec::new();
        while let Some((csn, entry)) = self.waiting.pop_first() {
            let lives = |dep: &Csn| *dep < gap || survived.binary_search(dep).is_ok();
            let judged = entry.deps.floor < gap && entry.deps.list.iter().all(lives);
            if judged && self.survivor(csn, &entry.records)? {
                survived.push(csn);
            } else {
                self.merged.dropped += 1;
            }
        }
        Ok(())
    }
}
