//! Reads side segments: the records of large transactions.
//!
//! A side segment was durable before its entry's CSN was drawn (T8), so one that is needed and is missing, short or
//! damaged is corruption, whatever else the log looks like. Nothing of it is handed on before all of it was checked;
//! one that is longer than [`WHOLE_BYTES`] is therefore read twice, instead of being held.

use crate::entry::SideRef;
use crate::error::{Corruption, RecoveryError};
use crate::record::RecordReader;
use logstead_home::{HomeError, LogHome, Position};
use logstead_types::{BlockNo, Csn, Epoch};

/// Bytes read at once.
const PIECE_BYTES: usize = 1 << 20;
/// A side segment up to this long is held in memory whole.
const WHOLE_BYTES: u64 = 8 << 20;

/// A side segment's records, checked.
pub(crate) enum VerifiedSideSegment {
    Whole(Vec<u8>),
    /// Too long to hold: [`pieces`] reads it from this copy.
    Long(usize),
}

/// A copy of a side segment that is damaged, and one that is good.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DamagedCopy {
    pub(crate) side: SideRef,
    pub(crate) damaged: usize,
    pub(crate) good: usize,
}

/// What is wrong with a copy.
enum Wrong {
    Damaged(String),
    Missing,
}

/// Checks length and checksum, copy after copy until one is good; notes those that are damaged. `Ok(Err)`: the side
/// segment is lost.
pub(crate) fn check(
    home: &LogHome,
    epoch: Epoch,
    csn: Csn,
    side: &SideRef,
    damaged: &mut Vec<DamagedCopy>,
) -> Result<Result<VerifiedSideSegment, Corruption>, RecoveryError> {
    let mut bad = Vec::new();
    let mut what = None;
    for copy in (0..home.copy_count()).filter(|&copy| home.has_copy(copy)) {
        match check_copy(home, copy, side) {
            Ok(Ok(checked)) => {
                damaged.extend(bad.into_iter().map(|damaged| DamagedCopy {
                    side: *side,
                    damaged,
                    good: copy,
                }));
                return Ok(Ok(checked));
            }
            Ok(Err(Wrong::Damaged(why))) => {
                bad.push(copy);
                what.get_or_insert(why);
            }
            Ok(Err(Wrong::Missing)) => {}
            Err(error) if home.copy_count() == 1 => return Err(error.into()),
            // It is out of reach now. Whether the others are enough to judge, the home says below.
            Err(_) => {}
        }
    }
    match home.sides.get_side_segment(side.lane, side.id, 0, &mut []) {
        Ok(_) | Err(HomeError::Missing(_)) => {}
        Err(error) if is_damage(&error) => {}
        Err(error) => return Err(error.into()),
    }
    let what = what.unwrap_or_else(|| "a side segment is missing".to_owned());
    Ok(Err(Corruption {
        lane: side.lane,
        epoch,
        block: BlockNo(0),
        at: Position::default(),
        what: format!(
            "{what} (side segment {:016x}, which holds the records of CSN {csn})",
            side.id
        ),
        proof: "it was durable before its entry was written".to_owned(),
        may_be_removed: false,
    }))
}

/// The home has answered that what it keeps is not what was written.
fn is_damage(error: &HomeError) -> bool {
    matches!(error, HomeError::Io { source, .. } if source.kind() == std::io::ErrorKind::InvalidData)
}

fn check_copy(
    home: &LogHome,
    copy: usize,
    side: &SideRef,
) -> Result<Result<VerifiedSideSegment, Wrong>, HomeError> {
    let mut kept = Vec::new();
    let (mut length, mut crc) = (0u64, 0);
    let mut piece = vec![0; PIECE_BYTES];
    let what = loop {
        match home.get_side_segment_copy(copy, side.lane, side.id, length, &mut piece) {
            Ok(0) if length != side.length => {
                break format!(
                    "a side segment of the wrong length, {length} bytes instead of {}",
                    side.length
                );
            }
            Ok(0) if crc != side.crc => break "wrong checksum of a side segment".to_owned(),
            Ok(0) if length <= WHOLE_BYTES => return Ok(Ok(VerifiedSideSegment::Whole(kept))),
            Ok(0) => return Ok(Ok(VerifiedSideSegment::Long(copy))),
            Ok(count) => {
                crc = crc32c::crc32c_append(crc, &piece[..count]);
                length += count as u64;
                if length <= WHOLE_BYTES {
                    kept.extend_from_slice(&piece[..count]);
                } else {
                    kept = Vec::new();
                }
            }
            Err(HomeError::Missing(_)) => return Ok(Err(Wrong::Missing)),
            Err(error) if is_damage(&error) => break error.to_string(),
            Err(error) => return Err(error),
        }
    };
    Ok(Err(Wrong::Damaged(what)))
}

/// Hands a long side segment to `take` in pieces of whole records.
pub(crate) fn pieces(
    home: &LogHome,
    copy: usize,
    csn: Csn,
    side: &SideRef,
    take: &mut dyn FnMut(&[u8]) -> Result<(), RecoveryError>,
) -> Result<(), RecoveryError> {
    let mut held = Vec::new();
    let mut piece = vec![0; PIECE_BYTES];
    let mut read = 0u64;
    loop {
        let count = home.get_side_segment_copy(copy, side.lane, side.id, read, &mut piece)?;
        if count == 0 {
            break;
        }
        read += count as u64;
        held.extend_from_slice(&piece[..count]);
        let whole = whole_records(&held);
        if whole > 0 {
            take(&held[..whole])?;
            held.drain(..whole);
        }
    }
    if held.is_empty() {
        return Ok(());
    }
    // Its checksum was right, so this is how it was written.
    let source = "the records of a side segment do not end with it".into();
    Err(RecoveryError::Apply { csn, source })
}

/// How many of `bytes`, from their start, are whole records.
fn whole_records(bytes: &[u8]) -> usize {
    let mut records = RecordReader::new(bytes);
    let mut end = 0;
    while let Some(Ok(_)) = records.next() {
        end = records.at();
    }
    end
}
