//! What a transaction has written, in order, and the records of it that go to the log.
//!
//! Does not: write rows (`txn::write`), undo them, or commit (`txn::precommit`).

use crate::memory::{Charge, Memory, footprint};
use crate::row_lock::RowLock;
use crate::table::Table;
use logstead_types::Rid;
use logstead_wal::{Lane, SideSegmentWriter};
use std::sync::Arc;

/// What was done to a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowChange {
    Insert,
    Update,
    Delete,
    /// A version that is only a lock.
    Lock,
    /// A shared lock, and what was held before.
    Share {
        before: Option<RowLock>,
        lock: RowLock,
    },
}

impl RowChange {
    /// Did it make a new state of the row?
    pub(crate) fn is_change(self) -> bool {
        matches!(
            self,
            RowChange::Insert | RowChange::Update | RowChange::Delete
        )
    }
}

/// One write, to undo it or to clean up after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UndoEntry {
    /// Which of the transaction's written tables.
    pub(crate) table: u32,
    pub(crate) what: RowChange,
    pub(crate) rid: Rid,
}

/// Larger buffers are given back when they are not needed.
const KEPT_BYTES_MAX: usize = 1 << 16;

/// A transaction's buffers, used again by the worker's next ones.
pub(crate) struct TxnBuffers {
    /// The records, without those that have gone to the side segment.
    pub(crate) log: Vec<u8>,
    /// Where the first records of a large transaction are.
    pub(crate) side: Option<SideSegmentWriter>,
    /// What was written, in order.
    pub(crate) writes: Vec<UndoEntry>,
    /// The tables written.
    pub(crate) tables: Vec<Arc<Table>>,
    /// What they take.
    charge: Charge,
}

/// By how many bytes a vector of `capacity` bytes grows to hold `needed`: it doubles.
fn growth(capacity: usize, needed: usize) -> usize {
    if needed <= capacity {
        0
    } else {
        footprint(needed.max(2 * capacity)) - footprint(capacity)
    }
}

impl TxnBuffers {
    pub(crate) fn new(memory: &'static Memory) -> TxnBuffers {
        TxnBuffers {
            log: Vec::new(),
            side: None,
            writes: Vec::new(),
            tables: Vec::new(),
            charge: memory.charge(),
        }
    }

    /// What they will take more for one more write with a record of `record_bytes`.
    #[inline]
    pub(crate) fn growth_bytes(&self, record_bytes: usize) -> usize {
        let write = size_of::<UndoEntry>();
        growth(self.log.capacity(), self.log.len() + record_bytes)
            + growth(
                self.writes.capacity() * write,
                (self.writes.len() + 1) * write,
            )
    }

    /// Counts what they take after they have grown or shrunk.
    #[inline]
    pub(crate) fn settle(&mut self) {
        let backlog = self
            .side
            .as_ref()
            .map_or(0, SideSegmentWriter::backlog_bytes);
        let bytes = footprint(self.log.capacity())
            + footprint(self.writes.capacity() * size_of::<UndoEntry>());
        self.charge.force(bytes + backlog);
    }

    /// Bytes of records since the transaction began.
    #[inline]
    pub(crate) fn log_end(&self) -> usize {
        self.spilled() + self.log.len()
    }

    fn spilled(&self) -> usize {
        // What was appended was in memory, so it fits.
        self.side.as_ref().map_or(0, |side| side.len() as usize)
    }

    /// Takes back the records behind `end`. Those in the side segment stay: only the end of the transaction, which
    /// gives the whole segment up, goes back behind them.
    pub(crate) fn truncate_log(&mut self, end: usize) {
        assert!(
            end == 0 || end >= self.spilled(),
            "records behind a savepoint were spilled"
        );
        self.log.truncate(end.saturating_sub(self.spilled()));
    }

    #[cold]
    pub(crate) fn spill(&mut self, lane: &Lane) {
        if self.log.len() <= lane.inline_size_max() {
            return;
        }
        if self.side.is_none() {
            // Who has no number for it says so at the commit, and keeps the records until then.
            self.side = lane.begin_side_segment().ok();
        }
        let Some(side) = &mut self.side else { return };
        if side.backlog_bytes() > BACKLOG_BYTES_MAX || side.is_held_back() {
            return;
        }
        let next = side
            .spare()
            .unwrap_or_else(|| Vec::with_capacity(SPILL_BYTES + SPILL_BYTES / 8));
        side.append(std::mem::replace(&mut self.log, next));
        self.settle();
    }

    pub(crate) fn clear(&mut self) {
        self.log.clear();
        self.side = None;
        self.writes.clear();
        self.tables.clear();
        self.settle();
    }

    /// Gives back what a large transaction needed and cleaning up after it does not.
    pub(crate) fn shrink_buffers(&mut self) {
        if self.log.is_empty() && self.log.capacity() > KEPT_BYTES_MAX {
            self.log = Vec::new();
        }
        if (self.writes.capacity() - self.writes.len()) * size_of::<UndoEntry>() > KEPT_BYTES_MAX {
            self.writes.shrink_to_fit();
        }
        self.settle();
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.log.capacity() + self.writes.capacity() * size_of::<UndoEntry>()
    }
}

/// Records beyond this go to a side segment while the transaction runs.
pub(crate) const SPILL_BYTES: usize = 1 << 20;

/// The disk is behind by this much (or the log may not run further ahead of it): records stay in memory, where they
/// are counted, until it has caught up.
pub(crate) const BACKLOG_BYTES_MAX: usize = 8 << 20;
