//! Checkpoints of rows: what recovery loads instead of reading the whole log.
//!
//! The steps of one ([`Engine::checkpoint`]):
//! 1. Each lane's place is noted, then the CSN counter S as a published snapshot, with the tables there are. Lanes are
//!    flushed.
//! 2. When the horizon has reached S, everything below it is Committed: the checkpoint holds nothing else. Until then
//!    nobody writes, and nobody but this thread waits.
//! 3. Chunks that have changed since the checkpoint before are written, without locks ([`walk`]): their changed rows as
//!    a delta page, or the whole chunk where that is better (the quarter rule). What has not changed is named, not
//!    copied. Then the leaves of indexes that have changed become tiles ([`tiles`]).
//! 4. The directory is made anew where it differs, the objects are stored, and the record is published by one compare
//!    and swap of the manifest.
//! 5. What only the record before named is removed, and the log from before the noted places, but for what replicas
//!    need ([`crate::page_store::ReplicaHolds`]).
//!
//! Invariants:
//! - A checkpoint holds exactly the rows that are visible at S, and the log from the noted places holds every entry at
//!   or above S: an entry that was pushed before a place was noted had drawn a CSN before S was read.
//! - A transaction never waits for a checkpoint: it takes no lock that transactions take, but for the list of tables,
//!   for a moment, once.
//! - Until it is published a checkpoint has changed nothing. A checkpoint that fails anywhere leaves the one before in
//!   force, and its chunks are looked at again.
//! - While it is under way, garbage collection keeps what it sees, like for any other old snapshot (T6).
//!
//! # Dropped tables
//!
//! [`Engine::drop_table`] is called when the drop is Precommitted, not yet durable; if it is lost in a crash the table
//! must be there again. A checkpoint at S needs a table's rows unless its drop is below S:
//! - S is read under the lock of the list of tables, together with the list. A table that is missing there was dropped
//!   from the list before S was read, hence its drop's CSN, drawn before, is below S. And the checkpoint is published
//!   only when the horizon has reached S, hence when the drop is durable: nobody needs the table's rows any more.
//! - A table that is dropped later is in the list, and its rows are kept by it until the checkpoint is through, also if
//!   that holds them a little longer than necessary. Its collector has let go of it, so nothing is unlinked in it.
//! - A table whose making was rolled back, or that nothing names at a start, never had, or has no more, rows that
//!   anybody may need.
//!
//! So the directory loses the pages of every table that is not in the list, and of no other.
//!
//! Does not: know the format of pages and records (crate `checkpoint`), what a manifest says (`wal`), or SQL.

pub(crate) mod by_replica;
mod logged;
#[cfg(test)]
mod model;
mod older_rows;
mod publish;
mod restore;
mod restore_points;
mod tail;
mod take;
mod thread;
mod tiles;
pub(crate) mod walk;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use logstead_commit::{CommitWait, LogFailed};
use logstead_types::Csn;

use crate::engine::Engine;

use crate::page_store::compaction::{Compaction, CompactionOutcome};
use crate::page_store::{CheckpointError, CheckpointReport, CheckpointStats};

pub use by_replica::ReplicaCheckpoint;
pub use restore::RestoredIndex;
pub use restore_points::RestorePointError;
pub use take::Checkpoint;
pub use thread::{CheckpointListener, Checkpointer};

/// How often lanes are flushed again while a checkpoint waits for them: what a lane holds back must not hold it back
/// for long.
const FLUSH_AGAIN: Duration = Duration::from_millis(20);

/// What is written between two rests: half a millisecond, about.
const SLICE_CHUNKS: usize = 64;

impl Engine {
    /// Takes a checkpoint of now: every transaction that was acknowledged before the call is in it. Blocks until it is
    /// published, first until one that is under way is through: for threads of their own, never for a worker's. If
    /// nothing has changed since the one before, nothing is written.
    pub fn checkpoint(&self) -> Result<CheckpointReport, CheckpointError> {
        self.checkpoint_resting(|_| {})
    }

    /// The same; between slices of its walk `rest` is told how long the last one took, and may wait, so that
    /// transactions have the machine for themselves in between. It is not asked while somebody waits for this
    /// checkpoint, or the next one.
    fn checkpoint_resting(
        &self,
        mut rest: impl FnMut(Duration),
    ) -> Result<CheckpointReport, CheckpointError> {
        loop {
            let taken = self.checkpoint_once(&mut rest);
            // Begun anew once the instance is restarted for which it was given up.
            if !matches!(taken, Err(CheckpointError::Interrupted)) {
                return taken;
            }
        }
    }

    fn checkpoint_once(
        &self,
        rest: impl FnMut(Duration),
    ) -> Result<CheckpointReport, CheckpointError> {
        let checkpoints = &self.inner().checkpoints;
        let _turn = checkpoints.turn();
        let _running = checkpoints.under_way.begin();
        let memory_queue = &self.inner().memory_queue;
        memory_queue.checkpoint_begins();
        let taken = self.take_checkpoint(rest);
        memory_queue.checkpoint_ends(taken.as_ref().map(|_| ()));
        if !matches!(taken, Err(CheckpointError::Interrupted)) {
            checkpoints.stats.lock().note(&taken);
        }
        taken
    }

    /// Without room for what it would compact it is taken without that: what has changed has room perhaps, and frees
    /// the log before it. On a disk that stays
    /// full the next ones do not try, as long as `CompactionPause` says.
    fn take_checkpoint(
        &self,
        mut rest: impl FnMut(Duration),
    ) -> Result<CheckpointReport, CheckpointError> {
        if let Some(taken) = self.checkpoint_by_replica() {
            return taken;
        }
        let pause = &self.inner().checkpoints.compaction_pause;
        let free_bytes = self.home().appends.free_bytes();
        let compaction = pause.lock().next(free_bytes);
        let mut taken = self.attempt_checkpoint(&mut rest, compaction);
        if matches!(&taken, Err((CheckpointError::DiskFull(_), _))) && self.let_go_for_room() {
            taken = self.attempt_checkpoint(&mut rest, compaction);
        }
        if let Err((CheckpointError::DiskFull(_), CompactionOutcome::Yes)) = &taken {
            pause.lock().found_no_room(free_bytes);
            taken = self.attempt_checkpoint(&mut rest, Compaction::Forbidden);
        }
        taken.map_err(|(error, _)| error)
    }

    /// There is no room: what is kept for replicas goes. False: nothing is.
    fn let_go_for_room(&self) -> bool {
        let inner = self.inner();
        if !inner.checkpoints.replica_holds.keeps_anything() {
            return false;
        }
        // As while a checkpoint is taken: this thread has the turn.
        let base = inner.checkpoints.base.lock().take();
        if let Some(mut base) = base {
            // What fails is tried again after the next one.
            let mut report = CheckpointReport::default();
            base.collect_all(inner.env.clock.monotonic(), &mut report);
            *inner.checkpoints.base.lock() = Some(base);
        }
        true
    }

    /// After an error: was anything to be compacted?
    fn attempt_checkpoint(
        &self,
        mut rest: impl FnMut(Duration),
        compaction: Compaction,
    ) -> Result<CheckpointReport, (CheckpointError, CompactionOutcome)> {
        let begun = self.begin_checkpoint();
        let mut checkpoint = begun.map_err(|error| (error, CompactionOutcome::No))?;
        checkpoint.compaction = compaction;
        let walked = checkpoint
            .wait()
            .and_then(|()| self.walk_resting(&mut checkpoint, &mut rest));
        let compacted = match checkpoint.moves.is_empty() {
            true => CompactionOutcome::No,
            false => CompactionOutcome::Yes,
        };
        walked
            .and_then(|()| checkpoint.publish())
            .map_err(|error| (error, compacted))
    }

    fn walk_resting(
        &self,
        checkpoint: &mut Checkpoint,
        mut rest: impl FnMut(Duration),
    ) -> Result<(), CheckpointError> {
        let (clock, checkpoints) = (&self.inner().env.clock, &self.inner().checkpoints);
        let mut begun = clock.monotonic();
        while checkpoint.walk(SLICE_CHUNKS)? {
            let is_awaited = checkpoints.waiting.load(Ordering::Relaxed) > 0
                || checkpoints.under_way.is_awaited()
                || self.inner().memory_queue.has_waiters();
            if !is_awaited {
                rest(clock.monotonic().since(begun));
            }
            begun = clock.monotonic();
        }
        Ok(())
    }

    /// Has a checkpoint taken soon by the thread that takes them, as soon as it may if `at_once`. False: there is no
    /// such thread.
    pub(crate) fn ask_for_checkpoint(&self, at_once: bool) -> bool {
        let asked = self.inner().checkpoints.asked.lock().clone();
        if let Some(thread) = &asked {
            thread.ask(at_once);
        }
        asked.is_some()
    }

    /// What checkpoints have done so far.
    pub fn checkpoint_stats(&self) -> CheckpointStats {
        let checkpoints = &self.inner().checkpoints;
        CheckpointStats {
            page_services: checkpoints.page_services.offers() as u64,
            ..checkpoints.stats.lock().clone()
        }
    }

    /// The pages that the start has read to restore indexes ([`Engine::restore_index`]), and the bytes it has read for
    /// that.
    pub fn start_reads(&self) -> (u64, u64) {
        let reads = self.inner().checkpoints.start_reads.lock();
        (reads.pages, reads.bytes)
    }

    /// The most that checkpoints write in a second, from the next one on; 0 stands for no limit.
    pub fn set_checkpoint_bandwidth(&self, bytes: u64) {
        let bandwidth = &self.inner().checkpoints.bandwidth_bytes;
        bandwidth.store(bytes, Ordering::Relaxed);
    }

    /// Gives up the checkpoint that is under way, and all later ones: the process is about to end.
    pub fn stop_checkpoints(&self) {
        let stopping = &self.inner().checkpoints.stopping;
        stopping.store(true, Ordering::Relaxed);
    }
}

/// Wakes a thread that waits.
struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Blocks until the horizon has reached `csn`.
fn wait_for_horizon(engine: &Engine, csn: Csn) -> Result<(), CheckpointError> {
    let Some(last) = csn.0.checked_sub(1) else {
        return Ok(());
    };
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut durable = pin!(engine.acknowledged(CommitWait::floor(Csn(last))));
    loop {
        match durable.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result.map_err(LogFailed::into),
            Poll::Pending => std::thread::park_timeout(FLUSH_AGAIN),
        }
        if let Some(given_up) = engine.inner().checkpoints.given_up() {
            return Err(given_up);
        }
        engine.inner().path.flush_all();
    }
}

#[cfg(test)]
mod tests {
    use logstead_env::Env;
    use logstead_home::{LogHome, MemoryHome};
    use logstead_types::{TableId, WorkerId};

    use super::*;
    use crate::version::CHUNK_SLOTS;
    use crate::{EngineOptions, Isolation, RowBuilder};

    /// An engine with rows in so many chunks.
    fn engine(chunks: usize) -> Engine {
        let home = Arc::new(MemoryHome::new(4 << 20));
        let env = Env::simulated(1).0;
        let (engine, _) =
            Engine::open(EngineOptions::default(), LogHome::from(home), env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let mut row = RowBuilder::new();
        row.start(1, 1);
        row.push(Some(b"x"));
        let worker = engine.worker(WorkerId(0));
        for _ in 0..chunks {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            for _ in 0..CHUNK_SLOTS {
                txn.insert(&table, row.finish()).expect("inserts");
            }
            txn.try_precommit().expect("room");
            engine.inner().path.flush_all();
        }
        engine
    }

    /// It rests after every slice, until somebody waits for its turn.
    #[test]
    fn a_checkpoint_rests_as_long_as_nobody_waits() {
        const CHUNKS: usize = 4 * SLICE_CHUNKS;
        let rests = |engine: &Engine, hurry: usize| {
            let mut rests = 0;
            let mut other = None;
            let taken = engine.checkpoint_resting(|_| {
                rests += 1;
                if rests == hurry {
                    let also = engine.clone();
                    let thread = logstead_env::spawn("another", None, move || {
                        let taken = also.checkpoint().expect("taken");
                        assert!(!taken.written, "nothing has changed");
                    });
                    other = Some(thread.expect("spawned"));
                    let waiting = &engine.inner().checkpoints.waiting;
                    while waiting.load(Ordering::Relaxed) == 0 {
                        std::thread::yield_now();
                    }
                }
            });
            assert_eq!(taken.expect("taken").pages, CHUNKS as u64);
            if let Some(other) = other {
                other.join().expect("ends");
            }
            rests
        };
        assert_eq!(rests(&engine(CHUNKS), 0), 4);
        assert_eq!(rests(&engine(CHUNKS), 2), 2);
    }
}
