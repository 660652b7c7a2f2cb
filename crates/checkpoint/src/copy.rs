//! Copying a checkpoint from one home to another: the objects that its record names, and the record.
//!
//! Every frame that is copied is checked first, with the checksums inside it; where the source has several copies, any
//! that is good is taken. So a copy is never worse than what it was made of, and damage is told when there still is
//! something else to copy.
//!
//! Invariants:
//! - The record is stored last: where it lies, everything that it names lies too, whole and durable.
//! - It may be cut short anywhere and called again: an object that is there with its length is not copied again (homes
//!   show whole objects only).
//!
//! Used by `logstead backup` and `logstead restore`, of a whole log and of a restore point (`branch`).
//!
//! Does not: write a manifest, or know whose objects are in the target already. Numbers of objects mean something
//! within one database only, so the caller makes sure that the target holds objects of no other one.

use crate::directory::Directory;
use crate::error::CheckpointError;
use crate::error::{damaged, unread};
use crate::frame::{self, Header};
use crate::page_ref::PageRef;
use crate::read::read_frame;
use crate::record::{CheckpointRecord, ObjectUse};
use logstead_home::{HomeError, ImmutableObjects, ObjectId};
use logstead_wal::FormatError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What was copied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CopyStats {
    /// Objects copied, the record's among them.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Objects that were there already.
    pub found: u64,
}

impl CopyStats {
    pub(crate) fn add(&mut self, more: CopyStats) {
        self.objects += more.objects;
        self.bytes += more.bytes;
        self.found += more.found;
    }
}

/// Copies the checkpoint whose record is the object `object` with this checksum, under the same numbers: objects first,
/// then the record. `record` is what [`CheckpointRecord::read`] gave for it.
pub fn copy_checkpoint(
    from: &Arc<dyn ImmutableObjects>,
    (object, crc): (ObjectId, u32),
    record: &CheckpointRecord,
    to: &dyn ImmutableObjects,
) -> Result<CopyStats, CheckpointError> {
    let mut copied = copy_objects(from, record, to)?;
    let (_, bytes) =
        CheckpointRecord::read_with_bytes(from.as_ref(), record.database, object, crc)?;
    to.put_object(object, &bytes)?;
    copied.objects += 1;
    copied.bytes += bytes.len() as u64;
    Ok(copied)
}

/// Copies the objects that a record names, without it.
pub fn copy_objects(
    from: &Arc<dyn ImmutableObjects>,
    record: &CheckpointRecord,
    to: &dyn ImmutableObjects,
) -> Result<CopyStats, CheckpointError> {
    copy_objects_beside(from, record, to, &mut sizes_of(to)?)
}

/// The objects of a home, with their sizes.
pub(crate) fn sizes_of(home: &dyn ImmutableObjects) -> Result<BTreeMap<ObjectId, u64>, HomeError> {
    let listed = home.list_objects()?;
    let sizes = listed.iter().map(|info| (info.id, info.size_bytes));
    Ok(sizes.collect())
}

/// The same where it is known which objects are `there`, and how long they are.
pub(crate) fn copy_objects_beside(
    from: &Arc<dyn ImmutableObjects>,
    record: &CheckpointRecord,
    to: &dyn ImmutableObjects,
    there: &mut BTreeMap<ObjectId, u64>,
) -> Result<CopyStats, CheckpointError> {
    let mut copied = CopyStats::default();
    for used in &record.objects {
        if there.get(&used.object) == Some(&used.size_bytes) {
            copied.found += 1;
            continue;
        }
        let bytes = checked(from, record, used)?;
        to.put_object(used.object, &bytes)?;
        there.insert(used.object, used.size_bytes);
        copied.objects += 1;
        copied.bytes += bytes.len() as u64;
    }
    Ok(copied)
}

/// Whether the object that is in the target under the number of one of the source's is a copy of it.
pub(crate) fn is_copied(
    from: &Arc<dyn ImmutableObjects>,
    record: &CheckpointRecord,
    used: &ObjectUse,
    to: &dyn ImmutableObjects,
) -> Result<bool, CheckpointError> {
    let bytes = checked(from, record, used)?;
    let mut there = vec![0; bytes.len() + 1];
    let got = to.read_object(used.object, 0, &mut there)?;
    Ok(there.get(..got) == Some(&bytes[..]))
}

/// An object's bytes, in which everything that the record needs is good.
fn checked(
    from: &Arc<dyn ImmutableObjects>,
    record: &CheckpointRecord,
    used: &ObjectUse,
) -> Result<Vec<u8>, CheckpointError> {
    let size = used.size_bytes as usize;
    let whole = PageRef {
        object: used.object,
        offset: 0,
        len: size as u32,
        crc: 0,
    };
    let what = || "an object that is copied".to_owned();
    let mut bytes = vec![0; size];
    let got = from
        .read_object(used.object, 0, &mut bytes)
        .map_err(|error| unread(what, &whole, error))?;
    if got == size && is_intact(&bytes) {
        return Ok(bytes);
    }
    let copies = from.object_copies();
    for copy in 0..copies.map_or(0, |copies| copies.object_copy_count()) {
        let mut other = vec![0; size];
        // An error is no better than the damage that is known.
        if let Some(copies) = copies
            && matches!(copies.read_object_copy(copy, used.object, 0, &mut other), Ok(got) if got == size)
            && is_intact(&other)
        {
            return Ok(other);
        }
    }
    mended(from, record, used, bytes)
}

/// Is it one good frame after the other?
fn is_intact(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    while !rest.is_empty() {
        let Ok(header) = Header::decode(rest) else {
            return false;
        };
        let len = header.frame_len();
        if len > rest.len() || !frame::is_intact(&rest[..len], header.crc) {
            return false;
        }
        rest = &rest[len..];
    }
    true
}

/// The slow way, for an object that is whole nowhere: each frame that the record needs of it, from whichever copy has
/// it. What nobody needs may be damaged.
fn mended(
    from: &Arc<dyn ImmutableObjects>,
    record: &CheckpointRecord,
    used: &ObjectUse,
    mut bytes: Vec<u8>,
) -> Result<Vec<u8>, CheckpointError> {
    let directory = Directory::open(Arc::clone(from) as _, record.root);
    let mut frame = Vec::new();
    for at in directory.references_in(used.object)? {
        let what = || "a frame that is copied".to_owned();
        read_frame(from.as_ref(), &at, what, &mut frame)?;
        if !frame::is_intact(&frame, at.crc) {
            let why = FormatError::new("wrong checksum of a frame", 0);
            return Err(damaged(what(), &at, why));
        }
        let place = at.offset as usize..at.offset as usize + frame.len();
        let Some(place) = bytes.get_mut(place) else {
            let why = FormatError::new("a frame behind its object's end", 0);
            return Err(damaged(what(), &at, why));
        };
        place.copy_from_slice(&frame);
    }
    Ok(bytes)
}
