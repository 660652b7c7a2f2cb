//! Unique indexes judge the newest versions, committed or in flight.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use logstead_engine::{
    ExpectPresent, Guard, Isolation, KeyExtractor, KeyKind, RowRef, WaitError, WriteError,
};
use logstead_types::{IndexId, Rid};

use crate::world::*;

#[test]
fn a_committed_key_conflicts_and_leaves_nothing_behind() {
    let (world, worker) = World::with_accounts(1, 2);
    let entries = (world.by_key.entry_count(), world.by_balance.entry_count());
    let mut fresh = worker.begin(Isolation::ReadCommitted);
    world.update(&mut fresh, 1, |n| n).expect("updates");
    let fresh = commit(fresh);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let error = txn
        .insert(&world.table, &row(1, 5))
        .expect_err("a duplicate");
    assert!(matches!(error, WriteError::Unique { index: BY_KEY, .. }));
    assert_eq!(
        txn.commit_wait(),
        fresh.waits_for,
        "T15: the error tells of a row, so it depends on it"
    );
    let guard = Guard::pin();
    let found = txn
        .get(&world.by_key, &key(1), &guard)
        .expect_present()
        .expect("there");
    let error = txn
        .update(&world.table, found.rid, found.version, &row(2, 5))
        .expect_err("a duplicate");
    assert!(matches!(error, WriteError::Unique { .. }));
    assert!(!txn.has_writes());
    assert_eq!(
        (world.by_key.entry_count(), world.by_balance.entry_count()),
        entries
    );
    world
        .update(&mut txn, 1, |n| n + 1)
        .expect("the failed update left no version");
}

#[test]
fn a_key_in_flight_blocks_whatever_becomes_of_it() {
    let (world, worker) = World::with_accounts(1, 3);
    // Inserted in flight.
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    a.insert(&world.table, &row(7, 1)).expect("a");
    assert!(matches!(
        b.insert(&world.table, &row(7, 2)),
        Err(WriteError::Blocked(_))
    ));
    a.abort();
    b.insert(&world.table, &row(7, 2)).expect("a rolled back");
    // Deleted in flight.
    let mut c = worker.begin(Isolation::ReadCommitted);
    world.delete(&mut c, 1).expect("c");
    assert!(matches!(
        b.insert(&world.table, &row(1, 2)),
        Err(WriteError::Blocked(_))
    ));
    // Moved away in flight, and moved to in flight.
    let guard = Guard::pin();
    let found = c
        .get(&world.by_key, &key(2), &guard)
        .expect_present()
        .expect("there");
    c.update(&world.table, found.rid, found.version, &row(22, 0))
        .expect("c moves 2 to 22");
    assert!(matches!(
        b.insert(&world.table, &row(2, 2)),
        Err(WriteError::Blocked(_))
    ));
    assert!(matches!(
        b.insert(&world.table, &row(22, 2)),
        Err(WriteError::Blocked(_))
    ));
    commit(c);
    b.insert(&world.table, &row(1, 2)).expect("deleted");
    b.insert(&world.table, &row(2, 2)).expect("moved away");
    assert!(matches!(
        b.insert(&world.table, &row(22, 2)),
        Err(WriteError::Unique { .. })
    ));
    commit(b);
    let mut check = worker.begin(Isolation::ReadCommitted);
    let expected = [(1, 2), (2, 2), (3, 100), (7, 2), (22, 0)];
    assert_eq!(world.walk(&mut check, &world.by_key, false), expected);
}

#[test]
fn one_s_own_delete_makes_way_and_one_s_own_insert_does_not() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    world.delete(&mut txn, 1).expect("delete");
    txn.insert(&world.table, &row(1, 1)).expect("replaces");
    assert!(matches!(
        txn.insert(&world.table, &row(1, 2)),
        Err(WriteError::Unique { .. })
    ));
    commit(txn);
    let mut check = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.scan(&mut check), [(1, 1)]);
}

/// T11: k -> k2 -> k while the collector runs in between.
#[test]
fn t11_a_key_that_comes_back_keeps_its_entry() {
    let (world, worker) = World::with_accounts(1, 1);
    for round in 0..20 {
        for to in [500, 1] {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            let guard = Guard::pin();
            let from = if to == 1 { 500 } else { 1 };
            let found = txn
                .get(&world.by_key, &key(from), &guard)
                .expect_present()
                .expect("there");
            txn.update(&world.table, found.rid, found.version, &row(to, round))
                .expect("update");
            commit(txn);
            if round % 3 == 0 {
                worker.flush(logstead_engine::FlushMode::Inline);
                worker.collect_garbage(1);
            }
        }
        let mut check = worker.begin(Isolation::ReadCommitted);
        assert_eq!(world.get(&mut check, 1), Some(round));
        assert_eq!(world.get(&mut check, 500), None);
    }
    worker.flush(logstead_engine::FlushMode::Inline);
    while worker.collect_garbage(1000) {}
    assert_eq!(
        world.by_key.entry_count(),
        1,
        "no entry is left that no version needs"
    );
}

#[test]
fn an_index_built_later_checks_and_serves_old_snapshots() {
    let (world, worker) = World::with_accounts(1, 3);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut old, 1), Some(100));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| 1).expect("update");
    commit(txn);

    let mut ddl = worker.begin(Isolation::ReadCommitted);
    let unique = world.engine.create_index(
        &world.table,
        IndexId(30),
        true,
        std::sync::Arc::new(Column(1)),
    );
    assert!(
        matches!(
            ddl.build_index(&world.table, &unique),
            Err(WriteError::Unique { .. })
        ),
        "2 and 3 are equal"
    );
    world.engine.drop_index(&world.table, IndexId(30));
    assert!(world.table.index(IndexId(30)).is_none());

    struct Odd;
    impl KeyExtractor for Odd {
        fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
            match row.column(0) {
                Some(bytes) if bytes[7] % 2 == 1 => {
                    out.extend_from_slice(row.column(1).unwrap_or_default());
                    KeyKind::Unique
                }
                _ => KeyKind::Absent,
            }
        }

        fn keys(&self) -> u64 {
            1
        }
    }
    let partial =
        world
            .engine
            .create_index(&world.table, IndexId(31), true, std::sync::Arc::new(Odd));
    ddl.build_index(&world.table, &partial).expect("1 and 100");
    assert_eq!(world.walk(&mut ddl, &partial, false), [(1, 1), (3, 100)]);
    assert_eq!(world.walk(&mut old, &partial, true), [(3, 100), (1, 100)]);
}

#[test]
fn two_transactions_that_want_each_other_s_keys_are_a_deadlock() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    a.insert(&world.table, &row(7, 1)).expect("a");
    b.insert(&world.table, &row(8, 1)).expect("b");
    let bell = Arc::new(Bell::default());
    let Err(WriteError::Blocked(of_a)) = a.insert(&world.table, &row(8, 2)) else {
        panic!("a is not blocked")
    };
    let mut a_waits = pin!(of_a.wait(&mut a));
    assert!(poll(a_waits.as_mut(), &bell).is_pending());
    // The attempt of `b` leaves nothing behind and wakes nobody: `a` is still found waiting.
    let Err(WriteError::Blocked(of_b)) = b.insert(&world.table, &row(7, 2)) else {
        panic!("b is not blocked")
    };
    assert_eq!(bell.rings(), 0);
    let mut b_waits = pin!(of_b.wait(&mut b));
    let Poll::Ready(Err(WaitError::Deadlock)) = poll(b_waits.as_mut(), &bell) else {
        panic!("no deadlock found")
    };
}

/// A key that cannot be computed for negative balances.
struct RootOfBalance;

impl KeyExtractor for RootOfBalance {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        match row.column(1) {
            Some(bytes) if bytes[0] & 0x80 != 0 => {
                out.extend_from_slice(bytes);
                KeyKind::Unique
            }
            _ => {
                // Whatever is left behind here must not be taken for a key.
                out.push(7);
                KeyKind::Failed
            }
        }
    }

    fn keys(&self) -> u64 {
        1
    }
}

#[test]
fn a_row_without_a_key_is_refused_and_leaves_nothing_behind() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| -1).expect("no index yet");
    commit(txn);
    let roots =
        world
            .engine
            .create_index(&world.table, IndexId(32), false, Arc::new(RootOfBalance));
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    assert!(matches!(
        ddl.build_index(&world.table, &roots),
        Err(WriteError::NoKey { index: IndexId(32) })
    ));
    ddl.abort();

    // An older version without a key is nobody's business: it only has no entry.
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut old, 1), Some(-1));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| 5).expect("has a key again");
    commit(txn);
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    ddl.build_index(&world.table, &roots).expect("5 and 100");
    ddl.abort();
    let entries = (world.by_key.entry_count(), roots.entry_count());

    let mut txn = worker.begin(Isolation::ReadCommitted);
    assert!(matches!(
        txn.insert(&world.table, &row(3, -3)),
        Err(WriteError::NoKey { .. })
    ));
    assert!(matches!(
        world.update(&mut txn, 2, |_| -3),
        Err(WriteError::NoKey { .. })
    ));
    assert!(!txn.has_writes());
    assert_eq!(
        (world.by_key.entry_count(), roots.entry_count()),
        entries,
        "a refused write leaves no entry in any index"
    );
    assert_eq!(world.get(&mut old, 1), Some(-1));
    old.abort();
    let mut reader = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.walk(&mut reader, &roots, false), [(1, 5), (2, 100)]);
}

/// The balance index as a deferrable constraint: it holds keys, and judges when asked.
fn deferred(world: &World, txn: &mut logstead_engine::Txn, rid: Rid) -> Result<(), WriteError> {
    txn.check_unique(&world.table, &world.by_balance, rid)
}

#[test]
fn a_key_judged_later_may_be_taken_twice_in_between() {
    let (world, worker) = World::with_accounts(1, 0);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let one = txn.insert(&world.table, &row(1, 10)).expect("insert");
    let two = txn.insert(&world.table, &row(2, 10)).expect("not judged");
    assert!(matches!(
        deferred(&world, &mut txn, one),
        Err(WriteError::Unique { index: BY_BALANCE, rid }) if rid == two
    ));
    txn.begin_statement();
    world.update(&mut txn, 2, |_| 11).expect("update");
    deferred(&world, &mut txn, one).expect("alone again");
    deferred(&world, &mut txn, two).expect("alone again");
    txn.begin_statement();
    world.delete(&mut txn, 1).expect("delete");
    deferred(&world, &mut txn, one).expect("a deleted row has no key");
    commit(txn);

    // A committed row is in the way, and the answer depends on it (T15).
    let mut late = worker.begin(Isolation::RepeatableRead);
    let rid = late.insert(&world.table, &row(3, 11)).expect("not judged");
    assert!(matches!(
        deferred(&world, &mut late, rid),
        Err(WriteError::Unique { .. })
    ));
    assert!(!late.commit_wait().is_none());
}

/// T11 for a check that is not one step with the write, nor with the commit.
#[test]
fn two_who_took_a_key_that_is_judged_later_cannot_both_commit() {
    let (world, worker) = World::with_accounts(1, 1);
    // Both check while both are in flight: each waits for the other.
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    let of_a = a.insert(&world.table, &row(7, 70)).expect("a");
    let of_b = b.insert(&world.table, &row(8, 70)).expect("b");
    let Err(WriteError::Blocked(by_b)) = deferred(&world, &mut a, of_a) else {
        panic!("a must wait for b")
    };
    let Err(WriteError::Blocked(by_a)) = deferred(&world, &mut b, of_b) else {
        panic!("b must wait for a")
    };
    let bell = Arc::new(Bell::default());
    {
        let mut a_waits = pin!(by_b.wait(&mut a));
        assert!(poll(a_waits.as_mut(), &bell).is_pending());
        let mut b_waits = pin!(by_a.wait(&mut b));
        let Poll::Ready(Err(WaitError::Deadlock)) = poll(b_waits.as_mut(), &bell) else {
            panic!("no deadlock found")
        };
    }
    b.abort();
    deferred(&world, &mut a, of_a).expect("b rolled back");

    // a has checked and not committed; c comes after the check and meets a's row.
    let mut c = worker.begin(Isolation::ReadCommitted);
    let of_c = c.insert(&world.table, &row(9, 70)).expect("c");
    assert!(matches!(
        deferred(&world, &mut c, of_c),
        Err(WriteError::Blocked(_))
    ));
    commit(a);
    assert!(matches!(
        deferred(&world, &mut c, of_c),
        Err(WriteError::Unique { .. })
    ));
    c.abort();

    // A key given up in flight is nobody's yet: account 1 has 100 until the update commits.
    let mut gives_up = worker.begin(Isolation::ReadCommitted);
    world.update(&mut gives_up, 1, |_| 101).expect("update");
    let mut takes = worker.begin(Isolation::ReadCommitted);
    let rid = takes.insert(&world.table, &row(10, 100)).expect("takes");
    assert!(matches!(
        deferred(&world, &mut takes, rid),
        Err(WriteError::Blocked(_))
    ));
    commit(gives_up);
    deferred(&world, &mut takes, rid).expect("given up");
}

#[test]
fn the_latest_view_sees_what_the_snapshot_does_not() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut txn = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut txn, 1), Some(100));
    let mut other = worker.begin(Isolation::ReadCommitted);
    world.update(&mut other, 1, |n| n + 1).expect("update");
    commit(other);
    let mut view = txn.latest_view();
    txn.swap_view(&mut view);
    assert_eq!(world.get(&mut txn, 1), Some(101));
    txn.swap_view(&mut view);
    drop(view);
    assert_eq!(world.get(&mut txn, 1), Some(100));
}
