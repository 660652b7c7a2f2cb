//! Which part of the server handles a statement.

use crate::ast::Stmt;
use std::sync::Arc;

/// Who handles a statement.
#[derive(Clone, Debug)]
pub enum StatementKind {
    /// SELECT, VALUES, INSERT, UPDATE, DELETE, MERGE: `plan::plan_statement`.
    Query,
    /// The others: the catalog, or the session.
    Utility(Arc<Stmt>),
}
