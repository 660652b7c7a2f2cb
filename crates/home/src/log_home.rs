//! A home, put together of its interfaces.

use crate::cache::{CacheOptions, ObjectCache};
use crate::copies::Copies;
use crate::error::HomeError;
use crate::immutable::{ImmutableObjects, ObjectId, ObjectRepair};
use crate::lane::{
    HomeCapabilities, InlineAppends, LaneAppends, LaneSegments, Position, SegmentRollover,
};
use crate::named_values::NamedValues;
use crate::peer_copies::PeerCopies;
use crate::side_segments::SideSegments;
use crate::usage::HomeUsage;
use logstead_env::{Buffer, Env};
use logstead_types::{Epoch, LaneId};
use std::sync::Arc;

/// In what a storage node reports of itself ([`HomeStatus::report`]): how many of the volume's objects its disk has
/// damaged, as far as it knows.
pub const DAMAGED_OBJECTS: &str = "damaged objects";

/// In the same report: how many bytes it has fetched from other nodes since its process began, for all volumes.
pub const BYTES_FROM_PEERS: &str = "bytes from peers";

/// What a home tells people about itself.
pub trait HomeStatus: Send + Sync {
    /// A name for people: where this home is.
    fn describe(&self) -> String;

    /// What people should know about how this home works here, as names and values: for the server's log and for SQL.
    fn report(&self) -> Vec<(String, String)>;

    /// What was asked of it since it was opened, for what it costs: one line per home that it consists of, none where
    /// requests cost nothing.
    fn usage(&self) -> Vec<HomeUsage>;
}

/// Where the log lives: each interface of a home, and who answers it. Who needs one interface is given that one only.
/// Whoever changes one aspect (a cache of objects, a branch over its parent's objects, faults in a test) puts itself
/// in that one's place and leaves the others as they are.
///
/// Clones are the same home.
#[derive(Clone)]
pub struct LogHome {
    /// What it tells people.
    pub status: Arc<dyn HomeStatus>,
    /// Appends to lanes.
    pub appends: Arc<dyn LaneAppends>,
    /// Appends in the caller's thread, where they are short.
    pub inline_appends: Option<Arc<dyn InlineAppends>>,
    /// The segments of lanes.
    pub segments: Arc<dyn LaneSegments>,
    /// The rule by which lanes go on in their next segment, where lengths alone decide.
    pub rollover: Option<Arc<dyn SegmentRollover>>,
    /// Small values that are compared and swapped.
    pub names: Arc<dyn NamedValues>,
    /// The records of large transactions.
    pub sides: Arc<dyn SideSegments>,
    /// Immutable objects.
    pub objects: Arc<dyn ImmutableObjects>,
    /// Replaces damaged copies of objects in one step, if it can.
    pub object_repair: Option<Arc<dyn ObjectRepair>>,
    /// It fetches what it lacks from its peers, if it can.
    pub peer_copies: Option<Arc<dyn PeerCopies>>,
    /// Its copies, if it consists of several homes.
    pub copies: Option<Arc<dyn Copies>>,
    /// The cache of objects' blocks that was put around it, if one was.
    pub cache: Option<Arc<ObjectCache>>,
    /// Objects of epochs up to this one are another home's and are read there, if this is a branch.
    pub inherited_through: Option<Epoch>,
}

/// A home that answers every interface itself. The optional ones it names here.
pub trait HomeBackend:
    HomeStatus
    + LaneAppends
    + LaneSegments
    + NamedValues
    + SideSegments
    + ImmutableObjects
    + Sized
    + 'static
{
    /// Its appends in the caller's thread, if it offers them.
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>>;

    /// Its rollover rule, if lengths alone decide.
    fn rollover(home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>>;

    /// Its copies, if it consists of several.
    fn copies(home: &Arc<Self>) -> Option<Arc<dyn Copies>>;

    /// How it fetches what it lacks from its peers: storage nodes do.
    fn peer_copies(_home: &Arc<Self>) -> Option<Arc<dyn PeerCopies>> {
        None
    }

    /// How it replaces damaged copies of objects: storage nodes do.
    fn object_repair(_home: &Arc<Self>) -> Option<Arc<dyn ObjectRepair>> {
        None
    }
}

impl<H: HomeBackend> From<Arc<H>> for LogHome {
    fn from(home: Arc<H>) -> LogHome {
        LogHome {
            inline_appends: H::inline_appends(&home),
            rollover: H::rollover(&home),
            copies: H::copies(&home),
            object_repair: H::object_repair(&home),
            peer_copies: H::peer_copies(&home),
            cache: None,
            inherited_through: None,
            status: Arc::clone(&home) as _,
            appends: Arc::clone(&home) as _,
            segments: Arc::clone(&home) as _,
            names: Arc::clone(&home) as _,
            sides: Arc::clone(&home) as _,
            objects: home,
        }
    }
}

impl<H: HomeBackend> From<H> for LogHome {
    fn from(home: H) -> LogHome {
        Arc::new(home).into()
    }
}

impl From<&LogHome> for LogHome {
    fn from(home: &LogHome) -> LogHome {
        home.clone()
    }
}

impl LogHome {
    /// A name for people: where this home is.
    pub fn describe(&self) -> String {
        self.status.describe()
    }

    /// The same home with a cache of its objects on the local disk.
    pub fn with_cache(self, env: &Env, options: &CacheOptions) -> Result<LogHome, HomeError> {
        let inner = Arc::clone(&self.objects);
        let cache = Arc::new(ObjectCache::open(inner, &self.describe(), env, options)?);
        Ok(LogHome {
            objects: Arc::clone(&cache) as _,
            cache: Some(cache),
            ..self
        })
    }

    /// What this home is like.
    pub fn capabilities(&self) -> HomeCapabilities {
        self.appends.capabilities()
    }

    /// Is an object of this number another home's, to be read there? It is not listed, and removing it does nothing.
    pub fn inherits(&self, id: ObjectId) -> bool {
        self.inherited_through
            .is_some_and(|last| id.epoch() <= last)
    }

    /// How many copies of a lane can be read one by one: 1 where the home does not consist of several.
    pub fn copy_count(&self) -> usize {
        self.copies.as_ref().map_or(1, |copies| copies.count())
    }

    /// Can this copy be read now?
    pub fn has_copy(&self, copy: usize) -> bool {
        match &self.copies {
            Some(copies) => copies.has_copy(copy),
            None => copy == 0,
        }
    }

    /// Reads a lane from one copy, the only one perhaps.
    pub fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        match &self.copies {
            Some(copies) => copies.read_copy(copy, lane, at, into),
            None => self.segments.read(lane, at, into),
        }
    }

    /// Reads a side segment from one copy, the only one perhaps.
    pub fn get_side_segment_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        match &self.copies {
            Some(copies) => copies.get_side_segment_copy(copy, lane, id, offset, into),
            None => self.sides.get_side_segment(lane, id, offset, into),
        }
    }
}
