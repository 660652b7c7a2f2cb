//! A connection to a storage node: requests go out one behind the other, and each answer finds who waits for it.
//!
//! Invariants:
//! - Every request that was sent has one answer: the node's, or the error with which the connection ended.
//! - Once a connection is broken it stays so; what it was used for begins anew over another one.
//! - Who sends never waits for the network: two threads do, one for each direction.
//!
//! Does not: know what requests mean, or send one twice.

use super::frame::{Frame, FrameBody};
use super::handshake::{self, VolumeKey};
use super::message::{Answer, PROTOCOL_FIRST, PROTOCOL_LINE, Reply, Request, VolumeLimits};
use crate::usage::UsageCounters;
use crate::{HomeError, RequestKind};
use logstead_env::{Condvar, Env, Instant, channel};
use logstead_link::LinkStream;
use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, ErrorKind};
use std::net::ToSocketAddrs;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

/// How long a connection may take to come up.
const CONNECT_TIME: Duration = Duration::from_secs(3);
/// How often somebody looks whether the node is still there.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// A connection over which nothing comes for so long, though something was asked for, is broken.
const SILENCE_MAX: Duration = Duration::from_secs(10);
const READ_BYTES: usize = 64 << 10;
/// What is written between two looks at the clock.
const PIECE_BYTES: usize = 256 << 10;
/// How long a node may take to open a volume.
const OPEN_TIME: Duration = Duration::from_secs(10);

/// Who waits for an answer.
type Waiter = Box<dyn FnOnce(Result<Reply, HomeError>) + Send>;

/// Where a node is, and what opens a volume there.
#[derive(Clone)]
pub(super) struct NodeAddress {
    /// `HOST:PORT`.
    pub(super) address: String,
    pub(super) volume: String,
    pub(super) key: VolumeKey,
    pub(super) encrypted: bool,
    /// The fleet's secret is not empty.
    pub(super) has_secret: bool,
    /// The volume may be changed, and is made if it is not there.
    pub(super) write: bool,
}

struct State {
    outgoing: VecDeque<Frame>,
    waiting: BTreeMap<u64, Waiter>,
    number: u64,
    /// When something came from the node last.
    heard: Instant,
    broken: Option<HomeError>,
    /// It was asked whether it is there, and has not answered.
    pinged: bool,
    /// It was silent for too long, and has one more look's time: this process may be what stood still.
    doubted: Option<Instant>,
}

/// See the module's documentation.
pub(super) struct Session {
    own: Weak<Session>,
    env: Env,
    address: String,
    stream: LinkStream,
    state: Mutex<State>,
    changed: Condvar,
    is_short_of_space: AtomicBool,
    writers: AtomicU64,
    limits: VolumeLimits,
    /// What the node has said that it knows ([`PROTOCOL`](super::message::PROTOCOL)), once it was asked.
    protocol: OnceLock<u32>,
    counters: Arc<UsageCounters>,
    /// How long the node was asked for what it is like.
    round_trip: Duration,
}

fn connected(node: &NodeAddress) -> io::Result<LinkStream> {
    let mut last = None;
    for address in node.address.to_socket_addrs()? {
        let is_safe = address.ip().is_loopback() || node.encrypted && node.has_secret;
        if !is_safe {
            let what =
                "a node that is not on a loopback address is asked only with tls=on and a secret";
            return Err(io::Error::new(ErrorKind::PermissionDenied, what));
        }
        match LinkStream::connect(address, CONNECT_TIME) {
            Ok(stream) => {
                stream.set_read_timeout(CONNECT_TIME)?;
                stream.set_write_timeout(SILENCE_MAX)?;
                return match stream {
                    LinkStream::Tcp(socket) if node.encrypted => {
                        logstead_link::encrypt(socket).map(LinkStream::Tls)
                    }
                    stream => Ok(stream),
                };
            }
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(ErrorKind::NotFound, "no address has this name")))
}

impl Session {
    /// Connects, and opens the volume.
    pub(super) fn open(
        node: &NodeAddress,
        env: &Env,
        counters: &Arc<UsageCounters>,
    ) -> Result<Arc<Session>, HomeError> {
        let what = || format!("reach the storage node {}", node.address);
        let failed = |error| HomeError::io(what(), error);
        let mut stream = connected(node).map_err(failed)?;
        handshake::greet(&mut stream, env, &node.volume, &node.key)?;
        stream.set_read_timeout(OPEN_TIME).map_err(failed)?;
        let asked = env.clock.monotonic();
        counters.count(RequestKind::Session, 0);
        let request = Request::OpenVolume { write: node.write };
        let frame = request.frame(0, FrameBody::NONE);
        stream
            .write_all(&frame.start().map_err(failed)?)
            .map_err(failed)?;
        let frame = Frame::read(&mut stream, |_| false).map_err(failed)?;
        let ended = || failed(ErrorKind::UnexpectedEof.into());
        let reply = Reply::decode(frame.ok_or_else(ended)?).map_err(failed)?;
        let limits = match reply.result? {
            Answer::Opened(limits) => limits.checked().map_err(failed)?,
            _ => return Err(failed(super::unexpected())),
        };
        stream
            .set_read_timeout(Duration::from_secs(3600))
            .map_err(failed)?;
        let now = env.clock.monotonic();
        let (reader, writer) = (stream.try_clone(), stream.try_clone());
        let session = Arc::new_cyclic(|own| Session {
            own: own.clone(),
            env: env.clone(),
            address: node.address.clone(),
            stream,
            state: Mutex::new(State {
                outgoing: VecDeque::new(),
                waiting: BTreeMap::new(),
                number: 1,
                heard: now,
                broken: None,
                pinged: false,
                doubted: None,
            }),
            changed: Condvar::new(),
            is_short_of_space: AtomicBool::new(reply.is_short_of_space),
            writers: AtomicU64::new(1),
            limits,
            protocol: OnceLock::new(),
            counters: Arc::clone(counters),
            round_trip: now.since(asked),
        });
        let (reader, writer) = (reader.map_err(failed)?, writer.map_err(failed)?);
        let reading = Arc::clone(&session);
        env.spawn("node-read", None, move || reading.read(reader))
            .map_err(failed)?;
        let writing = Arc::downgrade(&session);
        let started = env.spawn("node-write", None, move || Session::write(&writing, writer));
        started.map_err(|error| {
            session.end(failed(io::Error::other("no thread is left")));
            failed(error)
        })?;
        Ok(session)
    }

    pub(super) fn limits(&self) -> VolumeLimits {
        self.limits
    }

    /// Which requests the node knows: it is asked once.
    pub(super) fn protocol(&self) -> Result<u32, HomeError> {
        if let Some(known) = self.protocol.get() {
            return Ok(*known);
        }
        let Answer::Bytes(told) = self.call(&Request::Status, FrameBody::NONE, OPEN_TIME)? else {
            return Err(self.error(super::unexpected()));
        };
        let text = String::from_utf8_lossy(&told);
        let mut lines = text.lines().filter_map(|line| line.split_once('\t'));
        let told = lines.find_map(|(name, value)| (name == PROTOCOL_LINE).then(|| value.parse()));
        let known = told.and_then(Result::ok).unwrap_or(PROTOCOL_FIRST);
        Ok(*self.protocol.get_or_init(|| known))
    }

    pub(super) fn round_trip(&self) -> Duration {
        self.round_trip
    }

    pub(super) fn is_short_of_space(&self) -> bool {
        self.is_short_of_space.load(Ordering::Relaxed)
    }

    /// Why it is broken, if it is.
    pub(super) fn broken(&self) -> Option<HomeError> {
        self.state.lock().broken.clone()
    }

    /// A number for a side segment's writer.
    pub(super) fn next_writer(&self) -> u64 {
        self.writers.fetch_add(1, Ordering::Relaxed)
    }

    fn queue(&self, request: &Request, body: FrameBody, waiter: Option<Waiter>) {
        let mut state = self.state.lock();
        if let Some(error) = &state.broken {
            let error = error.clone();
            drop(state);
            if let Some(waiter) = waiter {
                waiter(Err(error));
            }
            return;
        }
        let bytes = body.as_slice().len() as u64;
        self.counters.count(request.usage_kind(), bytes);
        let number = state.number;
        state.number += 1;
        if let Some(waiter) = waiter {
            if state.waiting.is_empty() {
                // Silence counts from the question on.
                state.heard = self.env.clock.monotonic();
            }
            state.waiting.insert(number, waiter);
        }
        state.outgoing.push_back(request.frame(number, body));
        drop(state);
        self.changed.notify_one();
    }

    /// Asks; `waiter` is called once, by whatever thread.
    pub(super) fn ask(
        &self,
        request: &Request,
        body: FrameBody,
        waiter: impl FnOnce(Result<Reply, HomeError>) + Send + 'static,
    ) {
        self.queue(request, body, Some(Box::new(waiter)));
    }

    /// Sends what is not answered.
    pub(super) fn tell(&self, request: &Request, body: FrameBody) {
        self.queue(request, body, None);
    }

    /// Asks, and waits for the answer, but not for ever.
    pub(super) fn call(
        &self,
        request: &Request,
        body: FrameBody,
        patience: Duration,
    ) -> Result<Answer, HomeError> {
        let (tell, told) = channel();
        // Nobody may wait any more.
        self.ask(request, body, move |reply| drop(tell.send(reply)));
        match told.recv_timeout(patience) {
            Ok(reply) => reply?.result,
            Err(_) => Err(self.error(ErrorKind::TimedOut.into())),
        }
    }

    fn error(&self, error: io::Error) -> HomeError {
        HomeError::io(format!("ask the storage node {}", self.address), error)
    }

    /// Breaks the connection, and tells everybody who waits.
    pub(super) fn end(&self, why: HomeError) {
        let mut state = self.state.lock();
        if state.broken.is_some() {
            return;
        }
        state.broken = Some(why.clone());
        state.outgoing.clear();
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.stream.shut_down();
        self.changed.notify_all();
        for (_, waiter) in waiting {
            waiter(Err(why.clone()));
        }
    }

    fn read(self: Arc<Self>, stream: LinkStream) {
        let mut from = BufReader::with_capacity(READ_BYTES, stream);
        let why = loop {
            let frame = match Frame::read(&mut from, |_| false) {
                Ok(Some(frame)) => frame,
                Ok(None) => break ErrorKind::ConnectionAborted.into(),
                Err(error) => break error,
            };
            let number = frame.number;
            let bytes = frame.body.as_slice().len() as u64;
            self.counters.count_read(bytes);
            let reply = match Reply::decode(frame) {
                Ok(reply) => reply,
                Err(error) => break error,
            };
            self.is_short_of_space
                .store(reply.is_short_of_space, Ordering::Relaxed);
            let mut state = self.state.lock();
            state.heard = self.env.clock.monotonic();
            state.doubted = None;
            let waiter = state.waiting.remove(&number);
            drop(state);
            if let Some(waiter) = waiter {
                waiter(Ok(reply));
            }
        };
        self.end(self.error(why));
    }

    fn write(session: &Weak<Session>, mut stream: LinkStream) {
        while let Some(session) = session.upgrade() {
            let Some(frames) = session.next_frames() else {
                return;
            };
            for frame in frames {
                let sent = frame.start().and_then(|start| {
                    stream.write_all(&start)?;
                    for piece in frame.body.as_slice().chunks(PIECE_BYTES) {
                        stream.write_all(piece)?;
                        // Whoever takes bytes is there.
                        session.state.lock().heard = session.env.clock.monotonic();
                    }
                    Ok(())
                });
                if let Err(error) = sent {
                    session.end(session.error(error));
                    return;
                }
            }
        }
    }

    /// What is to be sent: nothing, after a while in which nobody had anything. `None`: the connection is broken.
    fn next_frames(&self) -> Option<VecDeque<Frame>> {
        let mut state = self.state.lock();
        let mut looks = false;
        if state.outgoing.is_empty() && state.broken.is_none() {
            looks = self.changed.wait_for(&mut state, LOOK_INTERVAL).timed_out();
        }
        let now = self.env.clock.monotonic();
        if !state.waiting.is_empty() && now.since(state.heard) > SILENCE_MAX {
            // What has come meanwhile is read within a look's time.
            let doubted = *state.doubted.get_or_insert(now);
            if now.since(doubted) >= LOOK_INTERVAL {
                drop(state);
                self.end(self.error(ErrorKind::TimedOut.into()));
                return None;
            }
        }
        // The node answers at once, whatever else it is busy with: silence says that it is gone.
        let pings = looks && !std::mem::replace(&mut state.pinged, true);
        if state.broken.is_some() {
            return None;
        }
        let frames = std::mem::take(&mut state.outgoing);
        drop(state);
        if pings {
            let (weak, request) = (self.own.clone(), Request::Ping);
            self.ask(&request, FrameBody::NONE, move |_| {
                if let Some(session) = weak.upgrade() {
                    session.state.lock().pinged = false;
                }
            });
        }
        Some(frames)
    }
}

impl VolumeLimits {
    /// Is it the volume that it was? What was measured may differ.
    pub(super) fn is_same_volume(&self, before: &VolumeLimits) -> bool {
        let measured = VolumeLimits {
            append_latency_expected_us: before.append_latency_expected_us,
            ..*self
        };
        measured == *before
    }

    /// The same, if a home can work with it: what a node says is not believed.
    fn checked(self) -> io::Result<VolumeLimits> {
        let alignment = self.block_alignment;
        let fits = (1..=1 << 20).contains(&alignment)
            && (1..=64 << 20).contains(&self.block_size_preferred)
            && (u64::from(alignment)..=super::frame::BODY_BYTES_MAX as u64)
                .contains(&self.room_size_bytes_max)
            && (1..=1024).contains(&self.appends_in_flight_max)
            && (self.room_size_bytes_max..=1 << 40).contains(&self.segment_bytes);
        fits.then_some(self).ok_or_else(super::unexpected)
    }
}
