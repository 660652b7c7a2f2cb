//! Where a long computation looks whether it is to end, PostgreSQL's `CHECK_FOR_INTERRUPTS`, and where it lets the
//! worker's other sessions go on.
//!
//! Owns: which task runs on the thread. Whoever runs sessions puts it there ([`swap_running`]) and says what a check
//! finds ([`RunningTask`]).
//!
//! Invariant: whoever calls a check holds nothing that another session of the worker may want, neither a lock nor a
//! borrow of what sessions share; or it
//! calls it in [`no_suspend`], or in [`hold_interrupts`] where it must not fail either: the engine asks for the keys
//! of rows under its locks, and when it takes
//! back what a cancelled statement has written. A session's own cells are its own. Of the thread's state, the scope of
//! types goes with the task, and what is set for
//! the time of a call (`thread_context`) is put aside meanwhile.
//!
//! Does not: know sessions, or who asks a statement to end.

use crate::error::Result;
use crate::thread_context::SavedThreadContext;
use logstead_env::Instant;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

pub use logstead_fiber::no_suspend;

thread_local! {
    /// How many on the thread are in [`hold_interrupts`].
    static HELD: Cell<u32> = const { Cell::new(0) };
    static RUNNING: RefCell<Option<Rc<dyn RunningTask>>> = const { RefCell::new(None) };
}

/// A task that has held its worker for long: since then, until now.
#[derive(Clone, Copy, Debug)]
pub struct WorkerStall {
    /// Its first check since it was polled or resumed.
    pub since: Instant,
    /// The present check.
    pub now: Instant,
}

/// The task that runs on a thread, as the computations in it see it.
pub trait RunningTask: Any {
    /// An error if its statement is to end; otherwise whether others are to go on.
    fn look(&self) -> Result<Option<WorkerStall>>;
    /// Lets the worker's other tasks go on. Called where the task can be suspended.
    fn pause(&self, held: WorkerStall);
    /// It cannot be suspended here: others wait until the next check.
    fn goes_on(&self, held: WorkerStall);
}

/// Puts a task in the place of the thread's, and gives that back.
pub fn swap_running(task: &mut Option<Rc<dyn RunningTask>>) {
    RUNNING.with_borrow_mut(|current| std::mem::swap(current, task));
}

/// Looks at the task that runs on the thread, if one does.
pub fn with_running<T>(look: impl FnOnce(Option<&dyn RunningTask>) -> T) -> T {
    RUNNING.with_borrow(|running| look(running.as_deref()))
}

/// Ends the running statement with 57014 or 57P01 if somebody asked for that, and lets others have the worker if it
/// has held it for long. Every loop whose
/// length a client chooses calls it, once for some ten thousand bytes or steps.
#[inline]
pub fn check_for_interrupts() -> Result<()> {
    if HELD.get() > 0 {
        return Ok(());
    }
    match with_running(|running| running.map_or(Ok(None), RunningTask::look))? {
        None => Ok(()),
        Some(held) => give_way(held),
    }
}

/// Steps of a loop between two looks for interrupts: bytes, or as many of them as a step costs.
const STRIDE: usize = 64 << 10;

/// Looks for interrupts now and then, for a loop whose steps are small or cost very different things.
#[derive(Debug)]
pub struct CancelChecker {
    left: usize,
}

impl Default for CancelChecker {
    fn default() -> CancelChecker {
        CancelChecker { left: STRIDE }
    }
}

impl CancelChecker {
    /// Something was done that costs as much as so many bytes that are copied one by one.
    #[inline]
    pub fn spent(&mut self, steps: usize) -> Result<()> {
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

/// Runs something that is neither ended nor stopped in its middle, PostgreSQL's `HOLD_INTERRUPTS`: it holds locks of
/// the engine, or takes back what the
/// statement has done, which it must be able to when it is cancelled.
#[inline]
pub fn hold_interrupts<T>(run: impl FnOnce() -> T) -> T {
    struct HoldInterruptsGuard;
    impl Drop for HoldInterruptsGuard {
        fn drop(&mut self) {
            HELD.set(HELD.get() - 1);
        }
    }
    HELD.set(HELD.get() + 1);
    let _released = HoldInterruptsGuard;
    run()
}

/// Lets the worker's other sessions go on.
#[cold]
fn give_way(held: WorkerStall) -> Result<()> {
    let Some(running) = RUNNING.with_borrow(Clone::clone) else {
        return Ok(());
    };
    if !logstead_fiber::can_suspend() {
        running.goes_on(held);
        return Ok(());
    }
    let _put_back_later = SavedThreadContext::begin();
    running.pause(held);
    running.look().map(drop)
}
