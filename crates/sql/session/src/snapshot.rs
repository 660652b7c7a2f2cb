//! Snapshots that sessions hand to each other: `pg_export_snapshot` and SET TRANSACTION SNAPSHOT.
//!
//! What was exported stands in a list of the server, by name, until its transaction ends; what an importer sees stays
//! until its own has ended
//! (`ExportedSnapshot`).

use super::Session;
use super::context::SessionContext;
use crate::exported_snapshots::{ExportHandle, SnapshotExport};
use logstead_engine::{Isolation, Txn};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use std::sync::Arc;

/// Names that a transaction may give its snapshots. PostgreSQL's bound is the disk, where each is a file.
const OFFERS_MAX: usize = 1_000;

impl SessionContext {
    /// `pg_export_snapshot()`.
    pub(super) fn export_snapshot_of(&self, txn: &mut Txn) -> Result<Datum> {
        if self.level.get() > 0 {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "cannot export a snapshot from a subtransaction",
            ));
        }
        if self.clause_point.borrow().is_some() || !self.as_of_point.borrow().is_empty() {
            return Err(SqlError::unsupported(
                "pg_export_snapshot() in a transaction that reads the past",
            ));
        }
        let mut exports = self.exports.borrow_mut();
        if exports.len() >= OFFERS_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("a transaction cannot export more than {OFFERS_MAX} snapshots"),
            ));
        }
        // As PostgreSQL's: whose session, which of its transactions, which of that one's snapshots.
        let transaction = txn.id().0 as u32;
        let name = format!("{:08X}-{transaction:08X}-{}", self.pid, exports.len() + 1);
        let offered = SnapshotExport {
            snapshot: txn.export_snapshot(),
            database: self.catalog.borrow().database,
            isolation: txn.isolation(),
        };
        let list = &self.instance.exported_snapshots.0;
        list.lock().insert(name.clone(), offered);
        exports.push(ExportHandle {
            list: Arc::clone(&self.instance.exported_snapshots),
            name: name.clone(),
        });
        Ok(Datum::text(name))
    }
}

impl Session {
    /// SET TRANSACTION SNAPSHOT.
    pub(super) fn import_snapshot(&mut self, name: &str) -> Result<()> {
        if self.open.is_some() || !self.savepoints.is_empty() {
            return Err(SqlError::new(
                SqlState::ACTIVE_SQL_TRANSACTION,
                "SET TRANSACTION SNAPSHOT must be called before any query",
            ));
        }
        // Rows of temporary tables are stamped with numbers that a snapshot of before may see.
        if !self.temporary.is_empty() {
            return Err(SqlError::unsupported(
                "SET TRANSACTION SNAPSHOT in a session with temporary objects",
            ));
        }
        let isolation = match self.is_idle() {
            true => self.default_modes()?.isolation,
            false => self.modes.isolation,
        };
        if isolation == Isolation::ReadCommitted {
            return Err(refused(
                "a snapshot-importing transaction must have isolation level SERIALIZABLE or REPEATABLE READ",
            ));
        }
        let is_one = name.bytes().all(|b| b"0123456789ABCDEF-".contains(&b));
        let list = &self.worker.instance.exported_snapshots.0;
        let list = list.lock();
        let Some(offered) = list.get(name).filter(|_| is_one) else {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("invalid snapshot identifier: \"{name}\""),
            ));
        };
        if isolation == Isolation::Serializable {
            return Err(match offered.isolation {
                Isolation::Serializable => {
                    SqlError::unsupported("SET TRANSACTION SNAPSHOT in a SERIALIZABLE transaction")
                }
                _ => refused(
                    "a serializable transaction cannot import a snapshot from a non-serializable transaction",
                ),
            });
        }
        if offered.database != self.database {
            return Err(refused(
                "cannot import a snapshot from a different database",
            ));
        }
        // Ours from here on, whatever becomes of the exporter.
        let snapshot = Arc::clone(&offered.snapshot);
        drop(list);
        if self.is_idle() {
            // It ends with this statement.
            return Ok(());
        }
        match self.transaction()?.txn.import_snapshot(snapshot) {
            true => Ok(()),
            false => Err(SqlError::internal("a snapshot that cannot be imported")),
        }
    }
}

/// What PostgreSQL does not do either, in its words.
fn refused(text: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, text)
}
