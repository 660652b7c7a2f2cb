//! Row locks: how strong they are, which stand against which, and where they are kept.
//!
//! The exclusive strengths ([`RowLock::NoKeyUpdate`], [`RowLock::Update`]) are versions at the top of the row's chain,
//! which one transaction at a time can have: what it wrote, or a version that is only a lock. The shared ones
//! ([`RowLock::KeyShare`], [`RowLock::Share`]) can have many holders; they stand in the table's [`RowLocks`], and the
//! row's chunk counts its rows that have some, so that a writer pays one load where there are none.
//! [`exclusive_and_shared`] is the protocol by which the two kinds always see each other.
//!
//! Who has to wait enters the row's queue, in the order of arrival; see [`queue`](RowLocks) and `txn::lock_wait`.
//!
//! Invariants:
//! - R1 Of two transactions that hold conflicting locks of a row at the same time, one has ended (and is just giving
//!   its locks back).
//! - R2 A chunk's counter is at least the number of its rows that have shared holders.
//! - R3 Shared locks are noted among the transaction's writes in the order they were taken, with what was held before:
//!   rolling back to a savepoint takes them back in reverse.
//! - R4 Whoever takes a lock depends on all who held a conflicting one before and wrote something, here or elsewhere:
//!   by the version they left, or, if they only locked the row, by what they noted before they gave it back
//!   (`txn::row_lock::handover`).
//!
//! Does not: take locks or give them back (`txn::row_lock`).

pub(crate) mod exclusive_and_shared;
#[cfg(test)]
mod model;
mod table;

pub(crate) use table::{NextWaiter, RowLocks, Shard};

/// How a row is locked, weakest first. What a transaction does to a row locks it too: an update that changes no key of
/// a unique index is [`RowLock::NoKeyUpdate`], one that does and a delete are [`RowLock::Update`].
///
/// A stronger lock keeps out whatever a weaker one keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RowLock {
    /// The row stays and keeps its keys: what a foreign key needs of the row it references.
    KeyShare,
    /// Nobody changes the row.
    Share,
    /// Nobody else changes or share-locks the row; its keys stay.
    NoKeyUpdate,
    /// Nobody else locks the row in any way.
    Update,
}

impl RowLock {
    /// Do two transactions' locks of one row conflict?
    pub fn conflicts(self, other: RowLock) -> bool {
        use RowLock::{KeyShare, NoKeyUpdate, Share, Update};
        match self {
            KeyShare => other == Update,
            Share => other >= NoKeyUpdate,
            NoKeyUpdate => other >= Share,
            Update => true,
        }
    }

    /// Can several transactions hold it at once?
    pub(crate) fn is_shared(self) -> bool {
        self <= RowLock::Share
    }
}

#[cfg(test)]
mod tests {
    use super::RowLock::{self, KeyShare, NoKeyUpdate, Share, Update};

    const ALL: [RowLock; 4] = [KeyShare, Share, NoKeyUpdate, Update];

    #[test]
    fn conflicts_are_postgresqls() {
        let table = ALL.map(|a| ALL.map(|b| a.conflicts(b)));
        assert_eq!(
            table,
            [
                [false, false, false, true],
                [false, false, true, true],
                [false, true, true, true],
                [true, true, true, true],
            ]
        );
    }

    /// Queues and upgrades rely on it.
    #[test]
    fn a_stronger_lock_keeps_out_all_that_a_weaker_one_does() {
        for weak in ALL {
            for strong in ALL.into_iter().filter(|s| *s >= weak) {
                for other in ALL {
                    assert!(
                        !weak.conflicts(other) || strong.conflicts(other),
                        "{weak:?} {strong:?} {other:?}"
                    );
                }
            }
        }
    }
}
