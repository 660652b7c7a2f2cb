//! Memory that is warm in the next engine: what is in this one's is listed, and brought in there first. It is what
//! PostgreSQL's `autoprewarm` does.
//!
//! Owns: the list ([`PrewarmList`]), how it is taken ([`Engine::prewarm_list`]), and how the next engine brings in what
//! it names ([`Engine::prewarm`]), in the background, before the rest ([`crate::warmup`]).
//!
//! # The list
//!
//! Runs of chunks, with the rows that were there of them, and runs of leaves of indexes. What somebody has looked for
//! since the evictor came by last, or the time before (*hot*), comes first. It is bounded ([`ROW_RUNS_MAX`],
//! [`LEAF_RUNS_MAX`]): of what is
//! scattered over too many runs the smallest are left out. It is a hint: it is taken without a lock while others work,
//! it may be old, or have come from anywhere. So nothing depends on it; what it names and there is not is skipped.
//!
//! # Bringing in
//!
//! Invariants:
//! - It stops at three quarters of the budget without its reserve, the evictor's low mark ([`has_plenty`]): nothing is
//!   evicted for it, and it takes no room that somebody waits for.
//! - Whoever waits for a read comes first: before each chunk and leaf it is looked whether somebody waits whom no
//!   loader thread serves. At most a quarter as many threads are at it as there are loader threads.
//! - Of a failed read nothing is told: who needs the row is. If the home does not answer it ends.

mod list;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use logstead_checkpoint::PageReader;

use crate::engine::Engine;
use crate::fault_error::FaultError;
use crate::load::has_plenty;
use crate::prewarm_stats::PrewarmStats;
use crate::table::Table;
use crate::version::{Guard, ResidentSlots, SlotSet};
use list::{Kept, LeafRun, RowRun};
pub use list::{LEAF_RUNS_MAX, PrewarmList, ROW_RUNS_MAX};

/// A thread brings in so many chunks before it takes the next ones.
const PIECE_CHUNKS: u64 = 16;
/// So many chunks of a table are listed before it is the next one's turn.
const TURN_CHUNKS: u64 = 4096;
/// One thread for so many loader threads.
const LOADERS_A_THREAD: usize = 4;
/// How long those who wait for reads are given before it is looked again.
const YIELD_TIME: Duration = Duration::from_millis(1);
/// A chunk that has so many rows in memory for each that is absent is listed as a whole.
const WHOLE_PART: usize = 4;

impl Engine {
    /// What is in memory, for an engine that is to have as much. Takes some milliseconds for a hundred thousand chunks,
    /// and waits for nothing. When `go_on` says no it is as long as it is by then.
    pub fn prewarm_list(&self, go_on: impl Fn() -> bool) -> PrewarmList {
        let (mut rows, mut leaves) = (Kept::new(ROW_RUNS_MAX), Kept::new(LEAF_RUNS_MAX));
        let mut tables = self.tables();
        tables.retain(|table| !table.is_temporary());
        tables.sort_unstable_by_key(|table| table.id());
        for table in &tables {
            for index in table.indexes() {
                if !go_on() {
                    break;
                }
                index.resident_leaves(|run| leaves.push(LeafRun::new(table.id(), index.id(), run)));
            }
        }
        // By turns: when time is short every table has its share.
        let ends: Vec<u64> = tables.iter().map(|table| table.rows.chunk_end()).collect();
        let last = ends.iter().copied().max().unwrap_or(0);
        'all: for first in (0..last).step_by(TURN_CHUNKS as usize) {
            for (table, end) in tables.iter().zip(&ends) {
                if !go_on() {
                    break 'all;
                }
                list_rows(table, first..(first + TURN_CHUNKS).min(*end), &mut rows);
            }
        }
        PrewarmList::new(self.database(), rows, leaves)
    }

    /// Brings in what a list names, as long as there is plenty of memory and `go_on` says so. Blocks: for threads of
    /// their own.
    pub fn prewarm(&self, list: &PrewarmList, go_on: impl Fn() -> bool) {
        let work = PrewarmWork::begin(self, list);
        work.run(self, &go_on);
        self.inner().prewarm.end();
    }

    /// The same on several threads, until `stopping` says so.
    pub(crate) fn prewarm_on_threads(&self, list: &PrewarmList, stopping: &Arc<AtomicBool>) {
        let work = Arc::new(PrewarmWork::begin(self, list));
        let more = (self.inner().faults.threads_max() / LOADERS_A_THREAD).saturating_sub(1);
        let helpers = (0..more).map(|_| {
            let (work, engine, stop) = (Arc::clone(&work), self.clone(), Arc::clone(stopping));
            logstead_env::spawn("prewarm", None, move || {
                work.run(&engine, &|| !stop.load(Ordering::Relaxed));
            })
        });
        // If none can be started this thread does it alone.
        let helpers: Vec<_> = helpers.flatten().collect();
        work.run(self, &|| !stopping.load(Ordering::Relaxed));
        for helper in helpers {
            // A panic was told by whoever panicked.
            let _told = helper.join();
        }
        self.inner().prewarm.end();
        let PrewarmStats {
            chunks_listed: listed,
            chunks_loaded: loaded,
            chunks_skipped: skipped,
            leaves_listed: leaves,
            ..
        } = self.prewarm_stats();
        tracing::info!(
            "brought in what was in memory before: {loaded} of {listed} chunks ({skipped} were there, or are gone), {leaves} leaves"
        );
    }

    /// What was brought in of what was in memory before.
    pub fn prewarm_stats(&self) -> PrewarmStats {
        self.inner().prewarm.stats()
    }
}

/// Lists the rows of some chunks of a table that are in memory.
fn list_rows(table: &Table, chunks: Range<u64>, kept: &mut Kept<RowRun>) {
    for number in chunks {
        let resident = table.rows.chunk(number);
        let Some(ResidentSlots {
            present,
            absent,
            is_hot,
        }) = resident.and_then(|chunk| chunk.resident(&Guard::pin()))
        else {
            continue;
        };
        if present.is_empty() {
            continue;
        }
        let slots = match absent.len() * WHOLE_PART <= present.len() {
            true => SlotSet::ALL,
            false => present,
        };
        if let Some(last) = kept.last_mut(is_hot)
            && last.is_before(table.id(), number, &slots)
        {
            last.chunks += 1;
            continue;
        }
        kept.push(RowRun {
            table: table.id(),
            first: number,
            chunks: 1,
            slots,
            is_hot,
        });
    }
}

/// A piece of what a list names.
enum Piece {
    Rows(Arc<Table>, RowRun),
    Leaves(Arc<Table>, LeafRun),
}

/// What threads bring in together.
struct PrewarmWork {
    /// Hottest first.
    pieces: Vec<Piece>,
    next: AtomicUsize,
    /// So many of them are hot, and so many of those were brought in.
    hot: usize,
    hot_ended: AtomicUsize,
    /// There is no room for more, or the home does not answer.
    is_over: AtomicBool,
}

impl PrewarmWork {
    /// Counts what the list names, and leaves out what there is not.
    fn begin(engine: &Engine, list: &PrewarmList) -> PrewarmWork {
        let counters = &engine.inner().prewarm;
        counters.expect(list.chunk_count(), list.leaf_count());
        let (mut pieces, mut hot) = (Vec::new(), 0);
        let is_ours = list.database() == engine.database();
        let table = |id| engine.table(id).filter(|_| is_ours);
        let mut skipped = 0u64;
        for is_hot in [true, false] {
            for run in list.leaves() {
                if run.leaves.is_hot != is_hot {
                    continue;
                }
                if let Some(table) = table(run.table) {
                    pieces.push(Piece::Leaves(table, run.clone()));
                }
            }
            for run in list.rows().iter().filter(|run| run.is_hot == is_hot) {
                let table = table(run.table);
                // Whatever it says: only chunks that there are.
                let end = table.as_ref().map_or(0, |table| table.rows.chunk_end());
                let there = run.chunks.min(end.saturating_sub(run.first));
                skipped = skipped.saturating_add(run.chunks - there);
                let Some(table) = table else { continue };
                for at in (0..there).step_by(PIECE_CHUNKS as usize) {
                    let piece = RowRun {
                        first: run.first + at,
                        chunks: PIECE_CHUNKS.min(there - at),
                        ..run.clone()
                    };
                    pieces.push(Piece::Rows(Arc::clone(&table), piece));
                }
            }
            if is_hot {
                hot = pieces.len();
            }
        }
        counters.chunks_skipped.store(skipped, Ordering::Relaxed);
        PrewarmWork {
            pieces,
            next: AtomicUsize::new(0),
            hot,
            hot_ended: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
        }
    }

    /// Takes one piece after the other.
    fn run(&self, engine: &Engine, go_on: &impl Fn() -> bool) {
        let inner = engine.inner();
        let mut reader = inner.chunks.reader();
        let goes_on = || {
            while go_on() && inner.faults.is_behind() {
                logstead_env::sleep(YIELD_TIME);
            }
            go_on() && !self.is_over.load(Ordering::Relaxed) && has_plenty(engine.memory())
        };
        while goes_on() {
            let at = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(piece) = self.pieces.get(at) else {
                return;
            };
            if at >= self.hot {
                // Others may be at what is hot still, and there may be room for no more.
                while go_on() && self.hot_ended.load(Ordering::SeqCst) < self.hot {
                    logstead_env::sleep(YIELD_TIME);
                }
                if !goes_on() {
                    return;
                }
            }
            let brought = match piece {
                Piece::Rows(table, run) => bring_rows(engine, table, run, &mut reader, &goes_on),
                Piece::Leaves(table, run) => {
                    bring_leaves(engine, table, run, &mut reader, &goes_on)
                }
            };
            if brought.is_err() {
                self.is_over.store(true, Ordering::Relaxed);
            }
            if at < self.hot {
                self.hot_ended.fetch_add(1, Ordering::SeqCst);
            }
        }
    }
}

/// Is it over because of this? What is damaged, or gone, is left.
fn ends(error: &FaultError) -> bool {
    !matches!(error, FaultError::Damaged(_) | FaultError::TooOld(_))
}

fn bring_rows(
    engine: &Engine,
    table: &Table,
    run: &RowRun,
    reader: &mut PageReader,
    goes_on: &impl Fn() -> bool,
) -> Result<(), FaultError> {
    let inner = engine.inner();
    let count = |counter: &AtomicU64| counter.fetch_add(1, Ordering::Relaxed);
    for number in run.first..run.first + run.chunks {
        if !goes_on() {
            return Ok(());
        }
        if table.is_dropped() {
            count(&inner.prewarm.chunks_skipped);
            continue;
        }
        let loaded = inner.read_rows(|| {
            let chunks = &inner.chunks;
            chunks.load_to_warm(&table.rows, number, &run.slots, run.is_hot, reader)
        });
        match loaded {
            Ok(true) => count(&inner.prewarm.chunks_loaded),
            Err(error) if ends(&error) => return Err(error),
            Ok(false) | Err(_) => count(&inner.prewarm.chunks_skipped),
        };
    }
    Ok(())
}

fn bring_leaves(
    engine: &Engine,
    table: &Table,
    run: &LeafRun,
    reader: &mut PageReader,
    goes_on: &impl Fn() -> bool,
) -> Result<(), FaultError> {
    let inner = engine.inner();
    let Some(index) = table.index(run.index) else {
        return Ok(());
    };
    let goes_on = || goes_on() && !table.is_dropped();
    let loaded = inner
        .pages
        .load_leaves_between(run.table, &index, &run.leaves, reader, goes_on);
    let loaded = loaded.map_err(|error| match &inner.replica_base {
        Some(base) => base.explain(error),
        None => error,
    });
    match loaded {
        Ok(reads) => {
            inner
                .prewarm
                .leaves_loaded
                .fetch_add(reads, Ordering::Relaxed);
            Ok(())
        }
        Err(error) if ends(&error) => Err(error),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests;
