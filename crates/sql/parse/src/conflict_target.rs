//! The target of ON CONFLICT, whose expressions and predicate the grammar library has no place for.

/// Marks the text of an expression in the column list of ON CONFLICT; twice, of its predicate. No statement has the byte.
pub const EXPRESSION_MARK: char = '\0';
