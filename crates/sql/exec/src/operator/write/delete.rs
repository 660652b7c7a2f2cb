//! DELETE.

use super::update::{TriggeredUpdate, fill, row_number, shows_version};
use super::{Outcome, Returning, TupleLockResult, TupleModifyResult, lock_for_triggers};
use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::operator::{PlanState, pull};
use crate::stored;
use crate::trigger::{self, StatementTriggers, TriggerProgress, TriggeredRow};
use crate::write_errors::{triggered_data_change, write_failed};
use logstead_engine::{Row, Table, VersionId, WriteError};
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::{RuleSet, TableTriggers};
use logstead_sql_plan::{Delete, Plan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::sync::Arc;

/// Deletes rows one at a time.
#[derive(Default)]
pub(crate) struct DeleteWriter {
    /// The source row; the target's columns as of the version being deleted.
    row: Vec<Datum>,
    /// READ COMMITTED has moved on to the newest version.
    newest: bool,
    /// The newest version whose row is in place and was found to be wanted: not checked again after a wait.
    judged: Option<VersionId>,
    /// What checks it, and which version.
    evaluation: ResumableEvaluation,
    judging: Option<VersionId>,
    /// BEFORE triggers of the row.
    seen: DeleteTriggerState,
}

/// How far the BEFORE triggers of a row have come, by the version that they see.
#[derive(Default)]
pub(super) struct DeleteTriggerState {
    locked: Option<VersionId>,
    fired: Option<VersionId>,
    firing: TriggerProgress,
}

impl DeleteTriggerState {
    /// Shows the row in `row` to BEFORE triggers: locks it and fires them one by one.
    pub(super) fn show(
        &mut self,
        triggers: &TableTriggers,
        table: &Arc<Table>,
        current: &Row<'_>,
        row: &mut [Datum],
        cx: &mut ExecutorContext<'_>,
    ) -> Result<TriggeredUpdate> {
        let version = Some(current.version);
        if self.fired == version {
            return Ok(TriggeredUpdate::Proceed);
        }
        if self.locked != version {
            match lock_for_triggers(table, current.rid, current.version, cx)? {
                TupleLockResult::Done => {
                    *self = DeleteTriggerState::default();
                    self.locked = version;
                }
                TupleLockResult::Wait(obstacle) => {
                    return Ok(TriggeredUpdate::Finished(Outcome::Wait(obstacle)));
                }
                TupleLockResult::Changed => return Ok(TriggeredUpdate::Changed),
                TupleLockResult::Gone => return Ok(TriggeredUpdate::Gone),
                TupleLockResult::SelfModified => return Ok(TriggeredUpdate::SelfModified),
            }
        }
        // A scan gives what the statement reads; triggers see all of it.
        fill(&triggers.table, current.bytes, row)?;
        let event = TriggerEvent::Delete;
        match self.firing.row(triggers, event, Some(&*row), None, cx)? {
            TriggeredRow::Wait(obstacle) => Ok(TriggeredUpdate::Finished(Outcome::Wait(obstacle))),
            TriggeredRow::Skipped => cx.skip_row().map(TriggeredUpdate::Finished),
            TriggeredRow::Proceed => {
                self.fired = version;
                Ok(TriggeredUpdate::Proceed)
            }
        }
    }
}

impl DeleteWriter {
    /// Forgets the row before.
    pub(crate) fn reset(&mut self) {
        self.newest = false;
        self.judged = None;
        self.judging = None;
        if self.seen.locked.is_some() {
            self.seen = DeleteTriggerState::default();
        }
    }

    /// Puts a target row in place.
    pub(crate) fn row_mut(&mut self) -> &mut Vec<Datum> {
        &mut self.row
    }

    /// Deletes the row of `rid`, whose source row is in place; after `Wait` it is called again.
    pub(crate) fn write<'a>(
        &mut self,
        delete: &'a Delete,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Outcome> {
        let relation = &delete.table;
        if self.row.len() < relation.columns.len() {
            return Err(SqlError::internal(
                "a source row lacks columns of its target",
            ));
        }
        loop {
            let txn = cx.txn()?;
            let guard = txn.pin();
            let current = match txn.read_or_newest(table, rid, self.newest, &guard) {
                Ok(Some(current)) => current,
                Ok(None) => return cx.skip_row(),
                Err(absent) => return Ok(Outcome::Wait(absent.into())),
            };
            if self.newest && self.judged != Some(current.version) {
                for position in 0..relation.columns.len() {
                    self.row[position] = stored::decode(relation, current.bytes, position)?;
                }
                shows_version(&mut self.row, relation.columns.len(), current.version);
                if self.judging.replace(current.version) != Some(current.version) {
                    self.evaluation.reset();
                }
                let row = &self.row;
                let recheck = &delete.recheck;
                let wants =
                    |cx: &mut ExecutorContext<'a>| crate::security_quals::passes(recheck, row, cx);
                let wanted = self.evaluation.of(recheck.exprs(), cx, wants);
                match wanted? {
                    Ok(true) => self.judged = Some(current.version),
                    Ok(false) => return cx.skip_row(),
                    Err(absent) => return Ok(Outcome::Wait(absent)),
                }
            }
            let rules = delete.rules.as_ref();
            let triggers = trigger::before(rules, TriggerEvent::Delete);
            if let Some(triggers) = triggers {
                match self
                    .seen
                    .show(triggers, table, &current, &mut self.row, cx)?
                {
                    TriggeredUpdate::Proceed => {}
                    TriggeredUpdate::Changed => {
                        self.newest = true;
                        continue;
                    }
                    TriggeredUpdate::Gone => return cx.skip_row(),
                    TriggeredUpdate::SelfModified => return Ok(Outcome::Skipped),
                    TriggeredUpdate::Finished(outcome) => return Ok(outcome),
                }
            }
            match remove(rules, table, &current, cx)? {
                TupleModifyResult::Done => {
                    // The scan's may be an older one.
                    let gone = current.version.written_over();
                    shows_version(&mut self.row, relation.columns.len(), gone);
                    return Ok(Outcome::Written);
                }
                TupleModifyResult::Wait(obstacle) => return Ok(Outcome::Wait(obstacle)),
                TupleModifyResult::Changed => self.newest = true,
                TupleModifyResult::Gone | TupleModifyResult::SelfModified => {
                    return Ok(Outcome::Skipped);
                }
                TupleModifyResult::Again => {}
            }
        }
    }

    /// Shows a view's row, which is the source row, to the view's triggers, which do what is to be done.
    fn instead(&mut self, delete: &Delete, cx: &mut ExecutorContext<'_>) -> Result<Outcome> {
        let (rules, event) = (delete.rules.as_ref(), TriggerEvent::Delete);
        let old = self.row.get(..delete.table.columns.len());
        Ok(
            match self.seen.firing.instead(rules, event, old, None, cx)? {
                TriggeredRow::Wait(obstacle) => Outcome::Wait(obstacle),
                TriggeredRow::Skipped => Outcome::Skipped,
                TriggeredRow::Proceed => {
                    cx.affected += 1;
                    Outcome::Written
                }
            },
        )
    }

    /// What RETURNING sees after `Written`.
    pub(crate) fn returned(&self) -> &[Datum] {
        &self.row
    }
}

/// Deletes the row of which `current` is a version.
pub(super) fn remove(
    rules: Option<&Arc<RuleSet>>,
    table: &Arc<Table>,
    current: &Row<'_>,
    cx: &mut ExecutorContext<'_>,
) -> Result<TupleModifyResult> {
    match cx
        .writing_txn()?
        .delete(table, current.rid, current.version)
    {
        Ok(()) => {
            cx.affected += 1;
            if let Some(rules) = rules {
                cx.queue()?
                    .deleted(rules, 0, current.rid, current.bytes, false)?;
            }
            Ok(TupleModifyResult::Done)
        }
        Err(WriteError::Blocked(blocker)) => Ok(TupleModifyResult::Wait(blocker.into())),
        Err(WriteError::Absent(absent)) => Ok(TupleModifyResult::Wait(absent.into())),
        Err(WriteError::Changed) => Ok(TupleModifyResult::Changed),
        Err(WriteError::Gone) => Ok(TupleModifyResult::Gone),
        Err(WriteError::SelfModified) => Ok(TupleModifyResult::SelfModified),
        Err(WriteError::Overtaken) => Err(triggered_data_change("deleted")),
        Err(error) => Err(write_failed(&error)),
    }
}

/// State of a DELETE node.
pub(crate) struct DeleteState {
    pub(crate) source: PlanState,
    batch: Batch,
    at: usize,
    /// The row being deleted, across waits.
    open: Option<Rid>,
    table: Option<Arc<Table>>,
    writer: DeleteWriter,
    returning: Returning,
    statement: StatementTriggers,
}

impl DeleteState {
    pub(crate) fn new(delete: &Delete) -> DeleteState {
        DeleteState {
            source: PlanState::new(&delete.source),
            batch: Batch::of(BATCH_ROWS),
            at: 0,
            open: None,
            table: None,
            writer: DeleteWriter::default(),
            returning: Returning::default(),
            statement: StatementTriggers::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        delete: &'a Delete,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(delete.returning.as_ref().map_or(0, Vec::len));
        let source: &'a Plan = &delete.source;
        let events = [(TriggerEvent::Delete, delete.rules.as_ref())];
        if let Some(obstacle) = self.statement.begin(&events, cx)? {
            return Ok(Step::Wait(obstacle));
        }
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(delete.table.storage)?),
        };
        loop {
            if cx.yield_pending && !out.is_empty() {
                return Ok(Step::Batch);
            }
            if cx.take_pending_yield() {
                return Ok(Step::Yield);
            }
            let rid = match self.open {
                Some(rid) => rid,
                None => {
                    if self.at == self.batch.len() {
                        if !out.is_empty() {
                            return Ok(Step::Batch);
                        }
                        self.at = 0;
                        self.batch.start(0);
                        if !pull!(self.source, source, cx, &mut self.batch) {
                            self.statement.end(&events, cx)?;
                            return Ok(Step::Done);
                        }
                    }
                    self.at += 1;
                    let row = self.batch.row(self.at - 1);
                    let rid = match row_number(row)? {
                        Some(rid) => rid,
                        // A view's rows have no number.
                        None if delete.table.view().is_some() => Rid(0),
                        None => continue,
                    };
                    self.writer.row.clear();
                    self.writer.row.extend_from_slice(row);
                    self.writer.reset();
                    rid
                }
            };
            self.open = Some(rid);
            let outcome = match self.returning.is_pending() {
                true => Outcome::Written,
                false if delete.table.view().is_some() => self.writer.instead(delete, cx)?,
                false => self.writer.write(delete, table, rid, cx)?,
            };
            let row = self.writer.returned();
            match self
                .returning
                .give(outcome, &delete.returning, row, cx, out)?
            {
                Some(_) if !out.is_empty() => return Ok(Step::Batch),
                Some(obstacle) => return Ok(Step::Wait(obstacle)),
                None => self.open = None,
            }
        }
    }
}
