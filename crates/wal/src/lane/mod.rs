//! A lane: one append-only stream of blocks, double buffered, with one block in flight.
//!
//! Invariants:
//! - One block of a lane is in flight at a time, so *hardened* (this block and all earlier ones durable, T2) is what each
//!   completion says, and every header's `durable_through` is its own block number.
//! - A flush carries its own end: bytes pushed while a block is in flight belong to the next block, and become durable
//!   only with that one.
//! - `first_not_durable` is at most the CSN of every entry that was pushed and is not hardened. `push` publishes it before
//!   it returns.
//! - Reserved rooms and buffered bytes together fit the buffer, and find place at the home whatever the grouping into
//!   blocks (each reserved room is counted as a block of its own): so `push` and the flush of what was pushed cannot fail
//!   for lack of space.
//! - After an error of the home nothing becomes durable any more; the listener is told once.
//! - Listener and wakers are called without the lock.
//!
//! Does not: decide when to flush, or retry.

mod buffer;
mod errors;
mod side;

pub use errors::{LaneError, NoRoom};

use crate::block::{HEADER_LEN, Header};
use crate::entry::{self, Body, DEPS_LIST_MAX, Deps, SideRef};
use buffer::Building;
use logstead_env::abort_on_panic;
use logstead_home::{Buffer, HomeError, LogHome, Position};
use logstead_types::{BlockNo, Csn, DatabaseId, Epoch, LaneId};
use parking_lot::Mutex;
pub use side::{Side, SideDone};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

/// `first_not_durable` when everything is durable.
const NOTHING_PENDING: u64 = u64::MAX;

/// Sizes of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneConfig {
    /// Size of each of the two buffers.
    pub buffer_size_bytes: usize,
}

impl Default for LaneConfig {
    fn default() -> LaneConfig {
        LaneConfig {
            buffer_size_bytes: 1 << 20,
        }
    }
}

/// Identity and start of a lane.
#[derive(Clone, Copy, Debug)]
pub struct LaneStart {
    /// The database.
    pub database: DatabaseId,
    /// This life of the server.
    pub epoch: Epoch,
    /// The lane.
    pub lane: LaneId,
}

/// Who writes a sealed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushMode {
    /// The calling thread, which waits for the home (homes with short writes; others are handed off to).
    Inline,
    /// The lane's writer.
    Handoff,
}

/// What a call of [`Lane::flush`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlushOutcome {
    /// There was nothing to flush.
    Clean,
    /// What was buffered is durable.
    Durable,
    /// What was buffered is on its way.
    Started,
    /// A block is in flight; the flush goes on by itself when that has completed.
    Queued,
    /// The lane has failed.
    Failed,
}

/// What the listener hears.
#[derive(Clone, Debug)]
pub enum LaneEvent {
    /// `first_not_durable` has moved.
    Durable,
    /// Someone waited for room, and there may be some.
    Room,
    /// The home failed: nothing becomes durable any more, the process must stop.
    Failed(Arc<LaneError>),
}

/// Hears what happens to a lane.
pub type LaneListener = Box<dyn Fn(LaneEvent) + Send + Sync>;

/// Counts since the lane was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneCounters {
    /// Blocks durable.
    pub blocks: u64,
    /// Bytes written, padding included.
    pub bytes: u64,
    /// Bytes of entries in them.
    pub payload_bytes: u64,
    /// Entries in them.
    pub entries: u64,
    /// Blocks written in the thread of the caller.
    pub flushes_inline: u64,
    /// Blocks written by the lane's writer.
    pub flushes_handed_off: u64,
    /// Side segments written.
    pub sides: u64,
}

/// A lane. Clones are handles to the same lane.
#[derive(Clone)]
pub struct Lane {
    shared: Arc<Shared>,
}

struct Shared {
    home: Arc<dyn LogHome>,
    start: LaneStart,
    alignment: u64,
    /// Bytes of entries one block can hold.
    payload_size_max: usize,
    room_size_max: u64,
    inline_offered: bool,
    first_not_durable: AtomicU64,
    side_ids: AtomicU64,
    listener: OnceLock<LaneListener>,
    state: Mutex<State>,
}

struct State {
    building: Building,
    /// The other buffer, unless it is in flight.
    spare: Option<Buffer>,
    /// Lowest CSN of the block in flight.
    in_flight: Option<Csn>,
    /// Bytes of rooms given out and not yet used.
    reserved_bytes: usize,
    /// What those rooms may take at the home.
    reserved_at_home_bytes: u64,
    /// Someone asked for a flush while a block was in flight.
    flush_asked: bool,
    next_block: u64,
    previous_header_crc: u32,
    waiters: Vec<Waker>,
    failed: Option<Arc<LaneError>>,
    counters: LaneCounters,
    scratch: Vec<u8>,
    head: Vec<u8>,
}

/// A block on its way out of the lock.
struct Sealed {
    building: Building,
    /// Its length, padding included, and its place at the home.
    len: u64,
    at: Result<Position, HomeError>,
    block: u64,
    previous_header_crc: u32,
}

impl Shared {
    fn padded(&self, payload: usize) -> u64 {
        ((HEADER_LEN + payload) as u64).next_multiple_of(self.alignment)
    }

    fn tell(&self, event: LaneEvent) {
        if let Some(listener) = self.listener.get() {
            listener(event);
        }
    }

    fn wake(&self, waiters: Vec<Waker>) {
        if waiters.is_empty() {
            return;
        }
        for waker in waiters {
            waker.wake();
        }
        self.tell(LaneEvent::Room);
    }

    fn fail(&self, error: HomeError) -> Arc<LaneError> {
        let error = Arc::new(LaneError {
            lane: self.start.lane,
            source: error,
        });
        let waiters = {
            let mut state = self.state.lock();
            if let Some(first) = &state.failed {
                return Arc::clone(first);
            }
            state.failed = Some(Arc::clone(&error));
            std::mem::take(&mut state.waiters)
        };
        self.tell(LaneEvent::Failed(Arc::clone(&error)));
        self.wake(waiters);
        error
    }

    /// Takes what is buffered out of the lock's reach. Nothing may be in flight.
    fn seal(&self, state: &mut State) -> Option<Sealed> {
        debug_assert!(state.in_flight.is_none(), "one block in flight");
        if state.building.is_empty() || state.failed.is_some() {
            return None;
        }
        let spare = state.spare.take()?;
        let building = std::mem::replace(&mut state.building, Building::new(spare));
        state.in_flight = Some(building.csn_lowest);
        state.flush_asked = false;
        // Claimed under the lock: whoever asks for room next must not count on the place of these bytes.
        let len = self.padded(building.payload_len());
        let sealed = Sealed {
            len,
            at: self.home.place(self.start.lane, len),
            building,
            block: state.next_block,
            previous_header_crc: state.previous_header_crc,
        };
        state.next_block += 1;
        Some(sealed)
    }

    /// Writes header and padding; returns the length to write and the header's checksum.
    fn finish(&self, sealed: &mut Sealed) -> (usize, u32) {
        let building = &mut sealed.building;
        let header = Header {
            database: self.start.database,
            epoch: self.start.epoch,
            lane: self.start.lane,
            block: BlockNo(sealed.block),
            // One block in flight: all before this one are durable.
            durable_through: sealed.block,
            payload_len: building.payload_len() as u32,
            entries: building.entries,
            csn_lowest: building.csn_lowest,
            csn_highest: building.csn_highest,
            payload_crc: crc32c::crc32c(building.payload()),
            previous_header_crc: sealed.previous_header_crc,
        };
        let (bytes, crc) = header.encode();
        // The buffer's capacity is a multiple of the alignment, so the padded length fits a usize.
        let len = sealed.len as usize;
        building.close(&bytes, len);
        (len, crc)
    }

    fn write_inline(self: &Arc<Self>, mut sealed: Sealed) -> FlushOutcome {
        // The block would stay in flight for ever, and everybody who waits for it with it.
        let _watch = abort_on_panic("writing the log");
        let (len, crc) = self.finish(&mut sealed);
        let written = sealed.at.clone().and_then(|at| {
            self.home
                .append_inline(self.start.lane, at, sealed.building.buffer(), len)
        });
        let done = Done::of(&sealed, len, crc, true);
        self.complete(sealed.building.into_buffer(), done, written)
    }

    fn write_handed_off(self: &Arc<Self>, mut sealed: Sealed) {
        let (len, crc) = self.finish(&mut sealed);
        let done = Done::of(&sealed, len, crc, false);
        match sealed.at {
            Ok(at) => {
                let shared = Arc::clone(self);
                let completion = move |buffer, result| {
                    shared.complete(buffer, done, result);
                };
                let buffer = sealed.building.into_buffer();
                self.home
                    .append(self.start.lane, at, buffer, len, Box::new(completion));
            }
            Err(error) => {
                self.fail(error);
            }
        }
    }

    /// The home has answered for the block in flight.
    fn complete(
        self: &Arc<Self>,
        buffer: Buffer,
        done: Done,
        result: Result<(), HomeError>,
    ) -> FlushOutcome {
        if let Err(error) = result {
            // The block stays in flight for good: its CSNs never become durable.
            self.fail(error);
            return FlushOutcome::Failed;
        }
        let (next, waiters) = {
            let mut state = self.state.lock();
            if state.failed.is_some() {
                return FlushOutcome::Failed;
            }
            state.in_flight = None;
            state.spare = Some(buffer);
            state.previous_header_crc = done.header_crc;
            let counters = &mut state.counters;
            counters.blocks += 1;
            counters.bytes += done.len as u64;
            counters.payload_bytes += done.payload_len as u64;
            counters.entries += u64::from(done.entries);
            if done.inline {
                counters.flushes_inline += 1;
            } else {
                counters.flushes_handed_off += 1;
            }
            let lowest = if state.building.is_empty() {
                NOTHING_PENDING
            } else {
                state.building.csn_lowest.get()
            };
            self.first_not_durable.store(lowest, Ordering::SeqCst);
            let next = if state.flush_asked {
                self.seal(&mut state)
            } else {
                None
            };
            state.flush_asked = false;
            let waiters = std::mem::take(&mut state.waiters);
            (next, waiters)
        };
        // The next write starts before anyone hears of this one: the disk should not idle meanwhile.
        if let Some(sealed) = next {
            self.write_handed_off(sealed);
        }
        self.tell(LaneEvent::Durable);
        self.wake(waiters);
        FlushOutcome::Durable
    }
}

/// What a completion needs to know of its block.
#[derive(Clone, Copy)]
struct Done {
    len: usize,
    payload_len: usize,
    entries: u32,
    header_crc: u32,
    inline: bool,
}

impl Done {
    fn of(sealed: &Sealed, len: usize, header_crc: u32, inline: bool) -> Done {
        let building = &sealed.building;
        Done {
            len,
            payload_len: building.payload_len(),
            entries: building.entries,
            header_crc,
            inline,
        }
    }
}

impl Lane {
    /// A lane that starts with block 0 at the place where `home` has opened it.
    pub fn new(home: Arc<dyn LogHome>, start: LaneStart, config: LaneConfig) -> Lane {
        let facts = home.facts();
        let size = config
            .buffer_size_bytes
            .max(HEADER_LEN * 2)
            .next_multiple_of(facts.block_alignment);
        // The home must be able to promise room for a whole buffer.
        let size = size.min(usize::try_from(facts.room_size_bytes_max).unwrap_or(usize::MAX));
        let state = State {
            building: Building::new(Buffer::zeroed(size)),
            spare: Some(Buffer::zeroed(size)),
            in_flight: None,
            reserved_bytes: 0,
            reserved_at_home_bytes: 0,
            flush_asked: false,
            next_block: 0,
            previous_header_crc: 0,
            waiters: Vec::new(),
            failed: None,
            counters: LaneCounters::default(),
            scratch: Vec::new(),
            head: Vec::new(),
        };
        let shared = Arc::new(Shared {
            start,
            alignment: facts.block_alignment as u64,
            payload_size_max: size - HEADER_LEN,
            room_size_max: facts.room_size_bytes_max,
            inline_offered: facts.writes_are_short,
            first_not_durable: AtomicU64::new(NOTHING_PENDING),
            side_ids: AtomicU64::new(0),
            listener: OnceLock::new(),
            state: Mutex::new(state),
            home,
        });
        // Weak: the home must not keep the lane, and through it itself, alive.
        let weak = Arc::downgrade(&shared);
        let told = move || {
            if let Some(shared) = weak.upgrade() {
                let waiters = std::mem::take(&mut shared.state.lock().waiters);
                shared.wake(waiters);
            }
        };
        shared.home.set_room_listener(start.lane, Box::new(told));
        Lane { shared }
    }

    /// The lane's number.
    pub fn id(&self) -> LaneId {
        self.shared.start.lane
    }

    /// Sets who hears of this lane's events; only the first call counts. The listener is called without any lock held,
    /// possibly inside `flush`, `room` and `push`'s callers' threads, and must not block.
    pub fn set_listener(&self, listener: LaneListener) {
        let _only_the_first_counts = self.shared.listener.set(listener);
    }

    /// Most bytes of records that go into the lane itself; more go into a side segment first.
    pub fn inline_size_max(&self) -> usize {
        self.shared.payload_size_max / 4
    }

    /// Takes place for an entry with `bytes` bytes of records, in the buffer and at the home. After this nothing that
    /// the entry needs can run out. The room is given back when dropped unused.
    ///
    /// On `Full` and `Busy` disk preparation: register with [`Lane::wait_room`], then call this again, then park.
    pub fn room(&self, bytes: usize) -> Result<Room, NoRoom> {
        let shared = &self.shared;
        if bytes > self.inline_size_max() {
            return Err(NoRoom::TooLarge);
        }
        let need = bytes + entry::OVERHEAD_MAX;
        let need_at_home = shared.padded(need);
        let (wanted_at_home, full) = {
            let mut state = shared.state.lock();
            if let Some(error) = &state.failed {
                return Err(NoRoom::Failed(Arc::clone(error)));
            }
            let building = state.building.payload_len();
            let wanted = shared.padded(building) + state.reserved_at_home_bytes + need_at_home;
            if building + state.reserved_bytes + need > shared.payload_size_max
                || wanted > shared.room_size_max
            {
                // Whoever fills the buffer must not wait for somebody else's flush.
                let sealed = if state.in_flight.is_none() {
                    shared.seal(&mut state)
                } else {
                    None
                };
                state.flush_asked |= sealed.is_none() && !state.building.is_empty();
                (0, Some(sealed))
            } else {
                state.reserved_bytes += need;
                state.reserved_at_home_bytes += need_at_home;
                (wanted, None)
            }
        };
        if let Some(sealed) = full {
            if let Some(sealed) = sealed {
                shared.write_handed_off(sealed);
            }
            return Err(NoRoom::Full);
        }
        let room = Room {
            shared: Arc::clone(shared),
            bytes,
            need,
            need_at_home,
        };
        // Outside the lock: a home may call back. What others reserve meanwhile, they ask for together with ours.
        match shared.home.ensure_room(shared.start.lane, wanted_at_home) {
            Ok(()) => Ok(room),
            Err(logstead_home::NoRoom::DiskFull) => Err(NoRoom::DiskFull),
            Err(logstead_home::NoRoom::Busy) => Err(NoRoom::Full),
            Err(logstead_home::NoRoom::Failed(error)) => Err(NoRoom::Failed(shared.fail(error))),
        }
    }

    /// Has `waker` woken once when room may have come up. Register first, then ask for room again, then wait: what comes up
    /// between the first refusal and the registration is not announced.
    pub fn wait_room(&self, waker: &Waker) {
        let mut state = self.shared.state.lock();
        if !state.waiters.iter().any(|known| known.will_wake(waker)) {
            state.waiters.push(waker.clone());
        }
    }

    /// Appends an entry to the buffer and publishes its CSN as not durable before returning. Does not fail, wait or do I/O.
    /// True if the lane was clean: the caller sees to a flush; else whoever made it dirty does.
    ///
    /// # Panics
    /// If the room is another lane's or smaller than the records: a bug in the commit path that would corrupt the log.
    pub fn push(&self, room: Room, csn: Csn, deps: &Deps, records: &[u8]) -> bool {
        assert!(records.len() <= room.bytes, "an entry larger than its room");
        self.push_body(room, csn, deps, &Body::Inline(records))
    }

    /// Appends the entry of a transaction whose records [`Side::finish`] has made durable. Its room was taken for 0
    /// bytes. Answers as [`Lane::push`] does.
    ///
    /// # Panics
    /// If the room is another lane's.
    pub fn push_side(&self, room: Room, csn: Csn, deps: &Deps, side: &SideRef) -> bool {
        self.push_body(room, csn, deps, &Body::Side(*side))
    }

    fn push_body(&self, mut room: Room, csn: Csn, deps: &Deps, body: &Body<'_>) -> bool {
        let shared = &self.shared;
        assert!(
            Arc::ptr_eq(shared, &room.shared),
            "the room of another lane"
        );
        assert!(
            deps.list.len() <= DEPS_LIST_MAX,
            "more dependencies than an entry may list"
        );
        assert!(csn != Csn::ZERO, "an entry needs a CSN that was drawn");
        let mut guard = shared.state.lock();
        let state = &mut *guard;
        // The room becomes bytes in the buffer: its drop has nothing left to give back.
        state.reserved_bytes -= std::mem::take(&mut room.need);
        state.reserved_at_home_bytes -= std::mem::take(&mut room.need_at_home);
        state.head.clear();
        entry::encode_head(csn, deps, body, &mut state.scratch, &mut state.head);
        let records: &[u8] = if let Body::Inline(records) = body {
            records
        } else {
            &[]
        };
        let was_clean = state.building.is_empty();
        state.building.append(csn, &state.head, records);
        let lowest = state.in_flight.map_or(state.building.csn_lowest, |csn| {
            csn.min(state.building.csn_lowest)
        });
        // The lock orders the writers; readers take one look.
        if shared.first_not_durable.load(Ordering::Relaxed) > lowest.get() {
            shared
                .first_not_durable
                .store(lowest.get(), Ordering::SeqCst);
        }
        was_clean
    }

    /// The lowest CSN pushed here that is not yet hardened; `Csn(u64::MAX)` if there is none.
    #[inline]
    pub fn first_not_durable(&self) -> Csn {
        Csn(self.shared.first_not_durable.load(Ordering::SeqCst))
    }

    /// True if entries wait in the buffer for a flush.
    pub fn is_dirty(&self) -> bool {
        !self.shared.state.lock().building.is_empty()
    }

    /// Bytes of entries that wait in the buffer.
    pub fn dirty_bytes(&self) -> usize {
        self.shared.state.lock().building.payload_len()
    }

    /// True if a block is being written.
    pub fn in_flight(&self) -> bool {
        self.shared.state.lock().in_flight.is_some()
    }

    /// The error that ended this lane, if one did.
    pub fn failure(&self) -> Option<Arc<LaneError>> {
        self.shared.state.lock().failed.clone()
    }

    /// Seals what is buffered and writes it.
    pub fn flush(&self, mode: FlushMode) -> FlushOutcome {
        let shared = &self.shared;
        let sealed = {
            let mut state = shared.state.lock();
            if state.failed.is_some() {
                return FlushOutcome::Failed;
            }
            if state.building.is_empty() {
                return if state.in_flight.is_some() {
                    FlushOutcome::Queued
                } else {
                    FlushOutcome::Clean
                };
            }
            if state.in_flight.is_some() {
                state.flush_asked = true;
                return FlushOutcome::Queued;
            }
            shared.seal(&mut state)
        };
        let Some(sealed) = sealed else {
            return FlushOutcome::Queued;
        };
        if mode == FlushMode::Inline && shared.inline_offered {
            return shared.write_inline(sealed);
        }
        shared.write_handed_off(sealed);
        FlushOutcome::Started
    }

    /// Counts since the lane was opened.
    pub fn counters(&self) -> LaneCounters {
        self.shared.state.lock().counters
    }
}

impl fmt::Debug for Lane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.first_not_durable();
        f.debug_struct("Lane")
            .field("id", &self.id())
            .field("first_not_durable", &first)
            .finish_non_exhaustive()
    }
}

/// Place for one entry. Given back when dropped.
#[must_use]
pub struct Room {
    shared: Arc<Shared>,
    bytes: usize,
    need: usize,
    need_at_home: u64,
}

impl Room {
    /// Bytes of records it holds.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        if self.need == 0 {
            return;
        }
        let waiters = {
            let mut state = self.shared.state.lock();
            state.reserved_bytes -= self.need;
            state.reserved_at_home_bytes -= self.need_at_home;
            std::mem::take(&mut state.waiters)
        };
        self.shared.wake(waiters);
    }
}

impl fmt::Debug for Room {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Room")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}
