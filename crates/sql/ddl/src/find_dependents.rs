//! What depends on what, as `pg_depend` shows it: found in the catalog, and named as messages name it.
//!
//! Owns: views on relations and on their columns, foreign keys on tables, and generated columns on what they are made
//! of. Defaults that use a sequence are `column_defaults`'.
//!
//! Does not: know by itself which objects refer to an object (`dependents_index` of the catalog), drop anything
//! (`drop_dependents`), or give the rows of `pg_depend` (`pg_catalog::pg_depend`), which no statement here asks.

use crate::object_address::ObjectAddress;
use crate::relations;
use crate::relations::word_of;
use crate::types;
use logstead_sql_catalog::classes::PG_CONSTRAINT;
use logstead_sql_catalog::trigger::Trigger;
use logstead_sql_catalog::{Catalog, routine};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{FunctionId, RelationId};
use std::collections::HashSet;
use std::sync::Arc;

/// As messages name it.
pub(crate) fn describe(catalog: &Catalog, path: &[String], object: ObjectAddress) -> String {
    let table = |oid: &RelationId| {
        catalog.relations.get(oid).map_or_else(
            || "?".to_owned(),
            |r| relations::table_label(catalog, path, r),
        )
    };
    let word = |oid: &RelationId| {
        let relation = catalog.relations.get(oid);
        relation.and_then(|r| word_of(&r.kind)).unwrap_or("table")
    };
    match object {
        ObjectAddress::Relation(oid) => format!("{} {}", word(&oid), table(&oid)),
        ObjectAddress::Column(oid, position) => {
            let relation = catalog.relations.get(&oid);
            let column = relation.and_then(|r| r.columns.get(position));
            format!(
                "column {} of {} {}",
                column.map_or("?", |c| c.name.as_str()),
                word(&oid),
                table(&oid)
            )
        }
        ObjectAddress::DomainCheck(domain, check) => {
            let domain = catalog.types.get(domain).and_then(|t| t.domain());
            let found = domain.and_then(|d| d.checks.iter().find(|c| c.oid == check));
            format!("constraint {}", found.map_or("?", |c| c.name.as_str()))
        }
        ObjectAddress::Attribute(ty, number) => {
            let composite = catalog.types.get(ty).and_then(|t| t.composite());
            let found = composite.and_then(|c| c.attributes.iter().find(|a| a.number == number));
            format!(
                "column {} of composite type {}",
                found.map_or("?", |a| &a.name),
                catalog.types.lookup(path).format_type_bare(ty)
            )
        }
        ObjectAddress::Policy(owner, oid) => {
            let relation = catalog.relations.get(&owner);
            let policies = relation.map_or(&[][..], |r| &r.security.policies);
            let found = policies.iter().find(|policy| policy.oid == oid);
            let name = found.map_or("?", |policy| policy.name.as_str());
            format!("policy {name} on table {}", table(&owner))
        }
        ObjectAddress::Trigger(owner, oid) => {
            let found = catalog.triggers.of(owner).iter().find(|t| t.oid == oid);
            let name = found.map_or("?", |trigger| trigger.name.as_str());
            format!("trigger {name} on {} {}", word(&owner), table(&owner))
        }
        ObjectAddress::Routine(oid) => match catalog.routines.get(oid) {
            Some(routine) => {
                let name = catalog.routine_name(routine, path);
                // Procedures are told of as functions, too.
                format!(
                    "function {}",
                    routine.signature(&name, catalog.types.lookup(path))
                )
            }
            None => "function ?".to_owned(),
        },
        ObjectAddress::Type(oid) => {
            format!("type {}", catalog.types.lookup(path).format_type_bare(oid))
        }
        ObjectAddress::Default(oid, position) => format!(
            "default value for {}",
            describe(catalog, path, ObjectAddress::Column(oid, position))
        ),
        ObjectAddress::Index(_, oid) => {
            let name = catalog.name_of(oid).map_or("?", |(_, name)| name);
            format!("index {name}")
        }
        ObjectAddress::Foreign(oid, constraint) | ObjectAddress::Constraint(oid, constraint) => {
            let relation = catalog.relations.get(&oid);
            let found = relation.and_then(|r| r.constraints.iter().find(|c| c.oid == constraint));
            format!(
                "constraint {} on table {}",
                found.map_or("?", |c| c.name.as_str()),
                table(&oid)
            )
        }
    }
}

/// What depends on an object directly, newest first. Foreign keys of tables that go anyway do not.
fn direct(
    catalog: &Catalog,
    object: ObjectAddress,
    targets: &[ObjectAddress],
) -> Vec<ObjectAddress> {
    let (relation, column) = match object {
        ObjectAddress::Relation(oid) => (oid, None),
        ObjectAddress::Column(oid, position) => (oid, Some(position)),
        ObjectAddress::Type(oid) => return types::dependents_of(catalog, oid),
        ObjectAddress::Routine(oid) => return callers_of(catalog, oid),
        ObjectAddress::Constraint(_, oid) => return relying_on(catalog, oid, targets),
        _ => return Vec::new(),
    };
    let mut found: Vec<(Oid, ObjectAddress)> = Vec::new();
    for other in catalog.dependent_relations(relation) {
        if let Some(view) = other.view()
            && view.reads(relation, column)
        {
            found.push((view.rule, ObjectAddress::Relation(other.oid)));
        }
        // Those of a table that goes anyway go with it.
        let goes = targets.contains(&ObjectAddress::Relation(other.oid));
        for policy in other.security.policies.iter().filter(|_| !goes) {
            if policy.reads(relation, column) && (column.is_some() || other.oid != relation) {
                found.push((policy.oid, ObjectAddress::Policy(other.oid, policy.oid)));
            }
        }
    }
    if let Some(position) = column {
        for trigger in catalog.dependent_triggers(relation) {
            if trigger.reads(relation, position) {
                found.push((
                    trigger.oid,
                    ObjectAddress::Trigger(trigger.table, trigger.oid),
                ));
            }
        }
    }
    for (child, constraint) in catalog.references_to(relation) {
        let needed = constraint.foreign().is_some_and(|key| {
            column.is_none_or(|position| {
                let own = child.oid == relation && key.columns.contains(&position);
                key.referenced.contains(&position) && !own
            })
        });
        if needed && !targets.contains(&ObjectAddress::Relation(child.oid)) {
            found.push((
                constraint.oid,
                ObjectAddress::Foreign(child.oid, constraint.oid),
            ));
        }
    }
    if let (Some(position), Some(table)) = (column, catalog.relations.get(&relation)) {
        // Their numbers in PostgreSQL follow the table's.
        for (at, other) in table.columns.iter().enumerate().rev() {
            if !other.dropped && other.generated_from(table).contains(&position) {
                found.push((relation.get(), ObjectAddress::Column(relation, at)));
            }
        }
    }
    let mut found = newest_first(found);
    if column.is_none() && matches!(object, ObjectAddress::Relation(_)) {
        // The type of its rows, with what is of it.
        found.extend(
            catalog
                .types
                .row_type(relation)
                .map(|ty| ObjectAddress::Type(ty.oid)),
        );
    }
    found
}

/// Views and policies whose GROUP BY relies on a primary key, by its constraint; newest first.
fn relying_on(catalog: &Catalog, constraint: Oid, targets: &[ObjectAddress]) -> Vec<ObjectAddress> {
    let mut found: Vec<(Oid, ObjectAddress)> = Vec::new();
    for other in catalog.dependent_relations((PG_CONSTRAINT, constraint)) {
        if let Some(view) = other.view()
            && view.relies_on(constraint)
        {
            found.push((view.rule, ObjectAddress::Relation(other.oid)));
        }
        let goes = targets.contains(&ObjectAddress::Relation(other.oid));
        for policy in other.security.policies.iter().filter(|_| !goes) {
            if policy.conditions().any(|view| view.relies_on(constraint)) {
                found.push((policy.oid, ObjectAddress::Policy(other.oid, policy.oid)));
            }
        }
    }
    newest_first(found)
}

fn newest_first(mut found: Vec<(Oid, ObjectAddress)>) -> Vec<ObjectAddress> {
    found.sort_by_key(|(oid, _)| std::cmp::Reverse(*oid));
    found.into_iter().map(|(_, object)| object).collect()
}

/// What calls a function by what is kept of it: views, policies, defaults, checks, generated columns; newest first.
fn callers_of(catalog: &Catalog, routine: FunctionId) -> Vec<ObjectAddress> {
    let calls = |text: &str| routine::named_in(text).any(|named| named == routine);
    let mut found: Vec<(Oid, ObjectAddress)> = Vec::new();
    for relation in catalog.dependent_relations(routine) {
        if let Some(view) = relation.view()
            && calls(&view.query)
        {
            found.push((view.rule, ObjectAddress::Relation(relation.oid)));
        }
        for policy in &relation.security.policies {
            if policy.conditions().any(|view| calls(&view.query)) {
                found.push((policy.oid, ObjectAddress::Policy(relation.oid, policy.oid)));
            }
        }
        for (position, column) in relation.columns.iter().enumerate() {
            if !column.dropped && column.default.as_deref().is_some_and(calls) {
                // A generated column without what generates it is none.
                let object = match column.generated {
                    true => ObjectAddress::Column(relation.oid, position),
                    false => ObjectAddress::Default(relation.oid, position),
                };
                found.push((relation.oid.get(), object));
            }
        }
        for index in &relation.indexes {
            if index.texts().into_iter().any(calls) {
                found.push((
                    index.oid.get(),
                    ObjectAddress::Index(relation.oid, index.oid),
                ));
            }
        }
        for constraint in &relation.constraints {
            if constraint.check().is_some_and(calls) {
                found.push((
                    constraint.oid,
                    ObjectAddress::Constraint(relation.oid, constraint.oid),
                ));
            }
        }
    }
    for ty in catalog.dependent_types(routine) {
        if ty
            .range()
            .is_some_and(|range| range.difference == Some(routine))
        {
            found.push((ty.oid.get(), ObjectAddress::Type(ty.oid)));
        }
        let Some(domain) = ty.domain() else {
            continue;
        };
        if domain.default.as_deref().is_some_and(calls) {
            found.push((ty.oid.get(), ObjectAddress::Type(ty.oid)));
        }
        for check in domain.checks.iter().filter(|check| calls(&check.text)) {
            found.push((check.oid, ObjectAddress::DomainCheck(ty.oid, check.oid)));
        }
    }
    for other in catalog.dependent_routines(routine) {
        let mut defaults = other.args.iter().filter_map(|arg| arg.default.as_deref());
        let mut needs = other.aggregate.iter().flat_map(|own| own.functions());
        if other.oid != routine && (defaults.any(calls) || needs.any(|f| f == routine)) {
            found.push((other.oid.get(), ObjectAddress::Routine(other.oid)));
        }
    }
    for trigger in catalog.dependent_triggers(routine) {
        let asks = trigger.when.as_ref().is_some_and(|when| calls(&when.query));
        if trigger.function == routine || asks {
            found.push((
                trigger.oid,
                ObjectAddress::Trigger(trigger.table, trigger.oid),
            ));
        }
    }
    newest_first(found)
}

/// A trigger whose WHEN calls the function.
pub(crate) fn asking_trigger(catalog: &Catalog, routine: FunctionId) -> Option<&Trigger> {
    let calls = |text: &str| routine::named_in(text).any(|named| named == routine);
    let asks = |t: &&Arc<Trigger>| t.when.as_ref().is_some_and(|when| calls(&when.query));
    let mut all = catalog.dependent_triggers(routine).into_iter();
    all.find(asks).map(Arc::as_ref)
}

/// Everything that goes with `targets`, each with what it depends on, in the order in which PostgreSQL tells of them:
/// an object after what it depends on. The targets themselves are left out.
pub(crate) fn find_dependent_objects(
    catalog: &Catalog,
    targets: &[ObjectAddress],
) -> Vec<(ObjectAddress, ObjectAddress)> {
    let mut seen: HashSet<ObjectAddress> = HashSet::new();
    let mut found: Vec<(ObjectAddress, Option<ObjectAddress>)> = Vec::new();
    for target in targets {
        visit(catalog, *target, None, targets, &mut seen, &mut found);
    }
    // It tells of them backwards, the targets' own in turn.
    found.reverse();
    found
        .into_iter()
        // The array over a type is nothing of its own, nor is the type of a table's rows.
        .filter(|(object, _)| !matches!(object, ObjectAddress::Type(oid) if types::is_implied(*oid)))
        .filter(|(object, _)| !targets.contains(object) && !targets.contains(&whole(*object)))
        .filter_map(|(object, on)| Some((object, on?)))
        .collect()
}

/// What an object is a part of, and goes with; itself if of nothing.
fn whole(object: ObjectAddress) -> ObjectAddress {
    match object {
        ObjectAddress::Column(relation, _)
        | ObjectAddress::Default(relation, _)
        | ObjectAddress::Constraint(relation, _)
        | ObjectAddress::Index(relation, _)
        | ObjectAddress::Trigger(relation, _)
        | ObjectAddress::Policy(relation, _) => ObjectAddress::Relation(relation),
        ObjectAddress::DomainCheck(ty, _) | ObjectAddress::Attribute(ty, _) => {
            ObjectAddress::Type(ty)
        }
        other => other,
    }
}

fn visit(
    catalog: &Catalog,
    object: ObjectAddress,
    on: Option<ObjectAddress>,
    targets: &[ObjectAddress],
    seen: &mut HashSet<ObjectAddress>,
    found: &mut Vec<(ObjectAddress, Option<ObjectAddress>)>,
) {
    if !seen.insert(object) {
        return;
    }
    for other in direct(catalog, object, targets) {
        visit(catalog, other, Some(object), targets, seen, found);
    }
    for sequence in own_sequences(catalog, object) {
        for other in direct(catalog, sequence, targets) {
            visit(catalog, other, Some(sequence), targets, seen, found);
        }
    }
    found.push((object, on));
}

/// Sequences that go with a table or a column, and are nothing of their own.
fn own_sequences(catalog: &Catalog, object: ObjectAddress) -> Vec<ObjectAddress> {
    let (table, only) = match object {
        ObjectAddress::Relation(oid) => (oid, None),
        ObjectAddress::Column(oid, position) => (oid, Some(position)),
        _ => return Vec::new(),
    };
    let table = catalog.relations.get(&table);
    let columns = table
        .iter()
        .flat_map(|table| table.columns.iter().enumerate());
    columns
        .filter(|(at, column)| !column.dropped && only.is_none_or(|only| only == *at))
        .filter_map(|(_, column)| column.sequence.map(ObjectAddress::Relation))
        .collect()
}
