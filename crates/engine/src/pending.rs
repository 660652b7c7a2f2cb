//! What the log behind the checkpoint says of chunks that nobody has read since the start.
//!
//! A start does not read the chunks that the log's tail has changed: it keeps the records that concern them ([`Tail`]), and whoever brings such a
//! chunk in, for whatever reason, puts them over its pages first. So the time until a start serves follows from the length of the tail,
//! not from how many chunks it has touched, nor from how many there are.
//!
//! Invariants:
//! - P1 A chunk with a tail is absent and CHANGED ([`crate::version`]). So it is not evicted, which needs a present one; and no checkpoint
//!   leaves it as it is: whoever takes one brings it in before it looks. After the first checkpoint of a life no chunk has a tail.
//! - P2 A tail is put over the pages of the checkpoint that the start has loaded, or of a later one that has the same pages of the chunk (P1),
//!   once: it is taken away under the lock under which the rows come in ([`Tails::bring`]), by whom they come from.
//! - P3 A tail holds all records of its chunk that the log has, in CSN order.
//! - P4 No log is truncated before what its tails say is in a published checkpoint (P1), so a crash at any time finds the same again.
//!
//! Also kept, until the start is through: the rows that the log has touched of chunks that are in memory, or come in meanwhile. Their entries are
//! put in the indexes that are restored ([`crate::checkpoint`]).
//!
//! Memory: a tail is charged to the account. Replay keeps them to a part of the budget and reads chunks beyond that.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use logstead_types::{Csn, Rid};
use logstead_wal::{Record, Records};
use parking_lot::Mutex;

use crate::delta;
use crate::memory::{Charge, Memory, footprint};
use crate::row::{RowBuilder, RowError, RowRef};
use crate::version::{CHUNK_SLOTS, SlotSet, UnsharedSlots};

/// Bytes of a record's CSN and length in a tail.
const HEAD_BYTES: usize = 12;
/// What a tail takes beside its records: itself, and its place among the others.
const TAIL_BYTES: usize = footprint(size_of::<Tail>() + 16) + 2 * size_of::<(u64, Arc<Tail>)>();

/// What a record does to the slots of its chunk, which it is known to belong to.
pub(crate) fn apply(
    slots: &mut UnsharedSlots,
    csn: Csn,
    record: &Record<'_>,
    builder: &mut RowBuilder,
) -> Result<(), RowError> {
    let slot = slot_of(record.rid());
    match record {
        Record::Insert { row, .. } => {
            let row = RowRef::parse(row)?;
            slots.replace(slot, csn, Some(row.bytes()));
        }
        Record::Update { delta: changes, .. } => {
            let old = slots
                .row(slot)
                .ok_or(RowError::new("an update of a row that does not exist"))?;
            let row = delta::apply(RowRef::new(old), changes, builder)?;
            slots.replace(slot, csn, Some(row));
        }
        Record::Delete { .. } => slots.replace(slot, csn, None),
    }
    Ok(())
}

fn slot_of(rid: Rid) -> usize {
    (rid.0 % CHUNK_SLOTS as u64) as usize
}

/// The records of one chunk that the log behind the checkpoint has, in CSN order.
#[derive(Debug)]
pub(crate) struct Tail {
    /// Of each: its CSN, its length, and itself.
    bytes: Vec<u8>,
    /// Every row that it has touched is below.
    rid_end: u64,
    /// The slots of these.
    touched: SlotSet,
    charge: Charge,
}

/// Why a tail cannot be put over its chunk's pages.
#[derive(Debug)]
pub(crate) struct Unfit {
    pub(crate) csn: Csn,
    pub(crate) rid: Rid,
    pub(crate) source: RowError,
}

impl Tail {
    pub(crate) fn new(memory: &'static Memory) -> Tail {
        Tail {
            bytes: Vec::new(),
            rid_end: 0,
            touched: SlotSet::NONE,
            charge: memory.charge(),
        }
    }

    /// Appends a record of the chunk, after a look at what can be told without the chunk's rows.
    pub(crate) fn push(&mut self, csn: Csn, record: &Record<'_>) -> Result<(), RowError> {
        match record {
            Record::Insert { row, .. } => {
                RowRef::parse(row)?;
            }
            Record::Update { delta, .. } => {
                for column in delta::columns(delta)? {
                    column?;
                }
            }
            Record::Delete { .. } => {}
        }
        self.rid_end = self.rid_end.max(record.rid().0 + 1);
        self.touched.insert(slot_of(record.rid()));
        let at = self.bytes.len();
        self.bytes.extend_from_slice(&csn.0.to_le_bytes());
        self.bytes.extend_from_slice(&[0; 4]);
        record.encode(&mut self.bytes);
        let length = self.bytes.len() - at - HEAD_BYTES;
        let length = u32::try_from(length).map_err(|_| RowError::new("a record is too long"))?;
        self.bytes[at + 8..at + HEAD_BYTES].copy_from_slice(&length.to_le_bytes());
        self.charge
            .force(TAIL_BYTES + footprint(self.bytes.capacity()));
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

    /// Its records, in CSN order.
    pub(crate) fn records(&self) -> impl Iterator<Item = (Csn, Record<'_>)> {
        let mut rest = &self.bytes[..];
        std::iter::from_fn(move || {
            let (csn, after) = rest.split_first_chunk()?;
            let (length, after) = after.split_first_chunk()?;
            let (record, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = after;
            // It was encoded here.
            let record = Records::new(record).next()?.ok()?;
            Some((Csn(u64::from_le_bytes(*csn)), record))
        })
    }

    /// Puts it over the chunk's rows as the checkpoint has them.
    pub(crate) fn apply(&self, slots: &mut UnsharedSlots) -> Result<(), Unfit> {
        let mut builder = RowBuilder::new();
        for (csn, record) in self.records() {
            let rid = record.rid();
            apply(slots, csn, &record, &mut builder).map_err(|source| Unfit {
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
pub(crate) struct Noted {
    /// Rows it has touched of chunks that are in memory, in any order. Nothing once the start is through, or if nothing is known.
    pub(crate) touched: Option<Vec<Rid>>,
    /// By chunk.
    pub(crate) tails: BTreeMap<u64, Arc<Tail>>,
}

/// The tails of a table's chunks.
#[derive(Debug, Default)]
pub(crate) struct Tails {
    noted: Mutex<Noted>,
    /// How many chunks have one: spares others the mutex.
    chunks: AtomicUsize,
}

impl Tails {
    /// How many chunks have one.
    pub(crate) fn count(&self) -> usize {
        self.chunks.load(Ordering::SeqCst)
    }

    /// Replay: a chunk has this one. It is marked as changed by the caller.
    pub(crate) fn keep(&self, chunk: u64, tail: Tail) {
        let mut noted = self.noted.lock();
        let before = noted.tails.insert(chunk, Arc::new(tail));
        assert!(before.is_none(), "a chunk is filled by one part only");
        self.chunks.store(noted.tails.len(), Ordering::SeqCst);
    }

    /// The tail of a chunk, asked for after it was found absent.
    pub(crate) fn get(&self, chunk: u64) -> Option<Arc<Tail>> {
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

    /// Calls `bring`, which puts a chunk's rows in, its tail over them if it has one, and says whether it did. If so the tail goes (P2): nobody
    /// else sees the rows and the tail.
    pub(crate) fn bring(&self, chunk: u64, bring: impl FnOnce() -> bool) -> bool {
        if self.count() == 0 {
            return bring();
        }
        let mut noted = self.noted.lock();
        let brought = bring();
        if brought && let Some(tail) = noted.tails.remove(&chunk) {
            self.chunks.store(noted.tails.len(), Ordering::SeqCst);
            if let Some(touched) = &mut noted.touched {
                touched.extend(tail.records().map(|(_, record)| record.rid()));
            }
        }
        brought
    }

    /// At the start: the log behind the checkpoint has touched these as well, and their chunks are in memory.
    pub(crate) fn add_touched(&self, rids: impl IntoIterator<Item = Rid>) {
        let mut noted = self.noted.lock();
        noted.touched.get_or_insert_default().extend(rids);
    }

    /// All that is known, if the start is not through yet.
    pub(crate) fn noted(&self) -> Option<Noted> {
        let noted = self.noted.lock();
        noted.touched.is_some().then(|| noted.clone())
    }

    /// Is the start not through yet?
    pub(crate) fn is_starting(&self) -> bool {
        self.noted.lock().touched.is_some()
    }

    /// The start is through: what was noted for it is forgotten. Chunks keep their tails.
    pub(crate) fn end_start(&self) {
        self.noted.lock().touched = None;
    }
}
