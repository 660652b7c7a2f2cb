//! Rows about roles.
//!
//! `pg_authid` and `pg_shadow` show verifiers of passwords: to superusers only, as in PostgreSQL.

use super::cells::{Ch, Id, OidOrZero, row, text_array};
use crate::pg_catalog::privileges::acl_datum;
use logstead_sql_catalog::VirtualContext;
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::stored::privileges::default_letter;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Array, Datum, oid};
use logstead_types::SqlState;
use std::sync::Arc;

type Rows = Result<Vec<Vec<Datum>>>;

/// What is shown in place of a verifier.
const HIDDEN: &str = "********";

fn until(role: &Role) -> Datum {
    role.valid_until.map_or(Datum::Null, Datum::TimestampTz)
}

fn config(role: &Role) -> Datum {
    match role.settings.is_empty() {
        true => Datum::Null,
        false => text_array(role.settings.iter().map(|(n, v)| format!("{n}={v}"))),
    }
}

/// Who reads it was asked when the statement was let in, by the roles that its views stand for (`bind::access`).
fn refuse_past(cx: &VirtualContext<'_>, table: &str) -> Result<()> {
    if cx.catalog.past.is_none() {
        return Ok(());
    }
    // Of the past, nobody sees what was a password then: it may be one still, of who has not changed it.
    let message = format!("permission denied for {table}");
    Err(SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message))
}

/// `pg_authid`
pub(super) fn pg_authid(cx: &VirtualContext<'_>) -> Rows {
    refuse_past(cx, "table pg_authid")?;
    let rows = cx.catalog.roles.all().into_iter().map(|role| {
        row![
            role.oid,
            &role.name,
            role.superuser,
            role.inherit,
            role.create_role,
            role.create_db,
            role.login,
            role.replication,
            role.bypass_rls,
            role.connection_limit,
            role.password.as_ref(),
            until(role)
        ]
    });
    Ok(rows.collect())
}

/// `pg_roles`
pub(super) fn pg_roles(cx: &VirtualContext<'_>) -> Rows {
    let rows = cx.catalog.roles.all().into_iter().map(|role| {
        row![
            &role.name,
            role.superuser,
            role.inherit,
            role.create_role,
            role.create_db,
            role.login,
            role.replication,
            role.connection_limit,
            HIDDEN,
            until(role),
            role.bypass_rls,
            config(role),
            role.oid
        ]
    });
    Ok(rows.collect())
}

fn users(cx: &VirtualContext<'_>, password: impl Fn(&Role) -> Datum) -> Vec<Vec<Datum>> {
    let all = cx.catalog.roles.all().into_iter();
    all.filter(|role| role.login)
        .map(|role| {
            row![
                &role.name,
                role.oid,
                role.create_db,
                role.superuser,
                role.replication,
                role.bypass_rls,
                password(role),
                until(role),
                config(role)
            ]
        })
        .collect()
}

/// `pg_user`
pub(super) fn pg_user(cx: &VirtualContext<'_>) -> Rows {
    Ok(users(cx, |_| Datum::Text(Arc::from(HIDDEN))))
}

/// `pg_shadow`
pub(super) fn pg_shadow(cx: &VirtualContext<'_>) -> Rows {
    refuse_past(cx, "view pg_shadow")?;
    Ok(users(cx, |role| match &role.password {
        Some(password) => Datum::Text(Arc::from(password.as_str())),
        None => Datum::Null,
    }))
}

/// `pg_group`
pub(super) fn pg_group(cx: &VirtualContext<'_>) -> Rows {
    let roles = cx.catalog.roles.all();
    let groups = roles.iter().filter(|role| !role.login);
    Ok(groups
        .map(|group| {
            let members = roles
                .iter()
                .filter(|role| role.member_of.iter().any(|m| m.role == group.oid))
                .map(|role| Datum::Oid(role.oid.get()))
                .collect();
            let members = Array {
                element: oid::OID,
                lower: 1,
                shape: None,
                items: members,
            };
            row![&group.name, group.oid, Datum::Array(Arc::new(members))]
        })
        .collect())
}

/// `pg_auth_members`
pub(super) fn pg_auth_members(cx: &VirtualContext<'_>) -> Rows {
    let all = cx.catalog.roles.all().into_iter();
    Ok(all
        .flat_map(|role| {
            role.member_of
                .iter()
                .map(|m| row![m.role, role.oid, m.grantor, m.admin])
        })
        .collect())
}

/// `pg_db_role_setting`
pub(super) fn pg_db_role_setting(cx: &VirtualContext<'_>) -> Rows {
    let shown = |settings: &[(String, String)]| {
        text_array(settings.iter().map(|(n, v)| format!("{n}={v}")))
    };
    let databases = cx.catalog.notes.databases.all();
    let of_databases = databases.flat_map(|database| {
        let settings = database.settings.iter();
        settings.map(|(role, settings)| row![database.oid, OidOrZero(*role), shown(settings)])
    });
    let roles = cx.catalog.roles.all().into_iter();
    let of_roles = roles
        .filter(|role| !role.settings.is_empty())
        .map(|role| row![Id(0), role.oid, config(role)]);
    Ok(of_roles.chain(of_databases).collect())
}

/// `information_schema.enabled_roles`
pub(crate) fn enabled_roles(cx: &VirtualContext<'_>) -> Rows {
    let (roles, current) = (&cx.catalog.roles, cx.session.current_role());
    Ok(roles
        .all()
        .into_iter()
        .filter(|role| roles.has_privileges_of(current, role.oid))
        .map(|role| row![&role.name])
        .collect())
}

/// `information_schema.applicable_roles`
pub(crate) fn applicable_roles(cx: &VirtualContext<'_>) -> Rows {
    let (roles, current) = (&cx.catalog.roles, cx.session.current_role());
    let yes = |on: bool| if on { "YES" } else { "NO" };
    let all = roles.all().into_iter();
    Ok(all
        .filter(|role| roles.has_privileges_of(current, role.oid))
        .flat_map(|role| {
            role.member_of.iter().filter_map(|m| {
                let of = roles.get(m.role)?;
                Some(row![&role.name, &of.name, yes(m.admin)])
            })
        })
        .collect())
}

/// `pg_default_acl`
pub(super) fn pg_default_acl(cx: &VirtualContext<'_>) -> Rows {
    let defaults = cx.catalog.privileges.defaults.iter();
    Ok(defaults
        .map(|((role, schema, kind), (oid, acl))| {
            row![
                Id(*oid),
                *role,
                OidOrZero(*schema),
                Ch(default_letter(*kind)),
                acl_datum(acl, &cx.catalog.roles)
            ]
        })
        .collect())
}
