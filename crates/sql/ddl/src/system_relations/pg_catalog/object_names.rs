//! Objects by name, and their names: input and output of `regrole`, `regproc` and their kin.

use crate::pg_catalog::routines;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::name_lookup::name_and_types;
use logstead_sql_catalog::text::{quote_ident, split_qualified};
use logstead_sql_func::{self as func, Operator};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, RegType, SqlType};
use logstead_sql_types::{FunctionId, RoleId, SchemaId, TypeId};
use logstead_types::SqlState;

/// OID of an object by the text of its name, as its type reads it.
pub fn object_by_text(ty: RegType, name: &str, cx: &VirtualContext<'_>) -> Result<Oid> {
    match ty {
        RegType::Role => {
            let name = bare_name(name)?;
            let role = cx.catalog.roles.by_name(&name);
            role.map(|role| role.oid.get())
                .ok_or_else(|| crate::missing_object::no_role(&name))
        }
        RegType::Namespace => {
            let name = bare_name(name)?;
            let schema = cx.catalog.schema(&name).map(|schema| schema.oid.get());
            schema.ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_SCHEMA_NAME,
                    format!("schema \"{name}\" does not exist"),
                )
            })
        }
        RegType::Proc => routines::regproc_in(name, cx).map(FunctionId::get),
        RegType::Procedure => routines::regprocedure_in(name, cx).map(FunctionId::get),
        RegType::Oper => operator_in(name, cx.lookup(&cx.session.search_path())),
        RegType::Operator => signed_operator_in(name, cx.lookup(&cx.session.search_path())),
        RegType::Collation => collation_in(name),
    }
}

/// Name of an object as its type prints it; `None` if there is none.
pub fn object_text(ty: RegType, object: Oid, cx: &VirtualContext<'_>) -> Option<String> {
    match ty {
        RegType::Role => Some(quote_ident(
            &cx.catalog.roles.get(RoleId::new(object))?.name,
        )),
        RegType::Namespace => Some(quote_ident(
            &cx.catalog.schemas.get(&SchemaId::new(object))?.name,
        )),
        RegType::Proc => routines::regproc_out(FunctionId::new(object), cx),
        RegType::Procedure => routines::regprocedure_out(FunctionId::new(object), cx),
        RegType::Oper => operator_out(object, false, cx),
        RegType::Operator => operator_out(object, true, cx),
        // Collations are built in: they are printed without a session.
        RegType::Collation => None,
    }
}

/// A single name as regrole and regnamespace read it.
fn bare_name(text: &str) -> Result<String> {
    match <[String; 1]>::try_from(split_qualified(text)?) {
        Ok([name]) => Ok(name),
        Err(_) => Err(SqlError::new(SqlState::INVALID_NAME, "invalid name syntax")),
    }
}

/// An operator's name, apart from the schema that it may have before it.
fn operator_name(text: &str) -> Result<(Option<String>, &str)> {
    let text = text.trim();
    let mut quoted = false;
    let mut dot = None;
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '.' if !quoted => dot = Some(at),
            _ => {}
        }
    }
    let Some(dot) = dot else {
        return Ok((None, text));
    };
    let (schema, name) = text.split_at(dot);
    let parts = split_qualified(schema)?;
    let [schema] = <[String; 1]>::try_from(parts).map_err(|_| {
        SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("improper qualified name (too many dotted names): {text}"),
        )
    })?;
    Ok((Some(schema), name.get(1..).unwrap_or_default().trim_start()))
}

/// Is it where all operators are?
fn has_operators(schema: Option<&str>) -> bool {
    schema.is_none_or(|schema| schema == "pg_catalog")
}

fn no_operator(text: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_FUNCTION,
        format!("operator does not exist: {text}"),
    )
}

/// `regoper` of a text.
fn operator_in(text: &str, lookup: NameLookup<'_>) -> Result<Oid> {
    let (schema, name) = operator_name(text)?;
    if let Some(schema) = &schema {
        lookup.existing(schema)?;
    }
    if !has_operators(schema.as_deref()) {
        return Err(no_operator(text));
    }
    let mut all = func::all_operators().filter(|o| o.name == name);
    match (all.next(), all.next()) {
        (Some(one), None) => Ok(one.oid),
        (None, _) => Err(no_operator(text)),
        (Some(_), Some(_)) => Err(SqlError::new(
            SqlState::new(b"42725"),
            format!("more than one operator named {text}"),
        )),
    }
}

/// `regoperator` of a text: an operator with the types of its operands.
fn signed_operator_in(text: &str, lookup: NameLookup<'_>) -> Result<Oid> {
    let (name, types) = name_and_types(text, true, lookup)?;
    let (schema, name) = operator_name(name)?;
    if !has_operators(schema.as_deref()) {
        return Err(no_operator(text));
    }
    let [left, right] = types.as_slice() else {
        let missing = types.len() < 2;
        let what = if missing {
            "missing argument"
        } else {
            "too many arguments"
        };
        let error = SqlError::new(
            match missing {
                true => SqlState::new(b"42P02"),
                false => SqlState::new(b"54023"),
            },
            what,
        );
        return Err(match missing {
            true => error.hint("Use NONE to denote the missing argument of a unary operator."),
            false => error.hint("Provide two argument types for operator."),
        });
    };
    let fits = |o: &&Operator| o.name == name && (o.left, Some(o.right)) == (*left, *right);
    let found = func::all_operators().find(fits);
    found.map(|o| o.oid).ok_or_else(|| no_operator(text))
}

/// An operator's name, qualified if several have it; with its operands' types if those tell it apart.
fn operator_out(operator: Oid, with_types: bool, cx: &VirtualContext<'_>) -> Option<String> {
    let operator = func::operator_by_oid(operator)?;
    if !with_types {
        let mut all = func::all_operators().filter(|o| o.name == operator.name);
        return Some(match (all.next(), all.next()) {
            (Some(_), None) => operator.name.to_owned(),
            _ => format!("pg_catalog.{}", operator.name),
        });
    }
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let operand = |ty: Option<TypeId>| match ty {
        None => "NONE".to_owned(),
        Some(ty) => types.format_type(SqlType::of(ty)),
    };
    Some(format!(
        "{}({},{})",
        operator.name,
        operand(operator.left),
        operand(Some(operator.right))
    ))
}

/// `regcollation` of a text.
fn collation_in(text: &str) -> Result<Oid> {
    let parts = split_qualified(text)?;
    let name = match parts.as_slice() {
        [name] => Some(name),
        [schema, name] if schema == "pg_catalog" => Some(name),
        _ => None,
    };
    let found =
        name.and_then(|name| logstead_sql_types::value::collations::collation_by_name(name));
    found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!(
                "collation \"{}\" for encoding \"UTF8\" does not exist",
                parts.join(".")
            ),
        )
    })
}
