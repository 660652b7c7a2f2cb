//! How a thread that takes checkpoints is asked for one.
//!
//! Does not: take checkpoints (`crate::checkpoint`).

use parking_lot::{Condvar, Mutex};
use std::time::Duration;

/// The first pause after a failure.
const RETRY_MIN: Duration = Duration::from_secs(1);

/// The longest pause between failures.
pub(crate) const RETRY_MAX: Duration = Duration::from_secs(30);

/// The least from one to the next when nobody waits for what it brings.
const ASKED_MIN: Duration = Duration::from_secs(1);

/// When the next one is due, if somebody has asked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CheckpointRequest {
    No,
    /// Not sooner than [`ASKED_MIN`] after the one before.
    Soon,
    Now,
}

pub(crate) struct CheckpointerState {
    pub(crate) interval: Option<Duration>,
    pub(crate) asked: CheckpointRequest,
    pub(crate) stopping: bool,
}

impl CheckpointerState {
    /// How long after the beginning of the one before the next one is to begin.
    pub(crate) fn due(&self, failures: u32) -> Option<Duration> {
        if failures > 0 {
            // Also when nothing is to be done by itself: what was asked for has not happened. Who asks for one at once
            // knows that something has changed:
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
    pub(crate) state: Mutex<CheckpointerState>,
    pub(crate) changed: Condvar,
}

impl CheckpointerShared {
    pub(crate) fn new(interval: Option<Duration>) -> CheckpointerShared {
        CheckpointerShared {
            state: Mutex::new(CheckpointerState {
                interval,
                asked: CheckpointRequest::No,
                stopping: false,
            }),
            changed: Condvar::new(),
        }
    }

    pub(crate) fn ask(&self, at_once: bool) {
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
    pub(crate) fn rest(&self, time: Duration) {
        let mut state = self.state.lock();
        if state.asked == CheckpointRequest::No && !state.stopping && !time.is_zero() {
            // Who wakes it too early makes a rest shorter.
            self.changed.wait_for(&mut state, time);
        }
    }
}

/// How long to pause after so many failures in a row.
pub(crate) fn pause_after(failures: u32) -> Duration {
    let doubled = 1u32.checked_shl(failures.saturating_sub(1)).unwrap_or(0);
    match doubled {
        0 => RETRY_MAX,
        times => RETRY_MIN.saturating_mul(times).min(RETRY_MAX),
    }
}
