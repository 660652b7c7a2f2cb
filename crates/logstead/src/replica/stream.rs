//! The thread that receives the log from the primary, beside the one that reads it at the home.
//!
//! It connects to the primary of `primary_conninfo` once it is known which epoch of which database is followed, puts
//! what comes where the follower takes it from ([`StreamedBlocks`]), and wakes it. Whatever goes wrong, the follower
//! reads on at the home, and this thread connects again: to any of the hosts that is the primary by then. What the
//! replica says is sent by a thread of the connection ([`super::replies`]).
//!
//! Does not: apply anything, or believe anything: see [`StreamedBlocks`].

use super::replies::{Replies, ReplySink, SEND_TIME};
use super::rows::{ReadQueue, ReadTurn};
use crate::primary_connection::{PrimaryConnection, ReplicationLink, ReplyWriter, StreamInput};
use logstead_engine::{
    Csn, PageReadAnswer, PageReply, PageRequest, ReplicaCheckpoints, StreamedBlocks,
    server_identity,
};
use logstead_env::Env;
use logstead_home::{NamedValues, ObjectId, Position};
use logstead_sql_catalog::{ReplicaStatus, StreamReport};
use logstead_sql_session::FollowedLog;
use logstead_wire::replication::{StreamMessage, StreamReply};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tracing::{info, warn};

/// Pauses between two tries to connect.
const RETRY_PAUSE_MIN: Duration = Duration::from_millis(50);
const RETRY_PAUSE_MAX: Duration = Duration::from_secs(1);
/// The primary says something each second.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Between two replies to the primary, but for a keepalive.
const REPLY_PAUSE: Duration = Duration::from_millis(5);
const REPLY_KEEPALIVE: Duration = Duration::from_secs(5);
/// A stream that has lasted so long was one.
const STEADY_TIME: Duration = Duration::from_secs(5);
/// What the primary asks of a replica that writes pages, and it has not looked at; beyond, the stream is of no use.
const REQUESTS_MAX: usize = 16;
/// Horizons whose replay is waited for, to tell how far the replica is behind.
const UNSHOWN_MAX: usize = 4096;

/// What wakes the follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wakeup {
    /// The time is over.
    Timeout,
    /// Something has come by the stream.
    Streamed,
    /// The thread is to end.
    Stop,
}

#[derive(Default)]
struct LatchState {
    stopped: bool,
    streamed: bool,
}

/// How others reach the thread that follows the log.
#[derive(Default)]
pub(super) struct FollowerLatch {
    state: Mutex<LatchState>,
    changed: Condvar,
}

impl FollowerLatch {
    fn locked(&self) -> MutexGuard<'_, LatchState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread is to end.
    pub(super) fn stop(&self) {
        self.locked().stopped = true;
        self.changed.notify_all();
    }

    fn streamed(&self) {
        let mut state = self.locked();
        if !state.streamed {
            state.streamed = true;
            self.changed.notify_all();
        }
    }

    /// Waits that long; false if the thread is to end.
    pub(super) fn pause(&self, time: Duration) -> bool {
        let is_on = |state: &mut LatchState| !state.stopped;
        let waited = self.changed.wait_timeout_while(self.locked(), time, is_on);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !state.stopped
    }

    /// Waits that long, or until something has come by the stream.
    pub(super) fn wait(&self, time: Duration) -> Wakeup {
        let is_idle = |state: &mut LatchState| !state.stopped && !state.streamed;
        let waited = self
            .changed
            .wait_timeout_while(self.locked(), time, is_idle);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match (state.stopped, std::mem::take(&mut state.streamed)) {
            (true, _) => Wakeup::Stop,
            (false, true) => Wakeup::Streamed,
            (false, false) => Wakeup::Timeout,
        }
    }
}

#[derive(Default)]
struct LinkState {
    /// What is followed, once that is known.
    followed: Option<FollowedLog>,
    stopped: bool,
    /// While there is a connection.
    replies: Option<Arc<Replies>>,
    /// The horizons that have come and are not shown yet: each with the bytes that had come before it, and when.
    unshown: VecDeque<(Csn, u64, i64)>,
    replied: Csn,
    /// What snapshots see; 0 before that is known.
    visible: Csn,
    /// The checkpoints that it was told of, if it wants to know.
    told: Option<Vec<ObjectId>>,
    /// Those that are read from.
    checkpoints: Option<ReplicaCheckpoints>,
    /// What the primary asks.
    requests: VecDeque<PageRequest>,
    /// Rows that the primary asks for.
    reads: ReadQueue,
    /// By the monotonic clock, in nanoseconds.
    replied_at: u64,
}

/// What the two threads share.
pub(super) struct StreamLink {
    pub(super) blocks: Arc<StreamedBlocks>,
    env: Env,
    status: Arc<ReplicaStatus>,
    latch: Arc<FollowerLatch>,
    /// It offers to write pages.
    writes_pages: bool,
    state: Mutex<LinkState>,
    changed: Condvar,
    /// There are rows to be told, or the thread is to end.
    asked: Condvar,
}

impl StreamLink {
    fn locked(&self) -> MutexGuard<'_, LinkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut StreamReport)) {
        // Another one may have begun behind a thread that was stopped.
        if self.locked().stopped {
            return;
        }
        self.status.update(|report| {
            if let Some(stream) = &mut report.stream {
                change(stream);
            }
        });
    }

    /// What is followed now: with another epoch the stream of the one before is of no use any more.
    pub(super) fn follows(&self, log: FollowedLog) {
        let mut state = self.locked();
        if state.followed.replace(log) != Some(log) {
            if let Some(replies) = &state.replies {
                replies.close();
            }
            self.changed.notify_all();
        }
    }

    /// What the primary asks next.
    pub(super) fn take_request(&self) -> Option<PageRequest> {
        self.locked().requests.pop_front()
    }

    /// The rows that the primary asks for next; nothing if the thread is to end.
    pub(super) fn next_read(&self) -> Option<ReadTurn> {
        let state = self.locked();
        let is_idle = |state: &mut LinkState| !state.stopped && state.reads.is_empty();
        let waited = self.asked.wait_while(state, is_idle);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner);
        match state.stopped {
            true => None,
            false => state.reads.pop(self.env.clock.monotonic()),
        }
    }

    /// By which the primary is told something, if there is a connection.
    fn replies(&self) -> Option<Arc<Replies>> {
        self.locked().replies.clone()
    }

    /// Tells the primary what becomes of an order, if there is a connection.
    pub(super) fn tells(&self, reply: PageReply) {
        if let Some(replies) = self.replies() {
            replies.put(encoded(&StreamReply::Pages(reply)));
        }
    }

    /// Tells the primary rows, if there is a connection. Waits while it takes nothing.
    pub(super) fn tells_rows(&self, answer: PageReadAnswer) {
        if let Some(replies) = self.replies() {
            replies.put_rows(encoded(&StreamReply::Rows(answer)));
        }
    }

    /// Has the thread that follows look at what there is.
    pub(super) fn wake_follower(&self) {
        self.latch.streamed();
    }

    /// Is there a connection?
    pub(super) fn is_connected(&self) -> bool {
        self.locked().replies.is_some()
    }

    /// These checkpoints are read from.
    pub(super) fn reads(&self, checkpoints: ReplicaCheckpoints) {
        self.locked().checkpoints = Some(checkpoints);
    }

    /// Snapshots see everything below `visible`. Tells the primary, unless it was told a moment ago: then it gives how
    /// soon this is to be said again.
    pub(super) fn shows(&self, visible: Csn) -> Option<Duration> {
        let mut state = self.locked();
        state.visible = visible;
        let mut replayed = None;
        while let Some(&(horizon, bytes, _)) = state.unshown.front()
            && horizon <= visible
        {
            replayed = Some(bytes);
            state.unshown.pop_front();
        }
        let behind_since = state.unshown.front().map(|&(_, _, at)| at);
        let owed = self.reply(&mut state);
        drop(state);
        self.update(|stream| {
            stream.behind_since = behind_since;
            if let Some(bytes) = replayed {
                stream.replayed_bytes = stream.replayed_bytes.max(bytes);
            }
        });
        owed
    }

    /// Tells the primary what snapshots see, perhaps once more, and from which checkpoints is read. If it is too early
    /// for that, it gives how soon it is to be said.
    fn reply(&self, state: &mut LinkState) -> Option<Duration> {
        let now = self.env.clock.monotonic().as_nanos();
        let since = Duration::from_nanos(now.saturating_sub(state.replied_at));
        let visible = state.visible;
        let in_use = state.checkpoints.as_ref();
        let in_use = in_use.and_then(ReplicaCheckpoints::in_use);
        let is_untold =
            |in_use: &Vec<ObjectId>| state.told.as_ref().is_some_and(|told| told != in_use);
        let in_use = in_use.filter(is_untold);
        let is_news = visible > state.replied || in_use.is_some();
        let due = if is_news {
            REPLY_PAUSE
        } else {
            REPLY_KEEPALIVE
        };
        if since < due {
            return is_news.then(|| due.saturating_sub(since));
        }
        let replies = state.replies.clone()?;
        let mut out = Vec::new();
        if visible > Csn::ZERO {
            let reply = StreamReply::Replayed {
                replayed: visible,
                clock: self.env.clock.now_micros_since_2000(),
            };
            reply.encode(&mut out);
        }
        if let Some(in_use) = in_use {
            let told = StreamReply::Checkpoints(in_use.clone());
            told.encode(&mut out);
            state.told = Some(in_use);
        }
        if !out.is_empty() {
            replies.put(out);
        }
        state.replied = visible;
        state.replied_at = now;
        None
    }

    fn heard(&self, horizon: Csn, clock: i64, sent_bytes: u64) {
        let now = self.env.clock.now_micros_since_2000();
        let is_news = {
            let mut state = self.locked();
            let newest = state.unshown.back().map(|&(newest, _, _)| newest);
            let is_news = horizon > newest.unwrap_or(state.replied);
            if is_news && state.unshown.len() < UNSHOWN_MAX {
                state.unshown.push_back((horizon, sent_bytes, now));
            }
            // Who follows may be busy, or without its home, for long.
            self.reply(&mut state);
            is_news
        };
        self.update(|stream| {
            stream.received = stream.received.max(horizon);
            stream.received_bytes = sent_bytes;
            stream.last_sent_at = Some(clock);
            stream.last_received_at = Some(now);
            if is_news {
                stream.last_news_at = Some(now);
                stream.behind_since.get_or_insert(now);
            }
        });
    }
}

fn encoded(reply: &StreamReply) -> Vec<u8> {
    let mut out = Vec::new();
    reply.encode(&mut out);
    out
}

impl ReplySink for ReplyWriter {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        ReplyWriter::send(self, message)
    }
}

/// The thread; it ends when this is dropped. It is not waited for: it may be about to connect to a host that does not
/// answer, and shares nothing with what comes after it.
pub(super) struct StreamReceiver {
    pub(super) link: Arc<StreamLink>,
}

impl StreamReceiver {
    /// Starts it. Whoever follows is woken by `latch`.
    pub(super) fn start(
        connection: PrimaryConnection,
        names: &Arc<dyn NamedValues>,
        env: &Env,
        status: &Arc<ReplicaStatus>,
        latch: &Arc<FollowerLatch>,
        writes_pages: bool,
    ) -> io::Result<StreamReceiver> {
        status.update(|report| {
            let stream = report.stream.get_or_insert_default();
            connection.shown().clone_into(&mut stream.conninfo);
        });
        let link = Arc::new(StreamLink {
            blocks: Arc::default(),
            env: env.clone(),
            status: Arc::clone(status),
            latch: Arc::clone(latch),
            writes_pages,
            state: Mutex::default(),
            changed: Condvar::new(),
            asked: Condvar::new(),
        });
        let receiver = Receiver {
            connection,
            names: Arc::clone(names),
            link: Arc::clone(&link),
            latch: Arc::clone(latch),
            last_error: String::new(),
        };
        let _ends_by_itself = env.spawn("replica-stream", None, move || receiver.run())?;
        Ok(StreamReceiver { link })
    }
}

impl Drop for StreamReceiver {
    fn drop(&mut self) {
        let mut state = self.link.locked();
        state.stopped = true;
        if let Some(replies) = &state.replies {
            replies.close();
        }
        drop(state);
        self.link.changed.notify_all();
        self.link.asked.notify_all();
    }
}

struct Receiver {
    connection: PrimaryConnection,
    /// At the home that is read.
    names: Arc<dyn NamedValues>,
    link: Arc<StreamLink>,
    latch: Arc<FollowerLatch>,
    last_error: String,
}

impl Receiver {
    fn run(mut self) {
        let mut pause = RETRY_PAUSE_MIN;
        while let Some(followed) = self.followed() {
            let begun = self.link.env.clock.monotonic();
            let ended = match self.connect(followed) {
                Ok(stream) => {
                    let (host, port) = stream.link.host();
                    info!("the log comes from the primary at {host}:{port}");
                    let ended = self.receive(stream, followed);
                    self.disconnected();
                    ended.map_err(|error| error.to_string())
                }
                Err(why) => Err(why),
            };
            // One that lets the replica in and hangs up is no better than one that does not let it in.
            if self.link.env.clock.monotonic().since(begun) > STEADY_TIME {
                pause = RETRY_PAUSE_MIN;
                self.last_error.clear();
            }
            if self.pause_before_retry(followed, pause) {
                return;
            }
            pause = (pause * 2).min(RETRY_PAUSE_MAX);
            let why = ended.err().unwrap_or_default();
            if !why.is_empty() && why != self.last_error {
                warn!("no stream from the primary, the log is read at its home: {why}");
                self.link
                    .update(|stream| stream.last_error = Some(why.clone()));
                self.last_error = why;
            }
        }
    }

    /// What is followed, once that is known; nothing if the thread is to end.
    fn followed(&self) -> Option<FollowedLog> {
        let state = self.link.locked();
        let is_unknown = |state: &mut LinkState| !state.stopped && state.followed.is_none();
        let waited = self.link.changed.wait_while(state, is_unknown);
        let state = waited.unwrap_or_else(PoisonError::into_inner);
        match state.stopped {
            true => None,
            false => state.followed,
        }
    }

    /// Waits before the next try, less long if something else is followed by then. True: the thread is to end.
    fn pause_before_retry(&self, followed: FollowedLog, pause: Duration) -> bool {
        let state = self.link.locked();
        let waits = |state: &mut LinkState| !state.stopped && state.followed == Some(followed);
        let waited = self.link.changed.wait_timeout_while(state, pause, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.stopped
    }

    /// Connects to the host that is the primary.
    fn connect(&self, followed: FollowedLog) -> Result<StartedStream, String> {
        let mut why = Vec::new();
        for (host, port) in self.connection.hosts() {
            let connected = self
                .connection
                .connect_to(&host, port, &self.link.env)
                .and_then(|link| start(link, followed, self.names.as_ref()));
            match connected {
                Ok(connected) => return Ok(connected),
                Err(error) => why.push(format!("{host}:{port}: {error}")),
            }
        }
        Err(why.join("; "))
    }

    fn receive(&self, stream: StartedStream, followed: FollowedLog) -> io::Result<()> {
        let StartedStream {
            mut link,
            horizon: start,
            has_holds,
            has_pages,
            has_rows,
        } = stream;
        link.set_read_timeout(SILENCE_MAX)?;
        let (sends, hangs_up) = (link.writer(SEND_TIME)?, link.writer(SEND_TIME)?);
        let hangup = Box::new(move || hangs_up.shut_down());
        let replies = Replies::start(&self.link.env, sends, hangup)?;
        if has_pages && self.link.writes_pages {
            let mut out = Vec::new();
            StreamReply::WritesPages.encode(&mut out);
            if has_rows {
                StreamReply::TellsRows.encode(&mut out);
            }
            replies.put(out);
        }
        self.link.blocks.begin(followed.database, followed.epoch);
        {
            let mut state = self.link.locked();
            if state.stopped || state.followed != Some(followed) {
                drop(state);
                replies.close();
                return Ok(());
            }
            state.replies = Some(replies);
            state.requests.clear();
            state.reads.clear();
            state.unshown.clear();
            state.replied = Csn::ZERO;
            state.told = has_holds.then(Vec::new);
        }
        let (host, port) = link.host();
        let primary = (host.to_owned(), port);
        self.link.update(|stream| {
            *stream = StreamReport {
                primary: Some(primary),
                conninfo: std::mem::take(&mut stream.conninfo),
                start,
                last_error: stream.last_error.take(),
                ..StreamReport::default()
            };
        });
        loop {
            let data = match link.stream_input()? {
                StreamInput::Data(data) => data,
                StreamInput::Silence => {
                    return Err(io::Error::other("the primary is silent"));
                }
            };
            match StreamMessage::decode(&data) {
                Some(StreamMessage::Block {
                    lane,
                    segment,
                    offset,
                    bytes,
                }) => {
                    // One that is not taken is read at the home.
                    let at = Position { segment, offset };
                    let _is_taken = self.link.blocks.add(lane, at, bytes.into());
                }
                Some(StreamMessage::Horizon {
                    horizon,
                    clock,
                    sent_bytes,
                }) => {
                    self.link.blocks.learn(horizon);
                    self.link.heard(horizon, clock, sent_bytes);
                    self.latch.streamed();
                }
                Some(StreamMessage::Pages(PageRequest::Read(read))) => {
                    let now = self.link.env.clock.monotonic();
                    self.link.locked().reads.push(read, now);
                    self.link.asked.notify_one();
                }
                Some(StreamMessage::Pages(request)) => {
                    let mut state = self.link.locked();
                    if state.requests.len() == REQUESTS_MAX {
                        return Err(io::Error::other("the primary asks too much"));
                    }
                    state.requests.push_back(request);
                    drop(state);
                    self.latch.streamed();
                }
                None => {
                    return Err(io::Error::other(
                        "the primary has sent what is no part of the log",
                    ));
                }
            }
        }
    }

    fn disconnected(&self) {
        let mut state = self.link.locked();
        if let Some(replies) = state.replies.take() {
            replies.close();
        }
        state.requests.clear();
        state.reads.clear();
        state.unshown.clear();
        drop(state);
        self.link.update(|stream| {
            stream.primary = None;
            stream.is_in_use = false;
            stream.behind_since = None;
            stream.received = Csn::ZERO;
        });
        // The follower looks at the home again.
        self.latch.streamed();
    }
}

/// A connection to the primary, by which it sends its log.
struct StartedStream {
    link: ReplicationLink,
    /// The primary's, before that.
    horizon: Csn,
    /// It keeps checkpoints for replicas that name them.
    has_holds: bool,
    /// It has pages written by replicas that offer it.
    has_pages: bool,
    /// It asks those for rows.
    has_rows: bool,
}

/// Asks who the server is, and for its log.
fn start(
    mut link: ReplicationLink,
    followed: FollowedLog,
    names: &dyn NamedValues,
) -> io::Result<StartedStream> {
    let identity = link.query("IDENTIFY_SYSTEM")?;
    let server = identity
        .get(4)
        .and_then(|hex| u64::from_str_radix(hex, 16).ok());
    let published = server_identity::published(names).map_err(io::Error::other)?;
    if server.is_none() || server != published {
        let what = "it is no server of the home that this replica reads, or not the newest one";
        return Err(io::Error::other(what));
    }
    let horizon = identity.get(2).and_then(|text| text.parse().ok());
    let horizon =
        horizon.ok_or_else(|| io::Error::other("the server does not tell its horizon"))?;
    let FollowedLog { database, epoch } = followed;
    let database = database.get();
    let command = format!("START_REPLICATION BLOCKS {database:016x} TIMELINE {epoch}");
    link.start_copy(&command)?;
    Ok(StartedStream {
        link,
        horizon: Csn(horizon),
        has_holds: identity.get(5).is_some(),
        has_pages: identity.get(6).is_some(),
        has_rows: identity.get(7).is_some(),
    })
}
