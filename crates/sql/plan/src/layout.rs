//! Which column identity stands where in a row.

use crate::Plan;
use crate::query::expr::{COLUMN_BASE, ColId, Expr, Subquery, SubqueryKind};
use crate::query::walk::{children_mut, plan_exprs_mut};
use std::sync::Arc;

/// The identities of a row's columns, in order.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    ids: Vec<ColId>,
}

impl Layout {
    /// A row of these columns, in this order.
    pub fn new(ids: Vec<ColId>) -> Layout {
        Layout { ids }
    }

    /// Its columns.
    pub fn ids(&self) -> &[ColId] {
        &self.ids
    }

    /// Has it the column?
    pub fn contains(&self, id: ColId) -> bool {
        self.ids.contains(&id)
    }

    /// Where a column stands.
    pub fn position(&self, id: ColId) -> Option<usize> {
        self.ids.iter().position(|&i| i == id)
    }

    /// The row of a join.
    pub fn concat(&self, right: &Layout) -> Layout {
        let mut ids = Vec::with_capacity(self.ids.len() + right.ids.len());
        ids.extend_from_slice(&self.ids);
        ids.extend_from_slice(&right.ids);
        Layout { ids }
    }

    /// Turns identities into positions; what the row does not have stays for an enclosing row.
    pub(crate) fn resolve(&self, mut expr: Expr) -> Expr {
        resolve_at(&mut expr, self, 0);
        expr
    }
}

/// Replaces column identities by what `layout` says: position `depth` rows out. Unknown ones stay.
pub(crate) fn resolve_at(expr: &mut Expr, layout: &Layout, depth: usize) {
    match expr {
        Expr::Column(id, ty) if *id >= COLUMN_BASE => {
            if let Some(index) = layout.position(*id) {
                *expr = if depth == 0 {
                    Expr::Column(index, *ty)
                } else {
                    Expr::Outer {
                        level: depth,
                        index,
                        ty: *ty,
                    }
                };
            }
        }
        Expr::Subquery(subquery) => {
            // Shared subqueries are copied before they take positions of one particular row.
            let subquery: &mut Subquery = Arc::make_mut(subquery);
            if let SubqueryKind::Compare { left, .. } = &mut subquery.kind {
                left.iter_mut().for_each(|e| resolve_at(e, layout, depth));
            }
            if !subquery.uncorrelated {
                resolve_plan(&mut subquery.plan, layout, depth + 1);
            }
        }
        _ => children_mut(expr, &mut |e| resolve_at(e, layout, depth)),
    }
}

/// As [`resolve_at`] in a whole plan that is run for each row of `layout` (`depth` from 1).
pub(crate) fn resolve_plan(plan: &mut Plan, layout: &Layout, depth: usize) {
    plan_exprs_mut(plan, depth, &mut |e, depth| resolve_at(e, layout, depth));
}
