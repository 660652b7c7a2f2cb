//! Names with places.

use crate::ast::{Location, Name};

/// A name, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ident {
    /// The name.
    pub value: Name,
    /// Where it stands.
    pub location: Location,
}

impl Ident {
    /// A name that stands nowhere.
    pub fn new(value: impl Into<Name>) -> Ident {
        Ident {
            value: value.into(),
            location: Location::UNKNOWN,
        }
    }
}
