//! MERGE: what the grammar library lacks of it (DEFAULT VALUES, OVERRIDING), and what it takes that PostgreSQL does not.

use super::position::error_at_token;
use super::rewrite::{is_word, words};
use logstead_sql_types::error::Result;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Word};

/// DEFAULT VALUES of an INSERT of MERGE. As the two that follow it travels as a name in its list of columns, which
/// nobody can write.
pub const DEFAULT_VALUES: &str = "\0default";
/// OVERRIDING SYSTEM VALUE.
pub const OVERRIDING_SYSTEM: &str = "\0system";
/// OVERRIDING USER VALUE.
pub const OVERRIDING_USER: &str = "\0user";

/// Where the parenthesis that opens at `open` is closed.
fn closed(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

fn is_open(tokens: &[TokenWithSpan], at: usize) -> bool {
    matches!(tokens.get(at).map(|t| &t.token), Some(Token::LParen))
}

fn named(name: &str, span: Span) -> TokenWithSpan {
    let word = Word {
        value: name.to_owned(),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    };
    TokenWithSpan {
        token: Token::Word(word),
        span,
    }
}

/// The next token outside of all parentheses.
fn next(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    match is_open(tokens, at) {
        true => closed(tokens, at).map(|close| close + 1),
        false => Some(at + 1),
    }
}

/// Where the statement that is explained or prepared begins, behind its WITH list; `None` if the text breaks off before.
fn begin(tokens: &[TokenWithSpan]) -> Option<usize> {
    let word = |at: usize, word: &str| is_word(tokens.get(at), word);
    let mut at = 0;
    if word(at, "explain") {
        at = match is_open(tokens, 1) {
            true => next(tokens, 1)?,
            false => 1,
        };
        while word(at, "analyze") || word(at, "verbose") {
            at += 1;
        }
    } else if word(at, "prepare") {
        at = 2;
        if is_open(tokens, at) {
            at = next(tokens, at)?;
        }
        at += 1;
    }
    if !word(at, "with") {
        return Some(at);
    }
    at += 1 + usize::from(word(at + 1, "recursive"));
    loop {
        at += 1;
        if is_open(tokens, at) {
            at = next(tokens, at)?;
        }
        // AS [[NOT] MATERIALIZED] (...)
        while !is_open(tokens, at) {
            tokens.get(at)?;
            at += 1;
        }
        at = next(tokens, at)?;
        match tokens.get(at)?.token {
            Token::Comma => at += 1,
            _ => return Some(at),
        }
    }
}

/// Rewrites a MERGE; other statements stay as they are.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    let Some(mut at) = begin(tokens).filter(|at| words(tokens, *at, &["merge", "into"])) else {
        return Ok(());
    };
    source(tokens, at);
    while at < tokens.len() {
        let refused = ["where", "returning"]
            .iter()
            .any(|word| is_word(tokens.get(at), word));
        let by = words(tokens, at, &["matched", "by"]).then_some(at + 1);
        let star = |at: usize| matches!(tokens.get(at).map(|t| &t.token), Some(Token::Mul));
        let all = (words(tokens, at, &["update", "set"]) && star(at + 2))
            .then_some(at + 2)
            .or((words(tokens, at, &["then", "insert"]) && star(at + 2)).then_some(at + 2));
        if let Some(wrong) = refused.then_some(at).or(by).or(all)
            && let Some(token) = tokens.get(wrong)
        {
            return Err(error_at_token(text, token));
        }
        if words(tokens, at, &["then", "insert"]) {
            insert(text, tokens, at + 2)?;
            at += 1;
        }
        match next(tokens, at) {
            Some(after) => at = after,
            None => return Ok(()),
        }
    }
    Ok(())
}

/// `USING a JOIN b ON ... ON ...`: the grammar wants joins in parentheses here.
fn source(tokens: &mut Vec<TokenWithSpan>, mut at: usize) {
    let (mut using, mut joined, mut on) = (None, false, None);
    while at < tokens.len() {
        if words(tokens, at, &["when", "matched"]) || words(tokens, at, &["when", "not", "matched"])
        {
            break;
        }
        let word = |word: &str| is_word(tokens.get(at), word);
        if word("using") && using.is_none() {
            using = Some(at);
        }
        joined |= word("join");
        if word("on") {
            on = Some(at);
        }
        match next(tokens, at) {
            Some(after) => at = after,
            None => return,
        }
    }
    let (Some(using), Some(on), true) = (using, on, joined) else {
        return;
    };
    let plain = |token, at: usize| TokenWithSpan {
        token,
        span: tokens[at].span,
    };
    let (open, close) = (plain(Token::LParen, using + 1), plain(Token::RParen, on));
    tokens.insert(on, close);
    tokens.insert(using + 1, open);
}

/// What follows INSERT.
fn insert(text: &str, tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<()> {
    let Some(span) = tokens.get(at).map(|token| token.span) else {
        return Ok(());
    };
    let plain = |token| TokenWithSpan { token, span };
    if words(tokens, at, &["default", "values"]) {
        let values = tokens[at + 1].clone();
        let null = Token::make_keyword("NULL");
        let list = [
            plain(Token::LParen),
            named(DEFAULT_VALUES, span),
            plain(Token::RParen),
            values,
            plain(Token::LParen),
            plain(null),
            plain(Token::RParen),
        ];
        tokens.splice(at..at + 2, list);
        return Ok(());
    }
    let close = is_open(tokens, at).then(|| closed(tokens, at)).flatten();
    let mut values = close.map_or(at, |close| close + 1);
    let overriding = |word| words(tokens, values, &["overriding", word, "value"]);
    let mark = match (overriding("system"), overriding("user")) {
        (true, _) => Some(OVERRIDING_SYSTEM),
        (_, true) => Some(OVERRIDING_USER),
        _ => None,
    };
    if let Some(mark) = mark {
        tokens.drain(values..values + 3);
        let list = match close {
            Some(close) => {
                values = close;
                vec![plain(Token::Comma), named(mark, span)]
            }
            None => vec![
                plain(Token::LParen),
                named(mark, span),
                plain(Token::RParen),
            ],
        };
        let added = list.len();
        tokens.splice(values..values, list);
        values += added + usize::from(close.is_some());
    }
    // One row, not several.
    if is_word(tokens.get(values), "values")
        && is_open(tokens, values + 1)
        && let Some(close) = closed(tokens, values + 1)
        && let Some(token) = tokens.get(close + 1)
        && token.token == Token::Comma
    {
        return Err(error_at_token(text, token));
    }
    Ok(())
}
