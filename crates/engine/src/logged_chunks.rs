//! Chunks that left memory with changes that no checkpoint has: the log has them.
//!
//! A chunk that has changed since the newest checkpoint may leave memory when its log is durable ([`crate::version`],
//! `evict_to_log`). What stays is a [`LoggedChunk`]: which rows there were, and from which CSN on the log has all of
//! it. Whoever brings the chunk in asks a page service for it at that CSN, or reads the log ([`crate::load`]).
//!
//! Invariants:
//! - L1 A chunk with a note is absent as a whole, and CHANGED or WRITING. It has no [`ChunkTail`](crate::chunk_tail):
//!   that went when the chunk came in.
//! - L2 A note is there before its chunk is absent, and goes together with the absence, under the lock under which the
//!   rows come in ([`LoggedChunks::bring`]), or when the newest checkpoint has what it stands for, under the lock under
//!   which is noted what that has of the chunk ([`LoggedChunks::written`]). So who comes with rows that he has read for
//!   another note, or another checkpoint, puts them nowhere.
//! - L3 The log that a note stands for is not removed before it is in a published checkpoint: that names it among its
//!   chunks (they are CHANGED), and the log stays from the newest checkpoint's starts on (T8). Notes are in memory
//!   alone: a start replays the log as if they had never been.
//! - L4 A start that has no room for all that the log says of chunks leaves notes of some instead
//!   ([`LoggedChunk::of_start`]): which rows the log has touched, and not which there are. These are read from the log
//!   alone, over what the checkpoint has, until the first checkpoint of this life has them. While indexes are being
//!   made of what a start has found, the rows of those that come in are noted as touched before their note goes.
//! - L5 The restart of an instance leaves notes as well ([`LoggedChunk::of_restart`]), and does not believe what was in
//!   memory: these say neither which rows there are nor which the log has touched. They are read from the log alone.
//!   As long as there are some this server takes its checkpoints itself: one that a replica writes would be named
//!   without its saying which rows of them it has.
//!
//! Memory: each note is charged to the account, and takes less than the slots that went.
//!
//! Does not: decide what leaves ([`crate::evict`]), or read anything.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use logstead_types::Csn;
use parking_lot::{Mutex, MutexGuard};

use crate::memory::{Charge, Memory, footprint};
use crate::tree::interleave::{is_scheduled, point};
use crate::version::{LeftChunk, SlotSet, VersionDigest};

/// What a note takes: itself, and its place among the others.
const NOTE_BYTES: usize =
    footprint(size_of::<LoggedChunk>() + 16) + 2 * size_of::<(u64, Arc<LoggedChunk>)>();

/// How much there is of it, in all tables.
#[derive(Debug, Default)]
pub(crate) struct LoggedTotals {
    chunks: AtomicU64,
    dirty_bytes: AtomicU64,
    of_start: AtomicU64,
    of_restarts: AtomicU64,
}

impl LoggedTotals {
    /// Chunks that only the log has.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// Those of them that a start has left.
    pub(crate) fn of_start(&self) -> u64 {
        self.of_start.load(Ordering::Relaxed)
    }

    /// Those of them that went with an instance that was restarted.
    pub(crate) fn of_restarts(&self) -> u64 {
        self.of_restarts.load(Ordering::Relaxed)
    }

    /// What their changed rows took in memory.
    pub(crate) fn dirty_bytes(&self) -> u64 {
        self.dirty_bytes.load(Ordering::Relaxed)
    }
}

/// Who has left a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NoteOrigin {
    Eviction,
    Start,
    /// The restart of an instance.
    Restart,
}

/// A chunk that only the log has.
#[derive(Debug)]
pub(crate) struct LoggedChunk {
    /// All its changes are below this CSN, and durable.
    pub(crate) read_point: Csn,
    /// The slots with a row; not known of what a start or a restarted instance has left.
    pub(crate) present: Option<SlotSet>,
    /// Those that are not as the newest checkpoint has them.
    pub(crate) dirty: SlotSet,
    dirty_bytes: u64,
    origin: NoteOrigin,
    /// The newest checkpoint had the table when it left, unless that was the one at this CSN.
    without_table: Option<Csn>,
    /// Which versions of these rows there were; of those that are not deleted.
    versions: VersionDigest,
    totals: Arc<LoggedTotals>,
    /// It is among a table's.
    is_counted: AtomicBool,
    _charge: Charge,
}

impl LoggedChunk {
    pub(crate) fn new(
        read_point: Csn,
        left: &LeftChunk,
        totals: &Arc<LoggedTotals>,
        memory: &'static Memory,
    ) -> LoggedChunk {
        let mut charge = memory.charge();
        charge.force(NOTE_BYTES);
        totals.chunks.fetch_add(1, Ordering::Relaxed);
        totals
            .dirty_bytes
            .fetch_add(left.dirty_bytes, Ordering::Relaxed);
        LoggedChunk {
            read_point,
            present: Some(left.present),
            dirty: left.dirty,
            dirty_bytes: left.dirty_bytes,
            origin: NoteOrigin::Eviction,
            without_table: None,
            versions: left.versions,
            totals: Arc::clone(totals),
            is_counted: AtomicBool::new(true),
            _charge: charge,
        }
    }

    /// One that a start has no room for: the log has touched these slots.
    pub(crate) fn of_start(
        touched: SlotSet,
        totals: &Arc<LoggedTotals>,
        memory: &'static Memory,
    ) -> LoggedChunk {
        totals.of_start.fetch_add(1, Ordering::Relaxed);
        let left = LeftChunk {
            present: SlotSet::NONE,
            dirty: touched,
            dirty_bytes: 0,
            versions: VersionDigest::default(),
        };
        let mut chunk = LoggedChunk::new(Csn::ZERO, &left, totals, memory);
        chunk.present = None;
        chunk.origin = NoteOrigin::Start;
        chunk
    }

    /// One that has gone with its instance. `without_table`: the newest checkpoint, if that does not have its table.
    pub(crate) fn of_restart(
        read_point: Csn,
        without_table: Option<Csn>,
        totals: &Arc<LoggedTotals>,
        memory: &'static Memory,
    ) -> LoggedChunk {
        let left = LeftChunk {
            present: SlotSet::NONE,
            dirty: SlotSet::NONE,
            dirty_bytes: 0,
            versions: VersionDigest::default(),
        };
        let mut chunk = LoggedChunk::new(read_point, &left, totals, memory);
        chunk.present = None;
        chunk.origin = NoteOrigin::Restart;
        chunk.without_table = without_table;
        totals.of_restarts.fetch_add(1, Ordering::Relaxed);
        chunk
    }

    /// Is all of its table in the log behind the checkpoint at this CSN, which does not have the table?
    pub(crate) fn is_newer_than(&self, checkpoint: Csn) -> bool {
        self.without_table == Some(checkpoint)
    }

    /// Are these its rows, among those that are wanted, as far as that is known?
    pub(crate) fn agrees(&self, found: &SlotSet, wanted: &SlotSet) -> bool {
        let present = self.present;
        present.is_none_or(|present| found.both(wanted) == present.both(wanted))
    }

    /// Are these its rows, among those that are wanted, which have all that the newest checkpoint does not have: in the
    /// same places, and of these in the same versions, as far as that is known?
    pub(crate) fn is_as_it_was(
        &self,
        found: &SlotSet,
        wanted: &SlotSet,
        csn_of: impl Fn(usize) -> Option<Csn>,
    ) -> bool {
        let mut versions = VersionDigest::default();
        for slot in self.dirty.both(found).iter() {
            if let Some(csn) = csn_of(slot) {
                versions.add(slot, csn);
            }
        }
        self.agrees(found, wanted) && (self.present.is_none() || versions == self.versions)
    }

    /// It has come back, or is in a checkpoint: somebody may look at it still.
    fn uncount(&self) {
        if !self.is_counted.swap(false, Ordering::Relaxed) {
            return;
        }
        let totals = &self.totals;
        totals.chunks.fetch_sub(1, Ordering::Relaxed);
        let counted = match self.origin {
            NoteOrigin::Eviction => None,
            NoteOrigin::Start => Some(&totals.of_start),
            NoteOrigin::Restart => Some(&totals.of_restarts),
        };
        if let Some(counted) = counted {
            counted.fetch_sub(1, Ordering::Relaxed);
        }
        totals
            .dirty_bytes
            .fetch_sub(self.dirty_bytes, Ordering::Relaxed);
    }
}

impl Drop for LoggedChunk {
    fn drop(&mut self) {
        self.uncount();
    }
}

/// Those of a table.
#[derive(Debug, Default)]
pub(crate) struct LoggedChunks {
    chunks: Mutex<BTreeMap<u64, Arc<LoggedChunk>>>,
    /// How many there are: spares others the mutex.
    count: AtomicUsize,
    /// The table was dropped.
    is_dropped: AtomicBool,
}

impl LoggedChunks {
    fn locked(&self) -> MutexGuard<'_, BTreeMap<u64, Arc<LoggedChunk>>> {
        loop {
            if let Some(chunks) = self.chunks.try_lock() {
                return chunks;
            }
            if !is_scheduled() {
                return self.chunks.lock();
            }
            point();
        }
    }

    /// A chunk is about to leave.
    pub(crate) fn keep(&self, number: u64, chunk: LoggedChunk) {
        let mut chunks = self.locked();
        let before = chunks.insert(number, Arc::new(chunk));
        assert!(before.is_none(), "a chunk that leaves is in memory");
        self.count.store(chunks.len(), Ordering::SeqCst);
    }

    /// The note of a chunk, asked for after it was found absent.
    pub(crate) fn get(&self, number: u64) -> Option<Arc<LoggedChunk>> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return None;
        }
        self.locked().get(&number).cloned()
    }

    /// Those that a start has left.
    pub(crate) fn of_start(&self) -> BTreeMap<u64, Arc<LoggedChunk>> {
        if self.count.load(Ordering::SeqCst) == 0 {
            return BTreeMap::new();
        }
        let mut chunks = self.locked().clone();
        chunks.retain(|_, chunk| chunk.origin == NoteOrigin::Start);
        chunks
    }

    /// The table was dropped: no checkpoint will have them, and nobody is to take one for them.
    pub(crate) fn uncount(&self) {
        self.is_dropped.store(true, Ordering::SeqCst);
        self.locked().values().for_each(|chunk| chunk.uncount());
    }

    /// Was the table dropped? Then the next checkpoint does not have it.
    pub(crate) fn is_dropped(&self) -> bool {
        self.is_dropped.load(Ordering::SeqCst)
    }

    /// Those behind a chunk, in their order, `most` at the most.
    pub(crate) fn after(&self, number: u64, most: usize) -> Vec<(u64, Arc<LoggedChunk>)> {
        let chunks = self.locked();
        let behind = chunks.range(number.saturating_add(1)..).take(most);
        behind
            .map(|(number, chunk)| (*number, Arc::clone(chunk)))
            .collect()
    }

    /// Calls `bring`, which puts a chunk's rows in, and says whether it did: then the note goes. It is not called if
    /// that is not the chunk's note any more (L2).
    pub(crate) fn bring(
        &self,
        number: u64,
        chunk: &Arc<LoggedChunk>,
        bring: impl FnOnce() -> bool,
    ) -> bool {
        let mut chunks = self.locked();
        let is_it = chunks
            .get(&number)
            .is_some_and(|noted| Arc::ptr_eq(noted, chunk));
        let brought = is_it && bring();
        if brought {
            if let Some(chunk) = chunks.remove(&number) {
                chunk.uncount();
            }
            self.count.store(chunks.len(), Ordering::SeqCst);
        }
        brought
    }

    /// The newest checkpoint has the chunk: calls `note`, which notes what that has of it, and lets go of the note, if
    /// it is still there.
    pub(crate) fn written(&self, number: u64, note: impl FnOnce()) {
        let mut chunks = self.locked();
        note();
        if let Some(chunk) = chunks.remove(&number) {
            chunk.uncount();
        }
        self.count.store(chunks.len(), Ordering::SeqCst);
    }
}
