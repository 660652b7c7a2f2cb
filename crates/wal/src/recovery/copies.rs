//! Completes the copies of a home that has several: each gets the blocks that it lacks and that recovery builds on.
//!
//! A copy that the home says to be behind, or that is new, is compared block by block. Of any other one only the end of
//! what the last server wrote may be missing: it is compared from there backwards, until so many blocks in a row are
//! there as can be under way together.
//!
//! A copy that keeps nothing of a lane's epoch ([`Copies::keeps`]) is not compared there.
//!
//! Where there is a checkpoint, blocks before its starts are not needed and not copied: a copy may begin with a hole.
//!
//! Invariants: only blocks of the chain that recovery adopted are written, where they belong; done before the recovery
//! mark. The earliest that is missing is written first: were it the last, a start that died half way would leave a long
//! row of blocks behind a hole, and the next one would take the copy for complete.
//!
//! Does not: copy side segments to where they are not: the home does. A damaged one is replaced.

use super::consistent_cut::LogOwnership;
use super::from_home;
use super::read::LaneEnd;
use super::read_log::ReplayOutcome;
use super::scan::{BlockLocation, LaneScan, ScanTarget};
use crate::error::RecoveryError;
use crate::manifest::Manifest;
use logstead_home::{Buffer, Copies, HomeError, LogHome, Position};
use logstead_types::LaneId;

/// More appends of one lane than any home has in flight together.
const IN_FLIGHT_MAX: usize = 64;
/// Missing blocks that follow one another are written together, up to about this much.
const PIECE_BYTES: usize = 4 << 20;

/// Completes every copy, and tells the home so.
pub(super) fn complete(
    owner: &LogOwnership,
    home: &LogHome,
    manifest: &Manifest,
    replayed: &ReplayOutcome,
) -> Result<(), RecoveryError> {
    let Some(copies) = &home.copies else {
        return Ok(());
    };
    let several = Several {
        home,
        copies: copies.as_ref(),
    };
    let compare = |copy, target| several.compare(copy, LaneScan::new(home, target, owner.bound())?);
    let behind = copies.copies_behind();
    for copy in 0..copies.count() {
        if !copies.has_copy(copy) {
            continue;
        }
        if behind.contains(&copy) {
            for mark in &manifest.marks {
                let kept = mark.spans.iter();
                for span in kept.filter(|of| copies.keeps(copy, of.lane, of.first_segment)) {
                    compare(copy, ScanTarget::of_span(manifest, mark.epoch, span))?;
                }
            }
        }
        let kept = replayed.last_ends.iter();
        for end in kept.filter(|of| copies.keeps(copy, of.lane, of.end.segment)) {
            if behind.contains(&copy) || !several.complete_end(copy, end)? {
                let of_lane = |origin: &&crate::manifest::EpochLane| origin.lane == end.lane;
                if let Some(origin) = manifest.lanes.iter().find(of_lane) {
                    compare(copy, ScanTarget::of_origin(manifest, origin))?;
                }
            }
        }
    }
    for of in &replayed.damaged_sides {
        copies
            .replace_side_segment_copy(of.damaged, of.good, of.side.lane, of.side.id)
            .map_err(|error| from_home(home, error))?;
    }
    copies
        .copies_completed(manifest.epoch)
        .map_err(|error| from_home(home, error))
}

/// Blocks that follow one another and are missing.
struct Missing {
    at: Position,
    bytes: Vec<u8>,
}

/// A home that consists of several.
struct Several<'h> {
    home: &'h LogHome,
    copies: &'h dyn Copies,
}

impl Several<'_> {
    fn has(
        &self,
        copy: usize,
        lane: LaneId,
        found: &BlockLocation,
        block: &Buffer,
    ) -> Result<bool, HomeError> {
        if found.copy == copy {
            return Ok(true);
        }
        let mut there = Buffer::zeroed(block.capacity());
        let count = self.copies.read_copy(copy, lane, found.at, &mut there)?;
        Ok(count == block.capacity() && there.as_slice() == block.as_slice())
    }

    /// Writes what is missing at the lane's end. False if more than the end may be; then nothing was written.
    fn complete_end(&self, copy: usize, end: &LaneEnd) -> Result<bool, RecoveryError> {
        let mut in_a_row = 0;
        let mut missing = Vec::new();
        for found in end.recent.iter().rev() {
            let block = found.bytes(self.home, end.lane)?;
            if self.has(copy, end.lane, found, &block)? {
                in_a_row += 1;
                if in_a_row == IN_FLIGHT_MAX {
                    break;
                }
            } else {
                in_a_row = 0;
                missing.push(found);
            }
        }
        if in_a_row < IN_FLIGHT_MAX && end.recent.len() as u64 != end.blocks_read() {
            return Ok(false);
        }
        for found in missing.into_iter().rev() {
            let block = found.bytes(self.home, end.lane)?;
            self.copies
                .rewrite_copy(copy, end.lane, found.at, &block, block.capacity())
                .map_err(|error| from_home(self.home, error))?;
        }
        Ok(true)
    }

    /// Compares a lane block by block, and writes what is missing.
    fn compare(&self, copy: usize, mut scan: LaneScan<'_>) -> Result<(), RecoveryError> {
        let lane = scan.target().lane;
        let mut missing: Option<Missing> = None;
        let write = |missing: Option<Missing>| -> Result<(), RecoveryError> {
            let Some(Missing { at, bytes }) = missing else {
                return Ok(());
            };
            let mut block = Buffer::zeroed(bytes.len());
            block.as_mut_slice().copy_from_slice(&bytes);
            self.copies
                .rewrite_copy(copy, lane, at, &block, bytes.len())
                .map_err(|error| from_home(self.home, error))
        };
        while scan.next()?.is_some() {
            let Some(found) = scan.last() else { break };
            let block = found.bytes(self.home, lane)?;
            if self.has(copy, lane, &found, &block)? {
                write(missing.take())?;
                continue;
            }
            let follows = |missing: &Missing| {
                missing.at.segment == found.at.segment
                    && missing.at.offset + missing.bytes.len() as u64 == found.at.offset
                    && missing.bytes.len() < PIECE_BYTES
            };
            match missing.as_mut().filter(|missing| follows(missing)) {
                Some(missing) => missing.bytes.extend_from_slice(block.as_slice()),
                None => {
                    let next = Missing {
                        at: found.at,
                        bytes: block.as_slice().to_vec(),
                    };
                    write(missing.replace(next))?;
                }
            }
        }
        write(missing)
    }
}
