//! Which objects are to be emptied: those with few live bytes, which take space for nothing, and small ones when there
//! are many, which make records long.
//!
//! Small objects are taken by size, from eight of about the same live bytes on, as in a log-structured merge tree: so a
//! byte is moved a few times until it lies in a large object, however small the checkpoints are, and their number stays
//! small.
//!
//! Does not: move anything. The next checkpoint stores their pages anew, byte by byte
//! ([`move_pages`](crate::move_pages)), and the directory writes its nodes.

use crate::record::ObjectUse;
use logstead_home::ObjectId;
use std::collections::{BTreeMap, BTreeSet};

/// How much is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionLimits {
    /// Live bytes that one checkpoint moves, at most; one object is always allowed.
    pub moved_bytes_max: u64,
    /// Bytes of the objects that one checkpoint empties, dead ones too, at most; one object is always allowed. They are
    /// perhaps read to find what is alive.
    pub emptied_bytes_max: u64,
    /// An object is emptied when it has less than this part of live bytes, in percent.
    pub live_percent_min: u64,
    /// So many objects of about one size are put together.
    pub small_objects: usize,
    /// Larger objects are not put together with others.
    pub small_bytes_max: u64,
}

impl Default for CompactionLimits {
    fn default() -> CompactionLimits {
        CompactionLimits {
            moved_bytes_max: 32 << 20,
            emptied_bytes_max: 256 << 20,
            live_percent_min: 50,
            small_objects: 8,
            small_bytes_max: 16 << 20,
        }
    }
}

/// About one size: within a factor of four.
fn class(live_bytes: u64) -> u32 {
    live_bytes.max(1).ilog2() / 2
}

/// The objects that are to be emptied.
pub(crate) fn choose<'a>(
    uses: impl Iterator<Item = &'a ObjectUse>,
    limits: &CompactionLimits,
) -> BTreeSet<ObjectId> {
    let mut sparse: Vec<&ObjectUse> = Vec::new();
    let mut small: BTreeMap<u32, Vec<&ObjectUse>> = BTreeMap::new();
    for used in uses {
        let percent = u128::from(used.live_bytes) * 100 / u128::from(used.size_bytes.max(1));
        if percent < u128::from(limits.live_percent_min) {
            sparse.push(used);
        } else if used.size_bytes <= limits.small_bytes_max {
            small.entry(class(used.live_bytes)).or_default().push(used);
        }
    }
    // Those that give most for what is moved come first.
    sparse.sort_by_key(|used| {
        let percent = u128::from(used.live_bytes) * 1000 / u128::from(used.size_bytes.max(1));
        (percent, used.object)
    });
    let many = small
        .into_values()
        .filter(|of_class| of_class.len() >= limits.small_objects);
    let mut chosen = BTreeSet::new();
    let (mut moved, mut emptied) = (0, 0_u64);
    for used in sparse.into_iter().chain(many.flatten()) {
        moved += used.live_bytes;
        emptied = emptied.saturating_add(used.size_bytes);
        let is_much = moved > limits.moved_bytes_max || emptied > limits.emptied_bytes_max;
        if is_much && !chosen.is_empty() {
            break;
        }
        chosen.insert(used.object);
    }
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(object: u64, size_bytes: u64, live_bytes: u64) -> ObjectUse {
        ObjectUse {
            object: ObjectId(object),
            size_bytes,
            live_bytes,
        }
    }

    fn chosen(uses: &[ObjectUse]) -> Vec<u64> {
        let limits = CompactionLimits {
            moved_bytes_max: 1_000,
            emptied_bytes_max: 100_000,
            live_percent_min: 50,
            small_objects: 4,
            small_bytes_max: 500,
        };
        let chosen = choose(uses.iter(), &limits);
        chosen.into_iter().map(|object| object.0).collect()
    }

    #[test]
    fn objects_with_few_live_bytes_are_emptied_within_the_budget() {
        assert_eq!(chosen(&[]), [0; 0]);
        let uses = [
            used(1, 1_000, 500),
            used(2, 1_000, 499),
            used(3, 9_000, 600),
            used(4, 100, 40),
        ];
        // 3 gives most, then 4; with 2 it would be too much.
        assert_eq!(chosen(&uses), [3, 4]);
        assert_eq!(chosen(&[used(1, 90_000, 5_000)]), [1]);
        // However little of them is alive, they may have to be read.
        let large = [1, 2, 3].map(|n| used(n, 40_000, 10 * n));
        assert_eq!(chosen(&large), [1, 2]);
        assert_eq!(chosen(&[used(1, 900_000, 500)]), [1]);
    }

    #[test]
    fn small_objects_are_put_together_when_they_are_many() {
        let mut uses: Vec<_> = (1..4).map(|n| used(n, 100, 100)).collect();
        uses.push(used(9, 501, 501));
        uses.push(used(8, 20, 20));
        assert_eq!(chosen(&uses), [0; 0]);
        uses.push(used(7, 120, 90));
        assert_eq!(chosen(&uses), [1, 2, 3, 7]);
    }
}
