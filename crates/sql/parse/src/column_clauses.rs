//! What definitions of columns say that the grammar library lacks, or takes where PostgreSQL does not: COMPRESSION,
//! and conditions behind DEFAULT.
//!
//! COMPRESSION travels as a collation under a name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// What the mark begins with; the method follows.
pub(super) const COMPRESSION: &str = "compression=";

/// The method of compression that a collation stands for.
pub fn compression(collation: &ast::ObjectName) -> Option<&str> {
    match collation.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => {
            let rest = name.value.strip_prefix(EXPRESSION_MARK)?;
            rest.strip_prefix(COMPRESSION)
        }
        _ => None,
    }
}
