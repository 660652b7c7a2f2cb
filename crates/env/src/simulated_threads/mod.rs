//! Threads in virtual time: the code that runs in the server's threads, in one order that follows from a seed.
//!
//! Each simulated thread is a thread of the machine, but one runs at a time: who waits (for a time, a condition
//! variable, a channel, a lock, bytes of a connection) hands over to one that can go on, by chance; when nobody can,
//! the clock goes on to the first moment at which somebody can. What a thread starts is simulated too. Threads belong
//! to *processes*, which are numbers: a process can stand still for a time, or be killed, and the network can be cut
//! between any two.
//!
//! Who waits must do it by what this crate offers: [`sleep`](crate::sleep()), [`Condvar`](crate::Condvar),
//! [`channel`](crate::channel()), [`LongMutex`](crate::LongMutex) for a lock that is held by others while they wait,
//! [`SimStream`]. Outside of a simulation these are what the standard library and `parking_lot` have.
//!
//! Invariants:
//! - One seed, one order: nothing here looks at the machine's clock, or at which thread the machine runs first.
//! - A thread that panics ends the process, after it has said which run that was: others would wait for it.
//! - When nobody can ever go on, the process says who waits, and ends.
//!
//! Does not: interrupt a thread that does not wait. So what is done between two waits happens at one moment.

mod network;
mod stream;
#[cfg(test)]
mod tests;

pub use network::{Cut, SimNetwork};
pub use stream::{SimListener, SimStream};

use crate::random::{GOLDEN_GAMMA, split_mix};
use crate::{Clock, Instant, SimClock};
use network::NetworkState;
use parking_lot::Mutex;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// A process of a simulation.
pub type ProcessNumber = u32;

/// Stack of each thread: that of the server's.
const STACK_BYTES: usize = 16 << 20;
/// How long threads may go on after the body of [`SimThreads::run`] has ended, in virtual time.
const END_TIME: Duration = Duration::from_secs(3600);

/// See the module's documentation. Clones are the same simulation.
#[derive(Clone)]
pub struct SimThreads {
    shared: Arc<Shared>,
}

struct Shared {
    /// What it is called where it goes wrong: what runs it again.
    name: String,
    clock: Arc<SimClock>,
    state: Mutex<State>,
    network: Mutex<NetworkState>,
}

struct State {
    random: u64,
    next: u64,
    threads: BTreeMap<u64, SimThread>,
    /// Those that can go on.
    ready: Vec<u64>,
    /// Those that could, but for their process, which stands still.
    held: Vec<u64>,
    /// By what they wait for.
    waiting: BTreeMap<usize, Vec<u64>>,
    /// Those that wait no longer than that.
    until: BTreeSet<(Instant, u64)>,
    /// Processes that stand still, and until when.
    paused: BTreeMap<ProcessNumber, Instant>,
    killed: BTreeSet<ProcessNumber>,
    switches: u64,
    switches_max: u64,
}

struct SimThread {
    process: ProcessNumber,
    name: String,
    waits: Waits,
    /// The wait that ended last was over because its time was.
    timed_out: bool,
    turn: Arc<Turn>,
}

/// What a thread waits for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waits {
    /// Its turn.
    Turn,
    /// That somebody wakes who waits for this key, or the time.
    Until(usize, Option<Instant>),
}

/// How a thread hears that it goes on.
#[derive(Default)]
struct Turn {
    go: AtomicBool,
    thread: OnceLock<std::thread::Thread>,
}

impl Turn {
    fn give(&self) {
        self.go.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    fn take(&self) {
        while !self.go.swap(false, Ordering::Acquire) {
            std::thread::park();
        }
    }
}

/// A simulated thread. Dropping the handle detaches the thread.
#[derive(Debug)]
pub struct SimJoinHandle {
    pub(crate) inner: std::thread::JoinHandle<()>,
    pub(crate) number: u64,
}

impl SimJoinHandle {
    /// Waits, as a simulated thread, until it has ended.
    pub fn join(self) -> std::io::Result<()> {
        if let Some(current) = current() {
            current.join(self.number);
        }
        let ended = self.inner.join();
        ended.map_err(|_| std::io::Error::other("the thread panicked"))
    }
}

/// The thread that asks, as one of a simulation.
#[derive(Clone)]
pub(crate) struct Current {
    pub(crate) threads: SimThreads,
    number: u64,
}

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
    /// There is one: everybody asks, and hardly anybody is simulated.
    static IS_SIMULATED: Cell<bool> = const { Cell::new(false) };
    static KILLED: Cell<bool> = const { Cell::new(false) };
}

/// Unwinds a thread whose process is killed.
struct Killed;

/// Is the calling thread one of a simulated process that is killed? It unwinds, and is not to blame.
pub(crate) fn is_killed() -> bool {
    KILLED.get()
}

/// The calling thread, if it is simulated.
#[inline]
pub(crate) fn current() -> Option<Current> {
    match IS_SIMULATED.get() {
        true => CURRENT.with_borrow(Clone::clone),
        false => None,
    }
}

fn set_current(current: Option<Current>) {
    IS_SIMULATED.set(current.is_some());
    CURRENT.set(current);
}

/// Ends the process when a simulated thread panics.
struct EndsRun(SimThreads);

impl Drop for EndsRun {
    fn drop(&mut self) {
        if std::thread::panicking() && !is_killed() {
            self.0.end_process("a thread panicked");
        }
    }
}

impl Current {
    /// Waits until somebody wakes who waits for `key`, or until the time. True: the time is over.
    pub(crate) fn wait(&self, key: usize, until: Option<Instant>) -> bool {
        let shared = &self.threads.shared;
        let mut state = shared.state.lock();
        let Some(own) = state.threads.get_mut(&self.number) else {
            return true;
        };
        own.waits = Waits::Until(key, until);
        let turn = Arc::clone(&own.turn);
        state.waiting.entry(key).or_default().push(self.number);
        state.until.extend(until.map(|until| (until, self.number)));
        let next = self.threads.next_turn(&mut state);
        drop(state);
        if !Arc::ptr_eq(&next, &turn) {
            next.give();
            turn.take();
        }
        let state = shared.state.lock();
        let own = state.threads.get(&self.number);
        let (timed_out, process) = own.map_or((true, 0), |own| (own.timed_out, own.process));
        let is_killed = state.killed.contains(&process);
        drop(state);
        // What is dropped on the way out may wait.
        if is_killed && !std::thread::panicking() {
            KILLED.set(true);
            std::panic::resume_unwind(Box::new(Killed));
        }
        timed_out
    }

    /// Lets time go by.
    pub(crate) fn sleep(&self, time: Duration) {
        let until = self.threads.now() + time;
        self.wait(0, Some(until));
    }

    /// The process that the thread belongs to.
    pub(crate) fn process(&self) -> ProcessNumber {
        let state = self.threads.shared.state.lock();
        let own = state.threads.get(&self.number);
        own.map_or(0, |own| own.process)
    }

    /// Waits until a thread has ended.
    pub(crate) fn join(&self, number: u64) {
        let is_there = || {
            self.threads
                .shared
                .state
                .lock()
                .threads
                .contains_key(&number)
        };
        while is_there() {
            self.wait(end_key(number), None);
        }
    }
}

/// What is waited for until a thread has ended. No address is odd.
fn end_key(number: u64) -> usize {
    (number as usize) << 1 | 1
}

impl SimThreads {
    /// A simulation of this seed. `name` tells people how to run it again.
    pub fn new(seed: u64, name: &str) -> SimThreads {
        SimThreads {
            shared: Arc::new(Shared {
                name: name.to_owned(),
                clock: Arc::new(SimClock::new()),
                state: Mutex::new(State {
                    random: split_mix(seed),
                    next: 0,
                    threads: BTreeMap::new(),
                    ready: Vec::new(),
                    held: Vec::new(),
                    waiting: BTreeMap::new(),
                    until: BTreeSet::new(),
                    paused: BTreeMap::new(),
                    killed: BTreeSet::new(),
                    switches: 0,
                    switches_max: u64::MAX,
                }),
                network: Mutex::new(NetworkState::new(!seed)),
            }),
        }
    }

    /// Its time.
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock) as Arc<dyn Clock>
    }

    /// Its network.
    pub fn network(&self) -> SimNetwork {
        SimNetwork(self.clone())
    }

    pub(crate) fn now(&self) -> Instant {
        self.shared.clock.monotonic()
    }

    /// How often threads have handed over.
    pub fn switches(&self) -> u64 {
        self.shared.state.lock().switches
    }

    /// A run in which threads hand over more often than this has no end: the process says so, and ends.
    pub fn limit_switches(&self, most: u64) {
        self.shared.state.lock().switches_max = most;
    }

    /// Runs `body` as the first thread, of process 0, and returns when all threads have ended that it started.
    pub fn run<T>(&self, body: impl FnOnce() -> T) -> T {
        let number = self.enter(0, "main");
        let own = Current {
            threads: self.clone(),
            number,
        };
        let turn = Arc::clone(&self.shared.state.lock().threads[&number].turn);
        let _first = turn.thread.set(std::thread::current());
        let watch = EndsRun(self.clone());
        set_current(Some(own.clone()));
        let value = body();
        let end = self.now() + END_TIME;
        while self.shared.state.lock().threads.len() > 1 {
            if self.now() > end {
                self.say_who_waits(&self.shared.state.lock());
                self.end_process("threads did not end");
            }
            own.sleep(Duration::from_millis(10));
        }
        set_current(None);
        self.shared.state.lock().threads.clear();
        drop(watch);
        value
    }

    /// Starts a thread of another process.
    pub fn spawn_in<F>(
        &self,
        process: ProcessNumber,
        name: &str,
        body: F,
    ) -> std::io::Result<SimJoinHandle>
    where
        F: FnOnce() + Send + 'static,
    {
        let number = self.enter(process, name);
        let turn = Arc::clone(&self.shared.state.lock().threads[&number].turn);
        let (threads, own_turn) = (self.clone(), Arc::clone(&turn));
        let thread = std::thread::Builder::new().name(name.to_owned());
        let started = thread.stack_size(STACK_BYTES).spawn(move || {
            own_turn.take();
            set_current(Some(Current {
                threads: threads.clone(),
                number,
            }));
            let body = || {
                let _watch = EndsRun(threads.clone());
                if !threads.shared.state.lock().killed.contains(&process) {
                    body();
                }
            };
            // One that panics has ended the process by itself.
            let _killed_or_not = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
            threads.leave(number);
        });
        match started {
            Ok(inner) => {
                let _only_here = turn.thread.set(inner.thread().clone());
                Ok(SimJoinHandle { inner, number })
            }
            Err(error) => {
                self.shared.state.lock().threads.remove(&number);
                Err(error)
            }
        }
    }

    /// A process stands still for so long: what it waits for may come meanwhile.
    pub fn pause(&self, process: ProcessNumber, time: Duration) {
        let until = self.now() + time;
        self.shared.state.lock().paused.insert(process, until);
    }

    /// The process goes on.
    pub fn resume(&self, process: ProcessNumber) {
        let mut state = self.shared.state.lock();
        state.paused.remove(&process);
        state.release();
    }

    /// A process is killed: none of its threads goes on, but for what they drop where they are. It does not come back.
    pub fn kill(&self, process: ProcessNumber) {
        let mut state = self.shared.state.lock();
        state.killed.insert(process);
        state.paused.remove(&process);
        state.release();
        let of_process = |(_, thread): &(&u64, &SimThread)| thread.process == process;
        let threads = state.threads.iter().filter(of_process);
        let threads: Vec<u64> = threads.map(|(number, _)| *number).collect();
        for number in threads {
            state.go_on(number, false);
        }
    }

    fn enter(&self, process: ProcessNumber, name: &str) -> u64 {
        let mut state = self.shared.state.lock();
        let number = state.next;
        state.next += 1;
        let thread = SimThread {
            process,
            name: name.to_owned(),
            waits: Waits::Turn,
            timed_out: false,
            turn: Arc::default(),
        };
        state.threads.insert(number, thread);
        if number != 0 {
            state.ready.push(number);
        }
        number
    }

    /// The calling thread has ended.
    fn leave(&self, number: u64) {
        set_current(None);
        let mut state = self.shared.state.lock();
        state.threads.remove(&number);
        state.wake(end_key(number), true);
        let next = self.next_turn(&mut state);
        drop(state);
        next.give();
    }

    /// Wakes one, or all, who wait for `key`.
    pub(crate) fn wake(&self, key: usize, all: bool) {
        self.shared.state.lock().wake(key, all);
    }

    /// Whose turn it is now.
    fn next_turn(&self, state: &mut State) -> Arc<Turn> {
        state.switches += 1;
        if state.switches > state.switches_max {
            self.say_who_waits(state);
            self.end_process("it has no end");
        }
        loop {
            let now = self.now();
            while !state.ready.is_empty() {
                let chosen = state.roll(state.ready.len());
                let number = state.ready.swap_remove(chosen);
                let Some(thread) = state.threads.get(&number) else {
                    continue;
                };
                let resumed = state.paused.get(&thread.process);
                if resumed.is_none_or(|resumed| *resumed <= now) {
                    return Arc::clone(&thread.turn);
                }
                state.held.push(number);
            }
            let of_held = |number: &u64| {
                let process = state.threads.get(number)?.process;
                state.paused.get(&process).copied()
            };
            let resumed = state.held.iter().filter_map(of_held).min();
            let over = state.until.first().map(|(until, _)| *until);
            let Some(next) = resumed.into_iter().chain(over).min() else {
                self.say_who_waits(state);
                self.end_process("nobody can go on");
            };
            self.shared.clock.advance(next.since(now));
            while let Some(&(until, number)) = state.until.first()
                && until <= next
            {
                state.go_on(number, true);
            }
            state.paused.retain(|_, until| *until > next);
            state.release();
        }
    }

    fn say_who_waits(&self, state: &State) {
        let mut text = String::new();
        for (number, thread) in &state.threads {
            let (process, name) = (thread.process, &thread.name);
            let what = match thread.waits {
                Waits::Turn => "could go on".to_owned(),
                Waits::Until(key, None) => format!("waits for {key:x}"),
                Waits::Until(key, Some(until)) => {
                    format!("waits for {key:x} until {} us", until.as_nanos() / 1000)
                }
            };
            let _in_memory = writeln!(text, "thread {number} {name} of process {process} {what}");
        }
        let _nobody_may_be_reading = std::io::stderr().write_all(text.as_bytes());
    }

    fn end_process(&self, why: &str) -> ! {
        let text = format!(
            "simulation {}: {why}, at {} us\n",
            self.shared.name,
            self.now().as_nanos() / 1000
        );
        let _nobody_may_be_reading = std::io::stderr().write_all(text.as_bytes());
        std::process::abort();
    }
}

impl State {
    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.random = self.random.wrapping_add(GOLDEN_GAMMA);
        (split_mix(self.random) % sides.max(1) as u64) as usize
    }

    /// A thread's wait is over.
    fn go_on(&mut self, number: u64, timed_out: bool) {
        let Some(thread) = self.threads.get_mut(&number) else {
            return;
        };
        let Waits::Until(key, until) = thread.waits else {
            return;
        };
        (thread.waits, thread.timed_out) = (Waits::Turn, timed_out);
        if let Some(until) = until {
            self.until.remove(&(until, number));
        }
        if let Some(waiting) = self.waiting.get_mut(&key) {
            waiting.retain(|of| *of != number);
            if waiting.is_empty() {
                self.waiting.remove(&key);
            }
        }
        self.ready.push(number);
    }

    /// Those whose process goes on again can go on.
    fn release(&mut self) {
        for number in std::mem::take(&mut self.held) {
            let process = self.threads.get(&number).map(|thread| thread.process);
            match process.is_some_and(|process| self.paused.contains_key(&process)) {
                true => self.held.push(number),
                false => self.ready.push(number),
            }
        }
    }

    fn wake(&mut self, key: usize, all: bool) {
        let Some(waiting) = self.waiting.get(&key).cloned() else {
            return;
        };
        let chosen = match all {
            true => 0,
            false => self.roll(waiting.len()),
        };
        let count = if all { waiting.len() } else { 1 };
        for number in waiting.into_iter().skip(chosen).take(count) {
            self.go_on(number, false);
        }
    }
}
