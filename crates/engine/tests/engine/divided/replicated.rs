//! Replicated tables: whoever reads one touches no other instance's, and who writes one touches its owner's.

use logstead_engine::{
    Guard, IndexCursor, IndexId, InstanceId, Isolation, RowLock, ScanCursor, TableId, Txn,
};

use super::{ALL, Keys, Place, patient, row, values, write};
use crate::world::commit;
use std::sync::Arc;

const TABLE: TableId = TableId(20_300);
const BY_VALUE: IndexId = IndexId(20_301);
const ROWS: u64 = 200;

#[test]
fn reads_of_a_replicated_table_are_nobodys() {
    let place = Place::new(3);
    let table = place.engine.create_table(TABLE);
    table.replicate();
    let keys = Arc::new(Keys { by_value: true });
    let index = place.engine.create_index(&table, BY_VALUE, true, keys);
    let mut txn = place.workers[0].begin(Isolation::ReadCommitted);
    for value in 0..ROWS {
        patient(&mut txn, |txn| write(txn.insert(&table, &row(1, 1, value))));
    }
    // The number of the table modulo 64 is its partition, which is the first instance's.
    assert!(txn.instances_touched().local >= 2 * ROWS as u32);
    commit(txn);
    place.flush();
    let owner = InstanceId(0);
    let lookup = |txn: &mut Txn, value: u64| {
        patient(txn, |txn| {
            let guard = Guard::pin();
            let found = txn.get(&index, &value.to_be_bytes(), &guard)?;
            Ok(found.map(|row| (row.rid, row.version)))
        })
    };
    for (number, worker) in (0..).zip(&place.workers) {
        let before = place.engine.stats().foreign_accesses;
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let (rid, version) = lookup(&mut txn, 7).expect("it is there");
        assert_eq!(lookup(&mut txn, ROWS), None);
        let mut scan = ScanCursor::new(&table);
        let mut rows = 0;
        while patient(&mut txn, |txn| {
            let next = txn.scan_next(&mut scan, &Guard::pin())?.is_some();
            Ok(next)
        }) {
            rows += 1;
        }
        let mut range = IndexCursor::new(&index, ALL.0, ALL.1, true);
        while patient(&mut txn, |txn| {
            let next = txn.index_next(&mut range, &Guard::pin())?.is_some();
            Ok(next)
        }) {
            rows += 1;
        }
        assert_eq!(rows, 2 * ROWS);
        let newest = patient(&mut txn, |txn| {
            let guard = Guard::pin();
            let newest = txn.read_newest(&table, rid, &guard)?;
            Ok(newest.map(|row| values(row.bytes).2))
        });
        assert_eq!(newest, Some(7));
        assert_eq!(txn.instances_touched(), Default::default());
        // Who locks or writes a row writes what others read.
        patient(&mut txn, |txn| {
            let locked = txn.lock_row(&table, rid, version, RowLock::KeyShare);
            write(locked)
        });
        let touched = txn.instances_touched();
        match InstanceId(number) == owner {
            true => assert!(touched.local > 0 && touched.foreign == 0),
            false => assert!(touched.local == 0 && touched.foreign_most == Some(owner)),
        }
        let foreign = place.engine.stats().foreign_accesses - before;
        assert_eq!(foreign, u64::from(touched.foreign));
        commit(txn);
        place.flush();
    }
}
