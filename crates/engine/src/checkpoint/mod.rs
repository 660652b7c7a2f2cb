//! Checkpoints of rows: what recovery loads instead of reading the whole log.
//!
//! The steps of one ([`Engine::checkpoint`]):
//! 1. Each lane's place is noted, then the CSN counter S as a published snapshot, with the tables there are. Lanes are flushed.
//! 2. When the horizon has reached S, everything below it is Committed: the checkpoint holds nothing else. Until then nobody
//!    writes, and nobody but this thread waits.
//! 3. Chunks that have changed since the checkpoint before are written, without locks ([`walk`]): their changed rows as a delta page, or the
//!    whole chunk where that is better (the quarter rule). What has not changed is named, not copied.
//!    Then the leaves of indexes that have changed become tiles ([`tiles`]).
//! 4. The directory is made anew where it differs, the objects are stored, and the record is published by one compare and swap of the manifest.
//! 5. What only the record before named is removed, and the log from before the noted places.
//!
//! Invariants:
//! - A checkpoint holds exactly the rows that are visible at S, and the log from the noted places holds every entry at or above S: an
//!   entry that was pushed before a place was noted had drawn a CSN before S was read.
//! - A transaction never waits for a checkpoint: it takes no lock that transactions take, but for the list of tables, for a moment, once.
//! - Until it is published a checkpoint has changed nothing. A checkpoint that fails anywhere leaves the one before in force, and its
//!   chunks are looked at again.
//! - While it is under way, garbage collection keeps what it sees, like for any other old snapshot (T6).
//!
//! # Dropped tables
//!
//! [`Engine::drop_table`] is called when the drop is Precommitted, not yet durable; if it is lost in a crash the table must be there
//! again. A checkpoint at S needs a table's rows unless its drop is below S:
//! - S is read under the lock of the list of tables, together with the list. A table that is missing there was dropped from the list before S
//!   was read, hence its drop's CSN, drawn before, is below S. And the checkpoint is published only when the horizon has reached S, hence when the
//!   drop is durable: nobody needs the table's rows any more.
//! - A table that is dropped later is in the list, and its rows are kept by it until the checkpoint is through, also if that holds
//!   them a little longer than necessary. Its collector has let go of it, so nothing is unlinked in it.
//! - A table whose making was rolled back, or that nothing names at a start, never had, or has no more, rows that anybody may need.
//!
//! So the directory loses the pages of every table that is not in the list, and of no other.
//!
//! Does not: know the format of pages and records (crate `checkpoint`), what a manifest says (`wal`), or SQL.

mod base;
#[cfg(test)]
mod model;
mod older;
mod pages;
mod points;
mod report;
mod restore;
mod tail;
mod take;
mod thread;
mod tiles;
pub(crate) mod walk;

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use logstead_checkpoint::{Pace, Point, Retention};
use logstead_commit::{Awaits, LogFailed};
use logstead_types::Csn;
use parking_lot::Mutex;

use crate::engine::{Engine, EngineInner};

pub(crate) use base::{Base, Newest, Stored};
pub(crate) use pages::Pages;
pub use points::{RestorePoint, RestorePointError};
pub use report::{CheckpointError, CheckpointReport, CheckpointStats, CheckpointTook};
pub use restore::RestoredIndex;
pub use take::Checkpoint;
pub use thread::{CheckpointListener, Checkpointer};
pub(crate) use tiles::NOT_RESTORED;

/// How often lanes are flushed again while a checkpoint waits for them: what a lane holds back must not hold it back for long.
const FLUSH_AGAIN: Duration = Duration::from_millis(20);

/// What the engine keeps for checkpoints.
pub(crate) struct Checkpoints {
    /// What the next one is taken from; nothing while one is being taken.
    base: Mutex<Option<Base>>,
    /// Indexes are being taken from the loaded checkpoint: until the start is through none is taken, for it would not have those that
    /// nobody has asked for yet, and their tiles would go. Read and written under the lock of `base`.
    starting: AtomicBool,
    /// Held by who takes one from beginning to end.
    turn: Mutex<()>,
    /// The thread that takes them, if there is one.
    asked: Mutex<Option<Arc<thread::Shared>>>,
    stats: Mutex<CheckpointStats>,
    bandwidth_bytes: AtomicU64,
    retention: Retention,
    /// What can be gone back to: as it is told, and where it is, by CSN.
    points: Mutex<(Vec<RestorePoint>, Vec<Point>)>,
    /// The one under way is to be given up.
    stopping: AtomicBool,
}

impl Checkpoints {
    pub(crate) fn new(base: Base, bandwidth_bytes: u64, retention: Retention) -> Checkpoints {
        let stats = CheckpointStats {
            loaded: Some(base.csn()).filter(|csn| *csn > Csn::ZERO),
            ..CheckpointStats::default()
        };
        Checkpoints {
            points: Mutex::new(points::listed(&base)),
            base: Mutex::new(Some(base)),
            starting: AtomicBool::new(false),
            turn: Mutex::default(),
            asked: Mutex::default(),
            stats: Mutex::new(stats),
            bandwidth_bytes: AtomicU64::new(bandwidth_bytes),
            retention,
            stopping: AtomicBool::new(false),
        }
    }

    /// How fast a checkpoint may write.
    fn pace(&self, inner: &EngineInner) -> Option<Pace<'static>> {
        let bytes = self.bandwidth_bytes.load(Ordering::Relaxed);
        let clock = Arc::clone(&inner.env.clock);
        (bytes > 0).then(|| Pace::new(clock, bytes, logstead_env::sleep))
    }
}

impl Engine {
    /// Takes a checkpoint of now: every transaction that was acknowledged before the call is in it. Blocks until it is published,
    /// first until one that is under way is through: for threads of their own, never for a worker's. If nothing has changed
    /// since the one before, nothing is written.
    pub fn checkpoint(&self) -> Result<CheckpointReport, CheckpointError> {
        let checkpoints = &self.inner().checkpoints;
        let _turn = checkpoints.turn.lock();
        let room = &self.inner().room;
        room.checkpoint_begins();
        let taken = self.take_checkpoint();
        room.checkpoint_ends(taken.is_ok());
        checkpoints.stats.lock().note(&taken);
        taken
    }

    fn take_checkpoint(&self) -> Result<CheckpointReport, CheckpointError> {
        let mut checkpoint = self.begin_checkpoint()?;
        checkpoint.wait()?;
        while checkpoint.walk(usize::MAX)? {}
        checkpoint.publish()
    }

    /// Has a checkpoint taken soon by the thread that takes them, as soon as it may if `at_once`. False: there is no such thread.
    pub(crate) fn ask_for_checkpoint(&self, at_once: bool) -> bool {
        let asked = self.inner().checkpoints.asked.lock().clone();
        if let Some(thread) = &asked {
            thread.ask(at_once);
        }
        asked.is_some()
    }

    /// What checkpoints have done so far.
    pub fn checkpoint_stats(&self) -> CheckpointStats {
        self.inner().checkpoints.stats.lock().clone()
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
    let mut durable = pin!(engine.acknowledged(Awaits::floor(Csn(last))));
    loop {
        match durable.as_mut().poll(&mut context) {
            Poll::Ready(result) => return result.map_err(LogFailed::into),
            Poll::Pending => std::thread::park_timeout(FLUSH_AGAIN),
        }
        if engine.inner().checkpoints.stopping.load(Ordering::Relaxed) {
            return Err(CheckpointError::Stopped);
        }
        engine.inner().path.flush_all();
    }
}
