//! Four threads lock, share, change, move and delete few rows, wait, raise their locks, roll back to savepoints: nobody
//! sees a row change that it has locked against that, nobody sleeps for ever, nothing is left behind.

use std::sync::atomic::{AtomicU64, Ordering};

use logstead_engine::RowLock::{self, KeyShare, NoKeyUpdate, Share, Update};
use logstead_engine::{
    ExpectPresent, FlushMode, Guard, Isolation, RowLockCounts, Txn, VersionId, WriteError,
};
use logstead_types::{Rid, WorkerId};

use crate::stress::Dice;
use crate::world::*;

const ROWS: i64 = 5;
const ROUNDS: u64 = 1500;
const LOCKS: [RowLock; 4] = [KeyShare, Share, NoKeyUpdate, Update];

/// The newest state of the row: its version, key and balance.
fn newest(world: &World, txn: &mut Txn, rid: Rid) -> Option<(VersionId, i64, i64)> {
    let guard = Guard::pin();
    let row = txn
        .read_newest(&world.table, rid, &guard)
        .expect_present()?;
    Some((row.version, column(&row, 0), balance(&row)))
}

/// Does `write` until it succeeds. `None`: there is no such row; `Some(false)`: a deadlock's victim.
fn until_done(
    world: &World,
    txn: &mut Txn,
    rid: Rid,
    mut write: impl FnMut(&mut Txn, VersionId, i64, i64) -> Result<(), WriteError>,
) -> Option<bool> {
    loop {
        txn.begin_statement();
        let (version, k, amount) = newest(world, txn, rid)?;
        match write(txn, version, k, amount) {
            Ok(()) => return Some(true),
            Err(WriteError::Blocked(blocker)) => {
                if block_on(blocker.wait(txn)).is_err() {
                    return Some(false);
                }
                // It tries again in the same statement.
                let (version, k, amount) = newest(world, txn, rid)?;
                match write(txn, version, k, amount) {
                    Ok(()) => return Some(true),
                    Err(WriteError::Blocked(_) | WriteError::Changed) => {}
                    Err(WriteError::Gone | WriteError::Unique { .. }) => return None,
                    Err(error) => panic!("{error}"),
                }
            }
            Err(WriteError::Changed) => {}
            Err(WriteError::Gone | WriteError::Unique { .. }) => return None,
            Err(error) => panic!("{error}"),
        }
    }
}

fn one(world: &World, txn: &mut Txn, dice: &mut Dice, locked: &AtomicU64) -> bool {
    let rid = Rid(dice.roll(ROWS as u64));
    match dice.roll(8) {
        0 => until_done(world, txn, rid, |t, v, k, n| {
            t.update(&world.table, rid, v, &row(k, n + 1))
        }),
        // To another key and, with its next move, back.
        1 => until_done(world, txn, rid, |t, v, k, n| {
            t.update(&world.table, rid, v, &row(k ^ 1024, n))
        }),
        2 => {
            let savepoint = txn.savepoint();
            let lock = LOCKS[dice.roll(4) as usize];
            let done = until_done(world, txn, rid, |t, v, _, _| {
                t.lock_row(&world.table, rid, v, lock)
            });
            assert!(txn.rollback_to(savepoint));
            done
        }
        _ => {
            let lock = LOCKS[dice.roll(4) as usize];
            let done = until_done(world, txn, rid, |t, v, _, _| {
                t.lock_row(&world.table, rid, v, lock)
            });
            if done == Some(true) {
                let before = newest(world, txn, rid);
                for _ in 0..dice.roll(4) {
                    std::thread::yield_now();
                }
                let after = newest(world, txn, rid);
                let key = |row: Option<(VersionId, i64, i64)>| row.map(|(_, k, _)| k);
                assert_eq!(key(before), key(after), "the keys stay under any lock");
                if lock > KeyShare {
                    assert_eq!(before, after, "the row stays under {lock:?}");
                }
                locked.fetch_add(1, Ordering::Relaxed);
            }
            done
        }
    }
    .unwrap_or(true)
}

#[test]
fn locks_hold_and_nobody_sleeps_for_ever() {
    const THREADS: u16 = 4;
    let (world, worker) = World::with_accounts(THREADS.into(), ROWS);
    drop(worker);
    let locked = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (world, locked) = (&world, &locked);
            scope.spawn(move || {
                let worker = world.engine.worker(WorkerId(thread));
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15 ^ (u64::from(thread) + 1));
                for round in 0..ROUNDS {
                    let mut txn = worker.begin(Isolation::ReadCommitted);
                    let steps = 1 + dice.roll(3);
                    let alive = (0..steps).all(|_| one(world, &mut txn, &mut dice, locked));
                    if alive && dice.roll(8) > 0 {
                        commit(txn);
                    } else {
                        txn.abort();
                    }
                    if round % 64 == 0 {
                        worker.flush(FlushMode::Inline);
                        worker.collect_garbage(64);
                    }
                }
                worker.flush(FlushMode::Inline);
            });
        }
    });
    assert!(locked.load(Ordering::Relaxed) > 0);
    assert_eq!(world.table.row_lock_counts(), RowLockCounts::default());
    assert_eq!(world.engine.stats().lock_waiters, 0);
}
