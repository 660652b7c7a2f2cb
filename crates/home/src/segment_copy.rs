//! How a copy of a segment is made equal to another one, piece by piece: by a server that has both at the other ends of
//! its connections, and by a node that has one on its disk.
//!
//! Bytes that differ are written, and then read again: what was written there before in pieces of other borders may
//! hide some of them. Where the copy has other bytes than none, a second source tells which of the two is damaged, or
//! is of an older segment. Bytes are copied as they are: blocks and checksums are recovery's.
//!
//! Does not: know where the bytes are, or say that a segment changes no more.

use crate::{Buffer, HomeError, Position};
use logstead_types::LaneId;
use std::ops::Range;

/// Bytes of a segment that are copied at once.
pub const SEGMENT_PIECE_BYTES: usize = 4 << 20;
/// Bytes are compared in units of at least so many.
const UNIT_BYTES: usize = 4096;

/// A segment to be copied.
#[derive(Clone, Copy, Debug)]
pub struct SegmentToCopy {
    /// Of which lane.
    pub lane: LaneId,
    /// Its number.
    pub segment: u64,
    /// How long it is at its sources.
    pub size_bytes: u64,
    /// How long it is at most where it is copied to.
    pub own_bytes: u64,
    /// What is there of it is durable; else it is written again.
    pub is_sure: bool,
    /// What writes are multiples of.
    pub alignment: usize,
}

/// Both ends of a copy.
pub trait CopyEnds {
    /// Does somebody still want it? Asked before each piece.
    fn must_go_on(&self) -> Result<(), HomeError>;

    /// Up to so many bytes of a source, and which source that was; `but`: of another one than this.
    fn read_source(
        &self,
        at: Position,
        len: usize,
        but: Option<usize>,
    ) -> Result<(usize, Vec<u8>), HomeError>;

    /// Up to so many bytes of what is there.
    fn read_own(&self, at: Position, len: usize) -> Result<Vec<u8>, HomeError>;

    /// Writes bytes; they are durable then.
    fn rewrite(&self, at: Position, block: Buffer, len: usize) -> Result<(), HomeError>;

    /// Has the segment been removed everywhere meanwhile? Then it need not be there.
    fn is_removed(&self) -> bool;

    /// A source has other bytes than two others.
    fn disagrees(&self, source: usize, at: Position);

    /// So many bytes more are equal.
    fn copied(&self, bytes: u64);
}

/// Makes a copy of a segment equal to that of a source.
///
/// # Errors
/// What the ends tell; and what was written reads otherwise.
pub fn copy_segment(segment: &SegmentToCopy, ends: &impl CopyEnds) -> Result<(), HomeError> {
    let (lane, alignment) = (segment.lane, segment.alignment);
    let unit = alignment.max(UNIT_BYTES);
    let mut offset = 0;
    while offset < segment.size_bytes {
        ends.must_go_on()?;
        let at = Position {
            segment: segment.segment,
            offset,
        };
        let (source, mut wanted) = ends.read_source(at, SEGMENT_PIECE_BYTES, None)?;
        let present = match offset < segment.own_bytes {
            true => ends.read_own(at, SEGMENT_PIECE_BYTES)?,
            false => Vec::new(),
        };
        let mut lacking = differences(&wanted, &present, unit);
        let disputed = disputed(&lacking, &present, unit);
        if !disputed.is_empty() {
            // One of the two is damaged, or what is there is of an older segment: another source tells.
            if let Ok((_, second)) = ends.read_source(at, SEGMENT_PIECE_BYTES, Some(source)) {
                if keep_what_two_have(&mut wanted, &present, &second, &disputed) {
                    ends.disagrees(source, at);
                }
                lacking = differences(&wanted, &present, unit);
            }
        }
        let written = !lacking.is_empty();
        let mut to_write = lacking.clone();
        if !segment.is_sure {
            let last = wanted.iter().rposition(|&byte| byte != 0);
            let end = last.map_or(0, |last| (last + 1).next_multiple_of(unit));
            let end = end.min(wanted.len()).min(present.len());
            to_write.extend(between(&lacking, end));
        }
        for range in to_write {
            let len = range.len().next_multiple_of(alignment);
            let mut block = Buffer::zeroed(len);
            block.as_mut_slice()[..range.len()].copy_from_slice(&wanted[range.clone()]);
            let at = Position {
                offset: offset + range.start as u64,
                ..at
            };
            ends.rewrite(at, block, len)?;
        }
        if written {
            let present = ends.read_own(at, SEGMENT_PIECE_BYTES)?;
            if ends.is_removed() {
                return Ok(());
            }
            if !differences(&wanted, &present, unit).is_empty() {
                let why =
                    "what was copied there reads otherwise; if that stays so, empty that place";
                let why = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
                return Err(HomeError::io(
                    format!("completing lane {lane} at {at}"),
                    why,
                ));
            }
        }
        ends.copied((SEGMENT_PIECE_BYTES as u64).min(segment.size_bytes - offset));
        offset += SEGMENT_PIECE_BYTES as u64;
    }
    Ok(())
}

/// Where these bytes are not there, in units.
fn differences(wanted: &[u8], there: &[u8], unit: usize) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for from in (0..wanted.len()).step_by(unit) {
        let to = (from + unit).min(wanted.len());
        let there = there.get(from..to.min(there.len())).unwrap_or(&[]);
        let (same, behind) = wanted[from..to].split_at(there.len());
        // Behind the end there are zeros.
        if same == there && behind.iter().all(|&byte| byte == 0) {
            continue;
        }
        match found.last_mut().filter(|last| last.end == from) {
            Some(last) => last.end = to,
            None => found.push(from..to),
        }
    }
    found
}

/// What lies between these ranges, up to `end`.
fn between(ranges: &[Range<usize>], end: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for range in ranges {
        found.push(from..range.start.min(end));
        from = range.end;
    }
    found.push(from..end);
    found.retain(|range| !range.is_empty());
    found
}

/// Of what a copy lacks, where it has other bytes than none: in pieces of a unit.
fn disputed(lacking: &[Range<usize>], present: &[u8], unit: usize) -> Vec<Range<usize>> {
    let pieces = lacking.iter().flat_map(|range| {
        let starts = range.clone().step_by(unit);
        starts.map(|start| start..range.end.min(start + unit))
    });
    let has_bytes = |piece: &Range<usize>| {
        let there = present.get(piece.clone());
        there.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
    };
    pieces.filter(has_bytes).collect()
}

/// Where a second source has what the copy has, and the first has not, that is what is wanted. True if there was any.
fn keep_what_two_have(
    wanted: &mut [u8],
    present: &[u8],
    second: &[u8],
    disputed: &[Range<usize>],
) -> bool {
    let mut kept = false;
    for piece in disputed {
        let [own, other] = [present, second].map(|bytes| bytes.get(piece.clone()));
        if let (Some(own), Some(other), Some(into)) = (own, other, wanted.get_mut(piece.clone()))
            && own == other
        {
            into.copy_from_slice(own);
            kept = true;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two against one: bits of the source have rotted; or what the child has is of an older segment.
    #[test]
    fn what_two_have_is_right() {
        let unit = 4;
        let first = *b"aaaabbbbcccc0000";
        let child = *b"aaaaXXXXYYYY";
        let second = *b"aaaabbbbYYYY0000";
        let lacking = differences(&first, &child, unit);
        let disputed = disputed(&lacking, &child, unit);
        assert_eq!(disputed, [4..8, 8..12]);
        let mut wanted = first;
        assert!(keep_what_two_have(&mut wanted, &child, &second, &disputed));
        assert_eq!(&wanted, b"aaaabbbbYYYY0000");
        let mut wanted = first;
        assert!(!keep_what_two_have(&mut wanted, &child, &first, &disputed));
        assert_eq!(wanted, first);
    }
}
