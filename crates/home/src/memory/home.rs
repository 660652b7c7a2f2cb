//! What the memory home offers: each interface, on its maps.

use super::{ALIGNMENT, Availability, MemoryHome, MemorySide, Waiting};
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, Rollover, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideSegments, SideWriter, Tag, immutable,
};
use logstead_types::LaneId;
use std::collections::BTreeSet;
use std::collections::btree_map::Entry;
use std::io;
use std::sync::Arc;
use std::time::Duration;

impl HomeBackend for MemoryHome {
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        Some(Arc::clone(home) as _)
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        Some(Arc::clone(home) as _)
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for MemoryHome {
    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for MemoryHome {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            block_alignment: ALIGNMENT,
            block_size_preferred: 16 * 1024,
            room_size_bytes_max: self.segment_size_bytes(),
            appends_in_flight_max: 8,
            append_latency_expected_us: 1,
            leased: false,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.here()?;
        let mut state = self.state.lock();
        if state.disk_full {
            return Err(NoRoom::DiskFull);
        }
        let segment = self.segment();
        let lane_state = state.lanes.entry(lane).or_default();
        // Who opens this memory anew goes on with a lane that is open.
        if lane_state.segments.range(first_segment..).next().is_some() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        lane_state.segments.insert(first_segment, segment);
        lane_state.next = Position::start_of(first_segment);
        lane_state.appends_in_segment = 0;
        lane_state.segment_ended = false;
        lane_state.open = true;
        Ok(())
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.state.lock().lanes.entry(lane).or_default().listener = Some(Arc::new(listener));
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let mut state = self.state.lock();
        let disk_full = state.disk_full;
        let Some(lane_state) = state.lanes.get_mut(&lane).filter(|lane| lane.open) else {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "the lane is not open",
            }));
        };
        if bytes > self.segment_size_bytes() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "more room asked for than a segment has",
            }));
        }
        let fits = bytes <= self.segment_size_bytes() - lane_state.next.offset;
        if fits && !lane_state.segment_ended
            || lane_state
                .segments
                .contains_key(&(lane_state.next.segment + 1))
        {
            return Ok(());
        }
        if disk_full {
            return Err(NoRoom::DiskFull);
        }
        lane_state
            .segments
            .insert(lane_state.next.segment + 1, self.segment());
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        self.state.lock().short_of_space
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut state = self.state.lock();
        let Some(lane_state) = state.lanes.get_mut(&lane).filter(|lane| lane.open) else {
            return Err(HomeError::Misuse {
                lane,
                what: "the lane is not open",
            });
        };
        if !len.is_multiple_of(ALIGNMENT as u64) || len > self.segment_size_bytes() {
            return Err(HomeError::Misuse {
                lane,
                what: "length is not aligned or larger than a segment",
            });
        }
        let rollover = *self.rollover.lock();
        let at = match std::mem::take(&mut lane_state.segment_ended) {
            true => Position::start_of(lane_state.next.segment + 1),
            false => rollover.place(lane_state.next, lane_state.appends_in_segment, len),
        };
        if at.segment != lane_state.next.segment {
            lane_state.appends_in_segment = 0;
            if let Entry::Vacant(missing) = lane_state.segments.entry(at.segment) {
                if rollover.appends_max == u64::MAX {
                    return Err(HomeError::Misuse {
                        lane,
                        what: "append without ensured room",
                    });
                }
                // How many appends the ensured bytes come in is not known before.
                missing.insert(self.segment());
            }
        }
        lane_state.next = at;
        lane_state.next.offset += len;
        lane_state.appends_in_segment += 1;
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        {
            let mut state = self.state.lock();
            state.appends += 1;
            if state.paused || *self.presence.0.lock() == Availability::Silent {
                state.waiting.push_back(Waiting {
                    lane,
                    at,
                    block,
                    len,
                    done,
                });
                return;
            }
        }
        let result = self.here().and_then(|()| self.store(lane, at, &block, len));
        done(block, result);
    }
}

impl InlineAppends for MemoryHome {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.state.lock().appends += 1;
        self.store(lane, at, block, len)
    }
}

impl SegmentRollover for MemoryHome {
    fn rollover(&self) -> Rollover {
        *self.rollover.lock()
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        let mut own = self.rollover.lock();
        if own.min(rollover) != rollover {
            return Err(HomeError::Unsupported("larger segments than it has"));
        }
        *own = rollover;
        Ok(())
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let mut state = self.state.lock();
        let open = state.lanes.get_mut(&lane).filter(|lane| lane.open);
        let open = open.ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })?;
        open.segment_ended = open.appends_in_segment > 0;
        Ok(())
    }
}

impl LaneSegments for MemoryHome {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let with_segments = state
            .lanes
            .iter()
            .filter(|(_, lane)| !lane.segments.is_empty())
            .map(|(&id, _)| id);
        let with_sides = state.sides.keys().map(|&(lane, _)| lane);
        let lanes: BTreeSet<LaneId> = with_segments.chain(with_sides).collect();
        Ok(lanes.into_iter().collect())
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let Some(lane) = state.lanes.get(&lane) else {
            return Ok(Vec::new());
        };
        let info = |(&segment, bytes): (&u64, &Vec<u8>)| SegmentInfo {
            segment,
            size_bytes: bytes.len() as u64,
        };
        Ok(lane.segments.iter().map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let Some(bytes) = state
            .lanes
            .get(&lane)
            .and_then(|lane| lane.segments.get(&at.segment))
        else {
            return Ok(0);
        };
        let start = usize::try_from(at.offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = into.capacity().min(bytes.len() - start);
        into.as_mut_slice()[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let hook = self.state.lock().before_rewrite.clone();
        if let Some(hook) = hook {
            hook();
        }
        self.here()?;
        let mut state = self.state.lock();
        let segments = &mut state.lanes.entry(lane).or_default().segments;
        // It may have been sealed, or never made here.
        let end = usize::try_from(at.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(len);
        let segment = segments.entry(at.segment).or_default();
        if segment.len() < end {
            segment.resize(end, 0);
        }
        drop(state);
        self.store(lane, at, block, len)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if let Some(bytes) = state
            .lanes
            .get_mut(&lane)
            .and_then(|lane| lane.segments.get_mut(&at.segment))
        {
            bytes.truncate(usize::try_from(at.offset).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.here()?;
        if let Some(lane) = self.state.lock().lanes.get_mut(&lane) {
            lane.segments.remove(&segment);
        }
        Ok(())
    }
}

impl NamedValues for MemoryHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.here()?;
        Ok(self
            .state
            .lock()
            .names
            .get(name)
            .map(|(bytes, tag)| (bytes.clone(), Tag(*tag))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if state.names.contains_key(name) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        state.tags += 1;
        let tag = state.tags;
        state.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if state.names.get(name).map(|(_, tag)| *tag) != Some(expected.0) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        state.tags += 1;
        let tag = state.tags;
        state.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for MemoryHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.state.lock().sides_begun += 1;
        Box::new(MemorySide {
            home: self.clone(),
            name: (lane, id),
            bytes: Vec::new(),
        })
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let bytes = state
            .sides
            .get(&(lane, id))
            .ok_or_else(|| HomeError::Missing(format!("side segment {id} of lane {lane}")))?;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        Ok(state
            .sides
            .keys()
            .filter(|(of, _)| *of == lane)
            .map(|&(_, id)| id)
            .collect())
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.here()?;
        self.state.lock().sides.remove(&(lane, id));
        Ok(())
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for MemoryHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.here()?;
        let found = {
            let mut state = self.state.lock();
            if state
                .unreadable
                .is_some_and(|(of, end)| of == id && offset < end)
            {
                state.refused_object_reads += 1;
                let error = io::Error::other("asked to fail");
                return Err(HomeError::io("object in the memory home", error));
            }
            state.objects.get(&id).cloned()
        };
        let bytes = found.ok_or_else(|| immutable::missing(id))?;
        let read = immutable::copy_from(&bytes, offset, into);
        let mut state = self.state.lock();
        let (requests, bytes) = state.object_reads;
        state.object_reads = (requests + 1, bytes + read as u64);
        Ok(read)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for MemoryHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        {
            let mut held = self.held.0.lock();
            held.waiting += 1;
            while held.holding {
                self.held.1.wait(&mut held);
            }
            held.waiting -= 1;
        }
        self.here()?;
        let mut state = self.state.lock();
        let failed = |source| Err(HomeError::io("object in the memory home", source));
        if state.disk_full {
            return failed(io::ErrorKind::StorageFull.into());
        }
        if state.failing {
            return failed(io::Error::other("asked to fail"));
        }
        let there = state.objects.get(&id).map(|bytes| &bytes[..]);
        if immutable::is_new(there, id, bytes)? {
            state.objects.insert(id, Arc::from(bytes));
        }
        Ok(())
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let info = |(&id, bytes): (&ObjectId, &Arc<[u8]>)| ObjectInfo {
            id,
            size_bytes: bytes.len() as u64,
        };
        Ok(state.objects.iter().map(info).collect())
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.here()?;
        self.state.lock().objects.remove(&id);
        Ok(())
    }
}
