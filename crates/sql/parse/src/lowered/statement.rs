//! Statements.

use super::{
    AlterTable, CreateIndex, CreateTable, Delete, Expr, Ident, Insert, Merge, ObjectName, Query,
    SetExpr, Update,
};

/// A statement.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Statement {
    /// All that is said of it is in its [`StatementKind`](crate::StatementKind).
    Command,
    Query(Box<Query>),
    Insert(Insert),
    Update(Update),
    Delete(Delete),
    Merge(Merge),
    CreateTable(CreateTable),
    CreateIndex(CreateIndex),
    CreateSchema {
        schema_name: SchemaName,
        if_not_exists: bool,
    },
    /// What EXPLAIN explains of CREATE MATERIALIZED VIEW.
    CreateMaterializedView {
        name: ObjectName,
        if_not_exists: bool,
        query: Box<Query>,
    },
    AlterTable(AlterTable),
    Execute {
        name: Ident,
        parameters: Vec<Expr>,
    },
    Explain {
        statement: Box<Statement>,
        options: Vec<UtilityOption>,
    },
}

impl Statement {
    /// The word that it begins with, of a statement that is no DDL.
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
            Statement::Execute { .. } => "EXECUTE",
            Statement::Explain { .. } => "EXPLAIN",
            Statement::AlterTable(_) => "ALTER",
            Statement::CreateTable(_)
            | Statement::CreateIndex(_)
            | Statement::CreateSchema { .. }
            | Statement::CreateMaterializedView { .. } => "CREATE",
            Statement::Command => "",
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

/// The name of a new schema, its owner, or both.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "what is said")]
pub enum SchemaName {
    Simple(ObjectName),
    UnnamedAuthorization(Ident),
    NamedAuthorization(ObjectName, Ident),
}

/// An option of EXPLAIN.
#[derive(Clone, Debug, PartialEq)]
pub struct UtilityOption {
    /// Its name.
    pub name: Ident,
    /// Its value.
    pub arg: Option<String>,
}
