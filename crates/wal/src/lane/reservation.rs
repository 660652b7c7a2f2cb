//! Room for an entry, taken before anything depends on it (T12).
//!
//! Invariant: what was taken, in the lane's buffer, at the home and of the allocation limit, is given back exactly
//! once: by the push that uses it, or when it is dropped.

use super::LaneInner;
use std::fmt;
use std::sync::Arc;

/// Place for one entry. Given back when dropped.
#[must_use]
pub struct EntryReservation {
    pub(super) shared: Arc<LaneInner>,
    pub(super) bytes: usize,
    pub(super) need: usize,
    pub(super) need_at_home: u64,
    /// What it has taken from the allocation limit.
    pub(super) allowed: u64,
}

impl EntryReservation {
    /// Bytes of records it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for EntryReservation {
    fn drop(&mut self) {
        if self.need == 0 {
            return;
        }
        let waiters = {
            let mut state = self.shared.state.lock();
            state.reserved_bytes -= self.need;
            state.reserved_at_home_bytes -= self.need_at_home;
            // Only those whom this reservation may have kept out: else one whom the home refuses would wake itself, for
            // ever.
            if std::mem::take(&mut state.space_wanted) {
                std::mem::take(&mut state.waiters)
            } else {
                Vec::new()
            }
        };
        self.shared.give_back(self.allowed);
        self.shared.wake(waiters);
    }
}

impl fmt::Debug for EntryReservation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
