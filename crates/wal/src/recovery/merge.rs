//! Brings the entries of one epoch's lanes into CSN order and decides which survive.
//!
//! Every CSN of an epoch, from its base up to the first one unaccounted for, is in exactly one lane. So the next entry
//! to hand over is always known by its number, and lanes are read only until it turns up: memory is bounded by how far
//! the lanes were apart. What is left when every lane has ended lies above the first gap, and is little.
//!
//! The rule: an entry survives if everything on its list survives and its floor is below the first unaccounted CSN.
//! Below the gap that holds by itself, because dependencies have smaller CSNs.

use super::errors::{ApplyError, Corruption, RecoveryError};
use super::scan::{LaneScan, Unsure};
use crate::entry::{Body, Deps, Entries, Entry, SideRef};
use logstead_home::{HomeError, LogHome, Position};
use logstead_types::{BlockNo, Csn, LaneId};
use std::collections::BTreeMap;

/// Receives the survivors in CSN order: the CSN of each entry and its records.
pub type Apply<'a> = dyn FnMut(Csn, &[u8]) -> Result<(), ApplyError> + 'a;

/// Bytes of a side segment read at once.
const SIDE_PIECE_LEN: usize = 1 << 20;

/// How one lane of the epoch ended.
#[derive(Clone, Debug)]
pub(crate) struct LaneEnd {
    pub(crate) lane: LaneId,
    pub(crate) first_segment: u64,
    pub(crate) end: Position,
    pub(crate) blocks: u64,
    pub(crate) last_segment: Option<u64>,
    pub(crate) unsure: Vec<Unsure>,
    pub(crate) corruption: Option<Corruption>,
}

/// What became of an epoch.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) ends: Vec<LaneEnd>,
    pub(crate) first_unaccounted: Csn,
    pub(crate) next: Csn,
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
    pub(crate) dropped: u64,
    pub(crate) sides: Vec<SideRef>,
    /// A loss that the caller accepted.
    pub(crate) loss: Option<Corruption>,
}

/// What is known of the epoch before it is read.
pub(crate) struct Known {
    pub(crate) base: Csn,
    /// First unaccounted CSN, if the epoch is settled.
    pub(crate) first_unaccounted: Option<Csn>,
    pub(crate) accept_data_loss: bool,
}

struct Lane<'h> {
    scan: LaneScan<'h>,
    highest: Csn,
    done: bool,
}

enum OwnedBody {
    Inline(Vec<u8>),
    Side(SideRef),
}

struct Waiting {
    deps: Deps,
    body: OwnedBody,
}

struct Merge<'h, 'a> {
    home: &'h dyn LogHome,
    known: Known,
    lanes: Vec<Lane<'h>>,
    waiting: BTreeMap<Csn, Waiting>,
    expected: Csn,
    /// Nothing from here on is handed over by the order alone.
    limit: Csn,
    merged: Merged,
    apply: &'a mut Apply<'a>,
}

/// Reads an epoch's lanes and hands its survivors to `apply`.
pub(crate) fn merge<'h>(
    home: &'h dyn LogHome,
    scans: Vec<LaneScan<'h>>,
    known: Known,
    apply: &mut Apply<'_>,
) -> Result<Merged, RecoveryError> {
    let lanes = scans
        .into_iter()
        .map(|scan| Lane {
            scan,
            highest: Csn::ZERO,
            done: false,
        })
        .collect();
    let base = known.base;
    let limit = known.first_unaccounted.unwrap_or(Csn(u64::MAX));
    let merged = Merged {
        next: base,
        ..Merged::default()
    };
    let mut forward = |csn: Csn, records: &[u8]| apply(csn, records);
    Merge {
        home,
        known,
        lanes,
        waiting: BTreeMap::new(),
        expected: base,
        limit,
        merged,
        apply: &mut forward,
    }
    .run()
}

impl Merge<'_, '_> {
    fn run(mut self) -> Result<Merged, RecoveryError> {
        loop {
            while self.expected < self.limit
                && let Some(entry) = self.waiting.remove(&self.expected)
            {
                if !self.survivor(self.expected, &entry.body)? {
                    self.waiting.insert(self.expected, entry);
                    break;
                }
                self.expected = self.expected.next();
            }
            let unfinished = self.lanes.iter().enumerate().filter(|(_, lane)| !lane.done);
            let Some((index, _)) = unfinished.min_by_key(|(_, lane)| lane.highest) else {
                break;
            };
            self.read_block(index)?;
        }
        self.close_lanes()?;
        self.settle_rest()?;
        Ok(self.merged)
    }

    fn read_block(&mut self, index: usize) -> Result<(), RecoveryError> {
        let lane = &mut self.lanes[index];
        let target = *lane.scan.target();
        let Some(block) = lane.scan.next()? else {
            lane.done = true;
            return Ok(());
        };
        lane.highest = lane.highest.max(block.header.csn_highest);
        let corrupt = |what: String| Corruption {
            lane: target.lane,
            epoch: target.epoch,
            block: block.header.block,
            at: block.at,
            what,
            proof: "the block's checksums are right".to_owned(),
        };
        let mut count = 0;
        for entry in Entries::new(block.payload) {
            let entry = entry
                .map_err(|error| RecoveryError::Corrupt(Box::new(corrupt(error.to_string()))))?;
            count += 1;
            let fresh = entry.csn >= self.known.base && entry.csn >= self.expected.min(self.limit);
            let inside = (block.header.csn_lowest..=block.header.csn_highest).contains(&entry.csn);
            if !fresh || !inside || self.waiting.contains_key(&entry.csn) {
                let what = format!("an entry with CSN {}, which cannot be here", entry.csn);
                return Err(RecoveryError::Corrupt(Box::new(corrupt(what))));
            }
            self.merged.next = self.merged.next.max(entry.csn.next());
            self.waiting.insert(entry.csn, keep(&entry));
        }
        if count != block.header.entries {
            let what = format!(
                "{count} entries where the header says {}",
                block.header.entries
            );
            return Err(RecoveryError::Corrupt(Box::new(corrupt(what))));
        }
        Ok(())
    }

    /// Hands a survivor over. False: its side segment is lost, and the caller has accepted that the log ends there.
    fn survivor(&mut self, csn: Csn, body: &OwnedBody) -> Result<bool, RecoveryError> {
        let from_side;
        let records: &[u8] = match body {
            OwnedBody::Inline(records) => records,
            OwnedBody::Side(side) => match self.read_side(side)? {
                Ok(records) => {
                    from_side = records;
                    self.merged.sides.push(*side);
                    &from_side
                }
                Err(loss) if self.known.accept_data_loss => {
                    self.merged.loss.get_or_insert(loss);
                    self.limit = csn;
                    return Ok(false);
                }
                Err(loss) => return Err(RecoveryError::Corrupt(Box::new(loss))),
            },
        };
        self.merged.entries += 1;
        self.merged.bytes += records.len() as u64;
        if !records.is_empty() {
            (self.apply)(csn, records).map_err(|source| RecoveryError::Apply { csn, source })?;
        }
        Ok(true)
    }

    fn read_side(&self, side: &SideRef) -> Result<Result<Vec<u8>, Corruption>, RecoveryError> {
        let mut records = Vec::new();
        let mut piece = vec![0; SIDE_PIECE_LEN];
        let what = loop {
            match self
                .home
                .get_side(side.lane, side.id, records.len() as u64, &mut piece)
            {
                Ok(0) if records.len() as u64 != side.length => {
                    break "a side segment of the wrong length";
                }
                Ok(0) if crc32c::crc32c(&records) != side.crc => {
                    break "wrong checksum of a side segment";
                }
                Ok(0) => return Ok(Ok(records)),
                Ok(count) => records.extend_from_slice(&piece[..count]),
                Err(HomeError::Missing(_)) => break "a side segment is missing",
                Err(error) => return Err(error.into()),
            }
        };
        let epoch = self
            .lanes
            .first()
            .map(|lane| lane.scan.target().epoch)
            .unwrap_or_default();
        Ok(Err(Corruption {
            lane: side.lane,
            epoch,
            block: BlockNo(0),
            at: Position::default(),
            what: format!("{what} (side segment {:016x})", side.id),
            proof: "it was durable before its entry was written".to_owned(),
        }))
    }

    /// Where each lane ended, and whether it should have.
    fn close_lanes(&mut self) -> Result<(), RecoveryError> {
        for lane in &mut self.lanes {
            let corruption = lane.scan.corruption()?;
            if let Some(corruption) = &corruption {
                if !self.known.accept_data_loss {
                    return Err(RecoveryError::Corrupt(Box::new(corruption.clone())));
                }
                self.merged.loss.get_or_insert(corruption.clone());
            }
            self.merged.ends.push(LaneEnd {
                lane: lane.scan.target().lane,
                first_segment: lane.scan.target().first_segment,
                end: lane.scan.at(),
                blocks: lane.scan.blocks(),
                last_segment: lane.scan.last_segment(),
                unsure: lane.scan.unsure().to_vec(),
                corruption,
            });
        }
        Ok(())
    }

    /// Judges what lies above the first gap.
    fn settle_rest(&mut self) -> Result<(), RecoveryError> {
        let gap = self.expected;
        self.merged.first_unaccounted = gap;
        self.merged.next = self.merged.next.max(gap);
        let mut survived = Vec::new();
        for (csn, entry) in std::mem::take(&mut self.waiting) {
            let lives = |dep: &Csn| *dep < gap || survived.binary_search(dep).is_ok();
            // The entry at the gap itself is there only if its side segment is lost.
            let judged = entry.deps.floor < gap && entry.deps.list.iter().all(lives) && csn != gap;
            if judged && self.survivor(csn, &entry.body)? {
                survived.push(csn);
            } else {
                self.merged.dropped += 1;
            }
        }
        Ok(())
    }
}

fn keep(entry: &Entry<'_>) -> Waiting {
    let body = match entry.body {
        Body::Inline(records) => OwnedBody::Inline(records.to_vec()),
        Body::Side(side) => OwnedBody::Side(side),
    };
    Waiting {
        deps: entry.deps.clone(),
        body,
    }
}
