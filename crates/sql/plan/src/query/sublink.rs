//! Subqueries of expressions, before they are planned (PostgreSQL's `SubLink`).
//!
//! Owns: [`SubLink`], a query together with the FROM items and column identities that were made while it was bound. So
//! an expression can be copied and moved, and its subqueries go along.
//!
//! Invariants:
//! - The numbers of FROM items in [`SubLink::body`] are those of its own items ([`SubLink::rels`]), counted from
//!   [`SubLink::first_rel`]. Columns of other queries are named by identity alone.
//! - No plan holds one: the planner puts a [`Subquery`](crate::query::expr::Subquery) in its place
//!   (`planner::subquery`).
//!
//! Does not: decide how the subquery is computed. A pass may make a join of it before it is planned.

use super::expression_walk::{FromItems, body_exprs_mut};
use super::walk;
use super::{ColIdRanges, QueryTree, Rel};
use crate::query::expr::{ColId, Expr, SubqueryKind};
use logstead_sql_types::value::SqlType;

/// A subquery of an expression; see the module's documentation.
#[derive(Clone)]
pub struct SubLink {
    pub(crate) body: QueryTree,
    /// Its own FROM items, those of queries within it included.
    pub(crate) rels: Vec<Rel>,
    /// The number by which the body knows the first of them.
    pub(crate) first_rel: usize,
    /// Its own column identities.
    pub(crate) own: ColIdRanges,
    /// What is asked of it.
    pub(crate) kind: SubqueryKind,
    /// Result type of the expression.
    pub(crate) ty: SqlType,
    /// As [`Subquery::shared`](crate::query::expr::Subquery::shared).
    pub(crate) shared: usize,
    /// As [`Subquery::call`](crate::query::expr::Subquery::call).
    pub(crate) call: bool,
    /// It is run for every row, even if it refers to none.
    pub(crate) each_row: bool,
}

impl SubLink {
    /// Every expression of its query. Operands that it is compared with are the expression's own.
    pub(crate) fn exprs(&self, f: &mut dyn FnMut(&Expr)) {
        let items = FromItems {
            rels: &self.rels,
            first_rel: self.first_rel,
        };
        items.body(&self.body, f);
    }

    /// The same, to change them.
    pub(crate) fn exprs_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        for rel in &mut self.rels {
            rel.exprs_mut(f);
        }
        body_exprs_mut(&mut self.body, f);
    }

    /// Column identities of other queries that it refers to; with duplicates.
    pub(crate) fn foreign_ids(&self, out: &mut Vec<ColId>) {
        let mut all = Vec::new();
        self.exprs(&mut |expr| walk::column_ids(expr, &mut all));
        out.extend(all.into_iter().filter(|id| !self.own.contains(*id)));
    }

    /// Does its query depend on no row of another one, and may so be run once?
    pub(crate) fn is_uncorrelated(&self) -> bool {
        let mut foreign = Vec::new();
        self.foreign_ids(&mut foreign);
        !self.each_row && foreign.is_empty()
    }

    /// Calls it a function that the session runs, in FROM or for an aggregate? Subqueries of its expressions are not
    /// asked.
    pub(crate) fn scans_routine(&self) -> bool {
        let items = FromItems {
            rels: &self.rels,
            first_rel: self.first_rel,
        };
        self.any_plan(&walk::scans_routine)
            || items.any_user_aggregate(&self.body, &walk::runs_routine)
    }

    /// Does `test` hold for a part that is a plan already?
    fn any_plan(&self, test: &dyn Fn(&crate::Plan) -> bool) -> bool {
        self.rels.iter().any(|rel| rel.any_plan(test))
    }
}
