//! How threads wait for one another, in the machine's time or in virtual time
//! ([`simulated_threads`](crate::simulated_threads)).

use crate::simulated_threads::{Current, current};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvError, RecvTimeoutError, TryRecvError};
use std::time::Duration;

/// Between two looks at a lock, in virtual time: at first, and at most.
const LOCK_PAUSE: (Duration, Duration) = (Duration::from_micros(20), Duration::from_millis(5));

/// Tries to have a lock, again and again.
fn until_had<G>(current: &Current, attempt: impl Fn() -> Option<G>) -> G {
    let mut pause = LOCK_PAUSE.0;
    loop {
        if let Some(guard) = attempt() {
            return guard;
        }
        current.sleep(pause);
        pause = (pause * 2).min(LOCK_PAUSE.1);
    }
}

/// A condition variable of `parking_lot`'s mutexes.
#[derive(Debug, Default)]
pub struct Condvar {
    inner: parking_lot::Condvar,
}

/// Why a wait has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitTimeoutResult(bool);

impl WaitTimeoutResult {
    /// The time was over.
    pub fn timed_out(self) -> bool {
        self.0
    }
}

impl Condvar {
    /// One that nobody waits for.
    pub const fn new() -> Condvar {
        Condvar {
            inner: parking_lot::Condvar::new(),
        }
    }

    fn key(&self) -> usize {
        std::ptr::from_ref(self).addr() & !1
    }

    /// Waits until it is notified, without the lock.
    pub fn wait<T: ?Sized>(&self, guard: &mut MutexGuard<'_, T>) {
        match current() {
            None => self.inner.wait(guard),
            Some(current) => MutexGuard::unlocked(guard, || {
                current.wait(self.key(), None);
            }),
        }
    }

    /// The same, but no longer than `time`.
    pub fn wait_for<T: ?Sized>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        time: Duration,
    ) -> WaitTimeoutResult {
        WaitTimeoutResult(match current() {
            None => self.inner.wait_for(guard, time).timed_out(),
            Some(current) => {
                let until = current.threads.now() + time;
                MutexGuard::unlocked(guard, || current.wait(self.key(), Some(until)))
            }
        })
    }

    /// Wakes one who waits.
    pub fn notify_one(&self) {
        self.inner.notify_one();
        if let Some(current) = current() {
            current.threads.wake(self.key(), false);
        }
    }

    /// Wakes all who wait.
    pub fn notify_all(&self) {
        self.inner.notify_all();
        if let Some(current) = current() {
            current.threads.wake(self.key(), true);
        }
    }
}

/// A mutex that is held while something else is waited for; `parking_lot`'s.
#[derive(Debug, Default)]
pub struct LongMutex<T: ?Sized>(Mutex<T>);

impl<T> LongMutex<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> LongMutex<T> {
        LongMutex(Mutex::new(value))
    }
}

impl<T: ?Sized> LongMutex<T> {
    /// Waits until nobody else holds it.
    pub fn lock(&self) -> MutexGuard<'_, T> {
        match current() {
            None => self.0.lock(),
            Some(current) => until_had(&current, || self.0.try_lock()),
        }
    }

    /// Holds it, if nobody else does.
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        self.0.try_lock()
    }
}

/// A lock for readers and writers that is held while something else is waited for; `parking_lot`'s.
#[derive(Debug, Default)]
pub struct LongRwLock<T: ?Sized>(RwLock<T>);

impl<T> LongRwLock<T> {
    /// One that nobody holds.
    pub const fn new(value: T) -> LongRwLock<T> {
        LongRwLock(RwLock::new(value))
    }
}

impl<T: ?Sized> LongRwLock<T> {
    /// Waits until nobody writes.
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        match current() {
            None => self.0.read(),
            Some(current) => until_had(&current, || self.0.try_read()),
        }
    }

    /// Waits until nobody reads or writes.
    pub fn write(&self) -> RwLockWriteGuard<'_, T> {
        match current() {
            None => self.0.write(),
            Some(current) => until_had(&current, || self.0.try_write()),
        }
    }
}

/// A channel without a bound; what is sent comes in order.
pub fn channel<T>() -> (Sender<T>, Receiver<T>) {
    let (sender, receiver) = mpsc::channel();
    let key = Arc::new(0);
    let sender = Sender {
        inner: Some(sender),
        key: Arc::clone(&key),
    };
    let receiver = Receiver {
        inner: receiver,
        key,
    };
    (sender, receiver)
}

/// The end of a [`channel`] that sends. Clones are the same end.
#[derive(Debug)]
pub struct Sender<T> {
    /// Until it is dropped.
    inner: Option<mpsc::Sender<T>>,
    /// Its address is what the other end waits for.
    key: Arc<u64>,
}

/// The end of a [`channel`] that receives.
#[derive(Debug)]
pub struct Receiver<T> {
    inner: mpsc::Receiver<T>,
    key: Arc<u64>,
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender {
            inner: self.inner.clone(),
            key: Arc::clone(&self.key),
        }
    }
}

impl<T> Sender<T> {
    /// Sends it, or gives it back if nobody receives any more.
    pub fn send(&self, value: T) -> Result<(), mpsc::SendError<T>> {
        let sent = match &self.inner {
            Some(inner) => inner.send(value),
            None => Err(mpsc::SendError(value)),
        };
        self.wake();
        sent
    }

    fn wake(&self) {
        if let Some(current) = current() {
            current.threads.wake(Arc::as_ptr(&self.key).addr(), true);
        }
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.inner = None;
        self.wake();
    }
}

impl<T> Receiver<T> {
    /// What has come already.
    pub fn try_recv(&self) -> Result<T, TryRecvError> {
        self.inner.try_recv()
    }

    /// Waits for what comes next.
    pub fn recv(&self) -> Result<T, RecvError> {
        let Some(current) = current() else {
            return self.inner.recv();
        };
        loop {
            match self.inner.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Disconnected) => return Err(RecvError),
                Err(TryRecvError::Empty) => {
                    current.wait(Arc::as_ptr(&self.key).addr(), None);
                }
            }
        }
    }

    /// The same, but no longer than `time`.
    pub fn recv_timeout(&self, time: Duration) -> Result<T, RecvTimeoutError> {
        let Some(current) = current() else {
            return self.inner.recv_timeout(time);
        };
        let until = current.threads.now() + time;
        loop {
            match self.inner.try_recv() {
                Ok(value) => return Ok(value),
                Err(TryRecvError::Disconnected) => return Err(RecvTimeoutError::Disconnected),
                Err(TryRecvError::Empty) if current.threads.now() >= until => {
                    return Err(RecvTimeoutError::Timeout);
                }
                Err(TryRecvError::Empty) => {
                    current.wait(Arc::as_ptr(&self.key).addr(), Some(until));
                }
            }
        }
    }
}
