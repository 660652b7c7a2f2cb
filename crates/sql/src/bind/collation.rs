//! `COLLATION FOR (x)`: the collation by which a value would be compared.

use super::Binder;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::func::quote_identifier;
use crate::value::{Datum, SqlType, info, oid};
use logstead_types::SqlState;
use sqlparser::ast;

/// The collation that an expression names, in itself or in what it is made of.
fn named(expr: &ast::Expr) -> Option<String> {
    use ast::Expr as Ast;
    match expr {
        Ast::Collate { collation, .. } => match collation.0.last() {
            Some(ast::ObjectNamePart::Identifier(name)) => Some(crate::catalog::text::fold(name)),
            _ => None,
        },
        Ast::Nested(inner) => named(inner),
        Ast::BinaryOp { left, right, .. } => named(left).or_else(|| named(right)),
        Ast::Function(function) => match &function.args {
            ast::FunctionArguments::List(list) => list.args.iter().find_map(|arg| match arg {
                ast::FunctionArg::Unnamed(ast::FunctionArgExpr::Expr(arg)) => named(arg),
                _ => None,
            }),
            _ => None,
        },
        _ => None,
    }
}

impl Binder<'_> {
    /// Binds `pg_collation_for`, which is what COLLATION FOR calls.
    pub(super) fn collation_for(&mut self, item: &ast::Expr, at: Option<usize>) -> Result<Expr> {
        let bound = self.expr(item)?;
        let ty = bound.ty();
        let element = info::element_of(ty.oid).unwrap_or(ty.oid);
        let text = |name: &str| {
            let name = Datum::text(name);
            Ok(Expr::Const(name, SqlType::of(oid::TEXT)))
        };
        let name = match element {
            oid::UNKNOWN => return Ok(Expr::Const(Datum::Null, SqlType::of(oid::TEXT))),
            oid::NAME => "C",
            oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::CITEXT => "default",
            _ => {
                return Err(SqlError::new(
                    SqlState::DATATYPE_MISMATCH,
                    format!(
                        "collations are not supported by type {}",
                        info::format_type(ty)
                    ),
                )
                .at(at));
            }
        };
        match named(item) {
            Some(name) if name == "C" || name == "POSIX" => text(&format!("\"{name}\"")),
            Some(name) => text(&quote_identifier(&name)),
            None => text(&format!("\"{name}\"")),
        }
    }
}
