//! The target of ON CONFLICT, whose expressions and predicate the grammar library has no place for.

use super::position::byte_of;
use super::rewrite::is_word;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Marks the text of an expression in the column list of ON CONFLICT; twice, of its predicate. No statement has the byte.
pub const EXPRESSION_MARK: char = '\0';

/// ON CONFLICT (lower(a), b) WHERE predicate DO: the tree has place for names only, so expressions and the predicate travel
/// in names that nobody can write.
pub(super) fn conflict_target(text: &str, tokens: &mut Vec<TokenWithSpan>, open: usize) {
    if !matches!(tokens.get(open).map(|t| &t.token), Some(Token::LParen)) {
        return;
    }
    let mut depth = 0_usize;
    let mut at = open;
    // Where the elements begin and end, then the predicate.
    let (mut elements, mut start) = (Vec::new(), open + 1);
    let (mut close, mut predicate, mut end) = (None, None, None);
    while let Some(token) = tokens.get(at) {
        match &token.token {
            Token::LParen => depth += 1,
            Token::RParen => {
                depth = depth.saturating_sub(1);
                if depth == 0 && close.is_none() {
                    elements.push(start..at);
                    close = Some(at);
                }
            }
            Token::Comma if depth == 1 && close.is_none() => {
                elements.push(start..at);
                start = at + 1;
            }
            Token::Word(_) if depth == 0 => {
                if is_word(Some(token), "where") && predicate.is_none() {
                    predicate = Some(at + 1);
                } else if is_word(Some(token), "do") {
                    end = Some(at);
                    break;
                } else if predicate.is_none() {
                    break;
                }
            }
            _ => {}
        }
        at += 1;
    }
    let (Some(close), Some(end)) = (close, end) else {
        return;
    };
    let is_name = |range: &std::ops::Range<usize>| {
        range.len() == 1 && matches!(tokens[range.start].token, Token::Word(_))
    };
    if predicate.is_none() && elements.iter().all(is_name) {
        return;
    }
    let marked = |mark: &str, range: std::ops::Range<usize>| -> Option<TokenWithSpan> {
        let (first, last) = (
            tokens.get(range.start)?,
            tokens.get(range.end.checked_sub(1)?)?,
        );
        let written = text.get(byte_of(text, first.span.start)..byte_of(text, last.span.end))?;
        Some(TokenWithSpan {
            token: Token::Word(Word {
                value: format!("{mark}{written}"),
                quote_style: Some('"'),
                keyword: Keyword::NoKeyword,
            }),
            span: first.span,
        })
    };
    let mark = EXPRESSION_MARK.to_string();
    let mut names = Vec::new();
    for range in elements {
        if range.is_empty() {
            return;
        }
        if is_name(&range) {
            names.push(tokens[range.start].clone());
        } else {
            names.extend(marked(&mark, range));
        }
    }
    if let Some(from) = predicate {
        if from >= end {
            return;
        }
        names.extend(marked(&mark.repeat(2), from..end));
    }
    let span = tokens[close].span;
    let comma = || TokenWithSpan {
        token: Token::Comma,
        span,
    };
    let mut list = Vec::with_capacity(names.len() * 2);
    for name in names {
        if !list.is_empty() {
            list.push(comma());
        }
        list.push(name);
    }
    let rest = tokens.split_off(end);
    let close = tokens[close].clone();
    tokens.truncate(open + 1);
    tokens.extend(list);
    tokens.push(close);
    tokens.extend(rest);
}
