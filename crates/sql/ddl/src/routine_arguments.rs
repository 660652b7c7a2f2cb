//! What a routine takes and gives: CREATE FUNCTION's arguments, their defaults, its result and its language.
//!
//! Owns: the checks that PostgreSQL makes of them, one clause at a time. Does not: store anything; `routines` does.

use super::DdlContext;
use super::expressions::{bound, default_text};
use crate::routine_types::mode_of;
use crate::routine_types::{ARGS_MAX, invalid, is_polymorphic, type_of};
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::routine::{ArgMode, Argument, Language};
use logstead_sql_func::{CastContext, can_coerce};
use logstead_sql_parse::ast::{CreateFunctionStmt, Expr, FunctionParameter, Value};
use logstead_sql_plan::bind;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::info;
use logstead_sql_types::value::user::TypeSpelling;
use logstead_sql_types::value::{SqlType, oid};
use logstead_types::SqlState;

/// The arguments of a new function.
pub(super) fn arguments(
    new: &CreateFunctionStmt,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<Argument>> {
    let mut args: Vec<Argument> = Vec::new();
    let word = if new.is_procedure {
        "procedures"
    } else {
        "functions"
    };
    let mut has_default = false;
    for parameter in &new.parameters {
        let mode = mode_of(parameter);
        let ty =
            type_of(&parameter.arg_type, cx).map_err(|error| unknown_type(error, parameter))?;
        if parameter.arg_type.setof {
            return Err(invalid(format!("{word} cannot accept set arguments")));
        }
        let is_input = mode.is_input();
        let behind = args.iter().any(|a| a.mode == ArgMode::Variadic);
        if is_input && behind {
            return Err(invalid(
                "VARIADIC parameter must be the last input parameter",
            ));
        }
        if mode == ArgMode::Out && behind && new.is_procedure {
            return Err(invalid("VARIADIC parameter must be the last parameter"));
        }
        if mode == ArgMode::Variadic
            && ty != oid::ANY
            && info::element_of(ty).is_none()
            && !matches!(ty, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY)
        {
            return Err(invalid("VARIADIC parameter must be an array"));
        }
        let name = parameter.name.as_deref().map(|name| name.to_string());
        let name = name.unwrap_or_default();
        // An input and a column of the result may share a name with nothing but what is of the other kind.
        let clashes = |other: &&Argument| {
            let apart = |a: ArgMode, b: ArgMode| {
                (a == ArgMode::In || a == ArgMode::Variadic)
                    && (b == ArgMode::Out || b == ArgMode::Table)
            };
            other.name == name && !apart(mode, other.mode) && !apart(other.mode, mode)
        };
        if !name.is_empty() && args.iter().any(|other| clashes(&other)) {
            return Err(invalid(format!(
                "parameter name \"{name}\" used more than once"
            )));
        }
        let mut default = None;
        if let Some(expr) = &parameter.defexpr {
            if !is_input {
                return Err(invalid("only input parameters can have default values"));
            }
            default = Some(default_of(expr, ty, cx)?);
            has_default = true;
        } else if is_input && has_default {
            return Err(invalid(
                "input parameters after one with a default value must also have defaults",
            ));
        } else if new.is_procedure && mode == ArgMode::Out && has_default {
            return Err(invalid(
                "procedure OUT parameters cannot appear after one with a default value",
            ));
        }
        args.push(Argument {
            name,
            mode,
            ty,
            default,
        });
    }
    let inputs = args.iter().filter(|arg| arg.mode.is_input()).count();
    if inputs > ARGS_MAX {
        return Err(SqlError::new(
            SqlState::new(b"54023"),
            format!("{word} cannot have more than {ARGS_MAX} arguments"),
        ));
    }
    Ok(args)
}

/// An argument's type that is not there, in PostgreSQL's words.
fn unknown_type(mut error: SqlError, parameter: &FunctionParameter) -> SqlError {
    if error.code() == SqlState::UNDEFINED_OBJECT && !parameter.arg_type.pct_type {
        let fields = error.fields_mut();
        fields.position = None;
        fields.message = fields.message.replace('"', "");
    }
    error
}

/// The text under which the default of an argument is stored.
fn default_of(expr: &Expr, ty: TypeId, cx: &mut DdlContext<'_>) -> Result<String> {
    let catalog = cx.catalog()?;
    let base = catalog.types.base_type(SqlType::of(ty));
    let polymorphic = is_polymorphic(ty).is_some();
    let nothing = bind::value_relation(SqlType::of(oid::BOOL), &catalog.types);
    let bound = bound(cx, &catalog, &nothing, expr, "DEFAULT")?;
    let from = cx.may_define(bound)?.ty();
    if !polymorphic
        && from.oid != oid::UNKNOWN
        && !can_coerce(from.oid, base.oid, CastContext::Assignment)
    {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "argument of DEFAULT must be type {}, not type {}",
                cx.format_type_bare(ty)?,
                cx.format_type_bare(from.oid)?
            ),
        ));
    }
    let as_type = if polymorphic { from } else { base };
    // NULL of no type takes that of the other arguments.
    let null = matches!(expr, Expr::Const(constant) if constant.value == Value::Null);
    if polymorphic && null && from.oid == oid::UNKNOWN {
        return Ok("NULL".to_owned());
    }
    Ok(match default_text(expr, as_type, cx)? {
        Some(text) => text,
        None => {
            let spelling = TypeSpelling::numbered(cx.lookup(&catalog).types());
            format!("NULL::{}", spelling.format_type_bare(as_type.oid))
        }
    })
}

/// Type and kind of a new function's result.
pub(super) fn result_of(
    new: &CreateFunctionStmt,
    args: &[Argument],
    cx: &mut DdlContext<'_>,
) -> Result<(TypeId, bool)> {
    let outputs: Vec<TypeId> = args
        .iter()
        .filter(|arg| arg.mode.is_output())
        .map(|arg| arg.ty)
        .collect();
    let required = match (new.is_procedure, outputs.as_slice()) {
        (_, []) => None,
        (false, [one]) => Some(*one),
        _ => Some(oid::RECORD),
    };
    if new.is_procedure {
        return Ok((required.unwrap_or(oid::VOID), false));
    }
    let said = match &new.return_type {
        _ if new.returns_table => Some((required.unwrap_or(oid::RECORD), true)),
        Some(name) => {
            let ty = type_of(name, cx).map_err(|mut error| {
                error.fields_mut().position = None;
                error
            })?;
            Some((ty, name.setof))
        }
        None => None,
    };
    match (said, required) {
        (Some((ty, set)), None) => Ok((ty, set)),
        (Some((ty, set)), Some(required)) if ty == required => Ok((ty, set)),
        (Some(_), Some(required)) => Err(invalid(format!(
            "function result type must be {} because of OUT parameters",
            cx.format_type_bare(required)?
        ))),
        (None, Some(required)) => Ok((required, false)),
        (None, None) => Err(invalid("function result type must be specified")),
    }
}

/// The language of a new function.
pub(super) fn language_of(said: Option<&str>, cx: &mut DdlContext<'_>) -> Result<Language> {
    let untrusted = |name: &str, cx: &mut DdlContext<'_>| match cx
        .with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))
    {
        Ok(false) => denied(format!("permission denied for language {name}")),
        Ok(true) => SqlError::unsupported(format!("LANGUAGE {name}")),
        Err(error) => error,
    };
    match said.map(str::to_lowercase).as_deref() {
        Some("sql") => Ok(Language::Sql),
        Some("plpgsql") => Ok(Language::PlPgSql),
        Some(name @ ("c" | "internal")) => Err(untrusted(name, cx)),
        Some(name) => {
            let error = SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("language \"{name}\" does not exist"),
            );
            let known = ["plperl", "plperlu", "plpython3u", "pltcl", "pltclu"];
            Err(match known.contains(&name) {
                true => error.hint("Use CREATE EXTENSION to load the language into the database."),
                false => error,
            })
        }
        None => Err(invalid("no language specified")),
    }
}
