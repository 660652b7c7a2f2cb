//! Objects by what they are called: `pg_get_object_address`.
//!
//! Names are looked up as the statements that make the objects do; whatever has no name space of its own is found as a
//! row of the catalogue that shows it.

use super::describe::kind_of;
use crate::pg_catalog::tables;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::classes::{
    PG_CLASS, PG_DATABASE, PG_NAMESPACE, PG_OPERATOR, PG_PROC, PG_TYPE,
};
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Oid, SqlType, oid, text_io};
use logstead_sql_types::{FunctionId, RelationId, TypeId};
use logstead_types::SqlState;

/// Kinds that have a word but no address by name.
const WITHOUT_ADDRESS: [&str; 8] = [
    "toast table",
    "composite type",
    "index column",
    "sequence column",
    "toast table column",
    "view column",
    "materialized view column",
    "composite type column",
];
/// A kind of object that one name names.
struct NamedKind {
    kind: &'static str,
    catalog: &'static str,
    /// The catalog's column of names.
    name: &'static str,
}

/// All of them.
#[rustfmt::skip]
const BY_ONE_NAME: [NamedKind; 11] = [
    NamedKind { kind: "access method", catalog: "pg_am", name: "amname" },
    NamedKind { kind: "event trigger", catalog: "pg_event_trigger", name: "evtname" },
    NamedKind { kind: "extension", catalog: "pg_extension", name: "extname" },
    NamedKind { kind: "foreign-data wrapper", catalog: "pg_foreign_data_wrapper", name: "fdwname" },
    NamedKind { kind: "language", catalog: "pg_language", name: "lanname" },
    NamedKind { kind: "parameter ACL", catalog: "pg_parameter_acl", name: "parname" },
    NamedKind { kind: "publication", catalog: "pg_publication", name: "pubname" },
    NamedKind { kind: "role", catalog: "pg_authid", name: "rolname" },
    NamedKind { kind: "server", catalog: "pg_foreign_server", name: "srvname" },
    NamedKind { kind: "subscription", catalog: "pg_subscription", name: "subname" },
    NamedKind { kind: "tablespace", catalog: "pg_tablespace", name: "spcname" },
];

/// A kind of object that is in schemas.
struct SchemaKind {
    kind: &'static str,
    catalog: &'static str,
    /// The catalog's column of names.
    name: &'static str,
    /// The catalog's column of schemas.
    schema: &'static str,
}

/// All of them that a catalog's row tells of.
#[rustfmt::skip]
const IN_SCHEMAS: [SchemaKind; 7] = [
    SchemaKind { kind: "collation", catalog: "pg_collation", name: "collname", schema: "collnamespace" },
    SchemaKind { kind: "conversion", catalog: "pg_conversion", name: "conname", schema: "connamespace" },
    SchemaKind { kind: "statistics object", catalog: "pg_statistic_ext", name: "stxname", schema: "stxnamespace" },
    SchemaKind { kind: "text search configuration", catalog: "pg_ts_config", name: "cfgname", schema: "cfgnamespace" },
    SchemaKind { kind: "text search dictionary", catalog: "pg_ts_dict", name: "dictname", schema: "dictnamespace" },
    SchemaKind { kind: "text search parser", catalog: "pg_ts_parser", name: "prsname", schema: "prsnamespace" },
    SchemaKind { kind: "text search template", catalog: "pg_ts_template", name: "tmplname", schema: "tmplnamespace" },
];

/// A kind of object that stands on a relation.
struct RelationPartKind {
    kind: &'static str,
    catalog: &'static str,
    /// The catalog's column of names.
    name: &'static str,
    /// The catalog's column of relations.
    relation: &'static str,
    /// The word for the relation in messages.
    word: &'static str,
}

/// All of them.
#[rustfmt::skip]
const ON_RELATIONS: [RelationPartKind; 4] = [
    RelationPartKind { kind: "rule", catalog: "pg_rewrite", name: "rulename", relation: "ev_class", word: "relation" },
    RelationPartKind { kind: "trigger", catalog: "pg_trigger", name: "tgname", relation: "tgrelid", word: "table" },
    RelationPartKind { kind: "table constraint", catalog: "pg_constraint", name: "conname", relation: "conrelid", word: "table" },
    RelationPartKind { kind: "policy", catalog: "pg_policy", name: "polname", relation: "polrelid", word: "table" },
];

/// Class, number and part of an object.
type Address = (RelationId, Oid, i32);

fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
}

fn no_schema(name: &str) -> SqlError {
    let message = format!("schema \"{name}\" does not exist");
    SqlError::new(SqlState::new(b"3F000"), message)
}

fn missing(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::UNDEFINED_OBJECT, message)
}

/// `pg_get_object_address`: kind, names and arguments to class, number and part.
pub(super) fn object_address(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let [Datum::Text(kind), names, args] = args else {
        return Ok(vec![vec![Datum::Null; 3]]);
    };
    let (class, object, sub) = address(kind, names, args, cx)?;
    Ok(vec![vec![
        Datum::Oid(class.get()),
        Datum::Oid(object),
        Datum::Int4(sub),
    ]])
}

/// The elements of an array of texts; none of a NULL.
fn texts(array: &Datum) -> Vec<Option<&str>> {
    match array {
        Datum::Array(array) => { array.items.iter() }
            .map(|item| match item {
                Datum::Text(text) => Some(&**text),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn without_nulls(array: &Datum) -> Result<Vec<&str>> {
    let all: Option<Vec<&str>> = texts(array).into_iter().collect();
    all.ok_or_else(|| invalid("name or argument lists may not contain nulls"))
}

fn of_length(what: &str, names: &[&str], wanted: usize) -> Result<()> {
    match names.len() == wanted {
        true => Ok(()),
        false => Err(invalid(format!(
            "{what} list length must be exactly {wanted}"
        ))),
    }
}

fn is_known(kind: &str) -> bool {
    const OTHERS: [&str; 27] = [
        "table",
        "index",
        "sequence",
        "view",
        "materialized view",
        "foreign table",
        "table column",
        "foreign table column",
        "aggregate",
        "function",
        "procedure",
        "type",
        "cast",
        "domain constraint",
        "default value",
        "large object",
        "operator",
        "operator class",
        "operator family",
        "operator of access method",
        "function of access method",
        "schema",
        "database",
        "user mapping",
        "default acl",
        "publication namespace",
        "transform",
    ];
    OTHERS.contains(&kind)
        || kind == "publication relation"
        || BY_ONE_NAME.iter().any(|known| known.kind == kind)
        || IN_SCHEMAS.iter().any(|known| known.kind == kind)
        || ON_RELATIONS.iter().any(|known| known.kind == kind)
}

fn address(kind: &str, names: &Datum, args: &Datum, cx: &VirtualContext<'_>) -> Result<Address> {
    if WITHOUT_ADDRESS.contains(&kind) {
        return Err(invalid(format!("unsupported object type \"{kind}\"")));
    }
    if !is_known(kind) {
        return Err(invalid(format!("unrecognized object type \"{kind}\"")));
    }
    let of_type = matches!(kind, "type" | "cast" | "transform" | "domain constraint");
    if of_type || kind == "large object" {
        if texts(names).len() != 1 {
            return Err(invalid("name list length must be exactly 1"));
        }
        if kind == "large object" && texts(names) == [None] {
            return Err(invalid("large object OID may not be null"));
        }
    }
    let names = without_nulls(names)?;
    if names.is_empty() {
        return Err(invalid("name list length must be at least 1"));
    }
    let args = without_nulls(args)?;
    if matches!(kind, "publication namespace" | "user mapping") {
        of_length("name", &names, 1)?;
    }
    if matches!(
        kind,
        "publication namespace"
            | "user mapping"
            | "domain constraint"
            | "cast"
            | "publication relation"
            | "default acl"
            | "transform"
    ) {
        of_length("argument", &args, 1)?;
    }
    let least = match kind {
        "operator family" | "operator class" => 2,
        "operator of access method" | "function of access method" => 3,
        _ => 1,
    };
    if names.len() < least {
        return Err(invalid(format!(
            "name list length must be at least {least}"
        )));
    }
    if matches!(
        kind,
        "operator of access method" | "function of access method" | "operator"
    ) {
        of_length("argument", &args, 2)?;
    }
    if let Some(known) = BY_ONE_NAME.iter().find(|known| known.kind == kind) {
        of_length("name", &names, 1)?;
        let found = row(cx, known.catalog, &[(known.name, names[0])])?;
        return found.ok_or_else(|| missing(format!("{kind} \"{}\" does not exist", names[0])));
    }
    if let Some(known) = IN_SCHEMAS.iter().find(|known| known.kind == kind) {
        return in_schema(known, &names, cx);
    }
    if let Some(found) = ON_RELATIONS.iter().find(|known| known.kind == kind) {
        return on_relation(found, &names, cx);
    }
    match kind {
        "schema" => {
            of_length("name", &names, 1)?;
            let found = cx.catalog.schema(names[0]);
            let found = found.ok_or_else(|| no_schema(names[0]))?;
            Ok((PG_NAMESPACE, found.oid.get(), 0))
        }
        "database" => {
            of_length("name", &names, 1)?;
            let found = row(cx, "pg_database", &[("datname", names[0])])?;
            let message = format!("database \"{}\" does not exist", names[0]);
            found
                .map(|(_, object, _)| (PG_DATABASE, object, 0))
                .ok_or_else(|| SqlError::new(SqlState::new(b"3D000"), message))
        }
        "large object" => {
            let number = text_io::input(SqlType::of(oid::OID), names[0], Some(cx.session))?;
            let number = number.as_oid()?.to_string();
            let found = row(cx, "pg_largeobject_metadata", &[("oid", &number)])?;
            // Its class is that of the pages, as PostgreSQL has it.
            found
                .map(|(_, object, _)| (PG_LARGEOBJECT, object, 0))
                .ok_or_else(|| missing(format!("large object {number} does not exist")))
        }
        "table" | "index" | "sequence" | "view" | "materialized view" | "foreign table" => {
            let (object, found) = relation(&names, cx)?;
            if found == kind {
                return Ok((PG_CLASS, object.get(), 0));
            }
            let article = if kind == "index" { "an" } else { "a" };
            let name = names.last().copied().unwrap_or_default();
            let message = format!("\"{name}\" is not {article} {kind}");
            Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
        }
        "table column" | "foreign table column" | "default value" => column(kind, &names, cx),
        "type" => Ok((PG_TYPE, type_named(names[0], cx)?.get(), 0)),
        "domain constraint" => {
            let domain = type_named(names[0], cx)?;
            let number = domain.to_string();
            let wanted = [("conname", args[0]), ("contypid", number.as_str())];
            let found = row(cx, "pg_constraint", &wanted)?;
            found.ok_or_else(|| {
                let domain = format_type_bare(domain, cx);
                let name = args[0];
                missing(format!(
                    "constraint \"{name}\" for domain {domain} does not exist"
                ))
            })
        }
        "cast" => {
            let source = type_named(names[0], cx)?;
            let target = type_named(args[0], cx)?;
            let (from, to) = (source.to_string(), target.to_string());
            let wanted = [("castsource", from.as_str()), ("casttarget", to.as_str())];
            row(cx, "pg_cast", &wanted)?.ok_or_else(|| {
                let (from, to) = (format_type_bare(source, cx), format_type_bare(target, cx));
                missing(format!("cast from type {from} to type {to} does not exist"))
            })
        }
        "transform" => {
            let ty = format_type_bare(type_named(names[0], cx)?, cx);
            match row(cx, "pg_language", &[("lanname", args[0])])? {
                Some(_) => Err(missing(format!(
                    "transform for type {ty} language \"{}\" does not exist",
                    args[0]
                ))),
                None => Err(missing(format!("language \"{}\" does not exist", args[0]))),
            }
        }
        "aggregate" | "function" | "procedure" => function(kind, &names, &args, cx),
        "operator" => operator(&names, &args, cx),
        "operator class" | "operator family" => of_method(kind, &names, cx),
        "operator of access method" | "function of access method" => {
            member(kind, &names, &args, cx)
        }
        "user mapping" => Err(missing(format!(
            "user mapping for user \"{}\" on server \"{}\" does not exist",
            names[0], args[0]
        ))),
        "default acl" => default_acl(&names, args[0], cx),
        "publication namespace" | "publication relation" => {
            if kind == "publication relation" {
                relation(&names, cx)?;
            } else if cx.catalog.schema(names[0]).is_none() {
                return Err(no_schema(names[0]));
            }
            Err(missing(format!(
                "publication \"{}\" does not exist",
                args[0]
            )))
        }
        _ => Err(invalid(format!("unrecognized object type \"{kind}\""))),
    }
}

/// A type as `regtype` reads it.
fn type_named(text: &str, cx: &VirtualContext<'_>) -> Result<TypeId> {
    let ty = text_io::input(SqlType::of(oid::REGTYPE), text, Some(cx.session))?;
    ty.as_oid().map(TypeId::new)
}

/// Schema and name of names that are one or two.
fn split<'n>(names: &[&'n str]) -> Result<(Option<&'n str>, &'n str)> {
    match names {
        [name] => Ok((None, name)),
        [schema, name] => Ok((Some(schema), name)),
        [_, _, _] => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "cross-database references are not implemented: {}",
                names.join(".")
            ),
        )),
        _ => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!(
                "improper qualified name (too many dotted names): {}",
                names.join(".")
            ),
        )),
    }
}

/// Number and kind of a relation.
fn relation(names: &[&str], cx: &VirtualContext<'_>) -> Result<(RelationId, &'static str)> {
    let (schema, name) = match names {
        [database, schema, name] if *database == cx.catalog.database_name => (Some(*schema), *name),
        [_, _, _] => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "cross-database references are not implemented: \"{}\"",
                    names.join(".")
                ),
            ));
        }
        names => split(names)?,
    };
    if let Some(schema) = schema.filter(|schema| cx.catalog.schema(schema).is_none()) {
        return Err(no_schema(schema));
    }
    let found = cx
        .catalog
        .object_by_name(schema, name, &cx.session.search_path());
    let found = found.and_then(|object| Some((object, kind_of(object, cx)?)));
    found.ok_or_else(|| {
        let shown = schema.map_or_else(|| name.to_owned(), |schema| format!("{schema}.{name}"));
        SqlError::new(
            SqlState::UNDEFINED_TABLE,
            format!("relation \"{shown}\" does not exist"),
        )
    })
}

/// A column, or its default.
fn column(kind: &str, names: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let Some((column, of @ [_, ..])) = names.split_last() else {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "column name must be qualified",
        ));
    };
    let (object, _) = relation(of, cx)?;
    let name = of.join(".");
    let number = object.to_string();
    let wanted = [("attname", *column), ("attrelid", number.as_str())];
    let part = cell(cx, "pg_attribute", &wanted, "attnum")?.and_then(|cell| match cell {
        Datum::Int2(part) => Some(i32::from(part)),
        _ => None,
    });
    let what = format!("column \"{column}\" of relation \"{name}\" does not exist");
    let missing = |what: String| SqlError::new(SqlState::UNDEFINED_COLUMN, what);
    if kind != "default value" {
        let part = part.ok_or_else(|| missing(what))?;
        return Ok((PG_CLASS, object.get(), part));
    }
    let part = part.unwrap_or_default().to_string();
    let wanted = [("adrelid", number.as_str()), ("adnum", part.as_str())];
    let found = row(cx, "pg_attrdef", &wanted)?;
    found.ok_or_else(|| missing(format!("default value for {what}")))
}

/// A rule, trigger, constraint or policy of a relation.
fn on_relation(
    part: &RelationPartKind,
    names: &[&str],
    cx: &VirtualContext<'_>,
) -> Result<Address> {
    let Some((name, table @ [_, ..])) = names.split_last() else {
        return Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            "must specify relation and object name",
        ));
    };
    let (object, _) = relation(table, cx)?;
    let number = object.to_string();
    let wanted = [(part.name, *name), (part.relation, number.as_str())];
    let found = row(cx, part.catalog, &wanted)?;
    found.ok_or_else(|| {
        let (kind, word) = (part.kind, part.word);
        let kind = kind.strip_prefix("table ").unwrap_or(kind);
        let table = table.last().copied().unwrap_or_default();
        missing(format!(
            "{kind} \"{name}\" for {word} \"{table}\" does not exist"
        ))
    })
}

/// An object of a kind that has names in schemas.
fn in_schema(known: &SchemaKind, names: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let (schema, name) = split(names)?;
    let path = cx.session.search_path();
    let in_one = |schema: &str| -> Result<Option<Address>> {
        let Some(schema) = cx.catalog.schema(schema) else {
            return Ok(None);
        };
        let number = schema.oid.to_string();
        let wanted = [(known.name, name), (known.schema, number.as_str())];
        row(cx, known.catalog, &wanted)
    };
    let mut found = None;
    match schema {
        Some(schema) if cx.catalog.schema(schema).is_none() => {
            return Err(no_schema(schema));
        }
        Some(schema) => found = in_one(schema)?,
        None => {
            let system = (!path.iter().any(|s| s == "pg_catalog")).then_some("pg_catalog");
            for schema in system.into_iter().chain(path.iter().map(String::as_str)) {
                found = found.or(in_one(schema)?);
            }
        }
    }
    found.ok_or_else(|| {
        let (kind, name) = (known.kind, names.join("."));
        missing(match kind {
            "collation" => format!("collation \"{name}\" for encoding \"UTF8\" does not exist"),
            _ => format!("{kind} \"{name}\" does not exist"),
        })
    })
}

/// A function, aggregate or procedure with these types of arguments.
fn function(kind: &str, names: &[&str], args: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let (_, plain) = split(names)?;
    let mut types = Vec::with_capacity(args.len());
    for arg in args {
        types.push(type_named(arg, cx)?);
    }
    let shown: Vec<String> = { types.iter() }
        .map(|ty| format_type_bare(*ty, cx))
        .collect();
    let quoted: Vec<String> = names.iter().map(|name| quote_ident(name)).collect();
    let signature = format!("{}({})", quoted.join("."), shown.join(","));
    let found = text_io::input(SqlType::of(oid::REGPROCEDURE), &signature, Some(cx.session));
    let none = || {
        let name = names.join(".");
        let shown = match kind == "aggregate" && types.is_empty() {
            true => format!("{name}(*)"),
            false => format!("{name}({})", shown.join(", ")),
        };
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("{kind} {shown} does not exist"),
        )
    };
    let object = match found {
        Ok(found) => found.as_oid()?,
        Err(error) if error.code() == SqlState::UNDEFINED_FUNCTION => return Err(none()),
        Err(error) => return Err(error),
    };
    let word = super::describe::routine_word(FunctionId::new(object), cx);
    if word == kind || (kind == "function" && word == "window function") {
        return Ok((PG_PROC, object, 0));
    }
    let message = match kind {
        "aggregate" => format!("function {plain}({}) is not an aggregate", shown.join(", ")),
        _ => format!("{plain}({}) is not a {kind}", shown.join(", ")),
    };
    Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message))
}

/// Prints a type without a modifier, as the session sees it.
fn format_type_bare(ty: TypeId, cx: &VirtualContext<'_>) -> String {
    let path = cx.session.search_path();
    cx.lookup(&path).types().format_type_bare(ty)
}

fn operator(names: &[&str], args: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let (left, right) = (type_named(args[0], cx)?, type_named(args[1], cx)?);
    let name = names.join(".");
    let (left, right) = (format_type_bare(left, cx), format_type_bare(right, cx));
    let signature = format!("{name}({left},{right})");
    match text_io::input(SqlType::of(oid::REGOPERATOR), &signature, Some(cx.session)) {
        Ok(found) => Ok((PG_OPERATOR, found.as_oid()?, 0)),
        Err(error) if error.code() == SqlState::UNDEFINED_FUNCTION => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("operator does not exist: {left} {name} {right}"),
        )),
        Err(error) => Err(error),
    }
}

/// The number of an access method.
fn method(name: &str, cx: &VirtualContext<'_>) -> Result<Oid> {
    let found = row(cx, "pg_am", &[("amname", name)])?;
    let found = found.map(|(_, object, _)| object);
    found.ok_or_else(|| missing(format!("access method \"{name}\" does not exist")))
}

/// A class or family of operators: method, schema, name.
fn of_method(kind: &str, names: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let number = method(names[0], cx)?.to_string();
    let (schema, name) = split(&names[1..])?;
    let (catalogue, column, methods, schemas) = match kind {
        "operator class" => ("pg_opclass", "opcname", "opcmethod", "opcnamespace"),
        _ => ("pg_opfamily", "opfname", "opfmethod", "opfnamespace"),
    };
    let mut wanted = vec![(column, name), (methods, number.as_str())];
    let of_schema = match schema {
        Some(schema) => {
            let found = cx.catalog.schema(schema);
            let found = found.ok_or_else(|| no_schema(schema))?;
            Some(found.oid.to_string())
        }
        None => None,
    };
    wanted.extend(of_schema.as_deref().map(|schema| (schemas, schema)));
    row(cx, catalogue, &wanted)?.ok_or_else(|| {
        missing(format!(
            "{kind} \"{}\" does not exist for access method \"{}\"",
            names[1..].join("."),
            names[0]
        ))
    })
}

/// An operator or a function of a family, by its number.
fn member(kind: &str, names: &[&str], args: &[&str], cx: &VirtualContext<'_>) -> Result<Address> {
    let (number, family) = names.split_last().unwrap_or((&"", &[]));
    let (_, object, _) = of_method("operator family", family, cx)?;
    let (left, right) = (type_named(args[0], cx)?, type_named(args[1], cx)?);
    let wanted: i32 = number.trim().parse().map_err(|_| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type integer: \"{number}\""),
        )
    })?;
    let (catalogue, columns) = match kind {
        "operator of access method" => (
            "pg_amop",
            [
                "amopfamily",
                "amoplefttype",
                "amoprighttype",
                "amopstrategy",
            ],
        ),
        _ => (
            "pg_amproc",
            [
                "amprocfamily",
                "amproclefttype",
                "amprocrighttype",
                "amprocnum",
            ],
        ),
    };
    let values = [
        object.to_string(),
        left.to_string(),
        right.to_string(),
        wanted.to_string(),
    ];
    let all = { columns.iter().zip(&values) }.map(|(column, value)| (*column, value.as_str()));
    row(cx, catalogue, &all.collect::<Vec<_>>())?.ok_or_else(|| {
        missing(format!(
            "{} {wanted} ({}, {}) of operator family {} for access method {} does not exist",
            kind.split(' ').next().unwrap_or(kind),
            args[0],
            args[1],
            family[1..].join("."),
            family[0],
        ))
    })
}

/// The privileges that a role gives to what it will make.
fn default_acl(names: &[&str], kind: &str, cx: &VirtualContext<'_>) -> Result<Address> {
    let word = match kind.chars().next() {
        Some('r') => "tables",
        Some('S') => "sequences",
        Some('f') => "functions",
        Some('T') => "types",
        Some('n') => "schemas",
        letter => {
            let letter = letter.unwrap_or_default();
            return Err(
                invalid(format!("unrecognized default ACL object type \"{letter}\""))
                    .hint("Valid object types are \"r\", \"S\", \"f\", \"T\", and \"n\"."),
            );
        }
    };
    let of = match names.get(1) {
        Some(schema) => format!(
            "default ACL for user \"{}\" in schema \"{schema}\" on {word}",
            names[0]
        ),
        None => format!("default ACL for user \"{}\" on {word}", names[0]),
    };
    let none = || missing(format!("{of} does not exist"));
    let (_, role, _) = row(cx, "pg_authid", &[("rolname", names[0])])?.ok_or_else(none)?;
    let schema = match names.get(1) {
        Some(schema) => cx.catalog.schema(schema).ok_or_else(none)?.oid.get(),
        None => 0,
    };
    let (role, schema) = (role.to_string(), schema.to_string());
    let letter: String = kind.chars().take(1).collect();
    let wanted = [
        ("defaclrole", role.as_str()),
        ("defaclnamespace", schema.as_str()),
        ("defaclobjtype", letter.as_str()),
    ];
    row(cx, "pg_default_acl", &wanted)?.ok_or_else(none)
}

/// The row of a catalogue that has these texts in these columns, as an address.
fn row(
    cx: &VirtualContext<'_>,
    catalogue: &str,
    wanted: &[(&str, &str)],
) -> Result<Option<Address>> {
    let class = tables().find(|t| t.schema == "pg_catalog" && t.name == catalogue);
    let Some(class) = class.map(|table| table.oid) else {
        return Ok(None);
    };
    let found = cell(cx, catalogue, wanted, "oid")?;
    Ok(match found {
        Some(Datum::Oid(object)) => Some((class, object, 0)),
        _ => None,
    })
}

/// A column of that row.
fn cell(
    cx: &VirtualContext<'_>,
    catalogue: &str,
    wanted: &[(&str, &str)],
    column: &str,
) -> Result<Option<Datum>> {
    let Some(table) = tables().find(|t| t.schema == "pg_catalog" && t.name == catalogue) else {
        return Ok(None);
    };
    let place = |name: &str| table.columns.iter().position(|(column, _)| *column == name);
    let fits = |row: &Vec<Datum>| {
        wanted.iter().all(
            |(column, text)| match place(column).and_then(|at| row.get(at)) {
                Some(Datum::Text(found)) => **found == **text,
                Some(Datum::Oid(found)) => found.to_string() == *text,
                Some(Datum::Int2(found)) => found.to_string() == *text,
                Some(Datum::Int4(found)) => found.to_string() == *text,
                Some(Datum::Char(found)) => text.as_bytes() == [*found],
                _ => false,
            },
        )
    };
    let rows = (table.rows)(cx)?;
    let found = rows.into_iter().find(|row| fits(row));
    Ok(found.and_then(|row| row.get(place(column)?).cloned()))
}
