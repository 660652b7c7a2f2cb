//! Keeping what is in memory within the budget: who is evicted, when, and who waits for room.
//!
//! Owns: the evictor's thread, the clock's hands that go round all chunks and all leaves of indexes, and the queue of
//! those who wait for memory ([`crate::memory_queue`]). Whether a row may go at all is told by its chunk
//! ([`crate::version`]),
//! a leaf by its tree; how they come back by [`crate::page_loader`].
//!
//! The rule: the thread begins when more than `HIGH_PERCENT` of the budget without its reserve is used, and ends
//! below `LOW_PERCENT`. Rows go one by one: one that somebody has looked for since the hand came by last is passed
//! over once (second chance), unless somebody waits and nothing else can go; its neighbours go. Leaves go in proportion
//! to what they take.
//!
//! A chunk that has changed since the newest checkpoint goes as a whole, if its log is durable and a page service gives
//! it back ([`to_log`]): after the rows that a checkpoint has and nobody has used.
//!
//! # Who waits
//!
//! Who finds no memory waits, parked. The rules:
//! - *In order.* There are two lines, one for what may come from the reserve and one for the rest. In each the oldest
//!   is served first, however large it is, and who comes while somebody waits in it waits too. So a large want does not
//!   starve; small ones wait as long as it does.
//! - *What is granted is kept.* Its bytes are charged from that moment on, until who waited takes them (a transaction
//!   with its next write, a load row by row) or ends. Nothing is granted twice.
//! - *What cannot be is refused at once* (53200): more than the whole limit. A load never is: what was in memory fits
//!   again, so one load at a time goes on without having been granted anything, if what it reads fits into what is
//!   left, the reserve included. It does so without waiting while a wait is known to be in vain: a load was refused,
//!   and since then nothing was evicted, no checkpoint was published, and what is used did not become less. So a
//!   statement that holds more than fits (a DELETE of everything) comes to its 53200 soon, and those who only read do
//!   not wait behind each of its loads.
//! - *Patience is each want's own.* A round is in vain for it if nothing was evicted, nothing that was evicted is still
//!   to be freed, no load is under way (what it brings can go), and no checkpoint can help: one that began after the
//!   want came has ended, or the last one failed. After `PATIENCE_ROUNDS` of those the oldest of a line is refused,
//!   alone: the transaction that ends of it may be all the others wait for. One of a transaction that itself holds most
//!   of the budget, in what it has written and not committed, is refused after the first: a checkpoint does not make
//!   room of that, and rounds and checkpoints over so many rows take long. When hardly anything is left beside it, it
//!   gets nothing more that is absent either. And nobody waits longer than a minute ([`Engine::set_memory_wait`]),
//!   whatever happens: a checkpoint may hang.
//!
//! # Checkpoints
//!
//! What was changed can go when a checkpoint has it. The evictor takes none itself, for it would be away meanwhile: it
//! asks whoever takes them ([`Checkpointer`]), who pauses after failures, and goes on sweeping and serving; it is woken
//! when one ends. For somebody who waits one is taken at once; without, not more often than every second. An engine
//! without a thread for checkpoints gets one when the evictor first asks.
//!
//! # The marks
//!
//! Above the high mark there is room for what all workers may take before they look at the account again
//! ([`ALLOWANCE_BYTES_MAX`](crate::ALLOWANCE_BYTES_MAX) each), for sorts and other statements' memory, and for the
//! chunks that are just being loaded. Between the marks lies what one round takes out: a tenth of the budget, so that
//! rounds are rare and a chunk that was just brought is not the next to go; and not more, since everything below the
//! low mark is cache that would have to be read again.
//!
//! What was evicted still counts until no guard protects it any more. How much that may be is known (`pending`), and is
//! not evicted twice.

#[cfg(test)]
mod tests;
mod to_log;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use logstead_env::{JoinHandle, abort_on_panic};
use logstead_types::{Csn, IndexId, TableId};

use crate::checkpoint::Checkpointer;
use crate::engine::{Engine, EngineInner};
use crate::index::Index;
use crate::load::LoggedSources;
use crate::table::Table;
use crate::version::{Guard, RetainReason, SlotSet};

use crate::page_store::ReplicaBase;

use crate::memory_queue::{MemoryQueue, ReclaimProgress, TableKey};
use to_log::{LogEviction, sweep_to_log};

/// How often the thread looks at the account when nobody has told it of want.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The same of one that always evicts.
const ALWAYS_AGAIN: Duration = Duration::from_millis(5);
/// How long it waits at a time for guards to go, and how often it looks.
const FREE_AGAIN: Duration = Duration::from_millis(1);
const FREE_LOOKS: u32 = 50;
/// How often a replica's evictor looks for a newer checkpoint of the primary, at most.
const LOOK_AT_PRIMARY: Duration = Duration::from_secs(1);
/// A primary that has published nothing for so long is not expected to.
const PRIMARY_IDLE: Duration = Duration::from_secs(5);

/// What eviction has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EvictionStats {
    /// Rows taken out of memory.
    pub rows_evicted: u64,
    /// Chunks of which nothing was left in memory then.
    pub chunks_evicted: u64,
    /// Rows brought in.
    pub rows_loaded: u64,
    /// Loads that brought them, each of one chunk's pages.
    pub chunks_loaded: u64,
    /// Leaves of indexes taken out of memory by the evictor.
    pub leaves_evicted: u64,
    /// Chunks taken out of memory with changes that only the log has; they count among the others as well.
    pub chunks_evicted_to_log: u64,
    /// How many of these are away now.
    pub chunks_in_log: u64,
    /// Those that page services have given back.
    pub chunks_from_page_services: u64,
    /// Those that were read from the log again.
    pub chunks_from_log: u64,
    /// How often the log was read for that.
    pub log_readings: u64,
    /// How often it had something of the chunks that it was read for.
    pub fruitful_log_readings: u64,
}

/// What a round of the clock found.
#[derive(Clone, Copy, Debug, Default)]
struct SweepResult {
    rows: u64,
    chunks: u64,
    leaves: u64,
    bytes: u64,
    /// Some stay because no checkpoint has all of them.
    unsaved: bool,
}

/// A table that may be evicted from.
struct Swept {
    which: TableKey,
    table: Arc<Table>,
    /// A checkpoint has what was committed below this.
    saved_below: Csn,
}

/// The tables that may be evicted from, in their order.
fn tables(inner: &EngineInner) -> Vec<Swept> {
    // A checkpoint that a replica has adopted may lack tables that it still has.
    let published = inner.newest.get();
    let mut tables: Vec<Swept> = Vec::new();
    let mut add = |number, table: &Arc<Table>, saved_below| {
        if !table.rows.stays() {
            tables.push(Swept {
                which: (number, table.id()),
                table: Arc::clone(table),
                saved_below,
            });
        }
    };
    for table in inner.tables.read().values() {
        if published.has_table(table.id()) {
            add(0, table, published.csn);
        }
    }
    for past in inner.pasts.all() {
        for table in past.tables() {
            add(past.number(), table, past.csn());
        }
    }
    tables.sort_unstable_by_key(|swept| swept.which);
    tables
}

/// Moves the hand over the rows of every chunk up to `rounds` times, until `wanted` bytes were evicted.
fn sweep(inner: &EngineInner, wanted: u64, rounds: u32, second_chance: bool) -> SweepResult {
    let memory_queue = &inner.memory_queue;
    let hand = &mut memory_queue.hands.lock().chunk;
    let tables = tables(inner);
    let mut found = SweepResult::default();
    if tables.is_empty() {
        return found;
    }
    let chunks = tables.iter().map(|swept| swept.table.rows.chunk_end());
    let total: u64 = chunks.sum();
    let mut at = tables.partition_point(|swept| swept.which < hand.0);
    let mut number = match tables.get(at) {
        Some(swept) if swept.which == hand.0 => hand.1,
        _ => 0,
    };
    let mut left = total.saturating_mul(u64::from(rounds));
    while left > 0 && found.bytes < wanted {
        let Some(Swept {
            table, saved_below, ..
        }) = tables.get(at)
        else {
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
        {
            let spared = if second_chance {
                chunk.take_touched()
            } else {
                SlotSet::NONE
            };
            // A guard each: what was evicted is not to be held back by who evicts.
            match chunk.evict(*saved_below, &spared, &Guard::pin()) {
                Ok(evicted) => {
                    found.rows += evicted.rows as u64;
                    found.chunks += u64::from(evicted.whole);
                    found.bytes += evicted.bytes as u64;
                    found.unsaved |= evicted.unsaved;
                }
                Err(RetainReason::Absent | RetainReason::InUse) => {}
                Err(RetainReason::Unsaved) => found.unsaved = true,
            }
        }
        number += 1;
    }
    *hand = match tables.get(at) {
        Some(swept) => (swept.which, number),
        None => ((0, TableId(0)), 0),
    };
    memory_queue
        .rows_evicted
        .fetch_add(found.rows, Ordering::Relaxed);
    memory_queue
        .chunks_evicted
        .fetch_add(found.chunks, Ordering::Relaxed);
    found
}

/// The same for leaves of indexes: those that nobody has used since their tree's hand was there last.
fn sweep_leaves(
    inner: &EngineInner,
    indexes: &[(TableKey, Arc<Index>)],
    wanted: u64,
) -> SweepResult {
    let memory_queue = &inner.memory_queue;
    let mut found = SweepResult::default();
    let hand = &mut memory_queue.hands.lock().leaf;
    let mut at = indexes.partition_point(|(table, index)| (*table, index.id()) < *hand);
    // A tree's hand may be in its middle: the third time comes by where the first began.
    let mut left = 3 * indexes.len();
    while left > 0 && found.bytes < wanted {
        let Some((_, index)) = indexes.get(at) else {
            at = 0;
            continue;
        };
        let bytes = usize::try_from(wanted - found.bytes).unwrap_or(usize::MAX);
        let evicted = index.evict_leaves(bytes);
        found.leaves += evicted.leaves as u64;
        found.bytes += evicted.bytes as u64;
        if evicted.ended {
            left -= 1;
            at += 1;
        }
    }
    *hand = match indexes.get(at) {
        Some((table, index)) => (*table, index.id()),
        None => ((0, TableId(0)), IndexId(0)),
    };
    memory_queue
        .leaves_evicted
        .fetch_add(found.leaves, Ordering::Relaxed);
    found
}

/// Evicts rows and leaves, in proportion to what they take, until `wanted` bytes were. `urgent`: if nothing goes, also
/// what has been used.
fn round(inner: &EngineInner, wanted: u64, urgent: bool) -> SweepResult {
    let mut indexes = Vec::new();
    let mut in_leaves = 0;
    // Leaves of a replica stay (`page_store::ReplicaBase`).
    let with_leaves = match inner.replica_base {
        Some(_) => Vec::new(),
        None => tables(inner),
    };
    for swept in with_leaves {
        for index in swept.table.indexes() {
            in_leaves += index.memory_bytes() as u64;
            indexes.push((swept.which, index));
        }
    }
    indexes.sort_unstable_by_key(|(table, index)| (*table, index.id()));
    let used = inner.memory_queue.memory.used_bytes().max(1);
    let part = in_leaves.min(used) as f64 / used as f64;
    let mut found = sweep_leaves(inner, &indexes, (wanted as f64 * part) as u64);
    let to_log = LogEviction::is_open(inner);
    // What was used since the round before goes after what was not, whoever has it.
    let (first, second) = if to_log { (1, 1) } else { (2, 0) };
    found.add(sweep(
        inner,
        wanted.saturating_sub(found.bytes),
        first,
        true,
    ));
    if to_log && found.bytes < wanted {
        found.add(sweep_to_log(inner, wanted - found.bytes, true));
    }
    if second > 0 && found.bytes < wanted {
        found.add(sweep(inner, wanted - found.bytes, second, true));
    }
    // What the one has not the other may have.
    let left = wanted.saturating_sub(found.bytes);
    found.add(sweep_leaves(inner, &indexes, left));
    if to_log && found.bytes < wanted {
        found.add(sweep_to_log(inner, wanted - found.bytes, false));
    }
    if found.bytes == 0 && urgent {
        found.add(sweep(inner, wanted, 1, false));
    }
    if found.bytes > 0 {
        let (bytes, pending) = (found.bytes, Arc::clone(&inner.memory_queue.pending));
        pending.fetch_add(bytes, Ordering::SeqCst);
        Guard::pin().defer(move || {
            pending.fetch_sub(bytes, Ordering::SeqCst);
        });
    }
    found
}

impl SweepResult {
    fn add(&mut self, other: SweepResult) {
        self.rows += other.rows;
        self.chunks += other.chunks;
        self.leaves += other.leaves;
        self.bytes += other.bytes;
        self.unsaved |= other.unsaved;
    }
}

/// Waits a while for what was evicted to be free, and serves those who wait.
fn free(memory_queue: &MemoryQueue) {
    for _ in 0..FREE_LOOKS {
        Guard::pin().flush();
        memory_queue.serve();
        if memory_queue.pending.load(Ordering::SeqCst) == 0 {
            return;
        }
        logstead_env::sleep(FREE_AGAIN);
    }
}

impl Engine {
    /// Evicts every row that may go now, and tells of how many chunks nothing is left. For tests, and for
    /// `evict_always`.
    pub fn evict_all(&self) -> u64 {
        let found = sweep(self.inner(), u64::MAX, 1, false);
        Guard::pin().flush();
        found.chunks
    }

    /// What was evicted and brought in so far.
    pub fn eviction_stats(&self) -> EvictionStats {
        let memory_queue = &self.inner().memory_queue;
        let sources = self.inner().chunks.sources();
        let of_sources = |count: fn(&LoggedSources) -> u64| sources.map_or(0, count);
        EvictionStats {
            rows_evicted: memory_queue.rows_evicted.load(Ordering::Relaxed),
            chunks_evicted: memory_queue.chunks_evicted.load(Ordering::Relaxed),
            rows_loaded: memory_queue.rows_loaded.load(Ordering::Relaxed),
            chunks_loaded: memory_queue.loaded.load(Ordering::Relaxed),
            leaves_evicted: memory_queue.leaves_evicted.load(Ordering::Relaxed),
            chunks_evicted_to_log: memory_queue.chunks_evicted_to_log.load(Ordering::Relaxed),
            chunks_in_log: memory_queue.logged.chunks(),
            chunks_from_page_services: of_sources(|of| of.by_services.load(Ordering::Relaxed)),
            chunks_from_log: of_sources(|of| of.by_log.load(Ordering::Relaxed)),
            log_readings: of_sources(LoggedSources::log_readings),
            fruitful_log_readings: of_sources(LoggedSources::fruitful_log_readings),
        }
    }

    /// The longest that anybody waits for memory before it is refused, from now on.
    pub fn set_memory_wait(&self, most: Duration) {
        self.inner().memory_queue.set_wait_max(most);
    }
}

/// Keeps memory within the budget until it is dropped, which waits for the round under way, and for a checkpoint if the
/// engine has no [`Checkpointer`] of its own.
pub struct Evictor {
    memory_queue: Arc<MemoryQueue>,
    thread: Option<JoinHandle>,
}

impl Evictor {
    /// Starts the thread. One for an engine. `always`: evicts all the time whatever can be evicted, to show what that
    /// breaks.
    pub fn start(engine: &Engine, always: bool) -> std::io::Result<Evictor> {
        let memory_queue = Arc::clone(&engine.inner().memory_queue);
        let engine = engine.clone();
        memory_queue.begin();
        let thread = logstead_env::spawn("evictor", None, move || run(&engine, always));
        match thread {
            Ok(thread) => Ok(Evictor {
                memory_queue,
                thread: Some(thread),
            }),
            Err(error) => {
                memory_queue.end();
                Err(error)
            }
        }
    }
}

impl Drop for Evictor {
    fn drop(&mut self) {
        self.memory_queue.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was told by whoever panicked.
            let _told = thread.join();
        }
        self.memory_queue.end();
    }
}

/// Whether a round is worth its work while somebody waits. One looks at every chunk there is; where what is in memory
/// has changed and waits for a checkpoint, that would be done every `PATIENCE` for nothing, on a core that the
/// checkpoint could use.
#[derive(Debug, Default)]
struct Sweeps {
    /// What there was when the last one found nothing.
    vain: Option<(ReclaimProgress, SweepResult)>,
    /// How many were left out since.
    left_out: u32,
}

/// After so many rounds that were left out one is made all the same: snapshots end and garbage is collected without a
/// word.
const LEFT_OUT_MAX: u32 = 3;

impl Sweeps {
    /// What one found, which is to be told of this one too, if that is not worth while.
    fn instead(&mut self, waited: bool, reclaim_progress: ReclaimProgress) -> Option<SweepResult> {
        let (before, found) = self.vain?;
        if !waited || before != reclaim_progress || self.left_out == LEFT_OUT_MAX {
            self.vain = None;
            return None;
        }
        self.left_out += 1;
        Some(found)
    }

    /// What one has found, with what there was before.
    fn note(&mut self, reclaim_progress: ReclaimProgress, found: SweepResult) {
        self.left_out = 0;
        self.vain = (found.bytes == 0).then_some((reclaim_progress, found));
    }

    /// Something may go that could not.
    fn hope(&mut self) {
        self.vain = None;
    }
}

/// Who takes checkpoints when the evictor asks.
#[derive(Default)]
struct Pacer {
    own: Option<Checkpointer>,
    /// When a newer checkpoint of the primary was looked for last, and when one was met, in nanoseconds of the
    /// monotonic clock, and what rows were read from then.
    looked_at: Option<u64>,
    met: (u64, u64),
    /// Somebody is looking.
    looking: Arc<AtomicBool>,
}

impl Pacer {
    /// A replica adopts what its primary publishes: where that is nothing for some time, nobody is to hope for it.
    fn look_at_primary(&mut self, inner: &EngineInner, base: &Arc<ReplicaBase>) {
        let now = inner.env.clock.monotonic().as_nanos();
        let publication = base.newest.get().publication;
        if self.met.1 != publication || self.looked_at.is_none() {
            self.met = (now, publication);
        }
        if now.saturating_sub(self.met.0) >= PRIMARY_IDLE.as_nanos() as u64 {
            inner.memory_queue.checkpoints_fail();
        }
        let is_due = |at| now.saturating_sub(at) >= LOOK_AT_PRIMARY.as_nanos() as u64;
        if self.looked_at.is_none_or(is_due) && !self.looking.swap(true, Ordering::SeqCst) {
            self.looked_at = Some(now);
            let (base, looking) = (Arc::clone(base), Arc::clone(&self.looking));
            // The follower looks as well, but it may be in need of memory. The home may not answer: nobody waits here.
            let started = logstead_env::spawn("adopt", None, move || {
                let _looked_at_again = base.adopt_newest();
                looking.store(false, Ordering::SeqCst);
            });
            if started.is_err() {
                self.looking.store(false, Ordering::SeqCst);
            }
        }
    }

    fn ask(&mut self, engine: &Engine, at_once: bool) {
        let inner = engine.inner();
        if let Some(base) = &inner.replica_base {
            self.look_at_primary(inner, base);
            return;
        }
        inner.checkpoints.for_memory.store(true, Ordering::Relaxed);
        if engine.ask_for_checkpoint(at_once) {
            return;
        }
        // Nobody hears what comes of it: who waits is told if it was in vain.
        match Checkpointer::start(engine, None, Box::new(|_| {})) {
            Ok(own) => {
                self.own = Some(own);
                engine.ask_for_checkpoint(at_once);
            }
            Err(_) => engine.inner().memory_queue.checkpoints_fail(),
        }
    }
}

fn run(engine: &Engine, always: bool) {
    // Nobody else would ever settle those who wait.
    let _watch = abort_on_panic("evicting");
    let inner = engine.inner();
    let memory_queue = &inner.memory_queue;
    let mut pacer = Pacer::default();
    let mut sweeps = Sweeps::default();
    let mut log_eviction = LogEviction::default();
    // Rounds in vain while nobody waited.
    let mut idle = 0;
    let again = if always { ALWAYS_AGAIN } else { LOOK_AGAIN };
    while memory_queue.wait(again, always) {
        if always {
            round(inner, u64::MAX, false);
            engine.evict_all();
        }
        memory_queue.serve();
        if log_eviction.wants_checkpoint(inner) {
            pacer.ask(engine, false);
        }
        let waited = memory_queue.some_wait();
        let clock = inner.env.clock.as_ref();
        inner.pasts.tidy(clock, waited || memory_queue.is_scarce());
        if !waited && !memory_queue.is_scarce() {
            idle = 0;
            continue;
        }
        let need = memory_queue.need();
        let mut found = SweepResult::default();
        if need > 0 {
            let reclaim_progress = memory_queue.reclaim_progress();
            found = match sweeps.instead(waited, reclaim_progress) {
                Some(found) => found,
                None => {
                    let found = round(inner, need, waited);
                    sweeps.note(reclaim_progress, found);
                    found
                }
            };
        }
        let short = found.bytes < need || LogEviction::is_at_limit(inner);
        if waited && short && memory_queue.wants_checkpoint() {
            pacer.ask(engine, true);
        } else if short && found.unsaved || LogEviction::is_at_limit(inner) {
            pacer.ask(engine, false);
        }
        if found.bytes > 0 || memory_queue.pending.load(Ordering::SeqCst) > 0 {
            idle = 0;
            memory_queue.has_evicted();
            free(memory_queue);
            continue;
        }
        Guard::pin().flush();
        memory_queue.serve();
        if memory_queue.some_wait() {
            // What is held for who comes to it later may go the next time.
            if let Some(sources) = inner.chunks.sources() {
                sources.release();
            }
            if inner.faults.release_read_ahead() {
                sweeps.hope();
            }
            memory_queue.count_in_vain();
            memory_queue.pause(0);
        } else {
            memory_queue.pause(idle);
            idle += 1;
        }
    }
}
