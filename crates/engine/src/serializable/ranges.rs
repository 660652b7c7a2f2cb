//! Ranges of index keys: what a cursor has walked, and who has read which keys.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::ordinal::Ordinal;

/// The keys from `start` on, below `end`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyRange {
    pub(crate) start: Vec<u8>,
    /// `None`: no end.
    pub(crate) end: Option<Vec<u8>>,
}

impl KeyRange {
    /// Every key.
    pub(crate) fn all() -> KeyRange {
        KeyRange {
            start: Vec::new(),
            end: None,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.end.as_ref().is_some_and(|end| *end <= self.start)
    }

    /// For looking keys up in an ordered map. The range is not empty.
    pub(crate) fn bounds(&self) -> (Bound<&[u8]>, Bound<&[u8]>) {
        let end = match &self.end {
            Some(end) => Bound::Excluded(end.as_slice()),
            None => Bound::Unbounded,
        };
        (Bound::Included(self.start.as_slice()), end)
    }

    /// Makes `key` the last key of the range, as the end of what a forward walk has seen.
    pub(crate) fn end_with(&mut self, key: &[u8]) {
        let end = self.end.get_or_insert_with(Vec::new);
        end.clear();
        end.extend_from_slice(key);
        // The least bytes above the key.
        end.push(0);
    }

    /// Makes `key` the first key of the range, as the end of what a backward walk has seen.
    pub(crate) fn start_with(&mut self, key: &[u8]) {
        self.start.clear();
        self.start.extend_from_slice(key);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.start.len() + self.end.as_ref().map_or(0, Vec::len)
    }
}

/// For every key the newest place from which it was read as part of a range: a map from where a stamp begins to hold
/// to the stamp. Keys before the first have `NONE`.
#[derive(Debug, Default)]
pub(crate) struct RangeStamps(BTreeMap<Vec<u8>, Ordinal>);

impl RangeStamps {
    /// The stamp of `key`.
    pub(crate) fn at(&self, key: &[u8]) -> Ordinal {
        self.0
            .range::<[u8], _>((Bound::Unbounded, Bound::Included(key)))
            .next_back()
            .map_or(Ordinal::NONE, |(_, stamp)| *stamp)
    }

    /// Raises the stamps of all keys in `range` to `stamp` at least. Gives the bytes it took, boundaries included.
    pub(crate) fn raise(&mut self, range: &KeyRange, stamp: Ordinal) -> usize {
        if range.is_empty() {
            return 0;
        }
        let mut grown = 0;
        for boundary in [Some(&range.start), range.end.as_ref()]
            .into_iter()
            .flatten()
        {
            if !self.0.contains_key(boundary) {
                let stamp = self.at(boundary);
                grown += boundary.len() + size_of::<(Vec<u8>, Ordinal)>();
                self.0.insert(boundary.clone(), stamp);
            }
        }
        let mut before = self
            .0
            .range::<[u8], _>((Bound::Unbounded, Bound::Excluded(range.start.as_slice())))
            .next_back()
            .map_or(Ordinal::NONE, |(_, stamp)| *stamp);
        let mut superfluous = Vec::new();
        for (boundary, old) in self.0.range_mut::<[u8], _>(range.bounds()) {
            *old = (*old).max(stamp);
            if *old == before {
                superfluous.push(boundary.clone());
            }
            before = *old;
        }
        for boundary in superfluous {
            self.0.remove(&boundary);
        }
        grown
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_behind_its_last_key() {
        let mut walked = KeyRange::all();
        walked.end_with(&[7]);
        assert!(
            walked.end.as_deref() > Some(&[7][..]) && walked.end.as_deref() < Some(&[7, 1][..])
        );
        walked.start_with(&[7]);
        assert!(!walked.is_empty());
        walked.end = Some(vec![7]);
        assert!(walked.is_empty());
    }

    #[test]
    fn stamps_of_overlapping_ranges() {
        // Against one stamp per key.
        let mut seed = 7_u64;
        let mut roll = |n: u64| {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (seed >> 33) % n
        };
        for _ in 0..100 {
            let mut stamps = RangeStamps::default();
            let mut plain = [Ordinal::NONE; 41];
            for _ in 0..30 {
                let (a, b, stamp) = (roll(40) as u8, roll(40) as u8, Ordinal(roll(20)));
                let range = KeyRange {
                    start: vec![a],
                    end: (roll(8) > 0).then(|| vec![b]),
                };
                stamps.raise(&range, stamp);
                let end = if range.end.is_some() {
                    usize::from(b)
                } else {
                    41
                };
                for slot in plain.iter_mut().take(end).skip(usize::from(a)) {
                    *slot = (*slot).max(stamp);
                }
                for (key, stamp) in plain.iter().enumerate() {
                    assert_eq!(stamps.at(&[key as u8]), *stamp);
                }
            }
            stamps.raise(&KeyRange::all(), Ordinal(50));
            assert_eq!(stamps.len(), 1, "neighbours with one stamp are one");
        }
    }
}
