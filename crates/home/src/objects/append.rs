//! Appends and new segments: what is done about every answer a provider can give (T14).
//!
//! | answer | what it means here |
//! |---|---|
//! | not now | nothing happened: the same again, after a pause, for ever |
//! | unknown, wrong offset, exists already | look: our bytes are there: it succeeded (*settled*); the place is still free: again; anything else: another writer's, *fenced* |
//! | absent | whoever took over has removed the object: fenced |
//! | full, refused | the lane fails with the provider's words; after a doubtful attempt, a look decides first |
//!
//! Why a second try is safe: an append names its offset and a put its name, and the provider lets each happen once. A
//! first try that is late either finds its place free, then the second one is refused and a look finds our bytes; or
//! finds it taken and is refused itself.
//!
//! Invariant: a completion is called once, also when the home is closed before there was an answer.

use super::io::{Counts, ObjectCore, closed, failed};
use super::lane::Lane;
use super::names;
use super::read::get_at_least;
use crate::bucket::{BucketError, Outcome};
use crate::{Buffer, Completion, HomeError, Position};
use bytes::Bytes;
use logstead_env::abort_on_panic;
use logstead_types::LaneId;
use std::io;
use std::sync::Arc;

/// A block on its way. The client library reads its memory in place, and it goes back to the lane afterwards.
pub(super) struct PendingBlock {
    block: Option<Arc<Lent>>,
    len: usize,
    done: Option<Completion>,
}

/// A buffer that the client library may be reading.
struct Lent(Buffer);

/// One of those who hold it.
struct Holder(Arc<Lent>);

impl AsRef<[u8]> for Holder {
    fn as_ref(&self) -> &[u8] {
        self.0.0.as_slice()
    }
}

impl PendingBlock {
    pub(super) fn new(block: Buffer, len: usize, done: Completion) -> PendingBlock {
        PendingBlock {
            block: Some(Arc::new(Lent(block))),
            len,
            done: Some(done),
        }
    }

    fn bytes(&self) -> Bytes {
        match &self.block {
            Some(block) => Bytes::from_owner(Holder(Arc::clone(block))).slice(..self.len),
            None => Bytes::new(),
        }
    }

    pub(super) fn finish(mut self, result: Result<(), HomeError>) {
        self.complete(result);
    }

    fn complete(&mut self, result: Result<(), HomeError>) {
        let (Some(done), Some(block)) = (self.done.take(), self.block.take()) else {
            return;
        };
        let capacity = block.0.capacity();
        // The client may still hold a request that was given up; its bytes must not change, so the lane gets another
        // buffer.
        let block = Arc::into_inner(block).map_or_else(|| Buffer::zeroed(capacity), |lent| lent.0);
        done(block, result);
    }
}

impl Drop for PendingBlock {
    fn drop(&mut self) {
        self.complete(Err(closed()));
    }
}

/// What a look at a place says.
enum PlaceContent {
    /// Our bytes.
    Ours,
    /// Nothing: the place is free.
    Free,
    /// Another writer was there.
    Foreign,
}

/// Appends a block and tells its lane.
pub(super) async fn run(
    core: Arc<ObjectCore>,
    lane: Arc<Lane>,
    at: Position,
    pending: PendingBlock,
) {
    // Tasks that panic are forgotten by their runtime, and the lane would wait for ever.
    let _watch = abort_on_panic("appending to a bucket");
    let begun = core.clock.monotonic();
    let bytes = pending.bytes();
    let result = match core.bucket.appends() {
        Some(_) => match lane.is_made(at.segment).await {
            Ok(()) => append(&core, lane.id, at, &bytes).await,
            Err(error) => Err(error),
        },
        None => put(&core, lane.id, at, &bytes).await,
    };
    drop(bytes);
    if result.is_ok() {
        core.took(begun);
    }
    if let Some(segment) = lane.answered(&core, at, pending, result) {
        make_segments(core, lane, segment).await;
    }
}

/// Makes a segment, and further ones as long as the lane wants any.
pub(super) async fn make_segments(core: Arc<ObjectCore>, lane: Arc<Lane>, first: u64) {
    let _watch = abort_on_panic("making a segment in a bucket");
    let mut next = Some(first);
    while let Some(segment) = next {
        let result = make_segment(&core, lane.id, segment).await;
        next = lane.made(segment, result);
    }
}

fn lost(lane: LaneId, at: Position) -> HomeError {
    HomeError::io(
        format!("append to lane {lane} at {at}"),
        io::Error::other("the object is shorter than what was appended to it"),
    )
}

/// Where a block goes.
struct Target<'a> {
    core: &'a ObjectCore,
    lane: LaneId,
    at: Position,
    name: String,
    bytes: &'a Bytes,
    /// An earlier attempt may have succeeded, or may still.
    doubtful: bool,
}

async fn append(
    core: &ObjectCore,
    lane: LaneId,
    at: Position,
    bytes: &Bytes,
) -> Result<(), HomeError> {
    let mut target = Target {
        core,
        lane,
        at,
        name: names::segment(lane, at.segment),
        bytes,
        doubtful: false,
    };
    let offset = names::HEAD_LEN + at.offset;
    let mut attempts = 0;
    loop {
        let appended = core.bucket.append(&target.name, offset, bytes.clone());
        match appended.await {
            Ok(()) => return Ok(()),
            Err(error) => {
                let look = target.look_needed(&error);
                if let Some(result) = target.after(&error, look).await {
                    return result;
                }
            }
        }
        core.pause(attempts).await;
        attempts += 1;
    }
}

async fn put(
    core: &ObjectCore,
    lane: LaneId,
    at: Position,
    bytes: &Bytes,
) -> Result<(), HomeError> {
    let mut target = Target {
        core,
        lane,
        at,
        name: names::block(lane, at.segment, at.offset),
        bytes,
        doubtful: false,
    };
    let mut attempts = 0;
    loop {
        let put = core.bucket.put_if_absent(&target.name, bytes.clone());
        match put.await {
            Ok(_) => return Ok(()),
            Err(error) => {
                let look = target.look_needed(&error);
                let there = error.outcome == Outcome::Precondition;
                match target.after(&error, look).await {
                    Some(result) => return result,
                    // It was there and is not any more: whoever took over has removed it.
                    None if there => return Err(core.fenced()),
                    None => {}
                }
            }
        }
        core.pause(attempts).await;
        attempts += 1;
    }
}

impl Target<'_> {
    fn look_needed(&mut self, error: &BucketError) -> bool {
        self.doubtful |= error.outcome == Outcome::Unknown;
        match error.outcome {
            Outcome::Unknown | Outcome::WrongOffset | Outcome::Precondition => true,
            Outcome::Full | Outcome::Refused => self.doubtful,
            Outcome::NotNow | Outcome::NoSpace | Outcome::Absent => false,
        }
    }

    /// What follows from an answer; `None`: the same again.
    async fn after(&self, error: &BucketError, look: bool) -> Option<Result<(), HomeError>> {
        if look {
            match self.look().await {
                Ok(PlaceContent::Ours) => {
                    Counts::add(&self.core.counts.settled);
                    return Some(Ok(()));
                }
                Ok(PlaceContent::Foreign) => return Some(Err(self.core.fenced())),
                Err(error) => return Some(Err(error)),
                Ok(PlaceContent::Free) => {}
            }
        }
        match error.outcome {
            Outcome::Absent => Some(Err(self.core.fenced())),
            Outcome::Full | Outcome::Refused => Some(Err(failed(error))),
            _ => {
                self.core.trouble(error);
                None
            }
        }
    }

    async fn look(&self) -> Result<PlaceContent, HomeError> {
        if self.core.bucket.appends().is_some() {
            self.look_into_object().await
        } else {
            self.look_at_name().await
        }
    }

    async fn look_at_name(&self) -> Result<PlaceContent, HomeError> {
        match self.core.ask(|| self.core.bucket.get(&self.name)).await {
            Ok((there, _)) if there == *self.bytes => Ok(PlaceContent::Ours),
            Ok(_) => Ok(PlaceContent::Foreign),
            Err(error) if error.outcome == Outcome::Absent => Ok(PlaceContent::Free),
            Err(error) => Err(failed(&error)),
        }
    }

    async fn look_into_object(&self) -> Result<PlaceContent, HomeError> {
        let core = self.core;
        let offset = names::HEAD_LEN + self.at.offset;
        let len = self.bytes.len() as u64;
        let stat = core.ask(|| core.bucket.stat(&self.name)).await;
        match stat.map_err(|error| failed(&error))? {
            None => return Ok(PlaceContent::Foreign),
            // A tombstone.
            Some(stat) if stat.len < names::HEAD_LEN => return Ok(PlaceContent::Foreign),
            Some(stat) if stat.len < offset => return Err(lost(self.lane, self.at)),
            Some(stat) if stat.len == offset => return Ok(PlaceContent::Free),
            Some(stat) if stat.len < offset + len => return Ok(PlaceContent::Foreign),
            Some(_) => {}
        }
        match get_at_least(core, (&self.name, offset, len), len).await? {
            Some(there) if there == *self.bytes => Ok(PlaceContent::Ours),
            Some(_) | None => Ok(PlaceContent::Foreign),
        }
    }
}

/// Makes the object of a segment, unless another writer has shut the lane.
pub(super) async fn make_segment(
    core: &ObjectCore,
    lane: LaneId,
    segment: u64,
) -> Result<(), HomeError> {
    let name = names::segment(lane, segment);
    let head = Bytes::copy_from_slice(&names::head(lane, segment, core.nonce));
    let mut attempts = 0;
    // Some providers make an object and fill it in two steps; a first that succeeded leaves the second to do.
    let mut empty = false;
    loop {
        let made = if empty {
            core.bucket.append(&name, 0, head.clone()).await
        } else {
            core.bucket.create(&name, head.clone()).await
        };
        let Err(error) = made else {
            break;
        };
        match error.outcome {
            Outcome::NotNow | Outcome::NoSpace => core.trouble(&error),
            Outcome::Absent if !empty => return Err(failed(&error)),
            Outcome::Absent | Outcome::Full | Outcome::Refused => return Err(failed(&error)),
            Outcome::Unknown | Outcome::Precondition | Outcome::WrongOffset => {
                let there = core
                    .ask(|| core.bucket.get_range(&name, 0, names::HEAD_LEN))
                    .await;
                match there {
                    Ok(there) if there == head => {
                        Counts::add(&core.counts.settled);
                        break;
                    }
                    Ok(there) if there.is_empty() => empty = true,
                    // The answer has ended too early: it is made in one piece.
                    Ok(there) if there.len() < head.len() && head.starts_with(&there) => {}
                    Ok(_) => return Err(core.fenced()),
                    // As for plain objects: it was there, and was removed.
                    Err(gone)
                        if gone.outcome == Outcome::Absent
                            && (empty || error.outcome != Outcome::Unknown) =>
                    {
                        return Err(core.fenced());
                    }
                    Err(gone) if gone.outcome == Outcome::Absent => {}
                    Err(error) => return Err(failed(&error)),
                }
                core.trouble(&error);
            }
        }
        core.pause(attempts).await;
        attempts += 1;
    }
    Counts::add(&core.counts.segments);
    Ok(())
}
