//! What has_table_privilege and its kin answer, the functions on lists of privileges, and the rows about privileges of
//! large objects.

use super::calls::{relation_by_text, text_arg, undefined_relation};
use super::cells::{Id, row};
use crate::missing_object::no_role;
use crate::pg_catalog::routines;
use logstead_sql_catalog::large_objects::PG_LARGEOBJECT;
use logstead_sql_catalog::privileges::is_closed_function;
use logstead_sql_catalog::role::Roles;
use logstead_sql_catalog::role::acl::{
    ACL_ID_PUBLIC, Acl, AclItem, AclKind, AclMode, PRIVILEGES, privilege as p,
};
use logstead_sql_catalog::type_name::type_by_text;
use logstead_sql_catalog::{Catalog, VirtualContext};
use logstead_sql_func::{self as func, CatalogFunction};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, oid};
use logstead_sql_types::{DatabaseOid, FunctionId, RelationId, RoleId, SchemaId, TypeId};
use logstead_types::SqlState;
use std::sync::Arc;

/// A list as a value.
pub(crate) fn acl_datum(acl: &Acl, roles: &Roles) -> Datum {
    let items = acl
        .0
        .iter()
        .map(|item| Datum::Text(Arc::from(item.text(roles))));
    Datum::Array(Arc::new(Array {
        element: oid::ACLITEM,
        lower: 1,
        shape: None,
        items: items.collect(),
    }))
}

/// The bit of a privilege that is named in lower case; none for what objects have no list for.
fn mask_of(name: &str) -> AclMode {
    let known = PRIVILEGES
        .iter()
        .find(|privilege| privilege.name.eq_ignore_ascii_case(name));
    match known {
        Some(privilege) => privilege.mask,
        None if name == "temp" => p::TEMPORARY,
        None => 0,
    }
}

fn of(args: &[Datum], from_end: usize) -> Option<&Datum> {
    args.get(args.len().checked_sub(from_end)?)
}

/// The catalog whose roles and privileges are told of: that of the present, whatever is read.
fn present(cx: &VirtualContext<'_>) -> Option<Arc<Catalog>> {
    cx.session.present_of(cx.catalog)
}

/// The role asked about, or PUBLIC: the first argument if there is one more than needed, else the current one
/// (`get_role_oid_or_public`).
fn subject(args: &[Datum], own: usize, cx: &VirtualContext<'_>) -> Result<Option<RoleId>> {
    match args.first() {
        // PUBLIC may what everybody may.
        Some(Datum::Text(name)) if args.len() > own && &**name == "public" => {
            Ok(Some(ACL_ID_PUBLIC))
        }
        _ => role_subject(args, own, cx),
    }
}

/// The same where only a role can be meant (`get_role_oid`).
fn role_subject(args: &[Datum], own: usize, cx: &VirtualContext<'_>) -> Result<Option<RoleId>> {
    if args.len() <= own {
        return Ok(Some(cx.session.current_role()));
    }
    let now = present(cx);
    let roles = &now.as_deref().unwrap_or(cx.catalog).roles;
    match args.first() {
        Some(Datum::Text(name)) => match roles.by_name(name) {
            Some(role) => Ok(Some(role.oid)),
            None => Err(no_role(name)),
        },
        // A role that is not there may what everybody may.
        Some(Datum::Oid(oid)) => Ok(Some(RoleId::new(*oid))),
        _ => Ok(None),
    }
}

/// The privileges listed, lower case, each with whether the right to grant it is asked for.
fn listed(args: &[Datum], known: &[&str]) -> Result<Vec<(String, bool)>> {
    let list = text_arg(args, args.len().saturating_sub(1)).unwrap_or_default();
    list.split(',')
        .map(|word| {
            let lower = word.trim().to_ascii_lowercase();
            let (plain, grant) = match lower.strip_suffix(" with grant option") {
                Some(plain) => (plain.to_owned(), true),
                None => (lower, false),
            };
            if known.contains(&&*plain) {
                return Ok((plain, grant));
            }
            Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("unrecognized privilege type: \"{}\"", word.trim()),
            ))
        })
        .collect()
}

/// Does any of the privileges, or of the grant options for them, come with what `has` says of one?
fn any(privileges: &[(String, bool)], has: impl Fn(AclMode, AclMode) -> bool) -> Datum {
    Datum::Bool(privileges.iter().any(|(name, grant)| {
        let mask = mask_of(name);
        mask != 0 && has(if *grant { 0 } else { mask }, if *grant { mask } else { 0 })
    }))
}

/// has_table_privilege, has_any_column_privilege, has_column_privilege, has_sequence_privilege.
pub(super) fn relation(
    function: CatalogFunction,
    args: &[Datum],
    cx: &VirtualContext<'_>,
) -> Result<Datum> {
    let of_column = function == CatalogFunction::HasColumnPrivilege;
    let own = if of_column { 3 } else { 2 };
    let known: &[&str] = match function {
        CatalogFunction::HasTablePrivilege => &[
            "select",
            "insert",
            "update",
            "delete",
            "truncate",
            "references",
            "trigger",
            "rule",
        ],
        CatalogFunction::HasSequencePrivilege => &["usage", "select", "update"],
        _ => &["select", "insert", "update", "references"],
    };
    let privileges = listed(args, known)?;
    let subject = subject(args, own, cx)?;
    let found = match of(args, own) {
        Some(Datum::Text(table)) => Some(
            relation_by_text(table, cx.lookup(&cx.session.search_path()))?
                .ok_or_else(|| undefined_relation(table))?,
        ),
        Some(Datum::Oid(oid)) => {
            let relation = RelationId::new(*oid);
            cx.catalog.name_of(relation).map(|_| relation)
        }
        _ => None,
    };
    let (Some(role), Some(oid)) = (subject, found) else {
        return Ok(Datum::Null);
    };
    let now = present(cx);
    let catalog = now.as_deref().unwrap_or(cx.catalog);
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let Some(relation) = cx.catalog.relations.get(&oid) else {
        // An index has no privileges.
        return Ok(Datum::Bool(acl_checker.members.is_superuser(role)));
    };
    if function == CatalogFunction::HasSequencePrivilege
        && !matches!(
            relation.kind,
            logstead_sql_catalog::RelationKind::Sequence(_)
        )
    {
        return Err(SqlError::new(
            SqlState::WRONG_OBJECT_TYPE,
            format!("\"{}\" is not a sequence", relation.name),
        ));
    }
    let live = |position: &usize| relation.columns.get(*position).is_some_and(|c| !c.dropped);
    let columns: Vec<usize> = match (function, of(args, 2)) {
        (CatalogFunction::HasAnyColumnPrivilege, _) => {
            (0..relation.columns.len()).filter(live).collect()
        }
        (CatalogFunction::HasColumnPrivilege, Some(Datum::Text(column))) => {
            let named = relation
                .columns
                .iter()
                .position(|c| !c.dropped && c.name == **column);
            vec![named.ok_or_else(|| {
                SqlError::new(
                    SqlState::UNDEFINED_COLUMN,
                    format!(
                        "column \"{column}\" of relation \"{}\" does not exist",
                        relation.name
                    ),
                )
            })?]
        }
        (CatalogFunction::HasColumnPrivilege, Some(Datum::Int2(number))) => {
            let position = usize::try_from(i32::from(*number) - 1).ok().filter(live);
            match position {
                Some(position) => vec![position],
                None => return Ok(Datum::Null),
            }
        }
        (CatalogFunction::HasColumnPrivilege, _) => return Ok(Datum::Null),
        _ => Vec::new(),
    };
    Ok(any(&privileges, |wanted, grantable| {
        acl_checker.on_relation(role, relation, wanted, grantable) == (wanted, grantable)
            || columns.iter().any(|position| {
                acl_checker.on_column(role, relation, *position, wanted, grantable)
                    == (wanted, grantable)
            })
    }))
}

/// has_schema_privilege.
pub(super) fn schema(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let privileges = listed(args, &["create", "usage"])?;
    let subject = subject(args, 2, cx)?;
    let schemas = &cx.catalog.schemas;
    let found = match of(args, 2) {
        Some(Datum::Text(name)) => Some(cx.catalog.schema(name).ok_or_else(|| {
            SqlError::new(
                SqlState::INVALID_SCHEMA_NAME,
                format!("schema \"{name}\" does not exist"),
            )
        })?),
        Some(Datum::Oid(oid)) => schemas.get(&SchemaId::new(*oid)),
        _ => None,
    };
    let (Some(role), Some(schema)) = (subject, found) else {
        return Ok(Datum::Null);
    };
    let now = present(cx);
    let catalog = now.as_deref().unwrap_or(cx.catalog);
    let acl_checker = catalog.acl_checker(&catalog.roles);
    Ok(any(&privileges, |wanted, grantable| {
        acl_checker.on_schema(role, schema.oid, wanted, grantable) == (wanted, grantable)
    }))
}

/// has_database_privilege.
fn database(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let privileges = listed(args, &["create", "connect", "temp", "temporary"])?;
    let subject = subject(args, 2, cx)?;
    let catalog = cx.catalog;
    let known = &catalog.notes.databases;
    let found = match of(args, 2) {
        Some(Datum::Text(name)) => Some(
            known
                .by_name(name)
                .ok_or_else(|| crate::no_database(name))?,
        ),
        Some(Datum::Oid(oid)) => known.get(DatabaseOid::new(*oid)),
        _ => None,
    };
    let (Some(role), Some(found)) = (subject, found) else {
        return Ok(Datum::Null);
    };
    let now = present(cx);
    let catalog = now.as_deref().unwrap_or(catalog);
    let acl_checker = catalog.acl_checker(&catalog.roles);
    let object = (found.oid, AclKind::Database);
    Ok(any(&privileges, |wanted, grantable| {
        acl_checker.on_object(role, object, wanted, grantable) == (wanted, grantable)
    }))
}

/// has_database_privilege, has_function_privilege and all others.
pub(super) fn other(
    function: CatalogFunction,
    args: &[Datum],
    cx: &VirtualContext<'_>,
) -> Result<Datum> {
    if function == CatalogFunction::HasDatabasePrivilege {
        return database(args, cx);
    }
    const KNOWN: &[&str] = &["create", "usage", "execute", "set", "alter system"];
    let known = match function {
        CatalogFunction::HasFunctionPrivilege => &["execute"],
        CatalogFunction::HasTypePrivilege => &["usage"],
        _ => KNOWN,
    };
    let privileges = listed(args, known)?;
    let Some(role) = subject(args, 2, cx)? else {
        return Ok(Datum::Null);
    };
    let now = present(cx);
    let catalog = now.as_deref().unwrap_or(cx.catalog);
    let roles = &catalog.roles;
    if function == CatalogFunction::HasFunctionPrivilege {
        let found = match of(args, 2) {
            Some(Datum::Text(text)) => Some(routines::regprocedure_in(text, cx)?),
            Some(Datum::Oid(oid)) => Some(FunctionId::new(*oid)),
            _ => None,
        };
        if let Some(routine) = found.and_then(|oid| cx.catalog.routines.get(oid)) {
            let object = (routine.oid, AclKind::Function);
            let acl_checker = catalog.acl_checker(roles);
            return Ok(any(&privileges, |wanted, grantable| {
                acl_checker.on_object(role, object, wanted, grantable) == (wanted, grantable)
            }));
        }
        let built_in = found.and_then(func::name_of);
        if built_in.is_some_and(is_closed_function) {
            return Ok(Datum::Bool(roles.is_superuser(role)));
        }
    }
    if function == CatalogFunction::HasTypePrivilege {
        let found = match of(args, 2) {
            Some(Datum::Text(text)) => {
                let path = cx.session.search_path();
                Some(type_by_text(text, cx.lookup(&path))?)
            }
            Some(Datum::Oid(oid)) => Some(TypeId::new(*oid)),
            _ => None,
        };
        // Everybody may use the type of a table's rows.
        let users = found.and_then(logstead_sql_types::value::user::of_users);
        if let Some(ty) = users.filter(|ty| cx.catalog.types.get(*ty).is_some()) {
            let object = (ty, AclKind::Type);
            let acl_checker = catalog.acl_checker(roles);
            return Ok(any(&privileges, |wanted, grantable| {
                acl_checker.on_object(role, object, wanted, grantable) == (wanted, grantable)
            }));
        }
    }
    // Of what there is not, nothing is known.
    let unknown = match (function, of(args, 2)) {
        (CatalogFunction::HasFunctionPrivilege, Some(Datum::Oid(oid))) => {
            routines::regproc_out(FunctionId::new(*oid), cx).is_none()
        }
        (CatalogFunction::HasTypePrivilege, Some(Datum::Oid(oid))) => {
            *oid == 0 || !cx.catalog.types.exists(TypeId::new(*oid))
        }
        _ => false,
    };
    if unknown {
        return Ok(Datum::Null);
    }
    let may = |(_, grant): &(String, bool)| {
        let everybodys = matches!(
            function,
            CatalogFunction::HasFunctionPrivilege
                | CatalogFunction::HasLanguagePrivilege
                | CatalogFunction::HasTypePrivilege
        );
        roles.is_superuser(role) || (everybodys && !grant)
    };
    Ok(Datum::Bool(privileges.iter().any(may)))
}

/// pg_has_role.
pub(super) fn has_role(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    // PUBLIC is a member of nothing, and no role.
    let member = role_subject(args, 2, cx)?;
    let now = present(cx);
    let catalog = now.as_deref().unwrap_or(cx.catalog);
    let roles = &catalog.roles;
    let acl_checker = catalog.acl_checker(roles);
    let role = match of(args, 2) {
        Some(Datum::Text(name)) => match roles.by_name(name) {
            Some(role) => Some(role.oid),
            None => return Err(no_role(name)),
        },
        Some(Datum::Oid(oid)) => Some(RoleId::new(*oid)),
        _ => None,
    };
    let (Some(member), Some(role)) = (member, role) else {
        return Ok(Datum::Null);
    };
    let kinds = listed(args, &["usage", "member"]);
    // With either name the right to grant is that to make others members.
    let kinds = match kinds {
        Err(_) => listed(
            args,
            &[
                "usage",
                "member",
                "usage with admin option",
                "member with admin option",
            ],
        )?,
        Ok(kinds) => kinds,
    };
    let has = |(kind, grant): &(String, bool)| match &**kind {
        _ if *grant || kind.ends_with("admin option") => roles.is_admin_of(member, role),
        "usage" => acl_checker.members.has_privileges_of(member, role),
        _ => acl_checker.members.is_member(member, role),
    };
    Ok(Datum::Bool(kinds.iter().any(has)))
}

fn items(list: Option<&Datum>, roles: &Roles) -> Result<Vec<AclItem>> {
    let Some(Datum::Array(list)) = list else {
        return Ok(Vec::new());
    };
    let texts = list.items.iter().filter_map(|item| match item {
        Datum::Text(text) => Some(text),
        _ => None,
    });
    texts.map(|text| AclItem::parse(text, roles)).collect()
}

/// aclexplode: grantor, grantee, privilege and whether it can be granted on, one after the other.
pub(super) fn explode(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let mut rows = Vec::new();
    for item in items(args.first(), &cx.catalog.roles)? {
        for privilege in PRIVILEGES {
            if item.privileges & privilege.mask != 0 {
                rows.push(vec![
                    Datum::Oid(item.grantor.get()),
                    Datum::Oid(item.grantee.get()),
                    Datum::text(privilege.name),
                    Datum::Bool(item.grantable & privilege.mask != 0),
                ]);
            }
        }
    }
    Ok(rows)
}

/// acldefault.
pub(super) fn default(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let (Some(Datum::Char(letter)), Some(Datum::Oid(owner))) = (args.first(), args.get(1)) else {
        return Ok(Datum::Null);
    };
    let kind = AclKind::of_letter(char::from(*letter)).ok_or_else(|| {
        SqlError::internal(format!(
            "unrecognized object type abbreviation: {}",
            char::from(*letter)
        ))
    })?;
    let acl = Acl::default_for(kind, RoleId::new(*owner));
    Ok(acl_datum(&acl, &cx.catalog.roles))
}

/// makeaclitem.
pub(super) fn make(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let [
        Datum::Oid(grantee),
        Datum::Oid(grantor),
        Datum::Text(names),
        Datum::Bool(grantable),
    ] = args
    else {
        return Ok(Datum::Null);
    };
    let privileges = mask_of(&names.to_ascii_lowercase());
    if privileges == 0 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("unrecognized privilege type: \"{names}\""),
        ));
    }
    let item = AclItem {
        grantee: RoleId::new(*grantee),
        grantor: RoleId::new(*grantor),
        privileges,
        grantable: if *grantable { privileges } else { 0 },
    };
    Ok(Datum::Text(Arc::from(item.text(&cx.catalog.roles))))
}

/// `logstead_large_object_rights`: of what belongs to another than the bootstrap superuser, or was granted to somebody
pub(crate) fn large_object_rights(cx: &VirtualContext<'_>) -> Result<Vec<Vec<Datum>>> {
    let known = cx.catalog.privileges.objects.iter();
    let mut known: Vec<_> = known
        .filter(|(object, _)| object.class == PG_LARGEOBJECT)
        .map(|(object, privileges)| (object.oid, privileges.owner))
        .collect();
    known.sort_unstable();
    let row = |(object, owner)| {
        let acl = super::relations::acl(cx.catalog, (PG_LARGEOBJECT, object));
        row![Id(object), owner, acl]
    };
    Ok(known.into_iter().map(row).collect())
}
