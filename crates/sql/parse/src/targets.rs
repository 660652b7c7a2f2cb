//! Subscripts where values are assigned, `SET a[2] = 5` and `INSERT INTO t (a[1])`: the grammar takes names there. What stands between the brackets travels
//! as one more part of the name, which begins with a mark.

use super::conflict_target::EXPRESSION_MARK;
use logstead_sql_types::error::{Result, SqlError};
use sqlparser::ast;

/// The subscripts that a part of a target's name stands for.
pub fn subscripts(ident: &ast::Ident) -> Option<Result<Vec<ast::Subscript>>> {
    let inside = ident.value.strip_prefix(EXPRESSION_MARK)?;
    ident.quote_style?;
    Some(read(inside))
}

fn read(inside: &str) -> Result<Vec<ast::Subscript>> {
    let parsed = super::parse_expr(&format!("x{inside}")).map_err(|mut error| {
        error.fields_mut().position = None;
        error
    })?;
    let ast::Expr::CompoundFieldAccess { access_chain, .. } = parsed else {
        return Err(SqlError::unsupported("this kind of subscript"));
    };
    let subscripts = access_chain.into_iter().map(|access| match access {
        ast::AccessExpr::Subscript(subscript) => Ok(subscript),
        ast::AccessExpr::Dot(_) => Err(SqlError::unsupported("this kind of subscript")),
    });
    subscripts.collect()
}
