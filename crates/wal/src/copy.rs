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
use crate::manifest::{CheckpointRef, LaneSpan, Manifest, RecoveryMark};
use crate::number_limits::first_number;
use crate::number_limits::{NumbersExhausted, SIDES_END, segment_end};
use crate::recovery::{self, ConsistentCut, LogView, RecoveryError, RedoHandler};
use logstead_env::{Buffer, Clock};
use logstead_home::{HomeError, LogHome, NoRoom, Position, RoomRequest, SideWriter};
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
}

/// What was copied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTail {
    /// The mark of the epoch that it was copied to; `None`: there was nothing.
    pub mark: Option<RecoveryMark>,
    /// Side segments that belong to it.
    pub sides: Vec<u64>,
    /// Entries.
    pub entries: u64,
    /// Bytes of their records.
    pub bytes: u64,
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

/// A tail that has been read, and is stored in part.
pub struct TailCopy<'h> {
    to: &'h LogHome,
    place: Destination,
    base: Csn,
    lane: Option<Lane>,
    current: Option<Current>,
    /// When a block is full, and when records are too many for one.
    block_bytes: usize,
    inline_bytes_max: usize,
    block: Block,
    pending: Vec<Block>,
    pending_bytes: usize,
    first_unaccounted: Csn,
    next: Csn,
    side_next: u64,
    sides: Vec<u64>,
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
        let of_epoch = |id: &u64| id >> 32 == u64::from(place.epoch.get());
        // Of an attempt before this one, which nobody needs.
        let sides = to.sides.list_side_segments(place.lane)?;
        let side_last = sides.into_iter().filter(of_epoch).max();
        let room = usize::try_from(to.capabilities().room_size_bytes_max);
        let quarter = room.unwrap_or(usize::MAX) / 4;
        let mut tail = TailCopy {
            to,
            place,
            base,
            lane: None,
            current: None,
            block_bytes: BLOCK_BYTES.min(quarter),
            inline_bytes_max: INLINE_BYTES_MAX.min(quarter),
            block: Block::default(),
            pending: Vec::new(),
            pending_bytes: 0,
            first_unaccounted: base,
            next: base,
            side_next: side_last.map_or(first_number(place.epoch), |last| last + 1),
            sides: Vec::new(),
            entries: 0,
            bytes: 0,
        };
        let moment = ConsistentCut::take(from, manifest, true)?;
        let reading = LogView::of_moment(&moment, from, clock, true);
        let replayed = recovery::replay(&reading, false, &mut tail)?;
        tail.end_entry()?;
        let last = replayed.marks.last().map_or(base, |mark| mark.next);
        tail.next = tail.next.max(last);
        Ok(tail)
    }

    /// Stores what is not stored yet, durably.
    pub fn finish(mut self) -> Result<CopiedTail, RecoveryError> {
        self.end_block();
        self.store()?;
        let Destination { epoch, lane, .. } = self.place;
        let mark = self.lane.as_ref().map(|open| RecoveryMark {
            epoch,
            base: self.base,
            first_unaccounted: self.first_unaccounted,
            annulled_from: None,
            next: self.next,
            spans: vec![LaneSpan {
                lane,
                first_segment: open.first_segment,
                end: open.end,
                blocks: open.blocks,
            }],
        });
        if let Some(open) = &self.lane {
            self.to.segments.seal(lane, open.end)?;
        }
        Ok(CopiedTail {
            mark,
            sides: self.sides,
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
                self.sides.push(id);
                Some(SideRef {
                    lane: self.place.lane,
                    id,
                    length: bytes,
                    crc: current.crc,
                })
            }
        };
        let entry = Entry {
            csn,
            deps: EntryDependencies::floor(Csn(self.base.get() - 1)),
            body: side.map_or(EntryBody::Inline(&current.records), EntryBody::Side),
        };
        entry.encode(&mut self.block.payload);
        if self.block.entries == 0 {
            self.block.lowest = csn;
        }
        self.block.highest = csn;
        self.block.entries += 1;
        if csn == self.first_unaccounted {
            self.first_unaccounted = Csn(csn.get() + 1);
        }
        self.next = self.next.max(Csn(csn.get() + 1));
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

    fn end_block(&mut self) {
        if self.block.entries > 0 {
            self.pending_bytes += self.block.payload.len();
            self.pending.push(std::mem::take(&mut self.block));
        }
    }

    /// Stores all whole blocks.
    fn store(&mut self) -> Result<(), RecoveryError> {
        for block in std::mem::take(&mut self.pending) {
            let mut lane = match self.lane.take() {
                Some(lane) => lane,
                None => self.open()?,
            };
            self.append(&mut lane, &block)?;
            self.lane = Some(lane);
        }
        self.pending_bytes = 0;
        Ok(())
    }

    fn open(&self) -> Result<Lane, RecoveryError> {
        let Destination { epoch, lane, .. } = self.place;
        let listed = self.to.segments.list_segments(lane)?;
        let listed = listed
            .last()
            .map_or(0, |info| info.segment.saturating_add(1));
        let fresh = if self.to.capabilities().leased {
            first_number(epoch)
        } else {
            0
        };
        let first_segment = listed.max(fresh);
        if first_segment >= segment_end(epoch, self.to.capabilities().leased) {
            return Err(NumbersExhausted::Segments.into());
        }
        let opened = self.to.appends.open_lane(lane, first_segment);
        opened.map_err(|error| from_room(error, self.to))?;
        let (tell, room) = mpsc::channel();
        let listener = move || {
            // The copy may be complete.
            let _waiting = tell.send(());
        };
        self.to.appends.set_room_listener(lane, Box::new(listener));
        Ok(Lane {
            first_segment,
            end: Position::start_of(first_segment),
            blocks: 0,
            previous_header_crc: 0,
            room,
        })
    }

    fn append(&self, open: &mut Lane, block: &Block) -> Result<(), RecoveryError> {
        let Destination {
            database,
            epoch,
            lane,
        } = self.place;
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
        let alignment = self.to.capabilities().block_alignment;
        let len = (HEADER_LEN + block.payload.len()).next_multiple_of(alignment);
        let mut bytes = Buffer::zeroed(len);
        let into = bytes.as_mut_slice();
        into[..HEADER_LEN].copy_from_slice(&header);
        into[HEADER_LEN..HEADER_LEN + block.payload.len()].copy_from_slice(&block.payload);
        let mut asked = RoomRequest::default();
        loop {
            match self.to.appends.ensure_room(lane, len as u64, &mut asked) {
                Ok(()) => break,
                Err(NoRoom::Busy) => open.room.recv().map_err(|_| no_answer(self.to))?,
                Err(error) => return Err(from_room(error, self.to)),
            }
        }
        let at = self.to.appends.place(lane, len as u64)?;
        let (done, told) = mpsc::channel();
        let done = Box::new(move |_, stored| {
            // Whoever asked waits below.
            let _asked = done.send(stored);
        });
        self.to.appends.append(lane, at, bytes, len, done);
        told.recv().map_err(|_| no_answer(self.to))??;
        open.end = Position {
            offset: at.offset + len as u64,
            ..at
        };
        open.blocks += 1;
        open.previous_header_crc = crc;
        Ok(())
    }
}

impl RedoHandler for TailCopy<'_> {
    fn checkpoint(&mut self, _: DatabaseId, _: &CheckpointRef) -> Result<(), RecoveryError> {
        Ok(())
    }

    fn redo(&mut self, csn: Csn, records: &[u8]) -> Result<(), RecoveryError> {
        if self
            .current
            .as_ref()
            .is_some_and(|current| current.csn != csn)
        {
            self.end_entry()?;
        }
        let (to, lane) = (self.to, self.place.lane);
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
            if self.side_next >= first_number(self.place.epoch) + SIDES_END {
                return Err(NumbersExhausted::Sides.into());
            }
            current.side = Some((
                self.side_next,
                to.sides.begin_side_segment(lane, self.side_next),
            ));
            self.side_next += 1;
        }
        if let Some((_, writer)) = &mut current.side {
            writer.append(std::mem::take(&mut current.records));
            while writer.backlog_bytes() > SIDE_BACKLOG_BYTES {
                logstead_env::sleep(std::time::Duration::from_millis(1));
            }
        }
        Ok(())
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

/// Lists what does not belong to the copy whose tail this is.
pub fn orphans(home: &LogHome, tail: &CopiedTail) -> Result<Orphans, HomeError> {
    let mut orphans = Orphans {
        segments: Vec::new(),
        sides: Vec::new(),
    };
    let spans = tail.mark.iter().flat_map(|mark| &mark.spans);
    let spans: Vec<&LaneSpan> = spans.collect();
    for lane in home.segments.list_lanes()? {
        for info in home.segments.list_segments(lane)? {
            let is_its = |span: &&&LaneSpan| {
                span.lane == lane && (span.first_segment..=span.end.segment).contains(&info.segment)
            };
            if !spans.iter().any(|span| is_its(&span)) {
                orphans.segments.push((lane, info.segment));
            }
        }
        for side in home.sides.list_side_segments(lane)? {
            let is_its = spans.iter().any(|span| span.lane == lane) && tail.sides.contains(&side);
            if !is_its {
                orphans.sides.push((lane, side));
            }
        }
    }
    Ok(orphans)
}
