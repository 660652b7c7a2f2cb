//! Operators, by signs and by words.
//!
//! The lowered tree is printed as it stands, so an operand is put into parentheses wherever it would be read as
//! another one without them.

use super::Lower;
use crate::ast::{
    AExpr, AExprKind, BetweenExpr, BoolExpr, BoolOp, BoolTestKind, BooleanTest, CollateClause,
    Const, Expr, InExpr, LikeExpr, LikeKind, NullTest, OperatorName, Value, XmlExprOp,
};
use crate::lowered::{BinaryOperator as B, Expr as L, UnaryOperator as U};
use logstead_sql_types::error::{Result, SqlError};

/// How tight an expression binds: PostgreSQL's table of precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Strength {
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
    At,
    Collate,
    Sign,
    TypeCast,
    Operand,
}

/// The operators in front of an operand beside plus and minus.
const PREFIX_SIGNS: [&str; 10] = ["~", "|/", "||/", "@", "!!", "@@", "#", "?-", "?|", "@-@"];

/// The strength of an operator between two operands.
fn of_operator(op: &OperatorName) -> Strength {
    if !op.schema.is_empty() {
        return Strength::Operator;
    }
    match &*op.name {
        "+" | "-" => Strength::Add,
        "*" | "/" | "%" => Strength::Multiply,
        "^" => Strength::Power,
        "<" | ">" | "=" | "<=" | ">=" | "<>" => Strength::Comparison,
        _ => Strength::Operator,
    }
}

fn strength(expr: &Expr) -> Strength {
    match expr {
        Expr::Const(Const { value, .. }) => match value {
            Value::Integer(..0) => Strength::Sign,
            Value::Float(number) if number.starts_with('-') => Strength::Sign,
            _ => Strength::Operand,
        },
        Expr::TypeCast(_) => Strength::TypeCast,
        Expr::CollateClause(_) => Strength::Collate,
        Expr::AExpr(node) => match (node.kind, &node.lexpr) {
            (AExprKind::NullIf, _) => Strength::Operand,
            (AExprKind::Distinct | AExprKind::NotDistinct, _) => Strength::Is,
            (AExprKind::OpAny | AExprKind::OpAll, _) => Strength::Operator,
            (AExprKind::Op, Some(_)) => of_operator(&node.op),
            (AExprKind::Op, None) => match &*node.op.name {
                "+" | "-" => Strength::Sign,
                _ => Strength::Operator,
            },
        },
        Expr::Like(_) | Expr::In(_) | Expr::Between(_) => Strength::Like,
        Expr::BoolExpr(node) => match node.op {
            BoolOp::And => Strength::And,
            BoolOp::Or => Strength::Or,
            BoolOp::Not => Strength::Not,
        },
        Expr::NullTest(_) | Expr::BooleanTest(_) => Strength::Is,
        Expr::XmlExpr(node) if node.op == XmlExprOp::IsDocument => Strength::Is,
        Expr::FuncCall(call) => match call.words() {
            Some("timezone") => Strength::At,
            Some("is_normalized") => Strength::Is,
            Some("overlaps") => Strength::Operator,
            _ => Strength::Operand,
        },
        Expr::SubLink(node) => match &node.kind {
            crate::ast::SubLinkKind::NotIn { .. }
            | crate::ast::SubLinkKind::Any { op: None, .. } => Strength::Like,
            crate::ast::SubLinkKind::Any { .. } | crate::ast::SubLinkKind::All { .. } => {
                Strength::Operator
            }
            _ => Strength::Operand,
        },
        _ => Strength::Operand,
    }
}

impl Lower<'_> {
    /// An operand that binds at least as tight as this.
    fn operand(&self, expr: &Expr, least: Strength) -> Result<Box<L>> {
        let lowered = self.boxed(expr)?;
        Ok(match strength(expr) < least {
            true => Box::new(L::Nested(lowered)),
            false => lowered,
        })
    }

    /// An operand that binds tighter than this.
    fn tighter(&self, expr: &Expr, than: Strength) -> Result<Box<L>> {
        let lowered = self.boxed(expr)?;
        Ok(match strength(expr) <= than {
            true => Box::new(L::Nested(lowered)),
            false => lowered,
        })
    }

    /// What `::` stands behind.
    pub(super) fn operand_of_cast(&self, expr: &Expr) -> Result<Box<L>> {
        self.operand(expr, Strength::TypeCast)
    }

    /// What IN stands behind.
    pub(super) fn operand_of_in(&self, expr: &Expr) -> Result<Box<L>> {
        self.tighter(expr, Strength::Like)
    }

    /// What AT TIME ZONE stands behind, and the zone.
    pub(super) fn at_time_zone(&self, timestamp: &Expr, zone: &Expr) -> Result<L> {
        Ok(L::AtTimeZone {
            timestamp: self.operand(timestamp, Strength::At)?,
            time_zone: self.tighter(zone, Strength::At)?,
        })
    }

    /// What IS and a test by words stand behind.
    pub(super) fn operand_of_is(&self, expr: &Expr) -> Result<Box<L>> {
        self.tighter(expr, Strength::Is)
    }

    /// AND, OR and NOT. A list becomes pairs from the left.
    pub(super) fn bool_expr(&self, node: &BoolExpr) -> Result<L> {
        let (op, own) = match node.op {
            BoolOp::And => (B::And, Strength::And),
            BoolOp::Or => (B::Or, Strength::Or),
            BoolOp::Not => return self.not(node),
        };
        self.list_of(node.args.len());
        let mut args = node.args.iter();
        let Some(first) = args.next() else {
            return Err(SqlError::internal("AND of nothing"));
        };
        let mut left = *self.operand(first, own)?;
        for arg in args {
            left = L::BinaryOp {
                left: Box::new(left),
                op: op.clone(),
                right: self.tighter(arg, own)?,
            };
        }
        Ok(left)
    }

    /// NOT; that of IS NOT DOCUMENT and IS NOT NORMALIZED is part of the test.
    fn not(&self, node: &BoolExpr) -> Result<L> {
        let Some(arg) = node.args.first() else {
            return Err(SqlError::internal("NOT of nothing"));
        };
        match arg {
            Expr::XmlExpr(test)
                if test.op == XmlExprOp::IsDocument && test.location == node.location =>
            {
                self.document_test(test, true)
            }
            Expr::FuncCall(call)
                if call.words() == Some("is_normalized") && call.location == node.location =>
            {
                self.normalized_test(call, true)
            }
            arg => Ok(L::UnaryOp {
                op: U::Not,
                expr: self.operand(arg, Strength::Not)?,
            }),
        }
    }

    /// An operator. A chain of them is lowered from its first operand.
    pub(super) fn operator_expr(&self, node: &AExpr) -> Result<L> {
        let mut chain = vec![node];
        let mut first = node;
        while let Some(Expr::AExpr(left)) = &first.lexpr
            && first.kind == AExprKind::Op
            && left.kind == AExprKind::Op
            && left.lexpr.is_some()
            && of_operator(&left.op) >= of_operator(&first.op)
            && of_operator(&first.op) != Strength::Comparison
        {
            first = left;
            chain.push(left);
        }
        let mut lowered = self.one_operator(first, None)?;
        for node in chain.into_iter().rev().skip(1) {
            lowered = self.one_operator(node, Some(lowered))?;
        }
        Ok(lowered)
    }

    /// An operator, whose left operand may have been lowered before.
    fn one_operator(&self, node: &AExpr, left: Option<L>) -> Result<L> {
        let Some(lexpr) = &node.lexpr else {
            return self.prefix_operator(node);
        };
        let own = of_operator(&node.op);
        match node.kind {
            AExprKind::Op => {
                let left = match left {
                    Some(left) => Box::new(left),
                    None if own == Strength::Comparison => self.tighter(lexpr, own)?,
                    None => self.operand(lexpr, own)?,
                };
                Ok(L::BinaryOp {
                    left,
                    op: binary_operator(&node.op),
                    right: self.tighter(&node.rexpr, own)?,
                })
            }
            AExprKind::OpAny | AExprKind::OpAll => {
                let array = self.expr(&node.rexpr)?;
                self.quantified(lexpr, &node.op, array, node.kind == AExprKind::OpAll)
            }
            AExprKind::Distinct => Ok(L::IsDistinctFrom(
                self.operand_of_is(lexpr)?,
                self.operand_of_is(&node.rexpr)?,
            )),
            AExprKind::NotDistinct => Ok(L::IsNotDistinctFrom(
                self.operand_of_is(lexpr)?,
                self.operand_of_is(&node.rexpr)?,
            )),
            AExprKind::NullIf => {
                let args = vec![self.expr(lexpr)?, self.expr(&node.rexpr)?];
                Ok(L::Function(self.call_with(
                    self.call_of_word("nullif", node.location),
                    args,
                )))
            }
        }
    }

    /// `test op ANY (...)`, `test op ALL (...)`.
    pub(super) fn quantified(
        &self,
        test: &Expr,
        op: &OperatorName,
        right: L,
        is_all: bool,
    ) -> Result<L> {
        let left = self.operand(test, Strength::Operator)?;
        let right = Box::new(right);
        let is_own = matches!(op.schema.as_slice(), [schema] if **schema == *"pg_catalog");
        let compare_op = match is_own {
            true => B::of_sign(&op.name),
            false => binary_operator(op),
        };
        Ok(match is_all {
            true => L::AllOp {
                left,
                compare_op,
                right,
            },
            false => L::AnyOp {
                left,
                compare_op,
                right,
            },
        })
    }

    fn prefix_operator(&self, node: &AExpr) -> Result<L> {
        let op = match &*node.op.name {
            "+" => U::Plus,
            "-" => U::Minus,
            sign if PREFIX_SIGNS.contains(&sign) => U::Custom(sign.to_owned()),
            other => return Err(SqlError::unsupported(format!("operator {other}"))),
        };
        if !matches!(node.op.schema.as_slice(), [] | [_])
            || node
                .op
                .schema
                .first()
                .is_some_and(|schema| **schema != *"pg_catalog")
        {
            let schema = node.op.schema.join(".");
            let name = format!("operator {schema}.{}", node.op.name);
            return Err(SqlError::unsupported(name));
        }
        let least = match op {
            U::Plus | U::Minus => Strength::Sign,
            _ => Strength::Operator,
        };
        Ok(L::UnaryOp {
            op,
            expr: self.operand(&node.rexpr, least)?,
        })
    }

    pub(super) fn like(&self, node: &LikeExpr) -> Result<L> {
        let negated = node.negated;
        let expr = self.tighter(&node.expr, Strength::Like)?;
        let pattern = self.tighter(&node.pattern, Strength::Like)?;
        let escape_char = match &node.escape {
            Some(escape) => Some(self.tighter(escape, Strength::Like)?),
            None => None,
        };
        Ok(match node.kind {
            LikeKind::Like => L::Like {
                negated,
                expr,
                pattern,
                escape_char,
            },
            LikeKind::ILike => L::ILike {
                negated,
                expr,
                pattern,
                escape_char,
            },
            LikeKind::SimilarTo => L::SimilarTo {
                negated,
                expr,
                pattern,
                escape_char,
            },
        })
    }

    pub(super) fn in_list(&self, node: &InExpr) -> Result<L> {
        Ok(L::InList {
            expr: self.operand_of_in(&node.expr)?,
            list: self.exprs(&node.list)?,
            negated: node.negated,
        })
    }

    pub(super) fn between(&self, node: &BetweenExpr) -> Result<L> {
        Ok(L::Between {
            expr: self.tighter(&node.expr, Strength::Like)?,
            negated: node.negated,
            symmetric: node.symmetric,
            low: self.tighter(&node.low, Strength::Like)?,
            high: self.tighter(&node.high, Strength::Like)?,
        })
    }

    pub(super) fn null_test(&self, node: &NullTest) -> Result<L> {
        let arg = self.operand(&node.arg, Strength::Is)?;
        Ok(match node.negated {
            true => L::IsNotNull(arg),
            false => L::IsNull(arg),
        })
    }

    pub(super) fn boolean_test(&self, node: &BooleanTest) -> Result<L> {
        let arg = self.operand(&node.arg, Strength::Is)?;
        Ok(match (node.kind, node.negated) {
            (BoolTestKind::True, false) => L::IsTrue(arg),
            (BoolTestKind::True, true) => L::IsNotTrue(arg),
            (BoolTestKind::False, false) => L::IsFalse(arg),
            (BoolTestKind::False, true) => L::IsNotFalse(arg),
            (BoolTestKind::Unknown, false) => L::IsUnknown(arg),
            (BoolTestKind::Unknown, true) => L::IsNotUnknown(arg),
        })
    }

    pub(super) fn collate(&self, node: &CollateClause) -> Result<L> {
        let collation = self.token(node.location);
        let collation = collation.and_then(|token| self.token_behind(token));
        let location = collation.map_or(crate::ast::Location::UNKNOWN, |token| {
            crate::ast::Location::at(token.start)
        });
        Ok(L::Collate {
            expr: self.operand(&node.arg, Strength::Collate)?,
            collation: self.object_name(&node.collname, location),
        })
    }
}

fn binary_operator(op: &OperatorName) -> B {
    if op.schema.is_empty() {
        return B::of_sign(&op.name);
    }
    let names = op.schema.iter().chain(std::iter::once(&op.name));
    B::Qualified(names.map(|name| name.to_string()).collect())
}
