//! What the tests write and how they read it back: numbered blocks, found as the log's recovery finds its own.

use logstead_env::Env;
use logstead_home::bucket::memory::{MemoryBucket, MemoryOptions, RequestKind};
use logstead_home::{
    Buffer, HomeError, HomeStatus, LaneAppends, LaneSegments, NoRoom, ObjectHome, ObjectOptions,
    Position, RoomRequest, Timer,
};
use logstead_types::LaneId;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

pub(crate) const LANE: LaneId = LaneId(0);
/// Blocks per segment of plain homes, and of appendable ones over [`appendable`].
pub(crate) const BLOCKS: u64 = 8;
const MAGIC: &[u8; 8] = b"TESTBLCK";
const HEADER_LEN: usize = 24;

pub(crate) fn appendable() -> MemoryBucket {
    // The head and the margin for fences take two.
    MemoryBucket::new(MemoryOptions::appendable(BLOCKS + 2))
}

pub(crate) fn plain() -> MemoryBucket {
    MemoryBucket::new(MemoryOptions::plain())
}

/// Both kinds, and the one that makes objects in two steps.
pub(crate) fn every_kind() -> [MemoryBucket; 3] {
    let two_steps = MemoryOptions {
        creates_in_two_steps: true,
        ..MemoryOptions::appendable(BLOCKS + 2)
    };
    [appendable(), MemoryBucket::new(two_steps), plain()]
}

pub(crate) fn open(bucket: &MemoryBucket) -> ObjectHome {
    open_with(bucket, Timer::default())
}

/// The same, where time passes as the timer says.
pub(crate) fn open_with(bucket: &MemoryBucket, timer: Timer) -> ObjectHome {
    let options = ObjectOptions {
        appends_per_segment_max: BLOCKS,
        pause_min: Duration::ZERO,
        pause_max: Duration::ZERO,
        timer,
        ..ObjectOptions::default()
    };
    ObjectHome::open(std::sync::Arc::new(bucket.clone()), &Env::real(), options).expect("opens")
}

/// A number from the home's report.
pub(crate) fn reported(home: &ObjectHome, name: &str) -> u64 {
    let report = home.report();
    let value = report.iter().find(|(known, _)| known == name);
    value.expect("reported").1.parse().expect("a number")
}

/// A block that says which one it is, `len` bytes long.
pub(crate) fn block(writer: u32, number: u32, len: usize) -> Buffer {
    let mut buffer = Buffer::zeroed(len);
    let bytes = buffer.as_mut_slice();
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = (index as u8) ^ (number as u8);
    }
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&writer.to_le_bytes());
    bytes[12..16].copy_from_slice(&number.to_le_bytes());
    bytes[16..20].copy_from_slice(&(len as u32).to_le_bytes());
    let crc = crc(bytes);
    bytes[20..24].copy_from_slice(&crc.to_le_bytes());
    buffer
}

fn crc(bytes: &[u8]) -> u32 {
    bytes
        .iter()
        .enumerate()
        .fold(7, |sum: u32, (index, &byte)| {
            let byte = if (20..24).contains(&index) { 0 } else { byte };
            sum.rotate_left(5) ^ u32::from(byte).wrapping_mul(0x9e37_79b1)
        })
}

/// A lane's appends, one after the other or several in flight.
pub(crate) struct TestWriter<'h> {
    pub(crate) home: &'h ObjectHome,
    pub(crate) lane: LaneId,
    pub(crate) id: u32,
    next: u32,
}

pub(crate) type Answer = Receiver<(Buffer, Result<(), HomeError>)>;

impl<'h> TestWriter<'h> {
    /// Opens the lane at this segment.
    pub(crate) fn open(home: &'h ObjectHome, id: u32, first_segment: u64) -> TestWriter<'h> {
        home.open_lane(LANE, first_segment).expect("opens");
        TestWriter::opened(home, id)
    }

    /// The same for a lane that is open.
    pub(crate) fn opened(home: &'h ObjectHome, id: u32) -> TestWriter<'h> {
        TestWriter {
            home,
            lane: LANE,
            id,
            next: 0,
        }
    }

    /// So many blocks were written by somebody else.
    pub(crate) fn skip(&mut self, blocks: u32) {
        self.next += blocks;
    }

    /// Begins to append the next block.
    pub(crate) fn begin(&mut self, len: usize) -> Result<(Position, Answer), HomeError> {
        let at = self.home.place(self.lane, len as u64)?;
        let (tell, told) = mpsc::sync_channel(1);
        let block = block(self.id, self.next, len);
        self.next += 1;
        // A test may not want to know.
        let done = move |buffer, result| drop(tell.send((buffer, result)));
        self.home.append(self.lane, at, block, len, Box::new(done));
        Ok((at, told))
    }

    /// Appends the next block and waits for it.
    pub(crate) fn write(&mut self, len: usize) -> Result<Position, HomeError> {
        self.room(len)?;
        let (at, told) = self.begin(len)?;
        told.recv().expect("completes").1.map(|()| at)
    }

    /// Room for a block, whatever time it takes.
    pub(crate) fn room(&self, len: usize) -> Result<(), HomeError> {
        loop {
            match self
                .home
                .ensure_room(self.lane, len as u64, &mut RoomRequest::default())
            {
                Ok(()) => return Ok(()),
                Err(NoRoom::Busy) => std::thread::yield_now(),
                Err(NoRoom::Failed(error)) => return Err(error),
                Err(error) => panic!("a bucket is never full: {error}"),
            }
        }
    }

    /// Appends so many small blocks.
    pub(crate) fn write_all(&mut self, count: u64) {
        for _ in 0..count {
            self.write(100).expect("appends");
        }
    }
}

pub(crate) fn is_fenced<T>(result: &Result<T, HomeError>) -> bool {
    matches!(result, Err(HomeError::Fenced(_)))
}

/// The length of the block of that writer and number, if it lies at the start of these bytes.
fn found(bytes: &[u8], writer: u32, number: u32) -> Option<usize> {
    let header = bytes.get(..HEADER_LEN)?;
    let word = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("4 bytes"));
    let ours = header.starts_with(MAGIC) && word(8) == writer && word(12) == number;
    let whole = bytes.get(..word(16) as usize).filter(|_| ours)?;
    (crc(whole) == word(20)).then_some(whole.len())
}

/// All bytes of a segment, read in windows of odd sizes.
pub(crate) fn bytes_of(home: &ObjectHome, segment: u64, window: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut into = Buffer::zeroed(window);
    loop {
        let offset = bytes.len() as u64;
        let count = home
            .read(LANE, Position { segment, offset }, &mut into)
            .expect("reads");
        if count == 0 {
            return bytes;
        }
        bytes.extend_from_slice(&into.as_slice()[..count]);
    }
}

/// The bytes of a segment that is as long as was listed. Each window is filled, so nothing is listed anew for it, which
/// takes long where there are thousands of segments.
fn listed_bytes_of(home: &ObjectHome, segment: u64, size_bytes: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < size_bytes {
        let offset = bytes.len() as u64;
        let mut into = Buffer::zeroed((size_bytes - offset).min(1000) as usize);
        let count = home
            .read(LANE, Position { segment, offset }, &mut into)
            .expect("reads");
        assert_eq!(count, into.capacity(), "as long as it says");
        bytes.extend_from_slice(into.as_slice());
    }
    bytes
}

/// What a reader finds of one writer's blocks: how many follow one another, and where the last of them ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) blocks: u32,
    pub(crate) end: Position,
}

/// Reads a lane as recovery does: block after block, here or at the start of the next segment; and makes sure that no
/// block is there twice.
pub(crate) fn chain(home: &ObjectHome, writer: u32, first_segment: u64) -> Chain {
    let segments: Vec<(u64, Vec<u8>)> = home
        .list_segments(LANE)
        .expect("lists")
        .iter()
        .filter(|info| info.segment >= first_segment)
        .map(|info| {
            (
                info.segment,
                listed_bytes_of(home, info.segment, info.size_bytes),
            )
        })
        .collect();
    let at = |segment: u64, offset: u64| {
        let (_, bytes) = segments.iter().find(|(number, _)| *number == segment)?;
        bytes.get(offset as usize..)
    };
    let mut chain = Chain {
        blocks: 0,
        end: Position::start_of(first_segment),
    };
    loop {
        let Position { segment, offset } = chain.end;
        let here = at(segment, offset).and_then(|bytes| found(bytes, writer, chain.blocks));
        let there = || at(segment + 1, 0).and_then(|bytes| found(bytes, writer, chain.blocks));
        if let Some(len) = here {
            chain.end.offset += len as u64;
        } else if let Some(len) = there() {
            chain.end = Position {
                segment: segment + 1,
                offset: len as u64,
            };
        } else {
            break;
        }
        chain.blocks += 1;
    }
    let mut times = vec![0; chain.blocks as usize];
    for (_, bytes) in &segments {
        for (at, _) in bytes
            .windows(8)
            .enumerate()
            .filter(|(_, word)| *word == MAGIC)
        {
            let number = bytes
                .get(at + 12..at + 16)
                .map(|word| word.try_into().expect("4 bytes"));
            let number = number.map_or(u32::MAX, u32::from_le_bytes);
            if let Some(times) = times.get_mut(number as usize)
                && found(&bytes[at..], writer, number).is_some()
            {
                *times += 1;
            }
        }
    }
    assert!(
        times.iter().all(|&times| times == 1),
        "each block of writer {writer} is there once"
    );
    chain
}

/// Waits until a request of that kind, with that name, is held in the network; gives its number.
pub(crate) fn held(bucket: &MemoryBucket, kind: RequestKind, name: &str) -> u64 {
    loop {
        let waiting = bucket.in_network();
        let found = waiting
            .iter()
            .find(|(_, of, object)| *of == kind && object.contains(name));
        if let Some((id, _, _)) = found {
            return *id;
        }
        std::thread::yield_now();
    }
}
