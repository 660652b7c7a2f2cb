//! "Wait until n is reached": the one primitive behind acknowledgment, replica reads and shutdown.
//!
//! Invariants: the value only grows; a waiter registers and then checks again, whoever moves the value wakes everyone
//! it passed (T13); dropping a future takes its waiter out; after [`Watermark::fail`] every wait that is not yet
//! satisfied ends with the failure.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;

/// The log cannot be written any more: what was not yet acknowledged has an unknown outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFailed {
    reason: Arc<str>,
}

impl LogFailed {
    /// With the reason to tell the operator.
    pub fn new(reason: impl Into<Arc<str>>) -> LogFailed {
        LogFailed {
            reason: reason.into(),
        }
    }

    /// Why.
    pub fn reason(&self) -> &str {
        &self.reason
    }
}

impl fmt::Display for LogFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the log cannot be written: {}", self.reason)
    }
}

impl std::error::Error for LogFailed {}

#[derive(Default)]
struct Waiters {
    /// By target, then registration number.
    parked: BTreeMap<(u64, u64), Waker>,
    registered: u64,
    failure: Option<LogFailed>,
}

/// A value that only grows, and those who wait for it.
#[derive(Default)]
pub struct Watermark {
    value: AtomicU64,
    failed: AtomicBool,
    /// How many are parked: lets the mover skip the mutex when nobody waits.
    parked: AtomicUsize,
    waiters: Mutex<Waiters>,
}

impl Watermark {
    /// Starts at `value`.
    pub fn new(value: u64) -> Watermark {
        Watermark {
            value: AtomicU64::new(value),
            ..Watermark::default()
        }
    }

    /// What has been reached.
    #[inline]
    pub fn get(&self) -> u64 {
        self.value.load(Ordering::SeqCst)
    }

    /// Raises the value to at least `to` and wakes everyone who waited for a value now reached. Wakers are called
    /// without the mutex held.
    pub fn advance(&self, to: u64) {
        if self.value.fetch_max(to, Ordering::SeqCst) >= to
            || self.parked.load(Ordering::SeqCst) == 0
        {
            return;
        }
        let woken = {
            let mut waiters = self.waiters.lock();
            let later = waiters.parked.split_off(&(to.saturating_add(1), 0));
            let woken = std::mem::replace(&mut waiters.parked, later);
            self.parked.store(waiters.parked.len(), Ordering::SeqCst);
            woken
        };
        for waker in woken.into_values() {
            waker.wake();
        }
    }

    /// Ends every wait, now and later, that is not satisfied. The first failure stays.
    pub fn fail(&self, failure: LogFailed) {
        let woken = {
            let mut waiters = self.waiters.lock();
            waiters.failure.get_or_insert(failure);
            self.failed.store(true, Ordering::SeqCst);
            self.parked.store(0, Ordering::SeqCst);
            std::mem::take(&mut waiters.parked)
        };
        for waker in woken.into_values() {
            waker.wake();
        }
    }

    /// The failure, if there was one.
    pub fn failure(&self) -> Option<LogFailed> {
        if !self.failed.load(Ordering::SeqCst) {
            return None;
        }
        self.waiters.lock().failure.clone()
    }

    /// Ready once the value is at least `target`. `M` is whatever handle keeps the watermark alive.
    pub fn wait<M: AsRef<Watermark> + Unpin>(mark: M, target: u64) -> WatermarkWait<M> {
        WatermarkWait {
            mark,
            target,
            key: None,
        }
    }

    /// Has `waker` woken once, the next time the value moves.
    pub fn notify(&self, waker: &Waker) {
        let target = self.get() + 1;
        let mut waiters = self.waiters.lock();
        waiters.registered += 1;
        let key = (target, waiters.registered);
        waiters.parked.insert(key, waker.clone());
        self.parked.store(waiters.parked.len(), Ordering::SeqCst);
    }

    /// How many are parked now.
    pub fn waiting(&self) -> usize {
        self.parked.load(Ordering::SeqCst)
    }
}

impl AsRef<Watermark> for Watermark {
    fn as_ref(&self) -> &Watermark {
        self
    }
}

/// Future of [`Watermark::wait`].
#[must_use = "a wait does nothing unless polled"]
pub struct WatermarkWait<M: AsRef<Watermark>> {
    mark: M,
    target: u64,
    key: Option<(u64, u64)>,
}

impl<M: AsRef<Watermark> + Unpin> Future for WatermarkWait<M> {
    type Output = Result<(), LogFailed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let mark = this.mark.as_ref();
        if mark.get() >= this.target {
            return Poll::Ready(Ok(()));
        }
        let mut waiters = mark.waiters.lock();
        if let Some(failure) = &waiters.failure {
            return Poll::Ready(Err(failure.clone()));
        }
        let key = match this.key.filter(|key| waiters.parked.contains_key(key)) {
            Some(key) => key,
            None => {
                waiters.registered += 1;
                (this.target, waiters.registered)
            }
        };
        waiters.parked.insert(key, cx.waker().clone());
        mark.parked.store(waiters.parked.len(), Ordering::SeqCst);
        this.key = Some(key);
        // The value may have moved between the first look and the registration; its mover saw nobody to wake.
        if mark.get() >= this.target {
            waiters.parked.remove(&key);
            mark.parked.store(waiters.parked.len(), Ordering::SeqCst);
            this.key = None;
            return Poll::Ready(Ok(()));
        }
        Poll::Pending
    }
}

impl<M: AsRef<Watermark>> Drop for WatermarkWait<M> {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let mark = self.mark.as_ref();
            let mut waiters = mark.waiters.lock();
            if waiters.parked.remove(&key).is_some() {
                mark.parked.store(waiters.parked.len(), Ordering::SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests;
