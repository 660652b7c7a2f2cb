//! How often the hot paths allocate, and what a row takes: counted by the global allocator, on this thread alone.
#![allow(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use logstead_engine::{
    Engine, EngineOptions, ExpectPresent, FlushMode, Guard, Index, Isolation, KeyExtractor,
    KeyKind, RowBuilder, RowRef, Table, Txn, Worker, footprint,
};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{IndexId, TableId, WorkerId};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
}

fn note(layout: Layout, sign: i64) {
    LIVE_BYTES.set(LIVE_BYTES.get() + sign * footprint(layout.size()) as i64);
}

// SAFETY: passes everything on to the system's allocator; counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        note(layout, 1);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(layout, -1);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The first column, eight bytes.
struct Key;

impl KeyExtractor for Key {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(0).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

struct World {
    table: Arc<Table>,
    index: Arc<Index>,
    worker: Worker,
    builder: RowBuilder,
}

impl World {
    fn new() -> World {
        let (env, _) = Env::simulated(1);
        let home = Arc::new(MemoryHome::new(4 << 20));
        let (engine, _) =
            Engine::open(EngineOptions::default(), LogHome::from(home), env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let index = engine.create_index(&table, IndexId(20_001), true, Arc::new(Key));
        World {
            table,
            index,
            worker: engine.worker(WorkerId(0)),
            builder: RowBuilder::new(),
        }
    }

    /// A bigint and a text: 100 bytes of data.
    fn row(&mut self, k: u64, fill: u8) -> &[u8] {
        self.builder.start(1, 2);
        self.builder.push(Some(&k.to_be_bytes()));
        self.builder.push(Some(&[fill; 92]));
        self.builder.finish()
    }

    fn insert(&mut self, k: u64) {
        let table = self.table.clone();
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let row = self.row(k, b'a');
        txn.insert(&table, row).expect("insert");
        self.commit(txn);
    }

    fn read(&self, k: u64) {
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        {
            let guard = Guard::pin();
            let row = txn
                .get(&self.index, &k.to_be_bytes(), &guard)
                .expect_present();
            assert_eq!(
                row.map(|r| r.bytes.column(0) == Some(&k.to_be_bytes())),
                Some(true)
            );
        }
        self.commit(txn);
    }

    fn update(&mut self, k: u64, fill: u8) {
        let table = self.table.clone();
        let mut txn = self.worker.begin(Isolation::ReadCommitted);
        let (rid, version) = {
            let guard = Guard::pin();
            let row = txn
                .get(&self.index, &k.to_be_bytes(), &guard)
                .expect_present()
                .expect("a row");
            (row.rid, row.version)
        };
        let row = self.row(k, fill);
        txn.update(&table, rid, version, row).expect("update");
        self.commit(txn);
    }

    fn commit(&self, txn: Txn) {
        txn.try_precommit().expect("room");
    }

    /// What happens beside the transactions: flushes and collection.
    fn tend(&self) {
        self.worker.flush(FlushMode::Inline);
        while self.worker.collect_garbage(1_000) {}
    }
}

const ROWS: u64 = 2_000;

/// Allocations per call of `work`, on average over `ROWS` calls after as many to warm up.
fn per_call(world: &mut World, mut work: impl FnMut(&mut World, u64)) -> f64 {
    let mut count = 0;
    for round in 0..2 {
        for k in 0..ROWS {
            let before = COUNT.get();
            work(world, round * ROWS + k);
            if round == 1 {
                count += COUNT.get() - before;
            }
            if k % 50 == 0 {
                world.tend();
            }
        }
    }
    count as f64 / ROWS as f64
}

#[test]
fn reads_allocate_nothing_and_writes_little() {
    let mut world = World::new();
    let insert = per_call(&mut world, |w, n| w.insert(n));
    let read = per_call(&mut world, |w, n| w.read(n));
    let update = per_call(&mut world, |w, n| w.update(n % 100, n as u8));
    println!("allocations: read {read}, update {update}, insert {insert}");
    assert_eq!(read, 0.0, "a read-only transaction with a point read");
    // A version and the transaction's state, and now and then a bag of the epoch collector.
    assert!(update <= 2.1, "{update} per update");
    // The same, a page now and then, and a chunk of slots each 64 rows.
    assert!(insert <= 2.5, "{insert} per insert");
}

#[test]
fn a_row_of_100_bytes_with_a_bigint_key_takes_less_than_220_bytes() {
    const MANY: u64 = 40_000;
    let mut world = World::new();
    let memory = world.worker.engine().memory();
    world.insert(u64::MAX);
    world.tend();
    let (live, used) = (LIVE_BYTES.get(), memory.used_bytes());
    // The log of the memory home is on this thread's count too: leave it out by looking at the account, and check the
    // account against what was really allocated with rows that are not logged yet.
    for k in 0..MANY {
        world.insert(k);
        if k % 50 == 0 {
            world.tend();
        }
    }
    world.tend();
    let per_row = (memory.used_bytes() - used) as f64 / MANY as f64;
    let really = (LIVE_BYTES.get() - live) as f64 / MANY as f64;
    println!("bytes per row: {per_row} in the account, {really} allocated, the log included");
    assert!(per_row < 220.0, "{per_row} bytes");
    assert!(
        per_row > 100.0 && really > per_row,
        "the account counts what is there"
    );
}
