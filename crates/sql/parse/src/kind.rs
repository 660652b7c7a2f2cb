//! Which part of the server handles a statement.

use super::constraints::AlterConstraint;
use super::views::ViewCommand;
use crate::ast::Stmt;
use crate::lowered::Statement;
use std::sync::Arc;

/// Who handles a statement, and under which command tag where the statement alone decides it. Of a command that is
/// here the tree is [`Statement::Command`].
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE: `plan::plan_statement`.
    Query,
    /// CREATE SCHEMA with what is made in it, in the order in which that is done: the session, one after the other.
    SchemaElements(Arc<Vec<super::Parsed>>),
    /// CREATE TABLE AS EXECUTE, which stands here; its own query stands for that one's.
    TableOfExecute(Arc<super::StatementTree>),
    /// What is read as the grammar gives it: the catalog, or the session.
    Utility(Arc<Stmt>),
    /// CREATE and ALTER of a table, CREATE of an index or a schema: the catalog. The command tag.
    Ddl(&'static str),
    /// ALTER TABLE ... ALTER CONSTRAINT: the catalog.
    AlterConstraint(Box<AlterConstraint>),
    /// Views: the catalog.
    View(Box<ViewCommand>),
    /// EXECUTE.
    Prepared,
    /// EXPLAIN.
    Explain,
    /// Known SQL that is not supported, by name: answered with 0A000.
    Unsupported(&'static str),
}

/// Decides by the tree's kind alone.
pub(super) fn classify(statement: &Statement) -> StatementKind {
    use StatementKind as K;
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_) => K::Query,
        Statement::CreateTable(table) if table.query.is_some() => K::Ddl("SELECT"),
        Statement::CreateTable(_) => K::Ddl("CREATE TABLE"),
        Statement::CreateIndex(_) => K::Ddl("CREATE INDEX"),
        Statement::CreateSchema { .. } => K::Ddl("CREATE SCHEMA"),
        Statement::AlterTable(_) => K::Ddl("ALTER TABLE"),
        Statement::CreateMaterializedView { .. } => K::Unsupported("CREATE VIEW"),
        Statement::Execute { .. } => K::Prepared,
        Statement::Explain { .. } => K::Explain,
        Statement::Command => K::Unsupported("this statement"),
    }
}
