//! What workloads do with rows, as statements do it: read by key, update, insert, delete, each waiting for whoever
//! holds the row, and judging again afterwards.
//!
//! Columns are bytes whose order is that of their values: numbers big endian, texts without zero bytes.

use std::ops::Bound;
use std::sync::Arc;

use logstead_engine::{
    CommitError, DistributionKey, Engine, FaultError, Guard, Index, IndexCursor, IndexId,
    KeyExtractor, KeyKind, PageFault, Row, RowBuilder, RowRef, ScanCursor, Table, TableId, Txn,
    WriteError,
};

/// Why a transaction did not get to its end.
#[derive(Debug)]
pub(crate) enum TxnError {
    /// It conflicts with another one (40001): it is run again.
    Conflict,
    /// It was the victim of a deadlock (40P01): it is run again.
    Deadlock,
    /// Nothing that a workload expects: the run ends.
    Broken(String),
}

impl From<WriteError> for TxnError {
    fn from(error: WriteError) -> TxnError {
        match error {
            WriteError::Serialization
            | WriteError::SerializationDelete
            | WriteError::Dependencies => TxnError::Conflict,
            WriteError::Deadlock => TxnError::Deadlock,
            other => TxnError::Broken(other.to_string()),
        }
    }
}

impl From<FaultError> for TxnError {
    fn from(error: FaultError) -> TxnError {
        TxnError::Broken(error.to_string())
    }
}

impl From<CommitError> for TxnError {
    fn from(error: CommitError) -> TxnError {
        match error {
            CommitError::Serialization => TxnError::Conflict,
            other => TxnError::Broken(other.to_string()),
        }
    }
}

/// A part of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum KeyPart {
    /// A column of fixed width.
    Fixed(usize),
    /// A text: ends with a zero byte in the key.
    Text(usize),
}

/// Makes keys of columns.
pub(crate) struct Columns {
    parts: &'static [KeyPart],
    /// Bytes of the first part, if rows are distributed by that.
    distribution: Option<usize>,
}

/// Rows are distributed by a column.
struct ByColumn(usize);

impl DistributionKey for ByColumn {
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool {
        let column = row.column(self.0);
        column.map(|bytes| out.extend_from_slice(bytes)).is_some()
    }
}

impl KeyExtractor for Columns {
    #[inline]
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind {
        for part in self.parts {
            match *part {
                KeyPart::Fixed(column) => match row.column(column) {
                    Some(bytes) => out.extend_from_slice(bytes),
                    None => return KeyKind::Absent,
                },
                KeyPart::Text(column) => match row.column(column) {
                    Some(bytes) => {
                        out.extend_from_slice(bytes);
                        out.push(0);
                    }
                    None => return KeyKind::Absent,
                },
            }
        }
        KeyKind::Unique
    }

    fn keys(&self) -> u64 {
        let first = 1 + u64::from(self.is_divided());
        self.parts.iter().fold(first, |number, part| {
            let (kind, column) = match part {
                KeyPart::Fixed(column) => (1, *column),
                KeyPart::Text(column) => (2, *column),
            };
            number
                .wrapping_mul(1_009)
                .wrapping_add(column as u64 * 3 + kind)
        })
    }

    fn is_divided(&self) -> bool {
        self.distribution.is_some()
    }

    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        self.distribution.filter(|bytes| key.len() >= *bytes)
    }
}

/// A table with its primary key.
#[derive(Clone)]
pub(crate) struct Store {
    pub(crate) table: Arc<Table>,
    pub(crate) primary: Arc<Index>,
    /// The column that rows are distributed by, and its bytes.
    distribution: Option<(usize, usize)>,
}

/// Joins four-byte numbers to a key.
pub(crate) fn key<const N: usize, const BYTES: usize>(parts: [u32; N]) -> [u8; BYTES] {
    const { assert!(N * 4 == BYTES) };
    let mut key = [0; BYTES];
    for (place, part) in key.chunks_exact_mut(4).zip(parts) {
        place.copy_from_slice(&part.to_be_bytes());
    }
    key
}

/// A column that holds a `u32`.
#[inline]
pub(crate) fn id(row: RowRef<'_>, column: usize) -> u32 {
    row.column(column)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_be_bytes)
}

/// A column that holds an `i64`.
#[inline]
pub(crate) fn number(row: RowRef<'_>, column: usize) -> i64 {
    row.column(column)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, i64::from_be_bytes)
}

/// Builds `old` anew with some columns changed.
#[inline]
pub(crate) fn rewrite(old: RowRef<'_>, builder: &mut RowBuilder, changes: &[(usize, &[u8])]) {
    let columns = old.column_count();
    builder.start(old.schema_version(), columns);
    for column in 0..columns {
        match changes.iter().find(|(changed, _)| *changed == column) {
            Some((_, bytes)) => builder.push(Some(bytes)),
            None => builder.push(old.column(column)),
        }
    }
}

impl Store {
    /// Makes the table `number` with primary key `parts`; the index's number is the table's plus one.
    pub(crate) fn new(engine: &Engine, number: u32, parts: &'static [KeyPart]) -> Store {
        Store::distributed(engine, number, parts, None)
    }

    /// The same, divided by the first part of the key, a column of so many bytes, if there are several instances.
    pub(crate) fn divided(
        engine: &Engine,
        number: u32,
        parts: &'static [KeyPart],
        bytes: usize,
    ) -> Store {
        let distribution = match parts.first() {
            Some(KeyPart::Fixed(column)) if engine.instances().count() > 1 => {
                Some((*column, bytes))
            }
            _ => None,
        };
        Store::distributed(engine, number, parts, distribution)
    }

    fn distributed(
        engine: &Engine,
        number: u32,
        parts: &'static [KeyPart],
        distribution: Option<(usize, usize)>,
    ) -> Store {
        let table = engine.create_table(TableId(number));
        if let Some((column, _)) = distribution {
            table.divide(Arc::new(ByColumn(column)));
        }
        let keys = Columns {
            parts,
            distribution: distribution.map(|(_, bytes)| bytes),
        };
        let primary = engine.create_index(&table, IndexId(number + 1), true, Arc::new(keys));
        Store {
            table,
            primary,
            distribution,
        }
    }

    /// Makes another index; its number is the table's plus `offset`. It is divided if it begins with the column that
    /// the rows are distributed by.
    pub(crate) fn secondary(
        &self,
        engine: &Engine,
        offset: u32,
        parts: &'static [KeyPart],
    ) -> Arc<Index> {
        let number = IndexId(self.table.id().0 + offset);
        let begins_with = |column: usize| matches!(parts.first(), Some(KeyPart::Fixed(first)) if *first == column);
        let distribution = self.distribution.filter(|(column, _)| begins_with(*column));
        let keys = Columns {
            parts,
            distribution: distribution.map(|(_, bytes)| bytes),
        };
        engine.create_index(&self.table, number, false, Arc::new(keys))
    }

    /// SELECT by primary key: what `with` makes of the row.
    #[inline]
    pub(crate) async fn read<R>(
        &self,
        txn: &mut Txn,
        key: &[u8],
        with: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<Option<R>, TxnError> {
        txn.begin_statement();
        loop {
            let absent = {
                let guard = Guard::pin();
                match txn.get(&self.primary, key, &guard) {
                    Ok(row) => return Ok(row.map(|row| with(row.bytes))),
                    Err(absent) => absent,
                }
            };
            absent.wait(txn).await?;
        }
    }

    /// The same for a row that must be there.
    #[inline]
    pub(crate) async fn must_read<R>(
        &self,
        txn: &mut Txn,
        key: &[u8],
        with: impl FnOnce(RowRef<'_>) -> R,
    ) -> Result<R, TxnError> {
        let found = self.read(txn, key, with).await?;
        found.ok_or_else(|| self.missing(key))
    }

    fn missing(&self, key: &[u8]) -> TxnError {
        TxnError::Broken(format!("no row {key:02x?} in {:?}", self.table))
    }

    /// UPDATE by primary key: `change` builds the new row, once more whenever the row has changed meanwhile; false from
    /// it leaves the row as it is. False if there is no such row, or `change` said so.
    pub(crate) async fn update(
        &self,
        txn: &mut Txn,
        key: &[u8],
        builder: &mut RowBuilder,
        mut change: impl FnMut(RowRef<'_>, &mut RowBuilder) -> bool,
    ) -> Result<bool, TxnError> {
        txn.begin_statement();
        let mut newest = false;
        loop {
            let result = {
                let guard = Guard::pin();
                match self.target(txn, key, newest, &guard) {
                    Ok(None) => return Ok(false),
                    Ok(Some(row)) => {
                        if !change(row.bytes, builder) {
                            return Ok(false);
                        }
                        txn.update(&self.table, row.rid, row.version, builder.finish())
                    }
                    Err(absent) => Err(absent.into()),
                }
            };
            match result {
                Ok(()) => return Ok(true),
                Err(WriteError::Gone) => return Ok(false),
                // It is the same row still.
                Err(WriteError::Absent(absent)) => {
                    absent.wait(txn).await?;
                    continue;
                }
                Err(error) => wait(txn, error).await?,
            }
            newest = true;
        }
    }

    /// The same for a row that must be there and is always changed.
    pub(crate) async fn must_update(
        &self,
        txn: &mut Txn,
        key: &[u8],
        builder: &mut RowBuilder,
        mut change: impl FnMut(RowRef<'_>, &mut RowBuilder),
    ) -> Result<(), TxnError> {
        let changed = self
            .update(txn, key, builder, |row, builder| {
                change(row, builder);
                true
            })
            .await?;
        if changed {
            Ok(())
        } else {
            Err(self.missing(key))
        }
    }

    /// DELETE by primary key; false if there is no such row.
    pub(crate) async fn delete(&self, txn: &mut Txn, key: &[u8]) -> Result<bool, TxnError> {
        txn.begin_statement();
        let mut newest = false;
        loop {
            let result = {
                let guard = Guard::pin();
                match self.target(txn, key, newest, &guard) {
                    Ok(None) => return Ok(false),
                    Ok(Some(row)) => txn.delete(&self.table, row.rid, row.version),
                    Err(absent) => Err(absent.into()),
                }
            };
            match result {
                Ok(()) => return Ok(true),
                Err(WriteError::Gone) => return Ok(false),
                // It is the same row still.
                Err(WriteError::Absent(absent)) => {
                    absent.wait(txn).await?;
                    continue;
                }
                Err(error) => wait(txn, error).await?,
            }
            newest = true;
        }
    }

    /// The row to write: as the statement sees it, or after a wait its newest version.
    #[inline]
    fn target<'g>(
        &self,
        txn: &mut Txn,
        key: &[u8],
        newest: bool,
        guard: &'g Guard,
    ) -> Result<Option<Row<'g>>, PageFault> {
        match txn.get(&self.primary, key, guard)? {
            Some(row) if newest => txn.read_newest(&self.table, row.rid, guard),
            row => Ok(row),
        }
    }

    /// INSERT; false if the key is there already.
    pub(crate) async fn insert(&self, txn: &mut Txn, row: &[u8]) -> Result<bool, TxnError> {
        txn.begin_statement();
        loop {
            match txn.insert(&self.table, row) {
                Ok(_) => return Ok(true),
                Err(WriteError::Unique { .. }) => return Ok(false),
                Err(error) => wait(txn, error).await?,
            }
        }
    }

    /// INSERT of a row whose key must be new.
    pub(crate) async fn must_insert(&self, txn: &mut Txn, row: &[u8]) -> Result<(), TxnError> {
        if self.insert(txn, row).await? {
            Ok(())
        } else {
            Err(TxnError::Broken(format!(
                "a key is twice in {:?}: {:?}",
                self.table,
                RowRef::new(row)
            )))
        }
    }

    /// SELECT of all rows whose key in `index` begins with `prefix`, in order; `each` says whether to go on.
    #[inline]
    pub(crate) async fn range(
        txn: &mut Txn,
        index: &Arc<Index>,
        lower: &[u8],
        upper: &[u8],
        reverse: bool,
        mut each: impl FnMut(Row<'_>) -> bool,
    ) -> Result<(), TxnError> {
        txn.begin_statement();
        let bound = |bytes: &[u8]| Bound::Included(bytes.to_vec());
        let mut cursor = IndexCursor::new(index, bound(lower), bound(upper), reverse);
        loop {
            let absent = {
                let guard = Guard::pin();
                loop {
                    match txn.index_next(&mut cursor, &guard) {
                        Ok(Some(row)) if each(row) => {}
                        Ok(_) => return Ok(()),
                        Err(absent) => break absent,
                    }
                }
            };
            absent.wait(txn).await?;
        }
    }

    /// Every visible row, in no order, for a check at the end: nobody else is there, so it blocks on what is not in
    /// memory.
    ///
    /// # Panics
    /// If a part of the table cannot be brought in: then there is nothing to check.
    pub(crate) fn scan(&self, txn: &mut Txn, mut each: impl FnMut(RowRef<'_>)) {
        let mut cursor = ScanCursor::new(&self.table);
        while present(txn, |txn, guard| {
            let row = txn.scan_next(&mut cursor, guard)?;
            Ok(row.map(|row| each(row.bytes)))
        })
        .is_some()
        {}
    }

    /// Compares the table with each of its indexes: both must give the same number of rows.
    pub(crate) fn check_indexes(&self, txn: &mut Txn) -> Result<(), String> {
        let mut rows = 0_u64;
        self.scan(txn, |_| rows += 1);
        for index in self.table.indexes() {
            let mut found = 0_u64;
            let mut cursor = IndexCursor::new(&index, Bound::Unbounded, Bound::Unbounded, false);
            while present(txn, |txn, guard| {
                Ok(txn.index_next(&mut cursor, guard)?.map(|_| ()))
            })
            .is_some()
            {
                found += 1;
            }
            if found != rows {
                return Err(format!(
                    "{:?} has {rows} rows, but {index:?} gives {found}",
                    self.table
                ));
            }
        }
        Ok(())
    }
}

/// What `read` gives once everything it needs is in memory.
pub(crate) fn present<T>(
    txn: &mut Txn,
    mut read: impl FnMut(&mut Txn, &Guard) -> Result<T, PageFault>,
) -> T {
    loop {
        let guard = Guard::pin();
        match read(txn, &guard) {
            Ok(found) => return found,
            Err(absent) => {
                drop(guard);
                absent
                    .load_here(txn)
                    .expect("what is checked can be brought in");
            }
        }
    }
}

/// After a refused write: waits for whoever holds the row, if someone does; then it is worth trying again.
async fn wait(txn: &mut Txn, error: WriteError) -> Result<(), TxnError> {
    match error {
        WriteError::Blocked(blocker) => blocker.wait(txn).await.map_err(|_| TxnError::Deadlock),
        WriteError::Absent(absent) => Ok(absent.wait(txn).await?),
        WriteError::Changed => Ok(()),
        other => Err(other.into()),
    }
}
