//! Threads of which one runs at a time, in virtual time.
//!
//! Invariants: a thread that runs is the current one; the clock moves only when nobody runs; who was told to run first
//! at the same moment runs first. A thread that sleeps is not woken early; one that waits is.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use logstead_env::{Clock, SimClock};
use parking_lot::{Condvar, Mutex};

/// What a thread does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ThreadState {
    Runs,
    Sleeps,
    Waits,
    Ended,
}

struct Seat {
    doing: ThreadState,
    /// Rises whenever it goes on: what was planned for it before is void then.
    turn: u64,
}

struct State {
    seats: Vec<Seat>,
    /// When who goes on; the second number tells apart what is planned for the same moment.
    plan: BinaryHeap<Reverse<(u64, u64, usize, u64)>>,
    planned: u64,
    current: Option<usize>,
}

/// Hears of each thread that stops running, just before it does.
pub(super) type MeterHook = Box<dyn Fn(usize) + Send + Sync>;

/// See the module's documentation.
pub(super) struct Scheduler {
    clock: Arc<SimClock>,
    state: Mutex<State>,
    bells: Vec<Condvar>,
    meter: OnceLock<MeterHook>,
}

impl Scheduler {
    pub(super) fn new(clock: Arc<SimClock>, threads: usize) -> Scheduler {
        let seat = || Seat {
            doing: ThreadState::Waits,
            turn: 0,
        };
        Scheduler {
            clock,
            state: Mutex::new(State {
                seats: (0..threads).map(|_| seat()).collect(),
                plan: BinaryHeap::new(),
                planned: threads as u64,
                current: None,
            }),
            bells: (0..threads).map(|_| Condvar::new()).collect(),
            meter: OnceLock::new(),
        }
    }

    /// Before the first thread enters.
    pub(super) fn set_meter(&self, meter: MeterHook) {
        let _set_once = self.meter.set(meter);
    }

    /// Takes note of what the running thread has done so far.
    pub(super) fn meter(&self, thread: usize) {
        if let Some(meter) = self.meter.get() {
            meter(thread);
        }
    }

    pub(super) fn now(&self) -> u64 {
        self.clock.monotonic().as_nanos()
    }

    /// Who runs now; nobody before [`Scheduler::begin`].
    pub(super) fn current(&self) -> Option<usize> {
        self.state.lock().current
    }

    /// The first call of each thread: comes back when it is its turn.
    pub(super) fn enter(&self, thread: usize) {
        let mut state = self.state.lock();
        let now = self.now();
        // In the order of their numbers, whoever comes first.
        state.plan.push(Reverse((now, thread as u64, thread, 0)));
        while state.current != Some(thread) {
            self.bells[thread].wait(&mut state);
        }
    }

    /// Lets the first one run, once all have entered.
    pub(super) fn begin(&self) {
        loop {
            let mut state = self.state.lock();
            if state.plan.len() == state.seats.len() {
                self.next(&mut state);
                return;
            }
            drop(state);
            logstead_env::sleep(Duration::from_micros(100));
        }
    }

    /// The thread spends time: nobody wakes it before.
    pub(super) fn sleep(&self, thread: usize, ns: u64) {
        if ns > 0 {
            self.leave(thread, ThreadState::Sleeps, Some(self.now() + ns));
        }
    }

    /// The thread has nothing to do until it is woken, or until then.
    pub(super) fn wait(&self, thread: usize, until: Option<u64>) {
        self.leave(thread, ThreadState::Waits, until);
    }

    /// A thread that waits goes on at this moment, at the latest.
    pub(super) fn wake(&self, thread: usize, at: u64) {
        let mut state = self.state.lock();
        if state.seats[thread].doing == ThreadState::Waits {
            state.plan_for(thread, at);
        }
    }

    /// The thread has come to its end.
    pub(super) fn end(&self, thread: usize) {
        self.meter(thread);
        let mut state = self.state.lock();
        state.seats[thread].doing = ThreadState::Ended;
        self.next(&mut state);
    }

    fn leave(&self, thread: usize, doing: ThreadState, until: Option<u64>) {
        self.meter(thread);
        let mut state = self.state.lock();
        debug_assert_eq!(state.current, Some(thread));
        state.seats[thread].doing = doing;
        if let Some(until) = until {
            state.plan_for(thread, until);
        }
        self.next(&mut state);
        while state.current != Some(thread) {
            self.bells[thread].wait(&mut state);
        }
    }

    /// Has the one go on whose moment comes first.
    ///
    /// # Panics
    /// If all who have not ended wait for ever: somebody was forgotten.
    fn next(&self, state: &mut State) {
        state.current = None;
        while let Some(Reverse((at, _, thread, turn))) = state.plan.pop() {
            let seat = &mut state.seats[thread];
            if seat.turn != turn || matches!(seat.doing, ThreadState::Runs | ThreadState::Ended) {
                continue;
            }
            seat.turn += 1;
            seat.doing = ThreadState::Runs;
            let ahead = at.saturating_sub(self.now());
            self.clock.advance(Duration::from_nanos(ahead));
            state.current = Some(thread);
            self.bells[thread].notify_one();
            return;
        }
        let forgotten = state
            .seats
            .iter()
            .any(|seat| seat.doing != ThreadState::Ended);
        assert!(!forgotten, "all who are left wait for ever");
    }
}

impl State {
    fn plan_for(&mut self, thread: usize, at: u64) {
        self.planned += 1;
        let turn = self.seats[thread].turn;
        self.plan.push(Reverse((at, self.planned, thread, turn)));
    }
}
