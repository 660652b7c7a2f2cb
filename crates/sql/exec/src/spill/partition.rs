//! Which partition a key belongs to.
//!
//! Each level of partitioning looks at other bits of the same hash, so rows of one partition are divided again at the
//! next. Rows that are alike always stay together, and after the last level nothing more can be divided.

use foldhash::fast::FixedState;
use std::hash::BuildHasher;

/// Partitions at each level.
pub(crate) const FANOUT: usize = 16;
/// Levels: 2^28 partitions in all.
pub(crate) const LEVELS_MAX: u32 = 7;

/// The partition of `key` at `level`. Hashed otherwise than in tables, or each partition would crowd its table.
pub(crate) fn partition_of(key: &[u8], level: u32) -> usize {
    let hash = FixedState::with_seed(0x5350_494c).hash_one(key);
    let shift = 32 + 4 * level.min(LEVELS_MAX);
    (hash >> shift) as usize % FANOUT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_divides_what_the_one_before_left_together() {
        let keys: Vec<Vec<u8>> = (0..100_000u32).map(|i| i.to_be_bytes().to_vec()).collect();
        let mut left: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        for level in 0..3 {
            let before = left.len();
            left.retain(|key| partition_of(key, level) == 3);
            let part = before as f64 / left.len() as f64;
            assert!((8.0..32.0).contains(&part), "{part} at level {level}");
        }
    }
}
