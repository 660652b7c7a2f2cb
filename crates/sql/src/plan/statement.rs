//! From a parsed statement to something that can be run.

use super::{OutputColumn, Plan};
use crate::catalog::{Catalog, Relation};
use crate::error::{Result, SqlError};
use crate::func::Context;
use crate::value::{Oid, SqlType};
use sqlparser::ast;
use std::sync::Arc;

/// What planning reads.
pub struct PlanContext<'a> {
    /// The catalog snapshot; the plan is good for its version only.
    pub catalog: &'a Arc<Catalog>,
    /// Schemas searched for unqualified names, as the setting has them.
    pub search_path: &'a [String],
    /// Parameter types the client declared; `None` (or beyond the end) is inferred.
    pub param_types: &'a [Option<Oid>],
    /// The session: literals such as 'now'::timestamptz or 't'::regclass are read when the statement is planned.
    pub session: &'a dyn Context,
    /// Estimated rows of a relation.
    pub rows_of: &'a dyn Fn(&Relation) -> f64,
}

/// Kinds of planned statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Command {
    Select,
    Insert,
    Update,
    Delete,
}

/// A statement ready to run.
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// Result columns; empty when the statement returns no rows (INSERT without RETURNING).
    pub columns: Vec<OutputColumn>,
    /// Types of all parameters, declared or inferred.
    pub param_types: Vec<SqlType>,
    /// Which statement: decides the command tag.
    pub command: Command,
    /// Stored tables only read, each once: to be locked for reading.
    pub tables_read: Vec<Arc<Relation>>,
    /// Stored tables written or whose rows are locked, each once: to be locked for writing.
    pub tables_written: Vec<Arc<Relation>>,
    /// Version of the catalog it was planned with.
    pub catalog_version: u64,
    /// Calls volatile functions.
    pub volatile: bool,
    /// Writes nothing and locks no rows (nextval and the like count as writing).
    pub read_only: bool,
    /// Literals were read with the session's clock, time zone or search path: not to be shared between sessions.
    pub session_dependent: bool,
}

/// Binds and plans one SELECT, VALUES, INSERT, UPDATE or DELETE. `text` is the statement's own text (`Parsed::sql`): error
/// positions count its characters from 1.
pub fn plan_statement(
    statement: &ast::Statement,
    text: &str,
    cx: &PlanContext<'_>,
) -> Result<Planned> {
    let _ = (text, cx.catalog);
    Err(SqlError::unsupported(format!("statement {statement}")))
}
