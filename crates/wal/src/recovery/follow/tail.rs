//! One epoch of a log that is followed: its lanes, and what was read of them and waits for its turn.
//!
//! Invariants:
//! - The window's due CSN is the next one to hand over; everything before it was.
//! - `horizon` is one that is written down somewhere: every CSN of the epoch below it is durable. Of a settled epoch it
//!   is the first CSN without an entry.
//! - `proven` is one that the log itself tells, or its manifest. What is missing below it was lost or removed. A server
//!   that is another than the log's, and sends its own horizon, proves no loss.
//! - What was read of a block that is not within its lane's end, once the epoch is settled, is dropped: a crash has
//!   taken it back.

use super::super::consistent_cut::ScanBound;
use super::super::merge::EntryRecords;
use super::super::read::{BATCH_BYTES, Batch, LocatedEntry, RecordsLocation, next_batch};
use super::super::recorded_horizon::RecordedHorizon;
use super::super::scan::{LaneScan, ScanTarget, SettledLane};
use super::super::side::{self, VerifiedSideSegment};
use super::super::window::Window;
use super::super::{ApplyFn, RecoveryError};
use super::streamed::StreamedBlocks;
use crate::entry::EntryDependencies;
use crate::error::Corruption;
use crate::manifest::CheckpointRef;
use logstead_home::{HomeError, LogHome};
use logstead_types::{BlockNo, Csn, Epoch};
use std::sync::Arc;

/// Why the epoch was not read any further.
#[derive(Debug)]
pub(super) enum FollowFailure {
    Log(RecoveryError),
    /// What was durable is not there: lost, or removed.
    Missing(Box<Corruption>),
}

impl From<RecoveryError> for FollowFailure {
    fn from(error: RecoveryError) -> FollowFailure {
        FollowFailure::Log(error)
    }
}

impl From<HomeError> for FollowFailure {
    fn from(error: HomeError) -> FollowFailure {
        FollowFailure::Log(error.into())
    }
}

/// What became of an epoch that another one has followed.
#[derive(Clone, Debug)]
pub(super) struct EpochOutcome {
    pub(super) first_unaccounted: Csn,
    pub(super) annulled_from: Option<Csn>,
    /// The first CSN of the epoch after it.
    pub(super) next: Csn,
    /// Where its lanes end, in their order.
    pub(super) lanes: Vec<SettledLane>,
}

impl EpochOutcome {
    /// Everything below this CSN has survived, as far as there is anything.
    pub(super) fn survives_to(&self) -> Csn {
        let from = self.annulled_from;
        from.map_or(self.first_unaccounted, |from| {
            from.min(self.first_unaccounted)
        })
    }
}

/// What was handed over.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HandoverCounts {
    pub(super) entries: u64,
    pub(super) bytes: u64,
}

/// A lane of the epoch.
struct Lane<'h> {
    scan: LaneScan<'h>,
    /// The highest CSN that was read.
    highest: Csn,
    /// The highest horizon that a block of it has recorded.
    recorded: Csn,
    /// It was read to its end in this round.
    is_read: bool,
}

impl Lane<'_> {
    /// An entry with this CSN may lie where it was not read yet: it lies before every block that has recorded a horizon
    /// above it.
    fn may_hold(&self, csn: Csn) -> bool {
        self.recorded <= csn
    }
}

/// An entry that waits for its turn.
struct PendingEntry {
    deps: EntryDependencies,
    records: EntryRecords,
    /// Where it was read: the lane as an index, and the block's number.
    lane: usize,
    block: BlockNo,
}

/// The epoch that is read.
pub(super) struct EpochFollower<'h> {
    home: &'h LogHome,
    epoch: Epoch,
    /// Entries below it are in a checkpoint.
    base: Csn,
    lanes: Vec<Lane<'h>>,
    waiting: Window<PendingEntry>,
    waiting_most: usize,
    horizon: Csn,
    proven: Csn,
    outcome: Option<EpochOutcome>,
    /// What was handed over of what lies above the first gap, once the epoch is settled.
    survived: Vec<Csn>,
    handed: HandoverCounts,
    /// Bytes of the entry that is due that were handed over before an error.
    begun_bytes: u64,
    /// Handing over the entry that is due was begun: who takes it may have a part of it.
    is_begun: bool,
}

impl<'h> EpochFollower<'h> {
    pub(super) fn new(
        home: &'h LogHome,
        epoch: Epoch,
        base: Csn,
        targets: &[ScanTarget],
    ) -> Result<EpochFollower<'h>, HomeError> {
        let lane = |target: &ScanTarget| {
            Ok(Lane {
                scan: LaneScan::new(home, *target, ScanBound::of_follower())?,
                highest: Csn::ZERO,
                recorded: Csn::ZERO,
                is_read: false,
            })
        };
        let lanes: Result<Vec<Lane<'h>>, HomeError> = targets.iter().map(lane).collect();
        Ok(EpochFollower {
            home,
            epoch,
            base,
            lanes: lanes?,
            waiting: Window::new(base),
            waiting_most: 0,
            horizon: base,
            proven: base,
            outcome: None,
            survived: Vec::new(),
            handed: HandoverCounts::default(),
            begun_bytes: 0,
            is_begun: false,
        })
    }

    pub(super) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(super) fn base(&self) -> Csn {
        self.base
    }

    /// The next CSN to hand over; of an epoch that is over, the next one's first.
    pub(super) fn next(&self) -> Csn {
        self.waiting.due()
    }

    pub(super) fn horizon(&self) -> Csn {
        self.horizon
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn waiting_most(&self) -> usize {
        self.waiting_most
    }

    pub(super) fn targets(&self) -> Vec<ScanTarget> {
        self.lanes.iter().map(|lane| *lane.scan.target()).collect()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.outcome.is_some()
    }

    /// The log tells a horizon.
    pub(super) fn learn(&mut self, epoch: Epoch, horizon: Csn) {
        if epoch == self.epoch && self.outcome.is_none() {
            self.proven = self.proven.max(horizon);
            self.horizon = self.horizon.max(horizon);
        }
    }

    /// A server tells a horizon of this epoch.
    pub(super) fn learn_streamed(&mut self, horizon: Csn) {
        if self.outcome.is_none() {
            self.horizon = self.horizon.max(horizon);
        }
    }

    /// The epoch is settled. Nothing behind the ends of its lanes counts.
    pub(super) fn set_outcome(&mut self, outcome: EpochOutcome) {
        for (lane, settled) in self.lanes.iter_mut().zip(&outcome.lanes) {
            lane.scan.settle(*settled);
        }
        self.horizon = outcome.first_unaccounted;
        self.proven = self.horizon;
        self.outcome = Some(outcome);
    }

    /// What was handed over since the last call.
    pub(super) fn take_handed(&mut self) -> HandoverCounts {
        std::mem::take(&mut self.handed)
    }

    /// Reads the lanes on, each to where it ends now or as far as it is needed, and hands over what is due.
    pub(super) fn read(&mut self, apply: &mut ApplyFn<'_>) -> Result<(), FollowFailure> {
        // What is below it was in its lanes before any of them is read.
        let learnt = self.proven;
        for lane in &mut self.lanes {
            lane.scan.poll()?;
            lane.is_read = false;
        }
        self.read_lanes(apply)?;
        self.check_ends()?;
        let due = self.waiting.due();
        match due < learnt && !self.waiting.contains(due) {
            true => Err(self.missing(due, learnt)),
            false => Ok(()),
        }
    }

    fn read_lanes(&mut self, apply: &mut ApplyFn<'_>) -> Result<(), FollowFailure> {
        loop {
            self.hand_over(apply)?;
            let Some(index) = self.lane_to_read() else {
                return Ok(());
            };
            let lane = &mut self.lanes[index];
            match next_batch(&mut lane.scan, BATCH_BYTES)? {
                Some(batch) => self.take(index, batch)?,
                None => lane.is_read = true,
            }
        }
    }

    /// The same of what the server has sent, without a look at the home. False: something that is due did not come.
    pub(super) fn read_streamed(
        &mut self,
        stream: &Arc<StreamedBlocks>,
        apply: &mut ApplyFn<'_>,
    ) -> Result<bool, FollowFailure> {
        for lane in &mut self.lanes {
            lane.scan.poll_stream(stream);
            lane.is_read = false;
        }
        let read = self.read_lanes(apply);
        self.forget_streamed(stream);
        read?;
        let due = self.waiting.due();
        Ok(due >= self.horizon || self.waiting.contains(due))
    }

    /// What was read is not wanted from the server any more.
    pub(super) fn forget_streamed(&self, stream: &StreamedBlocks) {
        for lane in &self.lanes {
            stream.forget(self.epoch, lane.scan.target().lane, lane.scan.at());
        }
    }

    /// Nor is what belongs to no lane of this epoch.
    pub(super) fn forget_others(&self, stream: &StreamedBlocks) {
        let lanes = self.lanes.iter().map(|lane| lane.scan.target().lane);
        stream.keep_lanes(&lanes.collect::<Vec<_>>());
    }

    /// The lane that is read next: of those that may hold the next CSN the one that is behind. If that CSN is here, any
    /// lane may tell of a higher horizon. A settled epoch's lanes are all read to their ends.
    fn lane_to_read(&self) -> Option<usize> {
        let due = self.waiting.due();
        let is_any = self.waiting.contains(due) || self.is_settled() && due >= self.horizon;
        let lanes = self.lanes.iter().enumerate();
        let wanted = lanes.filter(|(_, lane)| !lane.is_read && (is_any || lane.may_hold(due)));
        let (index, _) = wanted.min_by_key(|(_, lane)| lane.highest)?;
        Some(index)
    }

    fn take(&mut self, index: usize, mut batch: Batch) -> Result<(), RecoveryError> {
        let lane = &mut self.lanes[index];
        lane.highest = lane.highest.max(batch.csn_highest);
        let RecordedHorizon { horizon, .. } = batch.recorded;
        lane.recorded = lane.recorded.max(horizon);
        if self.outcome.is_none() {
            self.horizon = self.horizon.max(horizon);
            self.proven = self.proven.max(horizon);
        }
        let payloads = Arc::clone(&batch.payloads);
        for found in std::mem::take(&mut batch.entries) {
            if found.csn < self.base {
                // A checkpoint holds it; a side segment that it names may be gone (T8).
                continue;
            }
            if found.csn < self.waiting.due() || self.waiting.contains(found.csn) {
                return Err(self.impossible(index, &batch, &found));
            }
            let (block, _) = batch.block_of(&found);
            let records = match found.place {
                RecordsLocation::Inline(range) => {
                    EntryRecords::Inline(Arc::clone(&payloads), range)
                }
                RecordsLocation::Side(side) => EntryRecords::Side(side),
            };
            let waiting = PendingEntry {
                deps: found.deps,
                records,
                lane: index,
                block,
            };
            self.waiting.insert(found.csn, waiting);
        }
        self.waiting_most = self.waiting_most.max(self.waiting.len());
        Ok(())
    }

    fn impossible(&self, index: usize, batch: &Batch, found: &LocatedEntry) -> RecoveryError {
        let (block, at) = batch.block_of(found);
        RecoveryError::Corrupt(Box::new(Corruption {
            lane: self.lanes[index].scan.target().lane,
            epoch: self.epoch,
            block,
            at,
            what: format!("an entry with CSN {}, which cannot be here", found.csn),
            proof: "the block's checksums are right".to_owned(),
            may_be_removed: false,
        }))
    }

    /// Hands over what is due and below the horizon.
    fn hand_over(&mut self, apply: &mut ApplyFn<'_>) -> Result<(), FollowFailure> {
        let outcome = self.outcome.as_ref();
        let limit = outcome.map_or(self.horizon, EpochOutcome::survives_to);
        while self.waiting.due() < limit
            && let Some(entry) = self.waiting.take_due()
        {
            let csn = self.waiting.due();
            if let Err(failure) = self.give(csn, &entry.records, apply) {
                self.waiting.insert(csn, entry);
                return Err(failure);
            }
            self.waiting.pass();
        }
        Ok(())
    }

    /// Hands over one entry, but for what was handed over of it before an error.
    fn give(
        &mut self,
        csn: Csn,
        records: &EntryRecords,
        apply: &mut ApplyFn<'_>,
    ) -> Result<(), FollowFailure> {
        let mut begun_bytes = self.begun_bytes;
        let mut is_begun = self.is_begun;
        let mut at = 0;
        let mut take = |records: &[u8]| {
            let end = at + records.len() as u64;
            let skipped = begun_bytes.saturating_sub(at).min(records.len() as u64);
            let rest = records.get(skipped as usize..).unwrap_or(&[]);
            if !rest.is_empty() {
                is_begun = true;
                apply(csn, rest).map_err(|source| RecoveryError::Apply { csn, source })?;
                begun_bytes = end;
            }
            at = end;
            Ok(())
        };
        let given = match records {
            EntryRecords::Inline(payloads, range) => {
                take(payloads.get(range.clone()).unwrap_or(&[]))
            }
            EntryRecords::Side(side) => {
                // A damaged copy beside a good one is the next start's business.
                match side::check(self.home, self.epoch, csn, side, &mut Vec::new())? {
                    Ok(VerifiedSideSegment::Whole(records)) => take(&records),
                    Ok(VerifiedSideSegment::Long(copy)) => {
                        side::pieces(self.home, copy, csn, side, &mut take)
                    }
                    Err(loss) => return Err(FollowFailure::Missing(Box::new(loss))),
                }
            }
        };
        if given.is_err() {
            self.begun_bytes = begun_bytes;
            self.is_begun = is_begun;
        } else {
            self.begun_bytes = 0;
            self.is_begun = false;
            self.handed.entries += 1;
            self.handed.bytes += at;
        }
        Ok(given?)
    }

    /// Was handing over the entry with this CSN begun?
    pub(super) fn has_begun(&self, csn: Csn) -> bool {
        self.is_begun && self.waiting.due() == csn
    }

    /// Of a settled epoch the mark says how many blocks each lane has.
    fn check_ends(&self) -> Result<(), FollowFailure> {
        let is_short = |lane: &&Lane<'_>| {
            let settled = lane.scan.target().settled;
            lane.is_read && settled.is_some_and(|settled| lane.scan.blocks() < settled.blocks)
        };
        match self.lanes.iter().find(is_short) {
            Some(lane) => {
                let proof = "the recovery mark of its epoch counts more blocks".to_owned();
                Err(self.end_of(lane, proof))
            }
            None => Ok(()),
        }
    }

    /// A CSN below a horizon that was learnt before the lanes were read is in none of them.
    fn missing(&self, csn: Csn, horizon: Csn) -> FollowFailure {
        let proof = format!("all CSNs below {horizon} were durable, and {csn} has no entry");
        let mut lanes = self.lanes.iter();
        match lanes.find(|lane| lane.may_hold(csn)).or(self.lanes.first()) {
            Some(lane) => self.end_of(lane, proof),
            None => FollowFailure::Log(RecoveryError::BadManifest {
                home: self.home.describe(),
                what: format!("no lane of epoch {}, and {proof}", self.epoch),
            }),
        }
    }

    fn end_of(&self, lane: &Lane<'_>, proof: String) -> FollowFailure {
        let scan = &lane.scan;
        FollowFailure::Missing(Box::new(Corruption {
            lane: scan.target().lane,
            epoch: self.epoch,
            block: BlockNo(scan.blocks()),
            at: scan.at(),
            what: scan.why().to_string(),
            proof,
            may_be_removed: false,
        }))
    }

    /// Judges what lies above the first gap of a settled epoch, all of which was read, as recovery did. False: the
    /// epoch is over, and its next CSN is the next epoch's first. True: it is not settled.
    pub(super) fn settle(&mut self, apply: &mut ApplyFn<'_>) -> Result<bool, FollowFailure> {
        let Some(outcome) = self.outcome.clone() else {
            return Ok(true);
        };
        let gap = outcome.first_unaccounted;
        let limit = outcome.annulled_from.unwrap_or(outcome.next);
        while let Some((csn, entry)) = self.waiting.pop_first() {
            let lives = |dep: &Csn| *dep < gap || self.survived.binary_search(dep).is_ok();
            let was_lost = entry.block.get() >= outcome.lanes[entry.lane].blocks;
            let survives = !was_lost
                && csn < limit
                && entry.deps.floor < gap
                && entry.deps.list.iter().all(lives);
            if !survives {
                continue;
            }
            if let Err(failure) = self.give(csn, &entry.records, apply) {
                self.waiting.insert(csn, entry);
                return Err(failure);
            }
            self.survived.push(csn);
        }
        self.waiting = Window::new(outcome.next);
        Ok(false)
    }

    /// Goes on at the checkpoint's starts in lanes whose blocks before them are gone: all that these held was handed
    /// over.
    ///
    /// # Panics
    /// If it was not: a bug, for the checkpoint's CSN was a horizon when the lanes were read.
    pub(super) fn skip_to(&mut self, checkpoint: &CheckpointRef) {
        assert!(self.waiting.due() >= checkpoint.csn, "entries are missing");
        for lane in self.lanes.iter_mut().filter(|lane| lane.is_read) {
            let start = checkpoint.start_of(lane.scan.target().lane);
            if let Some(start) = start.filter(|start| lane.scan.blocks() < start.block) {
                lane.scan.skip_to(start);
            }
        }
    }
}
