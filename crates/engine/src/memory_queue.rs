//! The queue of those who wait for memory; see [`crate::evict`] for the rules.
//!
//! Invariants:
//! - A want is settled once. One that is granted has its bytes charged to the account from that moment on, until
//!   whoever waited takes what it asked for, or gives up.
//! - Of one line the oldest is granted first, and nobody is admitted who did not wait while somebody waits: `waiting`
//!   tells, for those who do not want to lock.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::Wake;
use std::task::{Poll, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use logstead_types::{IndexId, TableId};
use parking_lot::{Condvar, Mutex};

use crate::logged_chunks::LoggedTotals;
use crate::memory::{Charge, Memory, OutOfMemory};
use crate::page_store::CheckpointError;

/// Nobody waits longer, whatever happens meanwhile, unless told otherwise: a checkpoint may hang.
const WAIT_MAX: Duration = Duration::from_secs(60);

/// Somebody who waits for memory.
pub(crate) struct MemoryRequest {
    bytes: u64,
    from_reserve: bool,
    /// Who asks holds most of what there is, and nobody but it can free that.
    is_of_most: bool,
    since: Instant,
    /// How many checkpoints had begun by then.
    begun: u64,
    state: Mutex<WantState>,
}

#[derive(Default)]
struct WantState {
    /// Taken by who waited.
    outcome: Option<Result<Charge, OutOfMemory>>,
    waker: Option<Waker>,
    /// Rounds that brought nothing and had no hope, since it came.
    in_vain: u32,
}

impl MemoryRequest {
    fn settle(&self, outcome: Result<Charge, OutOfMemory>) {
        let waker = {
            let mut state = self.state.lock();
            state.outcome = Some(outcome);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// What came of it: the bytes, kept for the caller until it drops them. Not to be asked again after that.
    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<Charge, OutOfMemory>> {
        let mut state = self.state.lock();
        match state.outcome.take() {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }
}

/// Two lines: that of the reserve leads out of want and is not held up by the other.
fn line(from_reserve: bool) -> usize {
    usize::from(!from_reserve)
}

#[derive(Default)]
struct State {
    /// Oldest first.
    requests: [VecDeque<Arc<MemoryRequest>>; 2],
    kicked: bool,
    /// A checkpoint has ended.
    saved: bool,
    /// There is an evictor: it is worth while to wait.
    running: bool,
    stopping: bool,
    /// Checkpoints, whoever takes them.
    begun: u64,
    ended: u64,
    /// The last one failed, so nothing is known to come of the next.
    failing: bool,
    /// What was used when one of the other line was refused; nothing could be evicted since, and no checkpoint was
    /// published.
    hopeless_at: Option<u64>,
}

impl State {
    fn some_wait(&self) -> bool {
        self.requests.iter().any(|requests| !requests.is_empty())
    }

    /// May a checkpoint help it that did not yet?
    fn may_be_saved(&self, request: &MemoryRequest) -> bool {
        !request.is_of_most && !self.failing && self.ended <= request.begun
    }
}

/// What makes it likely that something can go that could not before: checkpoints that have ended, loads that have
/// brought something.
pub(super) type ReclaimProgress = (u64, u64);

/// A table among those of the present, whose number is 0, and of pasts.
pub(super) type TableKey = (u64, TableId);

/// Where the clock's hands are.
#[derive(Default)]
pub(super) struct ClockHands {
    pub(super) chunk: (TableKey, u64),
    pub(super) leaf: (TableKey, IndexId),
    /// The one that lets go of what only the log has.
    pub(super) to_log: (TableKey, u64),
}

/// What the load of one chunk that nobody waits for may bring: counted as read ahead from the moment in which it is
/// granted, or many loads at once would each find that there is little. Dropped, it is given back.
pub(crate) struct ReadAheadGrant<'r> {
    memory_queue: &'r MemoryQueue,
    bytes: Cell<u64>,
}

impl<'r> ReadAheadGrant<'r> {
    pub(crate) fn new(memory_queue: &'r MemoryQueue) -> ReadAheadGrant<'r> {
        ReadAheadGrant {
            memory_queue,
            bytes: Cell::new(0),
        }
    }

    /// Room for so much, instead of what was granted before: at once, and only as long as little is read ahead.
    pub(crate) fn take(&self, bytes: u64) -> Option<Charge> {
        let memory_queue = self.memory_queue;
        memory_queue.remove_ahead(self.bytes.take());
        let state = memory_queue.state.lock();
        if !memory_queue.is_little(bytes) || !state.requests[line(false)].is_empty() {
            return None;
        }
        let charge = memory_queue.grant(bytes, false)?;
        // Others add to it under the lock too.
        memory_queue.ahead.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.set(bytes);
        Some(charge)
    }

    /// May it be so much in all, which is in memory already? What was granted was too low a guess.
    pub(crate) fn raise(&self, bytes: u64) -> bool {
        let more = bytes.saturating_sub(self.bytes.get());
        let memory_queue = self.memory_queue;
        let state = memory_queue.state.lock();
        let is_free =
            state.requests[line(false)].is_empty() && memory_queue.memory.left_bytes(false) > 0;
        let may = more == 0 || (is_free && memory_queue.is_little(more));
        if may {
            memory_queue.ahead.fetch_add(more, Ordering::Relaxed);
            self.bytes.set(self.bytes.get() + more);
        }
        may
    }

    /// So much was brought, and is held: whoever lets go of it calls [`MemoryQueue::remove_ahead`].
    pub(crate) fn keep(&self, bytes: u64) {
        // In one step: no other load is to find both.
        let granted = self.bytes.take();
        let more = bytes.wrapping_sub(granted);
        self.memory_queue.ahead.fetch_add(more, Ordering::Relaxed);
    }
}

impl Drop for ReadAheadGrant<'_> {
    fn drop(&mut self) {
        self.memory_queue.remove_ahead(self.bytes.get());
    }
}

/// A transaction that holds more than this part of the budget without its reserve is not worth waiting for: what could
/// go, or be saved so that it can, is less than what it has written already. Its first wait that brings nothing is its
/// last.
const MOST_PERCENT: u64 = LOW_PERCENT;
/// Less than this part of it is hardly anything: the evictor begins long before, so it found nothing.
const LITTLE_PART: u64 = 64;
/// How often such a one may get room for the same write, and be too late for something else that the write needs.
pub(crate) const GRANTS_MAX: u32 = 8;

/// Who wants memory, and what the evictor is told.
pub(crate) struct MemoryQueue {
    pub(super) memory: &'static Memory,
    state: Mutex<State>,
    changed: Condvar,
    /// How many wait, by line.
    waiting: [AtomicUsize; 2],
    wait_max_micros: AtomicU64,
    /// Loads that have been given room and are not through.
    loading: AtomicUsize,
    /// What was read ahead and not come to yet, and what loads of that kind were granted. Grows under the lock alone.
    ahead: AtomicU64,
    /// Bytes that were evicted and may still be in use.
    pub(super) pending: Arc<AtomicU64>,
    pub(super) chunks_evicted: AtomicU64,
    pub(super) leaves_evicted: AtomicU64,
    pub(super) rows_evicted: AtomicU64,
    pub(super) loaded: AtomicU64,
    pub(super) rows_loaded: AtomicU64,
    /// Chunks that have left with changes that only the log has, and how many are away.
    pub(super) chunks_evicted_to_log: AtomicU64,
    pub(crate) logged: Arc<LoggedTotals>,
    pub(super) hands: Mutex<ClockHands>,
}

impl MemoryQueue {
    pub(crate) fn new(memory: &'static Memory, logged: Arc<LoggedTotals>) -> Arc<MemoryQueue> {
        Arc::new(MemoryQueue {
            memory,
            state: Mutex::default(),
            changed: Condvar::new(),
            waiting: Default::default(),
            wait_max_micros: AtomicU64::new(WAIT_MAX.as_micros() as u64),
            loading: AtomicUsize::new(0),
            ahead: AtomicU64::new(0),
            pending: Arc::default(),
            chunks_evicted: AtomicU64::new(0),
            leaves_evicted: AtomicU64::new(0),
            rows_evicted: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            rows_loaded: AtomicU64::new(0),
            chunks_evicted_to_log: AtomicU64::new(0),
            logged,
            hands: Mutex::default(),
        })
    }

    pub(super) fn set_wait_max(&self, most: Duration) {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        self.wait_max_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn is_running(&self) -> bool {
        self.state.lock().running
    }

    /// The most that may be used.
    pub(crate) fn limit(&self, from_reserve: bool) -> u64 {
        let budget = self.memory.budget_bytes();
        if from_reserve {
            budget
        } else {
            budget - self.memory.reserve_bytes()
        }
    }

    pub(super) fn mark(&self, percent: u64) -> u64 {
        // An unlimited budget has marks that nobody reaches.
        self.limit(false) / 100 * percent
    }

    pub(super) fn is_scarce(&self) -> bool {
        self.memory.used_bytes() > self.mark(HIGH_PERCENT)
    }

    /// So much is used that the evictor should look.
    #[inline]
    pub(crate) fn wake_if_scarce(&self) {
        if self.is_scarce() {
            self.wake_evictor();
        }
    }

    #[cold]
    fn wake_evictor(&self) {
        self.state.lock().kicked = true;
        self.changed.notify_all();
    }

    /// Is anybody waiting at all?
    pub(crate) fn has_waiters(&self) -> bool {
        let waiting = |line: &AtomicUsize| line.load(Ordering::SeqCst) > 0;
        self.waiting.iter().any(waiting)
    }

    /// Is somebody waiting, so that who comes now must wait too?
    #[inline]
    pub(crate) fn is_queued(&self, from_reserve: bool) -> bool {
        self.waiting[line(from_reserve)].load(Ordering::SeqCst) > 0
    }

    fn grant(&self, bytes: u64, from_reserve: bool) -> Option<Charge> {
        if self.memory.left_bytes(from_reserve) < bytes {
            return None;
        }
        let mut charge = self.memory.charge();
        charge.force(usize::try_from(bytes).ok()?);
        Some(charge)
    }

    /// Room at once, if there is some and nobody waits for it.
    pub(crate) fn take(&self, bytes: u64, from_reserve: bool) -> Option<Charge> {
        let state = self.state.lock();
        if state.requests[line(from_reserve)].is_empty() {
            self.grant(bytes, from_reserve)
        } else {
            None
        }
    }

    /// So much may be read ahead beside what is.
    fn is_little(&self, more: u64) -> bool {
        let ahead = self.ahead.load(Ordering::Relaxed).saturating_add(more);
        ahead <= self.limit(false) / AHEAD_PART
    }

    /// So much of it was come to, or is not held any more.
    pub(crate) fn remove_ahead(&self, bytes: u64) {
        self.ahead.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// What is held of what was read ahead, and what loads that are under way may bring of it.
    #[cfg(test)]
    pub(crate) fn ahead_bytes(&self) -> u64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Asks for room. Whoever asks polls what is given until it is settled, or drops it.
    #[cfg(test)]
    pub(crate) fn request(&self, bytes: u64, from_reserve: bool) -> Arc<MemoryRequest> {
        self.request_beside(bytes, from_reserve, 0)
    }

    /// The same for a transaction that holds so much already that cannot go before it ends.
    pub(crate) fn request_beside(
        &self,
        bytes: u64,
        from_reserve: bool,
        held: u64,
    ) -> Arc<MemoryRequest> {
        let mut state = self.state.lock();
        let request = Arc::new(MemoryRequest {
            bytes,
            from_reserve,
            is_of_most: held > self.mark(MOST_PERCENT),
            since: now(),
            begun: state.begun,
            state: Mutex::default(),
        });
        let at = line(from_reserve);
        let granted = match state.requests[at].is_empty() {
            true => self.grant(bytes, from_reserve),
            false => None,
        };
        if let Some(charge) = granted {
            request.settle(Ok(charge));
        } else if state.running && !state.stopping && bytes <= self.limit(from_reserve) {
            state.requests[at].push_back(Arc::clone(&request));
            self.waiting[at].store(state.requests[at].len(), Ordering::SeqCst);
            self.changed.notify_all();
        } else {
            request.settle(Err(self.memory.exhausted()));
        }
        request
    }

    /// Is hardly anything left, because of one that holds so much that cannot go? What it still wants, be it only to be
    /// looked at, would drive out what it has just looked at, and so on, at the pace of waits.
    pub(crate) fn is_used_up_by(&self, held: u64) -> bool {
        let limit = self.limit(false);
        held > self.mark(MOST_PERCENT) && self.memory.left_bytes(false) < limit / LITTLE_PART
    }

    /// Asks for room and blocks until that is settled.
    pub(crate) fn request_blocking(
        &self,
        bytes: u64,
        from_reserve: bool,
        held: u64,
    ) -> Result<Charge, OutOfMemory> {
        let request = self.request_beside(bytes, from_reserve, held);
        let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
        loop {
            match request.poll(&waker) {
                Poll::Ready(outcome) => return outcome,
                Poll::Pending => std::thread::park(),
            }
        }
    }

    /// Lets those go on for whom there is room by now, in their order, and refuses those who have waited too long.
    pub(super) fn serve(&self) {
        let longest = Duration::from_micros(self.wait_max_micros.load(Ordering::Relaxed));
        let mut state = self.state.lock();
        for (at, requests) in state.requests.iter_mut().enumerate() {
            // Who has given up is not served.
            requests.retain(|request| Arc::strong_count(request) > 1);
            while let Some(request) = requests.front()
                && let Some(charge) = self.grant(request.bytes, request.from_reserve)
            {
                request.settle(Ok(charge));
                requests.pop_front();
            }
            requests.retain(|request| {
                let stays = request.since.elapsed() < longest;
                if !stays {
                    request.settle(Err(self.memory.exhausted()));
                }
                stays
            });
            self.waiting[at].store(requests.len(), Ordering::SeqCst);
        }
    }

    pub(super) fn some_wait(&self) -> bool {
        self.state.lock().some_wait()
    }

    /// What is to be evicted: down to the low mark, if it is scarce, and for those who wait.
    pub(super) fn need(&self) -> u64 {
        let used = self.memory.used_bytes();
        let state = self.state.lock();
        let sum = |requests: &VecDeque<Arc<MemoryRequest>>| {
            requests.iter().map(|request| request.bytes).sum::<u64>()
        };
        let [reserve, others] = &state.requests;
        let reserved = sum(reserve);
        let mut need = (used.saturating_add(reserved)).saturating_sub(self.limit(true));
        if !others.is_empty() {
            let all = used.saturating_add(reserved).saturating_add(sum(others));
            need = need.max(all.saturating_sub(self.limit(false)));
        }
        if used > self.mark(HIGH_PERCENT) || need > 0 {
            need = need.max(used.saturating_sub(self.mark(LOW_PERCENT)));
        }
        need.saturating_sub(self.pending.load(Ordering::SeqCst))
    }

    /// Might a checkpoint help one of the oldest, for whom none has begun yet?
    pub(super) fn wants_checkpoint(&self) -> bool {
        let state = self.state.lock();
        let mut oldest = state.requests.iter().filter_map(VecDeque::front);
        oldest.any(|request| !request.is_of_most && !state.failing && state.begun <= request.begun)
    }

    /// A round has found nothing. Of each line the oldest is refused, if it has had its share of such rounds.
    pub(super) fn count_in_vain(&self) {
        if self.loading.load(Ordering::SeqCst) > 0 {
            // What they bring can go.
            return;
        }
        let mut state = self.state.lock();
        for request in state.requests.iter().flatten() {
            if !state.may_be_saved(request) {
                request.state.lock().in_vain += 1;
            }
        }
        let mut is_hopeless = false;
        for (at, requests) in state.requests.iter_mut().enumerate() {
            // Wherever it stands: what others wait for is that it ends.
            requests.retain(|request| {
                if request.is_of_most {
                    request.settle(Err(self.memory.exhausted()));
                }
                !request.is_of_most
            });
            let hopeless =
                |request: &mut Arc<MemoryRequest>| request.state.lock().in_vain > PATIENCE_ROUNDS;
            if let Some(request) = requests.pop_front_if(hopeless) {
                request.settle(Err(self.memory.exhausted()));
                is_hopeless |= !request.from_reserve;
            }
            self.waiting[at].store(requests.len(), Ordering::SeqCst);
        }
        if is_hopeless {
            state.hopeless_at = Some(self.memory.used_bytes());
        }
    }

    /// Would a load wait in vain? One like it has just been refused, and there is no less in memory since.
    pub(crate) fn is_hopeless(&self) -> bool {
        let at = self.state.lock().hopeless_at;
        at.is_some_and(|at| self.memory.used_bytes() >= at)
    }

    /// What has happened so far that lets something go.
    pub(super) fn reclaim_progress(&self) -> ReclaimProgress {
        let ended = self.state.lock().ended;
        (ended, self.loaded.load(Ordering::Relaxed))
    }

    /// Something was evicted.
    pub(super) fn has_evicted(&self) {
        self.state.lock().hopeless_at = None;
    }

    fn refuse_all(&self, state: &mut State) {
        for (at, requests) in state.requests.iter_mut().enumerate() {
            for request in requests.drain(..) {
                request.settle(Err(self.memory.exhausted()));
            }
            self.waiting[at].store(0, Ordering::SeqCst);
        }
    }

    pub(super) fn begin(&self) {
        let mut state = self.state.lock();
        (state.running, state.stopping) = (true, false);
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }

    /// There is no evictor any more.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.running = false;
        self.refuse_all(&mut state);
    }

    /// A checkpoint begins.
    pub(crate) fn checkpoint_begins(&self) {
        self.state.lock().begun += 1;
    }

    /// It has ended. One that was given up for the restart of an instance has not: it is begun anew at once, and who
    /// waits for it waits for that one.
    pub(crate) fn checkpoint_ends(&self, outcome: Result<(), &CheckpointError>) {
        if matches!(outcome, Err(CheckpointError::Interrupted)) {
            return;
        }
        let is_published = outcome.is_ok();
        let mut state = self.state.lock();
        state.ended = state.begun;
        state.failing = !is_published;
        state.saved = true;
        if is_published {
            state.hopeless_at = None;
        }
        self.changed.notify_all();
    }

    /// None can be taken.
    pub(super) fn checkpoints_fail(&self) {
        self.state.lock().failing = true;
    }

    /// A load has brought so many rows.
    pub(crate) fn count_loaded(&self, rows: usize) {
        self.loaded.fetch_add(1, Ordering::Relaxed);
        self.rows_loaded.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// A load has been given room; until what is given is dropped it may bring what can go again.
    pub(crate) fn load_begins(self: &Arc<Self>) -> LoadInProgress {
        self.loading.fetch_add(1, Ordering::SeqCst);
        LoadInProgress(Arc::clone(self))
    }

    /// Waits until there is something to do, but not longer than `again`, if that is all there is to do (`always`).
    /// False: it is over.
    pub(super) fn wait(&self, again: Duration, always: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return false;
            }
            if std::mem::take(&mut state.kicked) || self.is_scarce() || state.some_wait() {
                return true;
            }
            if self.changed.wait_for(&mut state, again).timed_out() && always {
                return !state.stopping;
            }
        }
    }

    /// Lets others do something about it: the collector, transactions that end, a checkpoint. The longer, the more
    /// rounds were in vain, unless somebody waits. A kick says nothing new.
    pub(super) fn pause(&self, in_vain: u32) {
        let mut state = self.state.lock();
        let waited = state.some_wait();
        let mut left = PATIENCE;
        if !waited {
            left *= 1 << in_vain.min(PAUSE_DOUBLED_MAX);
        }
        let end = now() + left;
        while !state.stopping
            && !std::mem::take(&mut state.saved)
            && (waited || !state.some_wait())
            && !self.changed.wait_until(&mut state, end).timed_out()
        {}
    }
}

/// See [`MemoryQueue::load_begins`].
pub(crate) struct LoadInProgress(Arc<MemoryQueue>);

impl Drop for LoadInProgress {
    fn drop(&mut self) {
        self.0.loading.fetch_sub(1, Ordering::SeqCst);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "paired with waits on a condition, which the machine times"
)]
fn now() -> Instant {
    Instant::now()
}

/// The thread begins above this part of the budget without its reserve.
const HIGH_PERCENT: u64 = 85;

/// It ends below this.
const LOW_PERCENT: u64 = 75;

/// Rounds in vain, with a pause between, before a want counts as hopeless.
pub(crate) const PATIENCE_ROUNDS: u32 = 20;

pub(crate) const PATIENCE: Duration = Duration::from_millis(25);

/// Without anybody who waits the pause doubles so often, to less than two seconds: looking at chunks that all stay is
/// work for nothing.
const PAUSE_DOUBLED_MAX: u32 = 6;

/// Wakes a thread that waits.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// All that is read ahead is at most this part of what may be used.
pub(crate) const AHEAD_PART: u64 = 16;
