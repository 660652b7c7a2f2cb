//! Subqueries of expressions: [`SubLink`]s.
//!
//! Rule: what is part of a query block keeps its subqueries as they are bound, and they are planned with the block. An
//! expression that stands alone, or asks something of a row that is written (checks, policies, ON CONFLICT, RETURNING
//! of INSERT), has no block around it: its subqueries are planned at once.

use super::Binder;
use crate::layout::{Layout, resolve_at};
use crate::query::QueryTree;
use crate::query::expr::{COLUMN_BASE, Expr, SubLink, SubqueryKind};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::SqlType;
use std::sync::Arc;

/// Where a subquery begins: FROM items and column identities from here on are its own.
#[derive(Clone, Copy)]
pub(super) struct QueryStart {
    rels: usize,
    columns: usize,
}

/// What an expression asks of a subquery, and how often it is run.
pub(super) struct SubLinkContext {
    pub(super) kind: SubqueryKind,
    /// Result type of the expression.
    pub(super) ty: SqlType,
    /// Not 0: copies with this number are one subquery, which is run once for a row.
    pub(super) shared: usize,
    /// It stands for the call of a function.
    pub(super) call: bool,
    /// It is run for every row if something in it is volatile, even if it refers to none.
    pub(super) each_row_if_volatile: bool,
}

impl SubLinkContext {
    /// A subquery as a client writes it.
    pub(super) fn plain(kind: SubqueryKind, ty: SqlType) -> SubLinkContext {
        SubLinkContext {
            kind,
            ty,
            shared: 0,
            call: false,
            each_row_if_volatile: false,
        }
    }
}

impl Binder<'_> {
    /// A subquery begins.
    pub(super) fn query_start(&self) -> QueryStart {
        QueryStart {
            rels: self.range.rels.len(),
            columns: COLUMN_BASE + self.range.columns.len(),
        }
    }

    /// A subquery of an expression, of which all that was made since `start` is part. Its outputs have their types.
    pub(super) fn sublink(
        &mut self,
        start: QueryStart,
        body: QueryTree,
        of: SubLinkContext,
    ) -> Result<Expr> {
        let mut expr = Expr::SubLink(Arc::new(SubLink {
            body,
            rels: self.range.rels.split_off(start.rels),
            first_rel: start.rels,
            own: (start.columns..COLUMN_BASE + self.range.columns.len()).into(),
            kind: of.kind,
            ty: of.ty,
            shared: of.shared,
            call: of.call,
            each_row: false,
        }));
        self.range.has_sublinks = true;
        if of.each_row_if_volatile
            && crate::query::walk::is_volatile(&expr)
            && let Expr::SubLink(link) = &mut expr
        {
            Arc::make_mut(link).each_row = true;
        }
        if !self.in_query {
            self.planner().plan_sublinks(&mut expr)?;
        }
        Ok(expr)
    }

    /// Puts an expression that stands alone over a row: its columns become positions there.
    pub(super) fn put_over_row(&mut self, expr: &mut Expr, layout: &Layout) -> Result<()> {
        // What views and functions have brought along may hold subqueries of their blocks.
        self.planner().plan_sublinks(expr)?;
        resolve_at(expr, layout, 0);
        Ok(())
    }

    /// Binds a part of a query block: its subqueries are planned with the block.
    pub(super) fn within_query<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.in_query, true);
        let bound = bind(self);
        self.in_query = before;
        bound
    }

    /// Binds what stands in no query block.
    pub(super) fn outside_query<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = std::mem::replace(&mut self.in_query, false);
        let bound = bind(self);
        self.in_query = before;
        bound
    }
}
