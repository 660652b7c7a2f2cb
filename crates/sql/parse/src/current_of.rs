//! WHERE CURRENT OF, which the grammar library lacks: it travels as a comparison of a name that nobody can write with the cursor's.

use sqlparser::ast;

/// The name that stands for CURRENT OF.
pub(crate) const CURRENT_OF: &str = "\0current of";

/// The cursor of `WHERE CURRENT OF`, if a condition is that.
pub fn current_of(condition: &ast::Expr) -> Option<&ast::Ident> {
    match condition {
        ast::Expr::BinaryOp { left, right, .. } => match (left.as_ref(), right.as_ref()) {
            (ast::Expr::Identifier(mark), ast::Expr::Identifier(name))
                if mark.value == CURRENT_OF =>
            {
                Some(name)
            }
            _ => None,
        },
        _ => None,
    }
}
