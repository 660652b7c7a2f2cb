//! Virtual partitions, and the instances that own them.
//!
//! Owns: the rule by which a distribution key has a partition ([`partition_of`]), and the map from partitions to
//! instances ([`Instances`]).
//!
//! The number of virtual partitions is the same for every database and every number of instances, so a start with
//! another number of instances moves no row and makes no index anew. Which instance owns a partition is a matter of
//! whose caches and memory its rows are in, never of correctness: memory is shared, and who finds a row by its key
//! finds it wherever it lies. So a partition is given to another instance by one store.
//!
//! Does not: place rows ([`crate::rows`]) or entries ([`crate::index`]), or decide where tasks run.

mod restart_marks;

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crossbeam_utils::CachePadded;
use logstead_commit::WorkerBlocks;
use logstead_types::{InstanceId, PartitionId, WorkerId};

use crate::row::RowRef;
use crate::stats::add;

pub(crate) use restart_marks::RestartMarks;

/// How many virtual partitions there are. Chunk numbers and stored index entries are made with it: it never changes.
pub const VIRTUAL_PARTITIONS: u16 = 64;

/// Makes the bytes that the rows of a table are distributed by.
pub trait DistributionKey: Send + Sync {
    /// Appends the encoded distribution columns of `row` to `out`, as the keys of the table's divided indexes begin.
    /// False: it has none, for example because a column is missing; it goes to the first partition.
    fn distribution_key(&self, row: RowRef<'_>, out: &mut Vec<u8>) -> bool;
}

/// The virtual partition of a distribution key. Stored index entries begin with it, so the answer never changes.
#[inline]
pub fn partition_of(distribution_key: &[u8]) -> PartitionId {
    // Two odd constants with bits everywhere: those of splitmix64.
    const FIRST: u64 = 0xbf58_476d_1ce4_e5b9;
    const SECOND: u64 = 0x94d0_49bb_1331_11eb;
    let mut hash = (distribution_key.len() as u64).wrapping_mul(SECOND);
    let mut words = distribution_key.chunks_exact(8);
    let mut mix = |word: u64| {
        hash = (hash ^ word).wrapping_mul(FIRST);
        hash ^= hash >> 29;
    };
    for word in &mut words {
        mix(u64::from_le_bytes(word.try_into().unwrap_or_default()));
    }
    let mut last = [0; 8];
    last[..words.remainder().len()].copy_from_slice(words.remainder());
    mix(u64::from_le_bytes(last));
    hash = hash.wrapping_mul(SECOND);
    hash ^= hash >> 32;
    PartitionId((hash % u64::from(VIRTUAL_PARTITIONS)) as u16)
}

/// A partition's part of a range of keys from `start` on, below `end`, as a divided index has them.
pub(crate) fn part_of_range(
    partition: u16,
    start: &[u8],
    end: Option<&[u8]>,
) -> (Vec<u8>, Vec<u8>) {
    let within = |key: &[u8]| {
        let mut bytes = Vec::with_capacity(key.len() + 1);
        bytes.push(partition as u8);
        bytes.extend_from_slice(key);
        bytes
    };
    let end = end.map_or_else(|| vec![partition as u8 + 1], within);
    (within(start), end)
}

/// What a worker counts of each partition.
type PartitionLoads = [AtomicU64; VIRTUAL_PARTITIONS as usize];

/// The instances: which workers are whose, and which virtual partitions.
pub struct Instances {
    count: u16,
    blocks: WorkerBlocks,
    /// Of each partition, the instance that owns it. Written now and then, read with every access.
    assignment: CachePadded<[AtomicU16; VIRTUAL_PARTITIONS as usize]>,
    /// What was dropped of them.
    pub(crate) restarts: CachePadded<RestartMarks>,
    /// Each worker's own counts; none if there is one instance.
    loads: Box<[CachePadded<PartitionLoads>]>,
    /// Of each instance, the chunks of its partitions that checkpoints have stored.
    checkpoint_chunks: Box<[AtomicU64]>,
}

impl Instances {
    /// `count` of them, at least one and at most one for each worker and each partition.
    pub(crate) fn new(count: usize, workers: usize) -> Instances {
        let count = Instances::counted(count, workers) as u16;
        let counting = if count > 1 { workers } else { 0 };
        let first_owner = |partition: usize| {
            AtomicU16::new(
                (partition * usize::from(count) / usize::from(VIRTUAL_PARTITIONS)) as u16,
            )
        };
        Instances {
            count,
            blocks: WorkerBlocks::new(workers, usize::from(count)),
            assignment: CachePadded::new(std::array::from_fn(first_owner)),
            restarts: CachePadded::new(RestartMarks::new()),
            loads: (0..counting)
                .map(|_| {
                    CachePadded::new([const { AtomicU64::new(0) }; VIRTUAL_PARTITIONS as usize])
                })
                .collect(),
            checkpoint_chunks: (0..count).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// How many there are if so many are wanted.
    pub(crate) fn counted(wanted: usize, workers: usize) -> usize {
        let most = workers.min(usize::from(VIRTUAL_PARTITIONS));
        wanted.clamp(1, most.max(1))
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        usize::from(self.count)
    }

    /// Is there more than one? Else nothing is counted.
    #[inline]
    pub(crate) fn is_divided(&self) -> bool {
        self.count > 1
    }

    /// Whose worker it is: each instance has a block of workers.
    #[inline]
    pub fn of_worker(&self, worker: WorkerId) -> InstanceId {
        InstanceId(self.blocks.of(usize::from(worker.0)) as u16)
    }

    /// The workers of an instance.
    pub fn workers_of(&self, instance: InstanceId) -> impl Iterator<Item = WorkerId> + use<> {
        let workers = self.blocks.workers(usize::from(instance.0));
        workers.map(|worker| WorkerId(worker as u16))
    }

    /// The owner of a partition.
    ///
    /// # Panics
    /// If there is no such partition.
    #[inline]
    pub fn of_partition(&self, partition: PartitionId) -> InstanceId {
        InstanceId(self.assignment[usize::from(partition.0)].load(Ordering::Relaxed))
    }

    /// Gives a partition to an instance: accesses count as that instance's from now on.
    ///
    /// # Panics
    /// If there is no such partition or no such instance.
    pub fn assign(&self, partition: PartitionId, instance: InstanceId) {
        assert!(instance.0 < self.count, "there is no instance {instance}");
        self.assignment[usize::from(partition.0)].store(instance.0, Ordering::Relaxed);
    }

    /// How many accesses a partition has had, if there is more than one instance.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn load_of(&self, partition: PartitionId) -> u64 {
        let at = usize::from(partition.0);
        let counts = self.loads.iter().map(|loads| &loads[at]);
        counts.map(|count| count.load(Ordering::Relaxed)).sum()
    }

    /// How many chunks of an instance's partitions published checkpoints have stored since the start: whose they were
    /// when that was. System tables are counted too.
    ///
    /// # Panics
    /// If there is no such instance.
    pub fn checkpoint_chunks_of(&self, instance: InstanceId) -> u64 {
        self.checkpoint_chunks[usize::from(instance.0)].load(Ordering::Relaxed)
    }

    /// A published checkpoint has stored a chunk of a partition.
    pub(crate) fn count_checkpoint_chunk(&self, partition: PartitionId) {
        let owner = self.of_partition(partition);
        self.checkpoint_chunks[usize::from(owner.0)].fetch_add(1, Ordering::Relaxed);
    }

    /// A worker has accessed something of a partition. Called on its own thread, if there is more than one instance.
    #[inline]
    pub(crate) fn count_access(&self, worker: WorkerId, partition: PartitionId) {
        add(
            &self.loads[usize::from(worker.0)][usize::from(partition.0)],
            1,
        );
    }
}

/// To whose rows and index entries the accesses of a transaction have led.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InstancesTouched {
    /// Accesses to what the instance of its worker owns.
    pub local: u32,
    /// Accesses to what other instances own.
    pub foreign: u32,
    /// The other instance that most of the foreign accesses led to, if one has more than half of them; else one of
    /// them.
    pub foreign_most: Option<InstanceId>,
    /// By how much it is ahead, by the majority vote of Boyer and Moore.
    lead: u32,
}

impl InstancesTouched {
    /// Counts an access to what `owner` owns, of a worker of `own`.
    #[inline]
    pub(crate) fn count(&mut self, own: InstanceId, owner: InstanceId) {
        if own == owner {
            self.local = self.local.saturating_add(1);
            return;
        }
        self.foreign = self.foreign.saturating_add(1);
        if self.foreign_most == Some(owner) {
            self.lead = self.lead.saturating_add(1);
        } else if self.lead == 0 {
            (self.foreign_most, self.lead) = (Some(owner), 1);
        } else {
            self.lead -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
