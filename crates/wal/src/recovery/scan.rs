//! Reads the blocks of one lane in one epoch, in order, and tells its end.
//!
//! The end is the first place where the next block of the chain is not: neither there nor at the start of the segment
//! after. That is never an error by itself. It is corruption if something proves that the missing block was durable: a
//! later block of the same lane and epoch whose `durable_through` covers it (T2), or the recovery mark.
//!
//! Of an epoch in which a checkpoint was taken, a lane is read from the place that the checkpoint names. Its chain goes
//! on there: the first block must have the number and repeat the checksum that the checkpoint remembers, so what a
//! recycled segment held before is no more taken for it than elsewhere.
//!
//! Where the home has several copies, a block that one of them lacks, or has damaged, is looked for in the others
//! before it is called missing (T7): the chain says which block is the next, whatever copy it comes from. What proves
//! that a missing block was durable is looked for in all of them.
//!
//! Bytes that are read may be anything; every length is checked against the segment before memory is taken for it.

use super::consistent_cut::{ScanBound, StopPoint};
use super::follow::StreamedBlocks;
use crate::FormatError;
use crate::block::{self, HEADER_LEN, Header, MAGIC};
use crate::error::{Corruption, RecoveryError};
use crate::manifest::{EpochLane, LaneSpan, Manifest, RedoPoint};
use logstead_home::{Buffer, HomeError, LogHome, Position};
use logstead_types::{BlockNo, DatabaseId, Epoch, LaneId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Bytes read at once.
const WINDOW_LEN: u64 = 1 << 20;
/// Bytes read first of a lane that is read on again and again: mostly nothing new is there. Each further read of the
/// same turn takes twice as many.
const POLL_LEN: u64 = 16 << 10;
/// Of a home with several copies, the places of so many bytes at the lane's end are kept: a copy that was not left
/// behind lacks less.
const RECENT_BYTES: u64 = 32 << 20;

/// Which blocks are looked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScanTarget {
    pub(crate) database: DatabaseId,
    pub(crate) epoch: Epoch,
    pub(crate) lane: LaneId,
    /// Where its first block is that is needed.
    pub(crate) from: RedoPoint,
    /// How it ended, if the epoch is settled: nothing behind that is ever looked at.
    pub(crate) settled: Option<SettledLane>,
}

/// The end of a lane in a settled epoch, from its recovery mark.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SettledLane {
    pub(crate) last_segment: u64,
    pub(crate) blocks: u64,
}

impl ScanTarget {
    /// From where on a lane is read: its beginning, or where the checkpoint says.
    fn from(manifest: &Manifest, epoch: Epoch, lane: LaneId, first_segment: u64) -> RedoPoint {
        let beginning = RedoPoint {
            lane,
            at: Position::start_of(first_segment),
            block: 0,
            previous_header_crc: 0,
        };
        let start = manifest.start_of(epoch, lane).copied();
        start.unwrap_or(beginning)
    }

    /// What a recovery mark says about a lane of its epoch.
    pub(crate) fn of_span(manifest: &Manifest, epoch: Epoch, span: &LaneSpan) -> ScanTarget {
        ScanTarget {
            database: manifest.database,
            epoch,
            lane: span.lane,
            from: ScanTarget::from(manifest, epoch, span.lane, span.first_segment),
            settled: Some(SettledLane {
                last_segment: span.end.segment,
                blocks: span.blocks,
            }),
        }
    }

    /// A lane of the epoch that wrote last.
    pub(crate) fn of_origin(manifest: &Manifest, origin: &EpochLane) -> ScanTarget {
        let EpochLane {
            lane,
            first_segment,
        } = *origin;
        ScanTarget {
            database: manifest.database,
            epoch: manifest.epoch,
            lane,
            from: ScanTarget::from(manifest, manifest.epoch, lane, first_segment),
            settled: None,
        }
    }
}

/// A good block.
pub(crate) struct Block<'a> {
    pub(crate) header: Header,
    pub(crate) at: Position,
    pub(crate) payload: &'a [u8],
}

/// Where a block was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockLocation {
    block: u64,
    pub(crate) at: Position,
    pub(crate) len: u64,
    pub(crate) copy: usize,
    /// The chain's checksum of its header, by which it is known again.
    header_crc: u32,
}

impl BlockLocation {
    /// The block's bytes: from the copy where it was found, or, if that cannot be read any more, from another one that
    /// has it.
    /// A crash may have left the block whole and its padding not: what is missing of that is zero.
    pub(crate) fn bytes(&self, home: &LogHome, lane: LaneId) -> Result<Buffer, HomeError> {
        let len = usize::try_from(self.len).unwrap_or(usize::MAX);
        let mut block = Buffer::zeroed(len);
        let copies = home.copy_count();
        for step in 0..copies {
            let copy = (self.copy + step) % copies;
            let count = home.read_copy(copy, lane, self.at, &mut block)?;
            let (read, missing) = block.as_mut_slice().split_at_mut(count.min(len));
            if self.is_in(read) {
                missing.fill(0);
                return Ok(block);
            }
        }
        let what = format!("read lane {lane} {}", self.at);
        Err(HomeError::io(
            what,
            std::io::ErrorKind::UnexpectedEof.into(),
        ))
    }

    fn is_in(&self, bytes: &[u8]) -> bool {
        let Ok((header, crc)) = Header::decode(bytes) else {
            return false;
        };
        let end = usize::try_from(header.block_len()).unwrap_or(usize::MAX);
        let payload = bytes.get(header.header_len()..end);
        crc == self.header_crc
            && payload.is_some_and(|payload| header.check_payload(payload).is_ok())
    }
}

/// Number and size of each segment that a target may be in.
fn segments_of(home: &LogHome, target: &ScanTarget) -> Result<Vec<(u64, u64)>, HomeError> {
    let settled = target.settled;
    let last = settled.map_or(u64::MAX, |settled| settled.last_segment);
    let mut segments = home.segments.list_segments(target.lane)?;
    segments.retain(|info| (target.from.at.segment..=last).contains(&info.segment));
    let segments = segments.iter();
    Ok(segments
        .map(|info| (info.segment, info.size_bytes))
        .collect())
}

/// A scan in progress.
pub(crate) struct LaneScan<'h> {
    home: &'h LogHome,
    target: ScanTarget,
    /// Number and size of each segment from the first one on.
    segments: Vec<(u64, u64)>,
    at: Position,
    next_block: u64,
    previous_header_crc: u32,
    window: Buffer,
    window_at: Option<Position>,
    window_len: usize,
    /// How much is read next.
    window_wanted: u64,
    /// How often the window was filled.
    #[cfg(test)]
    windows: usize,
    /// The copy that is being read.
    copy: usize,
    /// Where blocks are taken from in place of the home.
    stream: Option<Arc<StreamedBlocks>>,
    /// How far it goes.
    bound: ScanBound,
    unsure: Vec<BlockLocation>,
    recent: VecDeque<BlockLocation>,
    recent_bytes: u64,
    /// Why the block at the end is none.
    end: Option<FormatError>,
}

impl<'h> LaneScan<'h> {
    pub(super) fn new(
        home: &'h LogHome,
        target: ScanTarget,
        bound: ScanBound,
    ) -> Result<LaneScan<'h>, HomeError> {
        let segments = segments_of(home, &target)?;
        Ok(LaneScan::of(home, target, bound, segments))
    }

    fn of(
        home: &'h LogHome,
        target: ScanTarget,
        bound: ScanBound,
        segments: Vec<(u64, u64)>,
    ) -> LaneScan<'h> {
        LaneScan {
            home,
            target,
            segments,
            at: target.from.at,
            next_block: target.from.block,
            previous_header_crc: target.from.previous_header_crc,
            window: Buffer::zeroed(0),
            window_at: None,
            window_len: 0,
            window_wanted: WINDOW_LEN,
            #[cfg(test)]
            windows: 0,
            copy: 0,
            stream: None,
            bound,
            unsure: Vec::new(),
            recent: VecDeque::new(),
            recent_bytes: 0,
            end: None,
        }
    }

    /// The same scan, not begun.
    pub(crate) fn rescan(&self) -> LaneScan<'h> {
        let (bound, segments) = (self.bound.clone(), self.segments.clone());
        LaneScan::of(self.home, self.target, bound, segments)
    }

    /// Looks behind the end that was found for what has come there since.
    pub(super) fn read_on(&mut self) -> Result<(), HomeError> {
        self.segments = segments_of(self.home, &self.target)?;
        self.stream = None;
        self.window_at = None;
        self.end = None;
        Ok(())
    }

    /// Looks for it in the stream, and not at the home.
    pub(super) fn poll_stream(&mut self, stream: &Arc<StreamedBlocks>) {
        self.stream = Some(Arc::clone(stream));
        self.window_at = None;
        self.end = None;
    }

    /// [`LaneScan::read_on`] for who does so again and again: little is read where nothing has come.
    pub(super) fn poll(&mut self) -> Result<(), HomeError> {
        self.read_on()?;
        self.window_wanted = POLL_LEN;
        if self.window.capacity() as u64 > POLL_LEN {
            self.window = Buffer::zeroed(0);
        }
        Ok(())
    }

    /// The lane has ended for good, after so many blocks.
    pub(super) fn settle(&mut self, settled: SettledLane) {
        self.target.settled = Some(settled);
    }

    /// Goes on behind the blocks before `start`, which are not there any more. The caller needs nothing of them.
    pub(super) fn skip_to(&mut self, start: &RedoPoint) {
        self.target.from = *start;
        self.at = start.at;
        self.next_block = start.block;
        self.previous_header_crc = start.previous_header_crc;
        self.window_at = None;
        self.end = None;
        self.unsure.clear();
    }

    /// Bytes of all segments, unwritten ones included.
    pub(crate) fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|&(_, size)| size).sum()
    }

    /// The lane.
    pub(crate) fn target(&self) -> &ScanTarget {
        &self.target
    }

    /// Where the next block would be; the lane's end once there is none.
    pub(crate) fn at(&self) -> Position {
        self.at
    }

    /// Blocks of the lane up to here, those before its start included.
    pub(crate) fn blocks(&self) -> u64 {
        self.next_block
    }

    /// Here: where another scan goes on.
    pub(super) fn redo_point(&self) -> RedoPoint {
        RedoPoint {
            lane: self.target.lane,
            at: self.at,
            block: self.next_block,
            previous_header_crc: self.previous_header_crc,
        }
    }

    /// Blocks that no later block says to be durable.
    pub(crate) fn unsure(&self) -> &[BlockLocation] {
        &self.unsure
    }

    /// The last blocks, in order; of a home with one copy none.
    pub(crate) fn recent(&self) -> Vec<BlockLocation> {
        self.recent.iter().copied().collect()
    }

    /// The block read last.
    pub(crate) fn last(&self) -> Option<BlockLocation> {
        self.recent.back().copied()
    }

    /// The last segment there is.
    pub(crate) fn last_segment(&self) -> Option<u64> {
        self.segments.last().map(|&(number, _)| number)
    }

    fn size_of(&self, segment: u64) -> u64 {
        let found = self
            .segments
            .binary_search_by_key(&segment, |&(number, _)| number);
        found.map_or(0, |index| self.segments[index].1)
    }

    fn is_listed(&self, segment: u64) -> bool {
        self.segments.iter().any(|&(number, _)| number == segment)
    }

    /// How many blocks count, where that is known.
    fn blocks_max(&self) -> Option<u64> {
        let settled = self.target.settled.map(|settled| settled.blocks);
        settled.or(self.bound.stop().map(|stop| stop.blocks))
    }

    /// The next good block, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Block<'_>>, RecoveryError> {
        let is_past = |blocks| self.next_block >= blocks;
        if self.end.is_some() || self.blocks_max().is_some_and(is_past) {
            return Ok(None);
        }
        let mut found = self.look()?;
        let (first, copies) = (self.copy, self.home.copy_count());
        for step in 1..copies {
            if found.is_ok() {
                break;
            }
            self.turn_to((first + step) % copies);
            if let Ok(header) = self.look()? {
                found = Ok(header);
            }
        }
        match found {
            Err(why) => {
                self.end = Some(why);
                Ok(None)
            }
            Ok((header, header_crc)) => {
                let at = self.at;
                let len = header
                    .block_len()
                    .next_multiple_of(self.home.capabilities().block_alignment as u64);
                self.at.offset += len;
                self.next_block += 1;
                self.previous_header_crc = header_crc;
                let found = BlockLocation {
                    block: header.block.get(),
                    at,
                    len,
                    copy: self.copy,
                    header_crc,
                };
                self.unsure.push(found);
                self.unsure
                    .retain(|unsure| unsure.block >= header.durable_through);
                self.note_recent(found);
                // `try_block` has left the whole block in the window.
                let payload = self.window_bytes(at, header.block_len());
                Ok(Some(Block {
                    header,
                    at,
                    payload: payload.get(header.header_len()..).unwrap_or(&[]),
                }))
            }
        }
    }

    fn note_recent(&mut self, found: BlockLocation) {
        if self.home.copy_count() == 1 {
            return;
        }
        self.recent.push_back(found);
        self.recent_bytes += found.len;
        while self.recent_bytes > RECENT_BYTES
            && let Some(first) = self.recent.pop_front()
        {
            self.recent_bytes -= first.len;
        }
    }

    /// Reads from another copy from now on.
    fn turn_to(&mut self, copy: usize) {
        self.copy = copy;
        self.window_at = None;
    }

    /// The next block in this copy: where the last one ended, or at the start of the segment after.
    fn look(&mut self) -> Result<Result<(Header, u32), FormatError>, RecoveryError> {
        let mut found = self.try_block(self.at)?;
        if found.is_err() && self.at.offset > 0 {
            let after = Position::start_of(self.at.segment + 1);
            if let Ok(header) = self.try_block(after)? {
                self.at = after;
                found = Ok(header);
            }
        }
        Ok(found)
    }

    /// The bytes of the window from `at` on, `len` of them or as many as there are.
    fn window_bytes(&self, at: Position, len: u64) -> &[u8] {
        let Some(start) = self
            .window_at
            .filter(|window| window.segment == at.segment && window.offset <= at.offset)
        else {
            return &[];
        };
        let skip = usize::try_from(at.offset - start.offset)
            .unwrap_or(usize::MAX)
            .min(self.window_len);
        let len = usize::try_from(len)
            .unwrap_or(usize::MAX)
            .min(self.window_len - skip);
        &self.window.as_slice()[skip..skip + len]
    }

    /// Has `len` bytes from `at` on in the window, or as many as the segment holds.
    fn load(&mut self, at: Position, len: u64) -> Result<&[u8], HomeError> {
        if self.stream.is_some() {
            return Ok(self.load_streamed(at, len));
        }
        let there = self.size_of(at.segment).saturating_sub(at.offset);
        let len = len.min(there);
        if (self.window_bytes(at, len).len() as u64) < len {
            let wanted = len.max(there.min(self.window_wanted));
            let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
            self.window_wanted = (self.window_wanted * 2).min(WINDOW_LEN);
            if self.window.capacity() < wanted {
                let alignment = self.home.capabilities().block_alignment;
                self.window = Buffer::zeroed(wanted.next_multiple_of(alignment));
            }
            self.window_at = None;
            let (home, lane) = (self.home, self.target.lane);
            self.window_len = home.read_copy(self.copy, lane, at, &mut self.window)?;
            self.window_at = Some(at);
            #[cfg(test)]
            {
                self.windows += 1;
            }
        }
        Ok(self.window_bytes(at, len))
    }

    /// The same of what was streamed: a block that begins at `at`.
    fn load_streamed(&mut self, at: Position, len: u64) -> &[u8] {
        if self.window_at != Some(at) {
            let ScanTarget { epoch, lane, .. } = self.target;
            let stream = self.stream.as_ref();
            let Some(block) = stream.and_then(|stream| stream.block(epoch, lane, at)) else {
                return &[];
            };
            if self.window.capacity() < block.len() {
                let alignment = self.home.capabilities().block_alignment;
                self.window = Buffer::zeroed(block.len().next_multiple_of(alignment));
            }
            self.window.as_mut_slice()[..block.len()].copy_from_slice(&block);
            self.window_len = block.len();
            self.window_at = Some(at);
        }
        self.window_bytes(at, len)
    }

    /// The header of the next block of the chain, if that block lies whole at `at`.
    fn try_block(
        &mut self,
        at: Position,
    ) -> Result<Result<(Header, u32), FormatError>, RecoveryError> {
        let ScanTarget {
            database,
            epoch,
            lane,
            ..
        } = self.target;
        let (number, previous) = (self.next_block, self.previous_header_crc);
        let bytes = self.load(at, HEADER_LEN as u64)?;
        if bytes.is_empty() {
            return Ok(Err(FormatError::new("the segment ends", 0)));
        }
        let (header, crc) = match Header::decode(bytes) {
            Ok(decoded) => decoded,
            Err(why) => {
                let version = block::newer_version(bytes, (database, epoch, lane), number);
                return version.map_or(Ok(Err(why)), |version| Err(self.newer(version, at)));
            }
        };
        if (header.database, header.epoch, header.lane) != (database, epoch, lane) {
            return Ok(Err(FormatError::new(
                "a block of another database, epoch or lane",
                10,
            )));
        }
        if header.block.get() != number || header.previous_header_crc != previous {
            return Ok(Err(FormatError::new(
                "a block that does not continue the chain",
                24,
            )));
        }
        let payload = self
            .load(at, header.block_len())?
            .get(header.header_len()..)
            .unwrap_or(&[]);
        Ok(header.check_payload(payload).map(|()| (header, crc)))
    }

    /// A block that only a newer server can read: never an end, nor a loss that could be accepted.
    fn newer(&self, version: u16, at: Position) -> RecoveryError {
        RecoveryError::NewerFormat {
            home: self.home.describe(),
            what: format!(
                "the format version of the block of lane {} at {at} is {version}, and this server knows versions up to {}",
                self.target.lane,
                block::FORMAT_VERSION
            ),
        }
    }

    /// At the end: why is there no other block?
    pub(crate) fn why(&self) -> FormatError {
        let of_moment = self.bound.stop().map(|stop| stop.why.clone());
        let why = self.end.clone().or(of_moment);
        why.unwrap_or(FormatError::new("the lane ends", 0))
    }

    /// At the end: is the missing block known to have been durable?
    pub(crate) fn corruption(&mut self) -> Result<Option<Corruption>, RecoveryError> {
        let why = self.why();
        let corruption = |lane: &ScanTarget, block, at, proof| Corruption {
            lane: lane.lane,
            epoch: lane.epoch,
            block: BlockNo(block),
            at,
            what: why.to_string(),
            proof,
            may_be_removed: false,
        };
        let gone = |loss: Corruption| Corruption {
            may_be_removed: true,
            ..loss
        };
        if let Some(SettledLane { blocks, .. }) = self.target.settled {
            let missing = self.next_block < blocks;
            let proof = || format!("the recovery mark of its epoch counts {blocks} blocks");
            return Ok(missing.then(|| corruption(&self.target, self.next_block, self.at, proof())));
        }
        if let Some(StopPoint {
            blocks,
            corruption: known,
            ..
        }) = self.bound.stop()
        {
            if self.next_block == *blocks {
                return Ok(known.clone());
            }
            let proof = format!("the lane had {blocks} blocks when it was read before");
            let loss = corruption(&self.target, self.next_block, self.at, proof);
            return Ok(Some(gone(loss)));
        }
        let from = self.target.from;
        if self.next_block == from.block && self.size_of(from.at.segment) < from.at.offset {
            // An end there would be as good as any other, if what lies before it were there.
            let proof = "blocks before it, which are in the checkpoint, were durable".to_owned();
            let loss = corruption(&self.target, from.block, from.at, proof);
            return Ok(Some(if self.bound.grows() { gone(loss) } else { loss }));
        }
        for copy in 0..self.home.copy_count() {
            self.turn_to(copy);
            if let Some(proof) = self.proof_of_loss()? {
                if self.bound.grows() && self.has_come()? {
                    return Ok(None);
                }
                let loss = corruption(&self.target, self.next_block, self.at, proof);
                let is_gone = self.bound.grows() && !self.is_listed(self.at.segment);
                return Ok(Some(if is_gone { gone(loss) } else { loss }));
            }
        }
        Ok(None)
    }

    /// A server at work has written the missing block since it was missed, and then what proves that it is durable: the
    /// end was one. The block need not be in the copy that has the proof.
    fn has_come(&mut self) -> Result<bool, RecoveryError> {
        let end = self.at;
        self.segments = segments_of(self.home, &self.target)?;
        let mut found = false;
        for copy in 0..self.home.copy_count() {
            self.turn_to(copy);
            found = found || self.look()?.is_ok();
        }
        self.at = end;
        Ok(found)
    }

    /// A later block in this copy that says that the missing one was durable.
    fn proof_of_loss(&mut self) -> Result<Option<String>, RecoveryError> {
        let alignment = self.home.capabilities().block_alignment as u64;
        for (segment, _) in self.segments.clone() {
            let mut from = Position::start_of(segment).max(self.at);
            while from.segment == segment
                && let Some(at) = self.next_magic(from)?
            {
                let whose = (self.target.database, self.target.epoch, self.target.lane);
                let number = self.next_block;
                let bytes = self.load(at, HEADER_LEN as u64)?;
                let header = Header::decode(bytes);
                if let Some(version) = block::newer_version(bytes, whose, number) {
                    return Err(self.newer(version, at));
                }
                if let Ok((header, _)) = header
                    && (header.database, header.epoch, header.lane) == whose
                    && header.block.get() > self.next_block
                    && header.durable_through > self.next_block
                {
                    let block = header.block;
                    return Ok(Some(format!(
                        "block {block} at {at} says that it was durable"
                    )));
                }
                from.offset = at.offset + alignment;
            }
        }
        Ok(None)
    }

    /// The next place in the segment where a block may begin.
    fn next_magic(&mut self, mut at: Position) -> Result<Option<Position>, HomeError> {
        let alignment = self.home.capabilities().block_alignment;
        loop {
            // Whatever the window still holds is looked at before it moves on: segments that were used before are full
            // of magics.
            self.load(at, MAGIC.len() as u64)?;
            let bytes = self.window_bytes(at, WINDOW_LEN);
            // A copy may end earlier than the longest one.
            let Some(last) = bytes.len().checked_sub(MAGIC.len()) else {
                return Ok(None);
            };
            let found = if alignment == 1 {
                bytes.windows(MAGIC.len()).position(|word| word == MAGIC)
            } else {
                let mut places = (0..=last).step_by(alignment);
                places.find(|&place| bytes[place..].starts_with(&MAGIC))
            };
            if let Some(place) = found {
                at.offset += place as u64;
                return Ok(Some(at));
            }
            at.offset += (last + 1).next_multiple_of(alignment) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::consistent_cut::LogOwnership;
    use super::*;
    use logstead_home::{LaneAppends, MemoryHome, RoomRequest};
    use logstead_types::Csn;

    /// A segment full of an earlier life's blocks is read once, however many they are.
    #[test]
    fn the_end_is_found_with_one_read_of_a_recycled_segment() {
        const BLOCKS: u64 = 700;
        const LEN: usize = 4096;
        let home = MemoryHome::new(4 << 20);
        let lane = LaneId(0);
        home.open_lane(lane, 0).expect("opens");
        for number in 0..BLOCKS {
            home.ensure_room(lane, LEN as u64, &mut RoomRequest::default())
                .expect("room");
            let at = home.place(lane, LEN as u64).expect("a place");
            let header = Header {
                version: block::FORMAT_VERSION,
                database: DatabaseId(7),
                epoch: Epoch(1),
                lane,
                block: BlockNo(number),
                durable_through: number,
                payload_len: 0,
                entries: 0,
                csn_lowest: Csn(1),
                csn_highest: Csn(1),
                payload_crc: 0,
                previous_header_crc: 0,
                horizon: Csn::ZERO,
            };
            let mut block = Buffer::zeroed(LEN);
            block.as_mut_slice()[..HEADER_LEN].copy_from_slice(&header.encode().0);
            home.append(
                lane,
                at,
                block,
                LEN,
                Box::new(|_, result| result.expect("appends")),
            );
        }
        let target = ScanTarget {
            database: DatabaseId(7),
            epoch: Epoch(2),
            lane,
            from: RedoPoint {
                lane,
                at: Position::start_of(0),
                block: 0,
                previous_header_crc: 0,
            },
            settled: None,
        };
        let home = LogHome::from(home);
        let bound = LogOwnership::locked(&home).bound();
        let mut scan = LaneScan::new(&home, target, bound).expect("lists");
        assert!(scan.next().expect("reads").is_none());
        assert_eq!(scan.corruption().expect("reads"), None);
        // 700 blocks of 4 KiB lie in three windows; a few more are begun anew at the places where one ends.
        assert!(scan.windows <= 8, "{} windows", scan.windows);
    }
}
