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
use std::task::{Poll, Waker};

use parking_lot::Mutex;

/// How many checkpoints had begun and ended at some moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CheckpointProgress {
    begun: u64,
    ended: u64,
}

#[derive(Default)]
struct State {
    now: CheckpointProgress,
    waiting: Vec<Waker>,
}

/// The checkpoint that is under way, if one is; whoever takes it has the turn.
#[derive(Default)]
pub(crate) struct CheckpointLock(Mutex<State>);

/// A checkpoint is under way until this is dropped.
pub(crate) struct RunningCheckpoint<'u>(&'u CheckpointLock);

impl Drop for RunningCheckpoint<'_> {
    fn drop(&mut self) {
        let waiting = {
            let mut state = self.0.0.lock();
            state.now.ended = state.now.begun;
            std::mem::take(&mut state.waiting)
        };
        for waker in waiting {
            waker.wake();
        }
    }
}

impl CheckpointLock {
    pub(crate) fn begin(&self) -> RunningCheckpoint<'_> {
        self.0.lock().now.begun += 1;
        RunningCheckpoint(self)
    }

    pub(crate) fn progress(&self) -> CheckpointProgress {
        self.0.lock().now
    }

    /// Does anybody wait for its end?
    pub(crate) fn is_awaited(&self) -> bool {
        !self.0.lock().waiting.is_empty()
    }

    /// Waits until the checkpoint that is under way has ended. False, at once: none is, and none has ended since
    /// `before`.
    pub(crate) async fn ended_since(&self, before: CheckpointProgress) -> bool {
        let begun = self.progress().begun;
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if state.now.ended >= begun {
                return Poll::Ready(());
            }
            state.waiting.push(cx.waker().clone());
            Poll::Pending
        })
        .await;
        begun > before.ended
    }
}
