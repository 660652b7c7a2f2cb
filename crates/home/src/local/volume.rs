//! The part of a volume that one storage node has: a local home whose appends come with their places, from a writer
//! that is elsewhere, and that can be fenced.
//!
//! ```text
//! DIR/fences      lanes and where each is fenced: replaced by rename
//! DIR/...         as in any local home; all segments have one size
//! ```
//!
//! Invariants:
//! - A lane's appends are claimed in the order of their places, without holes; one that does not follow is refused.
//!   An append to a segment that is still being prepared waits for it, and those behind it wait too.
//! - What is fenced is written down before the fence is answered, and no append to it, and no further segment of its
//!   lane, is under way then: what had not
//!   succeeded by that moment never will, also after a restart of the node (T3).
//! - Fences only grow: the epoch of a segment is the upper half of its number, and a fence in one epoch closes every
//!   earlier one as well. A server of an earlier epoch was overtaken by the one whose lanes are fenced here.
//! - What a server orders that names its epoch (bytes that peers have, a better copy of an object) changes nothing from
//!   the moment on when a fence of a later server is answered: a fence waits for what is under way.
//! - One request at a time changes a named value.
//!
//! Does not: talk to anybody, or know whose requests these are.

use super::lane::{Append, Claim, LaneFiles};
use super::{LocalHome, LocalOptions, tag_of};
use crate::{
    Buffer, Completion, HomeCapabilities, HomeError, ImmutableObjects, LaneAppends, LaneSegments,
    NamedValues, NoRoom, ObjectId, ObjectInfo, ObjectReader, Position, Rollover, RoomListener,
    SeenCopy, SegmentInfo, SideSegments, SideWriter, Tag,
};
use logstead_env::{Condvar, Env, LongMutex, LongRwLock};
use logstead_types::{Epoch, LaneId};
use parking_lot::{Mutex, RwLock, RwLockReadGuard};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Appends of one lane that may be under way together.
const APPENDS_IN_FLIGHT_MAX: usize = 8;
/// Largest append.
const ROOM_BYTES_MAX: u64 = 4 << 20;
/// Lanes that may be open at the same time.
const LANES_MAX: usize = 1024;
/// Segments' numbers end here: none overflows.
const SEGMENT_MAX: u64 = u64::MAX >> 1;
/// Largest named value.
pub const NAMED_VALUE_BYTES_MAX: usize = 4 << 20;
/// Where fences are written down.
const FENCES: &str = "fences";
const FENCES_MAGIC: &str = "logstead fences 1\n";
/// Longest name of a named value.
const NAME_BYTES_MAX: usize = 64;
/// Files and folders of the home itself, which are no named values.
const RESERVED: [&str; 6] = ["lock", "log", "objects", "branches", "temp", FENCES];

/// See the module's documentation.
pub struct LocalVolume {
    home: Arc<LocalHome>,
    segment_bytes: u64,
    lanes: RwLock<BTreeMap<LaneId, Arc<VolumeLane>>>,
    /// By lane: the first segment that is fenced, of its epoch and of every earlier one.
    fences: LongMutex<BTreeMap<LaneId, u64>>,
    /// Held while a lane is opened.
    opening: LongMutex<()>,
    /// Held while a named value is compared and replaced, or read: what is not durable yet is shown to nobody.
    naming: LongMutex<()>,
    /// Held to read while bytes are written again, and to write while a segment is removed, whose file may become
    /// another.
    rewriting: LongRwLock<()>,
    /// Held to read while something is done for a server that has named its epoch; a fence waits until nobody does.
    ordered: LongRwLock<()>,
}

/// A lane that a writer has open.
struct VolumeLane {
    files: Arc<LaneFiles>,
    state: Mutex<VolumeLaneState>,
    settled: Condvar,
}

/// An append that waits for its segment.
type WaitingAppend = (Position, Buffer, usize, Completion);

#[derive(Default)]
struct VolumeLaneState {
    /// Appends that wait for their segment, in order.
    waiting: VecDeque<WaitingAppend>,
    in_flight: usize,
    /// Where its fence begins, if it has one.
    fenced: Option<u64>,
    /// Another writer has opened the lane: nothing more is taken.
    replaced: bool,
    /// The disk was full, and another attempt to make the segment that appends wait for is under way.
    retries_full_disk: bool,
}

impl VolumeLaneState {
    fn takes(&self, segment: u64) -> bool {
        !self.replaced && !self.fenced.is_some_and(|fenced| is_behind(fenced, segment))
    }
}

/// The number that a segment's epoch begins with.
const fn epoch_of(segment: u64) -> u64 {
    segment >> 32
}

/// Is a segment behind a fence that begins at `fenced`?
fn is_behind(fenced: u64, segment: u64) -> bool {
    epoch_of(segment) < epoch_of(fenced)
        || (epoch_of(segment) == epoch_of(fenced) && segment >= fenced)
}

impl LocalVolume {
    /// Opens (or makes) the volume in `dir`. Its segments have `segment_bytes` each, a multiple of the alignment.
    pub fn open(
        dir: impl Into<PathBuf>,
        env: &Env,
        segment_bytes: u64,
        options: LocalOptions,
    ) -> Result<LocalVolume, HomeError> {
        let options = LocalOptions {
            segment_size_bytes: segment_bytes,
            first_segment_size_bytes: segment_bytes,
            segment_size_bytes_min: segment_bytes,
            ..options
        };
        let home = LocalHome::open(dir, env, options)?;
        let fences = match home.shared.read_name(FENCES)? {
            None => BTreeMap::new(),
            Some(bytes) => decode_fences(&bytes).ok_or_else(|| {
                let what = format!("read the fences in {}", home.dir().display());
                HomeError::io(what, std::io::ErrorKind::InvalidData.into())
            })?,
        };
        Ok(LocalVolume {
            home: Arc::new(home),
            segment_bytes,
            lanes: RwLock::default(),
            fences: LongMutex::new(fences),
            opening: LongMutex::new(()),
            naming: LongMutex::new(()),
            rewriting: LongRwLock::new(()),
            ordered: LongRwLock::new(()),
        })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        self.home.dir()
    }

    /// What it is like: appends come with their places, so a kernel's lock keeps nobody out.
    pub fn capabilities(&self) -> HomeCapabilities {
        let own = self.home.capabilities();
        HomeCapabilities {
            appends_in_flight_max: APPENDS_IN_FLIGHT_MAX,
            room_size_bytes_max: own.room_size_bytes_max.min(ROOM_BYTES_MAX),
            leased: true,
            ..own
        }
    }

    /// By what rule places follow from lengths.
    pub fn rollover(&self) -> Rollover {
        Rollover {
            appends_max: u64::MAX,
            size_bytes: self.segment_bytes,
        }
    }

    /// What people should know about how it writes.
    pub fn report(&self) -> Vec<(String, String)> {
        self.home.choice.report()
    }

    /// See [`LaneAppends::is_short_of_space`].
    pub fn is_short_of_space(&self) -> bool {
        self.home.is_short_of_space()
    }

    /// Bytes that there is room for.
    pub fn free_bytes(&self) -> Option<u64> {
        self.home.free_bytes()
    }

    /// Opens a lane for appending. Who had it open before, loses it.
    pub fn open_lane(&self, lane: LaneId, first_segment: u64) -> Result<(), NoRoom> {
        let misuse = |what| Err(NoRoom::Failed(HomeError::Misuse { lane, what }));
        let _alone = self.opening.lock();
        self.check_fence(lane, first_segment)?;
        let listed = self.home.list_segments(lane)?;
        if listed.iter().any(|info| info.segment >= first_segment) || first_segment > SEGMENT_MAX {
            return misuse("opened at a segment that is not fresh");
        }
        let before = self.lanes.write().remove(&lane);
        if let Some(before) = before {
            before.close(&self.home, &self.fenced(lane), |state| {
                state.replaced = true;
            });
            self.home.lanes.write().remove(&lane);
        } else if self.lanes.read().len() >= LANES_MAX {
            return misuse("opened beside too many others");
        }
        self.home.open_lane(lane, first_segment)?;
        // Held to the end: a fence that comes now finds the lane open. One that has come meanwhile keeps it closed; the
        // segment that was made stays, empty.
        let fences = self.fences.lock();
        let fenced = fences.get(&lane).copied();
        if fenced.is_some_and(|fenced| is_behind(fenced, first_segment)) {
            self.home.lanes.write().remove(&lane);
            return Err(NoRoom::Failed(self.fenced(lane)));
        }
        let opened = Arc::new(VolumeLane {
            files: self.home.lane(lane)?,
            state: Mutex::new(VolumeLaneState {
                fenced,
                ..VolumeLaneState::default()
            }),
            settled: Condvar::new(),
        });
        let going_on = (Arc::downgrade(&opened), Arc::downgrade(&self.home));
        let listener: RoomListener = Box::new(move || {
            if let (Some(lane), Some(home)) = (going_on.0.upgrade(), going_on.1.upgrade()) {
                lane.go_on(&home);
            }
        });
        self.home.set_room_listener(lane, listener);
        self.lanes.write().insert(lane, opened);
        Ok(())
    }

    fn check_fence(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let fenced = self.fences.lock().get(&lane).copied();
        match fenced.is_some_and(|fenced| is_behind(fenced, segment)) {
            true => Err(self.fenced(lane)),
            false => Ok(()),
        }
    }

    fn fenced(&self, lane: LaneId) -> HomeError {
        HomeError::Fenced(format!("lane {lane} of {}", self.home.dir().display()))
    }

    /// Appends at a place that the writer has chosen: the one behind its last, or the start of the next segment.
    pub fn append(&self, lane: LaneId, at: Position, block: Buffer, len: usize, done: Completion) {
        let open = self.lanes.read().get(&lane).cloned();
        let Some(open) = open else {
            let what = "the lane is not open";
            let fenced = self.check_fence(lane, at.segment);
            let error = fenced.err().unwrap_or(HomeError::Misuse { lane, what });
            return done(block, Err(error));
        };
        let mut state = open.state.lock();
        if !state.takes(at.segment) {
            drop(state);
            return done(block, Err(self.fenced(lane)));
        }
        state.waiting.push_back((at, block, len, done));
        drop(state);
        open.go_on(&self.home);
    }

    /// See [`LaneSegments::fence`].
    pub fn fence(&self, lane: LaneId, first_segment: u64) -> Result<(), HomeError> {
        let mut fences = self.fences.lock();
        let present = fences.get(&lane).copied();
        let is_closed = present.is_some_and(|fenced| is_behind(fenced, first_segment));
        if !is_closed {
            let mut next = fences.clone();
            // A fence of an earlier epoch than the present one says nothing new; one of the same begins earlier.
            next.insert(lane, first_segment);
            let path = self.home.dir().join(FENCES);
            self.home.shared.replace(&path, &encode_fences(&next))?;
            *fences = next;
        }
        let open = self.lanes.read().get(&lane).cloned();
        if let Some(open) = open {
            let fenced = fences.get(&lane).copied();
            open.close(&self.home, &self.fenced(lane), |state| {
                state.fenced = fenced;
            });
        }
        // Whoever begins later sees the fence.
        drop(fences);
        drop(self.ordered.write());
        Ok(())
    }

    /// Has a server later than this one fenced a lane? It fences the lanes of the server before it, from where they
    /// begin on.
    ///
    /// # Errors
    /// [`HomeError::Fenced`]: so it is.
    pub fn must_not_be_overtaken(&self, epoch: Epoch) -> Result<(), HomeError> {
        let fences = self.fences.lock();
        let closing = fences
            .iter()
            .find(|(_, fenced)| epoch_of(**fenced) >= u64::from(epoch.get()));
        match closing {
            Some((lane, _)) => Err(self.fenced(*lane)),
            None => Ok(()),
        }
    }

    /// While what comes back is kept, something may be done for the server of an epoch.
    fn for_server_of(&self, epoch: Epoch) -> Result<RwLockReadGuard<'_, ()>, HomeError> {
        let fences_wait = self.ordered.read();
        self.must_not_be_overtaken(epoch)?;
        Ok(fences_wait)
    }

    /// See [`LaneSegments::list_lanes`].
    pub fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.home.list_lanes()
    }

    /// See [`LaneSegments::list_segments`].
    pub fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.home.list_segments(lane)
    }

    /// See [`LaneSegments::read`].
    pub fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.home.read(lane, at, into)
    }

    /// See [`LaneSegments::rewrite`]: a segment that is missing is made.
    pub fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let _not_removed = self.rewriting.read();
        let open = self.lanes.read().get(&lane).cloned();
        if let Some(open) = open
            && open.state.lock().takes(at.segment)
            && at.segment > open.files.current_segment()
        {
            let what = "bytes in a segment that its writer has not come to";
            return Err(HomeError::Misuse { lane, what });
        }
        let end = at.offset.checked_add(len as u64);
        if end.is_none_or(|end| end > self.segment_bytes) {
            let what = "bytes beyond the segment";
            return Err(HomeError::Misuse { lane, what });
        }
        self.home
            .shared
            .make_missing_segment(lane, at.segment, end.unwrap_or_default())?;
        self.home.rewrite(lane, at, block, len)
    }

    /// The same for the server of an epoch, unless a later one has begun.
    pub fn rewrite_for(
        &self,
        epoch: Epoch,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        let _in_time = self.for_server_of(epoch)?;
        self.rewrite(lane, at, block, len)
    }

    /// See [`LaneSegments::seal`].
    pub fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.home.seal(lane, at)
    }

    /// See [`LaneSegments::trim`].
    pub fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        let _not_rewritten = self.rewriting.write();
        self.home.trim(lane, segment)
    }

    fn check_name(name: &str) -> Result<(), HomeError> {
        let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let fits = name.len() <= NAME_BYTES_MAX
            && name.starts_with(|c: char| c.is_ascii_lowercase())
            && name.chars().all(word);
        if fits && !RESERVED.contains(&name) {
            return Ok(());
        }
        Err(HomeError::Unsupported("named values of this name"))
    }

    /// See [`NamedValues::get`].
    pub fn get(&self, name: &str) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
        LocalVolume::check_name(name)?;
        let _alone = self.naming.lock();
        self.home.get(name)
    }

    fn check_value(bytes: &[u8]) -> Result<(), HomeError> {
        match bytes.len() > NAMED_VALUE_BYTES_MAX {
            true => Err(HomeError::Unsupported("named values of this size")),
            false => Ok(()),
        }
    }

    /// See [`NamedValues::put_if_absent`].
    pub fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<Tag, HomeError> {
        LocalVolume::check_name(name)?;
        LocalVolume::check_value(bytes)?;
        let _alone = self.naming.lock();
        self.home.put_if_absent(name, bytes)
    }

    /// See [`NamedValues::compare_and_swap`].
    pub fn compare_and_swap(
        &self,
        name: &str,
        expected: Tag,
        bytes: &[u8],
    ) -> Result<Tag, HomeError> {
        LocalVolume::check_name(name)?;
        LocalVolume::check_value(bytes)?;
        let _alone = self.naming.lock();
        // A state that was there before comes back only with the same bytes: nobody can tell the two apart.
        if tag_of(bytes) == expected {
            let same = self
                .home
                .get(name)?
                .is_some_and(|(there, _)| there == bytes);
            if !same {
                return Err(HomeError::Conflict(name.to_owned()));
            }
        }
        self.home.compare_and_swap(name, expected, bytes)
    }

    /// See [`SideSegments::begin_side_segment`].
    pub fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.home.begin_side_segment(lane, id)
    }

    /// See [`SideSegments::get_side_segment`].
    pub fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.home.get_side_segment(lane, id, offset, into)
    }

    /// See [`SideSegments::list_side_segments`].
    pub fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.home.list_side_segments(lane)
    }

    /// See [`SideSegments::remove_side_segment`].
    pub fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.home.remove_side_segment(lane, id)
    }

    /// See [`ImmutableObjects::put_object`].
    pub fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError> {
        self.home.put_object(id, bytes)
    }

    /// See [`ObjectReader::read_object`].
    pub fn read_object(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.home.read_object(id, offset, into)
    }

    /// See [`ImmutableObjects::list_objects`].
    pub fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError> {
        self.home.list_objects()
    }

    /// See [`ImmutableObjects::remove_object`].
    pub fn remove_object(&self, id: ObjectId) -> Result<(), HomeError> {
        self.home.remove_object(id)
    }

    /// See [`ObjectRepair::replace_object`](crate::ObjectRepair::replace_object).
    pub fn replace_object(
        &self,
        epoch: Epoch,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
    ) -> Result<(), HomeError> {
        let in_time = || self.for_server_of(epoch);
        self.home.shared.replace_object(id, seen, bytes, in_time)
    }

    /// See [`ObjectRepair::read_object_from_disk`](crate::ObjectRepair::read_object_from_disk).
    pub fn read_object_from_disk_at(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        let shared = &self.home.shared;
        shared.read_object_from_disk_at(id, offset, into)
    }

    /// Reads an object whole, from the disk and not from what the system has of it in memory.
    pub fn read_object_from_disk(&self, id: ObjectId) -> Result<Vec<u8>, HomeError> {
        self.home.shared.read_object_from_disk(id)
    }
}

impl VolumeLane {
    /// Claims places for what waits, as far as there are segments, and hands it to the disk.
    fn go_on(self: &Arc<Self>, home: &Arc<LocalHome>) {
        loop {
            let mut state = self.state.lock();
            let Some(&(at, _, _, _)) = state.waiting.front() else {
                return;
            };
            let len = state.waiting.front().map_or(0, |waiting| waiting.2);
            let mut claim = self.files.claim(at, len as u64);
            if let Ok(Claim::DiskFull) = claim {
                // There may be room again: one attempt that begins now says whether there is.
                let full = std::io::ErrorKind::StorageFull.into();
                claim = match std::mem::replace(&mut state.retries_full_disk, true) {
                    false => Ok(Claim::Later { prepare: true }),
                    true => Err(HomeError::io("make the next segment of a lane", full)),
                };
            }
            if !matches!(claim, Ok(Claim::Later { .. })) {
                state.retries_full_disk = false;
            }
            if let Ok(Claim::Later { prepare }) = claim {
                drop(state);
                if prepare {
                    home.start_preparing(&self.files);
                    if home.preparer.is_none() {
                        // Without threads it has been prepared by now.
                        continue;
                    }
                }
                return;
            }
            let Some((at, block, len, done)) = state.waiting.pop_front() else {
                return;
            };
            let prepare = match claim {
                Ok(Claim::Claimed { prepare }) => prepare,
                Ok(Claim::Later { .. } | Claim::DiskFull) => false,
                Err(error) => {
                    // What comes behind a place that is not there does not follow either.
                    drop(state);
                    done(block, Err(error));
                    continue;
                }
            };
            state.in_flight += 1;
            drop(state);
            if prepare && home.preparer.is_some() {
                home.start_preparing(&self.files);
            }
            let lane = Arc::clone(self);
            let settle: Completion = Box::new(move |block, result| {
                lane.settle();
                done(block, result);
            });
            let keep = Arc::clone(&home.shared) as Arc<dyn Send + Sync>;
            let append = Append {
                at,
                block,
                len,
                done: settle,
                keep,
            };
            self.files.append(&home.ways, append);
        }
    }

    fn settle(&self) {
        self.state.lock().in_flight -= 1;
        self.settled.notify_all();
    }

    /// Takes less from now on, as `change` says; returns when nothing is under way, and nothing waits that is not taken
    /// any more.
    fn close(&self, home: &LocalHome, why: &HomeError, change: impl FnOnce(&mut VolumeLaneState)) {
        let mut state = self.state.lock();
        change(&mut state);
        let waiting = std::mem::take(&mut state.waiting);
        let (kept, refused): (VecDeque<_>, VecDeque<_>) = waiting
            .into_iter()
            .partition(|(at, _, _, _)| state.takes(at.segment));
        state.waiting = kept;
        while state.in_flight > 0 {
            self.settled.wait(&mut state);
        }
        let is_shut = !state.takes(self.files.current_segment());
        drop(state);
        if is_shut {
            self.files.stop_preparing(why.clone());
            // Whoever makes a segment now has ended when this returns; whoever comes later sees that nobody wants it.
            drop(home.shared.making.lock());
        }
        for (_, block, _, done) in refused {
            done(block, Err(why.clone()));
        }
    }
}

/// Text: a line for each lane, and a checksum.
fn encode_fences(fences: &BTreeMap<LaneId, u64>) -> Vec<u8> {
    let mut text = FENCES_MAGIC.to_owned();
    for (lane, first_segment) in fences {
        text += &format!("{lane} {first_segment}\n");
    }
    text += &format!("crc {:08x}\n", crc32c::crc32c(text.as_bytes()));
    text.into_bytes()
}

/// `None`: it is damaged.
fn decode_fences(bytes: &[u8]) -> Option<BTreeMap<LaneId, u64>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let at = text.rfind("crc ")?;
    let (body, crc) = text.split_at_checked(at)?;
    if crc != format!("crc {:08x}\n", crc32c::crc32c(body.as_bytes())) {
        return None;
    }
    let lines = body.strip_prefix(FENCES_MAGIC)?.lines();
    let fence = |line: &str| {
        let (lane, first_segment) = line.split_once(' ')?;
        Some((LaneId(lane.parse().ok()?), first_segment.parse().ok()?))
    };
    lines.map(fence).collect()
}
