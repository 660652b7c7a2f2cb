//! Names in quotes, and literals.

use super::{IN_TEXT, Keyword, LexResult, Lexer, MARKS_END, TokenKind, escapes};
use logstead_sql_types::error::SqlError;
use logstead_sql_types::value::names::NAME_LENGTH_MAX;
use logstead_types::SqlState;
use std::borrow::Cow;

/// What stands between quotes.
struct Quoted<'a> {
    /// What it says: a slice of the text, unless a quote is doubled or it goes on in another line.
    value: Cow<'a, str>,
    /// Behind the last quote.
    end: usize,
}

impl<'a> Lexer<'a> {
    /// Where a literal goes on that has ended in front of `from`: behind the quote that begins its next part, which
    /// stands in a line of its own (`quotecontinue`).
    fn continued(&self, from: usize) -> Option<usize> {
        let mut at = from;
        let mut is_new_line = false;
        loop {
            match self.byte(at) {
                b'\n' | b'\r' => {
                    is_new_line = true;
                    at += 1;
                }
                b' ' | b'\t' | 0x0c => at += 1,
                b'-' if self.byte(at + 1) == b'-' => at = self.line_end(at),
                b'\'' if is_new_line => return Some(at + 1),
                _ => return None,
            }
        }
    }

    /// Behind white space and comments; a comment without an end stays.
    fn blank_end(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            at = match (self.byte(at), self.byte(at + 1)) {
                (b' ' | b'\t' | b'\n' | b'\r' | 0x0c, _) => at + 1,
                (b'-', b'-') => self.line_end(at),
                (b'/', b'*') => match self.comment_end(at) {
                    Ok(end) => end,
                    Err(_) => return at,
                },
                _ => return at,
            };
        }
    }

    /// What stands in quotes that begin at `open`; a quote in it is doubled, if it can be. None if there is no end.
    fn quoted(&self, open: usize, quote: u8, doubles: bool, goes_on: bool) -> Option<Quoted<'a>> {
        let mut from = open + 1;
        let mut whole: Option<String> = None;
        let mut at = from;
        loop {
            let rest = self.bytes.get(at..)?;
            let close = at + rest.iter().position(|b| *b == quote)?;
            let part = self.text.get(from..close)?;
            let next = if doubles && self.byte(close + 1) == quote {
                let whole = whole.get_or_insert_default();
                whole.push_str(part);
                whole.push(char::from(quote));
                close + 2
            } else if let Some(next) = goes_on.then(|| self.continued(close + 1)).flatten() {
                whole.get_or_insert_default().push_str(part);
                next
            } else {
                let value = match whole {
                    None => Cow::Borrowed(part),
                    Some(mut whole) => {
                        whole.push_str(part);
                        Cow::Owned(whole)
                    }
                };
                return Some(Quoted {
                    value,
                    end: close + 1,
                });
            };
            from = next;
            at = next;
        }
    }

    /// Index of the value, if it does not stand in the text as it is.
    fn kept(&mut self, value: Cow<'_, str>) -> u32 {
        match value {
            Cow::Borrowed(_) => IN_TEXT,
            Cow::Owned(value) => self.keep(value),
        }
    }

    /// `'...'`, whose quote is at `open`.
    pub(super) fn literal(&mut self, open: usize) -> LexResult<()> {
        let Some(quoted) = self.quoted(open, b'\'', true, true) else {
            return Err(self.error("unterminated quoted string", self.at, self.bytes.len()));
        };
        let value = self.kept(quoted.value);
        self.push_value(TokenKind::SConst, quoted.end, value);
        Ok(())
    }

    /// `B'...'`, `X'...'`.
    pub(super) fn bits(&mut self, kind: TokenKind) -> LexResult<()> {
        let Some(quoted) = self.quoted(self.at + 1, b'\'', false, true) else {
            let message = match kind {
                TokenKind::BConst => "unterminated bit string literal",
                _ => "unterminated hexadecimal string literal",
            };
            return Err(self.error(message, self.at, self.bytes.len()));
        };
        let value = self.kept(quoted.value);
        self.push_value(kind, quoted.end, value);
        Ok(())
    }

    /// `E'...'`, whose quote is at `open`.
    pub(super) fn escaped_literal(&mut self, open: usize) -> LexResult<()> {
        let mut value: Vec<u8> = Vec::new();
        // What is written in bytes may not be text.
        let mut is_in_doubt = false;
        let mut at = open + 1;
        let end = loop {
            match self.byte(at) {
                0 if at >= self.bytes.len() => {
                    let message = "unterminated quoted string";
                    return Err(self.error(message, self.at, self.bytes.len()));
                }
                b'\'' if self.byte(at + 1) == b'\'' => {
                    value.push(b'\'');
                    at += 2;
                }
                b'\'' => match self.continued(at + 1) {
                    Some(next) => at = next,
                    None => break at + 1,
                },
                b'\\' => at = self.escape(at, &mut value, &mut is_in_doubt)?,
                byte => {
                    value.push(byte);
                    at += 1;
                }
            }
        };
        let value = match String::from_utf8(value) {
            Ok(text) if !is_in_doubt || !text.contains('\0') => text,
            Ok(_) => return Err(Box::new(escapes::invalid_bytes(&[0]))),
            Err(error) => {
                let from = error.utf8_error().valid_up_to();
                let bytes = error.as_bytes();
                // What comes first is told.
                let zero = bytes.iter().position(|b| *b == 0).unwrap_or(from);
                let wrong = bytes.get(zero.min(from)..).unwrap_or_default();
                return Err(Box::new(escapes::invalid_bytes(wrong)));
            }
        };
        let value = self.keep(value);
        self.push_value(TokenKind::SConst, end, value);
        Ok(())
    }

    /// The escape at `at`; gives what stands behind it.
    fn escape(&self, at: usize, value: &mut Vec<u8>, is_in_doubt: &mut bool) -> LexResult<usize> {
        let digits = |from: usize, most: usize, is: fn(&u8) -> bool| {
            let rest = self.bytes.get(from..).unwrap_or_default();
            rest.iter().take(most).take_while(|b| is(b)).count()
        };
        let number = |from: usize, length: usize, radix: u32| {
            let digits = self.text.get(from..from + length).unwrap_or_default();
            u32::from_str_radix(digits, radix).unwrap_or(0)
        };
        let next = self.byte(at + 1);
        match next {
            0 if at + 1 >= self.bytes.len() => {
                value.push(b'\\');
                Ok(at + 1)
            }
            b'0'..=b'7' => {
                let length = digits(at + 1, 3, |b| matches!(b, b'0'..=b'7'));
                value.push((number(at + 1, length, 8) & 0xff) as u8);
                *is_in_doubt = true;
                Ok(at + 1 + length)
            }
            b'x' if digits(at + 2, 2, u8::is_ascii_hexdigit) > 0 => {
                let length = digits(at + 2, 2, u8::is_ascii_hexdigit);
                value.push(number(at + 2, length, 16) as u8);
                *is_in_doubt = true;
                Ok(at + 2 + length)
            }
            b'u' | b'U' => self.unicode_escape(at, value),
            b'b' => Ok(push(value, 0x08, at)),
            b'f' => Ok(push(value, 0x0c, at)),
            b'n' => Ok(push(value, b'\n', at)),
            b'r' => Ok(push(value, b'\r', at)),
            b't' => Ok(push(value, b'\t', at)),
            other => Ok(push(value, other, at)),
        }
    }

    /// The code that `\u` or `\U` at `at` names, and how long it is written.
    fn code(&self, at: usize) -> LexResult<(u32, usize)> {
        let length = if self.byte(at + 1) == b'u' { 4 } else { 8 };
        let rest = self.bytes.get(at + 2..).unwrap_or_default();
        let is_hex = rest
            .iter()
            .take(length)
            .take_while(|b| b.is_ascii_hexdigit())
            .count();
        if is_hex < length {
            let error = SqlError::new(SqlState::INVALID_ESCAPE_SEQUENCE, "invalid Unicode escape")
                .hint("Unicode escapes must be \\uXXXX or \\UXXXXXXXX.")
                .at(Some(super::character(self.text, at)));
            return Err(Box::new(error));
        }
        let digits = self.text.get(at + 2..at + 2 + length).unwrap_or_default();
        Ok((
            u32::from_str_radix(digits, 16).unwrap_or(u32::MAX),
            2 + length,
        ))
    }

    /// `\uXXXX` or `\UXXXXXXXX` at `at`, or two of them that are one character.
    fn unicode_escape(&self, at: usize, value: &mut Vec<u8>) -> LexResult<usize> {
        let pair = "invalid Unicode surrogate pair";
        let (mut code, mut length) = self.code(at)?;
        if escapes::is_first_of_pair(code) {
            let second = at + length;
            let is_escape =
                self.byte(second) == b'\\' && matches!(self.byte(second + 1), b'u' | b'U');
            if !is_escape {
                // What is there instead is shown: one character, or the end.
                let rest = self.text.get(second..).unwrap_or_default();
                let shown = rest.chars().next().map_or(0, char::len_utf8);
                return Err(self.error(pair, second, second + shown));
            }
            let (low, more) = self.code(second)?;
            if !escapes::is_second_of_pair(low) {
                return Err(self.error(pair, second, second + more));
            }
            code = escapes::of_pair(code, low);
            length += more;
        } else if escapes::is_second_of_pair(code) {
            return Err(self.error(pair, at, at + length));
        }
        let Some(character) = char::from_u32(code).filter(|c| *c != '\0') else {
            let message = "invalid Unicode escape value";
            return Err(self.error(message, at, at + length));
        };
        value.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        Ok(at + length)
    }

    /// `"..."`.
    pub(super) fn quoted_ident(&mut self) -> LexResult<()> {
        let Some(quoted) = self.quoted(self.at, b'"', true, false) else {
            let message = "unterminated quoted identifier";
            return Err(self.error(message, self.at, self.bytes.len()));
        };
        self.check_name(&quoted.value, quoted.end)?;
        let value = match self.is_too_long(&quoted.value) {
            true => self.keep_truncated(quoted.value.into()),
            false => self.kept(quoted.value),
        };
        self.push_value(TokenKind::QuotedIdent, quoted.end, value);
        Ok(())
    }

    /// Is it longer than a name may be? What a stored text says by number is no name.
    fn is_too_long(&self, name: &str) -> bool {
        name.len() > NAME_LENGTH_MAX && !name.starts_with(|c: char| c < MARKS_END)
    }

    fn check_name(&self, name: &str, end: usize) -> LexResult<()> {
        if name.is_empty() {
            return Err(self.error("zero-length delimited identifier", self.at, end));
        }
        if !self.is_stored && name.starts_with(|c: char| c < MARKS_END) {
            let error = SqlError::unsupported("an identifier that begins with a control character");
            return Err(Box::new(
                error.at(Some(super::character(self.text, self.at))),
            ));
        }
        Ok(())
    }

    /// `U&'...'`.
    pub(super) fn unicode_literal(&mut self) -> LexResult<()> {
        if !self.options.standard_conforming_strings {
            let error = SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                "unsafe use of string constant with Unicode escapes",
            )
            .detail(
                "String constants with Unicode escapes cannot be used when standard_conforming_strings is off.",
            )
            .at(Some(super::character(self.text, self.at)));
            return Err(Box::new(error));
        }
        let Some(quoted) = self.quoted(self.at + 2, b'\'', true, true) else {
            let message = "unterminated quoted string";
            return Err(self.error(message, self.at, self.bytes.len()));
        };
        let (value, end) = self.unescaped(&quoted)?;
        let value = self.keep(value);
        self.push_value(TokenKind::SConst, end, value);
        Ok(())
    }

    /// `U&"..."`.
    pub(super) fn unicode_ident(&mut self) -> LexResult<()> {
        let Some(quoted) = self.quoted(self.at + 2, b'"', true, false) else {
            let message = "unterminated quoted identifier";
            return Err(self.error(message, self.at, self.bytes.len()));
        };
        if quoted.value.is_empty() {
            return Err(self.error("zero-length delimited identifier", self.at, quoted.end));
        }
        let (value, end) = self.unescaped(&quoted)?;
        self.check_name(&value, end)?;
        let value = match self.is_too_long(&value) {
            true => self.keep_truncated(value.into()),
            false => self.keep(value),
        };
        self.push_value(TokenKind::QuotedIdent, end, value);
        Ok(())
    }

    /// The value with its escapes read, and the end of UESCAPE if that follows.
    fn unescaped(&self, quoted: &Quoted<'a>) -> LexResult<(String, usize)> {
        let (escape, end) = self.uescape(quoted.end)?;
        let value = escapes::unescape(&quoted.value, escape).map_err(|wrong| {
            // PostgreSQL counts from the quote, whatever stands between.
            wrong.error(self.text, self.at + 3)
        })?;
        Ok((value, end))
    }

    /// The character that UESCAPE names behind `from`, and its end; a backslash if there is none.
    fn uescape(&self, from: usize) -> LexResult<(u8, usize)> {
        // What follows is divided into tokens on its own: only two of them matter.
        let mut next = Lexer::new(self.text, self.options, self.is_stored);
        next.at = self.blank_end(from);
        let end = next.name_end(next.at);
        let word = self.text.get(next.at..end).unwrap_or_default();
        if !word.eq_ignore_ascii_case(Keyword::Uescape.word()) {
            return Ok((b'\\', from));
        }
        next.at = self.blank_end(end);
        let message = "UESCAPE must be followed by a simple string literal";
        let is_unicode = |bytes: &[u8]| matches!(bytes, [b'u' | b'U', b'&', b'\'' | b'"', ..]);
        if is_unicode(self.bytes.get(next.at..).unwrap_or_default()) {
            let open = next.at + 2;
            let quoted = self.quoted(open, self.byte(open), true, true);
            let end = quoted.map_or(self.bytes.len(), |quoted| quoted.end);
            return Err(self.error(message, next.at, end));
        }
        let literal = next.one()?;
        let (start, end) = (literal.start as usize, literal.end as usize);
        if literal.kind != TokenKind::SConst {
            return Err(self.error(message, start, end));
        }
        let tokens = super::Tokens {
            truncated: Vec::new(),
            text: self.text,
            tokens: Vec::new(),
            error: None,
            values: next.values,
        };
        let said = tokens.value(literal);
        match said.as_bytes() {
            [escape] if escapes::may_escape(*escape) => Ok((*escape, end)),
            _ => Err(self.error("invalid Unicode escape character", start, end)),
        }
    }
}

fn push(value: &mut Vec<u8>, byte: u8, at: usize) -> usize {
    value.push(byte);
    at + 2
}
