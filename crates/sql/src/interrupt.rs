//! Where a long computation looks whether it is to end, PostgreSQL's `CHECK_FOR_INTERRUPTS`, and where it lets the worker's other sessions go on.
//!
//! Owns: which session runs on the thread, and since when it has held it. A session's task ([`task`]) runs on a stack of its own, so it may stop in the middle
//! of any computation: [`check_for_interrupts`] does so when the computation has held the worker for [`HOLD`].
//!
//! Invariants:
//! - A request to end the statement, and its time limit, are looked at at each check; what sets the request needs nothing of the worker.
//! - Only while a statement runs is it asked to end: a request that comes late ends nothing else.
//! - Whoever calls a check holds nothing that another session of the worker may want, neither a lock nor a borrow of what sessions share; or it
//!   calls it in [`no_suspend`], or in [`hold_interrupts`] where it must not fail either: the engine asks for the keys of rows under its locks, and when it takes
//!   back what a cancelled statement has written. A session's own cells are its own. Of the thread's state, the scope of types goes with the task, and what is set for
//!   the time of a call (`value::SetAside`) is put aside meanwhile.
//!
//! Does not: measure a task that never checks. The watch over the workers sees that one (`session::watch`).

use crate::error::Result;
use crate::session::{Signals, Turns, Watch, shutting_down};
use crate::value::SetAside;
use crate::value::user::{self, Scoped};
use logstead_env::Instant;
use logstead_fiber::OnStack;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) use logstead_fiber::no_suspend;

/// A computation that has held its worker for so long lets others go on: a few hundred times what a statement by key takes.
const HOLD: Duration = Duration::from_millis(1);

/// What is known of the task that runs.
struct Running {
    turns: Arc<Turns>,
    /// Those of the session whose statement runs in it.
    signals: RefCell<Option<Arc<Signals>>>,
    /// Its first check since it was polled or resumed.
    since: Cell<Option<Instant>>,
    watch: Arc<Watch>,
    /// Of the session.
    pid: Cell<i32>,
}

thread_local! {
    /// How many on the thread are in [`hold_interrupts`].
    static HELD: Cell<u32> = const { Cell::new(0) };
    static RUNNING: RefCell<Option<Rc<Running>>> = const { RefCell::new(None) };
}

/// What a check finds.
enum Found {
    Nothing,
    /// Others are to go on: it has held the worker since then, until now.
    Held(Instant, Instant),
}

impl Running {
    fn look(&self) -> Result<Found> {
        if logstead_fiber::is_ending() {
            return Err(shutting_down());
        }
        let clock = self.turns.clock();
        let signals = self.signals.borrow();
        let statement = signals.as_ref().filter(|signals| signals.is_running());
        if let Some(signals) = statement {
            signals.statement().check()?;
        }
        let now = clock.monotonic();
        let Some(since) = self.since.get() else {
            self.since.set(Some(now));
            return Ok(Found::Nothing);
        };
        if now.since(since) < HOLD {
            return Ok(Found::Nothing);
        }
        if let Some(signals) = statement {
            signals
                .statement()
                .check_at(|| clock.now_micros_since_2000())?;
        }
        Ok(Found::Held(since, now))
    }
}

/// Ends the running statement with 57014 or 57P01 if somebody asked for that, and lets others have the worker if it has held it for long. Every loop whose
/// length a client chooses calls it, once for some ten thousand bytes or steps.
#[inline]
pub(crate) fn check_for_interrupts() -> Result<()> {
    if HELD.get() > 0 {
        return Ok(());
    }
    let found = RUNNING.with_borrow(|running| match running {
        Some(running) => running.look(),
        None => Ok(Found::Nothing),
    })?;
    match found {
        Found::Nothing => Ok(()),
        Found::Held(since, now) => give_way(since, now),
    }
}

/// Steps of a loop between two looks for interrupts: bytes, or as many of them as a step costs.
const STRIDE: usize = 64 << 10;

/// Looks for interrupts now and then, for a loop whose steps are small or cost very different things.
#[derive(Debug)]
pub(crate) struct Pace {
    left: usize,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { left: STRIDE }
    }
}

impl Pace {
    /// Something was done that costs as much as so many bytes that are copied one by one.
    #[inline]
    pub(crate) fn spent(&mut self, steps: usize) -> Result<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => {
                self.left = STRIDE;
                check_for_interrupts()
            }
        }
    }
}

/// Runs something that is neither ended nor stopped in its middle, PostgreSQL's `HOLD_INTERRUPTS`: it holds locks of the engine, or takes back what the
/// statement has done, which it must be able to when it is cancelled.
#[inline]
pub(crate) fn hold_interrupts<T>(run: impl FnOnce() -> T) -> T {
    struct Released;
    impl Drop for Released {
        fn drop(&mut self) {
            HELD.set(HELD.get() - 1);
        }
    }
    HELD.set(HELD.get() + 1);
    let _released = Released;
    run()
}

/// Lets the worker's other sessions go on.
#[cold]
fn give_way(since: Instant, now: Instant) -> Result<()> {
    let Some(running) = RUNNING.with_borrow(Clone::clone) else {
        return Ok(());
    };
    if !logstead_fiber::can_suspend() {
        running.since.set(Some(now));
        return Ok(());
    }
    let signals = running.signals.borrow().clone();
    let _put_back_later = SetAside::new();
    match signals {
        Some(signals) => signals.pause(since),
        // Nobody's statement: who connects, perhaps.
        None => {
            let others = std::pin::pin!(tokio::task::yield_now());
            let _have_had_their_turn = logstead_fiber::wait(others);
        }
    }
    running.since.set(None);
    match RUNNING.with_borrow(|running| running.as_ref().map(|running| running.look())) {
        Some(Err(error)) => Err(error),
        Some(Ok(_)) | None => Ok(()),
    }
}

/// A statement of this session begins.
pub(crate) fn statement_begins(signals: &Arc<Signals>, pid: i32) {
    RUNNING.with_borrow(|running| {
        if let Some(running) = running {
            let mut mine = running.signals.borrow_mut();
            if !mine.as_ref().is_some_and(|mine| Arc::ptr_eq(mine, signals)) {
                *mine = Some(Arc::clone(signals));
                running.pid.set(pid);
                running.watch.is_of(pid);
            }
        }
    });
}

/// What `task` makes.
pub struct Task<F: Future> {
    running: Option<Rc<Running>>,
    work: Scoped<OnStack<F>>,
}

/// A task of sessions' work on a worker: with a scope of types of its own, and able to stop in the middle of a computation.
pub(crate) fn task<F: Future>(turns: &Arc<Turns>, watch: &Arc<Watch>, work: F) -> Task<F> {
    Task {
        running: Some(Rc::new(Running {
            turns: Arc::clone(turns),
            signals: RefCell::default(),
            since: Cell::default(),
            watch: Arc::clone(watch),
            pid: Cell::new(0),
        })),
        work: user::scoped(logstead_fiber::on_stack(work)),
    }
}

/// Takes the thread's place for the time of a poll, and gives it back.
struct Swapped<'t>(&'t mut Option<Rc<Running>>);

impl<'t> Swapped<'t> {
    fn new(running: &'t mut Option<Rc<Running>>) -> Swapped<'t> {
        if let Some(running) = running {
            running.since.set(None);
            running.watch.begins(running.pid.get());
        }
        RUNNING.with_borrow_mut(|current| std::mem::swap(current, running));
        Swapped(running)
    }
}

impl Drop for Swapped<'_> {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(|current| std::mem::swap(current, self.0));
        if let Some(running) = self.0 {
            running.watch.ends();
        }
    }
}

impl<F: Future> Future for Task<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _running = Swapped::new(&mut this.running);
        Pin::new(&mut this.work).poll(cx)
    }
}
