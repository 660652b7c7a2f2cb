//! What expressions of the logical tree are.

use super::{COLUMN_BASE, ColId};
use crate::expr::Expr;
use logstead_sql_types::value::oid;

/// The column identity behind binary-compatible casts.
pub(crate) fn plain_column(expr: &Expr) -> Option<ColId> {
    match expr {
        Expr::Column(id, _) if *id >= COLUMN_BASE => Some(*id),
        Expr::Relabel(inner, ty) if same_bytes(inner.ty().oid, ty.oid) => plain_column(inner),
        _ => None,
    }
}

/// Types whose values have the same bytes and order.
pub(crate) fn same_bytes(a: u32, b: u32) -> bool {
    a == b || (matches!(a, oid::TEXT | oid::VARCHAR) && matches!(b, oid::TEXT | oid::VARCHAR))
}

/// The conditions that AND joins.
pub(crate) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(all) => all.into_iter().for_each(|e| conjuncts(e, out)),
        other => out.push(other),
    }
}
