//! Roles and databases.

use super::Parser;
use super::create_table::{number, option};
use super::names::is_non_reserved_word;
use crate::ast::{
    AlterDatabaseRefreshCollStmt, AlterDatabaseSetStmt, AlterDatabaseStmt, AlterRoleSetStmt,
    AlterRoleStmt, CreateRoleStmt, CreatedbStmt, DefArg, DefElem, DropRoleStmt, DropdbStmt, Name,
    ReassignOwnedStmt, RoleSpec, RoleSpecKind, RoleStmtType, Stmt,
};
use crate::lexer::{Keyword as K, TokenKind as T};
use logstead_sql_types::error::Result;
use logstead_types::SqlState;

impl Parser<'_> {
    /// `RoleSpec`
    pub(super) fn role_spec(&mut self) -> Result<RoleSpec> {
        let location = self.here();
        let kind = match self.kind() {
            T::Keyword(K::CurrentRole) => RoleSpecKind::CurrentRole,
            T::Keyword(K::CurrentUser) => RoleSpecKind::CurrentUser,
            T::Keyword(K::SessionUser) => RoleSpecKind::SessionUser,
            kind if is_non_reserved_word(kind) => {
                let name = self.non_reserved_word()?;
                let kind = match &*name {
                    "public" => RoleSpecKind::Public,
                    "none" => {
                        let message = "role name \"none\" is reserved";
                        return Err(self.error(SqlState::RESERVED_NAME, message, location));
                    }
                    _ => RoleSpecKind::Named(name),
                };
                return Ok(RoleSpec { kind, location });
            }
            _ => return self.unexpected(),
        };
        self.pass();
        Ok(RoleSpec { kind, location })
    }

    /// `RoleId`
    pub(super) fn role_id(&mut self) -> Result<Name> {
        let role = self.role_spec()?;
        let message = match role.kind {
            RoleSpecKind::Named(name) => return Ok(name),
            RoleSpecKind::Public => "role name \"public\" is reserved",
            RoleSpecKind::SessionUser => "SESSION_USER cannot be used as a role name here",
            RoleSpecKind::CurrentUser => "CURRENT_USER cannot be used as a role name here",
            RoleSpecKind::CurrentRole => "CURRENT_ROLE cannot be used as a role name here",
        };
        Err(self.error(SqlState::RESERVED_NAME, message, role.location))
    }

    /// `role_list`
    pub(super) fn role_list(&mut self) -> Result<Vec<RoleSpec>> {
        self.list(Self::role_spec)
    }

    /// `CreateRoleStmt` and its like, behind the word.
    pub(super) fn create_role_stmt(&mut self, stmt_type: RoleStmtType) -> Result<Stmt> {
        let role = self.role_id()?;
        self.opt_with();
        let options = self.opt_role_list(true)?;
        Ok(Stmt::CreateRole(Box::new(CreateRoleStmt {
            stmt_type,
            role,
            options,
        })))
    }

    /// `OptRoleList`, `AlterOptRoleList`
    fn opt_role_list(&mut self, creates: bool) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        loop {
            let location = self.here();
            let T::Keyword(word) = self.kind() else {
                if !matches!(self.kind(), T::Ident | T::QuotedIdent) {
                    return Ok(options);
                }
                let token = self.pass();
                let name = self.name_of(token);
                let Some((name, value)) = named_option(&name) else {
                    let message = format!("unrecognized role option \"{name}\"");
                    return Err(self.syntax_error(message, location));
                };
                options.push(option(name, Some(DefArg::Boolean(value)), location));
                continue;
            };
            let (name, arg) = match word {
                K::Password => {
                    self.pass();
                    match self.take(K::Null) {
                        true => ("password", None),
                        false => ("password", Some(DefArg::String(self.sconst()?))),
                    }
                }
                K::Encrypted => {
                    self.pass();
                    self.expect(K::Password)?;
                    ("password", Some(DefArg::String(self.sconst()?)))
                }
                K::Unencrypted => {
                    self.pass();
                    self.expect(K::Password)?;
                    self.sconst()?;
                    let error =
                        self.unsupported("UNENCRYPTED PASSWORD is no longer supported", location);
                    return Err(error.hint(
                        "Remove UNENCRYPTED to store the password in encrypted form instead.",
                    ));
                }
                K::Inherit => {
                    self.pass();
                    ("inherit", Some(DefArg::Boolean(true)))
                }
                K::Connection => {
                    self.pass();
                    self.expect(K::Limit)?;
                    (
                        "connectionlimit",
                        Some(DefArg::Integer(self.signed_iconst()?)),
                    )
                }
                K::Valid => {
                    self.pass();
                    self.expect(K::Until)?;
                    ("validUntil", Some(DefArg::String(self.sconst()?)))
                }
                K::User => {
                    self.pass();
                    ("rolemembers", Some(DefArg::Roles(self.role_list()?)))
                }
                K::Sysid if creates => {
                    self.pass();
                    ("sysid", Some(DefArg::Integer(self.iconst()?)))
                }
                K::Admin if creates => {
                    self.pass();
                    ("adminmembers", Some(DefArg::Roles(self.role_list()?)))
                }
                K::Role if creates => {
                    self.pass();
                    ("rolemembers", Some(DefArg::Roles(self.role_list()?)))
                }
                K::In if creates => {
                    self.pass();
                    if !self.take(K::Role) {
                        self.expect(K::Group)?;
                    }
                    ("addroleto", Some(DefArg::Roles(self.role_list()?)))
                }
                _ => return Ok(options),
            };
            options.push(option(name, arg, location));
        }
    }

    /// ALTER ROLE, ALTER USER, behind the word; but not of mappings.
    pub(super) fn alter_role(&mut self) -> Result<Stmt> {
        // ALL is reserved: it names no role.
        if self.take(K::All) {
            return self.alter_role_set(None);
        }
        let role = self.role_spec()?;
        if self.is(K::In) || self.at_set_reset() {
            return self.alter_role_set(Some(role));
        }
        if self.is(K::Rename) {
            return self.rename_role(role);
        }
        self.opt_with();
        let options = self.opt_role_list(false)?;
        Ok(Stmt::AlterRole(Box::new(AlterRoleStmt {
            role,
            options,
            group_change: None,
        })))
    }

    fn alter_role_set(&mut self, role: Option<RoleSpec>) -> Result<Stmt> {
        let database = match self.take(K::In) {
            true => {
                self.expect(K::Database)?;
                Some(self.col_id()?)
            }
            false => None,
        };
        if !self.at_set_reset() {
            return self.unexpected();
        }
        let setstmt = Box::new(self.set_reset_clause()?);
        Ok(Stmt::AlterRoleSet(Box::new(AlterRoleSetStmt {
            role,
            database,
            setstmt,
        })))
    }

    /// A role is named anew: the name must be one.
    pub(super) fn rename_role(&mut self, role: RoleSpec) -> Result<Stmt> {
        let location = role.location;
        let message = match role.kind {
            RoleSpecKind::Named(name) => return self.rename_role_to(name, location),
            RoleSpecKind::Public => "role name \"public\" is reserved",
            RoleSpecKind::SessionUser => "SESSION_USER cannot be used as a role name here",
            RoleSpecKind::CurrentUser => "CURRENT_USER cannot be used as a role name here",
            RoleSpecKind::CurrentRole => "CURRENT_ROLE cannot be used as a role name here",
        };
        Err(self.error(SqlState::RESERVED_NAME, message, location))
    }

    /// ALTER GROUP, behind the word.
    pub(super) fn alter_group(&mut self) -> Result<Stmt> {
        let role = self.role_spec()?;
        if self.is(K::Rename) {
            return self.rename_role(role);
        }
        let location = self.here();
        let adds = self.take(K::Add);
        if !adds {
            self.expect(K::Drop)?;
        }
        self.expect(K::User)?;
        let members = DefArg::Roles(self.role_list()?);
        let options = vec![option("rolemembers", Some(members), location)];
        Ok(Stmt::AlterRole(Box::new(AlterRoleStmt {
            role,
            options,
            group_change: Some(adds),
        })))
    }

    /// `DropRoleStmt`, behind the word.
    pub(super) fn drop_role_stmt(&mut self) -> Result<Stmt> {
        let missing_ok = self.opt_if_exists_before_name();
        let roles = self.role_list()?;
        Ok(Stmt::DropRole(Box::new(DropRoleStmt { roles, missing_ok })))
    }

    /// `ReassignOwnedStmt`
    pub(super) fn reassign_owned_stmt(&mut self) -> Result<Stmt> {
        self.expect_all(&[K::Reassign, K::Owned, K::By])?;
        let roles = self.role_list()?;
        self.expect(K::To)?;
        let newrole = self.role_spec()?;
        Ok(Stmt::ReassignOwned(Box::new(ReassignOwnedStmt {
            roles,
            newrole,
        })))
    }

    /// `CreatedbStmt`, behind DATABASE.
    pub(super) fn createdb_stmt(&mut self) -> Result<Stmt> {
        let dbname = self.col_id()?;
        self.opt_with();
        let options = self.createdb_opt_list()?;
        Ok(Stmt::Createdb(Box::new(CreatedbStmt { dbname, options })))
    }

    /// `createdb_opt_list`
    fn createdb_opt_list(&mut self) -> Result<Vec<DefElem>> {
        let mut options = Vec::new();
        loop {
            let location = self.here();
            let name: Name = match self.kind() {
                T::Ident | T::QuotedIdent => self.col_id()?,
                T::Keyword(
                    word @ (K::Encoding | K::Location | K::Owner | K::Tablespace | K::Template),
                ) => {
                    self.pass();
                    word.word().into()
                }
                T::Keyword(K::Connection) => {
                    self.pass();
                    self.expect(K::Limit)?;
                    "connection_limit".into()
                }
                _ => return Ok(options),
            };
            self.take_token(T::Equals);
            let arg = if self.take(K::Default) {
                None
            } else if self.at_number() {
                Some(number(self.numeric_only()?))
            } else {
                Some(DefArg::String(self.opt_boolean_or_string()?))
            };
            options.push(option(&name, arg, location));
        }
    }

    /// ALTER DATABASE, behind the word.
    pub(super) fn alter_database(&mut self) -> Result<Stmt> {
        let dbname = self.col_id()?;
        // OWNER without TO is an option.
        let is_option = self.is(K::Owner) && !self.is_at(1, K::To);
        if !is_option
            && let Some(stmt) = self.alter_named(crate::ast::ObjectType::Database, &dbname)?
        {
            return Ok(stmt);
        }
        if self.is(K::Set) && self.is_at(1, K::Tablespace) {
            let location = self.here();
            // A setting may have that name.
            if !matches!(
                self.kind_at(2),
                T::Equals | T::Dot | T::Keyword(K::To | K::From)
            ) {
                self.pass_all(2);
                let tablespace = DefArg::String(self.col_id()?);
                let options = vec![option("tablespace", Some(tablespace), location)];
                return Ok(Stmt::AlterDatabase(Box::new(AlterDatabaseStmt {
                    dbname,
                    options,
                })));
            }
        }
        if self.at_set_reset() {
            let setstmt = Box::new(self.set_reset_clause()?);
            return Ok(Stmt::AlterDatabaseSet(Box::new(AlterDatabaseSetStmt {
                dbname,
                setstmt,
            })));
        }
        if self.take(K::Refresh) {
            self.expect_all(&[K::Collation, K::Version])?;
            return Ok(Stmt::AlterDatabaseRefreshColl(Box::new(
                AlterDatabaseRefreshCollStmt { dbname },
            )));
        }
        self.take(K::With);
        let options = self.createdb_opt_list()?;
        Ok(Stmt::AlterDatabase(Box::new(AlterDatabaseStmt {
            dbname,
            options,
        })))
    }

    /// `DropdbStmt`, behind DATABASE.
    pub(super) fn dropdb_stmt(&mut self) -> Result<Stmt> {
        let missing_ok = self.opt_if_exists_before_name();
        let dbname = self.col_id()?;
        let mut options = Vec::new();
        if self.opt_with() || self.at(T::LParen) {
            options = self.parens(|parser| {
                parser.list(|parser| {
                    let location = parser.here();
                    parser.expect(K::Force)?;
                    Ok(option("force", None, location))
                })
            })?;
        }
        Ok(Stmt::Dropdb(Box::new(DropdbStmt {
            dbname,
            missing_ok,
            options,
        })))
    }
}

/// Options of roles that are no keywords: what they set.
fn named_option(name: &str) -> Option<(&'static str, bool)> {
    Some(match name {
        "superuser" => ("superuser", true),
        "nosuperuser" => ("superuser", false),
        "createrole" => ("createrole", true),
        "nocreaterole" => ("createrole", false),
        "replication" => ("isreplication", true),
        "noreplication" => ("isreplication", false),
        "createdb" => ("createdb", true),
        "nocreatedb" => ("createdb", false),
        "login" => ("canlogin", true),
        "nologin" => ("canlogin", false),
        "bypassrls" => ("bypassrls", true),
        "nobypassrls" => ("bypassrls", false),
        "noinherit" => ("inherit", false),
        _ => return None,
    })
}
