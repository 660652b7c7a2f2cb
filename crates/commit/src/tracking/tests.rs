//! The four rules side by side.

use std::collections::BTreeSet;

use logstead_types::Dsn;

use super::*;

#[derive(Default)]
struct At {
    horizon: u64,
    committed: BTreeSet<u64>,
    hardened_gsn: u64,
}

impl IsCommitted for At {
    fn horizon(&self) -> Csn {
        Csn(self.horizon)
    }
    fn is_committed(&self, csn: Csn) -> bool {
        csn.0 < self.horizon || self.committed.contains(&csn.0)
    }
}

impl DurabilityProgress for At {
    fn hardened_gsn(&self) -> u64 {
        self.hardened_gsn
    }
}

/// CSN 20, which has read what 12 and 15 wrote, with GSN 9.
fn pending() -> PendingCommit {
    PendingCommit {
        csn: Csn(20),
        dsn: Dsn(15),
        gsn: 9,
        list: [Csn(12), Csn(15)].into_iter().collect(),
        ..PendingCommit::default()
    }
}

#[test]
fn each_mode_waits_for_what_its_rule_says() {
    let at = |horizon, committed: &[u64], hardened_gsn| At {
        horizon,
        committed: committed.iter().copied().collect(),
        hardened_gsn,
    };
    let judge = |mode: Tracking, at: At| mode.judge(&pending(), &at);
    use Tracking::{Dsn as ByDsn, Exact, Gsn, Horizon};
    // Nothing is durable but itself.
    assert_eq!(
        judge(Horizon, at(10, &[], 0)),
        AckDecision::Horizon(Csn(20))
    );
    assert_eq!(judge(ByDsn, at(10, &[], 0)), AckDecision::Horizon(Csn(15)));
    assert_eq!(judge(Gsn, at(10, &[], 8)), AckDecision::Gsn(9));
    assert_eq!(
        judge(Exact, at(10, &[], 0)),
        AckDecision::Predecessor(Csn(12))
    );
    // One of the two predecessors is.
    assert_eq!(
        judge(Exact, at(10, &[12], 0)),
        AckDecision::Predecessor(Csn(15))
    );
    // Both are; others before them are not: exact alone does not mind.
    assert_eq!(judge(Exact, at(11, &[12, 15], 0)), AckDecision::Committed);
    assert_eq!(
        judge(ByDsn, at(11, &[12, 15], 0)),
        AckDecision::Horizon(Csn(15))
    );
    // Everything up to the newest predecessor is.
    assert_eq!(judge(ByDsn, at(16, &[], 0)), AckDecision::Committed);
    assert_eq!(judge(Exact, at(16, &[], 0)), AckDecision::Committed);
    assert_eq!(
        judge(Horizon, at(20, &[], 0)),
        AckDecision::Horizon(Csn(20))
    );
    assert_eq!(judge(Horizon, at(21, &[], 0)), AckDecision::Committed);
    // A hardened GSN spares no look at the predecessors: one of them may wait for a floor.
    assert_eq!(
        judge(Gsn, at(10, &[], 9)),
        AckDecision::Predecessor(Csn(12))
    );
    assert_eq!(judge(Gsn, at(10, &[12, 15], 8)), AckDecision::Gsn(9));
    assert_eq!(judge(Gsn, at(10, &[12, 15], 9)), AckDecision::Committed);
}

#[test]
fn a_floor_waits_for_the_horizon_in_every_mode() {
    let pending = PendingCommit {
        floor: Csn(18),
        local: true,
        list: [].into_iter().collect(),
        ..pending()
    };
    for mode in [Tracking::Gsn, Tracking::Dsn, Tracking::Exact] {
        let at = At {
            horizon: 18,
            hardened_gsn: 100,
            ..At::default()
        };
        assert_eq!(
            mode.judge(&pending, &at),
            AckDecision::Horizon(Csn(18)),
            "{mode:?}"
        );
        let at = At { horizon: 19, ..at };
        assert_eq!(
            mode.judge(&pending, &at),
            AckDecision::Committed,
            "{mode:?}"
        );
    }
}

#[test]
fn entries_say_what_recovery_must_know() {
    let nothing = At::default();
    for (mode, floor, list) in [
        (Tracking::Horizon, 19, &[][..]),
        (Tracking::Dsn, 15, &[]),
        (Tracking::Gsn, 0, &[12, 15]),
        (Tracking::Exact, 0, &[12, 15]),
    ] {
        let mut dependency_set = mode.new_dependency_set();
        dependency_set.cover(Csn(12), &nothing);
        dependency_set.cover(Csn(15), &nothing);
        let deps = mode.take_deps(Csn(20), &mut dependency_set.clone());
        let listed: Vec<u64> = deps.list.iter().map(|csn| csn.0).collect();
        assert_eq!((deps.floor.0, listed.as_slice()), (floor, list), "{mode:?}");
        dependency_set.cover_everything();
        assert_eq!(
            mode.take_deps(Csn(20), &mut dependency_set.clone()),
            EntryDependencies::floor(Csn(19)),
            "{mode:?}"
        );
    }
}

/// LeanStore's rule is the first two conditions of `gsn` alone, and an entry names nobody.
#[test]
fn leanstore_goes_by_gsns_alone() {
    let judge = |local, hardened_gsn| {
        let at = At {
            horizon: 10,
            hardened_gsn,
            ..At::default()
        };
        let pending = PendingCommit {
            local,
            list: [].into_iter().collect(),
            ..pending()
        };
        Tracking::LeanStore.judge(&pending, &at)
    };
    assert_eq!(judge(false, 8), AckDecision::Gsn(9));
    assert_eq!(judge(false, 9), AckDecision::Committed);
    assert_eq!(
        judge(true, 0),
        AckDecision::Committed,
        "remote flush avoidance"
    );
    let mut dependency_set = Tracking::LeanStore.new_dependency_set();
    dependency_set.cover(Csn(12), &At::default());
    dependency_set.cover_chunk(5, true, 0);
    let deps = Tracking::LeanStore.take_deps(Csn(20), &mut dependency_set);
    assert_eq!(deps, EntryDependencies::floor(Csn::ZERO));
    // Who only reads waits by the same rule: for its own lane, or for all.
    let commit_wait = Tracking::LeanStore.commit_wait(&dependency_set);
    assert_eq!(commit_wait, CommitWait::of(Csn(12)));
    dependency_set.cover_chunk(7, false, 0);
    let commit_wait = Tracking::LeanStore.commit_wait(&dependency_set);
    assert_eq!(
        (commit_wait.up_to_gsn(), commit_wait.by_name()),
        (7, &[][..])
    );
}

#[test]
fn names_come_back() {
    for mode in Tracking::ALL {
        assert_eq!(Tracking::from_name(mode.name()), Some(mode));
    }
    assert_eq!(Tracking::from_name("psychic"), None);
    // Nobody gets by accident what may lose.
    assert_eq!(Tracking::from_name("leanstore"), None);
    assert_eq!(
        Tracking::for_comparison("leanstore"),
        Some(Tracking::LeanStore)
    );
}

/// A predecessor in the same lane is hardened first, but what it follows in another lane may still be lost, and the
/// predecessor with it: found by `logstead-sim`'s crashes, seed 359.
#[test]
fn a_local_transaction_waits_for_its_predecessors_all_the_same() {
    let pending = PendingCommit {
        local: true,
        ..pending()
    };
    let at = |committed: &[u64], hardened_gsn| At {
        horizon: 10,
        committed: committed.iter().copied().collect(),
        hardened_gsn,
    };
    let judge = |at: At| Tracking::Gsn.judge(&pending, &at);
    assert_eq!(judge(at(&[12], 0)), AckDecision::Predecessor(Csn(15)));
    assert_eq!(judge(at(&[12, 15], 0)), AckDecision::Committed);
    assert_eq!(judge(at(&[], 9)), AckDecision::Predecessor(Csn(12)));
}
