//! Which function a statement of DDL means: by its name, and by its arguments if they are said.

use super::DdlContext;
use super::def_elem::type_names;
use super::object_address::noun;
use crate::missing_object::no_schema;
use crate::routine_types::mode_of;
use crate::routine_types::type_of;
use logstead_sql_catalog::privileges::denied;
use logstead_sql_catalog::routine::{ArgMode, Routine};
use logstead_sql_func as func;
use logstead_sql_parse::ast::{FunctionParameterMode, ObjectType, ObjectWithArgs};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Is a routine what the word of a statement names?
pub(super) fn is_of_kind(routine: &Routine, kind: ObjectType) -> bool {
    match kind {
        ObjectType::Function => !routine.procedure,
        ObjectType::Procedure => routine.procedure,
        ObjectType::Aggregate => routine.aggregate.is_some(),
        _ => true,
    }
}

/// That one; an error if there is none.
pub(super) fn named(
    kind: ObjectType,
    target: &ObjectWithArgs,
    cx: &mut DdlContext<'_>,
) -> Result<Arc<Routine>> {
    let found = lookup(kind, target, false, cx).map_err(|error| {
        match error.code() == SqlState::DEPENDENT_OBJECTS_STILL_EXIST {
            true => SqlError::unsupported("changing a built-in function"),
            false => error,
        }
    });
    found?.ok_or_else(|| SqlError::internal("a function that need not be there"))
}

/// That one; `None` with a notice if there is none and none need be.
pub(super) fn lookup(
    kind: ObjectType,
    target: &ObjectWithArgs,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<Arc<Routine>>> {
    let (schema, plain) = cx.lookup_parts(&target.objname)?;
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
    let word = noun(kind);
    if target.objargs.is_some() {
        match arg_types(target, cx) {
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
    let of_kind = |routine: &Routine| is_of_kind(routine, kind);
    let Some((inputs, all)) = types else {
        let mut fitting = candidates.iter().filter(|r| of_kind(r));
        return match (fitting.next(), fitting.next()) {
            (Some(only), None) => Ok(Some(Arc::clone(only))),
            (Some(_), Some(_)) => Err(SqlError::new(
                SqlState::AMBIGUOUS_FUNCTION,
                format!("{word} name \"{shown}\" is not unique"),
            )
            .hint(format!(
                "Specify the argument list to select the {word} unambiguously."
            ))),
            (None, _) if if_exists => skip(cx, format!("{word} {shown}() does not exist")),
            (None, _) => {
                if kind == ObjectType::Function && is_built_in(schema.as_deref(), &plain) {
                    return Err(required(&shown));
                }
                Err(SqlError::new(
                    SqlState::UNDEFINED_FUNCTION,
                    format!("could not find a {word} named \"{shown}\""),
                ))
            }
        };
    };
    // A procedure may be told by its OUT arguments, too.
    let whole = |routine: &Routine| -> Vec<TypeId> {
        let args = routine.args.iter().filter(|a| a.mode != ArgMode::Table);
        args.map(|arg| arg.ty).collect()
    };
    let by_inputs = candidates.iter().find(|r| r.input_types() == inputs);
    let by_all = || {
        let fits = |r: &&Arc<Routine>| r.procedure && whole(r) == all;
        candidates.iter().find(fits)
    };
    let names: Vec<String> = { inputs.iter() }
        .map(|ty| cx.format_type_bare(*ty))
        .collect::<Result<_>>()?;
    match by_inputs.or_else(by_all) {
        Some(routine) if of_kind(routine) => Ok(Some(Arc::clone(routine))),
        Some(_) if kind == ObjectType::Aggregate => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("function {shown}({}) is not an aggregate", names.join(", ")),
        )),
        Some(_) => Err(wrong_kind(&format!("{shown}({})", names.join(", ")), word)),
        None if if_exists => {
            // Those that SQL's grammar knows are in pg_catalog.
            let types = target.objargs.iter().flatten().flatten();
            let written = types.map(|name| Ok(type_names(name)?.join(".")));
            let written: Vec<String> = written.collect::<Result<_>>()?;
            let written = written.join(",");
            skip(cx, format!("{word} {shown}({written}) does not exist"))
        }
        None => {
            let built_in = func::functions_named(&plain).any(|f| f.args == inputs);
            if built_in && is_built_in(schema.as_deref(), &plain) {
                return Err(required(&format!("{plain}({})", names.join(","))));
            }
            let none = kind == ObjectType::Aggregate && names.is_empty();
            let types = if none {
                "*".to_owned()
            } else {
                names.join(", ")
            };
            Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("{word} {shown}({types}) does not exist"),
            ))
        }
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

fn wrong_kind(shown: &str, word: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("{shown} is not a {word}"),
    )
}

/// 0A000 for one VARIADIC parameter that stands for the direct arguments and for the aggregated ones.
pub(super) fn refuse_variadic_direct(target: &ObjectWithArgs) -> Result<()> {
    let parameters = &target.objfuncargs;
    let last = parameters.last().map(|parameter| parameter.mode);
    let all_direct = target.direct_args == Some(parameters.len());
    match all_direct && last == Some(FunctionParameterMode::Variadic) {
        true => Err(SqlError::unsupported(
            "an ordered-set aggregate with a VARIADIC direct argument",
        )),
        false => Ok(()),
    }
}

/// Types of the arguments that a statement names: the inputs, and all.
fn arg_types(
    target: &ObjectWithArgs,
    cx: &mut DdlContext<'_>,
) -> Result<(Vec<TypeId>, Vec<TypeId>)> {
    refuse_variadic_direct(target)?;
    let (mut inputs, mut all) = (Vec::new(), Vec::new());
    for parameter in &target.objfuncargs {
        let ty = type_of(&parameter.arg_type, cx).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })?;
        if mode_of(parameter).is_input() {
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
    match cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, routine.oid))? {
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
