//! How the world outside its worker reaches a session: cancel, stop, terminate.
//!
//! Invariant: a session that registers its waker and then looks at the flags never sleeps through a signal (T13).

use super::scheduler::{WorkerScheduler, WorkerTime};
use crate::mailbox::Mailbox;
use logstead_sql_exec::{Cancel, CancelReason};
use logstead_sql_types::error::{SqlError, replica_restarts, shutting_down};
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::Waker;

const STOP: u8 = 1;
const TERMINATE: u8 = 2;
/// The same, because what the session reads is not there any more.
const RESTART: u8 = 3;

/// Flags of one session, set from any thread.
pub struct Signals {
    cancel: Cancel,
    scheduler: Arc<WorkerScheduler>,
    used: WorkerTime,
    /// A statement runs.
    running: AtomicBool,
    /// The session pauses, for another process to take it over.
    paused: AtomicBool,
    /// It waits for its client where it may pause.
    resting: AtomicBool,
    state: AtomicU8,
    waker: Mutex<Option<Waker>>,
    mailbox: Mutex<Mailbox>,
}

impl Signals {
    /// Those of a session on the worker that these turns are of.
    pub(super) fn new(scheduler: Arc<WorkerScheduler>) -> Signals {
        Signals {
            cancel: Cancel::default(),
            scheduler,
            used: WorkerTime::default(),
            running: AtomicBool::new(false),
            paused: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            state: AtomicU8::default(),
            waker: Mutex::default(),
            mailbox: Mutex::default(),
        }
    }

    /// Those of a session that is on no worker.
    #[cfg(test)]
    pub(super) fn of_nobody() -> Signals {
        let clock = Arc::new(logstead_env::SimClock::new());
        Signals::new(Arc::new(WorkerScheduler::new(clock)))
    }

    /// Asks the running statement, if any, to end.
    pub fn cancel(&self) {
        self.cancel.cancel(CancelReason::User);
        self.wake();
    }

    /// Asks the session to end when it is next idle outside a transaction.
    pub fn stop(&self) {
        self.state.fetch_max(STOP, Ordering::SeqCst);
        self.wake();
    }

    /// Asks the session to end now.
    pub fn terminate(&self) {
        self.state.fetch_max(TERMINATE, Ordering::SeqCst);
        self.cancel.cancel(CancelReason::Shutdown);
        self.wake();
    }

    /// Asks the session to end now, because the replica begins again.
    pub(super) fn restart(&self) {
        self.state.fetch_max(RESTART, Ordering::SeqCst);
        self.cancel.cancel(CancelReason::Restart);
        self.wake();
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::SeqCst);
    }

    /// The session begins or ends to wait for its client where it may pause.
    pub fn set_resting(&self, resting: bool) {
        self.resting.store(resting, Ordering::Relaxed);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.resting.load(Ordering::Relaxed)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.paused.load(Ordering::SeqCst)
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.waker.lock().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Notifications that wait for the client.
    pub(super) fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.mailbox.lock()
    }

    /// Does a notification wait for the client?
    pub fn has_notifications(&self) -> bool {
        !self.mailbox.lock().is_empty()
    }

    /// Something was put into the mailbox.
    pub(super) fn notified(&self) {
        self.wake();
    }

    /// What statements look at.
    pub fn statement(&self) -> &Cancel {
        &self.cancel
    }

    /// Whose turn it is on the session's worker.
    pub(super) fn scheduler(&self) -> &WorkerScheduler {
        &self.scheduler
    }

    /// What the running statement has used of the worker's time.
    pub(super) fn used(&self) -> &WorkerTime {
        &self.used
    }

    /// A statement begins: a cancel request that came before it is forgotten.
    pub fn begin_statement(&self) {
        self.cancel.clear();
        self.used.clear();
        self.running.store(true, Ordering::Relaxed);
        match self.state.load(Ordering::SeqCst) {
            TERMINATE => self.cancel.cancel(CancelReason::Shutdown),
            RESTART => self.cancel.cancel(CancelReason::Restart),
            _ => {}
        }
    }

    /// The statement is over: the session waits for its client, and a request that comes now has nothing to end.
    pub(super) fn end_statement(&self) {
        self.running.store(false, Ordering::Relaxed);
        // The time of this statement is not the next one's.
        self.cancel.set_deadline(None);
    }

    /// Does a statement run that can be asked to end?
    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::Relaxed)
    }

    /// Must a session end that waits for its client, in a transaction or not?
    pub fn must_end(&self, in_transaction: bool) -> bool {
        let least = if in_transaction { TERMINATE } else { STOP };
        self.state.load(Ordering::SeqCst) >= least
    }

    /// What the client is told when it must.
    pub fn ending(&self) -> SqlError {
        match self.state.load(Ordering::SeqCst) {
            RESTART => replica_restarts(),
            _ => shutting_down(),
        }
    }

    /// From now on wakes this task. Call before looking at the flags.
    pub fn register(&self, waker: &Waker) {
        let mut kept = self.waker.lock();
        match kept.as_ref() {
            Some(old) if old.will_wake(waker) => {}
            _ => *kept = Some(waker.clone()),
        }
    }
}
