//! Constants.

use super::Span;
use std::fmt;
/// A constant, or a parameter in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// NULL.
    Null,
    /// TRUE, FALSE.
    Boolean(bool),
    /// A number without a sign, as it is written.
    Number(String),
    /// A string's characters.
    String(String),
    /// The digits of `B'...'`.
    Bits(String),
    /// The digits of `X'...'`.
    HexBits(String),
    /// A parameter as it is written, `$1`.
    Placeholder(String),
}

impl Value {
    /// The constant at a place.
    pub fn with_span(self, span: Span) -> ValueWithSpan {
        ValueWithSpan { value: self, span }
    }

    /// The constant, which stands nowhere.
    pub fn with_empty_span(self) -> ValueWithSpan {
        self.with_span(Span::empty())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("NULL"),
            Value::Boolean(value) => value.fmt(f),
            Value::Number(digits) => f.write_str(digits),
            Value::String(text) => write!(f, "'{}'", text.replace('\'', "''")),
            Value::Bits(digits) => write!(f, "B'{digits}'"),
            Value::HexBits(digits) => write!(f, "X'{digits}'"),
            Value::Placeholder(parameter) => f.write_str(parameter),
        }
    }
}

/// A constant and where it stands.
#[derive(Clone, Debug)]
pub struct ValueWithSpan {
    /// The constant.
    pub value: Value,
    /// Where it stands.
    pub span: Span,
}

impl PartialEq for ValueWithSpan {
    fn eq(&self, other: &ValueWithSpan) -> bool {
        self.value == other.value
    }
}

impl Eq for ValueWithSpan {}

impl From<Value> for ValueWithSpan {
    fn from(value: Value) -> ValueWithSpan {
        value.with_empty_span()
    }
}
