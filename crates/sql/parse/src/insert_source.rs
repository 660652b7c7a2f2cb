//! INSERT ... SELECT without FROM or WHERE, in front of ON CONFLICT: the grammar library would take ON for the name of the last column.

use super::rewrite::{is_word, words};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// What ends the list of a SELECT.
const BEHIND_LIST: [&str; 9] = [
    "where", "having", "window", "order", "limit", "offset", "fetch", "for", "values",
];

/// Does ON at `at` stand right behind the list of a SELECT?
fn follows_list(tokens: &[TokenWithSpan], at: usize) -> bool {
    let mut depth = 0_usize;
    for before in (0..at).rev() {
        match &tokens[before].token {
            Token::RParen | Token::RBracket => depth += 1,
            Token::LParen | Token::LBracket if depth == 0 => return false,
            Token::LParen | Token::LBracket => depth -= 1,
            Token::Word(_) if depth > 0 => {}
            Token::Word(word) if word.quote_style.is_none() => {
                let word = tokens.get(before);
                // IS DISTINCT FROM, and a name behind a point.
                let joined = before.checked_sub(1).and_then(|b| tokens.get(b));
                let is_name = joined.is_some_and(|t| t.token == Token::Period);
                let from = is_word(word, "from") && !is_word(joined, "distinct");
                let ends = from
                    || words(tokens, before, &["group", "by"])
                    || BEHIND_LIST.iter().any(|end| is_word(word, end));
                match is_name {
                    true => {}
                    false if is_word(word, "select") => return true,
                    false if ends => return false,
                    false => {}
                }
            }
            _ => {}
        }
    }
    false
}

/// Ends the list in front of ON CONFLICT at `at` with a condition that always holds; how many tokens were put in front of ON.
pub(super) fn end_list(tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let Some(span) = tokens.get(at).map(|token| token.span) else {
        return 0;
    };
    if !follows_list(tokens, at) {
        return 0;
    }
    let word = |value: &str, keyword| {
        let value = value.to_owned();
        let quote_style = None;
        let token = Token::Word(Word {
            value,
            quote_style,
            keyword,
        });
        TokenWithSpan { token, span }
    };
    let condition = [word("WHERE", Keyword::WHERE), word("TRUE", Keyword::TRUE)];
    let length = condition.len();
    tokens.splice(at..at, condition);
    length
}
