//! CREATE TABLE (..., LIKE source INCLUDING ..., ...): among columns, where the grammar library has no place for it.
//!
//! It travels as a column whose name nobody can write and whose type is the source's name.

/// What the name of such a column begins with; the letters of `OPTIONS` that are included follow.
pub const LIKE_MARK: &str = "\0like";

/// What can be included, each with its letter.
pub(super) const OPTIONS: [(&str, char); 9] = [
    ("comments", 'c'),
    ("compression", 'p'),
    ("constraints", 'k'),
    ("defaults", 'd'),
    ("generated", 'g'),
    ("identity", 'i'),
    ("indexes", 'x'),
    ("statistics", 's'),
    ("storage", 'o'),
];
