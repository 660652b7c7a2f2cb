//! ALTER INDEX ... ALTER COLUMN ... SET STATISTICS, SET TABLESPACE, ATTACH PARTITION and DEPENDS ON EXTENSION.

use super::index::{change_options, find_index};
use super::{DdlContext, kept};
use logstead_sql_catalog::attributes::{self, Attribute};
use logstead_sql_parse::IndexAction;
use logstead_sql_parse::lowered as ast;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// Runs it.
pub(super) async fn execute(
    name: &ast::ObjectName,
    if_exists: bool,
    action: &IndexAction,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let Some(oid) = find_index(name, if_exists, cx)? else {
        return Ok(());
    };
    let catalog = cx.catalog()?;
    let table = catalog.index_tables.get(&oid).copied();
    let table = table.and_then(|table| catalog.relations.get(&table));
    let found = table.and_then(|table| Some((table, table.indexes.iter().find(|i| i.oid == oid)?)));
    let (table, index) = found.ok_or_else(|| SqlError::internal("an index without a table"))?;
    cx.must_own_index(table, &index.name)?;
    match action {
        IndexAction::Statistics { column, target } => {
            let at = column.checked_sub(1).unwrap_or(usize::MAX);
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
                        key.name(table),
                        index.name
                    ),
                )
                .hint("Alter statistics on table column instead."));
            }
            let value = kept::statistics_target(*target, cx)?;
            change_options(name, if_exists, cx, |all| {
                attributes::set(all, Attribute::Statistics(at), value.as_deref());
            })
            .await
        }
        IndexAction::Tablespace(tablespace) if tablespace == "pg_default" => Ok(()),
        IndexAction::Tablespace(tablespace) => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("tablespace \"{tablespace}\" does not exist"),
        )),
        IndexAction::AttachPartition => Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!(
                "ALTER action ATTACH PARTITION cannot be performed on relation \"{}\"",
                index.name
            ),
        )
        .detail("This operation is not supported for indexes.")),
        IndexAction::DependsOnExtension => Err(SqlError::unsupported(
            "ALTER INDEX ... DEPENDS ON EXTENSION",
        )),
    }
}
