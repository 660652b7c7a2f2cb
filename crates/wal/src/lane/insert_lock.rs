//! One entry on its way into the lane, from the lock to the append.
//!
//! Who commits takes the lane's lock *before* it publishes `reserved` and draws its CSN, and keeps it until `reserved`
//! is cleared (T12). So between those two no lock is taken, waited for or given back: who has to wait for the lane,
//! because a thread that holds its lock has lost the processor, has not drawn yet and holds nobody's horizon.
//!
//! What was prepared by [`Lane::enter`](super::Lane::enter), under the lock:
//! - vectors in which the entry's head is made have room for the largest head, and the list of side segments for one
//!   more;
//! - the memory that the entry will fill has been touched: a buffer is fresh from the system until it was filled once,
//!   and the fault of a page may have to wait for memory.
//!
//! Invariant: [`LaneInsertLock::push`] allocates nothing, does no I/O, and takes no lock. Its time is that of a copy
//! and a checksum of the entry, which is at most [`Lane::inline_size_max`](super::Lane::inline_size_max) and its head.

use super::{Cursor, EntryReservation, LaneInner, LaneState, PushResult};
use crate::entry::{self, DEPS_LIST_MAX, EntryBody, EntryDependencies, SideRef};
use logstead_types::Csn;
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A lane's lock, held for one entry, and the entry's room. Given back unused when it is dropped before a push.
#[must_use]
pub struct LaneInsertLock<'l> {
    shared: &'l Arc<LaneInner>,
    // Dropped before the room, which takes the lock if it was not used.
    state: MutexGuard<'l, LaneState>,
    room: EntryReservation,
}

impl<'l> LaneInsertLock<'l> {
    #[inline]
    pub(super) fn new(shared: &'l Arc<LaneInner>, room: EntryReservation) -> LaneInsertLock<'l> {
        LaneInsertLock::with(shared, shared.state.lock(), room)
    }

    /// Gives the room back if somebody has the lock.
    pub(super) fn try_new(
        shared: &'l Arc<LaneInner>,
        room: EntryReservation,
    ) -> Result<LaneInsertLock<'l>, EntryReservation> {
        match shared.state.try_lock() {
            Some(state) => Ok(LaneInsertLock::with(shared, state, room)),
            None => Err(room),
        }
    }

    #[inline]
    fn with(
        shared: &'l Arc<LaneInner>,
        mut state: MutexGuard<'l, LaneState>,
        room: EntryReservation,
    ) -> LaneInsertLock<'l> {
        state.building.prepare(room.need);
        LaneInsertLock {
            shared,
            state,
            room,
        }
    }

    /// Gives the lock back, and keeps the room.
    pub fn leave(self) -> EntryReservation {
        self.room
    }

    /// Appends the entry and publishes its CSN as not durable. Its GSN is larger than the lane's last and at least
    /// `gsn_min`. The lock is given back when the entrance is dropped.
    ///
    /// # Panics
    /// If the room is smaller than the records or was used: a bug in the commit path that would corrupt the log.
    #[inline]
    pub fn push(
        &mut self,
        csn: Csn,
        gsn_min: u64,
        deps: &EntryDependencies,
        records: &[u8],
    ) -> PushResult {
        assert!(
            records.len() <= self.room.bytes,
            "an entry larger than its room"
        );
        self.push_body(csn, gsn_min, deps, &EntryBody::Inline(records))
    }

    /// The same with the entry of a transaction whose records
    /// [`SideSegmentWriter::finish`](super::SideSegmentWriter::finish) has made durable.
    ///
    /// # Panics
    /// If the room was used.
    pub fn push_side(
        &mut self,
        csn: Csn,
        gsn_min: u64,
        deps: &EntryDependencies,
        side: &SideRef,
    ) -> PushResult {
        self.push_body(csn, gsn_min, deps, &EntryBody::Side(*side))
    }

    fn push_body(
        &mut self,
        csn: Csn,
        gsn_min: u64,
        deps: &EntryDependencies,
        body: &EntryBody<'_>,
    ) -> PushResult {
        assert!(
            deps.list.len() <= DEPS_LIST_MAX,
            "more dependencies than an entry may list"
        );
        assert!(csn != Csn::ZERO, "an entry needs a CSN that was drawn");
        assert!(self.room.need > 0, "a room holds one entry");
        let (shared, state, room) = (self.shared, &mut *self.state, &mut self.room);
        // The room becomes bytes in the buffer: its drop has nothing left to give back.
        state.reserved_bytes -= std::mem::take(&mut room.need);
        state.reserved_at_home_bytes -= std::mem::take(&mut room.need_at_home);
        state.head.clear();
        entry::encode_head(csn, deps, body, &mut state.scratch, &mut state.head);
        let records: &[u8] = if let EntryBody::Inline(records) = body {
            records
        } else {
            &[]
        };
        let was_clean = state.building.is_empty();
        state
            .building
            .append(csn, &state.head, records, || shared.clock.monotonic());
        if let EntryBody::Side(side) = body {
            state.building.sides.push(*side);
        }
        let bytes = (state.head.len() + records.len()) as u64;
        state.taken_in_excess_bytes += std::mem::take(&mut room.allowed) - bytes;
        state.pushed += bytes;
        state.gsn = gsn_min.max(state.gsn + 1);
        state.unclaimed_csn_lowest = state.unclaimed_csn_lowest.min(csn);
        // The lock orders the writers; readers take one look.
        if shared.first_not_durable.load(Ordering::Relaxed) > csn.get() {
            shared.first_not_durable.store(csn.get(), Ordering::SeqCst);
        }
        shared.pushed.store(state.pushed, Ordering::SeqCst);
        let buffered = state.building.payload_len();
        shared.buffered.store(buffered, Ordering::SeqCst);
        PushResult {
            end: Cursor(state.pushed),
            gsn: state.gsn,
            was_clean,
        }
    }
}
