//! DELETE: each row of the source is removed once, after its triggers, if it still meets the condition when its lock is
//! had (PostgreSQL's EvalPlanQual).

use super::modify::{ModifyTableNode, RowWriter};
use super::update::{fill, shows_version};
use super::{RowWriteOutcome, TriggeredUpdate, TupleModifyResult, lock_for_triggers};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::trigger::{self, TriggerProgress, TriggeredRow};
use crate::write_errors::triggered_data_change;
use logstead_engine::{Row, Table, VersionId, WriteError};
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::{RuleSet, TableTriggers};
use logstead_sql_plan::expr::Expr;
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
                TriggeredUpdate::Proceed => {
                    *self = DeleteTriggerState::default();
                    self.locked = version;
                }
                other => return Ok(other),
            }
        }
        // A scan gives what the statement reads; triggers see all of it.
        fill(&triggers.table, current.bytes, row)?;
        let event = TriggerEvent::Delete;
        match self.firing.row(triggers, event, Some(&*row), None, cx)? {
            TriggeredRow::Wait(obstacle) => {
                Ok(TriggeredUpdate::Finished(RowWriteOutcome::Wait(obstacle)))
            }
            TriggeredRow::Skipped => cx.skip_row().map(TriggeredUpdate::Finished),
            TriggeredRow::Proceed => {
                self.fired = version;
                Ok(TriggeredUpdate::Proceed)
            }
        }
    }
}

impl ModifyTableNode for Delete {
    type RowWriter = DeleteWriter;
    const EVENT: TriggerEvent = TriggerEvent::Delete;

    fn source(&self) -> &Plan {
        &self.source
    }

    fn target(&self) -> &Relation {
        &self.table
    }

    fn rules(&self) -> Option<&Arc<RuleSet>> {
        self.rules.as_ref()
    }

    fn returning(&self) -> &Option<Vec<Expr>> {
        &self.returning
    }
}

impl RowWriter<Delete> for DeleteWriter {
    fn start(&mut self, source: &[Datum]) {
        self.row.clear();
        self.row.extend_from_slice(source);
        self.reset();
    }

    fn write<'a>(
        &mut self,
        delete: &'a Delete,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
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
                Err(absent) => return Ok(RowWriteOutcome::Wait(absent.into())),
            };
            if self.newest && self.judged != Some(current.version) {
                fill(relation, current.bytes, &mut self.row)?;
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
                    Err(absent) => return Ok(RowWriteOutcome::Wait(absent)),
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
                    TriggeredUpdate::SelfModified => return Ok(RowWriteOutcome::Skipped),
                    TriggeredUpdate::Finished(outcome) => return Ok(outcome),
                }
            }
            match remove(rules, table, &current, cx)? {
                TupleModifyResult::Done => {
                    // The scan's may be an older one.
                    let gone = current.version.written_over();
                    shows_version(&mut self.row, relation.columns.len(), gone);
                    return Ok(RowWriteOutcome::Written);
                }
                TupleModifyResult::Wait(obstacle) => return Ok(RowWriteOutcome::Wait(obstacle)),
                TupleModifyResult::Changed => self.newest = true,
                TupleModifyResult::Gone | TupleModifyResult::SelfModified => {
                    return Ok(RowWriteOutcome::Skipped);
                }
                TupleModifyResult::Again => {}
            }
        }
    }

    fn instead<'a>(
        &mut self,
        delete: &'a Delete,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let (rules, event) = (delete.rules.as_ref(), TriggerEvent::Delete);
        let old = self.row.get(..delete.table.columns.len());
        Ok(
            match self.seen.firing.instead(rules, event, old, None, cx)? {
                TriggeredRow::Wait(obstacle) => RowWriteOutcome::Wait(obstacle),
                TriggeredRow::Skipped => RowWriteOutcome::Skipped,
                TriggeredRow::Proceed => {
                    cx.affected += 1;
                    RowWriteOutcome::Written
                }
            },
        )
    }

    fn returned(&self) -> &[Datum] {
        &self.row
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
        Err(WriteError::Overtaken) => Err(triggered_data_change("deleted")),
        Err(error) => TupleModifyResult::of(error),
    }
}
