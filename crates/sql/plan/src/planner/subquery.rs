//! Subqueries of expressions: from [`SubLink`] to [`Subquery`] (PostgreSQL's `SS_process_sublinks`).
//!
//! Rule: a block's subqueries are planned before the block is, when rewrite passes have made joins of those that may be
//! joins. So a passage of the planner that looks at expressions meets planned ones only.
//!
//! A subquery brings its FROM items along. They go behind all others of the range table, and stay there: columns of the
//! block around it and of the subquery have their items at hand while either is planned.

use crate::planner::Planner;
use crate::query::expr::{Expr, SubLink, Subquery, SubqueryKind};
use crate::query::{FromList, RelSource, Select, collect_rels};
use crate::{Node, Plan, walk};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, SqlType, oid};
use std::sync::Arc;

impl Planner<'_> {
    /// Plans the subqueries of an expression, in place.
    pub(crate) fn plan_sublinks(&mut self, expr: &mut Expr) -> Result<()> {
        if !self.range.has_sublinks {
            return Ok(());
        }
        self.plan_sublinks_of(expr)
    }

    fn plan_sublinks_of(&mut self, expr: &mut Expr) -> Result<()> {
        let mut result = Ok(());
        walk::children_mut(expr, &mut |child| {
            if result.is_ok() {
                result = self.plan_sublinks_of(child);
            }
        });
        result?;
        match expr {
            Expr::SubLink(_) => {
                let nothing = Expr::Param(0, SqlType::of(oid::UNKNOWN));
                if let Expr::SubLink(link) = std::mem::replace(expr, nothing) {
                    *expr = Expr::Subquery(self.planned(link)?);
                }
            }
            // The arguments of a function that the session runs.
            Expr::Subquery(subquery) if has_sublink(&subquery.plan) => {
                self.plan_sublinks_in(&mut Arc::make_mut(subquery).plan)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// The same of all expressions of a part that is a plan already.
    pub(crate) fn plan_sublinks_in(&mut self, plan: &mut Plan) -> Result<()> {
        let mut result = Ok(());
        walk::plan_exprs_mut(plan, 0, &mut |expr, _| {
            if result.is_ok() {
                result = self.plan_sublinks(expr);
            }
        });
        result
    }

    /// The same of a block, but for queries in its FROM, which are planned as blocks of their own.
    pub(crate) fn plan_sublinks_in_block(&mut self, select: &mut Select) -> Result<()> {
        if !self.range.has_sublinks {
            return Ok(());
        }
        let mut result = Ok(());
        select.exprs_mut(&mut |expr| {
            if result.is_ok() {
                result = self.plan_sublinks_of(expr);
            }
        });
        result?;
        self.plan_sublinks_of_items(&select.from)
    }

    /// The same of a FROM list.
    pub(super) fn plan_sublinks_in_list(&mut self, list: &mut FromList) -> Result<()> {
        if !self.range.has_sublinks {
            return Ok(());
        }
        let mut result = Ok(());
        list.exprs_mut(&mut |expr| {
            if result.is_ok() {
                result = self.plan_sublinks_of(expr);
            }
        });
        result?;
        self.plan_sublinks_of_items(list)
    }

    /// The same of the FROM items of a list.
    fn plan_sublinks_of_items(&mut self, list: &FromList) -> Result<()> {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        for rel in rels {
            let item = &mut self.range.rels[rel];
            let mut guard = std::mem::take(&mut item.guard);
            for condition in &mut guard {
                self.plan_sublinks_of(condition)?;
            }
            let item = &mut self.range.rels[rel];
            item.guard = guard;
            match &mut item.source {
                RelSource::Function { args, .. } => {
                    let mut args = std::mem::take(args);
                    for arg in &mut args {
                        self.plan_sublinks_of(arg)?;
                    }
                    if let RelSource::Function { args: own, .. } = &mut self.range.rels[rel].source
                    {
                        *own = args;
                    }
                }
                RelSource::Plan(plan) => {
                    let mut plan = plan.take();
                    if let Some(plan) = &mut plan {
                        self.plan_sublinks_in(plan)?;
                    }
                    self.range.rels[rel].source = RelSource::Plan(plan);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Plans a subquery. One that stands in several places is planned once.
    fn planned(&mut self, link: Arc<SubLink>) -> Result<Arc<Subquery>> {
        let known = self.planned.iter().find(|(of, _)| Arc::ptr_eq(of, &link));
        if let Some((_, subquery)) = known {
            return Ok(Arc::clone(subquery));
        }
        match Arc::try_unwrap(link) {
            Ok(link) => self.plan_sublink(link).map(Arc::new),
            Err(link) => {
                let subquery = Arc::new(self.plan_sublink(SubLink::clone(&link))?);
                self.planned.push((link, Arc::clone(&subquery)));
                Ok(subquery)
            }
        }
    }

    fn plan_sublink(&mut self, link: SubLink) -> Result<Subquery> {
        let SubLink {
            mut body,
            rels,
            first_rel,
            mut kind,
            ty,
            shared,
            call,
            each_row,
            ..
        } = link;
        for operand in kind.operands_mut() {
            self.plan_sublinks_of(operand)?;
        }
        self.range.attach(&mut body, rels, first_rel);
        let mut plan = self.plan_body(body)?;
        if matches!(kind, SubqueryKind::Exists)
            && let Node::Project { exprs, .. } = &mut plan.node
        {
            // Nobody asks what is selected: it is not computed.
            for (expr, column) in exprs.iter_mut().zip(&plan.columns) {
                *expr = Expr::Const(Datum::Null, column.ty);
            }
        }
        let mut ids = Vec::new();
        walk::plan_ids(&plan, &mut ids);
        Ok(Subquery {
            plan,
            kind,
            uncorrelated: ids.is_empty() && !each_row,
            ty,
            shared,
            call,
        })
    }
}

/// Holds an expression of a plan a subquery that is not planned?
pub(crate) fn has_sublink(plan: &Plan) -> bool {
    let mut found = false;
    let mut look = |expr: &Expr| {
        found = found || walk::any(expr, &|e| matches!(e, Expr::SubLink(_)));
    };
    walk::plan_exprs(plan, 0, &mut |expr, _| look(expr));
    walk::change_exprs(plan, &mut look);
    found
}
