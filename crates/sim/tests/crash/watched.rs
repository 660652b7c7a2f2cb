//! A home between the engine and the simulated one that notes which transactions each block holds, and which blocks are
//! durable.
//!
//! It reads what is on its way to storage, so it knows what is hardened without asking anybody: the block that holds an
//! entry, and all blocks before it in its lane, have completed.
//!
//! A reader beside the machine may take steps before any request of the machine that is not an append: in the middle of
//! a checkpoint's publication, of truncation, of a recovery. Requests of other threads than the machine's let nobody
//! in, so that a seed gives the same run.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::Duration;

use logstead_home::{
    Buffer, Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, NamedValues, NoRoom, ObjectCopies,
    ObjectId, ObjectInfo, ObjectReader, Position, RoomListener, RoomRequest, SegmentInfo,
    SegmentRollover, SideCompletion, SideSegments, SideWriter, SimulatedHome, Tag,
};
use logstead_types::{Csn, LaneId};
use logstead_wal::block::Header;
use logstead_wal::entry::EntryReader;
use parking_lot::Mutex;

use crate::baton::Baton;
use logstead_sim::Dice;

#[derive(Default)]
struct Seen {
    /// By number: the entries of each block of a lane, and whether it has completed.
    lanes: BTreeMap<LaneId, BTreeMap<u64, (Vec<Csn>, bool)>>,
    /// Of each lane: the first block that is not hardened.
    hardened_to: BTreeMap<LaneId, u64>,
    /// What has become hardened since somebody asked.
    hardened: Vec<Csn>,
}

impl Seen {
    fn completed(&mut self, lane: LaneId, block: u64) {
        let blocks = self.lanes.entry(lane).or_default();
        if let Some((_, done)) = blocks.get_mut(&block) {
            *done = true;
        }
        let next = self.hardened_to.entry(lane).or_default();
        while let Some((csns, true)) = blocks.get(next) {
            self.hardened.extend(csns);
            *next += 1;
        }
    }
}

/// Counts what is appended.
struct WatchedSide {
    side: Box<dyn SideWriter>,
    log_bytes: Arc<AtomicU64>,
}

impl SideWriter for WatchedSide {
    fn append(&mut self, piece: Vec<u8>) {
        let bytes = piece.len() as u64;
        self.log_bytes.fetch_add(bytes, Ordering::SeqCst);
        self.side.append(piece);
    }
    fn backlog_bytes(&self) -> usize {
        self.side.backlog_bytes()
    }
    fn spare(&mut self) -> Option<Vec<u8>> {
        self.side.spare()
    }
    fn finish(self: Box<Self>, done: SideCompletion) {
        self.side.finish(done);
    }
}

/// See the module's documentation.
pub(crate) struct Watched {
    pub(crate) home: SimulatedHome,
    seen: Arc<Mutex<Seen>>,
    /// Given to the lanes and to side segments in all lives.
    log_bytes: Arc<AtomicU64>,
    leased: bool,
    machine: ThreadId,
    beside: Mutex<Option<(Arc<Baton>, Dice)>>,
}

impl Watched {
    /// In the machine's thread. `leased`: the home says that no kernel's lock keeps others out.
    pub(crate) fn new(home: SimulatedHome, leased: bool) -> Watched {
        Watched {
            home,
            seen: Arc::default(),
            log_bytes: Arc::default(),
            leased,
            machine: std::thread::current().id(),
            beside: Mutex::default(),
        }
    }

    /// From now on this reader takes steps between the machine's requests; or none does.
    pub(crate) fn let_in(&self, reader: Option<(Arc<Baton>, Dice)>) {
        *self.beside.lock() = reader;
    }

    /// Before a request of the machine.
    fn meanwhile(&self) -> &SimulatedHome {
        if std::thread::current().id() == self.machine
            && let Some((baton, dice)) = &mut *self.beside.lock()
        {
            let steps = match dice.roll(16) {
                0 => 10,
                1..6 => 1,
                _ => 0,
            };
            for _ in 0..steps {
                baton.step();
            }
        }
        &self.home
    }

    /// The entries of some blocks of a lane in this life.
    pub(crate) fn entries(&self, lane: LaneId, blocks: Range<u64>) -> Vec<Csn> {
        let seen = self.seen.lock();
        let of_lane = seen.lanes.get(&lane);
        let blocks = of_lane
            .into_iter()
            .flat_map(|of_lane| of_lane.range(blocks.clone()));
        blocks
            .flat_map(|(_, (csns, _))| csns.iter().copied())
            .collect()
    }

    /// The machine has stopped: block numbers begin again.
    pub(crate) fn begin_life(&self) {
        *self.seen.lock() = Seen::default();
    }

    /// What has become hardened since the last call.
    pub(crate) fn take_hardened(&self) -> Vec<Csn> {
        std::mem::take(&mut self.seen.lock().hardened)
    }

    /// What was written of the log in all lives.
    pub(crate) fn log_bytes(&self) -> u64 {
        self.log_bytes.load(Ordering::SeqCst)
    }

    fn note(&self, lane: LaneId, block: &Buffer, len: usize) -> u64 {
        self.log_bytes.fetch_add(len as u64, Ordering::SeqCst);
        let bytes = block.as_slice();
        let (header, _) = Header::decode(bytes).expect("a block");
        let payload = &bytes[header.header_len()..][..header.payload_len as usize];
        let csns = EntryReader::new(payload).map(|entry| entry.expect("an entry").csn);
        let number = header.block.get();
        let mut seen = self.seen.lock();
        let blocks = seen.lanes.entry(lane).or_default();
        let before = blocks.insert(number, (csns.collect(), false));
        assert!(before.is_none(), "block {number} of lane {lane} twice");
        number
    }
}

impl HomeBackend for Watched {
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

impl HomeStatus for Watched {
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

impl LaneAppends for Watched {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            leased: self.leased,
            ..self.home.capabilities()
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        self.meanwhile().open_lane(lane, first_segment)
    }

    fn set_room_listener(&self, lane: LaneId, listener: RoomListener) {
        self.home.set_room_listener(lane, listener);
    }

    fn ensure_room(&self, lane: LaneId, bytes: u64, asked: &mut RoomRequest) -> Result<(), NoRoom> {
        self.home.ensure_room(lane, bytes, asked)
    }

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        self.home.place(lane, len)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let number = self.note(lane, &block, len);
        let seen = Arc::clone(&self.seen);
        let told = Box::new(move |block, result: Result<(), HomeError>| {
            if result.is_ok() {
                seen.lock().completed(lane, number);
            }
            done(block, result);
        });
        self.home.append(lane, at, block, len, told);
    }
}

impl InlineAppends for Watched {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let number = self.note(lane, block, len);
        self.home.append_inline(lane, at, block, len)?;
        self.seen.lock().completed(lane, number);
        Ok(())
    }
}

impl LaneSegments for Watched {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.meanwhile().list_lanes()
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.meanwhile().list_segments(lane)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.meanwhile().read(lane, at, into)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.meanwhile().rewrite(lane, at, block, len)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.meanwhile().seal(lane, at)
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.meanwhile().trim(lane, segment)
    }
}

impl NamedValues for Watched {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        self.meanwhile().get(name)
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.meanwhile().put_if_absent(name, bytes)
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.meanwhile().compare_and_swap(name, expected, bytes)
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for Watched {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        Box::new(WatchedSide {
            side: self.home.begin_side_segment(lane, id),
            log_bytes: Arc::clone(&self.log_bytes),
        })
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.meanwhile().get_side_segment(lane, id, offset, into)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.meanwhile().list_side_segments(lane)
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.meanwhile().remove_side_segment(lane, id)
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for Watched {
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError> {
        self.meanwhile().read_object(id, offset, into)
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for Watched {
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.meanwhile().put_object(id, bytes)
    }

    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.meanwhile().list_objects()
    }

    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.meanwhile().remove_object(id)
    }
}
