//! How time passes for requests that wait: by the clock, or by hand in tests, which thus wait for nothing and depend on
//! no machine's speed.

use parking_lot::Mutex;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// What is ready when some time has passed.
type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// See the module's documentation.
#[derive(Clone)]
pub struct Timer(Arc<dyn Fn(Duration) -> Sleep + Send + Sync>);

impl Timer {
    /// Time that passes when [`TimerControl::pass`] is called.
    pub fn by_hand() -> (Timer, TimerControl) {
        let hand = TimerControl::default();
        let waits = Arc::clone(&hand.0);
        let sleep = move |time| {
            let wait = Arc::new(Mutex::new(Wait::default()));
            waits.lock().push((time, Arc::clone(&wait)));
            Box::pin(Waiting(wait)) as Sleep
        };
        (Timer(Arc::new(sleep)), hand)
    }

    /// Called in a thread of the runtime.
    pub(super) fn sleep(&self, time: Duration) -> Sleep {
        (self.0)(time)
    }
}

impl Default for Timer {
    fn default() -> Timer {
        Timer(Arc::new(|time| Box::pin(tokio::time::sleep(time))))
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Timer")
    }
}

#[derive(Default)]
struct Wait {
    over: bool,
    waker: Option<Waker>,
}

/// Lets the time of a [`Timer`] pass.
#[derive(Clone, Default)]
pub struct TimerControl(Arc<Mutex<Vec<TimerRequest>>>);

/// How long somebody wants to wait, and what he shares with the hand.
type TimerRequest = (Duration, Arc<Mutex<Wait>>);

impl fmt::Debug for TimerControl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.times()).finish()
    }
}

impl TimerControl {
    /// How long whoever still waits wants to wait, in the order in which they began.
    pub fn times(&self) -> Vec<Duration> {
        let mut waits = self.0.lock();
        // What nobody waits for any more has been answered.
        waits.retain(|(_, wait)| Arc::strong_count(wait) > 1);
        waits.iter().map(|(time, _)| *time).collect()
    }

    /// The time of all who wait now is over.
    pub fn pass(&self) {
        for (_, wait) in std::mem::take(&mut *self.0.lock()) {
            let waker = {
                let mut wait = wait.lock();
                wait.over = true;
                wait.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

struct Waiting(Arc<Mutex<Wait>>);

impl Future for Waiting {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut wait = self.0.lock();
        if wait.over {
            return Poll::Ready(());
        }
        wait.waker = Some(cx.waker().clone());
        Poll::Pending
    }
}
