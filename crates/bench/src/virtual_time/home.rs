//! A home that keeps nothing and takes as long as a model says: a worker's own write has the worker sleep, what is
//! handed over is completed by a thread of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use logstead_env::SimRandom;
use logstead_home::simulated::Model;
use logstead_home::{
    Buffer, Completion, HomeCapabilities, HomeError, HomeStatus, HomeUsage, InlineAppends,
    LaneAppends, LogHome, NoRoom, Position, RoomListener, RoomRequest,
};
use logstead_types::LaneId;
use parking_lot::Mutex;

use super::scheduler::Scheduler;
use crate::discard::discard_home;

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
    discard: LogHome,
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
            discard: discard_home(),
            model,
            random,
            scheduler: Arc::clone(scheduler),
            thread,
            timed: AtomicBool::new(false),
            device: Mutex::default(),
        }
    }

    /// All of it: what is not an append is a discarding home's.
    pub(super) fn whole(self: &Arc<Self>) -> LogHome {
        let inline = Arc::clone(self) as Arc<dyn InlineAppends>;
        LogHome {
            status: Arc::clone(self) as _,
            appends: Arc::clone(self) as _,
            inline_appends: self.model.writes_are_short.then_some(inline),
            ..self.discard.clone()
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

impl HomeStatus for VirtualHome {
    fn describe(&self) -> String {
        format!("the model {} in virtual time", self.model.name)
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for VirtualHome {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            block_alignment: self.model.block_alignment,
            block_size_preferred: self.model.block_size_preferred,
            appends_in_flight_max: self.model.appends_in_flight_max,
            ..self.discard.capabilities()
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.discard.appends.open_lane(lane, first_segment)
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.discard.appends.set_room_listener(lane, listener);
    }

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        request: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        self.discard.appends.ensure_room(lane, bytes, request)
    }

    fn is_short_of_space(&self) -> bool {
        self.discard.appends.is_short_of_space()
    }

    fn free_bytes(&self) -> Option<u64> {
        self.discard.appends.free_bytes()
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        self.discard.appends.place(lane, len)
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
}

impl InlineAppends for VirtualHome {
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
}
