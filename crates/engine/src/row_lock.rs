//! Row locks: how strong they are, and which stand against which.

/// How a row is locked, weakest first. What a transaction does to a row locks it too: an update that changes no key of
/// a unique index is [`RowLock::NoKeyUpdate`], one that does and a delete are [`RowLock::Update`].
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
}

#[cfg(test)]
mod tests {
    use super::RowLock::{self, KeyShare, NoKeyUpdate, Share, Update};

    #[test]
    fn conflicts_are_postgresqls() {
        const ALL: [RowLock; 4] = [KeyShare, Share, NoKeyUpdate, Update];
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
}
