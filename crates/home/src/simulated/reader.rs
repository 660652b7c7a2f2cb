//! The service as another machine sees it: for tests that read a home beside the simulated machine that writes there.
//!
//! Its requests take no time, never fail, and go on when the machine has stopped. Before each of them it calls who
//! watches it, so that a test can let the machine take steps between any two.
//!
//! What the machine has under way may be there already when somebody else looks: appends whose replies have not arrived
//! are stored before some of the requests, whole or, on block devices, in part.
//!
//! Does not: write to lanes or side segments, remove anything, or draw from the machine's random numbers.

use super::SimulatedHome;
use super::store::Store;
use crate::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideSegments, SideWriter, Tag, immutable,
};
use logstead_env::SimRandom;
use logstead_types::LaneId;
use std::sync::Arc;
use std::time::Duration;

const READS_ONLY: &str = "writing beside the simulated machine";

/// See the module's documentation.
pub struct SimulatedReader {
    home: SimulatedHome,
    random: Option<SimRandom>,
    before: Box<dyn Fn() + Send + Sync>,
    leased: bool,
}

impl SimulatedHome {
    /// The same service for another machine. `before` is called ahead of each request; `seed` decides what of appends
    /// under way is there already; without one, nothing is. `leased`: the home says that it has no kernel's lock
    /// ([`HomeCapabilities::leased`]), so that readers expect a server beside them.
    pub fn reader_beside(
        &self,
        seed: Option<u64>,
        leased: bool,
        before: impl Fn() + Send + Sync + 'static,
    ) -> SimulatedReader {
        SimulatedReader {
            home: self.clone(),
            random: seed.map(SimRandom::new),
            before: Box::new(before),
            leased,
        }
    }
}

impl SimulatedReader {
    fn call<T>(
        &self,
        act: impl FnOnce(&mut Store) -> Result<T, HomeError>,
    ) -> Result<T, HomeError> {
        (self.before)();
        let core = &self.home.core;
        let mut state = core.state.lock();
        if let Some(random) = &self.random {
            core.arrive_early(&mut state, random);
        }
        act(&mut state.store)
    }
}

impl HomeBackend for SimulatedReader {
    fn inline_appends(_home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        None
    }

    fn rollover(_home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        None
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for SimulatedReader {
    fn describe(&self) -> String {
        self.home.describe()
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for SimulatedReader {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            leased: self.leased,
            ..self.home.capabilities()
        }
    }

    fn open_lane(&self, _lane: LaneId, _first_segment: u64) -> Result<(), NoRoom> {
        Err(NoRoom::Failed(HomeError::Unsupported(READS_ONLY)))
    }

    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        _lane: LaneId,
        _bytes: u64,
        _request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        Err(NoRoom::Failed(HomeError::Unsupported(READS_ONLY)))
    }

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, _lane: LaneId, _len: u64) -> Result<Position, HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }

    fn append(&self, _lane: LaneId, _at: Position, block: Buffer, _len: usize, done: Completion) {
        done(block, Err(HomeError::Unsupported(READS_ONLY)));
    }
}

impl LaneSegments for SimulatedReader {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.call(|store| Ok(store.lanes()))
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.call(|store| store.segments(lane))
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.call(|store| store.read(lane, at, into.as_mut_slice()))
    }

    fn rewrite(
        &self,
        _lane: LaneId,
        _at: Position,
        _block: &Buffer,
        _len: usize,
    ) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }

    fn seal(&self, _lane: LaneId, _at: Position) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }

    fn trim(&self, _lane: LaneId, _segment: u64) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }
}

impl NamedValues for SimulatedReader {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.call(|store| Ok(store.name(name).map(|(bytes, tag)| (bytes, Tag(tag)))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.call(|store| {
            if store.name(name).is_some() {
                return Err(HomeError::Conflict(name.to_owned()));
            }
            store.put_name(name, bytes).map(Tag)
        })
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.call(|store| {
            if store.name(name).map(|(_, tag)| tag) != Some(expected.0) {
                return Err(HomeError::Conflict(name.to_owned()));
            }
            store.put_name(name, bytes).map(Tag)
        })
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for SimulatedReader {
    fn begin_side_segment(&self, _lane: LaneId, _id: u64) -> Box<dyn SideWriter> {
        unreachable!("{READS_ONLY}")
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.call(|store| store.read_side(lane, id, offset, into))
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.call(|store| Ok(store.sides(lane)))
    }

    fn remove_side_segment(&self, _lane: LaneId, _id: u64) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for SimulatedReader {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.call(|store| Ok(immutable::copy_from(store.object(id)?, offset, into)))
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for SimulatedReader {
    fn put_object(&self, _id: ObjectId, _bytes: &[u8]) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.call(|store| Ok(store.objects()))
    }

    fn remove_object(&self, _id: ObjectId) -> Result<(), HomeError> {
        Err(HomeError::Unsupported(READS_ONLY))
    }
}
