//! The calls of a home as requests to a storage node.
//!
//! Invariants:
//! - A lane belongs to the connection over which it was opened: when that breaks, its appends fail for good.
//! - What changes nothing, or may be done twice, is asked again over a new connection when one breaks. A named value
//!   whose answer was lost is read, and settled by what is there.
//! - Places follow from lengths alone, by one rule, here; the node takes an append only where it follows.

mod mending;

use super::frame::FrameBody;
use super::message::{Answer, Reply, Request};
use super::session::{NodeAddress, Session};
use super::{is_done, unexpected};
use crate::usage::UsageCounters;
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, ObjectRepair, PeerCopies, Position, Rollover, RoomListener,
    RoomRequest, SegmentInfo, SegmentRollover, SideCompletion, SideSegments, SideWriter, Tag,
    immutable,
};
use logstead_env::{Env, Instant, LongMutex};
use logstead_types::LaneId;
use parking_lot::{Mutex, RwLock};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(10);
/// The same for one that moves much, or is long in the making.
const BULK_PATIENCE: Duration = Duration::from_secs(60);
/// How often an answer that was lost is asked for.
const TRIES: u32 = 3;
/// Between two attempts to reach a node that is gone.
const RECONNECT_PAUSE: Duration = Duration::from_millis(500);
/// What one request reads at most.
const READ_BYTES_MAX: usize = 4 << 20;

/// See the module's documentation.
pub struct NodeHome {
    node: NodeAddress,
    env: Env,
    capabilities: HomeCapabilities,
    rollover: Mutex<Rollover>,
    /// For appends, fences and what is short.
    short: Link,
    /// For what moves much: nothing short waits behind it.
    bulk: Link,
    lanes: RwLock<BTreeMap<LaneId, Arc<NodeLane>>>,
    name_patience: Mutex<Duration>,
    counters: Arc<UsageCounters>,
}

/// A connection, and how another one is had when it breaks.
struct Link {
    /// The one that was made last.
    session: RwLock<Arc<Session>>,
    /// When it was tried last to have another one. Held while that is tried.
    tried: LongMutex<Option<Instant>>,
}

impl Link {
    fn open(
        node: &NodeAddress,
        env: &Env,
        counters: &Arc<UsageCounters>,
    ) -> Result<Link, HomeError> {
        Ok(Link {
            session: RwLock::new(Session::open(node, env, counters)?),
            tried: LongMutex::default(),
        })
    }

    /// The connection that was made last, broken or not.
    fn present(&self) -> Arc<Session> {
        Arc::clone(&self.session.read())
    }
}

struct NodeLane {
    session: Arc<Session>,
    state: Mutex<LanePlaces>,
}

struct LanePlaces {
    next: Position,
    appends: u64,
    /// The next append begins the next segment.
    segment_ended: bool,
    /// Places that are claimed and not sent, in order, each with its append once it is given.
    claimed: VecDeque<(Position, Option<GivenAppend>)>,
}

/// A block, how much of it is appended, and who is told.
type GivenAppend = (Buffer, usize, Completion);

impl NodeHome {
    /// Connects to a node.
    pub(super) fn open(node: NodeAddress, env: &Env) -> Result<NodeHome, HomeError> {
        let counters = Arc::default();
        let short = Link::open(&node, env, &counters)?;
        let bulk = Link::open(&node, env, &counters)?;
        let session = short.present();
        let limits = session.limits();
        let micros = session.round_trip().as_micros() as u64;
        let latency = micros + u64::from(limits.append_latency_expected_us);
        Ok(NodeHome {
            capabilities: HomeCapabilities {
                block_alignment: limits.block_alignment as usize,
                block_size_preferred: limits.block_size_preferred as usize,
                room_size_bytes_max: limits.room_size_bytes_max,
                appends_in_flight_max: limits.appends_in_flight_max as usize,
                append_latency_expected_us: u32::try_from(latency).unwrap_or(u32::MAX),
                leased: true,
            },
            rollover: Mutex::new(Rollover {
                appends_max: u64::MAX,
                size_bytes: limits.segment_bytes,
            }),
            short,
            bulk,
            node,
            env: env.clone(),
            lanes: RwLock::default(),
            name_patience: Mutex::new(PATIENCE),
            counters,
        })
    }

    /// A connection that is not known to be broken.
    fn session(&self, link: &Link) -> Result<Arc<Session>, HomeError> {
        let present = link.present();
        if present.broken().is_none() {
            return Ok(present);
        }
        let mut tried = link.tried.lock();
        let present = link.present();
        let Some(broken) = present.broken() else {
            return Ok(present);
        };
        let now = self.env.clock.monotonic();
        if tried.is_some_and(|tried| now.since(tried) < RECONNECT_PAUSE) {
            return Err(broken);
        }
        *tried = Some(now);
        let session = Session::open(&self.node, &self.env, &self.counters)?;
        if !session.limits().is_same_volume(&present.limits()) {
            let what = format!("reach the storage node {} again", self.node.address);
            let why = std::io::Error::other("its volume is another one than before");
            let error = HomeError::io(what, why);
            session.end(error.clone());
            return Err(error);
        }
        *link.session.write() = Arc::clone(&session);
        Ok(session)
    }

    /// Asks for what may be asked for twice.
    fn ask_again(
        &self,
        link: &Link,
        request: &Request,
        patience: Duration,
        mut body: impl FnMut() -> FrameBody,
    ) -> Result<Answer, HomeError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let answer = self
                .session(link)
                .and_then(|session| session.call(request, body(), patience));
            let is_lost = matches!(
                &answer,
                Err(HomeError::Io { source, .. }) if is_lost(source.kind())
            );
            if !is_lost || tries >= TRIES {
                return answer;
            }
            logstead_env::sleep(RECONNECT_PAUSE);
        }
    }

    fn ask(&self, request: &Request) -> Result<Answer, HomeError> {
        self.ask_again(&self.short, request, PATIENCE, || FrameBody::NONE)
    }

    fn done(&self, request: &Request) -> Result<(), HomeError> {
        self.ask(request).and_then(is_done)
    }

    fn bytes(&self, request: &Request) -> Result<Vec<u8>, HomeError> {
        match self.ask_again(&self.bulk, request, BULK_PATIENCE, || FrameBody::NONE)? {
            Answer::Bytes(bytes) => Ok(bytes),
            _ => Err(other_answer()),
        }
    }

    /// Reads `into` in pieces, each with the request for so many bytes at an offset; ends with the first that is short.
    fn read_pieces(
        &self,
        into: &mut [u8],
        request: impl Fn(u64, u32) -> Request,
    ) -> Result<usize, HomeError> {
        let mut read = 0;
        loop {
            let wanted = (into.len() - read).min(READ_BYTES_MAX);
            let bytes = self.bytes(&request(read as u64, wanted as u32))?;
            let room = into.get_mut(read..read + wanted).unwrap_or_default();
            let room = room.get_mut(..bytes.len()).ok_or_else(other_answer)?;
            room.copy_from_slice(&bytes);
            read += bytes.len();
            if bytes.len() < wanted || read == into.len() {
                return Ok(read);
            }
        }
    }

    /// Numbers of eight bytes each, in pairs.
    fn pairs(&self, request: &Request) -> Result<Vec<(u64, u64)>, HomeError> {
        let bytes = self.bytes(request)?;
        let pairs = bytes.chunks(16).map(|pair| {
            let (first, second) = pair.split_at_checked(8)?;
            let first = u64::from_le_bytes(first.try_into().ok()?);
            Some((first, u64::from_le_bytes(second.try_into().ok()?)))
        });
        pairs.collect::<Option<_>>().ok_or_else(other_answer)
    }

    fn lane(&self, lane: LaneId) -> Result<Arc<NodeLane>, HomeError> {
        let what = "the lane is not open";
        let lanes = self.lanes.read();
        let open = lanes.get(&lane).cloned();
        open.ok_or(HomeError::Misuse { lane, what })
    }

    /// Changes a named value. `expected`: the state that it must be in.
    fn change_name(
        &self,
        name: &str,
        expected: Option<Tag>,
        bytes: &[u8],
    ) -> Result<Tag, HomeError> {
        let request = match expected {
            None => Request::PutName {
                name: name.to_owned(),
            },
            Some(Tag(tag)) => Request::SwapName {
                name: name.to_owned(),
                tag,
            },
        };
        let mut tries = 0;
        let mut patience = *self.name_patience.lock();
        loop {
            tries += 1;
            let session = self.session(&self.short)?;
            let answer = session.call(&request, FrameBody::Bytes(bytes.to_vec()), patience);
            let lost = match answer {
                Ok(Answer::Named(Some(tag), _)) => return Ok(Tag(tag)),
                Ok(_) => return Err(other_answer()),
                Err(HomeError::Io { what, source }) if is_lost(source.kind()) => {
                    HomeError::Io { what, source }
                }
                // The one before may have come through in the end: what is there says so.
                Err(HomeError::Conflict(what)) if tries > 1 => {
                    return match self.get(name)? {
                        Some((there, tag)) if there == bytes => Ok(tag),
                        _ => Err(HomeError::Conflict(what)),
                    };
                }
                Err(error) => return Err(error),
            };
            if tries >= TRIES {
                return Err(lost);
            }
            // It may come through yet. That does no harm: a state that was left does not come back.
            logstead_env::sleep(RECONNECT_PAUSE);
            patience = patience.saturating_mul(2);
            match self.get(name)? {
                Some((there, tag)) if there == bytes => return Ok(tag),
                Some((_, tag)) if Some(tag) == expected => {}
                None if expected.is_none() => {}
                _ => return Err(HomeError::Conflict(name.to_owned())),
            }
        }
    }
}

/// Nobody knows what became of the request.
fn is_lost(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{
        BrokenPipe, ConnectionAborted, ConnectionRefused, ConnectionReset, TimedOut, UnexpectedEof,
        WouldBlock,
    };
    matches!(
        kind,
        BrokenPipe
            | ConnectionAborted
            | ConnectionRefused
            | ConnectionReset
            | TimedOut
            | UnexpectedEof
            | WouldBlock
    )
}

fn other_answer() -> HomeError {
    HomeError::io("ask a storage node", unexpected())
}

fn reply_is_done(reply: Result<Reply, HomeError>) -> Result<(), HomeError> {
    is_done(reply?.result?)
}

impl HomeBackend for NodeHome {
    fn inline_appends(_home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        None
    }

    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        Some(Arc::clone(home) as _)
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }

    fn peer_copies(home: &Arc<Self>) -> Option<Arc<dyn PeerCopies>> {
        Some(Arc::clone(home) as _)
    }

    fn object_repair(home: &Arc<Self>) -> Option<Arc<dyn ObjectRepair>> {
        Some(Arc::clone(home) as _)
    }
}

impl HomeStatus for NodeHome {
    fn describe(&self) -> String {
        format!("node://{}/{}", self.node.address, self.node.volume)
    }

    fn report(&self) -> Vec<(String, String)> {
        let Ok(bytes) = self.bytes(&Request::Status) else {
            return vec![("state".to_owned(), "out of reach".to_owned())];
        };
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().filter_map(|line| line.split_once('\t'));
        lines
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        vec![HomeUsage {
            home: self.describe(),
            provider: "node".to_owned(),
            usage: self.counters.usage(),
        }]
    }
}

impl LaneAppends for NodeHome {
    fn capabilities(&self) -> HomeCapabilities {
        self.capabilities
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let session = self.session(&self.short)?;
        let request = Request::OpenLane {
            lane,
            first_segment,
        };
        // Not asked again: it may have been opened, and is not fresh then.
        let answer = session.call(&request, FrameBody::NONE, BULK_PATIENCE);
        let opened = answer.and_then(is_done).map_err(|error| match error {
            HomeError::Misuse { what, .. } => HomeError::Misuse { lane, what },
            other => other,
        });
        opened.map_err(NoRoom::from_home)?;
        let places = LanePlaces {
            next: Position::start_of(first_segment),
            appends: 0,
            segment_ended: false,
            claimed: VecDeque::new(),
        };
        let opened = NodeLane {
            session,
            state: Mutex::new(places),
        };
        self.lanes.write().insert(lane, Arc::new(opened));
        Ok(())
    }

    // An append waits for its segment at the node; a full disk shows in `is_short_of_space`, before there is none.
    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let open = self.lane(lane)?;
        if bytes > self.capabilities.room_size_bytes_max {
            let what = "more room asked for than an append may have";
            return Err(NoRoom::Failed(HomeError::Misuse { lane, what }));
        }
        match open.session.broken() {
            Some(error) => Err(NoRoom::Failed(error)),
            None => Ok(()),
        }
    }

    fn is_short_of_space(&self) -> bool {
        // What the node said last; while somebody appends, that is now.
        self.short.present().is_short_of_space()
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let open = self.lane(lane)?;
        if !len.is_multiple_of(self.capabilities.block_alignment as u64)
            || len > self.capabilities.room_size_bytes_max
        {
            let what = "length is not aligned or larger than an append may be";
            return Err(HomeError::Misuse { lane, what });
        }
        let rollover = *self.rollover.lock();
        let mut places = open.state.lock();
        let at = match std::mem::take(&mut places.segment_ended) {
            true => Position::start_of(places.next.segment + 1),
            false => rollover.place(places.next, places.appends, len),
        };
        if at.segment != places.next.segment {
            places.appends = 0;
        }
        places.appends += 1;
        places.next = Position {
            offset: at.offset + len,
            ..at
        };
        places.claimed.push_back((at, None));
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let open = match self.lane(lane) {
            Ok(open) if len <= block.capacity() => open,
            Ok(_) => {
                let what = "append longer than its buffer";
                return done(block, Err(HomeError::Misuse { lane, what }));
            }
            Err(error) => return done(block, Err(error)),
        };
        open.give(lane, at, (block, len, done));
    }
}

impl NodeLane {
    /// Sends an append, and those behind it that were given before; one whose turn has not come waits. The node takes
    /// them in order only.
    fn give(&self, lane: LaneId, at: Position, given: GivenAppend) {
        // Held while they are queued, so that nobody comes between; the network is waited for elsewhere.
        let mut places = self.state.lock();
        let index = places.claimed.binary_search_by_key(&at, |(at, _)| *at);
        let claimed = index.ok().and_then(|index| places.claimed.get_mut(index));
        let Some((_, waiting @ None)) = claimed else {
            drop(places);
            let what = "append at a place that was not claimed, or given before";
            return given.2(given.0, Err(HomeError::Misuse { lane, what }));
        };
        *waiting = Some(given);
        let mut refused = Vec::new();
        while let Some((at, Some(_))) = places.claimed.front() {
            let at = *at;
            let Some((_, Some((block, len, done)))) = places.claimed.pop_front() else {
                break;
            };
            if let Some(error) = self.session.broken() {
                refused.push((block, done, error));
                continue;
            }
            let block = Arc::new(block);
            let sent = FrameBody::Shared(Arc::clone(&block), len);
            let request = Request::Append { lane, at };
            self.session.ask(&request, sent, move |reply| {
                // It may still be on its way when the connection breaks: then there is another buffer.
                let block = Arc::try_unwrap(block);
                let block = block.unwrap_or_else(|shared| Buffer::zeroed(shared.capacity()));
                done(block, reply_is_done(reply));
            });
        }
        drop(places);
        for (block, done, error) in refused {
            done(block, Err(error));
        }
    }
}

impl SegmentRollover for NodeHome {
    fn rollover(&self) -> Rollover {
        *self.rollover.lock()
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        let mut present = self.rollover.lock();
        if rollover.size_bytes > present.size_bytes {
            return Err(HomeError::Unsupported(
                "segments that are larger than the node's",
            ));
        }
        *present = rollover;
        Ok(())
    }

    fn end_segment(&self, lane: LaneId) -> Result<(), HomeError> {
        let open = self.lane(lane)?;
        let mut places = open.state.lock();
        places.segment_ended = places.appends > 0;
        Ok(())
    }
}

impl LaneSegments for NodeHome {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.done(&Request::Fence {
            lane,
            first_segment,
            by: by.chars().take(100).collect(),
        })
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        let bytes = self.bytes(&Request::ListLanes)?;
        let lane = |bytes: &[u8]| {
            let number = u32::from_le_bytes(bytes.try_into().ok()?);
            number.try_into().ok().map(LaneId)
        };
        let lanes = bytes.chunks(4).map(lane);
        lanes.collect::<Option<_>>().ok_or_else(other_answer)
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let pairs = self.pairs(&Request::ListSegments { lane })?;
        let info = |(segment, size_bytes)| SegmentInfo {
            segment,
            size_bytes,
        };
        Ok(pairs.into_iter().map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.read_pieces(into.as_mut_slice(), |offset, len| Request::Read {
            lane,
            at: Position {
                offset: at.offset + offset,
                ..at
            },
            len,
        })
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let bytes = block.as_slice().get(..len).ok_or(HomeError::Misuse {
            lane,
            what: "longer than its buffer",
        })?;
        let mut at = at;
        for piece in bytes.chunks(READ_BYTES_MAX) {
            let request = Request::Rewrite { lane, at };
            let body = || FrameBody::Bytes(piece.to_vec());
            is_done(self.ask_again(&self.bulk, &request, BULK_PATIENCE, body)?)?;
            at.offset += piece.len() as u64;
        }
        Ok(())
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.done(&Request::Seal { lane, at })
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.done(&Request::Trim { lane, segment })
    }
}

impl NamedValues for NodeHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let request = Request::GetName {
            name: name.to_owned(),
        };
        let patience = *self.name_patience.lock();
        match self.ask_again(&self.short, &request, patience, || FrameBody::NONE)? {
            Answer::Named(tag, bytes) => Ok(tag.map(|tag| (bytes, Tag(tag)))),
            _ => Err(other_answer()),
        }
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.change_name(name, None, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.change_name(name, Some(expected), bytes)
    }

    fn limit_name_requests(&self, first: Duration) {
        *self.name_patience.lock() = first.min(PATIENCE);
    }
}

/// A side segment on its way to the node.
struct NodeSide {
    session: Arc<Session>,
    writer: u64,
    /// Bytes that the node has not taken yet.
    backlog: Arc<AtomicUsize>,
    finished: bool,
}

impl SideWriter for NodeSide {
    fn append(&mut self, piece: Vec<u8>) {
        for piece in piece.chunks(READ_BYTES_MAX) {
            let (len, backlog) = (piece.len(), Arc::clone(&self.backlog));
            backlog.fetch_add(len, Ordering::Relaxed);
            let request = Request::SidePiece {
                writer: self.writer,
            };
            // An error is told at the end.
            self.session
                .ask(&request, FrameBody::Bytes(piece.to_vec()), move |_| {
                    backlog.fetch_sub(len, Ordering::Relaxed);
                });
        }
    }

    fn backlog_bytes(&self) -> usize {
        self.backlog.load(Ordering::Relaxed)
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(mut self: Box<Self>, done: SideCompletion) {
        self.finished = true;
        let request = Request::FinishSide {
            writer: self.writer,
        };
        self.session.ask(&request, FrameBody::NONE, move |reply| {
            done(reply_is_done(reply).map_err(NoRoom::from_home));
        });
    }
}

impl Drop for NodeSide {
    fn drop(&mut self) {
        if !self.finished {
            let request = Request::AbandonSide {
                writer: self.writer,
            };
            self.session.tell(&request, FrameBody::NONE);
        }
    }
}

impl SideSegments for NodeHome {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        // If it is broken it says so at the end: nobody waits for another one here.
        let session = self.bulk.present();
        let writer = session.next_writer();
        let request = Request::BeginSide { writer, lane, id };
        session.tell(&request, FrameBody::NONE);
        Box::new(NodeSide {
            session,
            writer,
            backlog: Arc::default(),
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
        self.read_pieces(into, |behind, len| Request::GetSide {
            lane,
            id,
            offset: offset.saturating_add(behind),
            len,
        })
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        let pairs = self.pairs(&Request::ListSides { lane })?;
        Ok(pairs.into_iter().map(|(id, _)| id).collect())
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.done(&Request::RemoveSide { lane, id })
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let request = Request::RemoveSide { lane, id };
        self.bulk.present().ask(&request, FrameBody::NONE, |_| {});
    }
}

impl ObjectReader for NodeHome {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.read_pieces(into, |behind, len| Request::ReadObject {
            id,
            offset: offset.saturating_add(behind),
            len,
        })
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for NodeHome {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        let body = || FrameBody::Bytes(bytes.to_vec());
        let request = Request::PutObject { id };
        is_done(self.ask_again(&self.bulk, &request, BULK_PATIENCE, body)?)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        let info = |(id, size_bytes)| ObjectInfo {
            id: ObjectId(id),
            size_bytes,
        };
        let pairs = self.pairs(&Request::ListObjects)?;
        Ok(pairs.into_iter().map(info).collect())
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.done(&Request::RemoveObject { id })
    }
}

impl Drop for NodeHome {
    fn drop(&mut self) {
        let what = format!("use the storage node {}", self.node.address);
        let closed = std::io::Error::other("the home is closed");
        let closed = HomeError::io(what, closed);
        self.short.present().end(closed.clone());
        self.bulk.present().end(closed);
    }
}
