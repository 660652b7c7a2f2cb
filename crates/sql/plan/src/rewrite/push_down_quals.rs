//! Conditions go into the query in FROM that they are about (PostgreSQL's `subquery_push_qual`).
//!
//! Rule: a condition goes into a query if it says the same there of the rows that come out: over columns that the query
//! only gives along, below its grouping if it is about group keys, into every branch of a UNION. It never goes past
//! LIMIT, DISTINCT ON, a set-returning function, a window (unless it is about what all windows are partitioned by),
//! EXCEPT, or anything volatile; nor into a view that is a security barrier, unless it is leakproof.

use super::leakproof::is_leakproof;
use crate::query::expr::Expr;
use crate::query::{BoundSubquery, COLUMN_BASE, ColId, Distinct, QueryTree, Select};
use crate::{SetOpKind, walk};
use logstead_sql_types::value::oid;

/// Puts conditions over the columns of an item, from `first` on, into its query. Those that have gone in are taken out.
pub(crate) fn push_down(
    query: &mut BoundSubquery,
    (first, width): (ColId, usize),
    conditions: &mut Vec<Expr>,
) {
    let barrier = query.barrier;
    conditions.retain(|condition| {
        let at_positions = over_positions(condition, first, width);
        let Some(condition) = at_positions.filter(|c| !barrier || is_leakproof(c)) else {
            return true;
        };
        if !accepts(&query.body, &condition) {
            return true;
        }
        take_in(&mut query.body, &condition);
        false
    });
}

/// A condition over an item's columns as one over positions; none if it may not be moved.
fn over_positions(condition: &Expr, first: ColId, width: usize) -> Option<Expr> {
    if walk::is_volatile(condition) || walk::has_subquery(condition) {
        return None;
    }
    let mut moved = condition.clone();
    let mut any = false;
    renumber(&mut moved, first, width, &mut any);
    any.then_some(moved)
}

fn renumber(expr: &mut Expr, first: ColId, width: usize, any: &mut bool) {
    if let Expr::Column(id, _) = expr
        && (first..first + width).contains(id)
    {
        *id -= first;
        *any = true;
    }
    walk::children_mut(expr, &mut |e| renumber(e, first, width, any));
}

/// The positions in a condition.
fn positions(condition: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    collect(condition, &mut found);
    found
}

fn collect(expr: &Expr, out: &mut Vec<usize>) {
    if let Expr::Column(at, _) = expr
        && *at < COLUMN_BASE
    {
        out.push(*at);
    }
    walk::children(expr, &mut |e| collect(e, out));
}

/// Puts expressions in the place of positions.
fn substitute(expr: &mut Expr, outputs: &dyn Fn(usize) -> Option<Expr>) {
    if let Expr::Column(at, _) = expr
        && *at < COLUMN_BASE
    {
        if let Some(output) = outputs(*at) {
            *expr = output;
        }
        return;
    }
    walk::children_mut(expr, &mut |e| substitute(e, outputs));
}

/// Whether a condition over a body's columns may go in.
fn accepts(body: &QueryTree, condition: &Expr) -> bool {
    match body {
        QueryTree::Select(select) => select_accepts(select, condition),
        QueryTree::Values(..)
        | QueryTree::Project(..)
        | QueryTree::Ordered(_)
        | QueryTree::With(..)
        | QueryTree::Change(_) => false,
        QueryTree::SetOps(first, rest) => {
            rest.iter()
                .all(|b| b.kind != SetOpKind::Except && !b.is_cast)
                && accepts(first, condition)
                && rest.iter().all(|b| accepts(&b.body, condition))
        }
    }
}

fn select_accepts(select: &Select, condition: &Expr) -> bool {
    let passes = select.limit.is_none()
        && select.offset.is_none()
        && select.locks.is_none()
        && select.sets.is_empty()
        && !select.from.items.is_empty()
        && !matches!(select.distinct, Distinct::On(_));
    passes
        && positions(condition).into_iter().all(|at| {
            let Some(output) = select.outputs.get(at) else {
                return false;
            };
            let expr = &output.expr;
            let typed = expr.ty().oid != oid::UNKNOWN;
            let partitioned = select
                .windows
                .iter()
                .all(|window| window.partition.iter().any(|p| walk::same(p, expr)));
            typed && partitioned && !walk::is_volatile(expr) && !walk::has_subquery(expr)
        })
}

/// Puts a condition that [`accepts`] has found good into a body.
fn take_in(body: &mut QueryTree, condition: &Expr) {
    match body {
        QueryTree::Select(select) => {
            let mut condition = condition.clone();
            let outputs = &select.outputs;
            substitute(&mut condition, &|at| Some(outputs.get(at)?.expr.clone()));
            let Some(grouping) = &mut select.grouping else {
                select.from.conditions.push(condition);
                return;
            };
            let mut ids = Vec::new();
            walk::column_ids(&condition, &mut ids);
            let key = |id: &ColId| {
                let found = grouping.keys.iter().find(|(key, _)| key == id);
                found.filter(|(_, e)| !walk::is_volatile(e) && !walk::has_subquery(e))
            };
            let made = |id: &ColId| {
                grouping.aggregates.iter().any(|(made, _)| made == id)
                    || grouping.calls.iter().any(|(made, _)| made == id)
            };
            // Group keys and what comes from outside; without keys there is one row whatever is below.
            let below = grouping.sets.is_none()
                && ids.iter().any(|id| key(id).is_some())
                && !ids.iter().any(made)
                && ids.iter().all(|id| {
                    key(id).is_some() || !grouping.keys.iter().any(|(other, _)| other == id)
                });
            if below {
                replace_keys(&mut condition, &|id| key(&id).map(|(_, e)| e.clone()));
                select.from.conditions.push(condition);
            } else {
                grouping.having.push(condition);
            }
        }
        QueryTree::SetOps(first, rest) => {
            take_in(first, condition);
            rest.iter_mut()
                .for_each(|b| take_in(&mut b.body, condition));
        }
        QueryTree::Values(..)
        | QueryTree::Project(..)
        | QueryTree::Ordered(_)
        | QueryTree::With(..)
        | QueryTree::Change(_) => {}
    }
}

fn replace_keys(expr: &mut Expr, key: &dyn Fn(ColId) -> Option<Expr>) {
    if let Expr::Column(id, _) = expr {
        if let Some(found) = key(*id) {
            *expr = found;
        }
        return;
    }
    walk::children_mut(expr, &mut |e| replace_keys(e, key));
}
