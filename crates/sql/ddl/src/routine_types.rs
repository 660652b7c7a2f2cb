//! The types of the arguments and results of routines, and what is invalid about them.
//!
//! Does not: read the rest of a definition (`routine_arguments`, `routine_options`).

use crate::DdlContext;
use crate::def_elem::type_names;
use logstead_sql_catalog::routine::ArgMode;
use logstead_sql_parse::ast::TypeName;
use logstead_sql_parse::ast::{FunctionParameter, FunctionParameterMode as Mode};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::oid;
use logstead_types::SqlState;

/// Arguments that a function may have.
pub(crate) const ARGS_MAX: usize = 100;

pub(crate) fn invalid(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::new(b"42P13"), message)
}

/// The type that a signature names.
pub(crate) fn type_of(name: &TypeName, cx: &mut DdlContext<'_>) -> Result<TypeId> {
    if !name.pct_type {
        return Ok(cx.sql_type(name)?.oid);
    }
    let catalog = cx.catalog()?;
    let names = type_names(name)?;
    let (table, column) = match names {
        [table @ .., column] if !table.is_empty() => (table, column),
        _ => {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!(
                    "improper %TYPE reference (too few dotted names): {}",
                    names.join(".")
                ),
            ));
        }
    };
    let (oid, plain) = cx.named_relation(table)?;
    let relation = catalog.relations.get(&oid);
    let relation = relation.ok_or_else(|| crate::relations::no_relation(table))?;
    let found = relation
        .columns
        .iter()
        .find(|c| !c.dropped && *c.name == **column);
    let found = found.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_COLUMN,
            format!("column \"{column}\" of relation \"{plain}\" does not exist"),
        )
    })?;
    let ty = found.declared().oid;
    let shown = cx.format_type_bare(ty)?;
    cx.notice(
        SqlState::SUCCESSFUL_COMPLETION,
        format!("type reference {plain}.{column}%TYPE converted to {shown}"),
    );
    Ok(ty)
}

pub(crate) fn is_polymorphic(ty: TypeId) -> Option<bool> {
    match ty {
        oid::ANYELEMENT
        | oid::ANYARRAY
        | oid::ANYNONARRAY
        | oid::ANYENUM
        | oid::ANYRANGE
        | oid::ANYMULTIRANGE => Some(false),
        oid::ANYCOMPATIBLE | oid::ANYCOMPATIBLEARRAY | oid::ANYCOMPATIBLENONARRAY => Some(true),
        _ => None,
    }
}

/// What a parameter is for.
pub(crate) fn mode_of(parameter: &FunctionParameter) -> ArgMode {
    match parameter.mode {
        Mode::In | Mode::Default => ArgMode::In,
        Mode::Out => ArgMode::Out,
        Mode::InOut => ArgMode::InOut,
        Mode::Variadic => ArgMode::Variadic,
        Mode::Table => ArgMode::Table,
    }
}
