//! Follows a log beside its running server: hands over its entries while they are written, in CSN order, each once.
//!
//! Owns: where each lane was read to, and the entries that were read and whose turn has not come. Changes nothing at
//! the home, and needs neither lock nor lease.
//!
//! A *round* ([`Follower::round`]):
//! 1. It reads the manifest. An epoch that another one has followed is *settled*: its recovery mark says where its
//!    lanes end.
//! 2. It learns a horizon `H`: from the headers of the blocks that earlier rounds have read, from the manifest's
//!    checkpoint, and from whoever calls [`Follower::learn`].
//! 3. It reads the lanes on from where they were read to, and hands over what is due.
//! 4. Behind the end of a settled epoch it judges what lies above the first gap, by recovery's own rule (`merge`), and
//!    goes on with the next epoch's lanes.
//!
//! **The rule.** In an epoch that is not settled, an entry is handed over when it has been read, all CSNs before it
//! have been handed over, and its CSN is below a horizon that is written down somewhere.
//! - *Nothing is missing.* Each CSN of an epoch from its base up to its horizon has one entry, void ones included
//!   (T12). So whoever hands over one CSN after the other leaves nothing out, in whatever order lanes are read.
//! - *Nothing is taken back.* What is below a horizon was durable, together with all blocks before it in its lane, when
//!   that was written down, and so was everything before it. Recovery finds it, and finds no gap before it: it
//!   survives. That a block can be read does not prove that: a crash may take it back. A header that a crash takes back
//!   tells the truth all the same.
//! - *The order is the primary's.* So two followers never disagree, and each shows a prefix of the same order.
//!
//! **When something is lost.** `H` is learnt before the lanes are read (step 2 before step 3). What is below `H` was in
//! its lanes by then, so a round that reads every lane to its end and does not find it has met a loss, or what a newer
//! checkpoint has made superfluous. The other order would prove nothing: a lane may get its entry after it was read,
//! and another one the block that tells of it. A lane that ends before the entries that are due, and of which nobody
//! tells, is waited for: it may be a lane whose server is gone.
//!
//! **What is removed.** A server removes segments and side segments below its newest checkpoint, but for what it
//! keeps a while for those who follow by a stream ([`LogFloor`](crate::LogFloor)). One that misses something which a
//! newer checkpoint holds says so ([`FollowError::Removed`]), and its caller begins again at that checkpoint. Blocks
//! that hold nothing but what was handed over are passed over.
//!
//! **By a stream.** A server at work may send its blocks and its horizon ([`StreamedBlocks`]). A round of them
//! ([`Follower::streamed_round`]) takes blocks from there instead of the home, by the same checks and the same rule,
//! and
//! judges nothing: a block that did not come proves nothing, and neither does a horizon that was sent, where entries
//! below it are missing. A round that reads the home follows then, and now and
//! then anyhow, for what only the manifest tells.
//!
//! **A loss that a start has accepted** may take back what was durable. The mark says so, and a follower that has
//! handed over any of it ends ([`FollowError::Annulled`]).
//!
//! **Memory.** A lane is read only while it may hold the next CSN, that is, until one of its blocks tells of a horizon
//! above that; and if the next CSN is there and not below the horizon, until some block tells of a higher one. So all
//! that is kept was in the log beside a horizon that was not above the next CSN, but for one batch of blocks a lane.
//! A server lets its CSNs run ahead of its horizon by no more than its commit ring holds. So that, and a batch of each
//! lane, bounds what is kept. Blocks of version 1 tell no horizon; their epochs are settled.
//!
//! Does not: wait, know what records mean, or decide when a round is due.

mod streamed;
mod tail;

use super::scan::{ScanTarget, SettledLane};
use super::{ApplyFn, RecoveryError};
use crate::manifest::{CheckpointRef, Manifest, RecoveryMark};
use crate::stored_manifest::read_manifest;
use logstead_home::{HomeError, LogHome};
use logstead_types::{Csn, DatabaseId, Epoch};
use std::sync::Arc;
pub use streamed::StreamedBlocks;
use tail::{EpochFollower, EpochOutcome, FollowFailure};

/// Why a log cannot be followed any further.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// A newer checkpoint holds what comes next, and the log before it is gone: begin again at that checkpoint.
    #[error(
        "the log from CSN {next} on was removed: a newer checkpoint holds everything below CSN {checkpoint}"
    )]
    Removed {
        /// What was to be handed over next.
        next: Csn,
        /// Everything below this one is in the checkpoint.
        checkpoint: Csn,
    },
    /// A start has accepted a loss of data, and what was handed over is part of it.
    #[error(
        "a start of the primary has accepted a loss of data: nothing from CSN {from} on has survived"
    )]
    Annulled {
        /// The first CSN that did not survive.
        from: Csn,
    },
    /// There is another database in the home by now.
    #[error("the home {0} holds another database, or an earlier state of this one")]
    Replaced(String),
    /// The log is bad, or cannot be read now. After an error of the home the round may be repeated.
    #[error(transparent)]
    Log(#[from] RecoveryError),
}

impl From<HomeError> for FollowError {
    fn from(error: HomeError) -> FollowError {
        FollowError::Log(RecoveryError::Home(error))
    }
}

/// How far the log was followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowProgress {
    /// All that survives below this CSN was handed over.
    pub next: Csn,
    /// The epoch that is read now.
    pub epoch: Epoch,
    /// The highest horizon of it that is known.
    pub horizon: Csn,
    /// Entries that were read and wait for their turn.
    pub waiting: usize,
    /// The most that ever did.
    pub waiting_most: usize,
    /// Entries handed over since the follower was opened, void ones included.
    pub entries: u64,
    /// Bytes of records in them.
    pub bytes: u64,
}

/// Follows one log; see the module's documentation.
pub struct Follower<'h> {
    home: &'h LogHome,
    /// The newest one that was read.
    manifest: Manifest,
    begin: Option<CheckpointRef>,
    tail: EpochFollower<'h>,
    entries: u64,
    bytes: u64,
    /// In epochs before.
    waiting_most: usize,
}

impl<'h> Follower<'h> {
    /// Begins at the newest checkpoint of the log in `home`, or at the log's beginning if it has none.
    pub fn open(home: &'h LogHome) -> Result<Follower<'h>, FollowError> {
        let manifest = stored(home)?;
        let first = manifest
            .marks
            .first()
            .map_or(manifest.epoch, |mark| mark.epoch);
        let tail = Follower::tail_of(home, &manifest, first)?;
        let begin = manifest.checkpoint.clone();
        Ok(Follower {
            home,
            manifest,
            begin,
            tail,
            entries: 0,
            bytes: 0,
            waiting_most: 0,
        })
    }

    /// The database.
    pub fn database(&self) -> DatabaseId {
        self.manifest.database
    }

    /// Where it began: what survived below this checkpoint's CSN is in it, and is not handed over.
    pub fn begin(&self) -> Option<&CheckpointRef> {
        self.begin.as_ref()
    }

    /// The newest manifest that was read.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// How far it has come.
    pub fn progress(&self) -> FollowProgress {
        FollowProgress {
            next: self.tail.next(),
            epoch: self.tail.epoch(),
            horizon: self.tail.horizon(),
            waiting: self.tail.waiting(),
            waiting_most: self.waiting_most.max(self.tail.waiting_most()),
            entries: self.entries,
            bytes: self.bytes,
        }
    }

    /// Somebody else tells a horizon of this epoch that the log has: every CSN of it below `horizon` is durable. Of
    /// another epoch it tells nothing.
    pub fn learn(&mut self, epoch: Epoch, horizon: Csn) {
        self.tail.learn(epoch, horizon);
    }

    /// Reads on, and hands over what has become due: records of one entry after the other, whole ones, in CSN order.
    /// An entry that is very long comes in several calls; void ones are left out. All of an entry was handed over when
    /// the next one comes or the round ends well.
    ///
    /// A round may be repeated after an error of the home or of `apply`; it goes on with what was not taken.
    pub fn round(&mut self, apply: &mut ApplyFn<'_>) -> Result<FollowProgress, FollowError> {
        self.look()?;
        loop {
            let read = self.tail.read(apply);
            let read = read.and_then(|()| self.tail.settle(apply));
            let handed = self.tail.take_handed();
            self.entries += handed.entries;
            self.bytes += handed.bytes;
            match read {
                Ok(true) => {
                    self.skip_superfluous();
                    return Ok(self.progress());
                }
                Ok(false) => self.next_epoch()?,
                Err(FollowFailure::Log(error)) => return Err(error.into()),
                Err(FollowFailure::Missing(loss)) => {
                    let before = self.manifest.clone();
                    self.look()?;
                    self.check_removed()?;
                    if self.manifest.is_of_log(&before) {
                        return Err(RecoveryError::Corrupt(loss).into());
                    }
                    // The next round judges by the manifest of now.
                    return Ok(self.progress());
                }
            }
        }
    }

    /// A round of what the server at work has sent, without a look at the home: hands over what is due of it. `None`:
    /// it needs the home, for something that is due did not come, or the epoch is over; a [`Follower::round`] is due.
    /// Errors as there.
    pub fn streamed_round(
        &mut self,
        stream: &Arc<StreamedBlocks>,
        apply: &mut ApplyFn<'_>,
    ) -> Result<Option<FollowProgress>, FollowError> {
        let (epoch, horizon) = stream.horizon();
        if self.tail.is_settled() || epoch != self.tail.epoch() {
            return Ok(None);
        }
        self.tail.learn_streamed(horizon);
        let read = self.tail.read_streamed(stream, apply);
        let handed = self.tail.take_handed();
        self.entries += handed.entries;
        self.bytes += handed.bytes;
        match read {
            Ok(true) => Ok(Some(self.progress())),
            // A side segment that is missing is judged where the manifest is known.
            Ok(false) | Err(FollowFailure::Missing(_)) => Ok(None),
            Err(FollowFailure::Log(error)) => Err(error.into()),
        }
    }

    /// What a round has read at the home is not wanted from the server any more.
    pub fn forget_streamed(&self, stream: &StreamedBlocks) {
        self.tail.forget_streamed(stream);
        self.tail.forget_others(stream);
    }

    /// Reads the manifest.
    fn look(&mut self) -> Result<(), FollowError> {
        let manifest = stored(self.home)?;
        if manifest.database != self.manifest.database || manifest.epoch < self.manifest.epoch {
            return Err(FollowError::Replaced(self.home.describe()));
        }
        self.manifest = manifest;
        let epoch = self.tail.epoch();
        let checkpoint = self.manifest.checkpoint.as_ref();
        if let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.epoch == epoch) {
            self.tail.learn(epoch, checkpoint.csn);
        }
        if self.tail.is_settled() || self.manifest.epoch == epoch {
            return Ok(());
        }
        let outcome = self.outcome()?;
        let survives_to = outcome.survives_to();
        // What was begun may be there in part.
        if self.tail.next() > survives_to || self.tail.has_begun(survives_to) {
            return Err(FollowError::Annulled { from: survives_to });
        }
        self.tail.set_outcome(outcome);
        Ok(())
    }

    /// What became of the epoch that was read until now, and is settled.
    fn outcome(&self) -> Result<EpochOutcome, FollowError> {
        let epoch = self.tail.epoch();
        self.check_epoch()?;
        let mark = self.manifest.marks.iter().find(|mark| mark.epoch == epoch);
        let blocks = |mark: Option<&RecoveryMark>| {
            let blocks = |target: &ScanTarget| {
                let span =
                    mark.and_then(|mark| mark.spans.iter().find(|span| span.lane == target.lane));
                let start = self.manifest.start_of(epoch, target.lane);
                match (span, start) {
                    (Some(span), _) => SettledLane {
                        last_segment: span.end.segment,
                        blocks: span.blocks,
                    },
                    // It has written nothing, or nothing behind the checkpoint's start.
                    (None, Some(start)) => SettledLane {
                        last_segment: start.at.segment,
                        blocks: start.block,
                    },
                    (None, None) => SettledLane {
                        last_segment: target.from.at.segment,
                        blocks: 0,
                    },
                }
            };
            self.tail.targets().iter().map(blocks).collect()
        };
        Ok(match mark {
            Some(mark) => EpochOutcome {
                first_unaccounted: mark.first_unaccounted,
                annulled_from: mark.annulled_from,
                next: mark.next,
                lanes: blocks(Some(mark)),
            },
            // Nothing was found in it behind its checkpoint, or nothing at all.
            None => {
                let next = self.manifest.held_below(epoch).max(self.tail.base());
                EpochOutcome {
                    first_unaccounted: next,
                    annulled_from: None,
                    next,
                    lanes: blocks(None),
                }
            }
        })
    }

    /// A checkpoint of a later epoch leaves no mark of the one that is read.
    fn check_epoch(&self) -> Result<(), FollowError> {
        match &self.manifest.checkpoint {
            Some(checkpoint) if checkpoint.epoch > self.tail.epoch() => {
                Err(self.removed(checkpoint))
            }
            _ => Ok(()),
        }
    }

    fn removed(&self, checkpoint: &CheckpointRef) -> FollowError {
        FollowError::Removed {
            next: self.tail.next(),
            checkpoint: checkpoint.csn,
        }
    }

    /// Something is missing: does the newest checkpoint hold what comes next?
    fn check_removed(&self) -> Result<(), FollowError> {
        self.check_epoch()?;
        match &self.manifest.checkpoint {
            Some(checkpoint) if checkpoint.csn > self.tail.next() => Err(self.removed(checkpoint)),
            _ => Ok(()),
        }
    }

    /// What lies before the starts of the newest checkpoint may be gone, or be removed any time. A lane that ends
    /// before its start has lost that already. Everything below the checkpoint was handed over, for its CSN was learnt
    /// as a horizon: so what is gone held nothing more.
    fn skip_superfluous(&mut self) {
        let epoch = self.tail.epoch();
        let checkpoint = self.manifest.checkpoint.as_ref();
        if let Some(checkpoint) = checkpoint.filter(|at| at.epoch == epoch) {
            self.tail.skip_to(checkpoint);
        }
    }

    /// The epoch that was read is over, and everything of it was handed over.
    fn next_epoch(&mut self) -> Result<(), FollowError> {
        let (epoch, next) = (self.tail.epoch(), self.tail.next());
        let mut marks = self.manifest.marks.iter();
        let mark = marks.find(|mark| mark.epoch > epoch);
        let (following, base) = match mark {
            Some(mark) => (mark.epoch, mark.base),
            None => (self.manifest.epoch, self.manifest.base()),
        };
        if base != next {
            // Between the two lies what a checkpoint holds, whose epoch is read from its starts on only.
            return Err(FollowError::Removed {
                next,
                checkpoint: base,
            });
        }
        self.waiting_most = self.waiting_most.max(self.tail.waiting_most());
        self.tail = Follower::tail_of(self.home, &self.manifest, following)?;
        Ok(())
    }

    /// An epoch of which the manifest has a mark, or its last one.
    fn tail_of(
        home: &'h LogHome,
        manifest: &Manifest,
        epoch: Epoch,
    ) -> Result<EpochFollower<'h>, FollowError> {
        let mark = manifest.marks.iter().find(|mark| mark.epoch == epoch);
        let (base, targets): (Csn, Vec<ScanTarget>) = match mark {
            Some(mark) => {
                let spans = mark.spans.iter();
                let target = |span| ScanTarget::of_span(manifest, epoch, span);
                (mark.base, spans.map(target).collect())
            }
            None => {
                let origins = manifest.lanes.iter();
                let target = |origin| ScanTarget::of_origin(manifest, origin);
                (manifest.base(), origins.map(target).collect())
            }
        };
        let mut tail = EpochFollower::new(home, epoch, base, &targets)?;
        if let Some(mark) = mark {
            tail.set_outcome(EpochOutcome {
                first_unaccounted: mark.first_unaccounted,
                annulled_from: mark.annulled_from,
                next: mark.next,
                lanes: targets.iter().filter_map(|target| target.settled).collect(),
            });
        }
        Ok(tail)
    }
}

impl std::fmt::Debug for Follower<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower")
            .field("progress", &self.progress())
            .finish_non_exhaustive()
    }
}

/// The manifest that is stored in a home.
fn stored(home: &LogHome) -> Result<Manifest, FollowError> {
    let stored = read_manifest(home)?;
    let (manifest, _) = stored.ok_or_else(|| RecoveryError::NoLog(home.describe()))?;
    Ok(manifest)
}
