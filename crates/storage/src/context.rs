//! What all connections of a node share.
//!
//! Does not: know what connections do.

use crate::encryption::NodeCertificate;
use crate::volumes::Volumes;
use logstead_env::{Env, JobQueue};
use logstead_home::LocalVolume;
use logstead_home::node::handshake::VolumeKey;
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
    short: JobQueue<Job>,
    bulk: JobQueue<Job>,
}

/// The connections that there are, by number.
#[derive(Default)]
struct Connections {
    next: u64,
    open: BTreeMap<u64, TcpStream>,
}

/// A connection's place among them.
pub(crate) struct ConnectionSlot {
    context: Arc<NodeContext>,
    number: u64,
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
        let number = connections.next;
        connections.next += 1;
        connections.open.insert(number, socket.try_clone()?);
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
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Cuts all connections, and waits until they are gone.
    pub(crate) fn cut_all(&self) {
        let mut connections = self.connections.lock();
        for socket in connections.open.values() {
            let _it_is_gone_already = socket.shutdown(Shutdown::Both);
        }
        while !connections.open.is_empty() {
            self.left.wait(&mut connections);
        }
    }

    pub(crate) fn key_of(&self, volume: &str) -> VolumeKey {
        VolumeKey::of_secret(&self.identity.secret, volume)
    }

    /// Has a thread do something.
    pub(crate) fn push(&self, job: impl FnOnce() + Send + 'static, moves_much: bool) {
        match moves_much {
            true => self.bulk.push(Box::new(job)),
            false => self.short.push(Box::new(job)),
        }
    }

    /// What people should know of the node and one of its volumes: lines of name and value.
    pub(crate) fn describe(&self, volume: &LocalVolume) -> String {
        let mut lines = vec![
            ("node".to_owned(), format!("{:016x}", self.volumes.id())),
            ("zone".to_owned(), self.identity.zone.clone()),
            ("version".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ];
        if let Some(free) = volume.free_bytes() {
            lines.push(("free bytes".to_owned(), free.to_string()));
        }
        lines.extend(volume.report());
        let line = |(name, value): &(String, String)| format!("{name}\t{value}\n");
        lines.iter().map(line).collect()
    }
}
