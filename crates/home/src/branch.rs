//! A branch's home: lanes, names and objects of its own, over objects of the home that it branched from.
//!
//! Objects whose epoch is not above the one in which the branch began are the parent's: they are read there, and never stored or removed by the branch. Everything else
//! is its own. So nothing that a branch does can touch its parent: not its lanes, not its manifest, not its objects.
//!
//! Invariant: the parent is only read, without taking its kernel's lock or its lease. What a branch needs of it stays because it is pinned there.
//!
//! Does not: know pins or records.

use crate::{CacheStats, HomeError, LogHome, ObjectId};
use logstead_types::Epoch;
use std::sync::Arc;

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

impl LogHome for BranchHome {
    crate::lanes_through!(inner);
    crate::appends_through!(inner);
    crate::names_through!(inner);
    crate::handed_through! { inner
        fn objects(&self) -> Result<Vec<crate::ObjectInfo>, HomeError>;
    }

    fn rereads_objects(&self) -> bool {
        self.inner.rereads_objects() || self.parent.copies() > 1
    }

    fn cache(&self) -> Option<CacheStats> {
        self.inner.cache()
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
