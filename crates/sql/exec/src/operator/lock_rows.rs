//! SELECT ... FOR UPDATE and its kin: locks rows as they pass, and takes the newest version of a row that changed
//! meanwhile.
//!
//! As in PostgreSQL a row is locked first and checked again after: when the condition does not hold for a newer version
//! the row is not given, and stays locked. With several tables every row of a combination is locked before the
//! condition is looked at once more.

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::deform;
use crate::operator::{PlanState, pull};
use crate::wait::WaitReason;
use crate::write_errors::write_failed;
use logstead_engine::{Table, WriteError};
use logstead_sql_plan::{LockTarget, LockWait, Plan, SecurityQuals};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::{Rid, SqlState};
use std::sync::Arc;

/// State of LockRows.
pub(crate) struct LockState {
    pub(crate) input: PlanState,
    batch: Batch,
    at: usize,
    /// The row being locked, across waits, and the target it has come to.
    row: Vec<Datum>,
    open: bool,
    target: usize,
    /// READ COMMITTED has moved on to the newest version of the current target.
    newest: bool,
    /// Some target of the row was locked in a newer version than was read.
    changed: bool,
    evaluation: ResumableEvaluation,
    tables: Vec<Arc<Table>>,
}

enum RowLockOutcome {
    Yes,
    /// The row is gone, no longer wanted, or skipped.
    No,
    Wait(WaitReason),
}

impl LockState {
    pub(crate) fn new(input: &Plan) -> LockState {
        LockState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            row: Vec::new(),
            open: false,
            target: 0,
            newest: false,
            changed: false,
            evaluation: ResumableEvaluation::default(),
            tables: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        targets: &'a [LockTarget],
        recheck: &'a SecurityQuals,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(logstead_sql_plan::instrumentation::width(input));
        while self.tables.len() < targets.len() {
            self.tables
                .push(cx.table(targets[self.tables.len()].table.storage)?);
        }
        loop {
            if !self.open {
                if out.is_full() {
                    return Ok(Step::Batch);
                }
                if self.at == self.batch.len() {
                    if !out.is_empty() {
                        return Ok(Step::Batch);
                    }
                    self.at = 0;
                    self.batch.set_capacity(out.capacity());
                    self.batch.start(0);
                    if !pull!(self.input, input, cx, &mut self.batch) {
                        return Ok(Step::Done);
                    }
                }
                self.row.clear();
                self.row.extend_from_slice(self.batch.row(self.at));
                self.at += 1;
                self.open = true;
                self.target = 0;
                self.newest = false;
                self.changed = false;
            }
            let mut locked = RowLockOutcome::Yes;
            while let Some(target) = targets.get(self.target) {
                locked = self.lock(target, cx)?;
                if !matches!(locked, RowLockOutcome::Yes) {
                    break;
                }
                self.target += 1;
                self.changed |= std::mem::take(&mut self.newest);
            }
            if self.changed && matches!(locked, RowLockOutcome::Yes) {
                let row = &self.row;
                let wants =
                    |cx: &mut ExecutorContext<'a>| crate::security_quals::passes(recheck, row, cx);
                locked = match self.evaluation.of(recheck.exprs(), cx, wants)? {
                    Ok(true) => RowLockOutcome::Yes,
                    Ok(false) => RowLockOutcome::No,
                    Err(absent) => RowLockOutcome::Wait(absent),
                };
            }
            match locked {
                RowLockOutcome::Wait(_) if !out.is_empty() => return Ok(Step::Batch),
                RowLockOutcome::Wait(blocker) => return Ok(Step::Wait(blocker)),
                RowLockOutcome::Yes => out.push_row(&self.row),
                RowLockOutcome::No => {}
            }
            self.open = false;
        }
    }

    /// Locks the current row's version in one table.
    fn lock<'a>(
        &mut self,
        target: &'a LockTarget,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowLockOutcome> {
        let relation = &target.table;
        let Some(table) = self.tables.get(self.target) else {
            return Err(SqlError::internal("a lock target without a table"));
        };
        let rid = match self.row.get(target.row_id) {
            Some(Datum::Int8(rid)) => Rid(rid.cast_unsigned()),
            // The NULL side of an outer join.
            Some(Datum::Null) => return Ok(RowLockOutcome::Yes),
            _ => return Err(SqlError::internal("a row to lock has no row id")),
        };
        loop {
            let txn = cx.txn()?;
            let guard = txn.pin();
            let current = match txn.read_or_newest(table, rid, self.newest, &guard) {
                Ok(Some(current)) => current,
                Ok(None) => {
                    txn.pass_turn();
                    return Ok(RowLockOutcome::No);
                }
                Err(absent) => return Ok(RowLockOutcome::Wait(absent.into())),
            };
            if self.newest {
                if let Some(token) = self.row.get_mut(target.row_id + 1) {
                    *token = Datum::Int8(current.version.token());
                }
                for &(position, column) in &target.columns {
                    match self.row.get_mut(column) {
                        Some(datum) => *datum = deform::decode(relation, current.bytes, position)?,
                        None => {
                            return Err(SqlError::internal(
                                "a lock target names a column its input lacks",
                            ));
                        }
                    }
                }
            }
            match cx.txn()?.lock_row(table, rid, current.version, target.lock) {
                Ok(()) => return Ok(RowLockOutcome::Yes),
                Err(WriteError::Blocked(blocker)) => {
                    return match target.wait {
                        LockWait::Block => Ok(RowLockOutcome::Wait(blocker.into())),
                        LockWait::Skip => Ok(RowLockOutcome::No),
                        LockWait::NoWait => Err(SqlError::new(
                            SqlState::LOCK_NOT_AVAILABLE,
                            format!(
                                "could not obtain lock on row in relation \"{}\"",
                                relation.name
                            ),
                        )),
                    };
                }
                Err(WriteError::Absent(absent)) => return Ok(RowLockOutcome::Wait(absent.into())),
                Err(WriteError::Changed) => self.newest = true,
                Err(WriteError::Gone) => return Ok(RowLockOutcome::No),
                Err(WriteError::SelfModified) => return Ok(RowLockOutcome::Yes),
                // PostgreSQL tells a delete apart only where the row was to be written.
                Err(WriteError::SerializationDelete) => {
                    return Err(write_failed(&WriteError::Serialization));
                }
                Err(error) => return Err(write_failed(&error)),
            }
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.open = false;
        self.evaluation.reset();
    }
}
