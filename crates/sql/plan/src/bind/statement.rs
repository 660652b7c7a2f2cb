//! From a parsed statement to something that can be run: bound, planned, and what sessions and their caches have to
//! know of it ([`Planned`]).

use super::Binder;
use crate::permissions::Bound;
use crate::planner::has_sublink;
use crate::query::QueryTree;
use crate::{OutputColumn, Plan, PlanContext, stack_depth, walk};
use logstead_sql_catalog::Relation;
use logstead_sql_parse::ast;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Kinds of planned statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum Command {
    Select,
    Insert,
    Update,
    Delete,
    Merge,
}

/// A statement ready to run.
pub struct Planned {
    /// The plan, for whoever may run it.
    pub plan: Bound<Plan>,
    /// Stack that it takes to run, show or drop it; 0 if any has it.
    pub stack_bytes: usize,
    /// Result columns; empty when the statement returns no rows (INSERT without RETURNING).
    pub columns: Vec<OutputColumn>,
    /// Which statement: decides the command tag.
    pub command: Command,
    /// Version of the catalog it was planned with.
    pub catalog_version: u64,
    /// Calls volatile functions.
    pub volatile: bool,
    /// Writes nothing and locks no rows (nextval and the like count as writing).
    pub read_only: bool,
    /// A table with row security is read or written: the plan is for the role that it was made for, and for
    /// `row_security` as it was.
    pub role_matters: bool,
    /// Literals were read with the session's clock, time zone or search path: not to be shared between sessions.
    pub session_dependent: bool,
}

/// Binds and plans one SELECT, VALUES, INSERT, UPDATE, DELETE or MERGE. `text` is the whole text that was given to
/// [`logstead_sql_parse::parse`]: error positions count its characters from 1.
pub fn plan_statement(statement: &ast::Stmt, text: &str, cx: &PlanContext<'_>) -> Result<Planned> {
    let mut binder = Binder::new(cx, text);
    binder.see_variables();
    binder.top = statement.with_clause().is_some();
    let (body, command) = match statement {
        ast::Stmt::Select(query) => (
            binder.deeper(|b| b.query_body(query, true))?,
            Command::Select,
        ),
        ast::Stmt::Merge(merge)
            if { merge.with_clause.as_ref() }.is_some_and(|with| with.recursive) =>
        {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "WITH RECURSIVE is not supported for MERGE statement",
            ));
        }
        other => (binder.with_change(other)?, command(other)),
    };
    let plan = binder.deeper(|b| b.finish(body))?;
    planned(binder, plan, command)
}

/// Plans an UPDATE of all rows of a table that computes what stands at these positions for indexes, and nothing else.
/// Nobody's rights to the table are asked; those to the functions are.
pub fn plan_computed(
    table: &Arc<Relation>,
    positions: &[usize],
    cx: &PlanContext<'_>,
) -> Result<Planned> {
    let mut binder = Binder::new(cx, "");
    let change = binder.update_computed(table, positions)?;
    let plan = binder.finish(QueryTree::Change(Box::new(change)))?;
    planned(binder, plan, Command::Update)
}

/// What is planned once all of it is bound.
fn planned(binder: Binder<'_>, plan: Plan, command: Command) -> Result<Planned> {
    let mut lost = Vec::new();
    walk::plan_ids(&plan, &mut lost);
    if !lost.is_empty() {
        return Err(SqlError::internal(
            "a column reference was left without a row",
        ));
    }
    debug_assert!(!has_sublink(&plan), "a subquery was left unplanned");
    let changed = |oid: RelationId| {
        let acted = &binder.constraint_writes;
        let mut written = binder.tables_written.iter().chain(acted);
        written.any(|table| table.oid == oid)
    };
    let read = &binder.read_by_volatile;
    if let Some((_, name)) = read.iter().find(|(oid, _)| changed(*oid)) {
        return Err(SqlError::unsupported(format!(
            "calling volatile function {name} in a statement that changes a table that it reads"
        ))
        .hint("A function that is STABLE sees the table as it was before the statement."));
    }
    // `constraint_writes` are written, too.
    let is_read_only = binder.read_only && binder.constraint_writes.is_empty();
    Ok(Planned {
        columns: plan.columns.clone(),
        stack_bytes: stack_depth::stack_bytes(&plan),
        command,
        catalog_version: binder.cx.catalog.version,
        volatile: binder.volatile,
        read_only: is_read_only,
        role_matters: binder.role_matters,
        session_dependent: binder.session_dependent,
        plan: binder.into_bound(plan)?,
    })
}

fn command(statement: &ast::Stmt) -> Command {
    match statement {
        ast::Stmt::Insert(_) => Command::Insert,
        ast::Stmt::Update(_) => Command::Update,
        ast::Stmt::Delete(_) => Command::Delete,
        ast::Stmt::Merge(_) => Command::Merge,
        _ => Command::Select,
    }
}
