//! UNLOGGED tables: they are logged as all are, and told and dumped as they were said to be.

use super::DdlContext;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::inert_options::{self, Attribute};
use logstead_sql_catalog::temporary::is_temporary_schema;
use logstead_sql_catalog::{Catalog, Relation, Schema};
use logstead_sql_parse::ast::Persistence;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

fn invalid(message: String) -> SqlError {
    SqlError::new(SqlState::INVALID_TABLE_DEFINITION, message)
}

/// Notes that a new table is unlogged.
pub(super) fn of_new(
    persistence: Persistence,
    schema: &Schema,
    options: &mut Vec<String>,
) -> Result<()> {
    if persistence != Persistence::Unlogged {
        return Ok(());
    }
    if is_temporary_schema(&schema.name) {
        return Err(invalid(
            "only temporary relations may be created in temporary schemas".to_owned(),
        ));
    }
    inert_options::set(options, Attribute::Unlogged, Some("t"));
    Ok(())
}

/// Is a new table with these options unlogged?
pub(super) fn is_unlogged(options: &[String]) -> bool {
    inert_options::get(options, Attribute::Unlogged).is_some()
}

/// Notes of a table's own sequence what its table is.
pub(super) fn of_sequence(
    sequence: RelationId,
    logged: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut all = cx.catalog()?.options_of(sequence).to_vec();
    inert_options::set(&mut all, Attribute::Unlogged, (!logged).then_some("t"));
    cx.state.push(CatalogChange::Options(sequence, all));
    Ok(())
}

/// Who stands in the way of a table's change: one that it references, or that references it, and that would be logged
/// while the other
/// is not.
fn in_the_way(table: &Relation, logged: bool, catalog: &Catalog) -> Option<Arc<Relation>> {
    let other = |relation: &&Arc<Relation>| {
        relation.oid != table.oid && (catalog.persistence_of(relation) == 'p') != logged
    };
    if logged {
        let keys = table.constraints.iter().filter_map(|c| c.foreign());
        let mut parents = keys.filter_map(|key| catalog.relations.get(&key.table));
        return parents.find(other).cloned();
    }
    let references = catalog.references_to(table.oid).into_iter();
    let mut children = references.map(|(child, _)| child);
    children.find(other).cloned()
}

/// SET LOGGED, SET UNLOGGED.
pub(super) async fn set(
    table: &Arc<Relation>,
    logged: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let name = &table.name;
    if table.is_temporary() {
        return Err(invalid(format!(
            "cannot change logged status of table \"{name}\" because it is temporary"
        )));
    }
    let catalog = cx.catalog()?;
    if (catalog.persistence_of(table) == 'p') == logged {
        return Ok(());
    }
    if let Some(other) = in_the_way(table, logged, &catalog) {
        let other = &other.name;
        return Err(invalid(match logged {
            true => format!(
                "could not change table \"{name}\" to logged because it references unlogged table \"{other}\""
            ),
            false => format!(
                "could not change table \"{name}\" to unlogged because it references logged table \"{other}\""
            ),
        }));
    }
    let mut all = catalog.options_of(table.oid).to_vec();
    inert_options::set(&mut all, Attribute::Unlogged, (!logged).then_some("t"));
    cx.state.push(CatalogChange::Options(table.oid, all));
    let columns = table.columns.iter().filter(|c| !c.dropped);
    for sequence in columns.filter_map(|c| c.sequence) {
        of_sequence(sequence, logged, cx)?;
    }
    cx.update_relation(Relation::clone(table)).await.map(drop)
}
