//! The rules of a statement's tables, and how written rows become events.

use super::events::{Event, Events, What};
use super::rule::{ForeignRule, KeyParts, UniqueRule, bytes_of, values_of};
use super::triggers::{Moment, TableTriggers, Written};
use crate::catalog::trigger::TriggerEvent;
use crate::catalog::{Action, Relation, Timing};
use crate::context::Context;
use crate::error::Result;
use crate::exec::wanted_stored;
use crate::expr::Expr;
use crate::plan::Check;
use crate::value::{Datum, Oid};
use logstead_engine::{Engine, RowRef, Txn, WriteError};
use logstead_types::Rid;
use std::sync::Arc;

/// The rules of one table.
pub struct TableRules {
    /// The table.
    pub table: Arc<Relation>,
    /// Deferrable unique keys.
    pub(crate) unique: Vec<UniqueRule>,
    /// Foreign keys of the table.
    pub(crate) child: Vec<Arc<ForeignRule>>,
    /// Foreign keys that reference it.
    pub(crate) parent: Vec<Arc<ForeignRule>>,
    /// What rows changed by actions must fulfil.
    pub(crate) checks: Vec<Check>,
    /// Generated columns: (attribute position, value over the new full row).
    pub(crate) generated: Vec<(usize, Expr)>,
    /// What SET DEFAULT gives: (attribute position, value).
    pub(crate) defaults: Vec<(usize, Expr)>,
    /// Triggers.
    pub triggers: Option<Arc<TableTriggers>>,
    /// What the domains of columns ask: (attribute position, the column with its rules).
    pub(crate) domains: Vec<(usize, Expr)>,
}

/// The rules of the table a statement changes (the first) and of all tables that actions may change in turn.
pub struct RuleSet {
    /// Tables; the statement's own first.
    pub tables: Vec<TableRules>,
}

/// Where events go, and what is asked before they do.
pub(crate) struct Queue<'q> {
    pub(crate) txn: &'q mut Txn,
    pub(crate) engine: &'q Engine,
    pub(crate) events: &'q mut Events,
    /// What WHEN of triggers may ask.
    pub(crate) session: &'q dyn Context,
}

fn deferred(events: &Events, rule: &ForeignRule, action: Action) -> bool {
    // Only NO ACTION can be put off.
    action == Action::NoAction && events.modes.is_deferred(rule.oid, rule.timing)
}

impl RuleSet {
    /// Which table of the set has this OID.
    pub(crate) fn position(&self, table: Oid) -> Option<usize> {
        self.tables.iter().position(|t| t.table.oid == table)
    }

    /// The constraint of an event, and when it is judged.
    pub(super) fn constraint(&self, event: &Event) -> Option<(Oid, Timing)> {
        let rules = self.tables.get(event.table as usize)?;
        let at = event.rule as usize;
        Some(match event.what {
            What::Unique | What::Unasked => rules.unique.get(at).map(|r| (r.oid, r.timing))?,
            What::Referencing => rules.child.get(at).map(|r| (r.oid, r.timing))?,
            What::Fired(_) => {
                let fire = rules.triggers.as_ref()?.fires.get(at)?;
                let constraint = fire.trigger.constraint.as_ref()?;
                (constraint.oid, constraint.timing)
            }
            What::Deleted(_) | What::Updated(_) => {
                rules.parent.get(at).map(|r| (r.oid, r.timing))?
            }
        })
    }

    /// A row was inserted.
    pub(crate) fn inserted(
        self: &Arc<Self>,
        table: usize,
        rid: Rid,
        new: RowRef<'_>,
        queue: &mut Queue<'_>,
    ) -> Result<()> {
        let Some(rules) = self.tables.get(table) else {
            return Ok(());
        };
        for (at, rule) in rules.unique.iter().enumerate() {
            self.unique(table, at, rule, rid, queue)?;
        }
        let events = &mut *queue.events;
        for (at, rule) in rules.child.iter().enumerate() {
            if rule.parts(new) != KeyParts::Nothing {
                let deferred = events.modes.is_deferred(rule.oid, rule.timing);
                events.push(self, table, at, rid, What::Referencing, deferred);
            }
        }
        let moment = Moment::after(TriggerEvent::Insert);
        self.fire(table, rid, moment, (None, Some(new)), queue)
    }

    /// Queues the AFTER triggers of a row that was written.
    fn fire(
        self: &Arc<Self>,
        table: usize,
        rid: Rid,
        moment: Moment,
        (old, new): (Option<RowRef<'_>>, Option<RowRef<'_>>),
        queue: &mut Queue<'_>,
    ) -> Result<()> {
        let Some(triggers) = self.tables.get(table).and_then(|t| t.triggers.as_deref()) else {
            return Ok(());
        };
        let events = &mut *queue.events;
        let captured = match triggers.captures(moment) {
            false => None,
            true => {
                let captured = events.acting.capture(triggers.table.oid, moment.event);
                let bytes = |row: Option<RowRef<'_>>| row.map_or(0, |row| row.bytes().len());
                events.keep(bytes(old) + bytes(new), queue.engine.memory())?;
                captured.add(old.map(|row| row.bytes()), new.map(|row| row.bytes()));
                Some(captured)
            }
        };
        let mut written = None;
        let (mut kept, mut kept_later) = (false, false);
        for (at, fire) in triggers.at(moment) {
            if !wanted_stored(fire, &triggers.table, old, new, queue.session)? {
                continue;
            }
            let constraint = fire.trigger.constraint.as_ref();
            let deferred = constraint.is_some_and(|c| events.modes.is_deferred(c.oid, c.timing));
            let size = |row: Option<RowRef<'_>>| row.map_or(0, |row| row.bytes().len());
            let bytes = size(old) + size(new);
            match deferred {
                true if !std::mem::replace(&mut kept_later, true) => {
                    events.keep_later(bytes, queue.engine.memory())?;
                }
                false if !std::mem::replace(&mut kept, true) => {
                    events.keep(bytes, queue.engine.memory())?;
                }
                _ => {}
            }
            let written = match &written {
                Some(written) => Arc::clone(written),
                None => {
                    let row = Arc::new(Written {
                        event: moment.event,
                        old: old.map(|row| row.bytes().into()),
                        new: new.map(|row| row.bytes().into()),
                        number: 0,
                        captured: captured.clone(),
                    });
                    Arc::clone(written.insert(row))
                }
            };
            events.push(self, table, at, rid, What::Fired(written), deferred);
        }
        Ok(())
    }

    /// The same of an action: those that wait already wait no more.
    pub(crate) fn ended_action(
        self: &Arc<Self>,
        table: usize,
        moment: Moment,
        events: &mut Events,
    ) {
        let Some(rules) = self.tables.get(table) else {
            return;
        };
        let number = events.acting.end(rules.table.oid, moment.event);
        self.queue_ended(table, moment, number, events);
    }

    /// Queues the AFTER triggers of a statement that has written all its rows. Those that another part of it has queued for the same are fired no more: they
    /// would be told of the same rows.
    pub(crate) fn ended(self: &Arc<Self>, table: usize, moment: Moment, events: &mut Events) {
        if let Some(rules) = self.tables.get(table) {
            events.cancel_ended(rules.table.oid, moment.event);
        }
        self.queue_ended(table, moment, 0, events);
    }

    fn queue_ended(
        self: &Arc<Self>,
        table: usize,
        moment: Moment,
        number: u64,
        events: &mut Events,
    ) {
        let Some(triggers) = self.tables.get(table).and_then(|t| t.triggers.as_deref()) else {
            return;
        };
        let captured = triggers.captures(moment);
        let captured = captured.then(|| events.acting.capture(triggers.table.oid, moment.event));
        for (at, _) in triggers.at(moment) {
            let written = Arc::new(Written {
                event: moment.event,
                old: None,
                new: None,
                number,
                captured: captured.clone(),
            });
            // It is about no row.
            events.push(self, table, at, Rid(0), What::Fired(written), false);
        }
    }

    /// A row has got a key that must be alone. Nothing is queued if no other row has it or may come to have it by what is in
    /// flight: whoever takes the key later meets this row. What could not be looked at, because something is not in memory, is asked again when the statement
    /// ends, not when the constraint is due: by then somebody may have taken the key after this row, and wait for it.
    fn unique(
        self: &Arc<Self>,
        table: usize,
        at: usize,
        rule: &UniqueRule,
        rid: Rid,
        queue: &mut Queue<'_>,
    ) -> Result<()> {
        let (rows, index) = rule.storage(queue.engine)?;
        let Err(error) = queue.txn.check_unique(rows, index, rid) else {
            return Ok(());
        };
        let events = &mut *queue.events;
        let deferred = events.modes.is_deferred(rule.oid, rule.timing);
        if deferred && matches!(error, WriteError::Absent(_)) {
            events.push(self, table, at, rid, What::Unasked, false);
        } else {
            events.push(self, table, at, rid, What::Unique, deferred);
        }
        Ok(())
    }

    /// It has been asked: something is in the way of a row's key, and may still be when the constraint is due.
    pub(crate) fn put_off(self: &Arc<Self>, event: &Event, events: &mut Events) {
        let (table, at) = (event.table as usize, event.rule as usize);
        events.push(self, table, at, event.rid, What::Unique, true);
    }

    /// A row was updated.
    pub(crate) fn updated(
        self: &Arc<Self>,
        table: usize,
        rid: Rid,
        old: RowRef<'_>,
        new: RowRef<'_>,
        by_action: bool,
        queue: &mut Queue<'_>,
    ) -> Result<()> {
        let Some(rules) = self.tables.get(table) else {
            return Ok(());
        };
        let relation = &rules.table;
        let differs =
            |position| bytes_of(relation, old, position) != bytes_of(relation, new, position);
        for (at, rule) in rules.unique.iter().enumerate() {
            let mut key = rule.index.columns.iter().filter_map(|c| c.position());
            if key.any(differs) {
                self.unique(table, at, rule, rid, queue)?;
            }
        }
        let events = &mut *queue.events;
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
            events.push(self, table, at, rid, What::Updated(values.into()), deferred);
        }
        for (at, rule) in rules.child.iter().enumerate() {
            if rule.child_columns().any(differs)
                && rule.parts(new) != KeyParts::Nothing
                && !rule.same_child_key(old, new)
            {
                let deferred = events.modes.is_deferred(rule.oid, rule.timing);
                events.push(self, table, at, rid, What::Referencing, deferred);
            }
        }
        let moment = Moment {
            by_action,
            ..Moment::after(TriggerEvent::Update)
        };
        self.fire(table, rid, moment, (Some(old), Some(new)), queue)
    }

    /// A row was deleted.
    pub(crate) fn deleted(
        self: &Arc<Self>,
        table: usize,
        rid: Rid,
        old: RowRef<'_>,
        by_action: bool,
        queue: &mut Queue<'_>,
    ) -> Result<()> {
        let Some(rules) = self.tables.get(table) else {
            return Ok(());
        };
        let events = &mut *queue.events;
        for (at, rule) in rules.parent.iter().enumerate() {
            let values = values_of(&rules.table, old, rule.parent_columns())?;
            // A row with a NULL in its key cannot have been referenced.
            if !values.iter().any(Datum::is_null) {
                let deferred = deferred(events, rule, rule.on_delete);
                events.push(self, table, at, rid, What::Deleted(values.into()), deferred);
            }
        }
        let moment = Moment {
            by_action,
            ..Moment::after(TriggerEvent::Delete)
        };
        self.fire(table, rid, moment, (Some(old), None), queue)
    }
}
