//! What an immutable object is called, and what every home says about one in the same words.
//!
//! Does not: know what objects hold (checkpoints: pages, directories and records).

use crate::error::HomeError;
use logstead_types::Epoch;
use std::fmt;

/// Largest object that a home takes.
pub const OBJECT_BYTES_MAX: usize = 64 << 20;

/// Number of an immutable object: the epoch of the server that makes it, and a counter. A server that was overtaken
/// never meets a later one's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct ObjectId(pub u64);

impl ObjectId {
    /// The object with this number among those of an epoch.
    pub const fn new(epoch: Epoch, counter: u32) -> ObjectId {
        ObjectId((epoch.get() as u64) << 32 | counter as u64)
    }

    /// The epoch of the server that made it.
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> 32) as u32)
    }

    /// Its number among those of its epoch.
    pub const fn counter(self) -> u32 {
        self.0 as u32
    }

    /// The id that [`Display`](fmt::Display) has written: 16 hexadecimal digits, in lower case.
    pub fn parse(name: &str) -> Option<ObjectId> {
        let id = ObjectId(u64::from_str_radix(name, 16).ok()?);
        // One name for each: no sign, no upper case, no digit too few.
        (id.to_string() == name).then_some(id)
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

/// An immutable object as it lies in the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ObjectInfo {
    /// Its number.
    pub id: ObjectId,
    /// Its length in bytes.
    pub size_bytes: u64,
}

/// What is wrong with an object's bytes, if anything is, by checksums in them. Bytes that carry none are right as far
/// as anybody knows.
pub type DamageCheck = fn(&[u8]) -> Option<String>;

/// Reads immutable objects. Any number of threads.
pub trait ObjectReader: Send + Sync {
    /// Reads `into.len()` bytes of an object from `offset`; less only at its end, 0 behind it. [`HomeError::Missing`]
    /// if there is none.
    fn read_object(&self, id: ObjectId, offset: u64, into: &mut [u8]) -> Result<usize, HomeError>;

    /// Where good bytes may be found when [`read_object`](Self::read_object) gave damaged ones; `None` where those are
    /// all there are.
    fn object_copies(&self) -> Option<&dyn ObjectCopies>;
}

/// The copies of objects, one by one: on several homes, or in the store behind a cache.
pub trait ObjectCopies: Send + Sync {
    /// How many copies of an object can be asked for at most, counted from 0.
    fn object_copy_count(&self) -> usize;

    /// Reads like [`ObjectReader::read_object`], from one copy: for whoever finds bytes damaged. One that cannot be
    /// reached is an error.
    fn read_object_copy(
        &self,
        copy: usize,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;
}

/// Stores, lists and removes immutable objects. A put is atomic, and durable when it reports success; a full home
/// shows there ([`HomeError::is_disk_full`]).
pub trait ImmutableObjects: ObjectReader {
    /// Stores an immutable object of up to [`OBJECT_BYTES_MAX`] bytes; it is whole and durable when this returns. One
    /// that is there with the same bytes is fine, with others it is a [`HomeError::Conflict`]. After another error, or
    /// a crash, it may be there, whole, or not, and may still come up later where requests can be delayed; never a part
    /// of it. Any number of threads.
    fn put_object(&self, id: ObjectId, bytes: &[u8]) -> Result<(), HomeError>;

    /// The objects, by number. What is put or removed meanwhile may or may not be among them.
    fn list_objects(&self) -> Result<Vec<ObjectInfo>, HomeError>;

    /// Removes an object, whose number is never used again. Removing a missing one is fine. What was removed may come
    /// back: with a crash shortly afterwards, with a put that was delayed on its way, or with a copy that was away.
    fn remove_object(&self, id: ObjectId) -> Result<(), HomeError>;
}

/// What somebody has seen of a damaged copy of an object: it is replaced only if it is still that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeenCopy {
    /// It could not be read.
    Unreadable,
    /// Bytes.
    Bytes {
        /// How many.
        len: u64,
        /// Their SHA-256.
        digest: [u8; 32],
    },
}

impl SeenCopy {
    /// A copy with these bytes; `None`: it cannot be read.
    pub fn of(bytes: Option<&[u8]>) -> SeenCopy {
        let Some(bytes) = bytes else {
            return SeenCopy::Unreadable;
        };
        let mut digest = [0; 32];
        let computed = ring::digest::digest(&ring::digest::SHA256, bytes);
        digest.copy_from_slice(computed.as_ref());
        SeenCopy::Bytes {
            len: bytes.len() as u64,
            digest,
        }
    }
}

/// Puts better bytes in the place of a damaged copy of an object, in one step: what a storage node offers.
pub trait ObjectRepair: Send + Sync {
    /// Reads like [`ObjectReader::read_object`], but from the disk, and not what a machine has of it in memory; where
    /// the home cannot tell the two apart, like that.
    fn read_object_from_disk(
        &self,
        id: ObjectId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<usize, HomeError>;

    /// Can it replace an object? One of an older version cannot.
    fn can_replace_objects(&self) -> Result<bool, HomeError>;

    /// Replaces an object for the server of this epoch, if it is still what was `seen` of it, and does nothing to one
    /// that has these bytes already. After an error, or a crash, it is as it was or as it is to be. Durable when it
    /// reports success.
    ///
    /// # Errors
    /// [`HomeError::Missing`]: it is not there, and stays so. [`HomeError::Conflict`]: it is something else than what
    /// was seen. [`HomeError::Fenced`]: a later server has begun.
    fn replace_object(
        &self,
        epoch: Epoch,
        id: ObjectId,
        seen: SeenCopy,
        bytes: &[u8],
    ) -> Result<(), HomeError>;
}

pub(crate) fn check_size(bytes: &[u8]) -> Result<(), HomeError> {
    if bytes.len() > OBJECT_BYTES_MAX {
        return Err(HomeError::Unsupported("objects larger than 64 MiB"));
    }
    Ok(())
}

/// There is one with other bytes.
pub(crate) fn conflict(id: ObjectId) -> HomeError {
    HomeError::Conflict(format!("object {id}"))
}

pub(crate) fn missing(id: ObjectId) -> HomeError {
    HomeError::Missing(format!("object {id}"))
}

/// Judges a put by what is there: true if that is nothing, so that the bytes are to be stored.
pub(crate) fn is_new(there: Option<&[u8]>, id: ObjectId, bytes: &[u8]) -> Result<bool, HomeError> {
    match there {
        Some(same) if same == bytes => Ok(false),
        Some(_) => Err(conflict(id)),
        None => Ok(true),
    }
}

/// Copies what there is of an object from `offset` on.
pub(crate) fn copy_from(bytes: &[u8], offset: u64, into: &mut [u8]) -> usize {
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let rest = bytes.get(start..).unwrap_or(&[]);
    let count = into.len().min(rest.len());
    into[..count].copy_from_slice(&rest[..count]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_an_epoch_and_a_counter_and_has_one_name() {
        let id = ObjectId::new(Epoch(7), 0xfeed);
        assert_eq!(id, ObjectId(0x0000_0007_0000_feed));
        assert_eq!((id.epoch(), id.counter()), (Epoch(7), 0xfeed));
        assert_eq!(id.to_string(), "000000070000feed");
        assert_eq!(ObjectId::parse("000000070000feed"), Some(id));
        for other in ["", "70000feed", "+00000070000feed", "000000070000FEED"] {
            assert_eq!(ObjectId::parse(other), None, "{other}");
        }
        assert!(ObjectId::new(Epoch(7), u32::MAX) < ObjectId::new(Epoch(8), 0));
    }
}
