//! What all connections of a node share.
//!
//! Does not: know what connections do.

use crate::damage::VolumeDamage;
use crate::encryption::NodeCertificate;
use crate::volumes::Volumes;
use logstead_env::{Env, Instant, JobQueue};
use logstead_home::node::handshake::VolumeKey;
use logstead_home::{DAMAGED_OBJECTS, LocalVolume};
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Connections at the same time, at most.
const CONNECTIONS_MAX: usize = 1000;
/// Threads for requests that are short.
const SHORT_THREADS: usize = 4;
/// Threads for requests that move much or take long.
const BULK_THREADS: usize = 4;

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
}

/// What some thread does.
type Job = Box<dyn FnOnce() + Send>;

/// Who the node is.
pub(crate) struct NodeIdentity {
    pub(crate) zone: String,
    pub(crate) distance: Duration,
    pub(crate) secret: Vec<u8>,
    pub(crate) certificate: Option<NodeCertificate>,
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
    watching: Mutex<()>,
    stopped: Condvar,
    names: JobQueue<Job>,
    short: JobQueue<Job>,
    bulk: JobQueue<Job>,
}

/// The connections that there are, by number.
#[derive(Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, OpenConnection>,
}

struct OpenConnection {
    socket: TcpStream,
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
            watching: Mutex::new(()),
            stopped: Condvar::new(),
            names: pool("node-names", NAME_THREADS)?,
            short: pool("node-short", SHORT_THREADS)?,
            bulk: pool("node-bulk", BULK_THREADS)?,
        })
    }

    /// A place for one more connection, which is cut when the node ends.
    pub(crate) fn admit(self: &Arc<Self>, socket: &TcpStream) -> io::Result<ConnectionSlot> {
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
            socket: socket.try_clone()?,
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
                    let _it_is_gone_already = open.socket.shutdown(Shutdown::Both);
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

    /// Cuts all connections, and waits until they are gone.
    pub(crate) fn cut_all(&self) {
        let mut connections = self.connections.lock();
        for open in connections.open.values() {
            let _it_is_gone_already = open.socket.shutdown(Shutdown::Both);
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
        if let Some(free) = volume.free_bytes() {
            lines.push(("free bytes".to_owned(), free.to_string()));
        }
        let damaged = self.damage.lock().get(name).map_or(0, VolumeDamage::count);
        if damaged > 0 {
            lines.push((DAMAGED_OBJECTS.to_owned(), damaged.to_string()));
        }
        lines.extend(volume.report());
        let line = |(name, value): &(String, String)| format!("{name}\t{value}\n");
        lines.iter().map(line).collect()
    }
}
