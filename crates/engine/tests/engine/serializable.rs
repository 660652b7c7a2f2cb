//! SERIALIZABLE, by anomaly: the histories that snapshot isolation lets through and no serial order explains.

use std::ops::Bound;
use std::pin::pin;
use std::sync::Arc;

use logstead_engine::{
    CommitError, ExpectPresent, FlushMode, Guard, IndexCursor, Isolation, RowLock, ScanCursor,
    TryCommitError, Txn, Worker, WriteError,
};

use crate::world::*;

fn begin(worker: &Worker) -> Txn {
    worker.begin(Isolation::Serializable)
}

/// Commits, or says that it could not be serialized.
fn end(txn: Txn) -> Result<(), ()> {
    match block_on(txn.precommit()) {
        Ok(_) => Ok(()),
        Err(CommitError::Serialization) => Err(()),
        Err(error) => panic!("{error}"),
    }
}

fn insert(world: &World, txn: &mut Txn, k: i64, balance: i64) {
    txn.insert(&world.table, &row(k, balance)).expect("insert");
}

/// Keys from `from` to `to`, in order, `limit` of them.
fn range(world: &World, txn: &mut Txn, from: i64, to: i64, limit: usize) -> Vec<i64> {
    let mut cursor = IndexCursor::new(
        &world.by_key,
        Bound::Included(key(from)),
        Bound::Included(key(to)),
        false,
    );
    let guard = Guard::pin();
    let mut keys = Vec::new();
    while keys.len() < limit
        && let Some(row) = txn.index_next(&mut cursor, &guard).expect_present()
    {
        keys.push(column(&row, 0));
    }
    keys
}

/// Both orders of commit of a pair that each read what the other wrote: exactly the second fails, and its retry
/// succeeds.
fn one_of_two_fails(
    read_write: impl Fn(&World, &mut Txn, i64),
    prepare: impl Fn(&World, &mut Txn),
) {
    for swapped in [false, true] {
        let (world, worker) = World::with_accounts(1, 2);
        let mut setup = begin(&worker);
        prepare(&world, &mut setup);
        end(setup).expect("alone");
        let (mut a, mut b) = (begin(&worker), begin(&worker));
        a.snapshot();
        b.snapshot();
        read_write(&world, &mut a, 1);
        read_write(&world, &mut b, 2);
        let (first, second, who) = if swapped { (b, a, 1) } else { (a, b, 2) };
        assert_eq!(end(first), Ok(()));
        assert_eq!(end(second), Err(()), "swapped: {swapped}");
        let mut again = begin(&worker);
        read_write(&world, &mut again, who);
        assert_eq!(end(again), Ok(()), "a retry succeeds");
    }
}

/// G2-item (write skew): both read both accounts, each empties its own.
#[test]
fn write_skew() {
    one_of_two_fails(
        |world, txn, k| {
            let total = world.get(txn, 1).unwrap_or(0) + world.get(txn, 2).unwrap_or(0);
            assert!(total >= 0);
            world.update(txn, k, |n| n - 50).expect("its own row");
        },
        |_, _| {},
    );
}

/// G2 through a scan: both count the table and insert.
#[test]
fn phantom_of_a_table_scan() {
    one_of_two_fails(
        |world, txn, k| {
            let n = world.scan(txn).len() as i64;
            insert(world, txn, 10 * k + n, 0);
        },
        |_, _| {},
    );
}

/// G2 through an index: both walk the same range, in both directions, and insert into it.
#[test]
fn phantom_of_an_index_range() {
    one_of_two_fails(
        |world, txn, k| {
            range(world, txn, 10, 20, usize::MAX);
            insert(world, txn, 10 + k, 0);
        },
        |_, _| {},
    );
    one_of_two_fails(
        |world, txn, k| {
            let mut cursor = IndexCursor::new(
                &world.by_balance,
                Bound::Excluded(key(100)),
                Bound::Excluded(key(200)),
                true,
            );
            while txn
                .index_next(&mut cursor, &Guard::pin())
                .expect_present()
                .is_some()
            {}
            world.update(txn, k, |_| 150).expect("moves into the range");
        },
        |_, _| {},
    );
}

/// G2 through the lookup of a key that is not there.
#[test]
fn phantom_of_an_absent_key() {
    one_of_two_fails(
        |world, txn, k| {
            world.get(txn, 10 + (3 - k));
            insert(world, txn, 10 + k, 0);
        },
        |_, _| {},
    );
}

/// A row that leaves the range another transaction has read, by update or delete, is a row it has seen.
#[test]
fn a_row_that_leaves_a_range() {
    for delete in [false, true] {
        one_of_two_fails(
            |world, txn, k| {
                range(world, txn, 30, 40, usize::MAX);
                if delete {
                    world.delete(txn, 30 + k).expect("its own");
                } else {
                    let guard = Guard::pin();
                    let found = txn
                        .get(&world.by_key, &key(30 + k), &guard)
                        .expect_present()
                        .expect("there");
                    let (rid, version) = (found.rid, found.version);
                    txn.update(&world.table, rid, version, &row(50 + k, 0))
                        .expect("its own");
                }
            },
            |world, txn| {
                for k in [31, 32] {
                    insert(world, txn, k, 0);
                }
            },
        );
    }
}

/// A row that the reader rejected counts as read: its predicate would hold now.
#[test]
fn a_row_that_was_rejected() {
    one_of_two_fails(
        |world, txn, k| {
            let guard = Guard::pin();
            let mut cursor =
                IndexCursor::new(&world.by_key, Bound::Unbounded, Bound::Unbounded, false);
            // Nobody has less than 50: all are looked at and rejected.
            while let Some(row) = txn.index_next(&mut cursor, &guard).expect_present() {
                assert!(balance(&row) >= 50 || k > 0);
            }
            world.update(txn, k, |_| 0).expect("its own");
        },
        |_, _| {},
    );
}

/// What was read after a savepoint that was rolled back stays read (T1); what was written there is not.
#[test]
fn t1_reads_behind_a_savepoint_stay() {
    let (world, worker) = World::with_accounts(1, 2);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    let before = a.savepoint();
    assert_eq!(world.get(&mut a, 2), Some(100));
    a.rollback_to(before);
    world.update(&mut a, 1, |_| 0).expect("a");
    assert_eq!(world.get(&mut b, 1), Some(100));
    world.update(&mut b, 2, |_| 0).expect("b");
    assert_eq!(end(b), Ok(()));
    assert_eq!(end(a), Err(()));

    let (mut a, mut b) = (begin(&worker), begin(&worker));
    assert_eq!(world.get(&mut a, 2), Some(0));
    assert_eq!(world.get(&mut b, 1), Some(100));
    let before = a.savepoint();
    world.update(&mut a, 1, |_| 7).expect("a");
    a.rollback_to(before);
    world.update(&mut b, 2, |_| 8).expect("b");
    assert_eq!(end(b), Ok(()));
    assert_eq!(end(a), Ok(()), "it wrote nothing in the end");
}

/// Fekete, O'Neil and O'Neil's: the report reads the new batch number and misses a receipt of the old one. Nothing
/// fails without the report; with it, somebody must.
#[test]
fn t5_read_only_anomaly() {
    for report in [false, true] {
        let (world, worker) = World::with_accounts(1, 2);
        // Account 1 is the batch number, receipts are rows from 10 on.
        let mut receipt = begin(&worker);
        assert_eq!(world.get(&mut receipt, 1), Some(100));
        let mut close = begin(&worker);
        world.update(&mut close, 1, |n| n + 1).expect("close");
        assert_eq!(end(close), Ok(()));
        let mut reporting = begin(&worker);
        let mut results = Vec::new();
        if report {
            assert_eq!(world.get(&mut reporting, 1), Some(101));
            assert_eq!(range(&world, &mut reporting, 10, 20, usize::MAX), [0i64; 0]);
            // A read-only transaction is certified, too; it is the last that could leave its trace.
            results.push(end(reporting));
        }
        insert(&world, &mut receipt, 10, 100);
        results.push(end(receipt));
        assert_eq!(results.contains(&Err(())), report, "{results:?}");
    }
    // The report comes to its commit last.
    let (world, worker) = World::with_accounts(1, 2);
    let mut receipt = begin(&worker);
    assert_eq!(world.get(&mut receipt, 1), Some(100));
    let mut close = begin(&worker);
    world.update(&mut close, 1, |n| n + 1).expect("close");
    assert_eq!(end(close), Ok(()));
    let mut reporting = begin(&worker);
    assert_eq!(world.get(&mut reporting, 1), Some(101));
    assert_eq!(world.scan(&mut reporting).len(), 2);
    insert(&world, &mut receipt, 10, 100);
    assert_eq!(end(receipt), Ok(()));
    assert_eq!(end(reporting), Err(()));
}

/// A scan passes over an insert that is in flight, and finds nothing where it will be: that leaves a trace.
#[test]
fn t5_a_skipped_insert_leaves_a_trace() {
    type Look = fn(&World, &mut Txn) -> usize;
    let looks: [Look; 3] = [
        |world, txn| world.scan(txn).len() - 2,
        |world, txn| range(world, txn, 10, 20, usize::MAX).len(),
        |world, txn| usize::from(world.get(txn, 10).is_some()),
    ];
    for look in looks {
        for reader_first in [false, true] {
            let (world, worker) = World::with_accounts(1, 2);
            let (mut a, mut b) = (begin(&worker), begin(&worker));
            assert_eq!(world.get(&mut b, 1), Some(100));
            insert(&world, &mut b, 10, 0);
            // The version and its index entries are there, and invisible.
            assert_eq!(look(&world, &mut a), 0);
            world.update(&mut a, 1, |n| n + 1).expect("a");
            let (first, second) = if reader_first { (a, b) } else { (b, a) };
            assert_eq!(end(first), Ok(()));
            assert_eq!(end(second), Err(()));
        }
    }
}

/// A cursor has read what it has walked, not what it was allowed to walk; and it goes on reading in later statements.
#[test]
fn a_cursor_reads_as_far_as_it_walks() {
    let (world, worker) = World::with_accounts(1, 10);
    let commit_both = |walker: Txn, writer: Txn| (end(writer), end(walker));
    for (steps, conflict) in [(2, false), (4, true)] {
        let mut walker = begin(&worker);
        let mut cursor = IndexCursor::new(
            &world.by_key,
            Bound::Included(key(1)),
            Bound::Unbounded,
            false,
        );
        for step in 0..steps {
            walker.begin_statement();
            assert_eq!(
                walker
                    .index_next(&mut cursor, &Guard::pin())
                    .expect_present()
                    .map(|row| column(&row, 0)),
                Some(step + 1)
            );
        }
        let mut writer = begin(&worker);
        assert!(world.get(&mut writer, 9).is_some());
        world.update(&mut writer, 4, |n| n + 1).expect("writer");
        world.update(&mut walker, 9, |n| n + 1).expect("walker");
        let expected = if conflict { Err(()) } else { Ok(()) };
        assert_eq!(commit_both(walker, writer), (Ok(()), expected));
    }
}

/// Who looks whether a key is free and finds it taken when inserting cannot commit: that is 40001, which is retried,
/// and not 23505.
#[test]
fn a_key_taken_since_it_was_free() {
    let (world, worker) = World::with_accounts(1, 1);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    assert_eq!(world.get(&mut a, 5), None);
    assert_eq!(world.get(&mut b, 5), None);
    insert(&world, &mut a, 5, 1);
    assert!(matches!(
        b.insert(&world.table, &row(5, 2)),
        Err(WriteError::Blocked(_))
    ));
    assert_eq!(end(a), Ok(()));
    assert!(matches!(
        b.insert(&world.table, &row(5, 2)),
        Err(WriteError::Dependencies)
    ));
    b.abort();
    // Who did not look gets 23505, and may go on: it comes after the other.
    let mut a = begin(&worker);
    let mut b = begin(&worker);
    assert_eq!(world.get(&mut b, 1), Some(100));
    insert(&world, &mut a, 6, 1);
    assert_eq!(end(a), Ok(()));
    let before = b.savepoint();
    assert!(matches!(
        b.insert(&world.table, &row(6, 2)),
        Err(WriteError::Unique { .. })
    ));
    b.rollback_to(before);
    world.update(&mut b, 1, |n| n + 1).expect("b");
    assert_eq!(end(b), Ok(()));
}

/// What a check of uniqueness examined is a read, even of a version that the snapshot does not see.
#[test]
fn a_check_of_uniqueness_reads() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut a = begin(&worker);
    // a is before whoever changes account 1 ...
    assert_eq!(world.get(&mut a, 1), Some(100));
    let mut b = begin(&worker);
    world.update(&mut b, 1, |n| n + 1).expect("b");
    insert(&world, &mut b, 7, 0);
    assert_eq!(end(b), Ok(()));
    // ... and after it, as it knows that key 7 is taken.
    let before = a.savepoint();
    assert!(matches!(
        a.insert(&world.table, &row(7, 0)),
        Err(WriteError::Dependencies)
    ));
    a.rollback_to(before);
    world.update(&mut a, 2, |n| n + 1).expect("a");
    assert_eq!(end(a), Err(()));
}

/// First updater wins, as in REPEATABLE READ.
#[test]
fn a_row_changed_since_the_snapshot() {
    let (world, worker) = World::with_accounts(1, 2);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    a.snapshot();
    world.update(&mut b, 1, |n| n + 1).expect("b");
    world.delete(&mut b, 2).expect("b");
    assert_eq!(end(b), Ok(()));
    assert!(matches!(
        world.update(&mut a, 1, |n| n + 1),
        Err(WriteError::Serialization)
    ));
    assert!(matches!(
        world.lock(&mut a, 2),
        Err(WriteError::SerializationDelete)
    ));
}

/// Transactions that have nothing to do with each other never fail, and nothing is kept of them in the end.
#[test]
fn disjoint_transactions_never_fail() {
    let (world, worker) = World::with_accounts(1, 64);
    for round in 0..50 {
        let mut open: Vec<(i64, Txn)> = (1..=32).map(|k| (k, begin(&worker))).collect();
        for (k, txn) in &mut open {
            let (from, to) = (2 * *k - 1, 2 * *k);
            assert_eq!(range(&world, txn, from, to, usize::MAX), [from, to]);
            world.update(txn, from, |n| n - 1).expect("its own");
            world.update(txn, to, |n| n + 1).expect("its own");
            assert_eq!(world.get(txn, 1000 + *k), None);
            if (*k + round) % 3 == 0 {
                insert(&world, txn, 2000 + *k, 0);
            }
        }
        for (_, txn) in open {
            assert_eq!(end(txn), Ok(()));
        }
        let mut clean = begin(&worker);
        for (k, _) in world.scan(&mut clean).iter().filter(|(k, _)| *k > 1000) {
            clean.begin_statement();
            world.delete(&mut clean, *k).expect("there");
        }
        assert_eq!(end(clean), Ok(()));
        worker.flush(FlushMode::Inline);
        worker.collect_garbage(1000);
    }
    assert_eq!(world.engine.stats().serialization_failures, 0);
}

/// A reader declared read-only tracks nothing where its snapshot is safe; what it does then cannot fail, nor make
/// others fail.
#[test]
fn read_only_on_a_safe_snapshot() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut reader = begin(&worker);
    reader.declare_read_only();
    assert_eq!(world.scan(&mut reader).len(), 2);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    assert_eq!(world.get(&mut a, 1), Some(100));
    world.update(&mut b, 1, |n| n + 1).expect("b");
    assert_eq!(end(b), Ok(()));
    insert(&world, &mut a, 10, 0);
    assert_eq!(end(a), Ok(()));
    assert_eq!(world.get(&mut reader, 1), Some(100));
    assert_eq!(end(reader), Ok(()));
    // It must not write.
    let mut liar = begin(&worker);
    liar.declare_read_only();
    world
        .update(&mut liar, 1, |n| n + 1)
        .expect("not noticed yet");
    assert!(matches!(
        liar.try_precommit(),
        Err(TryCommitError::Failed(CommitError::ReadOnly))
    ));
    let mut check = begin(&worker);
    assert_eq!(world.get(&mut check, 1), Some(101));
}

/// READ ONLY DEFERRABLE: waits for the writers that were active when it began, and begins again if one of them
/// committed after somebody it should have come before.
#[test]
fn deferrable_waits_for_a_safe_snapshot() {
    let (world, worker) = World::with_accounts(1, 2);
    let bell = Arc::new(Bell::default());
    for dangerous in [false, true] {
        let mut receipt = begin(&worker);
        let batch = world.get(&mut receipt, 1).expect("there");
        if dangerous {
            let mut close = begin(&worker);
            world.update(&mut close, 1, |n| n + 1).expect("close");
            assert_eq!(end(close), Ok(()));
        }
        let mut report = begin(&worker);
        report.declare_read_only();
        let rings = bell.rings();
        let first = {
            let mut wait = pin!(report.safe_snapshot());
            assert!(poll(wait.as_mut(), &bell).is_pending());
            // Who comes later does not matter.
            let later = begin(&worker);
            let mut other = begin(&worker);
            world.update(&mut other, 2, |n| n + 1).expect("other");
            insert(&world, &mut receipt, 10 + i64::from(dangerous), 0);
            let before = world.engine.next_csn();
            assert_eq!(end(receipt), Ok(()));
            assert_eq!(bell.rings(), rings + 1);
            if dangerous {
                assert!(
                    poll(wait.as_mut(), &bell).is_pending(),
                    "a new snapshot, while `other` is active"
                );
            }
            assert_eq!(end(other), Ok(()));
            drop(later);
            assert!(poll(wait.as_mut(), &bell).is_ready());
            before
        };
        assert_eq!(report.snapshot() > first, dangerous);
        assert_eq!(
            world.get(&mut report, 1),
            Some(batch + i64::from(dangerous))
        );
        assert_eq!(end(report), Ok(()));
    }
    // Given up, and not wanted: neither leaves anything behind.
    let mut writer = begin(&worker);
    writer.snapshot();
    let mut report = begin(&worker);
    report.declare_read_only();
    {
        let mut wait = pin!(report.safe_snapshot());
        assert!(poll(wait.as_mut(), &bell).is_pending());
    }
    assert_eq!(world.get(&mut report, 2), Some(102), "tracked then");
    assert_eq!((end(report), end(writer)), (Ok(()), Ok(())));
    let mut other = worker.begin(Isolation::ReadCommitted);
    assert!(poll(pin!(other.safe_snapshot()), &bell).is_ready());
}

/// Newest versions seen beside the snapshot put the transaction after their writers.
#[test]
fn a_later_view_counts_as_read() {
    for look in [false, true] {
        let (world, worker) = World::with_accounts(1, 3);
        let mut a = begin(&worker);
        assert_eq!(world.get(&mut a, 1), Some(100));
        let mut b = begin(&worker);
        world.update(&mut b, 1, |n| n + 1).expect("b");
        world.update(&mut b, 2, |n| n + 1).expect("b");
        assert_eq!(end(b), Ok(()));
        if look {
            let mut view = a.latest_view();
            a.swap_view(&mut view);
            assert_eq!(world.get(&mut a, 2), Some(101));
            a.swap_view(&mut view);
        }
        assert_eq!(world.get(&mut a, 3), Some(100));
        world.update(&mut a, 3, |n| n + 1).expect("a");
        assert_eq!(end(a), if look { Err(()) } else { Ok(()) });
    }
    // And what it sees there is overwritten only by later ones.
    let (world, worker) = World::with_accounts(1, 3);
    for overwritten in [false, true] {
        let mut a = begin(&worker);
        a.snapshot();
        let mut b = begin(&worker);
        world.update(&mut b, 2, |n| n + 1).expect("b");
        assert_eq!(end(b), Ok(()));
        let mut view = a.latest_view();
        a.swap_view(&mut view);
        assert!(world.get(&mut a, 2).is_some());
        a.swap_view(&mut view);
        if overwritten {
            let mut c = begin(&worker);
            assert!(world.get(&mut c, 3).is_some());
            world.update(&mut c, 2, |n| n + 1).expect("c");
            assert_eq!(end(c), Ok(()));
        }
        world.update(&mut a, 3, |n| n + 1).expect("a");
        assert_eq!(end(a), if overwritten { Err(()) } else { Ok(()) });
    }
}

/// A transaction that began before an index was attached, or that many rows were read or written by, falls back on
/// tables; that only adds conflicts.
#[test]
fn an_index_attached_meanwhile() {
    use logstead_types::IndexId;
    let (world, worker) = World::with_accounts(1, 2);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    assert_eq!(world.get(&mut b, 1), Some(100));
    insert(&world, &mut b, 10, 500);
    a.snapshot();
    assert_eq!(end(b), Ok(()), "its keys were made without the index");
    let index =
        world
            .engine
            .create_index(&world.table, IndexId(20_009), false, Arc::new(Column(1)));
    let mut build = worker.begin(Isolation::ReadCommitted);
    build.build_index(&world.table, &index).expect("built");
    drop(build);
    assert!(
        a.get(&index, &key(500), &Guard::pin())
            .expect_present()
            .is_none()
    );
    world.update(&mut a, 1, |n| n + 1).expect("a");
    assert_eq!(end(a), Err(()));
}

/// A whole table read in rid order, stopped in between, counts as a whole.
#[test]
fn a_scan_that_stops_reads_the_table() {
    let (world, worker) = World::with_accounts(1, 4);
    let (mut a, mut b) = (begin(&worker), begin(&worker));
    let mut cursor = ScanCursor::new(&world.table);
    assert!(
        a.scan_next(&mut cursor, &Guard::pin())
            .expect_present()
            .is_some()
    );
    world.update(&mut a, 1, |n| n + 1).expect("a");
    assert!(world.get(&mut b, 1).is_some());
    insert(&world, &mut b, 10, 0);
    assert_eq!(end(b), Ok(()));
    assert_eq!(end(a), Err(()));
}

/// A walk stopped by a limit has read the gaps between what it walked, and nothing beyond.
#[test]
fn phantoms_within_and_beyond_a_limited_walk() {
    for reverse in [false, true] {
        for (inserted, conflict) in [(25, true), (55, false)] {
            let inserted = if reverse { 80 - inserted } else { inserted };
            let (world, worker) = World::with_accounts(1, 1);
            let mut setup = begin(&worker);
            for k in [10, 20, 30, 40, 50, 60, 70] {
                insert(&world, &mut setup, k, 0);
            }
            assert_eq!(end(setup), Ok(()));
            let mut walker = begin(&worker);
            let (from, to) = (Bound::Included(key(10)), Bound::Included(key(70)));
            let mut cursor = IndexCursor::new(&world.by_key, from, to, reverse);
            for _ in 0..3 {
                assert!(
                    walker
                        .index_next(&mut cursor, &Guard::pin())
                        .expect_present()
                        .is_some()
                );
            }
            let mut writer = begin(&worker);
            assert_eq!(world.get(&mut writer, 1), Some(100));
            insert(&world, &mut writer, inserted, 0);
            world.update(&mut walker, 1, |n| n + 1).expect("walker");
            let expected = if conflict { Err(()) } else { Ok(()) };
            assert_eq!((end(writer), end(walker)), (Ok(()), expected));
        }
    }
}

/// A row lock is no write: who reads a row that others only lock does not conflict with them.
#[test]
fn row_locks_are_no_writes() {
    for lock in [
        RowLock::KeyShare,
        RowLock::Share,
        RowLock::NoKeyUpdate,
        RowLock::Update,
    ] {
        let (world, worker) = World::with_accounts(1, 3);
        let (mut a, mut b) = (begin(&worker), begin(&worker));
        assert_eq!(world.get(&mut a, 1), Some(100));
        assert_eq!(world.get(&mut b, 2), Some(100));
        let guard = Guard::pin();
        let found = b
            .get(&world.by_key, &key(1), &guard)
            .expect_present()
            .expect("there");
        let (rid, version) = (found.rid, found.version);
        b.lock_row(&world.table, rid, version, lock).expect("free");
        world.update(&mut b, 3, |n| n + 1).expect("b");
        world.update(&mut a, 2, |n| n + 1).expect("a");
        assert_eq!((end(b), end(a)), (Ok(()), Ok(())), "{lock:?}");
    }
}

/// T1: that a key was free is known also after the insert that found it so was rolled back to a savepoint.
#[test]
fn t1_a_key_found_free_behind_a_savepoint() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut a = begin(&worker);
    let before = a.savepoint();
    insert(&world, &mut a, 7, 0);
    a.rollback_to(before);
    world.update(&mut a, 2, |n| n + 1).expect("a");
    let mut b = begin(&worker);
    assert_eq!(world.get(&mut b, 2), Some(100));
    insert(&world, &mut b, 7, 0);
    assert_eq!(end(b), Ok(()));
    assert_eq!(end(a), Err(()));
}
