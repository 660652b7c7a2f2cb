//! What is temporary: schemas of sessions by their names.
//!
//! Invariant: an object is temporary if and only if its schema is ([`Relation::is_temporary`]): no other schema's name
//! begins so, since the prefix is reserved.
//!
//! Does not: hold a session's objects (`temp_objects`), or know which types they use (`types_in_use`).

use super::Relation;

/// What the names of temporary schemas begin with.
pub(crate) const PREFIX: &str = "pg_temp_";

/// By which name a session calls its own.
pub const ALIAS: &str = "pg_temp";

/// Is it the name of a session's temporary schema?
pub fn is_temporary_schema(name: &str) -> bool {
    name.starts_with(PREFIX)
}

/// What COMMIT does with a temporary table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnCommit {
    /// Empties it.
    DeleteRows,
    /// Drops it.
    Drop,
}

impl Relation {
    /// Is it one session's own?
    pub fn is_temporary(&self) -> bool {
        is_temporary_schema(&self.schema_name)
    }
}
