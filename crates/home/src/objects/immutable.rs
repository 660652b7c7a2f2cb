//! Immutable objects: one object of the bucket each, put if absent.
//!
//! Invariants:
//! - `Ok` is told only of bytes that the provider has said to hold, or that were read back and compared.
//! - No name ever gets other bytes: each write is *put if absent*, so a request that arrives late finds the object
//!   there, or puts the very bytes that were meant. (After a removal it may bring an object back, which the collection
//!   of dead ones meets again.)
//! - A refusal is judged by what is there: the object with the same bytes is ours, or as good as ours.

use super::io::{Counts, ObjectCore, failed};
use super::names;
use super::read::get_to_end;
use crate::bucket::Outcome;
use crate::immutable::{conflict, missing};
use crate::{HomeError, OBJECT_BYTES_MAX, ObjectId, ObjectInfo};
use bytes::Bytes;

/// What lies under an object's name, compared with what shall be there.
enum ExistingObject {
    Same,
    Different,
    Missing,
}

async fn compare(
    core: &ObjectCore,
    name: &str,
    bytes: &Bytes,
) -> Result<ExistingObject, HomeError> {
    // One byte more shows an object that is longer.
    let len = bytes.len() as u64 + 1;
    match get_to_end(core, (name, 0, len)).await? {
        Some(there) if there == bytes => Ok(ExistingObject::Same),
        Some(_) => Ok(ExistingObject::Different),
        None => Ok(ExistingObject::Missing),
    }
}

pub(super) async fn put(core: &ObjectCore, id: ObjectId, bytes: Bytes) -> Result<(), HomeError> {
    let name = names::object(id);
    let mut attempts = 0;
    let mut doubtful = false;
    loop {
        let error = match core.bucket.put_if_absent(&name, bytes.clone()).await {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match error.outcome {
            Outcome::NotNow => {}
            Outcome::NoSpace if doubtful => {}
            Outcome::NoSpace => {
                core.space.refused();
                // What was kept in reserve is for this.
                if !core.space.give_way(core).await {
                    return Err(failed(&error));
                }
            }
            Outcome::Unknown | Outcome::Precondition => {
                doubtful |= error.outcome == Outcome::Unknown;
                match compare(core, &name, &bytes).await? {
                    ExistingObject::Same => {
                        if doubtful {
                            Counts::add(&core.counts.settled);
                        }
                        return Ok(());
                    }
                    ExistingObject::Different => return Err(conflict(id)),
                    // It did not act, or not yet; or somebody has removed what was there just now.
                    ExistingObject::Missing => {}
                }
            }
            Outcome::Absent | Outcome::WrongOffset | Outcome::Full | Outcome::Refused => {
                return Err(failed(&error));
            }
        }
        core.trouble(&error);
        core.pause(attempts).await;
        attempts += 1;
    }
}

pub(super) async fn read(
    core: &ObjectCore,
    id: ObjectId,
    offset: u64,
    len: u64,
) -> Result<Bytes, HomeError> {
    let name = names::object(id);
    // No object goes further, and not every server understands the largest numbers.
    let offset = offset.min(OBJECT_BYTES_MAX as u64);
    // Asked for nothing, a bucket answers without looking.
    match get_to_end(core, (&name, offset, len.max(1))).await? {
        Some(bytes) if len == 0 => Ok(bytes.slice(..0)),
        Some(bytes) => Ok(bytes),
        None => Err(missing(id)),
    }
}

pub(super) async fn list(core: &ObjectCore) -> Result<Vec<ObjectInfo>, HomeError> {
    let entries = core.ask(|| core.bucket.list(names::OBJECTS)).await;
    let entries = entries.map_err(|error| failed(&error))?;
    let info = |entry: crate::bucket::ListEntry| {
        Some(ObjectInfo {
            id: names::parse_object(&entry.name)?,
            size_bytes: entry.len,
        })
    };
    // In order of their names, which is that of their numbers.
    Ok(entries.into_iter().filter_map(info).collect())
}

pub(super) async fn remove(core: &ObjectCore, id: ObjectId) -> Result<(), HomeError> {
    let name = names::object(id);
    let removed = core.ask(|| core.bucket.delete(&name)).await;
    removed.map_err(|error| failed(&error))
}
