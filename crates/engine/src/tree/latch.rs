//! The version word of a page: readers remember a version, read, and ask whether it still stands; writers lock.
//!
//! The lowest bit says locked, the next obsolete (the page has left the tree for good), the rest counts changes.
//!
//! What is read between [`Latch::read`] and a [`Latch::check`] that succeeds was written by nobody in between. All of
//! it is atomics read relaxed, so a race is no undefined behaviour, only a reason to start again. Why relaxed is
//! enough: the writer sets the lock bit, then a release fence, then writes; the reader reads, then an acquire fence,
//! then the word again. If the reader got anything of what was written the fences are ordered, and he sees the lock bit
//! or what came after it.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::interleave;

/// The atomic a latch is made of, so that the model checker can run the very code that ships.
pub(super) trait Word: Sized {
    fn new(value: u64) -> Self;
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Replaces `from` by `to` (Acquire); false if it held something else.
    fn swap_if(&self, from: u64, to: u64) -> bool;
    fn fence(order: Ordering);
    /// Lets others go on.
    fn pause(spins: &mut u32);
}

impl Word for AtomicU64 {
    fn new(value: u64) -> Self {
        AtomicU64::new(value)
    }
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    #[inline]
    fn swap_if(&self, from: u64, to: u64) -> bool {
        self.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
            .is_ok()
    }
    #[inline]
    fn fence(order: Ordering) {
        fence(order);
    }
    fn pause(spins: &mut u32) {
        pause(spins);
    }
}

const LOCKED: u64 = 1;
const OBSOLETE: u64 = 2;
const STEP: u64 = 4;

/// What was read may be torn, or the page is gone: begin again at the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Restart;

/// A version that was not locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LatchVersion(u64);

/// A version word.
pub(super) struct Latch<W: Word = AtomicU64>(W);

impl<W: Word> Latch<W> {
    pub(super) fn new() -> Latch<W> {
        Latch(W::new(0))
    }

    /// The version to read under, after waiting while a writer has it. Who holds a lock must not wait for what is
    /// left of it.
    #[inline]
    pub(super) fn read(&self) -> Result<LatchVersion, Restart> {
        interleave::point();
        let word = self.0.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) == 0 {
            return Ok(LatchVersion(word));
        }
        self.read_slowly()
    }

    #[cold]
    fn read_slowly(&self) -> Result<LatchVersion, Restart> {
        let mut spins = 0;
        loop {
            let word = self.0.load(Ordering::Acquire);
            if word & OBSOLETE != 0 {
                return Err(Restart);
            }
            if word & LOCKED == 0 {
                return Ok(LatchVersion(word));
            }
            W::pause(&mut spins);
        }
    }

    /// Does the version still stand, and with it everything read since?
    #[inline]
    pub(super) fn check(&self, version: LatchVersion) -> Result<(), Restart> {
        interleave::point();
        W::fence(Ordering::Acquire);
        if self.0.load(Ordering::Relaxed) == version.0 {
            Ok(())
        } else {
            Err(Restart)
        }
    }

    /// Locks if the version still stands. Never waits.
    #[inline]
    pub(super) fn lock(&self, version: LatchVersion) -> Result<(), Restart> {
        interleave::point();
        if self.0.swap_if(version.0, version.0 | LOCKED) {
            W::fence(Ordering::Release);
            Ok(())
        } else {
            Err(Restart)
        }
    }

    /// Locks if nobody else has. Never waits.
    pub(super) fn lock_now(&self) -> Result<LatchVersion, Restart> {
        let word = self.0.load(Ordering::Acquire);
        if word & (LOCKED | OBSOLETE) != 0 {
            return Err(Restart);
        }
        self.lock(LatchVersion(word))?;
        Ok(LatchVersion(word))
    }

    /// Ends a lock taken at `version`.
    #[inline]
    pub(super) fn unlock(&self, version: LatchVersion, changed: bool, obsolete: bool) {
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
    if interleave::is_scheduled() {
        return;
    }
    if spins.is_multiple_of(32) {
        // Its thread may have lost the processor.
        std::thread::yield_now();
    } else {
        std::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64 as LoomU64;

    use super::*;

    impl Word for LoomU64 {
        fn new(value: u64) -> Self {
            LoomU64::new(value)
        }
        fn load(&self, order: Ordering) -> u64 {
            LoomU64::load(self, order)
        }
        fn store(&self, value: u64, order: Ordering) {
            LoomU64::store(self, value, order);
        }
        fn swap_if(&self, from: u64, to: u64) -> bool {
            self.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        }
        fn fence(order: Ordering) {
            loom::sync::atomic::fence(order);
        }
        fn pause(_: &mut u32) {
            loom::thread::yield_now();
        }
    }

    /// A page of two words that are always equal.
    #[derive(Clone)]
    struct Pair {
        latch: Arc<Latch<LoomU64>>,
        words: Arc<[LoomU64; 2]>,
    }

    impl Pair {
        fn new() -> Pair {
            Pair {
                latch: Arc::new(Latch::new()),
                words: Arc::new([LoomU64::new(0), LoomU64::new(0)]),
            }
        }

        fn read(&self) -> [u64; 2] {
            [0, 1].map(|at| self.words[at].load(Ordering::Relaxed))
        }

        /// Adds one to both; false if somebody else was quicker.
        fn add(&self) -> bool {
            let Ok(version) = self.latch.read() else {
                return false;
            };
            if self.latch.lock(version).is_err() {
                return false;
            }
            let [a, b] = self.read();
            assert_eq!(a, b, "under the lock nobody else writes");
            self.words[0].store(a + 1, Ordering::Relaxed);
            self.words[1].store(b + 1, Ordering::Relaxed);
            self.latch.unlock(version, true, false);
            true
        }
    }

    /// Whatever the memory model allows: what a reader believes was never half written.
    #[test]
    fn a_version_that_stands_means_that_nothing_was_torn() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let pair = Pair::new();
            let writer = {
                let pair = pair.clone();
                loom::thread::spawn(move || assert!(pair.add()))
            };
            let reader = {
                let pair = pair.clone();
                loom::thread::spawn(move || {
                    let version = pair.latch.read().expect("not obsolete");
                    let [a, b] = pair.read();
                    let stands = pair.latch.check(version).is_ok();
                    assert!(a == b || !stands, "{a} and {b}");
                })
            };
            writer.join().expect("writes");
            reader.join().expect("reads");
        });
    }

    /// Two writers: none overwrites what the other has written, and a version is never the same again.
    #[test]
    fn writers_see_each_other_s_words() {
        loom::model(|| {
            let pair = Pair::new();
            let before = pair.latch.read();
            let writer = {
                let pair = pair.clone();
                loom::thread::spawn(move || u64::from(pair.add()))
            };
            let mine = u64::from(pair.add());
            let both = mine + writer.join().expect("writes");
            assert_eq!(pair.read(), [both, both]);
            assert!(both >= 1 && pair.latch.read() != before);
        });
    }

    /// Who has noted a page's version before it left the tree does not believe it after.
    #[test]
    fn an_obsolete_page_is_not_believed() {
        let latch = Latch::<AtomicU64>::new();
        let version = latch.read().expect("new");
        latch.lock(version).expect("free");
        assert_eq!(latch.lock_now(), Err(Restart));
        latch.unlock(version, true, true);
        assert_eq!(latch.check(version), Err(Restart));
        assert_eq!(latch.read(), Err(Restart));
        assert_eq!(latch.lock_now(), Err(Restart));
        assert!(!latch.is_idle());
    }
}
