//! What a transaction has changed in the catalog: a list that makes the next snapshot out of whichever is current.
//!
//! Invariant: each change touches one object only, so that the lists of two transactions that commit at the same time
//! may be applied in either order (the same object cannot be in both: its table lock or its catalog row was held to the
//! end).

use super::database::Database;
use super::dependents_index::{self, Dependent};
use super::large_objects::{self, PG_LARGEOBJECT};
use super::privileges::{DefaultAclKey, ObjectPrivileges};
use super::routine::Routine;
use super::temporary::{self, OnCommit};
use super::trigger::Trigger;
use super::{Catalog, IndexDef, RecordShapes, Relation, RelationKind, Schema, TableStatistics};
use crate::classes::{CatalogObject, PG_AUTHID, PG_DATABASE, PG_EXTENSION};
use crate::extensions::{EXTENSION_ROW, extension_of};
use crate::role::Role;
use crate::role::acl::Acl;
use logstead_sql_types::value::user::{Extension, UserType};
use logstead_sql_types::value::{Oid, user};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
use std::sync::Arc;

/// One changed object.
#[derive(Clone)]
pub enum CatalogChange {
    /// A schema made.
    PutSchema(Arc<Schema>),
    /// A schema dropped.
    DropSchema(SchemaId),
    /// A table or sequence made or replaced. The indexes listed in a *replaced* table are ignored: they have changes of
    /// their own.
    PutRelation(Arc<Relation>),
    /// A table or sequence dropped, with its indexes.
    DropRelation(RelationId),
    /// A type made or replaced.
    PutType(Arc<UserType>),
    /// A type dropped.
    DropType(TypeId),
    /// A function or procedure made or replaced.
    PutRoutine(Arc<Routine>),
    /// A function or procedure dropped.
    DropRoutine(FunctionId),
    /// A trigger made or replaced.
    PutTrigger(Arc<Trigger>),
    /// A trigger dropped: its table and its OID.
    DropTrigger(RelationId, Oid),
    /// An index made or replaced.
    PutIndex(Arc<IndexDef>),
    /// An index dropped.
    DropIndex(RelationId),
    /// A comment set or removed.
    Comment((RelationId, Oid, i32), Option<Arc<str>>),
    /// A database made or replaced. All databases know of each other.
    PutDatabase(Arc<Database>),
    /// What is in a database that was made just before, copied from its template; what all databases share in it counts
    /// for nothing.
    FillDatabase(Arc<Catalog>),
    /// A database dropped, with all that is in it.
    DropDatabase(DatabaseOid),
    /// A role made or replaced. Roles belong to all databases.
    PutRole(Arc<Role>),
    /// A role dropped.
    DropRole(RoleId),
    /// Owner and privileges of an object.
    Privileges(CatalogObject, Arc<ObjectPrivileges>),
    /// A large object dropped that somebody owned, or something was granted on.
    DropLargeObject(Oid),
    /// Default privileges, with their OID; none removes them.
    DefaultPrivileges(DefaultAclKey, Option<(Oid, Acl)>),
    /// WITH options of a table or index.
    Options(RelationId, Vec<String>),
    /// What COMMIT does with a temporary table.
    OnCommit(RelationId, OnCommit),
    /// What records a temporary table of a replica keeps.
    RecordShapes(RelationId, Arc<RecordShapes>),
    /// What ANALYZE has found out of a table.
    Statistics(RelationId, Arc<TableStatistics>),
}

impl CatalogChange {
    /// Does it change what all databases share?
    pub fn is_shared(&self) -> bool {
        match self {
            CatalogChange::PutRole(_)
            | CatalogChange::DropRole(_)
            | CatalogChange::PutDatabase(_)
            | CatalogChange::FillDatabase(_)
            | CatalogChange::DropDatabase(_) => true,
            CatalogChange::Privileges(object, _) => is_shared_class(object.class),
            CatalogChange::Comment((class, ..), _) => is_shared_class(*class),
            _ => false,
        }
    }

    /// At a replica: is it a change of an object that a session has for itself?
    pub fn is_own_at_replica(&self) -> bool {
        let object = match self {
            CatalogChange::PutSchema(schema) => schema.oid.get(),
            CatalogChange::DropSchema(schema) => schema.get(),
            CatalogChange::PutRoutine(routine) => routine.oid.get(),
            CatalogChange::DropRoutine(routine) => routine.get(),
            CatalogChange::PutRelation(relation) => relation.oid.get(),
            CatalogChange::PutTrigger(trigger) => trigger.table.get(),
            CatalogChange::PutIndex(index) => index.table.get(),
            CatalogChange::Comment((_, oid, _), _) => *oid,
            CatalogChange::DropRelation(oid)
            | CatalogChange::DropTrigger(oid, _)
            | CatalogChange::DropIndex(oid)
            | CatalogChange::Options(oid, _)
            | CatalogChange::OnCommit(oid, _)
            | CatalogChange::RecordShapes(oid, _)
            | CatalogChange::Statistics(oid, _) => oid.get(),
            _ => return false,
        };
        temporary::is_number_at_replica(object)
    }

    /// Makes it what others see: the transaction has committed.
    pub fn settle(&mut self) {
        if let CatalogChange::PutType(ty) = self {
            *ty = Arc::new(ty.settled());
        }
    }

    /// Applies it.
    pub fn apply(&self, catalog: &mut Catalog) {
        match self {
            CatalogChange::PutSchema(schema) => {
                if temporary::is_temporary_schema(&schema.name) {
                    catalog.temp = Some(Arc::clone(schema));
                }
                catalog.put_schema(Arc::clone(schema));
            }
            CatalogChange::DropSchema(oid) => {
                catalog.remove_schema(*oid);
                catalog.privileges.objects.remove(&(*oid).into());
                forget_comments(catalog, oid.get());
            }
            CatalogChange::PutRelation(relation) => {
                let indexes = catalog
                    .relations
                    .get(&relation.oid)
                    .map(|old| old.indexes.clone())
                    .unwrap_or_default();
                let mut new = Relation::clone(relation);
                new.indexes = indexes;
                let gone: Vec<Oid> = match catalog.relations.get(&relation.oid) {
                    Some(old) => old.constraints.iter().map(|c| c.oid).collect(),
                    None => Vec::new(),
                };
                for object in gone {
                    if new.constraints.iter().all(|c| c.oid != object) {
                        forget_comments(catalog, object);
                    }
                }
                for object in policies_of(catalog, relation.oid) {
                    if new.security.policies.iter().all(|p| p.oid != object) {
                        forget_comments(catalog, object);
                    }
                }
                catalog.put_relation(Arc::new(new));
            }
            CatalogChange::DropRelation(oid) => {
                if let Some(old) = catalog.relations.get(oid) {
                    let gone: Vec<_> = old.indexes.iter().map(|i| i.oid).chain([*oid]).collect();
                    let constraints: Vec<_> = old.constraints.iter().map(|c| c.oid).collect();
                    catalog.notes.on_commit.remove(oid);
                    catalog.notes.record_shapes.remove(oid);
                    let policies = policies_of(catalog, *oid);
                    let rule = old.view().map(|view| view.rule);
                    for relation in &gone {
                        catalog.notes.options.remove(relation);
                    }
                    let relations = gone.into_iter().map(RelationId::get);
                    let all = relations.chain(constraints).chain(policies);
                    for object in all.chain(rule) {
                        forget_comments(catalog, object);
                    }
                }
                catalog.privileges.objects.remove(&(*oid).into());
                catalog.statistics.remove(oid);
                if !catalog.triggers.of(*oid).is_empty() {
                    for trigger in Arc::make_mut(&mut catalog.triggers).take(*oid) {
                        forget_comments(catalog, trigger.oid);
                        refers_trigger(catalog, Some(&trigger), None);
                    }
                }
                catalog.remove_relation(*oid);
            }
            CatalogChange::PutType(ty) => {
                forget_checks(catalog, ty.oid, |check| {
                    let kept = ty.domain().map_or(&[][..], |domain| &domain.checks);
                    !kept.iter().any(|kept| kept.oid == check)
                });
                refers_type(catalog, ty.oid, Some(ty));
                Arc::make_mut(&mut catalog.types).put(Arc::clone(ty));
            }
            CatalogChange::DropType(oid) => {
                forget_checks(catalog, *oid, |_| true);
                refers_type(catalog, *oid, None);
                Arc::make_mut(&mut catalog.types).remove(*oid);
                catalog.privileges.objects.remove(&(*oid).into());
                if user::class(*oid) == Some(user::UserTypeClass::Base) {
                    let extension = (PG_EXTENSION, extension_of(*oid));
                    catalog.privileges.objects.remove(&extension.into());
                }
                forget_comments(catalog, oid.get());
            }
            CatalogChange::PutRoutine(routine) => {
                refers_routine(catalog, routine.oid, Some(routine));
                Arc::make_mut(&mut catalog.routines).put(Arc::clone(routine));
            }
            CatalogChange::DropRoutine(oid) => {
                refers_routine(catalog, *oid, None);
                Arc::make_mut(&mut catalog.routines).remove(*oid);
                catalog.privileges.objects.remove(&(*oid).into());
                forget_comments(catalog, oid.get());
            }
            CatalogChange::PutTrigger(trigger) => {
                let of_table = catalog.triggers.of(trigger.table).iter();
                let old = of_table.clone().find(|t| t.oid == trigger.oid).cloned();
                refers_trigger(catalog, old.as_deref(), Some(trigger));
                Arc::make_mut(&mut catalog.triggers).put(Arc::clone(trigger));
            }
            CatalogChange::DropTrigger(table, oid) => {
                let mut of_table = catalog.triggers.of(*table).iter();
                let old = of_table.find(|t| t.oid == *oid).cloned();
                refers_trigger(catalog, old.as_deref(), None);
                Arc::make_mut(&mut catalog.triggers).remove(*table, *oid);
                forget_comments(catalog, *oid);
            }
            CatalogChange::PutIndex(index) => edit_indexes(catalog, index.table, |indexes| {
                match indexes.iter_mut().find(|i| i.oid == index.oid) {
                    Some(old) => *old = Arc::clone(index),
                    None => indexes.push(Arc::clone(index)),
                }
            }),
            CatalogChange::DropIndex(oid) => {
                if let Some(table) = catalog.index_tables.get(oid).copied() {
                    edit_indexes(catalog, table, |indexes| indexes.retain(|i| i.oid != *oid));
                }
                catalog.notes.options.remove(oid);
                forget_comments(catalog, oid.get());
            }
            CatalogChange::Comment((class, oid, EXTENSION_ROW), text) if *class == PG_EXTENSION => {
                let made = text.as_deref().and_then(|text| {
                    let (schema, rest) = text.split_once('/')?;
                    let (version, name) = rest.split_once('/')?;
                    let schema = SchemaId::new(schema.parse().ok()?);
                    let schema_name = catalog.schemas.get(&schema)?.name.clone();
                    Some(Extension {
                        oid: *oid,
                        name: name.to_owned(),
                        schema,
                        schema_name,
                        version: version.to_owned(),
                    })
                });
                let types = Arc::make_mut(&mut catalog.types);
                match made {
                    Some(made) => types.put_extension(made),
                    None => types.remove_extension(*oid),
                }
                if text.is_none() {
                    catalog
                        .privileges
                        .objects
                        .remove(&(PG_EXTENSION, *oid).into());
                }
            }
            CatalogChange::Comment(key, text) => match text {
                Some(text) => catalog.notes.comments.insert(*key, Arc::clone(text)),
                None => catalog.notes.comments.remove(key),
            },
            CatalogChange::PutDatabase(database) => {
                if catalog.database == database.oid {
                    catalog.database_name.clone_from(&database.name);
                }
                Arc::make_mut(&mut catalog.notes.databases).put(Arc::clone(database));
            }
            // The others know no more of it than that it is there.
            CatalogChange::FillDatabase(_) => {}
            CatalogChange::DropDatabase(oid) => {
                Arc::make_mut(&mut catalog.notes.databases).remove(*oid);
                catalog.privileges.objects.remove(&(*oid).into());
                catalog.notes.comments.remove(&(PG_DATABASE, oid.get(), 0));
            }
            CatalogChange::PutRole(role) => Arc::make_mut(&mut catalog.roles).put(Arc::clone(role)),
            CatalogChange::DropRole(oid) => {
                Arc::make_mut(&mut catalog.roles).remove(*oid);
                catalog.notes.comments.remove(&(PG_AUTHID, oid.get(), 0));
            }
            CatalogChange::OnCommit(oid, action) => {
                catalog.notes.on_commit.insert(*oid, *action);
            }
            CatalogChange::RecordShapes(oid, shapes) => {
                let shapes = Arc::clone(shapes);
                catalog.notes.record_shapes.insert(*oid, shapes);
            }
            CatalogChange::DropLargeObject(object) => {
                catalog
                    .privileges
                    .objects
                    .remove(&(PG_LARGEOBJECT, *object).into());
            }
            CatalogChange::Privileges(object, privileges) => {
                let privileges = Arc::clone(privileges);
                catalog.privileges.objects.insert(*object, privileges);
            }
            CatalogChange::DefaultPrivileges(key, acl) => {
                match acl {
                    Some(acl) => catalog.privileges.defaults.insert(*key, acl.clone()),
                    None => catalog.privileges.defaults.remove(key),
                };
            }
            CatalogChange::Statistics(oid, found) => {
                catalog.statistics.insert(*oid, Arc::clone(found));
            }
            CatalogChange::Options(oid, options) if options.is_empty() => {
                catalog.notes.options.remove(oid);
            }
            CatalogChange::Options(oid, options) => {
                catalog.notes.options.insert(*oid, options.clone());
            }
        }
    }
}

/// Are objects of the class there for all databases?
pub fn is_shared_class(class: RelationId) -> bool {
    matches!(class, PG_DATABASE | PG_AUTHID)
}

fn policies_of(catalog: &Catalog, table: RelationId) -> Vec<Oid> {
    let policies = catalog.relations.get(&table);
    let policies = policies.map_or(&[][..], |table| &table.security.policies);
    policies.iter().map(|policy| policy.oid).collect()
}

fn forget_comments(catalog: &mut Catalog, object: Oid) {
    catalog.notes.comments.forget(object);
}

/// A type refers to what it refers to now; one that goes to nothing.
fn refers_type(catalog: &mut Catalog, oid: TypeId, new: Option<&UserType>) {
    let old = catalog.types.get(oid);
    let old = old
        .map(|ty| dependents_index::of_user_type(ty))
        .unwrap_or_default();
    let new = new.map(dependents_index::of_user_type).unwrap_or_default();
    let dependent = Dependent::Type(oid);
    catalog.dependents.replace(dependent, &old, &new);
}

/// The same of a routine.
fn refers_routine(catalog: &mut Catalog, oid: FunctionId, new: Option<&Routine>) {
    let old = catalog.routines.get(oid);
    let old = old
        .map(|r| dependents_index::of_routine(r))
        .unwrap_or_default();
    let new = new.map(dependents_index::of_routine).unwrap_or_default();
    let dependent = Dependent::Routine(oid);
    catalog.dependents.replace(dependent, &old, &new);
}

/// The same of a trigger.
fn refers_trigger(catalog: &mut Catalog, old: Option<&Trigger>, new: Option<&Trigger>) {
    let Some(trigger) = new.or(old) else {
        return;
    };
    let dependent = Dependent::Trigger(trigger.table, trigger.oid);
    let old = old.map(dependents_index::of_trigger).unwrap_or_default();
    let new = new.map(dependents_index::of_trigger).unwrap_or_default();
    catalog.dependents.replace(dependent, &old, &new);
}

/// Forgets the comments on those CHECKs of a domain that go.
fn forget_checks(catalog: &mut Catalog, domain: TypeId, goes: impl Fn(Oid) -> bool) {
    let old = catalog.types.get(domain).cloned();
    let checks = old.as_deref().and_then(|ty| ty.domain());
    for check in checks.map_or(&[][..], |domain| &domain.checks) {
        if goes(check.oid) {
            forget_comments(catalog, check.oid);
        }
    }
}

fn edit_indexes(
    catalog: &mut Catalog,
    table: RelationId,
    edit: impl FnOnce(&mut Vec<Arc<IndexDef>>),
) {
    let Some(old) = catalog.relations.get(&table) else {
        return;
    };
    let mut new = Relation::clone(old);
    edit(&mut new.indexes);
    catalog.put_relation(Arc::new(new));
}

/// True for relations that have a table in the engine.
pub fn is_stored(relation: &Relation) -> bool {
    relation.has_rows()
        || matches!(relation.kind, RelationKind::View(_))
        || large_objects::is_kept(relation)
}
