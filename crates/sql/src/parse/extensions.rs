//! CREATE and DROP EXTENSION.

use super::kind::StatementKind;
use super::roles::Words;
use crate::error::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about extensions.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ExtensionCommand {
    Create {
        if_not_exists: bool,
        name: String,
        schema: Option<String>,
    },
    Drop {
        if_exists: bool,
        names: Vec<String>,
        cascade: bool,
    },
}

impl ExtensionCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
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
        let mut schema = None;
        loop {
            if words.take("schema") {
                schema = Some(words.ident()?);
            } else if words.take("version") {
                match words.token() {
                    Some(Token::SingleQuotedString(_)) => words.at += 1,
                    _ => {
                        words.ident()?;
                    }
                }
            } else if !words.take("cascade") {
                break;
            }
        }
        ExtensionCommand::Create {
            if_not_exists,
            name,
            schema,
        }
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
