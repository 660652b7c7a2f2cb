//! The queue by which a worker hands its pre-committed transactions to whoever acknowledges them.
//!
//! One producer, the worker, and one consumer at a time (who holds the worker's ack queue). The lock-free one serves;
//! the latched queue exists as the baseline that benchmarks compare with (Autonomous Commit §4).

mod latched;
mod lock_free;

pub use latched::LatchedQueue;
pub use lock_free::LockFreeQueue;

use crate::pending_commit::PendingCommit;

/// Which queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// A ring buffer without a lock.
    #[default]
    LockFree,
    /// A deque under a lock: the baseline.
    Latched,
}

impl QueueKind {
    /// Its name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            QueueKind::LockFree => "lock-free",
            QueueKind::Latched => "latched",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<QueueKind> {
        [QueueKind::LockFree, QueueKind::Latched]
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// A worker's queue.
pub(crate) enum Queue {
    LockFree(Box<LockFreeQueue>),
    Latched(LatchedQueue),
}

impl Queue {
    pub(crate) fn new(kind: QueueKind) -> Queue {
        match kind {
            QueueKind::LockFree => Queue::LockFree(Box::new(LockFreeQueue::new(lock_free::LINES))),
            QueueKind::Latched => Queue::Latched(LatchedQueue::default()),
        }
    }

    /// Can one more transaction be pushed, however large? Once true for the producer, it stays so until its next push.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Queue::LockFree(queue) => queue.has_room(),
            Queue::Latched(_) => true,
        }
    }

    #[inline]
    pub(crate) fn push(&self, pending: PendingCommit) {
        match self {
            Queue::LockFree(queue) => queue.push(&pending),
            Queue::Latched(queue) => queue.push(pending),
        }
    }

    /// Takes everything out, in order.
    #[inline]
    pub(crate) fn drain(&self, take: impl FnMut(PendingCommit)) {
        match self {
            Queue::LockFree(queue) => queue.drain(take),
            Queue::Latched(queue) => queue.drain(take),
        }
    }
}
