//! Parentheses that the grammar library takes for something else: `((SELECT ...) UNION ...)` as an expression, and `EXPLAIN (SELECT ...)`.

use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

const OPERATIONS: [&str; 3] = ["union", "intersect", "except"];

/// What makes the parentheses around the first query of a set operation mean something.
const TAILS: [&str; 9] = [
    "union",
    "intersect",
    "except",
    "order",
    "limit",
    "offset",
    "fetch",
    "for",
    "into",
];

fn is(token: Option<&TokenWithSpan>, wanted: &Token) -> bool {
    token.is_some_and(|t| t.token == *wanted)
}

/// Takes parentheses out that say nothing, and puts options into an EXPLAIN that has none.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    explain(tokens);
    let mut at = 0;
    while at + 2 < tokens.len() {
        let opens = is(tokens.get(at), &Token::LParen)
            && is(tokens.get(at + 1), &Token::LParen)
            && is_word(tokens.get(at + 2), "select");
        if opens
            && let Some(close) = plain_end(tokens, at + 1)
            && OPERATIONS
                .iter()
                .any(|word| is_word(tokens.get(close + 1), word))
        {
            tokens.remove(close);
            tokens.remove(at + 1);
        }
        at += 1;
    }
}

/// Where the parenthesis at `open` ends, if what is in it is a SELECT without a tail.
fn plain_end(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at);
                }
            }
            Token::Word(_) if depth == 1 && TAILS.iter().any(|word| is_word(Some(token), word)) => {
                return None;
            }
            _ => {}
        }
    }
    None
}

/// `EXPLAIN (SELECT ...` is no list of options.
fn explain(tokens: &mut Vec<TokenWithSpan>) {
    let query = words(tokens, 0, &["explain"])
        && is(tokens.get(1), &Token::LParen)
        && (is(tokens.get(2), &Token::LParen)
            || ["select", "with", "values"]
                .iter()
                .any(|word| is_word(tokens.get(2), word)));
    if !query {
        return;
    }
    let span = tokens[1].span;
    let word = |value: &str, keyword| {
        Token::Word(Word {
            value: value.to_owned(),
            quote_style: None,
            keyword,
        })
    };
    let options = [
        Token::LParen,
        word("COSTS", Keyword::NoKeyword),
        word("TRUE", Keyword::TRUE),
        Token::RParen,
    ];
    let options = options
        .into_iter()
        .map(|token| TokenWithSpan { token, span });
    tokens.splice(1..1, options);
}
