//! A database that has just been opened: its tables, and what is in them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logstead_engine::{
    DistributionKey, Engine, ExpectPresent, Guard, Isolation, KeyExtractor, KeyKind, RestoredIndex,
    RowRef, ScanCursor, Table,
};
use logstead_sim::crash::{Key, WriterId};
use logstead_types::{IndexId, TableId, WorkerId};

use crate::script::{TABLES, Tables, number_of, value_of};

const LEDGER: TableId = TableId(20_000);

fn rows_table(number: u64) -> TableId {
    TableId(20_001 + number as u32)
}

fn by_key_index(number: u64) -> IndexId {
    IndexId(30_001 + number as u32)
}

/// By the first column, by which the rows are distributed if the index is divided.
#[derive(Clone, Copy)]
struct ByKey {
    divided: bool,
}

impl DistributionKey for ByKey {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        self.key(row, out).has_entry()
    }
}

impl KeyExtractor for ByKey {
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        out.extend_from_slice(row.column(0).unwrap_or_default());
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        1 + u64::from(self.divided)
    }

    fn is_divided(&self) -> bool {
        self.divided
    }

    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        (self.divided && key.len() >= 8).then_some(8)
    }
}

/// The tables and their indexes, taken from the checkpoint or built; how many were taken. An error is what keeps them
/// from being made.
pub(crate) fn tables(engine: Engine, divided: bool) -> Result<(Tables, u64), String> {
    let keys = ByKey { divided };
    let ledger = engine.create_table(LEDGER);
    let worker = engine.worker(WorkerId(0));
    let mut txn = worker.begin(Isolation::ReadCommitted);
    let mut restored = 0;
    let mut make = |number| {
        let rows = engine.create_table(rows_table(number));
        if divided {
            rows.divide(Arc::new(keys));
        }
        let id = by_key_index(number);
        let by_key = engine.restore_index(&rows, id, true, Arc::new(keys));
        let by_key = match by_key.map_err(|error| error.to_string())? {
            RestoredIndex::Restored(index) => {
                restored += 1;
                index
            }
            RestoredIndex::NotStored => {
                let index = engine.create_index(&rows, id, true, Arc::new(keys));
                let built = txn.build_index(&rows, &index);
                built.map_err(|error| format!("a key is there twice: {error}"))?;
                index
            }
            RestoredIndex::Damaged(what) => return Err(what.to_string()),
        };
        Ok::<_, String>((rows, by_key))
    };
    let rows = (0..TABLES).map(&mut make).collect::<Result<_, _>>()?;
    drop(txn);
    engine.finish_startup();
    let tables = Tables {
        engine,
        rows,
        ledger,
    };
    Ok((tables, restored))
}

/// What is in them.
pub(crate) struct Contents {
    /// Who has left its number in the ledger.
    pub(crate) ledger: BTreeSet<WriterId>,
    pub(crate) rows: BTreeMap<Key, Vec<u8>>,
}

impl Contents {
    /// Reads everything, by rows and by index. An error is what does not fit together.
    pub(crate) fn of(tables: &Tables) -> Result<Contents, String> {
        let engine = &tables.engine;
        let worker = engine.worker(WorkerId(0));
        let mut txn = worker.begin(Isolation::ReadCommitted);
        let mut all = |table: &Arc<Table>| {
            let guard = Guard::pin();
            let mut cursor = ScanCursor::new(table);
            let mut found = Vec::new();
            while let Some(row) = txn.scan_next(&mut cursor, &guard).expect_present() {
                found.push((number_of(row.bytes), value_of(row.bytes)));
            }
            found
        };
        let in_ledger = all(&tables.ledger);
        let ledger: BTreeSet<WriterId> = in_ledger.iter().map(|(writer, _)| *writer).collect();
        if ledger.len() != in_ledger.len() {
            return Err("a transaction is there twice".to_owned());
        }
        let found: Vec<(Key, Vec<u8>)> =
            tables.rows.iter().flat_map(|(rows, _)| all(rows)).collect();
        let rows: BTreeMap<Key, Vec<u8>> = found.iter().cloned().collect();
        if rows.len() != found.len() {
            return Err("a key is there twice".to_owned());
        }
        for (key, value) in &rows {
            let found = tables.read(&mut txn, *key).map_err(|e| e.to_string())?;
            if found.as_ref() != Some(value) {
                return Err(format!(
                    "the row with key {key} is not found by its index, but {found:?}"
                ));
            }
        }
        Ok(Contents { ledger, rows })
    }
}
