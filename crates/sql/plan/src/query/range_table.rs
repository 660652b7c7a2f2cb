//! The range table: every FROM item and every column identity of a statement (PostgreSQL's `rtable`).
//!
//! Column identity: every column of every FROM item, group key, aggregate and output of a statement gets its own number
//! from `COLUMN_BASE` up, unique in the statement. In the logical tree, `Expr::Column(id)` is any column, of this query
//! or of an enclosing one; the planner makes it `Column(position)` where the row has it and `Outer` where an enclosing
//! row has it. Invariant: positions are below `COLUMN_BASE`, so the two never mix.

use super::{Body, BoundSubquery, Distinct, From, FromList, Select, collect_rels};
use crate::expr::{COLUMN_BASE, ColId, Expr};
use crate::{OutputColumn, walk};
use logstead_sql_catalog::Relation;
use logstead_sql_catalog::context::Context;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Oid, SqlType, oid};
use std::cell::Cell;
use std::sync::Arc;

/// What is known of a column identity.
#[derive(Clone, Debug)]
pub(crate) struct ColumnInfo {
    pub name: Arc<str>,
    pub ty: SqlType,
    pub origin: (u32, i16),
    /// Some expression refers to it: scans give it.
    pub used: bool,
    /// The statement names it, and does not only give it along: its role must be allowed to read it.
    pub named: bool,
    /// FROM item it belongs to; `usize::MAX` for computed ones.
    pub(crate) rel: usize,
}

/// A FROM item.
pub(crate) struct Rel {
    pub alias: Arc<str>,
    /// The name by which the statement knows it: a view's, for what the view reads.
    pub shown: Arc<str>,
    pub source: Source,
    /// First column identity; the item's columns follow each other.
    pub first: ColId,
    pub width: usize,
    /// Row id and version token wanted (targets of UPDATE, DELETE, FOR UPDATE; system columns): the two identities.
    /// Those of a table stand behind its columns' whether they are wanted or not.
    pub row_id: Option<ColId>,
    /// A scan gives its rows, with what is hidden of them.
    pub(crate) scanned: bool,
    /// Only the row on which this cursor stands is read.
    pub current_of: Option<crate::CursorName>,
    /// What row security asks of each row, before anything else does: every scan of the item has it first.
    pub guard: Vec<Expr>,
    /// Whose rights count where it stands; none is the role that runs the statement.
    pub as_role: Option<logstead_sql_types::value::Oid>,
}

/// Where a FROM item's rows come from.
pub(crate) enum Source {
    /// A stored table; column i is attribute i.
    Table(Arc<Relation>),
    /// A system relation or one row of a sequence.
    Virtual(Arc<Relation>, &'static logstead_sql_catalog::VirtualTable),
    /// A planned subquery; taken out when the block is planned.
    Plan(Option<Box<crate::Plan>>),
    /// A query that is bound, and planned with the block around it.
    Query(Option<Box<BoundSubquery>>),
    /// WITH.
    Cte { slot: usize, rows: f64 },
    /// A function.
    Function {
        function: &'static logstead_sql_func::Function,
        args: Vec<Expr>,
        ordinality: bool,
        /// Columns that domains are asked about: each over a row of the function's.
        asked: Vec<(usize, Expr)>,
    },
}

/// FROM items, column identities, and what planning of one part leaves for another.
#[derive(Default)]
pub(crate) struct RangeTable {
    /// By number: [`From::Rel`].
    pub rels: Vec<Rel>,
    /// By identity, from [`COLUMN_BASE`] on.
    pub columns: Vec<ColumnInfo>,
    /// Conditions that are bound in two forms, of which the planner chooses one.
    pub decorrelated: Vec<DecorrelatedCondition>,
    /// Rows of the table that was asked for last.
    pub rows_known: Cell<Option<(Oid, f64)>>,
    /// How deep binding or planning is in queries and expressions.
    depth: usize,
}

/// A condition that is bound in both forms: with a correlated subquery, and as a join with grouped rows.
pub(crate) struct DecorrelatedCondition {
    /// The item whose rows are the groups.
    pub(crate) rel: usize,
    /// The condition with the subquery.
    pub correlated: Expr,
    /// What the groups' keys are compared with.
    pub outer: Vec<Expr>,
}

impl Rel {
    /// Identities of its columns, hidden ones included.
    pub(crate) fn ids(&self) -> (ColId, ColId) {
        let hidden = match self.source {
            Source::Table(_) | Source::Virtual(..) => 2,
            _ => 0,
        };
        (self.first, self.first + self.width + hidden)
    }
}

/// Left of a stack when binding and planning go no deeper: for walks over what has been bound.
const STACK_BYTES_MIN: usize = 2 << 20;
/// Nesting from which on it is looked whether the statement is to end.
const DEPTH_QUICK: usize = 100;
/// Nesting of queries and expressions that is walked on a thread's own stack, of which nobody knows how much is left.
const DEPTH_MAX: usize = 1_200;

impl RangeTable {
    /// Goes one level deeper, PostgreSQL's `check_stack_depth`: 54001 if little is left of the stack. Whoever plans a
    /// statement may give it more ([`logstead_sql_parse::planned_on_enough_stack`]).
    pub(crate) fn enter(&mut self, session: &dyn Context) -> Result<()> {
        let is_enough = match logstead_fiber::remaining_stack() {
            Some(remaining) => remaining >= STACK_BYTES_MIN,
            None => self.depth < DEPTH_MAX,
        };
        if !is_enough {
            return Err(logstead_sql_types::error::too_deep());
        }
        // What is deep takes long to plan.
        if self.depth > DEPTH_QUICK {
            session.interrupted()?;
        }
        self.depth += 1;
        Ok(())
    }

    /// The level is left again.
    pub(crate) fn leave(&mut self) {
        self.depth -= 1;
    }

    pub(crate) fn info(&self, id: ColId) -> &ColumnInfo {
        &self.columns[id - COLUMN_BASE]
    }

    /// Makes a column identity.
    pub(crate) fn column(
        &mut self,
        name: Arc<str>,
        ty: SqlType,
        origin: (u32, i16),
        rel: usize,
    ) -> ColId {
        self.columns.push(ColumnInfo {
            name,
            ty,
            origin,
            used: false,
            named: false,
            rel,
        });
        COLUMN_BASE + self.columns.len() - 1
    }

    /// Makes an identity for something computed.
    pub(crate) fn computed(&mut self, name: &str, ty: SqlType) -> ColId {
        let id = self.column(name.into(), ty, (0, 0), usize::MAX);
        self.columns[id - COLUMN_BASE].used = true;
        id
    }

    /// What is asked of rows of items before all else.
    pub(crate) fn guards_of(&self, rels: impl IntoIterator<Item = usize>) -> Vec<Expr> {
        let guards = rels.into_iter().flat_map(|rel| &self.rels[rel].guard);
        guards.cloned().collect()
    }

    /// Identities of the columns of a list's items.
    pub(crate) fn ranges(&self, list: &FromList) -> Vec<(ColId, ColId)> {
        let mut rels = Vec::new();
        collect_rels(list, &mut rels);
        rels.iter().map(|&rel| self.rels[rel].ids()).collect()
    }

    /// Identities that an item refers to within itself.
    pub(crate) fn inside(&self, item: &From, out: &mut Vec<ColId>) {
        match item {
            From::Rel(rel) => match &self.rels[*rel].source {
                Source::Plan(Some(plan)) => walk::plan_ids(plan, out),
                Source::Query(Some(query)) => self.foreign_ids(query, out),
                Source::Function { args, .. } => args.iter().for_each(|a| walk::column_ids(a, out)),
                _ => {}
            },
            From::Join {
                left, right, on, ..
            } => {
                for list in [left, right] {
                    list.items.iter().for_each(|i| self.inside(i, out));
                    list.conditions
                        .iter()
                        .for_each(|c| walk::column_ids(c, out));
                }
                on.iter().for_each(|c| walk::column_ids(c, out));
            }
        }
    }

    /// The columns that a body will have; those of unknown type become text.
    pub(crate) fn body_columns(&self, body: &Body) -> Vec<OutputColumn> {
        let mut columns = match body {
            Body::Select(select) => select.outputs.iter().map(|o| o.column.clone()).collect(),
            Body::Values(_, columns) => columns.clone(),
            Body::Plan(plan) => plan.columns.clone(),
            Body::SetOps(first, _) => self.body_columns(first),
            Body::Project(_, _, columns) => columns.clone(),
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
    pub(crate) fn foreign_ids(&self, query: &BoundSubquery, out: &mut Vec<ColId>) {
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
            // Its expressions name positions alone.
            Body::Project(input, ..) => self.body_exprs(input, f),
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

    pub(crate) fn list_exprs(&self, list: &FromList, f: &mut dyn FnMut(&Expr)) {
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
}
