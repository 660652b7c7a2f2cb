//! How the world outside its worker reaches a session: cancel and terminate.
//!
//! Invariant: a session that registers its waker and then looks at the flags never sleeps through a signal (traps T13).

use parking_lot::Mutex;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Poll, Waker};

/// Flags of one session, set from any thread.
#[derive(Default)]
pub struct Signals {
    cancel: AtomicBool,
    terminate: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

/// Why a statement was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// The client asked for it.
    Cancel,
    /// The server is shutting down and the grace time is over.
    Terminate,
}

impl Signals {
    /// Asks the running statement, if any, to end.
    pub fn cancel(&self) {
        self.cancel.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Asks the session to end.
    pub fn terminate(&self) {
        self.terminate.store(true, Ordering::SeqCst);
        self.wake();
    }

    fn wake(&self) {
        if let Some(waker) = self.waker.lock().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Forgets a cancel request that came before the statement that now starts.
    pub fn clear_cancel(&self) {
        self.cancel.store(false, Ordering::SeqCst);
    }

    /// The cancel flag, for code that looks at it between batches.
    pub fn cancel_flag(&self) -> &AtomicBool {
        &self.cancel
    }

    /// Has `terminate` been called?
    pub fn is_terminated(&self) -> bool {
        self.terminate.load(Ordering::SeqCst)
    }

    /// From now on wakes this task. Call before looking at the flags.
    pub fn register(&self, waker: &Waker) {
        let mut kept = self.waker.lock();
        match kept.as_ref() {
            Some(old) if old.will_wake(waker) => {}
            _ => *kept = Some(waker.clone()),
        }
    }

    /// Runs `work` until it is done or interrupted; an interrupted future is dropped where it stands.
    pub async fn interruptible<T>(&self, work: impl Future<Output = T>) -> Result<T, Interrupt> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            if let Poll::Ready(value) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(value));
            }
            self.register(cx.waker());
            if self.cancel.swap(false, Ordering::SeqCst) {
                return Poll::Ready(Err(Interrupt::Cancel));
            }
            if self.terminate.load(Ordering::SeqCst) {
                return Poll::Ready(Err(Interrupt::Terminate));
            }
            Poll::Pending
        })
        .await
    }
}
