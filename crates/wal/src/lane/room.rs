//! Room for an entry, taken before anything depends on it (T12).
//!
//! Invariant: what was taken, in the lane's buffer, at the home and of the allowance, is given back exactly once: by the push that uses it, or when
//! it is dropped.

use super::Shared;
use std::fmt;
use std::sync::Arc;

/// Place for one entry. Given back when dropped.
#[must_use]
pub struct Room {
    pub(super) shared: Arc<Shared>,
    pub(super) bytes: usize,
    pub(super) need: usize,
    pub(super) need_at_home: u64,
    /// What it has taken from the allowance.
    pub(super) allowed: u64,
}

impl Room {
    /// Bytes of records it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.need == 0 {
            return;
        }
        let waiters = {
            let mut state = self.shared.state.lock();
            state.reserved_bytes -= self.need;
            state.reserved_at_home_bytes -= self.need_at_home;
            // Only those whom this reservation may have kept out: else one whom the home refuses would wake itself, for ever.
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

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
