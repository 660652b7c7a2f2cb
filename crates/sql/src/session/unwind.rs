//! Undoing much, so that the worker's other sessions have their turns meanwhile.
//!
//! Owns: the first part of whatever rolls back (an error, ROLLBACK, ROLLBACK TO, a COMMIT that does not commit, the end
//! of the session): writes are undone some at a time, newest first. Of a transaction that ends as a whole no more than
//! a few milliseconds' worth: the rest is undone behind the session (`session::undo`).
//! Does not: end anything. The rollback itself comes behind it, finds little or nothing left to undo, or hands it over,
//! and runs in one go.

use super::Session;
use super::signals::Signals;
use super::transaction::Block;
use super::turns::in_turns;
use logstead_engine::{SavepointId, Txn};
use std::pin::pin;
use std::time::Duration;

/// Writes that are undone before others have their turn, at most.
const UNWOUND_AT_ONCE: usize = 256;
/// Of these, so many before a look at the clock.
pub(super) const UNWOUND_UNSEEN: usize = 4;
/// The longest before others have their turn: keys of expressions are computed for each row that is undone.
const HOLD: Duration = Duration::from_millis(1);
/// The time that undoing may take before the session's answer.
const BEFORE_ANSWER: Duration = Duration::from_millis(5);

/// Undoes some writes. True if there are more.
pub(super) fn unwind_step(signals: &Signals, txn: &mut Txn, to: Option<SavepointId>) -> bool {
    if !txn.unwind(to, UNWOUND_UNSEEN) {
        return false;
    }
    let clock = signals.turns().clock();
    let began = clock.monotonic();
    for _ in 1..UNWOUND_AT_ONCE / UNWOUND_UNSEEN {
        if !txn.unwind(to, UNWOUND_UNSEEN) {
            return false;
        }
        if clock.monotonic().since(began) >= HOLD {
            break;
        }
    }
    true
}

/// See [`Session::unwind`]. Of what is undone at once nobody is asked for a turn.
async fn unwind_txn(signals: &Signals, txn: &mut Txn, to: Option<SavepointId>) {
    if !unwind_step(signals, txn, to) {
        return;
    }
    let rest = pin!(async {
        while unwind_step(signals, txn, to) {
            tokio::task::yield_now().await;
        }
    });
    in_turns(signals, rest).await;
}

/// Undoes for some milliseconds.
async fn unwind_some(signals: &Signals, txn: &mut Txn) {
    if !unwind_step(signals, txn, None) {
        return;
    }
    let clock = signals.turns().clock();
    let began = clock.monotonic();
    while clock.monotonic().since(began) < BEFORE_ANSWER {
        tokio::task::yield_now().await;
        if !unwind_step(signals, txn, None) {
            return;
        }
    }
}

impl Session {
    /// Undoes, in turns with the worker's other sessions, what a rollback that is about to come has to undo: what came
    /// since the last savepoint, or some of all of the transaction.
    pub async fn unwind(&mut self) {
        let savepoints = self.open.as_ref().map(|open| &open.savepoints);
        let last = savepoints.and_then(|savepoints| savepoints.last());
        let to = last.map(|(savepoint, _)| *savepoint);
        match to.filter(|_| self.block != Block::None) {
            None => self.unwind_all().await,
            to => self.unwind_to(to).await,
        }
    }

    /// The same for all of the transaction: its end is about to come, which undoes what is left, or has it undone
    /// behind the session.
    pub(super) async fn unwind_all(&mut self) {
        if !self.undoes_behind() {
            self.unwind_to(None).await;
        } else if let Some(open) = &mut self.open {
            unwind_some(&self.signals, &mut open.txn).await;
        }
    }

    pub(super) async fn unwind_to(&mut self, to: Option<SavepointId>) {
        if let Some(open) = &mut self.open {
            unwind_txn(&self.signals, &mut open.txn, to).await;
        }
    }
}
