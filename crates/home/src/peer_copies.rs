//! Homes that fetch what they lack from their peers, without whoever wants that in between: storage nodes do (Aurora,
//! section 2.3: peers fill each other's gaps).
//!
//! What is fetched changes no more: segments in which nothing is appended, side segments and objects that are whole.
//! So it does not matter which peer it comes from, or when; and whoever asks a home for it may do so again, or do it
//! itself.
//!
//! Does not: say what a home lacks, or who has it ([`catch_up`](crate::ReplicatedHome) does).

use crate::{HomeError, ObjectInfo};
use logstead_types::{Epoch, LaneId};

/// What is to be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyItem {
    /// A segment in which nothing is appended any more. Bytes that differ are written, and read again.
    Segment {
        /// Of which lane.
        lane: LaneId,
        /// Its number.
        segment: u64,
        /// So long it is at the peers: who has less is not read.
        size_bytes: u64,
        /// What is there of it already is durable.
        is_sure: bool,
    },
    /// A side segment that is whole.
    Side {
        /// Of which lane.
        lane: LaneId,
        /// Its number.
        id: u64,
    },
    /// An object: a copy that is not damaged, and as long as this.
    Object(ObjectInfo),
}

/// A home of the same kind that has the same log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Where it is.
    pub address: String,
    /// Who is to be there: another one that is there instead has something else.
    pub node: u64,
}

/// What a home is to fetch, and of whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyOrder {
    /// The epoch of the server that wants it: once a later one has begun, nothing is written for it.
    pub epoch: Epoch,
    /// What.
    pub item: CopyItem,
    /// Of one of them: the first one if it has it, else the next.
    pub peers: Vec<Peer>,
}

/// Called exactly once: it is there, and durable; or why not.
pub type CopyDone = Box<dyn FnOnce(Result<(), HomeError>) + Send>;

/// A home that fetches. When this is dropped, it stops.
pub trait CopyOrders: Send {
    /// Has it fetch something. Returns at once. A home does several at the same time.
    fn order(&self, order: &CopyOrder, done: CopyDone);
}

/// A home that has peers.
pub trait PeerCopies: Send + Sync {
    /// What its peers know it by.
    fn peer(&self) -> Peer;

    /// It begins to fetch; `None`: it does not know how, being of an older version.
    fn begin(&self) -> Result<Option<Box<dyn CopyOrders>>, HomeError>;
}
