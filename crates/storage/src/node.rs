//! What listens, and what all connections share.

use crate::connection::{self, Job};
use crate::encryption::NodeCertificate;
use crate::volumes::Volumes;
use logstead_env::{Env, JobQueue, JoinHandle};
use logstead_home::node::handshake::VolumeKey;
use logstead_home::{HomeError, IoMethod, LocalVolume};
use logstead_link::LinkStream;
use parking_lot::{Condvar, Mutex};
use std::collections::BTreeMap;
use std::io;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tracing::warn;

/// Connections at the same time, at most.
const CONNECTIONS_MAX: usize = 1000;
/// Threads for requests that are short.
const SHORT_THREADS: usize = 4;
/// Threads for requests that move much or take long.
const BULK_THREADS: usize = 4;
/// A pause after accept fails (no file descriptors left): others may end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a server may take to encrypt.
const ENCRYPT_TIME: Duration = Duration::from_secs(5);
/// How long the node waits for itself when it ends.
const WAKE_TIME: Duration = Duration::from_secs(1);

/// What a node is.
pub struct NodeOptions {
    /// Where it listens; port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where it stores.
    pub dir: PathBuf,
    /// The zone that it stands in: what fails together.
    pub zone: String,
    /// The fleet's secret; empty on a loopback address only.
    pub secret: Vec<u8>,
    /// With this it encrypts, and speaks with nobody who does not; without it listens on a loopback address only.
    pub certificate: Option<NodeCertificate>,
    /// Length of a segment, a multiple of 4096; all nodes of a volume have the same.
    pub segment_bytes: u64,
    /// How it writes.
    pub way: IoMethod,
}

/// A node cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    /// Anybody could listen, or ask.
    #[error(
        "{0} is not a loopback address: a node listens there only with a secret and a certificate"
    )]
    Exposed(SocketAddr),
    /// The directory cannot be used.
    #[error(transparent)]
    Home(#[from] HomeError),
    /// The machine says no.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// The machine says no.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}

/// What all connections share.
pub(crate) struct Shared {
    env: Env,
    volumes: Volumes,
    zone: String,
    secret: Vec<u8>,
    certificate: Option<NodeCertificate>,
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
struct ConnectionSlot {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.shared.connections.lock().open.remove(&self.number);
        self.shared.left.notify_all();
    }
}

impl Shared {
    /// A place for one more connection, which is cut when the node ends.
    fn admit(self: &Arc<Self>, socket: &TcpStream) -> io::Result<ConnectionSlot> {
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
            shared: Arc::clone(self),
            number,
        })
    }

    pub(crate) fn env(&self) -> &Env {
        &self.env
    }

    pub(crate) fn volumes(&self) -> &Volumes {
        &self.volumes
    }

    pub(crate) fn key_of(&self, volume: &str) -> VolumeKey {
        VolumeKey::of_secret(&self.secret, volume)
    }

    /// Has a thread do something.
    pub(crate) fn push(&self, job: Job, moves_much: bool) {
        match moves_much {
            true => self.bulk.push(job),
            false => self.short.push(job),
        }
    }

    /// What people should know of the node and one of its volumes: lines of name and value.
    pub(crate) fn describe(&self, volume: &LocalVolume) -> String {
        let mut lines = vec![
            ("node".to_owned(), format!("{:016x}", self.volumes.id())),
            ("zone".to_owned(), self.zone.clone()),
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

/// A running node. Dropping it stops it: connections are cut, requests under way may have been done or not.
pub struct StorageNode {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle>,
}

impl StorageNode {
    /// Opens the directory and begins to listen.
    pub fn start(options: NodeOptions, env: &Env) -> Result<StorageNode, NodeError> {
        let NodeOptions {
            listen,
            dir,
            zone,
            secret,
            certificate,
            segment_bytes,
            way,
        } = options;
        if !listen.ip().is_loopback() && (secret.is_empty() || certificate.is_none()) {
            return Err(NodeError::Exposed(listen));
        }
        let pool = |name: &str, threads| {
            JobQueue::start_pool(env, name, threads, Job::run).map_err(NodeError::Thread)
        };
        let shared = Arc::new(Shared {
            volumes: Volumes::open(&dir, env, segment_bytes, way)?,
            env: env.clone(),
            zone,
            secret,
            certificate,
            connections: Mutex::default(),
            left: Condvar::new(),
            stopping: AtomicBool::new(false),
            short: pool("node-short", SHORT_THREADS)?,
            bulk: pool("node-bulk", BULK_THREADS)?,
        });
        let failed = |error| NodeError::Listen(listen, error);
        let listener = logstead_env::listen(listen).map_err(failed)?;
        listener.set_nonblocking(false).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let accepting = Arc::clone(&shared);
        let accepting = env.spawn("node-accept", None, move || accept(&accepting, &listener));
        Ok(StorageNode {
            address,
            shared,
            accepting: Some(accepting.map_err(NodeError::Thread)?),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The number that was drawn for it.
    pub fn id(&self) -> u64 {
        self.shared.volumes.id()
    }
}

impl Drop for StorageNode {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // The thread that accepts hears of it with the next connection.
        let _woken = logstead_env::connect(self.address, WAKE_TIME);
        if let Some(accepting) = self.accepting.take() {
            let _ended = accepting.join();
        }
        let mut connections = self.shared.connections.lock();
        for socket in connections.open.values() {
            let _it_is_gone_already = socket.shutdown(Shutdown::Both);
        }
        while !connections.open.is_empty() {
            self.shared.left.wait(&mut connections);
        }
    }
}

fn accept(shared: &Arc<Shared>, listener: &TcpListener) {
    loop {
        let accepted = listener.accept();
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        match accepted {
            Ok((socket, peer)) => {
                let slot = shared.admit(&socket);
                let serving = Arc::clone(shared);
                let started = slot.and_then(|slot| {
                    shared.env.spawn("node-connection", None, move || {
                        let _slot = slot;
                        serve(&serving, socket, peer);
                    })
                });
                if let Err(error) = started {
                    warn!("{peer} is refused: {error}");
                }
            }
            Err(error) => {
                warn!("cannot accept a connection: {error}");
                logstead_env::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

fn serve(shared: &Arc<Shared>, socket: TcpStream, peer: SocketAddr) {
    let prepared = socket
        .set_nodelay(true)
        .and_then(|()| socket.set_read_timeout(Some(ENCRYPT_TIME)))
        .and_then(|()| socket.set_write_timeout(Some(ENCRYPT_TIME)));
    let stream = prepared.and_then(|()| match &shared.certificate {
        Some(certificate) => certificate.accept(socket).map(LinkStream::Tls),
        None => Ok(LinkStream::Tcp(socket)),
    });
    match stream {
        Ok(stream) => connection::serve(shared, stream, &peer.to_string()),
        Err(error) => tracing::debug!("{peer}: {error}"),
    }
}
