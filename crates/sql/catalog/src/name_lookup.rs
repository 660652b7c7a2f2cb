//! Names that a statement qualifies with a schema: may its role look them up there?
//!
//! Owns the question that PostgreSQL asks in `LookupExplicitNamespace`. Whatever resolves a name that somebody wrote (a
//! table, a type, a function, a sequence, text that is read as a `regclass`) asks it first, here
//! ([`NameLookup::explicit`]). So no kind of name has a check of its own, and nobody is told whether a name exists in a
//! schema that is closed to them.
//!
//! Invariants:
//! - What is resolved already is not asked about again: texts that the catalog keeps name objects by number.
//! - Outside of a session nobody asks: the catalog reads its own texts.
//! - A plan may be run by another role than the one it was made for. The schemas that were asked about while it was
//!   made are noted ([`recording_schemas`](crate::context::namespace::recording_schemas)) and go with it.
//!
//! It does not check names that are looked for on the search path, nor the right to make something in a schema.

use crate::classes::PG_CATALOG_NAMESPACE;
use crate::context::Context;
use crate::type_name::{TypeNames, type_by_text};
use crate::{Catalog, VirtualContext};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::TypeLookup;
use logstead_types::SqlState;

/// What a statement's names are looked up with.
#[derive(Clone, Copy)]
pub struct NameLookup<'a> {
    /// Where they are looked up.
    pub catalog: &'a Catalog,
    /// The schemas searched for names without one.
    pub search_path: &'a [String],
    /// Who looks.
    pub session: &'a dyn Context,
}

/// What came of looking for a schema.
enum NamespaceLookup {
    Found,
    Absent,
    NotAsked,
}

impl<'a> NameLookup<'a> {
    /// The types, and where they are searched.
    pub fn types(self) -> TypeLookup<'a> {
        TypeLookup {
            types: &self.catalog.types,
            search_path: self.search_path,
        }
    }

    /// 42501 unless the running statement may look up names in the schema that it names.
    pub fn explicit(self, schema: &str) -> Result<()> {
        self.look(schema).map(|_| ())
    }

    /// The same, and 3F000 unless there is such a schema.
    pub fn existing(self, schema: &str) -> Result<()> {
        match self.look(schema)? {
            NamespaceLookup::Absent => Err(SqlError::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{schema}\" does not exist"),
            )),
            NamespaceLookup::Found | NamespaceLookup::NotAsked => Ok(()),
        }
    }

    /// OID of a user's type or array by name; without a schema the path is searched. 42501 for a schema that is closed
    /// to the role.
    pub fn user_type(self, schema: Option<&str>, name: &str) -> Result<Option<TypeId>> {
        if let Some(schema) = schema {
            self.explicit(schema)?;
        }
        Ok(self.catalog.types.find(schema, name, self.search_path))
    }

    fn look(self, schema: &str) -> Result<NamespaceLookup> {
        if schema == "pg_catalog" {
            return Ok(NamespaceLookup::Found);
        }
        let Some(scope) = self.session.lookup_scope() else {
            return Ok(NamespaceLookup::NotAsked);
        };
        let role = scope.borrow().role;
        let Some(found) = self.session.look_into(self.catalog, schema, role)? else {
            return Ok(NamespaceLookup::Absent);
        };
        if found != PG_CATALOG_NAMESPACE {
            scope.borrow_mut().note(found);
        }
        Ok(NamespaceLookup::Found)
    }
}

impl<'a> VirtualContext<'a> {
    /// What names are looked up with in these schemas.
    pub fn lookup<'c>(&self, search_path: &'c [String]) -> NameLookup<'c>
    where
        'a: 'c,
    {
        NameLookup {
            catalog: self.catalog,
            search_path,
            session: self.session,
        }
    }
}

impl TypeNames for NameLookup<'_> {
    fn user_type(&self, schema: Option<&str>, name: &str) -> Result<Option<TypeId>> {
        (*self).user_type(schema, name)
    }
    fn types(&self) -> Option<TypeLookup<'_>> {
        Some((*self).types())
    }
    fn existing(&self, schema: &str) -> Result<()> {
        (*self).existing(schema)
    }
}

/// Where the first of a character stands that is neither in double quotes nor, if those count, in parentheses or
/// brackets.
/// `None` if there is none; 22P02 if the text ends within any of these.
fn first_outside(text: &str, wanted: char, nests: bool) -> Result<Option<usize>> {
    let (mut quoted, mut depth) = (false, 0_usize);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            c if c == wanted && depth == 0 => return Ok(Some(at)),
            '(' | '[' if nests => depth += 1,
            ')' | ']' if nests => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    match nests && (quoted || depth > 0) {
        true => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "improper type name",
        )),
        false => Ok(None),
    }
}

/// The text of a name and the types in parentheses behind it, as `regprocedure` and `regoperator` read them; none is
/// NONE, where that may stand.
pub fn name_and_types<'t>(
    text: &'t str,
    allows_none: bool,
    lookup: NameLookup<'_>,
) -> Result<(&'t str, Vec<Option<TypeId>>)> {
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_TEXT_REPRESENTATION, what);
    let open = first_outside(text, '(', false)?;
    let open = open.ok_or_else(|| wrong("expected a left parenthesis"))?;
    let (name, rest) = text.split_at(open);
    let inner = rest.get(1..).unwrap_or_default().trim_end();
    let inner = inner.strip_suffix(')');
    let inner = inner.ok_or_else(|| wrong("expected a right parenthesis"))?;
    let mut types = Vec::new();
    let mut rest = Some(inner.trim_start()).filter(|inner| !inner.is_empty());
    while let Some(part) = rest {
        if part.is_empty() {
            return Err(wrong("expected a type name"));
        }
        let comma = first_outside(part, ',', true)?;
        let named = part.get(..comma.unwrap_or(part.len())).unwrap_or_default();
        let named = named.trim_end();
        types.push(match allows_none && named.eq_ignore_ascii_case("none") {
            true => None,
            false => Some(type_by_text(named, lookup)?),
        });
        rest = comma.map(|comma| part.get(comma + 1..).unwrap_or_default().trim_start());
    }
    Ok((name, types))
}
