//! A thread that takes checkpoints, by itself: every interval, and when asked.
//!
//! There is one pace, whoever asks: people, the interval, and the evictor, which wants what was changed to be saved so
//! that it can go.
//!
//! The rule: an interval after a checkpoint *began* the next one begins, or when the one before is through, if that
//! takes longer. One that fails leaves the one before in force; it is told, and tried again after a pause that doubles
//! from `RETRY_MIN` to `RETRY_MAX`, and is no longer than `RETRY_MIN` for who asks for one at once. When the log has
//! failed, or is somebody else's, the thread ends: nothing can be published any
//! more.
//!
//! One that is begun by the interval rests between slices of its walk, four times as long as it has worked, so that it
//! takes a fifth of a core and not all of one in a burst, which commits would feel; but in all no longer than half of
//! the interval, and not any more once it is asked for another one, or somebody waits ([`Engine::checkpoint`]). One
//! that was asked for does not rest.
//!
//! Waits are timed by the machine's own clock: which moment a checkpoint is taken at is nothing that correctness hangs
//! on.

use crate::page_store::requests::{CheckpointRequest, CheckpointerShared};
use std::sync::Arc;
use std::time::Duration;

use logstead_env::JoinHandle;

use crate::engine::Engine;
use crate::page_store::{CheckpointError, CheckpointReport};

/// How long to rest, by how long was worked.
const RESTS: u32 = 4;
/// The longest rest: a slice that has waited for the home was no load on anybody.
const REST_MAX: Duration = Duration::from_millis(10);

/// Hears what came of each checkpoint that the thread took.
pub type CheckpointListener = Box<dyn Fn(&Result<CheckpointReport, CheckpointError>) + Send + Sync>;

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
    use crate::page_store::requests::{RETRY_MAX, pause_after};

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
