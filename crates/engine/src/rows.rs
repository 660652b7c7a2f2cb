//! Row slots by rid, in chunks of 64.
//!
//! Chunks hang in buckets that double in size and are made when first needed; nothing moves, so a chunk is found with
//! two loads and no lock. Its shell stays; its slots may be absent ([`crate::version`]). A rid is handed out again only
//! after its row's deletion is below the horizon and every snapshot, and its index entries are gone (T1), or when its
//! insert was undone. Which one an insert gets, and what that has to do with virtual partitions, is told in [`rids`].

mod rids;
mod uncertain_slots;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::chunk_tail::{ChunkTail, ChunkTails};
use crate::logged_chunks::{LoggedChunk, LoggedChunks};
use crate::memory::{Memory, footprint};
use crate::stored_checkpoint::StoredCheckpoint;
use logstead_types::{Rid, TableId};
use rids::{Parts, RidAllocator};
use uncertain_slots::UncertainSlots;

use crate::version::{
    Absence, CHUNK_SLOTS, Chunk, Guard, SHELL_BYTES, SlotSet, SlotsAbsent, UnsharedSlots,
    VersionRef,
};

/// Buckets of chunks: the n-th holds 2^n chunks.
const BUCKETS: usize = 40;

type Bucket = Box<[OnceLock<Box<Chunk>>]>;

/// The slots of one table, and which rids are free.
pub(crate) struct TableRows {
    /// Whose rows they are.
    pub(crate) table: TableId,
    buckets: [OnceLock<Bucket>; BUCKETS],
    /// Which rids are free, if the table is not divided.
    rids: RidAllocator,
    /// Which are in each virtual partition, if it is.
    parts: OnceLock<Box<Parts>>,
    /// Nothing of it, nor of its indexes, is ever evicted.
    stays: AtomicBool,
    /// The end that the start's checkpoint tells: all chunks below were made, absent, whether it has them or not.
    expected_end: AtomicU64,
    /// Of a temporary table.
    temporary: bool,
    /// Of a table that all instances read alike: reads of it are nobody's.
    is_replicated: AtomicBool,
    /// Another server hands out its rids, and says by its log which are in use.
    is_followed: AtomicBool,
    /// What the log behind the checkpoint says of chunks that are still absent.
    pub(crate) tails: ChunkTails,
    /// Chunks that have left with changes that only the log has.
    pub(crate) logged: LoggedChunks,
    /// What is not known of chunks that could not be read.
    pub(crate) doubts: UncertainSlots,
    /// Of the past: where they are read from. They never change, and a chunk that is not there is made absent when
    /// somebody looks for it.
    past: Option<Box<StoredCheckpoint>>,
    /// Where it all is counted.
    memory: &'static Memory,
}

/// Which bucket, and where in it.
#[inline]
fn place(rid: Rid) -> (usize, usize, usize) {
    let chunk = rid.0 / CHUNK_SLOTS as u64 + 1;
    let bucket = chunk.ilog2() as usize;
    (
        bucket,
        (chunk - (1 << bucket)) as usize,
        (rid.0 % CHUNK_SLOTS as u64) as usize,
    )
}

/// The first rid that no bucket has room for.
pub(crate) const RID_MAX: u64 = ((1 << BUCKETS) - 1) * CHUNK_SLOTS as u64;

/// What a checkpoint has of a chunk.
pub(crate) struct CheckpointedSlots {
    /// The slots with a row.
    pub(crate) saved: SlotSet,
    /// Slots without one of which that was doubtful.
    pub(crate) empty: SlotSet,
}

impl TableRows {
    pub(crate) fn new(table: TableId, memory: &'static Memory) -> TableRows {
        TableRows {
            table,
            memory,
            buckets: [const { OnceLock::new() }; BUCKETS],
            rids: RidAllocator::new(memory),
            parts: OnceLock::new(),
            stays: AtomicBool::new(false),
            expected_end: AtomicU64::new(0),
            temporary: false,
            is_replicated: AtomicBool::new(false),
            is_followed: AtomicBool::new(false),
            tails: ChunkTails::default(),
            logged: LoggedChunks::default(),
            doubts: UncertainSlots::default(),
            past: None,
        }
    }

    /// Reads of it are nobody's from now on.
    pub(crate) fn replicate(&self) {
        self.is_replicated.store(true, Ordering::Relaxed);
    }

    /// Do all instances read it alike?
    #[inline]
    pub(crate) fn is_replicated(&self) -> bool {
        self.is_replicated.load(Ordering::Relaxed)
    }

    /// Those that a checkpoint has, below `rid_end`, to be read and never changed.
    pub(crate) fn of_past(
        table: TableId,
        memory: &'static Memory,
        stored: StoredCheckpoint,
        rid_end: u64,
    ) -> TableRows {
        let mut rows = TableRows::new(table, memory);
        rows.past = Some(Box::new(stored));
        rows.rids.begin_at(rid_end.min(RID_MAX));
        rows
    }

    /// Those of a temporary table: no checkpoint has them, so they stay in memory.
    pub(crate) fn temporary(table: TableId, memory: &'static Memory) -> TableRows {
        let mut rows = TableRows::new(table, memory);
        rows.temporary = true;
        *rows.stays.get_mut() = true;
        rows
    }

    /// Are they a temporary table's? Then nobody but its session reads or writes them.
    #[inline]
    pub(crate) fn is_temporary(&self) -> bool {
        self.temporary
    }

    /// The checkpoint that they are read from, if they are of the past.
    #[inline]
    pub(crate) fn past(&self) -> Option<&StoredCheckpoint> {
        self.past.as_deref()
    }

    /// Whose memory they are.
    pub(crate) fn memory(&self) -> &'static Memory {
        self.memory
    }

    /// From now on nothing of it is evicted.
    pub(crate) fn stay(&self) {
        self.stays.store(true, Ordering::SeqCst);
    }

    /// From now on they are as another server's log says: no rid is handed out here, so none is listed as free.
    pub(crate) fn follow(&self) {
        self.is_followed.store(true, Ordering::SeqCst);
    }

    /// Is nothing of it evicted?
    #[inline]
    pub(crate) fn stays(&self) -> bool {
        self.stays.load(Ordering::SeqCst)
    }

    /// The chunk of a rid, if it exists, and the slot in it.
    #[inline]
    pub(crate) fn slot(&self, rid: Rid) -> Option<(&Chunk, usize)> {
        if rid.0 >= RID_MAX {
            return None;
        }
        let (bucket, chunk, slot) = place(rid);
        Some((self.buckets[bucket].get()?[chunk].get()?, slot))
    }

    /// A bucket, made if needed.
    #[inline]
    fn bucket(&self, n: usize) -> &Bucket {
        self.buckets[n].get_or_init(|| {
            self.memory.add(bucket_bytes(n) as i64);
            (0..1usize << n).map(|_| OnceLock::new()).collect()
        })
    }

    /// The chunk of a rid, made if needed. `rid` is below `RID_MAX`.
    #[inline]
    pub(crate) fn slot_or_new(&self, rid: Rid) -> (&Chunk, usize) {
        let (bucket, chunk, slot) = place(rid);
        let chunk = self.bucket(bucket)[chunk].get_or_init(|| Box::new(Chunk::new(self.memory)));
        (chunk, slot)
    }

    /// The `number`-th chunk, present or absent, if the table has it.
    #[inline]
    pub(crate) fn chunk(&self, number: u64) -> Option<&Chunk> {
        let rid = number.checked_mul(CHUNK_SLOTS as u64)?;
        Some(self.slot(Rid(rid))?.0)
    }

    /// How many chunks there may be, with gaps.
    pub(crate) fn chunk_end(&self) -> u64 {
        self.rid_end().div_ceil(CHUNK_SLOTS as u64)
    }

    /// The `number`-th chunk, made absent if needed.
    fn chunk_or_absent(&self, number: u64) -> &Chunk {
        let (bucket, chunk, _) = place(Rid(number * CHUNK_SLOTS as u64));
        self.bucket(bucket)[chunk].get_or_init(|| Box::new(Chunk::absent(self.memory)))
    }

    /// The start: the chunks below `rid_end` are in the checkpoint, and absent.
    pub(crate) fn expect(&self, rid_end: u64) {
        let rid_end = rid_end.min(RID_MAX);
        for number in 0..rid_end.div_ceil(CHUNK_SLOTS as u64) {
            self.chunk_or_absent(number);
        }
        self.expected_end.fetch_max(rid_end, Ordering::Relaxed);
        if let Some(last) = rid_end.checked_sub(1) {
            self.claim_rid(Rid(last));
        }
    }

    /// The same of a table that is divided: the chunks of which each partition has handed out row numbers, so many. If
    /// they are for other partitions, all below `rid_end`.
    pub(crate) fn expect_divided(&self, rid_end: u64, partitions: &[u64]) {
        if !self.begin_divided_at(partitions) {
            return self.expect(rid_end);
        }
        self.own_chunks().for_each(|number| {
            self.chunk_or_absent(number);
        });
    }

    /// Those of some rows of a chunk that are absent.
    pub(crate) fn absent_of(&self, number: u64, slots: &SlotSet) -> SlotSet {
        let chunk = match self.past {
            Some(_) if self.was_handed_out(Rid(number * CHUNK_SLOTS as u64)) => {
                Some(self.chunk_or_absent(number))
            }
            _ => self.chunk(number),
        };
        // Of one into which something is being brought nothing is known.
        let absence = chunk.and_then(|chunk| chunk.absence(&Guard::pin()));
        absence.map_or(SlotSet::NONE, |absence| absence.slots().both(slots))
    }

    /// How many chunks there are, and of how many there is something in memory.
    pub(crate) fn chunk_counts(&self) -> (u64, u64) {
        let chunks = (0..self.chunk_end()).filter_map(|number| self.chunk(number));
        chunks.fold((0, 0), |(all, present), chunk| {
            (all + 1, present + u64::from(chunk.is_present()))
        })
    }

    /// Replay: puts slots in the `number`-th chunk of the table, which the checkpoint does not have.
    pub(crate) fn adopt(&self, number: u64, slots: UnsharedSlots) -> &Chunk {
        let chunk = self.chunk_or_absent(number);
        let guard = Guard::pin();
        let absence = chunk.absence(&guard);
        let (all, saved) = (&SlotSet::ALL, &SlotSet::NONE);
        let adopted =
            absence.and_then(|at| chunk.bring_with_empty(&at, slots, all, (saved, saved), &guard));
        assert!(
            adopted == Some(SlotSet::ALL),
            "a chunk is filled by one part only"
        );
        chunk
    }

    /// Replay: keeps what the log says of the `number`-th chunk, which the checkpoint has, until somebody brings that
    /// in.
    pub(crate) fn keep_tail(&self, number: u64, tail: ChunkTail) {
        let Some(last) = tail.rid_end().0.checked_sub(1) else {
            return;
        };
        let chunk = self.chunk_or_absent(number);
        self.claim_rid(Rid(last));
        self.tails.keep(number, tail);
        chunk.set_changed();
    }

    /// Brings rows of a chunk back that were absent then, those of `wanted`, as the newest checkpoint has them; that
    /// has a row in the slots of `saved`, and none in those of `empty`, which were doubtful. If there is a log's tail,
    /// all that it has touched are wanted, and it is over them (`over`). Tells which slots are there now; `None`:
    /// somebody else was quicker, and what was read may be stale.
    pub(crate) fn bring(
        &self,
        number: u64,
        absence: &Absence,
        rows: UnsharedSlots,
        wanted: &SlotSet,
        CheckpointedSlots { saved, empty }: &CheckpointedSlots,
        over: Option<&Arc<ChunkTail>>,
    ) -> Option<SlotSet> {
        let chunk = self.chunk(number)?;
        // What is not wanted is as the checkpoint has it.
        let filled = rows.filled().both(wanted).union(&saved.minus(wanted));
        let empty = &empty.both(absence.slots());
        let mut brought = None;
        self.tails.bring(number, over, || {
            let stored = (saved, empty);
            brought = chunk.bring_with_empty(absence, rows, wanted, stored, &Guard::pin());
            brought.is_some()
        });
        if brought.is_some() {
            if chunk.take_unlisted() {
                self.list_free(number, &filled);
            } else {
                let first = number * CHUNK_SLOTS as u64;
                self.list_rids(number, empty.iter().map(|slot| Rid(first + slot as u64)));
            }
        }
        brought
    }

    /// The start: there is no room for what the log says of the `number`-th chunk, of which it has touched these slots.
    pub(crate) fn keep_of_start(&self, number: u64, logged: LoggedChunk) {
        let Some(last) = logged.dirty.iter().last() else {
            return;
        };
        let chunk = self.chunk_or_absent(number);
        self.claim_rid(Rid(number * CHUNK_SLOTS as u64 + last as u64));
        self.logged.keep(number, logged);
        chunk.set_changed();
    }

    /// Brings rows of a chunk back that has left with changes that only the log has: those of `wanted`, which has all
    /// that are not as the newest checkpoint has them. `saved`: the slots with a row in that, for one of which nothing
    /// was in memory before. False: somebody else was quicker, and what was read may be stale.
    pub(crate) fn bring_logged(
        &self,
        number: u64,
        absence: &Absence,
        rows: UnsharedSlots,
        (wanted, saved): (&SlotSet, &SlotSet),
        logged: &Arc<LoggedChunk>,
    ) -> bool {
        let Some(chunk) = self.chunk(number) else {
            return false;
        };
        let filled = rows.filled().both(wanted).union(&saved.minus(wanted));
        let first = number * CHUNK_SLOTS as u64;
        let brought = self.logged.bring(number, logged, || {
            let stored = (saved, &SlotSet::NONE);
            let guard = Guard::pin();
            let brought = chunk.bring_with_empty(absence, rows, wanted, stored, &guard);
            if brought.is_some() && self.tails.is_starting() {
                // Whoever makes an index has looked for notes before.
                let touched = logged.dirty.iter().map(|slot| Rid(first + slot as u64));
                self.tails.add_touched(touched);
            }
            brought.is_some()
        });
        if brought && chunk.take_unlisted() {
            self.list_free(number, &filled);
        }
        brought
    }

    /// The newest checkpoint has what the log's tail of a chunk said, or what only the log had of it: rows in the slots
    /// of `present`, but for those that are `doubtful`.
    pub(crate) fn tail_is_written(
        &self,
        number: u64,
        chunk: &Chunk,
        present: &SlotSet,
        doubtful: &SlotSet,
    ) {
        // Before anybody can compare.
        self.doubts.add(number, doubtful);
        self.logged.written(number, || {
            self.tails.written(number, || chunk.learn_saved(present));
        });
    }

    /// What the chunks count as rows with shared locks.
    pub(crate) fn shared_count(&self) -> usize {
        let buckets = self.buckets.iter().filter_map(OnceLock::get);
        let chunks = buckets.flat_map(|b| b.iter().filter_map(OnceLock::get));
        chunks.map(|chunk| chunk.shared_count()).sum()
    }

    /// The newest version of a row.
    #[inline]
    pub(crate) fn head<'g>(
        &self,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, AbsentRow> {
        let Some((chunk, slot)) = self.slot(rid) else {
            return self.without_chunk(rid);
        };
        let absent = |SlotsAbsent| AbsentRow(rid);
        chunk.head(slot, guard).map_err(absent)
    }

    /// The same for who is no reason to keep the row in memory.
    pub(crate) fn peek<'g>(
        &self,
        rid: Rid,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, AbsentRow> {
        let Some((chunk, slot)) = self.slot(rid) else {
            return self.without_chunk(rid);
        };
        let absent = |SlotsAbsent| AbsentRow(rid);
        chunk.peek(slot, guard).map_err(absent)
    }

    /// What is in a slot whose chunk was never made: nothing, or, of the past, what is to be read.
    #[cold]
    fn without_chunk<T>(&self, rid: Rid) -> Result<Option<T>, AbsentRow> {
        if self.past.is_none() || !self.was_handed_out(rid) {
            return Ok(None);
        }
        self.chunk_or_absent(rid.0 / CHUNK_SLOTS as u64);
        Err(AbsentRow(rid))
    }
}

impl Drop for TableRows {
    fn drop(&mut self) {
        let buckets = self.buckets.iter().enumerate();
        let made = buckets.filter(|(_, bucket)| bucket.get().is_some());
        let bytes: usize = made.map(|(n, _)| bucket_bytes(n)).sum();
        let parts = self.parts.get().map_or(0, |_| Parts::memory_bytes());
        self.memory.add(-((bytes + parts) as i64));
    }
}

/// What a table with so many row ids takes when all of its chunks are absent ([`TableRows::expect`]).
pub(crate) fn absent_bytes(rid_end: u64) -> u64 {
    let Some(last) = rid_end.min(RID_MAX).checked_sub(1) else {
        return 0;
    };
    let buckets: u64 = (0..=place(Rid(last)).0)
        .map(|n| bucket_bytes(n) as u64)
        .sum();
    buckets + (last / CHUNK_SLOTS as u64 + 1) * SHELL_BYTES as u64
}

/// What the n-th bucket takes without its chunks.
fn bucket_bytes(n: usize) -> usize {
    footprint(size_of::<OnceLock<Box<Chunk>>>() << n)
}

/// A row that is not in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AbsentRow(pub(crate) Rid);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::UNLIMITED;
    use logstead_types::PartitionId;

    /// A table that is not divided does not care.
    const ALONE: PartitionId = PartitionId(0);

    #[test]
    fn absent_chunks_take_what_they_are_said_to_take() {
        for rid_end in [0, 1, 63, 64, 65, 128, 5_000, 100_000] {
            let account = crate::memory::Account::open(u64::MAX);
            let memory = account.memory();
            let rows = TableRows::new(TableId(1), memory);
            let before = memory.used_bytes();
            rows.expect(rid_end);
            assert_eq!(
                memory.used_bytes() - before,
                absent_bytes(rid_end),
                "{rid_end}"
            );
        }
    }

    /// Free row numbers in a chunk that cannot be read fail no insert; when it has been read they are used again, with
    /// those that became free meanwhile.
    #[test]
    fn what_is_in_a_chunk_aside_is_given_to_nobody() {
        let rows = TableRows::new(TableId(1), &UNLIMITED);
        for _ in 0..130 {
            rows.fresh_rid(ALONE);
        }
        for rid in [3, 70, 4] {
            rows.free_rid(Rid(rid));
        }
        rows.quarantine(0);
        rows.quarantine(0);
        rows.free_rid(Rid(5));
        rows.free_rid(Rid(71));
        let given = [(); 4].map(|()| rows.allocate_rid(ALONE).0);
        assert_eq!(given, [71, 70, 130, 131]);
        rows.take_back(1);
        assert_eq!(rows.allocate_rid(ALONE), Rid(132));
        rows.take_back(0);
        let mut given = [(); 3].map(|()| rows.allocate_rid(ALONE).0);
        given.sort_unstable();
        assert_eq!(given, [3, 4, 5]);
        assert_eq!(rows.allocate_rid(ALONE), Rid(133));
    }

    /// Nor are those of the last chunk that nobody has had yet; when it has been read each is given out once.
    #[test]
    fn the_rest_of_a_last_chunk_is_aside_with_it() {
        let rows = TableRows::new(TableId(1), &UNLIMITED);
        for _ in 0..74 {
            rows.fresh_rid(ALONE);
        }
        rows.quarantine(0);
        assert_eq!(rows.rid_end(), 74, "it is not the last one");
        rows.quarantine(1);
        assert_eq!(rows.fresh_rid(ALONE), Rid(128));
        rows.take_back(1);
        let given: Vec<u64> = (0..55).map(|_| rows.allocate_rid(ALONE).0).collect();
        let expected: Vec<u64> = (74..128).chain([129]).collect();
        assert_eq!(given, expected);
    }

    #[test]
    fn every_rid_has_its_own_place() {
        assert_eq!(place(Rid(0)), (0, 0, 0));
        assert_eq!(place(Rid(63)), (0, 0, 63));
        assert_eq!(place(Rid(64)), (1, 0, 0));
        assert_eq!(place(Rid(128)), (1, 1, 0));
        assert_eq!(place(Rid(3 * 64)), (2, 0, 0));
        assert_eq!(place(Rid(RID_MAX - 1)).0, BUCKETS - 1);
        let rows = TableRows::new(TableId(1), &UNLIMITED);
        assert!(rows.slot(Rid(300)).is_none());
        assert!(rows.slot(Rid(u64::MAX)).is_none());
        rows.slot_or_new(Rid(300));
        assert!(rows.slot(Rid(301)).is_some());
    }
}
