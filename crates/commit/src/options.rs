//! How the commit path is set up.

use std::time::Duration;

use crate::protocol::{ProtocolKind, Shape};
use crate::queue::QueueKind;
use crate::tracking::Tracking;

/// How the commit path is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommitOptions {
    /// Who flushes and who acknowledges.
    pub protocol: ProtocolKind,
    /// What a transaction waits for besides itself.
    pub tracking: Tracking,
    /// How transactions get from workers to who acknowledges them.
    pub queue: QueueKind,
    /// Workers that share a lane; more than there are workers: one lane for all.
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
    /// Bytes of log that may be ahead of durability, over all lanes.
    pub log_allocation_limit_bytes: u64,
    /// CSNs that may be drawn ahead of the horizon.
    pub log_allocation_limit_csns: u64,
    /// Times of every commit are taken.
    pub timing: bool,
    /// Threads of its own are started where a protocol wants one; without, whoever drives it calls
    /// [`CommitPath::background_round`](crate::CommitPath::background_round).
    pub threads: bool,
}

impl Default for CommitOptions {
    fn default() -> CommitOptions {
        CommitOptions {
            protocol: ProtocolKind::default(),
            tracking: Tracking::default(),
            queue: QueueKind::default(),
            workers_per_lane: 1,
            lane_buffer_bytes: 1 << 20,
            blocks_in_flight_max: 4,
            flush_unit_bytes: 16 << 10,
            flush_timeout: Duration::from_millis(1),
            gather: Duration::ZERO,
            ack_group: 2,
            steal_group: 8,
            log_allocation_limit_bytes: 256 << 20,
            log_allocation_limit_csns: 1 << 17,
            timing: true,
            threads: true,
        }
    }
}

impl CommitOptions {
    /// How many lanes `workers` have.
    pub fn lanes(&self, workers: usize) -> usize {
        self.shape(workers).lanes()
    }

    pub(crate) fn shape(&self, workers: usize) -> Shape {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        Shape {
            workers,
            workers_per_lane: self.workers_per_lane.clamp(1, workers.max(1)),
            flush_unit_bytes: self.flush_unit_bytes.max(1),
            flush_timeout_ns: ns(self.flush_timeout),
            gather_ns: ns(self.gather),
            ack_group: self.ack_group,
            steal_group: self.steal_group,
        }
    }
}
