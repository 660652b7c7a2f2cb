//! Casts that the planner puts in: of join keys to their common type, of values to the type of an index's column. All
//! types are known by then, and are none of a user's.

use super::Planner;
use crate::query::expr::Expr;
use crate::rewrite::fold_constants::folded_call;
use logstead_sql_func as func;
use logstead_sql_func::{Cast, CastContext};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, IoContext, SqlType, oid};

impl Planner<'_> {
    /// Brings `expr` to `target`, which has no modifier. `None` if there is no such cast in this context.
    pub(super) fn cast(
        &self,
        expr: Expr,
        target: SqlType,
        context: CastContext,
    ) -> Result<Option<Expr>> {
        let from = expr.ty();
        if from.oid == target.oid {
            return Ok(Some(expr));
        }
        let Some(cast) = func::find_cast(from.oid, target.oid, context) else {
            return Ok(None);
        };
        Ok(Some(match cast {
            Cast::Relabel => match expr {
                Expr::Const(datum, _) => {
                    let session = Some(self.cx.session);
                    let session: Option<&dyn IoContext> = session.map(|s| s as _);
                    let value = func::apply_cast(cast, &datum, from, target, false, session)?;
                    Expr::Const(value, target)
                }
                expr => Expr::Relabel(Box::new(expr), target),
            },
            Cast::Function(function) => {
                let mut args = vec![expr];
                // Some make another value for another modifier.
                if function.args.len() > 1 {
                    args.push(Expr::Const(Datum::Int4(-1), SqlType::of(oid::INT4)));
                }
                folded_call(function, args, target)?
            }
            Cast::ViaText => Expr::CastViaText(Box::new(expr), target),
        }))
    }

    /// A comparison of two values of one type by its operator.
    pub(super) fn compare(&self, op: &str, left: Expr, right: Expr) -> Result<Expr> {
        let resolved =
            func::resolve_operator(op, Some(left.ty()), right.ty(), self.cx.lookup().types())?;
        folded_call(resolved.function, vec![left, right], resolved.result)
    }
}
