//! Entries: all that one transaction changed, its CSN, and what its survival hangs on.
//!
//! ```text
//! entry := len:varint content            len counts the bytes of content
//! content := kind:u8 csn:varint floor:varint count:varint dep:varint* body
//! body := records                                              kind 1, inline
//!       | lane:varint id:varint length:varint crc:u32le        kind 2, in a side segment
//! ```
//!
//! `floor` is written as `csn - floor`, each dep as `csn - dep` (modulo 2^64): dependencies are recent, so the numbers
//! are small.
//!
//! Invariant: what is encoded decodes to the same entry, and nothing else encodes to it.

use crate::FormatError;
use crate::varint::{self, Reader};
use logstead_types::{Csn, LaneId};
use smallvec::SmallVec;

const INLINE: u8 = 1;
const SIDE: u8 = 2;

/// Most direct predecessors an entry may list; one with more falls back to its floor.
pub const DEPS_LIST_MAX: usize = 32;

/// Most bytes an entry takes beyond its records.
pub const OVERHEAD_MAX: usize = varint::LEN_MAX * (8 + DEPS_LIST_MAX);

/// What an entry's survival hangs on: every CSN on the list survives, and every CSN up to the floor is accounted for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EntryDependencies {
    /// Every CSN up to this one must be accounted for.
    pub floor: Csn,
    /// Each of these must survive.
    pub list: SmallVec<[Csn; 4]>,
}

impl EntryDependencies {
    /// Hangs on everything up to `floor`, and on nothing by name.
    pub fn floor(floor: Csn) -> EntryDependencies {
        EntryDependencies {
            floor,
            list: SmallVec::new(),
        }
    }
}

/// Records kept outside the lane because they are many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SideRef {
    /// The lane whose side segment it is.
    pub lane: LaneId,
    /// Its number in the lane.
    pub id: u64,
    /// Its length in bytes.
    pub length: u64,
    /// CRC-32C of its bytes.
    pub crc: u32,
}

/// Where an entry's records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryBody<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// In a side segment.
    Side(SideRef),
}

/// One transaction's entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry<'a> {
    /// Its commit sequence number.
    pub csn: Csn,
    /// What its survival hangs on.
    pub deps: EntryDependencies,
    /// What it changed. An inline body without bytes is a void entry: it only accounts for its CSN.
    pub body: EntryBody<'a>,
}

/// Appends all of the entry but its inline records to `out`, so that records are copied once, to their place.
pub(crate) fn encode_head(
    csn: Csn,
    deps: &EntryDependencies,
    body: &EntryBody<'_>,
    scratch: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    scratch.clear();
    let (kind, inline_len) = match body {
        EntryBody::Inline(records) => (INLINE, records.len()),
        EntryBody::Side(_) => (SIDE, 0),
    };
    scratch.push(kind);
    varint::put(csn.get(), scratch);
    varint::put(csn.get().wrapping_sub(deps.floor.get()), scratch);
    varint::put(deps.list.len() as u64, scratch);
    for dep in &deps.list {
        varint::put(csn.get().wrapping_sub(dep.get()), scratch);
    }
    if let EntryBody::Side(side) = body {
        varint::put(u64::from(side.lane.get()), scratch);
        varint::put(side.id, scratch);
        varint::put(side.length, scratch);
        scratch.extend_from_slice(&side.crc.to_le_bytes());
    }
    varint::put((scratch.len() + inline_len) as u64, out);
    out.extend_from_slice(scratch);
}

impl<'a> Entry<'a> {
    /// Appends the entry's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_head(self.csn, &self.deps, &self.body, &mut Vec::new(), out);
        if let EntryBody::Inline(records) = self.body {
            out.extend_from_slice(records);
        }
    }

    fn decode(content: &'a [u8]) -> Result<Entry<'a>, FormatError> {
        let mut reader = Reader::new(content);
        let kind = reader.byte()?;
        if !matches!(kind, INLINE | SIDE) {
            return Err(FormatError::new("unknown kind of entry", 0));
        }
        let csn = Csn(reader.number()?);
        // The largest number stands for "none" where lanes publish their lowest CSN.
        if csn == Csn::ZERO || csn.get() == u64::MAX {
            return Err(FormatError::new("entry without a CSN", 1));
        }
        let floor = Csn(csn.get().wrapping_sub(reader.number()?));
        let count_at = reader.at();
        let count = reader.number()?;
        if count > DEPS_LIST_MAX as u64 {
            return Err(FormatError::new("too many dependencies", count_at));
        }
        let mut list = SmallVec::new();
        for _ in 0..count {
            list.push(Csn(csn.get().wrapping_sub(reader.number()?)));
        }
        let body = if kind == INLINE {
            EntryBody::Inline(reader.rest())
        } else {
            let lane = LaneId(reader.number_u16()?);
            let id = reader.number()?;
            let length = reader.number()?;
            let crc = reader.u32_le()?;
            if !reader.is_empty() {
                return Err(FormatError::new("bytes behind the entry", reader.at()));
            }
            EntryBody::Side(SideRef {
                lane,
                id,
                length,
                crc,
            })
        };
        Ok(Entry {
            csn,
            deps: EntryDependencies { floor, list },
            body,
        })
    }
}

/// The entries in a block's payload, in order. After an error there are no more.
pub struct EntryReader<'a> {
    reader: Reader<'a>,
    broken: bool,
}

impl<'a> EntryReader<'a> {
    /// Reads entries from `payload`, which may be anything.
    pub fn new(payload: &'a [u8]) -> EntryReader<'a> {
        EntryReader {
            reader: Reader::new(payload),
            broken: false,
        }
    }

    /// Where the next entry begins: how many of the bytes were read.
    pub(crate) fn at(&self) -> usize {
        self.reader.at()
    }

    fn read(&mut self) -> Result<Entry<'a>, FormatError> {
        let len = self.reader.number()?;
        let start = self.reader.at();
        let content = self.reader.bytes(len)?;
        Entry::decode(content).map_err(|error| FormatError {
            offset: start + error.offset,
            ..error
        })
    }
}

impl<'a> Iterator for EntryReader<'a> {
    type Item = Result<Entry<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.reader.is_empty() {
            return None;
        }
        let entry = self.read();
        self.broken = entry.is_err();
        Some(entry)
    }
}
