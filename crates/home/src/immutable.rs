//! What an immutable object is called, and what every home says about one in the same words.
//!
//! Does not: know what objects hold (checkpoints: pages, directories and records).

use crate::HomeError;
use logstead_types::Epoch;
use std::fmt;

/// Largest object that a home takes.
pub const OBJECT_BYTES_MAX: usize = 64 << 20;

/// Number of an immutable object: the epoch of the server that makes it, and a counter. A server that was overtaken never
/// meets a later one's numbers.
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
