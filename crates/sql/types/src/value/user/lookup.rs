//! Names that a statement qualifies with a schema: may its role look them up there?
//!
//! Owns the question that PostgreSQL asks in `LookupExplicitNamespace`. Whatever resolves a name that somebody wrote (a
//! table, a type, a function, a sequence, text that is read as a `regclass`) asks it first, here ([`explicit`]). So no
//! kind of name has a check of its own, and nobody is told whether a name exists in a schema that is closed to them.
//!
//! Invariants:
//! - What is resolved already is not asked about again: texts that the catalog keeps name objects by number.
//! - Outside of a session nobody asks: the catalog reads its own texts.
//! - A plan may be run by another role than the one it was made for. The schemas that were asked about while it was
//!   made are noted ([`recording_lookups`]) and go with it.
//!
//! It does not check names that are looked for on the search path, nor the right to make something in a schema.

use super::super::types::{Oid, PG_CATALOG};
use super::registry::UserTypes;
use super::scope::with_lookup;
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::any::Any;
use std::rc::Weak as RcWeak;
use std::sync::{Arc, Weak};

/// A catalog, as far as types' names are looked up in it. Whoever looks into its schemas knows what it is.
pub trait TypeCatalog: Any + Send + Sync {
    /// The types that users have made.
    fn user_types(&self) -> &Arc<UserTypes>;
}

/// Who looks names up: a session.
pub trait NamespaceChecker {
    /// 42501 unless a role, or the current one, may look up names in the schema. Its number, if there is such a schema.
    fn look_into(
        &self,
        catalog: Option<&dyn TypeCatalog>,
        schema: &str,
        role: Option<Oid>,
    ) -> Result<Option<Oid>>;
}

/// What the running statement looks names up with.
#[derive(Clone, Default)]
pub struct Lookup {
    who: Option<RcWeak<dyn NamespaceChecker>>,
    catalog: Option<Weak<dyn TypeCatalog>>,
    /// Whose privileges count in the place of the current role's.
    as_role: Option<Oid>,
    noted: Vec<Oid>,
}

impl Lookup {
    /// From now on it is this one that looks names up.
    pub fn begin(&mut self, who: RcWeak<dyn NamespaceChecker>) {
        if !self.who.as_ref().is_some_and(|old| old.ptr_eq(&who)) {
            self.who = Some(who);
        }
    }

    /// From now on schemas are those of this catalog.
    pub fn enter<C: TypeCatalog>(&mut self, catalog: &Arc<C>) {
        let same =
            |known: &Weak<dyn TypeCatalog>| std::ptr::addr_eq(known.as_ptr(), Arc::as_ptr(catalog));
        if !self.catalog.as_ref().is_some_and(same) {
            let catalog: Weak<C> = Arc::downgrade(catalog);
            self.catalog = Some(catalog);
        }
    }
}

/// 42501 unless the running statement may look up names in the schema that it names.
pub fn explicit(schema: &str) -> Result<()> {
    look(schema).map(|_| ())
}

/// The same, and 3F000 unless there is such a schema.
pub fn existing(schema: &str) -> Result<()> {
    match look(schema)? {
        NamespaceLookup::Absent => Err(SqlError::new(
            SqlState::INVALID_SCHEMA_NAME,
            format!("schema \"{schema}\" does not exist"),
        )),
        NamespaceLookup::Found | NamespaceLookup::NotAsked => Ok(()),
    }
}

/// What came of looking for a schema.
enum NamespaceLookup {
    Found,
    Absent,
    NotAsked,
}

fn look(schema: &str) -> Result<NamespaceLookup> {
    if schema == "pg_catalog" {
        return Ok(NamespaceLookup::Found);
    }
    let (who, catalog, role) = with_lookup(|lookup| {
        let who = lookup.who.as_ref().and_then(RcWeak::upgrade);
        (
            who,
            lookup.catalog.as_ref().and_then(Weak::upgrade),
            lookup.as_role,
        )
    });
    let Some(who) = who else {
        return Ok(NamespaceLookup::NotAsked);
    };
    let Some(found) = who.look_into(catalog.as_deref(), schema, role)? else {
        return Ok(NamespaceLookup::Absent);
    };
    if found != PG_CATALOG {
        with_lookup(|lookup| match lookup.noted.contains(&found) {
            true => {}
            false => lookup.noted.push(found),
        });
    }
    Ok(NamespaceLookup::Found)
}

/// Runs something, and tells which schemas were asked about for the current role meanwhile.
pub fn recording_lookups<T>(run: impl FnOnce() -> T) -> (T, Vec<Oid>) {
    let outer = with_lookup(|lookup| std::mem::take(&mut lookup.noted));
    let done = run();
    let noted = with_lookup(|lookup| std::mem::replace(&mut lookup.noted, outer));
    (done, noted)
}

/// Runs something with the privileges of a role in the place of the current role's.
pub fn as_role<T>(role: Option<Oid>, run: impl FnOnce() -> T) -> T {
    struct LookupGuard(Option<Oid>);
    impl Drop for LookupGuard {
        fn drop(&mut self) {
            with_lookup(|lookup| lookup.as_role = self.0);
        }
    }
    let _back = LookupGuard(with_lookup(|lookup| {
        std::mem::replace(&mut lookup.as_role, role)
    }));
    run()
}
