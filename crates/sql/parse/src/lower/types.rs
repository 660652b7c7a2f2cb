//! Names of types.

use super::Lower;
use crate::ast::{TypeName, TypeRef};
use crate::lowered::{DataType, Span, Spanned};

impl Lower<'_> {
    /// The name of a type, with where it stands if it is none of the grammar's own.
    pub(crate) fn data_type(&self, name: &TypeName) -> DataType {
        let span = match &name.name {
            TypeRef::Named(names) if names.len() == 2 && *names[0] == *"pg_catalog" => {
                Span::empty()
            }
            TypeRef::Named(names) => self.object_name(names, name.location).span(),
            TypeRef::Stored(_) => self.span(name.location),
        };
        DataType::new(name.clone(), span)
    }
}
