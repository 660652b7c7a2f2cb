//! Nanoseconds per operation: get, update, insert, and a scan of 100 rows in index order, each once as a transaction of
//! its own and once 100 to a transaction. No sessions: each worker runs one transaction after the other, pre-commits,
//! and does not wait; flushes and garbage collection are part of what is measured.
//!
//! `load` measures the same kind of table while it is filled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_engine::{
    Csn, Engine, FlushMode, Guard, IndexCursor, Isolation, RowBuilder, TryCommitError, Txn,
    WorkerId, WorkerLoop, WriteError,
};
use parking_lot::Mutex;

use crate::access::{KeyPart, Store, TxnError, number, rewrite};
use crate::driver::{BenchEngine, Loader, TransactionEnd, WorkShare, Workload};
use crate::machine;
use crate::options::{CommonOptions, RunLimit};
use crate::random::Rng;
use crate::{BenchError, ConsistencyCheck, ProgressListener};

const TABLE: u32 = 20_000;
/// Rows hold a key of 8 bytes and this many bytes of values.
const VALUE_BYTES: usize = 100;
const SCAN_ROWS: usize = 100;
const PER_TRANSACTION: [u64; 2] = [1, 100];
const FLUSH_BYTES: usize = 64 << 10;
/// Transactions between two looks at the clock and two steps of garbage collection.
const ROUND: u64 = 64;
const COLLECT_ROWS: usize = 1024;
/// Of the seconds given, what one of the kinds gets when none are.
const SECONDS_DEFAULT: f64 = 10.0;

/// A table of rows with a number as key.
pub(crate) struct Rows {
    count: u64,
    store: Store,
}

impl Rows {
    pub(crate) fn new(engine: &Engine, count: u64) -> Rows {
        Rows {
            count,
            store: Store::new(engine, TABLE, &[KeyPart::Fixed(0)]),
        }
    }
}

fn build(builder: &mut RowBuilder, key: u64, rng: &mut Rng) {
    builder.start(1, 3);
    builder.push(Some(&key.to_be_bytes()));
    builder.push(Some(&rng.bits().to_be_bytes()));
    let mut filler = [0; VALUE_BYTES - 8];
    for piece in filler.chunks_exact_mut(4) {
        piece.copy_from_slice(&(rng.bits() as u32).to_be_bytes());
    }
    builder.push(Some(&filler));
}

impl Workload for Rows {
    type Client = ();

    const KINDS: &'static [&'static str] = &[];

    async fn load(&self, seat: WorkShare, mut rng: Rng, into: &mut Loader) -> Result<(), TxnError> {
        let mut builder = RowBuilder::new();
        for key in seat.part(self.count) {
            build(&mut builder, key, &mut rng);
            into.insert(&self.store.table, builder.finish()).await?;
        }
        Ok(())
    }

    fn client(&self, _seat: WorkShare, _rng: Rng) {}

    fn draw(&self, (): &mut ()) -> usize {
        0
    }

    async fn execute(&self, (): &mut (), _txn: &mut Txn) -> Result<TransactionEnd, TxnError> {
        Ok(TransactionEnd::RollBack)
    }

    fn committed(&self, (): &mut (), _csn: Option<Csn>) {}

    fn check(&self, txn: &mut Txn) -> Vec<ConsistencyCheck> {
        vec![ConsistencyCheck::new(
            "index and table agree",
            self.store.check_indexes(txn),
        )]
    }
}

/// An operation that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A row by its key.
    Get,
    /// The same, and a column of it changed.
    Update,
    /// A new row at the end of the key's range of the worker.
    Insert,
    /// 100 rows in the key's order.
    Scan,
}

const OPERATIONS: [Operation; 4] = [
    Operation::Get,
    Operation::Update,
    Operation::Insert,
    Operation::Scan,
];

impl Operation {
    /// For people.
    pub fn name(self) -> &'static str {
        match self {
            Operation::Get => "get",
            Operation::Update => "update",
            Operation::Insert => "insert",
            Operation::Scan => "scan of 100 rows",
        }
    }
}

/// What one kind of operation took.
#[derive(Clone, Copy, Debug)]
pub struct MicroFigure {
    /// Worker threads.
    pub workers: usize,
    /// Which operation.
    pub operation: Operation,
    /// How many to a transaction.
    pub per_transaction: u64,
    /// How many were done.
    pub operations: u64,
    /// Seconds of all workers together.
    pub worker_seconds: f64,
    /// Seconds on the clock.
    pub seconds: f64,
}

impl MicroFigure {
    /// Nanoseconds of a worker per operation.
    pub fn nanos(&self) -> f64 {
        self.worker_seconds * 1e9 / self.operations as f64
    }

    /// Operations per second of all workers.
    pub fn rate(&self) -> f64 {
        self.operations as f64 / self.seconds
    }
}

/// What a load took.
#[derive(Clone, Copy, Debug)]
pub struct LoadFigure {
    /// Worker threads.
    pub workers: usize,
    /// Rows loaded.
    pub rows: u64,
    /// Seconds until all were durable.
    pub seconds: f64,
    /// Bytes by which the process's resident memory grew, where the machine tells.
    pub memory_bytes: Option<u64>,
    /// Bytes of records in the log.
    pub log_bytes: u64,
}

/// Loads rows once.
pub(crate) fn load(
    stage: &BenchEngine,
    rows: u64,
    seed: u64,
    progress: &mut dyn ProgressListener,
) -> Result<(LoadFigure, Vec<ConsistencyCheck>), BenchError> {
    let workload = Arc::new(Rows::new(&stage.engine, rows));
    let before = machine::resident_bytes(&stage.env);
    let (rows, seconds) = stage.load(&workload, seed, progress)?;
    let after = machine::resident_bytes(&stage.env);
    let figure = LoadFigure {
        workers: stage.workers,
        rows,
        seconds,
        memory_bytes: after
            .zip(before)
            .map(|(after, before)| after.saturating_sub(before)),
        log_bytes: stage.engine.stats().log_bytes,
    };
    progress.checking();
    let worker = stage.engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::RepeatableRead);
    Ok((figure, workload.check(&mut txn)))
}

/// Measures every operation.
pub(crate) fn run(
    stage: &BenchEngine,
    rows: u64,
    common: &CommonOptions,
    progress: &mut dyn ProgressListener,
) -> Result<(Vec<MicroFigure>, Vec<ConsistencyCheck>), BenchError> {
    let workload = Arc::new(Rows::new(&stage.engine, rows));
    stage.load(&workload, common.seed, progress)?;
    let parts = (OPERATIONS.len() * PER_TRANSACTION.len()) as f64;
    let (seconds, transactions) = match common.until {
        RunLimit::Seconds { measured, .. } => (measured / parts, u64::MAX),
        RunLimit::Transactions(n) => (SECONDS_DEFAULT * 1e3, n),
    };
    let mut figures = Vec::new();
    for operation in OPERATIONS {
        for per_transaction in PER_TRANSACTION {
            let begun = stage.env.clock.monotonic();
            let until = begun.as_nanos() + (seconds * 1e9) as u64;
            let sum = Arc::new(Mutex::new((0_u64, 0_u64)));
            let body = {
                let (engine, env, stop) =
                    (stage.engine.clone(), stage.env.clone(), stage.stop.clone());
                let (sum, workload) = (Arc::clone(&sum), Arc::clone(&workload));
                let (seed, isolation, workers) = (common.seed, common.isolation, stage.workers);
                let first = figures.len() as u64;
                move |worker: usize| {
                    let part = WorkShare {
                        worker,
                        workers,
                        session: 0,
                    }
                    .part(transactions);
                    let mut bench = Bench {
                        worker_loop: WorkerLoop::new(&engine, WorkerId(worker as u16)),
                        rows: &workload,
                        rng: Rng::of_part(seed, first << 32 | worker as u64),
                        builder: RowBuilder::new(),
                        isolation,
                        next_key: 1 << 60 | first << 52 | (worker as u64) << 40,
                        seen: 0,
                    };
                    let begun = env.clock.monotonic();
                    let mut left = part.end - part.start;
                    let mut done = 0;
                    while left > 0
                        && env.clock.monotonic().as_nanos() < until
                        && !stop.load(Ordering::Relaxed)
                    {
                        let round = ROUND.min(left);
                        left -= round;
                        for _ in 0..round {
                            done += bench.transact(operation, per_transaction);
                        }
                        bench.clean_up();
                    }
                    let nanos = env.clock.monotonic().since(begun).as_nanos() as u64;
                    let mut sum = sum.lock();
                    sum.0 += done;
                    sum.1 += nanos;
                }
            };
            stage.on_all(body, |_| {
                let parts_done = figures.len() as f64;
                let at = stage.env.clock.monotonic().since(begun).as_secs_f64() / seconds;
                progress.running(0, (parts_done + at.min(1.0)) / parts);
            })?;
            let (operations, nanos) = *sum.lock();
            if is_stopped(&stage.stop) {
                break;
            }
            figures.push(MicroFigure {
                workers: stage.workers,
                operation,
                per_transaction,
                operations,
                worker_seconds: nanos as f64 / 1e9,
                seconds: nanos as f64 / 1e9 / stage.workers as f64,
            });
        }
    }
    progress.checking();
    let worker = stage.engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::RepeatableRead);
    Ok((figures, workload.check(&mut txn)))
}

fn is_stopped(stop: &AtomicBool) -> bool {
    stop.load(Ordering::Relaxed)
}

/// One worker's loop.
struct Bench<'a> {
    worker_loop: WorkerLoop,
    rows: &'a Rows,
    rng: Rng,
    builder: RowBuilder,
    isolation: Isolation,
    next_key: u64,
    seen: i64,
}

impl Bench<'_> {
    /// One transaction; gives how many operations it did: none, if it met another one in the way.
    fn transact(&mut self, operation: Operation, count: u64) -> u64 {
        let mut txn = self.worker_loop.worker().begin(self.isolation);
        for _ in 0..count {
            txn.begin_statement();
            let done = match operation {
                Operation::Get => self.get(&mut txn),
                Operation::Update => self.update(&mut txn),
                Operation::Insert => self.insert(&mut txn),
                Operation::Scan => self.scan(&mut txn),
            };
            if done.is_err() {
                txn.abort();
                return 0;
            }
        }
        match txn.try_precommit() {
            Ok(_) => count,
            Err(TryCommitError::Busy(txn)) => {
                u64::from(self.worker_loop.block_on(txn.precommit()).is_ok()) * count
            }
            Err(TryCommitError::Failed(_)) => 0,
        }
    }

    fn get(&mut self, txn: &mut Txn) -> Result<(), WriteError> {
        let key = self.rng.below(self.rows.count).to_be_bytes();
        let guard = Guard::pin();
        let row = txn
            .get(&self.rows.store.primary, &key, &guard)?
            .ok_or(WriteError::Gone)?;
        self.seen ^= number(row.bytes, 1);
        Ok(())
    }

    fn update(&mut self, txn: &mut Txn) -> Result<(), WriteError> {
        let key = self.rng.below(self.rows.count).to_be_bytes();
        let guard = Guard::pin();
        let row = txn
            .get(&self.rows.store.primary, &key, &guard)?
            .ok_or(WriteError::Gone)?;
        let value = number(row.bytes, 1).wrapping_add(1);
        rewrite(row.bytes, &mut self.builder, &[(1, &value.to_be_bytes())]);
        let (rid, version) = (row.rid, row.version);
        txn.update(&self.rows.store.table, rid, version, self.builder.finish())
    }

    fn insert(&mut self, txn: &mut Txn) -> Result<(), WriteError> {
        build(&mut self.builder, self.next_key, &mut self.rng);
        self.next_key += 1;
        txn.insert(&self.rows.store.table, self.builder.finish())
            .map(|_| ())
    }

    fn scan(&mut self, txn: &mut Txn) -> Result<(), WriteError> {
        let last = self.rows.count.saturating_sub(SCAN_ROWS as u64) + 1;
        let from = self.rng.below(last).to_be_bytes();
        let mut cursor = IndexCursor::new(
            &self.rows.store.primary,
            std::ops::Bound::Included(from.to_vec()),
            std::ops::Bound::Unbounded,
            false,
        );
        let guard = Guard::pin();
        for _ in 0..SCAN_ROWS {
            match txn.index_next(&mut cursor, &guard)? {
                Some(row) => self.seen ^= number(row.bytes, 1),
                None => break,
            }
        }
        Ok(())
    }

    fn clean_up(&mut self) {
        let worker = self.worker_loop.worker();
        if worker.lane_dirty_bytes() >= FLUSH_BYTES {
            worker.flush(FlushMode::Handoff);
        }
        while worker.collect_garbage(COLLECT_ROWS) {}
    }
}
