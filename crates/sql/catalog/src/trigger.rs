//! Triggers: functions that are called when rows of a table or view are written.
//!
//! Owns: [`Trigger`] and [`Triggers`], a catalog's list of them. WHEN is kept as a policy's condition is: `SELECT
//! (condition) FROM` the table twice, as `old` and as `new`, sources 0 and 1. So tables and columns may be renamed, and
//! what it names are its dependencies.
//!
//! Invariants:
//! - The triggers of a table change only under its ACCESS EXCLUSIVE lock: who runs a plan that was made with them holds
//!   the table.
//! - Those of one table are in the order of their names, which is the order in which they fire.
//! - A catalog without triggers has an empty map, and nobody who plans for a table looks further than that.

use super::{Timing, View};
pub use logstead_sql_parse::{TriggerEvent, TriggerTime};
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::Oid;
use logstead_sql_types::{FunctionId, RelationId};
use std::sync::Arc;

/// ENABLE and DISABLE TRIGGER.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TriggerEnabled {
    Origin,
    Disabled,
    Replica,
    Always,
}

impl TriggerEnabled {
    /// `pg_trigger.tgenabled`
    pub fn letter(self) -> char {
        match self {
            TriggerEnabled::Origin => 'O',
            TriggerEnabled::Disabled => 'D',
            TriggerEnabled::Replica => 'R',
            TriggerEnabled::Always => 'A',
        }
    }

    pub(super) fn of_letter(letter: u8) -> Option<TriggerEnabled> {
        let all = [
            TriggerEnabled::Origin,
            TriggerEnabled::Disabled,
            TriggerEnabled::Replica,
            TriggerEnabled::Always,
        ];
        all.into_iter()
            .find(|state| state.letter() == char::from(letter))
    }

    /// Does it fire in a session whose `session_replication_role` is replica, or is not?
    pub fn fires(self, replica: bool) -> bool {
        match self {
            TriggerEnabled::Always => true,
            TriggerEnabled::Origin => !replica,
            TriggerEnabled::Replica => replica,
            TriggerEnabled::Disabled => false,
        }
    }
}

/// Functions of triggers that are there without anybody's having made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BuiltInTrigger {
    /// A row that an UPDATE leaves as it is is not written.
    SuppressRedundantUpdates,
    /// A tsvector of columns, by a configuration that is named.
    TsvectorUpdate,
    /// The same, by a configuration that a column names.
    TsvectorUpdateColumn,
}

impl BuiltInTrigger {
    const ALL: [(BuiltInTrigger, FunctionId, &'static str); 3] = [
        (
            BuiltInTrigger::SuppressRedundantUpdates,
            FunctionId::new(1291),
            "suppress_redundant_updates_trigger",
        ),
        (
            BuiltInTrigger::TsvectorUpdate,
            FunctionId::new(3752),
            "tsvector_update_trigger",
        ),
        (
            BuiltInTrigger::TsvectorUpdateColumn,
            FunctionId::new(3753),
            "tsvector_update_trigger_column",
        ),
    ];

    /// By the number that it has in `pg_proc`, with its name.
    pub fn by_oid(oid: FunctionId) -> Option<(BuiltInTrigger, &'static str)> {
        let found = BuiltInTrigger::ALL
            .iter()
            .find(|(_, known, _)| *known == oid);
        found.map(|(which, _, name)| (*which, *name))
    }

    /// Its number by its name.
    pub fn named(name: &str) -> Option<FunctionId> {
        let found = BuiltInTrigger::ALL
            .iter()
            .find(|(.., known)| *known == name);
        found.map(|(_, oid, _)| *oid)
    }
}

/// A trigger.
#[derive(Clone, Debug)]
pub struct Trigger {
    /// `pg_trigger.oid`
    pub oid: Oid,
    /// Its name, once in a table.
    pub name: String,
    /// Its table or view.
    pub table: RelationId,
    /// What it calls.
    pub function: FunctionId,
    /// When it fires.
    pub time: TriggerTime,
    /// FOR EACH ROW.
    pub row: bool,
    /// Bits of what makes it fire ([`TriggerEvent::bit`]).
    pub events: u8,
    /// UPDATE OF: positions; of any column if empty.
    pub columns: Vec<usize>,
    /// WHEN.
    pub when: Option<Arc<View>>,
    /// `TG_ARGV`.
    pub args: Vec<String>,
    /// Whether it fires.
    pub enabled: TriggerEnabled,
    /// CONSTRAINT: it may be put off.
    pub constraint: Option<TriggerConstraint>,
    /// OLD TABLE AS.
    pub old_table: Option<String>,
    /// NEW TABLE AS.
    pub new_table: Option<String>,
}

/// What a constraint trigger is besides.
#[derive(Clone, Debug)]
pub struct TriggerConstraint {
    /// `pg_constraint.oid`
    pub oid: Oid,
    /// `pg_constraint.conname`: what the trigger was called when it was made.
    pub name: String,
    /// When it fires.
    pub timing: Timing,
    /// FROM, which says nothing here.
    pub from: Option<RelationId>,
}

impl Trigger {
    /// Does the event make it fire?
    pub fn is_about(&self, event: TriggerEvent) -> bool {
        self.events & event.bit() != 0
    }

    /// Does an UPDATE of these columns make it fire, by the columns that it names?
    pub fn concerns(&self, updated: &[usize]) -> bool {
        self.columns.is_empty() || self.columns.iter().any(|c| updated.contains(c))
    }

    /// Has it tables of the rows that a statement has changed?
    pub fn has_tables(&self) -> bool {
        self.old_table.is_some() || self.new_table.is_some()
    }

    /// Does it fire then, in a session that is a replica or is none?
    pub fn fires(&self, replica: bool, time: TriggerTime, row: bool, event: TriggerEvent) -> bool {
        self.enabled.fires(replica) && self.time == time && self.row == row && self.is_about(event)
    }

    /// `pg_trigger.tgtype`
    pub fn bits(&self) -> i16 {
        let time = match self.time {
            TriggerTime::Before => 1 << 1,
            TriggerTime::After => 0,
            TriggerTime::InsteadOf => 1 << 6,
        };
        i16::from(u8::from(self.row)) | time | i16::from(self.events)
    }

    /// Does it name that column, in UPDATE OF or WHEN?
    pub fn reads(&self, relation: RelationId, column: usize) -> bool {
        (relation == self.table && self.columns.contains(&column))
            || self
                .when
                .as_ref()
                .is_some_and(|when| when.reads(relation, Some(column)))
    }
}

/// All triggers of a database, by their tables.
#[derive(Clone, Default)]
pub struct Triggers {
    by_table: PersistentMap<RelationId, Vec<Arc<Trigger>>>,
    /// Table OID by trigger OID.
    tables: PersistentMap<Oid, RelationId>,
    /// How many are of each event, in the order of [`TriggerEvent::ALL`].
    events: [usize; 4],
}

impl Triggers {
    /// Those of a table, in the order in which they fire.
    pub fn of(&self, table: RelationId) -> &[Arc<Trigger>] {
        self.by_table.get(&table).map_or(&[][..], Vec::as_slice)
    }

    /// One of a table by its name.
    pub fn named(&self, table: RelationId, name: &str) -> Option<&Arc<Trigger>> {
        self.of(table).iter().find(|trigger| trigger.name == name)
    }

    /// That with this OID.
    pub fn get(&self, oid: Oid) -> Option<&Arc<Trigger>> {
        let table = self.tables.get(&oid)?;
        self.of(*table).iter().find(|t| t.oid == oid)
    }

    /// Are there none?
    pub fn is_empty(&self) -> bool {
        self.by_table.is_empty()
    }

    /// Is any of them of this event?
    pub fn any_of(&self, event: TriggerEvent) -> bool {
        let mut all = TriggerEvent::ALL.iter().zip(self.events);
        all.any(|(of, count)| *of == event && count > 0)
    }

    /// All of them, by table and name.
    pub fn all(&self) -> Vec<&Arc<Trigger>> {
        let mut all: Vec<_> = self.by_table.values().flatten().collect();
        all.sort_by_key(|trigger| (trigger.table, &trigger.name));
        all
    }

    /// Adds or replaces one.
    pub(super) fn put(&mut self, trigger: Arc<Trigger>) {
        self.remove(trigger.table, trigger.oid);
        self.count(&trigger, |events| events + 1);
        let table = trigger.table;
        self.tables.insert(trigger.oid, table);
        let mut list = self.by_table.remove(&table).unwrap_or_default();
        let at = list.partition_point(|old| old.name < trigger.name);
        list.insert(at, trigger);
        self.by_table.insert(table, list);
    }

    fn count(&mut self, trigger: &Trigger, change: impl Fn(usize) -> usize) {
        for (event, events) in TriggerEvent::ALL.iter().zip(&mut self.events) {
            if trigger.is_about(*event) {
                *events = change(*events);
            }
        }
    }

    /// Takes one out.
    pub(super) fn remove(&mut self, table: RelationId, oid: Oid) {
        let (gone, kept): (Vec<_>, Vec<_>) =
            self.take(table).into_iter().partition(|t| t.oid == oid);
        for trigger in &kept {
            self.tables.insert(trigger.oid, table);
            self.count(trigger, |events| events + 1);
        }
        drop(gone);
        if !kept.is_empty() {
            self.by_table.insert(table, kept);
        }
    }

    /// Takes those of a table out, and gives them.
    pub(super) fn take(&mut self, table: RelationId) -> Vec<Arc<Trigger>> {
        let taken = self.by_table.remove(&table).unwrap_or_default();
        for trigger in &taken {
            self.tables.remove(&trigger.oid);
            self.count(trigger, |events| events.saturating_sub(1));
        }
        taken
    }
}
