//! Whether a plan gives the same rows however often an enclosing loop starts it over.

use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Node, Plan, walk};

/// True when `plan` refers to no row outside of itself and reads no WITH query (the working table of a recursive one
/// changes): what was made of its rows may be kept when it is started over.
pub(crate) fn is_rescan_invariant(plan: &Plan) -> bool {
    !reads_cte(plan) && !refers_above(plan, 0)
}

/// The same of a plan whose rows are kept by keys, which are made of them.
pub(crate) fn is_rescan_invariant_by(plan: &Plan, keys: &[Expr]) -> bool {
    is_rescan_invariant(plan) && !keys.iter().any(|key| expr_refers_above(key, 0))
}

/// Whether an expression of `plan`, which lies `depth` rows below the one asked about, refers to a row above that.
fn refers_above(plan: &Plan, depth: usize) -> bool {
    let mut found = false;
    walk::plan_exprs(plan, depth, &mut |expr, depth| {
        found = found || expr_refers_above(expr, depth);
    });
    found
}

fn expr_refers_above(expr: &Expr, depth: usize) -> bool {
    match expr {
        Expr::Outer { level, .. } if *level > depth => return true,
        // A subquery's plan is one row deeper; a WITH query inside of it is none of the reader's.
        Expr::Subquery(subquery)
            if refers_above(&subquery.plan, depth + 1) || reads_cte(&subquery.plan) =>
        {
            return true;
        }
        _ => {}
    }
    let mut found = false;
    walk::children(expr, &mut |child| {
        found = found || expr_refers_above(child, depth)
    });
    found
}

/// As [`reads_cte`], also in the subqueries of its expressions and in theirs.
pub(crate) fn reads_cte_deep(plan: &Plan) -> bool {
    let mut found = reads_cte(plan);
    walk::plan_exprs(plan, 0, &mut |expr, _| {
        found = found
            || walk::any(
                expr,
                &|e| matches!(e, Expr::Subquery(subquery) if reads_cte(&subquery.plan)),
            );
    });
    found
}

/// Whether `plan` reads a WITH query, its own or another's.
pub(crate) fn reads_cte(plan: &Plan) -> bool {
    matches!(plan.node, Node::CteScan { .. })
        || logstead_sql_plan::instrumentation::children(plan)
            .into_iter()
            .any(reads_cte)
}
