//! What the sessions of one worker share. It lives on that worker's thread.
//!
//! Owns: the worker's caches of plans, and how many of its sessions work or wait.
//!
//! Does not: know sessions of other workers (`instance`).

use crate::background_undo::BackgroundUndo;
use crate::cached_plan::Statement;
use crate::instance::Instance;
use crate::plan_cache::Caches;
use crate::scheduler::WorkerScheduler;
use crate::task;
use crate::task::Task;
use crate::watchdog::WorkerWatchdog;
use logstead_engine::{CommitWait, Worker};
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::role::Roles;
use logstead_sql_types::error::{Result, SqlError};
use std::cell::{Cell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;

/// Room for so many more prepared statements before the ones that are gone are looked for.
const STATEMENTS_MORE: usize = 64;

/// What the sessions of one worker share. Lives on that worker's thread.
pub struct WorkerSessions {
    /// The server.
    pub instance: Arc<Instance>,
    /// The engine's handle of this worker.
    pub worker: Worker,
    pub(crate) caches: RefCell<Caches>,
    /// The prepared statements of all sessions, some of them gone.
    statements: RefCell<Vec<Weak<Statement>>>,
    /// The catalogs' version when plans were last looked through.
    plans_of_version: Cell<u64>,
    working: Cell<usize>,
    waiting: Cell<usize>,
    progress: Cell<u64>,
    pub(crate) scheduler: Arc<WorkerScheduler>,
    pub(crate) watchdog: Arc<WorkerWatchdog>,
    pub(crate) undoer: BackgroundUndo,
}

impl WorkerSessions {
    /// For the thread that calls.
    pub fn new(instance: Arc<Instance>, worker: Worker) -> Rc<WorkerSessions> {
        let scheduler = WorkerScheduler::new(Arc::clone(&instance.env.clock));
        let watchdog = Arc::new(WorkerWatchdog::new(worker.id()));
        instance.watchdogs.lock().push(Arc::clone(&watchdog));
        Rc::new(WorkerSessions {
            scheduler: Arc::new(scheduler),
            watchdog,
            undoer: BackgroundUndo::default(),
            instance,
            worker,
            caches: RefCell::default(),
            statements: RefCell::default(),
            plans_of_version: Cell::new(0),
            working: Cell::new(0),
            waiting: Cell::new(0),
            progress: Cell::new(0),
        })
    }

    /// The roles as they are now, none of which a crash can take back.
    pub async fn roles(&self) -> Result<Arc<Roles>> {
        let store = &self.instance.store;
        let (roles, newest) = (store.roles(), CommitWait::floor(store.newest_change()));
        let engine = &self.instance.engine;
        if !engine.is_committed(&newest) {
            let known = engine.acknowledged(newest).await;
            known.map_err(|why| SqlError::log_failed(&why))?;
        }
        Ok(roles)
    }

    /// A task of this worker in which sessions run: what their values mean is its own, whoever shares the thread, and
    /// it lets others go on in the middle of long computations.
    pub fn task<F: Future>(&self, work: F) -> Task<F> {
        task::task(&self.scheduler, &self.watchdog, work)
    }

    pub(crate) fn remember_statement(&self, statement: &Rc<Statement>) {
        let mut statements = self.statements.borrow_mut();
        if statements.len() == statements.capacity() {
            // As many again may come before the next look, so each costs a constant time on average.
            statements.retain(|s| s.strong_count() > 0);
            let live = statements.len();
            statements.reserve_exact(live + STATEMENTS_MORE);
        }
        statements.push(Rc::downgrade(statement));
    }

    /// Drops the plans that DDL has made stale: they keep the storages of dropped and truncated tables in memory, and
    /// the session they belong to may not run a statement for a long time. Called now and then.
    pub fn drop_stale_plans(&self) {
        let store = &self.instance.store;
        let version = store.version();
        if self.plans_of_version.replace(version) == version {
            return;
        }
        let is_current = |catalog: &Arc<Catalog>| {
            if let Some(past) = &catalog.past {
                return past.strong_count() > 0;
            }
            let current = store.current_by_oid(catalog.database);
            current.is_some_and(|current| Arc::ptr_eq(&current, catalog))
        };
        self.caches.borrow_mut().drop_stale_plans(is_current);
        self.statements
            .borrow_mut()
            .retain(|statement| match statement.upgrade() {
                Some(statement) => {
                    statement.drop_stale_plan(is_current);
                    true
                }
                None => false,
            });
    }

    /// CancelRequest.
    pub fn cancel(&self, pid: i32, secret: i32) {
        self.instance.cancel(pid, secret);
    }

    /// Sessions in the middle of a request: neither waiting for their client nor for a commit. While there are any, the
    /// worker has better things to do than to wait for the disk.
    pub fn working(&self) -> usize {
        self.working.get()
    }

    /// Sessions that wait for the log before they can answer. If there are none, nobody gains from a quick flush.
    pub fn waiting(&self) -> usize {
        self.waiting.get()
    }

    /// Rises whenever a session takes a step.
    pub fn progress(&self) -> u64 {
        self.progress.get()
    }

    pub(crate) fn step(&self) {
        self.progress.set(self.progress.get().wrapping_add(1));
        self.scheduler.step();
    }

    /// While the log is about to be flushed: long statements wait, but for their share, so that it is not put off.
    pub fn about_to_flush(&self, about_to: bool) {
        self.scheduler.hold(about_to);
    }

    /// How often a long statement had its turn.
    pub fn long_turns(&self) -> u64 {
        self.scheduler.long_turns()
    }
}

/// Counts its session as working while it lives.
pub(crate) struct WorkingGuard(Rc<WorkerSessions>);

impl WorkingGuard {
    pub(crate) fn new(worker: &Rc<WorkerSessions>) -> WorkingGuard {
        worker.step();
        worker.worker.busy();
        worker.working.set(worker.working.get() + 1);
        WorkingGuard(Rc::clone(worker))
    }
}

impl Drop for WorkingGuard {
    fn drop(&mut self) {
        self.0.step();
        self.0.working.set(self.0.working.get().saturating_sub(1));
        if self.0.working.get() == 0 {
            self.0.worker.at_rest();
        }
    }
}

/// Counts its session as waiting for the log while it lives.
pub(crate) struct WaitingGuard(Rc<WorkerSessions>);

impl WaitingGuard {
    pub(crate) fn new(worker: &Rc<WorkerSessions>) -> WaitingGuard {
        worker.waiting.set(worker.waiting.get() + 1);
        WaitingGuard(Rc::clone(worker))
    }
}

impl Drop for WaitingGuard {
    fn drop(&mut self) {
        self.0.waiting.set(self.0.waiting.get().saturating_sub(1));
    }
}
