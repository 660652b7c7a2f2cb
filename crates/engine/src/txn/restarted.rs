//! What a transaction finds of an instance that is restarted, or was ([`crate::instance_restart`]).
//!
//! With one instance nobody looks: all questions begin with that.

use logstead_types::{Csn, PartitionId, Rid, TableId};

use super::Txn;
use crate::error::WriteError;
use crate::index::Index;
use crate::page_fault::FaultTarget;
use crate::rows::TableRows;
use crate::version::CHUNK_SLOTS;

/// Smaller numbers are the system's tables.
const USER_TABLES: TableId = TableId(16_384);

/// Are these rows of a table that is some instance's: not the system's, a session's own, or of the past?
pub(crate) fn is_of_users(rows: &TableRows) -> bool {
    rows.table >= USER_TABLES && !rows.is_temporary() && rows.past().is_none()
}

impl Txn {
    /// Refuses to write or lock a row of a partition that is being dropped. Asked before anything is installed.
    #[inline]
    pub(crate) fn refuse_restarting(
        &self,
        rows: &TableRows,
        partition: impl FnOnce() -> PartitionId,
    ) -> Result<(), WriteError> {
        if !self.worker.counts_accesses {
            return Ok(());
        }
        let restarts = &self.engine().instances.restarts;
        match restarts.is_restarting(partition()) && is_of_users(rows) {
            true => Err(WriteError::InstanceRestarted),
            false => Ok(()),
        }
    }

    /// Is the snapshot older than this floor?
    fn is_below(&self, floor: Csn) -> bool {
        self.snapshot_if_any().is_some_and(|taken| taken < floor)
    }

    /// No version of a row is visible: may one have been that was dropped? Asked after the row was looked at.
    #[inline]
    pub(super) fn may_have_lost_row(&self, rows: &TableRows, rid: Rid) -> bool {
        self.worker.counts_accesses && self.is_behind_row(rows, rid)
    }

    #[inline(never)]
    fn is_behind_row(&self, rows: &TableRows, rid: Rid) -> bool {
        let restarts = &self.engine().instances.restarts;
        self.is_below(restarts.floor(rows.partition_of(rid))) && is_of_users(rows)
    }

    /// An index was looked at: may entries be gone that led to what was dropped?
    #[inline]
    pub(super) fn may_have_lost_entries(&self, index: &Index) -> bool {
        self.worker.counts_accesses && self.is_behind_entries(index)
    }

    /// In whatever partition it was looked at: an update that changes the distribution key leaves the row in its chunk,
    /// so an entry of one partition may have led to a row of any other.
    #[inline(never)]
    fn is_behind_entries(&self, index: &Index) -> bool {
        let restarts = &self.engine().instances.restarts;
        let rows = &index.rows;
        let floor = match rows.is_divided() {
            true => restarts.highest_floor(),
            false => restarts.floor(rows.home_partition()),
        };
        self.is_below(floor) && is_of_users(rows)
    }

    /// Is what it is about to wait for of no use to it?
    pub(super) fn has_lost(&self, wanted: &FaultTarget) -> bool {
        match wanted {
            FaultTarget::Lost => true,
            FaultTarget::Rows { rows, number, .. } => {
                let first = Rid(number.saturating_mul(CHUNK_SLOTS as u64));
                self.may_have_lost_row(rows, first)
            }
            FaultTarget::Leaf { .. } | FaultTarget::Past { .. } | FaultTarget::Room { .. } => false,
        }
    }

    /// Can it not commit any more, because an instance is restarted whose rows it has written?
    pub fn is_condemned(&self) -> bool {
        let work = self.work.as_ref();
        work.is_some_and(|work| work.writer.state().is_condemned())
    }
}
