//! The records of one share of the rows, on one thread: applied to chunks that the checkpoint does not have, and kept for those that it has.
//!
//! What concerns a chunk of the checkpoint is kept until somebody brings that in ([`crate::pending`]), as long as all that is kept takes no more than
//! a part of the budget ([`KEPT_PART`]). Beyond that the chunk's pages are read, and what was kept of it and comes later is applied: a log that is
//! long for its data takes the memory of the rows that it has changed, and not more.
//!
//! Invariants: all records of a chunk go to one part, in CSN order; so what comes out does not hang on how threads run, but for which
//! chunks are read, and a part has its chunks to itself until it is through: what it replaces is freed at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use logstead_checkpoint::{PageKey, PageReader};
use logstead_home::LogHome;
use logstead_types::{Csn, Rid, TableId};
use logstead_wal::{Record, Records};
use parking_lot::Mutex;

use crate::checkpoint::Stored;
use crate::error::ReplayError;
use crate::load::{Unreadable, read_chunk};
use crate::memory::{ALLOWANCE_BYTES_MAX, Memory};
use crate::pending::{self, Tail};
use crate::row::{RowBuilder, RowError};
use crate::rows::RID_MAX;
use crate::table::Table;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, SlotSet, UnsharedSlots, version_bytes};

/// What is kept of the log takes at most this part of the memory budget.
const KEPT_PART: u64 = 8;

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
    /// What kept records take in memory.
    kept_bytes: AtomicU64,
    kept_bytes_max: u64,
    /// Chunks of which records are kept, and their bytes.
    tails: AtomicU64,
    tail_bytes: AtomicU64,
}

impl Shared {
    pub(super) fn new(workers: usize, memory: &'static Memory, home: Arc<dyn LogHome>) -> Shared {
        Shared {
            kept_bytes: AtomicU64::new(0),
            tails: AtomicU64::new(0),
            tail_bytes: AtomicU64::new(0),
            kept_bytes_max: memory.budget_bytes() / KEPT_PART,
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

    /// Does the checkpoint have this chunk? Asked before chunks are given to their tables.
    fn has_stored(&self, id: TableId, number: u64) -> bool {
        let tables = self.tables.lock();
        let table = tables.get(&id);
        table.is_some_and(|table| table.rows.chunk(number).is_some())
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

    /// Chunks that are to come in with records of the log, and the bytes of these.
    pub(super) fn tails_kept(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.tails), read(&self.tail_bytes))
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

impl Filling {
    /// The log changes something in a slot.
    fn touch(&mut self, slot: usize) {
        self.touched.insert(slot);
        self.slot_end = self.slot_end.max(slot + 1);
        self.changed = true;
    }

    /// Applies what was kept.
    fn put_over(&mut self, tail: &Tail) -> Result<(), pending::Unfit> {
        for (_, record) in tail.records() {
            self.touch((record.rid().0 % CHUNK_SLOTS as u64) as usize);
        }
        tail.apply(&mut self.slots)
    }
}

/// One thread's share of the rows.
pub(super) struct Part<'s> {
    shared: &'s Shared,
    /// By table and number in the table.
    chunks: HashMap<(TableId, u64), Filling, FixedState>,
    /// What is kept of chunks that are not read.
    tails: HashMap<(TableId, u64), Tail, FixedState>,
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
            tails: HashMap::default(),
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
            if self.keep(csn, &record)? {
                continue;
            }
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

    /// Keeps a record if its chunk is in the checkpoint and need not be read now.
    fn keep(&mut self, csn: Csn, record: &Record<'_>) -> Result<bool, ReplayError> {
        let shared = self.shared;
        let key = (record.table(), record.rid().0 / CHUNK_SLOTS as u64);
        if self.chunks.contains_key(&key)
            || shared.kept_bytes.load(Ordering::Relaxed) >= shared.kept_bytes_max
        {
            return Ok(false);
        }
        let tail = match self.tails.entry(key) {
            Entry::Occupied(tail) => tail.into_mut(),
            // Only those of the checkpoint are there before the end.
            Entry::Vacant(_) if !shared.has_stored(key.0, key.1) => return Ok(false),
            Entry::Vacant(none) => none.insert(Tail::new(shared.memory)),
        };
        let before = tail.memory_bytes();
        tail.push(csn, record).map_err(|source| ReplayError::Row {
            csn,
            table: record.table(),
            rid: record.rid(),
            source,
        })?;
        let more = tail.memory_bytes() - before;
        shared.kept_bytes.fetch_add(more, Ordering::Relaxed);
        Ok(true)
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
        if !shared.has_stored(table, number) {
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
        let filled = read_chunk(
            reader,
            &key,
            chain.as_ref(),
            &SlotSet::ALL,
            csn,
            shared.memory,
            |_| true,
        );
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
            let mut filling = self.load(key.0, key.1)?;
            if let Some(tail) = self.tails.remove(&key) {
                filling.put_over(&tail).map_err(|unfit| ReplayError::Row {
                    csn: unfit.csn,
                    table: key.0,
                    rid: unfit.rid,
                    source: unfit.source,
                })?;
                let less = tail.memory_bytes();
                self.shared.kept_bytes.fetch_sub(less, Ordering::Relaxed);
            }
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
        filling.touch(slot);
        pending::apply(&mut filling.slots, csn, record, &mut self.builder)
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
            table.rows.tails.add_touched(slots.map(rid));
            let slot = filling.slot_end.saturating_sub(1) as u64;
            table
                .rows
                .claim_rid(Rid(number * CHUNK_SLOTS as u64 + slot));
        }
        for ((id, number), tail) in self.tails.drain() {
            shared.tails.fetch_add(1, Ordering::Relaxed);
            shared
                .tail_bytes
                .fetch_add(tail.len_bytes(), Ordering::Relaxed);
            shared.table(id).rows.keep_tail(number, tail);
        }
        self.beyond
    }
}
