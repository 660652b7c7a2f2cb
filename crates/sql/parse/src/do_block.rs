//! DO.

use super::kind::StatementKind;
use super::position::{byte_of, error_at_token, position_of};
use super::roles::Words;
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// A block that is run once.
#[derive(Clone, Debug)]
pub struct DoBlock {
    /// Its language.
    pub language: String,
    /// Its body.
    pub body: String,
    /// The character at which the body begins in the text, from 1, if the text has it as it is.
    begins: Option<usize>,
}

impl DoBlock {
    /// An error of the body as one of the text.
    pub fn place(&self, mut error: SqlError, text: &str) -> SqlError {
        let fields = error.fields_mut();
        let Some(position) = fields.position.take() else {
            return error;
        };
        match self.begins {
            Some(begins) => fields.position = Some(begins + position - 1),
            None => {
                let _ = text;
                fields.inner_query = Some((position, self.body.clone()));
            }
        }
        error
    }
}

/// The body that a string has, and where it begins in the text if it stands there as it is.
pub(super) fn body_of(text: &str, token: &TokenWithSpan) -> Option<(String, Option<usize>)> {
    let start = byte_of(text, token.span.start);
    match &token.token {
        Token::DollarQuotedString(quoted) => {
            let tag = quoted.tag.as_deref().unwrap_or_default();
            let lead = format!("${tag}$");
            // The text itself, whatever the tokenizer makes of line ends.
            let begins = start + lead.len();
            let rest = text.get(begins..)?;
            let length = rest.find(&lead).unwrap_or(quoted.value.len());
            let body = rest.get(..length).unwrap_or(&quoted.value);
            Some((
                body.to_owned(),
                Some(position_of(text, token.span.start) + lead.chars().count()),
            ))
        }
        Token::SingleQuotedString(body) => {
            let as_it_is = !body.contains('\'');
            let begins = as_it_is.then(|| position_of(text, token.span.start) + 1);
            Some((body.clone(), begins))
        }
        Token::EscapedStringLiteral(body) => Some((body.clone(), None)),
        _ => None,
    }
}

/// The statement, if it is DO.
pub(super) fn do_block(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    let mut words = Words {
        text,
        tokens,
        at: 0,
    };
    if !words.take("do") {
        return Ok(None);
    }
    let (mut language, mut body) = (None, None);
    while let Some(token) = tokens.get(words.at) {
        let twice = || {
            SqlError::new(SqlState::SYNTAX_ERROR, "conflicting or redundant options")
                .at(Some(position_of(text, token.span.start)))
        };
        if words.take("language") {
            let name = match tokens.get(words.at).map(|token| &token.token) {
                Some(Token::SingleQuotedString(name)) => {
                    words.at += 1;
                    name.to_lowercase()
                }
                _ => words.ident()?,
            };
            if language.replace(name).is_some() {
                return Err(twice());
            }
            continue;
        }
        let found = body_of(text, token).ok_or_else(|| error_at_token(text, token))?;
        if body.replace(found).is_some() {
            return Err(twice());
        }
        words.at += 1;
    }
    let Some((body, begins)) = body else {
        return match tokens.len() {
            1 => Err(error_at_token(text, &TokenWithSpan::new_eof())),
            _ => Err(SqlError::new(
                SqlState::SYNTAX_ERROR,
                "no inline code specified",
            )),
        };
    };
    Ok(Some(StatementKind::Do(Box::new(DoBlock {
        language: language.unwrap_or_else(|| "plpgsql".to_owned()),
        body,
        begins,
    }))))
}
