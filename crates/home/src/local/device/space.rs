//! Which units of a device are free.
//!
//! Invariant: runs are sorted, do not touch one another, and hold no unit twice.

use std::collections::BTreeMap;

/// Units that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u32,
    pub(super) units: u32,
}

impl Extent {
    pub(super) fn end(self) -> u32 {
        self.start + self.units
    }
}

/// The free units, as runs: length by start.
#[derive(Debug, Default)]
pub(super) struct Space {
    runs: BTreeMap<u32, u32>,
}

impl Space {
    pub(super) fn free_units(&self) -> u64 {
        self.runs.values().map(|&units| u64::from(units)).sum()
    }

    /// Gives units back (or in for the first time). `false`, and nothing changes, if one of them is free already.
    pub(super) fn give(&mut self, extent: Extent) -> bool {
        if extent.units == 0 {
            return true;
        }
        let before = self.runs.range(..=extent.start).next_back();
        let before = before.map(|(&start, &units)| Extent { start, units });
        let after = self.runs.range(extent.start..).next();
        let after = after.map(|(&start, &units)| Extent { start, units });
        if before.is_some_and(|run| run.end() > extent.start)
            || after.is_some_and(|run| run.start < extent.end())
        {
            return false;
        }
        let mut run = extent;
        if let Some(before) = before.filter(|before| before.end() == extent.start) {
            self.runs.remove(&before.start);
            run = Extent {
                start: before.start,
                units: before.units + run.units,
            };
        }
        if let Some(after) = after.filter(|after| after.start == extent.end()) {
            self.runs.remove(&after.start);
            run.units += after.units;
        }
        self.runs.insert(run.start, run.units);
        true
    }

    /// Takes exactly these units; `false`, and nothing changes, if one of them is not free.
    pub(super) fn take(&mut self, extent: Extent) -> bool {
        let run = self.runs.range(..=extent.start).next_back();
        let Some(run) = run
            .map(|(&start, &units)| Extent { start, units })
            .filter(|run| run.end() >= extent.end())
        else {
            return false;
        };
        self.runs.remove(&run.start);
        if run.start < extent.start {
            self.runs.insert(run.start, extent.start - run.start);
        }
        if extent.end() < run.end() {
            self.runs.insert(extent.end(), run.end() - extent.end());
        }
        true
    }

    /// Takes `units` of them: behind `after` if they are free there, else the smallest run that is large enough, else
    /// several runs, the largest first. `None`, and nothing changes, if there are not as many.
    pub(super) fn find(&mut self, units: u32, after: Option<Extent>) -> Option<Vec<Extent>> {
        if self.free_units() < u64::from(units) {
            return None;
        }
        let mut found = Vec::new();
        let mut missing = units;
        if let Some(after) = after {
            let behind = self.runs.get(&after.end()).copied().unwrap_or(0);
            let extent = Extent {
                start: after.end(),
                units: behind.min(missing),
            };
            if extent.units > 0 && self.take(extent) {
                missing -= extent.units;
                found.push(extent);
            }
        }
        while missing > 0 {
            let enough = self.runs.iter().filter(|&(_, &units)| units >= missing);
            let smallest = enough.min_by_key(|&(_, &units)| units);
            let chosen = smallest.or_else(|| self.runs.iter().max_by_key(|&(_, &units)| units));
            let (&start, &units) = chosen?;
            let extent = Extent {
                start,
                units: units.min(missing),
            };
            self.take(extent);
            missing -= extent.units;
            found.push(extent);
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(start: u32, units: u32) -> Extent {
        Extent { start, units }
    }

    #[test]
    fn neighbours_become_one_run_and_nothing_is_free_twice() {
        let mut space = Space::default();
        assert!(space.give(extent(0, 4)));
        assert!(space.give(extent(8, 4)));
        assert!(space.give(extent(4, 4)));
        assert_eq!(space.runs, BTreeMap::from([(0, 12)]));
        for twice in [extent(0, 1), extent(11, 1), extent(11, 3), extent(5, 2)] {
            assert!(!space.give(twice), "{twice:?} is free already");
        }
        assert!(space.take(extent(3, 5)));
        assert!(!space.take(extent(2, 2)), "one of them is taken");
        assert_eq!(space.runs, BTreeMap::from([(0, 3), (8, 4)]));
    }

    #[test]
    fn what_lies_together_is_preferred() {
        let mut space = Space::default();
        for run in [extent(0, 10), extent(20, 3), extent(40, 5)] {
            assert!(space.give(run));
        }
        assert_eq!(space.find(3, None), Some(vec![extent(20, 3)]));
        assert_eq!(
            space.find(2, Some(extent(30, 10))),
            Some(vec![extent(40, 2)])
        );
        assert_eq!(
            space.find(12, None),
            Some(vec![extent(0, 10), extent(42, 2)])
        );
        assert_eq!(space.find(2, None), None);
        assert_eq!(space.free_units(), 1);
    }

    /// Random takes and gives against a plain bitmap.
    #[test]
    fn it_agrees_with_a_bitmap() {
        use logstead_env::{Random, SimRandom};
        for seed in 0..50 {
            let random = SimRandom::new(seed);
            let (mut space, mut free) = (Space::default(), vec![true; 64]);
            assert!(space.give(extent(0, 64)));
            let mut taken: Vec<Extent> = Vec::new();
            for _ in 0..300 {
                if random.u64().is_multiple_of(2) {
                    let after = taken.last().copied();
                    let units = random.u64() as u32 % 12 + 1;
                    let count = free.iter().filter(|free| **free).count();
                    match space.find(units, after) {
                        None => assert!(count < units as usize, "seed {seed}"),
                        Some(found) => {
                            let sum: u32 = found.iter().map(|extent| extent.units).sum();
                            assert_eq!(sum, units, "seed {seed}");
                            for extent in found {
                                for unit in extent.start..extent.end() {
                                    let was_free =
                                        std::mem::replace(&mut free[unit as usize], false);
                                    assert!(was_free, "seed {seed}: unit {unit} twice");
                                }
                                taken.push(extent);
                            }
                        }
                    }
                } else if !taken.is_empty() {
                    let index = random.u64() as usize % taken.len();
                    let extent = taken.swap_remove(index);
                    assert!(space.give(extent), "seed {seed}");
                    free[extent.start as usize..extent.end() as usize].fill(true);
                }
                let count = free.iter().filter(|free| **free).count();
                assert_eq!(space.free_units(), count as u64, "seed {seed}");
            }
        }
    }
}
