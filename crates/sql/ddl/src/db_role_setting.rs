//! What sessions begin with, by role and database (`pg_db_role_setting`): ALTER ROLE ... SET and ALTER DATABASE ...
//! SET.
//!
//! Does not: read a statement's SET or RESET (`settings_change`).

use crate::DdlContext;
use crate::databases::{find, must_own};
use crate::roles::{caller_role, check_before_lock, denied, refuse_predefined};
use crate::settings_change::SettingChange;
use logstead_sql_catalog::database::Database;
use logstead_sql_catalog::role::Role;
use logstead_sql_catalog::settings;
use logstead_sql_parse::ast::{AlterDatabaseSetStmt, AlterRoleSetStmt, RoleSpec};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};

/// Runs ALTER ROLE ... SET, of all databases or of one.
pub(super) async fn alter_role_set(stmt: &AlterRoleSetStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let change = SettingChange::of(&stmt.setstmt)?;
    if let Some(database) = &stmt.database {
        return set(database, stmt.role.as_ref(), &change, cx).await;
    }
    let Some(name) = &stmt.role else {
        return Err(SqlError::unsupported("ALTER ROLE ALL"));
    };
    check_before_lock(cx, |cx| settable_role(name, cx))?;
    cx.lock_roles().await?;
    let mut role = settable_role(name, cx)?;
    change_settings(&mut role.settings, &change, "ALTER ROLE", cx)?;
    cx.put_role(role).await
}

/// A role whose settings the asker may change.
pub(super) fn settable_role(name: &RoleSpec, cx: &mut DdlContext<'_>) -> Result<Role> {
    let found = cx.find_role(name)?;
    let role = Role::clone(&found);
    refuse_predefined(&role)?;
    let asker = caller_role(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !asker.create_role && role.oid != asker.oid {
        return Err(denied("permission denied"));
    }
    Ok(role)
}

/// Changes the settings that sessions begin with as a statement says, which begins with `verb`.
pub(super) fn change_settings(
    known: &mut Vec<(String, String)>,
    change: &SettingChange,
    verb: &str,
    cx: &DdlContext<'_>,
) -> Result<()> {
    match change {
        SettingChange::Set(setting, value) => {
            change_setting(known, setting, value.as_deref(), verb)
        }
        SettingChange::SetFromCurrent(setting) => {
            let value = cx.session.setting(setting);
            let value = value.ok_or_else(|| settings::unknown(setting))?;
            change_setting(known, setting, Some(&value), verb)
        }
        SettingChange::ResetAll => {
            known.clear();
            Ok(())
        }
    }
}

/// Changes a setting that sessions begin with; no value takes it away.
fn change_setting(
    known: &mut Vec<(String, String)>,
    setting: &str,
    value: Option<&str>,
    verb: &str,
) -> Result<()> {
    let lower = setting.to_ascii_lowercase();
    if matches!(lower.as_str(), "role" | "session_authorization") {
        return Err(SqlError::unsupported(format!("{verb} ... SET {lower}")));
    }
    known.retain(|(name, _)| *name != lower);
    if let Some(value) = value {
        settings::check_for_session(&lower, value)?;
        known.push((lower, value.to_owned()));
    }
    Ok(())
}

/// Runs ALTER DATABASE ... SET.
pub(super) async fn alter_database_set(
    stmt: &AlterDatabaseSetStmt,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    set(&stmt.dbname, None, &SettingChange::of(&stmt.setstmt)?, cx).await
}

/// Changes the settings of a database that the sessions of a role begin with, or those of all roles.
pub(super) async fn set(
    name: &str,
    role: Option<&RoleSpec>,
    change: &SettingChange,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    // Asked before anybody is kept waiting, and again.
    settable(name, role, cx)?;
    cx.lock_databases().await?;
    let (mut database, role) = settable(name, role, cx)?;
    let known = database.settings.entry(role).or_default();
    change_settings(known, change, "ALTER DATABASE", cx)?;
    if known.is_empty() {
        database.settings.remove(&role);
    }
    cx.update_database(database).await
}

/// A database whose settings for a role the asker may change; those for all roles are its owner's.
fn settable(
    name: &str,
    role: Option<&RoleSpec>,
    cx: &mut DdlContext<'_>,
) -> Result<(Database, Option<RoleId>)> {
    let role = match role {
        Some(role) => Some(settable_role(role, cx)?.oid),
        None => None,
    };
    let found = find(name, cx)?;
    if role.is_none() {
        must_own(&found, cx)?;
    }
    Ok((Database::clone(&found), role))
}
