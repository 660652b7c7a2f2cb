//! LIKE, and SIMILAR TO as a regular expression.

use super::arithmetic::{bad_args, bad_pair};
use crate::patterns::texts;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::STRIDE_BYTES;
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;

pub(super) fn escape_at_end() -> SqlError {
    SqlError::new(
        SqlState::INVALID_ESCAPE_SEQUENCE,
        "LIKE pattern must not end with escape character",
    )
}

pub(super) fn escape_too_long() -> SqlError {
    SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid escape string")
        .hint("Escape string must be empty or one character.")
}

fn char_len(b: u8) -> usize {
    match b {
        0..=0x7f => 1,
        0x80..=0xdf => 2,
        0xe0..=0xef => 3,
        _ => 4,
    }
}

/// True if `text` matches a LIKE pattern (`%`, `_`, escape `\`).
pub fn like_match(text: &str, pattern: &str) -> Result<bool> {
    let (t, p) = (text.as_bytes(), pattern.as_bytes());
    let (mut ti, mut pi) = (0, 0);
    // Where to resume after the last %: pattern position behind it, and the next text position to try.
    let mut resume: Option<(usize, usize)> = None;
    let mut steps = 0_usize;
    loop {
        steps += 1;
        if steps.is_multiple_of(STRIDE_BYTES) {
            check_for_interrupts()?;
        }
        if ti >= t.len() {
            // What is left of the pattern must be able to match nothing.
            return Ok(p[pi..].iter().all(|c| *c == b'%'));
        }
        let matched = match p.get(pi) {
            Some(b'%') => {
                pi += 1;
                if pi == p.len() {
                    return Ok(true);
                }
                resume = Some((pi, ti));
                continue;
            }
            None => false,
            Some(b'_') => {
                ti += char_len(t[ti]);
                pi += 1;
                true
            }
            Some(b'\\') => match p.get(pi + 1) {
                None => return Err(escape_at_end()),
                Some(c) if t.get(ti) == Some(c) => {
                    ti += 1;
                    pi += 2;
                    true
                }
                Some(_) => false,
            },
            Some(c) if t.get(ti) == Some(c) => {
                ti += 1;
                pi += 1;
                true
            }
            Some(_) => false,
        };
        if matched {
            continue;
        }
        match resume {
            Some((at, from)) if from < t.len() => {
                let next = from + char_len(t[from]);
                let next = match p.get(at) {
                    // What begins with a character of its own can only begin where that stands.
                    Some(first) if !matches!(first, b'%' | b'_' | b'\\') => {
                        match memchr::memchr(*first, t.get(next..).unwrap_or_default()) {
                            Some(skipped) => next + skipped,
                            None => return Ok(false),
                        }
                    }
                    _ => next,
                };
                resume = Some((at, next));
                (pi, ti) = (at, next.min(t.len()));
            }
            // PostgreSQL notices a bad end of the pattern only when it gets there; so do we.
            _ => return Ok(false),
        }
    }
}

/// The literal text a LIKE pattern starts with, and whether the pattern is nothing else: what an index can search by.
pub fn like_prefix(pattern: &str) -> (String, bool) {
    let mut prefix = String::new();
    let mut chars = pattern.chars();
    while let Some(c) = chars.next() {
        match c {
            '%' | '_' => return (prefix, false),
            '\\' => match chars.next() {
                Some(c) => prefix.push(c),
                None => return (prefix, false),
            },
            c => prefix.push(c),
        }
    }
    (prefix, true)
}

fn matches(a: &Datum, b: &Datum) -> Result<bool> {
    match (a, b) {
        (Datum::Text(text), Datum::Text(pattern)) => like_match(text, pattern),
        _ => Err(bad_pair(a, b)),
    }
}

/// `~~`
pub(super) fn like(a: &Datum, b: &Datum) -> Result<Datum> {
    matches(a, b).map(Datum::Bool)
}

/// `!~~`
pub(super) fn not_like(a: &Datum, b: &Datum) -> Result<Datum> {
    matches(a, b).map(|m| Datum::Bool(!m))
}

/// `~~*`
pub(super) fn ilike(a: &[Datum]) -> Result<Datum> {
    let (t, p) = texts(a)?;
    like_match(
        &logstead_sql_types::value::case::lower_text(t),
        &logstead_sql_types::value::case::lower_text(p),
    )
    .map(Datum::Bool)
}

/// `!~~*`
pub(super) fn not_ilike(a: &[Datum]) -> Result<Datum> {
    match ilike(a)? {
        Datum::Bool(m) => Ok(Datum::Bool(!m)),
        other => Ok(other),
    }
}

/// Rewrites a pattern with its own escape character to one with a backslash (`LIKE ... ESCAPE`).
pub(super) fn like_escape(a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = texts(a)?;
    let mut chars = escape.chars();
    let e = chars.next();
    if chars.next().is_some() {
        return Err(escape_too_long());
    }
    let mut out = String::with_capacity(pattern.len() + 4);
    let mut after = false;
    for c in pattern.chars() {
        if Some(c) == e && !after {
            out.push('\\');
            after = true;
            continue;
        }
        if c == '\\' && !after {
            out.push('\\');
        }
        out.push(c);
        after = false;
    }
    Ok(Datum::text(out))
}

/// `SIMILAR TO`'s pattern as a regular expression.
pub(super) fn similar_to_escape(a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = match a {
        [Datum::Text(p)] => (p, Some('\\')),
        [Datum::Text(p), Datum::Text(e)] => {
            let mut chars = e.chars();
            let first = chars.next();
            if chars.next().is_some() {
                return Err(escape_too_long());
            }
            (p, first)
        }
        _ => return Err(bad_args(a)),
    };
    let mut out = String::from("^(?:");
    let mut escaped = false;
    let mut bracket = false;
    let mut separators = 0;
    for c in pattern.chars() {
        if escaped && c == '"' && !bracket {
            // What stands between two of these is what substring gives: the part in front of it takes as little as
            // it can.
            out.push_str(match separators {
                0 => "){1,1}?(",
                1 => "){1,1}(?:",
                _ => {
                    return Err(SqlError::new(
                        SqlState::INVALID_USE_OF_ESCAPE_CHARACTER,
                        "SQL regular expression may not contain more than two escape-double-quote separators",
                    ));
                }
            });
            separators += 1;
            escaped = false;
        } else if escaped {
            out.push('\\');
            out.push(c);
            escaped = false;
        } else if Some(c) == escape {
            escaped = true;
        } else if bracket {
            if c == '\\' {
                out.push('\\');
            }
            out.push(c);
            bracket = c != ']';
        } else {
            match c {
                '[' => {
                    out.push(c);
                    bracket = true;
                }
                '%' => out.push_str(".*"),
                '_' => out.push('.'),
                '(' => out.push_str("(?:"),
                '\\' | '.' | '^' | '$' => {
                    out.push('\\');
                    out.push(c);
                }
                _ => out.push(c),
            }
        }
    }
    out.push_str(")$");
    Ok(Datum::text(out))
}

/// `substring(text similar pattern escape character)`
pub(super) fn substring_similar(a: &[Datum]) -> Result<Datum> {
    let [text, pattern, escape] = a else {
        return Err(bad_args(a));
    };
    let pattern = similar_to_escape(&[pattern.clone(), escape.clone()])?;
    super::patterns::substring_regex(&[text.clone(), pattern])
}
