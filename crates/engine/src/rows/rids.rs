//! Row numbers: which are free, and which one an insert gets.
//!
//! A table that is not divided hands its numbers out one after the other. In a divided table the `n`-th chunk belongs
//! to the virtual partition `n` modulo their number, so a row's partition follows from its number, and each partition
//! has an allocator on cache lines of its own: which of the partition's numbers were never handed out, and which are
//! free again. A partition counts its own numbers without gaps ([`RidSpace`]); those of its chunks, one behind the
//! other.
//!
//! Where a row lies is a hint for locality. A row that is elsewhere than its key says, because that was changed or
//! because an older version of the program put it there, is found like any other.
//!
//! # Gaps
//!
//! Partitions grow unevenly, so chunk numbers of a divided table have gaps: numbers below the end of the table that
//! were never handed out. No chunk is made for them while the table is in use. What a gap costs is its place in a
//! bucket, and a look by whoever goes over all chunks. A checkpoint says how many numbers each partition has handed
//! out, so a start makes no shells for gaps either.
//!
//! # Divided while it is used
//!
//! A server divides a table before the first row is inserted in its life. A replica gets rows from the log meanwhile:
//! it hands out no numbers, and [`TableRows::claim_rid`] looks once more whether the table was divided after it has
//! claimed, as whoever divides looks once more for what was claimed.

use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use logstead_checkpoint::DividedTable;
use logstead_types::{PartitionId, Rid};
use parking_lot::Mutex;

use super::{RID_MAX, TableRows, bucket_bytes, place};
use crate::memory::{Charge, Memory, footprint};
use crate::partition::{DistributionKey, VIRTUAL_PARTITIONS, partition_of};
use crate::row::RowRef;
use crate::version::{CHUNK_BYTES, CHUNK_SLOTS, Guard, SlotSet};

const SLOTS: u64 = CHUNK_SLOTS as u64;
const PARTITIONS: u64 = VIRTUAL_PARTITIONS as u64;

/// Hands out row numbers. It counts them by their place in its [`RidSpace`].
pub(super) struct RidAllocator {
    /// The first one never handed out.
    next: AtomicU64,
    /// That when this life began.
    fresh_from: AtomicU64,
    free: Mutex<FreeRids>,
    /// How many are in there: spares inserts the mutex while there are none.
    free_count: AtomicU64,
}

/// Rids to be handed out again, last one first.
struct FreeRids {
    rids: Vec<Rid>,
    /// Chunks that were never made, all of whose rids are free: used when there are no others.
    chunks: Vec<u64>,
    charge: Charge,
}

impl FreeRids {
    /// Counts what the lists take after they have changed. How many rids are free now.
    #[inline]
    fn settle(&mut self) -> u64 {
        let bytes =
            self.rids.capacity() * size_of::<Rid>() + self.chunks.capacity() * size_of::<u64>();
        self.charge.force(footprint(bytes));
        self.count()
    }

    fn count(&self) -> u64 {
        self.rids.len() as u64 + self.chunks.len() as u64 * SLOTS
    }

    fn pop(&mut self) -> Option<Rid> {
        if self.rids.is_empty()
            && let Some(number) = self.chunks.pop()
        {
            let slots = (0..SLOTS).rev();
            self.rids
                .extend(slots.map(|slot| Rid(number * SLOTS + slot)));
            self.settle();
        }
        self.rids.pop()
    }
}

impl RidAllocator {
    pub(super) fn new(memory: &'static Memory) -> RidAllocator {
        RidAllocator {
            next: AtomicU64::new(0),
            fresh_from: AtomicU64::new(0),
            free: Mutex::new(FreeRids {
                rids: Vec::new(),
                chunks: Vec::new(),
                charge: memory.charge(),
            }),
            free_count: AtomicU64::new(0),
        }
    }

    /// So many count as handed out. Nobody uses it yet.
    pub(super) fn begin_at(&mut self, next: u64) {
        *self.next.get_mut() = next;
    }

    /// Changes the list of those that are free.
    #[inline]
    fn change_free<T>(&self, change: impl FnOnce(&mut FreeRids) -> T) -> T {
        let mut free = self.free.lock();
        let changed = change(&mut free);
        self.free_count.store(free.settle(), Ordering::Relaxed);
        changed
    }
}

/// The allocators of a divided table, and the key that says which of them a row's number comes from.
pub(super) struct Parts {
    /// Known once the table is opened: a checkpoint tells of the partitions before.
    key: OnceLock<Arc<dyn DistributionKey>>,
    allocators: [CachePadded<RidAllocator>; VIRTUAL_PARTITIONS as usize],
}

impl Parts {
    fn new(memory: &'static Memory) -> Parts {
        Parts {
            key: OnceLock::new(),
            allocators: std::array::from_fn(|_| CachePadded::new(RidAllocator::new(memory))),
        }
    }

    /// What they take, without what is free.
    pub(super) fn memory_bytes() -> usize {
        footprint(size_of::<Parts>())
    }
}

/// The numbers of a table, or of one of its partitions, by their places.
#[derive(Clone, Copy)]
struct RidSpace<'t> {
    allocator: &'t RidAllocator,
    /// Its first chunk.
    first: u64,
    /// From one of its chunks to the next.
    stride: u64,
}

impl RidSpace<'_> {
    /// The number at a place.
    #[inline]
    fn rid(&self, place: u64) -> Rid {
        let number = (place / SLOTS)
            .saturating_mul(self.stride)
            .saturating_add(self.first);
        Rid(number.saturating_mul(SLOTS).saturating_add(place % SLOTS))
    }

    /// The place of one of its numbers.
    #[inline]
    fn place(&self, rid: Rid) -> u64 {
        (rid.0 / SLOTS - self.first) / self.stride * SLOTS + rid.0 % SLOTS
    }

    /// How many of its numbers are below `end`, a number of any space.
    fn places_below(&self, end: u64) -> u64 {
        let (chunks, rest) = (end / SLOTS, end % SLOTS);
        let whole = chunks.saturating_sub(self.first).div_ceil(self.stride);
        let is_own = chunks >= self.first && (chunks - self.first).is_multiple_of(self.stride);
        whole * SLOTS + if is_own { rest } else { 0 }
    }

    /// Chunks of which numbers were handed out.
    fn chunk_count(&self) -> u64 {
        let places = self.allocator.next.load(Ordering::SeqCst);
        places.div_ceil(SLOTS)
    }

    /// All of its numbers that were handed out are below this.
    #[inline]
    fn end(&self) -> u64 {
        match self.allocator.next.load(Ordering::SeqCst) {
            0 => 0,
            places => self.rid(places - 1).0 + 1,
        }
    }

    /// How many slots of one of its chunks had been handed out when this life began.
    fn known_slots(&self, number: u64) -> u64 {
        self.slots_below(number, self.allocator.fresh_from.load(Ordering::Relaxed))
    }

    /// How many slots of one of its chunks are below a place.
    fn slots_below(&self, number: u64, place: u64) -> u64 {
        let first = self.place(Rid(number * SLOTS));
        place.saturating_sub(first).min(SLOTS)
    }

    #[inline]
    fn allocate(&self) -> Rid {
        let allocator = self.allocator;
        if allocator.free_count.load(Ordering::Relaxed) > 0 {
            let mut free = allocator.free.lock();
            if let Some(rid) = free.pop() {
                allocator.free_count.store(free.count(), Ordering::Relaxed);
                return rid;
            }
        }
        self.fresh()
    }

    fn fresh(&self) -> Rid {
        self.rid(self.allocator.next.fetch_add(1, Ordering::SeqCst))
    }

    fn claim(&self, rid: Rid) {
        let end = self.place(rid) + 1;
        self.allocator.next.fetch_max(end, Ordering::SeqCst);
    }
}

impl TableRows {
    /// From now on the row numbers of inserts come from the partitions of their distribution keys. Once more changes
    /// nothing. Nobody inserts yet.
    pub(crate) fn divide(&self, key: Arc<dyn DistributionKey>) {
        let parts = self.parts.get_or_init(|| {
            self.memory.add(Parts::memory_bytes() as i64);
            Box::new(self.divided())
        });
        parts.key.get_or_init(|| key);
        // What was claimed since is claimed in its partition, here or by who claimed it.
        fence(Ordering::SeqCst);
        let end = self.rids.next.load(Ordering::SeqCst);
        if self.is_followed.load(Ordering::SeqCst) {
            for (partition, allocator) in parts.allocators.iter().enumerate() {
                let space = part(allocator, partition as u64);
                let places = space.places_below(end);
                space.allocator.next.fetch_max(places, Ordering::SeqCst);
            }
        }
    }

    /// The partitions with what was handed out, and is free, so far.
    fn divided(&self) -> Parts {
        let parts = Parts::new(self.memory);
        let allocators = &parts.allocators;
        let end = self.rid_end();
        // At a replica a chunk that was claimed may not be there yet. After a start there is a shell for each number
        // below the checkpoint's end.
        let dense_end = match self.is_followed.load(Ordering::SeqCst) {
            true => end,
            false => self.expected_end.load(Ordering::Relaxed),
        };
        for (partition, allocator) in allocators.iter().enumerate() {
            let space = part(allocator, partition as u64);
            let places = space.places_below(dense_end);
            allocator.next.store(places, Ordering::SeqCst);
        }
        // Behind it there are chunks for rows of the log's tail alone.
        for number in (0..self.chunk_end()).filter(|number| self.chunk(*number).is_some()) {
            let partition = number % PARTITIONS;
            let space = part(&allocators[partition as usize], partition);
            let last = ((number + 1) * SLOTS).min(end).saturating_sub(1);
            space.claim(Rid(last));
        }
        self.rids.change_free(|free| {
            free.chunks = Vec::new();
            for rid in std::mem::take(&mut free.rids) {
                if self.slot(rid).is_some() {
                    let partition = (rid.0 / SLOTS % PARTITIONS) as usize;
                    allocators[partition].change_free(|free| free.rids.push(rid));
                }
            }
        });
        for allocator in allocators {
            let next = allocator.next.load(Ordering::SeqCst);
            allocator.fresh_from.store(next, Ordering::Relaxed);
        }
        parts
    }

    /// The start: so many row numbers of each partition were handed out. False: they are for other partitions. Nobody
    /// uses the table yet.
    pub(crate) fn begin_divided_at(&self, partitions: &[u64]) -> bool {
        let Ok(places): Result<&[u64; VIRTUAL_PARTITIONS as usize], _> = partitions.try_into()
        else {
            return false;
        };
        self.parts.get_or_init(|| {
            self.memory.add(Parts::memory_bytes() as i64);
            let parts = Parts::new(self.memory);
            for (allocator, places) in parts.allocators.iter().zip(places) {
                // Row numbers end at `RID_MAX`.
                let most = RID_MAX / PARTITIONS / SLOTS * SLOTS;
                allocator.next.store(*places.min(&most), Ordering::SeqCst);
            }
            Box::new(parts)
        });
        true
    }

    /// What a checkpoint says of a divided table.
    pub(crate) fn divided_as(&self) -> Option<DividedTable> {
        let parts = self.parts.get()?;
        let next = |allocator: &CachePadded<RidAllocator>| allocator.next.load(Ordering::SeqCst);
        Some(DividedTable {
            table: self.table,
            partitions: parts.allocators.iter().map(next).collect(),
        })
    }

    /// The chunks of which row numbers were handed out, space by space.
    pub(super) fn own_chunks(&self) -> impl Iterator<Item = u64> + '_ {
        self.spaces().flat_map(|space| {
            let chunks = 0..space.chunk_count();
            chunks.map(move |chunk| space.rid(chunk * SLOTS).0 / SLOTS)
        })
    }

    /// How many there are of them.
    pub(crate) fn own_chunk_count(&self) -> u64 {
        self.spaces().map(|space| space.chunk_count()).sum()
    }

    /// The `n`-th of them.
    pub(crate) fn own_chunk(&self, mut n: u64) -> Option<u64> {
        for space in self.spaces() {
            let count = space.chunk_count();
            if n < count {
                return Some(space.rid(n * SLOTS).0 / SLOTS);
            }
            n -= count;
        }
        None
    }

    /// Was this row number handed out?
    pub(super) fn was_handed_out(&self, rid: Rid) -> bool {
        let space = self.space(rid.0 / SLOTS);
        space.place(rid) < space.allocator.next.load(Ordering::SeqCst)
    }

    /// Do rows get their places by a key?
    #[inline]
    pub(crate) fn is_divided(&self) -> bool {
        self.parts.get().is_some()
    }

    /// The virtual partition that a row belongs to: that of its chunk, or, if the table is not divided, the table's.
    #[inline]
    pub(crate) fn partition_of(&self, rid: Rid) -> PartitionId {
        match self.parts.get() {
            None => self.home_partition(),
            Some(_) => PartitionId((rid.0 / SLOTS % PARTITIONS) as u16),
        }
    }

    /// The virtual partition of what of the table is not divided.
    #[inline]
    pub(crate) fn home_partition(&self) -> PartitionId {
        PartitionId((u64::from(self.table.0) % PARTITIONS) as u16)
    }

    /// The virtual partition in which a new row is to lie. `key` is for the key.
    pub(crate) fn partition_for(&self, row: &[u8], key: &mut Vec<u8>) -> PartitionId {
        let Some(parts) = self.parts.get() else {
            return self.home_partition();
        };
        key.clear();
        let distribution = parts.key.get();
        match distribution.is_some_and(|d| d.distribution_key(RowRef::new(row), key)) {
            true => partition_of(key),
            false => PartitionId(0),
        }
    }

    /// Where the numbers of a chunk come from.
    #[inline]
    fn space(&self, number: u64) -> RidSpace<'_> {
        match self.parts.get() {
            None => RidSpace {
                allocator: &self.rids,
                first: 0,
                stride: 1,
            },
            Some(parts) => {
                let partition = number % PARTITIONS;
                part(&parts.allocators[partition as usize], partition)
            }
        }
    }

    /// All of them.
    fn spaces(&self) -> impl Iterator<Item = RidSpace<'_>> {
        let count = if self.is_divided() { PARTITIONS } else { 1 };
        (0..count).map(|number| self.space(number))
    }

    /// Every slot ever used and not free.
    pub(crate) fn used(&self) -> u64 {
        let used = |space: RidSpace<'_>| {
            let free = space.allocator.free_count.load(Ordering::Relaxed);
            let next = space.allocator.next.load(Ordering::Relaxed);
            next.saturating_sub(free)
        };
        self.spaces().map(used).sum()
    }

    /// Every rid handed out so far is below this.
    #[inline]
    pub(crate) fn rid_end(&self) -> u64 {
        match self.parts.get() {
            None => self.rids.next.load(Ordering::SeqCst),
            Some(_) => self.spaces().map(|space| space.end()).max().unwrap_or(0),
        }
    }

    /// The first number from `rid` on that may be in use: whole chunks that were never made are passed over.
    #[inline]
    pub(crate) fn next_in_use(&self, rid: u64, end: u64) -> u64 {
        if !rid.is_multiple_of(SLOTS) {
            return rid;
        }
        let is_used = |number: u64| match self.past {
            // Chunks are made when somebody looks for them.
            Some(_) => self.was_handed_out(Rid(number * SLOTS)),
            None => self.chunk(number).is_some(),
        };
        let mut number = rid / SLOTS;
        while number * SLOTS < end && !is_used(number) {
            number += 1;
        }
        number * SLOTS
    }

    /// The slots that may have a row in the checkpoint, of a chunk of which the others, `known`, can be read alone.
    pub(crate) fn unknown(&self, number: u64, known: &SlotSet) -> SlotSet {
        let space = self.space(number);
        let slots = match self.past {
            Some(_) => {
                let handed_out = space.allocator.next.load(Ordering::SeqCst);
                space.slots_below(number, handed_out)
            }
            None => space.known_slots(number),
        };
        let mut unknown = SlotSet::NONE;
        for slot in 0..slots {
            unknown.insert(slot as usize);
        }
        unknown.minus(known)
    }

    /// Lists the free slots of a chunk that has come for the first time in this life, with these rows.
    pub(super) fn list_free(&self, number: u64, filled: &SlotSet) {
        // Nobody has got a rid of it in this life, so what holds no row now is free.
        let first = number * SLOTS;
        let end = self.space(number).known_slots(number) as usize;
        let empty = (0..end).rev().filter(|slot| !filled.contains(*slot));
        self.list_rids(number, empty.map(|slot| Rid(first + slot as u64)));
    }

    /// Puts free row numbers of a chunk in the list, the last of them to be used first.
    pub(super) fn list_rids(&self, number: u64, rids: impl Iterator<Item = Rid>) {
        if self.is_followed.load(Ordering::SeqCst) {
            return;
        }
        let allocator = self.space(number).allocator;
        allocator.change_free(|free| free.rids.extend(rids));
    }

    /// A chunk cannot be read: no insert gets a row number in it, a free one or one that was never handed out.
    pub(crate) fn quarantine(&self, number: u64) {
        let allocator = self.space(number).allocator;
        allocator.change_free(|FreeRids { rids, .. }| {
            self.doubts.quarantine(number, || {
                let of_chunk = |rid: &mut Rid| rid.0 / SLOTS == number;
                let mut aside: Vec<Rid> = rids.extract_if(.., of_chunk).collect();
                aside.extend(self.rest_of_last(number));
                aside
            });
        });
    }

    /// The row numbers of a chunk that were never handed out, if it is the last one of its space: they count as handed
    /// out from now on. Or each of up to 63 inserts would get one, and wait for a load that fails.
    fn rest_of_last(&self, number: u64) -> impl Iterator<Item = Rid> {
        let space = self.space(number);
        let first = space.place(Rid(number.saturating_mul(SLOTS)));
        let end = first.saturating_add(SLOTS);
        let next = &space.allocator.next;
        // Those of the past are given to nobody, and their end says what there is.
        let is_last = self.past.is_none() && (first..end).contains(&next.load(Ordering::SeqCst));
        let before = match is_last {
            // Whoever is quicker has numbers below what was there then.
            true => next.fetch_max(end, Ordering::SeqCst),
            false => end,
        };
        // The list hands out its last ones first.
        (before..end).rev().map(move |place| space.rid(place))
    }

    /// A chunk has been read: if it was aside, its free row numbers may be used again.
    pub(crate) fn take_back(&self, number: u64) {
        if self.doubts.any_quarantined() {
            let allocator = self.space(number).allocator;
            allocator.change_free(|free| free.rids.extend(self.doubts.take_back(number)));
        }
    }

    /// What [`TableRows::slot_or_new`] will allocate for the next rid of a partition, at most.
    #[inline]
    pub(crate) fn next_rid_bytes(&self, partition: PartitionId) -> usize {
        let space = self.space(u64::from(partition.0));
        let next = space.allocator.next.load(Ordering::Relaxed);
        if !next.is_multiple_of(SLOTS) {
            return 0;
        }
        let rid = space.rid(next);
        if rid.0 >= RID_MAX {
            return 0;
        }
        let (bucket, _, _) = place(rid);
        match self.buckets[bucket].get() {
            Some(_) => CHUNK_BYTES,
            None => CHUNK_BYTES + bucket_bytes(bucket),
        }
    }

    /// A rid whose slot is empty, of a partition if the table is divided.
    #[inline]
    pub(crate) fn allocate_rid(&self, partition: PartitionId) -> Rid {
        self.space(u64::from(partition.0)).allocate()
    }

    /// One that was never handed out.
    pub(crate) fn fresh_rid(&self, partition: PartitionId) -> Rid {
        self.space(u64::from(partition.0)).fresh()
    }

    /// Gives a rid back, whose slot is empty and whose index entries are gone.
    pub(crate) fn free_rid(&self, rid: Rid) {
        if self.is_followed.load(Ordering::SeqCst) {
            return;
        }
        let number = rid.0 / SLOTS;
        self.space(number).allocator.change_free(|free| {
            if !(self.doubts.any_quarantined() && self.doubts.keep(number, rid)) {
                free.rids.push(rid);
            }
        });
    }

    /// Replay: makes sure that `rid` counts as handed out.
    pub(crate) fn claim_rid(&self, rid: Rid) {
        let was_divided = self.is_divided();
        self.space(rid.0 / SLOTS).claim(rid);
        if !was_divided {
            fence(Ordering::SeqCst);
            if self.is_divided() {
                self.space(rid.0 / SLOTS).claim(rid);
            }
        }
    }

    /// After replay: every empty slot below the end is free, of chunks that are there; of others when they come.
    /// Highest first, so that low rids are used first.
    pub(crate) fn collect_free_rids(&self, guard: &Guard) {
        for space in self.spaces() {
            let end = space.allocator.next.load(Ordering::SeqCst);
            space.allocator.fresh_from.store(end, Ordering::Relaxed);
            space.allocator.change_free(|free| {
                free.rids.clear();
                free.chunks.clear();
                for chunk in (0..end.div_ceil(SLOTS)).rev() {
                    let first = space.rid(chunk * SLOTS);
                    let slots = (end - chunk * SLOTS).min(SLOTS);
                    self.list_chunk(first, slots, free, guard);
                }
            });
        }
    }

    /// Lists what is free of the first slots of a chunk, if that is there or was never made.
    fn list_chunk(&self, first: Rid, slots: u64, free: &mut FreeRids, guard: &Guard) {
        let number = first.0 / SLOTS;
        let chunk = self.chunk(number);
        if chunk.is_some_and(|chunk| !chunk.is_present()) {
            return;
        }
        if chunk.is_none() && slots == SLOTS {
            free.chunks.push(number);
            return;
        }
        for slot in (0..slots).rev() {
            let head = chunk.map(|chunk| chunk.peek(slot as usize, guard));
            if matches!(head, None | Some(Ok(None))) {
                free.rids.push(Rid(first.0 + slot));
            }
        }
        if let Some(chunk) = chunk {
            let _listed_now = chunk.take_unlisted();
        }
    }
}

/// The numbers of one partition.
#[inline]
fn part(allocator: &RidAllocator, partition: u64) -> RidSpace<'_> {
    RidSpace {
        allocator,
        first: partition,
        stride: PARTITIONS,
    }
}

#[cfg(test)]
mod tests;
