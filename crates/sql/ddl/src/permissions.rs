//! May a role do what it asks for? [`RoleChecker`] says it of whatever was bound, queries and calls of functions among
//! them. The rest is about DDL statements, and asked before any lock is taken.
//!
//! Invariants:
//! - A DDL statement of a kind that is not named here needs a superuser.
//! - Names that mean nothing are let through: the statement itself says so.

use super::DdlContext;
use super::object_address::{name_and_relation, name_of, plain_name, relation_of, relation_type};
use crate::pg_catalog::calls::{self, QualifiedName};
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::name_lookup::NameLookup;
use logstead_sql_catalog::privileges::{
    AclChecker, PermissionInfo, denied, denied_relation, word_of,
};
use logstead_sql_catalog::role::Roles;
use logstead_sql_catalog::role::acl::{AclKind, privilege as p};
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_parse::ast::{
    AlterTableCmd, AlterTableStmt, CommentStmt, Constraint, ConstraintKind, CreateStmt, DropStmt,
    ObjectType, Persistence, RangeVar, References, ReindexTarget, RelationKind as AlteredKind,
    Stmt, TableElement, TruncateStmt,
};
use logstead_sql_plan::permissions::{FunctionUse, SchemaLookup};
use logstead_sql_plan::{Bound, PermissionChecker, Permissions};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::{FunctionId, RelationId, RoleId, SchemaId};
use logstead_types::SqlState;
use std::sync::Arc;

/// The checker of a role that runs something, by the catalog that it was bound with. In PostgreSQL's order: schemas,
/// which are looked into when names are; relations; functions; what these do.
pub struct RoleChecker<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The roles.
    pub roles: &'a Roles,
    /// Who runs it.
    pub role: RoleId,
}

impl PermissionChecker for RoleChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let (catalog, role) = (self.catalog, self.role);
        let acl_checker = catalog.acl_checker(self.roles);
        refuse_schemas(&permissions.schemas, catalog, acl_checker, role)?;
        refuse_relations(&permissions.relations, |access| {
            acl_checker.allows(role, access)
        })?;
        refuse_routines(&permissions.functions, catalog, self.roles, role)?;
        refuse_relations(&permissions.relations_of_functions, |access| {
            acl_checker.allows(role, access)
        })
    }
}

/// The checker of a role that keeps a definition and runs nothing of it: names in it are looked up, that is all.
struct DefinitionChecker<'a>(RoleChecker<'a>);

impl PermissionChecker for DefinitionChecker<'_> {
    fn check(&mut self, permissions: &Permissions) -> Result<()> {
        let RoleChecker {
            catalog,
            roles,
            role,
        } = self.0;
        refuse_schemas(
            &permissions.schemas,
            catalog,
            catalog.acl_checker(roles),
            role,
        )
    }
}

/// 42501 for the first of the relations with which what is wanted is not allowed.
pub fn refuse_relations(
    relations: &[PermissionInfo],
    mut is_allowed: impl FnMut(&PermissionInfo) -> bool,
) -> Result<()> {
    let refused = relations.iter().find(|access| !is_allowed(access));
    refused.map_or(Ok(()), |access| Err(denied_relation(&access.relation)))
}

/// 42501 for a schema that may not be used; a name that was only looked for on the path does not exist then.
pub fn refuse_schemas(
    schemas: &[SchemaLookup],
    catalog: &Catalog,
    acl_checker: AclChecker<'_>,
    role: RoleId,
) -> Result<()> {
    for SchemaLookup {
        schema,
        unqualified,
    } in schemas
    {
        if acl_checker.may_use_schema(role, *schema) {
            continue;
        }
        return Err(match unqualified {
            Some(name) => SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{name}\" does not exist"),
            ),
            None => denied_schema(*schema, catalog),
        });
    }
    Ok(())
}

/// 42501 for a function that may not be called.
pub fn refuse_routines(
    functions: &[FunctionUse],
    catalog: &Catalog,
    roles: &Roles,
    role: RoleId,
) -> Result<()> {
    let acl_checker = catalog.acl_checker(roles);
    for FunctionUse { function, as_role } in functions {
        let object = (*function, AclKind::Function);
        if acl_checker
            .on_object(as_role.unwrap_or(role), object, p::EXECUTE, 0)
            .0
            == 0
        {
            let found = catalog.routines.get(*function);
            let (kind, name) = match found {
                Some(routine) => (routine.word(), routine.name.as_str()),
                None => ("function", "?"),
            };
            return Err(denied(format!("permission denied for {kind} {name}")));
        }
    }
    Ok(())
}

pub(super) fn denied_schema(schema: SchemaId, catalog: &Catalog) -> SqlError {
    let name = catalog
        .schemas
        .get(&schema)
        .map_or("?", |s| s.name.as_str());
    denied(format!("permission denied for schema {name}"))
}

impl DdlContext<'_> {
    /// What is bound, to be run; 42501 unless the current role may run it.
    pub(super) fn may_run<T>(&mut self, bound: Bound<T>) -> Result<T> {
        let catalog = self.catalog()?;
        bound.check(&mut RoleChecker {
            catalog: &catalog,
            roles: &catalog.roles,
            role: self.session.current_role(),
        })
    }

    /// What is bound, to be kept as a definition; 42501 unless the current role may use the schemas that it names.
    pub(super) fn may_define<T>(&mut self, bound: Bound<T>) -> Result<T> {
        let catalog = self.catalog()?;
        bound.check(&mut DefinitionChecker(RoleChecker {
            catalog: &catalog,
            roles: &catalog.roles,
            role: self.session.current_role(),
        }))
    }

    /// 42501 unless the current role may call a function.
    pub(super) fn must_call(&mut self, function: FunctionId) -> Result<()> {
        let catalog = self.catalog()?;
        let used = FunctionUse {
            function,
            as_role: None,
        };
        let role = self.session.current_role();
        refuse_routines(&[used], &catalog, &catalog.roles, role)
    }

    /// 42501 unless the relation is the role's. Asked of what a statement has found and locked: its name may have meant
    /// something else when the statement was let in.
    pub(super) fn must_own(&mut self, relation: &Relation) -> Result<()> {
        self.with_acl_checker(|acl_checker, role| acl_checker.must_own(role, relation))?
    }

    /// The same, or its schema is the role's.
    pub(super) fn must_own_or_schema(&mut self, relation: &Relation) -> Result<()> {
        let schema = relation.schema;
        match self.with_acl_checker(|acl_checker, role| acl_checker.owns(role, schema))? {
            true => Ok(()),
            false => self.must_own(relation),
        }
    }

    /// The same of the table of an index.
    pub(super) fn must_own_index(&mut self, table: &Relation, index: &str) -> Result<()> {
        match self.with_acl_checker(|acl_checker, role| acl_checker.owns(role, table.oid))? {
            true => Ok(()),
            false => Err(denied(format!("must be owner of index {index}"))),
        }
    }

    /// 42501 unless a foreign key may reference the columns of a table that is locked.
    pub(super) fn must_reference(&mut self, parent: &Relation, columns: &[usize]) -> Result<()> {
        match self.with_acl_checker(|acl_checker, role| {
            acl_checker.may_reference(role, parent, columns)
        })? {
            true => Ok(()),
            false => Err(denied_relation(parent)),
        }
    }

    /// 42501 unless temporary objects may be made.
    pub(super) fn must_create_temporary(&mut self) -> Result<()> {
        let catalog = self.catalog()?;
        let role = self.session.current_role();
        may_create_temporary(&catalog, role)
    }

    /// 42501 unless the role may make something in the schema.
    pub(super) fn must_create_in(&mut self, schema: SchemaId) -> Result<()> {
        match self.with_acl_checker(|acl_checker, role| acl_checker.may_create_in(role, schema))? {
            true => Ok(()),
            false => {
                let catalog = self.catalog()?;
                Err(denied_schema(schema, &catalog))
            }
        }
    }
}

/// Everything that is asked about.
struct DdlPermissions<'a> {
    catalog: Arc<Catalog>,
    path: &'a [String],
    session: &'a dyn Context,
    role: RoleId,
}

impl DdlPermissions<'_> {
    fn acl_checker(&self) -> AclChecker<'_> {
        self.catalog.acl_checker(&self.catalog.roles)
    }

    fn lookup(&self) -> NameLookup<'_> {
        NameLookup {
            catalog: &self.catalog,
            search_path: self.path,
            session: self.session,
        }
    }

    /// The relation that a name means, or the table that an index of that name is on. The schema must be usable.
    fn named(
        &self,
        name: &(impl QualifiedName + ?Sized),
    ) -> Result<Option<(&Arc<Relation>, Option<RelationId>)>> {
        let (schema, plain) = calls::lookup_parts(name, self.lookup())?;
        let found = self
            .catalog
            .object_by_name(schema.as_deref(), &plain, self.path);
        let Some(oid) = found else {
            return Ok(None);
        };
        let (relation, index) = match self.catalog.index_tables.get(&oid) {
            Some(table) => (self.catalog.relations.get(table), Some(oid)),
            None => (self.catalog.relations.get(&oid), None),
        };
        let Some(relation) = relation else {
            return Ok(None);
        };
        if schema.is_none()
            && !self
                .acl_checker()
                .may_use_schema(self.role, relation.schema)
        {
            return Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!("relation \"{plain}\" does not exist"),
            ));
        }
        Ok(Some((relation, index)))
    }

    fn owns(&self, relation: &Relation) -> bool {
        self.acl_checker().owns(self.role, relation.oid)
    }

    fn not_owner(&self, relation: &Relation, index: Option<RelationId>) -> SqlError {
        let name = index.and_then(|oid| self.catalog.name_of(oid));
        match name {
            Some((_, name)) => denied(format!("must be owner of index {name}")),
            None => denied(format!(
                "must be owner of {} {}",
                word_of(relation),
                relation.name
            )),
        }
    }

    /// 42501 unless the relation, or the table of the index, is the role's.
    fn must_own(&self, name: &(impl QualifiedName + ?Sized)) -> Result<()> {
        match self.named(name)? {
            Some((relation, index)) if !self.owns(relation) => Err(self.not_owner(relation, index)),
            _ => Ok(()),
        }
    }

    /// The same, or the schema is.
    fn must_own_or_schema(&self, name: &(impl QualifiedName + ?Sized)) -> Result<()> {
        match self.named(name)? {
            Some((relation, index))
                if !self.owns(relation) && !self.acl_checker().owns(self.role, relation.schema) =>
            {
                Err(self.not_owner(relation, index))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless something may be made under the name.
    fn must_create(&self, name: &(impl QualifiedName + ?Sized)) -> Result<()> {
        let (schema, _) = calls::name_parts(name)?;
        let target = match &schema {
            Some(schema) => self.catalog.schema(schema),
            None => {
                let user = |s: &&String| *s != "pg_catalog" && *s != "information_schema";
                let mut path = self.path.iter().filter(user);
                path.find_map(|s| self.catalog.schema(s))
            }
        };
        match target {
            Some(schema) if !self.acl_checker().may_create_in(self.role, schema.oid) => {
                Err(denied_schema(schema.oid, &self.catalog))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless something may be made in the schema of the relation.
    fn must_create_beside(&self, name: &(impl QualifiedName + ?Sized)) -> Result<()> {
        match self.named(name)? {
            Some((relation, _))
                if !self.acl_checker().may_create_in(self.role, relation.schema) =>
            {
                Err(denied_schema(relation.schema, &self.catalog))
            }
            _ => Ok(()),
        }
    }

    fn must_own_schema(&self, name: &str) -> Result<()> {
        match self.catalog.schema(name) {
            Some(schema) if !self.acl_checker().owns(self.role, schema.oid) => {
                Err(denied(format!("must be owner of schema {name}")))
            }
            _ => Ok(()),
        }
    }

    /// 42501 unless a foreign key may reference the columns.
    fn must_reference(&self, key: &References) -> Result<()> {
        let Some((parent, None)) = self.named(&key.pktable)? else {
            return Ok(());
        };
        let mut columns: Vec<usize> = Vec::new();
        if key.pk_attrs.is_empty() {
            let primary = parent.indexes.iter().find(|index| index.primary);
            let keys = primary.iter().flat_map(|index| &index.columns);
            columns.extend(keys.filter_map(|c| c.position()));
        }
        for name in &key.pk_attrs {
            let found = parent
                .columns
                .iter()
                .position(|c| !c.dropped && c.name == **name);
            columns.extend(found);
        }
        match self
            .acl_checker()
            .may_reference(self.role, parent, &columns)
        {
            true => Ok(()),
            false => Err(denied_relation(parent)),
        }
    }

    fn constraint(&self, constraint: &Constraint) -> Result<()> {
        match &constraint.kind {
            ConstraintKind::Foreign { references, .. } => self.must_reference(references),
            _ => Ok(()),
        }
    }

    fn constraints(&self, constraints: &[Constraint]) -> Result<()> {
        { constraints.iter() }.try_for_each(|constraint| self.constraint(constraint))
    }

    /// 42501 unless temporary objects may be made.
    fn must_create_temporary(&self) -> Result<()> {
        may_create_temporary(&self.catalog, self.role)
    }

    /// 42501 unless a relation may be made.
    fn must_create_relation(&self, relation: &RangeVar) -> Result<()> {
        match relation.persistence {
            Persistence::Temporary => self.must_create_temporary(),
            _ => self.must_create(relation),
        }
    }

    fn create_table(&self, stmt: &CreateStmt) -> Result<()> {
        self.must_create_relation(&stmt.relation)?;
        for element in &stmt.table_elts {
            match element {
                TableElement::Column(def) => self.constraints(&def.constraints)?,
                TableElement::Constraint(constraint) => self.constraint(constraint)?,
                TableElement::Like(_) => {}
            }
        }
        Ok(())
    }

    fn alter_table(&self, stmt: &AlterTableStmt) -> Result<()> {
        match (stmt.objtype, stmt.cmds.as_slice()) {
            // They ask themselves.
            (AlteredKind::Type, _) | (_, [AlterTableCmd::ChangeOwner(_)]) => return Ok(()),
            _ => self.must_own(&stmt.relation)?,
        }
        for cmd in &stmt.cmds {
            match cmd {
                AlterTableCmd::AddConstraint(constraint) => self.constraint(constraint)?,
                AlterTableCmd::AddColumn { def, .. } => self.constraints(&def.constraints)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// 42501 unless a schema may be made.
    fn must_create_schema(&self) -> Result<()> {
        let database = self.catalog.database;
        match self
            .acl_checker()
            .on_database(self.role, database, p::CREATE)
        {
            0 => Err(denied(format!(
                "permission denied for database {}",
                self.catalog.database_name
            ))),
            _ => Ok(()),
        }
    }

    fn truncate(&self, truncate: &TruncateStmt) -> Result<()> {
        for target in &truncate.relations {
            if let Some((relation, None)) = self.named(target)? {
                may_truncate(relation, self.acl_checker(), self.role)?;
            }
        }
        Ok(())
    }

    /// 42501 unless the table is the role's. `gone` is the policy of a statement that says no more of one that is not
    /// there.
    fn policy(
        &self,
        table: &(impl QualifiedName + ?Sized),
        word: &str,
        gone: Option<&str>,
    ) -> Result<()> {
        match self.named(table)? {
            // There is nothing to own of what is not there.
            Some((table, None))
                if gone.is_some_and(|name| super::policies::finds_nothing(name, table)) =>
            {
                Ok(())
            }
            Some((table, None)) if !self.owns(table) => {
                Err(super::policies::not_owner(table, word))
            }
            _ => Ok(()),
        }
    }

    fn drop(&self, drop: &DropStmt) -> Result<()> {
        match drop.remove_type {
            ObjectType::Table
            | ObjectType::Index
            | ObjectType::Sequence
            | ObjectType::View
            | ObjectType::MatView => { drop.objects.iter() }
                .try_for_each(|object| self.must_own_or_schema(name_of(object)?)),
            ObjectType::Schema => { drop.objects.iter() }
                .try_for_each(|object| self.must_own_schema(plain_name(object)?)),
            ObjectType::Policy => drop.objects.iter().try_for_each(|object| {
                let (name, table) = name_and_relation(object)?;
                self.policy(table, "relation", Some(name))
            }),
            // They ask themselves.
            _ => Ok(()),
        }
    }

    fn comment(&self, comment: &CommentStmt) -> Result<()> {
        use ObjectType as On;
        let object = &comment.object;
        match comment.objtype {
            kind @ (On::Table | On::View | On::MatView | On::Sequence | On::Index) => {
                // Who names what is of another kind is told so, whosever it is.
                let name = name_of(object)?;
                let found = self.named(name)?;
                let other = found.is_some_and(|(relation, index)| match index {
                    Some(_) => kind != On::Index,
                    None => relation_type(relation) != kind,
                });
                match other {
                    true => Ok(()),
                    false => self.must_own(name),
                }
            }
            On::Column => match name_of(object)?.names.as_slice() {
                [table @ .., _] if !table.is_empty() => self.must_own(table),
                _ => Ok(()),
            },
            On::TabConstraint => self.must_own(name_and_relation(object)?.1),
            On::Policy => {
                let (name, table) = name_and_relation(object)?;
                self.policy(table, "relation", Some(name))
            }
            On::Schema => self.must_own_schema(plain_name(object)?),
            On::Database => {
                let name = &**plain_name(object)?;
                let Some(found) = self.catalog.notes.databases.by_name(name) else {
                    return Ok(());
                };
                match self.acl_checker().owns(self.role, found.oid) {
                    true => Ok(()),
                    false => Err(denied(format!("must be owner of database {name}"))),
                }
            }
            On::Role => {
                let roles = &self.catalog.roles;
                let Some(found) = roles.by_name(plain_name(object)?) else {
                    return Ok(());
                };
                // A role is CREATEROLE's, a superuser only a superuser's.
                if found.superuser {
                    return Err(denied("must be superuser"));
                }
                match roles.get(self.role).is_some_and(|role| role.create_role) {
                    true => Ok(()),
                    false => Err(denied("must have CREATEROLE privilege")),
                }
            }
            // They ask themselves.
            _ => Ok(()),
        }
    }

    fn utility(&self, stmt: &Stmt) -> Result<()> {
        match stmt {
            Stmt::CreatePolicy(create) => self.policy(&create.table, "table", None),
            Stmt::AlterPolicy(alter) => self.policy(&alter.table, "table", None),
            Stmt::Rename(rename) if rename.rename_type == ObjectType::Policy => {
                self.policy(name_and_relation(&rename.object)?.1, "table", None)
            }
            Stmt::Comment(comment) => self.comment(comment),
            Stmt::Drop(drop) => self.drop(drop),
            Stmt::Truncate(truncate) => self.truncate(truncate),
            Stmt::Create(create) => self.create_table(create),
            Stmt::CreateTableAs(create) if create.is_materialized_view => {
                self.must_create(&create.into.rel)
            }
            Stmt::CreateTableAs(create) => self.must_create_relation(&create.into.rel),
            Stmt::View(create) => {
                self.must_create_relation(&create.view)?;
                match create.replace {
                    true => self.must_own(&create.view),
                    false => Ok(()),
                }
            }
            Stmt::RefreshMatView(refresh) => self.must_own(&refresh.relation),
            Stmt::Index(index) => {
                self.must_own(&index.relation)?;
                self.must_create_beside(&index.relation)
            }
            Stmt::CreateSchema(_) => self.must_create_schema(),
            // OWNED BY asks itself.
            Stmt::CreateSeq(create) => self.must_create_relation(&create.sequence),
            Stmt::AlterSeq(alter) => self.must_own(&alter.sequence),
            Stmt::Rename(rename) => match rename.rename_type {
                ObjectType::Index
                | ObjectType::Sequence
                | ObjectType::Table
                | ObjectType::View
                | ObjectType::MatView => {
                    let relation = relation_of(&rename.object)?;
                    self.must_own(relation)?;
                    self.must_create_beside(relation)
                }
                ObjectType::Column | ObjectType::TabConstraint => {
                    self.must_own(relation_of(&rename.object)?)
                }
                // They ask themselves.
                _ => Ok(()),
            },
            Stmt::AlterObjectSchema(alter)
                if matches!(
                    alter.object_type,
                    ObjectType::Table | ObjectType::View | ObjectType::MatView
                ) =>
            {
                self.must_own(relation_of(&alter.object)?)
            }
            Stmt::AlterTable(alter) => self.alter_table(alter),
            Stmt::AlterObjectDepends(depends) => self.must_own(relation_of(&depends.object)?),
            Stmt::Cluster(cluster) => match &cluster.relation {
                Some(table) => self.must_own(table),
                None => Ok(()),
            },
            Stmt::Reindex(reindex) => match &reindex.target {
                ReindexTarget::Index(name) | ReindexTarget::Table(name) => self.must_own(name),
                // It asks itself.
                _ => Ok(()),
            },
            // They ask themselves.
            Stmt::CreateRole(_)
            | Stmt::AlterRole(_)
            | Stmt::AlterRoleSet(_)
            | Stmt::DropRole(_)
            | Stmt::GrantRole(_)
            | Stmt::DropOwned(_)
            | Stmt::ReassignOwned(_)
            | Stmt::Grant(_)
            | Stmt::AlterDefaultPrivileges(_)
            | Stmt::Createdb(_)
            | Stmt::AlterDatabase(_)
            | Stmt::AlterDatabaseRefreshColl(_)
            | Stmt::AlterDatabaseSet(_)
            | Stmt::Dropdb(_)
            | Stmt::CreateExtension(_)
            | Stmt::AlterExtension(_)
            | Stmt::CreateFunction(_)
            | Stmt::AlterFunction(_)
            | Stmt::Define(_)
            | Stmt::CreateDomain(_)
            | Stmt::AlterDomain(_)
            | Stmt::CompositeType(_)
            | Stmt::CreateEnum(_)
            | Stmt::AlterEnum(_)
            | Stmt::CreateRange(_)
            | Stmt::CreateTrig(_)
            | Stmt::Vacuum(_)
            | Stmt::AlterObjectSchema(_)
            | Stmt::AlterOwner(_) => Ok(()),
            _ => Err(only_superusers()),
        }
    }
}

fn may_create_temporary(catalog: &Catalog, role: RoleId) -> Result<()> {
    let acl_checker = catalog.acl_checker(&catalog.roles);
    match acl_checker.on_database(role, catalog.database, p::TEMPORARY) {
        0 => Err(denied(format!(
            "permission denied to create temporary tables in database \"{}\"",
            catalog.database_name
        ))),
        _ => Ok(()),
    }
}

/// 42501 unless the role may truncate a table.
pub(super) fn may_truncate(
    relation: &Relation,
    acl_checker: AclChecker<'_>,
    role: RoleId,
) -> Result<()> {
    match acl_checker.on_relation(role, relation, p::TRUNCATE, 0).0 {
        0 => Err(denied_relation(relation)),
        _ => Ok(()),
    }
}

fn only_superusers() -> SqlError {
    denied("permission denied: only superusers may do this")
}

/// 42501 unless the current role may run the statement.
pub(super) fn check_statement(stmt: &Stmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let role = cx.session.current_role();
    if catalog.roles.is_superuser(role) {
        return Ok(());
    }
    let asker = DdlPermissions {
        catalog,
        path: cx.search_path,
        session: cx.session,
        role,
    };
    asker.utility(stmt)
}

/// Is a sequence that a table's column owns, or a relation that only belongs to another, left where it is?
pub(super) fn owning_table(
    catalog: &Catalog,
    sequence: RelationId,
) -> Option<(&Arc<Relation>, bool)> {
    let tables = catalog.dependent_relations(sequence).into_iter();
    let mut owners = tables.filter_map(|table| {
        let column = table
            .columns
            .iter()
            .find(|c| c.sequence == Some(sequence))?;
        (!column.dropped && matches!(table.kind, RelationKind::Table))
            .then_some((table, column.identity.is_some()))
    });
    owners.next()
}
