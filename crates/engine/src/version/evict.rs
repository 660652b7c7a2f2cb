//! Taking a chunk out of memory whose rows the newest checkpoint has, while readers and writers go on.
//!
//! # What may go (T6)
//!
//! A chunk that is neither CHANGED nor WRITING, without shared locks, in which every slot is empty or holds a single version: a row, stamped with a CSN below that of
//! the newest published checkpoint; and the slots with rows are exactly those that the checkpoint has, or a row
//! that was deleted since would come back. So what comes back is what went: the page has the row and its CSN. Versions of old snapshots, of
//! transactions in flight, and tombstones keep their chunk in memory; and so does whatever waits for the collector of garbage, which only
//! ever looks for tombstones and second versions. SERIALIZABLE keeps nothing in versions ([`crate::serializable`]).
//!
//! # How it goes
//!
//! 1. The right to unlink is taken, then EVICTING, from a state in which nothing is set.
//! 2. Each slot is frozen: its lowest bit is set by compare and swap, and only then is it looked at. If one does not qualify, or the state has
//!    changed, all are thawed again.
//! 3. The shell's pointer is set to null, EVICTING is given back, and slots and versions are retired together.
//!
//! # Why that is right
//!
//! - *No write is lost.* A version gets into a slot by compare and swap from an address without the bit. If that came before the slot was frozen,
//!   the look after it finds the version: it is not stamped, or not below the checkpoint's CSN, since whoever draws a CSN below it has
//!   installed before, and then the checkpoint has it. If it came after, it fails, and the writer is told that the chunk is absent. Slots
//!   that were taken out stay frozen for ever, so it fails there too.
//! - *Old snapshots are not in the way.* One that needs an older version than a slot's newest keeps that in the chain, which then has two. One that needs none sees
//!   nothing there, before and after: what comes back has the CSN it had. Who compares with the newest version, to lock or to certify, finds
//!   that CSN too.
//! - *The collector and undo lose nothing.* They unlink with the right to unlink, which eviction holds from the first frozen slot to the end.
//! - *No reader sees a wrong version.* Whoever loads the pointer and then a slot sees what was the newest between the two: slots that were
//!   taken out in the meantime had not changed since they were frozen. What was installed after the chunk came back has been drawn later
//!   than the reader's snapshot was taken.
//! - *No freed memory is read.* Slots are reached through the shell alone, versions through slots alone; both are retired once, by whoever has swapped
//!   the pointer out, after that. Guards pinned before keep them, and nobody pinned later finds them.
//! - *What comes back is the newest.* EVICTING and WRITING exclude each other, so `saved` and the CSN given are of one checkpoint, or `saved` is of a newer one that is
//!   published too, and then the rows are compared with that. Nothing is installed in an absent chunk, so any checkpoint that is
//!   published later has the same rows of it; and of one chunk there is one load at a time ([`crate::fault`]).
//! - *A shared lock stands.* It is in the lock table and in the shell's counter. Eviction gives up if it sees the counter raised; if it is
//!   raised later, whoever comes for an exclusive lock finds it, in whatever slots.
//!
//! Does not: choose chunks, or bring anything back ([`crate::evict`], [`crate::fault`]).

use std::sync::atomic::Ordering;

use logstead_types::Csn;

use super::chunk::{EVICTING, SLOTS_BYTES, Slots, frozen, thawed};
use super::{Chunk, Guard, Kind, SlotSet, Stamp, VersionRef, version_bytes};
use crate::tree::interleave::point;

/// Why a chunk stays in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    /// It is not there.
    Absent,
    /// No published checkpoint has all of it: the next one may.
    Unsaved,
    /// Somebody is at work in it, or has shared locks, or waits for the collector or a snapshot to go.
    Used,
}

/// What a slot adds to what goes.
fn judge(
    slot: usize,
    head: Option<VersionRef<'_>>,
    saved: &SlotSet,
    published: Csn,
    guard: &Guard,
) -> Result<usize, Kept> {
    let Some(version) = head else {
        // It may have been deleted since.
        return if saved.contains(slot) {
            Err(Kept::Unsaved)
        } else {
            Ok(0)
        };
    };
    let Stamp::Committed(csn) = version.stamp() else {
        return Err(Kept::Used);
    };
    if !matches!(version.kind(), Kind::Row { .. }) || version.next(guard).is_some() {
        return Err(Kept::Used);
    }
    if csn >= published || !saved.contains(slot) {
        return Err(Kept::Unsaved);
    }
    Ok(version_bytes(version.row().len()))
}

impl Chunk {
    /// Takes slots and versions out of memory, if they may go. `published`: the CSN of the newest published checkpoint, read before.
    /// Tells how many bytes are free when nobody looks at them any more.
    pub(crate) fn evict(&self, published: Csn, guard: &Guard) -> Result<usize, Kept> {
        if !self.is_present() {
            return Err(Kept::Absent);
        }
        if !self.is_clean() {
            return Err(Kept::Unsaved);
        }
        // Who waits shall find it: where few chunks fit, they would go round otherwise, and nobody would ever get to one.
        if self.some_shared() || self.is_awaited() {
            return Err(Kept::Used);
        }
        // Most chunks that stay are told by a look, which disturbs nobody.
        let saved = self.saved();
        for slot in 0..super::CHUNK_SLOTS {
            let head = self.peek(slot, guard).map_err(|_| Kept::Absent)?;
            judge(slot, head, &saved, published, guard)?;
        }
        let prune = self.try_prune().ok_or(Kept::Used)?;
        point();
        self.state
            .compare_exchange(0, EVICTING, Ordering::SeqCst, Ordering::SeqCst)
            .map_err(|_| Kept::Unsaved)?;
        let frozen = self.freeze(published, guard);
        point();
        if let Ok(bytes) = frozen {
            self.evicted_bytes.store(bytes as u64, Ordering::Relaxed);
            let slots = self.slots.swap(std::ptr::null_mut(), Ordering::SeqCst);
            self.state.fetch_and(!EVICTING, Ordering::SeqCst);
            drop(prune);
            self.retire(slots, guard);
        } else {
            self.state.fetch_and(!EVICTING, Ordering::SeqCst);
        }
        frozen
    }

    /// Freezes every slot, or none: then something does not qualify.
    fn freeze(&self, published: Csn, guard: &Guard) -> Result<usize, Kept> {
        let slots = self.slots(guard).map_err(|_| Kept::Absent)?;
        // Nobody writes it: that takes WRITING, or an absent chunk.
        let saved = self.saved();
        let mut bytes = SLOTS_BYTES;
        for (slot, head) in slots.0.iter().enumerate() {
            point();
            let always = |at| Some(frozen(at));
            let _frozen_now = head.fetch_update(Ordering::SeqCst, Ordering::SeqCst, always);
            point();
            let version = self.peek(slot, guard).map_err(|_| Kept::Absent);
            let judged = version.and_then(|version| judge(slot, version, &saved, published, guard));
            match judged {
                Ok(more) => bytes += more,
                Err(kept) => {
                    self.thaw(slots, slot + 1);
                    return Err(kept);
                }
            }
        }
        point();
        let state = self.state.load(Ordering::SeqCst);
        if state == EVICTING && !self.some_shared() {
            return Ok(bytes);
        }
        self.thaw(slots, super::CHUNK_SLOTS);
        Err(Kept::Used)
    }

    fn thaw(&self, slots: &Slots, below: usize) {
        for slot in &slots.0[..below] {
            // V8: nobody else changes a frozen slot.
            slot.store(thawed(slot.load(Ordering::Relaxed)), Ordering::SeqCst);
        }
    }

    /// Frees slots that were swapped out, when nobody looks at them any more.
    fn retire(&self, slots: *mut Slots, guard: &Guard) {
        /// Carries the address to whatever thread frees it.
        struct Evicted(*mut Slots);
        // SAFETY: after the swap nobody but the collector frees it, and slots and versions are plain memory.
        unsafe impl Send for Evicted {}
        let evicted = Evicted(slots);
        let memory = self.memory;
        // SAFETY: V7: it came from a box and was swapped out by us, once; its slots stay frozen, so nothing is linked or unlinked there.
        // Guards pinned before keep it alive, and nobody pinned later can reach it.
        unsafe {
            guard.0.defer_unchecked(move || {
                let evicted = evicted;
                Slots::free(Box::from_raw(evicted.0), memory);
            });
        }
    }
}
