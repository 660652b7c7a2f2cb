//! The tree against a sorted set, by one thread and by many, and under a scheduler that tries out interleavings.

mod absent;
mod absent_model;
mod measure;
#[cfg(debug_assertions)]
mod meetings;
mod model;
#[cfg(debug_assertions)]
mod races;
mod stored;
mod threads;

use super::*;
use crate::memory::UNLIMITED;

/// For tests in which nothing is evicted.
trait There<T> {
    fn there(self) -> T;
}

impl<T> There<T> for Result<T, AbsentLeaf> {
    fn there(self) -> T {
        self.expect("all leaves are there")
    }
}

fn tree() -> Tree {
    tree_of(false)
}

/// That of a divided index, perhaps: keys that begin with different bytes are of different partitions then.
fn tree_of(divided: bool) -> Tree {
    Tree::new(&UNLIMITED, divided)
}

/// A key that no other one begins with: no zero but the one at its end.
fn key(text: &[u8]) -> Vec<u8> {
    let mut key: Vec<u8> = text.iter().map(|byte| (*byte).max(1)).collect();
    key.push(0);
    key
}

fn entry(key: &[u8], rid: u64) -> Vec<u8> {
    let mut entry = key.to_vec();
    entry.extend_from_slice(&rid.to_be_bytes());
    entry
}

fn number(n: u64) -> Vec<u8> {
    let mut key = vec![0];
    key.extend_from_slice(&(n ^ 1 << 63).to_be_bytes());
    key
}

fn rids(tree: &Tree, key: &[u8]) -> Vec<u64> {
    let mut rids = Vec::new();
    tree.lookup(key, |rid| {
        rids.push(rid);
        true
    })
    .there();
    rids
}

fn up(tree: &Tree) -> Vec<Vec<u8>> {
    let mut entries = Entries::default();
    tree.walk_up(&[], false, None, usize::MAX >> 1, &mut entries)
        .there();
    (0..entries.len())
        .map(|at| entries.get(at).to_vec())
        .collect()
}

fn down(tree: &Tree) -> Vec<Vec<u8>> {
    let mut entries = Entries::default();
    tree.walk_down(None, &[], usize::MAX >> 1, &mut entries)
        .there();
    (0..entries.len())
        .map(|at| entries.get(at).to_vec())
        .collect()
}

/// Everything in the tree is in order, both ways.
fn assert_holds(tree: &Tree, expected: &[Vec<u8>]) -> TreeReport {
    let report = tree.check().expect("in order");
    assert_eq!(report.entries, expected.len());
    assert_eq!(tree.entry_count(), expected.len());
    assert_eq!(up(tree), expected);
    let mut reverse = down(tree);
    reverse.reverse();
    assert_eq!(reverse, expected);
    report
}

/// What does not depend on chance: a sequence of pseudo-random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}
