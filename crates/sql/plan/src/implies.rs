//! Does a query's WHERE imply a partial index's predicate?
//!
//! Owns a small prover in the spirit of PostgreSQL's predtest: it says yes only if every row that makes all the
//! conditions true makes the predicate true. "No" means that it found no proof.
//!
//! The rules, for conditions C that are all true and a predicate P:
//! 1. P is one of C, or an AND of what C implies, or an OR of which C implies an arm.
//! 2. A condition is an OR (IN and = ANY of constants are ORs of equalities): each arm, with the rest of C, implies P.
//! 3. `x op1 c1` implies `x op2 c2` if the constants say so: x > 10 implies x > 5, x = 7 implies x <> 8.
//! 4. `x IS NOT NULL` follows from a condition that cannot be true where x is NULL: a strict operator or function over
//!    x.

use super::walk;
use crate::query::expr::Expr;
use crate::query::same_bytes;
use logstead_sql_func as func;
use logstead_sql_func::{Comparison, Function};
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{Datum, SqlType, compare_as, oid};
use std::cmp::Ordering;

/// Elements of a list that rule 2 looks at.
const ARMS_MAX: usize = 100;
/// Nesting of rule 2.
const DEPTH_MAX: usize = 3;

/// Whether the conditions imply every part of the predicate.
pub(crate) fn all(conditions: &[Expr], predicate: &[Expr]) -> bool {
    let mut clauses = Vec::new();
    conditions.iter().for_each(|c| split(c, &mut clauses));
    predicate.iter().all(|p| proved(&clauses, p, 0))
}

/// The parts that AND joins.
fn split<'e>(expr: &'e Expr, out: &mut Vec<&'e Expr>) {
    match expr {
        Expr::And(all) => all.iter().for_each(|e| split(e, out)),
        other => out.push(other),
    }
}

fn proved(clauses: &[&Expr], predicate: &Expr, depth: usize) -> bool {
    let at_once = match predicate {
        Expr::And(all) => return all.iter().all(|p| proved(clauses, p, depth)),
        Expr::Or(any) => any.iter().any(|p| proved(clauses, p, depth)),
        _ => false,
    };
    if at_once || clauses.iter().any(|c| atom(c, predicate)) {
        return true;
    }
    depth < DEPTH_MAX
        && clauses
            .iter()
            .any(|c| by_arms(c, clauses, predicate, depth))
}

/// Rule 2.
fn by_arms(clause: &Expr, clauses: &[&Expr], predicate: &Expr, depth: usize) -> bool {
    if let Expr::Or(arms) = clause {
        return arms.len() <= ARMS_MAX
            && arms.iter().all(|arm| {
                let others = clauses.iter().filter(|c| !std::ptr::eq(**c, clause));
                let mut with: Vec<&Expr> = others.copied().collect();
                split(arm, &mut with);
                proved(&with, predicate, depth + 1)
            });
    }
    let Some(arms) = equalities(clause) else {
        return false;
    };
    arms.iter().all(|arm| proved(&[arm], predicate, depth + 1))
}

/// A list of constants as the equalities that it stands for.
fn equalities(clause: &Expr) -> Option<Vec<Expr>> {
    let equal = |left: &Expr, op: &'static Function, item: Expr| Expr::Call {
        function: op,
        args: vec![left.clone(), item],
        ty: SqlType::of(oid::BOOL),
    };
    let is_equality = |op: &'static Function| {
        matches!(func::operator_class(op.oid), Some((Comparison::Eq, _, _)))
    };
    match clause {
        Expr::InList {
            left,
            list,
            op,
            negated: false,
        } if is_equality(op) && list.len() <= ARMS_MAX => {
            let constant = list.iter().all(|e| matches!(e, Expr::Const(..)));
            constant.then(|| list.iter().map(|e| equal(left, op, e.clone())).collect())
        }
        Expr::ArrayCompare {
            left,
            array,
            op,
            all: false,
        } if is_equality(op) => match array.as_ref() {
            Expr::Const(Datum::Array(value), ty) if value.items.len() <= ARMS_MAX => {
                let element = logstead_sql_types::value::info::element_of(ty.oid)?;
                let items = value.items.iter();
                let item = |d: &Datum| Expr::Const(d.clone(), SqlType::of(element));
                Some(items.map(|d| equal(left, op, item(d))).collect())
            }
            Expr::Array(items, _) if items.len() <= ARMS_MAX => {
                let constant = items.iter().all(|e| matches!(e, Expr::Const(..)));
                constant.then(|| items.iter().map(|e| equal(left, op, e.clone())).collect())
            }
            _ => None,
        },
        _ => None,
    }
}

/// One condition against one predicate without looking into ANDs and ORs.
fn atom(clause: &Expr, predicate: &Expr) -> bool {
    if walk::same(clause, predicate) {
        return true;
    }
    match predicate {
        Expr::IsNull(x, true) => not_true_of_null(clause, x),
        Expr::Not(inner) => match (clause, inner.as_ref()) {
            (_, Expr::IsNull(x, false)) => not_true_of_null(clause, x),
            // NOT b from b = false.
            _ => is_truth(clause, inner, false),
        },
        _ => {
            is_truth(clause, predicate, true)
                || is_truth_of(clause, predicate)
                || by_constants(clause, predicate)
                || list_holds(clause, predicate)
        }
    }
}

/// The clause says that boolean `x` is `value`: `x = true`, `x IS TRUE`.
fn is_truth(clause: &Expr, x: &Expr, value: bool) -> bool {
    match clause {
        Expr::IsBool {
            arg,
            value: Some(v),
            negated: false,
        } => *v == value && walk::same(arg, x),
        _ => match comparison(clause) {
            Some((Comparison::Eq, left, Datum::Bool(v), _)) => *v == value && walk::same(left, x),
            _ => false,
        },
    }
}

/// The predicate says `x = true` or `x IS TRUE` and the clause is x, or NOT x for false.
fn is_truth_of(clause: &Expr, predicate: &Expr) -> bool {
    match clause {
        Expr::Not(inner) => is_truth(predicate, inner, false),
        _ => is_truth(predicate, clause, true),
    }
}

/// `x op constant` as (op, x, constant, type of x).
fn comparison(expr: &Expr) -> Option<(Comparison, &Expr, &Datum, TypeId)> {
    let Expr::Call { function, args, .. } = expr else {
        return None;
    };
    let (comparison, left_type, right_type) = func::operator_class(function.oid)?;
    match args.as_slice() {
        [x, Expr::Const(value, _)] if !value.is_null() => {
            Some((comparison, bare(x), value, left_type))
        }
        [Expr::Const(value, _), x] if !value.is_null() => {
            Some((comparison.commuted(), bare(x), value, right_type))
        }
        _ => None,
    }
}

fn bare(expr: &Expr) -> &Expr {
    match expr {
        Expr::Relabel(inner, ty) if same_bytes(inner.ty().oid, ty.oid) => bare(inner),
        other => other,
    }
}

/// Rule 3.
fn by_constants(clause: &Expr, predicate: &Expr) -> bool {
    let (Some((op, x, known, ty)), Some((wanted, y, bound, other))) =
        (comparison(clause), comparison(predicate))
    else {
        return false;
    };
    if !walk::same(x, y) {
        return false;
    }
    let Some(order) = ordered(known, bound, ty, other) else {
        return false;
    };
    use Comparison::{Eq, Ge, Gt, Le, Lt, Ne};
    match (op, wanted) {
        (Eq, Eq) | (Ne, Ne) => order.is_eq(),
        (Eq, Ne) => order.is_ne(),
        (Eq, Lt) => order.is_lt(),
        (Eq, Le) => order.is_le(),
        (Eq, Gt) => order.is_gt(),
        (Eq, Ge) => order.is_ge(),
        (Lt, Lt | Le | Ne) => order.is_le(),
        (Le, Le) => order.is_le(),
        (Le, Lt | Ne) => order.is_lt(),
        (Gt, Gt | Ge | Ne) => order.is_ge(),
        (Ge, Ge) => order.is_ge(),
        (Ge, Gt | Ne) => order.is_gt(),
        _ => false,
    }
}

/// How two constants that one value is compared with compare, if they are of one kind.
fn ordered(a: &Datum, b: &Datum, a_type: TypeId, b_type: TypeId) -> Option<Ordering> {
    let whole = |d: &Datum| match d {
        Datum::Int2(v) => Some(i64::from(*v)),
        Datum::Int4(v) => Some(i64::from(*v)),
        Datum::Int8(v) => Some(*v),
        _ => None,
    };
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        (None, None)
            if same_bytes(a_type, b_type)
                && std::mem::discriminant(a) == std::mem::discriminant(b) =>
        {
            Some(compare_as(a_type, a, b))
        }
        _ => None,
    }
}

/// The predicate is a list of constants and the clause an equality with one of them.
fn list_holds(clause: &Expr, predicate: &Expr) -> bool {
    let (Some((Comparison::Eq, ..)), Some(arms)) = (comparison(clause), equalities(predicate))
    else {
        return false;
    };
    arms.iter().any(|arm| by_constants(clause, arm))
}

/// Rule 4: the clause cannot be true where `x` is NULL.
fn not_true_of_null(clause: &Expr, x: &Expr) -> bool {
    match clause {
        // `f(x) IS NOT NULL` with a strict f.
        Expr::IsNull(arg, true) => null_of_null(arg, x),
        Expr::IsBool {
            arg,
            value: Some(_),
            negated: false,
        } => null_of_null(arg, x),
        // An empty list makes ALL true of anything.
        Expr::InList {
            left,
            negated: false,
            op,
            ..
        }
        | Expr::ArrayCompare {
            left,
            all: false,
            op,
            ..
        } => op.strict && null_of_null(left, x),
        _ => null_of_null(clause, x),
    }
}

/// The expression is NULL where `x` is.
fn null_of_null(expr: &Expr, x: &Expr) -> bool {
    if walk::same(bare(expr), bare(x)) {
        return true;
    }
    match expr {
        Expr::Call { function, args, .. } => {
            function.strict && args.iter().any(|arg| null_of_null(arg, x))
        }
        Expr::Relabel(inner, _)
        | Expr::CastViaText(inner, _)
        | Expr::CoerceTypmod { arg: inner, .. }
        | Expr::Not(inner) => null_of_null(inner, x),
        _ => false,
    }
}
