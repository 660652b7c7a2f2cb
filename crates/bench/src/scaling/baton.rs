//! One thread of several runs at a time, and says which: the trace of a program has no threads in it.
//!
//! Each round goes to all who still run, in an order drawn anew. Whoever gets the baton stores to its own line of
//! [`Marks`](super::Marks); whoever gives it away stores to the line for pauses first, so that passing it on is counted
//! for nobody.
//!
//! Invariant: between a store to a worker's line and the next store to the line for pauses, that worker alone runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use logstead_env::SimClock;
use parking_lot::{Condvar, Mutex};

use crate::random::Rng;

/// Most workers of a traced run.
pub(super) const WORKERS_MAX: usize = 128;
/// Time that a round of all workers takes on the engine's clock, whatever it takes to trace.
const ROUND_NS: u64 = 4_000;

/// A line of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(super) struct MarkLine(AtomicU64);

/// Lines for workers, and behind them those for what else is to be told.
static LINES: [MarkLine; WORKERS_MAX + 4] =
    [const { MarkLine(AtomicU64::new(0)) }; WORKERS_MAX + 4];

/// What a store tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// This worker runs.
    Runs(usize),
    /// Nobody does.
    Pause,
    /// The worker that runs has ended a transaction.
    TransactionEnd,
    /// What follows is measured.
    WindowBegin,
    /// It was.
    WindowEnd,
}

impl Mark {
    fn place(self) -> usize {
        match self {
            Mark::Runs(worker) => worker,
            Mark::Pause => WORKERS_MAX,
            Mark::TransactionEnd => WORKERS_MAX + 1,
            Mark::WindowBegin => WORKERS_MAX + 2,
            Mark::WindowEnd => WORKERS_MAX + 3,
        }
    }

    pub(super) fn at(place: usize) -> Option<Mark> {
        let further = [
            Mark::Pause,
            Mark::TransactionEnd,
            Mark::WindowBegin,
            Mark::WindowEnd,
        ];
        match place.checked_sub(WORKERS_MAX) {
            None => Some(Mark::Runs(place)),
            Some(place) => further.get(place).copied(),
        }
    }

    /// Stores.
    pub(super) fn set(self) {
        LINES[self.place()].0.store(1, Ordering::SeqCst);
    }
}

/// Where the first line is.
pub(super) fn lines_address() -> usize {
    std::ptr::from_ref(&LINES) as usize
}

struct State {
    /// Who runs; none when all have ended.
    current: Option<usize>,
    /// Who has not ended.
    live: Vec<usize>,
    /// Who comes in this round, the last first.
    round: Vec<usize>,
    rng: Rng,
}

/// See the module's documentation.
pub(super) struct Baton {
    clock: Arc<SimClock>,
    state: Mutex<State>,
    bells: Vec<Condvar>,
    /// All threads run at once: nothing is passed on.
    is_free: bool,
}

impl Baton {
    /// The first worker has it. With `is_free` nobody ever waits for it.
    pub(super) fn new(workers: usize, is_free: bool, seed: u64, clock: Arc<SimClock>) -> Baton {
        Baton {
            clock,
            state: Mutex::new(State {
                current: Some(0),
                live: (0..workers).collect(),
                round: (1..workers).rev().collect(),
                rng: Rng::of_part(seed, u64::MAX - 1),
            }),
            bells: (0..workers).map(|_| Condvar::new()).collect(),
            is_free,
        }
    }

    /// Waits for the first time.
    pub(super) fn enter(&self, worker: usize) {
        if !self.is_free {
            self.wait(&mut self.state.lock(), worker);
            Mark::Runs(worker).set();
        }
    }

    /// Lets others run.
    pub(super) fn pass(&self, worker: usize) {
        if self.is_free {
            return;
        }
        Mark::Pause.set();
        {
            let mut state = self.state.lock();
            self.choose(&mut state);
            self.wait(&mut state, worker);
        }
        Mark::Runs(worker).set();
    }

    /// Does not come back.
    pub(super) fn leave(&self, worker: usize) {
        if self.is_free {
            return;
        }
        Mark::Pause.set();
        let mut state = self.state.lock();
        state.live.retain(|&other| other != worker);
        state.round.retain(|&other| other != worker);
        self.choose(&mut state);
    }

    fn choose(&self, state: &mut State) {
        let State {
            current,
            live,
            round,
            rng,
        } = state;
        if round.is_empty() {
            round.extend(live.iter().copied());
            for at in (1..round.len()).rev() {
                round.swap(at, rng.below(at as u64 + 1) as usize);
            }
        }
        *current = round.pop();
        self.clock
            .advance(Duration::from_nanos(ROUND_NS / live.len().max(1) as u64));
        if let Some(next) = *current {
            self.bells[next].notify_one();
        }
    }

    fn wait(&self, state: &mut parking_lot::MutexGuard<'_, State>, worker: usize) {
        while state.current != Some(worker) {
            self.bells[worker].wait(state);
        }
    }
}
