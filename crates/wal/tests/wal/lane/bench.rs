//! Lanes over one memory home, with what their listeners have heard.

use logstead_env::{Instant, SimClock};
use logstead_home::{LaneAppends, LaneSegments, LogHome, MemoryHome, Position};
use logstead_types::{Csn, DatabaseId, Epoch, LaneId};
use logstead_wal::block::Header;
use logstead_wal::entry::EntryReader;
use logstead_wal::{
    EntryDependencies, Lane, LaneConfig, LaneEvent, LaneStart, LogAllocationLimit, PushResult,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};

pub(crate) const BUFFER: usize = 8 * 1024;

pub(crate) const NOTHING: Csn = Csn(u64::MAX);

/// Bytes that an entry of [`Bench::push`] takes, for CSNs below 128.
pub(crate) const ENTRY_LEN: u64 = 15;

pub(crate) struct Bench {
    pub(crate) home: MemoryHome,
    pub(crate) clock: Arc<SimClock>,
    /// The first of `lanes`.
    pub(crate) lane: Lane,
    pub(crate) lanes: Vec<Lane>,
    events: Arc<Mutex<Vec<String>>>,
}

/// One lane with one block in flight.
pub(crate) fn bench() -> Bench {
    bench_with(1, 1, None)
}

pub(crate) fn bench_with(
    lanes: u16,
    blocks_in_flight_max: usize,
    allocation_limit: Option<&Arc<LogAllocationLimit>>,
) -> Bench {
    let home = MemoryHome::new(32 * 1024);
    let clock = Arc::new(SimClock::new());
    let events = Arc::new(Mutex::new(Vec::new()));
    let lane = |number| {
        home.open_lane(LaneId(number), 0).unwrap();
        let start = LaneStart {
            database: DatabaseId(1),
            epoch: Epoch(1),
            lane: LaneId(number),
            first_segment: 0,
        };
        let config = LaneConfig {
            buffer_size_bytes: BUFFER,
            blocks_in_flight_max: Some(blocks_in_flight_max),
            allocation_limit: allocation_limit.cloned(),
        };
        let lane = Lane::new(LogHome::from(home.clone()), clock.clone(), start, config);
        let heard = Arc::clone(&events);
        let back = lane.clone();
        lane.set_listener(Box::new(move |event| {
            // No lock is held: a listener may look at the lane.
            let first = back.first_not_durable();
            let _in_flight = back.in_flight();
            let said = match event {
                LaneEvent::Durable if first == NOTHING => "durable 0".to_owned(),
                LaneEvent::Durable => format!("durable {first}"),
                LaneEvent::Room => "room".to_owned(),
                LaneEvent::Failed(_) => "failed".to_owned(),
            };
            let which = if lanes == 1 {
                String::new()
            } else {
                format!("{number}: ")
            };
            heard.lock().unwrap().push(which + &said);
        }));
        lane
    };
    let lanes: Vec<Lane> = (0..lanes).map(lane).collect();
    Bench {
        home,
        clock,
        lane: lanes[0].clone(),
        lanes,
        events,
    }
}

impl Bench {
    pub(crate) fn push(&self, csn: u64) -> PushResult {
        self.push_to(0, csn)
    }

    pub(crate) fn push_to(&self, lane: usize, csn: u64) -> PushResult {
        self.push_len(lane, csn, 10)
    }

    pub(crate) fn push_len(&self, lane: usize, csn: u64, len: usize) -> PushResult {
        let room = self.lanes[lane].room(len).unwrap();
        let deps = EntryDependencies::floor(Csn(csn - 1));
        self.lanes[lane].push(room, Csn(csn), 0, &deps, &vec![csn as u8; len])
    }

    pub(crate) fn events(&self) -> Vec<String> {
        std::mem::take(&mut self.events.lock().unwrap())
    }

    pub(crate) fn now(&self, nanos: u64) {
        let now = logstead_env::Clock::monotonic(&*self.clock);
        self.clock.advance(Instant::from_nanos(nanos).since(now));
    }

    /// The blocks that lie in the first segment of a lane at their places, with their CSNs; `None` for one that
    /// is not there.
    pub(crate) fn stored(&self, lane: u16, blocks: usize) -> Vec<Option<(Header, Vec<u64>)>> {
        let mut segment = logstead_home::Buffer::zeroed(32 * 1024);
        self.home
            .read(LaneId(lane), Position::start_of(0), &mut segment)
            .unwrap();
        let block = |number: usize| {
            // Small blocks: each takes one unit of the alignment.
            let bytes = &segment.as_slice()[number * 4096..];
            let (header, _) = Header::decode(bytes).ok()?;
            let payload = &bytes[header.header_len()..][..header.payload_len as usize];
            header.check_payload(payload).ok()?;
            let csns: Vec<u64> = EntryReader::new(payload)
                .map(|entry| entry.unwrap().csn.get())
                .collect();
            assert_eq!(csns.len(), header.entries as usize);
            assert_eq!(csns.iter().min(), Some(&header.csn_lowest.get()));
            assert_eq!(csns.iter().max(), Some(&header.csn_highest.get()));
            Some((header, csns))
        };
        (0..blocks).map(block).collect()
    }
}

/// Counts how often it is woken.
#[derive(Default)]
pub(crate) struct Count(AtomicUsize);

impl Count {
    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

impl Wake for Count {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
