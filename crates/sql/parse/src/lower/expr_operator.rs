//! Operators, by signs and by words.

use super::Lower;
use crate::ast::{
    AExpr, AExprKind, BetweenExpr, BoolExpr, BooleanTest, CollateClause, Expr, InExpr, LikeExpr,
    NullTest,
};
use crate::lowered::{self as library, Expr as L};
use logstead_sql_types::error::Result;

impl Lower<'_> {
    /// AND, OR and NOT.
    pub(super) fn bool_expr(&self, node: &BoolExpr) -> Result<L> {
        Ok(L::BoolExpr(Box::new(library::BoolExpr {
            op: node.op,
            args: self.exprs(&node.args)?,
            location: node.location,
        })))
    }

    /// An operator. A chain of them is lowered from its first operand.
    pub(super) fn operator_expr(&self, node: &AExpr) -> Result<L> {
        let mut chain = vec![node];
        let mut first = node;
        while let Some(Expr::AExpr(left)) = &first.lexpr
            && first.kind == AExprKind::Op
            && left.kind == AExprKind::Op
            && left.lexpr.is_some()
        {
            first = left;
            chain.push(left);
        }
        let Some(left) = &first.lexpr else {
            return Ok(L::AExpr(Box::new(library::AExpr {
                kind: first.kind,
                op: first.op.clone(),
                lexpr: None,
                rexpr: self.expr(&first.rexpr)?,
                location: first.location,
            })));
        };
        let mut lowered = self.expr(left)?;
        for node in chain.into_iter().rev() {
            lowered = L::AExpr(Box::new(library::AExpr {
                kind: node.kind,
                op: node.op.clone(),
                lexpr: Some(lowered),
                rexpr: self.expr(&node.rexpr)?,
                location: node.location,
            }));
        }
        Ok(lowered)
    }

    pub(super) fn like(&self, node: &LikeExpr) -> Result<L> {
        Ok(L::Like(Box::new(library::LikeExpr {
            kind: node.kind,
            negated: node.negated,
            expr: self.expr(&node.expr)?,
            pattern: self.expr(&node.pattern)?,
            escape: self.opt_expr(node.escape.as_ref())?,
            location: node.location,
        })))
    }

    pub(super) fn in_list(&self, node: &InExpr) -> Result<L> {
        Ok(L::In(Box::new(library::InExpr {
            negated: node.negated,
            expr: self.expr(&node.expr)?,
            list: self.exprs(&node.list)?,
            location: node.location,
        })))
    }

    pub(super) fn between(&self, node: &BetweenExpr) -> Result<L> {
        Ok(L::Between(Box::new(library::BetweenExpr {
            negated: node.negated,
            symmetric: node.symmetric,
            expr: self.expr(&node.expr)?,
            low: self.expr(&node.low)?,
            high: self.expr(&node.high)?,
            location: node.location,
        })))
    }

    pub(super) fn null_test(&self, node: &NullTest) -> Result<L> {
        Ok(L::NullTest(Box::new(library::NullTest {
            arg: self.expr(&node.arg)?,
            negated: node.negated,
            location: node.location,
        })))
    }

    pub(super) fn boolean_test(&self, node: &BooleanTest) -> Result<L> {
        Ok(L::BooleanTest(Box::new(library::BooleanTest {
            arg: self.expr(&node.arg)?,
            kind: node.kind,
            negated: node.negated,
            location: node.location,
        })))
    }

    pub(super) fn collate(&self, node: &CollateClause) -> Result<L> {
        Ok(L::CollateClause(Box::new(library::CollateClause {
            arg: self.expr(&node.arg)?,
            collname: node.collname.clone(),
            location: node.location,
        })))
    }
}
