//! Literals as `standard_conforming_strings = off` has them: a backslash in `'...'` begins an escape, as it does in `E'...'`.
//!
//! Owns: making such a text one that means the same with the setting on, which is what everything behind it reads: each literal of that
//! kind with a backslash in it becomes one with `E`. So texts that the catalog keeps, and bodies of functions, know nothing of the setting.
//!
//! Not here: the setting in the bodies of functions, which are read as if it were on. A literal that becomes longer moves what stands
//! behind it, so positions of errors may be off by as many characters.

use super::operators::{
    comment, comment_length, dollar_length, has_escapes, is_of_name, quoted_length,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What the settings say of literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiteralRules {
    /// standard_conforming_strings.
    pub conforming: bool,
    /// `\\'` may stand for a quote (backslash_quote, and the client's encoding).
    pub backslash_quote: bool,
    /// escape_string_warning.
    pub warns: bool,
}

impl LiteralRules {
    /// Nothing needs to be looked at.
    pub fn are_usual(self) -> bool {
        self.conforming && self.backslash_quote
    }
}

fn at_char(text: &str, byte: usize) -> Option<usize> {
    Some(text.get(..byte)?.chars().count() + 1)
}

/// What is told of a literal with an escape, by the first one in it.
fn warning(text: &str, start: usize, body: &str) -> Option<SqlError> {
    let at = body.find('\\')?;
    let (message, hint) = match body.as_bytes().get(at + 1) {
        Some(b'\'') => (
            "nonstandard use of \\' in a string literal",
            "Use '' to write quotes in strings, or use the escape string syntax (E'...').",
        ),
        Some(b'\\') => (
            "nonstandard use of \\\\ in a string literal",
            "Use the escape string syntax for backslashes, e.g., E'\\\\'.",
        ),
        _ => (
            "nonstandard use of escape in a string literal",
            "Use the escape string syntax for escapes, e.g., E'\\r\\n'.",
        ),
    };
    let error = SqlError::new(SqlState::new(b"22P06"), message).hint(hint);
    Some(error.at(at_char(text, start)))
}

fn has_quoted_quote(body: &str) -> bool {
    let mut bytes = body.bytes();
    while let Some(byte) = bytes.next() {
        if byte == b'\\' && bytes.next() == Some(b'\'') {
            return true;
        }
    }
    false
}

fn unsafe_quote(text: &str, start: usize) -> SqlError {
    let message = "unsafe use of \\' in a string literal";
    let error = SqlError::new(SqlState::new(b"22P06"), message);
    let error =
        error.hint("Use '' to write quotes in strings. \\' is insecure in client-only encodings.");
    error.at(at_char(text, start))
}

/// Does a literal go on behind this place, in another line? Where its next part begins.
fn next_part(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let mut new_line = false;
    loop {
        match bytes.get(at)? {
            b'\n' | b'\r' => new_line = true,
            b' ' | b'\t' | 0x0c => {}
            b'-' if bytes.get(at + 1) == Some(&b'-') && new_line => {
                at += comment_length(bytes.get(at..)?);
                continue;
            }
            b'\'' if new_line => return Some(at),
            _ => return None,
        }
        at += 1;
    }
}

/// The text as it is with the setting on, if that is another one, and what is warned of.
pub fn conforming(text: &str, rules: LiteralRules) -> Result<(Option<String>, Vec<SqlError>)> {
    let bytes = text.as_bytes();
    let mut warnings = Vec::new();
    if !text.contains('\\') && !text.contains('&') {
        return Ok((None, warnings));
    }
    let mut out = String::new();
    let (mut at, mut copied) = (0, 0);
    while let Some(&byte) = bytes.get(at) {
        let rest = bytes.get(at..).unwrap_or_default();
        at += match byte {
            _ if comment(rest) => comment_length(rest),
            b'"' => quoted_length(rest, b'"', false),
            b'$' => dollar_length(bytes, at),
            b'\'' => {
                let before =
                    |back: usize| at.checked_sub(back).and_then(|at| bytes.get(at)).copied();
                let prefixed = |letters: &[u8], back: usize| {
                    before(back).is_some_and(|b| letters.contains(&b))
                        && !before(back + 1).is_some_and(is_of_name)
                };
                if !rules.conforming && before(1) == Some(b'&') && prefixed(b"uU", 2) {
                    let error = SqlError::unsupported_text(
                        "unsafe use of string constant with Unicode escapes",
                    );
                    let detail = "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.";
                    return Err(error.detail(detail).at(at_char(text, at - 2)));
                }
                let escapes = has_escapes(bytes, at);
                let ordinary = !rules.conforming && !escapes && !prefixed(b"bBxX", 1);
                let mut length = quoted_length(rest, b'\'', escapes || ordinary);
                let body = |from: usize, length: usize| {
                    text.get(from + 1..(from + length).saturating_sub(1))
                        .unwrap_or_default()
                };
                let mut parts = body(at, length).to_owned();
                // A doubled quote ends nothing.
                while bytes.get(at + length) == Some(&b'\'') {
                    let more = quoted_length(
                        bytes.get(at + length..).unwrap_or_default(),
                        b'\'',
                        escapes || ordinary,
                    );
                    parts.push_str("''");
                    parts.push_str(body(at + length, more));
                    length += more;
                }
                if ordinary {
                    while let Some(next) = next_part(bytes, at + length) {
                        let more =
                            quoted_length(bytes.get(next..).unwrap_or_default(), b'\'', true);
                        parts.push_str(body(next, more));
                        length = next + more - at;
                    }
                }
                if (escapes || ordinary) && !rules.backslash_quote && has_quoted_quote(&parts) {
                    return Err(unsafe_quote(text, at));
                }
                if ordinary && parts.contains('\\') {
                    if rules.warns {
                        warnings.extend(warning(text, at, &parts));
                    }
                    out.push_str(text.get(copied..at).unwrap_or_default());
                    if before(1).is_some_and(is_of_name) {
                        out.push(' ');
                    }
                    out.push_str("E'");
                    out.push_str(&parts);
                    out.push('\'');
                    copied = at + length;
                }
                length
            }
            b if is_of_name(b) => rest.iter().take_while(|b| is_of_name(**b)).count(),
            _ => 1,
        };
    }
    if copied == 0 {
        return Ok((None, warnings));
    }
    out.push_str(text.get(copied..).unwrap_or_default());
    Ok((Some(out), warnings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ordinary_literals_with_backslashes_change() {
        let off = LiteralRules {
            conforming: false,
            backslash_quote: true,
            warns: true,
        };
        let read = |text: &str| {
            let (changed, warned) = conforming(text, off).unwrap();
            (changed.unwrap_or_else(|| text.to_owned()), warned.len())
        };
        for (text, becomes, warned) in [
            (r"select 'a\nb', 'c'", r"select E'a\nb', 'c'", 1),
            (r"select'a\'b'", r"select E'a\'b'", 1),
            (
                r"select E'a\n', $$'\$$, U'x\y'",
                r"select E'a\n', $$'\$$, U E'x\y'",
                1,
            ),
            (
                r"select 'it''s \\' -- 'a\b",
                r"select E'it''s \\' -- 'a\b",
                1,
            ),
            ("select 'a'\n 'b\\t', X'1f'", "select E'ab\\t', X'1f'", 1),
        ] {
            assert_eq!(read(text), (becomes.to_owned(), warned));
        }
        assert!(conforming(r"select U&'a'", off).is_err());
    }
}
