//! ALTER ... SET SCHEMA: a relation goes to another schema, its indexes and the sequences that its columns own with it.

use super::DdlContext;
use super::namespace::altered;
use super::object_address::relation_of;
use logstead_sql_catalog::{IndexDef, Relation, Schema};
use logstead_sql_parse::ast::AlterObjectSchemaStmt;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Runs SET SCHEMA of a table or a view.
pub(super) async fn of_relation(
    stmt: &AlterObjectSchemaStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let name = relation_of(&stmt.object)?;
    let Some(oid) = altered(name, stmt.object_type, stmt.missing_ok, cx)? else {
        return Ok(());
    };
    let is_table_or_view = |r: &Arc<Relation>| r.has_rows() || r.view().is_some();
    if !cx
        .catalog()?
        .relations
        .get(&oid)
        .is_some_and(is_table_or_view)
    {
        return Err(SqlError::unsupported(
            "SET SCHEMA of what is no table and no view",
        ));
    }
    let relation = &super::renames::locked(oid, cx).await?;
    let schema = cx.target_schema(Some(&*stmt.newschema))?;
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
