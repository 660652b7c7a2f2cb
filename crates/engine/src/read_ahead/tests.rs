//! What is read ahead comes before it is looked for, once, with few requests; it stays until it was passed, and is
//! little.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{IndexId, TableId, WorkerId};

use super::*;
use crate::index::{KeyExtractor, KeyKind};
use crate::memory_queue::AHEAD_PART;
use crate::row::{RowBuilder, RowRef};
use crate::table::Table;
use crate::txn::index_cursor::IndexCursor;
use crate::txn::{Isolation, ScanCursor, Txn};
use crate::version::CHUNK_SLOTS;
use crate::version::Guard;
use crate::worker::Worker;
use crate::{Engine, EngineOptions, FaultError, PageFault};

struct Unpark(std::thread::Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// The second column, in an order that is not that of the rows.
struct Scattered;

impl KeyExtractor for Scattered {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(1).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

const SCATTERED: IndexId = IndexId(20_001);

struct Place {
    engine: Engine,
    table: Arc<Table>,
    worker: Worker,
    home: MemoryHome,
}

/// So many chunks of rows with so many bytes, saved and absent.
fn place(chunks: u64, row_bytes: usize, memory_bytes: u64) -> Place {
    let home = MemoryHome::new(64 << 20);
    let options = EngineOptions {
        memory_bytes,
        ..EngineOptions::default()
    };
    let env = Env::simulated(1).0;
    let opened = Engine::open(options, LogHome::from(home.clone()), env);
    let (engine, _) = opened.expect("opens");
    let table = engine.create_table(TableId(20_000));
    engine.create_index(&table, SCATTERED, true, Arc::new(Scattered));
    let worker = engine.worker(WorkerId(0));
    let mut builder = RowBuilder::new();
    for chunk in 0..chunks {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        for slot in 0..CHUNK_SLOTS as u64 {
            builder.start(1, 3);
            builder.push(Some(&chunk.to_be_bytes()));
            // First the rows of slot 0, then those of slot 1.
            builder.push(Some(&(slot * chunks + chunk).to_be_bytes()));
            // Pages that cannot be compressed to nothing.
            let noise = (0..row_bytes as u64).map(|at| {
                let mixed = (chunk * 64 + slot + 1).wrapping_mul(at + 0x9e37_79b9_7f4a_7c15);
                (mixed >> 29) as u8
            });
            builder.push(Some(&noise.collect::<Vec<u8>>()));
            txn.insert(&table, builder.finish()).expect("inserts");
        }
        txn.try_precommit().expect("room");
        engine.inner().path.flush_all();
        if chunk % 16 == 15 {
            engine.checkpoint().expect("taken");
            engine.evict_all();
        }
    }
    engine.checkpoint().expect("taken");
    engine.evict_all();
    Place {
        engine,
        table,
        worker,
        home,
    }
}

impl Place {
    fn begin(&self) -> Txn {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        txn.begin_statement();
        txn
    }

    /// Waits until nothing is being read ahead.
    fn settle(&self) {
        while !self.engine.inner().faults.has_no_runs() {
            std::thread::yield_now();
        }
    }

    fn is_there(&self, chunk: u64) -> bool {
        let chunk = self.table.rows.chunk(chunk);
        chunk.is_some_and(|chunk| chunk.is_present())
    }

    fn held(&self) -> u64 {
        self.engine.inner().memory_queue.ahead_bytes()
    }
}

/// One step of a walk.
fn step(txn: &mut Txn, cursor: &mut ScanCursor) -> Result<bool, PageFault> {
    txn.scan_next(cursor, &Guard::pin())
        .map(|row| row.is_some())
}

/// Goes over the rest, and tells how many rows that was.
fn scan(txn: &mut Txn, cursor: &mut ScanCursor) -> Result<u64, FaultError> {
    let mut rows = 0;
    loop {
        match step(txn, cursor) {
            Ok(true) => rows += 1,
            Ok(false) => return Ok(rows),
            Err(absent) => block_on(absent.wait(txn))?,
        }
    }
}

#[test]
fn a_walk_reads_each_chunk_once_and_several_at_a_time() {
    const CHUNKS: u64 = 192;
    let place = place(CHUNKS, 40, u64::MAX);
    let before = place.home.object_reads().0;
    let mut txn = place.begin();
    let mut cursor = ScanCursor::new(&place.table);
    let rows = scan(&mut txn, &mut cursor).expect("read");
    assert_eq!(rows, CHUNKS * CHUNK_SLOTS as u64);
    place.settle();
    assert_eq!(place.held(), 0, "all was passed");
    let stats = place.engine.eviction_stats();
    assert_eq!((stats.chunks_loaded, stats.rows_loaded), (CHUNKS, rows));
    let requests = place.home.object_reads().0 - before;
    assert!(requests < CHUNKS / 2, "{requests} for {CHUNKS} chunks");
}

/// A1: the evictor's hand may be wherever it wants.
#[test]
fn what_was_read_ahead_stays_until_it_was_passed() {
    let place = place(8, 40, u64::MAX);
    let mut txn = place.begin();
    let mut cursor = ScanCursor::new(&place.table);
    let absent = step(&mut txn, &mut cursor).expect_err("absent");
    block_on(absent.wait(&mut txn)).expect("comes");
    place.settle();
    assert!(place.is_there(0) && place.is_there(1) && !place.is_there(2));
    assert!(place.held() > 0);
    place.engine.evict_all();
    assert!(!place.is_there(0) && place.is_there(1));
    // The first chunk comes again; behind it the walk misses nothing any more, and gets ahead.
    let absent = step(&mut txn, &mut cursor).expect_err("absent");
    block_on(absent.wait(&mut txn)).expect("comes");
    for _ in 0..CHUNK_SLOTS {
        assert!(step(&mut txn, &mut cursor).expect("there"));
    }
    place.settle();
    place.engine.evict_all();
    let there: Vec<u64> = (0..8).filter(|chunk| place.is_there(*chunk)).collect();
    assert!(there.starts_with(&[1, 2]), "{there:?}");
    drop(cursor);
    assert_eq!(place.held(), 0);
    place.engine.evict_all();
    assert!((0..8).all(|chunk| !place.is_there(chunk)));
}

/// A2: many walks at once, in a memory that has room for a few chunks; and who wants all of it gets it.
#[test]
fn what_is_read_ahead_is_little_and_goes_if_it_must() {
    const BUDGET: u64 = 24 << 20;
    let place = place(64, 1000, BUDGET);
    let mut txn = place.begin();
    let limit = place.engine.inner().memory_queue.limit(false) / AHEAD_PART;
    let mut most = 0;
    let mut walks = Vec::new();
    for _ in 0..40 {
        let mut cursor = ScanCursor::new(&place.table);
        while let Err(absent) = step(&mut txn, &mut cursor) {
            block_on(absent.wait(&mut txn)).expect("comes");
        }
        // Each goes a little further than the one before.
        for _ in 0..(walks.len() as u64) * CHUNK_SLOTS as u64 {
            while let Err(absent) = step(&mut txn, &mut cursor) {
                block_on(absent.wait(&mut txn)).expect("comes");
            }
        }
        place.settle();
        walks.push(cursor);
        most = most.max(place.held());
        place.engine.evict_all();
    }
    assert!(most > limit / 4 && most <= limit, "{most} of {limit}");
    place.engine.inner().faults.release_read_ahead();
    assert_eq!(place.held(), 0);
    place.engine.evict_all();
    assert!((0..64).all(|chunk| !place.is_there(chunk)));
}

/// Neither what was let go of nor what was passed is read.
#[test]
fn what_nobody_wants_any_more_is_not_read() {
    let place = place(8, 40, u64::MAX);
    let inner = place.engine.inner();
    let before = place.home.object_reads().0;
    let run = |chunks: &[u64]| Prefetch::of(&place.table.rows, chunks, &inner.memory_queue);
    let left = run(&[0, 1, 2, 3]);
    left.release();
    inner.faults.request_read_ahead(&left);
    place.settle();
    assert_eq!(place.home.object_reads().0, before);
    let passed = run(&[0, 1, 2, 3]);
    assert!(!passed.pass(3));
    assert_eq!(passed.rest().len(), 1);
    inner.faults.request_read_ahead(&passed);
    place.settle();
    assert!(place.is_there(3) && (0..3).all(|chunk| !place.is_there(chunk)));
}

/// A walk over an index asks for the rows of its entries, those alone, while it waits for the first.
#[test]
fn a_walk_over_an_index_reads_its_rows_ahead() {
    const CHUNKS: u64 = 100;
    let place = place(CHUNKS, 40, u64::MAX);
    let index = place.table.index(SCATTERED).expect("there");
    let mut txn = place.begin();
    let (lower, upper) = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
    let mut cursor = IndexCursor::new(&index, lower, upper, false);
    let (mut rows, mut misses) = (0, 0);
    while rows < CHUNKS {
        let next = {
            let guard = Guard::pin();
            let next = txn.index_next(&mut cursor, &guard);
            next.map(|row| row.is_some())
        };
        match next {
            Ok(found) => {
                assert!(found);
                rows += 1;
            }
            Err(absent) => {
                misses += 1;
                block_on(absent.wait(&mut txn)).expect("comes");
                place.settle();
                if misses % 2 == 1 {
                    place.engine.evict_all();
                }
            }
        }
    }
    // Batches of 4, 16, 64 and 128 entries, each of which misses its first row, and once more when that was evicted
    // again.
    assert!(misses <= 8, "{misses} misses for {rows} rows");
    assert!(place.engine.eviction_stats().rows_loaded < 300);
    drop(cursor);
    assert_eq!(place.held(), 0);
}

/// What is damaged is told to who comes to it, not before.
#[test]
fn who_reads_ahead_is_not_told_of_failures() {
    let place = place(6, 1000, u64::MAX);
    let home: &logstead_home::LogHome = &LogHome::from(place.home.clone());
    for info in home.objects.list_objects().expect("listed") {
        let mut bytes = vec![0; info.size_bytes as usize];
        home.objects
            .read_object(info.id, 0, &mut bytes)
            .expect("read");
        // Behind the first chunk's page, and before the directory.
        let at = bytes.len() / 2;
        bytes[at] ^= 0x10;
        home.objects.remove_object(info.id).expect("removed");
        home.objects.put_object(info.id, &bytes).expect("stored");
    }
    let mut txn = place.begin();
    let mut cursor = ScanCursor::new(&place.table);
    let mut rows = 0;
    let told = loop {
        match step(&mut txn, &mut cursor) {
            Ok(more) => {
                assert!(more);
                rows += 1;
            }
            Err(absent) => {
                let came = block_on(absent.wait(&mut txn));
                place.settle();
                if let Err(error) = came {
                    break error;
                }
            }
        }
    };
    assert!(matches!(told, FaultError::Damaged(_)), "{told}");
    assert!(
        rows >= CHUNK_SLOTS && rows.is_multiple_of(CHUNK_SLOTS),
        "{rows}"
    );
}
