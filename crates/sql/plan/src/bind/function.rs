//! Function call syntax: aggregates, constructs that look like functions, and real functions.

use super::user_aggregate::Named;
use super::{Binder, Clause};
use crate::query::expr::Expr;
use crate::{AggregateCall, SortKey};
use logstead_sql_catalog::routine::from_stored_name;
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::{SqlValueFunction, Value};
use logstead_sql_parse::lowered::{
    self as ast, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause, FunctionArguments,
};
use logstead_sql_parse::schema_and_name;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, SqlType, info, oid};
use logstead_types::SqlState;

/// A normal form's name is a word of the call's syntax.
fn normal_form(arg: &FunctionArg) -> Option<String> {
    let FunctionArg::Unnamed(FunctionArgExpr::Expr(word)) = arg else {
        return None;
    };
    let form = word.bare_name()?;
    let known = ["NFC", "NFD", "NFKC", "NFKD"].contains(&&**form);
    known.then(|| form.to_string())
}

impl Binder<'_> {
    pub(crate) fn function(&mut self, function: &Function) -> Result<Expr> {
        let at = self.at(function.name.location);
        let (schema, name) = schema_and_name(&function.name.names, &self.cx.catalog.database_name)?;
        let system = schema.as_deref().is_none_or(|s| s == "pg_catalog");
        if let Some(call) = self.routine_call(function, schema.as_deref(), &name, at)? {
            return Ok(call);
        }
        if !function.within_group.is_empty() {
            return self.within_group(function, schema.as_deref(), &name, at);
        }
        if function.over.is_some() || (system && func::is_window_function(&name)) {
            return self.window_function(function, schema.as_deref(), &name, at);
        }
        let list = match &function.args {
            FunctionArguments::None => return self.keyword_function(&name, at),
            FunctionArguments::List(list) => list,
        };
        if schema.is_none() {
            match name.as_str() {
                "normalize" if function.word().is_some() => {
                    if let [text, form] = list.args.as_slice()
                        && let Some(form) = normal_form(form)
                    {
                        let mut args =
                            self.plain_arg_list(std::slice::from_ref(text), &name, at)?;
                        args.push(Expr::Const(Datum::text(form), SqlType::of(oid::TEXT)));
                        return self.named_call(&name, args, at);
                    }
                }
                "current_timestamp" | "localtimestamp" | "current_time" | "localtime" => {
                    return self.current_time(&name, list, at);
                }
                _ => {}
            }
        }
        if name == "pg_collation_for"
            && system
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(ast::Expr::Const(value)))] =
                list.args.as_slice()
            && matches!(value.value, Value::String(_) | Value::Null)
        {
            // A literal without a type has no collation.
            return Ok(Expr::Const(Datum::Null, SqlType::of(oid::TEXT)));
        }
        if name == "pg_collation_for"
            && system
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(arg))] = list.args.as_slice()
            && let Some(collation) = super::collation::named(arg)?
        {
            let shown = Datum::text(format!("\"{}\"", collation.replace('"', "\"\"")));
            return Ok(Expr::Const(shown, SqlType::of(oid::TEXT)));
        }
        if system && func::is_aggregate(&name) || self.has_user_aggregate(schema.as_deref(), &name)
        {
            return self.aggregate(function, schema.as_deref(), &name, list, at);
        }
        if function.filter.is_some() || !list.clauses.is_empty() || list.agg_distinct {
            let what = if function.filter.is_some() {
                "FILTER"
            } else if list.agg_distinct {
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
        if let Some((rest, array)) = logstead_sql_parse::variadic(&list.args) {
            let mut args = self.plain_arg_list(rest, &name, at)?;
            args.push(self.expr(array)?);
            let array_at = self.at(array.location());
            return self.variadic_call(schema.as_deref(), &name, args, at, array_at);
        }
        let args = self.plain_args(list, &name, at)?;
        self.resolved_call(schema.as_deref(), &name, args, at)
    }

    /// The arguments as expressions; names, stars and defaults are refused.
    pub(crate) fn plain_args(
        &mut self,
        list: &ast::FunctionArgumentList,
        name: &str,
        at: Option<usize>,
    ) -> Result<Vec<Expr>> {
        self.plain_arg_list(&list.args, name, at)
    }

    pub(crate) fn plain_arg_list(
        &mut self,
        args: &[FunctionArg],
        name: &str,
        at: Option<usize>,
    ) -> Result<Vec<Expr>> {
        let is_known = || {
            func::functions_named(name).next().is_some()
                || func::aggregates_named(name).next().is_some()
                || func::is_window_function(name)
        };
        let is_named = |arg: &FunctionArg| !matches!(arg, FunctionArg::Unnamed(_));
        if args.iter().any(is_named) && !is_known() {
            return Err(self.no_named_function(name, args)?.at(at));
        }
        let ordered = super::named::in_order(name, args).map_err(|e| e.at(at))?;
        let mut out = Vec::with_capacity(args.len());
        for arg in ordered.as_deref().unwrap_or(args) {
            match arg {
                FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => out.push(self.expr(expr)?),
                FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => {
                    return Err(SqlError::new(
                        SqlState::WRONG_OBJECT_TYPE,
                        format!("{name}(*) specified, but {name} is not an aggregate function"),
                    )
                    .at(at));
                }
                FunctionArg::Unnamed(FunctionArgExpr::QualifiedWildcard(what)) => {
                    let at = self.at(what.location);
                    out.push(self.whole_row_of(&what.names, at)?);
                }
                FunctionArg::Named { .. } | FunctionArg::Variadic(..) => {
                    return Err(SqlError::unsupported("a named argument").at(at));
                }
            }
        }
        Ok(out)
    }

    /// 42883 for a call with named arguments of what there is not.
    fn no_named_function(&mut self, name: &str, args: &[FunctionArg]) -> Result<SqlError> {
        let mut types = Vec::with_capacity(args.len());
        for arg in args {
            let (said, value) = match arg {
                FunctionArg::Unnamed(value) => (None, value),
                FunctionArg::Named { name, arg } => (Some(name.value.to_string()), arg),
                FunctionArg::Variadic(..) => {
                    return Ok(SqlError::unsupported("a named argument"));
                }
            };
            let FunctionArgExpr::Expr(value) = value else {
                return Ok(SqlError::unsupported("a named argument"));
            };
            let ty = info::format_type_bare(self.expr(value)?.ty().oid).to_string();
            types.push(said.map_or(ty.clone(), |said| format!("{said} => {ty}")));
        }
        Ok(SqlError::new(
            SqlState::UNDEFINED_FUNCTION,
            format!("function {name}({}) does not exist", types.join(", ")),
        )
        .hint(
            "No function matches the given name and argument types. You might need to add explicit type casts.",
        ))
    }

    /// CURRENT_DATE and friends: functions without parentheses.
    pub(super) fn value_function(&mut self, node: &SqlValueFunction) -> Result<Expr> {
        let at = self.at(node.location);
        let value = self.keyword_function(node.op.word(), at)?;
        let Some(precision) = node.typmod else {
            return Ok(value);
        };
        let ty = value.ty();
        let typmod = info::typmod_in(ty.oid, &[i64::from(precision)])?;
        let ty = SqlType {
            oid: ty.oid,
            typmod,
        };
        self.coerce(value, ty, CastContext::Explicit, at)
    }

    fn keyword_function(&mut self, name: &str, at: Option<usize>) -> Result<Expr> {
        if let (Some(owner), "user" | "current_role" | "current_user") = (self.definer, name) {
            let role = self.cx.catalog.roles.get(owner);
            let role = role.map(|role| role.name.clone()).unwrap_or_default();
            return Ok(Expr::Const(Datum::text(role), SqlType::of(oid::NAME)));
        }
        let function = match name {
            "user" | "current_role" => "current_user",
            "current_catalog" => "current_database",
            "current_date" | "current_time" | "current_timestamp" | "localtime"
            | "localtimestamp" | "current_user" | "session_user" | "current_schema" => name,
            _ => {
                return Err(SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!("column \"{name}\" does not exist"),
                )
                .at(at));
            }
        };
        self.named_call(function, Vec::new(), at)
    }

    fn current_time(
        &mut self,
        name: &str,
        list: &ast::FunctionArgumentList,
        at: Option<usize>,
    ) -> Result<Expr> {
        let value = self.named_call(name, Vec::new(), at)?;
        let args = self.plain_args(list, name, at)?;
        match args.as_slice() {
            [] => Ok(value),
            [Expr::Const(Datum::Int4(precision), _)] => {
                let ty = value.ty();
                let typmod = info::typmod_in(ty.oid, &[i64::from(*precision)])?;
                self.coerce(
                    value,
                    SqlType {
                        oid: ty.oid,
                        typmod,
                    },
                    CastContext::Explicit,
                    at,
                )
            }
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                format!("invalid precision for {name}"),
            )
            .at(at)),
        }
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
        func::resolve_operator("<", Some(ty), ty).map_err(|e| e.at(at))?;
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
        let resolved =
            func::resolve_operator("=", Some(left.ty()), right.ty()).map_err(|e| e.at(at))?;
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
        function: &Function,
        schema: Option<&str>,
        name: &str,
        list: &ast::FunctionArgumentList,
        at: Option<usize>,
    ) -> Result<Expr> {
        let call = self.in_aggregate(at, |b| b.aggregate_call(function, schema, name, list, at))?;
        let name = from_stored_name(name).map_or(name, |(_, called)| called);
        self.computed_call(name, call, Vec::new(), at)
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
        function: &Function,
        schema: Option<&str>,
        name: &str,
        list: &ast::FunctionArgumentList,
        at: Option<usize>,
    ) -> Result<AggregateCall> {
        let star = matches!(
            list.args.as_slice(),
            [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]
        );
        let variadic = logstead_sql_parse::variadic(&list.args);
        let args = match (star, variadic) {
            (true, _) => Vec::new(),
            (false, Some((rest, array))) if self.has_user_aggregate(schema, name) => {
                let mut args = self.plain_arg_list(rest, name, at)?;
                args.push(self.expr(array)?);
                args
            }
            (false, _) => self.plain_args(list, name, at)?,
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
            schema,
            name,
            variadic: variadic.is_some(),
            direct: None,
            over: false,
            location: function.name.location,
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
                let resolved = func::resolve_aggregate(name, &types).map_err(|e| e.at(at))?;
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
        let distinct = list.agg_distinct;
        if distinct && star {
            return Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "DISTINCT specified, but the aggregate has no argument",
            )
            .at(at));
        }
        if distinct {
            for arg in &coerced {
                super::order_by::groupable(arg.ty(), at)?;
                if super::order_by::is_cyclic(arg.ty()) {
                    let message = format!(
                        "could not identify an ordering operator for type {}",
                        info::format_type(arg.ty())
                    );
                    let detail = "Aggregates with DISTINCT must be able to sort their inputs.";
                    return Err(SqlError::new(SqlState::UNDEFINED_FUNCTION, message)
                        .detail(detail)
                        .at(at));
                }
            }
        }
        let mut order = Vec::new();
        for clause in &list.clauses {
            match clause {
                FunctionArgumentClause::OrderBy(items) => {
                    for item in items {
                        let expr = self.expr(&item.node)?;
                        let expr = self.settle(expr)?;
                        super::order_by::sortable(expr.ty(), self.at(item.node.location()))?;
                        let (desc, nulls_first) =
                            logstead_sql_parse::sort_direction(&item.dir, item.nulls)?;
                        // What an argument is cast to by itself is not seen.
                        let argument = written.iter().zip(&coerced).find(|(written, coerced)| {
                            super::aggregate::same(written, &expr)
                                || (written.ty().oid == oid::UNKNOWN
                                    && super::aggregate::same(coerced, &expr))
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
                }
            }
        }
        let filter = match &function.filter {
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
