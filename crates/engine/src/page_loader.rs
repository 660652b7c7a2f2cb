//! Bringing in what is absent: who waits for it, and the threads that load it.
//!
//! A worker never reads a page itself. Who needs something absent asks for it here and parks; a loader thread takes the
//! oldest request, loads, and wakes all who asked for the same: one load however many wait. Rows of one chunk are one
//! request: those that were asked for when its turn comes are loaded together. What nobody waits for any
//! more when its turn comes is not loaded.
//!
//! A wait that ended well promises nothing: what was loaded may have been evicted again, or was asked for too late for
//! the load that was under way. The caller tries, and waits again. But a chunk
//! that somebody waits for stays until he has come back, or several who share room for one would never get anywhere.
//!
//! A transaction that misses one row of a chunk and then another gets all of it: it goes over rows that lie together,
//! as ranges of keys do that were inserted in their order.
//!
//! One that failed is forgotten: who asks next has it tried again.
//!
//! What somebody will want next is asked for as well, as runs of chunks ([`crate::read_ahead`]). They come last: a
//! thread takes one when nobody waits, half of the threads at most are at them, and one that is at a run leaves it when
//! somebody waits whom no other thread serves. Each chunk of a run is a fault of its own while it is loaded.
//!
//! *How* something is loaded is a [`FaultHandler`]'s affair. It is told what is wanted, on a loader thread, and returns
//! when that is in memory, was so already, or cannot be had. Loader threads are started when first needed; with none (a
//! simulation, which must be the same every time) the first to wait loads it himself.

use crate::page_fault::{FaultTarget, SlotRequest};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};

use foldhash::fast::FixedState;
use logstead_env::{JoinHandle, abort_on_panic};
use logstead_types::TableId;
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::fault_error::FaultError;
use crate::read_ahead::Prefetch;
use crate::version::SlotSet;

/// So many runs wait for a thread, at most.
const RUNS_MAX: usize = 256;

impl FaultTarget {
    fn key(&self) -> FaultKey {
        match self {
            FaultTarget::Rows { rows, number, .. } => {
                FaultKey::Chunk(Arc::as_ptr(rows).addr(), *number)
            }
            FaultTarget::Leaf { index, low } => {
                FaultKey::Leaf(Arc::as_ptr(index).addr(), low.clone())
            }
            FaultTarget::Past { past, table } => FaultKey::Past(Arc::as_ptr(past).addr(), *table),
            FaultTarget::Room { .. } | FaultTarget::Lost => FaultKey::Room,
        }
    }
}

/// Tells requests apart, by the address of whose it is: a request keeps that alive, so an address is not used again
/// meanwhile.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) enum FaultKey {
    Chunk(usize, u64),
    Leaf(usize, Box<[u8]>),
    Past(usize, Option<TableId>),
    Room,
}

/// Brings what is wanted into memory.
pub(crate) trait FaultHandler: Send + Sync {
    /// Returns when it is in memory, whoever brought it; of a chunk, the rows in `slots` that are needed, whatever
    /// `wanted` says, and those beside them if there is room. May block. Of one thing there is one load at a time.
    fn load(&self, wanted: &FaultTarget, slots: &SlotRequest) -> Result<(), FaultError>;

    /// Brings in the rest of a run, as far as there is room that nobody waits for. Before each chunk it asks `next`
    /// what is to become of it, and calls `done` behind each that was to be brought, whatever came of it.
    fn load_run(
        &self,
        run: &Prefetch,
        next: &dyn Fn(u64, &SlotSet) -> PrefetchDecision,
        done: &dyn Fn(u64),
    );
}

/// What is to become of the next chunk of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefetchDecision {
    /// It is to be brought in.
    Load,
    /// Nobody wants it any more, or somebody else brings it.
    Skip,
    /// It, and all behind it, is left for later.
    Defer,
}

/// One load, and who waits for it.
struct Fault {
    wanted: Arc<FaultTarget>,
    waiting: Mutex<FaultWaiters>,
}

#[derive(Default)]
pub(crate) struct FaultWaiters {
    /// Of a chunk: the rows that anybody who has come asks for.
    slots: SlotRequest,
    outcome: Option<Result<(), FaultError>>,
    /// By ticket.
    wakers: Vec<(u64, Waker)>,
    next_ticket: u64,
}

impl Fault {
    fn end(&self, outcome: Result<(), FaultError>) {
        let wakers = {
            let mut waiting = self.waiting.lock();
            waiting.outcome = Some(outcome);
            std::mem::take(&mut waiting.wakers)
        };
        for (_, waker) in wakers {
            waker.wake();
        }
    }
}

#[derive(Default)]
struct State {
    /// Asked for and not loaded yet.
    faults: HashMap<FaultKey, Arc<Fault>, FixedState>,
    /// Those that no thread has taken, oldest first.
    queue: VecDeque<Arc<Fault>>,
    /// Runs that no thread is at.
    ahead: VecDeque<Arc<Prefetch>>,
    /// How many threads are at one.
    at_runs: usize,
    threads: Vec<JoinHandle>,
    idle: usize,
    closing: bool,
}

struct Shared {
    loader: Box<dyn FaultHandler>,
    threads_max: usize,
    state: Mutex<State>,
    more: Condvar,
    /// All runs that somebody has.
    runs: Mutex<Vec<Weak<Prefetch>>>,
    /// One load at a time where there are no threads.
    alone: Mutex<()>,
}

impl Shared {
    /// Loads what is asked for until the engine closes.
    fn run(&self) {
        // Those who wait for what it loads would wait for ever.
        let _watch = abort_on_panic("loading what is absent");
        let mut state = self.state.lock();
        while !state.closing {
            let Some(fault) = state.queue.pop_front() else {
                if state.at_runs < self.threads_max / 2
                    && let Some(run) = state.ahead.pop_front()
                {
                    state.at_runs += 1;
                    MutexGuard::unlocked(&mut state, || self.bring_run(&run));
                    state.at_runs -= 1;
                    if !state.closing && !run.rest().is_empty() {
                        state.ahead.push_front(run);
                    }
                    continue;
                }
                state.idle += 1;
                self.more.wait(&mut state);
                state.idle -= 1;
                continue;
            };
            // Who asks now finds it among the faults or, once it is gone from there, asks anew.
            let waiting = fault.waiting.lock();
            if waiting.wakers.is_empty() {
                drop(waiting);
                state.faults.remove(&fault.wanted.key());
                continue;
            }
            let slots = waiting.slots;
            drop(waiting);
            MutexGuard::unlocked(&mut state, || {
                let outcome = self.loader.load(&fault.wanted, &slots);
                self.state.lock().faults.remove(&fault.wanted.key());
                fault.end(outcome);
            });
        }
    }
}

impl Shared {
    /// Brings in a run, until somebody waits for something else.
    fn bring_run(&self, run: &Prefetch) {
        let key = |number| FaultKey::Chunk(Arc::as_ptr(&run.rows).addr(), number);
        let next = |number, slots: &SlotSet| {
            let mut state = self.state.lock();
            if state.closing || state.queue.len() > state.idle {
                return PrefetchDecision::Defer;
            }
            if state.faults.contains_key(&key(number)) {
                run.skip();
                return PrefetchDecision::Skip;
            }
            if !run.begin() {
                return PrefetchDecision::Skip;
            }
            // Who comes to it meanwhile waits for this load, and asks for himself if it was in vain.
            let wanted = FaultTarget::Rows {
                rows: Arc::clone(&run.rows),
                number,
                slots: SlotRequest {
                    needed: SlotSet::NONE,
                    beside: *slots,
                },
            };
            let fault = Fault {
                wanted: Arc::new(wanted),
                waiting: Mutex::default(),
            };
            state.faults.insert(key(number), Arc::new(fault));
            PrefetchDecision::Load
        };
        let done = |number| {
            let fault = self.state.lock().faults.remove(&key(number));
            if let Some(fault) = fault {
                fault.end(Ok(()));
            }
        };
        self.loader.load_run(run, &next, &done);
    }
}

/// Where an engine's absent things are asked for.
pub(crate) struct FaultQueue {
    shared: Arc<Shared>,
    threads_max: usize,
}

impl FaultQueue {
    /// With up to `threads` threads; none: who waits loads.
    pub(crate) fn new(loader: Box<dyn FaultHandler>, threads: usize) -> FaultQueue {
        FaultQueue {
            shared: Arc::new(Shared {
                loader,
                threads_max: threads,
                state: Mutex::default(),
                more: Condvar::new(),
                runs: Mutex::default(),
                alone: Mutex::default(),
            }),
            threads_max: threads,
        }
    }

    /// Loads on the calling thread.
    pub(crate) fn load_here(&self, wanted: &FaultTarget) -> Result<(), FaultError> {
        let _one_at_a_time = self.shared.alone.lock();
        self.shared.loader.load(wanted, &wanted.slots())
    }

    /// How many threads may load at once; none: who waits does.
    pub(crate) fn threads_max(&self) -> usize {
        self.threads_max
    }

    /// Is anything read ahead? Somebody must be left for who waits.
    pub(crate) fn reads_ahead(&self) -> bool {
        self.threads_max > 1
    }

    /// Does somebody wait whom no thread serves yet?
    pub(crate) fn is_behind(&self) -> bool {
        let state = self.shared.state.lock();
        state.queue.len() > state.idle
    }

    /// Starts a thread if those that are there are busy. False: there is none.
    fn has_thread(&self, state: &mut State) -> bool {
        let wanted = state.queue.len() + state.ahead.len();
        if state.idle <= wanted && state.threads.len() < self.threads_max {
            let shared = Arc::clone(&self.shared);
            // If none can be started, those that are there do it.
            let started = logstead_env::spawn("faults", None, move || shared.run());
            state.threads.extend(started.ok());
        }
        !state.threads.is_empty()
    }

    /// Asks for chunks that somebody is about to come to.
    pub(crate) fn request_read_ahead(&self, run: &Arc<Prefetch>) {
        let mut dead = VecDeque::new();
        let mut state = self.shared.state.lock();
        if !self.has_thread(&mut state) {
            return;
        }
        if state.ahead.len() >= RUNS_MAX {
            // Those of walks that ended while nobody had time for them. What they hold is not dropped under the lock.
            let is_dead = |run: &Arc<Prefetch>| run.rest().is_empty();
            (dead, state.ahead) = state.ahead.drain(..).partition(is_dead);
            if state.ahead.len() >= RUNS_MAX {
                run.stop();
                return;
            }
        }
        state.ahead.push_back(Arc::clone(run));
        self.shared.more.notify_one();
        drop(state);
        drop(dead);
        let mut runs = self.shared.runs.lock();
        if runs.len() == runs.capacity() {
            runs.retain(|run| run.strong_count() > 0);
        }
        runs.push(Arc::downgrade(run));
    }

    /// Is no thread at a run, and none waits for one?
    #[cfg(test)]
    pub(crate) fn has_no_runs(&self) -> bool {
        let state = self.shared.state.lock();
        state.ahead.is_empty() && state.at_runs == 0
    }

    /// Memory is wanted: nothing that was read ahead is held any more. False: there was nothing.
    pub(crate) fn release_read_ahead(&self) -> bool {
        let runs = std::mem::take(&mut *self.shared.runs.lock());
        let runs: Vec<_> = runs.iter().filter_map(Weak::upgrade).collect();
        runs.iter().for_each(|run| run.release());
        !runs.is_empty()
    }

    /// Asks for something, on behalf of who is woken by `waker`.
    pub(crate) fn ask(&self, wanted: &Arc<FaultTarget>, waker: &Waker) -> FaultPoll {
        if self.threads_max == 0 {
            return FaultPoll::Done(self.load_here(wanted));
        }
        let mut state = self.shared.state.lock();
        if !self.has_thread(&mut state) {
            drop(state);
            return FaultPoll::Done(self.load_here(wanted));
        }
        let key = wanted.key();
        let fault = match state.faults.get(&key) {
            Some(fault) => Arc::clone(fault),
            None => {
                let fault = Arc::new(Fault {
                    wanted: Arc::clone(wanted),
                    waiting: Mutex::default(),
                });
                state.faults.insert(key, Arc::clone(&fault));
                state.queue.push_back(Arc::clone(&fault));
                self.shared.more.notify_one();
                fault
            }
        };
        // Before the state is let go of: a fault that nobody waits for is dropped.
        let mut waiting = fault.waiting.lock();
        let ticket = waiting.next_ticket;
        waiting.next_ticket += 1;
        waiting.wakers.push((ticket, waker.clone()));
        waiting.slots = waiting.slots.union(&wanted.slots());
        drop(waiting);
        if let FaultTarget::Rows { rows, number, .. } = &**wanted
            && let Some(chunk) = rows.chunk(*number)
        {
            chunk.wait_for(&wanted.slots().needed);
        }
        FaultPoll::Waiting(FaultTicket { fault, ticket })
    }
}

impl Drop for FaultQueue {
    fn drop(&mut self) {
        let (threads, queue) = {
            let mut state = self.shared.state.lock();
            state.closing = true;
            state.ahead.clear();
            self.shared.more.notify_all();
            (
                std::mem::take(&mut state.threads),
                std::mem::take(&mut state.queue),
            )
        };
        for fault in queue {
            fault.end(Err(FaultError::Closing));
        }
        for thread in threads {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
    }
}

pub(crate) enum FaultPoll {
    Done(Result<(), FaultError>),
    Waiting(FaultTicket),
}

/// A place among those who wait for a fault.
pub(crate) struct FaultTicket {
    fault: Arc<Fault>,
    ticket: u64,
}

impl FaultTicket {
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<(), FaultError>> {
        let mut waiting = self.fault.waiting.lock();
        if let Some(outcome) = &waiting.outcome {
            return Poll::Ready(outcome.clone());
        }
        let own = waiting.wakers.iter_mut().find(|(t, _)| *t == self.ticket);
        if let Some((_, own)) = own {
            own.clone_from(waker);
        }
        Poll::Pending
    }
}

impl Drop for FaultTicket {
    fn drop(&mut self) {
        // Shells stay: it is the one that was waited for.
        if let FaultTarget::Rows { rows, number, .. } = &*self.fault.wanted
            && let Some(chunk) = rows.chunk(*number)
        {
            chunk.came_back();
        }
        let mut waiting = self.fault.waiting.lock();
        waiting.wakers.retain(|(t, _)| *t != self.ticket);
    }
}

#[cfg(test)]
mod tests;
