//! A storage node as it runs: the listening socket, a thread for each connection, and the volumes that they share.

use crate::background::NodeBackground;
use crate::connection;
use crate::context::{ConnectionSlot, NodeContext, NodeIdentity};
use crate::encryption::NodeCertificate;
use crate::scrub::{self, ScrubOptions};
use crate::volumes::Volumes;
use logstead_env::{Env, JoinHandle};
use logstead_home::{HomeError, IoMethod};
use logstead_link::{LinkListener, LinkStream};
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tracing::warn;

/// A pause after accept fails (no file descriptors left): others may end meanwhile.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// How long a server may take to encrypt.
const ENCRYPT_TIME: Duration = Duration::from_secs(5);
/// Between two looks whether all requests have ended.
const END_PAUSE: Duration = Duration::from_millis(1);
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
    /// It pretends to be so far away: every answer leaves later. For development and tests.
    pub distance: Duration,
    /// How it looks after its disk.
    pub scrub: ScrubOptions,
    /// Which requests it knows ([`PROTOCOL`](logstead_home::node::message::PROTOCOL)). Less is what a node of an
    /// earlier version does: for tests of fleets that are upgraded one zone at a time.
    pub protocol: u32,
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

/// A running node. Dropping it stops it: connections are cut, requests under way may have been done or not.
pub struct StorageNode {
    address: SocketAddr,
    context: Arc<NodeContext>,
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
            distance,
            scrub,
            protocol,
        } = options;
        if !listen.ip().is_loopback() && (secret.is_empty() || certificate.is_none()) {
            return Err(NodeError::Exposed(listen));
        }
        let volumes = Volumes::open(&dir, env, segment_bytes, way)?;
        let identity = NodeIdentity {
            zone,
            distance,
            secret,
            certificate,
            protocol,
            damage: scrub.damage,
        };
        let context = NodeContext::new(volumes, env, identity).map_err(NodeError::Thread)?;
        let context = Arc::new(context);
        let failed = |error| NodeError::Listen(listen, error);
        let listener = LinkListener::bind(listen).map_err(failed)?;
        let address = listener.address().map_err(failed)?;
        let watching = Arc::clone(&context);
        env.spawn("node-watch", None, move || watching.watch_strangers())
            .map_err(NodeError::Thread)?;
        let scrubbing = Arc::clone(&context);
        env.spawn("node-scrub", None, move || scrub::run(&scrubbing, scrub))
            .map_err(NodeError::Thread)?;
        let accepting = Arc::clone(&context);
        let accepting = env.spawn("node-accept", None, move || accept(&accepting, &listener));
        Ok(StorageNode {
            address,
            context,
            accepting: Some(accepting.map_err(NodeError::Thread)?),
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For work in the background.
    pub fn background(&self) -> NodeBackground {
        NodeBackground::of(&self.context)
    }

    /// The number that was drawn for it.
    pub fn id(&self) -> u64 {
        self.context.volumes().id()
    }
}

impl Drop for StorageNode {
    fn drop(&mut self) {
        self.context.stop();
        // The thread that accepts hears of it with the next connection.
        let _woken = LinkStream::connect(self.address, WAKE_TIME);
        if let Some(accepting) = self.accepting.take() {
            let _ended = accepting.join();
        }
        self.context.cut_all();
        // Requests under way hold the directory: when this returns, another node may have it.
        while Arc::strong_count(&self.context) > 1 {
            logstead_env::sleep(END_PAUSE);
        }
    }
}

fn accept(context: &Arc<NodeContext>, listener: &LinkListener) {
    loop {
        let accepted = listener.accept();
        if context.is_stopping() {
            return;
        }
        match accepted {
            Ok((stream, peer)) => {
                let slot = context.admit(&stream);
                let serving = Arc::clone(context);
                let started = slot.and_then(|slot| {
                    context.env().spawn("node-connection", None, move || {
                        serve(&serving, &slot, stream, peer);
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

fn serve(context: &Arc<NodeContext>, slot: &ConnectionSlot, stream: LinkStream, peer: SocketAddr) {
    let prepared = stream
        .set_read_timeout(ENCRYPT_TIME)
        .and_then(|()| stream.set_write_timeout(ENCRYPT_TIME));
    let stream = prepared.and_then(|()| match (context.certificate(), stream) {
        (Some(certificate), LinkStream::Tcp(socket)) => {
            certificate.accept(socket).map(LinkStream::Tls)
        }
        (_, stream) => Ok(stream),
    });
    match stream {
        Ok(stream) => connection::serve(context, slot, stream, &peer.to_string()),
        Err(error) => tracing::debug!("{peer}: {error}"),
    }
}
