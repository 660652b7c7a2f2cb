//! Copies to a child what it lacks, and removes what nobody else has any more.
//!
//! Bytes go in pieces, one after the other, behind what is asked of the children for who waits. Only those that the
//! child lacks, or has otherwise, are written, and then read again: what was written there before in pieces of other
//! borders may hide some of them.
//!
//! Does not: decide from when on the child is given what is new.

use super::super::child::{Attachment, Removable, no_answer};
use super::super::objects::is_unanswered;
use super::super::side::is_whole_side;
use super::super::{ChildCall, Inner};
use crate::{Buffer, HomeError, LogHome, ObjectId, ObjectInfo, Position};
use logstead_types::LaneId;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::Ordering;

/// Bytes of a segment that are copied at once.
const PIECE_BYTES: usize = 4 << 20;
/// Bytes are compared in units of at least so many.
const UNIT_BYTES: usize = 4096;
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

/// Where these bytes are not there, in units.
fn differences(wanted: &[u8], there: &[u8], unit: usize) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for from in (0..wanted.len()).step_by(unit) {
        let to = (from + unit).min(wanted.len());
        let there = there.get(from..to.min(there.len())).unwrap_or(&[]);
        let (same, behind) = wanted[from..to].split_at(there.len());
        // Behind the end there are zeros.
        if same == there && behind.iter().all(|&byte| byte == 0) {
            continue;
        }
        match found.last_mut().filter(|last| last.end == from) {
            Some(last) => last.end = to,
            None => found.push(from..to),
        }
    }
    found
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

/// What lies between these ranges, up to `end`.
fn between(ranges: &[Range<usize>], end: usize) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut from = 0;
    for range in ranges {
        found.push(from..range.start.min(end));
        from = range.end;
    }
    found.push(from..end);
    found.retain(|range| !range.is_empty());
    found
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
        self.copy_segments(child, home, &mut copied)?;
        self.copy_sides(child, home, &mut copied)?;
        self.mend_objects(child, home, mended)?;
        self.copy_objects(child, home, &mut copied)?;
        self.remove_what_is_gone(child, home, &copied)
    }

    fn copy_segments(
        &self,
        child: usize,
        home: &Attachment,
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
        for segment in wanted {
            let key = (segment.lane, segment.segment);
            copied.segments.insert(key, segment.size);
            let there = there.segments.get(&key).copied().unwrap_or(0);
            self.copy_segment(child, home, &segment, there)?;
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
        let lane = segment.lane;
        let alignment = self.capabilities.block_alignment;
        let unit = alignment.max(UNIT_BYTES);
        let mut offset = 0;
        while offset < segment.size {
            self.must_catch_up(child, home)?;
            let at = Position {
                segment: segment.segment,
                offset,
            };
            let read = move |home: &LogHome| {
                let mut buffer = Buffer::zeroed(PIECE_BYTES);
                let count = home.segments.read(lane, at, &mut buffer)?;
                Ok(buffer.as_slice()[..count.min(PIECE_BYTES)].to_vec())
            };
            let (source, mut wanted) = self.read_of_source(&segment.sources, read)?;
            let present = match offset < there {
                true => self.ask_bulk_of(child, home, PIECE_BYTES, read)?,
                false => Vec::new(),
            };
            let mut lacking = differences(&wanted, &present, unit);
            let disputed = disputed(&lacking, &present, unit);
            if !disputed.is_empty() {
                // One of the two is damaged, or what the child has is of an older segment: another source tells.
                let others = segment.sources.iter().copied().filter(|&at| at != source);
                let others: Vec<usize> = others.collect();
                if let Ok((_, second)) = self.read_of_source(&others, read) {
                    let url = self.children[source].url();
                    if keep_what_two_have(&mut wanted, &present, &second, &disputed) {
                        tracing::warn!(
                            "log: {url} has other bytes in lane {lane} at {at} than two others"
                        );
                    }
                    lacking = differences(&wanted, &present, unit);
                }
            }
            let written = !lacking.is_empty();
            let mut to_write = lacking.clone();
            if !segment.is_sure {
                let last = wanted.iter().rposition(|&byte| byte != 0);
                let end = last.map_or(0, |last| (last + 1).next_multiple_of(unit));
                let end = end.min(wanted.len()).min(present.len());
                to_write.extend(between(&lacking, end));
            }
            for range in to_write {
                let len = range.len().next_multiple_of(alignment);
                let mut block = Buffer::zeroed(len);
                block.as_mut_slice()[..range.len()].copy_from_slice(&wanted[range.clone()]);
                let at = Position {
                    offset: offset + range.start as u64,
                    ..at
                };
                self.ask_bulk_of(child, home, len, move |home| {
                    home.segments.rewrite(lane, at, &block, len)
                })?;
            }
            if written {
                let present = self.ask_bulk_of(child, home, PIECE_BYTES, read)?;
                let removable = Removable::Segment(lane, segment.segment);
                if self.children[child]
                    .since_cut
                    .lock()
                    .removed
                    .contains(&removable)
                {
                    return Ok(());
                }
                if !differences(&wanted, &present, unit).is_empty() {
                    let why =
                        "what was copied there reads otherwise; if that stays so, empty that place";
                    let why = std::io::Error::new(std::io::ErrorKind::InvalidData, why);
                    return Err(HomeError::io(
                        format!("completing lane {lane} at {at}"),
                        why,
                    ));
                }
            }
            let bytes = (PIECE_BYTES as u64).min(segment.size - offset);
            self.children[child].note_copied(bytes, 0);
            offset += PIECE_BYTES as u64;
        }
        Ok(())
    }

    /// Asks one of those that have it, whoever answers: who that was, and what.
    fn read_of_source<T: Send + 'static>(
        &self,
        sources: &[usize],
        read: impl Fn(&LogHome) -> Result<T, HomeError> + Clone + Send + 'static,
    ) -> Result<(usize, T), HomeError> {
        let mut failed = None;
        for &source in sources {
            match self.ask_bulk(source, PIECE_BYTES, read.clone()) {
                Ok(value) => return Ok((source, value)),
                Err(error) => failed = Some(error),
            }
        }
        Err(failed.unwrap_or_else(|| no_answer("reading what it lacks")))
    }

    /// The epoch of this life, if it has lanes; else the newest before.
    fn epoch(&self) -> u64 {
        let lanes = self.lanes.read();
        let begun = lanes.values().map(|lane| lane.state.lock().segment() >> 32);
        let before = self.settled_epoch.load(Ordering::SeqCst);
        begun.max().unwrap_or(0).max(before)
    }

    /// Side segments that are whole elsewhere. Those that began after the cut are being written there, and those of
    /// later epochs are another server's, which may be writing them there.
    fn copy_sides(
        &self,
        child: usize,
        home: &Attachment,
        copied: &mut Inventory,
    ) -> Result<(), HomeError> {
        let wanted = self.contents_of_sources()?.sides;
        let epoch = self.epoch();
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
            let goes_on = || self.must_catch_up(child, home);
            self.copy_side(&holders, (child, home), (lane, id), &goes_on)?;
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

    /// A better copy of an object than a child has: nothing if there is none, or if the child has no copy any more.
    fn better_than(
        &self,
        child: usize,
        home: &Attachment,
        at: (ObjectId, u64),
    ) -> Result<Option<Vec<u8>>, HomeError> {
        let own = match self.read_whole_object_of(child, home, at.0) {
            Ok(own) => Some(own),
            // It is removed everywhere, or mended and not told: then it is copied with what the child lacks.
            Err(HomeError::Missing(_)) => return Ok(None),
            Err(error) if is_unanswered(&error) => return Err(error),
            // What cannot be read is damaged as well.
            Err(_) => None,
        };
        self.better_copy(own.as_deref(), &self.others(child), at)
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
            let Some(better) = self.better_than(child, home, at)? else {
                continue;
            };
            self.must_catch_up(child, home)?;
            self.ask_bulk_of(child, home, 0, move |home| home.objects.remove_object(id))?;
            self.put_copy((child, home), id, better)?;
            let url = self.children[child].url();
            tracing::warn!("log: object {id} in {url} was damaged: it has been copied again");
        }
        Ok(())
    }

    fn copy_objects(
        &self,
        child: usize,
        home: &Attachment,
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
            let lacking: Vec<_> = lacking.collect();
            if lacking.is_empty() {
                return Ok(());
            }
            let to_copy: u64 = lacking.iter().map(|(_, size)| size).sum();
            self.children[child].note_copied(0, to_copy);
            let (count, url) = (lacking.len(), self.children[child].url());
            tracing::info!(
                "log: copying {count} objects ({to_copy} bytes) to {url}, which lacks them"
            );
            for (id, size_bytes) in lacking {
                copied.objects.insert(id, size_bytes);
                let info = ObjectInfo { id, size_bytes };
                match self.copy_object(&self.others(child), (child, home), &info) {
                    // It has been removed since: the next pass does not look for it any more.
                    Ok(()) | Err(HomeError::Missing(_)) => {}
                    Err(error) => return Err(error),
                }
                self.must_catch_up(child, home)?;
                self.children[child].note_copied(size_bytes, 0);
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

/// Of what a child lacks, where it has other bytes than none: in pieces of a unit.
fn disputed(lacking: &[Range<usize>], present: &[u8], unit: usize) -> Vec<Range<usize>> {
    let pieces = lacking.iter().flat_map(|range| {
        let starts = range.clone().step_by(unit);
        starts.map(|start| start..range.end.min(start + unit))
    });
    let has_bytes = |piece: &Range<usize>| {
        let there = present.get(piece.clone());
        there.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
    };
    pieces.filter(has_bytes).collect()
}

/// Where a second source has what the child has, and the first has not, that is what is wanted. True if there was any.
fn keep_what_two_have(
    wanted: &mut [u8],
    present: &[u8],
    second: &[u8],
    disputed: &[Range<usize>],
) -> bool {
    let mut kept = false;
    for piece in disputed {
        let [own, other] = [present, second].map(|bytes| bytes.get(piece.clone()));
        if let (Some(own), Some(other), Some(into)) = (own, other, wanted.get_mut(piece.clone()))
            && own == other
        {
            into.copy_from_slice(own);
            kept = true;
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two against one: bits of the source have rotted; or what the child has is of an older segment.
    #[test]
    fn what_two_have_is_right() {
        let unit = 4;
        let first = *b"aaaabbbbcccc0000";
        let child = *b"aaaaXXXXYYYY";
        let second = *b"aaaabbbbYYYY0000";
        let lacking = differences(&first, &child, unit);
        let disputed = disputed(&lacking, &child, unit);
        assert_eq!(disputed, [4..8, 8..12]);
        let mut wanted = first;
        assert!(keep_what_two_have(&mut wanted, &child, &second, &disputed));
        assert_eq!(&wanted, b"aaaabbbbYYYY0000");
        let mut wanted = first;
        assert!(!keep_what_two_have(&mut wanted, &child, &first, &disputed));
        assert_eq!(wanted, first);
    }
}
