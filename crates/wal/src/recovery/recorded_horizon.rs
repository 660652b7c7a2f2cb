//! What blocks say of other lanes: the horizon that each one recorded when it was sealed. Losses are found by it; where
//! an epoch ends, `merge` finds.
//!
//! A CSN below a recorded horizon had an entry that was durable, with all blocks before it in its lane, when that block
//! was sealed. So a gap below one is a loss, though its own lane ends there as if nothing had ever followed: its last
//! blocks are gone, or rotten, and no later block of it is left to tell.
//!
//! **Which gaps are none.** Below the base nothing is looked for: a checkpoint holds it, or an earlier epoch has
//! settled it. Of an epoch with a mark, the mark says what is unaccounted, and from where on an accepted loss has
//! annulled the rest; its horizons tell nothing more. A CSN that was drawn and never pushed would be one: there is
//! none, since nothing fails between the draw and the push (T12).
//!
//! **How far a reader holds a log to it.** The claim is about all lanes at the time of sealing. Beside a server at
//! work, lanes are read at different times, and a block that is read last may tell of what came into another lane after
//! that was read. So such a reader reads a [`consistent_cut`](super::consistent_cut): its blocks were sealed before its
//! last pass began, so all CSNs below their horizons and up to `last`, its highest one, are in it, or lost. One copy of
//! several lacks what the others have, and is not held to it.
//!
//! **When the gap is certain.** The entry lies in some lane before any block of that lane whose horizon is above it. So
//! a lane does not hold it that has ended, or has been read up to such a block. When that is so of all lanes, nobody
//! waits for the end of the others: what would be kept for the gap has no bound.

use super::read::LaneEnd;
use crate::error::Corruption;
use logstead_home::Position;
use logstead_types::{BlockNo, Csn, Epoch, LaneId};

/// The highest horizon that a lane's blocks have recorded, and the first one that did.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordedHorizon {
    pub(crate) horizon: Csn,
    pub(crate) block: BlockNo,
    pub(crate) at: Position,
}

impl RecordedHorizon {
    /// Takes over what is higher.
    pub(crate) fn raise(&mut self, other: RecordedHorizon) {
        if other.horizon > self.horizon {
            *self = other;
        }
    }
}

/// How far a lane was read, and what it has told.
#[derive(Clone, Copy)]
pub(super) struct LaneEvidence<'e> {
    pub(super) lane: LaneId,
    pub(super) recorded: RecordedHorizon,
    pub(super) end: Option<&'e LaneEnd>,
}

impl LaneEvidence<'_> {
    /// It has told that the CSN was durable before a block of its own that was read: so it does not hold it.
    fn proves(&self, gap: Csn) -> bool {
        self.recorded.horizon > gap
    }

    /// It has ended, and the entry may have lain behind its end.
    pub(super) fn may_have_lost(&self, gap: Csn) -> bool {
        self.end.is_some() && !self.proves(gap)
    }
}

/// Is `gap`, the first CSN without an entry in what was read of an epoch's lanes, one that was durable? `None`: it was
/// not, or it may still turn up, or it is above `last`, and nobody knows.
pub(super) fn loss<'e>(
    epoch: Epoch,
    gap: Csn,
    last: Option<Csn>,
    lanes: impl Iterator<Item = LaneEvidence<'e>> + Clone,
) -> Option<Corruption> {
    if last.is_some_and(|last| gap > last) {
        return None;
    }
    let proof = lanes
        .clone()
        .filter(|lane| lane.proves(gap))
        .max_by_key(|lane| lane.recorded.horizon)?;
    let is_read = |lane: LaneEvidence<'_>| lane.end.is_some() || lane.proves(gap);
    if !lanes.clone().all(is_read) {
        return None;
    }
    let LaneEvidence { lane, recorded, .. } = proof;
    let RecordedHorizon { horizon, block, at } = recorded;
    let said = format!(
        "no lane has an entry with CSN {gap}, and block {block} of lane {lane} at {at} says that all below {horizon} were durable"
    );
    let mut ends = lanes.filter_map(|lane| lane.end.filter(|_| lane.may_have_lost(gap)));
    let corruption = |lane, block, at, what, proof| Corruption {
        lane,
        epoch,
        block,
        at,
        what,
        proof,
        may_be_removed: false,
    };
    let Some(first) = ends.next() else {
        let what = "it tells of an entry that there never was".to_owned();
        return Some(corruption(lane, block, at, what, said));
    };
    let others: Vec<String> = ends
        .map(|end| {
            let LaneEnd {
                lane,
                end: at,
                blocks,
                why,
                ..
            } = end;
            format!("block {blocks} of lane {lane} at {at}: {why}")
        })
        .collect();
    let or = if others.is_empty() {
        String::new()
    } else {
        format!(" (or it was {})", others.join(", or "))
    };
    let what = format!("{}{or}", first.why);
    Some(corruption(
        first.lane,
        BlockNo(first.blocks),
        first.end,
        what,
        said,
    ))
}
