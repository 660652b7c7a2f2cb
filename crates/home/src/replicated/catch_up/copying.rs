//! Copies to a child what it lacks, and removes what nobody else has any more.
//!
//! Bytes go in pieces, one after the other, behind what is asked of the children for who waits
//! ([`segment_copy`](crate::segment_copy)).
//!
//! Does not: decide from when on the child is given what is new.

use super::super::child::{Attachment, Removable, no_answer};
use super::super::objects::{ReadFrom, is_unanswered};
use super::super::side::is_whole_side;
use super::super::{ChildCall, Inner};
use super::of_child;
use super::orders::{Lacking, PeerFetching};
use crate::segment_copy::{CopyEnds, SEGMENT_PIECE_BYTES, SegmentToCopy, copy_segment};
use crate::{Buffer, CopyItem, HomeError, LogHome, ObjectId, ObjectInfo, Position, SeenCopy};
use logstead_types::LaneId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

/// How often objects that come up meanwhile are looked for.
const PASSES_MAX: usize = 8;

/// What is there.
#[derive(Clone, Default)]
pub(super) struct Inventory {
    segments: BTreeMap<(LaneId, u64), u64>,
    sides: BTreeSet<(LaneId, u64)>,
    objects: BTreeMap<ObjectId, u64>,
}

impl Inventory {
    /// A lane's segments of a range.
    pub(super) fn segments_of(&self, lane: LaneId, range: RangeInclusive<u64>) -> Vec<u64> {
        let (first, last) = range.into_inner();
        let found = self.segments.range((lane, first)..=(lane, last));
        found.map(|(&(_, segment), _)| segment).collect()
    }

    /// Puts what several have together.
    fn add(&mut self, other: Inventory) {
        for (segment, size) in other.segments {
            let longest = self.segments.entry(segment).or_default();
            *longest = size.max(*longest);
        }
        self.sides.extend(other.sides);
        for (object, size) in other.objects {
            let longest = self.objects.entry(object).or_default();
            *longest = size.max(*longest);
        }
    }
}

/// A segment to be copied.
struct Segment {
    lane: LaneId,
    segment: u64,
    size: u64,
    /// Children that have all of it.
    sources: Vec<usize>,
    /// What the child has of it is durable there.
    is_sure: bool,
}

impl Segment {
    fn lacking(&self) -> Lacking {
        Lacking {
            item: CopyItem::Segment {
                lane: self.lane,
                segment: self.segment,
                size_bytes: self.size,
                is_sure: self.is_sure,
            },
            sources: self.sources.clone(),
            size_bytes: self.size,
        }
    }
}

impl Inner {
    /// What a child has.
    pub(super) fn contents_of(
        &self,
        child: usize,
        home: &Attachment,
    ) -> Result<Inventory, HomeError> {
        let mut found = Inventory::default();
        // One request after the other, each with the time that one may take.
        for lane in self.ask_bulk_of(child, home, 0, |home| home.segments.list_lanes())? {
            let list = move |home: &LogHome| home.segments.list_segments(lane);
            for info in self.ask_bulk_of(child, home, 0, list)? {
                found.segments.insert((lane, info.segment), info.size_bytes);
            }
            let list = move |home: &LogHome| home.sides.list_side_segments(lane);
            let sides = self.ask_bulk_of(child, home, 0, list)?;
            found.sides.extend(sides.into_iter().map(|id| (lane, id)));
        }
        for info in self.ask_bulk_of(child, home, 0, |home| home.objects.list_objects())? {
            found.objects.insert(info.id, info.size_bytes);
        }
        Ok(found)
    }

    /// What the children have that are complete: all of them, because one may be behind the others.
    fn contents_of_sources(&self) -> Result<Inventory, HomeError> {
        let mut all = Inventory::default();
        let mut answered = false;
        for child in self.sources() {
            let Some(home) = self.up(child) else { continue };
            all.add(self.contents_of(child, &home)?);
            answered = true;
        }
        match answered {
            true => Ok(all),
            false => Err(no_answer("listing what it lacks")),
        }
    }

    /// Everything from before the child's cut. Of `mended` objects it is given better copies.
    pub(super) fn copy_what_it_lacks(
        &self,
        child: usize,
        home: &Attachment,
        had: Inventory,
        mended: &[ObjectId],
    ) -> Result<(), HomeError> {
        let mut copied = had;
        let mut fetching = PeerFetching::begin(self, child, home);
        self.copy_segments(&mut fetching, (child, home), &mut copied)?;
        self.copy_sides(&mut fetching, (child, home), &mut copied)?;
        self.mend_objects(child, home, mended)?;
        self.copy_objects(&mut fetching, (child, home), &mut copied)?;
        let (by, url) = (&fetching.copied, self.children[child].url());
        tracing::info!(
            "log: {url} has {} segments, side segments and objects ({} bytes) from its peers, and {} ({} bytes) through this server",
            by.peers,
            by.peers_bytes,
            by.server,
            by.server_bytes
        );
        drop(fetching);
        self.remove_what_is_gone(child, home, &copied)
    }

    fn copy_segments(
        &self,
        fetching: &mut PeerFetching<'_>,
        (child, home): (usize, &Attachment),
        copied: &mut Inventory,
    ) -> Result<(), HomeError> {
        let (wanted, there) = {
            // A lane that is opened meanwhile is not taken for one of before.
            let _no_lane_is_opened = self.opening.lock();
            let wanted = self.contents_of_sources()?;
            (
                self.segments_before_cut(child, wanted),
                self.contents_of(child, home)?,
            )
        };
        let to_copy: u64 = wanted.iter().map(|segment| segment.size).sum();
        self.children[child].note_copied(0, to_copy);
        let url = self.children[child].url();
        tracing::info!("log: comparing {to_copy} bytes of lanes with {url}, which comes back");
        let lacking: Vec<Lacking> = wanted.iter().map(Segment::lacking).collect();
        for segment in &wanted {
            let key = (segment.lane, segment.segment);
            copied.segments.insert(key, segment.size);
        }
        for index in fetching.fetch(&lacking)? {
            let segment = &wanted[index];
            let key = (segment.lane, segment.segment);
            let there = match fetching.is_begun() {
                // Some of it may have come from peers.
                true => u64::MAX,
                false => there.segments.get(&key).copied().unwrap_or(0),
            };
            self.copy_segment(child, home, segment, there)?;
            fetching.note_by_server(segment.size);
        }
        Ok(())
    }

    fn segments_before_cut(&self, child: usize, wanted: Inventory) -> Vec<Segment> {
        let (sources, epoch) = (self.sources(), self.epoch());
        let mut found = Vec::new();
        for ((lane, segment), size) in wanted.segments {
            // Of a server that has taken over.
            if segment >> 32 > epoch {
                continue;
            }
            let mut sources = sources.clone();
            // What a slot's lanes say of what was sure is about the home that was in it before.
            let is_known = !self.changes.is_candidate(child);
            let mut is_sure = is_known && self.children[child].was_completed();
            if let Some(open) = self.lane(lane) {
                let state = open.state.lock();
                if segment >= state.cut_segment(child) {
                    continue;
                }
                sources.retain(|&at| state.is_settled_before_cut(child, at));
                if segment >> 32 == state.segment() >> 32 {
                    is_sure = is_known && state.is_sure_of(child, segment);
                }
            }
            found.push(Segment {
                lane,
                segment,
                size,
                sources,
                is_sure,
            });
        }
        found
    }

    fn copy_segment(
        &self,
        child: usize,
        home: &Attachment,
        segment: &Segment,
        there: u64,
    ) -> Result<(), HomeError> {
        let to_copy = SegmentToCopy {
            lane: segment.lane,
            segment: segment.segment,
            size_bytes: segment.size,
            own_bytes: there,
            is_sure: segment.is_sure,
            alignment: self.capabilities.block_alignment,
        };
        let ends = ThroughServer {
            inner: self,
            child,
            home,
            segment,
        };
        copy_segment(&to_copy, &ends)
    }

    /// Asks one of those that have it, whoever answers: who that was, and what.
    fn read_of_source<T: Send + 'static>(
        &self,
        sources: &[usize],
        read: impl Fn(&LogHome) -> Result<T, HomeError> + Clone + Send + 'static,
    ) -> Result<(usize, T), HomeError> {
        let mut failed = None;
        for &source in sources {
            match self.ask_bulk(source, SEGMENT_PIECE_BYTES, read.clone()) {
                Ok(value) => return Ok((source, value)),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| no_answer("reading what it lacks")))
    }

    /// The epoch of this life, if it has lanes; else the newest before.
    pub(in crate::replicated) fn epoch(&self) -> u64 {
        let lanes = self.lanes.read();
        let begun = lanes.values().map(|lane| lane.state.lock().segment() >> 32);
        let before = self.settled_epoch.load(Ordering::SeqCst);
        begun.max().unwrap_or(0).max(before)
    }

    /// Side segments that are whole elsewhere. Those that began after the cut are being written there, and those of
    /// later epochs are another server's, which may be writing them there.
    fn copy_sides(
        &self,
        fetching: &mut PeerFetching<'_>,
        (child, home): (usize, &Attachment),
        copied: &mut Inventory,
    ) -> Result<(), HomeError> {
        let wanted = self.contents_of_sources()?.sides;
        let epoch = self.epoch();
        let mut lacking = Vec::new();
        for (lane, id) in wanted {
            let is_new = |child: usize| {
                let since_cut = self.children[child].since_cut.lock();
                since_cut.sides.contains(&(lane, id))
            };
            if id >> 32 > epoch || is_new(child) {
                continue;
            }
            let is_whole = move |home: &LogHome| is_whole_side(home, lane, id);
            if self.ask_bulk_of(child, home, 0, is_whole)? {
                continue;
            }
            let mut holders = Vec::new();
            for source in self.sources() {
                if self.ask_bulk(source, 0, is_whole)? {
                    holders.push(source);
                }
            }
            if holders.is_empty() {
                // It was never finished, or has been removed since.
                continue;
            }
            copied.sides.insert((lane, id));
            lacking.push(Lacking {
                item: CopyItem::Side { lane, id },
                sources: holders,
                size_bytes: 0,
            });
        }
        for index in fetching.fetch(&lacking)? {
            let Lacking { item, sources, .. } = &lacking[index];
            let CopyItem::Side { lane, id } = *item else {
                continue;
            };
            let goes_on = || self.must_catch_up(child, home);
            self.copy_side(sources, (child, home), (lane, id), &goes_on)?;
            fetching.note_by_server(0);
            self.must_catch_up(child, home)?;
        }
        Ok(())
    }

    /// Objects of which others have better copies than this member, which is up. Objects never change, so a member that
    /// comes back is not asked for the contents of those that it has; here it is. `goes_on`: somebody still wants to
    /// know.
    pub(in crate::replicated) fn objects_to_mend(
        &self,
        child: usize,
        generation: u64,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<ObjectId>, HomeError> {
        let home = self.up(child);
        let home = home.filter(|home| home.generation == generation);
        let gone = || no_answer("looking for damaged objects");
        let home = home.ok_or_else(gone)?;
        let there = self.ask_bulk_of(child, &home, 0, |home| home.objects.list_objects())?;
        let mut sizes = self.contents_of_sources()?.objects;
        let url = self.children[child].url();
        tracing::info!("log: looking at {} objects of {url}", there.len());
        let mut found = Vec::new();
        for info in there {
            if !goes_on() {
                return Err(gone());
            }
            // What nobody lists has come meanwhile.
            let longest = sizes.remove(&info.id).unwrap_or_default();
            let at = (info.id, longest.max(info.size_bytes));
            if self.better_than(child, &home, at)?.is_some() {
                tracing::warn!(
                    "log: object {} in {url} is damaged: it is to be copied again",
                    info.id
                );
                found.push(info.id);
            }
        }
        Ok(found)
    }

    /// A better copy of an object than a child has, and what was seen of that: nothing if there is none, or if the
    /// child has no copy any more.
    fn better_than(
        &self,
        child: usize,
        home: &Attachment,
        at: (ObjectId, u64),
    ) -> Result<Option<(SeenCopy, Vec<u8>)>, HomeError> {
        let own = match self.read_whole_object_of(child, home, at.0, ReadFrom::Disk) {
            Ok(own) => Some(own),
            // It is removed everywhere, or mended and not told: then it is copied with what the child lacks.
            Err(HomeError::Missing(_)) => return Ok(None),
            Err(error) if is_unanswered(&error) => return Err(error),
            // What cannot be read is damaged as well.
            Err(_) => None,
        };
        let better = self.better_copy(own.as_deref(), &self.others(child), at)?;
        Ok(better.map(|better| (SeenCopy::of(own.as_deref()), better)))
    }

    /// Who has everything but for this one.
    fn others(&self, child: usize) -> Vec<usize> {
        let mut others = self.sources();
        others.retain(|other| *other != child);
        // Several that are copied to do not all begin with the same one.
        let first = child % others.len().max(1);
        others.rotate_left(first);
        others
    }

    /// Gives a child better copies of objects, where others have such.
    fn mend_objects(
        &self,
        child: usize,
        home: &Attachment,
        mended: &[ObjectId],
    ) -> Result<(), HomeError> {
        if mended.is_empty() {
            return Ok(());
        }
        let sizes = self.contents_of_sources()?.objects;
        for &id in mended {
            self.must_catch_up(child, home)?;
            let at = (id, sizes.get(&id).copied().unwrap_or_default());
            let Some((seen, better)) = self.better_than(child, home, at)? else {
                continue;
            };
            self.must_catch_up(child, home)?;
            let replaced = self.replace_copy((child, home), (id, seen), better);
            if !replaced.map_err(of_child)? {
                // It has been removed everywhere, or is copied with what the child lacks.
                continue;
            }
            let url = self.children[child].url();
            tracing::warn!("log: object {id} in {url} was damaged: it has been copied again");
        }
        Ok(())
    }

    fn copy_objects(
        &self,
        fetching: &mut PeerFetching<'_>,
        (child, home): (usize, &Attachment),
        copied: &mut Inventory,
    ) -> Result<(), HomeError> {
        let epoch = self.epoch();
        for _pass in 0..PASSES_MAX {
            let wanted = self.contents_of_sources()?.objects;
            let there = self.ask_bulk_of(child, home, 0, |home| home.objects.list_objects())?;
            let there: BTreeSet<ObjectId> = there.iter().map(|info| info.id).collect();
            let since_cut = self.children[child].since_cut.lock().objects.clone();
            // What was put after the cut goes to it anyway; a later epoch's is another server's.
            let lacking = wanted.into_iter().filter(|(id, _)| {
                !there.contains(id) && !since_cut.contains(id) && id.0 >> 32 <= epoch
            });
            let others = self.others(child);
            let lacking = lacking.map(|(id, size_bytes)| Lacking {
                item: CopyItem::Object(ObjectInfo { id, size_bytes }),
                sources: others.clone(),
                size_bytes,
            });
            let lacking: Vec<Lacking> = lacking.collect();
            if lacking.is_empty() {
                return Ok(());
            }
            let to_copy: u64 = lacking.iter().map(|object| object.size_bytes).sum();
            self.children[child].note_copied(0, to_copy);
            let (count, url) = (lacking.len(), self.children[child].url());
            tracing::info!(
                "log: copying {count} objects ({to_copy} bytes) to {url}, which lacks them"
            );
            for object in &lacking {
                if let CopyItem::Object(info) = object.item {
                    copied.objects.insert(info.id, info.size_bytes);
                }
            }
            for index in fetching.fetch(&lacking)? {
                let CopyItem::Object(info) = lacking[index].item else {
                    continue;
                };
                match self.copy_object(&self.others(child), (child, home), &info) {
                    // It has been removed since: the next pass does not look for it any more.
                    Ok(()) | Err(HomeError::Missing(_)) => {}
                    Err(error) => return Err(error),
                }
                self.must_catch_up(child, home)?;
                self.children[child].note_copied(info.size_bytes, 0);
                fetching.note_by_server(info.size_bytes);
            }
        }
        Err(no_answer("copying objects"))
    }

    /// Of what the child had before its cut, or was copied, what nobody else has any more, or has been told to remove
    /// since. What cannot be removed is listed, and goes with the next ones.
    fn remove_what_is_gone(
        &self,
        child: usize,
        home: &Attachment,
        candidates: &Inventory,
    ) -> Result<(), HomeError> {
        let needed = self.contents_of_sources()?;
        let remove = |what: String, ask: ChildCall<()>| {
            self.must_catch_up(child, home)?;
            if let Err(error) = self.ask_attached(child, home, ask) {
                let url = self.children[child].url();
                tracing::warn!("log: removing {what} in {url}: {error}");
            }
            Ok::<(), HomeError>(())
        };
        let since_cut = &self.children[child].since_cut;
        let is_removed = |what| since_cut.lock().removed.contains(&what);
        for &(lane, segment) in candidates.segments.keys() {
            let open = self.lane(lane);
            let is_new = open.is_some_and(|open| segment >= open.state.lock().cut_segment(child));
            let is_needed = needed.segments.contains_key(&(lane, segment))
                && !is_removed(Removable::Segment(lane, segment));
            if !is_new && !is_needed {
                let trim = move |home: &LogHome| home.segments.trim(lane, segment);
                remove(format!("segment {segment} of lane {lane}"), Box::new(trim))?;
            }
        }
        for &(lane, id) in &candidates.sides {
            let is_new = since_cut.lock().sides.contains(&(lane, id));
            let is_needed =
                needed.sides.contains(&(lane, id)) && !is_removed(Removable::Side(lane, id));
            if !is_new && !is_needed {
                let gone = move |home: &LogHome| home.sides.remove_side_segment(lane, id);
                remove(format!("side segment {id} of lane {lane}"), Box::new(gone))?;
            }
        }
        for &id in candidates.objects.keys() {
            let is_new = since_cut.lock().objects.contains(&id);
            let is_needed = needed.objects.contains_key(&id) && !is_removed(Removable::Object(id));
            if !is_new && !is_needed {
                let gone = move |home: &LogHome| home.objects.remove_object(id);
                remove(format!("object {id}"), Box::new(gone))?;
            }
        }
        Ok(())
    }
}

/// A segment whose bytes go through this server.
struct ThroughServer<'i> {
    inner: &'i Inner,
    child: usize,
    home: &'i Attachment,
    segment: &'i Segment,
}

impl ThroughServer<'_> {
    fn read(
        &self,
        at: Position,
        len: usize,
    ) -> impl Fn(&LogHome) -> Result<Vec<u8>, HomeError> + Clone + Send + 'static {
        let lane = self.segment.lane;
        move |home| {
            let mut buffer = Buffer::zeroed(len);
            let count = home.segments.read(lane, at, &mut buffer)?;
            Ok(buffer.as_slice()[..count.min(len)].to_vec())
        }
    }
}

impl CopyEnds for ThroughServer<'_> {
    fn must_go_on(&self) -> Result<(), HomeError> {
        self.inner.must_catch_up(self.child, self.home)
    }

    fn read_source(
        &self,
        at: Position,
        len: usize,
        but: Option<usize>,
    ) -> Result<(usize, Vec<u8>), HomeError> {
        let sources = self.segment.sources.iter().copied();
        let sources: Vec<usize> = sources.filter(|source| Some(*source) != but).collect();
        self.inner.read_of_source(&sources, self.read(at, len))
    }

    fn read_own(&self, at: Position, len: usize) -> Result<Vec<u8>, HomeError> {
        let read = self.read(at, len);
        self.inner.ask_bulk_of(self.child, self.home, len, read)
    }

    fn rewrite(&self, at: Position, block: Buffer, len: usize) -> Result<(), HomeError> {
        let lane = self.segment.lane;
        let rewrite = move |home: &LogHome| home.segments.rewrite(lane, at, &block, len);
        self.inner.ask_bulk_of(self.child, self.home, len, rewrite)
    }

    fn is_removed(&self) -> bool {
        let removable = Removable::Segment(self.segment.lane, self.segment.segment);
        let since_cut = self.inner.children[self.child].since_cut.lock();
        since_cut.removed.contains(&removable)
    }

    fn disagrees(&self, source: usize, at: Position) {
        let (url, lane) = (self.inner.children[source].url(), self.segment.lane);
        tracing::warn!("log: {url} has other bytes in lane {lane} at {at} than two others");
    }

    fn copied(&self, bytes: u64) {
        self.inner.children[self.child].note_copied(bytes, 0);
    }
}
