//! Constants.

use crate::ast::Location;
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
    pub fn at(self, location: Location) -> PlacedValue {
        PlacedValue {
            value: self,
            location,
        }
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedValue {
    /// The constant.
    pub value: Value,
    /// Where it stands.
    pub location: Location,
}

impl From<Value> for PlacedValue {
    fn from(value: Value) -> PlacedValue {
        value.at(Location::UNKNOWN)
    }
}
