//! Which snapshots are in use: what garbage collection must keep.
//!
//! A worker publishes a lower bound of its snapshots (`rest`), and of those that last it publishes each by itself,
//! exactly: such a single snapshot keeps only what it itself sees, and versions between it and everybody else are
//! collected. There is room for [`SINGLES_MAX`] singles; beyond, the oldest of the others is the bound.
//!
//! Invariant: at any moment every snapshot in use is in a slot of its worker, or at or above its worker's `rest`, or
//! pinned, or at or
//! above the CSN counter as whoever computes [`VisibilityBounds`] has read it. For:
//! - Taking one publishes the counter as `rest` (unless a lower bound stands already), then reads the counter again and
//!   uses that; computing bounds reads the counter first and `rest` after. Either the publication is seen, or the
//!   snapshot is at or above the counter that was read.
//! - A snapshot is put in a slot before `rest` is raised over it; bounds read `rest` before the slots. It stays in that
//!   slot until it is released: one that moved could be missed in both.
//! - One that is handed on is pinned while its worker still has it, until nobody uses it; bounds read the pins after
//!   all workers.
//!
//! A snapshot that a transaction of one worker hands to transactions of others is pinned besides
//! ([`SnapshotPins`](crate::snapshot_pins::SnapshotPins)).
//!
//! Most snapshots end soon: they cost a store when taken and one when released. Now and then ([`Snapshots::publish`])
//! the worker puts those that are still there in slots and raises the bound.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use crossbeam_utils::CachePadded;
use logstead_commit::Horizon;
use logstead_types::Csn;
use smallvec::SmallVec;

use crate::snapshot_pins::SnapshotPins;
use crate::tree::interleave::point;

const NONE: u64 = u64::MAX;

/// Snapshots of a worker that are published each by itself.
const SINGLES_MAX: usize = 15;

/// The snapshots of a worker, readable by all: two cache lines of its own.
pub(crate) struct PublishedSnapshots {
    /// At or below every snapshot that is not in a slot.
    rest: AtomicU64,
    singles: [AtomicU64; SINGLES_MAX],
}

impl PublishedSnapshots {
    pub(crate) fn new() -> CachePadded<PublishedSnapshots> {
        CachePadded::new(PublishedSnapshots {
            rest: AtomicU64::new(NONE),
            singles: [const { AtomicU64::new(NONE) }; SINGLES_MAX],
        })
    }
}

/// A snapshot in use.
struct Live {
    snapshot: u64,
    uses: u32,
    /// Its slot, if it has one.
    slot: Option<u8>,
}

/// A worker's snapshots in use, oldest first.
pub(crate) struct Snapshots {
    live: Vec<Live>,
    /// What is published as `rest`.
    rest: u64,
    /// Which slots are taken.
    slots: u16,
}

impl Default for Snapshots {
    fn default() -> Snapshots {
        Snapshots {
            live: Vec::new(),
            rest: NONE,
            slots: 0,
        }
    }
}

impl Snapshots {
    /// Takes a snapshot of now.
    #[inline]
    pub(crate) fn acquire(&mut self, horizon: &Horizon, published: &PublishedSnapshots) -> Csn {
        self.take(published, || horizon.counter())
    }

    #[inline]
    fn take(&mut self, published: &PublishedSnapshots, counter: impl Fn() -> Csn) -> Csn {
        let conservative = counter().0;
        point();
        if let Some(newest) = self.live.last_mut()
            && newest.snapshot == conservative
        {
            newest.uses += 1;
            return Csn(conservative);
        }
        if self.rest > conservative {
            self.set_rest(conservative, published);
        }
        fence(Ordering::SeqCst);
        point();
        let snapshot = counter();
        match self.live.last_mut() {
            Some(newest) if newest.snapshot == snapshot.0 => newest.uses += 1,
            // Of a replica: one was adopted that nobody else can take yet.
            Some(newest) if newest.snapshot > snapshot.0 => self.adopt(snapshot, published),
            _ => self.live.push(Live {
                snapshot: snapshot.0,
                uses: 1,
                slot: None,
            }),
        }
        snapshot
    }

    fn set_rest(&mut self, rest: u64, published: &PublishedSnapshots) {
        self.rest = rest;
        published.rest.store(rest, Ordering::SeqCst);
    }

    fn find(&self, snapshot: Csn) -> Option<usize> {
        self.live
            .binary_search_by_key(&snapshot.0, |live| live.snapshot)
            .ok()
    }

    /// One more use of a snapshot that is pinned, and perhaps older than all that this worker has.
    pub(crate) fn adopt(&mut self, snapshot: Csn, published: &PublishedSnapshots) {
        let at = self
            .live
            .binary_search_by_key(&snapshot.0, |live| live.snapshot);
        match at {
            Ok(at) => self.live[at].uses += 1,
            Err(at) => {
                if self.rest > snapshot.0 {
                    self.set_rest(snapshot.0, published);
                }
                let live = Live {
                    snapshot: snapshot.0,
                    uses: 1,
                    slot: None,
                };
                self.live.insert(at, live);
            }
        }
    }

    /// One more use of a snapshot in use.
    pub(crate) fn share(&mut self, snapshot: Csn) {
        if let Some(at) = self.find(snapshot) {
            self.live[at].uses += 1;
        }
    }

    /// One use less.
    #[inline]
    pub(crate) fn release(&mut self, snapshot: Csn, published: &PublishedSnapshots) {
        let Some(at) = self.find(snapshot) else {
            return;
        };
        self.live[at].uses -= 1;
        if self.live[at].uses > 0 {
            return;
        }
        if let Some(slot) = self.live.remove(at).slot {
            self.slots &= !(1 << slot);
            published.singles[usize::from(slot)].store(NONE, Ordering::SeqCst);
        }
        if self.live.is_empty() && self.rest != NONE {
            self.set_rest(NONE, published);
        }
    }

    /// Puts snapshots that have lasted in slots, and raises the bound to the oldest that finds none.
    pub(crate) fn publish(&mut self, published: &PublishedSnapshots) {
        let mut rest = NONE;
        for live in self.live.iter_mut().filter(|l| l.slot.is_none()) {
            let slot = self.slots.trailing_ones() as usize;
            let Some(single) = published.singles.get(slot) else {
                rest = live.snapshot;
                break;
            };
            single.store(live.snapshot, Ordering::SeqCst);
            point();
            self.slots |= 1 << slot;
            live.slot = Some(slot as u8);
        }
        if rest != self.rest {
            self.set_rest(rest, published);
        }
    }
}

/// What garbage collection may drop. Bounds that have grown old stay right: they only keep more.
#[derive(Clone, Debug, Default)]
pub(crate) struct VisibilityBounds {
    /// Snapshots published by themselves, below `rest`, in order.
    singles: SmallVec<[u64; 8]>,
    /// Every other snapshot, now and later, is at or above this.
    rest: u64,
    /// What superseded a version must be below the horizon (T1).
    horizon: u64,
}

impl VisibilityBounds {
    pub(crate) fn read(
        horizon: &Horizon,
        published: &[CachePadded<PublishedSnapshots>],
        exported: &SnapshotPins,
    ) -> VisibilityBounds {
        let durable = horizon.get().0;
        let mut bounds = VisibilityBounds {
            singles: SmallVec::new(),
            rest: horizon.counter().0,
            horizon: durable,
        };
        fence(Ordering::SeqCst);
        for worker in published {
            point();
            // Before the slots: see the invariant.
            bounds.rest = bounds.rest.min(worker.rest.load(Ordering::SeqCst));
            let singles = worker.singles.iter().map(|single| {
                point();
                single.load(Ordering::SeqCst)
            });
            bounds.singles.extend(singles.filter(|s| *s != NONE));
        }
        // After all workers: see the invariant.
        point();
        exported.add_to(&mut bounds.singles);
        let rest = bounds.rest;
        bounds.singles.retain(|s| *s < rest);
        bounds.singles.sort_unstable();
        bounds
    }

    /// May a version of `csn` go that was superseded by `newer`? If not, tells the single snapshot that alone keeps
    /// it, or `None` if time must pass first.
    #[inline]
    pub(crate) fn droppable(&self, csn: Csn, newer: Csn) -> Result<(), Option<u64>> {
        if newer.0 >= self.rest || newer.0 >= self.horizon {
            return Err(None);
        }
        // The oldest single that sees it, if it does not see what superseded it.
        let above = self.singles.partition_point(|s| *s <= csn.0);
        match self.singles.get(above) {
            Some(single) if *single <= newer.0 => Err(Some(*single)),
            _ => Ok(()),
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
        single >= self.rest || self.singles.binary_search(&single).is_ok()
    }

    /// The oldest snapshot in use, or what the next one will be.
    pub(crate) fn oldest(&self) -> Csn {
        Csn(self
            .singles
            .first()
            .map_or(self.rest, |single| self.rest.min(*single)))
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
        let published = [PublishedSnapshots::new()];
        let mut snapshots = Snapshots::default();
        let old = snapshots.acquire(&horizon, &published[0]);
        assert_eq!(old, Csn(10));
        snapshots.publish(&published[0]);
        for _ in 0..20 {
            tick(&horizon);
        }
        let young = snapshots.acquire(&horizon, &published[0]);
        assert_eq!(young, Csn(30));
        tick(&horizon);
        let bounds = VisibilityBounds::read(&horizon, &published, &SnapshotPins::default());
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
        let bounds = VisibilityBounds::read(&horizon, &published, &SnapshotPins::default());
        assert!(!bounds.holds(10));
        assert_eq!(bounds.droppable(Csn(5), Csn(12)), Ok(()));
        snapshots.release(young, &published[0]);
        assert_eq!(
            VisibilityBounds::read(&horizon, &published, &SnapshotPins::default()).oldest(),
            Csn(31)
        );
    }

    /// Others commit while a snapshot is taken: what lies between the bound published first and the snapshot that comes
    /// of it is seen by the snapshot, and stays.
    #[test]
    fn a_snapshot_taken_among_commits_keeps_what_it_sees() {
        let horizon = Horizon::new(1, Csn(10));
        let published = [PublishedSnapshots::new()];
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
        let bounds = VisibilityBounds::read(&horizon, &published, &SnapshotPins::default());
        assert_eq!(
            bounds.droppable(Csn(9), Csn(11)),
            Err(None),
            "until it has a slot, everything from before it was taken on stays"
        );
        snapshots.publish(&published[0]);
        let bounds = VisibilityBounds::read(&horizon, &published, &SnapshotPins::default());
        assert_eq!(bounds.droppable(Csn(11), Csn(15)), Err(Some(12)));
        assert_eq!(bounds.droppable(Csn(12), Csn(15)), Ok(()));
    }

    /// In every order in which bounds are computed while snapshots are taken, put in slots and released: no bounds
    /// allow to drop what a snapshot in use sees.
    #[test]
    fn bounds_never_pass_over_a_snapshot_in_use() {
        use std::sync::{Arc, Mutex};

        use shuttle::scheduler::RandomScheduler;
        use shuttle::{Config, Runner, thread};

        use crate::tree::interleave::set_hook;

        let runner = Runner::new(RandomScheduler::new(4_000), Config::default());
        runner.run(|| {
            set_hook(Some(thread::yield_now));
            let horizon = Arc::new(Horizon::new(1, Csn(10)));
            let published = Arc::new([PublishedSnapshots::new(), PublishedSnapshots::new()]);
            let computed = Arc::new(Mutex::new(Vec::<VisibilityBounds>::new()));
            let workers: Vec<_> = (0..2)
                .map(|n| {
                    let (horizon, published) = (horizon.clone(), published.clone());
                    let computed = computed.clone();
                    thread::spawn(move || {
                        let mut snapshots = Snapshots::default();
                        let safe = |snapshot: Csn| {
                            for bounds in &*computed.lock().expect("nobody panics") {
                                let dropped = bounds.droppable(Csn(snapshot.0 - 1), snapshot);
                                assert!(dropped.is_err(), "{snapshot:?} is seen: {bounds:?}");
                            }
                        };
                        let first = snapshots.acquire(&horizon, &published[n]);
                        tick(&horizon);
                        snapshots.publish(&published[n]);
                        let second = snapshots.acquire(&horizon, &published[n]);
                        safe(first);
                        snapshots.release(first, &published[n]);
                        tick(&horizon);
                        let third = snapshots.acquire(&horizon, &published[n]);
                        snapshots.publish(&published[n]);
                        safe(second);
                        snapshots.release(second, &published[n]);
                        safe(third);
                    })
                })
                .collect();
            for _ in 0..3 {
                let bounds =
                    VisibilityBounds::read(&horizon, &*published, &SnapshotPins::default());
                computed.lock().expect("nobody panics").push(bounds);
            }
            workers.into_iter().for_each(|w| w.join().expect("ends"));
            set_hook(None);
        });
    }

    /// The same of a snapshot that one worker hands to another and gives up: whoever computes bounds finds it at the
    /// one, at the other, or pinned.
    #[test]
    fn bounds_never_pass_over_a_snapshot_that_is_handed_on() {
        use std::sync::{Arc, Mutex};

        use shuttle::scheduler::RandomScheduler;
        use shuttle::{Config, Runner, thread};

        use crate::tree::interleave::set_hook;

        let runner = Runner::new(RandomScheduler::new(4_000), Config::default());
        runner.run(|| {
            set_hook(Some(thread::yield_now));
            let horizon = Arc::new(Horizon::new(1, Csn(10)));
            let published = Arc::new([PublishedSnapshots::new(), PublishedSnapshots::new()]);
            let exported = Arc::new(SnapshotPins::default());
            let handed = Arc::new(Mutex::new(None));
            let computed = Arc::new(Mutex::new(Vec::<VisibilityBounds>::new()));
            let exporter = {
                let (horizon, published) = (horizon.clone(), published.clone());
                let (exported, handed) = (exported.clone(), handed.clone());
                thread::spawn(move || {
                    // The importer comes first in the order in which bounds look, or last.
                    let mut snapshots = Snapshots::default();
                    let snapshot = snapshots.acquire(&horizon, &published[1]);
                    tick(&horizon);
                    snapshots.publish(&published[1]);
                    exported.pin(snapshot);
                    *handed.lock().expect("nobody panics") = Some(snapshot);
                    thread::yield_now();
                    tick(&horizon);
                    snapshots.release(snapshot, &published[1]);
                })
            };
            let importer = {
                let (horizon, published) = (horizon.clone(), published.clone());
                let (exported, handed, computed) = (exported, handed, computed.clone());
                let exported_there = exported.clone();
                (
                    exported_there,
                    thread::spawn(move || {
                        let snapshot: Csn = loop {
                            let found = *handed.lock().expect("nobody panics");
                            match found {
                                Some(snapshot) => break snapshot,
                                None => thread::yield_now(),
                            }
                        };
                        let mut snapshots = Snapshots::default();
                        let own = snapshots.acquire(&horizon, &published[0]);
                        snapshots.adopt(snapshot, &published[0]);
                        tick(&horizon);
                        thread::yield_now();
                        snapshots.publish(&published[0]);
                        thread::yield_now();
                        for bounds in &*computed.lock().expect("nobody panics") {
                            let dropped = bounds.droppable(Csn(snapshot.0 - 1), snapshot);
                            assert!(dropped.is_err(), "{snapshot:?} is seen: {bounds:?}");
                        }
                        snapshots.release(own, &published[0]);
                        snapshots.release(snapshot, &published[0]);
                        exported.unpin(snapshot);
                    }),
                )
            };
            for _ in 0..3 {
                let bounds = VisibilityBounds::read(&horizon, &*published, &importer.0);
                computed.lock().expect("nobody panics").push(bounds);
            }
            exporter.join().expect("ends");
            importer.1.join().expect("ends");
            let last = VisibilityBounds::read(&horizon, &*published, &importer.0);
            assert_eq!(last.oldest(), horizon.counter());
            set_hook(None);
        });
    }

    /// Many old snapshots of one worker keep one version each, those that find no slot keep all that is younger; each
    /// that goes makes room, whatever the order.
    #[test]
    fn many_old_snapshots_keep_one_version_each() {
        let horizon = Horizon::new(1, Csn(10));
        let published = [PublishedSnapshots::new()];
        let mut snapshots = Snapshots::default();
        let mut taken: Vec<Csn> = (0..SINGLES_MAX + 3)
            .map(|_| {
                let snapshot = snapshots.acquire(&horizon, &published[0]);
                (0..4).for_each(|_| tick(&horizon));
                snapshot
            })
            .collect();
        snapshots.publish(&published[0]);
        let newest = horizon.counter();
        let kept = |snapshots: &mut Snapshots| -> usize {
            snapshots.publish(&published[0]);
            let bounds = VisibilityBounds::read(&horizon, &published, &SnapshotPins::default());
            (9..newest.0 - 1)
                .filter(|csn| bounds.droppable(Csn(*csn), Csn(csn + 1)).is_err())
                .count()
        };
        let beyond = (newest.0 - taken[SINGLES_MAX].0) as usize;
        assert_eq!(kept(&mut snapshots), SINGLES_MAX + beyond);
        // From the middle, so that slots are used again out of order.
        for left in (1..taken.len()).rev() {
            let gone = taken.remove(left / 2);
            snapshots.release(gone, &published[0]);
            if left <= SINGLES_MAX {
                assert_eq!(kept(&mut snapshots), left);
            }
        }
        snapshots.release(taken[0], &published[0]);
        assert_eq!(kept(&mut snapshots), 0);
    }

    #[test]
    fn what_is_not_durable_stays() {
        let horizon = Horizon::new(1, Csn(10));
        drop(horizon.draw(WorkerId(0)));
        let bounds = VisibilityBounds::read(
            &horizon,
            &[PublishedSnapshots::new()],
            &SnapshotPins::default(),
        );
        assert_eq!(
            bounds.droppable(Csn(5), Csn(10)),
            Err(None),
            "T1: 10 is not below the horizon"
        );
        assert!(!bounds.ripe(Csn(10)));
    }
}
