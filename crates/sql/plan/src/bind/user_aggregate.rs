//! Calls of aggregates that users have made: which is meant, and what its functions do, bound over a row of the state
//! and the arguments.
//!
//! Users' aggregates compete with the built-in ones of their name: one that takes the arguments as they are comes
//! first, then a built-in one, then one to which they can be brought. The functions are called with the rights of the
//! aggregate's owner, as in PostgreSQL; they are run as the role that runs the statement.

use super::names::FunctionName;
use super::routine::{RoutineCall, fit};
use super::{Binder, ColId, Frame};
use crate::permissions::SchemaLookup;
use crate::query::expr::Expr;
use crate::{Layout, Transitions, UserAggregate};
use logstead_sql_catalog::aggregate::{AggregateComputation, AggregateKind, FinalModify};
use logstead_sql_catalog::routine::Routine;
use logstead_sql_func as func;
use logstead_sql_func::{CallTarget, CastContext, UserCandidate};
use logstead_sql_parse::ast::Location;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, text_io};
use logstead_sql_types::{FunctionId, RoleId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// A call of a user's aggregate, its arguments in order and of their types.
pub(super) struct UserCall {
    pub(super) aggregate: Arc<UserAggregate>,
    pub(super) args: Vec<Expr>,
    pub(super) result: SqlType,
}

/// How an aggregate is called by name.
pub(super) struct Named<'n> {
    pub(super) function: FunctionName<'n>,
    /// The last argument is VARIADIC.
    pub(super) variadic: bool,
    /// It has WITHIN GROUP, and so many direct arguments.
    pub(super) direct: Option<usize>,
    pub(super) over: bool,
    pub(super) location: Location,
    pub(super) at: Option<usize>,
}

impl Binder<'_> {
    /// Users' aggregates that a name may mean, each with its place on the path.
    fn user_aggregates(&self, function: FunctionName<'_>) -> Vec<(usize, Arc<Routine>)> {
        let catalog = self.cx.catalog;
        if catalog.routines.is_empty() {
            return Vec::new();
        }
        if let Some(number) = function.oid {
            let found = catalog.routines.get(number);
            let found = found.filter(|routine| routine.aggregate.is_some());
            return found
                .map(|routine| (0, Arc::clone(routine)))
                .into_iter()
                .collect();
        }
        // What is kept was made with built-in ones, or names the user's by number.
        if self.view.is_some() {
            return Vec::new();
        }
        let found = catalog.routines_named(function.schema, function.name, self.search_path());
        { found.into_iter() }
            .filter(|(_, routine)| routine.aggregate.is_some())
            .map(|(place, routine)| (place, Arc::clone(routine)))
            .collect()
    }

    /// Is there a user's aggregate that a call may mean?
    pub(super) fn has_user_aggregate(&self, function: FunctionName<'_>) -> bool {
        !self.user_aggregates(function).is_empty()
    }

    /// The call of a user's aggregate; or the arguments, if a built-in one is meant.
    pub(super) fn user_aggregate(
        &mut self,
        named: &Named<'_>,
        args: Vec<Expr>,
    ) -> Result<Result<UserCall, Vec<Expr>>> {
        let found = self.user_aggregates(named.function);
        if found.is_empty() {
            return Ok(Err(args));
        }
        let FunctionName { schema, name, oid } = named.function;
        let system = named.function.may_be_built_in();
        let path = self.search_path();
        let system_at = path.iter().position(|s| s == "pg_catalog");
        let names = vec![None; args.len()];
        let mut fits: Vec<_> = { found.into_iter() }
            .filter_map(|(place, routine)| {
                let first = system_at.is_some_and(|system| place < system);
                fit(&routine, &names, named.variadic, first)
            })
            .collect();
        let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
        let given: Vec<TypeId> = types
            .iter()
            .map(|ty| self.user_types().base_type(*ty).oid)
            .collect();
        let built_in = (system && !named.variadic)
            .then(|| func::resolve_aggregate(name, &types, self.types()).ok())
            .flatten();
        let exact = { fits.iter() }.any(|fit| {
            let hidden = { built_in.as_ref() }
                .is_some_and(|built_in| built_in.aggregate.args == fit.types && !fit.first);
            fit.types == given && !hidden
        });
        if built_in.is_some() && !exact {
            return Ok(Err(args));
        }
        let candidates: Vec<UserCandidate> = fits
            .iter()
            .map(|fit| UserCandidate {
                types: fit.types.clone(),
                result: fit.routine.result,
                first: fit.first,
            })
            .collect();
        let shown_types: Vec<String> = types
            .iter()
            .map(|ty| self.types().format_type_bare(ty.oid))
            .collect();
        let full = schema.map_or(name.to_owned(), |s| format!("{s}.{name}"));
        let shown = format!("{full}({})", shown_types.join(", "));
        let chosen = func::resolve_with_user_functions(
            name,
            false,
            &types,
            &candidates,
            &shown,
            self.types(),
        );
        let CallTarget::User(number, types, result) = chosen.map_err(|e| e.at(named.at))? else {
            return Ok(Err(args));
        };
        let fit = fits.swap_remove(number);
        let routine = Arc::clone(&fit.routine);
        let Some(own) = routine.aggregate.clone() else {
            return Ok(Err(args));
        };
        match (own.kind, named.direct) {
            (AggregateKind::Normal, Some(_)) => {
                let message = format!(
                    "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"
                );
                return Err(SqlError::new(SqlState::WRONG_OBJECT_TYPE, message).at(named.at));
            }
            (AggregateKind::OrderedSet, None) => {
                let message = match named.over {
                    true => format!("OVER is not supported for ordered-set aggregate {name}"),
                    false => {
                        format!("WITHIN GROUP is required for ordered-set aggregate {name}")
                    }
                };
                let state = match named.over {
                    true => SqlState::FEATURE_NOT_SUPPORTED,
                    false => SqlState::WRONG_OBJECT_TYPE,
                };
                return Err(SqlError::new(state, message).at(named.at));
            }
            (AggregateKind::OrderedSet, Some(direct)) if direct != usize::from(own.direct) => {
                let message = format!("function {shown} does not exist");
                let hint = format!(
                    "There is an ordered-set aggregate {name}, but it requires {} direct arguments, not {direct}.",
                    own.direct
                );
                return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                    .hint(hint)
                    .at(named.at));
            }
            _ => {}
        }
        if named.over && own.plain.finish_modify != FinalModify::ReadOnly {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "aggregate function {} does not support use as a window function",
                    routine.signature(&routine.name, self.types())
                ),
            )
            .at(named.at));
        }
        if oid.is_none() {
            self.uses
                .schemas
                .push(SchemaLookup::explicit(routine.schema));
        }
        if routine.is_temporary() && (self.recorded.is_some() || self.fresh) {
            let what = "a view or policy that calls a temporary aggregate";
            return Err(SqlError::unsupported(what).at(named.at));
        }
        self.record_routine(named.location, routine.oid, name);
        let call = self.routine_with(fit, args, &types, result, named.at)?;
        let owner = self.cx.catalog.owner_of(routine.oid);
        let declared = routine.input_types();
        let inputs: Vec<SqlType> = call.args.iter().map(Expr::ty).collect();
        let direct = usize::from(own.direct);
        let over = Inputs {
            declared: &declared,
            given: &inputs,
            direct,
            result,
            owner,
        };
        let plain = self.transitions(&own.plain, &over)?;
        // What was added cannot be taken away if it is computed anew each time.
        let volatile = named.over && call.args.iter().any(crate::query::walk::is_volatile);
        let moving = match own.moving.state {
            None => None,
            _ if volatile => None,
            _ => Some(self.transitions(&own.moving, &over)?),
        };
        Ok(Ok(UserCall {
            aggregate: Arc::new(UserAggregate {
                oid: routine.oid,
                name: name.to_owned(),
                direct,
                plain,
                moving,
            }),
            args: call.args,
            result,
        }))
    }

    /// One way of computing, for arguments of certain types.
    fn transitions(
        &mut self,
        how: &AggregateComputation,
        over: &Inputs<'_>,
    ) -> Result<Transitions> {
        let lost = || SqlError::internal("an aggregate without a state");
        let state = how.state.ok_or_else(lost)?;
        let state = match func::is_polymorphic(state) {
            true => func::bind_types(over.declared, state, over.given, self.types())?.1,
            false => self.user_types().base_type(SqlType::of(state)),
        };
        let initial = match &how.initial {
            Some(text) => text_io::input(state, text, Some(self.cx.session))?,
            None => Datum::Null,
        };
        let aggregated = over.given.get(over.direct..).unwrap_or_default();
        let mut types = vec![state];
        types.extend_from_slice(aggregated);
        let transition = { how.transition }
            .ok_or_else(|| SqlError::internal("an aggregate without a transition function"))?;
        let (step, strict) = self.support_call(transition, &types, state, over.owner)?;
        let inverse = match how.inverse {
            None => None,
            Some(inverse) => Some(self.support_call(inverse, &types, state, over.owner)?.0),
        };
        types.truncate(1);
        types.extend_from_slice(match how.finish_extra {
            true => over.given,
            false => over.given.get(..over.direct).unwrap_or_default(),
        });
        let finish = match how.finish {
            None => None,
            Some(finish) => Some(
                self.support_call(finish, &types, over.result, over.owner)?
                    .0,
            ),
        };
        Ok(Transitions {
            step,
            strict,
            initial,
            inverse,
            finish,
            extra: match how.finish_extra {
                true => aggregated.len(),
                false => 0,
            },
            state,
        })
    }

    /// A function over a row of values of these types, as a value of the type wanted; and whether it is strict.
    fn support_call(
        &mut self,
        function: FunctionId,
        types: &[SqlType],
        wanted: SqlType,
        owner: RoleId,
    ) -> Result<(Expr, bool)> {
        let frames = std::mem::replace(&mut self.frames, vec![Frame::new()]);
        let text = std::mem::take(&mut self.text);
        let ids: Vec<ColId> = types.iter().map(|ty| self.computed("", *ty)).collect();
        let args = ids.iter().zip(types).map(|(id, ty)| Expr::Column(*id, *ty));
        let args: Vec<Expr> = args.collect();
        let bound = self.outside_query(|b| {
            let (value, strict) = b.support_value(function, args, types, owner)?;
            let value = match value.ty().oid == wanted.oid {
                true => value,
                false => b.coerce(value, wanted, CastContext::Assignment, None)?,
            };
            Ok((value, strict))
        });
        self.text = text;
        self.frames = frames;
        let (mut value, strict) = bound?;
        self.put_over_row(&mut value, &Layout::new(ids))?;
        Ok((value, strict))
    }

    fn support_value(
        &mut self,
        function: FunctionId,
        args: Vec<Expr>,
        types: &[SqlType],
        owner: RoleId,
    ) -> Result<(Expr, bool)> {
        let gone = || {
            SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("function with OID {function} does not exist"),
            )
        };
        let Some(routine) = self.cx.catalog.routines.get(function).cloned() else {
            let known = func::function_by_oid(function).ok_or_else(gone)?;
            let value = self.resolved_call(Some("pg_catalog"), known.name, args, None)?;
            return Ok((value, known.strict));
        };
        let names = vec![None; args.len()];
        // Its arguments are given as they are: those of a VARIADIC one as an array.
        let fit = fit(&routine, &names, routine.variadic().is_some(), false).ok_or_else(gone)?;
        let candidate = UserCandidate {
            types: fit.types.clone(),
            result: routine.result,
            first: false,
        };
        let name = routine.name.clone();
        let chosen = func::resolve_with_user_functions(
            &name,
            false,
            types,
            &[candidate],
            &name,
            self.types(),
        )?;
        let CallTarget::User(_, types, result) = chosen else {
            return Err(gone());
        };
        let called = self.routines_used.len();
        let call: RoutineCall = self.routine_with(fit, args, &types, result, None)?;
        // Who calls the aggregate need not be allowed to call its functions.
        for used in self.routines_used.iter_mut().skip(called) {
            used.as_role = Some(owner);
        }
        let strict = routine.strict;
        Ok((self.routine_value(call, None)?, strict))
    }
}

/// What an aggregate is given.
struct Inputs<'a> {
    /// Its arguments as they are declared.
    declared: &'a [TypeId],
    /// The types that they have.
    given: &'a [SqlType],
    /// How many are direct ones.
    direct: usize,
    result: SqlType,
    owner: RoleId,
}
