//! Escapes of characters by their numbers.

use logstead_sql_types::error::SqlError;
use logstead_types::SqlState;

/// Is the code the first half of a character of UTF-16?
pub(super) fn is_first_of_pair(code: u32) -> bool {
    (0xd800..0xdc00).contains(&code)
}

/// Is it the second?
pub(super) fn is_second_of_pair(code: u32) -> bool {
    (0xdc00..0xe000).contains(&code)
}

/// The character of both halves.
pub(super) fn of_pair(first: u32, second: u32) -> u32 {
    0x10000 + ((first & 0x3ff) << 10) + (second & 0x3ff)
}

/// May UESCAPE name this character?
pub(super) fn may_escape(byte: u8) -> bool {
    !byte.is_ascii_hexdigit()
        && !matches!(
            byte,
            b'+' | b'\'' | b'"' | b' ' | b'\t' | b'\n' | b'\r' | 0x0c
        )
}

/// What is wrong with an escape, and at which byte of the value.
pub(super) struct EscapeError {
    message: &'static str,
    hint: Option<&'static str>,
    at: usize,
}

impl EscapeError {
    /// The error, for a value that begins at `start`.
    pub(super) fn error(&self, text: &str, start: usize) -> Box<SqlError> {
        let error = SqlError::new(SqlState::SYNTAX_ERROR, self.message)
            .at(Some(super::character(text, start + self.at)));
        Box::new(match self.hint {
            Some(hint) => error.hint(hint),
            None => error,
        })
    }
}

/// The number that so many digits say at `at`.
fn code(value: &[u8], at: usize, digits: usize) -> Option<u32> {
    let digits = value.get(at..at + digits)?;
    let is_hex = digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

/// Reads the escapes of `U&'...'` and `U&"..."`: `\XXXX`, `\+XXXXXX` and `\\`.
pub(super) fn unescape(value: &str, escape: u8) -> Result<String, EscapeError> {
    let wrong = |message, at| EscapeError {
        message,
        hint: None,
        at,
    };
    let pair = "invalid Unicode surrogate pair";
    let bytes = value.as_bytes();
    let mut out = String::with_capacity(value.len());
    let mut first = None;
    let mut at = 0;
    while at < bytes.len() {
        if bytes.get(at) != Some(&escape) {
            if first.is_some() {
                return Err(wrong(pair, at));
            }
            let rest = value.get(at..).unwrap_or_default();
            let length = rest.bytes().position(|b| b == escape).unwrap_or(rest.len());
            out.push_str(rest.get(..length).unwrap_or_default());
            at += length;
            continue;
        }
        if bytes.get(at + 1) == Some(&escape) {
            if first.is_some() {
                return Err(wrong(pair, at));
            }
            out.push(char::from(escape));
            at += 2;
            continue;
        }
        let found = match code(bytes, at + 1, 4) {
            Some(code) => Some((code, 5)),
            None if bytes.get(at + 1) == Some(&b'+') => code(bytes, at + 2, 6).map(|c| (c, 8)),
            None => None,
        };
        let Some((code, length)) = found else {
            return Err(EscapeError {
                message: "invalid Unicode escape",
                hint: Some("Unicode escapes must be \\XXXX or \\+XXXXXX."),
                at,
            });
        };
        if code == 0 || code > 0x0010_ffff {
            return Err(wrong("invalid Unicode escape value", at));
        }
        let code = match first.take() {
            Some(first) if is_second_of_pair(code) => of_pair(first, code),
            Some(_) => return Err(wrong(pair, at)),
            None if is_second_of_pair(code) => return Err(wrong(pair, at)),
            None => code,
        };
        if is_first_of_pair(code) {
            first = Some(code);
        } else if let Some(character) = char::from_u32(code) {
            out.push(character);
        }
        at += length;
    }
    match first {
        Some(_) => Err(wrong(pair, bytes.len())),
        None => Ok(out),
    }
}

/// 22021 for what is no text, of which the first character is shown.
pub(super) fn invalid_bytes(bytes: &[u8]) -> SqlError {
    let length = match bytes.first() {
        Some(0xc0..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf7) => 4,
        _ => 1,
    };
    let shown: Vec<String> = bytes
        .iter()
        .take(length)
        .map(|b| format!("0x{b:02x}"))
        .collect();
    SqlError::new(
        SqlState::CHARACTER_NOT_IN_REPERTOIRE,
        format!(
            "invalid byte sequence for encoding \"UTF8\": {}",
            shown.join(" ")
        ),
    )
}
