//! What a server with several instances knows of them: their sessions, who moved in and out, and the cores of workers.
//!
//! Invariants: a session is counted at one worker at a time, on its way at the one that it goes to, and until it leaves
//! at both, which the share of an instance does not count; an instance is given no session that would make it hold much
//! more than its share ([`InstanceStatus::place_at`]); a partition that was moved by hand moves for balance only after
//! it was released.
//!
//! Does not: exist where there is one instance; decide when a session moves (`placement`) or which partition does.

use logstead_engine::{Engine, InstanceId, Instances, PartitionId, VIRTUAL_PARTITIONS, WorkerId};
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// An instance holds sessions up to its share, half as much again, and one.
const SHARE_PERCENT_MAX: usize = 150;

/// What moved in or out of an instance.
#[derive(Default)]
pub(crate) struct InstanceMoves {
    pub(crate) sessions_in: AtomicU64,
    pub(crate) sessions_out: AtomicU64,
    pub(crate) partitions_in: AtomicU64,
    pub(crate) partitions_out: AtomicU64,
}

/// How often an instance was restarted, and how the last time went.
#[derive(Default)]
pub(crate) struct InstanceRestarts {
    /// So many threads are at it, of which all but one are about to be refused.
    pub(crate) under_way: AtomicUsize,
    pub(crate) count: AtomicU64,
    /// Until all of it was served again, in microseconds.
    pub(crate) takeover_us: AtomicU64,
    /// Until all of it that there was room for was in memory again; 0: not yet.
    pub(crate) loaded_us: AtomicU64,
}

/// See the module's documentation.
pub(crate) struct InstanceStatus {
    /// `session_move_threshold`; 0: sessions stay.
    threshold: u32,
    /// Sessions, by worker.
    sessions: Box<[AtomicUsize]>,
    /// One session takes a place elsewhere at a time. What it guards is how many have one and are still counted where
    /// they come from, too.
    leaving: Mutex<usize>,
    moves: Box<[InstanceMoves]>,
    restarts: Box<[InstanceRestarts]>,
    /// One partition moves at a time. What it guards are the partitions that were moved by hand, by a bit each: they
    /// stay where they are until they are released.
    pinned: Mutex<u64>,
    /// The cores of the workers, once they are known.
    pub(crate) cores: OnceLock<Vec<usize>>,
}

impl InstanceStatus {
    /// Nothing where there is one instance.
    pub(crate) fn of(engine: &Engine, threshold: u32) -> Option<Arc<InstanceStatus>> {
        let (count, workers) = (engine.instances().count(), engine.worker_count());
        (count > 1).then(|| {
            Arc::new(InstanceStatus {
                threshold,
                sessions: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
                leaving: Mutex::default(),
                moves: (0..count).map(|_| InstanceMoves::default()).collect(),
                restarts: (0..count).map(|_| InstanceRestarts::default()).collect(),
                pinned: Mutex::default(),
                cores: OnceLock::new(),
            })
        })
    }

    /// Transactions in a row after which a session moves; none if no session does.
    pub(crate) fn threshold(&self) -> Option<u32> {
        (self.threshold > 0).then_some(self.threshold)
    }

    /// How many sessions a worker has.
    pub(crate) fn sessions_at(&self, worker: WorkerId) -> usize {
        self.sessions[usize::from(worker.0)].load(Ordering::Relaxed)
    }

    pub(crate) fn moves_of(&self, instance: InstanceId) -> &InstanceMoves {
        &self.moves[usize::from(instance.0)]
    }

    pub(crate) fn restarts_of(&self, instance: InstanceId) -> &InstanceRestarts {
        &self.restarts[usize::from(instance.0)]
    }

    /// Takes a place for a session that moves to an instance, at that one's worker with the fewest; none if it has too
    /// many. What they have to do is not known: sessions that rest count, too.
    pub(crate) fn place_at(
        self: &Arc<Self>,
        instances: &Instances,
        from: WorkerId,
        to: InstanceId,
    ) -> Option<MovingPlace> {
        let mut leaving = self.leaving.lock();
        let all = self.sessions.iter();
        let all: usize = all.map(|sessions| sessions.load(Ordering::Relaxed)).sum();
        // Who leaves is one session. A place may have been given back a moment ago.
        let all = all.saturating_sub(*leaving);
        let workers = || instances.workers_of(to);
        let there: usize = workers().map(|worker| self.sessions_at(worker)).sum();
        let most = (all * SHARE_PERCENT_MAX).div_ceil(100 * instances.count()) + 1;
        if there >= most {
            return None;
        }
        let worker = workers().min_by_key(|worker| self.sessions_at(*worker))?;
        let out = &self.moves_of(instances.of_worker(from)).sessions_out;
        out.fetch_add(1, Ordering::Relaxed);
        let into = &self.moves_of(to).sessions_in;
        into.fetch_add(1, Ordering::Relaxed);
        *leaving += 1;
        Some(MovingPlace {
            place: SessionAtWorker::new(self, worker),
            leaving: SessionLeaving(Arc::clone(self)),
        })
    }

    /// Gives a partition to an instance, both of which there are, and pins it there if that is by hand. False if it is
    /// that one's already, or pinned and to be moved for balance.
    pub(crate) fn move_partition(
        &self,
        instances: &Instances,
        partition: PartitionId,
        to: InstanceId,
        reason: PartitionMoveReason,
    ) -> bool {
        let mut pinned = self.pinned.lock();
        match reason {
            PartitionMoveReason::ByHand => *pinned |= pin_of(partition),
            PartitionMoveReason::Balance if *pinned & pin_of(partition) != 0 => return false,
            PartitionMoveReason::Balance => {}
        }
        let from = instances.of_partition(partition);
        if from == to {
            return false;
        }
        instances.assign(partition, to);
        let out = &self.moves_of(from).partitions_out;
        out.fetch_add(1, Ordering::Relaxed);
        let into = &self.moves_of(to).partitions_in;
        into.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Lets a partition that was moved by hand move for balance again. False if it was not pinned.
    pub(crate) fn release_partition(&self, partition: PartitionId) -> bool {
        let mut pinned = self.pinned.lock();
        let was_pinned = *pinned & pin_of(partition) != 0;
        *pinned &= !pin_of(partition);
        was_pinned
    }

    pub(crate) fn is_pinned(&self, partition: PartitionId) -> bool {
        *self.pinned.lock() & pin_of(partition) != 0
    }
}

/// Why a partition moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartitionMoveReason {
    /// Somebody said so.
    ByHand,
    /// Its instance has more to do than others.
    Balance,
}

/// The bit of a partition that there is.
fn pin_of(partition: PartitionId) -> u64 {
    1 << partition.0
}

const _: () = assert!(VIRTUAL_PARTITIONS as u32 <= u64::BITS, "a bit each");

/// A place for a session at another worker, which it takes.
pub struct MovingPlace {
    pub(crate) place: SessionAtWorker,
    pub(crate) leaving: SessionLeaving,
}

/// Says that a session is counted at two workers while it lives: dropped behind its old place, or its new one.
pub(crate) struct SessionLeaving(Arc<InstanceStatus>);

impl Drop for SessionLeaving {
    fn drop(&mut self) {
        *self.0.leaving.lock() -= 1;
    }
}

/// Counts a session at a worker while it lives.
pub(crate) struct SessionAtWorker {
    status: Arc<InstanceStatus>,
    pub(crate) worker: WorkerId,
}

impl SessionAtWorker {
    pub(crate) fn new(status: &Arc<InstanceStatus>, worker: WorkerId) -> SessionAtWorker {
        status.sessions[usize::from(worker.0)].fetch_add(1, Ordering::Relaxed);
        SessionAtWorker {
            status: Arc::clone(status),
            worker,
        }
    }
}

impl Drop for SessionAtWorker {
    fn drop(&mut self) {
        self.status.sessions[usize::from(self.worker.0)].fetch_sub(1, Ordering::Relaxed);
    }
}
