//! Names as identifiers.

use super::Lower;
use crate::ast::{AnyName, Location, Name};
use crate::lowered as library;

impl Lower<'_> {
    /// A name at a place.
    pub(super) fn ident(&self, name: &str, location: Location) -> library::Ident {
        library::Ident {
            value: name.into(),
            location,
        }
    }

    /// A qualified name.
    pub(super) fn object_name(&self, names: &[Name], location: Location) -> AnyName {
        AnyName {
            names: names.iter().cloned().collect(),
            location,
        }
    }
}
