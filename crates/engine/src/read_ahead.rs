//! Reading ahead: what somebody who goes over rows in order will want next comes in while he looks at what he has.
//!
//! A walk that misses a row asks for what lies behind it, as *runs* ([`Prefetch`]): some chunks that lie together,
//! which one loader thread brings in with as few requests as their pages' places allow. Several runs are read at once.
//! How far ahead a walk is grows with what it has used (`ReadAhead`): who wants the first rows alone has little read
//! in vain. A walk over a table asks for the next chunks, one over an index for the rows of the entries that it has
//! read ahead.
//!
//! Invariants:
//! - A1 *What was read ahead stays until the walk has passed it.* It is held like what somebody waits for
//!   (`Chunk::wait_for`). So what is read ahead never makes what was read ahead before it go, wherever the evictor's
//!   hand is: a walk that is far larger than memory reads each chunk once.
//! - A2 *It is little.* All of it together takes no more than one part in `AHEAD_PART` of what may be used, less than
//!   what lies between the evictor's marks, and each walk keeps to one part in
//!   `WALK_PART`. What is being read counts from the moment in which it is granted ([`ReadAheadGrant`]), and a guess
//!   that was too low is raised, or nothing comes of it. It is counted like all rows. If somebody waits for memory in
//!   vain, all of it is let go of ([`crate::evict`]).
//! - A3 *It is a guess.* Nobody waits for room for it, nothing of the reserve is taken, and no failure is told: who
//!   comes to a row that has not come asks for it as if nobody had. A loader thread leaves a run as soon as somebody
//!   waits whom no other thread serves.
//! - A4 *Nothing is read twice.* What is being read ahead is a fault like any other, which who comes to it waits for
//!   ([`crate::page_loader`]).
//!
//! Without loader threads (a simulation) nothing is read ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;

use crate::memory_queue::{MemoryQueue, ReadAheadGrant};
use crate::rows::TableRows;
use crate::version::SlotSet;

/// Some chunks that somebody is about to come to.
pub(crate) struct Prefetch {
    pub(crate) rows: Arc<TableRows>,
    /// Ascending, with the rows that are wanted.
    pub(crate) chunks: Box<[(u64, SlotSet)]>,
    pub(crate) memory_queue: Arc<MemoryQueue>,
    pub(crate) brought: Arc<PrefetchCounters>,
    pub(crate) state: Mutex<PrefetchState>,
    /// There was no room for the rest.
    pub(crate) stopped: AtomicBool,
}

#[derive(Default)]
pub(crate) struct PrefetchState {
    /// The first chunk that no thread has begun with, by its place.
    next: usize,
    /// Who has asked has passed the chunks below this.
    passed: u64,
    /// Chunks that are held for him, and what was brought of each.
    held: Vec<(u64, u64)>,
}

/// What a walk has had read ahead so far: tells how large its chunks are.
#[derive(Default)]
pub(crate) struct PrefetchCounters {
    pub(crate) chunks: AtomicU64,
    pub(crate) bytes: AtomicU64,
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

    /// The chunks that no thread has begun with, but for those that were passed already: all of them, if it was let go
    /// of. For the thread that is at it, between chunks, or while no thread is.
    pub(crate) fn rest(&self) -> &[(u64, SlotSet)] {
        let next = {
            let mut state = self.state.lock();
            let PrefetchState { next, passed, .. } = &mut *state;
            let is_passed = |(number, _): &(u64, SlotSet)| number < passed;
            while self.chunks.get(*next).is_some_and(is_passed) {
                *next += 1;
            }
            *next
        };
        self.chunks.get(next..).unwrap_or_default()
    }

    /// A thread begins with the first chunk of the rest. False: it is not wanted any more. If it is, it stays, when it
    /// has come, until it was passed (A1).
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
        let PrefetchState { passed, held, .. } = &mut *state;
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

#[cfg(test)]
mod tests;
