//! A sign binds tighter than `^`: `-2 ^ 2` is 4. The grammar library sees it the other way round.

use sqlparser::ast::{self, BinaryOperator, Expr, UnaryOperator, VisitMut, VisitorMut};
use std::ops::ControlFlow;

/// Puts signs in front of powers where PostgreSQL does; parentheses are nodes of their own, and stay.
pub(super) fn signs_first(statement: &mut ast::Statement) {
    // The visitor never breaks.
    let _ = statement.visit(&mut Signs);
}

struct Signs;

impl VisitorMut for Signs {
    type Break = ();

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        let Expr::UnaryOp { op, expr: operand } = expr else {
            return ControlFlow::Continue(());
        };
        let is_sign = matches!(op, UnaryOperator::Minus | UnaryOperator::Plus);
        if !is_sign || !is_power(operand) {
            return ControlFlow::Continue(());
        }
        let op = *op;
        let null = || Expr::value(ast::Value::Null);
        let mut powers = std::mem::replace(&mut **operand, null());
        // `^` is left associative: the sign belongs to the leftmost base.
        let mut base = &mut powers;
        while let Expr::BinaryOp {
            left,
            op: BinaryOperator::PGExp,
            ..
        } = base
        {
            base = left;
        }
        let signed = std::mem::replace(base, null());
        *base = Expr::UnaryOp {
            op,
            expr: Box::new(signed),
        };
        *expr = powers;
        ControlFlow::Continue(())
    }
}

fn is_power(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::BinaryOp {
            op: BinaryOperator::PGExp,
            ..
        }
    )
}
