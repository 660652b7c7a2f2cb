//! What `pg_catalog` shows of functions and procedures that users have made, and how their names are read and printed.

use super::cells::{Ch, Id, Nil, OidOrZero, oid_array, oidvector, row, text_array};
use super::functions::{is_of_extension, procedure_by_name, procedure_name};
use crate::pg_catalog::calls;
use crate::pg_catalog::privileges::acl_datum;
use logstead_sql_catalog::name_lookup::name_and_types;
use logstead_sql_catalog::routine::{ArgMode, Routine};
use logstead_sql_catalog::text::{quote_ident, split_qualified};
use logstead_sql_catalog::{Catalog, VirtualContext};
use logstead_sql_func::CatalogFunction;
use logstead_sql_func::{self as func, Volatility};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, Oid, oid};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// `pg_language.oid` of what is no text.
const INTERNAL_LANGUAGE: Oid = 12;

/// The row of `pg_aggregate`, if it is one.
pub(super) fn aggregate_row(routine: &Routine) -> Option<Vec<Datum>> {
    let aggregate = routine.aggregate.as_ref()?;
    let (plain, moving) = (&aggregate.plain, &aggregate.moving);
    Some(row![
        routine.oid,
        Ch(aggregate.kind.letter()),
        i16::try_from(aggregate.direct).unwrap_or(i16::MAX),
        OidOrZero(plain.transition),
        OidOrZero(plain.finish),
        OidOrZero(aggregate.combine),
        Id(0),
        Id(0),
        OidOrZero(moving.transition),
        OidOrZero(moving.inverse),
        OidOrZero(moving.finish),
        plain.finish_extra,
        moving.finish_extra,
        Ch(plain.finish_modify.letter()),
        Ch(moving.finish_modify.letter()),
        Id(aggregate.sort_operator),
        OidOrZero(plain.state),
        plain.state_bytes,
        OidOrZero(moving.state),
        moving.state_bytes,
        plain.initial.clone(),
        moving.initial.clone(),
    ])
}

/// The row of `pg_proc`.
pub(super) fn proc_row(routine: &Routine, cx: &VirtualContext<'_>) -> Vec<Datum> {
    let catalog = cx.catalog;
    let plain = routine.args.iter().all(|arg| arg.mode == ArgMode::In);
    let all_types = (!plain).then(|| oid_array(routine.args.iter().map(|arg| arg.ty)));
    let modes = (!plain).then(|| {
        let letters = routine.args.iter().map(|arg| arg.mode.letter() as u8);
        Datum::Array(Arc::new(Array {
            element: oid::CHAR,
            lower: 1,
            shape: None,
            items: letters.map(Datum::Char).collect(),
        }))
    });
    let named = routine.args.iter().any(|arg| !arg.name.is_empty());
    let names = named.then(|| text_array(routine.args.iter().map(|arg| arg.name.as_str())));
    let defaults: Vec<String> = routine
        .inputs()
        .filter_map(|arg| arg.default.clone())
        .collect();
    let config = (!routine.config.is_empty()).then(|| text_array(&routine.config));
    let acl = catalog.acl_of(routine.oid);
    let (inputs, source) = (routine.input_types(), routine.body.source());
    let count = |n: usize| i16::try_from(n).unwrap_or(i16::MAX);
    row![
        routine.oid,
        &routine.name,
        routine.schema,
        catalog.owner_of(routine.oid),
        Id(match routine.aggregate {
            Some(_) => INTERNAL_LANGUAGE,
            None => routine.language.oid(),
        }),
        routine.cost,
        routine.rows,
        OidOrZero(routine.variadic()),
        Id(0),
        Ch(routine.kind()),
        routine.definer,
        routine.leakproof,
        routine.strict,
        routine.set,
        Ch(match routine.volatility {
            Volatility::Immutable => 'i',
            Volatility::Stable => 's',
            Volatility::Volatile => 'v',
        }),
        Ch(routine.parallel.letter()),
        count(inputs.len()),
        count(defaults.len()),
        routine.result,
        oidvector(inputs),
        all_types,
        modes,
        names,
        (!defaults.is_empty()).then(|| defaults.join(", ")),
        Nil,
        source,
        Nil,
        Nil,
        config,
        acl.map(|acl| acl_datum(&acl, &catalog.roles)),
    ]
}

fn text(value: impl Into<String>) -> Datum {
    Datum::Text(Arc::from(value.into()))
}

/// What a function that tells of functions answers about one that a user has made; `None` if nobody has.
pub(crate) fn describe(
    function: CatalogFunction,
    args: &[Datum],
    cx: &VirtualContext<'_>,
) -> Option<Datum> {
    let Some(Datum::Oid(oid)) = args.first() else {
        return None;
    };
    let routine = cx.catalog.routines.get(FunctionId::new(*oid))?;
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    let shown = |stored: &str| calls::default_shown(cx.catalog, stored, &path);
    Some(match function {
        CatalogFunction::GetFunctiondef => text(routine.definition(types, &shown)),
        CatalogFunction::GetFunctionArguments => text(routine.arguments_text(false, types, &shown)),
        CatalogFunction::GetFunctionIdentityArguments => {
            text(routine.arguments_text(true, types, &shown))
        }
        CatalogFunction::GetFunctionResult => routine.result_text(types).map_or(Datum::Null, text),
        CatalogFunction::GetFunctionArgDefault => {
            let at = match args.get(1) {
                Some(Datum::Int4(n)) => usize::try_from(*n - 1).ok(),
                _ => None,
            };
            let arg = at.and_then(|at| routine.args.get(at));
            let default = arg.and_then(|arg| arg.default.as_deref());
            default.map_or(Datum::Null, |stored| text(shown(stored)))
        }
        _ => Datum::Null,
    })
}

/// The name of the aggregate that a function's number is, if it is one.
pub(crate) fn is_aggregate(args: &[Datum], cx: &VirtualContext<'_>) -> Option<String> {
    let Some(Datum::Oid(oid)) = args.first() else {
        return None;
    };
    if let Some(known) = func::AGGREGATES.iter().find(|a| a.oid.get() == *oid) {
        return Some(known.name.to_owned());
    }
    let routine = cx.catalog.routines.get(FunctionId::new(*oid))?;
    routine.aggregate.as_ref().map(|_| routine.name.clone())
}

/// `pg_function_is_visible`
pub(crate) fn is_visible(function: FunctionId, cx: &VirtualContext<'_>) -> bool {
    match cx.catalog.routines.get(function) {
        Some(routine) => {
            let path = cx.session.search_path();
            cx.catalog.routine_is_visible(routine, &path)
        }
        None => true,
    }
}

/// A function as `regproc` prints it.
pub(crate) fn regproc_out(function: FunctionId, cx: &VirtualContext<'_>) -> Option<String> {
    let Some(routine) = cx.catalog.routines.get(function) else {
        let name = func::name_of(function)
            .or_else(|| logstead_sql_catalog::io_functions::io_function_name(function))?;
        let path = cx.session.search_path();
        // Some that pg_proc names can be called by nobody.
        let alone = candidates(cx.catalog, None, name, &path).len() <= 1;
        let quoted = quote_ident(name);
        return Some(match alone || is_of_extension(function) {
            true => quoted,
            false => format!("pg_catalog.{quoted}"),
        });
    };
    let path = cx.session.search_path();
    let found = candidates(cx.catalog, None, &routine.name, &path);
    Some(match found.as_slice() {
        [only] if *only == function => quote_ident(&routine.name),
        _ => format!(
            "{}.{}",
            quote_ident(&routine.schema_name),
            quote_ident(&routine.name)
        ),
    })
}

/// A function as `regprocedure` prints it.
pub(crate) fn regprocedure_out(function: FunctionId, cx: &VirtualContext<'_>) -> Option<String> {
    let path = cx.session.search_path();
    let types = cx.lookup(&path).types();
    match cx.catalog.routines.get(function) {
        Some(routine) => {
            let name = cx.catalog.routine_name(routine, &path);
            Some(routine.signature(&name, types))
        }
        None => procedure_name(function, types),
    }
}

/// All functions that a name may mean, by number, each once.
fn candidates(
    catalog: &Catalog,
    schema: Option<&str>,
    name: &str,
    path: &[String],
) -> Vec<FunctionId> {
    let own = catalog.routines_named(schema, name, path);
    let mut found: Vec<FunctionId> = own.into_iter().map(|(_, routine)| routine.oid).collect();
    if schema.is_none_or(|s| s == "pg_catalog") {
        found.extend(func::functions_named(name).map(|f| f.oid));
        found.extend(func::aggregates_named(name).map(|a| a.oid));
        if found.is_empty() {
            found.extend(logstead_sql_catalog::io_functions::io_function_by_name(
                name,
            ));
        }
    }
    let mut seen = std::collections::HashSet::new();
    found.retain(|oid| seen.insert(*oid));
    found
}

fn schema_and_name(given: &str, parts: Vec<String>) -> Result<(Option<String>, String)> {
    match <[String; 1]>::try_from(parts) {
        Ok([name]) => Ok((None, name)),
        Err(parts) => match <[String; 2]>::try_from(parts) {
            Ok([schema, name]) => Ok((Some(schema), name)),
            Err(_) => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("improper qualified name (too many dotted names): {given}"),
            )),
        },
    }
}

/// `regproc` of a text.
pub(crate) fn regproc_in(given: &str, cx: &VirtualContext<'_>) -> Result<FunctionId> {
    let (schema, name) = schema_and_name(given, split_qualified(given)?)?;
    let path = cx.session.search_path();
    if let Some(schema) = &schema {
        cx.lookup(&path).existing(schema)?;
    }
    match candidates(cx.catalog, schema.as_deref(), &name, &path).as_slice() {
        [only] => Ok(*only),
        [] => Err(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function \"{given}\" does not exist"),
        )),
        _ => Err(SqlError::new(
            SqlState::AMBIGUOUS_FUNCTION,
            format!("more than one function named \"{given}\""),
        )),
    }
}

/// `regprocedure` of a text.
pub(crate) fn regprocedure_in(given: &str, cx: &VirtualContext<'_>) -> Result<FunctionId> {
    let path = cx.session.search_path();
    let lookup = cx.lookup(&path);
    let (name, types) = name_and_types(given, false, lookup)?;
    let types: Vec<TypeId> = types.into_iter().flatten().collect();
    let (schema, name) = schema_and_name(given, split_qualified(name)?)?;
    if let Some(schema) = &schema {
        lookup.existing(schema)?;
    }
    let own = cx.catalog.routines_named(schema.as_deref(), &name, &path);
    let own = { own.iter() }.find(|(_, routine)| routine.input_types() == types);
    if let Some((_, routine)) = own {
        return Ok(routine.oid);
    }
    let built_in = match schema.as_deref() {
        None | Some("pg_catalog") => procedure_by_name(&name, &types, lookup.types()),
        Some(_) => None,
    };
    built_in.ok_or_else(|| {
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function \"{given}\" does not exist"),
        )
    })
}
