//! Lanes on their way from the home to the merge: blocks read, checked, taken apart, in the order of the lane.
//!
//! A lane that may be long is read by a thread of its own, which runs ahead by [`BATCHES_AHEAD`] batches of about
//! [`BATCH_BYTES`] and then waits; others are read by whoever asks. Both ways give the same batches, so what recovery
//! decides does not hang on threads.
//!
//! Invariant: after a lane's end there is nothing more of it, and the end comes exactly once.

use super::recorded_horizon::RecordedHorizon;
use super::scan::{self, LaneScan};
use crate::entry::{EntryBody, EntryDependencies, EntryReader, SideRef};
use crate::error::{Corruption, RecoveryError};
use crate::manifest::RedoPoint;
use logstead_env::{Clock, spawn_scoped};
use logstead_home::Position;
use logstead_types::{BlockNo, Csn, LaneId};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::Scope;
use std::time::Duration;

/// Bytes of entries handed on at once. A batch ends with a block, so it may be longer by one block.
pub(super) const BATCH_BYTES: usize = 64 << 10;
/// Batches a lane's thread is ahead of the merge, besides the one it makes.
const BATCHES_AHEAD: usize = 8;
/// Threads that read lanes; lanes beyond are read by the merge.
const READERS_MAX: usize = 64;
/// A lane whose segments are no longer than this is not worth a thread.
pub(super) const SHORT_BYTES: u64 = 2 << 20;

/// How one lane of an epoch ended.
#[derive(Clone, Debug)]
pub(crate) struct LaneEnd {
    pub(crate) lane: LaneId,
    /// Where reading began.
    pub(crate) from: RedoPoint,
    pub(crate) end: Position,
    /// Its number of blocks, those before the start included.
    pub(crate) blocks: u64,
    pub(crate) last_segment: Option<u64>,
    /// Why there is no other block.
    pub(crate) why: String,
    /// Blocks that no later one says to be durable.
    pub(crate) unsure: Vec<scan::BlockLocation>,
    /// The last blocks, where the home has several copies.
    pub(crate) recent: Vec<scan::BlockLocation>,
    pub(crate) corruption: Option<Corruption>,
}

/// Where an entry's records are.
#[derive(Clone, Debug)]
pub(crate) enum RecordsLocation {
    /// In the payloads of its batch.
    Inline(Range<usize>),
    Side(SideRef),
}

/// An entry as a lane holds it.
#[derive(Debug)]
pub(crate) struct LocatedEntry {
    pub(crate) csn: Csn,
    pub(crate) deps: EntryDependencies,
    pub(crate) place: RecordsLocation,
    /// Its block, as an index into the batch's blocks.
    block: u32,
}

impl LaneEnd {
    /// How many blocks were read.
    pub(crate) fn blocks_read(&self) -> u64 {
        self.blocks - self.from.block
    }
}

/// Some blocks of a lane, in order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    blocks: Vec<(BlockNo, Position)>,
    pub(crate) entries: Vec<LocatedEntry>,
    pub(crate) payloads: Arc<Vec<u8>>,
    pub(crate) csn_highest: Csn,
    pub(crate) recorded: RecordedHorizon,
}

impl Batch {
    /// Block and place of an entry of this batch.
    pub(crate) fn block_of(&self, found: &LocatedEntry) -> (BlockNo, Position) {
        let index = usize::try_from(found.block).unwrap_or(usize::MAX);
        self.blocks.get(index).copied().unwrap_or_default()
    }
}

/// What comes next of a lane.
pub(crate) enum LaneRead {
    Blocks(Batch),
    End(LaneEnd),
}

type Step = Result<LaneRead, RecoveryError>;

/// Reads the next batch, or the end.
fn step(scan: &mut LaneScan<'_>, batch_bytes: usize) -> Step {
    if let Some(batch) = next_batch(scan, batch_bytes)? {
        return Ok(LaneRead::Blocks(batch));
    }
    let target = *scan.target();
    Ok(LaneRead::End(LaneEnd {
        lane: target.lane,
        from: target.from,
        corruption: scan.corruption()?,
        end: scan.at(),
        blocks: scan.blocks(),
        last_segment: scan.last_segment(),
        why: scan.why().to_string(),
        unsure: scan.unsure().to_vec(),
        recent: scan.recent(),
    }))
}

/// Reads blocks until they have so many bytes of entries; `None`: there are no more.
pub(super) fn next_batch(
    scan: &mut LaneScan<'_>,
    batch_bytes: usize,
) -> Result<Option<Batch>, RecoveryError> {
    let target = *scan.target();
    let mut batch = Batch::default();
    let mut payloads = Vec::new();
    while payloads.len() < batch_bytes {
        let block = match scan.next() {
            Ok(Some(block)) => block,
            Ok(None) => break,
            // What was read is handed on first: who asks again comes to the same place.
            Err(_) if !batch.blocks.is_empty() => break,
            Err(error) => return Err(error),
        };
        let (header, at) = (block.header, block.at);
        let corrupt = |what: String| {
            RecoveryError::Corrupt(Box::new(Corruption {
                lane: target.lane,
                epoch: target.epoch,
                block: header.block,
                at,
                what,
                proof: "the block's checksums are right".to_owned(),
                may_be_removed: false,
            }))
        };
        let start = payloads.len();
        let index = u32::try_from(batch.blocks.len()).unwrap_or(u32::MAX);
        let mut count = 0u32;
        let mut entries = EntryReader::new(block.payload);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(|error| corrupt(error.to_string()))?;
            if !(header.csn_lowest..=header.csn_highest).contains(&entry.csn) {
                let what = format!("an entry with CSN {}, which cannot be here", entry.csn);
                return Err(corrupt(what));
            }
            let end = start + entries.at();
            let place = match entry.body {
                EntryBody::Inline(records) => RecordsLocation::Inline(end - records.len()..end),
                EntryBody::Side(side) => RecordsLocation::Side(side),
            };
            count += 1;
            batch.entries.push(LocatedEntry {
                csn: entry.csn,
                deps: entry.deps,
                place,
                block: index,
            });
        }
        if count != header.entries {
            let what = format!("{count} entries where the header says {}", header.entries);
            return Err(corrupt(what));
        }
        batch.blocks.push((header.block, at));
        batch.csn_highest = batch.csn_highest.max(header.csn_highest);
        batch.recorded.raise(RecordedHorizon {
            horizon: header.horizon,
            block: header.block,
            at,
        });
        payloads.extend_from_slice(block.payload);
    }
    if batch.blocks.is_empty() {
        return Ok(None);
    }
    batch.payloads = Arc::new(payloads);
    Ok(Some(batch))
}

/// Sends all of a lane, until the end, an error, or nobody listens any more.
fn run_ahead(mut scan: LaneScan<'_>, to: &SyncSender<Step>) {
    loop {
        let step = step(&mut scan, BATCH_BYTES);
        let last = !matches!(step, Ok(LaneRead::Blocks(_)));
        if to.send(step).is_err() || last {
            return;
        }
    }
}

/// A lane being read.
pub(crate) enum LaneSource<'h> {
    Direct(Box<LaneScan<'h>>),
    Ahead(Receiver<Step>),
}

impl<'h> LaneSource<'h> {
    /// The lanes, each read ahead by its own thread if it is long and `ahead` says so.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, '_>,
        scans: Vec<LaneScan<'h>>,
        ahead: bool,
    ) -> Vec<LaneSource<'h>>
    where
        'h: 'scope,
    {
        let mut readers = 0;
        let feed = |scan: LaneScan<'h>| {
            if !ahead || readers == READERS_MAX || scan.size_bytes() <= SHORT_BYTES {
                return LaneSource::Direct(Box::new(scan));
            }
            let (to, from) = sync_channel(BATCHES_AHEAD);
            let again = scan.rescan();
            let name = format!("read-lane-{}", scan.target().lane);
            match spawn_scoped(scope, &name, move || run_ahead(scan, &to)) {
                Ok(_) => {
                    readers += 1;
                    LaneSource::Ahead(from)
                }
                // As many threads as the system allows: the rest is read without.
                Err(_) => LaneSource::Direct(Box::new(again)),
            }
        };
        scans.into_iter().map(feed).collect()
    }

    /// What comes next; adds to `waited` the time spent waiting for a thread.
    pub(crate) fn next(&mut self, clock: &dyn Clock, waited: &mut Duration) -> Step {
        let from = match self {
            LaneSource::Direct(scan) => return step(scan, BATCH_BYTES),
            LaneSource::Ahead(from) => from,
        };
        let gone = |_| -> RecoveryError {
            let what = "read a lane: its thread ended".to_owned();
            logstead_home::HomeError::io(what, std::io::ErrorKind::Other.into()).into()
        };
        match from.try_recv() {
            Ok(step) => step,
            Err(TryRecvError::Disconnected) => Err(gone(std::sync::mpsc::RecvError)),
            Err(TryRecvError::Empty) => {
                let begun = clock.monotonic();
                let step = from.recv().map_err(gone);
                *waited += clock.monotonic().since(begun);
                step?
            }
        }
    }
}
