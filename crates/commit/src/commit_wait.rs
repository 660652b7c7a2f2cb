//! What must be Committed before a client may hear something.

use logstead_types::Csn;
use smallvec::SmallVec;

/// CSNs waited for by name before they become one floor.
const LIST_MAX: usize = 64;

/// What must be Committed before a client may hear something: everything up to a floor, and some CSNs by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommitWait {
    /// Everything up to it; 0 is nothing.
    pub(crate) floor: Csn,
    /// These, without repetition.
    pub(crate) list: SmallVec<[Csn; 4]>,
    /// Every lane up to this GSN; only with [`Tracking::LeanStore`](crate::Tracking::LeanStore).
    pub(crate) gsn: u64,
}

impl CommitWait {
    /// Nothing.
    pub fn none() -> CommitWait {
        CommitWait::default()
    }

    /// The transaction `csn`.
    pub fn of(csn: Csn) -> CommitWait {
        let mut commit_wait = CommitWait::default();
        if csn > Csn::ZERO {
            commit_wait.list.push(csn);
        }
        commit_wait
    }

    /// Everything up to `csn`.
    pub fn floor(csn: Csn) -> CommitWait {
        CommitWait {
            floor: csn,
            ..CommitWait::default()
        }
    }

    /// Everything up to it is waited for; 0 is nothing.
    pub fn up_to(&self) -> Csn {
        self.floor
    }

    /// What is waited for by name.
    pub fn by_name(&self) -> &[Csn] {
        &self.list
    }

    /// Every lane is waited for up to this GSN; 0 is nothing.
    pub fn up_to_gsn(&self) -> u64 {
        self.gsn
    }

    /// Is nothing waited for?
    pub fn is_none(&self) -> bool {
        self.floor == Csn::ZERO && self.list.is_empty() && self.gsn == 0
    }

    /// Waits for what `other` waits for, too.
    pub fn merge(&mut self, other: &CommitWait) {
        self.floor = self.floor.max(other.floor);
        self.gsn = self.gsn.max(other.gsn);
        for &csn in &other.list {
            self.add(csn);
        }
    }

    /// Waits for `csn`, too.
    pub fn add(&mut self, csn: Csn) {
        if csn <= self.floor || self.list.contains(&csn) {
            return;
        }
        self.list.push(csn);
        if self.list.len() > LIST_MAX {
            let newest = self.list.iter().copied().max().unwrap_or_default();
            self.floor = self.floor.max(newest);
            self.list.clear();
        }
    }

    /// The newest CSN it names.
    pub fn newest(&self) -> Csn {
        self.list.iter().copied().fold(self.floor, Csn::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_merged_is_waited_for_once() {
        let mut commit_wait = CommitWait::of(Csn(7));
        commit_wait.merge(&CommitWait::of(Csn(7)));
        commit_wait.merge(&CommitWait::floor(Csn(5)));
        commit_wait.add(Csn(4));
        assert_eq!(
            commit_wait.list.as_slice(),
            [Csn(7)],
            "4 is below the floor"
        );
        assert_eq!(commit_wait.floor, Csn(5));
        assert!(CommitWait::of(Csn::ZERO).is_none());
    }

    #[test]
    fn many_become_a_floor_above_all_of_them() {
        let mut commit_wait = CommitWait::none();
        for csn in (1..=LIST_MAX as u64 + 1).rev() {
            commit_wait.add(Csn(csn * 2));
        }
        assert!(commit_wait.list.is_empty());
        assert_eq!(commit_wait.floor, Csn((LIST_MAX as u64 + 1) * 2));
        assert_eq!(commit_wait.newest(), commit_wait.floor);
    }
}
