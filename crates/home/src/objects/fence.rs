//! Shutting other writers out of a lane (T3).
//!
//! Appendable: a tombstone under the next segment's name, so that no further segment can be opened; then a fence at the
//! end of the last two objects, the only ones that the old writer may still append to. It meets a wrong offset, looks,
//! finds no bytes of its own, and stops. If a segment came up before the tombstone, or an object grew before the fence,
//! look again: the old writer cannot go on for ever, since it loses its lease.
//!
//! Plain: a fence under the first free name of every segment that the old writer's appends in flight may lie in, and of
//! the one behind them. Its first missing append in order has one of these names and fails, and every later one with
//! it, whether or not its own object comes to be. The name of its next append is known only when the one before is
//! there, so a busy writer may be faster each time; but segments begin at names that anyone knows. So the first fence
//! goes there, further ahead each time that it comes too late, and what is left to the old writer is finite.
//!
//! May be repeated by anyone; each appends a fence of its own, since bytes that look like a fence at the end of an
//! object prove nothing: a row may hold them.

use super::io::{Counts, ObjectCore, failed};
use super::names;
use super::read::{Listing, is_fence};
use crate::HomeError;
use crate::bucket::Outcome;
use bytes::Bytes;
use logstead_types::LaneId;
use std::ops::RangeInclusive;

/// Plain: most appends that a writer has in flight in one lane, and so most segments before the last that may have
/// holes.
pub(super) const IN_FLIGHT_MAX: usize = 4;
/// Plain: how far ahead the goal is put at most, in segments, as a power of two.
const AHEAD_BITS_MAX: u32 = 16;

/// Fences a lane from a segment on.
pub(super) async fn run(
    core: &ObjectCore,
    lane: LaneId,
    first_segment: u64,
    by: &str,
) -> Result<(), HomeError> {
    let now = core.clock.now_micros_since_2000();
    let fence = names::fence(lane, core.random.u64(), now, by);
    let fence = Bytes::copy_from_slice(&fence);
    if core.bucket.appends().is_some() {
        objects(core, lane, first_segment, &fence).await?;
    } else {
        let mut rounds = 0;
        while !places(core, lane, first_segment, &fence, rounds).await? {
            rounds += 1;
        }
    }
    Counts::add(&core.counts.fences);
    Ok(())
}

/// The segments that whoever opened this one may have gone on to. Those of a later epoch are the lanes of a server that
/// took over since this start began; a start that wakes up so late must not shut that one out.
fn same_epoch(first_segment: u64) -> RangeInclusive<u64> {
    first_segment..=first_segment | u64::from(u32::MAX)
}

/// Puts the fence under a name; false if something else is there.
async fn put(core: &ObjectCore, name: &str, fence: &Bytes) -> Result<bool, HomeError> {
    let mut attempts = 0;
    loop {
        match core.bucket.put_if_absent(name, fence.clone()).await {
            Ok(_) => return Ok(true),
            Err(error) => match error.outcome {
                Outcome::NotNow | Outcome::NoSpace => core.trouble(&error),
                Outcome::Unknown | Outcome::Precondition => {
                    match core.ask(|| core.bucket.get(name)).await {
                        Ok((there, _)) => return Ok(there == *fence),
                        Err(gone) if gone.outcome == Outcome::Absent => core.trouble(&error),
                        Err(error) => return Err(failed(&error)),
                    }
                }
                _ => return Err(failed(&error)),
            },
        }
        core.pause(attempts).await;
        attempts += 1;
    }
}

async fn objects(
    core: &ObjectCore,
    lane: LaneId,
    first_segment: u64,
    fence: &Bytes,
) -> Result<(), HomeError> {
    let mut attempts = 0;
    let open = loop {
        let listing = Listing::of(core, lane).await?;
        let there = listing.segments.range(same_epoch(first_segment));
        let mut there: Vec<(u64, u64)> = there
            .filter_map(|(&segment, objects)| Some((segment, objects.whole?)))
            .collect();
        // Tombstones come last: nothing is opened behind one.
        let mut shut = false;
        while let Some(&(segment, len)) = there.last()
            && len == names::FENCE_LEN
            && is_fence(core, &names::segment(lane, segment), lane).await?
        {
            shut = true;
            there.pop();
        }
        let next = there
            .last()
            .map_or(first_segment, |&(segment, _)| segment + 1);
        if shut || put(core, &names::segment(lane, next), fence).await? {
            break there;
        }
        // The old writer was faster, or somebody else who fences.
        core.pause(attempts).await;
        attempts += 1;
    };
    for &(segment, _) in open.iter().rev().take(2) {
        close(core, lane, segment, fence).await?;
    }
    Ok(())
}

/// Is an object that was listed not there any more, so that nobody can append to it either? One answer does not prove
/// it: what stands before a store may answer in its name.
async fn is_gone(core: &ObjectCore, lane: LaneId, segment: u64) -> Result<bool, HomeError> {
    let listing = Listing::of(core, lane).await?;
    let objects = listing.segments.get(&segment);
    Ok(objects.is_none_or(|objects| objects.whole.is_none()))
}

/// Appends the fence to an object, wherever that ends.
async fn close(
    core: &ObjectCore,
    lane: LaneId,
    segment: u64,
    fence: &Bytes,
) -> Result<(), HomeError> {
    let name = names::segment(lane, segment);
    let mut attempts = 0;
    loop {
        let stat = core.ask(|| core.bucket.stat(&name)).await;
        let Some(stat) = stat.map_err(|error| failed(&error))? else {
            if is_gone(core, lane, segment).await? {
                return Ok(());
            }
            core.pause(attempts).await;
            attempts += 1;
            continue;
        };
        let offset = stat.len;
        let ours = async |at: u64| {
            let ask = || core.bucket.get_range(&name, at, names::FENCE_LEN);
            match core.ask(ask).await {
                Ok(there) => Ok(there == *fence),
                Err(error) if error.outcome == Outcome::Absent => Ok(false),
                Err(error) => Err(failed(&error)),
            }
        };
        // What came of an attempt that was not answered.
        if attempts > 0
            && let Some(before) = offset.checked_sub(names::FENCE_LEN)
            && ours(before).await?
        {
            return Ok(());
        }
        match core.bucket.append(&name, offset, fence.clone()).await {
            Ok(()) => return Ok(()),
            Err(error) => match error.outcome {
                // No appends at all, by anyone.
                Outcome::Full => return Ok(()),
                Outcome::Absent => {
                    if is_gone(core, lane, segment).await? {
                        return Ok(());
                    }
                    core.pause(attempts).await;
                }
                Outcome::NotNow
                | Outcome::NoSpace
                | Outcome::Unknown
                | Outcome::WrongOffset
                | Outcome::Precondition => {
                    core.trouble(&error);
                    core.pause(attempts).await;
                }
                Outcome::Refused => return Err(failed(&error)),
            },
        }
        attempts += 1;
    }
}

/// One round over the segments of a plain lane; false if another writer was faster somewhere.
async fn places(
    core: &ObjectCore,
    lane: LaneId,
    first_segment: u64,
    fence: &Bytes,
    rounds: u32,
) -> Result<bool, HomeError> {
    let listing = Listing::of(core, lane).await?;
    let there = listing.segments.range(same_epoch(first_segment));
    // A copy that was completed holds patches; its writer's first own name is behind those.
    let used = there.filter(|(_, objects)| objects.has_bytes());
    let used = used.map(|(&segment, _)| segment).next_back();
    let is_shut = |segment: u64| {
        let objects = listing.segments.get(&segment);
        objects.is_some_and(|objects| objects.fences.contains(&objects.contiguous_end()))
    };
    let last = used.map_or(first_segment, |last| last + 1);
    // Where the old writer ends in any case, before it is chased.
    let ahead = (1u64 << rounds.min(AHEAD_BITS_MAX)) - 1;
    let goal = last + ahead;
    let goal_shut = (last..=goal).any(is_shut);
    if !goal_shut && !put(core, &names::block(lane, goal, 0), fence).await? {
        return Ok(false);
    }
    let from = last.saturating_sub(IN_FLIGHT_MAX as u64 + 1);
    for segment in from.max(first_segment)..=last {
        let done = is_shut(segment) || !goal_shut && segment == goal;
        let end = listing.segments.get(&segment);
        let end = end.map_or(0, |objects| objects.contiguous_end());
        if !done && !put(core, &names::block(lane, segment, end), fence).await? {
            return Ok(false);
        }
    }
    Ok(true)
}
