//! CREATE, ALTER and DROP ROLE, and memberships.
//!
//! All of it happens under one lock, that of the roles' table: whoever changes a role sees all roles as they are, and
//! no two transactions make a circle of memberships between them. Who asks is judged by the roles as the transaction
//! sees them.

use super::DdlContext;
use logstead_engine::TableLock;
use logstead_sql_catalog::change::Change;
use logstead_sql_catalog::classes::PG_AUTHID;
use logstead_sql_catalog::role::scram::{SALT_BYTES, Verifier};
use logstead_sql_catalog::role::{DATABASE_OWNER, Membership, Role, Roles};
use logstead_sql_catalog::settings;
use logstead_sql_catalog::stored::ROLES;
use logstead_sql_catalog::stored_roles;
use logstead_sql_parse::{RoleCommand, RoleName, RoleOptions};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Oid, datetime};
use logstead_types::SqlState;
use std::sync::Arc;

/// 0LP01.
const INVALID_GRANT: SqlState = SqlState::new(b"0LP01");

fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

/// 42704 for a role.
pub(crate) fn no_role(name: &str) -> SqlError {
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("role \"{name}\" does not exist"),
    )
}

fn reserved(name: &str) -> SqlError {
    SqlError::new(
        SqlState::RESERVED_NAME,
        format!("role name \"{name}\" is reserved"),
    )
}

/// Runs a statement about roles.
pub(super) async fn execute(command: &RoleCommand, cx: &mut DdlContext<'_>) -> Result<()> {
    // Who may not do it keeps nobody waiting.
    ask(command, cx)?;
    // What others are changing is waited for, and seen.
    cx.lock_storage(ROLES, TableLock::Exclusive).await?;
    cx.txn.begin_statement();
    match command {
        RoleCommand::Create { name, options } => create(name, options, cx).await,
        RoleCommand::Alter { name, options } => alter(name, options, cx).await,
        RoleCommand::Rename { name, new } => rename(name, new, cx).await,
        RoleCommand::Set {
            name,
            setting,
            value,
        } => set(name, setting, value.as_deref(), cx).await,
        RoleCommand::SetFromCurrent { name, setting } => {
            let value = cx.session.setting(setting);
            let value = value.ok_or_else(|| settings::unknown(setting))?;
            set(name, setting, Some(&value), cx).await
        }
        RoleCommand::ResetAll { name } => {
            let mut role = settable(name, cx)?;
            role.settings.clear();
            cx.put_role(role).await
        }
        RoleCommand::Drop { if_exists, names } => drop(*if_exists, names, cx).await,
        RoleCommand::Grant {
            roles,
            members,
            admin,
            grantor,
            ..
        } => {
            let grantor = grantor_of(grantor.as_ref(), cx)?;
            for role in roles {
                let role = cx.find_role(role)?.oid;
                for member in members {
                    let member = cx.find_role(member)?.oid;
                    grant(role, member, *admin, grantor, cx).await?;
                }
            }
            Ok(())
        }
        RoleCommand::Revoke {
            roles,
            members,
            admin,
            grantor,
            ..
        } => {
            grantor_of(grantor.as_ref(), cx)?;
            for role in roles {
                let role = cx.find_role(role)?;
                for member in members {
                    let member = cx.find_role(member)?;
                    revoke(&role, &member, *admin, cx).await?;
                }
            }
            Ok(())
        }
    }
}

impl DdlContext<'_> {
    fn roles(&mut self) -> Result<Arc<Roles>> {
        Ok(Arc::clone(&self.catalog()?.roles))
    }

    pub(super) fn find_role(&mut self, name: &RoleName) -> Result<Arc<Role>> {
        let roles = self.roles()?;
        let found = match name {
            RoleName::Name(name) => {
                return roles.by_name(name).cloned().ok_or_else(|| no_role(name));
            }
            RoleName::Public => return Err(no_role("public")),
            RoleName::Current => self.session.current_role(),
            RoleName::Session => self.session.session_role(),
        };
        let gone = || no_role(&format!("with OID {found}"));
        roles.get(found).cloned().ok_or_else(gone)
    }

    /// Stores a role, new or changed.
    async fn put_role(&mut self, role: Role) -> Result<()> {
        let row = stored_roles::encode(&role);
        let done = match self.roles()?.get(role.oid).is_some() {
            true => self.change_row(ROLES, 0, role.oid, Some(&row)).await?,
            false => self.insert_row(ROLES, &row).await?,
        };
        if !done {
            return Err(exists(&role.name));
        }
        self.state.push(Change::PutRole(Arc::new(role)));
        Ok(())
    }
}

fn exists(name: &str) -> SqlError {
    SqlError::new(
        SqlState::DUPLICATE_OBJECT,
        format!("role \"{name}\" already exists"),
    )
}

/// The name of a role to be.
fn new_name(name: &RoleName, cx: &mut DdlContext<'_>) -> Result<String> {
    let name = match name {
        RoleName::Name(name) => name,
        RoleName::Public => return Err(reserved("public")),
        RoleName::Current => {
            return Err(SqlError::new(
                SqlState::RESERVED_NAME,
                "CURRENT_USER cannot be used as a role name here",
            ));
        }
        RoleName::Session => {
            return Err(SqlError::new(
                SqlState::RESERVED_NAME,
                "SESSION_USER cannot be used as a role name here",
            ));
        }
    };
    let name = cx.name(name);
    if name.starts_with("pg_") {
        return Err(reserved(&name).detail("Role names starting with \"pg_\" are reserved."));
    }
    Ok(name)
}

/// Who asks, and what it may.
struct Asker {
    superuser: bool,
    create_role: bool,
    oid: Oid,
}

fn asker(cx: &mut DdlContext<'_>) -> Result<Asker> {
    let oid = cx.session.current_role();
    let roles = cx.roles()?;
    let role = roles.get(oid);
    let superuser = role.is_some_and(|role| role.superuser);
    Ok(Asker {
        superuser,
        create_role: superuser || role.is_some_and(|role| role.create_role),
        oid,
    })
}

/// Sets what the options name.
fn apply(role: &mut Role, options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<()> {
    for (place, value) in [
        (&mut role.superuser, options.superuser),
        (&mut role.inherit, options.inherit),
        (&mut role.create_role, options.create_role),
        (&mut role.create_db, options.create_db),
        (&mut role.login, options.login),
        (&mut role.replication, options.replication),
        (&mut role.bypass_rls, options.bypass_rls),
    ] {
        *place = value.unwrap_or(*place);
    }
    if let Some(limit) = options.connection_limit {
        role.connection_limit = limit;
    }
    if let Some(until) = &options.valid_until {
        role.valid_until = Some(datetime::parse_timestamptz(until, Some(cx.session))?);
    }
    if let Some(password) = &options.password {
        role.password = password
            .as_ref()
            .map(|password| verifier(password, cx))
            .transpose()?
            .flatten();
    }
    Ok(())
}

/// What is stored of a password.
fn verifier(password: &str, cx: &mut DdlContext<'_>) -> Result<Option<String>> {
    let given = Verifier::parse(password);
    let empty = given.as_ref().map(|given| given.is_of(""));
    if empty == Some(false) {
        return Ok(Some(password.to_owned()));
    }
    let md5 = password.len() == 35
        && password
            .strip_prefix("md5")
            .is_some_and(|hash| hash.bytes().all(|b| b.is_ascii_hexdigit()));
    if md5 {
        return Err(SqlError::unsupported("an MD5 password"));
    }
    if password.is_empty() || empty == Some(true) {
        cx.notice(
            SqlState::SUCCESSFUL_COMPLETION,
            "empty string is not a valid password, clearing password",
        );
        return Ok(None);
    }
    let mut salt = [0; SALT_BYTES];
    for piece in salt.chunks_mut(8) {
        piece.copy_from_slice(&cx.session.random_u64().to_le_bytes()[..piece.len()]);
    }
    Ok(Some(Verifier::of(password, salt).to_string()))
}

async fn create(name: &RoleName, options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<()> {
    let asker = asker(cx)?;
    if !asker.superuser {
        let wants = |option: Option<bool>| option == Some(true);
        if wants(options.superuser) {
            return Err(denied("must be superuser to create superusers"));
        }
        if wants(options.replication) {
            return Err(denied("must be superuser to create replication users"));
        }
        if wants(options.bypass_rls) {
            return Err(denied("must be superuser to create bypassrls users"));
        }
        if !asker.create_role {
            return Err(denied("permission denied to create role"));
        }
    }
    let name = new_name(name, cx)?;
    if cx.roles()?.by_name(&name).is_some() {
        return Err(exists(&name));
    }
    let mut role = Role::new(cx.new_oid()?, name);
    let oid = role.oid;
    apply(&mut role, options, cx)?;
    cx.put_role(role).await?;
    for of in &options.in_role {
        let of = cx.find_role(of)?.oid;
        grant(of, oid, false, asker.oid, cx).await?;
    }
    for (members, admin) in [(&options.admin, true), (&options.role, false)] {
        for member in members {
            let member = cx.find_role(member)?.oid;
            grant(oid, member, admin, asker.oid, cx).await?;
        }
    }
    Ok(())
}

/// 42939 for PostgreSQL's own roles.
fn refuse_predefined(role: &Role) -> Result<()> {
    match role.name.starts_with("pg_") {
        true => Err(reserved(&role.name).detail("Cannot alter reserved roles.")),
        false => Ok(()),
    }
}

/// The role, if the asker may change it so.
fn may_alter(name: &RoleName, options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<Role> {
    let found = cx.find_role(name)?;
    let role = Role::clone(&found);
    refuse_predefined(&role)?;
    let asker = asker(cx)?;
    if !asker.superuser {
        if role.superuser || options.superuser.is_some() {
            return Err(denied(
                "must be superuser to alter superuser roles or change superuser attribute",
            ));
        }
        if role.replication || options.replication.is_some() {
            return Err(denied(
                "must be superuser to alter replication roles or change replication attribute",
            ));
        }
        if options.bypass_rls.is_some() {
            return Err(denied("must be superuser to change bypassrls attribute"));
        }
        let only_password = RoleOptions {
            password: None,
            ..options.clone()
        } == RoleOptions::default();
        let own = role.oid == asker.oid && only_password && options.password.is_some();
        if !(asker.create_role || own) {
            return Err(denied("permission denied"));
        }
    }
    if role.oid == logstead_sql_catalog::role::BOOTSTRAP && options.superuser == Some(false) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "permission denied to alter role",
        )
        .detail("The bootstrap user must have the SUPERUSER attribute."));
    }
    Ok(role)
}

async fn alter(name: &RoleName, options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<()> {
    let mut role = may_alter(name, options, cx)?;
    apply(&mut role, options, cx)?;
    cx.put_role(role).await
}

async fn rename(name: &RoleName, new: &RoleName, cx: &mut DdlContext<'_>) -> Result<()> {
    let found = cx.find_role(name)?;
    let mut role = Role::clone(&found);
    for (own, what) in [
        (cx.session.session_role(), "session"),
        (cx.session.current_role(), "current"),
    ] {
        if own == role.oid {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("{what} user cannot be renamed"),
            ));
        }
    }
    if role.name.starts_with("pg_") {
        return Err(reserved(&role.name).detail("Role names starting with \"pg_\" are reserved."));
    }
    let new = new_name(new, cx)?;
    if cx.roles()?.by_name(&new).is_some() {
        return Err(exists(&new));
    }
    let asker = asker(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to rename superusers"));
    }
    if !asker.create_role {
        return Err(denied("permission denied to rename role"));
    }
    role.name = new;
    cx.put_role(role).await
}

/// A role whose settings the asker may change.
pub(super) fn settable(name: &RoleName, cx: &mut DdlContext<'_>) -> Result<Role> {
    let found = cx.find_role(name)?;
    let role = Role::clone(&found);
    refuse_predefined(&role)?;
    let asker = asker(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !asker.create_role && role.oid != asker.oid {
        return Err(denied("permission denied"));
    }
    Ok(role)
}

async fn set(
    name: &RoleName,
    setting: &str,
    value: Option<&str>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let mut role = settable(name, cx)?;
    change_setting(&mut role.settings, setting, value, "ALTER ROLE")?;
    cx.put_role(role).await
}

/// Changes a setting that sessions begin with; no value takes it away.
pub(super) fn change_setting(
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

/// 42501 for what only other roles may do, as far as that can be said before anything is locked. It is asked again
/// afterwards.
fn ask(command: &RoleCommand, cx: &mut DdlContext<'_>) -> Result<()> {
    let asker = asker(cx)?;
    match command {
        _ if asker.superuser => Ok(()),
        RoleCommand::Create { .. } if !asker.create_role => {
            Err(denied("permission denied to create role"))
        }
        RoleCommand::Drop { .. } if !asker.create_role => {
            Err(denied("permission denied to drop role"))
        }
        RoleCommand::Alter { name, options } => may_alter(name, options, cx).map(|_| ()),
        RoleCommand::Rename { .. } if !asker.create_role => {
            Err(denied("permission denied to rename role"))
        }
        RoleCommand::Set { name, .. }
        | RoleCommand::SetFromCurrent { name, .. }
        | RoleCommand::ResetAll { name } => settable(name, cx).map(|_| ()),
        RoleCommand::Grant { roles, .. } | RoleCommand::Revoke { roles, .. } => {
            for role in roles {
                let role = cx.find_role(role)?;
                may_change_members(&role, cx)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

async fn drop(if_exists: bool, names: &[RoleName], cx: &mut DdlContext<'_>) -> Result<()> {
    let asker = asker(cx)?;
    if !asker.create_role {
        return Err(denied("permission denied to drop role"));
    }
    for name in names {
        let name = match name {
            RoleName::Name(name) => name,
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "cannot use special role specifier in DROP ROLE",
                ));
            }
        };
        let Some(role) = cx.roles()?.by_name(name).cloned() else {
            if !if_exists {
                return Err(no_role(name));
            }
            let message = format!("role \"{name}\" does not exist, skipping");
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            continue;
        };
        let in_use = |what: &str| SqlError::new(SqlState::OBJECT_IN_USE, what);
        if role.oid == cx.session.current_role() {
            return Err(in_use("current user cannot be dropped"));
        }
        if role.oid == cx.session.session_role() {
            return Err(in_use("session user cannot be dropped"));
        }
        if role.superuser && !asker.superuser {
            return Err(denied("must be superuser to drop superusers"));
        }
        if role.is_required() {
            return Err(SqlError::new(
                SqlState::DEPENDENT_OBJECTS_STILL_EXIST,
                format!("cannot drop role {name} because it is required by the database system"),
            ));
        }
        super::owners::refuse_dependents(&role, cx).await?;
        let members: Vec<_> = cx
            .roles()?
            .all()
            .into_iter()
            .filter(|member| member.member_of.iter().any(|m| m.role == role.oid))
            .cloned()
            .collect();
        for member in members {
            let mut member = Role::clone(&member);
            member.member_of.retain(|m| m.role != role.oid);
            cx.put_role(member).await?;
        }
        super::databases::forget_role(role.oid, cx).await?;
        cx.put_comment(PG_AUTHID, role.oid, 0, None).await?;
        cx.change_row(ROLES, 0, role.oid, None).await?;
        cx.state.push(Change::DropRole(role.oid));
    }
    Ok(())
}

fn grantor_of(named: Option<&RoleName>, cx: &mut DdlContext<'_>) -> Result<Oid> {
    let own = cx.session.current_role();
    let Some(named) = named else {
        return Ok(own);
    };
    let named = cx.find_role(named)?.oid;
    if named != own && !asker(cx)?.superuser {
        return Err(denied("must be superuser to set grantor"));
    }
    Ok(named)
}

/// 42501 unless the asker may change who is a member of `role`.
fn may_change_members(role: &Role, cx: &mut DdlContext<'_>) -> Result<()> {
    let asker = asker(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !asker.create_role && !cx.roles()?.is_admin_of(asker.oid, role.oid) {
        let name = &role.name;
        return Err(denied(format!("must have admin option on role \"{name}\"")));
    }
    Ok(())
}

async fn grant(
    role: Oid,
    member: Oid,
    admin: bool,
    grantor: Oid,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let roles = cx.roles()?;
    let gone = || SqlError::internal("a role vanished");
    let role = roles.get(role).ok_or_else(gone)?;
    let mut member = Role::clone(roles.get(member).ok_or_else(gone)?);
    may_change_members(role, cx)?;
    let invalid = |text: String| SqlError::new(INVALID_GRANT, text);
    if role.oid == DATABASE_OWNER {
        let name = &role.name;
        return Err(SqlError::internal(format!(
            "role \"{name}\" cannot have explicit members"
        )));
    }
    if member.oid == DATABASE_OWNER {
        let name = &member.name;
        return Err(SqlError::internal(format!(
            "role \"{name}\" cannot be a member of any role"
        )));
    }
    // Or the member would be one of itself.
    if roles.is_plain_member(role.oid, member.oid) {
        return Err(invalid(format!(
            "role \"{}\" is a member of role \"{}\"",
            role.name, member.name
        )));
    }
    match member.member_of.iter_mut().find(|m| m.role == role.oid) {
        Some(old) if old.admin || !admin => {
            let message = format!(
                "role \"{}\" is already a member of role \"{}\"",
                member.name, role.name
            );
            cx.notice(SqlState::SUCCESSFUL_COMPLETION, message);
            return Ok(());
        }
        Some(old) => {
            old.admin = true;
            old.grantor = grantor;
        }
        None => member.member_of.push(Membership {
            role: role.oid,
            grantor,
            admin,
        }),
    }
    cx.put_role(member).await
}

async fn revoke(role: &Role, member: &Role, admin: bool, cx: &mut DdlContext<'_>) -> Result<()> {
    may_change_members(role, cx)?;
    let roles = cx.roles()?;
    let mut changed = Role::clone(roles.get(member.oid).map_or(member, |role| role));
    let Some(at) = changed.member_of.iter().position(|m| m.role == role.oid) else {
        cx.notices.push(super::Notice {
            severity: "WARNING",
            code: SqlState::WARNING,
            message: format!(
                "role \"{}\" is not a member of role \"{}\"",
                member.name, role.name
            ),
            detail: None,
            hint: None,
        });
        return Ok(());
    };
    match (admin, changed.member_of.get_mut(at)) {
        (true, Some(membership)) => membership.admin = false,
        _ => {
            changed.member_of.remove(at);
        }
    }
    cx.put_role(changed).await
}
