//! ALTER TABLE and ALTER VIEW ... SET SCHEMA, which the grammar library lacks: it travels as a RENAME to a name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// The schema, if a new name of ALTER TABLE ... RENAME says SET SCHEMA.
pub fn schema_of(name: &ast::ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => name.value.strip_prefix(EXPRESSION_MARK),
        _ => None,
    }
}
