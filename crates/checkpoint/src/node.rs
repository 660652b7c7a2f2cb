//! Nodes of the directory: a page's key to its chain, and in inner nodes the first key of a child to where the child
//! lies.
//!
//! A node is a frame; its key is its level (a byte, 0 for leaves) and its first key. Payload: varint number of entries,
//! then for each the varint number of leading bytes that its key shares with the one before, the varint number of
//! further bytes, those, and
//! - in an inner node the child's reference;
//! - in a leaf varint number of parts, varint number of pages behind the base, the base's reference and theirs.
//!
//! A reference: u64 object, u32 offset, u32 length, u32 checksum.
//!
//! Invariants: keys grow from entry to entry; a node has at least one; a child's first key is exactly the one its
//! parent has for it, and its level is one less, so every walk ends.

use crate::frame::{self, Encoder, FrameError, FrameKind};
use crate::page_ref::{KeyBytes, PageChain, PageRef, REF_BYTES};
use logstead_types::Csn;
use logstead_wal::FormatError;
use logstead_wal::varint::{self, Reader};
use smallvec::SmallVec;

/// Levels that a directory can have: far more than 64 bits of chunks fill.
pub(crate) const LEVELS_MAX: u8 = 24;
/// A node is cut when its entries weigh more.
pub(crate) const NODE_BYTES_MAX: usize = 4096;
/// Nodes that weigh less join a neighbour.
pub(crate) const NODE_BYTES_MIN: usize = 1024;
/// Cut nodes weigh about this: there is room for the next entries.
const NODE_BYTES_AFTER_CUT: usize = 3072;
/// An inner node gets at least so many children, however long their keys are: so the levels come to an end.
const CHILDREN_MIN: usize = 4;

/// Entries of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entries {
    Leaf(Vec<(KeyBytes, PageChain)>),
    Inner(Vec<(KeyBytes, PageRef)>),
}

/// A node in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) level: u8,
    pub(crate) entries: Entries,
}

/// What an entry adds to a node, before compression.
fn weight(key: &[u8], references: usize) -> usize {
    key.len() + 4 + references * REF_BYTES
}

impl Entries {
    pub(crate) fn len(&self) -> usize {
        match self {
            Entries::Leaf(entries) => entries.len(),
            Entries::Inner(entries) => entries.len(),
        }
    }

    pub(crate) fn first_key(&self) -> Option<&KeyBytes> {
        match self {
            Entries::Leaf(entries) => entries.first().map(|(key, _)| key),
            Entries::Inner(entries) => entries.first().map(|(key, _)| key),
        }
    }

    fn weight_at(&self, index: usize) -> usize {
        match self {
            Entries::Leaf(entries) => {
                let (key, chain) = &entries[index];
                weight(key, chain.pages().count())
            }
            Entries::Inner(entries) => weight(&entries[index].0, 1),
        }
    }

    pub(crate) fn weight(&self) -> usize {
        (0..self.len()).map(|index| self.weight_at(index)).sum()
    }

    /// Adds the entries of the right neighbour. Both are of one level.
    pub(crate) fn append(&mut self, right: Entries) {
        match (self, right) {
            (Entries::Leaf(left), Entries::Leaf(right)) => left.extend(right),
            (Entries::Inner(left), Entries::Inner(right)) => left.extend(right),
            _ => debug_assert!(false, "neighbours are of one level"),
        }
    }

    /// Cuts what is too much for a node into even pieces.
    pub(crate) fn cut(self) -> Vec<Entries> {
        let total = self.weight();
        if total <= NODE_BYTES_MAX {
            return vec![self];
        }
        let pieces = total.div_ceil(NODE_BYTES_AFTER_CUT);
        let target = total.div_ceil(pieces);
        let least = match self {
            Entries::Leaf(_) => 1,
            Entries::Inner(_) => CHILDREN_MIN,
        };
        let mut ends = Vec::new();
        let (mut weight, mut start) = (0, 0);
        for index in 0..self.len() {
            weight += self.weight_at(index);
            let enough = weight >= target && index + 1 - start >= least;
            if enough && self.len() - (index + 1) >= least {
                ends.push(index + 1 - start);
                (weight, start) = (0, index + 1);
            }
        }
        fn split<T>(entries: Vec<T>, ends: &[usize]) -> Vec<Vec<T>> {
            let mut entries = entries.into_iter();
            let mut pieces: Vec<Vec<T>> = Vec::new();
            for &len in ends {
                pieces.push(entries.by_ref().take(len).collect());
            }
            pieces.push(entries.collect());
            pieces
        }
        match self {
            Entries::Leaf(entries) => split(entries, &ends)
                .into_iter()
                .map(Entries::Leaf)
                .collect(),
            Entries::Inner(entries) => split(entries, &ends)
                .into_iter()
                .map(Entries::Inner)
                .collect(),
        }
    }
}

/// The key of the frame of a node.
pub(crate) fn frame_key(level: u8, first: &[u8]) -> KeyBytes {
    let mut key = KeyBytes::new();
    key.push(level);
    key.extend_from_slice(first);
    key
}

pub(crate) fn put_key(key: &[u8], before: &[u8], payload: &mut Vec<u8>) {
    let shared = key.iter().zip(before).take_while(|(a, b)| a == b).count();
    varint::put(shared as u64, payload);
    varint::put((key.len() - shared) as u64, payload);
    payload.extend_from_slice(&key[shared..]);
}

pub(crate) fn put_chain(chain: &PageChain, payload: &mut Vec<u8>) {
    varint::put(chain.parts().len() as u64, payload);
    varint::put(chain.pages().count() as u64 - 1, payload);
    chain.pages().for_each(|page| page.put(payload));
}

/// Makes the frame of a node that has entries.
pub(crate) fn encode<'a>(
    node: &Node,
    csn: Csn,
    payload: &mut Vec<u8>,
    encoder: &'a mut Encoder,
) -> Result<&'a [u8], FrameError> {
    payload.clear();
    varint::put(node.entries.len() as u64, payload);
    let mut before: &[u8] = &[];
    match &node.entries {
        Entries::Leaf(entries) => {
            for (key, chain) in entries {
                put_key(key, before, payload);
                before = key;
                put_chain(chain, payload);
            }
        }
        Entries::Inner(entries) => {
            for (key, child) in entries {
                put_key(key, before, payload);
                before = key;
                child.put(payload);
            }
        }
    }
    let first = node.entries.first_key().map_or(&[][..], |key| key);
    encoder.encode(FrameKind::Node, csn, &frame_key(node.level, first), payload)
}

/// Reads the frame of a node. `expected`: its level and first key, where its parent says so.
pub(crate) fn decode(
    bytes: &[u8],
    expected: Option<(u8, &[u8])>,
    buffer: &mut Vec<u8>,
) -> Result<Node, FrameError> {
    let frame = frame::decode(bytes, buffer)?;
    if frame.kind != FrameKind::Node {
        return Err(FormatError::new("another kind of page", 10).into());
    }
    let other = FormatError::new("another node", frame::HEADER_BYTES);
    let (&level, first) = frame.key.split_first().ok_or(other.clone())?;
    if expected.is_some_and(|expected| expected != (level, first)) || level >= LEVELS_MAX {
        return Err(other.into());
    }
    Ok(Node {
        level,
        entries: parse(level, first, frame.payload)?,
    })
}

fn parse(level: u8, first: &[u8], payload: &[u8]) -> Result<Entries, FormatError> {
    let mut from = Reader::new(payload);
    let count = from.number()?;
    // An entry takes more bytes than a reference, so a length that the payload does not bear out reserves nothing.
    if count == 0 || count > (payload.len() / REF_BYTES) as u64 {
        return Err(FormatError::new("impossible number of entries", 0));
    }
    let count = count as usize;
    let mut entries = match level {
        0 => Entries::Leaf(Vec::with_capacity(count)),
        _ => Entries::Inner(Vec::with_capacity(count)),
    };
    let mut before = KeyBytes::new();
    for index in 0..count {
        let at = from.at();
        let key = read_key(&mut from, &before)?;
        if (index == 0 && &key[..] != first) || (index > 0 && key <= before) {
            return Err(FormatError::new("keys out of their order", at));
        }
        before.clone_from(&key);
        match &mut entries {
            Entries::Leaf(entries) => entries.push((key, read_chain(&mut from, payload.len())?)),
            Entries::Inner(entries) => entries.push((key, PageRef::read(&mut from)?)),
        }
    }
    if !from.is_empty() {
        return Err(FormatError::new("bytes behind the entries", from.at()));
    }
    Ok(entries)
}

pub(crate) fn read_key(from: &mut Reader<'_>, before: &[u8]) -> Result<KeyBytes, FormatError> {
    let at = from.at();
    let shared = from.number()?;
    let further = from.number()?;
    let further = from.bytes(further)?;
    let shared = usize::try_from(shared)
        .ok()
        .and_then(|shared| before.get(..shared))
        .ok_or(FormatError::new("a key that shares more than there is", at))?;
    let mut key = KeyBytes::from_slice(shared);
    key.extend_from_slice(further);
    if key.len() > frame::KEY_BYTES_MAX - 1 {
        return Err(FormatError::new("a key that is too long", at));
    }
    Ok(key)
}

pub(crate) fn read_chain(
    from: &mut Reader<'_>,
    payload_len: usize,
) -> Result<PageChain, FormatError> {
    let at = from.at();
    let parts = from.number_u32()?;
    let rest = from.number()?;
    if rest > (payload_len / REF_BYTES) as u64 {
        return Err(FormatError::new("impossible number of pages", at));
    }
    let base = PageRef::read(from)?;
    let mut pages = SmallVec::with_capacity(rest as usize);
    for _ in 0..rest {
        pages.push(PageRef::read(from)?);
    }
    PageChain::from_parts(base, parts, pages)
}
