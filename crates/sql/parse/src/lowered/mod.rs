//! The tree that the binder and the catalog's printers read: queries, DML and expressions of [`ast`](crate::ast),
//! lowered.
//!
//! Owns: its nodes ([`Statement`], [`SelectStmt`], [`Expr`] and what they consist of) and who goes through them ([`Visit`],
//! [`VisitMut`]). `lower` makes it; readers make parts of
//! it where they show what is kept in another form.
//!
//! Invariant: two nodes are equal if they say the same, wherever they stand.

#![allow(
    clippy::large_enum_variant,
    reason = "few nodes of a statement are of the large kinds, and readers match into them"
)]

mod call;
mod change;
mod expr;
mod location;
mod query;
mod statement;
mod walk;
mod xml;

pub use call::{FuncArg, FuncCall};
pub use change::{
    DeleteStmt, IndexElem, IndexKey, InferClause, InsertSource, InsertStmt, MergeAction, MergeStmt,
    MergeWhenClause, OnConflictClause, SetClause, UpdateStmt,
};
pub use expr::{
    AArrayExpr, AExpr, AIndirection, BetweenExpr, BoolExpr, BooleanTest, CaseExpr, CaseWhen,
    CoalesceExpr, CollateClause, Expr, FrameBound, GroupingFunc, InExpr, Indirection, LikeExpr,
    MinMaxExpr, NullTest, RowExpr, SortBy, SubLink, SubLinkKind, TypeCast, WindowDef, WindowFrame,
};
pub use query::{
    CommonTableExpr, Distinct, GroupingItem, JoinExpr, JoinQual, LimitCount, RangeFunction,
    RangeSubselect, RangeTableSample, ResTarget, SelectBody, SelectCore, SelectLimit, SelectStmt,
    SetOp, TableRef, WithClause,
};
pub use statement::Statement;
pub use walk::{
    Visit, VisitMut, Visitor, VisitorMut, visit_expressions, visit_expressions_mut, visit_relations,
};
pub use xml::{RangeTableFunc, RangeTableFuncCol, XmlExpr, XmlNamedArg, XmlSerialize};
