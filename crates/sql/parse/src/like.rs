//! CREATE TABLE (..., LIKE source INCLUDING ..., ...): among columns, where the grammar library has no place for it.
//!
//! It travels as a column whose name nobody can write and whose type is the source's name.

use super::position::error_at_token;
use super::rewrite::is_word;
use logstead_sql_types::error::Result;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What the name of such a column begins with; the letters of `OPTIONS` that are included follow.
pub const LIKE_MARK: &str = "\0like";

/// What can be included, each with its letter.
const OPTIONS: [(&str, char); 9] = [
    ("comments", 'c'),
    ("compression", 'p'),
    ("constraints", 'k'),
    ("defaults", 'd'),
    ("generated", 'g'),
    ("identity", 'i'),
    ("indexes", 'x'),
    ("statistics", 's'),
    ("storage", 'o'),
];

fn is(tokens: &[TokenWithSpan], at: usize, token: &Token) -> bool {
    tokens.get(at).is_some_and(|found| found.token == *token)
}

/// Rewrites every LIKE of a CREATE TABLE; other statements stay as they are.
pub(super) fn rewrite(text: &str, tokens: &mut Vec<TokenWithSpan>) -> Result<()> {
    if !is_word(tokens.first(), "create") {
        return Ok(());
    }
    let Some(table) = (1..4).find(|at| is_word(tokens.get(*at), "table")) else {
        return Ok(());
    };
    let Some(open) = tokens.iter().position(|t| t.token == Token::LParen) else {
        return Ok(());
    };
    if open < table {
        return Ok(());
    }
    let mut depth = 0_usize;
    let mut at = open;
    while let Some(token) = tokens.get(at) {
        let begins = matches!(token.token, Token::LParen | Token::Comma);
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            break;
        }
        at += 1;
        if begins && depth == 1 && is_word(tokens.get(at), "like") {
            at = element(text, tokens, at)?;
        }
    }
    Ok(())
}

/// Rewrites the element at `at`; where it ends.
fn element(text: &str, tokens: &mut Vec<TokenWithSpan>, at: usize) -> Result<usize> {
    let wrong = |tokens: &[TokenWithSpan], at: usize| match tokens.get(at) {
        Some(token) => error_at_token(text, token),
        None => error_at_token(text, &TokenWithSpan::new_eof()),
    };
    let mut end = at + 1;
    loop {
        match tokens.get_mut(end).map(|t| &mut t.token) {
            Some(Token::Word(word)) => {
                // Whatever it is called: no type's name.
                if word.quote_style.is_none() {
                    word.value = word.value.to_lowercase();
                    word.quote_style = Some('"');
                    word.keyword = Keyword::NoKeyword;
                }
            }
            _ => return Err(wrong(tokens, end)),
        }
        end += 1;
        if !is(tokens, end, &Token::Period) {
            break;
        }
        end += 1;
    }
    let name_end = end;
    let mut included = [false; OPTIONS.len()];
    loop {
        let include = is_word(tokens.get(end), "including");
        if !include && !is_word(tokens.get(end), "excluding") {
            break;
        }
        let option = tokens.get(end + 1);
        let known = OPTIONS.iter().position(|(word, _)| is_word(option, word));
        match known {
            Some(option) => included[option] = include,
            None if is_word(option, "all") => included = [include; OPTIONS.len()],
            None => return Err(wrong(tokens, end + 1)),
        }
        end += 2;
    }
    if !is(tokens, end, &Token::Comma) && !is(tokens, end, &Token::RParen) {
        return Err(wrong(tokens, end));
    }
    let letters = OPTIONS
        .iter()
        .zip(included)
        .filter(|(_, included)| *included);
    let letters: String = letters.map(|((_, letter), _)| *letter).collect();
    tokens.drain(name_end..end);
    tokens[at].token = Token::Word(Word {
        value: format!("{LIKE_MARK}{letters}"),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    });
    Ok(name_end)
}
