//! What a session's answers still wait for.
//!
//! With `synchronous_commit = off` a session's answers wait for nothing: what they tell may be taken back by a crash,
//! and is kept here as *unconfirmed*. The first answer after that which is to be durable waits for the unconfirmed,
//! too: whoever has seen a synchronous COMMIT knows that everything the session did before it survives. The session's
//! later transactions depend on it as well, so that a crash takes back the last of them, never one from their midst.
//!
//! Does not: change what other sessions wait for. Who reads a row waits for its writer by the row's CSN, whatever the
//! writer's own session waited for.

use super::Session;
use logstead_engine::{CommitReceipt, CommitWait};

/// See the module's documentation.
#[derive(Default)]
pub(super) struct ReplyDependencies {
    /// Unsent answers wait for it.
    waits_for: CommitWait,
    /// Told without waiting.
    unconfirmed: CommitWait,
}

impl ReplyDependencies {
    /// Answers tell of this. `synchronous`: they wait until it is durable.
    pub(super) fn merge(&mut self, told: &CommitWait, synchronous: bool) {
        if !synchronous {
            self.unconfirmed.merge(told);
            return;
        }
        if !self.unconfirmed.is_none() {
            self.waits_for.merge(&std::mem::take(&mut self.unconfirmed));
        }
        self.waits_for.merge(told);
    }

    /// What a session's answers waited for at another worker.
    pub(super) fn join(&mut self, before: ReplyDependencies) {
        self.waits_for.merge(&before.waits_for);
        self.unconfirmed.merge(&before.unconfirmed);
    }

    /// A transaction that depends on all that is unconfirmed has committed.
    pub(super) fn committed(&mut self, receipt: &CommitReceipt, synchronous: bool) {
        if !synchronous && receipt.csn.is_some() {
            // When it is Committed, so is what it depends on: the list does not grow with every commit.
            self.unconfirmed.clone_from(&receipt.waits_for);
        } else {
            self.merge(&receipt.waits_for, synchronous);
        }
    }

    /// What was told without waiting for it.
    pub(super) fn unconfirmed(&self) -> &CommitWait {
        &self.unconfirmed
    }

    /// What unsent answers wait for.
    pub(super) fn waits_for(&self) -> &CommitWait {
        &self.waits_for
    }

    /// It is durable.
    pub(super) fn settled(&mut self) {
        self.waits_for = CommitWait::none();
    }
}

impl Session {
    /// Unsent answers may tell of locks that others had before: they wait for what those did, in a block, too.
    pub(super) fn depend_on_lock_holders(&mut self) {
        let synchronous = self.context.synchronous.get();
        if let Some(open) = &mut self.open {
            let handed_over = open.txn.take_handed_over();
            if !handed_over.is_none() {
                self.reply_dependencies.merge(&handed_over, synchronous);
            }
        }
        let inherited = self.context.advisory.borrow_mut().take_inherited();
        if !inherited.is_none() {
            self.reply_dependencies.merge(&inherited, synchronous);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_engine::Csn;

    #[test]
    fn the_first_synchronous_answer_waits_for_all_before_it() {
        let mut reply_dependencies = ReplyDependencies::default();
        reply_dependencies.merge(&CommitWait::of(Csn(3)), false);
        assert!(
            reply_dependencies.waits_for().is_none(),
            "nobody waits for it yet"
        );
        reply_dependencies.merge(&CommitWait::of(Csn(5)), true);
        assert_eq!(reply_dependencies.waits_for().by_name(), [Csn(3), Csn(5)]);
        reply_dependencies.settled();
        assert!(reply_dependencies.waits_for().is_none());
        reply_dependencies.merge(&CommitWait::none(), true);
        assert!(
            reply_dependencies.waits_for().is_none(),
            "it is waited for once"
        );
    }

    #[test]
    fn a_commit_stands_for_all_it_depends_on() {
        let mut reply_dependencies = ReplyDependencies::default();
        let receipt = |csn: u64| CommitReceipt {
            csn: Some(Csn(csn)),
            waits_for: CommitWait::of(Csn(csn)),
        };
        for csn in 1..=100 {
            reply_dependencies.committed(&receipt(csn), false);
        }
        assert_eq!(*reply_dependencies.unconfirmed(), CommitWait::of(Csn(100)));
        let reader = CommitReceipt {
            csn: None,
            waits_for: CommitWait::of(Csn(7)),
        };
        reply_dependencies.committed(&reader, false);
        assert_eq!(
            reply_dependencies.unconfirmed().by_name(),
            [Csn(100), Csn(7)]
        );
        reply_dependencies.committed(&receipt(101), true);
        assert_eq!(
            reply_dependencies.waits_for().by_name(),
            [Csn(100), Csn(7), Csn(101)]
        );
        assert!(reply_dependencies.unconfirmed().is_none());
    }

    #[test]
    fn what_an_earlier_answer_waits_for_is_not_forgotten() {
        let mut reply_dependencies = ReplyDependencies::default();
        reply_dependencies.merge(&CommitWait::of(Csn(3)), true);
        reply_dependencies.merge(&CommitWait::of(Csn(4)), false);
        assert_eq!(reply_dependencies.waits_for().by_name(), [Csn(3)]);
    }
}
