//! What stands in a transaction's way: a lock of a row or of a table, or another one's undecided version.
//!
//! Does not: wait (`txn::lock_wait`).

use crate::row_lock::RowLock;
use crate::table::Table;
use crate::table_lock::TableLock;
use crate::txn_id::TxnId;
use crate::txn_state::TxnState;
use crate::version::{Guard, WriterStatus};
use logstead_types::Rid;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;

/// What a transaction waits for, as of when it was blocked.
#[derive(Clone)]
pub(crate) enum WaitCause {
    /// A row that others have locked; `holder` is one of them.
    Row {
        row: RowLockRequest,
        holder: Arc<TxnState>,
    },
    /// What becomes of another transaction's undecided version.
    Outcome {
        writer: Arc<TxnState>,
        releases: u64,
    },
    /// A table lock.
    Table {
        table: Arc<Table>,
        lock: TableLock,
        holder: Option<TxnId>,
        releases: u64,
    },
}

/// A row that somebody wants to lock.
#[derive(Clone)]
pub(crate) struct RowLockRequest {
    pub(crate) table: Arc<Table>,
    pub(crate) rid: Rid,
    pub(crate) lock: RowLock,
}

impl RowLockRequest {
    /// The transactions whose locks of the row stand against `txn` now.
    pub(crate) fn obstacles(&self, txn: TxnId) -> SmallVec<[TxnId; 4]> {
        let mut found = SmallVec::new();
        let guard = Guard::pin();
        // Nobody holds a row whose chunk is absent.
        if let Ok(Some(head)) = self.table.rows.head(self.rid, &guard)
            && let WriterStatus::InProgress(state) = head.writer_status()
            && state.id() != txn
            && state.is_unsettled()
            && self.lock.conflicts(head.lock())
        {
            found.push(state.id());
        }
        let shard = self.table.row_locks.shard(self.rid);
        found.extend(shard.conflicts(self.rid, txn, self.lock));
        found
    }

    pub(crate) fn is(&self, table: &Arc<Table>, rid: Rid) -> bool {
        self.rid == rid && Arc::ptr_eq(&self.table, table)
    }
}

/// Why an operation could not go on: another transaction holds what it needs.
#[derive(Clone)]
pub struct LockConflict(pub(crate) WaitCause);

impl LockConflict {
    pub(crate) fn row(row: RowLockRequest, holder: Arc<TxnState>) -> LockConflict {
        LockConflict(WaitCause::Row { row, holder })
    }

    pub(crate) fn outcome(writer: Arc<TxnState>) -> LockConflict {
        let releases = writer.releases();
        LockConflict(WaitCause::Outcome { writer, releases })
    }

    pub(crate) fn table(
        table: Arc<Table>,
        lock: TableLock,
        holder: Option<TxnId>,
        releases: u64,
    ) -> LockConflict {
        LockConflict(WaitCause::Table {
            table,
            lock,
            holder,
            releases,
        })
    }

    /// One transaction in the way, where one is known (NOWAIT and SKIP LOCKED need no more than that there is one).
    pub fn holder(&self) -> Option<TxnId> {
        match &self.0 {
            WaitCause::Row { holder, .. } => Some(holder.id()),
            WaitCause::Outcome { writer, .. } => Some(writer.id()),
            WaitCause::Table { holder, .. } => *holder,
        }
    }

    /// Is it a table lock that is in the way?
    pub fn is_table(&self) -> bool {
        matches!(self.0, WaitCause::Table { .. })
    }
}

impl fmt::Debug for LockConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            WaitCause::Row { row, holder } => write!(
                f,
                "LockConflict({:?} of row {} held by {:?})",
                row.lock,
                row.rid,
                holder.id()
            ),
            WaitCause::Outcome { writer, .. } => {
                write!(f, "LockConflict(outcome of {:?})", writer.id())
            }
            WaitCause::Table { table, lock, .. } => {
                write!(f, "LockConflict({lock:?} of {table:?})")
            }
        }
    }
}
