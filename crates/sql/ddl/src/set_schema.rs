//! ALTER ... SET SCHEMA: a relation goes to another schema, its indexes and the sequences that its columns own with it.

use super::DdlContext;
use logstead_sql_catalog::{IndexDef, Relation, Schema};
use logstead_sql_parse::lowered::AlterTableOperation as Op;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// The schema that an operation of ALTER TABLE or ALTER VIEW moves to, if that is what it does.
pub(super) fn target(operation: &Op) -> Option<&str> {
    match operation {
        Op::SetSchema(schema) => Some(schema),
        _ => None,
    }
}

/// Moves a relation that is locked.
pub(super) async fn execute(
    relation: &Arc<Relation>,
    name: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let schema = cx.target_schema(Some(name))?;
    if schema.oid == relation.schema {
        return Ok(());
    }
    cx.must_create_in(schema.oid)?;
    let temporary = logstead_sql_catalog::temporary::is_temporary_schema(&schema.name);
    if temporary || relation.is_temporary() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot move objects into or out of temporary schemas",
        ));
    }
    let mut all = vec![Arc::clone(relation)];
    let catalog = cx.catalog()?;
    let owned = relation.columns.iter().filter_map(|c| c.sequence);
    all.extend(owned.filter_map(|s| catalog.relations.get(&s).cloned()));
    for moved in all {
        one(&moved, &schema, cx).await?;
    }
    Ok(())
}

async fn one(relation: &Relation, schema: &Schema, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let taken = |name: &str| {
        let message = format!(
            "relation \"{name}\" already exists in schema \"{}\"",
            schema.name
        );
        match catalog.names.contains_key(&(schema.oid, name.to_owned())) {
            true => Err(SqlError::new(SqlState::DUPLICATE_TABLE, message)),
            false => Ok(()),
        }
    };
    taken(&relation.name)?;
    for index in &relation.indexes {
        taken(&index.name)?;
    }
    let mut changed = relation.clone();
    changed.schema = schema.oid;
    changed.schema_name.clone_from(&schema.name);
    cx.update_relation(changed).await?;
    for index in &relation.indexes {
        cx.update_index(schema.oid, IndexDef::clone(index)).await?;
    }
    Ok(())
}
