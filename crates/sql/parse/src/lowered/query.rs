//! Queries.

use super::{Expr, FuncCall, Ident, RangeTableFunc, SortBy, Statement, WindowDef};
use crate::ast::{
    Alias, AnyName, ColumnDefinition, FuncName, JoinType, Location, LockingClause, Name, RangeVar,
    SetOperation,
};

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
    pub from: Vec<TableRef>,
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
    /// Its name.
    pub ctename: Name,
    /// Names for its columns.
    pub aliascolnames: Vec<Name>,
    /// The query.
    pub query: Box<Query>,
    /// Whether it is computed once.
    pub materialized: Option<bool>,
    /// Where it begins.
    pub location: Location,
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

/// What FROM takes rows from.
#[derive(Clone, Debug, PartialEq)]
pub enum TableRef {
    /// A table.
    RangeVar(Box<RangeVar>),
    /// A query in parentheses.
    Subselect(Box<RangeSubselect>),
    /// Functions.
    Function(Box<RangeFunction>),
    /// XMLTABLE
    TableFunc(Box<RangeTableFunc>),
    /// TABLESAMPLE
    TableSample(Box<RangeTableSample>),
    /// Two joined.
    Join(Box<JoinExpr>),
}

impl TableRef {
    /// Its first item and what is joined to that one after the other: joins without a name lean to the left.
    pub fn join_chain(&self) -> (&TableRef, Vec<&JoinExpr>) {
        let (mut first, mut joins) = (self, Vec::new());
        while let TableRef::Join(join) = first
            && (join.alias.is_none() || joins.is_empty())
        {
            joins.push(&**join);
            first = &join.larg;
        }
        joins.reverse();
        (first, joins)
    }

    /// What it is called.
    pub fn alias(&self) -> Option<&Alias> {
        match self {
            TableRef::RangeVar(node) => node.alias.as_deref(),
            TableRef::Subselect(node) => node.alias.as_deref(),
            TableRef::Function(node) => node.alias.as_deref(),
            TableRef::TableFunc(node) => node.alias.as_deref(),
            TableRef::TableSample(node) => node.relation.alias.as_deref(),
            TableRef::Join(node) => node.alias.as_deref(),
        }
    }
}

/// A query in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeSubselect {
    /// LATERAL
    pub lateral: bool,
    /// The query.
    pub subquery: Query,
    /// What it is called.
    pub alias: Option<Box<Alias>>,
    /// Where its parenthesis is.
    pub location: Location,
}

/// Functions in FROM.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeFunction {
    /// LATERAL
    pub lateral: bool,
    /// WITH ORDINALITY
    pub ordinality: bool,
    /// ROWS FROM
    pub is_rowsfrom: bool,
    /// The functions, each with the columns that AS gives it.
    pub functions: Vec<(FuncCall, Vec<ColumnDefinition>)>,
    /// What all is called.
    pub alias: Option<Box<Alias>>,
    /// The columns of a function's rows.
    pub coldeflist: Vec<ColumnDefinition>,
    /// Where it begins.
    pub location: Location,
}

/// TABLESAMPLE.
#[derive(Clone, Debug, PartialEq)]
pub struct RangeTableSample {
    /// Of which table.
    pub relation: RangeVar,
    /// How.
    pub method: FuncName,
    /// With what.
    pub args: Vec<Expr>,
    /// REPEATABLE
    pub repeatable: Option<Expr>,
    /// Where the method is named.
    pub location: Location,
}

/// How rows are found to belong together.
#[derive(Clone, Debug, PartialEq)]
pub enum JoinQual {
    /// They all do, or by the columns of one name where it is NATURAL.
    None,
    /// ON
    On(Expr),
    /// USING, and the name that its columns have together.
    Using(Vec<Name>, Option<Box<Alias>>),
}

/// A join.
#[derive(Clone, Debug, PartialEq)]
pub struct JoinExpr {
    /// How.
    pub jointype: JoinType,
    /// NATURAL
    pub is_natural: bool,
    /// What with.
    pub larg: TableRef,
    /// What.
    pub rarg: TableRef,
    /// ON, USING
    pub quals: JoinQual,
    /// What it is called, in parentheses.
    pub alias: Option<Box<Alias>>,
    /// Where it begins.
    pub location: Location,
}

impl JoinExpr {
    /// Does it merge columns of one name?
    pub fn merges(&self) -> bool {
        self.is_natural || matches!(self.quals, JoinQual::Using(..))
    }
}
