//! Which past a session reads: the settings that name it, and the point that is opened.
//!
//! Does not: open points (`as_of`).

use logstead_engine::AsOfDatabase;
use logstead_sql_catalog::Catalog;
use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;
use std::rc::Rc;
use std::sync::Arc;

/// The setting.
pub(crate) const AS_OF: &str = "logstead.as_of";

/// What it stands for, to be shown.
pub(crate) const AS_OF_POINT: &str = "logstead.as_of_point";

/// The point that a session reads.
pub(crate) struct AsOfSnapshot {
    /// The setting's value.
    pub(crate) value: Rc<str>,
    pub(crate) past: Arc<AsOfDatabase>,
    pub(crate) catalog: Arc<Catalog>,
}

/// 25001: the transaction reads what it reads.
pub(crate) fn as_of_too_late() -> SqlError {
    SqlError::new(
        SqlState::ACTIVE_SQL_TRANSACTION,
        "logstead.as_of must be set before any query",
    )
}

/// A transaction that reads the past does not write.
pub(crate) fn read_write() -> SqlError {
    SqlError::unsupported("transaction read-write mode while logstead.as_of is set")
}

/// Is it this setting?
pub(crate) fn is_as_of(name: &str) -> bool {
    name.eq_ignore_ascii_case(AS_OF)
}
