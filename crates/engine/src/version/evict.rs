//! Taking rows out of memory that the newest checkpoint has, while readers and writers go on. What only the log has
//! goes by chunks ([`super::evict_to_log`]).
//!
//! # What may go (T6)
//!
//! A row goes alone: the rest of its chunk may be in use, or newer than any checkpoint. It may if the chunk is not
//! WRITING and no row of it has shared locks; if its slot holds a single version: a row, stamped with a CSN below that
//! of the newest published checkpoint; and if that checkpoint has a row in this slot (`saved`). So what comes back is
//! what went: the page has the row and its CSN. Versions of old snapshots, of transactions in flight, and tombstones
//! stay; and so does whatever waits for the collector of garbage, which only ever looks for tombstones and second
//! versions. SERIALIZABLE keeps nothing in versions ([`crate::serializable`]).
//!
//! Where nothing stays the slots go too, as a whole: every row may go, is absent, or was never there (empty, and not
//! `saved`: a row that was deleted since would come back), and the chunk is not CHANGED.
//!
//! # How it goes
//!
//! 1. The right to unlink is taken, then EVICTING, from a state without WRITING.
//! 2. The slots that may go are looked at once more, each after it was frozen: its lowest bit is set by compare and
//!    swap. One that does not qualify is thawed again. If all are to go, those that are absent and empty are frozen as
//!    well. If somebody has raised the counter of shared locks by then, all are thawed.
//! 3. Each is set to ABSENT; or, if all go and nobody has set CHANGED, the shell's pointer to null. EVICTING is given
//!    back, and versions, and the slots if they went, are retired in one deferred call.
//!
//! # Why that is right
//!
//! - *No write is lost.* A version gets into a slot by compare and swap from an address without a mark. If that came
//!   before the slot was frozen, the look after it finds the version: it is not stamped, or not below the checkpoint's
//!   CSN, since whoever draws a CSN below it has installed before, and then the checkpoint has it. If it came after, it
//!   fails, and the writer is told that the row is absent: a slot that was taken out stays frozen for ever, one that
//!   was emptied is ABSENT until it is brought.
//! - *Nothing is missing in the next checkpoint.* An absent row has not changed since the last, so that has it; the
//!   next refers to the same page, or, if it writes the chunk anew, reads the row there ([`crate::checkpoint`]). An
//!   empty slot that is `saved`, and CHANGED, keep the slots: the next checkpoint has to look at them.
//! - *CHANGED is not late.* Whoever installs sets it before he commits or undoes what he installed
//!   ([`crate::checkpoint::walk`]). If all slots qualify while they are frozen, all that was ever installed there is
//!   committed or undone, so what CHANGED says of it is set.
//! - *Old snapshots are not in the way.* One that needs an older version than a slot's newest keeps that in the chain,
//!   which then has two. One that needs none sees nothing there, before and after: what comes back has the CSN it had.
//!   Who compares with the newest version, to lock or to certify, finds that CSN too.
//! - *The collector and undo lose nothing.* They unlink with the right to unlink, which eviction holds from the first
//!   frozen slot to the end.
//! - *No reader sees a wrong version.* Whoever loads the pointer and then a slot sees what was the newest between the
//!   two: what was taken out in the meantime had not changed since it was frozen. What was installed after it came back
//!   has been drawn later than the reader's snapshot was taken.
//! - *No freed memory is read.* Slots are reached through the shell alone, versions through slots alone; both are
//!   retired once, by whoever has swapped the pointer to them out, after that. Guards pinned before keep them, and
//!   nobody pinned later finds them.
//! - *What comes back is the newest.* EVICTING and WRITING exclude each other, so `saved` and the CSN given are of one
//!   checkpoint, or `saved` is of a newer one that is published too, and then the row is compared with that. Nothing is
//!   installed in an absent slot, so any checkpoint that is published later has the same row in it; and
//!   [`Chunk::bring`] takes nothing that was read for an earlier absence.
//! - *A shared lock stands.* It is in the lock table and in the shell's counter. Eviction gives up if it sees the
//!   counter raised; if it is raised later, whoever comes for an exclusive lock finds it, in whatever slots.
//!
//! Does not: choose rows, or bring anything back ([`crate::evict`], [`crate::page_loader`]).

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use logstead_types::Csn;
use smallvec::SmallVec;

use super::chunk::{
    CHANGED, EVICTING, SLOTS_BYTES, Slots, WRITING, absent, frozen, is_absent, thawed, version_in,
};
use super::{
    Chunk, Guard, PruneLock, SlotSet, SlotsAbsent, Version, VersionKind, VersionRef, WriterStatus,
    free, version_bytes,
};
use crate::memory::Memory;
use crate::tree::interleave::point;

/// Why something stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetainReason {
    /// It is not there.
    Absent,
    /// No published checkpoint has it: the next one may.
    Unsaved,
    /// Somebody is at work in it, or has shared locks, or waits for the collector or a snapshot to go; or it was to be
    /// spared.
    InUse,
}

/// What went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EvictionResult {
    pub(crate) rows: usize,
    /// Free when nobody looks at them any more.
    pub(crate) bytes: usize,
    /// Nothing of the chunk is left in memory.
    pub(crate) whole: bool,
    /// Something stays that the next checkpoint may have.
    pub(crate) unsaved: bool,
}

/// Versions that were taken out of their slots.
pub(super) struct Taken {
    /// Each alone in its chain; none of those in `slots`.
    pub(super) versions: SmallVec<[NonNull<Version>; 16]>,
    /// With the versions in them.
    pub(super) slots: Option<NonNull<Slots>>,
    pub(super) memory: &'static Memory,
}

/// Keeps checkpoints and eviction out of a chunk.
pub(crate) struct ChunkPruneGuard<'c> {
    chunk: &'c Chunk,
    _prune: PruneLock<'c>,
}

impl Drop for ChunkPruneGuard<'_> {
    fn drop(&mut self) {
        self.chunk.state.fetch_and(!EVICTING, Ordering::SeqCst);
    }
}

/// What a slot adds to what goes; `None`: it is empty.
fn judge(
    slot: usize,
    head: Option<VersionRef<'_>>,
    saved: &SlotSet,
    published: Csn,
    guard: &Guard,
) -> Result<Option<usize>, RetainReason> {
    let Some(version) = head else {
        // It may have been deleted since.
        return if saved.contains(slot) {
            Err(RetainReason::Unsaved)
        } else {
            Ok(None)
        };
    };
    let WriterStatus::Committed(csn) = version.writer_status() else {
        return Err(RetainReason::InUse);
    };
    if !matches!(version.kind(), VersionKind::Row { .. }) || version.next(guard).is_some() {
        return Err(RetainReason::InUse);
    }
    if csn >= published || !saved.contains(slot) {
        return Err(RetainReason::Unsaved);
    }
    Ok(Some(version_bytes(version.row().len())))
}

/// What is to go of a chunk.
#[derive(Default)]
struct Plan {
    /// Slots with rows that may go.
    rows: SlotSet,
    /// What the rows take.
    bytes: usize,
    /// Nothing stays.
    whole: bool,
    unsaved: bool,
}

impl Plan {
    fn keep(&mut self, kept: RetainReason) {
        self.whole = false;
        self.unsaved |= kept == RetainReason::Unsaved;
    }

    fn none(&self) -> RetainReason {
        if self.unsaved {
            RetainReason::Unsaved
        } else {
            RetainReason::InUse
        }
    }
}

impl Chunk {
    /// Slots are about to become free that counted as rows, `if` there are some. Nobody may look at them, and at what
    /// is `saved`, in between: that is what EVICTING is for, whoever has it. `None`: a checkpoint is writing the chunk.
    pub(crate) fn settle_if(&self, some: bool) -> Option<Option<ChunkPruneGuard<'_>>> {
        if !some {
            return Some(None);
        }
        let prune = self.prune_lock();
        self.begin_evicting().ok()?;
        Some(Some(ChunkPruneGuard {
            chunk: self,
            _prune: prune,
        }))
    }

    /// Takes rows out of memory, those that may go and are not `spared`. `published`: the CSN of the newest published
    /// checkpoint, read before.
    pub(crate) fn evict(
        &self,
        published: Csn,
        spared: &SlotSet,
        guard: &Guard,
    ) -> Result<EvictionResult, RetainReason> {
        let slots = self
            .slots(guard)
            .map_err(|SlotsAbsent| RetainReason::Absent)?;
        if self.state.load(Ordering::SeqCst) & WRITING != 0 {
            return Err(RetainReason::Unsaved);
        }
        if self.some_shared() {
            return Err(RetainReason::InUse);
        }
        // Who waits shall find it: where few rows fit, they would go round otherwise, and nobody would ever get to one.
        let spared = &spared.union(&self.expected());
        // What stays is told by a look, which disturbs nobody.
        let plan = self.plan(slots, published, spared, guard);
        if plan.rows.is_empty() && !plan.whole {
            return Err(plan.none());
        }
        let prune = self.try_prune().ok_or(RetainReason::InUse)?;
        self.begin_evicting()?;
        // Others may have gone, and come, before: what was looked at has to be what is there. From here on nobody takes
        // it out but we.
        let there = self.slots(guard);
        if !there.is_ok_and(|there| std::ptr::eq(there, slots)) {
            self.state.fetch_and(!EVICTING, Ordering::SeqCst);
            return Err(RetainReason::InUse);
        }
        let frozen = self.freeze(slots, &plan, published, guard);
        point();
        let taken = match &frozen {
            Ok(plan) => Some(self.take_out(slots, plan)),
            Err(_) => None,
        };
        self.state.fetch_and(!EVICTING, Ordering::SeqCst);
        drop(prune);
        if let Some(taken) = taken {
            retire(taken, guard);
        }
        let plan = frozen?;
        let slots_bytes = if plan.whole { SLOTS_BYTES } else { 0 };
        Ok(EvictionResult {
            rows: plan.rows.len(),
            bytes: plan.bytes + slots_bytes,
            whole: plan.whole,
            unsaved: plan.unsaved,
        })
    }

    /// What may go, as far as a look tells.
    fn plan(&self, slots: &Slots, published: Csn, spared: &SlotSet, guard: &Guard) -> Plan {
        let saved = self.saved();
        let mut plan = Plan {
            whole: true,
            ..Plan::default()
        };
        if self.state.load(Ordering::SeqCst) & CHANGED != 0 {
            plan.keep(RetainReason::Unsaved);
        }
        for (slot, at) in slots.0.iter().enumerate() {
            let at = at.load(Ordering::SeqCst);
            if is_absent(at) {
                continue;
            }
            let head = VersionRef::from_raw(thawed(at), guard);
            if head.is_some() && spared.contains(slot) {
                plan.keep(RetainReason::InUse);
                continue;
            }
            match judge(slot, head, &saved, published, guard) {
                Ok(None) => {}
                Ok(Some(_)) => plan.rows.insert(slot),
                Err(kept) => plan.keep(kept),
            }
        }
        plan
    }

    pub(super) fn begin_evicting(&self) -> Result<(), RetainReason> {
        loop {
            point();
            let state = self.state.load(Ordering::SeqCst);
            // Nobody else evicts: he has the right to unlink.
            if state & WRITING != 0 {
                return Err(RetainReason::Unsaved);
            }
            let evicting = state | EVICTING;
            let begun =
                self.state
                    .compare_exchange(state, evicting, Ordering::SeqCst, Ordering::SeqCst);
            if begun.is_ok() {
                return Ok(());
            }
        }
    }

    /// Freezes what is to go, and gives what can. Everything else is thawed again.
    fn freeze(
        &self,
        slots: &Slots,
        before: &Plan,
        published: Csn,
        guard: &Guard,
    ) -> Result<Plan, RetainReason> {
        // Nobody writes it: that takes WRITING, or an absent chunk.
        let saved = self.saved();
        let mut plan = Plan {
            whole: before.whole,
            unsaved: before.unsaved,
            ..Plan::default()
        };
        let mut frozen_slots = SlotSet::NONE;
        let to_look_at = if before.whole {
            SlotSet::ALL
        } else {
            before.rows
        };
        for slot in to_look_at.iter() {
            point();
            let always = |at| Some(frozen(at));
            let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
            let _frozen_now = slots.0[slot].fetch_update(set, get, always);
            frozen_slots.insert(slot);
            point();
            let at = slots.0[slot].load(Ordering::SeqCst);
            if is_absent(at) {
                continue;
            }
            let head = VersionRef::from_raw(thawed(at), guard);
            match judge(slot, head, &saved, published, guard) {
                // Empty, where all are to go.
                Ok(None) => {}
                Ok(Some(bytes)) => {
                    plan.rows.insert(slot);
                    plan.bytes += bytes;
                }
                Err(kept) => {
                    plan.keep(kept);
                    thaw(slots, &SlotSet::one(slot));
                    frozen_slots.remove(slot);
                }
            }
        }
        point();
        if self.some_shared() {
            thaw(slots, &frozen_slots);
            return Err(RetainReason::InUse);
        }
        if plan.whole && self.state.load(Ordering::SeqCst) != EVICTING {
            plan.keep(RetainReason::Unsaved);
        }
        if !plan.whole {
            thaw(slots, &frozen_slots.minus(&plan.rows));
            if plan.rows.is_empty() {
                return Err(plan.none());
            }
        }
        Ok(plan)
    }

    /// Takes out what is frozen.
    fn take_out(&self, slots: &Slots, plan: &Plan) -> Taken {
        let mut taken = Taken {
            versions: SmallVec::new(),
            slots: None,
            memory: self.memory,
        };
        self.count_absent(plan.bytes);
        if plan.whole {
            let slots = self.slots.swap(std::ptr::null_mut(), Ordering::SeqCst);
            taken.slots = NonNull::new(slots);
            self.was_touched.store(false, Ordering::Relaxed);
            return taken;
        }
        for slot in plan.rows.iter() {
            point();
            // V8: nobody else changes a frozen slot.
            let version = slots.0[slot].swap(absent(), Ordering::SeqCst);
            taken.versions.extend(version_in(version));
        }
        taken
    }
}

pub(super) fn thaw(slots: &Slots, which: &SlotSet) {
    for slot in which.iter() {
        let slot = &slots.0[slot];
        // V8: nobody else changes a frozen slot.
        slot.store(thawed(slot.load(Ordering::Relaxed)), Ordering::SeqCst);
    }
}

/// Frees what was taken out, when nobody looks at it any more.
pub(super) fn retire(taken: Taken, guard: &Guard) {
    // SAFETY: V1, V7: we have taken it out, once, with the right to unlink; frozen slots that were swapped out stay
    // frozen, so nothing is linked or unlinked there. Guards pinned before keep it alive, and nobody pinned later can
    // reach it. Versions came from `UnpublishedVersion::new` and were alone in their chains, slots came from a box and
    // are freed with their chains. All of it is plain memory and may be freed on any thread.
    unsafe {
        guard.0.defer_unchecked(move || {
            let Taken {
                versions,
                slots,
                memory,
            } = taken;
            for version in versions {
                free(version, memory);
            }
            if let Some(slots) = slots {
                Slots::free(Box::from_raw(slots.as_ptr()), memory);
            }
        });
    }
}
