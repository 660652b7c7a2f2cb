//! The relations that statements work on: found by number, their columns by name, and what is said of a relation that
//! is of another kind.
//!
//! Does not: find relations by name (`namespace`), lock or change them (`catalog_rows`).

use crate::DdlContext;
use crate::pg_catalog::calls::{self, QualifiedName};
use logstead_engine::WriteError;
use logstead_sql_catalog::distribution::divide;
use logstead_sql_catalog::text::quote_ident;
use logstead_sql_catalog::write_errors::write_error;
use logstead_sql_catalog::{Catalog, Relation, RelationKind, Schema};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::sync::Arc;

/// Position of a column.
pub(crate) fn position_of(table: &Relation, column: &str) -> Result<usize> {
    let found = table
        .columns
        .iter()
        .position(|c| !c.dropped && c.name == column);
    found.ok_or_else(|| no_column(column, &table.name))
}

/// 42809.
pub(crate) fn wrong_kind(name: &str, what: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("\"{name}\" is not {what}"),
    )
}

/// 42501 for a system relation.
pub(crate) fn system_relation(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INSUFFICIENT_PRIVILEGE,
        format!("permission denied: \"{name}\" is a system catalog"),
    )
}

/// 42704 for a constraint of a table.
pub(crate) fn no_constraint(name: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("constraint \"{name}\" of relation \"{table}\" does not exist"),
    )
}

/// The next schema version of a table.
pub(crate) fn next_version(table: &Relation) -> Result<u16> {
    table.schema_version.checked_add(1).ok_or_else(|| {
        SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("table \"{}\" has been altered too often", table.name),
        )
    })
}

/// 42P07.
pub fn name_taken(name: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists"),
    )
}

/// As messages name a kind of relation; none for a system relation.
pub(crate) fn word_of(kind: &RelationKind) -> Option<&'static str> {
    match kind {
        RelationKind::Table => Some("table"),
        RelationKind::Sequence(_) => Some("sequence"),
        RelationKind::View(_) => Some("view"),
        RelationKind::Materialized(..) => Some("materialized view"),
        RelationKind::Virtual(_) => None,
    }
}

/// True if the name is taken and that is all right (IF NOT EXISTS), with its notice.
pub(crate) fn exists(
    cx: &mut DdlContext<'_>,
    schema: &Schema,
    name: &str,
    skip: bool,
) -> Result<bool> {
    if !cx
        .catalog()?
        .names
        .contains_key(&(schema.oid, name.to_owned()))
    {
        return Ok(false);
    }
    if !skip {
        return Err(name_taken(name));
    }
    cx.notice(
        SqlState::DUPLICATE_TABLE,
        format!("relation \"{name}\" already exists, skipping"),
    );
    Ok(true)
}

/// Makes the engine's table of a relation that is new, or has a new storage number.
pub(crate) fn make_storage(cx: &mut DdlContext<'_>, relation: &Relation) -> Result<()> {
    let engine = cx.store.engine();
    let table = match relation.is_temporary() {
        true => engine.create_temporary_table(relation.storage),
        // Nothing would ever be stored there.
        false if cx.store.is_replica() => return Err(write_error(&WriteError::Replica)),
        false => engine.create_table(relation.storage),
    };
    divide(&table, relation);
    cx.state.made(relation.storage);
    Ok(())
}

/// A table's name in messages about dependencies.
pub(crate) fn table_label(catalog: &Catalog, path: &[String], table: &Relation) -> String {
    let name = logstead_sql_catalog::text::relation_text(catalog, table.oid, path);
    name.unwrap_or_else(|| quote_ident(&table.name))
}

/// The table as the transaction sees it now.
pub(crate) fn relation(cx: &mut DdlContext<'_>, oid: RelationId) -> Result<Arc<Relation>> {
    let catalog = cx.catalog()?;
    catalog
        .relations
        .get(&oid)
        .cloned()
        .ok_or_else(|| SqlError::internal("a table vanished while it was altered"))
}

/// 42703 for a column of a table.
pub(crate) fn no_column(column: &str, table: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_COLUMN,
        format!("column \"{column}\" of relation \"{table}\" does not exist"),
    )
}

/// 42P01 for a name that may be qualified.
pub(crate) fn no_relation(name: &(impl QualifiedName + ?Sized)) -> SqlError {
    let text = match calls::name_parts(name) {
        Ok((Some(schema), name)) => format!("{schema}.{name}"),
        Ok((None, name)) => name,
        Err(error) => return error,
    };
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{text}\" does not exist"),
    )
}
