//! Operators, by signs and by words.
//!
//! The lowered tree is printed as it stands, so an operand is put into parentheses wherever it would be read as
//! another one without them.

use super::Lower;
use crate::ast::{
    AExpr, AExprKind, BetweenExpr, BoolExpr, BoolOp, BooleanTest, CollateClause, Const, Expr,
    InExpr, LikeExpr, NullTest, OperatorName, Value, XmlExprOp,
};
use crate::lowered::{self as library, Expr as L};
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

/// An operator that compares with several: those of LIKE and its like are PostgreSQL's own.
pub(super) fn compare_op(op: &OperatorName) -> OperatorName {
    match op.schema.as_slice() {
        [schema] if **schema == *"pg_catalog" => OperatorName::of_sign(&op.name),
        _ => op.clone(),
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

    /// What AT TIME ZONE stands behind.
    pub(super) fn operand_of_time_zone(&self, timestamp: &Expr) -> Result<L> {
        Ok(*self.operand(timestamp, Strength::At)?)
    }

    /// What stands behind AT TIME ZONE.
    pub(super) fn time_zone(&self, zone: &Expr) -> Result<L> {
        Ok(*self.tighter(zone, Strength::At)?)
    }

    /// What IS and a test by words stand behind.
    pub(super) fn operand_of_is(&self, expr: &Expr) -> Result<Box<L>> {
        self.tighter(expr, Strength::Is)
    }

    /// AND, OR and NOT.
    pub(super) fn bool_expr(&self, node: &BoolExpr) -> Result<L> {
        let own = match node.op {
            BoolOp::And => Strength::And,
            BoolOp::Or => Strength::Or,
            BoolOp::Not => return self.not(node),
        };
        self.list_of(node.args.len());
        let mut args = Vec::with_capacity(node.args.len());
        for arg in &node.args {
            args.push(match args.is_empty() {
                true => *self.operand(arg, own)?,
                false => *self.tighter(arg, own)?,
            });
        }
        Ok(L::BoolExpr(Box::new(library::BoolExpr {
            op: node.op,
            args,
            location: node.location,
        })))
    }

    fn not(&self, node: &BoolExpr) -> Result<L> {
        let Some(arg) = node.args.first() else {
            return Err(SqlError::internal("NOT of nothing"));
        };
        Ok(L::BoolExpr(Box::new(library::BoolExpr {
            op: BoolOp::Not,
            args: vec![*self.operand(arg, Strength::Not)?],
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
        let (left, right) = match node.kind {
            AExprKind::Op => {
                let left = match left {
                    Some(left) => left,
                    None if own == Strength::Comparison => *self.tighter(lexpr, own)?,
                    None => *self.operand(lexpr, own)?,
                };
                (left, *self.tighter(&node.rexpr, own)?)
            }
            AExprKind::OpAny | AExprKind::OpAll => return self.quantified(node, lexpr),
            AExprKind::Distinct | AExprKind::NotDistinct => (
                *self.operand_of_is(lexpr)?,
                *self.operand_of_is(&node.rexpr)?,
            ),
            AExprKind::NullIf => (self.expr(lexpr)?, self.expr(&node.rexpr)?),
        };
        Ok(L::AExpr(Box::new(library::AExpr {
            kind: node.kind,
            op: node.op.clone(),
            lexpr: Some(left),
            rexpr: right,
            location: node.location,
        })))
    }

    /// `test op ANY (array)`, `test op ALL (array)`.
    fn quantified(&self, node: &AExpr, test: &Expr) -> Result<L> {
        Ok(L::AExpr(Box::new(library::AExpr {
            kind: node.kind,
            op: compare_op(&node.op),
            lexpr: Some(*self.operand_of_any(test)?),
            rexpr: self.expr(&node.rexpr)?,
            location: node.location,
        })))
    }

    /// What an operator stands behind that compares with several.
    pub(super) fn operand_of_any(&self, test: &Expr) -> Result<Box<L>> {
        self.operand(test, Strength::Operator)
    }

    fn prefix_operator(&self, node: &AExpr) -> Result<L> {
        let sign = &*node.op.name;
        if !matches!(sign, "+" | "-") && !PREFIX_SIGNS.contains(&sign) {
            return Err(SqlError::unsupported(format!("operator {sign}")));
        }
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
        let least = match sign {
            "+" | "-" => Strength::Sign,
            _ => Strength::Operator,
        };
        Ok(L::AExpr(Box::new(library::AExpr {
            kind: AExprKind::Op,
            op: OperatorName::of_sign(sign),
            lexpr: None,
            rexpr: *self.operand(&node.rexpr, least)?,
            location: node.location,
        })))
    }

    pub(super) fn like(&self, node: &LikeExpr) -> Result<L> {
        Ok(L::Like(Box::new(library::LikeExpr {
            kind: node.kind,
            negated: node.negated,
            expr: *self.tighter(&node.expr, Strength::Like)?,
            pattern: *self.tighter(&node.pattern, Strength::Like)?,
            escape: match &node.escape {
                Some(escape) => Some(*self.tighter(escape, Strength::Like)?),
                None => None,
            },
            location: node.location,
        })))
    }

    pub(super) fn in_list(&self, node: &InExpr) -> Result<L> {
        Ok(L::In(Box::new(library::InExpr {
            negated: node.negated,
            expr: *self.operand_of_in(&node.expr)?,
            list: self.exprs(&node.list)?,
            location: node.location,
        })))
    }

    pub(super) fn between(&self, node: &BetweenExpr) -> Result<L> {
        Ok(L::Between(Box::new(library::BetweenExpr {
            negated: node.negated,
            symmetric: node.symmetric,
            expr: *self.tighter(&node.expr, Strength::Like)?,
            low: *self.tighter(&node.low, Strength::Like)?,
            high: *self.tighter(&node.high, Strength::Like)?,
            location: node.location,
        })))
    }

    pub(super) fn null_test(&self, node: &NullTest) -> Result<L> {
        Ok(L::NullTest(Box::new(library::NullTest {
            arg: *self.operand(&node.arg, Strength::Is)?,
            negated: node.negated,
            location: node.location,
        })))
    }

    pub(super) fn boolean_test(&self, node: &BooleanTest) -> Result<L> {
        Ok(L::BooleanTest(Box::new(library::BooleanTest {
            arg: *self.operand(&node.arg, Strength::Is)?,
            kind: node.kind,
            negated: node.negated,
            location: node.location,
        })))
    }

    pub(super) fn collate(&self, node: &CollateClause) -> Result<L> {
        Ok(L::CollateClause(Box::new(library::CollateClause {
            arg: *self.operand(&node.arg, Strength::Collate)?,
            collname: node.collname.clone(),
            location: node.location,
        })))
    }
}
