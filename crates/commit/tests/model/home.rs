//! A home whose appends complete when the model says so, and that can tell what a crash now would leave.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use logstead_env::{Buffer, Env};
use logstead_home::{
    Completion, Copies, HomeBackend, HomeCapabilities, HomeError, HomeStatus, HomeUsage,
    ImmutableObjects, InlineAppends, LaneAppends, LaneSegments, LogHome, NamedValues, NoRoom,
    ObjectCopies, ObjectId, ObjectInfo, ObjectReader, Position, RoomListener, RoomRequest,
    SegmentInfo, SegmentRollover, SideSegments, SideWriter, Tag,
};
use logstead_types::LaneId;
use logstead_wal::recovery::{self, RecoveredLog, RecoveryOptions};

const ALIGNMENT: usize = 4096;
const SEGMENT_BYTES: u64 = 64 * 1024;
/// Of a torn block so much arrives: its header and a little.
const TORN_BYTES: usize = 90;

type At = (LaneId, Position);

struct Block {
    bytes: Vec<u8>,
    hash: u64,
}

impl Block {
    fn new(bytes: &[u8]) -> Arc<Block> {
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        Arc::new(Block {
            bytes: bytes.to_vec(),
            hash: hasher.finish(),
        })
    }

    fn torn(&self) -> Arc<Block> {
        let mut bytes = self.bytes.clone();
        bytes[TORN_BYTES..].fill(0);
        Block::new(&bytes)
    }
}

struct Waiting {
    at: At,
    block: Arc<Block>,
    /// Nothing for an inline append, whose writer waits.
    done: Option<(Buffer, Completion)>,
}

#[derive(Clone, Default)]
struct OnDisk {
    blocks: BTreeMap<At, Arc<Block>>,
    /// By lane: where it began, its next append, its last segment.
    lanes: BTreeMap<LaneId, (u64, Position, u64)>,
    names: BTreeMap<String, (Vec<u8>, u64)>,
}

#[derive(Default)]
struct State {
    disk: OnDisk,
    waiting: Vec<Waiting>,
    paused: bool,
    /// Counts what changes what a crash would leave.
    version: u64,
}

/// Who survives, by what was on the disk.
pub(crate) type Memo = HashMap<Vec<(At, u64)>, Arc<BTreeSet<u32>>>;

/// See the module's documentation. Clones share the state.
#[derive(Clone)]
pub(crate) struct ModelHome {
    state: Arc<Mutex<State>>,
    inline: bool,
    /// Somebody else may have the turn.
    point: Arc<dyn Fn() + Send + Sync>,
}

impl ModelHome {
    /// Empty. `inline`: writes are short, workers do them themselves.
    pub(crate) fn new(inline: bool, point: Arc<dyn Fn() + Send + Sync>) -> ModelHome {
        ModelHome {
            state: Arc::default(),
            inline,
            point,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics at home")
    }

    /// Appends wait for [`ModelHome::complete_at`] from now on.
    pub(crate) fn pause(&self) {
        self.state().paused = true;
    }

    /// Goes up whenever a crash would leave something else.
    pub(crate) fn version(&self) -> u64 {
        self.state().version
    }

    /// Appends that somebody else must complete.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.state();
        state.waiting.iter().filter(|w| w.done.is_some()).count()
    }

    /// Completes one of them.
    pub(crate) fn complete_at(&self, index: usize) {
        let (buffer, done) = {
            let mut state = self.state();
            let mut there = state.waiting.iter().enumerate();
            let found = there.by_ref().filter(|(_, w)| w.done.is_some()).nth(index);
            let Some((found, _)) = found else { return };
            let waiting = state.waiting.remove(found);
            state.disk.blocks.insert(waiting.at, waiting.block);
            state.version += 1;
            waiting.done.expect("handed off")
        };
        done(buffer, Ok(()));
    }

    /// Who survives a crash now, for every way it can treat what is being written: lost, torn, or landed.
    pub(crate) fn crashes(
        &self,
        memo: &Mutex<Memo>,
        options: &RecoveryOptions,
    ) -> Vec<Arc<BTreeSet<u32>>> {
        let (disk, waiting) = {
            let state = self.state();
            let waiting: Vec<_> = state
                .waiting
                .iter()
                .map(|w| (w.at, w.block.clone()))
                .collect();
            (state.disk.clone(), waiting)
        };
        // Three and more are not torn as well: that would be many.
        let ways: usize = if waiting.len() <= 2 { 3 } else { 2 };
        let count = ways.pow(waiting.len() as u32);
        (0..count)
            .map(|mut way| {
                let mut disk = disk.clone();
                for (at, block) in &waiting {
                    match way % ways {
                        0 => {}
                        1 => {
                            disk.blocks.insert(*at, block.clone());
                        }
                        _ => {
                            disk.blocks.insert(*at, block.torn());
                        }
                    }
                    way /= ways;
                }
                self.survivors(disk, memo, options)
            })
            .collect()
    }

    fn survivors(
        &self,
        disk: OnDisk,
        memo: &Mutex<Memo>,
        options: &RecoveryOptions,
    ) -> Arc<BTreeSet<u32>> {
        let key: Vec<(At, u64)> = disk.blocks.iter().map(|(at, b)| (*at, b.hash)).collect();
        let mut memo = memo.lock().expect("nobody panics");
        let found = memo.entry(key).or_insert_with(|| {
            let mut disk = disk;
            disk.lanes
                .values_mut()
                .for_each(|lane| lane.1 = Position::start_of(lane.2));
            let home = ModelHome {
                state: Arc::new(Mutex::new(State {
                    disk,
                    ..State::default()
                })),
                inline: self.inline,
                point: Arc::new(|| {}),
            };
            Arc::new(home.open(options).1)
        });
        found.clone()
    }

    /// Opens the log in it: who survived.
    pub(crate) fn open(&self, options: &RecoveryOptions) -> (RecoveredLog, BTreeSet<u32>) {
        let home = LogHome::from(self.clone());
        let (env, _) = Env::simulated(1);
        let mut survivors = BTreeSet::new();
        let recovered = recovery::open(&home, &env, options, &mut |_, records| {
            let number = records.first_chunk().expect("a transaction's number");
            assert!(
                survivors.insert(u32::from_le_bytes(*number)),
                "an entry twice"
            );
            Ok(())
        });
        (recovered.expect("a log that recovers"), survivors)
    }

    fn begin(&self, lane: LaneId, at: Position, bytes: &[u8], done: Option<(Buffer, Completion)>) {
        let mut state = self.state();
        state.version += 1;
        state.waiting.push(Waiting {
            at: (lane, at),
            block: Block::new(bytes),
            done,
        });
    }
}

impl HomeBackend for ModelHome {
    fn inline_appends(home: &Arc<Self>) -> Option<Arc<dyn InlineAppends>> {
        home.inline.then(|| Arc::clone(home) as _)
    }

    fn rollover(_home: &Arc<Self>) -> Option<Arc<dyn SegmentRollover>> {
        None
    }

    fn copies(_home: &Arc<Self>) -> Option<Arc<dyn Copies>> {
        None
    }
}

impl HomeStatus for ModelHome {
    fn describe(&self) -> String {
        "the model's home".to_owned()
    }

    fn report(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn usage(&self) -> Vec<HomeUsage> {
        Vec::new()
    }
}

impl LaneAppends for ModelHome {
    fn capabilities(&self) -> HomeCapabilities {
        HomeCapabilities {
            block_alignment: ALIGNMENT,
            block_size_preferred: 16 * 1024,
            room_size_bytes_max: SEGMENT_BYTES,
            appends_in_flight_max: 8,
            append_latency_expected_us: 1,
            leased: false,
        }
    }

    fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let start = Position::start_of(first_segment);
        let mut state = self.state();
        let lane = state
            .disk
            .lanes
            .entry(lane)
            .or_insert((first_segment, start, 0));
        (lane.1, lane.2) = (start, first_segment);
        Ok(())
    }

    fn set_room_listener(&self, _lane: LaneId, _listener: RoomListener) {}

    fn ensure_room(
        &self,
        lane: LaneId,
        bytes: u64,
        _asked: &mut RoomRequest,
    ) -> Result<(), NoRoom> {
        if let Some(lane) = self.state().disk.lanes.get_mut(&lane)
            && lane.1.offset + bytes > SEGMENT_BYTES
        {
            lane.2 = lane.2.max(lane.1.segment + 1);
        }
        Ok(())
    }

    fn is_short_of_space(&self) -> bool {
        false
    }

    fn free_bytes(&self) -> Option<u64> {
        None
    }

    fn place(&self, lane: LaneId, len: u64) -> Result<Position, HomeError> {
        let mut state = self.state();
        let (_, next, last) = state.disk.lanes.get_mut(&lane).expect("an open lane");
        if next.offset + len > SEGMENT_BYTES {
            *next = Position::start_of(next.segment + 1);
            assert!(next.segment <= *last, "room was not ensured");
        }
        let at = *next;
        next.offset += len;
        Ok(at)
    }

    fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        (self.point)();
        let bytes = block.as_slice()[..len].to_vec();
        if self.state().paused {
            return self.begin(lane, at, &bytes, Some((block, done)));
        }
        self.state()
            .disk
            .blocks
            .insert((lane, at), Block::new(&bytes));
        done(block, Ok(()));
    }
}

impl InlineAppends for ModelHome {
    fn append_inline(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.begin(lane, at, &block.as_slice()[..len], None);
        (self.point)();
        let mut state = self.state();
        let mut there = state.waiting.iter();
        let found = there.position(|w| w.at == (lane, at)).expect("it is there");
        let waiting = state.waiting.remove(found);
        state.disk.blocks.insert(waiting.at, waiting.block);
        state.version += 1;
        Ok(())
    }
}

impl LaneSegments for ModelHome {
    // Nobody else is there.
    fn fence(&self, _lane: LaneId, _first_segment: u64, _by: &str) -> Result<(), HomeError> {
        Ok(())
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        Ok(self.state().disk.lanes.keys().copied().collect())
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        let state = self.state();
        let Some(&(first, _, last)) = state.disk.lanes.get(&lane) else {
            return Ok(Vec::new());
        };
        let info = |segment| SegmentInfo {
            segment,
            size_bytes: SEGMENT_BYTES,
        };
        Ok((first..=last).map(info).collect())
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        let state = self.state();
        let left = SEGMENT_BYTES.saturating_sub(at.offset) as usize;
        let count = into.capacity().min(left);
        let into = &mut into.as_mut_slice()[..count];
        into.fill(0);
        let end = Position {
            offset: at.offset + count as u64,
            ..at
        };
        for ((_, from), block) in state.disk.blocks.range((lane, at)..(lane, end)) {
            let start = (from.offset - at.offset) as usize;
            let len = block.bytes.len().min(count - start);
            into[start..start + len].copy_from_slice(&block.bytes[..len]);
        }
        Ok(count)
    }

    fn rewrite(&self, _: LaneId, _: Position, _: &Buffer, _: usize) -> Result<(), HomeError> {
        Ok(())
    }

    fn seal(&self, _: LaneId, _: Position) -> Result<(), HomeError> {
        Ok(())
    }

    fn trim(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }
}

impl NamedValues for ModelHome {
    fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        let state = self.state();
        let found = state.disk.names.get(name);
        Ok(found.map(|(bytes, tag)| (bytes.clone(), Tag(*tag))))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        self.state()
            .disk
            .names
            .insert(name.to_owned(), (bytes.to_vec(), 1));
        Ok(Tag(1))
    }

    fn compare_and_swap(&self, name: &str, expected: Tag, bytes: &[u8]) -> Result<Tag, HomeError> {
        let tag = expected.0 + 1;
        self.state()
            .disk
            .names
            .insert(name.to_owned(), (bytes.to_vec(), tag));
        Ok(Tag(tag))
    }

    // Requests are answered at once.
    fn limit_name_requests(&self, _first: Duration) {}
}

impl SideSegments for ModelHome {
    fn begin_side_segment(&self, _: LaneId, _: u64) -> Box<dyn SideWriter> {
        unreachable!("no transaction of the model is large")
    }

    fn get_side_segment(
        &self,
        _: LaneId,
        id: u64,
        _: u64,
        _: &mut [u8],
    ) -> Result<usize, HomeError> {
        Err(HomeError::Missing(format!("side segment {id}")))
    }

    fn list_side_segments(&self, _: LaneId) -> Result<Vec<u64>, HomeError> {
        Ok(Vec::new())
    }

    fn remove_side_segment(&self, _: LaneId, _: u64) -> Result<(), HomeError> {
        Ok(())
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        let _next_recovery_removes_it = self.remove_side_segment(lane, id);
    }
}

impl ObjectReader for ModelHome {
    fn read_object(&self, id: ObjectId, _: u64, _: &mut [u8]) -> Result<usize, HomeError> {
        Err(HomeError::Missing(format!("object {id}")))
    }

    fn object_copies(&self) -> Option<&dyn ObjectCopies> {
        None
    }
}

impl ImmutableObjects for ModelHome {
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
