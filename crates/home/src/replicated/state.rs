//! What the register of a replicated home holds, and how a child keeps its part of it.
//!
//! ```text
//! logstead replica 1\n            so that nobody takes it for the manifest of a home of its own; 2 where the volume is
//!                                 divided among groups, which who knows version 1 only does not know
//! u64 member                      drawn when the child became one; never changes
//! u64 u64 promised                counter, proposer
//! u64 u64 accepted                zeros: nothing yet, and the record ends here
//! u64 home                        drawn with the first value; the same in every member
//! u8 ack                          0 all, 1 majority
//! u32 count, members              each u64 member, u8 complete, text URL
//! u32 count, members              those of the list that is being left, while the list changes
//! u32 count, names                each text name, u64 tag, u32 length, bytes
//! u32 crc                         CRC-32C of everything before it
//! ```
//! Numbers are little endian, a text is its length (u32) and UTF-8.
//!
//! Does not: know which values may follow one another ([`caspaxos`](super::caspaxos)).

use super::caspaxos::{AcceptorState, Ballot};
use crate::placement;
use std::collections::BTreeMap;

const MAGIC: &[u8] = b"logstead replica 1\n";
/// Of a volume that is divided: who does not know groups must not take it for one that has all in one.
const MAGIC_DIVIDED: &[u8] = b"logstead replica 2\n";

/// When an append is durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WriteConcern {
    /// When every member has it.
    #[default]
    All,
    /// When a majority of the members has it.
    Majority,
}

impl std::str::FromStr for WriteConcern {
    type Err = String;

    fn from_str(text: &str) -> Result<WriteConcern, String> {
        match text.to_ascii_lowercase().as_str() {
            "all" => Ok(WriteConcern::All),
            "majority" => Ok(WriteConcern::Majority),
            _ => Err(format!("\"{text}\" is neither all nor majority")),
        }
    }
}

impl WriteConcern {
    /// How many of so many members must have an append.
    pub(super) fn needed(self, members: usize) -> usize {
        match self {
            WriteConcern::All => members,
            WriteConcern::Majority => members / 2 + 1,
        }
    }
}

/// A member, as the register has it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Member {
    pub(super) id: u64,
    /// It has every block that was acknowledged, but for the end of what the last server wrote.
    pub(super) complete: bool,
    /// For people.
    pub(super) url: String,
}

/// A named thing.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct NamedValue {
    /// Drawn anew with each state.
    pub(super) tag: u64,
    pub(super) bytes: Vec<u8>,
}

/// The register's value.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct RegisterState {
    pub(super) home: u64,
    pub(super) ack: WriteConcern,
    pub(super) members: Vec<Member>,
    /// The members before, while the list changes; else empty.
    pub(super) leaving: Vec<Member>,
    pub(super) names: BTreeMap<String, NamedValue>,
}

/// What a child keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StoredAcceptor {
    pub(super) member: u64,
    pub(super) record: AcceptorState<RegisterState>,
}

impl StoredAcceptor {
    pub(super) fn encode(&self) -> Vec<u8> {
        let accepted_state = self.record.accepted.as_ref().map(|(_, state)| state);
        let groups = accepted_state.and_then(|state| state.names.get(placement::RECORD));
        let mut out = match groups.is_some_and(|groups| placement::is_divided(&groups.bytes)) {
            true => MAGIC_DIVIDED.to_vec(),
            false => MAGIC.to_vec(),
        };
        let mut number = |number: u64| out.extend_from_slice(&number.to_le_bytes());
        number(self.member);
        let accepted = self.record.accepted_at();
        for ballot in [self.record.promised, accepted] {
            number(ballot.counter);
            number(ballot.proposer);
        }
        if let Some((_, state)) = &self.record.accepted {
            state.encode(&mut out);
        }
        let crc = crc32c::crc32c(&out);
        out.extend_from_slice(&crc.to_le_bytes());
        out
    }

    /// `Err` says what is wrong with it, of "it".
    pub(super) fn decode(bytes: &[u8]) -> Result<StoredAcceptor, &'static str> {
        if !bytes.starts_with(MAGIC) && !bytes.starts_with(MAGIC_DIVIDED) {
            return Err("it is something else");
        }
        let split = bytes.len().checked_sub(4).ok_or("it is cut")?;
        let (body, crc) = bytes.split_at(split);
        if crc != crc32c::crc32c(body).to_le_bytes() {
            return Err("its checksum is wrong");
        }
        let mut from = Reader(body.get(MAGIC.len()..).unwrap_or(&[]));
        from.kept().ok_or("it is malformed")
    }
}

/// The named thing in the record of one of several homes, for who reads that one by itself. The outer `None`: it is no
/// such record, or a damaged one.
pub fn named_in_record(record: &[u8], name: &str) -> Option<Option<Vec<u8>>> {
    let kept = StoredAcceptor::decode(record).ok()?;
    let state = kept.record.accepted.map(|(_, state)| state);
    let named = state.and_then(|mut state| state.names.remove(name));
    Some(named.map(|named| named.bytes))
}

/// The members of several homes, as one of them has them in its record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedMembers {
    /// Their URLs, in the order of the list.
    pub urls: Vec<String>,
    /// Which of them has the record; `None`: it is none of them any more.
    pub own: Option<usize>,
}

/// The members in the record of one of several homes, as far as that one knows. `None`: it is no such record, or has no
/// list yet.
pub fn members_in_record(record: &[u8]) -> Option<RecordedMembers> {
    let kept = StoredAcceptor::decode(record).ok()?;
    let (_, state) = kept.record.accepted?;
    let is_own = |member: &Member| member.id == kept.member;
    Some(RecordedMembers {
        own: state.members.iter().position(is_own),
        urls: state.members.into_iter().map(|member| member.url).collect(),
    })
}

impl RegisterState {
    fn encode(&self, out: &mut Vec<u8>) {
        let text = |out: &mut Vec<u8>, bytes: &[u8]| {
            out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(bytes);
        };
        out.extend_from_slice(&self.home.to_le_bytes());
        out.push(u8::from(self.ack == WriteConcern::Majority));
        for members in [&self.members, &self.leaving] {
            out.extend_from_slice(&(members.len() as u32).to_le_bytes());
            for member in members {
                out.extend_from_slice(&member.id.to_le_bytes());
                out.push(u8::from(member.complete));
                text(out, member.url.as_bytes());
            }
        }
        out.extend_from_slice(&(self.names.len() as u32).to_le_bytes());
        for (name, named) in &self.names {
            text(out, name.as_bytes());
            out.extend_from_slice(&named.tag.to_le_bytes());
            text(out, &named.bytes);
        }
    }
}

/// Takes a record apart; `None` where it ends too early or is none.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn take(&mut self, len: usize) -> Option<&'b [u8]> {
        let (head, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(head)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take(8)?.try_into().ok().map(u64::from_le_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take(4)?.try_into().ok().map(u32::from_le_bytes)
    }

    fn flag(&mut self) -> Option<bool> {
        match self.take(1)? {
            [0] => Some(false),
            [1] => Some(true),
            _ => None,
        }
    }

    fn bytes(&mut self) -> Option<&'b [u8]> {
        let len = usize::try_from(self.u32()?).ok()?;
        self.take(len)
    }

    fn text(&mut self) -> Option<String> {
        String::from_utf8(self.bytes()?.to_vec()).ok()
    }

    fn ballot(&mut self) -> Option<Ballot> {
        let counter = self.u64()?;
        let proposer = self.u64()?;
        Some(Ballot { counter, proposer })
    }

    fn members(&mut self) -> Option<Vec<Member>> {
        let count = self.u32()?;
        let mut members = Vec::new();
        for _ in 0..count {
            members.push(Member {
                id: self.u64()?,
                complete: self.flag()?,
                url: self.text()?,
            });
        }
        Some(members)
    }

    fn state(&mut self) -> Option<RegisterState> {
        let mut state = RegisterState {
            home: self.u64()?,
            ack: match self.flag()? {
                true => WriteConcern::Majority,
                false => WriteConcern::All,
            },
            members: self.members()?,
            leaving: self.members()?,
            names: BTreeMap::new(),
        };
        for _ in 0..self.u32()? {
            let name = self.text()?;
            let tag = self.u64()?;
            let bytes = self.bytes()?.to_vec();
            state.names.insert(name, NamedValue { tag, bytes });
        }
        Some(state)
    }

    fn kept(&mut self) -> Option<StoredAcceptor> {
        let member = self.u64()?;
        let promised = self.ballot()?;
        let accepted = self.ballot()?;
        let accepted = match accepted == Ballot::default() {
            true => None,
            false => Some((accepted, self.state()?)),
        };
        let record = AcceptorState { promised, accepted };
        self.0
            .is_empty()
            .then_some(StoredAcceptor { member, record })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> StoredAcceptor {
        let member = |id, complete| Member {
            id,
            complete,
            url: format!("s3://bucket/{id}"),
        };
        let named = NamedValue {
            tag: 77,
            bytes: b"bytes".to_vec(),
        };
        let state = RegisterState {
            home: 5,
            ack: WriteConcern::Majority,
            members: vec![member(1, true), member(2, false)],
            leaving: vec![member(3, true)],
            names: BTreeMap::from([("manifest".to_owned(), named)]),
        };
        let ballot = |counter| Ballot {
            counter,
            proposer: 9,
        };
        StoredAcceptor {
            member: 2,
            record: AcceptorState {
                promised: ballot(4),
                accepted: Some((ballot(3), state)),
            },
        }
    }

    #[test]
    fn records_read_back() {
        let empty = StoredAcceptor {
            member: 4,
            record: AcceptorState::default(),
        };
        let named = |kept: &StoredAcceptor, name| named_in_record(&kept.encode(), name);
        assert_eq!(named(&kept(), "manifest"), Some(Some(b"bytes".to_vec())));
        assert_eq!(named(&kept(), "other"), Some(None));
        assert_eq!(named(&empty, "manifest"), Some(None));
        assert_eq!(named_in_record(b"logstead manifest 1\n", "manifest"), None);
        let members = members_in_record(&kept().encode()).expect("it has a list");
        let (_, state) = kept().record.accepted.expect("it has a value");
        let urls: Vec<String> = state.members.iter().map(|m| m.url.clone()).collect();
        assert_eq!(members.urls, urls);
        let own = state.members.iter().position(|m| m.id == kept().member);
        assert_eq!(members.own, own);
        assert_eq!(members_in_record(&empty.encode()), None);
        for kept in [kept(), empty] {
            assert_eq!(StoredAcceptor::decode(&kept.encode()), Ok(kept));
        }
    }

    #[test]
    fn every_changed_byte_and_every_cut_shows() {
        let bytes = kept().encode();
        for at in 0..bytes.len() {
            assert!(StoredAcceptor::decode(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(StoredAcceptor::decode(&changed).is_err(), "changed at {at}");
        }
        assert!(StoredAcceptor::decode(b"logstead manifest 1\n").is_err());
    }
}
