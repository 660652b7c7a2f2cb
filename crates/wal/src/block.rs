//! Blocks: what one flush writes. A header of [`HEADER_LEN`] bytes, then whole entries, then zeros up to the home's
//! alignment.
//!
//! | offset | size | field |
//! |---|---|---|
//! | 0 | 8 | magic `LGSTDBLK` |
//! | 8 | 2 | format version, 2 |
//! | 10 | 2 | lane |
//! | 12 | 4 | epoch |
//! | 16 | 8 | database id |
//! | 24 | 8 | block number, from 0 in each lane and epoch |
//! | 32 | 8 | `durable_through`: how many leading blocks of the lane and epoch were durable when this one was built |
//! | 40 | 8 | lowest CSN |
//! | 48 | 8 | highest CSN |
//! | 56 | 4 | payload length |
//! | 60 | 4 | number of entries |
//! | 64 | 4 | CRC-32C of the payload |
//! | 68 | 4 | CRC-32C of the preceding block's header (its bytes 0..72); 0 for block 0 |
//! | 72 | 4 | CRC-32C of bytes 0..72 |
//! | 76 | 4 | CRC-32C of bytes 0..72 and 80..88 |
//! | 80 | 8 | the horizon when this one was built: every CSN below it was durable; 0 says nothing |
//!
//! All numbers little endian. Magic, version, what tells whose block it is (10 to 31) and the checksum at 72 stay where
//! they are in all versions, so that a block that a newer server wrote is known for one, and never taken for the end of
//! its lane (`newer_version`).
//!
//! A header of version 1 is [`HEADER_LEN_V1`] bytes long: its bytes 76..80 are zero, and it has no horizon.
//!
//! Invariants: the chain (`previous_header_crc`) makes stale bytes of an earlier life never look like the next block;
//! `durable_through <= block number`; every CSN from the epoch's base up to below `horizon` has an entry in a block
//! that was durable, with all earlier blocks of its lane, before this one was built. So such an entry of this lane lies
//! in an earlier block than this one.

use crate::FormatError;
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId};

/// Bytes of a block header.
pub const HEADER_LEN: usize = 88;

/// Bytes of a block header of [`FORMAT_VERSION_WITHOUT_HORIZON`].
pub const HEADER_LEN_V1: usize = 80;

/// The format this code writes. It reads [`FORMAT_VERSION_WITHOUT_HORIZON`] too.
pub const FORMAT_VERSION: u16 = 2;

/// The format from before headers recorded the horizon.
pub const FORMAT_VERSION_WITHOUT_HORIZON: u16 = 1;

/// First bytes of every block.
pub const MAGIC: [u8; 8] = *b"LGSTDBLK";

/// Where the header's own checksum lies; it covers the bytes before.
const CRC_AT: usize = 72;

/// Where the checksum lies that covers the horizon too, and where the horizon lies.
const HORIZON_CRC_AT: usize = 76;
const HORIZON_AT: usize = 80;

/// A block's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The format: [`FORMAT_VERSION`], or that of an older server.
    pub version: u16,
    /// The database the block belongs to.
    pub database: DatabaseId,
    /// The life of the server that wrote it.
    pub epoch: Epoch,
    /// The lane.
    pub lane: LaneId,
    /// Its number in lane and epoch.
    pub block: BlockNo,
    /// How many leading blocks of the lane and epoch were durable when it was built.
    pub durable_through: u64,
    /// Bytes of entries.
    pub payload_len: u32,
    /// Number of entries.
    pub entries: u32,
    /// Lowest CSN among them.
    pub csn_lowest: Csn,
    /// Highest CSN among them.
    pub csn_highest: Csn,
    /// CRC-32C of the payload.
    pub payload_crc: u32,
    /// Checksum of the preceding block's header; 0 for the first block.
    pub previous_header_crc: u32,
    /// Every CSN below this one was durable when it was built; 0 says nothing, and is what a header of version 1 says.
    pub horizon: Csn,
}

impl Header {
    /// The header's bytes, of which the first [`Header::header_len`] count, and its own checksum, the next block's
    /// `previous_header_crc`.
    pub fn encode(&self) -> ([u8; HEADER_LEN], u32) {
        let mut out = [0; HEADER_LEN];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&self.version.to_le_bytes());
        out[10..12].copy_from_slice(&self.lane.get().to_le_bytes());
        out[12..16].copy_from_slice(&self.epoch.get().to_le_bytes());
        out[16..24].copy_from_slice(&self.database.get().to_le_bytes());
        out[24..32].copy_from_slice(&self.block.get().to_le_bytes());
        out[32..40].copy_from_slice(&self.durable_through.to_le_bytes());
        out[40..48].copy_from_slice(&self.csn_lowest.get().to_le_bytes());
        out[48..56].copy_from_slice(&self.csn_highest.get().to_le_bytes());
        out[56..60].copy_from_slice(&self.payload_len.to_le_bytes());
        out[60..64].copy_from_slice(&self.entries.to_le_bytes());
        out[64..68].copy_from_slice(&self.payload_crc.to_le_bytes());
        out[68..72].copy_from_slice(&self.previous_header_crc.to_le_bytes());
        let crc = crc32c::crc32c(&out[..CRC_AT]);
        out[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_le_bytes());
        if self.version > FORMAT_VERSION_WITHOUT_HORIZON {
            let horizon = self.horizon.get().to_le_bytes();
            let crc = crc32c::crc32c_append(crc, &horizon);
            out[HORIZON_CRC_AT..HORIZON_AT].copy_from_slice(&crc.to_le_bytes());
            out[HORIZON_AT..].copy_from_slice(&horizon);
        }
        (out, crc)
    }

    /// Reads a header, checking its checksums; also returns that of its first part, which the next block repeats.
    pub fn decode(bytes: &[u8]) -> Result<(Header, u32), FormatError> {
        let whole = bytes;
        let too_short = FormatError::new("block shorter than its header", whole.len());
        let bytes = first_part(whole).ok_or(too_short.clone())?;
        if bytes[0..8] != MAGIC {
            return Err(FormatError::new("no block starts here", 0));
        }
        let crc = u32_at(bytes, CRC_AT);
        if crc != crc32c::crc32c(&bytes[..CRC_AT]) {
            return Err(FormatError::new("wrong checksum of a block header", CRC_AT));
        }
        let version = u16_at(bytes, 8);
        let horizon = match version {
            FORMAT_VERSION_WITHOUT_HORIZON => {
                if u32_at(bytes, HORIZON_CRC_AT) != 0 {
                    return Err(FormatError::new(
                        "reserved bytes of a block header are not zero",
                        HORIZON_CRC_AT,
                    ));
                }
                Csn::ZERO
            }
            FORMAT_VERSION => {
                let horizon = whole.get(HORIZON_AT..HEADER_LEN);
                let horizon: [u8; 8] = horizon
                    .and_then(|bytes| bytes.try_into().ok())
                    .ok_or(too_short)?;
                if u32_at(bytes, HORIZON_CRC_AT) != crc32c::crc32c_append(crc, &horizon) {
                    return Err(FormatError::new(
                        "wrong checksum of a block's horizon",
                        HORIZON_CRC_AT,
                    ));
                }
                Csn(u64::from_le_bytes(horizon))
            }
            version if version > FORMAT_VERSION => {
                return Err(FormatError::new("a block of a newer format version", 8));
            }
            _ => return Err(FormatError::new("unknown format version of a block", 8)),
        };
        let header = Header {
            version,
            lane: LaneId(u16_at(bytes, 10)),
            epoch: Epoch(u32_at(bytes, 12)),
            database: DatabaseId(u64_at(bytes, 16)),
            block: BlockNo(u64_at(bytes, 24)),
            durable_through: u64_at(bytes, 32),
            csn_lowest: Csn(u64_at(bytes, 40)),
            csn_highest: Csn(u64_at(bytes, 48)),
            payload_len: u32_at(bytes, 56),
            entries: u32_at(bytes, 60),
            payload_crc: u32_at(bytes, 64),
            previous_header_crc: u32_at(bytes, 68),
            horizon,
        };
        Ok((header, crc))
    }

    /// Bytes of the header: the payload begins behind them.
    pub fn header_len(&self) -> usize {
        if self.version == FORMAT_VERSION_WITHOUT_HORIZON {
            HEADER_LEN_V1
        } else {
            HEADER_LEN
        }
    }

    /// Bytes of header and payload together.
    pub fn block_len(&self) -> u64 {
        self.header_len() as u64 + u64::from(self.payload_len)
    }

    /// Checks the payload's checksum.
    pub fn check_payload(&self, payload: &[u8]) -> Result<(), FormatError> {
        if payload.len() as u64 != u64::from(self.payload_len) {
            return Err(FormatError::new(
                "block shorter than its payload",
                payload.len(),
            ));
        }
        if crc32c::crc32c(payload) != self.payload_crc {
            return Err(FormatError::new(
                "wrong checksum of a block's payload",
                self.header_len(),
            ));
        }
        Ok(())
    }
}

/// The version of a block that begins here and that a newer server wrote, if it is one of this lane and epoch with this
/// number or a later one. An earlier one is what a recycled segment held before.
pub(crate) fn newer_version(
    bytes: &[u8],
    of: (DatabaseId, Epoch, LaneId),
    number: u64,
) -> Option<u16> {
    let bytes = first_part(bytes)?;
    let whose = (
        DatabaseId(u64_at(bytes, 16)),
        Epoch(u32_at(bytes, 12)),
        LaneId(u16_at(bytes, 10)),
    );
    let version = u16_at(bytes, 8);
    let is_newer = bytes[0..8] == MAGIC
        && version > FORMAT_VERSION
        && u32_at(bytes, CRC_AT) == crc32c::crc32c(&bytes[..CRC_AT])
        && whose == of
        && u64_at(bytes, 24) >= number;
    is_newer.then_some(version)
}

/// The part of a header that all versions have.
fn first_part(bytes: &[u8]) -> Option<&[u8; HEADER_LEN_V1]> {
    bytes.get(..HEADER_LEN_V1)?.try_into().ok()
}

fn u16_at(bytes: &[u8; HEADER_LEN_V1], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u32_at(bytes: &[u8; HEADER_LEN_V1], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn u64_at(bytes: &[u8; HEADER_LEN_V1], at: usize) -> u64 {
    u64::from(u32_at(bytes, at)) | u64::from(u32_at(bytes, at + 4)) << 32
}
