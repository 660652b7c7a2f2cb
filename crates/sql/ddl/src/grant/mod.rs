//! GRANT, REVOKE and ALTER DEFAULT PRIVILEGES: who may grant what, and what is granted then.

mod relation;

use super::object_address::{
    dotted_names, large_object_of, name_of as object_name, noun, relation_of, unexpected_object,
    with_args,
};
use super::{DdlContext, def_elem, routine_lookup, types};
use crate::grant::relation::{on_relation, on_relations};
use crate::missing_object::no_schema;
use crate::pg_catalog::calls;
use crate::relations::no_relation;
use logstead_sql_catalog::classes::{
    CatalogObject, PG_CATALOG_NAMESPACE, PG_CLASS, PG_DATABASE, PG_NAMESPACE, PG_PROC,
};
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::privileges::{DefaultAclKey, denied};
use logstead_sql_catalog::role::BOOTSTRAP;
use logstead_sql_catalog::role::acl::{
    ACL_ID_PUBLIC, Acl, AclItem, AclKind, AclMode, AclModification, INVALID_GRANT, PRIVILEGES,
    best_grantor, privilege as p,
};
use logstead_sql_catalog::{Catalog, RelationKind};
use logstead_sql_parse::ast::{
    AlterDefaultPrivilegesStmt, DefArg, DropBehavior, GrantStmt, GrantTarget, Name, ObjectRef,
    ObjectType, RangeVar, RoleSpec, RoleSpecKind,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::SqlType;
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
use logstead_types::SqlState;

/// 01007.
const NOT_GRANTED: SqlState = SqlState::new(b"01007");
/// 01006.
const NOT_REVOKED: SqlState = SqlState::new(b"01006");

/// The privilege that a word of GRANT means.
fn privilege(word: &str) -> Result<AclMode> {
    let known = PRIVILEGES
        .iter()
        .find(|privilege| privilege.name.eq_ignore_ascii_case(word));
    match known {
        Some(privilege) => Ok(privilege.mask),
        None if word == "temp" => Ok(p::TEMPORARY),
        None => Err(SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("unrecognized privilege type \"{word}\""),
        )),
    }
}

pub(super) fn name_of(mask: AclMode) -> &'static str {
    let known = PRIVILEGES.iter().find(|known| mask & known.mask != 0);
    known.map_or("?", |privilege| privilege.name)
}

/// What a statement grants, resolved.
pub(super) struct InternalGrant {
    /// None is ALL.
    pub(super) whole: Option<AclMode>,
    /// Privileges on columns, by name; none is ALL.
    pub(super) columns: Vec<(Option<AclMode>, Vec<String>)>,
    pub(super) grantees: Vec<RoleId>,
    /// GRANTED BY.
    pub(super) revoke: bool,
    pub(super) option: bool,
    pub(super) cascade: bool,
}

impl InternalGrant {
    /// 0LP01 for a privilege that objects of the kind do not have.
    fn check(&self, kind: AclKind) -> Result<()> {
        let wrong = self.whole.unwrap_or(0) & !kind.all();
        if wrong != 0 {
            return Err(SqlError::new(
                INVALID_GRANT,
                format!(
                    "invalid privilege type {} for {}",
                    name_of(wrong),
                    kind.words()
                ),
            ));
        }
        Ok(())
    }
}

pub(super) fn resolve_grant(grant: &GrantStmt, cx: &mut DdlContext<'_>) -> Result<InternalGrant> {
    let mut grantees = Vec::new();
    for grantee in &grant.grantees {
        grantees.push(match grantee.kind {
            RoleSpecKind::Public => ACL_ID_PUBLIC,
            _ => cx.find_role(grantee)?.oid,
        });
    }
    if let Some(grantor) = &grant.grantor
        && cx.find_role(grantor)?.oid != cx.session.current_role()
    {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "grantor must be current user",
        ));
    }
    let mut whole = match grant.privileges.is_empty() {
        true => None,
        false => Some(0),
    };
    let mut columns = Vec::new();
    for asked in &grant.privileges {
        let names = asked.cols.iter().map(ToString::to_string);
        let Some(word) = &asked.priv_name else {
            columns.push((None, names.collect()));
            continue;
        };
        let privilege = privilege(word)?;
        if asked.cols.is_empty() {
            whole = whole.map(|mask| mask | privilege);
            continue;
        }
        if privilege & !AclKind::Column.all() != 0 {
            return Err(SqlError::new(
                INVALID_GRANT,
                format!("invalid privilege type {} for column", name_of(privilege)),
            ));
        }
        columns.push((Some(privilege), names.collect()));
    }
    Ok(InternalGrant {
        whole,
        columns,
        grantees,
        revoke: !grant.is_grant,
        option: grant.grant_option,
        cascade: grant.behavior == DropBehavior::Cascade,
    })
}

/// An object, as messages name it.
pub(super) struct GrantObject<'a> {
    /// As in "permission denied for ...".
    pub(super) denied: String,
    /// As in "no privileges were granted for ...".
    pub(super) named: String,
    pub(super) owner: RoleId,
    /// Has the grantor any privilege on it at all?
    pub(super) any: &'a dyn Fn(RoleId) -> bool,
}

/// Who grants, and what of `wanted` may be granted: less, with a warning, or 42501.
pub(super) fn grantor(
    asked: &InternalGrant,
    wanted: AclMode,
    is_all: bool,
    acl: &Acl,
    target: &GrantObject<'_>,
    cx: &mut DdlContext<'_>,
) -> Result<(RoleId, AclMode)> {
    let (grantor, options) = cx.with_acl_checker(|acl_checker, role| {
        best_grantor(role, wanted, acl, target.owner, acl_checker.members)
    })?;
    if options == 0 && !(target.any)(grantor) {
        return Err(denied(format!("permission denied for {}", target.denied)));
    }
    let may = wanted & options;
    let (code, verb) = match asked.revoke {
        true => (NOT_REVOKED, "could be revoked"),
        false => (NOT_GRANTED, "were granted"),
    };
    let words = match may {
        0 => "no privileges",
        _ if !is_all && may != wanted => "not all privileges",
        _ => return Ok((grantor, may)),
    };
    cx.notices.push(super::Notice {
        severity: "WARNING",
        code,
        message: format!("{words} {verb} for {}", target.named),
        detail: None,
        hint: None,
    });
    Ok((grantor, may))
}

/// The list with what is asked added or taken away.
pub(super) fn changed(
    asked: &InternalGrant,
    mut acl: Acl,
    grantor: RoleId,
    privileges: AclMode,
    owner: RoleId,
    cx: &mut DdlContext<'_>,
) -> Result<Acl> {
    let mode = match asked.revoke {
        true => AclModification::Remove,
        false => AclModification::Add,
    };
    for grantee in &asked.grantees {
        if !asked.revoke && asked.option && *grantee == ACL_ID_PUBLIC {
            return Err(SqlError::new(
                INVALID_GRANT,
                "grant options can only be granted to roles",
            ));
        }
        // REVOKE takes the right to grant along; GRANT OPTION FOR takes nothing else.
        let item = AclItem {
            grantee: *grantee,
            grantor,
            privileges: if asked.revoke && asked.option {
                0
            } else {
                privileges
            },
            grantable: if asked.revoke || asked.option {
                privileges
            } else {
                0
            },
        };
        if privileges != 0 {
            cx.with_acl_checker(|acl_checker, _| {
                acl.change(item, mode, owner, asked.cascade, acl_checker.members)
            })??;
        }
    }
    Ok(acl)
}

/// Runs GRANT and REVOKE.
pub(super) async fn execute(grant: &GrantStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    cx.lock_privileges().await?;
    let asked = resolve_grant(grant, cx)?;
    let (kind, objects) = match &grant.target {
        GrantTarget::Objects(kind, objects) => (*kind, objects),
        GrantTarget::AllInSchema(kind, schemas) => {
            refuse_columns(&asked, *kind)?;
            return on_all_in_schemas(&asked, *kind, schemas, cx).await;
        }
        GrantTarget::Defaults(_) => return Err(unexpected_object()),
    };
    if let Some(what) = unsupported_target(kind) {
        return Err(SqlError::unsupported(what));
    }
    refuse_columns(&asked, kind)?;
    match kind {
        ObjectType::Table => {
            let relations = found(objects.iter().map(relation_of), cx)?;
            on_relations(&asked, &relations, false, cx).await
        }
        ObjectType::Sequence => {
            asked.check(AclKind::Sequence)?;
            let relations = found(objects.iter().map(relation_of), cx)?;
            on_relations(&asked, &relations, true, cx).await
        }
        ObjectType::Function | ObjectType::Procedure | ObjectType::Routine => {
            on_routines(&asked, kind, objects, cx).await
        }
        ObjectType::Schema => {
            asked.check(AclKind::Schema)?;
            for name in &dotted_names(objects)? {
                let catalog = cx.catalog()?;
                let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
                let object = (schema.oid, AclKind::Schema);
                on_object(&asked, object, name, cx).await?;
            }
            Ok(())
        }
        ObjectType::Database => {
            asked.check(AclKind::Database)?;
            cx.lock_databases_shared().await?;
            for name in &dotted_names(objects)? {
                let catalog = cx.catalog()?;
                let database = database(name, &catalog)?;
                on_object(&asked, (database, AclKind::Database), name, cx).await?;
            }
            Ok(())
        }
        ObjectType::LargeObject => {
            asked.check(AclKind::LargeObject)?;
            for object in objects {
                let object = large_object_of(object)?;
                let target = ((PG_LARGEOBJECT, object), AclKind::LargeObject);
                on_object(&asked, target, &format!("large object {object}"), cx).await?;
            }
            Ok(())
        }
        ObjectType::Language => {
            asked.check(AclKind::Language)?;
            for name in &dotted_names(objects)? {
                match name.as_str() {
                    "sql" | "plpgsql" => leave_usage(&asked, AclKind::Language, name, cx)?,
                    "c" | "internal" => return Err(untrusted(name)),
                    _ => {
                        return Err(SqlError::new(
                            SqlState::UNDEFINED_OBJECT,
                            format!("language \"{name}\" does not exist"),
                        ));
                    }
                }
            }
            Ok(())
        }
        ObjectType::Type | ObjectType::Domain => on_types(&asked, kind, objects, cx).await,
        _ => Err(unexpected_object()),
    }
}

/// What objects of a kind have no privileges here, as 0A000 names it.
fn unsupported_target(kind: ObjectType) -> Option<&'static str> {
    Some(match kind {
        ObjectType::Fdw => "GRANT on a foreign-data wrapper",
        ObjectType::ForeignServer => "GRANT on a foreign server",
        ObjectType::Tablespace => "GRANT on a tablespace",
        ObjectType::ParameterAcl => "GRANT on a parameter",
        _ => return None,
    })
}

/// 0LP01 for columns of what is no relation.
fn refuse_columns(asked: &InternalGrant, kind: ObjectType) -> Result<()> {
    match asked.columns.is_empty() || kind == ObjectType::Table {
        true => Ok(()),
        false => Err(SqlError::new(
            INVALID_GRANT,
            "column privileges are only valid for relations",
        )),
    }
}

/// GRANT and REVOKE ON ALL objects of a kind in schemas.
async fn on_all_in_schemas(
    asked: &InternalGrant,
    kind: ObjectType,
    schemas: &[Name],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    if matches!(kind, ObjectType::Table | ObjectType::Sequence) {
        let sequences = kind == ObjectType::Sequence;
        if sequences {
            asked.check(AclKind::Sequence)?;
        }
        let mut all = Vec::new();
        for name in schemas {
            let schema = usable_schema(name, &catalog, cx)?;
            let mut inside: Vec<RelationId> = catalog
                .dependent_relations(schema)
                .into_iter()
                .filter(|r| r.schema == schema)
                .filter(|r| matches!(r.kind, RelationKind::Sequence(_)) == sequences)
                .map(|r| r.oid)
                .collect();
            inside.sort_unstable();
            all.extend(inside);
        }
        return on_relations(asked, &all, sequences, cx).await;
    }
    asked.check(AclKind::Function)?;
    for name in schemas {
        let schema = usable_schema(name, &catalog, cx)?;
        if schema == PG_CATALOG_NAMESPACE {
            return Err(SqlError::unsupported("GRANT on a built-in function"));
        }
        for routine in catalog.dependent_routines(schema) {
            if routine_lookup::is_of_kind(routine, kind) && routine.schema == schema {
                let object = (routine.oid, AclKind::Function);
                on_object(asked, object, &routine.name, cx).await?;
            }
        }
    }
    Ok(())
}

async fn on_routines(
    asked: &InternalGrant,
    kind: ObjectType,
    objects: &[ObjectRef],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    asked.check(AclKind::Function).map_err(|mut error| {
        let fields = error.fields_mut();
        fields.message = fields.message.replace("function", noun(kind));
        error
    })?;
    for object in objects {
        let routine = routine_lookup::named(kind, with_args(object)?, cx)?;
        let object = (routine.oid, AclKind::Function);
        on_object(asked, object, &routine.name, cx).await?;
    }
    Ok(())
}

async fn on_types(
    asked: &InternalGrant,
    kind: ObjectType,
    objects: &[ObjectRef],
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    asked.check(AclKind::Type).map_err(|mut error| {
        let fields = error.fields_mut();
        let words = format!("for {}", noun(kind));
        fields.message = fields.message.replace("for type", &words);
        error
    })?;
    for object in objects {
        let of_domain = kind == ObjectType::Domain;
        let (own, name) = types::granted(object_name(object)?, of_domain, cx)?;
        match own {
            Some(ty) => on_object(asked, (ty, AclKind::Type), &name, cx).await?,
            None => leave_usage(asked, AclKind::Type, &name, cx)?,
        }
    }
    Ok(())
}

fn untrusted(name: &str) -> SqlError {
    SqlError::new(
        SqlState::WRONG_OBJECT_TYPE,
        format!("language \"{name}\" is not trusted"),
    )
    .detail("GRANT and REVOKE are not allowed on untrusted languages, because only superusers can use untrusted languages.")
}

/// Built-in types and languages have no lists of their own: everybody may use all of them. What leaves that so is
/// accepted, the rest is 0A000.
fn leave_usage(
    asked: &InternalGrant,
    kind: AclKind,
    name: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let acl = Acl::default_for(kind, BOOTSTRAP);
    let target = GrantObject {
        denied: format!("{} {name}", kind.words()),
        named: format!("\"{name}\""),
        owner: BOOTSTRAP,
        any: &|_| true,
    };
    let wanted = asked.whole.unwrap_or(kind.all());
    let (grantor, may) = grantor(asked, wanted, asked.whole.is_none(), &acl, &target, cx)?;
    changed(asked, acl, grantor, may, BOOTSTRAP, cx)?;
    let what = match (asked.revoke, asked.option) {
        _ if may == 0 => return Ok(()),
        (false, true) => "GRANT ... WITH GRANT OPTION",
        (true, false) if asked.grantees.contains(&ACL_ID_PUBLIC) => "REVOKE ... FROM PUBLIC",
        _ => return Ok(()),
    };
    let words = kind.words();
    Err(SqlError::unsupported(format!("{what} on {words} {name}")))
}

/// The OID of a database.
pub(super) fn database(name: &str, catalog: &Catalog) -> Result<DatabaseOid> {
    if name == catalog.database_name {
        return Ok(catalog.database);
    }
    let found = catalog.notes.databases.by_name(name);
    found
        .map(|found| found.oid)
        .ok_or_else(|| crate::missing_object::no_database(name))
}

fn usable_schema(name: &str, catalog: &Catalog, cx: &mut DdlContext<'_>) -> Result<SchemaId> {
    let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?.oid;
    match cx.with_acl_checker(|acl_checker, role| acl_checker.may_use_schema(role, schema))? {
        true => Ok(schema),
        false => Err(denied(format!("permission denied for schema {name}"))),
    }
}

/// The relations and indexes of these names.
fn found<'a>(
    names: impl Iterator<Item = Result<&'a RangeVar>>,
    cx: &mut DdlContext<'_>,
) -> Result<Vec<RelationId>> {
    let mut all = Vec::new();
    let catalog = cx.catalog()?;
    for name in names {
        let name = name?;
        let (schema, plain) = calls::lookup_parts(name, cx.lookup(&catalog))?;
        if let Some(schema) = &schema {
            usable_schema(schema, &catalog, cx)?;
        }
        let oid = catalog.object_by_name(schema.as_deref(), &plain, cx.search_path);
        let oid = oid.ok_or_else(|| no_relation(name))?;
        if schema.is_none()
            && let Some(relation) = catalog.relations.get(&oid)
            && !cx.with_acl_checker(|acl_checker, role| {
                acl_checker.may_use_schema(role, relation.schema)
            })?
        {
            return Err(no_relation(name));
        }
        all.push(oid);
    }
    Ok(all)
}

async fn on_object(
    asked: &InternalGrant,
    (object, kind): (impl Into<CatalogObject>, AclKind),
    name: &str,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let catalog = cx.catalog()?;
    let object = object.into();
    let was = catalog.stored_privileges(object);
    let mut privileges = was.clone();
    let acl = privileges
        .acl
        .clone()
        .unwrap_or_else(|| Acl::default_for(kind, privileges.owner));
    let routine = catalog
        .routines
        .get(FunctionId::new(object.oid))
        .filter(|_| object.class == PG_PROC);
    let word = match kind {
        AclKind::Function => routine.map_or("function", |r| r.word()),
        AclKind::Schema => "schema",
        AclKind::Type => "type",
        AclKind::LargeObject => "large object",
        _ => "database",
    };
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let any = |role: RoleId| {
        let all = kind.all();
        acl_checker.on_object(role, (object, kind), all, all) != (0, 0)
    };
    let target = GrantObject {
        denied: format!("{word} {name}"),
        named: format!("\"{name}\""),
        owner: privileges.owner,
        any: &any,
    };
    let wanted = asked.whole.unwrap_or(kind.all());
    let (grantor, may) = grantor(asked, wanted, asked.whole.is_none(), &acl, &target, cx)?;
    let acl = changed(asked, acl, grantor, may, privileges.owner, cx)?;
    privileges.acl = Some(acl);
    cx.store_privileges(object, &was, privileges).await
}

/// REVOKE ALL ... CASCADE of what a role was granted on one object, as DROP OWNED by somebody who does not own it.
pub(super) async fn revoke_from(
    role: RoleId,
    object: CatalogObject,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let asked = InternalGrant {
        whole: None,
        columns: Vec::new(),
        grantees: vec![role],
        revoke: true,
        option: false,
        cascade: true,
    };
    let catalog = cx.catalog()?;
    let (kind, name) = match object.class {
        PG_CLASS => {
            return match catalog.relations.get(&RelationId::new(object.oid)) {
                Some(relation) => {
                    let sequence = matches!(relation.kind, RelationKind::Sequence(_));
                    on_relation(&asked, relation, sequence, cx).await
                }
                None => Ok(()),
            };
        }
        PG_PROC => (
            AclKind::Function,
            catalog
                .routines
                .get(FunctionId::new(object.oid))
                .map(|routine| routine.name.clone()),
        ),
        PG_NAMESPACE => (
            AclKind::Schema,
            catalog
                .schemas
                .get(&SchemaId::new(object.oid))
                .map(|schema| schema.name.clone()),
        ),
        PG_LARGEOBJECT => (
            AclKind::LargeObject,
            Some(format!("large object {}", object.oid)),
        ),
        PG_DATABASE if object.oid == catalog.database.get() => {
            (AclKind::Database, Some(catalog.database_name.clone()))
        }
        PG_DATABASE => {
            let found = catalog.notes.databases.get(DatabaseOid::new(object.oid));
            (
                AclKind::Database,
                found.map(|database| database.name.clone()),
            )
        }
        _ => (
            AclKind::Type,
            Some(cx.format_type(SqlType::of(TypeId::new(object.oid)))?),
        ),
    };
    on_object(&asked, (object, kind), &name.unwrap_or_default(), cx).await
}

/// Runs ALTER DEFAULT PRIVILEGES.
pub(super) async fn defaults(
    stmt: &AlterDefaultPrivilegesStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let (mut roles, mut schemas) = (None, None);
    for option in &stmt.options {
        match &option.arg {
            Some(DefArg::Roles(named)) => {
                def_elem::set_once(&mut roles, named.as_slice(), option, cx.text)?;
            }
            Some(DefArg::List(named)) => {
                def_elem::set_once(&mut schemas, named.as_slice(), option, cx.text)?;
            }
            _ => return Err(def_elem::unexpected(option)),
        }
    }
    let roles: &[RoleSpec] = roles.unwrap_or_default();
    let schemas = schemas.unwrap_or_default().iter().map(|name| match name {
        DefArg::String(name) => Ok(&**name),
        _ => Err(unexpected_object()),
    });
    let schemas: Vec<&str> = schemas.collect::<Result<_>>()?;
    cx.lock_privileges().await?;
    let asked = resolve_grant(&stmt.action, cx)?;
    let kind = match stmt.action.target {
        GrantTarget::Defaults(ObjectType::Table) => AclKind::Table,
        GrantTarget::Defaults(ObjectType::Sequence) => AclKind::Sequence,
        GrantTarget::Defaults(ObjectType::Function) => AclKind::Function,
        GrantTarget::Defaults(ObjectType::Type) => AclKind::Type,
        GrantTarget::Defaults(ObjectType::Schema) => AclKind::Schema,
        _ => return Err(unexpected_object()),
    };
    if !asked.columns.is_empty() {
        return Err(SqlError::new(
            INVALID_GRANT,
            "default privileges cannot be set for columns",
        ));
    }
    if kind == AclKind::Schema && !schemas.is_empty() {
        return Err(SqlError::new(
            INVALID_GRANT,
            "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS",
        ));
    }
    asked.check(kind)?;
    let mut owners = Vec::new();
    for role in roles {
        let role = cx.find_role(role)?;
        // A member could become the role, whether or not it inherits what the role may do.
        if !cx
            .with_acl_checker(|acl_checker, asker| acl_checker.members.is_member(asker, role.oid))?
        {
            return Err(denied(format!("must be member of role \"{}\"", role.name)));
        }
        owners.push(role.oid);
    }
    if roles.is_empty() {
        owners.push(cx.session.current_role());
    }
    for owner in owners {
        if schemas.is_empty() {
            default_of((owner, None, kind), &asked, cx).await?;
        }
        for name in &schemas {
            let catalog = cx.catalog()?;
            let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?.oid;
            default_of((owner, Some(schema), kind), &asked, cx).await?;
        }
    }
    Ok(())
}

async fn default_of(
    key: DefaultAclKey,
    asked: &InternalGrant,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let (owner, schema, kind) = key;
    let catalog = cx.catalog()?;
    // In a schema there is only what comes on top.
    let usual = match schema {
        None => Acl::default_for(kind, owner),
        Some(_) => Acl::default(),
    };
    let old = catalog.privileges.defaults.get(&key);
    let old = old.map_or_else(|| usual.clone(), |(_, acl)| acl.clone());
    let wanted = asked.whole.unwrap_or(kind.all());
    let acl = changed(asked, old, owner, wanted, owner, cx)?;
    let new = (acl.sorted() != usual.sorted()).then_some(acl);
    cx.store_default_privileges(key, new).await
}
