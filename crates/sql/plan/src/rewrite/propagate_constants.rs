//! What follows from equalities: a column that equals a column that equals a constant equals it, too.
//!
//! `a.x = b.x AND a.x = 5` is read as `a.x = 5 AND b.x = 5`: both items are narrowed, and nothing is left to be joined
//! by. PostgreSQL's equivalence classes do the same.

use crate::query::ColId;
use crate::query::expr::Expr;
use crate::query::plain_column;
use crate::walk;
use logstead_sql_func as func;
use logstead_sql_func::Comparison;
use logstead_sql_types::FunctionId;
use logstead_sql_types::value::Datum;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};

/// An equality by an operator over two operands.
struct Equality {
    operator: FunctionId,
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
pub(crate) fn constants(conditions: &mut Vec<Expr>) {
    if conditions.len() < 2 {
        return;
    }
    let read: Vec<Option<Equality>> = conditions.iter().map(read).collect();
    let has = |test: fn(&Side) -> bool| read.iter().flatten().any(|e| test(&e.right));
    if !has(|side| matches!(side, Side::Constant)) || !has(|side| matches!(side, Side::Column(_))) {
        return;
    }
    // By column and operator: the condition that says its value, and those that pass it on.
    let mut known: HashMap<(ColId, FunctionId), usize> = HashMap::new();
    let mut passing: HashMap<(ColId, FunctionId), Vec<usize>> = HashMap::new();
    let mut news = VecDeque::new();
    for (at, equality) in read.iter().enumerate() {
        let Some(equality) = equality else {
            continue;
        };
        let operator = equality.operator;
        match equality.right {
            Side::Constant => {
                let column = (equality.left, operator);
                if let Entry::Vacant(place) = known.entry(column) {
                    place.insert(at);
                    news.push_back(column);
                }
            }
            Side::Column(right) => {
                for column in [equality.left, right] {
                    passing.entry((column, operator)).or_default().push(at);
                }
            }
        }
    }
    let mut added: Vec<Expr> = Vec::new();
    let mut spent = vec![false; conditions.len()];
    // Each column is here once, so each equality is looked at twice at most.
    while let Some(column) = news.pop_front() {
        let Some(&from) = known.get(&column) else {
            continue;
        };
        for &at in passing.get(&column).map_or(&[][..], Vec::as_slice) {
            let Some(Equality {
                left,
                right: Side::Column(right),
                ..
            }) = &read[at]
            else {
                continue;
            };
            if spent[at] {
                continue;
            }
            let to = if *left == column.0 { *right } else { *left };
            match known.entry((to, column.1)) {
                // By the same constant: nothing is left to say. By two constants it stays.
                Entry::Occupied(other) => spent[at] = *other.get() == from,
                Entry::Vacant(place) => {
                    if let Some(new) = rewritten(&conditions[from], &conditions[at], to) {
                        added.push(new);
                        place.insert(from);
                        news.push_back((to, column.1));
                        spent[at] = true;
                    }
                }
            }
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
pub(crate) fn is_never(condition: &Expr) -> bool {
    matches!(condition, Expr::Const(Datum::Bool(false) | Datum::Null, _))
        && !walk::is_volatile(condition)
}
