//! CREATE and DROP EXTENSION.

/// A statement about extensions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ExtensionCommand {
    Create {
        if_not_exists: bool,
        name: String,
        schema: Option<String>,
        version: Option<String>,
    },
    Drop {
        if_exists: bool,
        names: Vec<String>,
        cascade: bool,
    },
    /// ALTER EXTENSION ... UPDATE.
    Update { name: String },
    /// DROP of a kind of object of which there are none, but in extensions of PostgreSQL: what messages call it, and the names.
    DropAbsent {
        kind: &'static str,
        if_exists: bool,
        names: Vec<String>,
    },
}

impl ExtensionCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            ExtensionCommand::Update { .. } => "ALTER EXTENSION",
            ExtensionCommand::DropAbsent { kind, .. } => match *kind {
                "access method" => "DROP ACCESS METHOD",
                "conversion" => "DROP CONVERSION",
                "event trigger" => "DROP EVENT TRIGGER",
                "foreign-data wrapper" => "DROP FOREIGN DATA WRAPPER",
                "foreign table" => "DROP FOREIGN TABLE",
                "language" => "DROP LANGUAGE",
                "publication" => "DROP PUBLICATION",
                "server" => "DROP SERVER",
                "statistics object" => "DROP STATISTICS",
                "subscription" => "DROP SUBSCRIPTION",
                "tablespace" => "DROP TABLESPACE",
                "text search configuration" => "DROP TEXT SEARCH CONFIGURATION",
                "text search dictionary" => "DROP TEXT SEARCH DICTIONARY",
                "text search parser" => "DROP TEXT SEARCH PARSER",
                _ => "DROP TEXT SEARCH TEMPLATE",
            },
            ExtensionCommand::Create { .. } => "CREATE EXTENSION",
            ExtensionCommand::Drop { .. } => "DROP EXTENSION",
        }
    }
}
