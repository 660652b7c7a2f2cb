//! Two transactions interleaved by hand, named by anomaly.

use logstead_engine::{ExpectPresent, FlushMode, Guard, Isolation, WriteError};

use crate::world::*;

#[test]
fn nothing_uncommitted_is_read() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut writer = worker.begin(Isolation::ReadCommitted);
    world.update(&mut writer, 1, |_| 5).expect("update");
    let mut reader = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut reader, 1), Some(100));
    writer.abort();
    reader.begin_statement();
    assert_eq!(world.get(&mut reader, 1), Some(100));
}

#[test]
fn lost_update_is_prevented_at_both_levels() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    let mut c = worker.begin(Isolation::RepeatableRead);
    b.begin_statement();
    assert_eq!(world.get(&mut b, 1), Some(100));
    assert_eq!(world.get(&mut c, 1), Some(100));
    world.update(&mut a, 1, |n| n + 10).expect("first writer");
    assert!(matches!(
        world.update(&mut b, 1, |n| n + 1),
        Err(WriteError::Blocked(_))
    ));
    commit(a);
    // READ COMMITTED looks again and adds to the newest; REPEATABLE READ fails with 40001.
    assert!(matches!(
        world.update(&mut b, 1, |n| n + 1),
        Err(WriteError::Changed)
    ));
    world
        .update_newest(&mut b, 1, |n| n + 1)
        .expect("on the newest");
    commit(b);
    assert!(matches!(
        world.update(&mut c, 1, |n| n + 1),
        Err(WriteError::Serialization)
    ));
    assert!(matches!(
        world.lock(&mut c, 1),
        Err(WriteError::Serialization)
    ));
    c.abort();
    let mut check = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut check, 1), Some(111));
}

#[test]
fn read_skew_only_in_read_committed() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut repeatable = worker.begin(Isolation::RepeatableRead);
    let mut committed = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut repeatable, 1), Some(100));
    assert_eq!(world.get(&mut committed, 1), Some(100));
    let mut writer = worker.begin(Isolation::ReadCommitted);
    world.update(&mut writer, 1, |n| n - 50).expect("update");
    world.update(&mut writer, 2, |n| n + 50).expect("update");
    commit(writer);
    repeatable.begin_statement();
    committed.begin_statement();
    assert_eq!(world.get(&mut repeatable, 2), Some(100));
    assert_eq!(world.get(&mut committed, 2), Some(150));
}

#[test]
fn write_skew_is_allowed() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut a = worker.begin(Isolation::RepeatableRead);
    let mut b = worker.begin(Isolation::RepeatableRead);
    assert_eq!(
        (world.get(&mut a, 2), world.get(&mut b, 1)),
        (Some(100), Some(100))
    );
    world.update(&mut a, 1, |_| 0).expect("a");
    world.update(&mut b, 2, |_| 0).expect("b");
    commit(a);
    commit(b);
    let mut check = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.scan(&mut check), [(1, 0), (2, 0)]);
}

#[test]
fn phantoms_do_not_enter_a_snapshot_and_a_statement_does_not_see_itself() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut reader = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.scan(&mut reader).len(), 2);
    let mut writer = worker.begin(Isolation::ReadCommitted);
    writer.begin_statement();
    writer.insert(&world.table, &row(3, 7)).expect("insert");
    world.update(&mut writer, 1, |n| n + 1).expect("update");
    assert_eq!(
        world.scan(&mut writer),
        [(1, 100), (2, 100)],
        "the same statement"
    );
    assert!(matches!(
        world.update(&mut writer, 1, |n| n + 1),
        Err(WriteError::SelfModified)
    ));
    writer.begin_statement();
    assert_eq!(
        world.scan(&mut writer),
        [(1, 101), (2, 100), (3, 7)],
        "the next one"
    );
    world.update(&mut writer, 1, |n| n + 1).expect("again");
    world.delete(&mut writer, 3).expect("own insert");
    writer.begin_statement();
    assert_eq!(
        world.walk(&mut writer, &world.by_key, true),
        [(2, 100), (1, 102)]
    );
    commit(writer);
    assert_eq!(world.scan(&mut reader), [(1, 100), (2, 100)]);
    assert_eq!(
        world.walk(&mut reader, &world.by_balance, false),
        [(1, 100), (2, 100)]
    );
}

#[test]
fn a_deleted_row_is_gone_after_the_wait() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    b.snapshot();
    world.delete(&mut a, 1).expect("delete");
    assert!(matches!(
        world.update(&mut b, 1, |n| n),
        Err(WriteError::Blocked(_))
    ));
    commit(a);
    assert!(matches!(
        world.update(&mut b, 1, |n| n),
        Err(WriteError::Gone)
    ));
    let rid = world.rid(&mut b, 1);
    assert!(
        b.read_newest(&world.table, rid, &Guard::pin())
            .expect_present()
            .is_none()
    );
}

#[test]
fn savepoints_undo_versions_entries_locks_and_hooks() {
    let (world, worker) = World::with_accounts(1, 3);
    let undone = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    txn.begin_statement();
    world.update(&mut txn, 1, |_| 1).expect("before");
    let first = txn.savepoint();
    txn.begin_statement();
    world.update(&mut txn, 1, |_| 2).expect("after");
    txn.insert(&world.table, &row(9, 9)).expect("insert");
    world.delete(&mut txn, 2).expect("delete");
    world.lock(&mut txn, 3).expect("lock");
    let count = undone.clone();
    txn.on_end(Box::new(move |outcome| {
        assert_eq!(outcome, logstead_engine::Outcome::Aborted);
        count.set(count.get() + 1);
    }));
    let inner = txn.savepoint();
    let mut other = worker.begin(Isolation::ReadCommitted);
    let blocked = world.lock(&mut other, 3).expect_err("locked");
    let WriteError::Blocked(blocker) = blocked else {
        panic!("{blocked}")
    };
    let bell = std::sync::Arc::new(Bell::default());
    let mut wait = std::pin::pin!(blocker.wait(&mut other));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    assert!(txn.rollback_to(first));
    assert_eq!(bell.rings(), 1, "the row lock is free, the waiter woken");
    assert!(poll(wait.as_mut(), &bell).is_ready());
    assert!(!txn.rollback_to(inner), "later savepoints are gone");
    assert_eq!(undone.get(), 1);
    txn.begin_statement();
    assert_eq!(world.scan(&mut txn), [(1, 1), (2, 100), (3, 100)]);
    assert_eq!(world.get(&mut txn, 9), None);
    assert!(txn.release(first) && !txn.release(first));
    commit(txn);
    worker.flush(FlushMode::Inline);
    // The log says the same.
    drop((worker, world.engine));
    world.home.crash();
    let world = World::open(world.home, 1);
    let mut txn = world
        .engine
        .worker(logstead_types::WorkerId(0))
        .begin(Isolation::ReadCommitted);
    assert_eq!(world.scan(&mut txn), [(1, 1), (2, 100), (3, 100)]);
}

#[test]
fn a_view_outlives_its_statement() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut reader = worker.begin(Isolation::ReadCommitted);
    let mut view = reader.view();
    for _ in 0..3 {
        let mut writer = worker.begin(Isolation::ReadCommitted);
        world.update(&mut writer, 1, |n| n + 1).expect("update");
        commit(writer);
        worker.flush(FlushMode::Inline);
        worker.collect_garbage(100);
    }
    reader.begin_statement();
    assert_eq!(world.get(&mut reader, 1), Some(103));
    reader.swap_view(&mut view);
    assert_eq!(world.get(&mut reader, 1), Some(100));
    reader.swap_view(&mut view);
    assert_eq!(world.get(&mut reader, 1), Some(103));
}

#[test]
fn a_key_that_was_absent_stays_absent_in_repeatable_read() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut reader = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut reader, 2), None);
    let mut writer = worker.begin(Isolation::ReadCommitted);
    writer.insert(&world.table, &row(2, 100)).expect("insert");
    commit(writer);
    reader.begin_statement();
    assert_eq!(
        world.get(&mut reader, 2),
        None,
        "the snapshot was taken by the first look"
    );
}
