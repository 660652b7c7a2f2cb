//! Undoing much, so that the worker's other sessions have their turns meanwhile.
//!
//! Owns: the first part of whatever rolls back (an error, ROLLBACK, ROLLBACK TO, a COMMIT that does not commit, the end of the session): writes are undone some at a time, newest first.
//! Does not: end anything. The rollback itself comes behind it, finds little or nothing left to undo, and runs in one go.

use super::Session;
use super::signals::Signals;
use super::transaction::Block;
use super::turns::in_turns;
use logstead_engine::{SavepointId, Txn};
use std::pin::pin;

/// Writes that are undone before others have their turn.
const UNWOUND_AT_ONCE: usize = 256;

/// See [`Session::unwind`]. Of what is undone at once nobody is asked for a turn.
pub(super) async fn unwind_txn(signals: &Signals, txn: &mut Txn, to: Option<SavepointId>) {
    if !txn.unwind(to, UNWOUND_AT_ONCE) {
        return;
    }
    let rest = pin!(async {
        while txn.unwind(to, UNWOUND_AT_ONCE) {
            tokio::task::yield_now().await;
        }
    });
    in_turns(signals, rest).await;
}

impl Session {
    /// Undoes, in turns with the worker's other sessions, what a rollback that is about to come has to undo: all of the transaction, or what came since the last savepoint.
    pub async fn unwind(&mut self) {
        let savepoints = self.open.as_ref().map(|open| &open.savepoints);
        let last = savepoints.and_then(|savepoints| savepoints.last());
        let to = last.map(|(savepoint, _)| *savepoint);
        self.unwind_to(to.filter(|_| self.block != Block::None))
            .await;
    }

    /// The same for all of the transaction: its end, which undoes what is left, is about to come.
    pub async fn unwind_all(&mut self) {
        self.unwind_to(None).await;
    }

    pub(super) async fn unwind_to(&mut self, to: Option<SavepointId>) {
        if let Some(open) = &mut self.open {
            unwind_txn(&self.signals, &mut open.txn, to).await;
        }
    }
}
