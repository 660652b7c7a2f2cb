//! INSERT, UPDATE, DELETE and MERGE: from source rows to the engine's versions.
//!
//! Owns: making stored rows, NOT NULL and CHECK, the errors of constraints, and what to do when another transaction is
//! in the way. The engine decides about locks, snapshots and uniqueness, and undoes a refused write itself, so a
//! refused write is simply tried again after the wait.
//!
//! Invariant: whatever a source row makes happen besides the write (sequences, volatile functions) happens once,
//! however often the write is tried; it happens again only when READ COMMITTED moves on to a newer version of the row.

mod delete;
mod insert;
mod merge;
mod modify;
mod update;

pub(crate) use delete::DeleteWriter;
pub use insert::Inserter;
pub(crate) use insert::{InsertState, InsertWriter};
pub(crate) use merge::MergeState;
pub(crate) use modify::{ModifyTableState, RowWriter};
pub(crate) use update::UpdateWriter;

use crate::batch::Batch;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::{as_bool, eval_in};
use crate::wait::Evaluated;
use crate::wait::WaitReason;
use crate::write_errors::{check_violation, write_failed};
use logstead_engine::{RowLock, Table, VersionId, WriteError};
use logstead_sql_catalog::Relation;
use logstead_sql_plan::Check;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::sync::Arc;

/// What became of one row.
pub(crate) enum RowWriteOutcome {
    /// Written; the writer's `returned` row is what RETURNING sees.
    Written,
    /// Nothing to do: gone, no longer wanted, or DO NOTHING.
    Skipped,
    /// Try again after this.
    Wait(WaitReason),
}

impl ExecutorContext<'_> {
    /// A row turned out to be gone or no longer wanted: if it was waited for, the next who waits tries.
    pub(crate) fn skip_row(&mut self) -> Result<RowWriteOutcome> {
        self.txn()?.pass_turn();
        Ok(RowWriteOutcome::Skipped)
    }
}

/// What became of a version that was to replace or end another one.
enum TupleModifyResult {
    /// It is there.
    Done,
    /// Try again after this.
    Wait(WaitReason),
    /// READ COMMITTED: there is a newer version, which may not be wanted.
    Changed,
    /// The row is gone.
    Gone,
    /// This statement has changed the row already.
    SelfModified,
    /// What was in the way has gone.
    Again,
}

impl TupleModifyResult {
    /// What a write that was refused came to, if it is no error.
    fn of(error: WriteError) -> Result<TupleModifyResult> {
        Ok(match error {
            WriteError::Blocked(blocker) => TupleModifyResult::Wait(blocker.into()),
            WriteError::Absent(absent) => TupleModifyResult::Wait(absent.into()),
            WriteError::Changed => TupleModifyResult::Changed,
            WriteError::Gone => TupleModifyResult::Gone,
            WriteError::SelfModified => TupleModifyResult::SelfModified,
            error => return Err(write_failed(&error)),
        })
    }
}

/// What is to be done with a version that BEFORE triggers are to see, or have seen.
enum TriggeredUpdate {
    /// It is locked; it is written.
    Proceed,
    /// READ COMMITTED: there is a newer version.
    Changed,
    /// It is deleted.
    Gone,
    /// This statement has changed the row already.
    SelfModified,
    /// No more is done with the row.
    Finished(RowWriteOutcome),
}

/// Locks a version that BEFORE triggers are to see: what they have done cannot be undone when somebody else turns out
/// to have changed the row.
fn lock_for_triggers(
    table: &Arc<Table>,
    rid: Rid,
    version: VersionId,
    cx: &mut ExecutorContext<'_>,
) -> Result<TriggeredUpdate> {
    let txn = cx.txn()?;
    let Err(error) = txn.lock_row(table, rid, version, RowLock::NoKeyUpdate) else {
        return Ok(TriggeredUpdate::Proceed);
    };
    Ok(match TupleModifyResult::of(error)? {
        TupleModifyResult::Done | TupleModifyResult::Again => TriggeredUpdate::Proceed,
        TupleModifyResult::Wait(obstacle) => {
            TriggeredUpdate::Finished(RowWriteOutcome::Wait(obstacle))
        }
        TupleModifyResult::Changed => TriggeredUpdate::Changed,
        TupleModifyResult::Gone => TriggeredUpdate::Gone,
        TupleModifyResult::SelfModified => TriggeredUpdate::SelfModified,
    })
}

/// What RETURNING gives of the rows that are written. A row that is written already waits here for what its expressions
/// need.
#[derive(Default)]
pub(crate) struct Returning {
    pending: bool,
    evaluation: ResumableEvaluation,
}

impl Returning {
    /// The last row is written, and not given yet.
    pub(crate) fn is_pending(&self) -> bool {
        self.pending
    }

    /// Gives the row that has been written, as `row`, if it was; or says what is in the way of the write or of
    /// RETURNING.
    pub(crate) fn give<'a>(
        &mut self,
        outcome: RowWriteOutcome,
        returning: &'a Option<Vec<Expr>>,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Option<WaitReason>> {
        let returning = match (outcome, returning) {
            (RowWriteOutcome::Wait(obstacle), _) => return Ok(Some(obstacle)),
            (RowWriteOutcome::Written, Some(returning)) => returning,
            (RowWriteOutcome::Written | RowWriteOutcome::Skipped, _) => return Ok(None),
        };
        let evaluate = |cx: &mut ExecutorContext<'a>| {
            for expr in returning {
                out.push(eval_in(expr, row, cx)?);
            }
            Ok(())
        };
        let given = self.evaluation.of(returning, cx, evaluate)?;
        self.pending = given.is_err();
        match given {
            Ok(()) => {
                out.end_row();
                Ok(None)
            }
            Err(absent) => {
                out.abandon_row();
                Ok(Some(absent))
            }
        }
    }
}

/// CHECK constraints over a full row: NULL is no violation. `given` as for `check_not_null`.
pub(crate) fn check_constraints<'a>(
    relation: &Relation,
    checks: &'a [Check],
    row: &[Datum],
    given: &[usize],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    for check in checks {
        if as_bool(&eval_in(&check.expr, row, cx)?)? == Some(false) {
            return Err(check_violation(relation, check, row, given, cx.session).into());
        }
    }
    Ok(())
}

/// The expressions of checks.
pub(crate) fn exprs_of(checks: &[Check]) -> impl Iterator<Item = &Expr> {
    checks.iter().map(|check| &check.expr)
}
