//! Page-level tracking with remote flush avoidance: LeanStore's way; a page is a chunk of a table.
//!
//! An entry's GSN is larger than that of every chunk its transaction looked at and of every earlier entry of its lane, and
//! becomes the GSN of every chunk it changed before anybody can see the change.
//!
//! Rule: acknowledged when hardened and its GSN is at most the smallest hardened GSN over the lanes, or when all its
//! accesses were local, to chunks whose unhardened writers are all of its own lane, and its direct predecessors are
//! Committed. Why it is right: whatever it read has a smaller GSN, and is hardened when every lane has hardened that far. A local
//! predecessor stands before it in the same lane, which hardens in order; but it may itself follow something remote that
//! is not hardened, and is lost with it: so being hardened is not enough of a predecessor. What was covered by other ways than a row (a cached schema) waits as in mode `dsn`, and so does
//! a transaction with more predecessors than its entry lists (T9): the entry's list is what recovery judges by, and a list of
//! what is hardened, all the way down, survives.
//!
//! What is false about it: other rows of the same chunk, and every lane that is behind.

use logstead_types::Csn;

use super::{Progress, Verdict};
use crate::pending::Pending;

#[inline]
pub(super) fn judge(pending: &Pending, progress: &impl Progress) -> Verdict {
    if pending.floor > Csn::ZERO && pending.floor >= progress.horizon() {
        return Verdict::Horizon(pending.floor);
    }
    if pending.gsn <= progress.hardened_gsn() {
        return Verdict::Committed;
    }
    if !pending.local {
        return Verdict::Gsn(pending.gsn);
    }
    match pending
        .list
        .iter()
        .find(|csn| !progress.is_committed(**csn))
    {
        Some(&missing) => Verdict::Predecessor(missing),
        None => Verdict::Committed,
    }
}
