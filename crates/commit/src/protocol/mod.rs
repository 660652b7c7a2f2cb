//! Commit protocols: who flushes, when, and who acknowledges. Pure state machines: an event in, actions out.
//!
//! | protocol | flush | acknowledge |
//! |---|---|---|
//! | `group` | one worker, all lanes, in rounds | at the end of the round, everybody's |
//! | `pipelined` | one background thread, all lanes, in rounds | at the end of the round, everybody's |
//! | `autonomous` | each worker for itself and those it robs, at the flush unit | each worker for its group, now and then |
//! | `grouped-lanes` | each lane for itself, at the flush unit or a timeout | after every flush, the lane's workers |
//!
//! One rule for all of them: when a worker has no session ready to run, what its lane holds is on its way to storage,
//! or somebody is told when it will be. A lone client therefore waits for one flush and never for a timeout.
//!
//! What a protocol decides is never a matter of correctness: flushing early, late or twice, and acknowledging more
//! often than needed, only costs time. What may be acknowledged is judged elsewhere ([`crate::Tracking`]).

mod autonomous;
mod group;
mod grouped_lanes;
mod pipelined;
mod rounds;

use std::ops::Range;

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::worker_blocks::WorkerBlocks;

pub(crate) use autonomous::Autonomous;
pub(crate) use group::Group;
pub(crate) use grouped_lanes::GroupedLanes;
pub(crate) use pipelined::Pipelined;

/// Which protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ProtocolKind {
    /// One worker flushes all lanes in rounds: the classic; a baseline.
    Group,
    /// One background thread does (Aether's flush pipelining); a baseline.
    Pipelined,
    /// Every worker flushes its own log, steals, and acknowledges its group: LeanStore's.
    Autonomous,
    /// Every lane flushes for itself and its workers are acknowledged: Milliscale's.
    #[default]
    GroupedLanes,
}

impl ProtocolKind {
    /// All of them.
    pub const ALL: [ProtocolKind; 4] = [
        ProtocolKind::Group,
        ProtocolKind::Pipelined,
        ProtocolKind::Autonomous,
        ProtocolKind::GroupedLanes,
    ];

    /// Its name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            ProtocolKind::Group => "group",
            ProtocolKind::Pipelined => "pipelined",
            ProtocolKind::Autonomous => "autonomous",
            ProtocolKind::GroupedLanes => "grouped-lanes",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<ProtocolKind> {
        ProtocolKind::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
    }
}

/// When workers acknowledge, in `autonomous`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AckTiming {
    /// Those concerned are acknowledged whenever a block has hardened.
    #[default]
    WhenHardened,
    /// The paper's: on average once in log2(workers) transactions, and by whoever is idle.
    AtRandom,
}

impl AckTiming {
    /// Both.
    pub const ALL: [AckTiming; 2] = [AckTiming::WhenHardened, AckTiming::AtRandom];

    /// Its name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            AckTiming::WhenHardened => "when-hardened",
            AckTiming::AtRandom => "by-dice",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<AckTiming> {
        AckTiming::ALL.into_iter().find(|when| when.name() == name)
    }
}

/// When an idle worker flushes what its lane holds, in `autonomous`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ForceCommit {
    /// At once.
    #[default]
    AtOnce,
    /// The paper's: with the probability average idle time / 50 us.
    IfIdleLong,
}

impl ForceCommit {
    /// Both.
    pub const ALL: [ForceCommit; 2] = [ForceCommit::AtOnce, ForceCommit::IfIdleLong];

    /// Its name, as in the settings.
    pub fn name(self) -> &'static str {
        match self {
            ForceCommit::AtOnce => "at-once",
            ForceCommit::IfIdleLong => "if-idle-long",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<ForceCommit> {
        ForceCommit::ALL
            .into_iter()
            .find(|when| when.name() == name)
    }
}

/// How a lane stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaneView {
    /// Which lane.
    pub number: usize,
    /// Bytes of entries that no flush has taken yet.
    pub unflushed_bytes: usize,
    /// Another block can be given to the home now.
    pub can_flush: bool,
    /// For how long the oldest of those bytes has waited; 0 if there are none.
    pub waited_ns: u64,
    /// For how long no block has completed; `u64::MAX` before the first.
    pub since_hardened_ns: u64,
    /// Every worker that pushes there is idle.
    pub all_idle: bool,
}

/// What a protocol hears.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A transaction of `worker` has pre-committed.
    Precommitted {
        /// The worker.
        worker: usize,
        /// The lane it is in.
        lane: LaneView,
        /// Unflushed bytes of the other lanes of its steal group.
        stealable_bytes: usize,
        /// A random number.
        dice: u32,
    },
    /// `worker` has no session ready to run. Told for each lane in which it has something.
    Idle {
        /// The worker.
        worker: usize,
        /// The lane.
        lane: LaneView,
        /// Nobody of this worker is in the middle of something: its thread may well wait for the device.
        alone: bool,
        /// How long it is expected to be idle: as on average lately, or as it has been already; `None` if nobody knows.
        average_idle_ns: Option<u64>,
        /// A random number.
        dice: u32,
    },
    /// A lane's hardened cursor has moved.
    Hardened {
        /// The lane.
        lane: usize,
        /// The cursor.
        hardened: u64,
        /// A worker that pushes there is idle.
        idle_worker: bool,
        /// How the lane stands.
        view: LaneView,
    },
    /// A round begins: every lane's hardened and pushed cursors.
    Round {
        /// By lane.
        lanes: &'a [(u64, u64)],
    },
}

/// What is to be done, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Flush a lane.
    Flush {
        /// Which.
        lane: usize,
        /// In this thread, if the home offers it; else by the home's.
        inline: bool,
    },
    /// Move what the other lanes of the worker's steal group hold into its own lane's block.
    Steal {
        /// The worker.
        worker: usize,
    },
    /// Acknowledge what may be acknowledged of these workers.
    Acknowledge {
        /// The workers.
        workers: Range<usize>,
    },
    /// Acknowledge what may be acknowledged of the workers that have something in this lane.
    AcknowledgeLane {
        /// The lane.
        lane: usize,
    },
    /// Begin a round ([`Event::Round`]): in this thread, or in the background thread.
    BeginRound {
        /// In the background thread.
        background: bool,
    },
    /// Ask again ([`Event::Idle`]) when this time has passed.
    Recheck {
        /// Nanoseconds from now.
        after_ns: u64,
    },
    /// Have a worker that has something in this lane ask ([`Event::Idle`]) when it is idle, now if it is.
    WakeWorker {
        /// The lane.
        lane: usize,
    },
}

/// What is to be done, in order.
pub type Actions = SmallVec<[Action; 4]>;

/// Numbers that the protocols go by, in force when something happens. Those of workers and groups are fixed. Where
/// lanes are in use as the load wants it, lanes by worker mean nothing here; only `grouped-lanes` runs there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProtocolConfig {
    /// Workers.
    pub workers: usize,
    /// Those of each instance: lanes and groups are within one.
    pub blocks: WorkerBlocks,
    /// Workers that share a lane.
    pub workers_per_lane: usize,
    /// Unflushed bytes that are worth a flush while sessions are ready.
    pub flush_unit_bytes: usize,
    /// The oldest unflushed entry waits no longer while sessions are ready.
    pub flush_timeout_ns: u64,
    /// After a flush has completed, the next one of the lane waits so long for the workers that it has just set free.
    pub gather_ns: u64,
    /// Workers whose transactions one of them acknowledges.
    pub ack_group: usize,
    /// Workers that steal from each other; 0 or 1 is none.
    pub steal_group: usize,
    /// When workers acknowledge (`autonomous`).
    pub acknowledging: AckTiming,
    /// When idle workers flush (`autonomous`).
    pub force_commit: ForceCommit,
}

impl ProtocolConfig {
    /// How many lanes there are.
    pub fn lanes(&self) -> usize {
        let (blocks, shared_by) = (&self.blocks, self.workers_per_lane);
        blocks.lanes_before(blocks.count(), shared_by)
    }

    /// The lane of a worker.
    #[inline]
    pub fn lane_of(&self, worker: usize) -> usize {
        if self.blocks.count() == 1 {
            return worker / self.workers_per_lane;
        }
        let instance = self.blocks.of(worker);
        let first = self.blocks.workers(instance).start;
        self.blocks.lanes_before(instance, self.workers_per_lane)
            + (worker - first) / self.workers_per_lane
    }

    /// The workers of a lane.
    #[inline]
    pub fn workers_of(&self, lane: usize) -> Range<usize> {
        let (instance, before) = self
            .blocks
            .of_lane(lane, self.workers_per_lane)
            .unwrap_or_default();
        let block = self.blocks.workers(instance);
        let first = block.start + (lane - before) * self.workers_per_lane;
        first..(first + self.workers_per_lane).min(block.end)
    }

    /// The workers of a group of `size`, `worker` among them.
    fn group_of(&self, worker: usize, size: usize) -> Range<usize> {
        let size = size.max(1);
        let block = self.blocks.around(worker);
        let first = block.start + (worker - block.start) / size * size;
        first..(first + size).min(block.end)
    }

    /// The acknowledgment group of a worker.
    #[inline]
    pub fn ack_group_of(&self, worker: usize) -> Range<usize> {
        self.group_of(worker, self.ack_group)
    }

    /// The lanes that `worker` may rob, its own among them.
    #[inline]
    pub fn steal_lanes_of(&self, worker: usize) -> Range<usize> {
        let workers = self.group_of(worker, self.steal_group);
        self.lane_of(workers.start)..self.lane_of(workers.end - 1) + 1
    }

    /// Is a lane worth a flush while sessions are ready? What has waited for a block in flight is not late yet when
    /// that has completed: those whom it has set free may want to go along.
    fn is_due(&self, lane: &LaneView) -> bool {
        let waited_ns = lane.waited_ns.min(lane.since_hardened_ns);
        lane.unflushed_bytes > 0
            && (lane.unflushed_bytes >= self.flush_unit_bytes || waited_ns >= self.flush_timeout_ns)
    }
}

/// A protocol. What several threads share of it stands under a lock, held only while an event is taken in.
pub(crate) enum Protocol {
    Group(Mutex<Group>),
    Pipelined(Mutex<Pipelined>),
    Autonomous(Autonomous),
    GroupedLanes,
}

impl Protocol {
    pub(crate) fn new(kind: ProtocolKind, protocol_config: &ProtocolConfig) -> Protocol {
        match kind {
            ProtocolKind::Group => Protocol::Group(Mutex::new(Group::new())),
            ProtocolKind::Pipelined => Protocol::Pipelined(Mutex::new(Pipelined::new())),
            ProtocolKind::Autonomous => Protocol::Autonomous(Autonomous::new(protocol_config)),
            ProtocolKind::GroupedLanes => Protocol::GroupedLanes,
        }
    }

    #[inline]
    pub(crate) fn on(&self, event: Event<'_>, protocol_config: &ProtocolConfig, out: &mut Actions) {
        match self {
            Protocol::Group(protocol) => protocol.lock().on(event, protocol_config, out),
            Protocol::Pipelined(protocol) => protocol.lock().on(event, protocol_config, out),
            Protocol::Autonomous(protocol) => protocol.on(event, protocol_config, out),
            Protocol::GroupedLanes => GroupedLanes::on(event, protocol_config, out),
        }
    }
}

#[cfg(test)]
mod tests;
