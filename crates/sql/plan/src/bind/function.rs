//! Calls: aggregates, functions by name, and those that SQL's own words call; COALESCE, GREATEST, LEAST, NULLIF.
//!
//! Here it is decided what kind of call it is. Which function of a name is meant is decided in `routine` where
//! users have made one of that name, else by `func::resolve_function`, which `call` asks.

use super::names::FunctionName;
use super::user_aggregate::Named;
use super::{Binder, Clause};
use crate::query::expr::Expr;
use crate::{AggregateCall, SortKey};
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{
    self, FuncArg, FuncCall, SqlValueFunction, SqlValueFunctionOp, Value,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_types::SqlState;

/// Is there a built-in function of this name?
fn is_known(name: &str) -> bool {
    func::functions_named(name).next().is_some()
        || func::aggregates_named(name).next().is_some()
        || func::is_window_function(name)
}

/// 42883 for a call with arguments of these types.
fn no_function(name: &str, types: &[String]) -> SqlError {
    let shown = format!("function {name}({}) does not exist", types.join(", "));
    SqlError::new(SqlState::UNDEFINED_FUNCTION, shown).hint(
        "No function matches the given name and argument types. You might need to add explicit type casts.",
    )
}

/// The same for a function that a stored text names by number, and that does not take these.
pub(super) fn no_stored_function(name: &str, args: &[Expr], types: TypeLookup<'_>) -> SqlError {
    let shown = |arg: &Expr| types.format_type_bare(arg.ty().oid);
    no_function(name, &args.iter().map(shown).collect::<Vec<_>>())
}

impl Binder<'_> {
    /// A call.
    pub(crate) fn func_call(&mut self, call: &FuncCall) -> Result<Expr> {
        let at = self.at(call.location);
        if let Some(function) = call.sql_syntax() {
            return self.sql_syntax_call(function, call, at);
        }
        let catalog = self.cx.catalog;
        let function = FunctionName::of(&call.funcname, &catalog.database_name)?;
        let FunctionName { schema, name, .. } = function;
        let system = function.may_be_built_in();
        if let Some(call) = self.routine_call(call, function, at)? {
            return Ok(call);
        }
        if call.agg_within_group {
            return self.within_group(call, function, at);
        }
        if call.over.is_some() || (system && func::is_window_function(name)) {
            return self.window_function(call, function, at);
        }
        if name == "pg_collation_for"
            && system
            && let Some(collation) = self.collation_for(call)?
        {
            return Ok(collation);
        }
        if system && func::is_aggregate(name) || self.has_user_aggregate(function) {
            return self.aggregate(call, function, at);
        }
        if call.agg_filter.is_some() || !call.agg_order.is_empty() || call.agg_distinct {
            let what = if call.agg_filter.is_some() {
                "FILTER"
            } else if call.agg_distinct {
                "DISTINCT"
            } else {
                "ORDER BY"
            };
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{what} specified, but {name} is not an aggregate function"),
            )
            .at(at));
        }
        if let Some((rest, array)) = call.variadic() {
            let mut args = self.plain_arg_list(rest, name, at)?;
            args.push(self.expr(array)?);
            let array_at = self.at(array.location());
            return self.variadic_call(schema, name, args, at, array_at);
        }
        let args = self.plain_args(call, name, at)?;
        if function.oid.is_some() {
            return Err(no_stored_function(name, &args, self.types()).at(at));
        }
        self.resolved_call(schema, name, args, at)
    }

    /// A function that SQL's own words call.
    fn sql_syntax_call(
        &mut self,
        function: &str,
        call: &FuncCall,
        at: Option<usize>,
    ) -> Result<Expr> {
        if function == "pg_collation_for"
            && let Some(collation) = self.collation_for(call)?
        {
            return Ok(collation);
        }
        let mut args = Vec::with_capacity(call.args.len() + 1);
        for arg in &call.args {
            args.push(self.expr(&arg.value)?);
        }
        // The form has a default, which errors do not name.
        if let ("is_normalized", [arg]) = (function, args.as_slice()) {
            let told = no_stored_function(
                "pg_catalog.is_normalized",
                std::slice::from_ref(arg),
                self.types(),
            );
            args.push(Expr::Const(Datum::text("NFC"), SqlType::of(oid::TEXT)));
            return self
                .named_call(function, args, at)
                .map_err(|error| match error.code() {
                    SqlState::UNDEFINED_FUNCTION => told.at(at),
                    _ => error,
                });
        }
        self.resolved_call(Some("pg_catalog"), function, args, at)
    }

    /// The collation that the argument of pg_collation_for names, or of a literal without a type, which has none.
    fn collation_for(&mut self, call: &FuncCall) -> Result<Option<Expr>> {
        let text = SqlType::of(oid::TEXT);
        let [arg] = call.args.as_slice() else {
            return Ok(None);
        };
        if matches!(arg.value.constant(), Some(Value::String(_) | Value::Null)) {
            return Ok(Some(Expr::Const(Datum::Null, text)));
        }
        let collation = super::collation::named(&arg.value)?;
        Ok(collation.map(|collation| {
            let shown = format!("\"{}\"", collation.replace('"', "\"\""));
            Expr::Const(Datum::text(shown), text)
        }))
    }

    /// The arguments as expressions; names, stars and defaults are refused.
    pub(crate) fn plain_args(
        &mut self,
        call: &FuncCall,
        name: &str,
        at: Option<usize>,
    ) -> Result<Vec<Expr>> {
        if call.agg_star {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name}(*) specified, but {name} is not an aggregate function"),
            )
            .at(at));
        }
        if call.func_variadic {
            return Err(match is_known(name) {
                true => SqlError::unsupported("a named argument").at(at),
                false => self.no_named_function(name, &call.args)?.at(at),
            });
        }
        self.plain_arg_list(&call.args, name, at)
    }

    pub(crate) fn plain_arg_list(
        &mut self,
        args: &[FuncArg],
        name: &str,
        at: Option<usize>,
    ) -> Result<Vec<Expr>> {
        if args.iter().any(|arg| arg.name.is_some()) && !is_known(name) {
            return Err(self.no_named_function(name, args)?.at(at));
        }
        let ordered = super::named::in_order(name, args).map_err(|e| e.at(at))?;
        let mut out = Vec::with_capacity(args.len());
        for arg in ordered.as_deref().unwrap_or(args) {
            out.push(self.expr(&arg.value)?);
        }
        Ok(out)
    }

    /// 42883 for a call with named arguments of what there is not.
    fn no_named_function(&mut self, name: &str, args: &[FuncArg]) -> Result<SqlError> {
        let mut types = Vec::with_capacity(args.len());
        for arg in args {
            let ty = self.expr(&arg.value)?.ty().oid;
            let ty = self.types().format_type_bare(ty);
            types.push(match &arg.name {
                Some((name, _)) => format!("{name} => {ty}"),
                None => ty,
            });
        }
        Ok(no_function(name, &types))
    }

    /// CURRENT_DATE and friends: functions without parentheses.
    pub(super) fn value_function(&mut self, node: &SqlValueFunction) -> Result<Expr> {
        let at = self.at(node.location);
        let value = self.value_of_op(node.op, at)?;
        let Some(precision) = node.typmod else {
            return Ok(value);
        };
        let ty = value.ty();
        let typmod = info::typmod_in(ty.oid, &[i64::from(precision)], self.user_types())?;
        let ty = SqlType {
            oid: ty.oid,
            typmod,
        };
        self.coerce(value, ty, CastContext::Explicit, at)
    }

    fn value_of_op(&mut self, op: SqlValueFunctionOp, at: Option<usize>) -> Result<Expr> {
        use SqlValueFunctionOp as Op;
        let is_user = matches!(op, Op::User | Op::CurrentRole | Op::CurrentUser);
        if let (Some(owner), true) = (self.definer, is_user) {
            let role = self.cx.catalog.roles.get(owner);
            let role = role.map(|role| role.name.clone()).unwrap_or_default();
            return Ok(Expr::Const(Datum::text(role), SqlType::of(oid::NAME)));
        }
        if let Some(function) = func::sql_value_function(op.word()) {
            return self.call(function, Vec::new(), SqlType::of(function.result));
        }
        let function = match op {
            Op::User | Op::CurrentRole => "current_user",
            Op::CurrentCatalog => "current_database",
            op => op.word(),
        };
        self.named_call(function, Vec::new(), at)
    }

    /// Expressions, and where each of them is told to be.
    pub(super) fn exprs_at(&mut self, args: &[ast::Expr]) -> Result<Vec<(Expr, Option<usize>)>> {
        let mut placed = Vec::with_capacity(args.len());
        for arg in args {
            placed.push((self.expr(arg)?, self.at(arg.location())));
        }
        Ok(placed)
    }

    pub(super) fn coalesce(&mut self, node: &ast::CoalesceExpr) -> Result<Expr> {
        let met = self.sets_met();
        let args = self.exprs_at(&node.args)?;
        self.refuse_sets_since(met, "COALESCE")?;
        let (mut args, ty) = self.unify(args, "COALESCE")?;
        if args.len() == 1 {
            return Ok(args.remove(0));
        }
        Ok(Expr::Coalesce(args, ty))
    }

    /// GREATEST, LEAST.
    pub(super) fn min_max(&mut self, node: &ast::MinMaxExpr) -> Result<Expr> {
        let args = self.exprs_at(&node.args)?;
        let (args, ty) = self.unify(args, node.word())?;
        // The type must have an order.
        let at = self.at(node.location);
        func::resolve_operator("<", Some(ty), ty, self.types()).map_err(|e| e.at(at))?;
        Ok(Expr::Extreme(!node.is_least, args, ty))
    }

    /// NULLIF
    pub(super) fn null_if(
        &mut self,
        left: &ast::Expr,
        right: &ast::Expr,
        at: Option<usize>,
    ) -> Result<Expr> {
        let (left, right) = (self.expr(left)?, self.expr(right)?);
        let resolved = func::resolve_operator("=", Some(left.ty()), right.ty(), self.types())
            .map_err(|e| e.at(at))?;
        let wanted = |i: usize, old: SqlType| resolved.args.get(i).copied().unwrap_or(old);
        let (l, r) = (wanted(0, left.ty()), wanted(1, right.ty()));
        let left = self.coerce(left, SqlType::of(l.oid), CastContext::Implicit, at)?;
        let right = self.coerce(right, SqlType::of(r.oid), CastContext::Implicit, at)?;
        self.once(left, |_, left| {
            let ty = left.ty();
            let args = vec![left.clone(), right];
            let equal = Expr::Call {
                function: resolved.function,
                args,
                ty: SqlType::of(oid::BOOL),
            };
            Ok(Expr::NullIf {
                left: Box::new(left),
                equal: Box::new(equal),
                ty,
            })
        })
    }

    fn aggregate(
        &mut self,
        call: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<Expr> {
        let bound = self.in_aggregate(at, |b| b.aggregate_call(call, function, at))?;
        self.computed_call(function.name, bound, Vec::new(), at)
    }

    /// Binds the arguments of an aggregate.
    pub(super) fn in_aggregate<T>(
        &mut self,
        at: Option<usize>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let frame = self.frame()?;
        if frame.clause == Clause::Filter {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate functions are not allowed in FILTER",
            )
            .at(at));
        }
        if frame.in_aggregate {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
            )
            .at(at));
        }
        frame.in_aggregate = true;
        let sets_before = frame.sets.len();
        let bound = bind(self);
        let frame = self.frame()?;
        frame.in_aggregate = false;
        if frame.sets.len() != sets_before {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "aggregate function calls cannot contain set-returning function calls",
            )
            .at(at));
        }
        bound
    }

    /// The value of an aggregate call; its direct arguments are asked about when the groups are known.
    pub(super) fn computed_call(
        &mut self,
        name: &str,
        call: AggregateCall,
        direct: Vec<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        // An aggregate belongs to the innermost query that one of its columns comes from.
        let level = self.aggregate_level(&call);
        let innermost = level + 1 == self.frames.len();
        let frame = &mut self.frames[level];
        if !frame.clause.allows_aggregates() {
            let place = match frame.clause {
                Clause::From if !innermost => "FROM clause of their own query level",
                // It is the outer query's aggregate, in an argument of another one of that.
                Clause::Filter if !innermost => {
                    return Err(SqlError::new(
                        SqlState::GROUPING_ERROR,
                        "aggregate function calls cannot be nested",
                    )
                    .at(at));
                }
                clause => clause.words(),
            };
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                format!("aggregate functions are not allowed in {place}"),
            )
            .at(at));
        }
        if frame.in_aggregate {
            return Err(SqlError::new(
                SqlState::GROUPING_ERROR,
                "aggregate function calls cannot be nested",
            )
            .at(at));
        }
        let ty = call.ty;
        frame.direct.extend(direct);
        // The same aggregate written twice is computed once.
        if let Some((id, _)) = frame
            .aggregates
            .iter()
            .find(|(_, known)| super::aggregate::same_call(known, &call))
        {
            return Ok(Expr::Column(*id, ty));
        }
        let id = self.computed(name, ty);
        self.frames[level].aggregates.push((id, call));
        Ok(Expr::Column(id, ty))
    }

    fn aggregate_call(
        &mut self,
        call: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<AggregateCall> {
        let name = function.name;
        let star = call.agg_star;
        let variadic = call.variadic();
        let args = match (star, variadic) {
            (true, _) => Vec::new(),
            (false, Some((rest, array))) if self.has_user_aggregate(function) => {
                let mut args = self.plain_arg_list(rest, name, at)?;
                args.push(self.expr(array)?);
                args
            }
            (false, _) => self.plain_args(call, name, at)?,
        };
        if args.is_empty() && !star {
            return Err(SqlError::new(
                SqlState::WRONG_OBJECT_TYPE,
                format!("{name}(*) must be used to call a parameterless aggregate function"),
            )
            .at(at));
        }
        let written = args.clone();
        let named = Named {
            function,
            variadic: variadic.is_some(),
            direct: None,
            over: false,
            location: call.location,
            at,
        };
        let (aggregate, user, coerced, result) = match self.user_aggregate(&named, args)? {
            Ok(call) => (
                &func::USER_AGGREGATE,
                Some(call.aggregate),
                call.args,
                call.result,
            ),
            Err(args) => {
                let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
                let resolved =
                    func::resolve_aggregate(name, &types, self.types()).map_err(|e| e.at(at))?;
                super::ordered::lacks_group(name, at)?;
                let mut coerced = Vec::with_capacity(args.len());
                for (i, arg) in args.into_iter().enumerate() {
                    let target = resolved.args.get(i).copied().unwrap_or(arg.ty());
                    let any = resolved.aggregate.args.get(i) == Some(&oid::ANY);
                    coerced.push(self.argument(arg, target, any, at)?);
                }
                (resolved.aggregate, None, coerced, resolved.result)
            }
        };
        let distinct = call.agg_distinct;
        if distinct && star {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "DISTINCT specified, but the aggregate has no argument",
            )
            .at(at));
        }
        if distinct {
            for arg in &coerced {
                super::order_by::groupable(arg.ty(), at, self.types())?;
                if super::order_by::is_cyclic(arg.ty()) {
                    let message = format!(
                        "could not identify an ordering operator for type {}",
                        self.types().format_type(arg.ty())
                    );
                    let detail = "Aggregates with DISTINCT must be able to sort their inputs.";
                    return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                        .detail(detail)
                        .at(at));
                }
            }
        }
        let mut order = Vec::new();
        for item in &call.agg_order {
            let expr = self.expr(&item.node)?;
            let expr = self.settle(expr)?;
            super::order_by::sortable(expr.ty(), self.at(item.node.location()), self.types())?;
            let (desc, nulls_first) = logstead_sql_parse::sort_direction(&item.dir, item.nulls)?;
            // What an argument is cast to by itself is not seen.
            let argument = written.iter().zip(&coerced).find(|(written, coerced)| {
                super::aggregate::same(written, &expr)
                    || (written.ty().oid == oid::UNKNOWN && super::aggregate::same(coerced, &expr))
            });
            let expr = match argument {
                Some((_, coerced)) => coerced.clone(),
                None => expr,
            };
            if distinct && argument.is_none() {
                return Err(SqlError::new(
                                SqlState::INVALID_COLUMN_REFERENCE,
                                "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list",
                            )
                            .at(self.at(item.node.location())));
            }
            order.push(SortKey {
                expr,
                desc,
                nulls_first,
            });
        }
        let filter = match &call.agg_filter {
            Some(filter) => {
                Some(self.in_clause(Clause::Filter, |b| b.condition_of(filter, "FILTER"))?)
            }
            None => None,
        };
        Ok(AggregateCall {
            aggregate,
            user,
            args: coerced,
            distinct,
            filter,
            order,
            ty: if result.oid == oid::UNKNOWN {
                SqlType::of(oid::TEXT)
            } else {
                result
            },
        })
    }
}
