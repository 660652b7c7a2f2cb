//! Dropping what a chunk has in memory, whole, when its instance is restarted ([`crate::instance_restart`]).
//!
//! It is not asked whether what is in memory is right, or whether somebody still wants it. The chunk's rows are in the
//! newest checkpoint and in the durable log, and what comes back is read there. Its shell stays; if it is CHANGED, a
//! note says that the log has to be read ([`crate::logged_chunks`], L5).
//!
//! A chunk may go if it is not WRITING, and if every version in it is stamped with a CSN below `below`, which is at or
//! below the horizon. So unlike in [`super::evict_to_log`] chains may be long, and deleted rows may still be there,
//! that old snapshots see: whoever has one is told that they are gone ([`crate::instance_restart`], *Old snapshots*).
//!
//! # Why that is right
//!
//! The proof is that of [`super::evict_to_log`], with these differences:
//! - *Nothing in flight is lost.* While all slots are frozen no version of a transaction in flight is there: one that
//!   was installed before is seen and keeps the chunk; none is installed after. (1 there.) Who is in the way is told to
//!   the caller, who sees to it that it ends.
//! - *All that was committed comes back* (2, 4): it is below the horizon. Longer chains and tombstones are history: of
//!   each row what is newest is in the log or the checkpoint, a deletion as a record of its own.
//! - *CHANGED is not late.* Whoever installs sets it before he commits or undoes what he installed, and there is
//!   nothing else while all slots are frozen ([`super::evict`]). A chunk that is not CHANGED is in the newest
//!   checkpoint as it is, so it goes without a note.
//! - *No checkpoint is being taken* (5): the caller has its turn.
//! - *A shared lock stands*, and nobody needs to give it back: it is in the lock table, and the shell counts it. Who
//!   shares raises the counter and then compares the row's newest version with the one that he has judged; that is gone
//!   or not. Who locks alone finds the counter raised, in whatever slots.
//! - *The collector loses nothing.* What it was to look at is gone. The entries of versions that went are left in their
//!   indexes, surplus ones, and whoever meets one takes it out; the numbers of rows whose deletion went are free
//!   ([`DroppedChunk::deleted`]).
//!
//! Does not: choose chunks, end transactions, or bring anything back.

use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;

use super::chunk::{CHANGED, EVICTING, Slots, WRITING, frozen, is_absent, thawed};
use super::evict::{Taken, retire, thaw};
use super::{
    Chunk, Guard, SlotSet, SlotsAbsent, VersionKind, VersionRef, WriterStatus, version_bytes,
};
use crate::tree::interleave::point;
use crate::txn_state::TxnState;
use logstead_types::Csn;

/// Why a chunk is still in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KeptChunk {
    /// There is nothing of it.
    Absent,
    /// Somebody is at work in it, or what was committed there is not durable yet.
    InUse,
}

/// What has gone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DroppedChunk {
    pub(crate) rows: usize,
    /// Free when nobody looks at them any more.
    pub(crate) bytes: usize,
    /// What of them comes back: each row's newest version.
    pub(crate) newest_bytes: usize,
    /// Only the log has all of it.
    pub(crate) is_logged: bool,
    /// Slots of rows that were deleted, and that no collector has freed yet.
    pub(crate) deleted: SlotSet,
}

/// Looks at all slots; `each` is called before each of them is, `in_flight` for each version of a transaction that has
/// not stamped it. `None`: something keeps the chunk.
fn look(
    slots: &Slots,
    below: Csn,
    guard: &Guard,
    mut each: impl FnMut(usize),
    mut in_flight: impl FnMut(&TxnState),
) -> Option<DroppedChunk> {
    let mut found = DroppedChunk::default();
    let mut is_kept = false;
    for (slot, at) in slots.0.iter().enumerate() {
        each(slot);
        let at = at.load(Ordering::SeqCst);
        if is_absent(at) {
            continue;
        }
        let mut next = VersionRef::from_raw(thawed(at), guard);
        if let Some(head) = next {
            match head.kind() {
                VersionKind::Row { .. } => {
                    found.rows += 1;
                    found.newest_bytes += version_bytes(head.row().len());
                }
                VersionKind::Tombstone => found.deleted.insert(slot),
                // A lock; what is below it tells, and it is in flight.
                VersionKind::LockOnly => {}
            }
        }
        while let Some(version) = next {
            found.bytes += version_bytes(version.row().len());
            match version.writer_status() {
                WriterStatus::Committed(csn) => is_kept |= csn >= below,
                WriterStatus::InProgress(state) => {
                    is_kept = true;
                    in_flight(state);
                }
            }
            next = version.next(guard);
        }
    }
    (!is_kept).then_some(found)
}

impl Chunk {
    /// Drops what of the chunk is in memory, if it may go. `in_flight` hears of the transactions that have versions in
    /// it. Before anybody finds it absent `goes` is called, which notes what is to be noted, and hears whether only the
    /// log has all of it. `is_stored`: the newest checkpoint has its table.
    pub(crate) fn drop_memory(
        &self,
        (below, is_stored): (Csn, bool),
        guard: &Guard,
        in_flight: impl FnMut(&TxnState),
        goes: impl FnOnce(bool),
    ) -> Result<DroppedChunk, KeptChunk> {
        let slots = self.slots(guard).map_err(|SlotsAbsent| KeptChunk::Absent)?;
        if self.state.load(Ordering::SeqCst) & WRITING != 0 {
            return Err(KeptChunk::InUse);
        }
        // A look disturbs nobody, and tells of all who are in the way.
        look(slots, below, guard, |_| (), in_flight).ok_or(KeptChunk::InUse)?;
        let prune = self.try_prune().ok_or(KeptChunk::InUse)?;
        self.begin_evicting().map_err(|_| KeptChunk::InUse)?;
        let gone = self.drop_slots(slots, (below, is_stored), guard, goes);
        self.state.fetch_and(!EVICTING, Ordering::SeqCst);
        drop(prune);
        let (taken, dropped) = gone.ok_or(KeptChunk::InUse)?;
        retire(taken, guard);
        Ok(dropped)
    }

    /// The same, with the right to unlink and EVICTING.
    fn drop_slots(
        &self,
        slots: &Slots,
        (below, is_stored): (Csn, bool),
        guard: &Guard,
        goes: impl FnOnce(bool),
    ) -> Option<(Taken, DroppedChunk)> {
        // Others may have gone, and come, before. From here on nobody takes them out but we.
        let there = self.slots(guard);
        if !there.is_ok_and(|there| std::ptr::eq(there, slots)) {
            return None;
        }
        // Nobody brings anything from here on, and what was read before is put nowhere if this goes.
        let before = self.arrivals.load(Ordering::SeqCst);
        let odd = before.wrapping_add(1);
        let (set, get) = (Ordering::SeqCst, Ordering::SeqCst);
        let is_begun = before.is_multiple_of(2)
            && self
                .arrivals
                .compare_exchange(before, odd, set, get)
                .is_ok();
        if !is_begun {
            return None;
        }
        let mut frozen_slots = SlotSet::NONE;
        point();
        let freeze = |slot: usize| {
            let always = |at| Some(frozen(at));
            let _frozen_now = slots.0[slot].fetch_update(set, get, always);
            frozen_slots.insert(slot);
            point();
        };
        let Some(mut dropped) = look(slots, below, guard, freeze, |_| ()) else {
            thaw(slots, &frozen_slots);
            point();
            // Nothing was brought, and nothing has gone.
            self.arrivals.store(before, Ordering::SeqCst);
            return None;
        };
        point();
        if !is_stored {
            self.set_changed();
        }
        dropped.is_logged = self.state.load(Ordering::SeqCst) & CHANGED != 0;
        goes(dropped.is_logged);
        point();
        self.count_absent(dropped.newest_bytes);
        self.was_touched.store(false, Ordering::Relaxed);
        let gone = self.slots.swap(std::ptr::null_mut(), Ordering::SeqCst);
        point();
        self.arrivals
            .store(before.wrapping_add(2), Ordering::SeqCst);
        let taken = Taken {
            versions: SmallVec::new(),
            slots: NonNull::new(gone),
            memory: self.memory,
        };
        Some((taken, dropped))
    }
}
