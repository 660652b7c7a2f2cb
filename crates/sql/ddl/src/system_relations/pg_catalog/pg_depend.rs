//! The rows of `pg_depend`, for clients: what cannot be dropped without what. DROP itself asks `find_dependents`.

use super::cells::{Ch, Id, row};
use super::constraints::constraint_columns;
use super::extensions::PLPGSQL;
use super::relations::{attrdef_oid, attribute_number, live_columns, ordered};
use logstead_sql_catalog::classes::{
    CatalogObject, PG_ATTRDEF, PG_CONSTRAINT, PG_EXTENSION, PG_POLICY, PG_REWRITE, PG_TRIGGER,
};
use logstead_sql_catalog::routine::{self, LANGUAGE_PLPGSQL, Language};
use logstead_sql_catalog::{ConstraintKind, ViewObject, VirtualContext};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::UserKind;
use logstead_sql_types::value::{Datum, FIRST_USER_OID, user};
use logstead_sql_types::{FunctionId, RelationId, TypeId};
use std::collections::BTreeSet;

/// OID of `pg_language`.
const PG_LANGUAGE: RelationId = RelationId::new(2612);

type Rows = Result<Vec<Vec<Datum>>>;

fn dependency(
    object: impl Into<CatalogObject>,
    sub: i32,
    on: impl Into<CatalogObject>,
    on_sub: i32,
    kind: char,
) -> Vec<Datum> {
    let (object, on) = (object.into(), on.into());
    row![
        object.class,
        Id(object.oid),
        sub,
        on.class,
        Id(on.oid),
        on_sub,
        Ch(kind)
    ]
}

/// The functions that a text that is kept names, each once.
fn named_once(text: &str) -> BTreeSet<FunctionId> {
    routine::named_in(text).collect()
}

/// `pg_depend`: what clients follow it for: owned sequences, defaults, indexes of constraints, columns of both.
pub(super) fn pg_depend(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    rows.push(dependency(
        (PG_LANGUAGE, LANGUAGE_PLPGSQL),
        0,
        (PG_EXTENSION, PLPGSQL),
        0,
        'e',
    ));
    for extension in cx.catalog.types.extensions() {
        for function in super::functions::of_extension(&extension.name) {
            rows.push(dependency(
                function,
                0,
                (PG_EXTENSION, extension.oid),
                0,
                'e',
            ));
        }
        let own = (PG_EXTENSION, extension.oid);
        rows.push(dependency(own, 0, extension.schema, 0, 'n'));
    }
    for routine in cx.catalog.routines.all() {
        let mut on: Vec<CatalogObject> = vec![routine.schema.into()];
        if routine.language == Language::PlPgSql {
            on.push((PG_LANGUAGE, LANGUAGE_PLPGSQL).into());
        }
        let own = routine.types().filter(|ty| user::class(*ty).is_some());
        on.extend(own.map(CatalogObject::from));
        let defaults = routine.args.iter().filter_map(|arg| arg.default.as_deref());
        on.extend(
            defaults
                .flat_map(routine::named_in)
                .map(CatalogObject::from),
        );
        let needs = routine.aggregate.iter().flat_map(|own| own.functions());
        // Of what the server has itself nothing is told.
        let needs = needs.filter(|f| cx.catalog.routines.get(*f).is_some());
        on.extend(needs.map(CatalogObject::from));
        for object in on {
            let row = dependency(routine.oid, 0, object, 0, 'n');
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
    }
    for ty in cx.catalog.types.all() {
        rows.push(dependency(ty.oid, 0, ty.schema, 0, 'n'));
        rows.push(dependency(user::array_over(ty.oid), 0, ty.oid, 0, 'i'));
        if let Some(range) = ty.range() {
            let multirange = user::multirange_over(ty.oid);
            let of = |object: TypeId, on: TypeId| dependency(object, 0, on, 0, 'i');
            rows.push(of(multirange, ty.oid));
            rows.push(of(user::array_over(multirange), multirange));
            if user::class(range.subtype).is_some() {
                let on = range.subtype;
                rows.push(dependency(ty.oid, 0, on, 0, 'n'));
            }
            let users = |function: &FunctionId| function.get() >= FIRST_USER_OID;
            if let Some(on) = range.difference.filter(users) {
                rows.push(dependency(ty.oid, 0, on, 0, 'n'));
            }
        }
        if matches!(ty.kind, UserKind::Base) {
            let extension = logstead_sql_catalog::extensions::extension_of(ty.oid);
            rows.push(dependency(ty.oid, 0, (PG_EXTENSION, extension), 0, 'e'));
        }
        if let Some(composite) = ty.composite() {
            // As a relation it is the type's, and of its attributes' types.
            let relation = composite.relation;
            rows.push(dependency(relation, 0, ty.oid, 0, 'i'));
            for attribute in &composite.attributes {
                let (number, of) = (i32::from(attribute.number), attribute.ty.oid);
                if user::class(of).is_some() {
                    rows.push(dependency(relation, number, of, 0, 'n'));
                }
            }
        }
        let Some(domain) = ty.domain() else {
            continue;
        };
        if user::class(domain.over.oid).is_some() {
            rows.push(dependency(ty.oid, 0, domain.over.oid, 0, 'n'));
        }
        for called in named_once(domain.default.as_deref().unwrap_or_default()) {
            rows.push(dependency(ty.oid, 0, called, 0, 'n'));
        }
        for check in &domain.checks {
            for called in named_once(&check.text) {
                let of = (PG_CONSTRAINT, check.oid);
                rows.push(dependency(of, 0, called, 0, 'n'));
            }
            rows.push(dependency((PG_CONSTRAINT, check.oid), 0, ty.oid, 0, 'a'));
        }
    }
    for relation in ordered(cx.catalog) {
        let table = relation.oid;
        rows.push(dependency(table, 0, relation.schema, 0, 'n'));
        if let Some(row) = cx.catalog.types.row_type(table) {
            rows.push(dependency(row.oid, 0, table, 0, 'i'));
            rows.push(dependency(user::array_over(row.oid), 0, row.oid, 0, 'i'));
        }
        for (position, column) in live_columns(relation) {
            let number = i32::from(attribute_number(position));
            let declared = column.declared().oid;
            if user::class(declared).is_some() {
                rows.push(dependency(table, number, declared, 0, 'n'));
            }
            if column.default.is_some() {
                let default = attrdef_oid(table, position);
                let kind = if column.generated { 'i' } else { 'a' };
                rows.push(dependency((PG_ATTRDEF, default), 0, table, number, kind));
                let text = column.default.as_deref().unwrap_or_default();
                for called in named_once(text) {
                    rows.push(dependency((PG_ATTRDEF, default), 0, called, 0, 'n'));
                }
                for base in column.generated_from(relation) {
                    let base = i32::from(attribute_number(base));
                    rows.push(dependency((PG_ATTRDEF, default), 0, table, base, 'n'));
                }
                if let (Some(sequence), None) = (column.sequence, column.identity) {
                    rows.push(dependency((PG_ATTRDEF, default), 0, sequence, 0, 'n'));
                }
            }
            if let Some(sequence) = column.sequence {
                let kind = if column.identity.is_some() { 'i' } else { 'a' };
                rows.push(dependency(sequence, 0, table, number, kind));
            }
        }
        if let Some(view) = relation.view() {
            let mut on = |object: CatalogObject, sub, kind| {
                let row = dependency((PG_REWRITE, view.rule), 0, object, sub, kind);
                if !rows.contains(&row) {
                    rows.push(row);
                }
            };
            for source in &view.sources {
                if let ViewObject::Key(constraint) = source.object {
                    on((PG_CONSTRAINT, constraint).into(), 0, 'n');
                }
            }
            for called in routine::named_in(&view.query) {
                on(called.into(), 0, 'n');
            }
            on(table.into(), 0, 'i');
            for source in &view.sources {
                let ViewObject::Relation(read) = source.object else {
                    continue;
                };
                if source.used.is_empty() {
                    on(read.into(), 0, 'n');
                }
                for position in &source.used {
                    on(read.into(), i32::from(attribute_number(*position)), 'n');
                }
            }
        }
        for policy in &relation.security.policies {
            for view in policy.conditions() {
                for called in routine::named_in(&view.query) {
                    let row = dependency((PG_POLICY, policy.oid), 0, called, 0, 'n');
                    if !rows.contains(&row) {
                        rows.push(row);
                    }
                }
            }
            let mut on = |relation: RelationId, sub, kind| {
                let row = dependency((PG_POLICY, policy.oid), 0, relation, sub, kind);
                if !rows.contains(&row) {
                    rows.push(row);
                }
            };
            on(table, 0, 'a');
            let sources = policy.conditions().flat_map(|view| &view.sources);
            for source in sources {
                let ViewObject::Relation(read) = source.object else {
                    continue;
                };
                if source.used.is_empty() && read != table {
                    on(read, 0, 'n');
                }
                for position in &source.used {
                    on(read, i32::from(attribute_number(*position)), 'n');
                }
            }
        }
        for trigger in cx.catalog.triggers.of(table) {
            let mut on = |object: CatalogObject, sub, kind| {
                let row = dependency((PG_TRIGGER, trigger.oid), 0, object, sub, kind);
                if !rows.contains(&row) {
                    rows.push(row);
                }
            };
            // Nothing tells of what depends on what is always there.
            if trigger.function.get() >= FIRST_USER_OID {
                on(trigger.function.into(), 0, 'n');
            }
            on(table.into(), 0, 'a');
            if let Some(from) = trigger.constraint.as_ref().and_then(|c| c.from) {
                on(from.into(), 0, 'a');
            }
            let sources = trigger.when.iter().flat_map(|when| &when.sources);
            let used = sources.flat_map(|source| &source.used);
            for position in trigger.columns.iter().chain(used) {
                on(table.into(), i32::from(attribute_number(*position)), 'n');
            }
            let called = trigger.when.iter();
            for called in called.flat_map(|when| routine::named_in(&when.query)) {
                on(called.into(), 0, 'n');
            }
        }
        for constraint in &relation.constraints {
            for called in named_once(constraint.check().unwrap_or_default()) {
                let of = (PG_CONSTRAINT, constraint.oid);
                rows.push(dependency(of, 0, called, 0, 'n'));
            }
            for number in constraint_columns(relation, constraint) {
                rows.push(dependency(
                    (PG_CONSTRAINT, constraint.oid),
                    0,
                    table,
                    i32::from(number),
                    'a',
                ));
            }
            // A foreign key needs the other key: by this pg_restore knows in which order to make them.
            if let Some(key) = constraint.foreign() {
                let mut on = vec![(key.index, 0)];
                on.extend(key.referenced.iter().map(|position| {
                    let number = attribute_number(*position);
                    (key.table, i32::from(number))
                }));
                for (object, number) in on {
                    let of = (PG_CONSTRAINT, constraint.oid);
                    rows.push(dependency(of, 0, object, number, 'n'));
                }
            }
        }
        for index in &relation.indexes {
            let owner = relation.constraints.iter().find(|c| {
                matches!(&c.kind, ConstraintKind::PrimaryKey(i) | ConstraintKind::Unique(i) if *i == index.oid)
            });
            if let Some(constraint) = owner {
                rows.push(dependency(
                    index.oid,
                    0,
                    (PG_CONSTRAINT, constraint.oid),
                    0,
                    'i',
                ));
            } else {
                for position in index.mentions(relation) {
                    let number = i32::from(attribute_number(position));
                    rows.push(dependency(index.oid, 0, table, number, 'a'));
                }
            }
        }
    }
    Ok(rows)
}
