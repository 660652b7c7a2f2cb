//! Keeping what is in memory within the budget: who is evicted, when, and who waits for room.
//!
//! Owns: the evictor's thread, the clock hand that goes round all chunks of all tables, and the queue of those who wait for memory.
//! Whether a chunk may go at all is told by the chunk ([`crate::version`]); how it comes back by [`crate::fault`].
//!
//! The rule: the thread begins when more than [`HIGH_PERCENT`] of the budget without its reserve is used, and ends below [`LOW_PERCENT`]. A chunk that
//! somebody has looked into since the hand came by last is passed over once (second chance).
//!
//! Who finds no memory waits, parked, while there is a chance that eviction helps: for what can go now; for a checkpoint, which the evictor takes
//! at once, so that what was changed can go; for the collector and snapshots to let go of what is in use, a few times. Only when a whole round has found
//! nothing after all that, those who wait are told that memory is used up (53200). A wait that ends well promises nothing: others may have
//! been quicker.
//!
//! # The marks
//!
//! Above the high mark there is room for what all workers may take before they look at the account again ([`ALLOWANCE_BYTES_MAX`](crate::ALLOWANCE_BYTES_MAX) each), for
//! sorts and other statements' memory, and for the chunks that are just being loaded. Between the marks lies what one round takes out: a tenth of the
//! budget, so that rounds are rare and a chunk that was just brought is not the next to go; and not more, since everything below the
//! low mark is cache that would have to be read again.
//!
//! What was evicted still counts until no guard protects it any more, so the thread waits a moment before it looks at the account again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Poll, Waker};
use std::time::Duration;

use logstead_env::JoinHandle;
use logstead_types::TableId;
use parking_lot::{Condvar, Mutex};

use crate::engine::{Engine, EngineInner};
use crate::memory::{Memory, OutOfMemory};
use crate::table::Table;
use crate::version::{Guard, Kept};

/// The thread begins above this part of the budget without its reserve.
const HIGH_PERCENT: u64 = 85;
/// It ends below this.
const LOW_PERCENT: u64 = 75;
/// How often the thread looks at the account when nobody has told it of want.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same of one that always evicts.
const ALWAYS_AGAIN: Duration = Duration::from_millis(5);
/// How long it waits for guards to go, and how often.
const FREE_AGAIN: Duration = Duration::from_millis(1);
const FREE_LOOKS: u32 = 50;
/// Rounds that find nothing but what is in use, with a pause between, before that counts as hopeless.
const PATIENCE_ROUNDS: u32 = 20;
const PATIENCE: Duration = Duration::from_millis(25);
/// Without anybody who waits the pause doubles so often, to less than two seconds: looking at chunks that all stay is work for nothing.
const PAUSE_DOUBLED_MAX: u32 = 6;

/// What eviction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionStats {
    /// Chunks taken out of memory.
    pub chunks_evicted: u64,
    /// Chunks brought in.
    pub chunks_loaded: u64,
}

/// Somebody who waits for memory.
pub(crate) struct Want {
    bytes: u64,
    from_reserve: bool,
    state: Mutex<WantState>,
}

#[derive(Default)]
struct WantState {
    outcome: Option<Result<(), OutOfMemory>>,
    waker: Option<Waker>,
}

impl Want {
    fn is_settled(&self) -> bool {
        self.state.lock().outcome.is_some()
    }

    fn settle(&self, outcome: Result<(), OutOfMemory>) {
        let waker = {
            let mut state = self.state.lock();
            state.outcome.get_or_insert(outcome);
            state.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) fn poll(&self, waker: &Waker) -> Poll<Result<(), OutOfMemory>> {
        let mut state = self.state.lock();
        match state.outcome {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(waker.clone());
                Poll::Pending
            }
        }
    }
}

#[derive(Default)]
struct State {
    wants: Vec<Arc<Want>>,
    kicked: bool,
    stopping: bool,
}

/// Who wants memory, and what the evictor is told.
pub(crate) struct Room {
    memory: &'static Memory,
    state: Mutex<State>,
    changed: Condvar,
    /// There is an evictor: it is worth while to wait.
    running: AtomicBool,
    pub(crate) evicted: AtomicU64,
    pub(crate) loaded: AtomicU64,
    /// Where the clock's hand is.
    hand: Mutex<(TableId, u64)>,
}

impl Room {
    pub(crate) fn new(memory: &'static Memory) -> Arc<Room> {
        Arc::new(Room {
            memory,
            state: Mutex::default(),
            changed: Condvar::new(),
            running: AtomicBool::new(false),
            evicted: AtomicU64::new(0),
            loaded: AtomicU64::new(0),
            hand: Mutex::new((TableId(0), 0)),
        })
    }

    pub(crate) fn is_running(&self) -> bool {
        self.running.load(Ordering::SeqCst)
    }

    fn limit(&self) -> u64 {
        self.memory.budget_bytes() - self.memory.reserve_bytes()
    }

    fn mark(&self, percent: u64) -> u64 {
        // An unlimited budget has marks that nobody reaches.
        self.limit() / 100 * percent
    }

    /// So much is used that the evictor should look.
    #[inline]
    pub(crate) fn kick_if_scarce(&self) {
        if self.is_running() && self.memory.used_bytes() > self.mark(HIGH_PERCENT) {
            self.kick();
        }
    }

    #[cold]
    fn kick(&self) {
        self.state.lock().kicked = true;
        self.changed.notify_all();
    }

    /// Asks for room. Whoever asks polls what is given until it is settled, or drops it.
    pub(crate) fn want(&self, bytes: u64, from_reserve: bool) -> Arc<Want> {
        let want = Arc::new(Want {
            bytes,
            from_reserve,
            state: Mutex::default(),
        });
        let mut state = self.state.lock();
        if self.is_running() && !state.stopping {
            state.wants.push(Arc::clone(&want));
            self.changed.notify_all();
        } else {
            want.settle(self.try_take(&want));
        }
        want
    }

    fn try_take(&self, want: &Want) -> Result<(), OutOfMemory> {
        if self.memory.left_bytes(want.from_reserve) >= want.bytes {
            Ok(())
        } else {
            Err(self.memory.exhausted())
        }
    }

    /// Lets those go on for whom there is room by now. Gives how many bytes the others want.
    fn serve(&self) -> u64 {
        let mut state = self.state.lock();
        // Who has given up is not served.
        state
            .wants
            .retain(|want| Arc::strong_count(want) > 1 && !want.is_settled());
        state.wants.retain(|want| {
            let taken = self.try_take(want);
            if taken.is_ok() {
                want.settle(taken);
            }
            taken.is_err()
        });
        state.wants.iter().map(|want| want.bytes).sum()
    }

    /// Nothing can be done for those who wait.
    fn refuse_all(&self) {
        let wants = std::mem::take(&mut self.state.lock().wants);
        for want in wants {
            want.settle(Err(self.memory.exhausted()));
        }
    }
}

/// What a round of the clock found.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    chunks: u64,
    bytes: u64,
    /// Some stay because no checkpoint has all of them.
    unsaved: bool,
    /// Some stay because somebody is at work in them.
    used: bool,
}

/// Moves the hand over every chunk up to `rounds` times, until `wanted` bytes were evicted.
fn sweep(inner: &EngineInner, wanted: u64, rounds: u32, second_chance: bool) -> Round {
    let room = &inner.room;
    let mut hand = room.hand.lock();
    let mut tables: Vec<Arc<Table>> = inner.tables.read().values().cloned().collect();
    tables.retain(|table| !table.rows.stays());
    tables.sort_unstable_by_key(|table| table.id());
    let mut found = Round::default();
    if tables.is_empty() {
        return found;
    }
    let total: u64 = tables.iter().map(|table| table.rows.chunk_end()).sum();
    let mut at = tables.partition_point(|table| table.id() < hand.0);
    let mut number = match tables.get(at) {
        Some(table) if table.id() == hand.0 => hand.1,
        _ => 0,
    };
    // Read in this order: what is below the one and the other is in every later checkpoint and below every later snapshot.
    let published = inner.newest.csn();
    let oldest = inner.bounds().oldest();
    let mut left = total.saturating_mul(u64::from(rounds));
    while left > 0 && found.bytes < wanted {
        let Some(table) = tables.get(at) else {
            (at, number) = (0, 0);
            continue;
        };
        if number >= table.rows.chunk_end() {
            (at, number) = (at + 1, 0);
            if at == tables.len() && total == 0 {
                break;
            }
            continue;
        }
        left -= 1;
        if let Some(chunk) = table.rows.chunk(number)
            && chunk.is_present()
            && !(second_chance && chunk.take_touched())
        {
            // A guard each: what was evicted is not to be held back by who evicts.
            match chunk.evict(published, oldest, &Guard::pin()) {
                Ok(bytes) => {
                    found.chunks += 1;
                    found.bytes += bytes as u64;
                }
                Err(Kept::Absent) => {}
                Err(Kept::Unsaved) => found.unsaved = true,
                Err(Kept::Used) => found.used = true,
            }
        }
        number += 1;
    }
    *hand = match tables.get(at) {
        Some(table) => (table.id(), number),
        None => (TableId(0), 0),
    };
    room.evicted.fetch_add(found.chunks, Ordering::Relaxed);
    found
}

/// Waits until some of `bytes` that were evicted are free, or for so long that somebody must be keeping them.
fn free(memory: &Memory, before: u64, bytes: u64) {
    for _ in 0..FREE_LOOKS {
        Guard::pin().flush();
        if memory.used_bytes() <= before.saturating_sub(bytes / 2) {
            return;
        }
        logstead_env::sleep(FREE_AGAIN);
    }
}

impl Engine {
    /// Evicts every chunk that may go now, and tells how many did. For tests, and for `evict_always`.
    pub fn evict_all(&self) -> u64 {
        let found = sweep(self.inner(), u64::MAX, 1, false);
        Guard::pin().flush();
        found.chunks
    }

    /// What was evicted and brought in so far.
    pub fn eviction_stats(&self) -> EvictionStats {
        let room = &self.inner().room;
        EvictionStats {
            chunks_evicted: room.evicted.load(Ordering::Relaxed),
            chunks_loaded: room.loaded.load(Ordering::Relaxed),
        }
    }
}

/// Keeps memory within the budget until it is dropped, which waits for the round under way.
pub struct Evictor {
    room: Arc<Room>,
    thread: Option<JoinHandle>,
}

impl Evictor {
    /// Starts the thread. One for an engine. `always`: evicts all the time whatever can be evicted, to show what that breaks.
    pub fn start(engine: &Engine, always: bool) -> std::io::Result<Evictor> {
        let room = Arc::clone(&engine.inner().room);
        let engine = engine.clone();
        room.state.lock().stopping = false;
        room.running.store(true, Ordering::SeqCst);
        let thread = logstead_env::spawn("evictor", None, move || run(&engine, always));
        match thread {
            Ok(thread) => Ok(Evictor {
                room,
                thread: Some(thread),
            }),
            Err(error) => {
                room.running.store(false, Ordering::SeqCst);
                Err(error)
            }
        }
    }
}

impl Drop for Evictor {
    fn drop(&mut self) {
        self.room.state.lock().stopping = true;
        self.room.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
        self.room.running.store(false, Ordering::SeqCst);
        self.room.refuse_all();
    }
}

/// Waits until there is something to do. False: it is over.
fn wait(room: &Room, always: bool) -> bool {
    let mut state = room.state.lock();
    loop {
        if state.stopping {
            return false;
        }
        let scarce = room.memory.used_bytes() > room.mark(HIGH_PERCENT);
        if std::mem::take(&mut state.kicked) || scarce || !state.wants.is_empty() {
            return true;
        }
        let again = if always { ALWAYS_AGAIN } else { LOOK_AGAIN };
        if room.changed.wait_for(&mut state, again).timed_out() && always {
            return !state.stopping;
        }
    }
}

fn run(engine: &Engine, always: bool) {
    let inner = engine.inner();
    let room = &inner.room;
    // Rounds that have brought nothing to those who wait, and whether a checkpoint was taken for them.
    let (mut in_vain, mut saved) = (0, false);
    while wait(room, always) {
        if always {
            engine.evict_all();
        }
        let wanted = room.serve();
        let used = room.memory.used_bytes();
        let need = used.saturating_sub(room.mark(LOW_PERCENT));
        let scarce = used > room.mark(HIGH_PERCENT);
        if wanted == 0 && !scarce {
            (in_vain, saved) = (0, false);
            continue;
        }
        let found = sweep(inner, need.max(wanted), 2, true);
        if found.chunks > 0 {
            free(room.memory, used, found.bytes);
            in_vain = 0;
            room.serve();
            continue;
        }
        Guard::pin().flush();
        if room.serve() == 0 {
            // Nobody waits: what was changed is saved by the next checkpoint, at its own time, unless that is far.
            if found.unsaved && !saved {
                saved = engine.checkpoint().is_ok();
            } else {
                pause(room, in_vain);
                in_vain += 1;
                saved = false;
            }
            continue;
        }
        if found.unsaved && !saved {
            // What it saves can go in the next round.
            saved = engine.checkpoint().is_ok();
            if saved {
                continue;
            }
        }
        in_vain += 1;
        if (!found.used && !found.unsaved) || in_vain > PATIENCE_ROUNDS {
            room.refuse_all();
            (in_vain, saved) = (0, false);
        } else {
            pause(room, in_vain);
            // Changed while the last one was taken, or since.
            saved = saved && in_vain % 4 != 0;
        }
    }
}

/// Lets others do something about it: the collector, transactions that end. The longer, the more rounds were in vain, unless somebody waits.
fn pause(room: &Room, in_vain: u32) {
    let mut state = room.state.lock();
    let (waiting, mut left) = (!state.wants.is_empty(), PATIENCE);
    if !waiting {
        left *= 1 << in_vain.min(PAUSE_DOUBLED_MAX);
    }
    while !state.stopping && waiting != state.wants.is_empty() {
        let timeout = room.changed.wait_for(&mut state, left);
        if timeout.timed_out() {
            return;
        }
        // A kick says nothing new.
        left /= 2;
    }
}
