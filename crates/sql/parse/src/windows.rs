//! Frames of windows: what the grammar library does not know of them.

use super::conflict_target::EXPRESSION_MARK;
use super::rewrite::{is_word, words};
use sqlparser::ast;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

/// Puts a string that is an offset of the frame whose units stand at `at` in parentheses: alone it would be taken for an
/// interval.
pub(super) fn literal_offsets(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    let mut first = at + 1;
    if is_word(tokens.get(first), "between") {
        first += 1;
        let mut depth = 0_usize;
        let mut and = first;
        while let Some(token) = tokens.get(and) {
            match &token.token {
                Token::LParen => depth += 1,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                _ if depth == 0 && is_word(Some(token), "and") => {
                    parenthesise(tokens, and + 1);
                    break;
                }
                _ => {}
            }
            and += 1;
        }
    }
    parenthesise(tokens, first);
}

fn parenthesise(tokens: &mut Vec<TokenWithSpan>, at: usize) {
    if let Some(token) = tokens.get(at).cloned()
        && matches!(token.token, Token::SingleQuotedString(_))
    {
        let span = token.span;
        let around = |token| TokenWithSpan { token, span };
        tokens.splice(
            at..=at,
            [around(Token::LParen), token, around(Token::RParen)],
        );
    }
}

/// What EXCLUDE says, as a window's name carries it, and in words.
pub const EXCLUSIONS: [(char, &str); 4] = [
    ('0', "NO OTHERS"),
    ('1', "CURRENT ROW"),
    ('2', "GROUP"),
    ('3', "TIES"),
];

/// The name in a name that carries EXCLUDE, as it is folded, and what is excluded; `None` if it carries nothing.
pub fn carried(ident: &ast::Ident) -> Option<(Option<&str>, char)> {
    let rest = ident.value.strip_prefix(EXPRESSION_MARK)?;
    let kind = rest.chars().next()?;
    let name = rest.get(kind.len_utf8()..).filter(|name| !name.is_empty());
    Some((name, kind))
}

/// Takes EXCLUDE at `at` out of a window's definition: it travels in the name of the window that it continues, which nobody
/// can write. False where it is none of a window's.
pub(super) fn exclusion(tokens: &mut Vec<TokenWithSpan>, at: usize) -> bool {
    let (kind, length) = if words(tokens, at + 1, &["no", "others"]) {
        ('0', 3)
    } else if words(tokens, at + 1, &["current", "row"]) {
        ('1', 3)
    } else if words(tokens, at + 1, &["group"]) {
        ('2', 2)
    } else if words(tokens, at + 1, &["ties"]) {
        ('3', 2)
    } else {
        return false;
    };
    let is = |at: usize, token: &Token| tokens.get(at).is_some_and(|t| t.token == *token);
    if !is(at + length, &Token::RParen) {
        return false;
    }
    // The parenthesis that it stands in.
    let mut open = at;
    let mut depth = 0_usize;
    loop {
        let Some(before) = open.checked_sub(1) else {
            return false;
        };
        open = before;
        match tokens[open].token {
            Token::RParen => depth += 1,
            Token::LParen if depth == 0 => break,
            Token::LParen => depth -= 1,
            _ => {}
        }
    }
    let before = open.checked_sub(1).and_then(|before| tokens.get(before));
    let has_frame = ["rows", "range", "groups"];
    if !(is_word(before, "over") || is_word(before, "as"))
        || !tokens[open..at]
            .iter()
            .any(|token| has_frame.iter().any(|word| is_word(Some(token), word)))
    {
        return false;
    }
    tokens.drain(at..at + length);
    let (name, span) = match tokens.get(open + 1) {
        Some(TokenWithSpan {
            token: Token::Word(word),
            span,
        }) if word.keyword == Keyword::NoKeyword || word.quote_style.is_some() => {
            let name = match word.quote_style {
                Some(_) => word.value.clone(),
                None => word.value.to_lowercase(),
            };
            let span = *span;
            tokens.remove(open + 1);
            (name, span)
        }
        _ => (String::new(), tokens[open].span),
    };
    let word = Word {
        value: format!("{EXPRESSION_MARK}{kind}{name}"),
        quote_style: Some('"'),
        keyword: Keyword::NoKeyword,
    };
    let token = TokenWithSpan {
        token: Token::Word(word),
        span,
    };
    tokens.insert(open + 1, token);
    true
}
