//! Literals `E'...'` whose escapes the grammar library's tokenizer does not read as PostgreSQL does: bytes beyond
//! ASCII,
//! pairs of surrogates, and what is wrong with an escape.
//!
//! Such a literal's text is blanked, character for character, before the text is divided into tokens; what it stands
//! for
//! takes its place after.

use super::operators::{
    comment, comment_length, dollar_length, has_escapes, is_of_name, quoted_length,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::collections::HashMap;

/// The text with such literals blanked, and what each stands for, by the byte of its `E`.
pub(super) fn read_ahead(text: Cow<'_, str>) -> Result<(Cow<'_, str>, HashMap<usize, String>)> {
    let mut found = HashMap::new();
    if !(text.contains("E'") || text.contains("e'")) || !text.contains('\\') {
        return Ok((text, found));
    }
    let bytes = text.as_bytes();
    let mut blanked = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            _ if comment(rest) => comment_length(rest),
            b'\'' if has_escapes(bytes, at) => {
                let mut length = quoted_length(rest, b'\'', true);
                // A doubled quote ends nothing.
                while bytes.get(at + length) == Some(&b'\'') {
                    let more = bytes.get(at + length..).unwrap_or_default();
                    length += quoted_length(more, b'\'', true);
                }
                let body = text.get(at + 1..at + length).unwrap_or_default();
                if is_unusual(body) {
                    let value = unescaped(&text, at + 1, body)?;
                    // One that is not ended is the tokenizer's to tell.
                    if let Some(value) = value {
                        found.insert(at - 1, value);
                        blanked.push_str(text.get(copied..=at).unwrap_or_default());
                        let inside = body.get(..body.len() - 1).unwrap_or_default();
                        blanked.extend(inside.chars().map(|c| match c {
                            '\n' => '\n',
                            _ => 'x',
                        }));
                        copied = at + length - 1;
                    }
                }
                length
            }
            b'\'' => quoted_length(rest, b'\'', false),
            b'"' => quoted_length(rest, b'"', false),
            b'$' => dollar_length(bytes, at),
            b if is_of_name(b) => rest.iter().take_while(|b| is_of_name(**b)).count(),
            _ => 1,
        };
    }
    if found.is_empty() {
        return Ok((text, found));
    }
    blanked.push_str(text.get(copied..).unwrap_or_default());
    Ok((Cow::Owned(blanked), found))
}

/// Whether there is an escape by number.
fn is_unusual(body: &str) -> bool {
    let mut bytes = body.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && matches!(bytes.next(), Some(b'u' | b'U' | b'x' | b'0'..=b'7')) {
            return true;
        }
    }
    false
}

/// What stands between the quotes, as PostgreSQL's scanner reads it. `body` begins at `start` and includes the closing
/// quote; nothing if there is none.
fn unescaped(text: &str, start: usize, body: &str) -> Result<Option<String>> {
    let bytes = body.as_bytes();
    let place = |at: usize| Some(text.get(..start + at)?.chars().count() + 1);
    let near = |what: &str, at: usize, end: usize| {
        let near = body.get(at..end).unwrap_or_default();
        SqlError::new(
            SqlState::SYNTAX_ERROR,
            format!("{what} at or near \"{near}\""),
        )
        .at(place(at))
    };
    let mut out: Vec<u8> = Vec::with_capacity(body.len());
    // The first of a pair of surrogates.
    let mut first: Option<u32> = None;
    let mut at = 0;
    let mut closed = false;
    while let Some(&byte) = bytes.get(at) {
        let next = bytes.get(at + 1).copied();
        let by_code = byte == b'\\' && matches!(next, Some(b'u' | b'U'));
        if first.is_some() && !by_code {
            let end = at
                + body
                    .get(at..)
                    .and_then(|r| r.chars().next())
                    .map_or(1, char::len_utf8);
            return Err(near("invalid Unicode surrogate pair", at, end));
        }
        match (byte, next) {
            (b'\'', Some(b'\'')) => {
                out.push(b'\'');
                at += 2;
            }
            (b'\'', _) => {
                closed = true;
                break;
            }
            (b'\\', Some(letter @ (b'u' | b'U'))) => {
                let wanted = if letter == b'u' { 4 } else { 8 };
                let digits = bytes.get(at + 2..).unwrap_or_default();
                let length = { digits.iter().take(wanted) }
                    .take_while(|b| b.is_ascii_hexdigit())
                    .count();
                if length < wanted {
                    let error = SqlError::new(SqlState::new(b"22025"), "invalid Unicode escape");
                    let hint = "Unicode escapes must be \\uXXXX or \\UXXXXXXXX.";
                    return Err(error.hint(hint).at(place(at)));
                }
                let end = at + 2 + wanted;
                let code = body.get(at + 2..end).unwrap_or_default();
                let code = u32::from_str_radix(code, 16).unwrap_or(u32::MAX);
                let code = match (first.take(), code) {
                    (Some(high), 0xDC00..=0xDFFF) => {
                        Some(0x10000 + ((high & 0x3FF) << 10) + (code & 0x3FF))
                    }
                    (Some(_), _) | (None, 0xDC00..=0xDFFF) => {
                        return Err(near("invalid Unicode surrogate pair", at, end));
                    }
                    (None, 0xD800..=0xDBFF) => {
                        first = Some(code);
                        None
                    }
                    (None, code) => Some(code),
                };
                if let Some(code) = code {
                    let character = char::from_u32(code).filter(|_| code != 0);
                    let Some(character) = character else {
                        return Err(near("invalid Unicode escape value", at, end));
                    };
                    out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                }
                at = end;
            }
            (b'\\', Some(letter)) => {
                let digits = bytes.get(at + 1..).unwrap_or_default();
                let octal = { digits.iter().take(3) }
                    .take_while(|b| matches!(b, b'0'..=b'7'))
                    .count();
                let hexadecimal = match letter {
                    b'x' => { digits.iter().skip(1).take(2) }
                        .take_while(|b| b.is_ascii_hexdigit())
                        .count(),
                    _ => 0,
                };
                let number = |from: usize, length: usize, radix: u32| {
                    let digits = body.get(from..from + length).unwrap_or_default();
                    u32::from_str_radix(digits, radix).unwrap_or_default()
                };
                if octal > 0 {
                    out.push((number(at + 1, octal, 8) & 0xFF) as u8);
                    at += 1 + octal;
                } else if hexadecimal > 0 {
                    out.push((number(at + 2, hexadecimal, 16) & 0xFF) as u8);
                    at += 2 + hexadecimal;
                } else {
                    out.push(match letter {
                        b'b' => 0x08,
                        b'f' => 0x0C,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        other => other,
                    });
                    at += 2;
                }
            }
            (byte, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    if !closed {
        return Ok(None);
    }
    let wrong = match out.iter().position(|b| *b == 0) {
        Some(zero) => Some(zero),
        None => std::str::from_utf8(&out)
            .err()
            .map(|error| error.valid_up_to()),
    };
    match (wrong, String::from_utf8(out)) {
        (None, Ok(value)) => Ok(Some(value)),
        (wrong, value) => {
            let bytes = value.map_or_else(|error| error.into_bytes(), String::into_bytes);
            let wrong = wrong.and_then(|at| bytes.get(at..)).unwrap_or_default();
            let length = match wrong.first() {
                Some(0xC2..=0xDF) => 2,
                Some(0xE0..=0xEF) => 3,
                Some(0xF0..=0xF4) => 4,
                _ => 1,
            };
            let shown: Vec<String> = { wrong.iter().take(length) }
                .map(|b| format!("0x{b:02x}"))
                .collect();
            Err(SqlError::new(
                SqlState::new(b"22021"),
                format!(
                    "invalid byte sequence for encoding \"UTF8\": {}",
                    shown.join(" ")
                ),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_stand_for_what_postgresql_reads() {
        let read = |text: &'static str| {
            let (blanked, found) = read_ahead(Cow::Borrowed(text)).unwrap();
            assert_eq!(blanked.chars().count(), text.chars().count());
            found.into_values().next()
        };
        assert_eq!(
            read(r"select E'\ud83d\ude04 it''s'").as_deref(),
            Some("😄 it's")
        );
        assert_eq!(read(r"select E'\xc3\xa4\101\n'").as_deref(), Some("äA\n"));
        assert_eq!(read(r"select E'a\nb', '\u0041'"), None);
        for (text, message) in [
            (r"E'\u061'", "invalid Unicode escape"),
            (
                r"E'\udb99xy'",
                "invalid Unicode surrogate pair at or near \"x\"",
            ),
            (
                r"E'\udb99'",
                "invalid Unicode surrogate pair at or near \"'\"",
            ),
            (
                r"E'\U002FFFFF'",
                "invalid Unicode escape value at or near \"\\U002FFFFF\"",
            ),
            (
                r"E'\xff'",
                "invalid byte sequence for encoding \"UTF8\": 0xff",
            ),
            (
                r"E'\000'",
                "invalid byte sequence for encoding \"UTF8\": 0x00",
            ),
        ] {
            let error = read_ahead(Cow::Borrowed(text)).unwrap_err();
            assert_eq!(error.fields().message, message);
        }
    }
}
