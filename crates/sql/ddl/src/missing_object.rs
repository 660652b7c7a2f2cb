//! What is said of objects that do not exist.
//!
//! Does not: look for them.

use crate::DdlContext;
use logstead_sql_types::error::Result;
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

pub(crate) fn no_schema(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_SCHEMA_NAME,
        format!("schema \"{name}\" does not exist"),
    )
}

/// 42704 for a role.
pub(crate) fn no_role(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("role \"{name}\" does not exist"),
    )
}

/// 3D000.
pub(crate) fn no_database(name: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_CATALOG_NAME,
        format!("database \"{name}\" does not exist"),
    )
}

/// Notice (`IF EXISTS`) or error for an object that does not exist.
pub(crate) fn missing_object(
    name: &str,
    what: &str,
    code: SqlState,
    if_exists: bool,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    if !if_exists {
        return Err(SqlError::new(
            code,
            format!("{what} \"{name}\" does not exist"),
        ));
    }
    cx.notice(
        SqlState::SUCCESSFUL_COMPLETION,
        format!("{what} \"{name}\" does not exist, skipping"),
    );
    Ok(())
}
