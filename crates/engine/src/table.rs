//! A table: its row slots, the indexes kept with it, and its locks. It knows no name and no columns.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use logstead_types::{IndexId, InstanceId, Rid, TableId};
use parking_lot::RwLock;

use crate::index::Index;
use crate::memory::Memory;
use crate::partition::DistributionKey;
use crate::row_lock::RowLocks;
use crate::rows::TableRows;
use crate::stored_checkpoint::StoredCheckpoint;
use crate::table_lock::TableLocks;
use crate::txn_state::RowQueues;

/// Numbers of temporary tables at a replica, from this one on: no log has a record of such a table. Objects of a
/// catalog, and so their storages, have numbers far below.
pub const TEMPORARY_AT_REPLICAS: TableId = TableId(1 << 31);

type IndexList = RwLock<Vec<Arc<Index>>>;

/// A table's rows, indexes and locks.
pub struct Table {
    id: TableId,
    pub(crate) rows: Arc<TableRows>,
    /// A list for each instance, all of them the same: a write takes the lock of its own instance's, and whoever
    /// attaches or detaches an index takes all of them.
    indexes: Box<[CachePadded<IndexList>]>,
    /// How often an index was attached.
    attached: AtomicU64,
    pub(crate) locks: TableLocks,
    pub(crate) row_locks: RowLocks,
    uses_reserve: AtomicBool,
    dropped: AtomicBool,
}

/// Rows of a table by how they are locked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RowLockCounts {
    /// Rows with shared locks.
    pub shared: usize,
    /// Rows that the chunks count as having shared locks: writers of other rows of their chunks look for those.
    pub flagged: usize,
    /// Rows somebody waits for.
    pub queued: usize,
}

impl RowQueues for Table {
    fn wake_first(&self, rid: Rid) {
        self.row_locks.wake_first(rid);
    }
}

impl fmt::Debug for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Table({})", self.id)
    }
}

impl Table {
    pub(crate) fn new(
        id: TableId,
        workers: usize,
        instances: usize,
        memory: &'static Memory,
    ) -> Table {
        Table {
            id,
            rows: Arc::new(TableRows::new(id, memory)),
            indexes: (0..instances.max(1))
                .map(|_| CachePadded::default())
                .collect(),
            attached: AtomicU64::new(0),
            locks: TableLocks::new(workers),
            uses_reserve: AtomicBool::new(false),
            dropped: AtomicBool::new(false),
            row_locks: RowLocks::default(),
        }
    }

    /// A temporary table (see [`Table::is_temporary`]).
    pub(crate) fn temporary(id: TableId, workers: usize, memory: &'static Memory) -> Table {
        Table {
            rows: Arc::new(TableRows::temporary(id, memory)),
            ..Table::new(id, workers, 1, memory)
        }
    }

    /// Is it temporary? What is written to it is not logged, is in no checkpoint, and is gone after a restart. It is
    /// one session's: its transactions come one after the other, and each depends on the one before if that may still
    /// be lost, so what is read in the table makes nobody depend on anything.
    #[inline]
    pub fn is_temporary(&self) -> bool {
        self.rows.is_temporary()
    }

    /// A table of the past: where its rows are read from, and below which number they are.
    pub(crate) fn of_past(
        id: TableId,
        workers: usize,
        memory: &'static Memory,
        (stored, rid_end): (StoredCheckpoint, u64),
    ) -> Table {
        Table {
            rows: Arc::new(TableRows::of_past(id, memory, stored, rid_end)),
            ..Table::new(id, workers, 1, memory)
        }
    }

    /// Its number.
    pub fn id(&self) -> TableId {
        self.id
    }

    /// Divides the table: a row that is inserted from now on gets its place in the virtual partition of its
    /// distribution key. To be called whenever the table is made or opened, before its first row is inserted in this
    /// life and before an index is attached; once more changes nothing. Whether a table is divided never changes.
    pub fn divide(&self, key: Arc<dyn DistributionKey>) {
        self.row_locks.divide();
        self.rows.divide(key);
    }

    /// Makes it a table that all instances read alike, from their cores' caches: reads of its rows and entries are
    /// accesses to no instance's. To be called whenever the table is made or opened, of one that is not divided.
    pub fn replicate(&self) {
        self.rows.replicate();
    }

    /// Is it divided?
    #[inline]
    pub fn is_divided(&self) -> bool {
        self.rows.is_divided()
    }

    /// Lets every write of the table use the memory budget's reserve: for the few rows that must be written to get out
    /// of want (a dropped table is a deleted row of a catalog).
    pub fn use_memory_reserve(&self) {
        self.uses_reserve.store(true, Ordering::Relaxed);
    }

    /// Keeps in memory what of the table and its indexes is there, from now on: for the few rows that are read where
    /// nothing can wait. Who has read all of it finds nothing absent any more.
    pub fn stay_in_memory(&self) {
        self.rows.stay();
    }

    #[inline]
    pub(crate) fn uses_reserve(&self) -> bool {
        self.uses_reserve.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }

    /// The index with this number, if it is kept with the table.
    pub fn index(&self, id: IndexId) -> Option<Arc<Index>> {
        let indexes = self.indexes[0].read();
        indexes.iter().find(|index| index.id() == id).cloned()
    }

    /// All its indexes.
    pub fn indexes(&self) -> Vec<Arc<Index>> {
        self.indexes[0].read().clone()
    }

    /// An upper bound of the number of rows: every slot that was used and is not free.
    pub fn row_count_estimate(&self) -> u64 {
        self.rows.used()
    }

    /// Chunks of up to 64 rows each, of which the last, or the last of each virtual partition, may be begun.
    pub fn chunks(&self) -> u64 {
        self.rows.own_chunk_count()
    }

    /// How many of its rows are locked in ways that cost memory beside the rows.
    pub fn row_lock_counts(&self) -> RowLockCounts {
        let (shared, queued) = self.row_locks.counts();
        RowLockCounts {
            shared,
            flagged: self.rows.shared_count(),
            queued,
        }
    }

    /// Keeps `index` with the table, or gives the one that has its number already.
    pub(crate) fn attach(&self, index: Index) -> Arc<Index> {
        let mut lists: Vec<_> = self.indexes.iter().map(|list| list.write()).collect();
        if let Some(known) = lists[0].iter().find(|i| i.id() == index.id()) {
            return known.clone();
        }
        let index = Arc::new(index);
        for list in &mut lists {
            list.push(index.clone());
        }
        self.attached.fetch_add(1, Ordering::SeqCst);
        index
    }

    /// How often an index was attached so far; it moves under the lock of [`Table::with_indexes`].
    pub(crate) fn indexes_attached(&self) -> u64 {
        self.attached.load(Ordering::SeqCst)
    }

    pub(crate) fn detach(&self, id: IndexId) {
        let mut lists: Vec<_> = self.indexes.iter().map(|list| list.write()).collect();
        for list in &mut lists {
            list.retain(|index| index.id() != id);
        }
    }

    /// Calls `use_them` with every index, for a worker of an instance, under a lock that attaching takes.
    #[inline]
    pub(crate) fn with_indexes<T>(
        &self,
        instance: InstanceId,
        use_them: impl FnOnce(&[Arc<Index>]) -> T,
    ) -> T {
        // A temporary table, and one of the past, has one list.
        let list = self.indexes.get(usize::from(instance.0));
        use_them(&list.unwrap_or(&self.indexes[0]).read())
    }
}
