//! Names as identifiers.

use super::Lower;
use crate::ast::{AnyName, Location, Name, Names};
use crate::lowered as library;
use logstead_sql_types::value::names::{NAME_LENGTH_MAX, truncate_name};

/// A name as long as names may be.
pub(super) fn cut(name: &Name) -> Name {
    match name.len() <= NAME_LENGTH_MAX {
        true => name.clone(),
        false => truncate_name(name).into(),
    }
}

pub(super) fn cut_all(names: &Names) -> Names {
    names.iter().map(cut).collect()
}

impl Lower<'_> {
    /// A name at a place.
    pub(super) fn ident(&self, name: &str, location: Location) -> library::Ident {
        library::Ident {
            value: truncate_name(name).into(),
            location,
        }
    }

    /// A qualified name.
    pub(super) fn object_name(&self, names: &[Name], location: Location) -> AnyName {
        AnyName {
            names: names.iter().map(cut).collect(),
            location,
        }
    }
}
