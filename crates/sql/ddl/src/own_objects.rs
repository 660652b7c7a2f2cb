//! Which statements make, change or read into a session's own objects, and nothing else: the only ones that a replica
//! runs of those that change something.
//!
//! It is judged by the names in the statement, before anything else is looked at, as a read-only transaction judges. A
//! statement that writes beside what it names does not get through all the same: nothing that lasts can be stored at a
//! replica (`WriteError::Replica`), and what a statement has changed is looked at when it is through
//! ([`DdlState::changes_lasting`](super::DdlState::changes_lasting)).
//!
//! Owners and privileges do not count: temporary objects have none of their own.

use super::{DdlContext, view};
use crate::pg_catalog::calls::{self, QualifiedName};
use logstead_sql_catalog::Schema;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::temporary::{ALIAS, is_temporary_schema};
use logstead_sql_parse::ast::{
    AlterTableCmd, CopySource, CopyStmt, DropStmt, ObjectRef, ObjectType, Persistence, RangeVar,
    ReindexTarget, RelationKind, RenameStmt, Stmt, ViewStmt,
};

/// Whose the object is that a name means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// The session's.
    Session,
    /// Everybody's.
    Database,
    /// There is none.
    Absent,
}

/// Is the statement about objects that the session has for itself, and no others?
pub fn is_of_own_objects(stmt: &Stmt, lookup: NameLookup<'_>) -> bool {
    let named = Names(lookup);
    match stmt {
        Stmt::Create(create) => named.makes_own_relation(&create.relation),
        Stmt::CreateTableAs(create) => {
            !create.is_materialized_view && named.makes_own_relation(&create.into.rel)
        }
        Stmt::View(create) => named.makes_own_relation(&create.view),
        Stmt::CreateSeq(create) => named.makes_own_relation(&create.sequence),
        Stmt::CreateFunction(create) => named.makes_own(&create.funcname),
        Stmt::Define(define) if define.kind == ObjectType::Aggregate => {
            let of_arguments = define.aggregate.as_ref();
            let name = of_arguments.map_or(&define.defnames, |object| &object.objname);
            named.makes_own(name)
        }
        Stmt::Index(create) => named.is_own(&create.relation),
        Stmt::CreateTrig(create) => named.is_own(&create.relation),
        Stmt::CreatePolicy(create) => named.is_own(&create.table),
        Stmt::AlterPolicy(alter) => named.is_own(&alter.table),
        Stmt::AlterSeq(alter) => named.may_change(&alter.sequence, alter.missing_ok),
        Stmt::AlterTable(alter) => {
            let gives_away = |cmd: &AlterTableCmd| matches!(cmd, AlterTableCmd::ChangeOwner(_));
            alter.objtype != RelationKind::Type
                && !alter.cmds.iter().any(gives_away)
                && named.may_change(&alter.relation, alter.missing_ok)
        }
        Stmt::AlterFunction(alter) => named.is_in_own_schema(&alter.func.objname),
        Stmt::Rename(rename) => named.may_rename(rename),
        Stmt::Drop(drop) => named.may_drop(drop),
        Stmt::Comment(comment) => {
            named.owner_of(comment.objtype, &comment.object) == Owner::Session
        }
        Stmt::Truncate(truncate) => truncate.relations.iter().all(|table| named.is_own(table)),
        Stmt::Copy(copy) => copied_into(copy).is_some_and(|table| named.is_own(table)),
        // Without a name they are about all tables.
        Stmt::Vacuum(vacuum) => {
            let mut tables = vacuum.rels.iter().map(|of| &of.relation);
            !vacuum.rels.is_empty() && tables.all(|table| named.is_own(table))
        }
        Stmt::Cluster(cluster) => {
            let table = cluster.relation.as_ref();
            table.is_some_and(|table| named.is_own(table))
        }
        Stmt::Reindex(reindex) => match &reindex.target {
            ReindexTarget::Index(relation) | ReindexTarget::Table(relation) => {
                named.is_own(relation)
            }
            ReindexTarget::Schema(_) | ReindexTarget::System(_) | ReindexTarget::Database(_) => {
                false
            }
        },
        _ => false,
    }
}

/// Does CREATE VIEW make one for the session though it does not say so, because its query reads such objects?
pub async fn view_is_own(create: &ViewStmt, cx: &mut DdlContext<'_>) -> bool {
    view::reads_temporary(create, cx).await.unwrap_or(false)
}

/// The table that COPY puts rows into.
fn copied_into(copy: &CopyStmt) -> Option<&RangeVar> {
    match &copy.source {
        CopySource::Relation { relation, .. } if copy.is_from => Some(relation),
        _ => None,
    }
}

/// Names as the session means them.
struct Names<'a>(NameLookup<'a>);

impl Names<'_> {
    fn is_own_schema(&self, name: &str) -> bool {
        let own = self.0.catalog.temp.as_ref();
        name == ALIAS || own.is_some_and(|own| own.name == name)
    }

    /// Does the name say that the object is the session's own?
    fn is_in_own_schema(&self, name: &(impl QualifiedName + ?Sized)) -> bool {
        let parts = calls::name_parts(name);
        parts.is_ok_and(|(schema, _)| schema.is_some_and(|schema| self.is_own_schema(&schema)))
    }

    /// Is what is made under the name the session's own?
    fn makes_own(&self, name: &(impl QualifiedName + ?Sized)) -> bool {
        let Ok((None, _)) = calls::name_parts(name) else {
            return self.is_in_own_schema(name);
        };
        // As `DdlContext::target_schema` takes it.
        let is_users =
            |name: &&String| !matches!(name.as_str(), "pg_catalog" | "information_schema");
        let path = self.0.search_path.iter().filter(is_users);
        let mut there = path.filter(|name| *name == ALIAS || self.schema(name).is_some());
        there.next().is_some_and(|name| self.is_own_schema(name))
    }

    fn schema(&self, name: &str) -> Option<&Schema> {
        self.0.catalog.schema(name).map(|schema| &**schema)
    }

    fn makes_own_relation(&self, relation: &RangeVar) -> bool {
        relation.persistence == Persistence::Temporary || self.makes_own(relation)
    }

    /// Whose relation, or whose table's index, has the name.
    fn owner(&self, name: &(impl QualifiedName + ?Sized)) -> Owner {
        if self.is_in_own_schema(name) {
            return Owner::Session;
        }
        let Ok((schema, plain)) = calls::lookup_parts(name, self.0) else {
            return Owner::Database;
        };
        let catalog = self.0.catalog;
        let found = catalog.object_by_name(schema.as_deref(), &plain, self.0.search_path);
        let Some(oid) = found else {
            return Owner::Absent;
        };
        let table = catalog.index_tables.get(&oid).unwrap_or(&oid);
        match catalog.relations.get(table) {
            Some(relation) if is_temporary_schema(&relation.schema_name) => Owner::Session,
            _ => Owner::Database,
        }
    }

    fn is_own(&self, name: &(impl QualifiedName + ?Sized)) -> bool {
        self.owner(name) == Owner::Session
    }

    /// The same, or there is none and none need be.
    fn may_change(&self, name: &(impl QualifiedName + ?Sized), missing_ok: bool) -> bool {
        match self.owner(name) {
            Owner::Session => true,
            Owner::Absent => missing_ok,
            Owner::Database => false,
        }
    }

    fn owner_of(&self, kind: ObjectType, object: &ObjectRef) -> Owner {
        use ObjectType as Kind;
        match (kind, object) {
            (Kind::Table | Kind::Index | Kind::Sequence | Kind::View, ObjectRef::Name(name)) => {
                self.owner(name)
            }
            (
                Kind::Table
                | Kind::Index
                | Kind::Sequence
                | Kind::View
                | Kind::Column
                | Kind::TabConstraint,
                ObjectRef::Relation(name),
            ) => self.owner(name),
            (Kind::Column, ObjectRef::Name(name)) => match name.names.as_slice() {
                [table @ .., _] if !table.is_empty() => self.owner(table),
                _ => Owner::Database,
            },
            (
                Kind::TabConstraint | Kind::Trigger | Kind::Policy,
                ObjectRef::OnRelation { relation, .. },
            ) => self.owner(relation),
            // They are never looked for there but by a schema's name.
            (
                Kind::Function | Kind::Procedure | Kind::Routine | Kind::Aggregate,
                ObjectRef::WithArgs(object),
            ) if self.is_in_own_schema(&object.objname) => Owner::Session,
            _ => Owner::Database,
        }
    }

    fn may_rename(&self, rename: &RenameStmt) -> bool {
        match self.owner_of(rename.rename_type, &rename.object) {
            Owner::Session => true,
            Owner::Absent => rename.missing_ok,
            Owner::Database => false,
        }
    }

    fn may_drop(&self, drop: &DropStmt) -> bool {
        let mut owners = drop
            .objects
            .iter()
            .map(|o| self.owner_of(drop.remove_type, o));
        owners.all(|owner| match owner {
            Owner::Session => true,
            Owner::Absent => drop.missing_ok,
            Owner::Database => false,
        })
    }
}
