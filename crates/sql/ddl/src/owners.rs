//! Who owns what: ALTER ... OWNER TO, REASSIGN OWNED, DROP OWNED, and what keeps a role from being dropped.

use super::drop_dependents;
use super::object_address::{plain_name, type_of, unexpected_object, with_args};
use super::{
    DdlContext, drop as dropping, extensions, grant, permissions, routine_lookup, routines, types,
};
use crate::drop_type;
use crate::find_dependents;
use crate::missing_object::no_schema;
use crate::object_address::ObjectAddress;
use crate::relations::{system_relation, wrong_kind};
use logstead_engine::TableLock;
use logstead_sql_catalog::classes::{
    CatalogObject, PG_CLASS, PG_DATABASE, PG_EXTENSION, PG_NAMESPACE, PG_POLICY, PG_PROC, PG_TYPE,
};
use logstead_sql_catalog::extensions::extension_name;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::privileges::{ObjectPrivileges, denied};
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::role::acl::{Acl, AclKind, privilege as p};
use logstead_sql_catalog::stored::RIGHTS;
use logstead_sql_catalog::{Catalog, Relation, RelationKind};
use logstead_sql_parse::ast::{
    AlterOwnerStmt, AlterTableStmt, DropBehavior, DropOwnedStmt, Name, ObjectType, ObjectWithArgs,
    ReassignOwnedStmt, RelationKind as AlteredKind, RoleSpec,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Oid;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
use logstead_types::SqlState;
use std::collections::BTreeMap;
use std::sync::Arc;

/// 42501 unless the current role may act as `owner`.
pub(super) fn must_be_member(owner: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    match cx.with_acl_checker(|acl_checker, role| acl_checker.members.is_member(role, owner))? {
        true => Ok(()),
        false => {
            let name = catalog.roles.get(owner).map_or("?", |r| r.name.as_str());
            Err(denied(format!("must be member of role \"{name}\"")))
        }
    }
}

/// Gives an object to another.
pub(super) async fn give(
    object: impl Into<CatalogObject>,
    owner: RoleId,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    cx.lock_privileges().await?;
    let object = object.into();
    let old = cx.catalog()?.stored_privileges(object);
    if old.owner == owner {
        return Ok(());
    }
    let columns = old.columns.iter();
    let privileges = ObjectPrivileges {
        owner,
        acl: old.acl.as_ref().map(|acl| acl.with_owner(old.owner, owner)),
        columns: columns
            .map(|(at, acl)| (*at, acl.with_owner(old.owner, owner)))
            .collect(),
    };
    cx.store_privileges(object, &old, privileges).await
}

/// ALTER TABLE ... OWNER TO, of whatever relation.
pub(super) async fn of_relation(
    oid: RelationId,
    owner: &RoleSpec,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let owner = cx.find_role(owner)?.oid;
    relation(oid, owner, cx).await
}

async fn relation(oid: RelationId, owner: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.lock_privileges().await?;
    let catalog = cx.catalog()?;
    let Some(found) = catalog.relations.get(&oid).cloned() else {
        let table = catalog.index_tables.get(&oid).copied().unwrap_or_default();
        if catalog.owner_of(table) != owner {
            let name = catalog.name_of(oid).map_or("?", |(_, name)| name);
            cx.notices.push(super::Notice {
                severity: "WARNING",
                code: SqlState::WRONG_OBJECT_TYPE,
                message: format!("cannot change owner of index \"{name}\""),
                detail: None,
                hint: None,
            });
        }
        return Ok(());
    };
    if matches!(found.kind, RelationKind::Virtual(_)) {
        return Err(system_relation(&found.name));
    }
    if catalog.owner_of(oid) == owner {
        return Ok(());
    }
    if let Some((table, _)) = permissions::owning_table(&catalog, oid) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("cannot change owner of sequence \"{}\"", found.name),
        )
        .detail(format!(
            "Sequence \"{}\" is linked to table \"{}\".",
            found.name, table.name
        )));
    }
    // Who alters or drops it waits for its new owner. A sequence has no table to lock.
    if !matches!(found.kind, RelationKind::Sequence(_))
        && cx
            .lock_table(oid, TableLock::AccessExclusive)
            .await?
            .is_none()
    {
        return Err(gone(&found.name));
    }
    let catalog = cx.catalog()?;
    let found = catalog.relations.get(&oid).cloned();
    let found = found.ok_or_else(|| gone("?"))?;
    cx.must_own(&found)?;
    must_be_member(owner, cx)?;
    let superuser =
        cx.with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))?;
    let create =
        cx.with_acl_checker(|acl_checker, _| acl_checker.may_create_in(owner, found.schema))?;
    if !(superuser || create) {
        return Err(denied(format!(
            "permission denied for schema {}",
            found.schema_name
        )));
    }
    with_sequences(&found, owner, cx).await
}

fn gone(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_TABLE,
        format!("relation \"{name}\" does not exist"),
    )
}

/// A table's own sequences go with it.
async fn with_sequences(relation: &Relation, owner: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    give(relation.oid, owner, cx).await?;
    let columns = relation.columns.iter().filter(|c| !c.dropped);
    for sequence in columns.filter_map(|c| c.sequence) {
        if cx.catalog()?.relations.contains_key(&sequence) {
            give(sequence, owner, cx).await?;
        }
    }
    Ok(())
}

/// Runs ALTER ... OWNER TO of what is no relation (`ExecAlterOwnerStmt`).
pub(super) async fn alter(stmt: &AlterOwnerStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let (object, owner) = (&stmt.object, &stmt.newowner);
    cx.lock_privileges().await?;
    match stmt.object_type {
        kind @ (ObjectType::Function
        | ObjectType::Procedure
        | ObjectType::Routine
        | ObjectType::Aggregate) => of_routine(kind, with_args(object)?, owner, cx).await,
        ObjectType::Schema => schema(plain_name(object)?, owner, cx).await,
        ObjectType::Database => database(plain_name(object)?, owner, cx).await,
        kind @ (ObjectType::Type | ObjectType::Domain) => {
            let name = type_of(object, "ALTER TYPE")?;
            of_type(&name, kind == ObjectType::Domain, owner, cx).await
        }
        _ => Err(unexpected_object()),
    }
}

/// ALTER TYPE and ALTER DOMAIN ... OWNER TO.
async fn of_type(
    name: &[Name],
    of_domain: bool,
    owner: &RoleSpec,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let owner = cx.find_role(owner)?.oid;
    match types::locked_for_new_owner(name, of_domain, owner, cx).await? {
        Some(ty) => give(ty.oid, owner, cx).await,
        None => Ok(()),
    }
}

/// Runs ALTER TABLE and its like ... OWNER TO alone.
pub(super) async fn alter_relation(
    stmt: &AlterTableStmt,
    owner: &RoleSpec,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    cx.lock_privileges().await?;
    let name = &stmt.relation;
    if stmt.objtype == AlteredKind::Type {
        return of_type(&name.names(), false, owner, cx).await;
    }
    let Some((oid, plain)) = cx.find_relation(name, stmt.missing_ok)? else {
        return Ok(());
    };
    let catalog = cx.catalog()?;
    let found = catalog.relations.get(&oid);
    let table = found.or_else(|| {
        let table = catalog.index_tables.get(&oid)?;
        catalog.relations.get(table)
    });
    if let Some(table) = table {
        cx.with_acl_checker(|acl_checker, role| acl_checker.must_own(role, table))??;
    }
    let wanted = match (stmt.objtype, found.map(|r| &r.kind)) {
        (AlteredKind::View, Some(RelationKind::View(_)))
        | (AlteredKind::MaterializedView, Some(RelationKind::Materialized(..)))
        | (AlteredKind::Sequence, Some(RelationKind::Sequence(_)))
        | (AlteredKind::Index, None)
        | (AlteredKind::Table, _) => None,
        (AlteredKind::View, _) => Some("a view"),
        (AlteredKind::MaterializedView, _) => Some("a materialized view"),
        (AlteredKind::Sequence, _) => Some("a sequence"),
        _ => Some("an index"),
    };
    if let Some(wanted) = wanted {
        return Err(wrong_kind(&plain, wanted));
    }
    let owner = cx.find_role(owner)?.oid;
    relation(oid, owner, cx).await
}

async fn schema(name: &str, owner: &RoleSpec, cx: &mut DdlContext<'_>) -> Result<()> {
    let owner = cx.find_role(owner)?.oid;
    let catalog = cx.catalog()?;
    let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?.oid;
    if catalog.owner_of(schema) == owner {
        return Ok(());
    }
    if !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, schema))? {
        return Err(denied(format!("must be owner of schema {name}")));
    }
    must_be_member(owner, cx)?;
    let database = catalog.database;
    if cx
        .with_acl_checker(|acl_checker, role| acl_checker.on_database(role, database, p::CREATE))?
        == 0
    {
        let name = &catalog.database_name;
        return Err(denied(format!("permission denied for database {name}")));
    }
    give(schema, owner, cx).await
}

/// ALTER FUNCTION ... OWNER TO.
async fn of_routine(
    kind: ObjectType,
    target: &ObjectWithArgs,
    owner: &RoleSpec,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let owner = cx.find_role(owner)?.oid;
    let found = routine_lookup::named(kind, target, cx)?;
    if cx.catalog()?.owner_of(found.oid) == owner {
        return Ok(());
    }
    let Some(routine) = routines::lock_routine(found.oid, cx).await? else {
        return Err(SqlError::internal("tuple concurrently updated"));
    };
    let superuser =
        cx.with_acl_checker(|acl_checker, role| acl_checker.members.is_superuser(role))?;
    if !superuser {
        // Owners are those of functions, whatever it is.
        routine_lookup::must_own_as("function", &routine, cx)?;
        must_be_member(owner, cx)?;
        if !cx
            .with_acl_checker(|acl_checker, _| acl_checker.may_create_in(owner, routine.schema))?
        {
            let name = &routine.schema_name;
            return Err(denied(format!("permission denied for schema {name}")));
        }
    }
    give(routine.oid, owner, cx).await
}

async fn database(name: &str, owner: &RoleSpec, cx: &mut DdlContext<'_>) -> Result<()> {
    let owner = cx.find_role(owner)?.oid;
    cx.lock_databases_shared().await?;
    let catalog = cx.catalog()?;
    let database = grant::database(name, &catalog)?;
    if catalog.owner_of(database) == owner {
        return Ok(());
    }
    if !cx.with_acl_checker(|acl_checker, role| acl_checker.owns(role, database))? {
        return Err(denied(format!("must be owner of database {name}")));
    }
    must_be_member(owner, cx)?;
    let asker = catalog.roles.get(cx.session.current_role());
    if !asker.is_some_and(|role| role.superuser || role.create_db) {
        return Err(denied("permission denied to change owner of database"));
    }
    give(database, owner, cx).await
}

/// 2BP01 for what the system needs.
fn refuse_required(role: &Role, what: &str) -> Result<()> {
    match role.is_required() {
        true => Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "cannot {what} objects owned by role {} because they are required by the database system",
                role.name
            ),
        )),
        false => Ok(()),
    }
}

/// Runs REASSIGN OWNED.
pub(super) async fn reassign(stmt: &ReassignOwnedStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.lock_privileges().await?;
    let mut from = Vec::new();
    for role in &stmt.roles {
        from.push(cx.find_role(role)?);
    }
    let to = cx.find_role(&stmt.newrole)?;
    for role in from.iter().chain([&to]) {
        if !cx.with_acl_checker(|acl_checker, asker| {
            acl_checker.members.has_privileges_of(asker, role.oid)
        })? {
            return Err(denied("permission denied to reassign objects"));
        }
    }
    for role in &from {
        refuse_required(role, "reassign ownership of")?;
    }
    for role in from {
        let catalog = cx.catalog()?;
        for object in owned(&catalog, role.oid) {
            give(object, to.oid, cx).await?;
        }
    }
    Ok(())
}

/// What a role owns, oldest first.
fn owned(catalog: &Catalog, role: RoleId) -> Vec<CatalogObject> {
    let all = catalog.privileges.objects.iter();
    let mut own: Vec<CatalogObject> = all
        .filter(|(_, privileges)| privileges.owner == role)
        .map(|(object, _)| *object)
        .collect();
    own.sort_unstable_by_key(|object| (object.oid, object.class));
    own
}

/// Runs DROP OWNED.
pub(super) async fn drop_owned(stmt: &DropOwnedStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.lock_privileges().await?;
    let cascade = stmt.behavior == DropBehavior::Cascade;
    let mut found = Vec::new();
    for role in &stmt.roles {
        found.push(cx.find_role(role)?);
    }
    for role in &found {
        if !cx.with_acl_checker(|acl_checker, asker| {
            acl_checker.members.has_privileges_of(asker, role.oid)
        })? {
            return Err(denied("permission denied to drop objects"));
        }
        refuse_required(role, "drop")?;
    }
    for role in found {
        revoke_all(role.oid, cx).await?;
        super::policies::forget_role(role.oid, cx).await?;
        drop_all(role.oid, cascade, cx).await?;
    }
    Ok(())
}

/// Takes away what a role was granted, and its default privileges.
async fn revoke_all(role: RoleId, cx: &mut DdlContext<'_>) -> Result<()> {
    let catalog = cx.catalog()?;
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let mut objects: Vec<_> = catalog.privileges.objects.iter().collect();
    objects.sort_unstable_by_key(|(object, _)| **object);
    for (object, privileges) in objects {
        if privileges.owner == role || !privileges.lists().any(|acl| acl.names(role)) {
            continue;
        }
        // Who does not own it takes away what he may, as any REVOKE does.
        if !cx.with_acl_checker(|acl_checker, asker| {
            acl_checker
                .members
                .has_privileges_of(asker, privileges.owner)
        })? {
            super::grant::revoke_from(role, *object, cx).await?;
            continue;
        }
        let without = |acl: &Acl| acl.without(role, privileges.owner, acl_checker.members);
        let mut columns = BTreeMap::new();
        for (at, acl) in &privileges.columns {
            let left = without(acl)?;
            if !left.0.is_empty() {
                columns.insert(*at, left);
            }
        }
        let left = ObjectPrivileges {
            owner: privileges.owner,
            acl: privileges.acl.as_ref().map(without).transpose()?,
            columns,
        };
        cx.store_privileges(*object, privileges, left).await?;
    }
    for (key, (_, acl)) in &catalog.privileges.defaults {
        let left = match key.0 == role {
            true => None,
            false if acl.names(role) => Some(acl.without(role, key.0, acl_checker.members)?),
            false => continue,
        };
        let left = left.filter(|acl| !acl.0.is_empty());
        cx.store_default_privileges(*key, left).await?;
    }
    Ok(())
}

/// Drops what a role owns in this database.
async fn drop_all(role: RoleId, cascade: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    // Each kind in turn: what is gone with another is not looked for again.
    for kind in [
        ObjectType::View,
        ObjectType::MatView,
        ObjectType::Table,
        ObjectType::Sequence,
    ] {
        let catalog = cx.catalog()?;
        let of_kind = |relation: &Relation| {
            matches!(
                (&relation.kind, kind),
                (RelationKind::View(_), ObjectType::View)
                    | (RelationKind::Materialized(..), ObjectType::MatView)
                    | (RelationKind::Table, ObjectType::Table)
                    | (RelationKind::Sequence(_), ObjectType::Sequence)
            )
        };
        let own = owned(&catalog, role);
        let own = own.into_iter();
        let targets: Vec<RelationId> = own
            .filter_map(CatalogObject::relation)
            .filter(|oid| catalog.relations.get(oid).is_some_and(|r| of_kind(r)))
            .filter(|oid| permissions::owning_table(&catalog, *oid).is_none())
            .collect();
        if !targets.is_empty() {
            dropping::together(kind, targets, cascade, cx).await?;
        }
    }
    let catalog = cx.catalog()?;
    let own = owned(&catalog, role).into_iter();
    let own: Vec<ObjectAddress> = own
        .filter(|object| {
            object.class == PG_PROC && catalog.routines.get(FunctionId::new(object.oid)).is_some()
        })
        .map(|object| ObjectAddress::Routine(FunctionId::new(object.oid)))
        .collect();
    drop_dependents::report_dependents(&own, None, cascade, cx).await?;
    for object in own {
        if let ObjectAddress::Routine(oid) = object
            && routines::lock_routine(oid, cx).await?.is_some()
        {
            routines::delete(oid, cx).await?;
        }
    }
    let catalog = cx.catalog()?;
    let mut own_types = Vec::new();
    for ty in owned(&catalog, role)
        .into_iter()
        .filter(|object| object.class == PG_TYPE)
    {
        let ty = TypeId::new(ty.oid);
        if cx.lock_type(ty).await?.is_some() {
            own_types.push(ty);
        }
    }
    drop_type::drop_locked_types(own_types, cascade, cx).await?;
    let catalog = cx.catalog()?;
    for extension in owned(&catalog, role)
        .into_iter()
        .filter(|object| object.class == PG_EXTENSION)
    {
        if let Some(name) = extension_name(&catalog, extension.oid) {
            extensions::remove(name, cascade, cx).await?;
        }
    }
    let catalog = cx.catalog()?;
    for schema in owned(&catalog, role)
        .into_iter()
        .filter(|object| object.class == PG_NAMESPACE)
    {
        if let Some(schema) = catalog.schemas.get(&SchemaId::new(schema.oid)) {
            let names = [schema.name.clone()];
            dropping::drop_schemas(&names, false, cascade, cx).await?;
        }
    }
    Ok(())
}

/// As PostgreSQL names an object.
fn label(object: CatalogObject, catalog: &Catalog, path: &[String]) -> String {
    let CatalogObject { class, oid: object } = object;
    match class {
        PG_CLASS => find_dependents::describe(
            catalog,
            path,
            ObjectAddress::Relation(RelationId::new(object)),
        ),
        PG_PROC => find_dependents::describe(
            catalog,
            path,
            ObjectAddress::Routine(FunctionId::new(object)),
        ),
        PG_LARGEOBJECT => format!("large object {object}"),
        PG_TYPE => {
            find_dependents::describe(catalog, path, ObjectAddress::Type(TypeId::new(object)))
        }
        PG_EXTENSION => {
            let name = extension_name(catalog, object).unwrap_or("?");
            format!("extension {name}")
        }
        PG_NAMESPACE => {
            let name = catalog
                .schemas
                .get(&SchemaId::new(object))
                .map_or("?", |s| s.name.as_str());
            format!("schema {name}")
        }
        PG_DATABASE => {
            let found = catalog.notes.databases.get(DatabaseOid::new(object));
            format!(
                "database {}",
                found.map_or("?", |found| found.name.as_str())
            )
        }
        _ => format!("object {object}"),
    }
}

/// What names a role in one catalog, each as a line, in PostgreSQL's order.
fn lines(catalog: &Catalog, role: RoleId, path: &[String], shared: bool) -> Vec<String> {
    let mut found: Vec<((Oid, RelationId, usize), String)> = Vec::new();
    for (object, privileges) in &catalog.privileges.objects {
        if !privileges.names(role) || (object.class == PG_DATABASE && !shared) {
            continue;
        }
        let name = label(*object, catalog, path);
        let key = |sub| (object.oid, object.class, sub);
        if privileges.owner == role {
            found.push((key(0), format!("owner of {name}")));
        } else if privileges.acl.as_ref().is_some_and(|acl| acl.names(role)) {
            found.push((key(0), format!("privileges for {name}")));
        }
        for (position, acl) in &privileges.columns {
            if privileges.owner != role && acl.names(role) {
                let column = ObjectAddress::Column(RelationId::new(object.oid), *position);
                let name = find_dependents::describe(catalog, path, column);
                found.push((key(position + 1), format!("privileges for {name}")));
            }
        }
    }
    for relation in catalog.relations.values() {
        for policy in &relation.security.policies {
            if policy.roles.contains(&role) {
                let object = ObjectAddress::Policy(relation.oid, policy.oid);
                let name = find_dependents::describe(catalog, path, object);
                found.push(((policy.oid, PG_POLICY, 0), format!("target of {name}")));
            }
        }
    }
    for ((owner, schema, kind), (oid, acl)) in &catalog.privileges.defaults {
        let what = match kind {
            AclKind::Sequence => "sequences",
            AclKind::Function => "functions",
            AclKind::Type => "types",
            AclKind::Schema => "schemas",
            _ => "relations",
        };
        let name = catalog.roles.get(*owner).map_or("?", |r| r.name.as_str());
        let place = schema.and_then(|schema| catalog.schemas.get(&schema));
        let place = place.map_or_else(String::new, |s| format!(" in schema {}", s.name));
        let text = format!("default privileges on new {what} belonging to role {name}{place}");
        let key = (*oid, logstead_sql_catalog::privileges::PG_DEFAULT_ACL, 0);
        if *owner == role {
            found.push((key, format!("owner of {text}")));
        } else if acl.names(role) {
            found.push((key, format!("privileges for {text}")));
        }
    }
    found.sort();
    found.into_iter().map(|(_, line)| line).collect()
}

/// 2BP01 while anything names the role.
pub(super) async fn refuse_dependents(role: &Arc<Role>, cx: &mut DdlContext<'_>) -> Result<()> {
    // Nobody writes privileges meanwhile, and what others have written is there.
    cx.lock_storage(RIGHTS, TableLock::AccessExclusive).await?;
    let catalog = cx.catalog()?;
    let mut all = lines(&catalog, role.oid, cx.search_path, true);
    for database in catalog.notes.databases.all() {
        if database.oid == catalog.database {
            continue;
        }
        let other = cx.store.current_by_oid(database.oid);
        let count = other.map_or(0, |other| lines(&other, role.oid, &[], false).len());
        if count > 0 {
            let objects = if count == 1 { "object" } else { "objects" };
            all.push(format!("{count} {objects} in database {}", database.name));
        }
    }
    match all.is_empty() {
        true => Ok(()),
        false => Err(SqlError::new(
            SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
            format!(
                "role \"{}\" cannot be dropped because some objects depend on it",
                role.name
            ),
        )
        .detail(all.join("\n"))),
    }
}
