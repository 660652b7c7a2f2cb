//! Undoing much, so that the worker's other sessions have their turns meanwhile.
//!
//! Owns: the first part of whatever rolls back (an error, ROLLBACK, ROLLBACK TO, a COMMIT that does not commit, the end
//! of the session): writes are undone some at a time, newest first. Where the session is to answer first, no more than
//! a few milliseconds' worth: the rest is undone behind it (`session::undo`). Where the statement goes on with what was
//! undone (ROLLBACK TO, the handlers of bodies), all of it, unless the statement is asked to end or its time is up.
//! Does not: end anything. The rollback itself comes behind it, finds little or nothing left to undo, or hands it over,
//! and runs in one go.

use super::Session;
use super::signals::Signals;
use crate::limits::{StatementTimeouts, run_with_limits};
use crate::open_transaction::BlockState;
use crate::turns::in_turns;
use logstead_engine::{SavepointId, Txn};
use logstead_sql_types::error::Result;
use std::pin::pin;
use std::sync::Arc;
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
    let clock = signals.scheduler().clock();
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

/// Undoes all. Of what is undone at once nobody is asked for a turn.
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
async fn unwind_some(signals: &Signals, txn: &mut Txn, to: Option<SavepointId>) {
    if !unwind_step(signals, txn, to) {
        return;
    }
    let clock = signals.scheduler().clock();
    let began = clock.monotonic();
    while clock.monotonic().since(began) < BEFORE_ANSWER {
        tokio::task::yield_now().await;
        if !unwind_step(signals, txn, to) {
            return;
        }
    }
}

impl Session {
    /// Undoes, in turns with the worker's other sessions, some of what a rollback that is about to come has to undo:
    /// what came since the last savepoint, or all of the transaction.
    pub async fn unwind(&mut self) {
        let savepoints = self.open.as_ref().map(|open| &open.savepoints);
        let last = savepoints.and_then(|savepoints| savepoints.last());
        let to = last.map(|(savepoint, _)| *savepoint);
        self.unwind_before_answer(to.filter(|_| self.block != BlockState::None))
            .await;
    }

    /// The same for all of the transaction: its end is about to come, which undoes what is left, or has it undone
    /// behind the session.
    pub(super) async fn unwind_all(&mut self) {
        self.take_back();
        self.unwind_before_answer(None).await;
    }

    async fn unwind_before_answer(&mut self, to: Option<SavepointId>) {
        let behind = self.undoes_in_background();
        if let Some(open) = &mut self.open {
            match behind {
                true => unwind_some(&self.signals, &mut open.txn, to).await,
                false => unwind_txn(&self.signals, &mut open.txn, to).await,
            }
        }
    }

    /// Undoes all of the transaction, unless it is left to be undone ([`Session::leaves_undo_to_restart`]).
    pub(super) async fn unwind_unless_left(&mut self) {
        let Some(mut open) = self.open.take() else {
            return;
        };
        let signals = Arc::clone(&self.signals);
        if unwind_step(&signals, &mut open.txn, None) {
            let rest = pin!(async {
                while !self.leaves_undo_to_restart() && unwind_step(&signals, &mut open.txn, None) {
                    tokio::task::yield_now().await;
                }
            });
            in_turns(&signals, rest).await;
        }
        self.open = Some(open);
    }

    /// Undoes what came since the savepoint, in a statement that goes on then: it can be asked to end meanwhile, and
    /// has its time limit.
    pub(super) async fn unwind_or_end(&mut self, to: SavepointId) -> Result<()> {
        // It waits for no lock.
        let limits = StatementTimeouts {
            lock_ms: 0,
            ..self.limits()
        };
        let signals = Arc::clone(&self.signals);
        let Some(open) = &mut self.open else {
            return Ok(());
        };
        if !unwind_step(&signals, &mut open.txn, Some(to)) {
            return Ok(());
        }
        let clock = signals.scheduler().clock();
        let rest = async {
            while unwind_step(&signals, &mut open.txn, Some(to)) {
                let statement = signals.statement();
                statement.check_at(|| clock.now_micros_since_2000())?;
                tokio::task::yield_now().await;
            }
            Ok(())
        };
        run_with_limits(&signals, limits, rest).await
    }
}
