//! The commit ring: which CSNs above the horizon are Committed.
//!
//! One word per CSN, in a ring; a word holds the CSN that is Committed. A bitmap would have to be cleared before a bit
//! is used again, in a race with those who read it; a word that names its CSN is simply overwritten.
//!
//! Invariants: CSN x + capacity is drawn only when the horizon is above x, so a word that names another CSN than the
//! one asked for says nothing about it, and who then looks at the horizon again is told the truth. Adjacent CSNs lie in
//! different cache lines: different workers set them.
//!
//! Who sets a CSN may be late: the horizon has passed it, and its word belongs to a later one. So a word only grows.

use std::sync::atomic::AtomicU64;

use logstead_types::Csn;

use crate::atomic_facade::AtomicWord;

/// Words of a cache line.
const LINE: u64 = 8;

/// See the module's documentation.
pub struct CommitRing<W: AtomicWord = AtomicU64> {
    words: Box<[W]>,
    /// Cache lines minus one; a power of two minus one.
    lines_mask: u64,
    lines_log: u32,
}

impl<W: AtomicWord> CommitRing<W> {
    /// For at least `csns` CSNs above the horizon.
    pub fn new(csns: u64) -> CommitRing<W> {
        let lines = csns.div_ceil(LINE).next_power_of_two().max(1);
        CommitRing {
            words: (0..lines * LINE).map(|_| W::new(0)).collect(),
            lines_mask: lines - 1,
            lines_log: lines.trailing_zeros(),
        }
    }

    /// How far the counter may be ahead of the horizon.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.words.len() as u64
    }

    /// The number of the word of a CSN, below [`CommitRing::capacity`].
    #[inline]
    pub fn place(&self, csn: Csn) -> usize {
        let line = csn.0 & self.lines_mask;
        let within = csn.0 >> self.lines_log & (LINE - 1);
        (line * LINE + within) as usize
    }

    #[inline]
    fn word(&self, csn: Csn) -> &W {
        &self.words[self.place(csn)]
    }

    /// `csn` is Committed. Told late, when the word stands for a later CSN already, it changes nothing: the horizon is
    /// above `csn` then.
    #[inline]
    pub fn set(&self, csn: Csn) {
        self.word(csn).fetch_max(csn.0);
    }

    /// True if `csn` is known to be Committed. After a no the horizon tells.
    #[inline]
    pub fn has(&self, csn: Csn) -> bool {
        self.word(csn).load() == csn.0
    }

    /// Is `csn` Committed? Once true, always true.
    #[inline]
    pub fn is_committed(&self, csn: Csn, horizon: impl Fn() -> Csn) -> bool {
        // The word may have been taken by a later CSN, which was drawn after the horizon had passed this one: so the
        // horizon is looked at last.
        csn < horizon() || self.has(csn) || csn < horizon()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_csn_of_a_window_has_a_word_of_its_own() {
        let ring: CommitRing = CommitRing::new(100);
        assert_eq!(ring.capacity(), 128);
        for csn in 1000..1128 {
            assert!(!ring.has(Csn(csn)));
            ring.set(Csn(csn));
        }
        assert!((1000..1128).all(|csn| ring.has(Csn(csn))));
        ring.set(Csn(1128));
        assert!(!ring.has(Csn(1000)), "its word is used again");
        assert!((1001..1129).all(|csn| ring.has(Csn(csn))));
        ring.set(Csn(1000));
        assert!(ring.has(Csn(1128)), "a late one takes nothing back");
    }

    #[test]
    fn neighbours_do_not_share_a_cache_line() {
        let ring: CommitRing = CommitRing::new(1024);
        let line = |csn| {
            let at = std::ptr::from_ref(ring.word(Csn(csn))) as usize;
            (at - ring.words.as_ptr() as usize) / 64
        };
        assert_ne!(line(5), line(6));
    }

    use loom::sync::Arc;
    use loom::sync::atomic::{AtomicU64 as LoomU64, Ordering};

    /// 5 is Committed; the horizon passes it and its word is used again while somebody asks.
    #[test]
    fn what_is_committed_stays_so_when_its_word_is_used_again() {
        loom::model(|| {
            let ring: Arc<CommitRing<LoomU64>> = Arc::new(CommitRing::new(8));
            let horizon = Arc::new(LoomU64::new(5));
            ring.set(Csn(5));
            let other = {
                let (ring, horizon) = (ring.clone(), horizon.clone());
                loom::thread::spawn(move || {
                    horizon.store(6, Ordering::SeqCst);
                    ring.set(Csn(5 + 8));
                })
            };
            let now = || Csn(horizon.load(Ordering::SeqCst));
            assert!(ring.is_committed(Csn(5), now));
            other.join().expect("sets");
        });
    }

    /// 5 is durable and below the horizon, but who sets it is late: its word is 13's by now.
    #[test]
    fn who_is_late_takes_nothing_back() {
        loom::model(|| {
            let ring: Arc<CommitRing<LoomU64>> = Arc::new(CommitRing::new(8));
            let late = {
                let ring = ring.clone();
                loom::thread::spawn(move || ring.set(Csn(5)))
            };
            ring.set(Csn(5 + 8));
            late.join().expect("sets");
            assert!(ring.is_committed(Csn(5 + 8), || Csn(6)));
            assert!(ring.is_committed(Csn(5), || Csn(6)));
        });
    }
}
