//! Where pages lie: their keys, references to frames, and the chain of pages that is one chunk.
//!
//! Invariants: encoded keys compare as the keys do; a reference's checksum is that of the frame it was made for, and
//! objects never change, so a reference means the same bytes for ever.

use crate::frame::{FRAME_BYTES_MAX, HEADER_BYTES};
use logstead_home::ObjectId;
use logstead_types::{IndexId, TableId};
use logstead_wal::FormatError;
use smallvec::SmallVec;
use std::fmt;

/// What a page is of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum PageKey {
    /// The rows of one chunk of a table.
    Rows {
        /// The table's storage.
        table: TableId,
        /// The chunk: row id divided by [`CHUNK_SLOTS`](crate::CHUNK_SLOTS), or by what the record has
        /// ([`ChunkSize`](crate::ChunkSize)).
        chunk: u64,
    },
    /// A tile of an index: its entries from a fence on to the next tile's. Behind the rows of all tables.
    Leaf {
        /// The table's storage.
        table: TableId,
        /// The index.
        index: IndexId,
        /// No entry of it is below this; empty for the first tile. At most [`FENCE_BYTES_MAX`] long.
        low: Vec<u8>,
    },
}

/// A table, whose pages are its rows', or one of its indexes.
pub type PageOwner = (TableId, Option<IndexId>);

/// The owner whose keys are the next ones.
pub(crate) fn next_owner((table, index): PageOwner) -> Option<PageOwner> {
    let next = |table: TableId| table.get().checked_add(1).map(TableId);
    let Some(index) = index else {
        return Some(match next(table) {
            Some(table) => (table, None),
            // Tiles are behind the rows of all tables.
            None => (TableId(0), Some(IndexId(0))),
        });
    };
    match index.get().checked_add(1) {
        Some(index) => Some((table, Some(IndexId(index)))),
        None => next(table).map(|table| (table, Some(IndexId(0)))),
    }
}

/// First byte of the keys of rows.
const ROWS: u8 = 1;
/// First byte of the keys of tiles.
const LEAF: u8 = 2;
/// The longest fence of a tile. An index whose leaves are divided by longer ones has tiles of several leaves.
pub const FENCE_BYTES_MAX: usize = 2048;

/// A key as bytes that compare as the keys do.
pub(crate) type KeyBytes = SmallVec<[u8; 16]>;

impl PageKey {
    /// The key as bytes that compare as keys do: a byte for the kind, then its parts, numbers big endian.
    pub(crate) fn encode(&self) -> KeyBytes {
        let mut bytes = KeyBytes::new();
        match self {
            PageKey::Rows { table, chunk } => {
                bytes.push(ROWS);
                bytes.extend_from_slice(&table.get().to_be_bytes());
                bytes.extend_from_slice(&chunk.to_be_bytes());
            }
            PageKey::Leaf { table, index, low } => {
                bytes.push(LEAF);
                bytes.extend_from_slice(&table.get().to_be_bytes());
                bytes.extend_from_slice(&index.get().to_be_bytes());
                bytes.extend_from_slice(low);
            }
        }
        bytes
    }

    /// Whose page it is.
    pub(crate) fn owner(&self) -> PageOwner {
        match self {
            PageKey::Rows { table, .. } => (*table, None),
            PageKey::Leaf { table, index, .. } => (*table, Some(*index)),
        }
    }

    /// The least key that an owner's page can have.
    pub(crate) fn first_of((table, index): PageOwner) -> PageKey {
        match index {
            None => PageKey::Rows { table, chunk: 0 },
            Some(index) => PageKey::Leaf {
                table,
                index,
                low: Vec::new(),
            },
        }
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<PageKey, FormatError> {
        let unknown = FormatError::new("unknown kind of page", 0);
        let (&kind, parts) = bytes.split_first().ok_or(unknown.clone())?;
        if kind != ROWS && kind != LEAF {
            return Err(unknown);
        }
        let short = FormatError::new("a page's key of another length", bytes.len());
        let (table, rest) = parts.split_first_chunk::<4>().ok_or(short.clone())?;
        let table = TableId(u32::from_be_bytes(*table));
        if kind == ROWS {
            let chunk = u64::from_be_bytes(rest.try_into().map_err(|_| short)?);
            return Ok(PageKey::Rows { table, chunk });
        }
        let (index, low) = rest.split_first_chunk::<4>().ok_or(short.clone())?;
        if low.len() > FENCE_BYTES_MAX {
            return Err(short);
        }
        Ok(PageKey::Leaf {
            table,
            index: IndexId(u32::from_be_bytes(*index)),
            low: low.to_vec(),
        })
    }
}

impl fmt::Display for PageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageKey::Rows { table, chunk } => write!(f, "table {table} chunk {chunk}"),
            PageKey::Leaf { table, index, low } => {
                /// Enough to find it; a fence may be kilobytes.
                const SHOWN: usize = 32;
                write!(f, "table {table} index {index} entries from ")?;
                if low.is_empty() {
                    return f.write_str("the first");
                }
                for byte in low.iter().take(SHOWN) {
                    write!(f, "{byte:02x}")?;
                }
                f.write_str(if low.len() > SHOWN { "..." } else { "" })
            }
        }
    }
}

/// Where a frame lies, and the checksum it has there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PageRef {
    /// The object.
    pub object: ObjectId,
    /// Its first byte in the object.
    pub offset: u32,
    /// Its length.
    pub len: u32,
    /// Its checksum, [`frame::checksum`](crate::frame::checksum).
    pub crc: u32,
}

/// Bytes of an encoded reference.
pub(crate) const REF_BYTES: usize = 20;

impl PageRef {
    /// No page: what takes the place of a chain's base in a fork ([`crate::fork`]). No object has this number: epochs
    /// begin at 1.
    const fn special(offset: u32) -> PageRef {
        PageRef {
            object: ObjectId(0),
            offset,
            len: HEADER_BYTES as u32,
            crc: 0,
        }
    }

    /// Whatever the directory below has.
    const BELOW: PageRef = PageRef::special(0);
    /// Nothing.
    const GONE: PageRef = PageRef::special(1);

    /// Is there such a page?
    pub(crate) fn is_special(&self) -> bool {
        self.object == ObjectId(0)
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.object.0.to_le_bytes());
        out.extend_from_slice(&self.offset.to_le_bytes());
        out.extend_from_slice(&self.len.to_le_bytes());
        out.extend_from_slice(&self.crc.to_le_bytes());
    }

    pub(crate) fn read(
        from: &mut logstead_wal::varint::Reader<'_>,
    ) -> Result<PageRef, FormatError> {
        let at = from.at();
        let reference = PageRef {
            object: ObjectId(u64::from(from.u32_le()?) | u64::from(from.u32_le()?) << 32),
            offset: from.u32_le()?,
            len: from.u32_le()?,
            crc: from.u32_le()?,
        };
        let len = reference.len as usize;
        if !(HEADER_BYTES..=FRAME_BYTES_MAX).contains(&len) {
            return Err(FormatError::new("impossible length of a page", at));
        }
        Ok(reference)
    }
}

impl fmt::Display for PageRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "object {} offset {}", self.object, self.offset)
    }
}

/// Deltas beyond which a chunk is written whole again, however small they are: each is a request when the chunk is
/// read, and 20 bytes in the directory as long as it is there. For rows of 100 bytes, one changed at a time, a delta
/// takes about 170 bytes and a chunk about 6,500: with deltas up to a quarter there would be ten, and a miss would read
/// five or six pages on average. With four it reads three, five at most, and a change costs 6,500 / 5 + 170 * 4 / 5,
/// about 1,450 bytes, of which more deltas would save a few hundred. If the rows compress to 700 bytes, it costs about
/// 240 bytes, of which more deltas would save less than the references to them take in the directory. Chunks of wide
/// rows meet the quarter rule first.
const DELTAS_MAX: usize = 4;

/// The pages of one chunk. Read from the newest to the oldest: a slot is what the first page that knows it says.
///
/// A chunk that is too large for one page is written as a base page and further *parts*; what changes later are
/// *deltas*.
#[derive(Clone, Debug)]
pub struct PageChain {
    base: PageRef,
    /// How many of the first `rest` are parts.
    parts: u32,
    /// How many of the last pages were written since it was looked up: none of the others, wherever they were moved to,
    /// says anything that the directory does not say. Neither stored nor compared, and zero in a directory
    /// ([`PageChain::settled`]).
    added: u32,
    rest: SmallVec<[PageRef; 1]>,
}

impl PartialEq for PageChain {
    fn eq(&self, other: &PageChain) -> bool {
        (self.base, self.parts) == (other.base, other.parts) && self.rest == other.rest
    }
}

impl Eq for PageChain {}

impl PageChain {
    /// The chain of a chunk that was written whole, as [`ChunkWriter`](crate::ChunkWriter) gave its pages; `None` for
    /// no pages.
    pub fn whole(pages: &[PageRef]) -> Option<PageChain> {
        let (base, parts) = pages.split_first()?;
        Some(PageChain {
            base: *base,
            parts: u32::try_from(parts.len()).ok()?,
            added: u32::try_from(pages.len()).ok()?,
            rest: SmallVec::from_slice(parts),
        })
    }

    /// The chain of a chunk of which it cannot be told where it lies: what is written behind it counts over that.
    pub(crate) fn below() -> PageChain {
        PageChain {
            base: PageRef::BELOW,
            parts: 0,
            added: 0,
            rest: SmallVec::new(),
        }
    }

    /// Is it not known where its older pages lie?
    pub fn is_below(&self) -> bool {
        self.base == PageRef::BELOW
    }

    /// What stands for no chain in a fork.
    pub(crate) fn removed() -> PageChain {
        PageChain {
            base: PageRef::GONE,
            ..PageChain::below()
        }
    }

    /// See [`PageChain::removed`].
    pub(crate) fn is_gone(&self) -> bool {
        self.base == PageRef::GONE
    }

    /// This chain with the pages behind it of one that begins below.
    pub(crate) fn with(&self, above: &PageChain) -> PageChain {
        let mut chain = self.clone();
        chain.rest.extend_from_slice(&above.rest);
        chain
    }

    /// What was changed since: the pages of one delta, as [`ChunkWriter`](crate::ChunkWriter) gave them.
    pub fn push(&mut self, delta: &[PageRef]) {
        self.rest.extend_from_slice(delta);
        self.added += delta.len() as u32;
    }

    /// The chain as it lies in a directory: nothing was written since.
    pub(crate) fn settled(&self) -> PageChain {
        PageChain {
            added: 0,
            ..self.clone()
        }
    }

    /// Was all of it written since it was looked up, if it was?
    pub(crate) fn is_new(&self) -> bool {
        self.added as usize > self.rest.len()
    }

    /// What was written since it was looked up: the end of this chain that [`PageChain::with`] puts behind what cannot
    /// be looked up any more. `None`: it is more than deltas.
    pub(crate) fn added(&self) -> Option<&[PageRef]> {
        let deltas = self.deltas();
        deltas.get(deltas.len().checked_sub(self.added as usize)?..)
    }

    /// The chain in which these pages of one delta stand for all pages from the `first` on, which are deltas (the base
    /// is 0), but for those that `stay`: they keep their order, before the new ones. `None`: they are not all deltas.
    pub fn folded(&self, first: usize, stay: &[usize], delta: &[PageRef]) -> Option<PageChain> {
        let at = first.checked_sub(1)?;
        if at < self.parts as usize || at > self.rest.len() {
            return None;
        }
        let kept = |(at, page): (usize, &PageRef)| {
            (at + 1 < first || stay.contains(&(at + 1))).then_some(*page)
        };
        let rest = self.rest.iter().enumerate().filter_map(kept);
        Some(PageChain {
            base: self.base,
            parts: self.parts,
            added: delta.len() as u32,
            rest: rest.chain(delta.iter().copied()).collect(),
        })
    }

    pub(crate) fn from_parts(
        base: PageRef,
        parts: u32,
        rest: SmallVec<[PageRef; 1]>,
    ) -> Result<PageChain, FormatError> {
        if parts as usize > rest.len() {
            return Err(FormatError::new("a chain with more parts than pages", 0));
        }
        Ok(PageChain {
            base,
            parts,
            added: 0,
            rest,
        })
    }

    /// The first page.
    pub fn base(&self) -> PageRef {
        self.base
    }

    /// Pages that were written together with the first one.
    pub fn parts(&self) -> &[PageRef] {
        self.rest.get(..self.parts as usize).unwrap_or(&[])
    }

    /// Pages that were written later, oldest first.
    pub fn deltas(&self) -> &[PageRef] {
        self.rest.get(self.parts as usize..).unwrap_or(&[])
    }

    /// All pages, oldest first.
    pub fn pages(&self) -> impl DoubleEndedIterator<Item = &PageRef> {
        std::iter::once(&self.base).chain(&self.rest)
    }

    /// The same chain with each page in another place.
    pub(crate) fn map<E>(
        &self,
        mut place: impl FnMut(&PageRef) -> Result<PageRef, E>,
    ) -> Result<PageChain, E> {
        Ok(PageChain {
            base: place(&self.base)?,
            parts: self.parts,
            added: self.added,
            rest: self.rest.iter().map(place).collect::<Result<_, E>>()?,
        })
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self.rest.spilled() {
            true => self.rest.capacity() * size_of::<PageRef>(),
            false => 0,
        }
    }

    /// Bytes of all pages as stored.
    pub fn len_bytes(&self) -> u64 {
        self.pages().map(|page| u64::from(page.len)).sum()
    }

    /// The quarter rule: is the chunk better written whole than with a further delta of `next` bytes, if all its rows
    /// have `rows`, both before compression? So it is when deltas take more than a quarter of that, or of what was
    /// written whole, if that is more; or when they are many.
    ///
    /// Rows, not their page: a row alone compresses worse than among its like, so that a quarter of a small page is one
    /// row, and every other change would write all of them.
    pub fn is_due_for_merge(&self, next: u64, rows: u64) -> bool {
        let bytes = |pages: &[PageRef]| pages.iter().map(|page| u64::from(page.len)).sum::<u64>();
        let whole = u64::from(self.base.len) + bytes(self.parts());
        let deltas = bytes(self.deltas()).saturating_add(next);
        self.deltas().len() >= DELTAS_MAX || deltas.saturating_mul(4) > whole.max(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn page(offset: u32, len: u32) -> PageRef {
        PageRef {
            object: ObjectId(7),
            offset,
            len,
            crc: offset,
        }
    }

    #[test]
    fn a_chunk_is_merged_past_a_quarter_or_when_its_deltas_are_many() {
        let mut chain = PageChain::whole(&[page(0, 1_000), page(1_000, 200)]).unwrap();
        assert!(!chain.is_due_for_merge(300, 900));
        assert!(chain.is_due_for_merge(301, 900));
        chain.push(&[page(5_000, 100)]);
        assert!(!chain.is_due_for_merge(200, 900));
        assert!(chain.is_due_for_merge(201, 900));
        // Rows that compress well: a quarter of them, not of their page.
        assert!(!chain.is_due_for_merge(900, 4_000));
        assert!(chain.is_due_for_merge(901, 4_000));
        assert_eq!(chain.parts(), [page(1_000, 200)]);
        assert_eq!(chain.deltas(), [page(5_000, 100)]);
        assert_eq!(chain.len_bytes(), 1_300);
        let mut many = PageChain::whole(&[page(0, 1 << 20)]).unwrap();
        for _ in 0..DELTAS_MAX {
            assert!(!many.is_due_for_merge(50, 1 << 20));
            many.push(&[page(0, 50)]);
        }
        assert!(many.is_due_for_merge(50, 1 << 20));
        assert_eq!(PageChain::whole(&[]), None);
    }

    #[test]
    fn newer_deltas_are_folded_into_one_over_what_is_older() {
        let [base, part, old, mid, change, new, fold] = [0, 1, 2, 3, 4, 5, 6].map(|n| page(n, 100));
        let mut chain = PageChain::whole(&[base, part]).unwrap();
        chain.push(&[old, mid, change, new]);
        let folded = chain.folded(3, &[4], &[fold]).unwrap();
        assert_eq!(folded.parts(), [part]);
        assert_eq!(folded.deltas(), [old, change, fold]);
        let all = chain.folded(2, &[], &[fold]).unwrap();
        assert_eq!(all.deltas(), [fold]);
        assert_eq!(chain.folded(6, &[], &[fold]).unwrap().deltas().len(), 5);
        for first in [0, 1, 7] {
            assert_eq!(chain.folded(first, &[], &[fold]), None, "{first}");
        }
    }

    fn any_key() -> impl Strategy<Value = PageKey> {
        let low = proptest::collection::vec(0..3_u8, 0..5);
        let numbers = || prop_oneof![0..3_u32, any::<u32>()];
        (any::<bool>(), numbers(), numbers(), any::<u64>(), low).prop_map(
            |(is_rows, table, index, chunk, low)| {
                let (table, index) = (TableId(table), IndexId(index));
                match is_rows {
                    true => PageKey::Rows { table, chunk },
                    false => PageKey::Leaf { table, index, low },
                }
            },
        )
    }

    #[test]
    fn fences_of_keys_are_bounded() {
        let key = |len| PageKey::Leaf {
            table: TableId(1),
            index: IndexId(2),
            low: vec![7; len],
        };
        let longest = key(FENCE_BYTES_MAX);
        assert_eq!(PageKey::decode(&longest.encode()), Ok(longest));
        assert!(PageKey::decode(&key(FENCE_BYTES_MAX + 1).encode()).is_err());
    }

    proptest! {
        #[test]
        fn encoded_keys_compare_as_keys_do(a in any_key(), b in any_key()) {
            prop_assert_eq!(a.encode().cmp(&b.encode()), a.cmp(&b));
            prop_assert_eq!(PageKey::decode(&a.encode()), Ok(a));
        }

        #[test]
        fn other_bytes_are_no_key(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(key) = PageKey::decode(&bytes) {
                prop_assert_eq!(&key.encode()[..], &bytes[..]);
            }
        }
    }
}
