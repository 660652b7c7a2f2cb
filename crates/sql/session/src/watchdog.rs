//! The watch over the workers: what has held one of them for long without coming back, and what they undo behind
//! sessions.
//!
//! Owns: a mark for each worker of whether a session's task is being polled, and what was found by whoever looks at the
//! marks (`worker_stalls`). A worker writes its mark and reads no clock; the look is another thread's, so
//! what never comes back is seen as well.

use logstead_env::Instant;
use logstead_sql_types::RoleId;
use logstead_types::WorkerId;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// What holds its worker for longer than this is counted.
pub(crate) const HELD_MAX: Duration = Duration::from_millis(100);

/// A worker's mark.
#[derive(Debug)]
pub(crate) struct WorkerWatchdog {
    pub(crate) worker: WorkerId,
    /// Beginnings and ends of polls: odd while there is one.
    pub(crate) polls: AtomicU64,
    /// Whose session is polled; 0 if it is nobody's.
    pub(crate) pid: AtomicI32,
    pub(crate) found: Mutex<StallCounts>,
    /// Transactions that are undone behind their sessions, and the writes of theirs that are left.
    pub(crate) undone: AtomicU64,
    pub(crate) undone_writes: AtomicU64,
}

/// What was found of a worker.
#[derive(Clone, Debug, Default)]
pub(crate) struct StallCounts {
    /// How often it was held.
    pub(crate) held: u64,
    pub(crate) longest: Duration,
    pub(crate) last: Option<StallRecord>,
}

/// One time that a worker was held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StallRecord {
    /// By the session of this number; 0 if it was nobody's.
    pub(crate) pid: i32,
    /// When that was found, in microseconds since 2000-01-01 UTC.
    pub(crate) at: i64,
    /// How long it has gone on.
    pub(crate) took: Duration,
    /// Whose session it was, if that was known.
    pub(crate) role: Option<RoleId>,
    pub(crate) query: String,
}

impl WorkerWatchdog {
    pub(super) fn new(worker: WorkerId) -> WorkerWatchdog {
        WorkerWatchdog {
            worker,
            polls: AtomicU64::new(0),
            pid: AtomicI32::new(0),
            found: Mutex::default(),
            undone: AtomicU64::new(0),
            undone_writes: AtomicU64::new(0),
        }
    }

    /// So many transactions are undone behind their sessions, with so many writes left.
    pub(super) fn undoes(&self, transactions: usize, writes: usize) {
        self.undone.store(transactions as u64, Ordering::Relaxed);
        self.undone_writes.store(writes as u64, Ordering::Relaxed);
    }

    /// A poll begins for this session, or for nobody's.
    #[inline]
    pub(crate) fn begins(&self, pid: i32) {
        self.pid.store(pid, Ordering::Relaxed);
        // One thread writes it.
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }

    /// It is over.
    #[inline]
    pub(crate) fn ends(&self) {
        let polls = self.polls.load(Ordering::Relaxed);
        self.polls.store(polls.wrapping_add(1), Ordering::Relaxed);
    }

    /// The poll is this session's.
    pub(crate) fn is_of(&self, pid: i32) {
        self.pid.store(pid, Ordering::Relaxed);
    }
}

/// What whoever looks at the marks remembers from one look to the next.
#[derive(Debug, Default)]
pub struct WatchdogState {
    /// Of each worker, its polls when they were last new, and when that was; whether the present one is counted.
    pub(crate) seen: Vec<(u64, Instant, bool)>,
    /// When the last line was written.
    pub(crate) told: Option<Instant>,
}
