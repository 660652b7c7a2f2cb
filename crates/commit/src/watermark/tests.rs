//! Wakes what was passed, nothing else; loses nobody.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::task::Wake;

use super::*;

#[derive(Clone)]
struct Mark(Arc<Watermark>);
impl AsRef<Watermark> for Mark {
    fn as_ref(&self) -> &Watermark {
        &self.0
    }
}

#[derive(Default)]
struct Count(AtomicUsize);
impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn poll<F: Future + Unpin>(future: &mut F, count: &Arc<Count>) -> Poll<F::Output> {
    Pin::new(future).poll(&mut Context::from_waker(&Waker::from(count.clone())))
}

#[test]
fn wakes_exactly_those_it_passes() {
    let mark = Mark(Arc::new(Watermark::new(5)));
    let (near, far) = (Arc::new(Count::default()), Arc::new(Count::default()));
    let mut at_seven = Watermark::wait(mark.clone(), 7);
    let mut at_nine = Watermark::wait(mark.clone(), 9);
    assert!(poll(&mut at_seven, &near).is_pending());
    assert!(poll(&mut at_nine, &far).is_pending());
    mark.0.advance(8);
    assert_eq!(near.0.load(Ordering::SeqCst), 1);
    assert_eq!(far.0.load(Ordering::SeqCst), 0);
    assert_eq!(poll(&mut at_seven, &near), Poll::Ready(Ok(())));
    drop(at_nine);
    assert_eq!(mark.0.waiting(), 0, "a dropped wait is taken out");
    assert_eq!(
        poll(&mut Watermark::wait(mark.clone(), 8), &near),
        Poll::Ready(Ok(()))
    );
}

#[test]
fn failure_ends_waits_but_not_what_was_reached() {
    let mark = Mark(Arc::new(Watermark::new(5)));
    let count = Arc::new(Count::default());
    let mut wait = Watermark::wait(mark.clone(), 7);
    assert!(poll(&mut wait, &count).is_pending());
    mark.0.fail(LogFailed::new("no space"));
    assert_eq!(count.0.load(Ordering::SeqCst), 1);
    assert_eq!(
        poll(&mut wait, &count),
        Poll::Ready(Err(LogFailed::new("no space")))
    );
    assert_eq!(
        poll(&mut Watermark::wait(mark.clone(), 5), &count),
        Poll::Ready(Ok(()))
    );
    assert!(mark.0.failure().is_some());
}

/// T13, hammered: one thread moves the value one by one while others wait for each value in turn.
#[test]
#[expect(clippy::disallowed_methods, reason = "real threads are the point")]
fn no_wakeup_is_lost() {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let mark = Mark(Arc::new(Watermark::new(0)));
    let waiters: Vec<_> = (0..3)
        .map(|_| {
            let mark = mark.clone();
            std::thread::spawn(move || {
                let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
                for n in 1..=2000 {
                    let mut wait = Watermark::wait(mark.clone(), n);
                    while Pin::new(&mut wait)
                        .poll(&mut Context::from_waker(&waker))
                        .is_pending()
                    {
                        std::thread::park();
                    }
                }
            })
        })
        .collect();
    for n in 1..=2000 {
        mark.0.advance(n);
        if n % 7 == 0 {
            std::thread::yield_now();
        }
    }
    for waiter in waiters {
        waiter.join().expect("waiter");
    }
}
