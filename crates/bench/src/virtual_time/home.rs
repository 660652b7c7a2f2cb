//! A home that keeps nothing and takes as long as a model says: a worker's own write has the worker sleep, what is handed over is
//! completed by a thread of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_env::SimRandom;
use logstead_home::simulated::Model;
use logstead_home::{
    Buffer, Completion, Facts, HomeError, LogHome, NoRoom, ObjectId, ObjectInfo, Position,
    RoomListener, RoomRequest, SegmentInfo, SideWriter, Tag,
};
use logstead_types::LaneId;
use parking_lot::Mutex;

use super::scheduler::Scheduler;
use crate::discard::DiscardHome;

/// An append that was handed over.
struct Handed {
    block: Buffer,
    done: Completion,
}

#[derive(Default)]
struct Device {
    /// When which is done, in that order.
    due: BinaryHeap<Reverse<(u64, u64)>>,
    handed: BTreeMap<u64, Handed>,
    count: u64,
    /// No more will come.
    over: bool,
}

/// See the module's documentation.
pub(super) struct VirtualHome {
    discard: DiscardHome,
    model: Model,
    random: SimRandom,
    scheduler: Arc<Scheduler>,
    /// Its own thread.
    thread: usize,
    /// Appends take time.
    timed: AtomicBool,
    device: Mutex<Device>,
}

impl VirtualHome {
    pub(super) fn new(
        model: Model,
        random: SimRandom,
        scheduler: &Arc<Scheduler>,
        thread: usize,
    ) -> VirtualHome {
        VirtualHome {
            discard: DiscardHome::default(),
            model,
            random,
            scheduler: Arc::clone(scheduler),
            thread,
            timed: AtomicBool::new(false),
            device: Mutex::default(),
        }
    }

    /// Until now appends were done at once.
    pub(super) fn begin_timing(&self) {
        self.timed.store(true, Ordering::Relaxed);
    }

    fn latency_ns(&self, len: usize) -> u64 {
        let latency = self.model.sample(self.model.append, len, &self.random);
        u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX)
    }

    /// What its thread does, until nobody needs it any more.
    pub(super) fn work(&self) {
        self.scheduler.enter(self.thread);
        loop {
            let next = {
                let mut device = self.device.lock();
                match device.due.peek() {
                    Some(&Reverse((at, number))) if at <= self.scheduler.now() => {
                        device.due.pop();
                        Ok(device.handed.remove(&number))
                    }
                    Some(&Reverse((at, _))) => Err(Some(at)),
                    None if device.over => break,
                    None => Err(None),
                }
            };
            match next {
                Ok(Some(Handed { block, done })) => done(block, Ok(())),
                Ok(None) => {}
                Err(until) => self.scheduler.wait(self.thread, until),
            }
        }
        self.scheduler.end(self.thread);
    }

    /// All workers have ended.
    pub(super) fn close(&self) {
        self.device.lock().over = true;
        self.scheduler.wake(self.thread, self.scheduler.now());
    }
}

impl LogHome for VirtualHome {
    fn facts(&self) -> Facts {
        Facts {
            block_alignment: self.model.block_alignment,
            block_size_preferred: self.model.block_size_preferred,
            writes_are_short: self.model.writes_are_short,
            appends_in_flight_max: self.model.appends_in_flight_max,
            ..self.discard.facts()
        }
    }

    fn describe(&self) -> String {
        format!("the model {} in virtual time", self.model.name)
    }

    fn append(&self, _: LaneId, _: Position, block: Buffer, len: usize, done: Completion) {
        if !self.timed.load(Ordering::Relaxed) {
            done(block, Ok(()));
            return;
        }
        let at = self.scheduler.now() + self.latency_ns(len);
        {
            let mut device = self.device.lock();
            device.count += 1;
            let number = device.count;
            device.due.push(Reverse((at, number)));
            device.handed.insert(number, Handed { block, done });
        }
        self.scheduler.wake(self.thread, at);
    }

    fn append_inline(
        &self,
        _: LaneId,
        _: Position,
        _: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        if self.timed.load(Ordering::Relaxed)
            && let Some(thread) = self.scheduler.current()
        {
            self.scheduler.sleep(thread, self.latency_ns(len));
        }
        Ok(())
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.discard.open_lane(lane, first_segment)
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.discard.set_room_listener(lane, listener);
    }

    fn ensure_room(&self, lane: LaneId, bytes: u64, asked: &mut RoomRequest) -> Result<(), NoRoom> {
        self.discard.ensure_room(lane, bytes, asked)
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        self.discard.place(lane, len)
    }

    fn rewrite(&self, l: LaneId, at: Position, b: &Buffer, n: usize) -> Result<(), HomeError> {
        self.discard.rewrite(l, at, b, n)
    }

    fn lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.discard.lanes()
    }

    fn segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.discard.segments(lane)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.discard.read(lane, at, into)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.discard.seal(lane, at)
    }

    fn trim(&self, lane: LaneId, before: u64) -> Result<(), HomeError> {
        self.discard.trim(lane, before)
    }

    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.discard.get(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.discard.put_if_absent(name, bytes)
    }

    fn compare_and_swap(&self, name: &str, tag: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.discard.compare_and_swap(name, tag, bytes)
    }

    fn begin_side(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.discard.begin_side(lane, id)
    }

    fn get_side(&self, l: LaneId, id: u64, at: u64, b: &mut [u8]) -> Result<usize, HomeError> {
        self.discard.get_side(l, id, at, b)
    }

    fn sides(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.discard.sides(lane)
    }

    fn remove_side(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.discard.remove_side(lane, id)
    }

    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.discard.put_object(id, bytes)
    }

    fn read_object(&self, id: ObjectId, at: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.discard.read_object(id, at, into)
    }

    fn objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.discard.objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.discard.remove_object(id)
    }
}
