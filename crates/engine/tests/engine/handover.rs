//! What locks hand over: their next holder depends on what the former one did, wherever that was, and is not told
//! before that is durable. Nobody flushes here but the tests themselves.

use std::sync::Arc;

use logstead_engine::{CommitOptions, EngineOptions, MemoryHome};
use logstead_engine::{
    CommitWait, Csn, FlushMode, Isolation, RowLock, TableLock, Tracking, Txn, Worker, WriteError,
};
use logstead_types::{TableId, WorkerId};

use crate::world::*;

const ALL_ROW_LOCKS: [RowLock; 4] = [
    RowLock::KeyShare,
    RowLock::Share,
    RowLock::NoKeyUpdate,
    RowLock::Update,
];
const ALL_TABLE_LOCKS: [TableLock; 8] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

fn begin(worker: &Worker) -> Txn {
    worker.begin(Isolation::ReadCommitted)
}

/// Pre-commits what also changed account 2; it is in the lane only.
fn commit_a_change(world: &World, mut txn: Txn) -> Csn {
    world.update(&mut txn, 2, |n| n + 1).expect("free");
    commit(txn).csn.expect("it changed something")
}

/// It is told of `csn`, and depends on it.
#[track_caller]
fn is_told_of(txn: &mut Txn, csn: Csn) {
    let awaits = txn.commit_wait();
    assert!(awaits.newest() >= csn, "depends on {csn:?}: {awaits:?}");
    let told = txn.take_handed_over();
    assert_eq!(told.newest(), csn, "{told:?}");
    assert!(txn.take_handed_over().is_none(), "it was asked");
}

#[track_caller]
fn is_told_of_nobody(txn: &mut Txn) {
    assert_eq!(txn.take_handed_over(), CommitWait::none());
    assert_eq!(txn.commit_wait(), CommitWait::none());
}

#[test]
fn whoever_locks_a_row_depends_on_those_who_had_it_locked_in_a_way_that_conflicts() {
    for before in ALL_ROW_LOCKS {
        for after in ALL_ROW_LOCKS {
            let (world, worker) = World::with_accounts(1, 3);
            let mut former = begin(&worker);
            world.lock_as(&mut former, 1, before).expect("free");
            let csn = commit_a_change(&world, former);
            let mut next = begin(&worker);
            world.lock_as(&mut next, 1, after).expect("free");
            if before.conflicts(after) {
                is_told_of(&mut next, csn);
            } else {
                is_told_of_nobody(&mut next);
            }
            drop(next);
            // Another row of the same chunk.
            let mut other = begin(&worker);
            world.lock_as(&mut other, 3, after).expect("free");
            is_told_of_nobody(&mut other);
            drop(other);
            // What is durable is not mentioned.
            worker.flush(FlushMode::Inline);
            let mut late = begin(&worker);
            world.lock_as(&mut late, 1, after).expect("free");
            is_told_of_nobody(&mut late);
        }
    }
}

#[test]
fn writers_take_row_locks_over_too() {
    let (world, worker) = World::with_accounts(1, 4);
    let mut former = begin(&worker);
    world.lock(&mut former, 1).expect("free");
    world.lock_as(&mut former, 3, RowLock::Share).expect("free");
    world
        .lock_as(&mut former, 4, RowLock::KeyShare)
        .expect("free");
    let csn = commit_a_change(&world, former);
    let mut update = begin(&worker);
    world.update(&mut update, 1, |n| n + 1).expect("free");
    is_told_of(&mut update, csn);
    world.delete(&mut update, 3).expect("free");
    is_told_of(&mut update, csn);
    world
        .update(&mut update, 4, |n| n + 1)
        .expect("its keys stay");
    assert!(update.take_handed_over().is_none());
    update.begin_statement();
    world.delete(&mut update, 4).expect("free");
    is_told_of(&mut update, csn);
}

/// Transaction that only locked a row, or a table, and is then lost: it takes with it whoever had the lock after it.
#[test]
fn who_had_the_lock_next_does_not_survive_alone() {
    for of_a_row in [true, false] {
        let (world, worker) = World::with_accounts(2, 3);
        let second = world.engine.worker(WorkerId(1));
        let table = world.engine.create_table(TableId(30_000));
        let lock = |txn: &mut Txn| match of_a_row {
            true => world.lock(txn, 1).expect("free"),
            false => txn.lock_table(&table, TableLock::Share).expect("free"),
        };
        let mut former = begin(&worker);
        former
            .lock_table(&table, TableLock::RowExclusive)
            .expect("free");
        world.lock(&mut former, 1).expect("free");
        commit_a_change(&world, former);
        let mut next = begin(&second);
        lock(&mut next);
        world.update(&mut next, 3, |n| n + 1).expect("free");
        let receipt = commit(next);
        // Its lane is another one.
        second.flush(FlushMode::Inline);
        assert!(!world.engine.is_committed(&receipt.waits_for));

        drop((worker, second, table));
        let World { home, engine, .. } = world;
        drop(engine);
        home.crash();
        let world = World::open(home, 1);
        let worker = world.engine.worker(WorkerId(0));
        let rows = world.scan(&mut begin(&worker));
        assert_eq!(rows, [(1, 100), (2, 100), (3, 100)], "both are gone");
    }
}

/// The same without a crash.
#[test]
fn who_had_the_lock_next_is_acknowledged_with_the_former() {
    let (world, worker) = World::with_accounts(2, 3);
    let second = world.engine.worker(WorkerId(1));
    let mut former = begin(&worker);
    world.lock(&mut former, 1).expect("free");
    commit_a_change(&world, former);
    let mut next = begin(&second);
    world.lock(&mut next, 1).expect("free");
    world.update(&mut next, 3, |n| n + 1).expect("free");
    let receipt = commit(next);
    let bell = Arc::new(Bell::default());
    let mut told = Box::pin(world.engine.acknowledged(receipt.waits_for));
    second.flush(FlushMode::Inline);
    assert!(poll(told.as_mut(), &bell).is_pending());
    worker.flush(FlushMode::Inline);
    second.idle(true, None);
    assert!(poll(told.as_mut(), &bell).is_ready());
}

#[test]
fn a_wait_for_a_row_ends_with_a_hand_over() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut former = begin(&worker);
    world.lock(&mut former, 1).expect("free");
    let mut next = begin(&worker);
    let Err(WriteError::Blocked(blocker)) = world.lock(&mut next, 1) else {
        panic!("it is locked");
    };
    let bell = Arc::new(Bell::default());
    let mut wait = Box::pin(blocker.wait(&mut next));
    assert!(poll(wait.as_mut(), &bell).is_pending());
    let csn = commit_a_change(&world, former);
    assert_eq!(block_on(wait), Ok(()));
    world.lock(&mut next, 1).expect("its turn");
    is_told_of(&mut next, csn);
}

#[test]
fn whoever_rolls_back_or_changes_nothing_hands_over_what_it_took_over() {
    let (world, worker) = World::with_accounts(1, 3);
    let mut first = begin(&worker);
    world.lock(&mut first, 1).expect("free");
    let csn = commit_a_change(&world, first);
    for commits in [false, true] {
        let mut between = begin(&worker);
        world.lock(&mut between, 1).expect("free");
        if commits {
            assert_eq!(commit(between).csn, None);
        } else {
            between.abort();
        }
        let mut next = begin(&worker);
        world.lock(&mut next, 1).expect("free");
        is_told_of(&mut next, csn);
    }
    // Back to a savepoint before the lock: its own change is not handed over with it.
    let mut part = begin(&worker);
    let savepoint = part.savepoint();
    world.lock_as(&mut part, 3, RowLock::Share).expect("free");
    world.lock(&mut part, 3).expect("free");
    assert!(part.rollback_to(savepoint));
    commit_a_change(&world, part);
    let mut next = begin(&worker);
    world.lock(&mut next, 3).expect("free");
    assert!(next.take_handed_over().is_none());
}

#[test]
fn whoever_locks_a_table_depends_on_those_who_had_it_locked_in_a_way_that_conflicts() {
    for before in ALL_TABLE_LOCKS {
        for after in ALL_TABLE_LOCKS {
            let (world, worker) = World::with_accounts(2, 2);
            let second = world.engine.worker(WorkerId(1));
            let table = world.engine.create_table(TableId(30_000));
            let mut former = begin(&worker);
            former.lock_table(&table, before).expect("free");
            let mut next = begin(&second);
            let conflicts = next.lock_table(&table, after).is_err();
            drop(next);
            let csn = commit_a_change(&world, former);
            let mut next = begin(&second);
            next.lock_table(&table, after).expect("free");
            if conflicts {
                is_told_of(&mut next, csn);
                next.lock_table(&table, after).expect("held");
                assert!(next.take_handed_over().is_none(), "{before:?} {after:?}");
            } else {
                is_told_of_nobody(&mut next);
            }
            drop(next);
            worker.flush(FlushMode::Inline);
            let mut late = begin(&second);
            late.lock_table(&table, after).expect("free");
            is_told_of_nobody(&mut late);
        }
    }
}

#[test]
fn a_table_lock_that_a_savepoint_gives_back_hands_nothing_over() {
    let (world, worker) = World::with_accounts(1, 2);
    let table = world.engine.create_table(TableId(30_000));
    let mut part = begin(&worker);
    let savepoint = part.savepoint();
    part.lock_table(&table, TableLock::AccessExclusive)
        .expect("free");
    assert!(part.rollback_to(savepoint));
    commit_a_change(&world, part);
    let mut next = begin(&worker);
    next.lock_table(&table, TableLock::AccessExclusive)
        .expect("free");
    is_told_of_nobody(&mut next);
}

#[test]
fn every_way_to_track_dependencies_knows_of_locks() {
    for tracking in Tracking::ALL {
        let options = EngineOptions {
            workers: 2,
            commit: CommitOptions {
                tracking,
                ..CommitOptions::default()
            },
            ..EngineOptions::default()
        };
        let world = World::open_as(MemoryHome::new(4 << 20), options).expect("opens");
        // Chunks of their own, so that pages do not meet.
        let (world, worker) = world.fill(2000);
        let second = world.engine.worker(WorkerId(1));
        let table = world.engine.create_table(TableId(30_000));
        let mut former = begin(&worker);
        world.lock(&mut former, 1).expect("free");
        former
            .lock_table(&table, TableLock::AccessExclusive)
            .expect("free");
        world.update(&mut former, 1000, |n| n + 1).expect("free");
        commit(former);
        for of_a_row in [true, false] {
            let mut next = begin(&second);
            if of_a_row {
                world.lock(&mut next, 1).expect("free");
            } else {
                next.lock_table(&table, TableLock::AccessShare)
                    .expect("free");
            }
            assert!(!world.engine.is_committed(&next.take_handed_over()));
            assert!(!world.engine.is_committed(&next.commit_wait()));
            world.update(&mut next, 1900, |n| n + 1).expect("free");
            let receipt = commit(next);
            second.flush(FlushMode::Inline);
            let waits_for = &receipt.waits_for;
            assert!(!world.engine.is_committed(waits_for), "{tracking:?}");
        }
    }
}
