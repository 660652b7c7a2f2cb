//! `row.*` where an expression stands is the whole row, which the grammar knows by its name alone.
//!
//! In a list of results, of ROW or of a call it stays what it is: there it is the row's columns, or the binder's to
//! tell.

use super::rewrite::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Words behind an operand.
const BEHIND: [&str; 14] = [
    "and", "asc", "between", "desc", "else", "end", "ilike", "in", "is", "like", "not", "or",
    "then", "when",
];

/// Words in front of an expression that is no result.
const BEFORE: [&str; 11] = [
    "and", "by", "case", "else", "having", "not", "on", "or", "then", "when", "where",
];

fn is_operator(token: Option<&TokenWithSpan>) -> bool {
    matches!(
        token.map(|t| &t.token),
        Some(
            Token::Eq
                | Token::Neq
                | Token::Lt
                | Token::Gt
                | Token::LtEq
                | Token::GtEq
                | Token::DoubleColon
                | Token::StringConcat
        )
    )
}

/// Is what stands behind the comma at `at` an element of an array, or a key to sort or group by?
fn is_listed(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0_usize;
    for at in (0..at).rev() {
        match &tokens[at].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LBracket if depth == 0 => return true,
            Token::LParen if depth == 0 => return false,
            Token::LParen | Token::LBracket => depth -= 1,
            Token::Word(word) if depth == 0 && word.quote_style.is_none() => {
                if word.value.eq_ignore_ascii_case("by") {
                    return true;
                }
                let begins = ["select", "returning", "values", "from", "set"];
                if begins.iter().any(|w| word.value.eq_ignore_ascii_case(w)) {
                    return false;
                }
            }
            _ => {}
        }
    }
    false
}

/// Takes the star off.
pub(super) fn rewrite(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at + 1 < tokens.len() {
        let is_star = tokens[at].token == Token::Period
            && tokens[at + 1].token == Token::Mul
            && matches!(tokens[at - 1].token, Token::Word(_));
        if is_star && is_operand(tokens, at) {
            tokens.drain(at..at + 2);
        }
        at += 1;
    }
}

/// Is the star at `at` part of an operand, or of an expression that is no result?
fn is_operand(tokens: &[TokenWithSpan], at: usize) -> bool {
    let next = tokens.get(at + 2);
    if is_operator(next) || BEHIND.iter().any(|word| is_word(next, word)) {
        return true;
    }
    let Some(place) = at.checked_sub(2) else {
        return false;
    };
    let before = tokens.get(place);
    let word = |word: &str, back: usize| {
        let at = place.checked_sub(back);
        is_word(at.and_then(|at| tokens.get(at)), word)
    };
    if is_operator(before) || BEFORE.iter().any(|word| is_word(before, word)) {
        // ON of DISTINCT ON has parentheses behind it.
        return true;
    }
    match before.map(|t| &t.token) {
        Some(Token::LBracket) => true,
        Some(Token::Comma) => is_listed(tokens, place),
        _ => word("from", 0) && word("distinct", 1) && (word("is", 2) || word("not", 2)),
    }
}
