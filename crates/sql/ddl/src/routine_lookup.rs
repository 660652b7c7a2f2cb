//! Which function a statement of DDL means: by its name, and by its arguments if they are said.

use super::DdlContext;
use super::objects::no_schema;
use super::routines::type_of;
use crate::pg_catalog::calls;
use logstead_sql_catalog::classes::PG_PROC;
use logstead_sql_catalog::rights::denied;
use logstead_sql_catalog::routine::{ArgMode, Routine};
use logstead_sql_catalog::text::fold;
use logstead_sql_func as func;
use logstead_sql_parse::lowered as ast;
use logstead_sql_parse::{ArgClause, RoutineRef, RoutineWord};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, info};
use logstead_types::SqlState;
use std::sync::Arc;

/// That one; an error if there is none.
pub(super) fn named(
    word: RoutineWord,
    target: &RoutineRef,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Routine>> {
    let found = found(word, target, false, cx).map_err(|error| {
        match error.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST {
            true => SqlError::unsupported("changing a built-in function"),
            false => error,
        }
    });
    found?.ok_or_else(|| SqlError::internal("a function that need not be there"))
}

/// That one; `None` with a notice if there is none and none need be.
pub(super) fn found(
    word: RoutineWord,
    target: &RoutineRef,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Routine>>> {
    let (schema, plain) = calls::lookup_parts(&target.name)?;
    let shown = match &schema {
        Some(schema) => format!("{schema}.{plain}"),
        None => plain.clone(),
    };
    let catalog = cx.catalog()?;
    if let Some(schema) = &schema
        && catalog.schema(schema).is_none()
    {
        return match if_exists {
            false => Err(no_schema(schema)),
            true => skip(cx, format!("schema \"{schema}\" does not exist")),
        };
    }
    let mut types = None;
    if let Some(args) = &target.args {
        match arg_types(args, cx) {
            Ok(found) => types = Some(found),
            Err(error) if if_exists && error.code() == SqlState::UNDEFINED_OBJECT => {
                return skip(cx, error.fields().message.clone());
            }
            Err(error) => return Err(error),
        }
    }
    let candidates: Vec<Arc<Routine>> = catalog
        .routines_named(schema.as_deref(), &plain, cx.search_path)
        .into_iter()
        .map(|(_, routine)| Arc::clone(routine))
        .collect();
    let of_kind = |routine: &Routine| match word {
        RoutineWord::Function => !routine.procedure,
        RoutineWord::Procedure => routine.procedure,
        RoutineWord::Routine => true,
        RoutineWord::Aggregate => routine.aggregate.is_some(),
    };
    let Some((inputs, all)) = types else {
        let mut fitting = candidates.iter().filter(|r| of_kind(r));
        return match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(Arc::clone(only))),
            (Some(_), Some(_)) => Err(SqlError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("{} name \"{shown}\" is not unique", word.text()),
            )
            .hint(format!(
                "Specify the argument list to select the {} unambiguously.",
                word.text()
            ))),
            (None, _) if if_exists => skip(cx, format!("{} {shown}() does not exist", word.text())),
            (None, _) => {
                if word == RoutineWord::Function && is_built_in(schema.as_deref(), &plain) {
                    return Err(required(&shown));
                }
                Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("could not find a {} named \"{shown}\"", word.text()),
                ))
            }
        };
    };
    // A procedure may be told by its OUT arguments, too.
    let whole = |routine: &Routine| -> Vec<Oid> {
        let args = routine.args.iter().filter(|a| a.mode != ArgMode::Table);
        args.map(|arg| arg.ty).collect()
    };
    let by_inputs = candidates.iter().find(|r| r.input_types() == inputs);
    let by_all = || {
        let fits = |r: &&Arc<Routine>| r.procedure && whole(r) == all;
        candidates.iter().find(fits)
    };
    let names: Vec<String> = inputs
        .iter()
        .map(|ty| info::format_type_bare(*ty))
        .collect();
    match by_inputs.or_else(by_all) {
        Some(routine) if of_kind(routine) => Ok(Some(Arc::clone(routine))),
        Some(_) if word == RoutineWord::Aggregate => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("function {shown}({}) is not an aggregate", names.join(", ")),
        )),
        Some(_) => Err(wrong_kind(&format!("{shown}({})", names.join(", ")), word)),
        None if if_exists => {
            let args = target.args.iter().flatten();
            let written = args.filter(|arg| arg.mode.is_input()).map(as_written);
            let written = written.zip(&inputs).map(|(written, ty)| match written {
                Some(name) => name,
                None => format!("pg_catalog.{}", info::type_name(*ty)),
            });
            let written: Vec<String> = written.collect();
            let what = word.text();
            skip(
                cx,
                format!("{what} {shown}({}) does not exist", written.join(",")),
            )
        }
        None => {
            let built_in = func::functions_named(&plain).any(|f| f.args == inputs);
            if built_in && is_built_in(schema.as_deref(), &plain) {
                return Err(required(&format!("{plain}({})", names.join(","))));
            }
            let none = word == RoutineWord::Aggregate && names.is_empty();
            let types = if none {
                "*".to_owned()
            } else {
                names.join(", ")
            };
            Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("{} {shown}({types}) does not exist", word.text()),
            ))
        }
    }
}

/// A type's name as it was written; none for one that SQL's grammar knows.
fn as_written(arg: &ArgClause) -> Option<String> {
    match &arg.ty.data_type {
        ast::DataType::Custom(name, _) => {
            let parts: Vec<String> = name.0.iter().map(fold).collect();
            Some(parts.join("."))
        }
        ast::DataType::Text => Some("text".to_owned()),
        _ => None,
    }
}

fn is_built_in(schema: Option<&str>, name: &str) -> bool {
    schema.is_none_or(|s| s == "pg_catalog") && func::functions_named(name).next().is_some()
}

/// 2BP01 for a function of the system's.
fn required(shown: &str) -> SqlError {
    SqlError::new(
        SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
        format!("cannot drop function {shown} because it is required by the database system"),
    )
}

fn skip(cx: &mut DdlContext<'_>, what: String) -> Result<Option<Arc<Routine>>> {
    cx.notice(SqlState::SUCCESSFUL_COMPLETION, format!("{what}, skipping"));
    Ok(None)
}

fn wrong_kind(shown: &str, word: RoutineWord) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{shown} is not a {}", word.text()),
    )
}

/// Types of the arguments that a statement names: the inputs, and all.
fn arg_types(args: &[ArgClause], cx: &mut DdlContext<'_>) -> Result<(Vec<Oid>, Vec<Oid>)> {
    let (mut inputs, mut all) = (Vec::new(), Vec::new());
    for arg in args {
        let ty = type_of(&arg.ty, cx).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })?;
        if arg.mode.is_input() {
            inputs.push(ty);
        }
        all.push(ty);
    }
    Ok((inputs, all))
}

/// 42501 unless the function is the current role's.
pub(super) fn must_own(routine: &Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    must_own_as(routine.word(), routine, cx)
}

/// The same, of what is called so.
pub(super) fn must_own_as(word: &str, routine: &Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    match cx.judged(|judge, role| judge.owns(role, PG_PROC, routine.oid))? {
        true => Ok(()),
        false => Err(denied(format!("must be owner of {word} {}", routine.name))),
    }
}

/// 42809 for a definition that would make something else of what there is.
pub(super) fn other_kind(known: &Routine) -> SqlError {
    let is = match known.word() {
        "aggregate" => "an aggregate function",
        "procedure" => "a procedure",
        _ => "a function",
    };
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind")
        .detail(format!("\"{}\" is {is}.", known.name))
}
