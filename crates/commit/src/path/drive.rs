//! Runs the commit protocol of a worker: tells it of commits, flushes and durable blocks, and does what it answers
//! (flush a lane, steal, acknowledge, wait).

use std::sync::atomic::Ordering;
use std::time::Duration;

use logstead_types::WorkerId;
use logstead_wal::{FlushMode, FlushOutcome};

use super::{CommitPath, PushedTxn, WakeFn};
use crate::protocol::{AckTiming, Action, Actions, Event, LaneView};

impl CommitPath {
    /// Has `wake_hook` called when the worker should look whether it is idle ([`CommitPath::idle`]).
    pub fn set_wake_hook(&self, worker: WorkerId, wake_hook: WakeFn) {
        *self.worker_slots[usize::from(worker.0)].wake_hook.write() = Some(wake_hook);
    }

    /// How a lane stands. The clock is read only if something waits there.
    fn view(&self, lane: usize) -> LaneView {
        let status = self.lanes[lane].status();
        let unflushed_bytes = status.dirty_bytes;
        if unflushed_bytes == 0 {
            return LaneView {
                number: lane,
                can_flush: true,
                ..LaneView::default()
            };
        }
        let now = self.clock();
        let hardened_at = self.hardened_at[lane].load(Ordering::Relaxed);
        LaneView {
            number: lane,
            unflushed_bytes,
            can_flush: status.can_flush,
            waited_ns: status
                .oldest_at
                .map_or(0, |at| now.saturating_sub(at.as_nanos())),
            since_hardened_ns: if hardened_at == 0 {
                u64::MAX
            } else {
                now.saturating_sub(hardened_at)
            },
            all_idle: self
                .mapping
                .residents(lane)
                .all(|worker| self.worker_slots[worker].idle.load(Ordering::SeqCst)),
        }
    }

    /// Nobody of the worker is in the middle of something: a flush of its lane need not wait for it.
    #[inline]
    pub fn at_rest(&self, worker: WorkerId) {
        if !self.shares_lanes() {
            return;
        }
        let idle = &self.worker_slots[usize::from(worker.0)].idle;
        if !idle.load(Ordering::Relaxed) {
            idle.store(true, Ordering::SeqCst);
        }
    }

    /// A worker's next random number (SplitMix64): only that worker's thread asks.
    fn dice(&self, worker: usize) -> u32 {
        let dice = &self.worker_slots[worker].dice;
        let state = dice
            .load(Ordering::Relaxed)
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        dice.store(state, Ordering::Relaxed);
        let mut mixed = state;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 32) as u32
    }

    /// The worker has sessions to run.
    #[inline]
    pub fn busy(&self, worker: WorkerId) {
        let worker_slot = &self.worker_slots[usize::from(worker.0)];
        for says in [&worker_slot.idle, &worker_slot.rests] {
            if says.load(Ordering::Relaxed) {
                says.store(false, Ordering::SeqCst);
            }
        }
    }

    /// A transaction of `worker` has pre-committed and is visible. May write the log in this thread.
    pub fn precommitted(&self, worker: WorkerId, pushed: &PushedTxn) {
        let number = usize::from(worker.0);
        self.busy(worker);
        let lane = pushed.lane;
        // Somebody's flush has hardened the entry already, perhaps while `reserved` held back the horizon, or before
        // the transaction was in its queue. Who did that was told what it could see then; nobody else looks again.
        if self.lanes[lane].hardened() >= pushed.end {
            self.advance_horizon();
            if self.tracking.is_by_page() {
                self.advance_gsn();
            }
            self.acknowledge(number);
        }
        self.lead_if_wanted();
        let stealable_bytes = if self.steals() {
            let others = self
                .protocol_config
                .steal_lanes_of(number)
                .filter(|of| *of != lane);
            others.map(|of| self.lanes[of].dirty_bytes()).sum()
        } else {
            0
        };
        let event = Event::Precommitted {
            worker: number,
            lane: self.view(lane),
            stealable_bytes,
            dice: self.dice(number),
        };
        self.on(event);
    }

    /// Between two tasks of a worker that has more to run: what has waited for too long is flushed.
    #[inline]
    pub fn between_tasks(&self, worker: WorkerId) {
        let number = usize::from(worker.0);
        // Those who only read would never come to the end of a transaction that is told of.
        let rolls = self.options.acknowledging == AckTiming::AtRandom;
        for lane in self.mapping.lanes_of(number) {
            let lane = self.view(lane);
            if lane.unflushed_bytes > 0 || rolls {
                self.on(Event::Precommitted {
                    worker: number,
                    lane,
                    stealable_bytes: 0,
                    dice: if rolls { self.dice(number) } else { 1 },
                });
            }
        }
    }

    /// A worker follows the lanes in use, and is rid of those where nothing of it is left: from its own thread, between
    /// two transactions. Where it pushes to from now on.
    #[inline]
    pub(super) fn adopt(&self, worker: usize) -> usize {
        if self.mapping.moves() {
            let cursor = |lane: usize| self.lanes[lane].pushed().0;
            self.mapping.adopt(worker, cursor);
            let hardened = |lane: usize| self.lanes[lane].hardened().0;
            let left = self
                .mapping
                .leave(worker, hardened, || self.acknowledge(worker));
            for lane in left {
                // Roused for it, it would not have looked there any more: those whose bytes they are do.
                if self.lanes[lane].is_dirty() {
                    self.wake_worker_of(lane);
                }
            }
        }
        self.mapping.lane_of(worker)
    }

    fn steals(&self) -> bool {
        self.protocol_config.steal_group > 1
            && self.options.protocol == crate::protocol::ProtocolKind::Autonomous
    }

    /// The worker has no session ready to run; `alone`: nobody of it is in the middle of something, so that its thread
    /// may wait for the device; `average_idle_ns`: how long it has been idle lately, if that is known. May write the
    /// log in this thread. Answers when to call again, if nothing happens before.
    pub fn idle(
        &self,
        worker: WorkerId,
        alone: bool,
        average_idle_ns: Option<u64>,
    ) -> Option<Duration> {
        let number = usize::from(worker.0);
        let here = self.adopt(number);
        self.worker_slots[number].idle.store(true, Ordering::SeqCst);
        self.worker_slots[number]
            .rests
            .store(true, Ordering::SeqCst);
        self.lead_if_wanted();
        let mut again: Option<Duration> = None;
        // Lanes that it has left may hold something of it, and perhaps nobody else pushes there any more.
        for lane in self.mapping.lanes_of(number) {
            let event = Event::Idle {
                worker: number,
                lane: self.view(lane),
                alone: alone && lane == here,
                average_idle_ns,
                dice: self.dice(number),
            };
            let of_lane = self.on(event);
            again = again.into_iter().chain(of_lane).min();
        }
        if self.tracking.is_by_page() {
            // An idle worker holds nobody back.
            self.advance_gsn();
        }
        again
    }

    /// After a lane's hardened cursor has moved.
    pub(super) fn notify_hardened(&self, lane: usize) {
        let event = Event::Hardened {
            lane,
            hardened: self.lanes[lane].hardened().0,
            // After the cursor has moved: who becomes idle says so before it looks at the cursor.
            idle_worker: self.options.acknowledging == AckTiming::AtRandom
                && self
                    .mapping
                    .residents(lane)
                    .any(|worker| self.worker_slots[worker].rests.load(Ordering::SeqCst)),
            view: self.view(lane),
        };
        self.on(event);
    }

    pub(super) fn on(&self, event: Event<'_>) -> Option<Duration> {
        let mut actions = Actions::new();
        self.protocol
            .on(event, &self.protocol_config(), &mut actions);
        let mut again = None;
        for action in actions {
            match action {
                Action::Flush { lane, inline } => {
                    let outcome = self.lanes[lane].flush(if inline {
                        FlushMode::Inline
                    } else {
                        FlushMode::Handoff
                    });
                    // All of it has hardened between the look and now: a round that has just begun would wait for ever
                    // for the lane to say so again.
                    if outcome == FlushOutcome::Clean {
                        self.notify_hardened(lane);
                    }
                }
                Action::Steal { worker } => self.steal(worker),
                Action::Acknowledge { workers } => self.acknowledge_all(workers),
                Action::AcknowledgeLane { lane } => {
                    self.acknowledge_all(self.mapping.members(lane));
                }
                Action::BeginRound { background } => self.begin_round(background),
                Action::Recheck { after_ns } => again = Some(Duration::from_nanos(after_ns)),
                Action::WakeWorker { lane } => self.wake_worker_of(lane),
            }
        }
        again
    }

    fn steal(&self, worker: usize) {
        let own = self.protocol_config.lane_of(worker);
        let thief = &self.lanes[own];
        for victim in self.protocol_config.steal_lanes_of(worker) {
            if victim != own {
                thief.steal(&self.lanes[victim], self.protocol_config().flush_unit_bytes);
            }
        }
    }

    /// An idle worker first: one that is busy gets there in time, and is only asked to look once more.
    pub(super) fn wake_worker_of(&self, lane: usize) {
        let idle = |worker: &usize| self.worker_slots[*worker].idle.load(Ordering::SeqCst);
        let members = || self.mapping.members(lane);
        let mut candidates = members().filter(idle).chain(members());
        let wake_hook =
            candidates.find_map(|worker| self.worker_slots[worker].wake_hook.read().clone());
        if let Some(wake_hook) = wake_hook {
            wake_hook();
        }
    }
}
