//! What a home of homes offers: each call, as questions to its children.

use super::catch_up::Fence;
use super::child::{Removable, RequestClass, ask_each};
use super::lane::ReplicatedLane;
use super::membership::Quorum;
use super::{Asked, Audience, OpenLane, ReplicatedHome, WriteConcern, is_up, side};
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, Rollover, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideSegments, SideWriter, Tag,
};
use logstead_types::{Epoch, LaneId};
use parking_lot::Mutex;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

impl HomeBackend for ReplicatedHome {
    fn inline_appends(_home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        None
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        Some(Arc::clone(home) as _)
    }

    fn copies(home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        Some(Arc::clone(home) as _)
    }
}

impl HomeStatus for ReplicatedHome {
    fn describe(&self) -> String {
        let sources = self
            .inner
            .children
            .iter()
            .filter_map(|child| child.source());
        let urls: Vec<String> = sources.map(|source| source.url).collect();
        urls.join(",")
    }

    fn report(&self) -> Vec<(String, String)> {
        let inner = &self.inner;
        let ack = match inner.options.ack {
            WriteConcern::All => "all",
            WriteConcern::Majority => "majority",
        };
        let mut report = vec![("ack".to_owned(), ack.to_owned())];
        if let Some(why) = inner.changes.hindered() {
            report.push(("change of the list".to_owned(), why));
        }
        let quorums = inner.quorums();
        let lanes: Vec<_> = inner.lanes.read().values().cloned().collect();
        for (index, child) in inner.children.iter().enumerate() {
            if child.is_vacant() {
                continue;
            }
            let name = |what: &str| format!("replica {index} {what}");
            report.push((name("home"), child.url()));
            let state = match child.trouble() {
                Some(trouble) => trouble,
                None if quorums.is_member(index) => "member".to_owned(),
                None => "not counted yet".to_owned(),
            };
            report.push((name("state"), state));
            let behind = lanes
                .iter()
                .map(|lane| lane.state.lock().queued_bytes(index));
            report.push((name("bytes behind"), behind.sum::<u64>().to_string()));
            if let Some(home) = child.home() {
                let own = home.status.report().into_iter();
                report.extend(own.map(|(what, value)| (name(&what), value)));
            }
        }
        report
    }

    fn usage(&self) -> Vec<HomeUsage> {
        let children = self.inner.children.iter();
        children.flat_map(|child| child.usage()).collect()
    }
}

impl LaneAppends for ReplicatedHome {
    fn capabilities(&self) -> HomeCapabilities {
        self.inner.capabilities
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let inner = &self.inner;
        let _one_at_a_time = inner.opening.lock();
        if inner.lane(lane).is_some() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        let asked = inner.asked(Audience::Receivers);
        let (line, waits) = (RequestClass::Short, inner.waits());
        inner
            .must_within(
                "opening a lane",
                Quorum::Write,
                &asked,
                line,
                waits,
                &|child| {
                    let again = inner.pump_again(lane, child);
                    Box::new(move |home| {
                        home.appends
                            .open_lane(lane, first_segment)
                            .map_err(from_room)?;
                        home.appends.set_room_listener(lane, again);
                        Ok(())
                    })
                },
            )
            .map_err(NoRoom::from_home)?;
        let generation = |asked: &Option<Asked>| {
            let attachment = asked.as_ref().map(|asked| &asked.attachment);
            attachment.map_or(0, |attachment| attachment.generation)
        };
        let generations: Vec<u64> = asked.iter().map(generation).collect();
        let mut state = ReplicatedLane::new(
            first_segment,
            inner.rollover,
            inner.quorums(),
            asked.iter().map(is_up).collect(),
            &generations,
            inner.in_flight_max.lock().clone(),
        );
        let mut lanes = inner.lanes.write();
        for (child, &generation) in generations.iter().enumerate() {
            let receiver = inner.children[child].receiver();
            if receiver.is_none_or(|(attachment, _)| attachment.generation != generation) {
                let _nobody_waits = state.drop_child(child, generation);
            }
        }
        let opened = OpenLane {
            id: lane,
            state: Mutex::new(state),
            spares: Mutex::default(),
            trims: Mutex::new(vec![BTreeSet::new(); inner.children.len()]),
        };
        lanes.insert(lane, Arc::new(opened));
        Ok(())
    }

    // There is always room: each child's own is waited for behind the queue.
    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let misuse = |what| Err(NoRoom::Failed(HomeError::Misuse { lane, what }));
        let Some(open) = self.inner.lane(lane) else {
            return misuse("the lane is not open");
        };
        if bytes > self.inner.capabilities.room_size_bytes_max {
            return misuse("more room asked for than an append may have");
        }
        match open.state.lock().failed() {
            Some(error) => Err(NoRoom::Failed(error.clone())),
            None => Ok(()),
        }
    }

    /// When too few would be left without those that are. Who is away is not: it is waited for.
    fn is_short_of_space(&self) -> bool {
        let inner = &self.inner;
        let has_room = |child: usize| {
            let home = inner.up(child);
            home.is_some_and(|home| !home.appends.is_short_of_space())
        };
        let is_full = |child: usize| inner.up(child).is_some() && !has_room(child);
        if !(0..inner.children.len()).any(is_full) {
            return false;
        }
        !inner.quorums().has(Quorum::Write, &has_room)
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let misuse = |what| HomeError::Misuse { lane, what };
        let open = self.inner.lane(lane);
        let open = open.ok_or_else(|| misuse("the lane is not open"))?;
        let capabilities = &self.inner.capabilities;
        if !len.is_multiple_of(capabilities.block_alignment as u64)
            || len > capabilities.room_size_bytes_max
        {
            return Err(misuse(
                "length is not aligned or larger than an append may be",
            ));
        }
        open.state.lock().place(len)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let inner = &self.inner;
        let Some(open) = inner.lane(lane) else {
            let what = "the lane is not open";
            return done(block, Err(HomeError::Misuse { lane, what }));
        };
        let told = open.state.lock().give(at, block, len, done);
        if let Some(told) = told {
            return told.complete();
        }
        let occupied = |child: &usize| !inner.children[*child].is_vacant();
        for child in (0..inner.children.len()).filter(occupied) {
            inner.pump(&open, child);
        }
        for child in (0..inner.children.len()).filter(occupied) {
            let queued = open.state.lock().queued_bytes(child);
            if queued > inner.options.lag_bytes_max
                && let Some((home, _)) = inner.children[child].receiver()
            {
                // Where it cannot be done without, commits wait for it.
                let _dropped = inner.do_without(child, home.generation, "it cannot follow");
            }
        }
    }
}

/// The smallest rule of its children's, which they all have.
impl SegmentRollover for ReplicatedHome {
    fn rollover(&self) -> Rollover {
        self.inner.rollover
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        if rollover == self.inner.rollover {
            return Ok(());
        }
        Err(HomeError::Unsupported("segments of a given size"))
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let open = self.inner.lane(lane).ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })?;
        open.state.lock().end_segment();
        Ok(())
    }
}

impl LaneSegments for ReplicatedHome {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.inner.check_members()?;
        let done = self
            .inner
            .must("fencing a lane", Quorum::Read, Audience::Up, &|_| {
                let by = by.to_owned();
                Box::new(move |home| home.segments.fence(lane, first_segment, &by))
            })?;
        // Who was away is fenced when it comes back.
        self.inner.fences.lock().push(Fence {
            lane,
            first_segment,
            by: by.to_owned(),
            done: done.into_iter().map(|(child, ())| child).collect(),
        });
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let listed = self
            .inner
            .list("listing lanes", |home| home.segments.list_lanes())?;
        let lanes: BTreeSet<_> = listed.into_iter().flat_map(|(_, lanes)| lanes).collect();
        Ok(lanes.into_iter().collect())
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let listed = self.inner.list("listing segments", move |home| {
            home.segments.list_segments(lane)
        })?;
        let mut longest: BTreeMap<u64, u64> = BTreeMap::new();
        for info in listed.into_iter().flat_map(|(_, segments)| segments) {
            let size = longest.entry(info.segment).or_default();
            *size = info.size_bytes.max(*size);
        }
        let info = |(segment, size_bytes)| SegmentInfo {
            segment,
            size_bytes,
        };
        Ok(longest.into_iter().map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let inner = &self.inner;
        let mut order: Vec<usize> = (0..inner.children.len()).collect();
        // What was acknowledged can be read: who has stored most comes first.
        if let Some(open) = inner.lane(lane) {
            let state = open.state.lock();
            order.sort_by_key(|&child| Reverse(state.stored_to(child)));
        }
        let mut best = 0;
        let mut other = Buffer::zeroed(into.capacity());
        for child in order {
            if inner.up(child).is_none() {
                continue;
            }
            let count = inner.read_child(child, lane, at, &mut other)?;
            if count > best {
                best = count;
                std::mem::swap(into, &mut other);
            }
            if best == into.capacity() {
                break;
            }
        }
        inner.enough_to_judge()?;
        Ok(best)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = copied(block, len);
        // Who cannot is left out. Whether those that are left are enough for the members to come, `copies_completed`
        // judges.
        self.inner.must(
            "writing a lane's end again",
            Quorum::Read,
            Audience::Up,
            &|_| {
                let bytes = Arc::clone(&bytes);
                Box::new(move |home| home.segments.rewrite(lane, at, &bytes, len))
            },
        )?;
        Ok(())
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.inner
            .remove_everywhere("sealing a segment", None, &|_| {
                Box::new(move |home| home.segments.seal(lane, at))
            })
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let inner = &self.inner;
        let postponed = inner.postpone_trim(lane, segment);
        let removed = Removable::Segment(lane, segment);
        inner.remove_everywhere("removing a segment", Some(removed), &|child| {
            let now = !postponed[child];
            Box::new(move |home| {
                if now {
                    home.segments.trim(lane, segment)
                } else {
                    Ok(())
                }
            })
        })
    }
}

impl NamedValues for ReplicatedHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        Ok(self.all_names()?.remove(name))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.inner.set(name, None, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.inner.set(name, Some(expected), bytes)
    }

    fn limit_name_requests(&self, first: Duration) {
        // The records of the register are named things of the children.
        *self.inner.name_requests_limit.lock() = Some(first);
        for home in self.inner.children.iter().filter_map(|child| child.home()) {
            home.names.limit_name_requests(first);
        }
    }
}

impl SideSegments for ReplicatedHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        side::begin(&self.inner, lane, id)
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.get_side_segment(lane, id, offset, into)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let listed = self.inner.list("listing side segments", move |home| {
            home.sides.list_side_segments(lane)
        })?;
        let ids: BTreeSet<_> = listed.into_iter().flat_map(|(_, ids)| ids).collect();
        Ok(ids.into_iter().collect())
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        let removed = Removable::Side(lane, id);
        self.inner
            .remove_everywhere("removing a side segment", Some(removed), &|_| {
                Box::new(move |home| home.sides.remove_side_segment(lane, id))
            })
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        for child in 0..self.inner.children.len() {
            if let Some((home, _)) = self.inner.children[child].receiver() {
                home.sides.give_up_side_segment(lane, id);
            }
        }
    }
}

impl ObjectReader for ReplicatedHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.inner.read_object(id, offset, into)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        Some(self)
    }
}

impl ImmutableObjects for ReplicatedHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.inner.put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.inner.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        let removed = Removable::Object(id);
        self.inner
            .remove_everywhere("removing an object", Some(removed), &|_| {
                Box::new(move |home| home.objects.remove_object(id))
            })
    }
}

impl ObjectCopies for ReplicatedHome {
    fn object_copy_count(&self) -> usize {
        self.inner.children.len()
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.read_object_of(copy, id, offset, into)
    }
}

impl Copies for ReplicatedHome {
    fn count(&self) -> usize {
        self.inner.children.len()
    }

    fn has_copy(&self, copy: usize) -> bool {
        self.inner.up(copy).is_some()
    }

    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        self.inner.read_child(copy, lane, at, into)
    }

    fn copies_behind(&self) -> Vec<usize> {
        self.inner.behind()
    }

    fn rewrite_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let inner = &self.inner;
        let bytes = copied(block, len);
        let Some(home) = inner.up(copy) else {
            return Ok(());
        };
        let answers = ask_each(
            &inner.children,
            &inner.env,
            inner.waits(),
            &|_| false,
            &|child| {
                let home = (child == copy).then(|| home.clone())?;
                let bytes = Arc::clone(&bytes);
                Some(Box::new(move || {
                    home.segments.rewrite(lane, at, &bytes, len)
                }))
            },
        );
        let why = match answers.into_iter().nth(copy).flatten() {
            Some(Ok(())) => return Ok(()),
            Some(Err(error @ HomeError::Fenced(_))) => return Err(error),
            Some(Err(error)) => format!("completing it: {error}"),
            None => "completing it: no answer in time".to_owned(),
        };
        inner.leave_out(copy, home.generation, why);
        inner.enough_to_judge()
    }

    fn copies_completed(&self, epoch: Epoch) -> Result<(), HomeError> {
        self.inner.settle_members(epoch)
    }

    fn get_side_segment_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner
            .get_side_segment_copy(copy, lane, id, offset, into)
    }

    fn replace_side_segment_copy(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        self.inner.replace_side(damaged, good, lane, id)
    }
}

fn copied(block: &Buffer, len: usize) -> Arc<Buffer> {
    let mut copy = Buffer::zeroed(len);
    copy.as_mut_slice()
        .copy_from_slice(&block.as_slice()[..len]);
    Arc::new(copy)
}

pub(super) fn from_room(error: NoRoom) -> HomeError {
    match error {
        NoRoom::Failed(error) => error,
        other => HomeError::Io {
            what: "opening a lane".to_owned(),
            source: Arc::new(std::io::Error::new(
                std::io::ErrorKind::StorageFull,
                other.to_string(),
            )),
        },
    }
}
