//! ALTER TABLE and ALTER VIEW ... SET SCHEMA, which the grammar library lacks: it travels as a RENAME to a name that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::{is_word, words};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Replaces SET SCHEMA name at the end of ALTER TABLE.
pub(super) fn rewrite(tokens: &mut [TokenWithSpan]) {
    let Some(at) = tokens.len().checked_sub(3) else {
        return;
    };
    if !words(tokens, 0, &["alter", "table"]) || !words(tokens, at, &["set", "schema"]) {
        return;
    }
    // Not the value of a SET DEFAULT, nor a column's name.
    if at < 3 || is_word(tokens.get(at - 1), "column") || is_word(tokens.get(at - 1), "alter") {
        return;
    }
    let Some(Token::Word(name)) = tokens.last().map(|t| &t.token) else {
        return;
    };
    let name = match name.quote_style {
        Some(_) => name.value.clone(),
        None => name.value.to_lowercase(),
    };
    let new = [
        ("RENAME".to_owned(), None, Keyword::RENAME),
        ("TO".to_owned(), None, Keyword::TO),
        (
            format!("{EXPRESSION_MARK}{name}"),
            Some('"'),
            Keyword::NoKeyword,
        ),
    ];
    for (token, (value, quote_style, keyword)) in tokens[at..].iter_mut().zip(new) {
        token.token = Token::Word(Word {
            value,
            quote_style,
            keyword,
        });
    }
}

/// The schema, if a new name of ALTER TABLE ... RENAME says SET SCHEMA.
pub fn schema_of(name: &ast::ObjectName) -> Option<&str> {
    match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(name)] => name.value.strip_prefix(EXPRESSION_MARK),
        _ => None,
    }
}
