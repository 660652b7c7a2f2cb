//! A thread that takes checkpoints, by itself: every interval, and when asked.
//!
//! There is one pace, whoever asks: people, the interval, and the evictor, which wants what was changed to be saved so that it can go.
//!
//! The rule: an interval after a checkpoint *began* the next one begins, or when the one before is through, if that takes longer. One
//! that fails leaves the one before in force; it is told, and tried again after a pause that doubles from
//! [`RETRY_MIN`] to [`RETRY_MAX`], and is no longer than [`RETRY_MIN`] for who asks for one at once. When the log has failed, or is somebody else's, the thread ends: nothing can be published any
//! more.
//!
//! One that is begun by the interval rests between slices of its walk, four times as long as it has worked, so that it takes a fifth of a core and not all of one in a
//! burst, which commits would feel; but in all no longer than half of the interval, and not any more once it is asked for another one, or somebody waits
//! ([`Engine::checkpoint`]). One that was asked for does not rest.
//!
//! Waits are timed by the machine's own clock: which moment a checkpoint is taken at is nothing that correctness hangs on.

use std::sync::Arc;
use std::time::Duration;

use logstead_env::JoinHandle;
use parking_lot::{Condvar, Mutex};

use super::{CheckpointError, CheckpointReport};
use crate::engine::Engine;

/// The first pause after a failure.
const RETRY_MIN: Duration = Duration::from_secs(1);
/// The longest pause between failures.
const RETRY_MAX: Duration = Duration::from_secs(30);
/// The least from one to the next when nobody waits for what it brings.
const ASKED_MIN: Duration = Duration::from_secs(1);

/// How long to rest, by how long was worked.
const RESTS: u32 = 4;
/// The longest rest: a slice that has waited for the home was no load on anybody.
const REST_MAX: Duration = Duration::from_millis(10);

/// Hears what came of each checkpoint that the thread took.
pub type CheckpointListener = Box<dyn Fn(&Result<CheckpointReport, CheckpointError>) + Send + Sync>;

/// When the next one is due, if somebody has asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum CheckpointRequest {
    No,
    /// Not sooner than [`ASKED_MIN`] after the one before.
    Soon,
    Now,
}

struct State {
    interval: Option<Duration>,
    asked: CheckpointRequest,
    stopping: bool,
}

impl State {
    /// How long after the beginning of the one before the next one is to begin.
    fn due(&self, failures: u32) -> Option<Duration> {
        if failures > 0 {
            // Also when nothing is to be done by itself: what was asked for has not happened. Who asks for one at once knows that something has changed:
            // what was removed on a full disk leaves less to write.
            let longest = match self.asked {
                CheckpointRequest::Now => RETRY_MIN,
                CheckpointRequest::Soon | CheckpointRequest::No => RETRY_MAX,
            };
            return Some(pause_after(failures).min(longest));
        }
        match (self.asked, self.interval) {
            (CheckpointRequest::Now, _) => Some(Duration::ZERO),
            (CheckpointRequest::Soon, interval) => {
                Some(interval.map_or(ASKED_MIN, |i| i.min(ASKED_MIN)))
            }
            (CheckpointRequest::No, interval) => interval,
        }
    }
}

/// Where a thread that takes checkpoints is asked for one.
pub(crate) struct CheckpointerShared {
    state: Mutex<State>,
    changed: Condvar,
}

impl CheckpointerShared {
    fn new(interval: Option<Duration>) -> CheckpointerShared {
        CheckpointerShared {
            state: Mutex::new(State {
                interval,
                asked: CheckpointRequest::No,
                stopping: false,
            }),
            changed: Condvar::new(),
        }
    }

    pub(super) fn ask(&self, at_once: bool) {
        let mut state = self.state.lock();
        let asked = if at_once {
            CheckpointRequest::Now
        } else {
            CheckpointRequest::Soon
        };
        if asked > state.asked {
            state.asked = asked;
            self.changed.notify_all();
        }
    }

    /// Waits, unless somebody wants another one or the thread's end.
    fn rest(&self, time: Duration) {
        let mut state = self.state.lock();
        if state.asked == CheckpointRequest::No && !state.stopping && !time.is_zero() {
            // Who wakes it too early makes a rest shorter.
            self.changed.wait_for(&mut state, time);
        }
    }
}

/// Takes checkpoints until it is dropped, which waits for the one under way.
pub struct Checkpointer {
    shared: Arc<CheckpointerShared>,
    engine: Engine,
    thread: Option<JoinHandle>,
}

/// What a checkpoint may still rest.
struct Rests(Duration);

impl Rests {
    /// How long to rest after a slice.
    fn after(&mut self, worked: Duration) -> Duration {
        let rest = worked.saturating_mul(RESTS).min(REST_MAX).min(self.0);
        self.0 -= rest;
        rest
    }
}

/// How long to pause after so many failures in a row.
fn pause_after(failures: u32) -> Duration {
    let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(0);
    match doubled {
        0 => RETRY_MAX,
        times => RETRY_MIN.saturating_mul(times).min(RETRY_MAX),
    }
}

impl Checkpointer {
    /// Starts the thread. `None`: only when asked. `listener` is called on the thread.
    pub fn start(
        engine: &Engine,
        interval: Option<Duration>,
        listener: CheckpointListener,
    ) -> std::io::Result<Checkpointer> {
        let shared = Arc::new(CheckpointerShared::new(interval));
        let (mine, its) = (Arc::clone(&shared), engine.clone());
        let body = move || run(&mine, &its, &listener);
        let thread = logstead_env::spawn("checkpoints", None, body)?;
        let asked = &engine.inner().checkpoints.asked;
        *asked.lock() = Some(Arc::clone(&shared));
        Ok(Checkpointer {
            shared,
            engine: engine.clone(),
            thread: Some(thread),
        })
    }

    /// Another interval, from now on. `None`: only when asked.
    pub fn set_interval(&self, interval: Option<Duration>) {
        self.shared.state.lock().interval = interval;
        self.shared.changed.notify_all();
    }

    /// Has a checkpoint taken soon, without waiting for it.
    pub fn ask(&self) {
        self.shared.ask(true);
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.changed.notify_all();
        {
            let mut asked = self.engine.inner().checkpoints.asked.lock();
            // Another may have taken its place.
            let _gone = asked.take_if(|asked| Arc::ptr_eq(asked, &self.shared));
        }
        if let Some(thread) = self.thread.take() {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
    }
}

/// Waits until it is time, and tells how long the next one may rest. `None`: it is over.
fn wait(shared: &CheckpointerShared, begun: std::time::Instant, failures: u32) -> Option<Rests> {
    let mut state = shared.state.lock();
    loop {
        if state.stopping {
            return None;
        }
        match state.due(failures) {
            None => shared.changed.wait(&mut state),
            Some(due) => {
                let left = due.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    let asked = std::mem::replace(&mut state.asked, CheckpointRequest::No);
                    let rests = state
                        .interval
                        .filter(|_| asked == CheckpointRequest::No && failures == 0);
                    return Some(Rests(rests.unwrap_or_default() / 2));
                }
                shared.changed.wait_for(&mut state, left);
            }
        }
    }
}

fn run(shared: &CheckpointerShared, engine: &Engine, listener: &CheckpointListener) {
    let mut failures = 0;
    let mut begun = now();
    while let Some(mut rests) = wait(shared, begun, failures) {
        begun = now();
        let taken = engine.checkpoint_resting(|worked| shared.rest(rests.after(worked)));
        failures = match &taken {
            Ok(_) => 0,
            Err(_) => failures.saturating_add(1),
        };
        listener(&taken);
        if taken.is_err_and(|error| error.is_final()) {
            return;
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "paired with waits on a condition, which the machine times; see the module's documentation"
)]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rests_are_four_times_the_work_up_to_half_of_the_interval() {
        let mut rests = Rests(Duration::from_millis(20));
        let mut after = |millis| rests.after(Duration::from_millis(millis)).as_millis();
        assert_eq!([0, 1, 2].map(&mut after), [0, 4, 8]);
        assert_eq!([1, 1, 1].map(&mut after), [4, 4, 0], "nothing is left");
        let mut rests = Rests(Duration::from_secs(1));
        assert_eq!(rests.after(Duration::MAX), REST_MAX);
    }

    /// Who asks for one, and whoever tries again what has failed, does not want it to take longer.
    #[test]
    fn checkpoints_rest_that_nobody_asked_for() {
        let tiny = Some(Duration::from_nanos(8));
        let rests = |asked, interval, failures| {
            let shared = CheckpointerShared::new(interval);
            shared.state.lock().asked = asked;
            // Long ago.
            let begun = now() - 2 * RETRY_MAX;
            let rests = wait(&shared, begun, failures).map(|rests| rests.0.as_nanos());
            assert!(
                shared.state.lock().asked == CheckpointRequest::No,
                "it is being answered"
            );
            rests
        };
        assert_eq!(rests(CheckpointRequest::No, tiny, 0), Some(4));
        assert_eq!(rests(CheckpointRequest::Now, tiny, 0), Some(0));
        assert_eq!(rests(CheckpointRequest::Soon, tiny, 0), Some(0));
        assert_eq!(rests(CheckpointRequest::Now, None, 0), Some(0));
        assert_eq!(rests(CheckpointRequest::No, tiny, 3), Some(0));
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u64> = [1, 2, 3, 6, 40, 4_000]
            .map(|n| pause_after(n).as_secs())
            .into();
        assert_eq!(pauses, [1, 2, 4, 30, 30, 30]);
    }
}
