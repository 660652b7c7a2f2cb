//! CREATE, ALTER and DROP ROLE, and memberships.
//!
//! All of it happens under one lock, that of the roles' table: whoever changes a role sees all roles as they are, and
//! no two transactions make a circle of memberships between them. Who asks is checked by the roles as the transaction
//! sees them.

use super::object_address::plain_name;
use super::{DdlContext, def_elem};
use crate::missing_object::no_role;
use logstead_engine::TableLock;
use logstead_sql_catalog::change::CatalogChange;
use logstead_sql_catalog::classes::PG_AUTHID;
use logstead_sql_catalog::role::scram::{SALT_BYTES, Verifier};
use logstead_sql_catalog::role::{DATABASE_OWNER, Membership, Role, Roles};
use logstead_sql_catalog::stored;
use logstead_sql_catalog::stored::ROLES;
use logstead_sql_catalog::stored::SHARED;
use logstead_sql_parse::ast::{
    AlterRoleStmt, CreateRoleStmt, DefArg, DefElem, DropRoleStmt, GrantRoleStmt, RenameStmt,
    RoleSpec, RoleSpecKind, RoleStmtType,
};
use logstead_sql_types::RoleId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::datetime;
use logstead_types::SqlState;
use std::sync::Arc;

/// 0LP01.
const INVALID_GRANT: SqlState = SqlState::new(b"0LP01");

pub(crate) fn denied(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INSUFFICIENT_PRIVILEGE, message)
}

fn reserved(name: &str) -> SqlError {
    SqlError::new(
        SqlState::RESERVED_NAME,
        format!("role name \"{name}\" is reserved"),
    )
}

impl DdlContext<'_> {
    fn roles(&mut self) -> Result<Arc<Roles>> {
        Ok(Arc::clone(&self.catalog()?.roles))
    }

    /// The role of this name.
    pub(super) fn role_named(&mut self, name: &str) -> Result<Arc<Role>> {
        let roles = self.roles()?;
        roles.by_name(name).cloned().ok_or_else(|| no_role(name))
    }

    /// The role that a statement means (`get_rolespec_oid`).
    pub(super) fn find_role(&mut self, role: &RoleSpec) -> Result<Arc<Role>> {
        let found = match &role.kind {
            RoleSpecKind::Named(name) => return self.role_named(name),
            RoleSpecKind::Public => return Err(no_role("public")),
            RoleSpecKind::CurrentRole | RoleSpecKind::CurrentUser => self.session.current_role(),
            RoleSpecKind::SessionUser => self.session.session_role(),
        };
        let gone = || no_role(&format!("with OID {found}"));
        self.roles()?.get(found).cloned().ok_or_else(gone)
    }

    /// What others are changing of roles is waited for, and seen.
    pub(crate) async fn lock_roles(&mut self) -> Result<()> {
        self.lock_storage(ROLES, TableLock::AccessExclusive).await?;
        self.txn.begin_statement();
        Ok(())
    }

    /// Stores a role, new or changed.
    pub(crate) async fn put_role(&mut self, role: Role) -> Result<()> {
        let row = stored::roles::encode(&role);
        let done = match self.roles()?.get(role.oid).is_some() {
            true => {
                self.change_row(ROLES, SHARED, role.oid.get(), Some(&row))
                    .await?
            }
            false => self.insert_row(ROLES, &row).await?,
        };
        if !done {
            return Err(exists(&role.name));
        }
        self.state.push(CatalogChange::PutRole(Arc::new(role)));
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
fn new_name(name: &str) -> Result<String> {
    let name = name.to_string();
    if name.starts_with("pg_") {
        return Err(reserved(&name).detail("Role names starting with \"pg_\" are reserved."));
    }
    Ok(name)
}

/// Who asks, and what it may.
pub(crate) struct CallerRole {
    pub(crate) superuser: bool,
    pub(crate) create_role: bool,
    pub(crate) oid: RoleId,
}

pub(crate) fn caller_role(cx: &mut DdlContext<'_>) -> Result<CallerRole> {
    let oid = cx.session.current_role();
    let roles = cx.roles()?;
    let role = roles.get(oid);
    let superuser = role.is_some_and(|role| role.superuser);
    Ok(CallerRole {
        superuser,
        create_role: superuser || role.is_some_and(|role| role.create_role),
        oid,
    })
}

/// What CREATE and ALTER ROLE say. It has a password, and so nothing prints it.
#[derive(Clone, Default, PartialEq)]
struct RoleOptions {
    superuser: Option<bool>,
    inherit: Option<bool>,
    create_role: Option<bool>,
    create_db: Option<bool>,
    login: Option<bool>,
    replication: Option<bool>,
    bypass_rls: Option<bool>,
    connection_limit: Option<i32>,
    /// `Some(None)` is PASSWORD NULL.
    password: Option<Option<String>>,
    valid_until: Option<String>,
    in_role: Option<Vec<RoleSpec>>,
    role: Option<Vec<RoleSpec>>,
    admin: Option<Vec<RoleSpec>>,
}

impl RoleOptions {
    /// Reads the options of a statement, whose text is `text`.
    fn of(options: &[DefElem], text: &str) -> Result<RoleOptions> {
        let mut all = RoleOptions::default();
        for option in options {
            let flag = match &*option.name {
                "superuser" => &mut all.superuser,
                "inherit" => &mut all.inherit,
                "createrole" => &mut all.create_role,
                "createdb" => &mut all.create_db,
                "canlogin" => &mut all.login,
                "isreplication" => &mut all.replication,
                "bypassrls" => &mut all.bypass_rls,
                _ => {
                    all.set_value(option, text)?;
                    continue;
                }
            };
            def_elem::set_once(flag, def_elem::get_boolean(option)?, option, text)?;
        }
        Ok(all)
    }

    fn set_value(&mut self, option: &DefElem, text: &str) -> Result<()> {
        match (&*option.name, &option.arg) {
            ("connectionlimit", _) => {
                let limit = def_elem::get_int32(option)?;
                if limit < -1 {
                    return Err(SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        format!("invalid connection limit: {limit}"),
                    ));
                }
                def_elem::set_once(&mut self.connection_limit, limit, option, text)
            }
            ("password", None) => def_elem::set_once(&mut self.password, None, option, text),
            ("password", Some(_)) => {
                let password = Some(def_elem::get_string(option)?);
                def_elem::set_once(&mut self.password, password, option, text)
            }
            ("validUntil", _) => {
                let until = def_elem::get_string(option)?;
                def_elem::set_once(&mut self.valid_until, until, option, text)
            }
            // PostgreSQL says so in a notice.
            ("sysid", _) => Ok(()),
            (name, Some(DefArg::Roles(roles))) => {
                let place = match name {
                    "addroleto" => &mut self.in_role,
                    "rolemembers" => &mut self.role,
                    "adminmembers" => &mut self.admin,
                    _ => return Err(def_elem::unexpected(option)),
                };
                def_elem::set_once(place, roles.clone(), option, text)
            }
            _ => Err(def_elem::unexpected(option)),
        }
    }
}

/// Asks a question before anything is locked: who may not do it keeps nobody waiting. Superusers may do everything.
pub(crate) fn check_before_lock<T>(
    cx: &mut DdlContext<'_>,
    question: impl FnOnce(&mut DdlContext<'_>) -> Result<T>,
) -> Result<()> {
    match caller_role(cx)?.superuser {
        true => Ok(()),
        false => question(cx).map(|_| ()),
    }
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
    let random = cx.session.random()?;
    let mut salt = [0; SALT_BYTES];
    for piece in salt.chunks_mut(8) {
        piece.copy_from_slice(&random.random_u64().to_le_bytes()[..piece.len()]);
    }
    Ok(Some(Verifier::of(password, salt).to_string()))
}

/// Runs CREATE ROLE.
pub(super) async fn create(stmt: &CreateRoleStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let mut options = RoleOptions::of(&stmt.options, cx.text)?;
    if stmt.stmt_type == RoleStmtType::User {
        options.login.get_or_insert(true);
    }
    check_before_lock(cx, |cx| may_create(&options, cx))?;
    cx.lock_roles().await?;
    let asker = may_create(&options, cx)?;
    let name = new_name(&stmt.role)?;
    if cx.roles()?.by_name(&name).is_some() {
        return Err(exists(&name));
    }
    let mut role = Role::new(RoleId::new(cx.new_oid()?), name);
    let oid = role.oid;
    apply(&mut role, &options, cx)?;
    cx.put_role(role).await?;
    for of in options.in_role.iter().flatten() {
        let of = cx.find_role(of)?.oid;
        grant(of, oid, false, asker.oid, cx).await?;
    }
    for (members, admin) in [(&options.admin, true), (&options.role, false)] {
        for member in members.iter().flatten() {
            let member = cx.find_role(member)?.oid;
            grant(oid, member, admin, asker.oid, cx).await?;
        }
    }
    Ok(())
}

/// 42501 unless who asks may make a role with the options.
fn may_create(options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<CallerRole> {
    let asker = caller_role(cx)?;
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
    Ok(asker)
}

/// 42939 for PostgreSQL's own roles.
pub(crate) fn refuse_predefined(role: &Role) -> Result<()> {
    match role.name.starts_with("pg_") {
        true => Err(reserved(&role.name).detail("Cannot alter reserved roles.")),
        false => Ok(()),
    }
}

/// The role, if the asker may change it so.
fn may_alter(name: &RoleSpec, options: &RoleOptions, cx: &mut DdlContext<'_>) -> Result<Role> {
    let found = cx.find_role(name)?;
    let role = Role::clone(&found);
    refuse_predefined(&role)?;
    let asker = caller_role(cx)?;
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

/// Runs ALTER ROLE, and ALTER GROUP ADD and DROP USER.
pub(super) async fn alter(stmt: &AlterRoleStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let members = stmt.options.iter().find(|o| &*o.name == "rolemembers");
    let Some(members) = members else {
        let options = RoleOptions::of(&stmt.options, cx.text)?;
        check_before_lock(cx, |cx| may_alter(&stmt.role, &options, cx))?;
        cx.lock_roles().await?;
        let mut role = may_alter(&stmt.role, &options, cx)?;
        apply(&mut role, &options, cx)?;
        return cx.put_role(role).await;
    };
    // ALTER ROLE has USER as ALTER GROUP ADD has it.
    let Some(DefArg::Roles(members)) = &members.arg else {
        return Err(def_elem::unexpected(members));
    };
    if stmt.options.len() > 1 {
        return Err(SqlError::unsupported(
            "USER beside other options of ALTER ROLE",
        ));
    }
    check_before_lock(cx, |cx| {
        let role = cx.find_role(&stmt.role)?;
        may_change_members(&role, cx)
    })?;
    cx.lock_roles().await?;
    let adds = stmt.group_change.unwrap_or(true);
    change_members(&stmt.role, members, adds, false, None, cx).await
}

/// Runs ALTER ROLE ... RENAME TO.
pub(super) async fn rename(stmt: &RenameStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    check_before_lock(cx, |cx| match caller_role(cx)?.create_role {
        true => Ok(()),
        false => Err(denied("permission denied to rename role")),
    })?;
    cx.lock_roles().await?;
    let name = plain_name(&stmt.object)?;
    let new = &stmt.newname;
    let found = cx.role_named(name)?;
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
    let new = new_name(new)?;
    if cx.roles()?.by_name(&new).is_some() {
        return Err(exists(&new));
    }
    let asker = caller_role(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to rename superusers"));
    }
    if !asker.create_role {
        return Err(denied("permission denied to rename role"));
    }
    role.name = new;
    cx.put_role(role).await
}

/// 42501 unless who asks may drop roles.
fn may_drop(cx: &mut DdlContext<'_>) -> Result<CallerRole> {
    let asker = caller_role(cx)?;
    match asker.create_role {
        true => Ok(asker),
        false => Err(denied("permission denied to drop role")),
    }
}

/// Runs DROP ROLE.
pub(super) async fn drop(stmt: &DropRoleStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    check_before_lock(cx, may_drop)?;
    cx.lock_roles().await?;
    let asker = may_drop(cx)?;
    for role in &stmt.roles {
        let RoleSpecKind::Named(name) = &role.kind else {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "cannot use special role specifier in DROP ROLE",
            ));
        };
        let Some(role) = cx.roles()?.by_name(name).cloned() else {
            if !stmt.missing_ok {
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
        cx.put_comment(PG_AUTHID, role.oid.get(), 0, None).await?;
        cx.change_row(ROLES, SHARED, role.oid.get(), None).await?;
        cx.state.push(CatalogChange::DropRole(role.oid));
    }
    Ok(())
}

fn grantor_of(named: Option<&RoleSpec>, cx: &mut DdlContext<'_>) -> Result<RoleId> {
    let own = cx.session.current_role();
    let Some(named) = named else {
        return Ok(own);
    };
    let named = cx.find_role(named)?.oid;
    if named != own && !caller_role(cx)?.superuser {
        return Err(denied("must be superuser to set grantor"));
    }
    Ok(named)
}

/// 42501 unless the asker may change who is a member of `role`.
fn may_change_members(role: &Role, cx: &mut DdlContext<'_>) -> Result<()> {
    let asker = caller_role(cx)?;
    if role.superuser && !asker.superuser {
        return Err(denied("must be superuser to alter superusers"));
    }
    if !asker.create_role && !cx.roles()?.is_admin_of(asker.oid, role.oid) {
        let name = &role.name;
        return Err(denied(format!("must have admin option on role \"{name}\"")));
    }
    Ok(())
}

/// Runs GRANT and REVOKE of roles.
pub(super) async fn grant_roles(stmt: &GrantRoleStmt, cx: &mut DdlContext<'_>) -> Result<()> {
    let mut roles = Vec::with_capacity(stmt.granted_roles.len());
    for granted in &stmt.granted_roles {
        let name = granted.priv_name.as_ref();
        let Some(name) = name.filter(|_| granted.cols.is_empty()) else {
            return Err(SqlError::new(
                INVALID_GRANT,
                "column names cannot be included in GRANT/REVOKE ROLE",
            ));
        };
        roles.push(RoleSpec {
            kind: RoleSpecKind::Named(name.clone()),
            location: granted.location,
        });
    }
    check_before_lock(cx, |cx| {
        roles.iter().try_for_each(|role| {
            let role = cx.find_role(role)?;
            may_change_members(&role, cx)
        })
    })?;
    cx.lock_roles().await?;
    let (members, grantor) = (&stmt.grantee_roles, stmt.grantor.as_ref());
    for role in &roles {
        change_members(role, members, stmt.is_grant, stmt.admin_opt, grantor, cx).await?;
    }
    Ok(())
}

/// Makes roles members of another one, or members no more. The table of roles is locked.
async fn change_members(
    role: &RoleSpec,
    members: &[RoleSpec],
    adds: bool,
    admin: bool,
    grantor: Option<&RoleSpec>,
    cx: &mut DdlContext<'_>,
) -> Result<()> {
    let grantor = grantor_of(grantor, cx)?;
    let role = cx.find_role(role)?;
    for member in members {
        let member = cx.find_role(member)?;
        match adds {
            true => grant(role.oid, member.oid, admin, grantor, cx).await?,
            false => revoke(&role, &member, admin, cx).await?,
        }
    }
    Ok(())
}

async fn grant(
    role: RoleId,
    member: RoleId,
    admin: bool,
    grantor: RoleId,
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
