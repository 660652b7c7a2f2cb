//! Looking through ack queues: who is hardened, who may pass, who goes on.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;
use std::task::Waker;

use logstead_types::Csn;
use logstead_wal::Cursor;
use smallvec::SmallVec;

use super::CommitPath;
use super::observe::CommitStage;
use crate::ack_queue::{CommitHeap, NOTHING, PendingAcks, WaitingCommit};
use crate::commit_waiters::CommitWaiter;
use crate::dependency_set::IsCommitted;
use crate::pending_commit::PendingCommit;
use crate::stats::Phase;
use crate::tracking::{AckDecision, DurabilityProgress};

/// Who is to go on once the ack queue is left.
type Woken = SmallVec<[Waker; 8]>;

impl CommitPath {
    /// Acknowledges what may be acknowledged of a worker's transactions.
    pub(super) fn acknowledge(&self, worker: usize) {
        self.acknowledge_all(worker..worker + 1);
    }

    /// The same of several workers: all of them count as busy before the first is woken, which might be done and flush
    /// their lane before the last one has its turn here.
    pub(super) fn acknowledge_all(&self, workers: impl Iterator<Item = usize>) {
        let mut woken = Woken::new();
        for worker in workers {
            let before = woken.len();
            self.look_through_ack_queue(worker, &mut woken);
            if woken.len() > before {
                // It has something to do, even if its thread has not woken up yet: the lane's next flush may wait for
                // it.
                self.worker_slots[worker]
                    .idle
                    .store(false, Ordering::SeqCst);
            }
        }
        for waker in woken {
            waker.wake();
        }
    }

    fn look_through_ack_queue(&self, worker: usize, woken: &mut Woken) {
        let ack_queue = &self.ack_queues[worker];
        ack_queue.work(|pending_acks| {
            ack_queue.count_look();
            ack_queue
                .queue
                .drain(|pending| pending_acks.take_in(pending));
            self.look_at_hardened(worker, pending_acks, woken);
            loop {
                self.look_at_heaps(pending_acks, woken);
                let floor = lowest(&pending_acks.floors);
                let gsn = lowest(&pending_acks.gsns);
                // Both are published, whatever is found for the first.
                let floors = &ack_queue.lowest_floor;
                let passed = floors.publish(floor, |until| until < self.horizon.get().0);
                let gsns = &ack_queue.lowest_gsn;
                let hardened = gsns.publish(gsn, |until| until <= self.hardened_gsn());
                if !passed && !hardened {
                    break;
                }
            }
        });
    }

    fn look_at_hardened(&self, worker: usize, pending_acks: &mut PendingAcks, woken: &mut Woken) {
        for lane in pending_acks.lanes() {
            let (commits, wait_ns) = self.look_at_hardened_of(lane, pending_acks, woken);
            if commits > 0 && self.adapting.is_some() {
                let worker_slot = &self.worker_slots[worker];
                worker_slot.commits.fetch_add(commits, Ordering::Relaxed);
                worker_slot.wait_ns.fetch_add(wait_ns, Ordering::Relaxed);
            }
        }
    }

    /// Takes out what is hardened: in the order of the lane, so the first that is not ends it. Answers how many that
    /// were whose times are known, and for how long they had waited for their blocks.
    fn look_at_hardened_of(
        &self,
        number: u16,
        pending_acks: &mut PendingAcks,
        woken: &mut Woken,
    ) -> (u64, u64) {
        let (mut commits, mut wait_ns) = (0, 0_u64);
        let lane = &self.lanes[usize::from(number)];
        let hardened = lane.hardened().0;
        let mut times = None;
        while let Some(mut pending) = pending_acks.next_hardened(number, hardened) {
            if self.options.timing {
                // One look for all that went with the same flush.
                if times.as_ref().is_none_or(|(end, _)| *end < pending.end) {
                    times = lane
                        .flush_times(Cursor(pending.end))
                        .map(|times| (times.end.0, times));
                }
                pending.flushed = times
                    .as_ref()
                    .map(|(_, t)| (t.sealed_at.as_nanos(), t.hardened_at.as_nanos()));
            }
            if let Some((sealed_at, _)) = pending.flushed {
                commits += 1;
                wait_ns += sealed_at.saturating_sub(pending.precommitted_at);
            }
            self.observed(pending.csn, CommitStage::Hardened);
            let verdict = self.tracking.judge(&pending, self);
            if verdict != AckDecision::Committed {
                self.observed(pending.csn, CommitStage::Waits);
            }
            match verdict {
                AckDecision::Committed => pending_acks.waits.none += 1,
                AckDecision::Horizon(_) => pending_acks.waits.horizon += 1,
                AckDecision::Gsn(_) => pending_acks.waits.gsn += 1,
                AckDecision::Predecessor(_) => pending_acks.waits.predecessor += 1,
            }
            self.settle(pending_acks, pending, verdict, woken);
        }
        (commits, wait_ns)
    }

    fn look_at_heaps(&self, pending_acks: &mut PendingAcks, woken: &mut Woken) {
        while let Some(pending) = pop_below(&mut pending_acks.floors, self.horizon.get().0) {
            let verdict = self.tracking.judge(&pending, self);
            self.settle(pending_acks, *pending, verdict, woken);
        }
        if self.tracking.is_by_page() {
            while let Some(pending) = pop_below(
                &mut pending_acks.gsns,
                self.hardened_gsn().saturating_add(1),
            ) {
                let verdict = self.tracking.judge(&pending, self);
                self.settle(pending_acks, *pending, verdict, woken);
            }
        }
    }

    /// Puts a hardened transaction where its verdict says; what waited for one that is Committed follows at once.
    fn settle(
        &self,
        pending_acks: &mut PendingAcks,
        pending: PendingCommit,
        verdict: AckDecision,
        woken: &mut Woken,
    ) {
        let mut freed: SmallVec<[CommitWaiter; 4]> = SmallVec::new();
        let mut next = Some((pending, verdict));
        while let Some((pending, verdict)) = next.take() {
            match verdict {
                AckDecision::Committed => self.commit(pending_acks, &pending, &mut freed),
                AckDecision::Horizon(csn) => pending_acks.floors.push(Reverse(WaitingCommit {
                    until: csn.0,
                    pending: Box::new(pending),
                })),
                AckDecision::Gsn(gsn) => pending_acks.gsns.push(Reverse(WaitingCommit {
                    until: gsn,
                    pending: Box::new(pending),
                })),
                AckDecision::Predecessor(csn) => {
                    let back = self
                        .waits
                        .park(csn, Box::new(pending), || self.is_committed(csn));
                    if let Some(pending) = back {
                        let verdict = self.tracking.judge(&pending, self);
                        next = Some((*pending, verdict));
                        continue;
                    }
                }
            }
            while let Some(waiting) = freed.pop() {
                match waiting {
                    CommitWaiter::Client(_, waker) => woken.push(waker),
                    CommitWaiter::Dependent(pending) => {
                        let verdict = self.tracking.judge(&pending, self);
                        next = Some((*pending, verdict));
                        break;
                    }
                }
            }
        }
    }

    /// The transaction is Committed: from here on it survives whatever comes.
    fn commit(
        &self,
        pending_acks: &mut PendingAcks,
        pending: &PendingCommit,
        freed: &mut SmallVec<[CommitWaiter; 4]>,
    ) {
        if self.options.timing {
            let now = self.clock();
            let latencies = &mut pending_acks.latencies;
            latencies.record(Phase::Execution, pending.execution_ns);
            if let Some((sealed_at, hardened_at)) = pending.flushed {
                let since = |later: u64, earlier: u64| later.saturating_sub(earlier);
                latencies.record(Phase::LaneWait, since(sealed_at, pending.precommitted_at));
                latencies.record(Phase::Flush, since(hardened_at, sealed_at));
                latencies.record(Phase::DependencyWait, since(now, hardened_at));
            }
            self.decided_at[self.commit_ring.place(pending.csn)].store(now, Ordering::Relaxed);
        }
        self.commit_ring.set(pending.csn);
        self.observed(pending.csn, CommitStage::Committed);
        self.waits.take(pending.csn, freed);
    }

    /// A lane's hardened cursor has moved.
    pub(super) fn hardened(&self, lane: usize) {
        self.hardened_at[lane].store(self.clock(), Ordering::Relaxed);
        self.advance_horizon();
        if self.tracking.is_by_page() {
            self.advance_gsn();
        }
        self.notify_hardened(lane);
        self.adapt();
    }

    /// Computes the horizon again; whoever waited for where it is now goes on.
    pub(super) fn advance_horizon(&self) {
        let lowest = || {
            let lanes = self.lanes.iter().map(logstead_wal::Lane::first_not_durable);
            lanes.min().unwrap_or(Csn(u64::MAX))
        };
        if self.horizon.advance(lowest).is_some() {
            self.horizon_moved();
        }
    }

    /// Of a replica, in whose lanes nothing is: all below `next` is committed, and snapshots see it from now on;
    /// whoever waited for the horizon to be there goes on.
    pub fn follow(&self, next: Csn) {
        self.horizon.follow(next);
        self.horizon_moved();
    }

    /// The first half of it: all below `next` is committed, and whoever waited for that goes on. Snapshots see no more
    /// than before.
    pub fn follow_durable(&self, next: Csn) {
        self.horizon.follow_durable(next);
        self.horizon_moved();
    }

    fn horizon_moved(&self) {
        let horizon = self.horizon.get();
        self.horizon_watermark.advance(horizon.0);
        self.pause.wake();
        for worker in 0..self.ack_queues.len() {
            if self.ack_queues[worker].is_passed(horizon) {
                self.acknowledge(worker);
            }
        }
    }

    /// Finds the smallest hardened GSN. Empty lanes, whose workers may be idle, are raised to the newest one first: a
    /// barrier, without which they would hold everybody back.
    pub(super) fn advance_gsn(&self) {
        let newest = self.gsn_newest.load(Ordering::SeqCst);
        let mut lowest = u64::MAX;
        for lane in &self.lanes {
            lane.raise_gsn(newest);
            lowest = lowest.min(lane.hardened_gsn());
        }
        let before = self.gsn_hardened.fetch_max(lowest, Ordering::SeqCst);
        if lowest <= before {
            return;
        }
        self.gsn_watermark.advance(lowest);
        for worker in 0..self.ack_queues.len() {
            if self.ack_queues[worker].lowest_gsn.get() <= lowest {
                self.acknowledge(worker);
            }
        }
    }
}

fn lowest(heap: &CommitHeap) -> u64 {
    heap.peek().map_or(NOTHING, |Reverse(held)| held.until)
}

fn pop_below(heap: &mut CommitHeap, limit: u64) -> Option<Box<PendingCommit>> {
    let Reverse(first) = heap.peek()?;
    if first.until >= limit {
        return None;
    }
    heap.pop().map(|Reverse(held)| held.pending)
}
