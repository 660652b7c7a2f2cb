//! What ALTER TABLE may say that the grammar library lacks: RESET of storage parameters, and COLLATE behind a column's new type.
//!
//! RESET travels as a SET to a value that nobody can write; the collation as that of the USING expression, under a name that nobody can
//! write.

use super::conflict_target::EXPRESSION_MARK;
use sqlparser::ast;

/// Whether the value of a SET stands for RESET.
pub fn is_reset(value: &ast::Expr) -> bool {
    matches!(value, ast::Expr::Identifier(name) if name.value.starts_with(EXPRESSION_MARK))
}

/// What USING says, and the collation that stood behind the type.
pub fn type_collation(using: Option<&ast::Expr>) -> (Option<&ast::Expr>, Option<&ast::Ident>) {
    let (said, collation) = match using {
        Some(ast::Expr::Collate { expr, collation }) => match collation.0.as_slice() {
            [ast::ObjectNamePart::Identifier(name)] if name.value.starts_with(EXPRESSION_MARK) => {
                (Some(&**expr), Some(name))
            }
            _ => return (using, None),
        },
        _ => return (using, None),
    };
    (said.filter(|expr| !is_reset(expr)), collation)
}
