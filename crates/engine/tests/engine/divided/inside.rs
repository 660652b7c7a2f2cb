//! Transactions of benchmarks, each inside one of several instances: none touches what is another's.

use logstead_engine::{Guard, Isolation, RowLock, Txn, WriteError};

use super::{Place, key, patient};
use crate::world::commit;

impl Place {
    /// Finds a row and locks it.
    fn lock(
        &self,
        txn: &mut Txn,
        branch: u32,
        number: u32,
        lock: RowLock,
    ) -> Result<(), WriteError> {
        let (rid, version) = patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&self.by_key, &key(branch, number), &guard)?;
            let found = found.expect("it is there");
            Ok((found.rid, found.version))
        });
        txn.lock_row(&self.table, rid, version, lock)
    }
}

/// Transactions as TPC-C and YCSB make them, inside one of three instances whose workers take turns with others': what
/// they read, lock, change, insert and collect is theirs, with locks that stay between turns.
#[test]
fn benchmarks_transactions_inside_one_of_three_instances_touch_no_other() {
    const ROUNDS: u32 = 30;
    let place = Place::new(3);
    let branches = [0, 1, 2].map(|instance| place.branch_of(instance, 0));
    for (worker, branch) in place.workers.iter().zip(branches) {
        let mut txn = worker.begin(Isolation::ReadCommitted);
        (0..100).for_each(|number| {
            place.insert(&mut txn, branch, number, 0);
        });
        commit(txn);
    }
    for round in 0..ROUNDS {
        // As a new order: the warehouse is shared as by a foreign key, the district's counter drawn, stock changed,
        // lines inserted; every third is rolled back.
        let mut txns: Vec<Txn> = (place.workers.iter().zip(branches))
            .map(|(worker, branch)| {
                let mut txn = worker.begin(Isolation::RepeatableRead);
                place
                    .lock(&mut txn, branch, 0, RowLock::KeyShare)
                    .expect("is shared");
                place
                    .lock(&mut txn, branch, 1, RowLock::NoKeyUpdate)
                    .expect("is locked");
                place.update(&mut txn, (branch, 1), (branch, 1, u64::from(round)));
                for line in 0..10 {
                    let stock = 2 + (round * 7 + line * 3) % 98;
                    place.update(&mut txn, (branch, stock), (branch, stock, 1));
                    place.insert(&mut txn, branch, 1_000 + round * 10 + line, 1);
                }
                txn
            })
            .collect();
        for txn in &txns {
            let touched = txn.instances_touched();
            assert_eq!((touched.foreign, touched.foreign_most), (0, None));
            assert!(touched.local >= 50, "{touched:?}");
        }
        match round % 3 {
            2 => txns.into_iter().for_each(Txn::abort),
            _ => txns.drain(..).for_each(|txn| drop(commit(txn))),
        }
        // As an operation of YCSB: a row is read, or read and changed.
        for (worker, branch) in place.workers.iter().zip(branches) {
            let mut txn = worker.begin(Isolation::ReadCommitted);
            assert!(place.get(&mut txn, branch, round).is_some());
            if round % 2 == 0 {
                place.update(&mut txn, (branch, round), (branch, round, 9));
            }
            assert_eq!(txn.instances_touched().foreign, 0);
            commit(txn);
        }
        place.flush();
        for worker in &place.workers {
            while worker.collect_garbage(1_000) {}
        }
    }
    let stats = place.engine.stats();
    assert_eq!(stats.foreign_accesses, 0);
    let inside = u64::from(3 * (1 + 2 * ROUNDS));
    assert_eq!(
        (stats.transactions_inside, stats.transactions_across),
        (inside, 0)
    );
    // A lock alone, of another's row, is counted.
    let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
    let before = txn.instances_touched();
    let (rid, _) = place.get(&mut txn, branches[1], 0).expect("is there");
    let read = txn.instances_touched().foreign;
    assert!(read > before.foreign, "row {rid}");
    place
        .lock(&mut txn, branches[1], 0, RowLock::KeyShare)
        .expect("is shared");
    assert!(
        txn.instances_touched().foreign > 2 * read,
        "what it read again, and the lock"
    );
    commit(txn);
}
