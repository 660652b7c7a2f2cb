//! CREATE AGGREGATE: what PostgreSQL's `DefineAggregate` and `AggregateCreate` ask of one.
//!
//! An aggregate is a routine like others; who drops, renames, comments or grants it goes their ways (`routines`,
//! `grant`).

use super::routine_lookup::{must_own, other_kind, refuse_variadic_direct};
use super::routines::{self, exists};
use super::{DdlContext, def_elem};
use crate::routine_types::mode_of;
use crate::routine_types::{invalid, type_of};
use logstead_sql_catalog::aggregate::{
    Aggregate, AggregateComputation, AggregateKind, FinalModify, INTERNAL,
};
use logstead_sql_catalog::role::acl::{AclKind, privilege as p};
use logstead_sql_catalog::routine::{ArgMode, Argument, Language, Parallel, Routine, RoutineBody};
use logstead_sql_catalog::stored::routines::AGGREGATE_SOURCE;
use logstead_sql_catalog::temporary::is_temporary_schema;
use logstead_sql_func::{self as func, CallTarget, Cast, CastContext, UserCandidate, Volatility};
use logstead_sql_parse::ast::{DefArg, DefElem, DefineStmt, Name, TypeName};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::UserTypes;
use logstead_sql_types::value::user::of_users;
use logstead_sql_types::value::{SqlType, info, oid, text_io};
use logstead_sql_types::{FunctionId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// The properties as they are written.
#[derive(Default)]
struct RoutineProperties {
    base: Option<TypeName>,
    plain: ComputationClause,
    moving: ComputationClause,
    combine: Option<Vec<Name>>,
    serial: Option<Vec<Name>>,
    deserial: Option<Vec<Name>>,
    sort_operator: Option<(Option<Name>, Name)>,
    hypothetical: bool,
    parallel: Option<String>,
}

/// One way of computing as it is written.
#[derive(Default)]
struct ComputationClause {
    transition: Option<Vec<Name>>,
    inverse: Option<Vec<Name>>,
    finish: Option<Vec<Name>>,
    finish_extra: bool,
    finish_modify: Option<FinalModify>,
    state: Option<TypeName>,
    state_bytes: i32,
    initial: Option<String>,
}

fn wrong(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, message)
}

/// `extractModify`
fn modify(option: &DefElem) -> Result<FinalModify> {
    match def_elem::get_string(option)?.as_str() {
        "read_only" => Ok(FinalModify::ReadOnly),
        "shareable" => Ok(FinalModify::Shareable),
        "read_write" => Ok(FinalModify::ReadWrite),
        _ => Err(wrong(format!(
            "parameter \"{}\" must be READ_ONLY, SHAREABLE, or READ_WRITE",
            option.name
        ))),
    }
}

/// An operator, with its schema if one is said.
fn operator(option: &DefElem) -> Result<(Option<Name>, Name)> {
    if let Some(DefArg::Operator(operator)) = &option.arg {
        return Ok((operator.schema.last().cloned(), operator.name.clone()));
    }
    let mut names = def_elem::get_qualified_name(option)?;
    let name = names.pop().unwrap_or_default();
    Ok((names.pop(), name))
}

fn properties(stmt: &DefineStmt, cx: &mut DdlContext<'_>) -> Result<RoutineProperties> {
    let mut all = RoutineProperties::default();
    for option in &stmt.definition {
        let function = || def_elem::get_qualified_name(option).map(Some);
        match &*option.name {
            "basetype" => all.base = Some(def_elem::get_type_name(option)?),
            "sfunc" | "sfunc1" => all.plain.transition = function()?,
            "msfunc" => all.moving.transition = function()?,
            "minvfunc" => all.moving.inverse = function()?,
            "finalfunc" => all.plain.finish = function()?,
            "mfinalfunc" => all.moving.finish = function()?,
            "combinefunc" => all.combine = function()?,
            "serialfunc" => all.serial = function()?,
            "deserialfunc" => all.deserial = function()?,
            "stype" | "stype1" => all.plain.state = Some(def_elem::get_type_name(option)?),
            "mstype" => all.moving.state = Some(def_elem::get_type_name(option)?),
            "sspace" => all.plain.state_bytes = def_elem::get_int32(option)?,
            "msspace" => all.moving.state_bytes = def_elem::get_int32(option)?,
            "initcond" | "initcond1" => all.plain.initial = Some(def_elem::get_string(option)?),
            "minitcond" => all.moving.initial = Some(def_elem::get_string(option)?),
            "finalfunc_extra" => all.plain.finish_extra = def_elem::get_boolean(option)?,
            "mfinalfunc_extra" => all.moving.finish_extra = def_elem::get_boolean(option)?,
            "finalfunc_modify" => all.plain.finish_modify = Some(modify(option)?),
            "mfinalfunc_modify" => all.moving.finish_modify = Some(modify(option)?),
            "hypothetical" => all.hypothetical = def_elem::get_boolean(option)?,
            "parallel" => all.parallel = Some(def_elem::get_string(option)?),
            "sortop" => all.sort_operator = Some(operator(option)?),
            name => cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::SYNTAX_ERROR,
                message: format!("aggregate attribute \"{name}\" not recognized"),
                detail: None,
                hint: None,
            }),
        }
    }
    Ok(all)
}

/// Does a name stand for all types, as ANY does in the old form?
fn is_any(name: &TypeName) -> bool {
    let names = def_elem::type_names(name).unwrap_or_default();
    matches!(names, [name] if name.eq_ignore_ascii_case("any"))
}

/// The arguments, in the new form or the old.
fn arguments(
    new: &DefineStmt,
    base: Option<&TypeName>,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<Argument>> {
    let plain = |name: String, mode, ty| Argument {
        name,
        mode,
        ty,
        default: None,
    };
    let Some(signature) = &new.aggregate else {
        return match base {
            None => Err(invalid("aggregate input type must be specified")),
            Some(base) if is_any(base) => Ok(Vec::new()),
            Some(base) => {
                let ty = type_of(base, cx)?;
                Ok(vec![plain(String::new(), ArgMode::In, ty)])
            }
        };
    };
    if base.is_some() {
        return Err(invalid(
            "basetype is redundant with aggregate input type specification",
        ));
    }
    refuse_variadic_direct(signature)?;
    let parameters = &signature.objfuncargs;
    let mut args: Vec<Argument> = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let mode = mode_of(parameter);
        let ty = type_of(&parameter.arg_type, cx).map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })?;
        if parameter.arg_type.setof {
            return Err(invalid("aggregates cannot accept set arguments"));
        }
        if args.iter().any(|a| a.mode == ArgMode::Variadic) {
            return Err(invalid(
                "VARIADIC parameter must be the last input parameter",
            ));
        }
        if mode == ArgMode::Variadic
            && info::element_of(ty).is_none()
            && !matches!(ty, oid::ANYARRAY | oid::ANYCOMPATIBLEARRAY | oid::ANY)
        {
            return Err(invalid("VARIADIC parameter must be an array"));
        }
        if mode == ArgMode::Variadic && ty == oid::ANY {
            return Err(SqlError::unsupported("an aggregate with VARIADIC \"any\""));
        }
        let name = { parameter.name.as_deref() }
            .map(|name| name.to_string())
            .unwrap_or_default();
        if !name.is_empty() && args.iter().any(|other| other.name == name) {
            return Err(invalid(format!(
                "parameter name \"{name}\" used more than once"
            )));
        }
        args.push(plain(name, mode, ty));
    }
    if args.len() > 99 {
        return Err(SqlError::new(
            SqlState::new(b"54023"),
            "aggregates cannot have more than 99 arguments",
        ));
    }
    Ok(args)
}

/// A function that an aggregate is computed with.
struct Support {
    oid: FunctionId,
    result: TypeId,
    strict: bool,
    shown: String,
}

/// Can a value of one type stand where the other is wanted as it is?
fn is_binary_coercible(from: TypeId, to: TypeId, types: &UserTypes) -> bool {
    let from = types.base_type(SqlType::of(from)).oid;
    from == to
        || to == oid::ANY
        || (func::is_polymorphic(to) && func::can_coerce(from, to, CastContext::Implicit))
        || matches!(
            func::find_cast(from, to, CastContext::Implicit),
            Some(Cast::Relabel)
        )
}

/// The function of this name for arguments of these types.
fn support(name: &[Name], types: &[TypeId], cx: &mut DdlContext<'_>) -> Result<Support> {
    let (schema, plain) = cx.lookup_parts(name)?;
    let catalog = cx.catalog()?;
    let shown_types: Vec<String> = { types.iter() }
        .map(|ty| cx.format_type_bare(*ty))
        .collect::<Result<_>>()?;
    let full = schema
        .as_ref()
        .map_or(plain.clone(), |s| format!("{s}.{plain}"));
    let shown = format!("{full}({})", shown_types.join(", "));
    let missing = || {
        SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {shown} does not exist"),
        )
    };
    let found = catalog.routines_named(schema.as_deref(), &plain, cx.search_path);
    let fitting: Vec<&Arc<Routine>> = { found.into_iter() }
        .map(|(_, routine)| routine)
        .filter(|r| !r.procedure && r.aggregate.is_none() && r.inputs().count() == types.len())
        .collect();
    let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
    let declared = |r: &Routine| r.input_types();
    // What is polymorphic itself is found as it is declared.
    let exact = fitting.iter().find(|r| declared(r) == types).copied();
    let chosen = match exact {
        Some(routine) => Some(Arc::clone(routine)),
        None if types.iter().any(|ty| func::is_polymorphic(*ty)) => None,
        None => {
            let candidates: Vec<UserCandidate> = fitting
                .iter()
                .map(|r| UserCandidate {
                    types: declared(r),
                    result: r.result,
                    first: false,
                })
                .collect();
            let given: Vec<SqlType> = types.iter().map(|ty| SqlType::of(*ty)).collect();
            let chosen = func::resolve_with_user_functions(
                &plain,
                system,
                &given,
                &candidates,
                &shown,
                cx.lookup(&catalog).types(),
            );
            match chosen.map_err(|_| missing())? {
                CallTarget::BuiltIn => None,
                CallTarget::User(number, _, result) => {
                    let routine = fitting.get(number).ok_or_else(missing)?;
                    let found = support_of(routine, types, &shown, cx)?;
                    return Ok(Support {
                        result: result.oid,
                        ..found
                    });
                }
            }
        }
    };
    if let Some(routine) = chosen {
        return support_of(&routine, types, &shown, cx);
    }
    if !system {
        return Err(missing());
    }
    let exact = func::functions_named(&plain).find(|f| f.args == types && f.variadic.is_none());
    let (function, result) = match exact {
        Some(function) => (function, function.result),
        None => {
            let given: Vec<SqlType> = types.iter().map(|ty| SqlType::of(*ty)).collect();
            let resolved = func::resolve_function(
                schema.as_deref(),
                &plain,
                &given,
                cx.lookup(&catalog).types(),
            );
            let resolved = resolved.map_err(|_| missing())?;
            (resolved.function, resolved.result.oid)
        }
    };
    if function.is_set() {
        return Err(returns_set(&shown));
    }
    let mut pairs = types.iter().zip(function.args);
    if !pairs.all(|(from, to)| is_binary_coercible(*from, *to, &catalog.types)) {
        return coerces(&full, function.args, cx);
    }
    Ok(Support {
        oid: function.oid,
        result,
        strict: function.strict,
        shown: full,
    })
}

fn returns_set(shown: &str) -> SqlError {
    SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!("function {shown} returns a set"),
    )
}

fn coerces<T>(name: &str, declared: &[TypeId], cx: &mut DdlContext<'_>) -> Result<T> {
    let types: Vec<String> = { declared.iter() }
        .map(|ty| cx.format_type_bare(*ty))
        .collect::<Result<_>>()?;
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "function {name}({}) requires run-time type coercion",
            types.join(", ")
        ),
    ))
}

fn support_of(
    routine: &Routine,
    types: &[TypeId],
    shown: &str,
    cx: &mut DdlContext<'_>,
) -> Result<Support> {
    if routine.set {
        return Err(returns_set(shown));
    }
    let catalog = cx.catalog()?;
    let fits = |ty, declared| is_binary_coercible(ty, declared, &catalog.types);
    let mut inputs = routine.inputs().zip(types);
    if !inputs.all(|(arg, ty)| arg.ty == *ty || fits(*ty, arg.ty)) {
        let name = shown.split('(').next().unwrap_or_default();
        return coerces(name, &routine.input_types(), cx);
    }
    let object = (routine.oid, AclKind::Function);
    if cx.with_acl_checker(|acl_checker, role| {
        acl_checker.on_object(role, object, p::EXECUTE, 0).0
    })? == 0
    {
        return Err(logstead_sql_catalog::privileges::denied(format!(
            "permission denied for function {}",
            routine.name
        )));
    }
    Ok(Support {
        oid: routine.oid,
        result: routine.result,
        strict: routine.strict,
        shown: shown.split('(').next().unwrap_or_default().to_owned(),
    })
}

fn returns_other<T>(
    what: &str,
    found: &Support,
    wanted: TypeId,
    cx: &mut DdlContext<'_>,
) -> Result<T> {
    Err(SqlError::new(
        SqlState::DATATYPE_MISMATCH,
        format!(
            "return type of {what} function {} is not {}",
            found.shown,
            cx.format_type_bare(wanted)?
        ),
    ))
}

/// The type of a state.
fn state_type(name: &TypeName, cx: &mut DdlContext<'_>) -> Result<TypeId> {
    let ty = type_of(name, cx)?;
    if ty == INTERNAL {
        return Err(SqlError::unsupported(
            "an aggregate whose state is of type internal",
        ));
    }
    let pseudo = cx
        .catalog()?
        .types
        .type_info(ty)
        .is_some_and(|known| known.kind == 'p');
    if pseudo && !func::is_polymorphic(ty) {
        return Err(invalid(format!(
            "aggregate transition data type cannot be {}",
            cx.format_type_bare(ty)?
        )));
    }
    Ok(ty)
}

/// 42P13 for a state whose type no argument tells.
fn check_polymorphic(
    what: &str,
    ty: TypeId,
    inputs: &[TypeId],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    routines::check_polymorphic(ty, inputs, cx).map_err(|mut error| {
        error.fields_mut().message = format!("cannot determine {what} data type");
        error
    })
}

/// What a state is computed over: its type, the arguments, and how many of them are direct ones.
struct AggregateInput<'a> {
    inputs: &'a [TypeId],
    direct: usize,
    kind: AggregateKind,
}

/// One way of computing, with the type of what it gives.
fn computation(
    written: &ComputationClause,
    over: &AggregateInput<'_>,
    moving: bool,
    cx: &mut DdlContext<'_>,
) -> Result<(AggregateComputation, TypeId)> {
    let aggregated = over.inputs.get(over.direct..).unwrap_or_default();
    let state = match &written.state {
        Some(state) => state_type(state, cx)?,
        None => return Err(SqlError::internal("an aggregate without a state")),
    };
    check_polymorphic("transition", state, over.inputs, cx)?;
    if let Some(text) = &written.initial
        && !func::is_polymorphic(state)
    {
        // Whoever calls it would be told.
        text_io::input(SqlType::of(state), text, Some(cx.session))?;
    }
    let Some(transition) = &written.transition else {
        return Err(SqlError::internal("an aggregate without a function"));
    };
    let mut types = vec![state];
    types.extend_from_slice(aggregated);
    let step = support(transition, &types, cx)?;
    if step.result != state {
        return returns_other("transition", &step, state, cx);
    }
    let catalog = cx.catalog()?;
    let fits = |ty: &TypeId| is_binary_coercible(*ty, state, &catalog.types);
    let compatible = aggregated.first().is_some_and(fits);
    if step.strict && written.initial.is_none() && !compatible {
        return Err(invalid(
            "must not omit initial value when transition function is strict and transition type is not compatible with input type",
        ));
    }
    let mut inverse = None;
    if moving && let Some(name) = &written.inverse {
        let found = support(name, &types, cx)?;
        if found.result != state {
            return returns_other("inverse transition", &found, state, cx);
        }
        if found.strict != step.strict {
            return Err(invalid(
                "strictness of aggregate's forward and inverse transition functions must match",
            ));
        }
        inverse = Some(found.oid);
    }
    let (mut finish, mut result) = (None, state);
    if let Some(name) = &written.finish {
        let mut types = vec![state];
        types.extend_from_slice(match written.finish_extra {
            true => over.inputs,
            false => over.inputs.get(..over.direct).unwrap_or_default(),
        });
        let found = support(name, &types, cx)?;
        if written.finish_extra && found.strict {
            return Err(invalid(
                "final function with extra arguments must not be declared STRICT",
            ));
        }
        (finish, result) = (Some(found.oid), found.result);
    }
    let by_kind = match over.kind {
        AggregateKind::Normal => FinalModify::ReadOnly,
        AggregateKind::OrderedSet => FinalModify::ReadWrite,
    };
    let computation = AggregateComputation {
        transition: Some(step.oid),
        inverse,
        finish,
        finish_extra: written.finish_extra,
        finish_modify: written.finish_modify.unwrap_or(by_kind),
        state: Some(state),
        state_bytes: written.state_bytes,
        initial: written.initial.clone(),
    };
    Ok((computation, result))
}

/// 42P13 for properties of a moving computation that is none, or is one in part.
fn check_moving(moving: &ComputationClause) -> Result<()> {
    if moving.state.is_some() {
        if moving.transition.is_none() {
            return Err(invalid(
                "aggregate msfunc must be specified when mstype is specified",
            ));
        }
        if moving.inverse.is_none() {
            return Err(invalid(
                "aggregate minvfunc must be specified when mstype is specified",
            ));
        }
        return Ok(());
    }
    let lonely = [
        (moving.transition.is_some(), "msfunc"),
        (moving.inverse.is_some(), "minvfunc"),
        (moving.finish.is_some(), "mfinalfunc"),
        (moving.state_bytes != 0, "msspace"),
        (moving.initial.is_some(), "minitcond"),
    ];
    match lonely.iter().find(|(said, _)| *said) {
        Some((_, name)) => Err(invalid(format!(
            "aggregate {name} must not be specified without mstype"
        ))),
        None => Ok(()),
    }
}

/// Runs CREATE AGGREGATE.
pub(super) async fn create(new: &DefineStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (schema, name) = cx.new_name(&new.defnames)?;
    match is_temporary_schema(&schema.name) {
        true => cx.must_create_temporary()?,
        false => cx.must_create_in(schema.oid)?,
    }
    let written = properties(new, cx)?;
    let direct = new.aggregate.as_ref().and_then(|args| args.direct_args);
    let kind = match direct {
        Some(_) => AggregateKind::OrderedSet,
        None => AggregateKind::Normal,
    };
    if written.plain.state.is_none() {
        return Err(invalid("aggregate stype must be specified"));
    }
    if written.plain.transition.is_none() {
        return Err(invalid("aggregate sfunc must be specified"));
    }
    check_moving(&written.moving)?;
    if written.hypothetical {
        return Err(match kind {
            AggregateKind::Normal => invalid("only ordered-set aggregates can be hypothetical"),
            AggregateKind::OrderedSet => {
                SqlError::unsupported("a hypothetical-set aggregate of a user's")
            }
        });
    }
    let args = arguments(new, written.base.as_ref(), cx)?;
    if let (Some(_), None) | (None, Some(_)) = (&written.serial, &written.deserial) {
        return Err(invalid(
            "must specify both or neither of serialization and deserialization functions",
        ));
    }
    if let Some(serial) = &written.serial {
        let state = written.plain.state.as_ref().map(def_elem::type_names);
        let state = state.transpose()?.and_then(|names| names.last());
        if state.is_some_and(|state| &**state == "internal") {
            // No function here takes a state of the server's own.
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function {}(internal) does not exist", serial.join(".")),
            ));
        }
        return Err(invalid(
            "serialization functions may be specified only when the aggregate transition data type is internal",
        ));
    }
    let parallel = match written.parallel.as_deref() {
        None | Some("unsafe") => Parallel::Unsafe,
        Some("restricted") => Parallel::Restricted,
        Some("safe") => Parallel::Safe,
        Some(_) => {
            return Err(wrong(
                "parameter \"parallel\" must be SAFE, RESTRICTED, or UNSAFE",
            ));
        }
    };
    let inputs: Vec<TypeId> = args.iter().map(|arg| arg.ty).collect();
    let over = AggregateInput {
        inputs: &inputs,
        direct: direct.unwrap_or(0),
        kind,
    };
    let (plain, result) = computation(&written.plain, &over, false, cx)?;
    let mut moving = AggregateComputation {
        transition: None,
        inverse: None,
        finish: None,
        finish_extra: written.moving.finish_extra,
        finish_modify: FinalModify::ReadOnly,
        state: None,
        state_bytes: 0,
        initial: None,
    };
    let mut combine = None;
    if let Some(name) = &written.combine {
        let lost = || SqlError::internal("an aggregate without a state");
        let state = plain.state.ok_or_else(lost)?;
        let found = support(name, &[state, state], cx)?;
        if found.result != state {
            return returns_other("combine", &found, state, cx);
        }
        combine = Some(found.oid);
    }
    check_polymorphic("result", result, &inputs, cx)?;
    if written.moving.state.is_some() {
        let (found, gives) = computation(&written.moving, &over, true, cx)?;
        if gives != result {
            return Err(invalid(format!(
                "moving-aggregate implementation returns type {}, but plain implementation returns type {}",
                cx.format_type_bare(gives)?,
                cx.format_type_bare(result)?
            )));
        }
        moving = found;
    }
    let mut sort_operator = 0;
    if let Some((schema, operator)) = &written.sort_operator {
        let ([ty], AggregateKind::Normal) = (inputs.as_slice(), kind) else {
            return Err(invalid(
                "sort operator can only be specified for single-argument aggregates",
            ));
        };
        let known = schema.as_deref().is_none_or(|s| s == "pg_catalog");
        let ty = SqlType::of(*ty);
        let catalog = cx.catalog()?;
        let of_type =
            || func::resolve_operator(operator, Some(ty), ty, cx.lookup(&catalog).types());
        let resolved = known.then(of_type);
        let resolved = resolved.transpose().ok().flatten();
        let mut all = func::all_operators();
        let found = resolved.and_then(|resolved| {
            all.find(|o| o.name == &**operator && o.function == resolved.function.oid)
        });
        let shown = cx.format_type_bare(ty.oid)?;
        let found = found.ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("operator does not exist: {shown} {operator} {shown}"),
            )
        })?;
        sort_operator = found.oid;
    }
    let states = [plain.state, moving.state].into_iter().flatten();
    let used = inputs.iter().copied().chain(states).chain([result]);
    cx.must_use_types(used.filter_map(of_users).collect::<Vec<_>>())?;
    let routine = Routine {
        oid: FunctionId::new(0),
        name,
        schema: schema.oid,
        schema_name: schema.name.clone(),
        procedure: false,
        language: Language::Sql,
        args,
        result,
        set: false,
        volatility: Volatility::Immutable,
        strict: false,
        leakproof: false,
        definer: false,
        parallel,
        cost: 1.0,
        rows: 0.0,
        config: Vec::new(),
        body: RoutineBody::Text(AGGREGATE_SOURCE.to_owned()),
        aggregate: Some(Arc::new(Aggregate {
            kind,
            direct: u16::try_from(over.direct).unwrap_or(u16::MAX),
            plain,
            moving,
            combine,
            sort_operator,
        })),
    };
    put(new, routine, cx).await
}

/// Stores it, or puts it in the place of an old one.
async fn put(new: &DefineStmt, mut routine: Routine, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let types = routine.input_types();
    let known = catalog.routine_exactly(&routine.schema_name, &routine.name, &types);
    let Some(known) = known.cloned() else {
        routine.oid = FunctionId::new(cx.new_oid()?);
        return routines::insert(routine, cx).await;
    };
    if !new.replace {
        return Err(exists(&routine));
    }
    must_own(&known, cx)?;
    let (Some(old), Some(own)) = (&known.aggregate, &routine.aggregate) else {
        return Err(other_kind(&known));
    };
    let shown = known.signature(
        &catalog.routine_name(&known, cx.search_path),
        cx.lookup(&catalog).types(),
    );
    let drop_first = format!("Use DROP AGGREGATE {shown} first.");
    if known.result != routine.result {
        return Err(invalid("cannot change return type of existing function").hint(drop_first));
    }
    if (old.kind, old.direct) != (own.kind, own.direct) {
        let is = match old.kind {
            AggregateKind::Normal => "an ordinary aggregate function",
            AggregateKind::OrderedSet => "an ordered-set aggregate",
        };
        let error = SqlError::new(SqlState::WRONG_OBJECT_TYPE, "cannot change routine kind");
        return Err(match old.kind == own.kind {
            false => error.detail(format!("\"{}\" is {is}.", known.name)),
            true => invalid("cannot change number of direct arguments of an aggregate function"),
        });
    }
    for (old, now) in known.inputs().zip(routine.inputs()) {
        if !old.name.is_empty() && old.name != now.name {
            return Err(invalid(format!(
                "cannot change name of input parameter \"{}\"",
                old.name
            ))
            .hint(drop_first));
        }
    }
    routine.oid = known.oid;
    if routines::lock_routine(known.oid, cx).await?.is_none() {
        return Err(SqlError::internal("tuple concurrently updated"));
    }
    routines::lock_types_of_routine(&routine, cx).await?;
    routines::put(routine, cx).await
}
