//! A chunk: 64 row slots, in a shell that stays while slots and versions come and go.
//!
//! The shell holds what must outlast an eviction: what checkpoints know of the chunk, who has shared locks, who wrote there. Its slots and
//! their versions hang on one pointer; while that is null the chunk is *absent*.
//!
//! # State
//!
//! CHANGED: something was changed that the last checkpoint which looked here does not have ([`crate::checkpoint::walk`]). WRITING: the running
//! checkpoint has looked here, or is about to; until it is published, or has failed, the newest published one may lack something of this
//! chunk, or `saved` may be ahead of it. EVICTING: [`Chunk::evict`] is at work. Eviction begins only where none is set, and a
//! checkpoint waits until it is over, so a chunk that is CHANGED or WRITING is present and stays.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};

use logstead_types::Csn;

use super::page_mark::{NO_LANE, PageMark};
use super::{Fresh, Guard, Kind, Prune, Stamp, UnsharedSlots, Version, VersionRef, Writer, free};
use crate::memory::{Memory, footprint};
use crate::row_lock::RowLock;
use crate::tree::interleave::point;

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

/// A chunk is absent, or about to be: nothing can be found out or installed there now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NoSlots;

/// That a chunk was absent once, and which time that was.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Absence(u32);

/// The slots of a chunk: each the address of its newest version, or null, with [`FROZEN`] or without.
pub(super) struct Slots(pub(super) [AtomicPtr<Version>; CHUNK_SLOTS]);

pub(super) fn frozen(at: *mut Version) -> *mut Version {
    at.map_addr(|address| address | FROZEN)
}

#[inline]
pub(super) fn thawed(at: *mut Version) -> *mut Version {
    at.map_addr(|address| address & !FROZEN)
}

#[inline]
pub(super) fn is_frozen(at: *mut Version) -> bool {
    at.addr() & FROZEN != 0
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
            let mut at = thawed(*slot.get_mut());
            while let Some(version) = NonNull::new(at) {
                // SAFETY: every version is in one chain only, made by `Fresh::new`; its slot is the caller's alone.
                unsafe {
                    at = version.as_ref().next.load(Ordering::Relaxed);
                    free(version, memory);
                }
            }
        }
        memory.add(-(SLOTS_BYTES as i64));
    }
}

/// Some of a chunk's slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SlotSet(u64);

const _: () = assert!(CHUNK_SLOTS == u64::BITS as usize);

impl SlotSet {
    /// Puts a slot in.
    #[inline]
    pub(crate) fn insert(&mut self, slot: usize) {
        self.0 |= 1 << slot;
    }

    /// Is the slot in?
    #[inline]
    pub(crate) fn contains(&self, slot: usize) -> bool {
        self.0 & 1 << slot != 0
    }

    /// Is none in?
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == 0
    }
}

/// 64 row slots.
#[repr(C)]
pub(crate) struct Chunk {
    /// Null while it is absent (V7).
    pub(super) slots: AtomicPtr<Slots>,
    pub(super) state: AtomicU8,
    /// Somebody has looked for a row here since the evictor last came by.
    touched: AtomicBool,
    /// Held by whoever unlinks (V3) or evicts.
    pub(super) pruning: AtomicBool,
    /// Its free slots have been listed in this life of the server.
    listed: AtomicBool,
    /// Rows with shared locks; see [`crate::row_lock::meeting`].
    shared: AtomicU32,
    /// Twice how often slots were brought; odd while some are.
    arrivals: AtomicU32,
    /// How many wait for its slots, or have not come back from waiting.
    awaited: AtomicU32,
    /// Where its slots and versions are counted (V6).
    pub(super) memory: &'static Memory,
    /// Who wrote here, in mode `gsn`; see [`PageMark`].
    page: AtomicU64,
    /// What its slots and rows took when they were evicted: what they take when they come back. Zero: not known.
    pub(super) evicted_bytes: AtomicU64,
    /// Slots with a row in the newest checkpoint, a bit each; means nothing while the chunk has not been there in this life. Written by
    /// whoever takes checkpoints, while it is WRITING, and before slots come.
    saved: AtomicU64,
}

impl Chunk {
    /// An absent one.
    pub(crate) fn absent(memory: &'static Memory) -> Chunk {
        memory.add(SHELL_BYTES as i64);
        Chunk {
            slots: AtomicPtr::new(std::ptr::null_mut()),
            state: AtomicU8::new(0),
            touched: AtomicBool::new(false),
            pruning: AtomicBool::new(false),
            listed: AtomicBool::new(false),
            shared: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            awaited: AtomicU32::new(0),
            memory,
            evicted_bytes: AtomicU64::new(0),
            page: AtomicU64::new(NO_LANE),
            saved: AtomicU64::new(0),
        }
    }

    /// One with empty slots, which nobody needs to list.
    pub(crate) fn new(memory: &'static Memory) -> Chunk {
        let mut chunk = Chunk::absent(memory);
        *chunk.slots.get_mut() = Box::into_raw(Slots::new(memory));
        *chunk.listed.get_mut() = true;
        chunk
    }

    /// Its slots, if it is present.
    #[inline]
    pub(super) fn slots<'g>(&self, _guard: &'g Guard) -> Result<&'g Slots, NoSlots> {
        point();
        let slots = NonNull::new(self.slots.load(Ordering::SeqCst)).ok_or(NoSlots)?;
        // SAFETY: V7: read from the shell under a guard that lives for 'g.
        Ok(unsafe { slots.as_ref() })
    }

    /// Is it in memory? It may be gone at once.
    pub(crate) fn is_present(&self) -> bool {
        !self.slots.load(Ordering::SeqCst).is_null()
    }

    /// Is it being evicted? That is over soon, one way or the other.
    pub(crate) fn is_leaving(&self) -> bool {
        self.state.load(Ordering::SeqCst) & EVICTING != 0
    }

    /// If it is absent, and nobody is just bringing it: what [`Chunk::bring`] wants to know, asked before it is looked up what the newest checkpoint has of it.
    pub(crate) fn absence(&self) -> Option<Absence> {
        let arrivals = self.arrivals.load(Ordering::SeqCst);
        point();
        (arrivals.is_multiple_of(2) && !self.is_present()).then_some(Absence(arrivals))
    }

    /// Puts slots in the place of none, with those of them that have a row in the newest checkpoint. Gives the slots back if others were brought since
    /// `absence`: these may be stale, even if those are gone again.
    pub(crate) fn bring(
        &self,
        absence: Absence,
        slots: UnsharedSlots,
        saved: &SlotSet,
    ) -> Result<(), UnsharedSlots> {
        let Absence(before) = absence;
        point();
        let first = self.arrivals.compare_exchange(
            before,
            before.wrapping_add(1),
            Ordering::SeqCst,
            Ordering::SeqCst,
        );
        if first.is_err() {
            return Err(slots);
        }
        // Nobody else gets an absence until these slots are there, and earlier ones count for nothing: what is brought is what the newest checkpoint
        // had when the chunk was absent for this time.
        self.set_saved(saved);
        self.touched.store(true, Ordering::Relaxed);
        point();
        let slots = Box::into_raw(slots.into_slots());
        let null = std::ptr::null_mut();
        let brought = self
            .slots
            .compare_exchange(null, slots, Ordering::SeqCst, Ordering::SeqCst);
        point();
        let after = before.wrapping_add(2);
        self.arrivals.store(after, Ordering::SeqCst);
        match brought {
            Ok(_) => Ok(()),
            Err(_) => {
                // SAFETY: it came from a box just now, and nobody else has seen it.
                let slots = unsafe { Box::from_raw(slots) };
                Err(UnsharedSlots::from_slots(slots, self.memory))
            }
        }
    }

    /// What the newest checkpoint has of it, if it has been here in this life: what is brought back must have the same.
    pub(crate) fn saved_before(&self) -> Option<SlotSet> {
        self.listed.load(Ordering::SeqCst).then(|| self.saved())
    }

    /// Are its free slots still to be listed? True once.
    pub(crate) fn take_unlisted(&self) -> bool {
        !self.listed.swap(true, Ordering::SeqCst)
    }

    /// Somebody waits for its slots: they stay when they have come, until [`Chunk::came_back`] is called for him.
    pub(crate) fn wait_for(&self) {
        self.awaited.fetch_add(1, Ordering::SeqCst);
    }

    /// One fewer waits.
    pub(crate) fn came_back(&self) {
        let before = self.awaited.fetch_sub(1, Ordering::SeqCst);
        debug_assert!(before > 0, "who came back has waited");
    }

    /// Does anybody wait for its slots?
    pub(super) fn is_awaited(&self) -> bool {
        self.awaited.load(Ordering::SeqCst) > 0
    }

    /// Has anybody looked here since the last call?
    pub(crate) fn take_touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed) && self.touched.swap(false, Ordering::Relaxed)
    }

    /// A change is in a chain, where a checkpoint that clears the mark after this sees it: called after the installation.
    #[inline]
    fn mark_changed(&self) {
        point();
        // Usually it is set, and reading it shares the line that installing has brought here anyway.
        if self.state.load(Ordering::SeqCst) & CHANGED == 0 {
            point();
            self.state.fetch_or(CHANGED, Ordering::SeqCst);
        }
    }

    /// There is something here that the newest checkpoint does not hold: the running one has met it, or replay. The next one looks again.
    pub(crate) fn set_changed(&self) {
        self.state.fetch_or(CHANGED, Ordering::SeqCst);
    }

    /// Is there something to look at for a checkpoint, or does it want to look `anyway`? Then it is WRITING from here on, CHANGED no more,
    /// and the answer tells whether it was. Called before looking.
    pub(crate) fn begin_writing(&self, anyway: bool) -> Option<bool> {
        loop {
            point();
            let state = self.state.load(Ordering::SeqCst);
            let changed = state & CHANGED != 0;
            if !changed && !anyway {
                return None;
            }
            if state & EVICTING != 0 {
                // Its slots are looked at, nothing more.
                std::thread::yield_now();
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

    /// The checkpoint is published, and whoever brings chunks back reads that one; or it has failed or wrote nothing of this chunk, and the
    /// one before is in force: then something that it was to write may be looked for `again`.
    pub(crate) fn end_writing(&self, again: bool) {
        point();
        if again {
            self.state.fetch_or(CHANGED, Ordering::SeqCst);
        }
        self.state.fetch_and(!WRITING, Ordering::SeqCst);
    }

    /// Does the newest checkpoint, and no other that is under way, have all of it, as far as marks tell?
    pub(crate) fn is_clean(&self) -> bool {
        self.state.load(Ordering::SeqCst) & (CHANGED | WRITING) == 0
    }

    /// The slots that have a row in the newest checkpoint.
    pub(crate) fn saved(&self) -> SlotSet {
        SlotSet(self.saved.load(Ordering::Relaxed))
    }

    /// A checkpoint that has a row for these slots is the newest now.
    pub(crate) fn set_saved(&self, set: &SlotSet) {
        self.saved.store(set.0, Ordering::Relaxed);
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
    /// What comes out was the newest at some moment during the call: slots that were taken out in the middle of it had not changed since they
    /// were frozen.
    #[inline]
    pub(crate) fn head<'g>(
        &self,
        slot: usize,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, NoSlots> {
        if !self.touched.load(Ordering::Relaxed) {
            self.touched.store(true, Ordering::Relaxed);
        }
        self.peek(slot, guard)
    }

    /// The same for who is no reason to keep the chunk in memory.
    #[inline]
    pub(crate) fn peek<'g>(
        &self,
        slot: usize,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, NoSlots> {
        let slots = self.slots(guard)?;
        point();
        let at = thawed(slots.0[slot].load(Ordering::SeqCst));
        Ok(VersionRef::from_raw(at, guard))
    }

    /// What it took when it was evicted last, if it was.
    pub(crate) fn evicted_bytes(&self) -> Option<u64> {
        Some(self.evicted_bytes.load(Ordering::Relaxed)).filter(|bytes| *bytes > 0)
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
        fresh: Fresh,
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, NoSlots> {
        let slots = self.slots(guard)?;
        let expected = expected.map_or(std::ptr::null_mut(), |v| v.at.as_ptr());
        // SAFETY: not published yet, so ours alone.
        unsafe { fresh.version.as_ref() }
            .next
            .store(expected, Ordering::Relaxed);
        let raw = fresh.version.as_ptr();
        point();
        // The guard keeps `expected` from being freed and its address from being used again, so equality of addresses
        // is identity. A frozen slot equals no address (V8).
        match slots.0[slot].compare_exchange(expected, raw, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => {}
            Err(found) if is_frozen(found) => return Err(NoSlots),
            Err(_) => return Ok(None),
        }
        std::mem::forget(fresh);
        Ok(VersionRef::from_raw(raw, guard))
    }

    /// Installs a version of `writer` above `expected`, which locks the row with (at least) `lock`; `None` if the slot's newest version is another one by now.
    #[expect(
        clippy::too_many_arguments,
        reason = "one call site per kind of write; a struct would only rename them"
    )]
    pub(crate) fn install<'g>(
        &self,
        slot: usize,
        expected: Option<VersionRef<'g>>,
        writer: &Writer,
        kind: Kind,
        lock: RowLock,
        command: u32,
        row: &[u8],
        guard: &'g Guard,
    ) -> Result<Option<VersionRef<'g>>, NoSlots> {
        // Counted before it can be reached (V4).
        writer.named.set(writer.named.get() + 1);
        let installed = self.install_fresh(
            slot,
            expected,
            Fresh::new(writer.address(), kind, lock, command, row, self.memory),
            guard,
        );
        if !matches!(installed, Ok(Some(_))) {
            writer.named.set(writer.named.get() - 1);
        } else if kind != Kind::LockOnly {
            self.mark_changed();
        }
        installed
    }

    /// Stamps the versions `writer` has in the slot with `csn`. The caller is pinned since before the writer's state
    /// became Precommitted.
    pub(crate) fn stamp(&self, slot: usize, writer: &Writer, csn: Csn, guard: &Guard) {
        // One's own version that is not stamped keeps the chunk in memory: there is nothing to stamp in one that is absent.
        let mut at = self.peek(slot, guard).ok().flatten();
        while let Some(version) = at {
            if version.is_of(writer) {
                version
                    .header()
                    .stamp
                    .store(csn.0 << 1 | 1, Ordering::Release);
                writer.named.set(writer.named.get().saturating_sub(1));
            } else if let Stamp::Committed(other) = version.stamp()
                && other <= csn
            {
                return;
            }
            at = version.next(guard);
        }
    }

    /// Takes the right to unlink, if nobody has it.
    pub(crate) fn try_prune(&self) -> Option<Prune<'_>> {
        self.pruning
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
            .then(|| Prune::new(self))
    }

    /// Takes the right to unlink; holders keep it for one slot's chain only, so the wait is short.
    pub(crate) fn prune_lock(&self) -> Prune<'_> {
        let mut spins = 0u32;
        loop {
            if let Some(prune) = self.try_prune() {
                return prune;
            }
            spins += 1;
            point();
            if spins.is_multiple_of(64) {
                std::thread::yield_now();
            } else {
                std::hint::spin_loop();
            }
        }
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
        // SAFETY: the chunk is dropped, so nobody pinned later can reach its slots and versions; what is read under guards pinned
        // before stays valid until those end. The address came from a box (V7). It is plain memory and may be freed on any thread.
        unsafe {
            crossbeam_epoch::pin().defer_unchecked(move || {
                let dropped = dropped;
                Slots::free(Box::from_raw(dropped.0), memory);
            });
        }
    }
}
