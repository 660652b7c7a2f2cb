//! Statements that are planned.

use super::{DeleteStmt, InsertStmt, MergeStmt, SelectStmt, UpdateStmt, WithClause};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Statement {
    Select(Box<SelectStmt>),
    Insert(Box<InsertStmt>),
    Update(Box<UpdateStmt>),
    Delete(Box<DeleteStmt>),
    Merge(Box<MergeStmt>),
    /// None of these: it is read as the grammar gives it ([`StatementKind`](crate::StatementKind)).
    Utility,
}

impl Statement {
    /// The WITH in front of it.
    pub fn with_clause(&self) -> Option<&WithClause> {
        match self {
            Statement::Select(query) => query.with_clause.as_deref(),
            Statement::Insert(insert) => insert.with_clause.as_deref(),
            Statement::Update(update) => update.with_clause.as_deref(),
            Statement::Delete(delete) => delete.with_clause.as_deref(),
            Statement::Merge(merge) => merge.with_clause.as_deref(),
            Statement::Utility => None,
        }
    }

    /// What it is called in messages.
    pub fn tag(&self) -> &'static str {
        match self {
            Statement::Select(_) => "SELECT",
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::Utility => "",
        }
    }
}
