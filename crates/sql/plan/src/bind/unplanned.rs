//! Queries in FROM that are bound but not planned: conditions of the query around them go in first.
//!
//! A condition goes into a query if it says the same there of the rows that come out: over columns that the query only
//! gives along, below its grouping if it is about group keys, into every branch of a UNION. It never goes past LIMIT,
//! DISTINCT ON, a set-returning function, a window (unless it is about what all windows are partitioned by), EXCEPT, or
//! anything volatile; nor into a view that is a security barrier, unless it cannot tell of the rows it sees.

use super::query::{Distinct, From, FromList, Select};
use super::setop::Body;
use super::{Binder, COLUMN_BASE, ColId, Source};
use crate::expr::Expr;
use crate::{OutputColumn, SetOpKind, walk};
use logstead_sql_func as func;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Oid, SqlType, oid};
use std::ops::Range;

/// A query in FROM.
pub(crate) struct Unplanned {
    pub body: Body,
    /// The identities that were made while it was bound: its own.
    pub own: Range<ColId>,
    /// A view that is a security barrier.
    pub(crate) barrier: bool,
    /// A query of WITH.
    pub with: bool,
}

/// One SELECT, VALUES or set operation among others.
pub(crate) struct Branch {
    pub kind: SetOpKind,
    pub all: bool,
    pub body: Body,
    /// The types of its result with all before it.
    pub types: Vec<SqlType>,
}

impl Binder<'_> {
    /// Binds something, and gives the identities made meanwhile.
    pub(crate) fn with_own<T>(
        &mut self,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, Range<ColId>)> {
        let first = COLUMN_BASE + self.columns.len();
        let bound = bind(self)?;
        Ok((bound, first..COLUMN_BASE + self.columns.len()))
    }

    /// The columns that a body will have; those of unknown type become text.
    pub(crate) fn body_columns(&self, body: &Body) -> Vec<OutputColumn> {
        let mut columns = match body {
            Body::Select(select) => select.outputs.iter().map(|o| o.column.clone()).collect(),
            Body::Values(_, columns) => columns.clone(),
            Body::Plan(plan) => plan.columns.clone(),
            Body::SetOps(first, _) => self.body_columns(first),
        };
        let simple = matches!(body, Body::SetOps(..));
        for (column, ty) in columns.iter_mut().zip(body.types()) {
            column.ty = if ty.oid == oid::UNKNOWN {
                SqlType::of(oid::TEXT)
            } else {
                ty
            };
            if simple {
                column.origin = (0, 0);
            }
        }
        columns
    }

    /// Identities of others that a query in FROM refers to.
    pub(crate) fn foreign_ids(&self, query: &Unplanned, out: &mut Vec<ColId>) {
        let mut all = Vec::new();
        self.body_exprs(&query.body, &mut |e| walk::column_ids(e, &mut all));
        out.extend(all.into_iter().filter(|id| !query.own.contains(id)));
    }

    /// Every expression of a body.
    fn body_exprs(&self, body: &Body, f: &mut dyn FnMut(&Expr)) {
        match body {
            Body::Select(select) => self.select_exprs(select, f),
            Body::Values(rows, _) => rows.iter().flatten().for_each(f),
            Body::Plan(plan) => walk::plan_exprs(plan, 0, &mut |e, _| f(e)),
            Body::SetOps(first, rest) => {
                self.body_exprs(first, f);
                rest.iter().for_each(|b| self.body_exprs(&b.body, f));
            }
        }
    }

    fn select_exprs(&self, select: &Select, f: &mut dyn FnMut(&Expr)) {
        self.list_exprs(&select.from, f);
        if let Some(grouping) = &select.grouping {
            grouping.keys.iter().for_each(|(_, e)| f(e));
            for (_, call) in &grouping.aggregates {
                call.args.iter().chain(&call.filter).for_each(&mut *f);
                call.order.iter().for_each(|k| f(&k.expr));
            }
            grouping.having.iter().for_each(&mut *f);
        }
        for window in &select.windows {
            window.partition.iter().for_each(&mut *f);
            window.order.iter().for_each(|k| f(&k.expr));
            window.frame.exprs(f);
            for (_, call) in &window.calls {
                call.args.iter().chain(&call.filter).for_each(&mut *f);
            }
        }
        select.sets.iter().for_each(|(_, e)| f(e));
        select.outputs.iter().for_each(|o| f(&o.expr));
        if let Distinct::On(keys) = &select.distinct {
            keys.iter().for_each(&mut *f);
        }
        select.order.iter().for_each(|k| f(&k.expr));
        select.limit.iter().chain(&select.offset).for_each(f);
    }

    pub(super) fn list_exprs(&self, list: &FromList, f: &mut dyn FnMut(&Expr)) {
        list.conditions.iter().for_each(&mut *f);
        for item in &list.items {
            match item {
                From::Rel(rel) => {
                    self.rels[*rel].guard.iter().for_each(&mut *f);
                    match &self.rels[*rel].source {
                        Source::Plan(Some(plan)) => walk::plan_exprs(plan, 0, &mut |e, _| f(e)),
                        Source::Query(Some(query)) => self.body_exprs(&query.body, f),
                        Source::Function { args, .. } => args.iter().for_each(&mut *f),
                        _ => {}
                    }
                }
                From::Join {
                    left, right, on, ..
                } => {
                    self.list_exprs(left, f);
                    self.list_exprs(right, f);
                    on.iter().for_each(&mut *f);
                }
            }
        }
    }

    /// Plans a query in FROM under conditions over its row. Those that have gone in are taken out.
    pub(crate) fn plan_unplanned(&mut self, rel: usize, conditions: &mut Vec<Expr>) -> Result<()> {
        let Source::Query(query) = &mut self.rels[rel].source else {
            return Ok(());
        };
        let Some(query) = query.take() else {
            return Ok(());
        };
        let Unplanned {
            mut body, barrier, ..
        } = *query;
        let (first, width) = (self.rels[rel].first, self.rels[rel].width);
        conditions.retain(|condition| {
            let at_positions = over_positions(condition, first, width);
            let Some(condition) = at_positions.filter(|c| !barrier || is_leakproof(c)) else {
                return true;
            };
            if !accepts(&body, &condition) {
                return true;
            }
            take_in(&mut body, &condition);
            false
        });
        let plan = self.finish(body)?;
        self.rels[rel].source = Source::Plan(Some(Box::new(plan)));
        Ok(())
    }
}

/// A condition over an item's columns as one over positions; none if it may not be moved.
fn over_positions(condition: &Expr, first: ColId, width: usize) -> Option<Expr> {
    if walk::is_volatile(condition) || walk::has_subquery(condition) {
        return None;
    }
    let mut moved = condition.clone();
    let mut any = false;
    renumber(&mut moved, first, width, &mut any);
    any.then_some(moved)
}

fn renumber(expr: &mut Expr, first: ColId, width: usize, any: &mut bool) {
    if let Expr::Column(id, _) = expr
        && (first..first + width).contains(id)
    {
        *id -= first;
        *any = true;
    }
    walk::children_mut(expr, &mut |e| renumber(e, first, width, any));
}

/// The positions in a condition.
fn positions(condition: &Expr) -> Vec<usize> {
    let mut found = Vec::new();
    collect(condition, &mut found);
    found
}

fn collect(expr: &Expr, out: &mut Vec<usize>) {
    if let Expr::Column(at, _) = expr
        && *at < COLUMN_BASE
    {
        out.push(*at);
    }
    walk::children(expr, &mut |e| collect(e, out));
}

/// Puts expressions in the place of positions.
fn substitute(expr: &mut Expr, outputs: &dyn Fn(usize) -> Option<Expr>) {
    if let Expr::Column(at, _) = expr
        && *at < COLUMN_BASE
    {
        if let Some(output) = outputs(*at) {
            *expr = output;
        }
        return;
    }
    walk::children_mut(expr, &mut |e| substitute(e, outputs));
}

/// Whether a condition over a body's columns may go in.
fn accepts(body: &Body, condition: &Expr) -> bool {
    match body {
        Body::Select(select) => select_accepts(select, condition),
        Body::Values(..) | Body::Plan(_) => false,
        Body::SetOps(first, rest) => {
            let types = body.types();
            let alike = |b: &Body| b.types().iter().zip(&types).all(|(a, b)| a.oid == b.oid);
            rest.iter()
                .all(|b| b.kind != SetOpKind::Except && alike(&b.body))
                && alike(first)
                && accepts(first, condition)
                && rest.iter().all(|b| accepts(&b.body, condition))
        }
    }
}

fn select_accepts(select: &Select, condition: &Expr) -> bool {
    let passes = select.limit.is_none()
        && select.offset.is_none()
        && select.locks.is_none()
        && select.sets.is_empty()
        && !select.from.items.is_empty()
        && !matches!(select.distinct, Distinct::On(_));
    passes
        && positions(condition).into_iter().all(|at| {
            let Some(output) = select.outputs.get(at) else {
                return false;
            };
            let expr = &output.expr;
            let typed = expr.ty().oid != oid::UNKNOWN;
            let partitioned = select
                .windows
                .iter()
                .all(|window| window.partition.iter().any(|p| walk::same(p, expr)));
            typed && partitioned && !walk::is_volatile(expr) && !walk::has_subquery(expr)
        })
}

/// Puts a condition that [`accepts`] has found good into a body.
fn take_in(body: &mut Body, condition: &Expr) {
    match body {
        Body::Select(select) => {
            let mut condition = condition.clone();
            let outputs = &select.outputs;
            substitute(&mut condition, &|at| Some(outputs.get(at)?.expr.clone()));
            let Some(grouping) = &mut select.grouping else {
                select.from.conditions.push(condition);
                return;
            };
            let mut ids = Vec::new();
            walk::column_ids(&condition, &mut ids);
            let key = |id: &ColId| {
                let found = grouping.keys.iter().find(|(key, _)| key == id);
                found.filter(|(_, e)| !walk::is_volatile(e) && !walk::has_subquery(e))
            };
            let made = |id: &ColId| {
                grouping.aggregates.iter().any(|(made, _)| made == id)
                    || grouping.calls.iter().any(|(made, _)| made == id)
            };
            // Group keys and what comes from outside; without keys there is one row whatever is below.
            let below = grouping.sets.is_none()
                && ids.iter().any(|id| key(id).is_some())
                && !ids.iter().any(made)
                && ids.iter().all(|id| {
                    key(id).is_some() || !grouping.keys.iter().any(|(other, _)| other == id)
                });
            if below {
                replace_keys(&mut condition, &|id| key(&id).map(|(_, e)| e.clone()));
                select.from.conditions.push(condition);
            } else {
                grouping.having.push(condition);
            }
        }
        Body::SetOps(first, rest) => {
            take_in(first, condition);
            rest.iter_mut()
                .for_each(|b| take_in(&mut b.body, condition));
        }
        Body::Values(..) | Body::Plan(_) => {}
    }
}

fn replace_keys(expr: &mut Expr, key: &dyn Fn(ColId) -> Option<Expr>) {
    if let Expr::Column(id, _) = expr {
        if let Some(found) = key(*id) {
            *expr = found;
        }
        return;
    }
    walk::children_mut(expr, &mut |e| replace_keys(e, key));
}

/// Do comparisons of values of the type tell nobody of them, not even by failing?
pub(crate) fn is_leakproof_type(ty: Oid) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::TEXT
            | oid::VARCHAR
            | oid::NAME
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID
            | oid::MONEY
            | oid::TIMETZ
            | oid::BIT
            | oid::VARBIT
            | oid::INET
            | oid::CIDR
            | oid::MACADDR
            | oid::MACADDR8
            | oid::PG_LSN
            | oid::BYTEA
    )
}

/// Whether a condition tells nobody of the values it sees, not even by failing: comparisons of columns with columns,
/// constants and parameters.
pub(crate) fn is_leakproof(condition: &Expr) -> bool {
    let plain = |e: &Expr| {
        let mut e = e;
        while let Expr::Relabel(inner, _) = e {
            e = inner;
        }
        matches!(
            e,
            Expr::Column(..) | Expr::Const(..) | Expr::Param(..) | Expr::Outer { .. }
        )
    };
    match condition {
        Expr::Call { function, args, .. } => {
            func::operator_class(function.oid).is_some()
                && args
                    .iter()
                    .all(|a| plain(a) && is_leakproof_type(a.ty().oid))
        }
        Expr::IsNull(arg, _) => plain(arg),
        Expr::And(all) | Expr::Or(all) => all.iter().all(is_leakproof),
        Expr::Not(arg) => is_leakproof(arg),
        Expr::Column(..) => true,
        _ => false,
    }
}
