//! A home in this process's memory, for tests of what stands above: appends complete when a test says so, fail, or find
//! the disk full.
//!
//! Invariant: bytes become readable only when their append completes with `Ok`; a crash is dropping the server that
//! used the home and opening the home again.
//!
//! Does not: tear or lose writes (the local home over simulated files does that).

mod home;

use crate::{
    Buffer, Completion, HomeError, NoRoom, ObjectId, Position, Rollover, RoomListener,
    SideCompletion, SideWriter,
};
use logstead_types::LaneId;
use parking_lot::{Condvar, Mutex};
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;

/// Block alignment of the memory home: like the local home's, so that tests see the same positions.
const ALIGNMENT: usize = 4096;

/// Whether a home answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Availability {
    /// It does.
    #[default]
    Up,
    /// Every call fails at once.
    Refusing,
    /// Calls that may take time wait, and appends do not complete, until it is here again.
    Silent,
}

/// A home in memory; see the module's documentation. Clones share the memory.
#[derive(Clone)]
pub struct MemoryHome {
    state: Arc<Mutex<State>>,
    rollover: Arc<Mutex<Rollover>>,
    presence: Arc<(Mutex<Availability>, Condvar)>,
    held: Arc<(Mutex<Held>, Condvar)>,
}

/// Objects on their way.
#[derive(Default)]
struct Held {
    holding: bool,
    /// Who waits.
    waiting: usize,
}

struct State {
    lanes: BTreeMap<LaneId, Lane>,
    names: BTreeMap<String, (Vec<u8>, u64)>,
    sides: BTreeMap<(LaneId, u64), Vec<u8>>,
    objects: BTreeMap<ObjectId, Arc<[u8]>>,
    tags: u64,
    disk_full: bool,
    short_of_space: bool,
    failing: bool,
    unreadable: Option<(ObjectId, u64)>,
    paused: bool,
    appends: u64,
    sides_begun: u64,
    /// Requests for bytes of objects, and those bytes.
    object_reads: (u64, u64),
    refused_object_reads: u64,
    waiting: VecDeque<Waiting>,
    before_rewrite: Option<Hook>,
}

/// What a test wants to do at some moment.
type Hook = Arc<dyn Fn() + Send + Sync>;

struct Waiting {
    lane: LaneId,
    at: Position,
    block: Buffer,
    len: usize,
    done: Completion,
}

#[derive(Default)]
struct Lane {
    segments: BTreeMap<u64, Vec<u8>>,
    next: Position,
    appends_in_segment: u64,
    /// The next append begins a segment.
    segment_ended: bool,
    open: bool,
    listener: Option<Arc<RoomListener>>,
}

impl MemoryHome {
    /// An empty home with segments of `segment_size_bytes`.
    pub fn new(segment_size_bytes: u64) -> MemoryHome {
        let state = State {
            lanes: BTreeMap::new(),
            names: BTreeMap::new(),
            sides: BTreeMap::new(),
            objects: BTreeMap::new(),
            tags: 0,
            disk_full: false,
            short_of_space: false,
            failing: false,
            unreadable: None,
            paused: false,
            appends: 0,
            sides_begun: 0,
            object_reads: (0, 0),
            refused_object_reads: 0,
            waiting: VecDeque::new(),
            before_rewrite: None,
        };
        MemoryHome {
            state: Arc::new(Mutex::new(state)),
            rollover: Arc::new(Mutex::new(Rollover {
                appends_max: u64::MAX,
                size_bytes: segment_size_bytes,
            })),
            presence: Arc::default(),
            held: Arc::default(),
        }
    }

    /// The room that is left is kept for what frees room, or there is plenty again.
    pub fn set_short_of_space(&self, short: bool) {
        self.state.lock().short_of_space = short;
    }

    /// A full disk, or space again. Tells the room listeners.
    pub fn set_disk_full(&self, full: bool) {
        let listeners: Vec<_> = {
            let mut state = self.state.lock();
            state.disk_full = full;
            state
                .lanes
                .values()
                .filter_map(|lane| lane.listener.clone())
                .collect()
        };
        for listener in listeners {
            listener();
        }
    }

    /// How often bytes of objects were read so far, and how many.
    pub fn object_reads(&self) -> (u64, u64) {
        self.state.lock().object_reads
    }

    /// How often they could not be, because of [`MemoryHome::set_unreadable`].
    pub fn refused_object_reads(&self) -> u64 {
        self.state.lock().refused_object_reads
    }

    /// Goes away, or comes back. Appends given to a silent home count as waiting ([`MemoryHome::complete`]).
    pub fn set_presence(&self, presence: Availability) {
        *self.presence.0.lock() = presence;
        self.presence.1.notify_all();
    }

    /// Before anything that would be a request.
    fn here(&self) -> Result<(), HomeError> {
        let mut presence = self.presence.0.lock();
        while *presence == Availability::Silent {
            self.presence.1.wait(&mut presence);
        }
        match *presence {
            Availability::Refusing => {
                let error = io::Error::new(io::ErrorKind::NotConnected, "asked to be away");
                Err(HomeError::io("a request to the memory home", error))
            }
            _ => Ok(()),
        }
    }

    /// Calls `hook` before every [`rewrite`](crate::LaneSegments::rewrite) from now on.
    pub fn before_rewrite(&self, hook: impl Fn() + Send + Sync + 'static) {
        self.state.lock().before_rewrite = Some(Arc::new(hook));
    }

    /// Every append, side segment and object from now on fails with an I/O error (or succeeds again).
    pub fn set_failing(&self, failing: bool) {
        self.state.lock().failing = failing;
    }

    /// Reads of this object that begin before this place fail from now on with an I/O error; or none do any more.
    pub fn set_unreadable(&self, object: Option<(ObjectId, u64)>) {
        self.state.lock().unreadable = object;
    }

    /// Handed-off appends wait for [`MemoryHome::complete`] instead of completing at once, and pieces of side segments
    /// count as not yet written until they are finished.
    pub fn set_paused(&self, paused: bool) {
        self.state.lock().paused = paused;
    }

    /// Who stores an object waits until what is given is dropped. Nothing else does.
    #[must_use = "nothing is held once it is dropped"]
    pub fn hold_objects(&self) -> ObjectPutPause {
        self.held.0.lock().holding = true;
        ObjectPutPause(self.clone())
    }

    /// How many objects are on their way.
    pub fn objects_under_way(&self) -> usize {
        self.held.0.lock().waiting
    }

    /// Number of appends asked for so far, inline ones included.
    pub fn appends(&self) -> u64 {
        self.state.lock().appends
    }

    /// Number of side segments begun so far.
    pub fn sides_begun(&self) -> u64 {
        self.state.lock().sides_begun
    }

    /// Number of appends that wait.
    pub fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }

    /// Completes the oldest waiting append; false if there is none.
    pub fn complete(&self) -> bool {
        self.complete_at(0)
    }

    /// Completes the waiting append with `index` older ones before it; false if there is none.
    pub fn complete_at(&self, index: usize) -> bool {
        let Some(waiting) = self.state.lock().waiting.remove(index) else {
            return false;
        };
        let result = self.store(waiting.lane, waiting.at, &waiting.block, waiting.len);
        (waiting.done)(waiting.block, result);
        true
    }

    /// Loses the appends that wait, and closes every lane: what a crash does. The home can then be opened again.
    pub fn crash(&self) {
        let lost = {
            let mut state = self.state.lock();
            for lane in state.lanes.values_mut() {
                lane.open = false;
                lane.listener = None;
            }
            state.paused = false;
            state.failing = false;
            std::mem::take(&mut state.waiting)
        };
        drop(lost);
    }

    fn store(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let mut state = self.state.lock();
        if state.failing {
            return Err(HomeError::io(
                "append to the memory home",
                io::Error::other("asked to fail"),
            ));
        }
        let segment = state
            .lanes
            .get_mut(&lane)
            .and_then(|lane| lane.segments.get_mut(&at.segment))
            .ok_or(HomeError::Misuse {
                lane,
                what: "append to a segment that does not exist",
            })?;
        let start = usize::try_from(at.offset).unwrap_or(usize::MAX);
        let target =
            segment
                .get_mut(start..start.saturating_add(len))
                .ok_or(HomeError::Misuse {
                    lane,
                    what: "append beyond the segment",
                })?;
        target.copy_from_slice(&block.as_slice()[..len]);
        Ok(())
    }

    fn segment_size_bytes(&self) -> u64 {
        self.rollover.lock().size_bytes
    }

    fn segment(&self) -> Vec<u8> {
        vec![0; usize::try_from(self.segment_size_bytes()).unwrap_or(usize::MAX)]
    }
}

/// Holds objects back; see [`MemoryHome::hold_objects`]. A test that fails lets go of them, so that whoever stores one
/// can be waited for.
pub struct ObjectPutPause(MemoryHome);

impl Drop for ObjectPutPause {
    fn drop(&mut self) {
        self.0.held.0.lock().holding = false;
        self.0.held.1.notify_all();
    }
}

struct MemorySide {
    home: MemoryHome,
    name: (LaneId, u64),
    bytes: Vec<u8>,
}

impl SideWriter for MemorySide {
    fn append(&mut self, piece: Vec<u8>) {
        self.bytes.extend_from_slice(&piece);
    }

    fn backlog_bytes(&self) -> usize {
        if self.home.state.lock().paused {
            self.bytes.len()
        } else {
            0
        }
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(self: Box<Self>, done: SideCompletion) {
        let here = self.home.here();
        let result = {
            let mut state = self.home.state.lock();
            if let Err(error) = here {
                Err(NoRoom::Failed(error))
            } else if state.disk_full {
                Err(NoRoom::DiskFull)
            } else if state.failing {
                let error = io::Error::other("asked to fail");
                Err(NoRoom::Failed(HomeError::io(
                    "side segment in the memory home",
                    error,
                )))
            } else {
                state.sides.insert(self.name, self.bytes);
                Ok(())
            }
        };
        done(result);
    }
}
