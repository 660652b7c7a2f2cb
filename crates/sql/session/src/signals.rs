//! How the world outside its worker reaches a session: cancel, stop, terminate.
//!
//! Invariants:
//! - A session that registers its waker and then looks at the flags never sleeps through a signal (T13).
//! - A session that goes on at another worker has other [`Signals`] there over the same [`SignalState`]: whoever still
//!   has the former ones reaches it all the same, also while it is on its way.

use super::scheduler::{WorkerScheduler, WorkerTime};
use crate::mailbox::Mailbox;
use logstead_sql_exec::{Cancel, CancelReason};
use logstead_sql_types::error::{SqlError, instance_restarts, replica_restarts, shutting_down};
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
    scheduler: Arc<WorkerScheduler>,
    used: WorkerTime,
    state: Arc<SignalState>,
}

/// What is the session's own, on whatever worker it is.
#[derive(Default)]
struct SignalState {
    cancel: Cancel,
    /// A statement runs.
    running: AtomicBool,
    /// The session pauses, for another process to take it over.
    paused: AtomicBool,
    /// It waits for its client where it may pause.
    resting: AtomicBool,
    ending: AtomicU8,
    /// It ends if its transaction is still open: that cannot commit any more, as an instance is restarted.
    ends_in_transaction: AtomicBool,
    waker: Mutex<Option<Waker>>,
    mailbox: Mutex<Mailbox>,
}

impl Signals {
    /// Those of a session on the worker that these turns are of.
    pub(super) fn new(scheduler: Arc<WorkerScheduler>) -> Signals {
        Signals {
            scheduler,
            used: WorkerTime::default(),
            state: Arc::default(),
        }
    }

    /// Those of the same session on another worker.
    pub(super) fn at(&self, scheduler: Arc<WorkerScheduler>) -> Signals {
        Signals {
            scheduler,
            used: WorkerTime::default(),
            state: Arc::clone(&self.state),
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
        self.state.cancel.cancel(CancelReason::User);
        self.wake();
    }

    /// Asks the session to end when it is next idle outside a transaction.
    pub fn stop(&self) {
        self.state.ending.fetch_max(STOP, Ordering::SeqCst);
        self.wake();
    }

    /// Asks the session to end now.
    pub fn terminate(&self) {
        self.state.ending.fetch_max(TERMINATE, Ordering::SeqCst);
        self.state.cancel.cancel(CancelReason::Shutdown);
        self.wake();
    }

    /// Asks the session to end now, because the replica begins again.
    pub(super) fn restart(&self) {
        self.state.ending.fetch_max(RESTART, Ordering::SeqCst);
        self.state.cancel.cancel(CancelReason::Restart);
        self.wake();
    }

    /// The session's transaction cannot commit any more, as an instance is restarted: a running statement ends.
    pub(super) fn fail_transaction(&self) {
        self.state.cancel.cancel(CancelReason::InstanceRestarted);
        self.wake();
    }

    /// Asks the session to end now, for the same reason, unless the transaction has ended.
    pub(super) fn end_with_transaction(&self) {
        self.state.ends_in_transaction.store(true, Ordering::SeqCst);
        self.state.cancel.cancel(CancelReason::InstanceRestarts);
        self.wake();
    }

    /// The transaction has ended: what was asked because of it is of no importance to the next one.
    pub(super) fn forget_transaction(&self) {
        self.state
            .ends_in_transaction
            .store(false, Ordering::SeqCst);
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.state.paused.store(paused, Ordering::SeqCst);
    }

    /// The session begins or ends to wait for its client where it may pause.
    pub fn set_resting(&self, resting: bool) {
        self.state.resting.store(resting, Ordering::Relaxed);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.state.resting.load(Ordering::Relaxed)
    }

    pub(super) fn is_paused(&self) -> bool {
        self.state.paused.load(Ordering::SeqCst)
    }

    pub(super) fn wake(&self) {
        if let Some(waker) = self.state.waker.lock().as_ref() {
            waker.wake_by_ref();
        }
    }

    /// Notifications that wait for the client.
    pub(super) fn mailbox(&self) -> MutexGuard<'_, Mailbox> {
        self.state.mailbox.lock()
    }

    /// Does a notification wait for the client?
    pub fn has_notifications(&self) -> bool {
        !self.state.mailbox.lock().is_empty()
    }

    /// Something was put into the mailbox.
    pub(super) fn notified(&self) {
        self.wake();
    }

    /// What statements look at.
    pub fn statement(&self) -> &Cancel {
        &self.state.cancel
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
        self.state.cancel.clear();
        self.used.clear();
        self.state.running.store(true, Ordering::Relaxed);
        match self.state.ending.load(Ordering::SeqCst) {
            TERMINATE => self.state.cancel.cancel(CancelReason::Shutdown),
            RESTART => self.state.cancel.cancel(CancelReason::Restart),
            _ if self.ends_in_transaction() => {
                self.state.cancel.cancel(CancelReason::InstanceRestarts);
            }
            _ => {}
        }
    }

    /// The statement is over: the session waits for its client, and a request that comes now has nothing to end.
    pub(super) fn end_statement(&self) {
        self.state.running.store(false, Ordering::Relaxed);
        // The time of this statement is not the next one's.
        self.state.cancel.set_deadline(None);
    }

    /// Does a statement run that can be asked to end?
    pub(crate) fn is_running(&self) -> bool {
        self.state.running.load(Ordering::Relaxed)
    }

    fn ends_in_transaction(&self) -> bool {
        self.state.ends_in_transaction.load(Ordering::SeqCst)
    }

    /// Must a session end that waits for its client now, in a transaction or not, whatever came first?
    pub fn must_end_now(&self, in_transaction: bool) -> bool {
        self.must_end(true) || in_transaction && self.ends_in_transaction()
    }

    /// Must a session end that waits for its client, in a transaction or not?
    pub fn must_end(&self, in_transaction: bool) -> bool {
        let least = if in_transaction { TERMINATE } else { STOP };
        self.state.ending.load(Ordering::SeqCst) >= least
    }

    /// What the client is told when it must.
    pub fn ending(&self) -> SqlError {
        match self.state.ending.load(Ordering::SeqCst) {
            RESTART => replica_restarts(),
            STOP | TERMINATE => shutting_down(),
            _ if self.ends_in_transaction() => instance_restarts(),
            _ => shutting_down(),
        }
    }

    /// From now on wakes this task. Call before looking at the flags.
    pub fn register(&self, waker: &Waker) {
        let mut kept = self.state.waker.lock();
        match kept.as_ref() {
            Some(old) if old.will_wake(waker) => {}
            _ => *kept = Some(waker.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A session whose transaction an instance's restart has condemned ends with it, and with no other.
    #[test]
    fn who_is_to_end_with_a_transaction_ends_in_it_only() {
        let signals = Signals::of_nobody();
        signals.end_with_transaction();
        assert!(signals.must_end_now(true) && !signals.must_end_now(false));
        assert!(!signals.must_end(true) && !signals.must_end(false));
        assert_eq!(signals.ending().code(), instance_restarts().code());
        signals.begin_statement();
        assert!(signals.statement().check().is_err(), "a statement of it");
        signals.forget_transaction();
        signals.begin_statement();
        assert!(signals.statement().check().is_ok(), "one of the next");
        assert!(!signals.must_end_now(true));
        // Who is to end anyway ends.
        signals.end_with_transaction();
        signals.terminate();
        signals.forget_transaction();
        assert!(signals.must_end_now(false));
        assert_eq!(signals.ending().code(), shutting_down().code());
    }
}
