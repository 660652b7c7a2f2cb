//! Which column identity stands where in a row.

use crate::expr::Expr;
use crate::query::ColId;

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
        super::walk::resolve_at(&mut expr, self, 0);
        expr
    }
}
