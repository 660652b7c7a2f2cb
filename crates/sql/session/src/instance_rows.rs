//! Instances as others see and change them: rows of `logstead_instances`, and partitions that move.
//!
//! Does not: count anything (`instance_status` and the engine do).

use crate::context::SessionContext;
use crate::instance::Instance;
use crate::instance_status::{InstanceStatus, PartitionMoveReason};
use logstead_engine::{InstanceId, PartitionId, PartitionMemory, VIRTUAL_PARTITIONS, WorkerId};
use logstead_sql_catalog::context::InstanceRow;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

impl SessionContext {
    /// `logstead_move_partition`, of a superuser: without an instance the partition is released.
    pub(crate) fn move_partition_to(&self, partition: i32, instance: Option<i32>) -> Result<bool> {
        self.instance.status_of_partitions()?;
        let partitions = usize::from(VIRTUAL_PARTITIONS);
        let partition = PartitionId(one_of("partition", partition, partitions)?);
        match instance {
            Some(to) => {
                let instances = self.instance.engine.instances().count();
                let to = InstanceId(one_of("instance", to, instances)?);
                self.instance.move_partition(partition, to)
            }
            None => self.instance.release_partition(partition),
        }
    }
}

impl Instance {
    /// The cores that workers run on, for those who look at them.
    pub fn set_worker_cores(&self, cores: Vec<usize>) {
        if let Some(status) = &self.instances {
            let _was_told_before = status.cores.set(cores);
        }
    }

    /// Gives a partition of all divided tables to an instance, and pins it there. False if it is that one's already.
    pub fn move_partition(&self, partition: PartitionId, to: InstanceId) -> Result<bool> {
        self.give_partition(partition, to, PartitionMoveReason::ByHand)
    }

    /// Gives a partition to an instance that has less to do. False if it is pinned, or that one's already.
    pub fn balance_partition(&self, partition: PartitionId, to: InstanceId) -> Result<bool> {
        self.give_partition(partition, to, PartitionMoveReason::Balance)
    }

    /// Lets a partition that was moved by hand move for balance again. False if it was not pinned.
    pub fn release_partition(&self, partition: PartitionId) -> Result<bool> {
        Ok(self
            .status_of_partition(partition)?
            .release_partition(partition))
    }

    /// Does a partition stay where it was moved by hand?
    pub fn is_partition_pinned(&self, partition: PartitionId) -> bool {
        { self.instances.as_ref() }.is_some_and(|status| status.is_pinned(partition))
    }

    fn give_partition(
        &self,
        partition: PartitionId,
        to: InstanceId,
        reason: PartitionMoveReason,
    ) -> Result<bool> {
        let status = self.status_of_partition(partition)?;
        let instances = self.engine.instances();
        one_of("instance", i32::from(to.0), instances.count())?;
        Ok(status.move_partition(instances, partition, to, reason))
    }

    /// What knows where a partition is; refused if there is one instance, or no such partition.
    fn status_of_partition(&self, partition: PartitionId) -> Result<&InstanceStatus> {
        let status = self.status_of_partitions()?;
        let number = i32::from(partition.0);
        one_of("partition", number, usize::from(VIRTUAL_PARTITIONS))?;
        Ok(status)
    }

    /// What knows where partitions are; refused if there is one instance.
    fn status_of_partitions(&self) -> Result<&InstanceStatus> {
        { self.instances.as_deref() }.ok_or_else(|| {
            SqlError::new(
                SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
                "partitions cannot move: the server has one instance",
            )
            .hint("A server that is started with \"instances\" has more.")
        })
    }

    /// Rows of `logstead_instances`. One where there is one instance, in which everything is inside.
    pub fn instance_rows(&self) -> Vec<InstanceRow> {
        let instances = self.engine.instances();
        let memory = self.engine.partition_memory();
        let numbers = (0..instances.count()).filter_map(|number| u16::try_from(number).ok());
        numbers
            .map(|number| self.instance_row(InstanceId(number), &memory))
            .collect()
    }

    /// `memory`: what is in memory of each partition.
    fn instance_row(&self, instance: InstanceId, memory: &[PartitionMemory]) -> InstanceRow {
        let (engine, path) = (&self.engine, self.engine.commit_path());
        let workers: Vec<WorkerId> = engine.instances().workers_of(instance).collect();
        let owned = (0..VIRTUAL_PARTITIONS).map(PartitionId);
        let owned: Vec<PartitionId> = owned
            .filter(|p| engine.instances().of_partition(*p) == instance)
            .collect();
        let in_memory = || owned.iter().filter_map(|p| memory.get(usize::from(p.0)));
        let mut lanes: Vec<usize> = { workers.iter() }
            .map(|worker| path.lane_number_of(*worker))
            .collect();
        lanes.sort_unstable();
        lanes.dedup();
        let mut row = InstanceRow {
            instance: i32::from(instance.0),
            workers: workers.len() as u64,
            lanes: lanes.len() as u64,
            partitions: owned.len() as u64,
            pinned: { owned.iter() }
                .filter(|p| self.is_partition_pinned(**p))
                .count() as u64,
            chunks_in_memory: in_memory().map(|of| of.chunks).sum(),
            row_bytes: in_memory().map(|of| of.bytes).sum(),
            sessions: self.session_count() as u64,
            buffer_bytes: { lanes.iter() }
                .map(|lane| path.lanes()[*lane].buffer_bytes_max() as u64)
                .sum(),
            checkpoint_chunks: engine.instances().checkpoint_chunks_of(instance),
            ..InstanceRow::default()
        };
        for worker in &workers {
            let stats = engine.worker_stats(*worker);
            row.transactions_inside += stats.transactions_inside;
            row.transactions_across += stats.transactions_across;
            row.foreign_accesses += stats.foreign_accesses;
        }
        let Some(status) = &self.instances else {
            let stats = engine.stats();
            row.transactions_inside = stats.commits + stats.commits_read_only + stats.aborts;
            return row;
        };
        let at = |worker: &WorkerId| status.sessions_at(*worker) as u64;
        row.sessions = workers.iter().map(at).sum();
        if let Some(cores) = status.cores.get() {
            let own = workers.iter().filter_map(|w| cores.get(usize::from(w.0)));
            row.cores = own.copied().collect();
            row.cores.sort_unstable();
            row.cores.dedup();
        }
        let moves = status.moves_of(instance);
        let count = |moved: &AtomicU64| moved.load(Ordering::Relaxed);
        row.sessions_in = count(&moves.sessions_in);
        row.sessions_out = count(&moves.sessions_out);
        row.partitions_in = count(&moves.partitions_in);
        row.partitions_out = count(&moves.partitions_out);
        let restarts = status.restarts_of(instance);
        row.is_restarting = restarts.under_way.load(Ordering::Relaxed) > 0;
        row.restarts = count(&restarts.count);
        if row.restarts > 0 {
            row.takeover = Some(Duration::from_micros(count(&restarts.takeover_us)));
            let loaded_us = count(&restarts.loaded_us);
            row.loaded = (loaded_us > 0).then(|| Duration::from_micros(loaded_us));
        }
        row
    }
}

/// The number of one of `count` instances or partitions.
fn one_of(what: &str, number: i32, count: usize) -> Result<u16> {
    let known = u16::try_from(number).ok();
    let known = known.filter(|number| usize::from(*number) < count);
    known.ok_or_else(|| {
        let message = format!("{what} {number} does not exist");
        let detail = format!("There are {count}, numbered from 0.");
        SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message).detail(detail)
    })
}
