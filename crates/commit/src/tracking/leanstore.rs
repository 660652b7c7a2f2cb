//! LeanStore's rule to the letter, for comparisons only: **unsafe**, acknowledged transactions can be lost.
//!
//! Rule (Autonomous Commit §5.1, Global Sequence Numbers with Remote Flush Avoidance): acknowledged when hardened,
//! and its GSN is at most the smallest hardened GSN over the lanes, or all its accesses were local. No predecessor is
//! tracked: nothing is collected but the newest GSN of the chunks, and an entry names nobody. A chunk is local to the
//! lane that wrote it last, whoever wrote before. A transaction that only reads waits by the same
//! rule: for the GSN of what it looked at, or, if all of that was local, for the newest of its own lane that it met.
//!
//! Why it is not right: locks are released at pre-commit, so a local access may meet the work of a transaction that is
//! hardened, of this very lane, and not Committed: it waits for a lane that is behind. Remote flush avoidance has the
//! second transaction acknowledged before the first. A crash then loses what the first one built on, and both with it
//! by any rule that keeps the database consistent; by this rule's own log, which names no predecessors, they come back
//! without it.
//!
//! What is as in the paper and not as in its prototype: Hardened comes before Committed for local transactions too, and
//! a lane without unhardened entries holds nobody back (the barrier transaction, without the transaction).
//! What was covered by other ways than a row (a cached schema) waits as in mode `dsn`.

use logstead_types::Csn;

use super::{AckDecision, DurabilityProgress};
use crate::commit_wait::CommitWait;
use crate::dependency_set::DependencySet;
use crate::pending_commit::PendingCommit;

#[inline]
pub(super) fn judge(pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
    if pending.floor > Csn::ZERO && pending.floor >= progress.horizon() {
        return AckDecision::Horizon(pending.floor);
    }
    if pending.local || pending.gsn <= progress.hardened_gsn() {
        AckDecision::Committed
    } else {
        AckDecision::Gsn(pending.gsn)
    }
}

pub(super) fn commit_wait(dependency_set: &DependencySet) -> CommitWait {
    let mut commit_wait = CommitWait::floor(dependency_set.floor());
    if dependency_set.is_remote() {
        commit_wait.gsn = dependency_set.gsn();
    } else {
        commit_wait.add(Csn(dependency_set.dsn().0));
    }
    commit_wait
}
