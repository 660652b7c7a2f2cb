//! ALTER TABLE ... ADD CONSTRAINT ... USING INDEX: a unique index becomes a constraint's.

use super::{DdlContext, distribution, table_rewrite};
use crate::relations::{name_taken, wrong_kind};
use logstead_sql_catalog::{Constraint, ConstraintKind, IndexDef, Relation};
use logstead_sql_parse::ast;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::{IndexId, SqlState};
use std::sync::Arc;

fn unusable(message: String) -> SqlError {
    SqlError::new(SqlState::WRONG_OBJECT_TYPE, message)
        .detail("Cannot create a primary key or unique constraint using such an index.")
}

/// The index, if it can serve a constraint.
fn usable<'t>(table: &'t Relation, name: &str, cx: &mut DdlContext<'_>) -> Result<&'t IndexDef> {
    let state = SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE;
    let catalog = cx.catalog()?;
    let found = catalog.names.get(&(table.schema, name.to_owned()));
    let Some(oid) = found.filter(|oid| catalog.index_tables.contains_key(oid)) else {
        return Err(match found {
            Some(_) => wrong_kind(name, "an index"),
            None => SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!("index \"{name}\" does not exist"),
            ),
        });
    };
    let Some(index) = table.indexes.iter().find(|i| i.oid == *oid) else {
        let message = format!(
            "index \"{name}\" does not belong to table \"{}\"",
            table.name
        );
        return Err(SqlError::new(state, message));
    };
    let owned = table.constraints.iter().any(|c| {
        matches!(c.kind, ConstraintKind::PrimaryKey(i) | ConstraintKind::Unique(i) if i == *oid)
    });
    if owned {
        let message = format!("index \"{name}\" is already associated with a constraint");
        return Err(SqlError::new(state, message));
    }
    if !index.unique {
        return Err(unusable(format!("\"{name}\" is not a unique index")));
    }
    if index.positions().is_none() {
        return Err(unusable(format!("index \"{name}\" contains expressions")));
    }
    if index.predicate.is_some() {
        return Err(unusable(format!("\"{name}\" is a partial index")));
    }
    if let Some(at) = index.columns.iter().position(|c| c.desc || c.nulls_first) {
        return Err(unusable(format!(
            "index \"{name}\" column number {} does not have default sorting behavior",
            at + 1
        )));
    }
    Ok(index)
}

/// Runs it; the caller holds the table's ACCESS EXCLUSIVE lock.
pub(super) async fn add(
    constraint: &ast::Constraint,
    index: &ast::Name,
    table: &Arc<Relation>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let primary = matches!(constraint.kind, ast::ConstraintKind::PrimaryKey(_));
    let timing = super::columns::timing(constraint.deferrable, constraint.initdeferred);
    let index = index.to_string();
    let mut index = usable(table, &index, cx)?.clone();
    let name = match &constraint.conname {
        Some(name) => name.to_string(),
        None => index.name.clone(),
    };
    if table.constraints.iter().any(|c| c.name == name) {
        return Err(SqlError::new(
            SqlState::DUPLICATE_OBJECT,
            format!(
                "constraint \"{name}\" for relation \"{}\" already exists",
                table.name
            ),
        ));
    }
    if name != index.name {
        let message = format!(
            "ALTER TABLE / ADD CONSTRAINT USING INDEX will rename index \"{}\" to \"{name}\"",
            index.name
        );
        cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
    }
    let has_primary = table
        .constraints
        .iter()
        .any(|c| matches!(c.kind, ConstraintKind::PrimaryKey(_)));
    if primary && has_primary {
        return Err(SqlError::new(
            SqlState::INVALID_TABLE_DEFINITION,
            format!(
                "multiple primary keys for table \"{}\" are not allowed",
                table.name
            ),
        ));
    }
    let taken = (table.schema, name.clone());
    if name != index.name && cx.catalog()?.names.contains_key(&taken) {
        return Err(name_taken(&name));
    }
    let mut changed = Relation::clone(table);
    if primary {
        for position in index.positions().unwrap_or_default() {
            if let Some(column) = changed.columns.get_mut(position)
                && !column.not_null
            {
                column.not_null = true;
                table_rewrite::validate_not_null(cx, table, position).await?;
            }
        }
    }
    index.name.clone_from(&name);
    index.primary = primary;
    let kind = if primary {
        ConstraintKind::PrimaryKey(index.oid)
    } else {
        ConstraintKind::Unique(index.oid)
    };
    if timing.is_deferrable() {
        // Who writes checks its keys no more: one that does not is built in its place.
        let old = table.indexes.iter().find(|i| i.oid == index.oid).cloned();
        index.deferrable = true;
        index.storage = IndexId(cx.new_oid()?);
        cx.attach(table, &Arc::new(index.clone())).await?;
        let storage = cx.storage(table)?;
        if let Some(old) = old {
            cx.state.detached(storage, old);
        }
    }
    cx.update_index(table.schema, index).await?;
    let oid = cx.new_oid()?;
    let mut constraint = Constraint::new(oid, name, kind);
    constraint.timing = timing;
    changed.constraints.push(Arc::new(constraint));
    cx.update_relation(changed).await?;
    match primary {
        true => distribution::follow_primary_key(table.oid, cx).await,
        false => Ok(()),
    }
}
