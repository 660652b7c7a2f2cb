//! Record-level tracking by name: no false dependency at all. Ours; the paper leaves it open.
//!
//! Rule: acknowledged when hardened and every direct predecessor on its list is Committed (and everything up to its
//! floor, if it had more predecessors than a list holds). Why it is right: by induction along the list a Committed
//! transaction has all its predecessors hardened, theirs too, and so on; recovery keeps an entry if all on its list
//! survive, which is the same sentence. A predecessor that was Committed when the entry was written is not on the list:
//! it was durable with all its own predecessors by then, so it survives whatever comes.

use logstead_types::Csn;

use super::{AckDecision, DurabilityProgress};
use crate::pending_commit::PendingCommit;

#[inline]
pub(super) fn judge(pending: &PendingCommit, progress: &impl DurabilityProgress) -> AckDecision {
    if pending.floor > Csn::ZERO && pending.floor >= progress.horizon() {
        return AckDecision::Horizon(pending.floor);
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
