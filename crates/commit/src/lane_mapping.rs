//! Which lane a worker pushes to, and who has something in a lane.
//!
//! Where lanes are fixed, `workers_per_lane` neighbours of an instance share one for good. Where they are not (see
//! [`CommitOptions::moves_lanes`](crate::CommitOptions::moves_lanes)), a number of *lanes in use* is set from outside
//! at any moment, and each worker follows by itself between two transactions: it *adopts* its lane when it asks for
//! room and when it is idle. What it has pushed stays where it is.
//!
//! A worker is a *member* of the lane it pushes to now, and of every lane in which it may have entries that are not
//! hardened. Rules, and why nobody is forgotten (T13):
//! - It is entered as a member before its entry goes into the lane, and by its own thread only. So whoever hardens an
//!   entry finds its worker among the members, and looks through that one's ack queue.
//! - It leaves, by its own thread again, when everything it has pushed there is hardened and its ack queue has been
//!   looked through after that. If the lane holds bytes then, which are others', it has those others asked: a completed
//!   flush may have roused just this one.
//! - An idle worker sees to every lane of which it is a member, and a lane that is roused rouses members. So bytes
//!   never lie in a lane whose workers have all moved away: each byte that is not hardened is some member's, and that
//!   member asks.
//! - An entry goes into the lane in which its room was taken (T12), and where its side segment lies (T8), whatever has
//!   been adopted since.
//!
//! Each instance has lanes of its own, of which one at least is in use; no worker ever pushes to another's.
//!
//! What may be acknowledged is not decided here: dependencies are named by CSN, in whatever lanes entries lie.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::protocol::ProtocolConfig;
use crate::worker_blocks::WorkerBlocks;

/// Lanes, by number.
pub(crate) type LaneSet = SmallVec<[usize; 4]>;

/// A worker's part.
struct WorkerLanes {
    /// The lane it pushes to now.
    lane: AtomicUsize,
    /// Other lanes in which it has pushed, and up to where. Its own thread's; the lock is never waited for.
    left: Mutex<Vec<(usize, u64)>>,
}

/// See the module's documentation.
pub(crate) struct LaneMapping {
    protocol_config: ProtocolConfig,
    /// Lanes that were opened, and how many of them are used; `None` where that is fixed.
    in_use: Option<AtomicUsize>,
    lanes: usize,
    /// Those of each instance, where their use may change.
    lane_blocks: WorkerBlocks,
    worker_lanes: Box<[CachePadded<WorkerLanes>]>,
    /// By lane: a bit for each member.
    members: Box<[CachePadded<Box<[AtomicU64]>>]>,
}

impl LaneMapping {
    /// Of workers over `lanes` lanes. `moves`: lanes in use may change; they begin with `workers_per_lane` to each.
    pub(crate) fn new(protocol_config: &ProtocolConfig, lanes: usize, moves: bool) -> LaneMapping {
        let workers = protocol_config.workers;
        let mut mapping = LaneMapping {
            protocol_config: *protocol_config,
            in_use: moves.then(|| AtomicUsize::new(protocol_config.lanes().min(lanes))),
            lanes,
            lane_blocks: WorkerBlocks::new(lanes, protocol_config.blocks.count()),
            worker_lanes: Box::default(),
            members: (0..lanes)
                .map(|_| {
                    let words = (0..workers.div_ceil(64)).map(|_| AtomicU64::new(0));
                    CachePadded::new(words.collect())
                })
                .collect(),
        };
        let lanes_of_worker = |worker| {
            CachePadded::new(WorkerLanes {
                lane: AtomicUsize::new(mapping.target(worker)),
                // A push must not allocate (T12).
                left: Mutex::new(Vec::with_capacity(if moves { lanes } else { 0 })),
            })
        };
        mapping.worker_lanes = (0..workers).map(lanes_of_worker).collect();
        for worker in 0..workers {
            mapping.enter(worker, mapping.lane_of(worker));
        }
        mapping
    }

    /// Lanes in use may change.
    pub(crate) fn moves(&self) -> bool {
        self.in_use.is_some()
    }

    /// A lane may have several workers.
    pub(crate) fn shares(&self) -> bool {
        self.moves() || self.protocol_config.workers_per_lane > 1
    }

    /// How many lanes are in use.
    pub(crate) fn in_use(&self) -> usize {
        match &self.in_use {
            Some(in_use) => in_use.load(Ordering::Relaxed),
            None => self.lanes,
        }
    }

    /// Has so many lanes used, from when each worker next asks for room or is idle. Says whether they may change at
    /// all.
    pub(crate) fn set_in_use(&self, lanes: usize) -> bool {
        if let Some(in_use) = &self.in_use {
            let least = self.lane_blocks.count();
            in_use.store(lanes.clamp(least, self.lanes), Ordering::SeqCst);
        }
        self.moves()
    }

    /// Where a worker shall push.
    fn target(&self, worker: usize) -> usize {
        match &self.in_use {
            // Neighbours do not share: sessions are given to the first workers first.
            Some(in_use) => {
                let in_use = in_use.load(Ordering::SeqCst);
                let instance = self.protocol_config.blocks.of(worker);
                let own = self.lane_blocks.workers(instance);
                let number = worker - self.protocol_config.blocks.workers(instance).start;
                own.start + number % self.lane_blocks.lanes_in_use(instance, in_use)
            }
            None => self.protocol_config.lane_of(worker),
        }
    }

    /// Where a worker pushes.
    #[inline]
    pub(crate) fn lane_of(&self, worker: usize) -> usize {
        self.worker_lanes[worker].lane.load(Ordering::SeqCst)
    }

    /// The worker follows the lanes in use: from its own thread, between transactions. `pushed`: a lane's cursor. True
    /// if it has moved.
    #[inline]
    pub(crate) fn adopt(&self, worker: usize, pushed: impl Fn(usize) -> u64) -> bool {
        if self.in_use.is_none() {
            return false;
        }
        let (before, now) = (self.lane_of(worker), self.target(worker));
        if before == now {
            return false;
        }
        let lanes_of_worker = &self.worker_lanes[worker];
        let mut left = lanes_of_worker.left.lock();
        left.retain(|(lane, _)| *lane != now);
        left.push((before, pushed(before)));
        self.enter(worker, now);
        lanes_of_worker.lane.store(now, Ordering::SeqCst);
        true
    }

    fn enter(&self, worker: usize, lane: usize) {
        self.members[lane][worker / 64].fetch_or(1 << (worker % 64), Ordering::SeqCst);
    }

    /// The worker is about to push to `lane`, where it took room earlier: it is a member before its entry is there.
    #[inline]
    pub(crate) fn pushes(&self, worker: usize, lane: usize) {
        if self.moves() && lane != self.lane_of(worker) {
            self.enter(worker, lane);
        }
    }

    /// And has pushed: its entry ends at `end`.
    #[inline]
    pub(crate) fn pushed(&self, worker: usize, lane: usize, end: u64) {
        if !self.moves() || lane == self.lane_of(worker) {
            return;
        }
        let mut left = self.worker_lanes[worker].left.lock();
        match left.iter_mut().find(|(of, _)| *of == lane) {
            Some((_, until)) => *until = (*until).max(end),
            None => left.push((lane, end)),
        }
    }

    /// Ends the worker's membership of lanes that it has left, from its own thread: of those where everything it has
    /// pushed is hardened. `looked` has its ack queue looked through; it is called after that was seen and before the
    /// worker leaves. Answers which lanes it has left: the caller sees to what others have there.
    #[must_use]
    pub(crate) fn leave(
        &self,
        worker: usize,
        hardened: impl Fn(usize) -> u64,
        looked: impl Fn(),
    ) -> LaneSet {
        if self.in_use.is_none() {
            return LaneSet::new();
        }
        let is_done = |(lane, until): &(usize, u64)| hardened(*lane) >= *until;
        let done: LaneSet = {
            let left = self.worker_lanes[worker].left.lock();
            let done = left.iter().filter(|of| is_done(of));
            done.map(|(lane, _)| *lane).collect()
        };
        if done.is_empty() {
            return done;
        }
        looked();
        let mut left = self.worker_lanes[worker].left.lock();
        for &lane in &done {
            left.retain(|(of, _)| *of != lane);
            self.members[lane][worker / 64].fetch_and(!(1 << (worker % 64)), Ordering::SeqCst);
        }
        done
    }

    /// The lanes of which a worker is a member: the one it pushes to first.
    #[inline]
    pub(crate) fn lanes_of(&self, worker: usize) -> LaneSet {
        let mut lanes = LaneSet::new();
        lanes.push(self.lane_of(worker));
        if self.in_use.is_some() {
            let left = self.worker_lanes[worker].left.lock();
            lanes.extend(left.iter().map(|(lane, _)| *lane));
        }
        lanes
    }

    /// The members of a lane.
    pub(crate) fn members(&self, lane: usize) -> impl Iterator<Item = usize> {
        let words = self.members[lane].iter().enumerate();
        words.flat_map(|(index, word)| {
            let mut bits = word.load(Ordering::SeqCst);
            std::iter::from_fn(move || {
                let bit = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
                Some(index * 64 + bit)
            })
        })
    }

    /// Those members who push there now.
    pub(crate) fn residents(&self, lane: usize) -> impl Iterator<Item = usize> {
        let here = move |worker: &usize| self.lane_of(*worker) == lane;
        self.members(lane).filter(here)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::CommitOptions;

    fn lanes_of_all(mapping: &LaneMapping) -> Vec<usize> {
        (0..mapping.worker_lanes.len())
            .map(|w| mapping.lane_of(w))
            .collect()
    }

    fn mapping(
        workers: usize,
        instances: usize,
        workers_per_lane: usize,
        lanes: usize,
        moves: bool,
    ) -> LaneMapping {
        let options = CommitOptions {
            instances,
            workers_per_lane,
            ..CommitOptions::default()
        };
        LaneMapping::new(&options.protocol_config(workers), lanes, moves)
    }

    #[test]
    fn fixed_lanes_stay_as_they_are() {
        let mapping = mapping(5, 1, 2, 3, false);
        assert_eq!(lanes_of_all(&mapping), [0, 0, 1, 1, 2]);
        assert!(!mapping.set_in_use(1));
        assert!(!mapping.adopt(4, |_| 0));
        assert_eq!((mapping.in_use(), mapping.lane_of(4)), (3, 2));
        assert_eq!(mapping.members(1).collect::<Vec<_>>(), [2, 3]);
    }

    #[test]
    fn workers_share_the_lanes_in_use_evenly() {
        let mapping = mapping(70, 1, 35, 70, true);
        for lanes in [1, 2, 3, 7, 64, 70, 900] {
            assert!(mapping.set_in_use(lanes));
            (0..70).for_each(|worker| {
                mapping.adopt(worker, |_| 0);
                let _nothing_is_there = mapping.leave(worker, |_| 0, || {});
            });
            let lanes = lanes.min(70);
            let counts: Vec<usize> = (0..70).map(|l| mapping.members(l).count()).collect();
            let used = &counts[..lanes];
            assert!(counts[lanes..].iter().all(|count| *count == 0));
            assert!(used.iter().max().unwrap() - used.iter().min().unwrap() <= 1);
        }
    }

    #[test]
    fn lanes_in_use_are_never_shared_by_instances() {
        for (workers, instances, lanes) in [(7, 3, 7), (7, 3, 4), (8, 2, 5), (6, 6, 6), (3, 1, 3)] {
            let mapping = mapping(workers, instances, 1, lanes, true);
            let blocks = WorkerBlocks::new(workers, instances);
            for in_use in 0..=workers + 1 {
                assert!(mapping.set_in_use(in_use));
                (0..workers).for_each(|worker| {
                    mapping.adopt(worker, |_| 0);
                    let _nothing_is_there = mapping.leave(worker, |_| 0, || {});
                });
                let mut used = 0;
                for lane in 0..lanes {
                    let of: Vec<usize> = mapping.members(lane).map(|w| blocks.of(w)).collect();
                    used += usize::from(!of.is_empty());
                    assert!(of.windows(2).all(|two| two[0] == two[1]), "{lane}: {of:?}");
                }
                assert_eq!(used, mapping.in_use());
                assert_eq!(used, in_use.clamp(instances, lanes));
            }
        }
    }

    #[test]
    fn who_has_something_in_a_lane_stays_its_member() {
        let mapping = mapping(2, 1, 1, 2, true);
        mapping.set_in_use(1);
        assert!(mapping.adopt(1, |_| 100));
        assert_eq!(mapping.lanes_of(1).as_slice(), [0, 1]);
        let looks = std::cell::Cell::new(0);
        let look = || looks.set(looks.get() + 1);
        assert!(mapping.leave(1, |_| 99, look).is_empty());
        assert_eq!(mapping.members(1).collect::<Vec<_>>(), [1], "not hardened");
        // Its room was taken before it moved.
        mapping.pushes(1, 1);
        mapping.pushed(1, 1, 150);
        assert!(mapping.leave(1, |_| 149, look).is_empty());
        assert_eq!((mapping.members(1).count(), looks.get()), (1, 0));
        assert_eq!(mapping.residents(1).count(), 0, "it pushes elsewhere now");
        assert_eq!(mapping.leave(1, |_| 150, look).as_slice(), [1]);
        assert_eq!((mapping.members(1).count(), looks.get()), (0, 1));
        assert_eq!(mapping.lanes_of(1).as_slice(), [0]);
        // And back again.
        mapping.set_in_use(2);
        assert!(mapping.adopt(1, |_| 7));
        assert_eq!(mapping.lanes_of(1).as_slice(), [1, 0]);
        assert_eq!(mapping.residents(1).collect::<Vec<_>>(), [1]);
    }
}
