//! What is collected, and when.

use logstead_engine::{FlushMode, Isolation};

use crate::world::*;

/// T1: a delete that is Precommitted and not durable keeps its tombstone and index entry: whoever inserts the key
/// depends on it.
#[test]
fn t1_nothing_is_collected_above_the_horizon_and_tombstones_count_as_read() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut delete = worker.begin(Isolation::ReadCommitted);
    world.delete(&mut delete, 1).expect("delete");
    let deleted = commit(delete);
    worker.collect_garbage(100);
    assert_eq!(world.by_key.entry_count(), 1, "its entry stays");
    let mut insert = worker.begin(Isolation::ReadCommitted);
    insert
        .insert(&world.table, &row(1, 5))
        .expect("no conflict");
    assert_eq!(
        insert.dsn().0,
        deleted.waits_for.0,
        "it examined the tombstone"
    );
    insert.abort();
    assert!(!world.engine.is_committed(deleted.waits_for));
    worker.flush(FlushMode::Inline);
    worker.collect_garbage(100);
    assert_eq!(world.by_key.entry_count(), 0);
    assert_eq!(world.table.row_count_estimate(), 0, "the rid is free");
}

#[test]
fn a_snapshot_keeps_what_it_sees_and_nothing_else() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.scan(&mut old).len(), 2);
    for i in 0..200 {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, 1, |_| i).expect("update");
        commit(txn);
        worker.flush(FlushMode::Inline);
    }
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.delete(&mut txn, 2).expect("delete");
    commit(txn);
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    let stats = world.engine.stats();
    let live = stats.versions_installed - stats.versions_collected;
    assert!(
        live <= 2 + 3,
        "both rows, what the old snapshot sees, the tombstone: {live} live"
    );
    assert_eq!(world.scan(&mut old), [(1, 100), (2, 100)]);
    assert_eq!(
        world.walk(&mut old, &world.by_balance, false),
        [(1, 100), (2, 100)]
    );
    drop(old);
    while worker.collect_garbage(64) {}
    let stats = world.engine.stats();
    assert_eq!(stats.versions_installed - stats.versions_collected, 1);
    assert_eq!(
        (world.by_key.entry_count(), world.by_balance.entry_count()),
        (1, 1)
    );
    assert_eq!(world.table.row_count_estimate(), 1);
}

#[test]
fn a_hot_row_is_pruned_by_its_writers() {
    let (world, worker) = World::with_accounts(1, 1);
    for i in 0..500 {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, 1, |_| i).expect("update");
        commit(txn);
        worker.flush(FlushMode::Inline);
    }
    let stats = world.engine.stats();
    let live = stats.versions_installed - stats.versions_collected;
    assert!(live < 64, "{live} versions of one row");
}

#[test]
fn garbage_of_a_worker_that_went_is_adopted() {
    let (world, worker) = World::with_accounts(2, 1);
    let second = world.engine.worker(logstead_types::WorkerId(1));
    let mut txn = second.begin(Isolation::ReadCommitted);
    world.delete(&mut txn, 1).expect("delete");
    commit(txn);
    second.flush(FlushMode::Inline);
    drop(second);
    while worker.collect_garbage(10) {}
    assert_eq!(world.by_key.entry_count(), 0);
}
