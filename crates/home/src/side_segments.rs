//! Side segments: the records of large transactions, stored beside the lanes while these run.
//!
//! Does not: know records or checksums.

use crate::error::{HomeError, NoRoom};
use logstead_types::LaneId;

/// Called exactly once with the outcome of [`SideWriter::finish`].
pub type SideCompletion = Box<dyn FnOnce(Result<(), NoRoom>) + Send>;

/// A side segment being stored: the records of one large transaction, piece by piece while it runs. Dropping it instead
/// of finishing it leaves nothing that would take space for long.
pub trait SideWriter: Send {
    /// Appends a piece. Returns at once: it is written in the background, in order, and errors are told in the end.
    fn append(&mut self, piece: Vec<u8>);

    /// Bytes appended and not yet written: the caller holds back when they become many.
    fn backlog_bytes(&self) -> usize;

    /// An empty buffer whose bytes have been written, if there is one: filling it again spares an allocation.
    fn spare(&mut self) -> Option<Vec<u8>>;

    /// The segment is complete: it is durable when `done` is told `Ok`; after an error nothing is left of it.
    fn finish(self: Box<Self>, done: SideCompletion);
}

/// The largest part of a side segment that a home makes of what is appended in smaller pieces.
pub(crate) const SIDE_PART_BYTES: usize = 4 << 20;

/// The side segments of a home. One is atomic, and durable when [`SideWriter::finish`] reports success; a full home
/// shows there ([`NoRoom::DiskFull`]).
pub trait SideSegments: Send + Sync {
    /// Begins to store a side segment. Its number is fresh.
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter>;

    /// Reads `into.len()` bytes of a side segment from `offset`; less only at its end. [`HomeError::Missing`] if there
    /// is none.
    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;

    /// The side segments of a lane.
    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError>;

    /// Removes a side segment. Removing a missing one is fine.
    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError>;

    /// The same for one of this life that is not needed after all; by any thread, a completion's too: nobody waits for
    /// requests. What cannot be removed is listed by the next life, whose recovery removes it.
    fn give_up_side_segment(&self, lane: LaneId, id: u64);
}
