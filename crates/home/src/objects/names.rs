//! What the bucket holds: names of objects, the head of a segment, fences. docs/format.md has it byte by byte.
//!
//! | name | what |
//! |---|---|
//! | `log/lane-LLLL/SEGMENT` | appendable: a head, then blocks, then perhaps fences; or a tombstone |
//! | `log/lane-LLLL/SEGMENT/OFFSET` | plain: one append, or a fence in its place |
//! | `log/lane-LLLL/SEGMENT.patch/OFFSET` | bytes that stand for what lies there |
//! | `objects/ID` | an immutable object |
//! | `probe/reserve` | zeros, that keep room where there is a quota |
//! | `side/lane-LLLL/ID/PART`, `side/lane-LLLL/ID/complete` | a side segment, and the proof that it is whole |
//!
//! Invariants: a fence is shorter than a head, so an object of a fence alone (a *tombstone*) is told from a segment by
//! its length; neither begins with a block's magic.

use crate::ObjectId;
use logstead_types::LaneId;

/// Length of a segment's head.
pub(super) const HEAD_LEN: u64 = 64;
/// Length of a fence.
pub(super) const FENCE_LEN: u64 = 60;

const HEAD_MAGIC: &[u8; 8] = b"LGSTSEGM";
const FENCE_MAGIC: &[u8; 8] = b"LGSTFENC";
const VERSION: u16 = 1;
/// Where the name of who fenced lies in a fence.
const FENCED_BY: std::ops::Range<usize> = 32..56;

/// Where all lanes are.
pub(super) const LANES: &str = "log/";

/// Where the side segments of all lanes are.
pub(super) const SIDES: &str = "side/";

/// Where all immutable objects are.
pub(crate) const OBJECTS: &str = "objects/";

/// What keeps room. Where scratch objects are: a prefix that holds it and no log is free.
pub(super) const RESERVE: &str = "probe/reserve";

pub(super) fn object(id: ObjectId) -> String {
    format!("{OBJECTS}{id}")
}

pub(super) fn parse_object(name: &str) -> Option<ObjectId> {
    ObjectId::parse(name.strip_prefix(OBJECTS)?)
}

pub(super) fn lane_dir(lane: LaneId) -> String {
    format!("{LANES}lane-{:04x}/", lane.get())
}

/// The object of an appendable segment.
pub(super) fn segment(lane: LaneId, segment: u64) -> String {
    format!("{}{segment:016x}", lane_dir(lane))
}

/// The directory of a plain segment.
pub(super) fn segment_dir(lane: LaneId, segment: u64) -> String {
    format!("{}{segment:016x}/", lane_dir(lane))
}

/// The object of an append to a plain segment.
pub(super) fn block(lane: LaneId, segment: u64, offset: u64) -> String {
    format!("{}{offset:012}", segment_dir(lane, segment))
}

pub(super) fn patch_dir(lane: LaneId, segment: u64) -> String {
    format!("{}{segment:016x}.patch/", lane_dir(lane))
}

pub(super) fn patch(lane: LaneId, segment: u64, offset: u64) -> String {
    format!("{}{offset:012}", patch_dir(lane, segment))
}

pub(super) fn sides_dir(lane: LaneId) -> String {
    format!("{SIDES}lane-{:04x}/", lane.get())
}

pub(super) fn side_dir(lane: LaneId, id: u64) -> String {
    format!("{}{id:016x}/", sides_dir(lane))
}

pub(super) fn side_part(lane: LaneId, id: u64, part: u32) -> String {
    format!("{}{part:08}", side_dir(lane, id))
}

pub(super) fn side_complete(lane: LaneId, id: u64) -> String {
    format!("{}complete", side_dir(lane, id))
}

/// What an object in a lane's directory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LaneObject {
    Segment,
    Block(u64),
    Patch(u64),
}

/// The lane that a name below [`LANES`] belongs to, and what follows the lane's directory.
pub(super) fn parse_lane(name: &str) -> Option<(LaneId, &str)> {
    parse_lane_in(LANES, name)
}

/// The same below [`SIDES`].
pub(super) fn parse_side_lane(name: &str) -> Option<LaneId> {
    parse_lane_in(SIDES, name).map(|(lane, _)| lane)
}

fn parse_lane_in<'n>(directory: &str, name: &'n str) -> Option<(LaneId, &'n str)> {
    let (lane, rest) = name
        .strip_prefix(directory)?
        .strip_prefix("lane-")?
        .split_once('/')?;
    Some((LaneId(u16::from_str_radix(lane, 16).ok()?), rest))
}

/// What a name within a lane's directory means; `None`: nothing of ours.
pub(super) fn parse_part(rest: &str) -> Option<(u64, LaneObject)> {
    let number = |text: &str| {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        digits.then(|| u64::from_str_radix(text, 16).ok())?
    };
    let offset = |text: &str| {
        let digits = text.len() >= 12 && text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse().ok())?
    };
    match rest.split_once('/') {
        None => Some((number(rest)?, LaneObject::Segment)),
        Some((directory, name)) => match directory.strip_suffix(".patch") {
            Some(segment) => Some((number(segment)?, LaneObject::Patch(offset(name)?))),
            None => Some((number(directory)?, LaneObject::Block(offset(name)?))),
        },
    }
}

fn sealed<const N: usize>(mut bytes: [u8; N]) -> [u8; N] {
    let crc = crc32c::crc32c(&bytes[..N - 4]);
    bytes[N - 4..].copy_from_slice(&crc.to_le_bytes());
    bytes
}

/// The first bytes of a segment's object: who made it, told from anybody else's by the nonce.
pub(super) fn head(lane: LaneId, segment: u64, writer: u64) -> [u8; HEAD_LEN as usize] {
    let mut bytes = [0; HEAD_LEN as usize];
    bytes[..8].copy_from_slice(HEAD_MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&lane.get().to_le_bytes());
    bytes[16..24].copy_from_slice(&segment.to_le_bytes());
    bytes[24..32].copy_from_slice(&writer.to_le_bytes());
    sealed(bytes)
}

/// A fence: who shut the lane, when, and a nonce by which that process knows its own.
pub(super) fn fence(
    lane: LaneId,
    nonce: u64,
    micros_since_2000: i64,
    by: &str,
) -> [u8; FENCE_LEN as usize] {
    let mut bytes = [0; FENCE_LEN as usize];
    bytes[..8].copy_from_slice(FENCE_MAGIC);
    bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
    bytes[10..12].copy_from_slice(&lane.get().to_le_bytes());
    bytes[16..24].copy_from_slice(&nonce.to_le_bytes());
    bytes[24..32].copy_from_slice(&micros_since_2000.to_le_bytes());
    let cut = by.floor_char_boundary(FENCED_BY.len());
    bytes[FENCED_BY][..cut].copy_from_slice(&by.as_bytes()[..cut]);
    sealed(bytes)
}

/// Is an object that consists of these bytes a fence of this lane, and nothing else?
pub(super) fn is_fence(bytes: &[u8], lane: LaneId) -> bool {
    let Ok(bytes) = <[u8; FENCE_LEN as usize]>::try_from(bytes) else {
        return false;
    };
    bytes.starts_with(FENCE_MAGIC)
        && bytes[10..12] == lane.get().to_le_bytes()
        && sealed(bytes) == bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        let lane = LaneId(0x12);
        let name = segment(lane, 3 << 32);
        let (of, rest) = parse_lane(&name).expect("a lane's");
        assert_eq!(
            (of, parse_part(rest)),
            (lane, Some((3 << 32, LaneObject::Segment)))
        );
        assert_eq!(
            block(lane, 3 << 32, 4096),
            "log/lane-0012/0000000300000000/000000004096"
        );
        assert_eq!(
            parse_part("0000000300000000/000000004096"),
            Some((3 << 32, LaneObject::Block(4096)))
        );
        assert_eq!(
            parse_part("0000000300000000.patch/000000004096"),
            Some((3 << 32, LaneObject::Patch(4096)))
        );
        let id = ObjectId(0x0000_0007_0000_002a);
        assert_eq!(object(id), "objects/000000070000002a");
        assert_eq!(parse_object(&object(id)), Some(id));
        assert_eq!(parse_object("objects/000000070000002a/x"), None);
        for nothing in [
            "",
            "x",
            "000000030000000",
            "0000000300000000/",
            "0000000300000000/+00000004096",
        ] {
            assert_eq!(parse_part(nothing), None, "{nothing}");
        }
    }

    /// The format on storage: a change here is a change of docs/format.md and of its version.
    #[test]
    fn head_and_fence_are_what_the_format_says() {
        let hex = |bytes: &[u8]| {
            bytes
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<String>()
        };
        let head = head(LaneId(0x0102), 0x0000_0003_0000_0001, 0x1122_3344_5566_7788);
        assert_eq!(
            hex(&head[..60]),
            concat!(
                "4c475354",
                "5345474d",
                "0100",
                "0201",
                "00000000",
                "0100000003000000",
                "8877665544332211",
                "00000000000000000000000000000000000000000000000000000000"
            )
        );
        assert_eq!(head[60..], crc32c::crc32c(&head[..60]).to_le_bytes());
        let fence = fence(
            LaneId(0x0102),
            0x1122_3344_5566_7788,
            0x0102_0304,
            "server b of a long na\u{e4}\u{e4}me",
        );
        assert_eq!(
            hex(&fence[..56]),
            concat!(
                "4c475354",
                "46454e43",
                "0100",
                "0201",
                "00000000",
                "8877665544332211",
                "0403020100000000",
                "7365727665722062206f662061206c6f6e67206e61c3a400"
            )
        );
        assert_eq!(fence[56..], crc32c::crc32c(&fence[..56]).to_le_bytes());
        assert!(is_fence(&fence, LaneId(0x0102)));
        assert!(!is_fence(&fence, LaneId(3)));
        assert!(!is_fence(&head[..60], LaneId(0x0102)));
    }
}
