//! Side segments: numbered parts, and a last small object that says they are all there.
//!
//! Invariants:
//! - The last object is written after all parts, and removed before them: where it is, the side segment is whole.
//! - A part has one writer and one content, so writing it again does no harm.
//! - Something of the writer is on its way as long as it holds bytes that are not written: whoever waits for its
//!   backlog waits for something.
//! - Who waits for the end is told exactly once, whatever moment the home is closed at, and without the writer's lock
//!   held.
//!
//! What a server leaves that stops half way is listed like a whole one, so that the next recovery removes it; reading
//! it says that it is missing.

use super::io::{ObjectCore, closed, failed};
use super::names;
use super::read::{delete_all, get_at_least};
use crate::bucket::Outcome;
use crate::{HomeError, NoRoom, SideCompletion, SideWriter};
use bytes::Bytes;
use logstead_types::LaneId;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashSet, VecDeque};
use std::io;
use std::sync::Arc;
use tokio::runtime::Handle;

/// What is appended while a part is on its way becomes one part of up to this size.
const PART_BYTES_MAX: usize = crate::side_segments::SIDE_PART_BYTES;
/// Parts of one side segment on their way.
const PARTS_IN_FLIGHT_MAX: usize = 4;
/// Empty buffers kept for the writer.
const SPARES_MAX: usize = 2;

const MAGIC: &[u8; 8] = b"LGSTSIDE";
const VERSION: u16 = 1;
const HEADER_LEN: usize = 40;

/// The side segments that this home is writing, or removing after it gave them up.
#[derive(Default)]
pub(super) struct UnfinishedSides(Mutex<HashSet<(LaneId, u64)>>);

/// What the last object says: where each part ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SideIndex {
    ends: Vec<u64>,
}

impl SideIndex {
    fn encode(&self, lane: LaneId, id: u64, crc: u32) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_LEN + self.ends.len() * 8 + 4);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&lane.get().to_le_bytes());
        bytes.extend_from_slice(&(self.ends.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&id.to_le_bytes());
        bytes.extend_from_slice(&self.len().to_le_bytes());
        bytes.extend_from_slice(&crc.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        for end in &self.ends {
            bytes.extend_from_slice(&end.to_le_bytes());
        }
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8], lane: LaneId, id: u64) -> Option<SideIndex> {
        let (body, crc) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        let (header, ends) = body.split_at_checked(HEADER_LEN)?;
        let good = crc == crc32c::crc32c(body).to_le_bytes()
            && header.starts_with(MAGIC)
            && header[8..10] == VERSION.to_le_bytes()
            && header[10..12] == lane.get().to_le_bytes()
            && header[12..16] == ((ends.len() / 8) as u32).to_le_bytes()
            && header[16..24] == id.to_le_bytes()
            && ends.len().is_multiple_of(8);
        let (ends, _) = ends.as_chunks::<8>();
        let ends: Vec<u64> = ends.iter().map(|end| u64::from_le_bytes(*end)).collect();
        let index = SideIndex { ends };
        let good = good && index.ends.is_sorted() && header[24..32] == index.len().to_le_bytes();
        good.then_some(index)
    }

    fn len(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// The index of the side segment read last.
#[derive(Default)]
pub(super) struct SideIndexCache(Mutex<Option<(LaneId, u64, Arc<SideIndex>)>>);

impl SideIndexCache {
    pub(super) fn forget(&self) {
        *self.0.lock() = None;
    }
}

pub(super) async fn read(
    core: &ObjectCore,
    known: &SideIndexCache,
    lane: LaneId,
    id: u64,
    offset: u64,
    len: u64,
) -> Result<Vec<Bytes>, HomeError> {
    let missing = || HomeError::Missing(format!("side segment {id:016x} of lane {lane}"));
    let found = known.0.lock().clone();
    let index = match found {
        Some((of, number, index)) if (of, number) == (lane, id) => index,
        _ => {
            let name = names::side_complete(lane, id);
            let bytes = match core.ask(|| core.bucket.get(&name)).await {
                Ok((bytes, _)) => bytes,
                Err(error) if error.outcome == Outcome::Absent => return Err(missing()),
                Err(error) => return Err(failed(&error)),
            };
            let index = SideIndex::decode(&bytes, lane, id).ok_or_else(|| {
                let why = io::Error::new(io::ErrorKind::InvalidData, "its checksum is wrong");
                HomeError::io(format!("read {name}"), why)
            })?;
            let index = Arc::new(index);
            *known.0.lock() = Some((lane, id, Arc::clone(&index)));
            index
        }
    };
    let end = offset.saturating_add(len).min(index.len());
    let mut at = offset;
    let mut pieces = Vec::new();
    let mut part = index.ends.partition_point(|&end| end <= at);
    while at < end {
        let begins = part.checked_sub(1).map_or(0, |before| index.ends[before]);
        let upto = index.ends[part].min(end);
        let name = names::side_part(lane, id, part as u32);
        // The index says how long the part is.
        let part_of = (name.as_str(), at - begins, upto - at);
        match get_at_least(core, part_of, upto - at).await? {
            Some(bytes) => pieces.push(bytes),
            None => return Err(missing()),
        }
        at = upto;
        part += 1;
    }
    Ok(pieces)
}

/// The side segments of a lane, except those that this home is writing.
pub(super) async fn list(
    core: &ObjectCore,
    unfinished: &UnfinishedSides,
    lane: LaneId,
) -> Result<Vec<u64>, HomeError> {
    let directory = names::sides_dir(lane);
    let entries = core.ask(|| core.bucket.list(&directory)).await;
    let entries = entries.map_err(|error| failed(&error))?;
    let unfinished = unfinished.0.lock();
    let ids: BTreeSet<u64> = entries
        .iter()
        .filter_map(|entry| {
            let (id, _) = entry.name.strip_prefix(&directory)?.split_once('/')?;
            u64::from_str_radix(id, 16).ok()
        })
        .filter(|&id| !unfinished.contains(&(lane, id)))
        .collect();
    Ok(ids.into_iter().collect())
}

pub(super) async fn remove(core: &Arc<ObjectCore>, lane: LaneId, id: u64) -> Result<(), HomeError> {
    let directory = names::side_dir(lane, id);
    let entries = core.ask(|| core.bucket.list(&directory)).await;
    let entries = entries.map_err(|error| failed(&error))?;
    let last = names::side_complete(lane, id);
    if entries.iter().any(|entry| entry.name == last) {
        delete_all(core, vec![last]).await?;
    }
    let parts = entries.into_iter().map(|entry| entry.name);
    delete_all(core, parts.collect()).await
}

/// Removes a side segment that was whole, in the background; it is not listed any more.
pub(super) fn give_up(
    core: &Arc<ObjectCore>,
    handle: &Handle,
    unfinished: &Arc<UnfinishedSides>,
    lane: LaneId,
    id: u64,
) {
    unfinished.0.lock().insert((lane, id));
    let (core, unfinished) = (Arc::clone(core), Arc::clone(unfinished));
    handle.spawn(async move { clear(&core, &unfinished, lane, id).await });
}

/// Removes what was written.
async fn clear(core: &Arc<ObjectCore>, unfinished: &UnfinishedSides, lane: LaneId, id: u64) {
    // What cannot be removed now is listed from now on, and goes with the next recovery.
    let _left_for_later = remove(core, lane, id).await;
    unfinished.0.lock().remove(&(lane, id));
}

/// A side segment being written.
pub(super) struct ObjectSide {
    shared: Arc<Shared>,
    finished: bool,
}

struct Shared {
    core: Arc<ObjectCore>,
    handle: Handle,
    unfinished: Arc<UnfinishedSides>,
    lane: LaneId,
    id: u64,
    state: Mutex<ObjectSideState>,
}

#[derive(Default)]
struct ObjectSideState {
    /// Appended and not on its way.
    waiting: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    in_flight: usize,
    in_flight_bytes: usize,
    ends: Vec<u64>,
    crc: u32,
    spares: Vec<Vec<u8>>,
    failed: Option<HomeError>,
    given_up: bool,
    /// Set by `finish`, taken when nothing is on its way any more. Parts that a home drops when it is closed never come
    /// back: then this goes with the last of them, and tells that.
    done: Option<CompletionGuard>,
}

impl ObjectSideState {
    /// What goes out next, and its number.
    fn next_part(&mut self) -> Option<(u32, Vec<u8>)> {
        let enough = self.in_flight == 0 || self.waiting_bytes >= PART_BYTES_MAX / 4;
        if self.in_flight >= PARTS_IN_FLIGHT_MAX
            || !enough
            || self.given_up
            || self.failed.is_some()
        {
            return None;
        }
        let mut part = self.waiting.pop_front()?;
        while self
            .waiting
            .front()
            .is_some_and(|piece| part.len() + piece.len() <= PART_BYTES_MAX)
            && let Some(mut piece) = self.waiting.pop_front()
        {
            // Small pieces are put together: a request costs more than a copy.
            part.extend_from_slice(&piece);
            piece.clear();
            self.keep(piece);
        }
        self.waiting_bytes -= part.len();
        self.in_flight += 1;
        self.in_flight_bytes += part.len();
        let end = self.ends.last().copied().unwrap_or(0) + part.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, &part);
        self.ends.push(end);
        Some((self.ends.len() as u32 - 1, part))
    }

    fn keep(&mut self, spare: Vec<u8>) {
        if self.spares.len() < SPARES_MAX {
            self.spares.push(spare);
        }
    }
}

impl ObjectSide {
    pub(super) fn new(
        core: &Arc<ObjectCore>,
        handle: &Handle,
        unfinished: &Arc<UnfinishedSides>,
        lane: LaneId,
        id: u64,
    ) -> ObjectSide {
        unfinished.0.lock().insert((lane, id));
        let shared = Shared {
            core: Arc::clone(core),
            handle: handle.clone(),
            unfinished: Arc::clone(unfinished),
            lane,
            id,
            state: Mutex::new(ObjectSideState::default()),
        };
        ObjectSide {
            shared: Arc::new(shared),
            finished: false,
        }
    }
}

/// What is to be begun once the writer's lock is free: a home that is closed drops it at once, and who is told of that
/// may do anything.
#[derive(Default)]
struct Work {
    parts: Vec<(u32, Vec<u8>)>,
    end: Option<End>,
}

/// What comes after the last part.
enum End {
    /// The last object, or why there is none.
    Complete {
        index: Vec<u8>,
        result: Result<(), HomeError>,
        done: CompletionGuard,
    },
    /// All is removed.
    Clear,
}

impl Shared {
    /// What may be sent now.
    fn next_work(&self, state: &mut ObjectSideState) -> Work {
        let mut work = Work::default();
        while let Some(part) = state.next_part() {
            work.parts.push(part);
        }
        work.end = self.end(state);
        work
    }

    fn begin(self: &Arc<Self>, work: Work) {
        for (number, part) in work.parts {
            let shared = Arc::clone(self);
            self.handle
                .spawn(async move { shared.write(number, part).await });
        }
        let shared = Arc::clone(self);
        match work.end {
            None => {}
            Some(End::Clear) => drop(self.handle.spawn(async move { shared.clear().await })),
            Some(End::Complete {
                index,
                result,
                done,
            }) => {
                self.handle
                    .spawn(async move { shared.complete(index, result, done).await });
            }
        }
    }

    async fn write(self: Arc<Self>, number: u32, part: Vec<u8>) {
        let len = part.len();
        let name = names::side_part(self.lane, self.id, number);
        let part = Bytes::from(part);
        let core = &self.core;
        let written = core.ask(|| core.bucket.put(&name, part.clone())).await;
        let work = {
            let state = &mut *self.state.lock();
            state.in_flight -= 1;
            state.in_flight_bytes -= len;
            if part.is_unique() {
                let mut spare = Vec::from(part);
                spare.clear();
                state.keep(spare);
            }
            if let Err(error) = written {
                core.space.note(&error);
                state.failed.get_or_insert(failed(&error));
                state.waiting.clear();
                state.waiting_bytes = 0;
            }
            self.next_work(state)
        };
        self.begin(work);
    }

    /// When nothing is on its way and nothing more comes: the last object, or the removal of all.
    fn end(&self, state: &mut ObjectSideState) -> Option<End> {
        if state.in_flight > 0 {
            return None;
        }
        if state.given_up {
            return Some(End::Clear);
        }
        if !state.waiting.is_empty() {
            return None;
        }
        let done = state.done.take()?;
        let ends = std::mem::take(&mut state.ends);
        Some(End::Complete {
            index: SideIndex { ends }.encode(self.lane, self.id, state.crc),
            result: state.failed.clone().map_or(Ok(()), Err),
            done,
        })
    }

    async fn complete(
        &self,
        index: Vec<u8>,
        mut result: Result<(), HomeError>,
        done: CompletionGuard,
    ) {
        let core = &self.core;
        if result.is_ok() {
            let name = names::side_complete(self.lane, self.id);
            let index = Bytes::from(index);
            let written = core.ask(|| core.bucket.put(&name, index.clone())).await;
            result = written.map_err(|error| {
                core.space.note(&error);
                failed(&error)
            });
        }
        if result.is_err() {
            self.clear().await;
        } else {
            self.unfinished.0.lock().remove(&(self.lane, self.id));
        }
        done.complete(result.map_err(NoRoom::from_home));
    }

    async fn clear(&self) {
        clear(&self.core, &self.unfinished, self.lane, self.id).await;
    }
}

/// A completion that is called also when the home is closed before.
struct CompletionGuard(Option<SideCompletion>);

impl CompletionGuard {
    fn complete(mut self, result: Result<(), NoRoom>) {
        if let Some(done) = self.0.take() {
            done(result);
        }
    }
}

impl Drop for CompletionGuard {
    fn drop(&mut self) {
        if let Some(done) = self.0.take() {
            done(Err(NoRoom::Failed(closed())));
        }
    }
}

impl SideWriter for ObjectSide {
    fn append(&mut self, piece: Vec<u8>) {
        if piece.is_empty() {
            return;
        }
        let work = {
            let state = &mut *self.shared.state.lock();
            if state.failed.is_some() {
                return;
            }
            state.waiting_bytes += piece.len();
            state.waiting.push_back(piece);
            self.shared.next_work(state)
        };
        self.shared.begin(work);
    }

    fn backlog_bytes(&self) -> usize {
        let state = self.shared.state.lock();
        state.waiting_bytes + state.in_flight_bytes
    }

    fn spare(&mut self) -> Option<Vec<u8>> {
        self.shared.state.lock().spares.pop()
    }

    fn finish(mut self: Box<Self>, done: SideCompletion) {
        self.finished = true;
        let work = {
            let state = &mut *self.shared.state.lock();
            state.done = Some(CompletionGuard(Some(done)));
            self.shared.next_work(state)
        };
        self.shared.begin(work);
    }
}

impl Drop for ObjectSide {
    fn drop(&mut self) {
        if self.finished {
            return;
        }
        let end = {
            let state = &mut *self.shared.state.lock();
            state.given_up = true;
            state.waiting.clear();
            state.waiting_bytes = 0;
            self.shared.end(state)
        };
        let parts = Vec::new();
        self.shared.begin(Work { parts, end });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The format on storage: a change here is a change of docs/format.md and of its version.
    #[test]
    fn the_last_object_is_what_the_format_says() {
        let (lane, id) = (LaneId(0x0102), 0x0000_0007_0000_0001);
        let index = SideIndex {
            ends: vec![5, 0x0102],
        };
        let bytes = index.encode(lane, id, 0xaabb_ccdd);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let expected = concat!(
            "4c475354",
            "53494445",
            "0100",
            "0201",
            "02000000",
            "0100000007000000",
            "0201000000000000",
            "ddccbbaa",
            "00000000",
            "0500000000000000",
            "0201000000000000"
        );
        assert_eq!(hex[..expected.len()], *expected);
        let crc = crc32c::crc32c(&bytes[..56]).to_le_bytes();
        assert_eq!(bytes[56..], crc);
        assert_eq!(SideIndex::decode(&bytes, lane, id), Some(index));
        assert_eq!(
            SideIndex::decode(&bytes, LaneId(1), id),
            None,
            "another lane's"
        );
        assert_eq!(SideIndex::decode(&bytes, lane, 1), None, "another one's");
        for len in 0..bytes.len() {
            assert_eq!(
                SideIndex::decode(&bytes[..len], lane, id),
                None,
                "cut at {len}"
            );
        }
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(
                SideIndex::decode(&damaged, lane, id),
                None,
                "damaged at {at}"
            );
        }
    }
}
