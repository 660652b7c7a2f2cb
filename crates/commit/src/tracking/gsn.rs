//! Page-level tracking with remote flush avoidance: LeanStore's way; a page is a chunk of a table.
//!
//! An entry's GSN is larger than that of every chunk its transaction looked at and of every earlier entry of its lane,
//! and becomes the GSN of every chunk it changed before anybody can see the change.
//!
//! Rule: acknowledged when hardened, its GSN is at most the smallest hardened GSN over the lanes, or all its accesses
//! were local (to chunks whose unhardened writers are all of its own lane), and its direct predecessors are Committed.
//! Why it is right: by the last condition, as in `exact`. The first two alone are not enough: a predecessor that is
//! hardened may itself follow something that is not, in another lane or below its floor (T9), and be lost with it. What
//! was covered by other ways than a row (a cached schema) waits as in mode `dsn`.
//!
//! What is false about it: other rows of the same chunk, and every lane that is behind.

use logstead_types::Csn;

use super::{AckDecision, DurabilityProgress};
use crate::pending_commit::PendingCommit;

#[inline]
pub(super) fn judge(pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
    if pending.floor > Csn::ZERO && pending.floor >= progress.horizon() {
        return AckDecision::Horizon(pending.floor);
    }
    if !pending.local && pending.gsn > progress.hardened_gsn() {
        return AckDecision::Gsn(pending.gsn);
    }
    match pending
        .list
        .iter()
        .find(|csn| !progress.is_committed(**csn))
    {
        Some(&missing) => AckDecision::Predecessor(missing),
        None => AckDecision::Committed,
    }
}
