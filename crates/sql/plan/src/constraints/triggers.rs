//! Triggers of the tables that a statement writes, as its plan has them.
//!
//! They are kept with the rules: a written row that concerns one queues an event behind those of the constraints, as
//! PostgreSQL's own triggers for those come first by their names. The function is run when the statement has ended, by
//! the session (`exec::constraints` stops for it).

use crate::Callee;
use crate::query::expr::Expr;
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::trigger::{Trigger, TriggerEvent, TriggerTime};
use std::sync::Arc;

/// A trigger that a statement may fire.
pub struct PlannedTrigger {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// Its function.
    pub callee: Arc<Callee>,
    /// By what the statement itself fires it: UPDATE OF has been asked already.
    pub own: Vec<TriggerEvent>,
    /// By what actions of foreign keys fire it.
    pub by_actions: Vec<TriggerEvent>,
    /// WHEN, over the old row followed by the new one; of the one that there is not, all NULL.
    pub when: Option<Expr>,
}

/// When triggers fire in the course of a statement.
#[derive(Clone, Copy)]
pub struct TriggerType {
    /// BEFORE, AFTER or INSTEAD OF.
    pub time: TriggerTime,
    /// FOR EACH ROW.
    pub row: bool,
    /// What is done.
    pub event: TriggerEvent,
    /// An action of a foreign key does it.
    pub by_action: bool,
}

impl TriggerType {
    /// BEFORE, of a row.
    pub fn before(event: TriggerEvent) -> TriggerType {
        TriggerType {
            time: TriggerTime::Before,
            row: true,
            event,
            by_action: false,
        }
    }

    /// INSTEAD OF, of a row of a view.
    pub fn instead(event: TriggerEvent) -> TriggerType {
        TriggerType {
            time: TriggerTime::InsteadOf,
            ..TriggerType::before(event)
        }
    }

    /// AFTER, of a row.
    pub fn after(event: TriggerEvent) -> TriggerType {
        TriggerType {
            time: TriggerTime::After,
            ..TriggerType::before(event)
        }
    }

    /// The same of a whole statement.
    pub fn of_statement(self) -> TriggerType {
        TriggerType { row: false, ..self }
    }

    /// The same of what an action of a foreign key does.
    pub fn of_action(self) -> TriggerType {
        TriggerType {
            by_action: true,
            ..self
        }
    }
}

/// The triggers of a table that a statement may fire, in the order of their names.
pub struct TableTriggers {
    /// The table.
    pub table: Arc<Relation>,
    /// Never empty.
    pub fires: Vec<PlannedTrigger>,
    /// What the domains of columns ask of rows that triggers have made: (attribute position, the column with its
    /// rules).
    pub domains: Vec<(usize, Expr)>,
}

impl TableTriggers {
    /// Those that fire then, by their numbers.
    pub fn at(&self, when: TriggerType) -> impl Iterator<Item = (usize, &PlannedTrigger)> {
        let all = self.fires.iter().enumerate();
        all.filter(move |(_, fire)| {
            let events = match when.by_action {
                true => &fire.by_actions,
                false => &fire.own,
            };
            fire.trigger.time == when.time
                && fire.trigger.row == when.row
                && events.contains(&when.event)
        })
    }

    /// Has any that is fired by this tables of rows?
    pub fn captures(&self, moment: TriggerType) -> bool {
        let events = |fire: &PlannedTrigger| match moment.by_action {
            true => fire.by_actions.contains(&moment.event),
            false => fire.own.contains(&moment.event),
        };
        let mut all = self.fires.iter();
        all.any(|fire| fire.trigger.has_tables() && events(fire))
    }

    /// Does any fire then?
    pub fn any(&self, when: TriggerType) -> bool {
        self.at(when).next().is_some()
    }
}
