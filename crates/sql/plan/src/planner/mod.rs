//! From the logical query tree to a physical plan.
//!
//! Owns: [`Planner`], the choice of scans, joins, orders and methods, and their costs. It takes what the binder has
//! made (`crate::query`), has the rewrite passes (`crate::rewrite`) change it where they ask for no costs, and turns
//! column identities into positions.
//!
//! Two passes ask for costs, and so stand here: [`reduce_joins`], [`decorrelation_choice`].
//!
//! Does not: resolve names, choose functions, or note permissions; all of that is bound.

pub mod build;
mod decorrelation_choice;
mod implicit_cast;
mod index_path;
mod join;
mod join_classes;
mod join_order;
mod merge_join;
mod modify_table;
mod reduce_joins;
pub(crate) mod scan;
mod select;
mod selectivity;
mod subquery;
mod windows;
mod with;

pub(crate) use scan::RequiredOrder;
pub(crate) use subquery::has_sublink;

use crate::query::expr::{SubLink, Subquery};
use crate::query::{BoundIndex, ColId, ColumnInfo, Ordered, QueryTree, RangeTable, RelSource};
use crate::rewrite::push_down_quals::push_down;
use crate::{Plan, PlanContext};
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_types::error::Result;
use std::sync::Arc;

/// Plans parts of one statement.
pub(crate) struct Planner<'p> {
    /// What planning reads.
    pub(crate) cx: &'p PlanContext<'p>,
    /// The statement's FROM items and columns.
    pub(crate) range: &'p mut RangeTable,
    /// Binds the expressions of an index, to compare conditions with them.
    pub(crate) bind_index: BindIndex,
    /// Subqueries that stand in several places, and what has been planned for them.
    pub(crate) planned: Vec<(Arc<SubLink>, Arc<Subquery>)>,
}

/// What [`Planner::bind_index`] is.
pub(crate) type BindIndex = fn(&Relation, &IndexDef, &PlanContext<'_>) -> Result<BoundIndex>;

impl Planner<'_> {
    /// Plans a whole query, whose columns have their types.
    pub(crate) fn plan_body(&mut self, body: QueryTree) -> Result<Plan> {
        self.range.enter(self.cx.session)?;
        let plan = self.plan_body_within(body);
        self.range.leave();
        plan
    }

    fn plan_body_within(&mut self, body: QueryTree) -> Result<Plan> {
        match body {
            QueryTree::Select(select) => select::plan_select(self, *select),
            QueryTree::Values(mut rows, columns) => {
                for expr in rows.iter_mut().flatten() {
                    self.plan_sublinks(expr)?;
                }
                Ok(build::values(rows, columns))
            }
            QueryTree::Project(input, mut exprs, columns) => {
                for expr in &mut exprs {
                    self.plan_sublinks(expr)?;
                }
                let plan = self.plan_body(*input)?;
                Ok(build::project(plan, exprs, columns))
            }
            QueryTree::Ordered(ordered) => {
                let mut ordered = *ordered;
                let mut result = Ok(());
                ordered.exprs_mut(&mut |expr| {
                    if result.is_ok() {
                        result = self.plan_sublinks(expr);
                    }
                });
                result?;
                let plan = self.plan_body(ordered.input)?;
                let plan = build::sort(plan, ordered.keys);
                let Ordered {
                    limit,
                    offset,
                    ties,
                    ..
                } = ordered;
                Ok(build::limit_with_ties(plan, limit, offset, ties))
            }
            QueryTree::With(definitions, body) => self.plan_with(definitions, *body),
            QueryTree::Change(change) => self.plan_change(*change),
            QueryTree::SetOps(first, rest) => {
                let mut plan = self.plan_body(*first)?;
                for branch in rest {
                    let right = self.plan_body(branch.body)?;
                    plan =
                        build::set_operation(branch.kind, branch.all, plan, right, &branch.types);
                }
                Ok(plan)
            }
        }
    }

    /// Plans a query in FROM under conditions over its row. Those that have gone in are taken out.
    pub(crate) fn plan_subquery(
        &mut self,
        rel: usize,
        conditions: &mut Vec<crate::query::expr::Expr>,
    ) -> Result<()> {
        let item = &mut self.range.rels[rel];
        let (first, width) = (item.first, item.width);
        let RelSource::Query(query) = &mut item.source else {
            return Ok(());
        };
        let Some(mut query) = query.take() else {
            return Ok(());
        };
        push_down(&mut query, (first, width), conditions);
        let plan = self.plan_body(query.body)?;
        self.range.rels[rel].source = RelSource::Plan(Some(Box::new(plan)));
        Ok(())
    }

    fn info(&self, id: ColId) -> &ColumnInfo {
        self.range.info(id)
    }
}
