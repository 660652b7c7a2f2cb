//! Columns of a query in FROM that nobody reads are not computed (PostgreSQL's `remove_unused_subquery_outputs`).
//!
//! Rule: an output that is not read is NULL, and an aggregate that is not read is computed over no row, unless
//! computing it does something: one that fails fails nothing. Below, columns that only such outputs read are pruned in
//! turn.
//!
//! It goes over the query's plan: which columns are read is known when the query around it is planned.

use crate::query::expr::Expr;
use crate::{Node, Plan, SetOpKind, walk};
use logstead_sql_func::Volatility;
use logstead_sql_types::value::{Datum, SqlType, oid};

/// Prunes the columns of a plan that are not `used`.
pub(crate) fn prune(plan: &mut Plan, used: &[bool]) {
    let width = plan.columns.len();
    if width != used.len() {
        return;
    }
    match &mut plan.node {
        Node::Limit { input, .. } => prune(input, used),
        Node::SetOp {
            kind: SetOpKind::Union,
            all: true,
            left,
            right,
        } => {
            prune(left, used);
            prune(right, used);
        }
        Node::Filter { input, condition } => {
            let mut used = used.to_vec();
            note_used(condition, &mut used);
            prune(input, &used);
        }
        Node::Project { input, exprs } if exprs.len() == width => {
            for ((expr, column), used) in exprs.iter_mut().zip(&plan.columns).zip(used) {
                if !*used && !does_something(expr) {
                    *expr = Expr::Const(Datum::Null, column.ty);
                }
            }
            let mut below = vec![false; input.columns.len()];
            for expr in exprs.iter() {
                note_used(expr, &mut below);
            }
            prune(input, &below);
        }
        Node::Aggregate {
            keys, aggregates, ..
        } => {
            for (call, used) in aggregates.iter_mut().zip(used.iter().skip(keys.len())) {
                let mut computed = call.args.iter().chain(&call.filter);
                if *used || !call.order.is_empty() || computed.any(does_something) {
                    continue;
                }
                // It stays in its place, over no row.
                for arg in &mut call.args {
                    *arg = Expr::Const(Datum::Null, arg.ty());
                }
                call.distinct = false;
                call.filter = Some(Expr::Const(Datum::Bool(false), SqlType::of(oid::BOOL)));
            }
        }
        _ => {}
    }
}

/// Whether computing an expression does something besides.
fn does_something(expr: &Expr) -> bool {
    let within = |e: &Expr| matches!(e, Expr::Subquery(subquery) if changes(&subquery.plan));
    walk::is_volatile(expr) || walk::any(expr, &within)
}

/// Whether a plan does something besides giving rows. Expressions are not looked at.
fn changes(plan: &Plan) -> bool {
    let own = match &plan.node {
        Node::FunctionScan { function, .. } => function.volatility == Volatility::Volatile,
        Node::RoutineScan { .. }
        | Node::LockRows { .. }
        | Node::Insert(_)
        | Node::Update(_)
        | Node::Delete(_)
        | Node::Merge(_) => true,
        _ => false,
    };
    own || crate::instrumentation::children(plan)
        .into_iter()
        .any(changes)
}

/// Notes the columns that an expression reads.
fn note_used(expr: &Expr, used: &mut [bool]) {
    match expr {
        Expr::Column(column, _) => match used.get_mut(*column) {
            Some(used) => *used = true,
            None => used.fill(true),
        },
        // Its plan may read any of them.
        Expr::Subquery(_) => used.fill(true),
        _ => walk::children(expr, &mut |child| note_used(child, used)),
    }
}
