//! shim
mod names;
mod types;
use crate::catalog::Relation;
use crate::error::{Result, SqlError};
use crate::expr::Expr;
use crate::plan::PlanContext;
use sqlparser::ast;
pub use types::sql_type;
/// x
pub fn expr_to_sql(e: &ast::Expr) -> String {
    e.to_string()
}
/// x
pub fn bind_scalar(
    _e: &ast::Expr,
    _t: &str,
    _r: &Relation,
    _cx: &PlanContext<'_>,
    _w: &str,
) -> Result<Expr> {
    Err(SqlError::unsupported("x"))
}
/// x
pub fn default_expr(_r: &Relation, _p: usize, _cx: &PlanContext<'_>) -> Result<Expr> {
    Err(SqlError::unsupported("x"))
}
