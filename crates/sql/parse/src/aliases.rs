//! Names of FROM items that the grammar library has no place for: `JOIN ... USING (a, b) AS name`, and `FROM call(...) AS (a int, b text)`.
//!
//! The first travels as a last column of USING whose name nobody can write; the second gets the name that PostgreSQL gives it, the call's.

use super::rewrite::is_word;
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What the name of such a column begins with; the alias follows, folded.
const ALIAS_MARK: &str = "\0as ";

/// What begins a query, and no column definition.
const QUERIES: [&str; 8] = [
    "select", "with", "values", "table", "insert", "update", "delete", "merge",
];

/// The columns of USING, and what they are called together.
pub fn using_alias(names: &[ast::ObjectName]) -> (&[ast::ObjectName], Option<String>) {
    let alias = |name: &ast::ObjectName| match name.0.as_slice() {
        [ast::ObjectNamePart::Identifier(ident)] => {
            ident.value.strip_prefix(ALIAS_MARK).map(str::to_owned)
        }
        _ => None,
    };
    match names.split_last() {
        Some((last, rest)) if alias(last).is_some() => (rest, alias(last)),
        _ => (names, None),
    }
}

fn is(token: Option<&TokenWithSpan>, wanted: &Token) -> bool {
    token.is_some_and(|t| t.token == *wanted)
}

fn name_at(tokens: &[TokenWithSpan], at: usize) -> Option<String> {
    match tokens.get(at).map(|t| &t.token) {
        Some(Token::Word(word)) if word.quote_style.is_some() => Some(word.value.clone()),
        Some(Token::Word(word)) => Some(word.value.to_lowercase()),
        _ => None,
    }
}

fn quoted(value: String) -> Token {
    Token::Word(Word {
        value,
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    })
}

/// Rewrites `USING (...) AS name` behind USING at `at`.
pub(super) fn of_using(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if !is(tokens.get(at + 1), &Token::LParen) {
        return;
    }
    let mut end = at + 2;
    while name_at(tokens, end).is_some() && is(tokens.get(end + 1), &Token::Comma) {
        end += 2;
    }
    let close = end + 1;
    let named = name_at(tokens, end).is_some()
        && is(tokens.get(close), &Token::RParen)
        && is_word(tokens.get(close + 1), "as");
    let Some(alias) = name_at(tokens, close + 2).filter(|_| named) else {
        return;
    };
    let span = tokens[close + 2].span;
    let column = [Token::Comma, quoted(format!("{ALIAS_MARK}{alias}"))];
    let column = column.map(|token| TokenWithSpan { token, span });
    tokens.drain(close + 1..close + 3);
    tokens.splice(close..close, column);
}

/// Puts the name of a call in front of its column definitions, whose AS stands at `at`.
pub(super) fn of_definitions(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let defines = at > 0
        && is(tokens.get(at - 1), &Token::RParen)
        && is(tokens.get(at + 1), &Token::LParen)
        && !QUERIES.iter().any(|word| is_word(tokens.get(at + 2), word))
        && name_at(tokens, at + 2).is_some()
        && name_at(tokens, at + 3).is_some();
    if !defines {
        return;
    }
    let mut depth = 0_usize;
    let open = tokens[..at].iter().rposition(|token| {
        match token.token {
            Token::RParen => depth += 1,
            Token::LParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0
    });
    let Some(called) = open.and_then(|open| open.checked_sub(1)) else {
        return;
    };
    if let Some(name) = name_at(tokens, called) {
        let span = tokens[called].span;
        let token = quoted(name);
        tokens.insert(at + 1, TokenWithSpan { token, span });
    }
}
