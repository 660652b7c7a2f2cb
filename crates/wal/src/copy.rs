//! Copies a log's tail to another home: what survives behind the checkpoint, entry by entry, into one lane of an epoch
//! of its own.
//!
//! 1. [`TailCopy::read`] takes a moment of the source (`recovery::consistent_cut`, with the proof) and reads that as a
//!    recovery would, changing nothing, so a server may be at work there: what comes out is what a crash at one moment
//!    of the reading could have left, and holds everything that was acknowledged before. It is that only if the
//!    source's manifest is still the same afterwards, apart from its lease: before it names a newer checkpoint nothing
//!    of this tail is removed. Looking is the caller's business.
//! 2. [`TailCopy::finish`] stores what is still in memory; what it says of the lane belongs into the copy's manifest.
//!
//! **A copy that is repeated** while the source's manifest stays the same ([`TailCut::take`], [`TailCopy::of_cut`])
//! copies what has come since. The tail is then in several *parts*, each in an epoch of its own, whose marks follow one
//! another. What lies below the first CSN that has no entry yet (the paper's volume complete LSN) is in the *prefix*,
//! which stays: in this epoch of the source no CSN below is missing, so nothing can come in between. What lies above is
//! the *rest*, a part of its own, which the next copy replaces, because entries of CSNs in between may still come.
//! Another epoch of the source may annul what was seen here before it was acknowledged: then the tail is copied anew.
//!
//! Invariants:
//! - Entries keep their CSNs, and hang on nothing any more: whatever they hung on has survived with them, or is in the
//!   checkpoint.
//! - The lane's end is in a mark, so a copy that lost its end is found damaged, never shorter. Its blocks record no
//!   horizon: there is no other lane, and CSNs that did not survive have no entry in it.
//! - Memory is bounded: a tail that is longer than [`BUFFER_BYTES`] is stored while it is read. A short one is not, so
//!   that a slow target does not make reading slow, and a server that checkpoints often leaves the time that reading
//!   takes.
//!
//! Does not: copy checkpoints, or write manifests.

use crate::block::{FORMAT_VERSION, HEADER_LEN, Header};
use crate::entry::{Entry, EntryBody, EntryDependencies, SideRef};
use crate::manifest::RedoPoint;
use crate::manifest::{CheckpointRef, LaneSpan, Manifest, RecoveryMark};
use crate::number_limits::first_number;
use crate::number_limits::{NumbersExhausted, SIDES_END, segment_end};
use crate::recovery::{self, ConsistentCut, LogView, RecoveryError, RedoHandler};
use logstead_env::{Buffer, Clock};
use logstead_home::{HomeError, LogHome, NoRoom, ObjectId, Position, RoomRequest, SideWriter};
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId};
use std::sync::mpsc::{self, Receiver};

/// So much is read before anything is stored.
pub const BUFFER_BYTES: usize = 64 << 20;
/// Payload of a block, where the home takes so much.
const BLOCK_BYTES: usize = 512 << 10;
/// Records of a transaction beyond this go to a side segment.
const INLINE_BYTES_MAX: usize = 256 << 10;
/// So much of a side segment may wait to be stored.
const SIDE_BACKLOG_BYTES: usize = 8 << 20;

/// Where a tail is copied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Destination {
    /// The database that the copy is.
    pub database: DatabaseId,
    /// An epoch that nobody has written in there.
    pub epoch: Epoch,
    /// A lane that is not open there.
    pub lane: LaneId,
    /// The same for what lies above a gap: a later epoch, and another lane. `None`: it goes to the first ones.
    pub rest: Option<(Epoch, LaneId)>,
}

/// A part of a copied tail, in an epoch of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedPart {
    /// The mark of that epoch.
    pub mark: RecoveryMark,
    /// Side segments that belong to it, in the lane of its span.
    pub sides: Vec<u64>,
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTail {
    /// What was copied to the first epoch; `None`: there was nothing.
    pub prefix: Option<CopiedPart>,
    /// What was copied to the epoch of the rest.
    pub rest: Option<CopiedPart>,
    /// Every CSN below this one has its entry in the copy, or needs none.
    pub complete: Csn,
    /// Above every CSN that was seen.
    pub next: Csn,
    /// Entries.
    pub entries: u64,
    /// Bytes of their records.
    pub bytes: u64,
}

impl CopiedTail {
    /// Its parts, in order.
    pub fn parts(&self) -> impl Iterator<Item = &CopiedPart> {
        self.prefix.iter().chain(&self.rest)
    }
}

/// Where the lanes of the source's last epoch are read from by who has copied everything below a CSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TailStart {
    csn: Csn,
    starts: Vec<RedoPoint>,
}

impl TailStart {
    /// The source's manifest, as if the log began there.
    fn in_manifest(start: Option<&TailStart>, manifest: &Manifest) -> Manifest {
        let mut manifest = manifest.clone();
        if let Some(TailStart { csn, starts }) = start {
            manifest.set_checkpoint(CheckpointRef {
                // Nobody reads it.
                object: ObjectId(0),
                crc: 0,
                csn: *csn,
                epoch: manifest.epoch,
                starts: starts.clone(),
            });
        }
        manifest
    }
}

/// A moment of the source's log, before anything of it is copied.
#[derive(Debug)]
pub struct TailCut {
    moment: ConsistentCut,
    copied: Csn,
}

impl TailCut {
    /// Takes a moment, not earlier than now. `copied`: the caller has everything below this CSN, and reads from `start`
    /// on, which it has from an earlier cut of the same manifest.
    pub fn take(
        from: &LogHome,
        manifest: &Manifest,
        start: Option<&TailStart>,
        copied: Csn,
    ) -> Result<TailCut, RecoveryError> {
        let manifest = TailStart::in_manifest(start, manifest);
        let moment = ConsistentCut::take_for(from, &manifest, copied)?;
        Ok(TailCut { moment, copied })
    }

    /// How far the log has come: equal for two cuts of one manifest if there is nothing new.
    pub fn position(&self) -> (Csn, Vec<u64>) {
        (self.moment.last(), self.moment.blocks())
    }

    /// From where on the next one may read, once everything below the `copied` of this one is copied.
    pub fn start(&self) -> TailStart {
        TailStart {
            csn: self.copied,
            starts: self.moment.starts().to_vec(),
        }
    }

    /// The same moment, read from where an earlier cut says, or else from the checkpoint of the manifest on.
    #[must_use]
    pub fn read_from(self, start: Option<&TailStart>, manifest: &Manifest) -> TailCut {
        TailCut {
            moment: self.moment.read_as(TailStart::in_manifest(start, manifest)),
            copied: self.copied,
        }
    }
}

/// Entries of a block that is not stored yet.
#[derive(Default)]
struct Block {
    payload: Vec<u8>,
    entries: u32,
    lowest: Csn,
    highest: Csn,
}

/// The lane, once something is stored in it.
struct Lane {
    first_segment: u64,
    end: Position,
    blocks: u64,
    previous_header_crc: u32,
    room: Receiver<()>,
}

/// A transaction whose records are coming.
struct Current {
    csn: Csn,
    bytes: u64,
    crc: u32,
    /// In memory while they are few.
    records: Vec<u8>,
    side: Option<(u64, Box<dyn SideWriter>)>,
}

/// What goes to one epoch of the copy.
struct Part {
    epoch: Epoch,
    lane: LaneId,
    base: Csn,
    open: Option<Lane>,
    first_unaccounted: Csn,
    next: Csn,
    /// The number of its next side segment, once there was one.
    side_next: Option<u64>,
    sides: Vec<u64>,
}

impl Part {
    fn new((epoch, lane): (Epoch, LaneId), base: Csn) -> Part {
        Part {
            epoch,
            lane,
            base,
            open: None,
            first_unaccounted: base,
            next: base,
            side_next: None,
            sides: Vec::new(),
        }
    }

    /// A number for another side segment.
    fn side_id(&mut self, to: &LogHome) -> Result<u64, RecoveryError> {
        let first = first_number(self.epoch);
        let next = match self.side_next {
            Some(next) => next,
            None => {
                let of_epoch = |id: &u64| id >> 32 == u64::from(self.epoch.get());
                // Of an attempt before this one, which nobody needs.
                let there = to.sides.list_side_segments(self.lane)?;
                let last = there.into_iter().filter(of_epoch).max();
                last.map_or(first, |last| last + 1)
            }
        };
        if next >= first + SIDES_END {
            return Err(NumbersExhausted::Sides.into());
        }
        self.side_next = Some(next + 1);
        Ok(next)
    }

    fn copied(self) -> Option<CopiedPart> {
        let open = self.open?;
        let mark = RecoveryMark {
            epoch: self.epoch,
            base: self.base,
            first_unaccounted: self.first_unaccounted,
            annulled_from: None,
            next: self.next,
            spans: vec![LaneSpan {
                lane: self.lane,
                first_segment: open.first_segment,
                end: open.end,
                blocks: open.blocks,
            }],
        };
        Some(CopiedPart {
            mark,
            sides: self.sides,
        })
    }
}

/// A tail that has been read, and is stored in part.
pub struct TailCopy<'h> {
    to: &'h LogHome,
    place: Destination,
    /// Entries below are copied already.
    base: Csn,
    part: Part,
    /// The one before, once a gap has come.
    prefix: Option<Part>,
    current: Option<Current>,
    /// When a block is full, and when records are too many for one.
    block_bytes: usize,
    inline_bytes_max: usize,
    block: Block,
    pending: Vec<Block>,
    pending_bytes: usize,
    /// Of those, how many are the prefix's.
    pending_of_prefix: usize,
    complete: Csn,
    /// What comes now lies above it.
    is_behind_gap: bool,
    entries: u64,
    bytes: u64,
}

fn from_room(error: NoRoom, home: &LogHome) -> RecoveryError {
    match error {
        NoRoom::Failed(error) => error.into(),
        NoRoom::DiskFull | NoRoom::Busy => RecoveryError::DiskFull(home.describe()),
        NoRoom::Unavailable => crate::recovery::unavailable().into(),
    }
}

/// Nobody answered: a thread of the home has died.
fn no_answer(to: &LogHome) -> RecoveryError {
    let what = format!("write to {}", to.describe());
    HomeError::io(what, std::io::ErrorKind::BrokenPipe.into()).into()
}

impl<'h> TailCopy<'h> {
    /// Reads what survives in `from` behind the checkpoint of its manifest, as of one moment.
    pub fn read(
        from: &LogHome,
        manifest: &Manifest,
        clock: &dyn Clock,
        to: &'h LogHome,
        place: Destination,
    ) -> Result<TailCopy<'h>, RecoveryError> {
        let checkpoint = manifest.checkpoint.as_ref();
        let base = checkpoint.map_or(Csn(1), |checkpoint| checkpoint.csn);
        let cut = TailCut::take(from, manifest, None, Csn::ZERO)?;
        TailCopy::of_cut(from, &cut, clock, to, (place, base))
    }

    /// Reads what survives of a moment, from the CSN `base` on: below that all is copied already.
    pub fn of_cut(
        from: &LogHome,
        cut: &TailCut,
        clock: &dyn Clock,
        to: &'h LogHome,
        (place, base): (Destination, Csn),
    ) -> Result<TailCopy<'h>, RecoveryError> {
        let room = usize::try_from(to.capabilities().room_size_bytes_max);
        let quarter = room.unwrap_or(usize::MAX) / 4;
        let mut tail = TailCopy {
            to,
            place,
            base,
            part: Part::new((place.epoch, place.lane), base),
            prefix: None,
            current: None,
            block_bytes: BLOCK_BYTES.min(quarter),
            inline_bytes_max: INLINE_BYTES_MAX.min(quarter),
            block: Block::default(),
            pending: Vec::new(),
            pending_bytes: 0,
            pending_of_prefix: 0,
            complete: base,
            is_behind_gap: false,
            entries: 0,
            bytes: 0,
        };
        let reading = LogView::of_moment(&cut.moment, from, clock, true);
        let replayed = recovery::replay(&reading, false, &mut tail)?;
        tail.end_entry()?;
        let last = replayed.marks.last().map_or(base, |mark| mark.next);
        tail.part.next = tail.part.next.max(last);
        Ok(tail)
    }

    /// Stores what is not stored yet, durably.
    pub fn finish(mut self) -> Result<CopiedTail, RecoveryError> {
        self.end_block();
        self.store()?;
        let next = self.part.next;
        for part in self.prefix.iter().chain([&self.part]) {
            if let Some(open) = &part.open {
                self.to.segments.seal(part.lane, open.end)?;
            }
        }
        let (prefix, rest) = match self.prefix {
            Some(prefix) => (prefix.copied(), self.part.copied()),
            None => (self.part.copied(), None),
        };
        Ok(CopiedTail {
            prefix,
            rest,
            complete: self.complete,
            next,
            entries: self.entries,
            bytes: self.bytes,
        })
    }

    /// Makes the records that have come an entry.
    fn end_entry(&mut self) -> Result<(), RecoveryError> {
        let Some(current) = self.current.take() else {
            return Ok(());
        };
        let Current { csn, bytes, .. } = current;
        let side = match current.side {
            None => None,
            Some((id, writer)) => {
                let (done, told) = mpsc::channel();
                writer.finish(Box::new(move |stored| {
                    // Whoever asked waits below.
                    let _asked = done.send(stored);
                }));
                let stored = told.recv().map_err(|_| no_answer(self.to))?;
                stored.map_err(|error| from_room(error, self.to))?;
                self.part.sides.push(id);
                Some(SideRef {
                    lane: self.part.lane,
                    id,
                    length: bytes,
                    crc: current.crc,
                })
            }
        };
        let entry = Entry {
            csn,
            deps: EntryDependencies::floor(Csn(self.part.base.get() - 1)),
            body: side.map_or(EntryBody::Inline(&current.records), EntryBody::Side),
        };
        entry.encode(&mut self.block.payload);
        if self.block.entries == 0 {
            self.block.lowest = csn;
        }
        self.block.highest = csn;
        self.block.entries += 1;
        if csn == self.part.first_unaccounted {
            self.part.first_unaccounted = csn.next();
        }
        self.part.next = self.part.next.max(csn.next());
        self.entries += 1;
        self.bytes += bytes;
        if self.block.payload.len() >= self.block_bytes {
            self.end_block();
            if self.pending_bytes > BUFFER_BYTES {
                self.store()?;
            }
        }
        Ok(())
    }

    /// What comes now goes to the epoch of the rest, if there is one.
    fn begin_rest(&mut self) -> Result<(), RecoveryError> {
        let Some(place) = self.place.rest else {
            return Ok(());
        };
        self.end_entry()?;
        self.end_block();
        self.pending_of_prefix = self.pending.len();
        // Without an entry it has no mark: the rest follows the part before then.
        let is_empty = self.pending.is_empty() && self.part.open.is_none();
        self.part.next = self.complete;
        let base = if is_empty { self.base } else { self.complete };
        let rest = Part::new(place, base);
        self.prefix = Some(std::mem::replace(&mut self.part, rest));
        Ok(())
    }

    fn end_block(&mut self) {
        if self.block.entries > 0 {
            self.pending_bytes += self.block.payload.len();
            self.pending.push(std::mem::take(&mut self.block));
        }
    }

    /// Stores all whole blocks.
    fn store(&mut self) -> Result<(), RecoveryError> {
        let blocks = std::mem::take(&mut self.pending);
        let of_prefix = std::mem::take(&mut self.pending_of_prefix);
        for (index, block) in blocks.iter().enumerate() {
            let (to, place) = (self.to, self.place);
            let part = match &mut self.prefix {
                Some(prefix) if index < of_prefix => prefix,
                _ => &mut self.part,
            };
            let mut lane = match part.open.take() {
                Some(lane) => lane,
                None => open(to, part.lane, part.epoch)?,
            };
            let place = (place.database, part.epoch, part.lane);
            append(to, place, &mut lane, block)?;
            part.open = Some(lane);
        }
        self.pending_bytes = 0;
        Ok(())
    }
}

fn open(to: &LogHome, lane: LaneId, epoch: Epoch) -> Result<Lane, RecoveryError> {
    let listed = to.segments.list_segments(lane)?;
    let listed = listed
        .last()
        .map_or(0, |info| info.segment.saturating_add(1));
    let leased = to.capabilities().leased;
    let fresh = if leased { first_number(epoch) } else { 0 };
    let first_segment = listed.max(fresh);
    // There each epoch has numbers of its own.
    let next_epoch = epoch.get().checked_add(1).filter(|_| leased);
    if next_epoch.is_some_and(|next| first_segment > first_number(Epoch(next))) {
        return Err(RecoveryError::Overtaken(to.describe()));
    }
    if first_segment >= segment_end(epoch, leased) {
        return Err(NumbersExhausted::Segments.into());
    }
    let opened = to.appends.open_lane(lane, first_segment);
    opened.map_err(|error| from_room(error, to))?;
    let (tell, room) = mpsc::channel();
    let listener = move || {
        // The copy may be complete.
        let _waiting = tell.send(());
    };
    to.appends.set_room_listener(lane, Box::new(listener));
    Ok(Lane {
        first_segment,
        end: Position::start_of(first_segment),
        blocks: 0,
        previous_header_crc: 0,
        room,
    })
}

fn append(
    to: &LogHome,
    (database, epoch, lane): (DatabaseId, Epoch, LaneId),
    open: &mut Lane,
    block: &Block,
) -> Result<(), RecoveryError> {
    let (header, crc) = Header {
        version: FORMAT_VERSION,
        database,
        epoch,
        lane,
        block: BlockNo(open.blocks),
        durable_through: open.blocks,
        payload_len: block.payload.len() as u32,
        entries: block.entries,
        csn_lowest: block.lowest,
        csn_highest: block.highest,
        payload_crc: crc32c::crc32c(&block.payload),
        previous_header_crc: open.previous_header_crc,
        // The mark says more: how many blocks there are, and which CSNs have none.
        horizon: Csn::ZERO,
    }
    .encode();
    let alignment = to.capabilities().block_alignment;
    let len = (HEADER_LEN + block.payload.len()).next_multiple_of(alignment);
    let mut bytes = Buffer::zeroed(len);
    let into = bytes.as_mut_slice();
    into[..HEADER_LEN].copy_from_slice(&header);
    into[HEADER_LEN..HEADER_LEN + block.payload.len()].copy_from_slice(&block.payload);
    let mut asked = RoomRequest::default();
    loop {
        match to.appends.ensure_room(lane, len as u64, &mut asked) {
            Ok(()) => break,
            Err(NoRoom::Busy) => open.room.recv().map_err(|_| no_answer(to))?,
            Err(error) => return Err(from_room(error, to)),
        }
    }
    let at = to.appends.place(lane, len as u64)?;
    let (done, told) = mpsc::channel();
    let done = Box::new(move |_, stored| {
        // Whoever asked waits below.
        let _asked = done.send(stored);
    });
    to.appends.append(lane, at, bytes, len, done);
    told.recv().map_err(|_| no_answer(to))??;
    open.end = Position {
        offset: at.offset + len as u64,
        ..at
    };
    open.blocks += 1;
    open.previous_header_crc = crc;
    Ok(())
}

impl RedoHandler for TailCopy<'_> {
    fn checkpoint(&mut self, _: DatabaseId, _: &CheckpointRef) -> Result<(), RecoveryError> {
        Ok(())
    }

    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        if csn < self.base {
            return Ok(());
        }
        if self.is_behind_gap && self.prefix.is_none() {
            self.begin_rest()?;
        }
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.csn != csn)
        {
            self.end_entry()?;
        }
        let to = self.to;
        let current = self.current.get_or_insert_with(|| Current {
            csn,
            bytes: 0,
            crc: 0,
            records: Vec::new(),
            side: None,
        });
        current.bytes += records.len() as u64;
        current.crc = crc32c::crc32c_append(current.crc, records);
        current.records.extend_from_slice(records);
        if current.side.is_none() && current.records.len() > self.inline_bytes_max {
            let id = self.part.side_id(to)?;
            let writer = to.sides.begin_side_segment(self.part.lane, id);
            current.side = Some((id, writer));
        }
        if let Some((_, writer)) = &mut current.side {
            writer.append(std::mem::take(&mut current.records));
            while writer.backlog_bytes() > SIDE_BACKLOG_BYTES {
                logstead_env::sleep(std::time::Duration::from_millis(1));
            }
        }
        Ok(())
    }

    fn gap(&mut self, first_unaccounted: Csn) {
        self.complete = self.complete.max(first_unaccounted);
        self.is_behind_gap = true;
    }

    fn finish(&mut self) -> Result<(), RecoveryError> {
        Ok(())
    }
}

/// What is in the lanes of a copy and does not belong to it: attempts that were given up, and the tail of the copy
/// before.
///
/// Listed before the copy's manifest is there. From that moment on a server may write in the lanes, and what is its is
/// not listed.
#[derive(Debug)]
pub struct Orphans {
    segments: Vec<(LaneId, u64)>,
    sides: Vec<(LaneId, u64)>,
}

impl Orphans {
    /// Removes what was listed.
    pub fn remove(&self, home: &LogHome) -> Result<(), HomeError> {
        for (lane, segment) in &self.segments {
            home.segments.trim(*lane, *segment)?;
        }
        for (lane, side) in &self.sides {
            home.sides.remove_side_segment(*lane, *side)?;
        }
        Ok(())
    }
}

/// Lists what does not belong to the copy whose tail has these parts.
pub fn orphans(home: &LogHome, parts: &[CopiedPart]) -> Result<Orphans, HomeError> {
    let mut orphans = Orphans {
        segments: Vec::new(),
        sides: Vec::new(),
    };
    let spans = |part: &CopiedPart| part.mark.spans.clone();
    for lane in home.segments.list_lanes()? {
        let of_lane = |part: &&CopiedPart| spans(part).iter().any(|span| span.lane == lane);
        for info in home.segments.list_segments(lane)? {
            let is_its = |span: &LaneSpan| {
                span.lane == lane && (span.first_segment..=span.end.segment).contains(&info.segment)
            };
            if !parts.iter().flat_map(spans).any(|span| is_its(&span)) {
                orphans.segments.push((lane, info.segment));
            }
        }
        for side in home.sides.list_side_segments(lane)? {
            let mut of_lane = parts.iter().filter(of_lane);
            if !of_lane.any(|part| part.sides.contains(&side)) {
                orphans.sides.push((lane, side));
            }
        }
    }
    Ok(orphans)
}
