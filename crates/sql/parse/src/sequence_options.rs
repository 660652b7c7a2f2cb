//! The options of a sequence come in any order; the grammar library wants them in one. The name of an identity column's sequence, which
//! it does not know, travels with CACHE, as a placeholder that nobody can write.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::{is_word, words};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

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

/// Puts SEQUENCE NAME among the options of identity columns, and CACHE beside it, into one option.
pub(super) fn take_names(tokens: &mut Vec<TokenWithSpan>) {
    if !is_word(tokens.first(), "create") && !is_word(tokens.first(), "alter") {
        return;
    }
    // Whose sequence it is says whether it is unlogged.
    if words(tokens, 0, &["create", "unlogged", "sequence"]) {
        tokens.remove(1);
    }
    let mut at = 0;
    while at + 1 < tokens.len() {
        let opens = matches!(tokens[at + 1].token, Token::LParen);
        at += 1;
        if !opens || !is_word(tokens.get(at - 1), "identity") {
            continue;
        }
        let first = at + 1;
        let closes = |t: &TokenWithSpan| matches!(t.token, Token::RParen);
        let Some(mut length) = tokens[first..].iter().position(closes) else {
            return;
        };
        // It is as its table is.
        let persistence =
            |at: &usize| is_word(tokens.get(*at), "logged") || is_word(tokens.get(*at), "unlogged");
        if let Some(said) = (first..first + length).find(persistence) {
            tokens.remove(said);
            length -= 1;
        }
        if let Some(options) = with_name(&tokens[first..first + length]) {
            tokens.splice(first..first + length, options);
        }
    }
}

/// The options with their SEQUENCE NAME and CACHE in one; none if there is no name.
fn with_name(options: &[TokenWithSpan]) -> Option<Vec<TokenWithSpan>> {
    let start = (0..options.len()).find(|at| words(options, *at, &["sequence", "name"]))?;
    let mut end = start + 2;
    let mut carried = String::new();
    loop {
        let Token::Word(part) = &options.get(end)?.token else {
            return None;
        };
        let part = match part.quote_style {
            Some(_) => part.value.clone(),
            None => part.value.to_lowercase(),
        };
        carried.push(EXPRESSION_MARK);
        carried.push_str(&part);
        end += 1;
        if !matches!(options.get(end).map(|t| &t.token), Some(Token::Period)) {
            break;
        }
        end += 1;
    }
    let mut rest = [&options[..start], &options[end..]].concat();
    let mut cache = String::new();
    if let Some(at) = (0..rest.len()).find(|at| is_word(rest.get(*at), "cache")) {
        let Token::Number(number, _) = &rest.get(at + 1)?.token else {
            return None;
        };
        cache.clone_from(number);
        rest.drain(at..at + 2);
    }
    let span = options.get(start)?.span;
    let word = Word {
        value: "CACHE".to_owned(),
        quote_style: None,
        keyword: Keyword::CACHE,
    };
    for token in [
        Token::Word(word),
        Token::Placeholder(format!("{EXPRESSION_MARK}{cache}{carried}")),
    ] {
        rest.push(TokenWithSpan { token, span });
    }
    Some(rest)
}

/// What `take_names` put into a CACHE: the number, if there was one, and the parts of the name.
pub fn sequence_name(cache: &ast::Expr) -> Option<(Option<ast::Expr>, Vec<String>)> {
    let ast::Expr::Value(value) = cache else {
        return None;
    };
    let ast::Value::Placeholder(text) = &value.value else {
        return None;
    };
    let mut parts = text.strip_prefix(EXPRESSION_MARK)?.split(EXPRESSION_MARK);
    let number = parts.next().filter(|number| !number.is_empty());
    let number = number.map(|n| ast::Expr::value(ast::Value::Number(n.to_owned(), false)));
    Some((number, parts.map(str::to_owned).collect()))
}
