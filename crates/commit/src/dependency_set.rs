//! What a transaction depends on, collected while it runs.
//!
//! Every version examined is covered (T1). Those whose writers are Committed already need no mention; of the others the
//! list names each once, and when they are more than an entry may list, one floor stands for all of them.
//!
//! Invariant: whatever was covered and is not Committed is on the list, or at or below the floor.

use logstead_types::{Csn, Dsn};
use logstead_wal::EntryDependencies;
use smallvec::SmallVec;

use crate::commit_wait::CommitWait;

/// Most predecessors by name; an entry can list no more.
pub const LIST_MAX: usize = 32;

/// Who knows which CSNs are Committed.
pub trait IsCommitted {
    /// Every CSN below it is Committed.
    fn horizon(&self) -> Csn;
    /// Is this one? May say no for one that has just become so.
    fn is_committed(&self, csn: Csn) -> bool;
}

/// What a transaction depends on; see the module's documentation.
#[derive(Clone, Debug, Default)]
pub struct DependencySet {
    newest: Csn,
    floor: Csn,
    list: SmallVec<[Csn; 4]>,
    keeps_list: bool,
    everything: bool,
    /// The newest GSN of the chunks looked at; only where tracking goes by pages.
    gsn: u64,
    /// A chunk was looked at that another lane wrote and has perhaps not hardened.
    remote: bool,
    /// The lane for which the others were found to be local.
    local_to: Option<usize>,
}

impl DependencySet {
    /// Nothing yet. `keeps_list`: by name, as far as that goes; else only the newest is known.
    pub fn new(keeps_list: bool) -> DependencySet {
        DependencySet {
            keeps_list,
            ..DependencySet::default()
        }
    }

    /// Something that `csn` wrote was examined.
    #[inline]
    pub fn cover(&mut self, csn: Csn, done: &impl IsCommitted) {
        if csn < done.horizon() {
            return;
        }
        self.newest = self.newest.max(csn);
        if self.keeps_list {
            self.cover_by_name(csn, done);
        }
    }

    fn cover_by_name(&mut self, csn: Csn, done: &impl IsCommitted) {
        if csn <= self.floor || self.list.contains(&csn) || done.is_committed(csn) {
            return;
        }
        if self.list.len() == LIST_MAX {
            self.list.retain(|csn| !done.is_committed(*csn));
        }
        if self.list.len() == LIST_MAX {
            let newest = self.list.iter().copied().fold(csn, Csn::max);
            self.floor = self.floor.max(newest);
            self.list.clear();
        } else {
            self.list.push(csn);
        }
    }

    /// Covers what another one has covered.
    pub fn cover_all_of(&mut self, other: &DependencySet, done: &impl IsCommitted) {
        self.everything |= other.everything;
        self.newest = self.newest.max(other.newest);
        self.gsn = self.gsn.max(other.gsn);
        self.remote |= other.remote;
        if let Some(lane) = other.local_to {
            self.find_local(lane);
        }
        if other.floor >= done.horizon() {
            self.floor = self.floor.max(other.floor);
        }
        for &csn in &other.list {
            self.cover(csn, done);
        }
    }

    /// Depends on everything before it, whatever it has examined: changes of the schema look at more than rows.
    pub fn cover_everything(&mut self) {
        self.everything = true;
    }

    /// Something was covered that is no row: it waits for everything up to `csn`, in mode `gsn` too.
    pub fn cover_up_to(&mut self, csn: Csn, done: &impl IsCommitted) {
        if csn > Csn::ZERO && csn >= done.horizon() {
            self.newest = self.newest.max(csn);
            self.floor = self.floor.max(csn);
        }
    }

    /// A chunk was looked at, after what was read in it: its newest GSN, and whether all its unhardened writers are of
    /// `lane`, to which the transaction's worker pushes now.
    #[inline]
    pub fn cover_chunk(&mut self, gsn: u64, local: bool, lane: usize) {
        self.gsn = self.gsn.max(gsn);
        self.remote |= !local;
        if local {
            self.find_local(lane);
        }
    }

    /// Chunks that are local to two lanes are local to neither: the worker has moved meanwhile.
    fn find_local(&mut self, lane: usize) {
        self.remote |= *self.local_to.get_or_insert(lane) != lane;
    }

    /// The newest GSN of the chunks looked at.
    pub fn gsn(&self) -> u64 {
        self.gsn
    }

    /// A chunk was looked at that is not local.
    pub(crate) fn is_remote(&self) -> bool {
        self.remote
    }

    /// Everything up to here was covered without a name.
    pub(crate) fn floor(&self) -> Csn {
        self.floor
    }

    /// Every chunk looked at was local to this lane.
    pub fn is_local_to(&self, lane: usize) -> bool {
        !self.remote && self.local_to.is_none_or(|of| of == lane)
    }

    /// The newest CSN covered that was not below the horizon then.
    #[inline]
    pub fn dsn(&self) -> Dsn {
        Dsn(self.newest.0)
    }

    /// Nothing is left that is not Committed.
    pub fn is_empty(&self) -> bool {
        self.newest == Csn::ZERO && !self.everything
    }

    /// Drops what has become Committed.
    pub fn prune(&mut self, done: &impl IsCommitted) {
        self.list.retain(|csn| !done.is_committed(*csn));
        let horizon = done.horizon();
        if self.floor < horizon {
            self.floor = Csn::ZERO;
        }
        if self.newest < horizon {
            self.newest = Csn::ZERO;
        }
    }

    /// What the entry of the transaction that drew `csn` says, by name. The list is handed over and not copied: a copy
    /// of a long one would be allocated while `reserved` is published (T12).
    pub fn take_deps(&mut self, csn: Csn) -> EntryDependencies {
        let before = Csn(csn.0 - 1);
        // What depends on everything need not name anything.
        if self.everything {
            return EntryDependencies::floor(before);
        }
        EntryDependencies {
            floor: self.floor,
            list: std::mem::take(&mut self.list),
        }
    }

    /// What a client that is told of it waits for, by name.
    pub fn commit_wait(&self) -> CommitWait {
        if !self.keeps_list {
            return CommitWait::floor(self.newest);
        }
        CommitWait {
            floor: self.floor,
            list: self.list.clone(),
            ..CommitWait::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[derive(Default)]
    struct Done {
        horizon: u64,
        bits: BTreeSet<u64>,
    }

    impl IsCommitted for Done {
        fn horizon(&self) -> Csn {
            Csn(self.horizon)
        }
        fn is_committed(&self, csn: Csn) -> bool {
            csn.0 < self.horizon || self.bits.contains(&csn.0)
        }
    }

    #[test]
    fn what_is_committed_is_not_mentioned() {
        let done = Done {
            horizon: 10,
            bits: [12].into(),
        };
        let mut dependency_set = DependencySet::new(true);
        for csn in [3, 12, 11, 15, 11] {
            dependency_set.cover(Csn(csn), &done);
        }
        let deps = dependency_set.take_deps(Csn(20));
        assert_eq!(deps.list.as_slice(), [Csn(11), Csn(15)]);
        assert_eq!(deps.floor, Csn::ZERO);
        assert_eq!(dependency_set.dsn(), Dsn(15));
    }

    #[test]
    fn more_than_an_entry_can_list_become_a_floor_once_the_committed_ones_are_out() {
        let mut done = Done::default();
        let mut dependency_set = DependencySet::new(true);
        for csn in 1..=LIST_MAX as u64 {
            dependency_set.cover(Csn(csn), &done);
        }
        done.bits.insert(5);
        dependency_set.cover(Csn(100), &done);
        let named = dependency_set.clone().take_deps(Csn(200)).list;
        assert_eq!(named.len(), LIST_MAX, "5 made room");
        dependency_set.cover(Csn(101), &done);
        let deps = dependency_set.clone().take_deps(Csn(200));
        assert!(deps.list.is_empty());
        assert_eq!(deps.floor, Csn(101));
        dependency_set.cover(Csn(90), &done);
        dependency_set.cover(Csn(102), &done);
        assert_eq!(dependency_set.commit_wait().newest(), Csn(102));
        assert_eq!(
            dependency_set.take_deps(Csn(200)).list.as_slice(),
            [Csn(102)]
        );
    }

    #[test]
    fn everything_is_everything_before_the_transaction() {
        let mut dependency_set = DependencySet::new(true);
        dependency_set.cover_everything();
        assert!(!dependency_set.is_empty());
        assert_eq!(
            dependency_set.take_deps(Csn(8)),
            EntryDependencies::floor(Csn(7))
        );
    }

    #[test]
    fn who_has_changed_lanes_finds_nothing_local() {
        let mut dependency_set = DependencySet::new(true);
        assert!(dependency_set.is_local_to(3));
        dependency_set.cover_chunk(5, true, 0);
        assert!(dependency_set.is_local_to(0) && !dependency_set.is_local_to(1));
        let mut other = DependencySet::new(true);
        other.cover_chunk(6, true, 1);
        dependency_set.cover_all_of(&other, &Done::default());
        assert!(!dependency_set.is_local_to(0) && !dependency_set.is_local_to(1));
        assert_eq!(dependency_set.gsn(), 6);
    }

    #[test]
    fn without_a_list_the_newest_stands_for_all() {
        let mut dependency_set = DependencySet::new(false);
        dependency_set.cover(Csn(4), &Done::default());
        dependency_set.cover(Csn(2), &Done::default());
        assert_eq!(dependency_set.commit_wait(), CommitWait::floor(Csn(4)));
    }
}
