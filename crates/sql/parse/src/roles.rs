//! CREATE, ALTER and DROP of roles, users and groups, and GRANT and REVOKE of memberships.

/// A role where a statement names one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleName {
    /// By its name.
    Name(String),
    /// CURRENT_USER, CURRENT_ROLE.
    Current,
    /// SESSION_USER.
    Session,
    /// PUBLIC.
    Public,
}

/// What CREATE and ALTER ROLE say.
#[derive(Clone, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub struct RoleOptions {
    pub superuser: Option<bool>,
    pub inherit: Option<bool>,
    pub create_role: Option<bool>,
    pub create_db: Option<bool>,
    pub login: Option<bool>,
    pub replication: Option<bool>,
    pub bypass_rls: Option<bool>,
    pub connection_limit: Option<i32>,
    /// `Some(None)` is PASSWORD NULL.
    pub password: Option<Option<String>>,
    pub valid_until: Option<String>,
    pub in_role: Vec<RoleName>,
    pub role: Vec<RoleName>,
    pub admin: Vec<RoleName>,
}

impl std::fmt::Debug for RoleOptions {
    /// Without the password: it must never come into a log.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RoleOptions").finish_non_exhaustive()
    }
}

/// How a setting changes that sessions begin with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingChange {
    /// SET; no value is RESET, or SET ... TO DEFAULT.
    Set(String, Option<String>),
    /// SET ... FROM CURRENT.
    SetFromCurrent(String),
    /// RESET ALL.
    ResetAll,
}

/// A statement about roles.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RoleCommand {
    Create {
        name: RoleName,
        options: RoleOptions,
    },
    Alter {
        name: RoleName,
        options: RoleOptions,
    },
    Rename {
        name: RoleName,
        new: RoleName,
    },
    /// SET; no value is RESET, or SET ... TO DEFAULT.
    Set {
        name: RoleName,
        setting: String,
        value: Option<String>,
    },
    /// SET ... FROM CURRENT.
    SetFromCurrent {
        name: RoleName,
        setting: String,
    },
    ResetAll {
        name: RoleName,
    },
    Drop {
        if_exists: bool,
        names: Vec<RoleName>,
    },
    Grant {
        roles: Vec<RoleName>,
        members: Vec<RoleName>,
        admin: bool,
        grantor: Option<RoleName>,
        tag: &'static str,
    },
    Revoke {
        roles: Vec<RoleName>,
        members: Vec<RoleName>,
        admin: bool,
        grantor: Option<RoleName>,
        tag: &'static str,
    },
}

impl RoleCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RoleCommand::Create { .. } => "CREATE ROLE",
            RoleCommand::Drop { .. } => "DROP ROLE",
            RoleCommand::Grant { tag, .. } | RoleCommand::Revoke { tag, .. } => tag,
            _ => "ALTER ROLE",
        }
    }
}
