//! Removing what the log does not need any more: behind a recovery mark, and behind a checkpoint.
//!
//! What to remove follows from the manifest alone; listings only say what is there. Nothing is removed before the
//! manifest that makes it superfluous is surely stored. So a crash leaves at worst something that nobody reads, and the
//! next start removes that.
//!
//! **Side segments** are needed for as long as a replay can hand over their entry (T8): until a manifest is stored
//! whose checkpoint holds it, that is, has a CSN above the entry's. The entry itself stays with its lane's segment,
//! which large transactions hardly fill, and may then name a side segment that is gone. Every reader of the log judges
//! an entry by its CSN before it reads what that names (`recovery::merge`); one that has an older manifest in hand than
//! is stored finds that out, and looks again (`inspect`, `copy`). Of the running epoch each lane knows its side
//! segments; of earlier ones a start knows those that survivors need, and all others are nobody's.
//!
//! **Why a server that was overtaken, and does this late, harms nobody.** It had the lease when its manifest `m` was
//! stored (else it does not come here), so the manifest `n` of whoever overtook it came from `m` or a later one, by
//! compare and swap.
//! 1. What `m` does not need, `n` does not need. Checkpoints do not go back, so a segment before a start of `m` is
//!    before the start of that lane in `n`, or of an epoch that `n` does not read; an entry below the checkpoint of `m`
//!    is below that of `n`. Segments outside the spans of `m`'s marks are outside those of `n`: a mark never changes
//!    while it is there, and one that `n` has and `m` has not is of `m`'s own epoch or a later one.
//! 2. What `n` keeps for other reasons, `m` does not reach. What `n` has discarded and `m` has not lies in epochs that
//!    `n` still read, at or behind their starts. Segments of `m`'s own epoch are removed only before `m`'s starts, and
//!    those of later epochs never: where servers can overtake one another, an epoch's segments have numbers of their
//!    own (`epoch << 32` is the first), and so have side segments.
//!
//! **A floor.** Somebody else may read the log still ([`LogFloor`]): then less is removed, and with a later call the
//! rest. That changes nothing of the above.
//!
//! Does not: know what a checkpoint holds, or remove its objects.

use crate::lane::Lane;
use crate::manifest::{Manifest, RedoPoint};
use crate::number_limits::first_number;
use logstead_home::{HomeError, LogHome, Position};
use logstead_types::{Csn, Epoch, LaneId};
use std::collections::{BTreeSet, HashSet};

/// Segments of a lane that one call removes at most; later ones remove the rest.
const SEGMENTS_AT_ONCE: u64 = 4096;

/// What was removed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TruncationReport {
    /// Segments of lanes.
    pub segments: u64,
    /// Side segments.
    pub sides: u64,
}

/// From where on the log of the running epoch is read still: every entry at or above a CSN lies at or behind these
/// places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFloor {
    /// The CSN.
    pub csn: Csn,
    /// A place in each lane; of a lane that is missing here everything is read still.
    pub starts: Vec<RedoPoint>,
}

/// What a running server has removed of the log so far.
pub(crate) struct TruncationProgress {
    /// Nothing of earlier epochs is left that a checkpoint of this one makes superfluous.
    earlier_removed: bool,
    /// Of each lane, the first segment that is still there.
    first: Vec<(LaneId, u64)>,
}

impl TruncationProgress {
    pub(crate) fn new(manifest: &Manifest) -> TruncationProgress {
        let lanes = manifest.lanes.iter();
        TruncationProgress {
            earlier_removed: false,
            first: lanes
                .map(|origin| (origin.lane, origin.first_segment))
                .collect(),
        }
    }
}

/// Removes what a checkpoint of the running epoch makes superfluous, as far as it is below the floor. `manifest` is one
/// that was surely stored, `lanes` are its epoch's.
pub(crate) fn run(
    home: &LogHome,
    manifest: &Manifest,
    lanes: &[Lane],
    floor: Option<&LogFloor>,
    own: &mut TruncationProgress,
) -> Result<TruncationReport, HomeError> {
    let mut truncated = TruncationReport::default();
    let checkpoint = manifest.checkpoint.as_ref();
    // One of an earlier epoch: the start has seen to it.
    let Some(checkpoint) = checkpoint.filter(|checkpoint| checkpoint.epoch == manifest.epoch)
    else {
        return Ok(truncated);
    };
    if !own.earlier_removed {
        remove_earlier(home, manifest, &HashSet::new(), &mut truncated)?;
        own.earlier_removed = true;
    }
    let csn = floor.map_or(checkpoint.csn, |floor| floor.csn.min(checkpoint.csn));
    for lane in lanes {
        for side in lane.sides_below(csn) {
            home.sides.remove_side_segment(side.lane, side.id)?;
            truncated.sides += 1;
        }
        lane.forget_sides_below(csn);
    }
    for (id, first) in &mut own.first {
        let Some(start) = checkpoint.start_of(*id) else {
            continue;
        };
        // The start's own segment stays, with what lies in it before the start: who fences the lane looks for the
        // writer there.
        let mut end = start.at.segment;
        if let Some(floor) = floor {
            let start = floor.starts.iter().find(|start| start.lane == *id);
            end = end.min(start.map_or(0, |start| start.at.segment));
        }
        // Where a floor has stood for long there may be many, and a checkpoint waits.
        end = end.min(*first + SEGMENTS_AT_ONCE);
        while *first < end {
            home.segments.trim(*id, *first)?;
            truncated.segments += 1;
            *first += 1;
        }
    }
    Ok(truncated)
}

/// Removes segments and side segments of earlier epochs that no epoch needs, and gives back the unused ends of segments
/// of those that are settled. `live`: side segments, lane and number, that survivors need.
pub(crate) fn remove_earlier(
    home: &LogHome,
    manifest: &Manifest,
    live: &HashSet<(LaneId, u64)>,
    truncated: &mut TruncationReport,
) -> Result<(), HomeError> {
    let mut ends: Vec<(LaneId, u64, Position)> = Vec::new();
    for span in manifest.marks.iter().flat_map(|mark| &mark.spans) {
        ends.push((span.lane, span.first_segment, span.end));
    }
    let later = home
        .capabilities()
        .leased
        .then(|| first_number(manifest.epoch));
    // A lane without segments may have side segments.
    let mut lanes: BTreeSet<LaneId> = home.segments.list_lanes()?.into_iter().collect();
    lanes.extend(manifest.lanes.iter().map(|origin| origin.lane));
    for lane in lanes {
        // Before its segments: a lane is found by them.
        for id in home.sides.list_side_segments(lane)? {
            let epoch = Epoch(u32::try_from(id >> 32).unwrap_or(u32::MAX));
            let orphan = epoch < manifest.epoch && !live.contains(&(lane, id));
            if orphan && !manifest.is_evidence(epoch) {
                home.sides.remove_side_segment(lane, id)?;
                truncated.sides += 1;
            }
        }
        let origin = manifest.lanes.iter().find(|origin| origin.lane == lane);
        for info in home.segments.list_segments(lane)? {
            let segment = info.segment;
            if manifest.is_discarded(lane, segment)
                || origin.is_some_and(|origin| segment >= origin.first_segment)
                || later.is_some_and(|later| segment >= later)
            {
                continue;
            }
            let within = |&&(of, first, end): &&(LaneId, u64, Position)| {
                of == lane && (first..=end.segment).contains(&segment)
            };
            match ends.iter().find(within) {
                Some(&(_, _, end)) if end.segment == segment && info.size_bytes > end.offset => {
                    home.segments.seal(lane, end)?
                }
                Some(_) => {}
                None => {
                    home.segments.trim(lane, segment)?;
                    truncated.segments += 1;
                }
            }
        }
    }
    Ok(())
}
