//! Which conditions may be asked of rows that security hides: those that tell nobody of the values they see.

use crate::query::expr::Expr;
use logstead_sql_func as func;
use logstead_sql_types::TypeId;
use logstead_sql_types::value::oid;

/// Do comparisons of values of the type tell nobody of them, not even by failing?
pub(crate) fn is_leakproof_type(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::BOOL
            | oid::INT2
            | oid::INT4
            | oid::INT8
            | oid::OID
            | oid::FLOAT4
            | oid::FLOAT8
            | oid::TEXT
            | oid::VARCHAR
            | oid::NAME
            | oid::DATE
            | oid::TIME
            | oid::TIMESTAMP
            | oid::TIMESTAMPTZ
            | oid::UUID
            | oid::MONEY
            | oid::TIMETZ
            | oid::BIT
            | oid::VARBIT
            | oid::INET
            | oid::CIDR
            | oid::MACADDR
            | oid::MACADDR8
            | oid::PG_LSN
            | oid::BYTEA
    )
}

/// Whether a condition tells nobody of the values it sees, not even by failing: comparisons of columns with columns,
/// constants and parameters.
pub(crate) fn is_leakproof(condition: &Expr) -> bool {
    let plain = |e: &Expr| {
        let mut e = e;
        while let Expr::Relabel(inner, _) = e {
            e = inner;
        }
        matches!(
            e,
            Expr::Column(..) | Expr::Const(..) | Expr::Param(..) | Expr::Outer { .. }
        )
    };
    match condition {
        Expr::Call { function, args, .. } => {
            func::operator_class(function.oid).is_some()
                && args
                    .iter()
                    .all(|a| plain(a) && is_leakproof_type(a.ty().oid))
        }
        Expr::IsNull(arg, _) => plain(arg),
        Expr::And(all) | Expr::Or(all) => all.iter().all(is_leakproof),
        Expr::Not(arg) => is_leakproof(arg),
        Expr::Column(..) => true,
        _ => false,
    }
}
