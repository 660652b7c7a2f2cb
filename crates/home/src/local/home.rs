//! What a local home offers: each interface, in terms of its lanes, files and threads.

use super::lane::{Append, LaneFiles};
use super::paths::Paths;
use super::reserve::ReserveFor;
use super::side::LocalSide;
use super::{ALIGNMENT, APPEND_LATENCY_EXPECTED_US, LocalHome, tag_of};
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneId, LaneSegments, NamedValues, NoRoom,
    ObjectCopies, ObjectId, ObjectInfo, ObjectReader, Position, RoomListener, RoomRequest,
    SegmentInfo, SegmentRollover, SideSegments, SideWriter, Tag,
};
use logstead_env::Access;
use logstead_env::OpenMode;
use std::sync::Arc;
use std::time::Duration;

impl HomeBackend for LocalHome {
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        Some(Arc::clone(home) as _)
    }

    fn rollover(_home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        None
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for LocalHome {
    fn describe(&self) -> String {
        // Others open it by this name, whatever their own directory is.
        let dir = std::path::absolute(self.dir());
        let dir = dir.as_deref().unwrap_or(self.dir());
        format!("file://{}", dir.display())
    }

    fn report(&self) -> Vec<(String, String)> {
        self.choice.report()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for LocalHome {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            block_alignment: ALIGNMENT,
            block_size_preferred: 16 * 1024,
            room_size_bytes_max: self.shared.options.segment_size_bytes_min,
            appends_in_flight_max: self.ways.way().appends_in_flight_max(),
            append_latency_expected_us: self
                .choice
                .append_latency_us()
                .unwrap_or(APPEND_LATENCY_EXPECTED_US),
            leased: false,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let shared = &self.shared;
        let dir = shared.paths.lane(lane);
        shared
            .io("make directory", &dir, shared.env.files.create_dir(&dir))
            .map_err(NoRoom::from_home)?;
        let existing = self.list_segments(lane)?;
        if self.lanes.read().contains_key(&lane)
            || existing.iter().any(|info| info.segment >= first_segment)
        {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        let first = shared
            .segment(
                lane,
                first_segment,
                shared.options.first_segment_size_bytes,
                ReserveFor::Nothing,
                Duration::ZERO,
            )
            .map_err(NoRoom::from_home)?;
        let opened = LaneFiles::new(lane, first, &shared.env, &self.ways)
            .map_err(|error| HomeError::io("start the writer of a lane", error))?;
        let opened = Arc::new(opened);
        self.lanes.write().insert(lane, opened);
        Ok(())
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        if let Ok(lane) = self.lane(lane) {
            lane.set_listener(listener);
        }
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let lane = self.lane(lane)?;
        let attempts = &self.shared.attempts;
        let answer = lane.room(bytes, request, attempts);
        if answer.prepare {
            self.start_preparing(&lane);
            if self.preparer.is_none() {
                // Without threads the segment is there, or the attempt has failed, by now.
                return lane.room(bytes, request, attempts).result;
            }
        }
        answer.result
    }

    fn is_short_of_space(&self) -> bool {
        self.shared.is_short_of_space()
    }

    fn free_bytes(&self) -> Option<u64> {
        let space = self.shared.space().ok()?;
        Some(space.left(ReserveFor::Nothing))
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let lane = self.lane(lane)?;
        let (at, prepare) = lane.place(len)?;
        if prepare && self.preparer.is_some() {
            self.start_preparing(&lane);
        }
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        match self.lane(lane) {
            Ok(files) => {
                let keep = Arc::clone(&self.shared) as Arc<dyn Send + Sync>;
                let append = Append {
                    at,
                    block,
                    len,
                    done,
                    keep,
                };
                files.append(&self.ways, append);
            }
            Err(error) => done(block, Err(error)),
        }
    }
}

impl InlineAppends for LocalHome {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let lane = self.lane(lane)?;
        lane.append_inline(&self.ways, at, block, len)
    }
}

impl LaneSegments for LocalHome {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let mut lanes = Vec::new();
        for lane in self.shared.lane_ids()? {
            if !self.list_segments(lane)?.is_empty() || !self.list_side_segments(lane)?.is_empty() {
                lanes.push(lane);
            }
        }
        Ok(lanes)
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let mut segments = Vec::new();
        for segment in self
            .shared
            .names_in(lane)?
            .iter()
            .filter_map(|name| Paths::parse_segment(name))
        {
            let path = self.shared.paths.segment(lane, segment);
            let file = self
                .shared
                .env
                .files
                .open(&path, OpenMode::buffered(Access::Read));
            let file = match file {
                // A server beside which this one reads has removed it since its name was read.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                other => self.shared.io("open", &path, other)?,
            };
            let size_bytes = self.shared.io("ask for the length of", &path, file.len())?;
            segments.push(SegmentInfo {
                segment,
                size_bytes,
            });
        }
        segments.sort_unstable();
        Ok(segments)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let Some(file) = self.shared.reader(lane, at.segment)? else {
            return Ok(0);
        };
        let result = file.read_full_at(at.offset, into.as_mut_slice());
        self.shared
            .io("read", &self.shared.paths.segment(lane, at.segment), result)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let shared = &self.shared;
        shared.write_allowed()?;
        let path = shared.paths.segment(lane, at.segment);
        let mode = OpenMode {
            access: Access::ReadWrite,
            direct: true,
            durable_writes: false,
        };
        let file = shared.io("open", &path, shared.env.files.open(&path, mode))?;
        let bytes = block.as_slice().get(..len).ok_or(HomeError::Misuse {
            lane,
            what: "longer than its buffer",
        })?;
        shared.io("rewrite", &path, file.write_all_at(at.offset, bytes))?;
        shared.io("sync", &path, file.sync())
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        let shared = &self.shared;
        shared.write_allowed()?;
        let path = shared.paths.segment(lane, at.segment);
        let file = match shared
            .env
            .files
            .open(&path, OpenMode::buffered(Access::ReadWrite))
        {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            other => shared.io("open", &path, other)?,
        };
        if shared.io("ask for the length of", &path, file.len())? > at.offset {
            shared.io("shorten", &path, file.set_len(at.offset))?;
            shared.io("sync", &path, file.sync())?;
        }
        Ok(())
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.shared.write_allowed()?;
        self.shared.readers.lock().remove(&lane);
        if let Ok(lane) = self.lane(lane) {
            lane.forget(segment);
        }
        self.shared.remove_segment(lane, segment)
    }
}

impl NamedValues for LocalHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        Ok(self.shared.read_name(name)?.map(|bytes| {
            let tag = tag_of(&bytes);
            (bytes, tag)
        }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        if self.shared.read_name(name)?.is_some() {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        self.shared
            .replace(&self.shared.paths.dir().join(name), bytes)?;
        Ok(tag_of(bytes))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        let present = self.shared.read_name(name)?;
        if present.map(|bytes| tag_of(&bytes)) != Some(expected) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        self.shared
            .replace(&self.shared.paths.dir().join(name), bytes)?;
        Ok(tag_of(bytes))
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for LocalHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        let queue = self.sides.clone();
        Box::new(LocalSide::new(&self.shared, queue, lane, id))
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let path = self.shared.paths.side(lane, id);
        let file = match self
            .shared
            .env
            .files
            .open(&path, OpenMode::buffered(Access::Read))
        {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(HomeError::Missing(path.display().to_string()));
            }
            other => self.shared.io("open", &path, other)?,
        };
        self.shared
            .io("read", &path, file.read_full_at(offset, into))
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        Ok(self
            .shared
            .names_in(lane)?
            .iter()
            .filter_map(|name| Paths::parse_side(name))
            .collect())
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.shared.write_allowed()?;
        self.shared.remove_side_segment(lane, id)
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for LocalHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.shared.read_object(id, offset, into)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for LocalHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.shared.put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.shared.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.shared.remove_object(id)
    }
}
