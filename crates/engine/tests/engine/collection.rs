//! What is collected, and when.

use std::sync::Arc;

use logstead_engine::{ExpectPresent, FlushMode, Guard, Isolation, Txn, Worker};
use logstead_types::{TableId, WorkerId};

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
        insert.commit_wait(),
        deleted.waits_for,
        "it examined the tombstone"
    );
    insert.abort();
    assert!(!world.engine.is_committed(&deleted.waits_for));
    worker.flush(FlushMode::Inline);
    worker.collect_garbage(100);
    assert_eq!(world.by_key.entry_count(), 0);
    assert_eq!(world.table.row_count_estimate(), 0, "the rid is free");
}

/// T1: a tombstone that a plain read meets counts as read, whatever way it came to it: that there is no such row rests
/// on the delete. A crash that takes the delete back takes what was built on it along.
#[test]
fn t1_who_reads_that_a_row_is_gone_rests_on_the_delete() {
    type Read = fn(&World, &mut Txn) -> usize;
    let reads: [(&str, Read); 6] = [
        ("by key", |world, txn| world.get(txn, 1).iter().count()),
        ("by row number", |world, txn| {
            let guard = Guard::pin();
            let row = txn.read(&world.table, first_rid(), &guard).expect_present();
            row.iter().count()
        }),
        ("newest", |world, txn| {
            let guard = Guard::pin();
            let row = txn.read_newest(&world.table, first_rid(), &guard);
            row.expect_present().iter().count()
        }),
        ("scan", |world, txn| world.scan(txn).len()),
        ("index", |world, txn| {
            world.walk(txn, &world.by_key, false).len()
        }),
        ("backwards", |world, txn| {
            world.walk(txn, &world.by_balance, true).len()
        }),
    ];
    for (name, read) in reads {
        let (world, worker) = World::with_accounts(2, 1);
        let reader = world.engine.worker(WorkerId(1));
        let mut delete = worker.begin(Isolation::ReadCommitted);
        assert_eq!(world.rid(&mut delete, 1), first_rid());
        world.delete(&mut delete, 1).expect("delete");
        let deleted = commit(delete);
        let mut txn = reader.begin(Isolation::ReadCommitted);
        assert_eq!(read(&world, &mut txn), 0, "{name}");
        assert_eq!(txn.commit_wait(), deleted.waits_for, "{name}");
        txn.insert(&world.table, &row(9, 9)).expect("insert");
        commit(txn);
        // The reader's lane is durable, the delete's is not.
        reader.flush(FlushMode::Inline);
        let home = world.home.clone();
        drop((reader, worker, world));
        home.crash();
        let world = World::open(home, 2);
        let worker = world.engine.worker(WorkerId(0));
        let mut check = worker.begin(Isolation::ReadCommitted);
        let left = world.scan(&mut check);
        assert_eq!(left, [(1, 100)], "{name}: with the row there is no 9");
    }
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

/// T1, the other way round: what came and went while an old snapshot lasts leaves no index entry when that ends.
#[test]
fn rows_that_live_and_die_beside_an_old_snapshot_leave_no_entries() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.scan(&mut old).len(), 1);
    for k in 2..50 {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        txn.insert(&world.table, &row(k, k)).expect("insert");
        commit(txn);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.delete(&mut txn, k).expect("delete");
        commit(txn);
        worker.flush(FlushMode::Inline);
        while worker.collect_garbage(64) {}
    }
    drop(old);
    while worker.collect_garbage(64) {}
    assert_eq!(
        (world.by_key.entry_count(), world.by_balance.entry_count()),
        (1, 1)
    );
    assert_eq!(world.table.row_count_estimate(), 1);
}

/// Rows that an old snapshot had kept and rows that were written lately are looked at by turns: neither waits until
/// there is nothing of the other.
#[test]
fn the_collector_takes_turns() {
    const ROWS: i64 = 50;
    let (world, worker) = World::with_accounts(1, 2 * ROWS);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.scan(&mut old).len() as i64, 2 * ROWS);
    for k in 1..=ROWS {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.delete(&mut txn, k).expect("delete");
        commit(txn);
    }
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    assert_eq!(
        world.by_key.entry_count() as i64,
        2 * ROWS,
        "the old one sees them"
    );
    drop(old);
    for k in ROWS + 1..=2 * ROWS {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, k, |b| b + 1).expect("update");
        commit(txn);
    }
    worker.flush(FlushMode::Inline);
    // Each deleted row that is looked at loses its entry, and no updated one does.
    for looks in [20, 20, 40] {
        let before = world.by_key.entry_count();
        assert!(worker.collect_garbage(looks), "there is more");
        assert_eq!(before - world.by_key.entry_count(), looks / 2, "of {looks}");
    }
    while worker.collect_garbage(64) {}
    assert_eq!(world.by_key.entry_count() as i64, ROWS);
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

/// T1: what writers prune in passing has been superseded for good: a crash takes back every update that is not durable,
/// and finds what each of them superseded.
#[test]
fn t1_writers_prune_nothing_in_passing_before_it_is_superseded_for_good() {
    const UPDATES: i64 = 100;
    let (world, worker) = World::with_accounts(1, 1);
    let update = |to: i64| {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, 1, |_| to).expect("update");
        commit(txn);
    };
    (0..UPDATES).for_each(update);
    assert_eq!(live_versions(&world), 1 + UPDATES as u64);
    worker.flush(FlushMode::Inline);
    // Now they do.
    (0..UPDATES).for_each(|n| {
        update(n);
        worker.flush(FlushMode::Inline);
    });
    let live = live_versions(&world);
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

/// Versions of all accounts that are still linked, by the engine's count.
fn live_versions(world: &World) -> u64 {
    let stats = world.engine.stats();
    stats.versions_installed - stats.versions_collected
}

/// Updates every account `rounds` times, each time in a transaction of its own, with what a server does beside it.
fn churn(world: &World, worker: &Worker, accounts: i64, rounds: i64) {
    for round in 0..rounds {
        for k in 1..=accounts {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            world
                .update(&mut txn, k, |_| round * 100 + k)
                .expect("update");
            commit(txn);
        }
        worker.flush(FlushMode::Inline);
        while worker.collect_garbage(64) {}
    }
}

/// However many old snapshots there are, on one worker and on others, each keeps one version of each row and no more:
/// with transactions that idle, and with views of cursors that outlive their statements.
#[test]
fn old_snapshots_keep_one_version_each_wherever_they_are() {
    const ACCOUNTS: i64 = 5;
    let (world, worker) = World::with_accounts(2, ACCOUNTS);
    let other = world.engine.worker(logstead_types::WorkerId(1));
    let mut olds: Vec<(Txn, i64)> = Vec::new();
    let mut views = Vec::new();
    let mut cursors = other.begin(Isolation::ReadCommitted);
    for n in 0..8 {
        let of = if n % 2 == 0 { &worker } else { &other };
        let mut old = of.begin(Isolation::RepeatableRead);
        let sum = world.scan(&mut old).iter().map(|(_, b)| b).sum();
        olds.push((old, sum));
        cursors.begin_statement();
        views.push((cursors.view(), sum));
        cursors.end_statement();
        // The worker that idles tends its own, as a server's does.
        while other.collect_garbage(64) {}
        churn(&world, &worker, ACCOUNTS, 20);
    }
    let kept = live_versions(&world);
    assert!(
        kept <= 9 * ACCOUNTS as u64,
        "{kept} versions, 8 old ones and the newest of each row"
    );
    assert_eq!(world.by_key.entry_count() as i64, ACCOUNTS);
    assert!(world.by_balance.entry_count() <= kept as usize);
    // Every one of them sees what it saw.
    for (old, sum) in &mut olds {
        assert_eq!(world.scan(old).iter().map(|(_, b)| b).sum::<i64>(), *sum);
    }
    for (view, sum) in &mut views {
        cursors.swap_view(view);
        assert_eq!(
            world.scan(&mut cursors).iter().map(|(_, b)| b).sum::<i64>(),
            *sum
        );
        cursors.swap_view(view);
    }
    // Half of them end, from the middle; then all. The garbage is the busy worker's, whoever held it.
    olds.drain(2..6);
    views.drain(2..6);
    while other.collect_garbage(64) {}
    while worker.collect_garbage(64) {}
    let kept = live_versions(&world);
    assert!(
        kept <= 5 * ACCOUNTS as u64,
        "{kept} versions, 4 old ones and the newest of each row"
    );
    drop((olds, views));
    cursors.abort();
    while other.collect_garbage(64) {}
    while worker.collect_garbage(64) {}
    assert_eq!(live_versions(&world), ACCOUNTS as u64);
    assert_eq!(world.by_balance.entry_count() as i64, ACCOUNTS);
}

/// Rows that an old snapshot held are looked at once more after its end, however many they are and however small the
/// steps.
#[test]
fn what_a_snapshot_held_costs_in_proportion_after_its_end() {
    let work = |accounts: i64| {
        let (world, worker) = World::with_accounts(1, accounts);
        while worker.collect_garbage(64) {}
        let before = world.engine.stats();
        let mut old = worker.begin(Isolation::RepeatableRead);
        assert_eq!(world.scan(&mut old).len() as i64, accounts);
        let mut txn = worker.begin(Isolation::ReadCommitted);
        for k in 1..=accounts {
            world.update(&mut txn, k, |b| b + 1).expect("update");
        }
        commit(txn);
        worker.flush(FlushMode::Inline);
        while worker.collect_garbage(64) {}
        assert_eq!(live_versions(&world), 2 * accounts as u64, "the old one");
        drop(old);
        while worker.collect_garbage(64) {}
        assert_eq!(live_versions(&world), accounts as u64);
        let stats = world.engine.stats();
        (
            stats.garbage_rows_examined - before.garbage_rows_examined,
            stats.garbage_rows_held - before.garbage_rows_held,
        )
    };
    for accounts in [400, 4_000] {
        let (examined, held) = work(accounts);
        assert_eq!(held, accounts as u64, "each was set aside once");
        assert_eq!(examined, 2 * accounts as u64, "each was looked at twice");
    }
}

/// What is written meanwhile does not wait until all that a snapshot held was looked at.
#[test]
fn rows_that_were_held_and_rows_that_were_written_take_turns() {
    let accounts = 1_000;
    let (world, worker) = World::with_accounts(1, accounts + 1);
    let mut old = worker.begin(Isolation::RepeatableRead);
    world.scan(&mut old);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=accounts {
        world.update(&mut txn, k, |b| b + 1).expect("update");
    }
    commit(txn);
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    drop(old);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world
        .update(&mut txn, accounts + 1, |b| b + 1)
        .expect("update");
    commit(txn);
    worker.flush(FlushMode::Inline);
    let before = live_versions(&world);
    assert!(worker.collect_garbage(2), "there is more");
    assert_eq!(live_versions(&world), before - 2, "one of each");
    while worker.collect_garbage(64) {}
    assert_eq!(live_versions(&world), accounts as u64 + 1);
}

/// T1: a rid is not used again before the delete that freed it is below the horizon.
#[test]
fn t1_a_rid_is_reused_only_below_the_horizon() {
    let (world, worker) = World::with_accounts(1, 3);
    let mut delete = worker.begin(Isolation::ReadCommitted);
    let freed = world.rid(&mut delete, 2);
    world.delete(&mut delete, 2).expect("delete");
    commit(delete);
    while worker.collect_garbage(64) {}
    let mut insert = worker.begin(Isolation::ReadCommitted);
    let rid = insert.insert(&world.table, &row(2, 9)).expect("insert");
    assert_ne!(rid, freed, "a crash now would bring the deleted row back");
    insert.abort();
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    let mut insert = worker.begin(Isolation::ReadCommitted);
    let reused: Vec<_> = [2, 10]
        .into_iter()
        .map(|k| insert.insert(&world.table, &row(k, 9)).expect("insert"))
        .collect();
    assert!(reused.contains(&freed), "{freed:?} of {reused:?}");
}

/// T1: an update that is not durable keeps the version and the index entry it superseded.
#[test]
fn t1_versions_and_entries_stay_until_what_superseded_them_is_durable() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| 7).expect("update");
    commit(txn);
    while worker.collect_garbage(64) {}
    assert_eq!(
        (live_versions(&world), world.by_balance.entry_count()),
        (2, 2)
    );
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    assert_eq!(
        (live_versions(&world), world.by_balance.entry_count()),
        (1, 1)
    );
}

/// T1: what was read in a part that was rolled back, or rejected by its reader, counts all the same.
#[test]
fn t1_reads_of_a_rolled_back_savepoint_and_rejected_rows_count() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut write = worker.begin(Isolation::ReadCommitted);
    world.update(&mut write, 2, |_| 7).expect("update");
    let written = commit(write);
    let mut reader = worker.begin(Isolation::ReadCommitted);
    let savepoint = reader.savepoint();
    reader.begin_statement();
    // A predicate would reject it; the answer depends on it all the same.
    assert_eq!(world.get(&mut reader, 2), Some(7));
    reader.rollback_to(savepoint);
    let receipt = commit(reader);
    assert_eq!(receipt.waits_for, written.waits_for);
    assert!(!world.engine.is_committed(&receipt.waits_for));
    // A key that is taken by nobody any more: the refusal's opposite rests on the tombstone as well.
    let mut delete = worker.begin(Isolation::ReadCommitted);
    world.delete(&mut delete, 1).expect("delete");
    let deleted = commit(delete);
    let mut insert = worker.begin(Isolation::ReadCommitted);
    let savepoint = insert.savepoint();
    insert.insert(&world.table, &row(1, 5)).expect("free");
    insert.rollback_to(savepoint);
    assert_eq!(commit(insert).waits_for, deleted.waits_for);
}

/// What one worker deleted or dropped is freed though that worker idles, once it tends its garbage; and a dropped
/// table's rows are let go of whatever old snapshot there is.
#[test]
fn a_dropped_table_is_not_kept_by_garbage_or_old_snapshots() {
    let (world, worker) = World::with_accounts(1, 1);
    let memory = world.engine.memory();
    let id = TableId(20_100);
    let table = world.engine.create_table(id);
    let mut fill = worker.begin(Isolation::ReadCommitted);
    let rids: Vec<_> = (0..2_000)
        .map(|k| fill.insert(&table, &row(k, k)).expect("insert"))
        .collect();
    commit(fill);
    worker.flush(FlushMode::Inline);
    let mut old = worker.begin(Isolation::RepeatableRead);
    old.snapshot();
    while worker.collect_garbage(64) {}
    let mut change = worker.begin(Isolation::ReadCommitted);
    for rid in &rids {
        let guard = Guard::pin();
        let version = change
            .read(&table, *rid, &guard)
            .expect_present()
            .expect("a row")
            .version;
        change.delete(&table, *rid, version).expect("delete");
    }
    commit(change);
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(64) {}
    let held = memory.used_bytes();
    let weak = Arc::downgrade(&table);
    drop(table);
    assert!(
        weak.upgrade().is_some(),
        "the old snapshot still holds its rows for collection"
    );
    world.engine.drop_table(id);
    worker.collect_garbage(64);
    assert!(weak.upgrade().is_none());
    for _ in 0..20_000 {
        if memory.used_bytes() + 100_000 < held {
            return;
        }
        worker.collect_garbage(64);
        std::thread::sleep(std::time::Duration::from_micros(500));
    }
    panic!("{} of {held} bytes are still in use", memory.used_bytes());
}
