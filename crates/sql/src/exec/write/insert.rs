//! INSERT, ON CONFLICT, and the inserter that COPY shares with it.

use super::{
    Locked, Outcome, Returning, check_constraints, check_not_null, check_policies, encode_changed,
    encode_full, exprs_of, lock_for_triggers, serialization_failure, unique_violation, without_key,
    write_failed,
};
use crate::catalog::trigger::TriggerEvent;
use crate::catalog::{IndexDef, Relation};
use crate::error::{Result, SqlError};
use crate::exec::batch::{BATCH_ROWS, Batch};
use crate::exec::context::{Cx, Evaluation, ExecContext, Shared};
use crate::exec::eval::eval_in;
use crate::exec::operator::{Running, Step, pull};
use crate::exec::trigger::{self, Fired, Firing, Statement};
use crate::exec::wait::Obstacle;
use crate::exec::{Call, Caller, Prepared, Progress, referential, stored, wait};
use crate::expr::Expr;
use crate::plan::{Check, ConflictUpdate, Insert, Node};
use crate::ri::{RuleSet, TableTriggers};
use crate::value::Datum;
use logstead_engine::{Isolation, KeyKind, Row, RowBuilder, RowRef, Table, VersionId, WriteError};
use logstead_types::{IndexId, Rid, SqlState};
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
    proposing: Evaluation,
    /// How far a row that BEFORE triggers see has come.
    stage: Stage,
    firing: Firing,
    /// What judges the row that they have made.
    judging: Evaluation,
    /// The row that DO UPDATE made.
    updated: Vec<Datum>,
    is_update: bool,
    /// The row that was written last.
    written: Rid,
    /// The version that it was made of: not made again after a wait that leaves it.
    computed: Option<(Rid, VersionId)>,
    /// What makes it, and of which version.
    updating: Evaluation,
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
        cx: &mut Cx<'a>,
    ) -> Result<Outcome> {
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
                    judge(insert, &insert.policies, row, cx)
                });
                if let Err(absent) = proposed? {
                    return Ok(Outcome::Wait(absent));
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
            let outcome = match cx.txn()?.insert(table, self.builder.finish()) {
                Ok(rid) => {
                    cx.affected += 1;
                    self.written = rid;
                    if let Some(rules) = &insert.rules {
                        let new = RowRef::new(self.builder.finish());
                        rules.inserted(0, rid, new, &mut cx.queue()?)?;
                    }
                    Outcome::Written
                }
                Err(WriteError::Blocked(blocker)) => return Ok(Outcome::Wait(blocker.into())),
                Err(WriteError::Absent(absent)) => return Ok(Outcome::Wait(absent.into())),
                // An index that was being built stood in the way, and has been given up since.
                Err(WriteError::Unique { index, .. } | WriteError::NoKey { index })
                    if table.index(index).is_none() =>
                {
                    continue;
                }
                Err(WriteError::Unique { index, rid }) => {
                    match self.conflict(insert, index, rid, cx)? {
                        Conflict::Violation => {
                            let row = self.builder.finish();
                            return Err(unique_violation(relation, table, index, row, cx.session));
                        }
                        Conflict::Wait(obstacle) => return Ok(Outcome::Wait(obstacle)),
                        Conflict::Nothing => Outcome::Skipped,
                        Conflict::Update(rid, update) => {
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

    /// The row that is proposed, as BEFORE triggers make it of the values: then generated columns, and what policies ask. What is to be said of it, if it
    /// does not go on.
    fn fire<'a>(
        &mut self,
        insert: &'a Insert,
        triggers: &TableTriggers,
        source: &[Datum],
        cx: &mut Cx<'a>,
    ) -> Result<Option<Outcome>> {
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
                return Ok(Some(Outcome::Wait(absent)));
            }
            self.stage = Stage::Valued;
        }
        if self.stage == Stage::Valued {
            let event = TriggerEvent::Insert;
            match self
                .firing
                .row(triggers, event, None, Some(&mut *row), cx)?
            {
                Fired::Wait(obstacle) => return Ok(Some(Outcome::Wait(obstacle))),
                Fired::Skipped => {
                    self.stage = Stage::New;
                    return Ok(Some(Outcome::Skipped));
                }
                Fired::Goes => self.stage = Stage::Fired,
            }
        }
        let judged = self.judging.of(judged_exprs(insert), cx, |cx| {
            judge(insert, &insert.policies, row, cx)
        });
        if let Err(absent) = judged? {
            return Ok(Some(Outcome::Wait(absent)));
        }
        self.stage = Stage::New;
        Ok(None)
    }

    /// Shows the row that is proposed to a view's triggers, which do what is to be done.
    fn instead<'a>(
        &mut self,
        insert: &'a Insert,
        source: &[Datum],
        cx: &mut Cx<'a>,
    ) -> Result<Outcome> {
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
                return Ok(Outcome::Wait(absent));
            }
            self.stage = Stage::Valued;
        }
        let (rules, event) = (insert.rules.as_ref(), TriggerEvent::Insert);
        let fired = self.firing.instead(rules, event, None, Some(row), cx)?;
        if let Fired::Wait(obstacle) = fired {
            return Ok(Outcome::Wait(obstacle));
        }
        self.stage = Stage::New;
        self.is_update = false;
        if let Fired::Skipped = fired {
            return Ok(Outcome::Skipped);
        }
        cx.affected += 1;
        Ok(Outcome::Written)
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
    fn show_hidden(&mut self, cx: &mut Cx<'_>) -> Result<()> {
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

    /// Whether ON CONFLICT takes care of a violation: the row in the way and what to do with it.
    fn conflict<'a>(
        &mut self,
        insert: &'a Insert,
        index: IndexId,
        rid: Rid,
        cx: &mut Cx<'a>,
    ) -> Result<Conflict<'a>> {
        let Some(conflict) = &insert.conflict else {
            return Ok(Conflict::Violation);
        };
        let arbiters = &conflict.indexes;
        let mut found = (arbiters.is_empty()
            || arbiters.iter().any(|arbiter| arbiter.storage == index))
        .then_some(rid);
        // The engine names one violated index; PostgreSQL looks at the arbiters first.
        if found.is_none() {
            for arbiter in arbiters {
                let mut bytes = Vec::new();
                let storage = cx.index(insert.table.storage, arbiter.storage)?;
                let row = self.builder.finish();
                if storage.key(row, &mut bytes) != KeyKind::Unique {
                    continue;
                }
                let txn = cx.txn()?;
                let guard = txn.pin();
                match txn.get(&storage, &bytes, &guard) {
                    Ok(row) => found = found.or(row.map(|row| row.rid)),
                    Err(absent) => return Ok(Conflict::Wait(absent.into())),
                }
            }
        }
        let Some(rid) = found else {
            return Ok(Conflict::Violation);
        };
        let Some(update) = &conflict.update else {
            return self.do_nothing(insert, rid, cx);
        };
        Ok(Conflict::Update(rid, update))
    }

    /// DO NOTHING about row `rid`, if that may be.
    fn do_nothing<'a>(
        &self,
        insert: &'a Insert,
        rid: Rid,
        cx: &mut Cx<'a>,
    ) -> Result<Conflict<'a>> {
        // It must not rest on a row that a REPEATABLE READ snapshot cannot see; DO UPDATE finds out by itself.
        if cx.txn()?.isolation() == Isolation::ReadCommitted {
            return Ok(Conflict::Nothing);
        }
        let table = cx.table(insert.table.storage)?;
        let txn = cx.txn()?;
        let guard = txn.pin();
        let newest = match txn.read(&table, rid, &guard) {
            Ok(Some(_)) => return Ok(Conflict::Nothing),
            Ok(None) => txn.read_newest(&table, rid, &guard),
            Err(absent) => Err(absent),
        };
        match newest {
            Ok(Some(row)) if !row.version.is_own() => Err(serialization_failure()),
            Ok(_) => Ok(Conflict::Nothing),
            Err(absent) => Ok(Conflict::Wait(absent.into())),
        }
    }

    /// Computes and checks what DO UPDATE makes of a row; false if its condition does not hold.
    fn compute<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        existing: &Row<'_>,
        cx: &mut Cx<'a>,
    ) -> Result<bool> {
        let relation = &insert.table;
        stored::decode_all(relation, existing.bytes, &mut self.joined)?;
        self.joined.extend_from_slice(&self.row);
        if update.hidden {
            // It is this statement's by now.
            let version = existing.version.written_over();
            let number = existing.rid.get().cast_signed();
            self.joined.push(Datum::Int8(number));
            self.joined.push(Datum::Int8(version.token()));
        }
        if !update.wanted.wants(&self.joined, cx)? {
            return Ok(false);
        }
        self.updated.clear();
        self.updated
            .extend_from_slice(&self.joined[..relation.columns.len()]);
        let given = update.assignments.len().saturating_sub(update.generated);
        let (given, generated) = update.assignments.split_at(given);
        for (position, expr) in given {
            let value = eval_in(expr, &self.joined, cx)?;
            place(&mut self.updated, *position, value)?;
        }
        if trigger::before(insert.rules.as_ref(), TriggerEvent::Update).is_some() {
            // They see it first.
            trigger::without_generated(relation, &mut self.updated);
            (self.fired, self.judged) = (None, None);
            self.judging.reset();
            return Ok(true);
        }
        for (position, expr) in generated {
            let value = eval_in(expr, &self.updated, cx)?;
            place(&mut self.updated, *position, value)?;
        }
        check_policies(relation, &update.policies, &self.updated, cx)?;
        let assigned = |position: usize| update.assignments.iter().any(|(at, _)| *at == position);
        check_not_null(relation, &self.updated, &insert.given, assigned, cx.session)?;
        check_constraints(relation, &insert.checks, &self.updated, &insert.given, cx)?;
        Ok(true)
    }

    /// DO UPDATE of row `rid`; `None` when it is gone, and the proposed row is to be inserted after all.
    fn update_existing<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut Cx<'a>,
    ) -> Result<Option<Outcome>> {
        let outcome = self.update(insert, update, table, rid, cx)?;
        match &outcome {
            Some(Outcome::Wait(_)) | None => {
                // The proposed row is tried again from the start. DO UPDATE used the builder.
                encode_full(&insert.table, &self.row, &mut self.builder)?;
                // Not if triggers are seeing the row in the way: what they have done to it would let the proposed one in.
                let locked = self.locked.is_some_and(|(locked, _)| locked == rid);
                self.existing = (locked && outcome.is_some()).then_some(rid);
            }
            Some(_) => {
                self.open = false;
                self.firing.reset();
            }
        }
        Ok(outcome)
    }

    /// An attempt at it. The builder is used.
    fn update<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut Cx<'a>,
    ) -> Result<Option<Outcome>> {
        let relation = &insert.table;
        loop {
            let guard = cx.txn()?.pin();
            let existing = match cx.txn()?.read_newest_outside(table, rid, &guard) {
                Ok(Some(existing)) => existing,
                Ok(None) => {
                    let newest = cx.txn()?.read_newest(table, rid, &guard);
                    match newest {
                        // What the statement has called has inserted it.
                        Ok(Some(newest)) if newest.version.is_own() => return Err(second_time()),
                        Ok(_) => {}
                        Err(absent) => return Ok(Some(Outcome::Wait(absent.into()))),
                    }
                    cx.txn()?.pass_turn();
                    return Ok(None);
                }
                Err(absent) => return Ok(Some(Outcome::Wait(absent.into()))),
            };
            let version = (rid, existing.version);
            let triggers = trigger::before(insert.rules.as_ref(), TriggerEvent::Update);
            // Nobody else changes what triggers have seen.
            if triggers.is_some() && self.locked != Some(version) {
                match lock_for_triggers(table, rid, existing.version, cx)? {
                    Locked::Done => self.locked = Some(version),
                    Locked::Wait(obstacle) => return Ok(Some(Outcome::Wait(obstacle))),
                    Locked::Changed => continue,
                    Locked::Gone => return Ok(None),
                    Locked::Twice => return Err(second_time()),
                }
            }
            if self.computed != Some(version) {
                if self.computing.replace(version) != Some(version) {
                    self.updating.reset();
                }
                let mut updating = std::mem::take(&mut self.updating);
                let exprs = update.assignments.iter().map(|(_, expr)| expr);
                let exprs = exprs.chain(update.wanted.exprs());
                let policies = exprs_of(&update.policies).chain(exprs_of(&insert.checks));
                let wanted = updating.of(exprs.chain(policies), cx, |cx| {
                    self.compute(insert, update, &existing, cx)
                });
                self.updating = updating;
                match wanted? {
                    Ok(true) => self.computed = Some(version),
                    Ok(false) => return cx.skip_row().map(Some),
                    Err(absent) => return Ok(Some(Outcome::Wait(absent))),
                }
            }
            if let Some(triggers) = triggers
                && self.fired != Some(version)
            {
                // What was assigned stands in `updated`; generated columns and what is asked of the row come behind the triggers.
                let mut old = Vec::new();
                stored::decode_all(relation, existing.bytes, &mut old)?;
                let new = Some(&mut self.updated);
                let event = TriggerEvent::Update;
                match self.firing.row(triggers, event, Some(&old), new, cx)? {
                    Fired::Wait(obstacle) => return Ok(Some(Outcome::Wait(obstacle))),
                    Fired::Skipped => return cx.skip_row().map(Some),
                    Fired::Goes => {}
                }
                self.fired = Some(version);
            }
            if triggers.is_some() && self.judged != Some(version) {
                let row = &mut self.updated;
                let judged = self.judging.of(judged_exprs(insert), cx, |cx| {
                    judge(insert, &update.policies, row, cx)
                });
                if let Err(absent) = judged? {
                    return Ok(Some(Outcome::Wait(absent)));
                }
                self.judged = Some(version);
            }
            let whole = triggers.is_some();
            let assigned =
                |position: usize| whole || update.assignments.iter().any(|(at, _)| *at == position);
            let updated = &self.updated;
            let datum = |position: usize| {
                if assigned(position) {
                    updated.get(position)
                } else {
                    None
                }
            };
            encode_changed(relation, existing.bytes, datum, &mut self.builder);
            match cx
                .txn()?
                .update(table, rid, existing.version, self.builder.finish())
            {
                Ok(()) => {
                    cx.affected += 1;
                    if let Some(rules) = &insert.rules {
                        let new = RowRef::new(self.builder.finish());
                        rules.updated(0, rid, existing.bytes, new, false, &mut cx.queue()?)?;
                    }
                    self.is_update = true;
                    self.written = rid;
                    return Ok(Some(Outcome::Written));
                }
                Err(WriteError::Blocked(blocker)) => {
                    return Ok(Some(Outcome::Wait(blocker.into())));
                }
                Err(WriteError::Absent(absent)) => {
                    return Ok(Some(Outcome::Wait(absent.into())));
                }
                Err(WriteError::Changed) => {}
                Err(WriteError::Gone) => return Ok(None),
                Err(WriteError::SelfModified) => return Err(second_time()),
                Err(WriteError::Unique { index, .. } | WriteError::NoKey { index })
                    if table.index(index).is_none() => {}
                Err(WriteError::Unique { index, .. }) => {
                    let row = self.builder.finish();
                    return Err(unique_violation(relation, table, index, row, cx.session));
                }
                Err(WriteError::NoKey { index }) => {
                    return Err(without_key(table, index, self.builder.finish()));
                }
                Err(error) => return Err(write_failed(&error)),
            }
        }
    }
}

/// Computes generated columns.
pub(super) fn generate<'a>(
    generated: &'a [(usize, Expr)],
    row: &mut [Datum],
    cx: &mut Cx<'a>,
) -> Result<()> {
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
fn judge<'a>(
    insert: &'a Insert,
    policies: &'a [Check],
    row: &mut [Datum],
    cx: &mut Cx<'a>,
) -> Result<()> {
    generate(&insert.generated, row, cx)?;
    check_policies(&insert.table, policies, row, cx)?;
    check_not_null(&insert.table, row, &insert.given, |_| true, cx.session)?;
    check_constraints(&insert.table, &insert.checks, row, &insert.given, cx)
}

/// What ON CONFLICT says of a violation.
enum Conflict<'a> {
    /// Nothing: it is an error.
    Violation,
    /// The row is left out.
    Nothing,
    /// The row in the way is updated.
    Update(Rid, &'a ConflictUpdate),
    /// To be asked again after this.
    Wait(Obstacle),
}

/// 55000 for an arbiter whose key is not judged when a row is written.
fn refuse_deferrable(relation: &Relation, arbiters: &[Arc<IndexDef>]) -> Result<()> {
    let all = arbiters.is_empty();
    let found = relation
        .indexes
        .iter()
        .find(|i| i.deferrable && i.unique && (all || arbiters.iter().any(|a| a.oid == i.oid)));
    match found {
        None => Ok(()),
        Some(index) => Err(SqlError::new(
            SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
            "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters",
        )
        .table(&relation.schema_name, &relation.name)
        .constraint(&index.name)),
    }
}

fn second_time() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "ON CONFLICT DO UPDATE command cannot affect row a second time",
    )
    .hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
}

/// State of an INSERT node.
pub(crate) struct InsertState {
    pub(crate) source: Running,
    batch: Batch,
    at: usize,
    table: Option<Arc<Table>>,
    writer: InsertWriter,
    returning: Returning,
    statement: Statement,
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
            source: Running::new(&insert.source),
            batch: Batch::of(BATCH_ROWS),
            at: 0,
            table: None,
            writer: InsertWriter::default(),
            returning: Returning::default(),
            statement: Statement::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        insert: &'a Insert,
        cx: &mut Cx<'a>,
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
            if cx.owed && !out.is_empty() {
                return Ok(Step::Batch);
            }
            if cx.take_owed() {
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
            let outcome = match self.returning.is_owed() {
                true => Outcome::Written,
                false => self
                    .writer
                    .write(insert, table, self.batch.row(self.at), cx)?,
            };
            if insert.hidden && !self.returning.is_owed() && matches!(outcome, Outcome::Written) {
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
    shared: Shared,
    statement: Statement,
    /// It stopped in the middle of a row, for a call.
    stopped: bool,
    /// A call of a trigger that is fired when all is written.
    called: Option<Box<Call>>,
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
            shared: Shared::default(),
            statement: Statement::default(),
            stopped: false,
            called: None,
        })
    }

    /// Fires what is fired before the first row. Stops with [`Progress::Call`]: answered, it is called again.
    pub async fn begin(&mut self, cx: &mut ExecContext<'_>) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        let Node::Insert(insert) = &prepared.plan().node else {
            return Err(SqlError::internal("an inserter needs an INSERT"));
        };
        let mut cx = Cx::of(cx, &mut self.shared, false);
        while let Some(obstacle) = self.statement.begin(&events_of(insert), &mut cx)? {
            match wait::wait(obstacle, &mut cx).await {
                Ok(()) => {}
                Err(_) if cx.shared.called.is_some() => return Ok(Progress::Call),
                Err(error) => return Err(error),
            }
        }
        Ok(Progress::Done { rows: 0 })
    }

    /// Inserts the row that the plan's `values` make of `row`; none if a trigger or ON CONFLICT DO NOTHING left it out. Stops with [`Progress::Call`]: answered, it
    /// is called again with the same row.
    pub async fn push(&mut self, cx: &mut ExecContext<'_>, row: &[Datum]) -> Result<Progress> {
        let cancel = cx.cancel;
        let prepared = Arc::clone(&self.prepared);
        let Node::Insert(insert) = &prepared.plan().node else {
            return Err(SqlError::internal("an inserter needs an INSERT"));
        };
        if !std::mem::take(&mut self.stopped) {
            self.writer.start();
        }
        let mut cx = Cx::of(cx, &mut self.shared, false);
        let table = match &self.table {
            Some(table) => table,
            None => self.table.insert(cx.table(insert.table.storage)?),
        };
        loop {
            cancel.check()?;
            match self.writer.write(insert, table, row, &mut cx)? {
                Outcome::Written => return Ok(Progress::Done { rows: 1 }),
                Outcome::Skipped => return Ok(Progress::Done { rows: 0 }),
                Outcome::Wait(obstacle) => match wait::wait(obstacle, &mut cx).await {
                    Ok(()) => {}
                    Err(_) if cx.shared.called.is_some() => {
                        self.stopped = true;
                        return Ok(Progress::Call);
                    }
                    Err(error) => return Err(error),
                },
            }
        }
    }

    /// All rows are in: judges what they left to be judged, and fires what is fired then. Stops as [`Inserter::begin`] does.
    pub async fn finish(&mut self, cx: &mut ExecContext<'_>) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        if let Node::Insert(insert) = &prepared.plan().node {
            let mut cx = Cx::of(cx, &mut self.shared, false);
            self.statement.end(&events_of(insert), &mut cx)?;
        }
        if cx.events.has_due()
            && let Some(call) = referential::judge_due(cx).await?
        {
            self.called = Some(call);
            return Ok(Progress::Call);
        }
        Ok(Progress::Done { rows: 0 })
    }
}

impl Caller for Inserter {
    fn called(&mut self) -> Option<Box<Call>> {
        self.called.take().or_else(|| self.shared.called.take())
    }

    fn answer(&mut self, call: &Call, rows: VecDeque<Vec<Datum>>) {
        if call.number > 0 {
            self.shared.answers.insert(call.number, rows);
        }
    }
}
