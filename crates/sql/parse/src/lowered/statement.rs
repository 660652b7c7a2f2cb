//! Statements that are planned.

use super::{Delete, Insert, Merge, Query, SetExpr, Update};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Statement {
    Query(Box<Query>),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Merge),
    /// None of these: it is read as the grammar gives it ([`StatementKind`](crate::StatementKind)).
    Utility,
}

impl Statement {
    /// The word that it begins with.
    pub fn word(&self) -> &'static str {
        match self {
            Statement::Query(query) => match query.with {
                Some(_) => "WITH",
                None => body_word(&query.body),
            },
            Statement::Insert(_) => "INSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::Utility => "",
        }
    }
}

/// The word that a query begins with, apart from its parentheses.
fn body_word(body: &SetExpr) -> &'static str {
    let mut body = body;
    loop {
        body = match body {
            SetExpr::Select(_) => return "SELECT",
            SetExpr::Values(_) => return "VALUES",
            SetExpr::Query(query) => &query.body,
            SetExpr::SetOperation { left, .. } => left,
            SetExpr::Insert(_) => return "INSERT",
            SetExpr::Update(_) => return "UPDATE",
            SetExpr::Delete(_) => return "DELETE",
            SetExpr::Merge(_) => return "MERGE",
        };
    }
}
