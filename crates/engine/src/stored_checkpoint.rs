//! A published checkpoint, as whoever reads its pages has it.
//!
//! Does not: know which one is the newest (`page_store`).

use logstead_checkpoint::Directory;
use logstead_types::{Csn, TableId};
use std::sync::Arc;

/// A published checkpoint.
#[derive(Clone)]
pub(crate) struct StoredCheckpoint {
    /// How many this life has published before it. Not even the CSN tells two apart: the first checkpoint of a life may
    /// have that of the one that was loaded, if nobody has committed since.
    pub(crate) publication: u64,
    /// It holds what was committed below this.
    pub(crate) csn: Csn,
    /// Where its pages lie.
    pub(crate) directory: Directory,
    /// The tables that it has, in order; nothing: whoever reads has no others.
    pub(crate) tables: Option<Arc<[TableId]>>,
}

impl StoredCheckpoint {
    /// Does it have the rows of a table? What has no rows there has none in memory alone that could be absent.
    pub(crate) fn has_table(&self, table: TableId) -> bool {
        let tables = self.tables.as_ref();
        tables.is_none_or(|tables| tables.binary_search(&table).is_ok())
    }
}
