//! Literals as `standard_conforming_strings = off` has them: a backslash in `'...'` begins an escape, as it does in
//! `E'...'`.
//!
//! Owns: making such a text one that means the same with the setting on, which is what everything behind it reads: each
//! literal of that kind with a backslash in it becomes one with `E`. So texts that the catalog keeps, and bodies of
//! functions, know nothing of the setting.
//!
//! Not here: the setting in the bodies of functions, which are read as if it were on. A literal that becomes longer
//! moves what stands behind it, so positions of errors may be off by as many characters.

use crate::lexer::{Lexer, LexerOptions, TokenKind, character};
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
    Some(error.at(Some(character(text, start))))
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
    error.at(Some(character(text, start)))
}

fn is_of_name(byte: u8) -> bool {
    byte == b'_' || byte == b'$' || byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// What stands between the quotes of a literal with escapes, from its first quote on: all its parts, if it goes on in
/// other lines.
fn body_of(written: &str) -> String {
    let bytes = written.as_bytes();
    let mut body = String::with_capacity(written.len());
    let (mut at, mut from) = (1, 1);
    while let Some(byte) = bytes.get(at) {
        at += match (byte, bytes.get(at + 1)) {
            (b'\\', _) | (b'\'', Some(b'\'')) => 2,
            (b'\'', _) => {
                body.push_str(written.get(from..at).unwrap_or_default());
                from = next_part(bytes, at + 1);
                from - at
            }
            _ => 1,
        };
    }
    body
}

/// Behind the quote that begins a literal's next part, or the end of the literal.
fn next_part(bytes: &[u8], from: usize) -> usize {
    let mut in_comment = false;
    for (at, byte) in bytes.iter().enumerate().skip(from) {
        match byte {
            b'\n' | b'\r' => in_comment = false,
            b'-' => in_comment = true,
            b'\'' if !in_comment => return at + 1,
            _ => {}
        }
    }
    bytes.len()
}

/// The text as it is with the setting on, if that is another one, and what is warned of.
pub fn conforming(text: &str, rules: LiteralRules) -> Result<(Option<String>, Vec<SqlError>)> {
    let mut warnings = Vec::new();
    if !text.contains('\\') && !text.contains('&') {
        return Ok((None, warnings));
    }
    let options = LexerOptions {
        standard_conforming_strings: rules.conforming,
    };
    let tokens = Lexer::client(text, options);
    let mut out = String::new();
    let mut copied = 0;
    let literals = { tokens.tokens.iter() }.filter(|token| token.kind == TokenKind::SConst);
    for token in literals {
        let (start, written) = (token.start as usize, tokens.written(*token));
        let is_ordinary = written.starts_with('\'') && !rules.conforming;
        let has_escapes = written.starts_with(['e', 'E']);
        if !is_ordinary && !has_escapes || !written.contains('\\') {
            continue;
        }
        let body = body_of(written.get(usize::from(has_escapes)..).unwrap_or_default());
        if !rules.backslash_quote && has_quoted_quote(&body) {
            return Err(unsafe_quote(text, start));
        }
        if is_ordinary && body.contains('\\') {
            if rules.warns {
                warnings.extend(warning(text, start, &body));
            }
            out.push_str(text.get(copied..start).unwrap_or_default());
            if out.bytes().last().is_some_and(is_of_name) {
                out.push(' ');
            }
            out.push_str("E'");
            out.push_str(&body);
            out.push('\'');
            copied = token.end as usize;
        }
    }
    // With the setting on the text may be right.
    match tokens.error {
        Some(error) if !rules.conforming => return Err(error),
        _ if copied == 0 => return Ok((None, warnings)),
        _ => out.push_str(text.get(copied..).unwrap_or_default()),
    }
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
            (
                "select 'a' -- it's\n 'b\\t' -- 'c'\n",
                "select E'ab\\t' -- 'c'\n",
                1,
            ),
        ] {
            assert_eq!(read(text), (becomes.to_owned(), warned));
        }
        assert!(conforming(r"select U&'a'", off).is_err());
        // Without the setting this has no end.
        assert!(conforming(r"select 'a\'", off).is_err());
        let on = LiteralRules {
            conforming: true,
            backslash_quote: false,
            warns: true,
        };
        assert!(conforming(r"select 'a\', $$\'$$", on).unwrap().0.is_none());
        assert!(conforming(r"select E'a\'b'", on).is_err());
    }
}
