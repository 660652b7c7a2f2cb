//! A worker's ack queue: its queue, and what was taken out of it and is not yet Committed.
//!
//! Invariants: one thread at a time works at an ack queue ([`AckQueue::work`]); who finds somebody there leaves a note,
//! and that one looks again before it leaves. `lowest_floor` and `lowest_gsn` are at most what the ack queue's heaps
//! wait for, and published before the worker at the ack queue looks at horizon and GSNs for the last time: so whoever
//! moves those either sees that the ack queue waits for it, or is seen by it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::marker::PhantomData;
use std::sync::atomic::AtomicU64;

use logstead_types::Csn;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::atomic_facade::{AtomicWord, Lock};
use crate::pending_commit::PendingCommit;
use crate::queue::{Queue, QueueKind};
use crate::stats::{Latencies, WaitCounts};

/// Nothing is waited for.
pub(crate) const NOTHING: u64 = u64::MAX;

/// A transaction in a heap, by what it waits for.
pub(crate) struct WaitingCommit {
    pub(crate) until: u64,
    pub(crate) pending: Box<PendingCommit>,
}

impl PartialEq for WaitingCommit {
    fn eq(&self, other: &WaitingCommit) -> bool {
        (self.until, self.pending.csn) == (other.until, other.pending.csn)
    }
}

impl Eq for WaitingCommit {}

impl PartialOrd for WaitingCommit {
    fn partial_cmp(&self, other: &WaitingCommit) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for WaitingCommit {
    fn cmp(&self, other: &WaitingCommit) -> std::cmp::Ordering {
        (self.until, self.pending.csn).cmp(&(other.until, other.pending.csn))
    }
}

/// A heap with the smallest on top.
pub(crate) type CommitHeap = BinaryHeap<Reverse<WaitingCommit>>;

/// What an ack queue holds.
#[derive(Default)]
pub(crate) struct PendingAcks {
    /// Not hardened yet: by lane, in the order of it. More than one only where the worker has changed lanes.
    unhardened: SmallVec<[(u16, VecDeque<PendingCommit>); 1]>,
    /// Hardened, waiting for the horizon.
    pub(crate) floors: CommitHeap,
    /// Hardened, waiting for every lane's GSN.
    pub(crate) gsns: CommitHeap,
    pub(crate) waits: WaitCounts,
    pub(crate) latencies: Latencies,
}

impl PendingAcks {
    /// Takes in one whose lane has perhaps not hardened it.
    #[inline]
    pub(crate) fn take_in(&mut self, pending: PendingCommit) {
        let lane = pending.lane;
        match self.unhardened.iter_mut().find(|(of, _)| *of == lane) {
            Some((_, queue)) => queue.push_back(pending),
            None => self.unhardened.push((lane, VecDeque::from([pending]))),
        }
    }

    /// The lanes of those that have perhaps not hardened.
    pub(crate) fn lanes(&self) -> SmallVec<[u16; 4]> {
        self.unhardened.iter().map(|(lane, _)| *lane).collect()
    }

    /// Takes out the first of this lane, if it ends there or before.
    #[inline]
    pub(crate) fn next_hardened(&mut self, lane: u16, hardened: u64) -> Option<PendingCommit> {
        let at = self.unhardened.iter().position(|(of, _)| *of == lane)?;
        let queue = &mut self.unhardened[at].1;
        if queue.front().is_some_and(|pending| pending.end <= hardened) {
            return queue.pop_front();
        }
        if queue.is_empty() && self.unhardened.len() > 1 {
            self.unhardened.swap_remove(at);
        }
        None
    }
}

/// Something that one thread at a time works at, for all who want it done.
pub(crate) struct CombiningLock<T, W = AtomicU64, L = Mutex<T>> {
    what: L,
    /// Somebody wants it done, and nobody has begun since.
    again: W,
    is: PhantomData<T>,
}

impl<T, W: AtomicWord, L: Lock<T>> CombiningLock<T, W, L> {
    pub(crate) fn new(what: T) -> CombiningLock<T, W, L> {
        CombiningLock {
            what: L::new(what),
            again: W::new(0),
            is: PhantomData,
        }
    }

    /// Works at it, or has whoever is there do it: in either case `work` runs wholly after this was called.
    pub(crate) fn work(&self, mut work: impl FnMut(&mut T)) {
        self.again.store(1);
        while self.again.load() == 1 {
            let worked = self.what.try_with(|what| {
                self.again.store(0);
                work(what);
            });
            // Whoever is there looks at the note after it has left.
            if worked.is_none() {
                return;
            }
        }
    }

    /// Looks at it, waiting for whoever is there. The caller works at it afterwards: who came meanwhile has left a
    /// note.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        self.what.with(|what| look(what))
    }
}

/// The lowest that somebody waits for, for who moves what is waited for.
pub(crate) struct LowWaterMark<W = AtomicU64>(W);

impl<W: AtomicWord> LowWaterMark<W> {
    pub(crate) fn new() -> LowWaterMark<W> {
        LowWaterMark(W::new(NOTHING))
    }

    /// Publishes it, then looks whether it has been reached already: who moved it before has seen nobody.
    #[inline]
    pub(crate) fn publish(&self, until: u64, is_reached: impl FnOnce(u64) -> bool) -> bool {
        self.0.store(until);
        is_reached(until)
    }

    /// For who has moved what is waited for.
    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load()
    }
}

/// See the module's documentation.
pub(crate) struct AckQueue {
    pub(crate) queue: Queue,
    pending_acks: CombiningLock<PendingAcks>,
    /// The lowest CSN that the horizon must pass for somebody here.
    pub(crate) lowest_floor: LowWaterMark,
    /// The lowest GSN waited for here.
    pub(crate) lowest_gsn: LowWaterMark,
    /// How often somebody has looked through it; written at the ack queue only.
    looks: AtomicU64,
}

impl AckQueue {
    pub(crate) fn new(kind: QueueKind) -> AckQueue {
        AckQueue {
            queue: Queue::new(kind),
            pending_acks: CombiningLock::new(PendingAcks::default()),
            lowest_floor: LowWaterMark::new(),
            lowest_gsn: LowWaterMark::new(),
            looks: AtomicU64::new(0),
        }
    }

    /// See [`CombiningLock::work`].
    #[inline]
    pub(crate) fn work(&self, work: impl FnMut(&mut PendingAcks)) {
        self.pending_acks.work(work);
    }

    /// Whoever is at the ack queue looks through it.
    #[inline]
    pub(crate) fn count_look(&self) {
        self.looks.store_relaxed(self.looks.load_relaxed() + 1);
    }

    /// How often somebody has looked through it.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load_relaxed()
    }

    /// See [`CombiningLock::look`].
    pub(crate) fn look<R>(&self, look: impl FnOnce(&PendingAcks) -> R) -> R {
        self.pending_acks.look(look)
    }

    /// Somebody here waits for the horizon to be `horizon`, or less.
    #[inline]
    pub(crate) fn is_passed(&self, horizon: Csn) -> bool {
        self.lowest_floor.get() < horizon.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use shuttle::sync::atomic::AtomicU64 as ShuttleU64;
    use std::sync::Arc;

    type ShuttleTurn = CombiningLock<u64, ShuttleU64, shuttle::sync::Mutex<u64>>;

    /// Two push and have it looked at: whatever was pushed before somebody asked is seen.
    #[test]
    fn what_was_there_before_somebody_asked_is_seen() {
        let explored = || {
            let ack_queue = Arc::new((ShuttleU64::new(0), ShuttleTurn::new(0)));
            let ask = |ack_queue: &(ShuttleU64, ShuttleTurn)| {
                ack_queue
                    .1
                    .work(|seen| *seen = AtomicWord::load(&ack_queue.0))
            };
            let other = {
                let ack_queue = ack_queue.clone();
                shuttle::thread::spawn(move || {
                    AtomicWord::fetch_add(&ack_queue.0, 1);
                    ask(&ack_queue);
                })
            };
            AtomicWord::fetch_add(&ack_queue.0, 1);
            ask(&ack_queue);
            other.join().expect("ends");
            assert_eq!(ack_queue.1.look(|seen| *seen), 2);
        };
        shuttle::check_dfs(explored, None);
    }

    /// Who waits publishes that before its last look; who moves the horizon does so before it looks who waits.
    #[test]
    fn who_waits_for_the_horizon_is_seen_or_sees() {
        let explored = || {
            let both = Arc::new((ShuttleU64::new(5), LowWaterMark::<ShuttleU64>::new()));
            let mover = {
                let both = both.clone();
                shuttle::thread::spawn(move || {
                    AtomicWord::store(&both.0, 8);
                    both.1.get() < 8
                })
            };
            let sees = both.1.publish(6, |until| until < AtomicWord::load(&both.0));
            let is_seen = mover.join().expect("ends");
            assert!(sees || is_seen);
        };
        shuttle::check_dfs(explored, None);
    }
}
