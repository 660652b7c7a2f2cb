//! How often the hot paths allocate, and what a row takes: counted by the global allocator, on this thread alone. And that nothing
//! is allocated or freed at all while a CSN is drawn and its entry not yet in a lane.
#![allow(unsafe_code, reason = "a counting allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use logstead_engine::{
    CommitOptions, CommitPath, Engine, EngineOptions, FlushMode, Guard, Index, Isolation,
    KeyExtractor, KeyKind, Present, ProtocolKind, QueueKind, RowBuilder, RowLock, RowRef, Table,
    Tracking, Txn, Worker, footprint,
};
use logstead_env::Env;
use logstead_home::MemoryHome;
use logstead_types::{IndexId, TableId, WorkerId};

struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<i64> = const { Cell::new(0) };
    /// Whose first worker is watched, and how often memory was asked for or given back while it had `reserved` published.
    static WATCHED: Cell<Option<&'static CommitPath>> = const { Cell::new(None) };
    static WHILE_RESERVED: Cell<u64> = const { Cell::new(0) };
}

fn note(layout: Layout, sign: i64) {
    if let Some(path) = WATCHED.get()
        && path.csns().is_reserved(WorkerId(0))
    {
        WHILE_RESERVED.set(WHILE_RESERVED.get() + 1);
    }
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
        let (engine, _) = Engine::open(EngineOptions::default(), home, env).expect("opens");
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

/// Polls once.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>, waker: &Waker) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(waker))
}

/// Completes a future that waits for nothing but what this thread has done.
fn complete<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = poll(future.as_mut(), Waker::noop()) {
            return output;
        }
        std::thread::yield_now();
    }
}

/// Allocates whenever it is woken, as the waker of a task in a queue does.
#[derive(Default)]
struct Queueing {
    woken: AtomicUsize,
    tasks: Mutex<Vec<Box<u64>>>,
}

impl Wake for Queueing {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.tasks.lock().expect("no panic").push(Box::new(7));
    }
}

/// Two workers, each with its lane; the first one is watched.
struct Stretch {
    world: World,
    other: Worker,
}

impl Stretch {
    fn new(tracking: Tracking, queue: QueueKind) -> Stretch {
        let commit = CommitOptions {
            protocol: ProtocolKind::Autonomous,
            tracking,
            queue,
            ..CommitOptions::default()
        };
        let options = EngineOptions {
            workers: 2,
            commit,
            ..EngineOptions::default()
        };
        let (env, _) = Env::simulated(1);
        let home = Arc::new(MemoryHome::new(4 << 20));
        let (engine, _) = Engine::open(options, home, env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let index = engine.create_index(&table, IndexId(20_001), true, Arc::new(Key));
        let world = World {
            table,
            index,
            worker: engine.worker(WorkerId(0)),
            builder: RowBuilder::new(),
        };
        Stretch {
            other: engine.worker(WorkerId(1)),
            world,
        }
    }

    /// Commits one transaction of the first worker that looks at these keys and inserts `k`. Answers how often memory was
    /// asked for or given back while it had `reserved` published.
    fn commit(&mut self, isolation: Isolation, looks_at: std::ops::Range<u64>, k: u64) -> u64 {
        let mut txn = self.world.worker.begin(isolation);
        for key in looks_at {
            let guard = Guard::pin();
            let row = txn.get(&self.world.index, &key.to_be_bytes(), &guard);
            row.expect_present().expect("a row");
        }
        let table = self.world.table.clone();
        let row = self.world.row(k, b'a');
        txn.insert(&table, row).expect("insert");
        self.watch(txn)
    }

    fn watch(&self, txn: Txn) -> u64 {
        let path: &'static Arc<CommitPath> =
            Box::leak(Box::new(self.other.engine().commit_path().clone()));
        let drawn = path.csns().counter();
        WHILE_RESERVED.set(0);
        WATCHED.set(Some(path));
        let receipt = complete(txn.precommit());
        WATCHED.set(None);
        assert_eq!(receipt.expect("commits").csn, Some(drawn));
        WHILE_RESERVED.get()
    }

    /// The other worker changes these rows, each in a transaction of its own, and none of that is durable.
    fn change(&mut self, keys: std::ops::Range<u64>) {
        for k in keys {
            let mut txn = self.other.begin(Isolation::ReadCommitted);
            let table = self.world.table.clone();
            let row = self.world.row(k, b'b');
            txn.insert(&table, row).expect("insert");
            txn.try_precommit().expect("room");
        }
    }
}

/// T12: from `reserved` to the entry in its lane nothing is allocated and nothing freed, by whatever way a transaction commits.
#[test]
fn t12_memory_is_neither_asked_for_nor_given_back_while_reserved_is_published() {
    for tracking in Tracking::ALL {
        for queue in [QueueKind::LockFree, QueueKind::Latched] {
            let mut stretch = Stretch::new(tracking, queue);
            let what = |what: &str| format!("{what}, {tracking:?}, {queue:?}");
            // The very first commit of the engine.
            let count = stretch.commit(Isolation::ReadCommitted, 0..0, 1_000);
            assert_eq!(count, 0, "{}", what("the first one"));
            // More predecessors than a small list holds, as many as an entry may name, and more.
            stretch.change(0..40);
            for (n, predecessors) in [1, 4, 5, 17, 32, 33, 40].into_iter().enumerate() {
                let k = 1_001 + n as u64;
                let count = stretch.commit(Isolation::ReadCommitted, 0..predecessors, k);
                assert_eq!(
                    count,
                    0,
                    "{}",
                    what(&format!("{predecessors} predecessors"))
                );
            }
            let count = stretch.commit(Isolation::Serializable, 0..20, 1_010);
            assert_eq!(count, 0, "{}", what("SERIALIZABLE"));
            // Somebody waits for the end of a SERIALIZABLE transaction.
            let writer = {
                let mut txn = stretch.world.worker.begin(Isolation::Serializable);
                txn.snapshot();
                let table = stretch.world.table.clone();
                let row = stretch.world.row(1_011, b'a');
                txn.insert(&table, row).expect("insert");
                txn
            };
            let queueing = Arc::new(Queueing::default());
            let mut reader = stretch.other.begin(Isolation::Serializable);
            reader.declare_read_only();
            let mut wait = pin!(reader.safe_snapshot());
            let waker = Waker::from(queueing.clone());
            assert!(poll(wait.as_mut(), &waker).is_pending());
            assert_eq!(stretch.watch(writer), 0, "{}", what("somebody is woken"));
            assert_eq!(queueing.woken.load(Ordering::SeqCst), 1);
            assert!(poll(wait.as_mut(), &waker).is_ready());
            // Side segments: two of them in one block.
            for k in [2_000, 3_000] {
                let mut txn = stretch.world.worker.begin(Isolation::ReadCommitted);
                let table = stretch.world.table.clone();
                for k in k..k + 900 {
                    let mut builder = RowBuilder::new();
                    builder.start(1, 2);
                    builder.push(Some(&u64::to_be_bytes(k)));
                    builder.push(Some(&[7; 1_000]));
                    txn.insert(&table, builder.finish()).expect("insert");
                }
                assert_eq!(stretch.watch(txn), 0, "{}", what("a side segment"));
            }
            // Row locks without versions.
            let mut txn = stretch.world.worker.begin(Isolation::ReadCommitted);
            for k in 0..10_u64 {
                let found = {
                    let guard = Guard::pin();
                    let row = txn.get(&stretch.world.index, &k.to_be_bytes(), &guard);
                    let row = row.expect_present().expect("a row");
                    (row.rid, row.version)
                };
                let table = stretch.world.table.clone();
                let lock = txn.lock_row(&table, found.0, found.1, RowLock::Update);
                lock.expect("free");
            }
            let table = stretch.world.table.clone();
            let row = stretch.world.row(1_012, b'a');
            txn.insert(&table, row).expect("insert");
            assert_eq!(stretch.watch(txn), 0, "{}", what("row locks"));
            stretch.world.worker.flush(FlushMode::Inline);
            stretch.other.flush(FlushMode::Inline);
        }
    }
}
