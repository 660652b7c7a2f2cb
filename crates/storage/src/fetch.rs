//! What a node fetches from its peers for a server: segments, side segments and objects that it lacks (Aurora, section
//! 2.3). The server says what, and from whom; the bytes go from node to node.
//!
//! **Why it may come from any peer, at any time.** What is fetched changes no more ([`logstead_home::CopyItem`]): the
//! server orders segments from before the cut of the node, in which no append is under way at a peer that it names;
//! side segments that are whole there; and objects, which never change. So every peer gives the same bytes, or damaged
//! ones. Damage in objects and a peer that has less than the server has listed are refused here; of segments two of
//! three say what is right ([`logstead_home::segment_copy`]). What no peer gives is an error, and the server does it
//! itself, as for nodes that know nothing of this.
//!
//! **Who may order it.** Whoever has proved the volume's key, and opened it to write: he may write all this himself. It
//! is fetched of the same volume only, from who has proved the same key ([`logstead_home::node::peers`]).
//!
//! Invariants:
//! - Nothing is written into a segment for a server once a later one's fence has been answered
//!   ([`LocalVolume::rewrite_for`]; T3). A side segment or an object that is about to be whole may still come up then,
//!   as one that a server of before has put: it has one content.
//! - It is given up, at the next piece, when the connection ends over which it was ordered.
//! - Its memory is a few pieces, or an object; an order counts with that among what its connection has in progress.
//! - It has threads of its own, and while appends come it rests as long as it works: they go first.
//!
//! Does not: know why something is lacking.

use crate::context::NodeContext;
use crate::outbox::{Outbox, home_error};
use logstead_env::Buffer;
use logstead_home::node::message::{Answer, Reply};
use logstead_home::node::peers::PeerSessions;
use logstead_home::segment_copy::{CopyEnds, SEGMENT_PIECE_BYTES, SegmentToCopy, copy_segment};
use logstead_home::{
    CopyItem, Epoch, HomeError, LaneId, LocalVolume, OBJECT_BYTES_MAX, ObjectInfo, Peer, Position,
};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;

/// Bytes of an object or a side segment that are asked of a peer at once.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes of a side segment that wait for the disk, at most.
const SIDE_BACKLOG_BYTES_MAX: usize = 8 << 20;
/// Between two looks whether they are fewer.
const BACKLOG_PAUSE: Duration = Duration::from_millis(1);
/// How long it rests after a piece, at most, while appends come.
const REST_MAX: Duration = Duration::from_secs(1);

/// An order, and all that it takes.
pub(crate) struct Fetch {
    pub(crate) context: Arc<NodeContext>,
    pub(crate) volume: Arc<LocalVolume>,
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) sessions: Arc<PeerSessions>,
    pub(crate) epoch: Epoch,
    pub(crate) item: CopyItem,
    pub(crate) peers: Vec<Peer>,
}

/// The bytes that an order holds at a time, at most: what is there, what one peer has, and another.
pub(crate) fn bytes_of(item: &CopyItem) -> usize {
    match item {
        CopyItem::Segment { .. } => 3 * SEGMENT_PIECE_BYTES,
        CopyItem::Side { .. } => PIECE_BYTES + SIDE_BACKLOG_BYTES_MAX,
        CopyItem::Object(info) => (info.size_bytes as usize).min(OBJECT_BYTES_MAX),
    }
}

fn gone() -> HomeError {
    let why = io::Error::new(io::ErrorKind::ConnectionAborted, "nobody wants it any more");
    HomeError::io("fetch from peers", why)
}

/// What is told of peers that give nothing, whatever they are.
fn no_peer() -> HomeError {
    let why = io::Error::other("none of the peers gives it");
    HomeError::io("fetch from peers", why)
}

impl Fetch {
    /// Fetches, and answers the request of this number, which was admitted with so many bytes.
    pub(crate) fn run(self, number: u64, bytes: usize) {
        let result = self.fetch().map(|()| Answer::Done);
        let reply = Reply {
            is_short_of_space: self.volume.is_short_of_space(),
            result,
        };
        self.outbox.answer(number, reply, bytes);
    }

    fn fetch(&self) -> Result<(), HomeError> {
        match self.item {
            CopyItem::Segment {
                lane,
                segment,
                size_bytes,
                is_sure,
            } => {
                let to_copy = SegmentToCopy {
                    lane,
                    segment,
                    size_bytes,
                    own_bytes: u64::MAX,
                    is_sure,
                    alignment: self.volume.capabilities().block_alignment,
                };
                let end = Position {
                    segment,
                    offset: size_bytes,
                };
                copy_segment(
                    &to_copy,
                    &FetchedSegment {
                        of: self,
                        end,
                        lane,
                    },
                )
            }
            CopyItem::Side { lane, id } => self.fetch_side(lane, id),
            CopyItem::Object(info) => self.fetch_object(&info),
        }
    }

    fn must_go_on(&self) -> Result<(), HomeError> {
        if self.sessions.has_ended() || self.context.is_stopping() {
            return Err(gone());
        }
        self.volume.must_not_be_overtaken(self.epoch)
    }

    /// Fetches a piece. While appends come it rests for as long as that took: half of the time is theirs alone.
    fn paced(
        &self,
        fetch: impl FnOnce() -> Result<Vec<u8>, HomeError>,
    ) -> Result<Vec<u8>, HomeError> {
        let clock = &self.context.env().clock;
        let (begun, appends) = (clock.monotonic(), self.context.appends());
        let bytes = fetch()?;
        self.context.note_fetched(bytes.len() as u64);
        if self.context.appends() != appends {
            let took = clock.monotonic().since(begun);
            self.context.sleep(took.min(REST_MAX));
        }
        Ok(bytes)
    }

    /// Asks one peer after the other, until one does what is wanted.
    fn of_any_peer<T>(&self, ask: impl Fn(&Peer) -> Result<T, HomeError>) -> Result<T, HomeError> {
        for peer in &self.peers {
            self.must_go_on()?;
            match ask(peer) {
                Ok(got) => return Ok(got),
                Err(error) => self.told_of(peer, &error),
            }
        }
        self.must_go_on()?;
        Err(no_peer())
    }

    fn told_of(&self, peer: &Peer, error: &HomeError) {
        debug!("peer {}: {error}", peer.address);
    }

    fn fetch_object(&self, info: &ObjectInfo) -> Result<(), HomeError> {
        if info.size_bytes > OBJECT_BYTES_MAX as u64 {
            return Err(HomeError::Unsupported("objects larger than 64 MiB"));
        }
        let bytes = self.of_any_peer(|peer| {
            let bytes = self.object_of(peer, info)?;
            match self.context.damage_of(&bytes) {
                Some(what) => Err(damaged(what)),
                None => Ok(bytes),
            }
        })?;
        self.must_go_on()?;
        self.volume.put_object(info.id, &bytes)
    }

    fn object_of(&self, peer: &Peer, info: &ObjectInfo) -> Result<Vec<u8>, HomeError> {
        let size_bytes = info.size_bytes as usize;
        let mut bytes = Vec::new();
        loop {
            // One byte more than it has: so it is seen where it ends.
            let len = (size_bytes + 1 - bytes.len()).min(PIECE_BYTES);
            self.must_go_on()?;
            let offset = bytes.len() as u64;
            let read = || self.sessions.read_object(peer, info.id, offset, len as u32);
            let piece = self.paced(read)?;
            bytes.extend_from_slice(&piece);
            if piece.len() < len {
                break;
            }
            if bytes.len() > size_bytes {
                return Err(damaged("it is longer than it was listed".to_owned()));
            }
        }
        match bytes.len() == size_bytes {
            true => Ok(bytes),
            false => Err(damaged("it is shorter than it was listed".to_owned())),
        }
    }

    fn fetch_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.of_any_peer(|peer| {
            let mut side = self.volume.begin_side_segment(lane, id);
            let mut offset = 0;
            loop {
                self.must_go_on()?;
                let len = PIECE_BYTES as u32;
                let read = || self.sessions.get_side(peer, (lane, id), offset, len);
                let piece = self.paced(read)?;
                let ends = piece.len() < PIECE_BYTES;
                offset += piece.len() as u64;
                if !piece.is_empty() {
                    side.append(piece);
                }
                if ends {
                    break;
                }
                while side.backlog_bytes() > SIDE_BACKLOG_BYTES_MAX - PIECE_BYTES {
                    self.must_go_on()?;
                    logstead_env::sleep(BACKLOG_PAUSE);
                }
            }
            self.must_go_on()?;
            let (tell, told) = logstead_env::channel();
            side.finish(Box::new(move |result| drop(tell.send(result))));
            let finished = told.recv().map_err(|_| gone())?;
            finished.map_err(home_error)
        })
    }
}

fn damaged(what: String) -> HomeError {
    HomeError::io(
        "fetch from peers",
        io::Error::new(io::ErrorKind::InvalidData, what),
    )
}

/// A segment that is here or not, and at the peers.
struct FetchedSegment<'f> {
    of: &'f Fetch,
    lane: LaneId,
    /// So far it is at every peer that is read.
    end: Position,
}

impl CopyEnds for FetchedSegment<'_> {
    fn must_go_on(&self) -> Result<(), HomeError> {
        self.of.must_go_on()
    }

    fn read_source(
        &self,
        at: Position,
        len: usize,
        but: Option<usize>,
    ) -> Result<(usize, Vec<u8>), HomeError> {
        let len = (self.end.offset - at.offset).min(len as u64);
        let others = self.of.peers.iter().enumerate();
        for (index, peer) in others.filter(|(index, _)| Some(*index) != but) {
            self.of.must_go_on()?;
            let read = || self.of.sessions.read(peer, self.lane, at, len as u32);
            match self.of.paced(read) {
                Ok(bytes) if bytes.len() as u64 == len => return Ok((index, bytes)),
                Ok(_) => self.of.told_of(peer, &damaged("it has less".to_owned())),
                Err(error) => self.of.told_of(peer, &error),
            }
        }
        self.of.must_go_on()?;
        Err(no_peer())
    }

    fn read_own(&self, at: Position, len: usize) -> Result<Vec<u8>, HomeError> {
        let mut buffer = Buffer::zeroed(len);
        let count = self.of.volume.read(self.lane, at, &mut buffer)?;
        Ok(buffer.as_slice()[..count.min(len)].to_vec())
    }

    fn rewrite(&self, at: Position, block: Buffer, len: usize) -> Result<(), HomeError> {
        let (of, lane) = (self.of, self.lane);
        of.volume.rewrite_for(of.epoch, lane, at, &block, len)
    }

    // The server removes what nobody needs any more when all is there.
    fn is_removed(&self) -> bool {
        false
    }

    fn disagrees(&self, source: usize, at: Position) {
        let lane = self.lane;
        if let Some(peer) = self.of.peers.get(source) {
            let peer = &peer.address;
            tracing::warn!("peer {peer} has other bytes in lane {lane} at {at} than two others");
        }
    }

    fn copied(&self, _bytes: u64) {}
}
