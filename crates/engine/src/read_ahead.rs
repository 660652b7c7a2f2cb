//! Reading ahead: what somebody who goes over rows in order will want next comes in while he looks at what he has.
//!
//! A walk that misses a row asks for what lies behind it, as *runs* ([`Prefetch`]): some chunks that lie together,
//! which one loader thread brings in with as few requests as their pages' places allow. Several runs are read at once.
//! How far ahead a walk is grows with what it has used ([`ReadAhead`]): who wants the first rows alone has little read
//! in vain. A walk over a table asks for the next chunks, one over an index for the rows of the entries that it has
//! read ahead.
//!
//! Invariants:
//! - A1 *What was read ahead stays until the walk has passed it.* It is held like what somebody waits for (`Chunk::wait_for`). So what is read ahead never makes what was read ahead
//!   before it go, wherever the evictor's hand is: a walk that is far larger than memory reads each chunk once.
//! - A2 *It is little.* All of it together takes no more than one part in [`AHEAD_PART`] of what may be used, less than what lies between the evictor's marks, and each walk keeps to one part in
//!   [`WALK_PART`]. What is being read counts from the moment in which it is granted ([`ReadAheadGrant`]), and a guess
//!   that was too low is raised, or nothing comes of it. It is counted like all rows. If somebody waits for memory in
//!   vain, all of it is let go of ([`crate::evict`]).
//! - A3 *It is a guess.* Nobody waits for room for it, nothing of the reserve is taken, and no failure is told: who comes to a row that has not come asks for it as
//!   if nobody had. A loader thread leaves a run as soon as somebody waits whom no other thread serves.
//! - A4 *Nothing is read twice.* What is being read ahead is a fault like any other, which who comes to it waits for ([`crate::fault`]).
//!
//! Without loader threads (a simulation) nothing is read ahead.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_types::Rid;
use parking_lot::Mutex;

use crate::engine::EngineInner;
use crate::evict::{MemoryQueue, ReadAheadGrant};
use crate::rows::TableRows;
use crate::version::{CHUNK_SLOTS, SlotSet};

/// All that is read ahead is at most this part of what may be used.
pub(crate) const AHEAD_PART: u64 = 16;
/// What one walk has read ahead is at most this part.
const WALK_PART: u64 = 64;
/// The chunks of a run.
const RUN_CHUNKS: u64 = 16;
/// How far ahead a walk is, at most.
const CHUNKS_MAX: u64 = 128;

/// Some chunks that somebody is about to come to.
pub(crate) struct Prefetch {
    pub(crate) rows: Arc<TableRows>,
    /// Ascending, with the rows that are wanted.
    chunks: Box<[(u64, SlotSet)]>,
    memory_queue: Arc<MemoryQueue>,
    brought: Arc<Brought>,
    state: Mutex<State>,
    /// There was no room for the rest.
    stopped: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The first chunk that no thread has begun with, by its place.
    next: usize,
    /// Who has asked has passed the chunks below this.
    passed: u64,
    /// Chunks that are held for him, and what was brought of each.
    held: Vec<(u64, u64)>,
}

/// What a walk has had read ahead so far: tells how large its chunks are.
#[derive(Default)]
struct Brought {
    chunks: AtomicU64,
    bytes: AtomicU64,
}

impl Prefetch {
    /// One that nobody goes over.
    #[cfg(test)]
    pub(crate) fn of(
        rows: &Arc<TableRows>,
        chunks: &[u64],
        memory_queue: &Arc<MemoryQueue>,
    ) -> Arc<Prefetch> {
        Arc::new(Prefetch {
            rows: Arc::clone(rows),
            chunks: chunks.iter().map(|chunk| (*chunk, SlotSet::ALL)).collect(),
            memory_queue: Arc::clone(memory_queue),
            brought: Arc::default(),
            state: Mutex::default(),
            stopped: AtomicBool::new(false),
        })
    }

    /// The chunks that no thread has begun with, but for those that were passed already: all of them, if it was let go of. For the thread that is at it, between chunks, or while no thread is.
    pub(crate) fn rest(&self) -> &[(u64, SlotSet)] {
        let next = {
            let mut state = self.state.lock();
            let State { next, passed, .. } = &mut *state;
            let is_passed = |(number, _): &(u64, SlotSet)| number < passed;
            while self.chunks.get(*next).is_some_and(is_passed) {
                *next += 1;
            }
            *next
        };
        self.chunks.get(next..).unwrap_or_default()
    }

    /// A thread begins with the first chunk of the rest. False: it is not wanted any more. If it is, it stays, when it has come, until it was passed (A1).
    pub(crate) fn begin(&self) -> bool {
        let mut state = self.state.lock();
        let Some((number, slots)) = self.chunks.get(state.next) else {
            return false;
        };
        state.next += 1;
        let Some(chunk) = self.rows.chunk(*number).filter(|_| *number >= state.passed) else {
            return false;
        };
        chunk.wait_for(slots);
        state.held.push((*number, 0));
        true
    }

    /// The first chunk of the rest is left to others.
    pub(crate) fn skip(&self) {
        self.state.lock().next += 1;
    }

    /// So many bytes were brought of a chunk, by a load with this share.
    pub(crate) fn has_brought(&self, number: u64, bytes: u64, share: &ReadAheadGrant<'_>) {
        self.brought.chunks.fetch_add(1, Ordering::Relaxed);
        self.brought.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut state = self.state.lock();
        if let Some(held) = state.held.iter_mut().find(|(held, _)| *held == number) {
            held.1 = bytes;
            share.keep(bytes);
        }
    }

    /// There is no room for the rest, in memory or among the runs.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.state.lock().next = self.chunks.len();
    }

    /// Who has asked has passed the chunks below `number`. True: that is all of them.
    pub(crate) fn pass(&self, number: u64) -> bool {
        let mut state = self.state.lock();
        state.passed = state.passed.max(number);
        let State { passed, held, .. } = &mut *state;
        held.retain(|(number, bytes)| {
            let is_passed = number < passed;
            if is_passed {
                self.memory_queue.remove_ahead(*bytes);
                // Shells stay: it is the one that is held.
                if let Some(chunk) = self.rows.chunk(*number) {
                    chunk.came_back();
                }
            }
            !is_passed
        });
        self.chunks.last().is_none_or(|(last, _)| last < passed)
    }

    /// Lets go of all of it.
    pub(crate) fn release(&self) {
        self.pass(u64::MAX);
    }
}

impl Drop for Prefetch {
    fn drop(&mut self) {
        self.release();
    }
}

/// What a walk has asked for ahead of itself. Dropped, it lets go of it.
#[derive(Default)]
pub(crate) struct ReadAhead {
    runs: VecDeque<Arc<Prefetch>>,
    /// All below was asked for, or has been passed.
    next: u64,
    /// How many chunks it is ahead.
    chunks: u64,
    brought: Arc<Brought>,
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        // A thread may have one in its hands.
        self.runs.iter().for_each(|run| run.release());
    }
}

impl ReadAhead {
    /// How many chunks one walk may have read ahead, by how large they were so far.
    fn chunks_max(&self, memory_queue: &MemoryQueue) -> u64 {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        let (chunks, bytes) = (count(&self.brought.chunks), count(&self.brought.bytes));
        let average = bytes / chunks.max(1);
        let most = memory_queue.limit(false) / WALK_PART;
        most.checked_div(average)
            .unwrap_or(CHUNKS_MAX)
            .min(CHUNKS_MAX)
    }

    /// A walk over a table has come to a chunk, which it `misses`, perhaps: asks for those that come then, below `end`.
    pub(crate) fn advance_to_chunk(
        &mut self,
        engine: &EngineInner,
        rows: &Arc<TableRows>,
        number: u64,
        misses: bool,
        end: u64,
    ) {
        if !engine.faults.reads_ahead() {
            return;
        }
        self.runs.retain(|run| !run.pass(number));
        let is_stopped = |run: &Arc<Prefetch>| run.stopped.load(Ordering::Relaxed);
        if misses && self.runs.iter().any(is_stopped) {
            self.runs.retain(|run| !is_stopped(run));
            self.next = 0;
            self.chunks /= 4;
        }
        // Who misses it asks for it himself.
        let first = number + u64::from(misses);
        self.next = self.next.max(first);
        if self.next - first > self.chunks.div_ceil(2) {
            return;
        }
        let most = self.chunks_max(&engine.memory_queue);
        self.chunks = (self.chunks * 2).max(1).min(most);
        let to = first.saturating_add(self.chunks).min(end);
        while self.next < to {
            let run_end = (self.next + RUN_CHUNKS).min(to);
            let chunks = (self.next..run_end).map(|number| (number, SlotSet::ALL));
            self.ask(engine, rows, chunks);
            self.next = run_end;
        }
    }

    /// A walk over an index has missed a row, and will come to these next. What it was to come to before is let go of.
    pub(crate) fn advance_to_rows(
        &mut self,
        engine: &EngineInner,
        rows: &Arc<TableRows>,
        rids: impl Iterator<Item = Rid>,
    ) {
        self.release();
        if !engine.faults.reads_ahead() {
            return;
        }
        let mut chunks: BTreeMap<u64, SlotSet> = BTreeMap::new();
        for rid in rids {
            let slots = chunks.entry(rid.0 / CHUNK_SLOTS as u64).or_default();
            slots.insert((rid.0 % CHUNK_SLOTS as u64) as usize);
        }
        let most = usize::try_from(self.chunks_max(&engine.memory_queue)).unwrap_or(usize::MAX);
        // Chunks that lie together, one run; those that do not, one each: they are read at once.
        let mut run: Vec<(u64, SlotSet)> = Vec::new();
        for (number, slots) in chunks.into_iter().take(most) {
            let lies_apart = run
                .first()
                .is_some_and(|(first, _)| number - first >= RUN_CHUNKS);
            if lies_apart {
                self.ask(engine, rows, run.drain(..));
            }
            run.push((number, slots));
        }
        self.ask(engine, rows, run.into_iter());
    }

    /// Lets go of what was asked for.
    pub(crate) fn release(&mut self) {
        self.runs.drain(..).for_each(|run| run.release());
    }

    fn ask(
        &mut self,
        engine: &EngineInner,
        rows: &Arc<TableRows>,
        chunks: impl Iterator<Item = (u64, SlotSet)>,
    ) {
        let chunks: Box<[_]> = chunks
            .filter_map(|(number, slots)| {
                let absent = rows.absent_of(number, &slots);
                (!absent.is_empty()).then_some((number, absent))
            })
            .collect();
        if chunks.is_empty() {
            return;
        }
        let run = Arc::new(Prefetch {
            rows: Arc::clone(rows),
            chunks,
            memory_queue: Arc::clone(&engine.memory_queue),
            brought: Arc::clone(&self.brought),
            state: Mutex::default(),
            stopped: AtomicBool::new(false),
        });
        engine.faults.request_read_ahead(&run);
        self.runs.push_back(run);
    }
}

#[cfg(test)]
mod tests;
