//! When tables were analyzed by themselves, since the server started.

use logstead_sql_catalog::AutoanalyzeEntry;
use logstead_sql_types::{DatabaseOid, RelationId};
use parking_lot::Mutex;
use std::collections::HashMap;

/// When tables were analyzed by themselves, by database and table, since the server started.
#[derive(Default)]
pub(crate) struct AutoanalyzeHistory(Mutex<HashMap<(DatabaseOid, RelationId), AutoanalyzeEntry>>);

impl AutoanalyzeHistory {
    pub(crate) fn note(&self, database: DatabaseOid, table: RelationId, done: AutoanalyzeEntry) {
        let mut all = self.0.lock();
        let count = all.get(&(database, table)).map_or(0, |old| old.count);
        let count = count + 1;
        all.insert((database, table), AutoanalyzeEntry { count, ..done });
    }

    /// The last time of a table.
    pub(crate) fn of(&self, database: DatabaseOid, table: RelationId) -> Option<AutoanalyzeEntry> {
        self.0.lock().get(&(database, table)).copied()
    }
}
