//! Roles, rights, databases.

#![allow(missing_docs, reason = "the fields of `parsenodes.h`")]

use super::{DefElem, DropBehavior, Name, ObjectRef, ObjectType, RoleSpec, VariableSetStmt};

/// By which word a role was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RoleStmtType {
    Role,
    User,
    Group,
}

/// CREATE ROLE (`CreateRoleStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoleStmt {
    pub stmt_type: RoleStmtType,
    pub role: Name,
    pub options: Vec<DefElem>,
}

/// ALTER ROLE, ALTER GROUP (`AlterRoleStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterRoleStmt {
    pub role: RoleSpec,
    pub options: Vec<DefElem>,
    /// ALTER GROUP ADD, DROP: which of them.
    pub group_change: Option<bool>,
}

/// ALTER ROLE SET (`AlterRoleSetStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterRoleSetStmt {
    /// None for ALL.
    pub role: Option<RoleSpec>,
    pub database: Option<Name>,
    pub setstmt: Box<VariableSetStmt>,
}

/// DROP ROLE (`DropRoleStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DropRoleStmt {
    pub roles: Vec<RoleSpec>,
    pub missing_ok: bool,
}

/// DROP OWNED (`DropOwnedStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DropOwnedStmt {
    pub roles: Vec<RoleSpec>,
    pub behavior: DropBehavior,
}

/// REASSIGN OWNED (`ReassignOwnedStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct ReassignOwnedStmt {
    pub roles: Vec<RoleSpec>,
    pub newrole: RoleSpec,
}

/// A privilege, or a role that is granted (`AccessPriv`).
#[derive(Clone, Debug, PartialEq)]
pub struct AccessPriv {
    /// None for ALL of these columns.
    pub priv_name: Option<Name>,
    pub cols: Vec<Name>,
    pub location: super::Location,
}

/// On what privileges are.
#[derive(Clone, Debug, PartialEq)]
pub enum GrantTarget {
    /// These objects.
    Objects(ObjectType, Vec<ObjectRef>),
    /// All of a kind in schemas.
    AllInSchema(ObjectType, Vec<Name>),
    /// What will be made (ALTER DEFAULT PRIVILEGES).
    Defaults(ObjectType),
}

/// GRANT, REVOKE (`GrantStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct GrantStmt {
    pub is_grant: bool,
    /// None for ALL.
    pub privileges: Vec<AccessPriv>,
    pub target: GrantTarget,
    pub grantees: Vec<RoleSpec>,
    /// WITH GRANT OPTION, GRANT OPTION FOR.
    pub grant_option: bool,
    pub grantor: Option<RoleSpec>,
    pub behavior: DropBehavior,
}

/// GRANT, REVOKE of roles (`GrantRoleStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct GrantRoleStmt {
    pub is_grant: bool,
    pub granted_roles: Vec<AccessPriv>,
    pub grantee_roles: Vec<RoleSpec>,
    /// WITH ADMIN OPTION, ADMIN OPTION FOR.
    pub admin_opt: bool,
    pub grantor: Option<RoleSpec>,
    pub behavior: DropBehavior,
}

/// ALTER DEFAULT PRIVILEGES (`AlterDefaultPrivilegesStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDefaultPrivilegesStmt {
    /// `schemas` and `roles`.
    pub options: Vec<DefElem>,
    pub action: Box<GrantStmt>,
}

/// CREATE DATABASE (`CreatedbStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct CreatedbStmt {
    pub dbname: Name,
    pub options: Vec<DefElem>,
}

/// ALTER DATABASE (`AlterDatabaseStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabaseStmt {
    pub dbname: Name,
    pub options: Vec<DefElem>,
}

/// ALTER DATABASE ... REFRESH COLLATION VERSION (`AlterDatabaseRefreshCollStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabaseRefreshCollStmt {
    pub dbname: Name,
}

/// ALTER DATABASE ... SET (`AlterDatabaseSetStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct AlterDatabaseSetStmt {
    pub dbname: Name,
    pub setstmt: Box<VariableSetStmt>,
}

/// DROP DATABASE (`DropdbStmt`).
#[derive(Clone, Debug, PartialEq)]
pub struct DropdbStmt {
    pub dbname: Name,
    pub missing_ok: bool,
    pub options: Vec<DefElem>,
}
