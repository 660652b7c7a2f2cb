//! Referential actions: what ON DELETE and ON UPDATE of a foreign key do to the rows that reference.
//!
//! Owns: deleting such a row or changing its columns, as the table's owner, with triggers, generated columns and
//! rules as any change has them.
//! Does not: find the rows; the checker does, and waits for those that others have changed.

use super::super::context::EvalContext;
use super::super::eval::{as_bool, eval};
use super::super::trigger;
use super::super::wait::ExecError;
use super::ConstraintChecker;
use crate::call;
use crate::deform::encode_changed;
use crate::event_recorder::EventRecorder;
use crate::write_errors::{
    check_not_null, check_violation, triggered_data_change, unique_violation, without_key,
};
use logstead_engine::{RowLock, RowRef, WriteError};
use logstead_sql_catalog::role::acl::privilege as p;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_catalog::{ReferentialAction, Relation};
use logstead_sql_plan::constraints::{ForeignRule, RuleSet, TableTriggers, TriggerType};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::walk;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::Rid;
use std::sync::Arc;

impl<'c, 'a> ConstraintChecker<'c, 'a> {
    /// CASCADE, SET NULL, SET DEFAULT.
    pub(super) async fn change(
        &mut self,
        set: &Arc<RuleSet>,
        rule: &Arc<ForeignRule>,
        action: ReferentialAction,
        old: &[Datum],
        new: Option<&[Datum]>,
    ) -> Result<(), ExecError> {
        let position = set
            .position(rule.child.oid)
            .ok_or_else(|| SqlError::internal("an action on a table without rules"))?;
        let assigned: Option<Vec<(usize, Datum)>> = match (action, new) {
            (ReferentialAction::Cascade, None) => None,
            (ReferentialAction::Cascade, Some(new)) => Some(rule.cascaded(new, self.cx.session)?),
            _ => Some(
                rule.set_columns(new.is_none())
                    .into_iter()
                    .map(|p| (p, Datum::Null))
                    .collect(),
            ),
        };
        let event = match assigned {
            None => TriggerEvent::Delete,
            Some(_) => TriggerEvent::Update,
        };
        let key: Vec<usize> = rule.child_columns().collect();
        self.owner_may(&rule.child, p::SELECT, &key)?;
        match &assigned {
            None => self.owner_may(&rule.child, p::DELETE, &[])?,
            Some(assigned) => {
                let changed: Vec<usize> = assigned.iter().map(|(column, _)| *column).collect();
                self.owner_may(&rule.child, p::UPDATE, &changed)?;
            }
        }
        let owner = self.cx.catalog.table_acts_as(rule.child.oid);
        let session = self.cx.session;
        let triggers = set.tables.get(position).and_then(|t| t.triggers.as_deref());
        if let Some(triggers) = triggers {
            let before = owner.map(|owner| session.act_as(Some(owner)));
            let begun = self.begin_action(position == 0, triggers, event);
            if let Some(before) = before {
                session.act_as(before);
            }
            begun?;
        }
        let wanted = rule.wanted(old);
        if self.cx.events.action.rows.is_none() {
            let rows = self.referencing_rows(rule, old, false).await?;
            self.cx.events.action.rows = Some((rows, 0));
        }
        while let Some(rid) = self.cx.events.action.row() {
            self.tick(1).await?;
            loop {
                let before = owner.map(|owner| session.act_as(Some(owner)));
                let attempt = self.change_row(set, position, rule, action, &assigned, &wanted, rid);
                if let Some(before) = before {
                    session.act_as(before);
                }
                match attempt? {
                    Ok(()) => break,
                    Err(WriteError::Overtaken) if assigned.is_none() => {
                        return Err(triggered_data_change("deleted").into());
                    }
                    Err(error) => {
                        let again = self.refused(error)?;
                        self.again(again).await?;
                    }
                }
            }
            self.cx.events.action.row_done();
        }
        let moment = TriggerType::after(event).of_statement().of_action();
        if triggers.is_some_and(|triggers| triggers.any(moment)) {
            self.cx.events.ended_action(set, position, moment);
        }
        // What follows sees what was done, and looks again.
        self.last = None;
        self.cx.txn.begin_statement();
        // A row that was given the values it had (its own default, or a new key that its type cannot tell from the
        // old one)
        // is not queued for a check, and would stay behind.
        if action == ReferentialAction::SetDefault
            || (action == ReferentialAction::Cascade && new.is_some())
        {
            self.unreferenced(rule, ReferentialAction::NoAction, old)
                .await?;
        }
        Ok(())
    }

    /// Fires the BEFORE triggers of statements for the first action that does this to a table; if the statement
    /// itself does it, they have been. Stops as
    /// [`before`](Self::before) does.
    fn begin_action(
        &mut self,
        own: bool,
        triggers: &TableTriggers,
        event: TriggerEvent,
    ) -> Result<(), ExecError> {
        let moment = TriggerType::before(event).of_statement();
        if !triggers.any(moment.of_action()) || (own && triggers.any(moment)) {
            return Ok(());
        }
        let session = self.cx.session;
        let action = &mut self.cx.events.action;
        let answered = std::mem::take(&mut action.opening);
        if answered {
            action.answered = None;
        }
        let begun = action.begun(triggers.table.oid, event);
        begun.at += usize::from(answered);
        for (number, fire) in triggers.at(moment.of_action()) {
            if number < begun.at {
                continue;
            }
            begun.at = number;
            if !trigger::when_holds(fire, &triggers.table, None, None, session)? {
                begun.at = number + 1;
                continue;
            }
            action.opening = true;
            let table = &triggers.table;
            let call = trigger::call(call::ACTION, fire, table, event, None, None);
            return Err(ExecError::Call(call));
        }
        begun.at = triggers.fires.len();
        Ok(())
    }

    /// Shows a row that an action changes to its BEFORE triggers; false if it is left out. Stops with the call of one.
    fn before(
        &mut self,
        triggers: &TableTriggers,
        event: TriggerEvent,
        rid: Rid,
        old: &[Datum],
        mut new: Option<&mut Vec<Datum>>,
    ) -> Result<bool, ExecError> {
        let session = self.cx.session;
        let action = &mut self.cx.events.action;
        let answered = action.answered.take();
        action.rid = Some(rid);
        if let (Some(made), Some(row)) = (&action.new, &mut new) {
            (**row).clone_from(made);
        }
        if let Some(mut rows) = answered {
            action.at += 1;
            match (rows.pop_front(), &mut new) {
                (None, _) => return Ok(false),
                (Some(given), Some(row)) => {
                    action.new = Some(given.clone());
                    **row = given;
                }
                (Some(_), None) => {}
            }
        }
        for (number, fire) in triggers.at(TriggerType::before(event).of_action()) {
            if number < action.at {
                continue;
            }
            action.at = number;
            let now = new.as_ref().map(|row| row.as_slice());
            if !trigger::when_holds(fire, &triggers.table, Some(old), now, session)? {
                action.at = number + 1;
                continue;
            }
            let (old, now) = (Some(old.to_vec()), now.map(<[Datum]>::to_vec));
            let table = &triggers.table;
            let call = trigger::call(call::ACTION, fire, table, event, old, now);
            return Err(ExecError::Call(call));
        }
        action.at = triggers.fires.len();
        if let Some(row) = new {
            trigger::check_domains(triggers, row, session)?;
        }
        Ok(true)
    }

    /// Changes one referencing row, if it still references the values. What it needs further is queued.
    #[allow(
        clippy::too_many_arguments,
        clippy::type_complexity,
        reason = "one row of one action; the engine's refusal is told apart from an error"
    )]
    fn change_row(
        &mut self,
        set: &Arc<RuleSet>,
        position: usize,
        rule: &ForeignRule,
        action: ReferentialAction,
        assigned: &Option<Vec<(usize, Datum)>>,
        wanted: &[u8],
        rid: Rid,
    ) -> Result<std::result::Result<(), WriteError>, ExecError> {
        let table = rule.child_table(self.cx.engine)?;
        let guard = self.cx.txn.pin();
        let row = match self.cx.txn.read_newest_outside(table, rid, &guard) {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(Ok(())),
            Err(absent) => return Ok(Err(absent.into())),
        };
        if !rule.references(row.bytes, wanted, self.cx.session, &mut self.scratch)? {
            return Ok(Ok(()));
        }
        let event = match assigned {
            None => TriggerEvent::Delete,
            Some(_) => TriggerEvent::Update,
        };
        let triggers = set.tables.get(position).and_then(|t| t.triggers.as_deref());
        let triggers = triggers.filter(|t| t.any(TriggerType::before(event).of_action()));
        let mut before = Vec::new();
        if let Some(triggers) = triggers {
            // Nobody else changes what they have seen. What they change themselves is told when the row is written,
            // if they let it be.
            let lock = RowLock::NoKeyUpdate;
            if self.cx.events.action.rid.is_none()
                && let Err(error) = self.cx.txn.lock_row(table, rid, row.version, lock)
            {
                return Ok(match error {
                    WriteError::Overtaken => return Err(triggered_data_change("updated").into()),
                    error => Err(error),
                });
            }
            crate::deform::decode_all(&triggers.table, row.bytes, &mut before)?;
            if assigned.is_none() && !self.before(triggers, event, rid, &before, None)? {
                return Ok(Ok(()));
            }
        }
        let Some(assigned) = assigned else {
            crate::index_keys::check_after_computing()?;
            let deleted = self.cx.txn.delete(table, rid, row.version);
            if deleted.is_ok() {
                self.queue().deleted(set, position, rid, row.bytes, true)?;
            }
            return Ok(deleted);
        };
        let Some(rules) = set.tables.get(position) else {
            return Err(SqlError::internal("an action on a table without rules").into());
        };
        let relation: &Relation = &rules.table;
        let bare = EvalContext {
            params: &[],
            session: self.cx.session,
        };
        let mut values = Vec::with_capacity(assigned.len());
        for (column, value) in assigned {
            let default = rules.defaults.iter().find(|(p, _)| p == column);
            values.push((
                *column,
                match (action, default) {
                    (ReferentialAction::SetDefault, Some((_, expr))) => at_once(expr, &[], &bare)?,
                    _ => value.clone(),
                },
            ));
        }
        let guarded = values
            .iter()
            .any(|(p, v)| v.is_null() && relation.columns.get(*p).is_some_and(|c| c.not_null));
        let mut full = Vec::new();
        let of_domain = |(p, _): &&(usize, Expr)| values.iter().any(|(at, _)| at == p);
        let asked: Vec<&Expr> = rules
            .domains
            .iter()
            .filter(of_domain)
            .map(|d| &d.1)
            .collect();
        let whole = triggers.is_some()
            || guarded
            || !asked.is_empty()
            || !rules.checks.is_empty()
            || !rules.generated.is_empty();
        if whole {
            crate::deform::decode_all(relation, row.bytes, &mut full)?;
            for (position, value) in &values {
                if let Some(slot) = full.get_mut(*position) {
                    *slot = value.clone();
                }
            }
            for asked in asked {
                at_once(asked, &full, &bare)?;
            }
            if let Some(triggers) = triggers {
                trigger::without_generated(relation, &mut full);
                if !self.before(triggers, event, rid, &before, Some(&mut full))? {
                    return Ok(Ok(()));
                }
                // Any column may be another.
                let all = full.iter().cloned().enumerate();
                values = all
                    .filter(|(p, _)| relation.columns.get(*p).is_some_and(|c| !c.dropped))
                    .collect();
            }
            for (position, expr) in &rules.generated {
                // What no function is to be called for stays as it is.
                if triggers.is_none()
                    && walk::needs_more_than_row(expr)
                    && !follows(relation, *position, &values)
                {
                    continue;
                }
                let value = at_once(expr, &full, &bare)?;
                values.retain(|(p, _)| p != position);
                if let Some(slot) = full.get_mut(*position) {
                    *slot = value.clone();
                }
                values.push((*position, value));
            }
        }
        let of = |position: usize| values.iter().find(|(p, _)| *p == position).map(|(_, v)| v);
        if whole {
            let given: Vec<usize> = assigned.iter().map(|(column, _)| *column).collect();
            let session = self.cx.session;
            check_not_null(relation, &full, &given, |p| of(p).is_some(), session)?;
            for check in &rules.checks {
                if as_bool(&at_once(&check.expr, &full, &bare)?)? == Some(false) {
                    return Err(check_violation(relation, check, &full, &given, session).into());
                }
            }
        }
        encode_changed(relation, row.bytes, of, &mut self.builder);
        let new = self.builder.finish();
        crate::index_keys::check_after_computing()?;
        match self.cx.txn.update(table, rid, row.version, new) {
            Ok(()) => {
                let new = RowRef::new(new);
                let mut queue = EventRecorder {
                    txn: &mut *self.cx.txn,
                    engine: self.cx.engine,
                    events: &mut *self.cx.events,
                    session: self.cx.session,
                };
                queue.updated(set, position, rid, row.bytes, new, true)?;
                Ok(Ok(()))
            }
            Err(WriteError::Unique { index, .. }) => {
                Err(unique_violation(relation, table, index, new, self.cx.session).into())
            }
            Err(WriteError::NoKey { index }) => Err(without_key(table, index, new).into()),
            Err(error) => Ok(Err(error)),
        }
    }
}

/// Is a generated column made of one of the columns that get these values?
fn follows(relation: &Relation, position: usize, values: &[(usize, Datum)]) -> bool {
    let column = relation.columns.get(position);
    let changed: Vec<usize> = values.iter().map(|(position, _)| *position).collect();
    column.is_some_and(|column| column.follows(relation, &changed))
}

/// The value of an expression of a table whose row an action changes. What reads tables, or is run by the session,
/// cannot be asked here.
fn at_once(expr: &Expr, row: &[Datum], cx: &EvalContext<'_>) -> Result<Datum> {
    match walk::needs_more_than_row(expr) {
        true => Err(SqlError::unsupported(
            "a function that is more than an expression, in a default, check or generated column of a row that the action of a foreign key changes",
        )),
        false => eval(expr, row, cx),
    }
}
