//! Walks over expressions and plans, and equality of expressions.

mod waits;

use crate::query::expr::{COLUMN_BASE, ColId, Expr, Subquery, SubqueryKind};
use crate::{AggregateCall, KeyRange, MergeAction, Node, Plan, Scan};
use logstead_sql_types::value::{Datum, stored};
use std::sync::Arc;
pub use waits::{calls_volatile, has_routine, may_wait, waits_for_advisory_lock};
pub(crate) use waits::{runs_routine, scans_routine};

/// Calls `f` on each direct operand. Subqueries' operands only: their plans are [`plan_exprs`]'s.
pub fn children<'e>(expr: &'e Expr, f: &mut dyn FnMut(&'e Expr)) {
    match expr {
        Expr::Const(..) | Expr::Column(..) | Expr::Outer { .. } | Expr::Param(..) => {}
        Expr::Call { args, .. } => args.iter().for_each(f),
        Expr::CastViaText(arg, _)
        | Expr::CoerceTypmod { arg, .. }
        | Expr::Domain(arg, _)
        | Expr::Relabel(arg, _)
        | Expr::Not(arg)
        | Expr::IsNull(arg, _)
        | Expr::IsBool { arg, .. } => f(arg),
        Expr::And(all)
        | Expr::Or(all)
        | Expr::Coalesce(all, _)
        | Expr::Extreme(_, all, _)
        | Expr::Array(all, _) => {
            all.iter().for_each(f);
        }
        Expr::IsDistinct { left, right, .. } => {
            f(left);
            f(right);
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            for (when, then) in arms {
                f(when);
                f(then);
            }
            if let Some(otherwise) = otherwise {
                f(otherwise);
            }
        }
        Expr::NullIf { left, equal, .. } => {
            f(left);
            f(equal);
        }
        Expr::ArrayCompare { left, array, .. } => {
            f(left);
            f(array);
        }
        Expr::InList { left, list, .. } => {
            f(left);
            list.iter().for_each(f);
        }
        Expr::Subscript { array, index, .. } => {
            f(array);
            f(index);
        }
        Expr::Subquery(subquery) => subquery.kind.operands().iter().for_each(f),
        Expr::SubLink(link) => link.kind.operands().iter().for_each(f),
    }
}

/// As [`children`], to change them.
pub(crate) fn children_mut(expr: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    match expr {
        Expr::Const(..) | Expr::Column(..) | Expr::Outer { .. } | Expr::Param(..) => {}
        Expr::Call { args, .. } => args.iter_mut().for_each(f),
        Expr::CastViaText(arg, _)
        | Expr::CoerceTypmod { arg, .. }
        | Expr::Domain(arg, _)
        | Expr::Relabel(arg, _)
        | Expr::Not(arg)
        | Expr::IsNull(arg, _)
        | Expr::IsBool { arg, .. } => f(arg),
        Expr::And(all)
        | Expr::Or(all)
        | Expr::Coalesce(all, _)
        | Expr::Extreme(_, all, _)
        | Expr::Array(all, _) => {
            all.iter_mut().for_each(f);
        }
        Expr::IsDistinct { left, right, .. } => {
            f(left);
            f(right);
        }
        Expr::Case {
            arms, otherwise, ..
        } => {
            for (when, then) in arms {
                f(when);
                f(then);
            }
            if let Some(otherwise) = otherwise {
                f(otherwise);
            }
        }
        Expr::NullIf { left, equal, .. } => {
            f(left);
            f(equal);
        }
        Expr::ArrayCompare { left, array, .. } => {
            f(left);
            f(array);
        }
        Expr::InList { left, list, .. } => {
            f(left);
            list.iter_mut().for_each(f);
        }
        Expr::Subscript { array, index, .. } => {
            f(array);
            f(index);
        }
        // One that others hold is copied only if there is something to change.
        Expr::Subquery(subquery) if !subquery.kind.operands().is_empty() => {
            let operands = Arc::make_mut(subquery).kind.operands_mut();
            operands.iter_mut().for_each(f);
        }
        Expr::SubLink(link) if !link.kind.operands().is_empty() => {
            let operands = Arc::make_mut(link).kind.operands_mut();
            operands.iter_mut().for_each(f);
        }
        Expr::Subquery(_) | Expr::SubLink(_) => {}
    }
}

/// Every expression of a plan with how many rows deeper than the plan itself it is evaluated (lateral right sides; not
/// the plans of subqueries, which the expression walks enter).
pub fn plan_exprs(plan: &Plan, depth: usize, f: &mut dyn FnMut(&Expr, usize)) {
    // One walk for both: the mutable one is told apart by the type system only.
    let range = |range: &KeyRange, f: &mut dyn FnMut(&Expr, usize)| {
        range.exprs().for_each(|e| f(e, depth));
    };
    let scan_filter = |scan: &Scan, f: &mut dyn FnMut(&Expr, usize)| {
        scan.filter.exprs().for_each(|e| f(e, depth))
    };
    match &plan.node {
        Node::OneRow | Node::CteScan { .. } => {}
        Node::Values(rows) => rows.iter().flatten().for_each(|e| f(e, depth)),
        Node::SeqScan(scan) | Node::RowScan { scan, .. } => scan_filter(scan, f),
        Node::IndexScan {
            scan, range: keys, ..
        } => {
            scan_filter(scan, f);
            range(keys, f);
        }
        Node::VirtualScan { filter, .. } => filter.iter().for_each(|e| f(e, depth)),
        Node::FunctionScan { args, .. } | Node::RoutineScan { args, .. } => {
            args.iter().for_each(|e| f(e, depth));
        }
        Node::ProjectSet { input, exprs } | Node::Project { input, exprs } => {
            exprs.iter().for_each(|e| f(e, depth));
            plan_exprs(input, depth, f);
        }
        Node::Filter { input, condition } => {
            f(condition, depth);
            plan_exprs(input, depth, f);
        }
        Node::NestedLoop {
            left,
            right,
            condition,
            lateral,
            ..
        } => {
            condition.iter().for_each(|e| f(e, depth));
            plan_exprs(left, depth, f);
            plan_exprs(right, depth + usize::from(*lateral), f);
        }
        Node::HashJoin {
            left,
            right,
            left_keys,
            right_keys,
            condition,
            ..
        } => {
            left_keys
                .iter()
                .chain(right_keys)
                .chain(condition)
                .for_each(|e| f(e, depth));
            plan_exprs(left, depth, f);
            plan_exprs(right, depth, f);
        }
        Node::MergeJoin {
            left,
            right,
            keys,
            condition,
            ..
        } => {
            let sides = keys.iter().flat_map(|key| [&key.left, &key.right]);
            sides.chain(condition).for_each(|e| f(e, depth));
            plan_exprs(left, depth, f);
            plan_exprs(right, depth, f);
        }
        Node::Aggregate {
            input,
            keys,
            aggregates,
            ..
        } => {
            keys.iter().for_each(|e| f(e, depth));
            for call in aggregates {
                call.args
                    .iter()
                    .chain(&call.filter)
                    .for_each(|e| f(e, depth));
                call.order.iter().for_each(|k| f(&k.expr, depth));
            }
            plan_exprs(input, depth, f);
        }
        Node::Sort { input, keys } => {
            keys.iter().for_each(|k| f(&k.expr, depth));
            plan_exprs(input, depth, f);
        }
        Node::Window { input, window } => {
            window.exprs(&mut |e| f(e, depth));
            plan_exprs(input, depth, f);
        }
        Node::Limit {
            input,
            limit,
            offset,
            ties,
        } => {
            let counts = limit.iter().chain(offset);
            counts.chain(ties).for_each(|e| f(e, depth));
            plan_exprs(input, depth, f);
        }
        Node::Distinct(input) => plan_exprs(input, depth, f),
        Node::DistinctOn { input, keys } => {
            keys.iter().for_each(|e| f(e, depth));
            plan_exprs(input, depth, f);
        }
        Node::SetOp { left, right, .. } => {
            plan_exprs(left, depth, f);
            plan_exprs(right, depth, f);
        }
        Node::With {
            definition,
            recursive,
            body,
            ..
        } => {
            plan_exprs(definition, depth, f);
            if let Some((term, _)) = recursive {
                plan_exprs(term, depth, f);
            }
            plan_exprs(body, depth, f);
        }
        Node::LockRows { input, recheck, .. } => {
            recheck.exprs().for_each(|e| f(e, depth));
            plan_exprs(input, depth, f);
        }
        // Changes stand at the top of a plan or in its WITH, and their rows are resolved when they are made.
        Node::Insert(insert) => plan_exprs(&insert.source, depth, f),
        Node::Update(update) => plan_exprs(&update.source, depth, f),
        Node::Delete(delete) => plan_exprs(&delete.source, depth, f),
        Node::Merge(merge) => plan_exprs(&merge.source, depth, f),
    }
}

/// The expressions that changes evaluate beside their sources; behind WITH too.
pub(crate) fn change_exprs(plan: &Plan, f: &mut dyn FnMut(&Expr)) {
    match &plan.node {
        Node::Insert(insert) => {
            insert.values.iter().for_each(&mut *f);
            insert.policies.iter().for_each(|check| f(&check.expr));
            insert.returning.iter().flatten().for_each(&mut *f);
            if let Some(update) = insert.conflict.as_ref().and_then(|c| c.update.as_ref()) {
                update.assignments.iter().for_each(|(_, e)| f(e));
                update.policies.iter().for_each(|check| f(&check.expr));
                update.wanted.exprs().for_each(f);
            }
        }
        Node::Update(update) => {
            update.assignments.iter().for_each(|(_, e)| f(e));
            update.policies.iter().for_each(|check| f(&check.expr));
            update.returning.iter().flatten().for_each(&mut *f);
            update.recheck.exprs().for_each(f);
        }
        Node::Delete(delete) => {
            delete.returning.iter().flatten().for_each(&mut *f);
            delete.recheck.exprs().for_each(f);
        }
        Node::Merge(merge) => {
            merge.on.exprs().for_each(&mut *f);
            for when in merge.matched.iter().chain(&merge.unmatched) {
                when.condition.iter().for_each(&mut *f);
                when.existing.iter().for_each(|check| f(&check.expr));
                match &when.action {
                    MergeAction::Update(update) => {
                        update.assignments.iter().for_each(|(_, e)| f(e));
                        update.policies.iter().for_each(|check| f(&check.expr));
                    }
                    MergeAction::Insert(insert) => {
                        insert.values.iter().for_each(&mut *f);
                        insert.policies.iter().for_each(|check| f(&check.expr));
                    }
                    MergeAction::Delete(_) | MergeAction::Nothing => {}
                }
            }
        }
        Node::With {
            definition, body, ..
        } => {
            change_exprs(definition, f);
            change_exprs(body, f);
        }
        _ => {}
    }
}

/// As [`plan_exprs`], to change them.
pub(crate) fn plan_exprs_mut(plan: &mut Plan, depth: usize, f: &mut dyn FnMut(&mut Expr, usize)) {
    match &mut plan.node {
        Node::OneRow | Node::CteScan { .. } => {}
        Node::Values(rows) => rows.iter_mut().flatten().for_each(|e| f(e, depth)),
        Node::SeqScan(scan) | Node::RowScan { scan, .. } => {
            scan.filter
                .condition_mut()
                .into_iter()
                .for_each(|e| f(e, depth));
        }
        Node::IndexScan { scan, range, .. } => {
            scan.filter
                .condition_mut()
                .into_iter()
                .for_each(|e| f(e, depth));
            range.exprs_mut().for_each(|e| f(e, depth));
        }
        Node::VirtualScan { filter, .. } => filter.iter_mut().for_each(|e| f(e, depth)),
        Node::FunctionScan { args, .. } | Node::RoutineScan { args, .. } => {
            args.iter_mut().for_each(|e| f(e, depth));
        }
        Node::ProjectSet { input, exprs } | Node::Project { input, exprs } => {
            exprs.iter_mut().for_each(|e| f(e, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::Filter { input, condition } => {
            f(condition, depth);
            plan_exprs_mut(input, depth, f);
        }
        Node::NestedLoop {
            left,
            right,
            condition,
            lateral,
            ..
        } => {
            condition.iter_mut().for_each(|e| f(e, depth));
            plan_exprs_mut(left, depth, f);
            plan_exprs_mut(right, depth + usize::from(*lateral), f);
        }
        Node::HashJoin {
            left,
            right,
            left_keys,
            right_keys,
            condition,
            ..
        } => {
            left_keys
                .iter_mut()
                .chain(right_keys)
                .chain(condition)
                .for_each(|e| f(e, depth));
            plan_exprs_mut(left, depth, f);
            plan_exprs_mut(right, depth, f);
        }
        Node::MergeJoin {
            left,
            right,
            keys,
            condition,
            ..
        } => {
            let sides = keys.iter_mut();
            let sides = sides.flat_map(|key| [&mut key.left, &mut key.right]);
            sides.chain(condition).for_each(|e| f(e, depth));
            plan_exprs_mut(left, depth, f);
            plan_exprs_mut(right, depth, f);
        }
        Node::Aggregate {
            input,
            keys,
            aggregates,
            ..
        } => {
            keys.iter_mut().for_each(|e| f(e, depth));
            for call in aggregates {
                call_exprs_mut(call, &mut |e| f(e, depth));
            }
            plan_exprs_mut(input, depth, f);
        }
        Node::Sort { input, keys } => {
            keys.iter_mut().for_each(|k| f(&mut k.expr, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::Window { input, window } => {
            window.exprs_mut(&mut |e| f(e, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::Limit {
            input,
            limit,
            offset,
            ties,
        } => {
            let counts = limit.iter_mut().chain(offset);
            counts.chain(ties).for_each(|e| f(e, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::Distinct(input) => plan_exprs_mut(input, depth, f),
        Node::DistinctOn { input, keys } => {
            keys.iter_mut().for_each(|e| f(e, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::SetOp { left, right, .. } => {
            plan_exprs_mut(left, depth, f);
            plan_exprs_mut(right, depth, f);
        }
        Node::With {
            definition,
            recursive,
            body,
            ..
        } => {
            plan_exprs_mut(definition, depth, f);
            if let Some((term, _)) = recursive {
                plan_exprs_mut(term, depth, f);
            }
            plan_exprs_mut(body, depth, f);
        }
        Node::LockRows { input, recheck, .. } => {
            recheck
                .condition_mut()
                .into_iter()
                .for_each(|e| f(e, depth));
            plan_exprs_mut(input, depth, f);
        }
        Node::Insert(insert) => plan_exprs_mut(&mut insert.source, depth, f),
        Node::Update(update) => plan_exprs_mut(&mut update.source, depth, f),
        Node::Delete(delete) => plan_exprs_mut(&mut delete.source, depth, f),
        Node::Merge(merge) => plan_exprs_mut(&mut merge.source, depth, f),
    }
}

/// Every expression of an aggregate call.
pub(crate) fn call_exprs_mut(call: &mut AggregateCall, f: &mut dyn FnMut(&mut Expr)) {
    call.args
        .iter_mut()
        .chain(&mut call.filter)
        .for_each(&mut *f);
    call.order.iter_mut().for_each(|k| f(&mut k.expr));
}

/// Column identities an expression refers to, its subqueries included; with duplicates.
pub(crate) fn column_ids(expr: &Expr, out: &mut Vec<ColId>) {
    match expr {
        Expr::Column(id, _) if *id >= COLUMN_BASE => out.push(*id),
        Expr::Subquery(subquery) => {
            plan_ids(&subquery.plan, out);
            children(expr, &mut |e| column_ids(e, out));
        }
        Expr::SubLink(link) => {
            link.foreign_ids(out);
            children(expr, &mut |e| column_ids(e, out));
        }
        _ => children(expr, &mut |e| column_ids(e, out)),
    }
}

/// Column identities of enclosing queries that a plan refers to.
pub(crate) fn plan_ids(plan: &Plan, out: &mut Vec<ColId>) {
    plan_exprs(plan, 0, &mut |e, _| column_ids(e, out));
}

/// Whether `test` holds anywhere in the expression, subqueries' plans included.
pub fn any(expr: &Expr, test: &dyn Fn(&Expr) -> bool) -> bool {
    if test(expr) {
        return true;
    }
    let mut found = false;
    children(expr, &mut |e| found = found || any(e, test));
    match expr {
        Expr::Subquery(subquery) => {
            plan_exprs(&subquery.plan, 0, &mut |e, _| found = found || any(e, test));
        }
        Expr::SubLink(link) => link.exprs(&mut |e| found = found || any(e, test)),
        _ => {}
    }
    found
}

/// Says the same of every row: it reads none of its columns and calls no volatile function. PostgreSQL's pseudoconstant
/// clause.
fn is_one_time(condition: &Expr) -> bool {
    /// Does an expression that lies `depth` rows below read a column of the row?
    fn reads(expr: &Expr, depth: usize) -> bool {
        let mut found = match expr {
            Expr::Column(..) => depth == 0,
            Expr::Outer { level, .. } => depth > 0 && *level == depth,
            Expr::Subquery(subquery) => {
                let mut within = false;
                plan_exprs(&subquery.plan, depth + 1, &mut |e, depth| {
                    within = within || reads(e, depth);
                });
                within
            }
            // Nobody knows before it is planned.
            Expr::SubLink(_) => true,
            _ => false,
        };
        children(expr, &mut |e| found = found || reads(e, depth));
        found
    }
    !reads(condition, 0) && !is_volatile(condition)
}

/// Can a filter over `input` be asked once, before there are rows? HAVING over grouping sets is not: as in PostgreSQL,
/// which neither moves nor copies it to WHERE there, rows are read and grouped first, and their errors told.
pub fn is_one_time_filter(input: &Plan, condition: &Expr) -> bool {
    let over_sets = match &input.node {
        Node::Aggregate { sets, .. } => sets.as_ref().is_some_and(|sets| sets.sets.len() > 1),
        _ => false,
    };
    !over_sets && is_one_time(condition)
}

/// Calls a volatile function somewhere.
pub fn is_volatile(expr: &Expr) -> bool {
    any(expr, &|e| match e {
        Expr::Call { function, .. } => {
            function.volatility == logstead_sql_func::Volatility::Volatile
        }
        // What subqueries in its expressions scan is asked when those are met.
        Expr::Subquery(subquery) => scans_routine(&subquery.plan),
        Expr::SubLink(link) => link.scans_routine(),
        _ => false,
    })
}

/// Locks rows that it gives; subqueries of its expressions are not asked.
pub fn locks_rows(plan: &Plan) -> bool {
    matches!(plan.node, Node::LockRows { .. })
        || crate::instrumentation::children(plan)
            .into_iter()
            .any(locks_rows)
}

/// Contains a subquery.
pub fn has_subquery(expr: &Expr) -> bool {
    any(expr, &|e| matches!(e, Expr::Subquery(_) | Expr::SubLink(_)))
}

/// Takes more than the row to be computed: reads a table, or calls a function that the session runs.
pub fn needs_more_than_row(expr: &Expr) -> bool {
    fn computes(plan: &Plan) -> bool {
        match &plan.node {
            Node::OneRow => true,
            Node::Project { input, .. } | Node::Limit { input, .. } => computes(input),
            _ => false,
        }
    }
    any(expr, &|e| match e {
        Expr::Subquery(subquery) => !computes(&subquery.plan),
        Expr::SubLink(_) => true,
        _ => false,
    })
}

/// Structural equality: the same value on every row. Subqueries are equal only to themselves, unless they are calls of
/// a function.
pub(crate) fn same(a: &Expr, b: &Expr) -> bool {
    equal(a, b, false)
}

/// The same expression as it is written: a volatile function that is called alike in ORDER BY and in the select list is
/// called once.
pub(crate) fn alike(a: &Expr, b: &Expr) -> bool {
    equal(a, b, true)
}

fn equal(a: &Expr, b: &Expr, volatile: bool) -> bool {
    let shape = match (a, b) {
        (Expr::Const(x, t), Expr::Const(y, u)) => {
            return t == u
                && match (x, y) {
                    (Datum::Null, Datum::Null) => true,
                    (Datum::Null, _) | (_, Datum::Null) => false,
                    // Equal is not the same: 1.0 and 1.00 are equal numbers with different texts.
                    _ => {
                        let (mut a, mut b) = (Vec::new(), Vec::new());
                        stored::encode(x, &mut a);
                        stored::encode(y, &mut b);
                        a == b
                    }
                };
        }
        (Expr::Column(x, _), Expr::Column(y, _)) | (Expr::Param(x, _), Expr::Param(y, _)) => {
            return x == y;
        }
        (
            Expr::Outer {
                level: l, index: x, ..
            },
            Expr::Outer {
                level: m, index: y, ..
            },
        ) => {
            return l == m && x == y;
        }
        (
            Expr::Call {
                function: f,
                args: x,
                ty: t,
            },
            Expr::Call {
                function: g,
                args: y,
                ty: u,
            },
        ) => {
            f.oid == g.oid
                && t == u
                && x.len() == y.len()
                && (volatile || f.volatility != logstead_sql_func::Volatility::Volatile)
        }
        (Expr::CastViaText(_, t), Expr::CastViaText(_, u))
        | (Expr::Relabel(_, t), Expr::Relabel(_, u))
        | (Expr::Coalesce(_, t), Expr::Coalesce(_, u))
        | (Expr::Array(_, t), Expr::Array(_, u)) => t == u,
        (
            Expr::CoerceTypmod {
                ty: t, explicit: x, ..
            },
            Expr::CoerceTypmod {
                ty: u, explicit: y, ..
            },
        ) => t == u && x == y,
        (Expr::Domain(_, d), Expr::Domain(_, e)) => d.declared == e.declared,
        (Expr::And(_), Expr::And(_))
        | (Expr::Or(_), Expr::Or(_))
        | (Expr::Not(_), Expr::Not(_)) => true,
        (Expr::IsNull(_, x), Expr::IsNull(_, y)) => x == y,
        (
            Expr::IsBool {
                value: v,
                negated: x,
                ..
            },
            Expr::IsBool {
                value: w,
                negated: y,
                ..
            },
        ) => v == w && x == y,
        (Expr::IsDistinct { negated: x, .. }, Expr::IsDistinct { negated: y, .. }) => x == y,
        (
            Expr::Case {
                arms: x,
                otherwise: o,
                ..
            },
            Expr::Case {
                arms: y,
                otherwise: p,
                ..
            },
        ) => x.len() == y.len() && o.is_some() == p.is_some(),
        (Expr::Extreme(x, _, _), Expr::Extreme(y, _, _)) => x == y,
        (Expr::NullIf { .. }, Expr::NullIf { .. })
        | (Expr::Subscript { .. }, Expr::Subscript { .. }) => true,
        (Expr::ArrayCompare { op: f, all: x, .. }, Expr::ArrayCompare { op: g, all: y, .. }) => {
            f.oid == g.oid && x == y
        }
        (
            Expr::InList {
                op: f, negated: x, ..
            },
            Expr::InList {
                op: g, negated: y, ..
            },
        ) => f.oid == g.oid && x == y,
        (Expr::Subquery(x), Expr::Subquery(y)) => {
            return Arc::ptr_eq(x, y) || same_call(x, y, volatile);
        }
        (Expr::SubLink(x), Expr::SubLink(y)) => return Arc::ptr_eq(x, y),
        _ => false,
    };
    if !shape {
        return false;
    }
    let mut left = Vec::new();
    let mut right = Vec::new();
    children(a, &mut |e| left.push(e));
    children(b, &mut |e| right.push(e));
    left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| equal(a, b, volatile))
}

/// Calls of one function, which the session runs, with the same arguments.
fn same_call(a: &Subquery, b: &Subquery, volatile: bool) -> bool {
    let (
        Node::RoutineScan {
            callee: f, args: x, ..
        },
        Node::RoutineScan {
            callee: g, args: y, ..
        },
    ) = (&a.plan.node, &b.plan.node)
    else {
        return false;
    };
    let scalar = |kind: &SubqueryKind| matches!(kind, SubqueryKind::Scalar);
    f.oid == g.oid
        && (volatile || !f.volatile)
        && scalar(&a.kind)
        && scalar(&b.kind)
        && a.ty == b.ty
        && x.len() == y.len()
        && { x.iter().zip(y) }.all(|(a, b)| equal(a, b, volatile))
}
