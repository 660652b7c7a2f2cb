//! Applying the records of one share of the rows, on one thread, to chunks as the checkpoint has them.
//!
//! Invariants: all records of a chunk go to one part, in CSN order, which reads the chunk's pages before the first; so what comes out
//! does not hang on how threads run, and a part has its chunks to itself until it is through: what it replaces is freed at once.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use logstead_checkpoint::{PageKey, PageReader};
use logstead_home::LogHome;
use logstead_types::{Csn, Rid, TableId};
use logstead_wal::{Record, Records};
use parking_lot::Mutex;

use crate::checkpoint::Stored;
use crate::delta;
use crate::error::ReplayError;
use crate::load::{Unreadable, read_chunk};
use crate::memory::{ALLOWANCE_BYTES_MAX, Memory};
use crate::row::{RowBuilder, RowError, RowRef};
use crate::rows::RID_MAX;
use crate::table::Table;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, SlotSet, UnsharedSlots, version_bytes};

pub(super) type Tables = HashMap<TableId, Arc<Table>, FixedState>;

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
    /// Where pages lie.
    home: Arc<dyn LogHome>,
    /// The checkpoint that the log begins at.
    loaded: OnceLock<Stored>,
    /// What was read of them.
    pages: AtomicU64,
    page_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new(workers: usize, memory: &'static Memory, home: Arc<dyn LogHome>) -> Shared {
        Shared {
            workers,
            memory,
            home,
            loaded: OnceLock::new(),
            pages: AtomicU64::new(0),
            page_bytes: AtomicU64::new(0),
            tables: Mutex::default(),
            full: AtomicBool::new(false),
            failed: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
        }
    }

    /// The table with this number, made if there is none.
    pub(super) fn table(&self, id: TableId) -> Arc<Table> {
        let make = || Arc::new(Table::new(id, self.workers, self.memory));
        Arc::clone(self.tables.lock().entry(id).or_insert_with(make))
    }

    /// The log begins at this checkpoint: known before any record is.
    pub(super) fn set_loaded(&self, stored: Stored) {
        let set = self.loaded.set(stored);
        assert!(set.is_ok(), "a log begins at one checkpoint");
    }

    pub(super) fn loaded(&self) -> Option<&Stored> {
        self.loaded.get()
    }

    /// Pages read, and bytes.
    pub(super) fn pages_read(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.pages), read(&self.page_bytes))
    }

    pub(super) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Finds out whether the budget is used up, every so many bytes.
    fn look(&self, bytes: u64, allowance: &mut u64) {
        if let Some(left) = allowance.checked_sub(bytes) {
            *allowance = left;
            return;
        }
        let left = self.memory.left_bytes(true);
        if left < bytes {
            self.full.store(true, Ordering::Relaxed);
        }
        *allowance = ALLOWANCE_BYTES_MAX.min(left / 4);
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
    fn count_row(&mut self, row: &[u8]) {
        self.bytes += version_bytes(row.len()) as u64;
        self.inserted += 1;
    }

    fn count(&mut self, record: &Record<'_>) {
        match record {
            Record::Insert { row, .. } => self.count_row(row),
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

/// A chunk being filled.
struct Filling {
    slots: UnsharedSlots,
    /// Those that have a row in the checkpoint.
    saved: SlotSet,
    /// The log has changed something.
    changed: bool,
    /// Every slot that this part has met is below.
    slot_end: usize,
    /// The slots that the log has touched.
    touched: SlotSet,
}

/// One thread's share of the rows.
pub(super) struct Part<'s> {
    shared: &'s Shared,
    /// By table and number in the table.
    chunks: HashMap<(TableId, u64), Filling, FixedState>,
    reader: PageReader,
    builder: RowBuilder,
    /// Bytes that may be taken before the next look at the account.
    allowance: u64,
    /// What came after the budget was used up.
    pub(super) beyond: Beyond,
}

impl<'s> Part<'s> {
    pub(super) fn new(shared: &'s Shared) -> Part<'s> {
        Part {
            shared,
            chunks: HashMap::default(),
            reader: PageReader::new(Arc::clone(&shared.home)),
            builder: RowBuilder::new(),
            allowance: 0,
            beyond: Beyond::default(),
        }
    }

    /// Applies records of the transaction with this CSN.
    pub(super) fn apply(&mut self, csn: Csn, records: &[u8]) -> Result<(), ReplayError> {
        for record in Records::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
            let bytes = match &record {
                Record::Insert { row, .. } => version_bytes(row.len()),
                Record::Update { delta, .. } => version_bytes(delta.len()),
                Record::Delete { .. } => 0,
            };
            self.shared.look(bytes as u64, &mut self.allowance);
            if self.shared.is_full() {
                self.beyond.count(&record);
                continue;
            }
            let (table, rid) = (record.table(), record.rid());
            self.chunk_of(&record)?;
            self.apply_record(csn, &record)
                .map_err(|source| ReplayError::Row {
                    csn,
                    table,
                    rid,
                    source,
                })?;
        }
        Ok(())
    }

    /// A chunk as the checkpoint has it; empty, if that does not have it.
    fn load(&mut self, table: TableId, number: u64) -> Result<Filling, ReplayError> {
        let shared = self.shared;
        let mut filling = Filling {
            slots: UnsharedSlots::new(shared.memory),
            saved: SlotSet::default(),
            changed: false,
            slot_end: 0,
            touched: SlotSet::default(),
        };
        let Some(stored) = shared.loaded() else {
            return Ok(filling);
        };
        // Only those of the checkpoint are there before the end.
        if shared.table(table).rows.chunk(number).is_none() {
            return Ok(filling);
        }
        let key = PageKey::Rows {
            table,
            chunk: number,
        };
        let csn = stored.csn;
        let page = |source| ReplayError::Page { csn, source };
        let chain = stored.directory.get(&key).map_err(page)?;
        let reader = &mut self.reader;
        let filled = read_chunk(reader, &key, chain.as_ref(), csn, shared.memory, |_| true);
        let filled = filled.map_err(|why| match why {
            Unreadable::Page(source) => page(source),
            Unreadable::Row(slot, why) => ReplayError::Row {
                csn,
                table,
                rid: Rid(number * CHUNK_SLOTS as u64 + slot as u64),
                source: RowError::new(why),
            },
        })?;
        shared.look(filled.slots.bytes(), &mut self.allowance);
        filling.slots = filled.slots;
        filling.saved = filled.saved;
        Ok(filling)
    }

    /// The chunk that a record changes, read if it is the first one.
    fn chunk_of(&mut self, record: &Record<'_>) -> Result<(), ReplayError> {
        let key = (record.table(), record.rid().0 / CHUNK_SLOTS as u64);
        if record.rid().0 < RID_MAX && !self.chunks.contains_key(&key) {
            let filling = self.load(key.0, key.1)?;
            self.chunks.insert(key, filling);
        }
        Ok(())
    }

    fn apply_record(&mut self, csn: Csn, record: &Record<'_>) -> Result<(), RowError> {
        let rid = record.rid();
        let slot = (rid.0 % CHUNK_SLOTS as u64) as usize;
        let key = (record.table(), rid.0 / CHUNK_SLOTS as u64);
        let Some(filling) = self.chunks.get_mut(&key) else {
            return Err(RowError::new("row number out of range"));
        };
        filling.touched.insert(slot);
        filling.slot_end = filling.slot_end.max(slot + 1);
        filling.changed = true;
        let slots = &mut filling.slots;
        match record {
            Record::Insert { row, .. } => {
                let row = RowRef::parse(row)?;
                slots.replace(slot, csn, Some(row.bytes()));
            }
            Record::Update { delta: changes, .. } => {
                let old = slots
                    .row(slot)
                    .ok_or(RowError::new("an update of a row that does not exist"))?;
                let row = delta::apply(RowRef::new(old), changes, &mut self.builder)?;
                slots.replace(slot, csn, Some(row));
            }
            Record::Delete { .. } => slots.replace(slot, csn, None),
        }
        Ok(())
    }

    /// There is no more: gives the chunks to their tables, and tells what did not fit.
    pub(super) fn finish(&mut self) -> Beyond {
        let shared = self.shared;
        let reads = self.reader.reads();
        shared.pages.fetch_add(reads.pages, Ordering::Relaxed);
        shared.page_bytes.fetch_add(reads.bytes, Ordering::Relaxed);
        for ((id, number), filling) in self.chunks.drain() {
            let table = shared.table(id);
            let chunk = table.rows.adopt(number, filling.slots, &filling.saved);
            if filling.changed {
                chunk.set_changed();
            }
            let rid = |slot| Rid(number * CHUNK_SLOTS as u64 + slot as u64);
            let slots = (0..CHUNK_SLOTS).filter(|slot| filling.touched.contains(*slot));
            table.add_touched(slots.map(rid));
            let slot = filling.slot_end.saturating_sub(1) as u64;
            table
                .rows
                .claim_rid(Rid(number * CHUNK_SLOTS as u64 + slot));
        }
        self.beyond
    }
}
