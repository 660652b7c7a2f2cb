//! Table locks, held to the end of the transaction.
//!
//! Read and Write (what statements take) cost one atomic addition on a counter of the worker's own and one look at a
//! flag. Share and Exclusive (what DDL takes) raise the flag, which sends everybody else to the mutex, and add up the
//! counters. One side publishes then looks, so does the other: one of them sees the other.
//!
//! A lock that cannot be had is an *intent*: it keeps the flag up, so that new Read and Write locks queue behind it
//! (those who hold a lock of the table already do not, or they would wait for themselves).

use std::sync::atomic::{AtomicU32, Ordering};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use logstead_types::WorkerId;
use parking_lot::Mutex;

use crate::state::TxnId;

/// How a table is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLock {
    /// Rows are read; conflicts with Exclusive.
    Read,
    /// Rows are written; conflicts with Share and Exclusive.
    Write,
    /// Nobody writes rows; conflicts with Write and Exclusive.
    Share,
    /// Nobody else uses the table.
    Exclusive,
}

impl TableLock {
    fn is_strong(self) -> bool {
        self >= TableLock::Share
    }

    /// Do two transactions' locks conflict?
    pub(crate) fn conflicts(self, other: TableLock) -> bool {
        use TableLock::{Exclusive, Share, Write};
        matches!(
            (self, other),
            (Exclusive, _) | (_, Exclusive) | (Share, Write) | (Write, Share)
        )
    }
}

/// What one transaction holds of one table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Held {
    read: bool,
    write: bool,
    share: bool,
    exclusive: bool,
}

impl Held {
    fn any(self) -> bool {
        self.read || self.write || self.share || self.exclusive
    }

    #[inline]
    pub(crate) fn covers(self, lock: TableLock) -> bool {
        self.exclusive
            || match lock {
                TableLock::Read => self.any(),
                TableLock::Write => self.write,
                TableLock::Share => self.share,
                TableLock::Exclusive => false,
            }
    }

    /// Does what is held stand against `lock` of another transaction?
    pub(crate) fn conflicts(self, lock: TableLock) -> bool {
        (self.read && TableLock::Read.conflicts(lock))
            || (self.write && TableLock::Write.conflicts(lock))
            || (self.share && TableLock::Share.conflicts(lock))
            || (self.exclusive && TableLock::Exclusive.conflicts(lock))
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

/// Read and Write locks taken on one worker.
#[derive(Default)]
struct Weak {
    read: AtomicU32,
    write: AtomicU32,
}

/// The locks of one table.
pub(crate) struct TableLocks {
    weak: Box<[CachePadded<Weak>]>,
    /// How many hold or intend a strong lock.
    strong_count: AtomicU32,
    strong: Mutex<Strong>,
}

/// A lock could not be had; `releases` is where a wait begins.
pub(crate) struct Refused {
    pub(crate) holder: Option<TxnId>,
    pub(crate) releases: u64,
}

impl TableLocks {
    pub(crate) fn new(workers: usize) -> TableLocks {
        TableLocks {
            weak: (0..workers).map(|_| CachePadded::default()).collect(),
            strong_count: AtomicU32::new(0),
            strong: Mutex::default(),
        }
    }

    fn counter(&self, worker: WorkerId, lock: TableLock) -> &AtomicU32 {
        let weak = &self.weak[usize::from(worker.0)];
        if lock == TableLock::Read {
            &weak.read
        } else {
            &weak.write
        }
    }

    /// Takes `lock` or says who stands against it. A refused strong lock stays behind as an intent until it is taken
    /// or [`TableLocks::give_up`] is called.
    #[inline]
    pub(crate) fn acquire(
        &self,
        txn: TxnId,
        worker: WorkerId,
        lock: TableLock,
        held: &mut Held,
    ) -> Result<(), Refused> {
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
            return Err(Refused {
                holder: Some(holder),
                releases: strong.releases,
            });
        }
        // Under the mutex nobody adds up counters.
        counter.fetch_add(1, Ordering::SeqCst);
        Self::note(held, lock);
        Ok(())
    }

    fn note(held: &mut Held, lock: TableLock) {
        match lock {
            TableLock::Read => held.read = true,
            TableLock::Write => held.write = true,
            TableLock::Share => held.share = true,
            TableLock::Exclusive => held.exclusive = true,
        }
    }

    fn acquire_strong(
        &self,
        txn: TxnId,
        _worker: WorkerId,
        lock: TableLock,
        held: &mut Held,
    ) -> Result<(), Refused> {
        let mut strong = self.strong.lock();
        if !strong.intents.iter().any(|(t, l)| *t == txn && *l == lock) {
            strong.intents.push((txn, lock));
            self.strong_count.fetch_add(1, Ordering::SeqCst);
        }
        let (mut readers, mut writers) = (0u32, 0u32);
        for weak in &self.weak {
            readers += weak.read.load(Ordering::SeqCst);
            writers += weak.write.load(Ordering::SeqCst);
        }
        readers -= u32::from(held.read).min(readers);
        writers -= u32::from(held.write).min(writers);
        let holder = strong.stands_against(txn, lock, false);
        let weak_in_the_way = writers > 0 || (lock == TableLock::Exclusive && readers > 0);
        if holder.is_some() || weak_in_the_way {
            return Err(Refused {
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

    /// Gives back everything `txn` holds.
    #[inline]
    pub(crate) fn release(&self, txn: TxnId, worker: WorkerId, held: Held) {
        if held.read {
            self.counter(worker, TableLock::Read)
                .fetch_sub(1, Ordering::SeqCst);
        }
        if held.write {
            self.counter(worker, TableLock::Write)
                .fetch_sub(1, Ordering::SeqCst);
        }
        if self.strong_count.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut strong = self.strong.lock();
        let before = strong.holders.len();
        strong.holders.retain(|(t, _)| *t != txn);
        let gone = before - strong.holders.len();
        self.strong_count.fetch_sub(gone as u32, Ordering::SeqCst);
        let woken = strong.released(gone == 0);
        drop(strong);
        wake(woken);
    }

    /// Has nothing been released since?
    pub(crate) fn holds_since(&self, releases: u64) -> bool {
        self.strong.lock().releases == releases
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
    fn compatibility_upgrade_and_intent() {
        let locks = TableLocks::new(2);
        let (mut a, mut b) = (Held::default(), Held::default());
        assert!(locks.acquire(A, W, TableLock::Read, &mut a).is_ok());
        assert!(locks.acquire(A, W, TableLock::Write, &mut a).is_ok());
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::Write, &mut b)
                .is_ok()
        );
        assert!(
            locks.acquire(A, W, TableLock::Share, &mut a).is_err(),
            "B writes"
        );
        let mut c = Held::default();
        assert!(
            locks
                .acquire(TxnId(3), W, TableLock::Write, &mut c)
                .is_err(),
            "queues behind the intent"
        );
        assert!(locks.acquire(TxnId(3), W, TableLock::Read, &mut c).is_ok());
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::Read, &mut b)
                .is_ok(),
            "held already"
        );
        locks.release(B, WorkerId(1), b);
        assert!(locks.acquire(A, W, TableLock::Share, &mut a).is_ok());
        assert!(
            locks.acquire(A, W, TableLock::Exclusive, &mut a).is_err(),
            "a reader"
        );
        locks.release(TxnId(3), W, c);
        assert!(
            locks.acquire(A, W, TableLock::Exclusive, &mut a).is_ok(),
            "upgrade"
        );
        let mut d = Held::default();
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::Read, &mut d)
                .is_err()
        );
        locks.release(A, W, a);
        assert!(
            locks
                .acquire(B, WorkerId(1), TableLock::Read, &mut d)
                .is_ok()
        );
        assert_eq!(locks.strong_count.load(Ordering::SeqCst), 0);
    }

    #[test]
    fn giving_up_an_intent_lets_others_in() {
        let locks = TableLocks::new(1);
        let (mut a, mut b, mut c) = (Held::default(), Held::default(), Held::default());
        assert!(locks.acquire(A, W, TableLock::Read, &mut a).is_ok());
        assert!(locks.acquire(B, W, TableLock::Exclusive, &mut b).is_err());
        assert!(locks.acquire(TxnId(3), W, TableLock::Read, &mut c).is_err());
        locks.give_up(B);
        assert!(locks.acquire(TxnId(3), W, TableLock::Read, &mut c).is_ok());
    }
}
