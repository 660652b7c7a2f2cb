//! Clauses whose words the grammar library does not know, or knows in part: FETCH FIRST (count), LIKE ANY, SEARCH and CYCLE.

use super::rewrite::{is_word, words};
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// SEARCH DEPTH FIRST BY ..., SEARCH BREADTH FIRST BY ..., CYCLE a, b SET ...: behind a query of WITH RECURSIVE.
pub(super) fn is_graph(tokens: &[TokenWithSpan], at: usize) -> bool {
    if is_word(tokens.get(at), "search") {
        return ["depth", "breadth"]
            .iter()
            .any(|order| words(tokens, at + 1, &[order, "first", "by"]));
    }
    let mut end = at + 2;
    while tokens.get(end).is_some_and(|t| t.token == Token::Comma) {
        end += 2;
    }
    is_word(tokens.get(at), "cycle") && is_word(tokens.get(end), "set")
}

/// `FETCH FIRST (count) ROWS ...`: the grammar library wants a plain number there, and in LIMIT anything.
pub(super) fn fetch_count(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let opens = ["first", "next"]
        .iter()
        .any(|word| is_word(tokens.get(at + 1), word))
        && tokens.get(at + 2).is_some_and(|t| t.token == Token::LParen);
    let Some(close) = super::parentheses::end_of(tokens, at + 2).filter(|_| opens) else {
        return;
    };
    let rows = is_word(tokens.get(close + 1), "rows") || is_word(tokens.get(close + 1), "row");
    if !rows {
        return;
    }
    let only = is_word(tokens.get(close + 2), "only");
    if !only && !words(tokens, close + 2, &["with", "ties"]) {
        return;
    }
    let mut fetch: Vec<TokenWithSpan> = tokens.drain(at..at + 2).collect();
    let span = tokens[at].span;
    let token = Token::make_word("limit", None);
    tokens.insert(at, TokenWithSpan { token, span });
    // LIMIT takes the place of FETCH FIRST.
    let behind = close;
    if only {
        tokens.drain(behind..behind + 2);
    } else {
        let count = Token::Number("1".to_owned(), false);
        fetch.push(TokenWithSpan { token: count, span });
        tokens.splice(behind..behind, fetch);
    }
}

/// `[NOT] LIKE ANY (...)` and its kin are comparisons with operators; where the operator stands.
pub(super) fn like_array(tokens: &mut Vec<TokenWithSpan>, at: usize) -> usize {
    let folds = is_word(tokens.get(at), "ilike");
    let negated = at > 0 && is_word(tokens.get(at - 1), "not");
    tokens[at].token = match (negated, folds) {
        (false, false) => Token::DoubleTilde,
        (false, true) => Token::DoubleTildeAsterisk,
        (true, false) => Token::ExclamationMarkDoubleTilde,
        (true, true) => Token::ExclamationMarkDoubleTildeAsterisk,
    };
    if negated {
        tokens.remove(at - 1);
        return at - 1;
    }
    at
}
