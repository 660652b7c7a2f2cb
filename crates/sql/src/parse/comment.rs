//! COMMENT ON CONSTRAINT, which the grammar library lacks.

use super::constraints::{error_at, name};
use super::kind::{CommentOn, StatementKind};
use super::rewrite::{is_word, words};
use crate::catalog::text::fold;
use crate::error::Result;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// COMMENT ON CONSTRAINT name ON table IS ...; `None` for any other statement.
pub(super) fn on_constraint(text: &str, tokens: &[TokenWithSpan]) -> Result<Option<StatementKind>> {
    if !words(tokens, 0, &["comment", "on", "constraint"]) {
        return Ok(None);
    }
    let constraint = match tokens.get(3).map(|t| (&t.token, t.span)) {
        Some((Token::Word(word), span)) => fold(&word.clone().into_ident(span)),
        _ => return Err(error_at(text, tokens, 3)),
    };
    if !is_word(tokens.get(4), "on") {
        return Err(error_at(text, tokens, 4));
    }
    let mut at = 5;
    let domain = is_word(tokens.get(at), "domain")
        && matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::Word(_)))
        && !is_word(tokens.get(at + 1), "is");
    if domain {
        at += 1;
    }
    let owner = name(tokens, &mut at).ok_or_else(|| error_at(text, tokens, at))?;
    if !is_word(tokens.get(at), "is") {
        return Err(error_at(text, tokens, at));
    }
    let comment = match tokens.get(at + 1).map(|t| &t.token) {
        Some(
            Token::SingleQuotedString(text)
            | Token::EscapedStringLiteral(text)
            | Token::UnicodeStringLiteral(text),
        ) => Some(text.clone()),
        Some(Token::DollarQuotedString(text)) => Some(text.value.clone()),
        _ if is_word(tokens.get(at + 1), "null") => None,
        _ => return Err(error_at(text, tokens, at + 1)),
    };
    if tokens.len() > at + 2 {
        return Err(error_at(text, tokens, at + 2));
    }
    Ok(Some(StatementKind::CommentOn(Box::new(CommentOn {
        constraint,
        owner,
        domain,
        comment,
    }))))
}
