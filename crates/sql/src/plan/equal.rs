//! What follows from equalities: a column that equals a column that equals a constant equals it, too.
//!
//! `a.x = b.x AND a.x = 5` is read as `a.x = 5 AND b.x = 5`: both items are narrowed, and nothing is left to be joined by. PostgreSQL's equivalence classes do the
//! same.

use super::scan::plain_column;
use super::walk;
use crate::bind::ColId;
use crate::expr::Expr;
use crate::func::{self, Comparison};
use crate::value::Datum;

/// An equality by an operator over two operands.
struct Equality {
    operator: u32,
    left: ColId,
    right: Side,
}

enum Side {
    Column(ColId),
    Constant,
}

fn read(condition: &Expr) -> Option<Equality> {
    let Expr::Call { function, args, .. } = condition else {
        return None;
    };
    let (Comparison::Eq, left, right) = func::operator_class(function.oid)? else {
        return None;
    };
    // Only equality within one type is known to pass on.
    let [a, b] = args.as_slice() else {
        return None;
    };
    if left != right || a.ty().oid != b.ty().oid {
        return None;
    }
    let operator = function.oid;
    let is_constant =
        |e: &Expr| matches!(e, Expr::Const(value, _) if !value.is_null()) || is_parameter(e);
    match (plain_column(a), plain_column(b)) {
        (Some(a), Some(b)) if a != b => Some(Equality {
            operator,
            left: a,
            right: Side::Column(b),
        }),
        (Some(a), None) if is_constant(b) => Some(Equality {
            operator,
            left: a,
            right: Side::Constant,
        }),
        _ => None,
    }
}

fn is_parameter(expr: &Expr) -> bool {
    matches!(expr, Expr::Param(..))
}

/// Adds what follows to conditions that all have to hold, and takes out what then says nothing more.
pub(super) fn constants(conditions: &mut Vec<Expr>) {
    let read: Vec<Option<Equality>> = conditions.iter().map(read).collect();
    let has = |test: fn(&Side) -> bool| read.iter().flatten().any(|e| test(&e.right));
    if !has(|side| matches!(side, Side::Constant)) || !has(|side| matches!(side, Side::Column(_))) {
        return;
    }
    // Column, operator, and the condition that says its value.
    let mut known: Vec<(ColId, u32, usize)> = Vec::new();
    for (at, equality) in read.iter().enumerate() {
        if let Some(Equality {
            operator,
            left,
            right: Side::Constant,
        }) = equality
        {
            known.push((*left, *operator, at));
        }
    }
    let mut added: Vec<Expr> = Vec::new();
    let mut spent = vec![false; conditions.len()];
    loop {
        let mut grown = false;
        for (at, equality) in read.iter().enumerate() {
            let Some(Equality {
                operator,
                left,
                right: Side::Column(right),
            }) = equality
            else {
                continue;
            };
            if spent[at] {
                continue;
            }
            let find = |column: ColId| {
                known
                    .iter()
                    .find(|(id, op, _)| *id == column && op == operator)
                    .copied()
            };
            let (from, to) = match (find(*left), find(*right)) {
                (Some(found), None) => (found, *right),
                (None, Some(found)) => (found, *left),
                // By the same constant: nothing is left to say. By two constants it stays.
                (Some(a), Some(b)) if a.2 == b.2 => {
                    spent[at] = true;
                    continue;
                }
                _ => continue,
            };
            let Some(new) = rewritten(&conditions[from.2], &conditions[at], to) else {
                continue;
            };
            added.push(new);
            known.push((to, *operator, from.2));
            spent[at] = true;
            grown = true;
        }
        if !grown {
            break;
        }
    }
    let mut at = 0;
    conditions.retain(|_| {
        at += 1;
        !spent[at - 1]
    });
    conditions.append(&mut added);
}

/// `column = constant` of one condition with the column of another.
fn rewritten(constant: &Expr, joining: &Expr, column: ColId) -> Option<Expr> {
    let (Expr::Call { function, args, ty }, Expr::Call { args: pair, .. }) = (constant, joining)
    else {
        return None;
    };
    let column = pair.iter().find(|e| plain_column(e) == Some(column))?;
    let value = args.get(1)?;
    Some(Expr::Call {
        function,
        args: vec![column.clone(), value.clone()],
        ty: *ty,
    })
}

/// Whether a condition is never true, whatever the row.
pub(super) fn is_never(condition: &Expr) -> bool {
    matches!(condition, Expr::Const(Datum::Bool(false) | Datum::Null, _))
        && !walk::is_volatile(condition)
}
