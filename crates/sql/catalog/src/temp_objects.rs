//! Temporary objects: tables, sequences, views, indexes and functions that one session has for itself.
//!
//! They live in a schema of the session, `pg_temp_N`, which is in no stored catalog: nothing of them is logged, and
//! nothing is there after the session. What the session sees is the current catalog with them laid over it
//! ([`TempObjects::over`]); others see the catalog without. DDL works on them as on any object, in the transaction's
//! own list of changes (`ddl`), but writes no rows of the catalog; when the transaction becomes visible the list is
//! divided: what is of temporary objects goes here, the rest is published.
//!
//! Invariants:
//! - A temporary table's storage is a temporary one of the engine, whose rows are not logged either; a temporary
//!   sequence's state is in memory.
//! - When the session ends, in whatever way, its storages go: dropping this drops them.
//!
//! Not done here: objects of other sessions are not to be seen in `pg_class`, as they are in PostgreSQL.

use crate::change::{CatalogChange, is_stored};
use crate::routine::Routine;
use crate::store::CatalogStore;
use crate::temporary::{PREFIX, is_temporary_schema};
use crate::types_in_use::{TypeUse, TypeUser};
use crate::{Catalog, Relation, RelationKind};
use logstead_sql_types::value::{Oid, user};
use logstead_sql_types::{DatabaseOid, TypeId};
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

/// The users' types in a temporary relation, each with what uses it.
fn types_used(relation: &Relation) -> Vec<TypeUse> {
    let table = format!("{}.{}", relation.schema_name, relation.name);
    let mut used: Vec<TypeUse> = Vec::new();
    for column in relation.columns.iter().filter(|c| !c.dropped) {
        // A domain, not what it is over.
        let declared = column.declared().oid;
        let ty = match user::class(declared) {
            Some(user::UserTypeClass::Array | user::UserTypeClass::Multirange) => {
                user::made(declared)
            }
            Some(_) => declared,
            None => continue,
        };
        used.push(TypeUse {
            ty,
            user: TypeUser::Part(format!("column {} of table {table}", column.name)),
            stored: relation.has_rows(),
        });
    }
    let live = relation.columns.iter().filter(|c| !c.dropped);
    let texts = live.filter_map(|c| c.default.as_deref());
    let texts = texts.chain(relation.constraints.iter().filter_map(|c| c.check()));
    let texts = texts.chain(relation.indexes.iter().flat_map(|i| i.texts()));
    let texts = texts.chain(relation.view().map(|view| &*view.query));
    for ty in texts.flat_map(user::types_named) {
        if !used.iter().any(|known| known.ty == ty) {
            used.push(TypeUse {
                ty,
                user: TypeUser::Part(format!("an expression of {table}")),
                stored: false,
            });
        }
    }
    used
}

/// The users' types in the arguments and the result of a temporary function.
fn types_of_routine(routine: &Arc<Routine>) -> Vec<TypeUse> {
    let mut used: Vec<TypeId> = routine.types().filter_map(user::of_users).collect();
    let defaults = routine.args.iter().filter_map(|arg| arg.default.as_deref());
    used.extend(defaults.flat_map(user::types_named));
    let of = |ty| TypeUse {
        ty,
        user: TypeUser::Routine(Arc::clone(routine)),
        stored: false,
    };
    used.into_iter().map(of).collect()
}

/// The catalog with the temporary objects over it, and what it was made from.
struct Composed {
    catalog: Arc<Catalog>,
    base: u64,
}

/// A session's temporary objects, as far as they are committed.
pub struct TempObjects {
    store: Arc<CatalogStore>,
    /// Name of the session's schema, made when it is first needed.
    schema: String,
    /// Holds nothing else.
    own: RefCell<Catalog>,
    composed: RefCell<Option<Composed>>,
}

impl TempObjects {
    /// Those of the session with this number: none.
    pub fn new(store: &Arc<CatalogStore>, session: i32) -> TempObjects {
        TempObjects {
            store: Arc::clone(store),
            schema: format!("{PREFIX}{session}"),
            own: RefCell::new(Catalog::bare(DatabaseOid::default(), "")),
            composed: RefCell::default(),
        }
    }

    /// What the session's schema is called.
    pub fn schema_name(&self) -> &str {
        &self.schema
    }

    /// Has the session never made any?
    pub fn is_empty(&self) -> bool {
        self.own.borrow().temp.is_none()
    }

    /// Does any of them exist now?
    pub fn has_objects(&self) -> bool {
        let own = self.own.borrow();
        !own.relations.is_empty() || !own.routines.all().is_empty()
    }

    /// The session's view of a catalog: the same one as before if neither has changed.
    pub fn over(&self, base: Arc<Catalog>) -> Arc<Catalog> {
        if self.is_empty() {
            return base;
        }
        let mut composed = self.composed.borrow_mut();
        if let Some(made) = composed.as_ref().filter(|made| made.base == base.version) {
            return Arc::clone(&made.catalog);
        }
        let mut catalog = Catalog::clone(&base);
        let own = self.own.borrow();
        if let Some(schema) = &own.temp {
            CatalogChange::PutSchema(Arc::clone(schema)).apply(&mut catalog);
        }
        for relation in own.relations.values() {
            catalog.put_relation(Arc::clone(relation));
        }
        for routine in own.routines.all() {
            CatalogChange::PutRoutine(Arc::clone(routine)).apply(&mut catalog);
        }
        let notes = &own.notes;
        let copied = notes.options.iter().map(|(k, v)| (*k, v.clone()));
        catalog.notes.options.extend(copied);
        let copied = notes.comments.iter().map(|(k, v)| (*k, Arc::clone(v)));
        catalog.notes.comments.extend(copied);
        let copied = notes.on_commit.iter().map(|(k, v)| (*k, *v));
        catalog.notes.on_commit.extend(copied);
        for (table, shapes) in notes.record_shapes.iter() {
            let shapes = Arc::clone(shapes);
            catalog.notes.record_shapes.insert(*table, shapes);
        }
        for (table, found) in own.statistics.iter() {
            CatalogChange::Statistics(*table, Arc::clone(found)).apply(&mut catalog);
        }
        for trigger in own.triggers.all() {
            CatalogChange::PutTrigger(Arc::clone(trigger)).apply(&mut catalog);
        }
        catalog.version = self.store.new_version();
        catalog.base = Some(base.version);
        let catalog = Arc::new(catalog);
        *composed = Some(Composed {
            catalog: Arc::clone(&catalog),
            base: base.version,
        });
        catalog
    }

    /// Takes over a committed transaction's changes of temporary objects; gives the others. At a replica there are
    /// none.
    pub fn committed(&self, changes: Vec<CatalogChange>) -> Vec<CatalogChange> {
        let mut objects = self.objects();
        // What is said of an object may stand before the object.
        for change in &changes {
            match change {
                CatalogChange::PutRelation(relation) if relation.is_temporary() => {
                    objects.insert(relation.oid.get());
                    objects.extend(relation.constraints.iter().map(|c| c.oid));
                }
                CatalogChange::PutIndex(index) if objects.contains(&index.table.get()) => {
                    objects.insert(index.oid.get());
                }
                CatalogChange::PutRoutine(routine) if routine.is_temporary() => {
                    objects.insert(routine.oid.get());
                }
                _ => {}
            }
        }
        let is_replica = self.store.is_replica();
        let is_own = |change: &CatalogChange| match change {
            _ if is_replica => true,
            CatalogChange::PutSchema(schema) => is_temporary_schema(&schema.name),
            CatalogChange::PutRelation(relation) => relation.is_temporary(),
            CatalogChange::PutRoutine(routine) => routine.is_temporary(),
            CatalogChange::PutIndex(index) => objects.contains(&index.table.get()),
            CatalogChange::PutTrigger(trigger) => objects.contains(&trigger.table.get()),
            CatalogChange::DropTrigger(table, _) => objects.contains(&table.get()),
            CatalogChange::DropRoutine(oid) => objects.contains(&oid.get()),
            CatalogChange::Comment((_, oid, _), _) => objects.contains(oid),
            CatalogChange::DropRelation(oid)
            | CatalogChange::DropIndex(oid)
            | CatalogChange::Options(oid, _)
            | CatalogChange::OnCommit(oid, _)
            | CatalogChange::RecordShapes(oid, _)
            | CatalogChange::Statistics(oid, _) => objects.contains(&oid.get()),
            _ => false,
        };
        let (own, others): (Vec<_>, Vec<_>) = changes.into_iter().partition(is_own);
        if !own.is_empty() {
            let mut catalog = self.own.borrow_mut();
            own.iter().for_each(|change| change.apply(&mut catalog));
            *self.composed.borrow_mut() = None;
            let users = catalog.relations.values().flat_map(|r| types_used(r));
            let routines = catalog.routines.all();
            let users = users.chain(routines.iter().flat_map(|r| types_of_routine(r)));
            let users = users.collect();
            self.store.temporary_types.set(&self.schema, users);
        }
        others
    }

    /// The numbers of all of them, constraints included.
    fn objects(&self) -> HashSet<Oid> {
        let own = self.own.borrow();
        let routines: Vec<Oid> = own.routines.all().iter().map(|r| r.oid.get()).collect();
        let relations = own.relations.values().flat_map(|relation| {
            let indexes = relation.indexes.iter().map(|i| i.oid.get());
            let constraints = relation.constraints.iter().map(|c| c.oid);
            indexes.chain(constraints).chain([relation.oid.get()])
        });
        relations.chain(routines).collect()
    }
}

impl Drop for TempObjects {
    fn drop(&mut self) {
        self.store.temporary_types.set(&self.schema, Vec::new());
        for relation in self.own.get_mut().relations.values() {
            if is_stored(relation) {
                self.store.engine().drop_table(relation.storage);
            } else if matches!(relation.kind, RelationKind::Sequence(_)) {
                self.store.sequences().forget(relation.storage);
            }
        }
    }
}
