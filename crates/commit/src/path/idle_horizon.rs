//! The horizon that lanes record in their blocks, and what is recorded of it in a pause.
//!
//! A block records the horizon of its sealing, so the last blocks before a pause tell nothing of their own entries, and
//! whoever follows the log waits for more ([`follow`](logstead_wal::recovery::follow)). So an idle lane writes a block
//! without entries once the horizon has stood still for
//! [`CommitOptions::horizon_pause`](crate::CommitOptions::horizon_pause) and no block has recorded it: one a pause, and
//! none if nothing was committed since the last one.
//!
//! Invariant: who looks for pauses sleeps for good only after it has said so and then found nothing to record; who
//! moves the horizon looks afterwards whether somebody sleeps (T13).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::Thread;

use logstead_env::abort_on_panic;
use logstead_types::Csn;
use logstead_wal::{HorizonSource, Lane};

use super::CommitPath;
use crate::watermark::Watermark;

/// The horizon as lanes record it in their blocks: where [`CommitPath::advance_horizon`] has left the mark.
pub(super) struct PublishedHorizon {
    pub(super) horizon_watermark: Arc<Watermark>,
    /// The highest one that a block has taken.
    pub(super) recorded: Arc<AtomicU64>,
}

impl HorizonSource for PublishedHorizon {
    fn horizon(&self) -> Csn {
        let horizon = self.horizon_watermark.get();
        self.recorded.fetch_max(horizon, Ordering::SeqCst);
        Csn(horizon)
    }
}

/// Who looks for pauses.
pub(super) struct IdleHorizonRecorder {
    /// The highest horizon that a block has recorded.
    pub(super) recorded: Arc<AtomicU64>,
    sleeps: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: OnceLock<Thread>,
}

impl IdleHorizonRecorder {
    /// Nothing is to be recorded before the horizon is above `horizon`.
    pub(super) fn new(horizon: Csn) -> IdleHorizonRecorder {
        IdleHorizonRecorder {
            recorded: Arc::new(AtomicU64::new(horizon.get())),
            sleeps: Arc::default(),
            stop: Arc::default(),
            thread: OnceLock::new(),
        }
    }

    /// The horizon has moved.
    #[inline]
    pub(super) fn wake(&self) {
        if self.sleeps.load(Ordering::SeqCst) && self.sleeps.swap(false, Ordering::SeqCst) {
            self.unpark();
        }
    }

    fn unpark(&self) {
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }
}

impl Drop for IdleHorizonRecorder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.unpark();
    }
}

impl CommitPath {
    /// Has an idle lane record the horizon, if no block has done so. False: there is nothing to record, or every lane
    /// has something on its way.
    pub fn record_horizon(&self) -> bool {
        self.has_unrecorded_horizon() && self.lanes.iter().any(Lane::record_horizon)
    }

    fn has_unrecorded_horizon(&self) -> bool {
        self.pause.recorded.load(Ordering::SeqCst) < self.horizon_watermark.get()
    }

    /// Starts the thread that looks for pauses, if somebody wants that.
    pub(super) fn start_pause(&self) -> std::io::Result<()> {
        let Some(pause) = self.options.horizon_pause.filter(|_| self.options.threads) else {
            return Ok(());
        };
        let weak = self.this.clone();
        let (sleeps, stop) = (Arc::clone(&self.pause.sleeps), Arc::clone(&self.pause.stop));
        let handle = self.env.spawn("horizon", None, move || {
            // Whoever follows the log would wait for ever.
            let _watch = abort_on_panic("recording the horizon");
            while !stop.load(Ordering::SeqCst) {
                let Some(path) = weak.upgrade() else { return };
                sleeps.store(true, Ordering::SeqCst);
                if !path.has_unrecorded_horizon() {
                    drop(path);
                    // An unpark between the two has left its token.
                    std::thread::park();
                    continue;
                }
                sleeps.store(false, Ordering::SeqCst);
                let before = path.horizon_watermark.get();
                drop(path);
                logstead_env::sleep(pause);
                let Some(path) = weak.upgrade() else { return };
                if path.horizon_watermark.get() == before {
                    path.record_horizon();
                }
            }
        })?;
        let _set_once = self.pause.thread.set(handle.thread().clone());
        // It may have gone to sleep before anybody knew how to wake it.
        self.pause.unpark();
        Ok(())
    }
}
