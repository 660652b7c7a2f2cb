//! Four threads: transfers between accounts, readers that add up (T4: never half a transaction), key changes, inserts
//! and deletes, collection and flushes, all at once. Built for AddressSanitizer too.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_engine::{ExpectPresent, FlushMode, Guard, Isolation, Txn, Worker, WriteError};
use logstead_types::WorkerId;

use crate::world::*;

const ACCOUNTS: i64 = 20;

pub(crate) struct Dice(pub(crate) u64);
impl Dice {
    pub(crate) fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

/// UPDATE as READ COMMITTED does it: wait, look again, call again. False if the transaction must roll back.
fn add(world: &World, txn: &mut Txn, k: i64, amount: i64) -> bool {
    let mut result = world.update(txn, k, |n| n + amount);
    loop {
        result = match result {
            Ok(()) => return true,
            Err(WriteError::Blocked(blocker)) => {
                if block_on(blocker.wait(txn)).is_err() {
                    return false;
                }
                world.update_newest(txn, k, |n| n + amount)
            }
            Err(WriteError::Changed) => world.update_newest(txn, k, |n| n + amount),
            Err(WriteError::Serialization) => return false,
            Err(error) => panic!("{error}"),
        };
    }
}

fn transfer(world: &World, worker: &Worker, dice: &mut Dice) {
    let level = if dice.roll(3) == 0 {
        Isolation::RepeatableRead
    } else {
        Isolation::ReadCommitted
    };
    let mut txn = worker.begin(level);
    let (from, to) = (
        1 + dice.roll(ACCOUNTS as u64) as i64,
        1 + dice.roll(ACCOUNTS as u64) as i64,
    );
    for (k, amount) in [(from, -1), (to, 1)] {
        txn.begin_statement();
        if !add(world, &mut txn, k, amount) {
            return txn.abort();
        }
    }
    if dice.roll(10) == 0 {
        txn.abort()
    } else {
        block_on(txn.precommit()).expect("room");
    }
}

/// Inserts, moves and deletes a row of zero balance above the accounts: churn in the unique index and the rids.
fn churn(world: &World, worker: &Worker, dice: &mut Dice) {
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let k = 1000 + dice.roll(8) as i64;
    txn.begin_statement();
    let guard = Guard::pin();
    let found = txn
        .get(&world.by_key, &key(k), &guard)
        .expect_present()
        .map(|row| (row.rid, row.version));
    let result = match found {
        None => txn.insert(&world.table, &row(k, 0)).map(|_| ()),
        Some((rid, version)) if dice.roll(2) == 0 => txn.delete(&world.table, rid, version),
        Some((rid, version)) => txn.update(
            &world.table,
            rid,
            version,
            &row(1000 + dice.roll(8) as i64, 0),
        ),
    };
    drop(guard);
    match result {
        Ok(()) if dice.roll(4) > 0 => {
            block_on(txn.precommit()).expect("room");
        }
        Ok(())
        | Err(
            WriteError::Blocked(_)
            | WriteError::Unique { .. }
            | WriteError::Changed
            | WriteError::Gone,
        ) => {
            txn.abort();
        }
        Err(error) => panic!("{error}"),
    }
}

fn audit(world: &World, worker: &Worker, dice: &mut Dice) {
    let mut txn = worker.begin(Isolation::RepeatableRead);
    let rows = match dice.roll(3) {
        0 => world.scan(&mut txn),
        1 => world.walk(&mut txn, &world.by_key, dice.roll(2) == 0),
        _ => world.walk(&mut txn, &world.by_balance, dice.roll(2) == 0),
    };
    let total: i64 = rows.iter().map(|(_, b)| b).sum();
    assert_eq!(
        total,
        ACCOUNTS * 100,
        "a snapshot sees whole transactions: {rows:?}"
    );
    let accounts = rows.iter().filter(|(k, _)| *k <= ACCOUNTS).count();
    assert_eq!(accounts as i64, ACCOUNTS);
    block_on(txn.precommit()).expect("read only");
}

#[test]
fn t4_transfers_keep_the_sum_under_every_snapshot() {
    let (world, worker) = World::with_accounts(4, ACCOUNTS);
    drop(worker);
    let rounds: u64 = std::env::var("LOGSTEAD_STRESS_ROUNDS")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(3000);
    let world = Arc::new(world);
    let stop = Arc::new(AtomicBool::new(false));
    let finished = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..4u16)
        .map(|w| {
            let (world, stop, finished) = (world.clone(), stop.clone(), finished.clone());
            std::thread::spawn(move || {
                let worker = world.engine.worker(WorkerId(w));
                let mut dice = Dice(0x1234_5678_9abc_def1 + u64::from(w));
                for round in 0..rounds {
                    match dice.roll(10) {
                        0..5 => transfer(&world, &worker, &mut dice),
                        5..8 => churn(&world, &worker, &mut dice),
                        _ => audit(&world, &worker, &mut dice),
                    }
                    if round % 7 == 0 {
                        worker.flush(FlushMode::Inline);
                    }
                    if round % 5 == 0 {
                        worker.collect_garbage(50);
                    }
                }
                finished.fetch_add(1, Ordering::SeqCst);
                // Others may wait for room that only our flush gives.
                while !stop.load(Ordering::SeqCst) {
                    worker.flush(FlushMode::Inline);
                    std::thread::yield_now();
                    if finished.load(Ordering::SeqCst) == 4 {
                        stop.store(true, Ordering::SeqCst);
                    }
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().expect("no thread fails");
    }
    block_on(world.engine.flush_all_and_wait()).expect("durable");
    let worker = world.engine.worker(WorkerId(0));
    while worker.collect_garbage(1000) {}
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let before = world.scan(&mut txn);
    drop(txn);
    let stats = world.engine.stats();
    let live = stats.versions_installed - stats.versions_collected;
    assert!(stats.commits > rounds / 2);
    assert_eq!(live, before.len() as u64, "only visible versions are left");
    for index in [&world.by_key, &world.by_balance] {
        let report = index.check().expect("in order");
        assert_eq!(report.entries, before.len());
    }
    assert_eq!(world.by_key.entry_count(), before.len());
    assert_eq!(world.by_balance.entry_count(), before.len());
    crate::agreement::assert_index_matches_table(&worker, &world.table);
    drop(worker);
    let home = world.home.clone();
    drop(world);
    home.crash();
    let world = World::open(home, 1);
    let mut txn = world
        .engine
        .worker(WorkerId(0))
        .begin(Isolation::ReadCommitted);
    assert_eq!(
        world.scan(&mut txn),
        before,
        "recovery gives the same database"
    );
}
