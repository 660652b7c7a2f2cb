//! Which types may be columns of an index, and so of a key or a distribution.

use crate::DdlContext;
use crate::pg_catalog::operator_class;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_types::SqlState;

/// Fails for a type that cannot be in an index.
pub(super) fn check_type(ty: SqlType, cx: &mut DdlContext<'_>) -> Result<()> {
    if operator_class(ty.oid) != 0 {
        return Ok(());
    }
    let ty = cx.format_type(SqlType::of(ty.oid))?;
    Err(SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("data type {ty} has no default operator class for access method \"btree\""),
    )
    .hint("You must specify an operator class for the index or define a default operator class for the data type."))
}
