//! A home with a lease, in memory: one shelf, and a handle for each server that uses it.
//!
//! A handle can be made to die at any request, to lose a reply, to delay a compare and swap, and to let something else
//! happen right before a request. Fences are as the contract says: nothing of that epoch's segments is appended or
//! opened any more.

use logstead_home::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideCompletion, SideSegments, SideWriter, Tag,
};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

const SEGMENT_BYTES: u64 = 16 * 1024;
const ALIGNMENT: u64 = 4096;

#[derive(Default)]
struct Shared {
    segments: BTreeMap<(LaneId, u64), Vec<u8>>,
    sides: BTreeMap<(LaneId, u64), Vec<u8>>,
    names: BTreeMap<String, (Vec<u8>, u64)>,
    tags: u64,
    /// Lane and epoch.
    fenced: Vec<(LaneId, u64)>,
}

impl Shared {
    fn is_fenced(&self, lane: LaneId, segment: u64) -> bool {
        self.fenced.contains(&(lane, segment >> 32))
    }
}

type Before = Box<dyn FnOnce() + Send>;
/// A name, its expected tag, and what is to replace it.
type Swap = (String, Tag, Vec<u8>);

#[derive(Default)]
struct Own {
    /// Where the next append goes.
    next: BTreeMap<LaneId, Position>,
    requests: Vec<String>,
    /// Fails everything from this request on.
    dies_at: Option<usize>,
    /// What happens before the request of that number.
    before: Option<(usize, Before)>,
    lose_reply: bool,
    delay: bool,
    delayed: Option<Swap>,
    limit: Option<Duration>,
    /// Its names are those of another shelf.
    moved_to: Option<Arc<Mutex<Shared>>>,
}

/// One server's handle.
#[derive(Clone, Default)]
pub(crate) struct Shelf {
    /// A kernel's lock keeps others out: there is no lease.
    locked: bool,
    shared: Arc<Mutex<Shared>>,
    own: Arc<Mutex<Own>>,
}

fn broken(what: &str) -> HomeError {
    HomeError::io(what, io::Error::other("no answer"))
}

impl Shelf {
    pub(crate) fn new() -> Shelf {
        Shelf::default()
    }

    /// Another server's handle.
    pub(crate) fn handle(&self) -> Shelf {
        Shelf {
            locked: self.locked,
            shared: Arc::clone(&self.shared),
            own: Arc::default(),
        }
    }

    /// The same shelf for one server only.
    pub(crate) fn locked(&self) -> Shelf {
        Shelf {
            locked: true,
            ..self.handle()
        }
    }

    /// From now on this handle finds the names of `other` here.
    pub(crate) fn moves_to(&self, other: &Shelf) {
        self.own.lock().moved_to = Some(Arc::clone(&other.shared));
    }

    fn named(&self) -> Arc<Mutex<Shared>> {
        let moved = self.own.lock().moved_to.clone();
        moved.unwrap_or_else(|| Arc::clone(&self.shared))
    }

    pub(crate) fn lives(&self) {
        self.own.lock().dies_at = None;
    }

    pub(crate) fn dies_at(&self, request: usize) {
        self.own.lock().dies_at = Some(request);
    }

    pub(crate) fn before(&self, request: usize, what: impl FnOnce() + Send + 'static) {
        self.own.lock().before = Some((request, Box::new(what)));
    }

    /// What was to happen before a request has happened.
    pub(crate) fn is_past(&self) -> bool {
        self.own.lock().before.is_none()
    }

    /// How long a request for a named thing may go unanswered, as this server wants it.
    pub(crate) fn limit(&self) -> Option<Duration> {
        self.own.lock().limit
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.own.lock().requests.clone()
    }

    /// The next compare and swap succeeds and is not answered.
    pub(crate) fn lose_reply(&self) {
        self.own.lock().lose_reply = true;
    }

    /// The next compare and swap is not answered, and arrives when [`Shelf::deliver`] is called.
    pub(crate) fn delay(&self) {
        self.own.lock().delay = true;
    }

    pub(crate) fn deliver(&self) -> bool {
        let delayed = self.own.lock().delayed.take();
        let (name, expected, bytes) = delayed.expect("something was delayed");
        self.swap(&name, expected, &bytes).is_ok()
    }

    fn swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        let shared = self.named();
        let mut shared = shared.lock();
        if shared.names.get(name).map(|(_, tag)| *tag) != Some(expected.0) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        shared.tags += 1;
        let tag = shared.tags;
        shared.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    fn request(&self, what: String) -> Result<(), HomeError> {
        let before = {
            let mut own = self.own.lock();
            let number = own.requests.len();
            own.requests.push(what.clone());
            match own.before.take() {
                Some((at, before)) if at == number => Some(before),
                other => {
                    own.before = other;
                    None
                }
            }
        };
        if let Some(before) = before {
            before();
        }
        let own = self.own.lock();
        match own.dies_at {
            Some(at) if own.requests.len() > at => Err(broken(&what)),
            _ => Ok(()),
        }
    }

    fn store(&self, lane: LaneId, at: Position, bytes: &[u8]) -> Result<(), HomeError> {
        self.request(format!("append {lane} {at}"))?;
        let mut shared = self.shared.lock();
        if shared.is_fenced(lane, at.segment) {
            return Err(HomeError::Fenced(format!("lane {lane}")));
        }
        let Some(segment) = shared.segments.get_mut(&(lane, at.segment)) else {
            return Err(HomeError::Missing(format!(
                "lane {lane} segment {}",
                at.segment
            )));
        };
        assert_eq!(segment.len() as u64, at.offset, "an append at the end");
        segment.extend_from_slice(bytes);
        Ok(())
    }
}

impl HomeBackend for Shelf {
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        Some(Arc::clone(home) as _)
    }

    fn rollover(_home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        None
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for Shelf {
    fn describe(&self) -> String {
        "the shelf".to_owned()
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for Shelf {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            block_alignment: ALIGNMENT as usize,
            block_size_preferred: ALIGNMENT as usize,
            room_size_bytes_max: SEGMENT_BYTES,
            appends_in_flight_max: 1,
            append_latency_expected_us: 1,
            leased: !self.locked,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.request(format!("open {lane} {first_segment}"))?;
        let mut shared = self.shared.lock();
        if shared.is_fenced(lane, first_segment) {
            return Err(HomeError::Fenced(format!("lane {lane}")).into());
        }
        let before = shared.segments.insert((lane, first_segment), Vec::new());
        assert_eq!(before, None, "a fresh segment");
        drop(shared);
        let at = Position::start_of(first_segment);
        self.own.lock().next.insert(lane, at);
        Ok(())
    }

    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        _lane: LaneId,
        _bytes: u64,
        _asked: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut own = self.own.lock();
        let next = own.next.get_mut(&lane).expect("an open lane");
        if next.offset + len > SEGMENT_BYTES {
            *next = Position::start_of(next.segment + 1);
            let mut shared = self.shared.lock();
            if shared.is_fenced(lane, next.segment) {
                return Err(HomeError::Fenced(format!("lane {lane}")));
            }
            shared.segments.insert((lane, next.segment), Vec::new());
        }
        let at = *next;
        next.offset += len;
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let result = self.store(lane, at, &block.as_slice()[..len]);
        done(block, result);
    }
}

impl InlineAppends for Shelf {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.store(lane, at, &block.as_slice()[..len])
    }
}

impl LaneSegments for Shelf {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        assert!(!by.is_empty());
        self.request(format!("fence {lane} {first_segment}"))?;
        self.shared.lock().fenced.push((lane, first_segment >> 32));
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.request("lanes".to_owned())?;
        let shared = self.shared.lock();
        let mut lanes: Vec<LaneId> = shared.segments.keys().map(|&(lane, _)| lane).collect();
        lanes.dedup();
        Ok(lanes)
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.request(format!("segments {lane}"))?;
        let shared = self.shared.lock();
        let of_lane = shared.segments.iter().filter(|((of, _), _)| *of == lane);
        let info = |(&(_, segment), bytes): (&(LaneId, u64), &Vec<u8>)| SegmentInfo {
            segment,
            size_bytes: bytes.len() as u64,
        };
        Ok(of_lane.map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.request(format!("read {lane} {at}"))?;
        let shared = self.shared.lock();
        let Some(bytes) = shared.segments.get(&(lane, at.segment)) else {
            return Ok(0);
        };
        let start = (at.offset as usize).min(bytes.len());
        let count = into.capacity().min(bytes.len() - start);
        into.as_mut_slice()[..count].copy_from_slice(&bytes[start..start + count]);
        Ok(count)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.request(format!("rewrite {lane} {at}"))?;
        let shared = self.shared.lock();
        let start = at.offset as usize;
        let there = &shared.segments[&(lane, at.segment)][start..start + len];
        assert_eq!(there, &block.as_slice()[..len], "the same bytes");
        Ok(())
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.request(format!("seal {lane} {at}"))?;
        if let Some(bytes) = self.shared.lock().segments.get_mut(&(lane, at.segment)) {
            bytes.truncate(at.offset as usize);
        }
        Ok(())
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.request(format!("trim {lane} {segment}"))?;
        self.shared.lock().segments.remove(&(lane, segment));
        Ok(())
    }
}

impl NamedValues for Shelf {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.request(format!("get {name}"))?;
        let shared = self.named();
        let shared = shared.lock();
        let found = shared.names.get(name);
        Ok(found.map(|(bytes, tag)| (bytes.clone(), Tag(*tag))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request(format!("put {name}"))?;
        let mut shared = self.shared.lock();
        if shared.names.contains_key(name) {
            return Err(HomeError::Conflict(name.to_owned()));
        }
        shared.tags += 1;
        let tag = shared.tags;
        shared.names.insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request(format!("swap {name}"))?;
        let (lose, delay) = {
            let mut own = self.own.lock();
            (
                std::mem::take(&mut own.lose_reply),
                std::mem::take(&mut own.delay),
            )
        };
        if delay {
            self.own.lock().delayed = Some((name.to_owned(), expected, bytes.to_vec()));
            return Err(broken("swap"));
        }
        let swapped = self.swap(name, expected, bytes)?;
        if lose {
            Err(broken("swap"))
        } else {
            Ok(swapped)
        }
    }

    fn limit_name_requests(&self, first: Duration) {
        let mut own = self.own.lock();
        assert!(own.requests.is_empty(), "before the first request");
        own.limit = Some(first);
    }
}

impl SideSegments for Shelf {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        Box::new(Side {
            shelf: self.clone(),
            key: (lane, id),
            bytes: Vec::new(),
        })
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.request(format!("side {lane} {id:x}"))?;
        let shared = self.shared.lock();
        let missing = || HomeError::Missing("a side segment".to_owned());
        let bytes = shared.sides.get(&(lane, id)).ok_or_else(missing)?;
        let rest = &bytes[(offset as usize).min(bytes.len())..];
        let count = into.len().min(rest.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.request(format!("sides {lane}"))?;
        let shared = self.shared.lock();
        let of_lane = shared.sides.keys().filter(|(of, _)| *of == lane);
        Ok(of_lane.map(|(_, id)| *id).collect())
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.request(format!("remove side {lane} {id:x}"))?;
        self.shared.lock().sides.remove(&(lane, id));
        Ok(())
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for Shelf {
    fn read_object(&self, id: ObjectId, _: u64, _: &mut [u8]) -> Result<usize, HomeError> {
        Err(HomeError::Missing(format!("object {id}")))
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for Shelf {
    fn put_object(&self, _: ObjectId, _: &[u8]) -> Result<(), HomeError> {
        Err(HomeError::Unsupported("objects"))
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        Ok(Vec::new())
    }

    fn remove_object(&self, _: ObjectId) -> Result<(), HomeError> {
        Ok(())
    }
}

/// A side segment being written; it is there when it is finished.
struct Side {
    shelf: Shelf,
    key: (LaneId, u64),
    bytes: Vec<u8>,
}

impl SideWriter for Side {
    fn append(&mut self, piece: Vec<u8>) {
        self.bytes.extend(piece);
    }

    fn backlog_bytes(&self) -> usize {
        0
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        None
    }

    fn finish(self: Box<Self>, done: SideCompletion) {
        let Side { shelf, key, bytes } = *self;
        let stored = shelf.request(format!("store side {} {:x}", key.0, key.1));
        let stored = stored.map(|()| shelf.shared.lock().sides.insert(key, bytes));
        done(stored.map(drop).map_err(NoRoom::Failed));
    }
}
