//! The records of one share of the rows, on one thread: applied to chunks that the checkpoint does not have, and kept
//! for those that it has.
//!
//! What concerns a chunk of the checkpoint is kept until somebody brings that in ([`crate::chunk_tail`]); nothing is
//! read. Where memory is scarce, what is kept is folded again and again, so that a log that is long for its data takes
//! the memory of the rows that it has changed, and not more.
//!
//! Invariants: all records of a chunk go to one part, in CSN order; so what comes out does not hang on how threads run,
//! and a part has its chunks to itself until it is through: what it replaces is freed at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use foldhash::fast::FixedState;
use logstead_types::{Csn, Rid, TableId};
use logstead_wal::{RecordReader, RowRecord};
use parking_lot::Mutex;

use crate::chunk_tail::{self, ChunkTail, TailMismatch};
use crate::engine::EngineOptions;
use crate::error::ReplayError;
use crate::logged_chunks::{LoggedChunk, LoggedTotals};
use crate::memory::{ALLOWANCE_BYTES_MAX, Memory};
use crate::partition::Instances;
use crate::row::{RowBuilder, RowError};
use crate::rows::RID_MAX;
use crate::stored_checkpoint::StoredCheckpoint;
use crate::table::Table;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, SlotSet, UnsharedSlots, version_bytes};

/// With less than this part of the budget left, memory is scarce.
const SCARCE_PART: u64 = 4;
/// With less than this part left what is kept goes, so much of it at a time, where the log can be read again for it:
/// the start has to make indexes as well.
const LEAVING_PART: u64 = 4;
const LEFT_PART: u64 = 32;
/// Where it is scarce what is kept is folded whenever it has grown by this part.
const UNFOLDED_PART: u64 = 8;

pub(super) type Tables = HashMap<TableId, Arc<Table>, FixedState>;

/// What all parts share.
pub(super) struct ReplayShared {
    workers: usize,
    instances: usize,
    pub(super) memory: &'static Memory,
    pub(super) tables: Mutex<Tables>,
    /// The budget is used up: from now on rows are only counted.
    full: AtomicBool,
    /// The lowest CSN that could not be applied: nothing above it needs to be. What lies below is applied all the same,
    /// so that the failure told is always the one that a single thread would have met.
    failed: AtomicU64,
    failure: Mutex<Option<ReplayError>>,
    /// The checkpoint that the log begins at.
    loaded: OnceLock<StoredCheckpoint>,
    /// The log can be read again for chunks: this server writes it.
    may_leave: bool,
    /// What is left to it.
    pub(super) logged: Arc<LoggedTotals>,
    /// Chunks of which records are kept, and their bytes.
    tails: AtomicU64,
    tail_bytes: AtomicU64,
}

impl ReplayShared {
    pub(super) fn new(
        options: &EngineOptions,
        memory: &'static Memory,
        may_leave: bool,
    ) -> ReplayShared {
        let EngineOptions {
            workers, instances, ..
        } = *options;
        ReplayShared {
            may_leave,
            logged: Arc::default(),
            tails: AtomicU64::new(0),
            tail_bytes: AtomicU64::new(0),
            workers,
            instances: Instances::counted(instances, workers),
            memory,
            loaded: OnceLock::new(),
            tables: Mutex::default(),
            full: AtomicBool::new(false),
            failed: AtomicU64::new(u64::MAX),
            failure: Mutex::new(None),
        }
    }

    /// The table with this number, made if there is none.
    pub(super) fn table(&self, id: TableId) -> Arc<Table> {
        let make = || Arc::new(Table::new(id, self.workers, self.instances, self.memory));
        Arc::clone(self.tables.lock().entry(id).or_insert_with(make))
    }

    /// Does the checkpoint have this chunk? Asked before chunks are given to their tables.
    fn has_stored(&self, id: TableId, number: u64) -> bool {
        let tables = self.tables.lock();
        let table = tables.get(&id);
        table.is_some_and(|table| table.rows.chunk(number).is_some())
    }

    /// The log begins at this checkpoint: known before any record is.
    pub(super) fn set_loaded(&self, stored: StoredCheckpoint) {
        let set = self.loaded.set(stored);
        assert!(set.is_ok(), "a log begins at one checkpoint");
    }

    pub(super) fn loaded(&self) -> Option<&StoredCheckpoint> {
        self.loaded.get()
    }

    /// Chunks that are to come in with records of the log, and the bytes of these.
    pub(super) fn tails_kept(&self) -> (u64, u64) {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        (read(&self.tails), read(&self.tail_bytes))
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
pub(super) struct MemoryShortfall {
    bytes: u64,
    inserted: u64,
    /// A deleted row gives back what rows take on average: its own size is not known any more.
    deleted: u64,
}

impl MemoryShortfall {
    fn count_row(&mut self, row: &[u8]) {
        self.bytes += version_bytes(row.len()) as u64;
        self.inserted += 1;
    }

    fn count(&mut self, record: &RowRecord<'_>) {
        match record {
            RowRecord::Insert { row, .. } => self.count_row(row),
            // The row stays about as long as it was.
            RowRecord::Update { .. } => {}
            RowRecord::Delete { .. } => self.deleted += 1,
        }
    }

    pub(super) fn add(&mut self, other: MemoryShortfall) {
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

/// A chunk being filled: the checkpoint does not have it.
struct Filling {
    slots: UnsharedSlots,
    /// The slots that the log has touched.
    touched: SlotSet,
}

fn unfit(table: TableId, why: TailMismatch) -> ReplayError {
    let TailMismatch { csn, rid, source } = why;
    ReplayError::Row {
        csn,
        table,
        rid,
        source,
    }
}

/// One thread's share of the rows.
pub(super) struct ReplayPartition<'s> {
    shared: &'s ReplayShared,
    /// By table and number in the table.
    chunks: HashMap<(TableId, u64), Filling, FixedState>,
    /// What is kept of chunks that are not read.
    tails: HashMap<(TableId, u64), ChunkTail, FixedState>,
    /// Chunks for which there was no room, with the slots that the log has touched: it is read again for them.
    left: HashMap<(TableId, u64), SlotSet, FixedState>,
    /// What these take, and what they took when they were folded last.
    kept_bytes: u64,
    folded_bytes: u64,
    builder: RowBuilder,
    /// Bytes that may be taken before the next look at the account.
    allowance: u64,
    /// What came after the budget was used up.
    pub(super) beyond: MemoryShortfall,
}

impl<'s> ReplayPartition<'s> {
    pub(super) fn new(shared: &'s ReplayShared) -> ReplayPartition<'s> {
        ReplayPartition {
            shared,
            chunks: HashMap::default(),
            tails: HashMap::default(),
            left: HashMap::default(),
            kept_bytes: 0,
            folded_bytes: 0,
            builder: RowBuilder::new(),
            allowance: 0,
            beyond: MemoryShortfall::default(),
        }
    }

    /// Applies records of the transaction with this CSN.
    pub(super) fn apply(&mut self, csn: Csn, records: &[u8]) -> Result<(), ReplayError> {
        for record in RecordReader::new(records) {
            let record = record.map_err(|source| ReplayError::Records { csn, source })?;
            let bytes = match &record {
                RowRecord::Insert { row, .. } => version_bytes(row.len()),
                RowRecord::Update { delta, .. } => version_bytes(delta.len()),
                RowRecord::Delete { .. } => 0,
            };
            self.look(bytes as u64)?;
            if self.shared.is_full() {
                self.beyond.count(&record);
                continue;
            }
            let (table, rid) = (record.table(), record.rid());
            let key = (table, rid.0 / CHUNK_SLOTS as u64);
            if let Some(touched) = self.left.get_mut(&key) {
                touched.insert((rid.0 % CHUNK_SLOTS as u64) as usize);
                continue;
            }
            if self.keep(csn, &record)? {
                continue;
            }
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

    /// Finds out whether the budget is used up, every so many bytes.
    fn look(&mut self, bytes: u64) -> Result<(), ReplayError> {
        if let Some(left) = self.allowance.checked_sub(bytes) {
            self.allowance = left;
            return Ok(());
        }
        let memory = self.shared.memory;
        let mut left = memory.left_bytes(true);
        let folded = self.folded_bytes;
        if left < memory.budget_bytes() / SCARCE_PART
            && self.kept_bytes > folded + folded / UNFOLDED_PART
        {
            self.fold()?;
            left = memory.left_bytes(true);
        }
        if left < memory.budget_bytes() / LEAVING_PART && self.leave() {
            left = memory.left_bytes(true);
        }
        if left < bytes {
            self.shared.full.store(true, Ordering::Relaxed);
        }
        self.allowance = ALLOWANCE_BYTES_MAX.min(left / 4);
        Ok(())
    }

    /// Lets go of some of what is kept, and of chunks that are being filled, if the log can be read again for them: it
    /// begins at a checkpoint.
    fn leave(&mut self) -> bool {
        let shared = self.shared;
        if !shared.may_leave || shared.loaded().is_none() {
            return false;
        }
        let mut wanted = shared.memory.budget_bytes() / LEFT_PART;
        let mut keys: Vec<((TableId, u64), SlotSet)> = Vec::new();
        for (key, filling) in &self.chunks {
            if wanted == 0 {
                break;
            }
            wanted = wanted.saturating_sub(filling.slots.bytes() + CHUNK_BYTES as u64);
            keys.push((*key, filling.touched));
        }
        for (key, tail) in &self.tails {
            if wanted == 0 {
                break;
            }
            wanted = wanted.saturating_sub(tail.memory_bytes());
            keys.push((*key, *tail.touched()));
        }
        for (key, touched) in &keys {
            self.chunks.remove(key);
            if let Some(tail) = self.tails.remove(key) {
                self.kept_bytes = self.kept_bytes.saturating_sub(tail.memory_bytes());
            }
            self.left.insert(*key, *touched);
        }
        !keys.is_empty()
    }

    /// Folds all that is kept.
    fn fold(&mut self) -> Result<(), ReplayError> {
        for ((table, _), tail) in &mut self.tails {
            tail.fold().map_err(|why| unfit(*table, why))?;
        }
        self.kept_bytes = self.tails.values().map(ChunkTail::memory_bytes).sum();
        self.folded_bytes = self.kept_bytes;
        Ok(())
    }

    /// Keeps a record if its chunk is in the checkpoint.
    fn keep(&mut self, csn: Csn, record: &RowRecord<'_>) -> Result<bool, ReplayError> {
        let shared = self.shared;
        let key = (record.table(), record.rid().0 / CHUNK_SLOTS as u64);
        if self.chunks.contains_key(&key) {
            return Ok(false);
        }
        let tail = match self.tails.entry(key) {
            Entry::Occupied(tail) => tail.into_mut(),
            // Only those of the checkpoint are there before the end.
            Entry::Vacant(_) if !shared.has_stored(key.0, key.1) => return Ok(false),
            Entry::Vacant(none) => none.insert(ChunkTail::new(shared.memory)),
        };
        let before = tail.memory_bytes();
        tail.push(csn, record).map_err(|why| unfit(key.0, why))?;
        self.kept_bytes = self.kept_bytes + tail.memory_bytes() - before;
        Ok(true)
    }

    fn apply_record(&mut self, csn: Csn, record: &RowRecord<'_>) -> Result<(), RowError> {
        let rid = record.rid();
        let slot = (rid.0 % CHUNK_SLOTS as u64) as usize;
        if rid.0 >= RID_MAX {
            return Err(RowError::new("row number out of range"));
        }
        let key = (record.table(), rid.0 / CHUNK_SLOTS as u64);
        let filling = self.chunks.entry(key).or_insert_with(|| Filling {
            slots: UnsharedSlots::new(self.shared.memory),
            touched: SlotSet::NONE,
        });
        filling.touched.insert(slot);
        chunk_tail::apply(&mut filling.slots, csn, record, &mut self.builder)
    }

    /// There is no more: gives the chunks to their tables, and tells what did not fit.
    pub(super) fn finish(&mut self) -> MemoryShortfall {
        let shared = self.shared;
        if let Err(why) = self.fold() {
            shared.fail(why);
        }
        for ((id, number), filling) in self.chunks.drain() {
            let table = shared.table(id);
            table.rows.adopt(number, filling.slots).set_changed();
            let rid = |slot| Rid(number * CHUNK_SLOTS as u64 + slot as u64);
            table
                .rows
                .tails
                .add_touched(filling.touched.iter().map(rid));
            if let Some(last) = filling.touched.iter().last() {
                table.rows.claim_rid(rid(last));
            }
        }
        for ((id, number), tail) in self.tails.drain() {
            shared.tails.fetch_add(1, Ordering::Relaxed);
            shared
                .tail_bytes
                .fetch_add(tail.len_bytes(), Ordering::Relaxed);
            shared.table(id).rows.keep_tail(number, tail);
        }
        for ((id, number), touched) in self.left.drain() {
            let logged = LoggedChunk::of_start(touched, &shared.logged, shared.memory);
            shared.table(id).rows.keep_of_start(number, logged);
        }
        self.beyond
    }
}
