//! Which server writes a home's log: a number that it leaves there, for who is about to follow it by a stream.
//!
//! The number of a database and of an epoch do not tell a server from one that works on a copy of the home. So the
//! server leaves a number of its own at the home, as a named value, once a replica asks who it is; and the replica
//! looks
//! for it at the home that it reads. It is the same only if that is the same home.
//!
//! Nothing else reads it. A later server leaves its own there.

use logstead_home::{HomeError, NamedValues};

/// The named value.
const NAME: &str = "server";
/// Two servers that both think the log is theirs may write it in turns.
const TRIES: usize = 3;

/// Leaves `identity` there, unless it is there.
pub fn publish(names: &dyn NamedValues, identity: u64) -> Result<(), HomeError> {
    let bytes = identity.to_be_bytes();
    for _ in 0..TRIES {
        let put = match names.get(NAME)? {
            Some((there, _)) if there == bytes => return Ok(()),
            Some((_, tag)) => names.compare_and_swap(NAME, tag, &bytes),
            None => names.put_if_absent(NAME, &bytes),
        };
        match put {
            Err(HomeError::Conflict(_)) => {}
            put => return put.map(|_| ()),
        }
    }
    Err(HomeError::Conflict(NAME.to_owned()))
}

/// The number that is there.
pub fn published(names: &dyn NamedValues) -> Result<Option<u64>, HomeError> {
    let there = names.get(NAME)?;
    let bytes = there.and_then(|(bytes, _)| <[u8; 8]>::try_from(bytes).ok());
    Ok(bytes.map(u64::from_be_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_home::{LogHome, MemoryHome};

    #[test]
    fn the_last_server_that_was_asked_is_there() {
        let home = LogHome::from(MemoryHome::new(1 << 20));
        let names = home.names.as_ref();
        assert_eq!(published(names).unwrap(), None);
        for identity in [7, 7, 8, u64::MAX] {
            publish(names, identity).unwrap();
            assert_eq!(published(names).unwrap(), Some(identity));
        }
        // Of another home it is another one.
        let other = LogHome::from(MemoryHome::new(1 << 20));
        assert_eq!(published(other.names.as_ref()).unwrap(), None);
    }
}
