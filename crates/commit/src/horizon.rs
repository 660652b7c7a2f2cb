//! The CSN counter and the horizon.
//!
//! horizon = min( the CSN counter, every worker's `reserved`, every lane's lowest CSN not yet durable ), read in this
//! order. Why the order makes it safe: take a CSN x that was drawn and is not durable. If the counter was read before x
//! was drawn, the counter bounds the horizon at x. Otherwise the worker's `reserved` was published (at or below x)
//! before the draw, so the later read of `reserved` finds it, or finds it cleared; and it is cleared only after the
//! entry was put into its lane, which published its lowest CSN before, so the still later read of the lane finds it.
//!
//! The computation runs in one thread at a time: a thread that finds it taken leaves a request behind, which the
//! running one serves before it stops. The result is cached and never moves back.

use std::sync::atomic::AtomicU64;

use crossbeam_utils::CachePadded;
use logstead_types::{Csn, WorkerId};

use crate::atomic_facade::AtomicWord;

/// Nothing is reserved.
const NOTHING: u64 = u64::MAX;
/// Nobody computes and nobody asked.
const IDLE: u64 = 0;
/// Somebody computes.
const RUNNING: u64 = 1;
/// Somebody computes and must look again.
const AGAIN: u64 = 2;

/// The CSN counter, what the workers have reserved, and the cached horizon.
pub struct Horizon<W: AtomicWord = AtomicU64> {
    /// The next CSN to draw.
    counter: CachePadded<W>,
    /// Per worker: a lower bound of the CSN it is drawing or has drawn and not yet put into its lane.
    reserved: Box<[CachePadded<W>]>,
    /// The last computed horizon; only grows.
    cached: CachePadded<W>,
    /// IDLE, RUNNING or AGAIN.
    turn: CachePadded<W>,
}

/// A worker between publishing `reserved` and clearing it. Dropping it clears: do that after the entry is in its lane.
pub struct Reservation<'h, W: AtomicWord = AtomicU64> {
    slot: &'h W,
}

impl<W: AtomicWord> Drop for Reservation<'_, W> {
    #[inline]
    fn drop(&mut self) {
        self.slot.store(NOTHING);
    }
}

impl<W: AtomicWord> Horizon<W> {
    /// For `workers` workers, drawing from `next` on.
    pub fn new(workers: usize, next: Csn) -> Horizon<W> {
        let first = next.0.max(1);
        Horizon {
            counter: CachePadded::new(W::new(first)),
            reserved: (0..workers)
                .map(|_| CachePadded::new(W::new(NOTHING)))
                .collect(),
            cached: CachePadded::new(W::new(first)),
            turn: CachePadded::new(W::new(IDLE)),
        }
    }

    /// The next CSN that will be drawn: a snapshot sees every CSN below it.
    #[inline]
    pub fn counter(&self) -> Csn {
        Csn(self.counter.load())
    }

    /// Publishes `reserved` for `worker` and draws a CSN. The caller puts the entry into its lane and then drops the
    /// reservation; in between nothing may fail, allocate, park or yield (T12), and no lock is taken: see
    /// [`CommitPath::enter`](crate::CommitPath::enter).
    #[inline]
    pub fn draw(&self, worker: WorkerId) -> (Csn, Reservation<'_, W>) {
        let slot = &*self.reserved[usize::from(worker.0)];
        assert!(slot.load() == NOTHING, "a worker draws one CSN at a time");
        slot.store(self.counter.load());
        let reservation = Reservation { slot };
        (Csn(self.counter.fetch_add(1)), reservation)
    }

    /// Has `worker` published `reserved`, so that the horizon stands still for it? For tests, and for who measures.
    #[inline]
    pub fn is_reserved(&self, worker: WorkerId) -> bool {
        self.reserved[usize::from(worker.0)].load() != NOTHING
    }

    /// The cached horizon: every CSN below it is durable and committed. Blocks record it
    /// ([`Lane`](logstead_wal::Lane)), and a log that lacks a CSN below what a block of it has recorded is refused.
    #[inline]
    pub fn get(&self) -> Csn {
        Csn(self.cached.load())
    }

    /// Of a replica, which draws nothing and has pushed nothing: all below `next` is committed elsewhere and is
    /// there to be read. The cached horizon goes first, so nobody who takes a snapshot finds something in it that is
    /// not below the horizon.
    pub fn follow(&self, next: Csn) {
        self.follow_durable(next);
        self.counter.fetch_max(next.0);
    }

    /// The first half of it: all below `next` is committed, and no snapshot sees more than before.
    pub fn follow_durable(&self, next: Csn) {
        self.cached.fetch_max(next.0);
    }

    /// One reading of counter, workers and lanes, in the order that makes it safe.
    fn read(&self, lanes: &impl Fn() -> Csn) -> u64 {
        let mut lowest = self.counter.load();
        for slot in &self.reserved {
            lowest = lowest.min(slot.load());
        }
        lowest.min(lanes().0)
    }

    /// Computes the horizon again after some lane's lowest CSN moved. `lanes` reads every lane's lowest CSN not yet
    /// durable (`u64::MAX` for an idle lane). Returns the new horizon if it moved in this call; `None` if it did not
    /// or another thread computes it (that thread then sees to it).
    pub fn advance(&self, lanes: impl Fn() -> Csn) -> Option<Csn> {
        loop {
            if self.turn.swap_if(IDLE, RUNNING) {
                break;
            }
            if self.turn.swap_if(RUNNING, AGAIN) || self.turn.load() == AGAIN {
                return None;
            }
        }
        let before = self.cached.load();
        let mut now = before;
        loop {
            let read = self.read(&lanes);
            if read > now {
                now = read;
                self.cached.store(now);
            }
            if self.turn.swap_if(RUNNING, IDLE) {
                break;
            }
            // Somebody asked meanwhile; its lane may have moved after we read it.
            self.turn.store(RUNNING);
        }
        (now > before).then_some(Csn(now))
    }
}

#[cfg(test)]
mod tests;
