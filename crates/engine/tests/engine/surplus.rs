//! Entries that nobody needs are left where their leaf was not in memory, and go when a reader follows them. Never one
//! that somebody needs (T11).

use std::ops::Bound;

use logstead_engine::{
    EngineOptions, Guard, IndexCursor, Isolation, PageFault, Txn, Worker, WriteError,
};
use logstead_home::MemoryHome;
use logstead_types::{Rid, WorkerId};

use crate::world::{World, balance, block_on, column, commit, key, row};

const ACCOUNTS: i64 = 2_000;

/// Accounts whose leaves are all in a checkpoint.
fn world() -> (World, Worker) {
    let options = EngineOptions {
        workers: 1,
        // Who waits loads.
        fault_threads: 0,
        ..EngineOptions::default()
    };
    let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
    let worker = world.engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=ACCOUNTS {
        txn.insert(&world.table, &row(k, k)).expect("inserted");
    }
    commit(txn);
    settle(&world);
    (world, worker)
}

/// Everything is durable and in a checkpoint.
fn settle(world: &World) {
    block_on(world.engine.flush_all_and_wait()).expect("flushed");
    world.engine.checkpoint().expect("taken");
}

fn evict(world: &World) {
    assert!(world.by_key.evict_all_leaves() > 5);
    world.by_balance.evict_all_leaves();
}

fn collect(world: &World, worker: &Worker) {
    block_on(world.engine.flush_all_and_wait()).expect("flushed");
    while worker.collect_garbage(1_000) {}
}

fn with<T>(txn: &mut Txn, mut attempt: impl FnMut(&mut Txn) -> Result<T, PageFault>) -> T {
    loop {
        match attempt(txn) {
            Ok(done) => return done,
            Err(absent) => block_on(absent.wait(txn)).expect("brought in"),
        }
    }
}

fn get(world: &World, txn: &mut Txn, k: i64) -> Option<(Rid, i64)> {
    with(txn, |txn| {
        let guard = Guard::pin();
        let row = txn.get(&world.by_key, &key(k), &guard)?;
        Ok(row.map(|row| (row.rid, balance(&row))))
    })
}

/// Gives an account another number, or takes it away.
fn change(world: &World, txn: &mut Txn, k: i64, new: Option<i64>) -> Result<(), WriteError> {
    let (rid, amount) = get(world, txn, k).expect("there");
    loop {
        let done = {
            let guard = Guard::pin();
            match txn.read(&world.table, rid, &guard) {
                Ok(found) => {
                    let version = found.expect("there").version;
                    match new {
                        Some(new) => txn.update(&world.table, rid, version, &row(new, amount)),
                        None => txn.delete(&world.table, rid, version),
                    }
                }
                Err(absent) => Err(WriteError::Absent(absent)),
            }
        };
        match done {
            Err(WriteError::Absent(absent)) => block_on(absent.wait(txn)).expect("brought in"),
            done => return done,
        }
    }
}

/// Brings all leaves in without following an entry of `but`, and counts.
fn entries(world: &World, txn: &mut Txn, but: i64) -> usize {
    for k in (1..=ACCOUNTS + 10).filter(|k| *k != but) {
        get(world, txn, k);
    }
    assert_eq!(world.by_key.absent_leaf_count(), 0);
    world.by_key.check().expect("in order").entries
}

/// Numbers from `low` up to `high`, by the index.
fn numbers(world: &World, txn: &mut Txn, low: i64, high: i64) -> Vec<i64> {
    let (low, high) = (Bound::Included(key(low)), Bound::Included(key(high)));
    let mut cursor = IndexCursor::new(&world.by_key, low, high, false);
    let mut numbers = Vec::new();
    while let Some(number) = with(txn, |txn| {
        let guard = Guard::pin();
        let row = txn.index_next(&mut cursor, &guard)?;
        Ok(row.map(|row| column(&row, 0)))
    }) {
        numbers.push(number);
    }
    numbers
}

/// An account gets another number; when its old version is collected the leaf of its old entry is not in memory.
#[test]
fn an_entry_left_behind_goes_when_a_reader_follows_it() {
    for by_cursor in [false, true] {
        let (world, worker) = world();
        let mut txn = worker.begin(Isolation::ReadCommitted);
        change(&world, &mut txn, 500, Some(ACCOUNTS + 5)).expect("free");
        commit(txn);
        settle(&world);
        evict(&world);
        collect(&world, &worker);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let before = entries(&world, &mut txn, 500);
        assert_eq!(before, ACCOUNTS as usize + 1, "it was left");
        if by_cursor {
            assert_eq!(numbers(&world, &mut txn, 499, 502), [499, 501, 502]);
        } else {
            assert_eq!(get(&world, &mut txn, 500), None);
        }
        assert_eq!(entries(&world, &mut txn, 500), ACCOUNTS as usize);
        let moved = get(&world, &mut txn, ACCOUNTS + 5).expect("there");
        assert_eq!(moved.1, 500);
        // The next checkpoint knows of it.
        txn.abort();
        settle(&world);
        evict(&world);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        assert_eq!(entries(&world, &mut txn, 0), ACCOUNTS as usize);
    }
}

/// A deleted account: its row is gone altogether, and its place may be another one's by then.
#[test]
fn an_entry_of_a_row_that_is_gone_goes_too() {
    for is_used_again in [false, true] {
        let (world, worker) = world();
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let (rid, _) = get(&world, &mut txn, 500).expect("there");
        change(&world, &mut txn, 500, None).expect("deleted");
        commit(txn);
        settle(&world);
        evict(&world);
        collect(&world, &worker);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let mut expected = ACCOUNTS as usize;
        if is_used_again {
            let again = loop {
                match txn.insert(&world.table, &row(ACCOUNTS + 3, 1)) {
                    Ok(rid) => break rid,
                    Err(WriteError::Absent(absent)) => {
                        block_on(absent.wait(&mut txn)).expect("brought in");
                    }
                    Err(error) => panic!("{error}"),
                }
            };
            assert_eq!(again, rid);
            commit(txn);
            block_on(world.engine.flush_all_and_wait()).expect("flushed");
            txn = worker.begin(Isolation::ReadCommitted);
            expected += 1;
        }
        assert_eq!(entries(&world, &mut txn, 500), expected, "it was left");
        assert_eq!(numbers(&world, &mut txn, 500, 501), [501]);
        assert_eq!(entries(&world, &mut txn, 500), expected - 1);
    }
}

/// What came to nothing while its leaf was away: a checkpoint has its entry.
#[test]
fn an_entry_of_an_insert_that_was_undone_goes() {
    let (world, worker) = world();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.insert(&world.table, &row(ACCOUNTS + 7, 1))
        .expect("inserted");
    // Something else, for a checkpoint to be taken at all.
    let mut other = worker.begin(Isolation::ReadCommitted);
    change(&world, &mut other, 1, Some(1)).expect("its own number");
    commit(other);
    settle(&world);
    evict(&world);
    txn.abort();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let before = entries(&world, &mut txn, ACCOUNTS + 7);
    assert_eq!(before, ACCOUNTS as usize + 1, "it was left");
    assert_eq!(get(&world, &mut txn, ACCOUNTS + 7), None);
    let after = entries(&world, &mut txn, ACCOUNTS + 7);
    assert_eq!(after, ACCOUNTS as usize);
}

/// Entries that lead nowhere for one reader, and are needed all the same.
#[test]
fn t11_an_entry_that_somebody_needs_stays() {
    let (world, worker) = world();
    let mut old = worker.begin(Isolation::RepeatableRead);
    old.snapshot();
    // An old version that a snapshot sees.
    let mut txn = worker.begin(Isolation::ReadCommitted);
    change(&world, &mut txn, 500, Some(ACCOUNTS + 5)).expect("free");
    commit(txn);
    // One that a rollback brings back.
    let mut open = worker.begin(Isolation::ReadCommitted);
    change(&world, &mut open, 600, Some(ACCOUNTS + 6)).expect("free");
    // New ones, in flight and committed since.
    open.insert(&world.table, &row(ACCOUNTS + 8, 8))
        .expect("inserted");
    let mut late = worker.begin(Isolation::RepeatableRead);
    late.snapshot();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.insert(&world.table, &row(ACCOUNTS + 9, 9))
        .expect("inserted");
    commit(txn);
    collect(&world, &worker);
    // All of them lead to nothing for somebody.
    open.begin_statement();
    assert_eq!(get(&world, &mut late, 500), None);
    assert_eq!(get(&world, &mut open, 600), None);
    assert_eq!(get(&world, &mut late, ACCOUNTS + 6), None);
    assert_eq!(get(&world, &mut late, ACCOUNTS + 8), None);
    assert_eq!(get(&world, &mut late, ACCOUNTS + 9), None);
    let met: Vec<i64> = numbers(&world, &mut late, 1, 3 * ACCOUNTS);
    assert_eq!(met.len(), ACCOUNTS as usize);
    assert_eq!(get(&world, &mut old, 500).map(|found| found.1), Some(500));
    open.abort();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for (number, amount) in [
        (600, Some(600)),
        (500, None),
        (ACCOUNTS + 5, Some(500)),
        (ACCOUNTS + 8, None),
        (ACCOUNTS + 9, Some(9)),
    ] {
        let found = get(&world, &mut txn, number).map(|found| found.1);
        assert_eq!(found, amount, "account {number}");
    }
    // And once nobody sees the old number any more, its entry goes with its version.
    drop((old, late));
    collect(&world, &worker);
    assert_eq!(
        world.by_key.check().expect("in order").entries,
        ACCOUNTS as usize + 1
    );
}
