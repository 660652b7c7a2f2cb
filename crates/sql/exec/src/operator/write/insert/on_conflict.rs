//! ON CONFLICT: what becomes of a row of which another with the same key is there.
//!
//! Owns: DO NOTHING and DO UPDATE, from the row that is in the way to the row as it is updated, and the errors of
//! both.
//! Invariant: no row is updated twice by one statement.

use super::super::{
    RowWriteOutcome, TriggeredUpdate, check_constraints, exprs_of, lock_for_triggers,
};
use super::{InsertWriter, check_policies_of, judged_exprs, place};
use crate::context::ExecutorContext;
use crate::deform;
use crate::deform::{encode_changed, encode_full};
use crate::eval::eval_in;
use crate::index_keys;
use crate::security_quals::check_policies;
use crate::trigger::{self, TriggeredRow};
use crate::wait::Evaluated;
use crate::wait::WaitReason;
use crate::write_errors::{
    check_not_null, serialization_failure, unique_violation, without_key, write_failed,
};
use logstead_engine::{Isolation, KeyExtractor, KeyKind, Row, RowRef, Table, WriteError};
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_plan::{ConflictUpdate, Insert};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::{IndexId, Rid, SqlState};
use std::sync::Arc;

impl InsertWriter {
    /// Whether ON CONFLICT takes care of a violation: the row in the way and what to do with it.
    pub(super) fn conflict<'a>(
        &mut self,
        insert: &'a Insert,
        index: IndexId,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<ConflictOutcome<'a>> {
        let Some(conflict) = &insert.conflict else {
            return Ok(ConflictOutcome::Violation);
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
                let keys = index_keys::of(&storage)
                    .ok_or_else(|| SqlError::internal("an arbiter that nobody has defined"))?;
                let row = RowRef::new(self.builder.finish());
                if keys.key(row, &mut bytes) != KeyKind::Unique {
                    continue;
                }
                let txn = cx.txn()?;
                let guard = txn.pin();
                match txn.get(&storage, &bytes, &guard) {
                    Ok(row) => found = found.or(row.map(|row| row.rid)),
                    Err(absent) => return Ok(ConflictOutcome::Wait(absent.into())),
                }
            }
        }
        let Some(rid) = found else {
            return Ok(ConflictOutcome::Violation);
        };
        let Some(update) = &conflict.update else {
            return self.do_nothing(insert, rid, cx);
        };
        Ok(ConflictOutcome::Update(rid, update))
    }

    /// DO NOTHING about row `rid`, if that may be.
    fn do_nothing<'a>(
        &self,
        insert: &'a Insert,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<ConflictOutcome<'a>> {
        // It must not rest on a row that a REPEATABLE READ snapshot cannot see; DO UPDATE finds out by itself.
        if cx.txn()?.isolation() == Isolation::ReadCommitted {
            return Ok(ConflictOutcome::Nothing);
        }
        let table = cx.table(insert.table.storage)?;
        let txn = cx.txn()?;
        let guard = txn.pin();
        let newest = match txn.read(&table, rid, &guard) {
            Ok(Some(_)) => return Ok(ConflictOutcome::Nothing),
            Ok(None) => txn.read_newest(&table, rid, &guard),
            Err(absent) => Err(absent),
        };
        match newest {
            Ok(Some(row)) if !row.version.is_own() => Err(serialization_failure()),
            Ok(_) => Ok(ConflictOutcome::Nothing),
            Err(absent) => Ok(ConflictOutcome::Wait(absent.into())),
        }
    }

    /// Computes and checks what DO UPDATE makes of a row; false if its condition does not hold.
    fn compute<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        existing: &Row<'_>,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<bool> {
        let relation = &insert.table;
        deform::decode_all(relation, existing.bytes, &mut self.joined)?;
        self.joined.extend_from_slice(&self.row);
        if update.hidden {
            // It is this statement's by now.
            let version = existing.version.written_over();
            let number = existing.rid.get().cast_signed();
            self.joined.push(Datum::Int8(number));
            self.joined.push(Datum::Int8(version.token()));
        }
        if !crate::security_quals::passes(&update.wanted, &self.joined, cx)? {
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
    pub(super) fn update_existing<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<RowWriteOutcome>> {
        let outcome = self.update(insert, update, table, rid, cx)?;
        match &outcome {
            Some(RowWriteOutcome::Wait(_)) | None => {
                // The proposed row is tried again from the start. DO UPDATE used the builder.
                encode_full(&insert.table, &self.row, &mut self.builder)?;
                // Not if triggers are seeing the row in the way: what they have done to it would let the proposed one
                // in.
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
    pub(super) fn update<'a>(
        &mut self,
        insert: &'a Insert,
        update: &'a ConflictUpdate,
        table: &Arc<Table>,
        rid: Rid,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<RowWriteOutcome>> {
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
                        Err(absent) => return Ok(Some(RowWriteOutcome::Wait(absent.into()))),
                    }
                    cx.txn()?.pass_turn();
                    return Ok(None);
                }
                Err(absent) => return Ok(Some(RowWriteOutcome::Wait(absent.into()))),
            };
            let version = (rid, existing.version);
            let triggers = trigger::before(insert.rules.as_ref(), TriggerEvent::Update);
            // Nobody else changes what triggers have seen.
            if triggers.is_some() && self.locked != Some(version) {
                match lock_for_triggers(table, rid, existing.version, cx)? {
                    TriggeredUpdate::Proceed => self.locked = Some(version),
                    TriggeredUpdate::Finished(outcome) => return Ok(Some(outcome)),
                    TriggeredUpdate::Changed => continue,
                    TriggeredUpdate::Gone => return Ok(None),
                    TriggeredUpdate::SelfModified => return Err(second_time()),
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
                    Err(absent) => return Ok(Some(RowWriteOutcome::Wait(absent))),
                }
            }
            if let Some(triggers) = triggers
                && self.fired != Some(version)
            {
                // What was assigned stands in `updated`; generated columns and what is asked of the row come behind
                // the triggers.
                let mut old = Vec::new();
                deform::decode_all(relation, existing.bytes, &mut old)?;
                let new = Some(&mut self.updated);
                let event = TriggerEvent::Update;
                match self.firing.row(triggers, event, Some(&old), new, cx)? {
                    TriggeredRow::Wait(obstacle) => {
                        return Ok(Some(RowWriteOutcome::Wait(obstacle)));
                    }
                    TriggeredRow::Skipped => return cx.skip_row().map(Some),
                    TriggeredRow::Proceed => {}
                }
                self.fired = Some(version);
            }
            if triggers.is_some() && self.judged != Some(version) {
                let row = &mut self.updated;
                let judged = self.judging.of(judged_exprs(insert), cx, |cx| {
                    check_policies_of(insert, &update.policies, row, cx)
                });
                if let Err(absent) = judged? {
                    return Ok(Some(RowWriteOutcome::Wait(absent)));
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
                .writing_txn()?
                .update(table, rid, existing.version, self.builder.finish())
            {
                Ok(()) => {
                    cx.affected += 1;
                    if let Some(rules) = &insert.rules {
                        let new = RowRef::new(self.builder.finish());
                        cx.queue()?
                            .updated(rules, 0, rid, existing.bytes, new, false)?;
                    }
                    self.is_update = true;
                    self.written = rid;
                    return Ok(Some(RowWriteOutcome::Written));
                }
                Err(WriteError::Blocked(blocker)) => {
                    return Ok(Some(RowWriteOutcome::Wait(blocker.into())));
                }
                Err(WriteError::Absent(absent)) => {
                    return Ok(Some(RowWriteOutcome::Wait(absent.into())));
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

/// What ON CONFLICT says of a violation.
pub(super) enum ConflictOutcome<'a> {
    /// Nothing: it is an error.
    Violation,
    /// The row is left out.
    Nothing,
    /// The row in the way is updated.
    Update(Rid, &'a ConflictUpdate),
    /// To be asked again after this.
    Wait(WaitReason),
}

/// 55000 for an arbiter whose key is not checked when a row is written.
pub(super) fn refuse_deferrable(relation: &Relation, arbiters: &[Arc<IndexDef>]) -> Result<()> {
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
