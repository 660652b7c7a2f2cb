//! Which conditions no row passes that an outer join has filled with NULLs (PostgreSQL's `find_nonnullable_rels`).

use super::ColId;
use super::expr::Expr;

/// Whether a condition is never true when all columns of `filled` are NULL.
pub(crate) fn refuses_null(condition: &Expr, filled: &[(ColId, ColId)]) -> bool {
    let strict_on = |expr: &Expr| null_in_null_out(expr, filled);
    match condition {
        Expr::Call { function, args, .. } => function.strict && args.iter().any(strict_on),
        Expr::IsNull(arg, true) => strict_on(arg),
        Expr::InList {
            left,
            negated: false,
            ..
        } => strict_on(left),
        Expr::ArrayCompare {
            left, all: false, ..
        } => strict_on(left),
        Expr::And(all) => all.iter().any(|c| refuses_null(c, filled)),
        Expr::Or(all) => all.iter().all(|c| refuses_null(c, filled)),
        Expr::Column(id, _) => filled.iter().any(|(from, to)| (*from..*to).contains(id)),
        Expr::IsBool {
            arg,
            value: Some(_),
            negated: false,
        } => strict_on(arg),
        _ => false,
    }
}

/// Whether an expression is NULL when all columns of `filled` are.
fn null_in_null_out(expr: &Expr, filled: &[(ColId, ColId)]) -> bool {
    match expr {
        Expr::Column(id, _) => filled.iter().any(|(from, to)| (*from..*to).contains(id)),
        Expr::Call { function, args, .. } => {
            function.strict && args.iter().any(|a| null_in_null_out(a, filled))
        }
        Expr::Relabel(arg, _) | Expr::CastViaText(arg, _) | Expr::CoerceTypmod { arg, .. } => {
            null_in_null_out(arg, filled)
        }
        _ => false,
    }
}
