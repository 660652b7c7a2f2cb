//! The flag that ends a statement, from whatever thread, and its time limit.
//!
//! Does not: end anything: whoever runs the statement looks at the flag.

use logstead_sql_types::error::{
    Result, SqlError, instance_restarted, instance_restarts, replica_restarts,
};
use logstead_types::SqlState;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::Waker;

/// Why a statement is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum CancelReason {
    /// A CancelRequest.
    User = 1,
    /// statement_timeout.
    StatementTimeout = 2,
    /// Its transaction has changed what a restarted instance has.
    InstanceRestarted = 3,
    /// The server is shutting down.
    Shutdown = 4,
    /// The server is a replica that begins again.
    Restart = 5,
    /// The session was to end because of a restarted instance.
    InstanceRestarts = 6,
}

/// The flag that ends a statement; setting it also wakes the statement out of a lock wait.
#[derive(Debug)]
pub struct Cancel {
    /// 0, or a [`CancelReason`].
    reason: AtomicU8,
    /// When the statement times out, by the session's clock; `i64::MAX` is never.
    pub(crate) deadline_us: AtomicI64,
    waiter: Mutex<Option<Waker>>,
    /// It waits for something to be brought into memory.
    loading: AtomicBool,
    /// The statement has run for so long that others go first: it yields more often.
    long: AtomicBool,
    /// It has been polled for nothing but a look around, and waits on.
    looked: AtomicBool,
}

/// A wait for something to be brought into memory, while it lasts.
pub(crate) struct LoadWaitGuard<'c>(&'c AtomicBool);

impl Drop for LoadWaitGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Default for Cancel {
    fn default() -> Cancel {
        Cancel {
            reason: AtomicU8::new(0),
            deadline_us: AtomicI64::new(i64::MAX),
            waiter: Mutex::default(),
            loading: AtomicBool::new(false),
            long: AtomicBool::new(false),
            looked: AtomicBool::new(false),
        }
    }
}

impl Cancel {
    /// Asks the statement to end.
    pub fn cancel(&self, reason: CancelReason) {
        // The end of the session comes before that of the statement.
        self.reason.fetch_max(reason as u8, Ordering::AcqRel);
        let waiter = self
            .waiter
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(waiter) = waiter {
            waiter.wake();
        }
    }

    /// Forgets a request and the deadline, before the next statement.
    pub fn clear(&self) {
        self.reason.store(0, Ordering::Relaxed);
        self.long.store(false, Ordering::Relaxed);
        self.set_deadline(None);
    }

    /// The request was answered with an error that the statement itself has caught, and is no more; the end of the
    /// session is.
    pub fn answered(&self) {
        let asked = |reason: u8| (reason < CancelReason::Shutdown as u8).then_some(0);
        let taken = self
            .reason
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, asked);
        if taken == Ok(CancelReason::StatementTimeout as u8) {
            self.set_deadline(None);
        }
    }

    /// Who waits has looked around, and waits on: the time limit of its wait runs on.
    pub fn set_looked(&self) {
        self.looked.store(true, Ordering::Relaxed);
    }

    /// Was it only that? It no longer is.
    pub fn take_looked(&self) -> bool {
        self.looked.swap(false, Ordering::Relaxed)
    }

    /// From now on the statement yields more often.
    pub fn set_long(&self) {
        self.long.store(true, Ordering::Relaxed);
    }

    /// Has it run for long?
    #[inline]
    pub fn is_long(&self) -> bool {
        self.long.load(Ordering::Relaxed)
    }

    /// Sets when the statement times out, in microseconds of `Context::clock_time`. A session's own timer fires in time
    /// as long as its worker is free; the deadline ends a statement that keeps the worker busy.
    pub fn set_deadline(&self, deadline_us: Option<i64>) {
        let deadline_us = deadline_us.unwrap_or(i64::MAX);
        self.deadline_us.store(deadline_us, Ordering::Relaxed);
    }

    /// Is there a time when it times out?
    pub fn has_deadline(&self) -> bool {
        self.deadline_us.load(Ordering::Relaxed) != i64::MAX
    }

    /// How long it may still run, by the clock's time now; none if there is no limit.
    pub fn left_us(&self, now_us: i64) -> Option<i64> {
        let deadline_us = self.deadline_us.load(Ordering::Relaxed);
        (deadline_us != i64::MAX).then(|| deadline_us.saturating_sub(now_us).max(0))
    }

    /// From now on the statement waits for something to be brought into memory, not for a lock.
    pub(crate) fn begin_load(&self) -> LoadWaitGuard<'_> {
        self.loading.store(true, Ordering::Relaxed);
        LoadWaitGuard(&self.loading)
    }

    /// Does it?
    pub fn is_loading(&self) -> bool {
        self.loading.load(Ordering::Relaxed)
    }

    /// Whether the statement has been asked to end.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.reason.load(Ordering::Relaxed) != 0
    }

    /// The error of a statement that has been asked to end.
    #[inline]
    pub fn check(&self) -> Result<()> {
        if self.is_set() {
            Err(self.error())
        } else {
            Ok(())
        }
    }

    /// The same, of a statement that keeps its worker busy: nobody else looks at its deadline meanwhile.
    pub fn check_at(&self, clock_time: impl FnOnce() -> i64) -> Result<()> {
        let deadline_us = self.deadline_us.load(Ordering::Relaxed);
        if deadline_us != i64::MAX && clock_time() >= deadline_us {
            self.cancel(CancelReason::StatementTimeout);
        }
        self.check()
    }

    /// Wakes `waker` at the next request; one waiter at a time. The caller checks the flag after this call.
    pub(crate) fn register(&self, waker: &Waker) {
        let mut waiter = self.waiter.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *waiter {
            Some(old) => old.clone_from(waker),
            None => *waiter = Some(waker.clone()),
        }
    }

    #[cold]
    fn error(&self) -> SqlError {
        let reason = self.reason.load(Ordering::Acquire);
        if reason == CancelReason::StatementTimeout as u8 {
            SqlError::new(
                SqlState::QUERY_CANCELED,
                "canceling statement due to statement timeout",
            )
        } else if reason == CancelReason::Shutdown as u8 {
            SqlError::new(
                SqlState::ADMIN_SHUTDOWN,
                "terminating connection due to administrator command",
            )
            .fatal()
        } else if reason == CancelReason::Restart as u8 {
            replica_restarts()
        } else if reason == CancelReason::InstanceRestarted as u8 {
            instance_restarted()
        } else if reason == CancelReason::InstanceRestarts as u8 {
            instance_restarts()
        } else {
            SqlError::new(
                SqlState::QUERY_CANCELED,
                "canceling statement due to user request",
            )
        }
    }
}
