//! `pg_constraint`.
//!
//! Owns: the rows of constraints, of tables and of domains, with the columns and operators of each.

use super::cells::{Ch, Id, Nil, OidOrZero, int2_array, row};
use super::relations::{Rows, attribute_number, numbers, ordered};
use logstead_sql_catalog::{
    Catalog, Constraint, ConstraintKind, ForeignKey, Relation, VirtualContext,
};
use logstead_sql_types::value::{Array, Datum, SqlType, oid};
use std::sync::Arc;

/// Attribute numbers a constraint speaks of.
pub(super) fn constraint_columns(relation: &Relation, constraint: &Constraint) -> Vec<i16> {
    match &constraint.kind {
        ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => relation
            .indexes
            .iter()
            .find(|i| i.oid == *index)
            .map(|i| {
                i.columns
                    .iter()
                    .filter_map(|k| k.position().map(attribute_number))
                    .collect()
            })
            .unwrap_or_default(),
        ConstraintKind::Check(text) => {
            let mentioned = logstead_sql_catalog::text::columns_in(text, relation);
            mentioned.into_iter().map(attribute_number).collect()
        }
        ConstraintKind::Foreign(key) => numbers(&key.columns),
    }
}

/// Which columns an equality of a foreign key compares.
#[derive(Clone, Copy)]
enum Side {
    Both,
    Parent,
    Child,
}

/// The equality operators of a foreign key's columns.
fn equalities(catalog: &Catalog, child: &Relation, key: &ForeignKey, side: Side) -> Datum {
    let parent = catalog.relations.get(&key.table);
    let ty = |relation: Option<&Relation>, position: &usize| {
        let column = relation.and_then(|r| r.columns.get(*position));
        SqlType::of(column.map_or(oid::INVALID, |c| c.ty.oid))
    };
    let operators = key.columns.iter().zip(&key.referenced).map(|(own, other)| {
        let own = ty(Some(child), own);
        let other = ty(parent.map(|p| &**p), other);
        let (left, right) = match side {
            Side::Both => (other, own),
            Side::Parent => (other, other),
            Side::Child => (own, own),
        };
        let found =
            logstead_sql_func::resolve_operator("=", Some(left), right, catalog.types.lookup(&[]))
                .ok();
        Datum::Oid(found.and_then(|r| r.operator).map_or(0, |o| o.oid))
    });
    Datum::Array(Arc::new(Array {
        element: oid::OID,
        lower: 1,
        shape: None,
        items: operators.collect(),
    }))
}

/// `pg_constraint`
pub(super) fn pg_constraint(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for relation in ordered(cx.catalog) {
        for constraint in &relation.constraints {
            let (kind, index, text) = match &constraint.kind {
                ConstraintKind::Check(text) => ('c', None, Some(text)),
                ConstraintKind::PrimaryKey(index) => ('p', Some(*index), None),
                ConstraintKind::Unique(index) => ('u', Some(*index), None),
                ConstraintKind::Foreign(key) => ('f', Some(key.index), None),
            };
            let key = constraint.foreign();
            let code = |code: fn(&ForeignKey) -> char| Ch(key.map_or(' ', code));
            rows.push(row![
                Id(constraint.oid),
                &constraint.name,
                relation.schema,
                Ch(kind),
                constraint.timing.is_deferrable(),
                constraint.timing.is_deferred(),
                constraint.validated,
                relation.oid,
                Id(0),
                OidOrZero(index),
                Id(0),
                OidOrZero(key.map(|k| k.table)),
                code(|k| k.on_update.code()),
                code(|k| k.on_delete.code()),
                code(|k| if k.full { 'f' } else { 's' }),
                true,
                0_i32,
                kind != 'c',
                int2_array(constraint_columns(relation, constraint)),
                key.map(|k| int2_array(numbers(&k.referenced))),
                key.map(|k| equalities(cx.catalog, relation, k, Side::Both)),
                key.map(|k| equalities(cx.catalog, relation, k, Side::Parent)),
                key.map(|k| equalities(cx.catalog, relation, k, Side::Child)),
                key.filter(|k| !k.set_columns.is_empty())
                    .map(|k| int2_array(numbers(&k.set_columns))),
                Nil,
                text,
            ]);
        }
    }
    for trigger in cx.catalog.triggers.all() {
        let Some(constraint) = &trigger.constraint else {
            continue;
        };
        let Some(relation) = cx.catalog.relations.get(&trigger.table) else {
            continue;
        };
        rows.push(row![
            Id(constraint.oid),
            &constraint.name,
            relation.schema,
            Ch('t'),
            constraint.timing.is_deferrable(),
            constraint.timing.is_deferred(),
            true,
            relation.oid,
            Id(0),
            Id(0),
            Id(0),
            Id(0),
            Ch(' '),
            Ch(' '),
            Ch(' '),
            true,
            0_i32,
            true,
            Nil,
            Nil,
            Nil,
            Nil,
            Nil,
            Nil,
            Nil,
            Nil,
        ]);
    }
    for ty in cx.catalog.types.all() {
        let checks = ty.domain().map_or(&[][..], |d| &d.checks);
        for check in checks {
            rows.push(row![
                Id(check.oid),
                &check.name,
                ty.schema,
                Ch('c'),
                false,
                false,
                check.validated,
                Id(0),
                ty.oid,
                Id(0),
                Id(0),
                Id(0),
                Ch(' '),
                Ch(' '),
                Ch(' '),
                true,
                0_i32,
                false,
                Nil,
                Nil,
                Nil,
                Nil,
                Nil,
                Nil,
                Nil,
                &check.text,
            ]);
        }
    }
    Ok(rows)
}
