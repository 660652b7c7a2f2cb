//! The queue by which a worker hands its pre-committed transactions to whoever acknowledges them.
//!
//! One producer, the worker, and one consumer at a time (who holds the worker's ack queue). The lock-free ring serves;
//! the latched queue exists as the baseline that benchmarks compare with (Autonomous Commit §4).

mod latched;
mod ring;

pub use latched::LatchedQueue;
pub use ring::Ring;

use crate::pending_commit::PendingCommit;

/// Which queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueKind {
    /// The lock-free ring.
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
    LockFree(Box<Ring>),
    Latched(LatchedQueue),
}

impl Queue {
    pub(crate) fn new(kind: QueueKind) -> Queue {
        match kind {
            QueueKind::LockFree => Queue::LockFree(Box::new(Ring::new(ring::LINES))),
            QueueKind::Latched => Queue::Latched(LatchedQueue::default()),
        }
    }

    /// Can one more transaction be pushed, however large? Once true for the producer, it stays so until its next push.
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        match self {
            Queue::LockFree(ring) => ring.has_room(),
            Queue::Latched(_) => true,
        }
    }

    #[inline]
    pub(crate) fn push(&self, pending: PendingCommit) {
        match self {
            Queue::LockFree(ring) => ring.push(&pending),
            Queue::Latched(queue) => queue.push(pending),
        }
    }

    /// Takes everything out, in order.
    #[inline]
    pub(crate) fn drain(&self, take: impl FnMut(PendingCommit)) {
        match self {
            Queue::LockFree(ring) => ring.drain(take),
            Queue::Latched(queue) => queue.drain(take),
        }
    }
}
