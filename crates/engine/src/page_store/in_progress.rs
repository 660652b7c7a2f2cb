//! Waiting for the end of the checkpoint that is under way.
//!
//! On a full disk a checkpoint takes the room that is kept for it, until what it covers is removed. Who removes rows
//! meanwhile is refused room that is there a moment later, so such a transaction waits for the end of the checkpoint
//! instead. It waits only for one that has begun, which ends whatever comes of it: nothing here waits for a checkpoint
//! that somebody else must begin.
//!
//! Invariant: `ended` follows `begun` whether a checkpoint is published, fails or panics, and everybody who waited for
//! it is woken.

use std::future::poll_fn;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// How many checkpoints had ended at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndedCheckpoints(u64);

/// The checkpoint that is under way, if one is; whoever takes it has the turn. Every commit looks at the counts, so
/// that is no more than a load; they are written under the lock.
#[derive(Default)]
pub(crate) struct CheckpointLock {
    begun: AtomicU64,
    ended: AtomicU64,
    waiting: Mutex<Vec<Waker>>,
}

/// A checkpoint is under way until this is dropped.
pub(crate) struct RunningCheckpoint<'u>(&'u CheckpointLock);

impl Drop for RunningCheckpoint<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut waiting = self.0.waiting.lock();
            let begun = self.0.begun.load(Ordering::Relaxed);
            self.0.ended.store(begun, Ordering::Release);
            std::mem::take(&mut *waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}

impl CheckpointLock {
    pub(crate) fn begin(&self) -> RunningCheckpoint<'_> {
        let _waiting = self.waiting.lock();
        self.begun.fetch_add(1, Ordering::Release);
        RunningCheckpoint(self)
    }

    #[inline]
    pub(crate) fn ended(&self) -> EndedCheckpoints {
        EndedCheckpoints(self.ended.load(Ordering::Acquire))
    }

    /// Does anybody wait for its end?
    pub(crate) fn is_awaited(&self) -> bool {
        !self.waiting.lock().is_empty()
    }

    /// Waits until the checkpoint that is under way has ended. False, at once: none is, and none has ended since
    /// `before`.
    pub(crate) async fn ended_since(&self, before: EndedCheckpoints) -> bool {
        let begun = self.begun.load(Ordering::Acquire);
        poll_fn(|cx| {
            let mut waiting = self.waiting.lock();
            if self.ended.load(Ordering::Relaxed) >= begun {
                return Poll::Ready(());
            }
            waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
        begun > before.0
    }
}
