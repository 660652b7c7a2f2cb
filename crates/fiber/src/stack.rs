//! The stacks of a thread, and the futures that are polled on them.

use corosensei::stack::{DefaultStack, Stack as Memory};
use corosensei::{Coroutine, CoroutineResult, Yielder};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll, Waker};

/// Size of a stack: what the threads of workers have. Only touched pages take memory.
const STACK_BYTES: usize = 16 << 20;

/// Stacks that a thread keeps ready.
const IDLE_MAX: usize = 8;

/// Stacks of a thread, those of suspended tasks included. Whoever would suspend the last one goes on instead.
pub(crate) const STACKS_MAX: usize = 512;

/// What a stack is told to do.
enum FiberCommand {
    /// Call this with that. SAFETY: whoever gives it keeps what it is called with until it has returned.
    Run(unsafe fn(*mut ()), *mut ()),
    /// Go on where it was suspended.
    Resume,
    /// End: the stack is no longer needed.
    Quit,
}

/// Why it comes back.
enum FiberYield {
    /// It has done what it was told, or that has panicked.
    Done(Result<(), Box<dyn Any + Send>>),
    /// It is suspended in the middle of it.
    Suspended,
}

/// What those know who run on a stack. Lives as long as the stack.
struct FiberContext {
    /// How to leave it.
    yielder: Cell<*const Yielder<FiberCommand, FiberYield>>,
    extent: Cell<StackBounds>,
    /// How many hold a [`NoSuspend`].
    forbidden: Cell<usize>,
    /// The task is being dropped.
    ending: Cell<bool>,
    /// Of the poll that runs, as its caller gave it.
    waker: Cell<*const Waker>,
}

/// Where the stack lies on which the caller runs: a task's stack, or a segment that continues it ([`with_stack`]).
#[derive(Clone, Copy)]
struct StackBounds {
    /// The address at which it begins.
    base: usize,
    /// The address at which it ends, below the other; 0 if that is not known.
    limit: usize,
    /// What the task has used of what the segment continues.
    before: usize,
}

impl StackBounds {
    /// One of which nothing is known.
    const UNKNOWN: StackBounds = StackBounds {
        base: usize::MAX,
        limit: 0,
        before: 0,
    };
}

/// What is left unused at the end of a stack's memory: the guard page lies there.
const END_BYTES: usize = 64 << 10;

thread_local! {
    /// The stack that runs on this thread; null on the thread's own.
    static RUNNING: Cell<*const FiberContext> = const { Cell::new(std::ptr::null()) };
    static IDLE: RefCell<Vec<Stack>> = const { RefCell::new(Vec::new()) };
    /// Where polls begin that have no stack of their own.
    static OWN: Cell<StackBounds> = const { Cell::new(StackBounds::UNKNOWN) };
    /// Stacks of this thread.
    static STACKS: Cell<usize> = const { Cell::new(0) };
}

/// A stack, with a loop on it that does one job after the other.
struct Stack {
    coroutine: Coroutine<FiberCommand, FiberYield, ()>,
    link: Box<FiberContext>,
}

impl Stack {
    /// One that is ready, or a new one; none if there are too many, or the system has no room.
    fn take() -> Option<Stack> {
        let idle = IDLE.try_with(|idle| idle.borrow_mut().pop()).ok()?;
        idle.or_else(Stack::new)
    }

    #[cold]
    fn new() -> Option<Stack> {
        if STACKS.get() >= STACKS_MAX {
            return None;
        }
        let memory = DefaultStack::new(STACK_BYTES).ok()?;
        let limit = memory.limit().get() + END_BYTES;
        let link = Box::new(FiberContext {
            yielder: Cell::new(std::ptr::null()),
            extent: Cell::new(StackBounds::UNKNOWN),
            forbidden: Cell::new(0),
            ending: Cell::new(false),
            waker: Cell::new(std::ptr::null()),
        });
        let of_loop: *const FiberContext = &raw const *link;
        let coroutine = Coroutine::with_stack(memory, move |yielder, first| {
            // SAFETY: the link is dropped after the coroutine, with the stack that both belong to.
            let link = unsafe { &*of_loop };
            link.yielder.set(yielder);
            link.extent.set(StackBounds {
                base: address(),
                limit,
                before: 0,
            });
            let mut job = first;
            while let FiberCommand::Run(call, with) = job {
                // SAFETY: whoever gives the job gives what belongs to the function, and keeps it until the job is done.
                let ran = catch_unwind(AssertUnwindSafe(|| unsafe { call(with) }));
                job = yielder.suspend(FiberYield::Done(ran));
            }
        });
        STACKS.set(STACKS.get() + 1);
        Some(Stack { coroutine, link })
    }

    /// Keeps it for the next poll, or gives it back to the system.
    fn put_back(self) {
        debug_assert_eq!(self.link.forbidden.get(), 0, "a guard outlives its poll");
        let mut mine = Some(self);
        // A thread that ends keeps none.
        let _ended = IDLE.try_with(|idle| {
            let mut idle = idle.borrow_mut();
            if idle.len() < IDLE_MAX {
                idle.extend(mine.take());
            }
        });
    }

    /// Lets it run until it comes back. `waker` is that of the poll.
    fn run(&mut self, job: FiberCommand, waker: &Waker) -> FiberYield {
        self.link.waker.set(waker);
        let _before = Before(RUNNING.replace(&raw const *self.link));
        match self.coroutine.resume(job) {
            CoroutineResult::Yield(step) => step,
            CoroutineResult::Return(()) => FiberYield::Done(Ok(())),
        }
    }
}

/// Whoever ran before runs again when this is dropped.
struct Before(*const FiberContext);

impl Drop for Before {
    fn drop(&mut self) {
        RUNNING.set(self.0);
    }
}

/// What was known of the thread's own stack is known again when this is dropped.
struct OwnBefore(StackBounds);

impl Drop for OwnBefore {
    fn drop(&mut self) {
        OWN.set(self.0);
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        // It stands at the end of a job, or has not begun: a suspended one is brought to its end before.
        if self.coroutine.started() && !self.coroutine.done() {
            let _ends = self.run(FiberCommand::Quit, Waker::noop());
        }
        STACKS.set(STACKS.get().saturating_sub(1));
    }
}

/// About where the stack is now.
#[inline(never)]
fn address() -> usize {
    let here = 0_u8;
    std::ptr::from_ref(&here).addr()
}

fn running() -> Option<&'static FiberContext> {
    // SAFETY: the link of a running stack lives until the stack has come back, so longer than what asks on it. Its
    // users in this file keep it no longer than that.
    unsafe { RUNNING.get().as_ref() }
}

/// Where the caller's stack is noted.
fn with_extent<T>(look: impl FnOnce(&Cell<StackBounds>) -> T) -> T {
    match running() {
        Some(link) => look(&link.extent),
        None => OWN.with(look),
    }
}

/// How much of its stack the caller has below it, segments included. Comparable within one task only, and there
/// whichever stacks it is polled on.
#[inline]
pub fn stack_depth() -> usize {
    let extent = with_extent(Cell::get);
    let own = extent.base.wrapping_sub(address());
    own.wrapping_add(extent.before)
}

/// How much the caller may still use of the stack that it runs on; none on a thread's own stack, of which that is not
/// known.
#[inline]
pub fn remaining_stack() -> Option<usize> {
    let extent = with_extent(Cell::get);
    (extent.limit != 0).then(|| address().saturating_sub(extent.limit))
}

/// There is no memory for a stack: what was to run on it has not run.
#[derive(Debug)]
pub struct StackAllocError;

/// Runs something that needs so many bytes of stack: here, if they are there, or on a segment that is made for it and
/// continues the stack. It may [`wait`] as ever. Of what is recursive each step may ask again.
#[inline]
pub fn with_stack<T>(bytes: usize, run: impl FnOnce() -> T) -> Result<T, StackAllocError> {
    match remaining_stack() {
        Some(remaining) if remaining >= bytes => Ok(run()),
        _ => on_segment(bytes, run),
    }
}

#[cold]
fn on_segment<T>(bytes: usize, run: impl FnOnce() -> T) -> Result<T, StackAllocError> {
    /// The stack that is continued is the caller's again when this is dropped.
    struct Continued(StackBounds);
    impl Drop for Continued {
        fn drop(&mut self) {
            with_extent(|extent| extent.set(self.0));
        }
    }
    let size = bytes.checked_add(2 * END_BYTES).ok_or(StackAllocError)?;
    let memory = DefaultStack::new(size).map_err(|_| StackAllocError)?;
    let limit = memory.limit().get() + END_BYTES;
    // Unknown, if the task has never been told where its stack begins.
    let before = match with_extent(Cell::get).base {
        usize::MAX => 0,
        _ => stack_depth(),
    };
    let continued = Continued(with_extent(Cell::get));
    Ok(corosensei::on_stack(memory, move || {
        let _continued = continued;
        with_extent(|extent| {
            extent.set(StackBounds {
                base: address(),
                limit,
                before,
            });
        });
        run()
    }))
}

/// Polls `work` as [`with_stack`] runs something, each time.
pub async fn poll_with_stack<F: Future>(
    bytes: usize,
    work: F,
) -> Result<F::Output, StackAllocError> {
    let mut work = std::pin::pin!(work);
    std::future::poll_fn(|cx| match with_stack(bytes, || work.as_mut().poll(cx)) {
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Ok(Poll::Pending) => Poll::Pending,
        Err(StackAllocError) => Poll::Ready(Err(StackAllocError)),
    })
    .await
}

/// Can the caller [`wait`]?
#[inline]
pub fn can_suspend() -> bool {
    running().is_some_and(|link| {
        link.forbidden.get() == 0
            && !link.ending.get()
            && (STACKS.get() < STACKS_MAX || IDLE.with_borrow(|idle| !idle.is_empty()))
            && !std::thread::panicking()
    })
}

/// Is the caller's task being dropped, so that it has to end?
#[inline]
pub fn is_ending() -> bool {
    running().is_some_and(|link| link.ending.get())
}

/// Runs something during which the caller is not suspended: it holds what other tasks of the thread may want.
pub fn no_suspend<T>(run: impl FnOnce() -> T) -> T {
    struct Forbidden(&'static FiberContext);
    impl Drop for Forbidden {
        fn drop(&mut self) {
            self.0.forbidden.set(self.0.forbidden.get() - 1);
        }
    }
    let _forbidden = running().map(|link| {
        link.forbidden.set(link.forbidden.get() + 1);
        Forbidden(link)
    });
    run()
}

/// Waits for a future in the middle of a synchronous computation, while other tasks of the thread run. None if the
/// caller cannot be suspended, or its task is dropped meanwhile.
pub fn wait<T>(mut future: Pin<&mut impl Future<Output = T>>) -> Option<T> {
    let link = running()?;
    loop {
        if !can_suspend() {
            return None;
        }
        // SAFETY: the poll that runs now has given it, and cannot end before the stack has come back.
        let waker = unsafe { link.waker.get().as_ref() }?;
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(waker)) {
            return Some(value);
        }
        // SAFETY: the loop that made the yielder is below us on this stack.
        let yielder = unsafe { &*link.yielder.get() };
        let _resumed = yielder.suspend(FiberYield::Suspended);
    }
}

/// The future, and what is told about its poll.
struct Inner<F: Future> {
    work: F,
    /// Of the context that the future is polled with: the poll may outlive the one that its caller gave.
    waker: Waker,
    polled: Poll<F::Output>,
}

/// SAFETY: `inner` is an `Inner<F>` that nobody else uses until this has returned.
unsafe fn poll_inner<F: Future>(inner: *mut ()) {
    // SAFETY: see above; and it does not move before it is dropped.
    let inner = unsafe { &mut *inner.cast::<Inner<F>>() };
    // SAFETY: as above.
    let work = unsafe { Pin::new_unchecked(&mut inner.work) };
    inner.polled = work.poll(&mut Context::from_waker(&inner.waker));
}

/// See [`on_stack`].
pub struct OnStack<F: Future> {
    /// Comes from a box. Not used while a stack is suspended: frames on it do.
    inner: NonNull<Inner<F>>,
    suspended: Option<Stack>,
    owns: PhantomData<Box<Inner<F>>>,
}

/// Polls `work` on a stack of its own.
pub fn on_stack<F: Future>(work: F) -> OnStack<F> {
    let inner = Box::new(Inner {
        work,
        waker: Waker::noop().clone(),
        polled: Poll::Pending,
    });
    OnStack {
        inner: NonNull::from(Box::leak(inner)),
        suspended: None,
        owns: PhantomData,
    }
}

impl<F: Future> Unpin for OnStack<F> {}

impl<F: Future> std::fmt::Debug for OnStack<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OnStack")
            .field("suspended", &self.suspended.is_some())
            .finish_non_exhaustive()
    }
}

impl<F: Future> OnStack<F> {
    /// After a poll: what it gave.
    fn take_polled(&mut self) -> Poll<F::Output> {
        // SAFETY: no frames use it: the poll is over.
        let inner = unsafe { self.inner.as_mut() };
        std::mem::replace(&mut inner.polled, Poll::Pending)
    }
}

impl<F: Future> Future for OnStack<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        let was_suspended = this.suspended.is_some();
        let (mut stack, job) = match this.suspended.take() {
            Some(stack) => (stack, FiberCommand::Resume),
            None => {
                // SAFETY: no frames use it: no stack is suspended.
                let inner = unsafe { this.inner.as_mut() };
                if !inner.waker.will_wake(cx.waker()) {
                    inner.waker.clone_from(cx.waker());
                }
                let with: *mut () = this.inner.as_ptr().cast();
                match Stack::take() {
                    Some(stack) => (stack, FiberCommand::Run(poll_inner::<F>, with)),
                    None => {
                        // On the thread's own stack nobody can be suspended.
                        let _before = Before(RUNNING.replace(std::ptr::null()));
                        let own = OWN.replace(StackBounds {
                            base: address(),
                            ..StackBounds::UNKNOWN
                        });
                        let _own = OwnBefore(own);
                        // SAFETY: as above, and the function has returned before this does.
                        unsafe { poll_inner::<F>(with) };
                        return this.take_polled();
                    }
                }
            }
        };
        match stack.run(job, cx.waker()) {
            FiberYield::Suspended => {
                this.suspended = Some(stack);
                Poll::Pending
            }
            FiberYield::Done(ran) => {
                stack.put_back();
                if let Err(panic) = ran {
                    resume_unwind(panic);
                }
                let polled = this.take_polled();
                if was_suspended && polled.is_pending() {
                    // What the future waits for may have come while it was in the middle of its poll: that wake-up was
                    // taken for the stack's.
                    cx.waker().wake_by_ref();
                }
                polled
            }
        }
    }
}

impl<F: Future> Drop for OnStack<F> {
    fn drop(&mut self) {
        if let Some(mut stack) = self.suspended.take() {
            stack.link.ending.set(true);
            // It cannot be suspended again.
            let _whatever_it_ends_with = stack.run(FiberCommand::Resume, Waker::noop());
            stack.link.ending.set(false);
            stack.put_back();
        }
        // SAFETY: it comes from a box, nobody has dropped it, and no frames use it any more.
        drop(unsafe { Box::from_raw(self.inner.as_ptr()) });
    }
}
