//! What a transaction has written, worked out when it is about to commit: only what it leaves behind is seen by others,
//! so what was rolled back, or overwritten by the transaction itself, does not count.

use logstead_types::{IndexId, Rid, TableId};

/// Rows of one table that are told apart; a transaction that writes more conflicts with whoever reads the table.
pub(crate) const ROWS_MAX: usize = 1 << 14;

/// Writes to one table.
#[derive(Debug)]
pub(crate) struct TableWrites {
    pub(crate) table: TableId,
    /// Too many: rows and keys are not told.
    pub(crate) whole: bool,
    /// Rows inserted, updated or deleted.
    pub(crate) rows: Vec<Rid>,
    /// Keys that rows have now and had not before.
    pub(crate) keys: Vec<(IndexId, Box<[u8]>)>,
}

/// Everything a transaction has written.
pub(crate) type WriteSet = Vec<TableWrites>;
