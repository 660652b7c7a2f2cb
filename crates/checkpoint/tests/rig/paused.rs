//! A home at which one server stands still, or falls silent, at some request, while others go on at the same one.

use logstead_home::{
    Buffer, Completion, Facts, HomeError, LogHome, NoRoom, ObjectId, ObjectInfo, Position,
    RoomListener, SegmentInfo, SideWriter, Tag,
};
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

type Meanwhile = Box<dyn FnOnce() + Send>;

/// See the module's documentation.
pub(crate) struct Paused {
    inner: Arc<dyn LogHome>,
    requests: AtomicU64,
    /// At this request.
    at: u64,
    /// What happens then, before the request is made; without, no request from there on is answered.
    meanwhile: Mutex<Option<Meanwhile>>,
    is_dead: bool,
}

impl Paused {
    pub(crate) fn at(inner: &Arc<dyn LogHome>, at: u64, meanwhile: Meanwhile) -> Arc<Paused> {
        Paused::new(inner, at, Some(meanwhile))
    }

    pub(crate) fn dead_after(inner: &Arc<dyn LogHome>, requests: u64) -> Arc<Paused> {
        Paused::new(inner, requests, None)
    }

    fn new(inner: &Arc<dyn LogHome>, at: u64, meanwhile: Option<Meanwhile>) -> Arc<Paused> {
        Arc::new(Paused {
            inner: Arc::clone(inner),
            requests: AtomicU64::new(0),
            at,
            is_dead: meanwhile.is_none(),
            meanwhile: Mutex::new(meanwhile),
        })
    }

    /// How many there were.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    fn request(&self) -> Result<&dyn LogHome, HomeError> {
        let number = self.requests.fetch_add(1, Ordering::SeqCst);
        if self.is_dead && number >= self.at {
            let why = std::io::Error::other("no answer");
            return Err(HomeError::io("a request", why));
        }
        if number == self.at
            && let Some(meanwhile) = self.meanwhile.lock().take()
        {
            meanwhile();
        }
        Ok(&*self.inner)
    }
}

impl LogHome for Paused {
    fn facts(&self) -> Facts {
        self.inner.facts()
    }
    fn describe(&self) -> String {
        self.inner.describe()
    }
    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.inner.open_lane(lane, first_segment)
    }
    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.inner.set_room_listener(lane, listener);
    }
    fn ensure_room(&self, lane: LaneId, bytes: u64) -> Result<(), NoRoom> {
        self.inner.ensure_room(lane, bytes)
    }
    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        self.inner.place(lane, len)
    }
    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        self.inner.append(lane, at, block, len, done);
    }
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.inner.append_inline(lane, at, block, len)
    }
    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.inner.rewrite(lane, at, block, len)
    }
    fn lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.inner.lanes()
    }
    fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.inner.segments(lane)
    }
    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.inner.read(lane, at, into)
    }
    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.inner.seal(lane, at)
    }
    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.inner.trim(lane, segment)
    }
    fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.inner.begin_side(lane, id)
    }
    fn get_side(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.inner.get_side(lane, id, offset, into)
    }
    fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.inner.sides(lane)
    }
    fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.inner.remove_side(lane, id)
    }
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.request()?.get(name)
    }
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?.put_if_absent(name, bytes)
    }
    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.request()?.compare_and_swap(name, expected, bytes)
    }
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.request()?.put_object(id, bytes)
    }
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.request()?.read_object(id, offset, into)
    }
    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.request()?.objects()
    }
    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.request()?.remove_object(id)
    }
}
