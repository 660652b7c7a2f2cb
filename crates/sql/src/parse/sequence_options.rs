//! The options of a sequence come in any order; the grammar library wants them in one.

use super::rewrite::is_word;
use sqlparser::tokenizer::{Token, TokenWithSpan};

/// Place of the option that begins at `at` in the library's order.
fn rank(tokens: &[TokenWithSpan], at: usize) -> Option<usize> {
    const WORDS: &[(&str, usize)] = &[
        ("as", 0),
        ("increment", 1),
        ("minvalue", 2),
        ("maxvalue", 3),
        ("start", 4),
        ("cache", 5),
        ("cycle", 6),
        ("owned", 7),
    ];
    let find = |at: usize| {
        WORDS
            .iter()
            .find(|(word, _)| is_word(tokens.get(at), word))
            .map(|(_, rank)| *rank)
    };
    if is_word(tokens.get(at), "no") {
        return find(at + 1);
    }
    // The word after NO belongs to it.
    let negated = at > 0 && is_word(tokens.get(at - 1), "no");
    if negated { None } else { find(at) }
}

/// Puts the options in `tokens` (nothing but options) in order.
pub(super) fn sort(tokens: &mut [TokenWithSpan]) {
    let starts: Vec<(usize, usize)> = (0..tokens.len())
        .filter_map(|at| Some((at, rank(tokens, at)?)))
        .collect();
    if starts.first().is_none_or(|first| first.0 != 0) || starts.is_sorted_by_key(|s| s.1) {
        return;
    }
    let mut options: Vec<(usize, Vec<TokenWithSpan>)> = Vec::new();
    for (i, (start, rank)) in starts.iter().enumerate() {
        let end = starts.get(i + 1).map_or(tokens.len(), |next| next.0);
        options.push((*rank, tokens.get(*start..end).unwrap_or_default().to_vec()));
    }
    options.sort_by_key(|option| option.0);
    for (slot, token) in tokens
        .iter_mut()
        .zip(options.into_iter().flat_map(|option| option.1))
    {
        *slot = token;
    }
}

/// Sorts the options of CREATE SEQUENCE and of every identity column in a statement.
pub(super) fn sort_all(tokens: &mut [TokenWithSpan]) {
    let sequence =
        is_word(tokens.first(), "create") && (1..3).any(|at| is_word(tokens.get(at), "sequence"));
    if sequence {
        let first = (0..tokens.len()).find(|at| *at > 2 && rank(tokens, *at).is_some());
        if let Some(options) = first.and_then(|at| tokens.get_mut(at..)) {
            sort(options);
        }
        return;
    }
    if !is_word(tokens.first(), "create") && !is_word(tokens.first(), "alter") {
        return;
    }
    for at in 0..tokens.len() {
        let opens = matches!(tokens.get(at + 1).map(|t| &t.token), Some(Token::LParen));
        if opens && is_word(tokens.get(at), "identity") {
            let closes = |t: &TokenWithSpan| matches!(t.token, Token::RParen);
            let end = tokens
                .get(at + 2..)
                .and_then(|rest| rest.iter().position(closes));
            if let Some(options) = end.and_then(|length| tokens.get_mut(at + 2..at + 2 + length)) {
                sort(options);
            }
        }
    }
}
