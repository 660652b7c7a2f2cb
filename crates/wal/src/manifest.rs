//! The manifest: which database this is, which epoch writes where, the newest checkpoint, and the recovery marks of the
//! epochs since.
//!
//! A text of lines (`text`), so that a person can read it; the last line is the CRC-32C of everything before it.
//! [`ManifestWriter`](crate::ManifestWriter) changes it while a server runs.
//!
//! ```text
//! logstead manifest 2
//! database 00000000075bcd15
//! epoch 3
//! lease owner 0f1e2d3c4b5a6978 renewals 41 duration-ms 10000 owed-ms 0 since 1767225600 host db-1 process 4711 started 90210 boot 0123456789abcdef0123456789abcdef namespaces 4026531836 4026531834
//! lane 0 first-segment 12
//! checkpoint object 0000000200000007 crc 1234abcd csn 130 epoch 2
//! start lane 0 segment 9 offset 8192 block 2 previous-header-crc 0badcafe
//! mark epoch 2 base 130 first-unaccounted 151 next 160
//! annulled from 155
//! span lane 0 first-segment 9 end-segment 11 end-offset 4096 blocks 7
//! discarded lane 0 first-segment 4 last-segment 5
//! given-up first-epoch 1 last-epoch 1
//! crc 89abcdef
//! ```
//!
//! Invariants:
//! - An epoch's lanes are in the manifest before its first block is written, so every block lies in a span that the
//!   manifest names.
//! - A mark settles its epoch for good: entries at or above `first_unaccounted` survive only by the rule of
//!   [`recovery`](crate::recovery), evaluated over exactly the blocks inside the spans; what lies behind a span's end
//!   is never read again (Aurora's truncation ranges).
//! - Where a loss of data was accepted, the mark names the first CSN that may depend on it: no entry from there on
//!   survives.
//! - Marks are in the order of their epochs; each one's `base` is the `next` of the one before, the first one's is the
//!   checkpoint's CSN, or 1.
//! - **The checkpoint** holds all that survived below its CSN. Of its epoch, each lane is read from its start on, where
//!   every entry at or above that CSN lies; earlier epochs are not read at all and have no marks. Its CSN and its
//!   starts never go back.
//! - The line `lease` says who may write, at homes that no kernel's lock keeps (see [`lease`](crate::lease)); others
//!   have none. No two states of a manifest with such a line are equal: its owner never writes a number of `renewals`
//!   twice.

mod text;

pub use text::{ManifestError, UnfinishedCopy};

use logstead_env::ProcessIdentity;
use logstead_home::{ObjectId, Position};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};

/// The newest format this code reads. It is written only where there is a checkpoint: what has none can be read by
/// everybody.
pub const FORMAT_VERSION: u32 = 2;
/// The format of a manifest without a checkpoint.
pub const FORMAT_VERSION_WITHOUT_CHECKPOINT: u32 = 1;

/// The name under which the home keeps the manifest.
pub const NAME: &str = "manifest";
/// How often a manifest that does not decode is read again before it counts as damaged: an answer that something in
/// between cut short looks the same.
pub(crate) const LOOKS: u32 = 4;

/// Where a lane begins in the present epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpochLane {
    /// The lane.
    pub lane: LaneId,
    /// Its first segment in this epoch.
    pub first_segment: u64,
}

/// What one lane wrote in a past epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneSpan {
    /// The lane.
    pub lane: LaneId,
    /// Its first segment in that epoch.
    pub first_segment: u64,
    /// Where it ended: nothing from here on counts.
    pub end: Position,
    /// Number of its blocks.
    pub blocks: u64,
}

/// What became of a past epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecoveryMark {
    /// The epoch.
    pub epoch: Epoch,
    /// Its first CSN.
    pub base: Csn,
    /// Its first CSN that no entry accounts for.
    pub first_unaccounted: Csn,
    /// After an accepted loss of data: nothing of the epoch from this CSN on survives, whatever it hangs on.
    pub annulled_from: Option<Csn>,
    /// First CSN of the epoch after it: above every CSN seen.
    pub next: Csn,
    /// What its lanes wrote.
    pub spans: Vec<LaneSpan>,
}

/// The newest checkpoint: what it holds, and where the log is needed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRef {
    /// The object that is its record.
    pub object: ObjectId,
    /// CRC-32C of that object.
    pub crc: u32,
    /// It holds everything that survived below this CSN, and nothing else.
    pub csn: Csn,
    /// The epoch in which it was taken.
    pub epoch: Epoch,
    /// Where each lane of that epoch is needed from.
    pub starts: Vec<RedoPoint>,
}

impl CheckpointRef {
    /// Where a lane of its epoch is needed from.
    pub fn start_of(&self, lane: LaneId) -> Option<&RedoPoint> {
        self.starts.iter().find(|start| start.lane == lane)
    }
}

/// A place between two blocks of a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RedoPoint {
    /// The lane.
    pub lane: LaneId,
    /// Where the block before ended. The next one lies there, or at the start of the segment after.
    pub at: Position,
    /// Number of the next block.
    pub block: u64,
    /// Checksum of the header of the block before, which the next one repeats; 0 if there is none.
    pub previous_header_crc: u32,
}

/// Epochs of which a part was given up when a loss was accepted, and whose marks a checkpoint has made superfluous:
/// their side segments are not removed, so that an expert may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AbandonedEpochs {
    /// First of them.
    pub first_epoch: Epoch,
    /// Last of them.
    pub last_epoch: Epoch,
}

/// Segments given up by a start that accepted a loss of data: not read, and not removed, so that an expert may look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiscardedSegments {
    /// The lane.
    pub lane: LaneId,
    /// First of them.
    pub first_segment: u64,
    /// Last of them.
    pub last_segment: u64,
}

/// Who may write, for how long: the lease, as it is written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseHolder {
    /// A random number: one start of one server.
    pub owner: u64,
    /// Grows with everything that this owner writes here.
    pub renewals: u64,
    /// The lease runs out this long after it was written last, at the latest; 0: it was given back.
    pub duration_ms: u64,
    /// The lease of somebody before may hold for this long after that; 0: none does.
    pub owed_ms: u64,
    /// When the owner took it, in seconds since 1970, for people only.
    pub since: u64,
    /// The owner's process.
    pub process: ProcessIdentity,
}

impl LeaseHolder {
    /// The owner gave the lease back: it answers nobody any more.
    pub fn is_released(&self) -> bool {
        self.duration_ms == 0
    }

    /// For how long somebody may answer clients after this was written.
    pub fn lasts(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.duration_ms.max(self.owed_ms))
    }

    /// When the owner took it, for people: `2026-01-01 00:00:00 UTC`.
    pub fn since_utc(&self) -> String {
        let (days, seconds) = (self.since / 86_400, self.since % 86_400);
        // Years begin in March, so that a leap day is a year's last one; eras of 400 years are all alike.
        let days = days + 719_468;
        let (era, day) = (days / 146_097, days % 146_097);
        let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let day = day - (153 * month + 2) / 5 + 1;
        let (month, later) = if month < 10 {
            (month + 3, 0)
        } else {
            (month - 9, 1)
        };
        let year = era * 400 + year + later;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02} UTC")
    }
}

/// The manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// Which database this is.
    pub database: DatabaseId,
    /// The epoch that writes, or wrote last.
    pub epoch: Epoch,
    /// Who may write; `None` where the kernel's lock says it.
    pub holder: Option<LeaseHolder>,
    /// Its lanes.
    pub lanes: Vec<EpochLane>,
    /// The newest checkpoint.
    pub checkpoint: Option<CheckpointRef>,
    /// The epochs before that wrote anything: without a checkpoint all of them, else those from the checkpoint's on.
    pub marks: Vec<RecoveryMark>,
    /// Segments given up.
    pub discarded: Vec<DiscardedSegments>,
    /// Earlier epochs given up in part.
    pub given_up: Vec<AbandonedEpochs>,
}

impl Manifest {
    /// The manifest of a log that was never opened.
    pub fn first(database: DatabaseId) -> Manifest {
        Manifest {
            database,
            epoch: Epoch(0),
            holder: None,
            lanes: Vec::new(),
            checkpoint: None,
            marks: Vec::new(),
            discarded: Vec::new(),
            given_up: Vec::new(),
        }
    }

    /// Does it say the same of the log as another one? Who holds the lease, and for how long, is not the log's.
    pub fn is_of_log(&self, other: &Manifest) -> bool {
        let without_lease = Manifest {
            holder: other.holder.clone(),
            ..self.clone()
        };
        without_lease == *other
    }

    /// First CSN of the present epoch that the log may hold and no checkpoint does.
    pub fn base(&self) -> Csn {
        let checkpoint = self.checkpoint.as_ref();
        let held = checkpoint.map_or(Csn(1), |checkpoint| checkpoint.csn);
        self.marks.last().map_or(held, |mark| mark.next)
    }

    /// From where on a lane of some epoch is needed, if that is not its first block.
    pub fn start_of(&self, epoch: Epoch, lane: LaneId) -> Option<&RedoPoint> {
        let checkpoint = self.checkpoint.as_ref();
        let of_epoch = checkpoint.filter(|checkpoint| checkpoint.epoch == epoch);
        of_epoch.and_then(|checkpoint| checkpoint.start_of(lane))
    }

    /// Entries of this epoch below this CSN are in the checkpoint.
    pub(crate) fn held_below(&self, epoch: Epoch) -> Csn {
        let checkpoint = self.checkpoint.as_ref();
        let of_epoch = checkpoint.filter(|checkpoint| checkpoint.epoch == epoch);
        of_epoch.map_or(Csn::ZERO, |checkpoint| checkpoint.csn)
    }

    /// Names a newer checkpoint, and forgets the marks that it makes superfluous.
    pub fn set_checkpoint(&mut self, checkpoint: CheckpointRef) {
        let earlier = self
            .marks
            .iter()
            .take_while(|mark| mark.epoch < checkpoint.epoch);
        let earlier = earlier.count();
        for (index, mark) in self.marks[..earlier].iter().enumerate() {
            // Epochs behind it that have no mark of their own went with it.
            let next = self.marks.get(index + 1).map(|mark| mark.epoch);
            let next = next.unwrap_or(checkpoint.epoch).min(checkpoint.epoch);
            if mark.annulled_from.is_some() {
                self.given_up.push(AbandonedEpochs {
                    first_epoch: mark.epoch,
                    last_epoch: Epoch(next.get() - 1),
                });
            }
        }
        self.marks.drain(..earlier);
        self.checkpoint = Some(checkpoint);
    }

    /// True if the segment was given up by a start that accepted a loss.
    pub fn is_discarded(&self, lane: LaneId, segment: u64) -> bool {
        let covers = |gone: &DiscardedSegments| {
            gone.lane == lane && (gone.first_segment..=gone.last_segment).contains(&segment)
        };
        self.discarded.iter().any(covers)
    }

    /// True if the epoch was given up, in part or as a whole, when a loss was accepted: its side segments are kept like
    /// its segments.
    pub fn is_evidence(&self, epoch: Epoch) -> bool {
        let covers = |gone: &AbandonedEpochs| (gone.first_epoch..=gone.last_epoch).contains(&epoch);
        let marks = self.marks.iter();
        let last = marks.take_while(|mark| mark.epoch <= epoch).last();
        // Epochs behind such a mark that have none of their own went with it.
        last.is_some_and(|mark| mark.annulled_from.is_some()) || self.given_up.iter().any(covers)
    }

    /// The manifest's own rules.
    fn check(&self) -> Result<(), &'static str> {
        let (mut epoch, mut base) = (Epoch(0), Csn(1));
        if let Some(checkpoint) = &self.checkpoint {
            self.check_checkpoint(checkpoint)?;
            (epoch, base) = (checkpoint.epoch, checkpoint.csn);
        } else if !self.given_up.is_empty() {
            return Err("epochs were given up that no checkpoint has made superfluous");
        }
        let mut next = epoch;
        for mark in &self.marks {
            if mark.epoch < next || mark.epoch.get() == 0 || mark.epoch >= self.epoch {
                return Err("marks are not in the order of their epochs");
            }
            if mark.base != base
                || mark.first_unaccounted < base
                || mark.next < mark.first_unaccounted
            {
                return Err("the CSNs of a mark do not follow one another");
            }
            if mark
                .annulled_from
                .is_some_and(|from| from < mark.first_unaccounted || from > mark.next)
            {
                return Err("a mark annuls what it counts as accounted for, or what came after it");
            }
            for span in &mark.spans {
                if span.end.segment < span.first_segment {
                    return Err("a span ends before it begins");
                }
                let begins_there = |start: &RedoPoint| {
                    span.first_segment == start.at.segment
                        && span.end > start.at
                        && span.blocks > start.block
                };
                if self.held_below(mark.epoch) > Csn::ZERO
                    && !self
                        .start_of(mark.epoch, span.lane)
                        .is_some_and(begins_there)
                {
                    return Err("a span does not begin where the checkpoint says");
                }
            }
            (next, base) = (Epoch(mark.epoch.get().saturating_add(1)), mark.next);
        }
        let backwards = |gone: &AbandonedEpochs| gone.last_epoch < gone.first_epoch;
        if self
            .given_up
            .iter()
            .any(|gone| backwards(gone) || gone.last_epoch >= epoch)
        {
            return Err("epochs were given up that are still needed");
        }
        Ok(())
    }

    fn check_checkpoint(&self, checkpoint: &CheckpointRef) -> Result<(), &'static str> {
        let CheckpointRef {
            csn, epoch, starts, ..
        } = checkpoint;
        if epoch.get() == 0 || *epoch > self.epoch || *csn == Csn::ZERO {
            return Err("the checkpoint is of no epoch there was");
        }
        if starts.windows(2).any(|pair| pair[0].lane >= pair[1].lane) {
            return Err("the starts of a checkpoint are not in the order of their lanes");
        }
        for start in starts {
            let nothing_before = (start.block, start.previous_header_crc) == (0, 0);
            if nothing_before != (start.at.offset == 0) || start.block == 0 && !nothing_before {
                return Err("a start has blocks before it and no place for them");
            }
        }
        if *epoch != self.epoch {
            return Ok(());
        }
        let fits = |origin: &EpochLane| {
            let of_lane = |start: &&RedoPoint| {
                start.at.segment >= origin.first_segment
                    && (start.block > 0 || start.at.segment == origin.first_segment)
            };
            checkpoint.start_of(origin.lane).filter(of_lane).is_some()
        };
        if starts.len() != self.lanes.len() || !self.lanes.iter().all(fits) {
            return Err("the starts of a checkpoint are not those of its epoch's lanes");
        }
        Ok(())
    }

    /// May a running server go from this state of its manifest to `next`? The lease is not its business.
    pub(crate) fn check_step(&self, next: &Manifest) -> Result<(), &'static str> {
        next.check()?;
        let same =
            (self.database, self.epoch, &self.lanes) == (next.database, next.epoch, &next.lanes);
        if !same {
            return Err("a running server's database, epoch and lanes do not change");
        }
        let Some(before) = &self.checkpoint else {
            return Ok(());
        };
        let Some(after) = &next.checkpoint else {
            return Err("a checkpoint is gone");
        };
        if before == after {
            return Ok(());
        }
        if after.epoch != self.epoch || after.csn < before.csn {
            return Err("a checkpoint goes back");
        }
        let back = |start: &RedoPoint| {
            let before = self.start_of(self.epoch, start.lane);
            before.is_some_and(|before| (start.at, start.block) < (before.at, before.block))
        };
        if after.starts.iter().any(back) {
            return Err("a checkpoint goes back");
        }
        Ok(())
    }
}
