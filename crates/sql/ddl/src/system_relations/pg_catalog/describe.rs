//! Objects by class and number as people and programs name them: `pg_describe_object`, `pg_identify_object`; the
//! rows of system relations that functions give.

use crate::pg_catalog::{routines, tables};
use logstead_sql_catalog::classes::{
    PG_AUTHID, PG_CLASS, PG_CONSTRAINT, PG_DATABASE, PG_EXTENSION, PG_NAMESPACE, PG_POLICY,
    PG_PROC, PG_TRIGGER, PG_TYPE,
};
use logstead_sql_catalog::extensions::extension_name;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_catalog::{Relation, RelationKind, VirtualContext};
use logstead_sql_func::{self as func, SystemRelationRows};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, Oid, oid};
use logstead_sql_types::{FunctionId, RelationId, RoleId, SchemaId, TypeId};

/// An object by class, number and column, as `pg_describe_object` is given it.
fn object(args: &[Datum]) -> Option<(RelationId, Oid, i32)> {
    match args {
        [Datum::Oid(class), Datum::Oid(object), Datum::Int4(sub)] => {
            Some((RelationId::new(*class), *object, *sub))
        }
        _ => None,
    }
}

/// `pg_describe_object`
pub(super) fn describe_object(args: &[Datum], cx: &VirtualContext<'_>) -> Datum {
    let described = object(args).and_then(|object| describe(object, cx));
    described.map_or(Datum::Null, Datum::text)
}

/// `pg_identify_object`: one row, of NULLs if there is no such object.
pub(super) fn identify_object(args: &[Datum], cx: &VirtualContext<'_>) -> Vec<Vec<Datum>> {
    let row = object(args).and_then(|object| identify(object, cx));
    vec![row.unwrap_or_else(|| vec![Datum::Null; 4])]
}

/// The rows of a system relation, without the columns that the function has not.
pub(super) fn relation_rows(
    rows: SystemRelationRows,
    cx: &VirtualContext<'_>,
) -> Result<Vec<Vec<Datum>>> {
    let found = tables().find(|t| t.schema == "pg_catalog" && t.name == rows.relation);
    let table = found
        .ok_or_else(|| SqlError::internal(format!("there is no relation {}", rows.relation)))?;
    let names = table.columns.iter().map(|(name, _)| name);
    let kept: Vec<bool> = names.map(|name| !rows.without.contains(name)).collect();
    let cells = |row: Vec<Datum>| {
        let cells = row.into_iter().zip(&kept).filter(|(_, kept)| **kept);
        cells.map(|(cell, _)| cell).collect()
    };
    Ok((table.rows)(cx)?.into_iter().map(cells).collect())
}

/// `information_schema._pg_index_position`: which key of an index a column is.
pub(super) fn index_position(args: &[Datum], cx: &VirtualContext<'_>) -> Datum {
    let [Datum::Oid(index), Datum::Int2(column)] = args else {
        return Datum::Null;
    };
    let index = RelationId::new(*index);
    let table = cx.catalog.index_tables.get(&index);
    let table = table.and_then(|table| cx.catalog.relations.get(table));
    let index = table.and_then(|table| table.indexes.iter().find(|i| i.oid == index));
    let at = index.and_then(|index| {
        let wanted = usize::try_from(*column).ok()?.checked_sub(1)?;
        let keys = index.columns.iter().map(|key| key.position());
        let mut all = keys.chain(index.include.iter().map(|p| Some(*p)));
        all.position(|position| position == Some(wanted))
    });
    let at = at.and_then(|at| i32::try_from(at + 1).ok());
    at.map_or(Datum::Null, Datum::Int4)
}

/// What an object is called: its kind, its schema and name, what it is on.
struct ObjectIdentity {
    kind: &'static str,
    schema: Option<String>,
    /// By itself, without its schema; none for what has no name that tells it apart.
    name: Option<String>,
    /// In full, each part quoted where it must be.
    identity: String,
    /// As people call it, without its kind's word.
    spoken: String,
}

impl ObjectIdentity {
    fn of_shared(kind: &'static str, name: &str) -> ObjectIdentity {
        ObjectIdentity {
            kind,
            schema: None,
            name: Some(quote_ident(name)),
            identity: quote_ident(name),
            spoken: name.to_owned(),
        }
    }
}

fn relation_word(relation: &Relation) -> &'static str {
    match relation.kind {
        RelationKind::Sequence(_) => "sequence",
        RelationKind::View(_) => "view",
        RelationKind::Materialized(..) => "materialized view",
        RelationKind::Virtual(table) if table.is_view() => "view",
        RelationKind::Table | RelationKind::Virtual(_) => "table",
    }
}

/// `pg_describe_object`
fn describe(object: (RelationId, Oid, i32), cx: &VirtualContext<'_>) -> Option<String> {
    let named = named(object, cx)?;
    Some(match named.kind {
        // The owner's word is part of how they are spoken of.
        "table column"
        | "view column"
        | "materialized view column"
        | "composite type column"
        | "default value" => named.spoken,
        "table constraint" | "domain constraint" => format!("constraint {}", named.spoken),
        // Whatever is called is a function to it.
        "aggregate" | "procedure" => format!("function {}", named.spoken),
        kind => format!("{kind} {}", named.spoken),
    })
}

/// `pg_identify_object`: type, schema, name, identity.
fn identify(object: (RelationId, Oid, i32), cx: &VirtualContext<'_>) -> Option<Vec<Datum>> {
    let named = named(object, cx)?;
    let text = |text: Option<String>| text.map_or(Datum::Null, Datum::text);
    Some(vec![
        Datum::text(named.kind),
        text(named.schema),
        text(named.name),
        Datum::text(named.identity),
    ])
}

fn named(
    (class, object, sub): (RelationId, Oid, i32),
    cx: &VirtualContext<'_>,
) -> Option<ObjectIdentity> {
    let catalog = cx.catalog;
    match class {
        PG_CLASS => relation(RelationId::new(object), sub, cx),
        PG_TYPE => of_type(TypeId::new(object), cx),
        PG_PROC => function(FunctionId::new(object), cx),
        PG_NAMESPACE => {
            let schema = catalog.schemas.get(&SchemaId::new(object))?;
            Some(ObjectIdentity::of_shared("schema", &schema.name))
        }
        PG_EXTENSION if object == crate::pg_catalog::PLPGSQL => {
            Some(ObjectIdentity::of_shared("extension", "plpgsql"))
        }
        PG_EXTENSION => Some(ObjectIdentity::of_shared(
            "extension",
            extension_name(catalog, object)?,
        )),
        PG_AUTHID => Some(ObjectIdentity::of_shared(
            "role",
            &catalog.roles.get(RoleId::new(object))?.name,
        )),
        PG_DATABASE => {
            let mut all = catalog.notes.databases.all();
            let found = all.find(|database| database.oid.get() == object)?;
            Some(ObjectIdentity::of_shared("database", &found.name))
        }
        PG_CONSTRAINT => constraint(object, cx),
        PG_TRIGGER => {
            let trigger = catalog.triggers.get(object)?;
            on_relation("trigger", &trigger.name, trigger.table, cx)
        }
        PG_POLICY => {
            let all = catalog.relations.values();
            let mut all = all.flat_map(|r| r.security.policies.iter().map(move |p| (r, p)));
            let (relation, policy) = all.find(|(_, policy)| policy.oid == object)?;
            on_relation("policy", &policy.name, relation.oid, cx)
        }
        PG_REWRITE => {
            let mut all = catalog.relations.values();
            let view = all.find(|r| r.view().is_some_and(|view| view.rule == object))?;
            on_relation("rule", "_RETURN", view.oid, cx)
        }
        PG_ATTRDEF => default_value(object, cx),
        _ => None,
    }
}

/// OID of `pg_rewrite`.
const PG_REWRITE: RelationId = RelationId::new(2618);
/// OID of `pg_attrdef`.
const PG_ATTRDEF: RelationId = RelationId::new(2604);

fn qualified(schema: &str, name: &str) -> String {
    format!("{}.{}", quote_ident(schema), quote_ident(name))
}

/// The kind of a relation, a composite type as one, or an index.
pub(super) fn kind_of(object: RelationId, cx: &VirtualContext<'_>) -> Option<&'static str> {
    if let Some(relation) = cx.catalog.relations.get(&object) {
        return Some(relation_word(relation));
    }
    if cx.catalog.index_tables.get(&object).is_some() {
        return Some("index");
    }
    cx.catalog
        .types
        .composite_of(object)
        .map(|_| "composite type")
}

/// A relation as people call it: its schema only where the path does not find it.
fn spoken(object: RelationId, cx: &VirtualContext<'_>) -> Option<String> {
    let (schema, name) = cx.catalog.name_of(object)?;
    let path = cx.session.search_path();
    let found = cx.catalog.object_by_name(None, name, &path) == Some(object);
    Some(if found {
        quote_ident(name)
    } else {
        qualified(schema, name)
    })
}

fn relation(object: RelationId, sub: i32, cx: &VirtualContext<'_>) -> Option<ObjectIdentity> {
    let (schema, name) = cx.catalog.name_of(object)?;
    let kind = kind_of(object, cx)?;
    let spoken = spoken(object, cx)?;
    if sub == 0 {
        return Some(ObjectIdentity {
            kind,
            schema: Some(quote_ident(schema)),
            name: Some(quote_ident(name)),
            identity: qualified(schema, name),
            spoken,
        });
    }
    let at = usize::try_from(sub).ok()?.checked_sub(1)?;
    let columns = cx.catalog.relations.get(&object).map(|r| &r.columns);
    let column = match columns {
        Some(columns) => columns.get(at).filter(|c| !c.dropped)?.name.clone(),
        None => {
            let ty = cx.catalog.types.composite_of(object)?;
            let attributes = &ty.composite()?.attributes;
            let found = attributes.iter().find(|a| i32::from(a.number) == sub)?;
            found.name.to_string()
        }
    };
    Some(ObjectIdentity {
        kind: match kind {
            "view" => "view column",
            "materialized view" => "materialized view column",
            "composite type" => "composite type column",
            _ => "table column",
        },
        schema: Some(quote_ident(schema)),
        name: Some(quote_ident(name)),
        identity: format!("{}.{}", qualified(schema, name), quote_ident(&column)),
        spoken: format!("column {column} of {kind} {spoken}"),
    })
}

/// A type with its schema, unless SQL has a word of its own for it.
fn full_type(object: TypeId, known: TypeLookup<'_>) -> String {
    let types = known.types;
    if let Some(element) = { types.element_of(object) }
        .filter(|_| types.type_info(object).is_some_and(|t| t.category == 'A'))
        && !matches!(object, oid::INT2VECTOR | oid::OIDVECTOR)
    {
        return format!("{}[]", full_type(element, known));
    }
    let shown = known.format_type_bare(object);
    let name = types.type_name(object);
    let is_word = matches!(object, oid::BIT | oid::NUMERIC | oid::INTERVAL);
    match types.schema_of(object) {
        Some(schema) => format!("{}.{}", quote_ident(schema), quote_ident(&name)),
        None if is_word || shown != *name => shown,
        None => format!("pg_catalog.{shown}"),
    }
}

fn of_type(object: TypeId, cx: &VirtualContext<'_>) -> Option<ObjectIdentity> {
    let path = cx.session.search_path();
    let known = cx.lookup(&path).types();
    let types = known.types;
    if !types.exists(object) {
        return None;
    }
    let schema = types.schema_of(object).unwrap_or("pg_catalog");
    let spoken = known.format_type_bare(object);
    let identity = full_type(object, known);
    Some(ObjectIdentity {
        kind: "type",
        schema: Some(quote_ident(schema)),
        name: Some(quote_ident(&types.type_name(object))),
        identity,
        spoken,
    })
}

/// What a function is called by kind: a procedure and an aggregate are none.
pub(super) fn routine_word(object: FunctionId, cx: &VirtualContext<'_>) -> &'static str {
    match cx.catalog.routines.get(object) {
        Some(routine) => routine.word(),
        None if func::AGGREGATES.iter().any(|a| a.oid == object) => "aggregate",
        None => "function",
    }
}

fn function(object: FunctionId, cx: &VirtualContext<'_>) -> Option<ObjectIdentity> {
    let shown = routines::regprocedure_out(object, cx)?;
    let kind = routine_word(object, cx);
    let schema = match cx.catalog.routines.get(object) {
        Some(routine) => routine.schema_name.clone(),
        None => {
            let function = func::function_by_oid(object);
            function.map_or("pg_catalog", func::schema_of).to_owned()
        }
    };
    let (name, types) = match cx.catalog.routines.get(object) {
        Some(routine) => (routine.name.clone(), routine.input_types()),
        None => {
            let name = shown.split('(').next().unwrap_or_default();
            let function = func::function_by_oid(object);
            let types = function.map(|f| f.args.to_vec()).unwrap_or_default();
            (name.to_owned(), types)
        }
    };
    let path = cx.session.search_path();
    let known = cx.lookup(&path).types();
    let types = types.into_iter().map(|ty| full_type(ty, known));
    let types: Vec<String> = types.collect();
    let identity = format!(
        "{}.{}({})",
        quote_ident(&schema),
        quote_ident(&name),
        types.join(",")
    );
    Some(ObjectIdentity {
        kind,
        schema: Some(quote_ident(&schema)),
        name: None,
        identity,
        spoken: shown,
    })
}

fn on_relation(
    kind: &'static str,
    name: &str,
    relation: RelationId,
    cx: &VirtualContext<'_>,
) -> Option<ObjectIdentity> {
    let (schema, of) = cx.catalog.name_of(relation)?;
    let (word, called) = (kind_of(relation, cx)?, spoken(relation, cx)?);
    Some(ObjectIdentity {
        kind,
        schema: None,
        name: None,
        identity: format!("{} on {}", quote_ident(name), qualified(schema, of)),
        spoken: format!("{name} on {word} {called}"),
    })
}

fn constraint(object: Oid, cx: &VirtualContext<'_>) -> Option<ObjectIdentity> {
    if let Some(table) = cx.catalog.constraint_tables.get(&object) {
        let relation = cx.catalog.relations.get(table)?;
        let found = relation.constraints.iter().find(|c| c.oid == object)?;
        let mut named = on_relation("table constraint", &found.name, *table, cx)?;
        named.schema = Some(quote_ident(&relation.schema_name));
        return Some(named);
    }
    let all = cx.catalog.types.all();
    let mut checks = all.into_iter().flat_map(|ty| {
        let checks = ty.domain().map_or(&[][..], |domain| &domain.checks);
        checks.iter().map(move |check| (ty, check))
    });
    let (ty, check) = checks.find(|(_, check)| check.oid == object)?;
    Some(ObjectIdentity {
        kind: "domain constraint",
        schema: Some(quote_ident(&ty.schema_name)),
        name: None,
        identity: format!(
            "{} on {}",
            quote_ident(&check.name),
            qualified(&ty.schema_name, &ty.name)
        ),
        spoken: check.name.to_string(),
    })
}

fn default_value(object: Oid, cx: &VirtualContext<'_>) -> Option<ObjectIdentity> {
    let stored = |r: &&std::sync::Arc<Relation>| !matches!(r.kind, RelationKind::Virtual(_));
    let all = cx.catalog.relations.values().filter(stored);
    let mut columns = all.flat_map(|r| (0..r.columns.len()).map(move |at| (r, at)));
    let (relation, at) =
        columns.find(|(r, at)| crate::pg_catalog::attrdef_oid(r.oid, *at) == object)?;
    let column = relation.columns.get(at).filter(|c| c.default.is_some())?;
    let name = qualified(&relation.schema_name, &relation.name);
    let (word, called) = (relation_word(relation), spoken(relation.oid, cx)?);
    Some(ObjectIdentity {
        kind: "default value",
        schema: None,
        name: None,
        identity: format!("for {name}.{}", quote_ident(&column.name)),
        spoken: format!(
            "default value for column {} of {word} {called}",
            column.name
        ),
    })
}
