//! Table locks, held to the end of the transaction or until it rolls back to a savepoint before.
//!
//! Weak ones (what statements take) cost one atomic addition on a counter of the worker's own and one look at a
//! flag. Strong ones (what DDL and LOCK TABLE take) raise the flag, which sends everybody else to the mutex, and add up
//! the counters. One side publishes then looks, so does the other: one of them sees the other.
//!
//! A lock that cannot be had is an *intent*: it keeps the flag up, so that new weak locks queue behind it
//! (those who hold a lock of the table already do not, or they would wait for themselves).
//!
//! Locks are free at pre-commit, before what their holder did is durable. So whoever gives one back leaves its CSN, by
//! mode, before anybody can take a lock that conflicts, and who takes one looks at what was left once it has it: weak
//! ones are left on the worker's own counters, where only strong ones are looking for them, strong ones under the
//! mutex. One CSN stands for all up to it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use logstead_types::{Csn, WorkerId};
use parking_lot::Mutex;

use crate::tree::interleave::point;
use crate::txn_id::TxnId;

/// How a table is locked: PostgreSQL's eight modes, weakest first. The first three are weak: statements take them, and
/// they never conflict among each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLock {
    /// Rows are read.
    AccessShare,
    /// Rows are locked.
    RowShare,
    /// Rows are written.
    RowExclusive,
    /// One at a time, beside readers and writers.
    ShareUpdateExclusive,
    /// Nobody writes rows.
    Share,
    /// Nobody else writes rows or keeps others from it.
    ShareRowExclusive,
    /// Others only read rows.
    Exclusive,
    /// Nobody else uses the table.
    AccessExclusive,
}

/// By mode, the modes it conflicts with: bit n for the n-th.
const CONFLICTS: [u8; 8] = [
    0b1000_0000,
    0b1100_0000,
    0b1111_0000,
    0b1111_1000,
    0b1110_1100,
    0b1111_1100,
    0b1111_1110,
    0b1111_1111,
];
const WEAK: [TableLock; 3] = [
    TableLock::AccessShare,
    TableLock::RowShare,
    TableLock::RowExclusive,
];
const STRONG: [TableLock; 5] = [
    TableLock::ShareUpdateExclusive,
    TableLock::Share,
    TableLock::ShareRowExclusive,
    TableLock::Exclusive,
    TableLock::AccessExclusive,
];

impl TableLock {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn conflicting(self) -> u8 {
        CONFLICTS[self as usize]
    }

    /// Is it one of those that conflict with weak ones or themselves?
    pub(crate) fn is_strong(self) -> bool {
        self > TableLock::RowExclusive
    }

    /// Do two transactions' locks conflict?
    pub(crate) fn conflicts(self, other: TableLock) -> bool {
        self.conflicting() & other.bit() != 0
    }
}

/// What one transaction holds of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableLockMask(u8);

impl TableLockMask {
    pub(crate) fn one(lock: TableLock) -> TableLockMask {
        TableLockMask(lock.bit())
    }

    fn has(self, lock: TableLock) -> bool {
        self.0 & lock.bit() != 0
    }

    pub(crate) fn any(self) -> bool {
        self.0 != 0
    }

    /// Keeps something held out all that `lock` would?
    #[inline]
    pub(crate) fn covers(self, lock: TableLock) -> bool {
        if self.has(lock) {
            return true;
        }
        let mut left = self.0;
        while left != 0 {
            let held = left.trailing_zeros() as usize;
            if lock.conflicting() & !CONFLICTS[held] == 0 {
                return true;
            }
            left &= left - 1;
        }
        false
    }

    /// Does what is held stand against `lock` of another transaction?
    pub fn conflicts(self, lock: TableLock) -> bool {
        lock.conflicting() & self.0 != 0
    }

    /// Without what was given back.
    pub(crate) fn without(self, gone: TableLockMask) -> TableLockMask {
        TableLockMask(self.0 & !gone.0)
    }
}

struct Waiter {
    txn: TxnId,
    strong: bool,
    waker: Waker,
}

#[derive(Default)]
struct Strong {
    holders: Vec<(TxnId, TableLock)>,
    intents: Vec<(TxnId, TableLock)>,
    waiters: Vec<Waiter>,
    /// Moves whenever something was released: who waits since before looks again.
    releases: u64,
    /// By mode, the newest of those that committed and gave it back.
    left: [Csn; 8],
}

impl Strong {
    fn stands_against(&self, txn: TxnId, lock: TableLock, intents_too: bool) -> Option<TxnId> {
        let other = |(holder, held): &&(TxnId, TableLock)| *holder != txn && lock.conflicts(*held);
        let held = self.holders.iter().find(other);
        let held = if intents_too {
            held.or_else(|| self.intents.iter().find(other))
        } else {
            held
        };
        held.map(|(holder, _)| *holder)
    }

    /// Takes out the waiters to wake.
    fn released(&mut self, strong_only: bool) -> Vec<Waker> {
        self.releases += 1;
        let mut woken = Vec::new();
        self.waiters.retain(|w| {
            let wake = w.strong || !strong_only;
            if wake {
                woken.push(w.waker.clone());
            }
            !wake
        });
        woken
    }
}

fn wake(wakers: Vec<Waker>) {
    for waker in wakers {
        waker.wake();
    }
}

/// Weak locks taken on one worker, by mode.
#[derive(Default)]
struct Weak {
    counts: [AtomicU32; WEAK.len()],
    /// The newest of those that committed and gave it back. Only the worker writes it, and its CSNs only grow.
    left: [AtomicU64; WEAK.len()],
}

/// The locks of one table.
pub(crate) struct TableLocks {
    weak: Box<[CachePadded<Weak>]>,
    /// How many hold or intend a strong lock.
    strong_count: AtomicU32,
    /// The newest that committed and gave a strong lock back: tells who takes a weak one whether to look under the
    /// mutex.
    strong_left: AtomicU64,
    strong: Mutex<Strong>,
}

/// A lock could not be had; `releases` is where a wait begins.
pub(crate) struct TableLockConflict {
    pub(crate) holder: Option<TxnId>,
    pub(crate) releases: u64,
}

impl TableLocks {
    pub(crate) fn new(workers: usize) -> TableLocks {
        TableLocks {
            weak: (0..workers).map(|_| CachePadded::default()).collect(),
            strong_count: AtomicU32::new(0),
            strong_left: AtomicU64::new(0),
            strong: Mutex::default(),
        }
    }

    fn counter(&self, worker: WorkerId, lock: TableLock) -> &AtomicU32 {
        &self.weak[usize::from(worker.0)].counts[lock as usize]
    }

    /// Takes `lock` or says who stands against it. A refused strong lock stays behind as an intent until it is taken
    /// or [`TableLocks::give_up`] is called.
    #[inline]
    pub(crate) fn acquire(
        &self,
        txn: TxnId,
        worker: WorkerId,
        lock: TableLock,
        held: &mut TableLockMask,
    ) -> Result<(), TableLockConflict> {
        if held.covers(lock) {
            return Ok(());
        }
        if lock.is_strong() {
            return self.acquire_strong(txn, worker, lock, held);
        }
        let counter = self.counter(worker, lock);
        if self.strong_count.load(Ordering::SeqCst) == 0 {
            counter.fetch_add(1, Ordering::SeqCst);
            if self.strong_count.load(Ordering::SeqCst) == 0 {
                Self::note(held, lock);
                return Ok(());
            }
            counter.fetch_sub(1, Ordering::SeqCst);
            // A strong lock may have counted us in between.
            let woken = self.strong.lock().released(true);
            wake(woken);
        }
        let strong = self.strong.lock();
        if let Some(holder) = strong.stands_against(txn, lock, !held.any()) {
            return Err(TableLockConflict {
                holder: Some(holder),
                releases: strong.releases,
            });
        }
        // Under the mutex nobody adds up counters.
        counter.fetch_add(1, Ordering::SeqCst);
        Self::note(held, lock);
        Ok(())
    }

    fn note(held: &mut TableLockMask, lock: TableLock) {
        held.0 |= lock.bit();
    }

    fn acquire_strong(
        &self,
        txn: TxnId,
        _worker: WorkerId,
        lock: TableLock,
        held: &mut TableLockMask,
    ) -> Result<(), TableLockConflict> {
        let mut strong = self.strong.lock();
        if !strong.intents.iter().any(|(t, l)| *t == txn && *l == lock) {
            strong.intents.push((txn, lock));
            self.strong_count.fetch_add(1, Ordering::SeqCst);
        }
        let in_the_way = |weak: TableLock| {
            let counters = self.weak.iter().map(|w| &w.counts[weak as usize]);
            let count: u32 = counters.map(|c| c.load(Ordering::SeqCst)).sum();
            lock.conflicts(weak) && count > u32::from(held.has(weak))
        };
        let weak_in_the_way = WEAK.into_iter().any(in_the_way);
        let holder = strong.stands_against(txn, lock, false);
        if holder.is_some() || weak_in_the_way {
            return Err(TableLockConflict {
                holder,
                releases: strong.releases,
            });
        }
        strong.intents.retain(|(t, l)| !(*t == txn && *l == lock));
        strong.holders.push((txn, lock));
        Self::note(held, lock);
        Ok(())
    }

    /// Drops the intents `txn` left behind.
    pub(crate) fn give_up(&self, txn: TxnId) {
        let mut strong = self.strong.lock();
        let before = strong.intents.len();
        strong.intents.retain(|(t, _)| *t != txn);
        let gone = before - strong.intents.len();
        if gone > 0 {
            self.strong_count.fetch_sub(gone as u32, Ordering::SeqCst);
            let woken = strong.released(false);
            drop(strong);
            wake(woken);
        }
    }

    /// The newest of those that had a conflicting lock before, if they have committed anything that is not durable:
    /// asked by who has `lock` now, who depends on everything up to it. Below the horizon everything is durable, so a
    /// strong lock that was had long ago costs those who read and write no look under the mutex.
    #[inline]
    pub(crate) fn handed_over(&self, lock: TableLock, horizon: impl Fn() -> Csn) -> Option<Csn> {
        if !lock.is_strong() {
            let left = Csn(self.strong_left.load(Ordering::SeqCst));
            if left == Csn::ZERO || left < horizon() {
                return None;
            }
        }
        self.left_by_conflicting(lock)
            .filter(|newest| *newest >= horizon())
    }

    #[cold]
    fn left_by_conflicting(&self, lock: TableLock) -> Option<Csn> {
        let strong = self.strong.lock().left;
        let strong = strong.iter().enumerate();
        let strong = strong.filter(|(mode, _)| lock.conflicting() & 1 << mode != 0);
        let mut newest = strong.map(|(_, csn)| *csn).max();
        for weak in WEAK.into_iter().filter(|weak| lock.conflicts(*weak)) {
            let left = self.weak.iter().map(|w| &w.left[weak as usize]);
            newest = newest.max(left.map(|csn| Csn(csn.load(Ordering::SeqCst))).max());
        }
        newest.filter(|csn| *csn > Csn::ZERO)
    }

    /// Gives back what `txn` holds of it, or a part of that. `csn`: what it has committed, if anything.
    #[inline]
    pub(crate) fn release(
        &self,
        txn: TxnId,
        worker: WorkerId,
        held: TableLockMask,
        csn: Option<Csn>,
    ) {
        for lock in WEAK {
            if held.has(lock) {
                if let Some(csn) = csn {
                    let left = &self.weak[usize::from(worker.0)].left[lock as usize];
                    // The counter publishes it.
                    left.store(csn.0, Ordering::Release);
                }
                self.counter(worker, lock).fetch_sub(1, Ordering::SeqCst);
                point();
            }
        }
        if self.strong_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut strong = self.strong.lock();
        let before = strong.holders.len();
        if let Some(csn) = csn {
            for lock in STRONG.into_iter().filter(|lock| held.has(*lock)) {
                let left = &mut strong.left[lock as usize];
                *left = csn.max(*left);
                self.strong_left.fetch_max(csn.0, Ordering::SeqCst);
            }
        }
        strong
            .holders
            .retain(|(t, lock)| *t != txn || !held.has(*lock));
        let gone = before - strong.holders.len();
        self.strong_count.fetch_sub(gone as u32, Ordering::SeqCst);
        let woken = strong.released(gone == 0);
        drop(strong);
        wake(woken);
        point();
    }

    /// Has nothing been released since?
    pub(crate) fn holds_since(&self, releases: u64) -> bool {
        self.strong.lock().releases == releases
    }

    /// Is the waiter registered and not woken?
    pub(crate) fn is_waiting(&self, txn: TxnId) -> bool {
        self.strong.lock().waiters.iter().any(|w| w.txn == txn)
    }

    /// Registers a waiter; it looks again afterwards.
    pub(crate) fn register(&self, txn: TxnId, lock: TableLock, waker: &Waker) {
        let mut strong = self.strong.lock();
        match strong.waiters.iter_mut().find(|w| w.txn == txn) {
            Some(waiter) => waiter.waker.clone_from(waker),
            None => strong.waiters.push(Waiter {
                txn,
                strong: lock.is_strong(),
                waker: waker.clone(),
            }),
        }
    }

    /// Takes a waiter out.
    pub(crate) fn deregister(&self, txn: TxnId) {
        self.strong.lock().waiters.retain(|w| w.txn != txn);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: TxnId = TxnId(1);
    const B: TxnId = TxnId(2);
    const W: WorkerId = WorkerId(0);

    #[test]
    fn a_lock_that_was_had_by_who_is_durable_tells_nothing_and_asks_no_mutex() {
        let locks = TableLocks::new(1);
        let mut a = TableLockMask::default();
        assert!(locks.acquire(A, W, TableLock::Share, &mut a).is_ok());
        locks.release(A, W, a, Some(Csn(5)));
        for horizon in [1, 5].map(Csn) {
            let told = locks.handed_over(TableLock::RowExclusive, || horizon);
            assert_eq!(told, Some(Csn(5)), "{horizon} is not above it");
        }
        let _held_by_another = locks.strong.lock();
        assert_eq!(locks.handed_over(TableLock::RowExclusive, || Csn(6)), None);
    }

    #[test]
    fn compatibility_upgrade_and_intent() {
        let locks = TableLocks::new(2);
        let (mut a, mut b) = (TableLockMask::default(), TableLockMask::default());
        assert!(locks.acquire(A, W, TableLock::AccessShare, &mut a).is_ok());
        assert!(locks.acquire(A, W, TableLock::RowExclusive, &mut a).is_ok());
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::RowExclusive, &mut b)
                .is_ok()
        );
        assert!(
            locks.acquire(A, W, TableLock::Share, &mut a).is_err(),
            "B writes"
        );
        let mut c = TableLockMask::default();
        assert!(
            locks
                .acquire(TxnId(3), W, TableLock::RowExclusive, &mut c)
                .is_err(),
            "queues behind the intent"
        );
        assert!(
            locks
                .acquire(TxnId(3), W, TableLock::AccessShare, &mut c)
                .is_ok()
        );
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::AccessShare, &mut b)
                .is_ok(),
            "held already"
        );
        locks.release(B, WorkerId(1), b, None);
        assert!(locks.acquire(A, W, TableLock::Share, &mut a).is_ok());
        assert!(
            locks
                .acquire(A, W, TableLock::AccessExclusive, &mut a)
                .is_err(),
            "a reader"
        );
        locks.release(TxnId(3), W, c, None);
        assert!(
            locks
                .acquire(A, W, TableLock::AccessExclusive, &mut a)
                .is_ok(),
            "upgrade"
        );
        let mut d = TableLockMask::default();
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::AccessShare, &mut d)
                .is_err()
        );
        locks.release(A, W, a, None);
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::AccessShare, &mut d)
                .is_ok()
        );
        assert_eq!(locks.strong_count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn conflicts_are_symmetric_and_as_postgresqls() {
        const ALL: [TableLock; 8] = [
            TableLock::AccessShare,
            TableLock::RowShare,
            TableLock::RowExclusive,
            TableLock::ShareUpdateExclusive,
            TableLock::Share,
            TableLock::ShareRowExclusive,
            TableLock::Exclusive,
            TableLock::AccessExclusive,
        ];
        let counts: Vec<u32> = ALL.iter().map(|l| l.conflicting().count_ones()).collect();
        assert_eq!(counts, [1, 2, 4, 5, 5, 6, 7, 8]);
        for a in ALL {
            for b in ALL {
                assert_eq!(a.conflicts(b), b.conflicts(a), "{a:?} {b:?}");
                // What the table says is what happens, whoever comes first.
                let locks = TableLocks::new(2);
                let (mut of_a, mut of_b) = (TableLockMask::default(), TableLockMask::default());
                assert!(locks.acquire(A, W, a, &mut of_a).is_ok());
                let got = locks.acquire(B, WorkerId(1), b, &mut of_b);
                assert_eq!(got.is_err(), a.conflicts(b), "{a:?} {b:?}");
                let covered = of_a.covers(b);
                assert!(!covered || b.conflicting() & !a.conflicting() == 0);
                assert!(a != b || covered);
                locks.give_up(B);
                locks.release(B, WorkerId(1), of_b, None);
                locks.release(A, W, of_a, None);
                assert_eq!(locks.strong_count.load(Ordering::SeqCst), 0);
            }
        }
    }

    #[test]
    fn giving_up_an_intent_lets_others_in() {
        let locks = TableLocks::new(1);
        let (mut a, mut b, mut c) = (
            TableLockMask::default(),
            TableLockMask::default(),
            TableLockMask::default(),
        );
        assert!(locks.acquire(A, W, TableLock::AccessShare, &mut a).is_ok());
        assert!(
            locks
                .acquire(B, W, TableLock::AccessExclusive, &mut b)
                .is_err()
        );
        assert!(
            locks
                .acquire(TxnId(3), W, TableLock::AccessShare, &mut c)
                .is_err()
        );
        locks.give_up(B);
        assert!(
            locks
                .acquire(TxnId(3), W, TableLock::AccessShare, &mut c)
                .is_ok()
        );
    }
}
