//! CREATE and DROP EXTENSION.

use super::kind::StatementKind;
use super::roles::Words;
use logstead_sql_types::error::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

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
                "publication" => "DROP PUBLICATION",
                "server" => "DROP SERVER",
                "statistics object" => "DROP STATISTICS",
                "subscription" => "DROP SUBSCRIPTION",
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

/// The statement, if it is about extensions.
pub(super) fn extensions(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    let command = if words.take_all(&["create", "extension"]) {
        let if_not_exists = words.take_all(&["if", "not", "exists"]);
        let name = words.ident()?;
        words.take("with");
        let (mut schema, mut version) = (None, None);
        loop {
            if words.take("schema") {
                schema = Some(words.ident()?);
            } else if words.take("version") {
                version = Some(match words.token() {
                    Some(Token::SingleQuotedString(text)) => {
                        let text = text.clone();
                        words.at += 1;
                        text
                    }
                    _ => words.ident()?,
                });
            } else if !words.take("cascade") {
                break;
            }
        }
        ExtensionCommand::Create {
            if_not_exists,
            name,
            schema,
            version,
        }
    } else if words.take_all(&["alter", "extension"]) {
        let name = words.ident()?;
        if !words.take("update") {
            return Ok(Some(StatementKind::Unsupported("this ALTER EXTENSION")));
        }
        if words.take("to") {
            return Ok(Some(StatementKind::Unsupported(
                "ALTER EXTENSION ... UPDATE TO",
            )));
        }
        ExtensionCommand::Update { name }
    } else if words.take_all(&["drop", "extension"]) {
        let if_exists = words.take_all(&["if", "exists"]);
        let mut names = vec![words.ident()?];
        while words.take_token(&Token::Comma) {
            names.push(words.ident()?);
        }
        let cascade = words.take("cascade");
        if !cascade {
            words.take("restrict");
        }
        ExtensionCommand::Drop {
            if_exists,
            names,
            cascade,
        }
    } else {
        return Ok(None);
    };
    words.end()?;
    Ok(Some(StatementKind::Extension(Box::new(command))))
}
