//! The homes of the log: where lanes, side segments, small named things and immutable objects live.
//!
//! A *home* stores bytes and promises what happens to them when the machine stops. It knows positions and lengths, and
//! nothing of blocks, entries or transactions: that is the `wal` crate's. [`LogHome`] is the whole interface; each home
//! passes the one conformance suite in [`conformance`].
//!
//! | home | opened by | where | fencing |
//! |---|---|---|---|
//! | [`LocalHome`] | `file:///dir`, or a plain path | preallocated files written with O_DIRECT and O_DSYNC | the kernel's lock on `DIR/lock` |
//! | [`MemoryHome`] | `memory:` | this process | none needed |
//! | [`ObjectHome`] | a bucket ([`bucket`]) | objects that are appended to, or one per append | a lease, and [`LogHome::fence`] |
//!
//! [`open()`] turns a URL into a home. [`CachedHome`] puts a cache of objects' blocks on the local disk around one.
#![forbid(unsafe_code)]

#[macro_use]
mod through;

mod asked;
mod branch;
pub mod bucket;
mod cache;
pub mod conformance;
mod error;
mod immutable;
mod local;
mod memory;
mod objects;
mod open;
mod prices;
mod replicated;
pub mod simulated;
mod usage;

pub use asked::RoomRequest;
pub use branch::{BranchHome, BranchObjects, ObjectSource};
pub use cache::{CacheOptions, CacheStats, CachedHome};
pub use error::{HomeError, NoRoom};
pub use immutable::{OBJECT_BYTES_MAX, ObjectId, ObjectInfo};
pub use local::{LocalHome, LocalObjects, LocalOptions, Way};
pub use memory::{HeldObjects, MemoryHome, Presence};
pub use objects::{Hand, ObjectHome, ObjectOptions, Timer};
pub use open::{
    Beside, HomeOptions, check_copy, open, open_beside, open_objects, open_read_only, readers_of,
    url_below,
};
pub use prices::{Listed, Price, PriceList};
pub use replicated::{
    Ack, Opener, Purpose, ReplicatedHome, ReplicatedOptions, Source, named_in_record,
};
pub use simulated::{SimulatedHome, SimulatedOptions};
pub use usage::{HomeUsage, RequestKind, Usage};

pub use logstead_env::Buffer;
pub use logstead_types::{Epoch, LaneId};
use std::fmt;
use std::time::Duration;

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
/// behind `size_bytes`. Homes with the same rule give the same appends the same places.
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

/// What a home is like; constant over its life, but for what [`LogHome::limit_segments`] changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Lengths and positions of appends are multiples of this.
    pub block_alignment: usize,
    /// Bytes per append beyond which waiting for more brings no throughput.
    pub block_size_preferred: usize,
    /// An append takes so little time (tens of microseconds) that a worker may do it itself: `append_inline` is
    /// offered.
    pub writes_are_short: bool,
    /// Largest room that `ensure_room` may be asked for, and largest append.
    pub room_size_bytes_max: u64,
    /// Appends of one lane that are worth having in flight together; 1 where each must wait for the one before it.
    pub appends_in_flight_max: usize,
    /// How long an append of the preferred size takes when nothing else is going on: for defaults, never for
    /// correctness.
    pub append_latency_expected_us: u32,
    /// No kernel keeps other machines out: a lease in the manifest and [`LogHome::fence`] decide who writes here.
    pub leased: bool,
    /// By what rule places follow from lengths; `None` where they hang on more (how much room a disk has).
    pub rollover: Option<Rollover>,
}

/// A segment as it lies in the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentInfo {
    /// Its number in the lane.
    pub segment: u64,
    /// Its length in bytes, the unwritten zeros at its end included.
    pub size_bytes: u64,
}

/// The identity of one state of a named thing, for [`LogHome::compare_and_swap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tag(pub u64);

/// Called exactly once with the buffer given to [`LogHome::append`] and the outcome, on a thread of the home, without
/// any lock of the home held.
pub type Completion = Box<dyn FnOnce(Buffer, Result<(), HomeError>) + Send>;

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

/// Called when `ensure_room`, refused before, may answer otherwise now. Without any lock of the home held.
pub type RoomListener = Box<dyn Fn() + Send + Sync>;

/// The largest part of a side segment that a home makes of what is appended in smaller pieces.
pub(crate) const SIDE_PART_BYTES: usize = 4 << 20;

/// A place where the log lives.
///
/// **Order.** The places of one lane's appends are claimed in order by [`place`](Self::place), and follow one another
/// without holes except at the end of a segment. Up to [`Facts::appends_in_flight_max`] appends of one lane may be
/// claimed or in flight together; those may be given and complete in any order. Nothing relates appends of different
/// lanes.
///
/// **Atomicity.** An append is not atomic: a crash may leave any part of it, and the caller's checksums tell. Nothing
/// but a crash changes what lies behind the last append of a segment (see below). `put_if_absent`, `compare_and_swap`,
/// side segments and objects are atomic and durable when they report success.
///
/// **Recycled segments.** Behind the last append of a segment lie zeros, or bytes that were appended earlier to a
/// segment of the same lane that has been trimmed since. Who reads must tell such stale bytes from appended ones by
/// what they say. The log can: a block names its database, epoch, lane and number and carries the checksum of the one
/// before; numbers of a lane and epoch only grow, so a stale block's number is below every one that is still looked
/// for, and it can neither continue the chain nor be taken for a later block that proves a missing one.
///
/// **Durability.** `Ok` from an append means that its bytes survive any crash. An error means that nothing is known
/// about them: the caller stops appending to this lane for good. No home retries a failed local write.
///
/// **Reading beside a writer.** An append that has succeeded when [`segments`](Self::segments) is called is found by it
/// and by every read that follows, also when another process has made it, and also if the same place was read before
/// and was empty. Readers that take a moment of the log rest on this.
///
/// **Fencing.** A home with a kernel's lock is held open for writing by at most one process at a time; opening says so
/// if another one does. Where [`Facts::leased`], opening says nothing: the manifest, taken by compare and swap, says
/// who may write, and whoever takes over fences every lane before it reads it (T3). An append by a process that lost
/// the home fails with [`HomeError::Fenced`].
///
/// **Failure.** A full home shows in `ensure_room`, at the end of a side segment ([`NoRoom::DiskFull`]) and in `put_object`
/// ([`HomeError::is_disk_full`]) only, before anything depends on it, and passes when space is freed. While [`is_short_of_space`](Self::is_short_of_space), room is left
/// for what frees space. An append within ensured room is never refused for lack of space.
pub trait LogHome: Send + Sync {
    /// What this home is like.
    fn facts(&self) -> Facts;

    /// A name for people: where this home is.
    fn describe(&self) -> String;

    /// What people should know about how this home works here, as names and values: for the server's log and for SQL.
    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// What was asked of it since it was opened, for what it costs: one line per home that it consists of, none where
    /// requests cost nothing.
    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }

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
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        let _nobody_else = (lane, first_segment, by);
        Ok(())
    }

    /// How many copies of every lane can be read one by one, at most; more than 1 for a home of homes. Copies differ
    /// only in how far they go, in holes, and in damage.
    fn copies(&self) -> usize {
        1
    }

    /// Reads like [`read`](Self::read), from one copy (counted from 0). One that cannot be reached reads as 0 bytes.
    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        let _only_one = copy;
        self.read(lane, at, into)
    }

    /// Ends segments by this rule from now on, so that several homes give the same places. Before the first lane is
    /// opened; the rule is at most the home's own ([`Facts::rollover`], which it becomes).
    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        if self.facts().rollover == Some(rollover) {
            return Ok(());
        }
        Err(HomeError::Unsupported("segments of a given size"))
    }

    /// Can this copy be read and written now? It stays so once it cannot.
    fn has_copy(&self, copy: usize) -> bool {
        copy < self.copies()
    }

    /// Copies that may lack much of what others have: recovery completes them with
    /// [`rewrite_copy`](Self::rewrite_copy), block by block. Others lack at most the end of what the last server wrote.
    fn copies_behind(&self) -> Vec<usize> {
        Vec::new()
    }

    /// Like [`rewrite`](Self::rewrite), in one copy.
    fn rewrite_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let _only_one = copy;
        self.rewrite(lane, at, block, len)
    }

    /// Recovery has completed every copy, and is about to write its mark: they count from now on. `epoch` is the newest
    /// that had begun when the start took over: side segments of later ones belong to a server that has taken over from
    /// it, and are left alone.
    fn copies_completed(&self, epoch: Epoch) -> Result<(), HomeError> {
        let _only_one = epoch;
        Ok(())
    }

    /// Opens a lane for appending at the start of segment `first_segment`, which must be fresh: no segment of that or a
    /// higher number may exist. When it returns, the first segment is there; later ones are prepared in the background.
    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom>;

    /// Sets who is told when room may have come up in `lane`. At most once per lane, before its first `ensure_room`.
    fn set_room_listener(&self, lane: LaneId, listener: RoomListener);

    /// `Ok`: appends from the next place on, whose aligned lengths sum to at most `bytes`, find room whatever happens.
    /// Costs no I/O; may start some in the background.
    ///
    /// [`NoRoom::DiskFull`] is what an attempt found that began after the first time that `asked` was handed in, never
    /// what an earlier one did: room may have come up since. Who hears [`NoRoom::Busy`] and asks again with the same
    /// `asked` each time the listener is told hears one of the other answers after two attempts at most: the one under
    /// way when they asked, and the next.
    fn ensure_room(&self, lane: LaneId, bytes: u64, asked: &mut RoomRequest) -> Result<(), NoRoom>;

    /// Is the room that is left kept for what frees room: for transactions that remove, and for the checkpoint after them? Who writes more is refused
    /// then as by a full disk. Costs a load while there is plenty; else it looks at the machine again, so the answer is never an old one.
    fn is_short_of_space(&self) -> bool {
        false
    }

    /// How many bytes there is room for, if the home knows.
    fn free_bytes(&self) -> Option<u64> {
        None
    }

    /// Claims the place of the next append of `len` bytes (a multiple of the alignment). Covered by `ensure_room`, it does
    /// not fail; otherwise it may. Costs no I/O and calls nobody back: lanes call it under their lock.
    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError>;

    /// Appends the first `len` bytes of `block` at the place claimed for them. `done` may be called before this
    /// returns.
    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion);

    /// The same in the caller's thread, which waits. Only offered by homes whose writes are short; others answer
    /// [`HomeError::Unsupported`].
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError>;

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

    /// Lanes that have segments, or side segments only: their entries may be in other lanes.
    fn lanes(&self) -> Result<Vec<LaneId>, HomeError>;

    /// The segments of a lane, by number; empty if there is no such lane.
    fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError>;

    /// Reads up to `into.capacity()` bytes at `at` (aligned); less only at the segment's end. A missing segment reads
    /// as 0.
    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError>;

    /// Gives back the unused end of a segment that will never be appended to again: bytes from `at` on. Durable.
    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError>;

    /// Removes a whole segment. Removing a missing one is fine. Of a lane that is open, any segment before the one that
    /// the next append goes to may be removed once every append to it has completed; the appends that follow do not
    /// notice. Where a copy of several has not got so far, its segment goes, and is listed, later. A crash shortly
    /// afterwards may bring a removed segment back.
    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError>;

    /// A small named thing and the tag of its present state.
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError>;

    /// Makes a named thing; [`HomeError::Conflict`] if it exists.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError>;

    /// Replaces a named thing whose state is still `expected`; else [`HomeError::Conflict`]. After another error the
    /// old or the new state is there, never a mixture.
    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError>;

    /// A request for a named thing that has gone without an answer for so long counts as lost: it is settled by reading
    /// and made again, and each repetition is given twice the time of the one before, so that a slow store is not asked
    /// in vain for ever. For who keeps a lease there, which must not end with one lost request. Where requests cannot
    /// be lost there is nothing to do.
    fn limit_name_requests(&self, first: Duration) {
        let _answered_at_once = first;
    }

    /// Begins to store a side segment. Its number is fresh.
    fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter>;

    /// Reads `into.len()` bytes of a side segment from `offset`; less only at its end. [`HomeError::Missing`] if there
    /// is none.
    fn get_side(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;

    /// Reads like [`get_side`](Self::get_side), from one of [`copies`](Self::copies): for whoever finds bytes damaged.
    /// One that cannot be reached is an error.
    fn get_side_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let _only_one = copy;
        self.get_side(lane, id, offset, into)
    }

    /// Replaces a damaged copy of a side segment by a good one. A copy that cannot be written any more is left as it
    /// is.
    fn replace_side_copy(
        &self,
        damaged: usize,
        good: usize,
        lane: LaneId,
        id: u64,
    ) -> Result<(), HomeError> {
        let _there_is_no_other = (damaged, good, lane, id);
        Err(HomeError::Unsupported("copies of side segments"))
    }

    /// The side segments of a lane.
    fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError>;

    /// Removes a side segment. Removing a missing one is fine.
    fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError>;

    /// The same for one of this life that is not needed after all; by any thread, a completion's too: nobody waits for
    /// requests. What cannot be removed is listed by the next life, whose recovery removes it.
    fn give_up_side(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side(lane, id);
    }

    /// Stores an immutable object of up to [`OBJECT_BYTES_MAX`] bytes; it is whole and durable when this returns. One
    /// that is there with the same bytes is fine, with others it is a [`HomeError::Conflict`]. After another error, or
    /// a crash, it may be there, whole, or not, and may still come up later where requests can be delayed; never a part
    /// of it. Any number of threads.
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError>;

    /// Reads `into.len()` bytes of an object from `offset`; less only at its end, 0 behind it. [`HomeError::Missing`]
    /// if there is none. Any number of threads.
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError>;

    /// Reads like [`read_object`](Self::read_object), from one of [`copies`](Self::copies): for whoever finds bytes
    /// damaged. One that cannot be reached is an error.
    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let _only_one = copy;
        self.read_object(id, offset, into)
    }

    /// May [`read_object_copy`](Self::read_object_copy) find good bytes where [`read_object`](Self::read_object) gave
    /// damaged ones?
    fn rereads_objects(&self) -> bool {
        self.copies() > 1
    }

    /// Is an object of this number another home's, to be read there? It is not listed, and removing it does nothing.
    fn inherits(&self, id: ObjectId) -> bool {
        let _all_are_its_own = id;
        false
    }

    /// What a cache of objects' blocks holds and does, if there is one.
    fn cache(&self) -> Option<CacheStats> {
        None
    }

    /// The objects, by number. What is put or removed meanwhile may or may not be among them.
    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError>;

    /// Removes an object, whose number is never used again. Removing a missing one is fine. What was removed may come
    /// back: with a crash shortly afterwards, with a put that was delayed on its way, or with a copy that was away.
    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError>;
}
