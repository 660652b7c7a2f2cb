//! Operands that stand in several places of what an expression is bound to, and are computed once all the same.
//!
//! `CASE x WHEN a THEN .. WHEN b THEN ..` is bound to comparisons of x, NULLIF(x, y) to x and one comparison. It is no
//! matter how often x is computed as long as that gives the same each time. An operand that calls a volatile function
//! is computed in a row of its own.

use super::Binder;
use crate::query::QueryTree;
use crate::query::expr::Expr;
use crate::query::{From, Select};
use crate::walk;
use logstead_sql_types::error::Result;

impl Binder<'_> {
    /// What `build` makes of an operand that is to be computed once.
    pub(super) fn once(
        &mut self,
        operand: Expr,
        build: impl FnOnce(&mut Self, Expr) -> Result<Expr>,
    ) -> Result<Expr> {
        if !walk::is_volatile(&operand) {
            return build(self, operand);
        }
        let ty = operand.ty();
        let start = self.query_start();
        let (rel, first) = self.row_of(vec![operand])?;
        let value = build(self, Expr::Column(first, ty))?;
        let mut select = Select::default();
        select.from.items.push(From::Rel(rel));
        let output = self.made_output("", value);
        select.outputs.push(output);
        let body = self.settle_body(QueryTree::Select(Box::new(select)))?;
        let ty = body.types().first().map_or(ty, |of_value| *of_value);
        self.called_query(start, body, ty)
    }
}
