//! Queries.

use super::{Expr, Function, FunctionArg, Ident, ObjectName, OrderByExpr, Statement, WindowSpec};
use crate::ast::{Const, Location, TypeName};
use logstead_engine::RowLock;

/// A query with the clauses around its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Query {
    /// WITH.
    pub with: Option<With>,
    /// What it consists of.
    pub body: Box<SetExpr>,
    /// ORDER BY.
    pub order_by: Option<OrderBy>,
    /// LIMIT and OFFSET.
    pub limit_clause: Option<LimitClause>,
    /// FETCH FIRST.
    pub fetch: Option<Fetch>,
    /// FOR UPDATE and its kin.
    pub locks: Vec<LockClause>,
}

impl From<SetExpr> for Query {
    /// A query that is nothing but this.
    fn from(body: SetExpr) -> Query {
        Query {
            with: None,
            body: Box::new(body),
            order_by: None,
            limit_clause: None,
            fetch: None,
            locks: Vec::new(),
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
        op: SetOperator,
        set_quantifier: SetQuantifier,
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

/// What is made of two queries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum SetOperator {
    Union,
    Except,
    Intersect,
}

/// What becomes of rows that come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetQuantifier {
    /// All are kept.
    All,
    /// Each is kept once.
    None,
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
    /// DISTINCT.
    pub distinct: Option<Distinct>,
    /// Its results.
    pub projection: Vec<SelectItem>,
    /// INTO, which only a query that is no statement keeps: where the table is named.
    pub into: Option<Location>,
    /// FROM.
    pub from: Vec<TableWithJoins>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// GROUP BY.
    pub group_by: GroupByExpr,
    /// HAVING.
    pub having: Option<Expr>,
    /// WINDOW.
    pub named_window: Vec<NamedWindowDefinition>,
}

/// DISTINCT.
#[derive(Clone, Debug, PartialEq)]
pub enum Distinct {
    /// Of all columns.
    Distinct,
    /// Of these values.
    On(Vec<Expr>),
}

/// GROUP BY.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupByExpr(pub Vec<Expr>);

/// A window with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWindowDefinition(pub Ident, pub WindowSpec);

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
    QualifiedWildcard(ObjectName, Location),
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
    pub materialized: Option<CteAsMaterialized>,
}

/// Whether a query of WITH is computed once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum CteAsMaterialized {
    Materialized,
    NotMaterialized,
}

/// ORDER BY.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderBy(pub Vec<OrderByExpr>);

/// LIMIT and OFFSET.
#[derive(Clone, Debug, PartialEq)]
pub struct LimitClause {
    /// LIMIT.
    pub limit: Option<Expr>,
    /// OFFSET.
    pub offset: Option<Expr>,
}

/// FETCH FIRST.
#[derive(Clone, Debug, PartialEq)]
pub struct Fetch {
    /// WITH TIES.
    pub with_ties: bool,
    /// How many rows, if it is not the one that is not written. Any but a constant is that of LIMIT.
    pub quantity: Option<Expr>,
}

/// FOR UPDATE and its kin.
#[derive(Clone, Debug, PartialEq)]
pub struct LockClause {
    /// How strong it is.
    pub lock: RowLock,
    /// The names behind OF; none are all of FROM. One that is qualified is an error.
    pub of: Vec<ObjectName>,
    /// What is done with rows that others have locked, if they are not waited for.
    pub nonblock: Option<NonBlock>,
}

impl LockClause {
    /// As error messages name it.
    pub fn name(&self) -> &'static str {
        match self.lock {
            RowLock::KeyShare => "FOR KEY SHARE",
            RowLock::Share => "FOR SHARE",
            RowLock::NoKeyUpdate => "FOR NO KEY UPDATE",
            RowLock::Update => "FOR UPDATE",
        }
    }
}

/// What is done with rows that others have locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum NonBlock {
    Nowait,
    SkipLocked,
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
    /// A table, or with arguments a function.
    Table {
        name: ObjectName,
        alias: Option<TableAlias>,
        args: Option<Vec<FunctionArg>>,
        with_ordinality: bool,
        sample: Option<Box<TableSample>>,
    },
    Derived {
        lateral: bool,
        subquery: Box<Query>,
        alias: Option<TableAlias>,
    },
    /// LATERAL and a function.
    Function {
        lateral: bool,
        name: ObjectName,
        args: Vec<FunctionArg>,
        with_ordinality: bool,
        alias: Option<TableAlias>,
    },
    Unnest {
        alias: Option<TableAlias>,
        array_exprs: Vec<Expr>,
        with_ordinality: bool,
    },
    /// ROWS FROM: functions, each with its column definition list.
    RowsFrom {
        lateral: bool,
        functions: Vec<(Function, Vec<TableAliasColumnDef>)>,
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
