//! What has_table_privilege and its kin answer, and which GRANT and REVOKE ON say what is so anyway.
//!
//! Privileges on objects are not granted one by one (see `session::permit`): everything belongs to the bootstrap superuser, superusers may do everything,
//! members of pg_read_all_data and pg_write_all_data what these may, and everybody what PostgreSQL gives to PUBLIC by itself. So GRANT and REVOKE are
//! accepted where they change nothing, and refused (0A000) where somebody would believe that they did.

use super::calls::{relation_by_text, text_arg, undefined_relation};
use super::ddl::roles::no_role;
use super::{Catalog, RelationKind, VirtualContext};
use crate::error::{Result, SqlError};
use crate::role::{DATABASE_OWNER, READ_ALL_DATA, Roles, WRITE_ALL_DATA};
use crate::value::{Datum, Oid};
use logstead_types::SqlState;
use sqlparser::ast;

/// System relations that only superusers read.
const SECRET: [&str; 2] = ["pg_authid", "pg_shadow"];

fn of(args: &[Datum], from_end: usize) -> Option<&Datum> {
    args.get(args.len().checked_sub(from_end)?)
}

/// The role asked about: the first argument if there is one more than needed, else the current one.
fn subject(args: &[Datum], own: usize, cx: &VirtualContext<'_>) -> Result<Option<Oid>> {
    if args.len() <= own {
        return Ok(Some(cx.session.current_role()));
    }
    match args.first() {
        // PUBLIC may what everybody may.
        Some(Datum::Text(name)) if &**name == "public" => Ok(Some(0)),
        Some(Datum::Text(name)) => match cx.catalog.roles.by_name(name) {
            Some(role) => Ok(Some(role.oid)),
            None => Err(no_role(name)),
        },
        Some(Datum::Oid(oid)) => Ok(cx.catalog.roles.get(*oid).map(|role| role.oid)),
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

fn on_data(roles: &Roles, role: Oid, privilege: &str) -> bool {
    match privilege {
        "select" => roles.has_privileges_of(role, READ_ALL_DATA),
        "insert" | "update" | "delete" => roles.has_privileges_of(role, WRITE_ALL_DATA),
        _ => false,
    }
}

/// has_table_privilege, has_any_column_privilege, has_column_privilege, has_sequence_privilege.
pub(super) fn relation(name: &str, args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let own = if name == "has_column_privilege" { 3 } else { 2 };
    let known: &[&str] = match name {
        "has_table_privilege" => &[
            "select",
            "insert",
            "update",
            "delete",
            "truncate",
            "references",
            "trigger",
            "rule",
        ],
        "has_sequence_privilege" => &["usage", "select", "update"],
        _ => &["select", "insert", "update", "references"],
    };
    let privileges = listed(args, known)?;
    let subject = subject(args, own, cx)?;
    let found = match of(args, own) {
        Some(Datum::Text(table)) => Some(
            relation_by_text(cx.catalog, table, &cx.session.search_path())?
                .ok_or_else(|| undefined_relation(table))?,
        ),
        Some(Datum::Oid(oid)) => cx.catalog.name_of(*oid).map(|_| *oid),
        _ => None,
    };
    let (Some(role), Some(oid)) = (subject, found) else {
        return Ok(Datum::Null);
    };
    let roles = &cx.catalog.roles;
    let system = cx
        .catalog
        .relations
        .get(&oid)
        .filter(|r| matches!(r.kind, RelationKind::Virtual(_)));
    let everybodys = system.is_some_and(|r| !SECRET.contains(&&*r.name));
    let may = |(privilege, grant): &(String, bool)| {
        roles.is_superuser(role)
            || (!grant && (on_data(roles, role, privilege) || (everybodys && privilege == "select")))
            // Who may update a sequence may use it.
            || (!grant && privilege == "usage" && on_data(roles, role, "update"))
    };
    Ok(Datum::Bool(privileges.iter().any(may)))
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
        Some(Datum::Oid(oid)) => schemas.get(oid),
        _ => None,
    };
    let (Some(role), Some(schema)) = (subject, found) else {
        return Ok(Datum::Null);
    };
    let roles = &cx.catalog.roles;
    let everybodys = matches!(
        &*schema.name,
        "public" | "pg_catalog" | "information_schema"
    );
    let may = |(privilege, grant): &(String, bool)| {
        let data = [READ_ALL_DATA, WRITE_ALL_DATA];
        roles.is_superuser(role)
            || (!grant
                && privilege == "usage"
                && (everybodys || data.iter().any(|d| roles.has_privileges_of(role, *d))))
    };
    Ok(Datum::Bool(privileges.iter().any(may)))
}

/// has_database_privilege, has_function_privilege and all others.
pub(super) fn other(name: &str, args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    const KNOWN: &[&str] = &[
        "create",
        "connect",
        "temp",
        "temporary",
        "usage",
        "execute",
        "set",
        "alter system",
    ];
    let privileges = listed(args, KNOWN)?;
    let Some(role) = subject(args, 2, cx)? else {
        return Ok(Datum::Null);
    };
    let may = |(privilege, grant): &(String, bool)| {
        let everybodys = match name {
            "has_database_privilege" => privilege == "connect",
            "has_function_privilege" | "has_language_privilege" | "has_type_privilege" => true,
            _ => false,
        };
        cx.catalog.roles.is_superuser(role) || (everybodys && !grant)
    };
    Ok(Datum::Bool(privileges.iter().any(may)))
}

/// pg_has_role.
pub(super) fn has_role(args: &[Datum], cx: &VirtualContext<'_>) -> Result<Datum> {
    let member = subject(args, 2, cx)?;
    let roles = &cx.catalog.roles;
    let role = match of(args, 2) {
        Some(Datum::Text(name)) => match roles.by_name(name) {
            Some(role) => Some(role.oid),
            None => return Err(no_role(name)),
        },
        Some(Datum::Oid(oid)) => Some(*oid),
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
        "usage" => roles.has_privileges_of(member, role),
        _ => roles.is_member(member, role),
    };
    Ok(Datum::Bool(kinds.iter().any(has)))
}

/// GRANT and REVOKE ON: nothing to do, or refused.
pub(super) fn grant_or_revoke(statement: &ast::Statement, catalog: &Catalog) -> Result<()> {
    let (grantees, revoke, objects) = match statement {
        ast::Statement::Grant(grant) => (&grant.grantees, false, grant.objects.as_ref()),
        ast::Statement::Revoke(revoke) => (&revoke.grantees, true, revoke.objects.as_ref()),
        _ => return Ok(()),
    };
    for grantee in grantees {
        let name = match &grantee.name {
            Some(ast::GranteeName::ObjectName(name)) => super::calls::name_parts(name)?.1,
            Some(other) => return Err(SqlError::unsupported(format!("a grantee {other}"))),
            None => "public".to_owned(),
        };
        let plain = matches!(&*name, "current_user" | "session_user" | "current_role");
        let role = catalog.roles.by_name(&name);
        if !plain && name != "public" && role.is_none() {
            return Err(no_role(&name));
        }
        let superuser = plain || role.is_some_and(|role| role.superuser);
        // A superuser may do everything, granted or not; a REVOKE takes nothing from it in PostgreSQL either. What nobody was given
        // cannot be taken.
        let owner = role.is_some_and(|role| role.oid == DATABASE_OWNER);
        let nothing_to_take = revoke && role.is_some();
        if superuser || owner || nothing_to_take || is_so(revoke, statement, objects) {
            continue;
        }
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "{} of privileges on objects is not supported for a role that is no superuser",
                if revoke { "REVOKE" } else { "GRANT" }
            ),
        )
        .hint("GRANT pg_read_all_data or pg_write_all_data TO the role lets it read or write all tables."));
    }
    Ok(())
}

/// PUBLIC uses schema public, and creates nothing in it: saying so changes nothing.
fn is_so(revoke: bool, statement: &ast::Statement, objects: Option<&ast::GrantObjects>) -> bool {
    let privileges = match statement {
        ast::Statement::Grant(grant) => &grant.privileges,
        ast::Statement::Revoke(revoke) => &revoke.privileges,
        _ => return false,
    };
    let Some(ast::GrantObjects::Schemas(schemas)) = objects else {
        return false;
    };
    let public = schemas
        .iter()
        .all(|schema| super::calls::name_parts(schema).is_ok_and(|(_, name)| name == "public"));
    let ast::Privileges::Actions(actions) = privileges else {
        return false;
    };
    public
        && actions.iter().all(|action| match action {
            ast::Action::Usage => !revoke,
            ast::Action::Create { .. } => revoke,
            _ => false,
        })
}
