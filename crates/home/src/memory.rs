//! A home in this process's memory, for tests of what stands above: appends complete when a test says so, fail, or find
//! the disk full.
//!
//! Invariant: bytes become readable only when their append completes with `Ok`; a crash is dropping the server that
//! used the home and opening the home again.
//!
//! Does not: tear or lose writes (the local home over simulated files does that).

use crate::{
    Buffer, Completion, Facts, HomeError, LogHome, NoRoom, ObjectId, ObjectInfo, Position,
    Rollover, RoomListener, RoomRequest, SegmentInfo, SideCompletion, SideWriter, Tag, immutable,
};
use logstead_types::LaneId;
use parking_lot::{Condvar, Mutex};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;

/// Block alignment of the memory home: like the local home's, so that tests see the same positions.
const ALIGNMENT: usize = 4096;

/// Whether a home answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Presence {
    /// It does.
    #[default]
    Here,
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
    presence: Arc<(Mutex<Presence>, Condvar)>,
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
    pub fn set_presence(&self, presence: Presence) {
        *self.presence.0.lock() = presence;
        self.presence.1.notify_all();
    }

    /// Before anything that would be a request.
    fn here(&self) -> Result<(), HomeError> {
        let mut presence = self.presence.0.lock();
        while *presence == Presence::Silent {
            self.presence.1.wait(&mut presence);
        }
        match *presence {
            Presence::Refusing => {
                let error = io::Error::other("asked to be away");
                Err(HomeError::io("a request to the memory home", error))
            }
            _ => Ok(()),
        }
    }

    /// Calls `hook` before every [`rewrite`](LogHome::rewrite) from now on.
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
    pub fn hold_objects(&self) -> HeldObjects {
        self.held.0.lock().holding = true;
        HeldObjects(self.clone())
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

/// Holds objects back; see [`MemoryHome::hold_objects`]. A test that fails lets go of them, so that whoever stores one can be waited for.
pub struct HeldObjects(MemoryHome);

impl Drop for HeldObjects {
    fn drop(&mut self) {
        self.0.held.0.lock().holding = false;
        self.0.held.1.notify_all();
    }
}

impl LogHome for MemoryHome {
    fn facts(&self) -> Facts {
        Facts {
            block_alignment: ALIGNMENT,
            block_size_preferred: 16 * 1024,
            writes_are_short: true,
            room_size_bytes_max: self.segment_size_bytes(),
            appends_in_flight_max: 8,
            append_latency_expected_us: 1,
            leased: false,
            rollover: Some(*self.rollover.lock()),
        }
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn limit_segments(&self, rollover: Rollover) -> Result<(), HomeError> {
        let mut own = self.rollover.lock();
        if own.min(rollover) != rollover {
            return Err(HomeError::Unsupported("larger segments than it has"));
        }
        *own = rollover;
        Ok(())
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.here()?;
        let mut state = self.state.lock();
        if state.disk_full {
            return Err(NoRoom::DiskFull);
        }
        let segment = self.segment();
        let lane_state = state.lanes.entry(lane).or_default();
        if lane_state.open || lane_state.segments.range(first_segment..).next().is_some() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "opened at a segment that is not fresh",
            }));
        }
        lane_state.segments.insert(first_segment, segment);
        lane_state.next = Position::start_of(first_segment);
        lane_state.appends_in_segment = 0;
        lane_state.open = true;
        Ok(())
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.state.lock().lanes.entry(lane).or_default().listener = Some(Arc::new(listener));
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _asked: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        let mut state = self.state.lock();
        let disk_full = state.disk_full;
        let Some(lane_state) = state.lanes.get_mut(&lane).filter(|lane| lane.open) else {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "the lane is not open",
            }));
        };
        if bytes > self.segment_size_bytes() {
            return Err(NoRoom::Failed(HomeError::Misuse {
                lane,
                what: "more room asked for than a segment has",
            }));
        }
        if bytes <= self.segment_size_bytes() - lane_state.next.offset
            || lane_state
                .segments
                .contains_key(&(lane_state.next.segment + 1))
        {
            return Ok(());
        }
        if disk_full {
            return Err(NoRoom::DiskFull);
        }
        lane_state
            .segments
            .insert(lane_state.next.segment + 1, self.segment());
        Ok(())
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut state = self.state.lock();
        let Some(lane_state) = state.lanes.get_mut(&lane).filter(|lane| lane.open) else {
            return Err(HomeError::Misuse {
                lane,
                what: "the lane is not open",
            });
        };
        if !len.is_multiple_of(ALIGNMENT as u64) || len > self.segment_size_bytes() {
            return Err(HomeError::Misuse {
                lane,
                what: "length is not aligned or larger than a segment",
            });
        }
        let rollover = *self.rollover.lock();
        let at = rollover.place(lane_state.next, lane_state.appends_in_segment, len);
        if at.segment != lane_state.next.segment {
            lane_state.appends_in_segment = 0;
            if let Entry::Vacant(missing) = lane_state.segments.entry(at.segment) {
                if rollover.appends_max == u64::MAX {
                    return Err(HomeError::Misuse {
                        lane,
                        what: "append without ensured room",
                    });
                }
                // How many appends the ensured bytes come in is not known before.
                missing.insert(self.segment());
            }
        }
        lane_state.next = at;
        lane_state.next.offset += len;
        lane_state.appends_in_segment += 1;
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        {
            let mut state = self.state.lock();
            state.appends += 1;
            if state.paused || *self.presence.0.lock() == Presence::Silent {
                state.waiting.push_back(Waiting {
                    lane,
                    at,
                    block,
                    len,
                    done,
                });
                return;
            }
        }
        let result = self.here().and_then(|()| self.store(lane, at, &block, len));
        done(block, result);
    }

    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.state.lock().appends += 1;
        self.store(lane, at, block, len)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let hook = self.state.lock().before_rewrite.clone();
        if let Some(hook) = hook {
            hook();
        }
        self.here()?;
        let mut state = self.state.lock();
        let segments = &mut state.lanes.entry(lane).or_default().segments;
        // It may have been sealed, or never made here.
        let end = usize::try_from(at.offset)
            .unwrap_or(usize::MAX)
            .saturating_add(len);
        let segment = segments.entry(at.segment).or_default();
        if segment.len() < end {
            segment.resize(end, 0);
        }
        drop(state);
        self.store(lane, at, block, len)
    }

    fn lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let with_segments = state
            .lanes
            .iter()
            .filter(|(_, lane)| !lane.segments.is_empty())
            .map(|(&id, _)| id);
        let with_sides = state.sides.keys().map(|&(lane, _)| lane);
        let lanes: BTreeSet<LaneId> = with_segments.chain(with_sides).collect();
        Ok(lanes.into_iter().collect())
    }

    fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let Some(lane) = state.lanes.get(&lane) else {
            return Ok(Vec::new());
        };
        let info = |(&segment, bytes): (&u64, &Vec<u8>)| SegmentInfo {
            segment,
            size_bytes: bytes.len() as u64,
        };
        Ok(lane.segments.iter().map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let Some(bytes) = state
            .lanes
            .get(&lane)
            .and_then(|lane| lane.segments.get(&at.segment))
        else {
            return Ok(0);
        };
        let start = usize::try_from(at.offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = into.capacity().min(bytes.len() - start);
        into.as_mut_slice()[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if let Some(bytes) = state
            .lanes
            .get_mut(&lane)
            .and_then(|lane| lane.segments.get_mut(&at.segment))
        {
            bytes.truncate(usize::try_from(at.offset).unwrap_or(usize::MAX));
        }
        Ok(())
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.here()?;
        if let Some(lane) = self.state.lock().lanes.get_mut(&lane) {
            lane.segments.remove(&segment);
        }
        Ok(())
    }

    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.here()?;
        Ok(self
            .state
            .lock()
            .names
            .get(name)
            .map(|(bytes, tag)| (bytes.clone(), Tag(*tag))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if state.names.contains_key(name) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        state.tags += 1;
        let tag = state.tags;
        state.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.here()?;
        let mut state = self.state.lock();
        if state.names.get(name).map(|(_, tag)| *tag) != Some(expected.0) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        state.tags += 1;
        let tag = state.tags;
        state.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.state.lock().sides_begun += 1;
        Box::new(MemorySide {
            home: self.clone(),
            name: (lane, id),
            bytes: Vec::new(),
        })
    }

    fn get_side(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let bytes = state
            .sides
            .get(&(lane, id))
            .ok_or_else(|| HomeError::Missing(format!("side segment {id} of lane {lane}")))?;
        let start = usize::try_from(offset)
            .unwrap_or(usize::MAX)
            .min(bytes.len());
        let count = into.len().min(bytes.len() - start);
        into[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        Ok(state
            .sides
            .keys()
            .filter(|(of, _)| *of == lane)
            .map(|&(_, id)| id)
            .collect())
    }

    fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.here()?;
        self.state.lock().sides.remove(&(lane, id));
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        self.state.lock().short_of_space
    }

    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        immutable::check_size(bytes)?;
        {
            let mut held = self.held.0.lock();
            held.waiting += 1;
            while held.holding {
                self.held.1.wait(&mut held);
            }
            held.waiting -= 1;
        }
        self.here()?;
        let mut state = self.state.lock();
        let failed = |source| Err(HomeError::io("object in the memory home", source));
        if state.disk_full {
            return failed(io::ErrorKind::StorageFull.into());
        }
        if state.failing {
            return failed(io::Error::other("asked to fail"));
        }
        let there = state.objects.get(&id).map(|bytes| &bytes[..]);
        if immutable::is_new(there, id, bytes)? {
            state.objects.insert(id, Arc::from(bytes));
        }
        Ok(())
    }

    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.here()?;
        let found = {
            let mut state = self.state.lock();
            if state
                .unreadable
                .is_some_and(|(of, end)| of == id && offset < end)
            {
                state.refused_object_reads += 1;
                let error = io::Error::other("asked to fail");
                return Err(HomeError::io("object in the memory home", error));
            }
            state.objects.get(&id).cloned()
        };
        let bytes = found.ok_or_else(|| immutable::missing(id))?;
        let read = immutable::copy_from(&bytes, offset, into);
        let mut state = self.state.lock();
        let (requests, bytes) = state.object_reads;
        state.object_reads = (requests + 1, bytes + read as u64);
        Ok(read)
    }

    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.here()?;
        let state = self.state.lock();
        let info = |(&id, bytes): (&ObjectId, &Arc<[u8]>)| ObjectInfo {
            id,
            size_bytes: bytes.len() as u64,
        };
        Ok(state.objects.iter().map(info).collect())
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.here()?;
        self.state.lock().objects.remove(&id);
        Ok(())
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
