//! How the commit path is set up, and what suits a home where no setting says more
//! ([`CommitOptions::defaults_for`]). What changes while the server runs is in `tuning`, who changes it `adapt`.

use std::time::Duration;

use logstead_home::HomeCapabilities;

use crate::protocol::{AckTiming, ForceCommit, ProtocolConfig, ProtocolKind};
use crate::queue::QueueKind;
use crate::tracking::Tracking;
use crate::worker_blocks::WorkerBlocks;

/// How the commit path is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOptions {
    /// Who flushes and who acknowledges.
    pub protocol: ProtocolKind,
    /// What a transaction waits for besides itself.
    pub tracking: Tracking,
    /// How transactions get from workers to who acknowledges them.
    pub queue: QueueKind,
    /// Instances that the workers are divided among; see [`WorkerBlocks`](crate::WorkerBlocks). No two of them share a
    /// lane.
    pub instances: usize,
    /// Workers that share a lane; more than there are workers: one lane for all of an instance.
    pub workers_per_lane: usize,
    /// Bytes of each of a lane's buffers.
    pub lane_buffer_bytes: usize,
    /// Blocks of a lane that are written at a time, at most; a home may take fewer.
    pub blocks_in_flight_max: usize,
    /// Unflushed bytes that are worth a flush while sessions are ready.
    pub flush_unit_bytes: usize,
    /// The oldest unflushed entry waits no longer while sessions are ready.
    pub flush_timeout: Duration,
    /// A lane's next flush waits so long for the workers that the last one has set free; see `grouped-lanes`.
    pub gather: Duration,
    /// Workers whose transactions one of them acknowledges (`autonomous`).
    pub ack_group: usize,
    /// Workers that steal log from each other (`autonomous`); 0 and 1 are none.
    pub steal_group: usize,
    /// When workers acknowledge (`autonomous`).
    pub acknowledging: AckTiming,
    /// When an idle worker flushes (`autonomous`).
    pub force_commit: ForceCommit,
    /// Bytes of log that may be ahead of durability, over all lanes.
    pub log_allocation_limit_bytes: u64,
    /// CSNs that may be drawn ahead of the horizon.
    pub log_allocation_limit_csns: u64,
    /// Once the horizon has stood still for so long, an idle lane records it for whoever follows the log. `None`: only
    /// blocks with entries record it.
    pub horizon_pause: Option<Duration>,
    /// What follows latency and load while the server runs.
    pub adapt: AdaptiveSettings,
    /// What is acknowledged may be lost, for the sake of a comparison: without this a way of tracking that is not safe
    /// ([`Tracking::is_safe`]) is refused.
    pub may_lose: bool,
    /// Times of every commit are taken.
    pub timing: bool,
    /// Threads of its own are started where a protocol wants one; without, whoever drives it calls
    /// [`CommitPath::background_round`](crate::CommitPath::background_round).
    pub threads: bool,
}

/// What follows the measured latency of appends and the load; the rest stays as it is set. Only where
/// [`CommitOptions::timing`] is on: what is not measured cannot be followed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdaptiveSettings {
    /// Lanes in use. Only with `grouped-lanes`: elsewhere rounds, groups and thieves go by fixed lanes.
    pub lanes: bool,
    /// [`CommitOptions::flush_unit_bytes`].
    pub flush_unit: bool,
    /// How much of [`CommitOptions::lane_buffer_bytes`] is used.
    pub buffer: bool,
    /// [`CommitOptions::flush_timeout`].
    pub flush_timeout: bool,
    /// [`CommitOptions::gather`].
    pub gather: bool,
}

impl AdaptiveSettings {
    /// Nothing does.
    pub const NOTHING: AdaptiveSettings = AdaptiveSettings {
        lanes: false,
        flush_unit: false,
        buffer: false,
        flush_timeout: false,
        gather: false,
    };

    /// All of it does.
    pub const ALL: AdaptiveSettings = AdaptiveSettings {
        lanes: true,
        flush_unit: true,
        buffer: true,
        flush_timeout: true,
        gather: true,
    };
}

impl Default for CommitOptions {
    fn default() -> CommitOptions {
        CommitOptions {
            protocol: ProtocolKind::default(),
            tracking: Tracking::default(),
            queue: QueueKind::default(),
            instances: 1,
            workers_per_lane: 1,
            lane_buffer_bytes: 1 << 20,
            blocks_in_flight_max: 4,
            flush_unit_bytes: 16 << 10,
            flush_timeout: Duration::from_millis(1),
            gather: Duration::ZERO,
            ack_group: 2,
            steal_group: 8,
            acknowledging: AckTiming::default(),
            force_commit: ForceCommit::default(),
            log_allocation_limit_bytes: 256 << 20,
            log_allocation_limit_csns: 1 << 17,
            horizon_pause: None,
            adapt: AdaptiveSettings::NOTHING,
            may_lose: false,
            timing: true,
            threads: true,
        }
    }
}

/// Appends that take longer are worth gathering for.
const SLOW_APPEND_US: u32 = 1000;
/// Workers that share a lane where a lane has one append in flight at a time.
const SHARED_LANE_WORKERS: usize = 2;

impl CommitOptions {
    /// What suits a home like that.
    pub fn defaults_for(capabilities: &HomeCapabilities) -> CommitOptions {
        let plain = CommitOptions::default();
        let latency_us = u64::from(capabilities.append_latency_expected_us);
        let slow = capabilities.append_latency_expected_us >= SLOW_APPEND_US;
        let waits = |slowly: u64, otherwise: Duration| {
            if slow {
                Duration::from_micros(slowly)
            } else {
                otherwise
            }
        };
        CommitOptions {
            workers_per_lane: if capabilities.appends_in_flight_max == 1 {
                SHARED_LANE_WORKERS
            } else {
                1
            },
            flush_unit_bytes: capabilities.block_size_preferred,
            // A buffer holds a flush and what comes while it is given to the home.
            lane_buffer_bytes: plain
                .lane_buffer_bytes
                .max(capabilities.block_size_preferred * 2),
            flush_timeout: waits(latency_us / 2, plain.flush_timeout),
            // Measured with the model of S3 Express: less, and workers of a lane take turns.
            gather: waits(latency_us / 8, plain.gather),
            // Where an append is a few scheduling delays long there is nothing to measure, and nothing to gain.
            adapt: if slow {
                AdaptiveSettings::ALL
            } else {
                AdaptiveSettings::NOTHING
            },
            ..plain
        }
    }

    /// Lanes in use change at runtime: then one is opened for each worker, and used are at first as many as
    /// `workers_per_lane` says.
    pub fn moves_lanes(&self) -> bool {
        self.adapt.lanes && self.timing && self.protocol == ProtocolKind::GroupedLanes
    }

    /// How many lanes are opened for `workers`.
    pub fn lanes(&self, workers: usize) -> usize {
        if self.moves_lanes() {
            workers
        } else {
            self.lanes_at_first(workers)
        }
    }

    /// How many of them are in use at first.
    pub fn lanes_at_first(&self, workers: usize) -> usize {
        self.protocol_config(workers).lanes()
    }

    pub(crate) fn protocol_config(&self, workers: usize) -> ProtocolConfig {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        ProtocolConfig {
            workers,
            blocks: WorkerBlocks::new(workers, self.instances),
            workers_per_lane: self.workers_per_lane.clamp(1, workers.max(1)),
            flush_unit_bytes: self.flush_unit_bytes.max(1),
            flush_timeout_ns: ns(self.flush_timeout),
            gather_ns: ns(self.gather),
            ack_group: self.ack_group,
            steal_group: self.steal_group,
            acknowledging: self.acknowledging,
            force_commit: self.force_commit,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCAL: HomeCapabilities = HomeCapabilities {
        block_alignment: 4096,
        block_size_preferred: 16 << 10,
        room_size_bytes_max: 64 << 20,
        appends_in_flight_max: 2,
        append_latency_expected_us: 50,
        leased: false,
    };

    #[test]
    fn a_quick_home_is_not_waited_for() {
        let options = CommitOptions::defaults_for(&LOCAL);
        assert_eq!(options, CommitOptions::default());
    }

    #[test]
    fn a_slow_home_is_given_more_at_a_time() {
        let options = CommitOptions::defaults_for(&HomeCapabilities {
            block_size_preferred: 2 << 20,
            appends_in_flight_max: 1,
            append_latency_expected_us: 6_000,
            ..LOCAL
        });
        assert_eq!(
            (options.workers_per_lane, options.lanes_at_first(4)),
            (2, 2)
        );
        assert_eq!(
            (options.adapt, options.lanes(4)),
            (AdaptiveSettings::ALL, 4)
        );
        let rounds = CommitOptions {
            protocol: ProtocolKind::Group,
            ..options
        };
        assert_eq!((rounds.moves_lanes(), rounds.lanes(4)), (false, 2));
        assert_eq!(options.flush_unit_bytes, 2 << 20);
        assert!(options.lane_buffer_bytes >= 2 * options.flush_unit_bytes);
        assert_eq!(options.flush_timeout, Duration::from_millis(3));
        assert_eq!(options.gather, Duration::from_micros(750));
    }
}
