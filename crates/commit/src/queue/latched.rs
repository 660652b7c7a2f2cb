//! The baseline: a deque under a lock.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::pending_commit::PendingCommit;

/// A deque under a lock, taken for every transaction.
#[derive(Default)]
pub struct LatchedQueue {
    queue: Mutex<VecDeque<PendingCommit>>,
}

impl LatchedQueue {
    /// Adds a transaction.
    pub fn push(&self, pending: PendingCommit) {
        self.queue.lock().push_back(pending);
    }

    /// Takes everything out, in order; the lock is held meanwhile, as it is in the baseline.
    pub fn drain(&self, take: impl FnMut(PendingCommit)) {
        self.queue.lock().drain(..).for_each(take);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pending_commit::tests::sample;

    #[test]
    fn first_in_is_first_out() {
        let queue = LatchedQueue::default();
        (1..5).for_each(|csn| queue.push(sample(csn, csn)));
        let mut out = Vec::new();
        queue.drain(|pending| out.push(pending.csn.0));
        queue.drain(|pending| out.push(pending.csn.0));
        assert_eq!(out, [1, 2, 3, 4]);
    }
}
