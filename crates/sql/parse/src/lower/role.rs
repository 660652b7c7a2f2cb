//! Statements about roles and memberships.

use super::object::unexpected_object;
use super::{Lower, Lowered};
use crate::ast::{
    AlterRoleSetStmt, AlterRoleStmt, CreateRoleStmt, DefArg, DefElem, DropRoleStmt, GrantRoleStmt,
    RoleSpec, RoleSpecKind, RoleStmtType, Stmt,
};
use crate::{
    DatabaseCommand, RightsCommand, RoleCommand, RoleName, RoleOptions, SettingChange,
    StatementKind,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// 0LP01.
const INVALID_GRANT_OPERATION: SqlState = SqlState::new(b"0LP01");

/// A role as commands name it.
pub(super) fn role_name(role: &RoleSpec) -> RoleName {
    match &role.kind {
        RoleSpecKind::Named(name) => RoleName::Name(name.to_string()),
        RoleSpecKind::CurrentRole | RoleSpecKind::CurrentUser => RoleName::Current,
        RoleSpecKind::SessionUser => RoleName::Session,
        RoleSpecKind::Public => RoleName::Public,
    }
}

/// Roles as commands name them.
pub(super) fn role_names(roles: &[RoleSpec]) -> Vec<RoleName> {
    roles.iter().map(role_name).collect()
}

fn of_role(command: RoleCommand) -> Lowered {
    Lowered::command(StatementKind::Role(Box::new(command)))
}

impl Lower<'_> {
    /// Lowers a statement about roles, rights, databases and extensions.
    pub(super) fn of_role_or_database(&self, stmt: &Stmt) -> Result<Lowered> {
        match stmt {
            Stmt::CreateRole(create) => self.create_role(create),
            Stmt::AlterRole(alter) => self.alter_role(alter),
            Stmt::AlterRoleSet(alter) => self.alter_role_set(alter),
            Stmt::DropRole(drop) => Ok(drop_role(drop)),
            Stmt::GrantRole(grant) => self.grant_role(grant),
            Stmt::DropOwned(drop) => Ok(of_rights(RightsCommand::DropOwned {
                roles: role_names(&drop.roles),
                cascade: drop.behavior == crate::ast::DropBehavior::Cascade,
            })),
            Stmt::ReassignOwned(reassign) => Ok(of_rights(RightsCommand::Reassign {
                roles: role_names(&reassign.roles),
                to: role_name(&reassign.newrole),
            })),
            Stmt::Grant(grant) => {
                let grant = self.grant(grant)?;
                Ok(of_rights(RightsCommand::Grant(grant)))
            }
            Stmt::AlterDefaultPrivileges(alter) => {
                self.alter_default_privileges(alter).map(of_rights)
            }
            _ => self.of_database(stmt),
        }
    }

    /// 42601 for an option that is said twice (`errorConflictingDefElem`).
    pub(super) fn conflicting(&self, option: &DefElem) -> SqlError {
        SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
            .at(self.error_position(option.location))
    }

    /// Sets what an option says, if no other one did.
    pub(super) fn once<T>(&self, place: &mut Option<T>, value: T, option: &DefElem) -> Result<()> {
        match place.replace(value) {
            None => Ok(()),
            Some(_) => Err(self.conflicting(option)),
        }
    }

    fn role_options(&self, options: &[DefElem]) -> Result<RoleOptions> {
        let mut all = RoleOptions::default();
        let (mut in_role, mut role, mut admin) = (None, None, None);
        for option in options {
            let flag = match &*option.name {
                "superuser" => Some(&mut all.superuser),
                "inherit" => Some(&mut all.inherit),
                "createrole" => Some(&mut all.create_role),
                "createdb" => Some(&mut all.create_db),
                "canlogin" => Some(&mut all.login),
                "isreplication" => Some(&mut all.replication),
                "bypassrls" => Some(&mut all.bypass_rls),
                _ => None,
            };
            match (&*option.name, flag, &option.arg) {
                (_, Some(flag), Some(DefArg::Boolean(value))) => {
                    self.once(flag, *value, option)?;
                }
                ("connectionlimit", _, Some(DefArg::Integer(limit))) => {
                    if *limit < -1 {
                        return Err(SqlError::new(
                            SqlState::INVALID_PARAMETER_VALUE,
                            format!("invalid connection limit: {limit}"),
                        ));
                    }
                    self.once(&mut all.connection_limit, *limit, option)?;
                }
                ("password", _, None) => self.once(&mut all.password, None, option)?,
                ("password", _, Some(DefArg::String(password))) => {
                    let password = Some(password.to_string());
                    self.once(&mut all.password, password, option)?;
                }
                ("validUntil", _, Some(DefArg::String(until))) => {
                    self.once(&mut all.valid_until, until.to_string(), option)?;
                }
                // PostgreSQL says so in a notice.
                ("sysid", ..) => {}
                ("addroleto", _, Some(DefArg::Roles(roles))) => {
                    self.once(&mut in_role, role_names(roles), option)?;
                }
                ("rolemembers", _, Some(DefArg::Roles(roles))) => {
                    self.once(&mut role, role_names(roles), option)?;
                }
                ("adminmembers", _, Some(DefArg::Roles(roles))) => {
                    self.once(&mut admin, role_names(roles), option)?;
                }
                _ => return Err(unexpected_object()),
            }
        }
        all.in_role = in_role.unwrap_or_default();
        all.role = role.unwrap_or_default();
        all.admin = admin.unwrap_or_default();
        Ok(all)
    }

    fn create_role(&self, stmt: &CreateRoleStmt) -> Result<Lowered> {
        let mut options = self.role_options(&stmt.options)?;
        if stmt.stmt_type == RoleStmtType::User {
            options.login.get_or_insert(true);
        }
        Ok(of_role(RoleCommand::Create {
            name: RoleName::Name(stmt.role.to_string()),
            options,
        }))
    }

    fn alter_role(&self, stmt: &AlterRoleStmt) -> Result<Lowered> {
        let name = role_name(&stmt.role);
        let members = stmt.options.iter().find(|o| &*o.name == "rolemembers");
        let Some(members) = members else {
            let options = self.role_options(&stmt.options)?;
            return Ok(of_role(RoleCommand::Alter { name, options }));
        };
        // ALTER ROLE has USER as ALTER GROUP ADD has it.
        let Some(DefArg::Roles(members)) = &members.arg else {
            return Err(unexpected_object());
        };
        if stmt.options.len() > 1 {
            return Err(SqlError::unsupported(
                "USER beside other options of ALTER ROLE",
            ));
        }
        let (roles, members) = (vec![name], role_names(members));
        let (admin, grantor, tag) = (false, None, "ALTER ROLE");
        Ok(of_role(match stmt.group_change.unwrap_or(true) {
            true => RoleCommand::Grant {
                roles,
                members,
                admin,
                grantor,
                tag,
            },
            false => RoleCommand::Revoke {
                roles,
                members,
                admin,
                grantor,
                tag,
            },
        }))
    }

    fn alter_role_set(&self, stmt: &AlterRoleSetStmt) -> Result<Lowered> {
        let role = stmt.role.as_ref().map(role_name);
        let change = self.setting_change(&stmt.setstmt)?;
        if let Some(name) = &stmt.database {
            let command = DatabaseCommand::Setting {
                name: name.to_string(),
                role,
                change,
                of_role: true,
            };
            return Ok(Lowered::command(StatementKind::Database(Box::new(command))));
        }
        let Some(name) = role else {
            return Err(SqlError::unsupported("ALTER ROLE ALL"));
        };
        Ok(of_role(match change {
            SettingChange::Set(setting, value) => RoleCommand::Set {
                name,
                setting,
                value,
            },
            SettingChange::SetFromCurrent(setting) => RoleCommand::SetFromCurrent { name, setting },
            SettingChange::ResetAll => RoleCommand::ResetAll { name },
        }))
    }

    /// GRANT and REVOKE of roles.
    fn grant_role(&self, stmt: &GrantRoleStmt) -> Result<Lowered> {
        let mut roles = Vec::new();
        for granted in &stmt.granted_roles {
            let name = granted.priv_name.as_deref();
            let Some(name) = name.filter(|_| granted.cols.is_empty()) else {
                return Err(SqlError::new(
                    INVALID_GRANT_OPERATION,
                    "column names cannot be included in GRANT/REVOKE ROLE",
                ));
            };
            roles.push(match name {
                "public" => RoleName::Public,
                name => RoleName::Name(name.to_owned()),
            });
        }
        let members = role_names(&stmt.grantee_roles);
        let admin = stmt.admin_opt;
        let grantor = stmt.grantor.as_ref().map(role_name);
        Ok(of_role(match stmt.is_grant {
            true => RoleCommand::Grant {
                roles,
                members,
                admin,
                grantor,
                tag: "GRANT ROLE",
            },
            false => RoleCommand::Revoke {
                roles,
                members,
                admin,
                grantor,
                tag: "REVOKE ROLE",
            },
        }))
    }
}

fn of_rights(command: RightsCommand) -> Lowered {
    Lowered::command(StatementKind::Rights(Box::new(command)))
}

fn drop_role(stmt: &DropRoleStmt) -> Lowered {
    of_role(RoleCommand::Drop {
        if_exists: stmt.missing_ok,
        names: role_names(&stmt.roles),
    })
}

#[cfg(test)]
mod tests;
