//! What a home was asked for, and what a provider would charge for it.
//!
//! Invariant: every request counts, those that failed or were repeated too: a provider charges for them.
//!
//! Does not: know prices; those are in [`prices`](crate::prices).

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Requests and bytes since the home was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Appends of blocks, repeated ones included.
    pub appends: u64,
    /// Bytes in them.
    pub append_bytes: u64,
    /// Other writes: named things, pieces of side segments, immutable objects, blocks where a provider has no appends.
    pub writes: u64,
    /// Bytes in them.
    pub write_bytes: u64,
    /// Reads of objects' bytes.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Questions for an object's length and state.
    pub heads: u64,
    /// Listings: one for each page.
    pub lists: u64,
    /// Removals and truncations.
    pub deletes: u64,
    /// Logins: S3 Express wants a new session every few minutes.
    pub sessions: u64,
    /// Requests made again after a transient error or a time-out; counted above as well.
    pub retries: u64,
    /// Writes whose reply never came and that turned out to have been stored.
    pub settled: u64,
    /// Bytes that it holds now, if it knows.
    pub stored_bytes: Option<u64>,
}

/// What a provider tells apart when it charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RequestKind {
    /// Bytes at the end of an object that is there.
    Append,
    /// A whole object.
    Put,
    /// An object's bytes.
    Get,
    /// An object's length and state.
    Head,
    /// A page of names.
    List,
    /// A removal.
    Delete,
    /// A login.
    Session,
}

impl RequestKind {
    /// All, in the order of the price list.
    pub const ALL: [RequestKind; 7] = [
        RequestKind::Append,
        RequestKind::Put,
        RequestKind::Get,
        RequestKind::Head,
        RequestKind::List,
        RequestKind::Delete,
        RequestKind::Session,
    ];

    /// As SQL and the price list call it.
    pub fn name(self) -> &'static str {
        match self {
            RequestKind::Append => "append",
            RequestKind::Put => "put",
            RequestKind::Get => "get",
            RequestKind::Head => "head",
            RequestKind::List => "list",
            RequestKind::Delete => "delete",
            RequestKind::Session => "session",
        }
    }
}

/// What one home has been asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HomeUsage {
    /// Which home: its URL without credentials.
    pub home: String,
    /// Its name in the price list.
    pub provider: String,
    /// Requests and bytes since it was opened.
    pub usage: Usage,
}

impl Usage {
    /// How many of a kind.
    pub fn requests(&self, kind: RequestKind) -> u64 {
        match kind {
            RequestKind::Append => self.appends,
            RequestKind::Put => self.writes,
            RequestKind::Get => self.reads,
            RequestKind::Head => self.heads,
            RequestKind::List => self.lists,
            RequestKind::Delete => self.deletes,
            RequestKind::Session => self.sessions,
        }
    }

    /// Bytes moved by requests of a kind; `None` for those that move none worth counting.
    pub fn bytes(&self, kind: RequestKind) -> Option<u64> {
        match kind {
            RequestKind::Append => Some(self.append_bytes),
            RequestKind::Put => Some(self.write_bytes),
            RequestKind::Get => Some(self.read_bytes),
            RequestKind::Head | RequestKind::List | RequestKind::Delete | RequestKind::Session => {
                None
            }
        }
    }

    /// Requests of all kinds.
    pub fn requests_all(&self) -> u64 {
        RequestKind::ALL
            .map(|kind| self.requests(kind))
            .iter()
            .sum()
    }

    /// Bytes sent to the provider.
    pub fn uploaded_bytes(&self) -> u64 {
        self.append_bytes + self.write_bytes
    }

    /// Together with what was asked of the same place before, by a home that is closed. It holds what it holds now.
    pub fn after(&self, before: &Usage) -> Usage {
        Usage {
            appends: self.appends + before.appends,
            append_bytes: self.append_bytes + before.append_bytes,
            writes: self.writes + before.writes,
            write_bytes: self.write_bytes + before.write_bytes,
            reads: self.reads + before.reads,
            read_bytes: self.read_bytes + before.read_bytes,
            heads: self.heads + before.heads,
            lists: self.lists + before.lists,
            deletes: self.deletes + before.deletes,
            sessions: self.sessions + before.sessions,
            retries: self.retries + before.retries,
            settled: self.settled + before.settled,
            stored_bytes: self.stored_bytes,
        }
    }

    /// What came since `before`, an earlier look at the same home. It holds what it holds now.
    pub fn since(&self, before: &Usage) -> Usage {
        Usage {
            appends: self.appends - before.appends,
            append_bytes: self.append_bytes - before.append_bytes,
            writes: self.writes - before.writes,
            write_bytes: self.write_bytes - before.write_bytes,
            reads: self.reads - before.reads,
            read_bytes: self.read_bytes - before.read_bytes,
            heads: self.heads - before.heads,
            lists: self.lists - before.lists,
            deletes: self.deletes - before.deletes,
            sessions: self.sessions - before.sessions,
            retries: self.retries - before.retries,
            settled: self.settled - before.settled,
            stored_bytes: self.stored_bytes,
        }
    }
}

/// What was sent and came back, since a home was opened.
#[derive(Debug, Default)]
pub(crate) struct UsageCounters {
    appends: AtomicU64,
    append_bytes: AtomicU64,
    writes: AtomicU64,
    write_bytes: AtomicU64,
    gets: AtomicU64,
    read_bytes: AtomicU64,
    heads: AtomicU64,
    lists: AtomicU64,
    deletes: AtomicU64,
    sessions: AtomicU64,
}

impl UsageCounters {
    pub(crate) fn count(&self, kind: RequestKind, bytes: u64) {
        let requests = match kind {
            RequestKind::Append => &self.appends,
            RequestKind::Put => &self.writes,
            RequestKind::Get => &self.gets,
            RequestKind::Head => &self.heads,
            RequestKind::List => &self.lists,
            RequestKind::Delete => &self.deletes,
            RequestKind::Session => &self.sessions,
        };
        requests.fetch_add(1, Relaxed);
        match kind {
            RequestKind::Append => self.append_bytes.fetch_add(bytes, Relaxed),
            RequestKind::Put => self.write_bytes.fetch_add(bytes, Relaxed),
            _ => 0,
        };
    }

    /// Bytes that have come.
    pub(crate) fn count_read(&self, bytes: u64) {
        self.read_bytes.fetch_add(bytes, Relaxed);
    }

    pub(crate) fn usage(&self) -> Usage {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        Usage {
            appends: of(&self.appends),
            append_bytes: of(&self.append_bytes),
            writes: of(&self.writes),
            write_bytes: of(&self.write_bytes),
            reads: of(&self.gets),
            read_bytes: of(&self.read_bytes),
            heads: of(&self.heads),
            sessions: of(&self.sessions),
            lists: of(&self.lists),
            deletes: of(&self.deletes),
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::prices::PriceList;

    fn usage() -> Usage {
        Usage {
            appends: 1,
            append_bytes: 2,
            writes: 3,
            write_bytes: 4,
            reads: 5,
            read_bytes: 6,
            heads: 7,
            lists: 8,
            deletes: 9,
            sessions: 10,
            retries: 11,
            settled: 12,
            stored_bytes: Some(13),
        }
    }

    #[test]
    fn every_request_and_byte_is_of_one_kind() {
        let usage = usage();
        let requests = RequestKind::ALL.map(|kind| usage.requests(kind));
        assert_eq!(requests, [1, 3, 5, 7, 8, 9, 10]);
        let bytes = RequestKind::ALL.map(|kind| usage.bytes(kind));
        assert_eq!(bytes, [Some(2), Some(4), Some(6), None, None, None, None]);
        assert_eq!(usage.requests_all(), 43, "retries are counted above");
        assert_eq!(usage.uploaded_bytes(), 6);
    }

    #[test]
    fn of_two_looks_the_difference_is_left() {
        let (nothing, all) = (Usage::default(), usage());
        assert_eq!(all.since(&nothing), all);
        let stored_bytes = all.stored_bytes;
        let none = Usage {
            stored_bytes,
            ..nothing
        };
        assert_eq!(all.since(&all), none);
        assert_eq!(all.after(&all).since(&all), all);
    }

    #[test]
    fn each_kind_has_its_own_price() {
        let list = "dated 2026-01-02\n\
             columns append put get head list delete session upload-gb read-gb stored-gb-month\n\
             p 1 2 4 8 16 32 64 1000 3000 7\n";
        let list = PriceList::built_in().with(list, "f").expect("a good list");
        let price = list.of("p").expect("listed").price;
        let million = |kind| {
            let mut usage = Usage::default();
            let field = match kind {
                RequestKind::Append => &mut usage.appends,
                RequestKind::Put => &mut usage.writes,
                RequestKind::Get => &mut usage.reads,
                RequestKind::Head => &mut usage.heads,
                RequestKind::List => &mut usage.lists,
                RequestKind::Delete => &mut usage.deletes,
                RequestKind::Session => &mut usage.sessions,
            };
            *field = 1_000_000;
            assert_eq!(usage.dollars(&price), usage.dollars_of(kind, &price));
            usage.dollars(&price)
        };
        assert_eq!(
            RequestKind::ALL.map(million),
            [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
        );
        for (bytes, dollars) in [
            (
                Usage {
                    append_bytes: 1_000_000,
                    ..Usage::default()
                },
                1.0,
            ),
            (
                Usage {
                    write_bytes: 1_000_000,
                    ..Usage::default()
                },
                1.0,
            ),
            (
                Usage {
                    read_bytes: 1_000_000,
                    ..Usage::default()
                },
                3.0,
            ),
        ] {
            assert_eq!(bytes.dollars(&price), dollars);
        }
    }

    /// Milliscale, section 2.2: a million appends of 2 MB.
    #[test]
    fn the_example_of_the_paper_costs_what_the_paper_says() {
        let usage = Usage {
            appends: 1_000_000,
            append_bytes: 2_000_000_000_000,
            ..Usage::default()
        };
        let listed = PriceList::built_in();
        let price = listed.of("s3express").expect("listed").price;
        assert!((usage.dollars(&price) - (1.13 + 2_000.0 * 0.0032)).abs() < 1e-9);
    }
}
