//! A home that behaves like a storage service with given latencies and faults, from a seed.
//!
//! Owns: the service (bytes, latencies, faults) and the client in front of it, which repeats what failed for a moment
//! and settles what is in doubt. [`MODELS`] has the services; [`Fault`] what may go wrong; [`Usage`] counts requests
//! and bytes and knows what they cost.
//!
//! Two ways of time:
//! - *Real*: a thread completes appends when they are due; for benchmarks and servers (`sim://?model=s3express`).
//! - *Virtual*: no thread; [`SimulatedHome::step`] completes the earliest append and moves the clock there. Whoever
//!   calls in one thread gets one run per seed. [`SimulatedHome::crash_at`] stops the machine at any request,
//!   recovery's included.
//!
//! Invariants: `Ok` is told only of bytes that are stored, once, and never after a crash. What a crash leaves of
//! appends under way is drawn: all, nothing, or (block devices) any of their sectors. A request in the network survives
//! it.
//!
//! Does not: model a full disk, prices of storage, or reads that lie.

mod core;
mod event;
mod faults;
mod model;
mod options;
mod reader;
mod store;

pub use faults::{FAULTS, Fault, FaultRates};
pub use model::{Curve, MODELS, Model, ServiceKind};
pub use options::SimulatedOptions;
pub use reader::SimulatedReader;
pub use store::ByteStorage;

use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, PriceList, Rollover, RoomListener, RoomRequest,
    SegmentInfo, SegmentRollover, SideCompletion, SideSegments, SideWriter, Tag, Usage, immutable,
};
use core::{Request, SimCore, stopped};
use event::{Append, TimeSource};
use logstead_env::{Env, Instant, JoinHandle, SimClock, abort_on_panic, minimize_timer_slack};
use logstead_types::LaneId;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use store::Store;

/// Largest append and room.
const ROOM_BYTES_MAX: u64 = 64 << 20;

/// A side segment: its lane and number, and which attempt to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct SideKey {
    lane: LaneId,
    id: u64,
}

/// A simulated home; see the module's documentation. Clones are the same home.
#[derive(Clone)]
pub struct SimulatedHome {
    core: Arc<SimCore>,
    // After `core`: the last handle ends the thread.
    _timer: Option<Arc<Timer>>,
    inline: bool,
}

/// The thread that completes appends in real time.
struct Timer {
    core: Arc<SimCore>,
    closed: Arc<AtomicBool>,
    thread: Option<JoinHandle>,
}

impl Timer {
    fn start(core: &Arc<SimCore>, env: &Env) -> Result<Timer, HomeError> {
        let closed = Arc::new(AtomicBool::new(false));
        let (of_thread, ends) = (Arc::clone(core), Arc::clone(&closed));
        let run = move || {
            // Whoever waits for an append would wait for ever.
            let _watch = abort_on_panic("simulating a home");
            minimize_timer_slack();
            let core = of_thread;
            let mut state = core.state.lock();
            while !ends.load(Ordering::SeqCst) {
                let now = core.time.now();
                match SimCore::next_due(&state) {
                    Some(due) if due <= now => {
                        let (told, wreck) = core.fire(&mut state);
                        drop(state);
                        drop(wreck);
                        if let Some(told) = told {
                            told.complete();
                        }
                        state = core.state.lock();
                    }
                    Some(due) => {
                        let time = due.since(now);
                        core.changed.wait_for(&mut state, time);
                    }
                    None => core.changed.wait(&mut state),
                }
            }
        };
        let thread = env
            .spawn("sim-home", None, run)
            .map_err(|error| HomeError::io("starting the simulated home", error))?;
        Ok(Timer {
            core: Arc::clone(core),
            closed,
            thread: Some(thread),
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::SeqCst);
        drop(self.core.state.lock());
        self.core.changed.notify_all();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != std::thread::current().id()
        {
            // It cannot have panicked: that ends the process.
            let _ended = thread.join();
        }
    }
}

impl SimulatedHome {
    /// A home of a URL's options, in real time: `model=s3express&seed=1&scale=0.5&lost_reply=0.01`; see
    /// [`SimulatedOptions::parse`].
    pub fn open(query: &str, env: &Env) -> Result<SimulatedHome, HomeError> {
        let options = SimulatedOptions::parse(query)?;
        SimulatedHome::in_real_time(&options, env)
    }

    /// A home whose appends take their time on the environment's clock, completed by a thread.
    pub fn in_real_time(options: &SimulatedOptions, env: &Env) -> Result<SimulatedHome, HomeError> {
        let store = Store::open(&options.keep, env)?;
        let time = TimeSource::Real(Arc::clone(&env.clock));
        let core = Arc::new(SimCore::new(options, time, store));
        let timer = Timer::start(&core, env)?;
        Ok(SimulatedHome {
            inline: core.model.writes_are_short,
            _timer: Some(Arc::new(timer)),
            core,
        })
    }

    /// A home whose appends complete when [`SimulatedHome::step`] says so. It moves `clock`, which should be the
    /// environment's.
    pub fn in_virtual_time(
        options: &SimulatedOptions,
        env: &Env,
        clock: Arc<SimClock>,
    ) -> Result<SimulatedHome, HomeError> {
        let store = Store::open(&options.keep, env)?;
        let core = SimCore::new(options, TimeSource::Virtual(clock), store);
        Ok(SimulatedHome {
            core: Arc::new(core),
            _timer: None,
            inline: false,
        })
    }

    /// Lets writes of a model whose writes are short happen in the caller's thread in virtual time too.
    pub fn with_inline_writes(mut self) -> SimulatedHome {
        self.inline = self.core.model.writes_are_short;
        self
    }

    /// The service that is simulated.
    pub fn model(&self) -> &Model {
        &self.core.model
    }

    /// Requests and bytes so far.
    pub fn usage(&self) -> Usage {
        let state = self.core.state.lock();
        Usage {
            stored_bytes: state.store.stored_bytes().ok(),
            ..state.usage
        }
    }

    /// What a provider would have charged for them.
    pub fn dollars(&self) -> f64 {
        let prices = PriceList::built_in();
        let listed = prices.of(self.core.model.name);
        listed.map_or(0.0, |listed| self.usage().dollars(&listed.price))
    }

    /// When the next event is due.
    pub fn next_event(&self) -> Option<Instant> {
        SimCore::next_due(&self.core.state.lock())
    }

    /// Virtual time: moves the clock to the next event and lets it happen. False if there is none.
    pub fn step(&self) -> bool {
        let TimeSource::Virtual(clock) = &self.core.time else {
            return false;
        };
        let (told, wreck) = {
            let mut state = self.core.state.lock();
            let Some(due) = SimCore::next_due(&state) else {
                return false;
            };
            clock.advance(due.since(self.core.time.now()));
            self.core.fire(&mut state)
        };
        drop(wreck);
        if let Some(told) = told {
            told.complete();
        }
        true
    }

    /// Number of requests so far.
    pub fn requests(&self) -> u64 {
        self.core.requests()
    }

    /// The request with this number, counted as [`SimulatedHome::requests`] does, goes wrong in this way.
    pub fn fail_at(&self, request: u64, fault: Fault) {
        self.core.state.lock().faults.at(request, fault);
    }

    /// How often requests go wrong from now on.
    pub fn set_faults(&self, rates: FaultRates) {
        self.core.state.lock().faults.rates = rates;
    }

    /// Nothing is answered for so long.
    pub fn begin_outage(&self, time: Duration) {
        let until = self.core.time.now() + time;
        self.core.state.lock().outage_until = until;
    }

    /// Appends of this lane take so many times as long.
    pub fn slow_down(&self, lane: LaneId, factor: f64) {
        let state = &mut *self.core.state.lock();
        state.slow.insert(lane, factor);
        self.core.retune(state, lane);
    }

    /// Appends of this lane never complete from now on.
    pub fn kill_lane(&self, lane: LaneId) {
        let state = &mut *self.core.state.lock();
        state.dead.insert(lane);
        self.core.retune(state, lane);
    }

    /// Another writer appends to the lane's open segment, as one that takes the home over does.
    pub fn intrude(&self, lane: LaneId) -> Result<(), HomeError> {
        let mut state = self.core.state.lock();
        let segment = state.lanes.get(&lane).map_or(0, |open| open.next.segment);
        let offset = state.store.len(lane, segment)?.unwrap_or(0);
        let foreign = [0xfe; 4096];
        state
            .store
            .write(lane, Position { segment, offset }, &foreign)
    }

    /// Flips one bit of what is stored.
    pub fn flip_bit(&self, lane: LaneId, at: Position, bit: u8) -> Result<(), HomeError> {
        let mut state = self.core.state.lock();
        let mut byte = [0];
        state.store.read(lane, at, &mut byte)?;
        byte[0] ^= 1 << (bit % 8);
        state.store.write(lane, at, &byte)
    }

    /// Flips one bit of a stored object, if it is so long.
    pub fn flip_object_bit(&self, id: ObjectId, offset: u64, bit: u8) -> Result<(), HomeError> {
        let mut state = self.core.state.lock();
        state.store.flip_object_bit(id, offset, bit)
    }

    /// The machine stops at the request with this number: every later one fails, and no completion is called any more.
    pub fn crash_at(&self, request: u64) {
        self.core.state.lock().crash_at = Some(request);
    }

    /// The machine stops now.
    pub fn crash(&self) {
        let wreck = {
            let mut state = self.core.state.lock();
            self.core.stop(&mut state)
        };
        drop(wreck);
    }

    /// Has the machine stopped?
    pub fn is_down(&self) -> bool {
        self.core.state.lock().down
    }

    /// The machine starts again, with what the service has stored.
    pub fn reboot(&self) {
        let mut state = self.core.state.lock();
        state.down = false;
        state.crash_at = None;
        state.lanes.clear();
    }
}

impl HomeBackend for SimulatedHome {
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        home.inline.then(|| Arc::clone(home) as _)
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        Some(Arc::clone(home) as _)
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for SimulatedHome {
    fn describe(&self) -> String {
        self.core.name.clone()
    }

    fn report(&self) -> Vec<(String, String)> {
        let usage = self.usage();
        let count = |name: &str, value: u64| (name.to_owned(), value.to_string());
        vec![
            ("model".to_owned(), self.core.model.name.to_owned()),
            ("latency_scale".to_owned(), self.core.scale.to_string()),
            count("appends", usage.appends),
            count("append_bytes", usage.append_bytes),
            count("writes", usage.writes),
            count("write_bytes", usage.write_bytes),
            count("reads", usage.reads),
            count("read_bytes", usage.read_bytes),
            count("lists", usage.lists),
            count("deletes", usage.deletes),
            count("retries", usage.retries),
            count("settled", usage.settled),
            ("dollars".to_owned(), format!("{:.6}", self.dollars())),
        ]
    }

    fn usage(&self) -> Vec<HomeUsage> {
        vec![HomeUsage {
            home: self.describe(),
            provider: self.core.model.name.to_owned(),
            usage: SimulatedHome::usage(self),
        }]
    }
}

impl LaneAppends for SimulatedHome {
    fn capabilities(&self) -> HomeCapabilities {
        let model = &self.core.model;
        let preferred = model.block_size_preferred as u64;
        let rollover = self.core.state.lock().rollover;
        HomeCapabilities {
            block_alignment: model.block_alignment,
            block_size_preferred: model.block_size_preferred,
            room_size_bytes_max: rollover.size_bytes.min(ROOM_BYTES_MAX),
            appends_in_flight_max: model.appends_in_flight_max,
            append_latency_expected_us: (model::at(model.append, preferred) * self.core.scale)
                as u32,
            leased: false,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let not_fresh = HomeError::Misuse {
            lane,
            what: "opened at a segment that is not fresh",
        };
        let core = &self.core;
        let made = core.call(Request::Write, 0, |store| {
            let segments = store.segments(lane)?;
            if segments.iter().any(|info| info.segment >= first_segment) {
                return Err(not_fresh);
            }
            store.make_segment(lane, first_segment)
        });
        made.map_err(NoRoom::from_home)?;
        core.open(&mut core.state.lock(), lane, first_segment);
        Ok(())
    }

    // There is always room, so nobody is ever told that some came up.
    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let room_size_bytes_max = self.capabilities().room_size_bytes_max;
        let state = self.core.state.lock();
        if state.down {
            return Err(NoRoom::Failed(stopped()));
        }
        let what = if !state.lanes.contains_key(&lane) {
            "the lane is not open"
        } else if bytes > room_size_bytes_max {
            "more room asked for than an append may have"
        } else {
            return Ok(());
        };
        Err(NoRoom::Failed(HomeError::Misuse { lane, what }))
    }

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut guard = self.core.state.lock();
        let state = &mut *guard;
        if state.down {
            return Err(stopped());
        }
        let model = &self.core.model;
        let misuse = |what| HomeError::Misuse { lane, what };
        let open = state.lanes.get_mut(&lane);
        let open = open.ok_or_else(|| misuse("the lane is not open"))?;
        let rollover = state.rollover;
        if !len.is_multiple_of(model.block_alignment as u64) || len > rollover.size_bytes {
            return Err(misuse("length is not aligned or larger than a segment"));
        }
        let at = match std::mem::take(&mut open.segment_ended) {
            true => Position::start_of(open.next.segment + 1),
            false => rollover.place(open.next, open.appends_in_segment, len),
        };
        if at.segment != open.next.segment {
            // The next one was opened ahead of time.
            open.appends_in_segment = 0;
            state.store.make_segment(lane, at.segment)?;
        }
        open.next = at;
        open.next.offset += len;
        open.appends_in_segment += 1;
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let append = Append {
            lane,
            at,
            block,
            len,
            done,
            attempts: 0,
        };
        let (told, wreck) = self.core.begin(append);
        drop(wreck);
        if let Some(told) = told {
            told.complete();
        }
    }
}

impl InlineAppends for SimulatedHome {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.core.append_inline(lane, at, &block.as_slice()[..len])
    }
}

impl SegmentRollover for SimulatedHome {
    fn rollover(&self) -> Rollover {
        self.core.state.lock().rollover
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        let own = &mut self.core.state.lock().rollover;
        if own.min(rollover) != rollover {
            return Err(HomeError::Unsupported("larger segments than it has"));
        }
        *own = rollover;
        Ok(())
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let mut state = self.core.state.lock();
        let open = state.lanes.get_mut(&lane).ok_or(HomeError::Misuse {
            lane,
            what: "the lane is not open",
        })?;
        open.segment_ended = open.appends_in_segment > 0;
        Ok(())
    }
}

impl LaneSegments for SimulatedHome {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.core.call(Request::List, 0, |store| Ok(store.lanes()))
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.core
            .call(Request::List, 0, |store| store.segments(lane))
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let len = into.capacity();
        self.core.call(Request::Read, len, |store| {
            store.read(lane, at, into.as_mut_slice())
        })
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = &block.as_slice()[..len];
        if self.core.model.kind == ServiceKind::Objects {
            // An object's bytes are durable once they can be read.
            let held = |store: &mut Store| store.holds(lane, at, bytes);
            if self.core.call(Request::Read, len, held)? {
                return Ok(());
            }
        }
        self.core.call(Request::Write, len, |store| {
            store.make_segment(lane, at.segment)?;
            store.write(lane, at, bytes)
        })
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.core
            .call(Request::Delete, 0, |store| store.seal(lane, at))
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.core
            .call(Request::Delete, 0, |store| store.trim(lane, segment))
    }
}

impl NamedValues for SimulatedHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.core.call(Request::Read, 0, |store| {
            Ok(store.name(name).map(|(bytes, tag)| (bytes, Tag(tag))))
        })
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.core.call(Request::Write, bytes.len(), |store| {
            if store.name(name).is_some() {
                return Err(HomeError::Conflict(name.to_owned()));
            }
            store.put_name(name, bytes).map(Tag)
        })
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.core.call(Request::Write, bytes.len(), |store| {
            if store.name(name).map(|(_, tag)| tag) != Some(expected.0) {
                return Err(HomeError::Conflict(name.to_owned()));
            }
            store.put_name(name, bytes).map(Tag)
        })
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for SimulatedHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        let key = SideKey { lane, id };
        let mut state = self.core.state.lock();
        if !state.down {
            state.sides.entry(key).or_default();
        }
        Box::new(SimulatedSide {
            core: Arc::clone(&self.core),
            key,
            finished: false,
        })
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let len = into.len();
        let read = |store: &mut Store| store.read_side(lane, id, offset, into);
        self.core.call(Request::Read, len, read)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.core
            .call(Request::List, 0, |store| Ok(store.sides(lane)))
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.core.call(Request::Delete, 0, |store| {
            store.remove_side_segment(lane, id)
        })
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for SimulatedHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.core.call(Request::Read, into.len(), |store| {
            Ok(immutable::copy_from(store.object(id)?, offset, into))
        })
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for SimulatedHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        let len = bytes.len();
        let put = |store: &mut Store| store.put_object(id, bytes);
        self.core.call(Request::Write, len, put)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.core
            .call(Request::List, 0, |store| Ok(store.objects()))
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.core
            .call(Request::Delete, 0, |store| store.remove_object(id))
    }
}

/// A side segment being stored: its pieces travel while it is written, it gets its name when all have arrived.
struct SimulatedSide {
    core: Arc<SimCore>,
    key: SideKey,
    finished: bool,
}

impl SideWriter for SimulatedSide {
    fn append(&mut self, piece: Vec<u8>) {
        self.core.begin_piece(self.key, &piece);
    }

    fn backlog_bytes(&self) -> usize {
        let state = self.core.state.lock();
        state.sides.get(&self.key).map_or(0, |side| side.backlog)
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(mut self: Box<Self>, done: SideCompletion) {
        self.finished = true;
        let mut state = self.core.state.lock();
        // After a crash nobody is told anything.
        if let Some(side) = state.sides.get_mut(&self.key) {
            side.finish = Some(done);
            self.core.finish_side(&mut state, self.key);
        } else {
            drop(state);
            drop(done);
        }
    }
}

impl Drop for SimulatedSide {
    fn drop(&mut self) {
        if !self.finished {
            self.core.state.lock().sides.remove(&self.key);
        }
    }
}
