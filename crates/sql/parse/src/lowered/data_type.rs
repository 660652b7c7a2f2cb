//! Names of types in expressions.

use super::{Span, TokenSpan};
use crate::ast::{Expr, Location, TypeName};
use std::fmt;
use std::ops::Deref;

/// The name of a type, and where it stands.
///
/// Invariant: two are equal if they say the same, wherever they stand: the name itself has no places.
#[derive(Clone, Debug, PartialEq)]
pub struct DataType {
    name: TypeName,
    token: TokenSpan,
}

impl DataType {
    /// A name that stands there.
    pub fn new(mut name: TypeName, span: Span) -> DataType {
        name.location = Location::UNKNOWN;
        for typmod in &mut name.typmods {
            match typmod {
                Expr::Const(node) => node.location = Location::UNKNOWN,
                Expr::ColumnRef(node) => node.location = Location::UNKNOWN,
                _ => {}
            }
        }
        DataType {
            name,
            token: TokenSpan(span),
        }
    }

    /// Where the name stands, without its modifiers.
    pub fn span(&self) -> Span {
        self.token.0
    }
}

impl Deref for DataType {
    type Target = TypeName;

    fn deref(&self) -> &TypeName {
        &self.name
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}
