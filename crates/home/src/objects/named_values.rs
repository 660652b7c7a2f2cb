//! Small named things: made if absent, replaced if unchanged.
//!
//! Invariants:
//! - A tag stands for one ETag of one name as long as that may still be the thing's state; a forgotten one is a
//!   conflict.
//! - An answer that never came is settled by reading back: what is written names its writer, so equal bytes are ours.
//!   One that has not come within the limit counts as one that never will.

use super::io::{Counts, ObjectCore, failed};
use crate::bucket::{BucketError, BucketFuture, ETag, Outcome};
use crate::{HomeError, Tag};
use bytes::Bytes;
use parking_lot::Mutex;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU32, Ordering};

/// States of a thing that are remembered: whoever expects one that was superseded so often is late in any case.
const STATES_KEPT: usize = 64;

/// Which ETags were seen, by name.
#[derive(Default)]
pub(super) struct Tags(Mutex<Seen>);

#[derive(Default)]
struct Seen {
    last: u64,
    names: HashMap<String, VecDeque<(ETag, Tag)>>,
}

impl Tags {
    /// The tag of a state; a state without a name of its own gets one that nothing is equal to.
    fn of(&self, name: &str, etag: Option<ETag>) -> Tag {
        let seen = &mut *self.0.lock();
        let states = seen.names.entry(name.to_owned()).or_default();
        let Some(etag) = etag else {
            seen.last += 1;
            return Tag(seen.last);
        };
        let known = states.iter().position(|(known, _)| *known == etag);
        let state = match known.and_then(|index| states.remove(index)) {
            Some(state) => state,
            None => {
                seen.last += 1;
                (etag, Tag(seen.last))
            }
        };
        let tag = state.1;
        states.push_back(state);
        if states.len() > STATES_KEPT {
            states.pop_front();
        }
        tag
    }

    fn etag(&self, name: &str, tag: Tag) -> Option<ETag> {
        let seen = self.0.lock();
        let mut states = seen.names.get(name)?.iter();
        let state = states.find(|(_, known)| *known == tag);
        state.map(|(etag, _)| etag.clone())
    }
}

async fn read(core: &ObjectCore, name: &str) -> Result<(Bytes, Option<ETag>), BucketError> {
    let attempts = AtomicU32::new(0);
    let what = format!("read {name}");
    let ask = || -> BucketFuture<'_, _> {
        let attempt = attempts.fetch_add(1, Ordering::Relaxed);
        Box::pin(core.limited(core.bucket.get(name), &what, attempt))
    };
    core.ask(ask).await
}

pub(super) async fn get(
    core: &ObjectCore,
    tags: &Tags,
    name: &str,
) -> Result<Option<(Vec<u8>, Tag)>, HomeError> {
    match read(core, name).await {
        Ok((bytes, etag)) => Ok(Some((bytes.to_vec(), tags.of(name, etag)))),
        Err(error) if error.outcome == Outcome::Absent => Ok(None),
        Err(error) => Err(failed(&error)),
    }
}

/// Writes a thing if it is absent (`expected` is `None`), or in that state.
pub(super) async fn write(
    core: &ObjectCore,
    tags: &Tags,
    name: &str,
    expected: Option<Tag>,
    bytes: Bytes,
) -> Result<Tag, HomeError> {
    let conflict = || HomeError::Conflict(name.to_owned());
    let expected = match expected {
        Some(tag) => Some(tags.etag(name, tag).ok_or_else(conflict)?),
        None => None,
    };
    let what = format!("write {name}");
    let mut attempts = 0;
    let mut doubtful = false;
    loop {
        let request = match &expected {
            Some(etag) => core.bucket.replace(name, etag, bytes.clone()),
            None => core.bucket.put_if_absent(name, bytes.clone()),
        };
        let written = core.limited(request, &what, attempts).await;
        let error = match written {
            Ok(Some(etag)) => return Ok(tags.of(name, Some(etag))),
            // The provider does not say which state this is.
            Ok(None) => {
                let there = read(core, name).await;
                let etag = match there {
                    Ok((there, etag)) if there == bytes => etag,
                    // Someone has replaced it already: written it was.
                    _ => None,
                };
                return Ok(tags.of(name, etag));
            }
            Err(error) => error,
        };
        match error.outcome {
            Outcome::NotNow => {}
            Outcome::Unknown => doubtful = true,
            // Ours is the only attempt there ever was.
            Outcome::Precondition if !doubtful => return Err(conflict()),
            Outcome::Absent if !doubtful => return Err(conflict()),
            Outcome::Precondition | Outcome::Absent => {}
            Outcome::NoSpace if doubtful => {}
            Outcome::WrongOffset | Outcome::Full | Outcome::Refused | Outcome::NoSpace => {
                core.space.note(&error);
                return Err(failed(&error));
            }
        }
        core.trouble(&error);
        if doubtful {
            match read(core, name).await {
                Ok((there, etag)) if there == bytes => {
                    Counts::add(&core.counts.settled);
                    return Ok(tags.of(name, etag));
                }
                Ok((_, etag)) if expected.is_some() && etag == expected => {}
                Ok(_) => return Err(conflict()),
                Err(error) if error.outcome == Outcome::Absent && expected.is_none() => {}
                Err(error) if error.outcome == Outcome::Absent => return Err(conflict()),
                Err(error) => return Err(failed(&error)),
            }
        }
        core.pause(attempts).await;
        attempts += 1;
    }
}
