//! INSERT, UPDATE, DELETE, MERGE.

use super::{Expr, Ident, Indirection, Query, SelectItem, TableRef};
use crate::ast::{AnyName, Location, Overriding, RangeVar};

/// INSERT.
#[derive(Clone, Debug, PartialEq)]
pub struct Insert {
    /// The table.
    pub table: RangeVar,
    /// What is given values.
    pub columns: Vec<Target>,
    /// OVERRIDING.
    pub overriding: Option<Overriding>,
    /// The rows; none are one of DEFAULT VALUES.
    pub source: Option<Box<Query>>,
    /// ON CONFLICT.
    pub on: Option<OnConflict>,
    /// RETURNING.
    pub returning: Option<Vec<SelectItem>>,
}

/// What is assigned to: a column, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The column.
    pub column: Ident,
    /// The way to the part.
    pub path: Vec<TargetStep>,
}

/// A step on the way to a part of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum TargetStep {
    /// A field of a record.
    Field(Ident),
    /// An element or a slice of an array.
    Subscripts(Vec<Indirection>),
}

/// ON CONFLICT.
#[derive(Clone, Debug, PartialEq)]
pub struct OnConflict {
    /// Which conflicts.
    pub conflict_target: Option<ConflictTarget>,
    /// What is done instead.
    pub action: OnConflictAction,
}

/// Which conflicts ON CONFLICT speaks of.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictTarget {
    /// Those of unique indexes on these keys, whose predicates the condition implies.
    Keys(Vec<ConflictKey>, Option<PlacedExpr>),
    /// Those of a constraint.
    OnConstraint(AnyName),
}

/// A key that ON CONFLICT names.
#[derive(Clone, Debug, PartialEq)]
pub enum ConflictKey {
    /// A column.
    Column(Ident),
    /// An expression.
    Expr(PlacedExpr),
}

/// An expression, and where it begins with its parentheses.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacedExpr {
    /// The expression.
    pub expr: Expr,
    /// Where it stands.
    pub location: Location,
}

/// What is done instead of an INSERT.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum OnConflictAction {
    DoNothing,
    DoUpdate(DoUpdate),
}

/// DO UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct DoUpdate {
    /// SET.
    pub assignments: Vec<Assignment>,
    /// WHERE.
    pub selection: Option<Expr>,
}

/// An assignment of SET.
#[derive(Clone, Debug, PartialEq)]
pub struct Assignment {
    /// What is assigned to.
    pub target: AssignmentTarget,
    /// The value.
    pub value: Expr,
}

/// What an assignment assigns to.
#[derive(Clone, Debug, PartialEq)]
pub enum AssignmentTarget {
    /// One column, or a part of it.
    One(Target),
    /// Several, which a row is assigned to.
    Tuple(Vec<Target>),
}

/// UPDATE.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The table.
    pub table: RangeVar,
    /// SET.
    pub assignments: Vec<Assignment>,
    /// FROM.
    pub from: Vec<TableRef>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// RETURNING.
    pub returning: Option<Vec<SelectItem>>,
}

/// DELETE.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The table.
    pub table: RangeVar,
    /// USING.
    pub using: Vec<TableRef>,
    /// WHERE.
    pub selection: Option<Expr>,
    /// RETURNING.
    pub returning: Option<Vec<SelectItem>>,
}

/// MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct Merge {
    /// The table.
    pub table: RangeVar,
    /// USING.
    pub source: TableRef,
    /// ON.
    pub on: Box<Expr>,
    /// WHEN.
    pub clauses: Vec<MergeClause>,
}

/// WHEN of MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeClause {
    /// MATCHED, or NOT MATCHED.
    pub clause_kind: MergeClauseKind,
    /// AND.
    pub predicate: Option<Expr>,
    /// THEN.
    pub action: MergeAction,
}

/// Which rows a clause of MERGE speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum MergeClauseKind {
    Matched,
    NotMatched,
}

/// What a clause of MERGE does.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum MergeAction {
    DoNothing,
    Delete,
    Update(Vec<Assignment>),
    Insert(MergeInsertExpr),
}

/// INSERT of MERGE.
#[derive(Clone, Debug, PartialEq)]
pub struct MergeInsertExpr {
    /// What is given values.
    pub columns: Vec<Target>,
    /// OVERRIDING.
    pub overriding: Option<Overriding>,
    /// The row; none is that of DEFAULT VALUES.
    pub values: Option<Vec<Expr>>,
}
