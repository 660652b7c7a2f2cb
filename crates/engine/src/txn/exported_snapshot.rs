//! Snapshots that a transaction hands to others, of other workers too: `pg_export_snapshot` and `SET TRANSACTION
//! SNAPSHOT`.
//!
//! The engine's [`SnapshotPins`](crate::snapshot_pins::SnapshotPins) keep what such a snapshot sees.
//!
//! Invariant: a snapshot is pinned from before its exporter gives it up until everybody has who uses it. Whoever
//! computes what may be collected
//! looks at the pins after it has looked at all workers: either it has found the snapshot at its exporter's worker, or,
//! if that had given it
//! up by then, the pin was there before, and is found. So an importer's worker may publish the snapshot at any time
//! later than the pin.

use std::sync::Arc;

use logstead_types::Csn;

use crate::engine::Engine;
use crate::txn::{Isolation, Txn};

/// A snapshot that others may use, and what it sees, while it is not dropped.
pub struct ExportedSnapshot {
    engine: Engine,
    snapshot: Csn,
}

impl ExportedSnapshot {
    /// It sees every CSN below.
    pub fn csn(&self) -> Csn {
        self.snapshot
    }
}

impl ExportedSnapshot {
    /// One that sees every CSN below `snapshot`, which is at or above the counter.
    pub(crate) fn pin(engine: &Engine, snapshot: Csn) -> Arc<ExportedSnapshot> {
        let engine = engine.clone();
        engine.inner().exported.pin(snapshot);
        Arc::new(ExportedSnapshot { engine, snapshot })
    }
}

impl Drop for ExportedSnapshot {
    fn drop(&mut self) {
        self.engine.inner().exported.unpin(self.snapshot);
    }
}

impl Txn {
    /// The statement's snapshot, for other transactions. What this one has written is not seen through it, whatever
    /// becomes of it.
    pub fn export_snapshot(&mut self) -> Arc<ExportedSnapshot> {
        let snapshot = self.snapshot();
        let engine = self.worker.engine.clone();
        engine.inner().exported.pin(snapshot);
        Arc::new(ExportedSnapshot { engine, snapshot })
    }

    /// Uses the snapshot as its own, to its end. Only a REPEATABLE READ transaction that has seen nothing yet may;
    /// false, if it is another.
    #[must_use]
    pub fn import_snapshot(&mut self, from: Arc<ExportedSnapshot>) -> bool {
        if self.isolation() != Isolation::RepeatableRead || self.has_snapshot() {
            return false;
        }
        self.worker.adopt_snapshot(from.snapshot);
        self.set_snapshot(from.snapshot);
        self.imported = Some(from);
        true
    }

    /// Has it a snapshot? In READ COMMITTED, its statement.
    pub fn has_seen(&self) -> bool {
        self.has_snapshot()
    }
}
