//! Temporary tables: what is written there is as transactional as ever, in no log, in no checkpoint, and waits for
//! nobody.

use std::sync::Arc;

use logstead_engine::{ExpectPresent, FlushMode, Guard, Isolation, Txn, Worker};
use logstead_types::{IndexId, TableId};

use crate::world::{Column, World, commit, row};

const TEMPORARY: TableId = TableId(30_000);

/// The same world, over a temporary table of its engine.
fn temporary(world: &World) -> World {
    let engine = world.engine.clone();
    let table = engine.create_temporary_table(TEMPORARY);
    let index =
        |id, unique, column| engine.create_index(&table, id, unique, Arc::new(Column(column)));
    World {
        home: world.home.clone(),
        by_key: index(IndexId(30_001), true, 0),
        by_balance: index(IndexId(30_002), false, 1),
        table,
        engine,
    }
}

fn begin(worker: &Worker) -> Txn {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    txn
}

fn insert(world: &World, txn: &mut Txn, k: i64) {
    txn.insert(&world.table, &row(k, 100)).expect("insert");
}

/// As a new transaction sees it, by scan and by index.
fn seen(world: &World, worker: &Worker) -> Vec<(i64, i64)> {
    let mut txn = begin(worker);
    let rows = world.scan(&mut txn);
    assert_eq!(world.walk(&mut txn, &world.by_key, false), rows);
    rows
}

#[test]
fn nothing_of_them_is_logged() {
    let (world, worker) = World::with_accounts(1, 3);
    let temp = temporary(&world);
    let before = (world.engine.next_csn(), world.engine.stats().log_bytes);
    let mut txn = begin(&worker);
    for k in 1..=3 {
        insert(&temp, &mut txn, k);
    }
    assert!(!txn.has_writes());
    let receipt = commit(txn);
    assert_eq!(receipt.csn, None);
    assert!(receipt.waits_for.is_none());
    for balance in [7, 8, 9] {
        let mut txn = begin(&worker);
        temp.update(&mut txn, 2, |_| balance).expect("updates");
        commit(txn);
        assert_eq!(
            seen(&temp, &worker),
            [(1, 100), (2, balance), (3, 100)],
            "each transaction sees what the one before has left"
        );
    }
    let mut txn = begin(&worker);
    temp.delete(&mut txn, 1).expect("deletes");
    commit(txn);
    while worker.collect_garbage(64) {}
    assert_eq!(seen(&temp, &worker), [(2, 9), (3, 100)]);
    let after = (world.engine.next_csn(), world.engine.stats().log_bytes);
    assert_eq!(after, before);
}

#[test]
fn they_are_rolled_back() {
    let (world, worker) = World::with_accounts(1, 1);
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 1);
    let savepoint = txn.savepoint();
    txn.begin_statement();
    insert(&temp, &mut txn, 2);
    temp.update(&mut txn, 1, |_| 5).expect("updates");
    insert(&world, &mut txn, 2);
    assert!(txn.rollback_to(savepoint));
    txn.begin_statement();
    insert(&temp, &mut txn, 3);
    assert_eq!(commit(txn).csn, None, "what was logged was taken back");
    assert_eq!(seen(&temp, &worker), [(1, 100), (3, 100)]);
    let mut txn = begin(&worker);
    temp.delete(&mut txn, 1).expect("deletes");
    insert(&temp, &mut txn, 4);
    txn.abort();
    assert_eq!(seen(&temp, &worker), [(1, 100), (3, 100)]);
    assert_eq!(seen(&world, &worker), [(1, 100)]);
}

#[test]
fn a_unique_key_is_judged_across_transactions() {
    let (world, worker) = World::with_accounts(1, 1);
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 1);
    commit(txn);
    let mut txn = begin(&worker);
    assert!(txn.insert(&temp.table, &row(1, 1)).is_err());
    temp.delete(&mut txn, 1).expect("deletes");
    txn.begin_statement();
    insert(&temp, &mut txn, 1);
    commit(txn);
    assert_eq!(seen(&temp, &worker), [(1, 100)]);
}

#[test]
fn versions_of_both_kinds_of_commit_keep_their_order() {
    let (world, worker) = World::with_accounts(2, 2);
    let other = world.engine.worker(logstead_types::WorkerId(1));
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 1);
    commit(txn);
    for round in 0..6 {
        // Somebody else draws CSNs that nobody has flushed.
        let mut txn = begin(&other);
        world.update(&mut txn, 2, |b| b + 1).expect("updates");
        commit(txn);
        let mut txn = worker.begin(Isolation::RepeatableRead);
        txn.begin_statement();
        temp.update(&mut txn, 1, |_| round).expect("updates");
        if round % 2 == 0 {
            world.update(&mut txn, 1, |_| round).expect("updates");
        }
        let receipt = commit(txn);
        assert_eq!(receipt.csn.is_some(), round % 2 == 0);
        assert_eq!(seen(&temp, &worker), [(1, round)]);
        while worker.collect_garbage(64) {}
        assert_eq!(seen(&temp, &worker), [(1, round)]);
    }
}

#[test]
fn who_reads_them_depends_on_nothing() {
    let (world, worker) = World::with_accounts(1, 1);
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 1);
    world.update(&mut txn, 1, |_| 1).expect("updates");
    let receipt = commit(txn);
    assert!(
        !world.engine.is_committed(&receipt.waits_for),
        "not flushed"
    );
    let mut txn = begin(&worker);
    assert_eq!(temp.get(&mut txn, 1), Some(100));
    temp.update(&mut txn, 1, |_| 3).expect("updates");
    assert!(txn.commit_wait().is_none());
    // What lasts makes it wait as ever.
    assert_eq!(world.get(&mut txn, 1), Some(1));
    assert!(!txn.commit_wait().is_none());
    assert!(!commit(txn).waits_for.is_none());
}

#[test]
fn a_crash_keeps_what_lasts_of_a_transaction_that_writes_both() {
    let (world, worker) = World::with_accounts(1, 2);
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 1);
    world.update(&mut txn, 1, |_| 77).expect("updates");
    insert(&temp, &mut txn, 2);
    insert(&world, &mut txn, 3);
    commit(txn);
    worker.flush(FlushMode::Inline);
    // Checkpoints pass them over, before and after the crash.
    world.engine.checkpoint().expect("taken");
    let mut txn = begin(&worker);
    insert(&temp, &mut txn, 3);
    world.update(&mut txn, 2, |_| 78).expect("updates");
    commit(txn);
    worker.flush(FlushMode::Inline);
    let home = world.home.clone();
    drop((worker, temp, world));
    home.crash();
    let world = World::open(home, 1);
    let worker = world.engine.worker(logstead_types::WorkerId(0));
    assert_eq!(seen(&world, &worker), [(1, 77), (2, 78), (3, 100)]);
    assert!(world.engine.table(TEMPORARY).is_none());
    world.engine.checkpoint().expect("taken");
}

#[test]
fn a_dropped_one_gives_its_memory_back() {
    let (world, worker) = World::with_accounts(1, 1);
    let used = world.engine.memory().used_bytes();
    {
        let temp = temporary(&world);
        let mut txn = begin(&worker);
        for k in 0..10_000 {
            insert(&temp, &mut txn, k);
        }
        commit(txn);
        let mut txn = begin(&worker);
        for k in 0..100 {
            temp.update(&mut txn, k, |_| 1).expect("updates");
        }
        commit(txn);
        assert!(world.engine.memory().used_bytes() > used + 100_000);
        world.engine.drop_table(TEMPORARY);
    }
    assert!(world.engine.table(TEMPORARY).is_none());
    // Others may be in the middle of something, and hold back what was unlinked.
    for _ in 0..60_000 {
        while worker.collect_garbage(64) {}
        if world.engine.memory().used_bytes() < used + 100_000 {
            return;
        }
        logstead_env::sleep(std::time::Duration::from_millis(1));
    }
    panic!("memory is not given back");
}

#[test]
fn nothing_of_them_is_absent() {
    let (world, worker) = World::with_accounts(1, 1);
    let temp = temporary(&world);
    let mut txn = begin(&worker);
    let rid = txn.insert(&temp.table, &row(1, 100)).expect("insert");
    commit(txn);
    worker.flush(FlushMode::Inline);
    world.engine.checkpoint().expect("taken");
    let mut txn = begin(&worker);
    let guard = Guard::pin();
    let found = txn.read(&temp.table, rid, &guard).expect_present();
    assert!(found.is_some());
}
