//! What a home of groups offers: each call, as one to the group that it is about, or to all.

use super::{Group, GroupedHome, Groups, decoded, of_group};
use crate::placement::RECORD;
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, OpenPurpose, Position, Rollover, RoomListener, RoomRequest,
    SegmentInfo, SegmentRollover, SideSegments, SideWriter, Tag, immutable,
};
use logstead_types::{Epoch, LaneId};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

impl HomeBackend for GroupedHome {
    fn inline_appends(_home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        None
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        home.rollover?;
        Some(Arc::clone(home) as _)
    }

    fn copies(home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        Some(Arc::clone(home) as _)
    }
}

impl HomeStatus for GroupedHome {
    fn describe(&self) -> String {
        let groups = self.groups();
        if let [only] = &groups.open[..] {
            return only.home.describe();
        }
        let of = |group: &Group| format!("group {}: {}", group.number, group.home.describe());
        let all: Vec<String> = groups.open.iter().map(of).collect();
        all.join("; ")
    }

    fn report(&self) -> Vec<(String, String)> {
        let groups = self.groups();
        if let [only] = &groups.open[..] {
            return only.home.report();
        }
        let numbers = groups.open.iter().map(|group| group.number.to_string());
        let numbers: Vec<String> = numbers.collect();
        let mut report = vec![("groups".to_owned(), numbers.join(", "))];
        for group in &groups.open {
            let own = group.home.report().into_iter();
            let number = group.number;
            report.extend(own.map(|(what, value)| (format!("group {number} {what}"), value)));
        }
        report
    }

    fn usage(&self) -> Vec<HomeUsage> {
        let groups = self.groups();
        let usage = groups.open.iter().flat_map(|group| group.home.usage());
        usage.collect()
    }
}

impl GroupedHome {
    /// The group of a lane of this life.
    fn open_lane_in(&self, lane: LaneId) -> Result<Group, HomeError> {
        let group = self.lanes.read().get(&lane).cloned();
        let what = "the lane is not open";
        group.ok_or(HomeError::Misuse { lane, what })
    }
}

fn room_of_group(group: &Group, result: Result<(), NoRoom>) -> Result<(), NoRoom> {
    result.map_err(|error| match error {
        NoRoom::Failed(error) => NoRoom::Failed(group.told(error)),
        error => error,
    })
}

impl LaneAppends for GroupedHome {
    fn capabilities(&self) -> HomeCapabilities {
        self.capabilities
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let groups = self.groups();
        let group = groups.of_lane(lane, first_segment)?;
        if self.lanes.read().contains_key(&lane) {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        room_of_group(group, group.home.open_lane(lane, first_segment))?;
        // Objects come to groups that have no lane, too: what they are to have is known by the epoch.
        for group in &groups.open {
            group.home.has_begun(first_segment);
        }
        self.lanes.write().insert(lane, group.clone());
        Ok(())
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        if let Ok(group) = self.open_lane_in(lane) {
            group.home.set_room_listener(lane, listener);
        }
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let group = self.open_lane_in(lane)?;
        if bytes > self.capabilities.room_size_bytes_max {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "more room asked for than an append may have",
            }));
        }
        room_of_group(&group, group.home.ensure_room(lane, bytes, request))
    }

    /// When any group is: its lanes cannot do without it.
    fn is_short_of_space(&self) -> bool {
        let groups = self.groups();
        groups
            .open
            .iter()
            .any(|group| group.home.is_short_of_space())
    }

    /// What every group has.
    fn free_bytes(&self) -> Option<u64> {
        let groups = self.groups();
        let free: Option<Vec<u64>> = groups
            .open
            .iter()
            .map(|group| group.home.free_bytes())
            .collect();
        free?.into_iter().min()
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let group = self.open_lane_in(lane)?;
        if len > self.capabilities.room_size_bytes_max
            || !len.is_multiple_of(self.capabilities.block_alignment as u64)
        {
            return Err(HomeError::Misuse {
                lane,
                what: "length is not aligned or larger than an append may be",
            });
        }
        group.named(group.home.place(lane, len))
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        match self.open_lane_in(lane) {
            Ok(group) => {
                // No more of the group than that: an append that waits must not keep its home open.
                let number = group.is_one_of_several.then_some(group.number);
                let done: Completion = Box::new(move |block, result: Result<(), HomeError>| {
                    let told = |error| match number {
                        Some(number) => of_group(number, error),
                        None => error,
                    };
                    done(block, result.map_err(told));
                });
                group.home.append(lane, at, block, len, done);
            }
            Err(error) => done(block, Err(error)),
        }
    }
}

/// The rule that all groups have.
impl SegmentRollover for GroupedHome {
    fn rollover(&self) -> Rollover {
        // Only who has a common rule is asked.
        let own = self.first().home;
        self.rollover
            .unwrap_or_else(|| SegmentRollover::rollover(own.as_ref()))
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        if self.rollover == Some(rollover) {
            return Ok(());
        }
        Err(HomeError::Unsupported("segments of a given size"))
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let group = self.open_lane_in(lane)?;
        group.named(group.home.end_segment(lane))
    }
}

impl LaneSegments for GroupedHome {
    /// In every group in which something may lie: whoever was overtaken earlier may have had the lane there.
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.take()?;
        let groups = self.groups();
        for group in groups.in_force()? {
            group.named(group.home.fence(lane, first_segment, by))?;
        }
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let mut lanes = BTreeSet::new();
        for group in self.groups().in_force()? {
            lanes.extend(group.named(group.home.list_lanes())?);
        }
        Ok(lanes.into_iter().collect())
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let groups = self.groups();
        let mut all = Vec::new();
        for group in groups.of_any_epoch(lane)? {
            let listed = group.named(group.home.list_segments(lane))?;
            let is_here = |info: &SegmentInfo| {
                let of = groups.of_lane(lane, info.segment);
                of.is_ok_and(|of| of.number == group.number)
            };
            all.extend(listed.into_iter().filter(is_here));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, at.segment)?;
        group.named(LaneSegments::read(group.home.as_ref(), lane, at, into))
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, at.segment)?;
        group.named(group.home.rewrite(lane, at, block, len))
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, at.segment)?;
        group.named(group.home.seal(lane, at))
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, segment)?;
        group.named(group.home.trim(lane, segment))
    }
}

impl NamedValues for GroupedHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let first = self.first();
        if self.purpose != OpenPurpose::Reading {
            return first.named(NamedValues::get(first.home.as_ref(), name));
        }
        let _one_at_a_time = self.following.lock();
        let mut names = first.named(first.home.all_names())?;
        if let Some((record, _)) = names.get(RECORD) {
            self.follow(&decoded(record)?)?;
        }
        // What is read from now on is judged by members that are as new as the value.
        for group in &self.groups().open[1..] {
            group.named(group.home.all_names())?;
        }
        Ok(names.remove(name))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        let first = self.first();
        first.named(first.home.put_if_absent(name, bytes))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        let first = self.first();
        first.named(first.home.compare_and_swap(name, expected, bytes))
    }

    fn limit_name_requests(&self, first: Duration) {
        *self.name_requests_limit.lock() = Some(first);
        for group in &self.groups().open {
            group.home.limit_name_requests(first);
        }
    }
}

impl SideSegments for GroupedHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        let groups = self.groups();
        match groups.of_lane(lane, id) {
            Ok(group) => group.home.begin_side_segment(lane, id),
            Err(error) => Box::new(NoSide(error)),
        }
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, id)?;
        group.named(group.home.get_side_segment(lane, id, offset, into))
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let groups = self.groups();
        let mut all = Vec::new();
        for group in groups.of_any_epoch(lane)? {
            let listed = group.named(group.home.list_side_segments(lane))?;
            let is_here = |id: &u64| {
                let of = groups.of_lane(lane, *id);
                of.is_ok_and(|of| of.number == group.number)
            };
            all.extend(listed.into_iter().filter(is_here));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_lane(lane, id)?;
        group.named(group.home.remove_side_segment(lane, id))
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        if let Ok(group) = self.groups().of_lane(lane, id) {
            group.home.give_up_side_segment(lane, id);
        }
    }
}

/// A side segment that has no place.
struct NoSide(HomeError);

impl SideWriter for NoSide {
    fn append(&mut self, _piece: Vec<u8>) {}

    fn backlog_bytes(&self) -> usize {
        0
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(self: Box<Self>, done: crate::SideCompletion) {
        done(Err(NoRoom::Failed(self.0)));
    }
}

impl Groups {
    fn of_object(&self, id: ObjectId) -> Result<&Group, HomeError> {
        self.group(self.placement.group_of(id.epoch(), id.counter()))
    }

    /// Whose copy this is, and which of that group's.
    fn of_copy(&self, copy: usize) -> Option<(&Group, usize)> {
        let mut local = copy;
        for group in &self.open {
            let count = Copies::count(group.home.as_ref());
            if local < count {
                return Some((group, local));
            }
            local -= count;
        }
        None
    }

    /// The same, if what a lane has under this number lies there.
    fn of_lane_copy(
        &self,
        copy: usize,
        lane: LaneId,
        number: u64,
    ) -> Result<Option<(&Group, usize)>, HomeError> {
        let here = self.of_lane(lane, number)?.number;
        Ok(self.of_copy(copy).filter(|(group, _)| group.number == here))
    }
}

impl ObjectReader for GroupedHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        let groups = self.groups();
        let group = groups.of_object(id)?;
        group.named(group.home.read_object(id, offset, into))
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        Some(self)
    }
}

impl ImmutableObjects for GroupedHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_object(id)?;
        group.named(group.home.put_object(id, bytes))
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        let groups = self.groups();
        let mut all = Vec::new();
        for group in groups.in_force()? {
            let listed = group.named(group.home.list_objects())?;
            let is_here = |info: &ObjectInfo| {
                let of = groups.of_object(info.id);
                of.is_ok_and(|of| of.number == group.number)
            };
            all.extend(listed.into_iter().filter(is_here));
        }
        all.sort_unstable();
        Ok(all)
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        let groups = self.groups();
        let group = groups.of_object(id)?;
        group.named(group.home.remove_object(id))
    }
}

/// The copies of an object are its group's.
impl ObjectCopies for GroupedHome {
    fn object_copy_count(&self) -> usize {
        let groups = self.groups();
        let counts = groups
            .open
            .iter()
            .map(|group| group.home.object_copy_count());
        counts.max().unwrap_or(0)
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let groups = self.groups();
        let group = groups.of_object(id)?;
        if copy >= group.home.object_copy_count() {
            return Err(immutable::missing(id));
        }
        group.named(group.home.read_object_copy(copy, id, offset, into))
    }
}

/// The groups' copies, one after the other.
impl Copies for GroupedHome {
    fn count(&self) -> usize {
        let groups = self.groups();
        let counts = groups
            .open
            .iter()
            .map(|group| Copies::count(group.home.as_ref()));
        counts.sum()
    }

    fn has_copy(&self, copy: usize) -> bool {
        let groups = self.groups();
        let of = groups.of_copy(copy);
        of.is_some_and(|(group, local)| group.home.has_copy(local))
    }

    fn keeps(&self, copy: usize, lane: LaneId, segment: u64) -> bool {
        let groups = self.groups();
        matches!(groups.of_lane_copy(copy, lane, segment), Ok(Some(_)))
    }

    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        let groups = self.groups();
        match groups.of_lane_copy(copy, lane, at.segment)? {
            Some((group, local)) => group.named(group.home.read_copy(local, lane, at, into)),
            None => Ok(0),
        }
    }

    fn copies_behind(&self) -> Vec<usize> {
        let groups = self.groups();
        let mut behind = Vec::new();
        let mut before = 0;
        for group in &groups.open {
            let own = group.home.copies_behind().into_iter();
            behind.extend(own.map(|copy| before + copy));
            before += Copies::count(group.home.as_ref());
        }
        behind
    }

    fn rewrite_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let groups = self.groups();
        match groups.of_lane_copy(copy, lane, at.segment)? {
            Some((group, local)) => {
                group.named(group.home.rewrite_copy(local, lane, at, block, len))
            }
            None => Ok(()),
        }
    }

    fn copies_completed(&self, epoch: Epoch) -> Result<(), HomeError> {
        self.settle(epoch)
    }

    fn get_side_segment_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let groups = self.groups();
        match groups.of_lane_copy(copy, lane, id)? {
            Some((group, local)) => group.named(
                group
                    .home
                    .get_side_segment_copy(local, lane, id, offset, into),
            ),
            None => Err(HomeError::Missing(format!(
                "side segment {id} of lane {lane}"
            ))),
        }
    }

    fn replace_side_segment_copy(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        let groups = self.groups();
        let of = |copy| groups.of_lane_copy(copy, lane, id);
        let (Some((group, damaged)), Some((_, good))) = (of(damaged)?, of(good)?) else {
            return Ok(());
        };
        group.named(
            group
                .home
                .replace_side_segment_copy(damaged, good, lane, id),
        )
    }
}
