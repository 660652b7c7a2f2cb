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
    values(tokens);
    let mut at = 0;
    while at + 2 < tokens.len() {
        // As many as there are around the first query.
        let inner = tokens[at..].iter().position(|t| t.token != Token::LParen);
        let inner = at + inner.unwrap_or(0);
        if inner > at + 1 && !is_word(tokens.get(inner), "select") {
            at = inner;
            continue;
        }
        if inner > at + 1 && is_word(tokens.get(inner), "select") {
            for open in (at + 1..inner).rev() {
                let Some(close) = plain_end(tokens, open) else {
                    break;
                };
                let next = tokens.get(close + 1);
                let of_operation = OPERATIONS.iter().any(|word| is_word(next, word));
                let doubled = open > at + 1 && is(next, &Token::RParen);
                if !of_operation && !doubled {
                    break;
                }
                if doubled && !ends_operand(tokens, close + 1) {
                    break;
                }
                tokens.remove(close);
                tokens.remove(open);
            }
        }
        at += 1;
    }
}

/// Whether the parentheses that end at `at`, and those right behind them, are followed by a set operation.
fn ends_operand(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut behind = tokens.iter().skip(at);
    let next = behind.find(|t| t.token != Token::RParen);
    OPERATIONS.iter().any(|word| is_word(next, word))
}

/// `(VALUES ...)` among expressions is a query that reads it: the grammar knows VALUES as a query of its own, in WITH and in FROM.
fn values(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        if is(tokens.get(at), &Token::LParen)
            && is_word(tokens.get(at + 1), "values")
            && is_operand(&tokens[..at])
            && let Some(close) = end_of(tokens, at)
        {
            let span = tokens[at].span;
            let word = |value: &str, keyword| {
                Token::Word(Word {
                    value: value.to_owned(),
                    quote_style: None,
                    keyword,
                })
            };
            let with_span = |token| TokenWithSpan { token, span };
            let name = Token::Word(Word {
                value: "*VALUES*".to_owned(),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            });
            let behind = [Token::RParen, name].map(with_span);
            tokens.splice(close..close, behind);
            let before = [
                word("SELECT", Keyword::SELECT),
                Token::Mul,
                word("FROM", Keyword::FROM),
                Token::LParen,
            ];
            tokens.splice(at + 1..at + 1, before.map(with_span));
            at += 4;
        }
        at += 1;
    }
}

/// Whether an expression may begin behind these tokens, and no item of FROM, query of WITH or of a set operation.
fn is_operand(before: &[TokenWithSpan]) -> bool {
    let Some(last) = before.last() else {
        return false;
    };
    match &last.token {
        Token::Word(_) => [
            "select", "where", "and", "or", "not", "on", "when", "then", "else", "any", "some",
            "all", "having", "by", "between", "like", "distinct",
        ]
        .iter()
        .any(|word| is_word(Some(last), word) && !is_all_of_operation(before)),
        Token::LParen => {
            let rest = &before[..before.len() - 1];
            !rest.is_empty() && is_operand(rest)
        }
        Token::Comma => in_list_of_expressions(before),
        Token::Eq
        | Token::Neq
        | Token::Lt
        | Token::Gt
        | Token::LtEq
        | Token::GtEq
        | Token::Plus
        | Token::Minus
        | Token::Mul
        | Token::Div
        | Token::StringConcat => true,
        _ => false,
    }
}

/// UNION ALL and its kin.
fn is_all_of_operation(before: &[TokenWithSpan]) -> bool {
    let [.., operation, last] = before else {
        return false;
    };
    is_word(Some(last), "all") && OPERATIONS.iter().any(|word| is_word(Some(operation), word))
}

/// Whether the comma at the end stands in a select list.
fn in_list_of_expressions(before: &[TokenWithSpan]) -> bool {
    let mut depth = 0_usize;
    for token in before.iter().rev() {
        match &token.token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => return false,
            Token::LParen => depth -= 1,
            Token::Word(_) if depth == 0 => {
                let token = Some(token);
                if is_word(token, "select") {
                    return true;
                }
                if ["from", "values", "set", "by"]
                    .iter()
                    .any(|word| is_word(token, word))
                {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

/// Where the parenthesis at `open` ends.
pub(super) fn end_of(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
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
            _ => {}
        }
    }
    None
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
