//! Record-level tracking by the newest predecessor (Milliscale §4.3).
//!
//! Rule: acknowledged when hardened and its DSN is below the horizon; the floor in its entry is its DSN. Why it is
//! right: everything it read or overwrote has a CSN of at most its DSN, and the horizon passes a CSN only when all up
//! to it are durable; recovery then finds every CSN up to the floor accounted for, and all of those survive, because
//! their own dependencies have smaller CSNs still.
//!
//! What is false about it: a CSN below the DSN that has nothing to do with the transaction may hold it back.

use logstead_types::Csn;
use logstead_wal::EntryDependencies;

use super::{AckDecision, DurabilityProgress};
use crate::dependency_set::DependencySet;
use crate::pending_commit::PendingCommit;

pub(super) fn deps(csn: Csn, dependency_set: &mut DependencySet) -> EntryDependencies {
    let named = dependency_set.take_deps(csn);
    // The floor is there already if it depends on everything.
    EntryDependencies::floor(named.floor.max(Csn(dependency_set.dsn().0)))
}

#[inline]
pub(super) fn judge(pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
    let newest = Csn(pending.dsn.0).max(pending.floor);
    if newest < progress.horizon() {
        AckDecision::Committed
    } else {
        AckDecision::Horizon(newest)
    }
}
