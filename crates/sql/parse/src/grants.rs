//! GRANT and REVOKE of privileges, ALTER DEFAULT PRIVILEGES, ALTER ... OWNER TO, REASSIGN OWNED, DROP OWNED.

use super::roles::RoleName;
use super::routines::{RoutineRef, RoutineWord};
use crate::lowered::ObjectName;
use logstead_sql_types::value::Oid;

/// What a GRANT or REVOKE is about.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum GrantOn {
    Tables(Vec<ObjectName>),
    Sequences(Vec<ObjectName>),
    Databases(Vec<String>),
    Schemas(Vec<String>),
    /// With the word that names them.
    Types(&'static str, Vec<ObjectName>),
    Languages(Vec<String>),
    AllTables(Vec<String>),
    AllSequences(Vec<String>),
    Routines(RoutineWord, Vec<RoutineRef>),
    AllRoutines(RoutineWord, Vec<String>),
    LargeObjects(Vec<Oid>),
    /// What is not supported, by name.
    Other(&'static str),
    /// The kind of objects that ALTER DEFAULT PRIVILEGES is about.
    Later(&'static str),
}

/// The word of a privilege, and its columns.
pub type Privilege = (String, Vec<String>);

/// GRANT or REVOKE.
#[derive(Clone, Debug)]
pub struct Grant {
    /// It takes away.
    pub revoke: bool,
    /// WITH GRANT OPTION, or GRANT OPTION FOR.
    pub option: bool,
    /// Each privilege with its columns; none is ALL.
    pub privileges: Option<Vec<Privilege>>,
    /// The columns of ALL.
    pub columns: Vec<String>,
    /// On what.
    pub on: GrantOn,
    /// To or from whom.
    pub grantees: Vec<RoleName>,
    /// GRANTED BY.
    pub grantor: Option<RoleName>,
    /// CASCADE.
    pub cascade: bool,
}

/// What can be given to another owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum OwnedKind {
    Table,
    View,
    MaterializedView,
    Sequence,
    Index,
    Schema,
    Database,
    Type,
    Domain,
}

/// A statement about owners or privileges.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum RightsCommand {
    Grant(Grant),
    Defaults {
        roles: Vec<RoleName>,
        schemas: Vec<String>,
        grant: Grant,
    },
    Owner {
        kind: OwnedKind,
        if_exists: bool,
        name: ObjectName,
        owner: RoleName,
    },
    RoutineOwner {
        word: RoutineWord,
        target: RoutineRef,
        owner: RoleName,
    },
    Reassign {
        roles: Vec<RoleName>,
        to: RoleName,
    },
    DropOwned {
        roles: Vec<RoleName>,
        cascade: bool,
    },
}

impl RightsCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RightsCommand::Grant(grant) if grant.revoke => "REVOKE",
            RightsCommand::Grant(_) => "GRANT",
            RightsCommand::Defaults { .. } => "ALTER DEFAULT PRIVILEGES",
            RightsCommand::Reassign { .. } => "REASSIGN OWNED",
            RightsCommand::DropOwned { .. } => "DROP OWNED",
            RightsCommand::RoutineOwner { word, .. } => match word {
                RoutineWord::Function => "ALTER FUNCTION",
                RoutineWord::Procedure => "ALTER PROCEDURE",
                RoutineWord::Routine => "ALTER ROUTINE",
                RoutineWord::Aggregate => "ALTER AGGREGATE",
            },
            RightsCommand::Owner { kind, .. } => match kind {
                OwnedKind::Table => "ALTER TABLE",
                OwnedKind::View => "ALTER VIEW",
                OwnedKind::MaterializedView => "ALTER MATERIALIZED VIEW",
                OwnedKind::Sequence => "ALTER SEQUENCE",
                OwnedKind::Index => "ALTER INDEX",
                OwnedKind::Schema => "ALTER SCHEMA",
                OwnedKind::Database => "ALTER DATABASE",
                OwnedKind::Type => "ALTER TYPE",
                OwnedKind::Domain => "ALTER DOMAIN",
            },
        }
    }
}
