//! Queries.

use super::{Expr, FuncCall, Ident, RangeTableFunc, SortBy, Statement, WindowDef};
use crate::ast::{AnyName, Const, Location, LockingClause, SetOperation, TypeName};

/// A query with the clauses around its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// What it consists of.
    pub body: Box<SetExpr>,
    /// ORDER BY
    pub sort_clause: Vec<SortBy>,
    /// LIMIT, OFFSET
    pub limit: Option<Box<SelectLimit>>,
    /// FOR UPDATE and its like.
    pub locking_clause: Vec<LockingClause>,
}

impl From<SetExpr> for Query {
    /// A query that is nothing but this.
    fn from(body: SetExpr) -> Query {
        Query {
            with: None,
            body: Box::new(body),
            sort_clause: Vec::new(),
            limit: None,
            locking_clause: Vec::new(),
        }
    }
}

/// What a query consists of.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SetExpr {
    Select(Box<Select>),
    /// A query in parentheses.
    Query(Box<Query>),
    SetOperation {
        op: SetOperation,
        all: bool,
        left: Box<SetExpr>,
        right: Box<SetExpr>,
    },
    Values(Values),
    Insert(Box<Statement>),
    Update(Box<Statement>),
    Delete(Box<Statement>),
    Merge(Box<Statement>),
}

impl SetExpr {
    /// The SELECT that it is.
    pub fn as_select(&self) -> Option<&Select> {
        match self {
            SetExpr::Select(select) => Some(select),
            _ => None,
        }
    }
}

/// Rows of VALUES.
#[derive(Clone, Debug, PartialEq)]
pub struct Values {
    /// The rows.
    pub rows: Vec<Vec<Expr>>,
}

/// SELECT.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Select {
    /// DISTINCT
    pub distinct: Distinct,
    /// Its results.
    pub projection: Vec<SelectItem>,
    /// INTO, which only a query that is no statement keeps: where the table is named.
    pub into: Option<Location>,
    /// FROM.
    pub from: Vec<TableWithJoins>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// GROUP BY.
    pub group_by: GroupByClause,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW
    pub window_clause: Vec<WindowDef>,
}

/// How a target list removes duplicates.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Distinct {
    /// Not at all.
    #[default]
    No,
    /// DISTINCT
    All,
    /// DISTINCT ON
    On(Vec<Expr>),
}

/// GROUP BY.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupByClause {
    /// DISTINCT
    pub is_distinct: bool,
    /// Its items.
    pub items: Vec<GroupingItem>,
}

/// An item of GROUP BY.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupingItem {
    /// An expression.
    Expr(Expr),
    /// `()`
    Empty,
    /// ROLLUP
    Rollup(Vec<Expr>),
    /// CUBE, and where it is.
    Cube(Vec<Expr>, Location),
    /// GROUPING SETS
    Sets(Vec<GroupingItem>),
}

/// A result.
#[derive(Clone, Debug, PartialEq)]
pub enum SelectItem {
    /// A value.
    UnnamedExpr(Expr),
    /// A value with a name.
    ExprWithAlias {
        /// The value.
        expr: Expr,
        /// Its name.
        alias: Ident,
    },
    /// `item.*`, and where it stands.
    QualifiedWildcard(AnyName, Location),
    /// `*`, and where it stands.
    Wildcard(Location),
}

/// WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct With {
    /// RECURSIVE.
    pub recursive: bool,
    /// Its queries.
    pub cte_tables: Vec<Cte>,
}

/// A query of WITH.
#[derive(Clone, Debug, PartialEq)]
pub struct Cte {
    /// Its name and those of its columns.
    pub alias: TableAlias,
    /// The query.
    pub query: Box<Query>,
    /// Whether it is computed once.
    pub materialized: Option<bool>,
}

/// LIMIT and OFFSET.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct SelectLimit {
    /// OFFSET
    pub offset: Option<Expr>,
    /// LIMIT
    pub count: Option<LimitCount>,
    /// WITH TIES
    pub with_ties: bool,
    /// FETCH FIRST was said, not LIMIT.
    pub is_fetch: bool,
}

impl SelectLimit {
    /// How many rows.
    pub fn count(&self) -> Option<&Expr> {
        match &self.count {
            Some(LimitCount::Count(count)) => Some(count),
            Some(LimitCount::All(_)) | None => None,
        }
    }
}

/// How many rows.
#[derive(Clone, Debug, PartialEq)]
pub enum LimitCount {
    /// ALL, and where it is said.
    All(Location),
    /// So many.
    Count(Expr),
}

/// What an item of FROM is called.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAlias {
    /// Its name.
    pub name: Ident,
    /// Those of its columns.
    pub columns: Vec<TableAliasColumnDef>,
}

/// A column of an item of FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct TableAliasColumnDef {
    /// Its name.
    pub name: Ident,
    /// Its type, in a column definition list.
    pub data_type: Option<TypeName>,
}

/// An item of FROM, and what is joined to it.
#[derive(Clone, Debug, PartialEq)]
pub struct TableWithJoins {
    /// The item.
    pub relation: TableFactor,
    /// What is joined, from the left.
    pub joins: Vec<Join>,
}

/// An item of FROM.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TableFactor {
    Table {
        name: AnyName,
        alias: Option<TableAlias>,
        sample: Option<Box<TableSample>>,
    },
    Derived {
        lateral: bool,
        subquery: Box<Query>,
        alias: Option<TableAlias>,
    },
    Function {
        lateral: bool,
        function: Box<FuncCall>,
        with_ordinality: bool,
        alias: Option<TableAlias>,
    },
    /// XMLTABLE
    RangeTableFunc(Box<RangeTableFunc>),
    /// ROWS FROM: functions, each with its column definition list.
    RowsFrom {
        lateral: bool,
        functions: Vec<(FuncCall, Vec<TableAliasColumnDef>)>,
        with_ordinality: bool,
        alias: Option<TableAlias>,
    },
    /// Joins in parentheses.
    NestedJoin {
        table_with_joins: Box<TableWithJoins>,
        alias: Option<TableAlias>,
    },
}

/// TABLESAMPLE.
#[derive(Clone, Debug, PartialEq)]
pub struct TableSample {
    /// How it chooses, if it is one that is known.
    pub name: Option<TableSampleMethod>,
    /// How much.
    pub quantity: Option<Expr>,
    /// REPEATABLE.
    pub seed: Option<Const>,
}

/// How TABLESAMPLE chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum TableSampleMethod {
    Bernoulli,
    System,
}

/// What is joined.
#[derive(Clone, Debug, PartialEq)]
pub struct Join {
    /// The item.
    pub relation: TableFactor,
    /// How.
    pub join_operator: JoinOperator,
}

/// How two items are joined.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum JoinOperator {
    Join(JoinConstraint),
    Left(JoinConstraint),
    Right(JoinConstraint),
    FullOuter(JoinConstraint),
    CrossJoin(JoinConstraint),
}

/// Which rows of two items belong to each other.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum JoinConstraint {
    On(Expr),
    /// By columns; and what they are called together.
    Using(Vec<Ident>, Option<Ident>),
    Natural,
    None,
}
