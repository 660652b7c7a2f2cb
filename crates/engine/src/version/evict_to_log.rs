//! Taking a chunk out of memory that has changed since the newest checkpoint, once its log is durable (T6).
//!
//! A chunk goes as a whole, with the rows that the checkpoint has and those that it does not. Its shell stays, CHANGED,
//! and a note says that the log has to be asked for it ([`crate::logged_chunks`]). It may go if it is not WRITING, if
//! no row of it has shared locks and nobody waits for one, and if each slot is empty, absent, or holds a single
//! version: a row, stamped with a CSN below `below` ([`LogEvictionBounds`]). That is at or below the horizon, and at or
//! below the CSN of every checkpoint that is being taken.
//!
//! # Why that is right
//!
//! Let `L` be the highest CSN of a change in the chunk, `H` the horizon as it was read while all slots were frozen
//! (the *read point*), and `C` the moment in which they were.
//!
//! 1. *`L` is below `H`.* What changed the chunk last is a version that is there, which is below `below`; or a deletion
//!    whose tombstone was collected, and that was below the horizon by then (T1), which only grows; or it was undone,
//!    and has no CSN. Nothing else is in flight: its version would be in a slot, and would not be stamped.
//! 2. *No crash takes anything of it back.* All below the horizon is durable, together with all that it depends on, and
//!    recovery brings it back (T9), whether its client has heard of it or not.
//! 3. *The chunk does not change while it is away.* Who wants to change a row has to find it first, and is told that it
//!    is absent; a free slot is part of the chunk too. An installer's compare and swap fails on a frozen slot, and
//!    slots that went stay frozen for ever (V8).
//! 4. So the chunk's rows are the same at every CSN from `H` to that of the next change behind its return: what anybody
//!    who has applied the log up to `H`, or further, has of it, is what went. He may be as far ahead as he likes: the
//!    next change comes after the return, and then what he says is for an absence that is over (6).
//! 5. *A checkpoint misses nothing.* The shell stays CHANGED, so each looks at it. One at `S` that is being taken, or
//!    begins later, finds all changes below `S` (1, and `below`), or, if the chunk has come back and was changed since,
//!    the chunk. A version that `S` needs beside the newest is a second version, and that stays. EVICTING and WRITING
//!    exclude each other, so none looks at slots that are going.
//! 6. *Nobody brings back what is stale.* Going counts as an arrival ([`super::chunk`], *Coming back*): whoever noted
//!    an absence before, of single rows, and has read them from a checkpoint, puts nothing there. From then on the note
//!    is there before the absence is: who asks later finds it, or finds it gone because somebody was quicker, and then
//!    his absence is over as well.
//! 7. *The rest is as for single rows* ([`super::evict`]): old snapshots, the collector, shared locks, freed memory.
//!
//! Does not: choose chunks, keep notes, or bring anything back ([`crate::evict`], [`crate::load`]).

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use logstead_types::Csn;
use smallvec::SmallVec;

use super::chunk::{CHANGED, EVICTING, SLOTS_BYTES, Slots, WRITING, frozen, is_absent, thawed};
use super::evict::{EvictionResult, Taken, retire, thaw};
use super::{
    Chunk, Guard, RetainReason, SlotSet, SlotsAbsent, VersionKind, VersionRef, WriterStatus,
    version_bytes,
};
use crate::tree::interleave::point;

/// A chunk with more than this in memory does not go: it comes back as one.
const CHUNK_BYTES_MAX: usize = 256 << 10;

/// What a chunk has to be like to go.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogEvictionBounds {
    /// The CSN of the newest published checkpoint, read before.
    pub(crate) published: Csn,
    /// Its versions are below this: at or below the horizon, and the CSN of each checkpoint that is being taken.
    pub(crate) below: Csn,
}

/// What has left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LeftChunk {
    /// The slots with a row, in memory or absent by then.
    pub(crate) present: SlotSet,
    /// Those that are not as the newest checkpoint has them.
    pub(crate) dirty: SlotSet,
    /// What the rows took that are dirty.
    pub(crate) dirty_bytes: u64,
    /// Which versions of these rows there were.
    pub(crate) versions: VersionDigest,
}

/// Which versions of rows there are, by a hash over slots and CSNs: a row has one version with a CSN. Slots are put in
/// in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionDigest(u64);

impl VersionDigest {
    pub(crate) fn add(&mut self, slot: usize, csn: Csn) {
        // SplitMix64's finalizer, for each of them.
        for part in [slot as u64 + 1, csn.get()] {
            let x = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ part;
            let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            self.0 = x ^ (x >> 31);
        }
    }
}

/// What of a chunk goes, as far as it was looked at.
#[derive(Default)]
struct Going {
    present: SlotSet,
    dirty: SlotSet,
    rows: usize,
    bytes: usize,
    dirty_bytes: usize,
    versions: VersionDigest,
}

impl Going {
    /// Adds a slot that is not absent.
    fn add(
        &mut self,
        slot: usize,
        head: Option<VersionRef<'_>>,
        saved: &SlotSet,
        bounds: &LogEvictionBounds,
        guard: &Guard,
    ) -> Result<(), RetainReason> {
        let Some(version) = head else {
            if saved.contains(slot) {
                self.dirty.insert(slot);
            }
            return Ok(());
        };
        let WriterStatus::Committed(csn) = version.writer_status() else {
            return Err(RetainReason::InUse);
        };
        if csn >= bounds.below
            || !matches!(version.kind(), VersionKind::Row { .. })
            || version.next(guard).is_some()
        {
            return Err(RetainReason::InUse);
        }
        let bytes = version_bytes(version.row().len());
        self.present.insert(slot);
        self.rows += 1;
        self.bytes += bytes;
        if csn >= bounds.published || !saved.contains(slot) {
            self.dirty.insert(slot);
            self.dirty_bytes += bytes;
            self.versions.add(slot, csn);
        }
        match self.bytes > CHUNK_BYTES_MAX {
            true => Err(RetainReason::InUse),
            false => Ok(()),
        }
    }

    /// Looks at all slots. `each` is called before each is looked at.
    fn look(
        slots: &Slots,
        saved: &SlotSet,
        bounds: &LogEvictionBounds,
        guard: &Guard,
        mut each: impl FnMut(usize),
    ) -> Result<Going, RetainReason> {
        let mut going = Going::default();
        for (slot, at) in slots.0.iter().enumerate() {
            each(slot);
            let at = at.load(Ordering::SeqCst);
            if is_absent(at) {
                going.present.insert(slot);
                continue;
            }
            let head = VersionRef::from_raw(thawed(at), guard);
            going.add(slot, head, saved, bounds, guard)?;
        }
        Ok(going)
    }
}

impl Chunk {
    /// Takes the chunk out of memory, if it is CHANGED and may go. `keep` notes what has left, before anybody finds it
    /// absent: it reads the horizon.
    pub(crate) fn evict_to_log(
        &self,
        bounds: &LogEvictionBounds,
        guard: &Guard,
        keep: impl FnOnce(LeftChunk),
    ) -> Result<EvictionResult, RetainReason> {
        let slots = self
            .slots(guard)
            .map_err(|SlotsAbsent| RetainReason::Absent)?;
        if self.state.load(Ordering::SeqCst) & (CHANGED | WRITING) != CHANGED {
            return Err(RetainReason::InUse);
        }
        let is_wanted = || self.some_shared() || !self.expected().is_empty();
        if is_wanted() {
            return Err(RetainReason::InUse);
        }
        // A look disturbs nobody.
        Going::look(slots, &self.saved(), bounds, guard, |_| {})?;
        let prune = self.try_prune().ok_or(RetainReason::InUse)?;
        self.begin_evicting()?;
        let gone = self.go(slots, bounds, guard, is_wanted, keep);
        self.state.fetch_and(!EVICTING, Ordering::SeqCst);
        drop(prune);
        let (taken, result) = gone?;
        retire(taken, guard);
        Ok(result)
    }

    /// The same, with the right to unlink and EVICTING.
    fn go(
        &self,
        slots: &Slots,
        bounds: &LogEvictionBounds,
        guard: &Guard,
        is_wanted: impl Fn() -> bool,
        keep: impl FnOnce(LeftChunk),
    ) -> Result<(Taken, EvictionResult), RetainReason> {
        // Others may have gone, and come, before. From here on nobody takes them out but we.
        let there = self.slots(guard);
        if !there.is_ok_and(|there| std::ptr::eq(there, slots)) {
            return Err(RetainReason::InUse);
        }
        // Nobody brings anything from here on, and what was read before is put nowhere if this goes.
        let before = self.arrivals.load(Ordering::SeqCst);
        let odd = before.wrapping_add(1);
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        if !before.is_multiple_of(2)
            || self
                .arrivals
                .compare_exchange(before, odd, set, get)
                .is_err()
        {
            return Err(RetainReason::InUse);
        }
        let mut frozen_slots = SlotSet::NONE;
        point();
        let going = Going::look(slots, &self.saved(), bounds, guard, |slot| {
            let always = |at| Some(frozen(at));
            let _frozen_now = slots.0[slot].fetch_update(set, get, always);
            frozen_slots.insert(slot);
            point();
        });
        let going = match going {
            Ok(going) if !is_wanted() => going,
            refused => {
                thaw(slots, &frozen_slots);
                point();
                // Nothing was brought, and nothing has gone.
                self.arrivals.store(before, Ordering::SeqCst);
                return Err(refused.err().unwrap_or(RetainReason::InUse));
            }
        };
        point();
        keep(LeftChunk {
            present: going.present,
            dirty: going.dirty,
            dirty_bytes: going.dirty_bytes as u64,
            versions: going.versions,
        });
        point();
        self.count_absent(going.bytes);
        self.was_touched.store(false, Ordering::Relaxed);
        let taken = self.slots.swap(std::ptr::null_mut(), Ordering::SeqCst);
        point();
        self.arrivals
            .store(before.wrapping_add(2), Ordering::SeqCst);
        let taken = Taken {
            versions: SmallVec::new(),
            slots: NonNull::new(taken),
            memory: self.memory,
        };
        let result = EvictionResult {
            rows: going.rows,
            bytes: going.bytes + SLOTS_BYTES,
            whole: true,
            unsaved: false,
        };
        Ok((taken, result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::UNLIMITED;
    use crate::version::UnsharedSlots;

    const ROW: VersionKind = VersionKind::Row {
        keys_changed: false,
    };

    /// What was noted and read before a chunk left is put nowhere, and the note is there before the chunk is absent.
    #[test]
    fn what_was_read_before_a_chunk_left_is_put_nowhere() {
        let (chunk, guard) = (Chunk::new(&UNLIMITED), Guard::pin());
        for (slot, csn) in [(0, 5), (1, 20), (2, 6)] {
            let row = [slot as u8];
            let put = chunk.install_committed(slot, None, Csn(csn), ROW, &row, &guard);
            assert!(put.expect("it is there").is_some());
        }
        let saved = SlotSet::one(0)
            .union(&SlotSet::one(2))
            .union(&SlotSet::one(3));
        chunk.set_saved(&saved);
        chunk.set_changed();
        let published = Csn(10);
        let spared = SlotSet::one(2);
        let gone = chunk.evict(published, &spared, &guard).expect("a row goes");
        assert_eq!((gone.rows, gone.whole), (1, false));
        let absence = chunk.absence(&guard).expect("nobody brings anything");
        assert_eq!(*absence.slots(), SlotSet::one(0));
        let bounds = |below| LogEvictionBounds {
            published,
            below: Csn(below),
        };
        let not_kept = |_| panic!("it stays");
        let refused = chunk.evict_to_log(&bounds(20), &guard, not_kept);
        assert_eq!(refused, Err(RetainReason::InUse), "a version is too new");
        assert!(chunk.is_still(&absence), "what was read may be put in");
        let mut kept = None;
        let left = chunk.evict_to_log(&bounds(21), &guard, |left| {
            assert!(chunk.is_present(), "the note comes first");
            assert!(chunk.absence(&guard).is_none(), "nobody gets a note of it");
            kept = Some(left);
        });
        assert_eq!(left.expect("it goes").rows, 2);
        let left = kept.expect("it is noted");
        assert_eq!(left.present.bits(), 0b111);
        // Written since, and deleted since.
        assert_eq!(left.dirty.bits(), 0b1010);
        let mut versions = VersionDigest::default();
        versions.add(1, Csn(20));
        assert_eq!(left.versions, versions);
        assert!(!chunk.is_present() && chunk.is_changed());
        let mut rows = UnsharedSlots::new(&UNLIMITED);
        rows.replace(0, Csn(5), Some(b"old"));
        let brought = chunk.bring(&absence, rows, &SlotSet::one(0), &saved, &guard);
        assert_eq!(brought, None);
        assert!(!chunk.is_present());
        let absence = chunk.absence(&guard).expect("it is away");
        assert_eq!(*absence.slots(), SlotSet::ALL);
    }
}
