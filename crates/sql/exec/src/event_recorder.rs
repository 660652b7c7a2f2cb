//! How written rows become events: which rules and triggers a row concerns is asked when it is written.
//!
//! Does not: keep the events (`after_triggers`), or check or fire anything (`constraints`).

use crate::after_triggers::{AfterTriggerEvent, EventKind, EventQueue, WrittenRow};
use crate::context::ExecutorContext;
use crate::trigger::when_holds_stored;
use logstead_engine::{Engine, RowRef, Txn, WriteError};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_catalog::{ReferentialAction, Timing};
use logstead_sql_plan::constraints::{
    ForeignRule, KeyParts, RuleSet, TriggerType, UniqueRule, bytes_of, values_of,
};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, Oid};
use logstead_types::Rid;
use std::sync::Arc;

/// Where events go, and what is asked before they do.
pub(crate) struct EventRecorder<'q> {
    pub(crate) txn: &'q mut Txn,
    pub(crate) engine: &'q Engine,
    pub(crate) events: &'q mut EventQueue,
    /// What WHEN of triggers may ask.
    pub(crate) session: &'q dyn Context,
}

fn deferred(events: &EventQueue, rule: &ForeignRule, action: ReferentialAction) -> bool {
    // Only NO ACTION can be put off.
    action == ReferentialAction::NoAction && events.modes.is_deferred(rule.oid, rule.timing)
}

impl AfterTriggerEvent {
    /// The constraint of an event, and when it is checked.
    pub(super) fn constraint(&self, set: &RuleSet) -> Option<(Oid, Timing)> {
        let rules = set.tables.get(self.table as usize)?;
        let at = self.rule as usize;
        Some(match self.what {
            EventKind::Unique | EventKind::UniqueUnchecked => {
                rules.unique.get(at).map(|r| (r.oid, r.timing))?
            }
            EventKind::Referencing => rules.child.get(at).map(|r| (r.oid, r.timing))?,
            EventKind::AfterTrigger(_) => {
                let fire = rules.triggers.as_ref()?.fires.get(at)?;
                let constraint = fire.trigger.constraint.as_ref()?;
                (constraint.oid, constraint.timing)
            }
            EventKind::Deleted(_) | EventKind::Updated(_) => {
                rules.parent.get(at).map(|r| (r.oid, r.timing))?
            }
        })
    }
}

impl ExecutorContext<'_> {
    /// Where a written row's events go.
    pub(crate) fn queue(&mut self) -> Result<EventRecorder<'_>> {
        let session = self.session;
        let storage = self.storage()?;
        Ok(EventRecorder {
            txn: storage.txn,
            engine: storage.engine,
            events: storage.events,
            session,
        })
    }
}

impl EventRecorder<'_> {
    /// A row was inserted.
    pub(crate) fn inserted(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rid: Rid,
        new: RowRef<'_>,
    ) -> Result<()> {
        let Some(rules) = set.tables.get(table) else {
            return Ok(());
        };
        for (at, rule) in rules.unique.iter().enumerate() {
            self.unique(set, table, at, rule, rid)?;
        }
        let events = &mut *self.events;
        for (at, rule) in rules.child.iter().enumerate() {
            if rule.parts(new) != KeyParts::Nothing {
                let deferred = events.modes.is_deferred(rule.oid, rule.timing);
                events.push(set, table, at, rid, EventKind::Referencing, deferred);
            }
        }
        let moment = TriggerType::after(TriggerEvent::Insert);
        self.fire(set, table, rid, moment, (None, Some(new)))
    }

    /// Queues the AFTER triggers of a row that was written.
    fn fire(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rid: Rid,
        moment: TriggerType,
        (old, new): (Option<RowRef<'_>>, Option<RowRef<'_>>),
    ) -> Result<()> {
        let Some(triggers) = set.tables.get(table).and_then(|t| t.triggers.as_deref()) else {
            return Ok(());
        };
        let events = &mut *self.events;
        let captured = match triggers.captures(moment) {
            false => None,
            true => {
                let captured = events.action.capture(triggers.table.oid, moment.event);
                let bytes = |row: Option<RowRef<'_>>| row.map_or(0, |row| row.bytes().len());
                events.keep(bytes(old) + bytes(new), self.engine.memory())?;
                captured.add(old.map(|row| row.bytes()), new.map(|row| row.bytes()));
                Some(captured)
            }
        };
        let mut written = None;
        let (mut kept, mut kept_deferred) = (false, false);
        for (at, fire) in triggers.at(moment) {
            if !when_holds_stored(fire, &triggers.table, old, new, self.session)? {
                continue;
            }
            let constraint = fire.trigger.constraint.as_ref();
            let deferred = constraint.is_some_and(|c| events.modes.is_deferred(c.oid, c.timing));
            let size = |row: Option<RowRef<'_>>| row.map_or(0, |row| row.bytes().len());
            let bytes = size(old) + size(new);
            match deferred {
                true if !std::mem::replace(&mut kept_deferred, true) => {
                    events.keep_deferred(bytes, self.engine.memory())?;
                }
                false if !std::mem::replace(&mut kept, true) => {
                    events.keep(bytes, self.engine.memory())?;
                }
                _ => {}
            }
            let written = match &written {
                Some(written) => Arc::clone(written),
                None => {
                    let row = Arc::new(WrittenRow {
                        event: moment.event,
                        old: old.map(|row| row.bytes().into()),
                        new: new.map(|row| row.bytes().into()),
                        number: 0,
                        captured: captured.clone(),
                    });
                    Arc::clone(written.insert(row))
                }
            };
            events.push(
                set,
                table,
                at,
                rid,
                EventKind::AfterTrigger(written),
                deferred,
            );
        }
        Ok(())
    }

    /// A row has got a key that must be alone. Nothing is queued if no other row has it or may come to have it by what
    /// is in flight: whoever takes the key later meets this row. What could not be looked at, because something is not
    /// in memory, is asked again when the statement ends, not when the constraint is due: by then somebody may have
    /// taken the key after this row, and wait for it.
    fn unique(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        at: usize,
        rule: &UniqueRule,
        rid: Rid,
    ) -> Result<()> {
        let (rows, index) = rule.storage(self.engine)?;
        let Err(error) = self.txn.check_unique(rows, index, rid) else {
            return Ok(());
        };
        let events = &mut *self.events;
        let deferred = events.modes.is_deferred(rule.oid, rule.timing);
        if deferred && matches!(error, WriteError::Absent(_)) {
            events.push(set, table, at, rid, EventKind::UniqueUnchecked, false);
        } else {
            events.push(set, table, at, rid, EventKind::Unique, deferred);
        }
        Ok(())
    }

    /// A row was updated.
    pub(crate) fn updated(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rid: Rid,
        old: RowRef<'_>,
        new: RowRef<'_>,
        by_action: bool,
    ) -> Result<()> {
        let Some(rules) = set.tables.get(table) else {
            return Ok(());
        };
        let relation = &rules.table;
        let differs =
            |position| bytes_of(relation, old, position) != bytes_of(relation, new, position);
        for (at, rule) in rules.unique.iter().enumerate() {
            let mut key = rule.index.columns.iter().filter_map(|c| c.position());
            if key.any(differs) {
                self.unique(set, table, at, rule, rid)?;
            }
        }
        let events = &mut *self.events;
        for (at, rule) in rules.parent.iter().enumerate() {
            if !rule.parent_columns().any(differs) {
                continue;
            }
            let mut values = values_of(relation, old, rule.parent_columns())?;
            if values.iter().any(Datum::is_null) {
                continue;
            }
            values.extend(values_of(relation, new, rule.parent_columns())?);
            let deferred = deferred(events, rule, rule.on_update);
            events.push(
                set,
                table,
                at,
                rid,
                EventKind::Updated(values.into()),
                deferred,
            );
        }
        for (at, rule) in rules.child.iter().enumerate() {
            if rule.child_columns().any(differs)
                && rule.parts(new) != KeyParts::Nothing
                && !rule.same_child_key(old, new)
            {
                let deferred = events.modes.is_deferred(rule.oid, rule.timing);
                events.push(set, table, at, rid, EventKind::Referencing, deferred);
            }
        }
        let moment = TriggerType {
            by_action,
            ..TriggerType::after(TriggerEvent::Update)
        };
        self.fire(set, table, rid, moment, (Some(old), Some(new)))
    }

    /// A row was deleted.
    pub(crate) fn deleted(
        &mut self,
        set: &Arc<RuleSet>,
        table: usize,
        rid: Rid,
        old: RowRef<'_>,
        by_action: bool,
    ) -> Result<()> {
        let Some(rules) = set.tables.get(table) else {
            return Ok(());
        };
        let events = &mut *self.events;
        for (at, rule) in rules.parent.iter().enumerate() {
            let values = values_of(&rules.table, old, rule.parent_columns())?;
            // A row with a NULL in its key cannot have been referenced.
            if !values.iter().any(Datum::is_null) {
                let deferred = deferred(events, rule, rule.on_delete);
                events.push(
                    set,
                    table,
                    at,
                    rid,
                    EventKind::Deleted(values.into()),
                    deferred,
                );
            }
        }
        let moment = TriggerType {
            by_action,
            ..TriggerType::after(TriggerEvent::Delete)
        };
        self.fire(set, table, rid, moment, (Some(old), None))
    }
}

impl EventQueue {
    /// The same of an action: those that wait already wait no more.
    pub(crate) fn ended_action(&mut self, set: &Arc<RuleSet>, table: usize, moment: TriggerType) {
        let Some(rules) = set.tables.get(table) else {
            return;
        };
        let number = self.action.end(rules.table.oid, moment.event);
        self.queue_ended(set, table, moment, number);
    }

    /// Queues the AFTER triggers of a statement that has written all its rows. Those that another part of it has queued
    /// for the same are fired no more: they would be told of the same rows.
    pub(crate) fn ended(&mut self, set: &Arc<RuleSet>, table: usize, moment: TriggerType) {
        if let Some(rules) = set.tables.get(table) {
            self.cancel_ended(rules.table.oid, moment.event);
        }
        self.queue_ended(set, table, moment, 0);
    }

    fn queue_ended(&mut self, set: &Arc<RuleSet>, table: usize, moment: TriggerType, number: u64) {
        let Some(triggers) = set.tables.get(table).and_then(|t| t.triggers.as_deref()) else {
            return;
        };
        let captured = triggers.captures(moment);
        let captured = captured.then(|| self.action.capture(triggers.table.oid, moment.event));
        for (at, _) in triggers.at(moment) {
            let written = Arc::new(WrittenRow {
                event: moment.event,
                old: None,
                new: None,
                number,
                captured: captured.clone(),
            });
            // It is about no row.
            self.push(
                set,
                table,
                at,
                Rid(0),
                EventKind::AfterTrigger(written),
                false,
            );
        }
    }

    /// It has been asked: something is in the way of a row's key, and may still be when the constraint is due.
    pub(crate) fn defer(&mut self, set: &Arc<RuleSet>, event: &AfterTriggerEvent) {
        let (table, at) = (event.table as usize, event.rule as usize);
        self.push(set, table, at, event.rid, EventKind::Unique, true);
    }
}
