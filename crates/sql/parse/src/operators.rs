//! Where an operator ends, by PostgreSQL's rules, which the grammar library's tokenizer does not know.
//!
//! - A comment ends an operator: `1 <=/* a */ 2`. What follows an operator that closely is blanked before the text is divided into tokens, character for
//!   character, so that every position stays what it was.
//! - `+` or `-` ends one of several characters only if it also has one of `` ~ ! @ # % ^ & | ` ? ``: `1<>-1` compares with a negative number.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Tokenizer};
use std::borrow::Cow;

/// What operators consist of.
const CHARACTERS: &[u8] = b"~!@#^&|`?+-*/%<>=";
/// With one of these an operator may end with `+` or `-`.
const UNUSUAL: &[char] = &['~', '!', '@', '#', '^', '&', '|', '`', '?', '%'];

/// Does a comment begin here?
pub(super) fn comment(rest: &[u8]) -> bool {
    rest.starts_with(b"/*") || rest.starts_with(b"--")
}

/// The text without the comments that stand right behind an operator.
pub(super) fn without_comments_behind(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let may_be = |at: usize| at > 0 && CHARACTERS.contains(&bytes[at - 1]) && comment(&bytes[at..]);
    if !(0..bytes.len()).any(|at| matches!(bytes[at], b'/' | b'-') && may_be(at)) {
        return Cow::Borrowed(text);
    }
    let mut blanked = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &bytes[at..];
        let length = match bytes[at] {
            _ if comment(rest) => comment_length(rest),
            b'\'' => quoted_length(rest, b'\'', has_escapes(bytes, at)),
            b'"' => quoted_length(rest, b'"', false),
            b'$' => dollar_length(bytes, at),
            c if CHARACTERS.contains(&c) => {
                let length = operator_length(rest);
                let behind = &rest[length..];
                if comment(behind) {
                    let comment = comment_length(behind);
                    blanked.push(at + length..at + length + comment);
                    length + comment
                } else {
                    length
                }
            }
            _ => 1,
        };
        at += length;
    }
    if blanked.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut cleared = String::with_capacity(text.len());
    let mut from = 0;
    for range in blanked {
        cleared.push_str(text.get(from..range.start).unwrap_or_default());
        let comment = text.get(range.clone()).unwrap_or_default();
        cleared.extend(comment.chars().map(|c| match c {
            '\n' => '\n',
            _ => ' ',
        }));
        from = range.end;
    }
    cleared.push_str(text.get(from..).unwrap_or_default());
    Cow::Owned(cleared)
}

/// Up to the end, or the beginning of a comment.
fn operator_length(rest: &[u8]) -> usize {
    (0..rest.len())
        .find(|at| !CHARACTERS.contains(&rest[*at]) || comment(&rest[*at..]))
        .unwrap_or(rest.len())
}

pub(super) fn comment_length(rest: &[u8]) -> usize {
    if rest.starts_with(b"--") {
        return rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }
    let (mut open, mut at) = (0_usize, 0);
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            open += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            open = open.saturating_sub(1);
            at += 2;
            if open == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// `e'...'`?
pub(super) fn has_escapes(bytes: &[u8], quote: usize) -> bool {
    let before = |back: usize| quote.checked_sub(back).map(|at| bytes[at]);
    matches!(before(1), Some(b'e' | b'E')) && !before(2).is_some_and(is_of_name)
}

pub(super) fn is_of_name(b: u8) -> bool {
    b == b'_' || b == b'$' || b.is_ascii_alphanumeric() || b >= 0x80
}

pub(super) fn quoted_length(rest: &[u8], quote: u8, escapes: bool) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' if escapes => at += 2,
            // A doubled one ends a literal and begins the next.
            b if b == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// `$tag$...$tag$`, or the character alone.
pub(super) fn dollar_length(bytes: &[u8], at: usize) -> usize {
    if at > 0 && is_of_name(bytes[at - 1]) {
        return 1;
    }
    let rest = &bytes[at..];
    let tag = rest[1..]
        .iter()
        .take_while(|b| is_of_name(**b) && **b != b'$')
        .count();
    if rest.get(1 + tag) != Some(&b'$') || rest[1].is_ascii_digit() {
        return 1;
    }
    let tag = &rest[..tag + 2];
    let body = &rest[tag.len()..];
    body.windows(tag.len())
        .position(|found| found == tag)
        .map_or(rest.len(), |end| 2 * tag.len() + end)
}

/// An operator of which signs at the end are no part: it, and each of them. Anything else is none.
pub(super) fn with_signs(token: &TokenWithSpan) -> Option<Vec<TokenWithSpan>> {
    let Token::CustomBinaryOperator(written) = &token.token else {
        return None;
    };
    let kept = written.trim_end_matches(['+', '-']);
    if kept.len() == written.len() || written.contains(UNUSUAL) {
        return None;
    }
    // Signs alone are one each.
    let first = kept.len().max(1);
    let start = token.span.start;
    let place = |from: usize, to: usize| {
        let at = |column: usize| Location::new(start.line, start.column + column as u64);
        Span::new(at(from), at(to))
    };
    let operator = Tokenizer::new(&PostgreSqlDialect {}, written.get(..first)?).tokenize();
    let operator = operator.ok()?.into_iter().next()?;
    let mut all = vec![TokenWithSpan {
        token: operator,
        span: place(0, first),
    }];
    all.extend(written.char_indices().skip(first).map(|(at, sign)| {
        let token = match sign {
            '-' => Token::Minus,
            _ => Token::Plus,
        };
        TokenWithSpan {
            token,
            span: place(at, at + 1),
        }
    }));
    Some(all)
}

/// Writes `*<`, `*=` and their like, which compare records by their forms and which the library cuts behind the star,
/// as one operator each.
pub(super) fn of_images(tokens: &mut Vec<TokenWithSpan>) {
    let mut at = 1;
    while at < tokens.len() {
        let compares = match tokens[at].token {
            Token::Eq => "*=",
            Token::Neq => "*<>",
            Token::Lt => "*<",
            Token::Gt => "*>",
            Token::LtEq => "*<=",
            Token::GtEq => "*>=",
            _ => {
                at += 1;
                continue;
            }
        };
        let before = &tokens[at - 1];
        if before.token == Token::Mul && before.span.end == tokens[at].span.start {
            tokens[at].span.start = before.span.start;
            tokens[at].token = Token::CustomBinaryOperator(compares.to_owned());
            tokens.remove(at - 1);
        } else {
            at += 1;
        }
    }
}
