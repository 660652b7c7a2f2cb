//! Waits park and wake, cycles have a victim, table locks do as their table says.

use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use logstead_engine::CommitWait;
use logstead_engine::{FlushMode, Isolation, LockConflict, TableLock, WaitError, WriteError};
use logstead_types::WorkerId;

use crate::world::*;

fn blocker(result: Result<(), WriteError>) -> LockConflict {
    match result {
        Err(WriteError::Blocked(blocker)) => blocker,
        other => panic!("expected a blocker, got {other:?}"),
    }
}

#[test]
fn a_row_lock_is_waited_for_and_readers_look_through_it() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut holder = worker.begin(Isolation::ReadCommitted);
    world.lock(&mut holder, 1).expect("lock");
    world.lock(&mut holder, 1).expect("twice");
    let mut other = worker.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut other, 1), Some(100));
    let blocked = blocker(world.update(&mut other, 1, |n| n + 1));
    assert_eq!(blocked.holder(), Some(holder.id()));
    let bell = Arc::new(Bell::default());
    let mut wait = Box::pin(blocked.wait(&mut other));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    assert_eq!(world.engine.stats().lock_waiters, 1);
    assert!(!holder.has_writes());
    assert_eq!(commit(holder).csn, None, "a row lock is not logged");
    assert_eq!(bell.rings(), 1);
    assert_eq!(poll(wait.as_mut(), &bell), Poll::Ready(Ok(())));
    drop(wait);
    world
        .update(&mut other, 1, |n| n + 1)
        .expect("free, and no newer version");
    // A lock below one's own version goes with it.
    let mut third = worker.begin(Isolation::ReadCommitted);
    let wait = Box::pin(blocker(world.lock(&mut third, 1)).wait(&mut third));
    drop(wait);
    assert_eq!(
        world.engine.stats().lock_waiters,
        0,
        "a cancelled wait leaves nothing"
    );
    commit(other);
    let mut fourth = worker.begin(Isolation::ReadCommitted);
    world.lock(&mut fourth, 1).expect("lock");
    world
        .update(&mut fourth, 1, |n| n + 1)
        .expect("update under one's lock");
    commit(fourth);
    third.begin_statement();
    assert_eq!(world.get(&mut third, 1), Some(102));
}

#[test]
fn the_one_who_closes_a_cycle_is_the_victim() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = worker.begin(Isolation::ReadCommitted);
    world.update(&mut a, 1, |n| n).expect("a has 1");
    world.update(&mut b, 2, |n| n).expect("b has 2");
    let bell = Arc::new(Bell::default());
    let a_blocked = blocker(world.update(&mut a, 2, |n| n));
    let mut a_waits = Box::pin(a_blocked.wait(&mut a));
    assert!(poll(a_waits.as_mut(), &bell).is_pending());
    let b_blocked = blocker(world.update(&mut b, 1, |n| n));
    assert_eq!(block_on(b_blocked.wait(&mut b)), Err(WaitError::Deadlock));
    b.abort();
    assert_eq!(bell.rings(), 1);
    assert!(poll(a_waits.as_mut(), &bell).is_ready());
    drop(a_waits);
    world.update(&mut a, 2, |n| n).expect("the other goes on");
    commit(a);
}

#[test]
fn upgrades_of_table_locks_deadlock_and_strong_locks_wait_for_weak_ones() {
    let (world, worker) = World::with_accounts(2, 1);
    let second = world.engine.worker(WorkerId(1));
    let mut a = worker.begin(Isolation::ReadCommitted);
    let mut b = second.begin(Isolation::ReadCommitted);
    a.lock_table(&world.table, TableLock::RowExclusive)
        .expect("a writes");
    b.lock_table(&world.table, TableLock::RowExclusive)
        .expect("b writes");
    let bell = Arc::new(Bell::default());
    let a_blocked = blocker(a.lock_table(&world.table, TableLock::AccessExclusive));
    assert!(a_blocked.is_table());
    let mut a_waits = Box::pin(a_blocked.wait(&mut a));
    assert!(poll(a_waits.as_mut(), &bell).is_pending());
    // A newcomer queues behind the intent; who holds a lock already does not.
    let mut c = worker.begin(Isolation::ReadCommitted);
    let c_blocked = blocker(c.lock_table(&world.table, TableLock::AccessShare));
    let c_bell = Arc::new(Bell::default());
    let mut c_waits = Box::pin(c_blocked.wait(&mut c));
    assert!(poll(c_waits.as_mut(), &c_bell).is_pending());
    b.lock_table(&world.table, TableLock::AccessShare)
        .expect("covered");
    let b_blocked = blocker(b.lock_table(&world.table, TableLock::Share));
    assert_eq!(block_on(b_blocked.wait(&mut b)), Err(WaitError::Deadlock));
    b.abort();
    assert!(bell.rings() >= 1);
    assert!(poll(a_waits.as_mut(), &bell).is_ready());
    drop(a_waits);
    a.lock_table(&world.table, TableLock::AccessExclusive)
        .expect("alone now");
    drop(c_waits);
    let mut c_waits =
        Box::pin(blocker(c.lock_table(&world.table, TableLock::AccessShare)).wait(&mut c));
    assert!(poll(c_waits.as_mut(), &c_bell).is_pending());
    a.abort();
    assert!(poll(c_waits.as_mut(), &c_bell).is_ready());
    drop(c_waits);
    c.lock_table(&world.table, TableLock::AccessShare)
        .expect("free");
}

/// A release wakes only those who want a strong lock; the one parked behind them still waits, and still closes circles.
#[test]
fn who_queues_behind_a_strong_lock_is_found_in_a_deadlock_after_a_release() {
    let (world, worker) = World::with_accounts(1, 1);
    let begin = || worker.begin(Isolation::ReadCommitted);
    let (mut reader, mut leaver, mut strong, mut queued) = (begin(), begin(), begin(), begin());
    for txn in [&mut reader, &mut leaver] {
        txn.lock_table(&world.table, TableLock::AccessShare)
            .expect("free");
    }
    world.update(&mut queued, 1, |n| n + 1).expect("its row");
    let bell = Arc::new(Bell::default());
    let wanted = blocker(strong.lock_table(&world.table, TableLock::AccessExclusive));
    let mut strong_waits = Box::pin(wanted.wait(&mut strong));
    assert!(poll(strong_waits.as_mut(), &bell).is_pending());
    let wanted = blocker(queued.lock_table(&world.table, TableLock::AccessShare));
    let mut queued_waits = Box::pin(wanted.wait(&mut queued));
    assert!(poll(queued_waits.as_mut(), &bell).is_pending());
    leaver.abort();
    // The strong one looks again, and waits on for the reader.
    assert!(poll(strong_waits.as_mut(), &bell).is_ready());
    drop(strong_waits);
    let wanted = blocker(strong.lock_table(&world.table, TableLock::AccessExclusive));
    let mut strong_waits = Box::pin(wanted.wait(&mut strong));
    assert!(poll(strong_waits.as_mut(), &bell).is_pending());

    let row = blocker(world.update(&mut reader, 1, |n| n + 2));
    assert_eq!(block_on(row.wait(&mut reader)), Err(WaitError::Deadlock));
}

#[test]
fn rolling_back_to_a_savepoint_gives_table_locks_back() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut a = worker.begin(Isolation::ReadCommitted);
    a.lock_table(&world.table, TableLock::RowExclusive)
        .expect("free");
    let savepoint = a.savepoint();
    a.lock_table(&world.table, TableLock::AccessExclusive)
        .expect("alone");
    let mut b = worker.begin(Isolation::ReadCommitted);
    let bell = Arc::new(Bell::default());
    let mut b_waits =
        Box::pin(blocker(b.lock_table(&world.table, TableLock::AccessShare)).wait(&mut b));
    assert!(poll(b_waits.as_mut(), &bell).is_pending());
    assert!(a.rollback_to(savepoint));
    assert!(bell.rings() > 0);
    assert!(poll(b_waits.as_mut(), &bell).is_ready());
    drop(b_waits);
    b.lock_table(&world.table, TableLock::AccessShare)
        .expect("free");
    let kept = b.lock_table(&world.table, TableLock::Share);
    assert!(
        kept.is_err(),
        "what was taken before the savepoint is still held"
    );
    b.begin_statement();
    // Taken again, and this time kept.
    a.lock_table(&world.table, TableLock::ShareUpdateExclusive)
        .expect("beside a reader");
    assert!(a.release(savepoint));
    assert!(
        b.lock_table(&world.table, TableLock::ShareUpdateExclusive)
            .is_err()
    );
    b.begin_statement();
    commit(a);
    b.lock_table(&world.table, TableLock::AccessExclusive)
        .expect("all given back");
}

/// T13: the one who waits is idle; whoever moves the horizon wakes it.
#[test]
fn t13_acknowledgment_comes_when_the_horizon_passes() {
    let (world, worker) = World::with_accounts(2, 2);
    let second = world.engine.worker(WorkerId(1));
    let mut a = worker.begin(Isolation::ReadCommitted);
    world.update(&mut a, 1, |n| n + 1).expect("a");
    let a = commit(a);
    let mut b = second.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut b, 1), Some(101), "precommitted is visible");
    world.update(&mut b, 2, |n| n + 1).expect("b");
    let b = commit(b);
    let mut reader = second.begin(Isolation::ReadCommitted);
    assert_eq!(world.get(&mut reader, 2), Some(101));
    let read = commit(reader);
    assert_eq!((read.csn, &read.waits_for), (None, &b.waits_for));
    second.flush(FlushMode::Inline);
    assert!(
        !world.engine.is_committed(&b.waits_for),
        "durable, but a lower CSN is not"
    );
    let bell = Arc::new(Bell::default());
    let mut wait = pin!(world.engine.acknowledged(b.waits_for.clone()));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    // The second worker is idle; the first one's flush wakes it.
    worker.flush(FlushMode::Inline);
    assert_eq!(bell.rings(), 1);
    assert_eq!(poll(wait.as_mut(), &bell), Poll::Ready(Ok(())));
    assert!(world.engine.is_committed(&a.waits_for) && world.engine.is_committed(&b.waits_for));
    assert!(world.engine.is_committed(&CommitWait::none()));
}

#[test]
fn a_dirty_lane_calls_the_hook_once() {
    let (world, worker) = World::with_accounts(1, 2);
    let calls = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = calls.clone();
    worker.set_dirty_hook(Box::new(move || count.set(count.get() + 1)));
    for k in [1, 2] {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.update(&mut txn, k, |n| n).expect("update");
        commit(txn);
    }
    assert_eq!(calls.get(), 1);
    worker.flush(FlushMode::Inline);
    assert!(!worker.lane_dirty());
}
