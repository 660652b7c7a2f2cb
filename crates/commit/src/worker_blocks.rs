//! How workers and lanes are divided among instances.
//!
//! Rule: workers are divided in contiguous blocks whose sizes differ by one at most, the larger ones first. A lane
//! belongs to one block: workers of two instances never push to the same lane, flush each other's or acknowledge each
//! other's transactions (but in rounds, which are over all lanes: `group`, `pipelined`).

use std::ops::Range;

/// The workers of each instance, by number; or its lanes, where those are divided the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerBlocks {
    instances: usize,
    /// Workers of the smaller blocks.
    least: usize,
    /// Blocks that have one more: the first ones.
    larger: usize,
}

impl WorkerBlocks {
    /// Divides `workers`. An instance has one worker at least, so there are never more instances than workers.
    pub fn new(workers: usize, instances: usize) -> WorkerBlocks {
        let workers = workers.max(1);
        let instances = instances.clamp(1, workers);
        WorkerBlocks {
            instances,
            least: workers / instances,
            larger: workers % instances,
        }
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.instances
    }

    /// The instance of a worker.
    #[inline]
    pub fn of(&self, worker: usize) -> usize {
        if self.instances == 1 {
            return 0;
        }
        let in_larger = self.larger * (self.least + 1);
        match worker.checked_sub(in_larger) {
            None => worker / (self.least + 1),
            Some(behind) => (self.larger + behind / self.least).min(self.instances - 1),
        }
    }

    /// The workers of an instance.
    #[inline]
    pub fn workers(&self, instance: usize) -> Range<usize> {
        let first = |instance: usize| instance * self.least + instance.min(self.larger);
        first(instance)..first(instance + 1)
    }

    /// The block of a worker.
    #[inline]
    pub(crate) fn around(&self, worker: usize) -> Range<usize> {
        self.workers(self.of(worker))
    }

    /// How many lanes the blocks have in front of this instance's where so many workers share one.
    #[inline]
    pub(crate) fn lanes_before(&self, instance: usize, workers_per_lane: usize) -> usize {
        let larger = instance.min(self.larger);
        larger * (self.least + 1).div_ceil(workers_per_lane)
            + (instance - larger) * self.least.div_ceil(workers_per_lane)
    }

    /// The instance of a lane, and how many lanes are in front of that one's; `None` for one lane more than there are.
    #[inline]
    pub(crate) fn of_lane(&self, lane: usize, workers_per_lane: usize) -> Option<(usize, usize)> {
        if self.instances == 1 {
            return Some((0, 0));
        }
        let mut before = 0;
        for instance in 0..self.instances {
            let behind = self.lanes_before(instance + 1, workers_per_lane);
            if lane < behind {
                return Some((instance, before));
            }
            before = behind;
        }
        None
    }

    /// How many of `lanes` in use are an instance's: evenly, and one at least.
    #[inline]
    pub(crate) fn lanes_in_use(&self, instance: usize, lanes: usize) -> usize {
        let more = usize::from(instance < lanes % self.instances);
        (lanes / self.instances + more).clamp(1, self.workers(instance).len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_worker_is_of_one_block() {
        for workers in 1..40 {
            for instances in 1..=workers {
                let blocks = WorkerBlocks::new(workers, instances);
                let all: Vec<usize> = (0..instances).flat_map(|i| blocks.workers(i)).collect();
                assert_eq!(all, (0..workers).collect::<Vec<_>>());
                let sizes = (0..instances).map(|i| blocks.workers(i).len());
                let (least, most) = (sizes.clone().min().unwrap(), sizes.max().unwrap());
                assert!(least >= 1 && most - least <= 1, "{workers} in {instances}");
                for worker in 0..workers {
                    assert!(blocks.workers(blocks.of(worker)).contains(&worker));
                }
            }
        }
    }

    #[test]
    fn there_are_never_more_instances_than_workers() {
        assert_eq!(WorkerBlocks::new(2, 5).count(), 2);
        assert_eq!(WorkerBlocks::new(2, 0).count(), 1);
        assert_eq!(WorkerBlocks::new(0, 3).count(), 1);
    }

    #[test]
    fn lanes_in_use_are_divided_without_loss() {
        for workers in 1..30 {
            for instances in 1..=workers {
                let blocks = WorkerBlocks::new(workers, instances);
                for lanes in instances..=workers {
                    let used = (0..instances).map(|i| blocks.lanes_in_use(i, lanes));
                    assert_eq!(used.sum::<usize>(), lanes, "{workers} in {instances}");
                }
            }
        }
    }
}
