//! A small world: one table of accounts (key, balance) with a unique index on the key and a plain one on the balance.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use logstead_engine::{
    CommitOptions, CommitReceipt, DistributionKey, Engine, EngineOptions, ExpectPresent, FlushMode,
    Guard, Index, IndexCursor, Isolation, KeyExtractor, KeyKind, OpenError, Row, RowBuilder,
    RowLock, RowRef, ScanCursor, Table, Txn, Worker, WriteError, partition_of,
};
use logstead_env::Env;
use logstead_home::{LogHome, MemoryHome};
use logstead_types::{IndexId, Rid, TableId, WorkerId};

use crate::DIVIDED;

pub(crate) const TABLE: TableId = TableId(20_000);
pub(crate) const BY_KEY: IndexId = IndexId(20_001);
pub(crate) const BY_BALANCE: IndexId = IndexId(20_002);

/// Takes one column as the key.
pub(crate) struct Column(pub(crate) usize);

impl KeyExtractor for Column {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        match row.column(self.0) {
            None => {
                out.push(1);
                KeyKind::Nullable
            }
            Some(bytes) => {
                out.push(0);
                // Stored big endian with the sign flipped, so bytes compare like numbers.
                out.extend_from_slice(bytes);
                KeyKind::Unique
            }
        }
    }

    fn keys(&self) -> u64 {
        1 + self.0 as u64 + if self.is_divided() { 100 } else { 0 }
    }

    fn is_divided(&self) -> bool {
        DIVIDED && self.0 == 0
    }

    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        let bytes = if key.first() == Some(&0) { 9 } else { 1 };
        (self.is_divided() && key.len() >= bytes).then_some(bytes)
    }
}

/// Where the world's table is divided, it is by the key.
impl DistributionKey for Column {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        self.key(row, out).has_entry()
    }
}

/// The row number of the account 1, if that was inserted first.
pub(crate) fn first_rid() -> Rid {
    match DIVIDED {
        true => Rid(u64::from(partition_of(&key(1)).0) * 64),
        false => Rid(0),
    }
}

/// Makes the world's table.
pub(crate) fn create_table(engine: &Engine) -> Arc<Table> {
    let table = engine.create_table(TABLE);
    if DIVIDED {
        table.divide(Arc::new(Column(0)));
    }
    table
}

pub(crate) fn number(n: i64) -> [u8; 8] {
    ((n as u64) ^ (1 << 63)).to_be_bytes()
}

pub(crate) fn key(n: i64) -> Vec<u8> {
    let mut bytes = vec![0];
    bytes.extend_from_slice(&number(n));
    bytes
}

pub(crate) fn row(k: i64, balance: i64) -> Vec<u8> {
    let mut builder = RowBuilder::new();
    builder.start(1, 2);
    builder.push(Some(&number(k)));
    builder.push(Some(&number(balance)));
    builder.finish().to_vec()
}

pub(crate) fn column(row: &Row<'_>, i: usize) -> i64 {
    let bytes: [u8; 8] = row
        .bytes
        .column(i)
        .expect("not null")
        .try_into()
        .expect("eight bytes");
    (u64::from_be_bytes(bytes) ^ (1 << 63)) as i64
}

pub(crate) fn balance(row: &Row<'_>) -> i64 {
    column(row, 1)
}

pub(crate) struct World {
    pub(crate) home: MemoryHome,
    pub(crate) engine: Engine,
    pub(crate) table: Arc<Table>,
    pub(crate) by_key: Arc<Index>,
    pub(crate) by_balance: Arc<Index>,
}

impl World {
    pub(crate) fn open(home: MemoryHome, workers: usize) -> World {
        World::open_within(home, workers, u64::MAX).expect("opens")
    }

    /// With a memory budget.
    pub(crate) fn open_within(
        home: MemoryHome,
        workers: usize,
        memory_bytes: u64,
    ) -> Result<World, OpenError> {
        let options = EngineOptions {
            workers,
            instances: if DIVIDED { workers } else { 1 },
            memory_bytes,
            commit: CommitOptions {
                // Two buffers: little, beside what the budgets of tests are about.
                blocks_in_flight_max: 1,
                ..CommitOptions::default()
            },
            ..EngineOptions::default()
        };
        World::open_as(home, options)
    }

    pub(crate) fn open_as(home: MemoryHome, options: EngineOptions) -> Result<World, OpenError> {
        World::open_in(Env::simulated(1).0, home, options)
    }

    /// With a clock of the caller's, perhaps.
    pub(crate) fn open_in(
        env: Env,
        home: MemoryHome,
        options: EngineOptions,
    ) -> Result<World, OpenError> {
        let (engine, _) = Engine::open(options, LogHome::from(home.clone()), env)?;
        engine.bring_all(|| true).expect("everything can be read");
        let table = create_table(&engine);
        let by_key = engine.create_index(&table, BY_KEY, true, Arc::new(Column(0)));
        let by_balance = engine.create_index(&table, BY_BALANCE, false, Arc::new(Column(1)));
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        txn.use_memory_reserve();
        txn.build_index(&table, &by_key).expect("unique");
        txn.build_index(&table, &by_balance).expect("no conflict");
        drop(txn);
        Ok(World {
            home,
            engine,
            table,
            by_key,
            by_balance,
        })
    }

    pub(crate) fn new(workers: usize) -> World {
        World::open(MemoryHome::new(4 << 20), workers)
    }

    /// With accounts 1..=n of 100 each, durable.
    pub(crate) fn with_accounts(workers: usize, n: i64) -> (World, Worker) {
        World::new(workers).fill(n)
    }

    /// Accounts 1 to `n` with a balance of 100 each, durable.
    pub(crate) fn fill(self, n: i64) -> (World, Worker) {
        let world = self;
        let worker = world.engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        for k in 1..=n {
            txn.insert(&world.table, &row(k, 100)).expect("insert");
        }
        commit(txn);
        worker.flush(FlushMode::Inline);
        (world, worker)
    }

    pub(crate) fn get(&self, txn: &mut Txn, k: i64) -> Option<i64> {
        let guard = Guard::pin();
        txn.get(&self.by_key, &key(k), &guard)
            .expect_present()
            .map(|row| balance(&row))
    }

    /// Reads by key and writes what `change` makes of the balance; the whole of an UPDATE without its waits.
    pub(crate) fn update(
        &self,
        txn: &mut Txn,
        k: i64,
        change: impl Fn(i64) -> i64,
    ) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let found = txn
            .get(&self.by_key, &key(k), &guard)
            .expect_present()
            .expect("the account exists");
        let (rid, version, new) = (found.rid, found.version, row(k, change(balance(&found))));
        txn.update(&self.table, rid, version, &new)
    }

    /// The re-check of READ COMMITTED after a wait or `Changed`.
    pub(crate) fn update_newest(
        &self,
        txn: &mut Txn,
        k: i64,
        change: impl Fn(i64) -> i64,
    ) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let rid = txn
            .get(&self.by_key, &key(k), &guard)
            .expect_present()
            .expect("the account exists")
            .rid;
        let newest = txn
            .read_newest(&self.table, rid, &guard)
            .expect_present()
            .expect("not deleted");
        txn.update(
            &self.table,
            rid,
            newest.version,
            &row(k, change(balance(&newest))),
        )
    }

    pub(crate) fn delete(&self, txn: &mut Txn, k: i64) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let found = txn
            .get(&self.by_key, &key(k), &guard)
            .expect_present()
            .expect("the account exists");
        let (rid, version) = (found.rid, found.version);
        txn.delete(&self.table, rid, version)
    }

    pub(crate) fn lock(&self, txn: &mut Txn, k: i64) -> Result<(), WriteError> {
        self.lock_as(txn, k, RowLock::Update)
    }

    pub(crate) fn lock_as(&self, txn: &mut Txn, k: i64, lock: RowLock) -> Result<(), WriteError> {
        let guard = Guard::pin();
        let found = txn
            .get(&self.by_key, &key(k), &guard)
            .expect_present()
            .expect("the account exists");
        let (rid, version) = (found.rid, found.version);
        txn.lock_row(&self.table, rid, version, lock)
    }

    /// Every visible row, by scan.
    pub(crate) fn scan(&self, txn: &mut Txn) -> Vec<(i64, i64)> {
        let guard = Guard::pin();
        let mut cursor = ScanCursor::new(&self.table);
        let mut rows = Vec::new();
        while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
            rows.push((column(&row, 0), balance(&row)));
        }
        rows.sort_unstable();
        rows
    }

    /// Every visible row, in the order of an index.
    pub(crate) fn walk(&self, txn: &mut Txn, index: &Arc<Index>, reverse: bool) -> Vec<(i64, i64)> {
        let mut cursor = IndexCursor::new(
            index,
            std::ops::Bound::Unbounded,
            std::ops::Bound::Unbounded,
            reverse,
        );
        let mut rows = Vec::new();
        loop {
            // A guard per step: the cursor holds on to nothing.
            let guard = Guard::pin();
            match txn.index_next(&mut cursor, &guard).expect_present() {
                Some(row) => rows.push((column(&row, 0), balance(&row))),
                None => return rows,
            }
        }
    }

    pub(crate) fn rid(&self, txn: &mut Txn, k: i64) -> Rid {
        let guard = Guard::pin();
        txn.get(&self.by_key, &key(k), &guard)
            .expect_present()
            .expect("the account exists")
            .rid
    }
}

/// Counts wake-ups.
#[derive(Default)]
pub(crate) struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    pub(crate) fn rings(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

/// Polls once.
pub(crate) fn poll<F: Future + ?Sized>(future: Pin<&mut F>, bell: &Arc<Bell>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(&Waker::from(bell.clone())))
}

/// Completes a future on this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => std::thread::park(),
        }
    }
}

/// Pre-commits; in these tests there is always room.
pub(crate) fn commit(txn: Txn) -> CommitReceipt {
    block_on(txn.precommit()).expect("commits")
}
