//! How far ahead a walk has rows read.
//!
//! The rules are those of `crate::read_ahead`, which has the runs that a walk asks for.

use crate::engine::EngineInner;
use crate::memory_queue::MemoryQueue;
use crate::read_ahead::{Prefetch, PrefetchCounters};
use crate::rows::TableRows;
use crate::version::{CHUNK_SLOTS, SlotSet};
use logstead_types::Rid;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What one walk has read ahead is at most this part.
const WALK_PART: u64 = 64;

/// The chunks of a run.
const RUN_CHUNKS: u64 = 16;

/// How far ahead a walk is, at most.
const CHUNKS_MAX: u64 = 128;

/// What a walk has asked for ahead of itself. Dropped, it lets go of it.
#[derive(Default)]
pub(crate) struct ReadAhead {
    runs: VecDeque<Arc<Prefetch>>,
    /// All below was asked for, or has been passed.
    next: u64,
    /// How many chunks it is ahead.
    chunks: u64,
    brought: Arc<PrefetchCounters>,
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
