//! A thread with tasks polled by hand.

use super::stack::STACKS_MAX;
use super::*;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

/// Counts how often it is woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn poll<F: Future + Unpin>(task: &mut F) -> Poll<F::Output> {
    Pin::new(task).poll(&mut Context::from_waker(Waker::noop()))
}

/// Is pending once.
fn once() -> impl Future<Output = ()> {
    let mut first = true;
    poll_fn(move |_| match std::mem::take(&mut first) {
        true => Poll::Pending,
        false => Poll::Ready(()),
    })
}

/// Waits in the middle of a computation; whether it could.
fn pause() -> bool {
    wait(pin!(once())).is_some()
}

/// Waits `depth` calls deep, with something on the stack at each.
fn deep(depth: u64) -> u64 {
    let here = [depth; 8];
    if depth == 0 {
        assert!(pause());
        return 0;
    }
    deep(depth - 1) + here[usize::try_from(depth % 8).unwrap()]
}

#[test]
fn a_computation_goes_on_where_it_stopped_and_others_run_meanwhile() {
    let said = Rc::new(RefCell::new(Vec::new()));
    let task = |name: &'static str| {
        let said = Rc::clone(&said);
        on_stack(async move {
            for i in 0..3 {
                said.borrow_mut().push((name, i));
                assert_eq!(deep(100), 5050);
            }
            name
        })
    };
    let (mut a, mut b) = (task("a"), task("b"));
    for _ in 0..3 {
        assert_eq!(poll(&mut a), Poll::Pending);
        assert_eq!(poll(&mut b), Poll::Pending);
    }
    assert_eq!(poll(&mut b), Poll::Ready("b"));
    assert_eq!(poll(&mut a), Poll::Ready("a"));
    let expected = [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2), ("b", 2)];
    assert_eq!(*said.borrow(), expected);
}

#[test]
fn a_future_that_is_pending_by_itself_leaves_its_stack() {
    let mut task = on_stack(async {
        let mut sum = 0;
        for i in 0..10 {
            once().await;
            sum += i;
        }
        sum
    });
    let mut polls = 1;
    while poll(&mut task).is_pending() {
        assert!(!format!("{task:?}").contains("true"));
        polls += 1;
    }
    assert_eq!(polls, 11);
}

#[test]
fn off_a_stack_and_where_it_is_forbidden_nobody_is_suspended() {
    assert!(!can_suspend());
    assert!(!pause());
    let mut task = on_stack(async {
        assert!(can_suspend());
        let inside = no_suspend(|| no_suspend(pause) || can_suspend() || pause());
        assert!(!inside);
        let panicked = catch_unwind(|| no_suspend(|| panic!("as the test wants it")));
        assert!(panicked.is_err());
        assert!(pause(), "the panic has taken what was forbidden with it");
    });
    assert_eq!(poll(&mut task), Poll::Pending);
    assert_eq!(poll(&mut task), Poll::Ready(()));
}

/// Says that it was dropped.
struct Dropped(Rc<Cell<bool>>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.set(true);
    }
}

#[test]
fn a_panic_behind_a_wait_reaches_whoever_polls_and_the_stack_is_used_again() {
    for _ in 0..3 {
        let dropped = Rc::new(Cell::new(false));
        let on_it = Dropped(Rc::clone(&dropped));
        let mut task = on_stack(async move {
            let _on_it = on_it;
            assert!(pause());
            if true {
                panic!("as the test wants it");
            }
        });
        assert_eq!(poll(&mut task), Poll::Pending);
        assert!(!dropped.get());
        let panic = catch_unwind(AssertUnwindSafe(|| poll(&mut task))).unwrap_err();
        assert_eq!(panic.downcast_ref(), Some(&"as the test wants it"));
        assert!(dropped.get());
        // The thread is as it was.
        assert!(!can_suspend());
        assert!(!std::thread::panicking());
        a_computation_goes_on_where_it_stopped_and_others_run_meanwhile();
    }
}

#[test]
fn a_panic_that_the_future_catches_stays_in_it() {
    let mut task = on_stack(async {
        let caught = catch_unwind(|| {
            assert!(pause());
            panic!("as the test wants it");
        });
        assert!(pause());
        caught.is_err()
    });
    assert_eq!(poll(&mut task), Poll::Pending);
    assert_eq!(poll(&mut task), Poll::Pending);
    assert_eq!(poll(&mut task), Poll::Ready(true));
}

#[test]
fn while_it_panics_nobody_is_suspended() {
    struct Pauses(Rc<Cell<Option<bool>>>);
    impl Drop for Pauses {
        fn drop(&mut self) {
            self.0.set(Some(pause()));
        }
    }
    let paused = Rc::new(Cell::new(None));
    let pauses = Pauses(Rc::clone(&paused));
    let mut task = on_stack(async move {
        let _pauses = pauses;
        let caught = catch_unwind(AssertUnwindSafe(move || {
            let _pauses = _pauses;
            panic!("as the test wants it");
        }));
        caught.is_err()
    });
    assert_eq!(poll(&mut task), Poll::Ready(true));
    assert_eq!(paused.get(), Some(false));
}

#[test]
fn a_task_that_is_dropped_while_suspended_is_brought_to_the_end_of_its_poll_first() {
    let dropped = Rc::new(Cell::new(false));
    let went_on = Rc::new(Cell::new(false));
    let after = Rc::new(Cell::new(false));
    let (on_it, on, late) = (
        Dropped(Rc::clone(&dropped)),
        Rc::clone(&went_on),
        Rc::clone(&after),
    );
    let mut task = on_stack(async move {
        let _on_it = on_it;
        let borrowed = &on;
        assert!(!pause(), "it is told that it has to end");
        assert!(is_ending());
        assert!(!can_suspend());
        borrowed.set(true);
        once().await;
        late.set(true);
    });
    assert_eq!(poll(&mut task), Poll::Pending);
    assert!(!dropped.get());
    drop(task);
    assert!(went_on.get() && dropped.get());
    assert!(!after.get(), "it is not polled again");
    // The stack is good for the next.
    let mut task = on_stack(async { pause() && !is_ending() });
    assert_eq!(poll(&mut task), Poll::Pending);
    assert_eq!(poll(&mut task), Poll::Ready(true));
}

#[test]
fn a_panic_in_a_task_that_is_dropped_stays_in_it() {
    let mut task = on_stack(async {
        if !pause() {
            panic!("as the test wants it");
        }
    });
    assert_eq!(poll(&mut task), Poll::Pending);
    drop(task);
    assert!(!can_suspend());
}

#[test]
fn a_wake_up_that_comes_while_it_is_suspended_is_not_lost() {
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(Arc::clone(&woken));
    let mut cx = Context::from_waker(&waker);
    let kept: Rc<RefCell<Option<Waker>>> = Rc::default();
    let told = Rc::new(Cell::new(false));
    let (keeps, is_told) = (Rc::clone(&kept), Rc::clone(&told));
    let mut task = on_stack(poll_fn(move |cx| {
        if is_told.get() {
            return Poll::Ready(());
        }
        *keeps.borrow_mut() = Some(cx.waker().clone());
        // It has looked, and is in the middle of its poll when what it waits for comes.
        assert!(pause());
        Poll::Pending
    }));
    assert!(Pin::new(&mut task).poll(&mut cx).is_pending());
    told.set(true);
    kept.borrow_mut().take().unwrap().wake();
    assert_eq!(woken.0.load(Ordering::Relaxed), 1);
    assert!(Pin::new(&mut task).poll(&mut cx).is_pending());
    assert_eq!(woken.0.load(Ordering::Relaxed), 2, "it is polled once more");
    assert!(Pin::new(&mut task).poll(&mut cx).is_ready());
}

#[test]
fn the_depth_is_told_whichever_stack_a_task_is_on() {
    /// Depth below so many calls.
    #[inline(never)]
    fn below(calls: usize) -> usize {
        let here = [calls; 64];
        match calls {
            0 => stack_depth(),
            _ => below(std::hint::black_box(here)[calls % 64] - 1),
        }
    }
    let mut first = on_stack(async { pause() });
    let mut task = on_stack(async {
        let mut all = vec![(below(0), below(100))];
        once().await;
        all.push((below(0), below(100)));
        all
    });
    assert!(poll(&mut task).is_pending());
    // Its stack is another's now.
    assert!(poll(&mut first).is_pending());
    let Poll::Ready(all) = poll(&mut task) else {
        panic!("it waits once");
    };
    for (shallow, deep) in &all {
        assert!(*shallow < 1 << 16, "{all:?}");
        assert!((51_200..1 << 20).contains(&(deep - shallow)), "{all:?}");
    }
    assert!(all[0].0.abs_diff(all[1].0) < 4096, "{all:?}");
    assert!(poll(&mut first).is_ready());
}

/// Recurses with frames of a few hundred bytes, and asks for more whenever less than 64 KiB are left.
fn far_below(calls: usize, at_the_end: &mut dyn FnMut()) -> usize {
    let here = std::hint::black_box([calls; 64]);
    if calls == 0 {
        at_the_end();
        return stack_depth();
    }
    let go_on = |end: &mut dyn FnMut()| far_below(here[calls % 64] - 1, end);
    match remaining_stack() {
        Some(left) if left >= 64 << 10 => go_on(at_the_end),
        _ => with_stack(1 << 20, || go_on(at_the_end)).unwrap(),
    }
}

#[test]
fn a_stack_goes_on_in_segments_and_may_be_suspended_in_them() {
    for _ in 0..2 {
        let mut other = on_stack(async { far_below(10_000, &mut || assert!(pause())) });
        let mut task = on_stack(async {
            let before = remaining_stack().unwrap();
            let depth = far_below(50_000, &mut || {
                assert!(pause());
                assert!(pause());
            });
            assert!(depth > 50_000 * 512, "{depth}");
            assert!(remaining_stack().unwrap().abs_diff(before) < 4096);
            stack_depth()
        });
        assert!(poll(&mut task).is_pending());
        assert!(poll(&mut other).is_pending());
        assert!(poll(&mut task).is_pending());
        assert!(poll(&mut other).is_ready());
        let Poll::Ready(depth) = poll(&mut task) else {
            panic!("it stops twice");
        };
        assert!(depth < 1 << 16, "{depth}");
    }
    // On a thread's own stack, too.
    assert!(remaining_stack().is_none());
    assert!(far_below(50_000, &mut || assert!(!pause())) > 50_000 * 512);
    assert!(remaining_stack().is_none());
}

#[test]
fn a_panic_leaves_a_segment() {
    let mut task = on_stack(async {
        let before = remaining_stack().unwrap();
        let panicked = catch_unwind(|| {
            with_stack(64 << 20, || {
                assert!(remaining_stack().unwrap() > 63 << 20);
                panic!("as the test wants it")
            })
        });
        assert!(panicked.is_err());
        remaining_stack().unwrap().abs_diff(before) < 4096
    });
    assert_eq!(poll(&mut task), Poll::Ready(true));
}

#[test]
fn a_future_is_polled_with_as_much_as_it_needs() {
    let mut task = on_stack(poll_with_stack(64 << 20, async {
        assert!(remaining_stack().unwrap() > 63 << 20);
        once().await;
        assert!(pause());
        remaining_stack().unwrap() > 63 << 20
    }));
    assert!(poll(&mut task).is_pending());
    assert!(poll(&mut task).is_pending());
    assert!(matches!(poll(&mut task), Poll::Ready(Ok(true))));
}

#[test]
fn a_segment_for_which_there_is_no_memory_is_told() {
    assert!(matches!(
        with_stack(usize::MAX - 1, || ()),
        Err(StackAllocError)
    ));
    assert!(matches!(
        with_stack(usize::MAX / 4, || ()),
        Err(StackAllocError)
    ));
}

#[test]
fn when_there_are_too_many_the_last_ones_go_on_without_stopping() {
    let mut tasks: Vec<_> = (0..STACKS_MAX + 10)
        .map(|_| on_stack(async { pause() }))
        .collect();
    let suspended = tasks
        .iter_mut()
        .map(poll)
        .filter(|polled| match polled {
            Poll::Pending => true,
            Poll::Ready(paused) => {
                assert!(!paused);
                false
            }
        })
        .count();
    assert_eq!(suspended, STACKS_MAX - 1);
    let mut one_more = on_stack(async { stack_depth() });
    assert!(poll(&mut one_more).is_ready(), "there is a stack for it");
    tasks.truncate(suspended);
    assert!(tasks.iter_mut().all(|task| poll(task).is_ready()));
    let mut task = on_stack(async { pause() });
    assert!(poll(&mut task).is_pending());
    assert_eq!(poll(&mut task), Poll::Ready(true));
}

#[test]
fn a_task_on_a_stack_may_poll_another_on_a_stack() {
    let mut task = on_stack(async {
        let mut inner = on_stack(async {
            assert!(pause());
            7
        });
        assert_eq!(poll(&mut inner), Poll::Pending);
        assert!(pause(), "the outer one is the running one again");
        poll(&mut inner)
    });
    assert!(poll(&mut task).is_pending());
    assert_eq!(poll(&mut task), Poll::Ready(Poll::Ready(7)));
}
