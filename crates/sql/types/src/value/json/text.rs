//! JSON text: the lexer and the parser, with PostgreSQL's messages, and the escaping of strings.
//!
//! Owns: [`parse`], which checks a text and gives the tree of its values, each with the exact text it stands for. Does
//! not decide what a value means: `json` keeps the text, `jsonb` is made from the tree.

use super::{NESTING_MAX, too_deep};
use crate::error::{Result, SqlError};
use crate::memory::{Builder, STRIDE_BYTES};
use logstead_types::SqlState;
use std::borrow::Cow;

/// A value and its text, blanks around it left out.
#[derive(Debug)]
pub struct Item<'a> {
    /// The text.
    pub raw: &'a str,
    /// What it says.
    pub value: Value<'a>,
}

/// What a JSON text says.
#[derive(Debug)]
pub enum Value<'a> {
    /// null
    Null,
    /// true, false
    Bool(bool),
    /// A number: the item's text has it exactly.
    Number,
    /// A string without its escapes; empty if they were not asked for.
    String(Cow<'a, str>),
    /// Elements.
    Array(Vec<Item<'a>>),
    /// Members as they stand, duplicates included.
    Object(Vec<(Cow<'a, str>, Item<'a>)>),
}

/// Checks `text` and gives its tree. Strings are freed of their escapes if `decode` says so: what is no text
/// (`\u0000`, half a surrogate pair) is an error then, and only then.
pub fn parse(text: &str, decode: bool) -> Result<Item<'_>> {
    let mut lexer = Lexer {
        text,
        decode,
        start: Some(0),
        end: 0,
        previous_end: 0,
        line: 1,
        line_start: 0,
        token: Token::End,
        word: Cow::Borrowed(""),
        depth: 0,
    };
    lexer.advance()?;
    let item = lexer.value()?;
    lexer.expect(Token::End, Expected::End)?;
    Ok(item)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Token {
    ObjectStart,
    ObjectEnd,
    ArrayStart,
    ArrayEnd,
    Comma,
    Colon,
    String,
    Number,
    True,
    False,
    Null,
    End,
}

/// What stood in the way, in the words of `json_errdetail`.
enum JsonParseError {
    Escape,
    Control(u8),
    Token,
    CodePointZero,
    UnicodeEscape,
    HighSurrogate,
    LowSurrogate,
    Unexpected(Expected),
}

#[derive(Clone, Copy)]
enum Expected {
    End,
    Value,
    String,
    ArrayNext,
    ObjectFirst,
    Colon,
    ObjectNext,
}

struct Lexer<'a> {
    text: &'a str,
    decode: bool,
    /// Start of the token; none at the end of the text.
    start: Option<usize>,
    /// End of the token.
    end: usize,
    /// End of the token in front of it.
    previous_end: usize,
    line: usize,
    line_start: usize,
    token: Token,
    /// The token's string.
    word: Cow<'a, str>,
    depth: usize,
}

fn is_word(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b >= 0x80
}

impl<'a> Lexer<'a> {
    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// End of the character at `at`.
    fn char_end(&self, at: usize) -> usize {
        let len = self.text.get(at..).and_then(|rest| rest.chars().next());
        at + len.map_or(1, char::len_utf8)
    }

    fn fail(&self, fault: JsonParseError) -> SqlError {
        let token = |from: usize| {
            let token = self.text.as_bytes().get(from..self.end).unwrap_or(b"");
            String::from_utf8_lossy(token).into_owned()
        };
        let found = token(self.start.unwrap_or(self.end));
        let detail = match fault {
            JsonParseError::Escape => format!("Escape sequence \"\\{found}\" is invalid."),
            JsonParseError::Control(byte) => {
                format!("Character with value 0x{byte:02x} must be escaped.")
            }
            JsonParseError::Token => format!("Token \"{found}\" is invalid."),
            JsonParseError::CodePointZero => "\\u0000 cannot be converted to text.".to_owned(),
            JsonParseError::UnicodeEscape => {
                "\"\\u\" must be followed by four hexadecimal digits.".to_owned()
            }
            JsonParseError::HighSurrogate => {
                "Unicode high surrogate must not follow a high surrogate.".to_owned()
            }
            JsonParseError::LowSurrogate => {
                "Unicode low surrogate must follow a high surrogate.".to_owned()
            }
            JsonParseError::Unexpected(_) if self.token == Token::End || self.start.is_none() => {
                "The input string ended unexpectedly.".to_owned()
            }
            JsonParseError::Unexpected(expected) => {
                let expected = match expected {
                    Expected::End => "end of input",
                    Expected::Value => "JSON value",
                    Expected::String => "string",
                    Expected::ArrayNext => "\",\" or \"]\"",
                    Expected::ObjectFirst => "string or \"}\"",
                    Expected::Colon => "\":\"",
                    Expected::ObjectNext => "\",\" or \"}\"",
                };
                format!("Expected {expected}, but found \"{found}\".")
            }
        };
        let error = if matches!(fault, JsonParseError::CodePointZero) {
            SqlError::new(
                SqlState::UNTRANSLATABLE_CHARACTER,
                "unsupported Unicode escape sequence",
            )
        } else {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type json",
            )
        };
        error.detail(detail).context(self.place())
    }

    /// The line up to the token, cut to its last fifty bytes.
    fn place(&self) -> String {
        let end = self.end.min(self.text.len());
        let mut start = self.line_start;
        while end.saturating_sub(start) >= 50 {
            start = self.char_end(start);
        }
        if start - self.line_start <= 3 {
            start = self.line_start;
        }
        let shown = self.text.as_bytes().get(start..end).unwrap_or(b"");
        let shown = String::from_utf8_lossy(shown);
        let prefix = if start > self.line_start { "..." } else { "" };
        let cut = self.token != Token::End
            && self
                .byte(end)
                .is_some_and(|next| !matches!(next, b'\n' | b'\r'));
        let suffix = if cut { "..." } else { "" };
        format!("JSON data, line {}: {prefix}{shown}{suffix}", self.line)
    }

    fn unexpected(&self, expected: Expected) -> SqlError {
        self.fail(JsonParseError::Unexpected(expected))
    }

    fn expect(&mut self, token: Token, expected: Expected) -> Result<()> {
        if self.token != token {
            return Err(self.unexpected(expected));
        }
        if token == Token::End {
            return Ok(());
        }
        self.advance()
    }

    /// Goes on to the next token.
    fn advance(&mut self) -> Result<()> {
        let mut at = self.end;
        while let Some(b @ (b' ' | b'\t' | b'\n' | b'\r')) = self.byte(at) {
            at += 1;
            if b == b'\n' {
                self.line += 1;
                self.line_start = at;
            }
        }
        self.start = Some(at);
        // What is known of the token while it is read: not that it is the end.
        let Some(first) = self.byte(at) else {
            self.start = None;
            self.previous_end = self.end;
            self.end = at;
            self.token = Token::End;
            return Ok(());
        };
        let single = match first {
            b'{' => Some(Token::ObjectStart),
            b'}' => Some(Token::ObjectEnd),
            b'[' => Some(Token::ArrayStart),
            b']' => Some(Token::ArrayEnd),
            b',' => Some(Token::Comma),
            b':' => Some(Token::Colon),
            _ => None,
        };
        if let Some(token) = single {
            self.take(token, at + 1);
            return Ok(());
        }
        match first {
            b'"' => self.string(at),
            b'-' => self.number(at + 1),
            b'0'..=b'9' => self.number(at),
            _ => {
                let mut end = at;
                while self.byte(end).is_some_and(is_word) {
                    end += 1;
                }
                self.previous_end = self.end;
                self.end = if end == at { at + 1 } else { end };
                self.token = match &self.text.as_bytes()[at..end] {
                    b"true" => Token::True,
                    b"false" => Token::False,
                    b"null" => Token::Null,
                    _ => return Err(self.not_end(JsonParseError::Token)),
                };
                Ok(())
            }
        }
    }

    /// A fault of a token that is being read: the kind of the one before it says nothing.
    fn not_end(&mut self, fault: JsonParseError) -> SqlError {
        if self.token == Token::End {
            self.token = Token::Null;
        }
        self.fail(fault)
    }

    fn take(&mut self, token: Token, end: usize) {
        self.previous_end = self.end;
        self.end = end;
        self.token = token;
    }

    fn number(&mut self, from: usize) -> Result<()> {
        let mut at = from;
        let mut wrong = false;
        let digits = |at: &mut usize| {
            let start = *at;
            while self.byte(*at).is_some_and(|b| b.is_ascii_digit()) {
                *at += 1;
            }
            *at > start
        };
        match self.byte(at) {
            Some(b'0') => at += 1,
            _ => wrong |= !digits(&mut at),
        }
        if self.byte(at) == Some(b'.') {
            at += 1;
            wrong |= !digits(&mut at);
        }
        if matches!(self.byte(at), Some(b'e' | b'E')) {
            at += 1;
            if matches!(self.byte(at), Some(b'+' | b'-')) {
                at += 1;
            }
            wrong |= !digits(&mut at);
        }
        while self.byte(at).is_some_and(is_word) {
            wrong = true;
            at += 1;
        }
        let before = self.token;
        self.take(Token::Number, at);
        if wrong {
            self.token = before;
            return Err(self.not_end(JsonParseError::Token));
        }
        Ok(())
    }

    fn string(&mut self, from: usize) -> Result<()> {
        let mut at = from + 1;
        // Runs without escapes are copied whole; a string without any is borrowed.
        let mut copied = String::new();
        let mut run = at;
        let mut high: Option<u32> = None;
        loop {
            let Some(b) = self.byte(at) else {
                self.end = self.text.len();
                return Err(self.not_end(JsonParseError::Token));
            };
            match b {
                b'"' => break,
                0..0x20 => {
                    self.end = at;
                    return Err(self.not_end(JsonParseError::Control(b)));
                }
                b'\\' => {}
                _ => {
                    if high.is_some() {
                        return Err(self.fault_at(at, JsonParseError::LowSurrogate));
                    }
                    at += 1;
                    continue;
                }
            }
            if self.decode {
                copied.push_str(&self.text[run..at]);
            }
            at += 1;
            let Some(escape) = self.byte(at) else {
                self.end = self.text.len();
                return Err(self.not_end(JsonParseError::Token));
            };
            let plain = match escape {
                b'u' => {
                    let code = self.code_point(at)?;
                    at += 5;
                    run = at;
                    if self.decode {
                        match (code, high) {
                            (0xd800..0xdc00, Some(_)) => {
                                return Err(self.fault_at(at - 1, JsonParseError::HighSurrogate));
                            }
                            (0xd800..0xdc00, None) => high = Some(code),
                            (0xdc00..0xe000, None) | (_, Some(_))
                                if !(high.is_some() && (0xdc00..0xe000).contains(&code)) =>
                            {
                                return Err(self.fault_at(at - 1, JsonParseError::LowSurrogate));
                            }
                            (0, None) => {
                                return Err(self.fault_at(at - 1, JsonParseError::CodePointZero));
                            }
                            _ => {
                                let whole = match high.take() {
                                    Some(high) => 0x10000 + ((high & 0x3ff) << 10) + (code & 0x3ff),
                                    None => code,
                                };
                                copied.push(char::from_u32(whole).unwrap_or('\u{fffd}'));
                            }
                        }
                    }
                    continue;
                }
                b'"' | b'\\' | b'/' => escape,
                b'b' => 8,
                b'f' => 12,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                _ => {
                    if high.is_some() {
                        return Err(self.fault_at(at, JsonParseError::LowSurrogate));
                    }
                    self.start = Some(at);
                    self.end = self.char_end(at);
                    return Err(self.not_end(JsonParseError::Escape));
                }
            };
            if high.is_some() {
                return Err(self.fault_at(at, JsonParseError::LowSurrogate));
            }
            if self.decode {
                copied.push(char::from(plain));
            }
            at += 1;
            run = at;
        }
        if high.is_some() {
            return Err(self.fault_at(at, JsonParseError::LowSurrogate));
        }
        self.word = if !self.decode {
            Cow::Borrowed("")
        } else if run == from + 1 {
            Cow::Borrowed(&self.text[run..at])
        } else {
            copied.push_str(&self.text[run..at]);
            Cow::Owned(copied)
        };
        self.take(Token::String, at + 1);
        Ok(())
    }

    /// A fault of the character at `at`: what is shown ends with it.
    fn fault_at(&mut self, at: usize, fault: JsonParseError) -> SqlError {
        self.end = self.char_end(at);
        self.not_end(fault)
    }

    /// The four digits behind the `u` at `at`.
    fn code_point(&mut self, at: usize) -> Result<u32> {
        let mut code = 0;
        for i in at + 1..at + 5 {
            let Some(b) = self.byte(i) else {
                self.end = self.text.len();
                return Err(self.not_end(JsonParseError::Token));
            };
            let Some(digit) = char::from(b).to_digit(16) else {
                self.end = self.char_end(i);
                return Err(self.not_end(JsonParseError::UnicodeEscape));
            };
            code = code * 16 + digit;
        }
        Ok(code)
    }

    /// The value that the token starts.
    fn value(&mut self) -> Result<Item<'a>> {
        let from = self.start.unwrap_or(self.end);
        let value = match self.token {
            Token::ObjectStart => self.nested(Lexer::object)?,
            Token::ArrayStart => self.nested(Lexer::array)?,
            Token::String => {
                let word = std::mem::take(&mut self.word);
                self.advance()?;
                Value::String(word)
            }
            scalar @ (Token::Number | Token::True | Token::False | Token::Null) => {
                self.advance()?;
                match scalar {
                    Token::Number => Value::Number,
                    Token::Null => Value::Null,
                    other => Value::Bool(other == Token::True),
                }
            }
            _ => return Err(self.unexpected(Expected::Value)),
        };
        Ok(Item {
            raw: self.text.get(from..self.previous_end).unwrap_or(""),
            value,
        })
    }

    fn nested(&mut self, inside: fn(&mut Self) -> Result<Value<'a>>) -> Result<Value<'a>> {
        if self.depth >= NESTING_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let value = inside(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value<'a>> {
        let mut members = Vec::new();
        self.advance()?;
        match self.token {
            Token::String => {
                members.push(self.member()?);
                while self.token == Token::Comma {
                    self.advance()?;
                    members.push(self.member()?);
                }
            }
            Token::ObjectEnd => {}
            _ => return Err(self.unexpected(Expected::ObjectFirst)),
        }
        self.expect(Token::ObjectEnd, Expected::ObjectNext)?;
        Ok(Value::Object(members))
    }

    fn member(&mut self) -> Result<(Cow<'a, str>, Item<'a>)> {
        if self.token != Token::String {
            return Err(self.unexpected(Expected::String));
        }
        let key = std::mem::take(&mut self.word);
        self.advance()?;
        self.expect(Token::Colon, Expected::Colon)?;
        Ok((key, self.value()?))
    }

    fn array(&mut self) -> Result<Value<'a>> {
        let mut elements = Vec::new();
        self.advance()?;
        if self.token != Token::ArrayEnd {
            elements.push(self.value()?);
            while self.token == Token::Comma {
                self.advance()?;
                elements.push(self.value()?);
            }
        }
        self.expect(Token::ArrayEnd, Expected::ArrayNext)?;
        Ok(Value::Array(elements))
    }
}

/// Appends a string in quotes to what is being built. Of a long one the length is known before.
pub fn append_string(s: &str, out: &mut Builder) -> Result<()> {
    if s.len() < STRIDE_BYTES {
        write_string(s, out);
        return out.step();
    }
    out.push_byte(b'"')?;
    let mut rest = s;
    while !rest.is_empty() {
        let (now, behind) = rest.split_at(rest.floor_char_boundary(STRIDE_BYTES / 8));
        rest = behind;
        write_escaped(now, out);
        out.step()?;
    }
    out.push_byte(b'"')
}

/// Appends a string in quotes, with the escapes that JSON needs and no others.
pub fn write_string(s: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(s, out);
    out.push(b'"');
}

fn write_escaped(s: &str, out: &mut Vec<u8>) {
    let bytes = s.as_bytes();
    let mut run = 0;
    for (i, &b) in bytes.iter().enumerate() {
        let short = match b {
            b'"' => b'"',
            b'\\' => b'\\',
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => 0,
            _ => continue,
        };
        out.extend_from_slice(&bytes[run..i]);
        run = i + 1;
        if short == 0 {
            out.extend_from_slice(format!("\\u{b:04x}").as_bytes());
        } else {
            out.extend_from_slice(&[b'\\', short]);
        }
    }
    out.extend_from_slice(&bytes[run..]);
}
