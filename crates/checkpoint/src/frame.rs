//! Frames: the one wrapping of everything that a checkpoint stores. Pages of rows, nodes of the directory and records
//! are frames.
//!
//! Layout, little endian:
//!
//! ```text
//!  0  8  magic, the ASCII bytes LGSTFRAM
//!  8  2  format version: 1, of changes of rows 2, of pieces of changes 3, of forks 4
//! 10  1  kind
//! 11  1  how the payload is stored: 0 as it is, 1 as an LZ4 block
//! 12  2  length of the key
//! 14  2  zero
//! 16  8  CSN: what the frame says is the state of all transactions below it
//! 24  4  length of the payload as stored
//! 28  4  length of the payload
//! 32  4  CRC-32C of the payload as stored
//! 36  4  CRC-32C of the bytes before and of the key
//! 40     the key, the payload as stored
//! ```
//!
//! Invariants:
//! - Whatever refers to a frame keeps its checksum (the field at 36, which covers the payload's checksum) and knows the
//!   key it must have. So a flipped bit, another page read in its place and an older state of the same page are all
//!   found.
//! - Magic, version, length of the key and the checksum at 36 stay where they are in every later version, so that
//!   "newer" and "damaged" can be told apart.
//! - Bytes are untrusted: nothing is allocated by a length that was not checked, nothing panics.
//!
//! Does not: know what payloads say, or where frames lie.

use logstead_types::Csn;
use logstead_wal::FormatError;
use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};
use thiserror::Error;

/// The newest format that this code reads.
pub const FORMAT_VERSION: u16 = 4;
/// The format of everything that servers have always known.
const FIRST_VERSION: u16 = 1;
/// That of changes of rows.
const CHANGES_VERSION: u16 = 2;
/// That of pieces of changes.
const CHANGE_PIECES_VERSION: u16 = 3;
/// Bytes before the key.
pub const HEADER_BYTES: usize = 40;
/// The longest key.
pub const KEY_BYTES_MAX: usize = 8 << 10;
/// The longest payload, before compression.
pub const PAYLOAD_BYTES_MAX: usize = 32 << 20;
/// The longest frame.
pub const FRAME_BYTES_MAX: usize = HEADER_BYTES + KEY_BYTES_MAX + PAYLOAD_BYTES_MAX;

const MAGIC: [u8; 8] = *b"LGSTFRAM";
const STORED: u8 = 0;
const LZ4: u8 = 1;
/// Shorter payloads are not worth compressing.
const COMPRESSED_BYTES_MIN: usize = 128;
/// An LZ4 block is never less than this part of what it stands for: one byte can add 255 to a length.
const LZ4_RATIO_MAX: usize = 255;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// All rows of a chunk, or the first part of them.
    RowsBase = 1,
    /// Rows of a chunk that changed, or a further part of all of them.
    RowsDelta = 2,
    /// A piece of one row that is too large for a page.
    RowPiece = 3,
    /// A node of the directory.
    Node = 4,
    /// A checkpoint record.
    Record = 5,
    /// A tile of an index, or the first part of it.
    Leaf = 6,
    /// A further part of a tile.
    LeafPiece = 7,
    /// Changes of rows whose older pages could not be read when they were written.
    RowChanges = 8,
    /// A piece of one such change that is too large for a page.
    ChangePiece = 9,
    /// The root of a directory some nodes of which could not be read when they were to be changed.
    Fork = 10,
}

impl FrameKind {
    fn of(byte: u8) -> Option<FrameKind> {
        [
            FrameKind::RowsBase,
            FrameKind::RowsDelta,
            FrameKind::RowPiece,
            FrameKind::Node,
            FrameKind::Record,
            FrameKind::Leaf,
            FrameKind::LeafPiece,
            FrameKind::RowChanges,
            FrameKind::ChangePiece,
            FrameKind::Fork,
        ]
        .into_iter()
        .find(|kind| *kind as u8 == byte)
    }

    /// The format version in which frames of this kind are written: servers that do not know the kind say that they are
    /// too old.
    fn version(self) -> u16 {
        match self {
            FrameKind::RowChanges => CHANGES_VERSION,
            FrameKind::ChangePiece => CHANGE_PIECES_VERSION,
            FrameKind::Fork => FORMAT_VERSION,
            _ => FIRST_VERSION,
        }
    }
}

/// Bytes that are not the frame that was looked for.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// They are damaged, or something else.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A newer server wrote them.
    #[error(
        "written in format version {found}; this server knows versions up to {known}: use a newer one"
    )]
    Newer {
        /// The version they are in.
        found: u16,
        /// The newest that this server reads.
        known: u16,
    },
    /// What was to be written is larger than the format allows (a bug of the caller, never bad data).
    #[error("too large for a frame")]
    TooLarge,
    /// Slots or CSNs were given in an order that a page does not have (a bug of the caller, never bad data).
    #[error("rows out of their order")]
    OutOfOrder,
}

fn wrong(what: &'static str, offset: usize) -> FrameError {
    FrameError::Format(FormatError::new(what, offset))
}

/// A frame, checked and decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// What it is.
    pub kind: FrameKind,
    /// The CSN below which it says everything.
    pub csn: Csn,
    /// The key it was written with.
    pub key: &'a [u8],
    /// What it says.
    pub payload: &'a [u8],
}

/// Makes frames; buffers are used again.
pub struct Encoder {
    out: Vec<u8>,
    table: CompressTable,
}

impl Default for Encoder {
    fn default() -> Encoder {
        Encoder::new()
    }
}

impl Encoder {
    /// An encoder.
    pub fn new() -> Encoder {
        Encoder {
            out: Vec::new(),
            // Always the larger one: which table is used shows in the bytes, and they should follow from the payload
            // alone.
            table: CompressTable::large(),
        }
    }

    /// Wraps a payload, compressed where that helps. The frame lies here until the next one is made.
    pub fn encode(
        &mut self,
        kind: FrameKind,
        csn: Csn,
        key: &[u8],
        payload: &[u8],
    ) -> Result<&[u8], FrameError> {
        if key.len() > KEY_BYTES_MAX || payload.len() > PAYLOAD_BYTES_MAX {
            return Err(FrameError::TooLarge);
        }
        let body = HEADER_BYTES + key.len();
        let room = body + get_maximum_output_size(payload.len());
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        self.out[HEADER_BYTES..body].copy_from_slice(key);
        let mut how = STORED;
        let mut stored_len = payload.len();
        if payload.len() >= COMPRESSED_BYTES_MIN {
            let packed = compress_into_with_table(payload, &mut self.out[body..], &mut self.table);
            // One part in sixteen: less is not worth the time it takes to read.
            if let Ok(packed) = packed
                && packed + payload.len() / 16 < payload.len()
            {
                (how, stored_len) = (LZ4, packed);
            }
        }
        let end = body + stored_len;
        if how == STORED {
            self.out[body..end].copy_from_slice(payload);
        }
        let payload_crc = crc32c::crc32c(&self.out[body..end]);
        let header = &mut self.out[..HEADER_BYTES];
        header[0..8].copy_from_slice(&MAGIC);
        header[8..10].copy_from_slice(&kind.version().to_le_bytes());
        header[10] = kind as u8;
        header[11] = how;
        header[12..14].copy_from_slice(&(key.len() as u16).to_le_bytes());
        header[14..16].fill(0);
        header[16..24].copy_from_slice(&csn.get().to_le_bytes());
        header[24..28].copy_from_slice(&(stored_len as u32).to_le_bytes());
        header[28..32].copy_from_slice(&(payload.len() as u32).to_le_bytes());
        header[32..36].copy_from_slice(&payload_crc.to_le_bytes());
        let crc = crc32c::crc32c_append(crc32c::crc32c(&header[..36]), key);
        header[36..40].copy_from_slice(&crc.to_le_bytes());
        Ok(&self.out[..end])
    }
}

/// The checksum by which a whole frame is referred to. `frame` was made by an [`Encoder`], or decoded.
pub fn checksum(frame: &[u8]) -> u32 {
    u32_at(frame, 36)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes
        .get(at..at + 2)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes
        .get(at..at + 4)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes
        .get(at..at + 8)
        .and_then(|bytes| bytes.try_into().ok())
        .map_or(0, u64::from_le_bytes)
}

/// What the first bytes of a frame say, checked as far as they go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: FrameKind,
    pub(crate) csn: Csn,
    how: u8,
    key_len: usize,
    stored_len: usize,
    payload_len: usize,
    payload_crc: u32,
    pub(crate) crc: u32,
}

impl Header {
    /// Checks header and key. `bytes` holds at least both; what follows is not looked at.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Header, FrameError> {
        if bytes.len() < HEADER_BYTES {
            return Err(wrong("a frame ends too early", bytes.len()));
        }
        if bytes[..8] != MAGIC {
            return Err(wrong("no frame", 0));
        }
        let key_len = usize::from(u16_at(bytes, 12));
        if key_len > KEY_BYTES_MAX {
            return Err(wrong("a key that is too long", 12));
        }
        let key = bytes
            .get(HEADER_BYTES..HEADER_BYTES + key_len)
            .ok_or(wrong("a frame ends too early", bytes.len()))?;
        let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..36]), key);
        if u32_at(bytes, 36) != crc {
            return Err(wrong("wrong checksum of a frame's header", 36));
        }
        let found = u16_at(bytes, 8);
        if found > FORMAT_VERSION {
            let known = FORMAT_VERSION;
            return Err(FrameError::Newer { found, known });
        }
        let kind = FrameKind::of(bytes[10]).ok_or(wrong("unknown kind of frame", 10))?;
        if found != kind.version() {
            return Err(wrong("unknown format version", 8));
        }
        let how = bytes[11];
        if how > LZ4 {
            return Err(wrong("unknown compression", 11));
        }
        if u16_at(bytes, 14) != 0 {
            return Err(wrong("bytes that must be zero are not", 14));
        }
        let stored_len = u32_at(bytes, 24) as usize;
        let payload_len = u32_at(bytes, 28) as usize;
        let bounded = match how {
            STORED => stored_len == payload_len,
            _ => stored_len < payload_len && payload_len / LZ4_RATIO_MAX <= stored_len,
        };
        if !bounded || payload_len > PAYLOAD_BYTES_MAX {
            return Err(wrong("impossible length of a payload", 24));
        }
        Ok(Header {
            kind,
            csn: Csn(u64_at(bytes, 16)),
            how,
            key_len,
            stored_len,
            payload_len,
            payload_crc: u32_at(bytes, 32),
            crc,
        })
    }

    /// Length of the whole frame.
    pub(crate) fn frame_len(&self) -> usize {
        HEADER_BYTES + self.key_len + self.stored_len
    }

    /// The key of the frame that this is the header of.
    pub(crate) fn key<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        bytes
            .get(HEADER_BYTES..HEADER_BYTES + self.key_len)
            .unwrap_or(&[])
    }
}

/// Checks exactly one frame by its checksums, and finds its payload as it is stored.
fn stored(bytes: &[u8]) -> Result<(Header, &[u8]), FrameError> {
    let header = Header::decode(bytes)?;
    if bytes.len() != header.frame_len() {
        return Err(wrong("a frame of another length", bytes.len()));
    }
    let body = HEADER_BYTES + header.key_len;
    let stored = &bytes[body..];
    if crc32c::crc32c(stored) != header.payload_crc {
        return Err(wrong("wrong checksum of a frame's payload", body));
    }
    Ok((header, stored))
}

/// The length of the frame that these bytes begin with, whose checksums are right; `None` if its format is not known
/// here. Nothing is unpacked.
pub(crate) fn sound_frame(bytes: &[u8]) -> Result<Option<usize>, FrameError> {
    let key_len = usize::from(u16_at(bytes, 12));
    let key = bytes.get(HEADER_BYTES..HEADER_BYTES + key_len);
    let key = key.ok_or(wrong("a frame ends too early", bytes.len()))?;
    if bytes[..8] != MAGIC {
        return Err(wrong("no frame", 0));
    }
    let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..36]), key);
    if u32_at(bytes, 36) != crc {
        return Err(wrong("wrong checksum of a frame's header", 36));
    }
    let Ok(header) = Header::decode(bytes) else {
        return Ok(None);
    };
    let len = header.frame_len();
    let frame = bytes.get(..len);
    stored(frame.ok_or(wrong("a frame ends too early", bytes.len()))?)?;
    Ok(Some(len))
}

/// Are these the bytes that were written as the frame with this [`checksum`]? By checksums alone: nothing is unpacked.
pub(crate) fn is_intact(bytes: &[u8], crc: u32) -> bool {
    stored(bytes).is_ok_and(|(header, _)| header.crc == crc)
}

/// Checks exactly one frame, whole. `buffer` is where a compressed payload is unpacked; it is used again.
pub fn decode<'a>(bytes: &'a [u8], buffer: &'a mut Vec<u8>) -> Result<Frame<'a>, FrameError> {
    let (header, stored) = stored(bytes)?;
    let body = HEADER_BYTES + header.key_len;
    let payload = if header.how == STORED {
        stored
    } else {
        // What is in it is overwritten: only what it grows by is cleared.
        buffer.resize(header.payload_len, 0);
        match decompress_into(stored, buffer) {
            Ok(len) if len == header.payload_len => &buffer[..],
            _ => return Err(wrong("a payload that does not decompress", body)),
        }
    };
    Ok(Frame {
        kind: header.kind,
        csn: header.csn,
        key: header.key(bytes),
        payload,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn frame(kind: FrameKind, key: &[u8], payload: &[u8]) -> Vec<u8> {
        let mut encoder = Encoder::new();
        encoder
            .encode(kind, Csn(77), key, payload)
            .unwrap()
            .to_vec()
    }

    #[test]
    fn every_flipped_bit_is_found() {
        let text = b"a page that says the same again and again; ".repeat(40);
        for payload in [&b"short"[..], &text, &[]] {
            let whole = frame(FrameKind::RowsBase, b"key", payload);
            let mut buffer = Vec::new();
            assert_eq!(decode(&whole, &mut buffer).unwrap().payload, payload);
            for at in 0..whole.len() {
                for bit in 0..8 {
                    let mut bad = whole.clone();
                    bad[at] ^= 1 << bit;
                    let error = decode(&bad, &mut buffer).unwrap_err();
                    assert!(matches!(error, FrameError::Format(_)), "{at} {bit} {error}");
                }
            }
            for len in 0..whole.len() {
                assert!(decode(&whole[..len], &mut buffer).is_err(), "cut at {len}");
            }
            let longer = [&whole[..], b"x"].concat();
            assert!(decode(&longer, &mut buffer).is_err());
        }
    }

    fn seal(frame: &mut [u8]) {
        let key_len = usize::from(u16_at(frame, 12));
        let crc = crc32c::crc32c(&frame[..36]);
        let crc = crc32c::crc32c_append(crc, &frame[HEADER_BYTES..HEADER_BYTES + key_len]);
        frame[36..40].copy_from_slice(&crc.to_le_bytes());
    }

    #[test]
    fn a_newer_version_is_refused_by_its_number() {
        let mut newer = frame(FrameKind::Record, b"", b"whatever");
        newer[8] = 9;
        seal(&mut newer);
        let error = decode(&newer, &mut Vec::new()).unwrap_err();
        let known = FORMAT_VERSION;
        assert_eq!(error, FrameError::Newer { found: 9, known });
        assert!(error.to_string().contains("version 9"), "{error}");
        newer[8] = 0;
        seal(&mut newer);
        assert!(matches!(
            decode(&newer, &mut Vec::new()),
            Err(FrameError::Format(_))
        ));
    }

    #[test]
    fn lengths_are_checked_before_anything_is_allocated() {
        let payload = vec![0; 100_000];
        let whole = frame(FrameKind::Node, b"k", &payload);
        for claimed in [u32::MAX, PAYLOAD_BYTES_MAX as u32 + 1, 32 << 20, 1] {
            let mut bad = whole.clone();
            bad[28..32].copy_from_slice(&claimed.to_le_bytes());
            seal(&mut bad);
            let mut buffer = Vec::new();
            assert!(decode(&bad, &mut buffer).is_err(), "{claimed}");
            assert_eq!(buffer.capacity(), 0, "{claimed}");
        }
        let mut encoder = Encoder::new();
        let large = vec![0; PAYLOAD_BYTES_MAX + 1];
        let refused = encoder.encode(FrameKind::Node, Csn(1), b"", &large);
        assert_eq!(refused, Err(FrameError::TooLarge));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_goes_in_comes_out(
            key in proptest::collection::vec(any::<u8>(), 0..50),
            seed in proptest::collection::vec(any::<u8>(), 0..300),
            times in 0..40_usize,
            csn: u64,
        ) {
            let payload = seed.repeat(times);
            let mut encoder = Encoder::new();
            let whole = encoder.encode(FrameKind::RowsDelta, Csn(csn), &key, &payload).unwrap();
            let mut buffer = Vec::new();
            let expected = Frame { kind: FrameKind::RowsDelta, csn: Csn(csn), key: &key, payload: &payload };
            prop_assert_eq!(decode(whole, &mut buffer).unwrap(), expected);
        }

        #[test]
        fn any_bytes_behind_a_right_header_do_not_panic(
            payload in proptest::collection::vec(any::<u8>(), 0..200),
            claimed in 0..100_000_u32,
        ) {
            // A payload that is no LZ4 block, under right checksums.
            let mut bad = frame(FrameKind::Node, b"k", b"");
            bad.extend_from_slice(&payload);
            bad[11] = LZ4;
            bad[24..28].copy_from_slice(&(payload.len() as u32).to_le_bytes());
            bad[28..32].copy_from_slice(&claimed.to_le_bytes());
            bad[32..36].copy_from_slice(&crc32c::crc32c(&payload).to_le_bytes());
            seal(&mut bad);
            let _no_panic = decode(&bad, &mut Vec::new());
        }
    }
}
