//! The version word of a page: readers remember a version, read, and ask whether it still stands; writers lock.
//!
//! The lowest bit says locked, the next obsolete (the page has left the tree for good), the rest counts changes.
//!
//! What is read between [`Latch::read`] and a [`Latch::check`] that succeeds was written by nobody in between. All of
//! it is atomics read relaxed, so a race is no undefined behaviour, only a reason to start again. Why relaxed is enough:
//! the writer sets the lock bit, then a release fence, then writes; the reader reads, then an acquire fence, then the
//! word again. If the reader got anything of what was written the fences are ordered, and he sees the lock bit or what
//! came after it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::interleave;

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const STEP: u64 = 4;

/// What was read may be torn, or the page is gone: begin again at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restart;

/// A version that was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version(u64);

/// A version word.
pub(super) struct Latch(AtomicU64);

impl Latch {
    pub(super) const fn new() -> Latch {
        Latch(AtomicU64::new(0))
    }

    /// The version to read under, after waiting while a writer has it. Who holds a lock must not wait for what is
    /// left of it.
    #[inline]
    pub(super) fn read(&self) -> Result<Version, Restart> {
        interleave::point();
        let word = self.0.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) == 0 {
            return Ok(Version(word));
        }
        self.read_slowly()
    }

    #[cold]
    fn read_slowly(&self) -> Result<Version, Restart> {
        let mut spins = 0;
        loop {
            let word = self.0.load(Ordering::Acquire);
            if word & OBSOLETE != 0 {
                return Err(Restart);
            }
            if word & LOCKED == 0 {
                return Ok(Version(word));
            }
            pause(&mut spins);
        }
    }

    /// Does the version still stand, and with it everything read since?
    #[inline]
    pub(super) fn check(&self, version: Version) -> Result<(), Restart> {
        interleave::point();
        fence(Ordering::Acquire);
        if self.0.load(Ordering::Relaxed) == version.0 {
            Ok(())
        } else {
            Err(Restart)
        }
    }

    /// Locks if the version still stands. Never waits.
    #[inline]
    pub(super) fn lock(&self, version: Version) -> Result<(), Restart> {
        interleave::point();
        match self.0.compare_exchange(
            version.0,
            version.0 | LOCKED,
            Ordering::Acquire,
            Ordering::Relaxed,
        ) {
            Ok(_) => {
                fence(Ordering::Release);
                Ok(())
            }
            Err(_) => Err(Restart),
        }
    }

    /// Locks if nobody else has. Never waits.
    pub(super) fn lock_now(&self) -> Result<Version, Restart> {
        let word = self.0.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) != 0 {
            return Err(Restart);
        }
        self.lock(Version(word))?;
        Ok(Version(word))
    }

    /// Ends a lock taken at `version`.
    #[inline]
    pub(super) fn unlock(&self, version: Version, changed: bool, obsolete: bool) {
        interleave::point();
        let word = if obsolete {
            version.0.wrapping_add(STEP) | OBSOLETE
        } else if changed {
            version.0.wrapping_add(STEP)
        } else {
            version.0
        };
        self.0.store(word, Ordering::Release);
    }

    /// Neither locked nor obsolete.
    pub(super) fn is_idle(&self) -> bool {
        self.0.load(Ordering::Acquire) & (LOCKED | OBSOLETE) == 0
    }
}

/// Lets others go on.
pub(super) fn pause(spins: &mut u32) {
    interleave::point();
    *spins += 1;
    if spins.is_multiple_of(32) {
        // Its thread may have lost the processor.
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}
