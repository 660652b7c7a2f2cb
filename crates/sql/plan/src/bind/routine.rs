//! Calls of functions that users have made: which is meant, and with which arguments.
//!
//! Users' functions compete with the built-in ones of their name (`func::user_functions`), as far as the number and the
//! names of the arguments fit. What a function of LANGUAGE sql does then stands in the place of the call (`inlined`).

use super::names::FunctionName;
use super::{Binder, Clause, Frame};
use crate::permissions::{FunctionUse, SchemaLookup};
use crate::query::expr::Expr;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::routine::{Language, Routine};
use logstead_sql_func as func;
use logstead_sql_func::{CallTarget, CastContext, UserCandidate, Volatility};
use logstead_sql_parse as parse;
use logstead_sql_parse::ast::FuncCall;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::{TypeLookup, UserTypes};
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// A call of a user's function, its arguments in order and of their types.
pub(crate) struct RoutineCall {
    pub routine: Arc<Routine>,
    pub args: Vec<Expr>,
    pub result: SqlType,
    /// The name by which it is called.
    pub called: String,
}

/// What a call by name is.
pub(crate) enum ResolvedFunction {
    Routine(RoutineCall),
    /// A built-in function, with these arguments; the last is VARIADIC, and stands there.
    BuiltIn(Vec<Expr>, Option<Option<usize>>),
}

/// How the arguments of a call fit a function.
pub(super) struct FuncCandidate {
    pub(super) routine: Arc<Routine>,
    /// The types that the arguments given are to have, in the order of the call.
    pub(super) types: Vec<TypeId>,
    /// For each input, which argument of the call it is; none has its default.
    order: Vec<Option<usize>>,
    /// How many arguments of the call the last input collects.
    tail: Option<usize>,
    /// It comes before pg_catalog on the path.
    pub(super) first: bool,
}

/// Of those that look alike the one of the earliest schema, or else one that collects no arguments. Which of two
/// functions in one schema is meant that
/// look alike because of their defaults nobody can tell.
fn distinct(fits: Vec<FuncCandidate>) -> Vec<FuncCandidate> {
    let mut kept: Vec<FuncCandidate> = Vec::with_capacity(fits.len());
    for fit in fits {
        let alike = kept.iter().position(|other| other.types == fit.types);
        let other = alike.map(|at| (at, &kept[at]));
        match other {
            Some((_, other)) if other.routine.schema != fit.routine.schema => {}
            Some((_, other)) if other.tail.is_none() && fit.tail.is_some() => {}
            Some((at, other)) if other.tail.is_some() && fit.tail.is_none() => kept[at] = fit,
            _ => kept.push(fit),
        }
    }
    kept
}

/// The names of a call's arguments; that of one that is VARIADIC has none.
fn names_of(call: &FuncCall) -> Result<Vec<Option<String>>> {
    let mut names: Vec<Option<String>> = Vec::with_capacity(call.args.len());
    for arg in &call.args {
        let name = arg.name.as_ref().map(|(name, _)| name.to_string());
        let is_array = call.func_variadic && names.len() + 1 == call.args.len();
        if name.is_none() && !is_array && names.iter().any(Option::is_some) {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "positional argument cannot follow named argument",
            ));
        }
        if let Some(name) = &name
            && names.iter().flatten().any(|known| known == name)
        {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("argument name \"{name}\" used more than once"),
            ));
        }
        names.push(name.filter(|_| !is_array));
    }
    Ok(names)
}

/// How a function fits a call with these names and so many arguments, if it does.
pub(super) fn fit(
    routine: &Arc<Routine>,
    names: &[Option<String>],
    variadic: bool,
    first: bool,
) -> Option<FuncCandidate> {
    let inputs: Vec<_> = routine.inputs().collect();
    let (given, wanted) = (names.len(), inputs.len());
    let made = |types, order, tail| {
        Some(FuncCandidate {
            routine: Arc::clone(routine),
            types,
            order,
            tail,
            first,
        })
    };
    let mut order: Vec<Option<usize>> = vec![None; wanted];
    let mut types = Vec::with_capacity(given);
    let tail_type = routine.variadic();
    let named = names.iter().any(Option::is_some);
    if let Some(tail_type) = tail_type
        && !named
        && !variadic
        && given >= wanted
    {
        let plain = wanted - 1;
        types.extend(inputs.iter().take(plain).map(|arg| arg.ty));
        types.resize(given, tail_type);
        for (at, slot) in order.iter_mut().take(plain).enumerate() {
            *slot = Some(at);
        }
        return made(types, order, Some(given - plain));
    }
    if variadic && (tail_type.is_none() || given != wanted) {
        return None;
    }
    for (at, name) in names.iter().enumerate() {
        let place = match name {
            None => at,
            Some(name) => inputs.iter().position(|arg| arg.name == *name)?,
        };
        let slot = order.get_mut(place)?;
        if slot.replace(at).is_some() {
            return None;
        }
        types.push(inputs.get(place)?.ty);
    }
    // Without VARIADIC, and without names, an array is no list of arguments.
    if tail_type.is_some() && !variadic && !named {
        return None;
    }
    let rest = inputs.iter().zip(&order).filter(|(_, slot)| slot.is_none());
    let all = { rest }.all(|(arg, _)| arg.default.is_some());
    all.then(|| made(types, order, None)).flatten()
}

impl<'a> Binder<'a> {
    /// The users' types that there are.
    pub(crate) fn user_types(&self) -> &'a UserTypes {
        &self.cx.catalog.types
    }
}

impl Binder<'_> {
    /// Schemas searched for names.
    pub(crate) fn search_path(&self) -> &[String] {
        match &self.path {
            Some(path) => path,
            None => self.cx.search_path,
        }
    }

    /// What names are looked up with.
    pub(crate) fn lookup(&self) -> NameLookup<'_> {
        NameLookup {
            search_path: self.search_path(),
            ..self.cx.lookup()
        }
    }

    /// The types, and where they are searched.
    pub(crate) fn types(&self) -> TypeLookup<'_> {
        self.lookup().types()
    }

    /// What a call by name is, if users' functions of the name come into question.
    pub(crate) fn routine_of_call(
        &mut self,
        written: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<Option<ResolvedFunction>> {
        let FunctionName { schema, name, .. } = function;
        if schema.is_none() && self.cx.catalog.routines.is_empty() {
            return Ok(None);
        }
        let kept = match function.oid {
            Some(number) => {
                let routine = self.cx.catalog.routines.get(number);
                let routine = routine.cloned().ok_or_else(|| {
                    SqlError::new(
                        SqlState::UNDEFINED_FUNCTION,
                        format!("function {name} does not exist"),
                    )
                })?;
                Some(routine)
            }
            None => None,
        };
        // What is kept was made with built-in functions alone: nothing that somebody has made since changes what it
        // means.
        let in_kept = matches!(
            self.clause(),
            Clause::Default
                | Clause::Check
                | Clause::Generated
                | Clause::Policy
                | Clause::IndexExpression
                | Clause::IndexPredicate
        );
        let others = self.view.is_some() || (in_kept && !self.fresh && self.recorded.is_none());
        if others && kept.is_none() {
            return Ok(None);
        }
        if kept.is_none()
            && let Some(schema) = schema
        {
            self.lookup().explicit(schema).map_err(|e| e.at(at))?;
        }
        let catalog = Arc::clone(self.cx.catalog);
        let path = self.search_path();
        let mut found = catalog.routines_named(schema, name, path);
        if let Some(routine) = &kept {
            found = vec![(0, routine)];
        }
        // Aggregates are called otherwise; one is meant where no function takes the arguments.
        let all = found.len();
        found.retain(|(_, routine)| routine.aggregate.is_none());
        let aggregates = found.len() < all;
        if found.is_empty() {
            return Ok(None);
        }
        let system_at = path.iter().position(|s| s == "pg_catalog");
        let system = function.may_be_built_in();
        // What has a syntax of its own, or is computed of many rows, stays what it is, if it may be meant.
        if system
            && (func::aggregate_takes(name, written.args.len() + usize::from(written.agg_star))
                || func::is_window_function(name))
        {
            return Ok(None);
        }
        let is_variadic = written.func_variadic;
        let mut names = names_of(written).map_err(|e| e.at(at))?;
        names.extend(written.agg_star.then_some(None));
        let fits: Vec<FuncCandidate> = found
            .into_iter()
            .filter_map(|(place, routine)| {
                let first = system_at.is_some_and(|system| place < system);
                fit(routine, &names, is_variadic, first)
            })
            .collect();
        let is_named = names.iter().any(Option::is_some);
        let has_built_in = system && func::functions_named(name).next().is_some();
        // Who names arguments is told what is missing in these names.
        if fits.is_empty() && (!is_named || has_built_in) {
            return Ok(None);
        }
        let mut fits = distinct(fits);
        if written.agg_star {
            if aggregates {
                return Ok(None);
            }
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name}(*) specified, but {name} is not an aggregate function"),
            )
            .at(at));
        }
        let mut exprs = Vec::with_capacity(names.len());
        for arg in &written.args {
            exprs.push(self.expr(&arg.value)?);
        }
        let array_at = written
            .variadic()
            .map(|(_, array)| self.at(array.location()));
        let types: Vec<SqlType> = exprs.iter().map(Expr::ty).collect();
        let candidates: Vec<UserCandidate> = fits
            .iter()
            .map(|fit| UserCandidate {
                types: fit.types.clone(),
                result: fit.routine.result,
                first: fit.first,
            })
            .collect();
        let built_in = system && !is_named && !is_variadic;
        let shown = shown((schema, name), &names, &types, self.types());
        let chosen = func::resolve_with_user_functions(
            name,
            built_in,
            &types,
            &candidates,
            &shown,
            self.types(),
        );
        let (number, types, result) = match chosen {
            Ok(CallTarget::User(number, types, result)) => (number, types, result),
            Ok(CallTarget::BuiltIn) => return Ok(Some(ResolvedFunction::BuiltIn(exprs, array_at))),
            Err(error) if aggregates && error.code() == SqlState::UNDEFINED_FUNCTION => {
                return Ok(None);
            }
            // It may be a cast.
            Err(error) if built_in && error.code() == SqlState::UNDEFINED_FUNCTION => {
                return match func::type_cast_call(name, &types, self.user_types()) {
                    Some(_) => Ok(Some(ResolvedFunction::BuiltIn(exprs, None))),
                    None => Err(error.at(at)),
                };
            }
            Err(error) => return Err(error.at(at)),
        };
        let fit = fits.swap_remove(number);
        if kept.is_none() {
            self.uses
                .schemas
                .push(SchemaLookup::explicit(fit.routine.schema));
        }
        if fit.routine.is_temporary() && (self.recorded.is_some() || self.fresh) {
            let what = "a view, policy or expression of a table that calls a temporary function";
            return Err(SqlError::unsupported(what).at(at));
        }
        let called = name.to_owned();
        self.record_routine(written.location, fit.routine.oid, &called);
        let mut call = self.routine_with(fit, exprs, &types, result, at)?;
        call.called = called;
        Ok(Some(ResolvedFunction::Routine(call)))
    }

    /// The call with all arguments in order.
    pub(super) fn routine_with(
        &mut self,
        fit: FuncCandidate,
        exprs: Vec<Expr>,
        types: &[SqlType],
        result: SqlType,
        at: Option<usize>,
    ) -> Result<RoutineCall> {
        let routine = fit.routine;
        if routine.procedure && !self.calls_procedure {
            let types: Vec<String> = exprs
                .iter()
                .map(|e| self.types().format_type_bare(e.ty().oid))
                .collect();
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{}({}) is a procedure", routine.name, types.join(", ")),
            )
            .hint("To call a procedure, use CALL.")
            .at(at));
        }
        let mut given: Vec<Option<Expr>> = Vec::with_capacity(exprs.len());
        for (expr, ty) in exprs.into_iter().zip(types) {
            given.push(Some(self.argument(expr, *ty, false, at)?));
        }
        let mut args = Vec::with_capacity(fit.order.len());
        for (input, slot) in routine.inputs().zip(&fit.order) {
            let arg = match slot {
                Some(number) => given.get_mut(*number).and_then(Option::take),
                None => None,
            };
            args.push(match (arg, fit.tail, &input.default) {
                (Some(arg), ..) => arg,
                (None, Some(count), _) if args.len() + 1 == fit.order.len() => {
                    let start = given.len().saturating_sub(count);
                    let items: Vec<Expr> = given.drain(start..).flatten().collect();
                    let element = items.first().map_or(oid::TEXT, |item| item.ty().oid);
                    let array = info::array_of(element).ok_or_else(|| {
                        SqlError::unsupported(format!(
                            "an array of {}",
                            self.types().format_type_bare(element)
                        ))
                    })?;
                    Expr::Array(items, SqlType::of(array))
                }
                (None, _, Some(text)) => self.default_argument(text, input.ty)?,
                (None, _, None) => {
                    return Err(SqlError::internal("an argument is missing").at(at));
                }
            });
        }
        // A default of no type has that of the others that are declared like it.
        for (at, input) in routine.inputs().enumerate() {
            let untyped = args.get(at).is_some_and(|arg| arg.ty().oid == oid::UNKNOWN);
            if !untyped || !func::is_polymorphic(input.ty) {
                continue;
            }
            let others = routine.inputs().zip(&args);
            let known = others
                .filter(|(other, arg)| other.ty == input.ty && arg.ty().oid != oid::UNKNOWN)
                .map(|(_, arg)| SqlType::of(arg.ty().oid))
                .next();
            if let Some(arg) = args.get_mut(at) {
                let value =
                    std::mem::replace(arg, Expr::Const(Datum::Null, SqlType::of(oid::UNKNOWN)));
                *arg = match known {
                    Some(ty) => self.coerce(value, ty, CastContext::Implicit, None)?,
                    None => self.settle(value)?,
                };
            }
        }
        refuse_any_array(&routine, &args, result)?;
        self.routines_used.push(FunctionUse {
            function: routine.oid,
            as_role: self.definer,
        });
        Ok(RoutineCall {
            called: routine.name.clone(),
            routine,
            args,
            result,
        })
    }

    /// The value of an argument that is not given.
    fn default_argument(&mut self, text: &str, ty: TypeId) -> Result<Expr> {
        let expr = parse::parse_expr(text)?;
        let frames = std::mem::replace(&mut self.frames, vec![Frame::new()]);
        let shown = std::mem::take(&mut self.text);
        let routine = self.routine.take();
        // Its places are those of another text.
        let fresh = std::mem::take(&mut self.fresh);
        let recorded = self.recorded.take();
        let bound = self.in_clause(Clause::Default, |b| b.expr(&expr));
        self.recorded = recorded;
        self.fresh = fresh;
        self.routine = routine;
        self.text = shown;
        self.frames = frames;
        let bound = bound.and_then(|bound| match func::is_polymorphic(ty) {
            true => Ok(bound),
            false => self.settle(bound),
        });
        let coerced = bound.and_then(|bound| match func::is_polymorphic(ty) {
            true => Ok(bound),
            false => self.coerce(bound, SqlType::of(ty), CastContext::Assignment, None),
        });
        coerced.map_err(|mut error| {
            error.fields_mut().position = None;
            error
        })
    }

    /// A call in an expression, if it is one of a user's function; of a built-in one too, if that was chosen among
    /// users'.
    pub(crate) fn routine_call(
        &mut self,
        written: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<Option<Expr>> {
        let FunctionName { schema, name, .. } = function;
        let call = match self.routine_of_call(written, function, at)? {
            None => return Ok(None),
            Some(ResolvedFunction::BuiltIn(args, None)) => {
                return self.resolved_call(schema, name, args, at).map(Some);
            }
            Some(ResolvedFunction::BuiltIn(args, Some(array_at))) => {
                let call = self.variadic_call(schema, name, args, at, array_at);
                return call.map(Some);
            }
            Some(ResolvedFunction::Routine(call)) => call,
        };
        let what = if written.over.is_some() {
            Some(format!(
                "OVER specified, but {name} is not a window function nor an aggregate function"
            ))
        } else {
            let word = if written.agg_filter.is_some() {
                Some("FILTER")
            } else if written.agg_distinct {
                Some("DISTINCT")
            } else if written.agg_within_group {
                Some("WITHIN GROUP")
            } else if !written.agg_order.is_empty() {
                Some("ORDER BY")
            } else {
                None
            };
            word.map(|word| format!("{word} specified, but {name} is not an aggregate function"))
        };
        if let Some(message) = what {
            return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(at));
        }
        self.routine_value(call, at).map(Some)
    }

    /// The value of a call.
    pub(super) fn routine_value(&mut self, call: RoutineCall, at: Option<usize>) -> Result<Expr> {
        if call.routine.set {
            return self.inlined_rows_as_set(call, at);
        }
        if self.is_run(&call.routine).map_err(|e| e.at(at))? {
            self.refuse_varying(&call.routine)?;
            return self.called_value(call, at);
        }
        // What a function does that is said to be immutable is not looked at.
        if self.judges && call.routine.volatility == Volatility::Immutable {
            return self.called_value(call, at);
        }
        self.inlined_value(call, at)
    }

    /// 42P17 for a function that the session runs and that is not immutable, where an expression is made whose value
    /// follows from its row alone.
    fn refuse_varying(&self, routine: &Routine) -> Result<()> {
        if !self.judges || routine.volatility == Volatility::Immutable {
            return Ok(());
        }
        let message = match self.clause() {
            Clause::IndexExpression => "functions in index expression must be marked IMMUTABLE",
            Clause::IndexPredicate => "functions in index predicate must be marked IMMUTABLE",
            Clause::Generated => "generation expression is not immutable",
            _ => return Ok(()),
        };
        Err(SqlError::new(SqlState::INVALID_OBJECT_DEFINITION, message))
    }
}

/// A call as messages have it.
fn shown(
    (schema, name): (Option<&str>, &str),
    names: &[Option<String>],
    types: &[SqlType],
    known: TypeLookup<'_>,
) -> String {
    let args: Vec<String> = names
        .iter()
        .zip(types)
        .map(|(name, ty)| {
            let ty = known.format_type_bare(ty.oid);
            match name {
                Some(name) => format!("{name} => {ty}"),
                None => ty,
            }
        })
        .collect();
    let full = schema.map_or_else(|| name.to_owned(), |s| format!("{s}.{name}"));
    format!("{full}({})", args.join(", "))
}

/// Arrays of which nobody knows what they are of, as statistics have them, are no arguments of a user's function.
fn refuse_any_array(routine: &Routine, args: &[Expr], result: SqlType) -> Result<()> {
    if !args.iter().any(|arg| arg.ty().oid == oid::ANYARRAY) {
        return Ok(());
    }
    if routine.language == Language::PlPgSql {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "PL/pgSQL functions cannot accept type anyarray",
        )
        .context(super::routine_check::compiling(&routine.name)));
    }
    if result.oid == oid::ANYARRAY {
        return Err(SqlError::new(
            SqlState::new(b"42P13"),
            "return type anyarray is not supported for SQL functions",
        )
        .context(format!("SQL function \"{}\" during inlining", routine.name)));
    }
    Ok(())
}
