//! Numbers of objects for who stores something before the manifest says that an epoch is his: each attempt has its own,
//! for ever.
//!
//! What was given away is one small named thing, changed by compare and swap, so two that overlap never get the same,
//! whoever of them has the lease by then:
//!
//! ```text
//! logstead upgrade 1
//! next 0000000780000500
//! crc 89abcdef
//! ```
//!
//! Invariant: the counters of an epoch that were given away only go up, and those below [`COUNTER_MIN`] are given to
//! nobody. Whoever takes some and *then* finds that the home is still his knows that all below belong to attempts that
//! can name nothing any more.
//!
//! Does not: know who may write, or remove anything.

use crate::error::CheckpointError;
use logstead_home::{HomeError, NamedValues, ObjectId};
use logstead_types::Epoch;
use std::ops::Range;

/// The name of the thing.
pub(crate) const NAME: &str = "upgrade";
/// Counters that are given away begin with this one: a server's own end there
/// ([`ObjectIdAllocator`](crate::ObjectIdAllocator)).
pub(crate) const COUNTER_MIN: u32 = 1 << 31;
/// How often a change that others were faster with is tried again.
const TRIES: u32 = 20;
/// How often bytes that do not decode are read again: an answer that something in between cut short looks the same.
const LOOKS: u32 = 4;

fn encode(next: ObjectId) -> Vec<u8> {
    let text = format!("logstead upgrade 1\nnext {next}\n");
    let crc = crc32c::crc32c(text.as_bytes());
    format!("{text}crc {crc:08x}\n").into_bytes()
}

fn decode(bytes: &[u8]) -> Option<ObjectId> {
    let text = std::str::from_utf8(bytes).ok()?;
    let rest = text.strip_prefix("logstead upgrade 1\nnext ")?;
    let (next, _) = rest.split_once('\n')?;
    // One form for each, its checksum included.
    ObjectId::parse(next).filter(|next| encode(*next) == bytes)
}

/// Takes `count` numbers of an epoch that nobody had before, nor will have. After an error they are lost.
pub(crate) fn reserve(
    names: &dyn NamedValues,
    epoch: Epoch,
    count: u32,
) -> Result<Range<u32>, CheckpointError> {
    let (mut tries, mut looks) = (0, 0);
    loop {
        let there = names.get(NAME)?;
        let next = match &there {
            None => None,
            Some((bytes, _)) => match decode(bytes) {
                Some(next) => Some(next),
                None if looks < LOOKS => {
                    looks += 1;
                    continue;
                }
                None => {
                    return Err(CheckpointError::Misuse(
                        "what tells object numbers that upgrades have used is damaged",
                    ));
                }
            },
        };
        if next.is_some_and(|next| next.epoch() > epoch) {
            return Err(CheckpointError::Overtaken);
        }
        let of_epoch = next.filter(|next| next.epoch() == epoch);
        let first = of_epoch.map_or(COUNTER_MIN, |next| next.counter().max(COUNTER_MIN));
        let end = first.checked_add(count);
        let end = end.ok_or(CheckpointError::Misuse("no object numbers are left"))?;
        let bytes = encode(ObjectId::new(epoch, end));
        let stored = match there {
            None => names.put_if_absent(NAME, &bytes),
            Some((_, tag)) => names.compare_and_swap(NAME, tag, &bytes),
        };
        match stored {
            Ok(_) => return Ok(first..end),
            // Perhaps our own, whose answer was lost: then they are nobody's.
            Err(HomeError::Conflict(_)) if tries < TRIES => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Was anything ever stored in this home under such numbers, or may it have been?
pub(crate) fn has_reserved_numbers(names: &dyn NamedValues) -> Result<bool, HomeError> {
    Ok(names.get(NAME)?.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_home::MemoryHome;

    #[test]
    fn it_has_one_form_and_no_other() {
        let next = ObjectId::new(Epoch(7), COUNTER_MIN + 1_280);
        let bytes = encode(next);
        assert_eq!(
            std::str::from_utf8(&bytes).map(|text| text.lines().nth(1)),
            Ok(Some("next 0000000780000500"))
        );
        assert_eq!(decode(&bytes), Some(next));
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut bad = bytes.clone();
                bad[at] ^= 1 << bit;
                assert_eq!(decode(&bad), None, "byte {at} bit {bit}");
            }
            assert_eq!(decode(&bytes[..at]), None);
        }
    }

    #[test]
    fn each_attempt_has_numbers_of_its_own() {
        let home = MemoryHome::new(1 << 16);
        let min = COUNTER_MIN;
        assert_eq!(reserve(&home, Epoch(7), 10).unwrap(), min..min + 10);
        assert_eq!(reserve(&home, Epoch(7), 5).unwrap(), min + 10..min + 15);
        assert_eq!(reserve(&home, Epoch(8), 5).unwrap(), min..min + 5);
        // A later epoch is there: whoever asks for an earlier one has been overtaken.
        let late = reserve(&home, Epoch(7), 5).unwrap_err();
        assert!(matches!(late, CheckpointError::Overtaken), "{late}");
        let none_left = reserve(&home, Epoch(8), u32::MAX - min).unwrap_err();
        assert!(
            matches!(none_left, CheckpointError::Misuse(_)),
            "{none_left}"
        );
    }
}
