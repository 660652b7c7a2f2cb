//! Which expressions have the same value whenever they are computed over the same row, as indexes want them.
//! Whether a function is immutable stands in its row of the registry (`sql-func`); here what depends on settings is
//! found besides.

use crate::query::expr::Expr;
use crate::walk;
use logstead_sql_func::Volatility;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::{info, oid};

/// Whether an expression has the same value whenever it is computed over the same row.
pub fn is_immutable(expr: &Expr) -> bool {
    !walk::any(expr, &varies)
}

/// Whether what an expression does to its operands is another thing at another time.
pub fn varies(expr: &Expr) -> bool {
    match expr {
        // anytextcat and textanycat are stable because of types whose text is. PostgreSQL puts `||` of that text in
        // their place before it judges.
        Expr::Call { function, args, .. } if matches!(function.oid.get(), 2003 | 2004) => {
            args.iter().any(|arg| text_depends(arg.ty().oid, true))
        }
        Expr::Call { function, .. } => function.volatility != Volatility::Immutable,
        Expr::ArrayCompare { op, .. } | Expr::InList { op, .. } => {
            op.volatility != Volatility::Immutable
        }
        Expr::CastViaText(from, to) => {
            text_depends(from.ty().oid, true) || text_depends(to.oid, false)
        }
        Expr::Subquery(_) | Expr::Param(..) | Expr::Outer { .. } => true,
        _ => false,
    }
}

/// Whether a type's text depends on settings or the clock: on output, or on input.
fn text_depends(ty: TypeId, output: bool) -> bool {
    match ty {
        // What money looks like is a setting in PostgreSQL.
        oid::MONEY | oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::REGCLASS => true,
        oid::TIME | oid::TIMETZ | oid::INTERVAL => !output,
        _ => match info::by_oid(ty) {
            Some(known) => info::element_of(ty).is_some() || known.name.starts_with("reg"),
            None => true,
        },
    }
}
