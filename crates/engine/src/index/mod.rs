//! Ordered indexes: (key, rid) entries that are hints. The row version a snapshot sees decides, so a surplus entry is
//! legal and a missing one never is.
//!
//! Owns: the entries, and the atomicity of insert-and-check per key (T11): a version is installed first, then its entry
//! is inserted and the key's other entries are judged under one lock; the collector looks at the whole chain again
//! under that lock before it removes an entry.
//!
//! # Surplus entries
//!
//! An entry is surplus if no version of its row's chain has its key. Whoever unlinks a version takes its entry out, if
//! the leaf is in memory; nobody waits for a leaf in order to tidy up in it, and a checkpoint's tiles hold what was
//! there when it came by. So surplus entries last, until a reader follows one, finds the row gone or alone in its chain
//! and without the key, and takes it out. The rule is the same for all who remove: no version of the chain has the key,
//! looked at under the leaf's lock. A version that comes after that look brings its entry after it, for it is installed
//! first. No snapshot, nor a checkpoint under way, misses the entry: what it sees is in the chain. And no crash does: a
//! version leaves its chain when what superseded it is below the horizon (T1), or when it was undone; either way no
//! start brings it back with that key, but from a checkpoint or a log entry that brings its entry too.
//!
//! # Divided
//!
//! The entries of a divided index ([`KeyExtractor::is_divided`]) have a byte before their key, which says the virtual
//! partition of the row's distribution key. So each partition's entries are one range of the one tree, and no leaf has
//! entries of two. The byte is put before keys that come from callers and is part of every key inside the engine; a
//! walk over all partitions merges their ranges, and leaves it out of the order.
//!
//! The entries are in a B+-tree (see `tree`), as the bytes of the key and the rid behind them; a walk over it is an
//! `IndexCursor`. Indexes are not logged: they follow from rows. Their leaves are in checkpoints (`leaves`), and may be
//! absent.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use logstead_types::{Csn, IndexId, PartitionId, Rid};

use crate::partition::partition_of;
use crate::row::RowRef;
use crate::rows::TableRows;
use crate::serializable::Ordinal;
use crate::tree::{AbsentLeaf, Tree, TreeReport};

mod leaves;
mod start;

pub(crate) use leaves::ChangedLeaves;

/// Bytes of a rid at the end of an entry.
const RID_BYTES: usize = 8;

/// A leaf of an index that is not in memory.
pub(crate) struct AbsentIndexLeaf {
    pub(crate) index: Arc<Index>,
    /// Where it begins.
    pub(crate) low: Box<[u8]>,
}

/// What a row's key is, as far as uniqueness cares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// The row is not in this index (a partial index).
    Absent,
    /// A key without NULLs: a unique index holds it once.
    Unique,
    /// A key with a NULL: it never conflicts.
    Nullable,
    /// The row has no key because computing it fails (an index on an expression). A write of such a row is refused
    /// with [`WriteError::NoKey`](crate::WriteError::NoKey); a version from before the index has no entry.
    Failed,
}

impl KeyKind {
    /// Has the row an entry in the index?
    #[inline]
    pub fn has_entry(self) -> bool {
        matches!(self, KeyKind::Unique | KeyKind::Nullable)
    }
}

/// Makes memcmp-comparable keys from rows. Keys of one index are prefix-free.
///
/// The answer for a row never changes: entries are found again, judged and removed by computing the key anew. `out`
/// holds nothing of use when the row has no entry.
pub trait KeyExtractor: Send + Sync {
    /// Appends the key of `row` to `out` and says what it is.
    fn key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> KeyKind;

    /// Stands for how keys are made of rows, over restarts and versions of the program: leaves that were stored under
    /// another number are not used, and the index is made anew from rows. Not 0. Two indexes of one number must give
    /// each row the same key: it is made of all that keys are made of.
    fn keys(&self) -> u64;

    /// The columns that a row's key is made of, if it follows from their values alone and a column that a row does not
    /// have counts as NULL. Nothing if that is not so, or not known. A start looks at a row that the log has changed
    /// only if one of them was.
    fn columns(&self) -> Option<&[usize]> {
        None
    }

    /// Is the index divided? Then its keys begin with the columns that the rows of its table are distributed by,
    /// encoded as [`DistributionKey`](crate::DistributionKey) encodes them, and an entry lies in the part of its key's
    /// virtual partition. Never changes; two extractors of which one is divided have different [`KeyExtractor::keys`].
    fn is_divided(&self) -> bool {
        false
    }

    /// How many bytes at the beginning of `key`, a key or what one begins with, are the table's distribution key.
    /// Nothing: the index is not divided, or some of the columns are not there, or not wholly.
    fn distribution_prefix(&self, key: &[u8]) -> Option<usize> {
        let _ = key;
        None
    }

    /// What the maker of the index wants to find again by [`Index::definition`].
    fn definition(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// Makes the key of `row` as an index with this extractor has it, appended to `out`: with the virtual partition of the
/// row's distribution key before it, if the index is divided.
#[inline]
pub(crate) fn stored_key(
    extractor: &dyn KeyExtractor,
    is_divided: bool,
    row: RowRef<'_>,
    out: &mut Vec<u8>,
) -> KeyKind {
    if !is_divided {
        return extractor.key(row, out);
    }
    let at = out.len();
    out.push(0);
    let kind = extractor.key(row, out);
    if kind.has_entry()
        && let Some(partition) = partition_of_key(extractor, &out[at + 1..])
    {
        out[at] = partition.0 as u8;
    }
    kind
}

/// The virtual partition of a key of a divided index; nothing: the key does not say it.
fn partition_of_key(extractor: &dyn KeyExtractor, key: &[u8]) -> Option<PartitionId> {
    let length = extractor.distribution_prefix(key)?;
    Some(partition_of(key.get(..length)?))
}

/// Splits an entry into key and rid.
pub(crate) fn split(entry: &[u8]) -> (&[u8], Rid) {
    match entry.split_last_chunk::<RID_BYTES>() {
        Some((key, rid)) => (key, Rid(u64::from_be_bytes(*rid))),
        None => (entry, Rid(0)),
    }
}

/// An index of a table.
pub struct Index {
    id: IndexId,
    unique: bool,
    /// Its keys have their virtual partition before them.
    divided: bool,
    extractor: Arc<dyn KeyExtractor>,
    /// The rows its entries point to.
    pub(crate) rows: Arc<TableRows>,
    pub(crate) tree: Tree,
    /// SERIALIZABLE transactions that began at or below this place do not rely on its keys; see
    /// [`crate::serializable`].
    attached: AtomicU64,
    /// Every snapshot finds through it all that it sees.
    complete: AtomicBool,
    /// Snapshots below this CSN find less through it than they see: see [`Index::set_serves_from`].
    serves_from: AtomicU64,
    /// A checkpoint has met a leaf of it that is damaged, and said so.
    damage_reported: AtomicBool,
}

impl fmt::Debug for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Index({}, unique: {})", self.id, self.unique)
    }
}

impl Index {
    pub(crate) fn new(
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
        rows: Arc<TableRows>,
    ) -> Index {
        let tree = Tree::new(rows.memory(), extractor.is_divided());
        Index::with_tree(id, unique, extractor, rows, tree)
    }

    fn with_tree(
        id: IndexId,
        unique: bool,
        extractor: Arc<dyn KeyExtractor>,
        rows: Arc<TableRows>,
        tree: Tree,
    ) -> Index {
        Index {
            id,
            unique,
            divided: extractor.is_divided(),
            extractor,
            tree,
            rows,
            attached: AtomicU64::new(u64::MAX),
            complete: AtomicBool::new(false),
            serves_from: AtomicU64::new(0),
            damage_reported: AtomicBool::new(false),
        }
    }

    #[cold]
    pub(crate) fn absent(self: &Arc<Self>, leaf: &AbsentLeaf) -> AbsentIndexLeaf {
        AbsentIndexLeaf {
            index: Arc::clone(self),
            low: leaf.low.clone(),
        }
    }

    pub(crate) fn attached(&self) -> Ordinal {
        Ordinal(self.attached.load(Ordering::SeqCst))
    }

    /// Is it filled? Only then does a checkpoint take it along.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::SeqCst)
    }

    pub(crate) fn set_complete(&self) {
        self.complete.store(true, Ordering::SeqCst);
    }

    /// A leaf of it cannot be read. False: that was noted before.
    pub(crate) fn is_damaged_for_the_first_time(&self) -> bool {
        !self.damage_reported.swap(true, Ordering::Relaxed)
    }

    /// How its keys are made; see [`KeyExtractor::keys`].
    pub(crate) fn keys(&self) -> u64 {
        self.extractor.keys()
    }

    /// The columns that its keys are made of; see [`KeyExtractor::columns`].
    #[inline]
    pub(crate) fn key_columns(&self) -> Option<&[usize]> {
        self.extractor.columns()
    }

    /// It is attached to its table, since `place`.
    pub(crate) fn set_attached(&self, place: Ordinal) {
        self.attached.store(place.0, Ordering::SeqCst);
    }

    /// Its keys are made of what rows hold since the transaction with this CSN: snapshots below must not rely on
    /// them. To be called before
    /// others know of the index. Forgotten at a start, which no snapshot outlives.
    pub fn set_serves_from(&self, csn: Csn) {
        self.serves_from.store(csn.0, Ordering::SeqCst);
    }

    /// Does a snapshot find through it all that it sees?
    #[inline]
    pub fn serves(&self, snapshot: Csn) -> bool {
        // A snapshot sees what is below it.
        let from = self.serves_from.load(Ordering::SeqCst);
        from == 0 || snapshot.0 > from
    }

    /// Its number.
    pub fn id(&self) -> IndexId {
        self.id
    }

    /// Does it hold every key without NULLs once?
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// How many entries it holds in memory, surplus ones included; those of absent leaves are not counted. Looks at
    /// every leaf.
    pub fn entry_count(&self) -> usize {
        self.tree.entry_count()
    }

    /// What it takes in memory: two loads. It is part of what the engine's [`Memory`](crate::Memory) account says.
    pub fn memory_bytes(&self) -> usize {
        self.tree.memory_bytes()
    }

    /// Looks at the whole index and verifies that it is in order: entries and separators, the chain of leaves, counts.
    /// Gives what it has found, or what is wrong. Nobody may write to the table meanwhile.
    pub fn check(&self) -> Result<TreeReport, String> {
        self.tree.check()
    }

    /// What its maker gave it; see [`KeyExtractor::definition`].
    pub fn definition(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.extractor.definition()
    }

    /// Are its entries divided among the virtual partitions? See [`KeyExtractor::is_divided`].
    #[inline]
    pub fn is_divided(&self) -> bool {
        self.divided
    }

    /// The key of `row` as the index has it, appended to `out`: if it is divided, with a byte before it that says its
    /// virtual partition. Callers' keys, for lookups and bounds, are without.
    #[inline]
    pub fn key(&self, row: &[u8], out: &mut Vec<u8>) -> KeyKind {
        stored_key(&*self.extractor, self.divided, RowRef::new(row), out)
    }

    /// The virtual partition of a caller's key, of a divided index; nothing: it does not say it.
    pub(crate) fn partition_of_key(&self, key: &[u8]) -> Option<PartitionId> {
        partition_of_key(&*self.extractor, key)
    }

    /// The virtual partition of all keys between two bounds, if it is one, of a divided index.
    pub(crate) fn common_partition(&self, lower: &[u8], upper: &[u8]) -> Option<PartitionId> {
        let of_lower = self.extractor.distribution_prefix(lower)?;
        let of_upper = self.extractor.distribution_prefix(upper)?;
        let key = lower.get(..of_lower)?;
        (key == upper.get(..of_upper)?).then(|| partition_of(key))
    }

    /// The virtual partition of an entry's key, as the index has it.
    pub(crate) fn partition_of(&self, key: &[u8]) -> PartitionId {
        match (self.divided, key.first()) {
            (true, Some(partition)) => PartitionId(u16::from(*partition)),
            _ => self.rows.home_partition(),
        }
    }

    /// Makes `entry` (a key) an entry by appending the rid.
    #[inline]
    pub(crate) fn complete(entry: &mut Vec<u8>, rid: Rid) {
        entry.extend_from_slice(&rid.0.to_be_bytes());
    }

    /// Inserts `entry` (key ++ rid) and, under the lock that stands for its key, calls `judge` with every other rid
    /// that has an entry of the key (T11). If it refuses, its answer is given and the entry is not inserted; one that
    /// was there before stays. `judge` must not use the index.
    #[inline]
    pub(crate) fn insert_and_check<E: From<AbsentIndexLeaf>>(
        self: &Arc<Self>,
        entry: &[u8],
        mut judge: impl FnMut(Rid) -> Result<(), E>,
    ) -> Result<(), E> {
        match self.tree.insert_and_check(entry, |rid| judge(Rid(rid))) {
            Ok(judged) => judged,
            Err(leaf) => Err(self.absent(&leaf).into()),
        }
    }

    /// Inserts an entry that cannot conflict.
    #[inline]
    pub(crate) fn insert(self: &Arc<Self>, entry: &[u8]) -> Result<(), AbsentIndexLeaf> {
        self.tree.insert(entry).map_err(|leaf| self.absent(&leaf))
    }

    /// Removes `entry` if `unneeded`, called under its leaf's lock, says so. `unneeded` must not use the index. If the
    /// leaf is absent the entry stays, a surplus one: nobody waits for a leaf to tidy up in it.
    pub(crate) fn remove_if(&self, entry: &[u8], unneeded: impl FnOnce() -> bool) {
        match self.tree.remove_if(entry, unneeded) {
            Ok(_) | Err(AbsentLeaf { .. }) => {}
        }
    }

    /// Calls `found` with the rids of `key` until it returns false. If a leaf is absent it may have been called with
    /// some.
    #[inline]
    pub(crate) fn lookup(
        self: &Arc<Self>,
        key: &[u8],
        mut found: impl FnMut(Rid) -> bool,
    ) -> Result<(), AbsentIndexLeaf> {
        let looked = self.tree.lookup(key, |rid| found(Rid(rid)));
        looked.map_err(|leaf| self.absent(&leaf))
    }
}

#[cfg(test)]
mod tests;
