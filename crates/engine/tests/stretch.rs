//! Between `reserved` and the entry in its lane nothing is allocated and nothing freed (T12): the global allocator
//! looks whether the worker has `reserved` published.
#![allow(unsafe_code, reason = "a watching allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use logstead_engine::{
    CommitOptions, CommitPath, Engine, EngineOptions, ExpectPresent, FlushMode, Guard, Index,
    Isolation, KeyExtractor, KeyKind, ProtocolKind, QueueKind, RowBuilder, RowLock, RowRef, Table,
    Tracking, Txn, Worker,
};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{IndexId, TableId, WorkerId};

struct Watching;

thread_local! {
    /// Whose first worker is watched, and how often memory was asked for or given back while it had `reserved`
    /// published.
    static WATCHED: Cell<Option<&'static CommitPath>> = const { Cell::new(None) };
    static WHILE_RESERVED: Cell<u64> = const { Cell::new(0) };
}

fn look() {
    if let Some(path) = WATCHED.get()
        && path.csns().is_reserved(WorkerId(0))
    {
        WHILE_RESERVED.set(WHILE_RESERVED.get() + 1);
    }
}

// SAFETY: passes everything on to the system's allocator; looking allocates nothing.
unsafe impl GlobalAlloc for Watching {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        look();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        look();
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Watching = Watching;

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

fn row(k: u64, fill: &[u8]) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 2);
    builder.push(Some(&k.to_be_bytes()));
    builder.push(Some(fill));
    builder.finish().to_vec()
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
    tasks: Mutex<Vec<Vec<u64>>>,
}

impl Wake for Queueing {
    fn wake(self: Arc<Self>) {
        self.woken.fetch_add(1, Ordering::SeqCst);
        self.tasks.lock().expect("no panic").push(vec![7]);
    }
}

/// Two workers, each with its lane; the first one is watched.
struct Stretch {
    table: Arc<Table>,
    index: Arc<Index>,
    worker: Worker,
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
        let (engine, _) = Engine::open(options, LogHome::from(home), env).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let index = engine.create_index(&table, IndexId(20_001), true, Arc::new(Key));
        Stretch {
            worker: engine.worker(WorkerId(0)),
            other: engine.worker(WorkerId(1)),
            table,
            index,
        }
    }

    /// A transaction of the first worker that has inserted `k`.
    fn insert(&self, isolation: Isolation, k: u64) -> Txn {
        let mut txn = self.worker.begin(isolation);
        let insert = txn.insert(&self.table, &row(k, b"a"));
        insert.expect("a new key");
        txn
    }

    fn rid(&self, txn: &mut Txn, k: u64) -> (logstead_types::Rid, logstead_engine::VersionId) {
        let guard = Guard::pin();
        let row = txn.get(&self.index, &k.to_be_bytes(), &guard);
        let row = row.expect_present().expect("a row");
        (row.rid, row.version)
    }

    /// Commits one transaction of the first worker that has looked at `looks_at` keys.
    fn commit(&self, isolation: Isolation, looks_at: u64, k: u64) -> u64 {
        let mut txn = self.insert(isolation, k);
        for key in 0..looks_at {
            self.rid(&mut txn, key);
        }
        self.watch(txn)
    }

    /// Commits it, and answers how often memory was asked for or given back while `reserved` was published.
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

    /// The other worker inserts keys, each in a transaction of its own, and none of that is durable.
    fn insert_elsewhere(&self, keys: std::ops::Range<u64>) {
        for k in keys {
            let mut txn = self.other.begin(Isolation::ReadCommitted);
            txn.insert(&self.table, &row(k, b"b")).expect("insert");
            txn.try_precommit().expect("room");
        }
    }
}

/// T12: from `reserved` to the entry in its lane nothing is allocated and nothing freed, by whatever way a transaction
/// commits.
#[test]
fn t12_memory_is_neither_asked_for_nor_given_back_while_reserved_is_published() {
    let found = RefCell::new(Vec::new());
    for tracking in Tracking::ALL {
        for queue in [QueueKind::LockFree, QueueKind::Latched] {
            watch_all(&Stretch::new(tracking, queue), &|what: &str, count| {
                if count > 0 {
                    let what = format!("{what}, {tracking:?}, {queue:?}: {count}");
                    found.borrow_mut().push(what);
                }
            });
        }
    }
    let found = found.take();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

fn watch_all(stretch: &Stretch, found: &dyn Fn(&str, u64)) {
    let plain = Isolation::ReadCommitted;
    // The very first commit of the engine.
    found("the first one", stretch.commit(plain, 0, 1_000));
    // More predecessors than a small list holds, as many as an entry may name, and more.
    stretch.insert_elsewhere(0..40);
    for predecessors in [1, 4, 5, 17, 32, 33, 40] {
        let count = stretch.commit(plain, predecessors, 1_001 + predecessors);
        found(&format!("{predecessors} predecessors"), count);
    }
    let serializable = Isolation::Serializable;
    found("SERIALIZABLE", stretch.commit(serializable, 20, 1_100));
    // Somebody waits for the end of a SERIALIZABLE transaction.
    let writer = stretch.insert(serializable, 1_101);
    let queueing = Arc::new(Queueing::default());
    let waker = Waker::from(queueing.clone());
    let mut reader = stretch.other.begin(serializable);
    reader.declare_read_only();
    let mut wait = pin!(reader.safe_snapshot());
    assert!(poll(wait.as_mut(), &waker).is_pending());
    found("somebody is woken", stretch.watch(writer));
    assert_eq!(queueing.woken.load(Ordering::SeqCst), 1);
    assert!(poll(wait.as_mut(), &waker).is_ready());
    // Side segments: two of them in one block.
    for k in [2_000, 3_000] {
        let mut txn = stretch.insert(plain, k);
        for k in k + 1..k + 900 {
            let insert = txn.insert(&stretch.table, &row(k, &[7; 1_000]));
            insert.expect("insert");
        }
        found("a side segment", stretch.watch(txn));
    }
    // Row locks without versions.
    let mut txn = stretch.insert(plain, 1_102);
    for k in 0..10_u64 {
        let (rid, version) = stretch.rid(&mut txn, k);
        let lock = txn.lock_row(&stretch.table, rid, version, RowLock::Update);
        lock.expect("free");
    }
    found("row locks", stretch.watch(txn));
    stretch.worker.flush(FlushMode::Inline);
    stretch.other.flush(FlushMode::Inline);
}
