//! A branch's home: lanes, named values and objects of its own, over objects of the home that it branched from.
//!
//! Objects whose epoch is not above the one in which the branch began are the parent's: they are read there, and never
//! stored or removed by the branch. Everything else is its own. So nothing that a branch does can touch its parent: not
//! its lanes, not its manifest, not its objects.
//!
//! Invariant: the parent is only read, without taking its kernel's lock or its lease. What a branch needs of it stays
//! because it is pinned there.
//!
//! Does not: know pins or records.

use crate::error::HomeError;
use crate::immutable::{ImmutableObjects, ObjectCopies, ObjectId, ObjectInfo, ObjectReader};
use crate::log_home::LogHome;
use logstead_types::Epoch;
use std::sync::Arc;

/// A branch's objects over its parent's. Where a branch of a branch begins, its own are only to be read.
pub struct BranchObjects<O: ?Sized = dyn ObjectReader> {
    /// Its own.
    pub own: Arc<O>,
    /// Those of the parent.
    pub parent: Arc<dyn ObjectReader>,
    /// The last epoch whose objects are the parent's.
    pub last: Epoch,
}

/// The branch whose own home is `own`; objects of epochs up to `last` are the parent's.
pub fn branch_home(own: LogHome, parent: Arc<dyn ObjectReader>, last: Epoch) -> LogHome {
    LogHome {
        objects: Arc::new(BranchObjects {
            own: own.objects,
            parent,
            last,
        }),
        inherited_through: Some(last),
        ..own
    }
}

impl<O: ObjectReader + ?Sized> BranchObjects<O> {
    fn is_inherited(&self, id: ObjectId) -> bool {
        id.epoch() <= self.last
    }
}

impl<O: ObjectReader + ?Sized> ObjectReader for BranchObjects<O> {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        match self.is_inherited(id) {
            true => self.parent.read_object(id, offset, into),
            false => self.own.read_object(id, offset, into),
        }
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        let has_any = self.own.object_copies().is_some() || self.parent.object_copies().is_some();
        has_any.then_some(self)
    }
}

impl<O: ObjectReader + ?Sized> ObjectCopies for BranchObjects<O> {
    fn object_copy_count(&self) -> usize {
        let count = |copies: Option<&dyn ObjectCopies>| {
            copies.map_or(1, |copies| copies.object_copy_count())
        };
        count(self.own.object_copies()).max(count(self.parent.object_copies()))
    }

    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let copies = match self.is_inherited(id) {
            true => self.parent.object_copies(),
            false => self.own.object_copies(),
        };
        match copies {
            Some(copies) => copies.read_object_copy(copy, id, offset, into),
            // The one that there is.
            None => self.read_object(id, offset, into),
        }
    }
}

impl<O: ImmutableObjects + ?Sized> ImmutableObjects for BranchObjects<O> {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        if self.is_inherited(id) {
            return Err(HomeError::Unsupported("objects of a branch's parent"));
        }
        self.own.put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.own.list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        match self.is_inherited(id) {
            // The parent removes it, when nobody needs it any more.
            true => Ok(()),
            false => self.own.remove_object(id),
        }
    }
}
