//! Subqueries that GROUP BY names again: `SELECT (SELECT 1) ... GROUP BY ROLLUP ((SELECT 1))`.
//!
//! Two bound subqueries are never told to be equal, so in a block that groups by one, a text that has been bound before
//! is what it was then: the output, the key, HAVING and ORDER BY have one subquery. A volatile one is shared by GROUP
//! BY alone, since elsewhere each is asked for itself.

use super::{Binder, Clause};
use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_parse::ast::{self, Expr as Ast, Visit, Visitor};
use logstead_sql_types::error::Result;
use std::ops::ControlFlow;

impl Binder<'_> {
    /// Binds an expression that is more than a name or a literal.
    pub(super) fn compound(&mut self, expr: &Ast) -> Result<Expr> {
        let frame = self.frames.last();
        let shares = frame.is_some_and(|frame| frame.groups_by_subquery) && is_subquery(expr);
        let Some(frame) = frame.filter(|_| shares) else {
            return self.compound_anew(expr);
        };
        let groups = matches!(frame.clause, Clause::GroupBy);
        let known = frame.subqueries.iter().find(|(text, _)| text == expr);
        if let Some((_, known)) = known
            && (groups || !walk::is_volatile(known))
        {
            return Ok(known.clone());
        }
        let bound = self.compound_anew(expr)?;
        let frame = self.frame()?;
        frame.subqueries.push((expr.clone(), bound.clone()));
        Ok(bound)
    }
}

/// Does GROUP BY name a subquery?
pub(super) fn groups_by_subquery(group_clause: &[ast::GroupingItem]) -> bool {
    let mut items = group_clause.iter();
    items.any(|item| item.visit(&mut Finds).is_break())
}

struct Finds;

impl Visitor for Finds {
    type Break = ();

    fn pre_visit_expr(&mut self, expr: &Ast) -> ControlFlow<()> {
        match is_subquery(expr) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

fn is_subquery(expr: &Ast) -> bool {
    matches!(expr, Ast::SubLink(_))
}
