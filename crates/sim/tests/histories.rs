//! Random transactions on several workers, through the engine's own interface; what they saw is judged by
//! `logstead_sim::history`. `LOGSTEAD_HISTORY_TRANSACTIONS` makes the run longer, `LOGSTEAD_HISTORY_SEED` another.
#![allow(clippy::disallowed_methods, reason = "tests use real threads")]

use logstead_home::LogHome;
use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Bound;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use logstead_engine::{
    CommitError, Engine, EngineOptions, Env, ExpectPresent, Guard, Index, IndexCursor, IndexId,
    Isolation, KeyExtractor, KeyKind, MemoryHome, RowBuilder, RowRef, ScanCursor, Table, TableId,
    Txn, Worker, WorkerId, WorkerLoop, WriteError, yield_now,
};
use logstead_sim::history::{
    Element, End, IsolationLevel, Key, ListRead, Op, Report, Transaction, check,
};

#[path = "../../engine/tests/engine/agreement.rs"]
mod agreement;

const WORKERS: u16 = 2;
const TASKS: u64 = 6;
/// Keys that are written at a time, and commits until the next one takes the place of the oldest.
const KEYS: u64 = 6;
const COMMITS_PER_KEY: u64 = 24;

/// By key, once.
struct ByKey;

impl KeyExtractor for ByKey {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(0).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1
    }
}

/// By the length of the list: its keys change with every append.
struct ByLength;

impl KeyExtractor for ByLength {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        let length = row.column(1).map_or(0, <[u8]>::len) as u32;
        out.extend_from_slice(&length.to_be_bytes());
        KeyKind::Nullable
    }

    fn keys(&self) -> u64 {
        1
    }
}

fn row(key: Key, list: &[Element]) -> Vec<u8> {
    let bytes: Vec<u8> = list.iter().flat_map(|e| e.to_be_bytes()).collect();
    let mut row = RowBuilder::new();
    row.start(1, 2);
    row.push(Some(&key.to_be_bytes()));
    row.push(Some(&bytes));
    row.finish().to_vec()
}

fn key_of(row: RowRef<'_>) -> Key {
    let bytes = row.column(0).and_then(|b| b.try_into().ok());
    u64::from_be_bytes(bytes.expect("eight bytes"))
}

fn list_of(row: RowRef<'_>) -> Vec<Element> {
    let bytes = row.column(1).unwrap_or_default();
    bytes
        .chunks_exact(8)
        .map(|e| u64::from_be_bytes(e.try_into().expect("eight bytes")))
        .collect()
}

struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

struct World {
    engine: Engine,
    table: Arc<Table>,
    by_key: Arc<Index>,
    by_length: Arc<Index>,
    commits: AtomicU64,
    elements: AtomicU64,
}

/// The transaction cannot go on.
struct Stop;

impl World {
    fn new() -> World {
        let options = EngineOptions {
            workers: usize::from(WORKERS),
            ..EngineOptions::default()
        };
        let home = Arc::new(MemoryHome::new(4 << 20));
        let (engine, _) = Engine::open(options, LogHome::from(home), Env::real()).expect("opens");
        let table = engine.create_table(TableId(20_000));
        let by_key = engine.create_index(&table, IndexId(20_001), true, Arc::new(ByKey));
        let by_length = engine.create_index(&table, IndexId(20_002), false, Arc::new(ByLength));
        World {
            engine,
            table,
            by_key,
            by_length,
            commits: AtomicU64::new(0),
            elements: AtomicU64::new(1),
        }
    }

    fn key(&self, dice: &mut Dice) -> Key {
        1 + self.commits.load(Ordering::Relaxed) / COMMITS_PER_KEY + dice.roll(KEYS)
    }

    fn read(&self, txn: &mut Txn, key: Key, ops: &mut Vec<Op>) {
        let guard = Guard::pin();
        let row = txn
            .get(&self.by_key, &key.to_be_bytes(), &guard)
            .expect_present();
        let list = row.map_or_else(Vec::new, |row| list_of(row.bytes));
        ops.push(Op::Read(key, ListRead::of(list)));
    }

    /// Three keys at once; those that are not there have empty lists.
    fn read_range(&self, txn: &mut Txn, key: Key, reverse: bool, ops: &mut Vec<Op>) {
        let mut found: HashMap<Key, ListRead> = HashMap::new();
        let mut cursor = IndexCursor::new(
            &self.by_key,
            Bound::Included(key.to_be_bytes().to_vec()),
            Bound::Excluded((key + 3).to_be_bytes().to_vec()),
            reverse,
        );
        let guard = Guard::pin();
        while let Some(row) = txn.index_next(&mut cursor, &guard).expect_present() {
            found.insert(key_of(row.bytes), ListRead::of(list_of(row.bytes)));
        }
        for key in key..key + 3 {
            let seen = found.get(&key).copied();
            ops.push(Op::Read(key, seen.unwrap_or_else(|| ListRead::of([]))));
        }
    }

    /// The rows whose lists have some length: only those found are told.
    fn read_lengths(&self, txn: &mut Txn, length: u32, ops: &mut Vec<Op>) {
        let bound = (length * 8).to_be_bytes().to_vec();
        let (lower, upper) = (Bound::Included(bound.clone()), Bound::Included(bound));
        let mut cursor = IndexCursor::new(&self.by_length, lower, upper, false);
        let guard = Guard::pin();
        let mut left = 8;
        while left > 0
            && let Some(row) = txn.index_next(&mut cursor, &guard).expect_present()
        {
            left -= 1;
            ops.push(Op::Read(
                key_of(row.bytes),
                ListRead::of(list_of(row.bytes)),
            ));
        }
    }

    /// What an UPDATE or else an INSERT does, waits included.
    async fn append(
        &self,
        txn: &mut Txn,
        key: Key,
        element: Element,
        ops: &mut Vec<Op>,
    ) -> Result<(), Stop> {
        let mut newest = false;
        loop {
            let done = {
                let guard = Guard::pin();
                let mut found = txn
                    .get(&self.by_key, &key.to_be_bytes(), &guard)
                    .expect_present();
                if let (true, Some(row)) = (newest, &found) {
                    let rid = row.rid;
                    found = txn.read_newest(&self.table, rid, &guard).expect_present();
                }
                match found {
                    Some(seen) => {
                        let mut list = list_of(seen.bytes);
                        let before = ListRead::of(list.iter().copied());
                        list.push(element);
                        let (rid, version) = (seen.rid, seen.version);
                        txn.update(&self.table, rid, version, &row(key, &list))
                            .map(|()| before)
                    }
                    None => txn
                        .insert(&self.table, &row(key, &[element]))
                        .map(|_| ListRead::of([])),
                }
            };
            match done {
                Ok(before) => {
                    ops.push(Op::Read(key, before));
                    ops.push(Op::Append(key, element));
                    return Ok(());
                }
                Err(WriteError::Blocked(blocker)) => {
                    blocker.wait(txn).await.map_err(|_| Stop)?;
                    newest = txn.isolation() == Isolation::ReadCommitted;
                }
                Err(WriteError::Changed) => newest = true,
                // Taken since the statement began: as an UPDATE then.
                Err(WriteError::Unique { .. }) if txn.isolation() == Isolation::ReadCommitted => {
                    txn.begin_statement();
                }
                Err(
                    WriteError::Unique { .. }
                    | WriteError::Serialization
                    | WriteError::Dependencies,
                ) => return Err(Stop),
                Err(error) => panic!("{error}"),
            }
        }
    }

    async fn steps(
        &self,
        txn: &mut Txn,
        read_only: bool,
        dice: &mut Dice,
        ops: &mut Vec<Op>,
    ) -> Result<(), Stop> {
        for _ in 0..1 + dice.roll(4) {
            txn.begin_statement();
            let key = self.key(dice);
            match dice.roll(if read_only { 5 } else { 11 }) {
                0..3 => self.read(txn, key, ops),
                3 => self.read_range(txn, key, dice.roll(2) == 0, ops),
                4 => self.read_lengths(txn, 1 + dice.roll(8) as u32, ops),
                5 => {
                    // Nothing of it stays.
                    let before = txn.savepoint();
                    let element = self.elements.fetch_add(1, Ordering::Relaxed);
                    self.append(txn, key, element, &mut Vec::new()).await?;
                    txn.rollback_to(before);
                }
                _ => {
                    let element = self.elements.fetch_add(1, Ordering::Relaxed);
                    self.append(txn, key, element, ops).await?;
                }
            }
            txn.end_statement();
            if dice.roll(2) == 0 {
                yield_now().await;
            }
        }
        Ok(())
    }

    async fn transaction(&self, worker: &Worker, level: Isolation, dice: &mut Dice) -> Transaction {
        let mut txn = worker.begin(level);
        let read_only = dice.roll(8) == 0;
        if read_only {
            txn.declare_read_only();
        }
        let mut ops = Vec::new();
        let end = match self.steps(&mut txn, read_only, dice, &mut ops).await {
            Ok(()) if dice.roll(20) > 0 => match txn.precommit().await {
                Ok(_) => {
                    self.commits.fetch_add(1, Ordering::Relaxed);
                    End::Committed
                }
                Err(CommitError::Serialization) => End::Aborted,
                Err(error) => panic!("{error}"),
            },
            _ => {
                txn.abort();
                // A client that is to retry waits a little.
                yield_now().await;
                End::Aborted
            }
        };
        ops.shrink_to_fit();
        Transaction { ops, end }
    }

    fn final_lists(&self, worker: &Worker) -> HashMap<Key, Vec<Element>> {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let guard = Guard::pin();
        let mut scan = ScanCursor::new(&self.table);
        let mut lists = HashMap::new();
        while let Some(row) = txn.scan_next(&mut scan, &guard).expect_present() {
            let known = lists.insert(key_of(row.bytes), list_of(row.bytes));
            assert!(known.is_none(), "a key is there once");
        }
        lists
    }
}

fn from_environment(name: &str, default: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(default)
}

fn run(level: Isolation, count: u64) -> (Vec<Transaction>, Arc<World>) {
    let seed = from_environment("LOGSTEAD_HISTORY_SEED", 1);
    println!("seed {seed}");
    let world = Arc::new(World::new());
    let threads: Vec<_> = (0..WORKERS)
        .map(|w| {
            let world = world.clone();
            std::thread::spawn(move || {
                let worker_loop = WorkerLoop::new(&world.engine, WorkerId(w));
                let history = Rc::new(RefCell::new(Vec::new()));
                for task in 0..TASKS {
                    let (world, history) = (world.clone(), history.clone());
                    let worker = worker_loop.worker().clone();
                    let mut dice = Dice(seed ^ (u64::from(w) << 32) ^ (task << 40));
                    worker_loop.spawn(async move {
                        for _ in 0..count / (u64::from(WORKERS) * TASKS) {
                            let one = world.transaction(&worker, level, &mut dice).await;
                            history.borrow_mut().push(one);
                        }
                    });
                }
                worker_loop.run();
                history.take()
            })
        })
        .collect();
    let histories = threads
        .into_iter()
        .flat_map(|thread| thread.join().expect("no thread fails"))
        .collect();
    (histories, world)
}

fn judged(level: Isolation, expected: IsolationLevel) -> Report {
    let count = from_environment("LOGSTEAD_HISTORY_TRANSACTIONS", 12_000);
    let (history, world) = run(level, count);
    let worker = world.engine.worker(WorkerId(0));
    let lists = world.final_lists(&worker);
    let report = match check(&history, &lists, expected) {
        Ok(report) => report,
        Err(violation) => panic!("{expected:?}: {violation}"),
    };
    let refused = world.engine.stats().serialization_failures;
    println!("{expected:?}: {report:?}, {refused} refused at commit");
    assert!(report.committed > report.aborted);
    while worker.collect_garbage(10_000) {}
    agreement::assert_index_matches_table(&worker, &world.table);
    report
}

#[test]
fn read_committed_histories() {
    judged(Isolation::ReadCommitted, IsolationLevel::ReadCommitted);
}

#[test]
fn repeatable_read_histories_are_snapshot_isolation() {
    judged(Isolation::RepeatableRead, IsolationLevel::SnapshotIsolation);
}

#[test]
fn serializable_histories_have_no_circle() {
    judged(Isolation::Serializable, IsolationLevel::Serializable);
}

/// The generator makes what the checker looks for: each level breaks the rule of the next.
#[test]
fn weaker_levels_are_told_apart() {
    for (level, stronger) in [
        (Isolation::ReadCommitted, IsolationLevel::SnapshotIsolation),
        (Isolation::RepeatableRead, IsolationLevel::Serializable),
    ] {
        let (history, world) = run(level, 12_000);
        let lists = world.final_lists(&world.engine.worker(WorkerId(0)));
        let found = check(&history, &lists, stronger);
        assert!(found.is_err(), "{level:?} has no anomaly: {found:?}");
    }
}
