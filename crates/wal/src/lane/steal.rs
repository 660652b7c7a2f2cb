//! Log stealing: one lane's buffered entries leave in another lane's block.
//!
//! A worker that flushes takes along what its neighbours have buffered: one larger write instead of several small ones,
//! and neighbours that are busy need not flush. The bytes are copied into the thief's block under construction; from
//! then on they are a claim of the victim in that block (see `claims`): recovery does not care in which lane an entry
//! lies, and for the victim nothing hardens before that block and everything claimed earlier has (T14).
//!
//! Invariants: bytes and their claim move together, under both lanes' locks, so they are stolen once and flushed once,
//! by whoever holds them then; a thief that is robbed passes on what it has stolen. Nothing waits here: both locks are
//! tried, never waited for, so lanes that steal from one another cannot deadlock.
//!
//! Who has blocks in flight does not steal: what it took would harden only after those (T2), and a lane whose home is
//! slow would slow down others. So stolen bytes always leave in the first block of the thief that is not hardened.

use super::buffer::StolenClaim;
use super::interleave::point;
use super::{EntryReservation, Lane, RoomRequest};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Lane {
    /// Moves all that `victim` has buffered into this lane's block under construction, if that is at most `bytes_max`
    /// bytes, finds room here, and nothing of this lane is in flight; returns how many bytes, 0 if nothing could be
    /// moved now. The caller flushes this lane.
    ///
    /// # Panics
    /// If the lanes are not of one log: a bug that would lose what is moved.
    pub fn steal(&self, victim: &Lane, bytes_max: usize) -> usize {
        let (thief, robbed) = (&self.shared, &victim.shared);
        assert!(
            (thief.start.database, thief.start.epoch)
                == (robbed.start.database, robbed.start.epoch),
            "lanes of two logs"
        );
        let there = robbed.buffered.load(Ordering::SeqCst);
        if Arc::ptr_eq(thief, robbed) || there == 0 || there > bytes_max {
            return 0;
        }
        point();
        // Some more: the victim goes on while room is being looked for.
        let Some(mut room) = thief.room_to_steal(there, there.saturating_mul(2).min(bytes_max))
        else {
            return 0;
        };
        point();
        let moved = thief.take_buffered(robbed, &mut room);
        drop(room);
        let (bytes, waiters) = moved.unwrap_or_default();
        robbed.wake(waiters);
        bytes
    }
}

impl super::LaneInner {
    /// Room in buffer and home for `least` bytes of entries, or up to `most` if they are free.
    fn room_to_steal(self: &Arc<Self>, least: usize, most: usize) -> Option<EntryReservation> {
        let (room, wanted_at_home) = {
            let mut state = self.state.try_lock()?;
            if state.failed.is_some() || !state.in_flight.is_empty() {
                return None;
            }
            let building = state.building.payload_len();
            let free = self.payload_size_max - building - state.reserved_bytes;
            let need = most.min(free);
            let need_at_home = self.padded(need);
            let wanted = self.padded(building) + state.reserved_at_home_bytes + need_at_home;
            if need < least || wanted > self.room_size_max {
                return None;
            }
            state.reserved_bytes += need;
            state.reserved_at_home_bytes += need_at_home;
            let room = EntryReservation {
                shared: Arc::clone(self),
                bytes: 0,
                need,
                need_at_home,
                allowed: 0,
            };
            (room, wanted)
        };
        // Whose disk is full leaves it where it is: no attempt for this, once per commit.
        let mut asked = RoomRequest::long_ago();
        let ensured = self
            .appends
            .ensure_room(self.start.lane, wanted_at_home, &mut asked);
        // A home that has failed tells so to whoever writes.
        ensured.is_ok().then_some(room)
    }

    /// The step under both locks. The room is used up if anything was moved.
    fn take_buffered(
        &self,
        robbed: &Arc<Self>,
        room: &mut EntryReservation,
    ) -> Option<(usize, Vec<std::task::Waker>)> {
        let mut mine = self.state.try_lock()?;
        let mut theirs = robbed.state.try_lock()?;
        if mine.failed.is_some() || theirs.failed.is_some() || !mine.in_flight.is_empty() {
            return None;
        }
        let bytes = theirs.building.payload_len();
        if bytes == 0 || bytes > room.need {
            return None;
        }
        let (mine, theirs) = (&mut *mine, &mut *theirs);
        if let Some(claim) = theirs.claim_own() {
            let from = Arc::downgrade(robbed);
            mine.building.stolen.push(StolenClaim { from, claim });
        }
        mine.building.take_all(&mut theirs.building);
        theirs.flush_asked = false;
        robbed.buffered.store(0, Ordering::SeqCst);
        self.buffered
            .store(mine.building.payload_len(), Ordering::SeqCst);
        mine.reserved_bytes -= std::mem::take(&mut room.need);
        mine.reserved_at_home_bytes -= std::mem::take(&mut room.need_at_home);
        mine.counters.steals += 1;
        mine.counters.stolen_bytes += bytes as u64;
        Some((bytes, std::mem::take(&mut theirs.waiters)))
    }
}
