//! A home that keeps nothing: the ceiling that a log is compared with.
//!
//! An append completes at once and its bytes are gone. Everything before it is done as ever: records are made, entries
//! copied into lanes, blocks sealed with their checksums. What is left out is the device, and nothing else.
//!
//! Does not: survive anything. A log opened here a second time is empty.

use std::collections::BTreeMap;
use std::sync::Arc;

use logstead_home::{
    Buffer, Completion, HomeCapabilities, HomeError, HomeStatus, HomeUsage, InlineAppends,
    LaneAppends, LaneSegments, LogHome, MemoryHome, NoRoom, Position, RoomListener, RoomRequest,
    SegmentInfo, SideCompletion, SideSegments, SideWriter,
};
use logstead_types::LaneId;
use parking_lot::Mutex;

/// Large enough that a lane seldom goes on to another one.
const SEGMENT_BYTES: u64 = 1 << 40;
/// Segments of lanes that nobody opens.
const KEPT_SEGMENT_BYTES: u64 = 4 << 20;
/// What the engine may ask room for at a time; the lane's buffers are smaller.
const ROOM_BYTES_MAX: u64 = 64 << 20;

/// A new one. Named values and objects are kept in memory: a checkpoint that is gone would be no checkpoint.
pub(crate) fn discard_home() -> LogHome {
    let kept = LogHome::from(MemoryHome::new(KEPT_SEGMENT_BYTES));
    let discard = Arc::new(DiscardHome {
        like: kept.capabilities(),
        lanes: Mutex::default(),
    });
    LogHome {
        status: Arc::clone(&discard) as _,
        appends: Arc::clone(&discard) as _,
        inline_appends: Some(Arc::clone(&discard) as _),
        segments: Arc::clone(&discard) as _,
        rollover: None,
        sides: discard,
        ..kept
    }
}

/// Lanes and side segments that keep nothing.
struct DiscardHome {
    like: HomeCapabilities,
    lanes: Mutex<BTreeMap<LaneId, Position>>,
}

impl HomeStatus for DiscardHome {
    fn describe(&self) -> String {
        "nowhere (appends complete at once and are gone)".to_owned()
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for DiscardHome {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            room_size_bytes_max: ROOM_BYTES_MAX,
            ..self.like
        }
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

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
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
}

impl InlineAppends for DiscardHome {
    fn append_inline(&self, _: LaneId, _: Position, _: &Buffer, _: usize) -> Result<(), HomeError> {
        Ok(())
    }
}

impl LaneSegments for DiscardHome {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        Ok(Vec::new())
    }

    fn list_segments(&self, _: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        Ok(Vec::new())
    }

    fn read(&self, _: LaneId, _: Position, _: &mut Buffer) -> Result<usize, HomeError> {
        Ok(0)
    }

    fn rewrite(&self, _: LaneId, _: Position, _: &Buffer, _: usize) -> Result<(), HomeError> {
        Ok(())
    }

    fn seal(&self, _: LaneId, _: Position) -> Result<(), HomeError> {
        Ok(())
    }

    fn trim(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }
}

impl SideSegments for DiscardHome {
    fn begin_side_segment(&self, _: LaneId, _: u64) -> Box<dyn SideWriter> {
        Box::new(DiscardedSide::default())
    }

    fn get_side_segment(
        &self,
        _: LaneId,
        id: u64,
        _: u64,
        _: &mut [u8],
    ) -> Result<usize, HomeError> {
        Err(HomeError::Missing(format!("side segment {id}")))
    }

    fn list_side_segments(&self, _: LaneId) -> Result<Vec<u64>, HomeError> {
        Ok(Vec::new())
    }

    fn remove_side_segment(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
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
