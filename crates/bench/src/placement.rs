//! Which keys a session keeps to when there are several instances.
//!
//! A session runs where it is, so it is its keys that are chosen: those of its worker's instance, but for the share of
//! transactions that is to cross ([`Placement`]). The first key from the drawn one on that fits is taken, which keeps
//! a distribution's skew and costs about a hash for each instance.
//!
//! Does not: move partitions, or know tables.

use logstead_engine::{
    Engine, InstanceId, PartitionId, VIRTUAL_PARTITIONS, WorkerId, partition_of,
};

use crate::random::Rng;

/// Which instance's key is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WantedKey {
    /// The worker's own.
    Own,
    /// Another one's.
    Foreign,
    Any,
}

/// Where the keys of a workload lie.
pub(crate) struct Placement {
    engine: Engine,
    /// The share of transactions that lead to other instances.
    cross: f64,
}

impl Placement {
    /// Nothing if there is one instance: sessions take what comes.
    pub(crate) fn of(engine: &Engine, cross: f64) -> Option<Placement> {
        (engine.instances().count() > 1).then(|| Placement {
            engine: engine.clone(),
            cross,
        })
    }

    /// Is the next transaction to lead to other instances?
    pub(crate) fn crosses(&self, rng: &mut Rng) -> bool {
        rng.unit() < self.cross
    }

    /// The first of the keys `0..count` from `key` on, going round, that is of the wanted kind for a worker; `key` if
    /// there is none.
    pub(crate) fn choose(&self, worker: usize, key: u64, count: u64, wanted: WantedKey) -> u64 {
        if wanted == WantedKey::Any {
            return key;
        }
        let instances = self.engine.instances();
        let own = instances.of_worker(WorkerId(worker as u16));
        let fits = |key: &u64| {
            let owner = instances.of_partition(partition_of(&key.to_be_bytes()));
            (owner == own) == (wanted == WantedKey::Own)
        };
        // In so many keys each partition comes up, or does not at all.
        let tried = (0..count.min(64 * u64::from(VIRTUAL_PARTITIONS))).map(|n| (key + n) % count);
        tried.into_iter().find(fits).unwrap_or(key)
    }
}

/// Deals the partitions of the distribution keys `1..=count`, of four bytes, to the instances by turns, so that each
/// has as many of them as the others as far as partitions allow. The keys of each instance.
pub(crate) fn deal(engine: &Engine, count: u32) -> Vec<Vec<u32>> {
    let instances = engine.instances();
    let owners = instances.count();
    let mut next = 0;
    let mut dealt = [false; VIRTUAL_PARTITIONS as usize];
    for key in 1..=count {
        let PartitionId(partition) = partition_of(&key.to_be_bytes());
        if !std::mem::replace(&mut dealt[usize::from(partition)], true) {
            instances.assign(PartitionId(partition), InstanceId(next as u16));
            next = (next + 1) % owners;
        }
    }
    let mut keys = vec![Vec::new(); owners];
    for key in 1..=count {
        let owner = instances.of_partition(partition_of(&key.to_be_bytes()));
        keys[usize::from(owner.0)].push(key);
    }
    keys
}
