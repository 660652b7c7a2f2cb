//! One state of an object: its ETag, its parts, and where their bytes are.
//!
//! Invariants:
//! - Every state of an object has an ETag of its own: 128 random bits, which is as much as S3 Express says about them.
//! - An object's parts are in order and without holes.
//!
//! Does not: change objects (`store` does) or write them down (`disk` does).

use bytes::Bytes;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// The name of one state of an object.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) [u8; 16]);

impl fmt::Display for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Tag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Where the bytes of a part are.
#[derive(Clone, Debug)]
pub(crate) enum PartLocation {
    Memory(Bytes),
    /// At this offset of the object's file.
    File(u64),
}

/// What one request added to an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectPart {
    /// Its bytes in the object.
    pub(crate) range: Range<u64>,
    pub(crate) place: PartLocation,
}

/// One state of an object.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) tag: Tag,
    /// Microseconds since 2000.
    pub(crate) modified: i64,
    pub(crate) parts: Arc<Vec<ObjectPart>>,
    /// Its file's number and how far that goes, where there is a disk.
    pub(crate) file: Option<(u64, u64)>,
    /// A write failed and could not be taken back: nobody knows what the file holds until it is read again.
    pub(crate) broken: bool,
}

impl Object {
    pub(crate) fn len(&self) -> u64 {
        self.parts.last().map_or(0, |part| part.range.end)
    }
}
