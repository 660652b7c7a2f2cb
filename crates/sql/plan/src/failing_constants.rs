//! Constants that cannot be computed, as `1/0`.
//!
//! Binding computes what is constant and leaves what fails to the run, which may never come to it. PostgreSQL computes
//! constants when it plans, so there such a statement fails before it describes or does anything, be it in an arm of
//! CASE that no row comes to. This finds what fails there: in what the statement gives or writes, in its aggregates and
//! in its WHERE. Where folding ([`fold`]) drops an arm, nobody looks at it. Subqueries are left to the run: PostgreSQL
//! may not look at them either.

use super::{Node, Plan, walk};
use crate::query::expr::Expr;
use crate::rewrite::fold_constants as fold;
use logstead_sql_func::{FunctionImpl, Volatility};
use logstead_sql_types::error::SqlError;

/// The error of planning this in PostgreSQL.
pub fn failing(plan: &Plan) -> Option<SqlError> {
    match &plan.node {
        Node::With { body, .. } => failing(body),
        Node::Sort { input, .. } | Node::Limit { input, .. } | Node::Distinct(input) => {
            failing(input)
        }
        Node::Project { exprs, input } | Node::ProjectSet { exprs, input } => {
            let found = exprs.iter().find_map(failing_expr);
            found.or_else(|| failing_filter(input))
        }
        Node::Values(rows) => rows.iter().flatten().find_map(failing_expr),
        Node::Insert(insert) => failing_change(plan).or_else(|| failing(&insert.source)),
        Node::Update(update) => failing_change(plan).or_else(|| failing(&update.source)),
        Node::Delete(delete) => failing_change(plan).or_else(|| failing(&delete.source)),
        _ => failing_filter(plan),
    }
}

fn failing_filter(plan: &Plan) -> Option<SqlError> {
    match &plan.node {
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } => {
            scan.filter.condition().and_then(failing_expr)
        }
        Node::Filter { input, condition } => {
            failing_expr(condition).or_else(|| failing_filter(input))
        }
        Node::Aggregate {
            input,
            keys,
            aggregates,
            ..
        } => {
            let calls = aggregates.iter().flat_map(|call| {
                let order = call.order.iter().map(|key| &key.expr);
                call.args.iter().chain(&call.filter).chain(order)
            });
            let found = keys.iter().chain(calls).find_map(failing_expr);
            found.or_else(|| failing_filter(input))
        }
        _ => None,
    }
}

fn failing_change(plan: &Plan) -> Option<SqlError> {
    let mut found = None;
    walk::change_exprs(plan, &mut |expr| {
        found = found.take().or_else(|| failing_expr(expr));
    });
    found
}

/// The error that folding meets: that of a call of constants, which binding has not computed.
fn failing_expr(expr: &Expr) -> Option<SqlError> {
    if !may_be_failing(expr) {
        return None;
    }
    fold::fold(&mut expr.clone()).err()
}

/// Is there a call of constants in it that binding has not computed?
pub(crate) fn may_be_failing(expr: &Expr) -> bool {
    walk::any(expr, &is_uncomputed)
}

fn is_uncomputed(expr: &Expr) -> bool {
    match expr {
        Expr::Call { function, args, .. } => function.volatility == Volatility::Immutable
            && matches!(function.body, FunctionImpl::Pure(_) | FunctionImpl::Pair(_))
            && args.iter().all(
                |arg| matches!(arg, Expr::Const(value, _) if !(function.strict && value.is_null())),
            ),
        _ => false,
    }
}
