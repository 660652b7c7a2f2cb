//! MERGE: what the grammar library lacks of it (DEFAULT VALUES, OVERRIDING), and what it takes that PostgreSQL does not.

/// DEFAULT VALUES of an INSERT of MERGE. As the two that follow it travels as a name in its list of columns, which
/// nobody can write.
pub const DEFAULT_VALUES: &str = "\0default";
/// OVERRIDING SYSTEM VALUE.
pub const OVERRIDING_SYSTEM: &str = "\0system";
/// OVERRIDING USER VALUE.
pub const OVERRIDING_USER: &str = "\0user";
