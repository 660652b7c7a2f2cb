//! The lanes of a home: what appends and what reads ask for, and the contracts that both rest on.
//!
//! Appending ([`LaneAppends`], [`InlineAppends`]) and the segments that appends have left ([`LaneSegments`]) are two
//! interfaces: a lane of the log needs the first one only, recovery's scan the second one.
//!
//! Does not: know blocks, entries or checksums; those are the `wal` crate's.

use crate::error::{HomeError, NoRoom};
use crate::room_request::RoomRequest;
use logstead_env::Buffer;
use logstead_types::LaneId;
use std::fmt;

/// A place in a lane: a segment, and a byte offset in it. Ordered as the lane is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position {
    /// Number of the segment in its lane, counted from 0, never used twice.
    pub segment: u64,
    /// Byte offset in the segment.
    pub offset: u64,
}

impl Position {
    /// The start of a segment.
    pub const fn start_of(segment: u64) -> Position {
        Position { segment, offset: 0 }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "segment {} offset {}", self.segment, self.offset)
    }
}

/// When a lane goes on in its next segment: with the append that would be one more than `appends_max`, or would end
/// behind `size_bytes`, or that follows [`SegmentRollover::end_segment`]. Homes with the same rule give the same
/// appends the same places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollover {
    /// Most appends in a segment.
    pub appends_max: u64,
    /// Most bytes in a segment.
    pub size_bytes: u64,
}

impl Rollover {
    /// The rule that suits both.
    pub fn min(self, other: Rollover) -> Rollover {
        Rollover {
            appends_max: self.appends_max.min(other.appends_max),
            size_bytes: self.size_bytes.min(other.size_bytes),
        }
    }

    /// The place of an append of `len` bytes in a lane whose present segment has had `appends` of them, up to `next`.
    pub fn place(&self, next: Position, appends: u64, len: u64) -> Position {
        let ends = next.offset.checked_add(len);
        if appends >= self.appends_max || ends.is_none_or(|end| end > self.size_bytes) {
            Position::start_of(next.segment + 1)
        } else {
            next
        }
    }
}

/// What a home is like; constant over its life, but for what [`SegmentRollover::limit_segments`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HomeCapabilities {
    /// Lengths and positions of appends are multiples of this.
    pub block_alignment: usize,
    /// Bytes per append beyond which waiting for more brings no throughput.
    pub block_size_preferred: usize,
    /// Largest room that `ensure_room` may be asked for, and largest append.
    pub room_size_bytes_max: u64,
    /// Appends of one lane that are worth having in flight together; 1 where each must wait for the one before it.
    pub appends_in_flight_max: usize,
    /// How long an append of the preferred size takes when nothing else is going on: for defaults, never for
    /// correctness.
    pub append_latency_expected_us: u32,
    /// No kernel keeps other machines out: a lease in the manifest and [`LaneSegments::fence`] decide who writes here.
    pub leased: bool,
}

/// A segment as it lies in the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentInfo {
    /// Its number in the lane.
    pub segment: u64,
    /// Its length in bytes, the unwritten zeros at its end included.
    pub size_bytes: u64,
}

/// Called exactly once with the buffer given to [`LaneAppends::append`] and the outcome, on a thread of the home,
/// without any lock of the home held.
pub type Completion = Box<dyn FnOnce(Buffer, Result<(), HomeError>) + Send>;

/// Called when `ensure_room`, refused before, may answer otherwise now. Without any lock of the home held.
pub type RoomListener = Box<dyn Fn() + Send + Sync>;

/// Appends to lanes.
///
/// **Order.** The places of one lane's appends are claimed in order by [`place`](Self::place), and follow one another
/// without holes except at the end of a segment. Up to [`HomeCapabilities::appends_in_flight_max`] appends of one lane
/// may be claimed or in flight together; those may be given and complete in any order. Nothing relates appends of
/// different lanes.
///
/// **Atomicity.** An append is not atomic: a crash may leave any part of it, and the caller's checksums tell. Nothing
/// but a crash changes what lies behind the last append of a segment (see *Recycled segments* at [`LaneSegments`]).
///
/// **Durability.** `Ok` from an append means that its bytes survive any crash. An error means that nothing is known
/// about them: the caller stops appending to this lane for good. No home retries a failed local write.
///
/// **Fencing.** An append by a process that lost the home fails with [`HomeError::Fenced`]; see [`LaneSegments`].
///
/// **Failure.** A full home shows in `ensure_room` only, before anything depends on it, and passes when space is
/// freed. While [`is_short_of_space`](Self::is_short_of_space), room is left for what frees space. An append within
/// ensured room is never refused for lack of space.
pub trait LaneAppends: Send + Sync {
    /// What this home is like.
    fn capabilities(&self) -> HomeCapabilities;

    /// Opens a lane for appending at the start of segment `first_segment`, which must be fresh: no segment of that or a
    /// higher number may exist. When it returns, the first segment is there; later ones are prepared in the background.
    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom>;

    /// Sets who is told when room may have come up in `lane`. At most once per lane, before its first `ensure_room`.
    fn set_room_listener(&self, lane: LaneId, listener: RoomListener);

    /// `Ok`: appends from the next place on, whose aligned lengths sum to at most `bytes`, find room whatever happens.
    /// Costs no I/O; may start some in the background.
    ///
    /// [`NoRoom::DiskFull`] is what an attempt found that began after the first time that `request` was handed in,
    /// never what an earlier one did: room may have come up since. Who hears [`NoRoom::Busy`] and asks again with the
    /// same `request` each time the listener is told hears one of the other answers after two attempts at most: the
    /// one under way when they asked, and the next.
    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        request: &mut RoomRequest,
    ) -> Result<(), NoRoom>;

    /// Is the room that is left kept for what frees room: for transactions that remove, and for the checkpoint after
    /// them? Who writes more is refused then as by a full disk. Costs a load while there is plenty; else it looks at
    /// the machine again, so the answer is never an old one.
    fn is_short_of_space(&self) -> bool;

    /// How many bytes there is room for, if the home knows.
    fn free_bytes(&self) -> Option<u64>;

    /// Claims the place of the next append of `len` bytes (a multiple of the alignment). Covered by `ensure_room`, it
    /// does not fail; otherwise it may. Costs no I/O and calls nobody back: lanes call it under their lock.
    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError>;

    /// Appends the first `len` bytes of `block` at the place claimed for them. `done` may be called before this
    /// returns.
    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion);
}

/// Appends in the caller's thread: of homes at which one takes so little time (tens of microseconds) that a worker may
/// do it itself.
pub trait InlineAppends: Send + Sync {
    /// As [`LaneAppends::append`], but when this returns it is done.
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError>;
}

/// Homes of which places follow from lengths alone, so that several can give the same appends the same places. Where
/// places hang on more (how much room a disk has) there is no such rule.
pub trait SegmentRollover: Send + Sync {
    /// By what rule places follow from lengths.
    fn rollover(&self) -> Rollover;

    /// Ends segments by this rule from now on. Before the first lane is opened; the rule is at most the present one,
    /// which it replaces.
    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError>;

    /// Ends the present segment of a lane, whatever room is left there: the next append begins the one after, and room
    /// is ensured for it there. Changes nothing where the present segment has had no append yet, and may be repeated.
    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError>;
}

/// The segments that appends to lanes have left: to be listed, read, and at a start or after a checkpoint changed.
///
/// **Recycled segments.** Behind the last append of a segment lie zeros, or bytes that were appended earlier to a
/// segment of the same lane that has been trimmed since. Who reads must tell such stale bytes from appended ones by
/// what they say. The log can: a block names its database, epoch, lane and number and carries the checksum of the one
/// before; numbers of a lane and epoch only grow, so a stale block's number is below every one that is still looked
/// for, and it can neither continue the chain nor be taken for a later block that proves a missing one.
///
/// **Reading beside a writer.** An append that has succeeded when [`list_segments`](Self::list_segments) is called is
/// found by it and by every read that follows, also when another process has made it, and also if the same place was
/// read before and was empty. Readers that take a moment of the log rest on this.
///
/// **Fencing.** A home with a kernel's lock is held open for writing by at most one process at a time; opening says so
/// if another one does. Where [`HomeCapabilities::leased`], opening says nothing: the manifest, taken by compare and
/// swap, says who may write, and whoever takes over fences every lane before it reads it (T3).
pub trait LaneSegments: Send + Sync {
    /// Shuts other processes out of a lane, from its segment `first_segment` on. When it returns: no append there that
    /// had not succeeded by then ever will, no process can open a further segment there, and reading finds all that did
    /// succeed. What lies behind the last append then begins with no block's magic. May be repeated. `by` is for
    /// people.
    ///
    /// Only segments whose numbers have the same upper 32 bits are meant: where fences are needed, these count epochs,
    /// and a start that was paused and overtaken before its fence must not hit the lanes of the server that overtook
    /// it.
    ///
    /// Where the kernel's lock keeps others out, there is nothing to do.
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError>;

    /// Lanes that have segments, or side segments only: their entries may be in other lanes.
    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError>;

    /// The segments of a lane, by number; empty if there is no such lane.
    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError>;

    /// Reads up to `into.capacity()` bytes at `at` (aligned); less only at the segment's end. A missing segment reads
    /// as 0.
    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError>;

    /// Writes bytes again where they already are, durably: recovery makes sure of a lane's tail with it (the bytes it
    /// read may come from a cache that never reached the disk, or from one copy of several: T7). Lengths and offset
    /// aligned. A fenced lane's too: what is read there afterwards is these bytes. Where a copy of several is
    /// completed, nothing need be there, not even the segment: it is made, and lists from then on.
    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError>;

    /// Gives back the unused end of a segment that will never be appended to again: bytes from `at` on. Durable.
    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError>;

    /// Removes a whole segment. Removing a missing one is fine. Of a lane that is open, any segment before the one that
    /// the next append goes to may be removed once every append to it has completed; the appends that follow do not
    /// notice. Where a copy of several has not got so far, its segment goes, and is listed, later. A crash shortly
    /// afterwards may bring a removed segment back.
    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError>;
}
