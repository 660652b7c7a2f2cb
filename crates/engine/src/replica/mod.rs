//! A replica: an engine that has what another server writes, as far as that server's log tells.
//!
//! A [`Replica`] opens at the newest checkpoint of a home, everything absent, and takes up what the [`Follower`] hands
//! over: whole entries in CSN order, each once, and only what no crash takes back. Sessions read its engine as they
//! read any engine. It takes no lock, no lease and no lane at the home, stores nothing there, and takes no
//! checkpoints; what is written is refused ([`WriteError::Replica`](crate::WriteError::Replica)), but for temporary
//! tables.
//!
//! # The rule
//!
//! [`Replica::round`] applies an entry as versions that are stamped with its CSN, on top of their rows' chains, and
//! raises the CSN that new snapshots read at when all entries below it are applied. It never reads a row's newest
//! version from a page that is newer than the log it has applied. Let `B` be the checkpoint that it began with, and
//! `O` the CSN at which it opened. A later checkpoint of the primary is *adopted* once everything that it holds is
//! applied ([`crate::page_store::ReplicaBase`] has the rules); rows are read from the last one.
//!
//! - R1 *Every snapshot is at or above `O`.* The counter begins there, and only grows.
//! - R2 *What is absent is as `B` and the start's tail have it.* A start keeps the log from `B` to `O` for chunks that
//!   `B` has, one version for each row ([`crate::chunk_tail`]), which is right for all snapshots by R1. From then on an
//!   entry that changes an absent row brings it in first, with its chunk's tail; so no record is ever kept for one that
//!   is absent, and what an older snapshot sees is unfolded in memory.
//! - R3 *What leaves memory comes back as it was.* A row goes only if the checkpoint that was adopted last has it,
//!   and it is then in every later one until an entry changes it, which brings it in first. Leaves never go: each is
//!   brought in once, from `B`, for what an old snapshot here needs of an index may be gone in later checkpoints.
//! - R4 *No reader sees half an entry.* Its versions have its CSN, which is not below any snapshot until the counter
//!   passes it; that happens when the next entry comes or the round has ended, and then all of it is there.
//! - R5 *Nobody goes back, and two replicas never disagree.* The counter passes CSNs in their order, which is the
//!   primary's; what is handed over stays.
//! - R6 *Indexes.* A leaf of `B` has an entry of each row of `B`, and the start adds those of the tail (T11). A
//!   version's entry is inserted after it is installed; who finds a surplus entry looks at the chain first, so none
//!   that is needed is taken out. An entry goes when the version goes that needed it.
//! - R7 *Garbage.* What an entry supersedes waits for the collector in the replica's own worker, by the rule of any
//!   engine: it goes when no snapshot needs it. The primary's collector does not count, whose snapshots are others.
//! - R8 *Row numbers* are the primary's. One may come again while this engine still has the row that was deleted for
//!   an older snapshot: the new version lies above the tombstone.
//!
//! # Catalogs
//!
//! A table comes into being with its first record. Before a batch becomes visible, a function of the caller hears
//! which tables it has changed, and may read at its CSN ([`ReplicaBatch::snapshot`]), make and drop tables and indexes,
//! and build indexes: nobody sees the batch before it returns. It runs on the replica's thread, so no entry is applied
//! meanwhile, and an index that is attached there misses nothing.
//!
//! The numbers of tables are the primary's, below
//! [`TEMPORARY_AT_REPLICAS`](crate::TEMPORARY_AT_REPLICAS); a session's own tables have those from
//! there on, and a log that uses one of them is refused. A table that was dropped there is not made again by its
//! number.
//!
//! All below a batch's CSN counts as committed when the function is called: what it waits for is there.
//!
//! # What ends it
//!
//! The primary waits for nobody. What it has removed, of the log or of `B`, before it was read here is gone:
//! [`ReplicaError::Removed`], and sessions get [`FaultError::TooOld`](crate::FaultError::TooOld). Then a new replica is
//! opened, at the newest checkpoint: that may lie below what the old one has shown, so whoever reopens shows nothing
//! before it has come as far ([`Replica::catch_up`]). Sessions end or go on with what is in memory of the old one. Once
//! one of them has missed a leaf, the next round ends the replica.
//! [`Engine::bring_all`](crate::Engine::bring_all) brings in all leaves, and rows as long as there is memory for them;
//! afterwards `B` is not needed any more. A row that is missed is read from a newer checkpoint; who needs one that only
//! a checkpoint above what is applied has, waits ([`Engine::set_replica_wait`](crate::Engine::set_replica_wait)).
//!
//! Memory: indexes have to fit into the budget, and what is changed between two checkpoints, or by one transaction. The
//! rest is let go by an [`Evictor`](crate::Evictor), if there is one. Otherwise a round ends with
//! [`ReplicaError::Memory`].
//!
//! After an error of the home, or for want of memory, the round is repeated. The follower hands over again what was
//! not taken as a whole; records that were applied before the error are passed over.
//!
//! Does not: decide when a round is due, know the catalog, or certify SERIALIZABLE transactions against the primary's:
//! whoever begins transactions refuses that level, as PostgreSQL does on a standby.

mod apply;
mod page_reader;

use std::collections::BTreeSet;
use std::sync::Arc;

use logstead_env::Env;
use logstead_home::{LogHome, ObjectId};
use logstead_types::{Csn, Epoch, TableId, WorkerId};
use logstead_wal::manifest::Manifest;
use logstead_wal::recovery::ApplyFn;
use logstead_wal::recovery::follow::{FollowError, FollowProgress, Follower, StreamedBlocks};

use crate::checkpoint::ReplicaCheckpoint;
use crate::engine::{Engine, EngineOptions};
use crate::error::{OpenError, ReplicaError};
use crate::page_store::{Adoption, CheckpointError, PageOrder, ReplicaBase};
use crate::txn::exported_snapshot::ExportedSnapshot;
use apply::Applier;
pub use page_reader::ReplicaPageReader;

/// Rows that the collector looks at in one step, and steps after each batch at most.
const COLLECTED_ROWS: usize = 4096;
const COLLECTIONS_MAX: usize = 64;
/// Rounds that bring a new replica up to what its home tells now, beside a primary that writes without a pause.
const CATCH_UP_ROUNDS: usize = 8;
/// What was applied becomes visible, at the latest, when there is so much of it, in records and versions.
const BATCH_BYTES: usize = 1 << 20;

/// What has been applied and is about to become visible.
pub struct ReplicaBatch<'b> {
    engine: &'b Engine,
    /// The tables that it has changed.
    pub tables: &'b BTreeSet<TableId>,
    /// Snapshots see everything below this when the function that is told of the batch has returned.
    pub visible: Csn,
}

impl ReplicaBatch<'_> {
    /// A snapshot that sees the batch, and what came before ([`Txn::import_snapshot`](crate::Txn::import_snapshot)).
    pub fn snapshot(&self) -> Arc<ExportedSnapshot> {
        ExportedSnapshot::pin(self.engine, self.visible)
    }
}

/// Tells which checkpoints a replica reads from.
#[derive(Clone)]
pub struct ReplicaCheckpoints(Arc<ReplicaBase>);

impl ReplicaCheckpoints {
    /// Their records. Nothing: it changes to another one just now.
    pub fn in_use(&self) -> Option<Vec<ObjectId>> {
        self.0.checkpoints_in_use()
    }
}

/// Follows a log and keeps an engine as it says; see the module's documentation. It is its thread's.
pub struct Replica<'h> {
    follower: Follower<'h>,
    applier: Applier,
    has_ended: bool,
}

impl Drop for Replica<'_> {
    fn drop(&mut self) {
        self.applier.base().close();
    }
}

impl<'h> Replica<'h> {
    /// Opens at the newest checkpoint of the log in `home`, with all that is known to be durable. Its engine has one
    /// worker more than the options say, the last one, which is the replica's own. Indexes are made by
    /// [`Engine::restore_index`] before [`Engine::finish_startup`], as at any start, before the first round.
    pub fn open(
        options: EngineOptions,
        home: &'h LogHome,
        env: Env,
    ) -> Result<Replica<'h>, ReplicaError> {
        let sessions = u16::try_from(options.workers)
            .ok()
            .filter(|n| *n < u16::MAX);
        let (Some(own), 1..) = (sessions, options.commit.workers_per_lane) else {
            let what = "too many workers, or none for each lane";
            return Err(OpenError::Options(what.into()).into());
        };
        let mut options = options;
        options.workers += 1;
        // Nobody reads what it would write.
        options.commit.horizon_pause = None;
        let (engine, base, follower, next) = crate::replay::open_beside(&options, home, &env)?;
        Ok(Replica {
            applier: Applier::new(&engine, base, WorkerId(own), next),
            follower,
            has_ended: false,
        })
    }

    /// What it keeps, for sessions.
    pub fn engine(&self) -> &Engine {
        self.applier.engine()
    }

    /// The replica's own worker: transactions that read the catalog in a batch's function begin here.
    pub fn worker(&self) -> &crate::Worker {
        self.applier.worker()
    }

    /// How far the log was read.
    pub fn progress(&self) -> FollowProgress {
        self.follower.progress()
    }

    /// The primary tells a horizon, faster than the log does: see [`Follower::learn`].
    pub fn learn(&mut self, epoch: Epoch, horizon: Csn) {
        self.follower.learn(epoch, horizon);
    }

    /// Which checkpoints it reads from, for any thread.
    pub fn checkpoints(&self) -> ReplicaCheckpoints {
        ReplicaCheckpoints(Arc::clone(self.applier.shared_base()))
    }

    /// Checkpoints will be ordered of it ([`Replica::begin_checkpoint`]).
    pub fn writes_pages(&self) {
        self.applier.base().set_writer();
    }

    /// Begins what the primary has ordered, which is stored in `home`, the one that is followed. To be called between
    /// two rounds, when snapshots see everything below [`PageOrder::from`](crate::PageOrder::from).
    ///
    /// # Errors
    /// It is not done, and nothing was stored.
    pub fn begin_checkpoint(
        &mut self,
        order: PageOrder,
        home: LogHome,
    ) -> Result<ReplicaCheckpoint, CheckpointError> {
        let applier = &self.applier;
        let engine = applier.engine();
        if engine.next_csn() < order.from {
            return Err(CheckpointError::Busy);
        }
        engine.begin_ordered_checkpoint(order, applier.shared_base(), home)
    }

    /// What is being written ends soon. What was written stays, until it is known whether it was published.
    pub fn end_checkpoint(&self) {
        self.applier.base().end_writing();
    }

    /// The primary has given up what it ordered last.
    pub fn give_up_checkpoint(&self) {
        self.applier.base().give_up_writing();
    }

    /// The newest manifest that was read.
    pub fn manifest(&self) -> &Manifest {
        self.follower.manifest()
    }

    /// Reads the log on until a round finds nothing new, or some rounds. Gives whether everything below `shown` is
    /// visible now. Who opens a replica after another one has shown that much lets nobody read before it is, so that
    /// nobody goes back; it may take until the primary has written its horizon down again.
    pub fn catch_up(
        &mut self,
        shown: Csn,
        before: &mut dyn FnMut(&ReplicaBatch<'_>),
    ) -> Result<bool, ReplicaError> {
        for _ in 0..CATCH_UP_ROUNDS {
            let was = self.progress();
            let now = self.round(before)?;
            if (now.next, now.horizon, now.epoch) == (was.next, was.horizon, was.epoch) {
                break;
            }
        }
        Ok(self.engine().next_csn() >= shown)
    }

    /// Reads the log on, applies what has become due, and shows it. Before each batch becomes visible `before` is told.
    /// Blocks while pages and the log are read.
    pub fn round(
        &mut self,
        before: &mut dyn FnMut(&ReplicaBatch<'_>),
    ) -> Result<FollowProgress, ReplicaError> {
        self.round_by(before, |follower, apply| follower.round(apply))
    }

    /// The same of what the server has sent, without a look at the home. `None`: it needs the home, so a
    /// [`Replica::round`] is due.
    pub fn streamed_round(
        &mut self,
        stream: &Arc<StreamedBlocks>,
        before: &mut dyn FnMut(&ReplicaBatch<'_>),
    ) -> Result<Option<FollowProgress>, ReplicaError> {
        self.round_by(before, |follower, apply| {
            follower.streamed_round(stream, apply)
        })
    }

    /// What a round has read at the home is not wanted from the server any more.
    pub fn forget_streamed(&self, stream: &StreamedBlocks) {
        self.follower.forget_streamed(stream);
    }

    fn round_by<T>(
        &mut self,
        before: &mut dyn FnMut(&ReplicaBatch<'_>),
        read: impl FnOnce(&mut Follower<'h>, &mut ApplyFn<'_>) -> Result<T, FollowError>,
    ) -> Result<T, ReplicaError> {
        if self.has_ended {
            return Err(ReplicaError::Ended);
        }
        let applier = &mut self.applier;
        applier.base().applies_here();
        if let Some(checkpoint) = applier.base().superseded.get() {
            let checkpoint = *checkpoint;
            self.has_ended = true;
            let next = self.engine().next_csn();
            return Err(ReplicaError::Removed { next, checkpoint });
        }
        let mut failure = None;
        let round = read(&mut self.follower, &mut |csn, records| {
            let applied = applier.redo(csn, records, before);
            applied.map_err(|error| {
                failure = Some(error);
                // The follower hands it back; what it was is kept beside.
                "the replica cannot apply it".into()
            })
        });
        // Also where something has failed: what was handed over until then was applied, and what it has superseded may
        // be the memory that is wanted.
        self.applier.publish(self.follower.progress().next, before);
        self.applier.collect_garbage();
        // What is told of a checkpoint that cannot be read is told to who needs a row of it.
        let _tried_again = match &self.follower.manifest().checkpoint {
            // Not where the follower has found that the log is another one.
            Some(at) if round.is_ok() || failure.is_some() => {
                let base = self.applier.base();
                base.set_followed(self.follower.progress().epoch);
                base.adopt(at, false)
            }
            _ => Ok(Adoption::Current),
        };
        if matches!(failure, Some(ReplicaError::Memory(_))) {
            // What is being written stays in memory.
            self.applier.base().give_up_writing();
        }
        let round = match failure {
            Some(error) => Err(error),
            None => round.map_err(ReplicaError::from),
        };
        round.inspect_err(|error| self.has_ended = !error.may_repeat())
    }
}
