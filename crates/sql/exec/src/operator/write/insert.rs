//! INSERT, ON CONFLICT, and the inserter that COPY shares with it.

mod on_conflict;

use super::{Returning, RowWriteOutcome, check_constraints, exprs_of};
use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch};
use crate::context::{ExecutionState, ExecutorContext, ResumableEvaluation, StatementContext};
use crate::deform::encode_full;
use crate::eval::eval_in;
use crate::operator::{PlanState, pull};
use crate::security_quals::check_policies;
use crate::trigger::{self, StatementTriggers, TriggerProgress, TriggeredRow};
use crate::wait::{Evaluated, ExecError};
use crate::write_errors::{check_not_null, unique_violation, without_key, write_failed};
use crate::{Caller, PendingCall, Prepared, Progress, constraints};
use logstead_engine::{RowBuilder, RowRef, Table, VersionId, WriteError};
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::constraints::{RuleSet, TableTriggers};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Check, Insert, Node};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use on_conflict::{ConflictOutcome, refuse_deferrable};
use std::collections::VecDeque;
use std::sync::Arc;

/// How far a row that BEFORE triggers see has come: nothing of it happens twice.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    /// Nothing is known of it.
    #[default]
    New,
    /// It has its values.
    Valued,
    /// All triggers have seen it.
    Fired,
}

/// Writes the rows of one INSERT, one at a time.
#[derive(Default)]
pub(crate) struct InsertWriter {
    builder: RowBuilder,
    /// The proposed row; computed already while `open`.
    row: Vec<Datum>,
    open: bool,
    proposing: ResumableEvaluation,
    /// How far a row that BEFORE triggers see has come.
    stage: Stage,
    firing: TriggerProgress,
    /// What checks the row that they have made.
    judging: ResumableEvaluation,
    /// The row that DO UPDATE made.
    updated: Vec<Datum>,
    is_update: bool,
    /// The row that was written last.
    written: Rid,
    /// The version that it was made of: not made again after a wait that leaves it.
    computed: Option<(Rid, VersionId)>,
    /// What makes it, and of which version.
    updating: ResumableEvaluation,
    computing: Option<(Rid, VersionId)>,
    /// Existing row, then proposed row.
    joined: Vec<Datum>,
    /// Triggers of the row that DO UPDATE changes: the version that is locked, and the one that they have seen.
    locked: Option<(Rid, VersionId)>,
    /// That row, while its triggers are not answered yet.
    existing: Option<Rid>,
    fired: Option<(Rid, VersionId)>,
    judged: Option<(Rid, VersionId)>,
}

impl InsertWriter {
    /// Inserts the row that the plan makes of `source`; after `Wait` it is called again with the same row.
    pub(crate) fn write<'a>(
        &mut self,
        insert: &'a Insert,
        table: &Arc<Table>,
        source: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let relation = &insert.table;
        if relation.view().is_some() {
            return self.instead(insert, source, cx);
        }
        if !self.open {
            if let Some(conflict) = &insert.conflict {
                refuse_deferrable(relation, &conflict.indexes)?;
            }
            let triggers = trigger::before(insert.rules.as_ref(), TriggerEvent::Insert);
            if let Some(triggers) = triggers {
                if let Some(outcome) = self.fire(insert, triggers, source, cx)? {
                    return Ok(outcome);
                }
            } else {
                let row = &mut self.row;
                let exprs = insert.values.iter().chain(judged_exprs(insert));
                let proposed = self.proposing.of(exprs, cx, |cx| {
                    row.clear();
                    for expr in &insert.values {
                        row.push(eval_in(expr, source, cx)?);
                    }
                    check_policies_of(insert, &insert.policies, row, cx)
                });
                if let Err(absent) = proposed? {
                    return Ok(RowWriteOutcome::Wait(absent));
                }
            }
            encode_full(relation, &self.row, &mut self.builder)?;
            self.computed = None;
            self.computing = None;
            self.open = true;
        }
        self.is_update = false;
        let update = insert.conflict.as_ref().and_then(|c| c.update.as_ref());
        if let (Some(rid), Some(update)) = (self.existing.take(), update)
            && let Some(outcome) = self.update_existing(insert, update, table, rid, cx)?
        {
            return Ok(outcome);
        }
        loop {
            let outcome = match cx.writing_txn()?.insert(table, self.builder.finish()) {
                Ok(rid) => {
                    cx.affected += 1;
                    self.written = rid;
                    if let Some(rules) = &insert.rules {
                        let new = RowRef::new(self.builder.finish());
                        cx.queue()?.inserted(rules, 0, rid, new)?;
                    }
                    RowWriteOutcome::Written
                }
                Err(WriteError::Blocked(blocker)) => {
                    return Ok(RowWriteOutcome::Wait(blocker.into()));
                }
                Err(WriteError::Absent(absent)) => return Ok(RowWriteOutcome::Wait(absent.into())),
                // An index that was being built stood in the way, and has been given up since.
                Err(WriteError::Unique { index, .. } | WriteError::NoKey { index })
                    if table.index(index).is_none() =>
                {
                    continue;
                }
                Err(WriteError::Unique { index, rid }) => {
                    match self.conflict(insert, index, rid, cx)? {
                        ConflictOutcome::Violation => {
                            let row = self.builder.finish();
                            return Err(unique_violation(relation, table, index, row, cx.session));
                        }
                        ConflictOutcome::Wait(obstacle) => {
                            return Ok(RowWriteOutcome::Wait(obstacle));
                        }
                        ConflictOutcome::Nothing => RowWriteOutcome::Skipped,
                        ConflictOutcome::Update(rid, update) => {
                            match self.update_existing(insert, update, table, rid, cx)? {
                                Some(outcome) => return Ok(outcome),
                                // The row in the way is gone: insert after all.
                                None => continue,
                            }
                        }
                    }
                }
                Err(WriteError::NoKey { index }) => {
                    return Err(without_key(table, index, self.builder.finish()));
                }
                Err(error) => return Err(write_failed(&error)),
            };
            self.open = false;
            self.firing.reset();
            return Ok(outcome);
        }
    }

    /// The row that is proposed, as BEFORE triggers make it of the values: then generated columns, and what policies
    /// ask. What is to be said of it, if it does not go on.
    fn fire<'a>(
        &mut self,
        insert: &'a Insert,
        triggers: &TableTriggers,
        source: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<RowWriteOutcome>> {
        let row = &mut self.row;
        if self.stage == Stage::New {
            let valued = self.proposing.of(&insert.values, cx, |cx| {
                row.clear();
                for expr in &insert.values {
                    row.push(eval_in(expr, source, cx)?);
                }
                Ok(())
            });
            if let Err(absent) = valued? {
                return Ok(Some(RowWriteOutcome::Wait(absent)));
            }
            self.stage = Stage::Valued;
        }
        if self.stage == Stage::Valued {
            let event = TriggerEvent::Insert;
            match self
                .firing
                .row(triggers, event, None, Some(&mut *row), cx)?
            {
                TriggeredRow::Wait(obstacle) => return Ok(Some(RowWriteOutcome::Wait(obstacle))),
                TriggeredRow::Skipped => {
                    self.stage = Stage::New;
                    return Ok(Some(RowWriteOutcome::Skipped));
                }
                TriggeredRow::Proceed => self.stage = Stage::Fired,
            }
        }
        let judged = self.judging.of(judged_exprs(insert), cx, |cx| {
            check_policies_of(insert, &insert.policies, row, cx)
        });
        if let Err(absent) = judged? {
            return Ok(Some(RowWriteOutcome::Wait(absent)));
        }
        self.stage = Stage::New;
        Ok(None)
    }

    /// Shows the row that is proposed to a view's triggers, which do what is to be done.
    fn instead<'a>(
        &mut self,
        insert: &'a Insert,
        source: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<RowWriteOutcome> {
        let row = &mut self.row;
        if self.stage == Stage::New {
            let valued = self.proposing.of(&insert.values, cx, |cx| {
                row.clear();
                for expr in &insert.values {
                    row.push(eval_in(expr, source, cx)?);
                }
                Ok(())
            });
            if let Err(absent) = valued? {
                return Ok(RowWriteOutcome::Wait(absent));
            }
            self.stage = Stage::Valued;
        }
        let (rules, event) = (insert.rules.as_ref(), TriggerEvent::Insert);
        let fired = self.firing.instead(rules, event, None, Some(row), cx)?;
        if let TriggeredRow::Wait(obstacle) = fired {
            return Ok(RowWriteOutcome::Wait(obstacle));
        }
        self.stage = Stage::New;
        self.is_update = false;
        if let TriggeredRow::Skipped = fired {
            return Ok(RowWriteOutcome::Skipped);
        }
        cx.affected += 1;
        Ok(RowWriteOutcome::Written)
    }

    /// Forgets a row given up after an error.
    pub(crate) fn start(&mut self) {
        self.open = false;
        self.stage = Stage::New;
        self.firing.reset();
        self.judging.reset();
        (self.locked, self.fired, self.judged) = (None, None, None);
        self.existing = None;
        self.proposing.reset();
        self.updating.reset();
    }

    /// Has RETURNING see what is hidden of the row that has been written.
    fn show_hidden(&mut self, cx: &mut ExecutorContext<'_>) -> Result<()> {
        let mut version = cx.txn()?.own_version();
        if self.is_update {
            version = version.written_over();
        }
        let row = match self.is_update {
            true => &mut self.updated,
            false => &mut self.row,
        };
        row.push(Datum::Int8(self.written.get().cast_signed()));
        row.push(Datum::Int8(version.token()));
        Ok(())
    }

    /// What RETURNING sees after `Written`.
    pub(crate) fn returned(&self) -> &[Datum] {
        if self.is_update {
            &self.updated
        } else {
            &self.row
        }
    }
}

/// Computes generated columns.
pub(super) fn generate<'a>(
    generated: &'a [(usize, Expr)],
    row: &mut [Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    for (position, expr) in generated {
        let value = eval_in(expr, row, cx)?;
        place(row, *position, value)?;
    }
    Ok(())
}

fn place(row: &mut [Datum], position: usize, value: Datum) -> Result<()> {
    match row.get_mut(position) {
        Some(column) => {
            *column = value;
            Ok(())
        }
        None => Err(SqlError::internal(
            "a value for a column that the table lacks",
        )),
    }
}

/// All that is evaluated of a row that has its values, be it one to be inserted or one that DO UPDATE has made.
fn judged_exprs(insert: &Insert) -> impl Iterator<Item = &Expr> {
    let generated = insert.generated.iter().map(|(_, expr)| expr);
    let update = insert.conflict.as_ref().and_then(|c| c.update.as_ref());
    let policies = update.map_or(&[][..], |update| &update.policies);
    let policies = exprs_of(&insert.policies).chain(exprs_of(policies));
    generated.chain(policies).chain(exprs_of(&insert.checks))
}

/// Makes the generated columns of such a row, and asks whether it may be.
fn check_policies_of<'a>(
    insert: &'a Insert,
    policies: &'a [Check],
    row: &mut [Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    generate(&insert.generated, row, cx)?;
    check_policies(&insert.table, policies, row, cx)?;
    check_not_null(&insert.table, row, &insert.given, |_| true, cx.session)?;
    check_constraints(&insert.table, &insert.checks, row, &insert.given, cx)
}

/// State of an INSERT node.
pub(crate) struct InsertState {
    pub(crate) source: PlanState,
    batch: Batch,
    at: usize,
    table: Option<Arc<Table>>,
    writer: InsertWriter,
    returning: Returning,
    statement: StatementTriggers,
}

/// The events of an INSERT as a whole: that of DO UPDATE too, whether it updates anything or not.
fn events_of(insert: &Insert) -> Vec<(TriggerEvent, Option<&Arc<RuleSet>>)> {
    let rules = insert.rules.as_ref();
    let updates = insert.conflict.as_ref().is_some_and(|c| c.update.is_some());
    let mut events = vec![(TriggerEvent::Insert, rules)];
    if updates {
        events.push((TriggerEvent::Update, rules));
    }
    events
}

impl InsertState {
    pub(crate) fn new(insert: &Insert) -> InsertState {
        InsertState {
            source: PlanState::new(&insert.source),
            batch: Batch::of(BATCH_ROWS),
            at: 0,
            table: None,
            writer: InsertWriter::default(),
            returning: Returning::default(),
            statement: StatementTriggers::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        insert: &'a Insert,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(insert.returning.as_ref().map_or(0, Vec::len));
        if insert.rules.is_some()
            && let Some(obstacle) = self.statement.begin(&events_of(insert), cx)?
        {
            return Ok(Step::Wait(obstacle));
        }
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(insert.table.storage)?),
        };
        loop {
            if cx.yield_pending && !out.is_empty() {
                return Ok(Step::Batch);
            }
            if cx.take_pending_yield() {
                return Ok(Step::Yield);
            }
            if self.at == self.batch.len() {
                if !out.is_empty() {
                    return Ok(Step::Batch);
                }
                self.at = 0;
                self.batch.start(0);
                if !pull!(self.source, &insert.source, cx, &mut self.batch) {
                    if insert.rules.is_some() {
                        self.statement.end(&events_of(insert), cx)?;
                    }
                    return Ok(Step::Done);
                }
            }
            let outcome = match self.returning.is_pending() {
                true => RowWriteOutcome::Written,
                false => self
                    .writer
                    .write(insert, table, self.batch.row(self.at), cx)?,
            };
            if insert.hidden
                && !self.returning.is_pending()
                && matches!(outcome, RowWriteOutcome::Written)
            {
                self.writer.show_hidden(cx)?;
            }
            let row = self.writer.returned();
            match self
                .returning
                .give(outcome, &insert.returning, row, cx, out)?
            {
                Some(_) if !out.is_empty() => return Ok(Step::Batch),
                Some(obstacle) => return Ok(Step::Wait(obstacle)),
                None => self.at += 1,
            }
        }
    }
}

/// Inserts rows that come from outside a plan, with everything INSERT does: COPY FROM.
pub struct Inserter {
    prepared: Arc<Prepared>,
    table: Option<Arc<Table>>,
    writer: InsertWriter,
    shared: ExecutionState,
    statement: StatementTriggers,
    /// It stopped in the middle of a row, for a call.
    stopped: bool,
    /// A call of a trigger that is fired when all is written.
    pending_call: Option<Box<PendingCall>>,
}

impl Inserter {
    /// An inserter for a plan whose top is an INSERT; the plan's source is not run.
    pub fn new(prepared: Arc<Prepared>) -> Result<Inserter> {
        if !matches!(prepared.plan().node, Node::Insert(_)) {
            return Err(SqlError::internal("an inserter needs an INSERT"));
        }
        Ok(Inserter {
            prepared,
            table: None,
            writer: InsertWriter::default(),
            shared: ExecutionState::default(),
            statement: StatementTriggers::default(),
            stopped: false,
            pending_call: None,
        })
    }

    /// Fires what is fired before the first row. Stops with [`Progress::Call`]: answered, it is called again.
    pub async fn begin(&mut self, cx: &mut StatementContext<'_>) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        let Node::Insert(insert) = &prepared.plan().node else {
            return Err(SqlError::internal("an inserter needs an INSERT"));
        };
        let mut cx = ExecutorContext::of(cx, &mut self.shared, false);
        while let Some(obstacle) = self.statement.begin(&events_of(insert), &mut cx)? {
            match cx.wait(obstacle).await {
                Ok(()) => {}
                Err(ExecError::Call(call)) => {
                    self.pending_call = Some(call);
                    return Ok(Progress::Call);
                }
                Err(ExecError::Sql(error)) => return Err(error),
            }
        }
        Ok(Progress::Done { rows: 0 })
    }

    /// Inserts the row that the plan's `values` make of `row`; none if a trigger or ON CONFLICT DO NOTHING left it out.
    /// Stops with [`Progress::Call`]: answered, it is called again with the same row.
    pub async fn push(&mut self, cx: &mut StatementContext<'_>, row: &[Datum]) -> Result<Progress> {
        let cancel = cx.cancel;
        let prepared = Arc::clone(&self.prepared);
        let Node::Insert(insert) = &prepared.plan().node else {
            return Err(SqlError::internal("an inserter needs an INSERT"));
        };
        if !std::mem::take(&mut self.stopped) {
            self.writer.start();
        }
        let mut cx = ExecutorContext::of(cx, &mut self.shared, false);
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(insert.table.storage)?),
        };
        loop {
            cancel.check()?;
            match self.writer.write(insert, table, row, &mut cx)? {
                RowWriteOutcome::Written => return Ok(Progress::Done { rows: 1 }),
                RowWriteOutcome::Skipped => return Ok(Progress::Done { rows: 0 }),
                RowWriteOutcome::Wait(obstacle) => match cx.wait(obstacle).await {
                    Ok(()) => {}
                    Err(ExecError::Call(call)) => {
                        (self.pending_call, self.stopped) = (Some(call), true);
                        return Ok(Progress::Call);
                    }
                    Err(ExecError::Sql(error)) => return Err(error),
                },
            }
        }
    }

    /// All rows are in: checks what they left to be checked, and fires what is fired then. Stops as [`Inserter::begin`]
    /// does.
    pub async fn finish(&mut self, cx: &mut StatementContext<'_>) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        if let Node::Insert(insert) = &prepared.plan().node {
            let mut cx = ExecutorContext::of(cx, &mut self.shared, false);
            self.statement.end(&events_of(insert), &mut cx)?;
        }
        if cx.events.has_due()
            && let Some(call) = constraints::check_due_constraints(cx).await?
        {
            self.pending_call = Some(call);
            return Ok(Progress::Call);
        }
        Ok(Progress::Done { rows: 0 })
    }
}

impl Caller for Inserter {
    fn take_call(&mut self) -> Option<Box<PendingCall>> {
        self.pending_call.take()
    }

    fn answer(&mut self, call: &PendingCall, rows: VecDeque<Vec<Datum>>) {
        if call.number > 0 {
            self.shared.call_results.insert(call.number, rows);
        }
    }
}
