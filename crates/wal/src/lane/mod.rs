//! A lane: one append-only stream of blocks, with several blocks in flight where the home allows it.
//!
//! | file | what |
//! |---|---|
//! | `buffer` | the block under construction |
//! | `insert_lock` | one entry on its way into it, under the lock |
//! | `flush` | blocks on their way: sealed, written, completed in any order, hardened in theirs |
//! | `claims` | in what order a lane's own bytes harden, whichever lane writes them |
//! | `steal` | taking along what another lane has buffered |
//! | `horizon` | what else was durable when a block was sealed |
//! | `side` | records of large transactions |
//! | `start` | from where on the log is needed for what comes next |
//! | `allocation_limit` | how far all lanes together may run ahead of durability |
//! | `times` | when the last flushes happened |
//!
//! Invariants:
//! - *Hardened* (this block and all earlier ones of the lane durable, T2) is reached in order, whatever order the home
//!   completes in; every header's `durable_through` is the number of blocks that had hardened when it was sealed.
//! - A flush carries its own end as a claim: bytes pushed while blocks are in flight belong to a later one, and become
//!   durable only with that.
//! - Cursors only grow (T14): `claimed <= pushed`, and `hardened` is the end of the last claim before the first that is
//!   not written.
//! - `first_not_durable` is at most the CSN of every entry that was pushed here and is not hardened, wherever its bytes
//!   are. `push` publishes it before it returns.
//! - GSNs grow with the cursor; `hardened_gsn` is that of the entry before `hardened`, or higher if the lane is empty.
//! - Reserved rooms and buffered bytes together fit the buffer, and find place at the home whatever the grouping into
//!   blocks (each reserved room is counted as a block of its own): so `push` and the flush of what was pushed cannot
//!   fail for lack of space.
//! - After an error of the home nothing becomes durable any more, here and in every lane whose bytes this one held; the
//!   listener is told once.
//! - Listener and wakers are called without the lock. Nobody holds two lanes' locks, but a thief that has got both
//!   without waiting.
//!
//! Does not: decide when to flush, or retry.

mod allocation_limit;
mod buffer;
mod claims;
mod errors;
mod flush;
mod horizon;
mod insert_lock;
mod interleave;
#[cfg(test)]
mod races;
mod reservation;
mod side;
mod start;
mod steal;
mod times;

pub use allocation_limit::LogAllocationLimit;
pub use errors::{LaneError, NoRoom};
pub use horizon::HorizonSource;
pub use insert_lock::LaneInsertLock;
pub use reservation::EntryReservation;
pub use times::{APPEND_CLASSES, AppendTimes, AppendTimesBySize, append_class};

use crate::block::HEADER_LEN;
use crate::entry::{self, EntryDependencies, SideRef};
use crate::feed::BlockFeed;
use crate::number_limits::{NumbersExhausted, segment_end};
use buffer::BlockBuilder;
use claims::Claims;
use flush::InFlightBlock;
use interleave::point;
use logstead_env::{Clock, Instant};
use logstead_home::{
    Buffer, HomeCapabilities, InlineAppends, LaneAppends, LogHome, RoomRequest, SideSegments,
};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use parking_lot::Mutex;
pub use side::{SideSegmentCallback, SideSegmentWriter};
use start::SealedBlocks;
use std::collections::VecDeque;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use times::FlushHistory;

/// `first_not_durable` when everything is durable.
const NOTHING_PENDING: u64 = u64::MAX;

/// Sizes of a lane.
#[derive(Clone, Debug)]
pub struct LaneConfig {
    /// Size of each buffer: the block under construction has one, and each block in flight.
    pub buffer_size_bytes: usize,
    /// Most blocks in flight at a time; as many as the home is worth at most, which is the default.
    pub blocks_in_flight_max: Option<usize>,
    /// How far the log may run ahead of durability, over all lanes that share this; without it only buffers bound it.
    pub allocation_limit: Option<Arc<LogAllocationLimit>>,
}

impl LaneConfig {
    fn blocks_in_flight_max(&self, capabilities: &HomeCapabilities) -> usize {
        let wanted = self.blocks_in_flight_max.unwrap_or(usize::MAX);
        wanted.min(capabilities.appends_in_flight_max).max(1)
    }

    /// The size of a buffer at a home like that.
    fn buffer_size(&self, capabilities: &HomeCapabilities) -> usize {
        let size = self
            .buffer_size_bytes
            .max(HEADER_LEN * 2)
            .next_multiple_of(capabilities.block_alignment);
        // The home must be able to promise room for a whole buffer.
        size.min(usize::try_from(capabilities.room_size_bytes_max).unwrap_or(usize::MAX))
    }

    /// Most bytes that the buffers of one lane take at a home like that.
    pub fn buffer_bytes_max(&self, capabilities: &HomeCapabilities) -> usize {
        let buffers = self.blocks_in_flight_max(capabilities).saturating_add(1);
        self.buffer_size(capabilities).saturating_mul(buffers)
    }
}

impl Default for LaneConfig {
    fn default() -> LaneConfig {
        LaneConfig {
            buffer_size_bytes: 1 << 20,
            blocks_in_flight_max: None,
            allocation_limit: None,
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
    /// Its first segment in this epoch.
    pub first_segment: u64,
}

/// Bytes of entries pushed into a lane since it was opened; never goes back (T14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Cursor(pub u64);

/// What a push did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushResult {
    /// The lane's cursor behind the entry: it has hardened when [`Lane::hardened`] is there.
    pub end: Cursor,
    /// The entry's GSN: larger than any before it in the lane.
    pub gsn: u64,
    /// Nothing was buffered before: the caller sees to a flush; else whoever made it dirty does.
    pub was_clean: bool,
}

/// How a lane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneStatus {
    /// Bytes of entries that wait in the buffer, stolen ones included.
    pub dirty_bytes: usize,
    /// One more block may be in flight.
    pub can_flush: bool,
    /// When the oldest of those entries was pushed.
    pub oldest_at: Option<Instant>,
}

/// When a flush happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlushTimes {
    /// Where it ended.
    pub end: Cursor,
    /// Its block was closed.
    pub sealed_at: Instant,
    /// It became durable, and everything before it.
    pub hardened_at: Instant,
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
    /// What was buffered is durable, and everything before it.
    Durable,
    /// What was buffered is on its way, or written and behind something that still is.
    Started,
    /// Nothing can be written now, or nothing is here although not everything is durable: what is on its way, in
    /// this lane's blocks or in a thief's, completes by itself, and what is buffered is written then.
    Queued,
    /// The lane has failed.
    Failed,
}

/// What the listener hears.
#[derive(Clone, Debug)]
pub enum LaneEvent {
    /// The hardened cursor has moved, and `first_not_durable` perhaps, also because a thief's block is durable. Or a
    /// block without entries is on its way no more: whoever waited for the lane to be free looks again.
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
    /// How often this lane took another's entries along.
    pub steals: u64,
    /// Bytes of those entries.
    pub stolen_bytes: u64,
    /// Rooms refused because the buffer was full.
    pub refused_full: u64,
    /// Rooms refused because the allocation limit was used up.
    pub refused_allowance: u64,
    /// Rooms refused because the home was preparing space, or had none.
    pub refused_home: u64,
    /// Claims that were written before an earlier one of the lane, and waited for it.
    pub parked: u64,
}

/// A lane. Clones are handles to the same lane.
#[derive(Clone)]
pub struct Lane {
    shared: Arc<LaneInner>,
}

struct LaneInner {
    appends: Arc<dyn LaneAppends>,
    /// Appends in the caller's thread, where the home offers them.
    inline_appends: Option<Arc<dyn InlineAppends>>,
    sides: Arc<dyn SideSegments>,
    clock: Arc<dyn Clock>,
    start: LaneStart,
    allocation_limit: Option<Arc<LogAllocationLimit>>,
    alignment: u64,
    buffer_size: usize,
    /// Bytes of entries one block can hold.
    payload_size_max: usize,
    /// Bytes of entries for which room is given: at most `payload_size_max`, and at least half of it.
    payload_limit: AtomicUsize,
    room_size_max: u64,
    /// No room is given once a block lies in this segment.
    segment_end: u64,
    blocks_in_flight_max: usize,
    /// Written under the lock, read without it.
    pushed: AtomicU64,
    hardened: AtomicU64,
    hardened_gsn: AtomicU64,
    first_not_durable: AtomicU64,
    /// Bytes of entries in the block under construction, stolen ones included.
    buffered: AtomicUsize,
    side_ids: AtomicU64,
    listener: OnceLock<LaneListener>,
    horizon_source: OnceLock<Arc<dyn HorizonSource>>,
    feed: OnceLock<Arc<BlockFeed>>,
    state: Mutex<LaneState>,
}

struct LaneState {
    building: BlockBuilder,
    /// Buffers that are not in use; those not yet needed have not been made.
    spare: Vec<Buffer>,
    /// Blocks sealed and not hardened, in order: at most `blocks_in_flight_max`.
    in_flight: VecDeque<InFlightBlock>,
    /// How many blocks have hardened; the number of the first one in flight.
    blocks_hardened: u64,
    /// Checksum of the header sealed last.
    previous_header_crc: u32,
    sealed: SealedBlocks,
    /// Bytes of entries pushed to this lane.
    pushed: u64,
    /// Up to where they have left the block under construction, in this lane's blocks or stolen.
    claimed: u64,
    /// Lowest CSN between the two.
    unclaimed_csn_lowest: Csn,
    /// GSN of the entry pushed last, or what an empty lane was raised to.
    gsn: u64,
    claims: Claims,
    flushed: FlushHistory,
    /// Bytes of rooms given out and not yet used.
    reserved_bytes: usize,
    /// What those rooms may take at the home.
    reserved_at_home_bytes: u64,
    /// What the allocation limit has given for the next rooms: what others did not need, or have given back.
    taken_in_excess_bytes: u64,
    /// Someone asked for a flush while no more blocks could be in flight.
    flush_asked: bool,
    waiters: Vec<Waker>,
    /// Somebody was refused for want of space in the buffer or the allocation limit, and has not been told of any
    /// since.
    space_wanted: bool,
    /// Somebody was refused by the allocation limit, in this life of the lane.
    allowance_wanted: bool,
    failed: Option<Arc<LaneError>>,
    counters: LaneCounters,
    /// Appends since somebody took them.
    appends: AppendTimesBySize,
    scratch: Vec<u8>,
    head: Vec<u8>,
}

impl LaneState {
    fn new(buffer: Buffer, first_segment: u64) -> LaneState {
        LaneState {
            sealed: SealedBlocks::new(first_segment),
            building: BlockBuilder::new(buffer),
            spare: Vec::new(),
            in_flight: VecDeque::new(),
            blocks_hardened: 0,
            previous_header_crc: 0,
            pushed: 0,
            claimed: 0,
            unclaimed_csn_lowest: Csn(u64::MAX),
            gsn: 0,
            claims: Claims::default(),
            flushed: FlushHistory::new(),
            reserved_bytes: 0,
            reserved_at_home_bytes: 0,
            taken_in_excess_bytes: 0,
            flush_asked: false,
            waiters: Vec::new(),
            space_wanted: false,
            allowance_wanted: false,
            failed: None,
            counters: LaneCounters::default(),
            appends: AppendTimesBySize::default(),
            // Nothing is allocated for an entry once its CSN is drawn (T12).
            scratch: Vec::with_capacity(entry::OVERHEAD_MAX),
            head: Vec::with_capacity(entry::OVERHEAD_MAX),
        }
    }

    /// Every byte pushed here is hardened.
    fn all_hardened(&self) -> bool {
        self.claimed == self.pushed && self.claims.is_empty()
    }
}

impl LaneInner {
    fn padded(&self, payload: usize) -> u64 {
        ((HEADER_LEN + payload) as u64).next_multiple_of(self.alignment)
    }

    fn notify(&self, event: LaneEvent) {
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
        self.notify(LaneEvent::Room);
    }

    fn give_back(&self, bytes: u64) {
        if let Some(allocation_limit) = &self.allocation_limit {
            allocation_limit.give_back(bytes);
        }
    }

    /// Takes `bytes` from the allocation limit, or what is missing of them. A lane that has nothing on the way may
    /// always have one entry: whoever is refused is woken by the end of something in its own lane.
    fn allow(&self, state: &mut LaneState, bytes: u64) -> bool {
        let Some(allocation_limit) = &self.allocation_limit else {
            return true;
        };
        let missing = bytes.saturating_sub(state.taken_in_excess_bytes);
        if missing > 0 && !allocation_limit.take(missing) {
            if state.reserved_bytes > 0 || !state.all_hardened() {
                return false;
            }
            allocation_limit.force(missing);
        }
        state.taken_in_excess_bytes -= bytes - missing;
        true
    }
}

impl Lane {
    /// A lane that starts with block 0 at the place where `home` has opened it.
    pub fn new(home: LogHome, clock: Arc<dyn Clock>, start: LaneStart, config: LaneConfig) -> Lane {
        let capabilities = home.capabilities();
        let size = config.buffer_size(&capabilities);
        let shared = Arc::new(LaneInner {
            clock,
            start,
            alignment: capabilities.block_alignment as u64,
            buffer_size: size,
            payload_size_max: size - HEADER_LEN,
            payload_limit: AtomicUsize::new(size - HEADER_LEN),
            room_size_max: capabilities.room_size_bytes_max,
            segment_end: segment_end(start.epoch, capabilities.leased),
            blocks_in_flight_max: config.blocks_in_flight_max(&capabilities),
            allocation_limit: config.allocation_limit,
            pushed: AtomicU64::new(0),
            hardened: AtomicU64::new(0),
            hardened_gsn: AtomicU64::new(0),
            first_not_durable: AtomicU64::new(NOTHING_PENDING),
            buffered: AtomicUsize::new(0),
            side_ids: AtomicU64::new(0),
            listener: OnceLock::new(),
            horizon_source: OnceLock::new(),
            feed: OnceLock::new(),
            state: Mutex::new(LaneState::new(Buffer::zeroed(size), start.first_segment)),
            appends: home.appends,
            inline_appends: home.inline_appends,
            sides: home.sides,
        });
        // Weak: the home must not keep the lane, and through it itself, alive.
        let weak = Arc::downgrade(&shared);
        let told = move || {
            if let Some(shared) = weak.upgrade() {
                let waiters = std::mem::take(&mut shared.state.lock().waiters);
                shared.wake(waiters);
            }
        };
        shared.appends.set_room_listener(start.lane, Box::new(told));
        Lane { shared }
    }

    /// The lane's number.
    pub fn id(&self) -> LaneId {
        self.shared.start.lane
    }

    /// Sets who hears of this lane's events; only the first call counts. The listener is called without any lock held,
    /// possibly inside `flush`, `reservation` and `push`'s callers' threads, and must not block.
    pub fn set_listener(&self, listener: LaneListener) {
        let _only_the_first_counts = self.shared.listener.set(listener);
    }

    /// Sets who gets a copy of each block that is written; only the first call counts.
    pub fn set_feed(&self, feed: Arc<BlockFeed>) {
        let _only_the_first_counts = self.shared.feed.set(feed);
    }

    /// Uses only so many bytes of each buffer from now on, at most all of it and at least half, into which every entry
    /// fits: who wants more waits until it is flushed, as if the buffer were no larger. What is there stays.
    pub fn limit_buffer(&self, bytes: usize) {
        let most = self.shared.payload_size_max;
        let limit = bytes.saturating_sub(HEADER_LEN).clamp(most / 2, most);
        self.shared.payload_limit.store(limit, Ordering::Relaxed);
    }

    /// Most bytes of records that go into the lane itself; more go into a side segment first.
    pub fn inline_size_max(&self) -> usize {
        self.shared.payload_size_max / 4
    }

    /// Takes place for an entry with `bytes` bytes of records, in the buffer and at the home. After this nothing that
    /// the entry needs can run out. The room is given back when dropped unused.
    ///
    /// On `Full`, which says so for a full buffer, a used-up allocation limit and while the disk is being prepared:
    /// register with [`Lane::wait_room`], then call this again, then park. With the same `asked` each time, which is
    /// made for the first: it says which attempts to make room on the disk are an answer.
    pub fn room_for(
        &self,
        bytes: usize,
        asked: &mut RoomRequest,
    ) -> Result<EntryReservation, NoRoom> {
        let shared = &self.shared;
        if bytes > self.inline_size_max() {
            return Err(NoRoom::TooLarge);
        }
        let need = bytes + entry::OVERHEAD_MAX;
        let need_at_home = shared.padded(need);
        point();
        let (wanted_at_home, full) = {
            let mut state = shared.state.lock();
            if let Some(error) = &state.failed {
                return Err(NoRoom::Failed(Arc::clone(error)));
            }
            if state.sealed.segment() >= shared.segment_end {
                return Err(NumbersExhausted::Segments.into());
            }
            let building = state.building.payload_len();
            let wanted = shared.padded(building) + state.reserved_at_home_bytes + need_at_home;
            let limit = shared.payload_limit.load(Ordering::Relaxed);
            let full =
                building + state.reserved_bytes + need > limit || wanted > shared.room_size_max;
            if full || !shared.allow(&mut state, need as u64) {
                let counters = &mut state.counters;
                counters.refused_full += u64::from(full);
                counters.refused_allowance += u64::from(!full);
                state.space_wanted = true;
                state.allowance_wanted |= !full;
                // Whoever fills the buffer must not wait for somebody else's flush.
                let sealed = shared.seal(&mut state);
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
        let room = EntryReservation {
            shared: Arc::clone(shared),
            bytes,
            need,
            need_at_home,
            allowed: need as u64,
        };
        point();
        // Outside the lock: a home may call back. What others reserve meanwhile, they ask for together with ours.
        let ensured = shared
            .appends
            .ensure_room(shared.start.lane, wanted_at_home, asked);
        let Err(refused) = ensured else {
            return Ok(room);
        };
        shared.state.lock().counters.refused_home += 1;
        Err(match refused {
            logstead_home::NoRoom::DiskFull => NoRoom::DiskFull,
            logstead_home::NoRoom::Busy => NoRoom::Full,
            logstead_home::NoRoom::Unavailable => NoRoom::Unavailable,
            logstead_home::NoRoom::Failed(error) => NoRoom::Failed(shared.fail(error)),
        })
    }

    /// The same for who asks once.
    pub fn room(&self, bytes: usize) -> Result<EntryReservation, NoRoom> {
        self.room_for(bytes, &mut RoomRequest::default())
    }

    /// Has `waker` woken once when room may have come up, as the last refusals were. Register first, then ask for room
    /// again, then wait: what comes up between the first refusal and the registration is not announced. Another refusal
    /// may have another reason: register after it, too.
    pub fn wait_room(&self, waker: &Waker) {
        let mut state = self.shared.state.lock();
        // Who was refused by the home only is told by the home.
        if state.allowance_wanted
            && let Some(allocation_limit) = &self.shared.allocation_limit
        {
            allocation_limit.wait(waker);
        }
        if !state.waiters.iter().any(|known| known.will_wake(waker)) {
            state.waiters.push(waker.clone());
        }
    }

    /// Takes the lane's lock for one entry. Everything that an entry may have to wait for, or that may have to be
    /// allocated, is behind the caller then: see [`LaneInsertLock`].
    ///
    /// # Panics
    /// If the room is another lane's: a bug in the commit path that would corrupt the log.
    #[inline]
    pub fn enter(&self, room: EntryReservation) -> LaneInsertLock<'_> {
        let shared = &self.shared;
        assert!(
            Arc::ptr_eq(shared, &room.shared),
            "the room of another lane"
        );
        point();
        LaneInsertLock::new(shared, room)
    }

    /// The same for who must not wait: gives the room back if somebody has the lock.
    ///
    /// # Panics
    /// As [`Lane::enter`].
    pub fn try_enter(
        &self,
        room: EntryReservation,
    ) -> Result<LaneInsertLock<'_>, EntryReservation> {
        let shared = &self.shared;
        assert!(
            Arc::ptr_eq(shared, &room.shared),
            "the room of another lane"
        );
        point();
        LaneInsertLock::try_new(shared, room)
    }

    /// Appends an entry to the buffer and publishes its CSN as not durable before returning. Does not fail or do I/O.
    /// Its GSN is larger than the lane's last and at least `gsn_min`.
    ///
    /// # Panics
    /// As [`Lane::enter`] and [`LaneInsertLock::push`].
    pub fn push(
        &self,
        room: EntryReservation,
        csn: Csn,
        gsn_min: u64,
        deps: &EntryDependencies,
        records: &[u8],
    ) -> PushResult {
        let mut entrance = self.enter(room);
        entrance.push(csn, gsn_min, deps, records)
    }

    /// Appends the entry of a transaction whose records [`SideSegmentWriter::finish`] has made durable. Its room was
    /// taken for 0 bytes. Otherwise as [`Lane::push`].
    ///
    /// # Panics
    /// As [`Lane::push`].
    pub fn push_side(
        &self,
        room: EntryReservation,
        csn: Csn,
        gsn_min: u64,
        deps: &EntryDependencies,
        side: &SideRef,
    ) -> PushResult {
        let mut entrance = self.enter(room);
        entrance.push_side(csn, gsn_min, deps, side)
    }

    /// Bytes of entries pushed here so far.
    #[inline]
    pub fn pushed(&self) -> Cursor {
        Cursor(self.shared.pushed.load(Ordering::SeqCst))
    }

    /// Up to here they are hardened.
    #[inline]
    pub fn hardened(&self) -> Cursor {
        Cursor(self.shared.hardened.load(Ordering::SeqCst))
    }

    /// Every entry pushed here with a GSN up to this one is hardened, and every later one gets a larger GSN.
    #[inline]
    pub fn hardened_gsn(&self) -> u64 {
        self.shared.hardened_gsn.load(Ordering::SeqCst)
    }

    /// Raises the GSN of a lane whose entries are all hardened to at least `to`, so that it holds nobody back (a
    /// barrier). False if it has others.
    pub fn raise_gsn(&self, to: u64) -> bool {
        let mut state = self.shared.state.lock();
        if !state.all_hardened() || state.failed.is_some() {
            return false;
        }
        if state.gsn < to {
            state.gsn = to;
            self.shared.hardened_gsn.store(to, Ordering::SeqCst);
        }
        true
    }

    /// The lowest CSN pushed here that is not yet hardened; `Csn(u64::MAX)` if there is none.
    #[inline]
    pub fn first_not_durable(&self) -> Csn {
        Csn(self.shared.first_not_durable.load(Ordering::SeqCst))
    }

    /// True if entries wait in the buffer for a flush.
    #[inline]
    pub fn is_dirty(&self) -> bool {
        self.dirty_bytes() > 0
    }

    /// Bytes of entries that wait in the buffer, stolen ones included.
    #[inline]
    pub fn dirty_bytes(&self) -> usize {
        self.shared.buffered.load(Ordering::SeqCst)
    }

    /// How it stands, in one look.
    #[inline]
    pub fn status(&self) -> LaneStatus {
        if !self.is_dirty() {
            return LaneStatus {
                dirty_bytes: 0,
                can_flush: true,
                oldest_at: None,
            };
        }
        let state = self.shared.state.lock();
        LaneStatus {
            dirty_bytes: self.dirty_bytes(),
            can_flush: state.in_flight.len() < self.shared.blocks_in_flight_max,
            oldest_at: (!state.building.is_empty()).then_some(state.building.oldest_at),
        }
    }

    /// When the oldest entry that waits in the buffer was pushed.
    pub fn oldest_unflushed_at(&self) -> Option<Instant> {
        let state = self.shared.state.lock();
        (!state.building.is_empty()).then_some(state.building.oldest_at)
    }

    /// True if blocks are being written.
    pub fn in_flight(&self) -> bool {
        self.blocks_in_flight() > 0
    }

    /// How many blocks have been sealed and are not hardened.
    pub fn blocks_in_flight(&self) -> usize {
        self.shared.state.lock().in_flight.len()
    }

    /// How many may be.
    pub fn blocks_in_flight_max(&self) -> usize {
        self.shared.blocks_in_flight_max
    }

    /// When the entry that ends at `at` was flushed; `None` if it is not hardened yet, or long ago (the last 64 flushes
    /// are kept).
    pub fn flush_times(&self, at: Cursor) -> Option<FlushTimes> {
        self.shared.state.lock().flushed.find(at.0)
    }

    /// The error that ended this lane, if one did. It may be another lane's, which held bytes of this one.
    pub fn failure(&self) -> Option<Arc<LaneError>> {
        self.shared.state.lock().failed.clone()
    }

    /// Seals what is buffered and writes it.
    pub fn flush(&self, mode: FlushMode) -> FlushOutcome {
        let shared = &self.shared;
        point();
        let sealed = {
            let mut state = shared.state.lock();
            if state.failed.is_some() {
                return FlushOutcome::Failed;
            }
            if state.building.is_empty() {
                return if state.in_flight.is_empty() && state.all_hardened() {
                    FlushOutcome::Clean
                } else {
                    FlushOutcome::Queued
                };
            }
            let sealed = shared.seal(&mut state);
            state.flush_asked |= sealed.is_none();
            sealed
        };
        let Some(sealed) = sealed else {
            return FlushOutcome::Queued;
        };
        if mode == FlushMode::Inline
            && let Some(inline) = &shared.inline_appends
        {
            return shared.write_inline(inline.as_ref(), sealed);
        }
        shared.write_handed_off(sealed);
        FlushOutcome::Started
    }

    /// How long the appends took that have completed since the last call.
    pub fn take_appends(&self) -> AppendTimesBySize {
        std::mem::take(&mut self.shared.state.lock().appends)
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
