//! How far the log may run ahead of durability, over all lanes together.
//!
//! Owns: the bytes taken by rooms, by entries that were pushed and are not hardened, and by pieces of side segments
//! that wait to be written. So memory stays bounded when the home stalls, and whoever writes waits.
//!
//! Invariants:
//! - `used` is at most the limit, except for what must not wait: the only entry of a lane (whoever is refused has
//!   something of its own lane on the way, whose end wakes it: nobody waits for ever), and pieces of side
//!   segments, which their transactions hold back themselves.
//! - Everything taken is given back exactly once.
//! - Room that comes up wakes everybody who registered before the look that found none.
//!
//! A lane keeps a little of what hardens for its next entries ([`LogAllocationLimit::keeps`]), so that lanes do not
//! meet here with each of them. What is kept counts as used.

use parking_lot::Mutex;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;

/// A lane keeps at most this part of the limit, and at most so many bytes.
const KEPT_PART: u64 = 1024;
const KEPT_BYTES_MAX: u64 = 64 << 10;
/// Limits that allow for less keep nothing: there it is not much.
const KEPT_BYTES_MIN: u64 = 4 << 10;

/// Bytes of log that may wait to become durable, shared by the lanes that were opened with it.
pub struct LogAllocationLimit {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    /// `waiters` is not empty: giving back looks here first.
    waited_for: AtomicBool,
    waiters: Mutex<Vec<Waker>>,
}

impl LogAllocationLimit {
    /// An allocation limit of `limit_bytes`, none of it taken.
    pub fn new(limit_bytes: u64) -> LogAllocationLimit {
        LogAllocationLimit {
            limit_bytes,
            used_bytes: AtomicU64::new(0),
            waited_for: AtomicBool::new(false),
            waiters: Mutex::default(),
        }
    }

    /// The limit.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// What is taken.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::SeqCst)
    }

    /// Nothing is left.
    pub fn is_used_up(&self) -> bool {
        self.used_bytes() >= self.limit_bytes
    }

    /// Takes `bytes` if they are there.
    pub(super) fn take(&self, bytes: u64) -> bool {
        let taken = |used: u64| {
            let used = used.checked_add(bytes)?;
            (used <= self.limit_bytes).then_some(used)
        };
        self.used_bytes
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, taken)
            .is_ok()
    }

    /// Takes `bytes`, also beyond the limit.
    pub(super) fn force(&self, bytes: u64) {
        self.used_bytes.fetch_add(bytes, Ordering::SeqCst);
    }

    /// What a lane keeps of so many bytes that it could give back. Nothing while somebody waits.
    pub(super) fn keeps(&self, bytes: u64) -> u64 {
        let most = (self.limit_bytes / KEPT_PART).min(KEPT_BYTES_MAX);
        if most < KEPT_BYTES_MIN || self.waited_for.load(Ordering::SeqCst) {
            return 0;
        }
        bytes.min(most)
    }

    /// Gives `bytes` back and wakes who waits. Called without locks.
    pub(super) fn give_back(&self, bytes: u64) {
        if bytes == 0 {
            return;
        }
        let before = self.used_bytes.fetch_sub(bytes, Ordering::SeqCst);
        debug_assert!(before >= bytes, "more given back than was taken");
        if self.waited_for.load(Ordering::SeqCst) {
            let waiters = {
                let mut waiters = self.waiters.lock();
                self.waited_for.store(false, Ordering::SeqCst);
                std::mem::take(&mut *waiters)
            };
            for waiter in waiters {
                waiter.wake();
            }
        }
    }

    pub(super) fn wait(&self, waker: &Waker) {
        let mut waiters = self.waiters.lock();
        if !waiters.iter().any(|known| known.will_wake(waker)) {
            waiters.push(waker.clone());
        }
        // Before the caller looks again: whoever gives back after that look sees it.
        self.waited_for.store(true, Ordering::SeqCst);
    }
}

impl fmt::Debug for LogAllocationLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Allowance")
            .field("limit_bytes", &self.limit_bytes)
            .field("used_bytes", &self.used_bytes())
            .finish_non_exhaustive()
    }
}
