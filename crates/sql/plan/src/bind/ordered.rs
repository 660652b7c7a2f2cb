//! WITHIN GROUP: ordered-set aggregates, and hypothetical-set ones, which are counts of the rows that come before a row
//! that is not there.
//!
//! Direct arguments are the same for all rows of a group: they may name nothing but what the rows are grouped by, which
//! is asked when that is known ([`Binder::check_direct`]).

use super::names::FunctionName;
use super::user_aggregate::Named;
use super::{Binder, Clause};
use crate::query::Grouping;
use crate::query::expr::Expr;
use crate::{AggregateCall, SortKey, walk};
use logstead_sql_func as func;
use logstead_sql_func::CastContext;
use logstead_sql_parse::ast::FuncCall;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;

/// Aggregates that must have WITHIN GROUP.
pub(super) const ORDERED_SETS: [&str; 3] = ["percentile_cont", "percentile_disc", "mode"];

/// Those of a row that is not there; over a window they are other functions.
const HYPOTHETICAL_SETS: [&str; 4] = ["rank", "dense_rank", "percent_rank", "cume_dist"];

fn refused(state: SqlState, message: String) -> SqlError {
    SqlError::new(state, message)
}

impl Binder<'_> {
    /// A call with WITHIN GROUP.
    pub(super) fn within_group(
        &mut self,
        written: &FuncCall,
        function: FunctionName<'_>,
        at: Option<usize>,
    ) -> Result<Expr> {
        let name = function.name;
        let users = self.has_user_aggregate(function);
        let hypothetical = HYPOTHETICAL_SETS.contains(&name) && !users;
        if written.over.is_some() {
            let message = format!("OVER is not supported for ordered-set aggregate {name}");
            return Err(refused(SqlState::FEATURE_NOT_SUPPORTED, message).at(at));
        }
        self.in_aggregate(at, |b| {
            let direct = b.plain_args(written, name, at)?;
            let mut order = Vec::new();
            for item in &written.agg_order {
                let expr = b.expr(&item.node)?;
                let (desc, nulls_first) =
                    logstead_sql_parse::sort_direction(&item.dir, item.nulls)?;
                order.push(SortKey {
                    expr,
                    desc,
                    nulls_first,
                });
            }
            let filter = match &written.agg_filter {
                Some(filter) => {
                    Some(b.in_clause(Clause::Filter, |b| b.condition_of(filter, "FILTER"))?)
                }
                None => None,
            };
            Ok((direct, order, filter))
        })
        .and_then(|(direct, order, filter)| match hypothetical {
            true => self.hypothetical(name, direct, order, filter, at),
            false => {
                let named = Named {
                    function,
                    variadic: false,
                    direct: Some(direct.len()),
                    over: false,
                    location: written.location,
                    at,
                };
                self.ordered(&named, direct, order, filter)
            }
        })
    }

    /// percentile_cont, percentile_disc, mode.
    fn ordered(
        &mut self,
        named: &Named<'_>,
        direct: Vec<Expr>,
        order: Vec<SortKey>,
        filter: Option<Expr>,
    ) -> Result<Expr> {
        let (name, at) = (named.function.name, named.at);
        let directs = direct.len();
        let given: Vec<Expr> = direct
            .iter()
            .cloned()
            .chain(order.iter().map(|key| key.expr.clone()))
            .collect();
        let (aggregate, user, args, result) = match self.user_aggregate(named, given)? {
            Ok(call) => (
                &func::USER_AGGREGATE,
                Some(call.aggregate),
                call.args,
                call.result,
            ),
            Err(given) => {
                if !ORDERED_SETS.contains(&name) {
                    return Err(no_ordered_set(name, &direct, &order, self.types()).at(at));
                }
                let types: Vec<SqlType> = given.iter().map(Expr::ty).collect();
                let resolved =
                    func::resolve_aggregate(name, &types, self.types()).map_err(|e| e.at(at))?;
                let mut args = Vec::with_capacity(given.len());
                for (i, arg) in given.into_iter().enumerate() {
                    let target = resolved.args.get(i).copied().unwrap_or(arg.ty());
                    args.push(self.argument(arg, target, false, at)?);
                }
                (resolved.aggregate, None, args, resolved.result)
            }
        };
        let mut keys = Vec::with_capacity(order.len());
        for (key, value) in order.into_iter().zip(args.iter().skip(directs)) {
            func::resolve_operator("<", Some(value.ty()), value.ty(), self.types()).map_err(
                |e| {
                    let message = "could not identify an ordering operator for type";
                    let ty = self.types().format_type(SqlType::of(value.ty().oid));
                    refused(e.code(), format!("{message} {ty}")).at(at)
                },
            )?;
            keys.push(SortKey {
                expr: value.clone(),
                ..key
            });
        }
        // What computes a user's aggregate sorts if it wants to: PostgreSQL gives it the rows as they come.
        if user.is_some() {
            keys.clear();
        }
        let direct = args.iter().take(directs).cloned().collect();
        let call = AggregateCall {
            aggregate,
            user,
            args,
            distinct: false,
            filter,
            order: keys,
            ty: result,
        };
        self.computed_call(name, call, direct, at)
    }

    /// rank, dense_rank, percent_rank, cume_dist.
    fn hypothetical(
        &mut self,
        name: &str,
        direct: Vec<Expr>,
        order: Vec<SortKey>,
        filter: Option<Expr>,
        at: Option<usize>,
    ) -> Result<Expr> {
        if direct.len() != order.len() {
            let types = direct.iter().chain(order.iter().map(|key| &key.expr));
            let types: Vec<String> = types.map(|e| self.types().format_type(e.ty())).collect();
            let message = format!("function {name}({}) does not exist", types.join(", "));
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct arguments (here {}) must match the number of ordering columns (here {}).",
                direct.len(),
                order.len()
            );
            return Err(refused(SqlState::UNDEFINED_FUNCTION, message)
                .hint(hint)
                .at(at));
        }
        // Each with the value it is compared with.
        let mut keys = Vec::with_capacity(order.len());
        for (value, key) in direct.into_iter().zip(order) {
            let (both, _) =
                self.unify(vec![(key.expr.clone(), at), (value, at)], "WITHIN GROUP")?;
            let [expr, value] = <[Expr; 2]>::try_from(both)
                .map_err(|_| SqlError::internal("two expressions became another number"))?;
            keys.push((SortKey { expr, ..key }, value));
        }
        let direct: Vec<Expr> = keys.iter().map(|(_, value)| value.clone()).collect();
        let before = self.comes_before(&keys, at)?;
        let int8 = SqlType::of(oid::INT8);
        let one = Expr::Const(Datum::Int8(1), int8);
        match name {
            "rank" => {
                let count = self.counted(Some(before), None, filter, &direct, at)?;
                self.operator("+", count, one, at)
            }
            "dense_rank" => {
                let fields: Vec<Expr> = keys.iter().map(|(key, _)| key.expr.clone()).collect();
                // A row of them is never NULL, whatever its fields are.
                let row = self.row(fields)?;
                let count = self.counted(Some(before), Some(row), filter, &direct, at)?;
                self.operator("+", count, one, at)
            }
            "percent_rank" => {
                let count = self.counted(Some(before), None, filter.clone(), &direct, at)?;
                let all = self.counted(None, None, filter, &direct, at)?;
                // Of no rows it is 0.
                let all = Expr::Extreme(true, vec![all, one], int8);
                self.ratio(count, all, at)
            }
            _ => {
                let equal = keys.iter().map(|(key, value)| same_value(key, value));
                let peers: Vec<Expr> = equal.collect();
                let peer = super::and(peers).unwrap_or(before.clone());
                let within = Expr::Or(vec![before, peer]);
                let count = self.counted(Some(within), None, filter.clone(), &direct, at)?;
                let all = self.counted(None, None, filter, &direct, at)?;
                let count = self.operator("+", count, one.clone(), at)?;
                let all = self.operator("+", all, one, at)?;
                self.ratio(count, all, at)
            }
        }
    }

    fn ratio(&mut self, part: Expr, whole: Expr, at: Option<usize>) -> Result<Expr> {
        let float = SqlType::of(oid::FLOAT8);
        let part = self.coerce(part, float, CastContext::Explicit, at)?;
        let whole = self.coerce(whole, float, CastContext::Explicit, at)?;
        self.operator("/", part, whole, at)
    }

    /// Does a row come before the one that is not there?
    fn comes_before(&mut self, keys: &[(SortKey, Expr)], at: Option<usize>) -> Result<Expr> {
        let mut ways = Vec::new();
        for (i, (key, value)) in keys.iter().enumerate() {
            let op = if key.desc { ">" } else { "<" };
            let less = self.operator(op, key.expr.clone(), value.clone(), at)?;
            let is_null = |expr: &Expr, not: bool| Expr::IsNull(Box::new(expr.clone()), not);
            let nulls = Expr::And(vec![
                is_null(&key.expr, !key.nulls_first),
                is_null(value, key.nulls_first),
            ]);
            let mut all: Vec<Expr> = keys
                .iter()
                .take(i)
                .map(|(key, value)| same_value(key, value))
                .collect();
            all.push(Expr::Or(vec![less, nulls]));
            ways.extend(super::and(all));
        }
        Ok(match ways.len() {
            1 => ways.remove(0),
            _ => Expr::Or(ways),
        })
    }

    /// count(*), or count(DISTINCT of), of the rows for which a condition holds.
    fn counted(
        &mut self,
        condition: Option<Expr>,
        of: Option<Expr>,
        filter: Option<Expr>,
        direct: &[Expr],
        at: Option<usize>,
    ) -> Result<Expr> {
        let types: Vec<SqlType> = of.iter().map(Expr::ty).collect();
        let resolved =
            func::resolve_aggregate("count", &types, self.types()).map_err(|e| e.at(at))?;
        let call = AggregateCall {
            aggregate: resolved.aggregate,
            user: None,
            distinct: of.is_some(),
            args: of.into_iter().collect(),
            filter: super::and(filter.into_iter().chain(condition).collect()),
            order: Vec::new(),
            ty: resolved.result,
        };
        self.computed_call("count", call, direct.to_vec(), at)
    }

    /// 42803 for a direct argument that names what the rows are not grouped by.
    pub(super) fn check_direct(
        &mut self,
        direct: Vec<Expr>,
        grouping: &mut Grouping,
        rels: &[usize],
    ) -> Result<()> {
        for mut expr in direct {
            let mut ids = Vec::new();
            walk::column_ids(&expr, &mut ids);
            let own = ids.iter().any(|id| rels.contains(&self.info(*id).rel));
            if own && grouping.sets.is_some() {
                return Err(SqlError::unsupported(
                    "a column as a direct argument of an ordered-set aggregate beside grouping sets",
                ));
            }
            self.regroup(&mut expr, grouping, rels).map_err(|error| {
                error.detail(
                    "Direct arguments of an ordered-set aggregate must use only grouped columns.",
                )
            })?;
        }
        Ok(())
    }
}

fn same_value(key: &SortKey, value: &Expr) -> Expr {
    Expr::IsDistinct {
        left: Box::new(key.expr.clone()),
        right: Box::new(value.clone()),
        negated: true,
    }
}

/// What is said of a function that cannot have WITHIN GROUP, if there is one for all the arguments.
fn no_ordered_set(
    name: &str,
    direct: &[Expr],
    order: &[SortKey],
    known: TypeLookup<'_>,
) -> SqlError {
    let all = direct.iter().chain(order.iter().map(|key| &key.expr));
    let types: Vec<SqlType> = all.map(Expr::ty).collect();
    let found = match func::is_aggregate(name) {
        true => func::resolve_aggregate(name, &types, known).map(|_| {
            format!("{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP")
        }),
        false => func::resolve_function(None, name, &types, known)
            .map(|_| format!("WITHIN GROUP specified, but {name} is not an aggregate function")),
    };
    match found {
        Ok(message) => refused(SqlState::WRONG_OBJECT_TYPE, message),
        Err(error) => error,
    }
}

/// 42809 for an ordered-set aggregate without WITHIN GROUP.
pub(super) fn lacks_group(name: &str, at: Option<usize>) -> Result<()> {
    if !ORDERED_SETS.contains(&name) {
        return Ok(());
    }
    let message = format!("WITHIN GROUP is required for ordered-set aggregate {name}");
    Err(refused(SqlState::WRONG_OBJECT_TYPE, message).at(at))
}
