//! Columns of scans that nobody reads: what only a scan's own filter looks at, a comment that is searched for a word,
//! goes no further.
//!
//! A column that is marked so stays in its place, as NULL: nothing above has to be renumbered. It costs neither
//! decoding, where the filter does not want it either, nor copies of its value in every join and hash table on the way
//! up. What a projection computes and nobody reads is not computed, unless it is volatile: PostgreSQL does not either,
//! be it an error.
//!
//! Invariant: a column is marked only if no expression above the scan refers to it. Where an operator's rows are looked
//! at as a whole (DISTINCT, set operations, windows, locks, changes, subqueries in its expressions), all of them are
//! wanted.

use super::eval::columns_read;
use logstead_sql_plan::expr::{Expr, SubqueryKind};
use logstead_sql_plan::instrumentation::width;
use logstead_sql_plan::{JoinKind, Node, Plan, walk};
use logstead_sql_types::value::Datum;

/// Marks what of a plan's scans is not read.
pub(crate) fn mark(plan: &mut Plan) {
    let wanted = vec![true; width(plan)];
    below(plan, wanted);
}

/// Marks what of the scans in `plan` is not read if of its own rows the columns `wanted` are.
fn below(plan: &mut Plan, mut wanted: Vec<bool>) {
    match &mut plan.node {
        Node::SeqScan(scan) | Node::IndexScan { scan, .. } => {
            wanted.resize(scan.columns.len(), true);
            scan.unread = wanted.iter().map(|wanted| !wanted).collect();
        }
        Node::Project { input, exprs } => {
            for (expr, _) in exprs
                .iter_mut()
                .zip(&wanted)
                .filter(|(_, wanted)| !**wanted)
            {
                if is_computed(expr) && !walk::is_volatile(expr) {
                    *expr = Expr::Const(Datum::Null, expr.ty());
                }
            }
            let wanted = read_of(exprs.iter(), vec![false; width(input)]);
            below(input, wanted);
        }
        Node::ProjectSet { input, exprs } => {
            let wanted = read_of(exprs.iter(), vec![false; width(input)]);
            below(input, wanted);
        }
        Node::Filter { input, condition } => below(input, read_of([&*condition], wanted)),
        Node::Sort { input, keys } => {
            let wanted = read_of(keys.iter().map(|key| &key.expr), wanted);
            below(input, wanted);
        }
        Node::DistinctOn { input, keys } => {
            let wanted = read_of(keys.iter(), wanted);
            below(input, wanted);
        }
        Node::Limit { input, .. } => below(input, wanted),
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
            let wanted = read_of(keys.iter().chain(calls), vec![false; width(input)]);
            below(input, wanted);
        }
        Node::HashJoin {
            left,
            right,
            kind,
            left_keys,
            right_keys,
            condition,
        } => {
            let (l, r) = sides(*kind, left, right, condition.as_ref(), wanted);
            let (l, r) = (read_of(left_keys.iter(), l), read_of(right_keys.iter(), r));
            below(left, l);
            below(right, r);
        }
        Node::MergeJoin {
            left,
            right,
            kind,
            keys,
            condition,
        } => {
            let (l, r) = sides(*kind, left, right, condition.as_ref(), wanted);
            let l = read_of(keys.iter().map(|key| &key.left), l);
            let r = read_of(keys.iter().map(|key| &key.right), r);
            below(left, l);
            below(right, r);
        }
        Node::NestedLoop {
            left,
            right,
            kind,
            condition,
            lateral,
        } => {
            let (mut l, r) = sides(*kind, left, right, condition.as_ref(), wanted);
            if *lateral {
                walk::plan_exprs(right, 1, &mut |expr, depth| outer(expr, depth, &mut l));
            }
            below(left, l);
            below(right, r);
        }
        Node::With {
            definition,
            recursive,
            body,
            ..
        } => {
            mark(definition);
            if let Some((term, _)) = recursive {
                mark(term);
            }
            below(body, wanted);
        }
        Node::Distinct(input) | Node::Window { input, .. } | Node::LockRows { input, .. } => {
            mark(input);
        }
        Node::SetOp { left, right, .. } => {
            mark(left);
            mark(right);
        }
        Node::Insert(insert) => mark(&mut insert.source),
        Node::Update(update) => mark(&mut update.source),
        Node::Delete(delete) => mark(&mut delete.source),
        Node::Merge(merge) => mark(&mut merge.source),
        Node::OneRow
        | Node::Values(_)
        | Node::RowScan { .. }
        | Node::VirtualScan { .. }
        | Node::FunctionScan { .. }
        | Node::RoutineScan { .. }
        | Node::CteScan { .. } => {}
    }
}

/// Does it take more than a look at the row?
fn is_computed(expr: &Expr) -> bool {
    !matches!(
        expr,
        Expr::Const(..) | Expr::Column(..) | Expr::Outer { .. } | Expr::Param(..)
    )
}

/// What is wanted of the two sides of a join for its own rows and its condition.
fn sides(
    kind: JoinKind,
    left: &Plan,
    right: &Plan,
    condition: Option<&Expr>,
    mut wanted: Vec<bool>,
) -> (Vec<bool>, Vec<bool>) {
    let (left, right) = (width(left), width(right));
    if matches!(kind, JoinKind::Semi | JoinKind::Anti) {
        wanted.truncate(left);
    }
    wanted.resize(left + right, false);
    let mut wanted = read_of(condition, wanted);
    let right = wanted.split_off(left);
    (wanted, right)
}

/// Adds what expressions over a row read.
fn read_of<'e>(exprs: impl IntoIterator<Item = &'e Expr>, mut wanted: Vec<bool>) -> Vec<bool> {
    let mut used = Vec::new();
    for expr in exprs {
        if !columns_read(expr, &mut used) {
            wanted.fill(true);
            return wanted;
        }
    }
    for column in used {
        if let Some(wanted) = wanted.get_mut(column) {
            *wanted = true;
        }
    }
    wanted
}

/// Adds what an expression reads of the row that stands `depth` rows out.
fn outer(expr: &Expr, depth: usize, wanted: &mut [bool]) {
    match expr {
        Expr::Outer { level, index, .. } if *level == depth => {
            if let Some(wanted) = wanted.get_mut(*index) {
                *wanted = true;
            }
        }
        Expr::Subquery(subquery) => {
            walk::plan_exprs(&subquery.plan, depth + 1, &mut |expr, depth| {
                outer(expr, depth, wanted)
            });
            if let SubqueryKind::Compare { left, .. } = &subquery.kind {
                left.iter().for_each(|expr| outer(expr, depth, wanted));
            }
        }
        _ => walk::children(expr, &mut |expr| outer(expr, depth, wanted)),
    }
}
