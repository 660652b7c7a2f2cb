//! An index built while writers go on: nothing is missing, nothing is left over, no key is there twice.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};

use logstead_engine::{
    ExpectPresent, FlushMode, Guard, Index, Isolation, KeyExtractor, KeyKind, RowRef, Txn, Worker,
    WriteError,
};
use logstead_types::{IndexId, WorkerId};

use crate::world::*;

const LATE: IndexId = IndexId(77);

fn attach(world: &World, unique: bool) -> Arc<Index> {
    world
        .engine
        .create_index(&world.table, LATE, unique, Arc::new(Column(1)))
}

/// Builds to the end, waiting for whoever is in the way.
fn build(world: &World, txn: &mut Txn, index: &Arc<Index>) -> Result<(), WriteError> {
    let mut next = 0;
    loop {
        match txn.build_index_step(&world.table, index, &mut next, 3) {
            Ok(true) => {}
            Ok(false) => return Ok(()),
            Err(WriteError::Blocked(blocker)) => {
                block_on(blocker.wait(txn)).map_err(|_| WriteError::Deadlock)?;
            }
            Err(error) => return Err(error),
        }
    }
}

fn collect_all(worker: &Worker) {
    worker.flush(FlushMode::Inline);
    while worker.collect_garbage(1000) {}
}

/// The index gives what a scan gives, in both directions.
fn assert_agrees(world: &World, txn: &mut Txn, index: &Arc<Index>) {
    let rows = world.scan(txn);
    for reverse in [false, true] {
        let mut walked = world.walk(txn, index, reverse);
        let sorted = walked.windows(2).all(|w| {
            if reverse {
                w[0].1 >= w[1].1
            } else {
                w[0].1 <= w[1].1
            }
        });
        assert!(sorted, "in the order of the index");
        walked.sort_unstable();
        assert_eq!(walked, rows, "reverse: {reverse}");
    }
}

fn update_in(world: &World, worker: &Worker, k: i64, to: i64) -> Txn {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    world.update(&mut txn, k, |_| to).expect("update");
    txn
}

#[test]
fn transactions_in_flight_at_the_attachment_are_found_whatever_becomes_of_them() {
    let (world, worker) = World::with_accounts(1, 4);
    let commits = update_in(&world, &worker, 1, 11);
    let aborts = update_in(&world, &worker, 2, 12);
    let mut inserts = worker.begin(Isolation::ReadCommitted);
    inserts.insert(&world.table, &row(5, 15)).expect("insert");
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut old, 1), Some(100));

    let late = attach(&world, false);
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    build(&world, &mut ddl, &late).expect("nobody waits");
    commit(ddl);
    commit(commits);
    commit(inserts);
    aborts.abort();
    assert_agrees(&world, &mut old, &late);
    drop(old);
    let mut new = worker.begin(Isolation::ReadCommitted);
    assert_agrees(&world, &mut new, &late);
    drop(new);
    collect_all(&worker);
    assert_eq!(
        late.entry_count(),
        5,
        "the versions that went took theirs along"
    );
}

/// What was updated before the index came does not know that the index' key changed: its builder tells.
#[test]
fn entries_of_versions_from_before_the_index_are_collected() {
    let (world, worker) = World::with_accounts(1, 2);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut old, 1), Some(100));
    // No index there has another key for it.
    world.engine.drop_index(&world.table, BY_BALANCE);
    commit(update_in(&world, &worker, 1, 11));
    let late = attach(&world, false);
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    build(&world, &mut ddl, &late).expect("builds");
    drop(ddl);
    assert_eq!(late.entry_count(), 3);
    assert_agrees(&world, &mut old, &late);
    drop(old);
    collect_all(&worker);
    assert_eq!(late.entry_count(), 2);
}

/// An old snapshot keeps the oldest version; the one above it, which had changed the key, goes first.
#[test]
fn a_key_change_is_remembered_when_the_version_that_made_it_goes_first() {
    let (world, worker) = World::with_accounts(1, 1);
    let mut old = worker.begin(Isolation::RepeatableRead);
    assert_eq!(world.get(&mut old, 1), Some(100));
    commit(update_in(&world, &worker, 1, 11));
    // Same keys again, so this version itself changes none.
    commit(update_in(&world, &worker, 1, 11));
    collect_all(&worker);
    assert_eq!(world.by_balance.entry_count(), 2);
    drop(old);
    commit(update_in(&world, &worker, 1, 11));
    collect_all(&worker);
    assert_eq!(world.by_balance.entry_count(), 1);
}

#[test]
fn a_row_number_used_again_during_the_build_has_the_new_row_s_entry_only() {
    let (world, worker) = World::with_accounts(1, 4);
    let late = attach(&world, false);
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    let mut next = 0;
    assert!(
        ddl.build_index_step(&world.table, &late, &mut next, 2)
            .expect("two rows")
    );
    // One that the scan has passed, one that it has not.
    for k in [1, 4] {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        world.delete(&mut txn, k).expect("delete");
        commit(txn);
    }
    collect_all(&worker);
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for k in [11, 14] {
        let rid = txn.insert(&world.table, &row(k, k)).expect("insert");
        assert!(rid.0 < 4, "the number is used again");
    }
    commit(txn);
    while ddl
        .build_index_step(&world.table, &late, &mut next, 2)
        .expect("the rest")
    {}
    assert_agrees(&world, &mut ddl, &late);
    assert_eq!(late.entry_count(), 4);
}

#[test]
fn a_duplicate_in_flight_is_waited_for_from_either_side() {
    // The row that the scan meets first decides nothing: try both orders.
    for (first, second) in [(1, 2), (2, 1)] {
        for commits in [false, true] {
            let (world, worker) = World::with_accounts(1, 0);
            let mut txn = worker.begin(Isolation::ReadCommitted);
            for k in 1..=2 {
                txn.insert(&world.table, &row(k, k)).expect("insert");
            }
            commit(txn);
            // In flight: a key that the other row has.
            let writer = update_in(&world, &worker, first, second);
            let late = attach(&world, true);
            let mut ddl = worker.begin(Isolation::ReadCommitted);
            let (mut next, mut step) = (0, 0);
            let blocked = loop {
                step += 1;
                assert!(step < 10);
                match ddl.build_index_step(&world.table, &late, &mut next, 1) {
                    Ok(true) => {}
                    other => break other,
                }
            };
            assert!(
                matches!(blocked, Err(WriteError::Blocked(_))),
                "{first} is made {second}: {blocked:?}"
            );
            let stood_at = next;
            if commits {
                commit(writer);
                assert!(matches!(
                    build(&world, &mut ddl, &late),
                    Err(WriteError::Unique { .. })
                ));
            } else {
                writer.abort();
                assert!(
                    ddl.build_index_step(&world.table, &late, &mut next, 9)
                        .is_ok_and(|more| !more)
                );
                assert!(next > stood_at);
                assert_agrees(&world, &mut ddl, &late);
            }
        }
    }
}

/// The committed key is hidden under a version in flight that moves away from it, and comes back.
#[test]
fn a_key_under_a_version_in_flight_counts() {
    for first in [1, 2] {
        // Both rows have 100.
        let (world, worker) = World::with_accounts(1, 2);
        let writer = update_in(&world, &worker, first, 5);
        let late = attach(&world, true);
        let mut ddl = worker.begin(Isolation::ReadCommitted);
        let mut next = 0;
        assert!(matches!(
            ddl.build_index_step(&world.table, &late, &mut next, 9),
            Err(WriteError::Blocked(_))
        ));
        writer.abort();
        assert!(matches!(
            build(&world, &mut ddl, &late),
            Err(WriteError::Unique { .. })
        ));
    }
}

#[test]
fn writers_are_held_to_a_unique_index_that_is_being_built() {
    let (world, worker) = World::with_accounts(1, 1);
    let late = attach(&world, true);
    let mut ddl = worker.begin(Isolation::ReadCommitted);
    let mut next = 0;
    // Before the scan has come to the row that has the key: the scan finds the duplicate.
    let mut early = worker.begin(Isolation::ReadCommitted);
    early
        .insert(&world.table, &row(2, 100))
        .expect("not yet known");
    assert!(matches!(
        ddl.build_index_step(&world.table, &late, &mut next, 9),
        Err(WriteError::Blocked(_))
    ));
    early.abort();
    assert!(
        !ddl.build_index_step(&world.table, &late, &mut next, 9)
            .expect("one row")
    );
    let mut late_comer = worker.begin(Isolation::ReadCommitted);
    assert!(matches!(
        late_comer.insert(&world.table, &row(3, 100)),
        Err(WriteError::Unique { index: LATE, .. })
    ));
}

/// Balances as keys; the first time one is computed, somebody else gets the turn until he gives it back.
struct Interrupted {
    pending: AtomicBool,
    gate: Barrier,
}

impl KeyExtractor for Interrupted {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        if self.pending.swap(false, Ordering::SeqCst) {
            self.gate.wait();
            self.gate.wait();
        }
        Column(1).key(row, out)
    }

    fn keys(&self) -> u64 {
        1
    }
}

/// The version that the scan has found is undone, or collected, before its entry is in.
#[test]
fn a_version_unlinked_under_the_scan_leaves_no_entry() {
    for undone in [true, false] {
        let (world, worker) = World::with_accounts(2, i64::from(!undone));
        drop(worker);
        let interrupted = Arc::new(Interrupted {
            pending: AtomicBool::new(false),
            gate: Barrier::new(2),
        });
        let other = world.engine.worker(WorkerId(1));
        let mut txn = other.begin(Isolation::ReadCommitted);
        if undone {
            txn.insert(&world.table, &row(1, 1)).expect("insert");
        }
        struct Shared(Arc<Interrupted>);
        impl KeyExtractor for Shared {
            fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
                self.0.key(row, out)
            }

            fn keys(&self) -> u64 {
                1
            }
        }
        let late = world.engine.create_index(
            &world.table,
            LATE,
            false,
            Arc::new(Shared(interrupted.clone())),
        );
        interrupted.pending.store(true, Ordering::SeqCst);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let worker = world.engine.worker(WorkerId(0));
                let mut ddl = worker.begin(Isolation::ReadCommitted);
                build(&world, &mut ddl, &late).expect("builds");
            });
            interrupted.gate.wait();
            if undone {
                txn.abort();
            } else {
                world.delete(&mut txn, 1).expect("delete");
                commit(txn);
                collect_all(&other);
            }
            interrupted.gate.wait();
        });
        assert_eq!(late.entry_count(), 0, "undone: {undone}");
    }
}

/// Balances as keys, computed slowly enough that others come in between.
struct Slow;

impl KeyExtractor for Slow {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        std::thread::yield_now();
        Column(1).key(row, out)
    }

    fn keys(&self) -> u64 {
        1
    }
}

struct Dice(u64);
impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// One short transaction of random writes; every one of them may fail on what others do.
fn write(world: &World, worker: &Worker, dice: &mut Dice, unique_keys: &AtomicU64) {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    for _ in 0..=dice.roll(2) {
        txn.begin_statement();
        let k = dice.roll(40) as i64;
        // Mostly fresh keys, sometimes small ones that collide.
        let balance = match dice.roll(4) {
            0 => dice.roll(30) as i64,
            _ => 1000 + unique_keys.fetch_add(1, Ordering::Relaxed) as i64,
        };
        let guard = Guard::pin();
        let found = txn
            .get(&world.by_key, &key(k), &guard)
            .expect_present()
            .map(|row| (row.rid, row.version, self::balance(&row)));
        let result = match found {
            None => txn.insert(&world.table, &row(k, balance)).map(drop),
            Some((rid, version, _)) if dice.roll(3) == 0 => txn.delete(&world.table, rid, version),
            Some((rid, version, same)) if dice.roll(3) == 0 => {
                txn.update(&world.table, rid, version, &row(k, same))
            }
            Some((rid, version, _)) => txn.update(&world.table, rid, version, &row(k, balance)),
        };
        drop(guard);
        if result.is_err() {
            return txn.abort();
        }
    }
    if dice.roll(4) == 0 {
        txn.abort();
    } else {
        block_on(txn.precommit()).expect("room");
    }
}

fn concurrent(unique: bool) {
    let (world, worker) = World::with_accounts(4, 0);
    drop(worker);
    // No other index may make key changes known.
    world.engine.drop_index(&world.table, BY_BALANCE);
    // In the way of every write, between its steps.
    world
        .engine
        .create_index(&world.table, IndexId(78), false, Arc::new(Slow));
    let world = Arc::new(world);
    let stop = Arc::new(AtomicU64::new(0));
    let fresh = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (1..4u16)
        .map(|w| {
            let (world, stop, fresh) = (world.clone(), stop.clone(), fresh.clone());
            std::thread::spawn(move || {
                let worker = world.engine.worker(WorkerId(w));
                let mut dice = Dice(0x9e37_79b9_7f4a_7c15 + u64::from(w));
                while stop.load(Ordering::SeqCst) == 0 {
                    for _ in 0..8 {
                        write(&world, &worker, &mut dice, &fresh);
                    }
                    worker.flush(FlushMode::Inline);
                    worker.collect_garbage(20);
                }
                worker.flush(FlushMode::Inline);
            })
        })
        .collect();
    let worker = world.engine.worker(WorkerId(0));
    let rounds: u64 = std::env::var("LOGSTEAD_STRESS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(150);
    let mut complete = BTreeMap::new();
    let mut kept = Vec::new();
    for round in 0..rounds {
        // The last ones stay and are maintained to the end.
        let id = IndexId(100 + round as u32);
        let late = world
            .engine
            .create_index(&world.table, id, unique, Arc::new(Column(1)));
        let mut ddl = worker.begin(Isolation::ReadCommitted);
        let built = build(&world, &mut ddl, &late);
        match &built {
            Ok(()) => {
                let mut reader = worker.begin(Isolation::RepeatableRead);
                assert_agrees(&world, &mut reader, &late);
                let rows = world.walk(&mut reader, &late, false);
                let twice = rows.windows(2).find(|w| w[0].1 == w[1].1);
                assert!(!unique || twice.is_none(), "{twice:?}");
            }
            Err(WriteError::Unique { .. } | WriteError::Deadlock) if unique => {}
            Err(error) => panic!("{error}"),
        }
        *complete.entry(built.is_ok()).or_insert(0) += 1;
        if built.is_ok() && round + 3 >= rounds {
            kept.push(late);
        } else {
            world.engine.drop_index(&world.table, id);
        }
        drop(ddl);
        worker.flush(FlushMode::Inline);
    }
    stop.store(1, Ordering::SeqCst);
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    assert!(complete.contains_key(&true), "{complete:?}");
    block_on(world.engine.flush_all_and_wait()).expect("durable");
    while worker.collect_garbage(1000) {}
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let rows = world.scan(&mut txn);
    for late in kept {
        assert_agrees(&world, &mut txn, &late);
        let report = late.check().expect("in order");
        assert_eq!(report.entries, rows.len(), "no entry is left over");
    }
}

#[test]
fn an_index_built_among_writers_agrees_with_the_table() {
    concurrent(false);
}

#[test]
fn a_unique_index_built_among_writers_holds_every_key_once() {
    concurrent(true);
}
