//! The logical query tree: what the binder makes, rewrite passes change, and the planner turns into a plan.
//!
//! Owns: query blocks ([`Select`]), what stands in FROM ([`From`], [`BoundSubquery`]), whole queries and changes
//! ([`QueryTree`], [`BoundChange`]), subqueries of expressions ([`SubLink`]), and the range table, which their items
//! and columns are numbers of ([`RangeTable`]).

pub mod expr;
mod expression_walk;
mod expressions;
mod modify_table;
mod null_rejection;
mod range_table;
mod sublink;
pub(crate) mod user_aggregate;
pub mod walk;
pub(crate) mod window;

pub use expressions::BoundIndex;
pub(crate) use expressions::{conjuncts, plain_column, same_bytes, the_subquery};
pub(crate) use modify_table::{BoundChange, ChangeSource, ChangedRows};

pub(crate) use expression_walk::{FromItems, renumber_items};
pub(crate) use null_rejection::refuses_null;
pub use sublink::SubLink;

pub(crate) use range_table::{ColumnInfo, DecorrelatedCondition, RangeTable, Rel, RelSource};

pub(crate) use crate::query::expr::{COLUMN_BASE, ColId};

use crate::query::expr::Expr;
use crate::{
    AggregateCall, JoinKind, LockWait, OutputColumn, SetOpKind, SortKey, WindowCall, WindowFrame,
};
use logstead_engine::RowLock;
use logstead_sql_types::value::SqlType;
use std::ops::Range;
use std::sync::Arc;

/// FROM as a tree. Inner joins are flattened into the block's list and conditions; what is left is outer joins.
#[derive(Clone)]
pub(crate) enum From {
    /// A FROM item: index into [`RangeTable::rels`].
    Rel(usize),
    /// A join whose sides cannot simply be exchanged.
    Join {
        kind: JoinKind,
        left: Box<FromList>,
        right: Box<FromList>,
        on: Vec<Expr>,
    },
}

/// Items joined by inner joins under some conditions.
#[derive(Clone, Default)]
pub(crate) struct FromList {
    pub items: Vec<From>,
    pub conditions: Vec<Expr>,
}

/// An item of FROM whose rows are locked.
#[derive(Clone, Copy)]
pub(crate) struct RowMark {
    pub(crate) rel: usize,
    pub lock: RowLock,
    pub wait: LockWait,
}

/// One SELECT.
#[derive(Clone, Default)]
pub(crate) struct Select {
    pub from: FromList,
    pub grouping: Option<Grouping>,
    /// Windows, computed after grouping.
    pub windows: Vec<BoundWindow>,
    /// Set-returning calls, computed after grouping and windows.
    pub sets: Vec<(ColId, Expr)>,
    /// They are computed behind DISTINCT ON, which has an ORDER BY.
    pub(crate) sets_last: bool,
    /// Those that the block is grouped by: computed before.
    pub(crate) grouped_sets: Vec<(ColId, Expr)>,
    pub outputs: Vec<Output>,
    pub distinct: Distinct,
    pub order: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// FETCH FIRST ... WITH TIES.
    pub ties: bool,
    /// Items to lock and how; `None` without a locking clause.
    pub locks: Option<Vec<RowMark>>,
    /// Subqueries of its conditions may become joins: rows that are locked are asked again under whole conditions.
    pub may_join_sublinks: bool,
}

/// GROUP BY, HAVING and aggregates.
#[derive(Clone)]
pub(crate) struct Grouping {
    /// Group keys over the FROM row, each with its identity afterwards.
    pub keys: Vec<(ColId, Expr)>,
    /// Grouping sets: which keys each has. Without, the one set is all keys.
    pub sets: Option<Vec<Vec<usize>>>,
    /// GROUPING(...): the keys that each asks about.
    pub calls: Vec<(ColId, Vec<usize>)>,
    pub aggregates: Vec<(ColId, AggregateCall)>,
    /// Over keys and aggregates.
    pub having: Vec<Expr>,
}

/// A window with what is computed over it, each call with its identity. Over the FROM row or the grouped one.
#[derive(Clone)]
pub(crate) struct BoundWindow {
    pub partition: Vec<Expr>,
    pub order: Vec<SortKey>,
    pub frame: WindowFrame,
    pub calls: Vec<(ColId, WindowCall)>,
}

/// A select list item with its identity.
#[derive(Clone)]
pub(crate) struct Output {
    pub id: ColId,
    pub expr: Expr,
    pub column: OutputColumn,
}

/// DISTINCT.
#[derive(Clone, Default)]
pub(crate) enum Distinct {
    #[default]
    No,
    All,
    /// DISTINCT ON; expressions as in ORDER BY.
    On(Vec<Expr>),
}

/// A statement, or a query in one, as it was bound. Outputs of a query may still be of unknown type.
#[derive(Clone)]
pub(crate) enum QueryTree {
    Select(Box<Select>),
    Values(Vec<Vec<Expr>>, Vec<OutputColumn>),
    /// The first of several, and the others with what joins each to all before it.
    SetOps(Box<QueryTree>, Vec<Branch>),
    /// Other columns made of those of a body, which are positions in these expressions: casts.
    Project(Box<QueryTree>, Vec<Expr>, Vec<OutputColumn>),
    /// ORDER BY and LIMIT around a whole body.
    Ordered(Box<Ordered>),
    /// A body that reads queries of WITH which are kept.
    With(Vec<Definition>, Box<QueryTree>),
    /// INSERT, UPDATE, DELETE or MERGE.
    Change(Box<BoundChange>),
}

/// ORDER BY, LIMIT and OFFSET over a body, whose columns are positions in these expressions.
#[derive(Clone)]
pub(crate) struct Ordered {
    pub input: QueryTree,
    pub keys: Vec<SortKey>,
    pub limit: Option<Expr>,
    pub offset: Option<Expr>,
    /// WITH TIES: what the last row's peers have in common with it.
    pub ties: Vec<Expr>,
}

/// A query of WITH that is kept.
#[derive(Clone)]
pub(crate) struct Definition {
    pub slot: usize,
    pub name: Arc<str>,
    pub body: QueryTree,
    /// The recursive term, and whether all its rows are kept.
    pub recursive: Option<(QueryTree, bool)>,
}

impl QueryTree {
    pub(crate) fn types(&self) -> Vec<SqlType> {
        match self {
            QueryTree::Select(select) => select.outputs.iter().map(|o| o.expr.ty()).collect(),
            QueryTree::Values(_, columns) => columns.iter().map(|c| c.ty).collect(),
            QueryTree::SetOps(first, rest) => match rest.last() {
                Some(last) => last.types.clone(),
                None => first.types(),
            },
            QueryTree::Project(_, exprs, _) => exprs.iter().map(Expr::ty).collect(),
            QueryTree::Ordered(ordered) => ordered.input.types(),
            QueryTree::With(_, body) => body.types(),
            QueryTree::Change(change) => change.columns.iter().map(|c| c.ty).collect(),
        }
    }

    /// It changes a table, perhaps with WITH in front of it.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            QueryTree::With(_, body) => body.is_change(),
            QueryTree::Change(_) => true,
            _ => false,
        }
    }

    /// It gives rows: everything does but a change without RETURNING.
    pub(crate) fn gives_rows(&self) -> bool {
        match self {
            QueryTree::With(_, body) => body.gives_rows(),
            QueryTree::Change(change) => change.gives_rows(),
            _ => true,
        }
    }
}

/// Column identities in a few ranges: those that were made while a part of a statement was bound.
#[derive(Clone, Debug, Default)]
pub(crate) struct ColIdRanges(pub(crate) Vec<Range<ColId>>);

impl ColIdRanges {
    pub(crate) fn contains(&self, id: ColId) -> bool {
        self.0.iter().any(|range| range.contains(&id))
    }
}

impl std::convert::From<Range<ColId>> for ColIdRanges {
    fn from(range: Range<ColId>) -> ColIdRanges {
        ColIdRanges(vec![range])
    }
}

/// A query in FROM.
#[derive(Clone)]
pub(crate) struct BoundSubquery {
    pub body: QueryTree,
    /// Its own identities.
    pub own: ColIdRanges,
    /// A view that is a security barrier.
    pub(crate) barrier: bool,
    /// A query of WITH.
    pub with: bool,
}

/// One SELECT, VALUES or set operation among others.
#[derive(Clone)]
pub(crate) struct Branch {
    pub kind: SetOpKind,
    pub all: bool,
    pub body: QueryTree,
    /// The types of its result with all before it.
    pub types: Vec<SqlType>,
    /// Not all that are joined had these types: some are cast to them.
    pub is_cast: bool,
}

/// The FROM items of a list.
pub(crate) fn collect_rels(list: &FromList, out: &mut Vec<usize>) {
    for item in &list.items {
        match item {
            From::Rel(rel) => out.push(*rel),
            From::Join { left, right, .. } => {
                collect_rels(left, out);
                collect_rels(right, out);
            }
        }
    }
}
