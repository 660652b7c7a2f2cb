//! The range table: every FROM item and every column identity of a statement (PostgreSQL's `rtable`).
//!
//! Column identity: every column of every FROM item, group key, aggregate and output of a statement gets its own number
//! from `COLUMN_BASE` up, unique in the statement. In the logical tree, `Expr::Column(id)` is any column, of this query
//! or of an enclosing one; the planner makes it `Column(position)` where the row has it and `Outer` where an enclosing
//! row has it. Invariant: positions are below `COLUMN_BASE`, so the two never mix.

use super::expression_walk::FromItems;
use super::{BoundSubquery, QueryTree, renumber_items};
use crate::OutputColumn;
use crate::query::expr::{COLUMN_BASE, ColId, Expr};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::{ColumnOrigin, Relation};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{SqlType, oid};
use std::cell::Cell;
use std::sync::Arc;

/// What is known of a column identity.
#[derive(Clone, Debug)]
pub(crate) struct ColumnInfo {
    pub name: Arc<str>,
    pub ty: SqlType,
    pub origin: Option<ColumnOrigin>,
    /// Some expression refers to it: scans give it.
    pub used: bool,
    /// The statement names it, and does not only give it along: its role must be allowed to read it.
    pub named: bool,
    /// FROM item it belongs to; `usize::MAX` for computed ones.
    pub(crate) rel: usize,
}

/// A FROM item.
#[derive(Clone)]
pub(crate) struct Rel {
    pub alias: Arc<str>,
    /// The name by which the statement knows it: a view's, for what the view reads.
    pub shown: Arc<str>,
    pub source: RelSource,
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
    pub as_role: Option<logstead_sql_types::RoleId>,
}

/// Where a FROM item's rows come from.
#[derive(Clone)]
pub(crate) enum RelSource {
    /// A stored table; column i is attribute i.
    Table(Arc<Relation>),
    /// A system relation or one row of a sequence.
    Virtual(Arc<Relation>, &'static logstead_sql_catalog::VirtualTable),
    /// A planned subquery; taken out when the block is planned.
    Plan(Option<Box<crate::Plan>>),
    /// A query that is bound, and planned with the block around it.
    Query(Option<Box<BoundSubquery>>),
    /// WITH.
    Cte { slot: usize },
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
    /// Conditions that have two forms, of which the planner chooses one.
    pub decorrelated: Vec<DecorrelatedCondition>,
    /// Rows of the table that was asked for last.
    pub rows_known: Cell<Option<(RelationId, f64)>>,
    /// An expression of the statement holds a subquery that is not planned ([`super::SubLink`]).
    pub(crate) has_sublinks: bool,
    /// Rows of the queries of WITH that are planned, by slot.
    cte_rows: Vec<f64>,
    /// How deep binding or planning is in queries and expressions.
    depth: usize,
}

/// A condition in both forms: with a correlated subquery, and as a join with grouped rows.
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
            RelSource::Table(_) | RelSource::Virtual(..) => 2,
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

    /// A query of WITH has been planned.
    pub(crate) fn set_cte_rows(&mut self, slot: usize, rows: f64) {
        if self.cte_rows.len() <= slot {
            self.cte_rows.resize(slot + 1, 0.0);
        }
        self.cte_rows[slot] = rows;
    }

    /// Rows that a query of WITH gives.
    pub(crate) fn cte_rows(&self, slot: usize) -> f64 {
        self.cte_rows.get(slot).copied().unwrap_or(0.0)
    }

    pub(crate) fn info(&self, id: ColId) -> &ColumnInfo {
        &self.columns[id - COLUMN_BASE]
    }

    /// Makes a column identity.
    pub(crate) fn column(
        &mut self,
        name: Arc<str>,
        ty: SqlType,
        origin: Option<ColumnOrigin>,
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
        let id = self.column(name.into(), ty, None, usize::MAX);
        self.columns[id - COLUMN_BASE].used = true;
        id
    }

    /// What is asked of rows of items before all else.
    pub(crate) fn guards_of(&self, rels: impl IntoIterator<Item = usize>) -> Vec<Expr> {
        let guards = rels.into_iter().flat_map(|rel| &self.rels[rel].guard);
        guards.cloned().collect()
    }

    /// All its items.
    pub(crate) fn items(&self) -> FromItems<'_> {
        FromItems {
            rels: &self.rels,
            first_rel: 0,
        }
    }

    /// Takes in the FROM items of a subquery, whose body then knows them by the numbers that they have here.
    pub(crate) fn attach(&mut self, body: &mut QueryTree, rels: Vec<Rel>, first_rel: usize) {
        let before = self.rels.len();
        renumber_items(&mut self.rels, 0, body, rels, first_rel);
        self.own_columns_from(before);
    }

    /// Lets the columns of the items from that number on know whose they are.
    pub(crate) fn own_columns_from(&mut self, rel: usize) {
        for (number, item) in self.rels.iter().enumerate().skip(rel) {
            let (first, end) = item.ids();
            for column in &mut self.columns[first - COLUMN_BASE..end - COLUMN_BASE] {
                column.rel = number;
            }
        }
    }

    /// The columns that a body will have; those of unknown type become text.
    pub(crate) fn body_columns(&self, body: &QueryTree) -> Vec<OutputColumn> {
        let mut columns = match body {
            QueryTree::Select(select) => select.outputs.iter().map(|o| o.column.clone()).collect(),
            QueryTree::Values(_, columns) => columns.clone(),
            QueryTree::SetOps(first, _) => self.body_columns(first),
            QueryTree::Project(_, _, columns) => columns.clone(),
            QueryTree::Ordered(ordered) => self.body_columns(&ordered.input),
            QueryTree::With(_, body) => self.body_columns(body),
            QueryTree::Change(change) => change.columns.clone(),
        };
        let simple = matches!(body, QueryTree::SetOps(..));
        for (column, ty) in columns.iter_mut().zip(body.types()) {
            column.ty = if ty.oid == oid::UNKNOWN {
                SqlType::of(oid::TEXT)
            } else {
                ty
            };
            if simple {
                column.origin = None;
            }
        }
        columns
    }
}
