//! CREATE, ALTER and DROP DATABASE, and ALTER ROLE ... IN DATABASE.

use super::roles::{RoleName, SettingChange};

/// What an option is set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionValue {
    /// DEFAULT.
    Default,
    /// A whole number.
    Number(i32),
    /// A word or string.
    Word(String),
}

/// An option of CREATE or ALTER DATABASE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseOption {
    /// In lower case, words joined by `_`.
    pub name: String,
    /// Its value.
    pub value: OptionValue,
    /// Where it stands in the text.
    pub position: Option<usize>,
}

/// A statement about databases.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum DatabaseCommand {
    Create {
        name: String,
        options: Vec<DatabaseOption>,
    },
    Alter {
        name: String,
        options: Vec<DatabaseOption>,
    },
    Rename {
        name: String,
        new: String,
    },
    /// SET TABLESPACE.
    Move {
        name: String,
        tablespace: String,
    },
    /// SET and RESET, of one role or of all.
    Setting {
        name: String,
        role: Option<RoleName>,
        change: SettingChange,
        /// It was said with ALTER ROLE.
        of_role: bool,
    },
    RefreshCollation {
        name: String,
    },
    Drop {
        if_exists: bool,
        name: String,
        force: bool,
    },
}

impl DatabaseCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            DatabaseCommand::Create { .. } => "CREATE DATABASE",
            DatabaseCommand::Drop { .. } => "DROP DATABASE",
            DatabaseCommand::Setting { of_role: true, .. } => "ALTER ROLE",
            _ => "ALTER DATABASE",
        }
    }

    /// Does it run outside transaction blocks only?
    pub fn stands_alone(&self) -> bool {
        matches!(
            self,
            DatabaseCommand::Create { .. }
                | DatabaseCommand::Drop { .. }
                | DatabaseCommand::Move { .. }
        )
    }
}
