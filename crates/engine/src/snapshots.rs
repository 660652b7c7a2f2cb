//! Which snapshots are in use: what garbage collection must keep.
//!
//! A worker keeps its snapshots in order and publishes the two oldest. One that computes [`Bounds`] reads the CSN
//! counter first and then what is published; one that takes a snapshot publishes the counter, then reads the counter
//! again and uses that. Either the publication was seen, or the snapshot is at or above the counter that was read. What
//! is published before the snapshot is known is a lower bound only; the oldest snapshot itself is published exactly.
//!
//! Publishing two lets a single long-running snapshot per worker keep only what it itself can see: versions between
//! it and everybody else are collected.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;
use logstead_commit::Horizon;
use logstead_types::Csn;
use smallvec::SmallVec;

const NONE: u64 = u64::MAX;

/// The two oldest snapshots of a worker, readable by all.
pub(crate) struct Published {
    /// The oldest snapshot, exactly.
    first: AtomicU64,
    /// At or below every other snapshot.
    second: AtomicU64,
}

impl Published {
    pub(crate) fn new() -> CachePadded<Published> {
        CachePadded::new(Published {
            first: AtomicU64::new(NONE),
            second: AtomicU64::new(NONE),
        })
    }
}

/// A worker's snapshots in use: oldest first, with how many use each.
#[derive(Default)]
pub(crate) struct Snapshots {
    live: Vec<(u64, u32)>,
}

impl Snapshots {
    /// Takes a snapshot of now.
    #[inline]
    pub(crate) fn acquire(&mut self, horizon: &Horizon, published: &Published) -> Csn {
        self.take(published, || horizon.counter())
    }

    #[inline]
    fn take(&mut self, published: &Published, counter: impl Fn() -> Csn) -> Csn {
        let conservative = counter().0;
        if let Some((newest, count)) = self.live.last_mut()
            && *newest == conservative
        {
            *count += 1;
            return Csn(conservative);
        }
        // As the second it is a lower bound of everything but the first, so it may lie below the snapshot that comes of
        // it. As the first it would be taken for the very snapshot, and what is between the two would be collected.
        if self.live.len() <= 1 {
            published.second.store(conservative, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        let snapshot = counter();
        if self.live.is_empty() {
            // First before second: a reader reads them the other way round, so it never misses both.
            published.first.store(snapshot.0, Ordering::SeqCst);
            published.second.store(NONE, Ordering::SeqCst);
        }
        match self.live.last_mut() {
            Some((newest, count)) if *newest == snapshot.0 => *count += 1,
            _ => self.live.push((snapshot.0, 1)),
        }
        snapshot
    }

    /// One more use of a snapshot in use.
    pub(crate) fn share(&mut self, snapshot: Csn) {
        if let Ok(at) = self.live.binary_search_by_key(&snapshot.0, |(s, _)| *s) {
            self.live[at].1 += 1;
        }
    }

    /// One use less.
    #[inline]
    pub(crate) fn release(&mut self, snapshot: Csn, published: &Published) {
        let Ok(at) = self.live.binary_search_by_key(&snapshot.0, |(s, _)| *s) else {
            return;
        };
        self.live[at].1 -= 1;
        if self.live[at].1 > 0 {
            return;
        }
        self.live.remove(at);
        if at <= 1 {
            let nth = |n: usize| self.live.get(n).map_or(NONE, |(s, _)| *s);
            // First before second: a reader reads them the other way round, so it never misses one.
            published.first.store(nth(0), Ordering::SeqCst);
            published.second.store(nth(1), Ordering::SeqCst);
        }
    }
}

/// What garbage collection may drop. Bounds that have grown old stay right: they only keep more.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    /// Snapshots that are each the oldest of a worker, below `rest`.
    singles: SmallVec<[u64; 8]>,
    /// Every other snapshot, now and later, is at or above this.
    rest: u64,
    /// What superseded a version must be below the horizon (T1).
    horizon: u64,
}

impl Bounds {
    pub(crate) fn read(horizon: &Horizon, published: &[CachePadded<Published>]) -> Bounds {
        let durable = horizon.get().0;
        let mut bounds = Bounds {
            singles: SmallVec::new(),
            rest: horizon.counter().0,
            horizon: durable,
        };
        fence(Ordering::SeqCst);
        for worker in published {
            bounds.rest = bounds.rest.min(worker.second.load(Ordering::SeqCst));
            let first = worker.first.load(Ordering::SeqCst);
            if first != NONE {
                bounds.singles.push(first);
            }
        }
        let rest = bounds.rest;
        bounds.singles.retain(|s| *s < rest);
        bounds
    }

    /// May a version of `csn` go that was superseded by `newer`? If not, tells the single snapshot that alone keeps
    /// it, or `None` if time must pass first.
    #[inline]
    pub(crate) fn droppable(&self, csn: Csn, newer: Csn) -> Result<(), Option<u64>> {
        if newer.0 >= self.rest || newer.0 >= self.horizon {
            return Err(None);
        }
        match self.singles.iter().find(|s| csn.0 < **s && **s <= newer.0) {
            None => Ok(()),
            Some(single) => Err(Some(*single)),
        }
    }

    /// May what `csn` deleted go altogether?
    #[inline]
    pub(crate) fn gone(&self, csn: Csn) -> Result<(), Option<u64>> {
        self.droppable(Csn(0), csn)
    }

    /// Is everything that was superseded by `csn` out of reach of all but single old snapshots?
    #[inline]
    pub(crate) fn ripe(&self, csn: Csn) -> bool {
        csn.0 < self.rest && csn.0 < self.horizon
    }

    /// Is the snapshot still in use?
    pub(crate) fn holds(&self, single: u64) -> bool {
        single >= self.rest || self.singles.contains(&single)
    }

    /// The oldest snapshot in use, or what the next one will be.
    pub(crate) fn oldest(&self) -> Csn {
        Csn(self
            .singles
            .iter()
            .copied()
            .min()
            .unwrap_or(self.rest)
            .min(self.rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_types::WorkerId;

    fn tick(horizon: &Horizon) {
        drop(horizon.draw(WorkerId(0)));
        horizon.advance(|| Csn(u64::MAX));
    }

    #[test]
    fn a_long_snapshot_keeps_only_what_it_sees() {
        let horizon = Horizon::new(1, Csn(10));
        let published = [Published::new()];
        let mut snapshots = Snapshots::default();
        let old = snapshots.acquire(&horizon, &published[0]);
        assert_eq!(old, Csn(10));
        for _ in 0..20 {
            tick(&horizon);
        }
        let young = snapshots.acquire(&horizon, &published[0]);
        assert_eq!(young, Csn(30));
        tick(&horizon);
        let bounds = Bounds::read(&horizon, &published);
        assert_eq!(bounds.oldest(), Csn(10));
        assert_eq!(
            bounds.droppable(Csn(5), Csn(12)),
            Err(Some(10)),
            "the old one sees 5"
        );
        assert_eq!(bounds.droppable(Csn(12), Csn(20)), Ok(()), "nobody sees 12");
        assert_eq!(
            bounds.droppable(Csn(20), Csn(30)),
            Err(None),
            "the young one sees 20"
        );
        assert_eq!(bounds.gone(Csn(12)), Err(Some(10)));
        assert_eq!(bounds.gone(Csn(9)), Ok(()));
        snapshots.release(old, &published[0]);
        let bounds = Bounds::read(&horizon, &published);
        assert!(!bounds.holds(10));
        assert_eq!(bounds.droppable(Csn(5), Csn(12)), Ok(()));
        snapshots.release(young, &published[0]);
        assert_eq!(Bounds::read(&horizon, &published).oldest(), Csn(31));
    }

    /// Others commit while a snapshot is taken: what lies between the bound published first and the snapshot that comes
    /// of it is seen by the snapshot, and stays.
    #[test]
    fn a_snapshot_taken_among_commits_keeps_what_it_sees() {
        let horizon = Horizon::new(1, Csn(10));
        let published = [Published::new()];
        let mut snapshots = Snapshots::default();
        let snapshot = snapshots.take(&published[0], || {
            let now = horizon.counter();
            tick(&horizon);
            tick(&horizon);
            now
        });
        assert_eq!(snapshot, Csn(12));
        for _ in 0..10 {
            tick(&horizon);
        }
        let bounds = Bounds::read(&horizon, &published);
        assert_eq!(bounds.droppable(Csn(11), Csn(15)), Err(Some(12)));
        assert_eq!(bounds.droppable(Csn(12), Csn(15)), Ok(()));
    }

    #[test]
    fn what_is_not_durable_stays() {
        let horizon = Horizon::new(1, Csn(10));
        drop(horizon.draw(WorkerId(0)));
        let bounds = Bounds::read(&horizon, &[Published::new()]);
        assert_eq!(
            bounds.droppable(Csn(5), Csn(10)),
            Err(None),
            "T1: 10 is not below the horizon"
        );
        assert!(!bounds.ripe(Csn(10)));
    }
}
