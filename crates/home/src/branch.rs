//! A branch's home: lanes, names and objects of its own, over objects of the home that it branched from.
//!
//! Objects whose epoch is not above the one in which the branch began are the parent's: they are read there, and never stored or removed by the branch. Everything else
//! is its own. So nothing that a branch does can touch its parent: not its lanes, not its manifest, not its objects.
//!
//! Invariant: the parent is only read, without taking its kernel's lock or its lease. What a branch needs of it stays because it is pinned there.
//!
//! Does not: know pins or records.

use crate::{
    Completion, Facts, HomeError, HomeUsage, LogHome, NoRoom, ObjectId, ObjectInfo, Position,
    Rollover, RoomListener, SegmentInfo, SideWriter, Tag,
};
use logstead_env::Buffer;
use logstead_types::{Epoch, LaneId};
use std::sync::Arc;
use std::time::Duration;

/// Where objects and names can be read, beside a server that may be at work there.
pub trait ObjectSource: Send + Sync {
    /// As [`LogHome::read_object`].
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError>;

    /// As [`LogHome::read_object_copy`].
    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;

    /// As [`LogHome::copies`].
    fn copies(&self) -> usize;
}

impl ObjectSource for Arc<dyn LogHome> {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.as_ref().read_object(id, offset, into)
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.as_ref().read_object_copy(copy, id, offset, into)
    }

    fn copies(&self) -> usize {
        self.as_ref().copies()
    }
}

/// Several sources of the same objects: each object is read from the first that has it.
pub(crate) struct Several(pub(crate) Vec<Arc<dyn ObjectSource>>);

impl ObjectSource for Several {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        let mut last = crate::immutable::missing(id);
        for source in &self.0 {
            match source.read_object(id, offset, into) {
                Ok(got) => return Ok(got),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        match self.0.get(copy) {
            Some(source) => source.read_object(id, offset, into),
            None => Err(crate::immutable::missing(id)),
        }
    }

    fn copies(&self) -> usize {
        self.0.len()
    }
}

/// A branch's objects and its parent's, to be read: where a branch of a branch begins.
pub struct BranchObjects {
    /// Its own.
    pub own: Arc<dyn ObjectSource>,
    /// Those of the parent.
    pub parent: Arc<dyn ObjectSource>,
    /// The last epoch whose objects are the parent's.
    pub last: Epoch,
}

impl BranchObjects {
    fn of(&self, id: ObjectId) -> &dyn ObjectSource {
        match id.epoch() <= self.last {
            true => self.parent.as_ref(),
            false => self.own.as_ref(),
        }
    }
}

impl ObjectSource for BranchObjects {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.of(id).read_object(id, offset, into)
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.of(id).read_object_copy(copy, id, offset, into)
    }

    fn copies(&self) -> usize {
        self.own.copies().max(self.parent.copies())
    }
}

/// See the module's documentation.
pub struct BranchHome {
    inner: Arc<dyn LogHome>,
    parent: Arc<dyn ObjectSource>,
    last: Epoch,
}

impl BranchHome {
    /// The branch whose own home is `own`; objects of epochs up to `last` are the parent's.
    pub fn new(own: Arc<dyn LogHome>, parent: Arc<dyn ObjectSource>, last: Epoch) -> BranchHome {
        BranchHome {
            inner: own,
            parent,
            last,
        }
    }
}

/// Methods that the branch's own home answers.
macro_rules! own {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)* $(,)?) $(-> $out:ty)?;)*) => {
        $(fn $name(&self $(, $argument: $type)*) $(-> $out)? {
            self.inner.$name($($argument),*)
        })*
    };
}

impl LogHome for BranchHome {
    own! {
        fn facts(&self) -> Facts;
        fn describe(&self) -> String;
        fn report(&self) -> Vec<(String, String)>;
        fn usage(&self) -> Vec<HomeUsage>;
        fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError>;
        fn copies(&self) -> usize;
        fn read_copy(&self, copy: usize, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError>;
        fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError>;
        fn has_copy(&self, copy: usize) -> bool;
        fn copies_behind(&self) -> Vec<usize>;
        fn rewrite_copy(&self, copy: usize, lane: LaneId, at: Position, block: &Buffer, len: usize) -> Result<(), HomeError>;
        fn copies_completed(&self) -> Result<(), HomeError>;
        fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom>;
        fn set_room_listener(&self, lane: LaneId, listener: RoomListener);
        fn ensure_room(&self, lane: LaneId, bytes: u64) -> Result<(), NoRoom>;
        fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError>;
        fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion);
        fn append_inline(&self, lane: LaneId, at: Position, block: &Buffer, len: usize) -> Result<(), HomeError>;
        fn rewrite(&self, lane: LaneId, at: Position, block: &Buffer, len: usize) -> Result<(), HomeError>;
        fn lanes(&self) -> Result<Vec<LaneId>, HomeError>;
        fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError>;
        fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError>;
        fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError>;
        fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError>;
        fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError>;
        fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError>;
        fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError>;
        fn limit_name_requests(&self, first: Duration);
        fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter>;
        fn get_side(&self, lane: LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, HomeError>;
        fn get_side_copy(&self, copy: usize, lane: LaneId, id: u64, offset: u64, into: &mut [u8]) -> Result<usize, HomeError>;
        fn replace_side_copy(&self, damaged: usize, good: usize, lane: LaneId, id: u64) -> Result<(), HomeError>;
        fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError>;
        fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError>;
        fn give_up_side(&self, lane: LaneId, id: u64);
        fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError>;
    }

    fn rereads_objects(&self) -> bool {
        self.inner.rereads_objects() || self.parent.copies() > 1
    }

    fn inherits(&self, id: ObjectId) -> bool {
        id.epoch() <= self.last
    }

    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        if self.inherits(id) {
            return Err(HomeError::Unsupported("objects of a branch's parent"));
        }
        self.inner.put_object(id, bytes)
    }

    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        match self.inherits(id) {
            true => self.parent.read_object(id, offset, into),
            false => self.inner.read_object(id, offset, into),
        }
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        match self.inherits(id) {
            true => self.parent.read_object_copy(copy, id, offset, into),
            false => self.inner.read_object_copy(copy, id, offset, into),
        }
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        match self.inherits(id) {
            // The parent removes it, when nobody needs it any more.
            true => Ok(()),
            false => self.inner.remove_object(id),
        }
    }
}
