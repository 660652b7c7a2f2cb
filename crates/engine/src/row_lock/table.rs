//! A table's shared row locks and the queues of those who wait for rows.
//!
//! Both are kept by row, in shards with a mutex each, made when the first is needed: a table whose rows nobody shares
//! or waits for pays a pointer. A lock costs its bucket, some 25 bytes; what a bulk of locks had allocated is given
//! back when they go.
//!
//! Of a divided table a shard has rows of one partition only, so instances that keep to their rows never meet in one.
//! Where a row's locks are must not change while somebody has one: the rule is chosen when the shards are made, once.
//!
//! The queue. Who is blocked enters it behind those who came before, but before all who hold nothing of the row if it
//! holds something itself: nobody gets past it otherwise. It notes the row with the transaction that is in its way.
//! When that one gives locks back, the *first* of the queue is woken and tries again; so the row goes to who waited
//! longest. A newcomer that finds the row free takes it: waiting in line for somebody who still has to wake up would
//! make busy rows slower, and the queue keeps its order.
//!
//! Why nobody is forgotten:
//! - Who was woken and leaves the queue, with the lock or without, wakes the first; if all the others conflict with the
//!   lock it has now, it notes the row for the moment it gives it back instead.
//! - Who leaves before it was woken wakes nobody: it has noted the row with its obstacle, which will wake the first.
//! - Who is woken and blocked again has noted the row with the new obstacle, and passes the wake on to the next behind
//!   it that wants less or holds something itself. Any other could not succeed where it did not: it conflicts with the
//!   same obstacle, which is not its own, and when that goes the first is woken again.
//! - Who waits looks at the row once more after it has noted it with the obstacle (T13).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::Waker;

use crossbeam_utils::CachePadded;
use foldhash::fast::FixedState;
use logstead_checkpoint::CHUNK_SLOTS;
use logstead_types::Rid;
use parking_lot::{Mutex, MutexGuard};

use super::RowLock;
use crate::partition::VIRTUAL_PARTITIONS;
use crate::txn_id::TxnId;
use crate::txn_state::TxnState;

/// Shards of a table that is not divided.
const SHARDS: usize = 16;
/// A map that once was larger and is nearly empty gives its memory back; one below this is not worth the work.
const SHRINK_CAPACITY_MIN: usize = 1024;

type Holder = (Arc<TxnState>, RowLock);

/// Who shares a row. Nearly always one.
enum Holders {
    One(Holder),
    #[expect(
        clippy::box_collection,
        reason = "rows with one holder are many: a Vec in place would double their size"
    )]
    Many(Box<Vec<Holder>>),
}

impl Holders {
    fn as_slice(&self) -> &[Holder] {
        match self {
            Holders::One(holder) => std::slice::from_ref(holder),
            Holders::Many(holders) => holders,
        }
    }

    fn find(&mut self, txn: TxnId) -> Option<&mut RowLock> {
        let found = match self {
            Holders::One(holder) => Some(holder).filter(|h| h.0.id() == txn),
            Holders::Many(holders) => holders.iter_mut().find(|h| h.0.id() == txn),
        };
        found.map(|(_, lock)| lock)
    }

    fn add(&mut self, holder: Holder) {
        match self {
            Holders::Many(holders) => holders.push(holder),
            Holders::One(first) => {
                let first = (first.0.clone(), first.1);
                *self = Holders::Many(Box::new(vec![first, holder]));
            }
        }
    }

    /// Takes one out; true if nobody is left.
    fn remove(&mut self, txn: TxnId) -> bool {
        match self {
            Holders::One(holder) => holder.0.id() == txn,
            Holders::Many(holders) => {
                holders.retain(|(state, _)| state.id() != txn);
                holders.is_empty()
            }
        }
    }
}

/// One who waits for a row.
struct Waiter {
    txn: TxnId,
    lock: RowLock,
    /// Holds something of the row already.
    holds: bool,
    /// Told to try, or just trying; else it has noted the row with what is in its way.
    woken: bool,
    waker: Waker,
}

/// Shared locks and queues of some rows.
#[derive(Default)]
pub(crate) struct Shard {
    holders: HashMap<Rid, Holders, FixedState>,
    queues: HashMap<Rid, Vec<Waiter>, FixedState>,
}

fn shrink<V>(map: &mut HashMap<Rid, V, FixedState>) {
    if map.capacity() >= SHRINK_CAPACITY_MIN && map.len() < map.capacity() / 8 {
        map.shrink_to(map.len() * 2);
    }
}

impl Shard {
    /// A holder other than `txn` whose lock conflicts. One that has ended is just giving it back.
    pub(crate) fn conflict(&self, rid: Rid, txn: TxnId, lock: RowLock) -> Option<&Arc<TxnState>> {
        let holders = self.holders.get(&rid)?.as_slice();
        holders
            .iter()
            .find(|(state, held)| {
                lock.conflicts(*held) && state.id() != txn && state.is_unsettled()
            })
            .map(|(state, _)| state)
    }

    /// All of them.
    pub(crate) fn conflicts(
        &self,
        rid: Rid,
        txn: TxnId,
        lock: RowLock,
    ) -> impl Iterator<Item = TxnId> {
        let holders = self.holders.get(&rid).map_or(&[][..], Holders::as_slice);
        holders
            .iter()
            .filter(move |(state, held)| {
                lock.conflicts(*held) && state.id() != txn && state.is_unsettled()
            })
            .map(|(state, _)| state.id())
    }

    /// What `txn` shares of the row.
    pub(crate) fn held(&mut self, rid: Rid, txn: TxnId) -> Option<RowLock> {
        self.holders.get_mut(&rid)?.find(txn).copied()
    }

    /// Enters a holder, or raises what it holds. Gives what it held before, and whether the row had no holder.
    pub(crate) fn enter(
        &mut self,
        rid: Rid,
        state: &Arc<TxnState>,
        lock: RowLock,
    ) -> (Option<RowLock>, bool) {
        match self.holders.entry(rid) {
            Entry::Vacant(entry) => {
                entry.insert(Holders::One((state.clone(), lock)));
                (None, true)
            }
            Entry::Occupied(mut entry) => match entry.get_mut().find(state.id()) {
                Some(held) => {
                    let before = *held;
                    *held = before.max(lock);
                    (Some(before), false)
                }
                None => {
                    entry.get_mut().add((state.clone(), lock));
                    (None, false)
                }
            },
        }
    }

    /// Sets a holder back to what it held before. True if the row has no holder any more.
    pub(crate) fn set_back(&mut self, rid: Rid, txn: TxnId, before: Option<RowLock>) -> bool {
        let Entry::Occupied(mut entry) = self.holders.entry(rid) else {
            return false;
        };
        if let Some(before) = before {
            if let Some(held) = entry.get_mut().find(txn) {
                *held = before;
            }
            return false;
        }
        if !entry.get_mut().remove(txn) {
            return false;
        }
        entry.remove();
        shrink(&mut self.holders);
        true
    }

    /// Puts a waiter into the row's queue, or renews its waker. True if it was there already.
    pub(crate) fn enqueue(
        &mut self,
        rid: Rid,
        txn: TxnId,
        lock: RowLock,
        holds: bool,
        waker: &Waker,
    ) -> bool {
        let queue = self.queues.entry(rid).or_default();
        if let Some(waiter) = queue.iter_mut().find(|w| w.txn == txn) {
            waiter.waker.clone_from(waker);
            waiter.woken = false;
            waiter.lock = lock;
            waiter.holds = holds;
            return true;
        }
        let at = if holds {
            queue.iter().take_while(|w| w.holds).count()
        } else {
            queue.len()
        };
        let waiter = Waiter {
            txn,
            lock,
            holds,
            woken: false,
            waker: waker.clone(),
        };
        queue.insert(at, waiter);
        false
    }

    /// Was the waiter told to try again? If not, it is from now on woken by `waker`. One that is not queued is free.
    pub(crate) fn take_wake(&mut self, rid: Rid, txn: TxnId, waker: &Waker) -> bool {
        let queue = self.queues.get_mut(&rid);
        match queue.and_then(|q| q.iter_mut().find(|w| w.txn == txn)) {
            None => true,
            Some(waiter) if waiter.woken => true,
            Some(waiter) => {
                waiter.waker.clone_from(waker);
                false
            }
        }
    }

    /// What the waiter met is gone already: it tries now.
    pub(crate) fn try_now(&mut self, rid: Rid, txn: TxnId) {
        let queue = self.queues.get_mut(&rid);
        if let Some(waiter) = queue.and_then(|q| q.iter_mut().find(|w| w.txn == txn)) {
            waiter.woken = true;
        }
    }

    fn wake_at(queue: &mut [Waiter], at: usize) -> Option<Waker> {
        let waiter = queue.get_mut(at)?;
        waiter.woken = true;
        Some(waiter.waker.clone())
    }

    /// Marks the first of the queue as woken; its waker is for the caller to call, without the mutex.
    #[must_use]
    fn wake_first(&mut self, rid: Rid) -> Option<Waker> {
        Self::wake_at(self.queues.get_mut(&rid)?, 0)
    }

    /// Who gets the wake that `txn` could not use.
    #[must_use]
    fn pass_on(&mut self, rid: Rid, txn: TxnId) -> Option<Waker> {
        let queue = self.queues.get_mut(&rid)?;
        let at = queue.iter().position(|w| w.txn == txn)?;
        let lock = queue[at].lock;
        let next = queue
            .iter()
            .skip(at + 1)
            .position(|w| w.holds || w.lock < lock)?;
        Self::wake_at(queue, at + 1 + next)
    }

    /// Takes `txn` out of the queue, which got the row with `lock` if at all. Gives who is to be woken, or that the row
    /// is to be noted for the moment `txn` gives the lock back.
    #[must_use]
    pub(crate) fn dequeue(&mut self, rid: Rid, txn: TxnId, lock: Option<RowLock>) -> NextWaiter {
        let Some(queue) = self.queues.get_mut(&rid) else {
            return NextWaiter::Empty;
        };
        let Some(at) = queue.iter().position(|w| w.txn == txn) else {
            return NextWaiter::Empty;
        };
        let was_woken = queue.remove(at).woken;
        if queue.is_empty() {
            self.queues.remove(&rid);
            shrink(&mut self.queues);
            return NextWaiter::Empty;
        }
        if !was_woken {
            return NextWaiter::Empty;
        }
        if lock.is_some_and(|lock| queue.iter().all(|w| w.lock.conflicts(lock))) {
            return NextWaiter::AtRelease;
        }
        Self::wake_at(queue, 0).map_or(NextWaiter::Empty, NextWaiter::Wake)
    }
}

/// What becomes of a queue that somebody left.
pub(crate) enum NextWaiter {
    /// It is empty, or will be told by somebody else.
    Empty,
    /// The next one tries.
    Wake(Waker),
    /// All wait for the one who left.
    AtRelease,
}

/// A table's shards, made when first needed.
#[derive(Default)]
pub(crate) struct RowLocks {
    /// At least the newest transaction that gave back a lock without a version; see `txn::row_lock::handover`.
    pub(crate) handed_newest: CachePadded<AtomicU64>,
    #[cfg(test)]
    pub(crate) handed_stores: AtomicU64,
    /// The table is divided, as far as is known before the shards are made.
    is_divided: AtomicBool,
    shards: OnceLock<Shards>,
}

/// The shards, and by what a row has one.
struct Shards {
    /// One for each partition; else by row number.
    by_partition: bool,
    shards: Box<[CachePadded<Mutex<Shard>>]>,
}

impl Shards {
    fn new(by_partition: bool) -> Shards {
        let count = match by_partition {
            true => usize::from(VIRTUAL_PARTITIONS),
            false => SHARDS,
        };
        Shards {
            by_partition,
            shards: (0..count).map(|_| CachePadded::default()).collect(),
        }
    }

    #[inline]
    fn of(&self, rid: Rid) -> &Mutex<Shard> {
        let number = match self.by_partition {
            // Chunk `n` belongs to partition `n` modulo their number.
            true => rid.0 as usize / usize::from(CHUNK_SLOTS),
            false => rid.0 as usize,
        };
        &self.shards[number % self.shards.len()]
    }
}

impl RowLocks {
    /// The table is divided: rows have the shard of their partition. Without effect once there are shards.
    pub(crate) fn divide(&self) {
        self.is_divided.store(true, Ordering::Relaxed);
    }

    /// The shard of a row, locked.
    pub(crate) fn shard(&self, rid: Rid) -> MutexGuard<'_, Shard> {
        let make = || Shards::new(self.is_divided.load(Ordering::Relaxed));
        self.shards.get_or_init(make).of(rid).lock()
    }

    /// Has somebody the row's shard? He would wait for himself who does anything with it in between.
    #[cfg(test)]
    pub(crate) fn is_busy(&self, rid: Rid) -> bool {
        let shards = self.shards.get();
        shards.is_some_and(|shards| shards.of(rid).is_locked())
    }

    /// Wakes the first who waits for the row.
    pub(crate) fn wake_first(&self, rid: Rid) {
        if self.shards.get().is_none() {
            return;
        }
        let waker = self.shard(rid).wake_first(rid);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Passes the wake on that `txn` could not use.
    pub(crate) fn pass_on(&self, rid: Rid, txn: TxnId) {
        let waker = self.shard(rid).pass_on(rid, txn);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Rows with shared holders, and rows somebody waits for.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let shards = self.shards.get().map_or(&[][..], |s| &s.shards[..]);
        shards.iter().fold((0, 0), |(held, waited), shard| {
            let shard = shard.lock();
            (held + shard.holders.len(), waited + shard.queues.len())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: u64 = 200_000;

    #[test]
    fn a_bulk_of_shared_locks_gives_its_memory_back() {
        let locks = RowLocks::default();
        let state = Arc::new(TxnState::new(TxnId(1)));
        let capacity = || -> usize {
            (0..SHARDS as u64)
                .map(|rid| locks.shard(Rid(rid)).holders.capacity())
                .sum()
        };
        for rid in (0..ROWS).map(Rid) {
            let (before, is_first) = locks.shard(rid).enter(rid, &state, RowLock::Share);
            assert_eq!((before, is_first), (None, true));
        }
        assert!(size_of::<(Rid, Holders)>() <= 24, "small per lock");
        assert_eq!(locks.counts(), (ROWS as usize, 0));
        for rid in (0..ROWS).map(Rid) {
            assert!(locks.shard(rid).set_back(rid, TxnId(1), None));
        }
        assert_eq!(locks.counts(), (0, 0));
        assert!(
            capacity() <= SHARDS * SHRINK_CAPACITY_MIN * 2,
            "{}",
            capacity()
        );
        assert_eq!(Arc::strong_count(&state), 1);
    }

    /// Where the shard of a row is.
    fn place(locks: &RowLocks, rid: u64) -> usize {
        let shard = locks.shard(Rid(rid));
        &raw const *shard as usize
    }

    #[test]
    fn rows_of_two_partitions_of_a_divided_table_never_share_a_shard() {
        let (locks, partitions) = (RowLocks::default(), u64::from(VIRTUAL_PARTITIONS));
        locks.divide();
        let slots = u64::from(CHUNK_SLOTS);
        let mut places = HashMap::new();
        for chunk in 0..3 * partitions {
            for slot in [0, 1, 17, slots - 1] {
                let at = place(&locks, chunk * slots + slot);
                let partition = *places.entry(at).or_insert(chunk % partitions);
                assert_eq!(partition, chunk % partitions, "{chunk}, {slot}");
            }
        }
        assert_eq!(places.len() as u64, partitions);
    }

    #[test]
    fn a_row_keeps_its_shard_when_its_table_is_divided_late() {
        let locks = RowLocks::default();
        let state = Arc::new(TxnState::new(TxnId(1)));
        let rid = Rid(u64::from(CHUNK_SLOTS) + 5);
        locks.shard(rid).enter(rid, &state, RowLock::Share);
        let before = place(&locks, rid.0);
        locks.divide();
        assert_eq!(place(&locks, rid.0), before);
        let shard = locks.shard(rid);
        assert!(shard.conflict(rid, TxnId(2), RowLock::Update).is_some());
    }

    #[test]
    fn an_ended_holder_is_in_nobodys_way() {
        let locks = RowLocks::default();
        let state = Arc::new(TxnState::new(TxnId(1)));
        locks.shard(Rid(1)).enter(Rid(1), &state, RowLock::Share);
        let conflict = |txn, lock| {
            locks
                .shard(Rid(1))
                .conflict(Rid(1), TxnId(txn), lock)
                .is_some()
        };
        assert!(conflict(2, RowLock::NoKeyUpdate));
        assert!(!conflict(2, RowLock::Share));
        assert!(!conflict(1, RowLock::Update), "oneself");
        state.aborted();
        assert!(!conflict(2, RowLock::Update));
    }
}
