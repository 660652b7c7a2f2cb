//! UPDATE: finds the rows, computes the new ones, checks them (policies, CHECK, NOT NULL) and writes them; what foreign
//! keys ask for comes behind the statement (`crate::constraints`). A row that another transaction changed while it was
//! waited for is looked at again, with its newest version (PostgreSQL's EvalPlanQual: `compute_wanted`).
//!
//! Does not: decide whether a row has changed, is waited for, or ends the transaction with 40001 (the engine's `Txn`,
//! `satisfies_update`).

use super::insert::generate;
use super::modify::{ModifyTableNode, RowWriter};
use super::{
    RowWriteOutcome, TriggeredUpdate, TupleModifyResult, check_constraints, exprs_of,
    lock_for_triggers,
};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::deform;
use crate::deform::{encode_changed, encode_full};
use crate::eval::eval_in;
use crate::operator::scan::OpenRow;
use crate::security_quals::check_policies;
use crate::trigger::{self, TriggerProgress, TriggeredRow};
use crate::wait::Evaluated;
use crate::write_errors::{check_not_null, unique_violation, without_key};
use logstead_engine::{Row, RowBuilder, RowRef, Table, VersionId, WriteError};
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::{RuleSet, TableTriggers};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Plan, Update};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::sync::Arc;

/// Updates rows one at a time.
#[derive(Default)]
pub(crate) struct UpdateWriter {
    builder: RowBuilder,
    /// The source row without its row id; the target's columns as of the version being updated.
    pub(super) row: Vec<Datum>,
    /// New values, in the order of the assignments, as computed from the version `computed`. A wait may end with a
    /// newer version: what was computed from the one before would lose an update.
    assigned: Vec<Datum>,
    computed: Option<VersionId>,
    /// What computes them, and from which version.
    evaluation: ResumableEvaluation,
    computing: Option<VersionId>,
    /// That version, while what is computed of it waits for something.
    open: OpenRow,
    /// READ COMMITTED has moved on to the newest version.
    newest: bool,
    /// `row` holds only the columns that are read; an error that shows the whole row decodes the rest.
    sparse: bool,
    /// The new full row, then the source row's other columns.
    returned: Vec<Datum>,
    /// BEFORE triggers of the row.
    seen: UpdateTriggerState,
}

/// How far the BEFORE triggers of a row have come, by the version that they see.
#[derive(Default)]
struct UpdateTriggerState {
    locked: Option<VersionId>,
    valued: Option<VersionId>,
    fired: Option<VersionId>,
    firing: TriggerProgress,
    judging: ResumableEvaluation,
    /// The new full row.
    row: Vec<Datum>,
    /// A view's row has its new values.
    assigned: bool,
}

impl ModifyTableNode for Update {
    type RowWriter = UpdateWriter;
    const EVENT: TriggerEvent = TriggerEvent::Update;

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

impl RowWriter<Update> for UpdateWriter {
    fn start(&mut self, source: &[Datum]) {
        self.row.clear();
        self.row.extend_from_slice(source);
        self.computed = None;
        self.computing = None;
        self.newest = false;
        self.sparse = false;
        if self.seen.locked.is_some() || self.seen.assigned {
            self.seen = UpdateTriggerState::default();
            self.evaluation.reset();
        }
    }

    fn write<'a>(
        &mut self,
        update: &'a Update,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let relation = &update.table;
        let columns = relation.columns.len();
        if self.row.len() < columns {
            return Err(SqlError::internal(
                "a source row lacks columns of its target",
            ));
        }
        loop {
            let txn = cx.txn()?;
            let guard = txn.pin();
            let open = std::mem::take(&mut self.open);
            let current = match open.row() {
                Some(current) => current,
                None => match txn.read_or_newest(table, rid, self.newest, &guard) {
                    Ok(Some(current)) => current,
                    Ok(None) => return cx.skip_row(),
                    Err(absent) => return Ok(RowWriteOutcome::Wait(absent.into())),
                },
            };
            let triggers = trigger::before(update.rules.as_ref(), TriggerEvent::Update);
            if let Some(triggers) = triggers {
                match self.show(update, triggers, table, &current, cx)? {
                    TriggeredUpdate::Proceed => {}
                    TriggeredUpdate::Changed => {
                        self.newest = true;
                        continue;
                    }
                    TriggeredUpdate::Gone => return cx.skip_row(),
                    TriggeredUpdate::SelfModified => return Ok(RowWriteOutcome::Skipped),
                    TriggeredUpdate::Finished(outcome) => return Ok(outcome),
                }
            } else if self.computed != Some(current.version) {
                if self.computing.replace(current.version) != Some(current.version) {
                    self.evaluation.reset();
                }
                let mut evaluation = std::mem::take(&mut self.evaluation);
                let exprs = update.assignments.iter().map(|(_, expr)| expr);
                let exprs = exprs.chain(update.recheck.exprs());
                let exprs = exprs.chain(exprs_of(&update.policies));
                let exprs = exprs.chain(exprs_of(&update.checks));
                let wanted =
                    evaluation.of(exprs, cx, |cx| self.compute_wanted(update, &current, cx));
                self.evaluation = evaluation;
                match wanted? {
                    Ok(true) => self.computed = Some(current.version),
                    Ok(false) => return cx.skip_row(),
                    Err(absent) => {
                        let met = (!open.is_some()).then(|| OpenRow::of(&current));
                        self.open = met.unwrap_or(open);
                        return Ok(RowWriteOutcome::Wait(absent));
                    }
                }
            }
            if open.is_some() {
                // It is written as it is now.
                continue;
            }
            match self.store(update, table, &current, cx)? {
                TupleModifyResult::Done => return Ok(RowWriteOutcome::Written),
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
        update: &'a Update,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let width = update.table.columns.len();
        if !self.seen.assigned {
            let mut evaluation = std::mem::take(&mut self.evaluation);
            let exprs = update.assignments.iter().map(|(_, expr)| expr);
            let assigned = evaluation.of(exprs, cx, |cx| {
                self.seen.row = self.row.get(..width).unwrap_or_default().to_vec();
                for (position, expr) in &update.assignments {
                    let value = eval_in(expr, &self.row, cx)?;
                    if let Some(column) = self.seen.row.get_mut(*position) {
                        *column = value;
                    }
                }
                Ok(())
            });
            self.evaluation = evaluation;
            if let Err(absent) = assigned? {
                return Ok(RowWriteOutcome::Wait(absent));
            }
            self.seen.assigned = true;
        }
        let (rules, event) = (update.rules.as_ref(), TriggerEvent::Update);
        let old = self.row.get(..width);
        let new = Some(&mut self.seen.row);
        match self.seen.firing.instead(rules, event, old, new, cx)? {
            TriggeredRow::Wait(obstacle) => return Ok(RowWriteOutcome::Wait(obstacle)),
            TriggeredRow::Skipped => return Ok(RowWriteOutcome::Skipped),
            TriggeredRow::Proceed => {}
        }
        cx.affected += 1;
        self.returned.clone_from(&self.seen.row);
        let others = self.row.get(width..).unwrap_or_default();
        self.returned.extend_from_slice(others);
        Ok(RowWriteOutcome::Written)
    }

    fn returned(&self) -> &[Datum] {
        &self.returned
    }
}

impl UpdateWriter {
    /// Starts with a row of which the caller decodes only the columns that are read.
    pub(crate) fn start_sparse(&mut self) -> &mut Vec<Datum> {
        self.computed = None;
        self.computing = None;
        self.open = OpenRow::default();
        // Another statement's expressions.
        self.evaluation = ResumableEvaluation::default();
        self.newest = false;
        self.sparse = true;
        &mut self.row
    }

    /// Shows a version and what becomes of it to BEFORE triggers: locks it, computes what is assigned, fires them one
    /// by one, and checks the row that they have made.
    pub(super) fn show<'a>(
        &mut self,
        update: &'a Update,
        triggers: &TableTriggers,
        table: &Arc<Table>,
        current: &Row<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<TriggeredUpdate> {
        let relation = &update.table;
        let version = Some(current.version);
        if self.computed == version {
            return Ok(TriggeredUpdate::Proceed);
        }
        if self.seen.locked != version {
            match lock_for_triggers(table, current.rid, current.version, cx)? {
                TriggeredUpdate::Proceed => {
                    self.seen = UpdateTriggerState::default();
                    self.seen.locked = version;
                    // MERGE may have come with the expressions of another clause.
                    self.evaluation = ResumableEvaluation::default();
                }
                other => return Ok(other),
            }
        }
        // A scan gives what the statement reads; triggers see all of it.
        fill(relation, current.bytes, &mut self.row)?;
        shows_version(&mut self.row, relation.columns.len(), current.version);
        self.sparse = false;
        if self.seen.valued != version {
            let given = update.assignments.len().saturating_sub(update.generated);
            let given = update.assignments.get(..given).unwrap_or_default();
            let newest = self.newest;
            let mut evaluation = std::mem::take(&mut self.evaluation);
            let exprs = given.iter().map(|(_, expr)| expr);
            let exprs = exprs.chain(update.recheck.exprs());
            let valued = evaluation.of(exprs, cx, |cx| {
                if newest && !crate::security_quals::passes(&update.recheck, &self.row, cx)? {
                    return Ok(false);
                }
                let row = self.row.get(..relation.columns.len());
                self.seen.row = row.unwrap_or_default().to_vec();
                for (position, expr) in given {
                    let value = eval_in(expr, &self.row, cx)?;
                    if let Some(column) = self.seen.row.get_mut(*position) {
                        *column = value;
                    }
                }
                trigger::without_generated(relation, &mut self.seen.row);
                Ok(true)
            });
            self.evaluation = evaluation;
            match valued? {
                Ok(true) => self.seen.valued = version,
                Ok(false) => return cx.skip_row().map(TriggeredUpdate::Finished),
                Err(absent) => return Ok(TriggeredUpdate::Finished(RowWriteOutcome::Wait(absent))),
            }
        }
        if self.seen.fired != version {
            let old = self.row.get(..relation.columns.len());
            let new = Some(&mut self.seen.row);
            let event = TriggerEvent::Update;
            match self.seen.firing.row(triggers, event, old, new, cx)? {
                TriggeredRow::Wait(obstacle) => {
                    return Ok(TriggeredUpdate::Finished(RowWriteOutcome::Wait(obstacle)));
                }
                TriggeredRow::Skipped => return cx.skip_row().map(TriggeredUpdate::Finished),
                TriggeredRow::Proceed => self.seen.fired = version,
            }
        }
        // All generated columns: any other may be another now.
        let given = update.assignments.len().saturating_sub(update.generated);
        let generated = update.assignments.get(given..).unwrap_or_default();
        let (row, judging) = (&mut self.seen.row, &mut self.seen.judging);
        let exprs = exprs_of(&update.policies).chain(exprs_of(&update.checks));
        let exprs = exprs.chain(generated.iter().map(|(_, expr)| expr));
        let judged = judging.of(exprs, cx, |cx| {
            generate(generated, row, cx)?;
            check_policies(relation, &update.policies, row, cx)?;
            check_not_null(relation, row, &update.given, |_| true, cx.session)?;
            check_constraints(relation, &update.checks, row, &update.given, cx)
        });
        if let Err(absent) = judged? {
            return Ok(TriggeredUpdate::Finished(RowWriteOutcome::Wait(absent)));
        }
        self.returned.clear();
        self.returned.extend_from_slice(row);
        let others = self.row.get(relation.columns.len()..).unwrap_or_default();
        self.returned.extend_from_slice(others);
        self.computed = version;
        Ok(TriggeredUpdate::Proceed)
    }

    /// A source row for [`show`](Self::show), of whoever decides himself that it is wanted.
    pub(super) fn show_source(&mut self, source: &[Datum], version: VersionId) {
        if self.seen.locked != Some(version) {
            self.computed = None;
        }
        self.newest = false;
        self.row.clear();
        self.row.extend_from_slice(source);
    }

    /// Forgets what triggers have seen: another source row follows.
    pub(super) fn forget_seen(&mut self) {
        self.seen = UpdateTriggerState::default();
        self.computed = None;
    }

    /// Computes and checks what becomes of a source row for whoever decides himself that it is wanted, to be written by
    /// [`store`](Self::store).
    pub(super) fn make<'a>(
        &mut self,
        update: &'a Update,
        source: &[Datum],
        current: RowRef<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<()> {
        self.row.clear();
        self.row.extend_from_slice(source);
        self.sparse = false;
        self.compute(update, current, cx)
    }

    /// Writes what has been computed of the version `current`.
    pub(super) fn store(
        &mut self,
        update: &Update,
        table: &Arc<Table>,
        current: &Row<'_>,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<TupleModifyResult> {
        let relation = &update.table;
        let rid = current.rid;
        let assigned = &self.assigned;
        let datum = |position: usize| {
            let at = update
                .assignments
                .iter()
                .position(|(assigned, _)| *assigned == position);
            at.and_then(|at| assigned.get(at))
        };
        if self.seen.fired == Some(current.version) {
            encode_full(relation, &self.seen.row, &mut self.builder)?;
        } else {
            encode_changed(relation, current.bytes, datum, &mut self.builder);
        }
        match cx
            .writing_txn()?
            .update(table, rid, current.version, self.builder.finish())
        {
            Ok(()) => {
                cx.affected += 1;
                if let Some(rules) = &update.rules {
                    let new = RowRef::new(self.builder.finish());
                    cx.queue()?
                        .updated(rules, 0, rid, current.bytes, new, false)?;
                }
                let own = cx.txn()?.own_version();
                shows_version(&mut self.returned, relation.columns.len(), own);
                Ok(TupleModifyResult::Done)
            }
            // An index that was being built stood in the way, and has been given up since: once more.
            Err(WriteError::Unique { index, .. } | WriteError::NoKey { index })
                if table.index(index).is_none() =>
            {
                Ok(TupleModifyResult::Again)
            }
            Err(WriteError::Unique { index, .. }) => {
                let row = self.builder.finish();
                Err(unique_violation(relation, table, index, row, cx.session))
            }
            Err(WriteError::NoKey { index }) => {
                Err(without_key(table, index, self.builder.finish()))
            }
            Err(error) => TupleModifyResult::of(error),
        }
    }

    /// The same of a version that is wanted; false if a newer one is not any more.
    fn compute_wanted<'a>(
        &mut self,
        update: &'a Update,
        current: &Row<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<bool> {
        if self.newest {
            fill(&update.table, current.bytes, &mut self.row)?;
            shows_version(&mut self.row, update.table.columns.len(), current.version);
            self.sparse = false;
            if !crate::security_quals::passes(&update.recheck, &self.row, cx)? {
                return Ok(false);
            }
        }
        self.compute(update, current.bytes, cx)?;
        Ok(true)
    }

    /// Computes the new values and checks them.
    fn compute<'a>(
        &mut self,
        update: &'a Update,
        current: RowRef<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<()> {
        self.assigned.clear();
        let relation = &update.table;
        let given = update.assignments.len().saturating_sub(update.generated);
        let (given, generated) = update.assignments.split_at(given);
        for (_, expr) in given {
            self.assigned.push(eval_in(expr, &self.row, cx)?);
        }
        if !generated.is_empty() {
            if self.sparse {
                fill(relation, current, &mut self.row)?;
                self.sparse = false;
            }
            self.make_returned(update);
            for (position, expr) in generated {
                let value = eval_in(expr, &self.returned, cx)?;
                // What indexes have computed may be made of generated columns.
                if let Some(column) = self.returned.get_mut(*position) {
                    column.clone_from(&value);
                }
                self.assigned.push(value);
            }
        }
        let null_assigned =
            update
                .assignments
                .iter()
                .zip(&self.assigned)
                .any(|((position, _), datum)| {
                    datum.is_null()
                        && relation
                            .columns
                            .get(*position)
                            .is_some_and(|column| column.not_null)
                });
        let unchecked = update.checks.is_empty() && update.policies.is_empty();
        if !null_assigned && unchecked && update.returning.is_none() {
            return Ok(());
        }
        if self.sparse && (null_assigned || !unchecked) {
            fill(relation, current, &mut self.row)?;
            self.sparse = false;
        }
        self.make_returned(update);
        let row = self
            .returned
            .get(..relation.columns.len())
            .unwrap_or_default();
        let assigned = |position: usize| update.assignments.iter().any(|(at, _)| *at == position);
        check_policies(relation, &update.policies, row, cx)?;
        check_not_null(relation, row, &update.given, assigned, cx.session)?;
        check_constraints(relation, &update.checks, row, &update.given, cx)
    }

    fn make_returned(&mut self, update: &Update) {
        self.returned.clear();
        self.returned.extend_from_slice(&self.row);
        for ((position, _), datum) in update.assignments.iter().zip(&self.assigned) {
            if let Some(column) = self.returned.get_mut(*position) {
                *column = datum.clone();
            }
        }
    }
}

/// Tells in what is hidden of a row of `columns` columns, if it is there, that the row is this version.
pub(super) fn shows_version(row: &mut [Datum], columns: usize, version: VersionId) {
    if row.len() >= columns + 2
        && let Some(token) = row.last_mut()
    {
        *token = Datum::Int8(version.token());
    }
}

/// Decodes all of the target's columns into the front of a source row.
pub(super) fn fill(relation: &Relation, current: RowRef<'_>, row: &mut [Datum]) -> Result<()> {
    for (position, datum) in row.iter_mut().enumerate().take(relation.columns.len()) {
        *datum = deform::decode(relation, current, position)?;
    }
    Ok(())
}
