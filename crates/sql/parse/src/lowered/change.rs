//! INSERT, UPDATE, DELETE, MERGE.

use super::{Expr, ResTarget, SelectStmt, TableRef, WithClause};
use crate::ast::{AnyName, DefElem, Location, Name, Overriding, RangeVar, SortByDir, SortByNulls};

/// Where the rows of INSERT come from.
#[derive(Clone, Debug, PartialEq)]
pub enum InsertSource {
    /// A query, also VALUES.
    Select(Box<SelectStmt>),
    /// DEFAULT VALUES
    DefaultValues,
}

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct InsertStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// Into which table.
    pub relation: RangeVar,
    /// Into which columns.
    pub cols: Vec<ResTarget>,
    /// OVERRIDING
    pub overriding: Option<Overriding>,
    /// What.
    pub source: InsertSource,
    /// ON CONFLICT
    pub on_conflict_clause: Option<Box<OnConflictClause>>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// What ON CONFLICT looks at.
#[derive(Clone, Debug, PartialEq)]
pub enum InferClause {
    /// A unique index over these, and its WHERE.
    Index(Vec<IndexElem>, Option<Expr>, Location),
    /// ON CONSTRAINT
    Constraint(Name, Location),
}

/// An element of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexElem {
    /// A column, or an expression.
    pub key: IndexKey,
    /// COLLATE
    pub collation: Option<AnyName>,
    /// An operator class.
    pub opclass: Option<AnyName>,
    /// What is said to the class.
    pub opclassopts: Vec<DefElem>,
    /// ASC, DESC
    pub ordering: SortByDir,
    /// NULLS FIRST, NULLS LAST
    pub nulls_ordering: SortByNulls,
    /// Where it begins.
    pub location: Location,
}

/// What an index is over.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexKey {
    /// A column.
    Column(Name),
    /// An expression, and whether it stands in parentheses.
    Expr(Expr, bool),
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflictClause {
    /// With what.
    pub infer: Option<InferClause>,
    /// DO UPDATE SET; none for DO NOTHING.
    pub update: Option<(Vec<SetClause>, Option<Expr>)>,
    /// Where ON is.
    pub location: Location,
}

/// An item of SET.
#[derive(Clone, Debug, PartialEq)]
pub enum SetClause {
    /// `column = expression`
    Single(ResTarget),
    /// `(columns) = expression`
    Multiple(Vec<ResTarget>, Expr),
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// The table.
    pub relation: RangeVar,
    /// SET
    pub target_list: Vec<SetClause>,
    /// FROM
    pub from_clause: Vec<TableRef>,
    /// WHERE
    pub where_clause: Option<Expr>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct DeleteStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// The table.
    pub relation: RangeVar,
    /// USING
    pub using_clause: Vec<TableRef>,
    /// WHERE
    pub where_clause: Option<Expr>,
    /// RETURNING
    pub returning_list: Vec<ResTarget>,
}

/// MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeStmt {
    /// WITH
    pub with_clause: Option<Box<WithClause>>,
    /// The table.
    pub relation: RangeVar,
    /// USING
    pub source_relation: TableRef,
    /// ON
    pub join_condition: Expr,
    /// WHEN
    pub merge_when_clauses: Vec<MergeWhenClause>,
}

/// What a WHEN of MERGE does.
#[derive(Clone, Debug, PartialEq)]
pub enum MergeAction {
    /// UPDATE SET
    Update(Vec<SetClause>),
    /// DELETE
    Delete,
    /// INSERT; without values DEFAULT VALUES.
    Insert {
        /// Into which columns.
        cols: Vec<ResTarget>,
        /// OVERRIDING
        overriding: Option<Overriding>,
        /// VALUES
        values: Option<Vec<Expr>>,
    },
    /// DO NOTHING
    Nothing,
}

/// WHEN of MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeWhenClause {
    /// Not NOT MATCHED.
    pub matched: bool,
    /// AND
    pub condition: Option<Expr>,
    /// THEN
    pub action: MergeAction,
}
