//! Which part of the server handles a statement.

use crate::ast::Stmt;
use std::sync::Arc;

/// Who handles a statement.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE: `plan::plan_statement`.
    Query,
    /// What is read as the grammar gives it: the catalog, or the session. The tree is
    /// [`Statement::Utility`](crate::lowered::Statement::Utility).
    Utility(Arc<Stmt>),
}
