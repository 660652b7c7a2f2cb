//! How texts spell users' types: by name as people are shown them, by number in texts that are kept.
//!
//! Owns: [`TypeSpelling`], and the form of a number in a text that is kept. Such a text is true whatever is renamed.

use super::{TypeLookup, class, made};
use crate::TypeId;
use crate::value::SqlType;
use crate::value::info;

/// Begins a type's name that is its number.
pub(super) const NUMBER_MARK: char = '\u{2}';

/// How a text spells types.
#[derive(Clone, Copy)]
pub struct TypeSpelling<'a> {
    /// The types, and where they are searched.
    pub types: TypeLookup<'a>,
    /// By number: the text is kept.
    numbered: bool,
}

impl<'a> TypeSpelling<'a> {
    /// By name, or by number if the text is kept.
    pub fn of(types: TypeLookup<'a>, numbered: bool) -> TypeSpelling<'a> {
        TypeSpelling { types, numbered }
    }

    /// By name, as people are shown them.
    pub fn named(types: TypeLookup<'a>) -> TypeSpelling<'a> {
        TypeSpelling {
            types,
            numbered: false,
        }
    }

    /// By number, as texts have them that are kept.
    pub fn numbered(types: TypeLookup<'a>) -> TypeSpelling<'a> {
        TypeSpelling {
            types,
            numbered: true,
        }
    }

    /// A type as regtype prints it; `None` if there is none.
    pub fn type_text(self, ty: TypeId) -> Option<String> {
        let exists = self.types.types.exists(ty);
        exists.then(|| self.format_type_bare(ty))
    }

    /// As [`TypeLookup::format_type`], users' types by number in a text that is kept.
    pub fn format_type(self, ty: SqlType) -> String {
        info::format_with(ty, true, &|oid| self.user_type(oid))
    }

    /// As [`TypeLookup::format_type_bare`], users' types by number in a text that is kept.
    pub fn format_type_bare(self, oid: TypeId) -> String {
        info::format_with(SqlType::of(oid), false, &|oid| self.user_type(oid))
    }

    fn user_type(self, oid: TypeId) -> String {
        match self.numbered {
            true => number_text(oid),
            false => self.types.format_user_type(oid),
        }
    }

    /// A stored text with its types spelled so.
    pub fn shown(self, stored: &str) -> String {
        shown_with(stored, |oid| self.format_type_bare(oid))
    }
}

/// A stored text with the names that its types have now.
pub(super) fn shown_with(stored: &str, name: impl Fn(TypeId) -> String) -> String {
    let mut out = String::new();
    let mut rest = stored;
    while let Some(at) = rest.find(NUMBER_MARK) {
        let (before, after) = rest.split_at(at);
        let after = &after[NUMBER_MARK.len_utf8()..];
        let end = after.find('"').unwrap_or(after.len());
        match (
            before.strip_suffix('"'),
            after[..end].parse().map(TypeId::new),
        ) {
            (Some(before), Ok(oid)) => {
                out.push_str(before);
                out.push_str(&name(oid));
                rest = after.get(end + 1..).unwrap_or_default();
            }
            _ => {
                out.push_str(before);
                out.push(NUMBER_MARK);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// How a stored text spells a type.
pub fn number_text(oid: TypeId) -> String {
    format!("\"{NUMBER_MARK}{oid}\"")
}

/// True if a stored text names the type.
pub fn names_type(stored: &str, oid: TypeId) -> bool {
    stored.contains(NUMBER_MARK) && stored.contains(&number_text(oid))
}

/// The types that a stored text names, each as itself or as the array over it.
pub fn types_named(stored: &str) -> Vec<TypeId> {
    stored
        .split(NUMBER_MARK)
        .skip(1)
        .filter_map(|rest| rest.split('"').next()?.parse().ok().map(TypeId::new))
        .filter(|oid| class(*oid).is_some())
        .map(made)
        .collect()
}
