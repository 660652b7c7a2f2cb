//! One connection: what a server asks, who does it, and the answers.
//!
//! Appends and pieces of side segments are given to the volume in the order in which they come. Everything else is done
//! by the node's threads, in any order. A server has a connection for what is short and one for what moves much, and
//! the node threads for each: what is short does not wait behind what moves much.
//!
//! Does not: know why a server asks.

use crate::context::{ConnectionSlot, NodeContext, RequestLine};
use crate::fetch::{self, Fetch};
use crate::outbox::{Outbox, home_error};
use logstead_env::Buffer;
use logstead_home::node::frame::{BODY_BYTES_MAX, Frame, FrameBody};
use logstead_home::node::handshake;
use logstead_home::node::message::{Answer, Reply, Request, VolumeLimits, decode_peers};
use logstead_home::node::peers::PeerSessions;
use logstead_home::{HomeError, LocalVolume, NAMED_VALUE_BYTES_MAX, SideWriter, Tag};
use logstead_link::LinkStream;
use std::collections::BTreeMap;
use std::io::{self, BufReader, ErrorKind};
use std::sync::Arc;
use std::time::Duration;
use tracing::{debug, info};

/// How long a server may take to say who it is.
const HANDSHAKE_TIME: Duration = Duration::from_secs(5);
/// How long an answer waits for a server that does not take it.
const WRITE_TIME: Duration = Duration::from_secs(20);
/// A server asks every second whether the node is there: one that is silent for so long is gone.
const SILENCE_MAX: Duration = Duration::from_secs(60);
const READ_BYTES: usize = 64 << 10;
/// Side segments that one connection stores at the same time.
const SIDES_MAX: usize = 4096;
/// The same with those that are refused.
const SIDES_NAMED_MAX: usize = 65536;
/// What a listing is counted as.
const LISTING_BYTES: usize = 1 << 20;

/// Serves a connection to its end.
pub(crate) fn serve(
    context: &Arc<NodeContext>,
    slot: &ConnectionSlot,
    stream: LinkStream,
    peer: &str,
) {
    match Connection::open(context, stream) {
        Ok((mut connection, from)) => {
            slot.greeted();
            // Who only reads may come and go every second: other nodes do.
            if connection.write {
                info!("{peer} has opened volume {}", connection.name);
            }
            let why = connection.read(from);
            if connection.write {
                info!("{peer} has left volume {}: {why}", connection.name);
            }
        }
        Err(error) => debug!("{peer}: {error}"),
    }
}

struct Connection {
    context: Arc<NodeContext>,
    name: Arc<str>,
    volume: Arc<LocalVolume>,
    write: bool,
    outbox: Arc<Outbox>,
    /// To end it.
    stream: LinkStream,
    /// What is fetched for this connection comes over these.
    peers: Arc<PeerSessions>,
    /// Side segments on their way; `None`: one too many, which is told at its end.
    sides: BTreeMap<u64, Option<Box<dyn SideWriter>>>,
}

/// A request that some thread does, and the bytes that it was admitted with.
struct Job {
    name: Arc<str>,
    volume: Arc<LocalVolume>,
    outbox: Arc<Outbox>,
    number: u64,
    request: Request,
    body: FrameBody,
    bytes: usize,
    context: Arc<NodeContext>,
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.to_owned())
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.peers.end();
        self.outbox.end();
        self.stream.shut_down();
    }
}

impl Connection {
    fn open(
        context: &Arc<NodeContext>,
        mut stream: LinkStream,
    ) -> io::Result<(Connection, BufReader<LinkStream>)> {
        stream.set_read_timeout(HANDSHAKE_TIME)?;
        stream.set_write_timeout(WRITE_TIME)?;
        let env = context.env();
        let name = handshake::receive(&mut stream, env, |volume| context.key_of(volume))?;
        let mut from = BufReader::with_capacity(READ_BYTES, stream.try_clone()?);
        let first = Frame::read(&mut from, |_| false)?;
        let first = first.ok_or_else(|| malformed("it has ended before it asked anything"))?;
        let Request::OpenVolume { write } = Request::decode(&first)? else {
            return Err(malformed("it has asked before it opened a volume"));
        };
        let opened = context.volumes().volume(&name, write);
        let reply = Reply {
            is_short_of_space: opened.as_ref().is_ok_and(|v| v.is_short_of_space()),
            result: match &opened {
                Ok(volume) => Ok(Answer::Opened(limits_of(volume, context.volumes().id()))),
                Err(error) => Err(error.clone()),
            },
        };
        let frame = reply.frame(first.number);
        stream.write_all(&frame.start()?)?;
        stream.set_read_timeout(SILENCE_MAX)?;
        let volume = opened.map_err(io::Error::other)?;
        let clock = Arc::clone(&env.clock);
        let outbox = Arc::new(Outbox::new(clock, context.distance()));
        let sending = Arc::clone(&outbox);
        let ending = stream.try_clone()?;
        env.spawn("node-answers", None, move || sending.send(stream))?;
        let peers = Arc::new(PeerSessions::new(env, context.as_peer(&name)));
        let connection = Connection {
            context: Arc::clone(context),
            peers,
            name: name.into(),
            volume,
            write,
            outbox,
            stream: ending,
            sides: BTreeMap::new(),
        };
        Ok((connection, from))
    }

    /// Reads requests until the connection ends; tells why it did.
    fn read(&mut self, mut from: BufReader<LinkStream>) -> io::Error {
        loop {
            let frame = match Frame::read(&mut from, Request::is_aligned) {
                Ok(Some(frame)) => frame,
                Ok(None) => return malformed("it is closed"),
                Err(error) => return error,
            };
            if !self.context.knows(frame.kind) {
                return malformed("it asks for what only later versions know");
            }
            let request = match Request::decode(&frame) {
                Ok(request) => request,
                Err(error) => return error,
            };
            if let Err(error) = self.begin(request, frame) {
                return error;
            }
        }
    }

    fn reply(&self, number: u64, result: Result<Answer, HomeError>, bytes: usize) {
        let is_short_of_space = self.volume.is_short_of_space();
        let reply = Reply {
            is_short_of_space,
            result,
        };
        self.outbox.answer(number, reply, bytes);
    }

    fn side_backlog_bytes(&self) -> usize {
        let sides = self.sides.values().flatten();
        sides.map(|side| side.backlog_bytes()).sum()
    }

    fn begin(&mut self, request: Request, frame: Frame) -> io::Result<()> {
        let (number, body) = (frame.number, frame.body);
        let bytes = body.as_slice().len() + answer_bytes(&request);
        if !self.outbox.admit(bytes) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if !self.write && changes(&request) {
            let refused = HomeError::Unsupported("changes: it was opened for reading only");
            self.reply(number, Err(refused), bytes);
            return Ok(());
        }
        match request {
            Request::Append { lane, at } => {
                self.context.note_append();
                let (block, len) = aligned(body);
                let (outbox, volume) = (Arc::clone(&self.outbox), Arc::clone(&self.volume));
                self.volume.append(
                    lane,
                    at,
                    block,
                    len,
                    Box::new(move |_, result| {
                        let reply = Reply {
                            is_short_of_space: volume.is_short_of_space(),
                            result: result.map(|()| Answer::Done),
                        };
                        outbox.answer(number, reply, bytes);
                    }),
                );
            }
            Request::Ping => self.reply(number, Ok(Answer::Done), bytes),
            Request::BeginSide { writer, lane, id } => {
                if self.sides.len() >= SIDES_NAMED_MAX || self.sides.contains_key(&writer) {
                    return Err(malformed("a side segment that is begun twice"));
                }
                let fits = self.sides.len() < SIDES_MAX;
                let side = fits.then(|| self.volume.begin_side_segment(lane, id));
                self.sides.insert(writer, side);
                self.outbox.release(bytes);
            }
            Request::SidePiece { writer } => {
                let side = self.sides.get_mut(&writer);
                let side = side.ok_or_else(|| malformed("a piece of no side segment"))?;
                if let Some(side) = side {
                    side.append(body.into_vec());
                }
                // What is short comes over another connection: this one may wait for the disk.
                while self.side_backlog_bytes() > SIDE_BACKLOG_BYTES_MAX {
                    logstead_env::sleep(Duration::from_millis(1));
                }
                self.reply(number, Ok(Answer::Done), bytes);
            }
            Request::FinishSide { writer } => {
                let side = self.sides.remove(&writer);
                let side = side.ok_or_else(|| malformed("the end of no side segment"))?;
                let Some(side) = side else {
                    let many = io::Error::other("too many large transactions at the same time");
                    self.reply(number, Err(HomeError::io("store", many)), bytes);
                    return Ok(());
                };
                let (outbox, volume) = (Arc::clone(&self.outbox), Arc::clone(&self.volume));
                side.finish(Box::new(move |result| {
                    let result = result.map(|()| Answer::Done).map_err(home_error);
                    let reply = Reply {
                        is_short_of_space: volume.is_short_of_space(),
                        result,
                    };
                    outbox.answer(number, reply, bytes);
                }));
            }
            Request::AbandonSide { writer } => {
                self.sides.remove(&writer);
                self.outbox.release(bytes);
            }
            Request::FetchFromPeers { epoch, item } => {
                let fetch = Fetch {
                    context: Arc::clone(&self.context),
                    volume: Arc::clone(&self.volume),
                    outbox: Arc::clone(&self.outbox),
                    sessions: Arc::clone(&self.peers),
                    epoch,
                    item,
                    peers: decode_peers(body.as_slice())?,
                };
                let run = move || fetch.run(number, bytes);
                self.context.push(run, RequestLine::Fetches);
            }
            Request::OpenVolume { .. } => return Err(malformed("it has opened its volume twice")),
            request => {
                let line = line_of(&request, bytes);
                let job = Job {
                    name: Arc::clone(&self.name),
                    volume: Arc::clone(&self.volume),
                    outbox: Arc::clone(&self.outbox),
                    number,
                    request,
                    body,
                    bytes,
                    context: Arc::clone(&self.context),
                };
                self.context.push(move || job.run(), line);
            }
        }
        Ok(())
    }
}

/// Bytes of a connection's side segments that wait for the disk, at most.
const SIDE_BACKLOG_BYTES_MAX: usize = 32 << 20;

fn limits_of(volume: &LocalVolume, node: u64) -> VolumeLimits {
    let capabilities = volume.capabilities();
    VolumeLimits {
        node,
        block_alignment: capabilities.block_alignment as u32,
        block_size_preferred: capabilities.block_size_preferred as u32,
        room_size_bytes_max: capabilities.room_size_bytes_max,
        appends_in_flight_max: capabilities.appends_in_flight_max as u32,
        append_latency_expected_us: capabilities.append_latency_expected_us,
        segment_bytes: volume.rollover().size_bytes,
    }
}

/// The bytes that the answer may have, or what is done for it.
fn answer_bytes(request: &Request) -> usize {
    match request {
        Request::Read { len, .. }
        | Request::GetSide { len, .. }
        | Request::ReadObject { len, .. }
        | Request::ReadObjectFromDisk { len, .. } => *len as usize,
        Request::FetchFromPeers { item, .. } => fetch::bytes_of(item),
        Request::GetName { .. } => NAMED_VALUE_BYTES_MAX,
        Request::ListLanes
        | Request::ListSegments { .. }
        | Request::ListSides { .. }
        | Request::ListObjects => LISTING_BYTES,
        _ => 0,
    }
}

fn changes(request: &Request) -> bool {
    !matches!(
        request,
        Request::ListLanes
            | Request::ListSegments { .. }
            | Request::Read { .. }
            | Request::GetName { .. }
            | Request::GetSide { .. }
            | Request::ListSides { .. }
            | Request::ReadObject { .. }
            | Request::ReadObjectFromDisk { .. }
            | Request::ListObjects
            | Request::Ping
            | Request::Status
    )
}

/// What a request waits behind.
fn line_of(request: &Request, bytes: usize) -> RequestLine {
    match request {
        // A lease is among them.
        Request::GetName { .. } | Request::PutName { .. } | Request::SwapName { .. } => {
            RequestLine::Names
        }
        Request::OpenLane { .. }
        | Request::Rewrite { .. }
        | Request::Trim { .. }
        | Request::ListObjects
        | Request::PutObject { .. }
        | Request::ReplaceObject { .. }
        | Request::ReadObjectFromDisk { .. }
        | Request::RemoveObject { .. }
        | Request::RemoveSide { .. } => RequestLine::Bulk,
        _ if bytes > 2 * LISTING_BYTES => RequestLine::Bulk,
        _ => RequestLine::Short,
    }
}

fn aligned(body: FrameBody) -> (Buffer, usize) {
    match body {
        FrameBody::Aligned(buffer, len) => (buffer, len),
        other => {
            let bytes = other.as_slice();
            let mut buffer = Buffer::zeroed(bytes.len());
            buffer.as_mut_slice().copy_from_slice(bytes);
            let len = bytes.len();
            (buffer, len)
        }
    }
}

impl Job {
    /// Does it, and answers.
    fn run(self) {
        let Job {
            name,
            volume,
            outbox,
            number,
            request,
            body,
            bytes,
            context,
        } = self;
        let result = perform(&name, &volume, &context, request, body);
        let reply = Reply {
            is_short_of_space: volume.is_short_of_space(),
            result,
        };
        outbox.answer(number, reply, bytes);
    }
}

fn read_up_to(
    len: u32,
    read: impl FnOnce(&mut [u8]) -> Result<usize, HomeError>,
) -> Result<Answer, HomeError> {
    let len = len as usize;
    if len > BODY_BYTES_MAX {
        return Err(HomeError::Unsupported("reads of more than a message has"));
    }
    let mut bytes = vec![0; len];
    let count = read(&mut bytes)?;
    bytes.truncate(count);
    Ok(Answer::Bytes(bytes))
}

fn numbers(pairs: impl Iterator<Item = (u64, u64)>) -> Answer {
    let bytes = pairs.flat_map(|(first, second)| [first.to_le_bytes(), second.to_le_bytes()]);
    Answer::Bytes(bytes.flatten().collect())
}

fn perform(
    name: &str,
    volume: &LocalVolume,
    context: &NodeContext,
    request: Request,
    body: FrameBody,
) -> Result<Answer, HomeError> {
    let named = |tag: Tag| Answer::Named(Some(tag.0), Vec::new());
    match request {
        Request::OpenLane {
            lane,
            first_segment,
        } => volume
            .open_lane(lane, first_segment)
            .map_err(home_error)
            .map(|()| Answer::Done),
        Request::Fence {
            lane,
            first_segment,
            by,
        } => {
            info!("lane {lane} is fenced from segment {first_segment} on, by {by:?}");
            volume.fence(lane, first_segment).map(|()| Answer::Done)
        }
        Request::ListLanes => {
            let lanes = volume.list_lanes()?;
            let number = |lane: &logstead_types::LaneId| u32::from(lane.get()).to_le_bytes();
            Ok(Answer::Bytes(lanes.iter().flat_map(number).collect()))
        }
        Request::ListSegments { lane } => {
            let segments = volume.list_segments(lane)?;
            let pair = |info: logstead_home::SegmentInfo| (info.segment, info.size_bytes);
            Ok(numbers(segments.into_iter().map(pair)))
        }
        Request::Read { lane, at, len } => {
            if len as usize > BODY_BYTES_MAX {
                return Err(HomeError::Unsupported("reads of more than a message has"));
            }
            let mut into = Buffer::zeroed(len as usize);
            let count = volume.read(lane, at, &mut into)?;
            Ok(Answer::Bytes(
                into.as_slice().get(..count).unwrap_or_default().to_vec(),
            ))
        }
        Request::Rewrite { lane, at } => {
            let (block, len) = aligned(body);
            volume.rewrite(lane, at, &block, len).map(|()| Answer::Done)
        }
        Request::Seal { lane, at } => volume.seal(lane, at).map(|()| Answer::Done),
        Request::Trim { lane, segment } => volume.trim(lane, segment).map(|()| Answer::Done),
        Request::GetName { name } => Ok(match volume.get(&name)? {
            Some((bytes, tag)) => Answer::Named(Some(tag.0), bytes),
            None => Answer::Named(None, Vec::new()),
        }),
        Request::PutName { name } => volume.put_if_absent(&name, body.as_slice()).map(named),
        Request::SwapName { name, tag } => volume
            .compare_and_swap(&name, Tag(tag), body.as_slice())
            .map(named),
        Request::GetSide {
            lane,
            id,
            offset,
            len,
        } => read_up_to(len, |into| volume.get_side_segment(lane, id, offset, into)),
        Request::ListSides { lane } => {
            let sides = volume.list_side_segments(lane)?;
            Ok(numbers(sides.into_iter().map(|id| (id, 0))))
        }
        Request::RemoveSide { lane, id } => {
            volume.remove_side_segment(lane, id).map(|()| Answer::Done)
        }
        Request::PutObject { id } => volume
            .put_object(id, body.as_slice())
            .map(|()| Answer::Done),
        Request::ReadObject { id, offset, len } => {
            read_up_to(len, |into| volume.read_object(id, offset, into))
        }
        Request::ListObjects => {
            let objects = volume.list_objects()?;
            Ok(numbers(
                objects.into_iter().map(|info| (info.id.0, info.size_bytes)),
            ))
        }
        Request::RemoveObject { id } => {
            volume.remove_object(id)?;
            context.note_damage(name, |damage| damage.forget(id));
            Ok(Answer::Done)
        }
        Request::ReplaceObject { epoch, id, seen } => {
            volume.replace_object(epoch, id, seen, body.as_slice())?;
            context.note_damage(name, |damage| damage.forget(id));
            Ok(Answer::Done)
        }
        Request::ReadObjectFromDisk { id, offset, len } => read_up_to(len, |into| {
            volume.read_object_from_disk_at(id, offset, into)
        }),
        Request::Status => Ok(Answer::Bytes(context.describe(name, volume).into_bytes())),
        Request::OpenVolume { .. }
        | Request::Append { .. }
        | Request::BeginSide { .. }
        | Request::SidePiece { .. }
        | Request::FinishSide { .. }
        | Request::AbandonSide { .. }
        | Request::FetchFromPeers { .. }
        | Request::Ping => Err(HomeError::Unsupported(
            "what is done in order, out of order",
        )),
    }
}
