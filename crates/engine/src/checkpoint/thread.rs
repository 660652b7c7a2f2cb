//! A thread that takes checkpoints, by itself: every interval, and when asked.
//!
//! The rule: an interval after a checkpoint *began* the next one begins, or when the one before is through, if that takes longer. One
//! that fails leaves the one before in force; it is told, and tried again after a pause that doubles from
//! [`RETRY_MIN`] to [`RETRY_MAX`]. When the log has failed, or is somebody else's, the thread ends: nothing can be published any
//! more.
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

/// Hears what came of each checkpoint that the thread took.
pub type CheckpointListener = Box<dyn Fn(&Result<CheckpointReport, CheckpointError>) + Send + Sync>;

struct State {
    interval: Option<Duration>,
    asked: bool,
    stopping: bool,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Takes checkpoints until it is dropped, which waits for the one under way.
pub struct Checkpointer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle>,
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
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                interval,
                asked: false,
                stopping: false,
            }),
            changed: Condvar::new(),
        });
        let (mine, engine) = (Arc::clone(&shared), engine.clone());
        let body = move || run(&mine, &engine, &listener);
        let thread = logstead_env::spawn("checkpoints", None, body)?;
        Ok(Checkpointer {
            shared,
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
        self.shared.state.lock().asked = true;
        self.shared.changed.notify_all();
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
    }
}

/// Waits until it is time. False: it is over.
fn wait(shared: &Shared, begun: std::time::Instant, failures: u32) -> bool {
    let mut state = shared.state.lock();
    loop {
        if state.stopping {
            return false;
        }
        let due = match (failures, state.interval) {
            (0, _) if state.asked => Some(Duration::ZERO),
            (0, interval) => interval,
            // Also when nothing is to be done by itself: what was asked for has not happened.
            (failures, _) => Some(pause_after(failures)),
        };
        match due {
            None => shared.changed.wait(&mut state),
            Some(due) => {
                let left = due.saturating_sub(begun.elapsed());
                if left.is_zero() {
                    state.asked = false;
                    return true;
                }
                shared.changed.wait_for(&mut state, left);
            }
        }
    }
}

fn run(shared: &Shared, engine: &Engine, listener: &CheckpointListener) {
    let mut failures = 0;
    let mut begun = now();
    while wait(shared, begun, failures) {
        begun = now();
        let taken = engine.checkpoint();
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
    fn pauses_double_up_to_the_longest() {
        let pauses: Vec<u64> = [1, 2, 3, 6, 40, 4_000]
            .map(|n| pause_after(n).as_secs())
            .into();
        assert_eq!(pauses, [1, 2, 4, 30, 30, 30]);
    }
}
