//! A chunk: 64 row slots, in a shell that stays while slots and versions come and go.
//!
//! The shell holds what must outlast an eviction: what checkpoints know of the chunk, who has shared locks, who wrote
//! there, which rows somebody looked for. Its slots and their versions hang on one pointer. A row is *absent* while its
//! slot says so, or while that pointer is null: then the chunk is absent as a whole.
//!
//! # State
//!
//! CHANGED: something was changed that the last checkpoint which looked here does not have
//! ([`crate::checkpoint::walk`]). WRITING: the running checkpoint has looked here, or is about to; until it is
//! published, or has failed, the newest published one may lack something of this chunk, or `saved` may be ahead of it.
//! EVICTING: [`Chunk::evict`] is at work. EVICTING and WRITING exclude each other: eviction does not begin where the
//! one is set, and a checkpoint waits until the other is over. Rows of a chunk that is CHANGED may go, the chunk as a
//! whole may not: so what a checkpoint has to write is there, and stays until the checkpoint has ended.
//!
//! # Coming back
//!
//! [`Chunk::absence`] notes which slots are absent, and how often something was brought before; only then is the newest
//! checkpoint looked up and read; [`Chunk::bring`] puts rows in those slots alone, and only if nothing was brought
//! since. Why that is right:
//! - *It is the newest version.* A slot leaves ABSENT by a bring alone, so one that was absent when it was noted, with
//!   nothing brought since, has been absent all the time: nothing was changed in it, and every checkpoint from the one
//!   by which it was evicted on has the same row of it. One that went later, and what was changed in between, is not in
//!   the note. That a row was brought, changed, saved and evicted again meanwhile shows in the count, whatever the slot
//!   looks like (no ABA).
//! - *Only one brings at a time:* the count is odd meanwhile, and whoever finds it so gets no note.
//! - *What goes meanwhile is not mistaken.* Eviction freezes absent slots before it drops them all, so a row goes into
//!   slots that are still reached or not at all. Slots that were dropped since the note are made anew: those that were
//!   asked for and noted are filled, the others are absent if they have a row in the newest checkpoint (`saved`, of
//!   this life: a page that was read before may be older than they are) and empty if not. The first time of a life the
//!   page itself tells, for nothing was changed before.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use logstead_types::Csn;

use super::page_mark::{NO_LANE, PageMark};
use super::slot_set::{SharedSlots, SlotSet};
use super::{
    Guard, PruneLock, UnpublishedVersion, UnsharedSlots, Version, VersionKind, VersionRef,
    VersionWriter, WriterStatus, free,
};
use crate::memory::{Memory, footprint};
use crate::row_lock::RowLock;
use crate::tree::interleave::{is_scheduled, point};

/// Slots of a chunk: the unit of checkpointing and eviction, and of pages.
pub(crate) const CHUNK_SLOTS: usize = logstead_checkpoint::CHUNK_SLOTS as usize;
/// What a chunk takes while it is absent.
pub(crate) const SHELL_BYTES: usize = footprint(size_of::<Chunk>());
/// What its slots take without versions.
pub(super) const SLOTS_BYTES: usize = footprint(size_of::<Slots>());
/// What a present chunk takes without its versions.
pub(crate) const CHUNK_BYTES: usize = SHELL_BYTES + SLOTS_BYTES;
/// What a row with shared locks takes in the lock table, which is half full on average.
const SHARED_ROW_BYTES: usize = 40;

pub(super) const CHANGED: u8 = 1;
pub(super) const WRITING: u8 = 1 << 1;
pub(super) const EVICTING: u8 = 1 << 2;

/// The lowest bit of a slot: nothing can be installed in it or taken out (V8).
const FROZEN: usize = 1;
/// The next bit: the row is in the newest checkpoint alone (V9).
const ABSENT: usize = 1 << 1;
/// No version's address has one of them.
const MARKS: usize = FROZEN | ABSENT;
const _: () = assert!(align_of::<Version>() > MARKS);

/// A row is absent, or about to be: nothing can be found out or installed there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SlotsAbsent;

/// That slots were absent once, and which time that was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absence {
    arrivals: u32,
    slots: SlotSet,
}

impl Absence {
    /// The slots; all of them, if the chunk was absent as a whole.
    pub(crate) fn slots(&self) -> &SlotSet {
        &self.slots
    }
}

/// The slots of a chunk: each the address of its newest version, or null, or [`ABSENT`] alone; with [`FROZEN`] or
/// without.
pub(super) struct Slots(pub(super) [AtomicPtr<Version>; CHUNK_SLOTS]);

pub(super) fn frozen(at: *mut Version) -> *mut Version {
    at.map_addr(|address| address | FROZEN)
}

pub(super) fn thawed(at: *mut Version) -> *mut Version {
    at.map_addr(|address| address & !FROZEN)
}

/// A slot whose row is absent.
pub(super) fn absent() -> *mut Version {
    std::ptr::without_provenance_mut(ABSENT)
}

pub(super) fn is_absent(at: *mut Version) -> bool {
    at.addr() & ABSENT != 0
}

/// The newest version of a slot, whatever its marks say.
#[inline]
pub(super) fn version_in(at: *mut Version) -> Option<NonNull<Version>> {
    NonNull::new(at.map_addr(|address| address & !MARKS))
}

impl Slots {
    pub(super) fn new(memory: &Memory) -> Box<Slots> {
        memory.add(SLOTS_BYTES as i64);
        Box::new(Slots(
            [const { AtomicPtr::new(std::ptr::null_mut()) }; CHUNK_SLOTS],
        ))
    }

    /// Frees slots with all their versions.
    ///
    /// # Safety
    /// Nobody can reach them, or a version in them, any more.
    pub(super) unsafe fn free(mut slots: Box<Slots>, memory: &Memory) {
        for slot in &mut slots.0 {
            let mut at = version_in(*slot.get_mut());
            while let Some(version) = at {
                // SAFETY: every version is in one chain only, made by `UnpublishedVersion::new`; its slot is the
                // caller's alone.
                unsafe {
                    at = NonNull::new(version.as_ref().next.load(Ordering::Relaxed));
                    free(version, memory);
                }
            }
        }
        memory.add(-(SLOTS_BYTES as i64));
    }
}

/// 64 row slots.
#[repr(C)]
pub(crate) struct Chunk {
    /// Null while it is absent (V7).
    pub(super) slots: AtomicPtr<Slots>,
    pub(super) state: AtomicU8,
    /// Held by whoever unlinks (V3) or evicts.
    pub(super) pruning: AtomicBool,
    /// Its free slots have been listed in this life of the server.
    listed: AtomicBool,
    /// `saved` tells what the newest checkpoint has: something was brought in this life, or the chunk is new.
    known: AtomicBool,
    /// Rows with shared locks; see [`crate::row_lock::exclusive_and_shared`].
    shared: AtomicU32,
    /// Twice how often slots were brought, or went to the log; odd while they do.
    pub(super) arrivals: AtomicU32,
    /// How many wait for its slots, or have not come back from waiting.
    awaited: AtomicU32,
    /// The slots that these cannot do without; perhaps more, or, for who has come when the last one left, less.
    expected: SharedSlots,
    /// Where its slots and versions are counted (V6).
    pub(super) memory: &'static Memory,
    /// Who wrote here, in mode `gsn`; see [`PageMark`].
    page: AtomicU64,
    /// What the rows that are absent took when they were evicted, and will take again, more or less. Zero: not known.
    absent_bytes: AtomicU64,
    /// Slots with a row in the newest checkpoint; means nothing until it is `known`. Written by
    /// whoever takes checkpoints, while it is WRITING, and before slots come for the first time.
    saved: SharedSlots,
    /// Rows that somebody has looked for since the evictor last came by.
    touched: SharedSlots,
    /// There were some when he did.
    pub(super) was_touched: AtomicBool,
}

/// What of a chunk is in memory.
pub(crate) struct ResidentSlots {
    /// Slots with a row.
    pub(crate) present: SlotSet,
    /// Slots whose row is elsewhere.
    pub(crate) absent: SlotSet,
    /// Somebody has looked for one since the evictor came by the time before last.
    pub(crate) is_hot: bool,
}

impl Chunk {
    /// An absent one.
    pub(crate) fn absent(memory: &'static Memory) -> Chunk {
        memory.add(SHELL_BYTES as i64);
        Chunk {
            slots: AtomicPtr::new(std::ptr::null_mut()),
            state: AtomicU8::new(0),
            pruning: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            known: AtomicBool::new(false),
            shared: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            awaited: AtomicU32::new(0),
            expected: SharedSlots::new(),
            memory,
            absent_bytes: AtomicU64::new(0),
            page: AtomicU64::new(NO_LANE),
            saved: SharedSlots::new(),
            touched: SharedSlots::new(),
            was_touched: AtomicBool::new(false),
        }
    }

    /// One with empty slots, which nobody needs to list.
    pub(crate) fn new(memory: &'static Memory) -> Chunk {
        let mut chunk = Chunk::absent(memory);
        *chunk.slots.get_mut() = Box::into_raw(Slots::new(memory));
        *chunk.listed.get_mut() = true;
        *chunk.known.get_mut() = true;
        chunk
    }

    /// Its slots, if it is present.
    #[inline]
    pub(super) fn slots<'g>(&self, _guard: &'g Guard) -> Result<&'g Slots, SlotsAbsent> {
        point();
        let slots = NonNull::new(self.slots.load(Ordering::SeqCst)).ok_or(SlotsAbsent)?;
        // SAFETY: V7: read from the shell under a guard that lives for 'g.
        Ok(unsafe { slots.as_ref() })
    }

    /// Is it in memory, or something of it? It may be gone at once.
    pub(crate) fn is_present(&self) -> bool {
        !self.slots.load(Ordering::SeqCst).is_null()
    }

    /// Has it changed since a checkpoint looked at it last, as far as marks tell?
    pub(crate) fn is_changed(&self) -> bool {
        self.state.load(Ordering::SeqCst) & CHANGED != 0
    }

    /// Is it being evicted? That is over soon, one way or the other.
    pub(crate) fn is_leaving(&self) -> bool {
        self.state.load(Ordering::SeqCst) & EVICTING != 0
    }

    /// Which of its slots are absent, unless somebody is just bringing some: what [`Chunk::bring`] wants to know, asked
    /// before it is looked up what the newest checkpoint has of them.
    pub(crate) fn absence(&self, guard: &Guard) -> Option<Absence> {
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        point();
        let slots = match self.slots(guard) {
            Err(SlotsAbsent) => SlotSet::ALL,
            Ok(slots) => {
                let mut set = SlotSet::NONE;
                for (slot, at) in slots.0.iter().enumerate() {
                    if is_absent(at.load(Ordering::SeqCst)) {
                        set.insert(slot);
                    }
                }
                set
            }
        };
        arrivals
            .is_multiple_of(2)
            .then_some(Absence { arrivals, slots })
    }

    /// Has nothing been brought since?
    pub(crate) fn is_still(&self, absence: &Absence) -> bool {
        self.arrivals.load(Ordering::SeqCst) == absence.arrivals
    }

    /// Puts rows in slots, those of `wanted` that were absent then. `saved`: the slots that have a row in the
    /// checkpoint that was read. Tells which slots have what the newest checkpoint has of them now; `None` if something
    /// was brought since `absence`: what was read may be stale.
    #[cfg(test)]
    pub(crate) fn bring(
        &self,
        absence: &Absence,
        rows: UnsharedSlots,
        wanted: &SlotSet,
        saved: &SlotSet,
        guard: &Guard,
    ) -> Option<SlotSet> {
        self.bring_with_empty(absence, rows, wanted, (saved, &SlotSet::NONE), guard)
    }

    /// The same with slots that were absent then, and counted as rows, and of which only now is known that they have
    /// none ([`crate::rows`]): they are free now. If there are some, the caller has [`Chunk::settle_if`].
    pub(crate) fn bring_with_empty(
        &self,
        absence: &Absence,
        rows: UnsharedSlots,
        wanted: &SlotSet,
        (saved, empty): (&SlotSet, &SlotSet),
        guard: &Guard,
    ) -> Option<SlotSet> {
        let before = absence.arrivals;
        point();
        let first = self.arrivals.compare_exchange(
            before,
            before.wrapping_add(1),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if first.is_err() {
            return None;
        }
        // Nobody else gets an absence until this has ended, and earlier ones count for nothing.
        let wanted = wanted.both(&absence.slots);
        self.touched.insert_all(&wanted);
        let bytes = rows.bytes();
        point();
        let wanted = wanted.minus(empty);
        if !empty.is_empty() {
            self.saved.remove_all(empty);
        }
        let brought = match self.slots(guard) {
            Ok(there) => self
                .bring_into(there, rows, &wanted)
                .union(&empty_in(there, empty)),
            Err(SlotsAbsent) => self.bring_all(rows, &wanted, saved).union(empty),
        };
        let less = |before: u64| Some(before.saturating_sub(bytes));
        let (set, get) = (Ordering::Relaxed, Ordering::Relaxed);
        let _always_some = self.absent_bytes.fetch_update(set, get, less);
        point();
        let after = before.wrapping_add(2);
        self.arrivals.store(after, Ordering::SeqCst);
        Some(brought)
    }

    /// Puts rows in slots that are absent, one by one. One that is frozen stays as it is: all may be about to go.
    fn bring_into(&self, there: &Slots, mut rows: UnsharedSlots, wanted: &SlotSet) -> SlotSet {
        let mut brought = SlotSet::NONE;
        for slot in wanted.iter() {
            let Some(version) = rows.take(slot) else {
                // Whoever has read it has seen that a row is missing, or that this is not absent any more.
                continue;
            };
            point();
            let at = version.version.as_ptr();
            let put =
                there.0[slot].compare_exchange(absent(), at, Ordering::SeqCst, Ordering::SeqCst);
            if put.is_ok() {
                std::mem::forget(version);
                brought.insert(slot);
            }
        }
        brought
    }

    /// Puts slots where there are none.
    fn bring_all(&self, mut rows: UnsharedSlots, wanted: &SlotSet, saved: &SlotSet) -> SlotSet {
        if !self.known.load(Ordering::SeqCst) {
            self.learn_saved(saved);
        }
        for slot in SlotSet::ALL.minus(wanted).iter() {
            drop(rows.take(slot));
        }
        let mut slots = rows.into_slots();
        for slot in self.saved.get().minus(wanted).iter() {
            *slots.0[slot].get_mut() = absent();
        }
        let slots = Box::into_raw(slots);
        let null = std::ptr::null_mut();
        point();
        let put = self
            .slots
            .compare_exchange(null, slots, Ordering::SeqCst, Ordering::SeqCst);
        assert!(put.is_ok(), "only who brings puts slots there");
        *wanted
    }

    /// What the newest checkpoint has of it, if that is known: what is brought must have the same.
    pub(crate) fn saved_before(&self) -> Option<SlotSet> {
        self.known.load(Ordering::SeqCst).then(|| self.saved())
    }

    /// Are its free slots still to be listed? True once.
    pub(crate) fn take_unlisted(&self) -> bool {
        !self.listed.swap(true, Ordering::SeqCst)
    }

    /// Somebody waits for slots: they stay when they have come, until [`Chunk::came_back`] is called for him.
    pub(crate) fn wait_for(&self, slots: &SlotSet) {
        self.awaited.fetch_add(1, Ordering::SeqCst);
        self.expected.insert_all(slots);
    }

    /// One fewer waits.
    pub(crate) fn came_back(&self) {
        let before = self.awaited.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "who came back has waited");
        if before == 1 {
            self.expected.take();
        }
    }

    /// The slots that somebody waits for.
    pub(super) fn expected(&self) -> SlotSet {
        self.expected.get()
    }

    /// The rows that somebody has looked for since the last call.
    pub(crate) fn take_touched(&self) -> SlotSet {
        let touched = self.touched.take();
        let is_touched = !touched.is_empty();
        if self.was_touched.load(Ordering::Relaxed) != is_touched {
            self.was_touched.store(is_touched, Ordering::Relaxed);
        }
        touched
    }

    /// Has somebody looked for a row since the call before the last one, as a hint?
    pub(crate) fn is_hot(&self) -> bool {
        self.was_touched.load(Ordering::Relaxed) || !self.touched.get().is_empty()
    }

    /// Rows were brought in that nobody has looked for.
    pub(crate) fn forget_touched(&self, slots: &SlotSet) {
        self.touched.remove_all(slots);
    }

    /// What of it is in memory; `None`: nothing. A hint: all of it may change at once.
    pub(crate) fn resident(&self, guard: &Guard) -> Option<ResidentSlots> {
        let slots = self.slots(guard).ok()?;
        let (mut present, mut absent) = (SlotSet::NONE, SlotSet::NONE);
        for (slot, at) in slots.0.iter().enumerate() {
            let at = at.load(Ordering::Relaxed);
            if is_absent(at) {
                absent.insert(slot);
            } else if !at.is_null() {
                present.insert(slot);
            }
        }
        let is_touched = !self.touched.get().both(&present).is_empty();
        Some(ResidentSlots {
            present,
            absent,
            is_hot: is_touched || self.was_touched.load(Ordering::Relaxed),
        })
    }

    /// A change is in a chain, where a checkpoint that clears the mark after this sees it: called after the
    /// installation.
    #[inline]
    fn mark_changed(&self) {
        point();
        // Usually it is set, and reading it shares the line that installing has brought here anyway.
        if self.state.load(Ordering::SeqCst) & CHANGED == 0 {
            point();
            self.state.fetch_or(CHANGED, Ordering::SeqCst);
        }
    }

    /// There is something here that the newest checkpoint does not hold: the running one has met it, or replay. The
    /// next one looks again.
    pub(crate) fn set_changed(&self) {
        self.state.fetch_or(CHANGED, Ordering::SeqCst);
    }

    /// Is there something to look at for a checkpoint, or does it want to look `anyway`? Then it is WRITING from here
    /// on, CHANGED no more, and the answer tells whether it was. Called before looking.
    pub(crate) fn begin_writing(&self, anyway: bool) -> Option<bool> {
        loop {
            point();
            let state = self.state.load(Ordering::SeqCst);
            let changed = state & CHANGED != 0;
            if !changed && !anyway {
                return None;
            }
            if state & EVICTING != 0 {
                // Some slots are looked at, nothing more.
                if !is_scheduled() {
                    std::thread::yield_now();
                }
                continue;
            }
            let writing = state & !CHANGED | WRITING;
            let begun =
                self.state
                    .compare_exchange(state, writing, Ordering::SeqCst, Ordering::SeqCst);
            if begun.is_ok() {
                point();
                return Some(changed);
            }
        }
    }

    /// The checkpoint is published, and whoever brings chunks back reads that one; or it has failed or wrote nothing of
    /// this chunk, and the one before is in force: then something that it was to write may be looked for `again`.
    pub(crate) fn end_writing(&self, again: bool) {
        point();
        if again {
            self.state.fetch_or(CHANGED, Ordering::SeqCst);
        }
        self.state.fetch_and(!WRITING, Ordering::SeqCst);
    }

    /// Is a checkpoint writing it?
    pub(crate) fn is_being_written(&self) -> bool {
        self.state.load(Ordering::SeqCst) & WRITING != 0
    }

    /// Does the newest checkpoint, and no other that is under way, have all of it, as far as marks tell?
    #[cfg(test)]
    pub(crate) fn is_clean(&self) -> bool {
        self.state.load(Ordering::SeqCst) & (CHANGED | WRITING) == 0
    }

    /// The slots that have a row in the newest checkpoint.
    pub(crate) fn saved(&self) -> SlotSet {
        self.saved.get()
    }

    /// A checkpoint that has a row for these slots is the newest now.
    pub(crate) fn set_saved(&self, set: &SlotSet) {
        self.saved.set(set);
    }

    /// The same of one of which nothing may have been brought in this life.
    pub(crate) fn learn_saved(&self, set: &SlotSet) {
        self.saved.set(set);
        self.known.store(true, Ordering::SeqCst);
    }

    /// Who wrote here. Read after what is to be covered.
    pub(crate) fn page_mark(&self) -> PageMark {
        PageMark(self.page.load(Ordering::SeqCst))
    }

    /// An entry of `lane` with `gsn` changes something here: called before anybody can see the change.
    pub(crate) fn stamp_page(&self, lane: usize, gsn: u64, hardened_gsn: u64) {
        let stamp = |word| Some(PageMark(word).stamped(lane, gsn, hardened_gsn).0);
        let _always_some = self
            .page
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, stamp);
    }

    /// The newest version in a slot. (Sequentially consistent for those who take shared locks; it costs the same.)
    ///
    /// What comes out was the newest at some moment during the call: what was taken out in the middle of it had not
    /// changed since it was frozen.
    #[inline]
    pub(crate) fn head<'g>(
        &self,
        slot: usize,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, SlotsAbsent> {
        self.touched.insert(slot);
        self.peek(slot, guard)
    }

    /// The same for who is no reason to keep the row in memory.
    #[inline]
    pub(crate) fn peek<'g>(
        &self,
        slot: usize,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, SlotsAbsent> {
        let slots = self.slots(guard)?;
        point();
        let at = slots.0[slot].load(Ordering::SeqCst);
        if at.addr() & MARKS == 0 {
            Ok(VersionRef::from_raw(at, guard))
        } else {
            look_through(at, guard)
        }
    }

    /// What some of the slots that are absent will take, if it is known what they took.
    pub(crate) fn absent_bytes(&self, absence: &Absence, wanted: &SlotSet) -> Option<u64> {
        let bytes = self.absent_bytes.load(Ordering::Relaxed);
        let rows = self.saved().both(&absence.slots);
        if bytes == 0 || rows.is_empty() {
            return None;
        }
        let wanted = rows.both(wanted).len() as u64;
        let slots = if self.is_present() { 0 } else { SLOTS_BYTES };
        Some((bytes * wanted).div_ceil(rows.len() as u64) + slots as u64)
    }

    /// Rows that took so many bytes have gone.
    pub(super) fn count_absent(&self, bytes: usize) {
        self.absent_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// May some row have shared locks?
    #[inline]
    pub(crate) fn some_shared(&self) -> bool {
        self.shared_count() > 0
    }

    /// Rows that have, or are about to have, shared locks.
    pub(crate) fn shared_count(&self) -> usize {
        self.shared.load(Ordering::SeqCst) as usize
    }

    /// One more row has, or is about to have, shared locks.
    pub(crate) fn raise_shared(&self) {
        self.memory.add(SHARED_ROW_BYTES as i64);
        self.shared.fetch_add(1, Ordering::SeqCst);
    }

    /// One fewer.
    pub(crate) fn lower_shared(&self) {
        let before = self.shared.fetch_sub(1, Ordering::SeqCst);
        assert!(before > 0, "what is lowered was raised");
        self.memory.add(-(SHARED_ROW_BYTES as i64));
    }

    fn install_fresh<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        fresh: UnpublishedVersion,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, SlotsAbsent> {
        let slots = self.slots(guard)?;
        let expected = expected.map_or(std::ptr::null_mut(), |v| v.at.as_ptr());
        // SAFETY: not published yet, so ours alone.
        unsafe { fresh.version.as_ref() }
            .next
            .store(expected, Ordering::Relaxed);
        let raw = fresh.version.as_ptr();
        point();
        // The guard keeps `expected` from being freed and its address from being used again, so equality of addresses
        // is identity. A frozen slot equals no address (V8), nor does an absent one (V9).
        match slots.0[slot].compare_exchange(expected, raw, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {}
            Err(found) if found.addr() & MARKS != 0 => return Err(SlotsAbsent),
            Err(_) => return Ok(None),
        }
        std::mem::forget(fresh);
        Ok(VersionRef::from_raw(raw, guard))
    }

    /// Installs what a transaction has left that committed elsewhere with this CSN, above `expected`; `None` if the
    /// slot's newest version is another one by now.
    pub(crate) fn install_committed<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        csn: Csn,
        kind: VersionKind,
        row: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, SlotsAbsent> {
        let stamp = csn.0 << 1 | 1;
        let fresh = UnpublishedVersion::new(stamp, kind, RowLock::NoKeyUpdate, 0, row, self.memory);
        self.install_fresh(slot, expected, fresh, guard)
    }

    /// Installs a version of `writer` above `expected`, which locks the row with (at least) `lock`; `None` if the
    /// slot's newest version is another one by now.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site per kind of write; a struct would only rename them"
    )]
    pub(crate) fn install<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        writer: &VersionWriter,
        kind: VersionKind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, SlotsAbsent> {
        // Counted before it can be reached (V4).
        writer.named.set(writer.named.get() + 1);
        let installed = self.install_fresh(
            slot,
            expected,
            UnpublishedVersion::new(writer.address(), kind, lock, command, row, self.memory),
            guard,
        );
        if !matches!(installed, Ok(Some(_))) {
            writer.named.set(writer.named.get() - 1);
        } else if kind != VersionKind::LockOnly {
            self.mark_changed();
        }
        installed
    }

    /// Stamps the versions `writer` has in the slot with `csn`. The caller is pinned since before the writer's state
    /// became Precommitted.
    pub(crate) fn stamp(&self, slot: usize, writer: &VersionWriter, csn: Csn, guard: &Guard) {
        // One's own version that is not stamped keeps the chunk in memory: there is nothing to stamp in one that is
        // absent.
        let mut at = self.peek(slot, guard).ok().flatten();
        while let Some(version) = at {
            if version.is_of(writer) {
                version
                    .header()
                    .stamp
                    .store(csn.0 << 1 | 1, Ordering::Release);
                writer.named.set(writer.named.get().saturating_sub(1));
            } else if let WriterStatus::Committed(other) = version.writer_status()
                && other <= csn
            {
                return;
            }
            at = version.next(guard);
        }
    }

    /// Takes the right to unlink, if nobody has it.
    pub(crate) fn try_prune(&self) -> Option<PruneLock<'_>> {
        self.pruning
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| PruneLock::new(self))
    }

    /// Takes the right to unlink; holders keep it for one slot's chain only, so the wait is short.
    pub(crate) fn prune_lock(&self) -> PruneLock<'_> {
        let mut spins = 0u32;
        loop {
            if let Some(prune) = self.try_prune() {
                return prune;
            }
            spins += 1;
            point();
            if is_scheduled() {
                continue;
            }
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

/// Empties slots that were absent. One that is frozen stays as it is: all may be about to go.
fn empty_in(there: &Slots, empty: &SlotSet) -> SlotSet {
    let mut emptied = SlotSet::NONE;
    for slot in empty.iter() {
        let null = std::ptr::null_mut();
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        point();
        if there.0[slot]
            .compare_exchange(absent(), null, set, get)
            .is_ok()
        {
            emptied.insert(slot);
        }
    }
    emptied
}

/// What is in a slot with a mark.
#[cold]
fn look_through(at: *mut Version, guard: &Guard) -> Result<Option<VersionRef<'_>>, SlotsAbsent> {
    if is_absent(at) {
        Err(SlotsAbsent)
    } else {
        Ok(VersionRef::from_raw(thawed(at), guard))
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let memory = self.memory;
        memory.add(-(SHELL_BYTES as i64));
        let slots = *self.slots.get_mut();
        if slots.is_null() {
            return;
        }
        /// Carries the address to whatever thread frees it.
        struct Dropped(*mut Slots);
        // SAFETY: it is given to the collector once, and slots and versions are plain memory.
        unsafe impl Send for Dropped {}
        let dropped = Dropped(slots);
        // SAFETY: the chunk is dropped, so nobody pinned later can reach its slots and versions; what is read under
        // guards pinned before stays valid until those end. The address came from a box (V7). It is plain memory and
        // may be freed on any thread.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || {
                let dropped = dropped;
                Slots::free(Box::from_raw(dropped.0), memory);
            });
        }
    }
}
