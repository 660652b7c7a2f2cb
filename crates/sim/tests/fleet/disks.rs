//! What the nodes' disks have, looked at behind everybody's back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use logstead_checkpoint::fsck;
use logstead_env::{CrashLoss, Env, Files, SimFiles};
use logstead_home::{
    Buffer, HomeError, IoMethod, LocalHome, LocalOptions, LocalVolume, LogHome, NoRoom, Position,
};
use logstead_types::LaneId;
use logstead_wal::block::Header;
use logstead_wal::entry::{Entry, EntryBody, EntryReader};
use logstead_wal::manifest::{CheckpointRef, Manifest};

use crate::nodes::{NODES, Nodes, SEGMENT_BYTES, VOLUME_DIR, zone_of};

const WRITE_QUORUM: usize = 4;
pub(crate) const READ_QUORUM: usize = 3;
/// Blocks begin at multiples of this.
const ALIGNMENT: usize = 4096;

/// What a home has.
#[derive(Default, PartialEq, Eq)]
pub(crate) struct Contents {
    /// By lane and number. Behind what was appended there may be zeros, or what the file was before.
    segments: BTreeMap<(LaneId, u64), Vec<u8>>,
    sides: BTreeMap<(LaneId, u64), Vec<u8>>,
    objects: BTreeMap<u64, Vec<u8>>,
}

impl Contents {
    pub(crate) fn of(home: &LogHome) -> Result<Contents, HomeError> {
        let mut found = Contents::default();
        for lane in home.segments.list_lanes()? {
            for info in home.segments.list_segments(lane)? {
                let mut into = Buffer::zeroed(info.size_bytes as usize);
                let at = Position::start_of(info.segment);
                let count = home.segments.read(lane, at, &mut into)?;
                let bytes = &into.as_slice()[..count];
                if !bytes.is_empty() {
                    let name = (lane, info.segment);
                    found.segments.insert(name, bytes.to_vec());
                }
            }
            for id in home.sides.list_side_segments(lane)? {
                let mut bytes = vec![0; 1 << 20];
                let count = home.sides.get_side_segment(lane, id, 0, &mut bytes)?;
                bytes.truncate(count);
                found.sides.insert((lane, id), bytes);
            }
        }
        for info in home.objects.list_objects()? {
            let mut bytes = vec![0; info.size_bytes as usize];
            let count = home.objects.read_object(info.id, 0, &mut bytes)?;
            bytes.truncate(count);
            found.objects.insert(info.id.0, bytes);
        }
        Ok(found)
    }

    /// By lane and segment: the blocks that were appended, up to the first that is not there, as far as no checkpoint
    /// holds them. Segments are made ahead, of others that nobody needs: what follows no block in the one before is
    /// none of it.
    fn appended(&self, newest: Option<&CheckpointRef>) -> BTreeMap<(LaneId, u64), Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut last: Option<((LaneId, u64), u64)> = None;
        for (name, bytes) in &self.segments {
            let (lane, segment) = *name;
            let redo = newest.and_then(|newest| newest.start_of(lane));
            let epoch = newest.map_or(0, |newest| u64::from(newest.epoch.get()));
            if segment >> 32 < epoch || redo.is_some_and(|redo| segment < redo.at.segment) {
                continue;
            }
            // Of the same lane and epoch: whatever was appended there is behind it.
            let before =
                last.filter(|((of, before), _)| *of == lane && before >> 32 == segment >> 32);
            let (mut end, mut number) = (0, before.map(|(_, number)| number));
            if let Some(redo) = redo.filter(|redo| redo.at.segment == segment) {
                end = redo.at.offset as usize;
                number = redo.block.checked_sub(1);
            }
            let from = end;
            while let Some((header, next)) = block_at(segment, bytes, end)
                && number.is_none_or(|number| header.block.get() == number + 1)
            {
                (end, number) = (next, Some(header.block.get()));
            }
            if end > from {
                found.insert(*name, bytes[from..end].to_vec());
            }
            last = number.map(|number| (*name, number));
        }
        found
    }

    /// The blocks of its lanes, for people: lane, segment, offset, and what each says of itself.
    fn blocks(&self) -> Vec<String> {
        let mut found = Vec::new();
        for ((lane, segment), bytes) in &self.segments {
            for from in (0..bytes.len()).step_by(ALIGNMENT) {
                if let Some((header, _)) = block_at(*segment, bytes, from) {
                    let (epoch, block) = (header.epoch, header.block);
                    found.push(format!("{lane}/{segment:x}+{from}: {epoch}.{block}"));
                }
            }
        }
        found
    }

    /// The entries in its lanes, by epoch and CSN.
    fn entries(&self) -> BTreeSet<(u32, u64)> {
        let mut found = BTreeSet::new();
        Contents::each_entry(&self.segments, |epoch, entry| {
            found.insert((epoch, entry.csn.get()));
        });
        found
    }

    /// Side segments that entries name.
    fn named_sides(&self, newest: Option<&CheckpointRef>) -> BTreeSet<(LaneId, u64)> {
        let mut found = BTreeSet::new();
        Contents::each_entry(&self.appended(newest), |_, entry| {
            if let EntryBody::Side(side) = entry.body {
                found.insert((side.lane, side.id));
            }
        });
        found
    }

    fn each_entry(
        segments: &BTreeMap<(LaneId, u64), Vec<u8>>,
        mut each: impl FnMut(u32, Entry<'_>),
    ) {
        for ((_, segment), bytes) in segments {
            for from in (0..bytes.len()).step_by(ALIGNMENT) {
                let Some((header, _)) = block_at(*segment, bytes, from) else {
                    continue;
                };
                let payload = &bytes[from + header.header_len()..];
                let payload = &payload[..header.payload_len as usize];
                for entry in EntryReader::new(payload).flatten() {
                    each(header.epoch.get(), entry);
                }
            }
        }
    }
}

/// The whole block of the segment's epoch there, and where the next one begins.
fn block_at(segment: u64, bytes: &[u8], from: usize) -> Option<(Header, usize)> {
    let (header, _) = Header::decode(bytes.get(from..)?).ok()?;
    let payload = bytes.get(from + header.header_len()..)?;
    let payload = payload.get(..header.payload_len as usize)?;
    header.check_payload(payload).ok()?;
    let end = from + header.header_len() + payload.len();
    let is_of_epoch = u64::from(header.epoch.get()) == segment >> 32;
    let next = end.next_multiple_of(ALIGNMENT).min(bytes.len());
    is_of_epoch.then_some((header, next))
}

/// Where these are not the same, in words. A side segment that no entry names is not needed: a server that was
/// overtaken may still write some. Nor is one that no write quorum has: its entry was annulled.
pub(crate) fn difference(nodes: &[Contents], newest: Option<&CheckpointRef>) -> Option<String> {
    let appended = |node: &Contents| node.appended(newest);
    let segments: Vec<_> = nodes.iter().map(appended).collect();
    let named = |node: &Contents| node.named_sides(newest);
    let named: BTreeSet<_> = nodes.iter().flat_map(named).collect();
    let named_sides = |contents: &Contents| {
        let mut sides = contents.sides.clone();
        sides.retain(|side, _| named.contains(side));
        sides
    };
    let sides: Vec<_> = nodes.iter().map(named_sides).collect();
    let objects: Vec<_> = nodes.iter().map(|contents| &contents.objects).collect();
    let blocks = || {
        let blocks = nodes.iter().map(|node| node.blocks().join(" "));
        blocks.collect::<Vec<_>>().join("\n")
    };
    first("segment", &segments.iter().collect::<Vec<_>>(), 1)
        .map(|what| format!("{what}\n{}", blocks()))
        .or_else(|| {
            first(
                "side segment",
                &sides.iter().collect::<Vec<_>>(),
                WRITE_QUORUM,
            )
        })
        .or_else(|| other_bytes(&objects))
}

/// An object that has other bytes at one node than at another one. Some have more of those that nobody needs: what all
/// must have, [`check_objects`] knows.
fn other_bytes(nodes: &[&BTreeMap<u64, Vec<u8>>]) -> Option<String> {
    let mut seen: BTreeMap<u64, &Vec<u8>> = BTreeMap::new();
    for (object, bytes) in nodes.iter().copied().flatten() {
        if *seen.entry(*object).or_insert(bytes) != bytes {
            return Some(format!("object {object:x} is not the same everywhere"));
        }
    }
    None
}

/// A node has by itself, and sound, every object that the checkpoints of the fleet need.
pub(crate) fn check_objects(
    node: &LogHome,
    fleet: &LogHome,
    manifest: &Manifest,
) -> Result<(), String> {
    let home = LogHome {
        names: Arc::clone(&fleet.names),
        ..node.clone()
    };
    let report = fsck(&home, manifest.database, manifest.checkpoint.as_ref());
    let report = report.map_err(|error| error.to_string())?;
    match report.is_clean() {
        true => Ok(()),
        false => Err(format!("objects: {:?}", report.damage)),
    }
}

/// The first that so many have, and that is not the same everywhere.
fn first<K: Ord + std::fmt::Debug>(
    what: &str,
    nodes: &[&BTreeMap<K, Vec<u8>>],
    needed: usize,
) -> Option<String> {
    let names: BTreeSet<&K> = nodes.iter().flat_map(|node| node.keys()).collect();
    let differs = |name: &&&K| {
        let all: Vec<_> = nodes.iter().map(|node| node.get(**name)).collect();
        let there = all.iter().filter(|bytes| bytes.is_some()).count();
        there >= needed && all.iter().any(|bytes| *bytes != all[0])
    };
    let name = names.iter().find(differs)?;
    let sizes: Vec<_> = nodes
        .iter()
        .map(|node| node.get(*name).map(Vec::len))
        .collect();
    Some(format!(
        "{what} {name:?} is not the same everywhere; bytes: {sizes:?}"
    ))
}

/// A disk as its node would find it if the power went now.
fn after_power_cut(disk: &SimFiles, seed: u64) -> Env {
    let disk = disk.fork(seed);
    disk.set_loss(CrashLoss::All);
    disk.reboot();
    let (env, _) = Env::simulated(seed);
    Env {
        files: Arc::new(disk) as Arc<dyn Files>,
        ..env
    }
}

fn contents_of_disk(disk: &SimFiles, seed: u64) -> Result<Contents, HomeError> {
    let env = after_power_cut(disk, seed);
    let home = LocalHome::open_to_follow(VOLUME_DIR, &env)?;
    Contents::of(&LogHome::from(Arc::new(home)))
}

/// After a power cut of all nodes, so many refuse every lane that a server of an epoch before this one had.
pub(crate) fn fenced_before(nodes: &Nodes, epoch: u32, seed: u64) -> usize {
    let is_fenced = |node: &usize| {
        let env = after_power_cut(nodes.disk(*node), seed);
        let options = LocalOptions {
            threads: false,
            way: IoMethod::Pwrite,
            ..LocalOptions::default()
        };
        let Ok(volume) = LocalVolume::open(VOLUME_DIR, &env, SEGMENT_BYTES, options) else {
            return false;
        };
        let lanes = volume.list_lanes().unwrap_or_default();
        lanes.into_iter().all(|lane| {
            let segments = volume.list_segments(lane).unwrap_or_default();
            let before = segments.iter().map(|info| info.segment >> 32);
            let before: BTreeSet<u64> = before.filter(|of| *of < u64::from(epoch)).collect();
            before.into_iter().all(|of| {
                // The last one of that epoch.
                let opened = volume.open_lane(lane, of << 32 | u64::from(u32::MAX));
                matches!(opened, Err(NoRoom::Failed(HomeError::Fenced(_))))
            })
        })
    };
    (0..NODES).filter(is_fenced).count()
}

/// Any zone and one node more may be lost now: are these entries on those that are left? Lanes only: nothing was
/// trimmed.
pub(crate) fn survive(
    nodes: &Nodes,
    entries: &BTreeSet<(u32, u64)>,
    seed: u64,
) -> Result<(), String> {
    let on_disk = |node| match contents_of_disk(nodes.disk(node), seed) {
        Ok(contents) => Ok(contents.entries()),
        // It has nothing of the volume.
        Err(HomeError::Missing(_)) => Ok(BTreeSet::new()),
        Err(error) => Err(format!("the disk of node {node}: {error}")),
    };
    let found: Vec<BTreeSet<(u32, u64)>> = (0..NODES).map(on_disk).collect::<Result<_, _>>()?;
    for zone in 0..NODES / 2 {
        for more in (0..NODES).filter(|&node| zone_of(node) != zone) {
            let left = |node: &usize| zone_of(*node) != zone && *node != more;
            let left: Vec<usize> = (0..NODES).filter(left).collect();
            let is_there =
                |entry: &&(u32, u64)| left.iter().any(|&node| found[node].contains(*entry));
            if let Some(gone) = entries.iter().find(|entry| !is_there(entry)) {
                let has: Vec<usize> = (0..NODES)
                    .filter(|&node| found[node].contains(gone))
                    .collect();
                return Err(format!(
                    "{gone:?} was acknowledged, and is on none of the nodes {left:?}, but on {has:?}"
                ));
            }
        }
    }
    Ok(())
}
