//! A transaction between its pre-commit and its acknowledgment, as the queues carry it.

use logstead_types::{Csn, Dsn};
use smallvec::SmallVec;

/// Words of a serialized transaction object without its predecessors: one cache line with the first of them.
const FIXED_WORDS: usize = 7;
/// Most words of an object: seven, and 32 predecessors.
pub(crate) const WORDS_MAX: usize = FIXED_WORDS + crate::dependency_set::LIST_MAX;
/// In the first word: the number of predecessors, a flag, the lane, and from here on the time of execution.
const COUNT_MASK: u64 = 0x7f;
const LOCAL: u64 = 1 << 7;
const LANE_SHIFT: u32 = 8;
const EXECUTION_SHIFT: u32 = 24;

/// A transaction that waits to be acknowledged. Times are nanoseconds of the environment's clock; 0 is not measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PendingCommit {
    /// Its CSN.
    pub csn: Csn,
    /// The lane its entry is in.
    pub lane: u16,
    /// Where its entry ends in its lane's buffer: a cursor that only grows.
    pub end: u64,
    /// The newest CSN it depends on.
    pub dsn: Dsn,
    /// It depends on everything up to here; 0 if it does not.
    pub floor: Csn,
    /// Its entry's GSN; only where tracking goes by pages.
    pub gsn: u64,
    /// Every chunk it looked at was written by its own lane, or by writers already hardened (remote flush avoidance).
    pub local: bool,
    /// How long it ran before that, up to a quarter of an hour.
    pub execution_ns: u64,
    /// When it pre-committed.
    pub precommitted_at: u64,
    /// Direct predecessors by name.
    pub list: SmallVec<[Csn; 4]>,
    /// When the block with its entry was sealed, and when it was hardened: not part of the words.
    pub flushed: Option<(u64, u64)>,
}

impl PendingCommit {
    /// How many words it takes.
    pub fn word_count(&self) -> usize {
        FIXED_WORDS + self.list.len()
    }

    /// Hands its words out, in order.
    pub fn write(&self, mut put: impl FnMut(u64)) {
        let flag = if self.local { LOCAL } else { 0 };
        let execution = self.execution_ns.min(u64::MAX >> EXECUTION_SHIFT);
        let lane = u64::from(self.lane) << LANE_SHIFT;
        put(self.list.len() as u64 | flag | lane | execution << EXECUTION_SHIFT);
        put(self.csn.0);
        put(self.end);
        put(self.dsn.0);
        put(self.floor.0);
        put(self.gsn);
        put(self.precommitted_at);
        for csn in &self.list {
            put(csn.0);
        }
    }

    /// Makes it of its words again.
    pub fn read(mut next: impl FnMut() -> u64) -> PendingCommit {
        let head = next();
        let mut pending = PendingCommit {
            local: head & LOCAL != 0,
            lane: (head >> LANE_SHIFT) as u16,
            execution_ns: head >> EXECUTION_SHIFT,
            csn: Csn(next()),
            end: next(),
            dsn: Dsn(next()),
            floor: Csn(next()),
            gsn: next(),
            precommitted_at: next(),
            list: SmallVec::new(),
            flushed: None,
        };
        for _ in 0..head & COUNT_MASK {
            pending.list.push(Csn(next()));
        }
        pending
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sample(csn: u64, predecessors: u64) -> PendingCommit {
        PendingCommit {
            csn: Csn(csn),
            lane: 0xfe00 | csn as u16,
            end: csn * 100,
            dsn: Dsn(csn - 1),
            floor: Csn(csn / 2),
            gsn: csn + 7,
            local: csn.is_multiple_of(2),
            execution_ns: csn * 10,
            precommitted_at: csn * 1000,
            flushed: None,
            list: (1..=predecessors).map(Csn).collect(),
        }
    }

    #[test]
    fn words_bring_everything_back() {
        for predecessors in [0, 1, 5, 32] {
            let pending = sample(77, predecessors);
            let mut words = Vec::new();
            pending.write(|word| words.push(word));
            assert_eq!(words.len(), pending.word_count());
            let mut words = words.into_iter();
            assert_eq!(
                PendingCommit::read(|| words.next().expect("enough")),
                pending
            );
            assert_eq!(words.next(), None);
        }
    }
}
