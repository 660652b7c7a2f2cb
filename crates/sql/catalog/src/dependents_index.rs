//! Which objects refer to an object: what DDL asks before it changes or drops one, as PostgreSQL asks `pg_depend` by
//! its index.
//!
//! Owns: [`Dependents`], the objects of a catalog by what their definitions refer to: relations, types and routines by
//! number, sequences of defaults, primary keys that a GROUP BY relies on, and the schema that an object is in.
//!
//! Invariants:
//! - It follows from the definitions alone. Whoever puts an object into a catalog, or takes one out, brings it up to
//!   date: [`Catalog::put_relation`] and `CatalogChange::apply`.
//! - It names at least what refers to an object. How it refers, and whether that is in the way, is for whoever asks to
//!   tell from the definition.
//! - A type stands for the array over it, too: nothing refers to the array.
//!
//! Does not: hold foreign keys, which plans ask for as well ([`Catalog::referencing`]), or roles, which are told of
//! with the privileges.

use super::routine::{Routine, named_in};
use super::trigger::Trigger;
use super::{Catalog, Relation, RelationKind};
use crate::classes::CatalogObject;
use logstead_sql_types::persistent::PersistentMap;
use logstead_sql_types::value::user::{UserType, of_users, row_type_of, types_named};
use logstead_sql_types::value::{Oid, SqlType};
use logstead_sql_types::{FunctionId, RelationId, TypeId};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// An object that refers to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Dependent {
    /// A relation.
    Relation(RelationId),
    /// A type.
    Type(TypeId),
    /// A function or procedure.
    Routine(FunctionId),
    /// A trigger: its table and its OID.
    Trigger(RelationId, Oid),
}

/// Objects by what they refer to.
#[derive(Clone, Default)]
pub struct Dependents(PersistentMap<Oid, PersistentMap<Dependent, ()>>);

impl Dependents {
    /// What an object refers to is no more `old`, but `new`.
    pub(super) fn replace(
        &mut self,
        dependent: Dependent,
        old: &BTreeSet<Oid>,
        new: &BTreeSet<Oid>,
    ) {
        for gone in old.difference(new) {
            let Some(mut all) = self.0.get(gone).cloned() else {
                continue;
            };
            all.remove(&dependent);
            match all.is_empty() {
                true => drop(self.0.remove(gone)),
                false => self.0.insert(*gone, all),
            }
        }
        for come in new.difference(old) {
            let mut all = self.0.get(come).cloned().unwrap_or_default();
            all.insert(dependent, ());
            self.0.insert(*come, all);
        }
    }

    /// What refers to an object, by kind and OID.
    fn of(&self, object: CatalogObject) -> Vec<Dependent> {
        let mut all: Vec<Dependent> = match self.0.get(&object.oid) {
            Some(all) => all.keys().copied().collect(),
            None => Vec::new(),
        };
        all.sort_unstable();
        all
    }

    /// All pairs of an object and what refers to it.
    pub fn all(&self) -> BTreeSet<(Oid, Dependent)> {
        let all = self.0.iter();
        all.flat_map(|(object, all)| all.keys().map(|dependent| (*object, *dependent)))
            .collect()
    }
}

/// How a constant that names a relation ends in a text that is kept; its number stands before, in quotes.
pub const REGCLASS_END: &str = "'::regclass";

/// The relations that constants of a stored expression name.
pub fn relations_named(stored: &str) -> impl Iterator<Item = RelationId> {
    regclass_constants(stored)
        .filter_map(move |place| stored[place].parse().ok().map(RelationId::new))
}

/// Where the numbers of relations stand in a stored expression.
pub fn regclass_constants(stored: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    stored
        .match_indices(REGCLASS_END)
        .filter_map(move |(end, _)| {
            let before = stored[..end].trim_end_matches(|c: char| c.is_ascii_digit());
            (before.ends_with('\'') && before.len() < end).then_some(before.len()..end)
        })
}

/// What a stored text refers to.
fn of_text(text: &str, found: &mut BTreeSet<Oid>) {
    found.extend(types_named(text).into_iter().map(TypeId::get));
    found.extend(named_in(text).map(FunctionId::get));
    found.extend(relations_named(text).map(RelationId::get));
}

fn of_type(ty: SqlType, found: &mut BTreeSet<Oid>) {
    found.extend(of_users(ty.oid).map(TypeId::get));
}

fn of_view(view: &super::View, found: &mut BTreeSet<Oid>) {
    found.extend(view.sources.iter().map(|source| source.object.number()));
    of_text(&view.query, found);
}

/// What a relation, with its columns, constraints, indexes and policies, refers to.
pub fn of_relation(relation: &Relation) -> BTreeSet<Oid> {
    let mut found = BTreeSet::new();
    if matches!(relation.kind, RelationKind::Virtual(_)) {
        return found;
    }
    found.insert(relation.schema.get());
    if let Some(view) = relation.view() {
        of_view(view, &mut found);
    }
    for column in relation.columns.iter().filter(|c| !c.dropped) {
        of_type(column.ty, &mut found);
        of_type(column.declared(), &mut found);
        found.extend(column.sequence.map(RelationId::get));
        if let Some(text) = &column.default {
            of_text(text, &mut found);
        }
    }
    for text in relation.constraints.iter().filter_map(|c| c.check()) {
        of_text(text, &mut found);
    }
    for text in relation.indexes.iter().flat_map(|i| i.texts()) {
        of_text(text, &mut found);
    }
    let policies = relation.security.policies.iter();
    for condition in policies.flat_map(|policy| policy.conditions()) {
        of_view(condition, &mut found);
    }
    found
}

/// What a type refers to.
pub fn of_user_type(ty: &UserType) -> BTreeSet<Oid> {
    let mut found = BTreeSet::from([ty.schema.get()]);
    for attribute in ty.composite().iter().flat_map(|c| &c.attributes) {
        of_type(attribute.ty, &mut found);
    }
    if let Some(range) = ty.range() {
        of_type(SqlType::of(range.subtype), &mut found);
        found.extend(range.difference.map(FunctionId::get));
    }
    if let Some(domain) = ty.domain() {
        of_type(domain.over, &mut found);
        of_type(domain.base, &mut found);
        for text in domain.texts() {
            of_text(text, &mut found);
        }
    }
    found
}

/// What a routine refers to. Its body is looked at when it is run.
pub fn of_routine(routine: &Routine) -> BTreeSet<Oid> {
    let mut found = BTreeSet::from([routine.schema.get()]);
    found.extend(routine.types().filter_map(of_users).map(TypeId::get));
    if let Some(aggregate) = &routine.aggregate {
        found.extend(aggregate.functions().map(FunctionId::get));
    }
    for text in routine.args.iter().filter_map(|arg| arg.default.as_deref()) {
        of_text(text, &mut found);
    }
    found
}

/// What a trigger refers to.
pub fn of_trigger(trigger: &Trigger) -> BTreeSet<Oid> {
    let mut found = BTreeSet::from([trigger.table.get(), trigger.function.get()]);
    if let Some(when) = &trigger.when {
        of_view(when, &mut found);
    }
    found
}

impl Catalog {
    /// Relations that refer to an object (a schema: those in it), oldest first.
    pub fn dependent_relations(&self, object: impl Into<CatalogObject>) -> Vec<&Arc<Relation>> {
        let all = self.dependents.of(object.into());
        let relations = all.into_iter().filter_map(|dependent| match dependent {
            Dependent::Relation(oid) => self.relations.get(&oid),
            _ => None,
        });
        relations.collect()
    }

    /// Types that refer to an object, oldest first.
    pub fn dependent_types(&self, object: impl Into<CatalogObject>) -> Vec<&Arc<UserType>> {
        let all = self.dependents.of(object.into());
        let types = all.into_iter().filter_map(|dependent| match dependent {
            Dependent::Type(oid) => self.types.get(oid),
            _ => None,
        });
        types.collect()
    }

    /// Routines that refer to an object, oldest first.
    pub fn dependent_routines(&self, object: impl Into<CatalogObject>) -> Vec<&Arc<Routine>> {
        let all = self.dependents.of(object.into());
        let routines = all.into_iter().filter_map(|dependent| match dependent {
            Dependent::Routine(oid) => self.routines.get(oid),
            _ => None,
        });
        routines.collect()
    }

    /// Triggers that refer to an object, by table and name.
    pub fn dependent_triggers(&self, object: impl Into<CatalogObject>) -> Vec<&Arc<Trigger>> {
        let all = self.dependents.of(object.into());
        let triggers = all.into_iter().filter_map(|dependent| match dependent {
            Dependent::Trigger(table, oid) => self.triggers.of(table).iter().find(|t| t.oid == oid),
            _ => None,
        });
        let mut triggers: Vec<_> = triggers.collect();
        triggers.sort_by_key(|trigger| (trigger.table, &trigger.name));
        triggers
    }

    /// Relations with columns of a type, of arrays over it, or of what such values are parts of, through whatever
    /// types; oldest first.
    pub fn relations_holding(&self, ty: TypeId) -> Vec<&Arc<Relation>> {
        let mut seen = HashSet::from([ty]);
        let mut due = vec![ty];
        let mut found: BTreeSet<RelationId> = BTreeSet::new();
        while let Some(ty) = due.pop() {
            for relation in self.dependent_relations(ty) {
                found.insert(relation.oid);
                let row = row_type_of(relation.oid);
                due.extend(row.filter(|row| seen.insert(*row)));
            }
            for other in self.dependent_types(ty) {
                if seen.insert(other.oid) {
                    due.push(other.oid);
                }
            }
        }
        found
            .into_iter()
            .filter_map(|oid| self.relations.get(&oid))
            .collect()
    }

    /// The table or view with the constraint of this OID.
    pub fn table_of_constraint(&self, constraint: Oid) -> Option<&Arc<Relation>> {
        self.relations.get(self.constraint_tables.get(&constraint)?)
    }
}
