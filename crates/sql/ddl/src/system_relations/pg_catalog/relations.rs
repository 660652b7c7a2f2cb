//! Rows about relations: `pg_class`, `pg_attribute`, `pg_attrdef`, `pg_index`, `pg_sequence`, `pg_rewrite`; of
//! schemas and comments, too. `pg_constraint` is in `constraints`, `pg_depend` in a file of its own.

use super::OWNER;
use super::cells::{Ch, Id, Nil, OidOrZero, int2vector, oidvector, row, text_array};
use super::extensions::{PLPGSQL, PLPGSQL_COMMENT};
use super::operator_classes::{BTREE, operator_class, operator_class_name};
use crate::pg_catalog::privileges::acl_datum;
use logstead_sql_catalog::classes::{
    CatalogObject, INFORMATION_SCHEMA_NAMESPACE, PG_AUTHID, PG_CATALOG_NAMESPACE, PG_DATABASE,
    PG_EXTENSION, PG_NAMESPACE, PG_PUBLIC_NAMESPACE, PG_TOAST_NAMESPACE,
};
use logstead_sql_catalog::extensions::{EXTENSIONS, extension_of};
use logstead_sql_catalog::inert_options::{self, Attribute, parameters};
use logstead_sql_catalog::{
    Catalog, Column, ConstraintKind, IndexColumn, IndexDef, IndexKey, Relation, RelationKind,
    TableStatistics, VirtualContext, VirtualTable,
};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::{Array, Datum, Oid, SqlType, info, oid, user};
use logstead_sql_types::{RelationId, RoleId, SchemaId, TypeId};
use std::sync::{Arc, OnceLock};

pub(super) type Rows = Result<Vec<Vec<Datum>>>;

/// Relations in OID order: answers do not depend on hashing.
pub(super) fn ordered(catalog: &Catalog) -> Vec<&Arc<Relation>> {
    let mut all: Vec<_> = catalog
        .relations
        .values()
        .filter(|r| !matches!(r.kind, RelationKind::Virtual(_)))
        .collect();
    all.sort_unstable_by_key(|r| r.oid);
    all
}

/// `pg_namespace`
pub(super) fn pg_namespace(cx: &VirtualContext<'_>) -> Rows {
    let mut schemas: Vec<_> = cx.catalog.schemas.values().collect();
    // As initdb leaves them.
    schemas.sort_unstable_by_key(|s| (s.oid != PG_TOAST_NAMESPACE, s.oid));
    Ok(schemas
        .into_iter()
        .map(|s| {
            let owner = cx.catalog.owner_of(s.oid);
            row![s.oid, &s.name, owner, acl(cx.catalog, s.oid)]
        })
        .collect())
}

/// `pg_class.relkind`
pub(super) fn kind_code(relation: &Relation) -> char {
    match relation.kind {
        RelationKind::Sequence(_) => 'S',
        RelationKind::View(_) => 'v',
        RelationKind::Materialized(..) => 'm',
        RelationKind::Table | RelationKind::Virtual(_) => 'r',
    }
}

/// `pg_rewrite`: the rule that makes a view of a relation; the query itself is not shown.
pub(super) fn pg_rewrite(cx: &VirtualContext<'_>) -> Rows {
    let rows = ordered(cx.catalog).into_iter().filter_map(|relation| {
        let view = relation.view()?;
        Some(row![
            Id(view.rule),
            "_RETURN",
            relation.oid,
            Ch('1'),
            Ch('O'),
            true,
            "<>",
            "<>",
        ])
    });
    Ok(rows.collect())
}

struct ClassRow<'a> {
    oid: RelationId,
    name: &'a str,
    schema: SchemaId,
    method: Oid,
    file: Oid,
    kind: char,
    columns: usize,
    checks: usize,
    has_index: bool,
    has_triggers: bool,
    rows: f32,
    pages: i32,
    options: &'a [String],
    /// The parameter that says by what it is divided.
    distribution: Option<String>,
    /// `relreplident`
    replica_identity: char,
    populated: bool,
    persistence: char,
    secured: bool,
    forced: bool,
    owner: RoleId,
    acl: Datum,
    /// `reltype`: the type of its rows.
    row: Option<TypeId>,
}

/// `pg_init_privs`: what the system's own relations and schemas are granted from the beginning. pg_dump leaves out what
/// is as here.
pub(super) fn pg_init_privs(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let relations = super::tables().map(|table| table.oid.into());
    let schemas = [PG_CATALOG_NAMESPACE, INFORMATION_SCHEMA_NAMESPACE].map(CatalogObject::from);
    let all = schemas.into_iter().chain(relations);
    Ok(all
        .map(|object: CatalogObject| (object, acl(cx.catalog, object)))
        .filter(|(_, acl)| !acl.is_null())
        .map(|(object, acl)| row![Id(object.oid), object.class, 0_i32, Ch('i'), acl])
        .collect())
}

/// What was granted on an object, as a value.
pub(super) fn acl(catalog: &Catalog, object: impl Into<CatalogObject>) -> Datum {
    let acl = catalog.acl_of(object);
    acl.map_or(Datum::Null, |acl| acl_datum(&acl, &catalog.roles))
}

fn class_row(c: &ClassRow<'_>) -> Vec<Datum> {
    let columns = i16::try_from(c.columns).unwrap_or(i16::MAX);
    let checks = i16::try_from(c.checks).unwrap_or(i16::MAX);
    let said = parameters(c.options).cloned();
    let options: Vec<String> = said.chain(c.distribution.clone()).collect();
    row![
        c.oid,
        c.name,
        c.schema,
        OidOrZero(c.row),
        Id(0),
        c.owner,
        Id(c.method),
        Id(c.file),
        Id(0),
        c.pages,
        c.rows,
        0_i32,
        Id(0),
        c.has_index,
        false,
        Ch(c.persistence),
        Ch(c.kind),
        columns,
        checks,
        matches!(c.kind, 'v' | 'm'),
        c.has_triggers,
        false,
        c.secured,
        c.forced,
        c.populated,
        Ch(c.replica_identity),
        false,
        Id(0),
        Id(0),
        Id(0),
        c.acl.clone(),
        (!options.is_empty()).then(|| text_array(&options)),
        Nil,
    ]
}

/// `pg_class`
pub(super) fn pg_class(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for table in super::tables() {
        let view = table.is_view();
        rows.push(class_row(&ClassRow {
            oid: table.oid,
            name: table.name,
            schema: if table.schema == "pg_catalog" {
                PG_CATALOG_NAMESPACE
            } else {
                INFORMATION_SCHEMA_NAMESPACE
            },
            method: if view { 0 } else { 2 },
            file: 0,
            kind: if view { 'v' } else { 'r' },
            columns: table.columns.len(),
            checks: 0,
            has_index: false,
            has_triggers: false,
            rows: -1.0,
            pages: 0,
            options: &[],
            distribution: None,
            replica_identity: 'n',
            populated: true,
            persistence: 'p',
            secured: false,
            forced: false,
            owner: OWNER,
            acl: acl(cx.catalog, table.oid),
            row: user::row_type_of(table.oid),
        }));
    }
    for relation in ordered(cx.catalog) {
        let kind = kind_code(relation);
        let (sequence, view) = (kind == 'S', kind == 'v');
        // A table that was emptied is unknown again.
        let counted = cx.catalog.statistics.get(&relation.oid);
        let counted = counted.filter(|found| found.storage == relation.storage);
        rows.push(class_row(&ClassRow {
            oid: relation.oid,
            name: &relation.name,
            schema: relation.schema,
            method: if sequence || view { 0 } else { 2 },
            file: if view { 0 } else { relation.storage.get() },
            kind,
            columns: if sequence { 3 } else { relation.columns.len() },
            checks: relation
                .constraints
                .iter()
                .filter(|c| matches!(c.kind, ConstraintKind::Check(_)))
                .count(),
            has_index: !relation.indexes.is_empty(),
            // Foreign keys and deferrable keys are triggers in PostgreSQL, and psql looks for them only then.
            has_triggers: !cx.catalog.triggers.of(relation.oid).is_empty()
                || cx.catalog.referencing.contains_key(&relation.oid)
                || relation
                    .constraints
                    .iter()
                    .any(|c| c.foreign().is_some() || c.timing.is_deferrable()),
            rows: match kind {
                'S' => 1.0,
                'v' => 0.0,
                _ => counted.map_or(-1.0, |found| found.rows as f32),
            },
            pages: match kind {
                'S' => 1,
                _ => counted.map_or(0, |found| i32::try_from(found.pages).unwrap_or(i32::MAX)),
            },
            options: cx.catalog.options_of(relation.oid),
            distribution: relation.distribution.parameter(&relation.columns),
            replica_identity: match kind {
                'r' | 'm' => cx.catalog.replica_identity(relation).0,
                _ => 'n',
            },
            populated: !matches!(relation.kind, RelationKind::Materialized(_, false)),
            persistence: cx.catalog.persistence_of(relation),
            secured: relation.security.enabled,
            forced: relation.security.forced,
            owner: cx.catalog.owner_of(relation.oid),
            acl: acl(cx.catalog, relation.oid),
            row: cx.catalog.types.row_type(relation.oid).map(|ty| ty.oid),
        }));
        for index in &relation.indexes {
            rows.push(class_row(&ClassRow {
                oid: index.oid,
                name: &index.name,
                schema: relation.schema,
                method: BTREE,
                file: index.storage.get(),
                kind: 'i',
                columns: index.columns.len(),
                checks: 0,
                has_index: false,
                has_triggers: false,
                // A partial index has some of the rows, nobody knows how many.
                rows: counted
                    .filter(|_| index.predicate.is_none())
                    .map_or(-1.0, |found| found.rows as f32),
                pages: counted.map_or(0, |found| index_pages(index, found)),
                options: cx.catalog.options_of(index.oid),
                distribution: None,
                replica_identity: 'n',
                populated: true,
                persistence: cx.catalog.persistence_of(relation),
                secured: false,
                forced: false,
                owner: cx.catalog.owner_of(relation.oid),
                acl: Datum::Null,
                row: None,
            }));
        }
    }
    for ty in cx.catalog.types.all() {
        let Some(composite) = ty.composite() else {
            continue;
        };
        rows.push(class_row(&ClassRow {
            oid: composite.relation,
            name: &ty.name,
            schema: ty.schema,
            method: 0,
            file: 0,
            kind: 'c',
            columns: usize::from(composite.numbers.unsigned_abs()),
            checks: 0,
            has_index: false,
            has_triggers: false,
            rows: 0.0,
            pages: 0,
            options: &[],
            distribution: None,
            replica_identity: 'n',
            populated: true,
            persistence: 'p',
            secured: false,
            forced: false,
            owner: cx.catalog.owner_of(ty.oid),
            acl: Datum::Null,
            row: Some(ty.oid),
        }));
    }
    Ok(rows)
}

/// Pages of 8 KiB that an index would fill in PostgreSQL, nine tenths full.
fn index_pages(index: &IndexDef, found: &TableStatistics) -> i32 {
    const ENTRY_BYTES: f64 = 12.0;
    const LEAF_BYTES: f64 = 7_350.0;
    let key: f64 = index
        .columns
        .iter()
        .map(|column| {
            let known = column
                .position()
                .and_then(|at| found.columns.iter().find(|c| c.position == at));
            known.map_or(8.0, |c| (f64::from(c.width) / 8.0).ceil() * 8.0)
        })
        .sum();
    1 + (found.rows * (key + ENTRY_BYTES) / LEAF_BYTES).ceil() as i32
}

struct AttributeRow<'a> {
    relation: RelationId,
    name: &'a str,
    number: usize,
    ty: SqlType,
    not_null: bool,
    has_default: bool,
    missing: Option<&'a Datum>,
    identity: Option<bool>,
    generated: bool,
    dropped: bool,
    acl: Datum,
    /// `attcollation` if it was said, else 0.
    collation: Oid,
    /// What was said of the column besides: the relation's options, and its position.
    said: (&'a [String], usize),
}

const NOTHING_SAID: (&[String], usize) = (&[], 0);

fn attribute_row(a: &AttributeRow<'_>, types: &UserTypes) -> Vec<Datum> {
    let (options, position) = a.said;
    let said = |attribute| inert_options::get(options, attribute);
    let code = |attribute| said(attribute).and_then(|code| code.chars().next());
    let statistics = said(Attribute::Statistics(position)).and_then(|n| n.parse().ok());
    let info = types.type_info(a.ty.oid);
    let array = info
        .is_some_and(|i| i.category == 'A' && !matches!(i.oid, oid::INT2VECTOR | oid::OIDVECTOR));
    let domain = user::domain_in(a.ty.oid).and_then(|domain| types.get(domain));
    let collation = match domain.and_then(|ty| ty.domain()) {
        _ if a.collation != 0 => a.collation,
        Some(domain) => super::types::collation_of(domain),
        None => info.map_or(0, info::TypeInfo::collation),
    };
    let missing = a.missing.map(|value| {
        Datum::Array(Arc::new(Array {
            element: types.base_type(a.ty).oid,
            lower: 1,
            shape: None,
            items: vec![value.clone()],
        }))
    });
    row![
        a.relation,
        a.name,
        OidOrZero((!a.dropped).then_some(a.ty.oid)),
        if a.dropped {
            0
        } else {
            statistics.unwrap_or(-1_i32)
        },
        info.map_or(-1, |i| i.len),
        i16::try_from(a.number).unwrap_or(i16::MAX),
        i32::from(array),
        -1_i32,
        a.ty.typmod,
        info.is_some_and(|i| i.by_value),
        Ch(info.map_or('i', |i| i.align)),
        Ch(code(Attribute::Storage(position)).unwrap_or(info.map_or('x', |i| i.storage))),
        Ch(code(Attribute::Compression(position)).unwrap_or('\0')),
        a.not_null,
        a.has_default,
        missing.is_some(),
        Ch(match a.identity {
            Some(true) => 'a',
            Some(false) => 'd',
            None => '\0',
        }),
        Ch(if a.generated { 's' } else { '\0' }),
        a.dropped,
        true,
        0_i32,
        Id(collation),
        a.acl.clone(),
        Nil,
        Nil,
        missing,
    ]
}

fn virtual_attributes(table: &VirtualTable, types: &UserTypes, rows: &mut Vec<Vec<Datum>>) {
    // Columns are NOT NULL in tables as long as they and all before them have a fixed length (or are vectors), as
    // PostgreSQL's bootstrap decides.
    let mut fixed = !table.is_view();
    for (position, (name, ty)) in table.columns.iter().enumerate() {
        let length = info::by_oid(*ty).map_or(-1, |t| t.len);
        fixed &= length > 0 || matches!(*ty, oid::INT2VECTOR | oid::OIDVECTOR);
        rows.push(attribute_row(
            &AttributeRow {
                relation: table.oid,
                name,
                number: position + 1,
                ty: SqlType::of(*ty),
                not_null: fixed,
                has_default: false,
                missing: None,
                identity: None,
                generated: false,
                dropped: false,
                acl: Datum::Null,
                collation: 0,
                said: NOTHING_SAID,
            },
            types,
        ));
    }
}

/// `pg_attribute`
pub(super) fn pg_attribute(cx: &VirtualContext<'_>) -> Rows {
    // The system relations' part never changes: made once, then only reference counts move.
    static SYSTEM: OnceLock<Vec<Vec<Datum>>> = OnceLock::new();
    let mut rows = SYSTEM
        .get_or_init(|| {
            let mut rows = Vec::new();
            super::tables()
                .for_each(|table| virtual_attributes(table, &cx.catalog.types, &mut rows));
            rows
        })
        .clone();
    for relation in ordered(cx.catalog) {
        let privileges = cx.catalog.privileges_of(relation.oid);
        let granted = |position: usize| {
            let acl = privileges.and_then(|privileges| privileges.columns.get(&position));
            acl.map_or(Datum::Null, |acl| acl_datum(acl, &cx.catalog.roles))
        };
        let options = cx.catalog.options_of(relation.oid);
        for (position, column) in relation.columns.iter().enumerate() {
            rows.push(attribute_row(
                &AttributeRow {
                    relation: relation.oid,
                    name: &column.name,
                    number: position + 1,
                    ty: column.declared(),
                    not_null: column.not_null,
                    has_default: column.default.is_some() && !column.dropped,
                    missing: (!matches!(column.missing, Datum::Null)).then_some(&column.missing),
                    identity: column.identity,
                    generated: column.generated && !column.dropped,
                    dropped: column.dropped,
                    acl: granted(position),
                    collation: inert_options::get(options, Attribute::Collation(position))
                        .and_then(logstead_sql_types::value::collations::collation_by_name)
                        .unwrap_or(0),
                    said: (options, position),
                },
                &cx.catalog.types,
            ));
        }
        for index in &relation.indexes {
            let keys = index.columns.iter();
            let keys = keys.map(|key| (key.name(relation), key.ty(relation)));
            let included = index
                .include
                .iter()
                .filter_map(|p| relation.columns.get(*p));
            let all = keys.chain(included.map(|c| (c.name.as_str(), c.ty)));
            let options = cx.catalog.options_of(index.oid);
            for (number, (name, ty)) in all.enumerate() {
                rows.push(attribute_row(
                    &AttributeRow {
                        relation: index.oid,
                        name,
                        number: number + 1,
                        ty,
                        not_null: false,
                        has_default: false,
                        missing: None,
                        identity: None,
                        generated: false,
                        dropped: false,
                        acl: Datum::Null,
                        collation: inert_options::get(options, Attribute::Collation(number))
                            .and_then(logstead_sql_types::value::collations::collation_by_name)
                            .unwrap_or(0),
                        said: (options, number),
                    },
                    &cx.catalog.types,
                ));
            }
        }
    }
    for ty in cx.catalog.types.all() {
        let Some(composite) = ty.composite() else {
            continue;
        };
        for attribute in &composite.attributes {
            rows.push(attribute_row(
                &AttributeRow {
                    relation: composite.relation,
                    name: &attribute.name,
                    number: usize::from(attribute.number.unsigned_abs()),
                    ty: attribute.ty,
                    not_null: false,
                    has_default: false,
                    missing: None,
                    identity: None,
                    generated: false,
                    dropped: false,
                    acl: Datum::Null,
                    collation: attribute.collation,
                    said: NOTHING_SAID,
                },
                &cx.catalog.types,
            ));
        }
    }
    Ok(rows)
}

/// OID of a column's default in `pg_attrdef`. Defaults have no number of their own: it follows from the column's.
pub(crate) fn attrdef_oid(relation: RelationId, position: usize) -> Oid {
    let position = u32::try_from(position + 1).unwrap_or(u32::MAX);
    relation.get().wrapping_mul(1_664).wrapping_add(position) | 0x8000_0000
}

pub(super) fn live_columns(relation: &Relation) -> impl Iterator<Item = (usize, &Column)> {
    relation
        .columns
        .iter()
        .enumerate()
        .filter(|(_, c)| !c.dropped)
}

/// `pg_attrdef`: `adbin` holds the SQL text, which `pg_get_expr` gives back.
pub(super) fn pg_attrdef(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for relation in ordered(cx.catalog) {
        for (position, column) in live_columns(relation) {
            if let Some(text) = &column.default {
                rows.push(row![
                    Id(attrdef_oid(relation.oid, position)),
                    relation.oid,
                    attribute_number(position),
                    text,
                ]);
            }
        }
    }
    Ok(rows)
}

/// Attribute number of a position.
pub(super) fn attribute_number(position: usize) -> i16 {
    i16::try_from(position + 1).unwrap_or(i16::MAX)
}

/// `pg_index`
pub(super) fn pg_index(cx: &VirtualContext<'_>) -> Rows {
    let mut rows = Vec::new();
    for relation in ordered(cx.catalog) {
        for index in &relation.indexes {
            rows.push(index_row(relation, index, cx.catalog));
        }
    }
    Ok(rows)
}

fn index_row(relation: &Relation, index: &IndexDef, catalog: &Catalog) -> Vec<Datum> {
    let options = catalog.options_of(index.oid);
    let count = |columns: usize| i16::try_from(columns).unwrap_or(i16::MAX);
    let keys = index.columns.len();
    let types: Vec<_> = index.columns.iter().map(|k| k.ty(relation).oid).collect();
    let expressions: Vec<&str> = index
        .columns
        .iter()
        .filter_map(|k| match &k.key {
            IndexKey::Expression { text, .. } => Some(text.as_str()),
            IndexKey::Column(_) => None,
        })
        .collect();
    let numbers = index
        .columns
        .iter()
        .map(|k| k.position().map_or(0, attribute_number))
        .chain(index.include.iter().map(|p| attribute_number(*p)));
    let collation = |(at, ty): (usize, &TypeId)| {
        let said = inert_options::get(options, Attribute::Collation(at));
        let column = index.columns.get(at).and_then(IndexColumn::position);
        let column = column.and_then(|at| Some((at, relation.columns.get(at)?)));
        match (
            said.and_then(logstead_sql_types::value::collations::collation_by_name),
            column,
        ) {
            (Some(said), _) => said,
            (None, Some((at, column))) => catalog.collation_of(relation.oid, at, column),
            (None, None) => info::by_oid(*ty).map_or(0, info::TypeInfo::collation),
        }
    };
    let class = |(at, ty): (usize, &TypeId)| {
        let said = inert_options::get(options, Attribute::OperatorClass(at));
        let said = said.and_then(operator_class_name);
        said.map_or_else(|| operator_class(*ty), |(class, _)| class)
    };
    let identifies = catalog.replica_identity(relation).1 == Some(index.oid);
    row![
        index.oid,
        relation.oid,
        count(keys + index.include.len()),
        count(keys),
        index.unique,
        index.nulls_not_distinct,
        index.primary,
        false,
        !index.deferrable,
        false,
        index.invalid.is_none(),
        false,
        index.invalid.is_none(),
        true,
        identifies,
        int2vector(numbers),
        oidvector(types.iter().enumerate().map(collation).map(Id)),
        oidvector(types.iter().enumerate().map(class).map(Id)),
        int2vector(
            index
                .columns
                .iter()
                .map(|k| i16::from(k.desc) | (i16::from(k.nulls_first) << 1))
        ),
        (!expressions.is_empty()).then(|| expressions.join(", ")),
        index.predicate.clone(),
    ]
}

pub(super) fn numbers(positions: &[usize]) -> Vec<i16> {
    positions.iter().map(|p| attribute_number(*p)).collect()
}

/// `pg_sequence`
pub(super) fn pg_sequence(cx: &VirtualContext<'_>) -> Rows {
    let rows = ordered(cx.catalog)
        .into_iter()
        .filter_map(|relation| match &relation.kind {
            RelationKind::Sequence(s) => Some(row![
                relation.oid,
                s.ty,
                s.start,
                s.increment,
                s.max,
                s.min,
                s.cache,
                s.cycle
            ]),
            _ => None,
        });
    Ok(rows.collect())
}

/// Comments that nobody has made: object, class and text.
pub(crate) fn standard_comments(catalog: &Catalog) -> Vec<(Oid, RelationId, &'static str)> {
    let mut standard = vec![
        (
            PG_CATALOG_NAMESPACE.get(),
            PG_NAMESPACE,
            "system catalog schema",
        ),
        (
            PG_TOAST_NAMESPACE.get(),
            PG_NAMESPACE,
            "reserved schema for TOAST tables",
        ),
        (
            PG_PUBLIC_NAMESPACE.get(),
            PG_NAMESPACE,
            "standard public schema",
        ),
        (PLPGSQL, PG_EXTENSION, PLPGSQL_COMMENT),
    ];
    for extension in &EXTENSIONS {
        if catalog.types.get(extension.ty).is_some() {
            standard.push((extension_of(extension.ty), PG_EXTENSION, extension.comment));
        }
    }
    standard
}

/// `pg_description`
pub(super) fn pg_description(cx: &VirtualContext<'_>) -> Rows {
    let mut all: Vec<_> = cx
        .catalog
        .notes
        .comments
        .iter()
        .filter(|((class, ..), _)| !matches!(*class, PG_DATABASE | PG_AUTHID))
        .collect();
    all.sort_unstable_by_key(|(key, _)| **key);
    let comments = &cx.catalog.notes.comments;
    let standard = standard_comments(cx.catalog)
        .into_iter()
        .filter(|(object, class, _)| !comments.contains_key(&(*class, *object, 0)))
        .map(|(object, class, text)| row![Id(object), class, 0_i32, text]);
    let stored = all
        .into_iter()
        .map(|((class, object, sub), text)| row![Id(*object), *class, *sub, &**text]);
    Ok(standard.chain(stored).collect())
}
