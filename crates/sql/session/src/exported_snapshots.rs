//! The snapshots that sessions have exported, by name.
//!
//! Invariant: a place in the list ends with the transaction that has made it ([`ExportHandle`]).

use logstead_engine::{ExportedSnapshot, Isolation};
use logstead_sql_types::DatabaseOid;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;

/// A snapshot that others may use.
pub(crate) struct SnapshotExport {
    pub(super) snapshot: Arc<ExportedSnapshot>,
    pub(super) database: DatabaseOid,
    pub(super) isolation: Isolation,
}

/// Those of all sessions, by name.
#[derive(Default)]
pub(crate) struct ExportedSnapshots(pub(super) Mutex<HashMap<String, SnapshotExport>>);

/// A place in that list, which ends with its transaction.
pub(crate) struct ExportHandle {
    pub(super) list: Arc<ExportedSnapshots>,
    pub(super) name: String,
}

impl Drop for ExportHandle {
    fn drop(&mut self) {
        let offered = self.list.0.lock().remove(&self.name);
        // Behind the lock.
        drop(offered);
    }
}
