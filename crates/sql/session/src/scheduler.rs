//! What the statements of one worker share of its time: the line of long ones, and the time that each has used.
//!
//! Does not: decide who goes on (`turns`).

use logstead_env::{Clock, Instant};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// A worker is busy if its sessions took so many steps, about two for each request, in each stretch of so much time.
const BUSY_STEPS: u64 = 20;

const STRETCH: Duration = Duration::from_millis(10);

/// One worker's turns. Used by its thread alone; shared because what reaches a session from elsewhere is.
pub(crate) struct WorkerScheduler {
    pub(super) clock: Arc<dyn Clock>,
    /// What short statements did: rises with each step.
    pub(super) steps: AtomicU64,
    /// Somebody waits for this round and the next ones to be over quickly.
    pub(super) held: AtomicBool,
    pub(super) line: Mutex<LongStatementQueue>,
}

#[derive(Default)]
pub(super) struct LongStatementQueue {
    /// Long statements that could go on.
    pub(super) waiting: VecDeque<u64>,
    pub(super) next_ticket: u64,
    /// Turns that long statements have had.
    pub(super) turns: u64,
    /// When their share is due.
    pub(super) due: Instant,
    /// When the present stretch began, and after which step; whether the one before was busy.
    pub(super) stretch: (Instant, u64),
    pub(super) busy: bool,
}

impl LongStatementQueue {
    /// Goes on to the next stretch when this one is over.
    pub(super) fn measure(&mut self, now: Instant, steps: u64) {
        let (began, first) = self.stretch;
        let elapsed = now.since(began);
        if elapsed >= STRETCH {
            let stretches = elapsed.as_millis() / STRETCH.as_millis();
            self.busy = u128::from(steps.wrapping_sub(first)) >= u128::from(BUSY_STEPS) * stretches;
            self.stretch = (now, steps);
        }
    }
}

/// What of its worker's time a statement has used.
#[derive(Default)]
pub(crate) struct WorkerTime {
    /// It has been polled.
    pub(super) started: AtomicBool,
    pub(super) ns: AtomicU64,
    /// When it last went on after a pause in the middle of a poll: what was before is counted. 0 if it is, or there was
    /// none.
    pub(super) resumed_ns: AtomicU64,
}

impl WorkerTime {
    /// Another statement begins.
    pub(crate) fn clear(&self) {
        self.started.store(false, Ordering::Relaxed);
        self.ns.store(0, Ordering::Relaxed);
        self.resumed_ns.store(0, Ordering::Relaxed);
    }
}

impl WorkerScheduler {
    pub(crate) fn new(clock: Arc<dyn Clock>) -> WorkerScheduler {
        WorkerScheduler {
            clock,
            steps: AtomicU64::new(0),
            held: AtomicBool::new(false),
            line: Mutex::default(),
        }
    }

    /// The clock by which turns are measured.
    pub(crate) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Something short has been done.
    pub(crate) fn step(&self) {
        // One thread writes it.
        let steps = self.steps.load(Ordering::Relaxed);
        self.steps.store(steps.wrapping_add(1), Ordering::Relaxed);
    }

    /// Keeps long statements waiting, but for their share, until that is taken back.
    pub(crate) fn hold(&self, held: bool) {
        self.held.store(held, Ordering::Relaxed);
    }

    /// Turns that long statements have had.
    pub(crate) fn long_turns(&self) -> u64 {
        self.line.lock().turns
    }
}
