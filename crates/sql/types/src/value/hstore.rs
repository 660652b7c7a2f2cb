//! hstore: texts, or NULLs, under keys. The type of PostgreSQL's extension of this name.
//!
//! A value is a document of jsonb ([`super::json`]): one object whose members are strings and nulls, whose keys have
//! the order that hstore gives them. Its text, its binary form and its order are its own. Invariant: nothing else is
//! ever in such a document.

use super::json::{JsonType, Jsonb, JsonbRef, JsonbValue};
use super::text_io::is_space;
use super::{Datum, key};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;
use std::borrow::Cow;

/// Longest key or value, as in PostgreSQL.
const TEXT_BYTES_MAX: usize = 0x3fff_ffff;

/// What is under a key.
pub type HstorePair<'a> = (Cow<'a, str>, Option<Cow<'a, str>>);

/// A value of these pairs; of those with one key the first counts.
pub fn make<'a>(pairs: impl IntoIterator<Item = HstorePair<'a>>) -> Result<Datum> {
    let mut kept: Vec<HstorePair<'a>> = pairs.into_iter().collect();
    for (key, value) in &kept {
        let too_long = |what: &str| {
            SqlError::new(
                SqlState::STRING_DATA_RIGHT_TRUNCATION,
                format!("string too long for hstore {what}"),
            )
        };
        if key.len() > TEXT_BYTES_MAX {
            return Err(too_long("key"));
        }
        if value.as_ref().is_some_and(|v| v.len() > TEXT_BYTES_MAX) {
            return Err(too_long("value"));
        }
    }
    kept.sort_by(|a, b| a.0.cmp(&b.0));
    kept.dedup_by(|next, first| next.0 == first.0);
    let members = kept.into_iter().map(|(key, value)| {
        let value = value.map_or(JsonbValue::Null, JsonbValue::String);
        (key, value)
    });
    JsonbValue::Object(members.collect())
        .finish()
        .map(Datum::Jsonb)
}

/// The pairs of a value in the order of their keys.
pub fn pairs(view: JsonbRef<'_>) -> impl Iterator<Item = (&str, Option<&str>)> {
    view.members().map(|(key, value)| {
        (
            key,
            (value.kind() == JsonType::String).then(|| value.as_str()),
        )
    })
}

/// Reads a stored value.
pub(super) fn from_stored(bytes: &[u8]) -> Result<Datum> {
    let value = Jsonb::from_stored(bytes)?;
    let whole = value.view().kind() == JsonType::Object
        && value
            .view()
            .members()
            .all(|(_, v)| matches!(v.kind(), JsonType::String | JsonType::Null));
    match whole {
        true => Ok(Datum::Jsonb(value)),
        false => Err(SqlError::internal("stored value of type hstore is damaged")),
    }
}

/// Appends the key of an index, which orders as PostgreSQL orders values: by all keys and texts in a row, then by how
/// many there are and where each ends.
pub(super) fn write_key(view: JsonbRef<'_>, out: &mut Vec<u8>) {
    // What is empty comes first.
    if view.is_empty() {
        return out.push(0);
    }
    out.push(1);
    let mut texts = Vec::new();
    let mut ends = Vec::new();
    for (key, value) in pairs(view) {
        for (text, is_null) in [(key, false), (value.unwrap_or_default(), value.is_none())] {
            texts.extend_from_slice(text.as_bytes());
            ends.extend_from_slice(&(texts.len() as u32).to_be_bytes());
            ends.push(u8::from(is_null));
        }
    }
    key::bytes(&texts, out);
    out.extend_from_slice(&(view.len() as u32).to_be_bytes());
    out.extend_from_slice(&ends);
}

/// The text form: `"a"=>"1", "b"=>NULL`.
pub(super) fn output(view: JsonbRef<'_>, out: &mut Vec<u8>) {
    let quoted = |text: &str, out: &mut Vec<u8>| {
        out.push(b'"');
        for c in text.bytes() {
            if matches!(c, b'"' | b'\\') {
                out.push(b'\\');
            }
            out.push(c);
        }
        out.push(b'"');
    };
    for (i, (key, value)) in pairs(view).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        quoted(key, out);
        out.extend_from_slice(b"=>");
        match value {
            Some(value) => quoted(value, out),
            None => out.extend_from_slice(b"NULL"),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

fn early_end() -> SqlError {
    SqlError::new(SqlState::INTERNAL_ERROR, "Unexpected end of string")
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn step(&mut self) {
        self.at += self.peek().map_or(0, char::len_utf8);
    }

    fn skip_blanks(&mut self) {
        while self
            .peek()
            .is_some_and(|c| c.is_ascii() && is_space(c as u8))
        {
            self.at += 1;
        }
    }

    fn wrong(&self) -> SqlError {
        match self.peek() {
            None => early_end(),
            Some(c) => SqlError::new(
                SqlState::INTERNAL_ERROR,
                format!("Syntax error near \"{c}\" at position {}", self.at),
            ),
        }
    }

    /// The next word, and whether it was quoted; none at the end.
    fn word(&mut self, is_key: bool) -> Result<Option<(String, bool)>> {
        self.skip_blanks();
        let mut word = String::new();
        let mut quoted = false;
        match self.peek() {
            None => return Ok(None),
            Some('=') if is_key => return Err(self.wrong()),
            Some('"') => {
                quoted = true;
                self.step();
            }
            Some(_) => {}
        }
        // The first character of a word that is not quoted is taken whatever it is.
        let mut first = true;
        loop {
            let Some(c) = self.peek() else {
                return match quoted {
                    true => Err(early_end()),
                    false => Ok(Some((word, quoted))),
                };
            };
            let ends = match (quoted, c) {
                (true, c) => c == '"',
                (false, _) if first => false,
                (false, '=') => is_key,
                (false, ',') => !is_key,
                (false, c) => c.is_ascii() && is_space(c as u8),
            };
            if ends {
                if quoted {
                    self.step();
                }
                return Ok(Some((word, quoted)));
            }
            self.step();
            if c == '\\' {
                word.push(self.peek().ok_or_else(early_end)?);
                self.step();
            } else {
                word.push(c);
            }
            first = false;
        }
    }

    fn expect(&mut self, wanted: char) -> Result<()> {
        if self.peek() != Some(wanted) {
            return Err(self.wrong());
        }
        self.step();
        Ok(())
    }
}

/// Reads the text form.
pub(super) fn input(text: &str) -> Result<Datum> {
    let mut reader = Reader { text, at: 0 };
    let mut read: Vec<HstorePair<'static>> = Vec::new();
    while let Some((key, _)) = reader.word(true)? {
        reader.skip_blanks();
        reader.expect('=')?;
        reader.expect('>')?;
        let (value, quoted) = reader.word(false)?.ok_or_else(early_end)?;
        let is_null = !quoted && value.eq_ignore_ascii_case("null");
        read.push((key.into(), (!is_null).then(|| value.into())));
        reader.skip_blanks();
        match reader.peek() {
            None => break,
            Some(_) => reader.expect(',')?,
        }
    }
    make(read)
}

/// The binary form: how many pairs, then of each the key and the value, by length; -1 for NULL.
pub(super) fn send(view: JsonbRef<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(&(view.len() as u32).to_be_bytes());
    for (key, value) in pairs(view) {
        out.extend_from_slice(&(key.len() as u32).to_be_bytes());
        out.extend_from_slice(key.as_bytes());
        match value {
            None => out.extend_from_slice(&(-1_i32).to_be_bytes()),
            Some(value) => {
                out.extend_from_slice(&(value.len() as u32).to_be_bytes());
                out.extend_from_slice(value.as_bytes());
            }
        }
    }
}

/// Reads the binary form.
pub(super) fn receive(bytes: &[u8]) -> Result<Datum> {
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let (count, mut rest) = bytes.split_first_chunk::<4>().ok_or_else(short)?;
    let count = i32::from_be_bytes(*count);
    let wrong = |what: &str| SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, what);
    if count < 0 {
        return Err(wrong("number of pairs is negative"));
    }
    let mut read: Vec<HstorePair<'_>> = Vec::new();
    for _ in 0..count {
        let mut text = |may_be_null: bool| -> Result<Option<Cow<'_, str>>> {
            let (number, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
            let number = i32::from_be_bytes(*number);
            if number < 0 && may_be_null {
                rest = tail;
                return Ok(None);
            }
            let len = usize::try_from(number).map_err(|_| {
                SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "null value not allowed for hstore key",
                )
            })?;
            let (text, tail) = tail.split_at_checked(len).ok_or_else(short)?;
            rest = tail;
            let text = std::str::from_utf8(text).map_err(|_| {
                SqlError::new(
                    SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                    "invalid byte sequence for encoding \"UTF8\"",
                )
            })?;
            match text.contains('\0') {
                true => Err(SqlError::new(
                    SqlState::CHARACTER_NOT_IN_REPERTOIRE,
                    "invalid byte sequence for encoding \"UTF8\": 0x00",
                )),
                false => Ok(Some(Cow::Borrowed(text))),
            }
        };
        let key = text(false)?.unwrap_or_default();
        let value = text(true)?;
        read.push((key, value));
    }
    match rest.is_empty() {
        true => make(read),
        false => Err(wrong("incorrect binary data format")),
    }
}
