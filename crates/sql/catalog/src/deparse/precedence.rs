//! How tight expressions bind, as text.
//!
//! The tree has no parentheses. Who prints it as it stands puts an operand into some wherever it would be read as
//! another one without them.

use logstead_sql_parse::ast::{AExprKind, BoolOp, Expr, OperatorName, SubLinkKind, XmlExprOp};

/// PostgreSQL's table of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Precedence {
    Or,
    And,
    Not,
    Is,
    Comparison,
    Like,
    Operator,
    Add,
    Multiply,
    Power,
    Collate,
    Sign,
    TypeCast,
    Operand,
}

impl Precedence {
    /// Of an operator between two operands.
    pub(super) fn of_operator(op: &OperatorName) -> Precedence {
        match op.sign() {
            Some("+" | "-") => Precedence::Add,
            Some("*" | "/" | "%") => Precedence::Multiply,
            Some("^") => Precedence::Power,
            Some("<" | ">" | "=" | "<=" | ">=" | "<>") => Precedence::Comparison,
            _ => Precedence::Operator,
        }
    }

    /// Of an operator in front of its operand.
    pub(super) fn of_prefix(op: &OperatorName) -> Precedence {
        match op.sign() {
            Some("+" | "-") => Precedence::Sign,
            _ => Precedence::Operator,
        }
    }

    /// Of AND, OR, NOT.
    pub(super) fn of_bool(op: BoolOp) -> Precedence {
        match op {
            BoolOp::And => Precedence::And,
            BoolOp::Or => Precedence::Or,
            BoolOp::Not => Precedence::Not,
        }
    }

    /// Of an expression. Words like AT TIME ZONE are in parentheses of their own.
    pub(super) fn of(expr: &Expr) -> Precedence {
        match expr {
            Expr::Const(node) => match node.value.digits() {
                Some(digits) if digits.starts_with('-') => Precedence::Sign,
                _ => Precedence::Operand,
            },
            Expr::TypeCast(_) => Precedence::TypeCast,
            Expr::CollateClause(_) => Precedence::Collate,
            Expr::AExpr(node) => match (node.kind, &node.lexpr) {
                (AExprKind::NullIf, _) => Precedence::Operand,
                (AExprKind::Distinct | AExprKind::NotDistinct, _) => Precedence::Is,
                (AExprKind::OpAny | AExprKind::OpAll, _) => Precedence::Operator,
                (AExprKind::Op, Some(_)) => Precedence::of_operator(&node.op),
                (AExprKind::Op, None) => Precedence::of_prefix(&node.op),
            },
            Expr::Like(_) | Expr::In(_) | Expr::Between(_) => Precedence::Like,
            Expr::BoolExpr(node) => Precedence::of_bool(node.op),
            Expr::NullTest(_) | Expr::BooleanTest(_) => Precedence::Is,
            Expr::XmlExpr(node) if node.op == XmlExprOp::IsDocument => Precedence::Is,
            Expr::SubLink(node) => match &node.kind {
                SubLinkKind::NotIn { .. } | SubLinkKind::Any { op: None, .. } => Precedence::Like,
                SubLinkKind::Any { .. } | SubLinkKind::All { .. } => Precedence::Operator,
                SubLinkKind::Exists | SubLinkKind::Expr | SubLinkKind::Array => Precedence::Operand,
            },
            _ => Precedence::Operand,
        }
    }
}
