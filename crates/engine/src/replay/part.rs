//! Applying the records of one share of the rows, on one thread.
//!
//! Invariants: all records of a chunk go to one part, in CSN order; so no two threads touch a chunk, and what comes out
//! does not hang on how threads run. What a part replaces is freed while it goes on.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use foldhash::fast::FixedState;
use logstead_env::sleep;
use logstead_types::{Csn, Rid, TableId};
use logstead_wal::{Record, Records};
use parking_lot::Mutex;

use crate::delta;
use crate::error::ReplayError;
use crate::memory::{ALLOWANCE_BYTES_MAX, Memory};
use crate::row::{RowBuilder, RowError, RowRef};
use crate::rows::RID_MAX;
use crate::table::Table;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, Guard, version_bytes};

pub(super) type Tables = HashMap<TableId, Arc<Table>, FixedState>;

/// Records between two calls of the epoch collector, which frees about twice as many versions in one.
const RECORDS_PER_COLLECTION: u32 = 256;
/// Calls of the collector that let it free what is retired: it frees what was retired two steps before.
const FLUSHES: u32 = 4;
/// Calls of the collector that free nothing before memory counts as used up.
const COLLECTIONS_MAX: u32 = 200;
/// How long they are apart, after the first ones.
const COLLECTION_PAUSE: Duration = Duration::from_millis(1);

/// What all parts share.
pub(super) struct Shared {
    workers: usize,
    pub(super) memory: &'static Memory,
    pub(super) tables: Mutex<Tables>,
    /// The budget is used up: from now on rows are only counted.
    full: AtomicBool,
    /// The lowest CSN that could not be applied: nothing above it needs to be. What lies below is applied all the same, so
    /// that the failure told is always the one that a single thread would have met.
    failed: AtomicU64,
    failure: Mutex<Option<ReplayError>>,
}

impl Shared {
    pub(super) fn new(workers: usize, memory: &'static Memory) -> Shared {
        Shared {
            workers,
            memory,
            tables: Mutex::default(),
            full: AtomicBool::new(false),
            failed: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// The lowest CSN that could not be applied.
    #[inline]
    pub(super) fn failed(&self) -> Option<Csn> {
        let csn = self.failed.load(Ordering::Relaxed);
        (csn != u64::MAX).then_some(Csn(csn))
    }

    /// The failure, once every part is through.
    pub(super) fn take_failure(&self) -> Option<ReplayError> {
        self.failure.lock().take()
    }

    /// Notes a failure.
    pub(super) fn fail(&self, error: ReplayError) {
        let mut failure = self.failure.lock();
        let csn = error.csn();
        if failure.as_ref().is_none_or(|known| csn < known.csn()) {
            *failure = Some(error);
            self.failed.store(csn.0, Ordering::Relaxed);
        }
    }
}

/// Rows that did not fit in memory.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Beyond {
    bytes: u64,
    inserted: u64,
    /// A deleted row gives back what rows take on average: its own size is not known any more.
    deleted: u64,
}

impl Beyond {
    fn count(&mut self, record: &Record<'_>) {
        match record {
            Record::Insert { row, .. } => {
                self.bytes += version_bytes(row.len()) as u64;
                self.inserted += 1;
            }
            // The row stays about as long as it was.
            Record::Update { .. } => {}
            Record::Delete { .. } => self.deleted += 1,
        }
    }

    pub(super) fn add(&mut self, other: Beyond) {
        self.bytes += other.bytes;
        self.inserted += other.inserted;
        self.deleted += other.deleted;
    }

    /// What is needed besides `used` bytes for `rows` rows.
    pub(super) fn needed(&self, used: u64, rows: u64) -> u64 {
        let seen = (rows + self.inserted).max(1);
        let left = u128::from(seen.saturating_sub(self.deleted));
        let average = u128::from(used + self.bytes) * left / u128::from(seen);
        let chunks = self.inserted.div_ceil(CHUNK_SLOTS as u64) * CHUNK_BYTES as u64;
        u64::try_from(average).unwrap_or(u64::MAX) + chunks
    }
}

/// A table as a part knows it.
struct Known {
    table: Arc<Table>,
    /// Every rid of the table that this part has met is below.
    rid_end: u64,
}

fn known<'t>(
    tables: &'t mut HashMap<TableId, Known, FixedState>,
    shared: &Shared,
    id: TableId,
) -> &'t mut Known {
    tables.entry(id).or_insert_with(|| {
        let make = || Arc::new(Table::new(id, shared.workers, shared.memory));
        let mut tables = shared.tables.lock();
        Known {
            table: Arc::clone(tables.entry(id).or_insert_with(make)),
            rid_end: 0,
        }
    })
}

/// One thread's share of the rows.
pub(super) struct Part<'s> {
    shared: &'s Shared,
    tables: HashMap<TableId, Known, FixedState>,
    builder: RowBuilder,
    /// Bytes that may be taken before the next look at the account.
    allowance: u64,
    records: u32,
    /// What came after the budget was used up.
    pub(super) beyond: Beyond,
}

impl<'s> Part<'s> {
    pub(super) fn new(shared: &'s Shared) -> Part<'s> {
        Part {
            shared,
            tables: HashMap::default(),
            builder: RowBuilder::new(),
            allowance: 0,
            records: 0,
            beyond: Beyond::default(),
        }
    }

    /// Applies records of the transaction with this CSN.
    pub(super) fn apply(
        &mut self,
        csn: Csn,
        records: &[u8],
        guard: &mut Guard,
    ) -> Result<(), ReplayError> {
        for record in Records::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
            self.look(&record, guard);
            if self.shared.is_full() {
                self.beyond.count(&record);
                continue;
            }
            let (table, rid) = (record.table(), record.rid());
            self.apply_record(csn, &record, guard)
                .map_err(|source| ReplayError::Row {
                    csn,
                    table,
                    rid,
                    source,
                })?;
            self.records += 1;
            if self.records == RECORDS_PER_COLLECTION {
                self.records = 0;
                guard.flush();
                guard.refresh();
            }
        }
        Ok(())
    }

    /// Finds out whether the budget is used up, every so many bytes.
    fn look(&mut self, record: &Record<'_>, guard: &mut Guard) {
        let bytes = match record {
            Record::Insert { row, .. } => version_bytes(row.len()),
            Record::Update { delta, .. } => version_bytes(delta.len()),
            Record::Delete { .. } => 0,
        } as u64;
        if let Some(left) = self.allowance.checked_sub(bytes) {
            self.allowance = left;
            return;
        }
        let memory = self.shared.memory;
        if !self.shared.is_full() {
            // Much of what is used may be versions replaced and not freed yet. Before it counts as used up, whoever holds
            // the collector up is waited for.
            let enough = bytes + ALLOWANCE_BYTES_MAX;
            let (mut left, mut idle) = (memory.left_bytes(true), 0);
            while left < enough && idle < COLLECTIONS_MAX && (left < bytes || idle < FLUSHES) {
                if idle > FLUSHES {
                    sleep(COLLECTION_PAUSE);
                }
                guard.flush();
                guard.refresh();
                let before = std::mem::replace(&mut left, memory.left_bytes(true));
                idle = if left > before { 0 } else { idle + 1 };
            }
            if left < bytes {
                self.shared.full.store(true, Ordering::Relaxed);
            }
        }
        self.allowance = ALLOWANCE_BYTES_MAX.min(memory.left_bytes(true) / 4);
    }

    fn apply_record(
        &mut self,
        csn: Csn,
        record: &Record<'_>,
        guard: &Guard,
    ) -> Result<(), RowError> {
        let rid = record.rid();
        if rid.0 >= RID_MAX {
            return Err(RowError::new("row number out of range"));
        }
        let known = known(&mut self.tables, self.shared, record.table());
        known.rid_end = known.rid_end.max(rid.0 + 1);
        let rows = &known.table.rows;
        let (chunk, slot) = rows.slot_or_new(rid);
        match record {
            Record::Insert { row, .. } => {
                let row = RowRef::parse(row)?;
                chunk.replace_committed(slot, csn, Some(row.bytes()), guard);
            }
            Record::Update { delta: changes, .. } => {
                let old = chunk
                    .head(slot, guard)
                    .ok_or(RowError::new("an update of a row that does not exist"))?;
                let row = delta::apply(RowRef::new(old.row()), changes, &mut self.builder)?;
                chunk.replace_committed(slot, csn, Some(row), guard);
            }
            Record::Delete { .. } => chunk.replace_committed(slot, csn, None, guard),
        }
        Ok(())
    }

    /// There is no more. Gives what did not fit.
    pub(super) fn finish(&mut self) -> Beyond {
        for known in self.tables.values() {
            if let Some(last) = known.rid_end.checked_sub(1) {
                known.table.rows.claim_rid(Rid(last));
            }
        }
        self.beyond
    }
}
