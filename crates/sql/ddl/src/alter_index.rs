//! ALTER INDEX ... SET and RESET of storage parameters, ALTER COLUMN ... SET STATISTICS, SET TABLESPACE, ATTACH
//! PARTITION and DEPENDS ON EXTENSION.

use super::index::{change_options, find_index, set_parameters};
use super::object_address::relation_of;
use super::{DdlContext, relation_attributes};
use crate::pg_catalog::calls::QualifiedName;
use logstead_sql_catalog::inert_options::{self, Attribute};
use logstead_sql_catalog::{IndexDef, Relation};
use logstead_sql_parse::ast::{
    AlterObjectDependsStmt, AlterTableCmd as Cmd, AlterTableStmt, ColumnTarget,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// The index of a name, with its table, if it is the role's; none if it is not there and need not be.
fn owned_index(
    name: &impl QualifiedName,
    missing_ok: bool,
    cx: &mut DdlContext<'_>,
) -> Result<Option<(Arc<Relation>, Arc<IndexDef>)>> {
    let Some(oid) = find_index(name, missing_ok, cx)? else {
        return Ok(None);
    };
    let catalog = cx.catalog()?;
    let table = catalog.index_tables.get(&oid).copied();
    let table = table.and_then(|table| catalog.relations.get(&table));
    let found = table.and_then(|table| Some((table, table.indexes.iter().find(|i| i.oid == oid)?)));
    let (table, index) = found.ok_or_else(|| SqlError::internal("an index without a table"))?;
    cx.must_own_index(table, &index.name)?;
    Ok(Some((Arc::clone(table), Arc::clone(index))))
}

/// Runs ALTER INDEX ... DEPENDS ON EXTENSION.
pub(super) fn depends_on_extension(
    stmt: &AlterObjectDependsStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    owned_index(relation_of(&stmt.object)?, false, cx)?;
    Err(SqlError::unsupported(
        "ALTER INDEX ... DEPENDS ON EXTENSION",
    ))
}

/// Runs ALTER INDEX.
pub(super) async fn execute(stmt: &AlterTableStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (name, missing_ok) = (&stmt.relation, stmt.missing_ok);
    let [cmd] = stmt.cmds.as_slice() else {
        return Err(this_form());
    };
    let (options, is_reset) = match cmd {
        Cmd::SetRelOptions(options) => (options, false),
        Cmd::ResetRelOptions(options) => (options, true),
        _ => return alter_index(stmt, cmd, cx).await,
    };
    set_parameters(name, missing_ok, options, is_reset, cx).await
}

fn this_form() -> SqlError {
    SqlError::unsupported("this form of ALTER INDEX")
}

async fn alter_index(stmt: &AlterTableStmt, cmd: &Cmd, cx: &mut DdlContext<'_>) -> Result<()> {
    let (name, missing_ok) = (&stmt.relation, stmt.missing_ok);
    let is_known = matches!(
        cmd,
        Cmd::SetStatistics {
            column: ColumnTarget::Number(_),
            ..
        } | Cmd::SetTableSpace(_)
            | Cmd::AttachPartition { .. }
    );
    if !is_known {
        return Err(this_form());
    }
    let Some((table, index)) = owned_index(name, missing_ok, cx)? else {
        return Ok(());
    };
    match cmd {
        Cmd::SetStatistics {
            column: ColumnTarget::Number(column),
            target,
        } => {
            let at = usize::try_from(*column).ok();
            let at = at.and_then(|at| at.checked_sub(1)).unwrap_or(usize::MAX);
            let state = SqlState::UNDEFINED_COLUMN;
            if at >= index.columns.len() + index.include.len() {
                let message = format!(
                    "column number {column} of relation \"{}\" does not exist",
                    index.name
                );
                return Err(SqlError::new(state, message));
            }
            let Some(key) = index.columns.get(at) else {
                let position = index.include.get(at - index.columns.len());
                let included = position.and_then(|p| table.columns.get(*p));
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "cannot alter statistics on included column \"{}\" of index \"{}\"",
                        included.map_or("?", |c| c.name.as_str()),
                        index.name
                    ),
                ));
            };
            if key.position().is_some() {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!(
                        "cannot alter statistics on non-expression column \"{}\" of index \"{}\"",
                        key.name(&table),
                        index.name
                    ),
                )
                .hint("Alter statistics on table column instead."));
            }
            let value = relation_attributes::statistics_target(*target, cx)?;
            change_options(name, missing_ok, cx, |all| {
                inert_options::set(all, Attribute::Statistics(at), value.as_deref());
                Ok(())
            })
            .await
        }
        Cmd::SetTableSpace(tablespace) if &**tablespace == "pg_default" => Ok(()),
        Cmd::SetTableSpace(tablespace) => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("tablespace \"{tablespace}\" does not exist"),
        )),
        _ => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
                index.name
            ),
        )
        .detail("This operation is not supported for indexes.")),
    }
}
