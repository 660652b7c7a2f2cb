//! Constants that cannot be computed, as `1/0`.
//!
//! Binding computes what is constant and leaves what fails to the run, which may never come to it. PostgreSQL computes constants when it plans, so there
//! such a statement fails before it describes or does anything, be it in an arm of CASE that no row comes to. This finds what fails there: in what
//! the statement gives or writes and in its WHERE. Subqueries are left to the run: PostgreSQL may not look at them either.

use super::{Node, Plan, walk};
use crate::error::SqlError;
use crate::expr::Expr;
use crate::func::Volatility;
use crate::value::Datum;

/// The error of planning this in PostgreSQL.
pub(crate) fn failing(plan: &Plan) -> Option<SqlError> {
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

fn failing_expr(expr: &Expr) -> Option<SqlError> {
    match expr {
        Expr::Call { function, args, .. } => {
            if let Some(error) = args.iter().find_map(failing_expr) {
                return Some(error);
            }
            let values: Option<Vec<Datum>> = args.iter().map(constant).collect();
            let values = values.filter(|_| function.volatility == Volatility::Immutable)?;
            match function.strict && values.iter().any(Datum::is_null) {
                true => None,
                false => function.call_pure(&values)?.err(),
            }
        }
        // What follows a constant that decides is never computed.
        Expr::And(items) => failing_until(items, |value| matches!(value, Datum::Bool(false))),
        Expr::Or(items) => failing_until(items, |value| matches!(value, Datum::Bool(true))),
        Expr::Coalesce(items, _) => failing_until(items, |value| !value.is_null()),
        Expr::Case {
            arms, otherwise, ..
        } => {
            for (when, then) in arms {
                match constant(when) {
                    Some(Datum::Bool(true)) => return failing_expr(then),
                    Some(_) => {}
                    None => {
                        let found = failing_expr(when).or_else(|| failing_expr(then));
                        if found.is_some() {
                            return found;
                        }
                    }
                }
            }
            otherwise.as_deref().and_then(failing_expr)
        }
        Expr::Subquery(_) => None,
        other => {
            let mut found = None;
            walk::children(other, &mut |child| {
                found = found.take().or_else(|| failing_expr(child));
            });
            found
        }
    }
}

fn failing_until(items: &[Expr], decides: impl Fn(&Datum) -> bool) -> Option<SqlError> {
    for item in items {
        match constant(item) {
            Some(value) if decides(&value) => return None,
            _ => {}
        }
        if let Some(error) = failing_expr(item) {
            return Some(error);
        }
    }
    None
}

fn constant(expr: &Expr) -> Option<Datum> {
    match expr {
        Expr::Const(value, _) => Some(value.clone()),
        _ => None,
    }
}
