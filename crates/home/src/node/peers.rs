//! What a node fetches from its peers: their connections, and orders for that from a server.
//!
//! **Whom a node connects to.** The addresses come from a server that has proved the key of the volume, and may write
//! to it. Even so they are asked for nothing but this: a node connects as a server does, encrypted unless it listens on
//! a loopback address itself, and proves that it has the key of that volume to whoever is there. Over an encrypted
//! connection nobody can pass the proof on; it opens no other volume, and only to read. Nothing that is stored goes
//! out. What comes in is taken only from who has proved the same key, and is the node that was named, and it goes into
//! the same volume, to which whoever has the key may write as well. Why a peer gives nothing is not told: a server does
//! not learn from it what is at other addresses.
//!
//! Invariants:
//! - There is one connection to each peer at most, for all that one server wants of one volume.
//! - A peer that fails is not asked again for `FAILED_TIME`.
//! - A node has at most `SESSIONS_MAX` such connections, for all volumes.
//!
//! Does not: write anything; the node does (crate `storage`).

use super::frame::FrameBody;
use super::handshake::VolumeKey;
use super::message::{Answer, PEERS_MAX, PROTOCOL_FIRST, Request, encode_peers};
use super::session::{NodeAddress, Session};
use super::{is_done, unexpected};
use crate::usage::UsageCounters;
use crate::{CopyDone, CopyOrder, CopyOrders, HomeError, ObjectId, Peer, Position};
use logstead_env::{Env, Instant, LongMutex};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// How long a peer's answer is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a peer that has failed is left alone.
const FAILED_TIME: Duration = Duration::from_secs(30);

/// Connections of one node to others, at most.
const SESSIONS_MAX: usize = 256;

/// How many connections to others a node has, for all volumes.
#[derive(Default)]
pub struct PeerSessionCount(AtomicUsize);

/// One of them, until this is dropped.
struct Counted(Arc<PeerSessionCount>);

impl Counted {
    fn one_more(of: &Arc<PeerSessionCount>) -> Option<Counted> {
        let counted = Counted(Arc::clone(of));
        // Who is one too many is counted until it knows.
        let before = of.0.fetch_add(1, Ordering::SeqCst);
        (before < SESSIONS_MAX).then_some(counted)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Who a node is to its peers.
#[derive(Clone)]
pub struct PeerIdentity {
    /// Its volume.
    pub volume: String,
    /// The key of that.
    pub key: VolumeKey,
    /// It speaks encrypted only.
    pub encrypted: bool,
    /// The fleet's secret is not empty.
    pub has_secret: bool,
    /// Its own number.
    pub node: u64,
    /// What counts its connections to others.
    pub count: Arc<PeerSessionCount>,
}

/// A peer's connection, as far as there is one.
enum PeerState {
    NotTried,
    Open(OpenPeer),
    Failed(Instant),
}

struct OpenPeer {
    session: Arc<Session>,
    _counted: Counted,
}

/// A node's connections to its peers. Dropping it ends them.
pub struct PeerSessions {
    env: Env,
    identity: PeerIdentity,
    peers: Mutex<BTreeMap<String, Arc<LongMutex<PeerState>>>>,
    ended: AtomicBool,
    counters: Arc<UsageCounters>,
}

impl PeerSessions {
    /// None yet.
    pub fn new(env: &Env, identity: PeerIdentity) -> PeerSessions {
        PeerSessions {
            env: env.clone(),
            identity,
            peers: Mutex::default(),
            ended: AtomicBool::new(false),
            counters: Arc::default(),
        }
    }

    /// Ends them, and makes no more: whoever waits for a peer is told.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        let peers: Vec<_> = self.peers.lock().values().cloned().collect();
        for peer in peers {
            // Whoever is about to connect looks again when he has.
            if let Some(state) = peer.try_lock()
                && let PeerState::Open(open) = &*state
            {
                open.session
                    .end(failed("the server that wants it has gone"));
            }
        }
    }

    /// Have they ended?
    pub fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Reads bytes of a lane.
    pub fn read(
        &self,
        peer: &Peer,
        lane: LaneId,
        at: Position,
        len: u32,
    ) -> Result<Vec<u8>, HomeError> {
        self.bytes(peer, &Request::Read { lane, at, len }, len)
    }

    /// Reads bytes of a side segment.
    pub fn get_side(
        &self,
        peer: &Peer,
        (lane, id): (LaneId, u64),
        offset: u64,
        len: u32,
    ) -> Result<Vec<u8>, HomeError> {
        let request = Request::GetSide {
            lane,
            id,
            offset,
            len,
        };
        self.bytes(peer, &request, len)
    }

    /// Reads bytes of an object.
    pub fn read_object(
        &self,
        peer: &Peer,
        id: ObjectId,
        offset: u64,
        len: u32,
    ) -> Result<Vec<u8>, HomeError> {
        self.bytes(peer, &Request::ReadObject { id, offset, len }, len)
    }

    fn bytes(&self, peer: &Peer, request: &Request, len: u32) -> Result<Vec<u8>, HomeError> {
        let (slot, session) = self.session(peer)?;
        let answer = session.call(request, FrameBody::NONE, PATIENCE);
        match answer {
            Ok(Answer::Bytes(bytes)) if bytes.len() <= len as usize => Ok(bytes),
            Ok(_) => {
                self.give_up(&slot, &session);
                Err(failed("a peer has given an answer to something else"))
            }
            // That it has not, or that it cannot read: it is there.
            Err(error) if session.broken().is_none() && !is_late(&error) => Err(error),
            Err(error) => {
                self.give_up(&slot, &session);
                Err(error)
            }
        }
    }

    fn give_up(&self, slot: &LongMutex<PeerState>, session: &Session) {
        session.end(failed("a peer has failed"));
        let mut state = slot.lock();
        let is_it = |other: &Arc<Session>| std::ptr::eq(Arc::as_ptr(other), session);
        if matches!(&*state, PeerState::Open(open) if is_it(&open.session)) {
            *state = PeerState::Failed(self.env.clock.monotonic());
        }
    }

    /// A peer's connection.
    fn session(&self, peer: &Peer) -> Result<(Arc<LongMutex<PeerState>>, Arc<Session>), HomeError> {
        let slot = {
            let mut peers = self.peers.lock();
            match peers.get(&peer.address) {
                Some(slot) => Arc::clone(slot),
                None if peers.len() >= PEERS_MAX => return Err(failed("too many peers")),
                None => {
                    let slot = Arc::new(LongMutex::new(PeerState::NotTried));
                    peers.insert(peer.address.clone(), Arc::clone(&slot));
                    slot
                }
            }
        };
        let mut state = slot.lock();
        if self.has_ended() {
            return Err(failed("the server that wants it has gone"));
        }
        let session = match &*state {
            PeerState::Open(open) => Arc::clone(&open.session),
            PeerState::Failed(at) if self.env.clock.monotonic().since(*at) < FAILED_TIME => {
                return Err(failed("a peer has failed"));
            }
            PeerState::Failed(_) | PeerState::NotTried => match self.connect(peer) {
                Ok(open) => {
                    let session = Arc::clone(&open.session);
                    *state = PeerState::Open(open);
                    session
                }
                Err(error) => {
                    *state = PeerState::Failed(self.env.clock.monotonic());
                    return Err(error);
                }
            },
        };
        drop(state);
        if self.has_ended() {
            session.end(failed("the server that wants it has gone"));
        }
        let node = session.limits().node;
        if node != peer.node || node == self.identity.node {
            return Err(failed("another node is in a peer's place"));
        }
        Ok((slot, session))
    }

    fn connect(&self, peer: &Peer) -> Result<OpenPeer, HomeError> {
        let counted = Counted::one_more(&self.identity.count);
        let counted = counted.ok_or_else(|| failed("too many peers"))?;
        let node = NodeAddress {
            address: peer.address.clone(),
            volume: self.identity.volume.clone(),
            key: self.identity.key.clone(),
            encrypted: self.identity.encrypted,
            has_secret: self.identity.has_secret,
            write: false,
        };
        Ok(OpenPeer {
            session: Session::open(&node, &self.env, &self.counters)?,
            _counted: counted,
        })
    }
}

impl Drop for PeerSessions {
    fn drop(&mut self) {
        self.end();
    }
}

fn failed(what: &str) -> HomeError {
    HomeError::io("ask a peer", std::io::Error::other(what.to_owned()))
}

fn is_late(error: &HomeError) -> bool {
    matches!(error, HomeError::Io { source, .. } if source.kind() == ErrorKind::TimedOut)
}

/// A server's orders to one node, over a connection of their own: what is asked of the node besides does not wait
/// behind them, and when it ends they do.
pub(super) struct NodeOrders(Arc<Session>);

impl NodeOrders {
    /// `None`: the node does not know what is wanted of it.
    pub(super) fn begin(
        node: &NodeAddress,
        env: &Env,
        counters: &Arc<UsageCounters>,
        of: &Session,
    ) -> Result<Option<NodeOrders>, HomeError> {
        let orders = NodeOrders(Session::open(node, env, counters)?);
        if !orders.0.limits().is_same_volume(&of.limits()) {
            return Err(HomeError::io("order copies", unexpected()));
        }
        let knows = orders.0.protocol()? > PROTOCOL_FIRST;
        Ok(knows.then_some(orders))
    }
}

impl CopyOrders for NodeOrders {
    fn order(&self, order: &CopyOrder, done: CopyDone) {
        let request = Request::FetchFromPeers {
            epoch: order.epoch,
            item: order.item,
        };
        let body = FrameBody::Bytes(encode_peers(&order.peers));
        self.0.ask(&request, body, |reply| {
            done(reply.and_then(|reply| reply.result).and_then(is_done));
        });
    }
}

impl Drop for NodeOrders {
    fn drop(&mut self) {
        self.0.end(failed("nobody wants it any more"));
    }
}
