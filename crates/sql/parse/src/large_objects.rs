//! ALTER LARGE OBJECT and COMMENT ON LARGE OBJECT, which the grammar library lacks.

use super::constraints::error_at;
use super::kind::StatementKind;
use super::rewrite::words;
use super::roles::{RoleName, Words};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Oid;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A statement about one large object.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum LargeObjectCommand {
    Owner { object: Oid, owner: RoleName },
    Comment { object: Oid, text: Option<String> },
}

impl LargeObjectCommand {
    /// The command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            LargeObjectCommand::Owner { .. } => "ALTER LARGE OBJECT",
            LargeObjectCommand::Comment { .. } => "COMMENT",
        }
    }

    /// Which object.
    pub fn object(&self) -> Oid {
        match self {
            LargeObjectCommand::Owner { object, .. }
            | LargeObjectCommand::Comment { object, .. } => *object,
        }
    }
}

impl Words<'_> {
    /// The number of a large object.
    pub(super) fn large_object(&mut self) -> Result<Oid> {
        let number = match self.token() {
            Some(Token::Number(number, _)) => number.parse().ok(),
            _ => None,
        };
        let number = number.ok_or_else(|| self.error())?;
        self.at += 1;
        Ok(number)
    }
}

/// The statement, if it is one of these.
pub(super) fn large_objects(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut all = Words {
        text,
        tokens,
        at: 0,
    };
    let command = if words(tokens, 0, &["alter", "large", "object"]) {
        all.at = 3;
        let object = all.large_object()?;
        all.expect("owner")?;
        all.expect("to")?;
        let owner = all.role()?;
        LargeObjectCommand::Owner { object, owner }
    } else if words(tokens, 0, &["comment", "on", "large", "object"]) {
        all.at = 4;
        let object = all.large_object()?;
        all.expect("is")?;
        let said = match all.token() {
            Some(
                Token::SingleQuotedString(text)
                | Token::EscapedStringLiteral(text)
                | Token::UnicodeStringLiteral(text),
            ) => Some(text.clone()),
            Some(Token::DollarQuotedString(text)) => Some(text.value.clone()),
            _ if all.is("null") => None,
            _ => return Err(error_at(text, tokens, all.at)),
        };
        all.at += 1;
        LargeObjectCommand::Comment { object, text: said }
    } else {
        return Ok(None);
    };
    all.end()?;
    Ok(Some(StatementKind::LargeObject(Box::new(command))))
}
