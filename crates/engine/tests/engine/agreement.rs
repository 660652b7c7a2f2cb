//! After a stress run: every index and its table say the same.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    ExpectPresent, Guard, Index, IndexCursor, Isolation, Rid, ScanCursor, Table, Worker,
};

/// A row's key, by which walks are in order: without its virtual partition. False: it has none.
fn key_of(index: &Index, row: &[u8], key: &mut Vec<u8>) -> bool {
    let has_entry = index.key(row, key).has_entry();
    if has_entry && index.is_divided() {
        key.remove(0);
    }
    has_entry
}

/// Every row that a scan of `table` finds is found through each index that has a key for it, once, in order, from
/// either end, and no other.
pub(crate) fn assert_index_matches_table(worker: &Worker, table: &Arc<Table>) {
    let mut txn = worker.begin(Isolation::RepeatableRead);
    let mut rows = Vec::new();
    let mut scan = ScanCursor::new(table);
    let guard = Guard::pin();
    while let Some(row) = txn.scan_next(&mut scan, &guard).expect_present() {
        rows.push((row.rid, row.bytes.bytes().to_vec()));
    }
    for index in table.indexes() {
        index.check().expect("the tree is sound");
        let mut expected: BTreeSet<(Vec<u8>, Rid)> = BTreeSet::new();
        for (rid, bytes) in &rows {
            let mut key = Vec::new();
            if key_of(index.as_ref(), bytes, &mut key) {
                expected.insert((key, *rid));
            }
        }
        for reverse in [false, true] {
            let mut cursor = IndexCursor::new(&index, Bound::Unbounded, Bound::Unbounded, reverse);
            let mut found = Vec::new();
            while let Some(row) = txn.index_next(&mut cursor, &guard).expect_present() {
                let mut key = Vec::new();
                key_of(index.as_ref(), row.bytes.bytes(), &mut key);
                found.push((key, row.rid));
            }
            if reverse {
                found.reverse();
            }
            let expected: Vec<_> = expected.iter().cloned().collect();
            assert_eq!(found, expected, "{index:?}, reverse: {reverse}");
        }
    }
}
