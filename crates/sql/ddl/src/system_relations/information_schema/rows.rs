//! Rows of the views.

use crate::pg_catalog::cells::{Nil, row};
use crate::pg_catalog::{calls, owner_name, plain_type_name, viewdef};
use logstead_sql_catalog::role::acl::AclKind;
use logstead_sql_catalog::{
    Column, Constraint, ConstraintKind, ForeignKey, IndexDef, Relation, RelationKind, SequenceDef,
    Timing, VirtualContext,
};
use logstead_sql_parse::CheckOption;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid, user};
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

fn yes_no(value: bool) -> &'static str {
    if value { "YES" } else { "NO" }
}

/// Only what the role may do anything with is shown.
fn is_shown(relation: &Relation, cx: &VirtualContext<'_>) -> bool {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let all = logstead_sql_catalog::privileges::kind_of(relation).all();
    acl_checker.on_relation(role, relation, all, all) != (0, 0)
        || cx
            .catalog
            .privileges_of(relation.oid)
            .is_some_and(|privileges| {
                let all = AclKind::Column.all();
                let mut columns = privileges.columns.keys();
                columns.any(|at| acl_checker.on_column(role, relation, *at, all, 0).0 != 0)
            })
}

/// Only columns that the role may do something with are shown: by its privileges on them, or on all of the relation.
fn is_column_shown(relation: &Relation, position: usize, cx: &VirtualContext<'_>) -> bool {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let role = cx.session.current_role();
    let all = AclKind::Column.all();
    acl_checker.owns(role, relation.oid)
        || acl_checker.on_relation(role, relation, all, 0).0 != 0
        || acl_checker.on_column(role, relation, position, all, 0).0 != 0
}

fn relations<'a>(cx: &'a VirtualContext<'_>) -> Vec<&'a Arc<Relation>> {
    let mut all: Vec<_> = cx
        .catalog
        .relations
        .values()
        .filter(|r| !matches!(r.kind, RelationKind::Virtual(_)))
        .filter(|r| is_shown(r, cx))
        .collect();
    all.sort_unstable_by_key(|r| r.oid);
    all
}

pub(super) fn tables_of<'a>(cx: &'a VirtualContext<'_>) -> impl Iterator<Item = &'a Arc<Relation>> {
    relations(cx)
        .into_iter()
        .filter(|r| matches!(r.kind, RelationKind::Table))
}

fn readable<'a>(cx: &'a VirtualContext<'_>) -> impl Iterator<Item = &'a Arc<Relation>> {
    relations(cx)
        .into_iter()
        .filter(|r| matches!(r.kind, RelationKind::Table | RelationKind::View(_)))
}

pub(super) fn live(relation: &Relation) -> impl Iterator<Item = (usize, &Column)> {
    relation
        .columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.dropped)
}

/// `information_schema_catalog_name`
pub(super) fn information_schema_catalog_name(cx: &VirtualContext<'_>) -> Rows {
    Ok(vec![row![&cx.catalog.database_name]])
}

/// `schemata`
pub(super) fn schemata(cx: &VirtualContext<'_>) -> Rows {
    let acl_checker = cx.catalog.acl_checker(&cx.catalog.roles);
    let all = AclKind::Schema.all();
    let shown = |oid| acl_checker.on_schema(cx.session.current_role(), oid, all, all) != (0, 0);
    let schemas = cx.catalog.schemas.values();
    let mut schemas: Vec<_> = schemas.filter(|s| shown(s.oid)).collect();
    schemas.sort_unstable_by_key(|s| s.oid);
    let rows = schemas.into_iter().map(|s| {
        row![
            &cx.catalog.database_name,
            &s.name,
            owner_name(cx.catalog, s.oid),
            Nil,
            Nil,
            Nil,
            Nil
        ]
    });
    Ok(rows.collect())
}

/// `tables`
pub(super) fn tables(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let entry = |schema: &str, name: &str, kind: &str, insertable: bool| {
        row![
            database,
            schema,
            name,
            kind,
            Nil,
            Nil,
            Nil,
            Nil,
            Nil,
            yes_no(insertable),
            "NO",
            Nil
        ]
    };
    let system = crate::pg_catalog::tables().map(|t| {
        let view = t.is_view();
        entry(
            t.schema,
            t.name,
            if view { "VIEW" } else { "BASE TABLE" },
            !view,
        )
    });
    let catalog = Arc::new(cx.catalog.clone());
    let user = readable(cx).map(|t| match t.kind {
        RelationKind::View(_) => {
            let columns = viewdef::updatable(&catalog, t, cx.session);
            let insertable = columns.is_some_and(|c| c.contains(&true));
            entry(&t.schema_name, &t.name, "VIEW", insertable)
        }
        _ if t.is_temporary() => entry(&t.schema_name, &t.name, "LOCAL TEMPORARY", true),
        _ => entry(&t.schema_name, &t.name, "BASE TABLE", true),
    });
    Ok(system.chain(user).collect())
}

/// `views`
pub(super) fn views(cx: &VirtualContext<'_>) -> Rows {
    let rows = crate::pg_catalog::tables()
        .filter(|t| t.is_view())
        .map(|t| {
            row![
                &cx.catalog.database_name,
                t.schema,
                t.name,
                Nil,
                "NONE",
                "NO",
                "NO",
                "NO",
                "NO",
                "NO"
            ]
        });
    let mut rows: Vec<Vec<Datum>> = rows.collect();
    let catalog = Arc::new(cx.catalog.clone());
    for r in relations(cx) {
        let RelationKind::View(view) = &r.kind else {
            continue;
        };
        // A view that reads itself has no text; the others are shown all the same.
        let own = catalog
            .acl_checker(&catalog.roles)
            .owns(cx.session.current_role(), r.oid);
        let definition = match own {
            true => Some(viewdef::text(&catalog, r, false, cx.session).unwrap_or_default()),
            false => None,
        };
        let columns = viewdef::updatable(&catalog, r, cx.session);
        let updatable = columns.is_some_and(|c| c.contains(&true));
        let triggers = cx.catalog.triggers.of(r.oid);
        let instead = |event: i16| {
            let bits = event | (1 << 6) | 1;
            yes_no(triggers.iter().any(|t| t.bits() & bits == bits))
        };
        rows.push(row![
            &cx.catalog.database_name,
            &r.schema_name,
            &r.name,
            definition,
            match view.check {
                None => "NONE",
                Some(CheckOption::Local) => "LOCAL",
                Some(CheckOption::Cascaded) => "CASCADED",
            },
            yes_no(updatable),
            yes_no(updatable),
            instead(1 << 4),
            instead(1 << 3),
            instead(1 << 2)
        ]);
    }
    Ok(rows)
}

pub(super) struct TypeFacets {
    pub(super) length: Option<i32>,
    pub(super) octets: Option<i32>,
    pub(super) precision: Option<i32>,
    pub(super) radix: Option<i32>,
    pub(super) scale: Option<i32>,
    pub(super) datetime: Option<i32>,
}

pub(super) fn shape(ty: SqlType) -> TypeFacets {
    let mut s = TypeFacets {
        length: None,
        octets: None,
        precision: None,
        radix: None,
        scale: None,
        datetime: None,
    };
    let binary = |s: &mut TypeFacets, precision, exact: bool| {
        s.precision = Some(precision);
        s.radix = Some(2);
        s.scale = exact.then_some(0);
    };
    match ty.oid {
        oid::INT2 => binary(&mut s, 16, true),
        oid::INT4 => binary(&mut s, 32, true),
        oid::INT8 => binary(&mut s, 64, true),
        oid::FLOAT4 => binary(&mut s, 24, false),
        oid::FLOAT8 => binary(&mut s, 53, false),
        oid::NUMERIC => {
            s.radix = Some(10);
            if ty.typmod >= 4 {
                s.precision = Some(((ty.typmod - 4) >> 16) & 0xffff);
                s.scale = Some((((ty.typmod - 4) & 0x7ff) ^ 1024) - 1024);
            }
        }
        oid::VARCHAR | oid::BPCHAR if ty.typmod >= 4 => {
            s.length = Some(ty.typmod - 4);
            s.octets = Some((ty.typmod - 4).saturating_mul(4));
        }
        oid::VARCHAR | oid::BPCHAR | oid::TEXT => s.octets = Some(1_073_741_824),
        oid::DATE => s.datetime = Some(0),
        oid::BIT | oid::VARBIT if ty.typmod > 0 => s.length = Some(ty.typmod),
        oid::TIME | oid::TIMETZ | oid::TIMESTAMP | oid::TIMESTAMPTZ => {
            s.datetime = Some(if ty.typmod < 0 { 6 } else { ty.typmod })
        }
        oid::INTERVAL => {
            let precision = ty.typmod & 0xffff;
            s.datetime = Some(if ty.typmod < 0 || precision == 0xffff {
                6
            } else {
                precision
            });
        }
        _ => {}
    }
    s
}

fn column_row(
    (cx, types): (&VirtualContext<'_>, TypeLookup<'_>),
    table: (&str, &str),
    column: &Column,
    number: usize,
    identity: Option<&SequenceDef>,
    updatable: bool,
) -> Vec<Datum> {
    let database = &cx.catalog.database_name;
    let (default, generation) = match &column.default {
        Some(text) => {
            let path = cx.session.search_path();
            let shown = calls::default_shown(cx.catalog, text, &path);
            match column.generated {
                true => (None, Some(shown)),
                false => (Some(shown), None),
            }
        }
        None => (None, None),
    };
    let name_collation = column.ty.oid == oid::NAME;
    let domain = column
        .domain
        .and_then(|domain| cx.catalog.types.get(domain));
    let refuses_null = domain
        .and_then(|ty| ty.domain())
        .is_some_and(|domain| domain.not_null);
    // An array over a domain is no domain.
    let ty = match domain.and_then(|ty| ty.domain()) {
        Some(domain) => domain.over,
        None => column.declared(),
    };
    let s = shape(ty);
    let shown = match user::class(ty.oid) {
        Some(user::UserTypeClass::Domain) => "USER-DEFINED".to_owned(),
        _ => plain_type_name(ty.oid, types),
    };
    let number = i32::try_from(number).unwrap_or(i32::MAX);
    row![
        database,
        table.0,
        table.1,
        &column.name,
        number,
        default,
        yes_no(!column.not_null && !refuses_null),
        shown,
        s.length,
        s.octets,
        s.precision,
        s.radix,
        s.scale,
        s.datetime,
        Nil,
        Nil,
        Nil,
        Nil,
        Nil,
        name_collation.then_some(database),
        name_collation.then_some("pg_catalog"),
        name_collation.then_some("C"),
        domain.map(|_| database),
        domain.map(|domain| &domain.schema_name),
        domain.map(|domain| &domain.name),
        database,
        cx.catalog.types.schema_of(ty.oid).unwrap_or("pg_catalog"),
        cx.catalog.types.type_name(ty.oid).into_owned(),
        Nil,
        Nil,
        Nil,
        Nil,
        number.to_string(),
        "NO",
        yes_no(column.identity.is_some()),
        column
            .identity
            .map(|always| if always { "ALWAYS" } else { "BY DEFAULT" }),
        identity.map(|i| i.start.to_string()),
        identity.map(|i| i.increment.to_string()),
        identity.map(|i| i.max.to_string()),
        identity.map(|i| i.min.to_string()),
        yes_no(identity.is_some_and(|i| i.cycle)),
        if column.generated { "ALWAYS" } else { "NEVER" },
        generation,
        yes_no(updatable),
    ]
}

/// `columns`
pub(super) fn columns(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let mut rows = Vec::new();
    for table in crate::pg_catalog::tables() {
        let view = table.is_view();
        for (position, (name, ty)) in table.columns.iter().enumerate() {
            let column = Column {
                name: (*name).to_owned(),
                ty: SqlType::of(*ty),
                not_null: !view && position == 0,
                default: None,
                identity: None,
                generated: false,
                sequence: None,
                dropped: false,
                domain: None,
                missing: Datum::Null,
            };
            rows.push(column_row(
                (cx, types),
                (table.schema, table.name),
                &column,
                position + 1,
                None,
                !view,
            ));
        }
    }
    let catalog = Arc::new(cx.catalog.clone());
    for table in readable(cx) {
        let through = match table.kind {
            RelationKind::View(_) => {
                Some(viewdef::updatable(&catalog, table, cx.session).unwrap_or_default())
            }
            _ => None,
        };
        for (position, column) in live(table) {
            if !is_column_shown(table, position, cx) {
                continue;
            }
            let updatable = match &through {
                Some(columns) => columns.get(position).copied().unwrap_or(false),
                None => true,
            };
            let sequence = column
                .identity
                .and(column.sequence)
                .and_then(|s| cx.catalog.relations.get(&s));
            let identity = sequence.and_then(|s| match &s.kind {
                RelationKind::Sequence(definition) => Some(definition),
                _ => None,
            });
            rows.push(column_row(
                (cx, types),
                (&table.schema_name, &table.name),
                column,
                position + 1,
                identity,
                updatable,
            ));
        }
    }
    Ok(rows)
}

/// `column_column_usage`: what generated columns are made of.
pub(super) fn column_column_usage(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for (_, column) in live(table) {
            for base in column.generated_from(table) {
                rows.push(row![
                    &cx.catalog.database_name,
                    &table.schema_name,
                    &table.name,
                    table.columns.get(base).map_or("?", |c| c.name.as_str()),
                    &column.name
                ]);
            }
        }
    }
    Ok(rows)
}

/// Constraints with PostgreSQL's invented ones for NOT NULL: name, type, clause.
fn not_null_constraints(table: &Relation) -> impl Iterator<Item = (String, String)> {
    live(table)
        .filter(|(_, c)| c.not_null)
        .map(|(position, c)| {
            (
                format!("{}_{}_{}_not_null", table.schema, table.oid, position + 1),
                format!(
                    "{} IS NOT NULL",
                    logstead_sql_catalog::text::quote_ident(&c.name)
                ),
            )
        })
}

/// `table_constraints`
pub(super) fn table_constraints(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        let mut push = |name: &str, kind: &str, timing: Timing| {
            let distinct = (kind == "UNIQUE").then_some("YES");
            rows.push(row![
                database,
                &table.schema_name,
                name,
                database,
                &table.schema_name,
                &table.name,
                kind,
                yes_no(timing.is_deferrable()),
                yes_no(timing.is_deferred()),
                "YES",
                distinct
            ]);
        };
        for constraint in &table.constraints {
            push(
                &constraint.name,
                match constraint.kind {
                    ConstraintKind::Check(_) => "CHECK",
                    ConstraintKind::PrimaryKey(_) => "PRIMARY KEY",
                    ConstraintKind::Unique(_) => "UNIQUE",
                    ConstraintKind::Foreign(_) => "FOREIGN KEY",
                },
                constraint.timing,
            );
        }
        not_null_constraints(table).for_each(|(name, _)| push(&name, "CHECK", Timing::Immediate));
    }
    Ok(rows)
}

/// `check_constraints`
pub(super) fn check_constraints(cx: &VirtualContext<'_>) -> Rows {
    let path = cx.session.search_path();
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for constraint in &table.constraints {
            if let ConstraintKind::Check(text) = &constraint.kind {
                rows.push(row![
                    database,
                    &table.schema_name,
                    &constraint.name,
                    format!("({})", calls::default_shown(cx.catalog, text, &path))
                ]);
            }
        }
        for (name, clause) in not_null_constraints(table) {
            rows.push(row![database, &table.schema_name, name, clause]);
        }
    }
    for (ty, domain) in super::domains::all(cx) {
        for check in &domain.checks {
            rows.push(row![
                database,
                &ty.schema_name,
                &check.name,
                format!("({})", calls::default_shown(cx.catalog, &check.text, &path))
            ]);
        }
    }
    Ok(rows)
}

fn key_columns<'a>(table: &'a Relation, constraint: &Constraint) -> Vec<&'a Column> {
    let wanted: RelationId = match constraint.kind {
        ConstraintKind::PrimaryKey(index) | ConstraintKind::Unique(index) => index,
        ConstraintKind::Check(_) => return Vec::new(),
        ConstraintKind::Foreign(ref key) => {
            let columns = key.columns.iter();
            return columns.filter_map(|p| table.columns.get(*p)).collect();
        }
    };
    let index = table.indexes.iter().find(|i| i.oid == wanted);
    index.map_or_else(Vec::new, |i| {
        i.columns
            .iter()
            .filter_map(|k| table.columns.get(k.position()?))
            .collect()
    })
}

fn ordinal(at: usize) -> i32 {
    i32::try_from(at + 1).unwrap_or(i32::MAX)
}

/// The table a foreign key references, and the key's index.
fn referenced<'a>(
    cx: &'a VirtualContext<'_>,
    key: &ForeignKey,
) -> Option<(&'a Arc<Relation>, &'a Arc<IndexDef>)> {
    let parent = cx.catalog.relations.get(&key.table)?;
    let index = parent.indexes.iter().find(|i| i.oid == key.index)?;
    Some((parent, index))
}

/// Where the column that column `at` of a foreign key references stands in the unique key.
fn position_in_index(cx: &VirtualContext<'_>, constraint: &Constraint, at: usize) -> Option<i32> {
    let key = constraint.foreign()?;
    let wanted = key.referenced.get(at)?;
    let (_, index) = referenced(cx, key)?;
    let found = index
        .columns
        .iter()
        .position(|c| c.position() == Some(*wanted))?;
    Some(ordinal(found))
}

/// `key_column_usage`
pub(super) fn key_column_usage(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for constraint in &table.constraints {
            for (at, column) in key_columns(table, constraint).into_iter().enumerate() {
                let position = table.columns.iter().position(|c| std::ptr::eq(c, column));
                if !position.is_some_and(|position| is_column_shown(table, position, cx)) {
                    continue;
                }
                rows.push(row![
                    database,
                    &table.schema_name,
                    &constraint.name,
                    database,
                    &table.schema_name,
                    &table.name,
                    &column.name,
                    ordinal(at),
                    position_in_index(cx, constraint, at)
                ]);
            }
        }
    }
    Ok(rows)
}

/// `constraint_column_usage`
pub(super) fn constraint_column_usage(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for constraint in &table.constraints {
            // A foreign key uses the columns it references.
            let mut of = table;
            let columns = match &constraint.kind {
                ConstraintKind::Check(text) => logstead_sql_catalog::text::columns_in(text, table)
                    .into_iter()
                    .filter_map(|position| table.columns.get(position))
                    .collect(),
                ConstraintKind::Foreign(key) => {
                    of = cx.catalog.relations.get(&key.table).unwrap_or(table);
                    let columns = key.referenced.iter();
                    columns.filter_map(|p| of.columns.get(*p)).collect()
                }
                _ => key_columns(table, constraint),
            };
            for column in columns {
                rows.push(row![
                    database,
                    &of.schema_name,
                    &of.name,
                    &column.name,
                    database,
                    &table.schema_name,
                    &constraint.name
                ]);
            }
        }
    }
    Ok(rows)
}

/// `constraint_table_usage`: foreign, primary and unique keys.
pub(super) fn constraint_table_usage(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for constraint in table
            .constraints
            .iter()
            .filter(|c| !matches!(c.kind, ConstraintKind::Check(_)))
        {
            let of = constraint
                .foreign()
                .and_then(|key| cx.catalog.relations.get(&key.table))
                .unwrap_or(table);
            rows.push(row![
                database,
                &of.schema_name,
                &of.name,
                database,
                &table.schema_name,
                &constraint.name
            ]);
        }
    }
    Ok(rows)
}

/// `referential_constraints`
pub(super) fn referential_constraints(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let mut rows = Vec::new();
    for table in tables_of(cx) {
        for constraint in &table.constraints {
            let Some(key) = constraint.foreign() else {
                continue;
            };
            // A unique index that no constraint owns has no name here.
            let owner = referenced(cx, key).and_then(|(parent, index)| {
                let owns = |c: &&Arc<Constraint>| {
                    matches!(
                        &c.kind,
                        ConstraintKind::PrimaryKey(i) | ConstraintKind::Unique(i) if *i == index.oid
                    )
                };
                parent.constraints.iter().find(owns).map(|c| (parent, c))
            });
            rows.push(row![
                database,
                &table.schema_name,
                &constraint.name,
                owner.map(|_| database),
                owner.map(|(parent, _)| &parent.schema_name),
                owner.map(|(_, unique)| &unique.name),
                if key.full { "FULL" } else { "NONE" },
                key.on_update.words(),
                key.on_delete.words()
            ]);
        }
    }
    Ok(rows)
}

/// `sequences`: those not made by identity columns.
pub(super) fn sequences(cx: &VirtualContext<'_>) -> Rows {
    let database = &cx.catalog.database_name;
    let identities: std::collections::HashSet<RelationId> = tables_of(cx)
        .flat_map(|t| t.columns.iter())
        .filter(|c| c.identity.is_some() && !c.dropped)
        .filter_map(|c| c.sequence)
        .collect();
    let rows = relations(cx)
        .into_iter()
        .filter(|r| !identities.contains(&r.oid))
        .filter_map(|r| match &r.kind {
            RelationKind::Sequence(s) => {
                let bits = match s.ty {
                    oid::INT2 => 16_i32,
                    oid::INT4 => 32,
                    _ => 64,
                };
                Some(row![
                    database,
                    &r.schema_name,
                    &r.name,
                    plain_type_name(s.ty, cx.catalog.types.lookup(&[])),
                    bits,
                    2_i32,
                    0_i32,
                    s.start.to_string(),
                    s.min.to_string(),
                    s.max.to_string(),
                    s.increment.to_string(),
                    yes_no(s.cycle)
                ])
            }
            _ => None,
        });
    Ok(rows.collect())
}
