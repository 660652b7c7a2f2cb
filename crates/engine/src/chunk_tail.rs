//! What the log behind the checkpoint says of chunks that nobody has read since the start.
//!
//! A start does not read the chunks that the log's tail has changed: it keeps the records that concern them
//! ([`ChunkTail`]), and whoever brings such a chunk in, for whatever reason, puts them over its pages first. So the
//! time until a start serves follows from the length of the tail, not from how many chunks it has touched, nor from how
//! many there are.
//!
//! Invariants:
//! - P1 A chunk with a tail is absent, and CHANGED or WRITING ([`crate::version`]). So it is not evicted, which needs a
//!   present one; and no checkpoint leaves it as it is: whoever takes one puts the tail over the chunk's older rows
//!   aside, and writes what comes of it; nobody has to bring it in for that, and it needs no room. When the first
//!   checkpoint of a life is published, all tails go, but for those of tables that were dropped before: these are over
//!   no pages any more, and nobody is given their rows.
//! - P2 A tail is put over the pages of the checkpoint that the start has loaded, and no other, once: it is taken away
//!   under the lock under which the rows come in ([`ChunkTails::bring`]), by whom they come from, or, after a
//!   publication, under the lock under which is noted what that has of the chunk ([`ChunkTails::written`]). Who comes
//!   with rows read before finds that the tail has gone, and reads again.
//! - P3 A tail holds what the log says of its chunk: all its records in CSN order, or, once it is folded, for each row
//!   one that comes to the same.
//! - P4 No log is truncated before what its tails say is in a published checkpoint (P1), so a crash at any time finds
//!   the same again.
//!
//! Also kept, until the start is through: the rows that the log has touched of chunks that are in memory, or come in
//! meanwhile. Their entries are put in the indexes that are restored ([`crate::checkpoint`]).
//!
//! Memory: a tail is charged to the account. Folded it has a record for each row that the log has touched, as long as
//! what was written of it at most: the life before had these rows in memory, or tails of its own, so a tail fits into
//! the budget in which it came to be, however long the log behind it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use logstead_types::{Csn, Rid};
use logstead_wal::{RecordReader, RowRecord};
use parking_lot::Mutex;

use crate::delta;
use crate::memory::{Charge, Memory, footprint};
use crate::row::{RowBuilder, RowError, RowRef};
use crate::version::{CHUNK_SLOTS, SlotSet, UnsharedSlots};

/// Bytes of a record's CSN and length in a tail.
const HEAD_BYTES: usize = 12;
/// A tail grows by this part of itself at a time: little of what it takes is for nothing.
const GROWTH_PART: usize = 8;
/// Shorter ones are folded when there is no more to come.
const FOLDED_BYTES_MIN: usize = 4 << 10;
/// What stands before a record's row or changes, at most: its kind, and three numbers.
const RECORD_HEAD_BYTES_MAX: usize = 1 + 5 + 10 + 5;
/// What a tail takes beside its records: itself, and its place among the others.
const TAIL_BYTES: usize =
    footprint(size_of::<ChunkTail>() + 16) + 2 * size_of::<(u64, Arc<ChunkTail>)>();

const NO_ROW: RowError = RowError::new("an update of a row that does not exist");

/// What a record does to the slots of its chunk, which it is known to belong to.
pub(crate) fn apply(
    slots: &mut UnsharedSlots,
    csn: Csn,
    record: &RowRecord<'_>,
    builder: &mut RowBuilder,
) -> Result<(), RowError> {
    let slot = slot_of(record.rid());
    match record {
        RowRecord::Insert { row, .. } => {
            let row = RowRef::parse(row)?;
            slots.replace(slot, csn, Some(row.bytes()));
        }
        RowRecord::Update { delta: changes, .. } => {
            let old = slots.row(slot).ok_or(NO_ROW)?;
            let row = delta::apply(RowRef::new(old), changes, builder)?;
            slots.replace(slot, csn, Some(row));
        }
        RowRecord::Delete { .. } => slots.replace(slot, csn, None),
    }
    Ok(())
}

/// What can be told of a record without the row that it changes.
fn check(record: &RowRecord<'_>) -> Result<(), RowError> {
    match record {
        RowRecord::Insert { row, .. } => {
            RowRef::parse(row)?;
        }
        RowRecord::Update { delta, .. } => {
            for column in delta::columns(delta)? {
                column?;
            }
        }
        RowRecord::Delete { .. } => {}
    }
    Ok(())
}

fn slot_of(rid: Rid) -> usize {
    (rid.0 % CHUNK_SLOTS as u64) as usize
}

/// What the log's records of one row come to.
enum FoldedRecord {
    Row(Csn, Vec<u8>),
    Changes(Csn, Vec<u8>),
    Deleted(Csn),
}

impl FoldedRecord {
    /// What `before` and then `record` come to.
    fn then(
        before: Option<FoldedRecord>,
        csn: Csn,
        record: &RowRecord<'_>,
        builder: &mut RowBuilder,
    ) -> Result<FoldedRecord, RowError> {
        Ok(match (record, before) {
            (RowRecord::Insert { row, .. }, _) => FoldedRecord::Row(csn, row.to_vec()),
            (RowRecord::Delete { .. }, _) => FoldedRecord::Deleted(csn),
            (RowRecord::Update { delta, .. }, None) => FoldedRecord::Changes(csn, delta.to_vec()),
            (RowRecord::Update { delta, .. }, Some(FoldedRecord::Row(_, row))) => {
                let row = delta::apply(RowRef::parse(&row)?, delta, builder)?;
                FoldedRecord::Row(csn, row.to_vec())
            }
            (RowRecord::Update { delta, .. }, Some(FoldedRecord::Changes(_, first))) => {
                FoldedRecord::Changes(csn, delta::merge(&first, delta)?)
            }
            (RowRecord::Update { .. }, Some(FoldedRecord::Deleted(_))) => return Err(NO_ROW),
        })
    }
}

/// The records of one chunk that the log behind the checkpoint has, in CSN order, or one for each row.
#[derive(Debug)]
pub(crate) struct ChunkTail {
    /// Of each: its CSN, its length, and itself.
    bytes: Vec<u8>,
    /// How many there are.
    records: usize,
    /// How long it was when it was folded last.
    folded_bytes: usize,
    /// Every row that it has touched is below.
    rid_end: u64,
    /// The slots of these.
    touched: SlotSet,
    charge: Charge,
}

/// Why a tail cannot be put over its chunk's pages.
#[derive(Debug)]
pub(crate) struct TailMismatch {
    pub(crate) csn: Csn,
    pub(crate) rid: Rid,
    pub(crate) source: RowError,
}

impl ChunkTail {
    pub(crate) fn new(memory: &'static Memory) -> ChunkTail {
        ChunkTail {
            bytes: Vec::new(),
            records: 0,
            folded_bytes: 0,
            rid_end: 0,
            touched: SlotSet::NONE,
            charge: memory.charge(),
        }
    }

    /// Appends a record of the chunk, after a look at what can be told without the chunk's rows.
    pub(crate) fn push(&mut self, csn: Csn, record: &RowRecord<'_>) -> Result<(), TailMismatch> {
        let rid = record.rid();
        check(record).map_err(|source| TailMismatch { csn, rid, source })?;
        self.rid_end = self.rid_end.max(record.rid().0 + 1);
        self.touched.insert(slot_of(record.rid()));
        self.append(csn, record)
            .map_err(|source| TailMismatch { csn, rid, source })?;
        let len = self.bytes.len();
        if len > FOLDED_BYTES_MIN.max(self.folded_bytes.saturating_mul(2)) {
            self.fold()?;
        }
        self.settle();
        Ok(())
    }

    /// Puts a record at its end.
    fn append(&mut self, csn: Csn, record: &RowRecord<'_>) -> Result<(), RowError> {
        let at = self.bytes.len();
        let carried = match record {
            RowRecord::Insert { row, .. } => row.len(),
            RowRecord::Update { delta, .. } => delta.len(),
            RowRecord::Delete { .. } => 0,
        };
        let more = HEAD_BYTES + RECORD_HEAD_BYTES_MAX + carried;
        if self.bytes.capacity() - at < more {
            self.bytes.reserve_exact(more.max(at / GROWTH_PART));
        }
        self.bytes.extend_from_slice(&csn.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        record.encode(&mut self.bytes);
        let length = self.bytes.len() - at - HEAD_BYTES;
        let length = u32::try_from(length).map_err(|_| RowError::new("a record is too long"))?;
        self.bytes[at + 8..at + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        self.records += 1;
        Ok(())
    }

    /// Counts what it takes after it has changed.
    fn settle(&mut self) {
        self.charge
            .force(TAIL_BYTES + footprint(self.bytes.capacity()));
    }

    /// Leaves one record for each row, which comes to what its records came to.
    pub(crate) fn fold(&mut self) -> Result<(), TailMismatch> {
        if self.records > self.touched.len() {
            self.fold_records()?;
        }
        self.folded_bytes = self.bytes.len();
        self.bytes.shrink_to_fit();
        self.settle();
        Ok(())
    }

    fn fold_records(&mut self) -> Result<(), TailMismatch> {
        let mut rows: [Option<FoldedRecord>; CHUNK_SLOTS] = [const { None }; CHUNK_SLOTS];
        let mut builder = RowBuilder::new();
        let mut first = None;
        for (csn, record) in self.records() {
            let rid = record.rid();
            first.get_or_insert((record.table(), rid));
            let row = &mut rows[slot_of(rid)];
            let then = FoldedRecord::then(row.take(), csn, &record, &mut builder);
            *row = Some(then.map_err(|source| TailMismatch { csn, rid, source })?);
        }
        let Some((table, any)) = first else {
            return Ok(());
        };
        self.bytes = Vec::new();
        self.records = 0;
        for (slot, row) in rows.iter().enumerate() {
            let rid = Rid(any.0 - slot_of(any) as u64 + slot as u64);
            let (csn, record) = match row {
                None => continue,
                Some(FoldedRecord::Row(csn, row)) => (*csn, RowRecord::Insert { table, rid, row }),
                Some(FoldedRecord::Changes(csn, delta)) => {
                    (*csn, RowRecord::Update { table, rid, delta })
                }
                Some(FoldedRecord::Deleted(csn)) => (*csn, RowRecord::Delete { table, rid }),
            };
            self.append(csn, &record)
                .map_err(|source| TailMismatch { csn, rid, source })?;
        }
        Ok(())
    }

    /// What it takes in memory.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.charge.bytes() as u64
    }

    /// What its records take.
    pub(crate) fn len_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Every row that it has touched is below.
    pub(crate) fn rid_end(&self) -> Rid {
        Rid(self.rid_end)
    }

    /// The slots that it has touched.
    pub(crate) fn touched(&self) -> &SlotSet {
        &self.touched
    }

    /// The slots of rows that it changes, of which it does not have all.
    pub(crate) fn changed(&self) -> SlotSet {
        let mut changed = SlotSet::NONE;
        for (_, record) in self.records() {
            if matches!(record, RowRecord::Update { .. }) {
                changed.insert(slot_of(record.rid()));
            }
        }
        changed
    }

    /// Its records, those of a row in CSN order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Csn, RowRecord<'_>)> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (csn, after) = rest.split_first_chunk()?;
            let (length, after) = after.split_first_chunk()?;
            let (record, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            // It was encoded here.
            let record = RecordReader::new(record).next()?.ok()?;
            Some((Csn(u64::from_le_bytes(*csn)), record))
        })
    }

    /// Puts it over the chunk's rows as the checkpoint has them.
    pub(crate) fn apply(&self, slots: &mut UnsharedSlots) -> Result<(), TailMismatch> {
        self.apply_to(slots, &SlotSet::ALL)
    }

    /// The same for some of the rows.
    pub(crate) fn apply_to(
        &self,
        slots: &mut UnsharedSlots,
        which: &SlotSet,
    ) -> Result<(), TailMismatch> {
        let mut builder = RowBuilder::new();
        for (csn, record) in self.records() {
            let rid = record.rid();
            if !which.contains(slot_of(rid)) {
                continue;
            }
            apply(slots, csn, &record, &mut builder).map_err(|source| TailMismatch {
                csn,
                rid,
                source,
            })?;
        }
        Ok(())
    }
}

/// What the start has noted of the log, of one table.
#[derive(Clone, Debug, Default)]
pub(crate) struct TableTails {
    /// Rows it has touched of chunks that are in memory, in any order. Nothing once the start is through, or if nothing
    /// is known.
    pub(crate) touched: Option<Vec<Rid>>,
    /// By chunk.
    pub(crate) tails: BTreeMap<u64, Arc<ChunkTail>>,
}

/// The tails of a table's chunks.
#[derive(Debug, Default)]
pub(crate) struct ChunkTails {
    noted: Mutex<TableTails>,
    /// How many chunks have one: spares others the mutex.
    chunks: AtomicUsize,
}

impl ChunkTails {
    /// How many chunks have one.
    pub(crate) fn count(&self) -> usize {
        self.chunks.load(Ordering::SeqCst)
    }

    /// Replay: a chunk has this one. It is marked as changed by the caller.
    pub(crate) fn keep(&self, chunk: u64, tail: ChunkTail) {
        let mut noted = self.noted.lock();
        let before = noted.tails.insert(chunk, Arc::new(tail));
        assert!(before.is_none(), "a chunk is filled by one part only");
        self.chunks.store(noted.tails.len(), Ordering::SeqCst);
    }

    /// The tail of a chunk, asked for after it was found absent.
    pub(crate) fn get(&self, chunk: u64) -> Option<Arc<ChunkTail>> {
        if self.count() == 0 {
            return None;
        }
        self.noted.lock().tails.get(&chunk).cloned()
    }

    /// The first chunk from `from` on that has one.
    pub(crate) fn next(&self, from: u64) -> Option<u64> {
        if self.count() == 0 {
            return None;
        }
        let noted = self.noted.lock();
        let (chunk, _) = noted.tails.range(from..).next()?;
        Some(*chunk)
    }

    /// Calls `bring`, which puts a chunk's rows in, with `over` over them, and says whether it did. If so the tail goes
    /// (P2): nobody else sees the rows and the tail. It is not called, and nothing has happened, if that is not the
    /// chunk's tail now.
    pub(crate) fn bring(
        &self,
        chunk: u64,
        over: Option<&Arc<ChunkTail>>,
        bring: impl FnOnce() -> bool,
    ) -> bool {
        if self.count() == 0 {
            return over.is_none() && bring();
        }
        let mut noted = self.noted.lock();
        let is_it = match (noted.tails.get(&chunk), over) {
            (Some(tail), Some(over)) => Arc::ptr_eq(tail, over),
            (tail, over) => tail.is_none() && over.is_none(),
        };
        let brought = is_it && bring();
        if brought && let Some(tail) = noted.tails.remove(&chunk) {
            self.chunks.store(noted.tails.len(), Ordering::SeqCst);
            if let Some(touched) = &mut noted.touched {
                touched.extend(tail.records().map(|(_, record)| record.rid()));
            }
        }
        brought
    }

    /// The newest checkpoint has what the tail says: calls `note`, which notes what that has of the chunk, and lets go
    /// of the tail, if it is still there.
    pub(crate) fn written(&self, chunk: u64, note: impl FnOnce()) {
        let mut noted = self.noted.lock();
        note();
        noted.tails.remove(&chunk);
        self.chunks.store(noted.tails.len(), Ordering::SeqCst);
    }

    /// At the start: the log behind the checkpoint has touched these as well, and their chunks are in memory.
    pub(crate) fn add_touched(&self, rids: impl IntoIterator<Item = Rid>) {
        let mut noted = self.noted.lock();
        noted.touched.get_or_insert_default().extend(rids);
    }

    /// All that is known, if the start is not through yet.
    pub(crate) fn noted(&self) -> Option<TableTails> {
        let noted = self.noted.lock();
        noted.touched.is_some().then(|| noted.clone())
    }

    /// Is the start not through yet?
    pub(crate) fn is_starting(&self) -> bool {
        self.noted.lock().touched.is_some()
    }

    /// The start is through: what was noted for it is forgotten. Chunks keep their tails.
    pub(crate) fn finish_startup(&self) {
        self.noted.lock().touched = None;
    }
}

#[cfg(test)]
mod tests;
