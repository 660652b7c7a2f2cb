//! Triggers of the rows that a statement writes: fired one after the other, each as something to wait for.
//!
//! Owns: which trigger is fired next, and what becomes of the row. Bodies are run by the session, as those of functions
//! are (`exec::routine`): the writer stops with the call, and goes on with the same row when it was answered. BEFORE
//! triggers are fired here; AFTER triggers are events (`after_triggers`), for which `exec::constraints` stops.
//!
//! Invariants:
//! - A trigger is fired once for a version of a row: what has been fired is remembered across waits, and the row is
//!   locked before the first one is.
//! - Who has no triggers pays the look at an `Option`.

use super::context::{EvalContext, ExecutorContext};
use super::eval::eval;
use super::wait::WaitReason;
use crate::call::PendingCall;
use crate::call::TriggerCall;
use logstead_engine::RowRef;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::trigger::{TriggerEvent, TriggerTime};
use logstead_sql_plan::constraints::{PlannedTrigger, RuleSet, TableTriggers, TriggerType};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use std::sync::Arc;

/// Rows that are kept encoded, with all positions.
pub fn stored_rows(table: &Relation, rows: &[Box<[u8]>]) -> Result<Vec<Vec<Datum>>> {
    let mut decoded = Vec::with_capacity(rows.len());
    for stored in rows {
        let mut row = Vec::new();
        crate::deform::decode_all(table, RowRef::new(stored), &mut row)?;
        decoded.push(row);
    }
    Ok(decoded)
}

/// What BEFORE triggers have made of a row.
pub(super) enum TriggeredRow {
    /// It is written, as it is now.
    Proceed,
    /// It is left out.
    Skipped,
    /// Fired again after this.
    Wait(WaitReason),
}

/// How far the triggers of a row, or of a statement, have been fired.
#[derive(Default)]
pub(super) struct TriggerProgress {
    /// The number of the next.
    at: usize,
    /// What was asked; 0 is nothing.
    call_number: u64,
}

/// The triggers of a statement's own table, if any is fired then.
pub(super) fn of(rules: Option<&Arc<RuleSet>>, moment: TriggerType) -> Option<&TableTriggers> {
    let triggers = rules?.tables.first()?.triggers.as_deref()?;
    triggers.any(moment).then_some(triggers)
}

/// Its BEFORE triggers of rows, if there are any.
pub(super) fn before(rules: Option<&Arc<RuleSet>>, event: TriggerEvent) -> Option<&TableTriggers> {
    of(rules, TriggerType::before(event))
}

/// Does WHEN let it be fired?
pub(super) fn when_holds(
    fire: &PlannedTrigger,
    table: &Relation,
    old: Option<&[Datum]>,
    new: Option<&[Datum]>,
    session: &dyn Context,
) -> Result<bool> {
    let Some(when) = &fire.when else {
        return Ok(true);
    };
    let width = table.columns.len();
    let mut both = Vec::with_capacity(2 * width);
    for row in [old, new] {
        match row {
            Some(row) => both.extend_from_slice(row.get(..width).unwrap_or_default()),
            None => both.extend(std::iter::repeat_n(Datum::Null, width)),
        }
    }
    let bare = EvalContext {
        params: &[],
        session,
    };
    Ok(matches!(eval(when, &both, &bare)?, Datum::Bool(true)))
}

/// The same of a row that was written, as it is stored.
pub(crate) fn when_holds_stored(
    fire: &PlannedTrigger,
    table: &Relation,
    old: Option<RowRef<'_>>,
    new: Option<RowRef<'_>>,
    session: &dyn Context,
) -> Result<bool> {
    if fire.when.is_none() {
        return Ok(true);
    }
    let decoded = |row: Option<RowRef<'_>>| match row {
        None => Ok(None),
        Some(stored) => {
            let mut row = Vec::new();
            crate::deform::decode_all(table, stored, &mut row)?;
            Ok::<_, SqlError>(Some(row))
        }
    };
    let (old, new) = (decoded(old)?, decoded(new)?);
    when_holds(fire, table, old.as_deref(), new.as_deref(), session)
}

/// The call of a trigger's function.
pub(super) fn call(
    number: u64,
    fire: &PlannedTrigger,
    table: &Arc<Relation>,
    event: TriggerEvent,
    old: Option<Vec<Datum>>,
    new: Option<Vec<Datum>>,
) -> Box<PendingCall> {
    Box::new(PendingCall {
        number,
        callee: Arc::clone(&fire.callee),
        args: Vec::new(),
        types: Vec::new(),
        trigger: Some(TriggerCall {
            trigger: Arc::clone(&fire.trigger),
            table: Arc::clone(table),
            event,
            old,
            new,
            captured: None,
        }),
    })
}

/// The calls that TRUNCATE of a table makes, before it or after.
pub fn truncate_calls(
    triggers: Option<&TableTriggers>,
    time: TriggerTime,
    session: &dyn Context,
) -> Result<Vec<PendingCall>> {
    let Some(triggers) = triggers else {
        return Ok(Vec::new());
    };
    let event = TriggerEvent::Truncate;
    let moment = TriggerType {
        time,
        ..TriggerType::before(event).of_statement()
    };
    let mut calls = Vec::new();
    for (_, fire) in triggers.at(moment) {
        if when_holds(fire, &triggers.table, None, None, session)? {
            calls.push(*call(0, fire, &triggers.table, event, None, None));
        }
    }
    Ok(calls)
}

/// A record's fields are of what domains are made over, so that what triggers have put into a row is asked for again.
pub(super) fn check_domains(
    triggers: &TableTriggers,
    row: &[Datum],
    session: &dyn Context,
) -> Result<()> {
    let bare = EvalContext {
        params: &[],
        session,
    };
    for (_, asked) in &triggers.domains {
        eval(asked, row, &bare)?;
    }
    Ok(())
}

impl TriggerProgress {
    /// Another row follows.
    pub(super) fn reset(&mut self) {
        *self = TriggerProgress::default();
    }

    /// Fires the BEFORE triggers of a row: `new` is what each makes of it. After `Wait` it is called again with the
    /// same rows.
    pub(super) fn row(
        &mut self,
        triggers: &TableTriggers,
        event: TriggerEvent,
        old: Option<&[Datum]>,
        new: Option<&mut Vec<Datum>>,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<TriggeredRow> {
        self.row_at(triggers, TriggerType::before(event), old, new, cx)
    }

    /// Fires the triggers that are there instead of a change of a view's row.
    pub(super) fn instead(
        &mut self,
        rules: Option<&Arc<RuleSet>>,
        event: TriggerEvent,
        old: Option<&[Datum]>,
        new: Option<&mut Vec<Datum>>,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<TriggeredRow> {
        let moment = TriggerType::instead(event);
        match of(rules, moment) {
            Some(triggers) => self.row_at(triggers, moment, old, new, cx),
            // They are disabled.
            None => Ok(TriggeredRow::Proceed),
        }
    }

    fn row_at(
        &mut self,
        triggers: &TableTriggers,
        moment: TriggerType,
        old: Option<&[Datum]>,
        mut new: Option<&mut Vec<Datum>>,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<TriggeredRow> {
        let event = moment.event;
        let width = triggers.table.columns.len();
        let whole = |row: &[Datum]| row.get(..width).unwrap_or_default().to_vec();
        loop {
            let mut next = triggers.at(moment);
            let Some((number, fire)) = next.find(|(number, _)| *number >= self.at) else {
                self.reset();
                if let Some(row) = &new {
                    check_domains(triggers, row, cx.session)?;
                }
                return Ok(TriggeredRow::Proceed);
            };
            // What was asked may not have been heard: an operator that has rows gives them first, and comes again.
            let Some(mut rows) = cx.shared.call_results.remove(&self.call_number) else {
                let now = new.as_ref().map(|row| row.as_slice());
                if !when_holds(fire, &triggers.table, old, now, cx.session)? {
                    self.at = number + 1;
                    continue;
                }
                cx.shared.last_call += 1;
                self.call_number = cx.shared.last_call;
                let (old, now) = (old.map(whole), now.map(whole));
                let call = call(self.call_number, fire, &triggers.table, event, old, now);
                return Ok(TriggeredRow::Wait(WaitReason::Call(call)));
            };
            (self.call_number, self.at) = (0, number + 1);
            match (rows.pop_front(), &mut new) {
                (None, _) => {
                    self.reset();
                    return Ok(TriggeredRow::Skipped);
                }
                (Some(given), Some(row)) => **row = given,
                // What DELETE's gives says that it goes, and no more.
                (Some(_), None) => {}
            }
        }
    }

    /// Fires the BEFORE triggers of a statement; what it has to wait for, if anything.
    pub(super) fn statement(
        &mut self,
        triggers: &TableTriggers,
        event: TriggerEvent,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<Option<WaitReason>> {
        loop {
            let mut next = triggers.at(TriggerType::before(event).of_statement());
            let Some((number, fire)) = next.find(|(number, _)| *number >= self.at) else {
                self.reset();
                return Ok(None);
            };
            if cx.shared.call_results.remove(&self.call_number).is_some() {
                (self.call_number, self.at) = (0, number + 1);
                continue;
            }
            if !when_holds(fire, &triggers.table, None, None, cx.session)? {
                self.at = number + 1;
                continue;
            }
            cx.shared.last_call += 1;
            self.call_number = cx.shared.last_call;
            let call = call(self.call_number, fire, &triggers.table, event, None, None);
            return Ok(Some(WaitReason::Call(call)));
        }
    }
}

/// What BEFORE triggers see of the generated columns of a row that is updated: nothing, for they are computed of what
/// the triggers make.
pub(super) fn without_generated(relation: &Relation, row: &mut [Datum]) {
    for (column, value) in relation.columns.iter().zip(row) {
        if column.generated {
            *value = Datum::Null;
        }
    }
}

/// The statement's own triggers of a node that writes: BEFORE when it begins, AFTER queued when it has ended. If
/// several nodes do the same to a table, the statement and its WITH, the first fires BEFORE and the last AFTER.
#[derive(Default)]
pub(super) struct StatementTriggers {
    /// How many of its events have begun.
    begun: usize,
    firing: TriggerProgress,
    ended: bool,
}

impl StatementTriggers {
    /// Fires BEFORE triggers for each of the events, which come with the rules of what is done then.
    pub(super) fn begin(
        &mut self,
        events: &[(TriggerEvent, Option<&Arc<RuleSet>>)],
        cx: &mut ExecutorContext<'_>,
    ) -> Result<Option<WaitReason>> {
        while let Some((event, rules)) = events.get(self.begun) {
            if let Some(triggers) = of(*rules, TriggerType::before(*event).of_statement()) {
                let opened = (triggers.table.oid, *event);
                if !cx.shared.statements_begun.contains(&opened) {
                    if let Some(obstacle) = self.firing.statement(triggers, *event, cx)? {
                        return Ok(Some(obstacle));
                    }
                    cx.shared.statements_begun.push(opened);
                }
            }
            self.begun += 1;
        }
        Ok(None)
    }

    /// Queues AFTER triggers, those of the last event first.
    pub(super) fn end(
        &mut self,
        events: &[(TriggerEvent, Option<&Arc<RuleSet>>)],
        cx: &mut ExecutorContext<'_>,
    ) -> Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        for (event, rules) in events.iter().rev() {
            let moment = TriggerType::after(*event).of_statement();
            if let Some(rules) = rules
                && of(Some(*rules), moment).is_some()
            {
                cx.queue()?.events.ended(rules, 0, moment);
            }
        }
        Ok(())
    }
}
