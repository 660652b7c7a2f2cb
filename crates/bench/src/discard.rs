//! A home that keeps nothing: the ceiling that a log is compared with.
//!
//! An append completes at once and its bytes are gone. Everything before it is done as ever: records are made, entries
//! copied into lanes, blocks sealed with their checksums. What is left out is the device, and nothing else.
//!
//! Does not: survive anything. A log opened here a second time is empty.

use std::collections::BTreeMap;

use logstead_home::{
    Buffer, Completion, Facts, HomeError, LogHome, MemoryHome, NoRoom, ObjectId, ObjectInfo,
    Position, RoomListener, RoomRequest, SegmentInfo, SideCompletion, SideWriter, Tag,
};
use logstead_types::LaneId;
use parking_lot::Mutex;

/// Large enough that a lane seldom goes on to another one.
const SEGMENT_BYTES: u64 = 1 << 40;
/// What the engine may ask room for at a time; the lane's buffers are smaller.
const ROOM_BYTES_MAX: u64 = 64 << 20;

/// See the module's documentation.
pub(crate) struct DiscardHome {
    /// Keeps the few named things, and objects: a checkpoint that is gone would be no checkpoint.
    kept: MemoryHome,
    lanes: Mutex<BTreeMap<LaneId, Position>>,
}

impl Default for DiscardHome {
    fn default() -> DiscardHome {
        DiscardHome {
            kept: MemoryHome::new(4 << 20),
            lanes: Mutex::default(),
        }
    }
}

impl LogHome for DiscardHome {
    fn facts(&self) -> Facts {
        Facts {
            room_size_bytes_max: ROOM_BYTES_MAX,
            rollover: None,
            ..self.kept.facts()
        }
    }

    fn describe(&self) -> String {
        "nowhere (appends complete at once and are gone)".to_owned()
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.lanes
            .lock()
            .insert(lane, Position::start_of(first_segment));
        Ok(())
    }

    // There is always room, so nobody is ever told that some came up.
    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        _lane: LaneId,
        _bytes: u64,
        _asked: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        Ok(())
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut lanes = self.lanes.lock();
        let next = lanes.get_mut(&lane).ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })?;
        if len > SEGMENT_BYTES - next.offset {
            *next = Position::start_of(next.segment + 1);
        }
        let at = *next;
        next.offset += len;
        Ok(at)
    }

    fn append(&self, _: LaneId, _: Position, block: Buffer, _: usize, done: Completion) {
        done(block, Ok(()));
    }

    fn append_inline(&self, _: LaneId, _: Position, _: &Buffer, _: usize) -> Result<(), HomeError> {
        Ok(())
    }

    fn rewrite(&self, _: LaneId, _: Position, _: &Buffer, _: usize) -> Result<(), HomeError> {
        Ok(())
    }

    fn lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        Ok(Vec::new())
    }

    fn segments(&self, _: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        Ok(Vec::new())
    }

    fn read(&self, _: LaneId, _: Position, _: &mut Buffer) -> Result<usize, HomeError> {
        Ok(0)
    }

    fn seal(&self, _: LaneId, _: Position) -> Result<(), HomeError> {
        Ok(())
    }

    fn trim(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.kept.get(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.kept.put_if_absent(name, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.kept.compare_and_swap(name, expected, bytes)
    }

    fn begin_side(&self, _: LaneId, _: u64) -> Box<dyn SideWriter> {
        Box::new(DiscardedSide::default())
    }

    fn get_side(&self, _: LaneId, id: u64, _: u64, _: &mut [u8]) -> Result<usize, HomeError> {
        Err(HomeError::Missing(format!("side segment {id}")))
    }

    fn sides(&self, _: LaneId) -> Result<Vec<u64>, HomeError> {
        Ok(Vec::new())
    }

    fn remove_side(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }

    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.kept.put_object(id, bytes)
    }

    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.kept.read_object(id, offset, into)
    }

    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.kept.objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.kept.remove_object(id)
    }
}

/// Keeps one buffer, to give it back.
#[derive(Default)]
struct DiscardedSide(Option<Vec<u8>>);

impl SideWriter for DiscardedSide {
    fn append(&mut self, mut piece: Vec<u8>) {
        piece.clear();
        self.0 = Some(piece);
    }

    fn backlog_bytes(&self) -> usize {
        0
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.0.take()
    }

    fn finish(self: Box<Self>, done: SideCompletion) {
        done(Ok(()));
    }
}
