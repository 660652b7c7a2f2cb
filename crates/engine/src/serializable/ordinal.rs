//! Places in the certified order, and who wrote something since a place.

use smallvec::SmallVec;

/// A place in the order of certification. Writers get 1, 2, 3, ... one each. A transaction that begins when the next
/// one to be given is `b` sees exactly the certified writers below `b`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Ordinal(pub(crate) u64);

impl Ordinal {
    /// Before every writer: also "nobody has read it".
    pub(crate) const NONE: Ordinal = Ordinal(0);
    /// After every writer: also "nobody has overwritten it".
    pub(crate) const LAST: Ordinal = Ordinal(u64::MAX);

    /// The one before.
    pub(crate) fn before(self) -> Ordinal {
        Ordinal(self.0.saturating_sub(1))
    }
}

/// Certified writers of one thing, with their sstamps, to answer: what is the least sstamp among those from some place
/// on?
///
/// Invariant: ordinals and sstamps both grow strictly. A writer with an sstamp at or below those before it makes them
/// superfluous, since it is in every range of places that contains one of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriterStamps(SmallVec<[(Ordinal, Ordinal); 1]>);

impl WriterStamps {
    /// Adds the newest writer.
    pub(crate) fn push(&mut self, ordinal: Ordinal, sstamp: Ordinal) {
        while self.0.last().is_some_and(|(_, least)| *least >= sstamp) {
            self.0.pop();
        }
        self.0.push((ordinal, sstamp));
    }

    /// The least sstamp of those at or above `from`; `LAST` if there are none.
    pub(crate) fn since(&self, from: Ordinal) -> Ordinal {
        // Most questions are about the newest one only.
        match self.0.last() {
            Some((newest, _)) if *newest >= from => {
                let first = self.0.partition_point(|(ordinal, _)| *ordinal < from);
                self.0[first].1
            }
            _ => Ordinal::LAST,
        }
    }

    /// Forgets writers below `oldest`, which nobody asks for any more.
    pub(crate) fn trim(&mut self, oldest: Ordinal) {
        let gone = self.0.partition_point(|(ordinal, _)| *ordinal < oldest);
        if gone > 0 {
            self.0.drain(..gone);
        }
    }

    /// Halves it: of two neighbours one stays, with the later place and the lower sstamp. Answers only get lower.
    pub(crate) fn halve(&mut self) {
        self.0 = self
            .0
            .chunks(2)
            .map(|pair| (pair[pair.len() - 1].0, pair[0].1))
            .collect();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_sstamp_since_a_place() {
        // Against a plain list, with every mixture of sstamps.
        let mut seed = 1_u64;
        let mut roll = |n: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..200 {
            let mut writers = WriterStamps::default();
            let mut plain: Vec<(Ordinal, Ordinal)> = Vec::new();
            for ordinal in 1..30 {
                if roll(3) == 0 {
                    continue;
                }
                let sstamp = Ordinal(if roll(2) == 0 {
                    ordinal
                } else {
                    1 + roll(ordinal)
                });
                writers.push(Ordinal(ordinal), sstamp);
                plain.push((Ordinal(ordinal), sstamp));
            }
            let least = |from: Ordinal| {
                plain
                    .iter()
                    .filter(|(ordinal, _)| *ordinal >= from)
                    .map(|(_, sstamp)| *sstamp)
                    .min()
                    .unwrap_or(Ordinal::LAST)
            };
            for from in 0..32 {
                assert_eq!(writers.since(Ordinal(from)), least(Ordinal(from)));
            }
            let oldest = Ordinal(roll(30));
            let mut trimmed = writers.clone();
            trimmed.trim(oldest);
            for from in oldest.0..32 {
                assert_eq!(trimmed.since(Ordinal(from)), least(Ordinal(from)));
            }
            let mut halved = writers.clone();
            halved.halve();
            assert!(halved.len() <= writers.len().div_ceil(2));
            for from in 0..32 {
                assert!(halved.since(Ordinal(from)) <= least(Ordinal(from)));
            }
        }
    }
}
