//! Crash and reopen.

use logstead_home::SideSegments;
use std::task::{Context, Waker};

use logstead_engine::{
    CommitError, ExpectPresent, FlushMode, Guard, Isolation, RowBuilder, TryCommitError, Txn,
};
use logstead_types::{LaneId, WorkerId};

use crate::world::*;

#[test]
fn what_was_acknowledged_is_there_and_what_was_not_flushed_is_gone() {
    let (world, worker) = World::with_accounts(1, 4);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |n| n - 30).expect("update");
    world.delete(&mut txn, 2).expect("delete");
    txn.insert(&world.table, &row(5, 7)).expect("insert");
    let receipt = commit(txn);
    worker.flush(FlushMode::Inline);
    assert!(world.engine.is_committed(&receipt.waits_for));
    let mut lost = worker.begin(Isolation::ReadCommitted);
    world.update(&mut lost, 3, |_| 0).expect("update");
    let lost = commit(lost);
    assert!(!world.engine.is_committed(&lost.waits_for));
    let next = world.engine.next_csn();
    drop((worker, world.engine));
    world.home.crash();

    let world = World::open(world.home, 2);
    assert!(world.engine.next_csn() >= logstead_types::Csn(next.0 - 1));
    let worker = world.engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let expected = [(1, 70), (3, 100), (4, 100), (5, 7)];
    assert_eq!(world.scan(&mut txn), expected);
    assert_eq!(world.walk(&mut txn, &world.by_key, false), expected);
    // Free rids are used again, and the log goes on.
    let rid = txn.insert(&world.table, &row(6, 6)).expect("insert");
    assert_eq!(rid.0, 1, "the slot of the deleted row");
    commit(txn);
    block_on(world.engine.flush_all_and_wait()).expect("flushed");
    drop((worker, world.engine));
    world.home.crash();
    let world = World::open(world.home, 1);
    let mut txn = world
        .engine
        .worker(WorkerId(0))
        .begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut txn, 6), Some(6));
}

#[test]
fn a_large_transaction_goes_through_a_side_segment() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut builder = RowBuilder::new();
    let big = vec![7u8; 100_000];
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 100..110 {
        builder.start(1, 3);
        builder.push(Some(&number(k)));
        builder.push(Some(&number(1)));
        builder.push(Some(&big));
        txn.insert(&world.table, builder.finish()).expect("insert");
    }
    let txn = match txn.try_precommit() {
        Err(TryCommitError::Busy(txn)) => txn,
        other => panic!("too large to commit at once: {other:?}"),
    };
    commit(*txn);
    worker.flush(FlushMode::Inline);
    drop((worker, world.engine));
    world.home.crash();
    let world = World::open(world.home, 1);
    let mut txn = world
        .engine
        .worker(WorkerId(0))
        .begin(Isolation::ReadCommitted);
    assert_eq!(world.scan(&mut txn).len(), 11);
    let guard = Guard::pin();
    let found = txn
        .get(&world.by_key, &key(109), &guard)
        .expect_present()
        .expect("there");
    assert_eq!(found.bytes.column(2).map(<[u8]>::len), Some(100_000));
}

/// Inserts a row of 100,000 bytes under each of the keys.
fn insert_big(world: &World, txn: &mut Txn, keys: std::ops::Range<i64>) {
    let mut builder = RowBuilder::new();
    for k in keys {
        builder.start(1, 3);
        builder.push(Some(&number(k)));
        builder.push(Some(&number(k)));
        builder.push(Some(&[7u8; 100_000]));
        txn.insert(&world.table, builder.finish()).expect("insert");
    }
}

#[test]
fn records_spill_while_the_transaction_runs_and_savepoints_still_take_back() {
    let (world, worker) = World::with_accounts(1, 1);
    let sides = |world: &World| {
        world
            .home
            .list_side_segments(LaneId(0))
            .expect("lists")
            .len()
    };
    let before = world.engine.memory().used_bytes();
    let mut txn = worker.begin(Isolation::ReadCommitted);
    insert_big(&world, &mut txn, 100..160);
    let rows_and_records = world.engine.memory().used_bytes() - before;
    assert!(
        rows_and_records < 60 * 100_000 + (4 << 20),
        "the records are not in memory too: {rows_and_records}"
    );
    // Behind a savepoint nothing spills, however much it is.
    let savepoint = txn.savepoint();
    insert_big(&world, &mut txn, 200..230);
    assert!(txn.rollback_to(savepoint));
    insert_big(&world, &mut txn, 300..330);
    assert!(txn.rollback_to(savepoint) && txn.release(savepoint));
    insert_big(&world, &mut txn, 400..430);
    assert!(txn.has_writes());
    assert_eq!(sides(&world), 0, "not a segment before it is finished");
    commit(txn);
    worker.flush(FlushMode::Inline);
    assert_eq!(sides(&world), 1);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    insert_big(&world, &mut txn, 500..530);
    txn.abort();
    assert_eq!(sides(&world), 1, "an aborted transaction leaves none");
    drop((worker, world.engine));
    world.home.crash();
    let world = World::open(world.home, 1);
    let mut txn = world
        .engine
        .worker(WorkerId(0))
        .begin(Isolation::ReadCommitted);
    let found = world.scan(&mut txn).len();
    assert_eq!(found, 1 + 60 + 30);
    for (k, expected) in [
        (100, Some(100)),
        (159, Some(159)),
        (200, None),
        (300, None),
        (400, Some(400)),
        (429, Some(429)),
        (500, None),
    ] {
        assert_eq!(world.get(&mut txn, k), expected, "{k}");
    }
}

#[test]
fn a_full_disk_fails_writers_before_precommit_and_passes() {
    let (world, worker) = World::with_accounts(1, 2);
    world.home.set_disk_full(true);
    let mut failed = false;
    for i in 0..100_000 {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, 1, |_| i).expect("update");
        match block_on(txn.precommit()) {
            Ok(_) => {
                worker.flush(FlushMode::Inline);
            }
            Err(error) => {
                assert_eq!(error, CommitError::DiskFull);
                failed = true;
                break;
            }
        }
    }
    assert!(failed, "the segment's end must be reached");
    let mut reader = worker.begin(Isolation::ReadCommitted);
    let before = world.get(&mut reader, 1).expect("readers go on");
    world.home.set_disk_full(false);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world
        .update(&mut txn, 1, |n| n + 1)
        .expect("the failed one was rolled back");
    commit(txn);
    reader.begin_statement();
    assert_eq!(world.get(&mut reader, 1), Some(before + 1));
}

/// A checkpoint takes room and gives it back: who removes rows meanwhile is not refused before it has ended, and is
/// refused when it has brought nothing.
#[test]
fn who_removes_on_a_full_disk_waits_for_the_checkpoint_under_way() {
    let (world, worker) = World::with_accounts(1, 20);
    let mut next = 1;
    let mut removal = || {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.delete(&mut txn, next).expect("delete");
        next += 1;
        txn
    };
    for frees in [true, false] {
        world.home.set_disk_full(true);
        loop {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            world.update(&mut txn, 20, |n| n + 1).expect("update");
            if block_on(txn.precommit()).is_err() {
                break;
            }
            worker.flush(FlushMode::Inline);
        }
        // Nothing is under way that could help.
        let refused = block_on(removal().precommit());
        assert_eq!(refused, Err(CommitError::DiskFull));
        let held = world.home.hold_objects();
        let engine = world.engine.clone();
        let checkpoint = std::thread::spawn(move || engine.checkpoint());
        while world.home.objects_under_way() == 0 {
            std::thread::yield_now();
        }
        let mut waits = Box::pin(removal().precommit());
        let mut context = Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(&mut context).is_pending());
        world.home.set_disk_full(!frees);
        drop(held);
        let taken = checkpoint.join().expect("no panic");
        assert_eq!(taken.is_ok(), frees, "{taken:?}");
        let receipt = block_on(waits);
        assert_eq!(receipt.is_ok(), frees, "{receipt:?}");
        worker.flush(FlushMode::Inline);
    }
}

/// Many removals at once go aside at their commit, not before: until then they can wait for the checkpoint under way.
#[test]
fn many_removals_on_a_full_disk_wait_for_the_checkpoint_under_way() {
    const ROWS: i64 = 200_000;
    let (world, worker) = World::with_accounts(1, ROWS);
    let lane = LaneId(0);
    let sides_begun = world.home.sides_begun();
    world.home.set_short_of_space(true);
    let held = world.home.hold_objects();
    let engine = world.engine.clone();
    let checkpoint = std::thread::spawn(move || engine.checkpoint());
    while world.home.objects_under_way() == 0 {
        std::thread::yield_now();
    }
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in 1..=ROWS {
        world.delete(&mut txn, k).expect("delete");
    }
    let mut waits = Box::pin(txn.precommit());
    let mut context = Context::from_waker(Waker::noop());
    assert!(waits.as_mut().poll(&mut context).is_pending());
    assert_eq!(world.home.sides_begun(), sides_begun);
    drop(held);
    checkpoint.join().expect("no panic").expect("is taken");
    // What the checkpoint covers is gone.
    assert_eq!(
        world.home.list_side_segments(lane).expect("listed").len(),
        0
    );
    block_on(waits).expect("commits");
    worker.flush(FlushMode::Inline);
    assert_eq!(
        world.home.list_side_segments(lane).expect("listed").len(),
        1
    );
}

#[test]
fn a_failing_log_fails_waiters_and_tells_the_hook() {
    let (world, worker) = World::with_accounts(1, 1);
    let told = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let hook = told.clone();
    world.engine.set_failure_hook(Box::new(move |_| {
        hook.store(true, std::sync::atomic::Ordering::SeqCst)
    }));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| 0).expect("update");
    let receipt = commit(txn);
    let bell = std::sync::Arc::new(Bell::default());
    let mut wait = std::pin::pin!(world.engine.acknowledged(receipt.waits_for));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    world.home.set_failing(true);
    worker.flush(FlushMode::Inline);
    assert_eq!(bell.rings(), 1);
    assert!(matches!(
        poll(wait.as_mut(), &bell),
        std::task::Poll::Ready(Err(_))
    ));
    assert!(told.load(std::sync::atomic::Ordering::SeqCst));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, 1, |_| 0).expect("update");
    assert!(matches!(
        block_on(txn.precommit()),
        Err(CommitError::LogFailed(_))
    ));
}

/// T12: who finds the lane full waits before it draws, so the horizon goes on; cancelled, it is rolled back.
#[test]
fn t12_waiting_for_room_does_not_hold_the_horizon() {
    let (world, worker) = World::with_accounts(2, 2);
    let second = world.engine.worker(WorkerId(1));
    world.home.set_paused(true);
    let mut builder = RowBuilder::new();
    let big = vec![7u8; 200_000];
    let mut insert = |k: i64| {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        builder.start(1, 3);
        builder.push(Some(&number(k)));
        builder.push(Some(&number(1)));
        builder.push(Some(&big));
        txn.insert(&world.table, builder.finish()).expect("insert");
        txn
    };
    let bell = std::sync::Arc::new(Bell::default());
    let mut k = 100;
    let mut waiting = loop {
        let mut future = Box::pin(insert(k).precommit());
        k += 1;
        match poll(future.as_mut(), &bell) {
            std::task::Poll::Ready(receipt) => assert!(receipt.expect("room").csn.is_some()),
            std::task::Poll::Pending => break future,
        }
        assert!(k < 200, "the lane is full at some time");
    };
    let mut cancelled = Box::pin(insert(k).precommit());
    assert!(poll(cancelled.as_mut(), &bell).is_pending());
    let mut other = second.begin(Isolation::ReadCommitted);
    world.update(&mut other, 1, |n| n + 1).expect("update");
    let other = commit(other);
    drop(cancelled);
    world.home.set_paused(false);
    while world.home.complete() {}
    worker.flush(FlushMode::Inline);
    second.flush(FlushMode::Inline);
    assert!(
        world.engine.is_committed(&other.waits_for),
        "nobody waits for one that has not drawn"
    );
    assert!(bell.rings() > 0);
    assert!(matches!(
        poll(waiting.as_mut(), &bell),
        std::task::Poll::Ready(Ok(_))
    ));
    let mut check = second.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut check, k - 1), Some(1));
    assert_eq!(
        world.get(&mut check, k),
        None,
        "the cancelled one was rolled back"
    );
}

/// T8: a side segment is durable before the CSN is drawn; if the commit fails after that, it goes at once.
#[test]
fn t8_a_large_transaction_that_cannot_be_serialized_leaves_no_side_segment() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut large = worker.begin(Isolation::Serializable);
    large.snapshot();
    let seen = world.get(&mut large, 1);
    assert_eq!(seen, Some(100));
    world.update(&mut large, 2, |n| n - 1).expect("its own row");
    insert_big(&world, &mut large, 100..130);
    let mut other = worker.begin(Isolation::Serializable);
    other.snapshot();
    assert_eq!(world.get(&mut other, 2), Some(100));
    world.update(&mut other, 1, |n| n - 1).expect("its own row");
    block_on(other.precommit()).expect("first");
    let error = block_on(large.precommit()).expect_err("write skew");
    assert!(matches!(error, CommitError::Serialization), "{error}");
    let sides = world.home.list_side_segments(LaneId(0)).expect("lists");
    assert!(sides.is_empty(), "{sides:?}");
    let mut again = worker.begin(Isolation::Serializable);
    insert_big(&world, &mut again, 100..130);
    block_on(again.precommit()).expect("alone");
    let sides = world.home.list_side_segments(LaneId(0)).expect("lists");
    assert_eq!(sides.len(), 1, "one whose entry was pushed stays");
}
