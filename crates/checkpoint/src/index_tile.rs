//! Tiles of indexes: the entries between two fences, as frames.
//!
//! A tile holds every entry of its index from its low fence (in its key) to below its high fence, in ascending order.
//! It is stored like the leaf of the index it was made from, but what an entry is (a key and a row's number) is not
//! known here: bytes that compare.
//!
//! A tile's *text*: for each entry the varint number of leading bytes that it shares with the entry before (the first
//! one with the low fence), the varint number of further bytes, and those. It is cut where it passes [`PAGE_BYTES`], so
//! one tile may be several frames, and an entry may be of any length:
//! - the first frame: varint 1 and the high fence (varint length, bytes), or varint 0 if there is none; varint number
//!   of entries; varint length of the whole text; the text's first piece;
//! - each further one: varint place of its piece in the text, the piece.
//!
//! Invariants:
//! - A tile is read to its end before anything of it is used: entries in ascending order, within the fences, as many as
//!   it says.
//! - Fences are at most [`FENCE_BYTES_MAX`] long: they are keys of the directory.
//!
//! Does not: cut an index into tiles, or know which are there ([`Directory::tiles`](crate::Directory::tiles)).

use crate::chunk::PAGE_BYTES;
use crate::error::CheckpointError;
use crate::frame::{self, Encoder, FrameError, FrameKind};
use crate::page_ref::{FENCE_BYTES_MAX, PageChain, PageKey, PageRef};
use crate::writer::ObjectWriter;
use logstead_types::Csn;
use logstead_wal::FormatError;
use logstead_wal::varint::{self, Reader};

fn wrong(what: &'static str, at: usize) -> FormatError {
    FormatError::new(what, at)
}

fn shared_len(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// Writes tiles, one after the other; buffers are used again.
pub struct LeafWriter {
    key: PageKey,
    csn: Csn,
    page_bytes: usize,
    count: u64,
    /// The entry before.
    before: Vec<u8>,
    text: Vec<u8>,
    payload: Vec<u8>,
    encoder: Encoder,
}

impl Default for LeafWriter {
    fn default() -> LeafWriter {
        LeafWriter::new()
    }
}

impl LeafWriter {
    /// A writer. Begin a tile before anything else.
    pub fn new() -> LeafWriter {
        LeafWriter {
            key: PageKey::Leaf {
                table: Default::default(),
                index: Default::default(),
                low: Vec::new(),
            },
            csn: Csn::ZERO,
            page_bytes: PAGE_BYTES,
            count: 0,
            before: Vec::new(),
            text: Vec::new(),
            payload: Vec::new(),
            encoder: Encoder::new(),
        }
    }

    /// The same with pages of another length.
    pub fn with_page_bytes(mut self, bytes: usize) -> LeafWriter {
        self.page_bytes = bytes.clamp(1, PAGE_BYTES);
        self
    }

    /// Begins a tile, as of all transactions below `csn`. Whatever was begun and not finished is forgotten.
    pub fn begin(&mut self, key: PageKey, csn: Csn) -> Result<(), CheckpointError> {
        let PageKey::Leaf { low, .. } = &key else {
            return Err(CheckpointError::Misuse("a tile with the key of a chunk"));
        };
        if low.len() > FENCE_BYTES_MAX {
            return Err(CheckpointError::Misuse(
                "a tile with a fence that is too long",
            ));
        }
        self.before.clone_from(low);
        self.key = key;
        self.csn = csn;
        self.count = 0;
        self.text.clear();
        Ok(())
    }

    /// An entry: above the one before.
    pub fn entry(&mut self, bytes: &[u8]) -> Result<(), CheckpointError> {
        let is_ordered = match self.count {
            0 => bytes >= &self.before[..],
            _ => bytes > &self.before[..],
        };
        if !is_ordered {
            return Err(CheckpointError::Misuse(
                "entries of an index out of their order",
            ));
        }
        let shared = shared_len(bytes, &self.before);
        varint::put(shared as u64, &mut self.text);
        varint::put((bytes.len() - shared) as u64, &mut self.text);
        self.text.extend_from_slice(&bytes[shared..]);
        self.before.truncate(shared);
        self.before.extend_from_slice(&bytes[shared..]);
        self.count += 1;
        Ok(())
    }

    /// Ends the tile at `high` (`None`: it is the index's last one), and says where it lies.
    pub fn finish(
        &mut self,
        high: Option<&[u8]>,
        writer: &mut ObjectWriter<'_>,
    ) -> Result<PageChain, CheckpointError> {
        if high.is_some_and(|high| high.len() > FENCE_BYTES_MAX) {
            return Err(CheckpointError::Misuse(
                "a tile with a fence that is too long",
            ));
        }
        // What is before the first entry is the low fence.
        if high.is_some_and(|high| high <= &self.before[..]) {
            return Err(CheckpointError::Misuse(
                "a tile that ends before its entries do",
            ));
        }
        let key = self.key.encode();
        let payload = &mut self.payload;
        payload.clear();
        varint::put(u64::from(high.is_some()), payload);
        if let Some(high) = high {
            varint::put(high.len() as u64, payload);
            payload.extend_from_slice(high);
        }
        varint::put(self.count, payload);
        varint::put(self.text.len() as u64, payload);
        let first = self.text.len().min(self.page_bytes);
        payload.extend_from_slice(&self.text[..first]);
        let frame = self
            .encoder
            .encode(FrameKind::Leaf, self.csn, &key, payload)?;
        let mut pages: Vec<PageRef> = vec![writer.put(frame)?];
        let mut at = first;
        for piece in self.text[first..].chunks(self.page_bytes) {
            payload.clear();
            varint::put(at as u64, payload);
            payload.extend_from_slice(piece);
            let kind = FrameKind::LeafPiece;
            let frame = self.encoder.encode(kind, self.csn, &key, payload)?;
            pages.push(writer.put(frame)?);
            at += piece.len();
        }
        if self.text.capacity() > PAGE_BYTES {
            self.text = Vec::new();
            self.payload = Vec::new();
        }
        PageChain::whole(&pages).ok_or(CheckpointError::Misuse("a tile of no pages"))
    }
}

/// A tile that was read, checked to its end. Buffers are used again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    high: Option<Vec<u8>>,
    bytes: Vec<u8>,
    /// Where each entry ends.
    ends: Vec<usize>,
}

impl Leaf {
    /// Where the next tile begins; `None`: it is the last one.
    pub fn high(&self) -> Option<&[u8]> {
        self.high.as_deref()
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Has it none?
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// An entry.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let end = *self.ends.get(at)?;
        let start = match at.checked_sub(1) {
            None => 0,
            Some(before) => *self.ends.get(before)?,
        };
        self.bytes.get(start..end)
    }

    /// Its entries, in ascending order.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        (0..self.ends.len()).map(|at| self.get(at).unwrap_or(&[]))
    }

    fn clear(&mut self) {
        self.high = None;
        self.bytes.clear();
        self.ends.clear();
    }

    /// Takes the text apart.
    fn fill(&mut self, low: &[u8], count: u64, text: &[u8]) -> Result<(), FormatError> {
        let mut from = Reader::new(text);
        // What comes before the entry being read.
        let mut before = 0..0;
        for index in 0..count {
            let at = from.at();
            let shared = from.number()?;
            let further = from.number()?;
            let further = from.bytes(further)?;
            let start = self.bytes.len();
            let shared = usize::try_from(shared).ok();
            if index == 0 {
                let shared = shared.and_then(|shared| low.get(..shared));
                let shared = shared.ok_or(wrong("an entry that shares more than there is", at))?;
                self.bytes.extend_from_slice(shared);
            } else {
                let shared = shared.filter(|shared| *shared <= before.len());
                let shared = shared.ok_or(wrong("an entry that shares more than there is", at))?;
                self.bytes
                    .extend_from_within(before.start..before.start + shared);
            }
            self.bytes.extend_from_slice(further);
            let (old, new) = self.bytes.split_at(start);
            let ordered = match index {
                0 => new >= low,
                _ => new > &old[before.clone()],
            };
            if !ordered || self.high.as_ref().is_some_and(|high| new >= &high[..]) {
                return Err(wrong("entries out of their order", at));
            }
            before = start..self.bytes.len();
            self.ends.push(self.bytes.len());
        }
        if !from.is_empty() {
            return Err(wrong("bytes behind the entries", from.at()));
        }
        Ok(())
    }
}

/// Puts a tile together, frame by frame.
pub(crate) struct TileAssembly<'l> {
    low: &'l [u8],
    leaf: &'l mut Leaf,
    count: u64,
    text_len: u64,
    text: Vec<u8>,
    begun: bool,
}

impl<'l> TileAssembly<'l> {
    pub(crate) fn new(low: &'l [u8], leaf: &'l mut Leaf) -> TileAssembly<'l> {
        leaf.clear();
        TileAssembly {
            low,
            leaf,
            count: 0,
            text_len: 0,
            text: Vec::new(),
            begun: false,
        }
    }

    /// The next frame of the tile with this key.
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        expected: &PageKey,
        buffer: &mut Vec<u8>,
    ) -> Result<(), FrameError> {
        let frame = frame::decode(bytes, buffer)?;
        if frame.key != &expected.encode()[..] {
            return Err(wrong("another page", frame::HEADER_BYTES).into());
        }
        let mut from = Reader::new(frame.payload);
        match (frame.kind, self.begun) {
            (FrameKind::Leaf, false) => {
                self.begun = true;
                self.leaf.high = match from.number()? {
                    0 => None,
                    1 => {
                        let at = from.at();
                        let len = from.number()?;
                        let high = from.bytes(len)?;
                        if high <= self.low || high.len() > FENCE_BYTES_MAX {
                            return Err(wrong("impossible fence of a tile", at).into());
                        }
                        Some(high.to_vec())
                    }
                    _ => return Err(wrong("more than one fence above a tile", 0).into()),
                };
                self.count = from.number()?;
                self.text_len = from.number()?;
            }
            (FrameKind::LeafPiece, true) => {
                let at = from.number()?;
                if at != self.text.len() as u64 {
                    return Err(wrong("a tile of which a piece is missing", 0).into());
                }
            }
            _ => return Err(wrong("another kind of page", 10).into()),
        }
        self.text.extend_from_slice(from.rest());
        if self.text.len() as u64 > self.text_len {
            return Err(wrong("a tile that is longer than it says", 0).into());
        }
        Ok(())
    }

    /// There is no more.
    pub(crate) fn finish(self) -> Result<(), FrameError> {
        if !self.begun || self.text.len() as u64 != self.text_len {
            return Err(wrong("a tile of which a piece is missing", 0).into());
        }
        Ok(self.leaf.fill(self.low, self.count, &self.text)?)
    }
}
