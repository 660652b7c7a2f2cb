//! Handing row locks over: whom the next holder of a row depends on.
//!
//! Row locks are free at pre-commit. Who changed the row has left a version, which tells. Who only locked it leaves
//! nothing in the row, and notes its CSN with the row's number and the lock's strength, before anybody can take the row
//! ([`logstead_commit::Handovers`]). Who takes a lock looks for all strengths that conflict with it, once it has it.
//! The table says first whether anybody has left something at all: where rows are only changed, that is one load.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldhash::fast::FixedState;
use logstead_commit::{IsCommitted, PriorLockHolder};
use logstead_types::{Csn, Rid};

use crate::row_lock::{RowLock, RowLocks};
use crate::table::Table;
use crate::txn::Txn;

const ALL: [RowLock; 4] = [
    RowLock::KeyShare,
    RowLock::Share,
    RowLock::NoKeyUpdate,
    RowLock::Update,
];

/// CSNs that a table's word is changed for once; a power of two.
const STRETCH: u64 = 1024;

fn hash(table: &Table, rid: Rid) -> u64 {
    FixedState::default().hash_one((table.id().0, rid.0))
}

impl RowLocks {
    fn newest(&self) -> Csn {
        Csn(self.handed_newest.load(Ordering::SeqCst))
    }

    /// Somebody leaves a lock with this CSN. What is stored is the last CSN of its stretch of [`STRETCH`], so that most
    /// who come find it there and leave the word alone, which all workers read. Whoever looks because of that for a
    /// lock with a higher CSN finds none.
    fn handed(&self, csn: Csn) {
        let newest = csn.0 | (STRETCH - 1);
        if self.handed_newest.load(Ordering::SeqCst) < newest {
            self.handed_newest.fetch_max(newest, Ordering::SeqCst);
            #[cfg(test)]
            self.handed_stores.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Txn {
    /// The row's lock is about to be free, and no version tells of `csn`.
    pub(crate) fn hand_over_row(&self, table: &Table, rid: Rid, lock: RowLock, csn: Option<Csn>) {
        let Some(csn) = csn.filter(|_| !table.is_temporary()) else {
            return;
        };
        let engine = self.engine();
        let by = PriorLockHolder::By(csn);
        let locks = &engine.rows_handed_over;
        locks.note(hash(table, rid), lock as usize, by, &*engine.path);
        table.row_locks.handed(csn);
    }

    /// It has locked the row with `lock`: it depends on those who had it before.
    #[inline]
    pub(crate) fn inherit_row(&mut self, table: &Arc<Table>, rid: Rid, lock: RowLock) {
        let newest = table.row_locks.newest();
        if newest > Csn::ZERO && newest >= self.engine().path.horizon() {
            self.inherit_row_from(table, rid, lock);
        }
    }

    #[cold]
    fn inherit_row_from(&mut self, table: &Arc<Table>, rid: Rid, lock: RowLock) {
        let hash = hash(table, rid);
        for before in ALL.into_iter().filter(|before| lock.conflicts(*before)) {
            let engine = self.engine();
            let locks = &engine.rows_handed_over;
            if let Some(from) = locks.from(hash, before as usize, &*engine.path) {
                self.inherit(from);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who looks always finds enough, and all who come have written to the word a few times together.
    #[test]
    fn a_tables_word_is_left_alone_by_most_who_hand_over() {
        let locks = RowLocks::default();
        assert_eq!(locks.newest(), Csn::ZERO);
        // Workers commit out of order.
        for csn in (1..=20_000u64).map(|csn| csn ^ 5) {
            locks.handed(Csn(csn));
            assert!(locks.newest() >= Csn(csn));
        }
        let stores = locks.handed_stores.load(Ordering::SeqCst);
        assert!((1..=20).contains(&stores), "{stores}");
    }
}
