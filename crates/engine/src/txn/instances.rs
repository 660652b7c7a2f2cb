//! To which instances a transaction, and a worker, have led.
//!
//! Counted is each access to a row or an index entry, by the virtual partition that it belongs to: a row of a divided
//! table to that of its chunk, an entry of a divided index to that of its key, and all else of a table to the table's.
//! With one instance nothing is counted, and whoever would count pays a branch.
//!
//! Not counted are the system's tables, which everybody reads and hardly anybody writes, temporary ones, which are
//! their sessions' own, and reads of replicated tables, which every core has in its cache.

use logstead_types::{InstanceId, PartitionId, Rid};

use super::{Txn, is_of_users};
use crate::index::Index;
use crate::rows::TableRows;
use crate::stats::add;
use crate::worker::WorkerInner;

impl WorkerInner {
    /// Counts an access to a partition, and gives its owner.
    fn count_access(&self, partition: PartitionId) -> InstanceId {
        let instances = &self.inner().instances;
        instances.count_access(self.id, partition);
        let owner = instances.of_partition(partition);
        if owner != self.instance {
            add(&self.counters().foreign_accesses, 1);
        }
        owner
    }

    /// Counts an access to a row, of nobody's transaction.
    #[inline]
    pub(crate) fn touch_row(&self, rows: &TableRows, rid: Rid) {
        if self.counts_accesses && is_of_users(rows) {
            self.count_access(rows.partition_of(rid));
        }
    }

    /// Counts an access to an entry, of nobody's transaction.
    #[inline]
    pub(crate) fn touch_entry(&self, index: &Index, key: &[u8]) {
        if self.counts_accesses && is_of_users(&index.rows) {
            self.count_access(index.partition_of(key));
        }
    }
}

impl Txn {
    /// Counts an access to a row that is only read.
    #[inline]
    pub(crate) fn touch_row_to_read(&self, rows: &TableRows, rid: Rid) {
        if self.worker.counts_accesses && !rows.is_replicated() {
            self.count_row(rows, rid);
        }
    }

    /// Counts an access to the entries of a key, as the index has it, that are only read.
    #[inline]
    pub(crate) fn touch_entry_to_read(&self, index: &Index, key: &[u8]) {
        if self.worker.counts_accesses && !index.rows.is_replicated() {
            self.count_entry(index, key);
        }
    }

    /// Counts an access to a row.
    #[inline]
    pub(crate) fn touch_row(&self, rows: &TableRows, rid: Rid) {
        if self.worker.counts_accesses {
            self.count_row(rows, rid);
        }
    }

    /// Counts an access to the entries of a key, as the index has it.
    #[inline]
    pub(crate) fn touch_entry(&self, index: &Index, key: &[u8]) {
        if self.worker.counts_accesses {
            self.count_entry(index, key);
        }
    }

    #[inline(never)]
    fn count_row(&self, rows: &TableRows, rid: Rid) {
        if is_of_users(rows) {
            self.count_access(rows.partition_of(rid));
        }
    }

    #[inline(never)]
    fn count_entry(&self, index: &Index, key: &[u8]) {
        if is_of_users(&index.rows) {
            self.count_access(index.partition_of(key));
        }
    }

    fn count_access(&self, partition: PartitionId) {
        let owner = self.worker.count_access(partition);
        let mut touched = self.touched.get();
        touched.count(self.worker.instance, owner);
        self.touched.set(touched);
    }

    /// It ends: was it inside one instance?
    pub(super) fn count_instances(&self) {
        if !self.worker.counts_accesses {
            return;
        }
        let touched = self.touched.get();
        let counters = self.worker.counters();
        if touched.foreign > 0 {
            add(&counters.transactions_across, 1);
        } else if touched.local > 0 {
            add(&counters.transactions_inside, 1);
        }
    }
}
