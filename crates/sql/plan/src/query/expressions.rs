//! What expressions of the logical tree are.

use super::walk;
use super::{COLUMN_BASE, ColId};
use crate::query::expr::{Expr, Subquery, SubqueryKind};
use logstead_sql_types::TypeId;
use logstead_sql_types::value::oid;
use std::sync::Arc;

/// The column identity behind binary-compatible casts.
pub(crate) fn plain_column(expr: &Expr) -> Option<ColId> {
    match expr {
        Expr::Column(id, _) if *id >= COLUMN_BASE => Some(*id),
        Expr::Relabel(inner, ty) if same_bytes(inner.ty().oid, ty.oid) => plain_column(inner),
        _ => None,
    }
}

/// Types whose values have the same bytes and order.
pub(crate) fn same_bytes(a: TypeId, b: TypeId) -> bool {
    a == b || (matches!(a, oid::TEXT | oid::VARCHAR) && matches!(b, oid::TEXT | oid::VARCHAR))
}

/// The conditions that AND joins.
pub(crate) fn conjuncts(expr: Expr, out: &mut Vec<Expr>) {
    match expr {
        Expr::And(all) => all.into_iter().for_each(|e| conjuncts(e, out)),
        other => out.push(other),
    }
}

/// The one subquery of a condition, if that is scalar.
pub(crate) fn the_subquery(condition: &Expr) -> Option<&Arc<Subquery>> {
    let mut found = Vec::new();
    subqueries(condition, &mut found);
    match found.as_slice() {
        [only] if matches!(only.kind, SubqueryKind::Scalar) => Some(only),
        _ => None,
    }
}

fn subqueries<'e>(expr: &'e Expr, found: &mut Vec<&'e Arc<Subquery>>) {
    if let Expr::Subquery(subquery) = expr {
        found.push(subquery);
    }
    walk::children(expr, &mut |child| subqueries(child, found));
}

/// The expressions of an index over the table's full row (all attribute positions).
pub struct BoundIndex {
    /// One per key column.
    pub keys: Vec<Expr>,
    /// WHERE.
    pub predicate: Option<Expr>,
}
