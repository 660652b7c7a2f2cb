//! The service and the client in front of it: requests, their events in time, retries, what a crash leaves.
//!
//! An append is an event that falls due when its reply arrives; its bytes are stored at that moment, since nobody can
//! look before. A crash decides for every append under way whether its bytes were stored already.
//!
//! The client (objects only; an error of a block device is final): a transient error is answered by the same request
//! again, after a pause that doubles. When a reply does not come in time, nothing is known: the client asks for the
//! object's length. If the object ends where the append began, it is sent again. If it ends behind the append and the
//! bytes are ours, it was stored. Anything else is another writer's: fenced. An append that meets the wrong offset is
//! settled in the same way, because an own delayed request looks like a foreign one (T14).
//!
//! Invariants:
//! - A completion is called once, without the lock; never after a crash.
//! - `Ok` is told only when the store holds the bytes.
//! - In virtual time nothing here reads a real clock or starts a thread: the seed and the order of calls give the whole
//!   run.

use super::event::{Append, Delivery, Event, Scheduled, TimeSource};
use super::faults::{Fault, Faults};
use super::model::{Model, ServiceKind, at, uniform};
use super::store::Store;
use super::{SideKey, SimulatedOptions};
use crate::{HomeError, NoRoom, Position, Rollover, SideCompletion, Usage};
use logstead_env::{Instant, Random, SimRandom};
use logstead_types::LaneId;
use parking_lot::{Condvar, Mutex};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::io;
use std::time::Duration;

/// A time-out is this many medians long.
const PATIENCE: f64 = 5.0;
/// A stall takes this many medians.
const STALL: f64 = 20.0;
/// An outage takes this many medians.
const OUTAGE: f64 = 50.0;
/// The first pause before a request is repeated, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(2);
const PAUSE_MAX: Duration = Duration::from_millis(500);
/// A request in the caller's thread is answered by then, however often it fails.
const ATTEMPTS_MAX: u32 = 100;
/// What a block device writes atomically.
const SECTOR_LEN: usize = 512;

/// A lane that is open for appending.
pub(super) struct OpenLane {
    pub(super) next: Position,
    pub(super) appends_in_segment: u64,
    /// The next append begins a segment.
    pub(super) segment_ended: bool,
    in_flight: usize,
    /// How many times slower than the model.
    slowness: f64,
    /// Nothing is answered.
    dead: bool,
    random: SimRandom,
}

pub(super) struct SimState {
    pub(super) store: Store,
    pub(super) lanes: BTreeMap<LaneId, OpenLane>,
    pub(super) faults: Faults,
    pub(super) usage: Usage,
    pub(super) rollover: Rollover,
    pub(super) crash_at: Option<u64>,
    pub(super) down: bool,
    pub(super) outage_until: Instant,
    /// Bytes of side segments under way.
    pub(super) sides: BTreeMap<SideKey, SideInFlight>,
    /// Slowness asked for before the lane is open, or for its next life.
    pub(super) slow: BTreeMap<LaneId, f64>,
    pub(super) dead: BTreeSet<LaneId>,
    requests: u64,
    events: BinaryHeap<Reverse<Scheduled>>,
    order: u64,
    random: SimRandom,
    device_free_at: Instant,
}

/// A side segment between its first piece and its completion.
#[derive(Default)]
pub(super) struct SideInFlight {
    pub(super) backlog: usize,
    pub(super) bytes: Vec<u8>,
    pub(super) finish: Option<SideCompletion>,
}

pub(super) struct SimCore {
    pub(super) model: Model,
    pub(super) scale: f64,
    seed: u64,
    pub(super) time: TimeSource,
    pub(super) state: Mutex<SimState>,
    /// Something falls due earlier than before, or the home is closed.
    pub(super) changed: Condvar,
    pub(super) name: String,
}

/// The kinds of requests that are answered in the caller's thread.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Read,
    Write,
    List,
    Delete,
}

pub(super) fn stopped() -> HomeError {
    HomeError::io(
        "a request to the simulated home",
        io::Error::other("the simulated machine has stopped"),
    )
}

fn device_error() -> HomeError {
    HomeError::io(
        "a write to the simulated device",
        io::Error::other("the device reports an error"),
    )
}

impl SimCore {
    pub(super) fn new(options: &SimulatedOptions, time: TimeSource, store: Store) -> SimCore {
        let state = SimState {
            store,
            lanes: BTreeMap::new(),
            faults: Faults::new(options.faults),
            usage: Usage::default(),
            rollover: Rollover {
                appends_max: options.model.appends_per_segment,
                size_bytes: options.model.segment_size_bytes,
            },
            crash_at: None,
            down: false,
            outage_until: Instant::default(),
            sides: BTreeMap::new(),
            slow: BTreeMap::new(),
            dead: BTreeSet::new(),
            requests: 0,
            events: BinaryHeap::new(),
            order: 0,
            random: SimRandom::new(options.seed),
            device_free_at: Instant::default(),
        };
        SimCore {
            model: options.model.clone(),
            scale: options.scale,
            seed: options.seed,
            time,
            state: Mutex::new(state),
            changed: Condvar::new(),
            name: format!("a simulated {} (seed {})", options.model.name, options.seed),
        }
    }

    pub(super) fn open(&self, state: &mut SimState, lane: LaneId, first_segment: u64) {
        // Who opens this service anew goes on with a lane that is open, and perhaps has appends under way.
        let in_flight = state.lanes.get(&lane).map_or(0, |open| open.in_flight);
        let open = OpenLane {
            next: Position::start_of(first_segment),
            appends_in_segment: 0,
            segment_ended: false,
            in_flight,
            slowness: state.slow.get(&lane).copied().unwrap_or(1.0),
            dead: state.dead.contains(&lane),
            // Of its own, so that lanes do not change each other's latencies when threads race.
            random: SimRandom::new(
                self.seed ^ (u64::from(lane.get()) + 1) << 48 ^ first_segment << 16,
            ),
        };
        state.lanes.insert(lane, open);
    }

    pub(super) fn retune(&self, state: &mut SimState, lane: LaneId) {
        let slowness = state.slow.get(&lane).copied().unwrap_or(1.0);
        let dead = state.dead.contains(&lane);
        if let Some(open) = state.lanes.get_mut(&lane) {
            open.slowness = slowness;
            open.dead = dead;
        }
    }

    fn micros(&self, micros: f64) -> Duration {
        Duration::from_nanos((micros * self.scale * 1_000.0) as u64)
    }

    fn medians(&self, count: f64, len: usize) -> Duration {
        self.micros(at(self.model.append, len as u64) * count)
    }

    fn pause(&self, attempts: u32, random: &SimRandom) -> Duration {
        let full = PAUSE_MIN
            .saturating_mul(1 << attempts.min(16))
            .min(PAUSE_MAX)
            .mul_f64(self.scale);
        full.mul_f64(0.5 + uniform(random) / 2.0)
    }

    fn schedule(&self, state: &mut SimState, due: Instant, event: Event) {
        state.order += 1;
        let order = state.order;
        state.events.push(Reverse(Scheduled { due, order, event }));
        self.changed.notify_one();
    }

    /// When the device begins a write that arrives now: it does so many, and so many bytes, per second.
    fn turn(&self, state: &mut SimState, len: usize) -> Instant {
        let model = &self.model;
        let mut nanos = 0.0;
        if model.writes_per_second > 0 {
            nanos = 1e9 / f64::from(model.writes_per_second);
        }
        if model.bytes_per_second > 0 {
            nanos = f64::max(nanos, len as f64 * 1e9 / model.bytes_per_second as f64);
        }
        let turn = self.time.now().max(state.device_free_at);
        state.device_free_at = turn + Duration::from_nanos((nanos * self.scale) as u64);
        turn
    }

    /// Counts a request. True: it is the one at which the machine stops.
    fn request(&self, state: &mut SimState) -> bool {
        let crashes = SimCore::crashes(state);
        state.requests += 1;
        crashes
    }

    /// Does the machine stop at the next request? Those that storage answers by itself count, and are passed over.
    fn crashes(state: &SimState) -> bool {
        state.crash_at.is_some_and(|at| state.requests >= at)
    }

    pub(super) fn requests(&self) -> u64 {
        self.state.lock().requests
    }

    /// Begins an append; what can be told at once is returned.
    pub(super) fn begin(&self, append: Append) -> (Option<Delivery>, LostRequests) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if state.down {
            // A machine that has stopped tells nobody anything.
            return (None, LostRequests::of(append));
        }
        let in_flight_max = self.model.appends_in_flight_max;
        let lane = append.lane;
        let open = state.lanes.get_mut(&lane);
        let Some(open) = open.filter(|open| open.in_flight < in_flight_max) else {
            let error = HomeError::Misuse {
                lane,
                what: "more appends in flight than the home allows",
            };
            return (
                Some(Delivery::Append(append.done, append.block, Err(error))),
                LostRequests::default(),
            );
        };
        open.in_flight += 1;
        let wreck = self.attempt(state, append);
        (None, wreck)
    }

    /// Sends an append, for the first time or again.
    fn attempt(&self, state: &mut SimState, append: Append) -> LostRequests {
        let crashes = self.request(state);
        let number = state.requests - 1;
        state.usage.appends += 1;
        state.usage.append_bytes += append.len as u64;
        let turn = self.turn(state, append.len);
        let Some(lane) = state.lanes.get_mut(&append.lane) else {
            return LostRequests::of(append);
        };
        let model = &self.model;
        let latency = model.sample(model.append, append.len, &lane.random);
        let latency = latency.mul_f64(self.scale * lane.slowness);
        let fault = state.faults.decide(number, &lane.random);
        let (dead, late) = (lane.dead, 0.9 + uniform(&lane.random));
        let objects = model.kind == ServiceKind::Objects;
        let stall = self.medians(STALL, append.len);
        let patience = turn + self.medians(PATIENCE, append.len).max(latency);
        if fault == Some(Fault::Outage) {
            state.outage_until = turn + self.medians(OUTAGE, append.len);
        }
        let outage = turn < state.outage_until;
        let mut due = turn + latency;
        let reply = |append, stores, flips, error| Event::Reply {
            append,
            stores,
            flips,
            error,
        };
        let event = if dead {
            // Never: the far end of the clock.
            due = Instant::from_nanos(u64::MAX);
            reply(append, false, false, false)
        } else if outage && objects {
            reply(append, false, false, true)
        } else if outage {
            due = state.outage_until + latency;
            reply(append, true, false, false)
        } else {
            match fault {
                None | Some(Fault::Outage) => reply(append, true, false, false),
                Some(Fault::BitFlip) => reply(append, true, true, false),
                Some(Fault::Transient) => reply(append, false, false, true),
                Some(Fault::LostReply) if !objects => reply(append, true, false, true),
                Some(Fault::Stall) => {
                    due = turn + stall.max(latency);
                    reply(append, true, false, false)
                }
                // A device delivers what it got, once, later.
                Some(Fault::Delay | Fault::Duplicate) if !objects => {
                    due = due + latency;
                    reply(append, true, false, false)
                }
                Some(Fault::LostReply | Fault::Delay | Fault::Duplicate) => {
                    let (lane, at) = (append.lane, append.at);
                    let bytes = append.bytes().to_vec();
                    let arrives = match fault {
                        Some(Fault::LostReply) => due,
                        // Around the time at which the client has given up, asked, and sent again.
                        Some(Fault::Delay) => patience + latency.mul_f64(late),
                        _ => due + latency.mul_f64(late),
                    };
                    self.schedule(state, arrives, Event::Late { lane, at, bytes });
                    if fault == Some(Fault::Duplicate) {
                        reply(append, true, false, false)
                    } else {
                        due = patience;
                        Event::TimedOut(append)
                    }
                }
            }
        };
        self.schedule(state, due, event);
        if crashes {
            return self.stop(state);
        }
        LostRequests::default()
    }

    pub(super) fn next_due(state: &SimState) -> Option<Instant> {
        let far = Instant::from_nanos(u64::MAX);
        let Reverse(first) = state.events.peek()?;
        Some(first.due).filter(|&due| due < far)
    }

    /// Takes the earliest event, which must be due, and does what it says.
    pub(super) fn fire(&self, state: &mut SimState) -> (Option<Delivery>, LostRequests) {
        let Some(Reverse(Scheduled { event, due, .. })) = state.events.pop() else {
            return (None, LostRequests::default());
        };
        let now = self.time.now().max(due);
        let mut wreck = LostRequests::default();
        let told = match event {
            Event::Reply {
                append,
                stores,
                flips,
                error,
            } => self.reply(state, append, stores, flips, error),
            Event::TimedOut(append) => {
                if self.request(state) {
                    self.schedule(state, now, Event::Settle(append));
                    return (None, self.stop(state));
                }
                state.usage.reads += 1;
                let latency = self.read_latency(state);
                self.schedule(state, now + latency, Event::Settle(append));
                None
            }
            Event::Settle(append) => {
                let (told, again) = self.settle(state, append);
                if let Some(append) = again {
                    wreck = self.repeat(state, append);
                }
                told
            }
            Event::Retry(append) => {
                wreck = self.repeat(state, append);
                None
            }
            Event::Late { lane, at, bytes } => {
                // Refused for its offset if the object has gone on; nobody is there to hear of errors.
                if state.store.len(lane, at.segment).ok().flatten() == Some(at.offset)
                    && !state.store.is_sealed(lane, at.segment)
                {
                    let _nobody_waits = state.store.write(lane, at, &bytes);
                }
                None
            }
            Event::Piece { key, len } => {
                if let Some(side) = state.sides.get_mut(&key) {
                    side.backlog -= len;
                    self.finish_side(state, key);
                }
                None
            }
            Event::Side { key, bytes, done } => {
                let stored = state.store.put_side(key.lane, key.id, bytes);
                Some(Delivery::Side(done, stored.map_err(NoRoom::Failed)))
            }
        };
        (told, wreck)
    }

    fn repeat(&self, state: &mut SimState, mut append: Append) -> LostRequests {
        append.attempts += 1;
        state.usage.retries += 1;
        self.attempt(state, append)
    }

    fn read_latency(&self, state: &SimState) -> Duration {
        let model = &self.model;
        let sample = model.sample(model.read, 0, &state.random);
        sample.mul_f64(self.scale)
    }

    /// Is a place what an append would be accepted at?
    fn accepts(&self, state: &SimState, append: &Append) -> Result<bool, HomeError> {
        if self.model.kind == ServiceKind::Blocks {
            return Ok(true);
        }
        let len = state.store.len(append.lane, append.at.segment)?;
        Ok(len == Some(append.at.offset) && !state.store.is_sealed(append.lane, append.at.segment))
    }

    fn reply(
        &self,
        state: &mut SimState,
        append: Append,
        stores: bool,
        flips: bool,
        error: bool,
    ) -> Option<Delivery> {
        if stores {
            match self.accepts(state, &append) {
                Ok(true) => {}
                Ok(false) => {
                    let due = self.time.now() + self.read_latency(state);
                    state.usage.reads += 1;
                    self.schedule(state, due, Event::Settle(append));
                    return None;
                }
                Err(error) => return Some(self.end(state, append, Err(error))),
            }
            let stored = if flips && append.len > 0 {
                let mut bytes = append.bytes().to_vec();
                let bit = state.random.below(bytes.len() as u64 * 8);
                bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
                state.store.write(append.lane, append.at, &bytes)
            } else {
                state.store.write(append.lane, append.at, append.bytes())
            };
            if let Err(error) = stored {
                return Some(self.end(state, append, Err(error)));
            }
        }
        if !error {
            return Some(self.end(state, append, Ok(())));
        }
        if self.model.kind == ServiceKind::Blocks {
            return Some(self.end(state, append, Err(device_error())));
        }
        let due = self.time.now() + self.pause(append.attempts, &state.random);
        self.schedule(state, due, Event::Retry(append));
        None
    }

    fn end(&self, state: &mut SimState, append: Append, result: Result<(), HomeError>) -> Delivery {
        if let Some(lane) = state.lanes.get_mut(&append.lane) {
            lane.in_flight -= 1;
        }
        Delivery::Append(append.done, append.block, result)
    }

    /// What became of an append whose reply did not come: told, or to be sent again.
    fn settle(&self, state: &mut SimState, append: Append) -> (Option<Delivery>, Option<Append>) {
        let look = |state: &SimState| {
            let len = state.store.len(append.lane, append.at.segment)?;
            let holds = state.store.holds(append.lane, append.at, append.bytes())?;
            let sealed = state.store.is_sealed(append.lane, append.at.segment);
            Ok((len.unwrap_or(0), holds, sealed))
        };
        let end = append.at.offset + append.len as u64;
        match look(state) {
            Err(error) => (Some(self.end(state, append, Err(error))), None),
            Ok((len, holds, _)) if len >= end && holds => {
                state.usage.settled += 1;
                (Some(self.end(state, append, Ok(()))), None)
            }
            Ok((len, _, false)) if len == append.at.offset => (None, Some(append)),
            Ok(_) => {
                let error = HomeError::Fenced(self.name.clone());
                (Some(self.end(state, append, Err(error))), None)
            }
        }
    }

    /// Begins to store a piece of a side segment.
    pub(super) fn begin_piece(&self, key: SideKey, piece: &[u8]) {
        let mut guard = self.state.lock();
        let state = &mut *guard;
        if SimCore::crashes(state) {
            let wreck = self.stop(state);
            drop(guard);
            drop(wreck);
            return;
        }
        // What was begun before a crash has nobody any more.
        let Some(side) = state.sides.get_mut(&key) else {
            return;
        };
        side.bytes.extend_from_slice(piece);
        side.backlog += piece.len();
        let due = self.turn(state, piece.len()) + self.calls(state, Request::Write, piece.len());
        let len = piece.len();
        self.schedule(state, due, Event::Piece { key, len });
    }

    pub(super) fn finish_side(&self, state: &mut SimState, key: SideKey) {
        let ready = |side: &mut SideInFlight| side.backlog == 0 && side.finish.as_ref().is_some();
        if !state.sides.get_mut(&key).is_some_and(ready) {
            return;
        }
        if let Some(side) = state.sides.remove(&key)
            && let Some(done) = side.finish
        {
            let due = self.time.now() + self.calls(state, Request::Write, 0);
            let bytes = side.bytes;
            self.schedule(state, due, Event::Side { key, bytes, done });
        }
    }

    /// How long a request takes that is repeated until it is answered, counted and charged each time.
    fn calls(&self, state: &mut SimState, request: Request, len: usize) -> Duration {
        let mut total = Duration::ZERO;
        for attempts in 0..ATTEMPTS_MAX {
            let number = state.requests;
            state.requests += 1;
            let curve = match request {
                Request::Read | Request::List => self.model.read,
                Request::Write | Request::Delete => self.model.append,
            };
            match request {
                Request::Read => {
                    state.usage.reads += 1;
                    state.usage.read_bytes += len as u64;
                }
                Request::Write => {
                    state.usage.writes += 1;
                    state.usage.write_bytes += len as u64;
                }
                Request::List => state.usage.lists += 1,
                Request::Delete => state.usage.deletes += 1,
            }
            state.usage.retries += u64::from(attempts > 0);
            let sample = self.model.sample(curve, len, &state.random);
            total += sample.mul_f64(self.scale);
            let now = self.time.now() + total;
            match state.faults.decide(number, &state.random) {
                Some(Fault::Outage) => state.outage_until = now + self.medians(OUTAGE, len),
                Some(Fault::Stall) => total += self.medians(STALL, len),
                Some(Fault::Transient) if self.model.kind == ServiceKind::Objects => {
                    total += self.pause(attempts, &state.random);
                    continue;
                }
                // The client asks what has become of it, and finds its own.
                Some(Fault::LostReply | Fault::Delay)
                    if self.model.kind == ServiceKind::Objects =>
                {
                    state.usage.reads += 1;
                    total += self.medians(PATIENCE, len) + self.read_latency(state);
                }
                _ => {}
            }
            total += state.outage_until.since(now);
            break;
        }
        total
    }

    /// A request in the caller's thread. A crash in the middle of one that changes something may come before or after
    /// the change.
    pub(super) fn call<T>(
        &self,
        request: Request,
        len: usize,
        act: impl FnOnce(&mut Store) -> Result<T, HomeError>,
    ) -> Result<T, HomeError> {
        let time = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            if state.down {
                return Err(stopped());
            }
            if SimCore::crashes(state) {
                state.requests += 1;
                if state.random.below(2) == 0 {
                    // Nobody hears of the outcome.
                    let _unheard = act(&mut state.store);
                }
                let wreck = self.stop(state);
                drop(guard);
                drop(wreck);
                return Err(stopped());
            }
            self.calls(state, request, len)
        };
        self.time.wait(time);
        let mut state = self.state.lock();
        if state.down {
            return Err(stopped());
        }
        act(&mut state.store)
    }

    /// A write that the caller's thread waits for.
    pub(super) fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        bytes: &[u8],
    ) -> Result<(), HomeError> {
        let (due, error) = {
            let mut guard = self.state.lock();
            let state = &mut *guard;
            if state.down {
                return Err(stopped());
            }
            state.usage.appends += 1;
            state.usage.append_bytes += bytes.len() as u64;
            let crashes = self.request(state);
            let number = state.requests - 1;
            if crashes {
                self.remains(state, lane, at, bytes);
                let wreck = self.stop(state);
                drop(guard);
                drop(wreck);
                return Err(stopped());
            }
            let turn = self.turn(state, bytes.len());
            let open = state.lanes.get_mut(&lane).ok_or(HomeError::Misuse {
                lane,
                what: "the lane is not open",
            })?;
            let latency = self
                .model
                .sample(self.model.append, bytes.len(), &open.random);
            let mut due = turn + latency.mul_f64(self.scale * open.slowness);
            let fault = state.faults.decide(number, &open.random);
            match fault {
                Some(Fault::Outage) => {
                    state.outage_until = turn + self.medians(OUTAGE, bytes.len());
                }
                Some(Fault::Stall) => due = due + self.medians(STALL, bytes.len()),
                _ => {}
            }
            due = due.max(state.outage_until);
            (
                due,
                matches!(fault, Some(Fault::Transient | Fault::LostReply)),
            )
        };
        self.time.wait(due.since(self.time.now()));
        let mut state = self.state.lock();
        if state.down {
            return Err(stopped());
        }
        state.store.write(lane, at, bytes)?;
        if error { Err(device_error()) } else { Ok(()) }
    }

    /// Some of what is under way has reached the store, and its reply has not come: one append of those now, on a block
    /// device perhaps in part.
    pub(super) fn arrive_early(&self, state: &mut SimState, random: &SimRandom) {
        let under_way = state
            .events
            .iter()
            .filter_map(|Reverse(event)| match &event.event {
                Event::Reply {
                    append,
                    stores: true,
                    flips: false,
                    ..
                } => Some((event.order, append)),
                _ => None,
            });
        let mut under_way: Vec<(u64, &Append)> = under_way.collect();
        under_way.sort_by_key(|(order, _)| *order);
        let blocks = self.model.kind == ServiceKind::Blocks;
        // Half of the requests find nothing new.
        let Some((_, append)) =
            under_way.get(random.below(2 * under_way.len().max(1) as u64) as usize)
        else {
            return;
        };
        let (lane, at) = (append.lane, append.at);
        let accepted = blocks
            || (state.store.len(lane, at.segment).ok().flatten() == Some(at.offset)
                && !state.store.is_sealed(lane, at.segment));
        if !accepted {
            return;
        }
        let in_part = blocks && random.below(2) == 0;
        for (number, sector) in append.bytes().chunks(SECTOR_LEN).enumerate() {
            if in_part && random.below(2) == 0 {
                continue;
            }
            let offset = at.offset + (number * SECTOR_LEN) as u64;
            // The segment may be gone: then the write was for nobody.
            drop(state.store.write(lane, Position { offset, ..at }, sector));
        }
    }

    /// What a crash leaves of a write under way.
    fn remains(&self, state: &mut SimState, lane: LaneId, at: Position, bytes: &[u8]) {
        // An error means that the write was for nobody: the segment is gone.
        let mut write = |at, bytes: &[u8]| drop(state.store.write(lane, at, bytes));
        match (state.random.below(3), self.model.kind) {
            (0, _) => {}
            (1, _) => write(at, bytes),
            (_, ServiceKind::Objects) => {}
            (_, ServiceKind::Blocks) => {
                // A device's segments are as long as they are, whatever was written.
                let offset = at.offset + bytes.len() as u64;
                let _gone = state.store.extend(lane, Position { offset, ..at });
                let mut write = |at, bytes: &[u8]| drop(state.store.write(lane, at, bytes));
                for (number, sector) in bytes.chunks(SECTOR_LEN).enumerate() {
                    if state.random.u64() & 1 == 0 {
                        let offset = at.offset + (number * SECTOR_LEN) as u64;
                        write(Position { offset, ..at }, sector);
                    }
                }
            }
        }
    }

    /// The machine stops: decides what becomes of what is under way.
    pub(super) fn stop(&self, state: &mut SimState) -> LostRequests {
        state.down = true;
        state.crash_at = None;
        let mut wreck = LostRequests::default();
        let mut events: Vec<Scheduled> = state.events.drain().map(|Reverse(event)| event).collect();
        events.sort();
        for Scheduled { due, order, event } in events {
            match event {
                Event::Reply { append, stores, .. } => {
                    if stores && self.accepts(state, &append).unwrap_or(false) {
                        self.remains(state, append.lane, append.at, append.bytes());
                    }
                    wreck.appends.push(append);
                }
                Event::TimedOut(append) | Event::Settle(append) | Event::Retry(append) => {
                    wreck.appends.push(append);
                }
                // It is in the network: the crash does not concern it, unless it would make its own segment.
                Event::Late { lane, at, bytes } => {
                    let event = Event::Late { lane, at, bytes };
                    state.events.push(Reverse(Scheduled { due, order, event }));
                }
                Event::Piece { .. } => {}
                Event::Side { key, bytes, done } => {
                    if state.random.below(2) == 0 {
                        let _unheard = state.store.put_side(key.lane, key.id, bytes);
                    }
                    wreck.sides.push(done);
                }
            }
        }
        let unfinished = std::mem::take(&mut state.sides);
        wreck
            .sides
            .extend(unfinished.into_values().filter_map(|side| side.finish));
        state.lanes.clear();
        wreck
    }
}

/// What waited when the machine stopped. Dropped without the lock: what it holds may hold the home.
#[derive(Default)]
pub(super) struct LostRequests {
    appends: Vec<Append>,
    sides: Vec<SideCompletion>,
}

impl LostRequests {
    fn of(append: Append) -> LostRequests {
        LostRequests {
            appends: vec![append],
            sides: Vec::new(),
        }
    }
}
