//! Sessions' tasks on a worker, as the computations in them see them.
//!
//! Owns: whose statement runs in a task, since when it has held the worker, and what a check of
//! [`logstead_sql_types::interrupt`] finds. A session's task ([`task`]) runs on a stack of its own,
//! so it may stop in the middle of any computation.
//!
//! Invariants:
//! - A request to end the statement, and its time limit, are looked at at each check; what sets the request needs
//!   nothing of the worker.
//! - Only while a statement runs is it asked to end: a request that comes late ends nothing else.
//!
//! Does not: measure a task that never checks. The watch over the workers sees that one ([`super::watchdog`]).

use super::scheduler::WorkerScheduler;
use super::signals::Signals;
use super::turns;
use super::watchdog::WorkerWatchdog;
use logstead_env::Instant;
use logstead_fiber::OnStack;
use logstead_sql_types::error::{Result, shutting_down};
use logstead_sql_types::interrupt::{RunningTask, WorkerStall, swap_running, with_running};
use logstead_sql_types::value::user::{self, Scoped};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A computation that has held its worker for so long lets others go on: a few hundred times what a statement by key
/// takes.
const HOLD: Duration = Duration::from_millis(1);

/// What is known of the task that runs.
struct TaskState {
    scheduler: Arc<WorkerScheduler>,
    /// Those of the session whose statement runs in it.
    signals: RefCell<Option<Arc<Signals>>>,
    /// Its first check since it was polled or resumed.
    since: Cell<Option<Instant>>,
    watchdog: Arc<WorkerWatchdog>,
    /// Of the session.
    pid: Cell<i32>,
}

impl RunningTask for TaskState {
    fn look(&self) -> Result<Option<WorkerStall>> {
        if logstead_fiber::is_ending() {
            return Err(shutting_down());
        }
        let clock = self.scheduler.clock();
        let signals = self.signals.borrow();
        let statement = signals.as_ref().filter(|signals| signals.is_running());
        if let Some(signals) = statement {
            signals.statement().check()?;
        }
        let now = clock.monotonic();
        let Some(since) = self.since.get() else {
            self.since.set(Some(now));
            return Ok(None);
        };
        if now.since(since) < HOLD {
            return Ok(None);
        }
        if let Some(signals) = statement {
            signals
                .statement()
                .check_at(|| clock.now_micros_since_2000())?;
        }
        Ok(Some(WorkerStall { since, now }))
    }

    fn pause(&self, held: WorkerStall) {
        let signals = self.signals.borrow().clone();
        match signals {
            Some(signals) => turns::pause(&signals, held.since),
            // Nobody's statement: who connects, perhaps.
            None => {
                let others = std::pin::pin!(tokio::task::yield_now());
                let _have_had_their_turn = logstead_fiber::wait(others);
            }
        }
        self.since.set(None);
    }

    fn goes_on(&self, held: WorkerStall) {
        self.since.set(Some(held.now));
    }
}

/// A statement of this session begins.
pub(super) fn statement_begins(signals: &Arc<Signals>, pid: i32) {
    with_running(|running| {
        let running: Option<&dyn Any> = running.map(|running| running as _);
        if let Some(running) = running.and_then(<dyn Any>::downcast_ref::<TaskState>) {
            let mut mine = running.signals.borrow_mut();
            if !mine.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, signals)) {
                *mine = Some(Arc::clone(signals));
                running.pid.set(pid);
                running.watchdog.is_of(pid);
            }
        }
    });
}

/// What `task` makes.
pub struct Task<F: Future> {
    running: Rc<TaskState>,
    /// The thread's while this is polled, and the thread's own meanwhile.
    current: Option<Rc<dyn RunningTask>>,
    work: Scoped<OnStack<F>>,
}

/// A task of sessions' work on a worker: with a scope of types of its own, and able to stop in the middle of a
/// computation.
pub(super) fn task<F: Future>(
    scheduler: &Arc<WorkerScheduler>,
    watchdog: &Arc<WorkerWatchdog>,
    work: F,
) -> Task<F> {
    let running = Rc::new(TaskState {
        scheduler: Arc::clone(scheduler),
        signals: RefCell::default(),
        since: Cell::default(),
        watchdog: Arc::clone(watchdog),
        pid: Cell::new(0),
    });
    let current: Rc<dyn RunningTask> = Rc::clone(&running) as _;
    Task {
        running,
        current: Some(current),
        work: user::scoped(logstead_fiber::on_stack(work)),
    }
}

/// Takes the thread's place for the time of a poll, and gives it back.
struct TaskSwap<'t> {
    running: &'t TaskState,
    current: &'t mut Option<Rc<dyn RunningTask>>,
}

impl<'t> TaskSwap<'t> {
    fn new(running: &'t TaskState, current: &'t mut Option<Rc<dyn RunningTask>>) -> TaskSwap<'t> {
        running.since.set(None);
        running.watchdog.begins(running.pid.get());
        swap_running(current);
        TaskSwap { running, current }
    }
}

impl Drop for TaskSwap<'_> {
    fn drop(&mut self) {
        swap_running(self.current);
        self.running.watchdog.ends();
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _running = TaskSwap::new(&this.running, &mut this.current);
        Pin::new(&mut this.work).poll(cx)
    }
}
