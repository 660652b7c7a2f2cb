//! UNIQUE NULLS [NOT] DISTINCT of a column, which the grammar library knows of tables' constraints alone.
//!
//! NOT DISTINCT travels in the constraint's name, as a beginning that nobody can write.

use super::rewrite::{is_word, words};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// What such a name begins with; the name that was written follows, if one was.
const MARK: &str = "\0nulls not distinct";

/// Takes the words out of CREATE TABLE and ALTER TABLE.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    if !is_word(tokens.first(), "create") && !is_word(tokens.first(), "alter") {
        return;
    }
    let mut at = 1;
    while at < tokens.len() {
        let distinct = words(tokens, at, &["unique", "nulls", "distinct"]);
        let length = match distinct || words(tokens, at, &["unique", "nulls", "not", "distinct"]) {
            true => 2 + usize::from(!distinct),
            false => 0,
        };
        let next = tokens.get(at + 1 + length).map(|t| &t.token);
        if length == 0 || next == Some(&Token::LParen) {
            at += 1;
            continue;
        }
        tokens.drain(at + 1..at + 1 + length);
        at += 1;
        if distinct {
            continue;
        }
        let unique = at - 1;
        let named = unique >= 2 && is_word(tokens.get(unique - 2), "constraint");
        if let (true, Token::Word(word)) = (named, &mut tokens[unique - 1].token) {
            let name = match word.quote_style {
                Some(_) => word.value.clone(),
                None => word.value.to_lowercase(),
            };
            tokens[unique - 1].token = Token::make_word(&format!("{MARK}{name}"), Some('"'));
            continue;
        }
        let span = tokens[unique].span;
        let new = [
            Token::make_keyword("CONSTRAINT"),
            Token::make_word(MARK, Some('"')),
        ];
        let new = new.map(|token| TokenWithSpan { token, span });
        tokens.splice(unique..unique, new);
        at += 2;
    }
}

/// The name of a column's UNIQUE as it was written, and whether NULLs are not distinct.
pub fn unique_name(name: Option<String>) -> (Option<String>, bool) {
    match name.as_deref().and_then(|name| name.strip_prefix(MARK)) {
        None => (name, false),
        Some(rest) => ((!rest.is_empty()).then(|| rest.to_owned()), true),
    }
}
