//! Reading lanes back: listings, ranges, patches; and removing segments.
//!
//! Invariants:
//! - A patch is preferred to what lies below it.
//! - A fence is no data: in a plain lane its object is left out, and a segment of nothing but a fence is none.
//! - Fences are never removed, also not with their segment: a writer that was shut out and slept meanwhile must still
//!   meet them. An appendable segment that was written to takes its fence along: its writer knows that it was made, so
//!   it never makes it again, and what is gone cannot be appended to. Of one that was never written to, a tombstone
//!   stays.

use super::io::{ObjectCore, failed};
use super::names::{self, LaneObject};
use crate::bucket::{BucketError, ListEntry, Outcome, Stat};
use crate::{HomeError, Position, SegmentInfo};
use bytes::Bytes;
use logstead_types::LaneId;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::future::{Future, poll_fn};
use std::io;
use std::sync::Arc;
use std::task::Poll;
use tokio::task::JoinSet;

/// An object with more fences than that has met as many servers that died taking over from each other; it is not looked
/// at.
const FENCES_MAX: u64 = 1024;
/// Objects that are asked for together.
const TOGETHER: usize = 16;
/// An answer that is shorter than the object is asked for again so often.
const SHORT_ANSWERS_MAX: u32 = 8;

/// What lies in a lane, as a listing says.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) segments: BTreeMap<u64, Objects>,
}

/// The objects of one segment.
#[derive(Clone, Debug, Default)]
pub(super) struct Objects {
    /// Appendable: the object's length, head included.
    pub(super) whole: Option<u64>,
    /// Plain: lengths by offset; fences are not among them.
    pub(super) blocks: BTreeMap<u64, u64>,
    /// Plain: where fences are.
    pub(super) fences: Vec<u64>,
    patches: BTreeMap<u64, u64>,
}

impl Objects {
    /// Bytes in it; `None`: it is no segment, but a fence or an object that was never filled.
    pub(super) fn len(&self) -> Option<u64> {
        let end = |objects: &BTreeMap<u64, u64>| {
            objects
                .last_key_value()
                .map(|(&offset, &len)| offset.saturating_add(len))
        };
        let whole = self.whole.and_then(|len| len.checked_sub(names::HEAD_LEN));
        whole.max(end(&self.blocks)).max(end(&self.patches))
    }

    /// Is there a block, or what stands for one?
    pub(super) fn has_bytes(&self) -> bool {
        !self.blocks.is_empty() || !self.patches.is_empty()
    }

    /// Plain: where the first block is missing.
    pub(super) fn contiguous_end(&self) -> u64 {
        let mut end = 0;
        while let Some(&len) = self.blocks.get(&end).filter(|&&len| len > 0) {
            end += len;
        }
        end
    }
}

impl Listing {
    pub(super) async fn of(core: &ObjectCore, lane: LaneId) -> Result<Listing, HomeError> {
        let entries = list(core, &names::lane_dir(lane)).await?;
        Listing::from(core, lane, &entries).await
    }

    /// The objects of one segment only.
    async fn of_segment(
        core: &ObjectCore,
        lane: LaneId,
        segment: u64,
    ) -> Result<Listing, HomeError> {
        let mut entries = list(core, &names::patch_dir(lane, segment)).await?;
        if core.bucket.appends().is_some() {
            let name = names::segment(lane, segment);
            let stat = core.ask(|| core.bucket.stat(&name)).await;
            if let Some(Stat { len, .. }) = stat.map_err(|error| failed(&error))? {
                entries.push(ListEntry { name, len });
            }
        } else {
            entries.extend(list(core, &names::segment_dir(lane, segment)).await?);
        }
        Listing::from(core, lane, &entries).await
    }

    /// What these names of a lane say.
    async fn from(
        core: &ObjectCore,
        lane: LaneId,
        entries: &[ListEntry],
    ) -> Result<Listing, HomeError> {
        let mut listing = Listing::default();
        let fences = fences_of(core, lane, entries).await?;
        for entry in entries {
            let Some((segment, part)) = part_of(entry) else {
                continue;
            };
            let objects = listing.segments.entry(segment).or_default();
            match part {
                LaneObject::Segment => objects.whole = Some(entry.len),
                LaneObject::Patch(offset) => {
                    objects.patches.insert(offset, entry.len);
                }
                LaneObject::Block(offset) if fences.contains(entry.name.as_str()) => {
                    objects.fences.push(offset);
                }
                LaneObject::Block(offset) => {
                    objects.blocks.insert(offset, entry.len);
                }
            }
        }
        Ok(listing)
    }

    pub(super) fn infos(&self) -> Vec<SegmentInfo> {
        let info = |(&segment, objects): (&u64, &Objects)| {
            let size_bytes = objects.len()?;
            Some(SegmentInfo {
                segment,
                size_bytes,
            })
        };
        self.segments.iter().filter_map(info).collect()
    }
}

async fn list(core: &ObjectCore, directory: &str) -> Result<Vec<ListEntry>, HomeError> {
    let entries = core.ask(|| core.bucket.list(directory)).await;
    entries.map_err(|error| failed(&error))
}

/// Of which segment an object of a lane is, and what of it.
fn part_of(entry: &ListEntry) -> Option<(u64, LaneObject)> {
    names::parse_lane(&entry.name).and_then(|(_, rest)| names::parse_part(rest))
}

/// Could this be a fence in a plain lane? Only its bytes tell.
fn may_be_fence(entry: &ListEntry) -> bool {
    entry.len == names::FENCE_LEN && matches!(part_of(entry), Some((_, LaneObject::Block(_))))
}

/// Is this a block, or what stands for one, whatever its bytes are?
fn is_data(entry: &ListEntry) -> bool {
    match part_of(entry) {
        None => false,
        Some((_, LaneObject::Segment)) => entry.len >= names::HEAD_LEN,
        Some((_, LaneObject::Block(_))) => entry.len != names::FENCE_LEN,
        Some((_, LaneObject::Patch(_))) => true,
    }
}

/// The names of those objects that are fences. They are never removed, so there are more of them with every start:
/// several are asked for at a time.
async fn fences_of<'e>(
    core: &ObjectCore,
    lane: LaneId,
    entries: &'e [ListEntry],
) -> Result<HashSet<&'e str>, HomeError> {
    let doubtful: Vec<&str> = entries
        .iter()
        .filter(|entry| may_be_fence(entry))
        .map(|entry| entry.name.as_str())
        .collect();
    let mut fences = HashSet::new();
    for together in doubtful.chunks(TOGETHER) {
        let mut asked: Vec<_> = together
            .iter()
            .map(|name| (*name, Box::pin(is_fence(core, name, lane)), None))
            .collect();
        poll_fn(|context| {
            for (_, ask, answer) in &mut asked {
                if answer.is_none()
                    && let Poll::Ready(is_fence) = ask.as_mut().poll(context)
                {
                    *answer = Some(is_fence);
                }
            }
            match asked.iter().all(|(_, _, answer)| answer.is_some()) {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        })
        .await;
        for (name, _, answer) in asked {
            if answer.transpose()?.unwrap_or(false) {
                fences.insert(name);
            }
        }
    }
    Ok(fences)
}

/// Is this object, which was listed as long as one, a fence and nothing else?
pub(super) async fn is_fence(
    core: &ObjectCore,
    name: &str,
    lane: LaneId,
) -> Result<bool, HomeError> {
    let want = (name, 0, names::FENCE_LEN + 1);
    let there = get_at_least(core, want, names::FENCE_LEN).await?;
    Ok(there.is_some_and(|bytes| names::is_fence(&bytes, lane)))
}

/// Lanes that have segments or side segments.
pub(super) async fn lanes(core: &ObjectCore) -> Result<Vec<LaneId>, HomeError> {
    let mut by_lane: BTreeMap<LaneId, Vec<ListEntry>> = BTreeMap::new();
    for entry in list(core, names::LANES).await? {
        if let Some((lane, _)) = names::parse_lane(&entry.name) {
            by_lane.entry(lane).or_default().push(entry);
        }
    }
    let sides = list(core, names::SIDES).await?;
    let with_sides = sides
        .iter()
        .filter_map(|entry| names::parse_side_lane(&entry.name));
    let mut lanes: BTreeSet<LaneId> = with_sides.collect();
    for (lane, entries) in by_lane {
        // Fences are looked at only where nothing else says that there is a segment.
        let has_segments = entries.iter().any(is_data)
            || !Listing::from(core, lane, &entries)
                .await?
                .infos()
                .is_empty();
        if has_segments {
            lanes.insert(lane);
        }
    }
    Ok(lanes.into_iter().collect())
}

/// Bytes that were read: pieces by where they begin in what was asked for, later ones before earlier ones.
#[derive(Default)]
pub(super) struct ReadPieces {
    pub(super) pieces: Vec<(u64, Bytes)>,
    /// Where the segment ends, or what was asked for.
    pub(super) end: u64,
}

impl ReadPieces {
    pub(super) fn copy(&self, into: &mut [u8]) -> usize {
        let end = usize::try_from(self.end)
            .unwrap_or(usize::MAX)
            .min(into.len());
        // What is missing between two blocks reads as zeros.
        into[..end].fill(0);
        for (start, bytes) in &self.pieces {
            let start = usize::try_from(*start).unwrap_or(usize::MAX).min(end);
            let len = bytes.len().min(end - start);
            into[start..start + len].copy_from_slice(&bytes[..len]);
        }
        end
    }
}

/// An object's part that is asked for.
struct Want {
    name: String,
    from: u64,
    len: u64,
    /// Where it goes.
    to: u64,
}

async fn get_exactly(core: &ObjectCore, want: &Want) -> Result<Bytes, HomeError> {
    let range = (want.name.as_str(), want.from, want.len);
    let there = get_at_least(core, range, want.len).await?;
    let gone = || failed(&BucketError::new(Outcome::Absent, &want.name, "it is gone"));
    there.ok_or_else(gone)
}

/// Gets a part of an object, of which there are at least so many bytes. An answer may be shorter than what is there: it
/// is asked for again. Nothing: there is no such object.
pub(super) async fn get_at_least(
    core: &ObjectCore,
    (name, from, len): (&str, u64, u64),
    least: u64,
) -> Result<Option<Bytes>, HomeError> {
    for attempts in 0..SHORT_ANSWERS_MAX {
        let ask = || core.bucket.get_range(name, from, len);
        match core.ask(ask).await {
            Ok(bytes) if (least..=len).contains(&(bytes.len() as u64)) => return Ok(Some(bytes)),
            Ok(bytes) => {
                let why = format!("{} bytes instead of {least}", bytes.len());
                core.trouble(&BucketError::new(Outcome::Unknown, name, why));
                core.pause(attempts).await;
            }
            Err(error) if error.outcome == Outcome::Absent => return Ok(None),
            Err(error) => return Err(failed(&error)),
        }
    }
    Err(HomeError::io(
        format!("read {name}"),
        io::ErrorKind::UnexpectedEof.into(),
    ))
}

/// Gets a part of an object that never changes, less only at its end, nothing if there is no such object. Where an
/// answer is shorter than what was asked for, the object's length tells whether it ends there: what stands before a
/// store may cut an answer short and not say so.
pub(super) async fn get_to_end(
    core: &ObjectCore,
    (name, from, len): (&str, u64, u64),
) -> Result<Option<Bytes>, HomeError> {
    let bytes = match core.ask(|| core.bucket.get_range(name, from, len)).await {
        Ok(bytes) if bytes.len() as u64 >= len => return Ok(Some(bytes)),
        Ok(bytes) => bytes,
        Err(error) if error.outcome == Outcome::Absent => return Ok(None),
        Err(error) => return Err(failed(&error)),
    };
    let stat = core.ask(|| core.bucket.stat(name)).await;
    let Some(stat) = stat.map_err(|error| failed(&error))? else {
        return Ok(None);
    };
    let there = stat.len.saturating_sub(from).min(len);
    if bytes.len() as u64 >= there {
        return Ok(Some(bytes));
    }
    get_at_least(core, (name, from, there), there).await
}

/// Reads from objects of known lengths, several at a time.
async fn gather(core: &Arc<ObjectCore>, wants: Vec<Want>) -> Result<Vec<(u64, Bytes)>, HomeError> {
    let mut pieces = Vec::new();
    let mut wants = wants.into_iter();
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < TOGETHER
            && let Some(want) = wants.next()
        {
            let core = Arc::clone(core);
            asked.spawn(async move { (want.to, get_exactly(&core, &want).await) });
        }
        match asked.join_next().await {
            None => return Ok(pieces),
            Some(Ok((to, bytes))) => pieces.push((to, bytes?)),
            Some(Err(error)) => {
                return Err(HomeError::io("read a lane", io::Error::other(error)));
            }
        }
    }
}

/// What of objects by offset lies between `at` and `at + len`, each up to where the next one begins.
fn wants(
    objects: &BTreeMap<u64, u64>,
    at: u64,
    len: u64,
    name: impl Fn(u64) -> String,
) -> Vec<Want> {
    let end = at.saturating_add(len);
    let first = objects
        .range(..=at)
        .next_back()
        .map_or(at, |(&first, _)| first);
    let mut wants = Vec::new();
    let mut objects = objects.range(first..end).peekable();
    while let Some((&offset, &len)) = objects.next() {
        let next = objects.peek().map_or(u64::MAX, |&(&next, _)| next);
        let (from, to) = (
            offset.max(at),
            offset.saturating_add(len).min(next).min(end),
        );
        if from < to {
            wants.push(Want {
                name: name(offset),
                from: from - offset,
                len: to - from,
                to: from - at,
            });
        }
    }
    wants
}

fn end_of(wants: &[Want]) -> u64 {
    wants
        .iter()
        .map(|want| want.to + want.len)
        .max()
        .unwrap_or(0)
}

/// Reads up to `len` bytes of a segment, as the listing says what there is. The second answer: the listing knows of
/// less than was asked for.
pub(super) async fn read(
    core: &Arc<ObjectCore>,
    listing: &Listing,
    lane: LaneId,
    at: Position,
    len: u64,
) -> Result<(ReadPieces, bool), HomeError> {
    let nothing = Objects::default();
    let objects = listing.segments.get(&at.segment).unwrap_or(&nothing);
    let mut pieces = ReadPieces::default();
    let mut short = false;
    if core.bucket.appends().is_some() {
        let name = names::segment(lane, at.segment);
        let offset = names::HEAD_LEN.saturating_add(at.offset);
        // The object may have grown since it was listed: its end is where the answer ends.
        match core.ask(|| core.bucket.get_range(&name, offset, len)).await {
            Ok(bytes) => {
                let known = objects.whole.unwrap_or(0).saturating_sub(offset).min(len);
                let got = bytes.len() as u64;
                if got < known {
                    let want = Want {
                        name,
                        from: offset,
                        len: known,
                        to: 0,
                    };
                    pieces.pieces.push((0, get_exactly(core, &want).await?));
                } else {
                    pieces.pieces.push((0, bytes));
                }
                pieces.end = got.max(known);
            }
            // An object that was listed is there, whatever an answer without it says: a lane must not end early for it.
            Err(error) if error.outcome == Outcome::Absent && objects.whole.is_none() => {}
            Err(error) => return Err(failed(&error)),
        }
    } else {
        let name = |offset| names::block(lane, at.segment, offset);
        let wants = wants(&objects.blocks, at.offset, len, name);
        short = wants.iter().map(|want| want.len).sum::<u64>() < len;
        pieces.end = end_of(&wants);
        pieces.pieces = gather(core, wants).await?;
    }
    let name = |offset| names::patch(lane, at.segment, offset);
    let wants = wants(&objects.patches, at.offset, len, name);
    pieces.end = pieces.end.max(end_of(&wants));
    pieces.pieces.extend(gather(core, wants).await?);
    // A read is shorter than it was asked to be at the segment's end only, not where blocks are missing in it: what was
    // in flight behind a lost append may have been stored.
    let listed = objects.len().unwrap_or(0).saturating_sub(at.offset);
    pieces.end = pieces.end.max(listed.min(len));
    Ok((pieces, short))
}

/// Puts bytes where something else lies, or nothing.
pub(super) async fn patch(
    core: &ObjectCore,
    lane: LaneId,
    at: Position,
    bytes: Bytes,
) -> Result<(), HomeError> {
    let name = names::patch(lane, at.segment, at.offset);
    let mut attempts = 0;
    loop {
        match core.bucket.put_if_absent(&name, bytes.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) if error.outcome == Outcome::NotNow => core.trouble(&error),
            Err(error) if matches!(error.outcome, Outcome::Unknown | Outcome::Precondition) => {
                core.trouble(&error);
                match core.ask(|| core.bucket.get(&name)).await {
                    Ok((there, _)) if there == bytes => return Ok(()),
                    // A place has one block for ever, so whoever patched it put the same there.
                    Ok(_) => {
                        let why = io::Error::other("another patch is there");
                        return Err(HomeError::io(format!("write {name}"), why));
                    }
                    Err(error) if error.outcome == Outcome::Absent => {}
                    Err(error) => return Err(failed(&error)),
                }
            }
            Err(error) => return Err(failed(&error)),
        }
        core.pause(attempts).await;
        attempts += 1;
    }
}

/// Removes objects, several at a time.
pub(super) async fn delete_all(
    core: &Arc<ObjectCore>,
    names: Vec<String>,
) -> Result<(), HomeError> {
    let mut names = names.into_iter();
    let mut asked = JoinSet::new();
    loop {
        while asked.len() < TOGETHER
            && let Some(name) = names.next()
        {
            let core = Arc::clone(core);
            asked.spawn(async move { core.ask(|| core.bucket.delete(&name)).await });
        }
        match asked.join_next().await {
            None => return Ok(()),
            Some(Ok(Ok(()))) => core.space.freed(),
            Some(Ok(Err(error))) if error.outcome == Outcome::Absent => {}
            Some(Ok(Err(error))) => return Err(failed(&error)),
            Some(Err(error)) => {
                return Err(HomeError::io("remove objects", io::Error::other(error)));
            }
        }
    }
}

/// Removes a segment, its patches first: what they stand for is then still what it was.
pub(super) async fn trim(
    core: &Arc<ObjectCore>,
    lane: LaneId,
    segment: u64,
) -> Result<(), HomeError> {
    let listing = Listing::of_segment(core, lane, segment).await?;
    let Some(objects) = listing.segments.get(&segment) else {
        return Ok(());
    };
    let patches = objects.patches.keys();
    let patches = patches.map(|&offset| names::patch(lane, segment, offset));
    let mut wanted: Vec<String> = patches.collect();
    let blocks = objects.blocks.keys();
    wanted.extend(blocks.map(|&offset| names::block(lane, segment, offset)));
    if let Some(len) = objects.whole.filter(|&len| len >= names::HEAD_LEN) {
        let name = names::segment(lane, segment);
        match only_fence(core, lane, &name, len).await? {
            Some(fence) => {
                let put = core.ask(|| core.bucket.put(&name, fence.clone())).await;
                put.map_err(|error| failed(&error))?;
            }
            None => wanted.push(name),
        }
    }
    delete_all(core, wanted).await
}

/// The fence of an object that holds nothing else behind its head. Its writer may never have heard that it was made,
/// and would make it again, without the fence, if its name were free: so the fence stays there, as a tombstone.
async fn only_fence(
    core: &ObjectCore,
    lane: LaneId,
    name: &str,
    len: u64,
) -> Result<Option<Bytes>, HomeError> {
    let behind = len - names::HEAD_LEN;
    if !(1..=FENCES_MAX * names::FENCE_LEN).contains(&behind)
        || !behind.is_multiple_of(names::FENCE_LEN)
    {
        return Ok(None);
    }
    // Half an answer would be no fence, and the fence would be removed.
    let Some(bytes) = get_at_least(core, (name, names::HEAD_LEN, behind), behind).await? else {
        return Ok(None);
    };
    let mut fences = bytes.chunks(names::FENCE_LEN as usize);
    let all = fences.all(|fence| names::is_fence(fence, lane));
    Ok(all.then(|| bytes.slice(..names::FENCE_LEN as usize)))
}
