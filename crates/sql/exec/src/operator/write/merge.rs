//! MERGE: what becomes of each source row, by the first clause whose condition holds.
//!
//! A row of the target that somebody else has changed meanwhile is checked anew in READ COMMITTED: if its newest
//! version still matches, all clauses are tried from the first on; if it does not, or is gone, the source row is one
//! that nothing matches.

use super::delete::{DeleteTriggerState, remove};
use super::modify::row_number;
use super::update::{UpdateWriter, fill, shows_version};
use super::{
    InsertWriter, RowWriteOutcome, TriggeredUpdate, TupleModifyResult, exprs_of as policy_exprs,
};
use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::holds;
use crate::operator::{PlanState, pull};
use crate::security_quals::check_policies;
use crate::trigger::{self, StatementTriggers};
use crate::wait::Evaluated;
use crate::write_errors::OVERTAKEN;
use crate::write_errors::triggered_data_change;
use logstead_engine::{Row, Table, VersionId};
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::{RuleSet, TableTriggers};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Merge, MergeAction, Plan, Update, When};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::{Rid, SqlState};
use std::sync::Arc;

/// What a version of a row of the target comes to.
#[derive(Clone, Copy)]
enum MergeDecision {
    /// The newest version does not match.
    Unmatched,
    /// No clause wants it.
    Nothing,
    /// This clause does.
    Clause(usize),
}

/// Does what MERGE says of source rows, one at a time.
#[derive(Default)]
struct MergeWriter {
    /// The source row without its row id; the target's columns as of the version that is checked.
    row: Vec<Datum>,
    /// READ COMMITTED has moved on to the newest version.
    newest: bool,
    /// The row that matched does not, or is gone.
    unmatched: bool,
    /// What was chosen, and of which version: not chosen again after a wait that leaves it.
    chosen: Option<(VersionId, MergeDecision)>,
    /// What chooses it, and of which version.
    choosing: ResumableEvaluation,
    choosing_of: Option<VersionId>,
    /// The clause of a row that nothing matches, once it is chosen; none if no clause wants it.
    inserting: Option<Option<usize>>,
    choosing_insert: ResumableEvaluation,
    update: UpdateWriter,
    /// BEFORE DELETE triggers.
    seen: DeleteTriggerState,
    /// One for each clause of rows that nothing matches: what a writer remembers is of its own clause's expressions.
    inserts: Vec<InsertWriter>,
}

impl MergeWriter {
    /// Starts with a source row, row id and token included.
    fn start(&mut self, source: &[Datum]) -> Result<Option<Rid>> {
        let rid = row_number(source)?;
        self.row.clear();
        self.row.extend_from_slice(source);
        self.newest = false;
        self.unmatched = false;
        self.chosen = None;
        self.choosing_of = None;
        self.inserting = None;
        self.seen = DeleteTriggerState::default();
        self.update.forget_seen();
        Ok(rid)
    }

    /// Does what is to be done for the source row, which `rid` matches; after `Wait` it is called again.
    fn write<'a>(
        &mut self,
        merge: &'a Merge,
        table: &Arc<Table>,
        rid: Option<Rid>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        if self.row.len() < merge.table.columns.len() {
            return Err(SqlError::internal(
                "a source row lacks columns of its target",
            ));
        }
        if let (Some(rid), false) = (rid, self.unmatched) {
            if let Some(outcome) = self.matched(merge, table, rid, cx)? {
                return Ok(outcome);
            }
            self.unmatched = true;
        }
        self.not_matched(merge, table, cx)
    }

    /// WHEN MATCHED; `None` if the row turns out not to match any more.
    fn matched<'a>(
        &mut self,
        merge: &'a Merge,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<RowWriteOutcome>> {
        if merge.matched.is_empty() {
            return Ok(Some(RowWriteOutcome::Skipped));
        }
        loop {
            let txn = cx.txn()?;
            let guard = txn.pin();
            let current = match txn.read_or_newest(table, rid, self.newest, &guard) {
                Ok(Some(current)) => current,
                Ok(None) => {
                    cx.txn()?.pass_turn();
                    return Ok(None);
                }
                Err(absent) => return Ok(Some(RowWriteOutcome::Wait(absent.into()))),
            };
            let choice = match self.chosen {
                Some((version, choice)) if version == current.version => choice,
                _ => {
                    if self.choosing_of.replace(current.version) != Some(current.version) {
                        self.choosing.reset();
                    }
                    let mut choosing = std::mem::take(&mut self.choosing);
                    let chosen =
                        choosing.of(exprs_of(merge), cx, |cx| self.choose(merge, &current, cx));
                    self.choosing = choosing;
                    match chosen? {
                        Ok(choice) => choice,
                        Err(absent) => return Ok(Some(RowWriteOutcome::Wait(absent))),
                    }
                }
            };
            self.chosen = Some((current.version, choice));
            let clause = match choice {
                MergeDecision::Unmatched => {
                    cx.txn()?.pass_turn();
                    return Ok(None);
                }
                MergeDecision::Nothing => return cx.skip_row().map(Some),
                MergeDecision::Clause(at) => merge.matched.get(at),
            };
            let action = clause.map(|when| &when.action);
            let shown = match action {
                Some(MergeAction::Update(update)) => match before_update(update) {
                    Some(triggers) => {
                        self.update.show_source(&self.row, current.version);
                        self.update.show(update, triggers, table, &current, cx)?
                    }
                    None => TriggeredUpdate::Proceed,
                },
                Some(MergeAction::Delete(rules)) => {
                    match trigger::before(rules.as_ref(), TriggerEvent::Delete) {
                        Some(triggers) => {
                            let row = &mut self.row;
                            self.seen.show(triggers, table, &current, row, cx)?
                        }
                        None => TriggeredUpdate::Proceed,
                    }
                }
                _ => TriggeredUpdate::Proceed,
            };
            match shown {
                TriggeredUpdate::Proceed => {}
                TriggeredUpdate::Changed => {
                    self.newest = true;
                    continue;
                }
                TriggeredUpdate::Gone => {
                    cx.txn()?.pass_turn();
                    return Ok(None);
                }
                TriggeredUpdate::SelfModified => return Err(second_time()),
                TriggeredUpdate::Finished(outcome) => return Ok(Some(outcome)),
            }
            let stored = match action {
                Some(MergeAction::Update(update)) => self.update.store(update, table, &current, cx),
                Some(MergeAction::Delete(rules)) => remove(rules.as_ref(), table, &current, cx),
                _ => return cx.skip_row().map(Some),
            };
            let stored = stored.map_err(|error| match error.code() == OVERTAKEN {
                true => triggered_data_change("updated or deleted"),
                false => error,
            });
            match stored? {
                TupleModifyResult::Done => return Ok(Some(RowWriteOutcome::Written)),
                TupleModifyResult::Wait(obstacle) => {
                    return Ok(Some(RowWriteOutcome::Wait(obstacle)));
                }
                TupleModifyResult::Changed => self.newest = true,
                TupleModifyResult::Gone => return Ok(None),
                TupleModifyResult::SelfModified => return Err(second_time()),
                TupleModifyResult::Again => {}
            }
        }
    }

    /// Chooses the clause for a version of the row, and computes what an UPDATE makes of it.
    fn choose<'a>(
        &mut self,
        merge: &'a Merge,
        current: &Row<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<MergeDecision> {
        if self.newest {
            fill(&merge.table, current.bytes, &mut self.row)?;
            shows_version(&mut self.row, merge.table.columns.len(), current.version);
            if !crate::security_quals::passes(&merge.on, &self.row, cx)? {
                return Ok(MergeDecision::Unmatched);
            }
        }
        let Some(at) = first_of(&merge.matched, &self.row, cx)? else {
            return Ok(MergeDecision::Nothing);
        };
        if let Some(when) = merge.matched.get(at) {
            check_policies(&merge.table, &when.existing, &self.row, cx)?;
        }
        if let Some(MergeAction::Update(update)) = merge.matched.get(at).map(|when| &when.action)
            // Triggers see it first.
            && before_update(update).is_none()
        {
            self.update.make(update, &self.row, current.bytes, cx)?;
        }
        Ok(MergeDecision::Clause(at))
    }

    /// WHEN NOT MATCHED.
    fn not_matched<'a>(
        &mut self,
        merge: &'a Merge,
        table: &Arc<Table>,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let at = match self.inserting {
            Some(at) => at,
            None => {
                let conditions = merge.unmatched.iter().flat_map(|when| &when.condition);
                let row = &self.row;
                let chosen = self
                    .choosing_insert
                    .of(conditions, cx, |cx| first_of(&merge.unmatched, row, cx));
                match chosen? {
                    Ok(at) => *self.inserting.insert(at),
                    Err(absent) => return Ok(RowWriteOutcome::Wait(absent)),
                }
            }
        };
        let Some((at, when)) = at.and_then(|at| Some((at, merge.unmatched.get(at)?))) else {
            return Ok(RowWriteOutcome::Skipped);
        };
        let MergeAction::Insert(insert) = &when.action else {
            return Ok(RowWriteOutcome::Skipped);
        };
        if self.inserts.is_empty() {
            self.inserts
                .resize_with(merge.unmatched.len(), InsertWriter::default);
        }
        let Some(writer) = self.inserts.get_mut(at) else {
            return Err(SqlError::internal("a clause of MERGE without a writer"));
        };
        writer.write(insert, table, &self.row, cx)
    }
}

/// The BEFORE triggers of a clause's UPDATE, if there are any.
fn before_update(update: &Update) -> Option<&TableTriggers> {
    trigger::before(update.rules.as_ref(), TriggerEvent::Update)
}

/// The events of a MERGE as a whole: of what its clauses do, whether they do it or not.
fn events_of(merge: &Merge) -> Vec<(TriggerEvent, Option<&Arc<RuleSet>>)> {
    let mut events = Vec::new();
    let all = || merge.matched.iter().chain(&merge.unmatched);
    let first = |rules: fn(&MergeAction) -> Option<Option<&Arc<RuleSet>>>| {
        let found = all().filter_map(|when| rules(&when.action));
        found.reduce(|first, second| first.or(second))
    };
    let inserts = first(|action| match action {
        MergeAction::Insert(insert) => Some(insert.rules.as_ref()),
        _ => None,
    });
    let updates = first(|action| match action {
        MergeAction::Update(update) => Some(update.rules.as_ref()),
        _ => None,
    });
    let deletes = first(|action| match action {
        MergeAction::Delete(rules) => Some(rules.as_ref()),
        _ => None,
    });
    events.extend(inserts.map(|rules| (TriggerEvent::Insert, rules)));
    events.extend(updates.map(|rules| (TriggerEvent::Update, rules)));
    events.extend(deletes.map(|rules| (TriggerEvent::Delete, rules)));
    events
}

/// The first clause whose condition holds.
fn first_of<'a>(
    clauses: &'a [When],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Option<usize>> {
    for (at, when) in clauses.iter().enumerate() {
        let wanted = match &when.condition {
            Some(condition) => holds(condition, row, cx)?,
            None => true,
        };
        if wanted {
            return Ok(Some(at));
        }
    }
    Ok(None)
}

/// All that is evaluated of a row that matches.
fn exprs_of(merge: &Merge) -> impl Iterator<Item = &Expr> {
    let clauses = merge.matched.iter().flat_map(|when| {
        let (assigned, policies, checks) = match &when.action {
            MergeAction::Update(update) => (
                update.assignments.as_slice(),
                update.policies.as_slice(),
                update.checks.as_slice(),
            ),
            _ => (&[][..], &[][..], &[][..]),
        };
        let asked = policy_exprs(&when.existing).chain(policy_exprs(policies));
        let asked = asked.chain(policy_exprs(checks));
        when.condition
            .iter()
            .chain(assigned.iter().map(|(_, value)| value))
            .chain(asked)
    });
    merge.on.exprs().chain(clauses)
}

fn second_time() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "MERGE command cannot affect row a second time",
    )
    .hint("Ensure that not more than one source row matches any one target row.")
}

/// State of a MERGE node.
pub(crate) struct MergeState {
    pub(crate) source: PlanState,
    batch: Batch,
    at: usize,
    /// The source row at hand, across waits, by the row that it matches.
    open: Option<Option<Rid>>,
    table: Option<Arc<Table>>,
    writer: MergeWriter,
    statement: StatementTriggers,
}

impl MergeState {
    pub(crate) fn new(merge: &Merge) -> MergeState {
        MergeState {
            source: PlanState::new(&merge.source),
            batch: Batch::of(BATCH_ROWS),
            at: 0,
            open: None,
            table: None,
            writer: MergeWriter::default(),
            statement: StatementTriggers::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        merge: &'a Merge,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        let source: &'a Plan = &merge.source;
        if let Some(obstacle) = self.statement.begin(&events_of(merge), cx)? {
            return Ok(Step::Wait(obstacle));
        }
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(merge.table.storage)?),
        };
        loop {
            if cx.take_pending_yield() {
                return Ok(Step::Yield);
            }
            let rid = match self.open {
                Some(rid) => rid,
                None => {
                    if self.at == self.batch.len() {
                        self.at = 0;
                        self.batch.start(0);
                        if !pull!(self.source, source, cx, &mut self.batch) {
                            self.statement.end(&events_of(merge), cx)?;
                            return Ok(Step::Done);
                        }
                    }
                    self.at += 1;
                    self.writer.start(self.batch.row(self.at - 1))?
                }
            };
            self.open = Some(rid);
            match self.writer.write(merge, table, rid, cx)? {
                RowWriteOutcome::Wait(obstacle) => return Ok(Step::Wait(obstacle)),
                RowWriteOutcome::Written | RowWriteOutcome::Skipped => self.open = None,
            }
        }
    }
}
