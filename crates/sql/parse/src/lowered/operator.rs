//! Operators.

use std::fmt;

/// An operator between two operands.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their own words and signs")]
pub enum BinaryOperator {
    And,
    Or,
    Overlaps,
    Eq,
    NotEq,
    Lt,
    LtEq,
    Gt,
    GtEq,
    Plus,
    Minus,
    Multiply,
    Divide,
    Modulo,
    StringConcat,
    /// Any other one by its sign.
    Custom(String),
    /// `OPERATOR(schema.sign)`: its schema, and last its sign.
    Qualified(Vec<String>),
}

impl BinaryOperator {
    /// Those that have names of their own, with their signs.
    const SIGNS: [(&'static str, BinaryOperator); 12] = [
        ("=", BinaryOperator::Eq),
        ("<>", BinaryOperator::NotEq),
        ("<", BinaryOperator::Lt),
        ("<=", BinaryOperator::LtEq),
        (">", BinaryOperator::Gt),
        (">=", BinaryOperator::GtEq),
        ("+", BinaryOperator::Plus),
        ("-", BinaryOperator::Minus),
        ("*", BinaryOperator::Multiply),
        ("/", BinaryOperator::Divide),
        ("%", BinaryOperator::Modulo),
        ("||", BinaryOperator::StringConcat),
    ];

    /// The operator of a sign.
    pub fn of_sign(sign: &str) -> BinaryOperator {
        let sign = if sign == "!=" { "<>" } else { sign };
        let mut known = BinaryOperator::SIGNS.into_iter();
        match known.find(|(own, _)| *own == sign) {
            Some((_, operator)) => operator,
            None => BinaryOperator::Custom(sign.to_owned()),
        }
    }
}

impl fmt::Display for BinaryOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BinaryOperator::And => f.write_str("AND"),
            BinaryOperator::Or => f.write_str("OR"),
            BinaryOperator::Overlaps => f.write_str("OVERLAPS"),
            BinaryOperator::Custom(sign) => f.write_str(sign),
            BinaryOperator::Qualified(parts) => write!(f, "OPERATOR({})", parts.join(".")),
            known => {
                let mut all = BinaryOperator::SIGNS.iter();
                let sign = all.find(|(_, operator)| operator == known);
                f.write_str(sign.map(|(sign, _)| *sign).unwrap_or_default())
            }
        }
    }
}

/// An operator in front of its operand.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "their own words and signs")]
pub enum UnaryOperator {
    Not,
    Plus,
    Minus,
    /// Any other one by its sign.
    Custom(String),
}

impl fmt::Display for UnaryOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            UnaryOperator::Not => "NOT",
            UnaryOperator::Plus => "+",
            UnaryOperator::Minus => "-",
            UnaryOperator::Custom(sign) => sign,
        })
    }
}
