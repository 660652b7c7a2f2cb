//! What an entry says about its dependencies, and when its transaction counts as committed.
//!
//! There will be four ways (`horizon`, `gsn`, `dsn`, `exact`); on storage all of them write a floor and a list: an
//! entry survives a crash only if every CSN on the list survives and every CSN up to the floor is accounted for.

use logstead_types::{Csn, Dsn};

/// How far durability has come, as far as a tracking mode needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Every CSN below it is durable and committed.
    pub horizon: Csn,
    /// The transaction's own block and all earlier blocks of its lane are durable.
    pub hardened: bool,
}

/// A way to track dependencies between transactions. Pure: no clock, no disk, no state of its own.
pub trait Tracking: Send + Sync + 'static {
    /// The mode's name, as in the settings.
    fn name(&self) -> &'static str;

    /// The floor to write into the entry of the transaction that drew `csn` and depends on `dsn`.
    fn floor(&self, csn: Csn, dsn: Dsn) -> Csn;

    /// May the updating transaction `csn` that depends on `dsn` be acknowledged?
    fn may_acknowledge(&self, csn: Csn, dsn: Dsn, progress: Progress) -> bool;

    /// The CSN that the horizon must pass before a read-only transaction, or an error that tells of rows, may be
    /// answered.
    fn read_only_waits_for(&self, dsn: Dsn) -> Csn;
}

/// Transaction-level tracking: a transaction depends on everything drawn before it.
///
/// Rule: acknowledged when its own CSN is below the horizon; the floor in its entry is CSN - 1. Why it is right: what a
/// transaction read or overwrote was Precommitted before it drew its CSN, therefore has a lower CSN; the horizon passes
/// a CSN only when all lower ones are durable; and recovery keeps an entry only if all lower CSNs are accounted for.
#[derive(Clone, Copy, Debug, Default)]
pub struct HorizonTracking;

impl Tracking for HorizonTracking {
    fn name(&self) -> &'static str {
        "horizon"
    }

    #[inline]
    fn floor(&self, csn: Csn, _dsn: Dsn) -> Csn {
        Csn(csn.0 - 1)
    }

    #[inline]
    fn may_acknowledge(&self, csn: Csn, _dsn: Dsn, progress: Progress) -> bool {
        csn < progress.horizon
    }

    #[inline]
    fn read_only_waits_for(&self, dsn: Dsn) -> Csn {
        Csn(dsn.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizon_mode_depends_on_every_lower_csn() {
        let t = HorizonTracking;
        assert_eq!(t.floor(Csn(7), Dsn(3)), Csn(6));
        let at = |horizon| Progress {
            horizon: Csn(horizon),
            hardened: true,
        };
        assert!(
            !t.may_acknowledge(Csn(7), Dsn(3), at(7)),
            "hardened alone is not enough"
        );
        assert!(t.may_acknowledge(Csn(7), Dsn(3), at(8)));
        assert_eq!(t.read_only_waits_for(Dsn(9)), Csn(9));
    }
}
