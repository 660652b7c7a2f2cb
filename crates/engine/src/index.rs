//! Ordered indexes: (key, rid) entries that are hints. The row version a snapshot sees decides, so a surplus entry is
//! legal and a missing one never is.
//!
//! Owns: the entries, and the atomicity of insert-and-check per key (T11): a version is installed first, then its entry
//! is inserted and the key's other entries are judged under one lock; the collector looks at the whole chain again
//! under that lock before it removes an entry.
//!
//! This one is a balanced tree under a reader-writer lock with keys stored inline; the interface is what a concurrent
//! tree needs too.

use std::any::Any;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Bound;
use std::sync::Arc;

use logstead_types::{IndexId, Rid};
use parking_lot::RwLock;

use crate::row::RowRef;
use crate::rows::Rows;

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

    /// What the maker of the index wants to find again by [`Index::definition`].
    fn definition(&self) -> Option<&(dyn Any + Send + Sync)> {
        None
    }
}

/// Bytes of a rid at the end of an entry.
const RID_BYTES: usize = 8;
/// Entries up to this length are stored inline: two bigint columns, or a short text, and the rid.
const INLINE_BYTES: usize = 30;

/// key ++ rid, big endian.
enum Entry {
    Inline(u8, [u8; INLINE_BYTES]),
    Heap(Box<[u8]>),
}

impl Entry {
    fn new(bytes: &[u8]) -> Entry {
        if bytes.len() <= INLINE_BYTES {
            let mut inline = [0; INLINE_BYTES];
            inline[..bytes.len()].copy_from_slice(bytes);
            Entry::Inline(bytes.len() as u8, inline)
        } else {
            Entry::Heap(bytes.into())
        }
    }

    #[inline]
    fn bytes(&self) -> &[u8] {
        match self {
            Entry::Inline(length, bytes) => &bytes[..usize::from(*length)],
            Entry::Heap(bytes) => bytes,
        }
    }
}

impl Borrow<[u8]> for Entry {
    #[inline]
    fn borrow(&self) -> &[u8] {
        self.bytes()
    }
}
impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        self.bytes() == other.bytes()
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    #[inline]
    fn cmp(&self, other: &Entry) -> Ordering {
        self.bytes().cmp(other.bytes())
    }
}

/// Splits an entry into key and rid.
fn split(entry: &[u8]) -> (&[u8], Rid) {
    match entry.split_last_chunk::<RID_BYTES>() {
        Some((key, rid)) => (key, Rid(u64::from_be_bytes(*rid))),
        None => (entry, Rid(0)),
    }
}

/// An index of a table.
pub struct Index {
    id: IndexId,
    unique: bool,
    extractor: Arc<dyn KeyExtractor>,
    /// The rows its entries point to.
    pub(crate) rows: Arc<Rows>,
    entries: RwLock<BTreeSet<Entry>>,
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
        rows: Arc<Rows>,
    ) -> Index {
        Index {
            id,
            unique,
            extractor,
            rows,
            entries: RwLock::default(),
        }
    }

    /// Its number.
    pub fn id(&self) -> IndexId {
        self.id
    }

    /// Does it hold every key without NULLs once?
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// How many entries it holds, surplus ones included.
    pub fn entry_count(&self) -> usize {
        self.entries.read().len()
    }

    /// What its maker gave it; see [`KeyExtractor::definition`].
    pub fn definition(&self) -> Option<&(dyn Any + Send + Sync)> {
        self.extractor.definition()
    }

    /// The key of `row`, appended to `out`.
    #[inline]
    pub fn key(&self, row: &[u8], out: &mut Vec<u8>) -> KeyKind {
        self.extractor.key(RowRef::new(row), out)
    }

    /// Makes `entry` (a key) an entry by appending the rid.
    #[inline]
    pub(crate) fn complete(entry: &mut Vec<u8>, rid: Rid) {
        entry.extend_from_slice(&rid.0.to_be_bytes());
    }

    /// Inserts `entry` (key ++ rid) and, under the same lock, calls `judge` with every other rid that has the key. If
    /// it refuses, the entry is taken out again (unless it was there before) and its answer is given.
    pub(crate) fn insert_and_check<E>(
        &self,
        entry: &[u8],
        mut judge: impl FnMut(Rid) -> Result<(), E>,
    ) -> Result<(), E> {
        let (key, rid) = split(entry);
        let mut entries = self.entries.write();
        let mut known = false;
        for other in entries.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)) {
            let (other_key, other_rid) = split(other.bytes());
            if other_key != key {
                break;
            }
            if other_rid == rid {
                known = true;
            } else {
                judge(other_rid)?;
            }
        }
        if !known {
            entries.insert(Entry::new(entry));
        }
        Ok(())
    }

    /// Inserts an entry that cannot conflict.
    pub(crate) fn insert(&self, entry: &[u8]) {
        let mut entries = self.entries.write();
        if !entries.contains(entry) {
            entries.insert(Entry::new(entry));
        }
    }

    /// Removes `entry` if `unneeded`, called under the lock, says so.
    pub(crate) fn remove_if(&self, entry: &[u8], unneeded: impl FnOnce() -> bool) {
        let mut entries = self.entries.write();
        if entries.contains(entry) && unneeded() {
            entries.remove(entry);
        }
    }

    /// Calls `found` with the rids of `key` until it returns false.
    #[inline]
    pub(crate) fn lookup(&self, key: &[u8], mut found: impl FnMut(Rid) -> bool) {
        let entries = self.entries.read();
        for entry in entries.range::<[u8], _>((Bound::Included(key), Bound::Unbounded)) {
            let (entry_key, rid) = split(entry.bytes());
            if entry_key != key || !found(rid) {
                return;
            }
        }
    }

    /// Appends up to `limit` entries after the position to `batch`.
    fn next_batch(
        &self,
        position: &Position,
        reverse: bool,
        upper: &Edge,
        lower: &Edge,
        limit: usize,
        batch: &mut Batch,
    ) {
        let entries = self.entries.read();
        let start = match position {
            Position::Start => None,
            Position::After(entry) => Some(entry.as_slice()),
        };
        let mut take = |entry: &Entry| {
            let bytes = entry.bytes();
            let (key, _) = split(bytes);
            let (past_end, before_start) = if reverse {
                (lower.is_below(key), upper.is_above(key))
            } else {
                (upper.is_above(key), lower.is_below(key))
            };
            if past_end {
                return false;
            }
            if !before_start {
                batch.push(bytes);
            }
            batch.ends.len() < limit
        };
        if reverse {
            let end = match start {
                Some(entry) => Bound::Excluded(entry),
                None => Bound::Unbounded,
            };
            // The first position of a backward scan: below everything that has the bound as a prefix or exceeds it.
            let successor = upper.successor();
            let end = match (&start, &successor) {
                (None, Some(bound)) => Bound::Excluded(bound.as_slice()),
                _ => end,
            };
            for entry in entries.range::<[u8], _>((Bound::Unbounded, end)).rev() {
                if !take(entry) {
                    break;
                }
            }
        } else {
            let begin = match start {
                Some(entry) => Bound::Excluded(entry),
                None => lower.seek(),
            };
            let skip = lower.successor_if_excluded();
            let begin = match (&start, &skip) {
                (None, Some(bound)) => Bound::Included(bound.as_slice()),
                _ => begin,
            };
            for entry in entries.range::<[u8], _>((begin, Bound::Unbounded)) {
                if !take(entry) {
                    break;
                }
            }
        }
    }
}

/// One end of a range. Bounds are compared with as many bytes of a key as they have, so a bound made of the first
/// columns takes in (or leaves out) all keys that begin with it.
struct Edge(Bound<Vec<u8>>);

impl Edge {
    fn compare(bound: &[u8], key: &[u8]) -> Ordering {
        key[..key.len().min(bound.len())].cmp(bound)
    }

    /// As an upper end: is `key` beyond it?
    #[inline]
    fn is_above(&self, key: &[u8]) -> bool {
        match &self.0 {
            Bound::Unbounded => false,
            Bound::Included(bound) => Edge::compare(bound, key) == Ordering::Greater,
            Bound::Excluded(bound) => Edge::compare(bound, key) != Ordering::Less,
        }
    }

    /// As a lower end: is `key` before it?
    #[inline]
    fn is_below(&self, key: &[u8]) -> bool {
        match &self.0 {
            Bound::Unbounded => false,
            Bound::Included(bound) => Edge::compare(bound, key) == Ordering::Less,
            Bound::Excluded(bound) => Edge::compare(bound, key) != Ordering::Greater,
        }
    }

    fn seek(&self) -> Bound<&[u8]> {
        match &self.0 {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Included(bound) | Bound::Excluded(bound) => Bound::Included(bound.as_slice()),
        }
    }

    /// The least bytes above all keys that an included bound takes in; the bound itself if it is excluded.
    fn successor(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Bound::Unbounded => None,
            Bound::Excluded(bound) => Some(bound.clone()),
            Bound::Included(bound) => after_prefix(bound),
        }
    }

    fn successor_if_excluded(&self) -> Option<Vec<u8>> {
        match &self.0 {
            Bound::Excluded(bound) => after_prefix(bound),
            _ => None,
        }
    }
}

/// The least bytes above everything that begins with `prefix`; `None` if there are none.
fn after_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = prefix.to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(bytes);
        }
    }
    None
}

enum Position {
    Start,
    After(Vec<u8>),
}

/// Entries read ahead.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<u32>,
    next: usize,
}

impl Batch {
    fn push(&mut self, entry: &[u8]) {
        self.bytes.extend_from_slice(entry);
        self.ends.push(self.bytes.len() as u32);
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        self.next = 0;
    }

    fn entry(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] as usize };
        &self.bytes[start..self.ends[i] as usize]
    }
}

/// A walk over an index in key order. It holds no lock and no reference between steps: it survives awaits, and finds
/// its place again.
///
/// Bounds are compared with as many bytes of a key as they have: `Included(prefix)` takes in all keys that begin with
/// the prefix, at either end, and `Excluded(prefix)` leaves them all out.
pub struct IndexCursor {
    index: Arc<Index>,
    lower: Edge,
    upper: Edge,
    reverse: bool,
    position: Position,
    batch: Batch,
    /// Entries to read with the next lock; grows, so that a walk that stops early reads little.
    ahead: usize,
    finished: bool,
}

/// Entries read under one lock at most.
const READ_AHEAD_MAX: usize = 128;

impl IndexCursor {
    /// Over the keys between two bounds; `reverse` walks from the upper one down.
    pub fn new(
        index: &Arc<Index>,
        lower: Bound<Vec<u8>>,
        upper: Bound<Vec<u8>>,
        reverse: bool,
    ) -> IndexCursor {
        IndexCursor {
            index: index.clone(),
            lower: Edge(lower),
            upper: Edge(upper),
            reverse,
            position: Position::Start,
            batch: Batch::default(),
            ahead: 4,
            finished: false,
        }
    }

    /// The index walked.
    pub fn index(&self) -> &Arc<Index> {
        &self.index
    }

    /// Steps to the next entry and gives its rid.
    #[inline]
    pub(crate) fn advance(&mut self) -> Option<Rid> {
        if self.batch.next == self.batch.ends.len() && !self.refill() {
            return None;
        }
        let at = self.batch.next;
        self.batch.next += 1;
        Some(split(self.batch.entry(at)).1)
    }

    /// The key of the entry last stepped to.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        match self.batch.next.checked_sub(1) {
            Some(at) => split(self.batch.entry(at)).0,
            None => &[],
        }
    }

    fn refill(&mut self) -> bool {
        if self.finished {
            return false;
        }
        if let Some(last) = self.batch.ends.len().checked_sub(1) {
            let entry = self.batch.entry(last);
            match &mut self.position {
                Position::After(bytes) => {
                    bytes.clear();
                    bytes.extend_from_slice(entry);
                }
                Position::Start => self.position = Position::After(entry.to_vec()),
            }
        }
        self.batch.clear();
        self.index.next_batch(
            &self.position,
            self.reverse,
            &self.upper,
            &self.lower,
            self.ahead,
            &mut self.batch,
        );
        self.finished = self.batch.ends.len() < self.ahead;
        self.ahead = (self.ahead * 4).min(READ_AHEAD_MAX);
        !self.batch.ends.is_empty()
    }
}

#[cfg(test)]
mod tests;
