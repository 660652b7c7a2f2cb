//! What all connections of a node share.
//!
//! Does not: know what connections do.

use crate::damage::VolumeDamage;
use crate::encryption::NodeCertificate;
use crate::note::VolumeNote;
use crate::volumes::Volumes;
use logstead_env::{Condvar, Env, Instant, JobQueue};
use logstead_home::node::handshake::VolumeKey;
use logstead_home::node::message::{PROTOCOL_FIRST, PROTOCOL_LINE, Request};
use logstead_home::node::peers::{PeerIdentity, PeerSessionCount};
use logstead_home::{BYTES_FROM_PEERS, DAMAGED_OBJECTS, DamageCheck, LocalVolume};
use logstead_link::LinkStream;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Connections at the same time, at most.
const CONNECTIONS_MAX: usize = 1000;
/// Threads for requests that are short.
const SHORT_THREADS: usize = 4;
/// Threads for requests that move much or take long.
const BULK_THREADS: usize = 4;

/// Threads for what is fetched from peers: so much of that at the same time.
const FETCH_THREADS: usize = 4;

/// Connections that have not said whose they are, at most.
const STRANGERS_MAX: usize = 200;
/// How long a connection may take to say whose it is.
const STRANGER_TIME: Duration = Duration::from_secs(10);
/// Between two looks at those.
const STRANGERS_LOOK: Duration = Duration::from_secs(1);
/// Threads for named values, a lease among them.
const NAME_THREADS: usize = 2;

/// What a request waits behind.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestLine {
    /// Named values.
    Names,
    /// What is short.
    Short,
    /// What moves much, or takes long.
    Bulk,
    /// What is fetched from peers.
    Fetches,
}

/// What some thread does.
type Job = Box<dyn FnOnce() + Send>;

/// Who the node is.
pub(crate) struct NodeIdentity {
    pub(crate) zone: String,
    pub(crate) distance: Duration,
    pub(crate) secret: Vec<u8>,
    pub(crate) certificate: Option<NodeCertificate>,
    pub(crate) protocol: u32,
    pub(crate) damage: DamageCheck,
}

/// What all connections share.
pub(crate) struct NodeContext {
    env: Env,
    volumes: Volumes,
    identity: NodeIdentity,
    connections: Mutex<Connections>,
    left: Condvar,
    stopping: AtomicBool,
    /// By volume, of those that were found damaged.
    damage: Mutex<BTreeMap<String, VolumeDamage>>,
    /// By volume, what background work tells of it.
    notes: Mutex<BTreeMap<String, VolumeNote>>,
    watching: Mutex<()>,
    stopped: Condvar,
    /// Appends that have come, to all volumes.
    appends: AtomicU64,
    /// Connections to peers.
    peer_sessions: Arc<PeerSessionCount>,
    /// Bytes that were fetched from peers.
    fetched_bytes: AtomicU64,
    names: JobQueue<Job>,
    short: JobQueue<Job>,
    bulk: JobQueue<Job>,
    fetches: JobQueue<Job>,
}

/// The connections that there are, by number.
#[derive(Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    stream: LinkStream,
    /// Since when it has not said whose it is.
    stranger_since: Option<Instant>,
}

/// A connection's place among them.
pub(crate) struct ConnectionSlot {
    context: Arc<NodeContext>,
    number: u64,
}

impl ConnectionSlot {
    /// It has said whose it is.
    pub(crate) fn greeted(&self) {
        let mut connections = self.context.connections.lock();
        if let Some(open) = connections.open.get_mut(&self.number) {
            open.stranger_since = None;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.context.connections.lock().open.remove(&self.number);
        self.context.left.notify_all();
    }
}

impl NodeContext {
    pub(crate) fn new(
        volumes: Volumes,
        env: &Env,
        identity: NodeIdentity,
    ) -> io::Result<NodeContext> {
        let pool = |name: &str, threads| JobQueue::start_pool(env, name, threads, |job: Job| job());
        Ok(NodeContext {
            volumes,
            env: env.clone(),
            identity,
            connections: Mutex::default(),
            left: Condvar::new(),
            stopping: AtomicBool::new(false),
            damage: Mutex::default(),
            notes: Mutex::default(),
            watching: Mutex::new(()),
            stopped: Condvar::new(),
            names: pool("node-names", NAME_THREADS)?,
            short: pool("node-short", SHORT_THREADS)?,
            bulk: pool("node-bulk", BULK_THREADS)?,
            fetches: pool("node-fetch", FETCH_THREADS)?,
            appends: AtomicU64::new(0),
            fetched_bytes: AtomicU64::new(0),
            peer_sessions: Arc::default(),
        })
    }

    /// A place for one more connection, which is cut when the node ends.
    pub(crate) fn admit(self: &Arc<Self>, stream: &LinkStream) -> io::Result<ConnectionSlot> {
        let mut connections = self.connections.lock();
        if connections.open.len() >= CONNECTIONS_MAX {
            return Err(io::Error::other(format!(
                "there are {CONNECTIONS_MAX} connections"
            )));
        }
        let strangers = connections
            .open
            .values()
            .filter(|open| open.stranger_since.is_some());
        if strangers.count() >= STRANGERS_MAX {
            return Err(io::Error::other("too many have not said whose they are"));
        }
        let number = connections.next;
        connections.next += 1;
        let connection = OpenConnection {
            stream: stream.try_clone()?,
            stranger_since: Some(self.env.clock.monotonic()),
        };
        connections.open.insert(number, connection);
        Ok(ConnectionSlot {
            context: Arc::clone(self),
            number,
        })
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    pub(crate) fn distance(&self) -> Duration {
        self.identity.distance
    }

    pub(crate) fn certificate(&self) -> Option<&NodeCertificate> {
        self.identity.certificate.as_ref()
    }

    /// Who it is to its peers, in a volume.
    pub(crate) fn as_peer(&self, volume: &str) -> PeerIdentity {
        PeerIdentity {
            volume: volume.to_owned(),
            key: self.key_of(volume),
            encrypted: self.identity.certificate.is_some(),
            has_secret: !self.identity.secret.is_empty(),
            node: self.volumes.id(),
            count: Arc::clone(&self.peer_sessions),
        }
    }

    /// What is wrong with an object's bytes, if anything is.
    pub(crate) fn damage_of(&self, bytes: &[u8]) -> Option<String> {
        (self.identity.damage)(bytes)
    }

    /// One append more has come.
    pub(crate) fn note_append(&self) {
        self.appends.fetch_add(1, Ordering::Relaxed);
    }

    /// How many have come.
    pub(crate) fn appends(&self) -> u64 {
        self.appends.load(Ordering::Relaxed)
    }

    /// So many bytes more have come from peers.
    pub(crate) fn note_fetched(&self, bytes: u64) {
        self.fetched_bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Does this node know requests of this kind?
    pub(crate) fn knows(&self, kind: u8) -> bool {
        Request::protocol_of(kind) <= self.identity.protocol
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// No connection begins from now on.
    pub(crate) fn stop(&self) {
        let _watching = self.watching.lock();
        self.stopping.store(true, Ordering::SeqCst);
        self.stopped.notify_all();
    }

    /// Cuts connections that do not say in time whose they are, until the node stops.
    pub(crate) fn watch_strangers(&self) {
        while !self.is_stopping() {
            let now = self.env.clock.monotonic();
            for open in self.connections.lock().open.values() {
                let since = open.stranger_since;
                if since.is_some_and(|since| now.since(since) > STRANGER_TIME) {
                    open.stream.shut_down();
                }
            }
            let mut watching = self.watching.lock();
            if !self.is_stopping() {
                self.stopped.wait_for(&mut watching, STRANGERS_LOOK);
            }
        }
    }

    /// Waits so long. False: the node stops.
    pub(crate) fn sleep(&self, time: Duration) -> bool {
        let end = self.env.clock.monotonic() + time;
        let mut watching = self.watching.lock();
        while !self.is_stopping() {
            let now = self.env.clock.monotonic();
            if now >= end {
                return true;
            }
            self.stopped.wait_for(&mut watching, end.since(now));
        }
        false
    }

    /// Changes what is known of a volume's damage.
    pub(crate) fn note_damage<T>(
        &self,
        volume: &str,
        note: impl FnOnce(&mut VolumeDamage) -> T,
    ) -> T {
        note(self.damage.lock().entry(volume.to_owned()).or_default())
    }

    /// What background work tells of a volume from now on.
    pub(crate) fn set_note(&self, volume: &str, note: VolumeNote) {
        self.notes.lock().insert(volume.to_owned(), note);
    }

    /// Forgets what was told of other volumes than these.
    pub(crate) fn keep_notes(&self, volumes: &[String]) {
        self.notes.lock().retain(|name, _| volumes.contains(name));
    }

    fn note_of(&self, volume: &str) -> Vec<(String, String)> {
        let Some(VolumeNote { mut lines, age }) = self.notes.lock().get(volume).cloned() else {
            return Vec::new();
        };
        if let Some((name, since)) = age {
            let passed = self.env.clock.monotonic().since(since);
            lines.push((name, passed.as_secs().to_string()));
        }
        // A line has one name and one value.
        for (_, value) in &mut lines {
            *value = value.replace(['\t', '\n', '\r'], " ");
        }
        lines
    }

    /// Cuts all connections, and waits until they are gone.
    pub(crate) fn cut_all(&self) {
        let mut connections = self.connections.lock();
        for open in connections.open.values() {
            open.stream.shut_down();
        }
        while !connections.open.is_empty() {
            self.left.wait(&mut connections);
        }
    }

    pub(crate) fn key_of(&self, volume: &str) -> VolumeKey {
        VolumeKey::of_secret(&self.identity.secret, volume)
    }

    /// Has a thread do something.
    pub(crate) fn push(&self, job: impl FnOnce() + Send + 'static, line: RequestLine) {
        let queue = match line {
            RequestLine::Names => &self.names,
            RequestLine::Short => &self.short,
            RequestLine::Bulk => &self.bulk,
            RequestLine::Fetches => &self.fetches,
        };
        queue.push(Box::new(job));
    }

    /// What people should know of the node and one of its volumes: lines of name and value.
    pub(crate) fn describe(&self, name: &str, volume: &LocalVolume) -> String {
        let mut lines = vec![
            ("node".to_owned(), format!("{:016x}", self.volumes.id())),
            ("zone".to_owned(), self.identity.zone.clone()),
            ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ];
        if self.identity.protocol > PROTOCOL_FIRST {
            lines.push((PROTOCOL_LINE.to_owned(), self.identity.protocol.to_string()));
        }
        let fetched = self.fetched_bytes.load(Ordering::Relaxed);
        if fetched > 0 {
            lines.push((BYTES_FROM_PEERS.to_owned(), fetched.to_string()));
        }
        if let Some(free) = volume.free_bytes() {
            lines.push(("free bytes".to_owned(), free.to_string()));
        }
        let damaged = self.damage.lock().get(name).map_or(0, VolumeDamage::count);
        if damaged > 0 {
            lines.push((DAMAGED_OBJECTS.to_owned(), damaged.to_string()));
        }
        lines.extend(self.note_of(name));
        lines.extend(volume.report());
        let line = |(name, value): &(String, String)| format!("{name}\t{value}\n");
        lines.iter().map(line).collect()
    }
}
