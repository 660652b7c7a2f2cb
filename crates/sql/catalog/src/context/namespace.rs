//! How a session looks names up in schemas.
//!
//! Owns: the trait that a session implements for it, and [`LookupScope`]: as whom, where, and what of it is noted.
//! Invariant: whoever changes a session's scope for a while puts it back, whatever happens.
//!
//! Does not: ask (`name_lookup`).

use super::Context;
use crate::Catalog;
use logstead_sql_types::error::Result;
use logstead_sql_types::{RoleId, SchemaId};
use std::cell::RefCell;
use std::rc::Rc;

/// Who looks names up.
pub trait NamespaceContext {
    /// 42501 unless a role, or the current one, may look up names in the schema. Its number, if there is such a schema.
    fn look_into(
        &self,
        catalog: &Catalog,
        schema: &str,
        role: Option<RoleId>,
    ) -> Result<Option<SchemaId>>;
    /// How names are looked up at the moment; none where nobody asks, outside of a session.
    fn lookup_scope(&self) -> Option<&RefCell<LookupScope>>;
}

/// How a session looks names up while it binds the body of a function, or plans.
#[derive(Clone, Debug, Default)]
pub struct LookupScope {
    /// Whose privileges count in the place of the current role's: the owner of a function with SECURITY DEFINER.
    pub role: Option<RoleId>,
    /// The schemas searched in the place of the session's.
    pub search_path: Option<Rc<[String]>>,
    /// The schemas that were asked about, while they are recorded.
    schemas: Option<Vec<SchemaId>>,
}

impl LookupScope {
    /// A schema was asked about.
    pub(crate) fn note(&mut self, schema: SchemaId) {
        if let Some(schemas) = &mut self.schemas
            && !schemas.contains(&schema)
        {
            schemas.push(schema);
        }
    }
}

/// Puts a session's scope back.
struct ScopeGuard<'a> {
    scope: &'a RefCell<LookupScope>,
    outer: LookupScope,
}

impl Drop for ScopeGuard<'_> {
    fn drop(&mut self) {
        self.scope.replace(std::mem::take(&mut self.outer));
    }
}

/// Runs something that looks names up with the privileges of a role, and in these schemas, if it is told any.
pub fn looking_up_as<T>(
    session: &dyn Context,
    role: Option<RoleId>,
    search_path: Option<Rc<[String]>>,
    run: impl FnOnce() -> T,
) -> T {
    let Some(scope) = session.lookup_scope() else {
        return run();
    };
    let mut outer = scope.borrow().clone();
    // What is asked about for another role is its owner's business.
    let inner = LookupScope {
        schemas: match role {
            Some(_) => None,
            None => outer.schemas.take(),
        },
        search_path: search_path.or_else(|| outer.search_path.clone()),
        role,
    };
    scope.replace(inner);
    let mut guard = ScopeGuard { scope, outer };
    let done = run();
    if role.is_none() {
        guard.outer.schemas = scope.borrow_mut().schemas.take();
    }
    done
}

/// Runs something, and tells which schemas were asked about for the current role meanwhile.
pub fn recording_schemas<T>(session: &dyn Context, run: impl FnOnce() -> T) -> (T, Vec<SchemaId>) {
    let Some(scope) = session.lookup_scope() else {
        return (run(), Vec::new());
    };
    let outer = scope.borrow().clone();
    scope.borrow_mut().schemas = Some(Vec::new());
    let _guard = ScopeGuard { scope, outer };
    let done = run();
    let schemas = scope.borrow_mut().schemas.take();
    (done, schemas.unwrap_or_default())
}
