//! A reader beside a writer: something happens before each of the reader's requests.

use super::{Server, row_of};
use logstead_home::{
    Buffer, Copies, Epoch, HomeError, LaneSegments, LogHome, Position, SegmentInfo, SideSegments,
    SideWriter,
};
use logstead_types::{Csn, LaneId};
use logstead_wal::{Cursor, EntryDependencies, FlushMode};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The home as the reader sees it. What is told of each request, counted from 0, happens before it.
pub(crate) struct Beside {
    inner: LogHome,
    before: Box<dyn Fn(usize) + Send + Sync>,
    requests: AtomicUsize,
    /// There are two copies, and the second one never gets the block at this place.
    lacks: Option<(LaneId, Position)>,
}

impl Beside {
    pub(crate) fn new(
        inner: &LogHome,
        before: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<Beside> {
        Beside::lacking(inner, None, before)
    }

    /// There are two copies of everything, but for one block of 4 KiB.
    pub(crate) fn lacking(
        inner: &LogHome,
        lacks: Option<(LaneId, Position)>,
        before: impl Fn(usize) + Send + Sync + 'static,
    ) -> Arc<Beside> {
        Arc::new(Beside {
            inner: inner.clone(),
            before: Box::new(before),
            requests: AtomicUsize::new(0),
            lacks,
        })
    }

    /// The whole home.
    pub(crate) fn home(self: &Arc<Self>) -> LogHome {
        let has_copies = self.lacks.is_some() || self.inner.copies.is_some();
        let copies = Arc::clone(self) as Arc<dyn Copies>;
        LogHome {
            segments: Arc::clone(self) as _,
            sides: Arc::clone(self) as _,
            copies: has_copies.then_some(copies),
            ..self.inner.clone()
        }
    }

    /// How often it was asked for segments or bytes of them.
    pub(crate) fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }

    fn asked(&self) {
        (self.before)(self.requests.fetch_add(1, Ordering::SeqCst));
    }
}

impl Copies for Beside {
    fn count(&self) -> usize {
        self.inner.copy_count() + usize::from(self.lacks.is_some())
    }

    fn has_copy(&self, copy: usize) -> bool {
        copy < self.count()
    }

    fn read_copy(
        &self,
        copy: usize,
        lane: LaneId,
        at: Position,
        into: &mut Buffer,
    ) -> Result<usize, HomeError> {
        self.asked();
        let (of, hole) = match self.lacks {
            None => return self.inner.read_copy(copy, lane, at, into),
            Some(lacks) => lacks,
        };
        let count = self.inner.segments.read(lane, at, into)?;
        if copy > 0 && (lane, at.segment) == (of, hole.segment) {
            let start = hole.offset.saturating_sub(at.offset).min(count as u64) as usize;
            let end = (hole.offset + 4096)
                .saturating_sub(at.offset)
                .min(count as u64) as usize;
            into.as_mut_slice()[start..end].fill(0);
        }
        Ok(count)
    }

    fn copies_behind(&self) -> Vec<usize> {
        Vec::new()
    }

    fn rewrite_copy(
        &self,
        _copy: usize,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.inner.segments.rewrite(lane, at, block, len)
    }

    fn copies_completed(&self, _epoch: Epoch) -> Result<(), HomeError> {
        Ok(())
    }

    fn get_side_segment_copy(
        &self,
        copy: usize,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.asked();
        match self.lacks {
            // Both have the same.
            Some(_) => self.inner.sides.get_side_segment(lane, id, offset, into),
            None => self
                .inner
                .get_side_segment_copy(copy, lane, id, offset, into),
        }
    }

    fn replace_side_segment_copy(
        &self,
        _: usize,
        _: usize,
        _: LaneId,
        _: u64,
    ) -> Result<(), HomeError> {
        Err(HomeError::Unsupported("copies of side segments"))
    }
}

impl LaneSegments for Beside {
    fn fence(&self, lane: LaneId, first_segment: u64, by: &str) -> Result<(), HomeError> {
        self.inner.segments.fence(lane, first_segment, by)
    }

    fn list_lanes(&self) -> Result<Vec<LaneId>, HomeError> {
        self.inner.segments.list_lanes()
    }

    fn list_segments(&self, lane: LaneId) -> Result<Vec<SegmentInfo>, HomeError> {
        self.asked();
        self.inner.segments.list_segments(lane)
    }

    fn read(&self, lane: LaneId, at: Position, into: &mut Buffer) -> Result<usize, HomeError> {
        self.asked();
        self.inner.segments.read(lane, at, into)
    }

    fn rewrite(
        &self,
        lane: LaneId,
        at: Position,
        block: &Buffer,
        len: usize,
    ) -> Result<(), HomeError> {
        self.inner.segments.rewrite(lane, at, block, len)
    }

    fn seal(&self, lane: LaneId, at: Position) -> Result<(), HomeError> {
        self.inner.segments.seal(lane, at)
    }

    fn trim(&self, lane: LaneId, segment: u64) -> Result<(), HomeError> {
        self.inner.segments.trim(lane, segment)
    }
}

impl SideSegments for Beside {
    fn begin_side_segment(&self, lane: LaneId, id: u64) -> Box<dyn SideWriter> {
        self.inner.sides.begin_side_segment(lane, id)
    }

    fn get_side_segment(
        &self,
        lane: LaneId,
        id: u64,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError> {
        self.asked();
        self.inner.sides.get_side_segment(lane, id, offset, into)
    }

    fn list_side_segments(&self, lane: LaneId) -> Result<Vec<u64>, HomeError> {
        self.inner.sides.list_side_segments(lane)
    }

    fn remove_side_segment(&self, lane: LaneId, id: u64) -> Result<(), HomeError> {
        self.inner.sides.remove_side_segment(lane, id)
    }

    fn give_up_side_segment(&self, lane: LaneId, id: u64) {
        self.inner.sides.give_up_side_segment(lane, id);
    }
}

/// A transaction that was pushed.
struct Tx {
    lane: usize,
    end: Cursor,
    /// Whom it overwrote.
    over: Vec<u64>,
    floor: u64,
}

/// Transactions over a few keys, as the commit path runs them: an entry names the predecessors that are not Committed
/// when it is pushed, and no others.
pub(crate) struct Work {
    pub(crate) server: Server,
    /// By key, who wrote it last.
    keys: [u64; KEYS],
    next: u64,
    txs: BTreeMap<u64, Tx>,
    /// What clients have been told of.
    pub(crate) committed: BTreeSet<u64>,
}

const KEYS: usize = 7;

impl Work {
    pub(crate) fn new(server: Server) -> Work {
        Work {
            next: server.log.next_csn.get(),
            server,
            keys: [0; KEYS],
            txs: BTreeMap::new(),
            committed: BTreeSet::new(),
        }
    }

    /// A transaction overwrites these keys, and waits in a lane's buffer. With `by_floor` it names its last
    /// predecessor's CSN as its floor (mode `dsn`). False: there was no room.
    pub(crate) fn write(&mut self, lane: usize, keys: &[usize], by_floor: bool) -> bool {
        self.settle();
        let (csn, lane_of) = (self.next, &self.server.log.lanes[lane]);
        let records = row_of(Csn(csn));
        let Ok(room) = lane_of.room(records.len()) else {
            return false;
        };
        let over: BTreeSet<u64> = keys.iter().map(|&key| self.keys[key]).collect();
        let over: Vec<u64> = over.into_iter().filter(|&csn| csn > 0).collect();
        let named = over.iter().filter(|csn| !self.committed.contains(csn));
        let named = named.map(|&csn| Csn(csn));
        let deps = match by_floor {
            true => EntryDependencies::floor(named.max().unwrap_or(Csn(0))),
            false => EntryDependencies {
                floor: Csn(0),
                list: named.collect(),
            },
        };
        let pushed = lane_of.push(room, Csn(csn), 0, &deps, &records);
        let tx = Tx {
            lane,
            end: pushed.end,
            over,
            floor: deps.floor.get(),
        };
        self.txs.insert(csn, tx);
        let mut pushed = self.server.pushed.lock().unwrap();
        pushed.insert(csn);
        drop(pushed);
        for &key in keys {
            self.keys[key] = csn;
        }
        self.next += 1;
        true
    }

    /// Sends what a lane has buffered on its way.
    pub(crate) fn send(&mut self, lane: usize) {
        self.server.log.lanes[lane].flush(FlushMode::Handoff);
    }

    /// Writes, and makes it durable at once, at a home that completes appends at once.
    pub(crate) fn commit(&mut self, lane: usize, keys: &[usize]) {
        assert!(self.write(lane, keys, false));
        self.send(lane);
        self.settle();
        assert!(self.committed.contains(&(self.next - 1)));
    }

    /// A lane takes along what another one has buffered.
    pub(crate) fn steal(&mut self, thief: usize, victim: usize) -> usize {
        let lanes = &self.server.log.lanes;
        lanes[thief].steal(&lanes[victim], usize::MAX)
    }

    /// Commits whatever is hardened, with all it hangs on: whom it overwrote, and everything up to its floor. Those who
    /// overwrote come after those who were.
    pub(crate) fn settle(&mut self) {
        self.server.tell_horizon();
        let lanes = &self.server.log.lanes;
        let mut horizon = None;
        for (csn, tx) in &self.txs {
            let is_hardened = lanes[tx.lane].hardened() >= tx.end;
            if !is_hardened {
                horizon.get_or_insert(*csn);
            }
            let is_committed = |over: &u64| self.committed.contains(over);
            if is_hardened
                && tx.over.iter().all(is_committed)
                && horizon.is_none_or(|horizon| tx.floor < horizon)
            {
                self.committed.insert(*csn);
            }
        }
    }

    /// Is this what a crash could have left? Whoever is there, all it overwrote is there, and nobody is there who never
    /// was.
    pub(crate) fn judge(&self, survivors: &[u64], before: &BTreeSet<u64>) -> Result<(), String> {
        let there: BTreeSet<u64> = survivors.iter().copied().collect();
        if let Some(lost) = before.difference(&there).next() {
            return Err(format!("{lost} was acknowledged before, and is lost"));
        }
        for csn in &there {
            let Some(tx) = self.txs.get(csn) else {
                return Err(format!("{csn} never was"));
            };
            if let Some(over) = tx.over.iter().find(|over| !there.contains(over)) {
                return Err(format!("{csn} overwrote {over}, which is not there"));
            }
        }
        Ok(())
    }
}
