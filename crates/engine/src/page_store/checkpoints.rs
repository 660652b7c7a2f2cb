//! What the engine keeps for checkpoints: what the next is taken from, who takes it, and what can be gone back to.
//!
//! Does not: take checkpoints (`crate::checkpoint`).

use super::base::CheckpointBase;
use super::compaction::CompactionPause;
use super::in_progress::CheckpointLock;
use super::page_service::PageServices;
use super::replica_holds::ReplicaHolds;
use super::report::{CheckpointError, CheckpointStats};
use logstead_checkpoint::RecoveryTarget;
use logstead_checkpoint::{PageReader, RateLimiter, ReadStats, RecoveryPoint, Retention};
use logstead_env::Clock;
use logstead_types::Csn;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// What the engine keeps for checkpoints.
pub(crate) struct Checkpoints {
    /// What the next one is taken from; nothing while one is being taken.
    pub(crate) base: Mutex<Option<CheckpointBase>>,
    /// Indexes are being taken from the loaded checkpoint: until the start is through none is taken, for it would not
    /// have those that nobody has asked for yet, and their tiles would go. Read and written under the lock of `base`.
    pub(crate) starting: AtomicBool,
    /// Held by who takes one from beginning to end.
    turn: Mutex<()>,
    /// How many wait for it.
    pub(crate) waiting: AtomicUsize,
    pub(crate) under_way: CheckpointLock,
    /// The thread that takes them, if there is one.
    pub(crate) asked: Mutex<Option<Arc<super::requests::CheckpointerShared>>>,
    pub(crate) stats: Mutex<CheckpointStats>,
    pub(crate) compaction_pause: Mutex<CompactionPause>,
    pub(crate) bandwidth_bytes: AtomicU64,
    pub(crate) retention: Retention,
    /// What is kept for replicas.
    pub(crate) replica_holds: Arc<ReplicaHolds>,
    /// Replicas that write pages.
    pub(crate) page_services: Arc<PageServices>,
    /// Chunks may leave memory with changes that only the log has.
    pub(crate) evicts_to_log: AtomicBool,
    /// The evictor wants one; and how many in a row it has got.
    pub(crate) for_memory: AtomicBool,
    pub(crate) for_memory_in_a_row: AtomicU32,
    /// What can be gone back to: as it is told, and where it is, by CSN.
    pub(crate) points: Mutex<(Vec<RestorePoint>, Vec<RecoveryPoint>)>,
    /// The one under way, and all later ones, are to be given up.
    pub(crate) stopping: AtomicBool,
    /// So many want the turn so badly that the one under way is to be given up.
    interrupting: AtomicUsize,
    /// What the start has read of pages, to restore indexes.
    pub(crate) start_reads: Mutex<ReadStats>,
}

impl Checkpoints {
    pub(crate) fn new(
        base: CheckpointBase,
        bandwidth_bytes: u64,
        retention: Retention,
        replica_keep_time: Duration,
        clock: &Arc<dyn Clock>,
    ) -> Checkpoints {
        let replica_holds = Arc::clone(base.replica_holds());
        replica_holds.set_limit(replica_keep_time);
        let stats = CheckpointStats {
            loaded: Some(base.pages.csn()).filter(|csn| *csn > Csn::ZERO),
            ..CheckpointStats::default()
        };
        Checkpoints {
            points: Mutex::new(listed(&base)),
            base: Mutex::new(Some(base)),
            starting: AtomicBool::new(false),
            turn: Mutex::default(),
            waiting: AtomicUsize::new(0),
            under_way: CheckpointLock::default(),
            asked: Mutex::default(),
            stats: Mutex::new(stats),
            compaction_pause: Mutex::default(),
            bandwidth_bytes: AtomicU64::new(bandwidth_bytes),
            retention,
            replica_holds,
            page_services: Arc::new(PageServices::new(Arc::clone(clock))),
            evicts_to_log: AtomicBool::new(true),
            for_memory: AtomicBool::new(false),
            for_memory_in_a_row: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            interrupting: AtomicUsize::new(0),
            start_reads: Mutex::default(),
        }
    }

    /// The start has read this.
    pub(crate) fn count_start_reads(&self, reader: &PageReader) {
        let read = reader.reads();
        let mut reads = self.start_reads.lock();
        reads.requests += read.requests;
        reads.bytes += read.bytes;
        reads.pages += read.pages;
    }

    /// Waits for the turn: who has it does not rest meanwhile.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let turn = self.turn.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        turn
    }

    /// Takes the turn for who cannot wait for a checkpoint: the one under way is given up. `None`: it has not ended for
    /// so long.
    pub(crate) fn interrupt(&self, most: Duration) -> Option<MutexGuard<'_, ()>> {
        self.interrupting.fetch_add(1, Ordering::SeqCst);
        let turn = self.turn.try_lock_for(most);
        self.interrupting.fetch_sub(1, Ordering::SeqCst);
        turn
    }

    /// Why the one under way is to be given up, if it is.
    pub(crate) fn given_up(&self) -> Option<CheckpointError> {
        if self.stopping.load(Ordering::Relaxed) {
            return Some(CheckpointError::Stopped);
        }
        let interrupted = self.interrupting.load(Ordering::Relaxed) > 0;
        interrupted.then_some(CheckpointError::Interrupted)
    }

    /// How fast a checkpoint may write.
    pub(crate) fn rate_limiter(&self, clock: &Arc<dyn Clock>) -> Option<RateLimiter<'static>> {
        let bytes = self.bandwidth_bytes.load(Ordering::Relaxed);
        (bytes > 0).then(|| RateLimiter::new(Arc::clone(clock), bytes, logstead_env::sleep))
    }
}

/// A checkpoint that can be gone back to, as people are told of it. What one is opened by is a [`RecoveryPoint`], which
/// knows its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestorePoint {
    /// Its name, if it was made by hand.
    pub name: Option<String>,
    /// When it was taken, in microseconds since 2000-01-01 00:00 UTC.
    pub taken_at_micros: i64,
    /// It holds what was committed below this CSN.
    pub csn: Csn,
    /// Objects that it consists of, and the bytes of them that it needs; unknown until its record was read.
    pub size: Option<(u64, u64)>,
}

impl Checkpoints {
    /// Tells from now on what there is.
    pub(crate) fn note_points(&self, base: &CheckpointBase) {
        *self.points.lock() = listed(base);
    }
}

impl Checkpoints {
    /// The points that somebody may mean, by CSN: of those taken by a certain time the last one.
    pub(crate) fn fitting(&self, which: &RecoveryTarget) -> Vec<RecoveryPoint> {
        let mut points = self.points.lock().1.clone();
        points.retain(|point| match which {
            RecoveryTarget::Newest => point.is_newest,
            RecoveryTarget::At(time) => point.record.taken_at_micros <= *time,
            RecoveryTarget::Named(name) => point.names.contains(name),
        });
        points
    }
}

/// One line for each name of a point, and the points.
pub(crate) fn listed(base: &CheckpointBase) -> (Vec<RestorePoint>, Vec<RecoveryPoint>) {
    let (mut lines, mut points) = (Vec::new(), Vec::new());
    for (point, size) in base.points() {
        let line = |name| RestorePoint {
            name,
            taken_at_micros: point.record.taken_at_micros,
            csn: point.record.csn,
            size,
        };
        if point.names.is_empty() {
            lines.push(line(None));
        }
        lines.extend(point.names.iter().cloned().map(Some).map(line));
        points.push(point);
    }
    (lines, points)
}
