//! What the running statement's values see of users' types.
//!
//! Owns: the thread's scope (a catalog's types, and the schemas whose types errors about values spell without them) and
//! [`Scoped`], a task with a scope of its own.
//! Invariant: whoever changes the scope for a while puts it back, whatever happens.
//!
//! Does not: look up names that somebody wrote (`logstead_sql_catalog::name_lookup`).

use super::super::record::TupleDesc;
use super::super::types::SqlType;
use super::element_under;
use super::registry::{TypeCatalog, TypeLookup, UserTypes};
use super::{UserTypeClass, class, is_composite};
use crate::TypeId;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll};

/// What the running statement sees of users' types.
#[derive(Clone)]
pub(super) struct TypeScope {
    pub(super) types: Arc<UserTypes>,
    /// The schemas whose types errors about values spell without them.
    pub(super) path: Rc<[String]>,
}

impl TypeScope {
    /// The types, and where they are searched.
    pub(super) fn lookup(&self) -> TypeLookup<'_> {
        TypeLookup {
            types: &self.types,
            search_path: &self.path,
        }
    }
}

impl Default for TypeScope {
    fn default() -> TypeScope {
        TypeScope {
            types: Arc::default(),
            path: Rc::from([]),
        }
    }
}

thread_local! {
    pub(super) static SCOPE: RefCell<TypeScope> = RefCell::default();
}

/// From now on this task sees the types of this catalog.
pub fn enter<C: TypeCatalog>(catalog: &Arc<C>) {
    SCOPE.with_borrow_mut(|scope| {
        let types = catalog.user_types();
        if !Arc::ptr_eq(&scope.types, types) {
            scope.types = Arc::clone(types);
        }
    });
}

/// From now on the types of these schemas are spelled without them.
pub fn search(path: &Rc<[String]>) {
    SCOPE.with_borrow_mut(|scope| {
        if !Rc::ptr_eq(&scope.path, path) {
            scope.path = Rc::clone(path);
        }
    });
}

/// Runs something for which the types of these schemas are spelled without them.
pub fn searching<T>(path: &Rc<[String]>, run: impl FnOnce() -> T) -> T {
    struct ScopeGuard(Rc<[String]>);
    impl Drop for ScopeGuard {
        fn drop(&mut self) {
            search(&self.0);
        }
    }
    let _back = ScopeGuard(SCOPE.with_borrow(|scope| Rc::clone(&scope.path)));
    search(path);
    run()
}

pub(super) fn types() -> Arc<UserTypes> {
    SCOPE.with_borrow(|scope| Arc::clone(&scope.types))
}

/// Fields of a composite type or of a relation's row, as the running statement sees them.
pub(in crate::value) fn tuple_desc(oid: TypeId) -> Option<TupleDesc> {
    if !is_composite(oid) {
        return None;
    }
    SCOPE.with_borrow(|scope| scope.types.shape(oid))
}

/// The domain that a type is, or is an array over.
#[inline]
pub fn domain_in(oid: TypeId) -> Option<TypeId> {
    match class(oid)? {
        UserTypeClass::Domain => Some(oid),
        UserTypeClass::Array if class(element_under(oid)) == Some(UserTypeClass::Domain) => {
            Some(element_under(oid))
        }
        _ => None,
    }
}

/// The type of the values of what is declared so: a domain's base type, an array over it for an array over the domain;
/// any other type is itself.
#[inline]
pub fn base_type(ty: SqlType) -> SqlType {
    match domain_in(ty.oid) {
        None => ty,
        Some(_) => types().base_type(ty),
    }
}

/// A task with a scope of its own, whatever else its thread runs.
pub struct Scoped<F> {
    scope: TypeScope,
    work: Pin<Box<F>>,
}

/// Gives a task a scope of its own.
pub fn scoped<F: Future>(work: F) -> Scoped<F> {
    Scoped {
        scope: TypeScope::default(),
        work: Box::pin(work),
    }
}

/// Puts the thread's scope back, whatever happens.
struct ScopeSwap<'a>(&'a mut TypeScope);

impl<'a> ScopeSwap<'a> {
    pub(super) fn new(scope: &'a mut TypeScope) -> ScopeSwap<'a> {
        SCOPE.with_borrow_mut(|current| std::mem::swap(current, scope));
        ScopeSwap(scope)
    }
}

impl Drop for ScopeSwap<'_> {
    fn drop(&mut self) {
        SCOPE.with_borrow_mut(|current| std::mem::swap(current, self.0));
    }
}

impl<F: Future> Future for Scoped<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut TaskContext<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let _scope = ScopeSwap::new(&mut this.scope);
        this.work.as_mut().poll(cx)
    }
}

/// Runs something with other types and an empty path in sight.
pub fn with<T>(types: &Arc<UserTypes>, run: impl FnOnce() -> T) -> T {
    let mut scope = TypeScope {
        types: Arc::clone(types),
        path: Rc::from([]),
    };
    let _scope = ScopeSwap::new(&mut scope);
    run()
}
