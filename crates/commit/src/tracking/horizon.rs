//! Transaction-level tracking: a transaction depends on everything drawn before it.
//!
//! Rule: acknowledged when its own CSN is below the horizon; the floor in its entry is CSN - 1. Why it is right: what a
//! transaction read or overwrote was Precommitted before it drew its CSN, therefore has a lower CSN; the horizon passes
//! a CSN only when all lower ones are durable; and recovery keeps an entry only if all lower CSNs are accounted for.

use logstead_types::Csn;
use logstead_wal::EntryDependencies;

use super::{AckDecision, DurabilityProgress};
use crate::pending_commit::PendingCommit;

pub(super) fn deps(csn: Csn) -> EntryDependencies {
    EntryDependencies::floor(Csn(csn.0 - 1))
}

#[inline]
pub(super) fn judge(pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
    if pending.csn < progress.horizon() {
        AckDecision::Committed
    } else {
        AckDecision::Horizon(pending.csn)
    }
}
