//! The value of type `jsonb`: a tree in one run of bytes that is read where it lies.
//!
//! Owns: [`Jsonb`] (the bytes, whole and checked), [`JsonbRef`] (reads a value inside them), [`JsonbValue`] (makes
//! them), their order ([`compare`](JsonbRef::compare)), hash and index key. A `json` value is its text and needs none
//! of this: see [`text`].
//!
//! The form, which is also the stored one: a byte that says the root's kind, then its payload. The payload of `null`,
//! `false` and `true` is empty; of a string its UTF-8; of a number the stored form of `numeric`; of an array its
//! header, an entry per element, the elements' payloads; of an object its header, an entry per key, an entry per value,
//! the keys, the values' payloads. A header is a count (u32) and a height (u16); an entry is a kind in the upper four
//! bits and the end of its payload in the others, counted from the end of the entries. All little-endian.
//!
//! Invariants of the bytes in a [`Jsonb`]: every entry's end lies inside and not before the one in front of it, strings
//! are UTF-8 without zeros, keys are strings, each once, ordered by length and then by bytes; a container's height is
//! one more than its highest child's and at most [`NESTING_MAX`], which bounds every recursion here. What comes from
//! storage is checked first.

mod order;
pub mod path;
pub mod text;

use super::stored::{decode_numeric, encode_numeric};
use super::{Datum, Numeric};
use crate::error::{Result, SqlError};
use crate::memory::{Builder, MemoryReservation};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::Arc;
use text::{Item, Value};

/// Arrays and objects inside each other, at most.
pub const NESTING_MAX: usize = 6_000;

/// Largest payload of a container's children, as in PostgreSQL: an entry has 28 bits for it.
const PAYLOAD_MAX: usize = 0x0fff_ffff;

const HEADER_BYTES: usize = 6;

/// A value of type `jsonb`.
#[derive(Clone, Debug)]
pub struct Jsonb(Arc<[u8]>);

/// What a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum JsonType {
    /// null
    Null = 0,
    /// false
    False = 1,
    /// true
    True = 2,
    /// A number.
    Number = 3,
    /// A string.
    String = 4,
    /// An array.
    Array = 5,
    /// An object.
    Object = 6,
}

/// A value inside a [`Jsonb`].
#[derive(Clone, Copy, Debug)]
pub struct JsonbRef<'a> {
    kind: JsonType,
    payload: &'a [u8],
}

/// A value to be made.
#[derive(Clone, Debug)]
pub enum JsonbValue<'a> {
    /// null
    Null,
    /// true, false
    Bool(bool),
    /// A number: finite.
    Number(Numeric),
    /// A string.
    String(Cow<'a, str>),
    /// An array.
    Array(Vec<JsonbValue<'a>>),
    /// An object: of members with the same key the last one counts.
    Object(Vec<(Cow<'a, str>, JsonbValue<'a>)>),
    /// A value that exists.
    View(JsonbRef<'a>),
}

/// 54001: a value whose arrays and objects are nested too deeply.
pub fn too_deep() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .hint(format!(
        "Arrays and objects can be nested {NESTING_MAX} levels deep."
    ))
}

fn damaged() -> SqlError {
    SqlError::internal("stored value of type jsonb is damaged")
}

impl JsonType {
    fn of(byte: u8) -> Option<JsonType> {
        Some(match byte {
            0 => JsonType::Null,
            1 => JsonType::False,
            2 => JsonType::True,
            3 => JsonType::Number,
            4 => JsonType::String,
            5 => JsonType::Array,
            6 => JsonType::Object,
            _ => return None,
        })
    }

    /// `jsonb_typeof`.
    pub fn name(self) -> &'static str {
        match self {
            JsonType::Null => "null",
            JsonType::False | JsonType::True => "boolean",
            JsonType::Number => "number",
            JsonType::String => "string",
            JsonType::Array => "array",
            JsonType::Object => "object",
        }
    }
}

impl Jsonb {
    /// Reads JSON text.
    pub fn parse(text: &str) -> Result<Jsonb> {
        let _room = MemoryReservation::of(crate::value::admission::json_text_bytes(text))?;
        JsonbValue::of_text(text::parse(text, true)?)?.finish()
    }

    /// What it is held in, for what asks how long it lives.
    pub(in crate::value) fn shared(&self) -> &Arc<[u8]> {
        &self.0
    }

    /// The value of a stored form, checked.
    pub fn from_stored(bytes: &[u8]) -> Result<Jsonb> {
        checked(bytes)?;
        Ok(Jsonb(Arc::from(bytes)))
    }

    /// The stored form.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The whole value.
    pub fn view(&self) -> JsonbRef<'_> {
        root(&self.0)
    }
}

fn root(bytes: &[u8]) -> JsonbRef<'_> {
    let (kind, payload) = bytes.split_first().unwrap_or((&0, &[]));
    JsonbRef {
        kind: JsonType::of(*kind).unwrap_or(JsonType::Null),
        payload,
    }
}

/// A view of a stored form, which is checked.
pub fn checked(bytes: &[u8]) -> Result<JsonbRef<'_>> {
    let kind = bytes.first().and_then(|kind| JsonType::of(*kind));
    let Some(kind) = kind else {
        return Err(damaged());
    };
    check(kind, &bytes[1..], NESTING_MAX)?;
    Ok(root(bytes))
}

/// Checks a payload and gives its height, at most `height_max`.
fn check(kind: JsonType, payload: &[u8], height_max: usize) -> Result<usize> {
    match kind {
        JsonType::Null | JsonType::False | JsonType::True if payload.is_empty() => Ok(0),
        JsonType::Null | JsonType::False | JsonType::True => Err(damaged()),
        JsonType::Number if decode_numeric(payload)?.is_finite() => Ok(0),
        JsonType::Number => Err(damaged()),
        JsonType::String => match std::str::from_utf8(payload) {
            Ok(s) if !s.contains('\0') => Ok(0),
            _ => Err(damaged()),
        },
        JsonType::Array | JsonType::Object => {
            let object = kind == JsonType::Object;
            let (head, rest) = payload
                .split_first_chunk::<HEADER_BYTES>()
                .ok_or_else(damaged)?;
            let count = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let height = usize::from(u16::from_le_bytes([head[4], head[5]]));
            if height == 0 || height > height_max {
                return Err(damaged());
            }
            let entries = if object { count * 2 } else { count };
            if entries > rest.len() / 4 {
                return Err(damaged());
            }
            let (table, values) = rest.split_at(entries * 4);
            let (mut start, mut highest) = (0, 0);
            let mut last_key: Option<&[u8]> = None;
            for (i, entry) in table.chunks_exact(4).enumerate() {
                let (kind, end) =
                    split_entry(u32::from_le_bytes([entry[0], entry[1], entry[2], entry[3]]));
                let kind = kind.ok_or_else(damaged)?;
                let child = values.get(start..end).ok_or_else(damaged)?;
                start = end;
                highest = highest.max(check(kind, child, height - 1)?);
                if object && i < count {
                    if kind != JsonType::String || last_key.is_some_and(|k| !key_below(k, child)) {
                        return Err(damaged());
                    }
                    last_key = Some(child);
                }
            }
            if start != values.len() || highest + 1 != height {
                return Err(damaged());
            }
            Ok(height)
        }
    }
}

fn split_entry(entry: u32) -> (Option<JsonType>, usize) {
    (
        JsonType::of((entry >> 28) as u8),
        (entry as usize) & PAYLOAD_MAX,
    )
}

fn key_order(a: &[u8], b: &[u8]) -> std::cmp::Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

fn key_below(a: &[u8], b: &[u8]) -> bool {
    key_order(a, b).is_lt()
}

impl<'a> JsonbRef<'a> {
    /// What it is.
    pub fn kind(self) -> JsonType {
        self.kind
    }

    /// True unless it is an array or an object.
    pub fn is_scalar(self) -> bool {
        !matches!(self.kind, JsonType::Array | JsonType::Object)
    }

    /// The string; empty for other kinds.
    pub fn as_str(self) -> &'a str {
        match self.kind {
            // The bytes were checked once when the value came in.
            JsonType::String => std::str::from_utf8(self.payload).unwrap_or(""),
            _ => "",
        }
    }

    /// The number, if it is one.
    pub fn as_number(self) -> Option<Numeric> {
        match self.kind {
            JsonType::Number => decode_numeric(self.payload).ok(),
            _ => None,
        }
    }

    /// Elements of an array, members of an object; 0 for scalars.
    pub fn len(self) -> usize {
        match self.payload {
            [a, b, c, d, ..] if !self.is_scalar() => u32::from_le_bytes([*a, *b, *c, *d]) as usize,
            _ => 0,
        }
    }

    /// True without elements or members.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    fn height(self) -> usize {
        match self.payload {
            [_, _, _, _, a, b, ..] if !self.is_scalar() => {
                usize::from(u16::from_le_bytes([*a, *b]))
            }
            _ => 0,
        }
    }

    /// Child number `i` of the table of entries: the keys of an object come before its values.
    fn child(self, i: usize) -> Option<JsonbRef<'a>> {
        let entries = match self.kind {
            JsonType::Array => self.len(),
            JsonType::Object => self.len() * 2,
            _ => 0,
        };
        if i >= entries {
            return None;
        }
        let (table, values) = self
            .payload
            .get(HEADER_BYTES..)?
            .split_at_checked(entries * 4)?;
        let entry = |i: usize| -> Option<(Option<JsonType>, usize)> {
            let bytes = table.get(i * 4..)?.first_chunk::<4>()?;
            Some(split_entry(u32::from_le_bytes(*bytes)))
        };
        let start = match i {
            0 => 0,
            _ => entry(i - 1)?.1,
        };
        let (kind, end) = entry(i)?;
        Some(JsonbRef {
            kind: kind?,
            payload: values.get(start..end)?,
        })
    }

    /// Element `i` of an array.
    pub fn element(self, i: usize) -> Option<JsonbRef<'a>> {
        match self.kind {
            JsonType::Array => self.child(i),
            _ => None,
        }
    }

    /// Element `i` of an array, counted from its end if it is negative.
    pub fn element_at(self, i: i64) -> Option<JsonbRef<'a>> {
        let at = match usize::try_from(i) {
            Ok(at) => at,
            Err(_) => self
                .len()
                .checked_sub(usize::try_from(i.unsigned_abs()).ok()?)?,
        };
        self.element(at)
    }

    /// Elements of an array.
    pub fn elements(self) -> impl Iterator<Item = JsonbRef<'a>> {
        (0..).map_while(move |i| self.element(i))
    }

    /// Key `i` of an object and its value.
    fn member_at(self, i: usize) -> Option<(&'a str, JsonbRef<'a>)> {
        if self.kind != JsonType::Object || i >= self.len() {
            return None;
        }
        Some((self.child(i)?.as_str(), self.child(self.len() + i)?))
    }

    /// Members of an object, in the order of their keys.
    pub fn members(self) -> impl Iterator<Item = (&'a str, JsonbRef<'a>)> {
        (0..).map_while(move |i| self.member_at(i))
    }

    /// The value of a key of an object.
    pub fn member(self, key: &str) -> Option<JsonbRef<'a>> {
        if self.kind != JsonType::Object {
            return None;
        }
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match key_order(self.child(middle)?.payload, key.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return self.child(self.len() + middle),
            }
        }
        None
    }

    /// How far behind the start of `whole`, of which it is a part, it lies; 0 if it is none.
    pub fn offset_in(self, whole: JsonbRef<'_>) -> usize {
        let (at, start) = (
            self.payload.as_ptr() as usize,
            whole.payload.as_ptr() as usize,
        );
        at.checked_sub(start)
            .filter(|offset| *offset < whole.payload.len())
            .unwrap_or(0)
    }

    /// The value on its own.
    pub fn to_jsonb(self) -> Jsonb {
        let mut bytes = Vec::with_capacity(self.payload.len() + 1);
        bytes.push(self.kind as u8);
        bytes.extend_from_slice(self.payload);
        Jsonb(bytes.into())
    }

    /// What `->>` gives of it: the text of a string, no text for null, JSON for the rest.
    pub fn to_text(self) -> Result<Option<String>> {
        Ok(match self.kind {
            JsonType::Null => None,
            JsonType::String => Some(self.as_str().to_owned()),
            _ => Some(self.shown()?),
        })
    }

    /// Its JSON text.
    pub fn shown(self) -> Result<String> {
        let mut out = Builder::default();
        self.append(&mut out)?;
        out.finish_string()
    }

    /// Appends its JSON text, as `jsonb_out` prints it.
    pub fn write(self, out: &mut Vec<u8>) -> Result<()> {
        let mut builder = Builder::take(out);
        let result = self.append(&mut builder);
        builder.give_back(out);
        result
    }

    /// The same to what is being built. A number of a few bytes may print as thousands, so its text is no longer than
    /// it only as far as it has none.
    pub fn append(self, out: &mut Builder) -> Result<()> {
        match self.kind {
            JsonType::Null => out.extend_from_slice(b"null"),
            JsonType::False => out.extend_from_slice(b"false"),
            JsonType::True => out.extend_from_slice(b"true"),
            JsonType::Number => {
                if let Some(n) = self.as_number() {
                    n.write(out);
                }
            }
            JsonType::String => return text::append_string(self.as_str(), out),
            JsonType::Array => {
                out.push(b'[');
                for (i, element) in self.elements().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    element.append(out)?;
                }
                out.push(b']');
            }
            JsonType::Object => {
                out.push(b'{');
                for (i, (key, value)) in self.members().enumerate() {
                    if i > 0 {
                        out.extend_from_slice(b", ");
                    }
                    text::append_string(key, out)?;
                    out.extend_from_slice(b": ");
                    value.append(out)?;
                }
                out.push(b'}');
            }
        }
        out.step()
    }

    /// Appends its JSON text as `jsonb_pretty` prints it: a line per element, four blanks per level.
    pub fn append_pretty(self, level: usize, out: &mut Builder) -> Result<()> {
        let line = |level: usize, out: &mut Builder| {
            out.push_byte(b'\n')?;
            out.push_many(b' ', level * 4)
        };
        match self.kind {
            JsonType::Array => {
                out.push(b'[');
                for (i, element) in self.elements().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    line(level + 1, out)?;
                    element.append_pretty(level + 1, out)?;
                }
                line(level, out)?;
                out.push(b']');
            }
            JsonType::Object => {
                out.push(b'{');
                for (i, (key, value)) in self.members().enumerate() {
                    if i > 0 {
                        out.push(b',');
                    }
                    line(level + 1, out)?;
                    text::append_string(key, out)?;
                    out.extend_from_slice(b": ");
                    value.append_pretty(level + 1, out)?;
                }
                line(level, out)?;
                out.push(b'}');
            }
            _ => return self.append(out),
        }
        out.step()
    }
}

impl std::fmt::Display for JsonbRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown().map_err(|_| std::fmt::Error)?)
    }
}

impl<'a> JsonbValue<'a> {
    /// A parsed text.
    pub fn of_text(item: Item<'a>) -> Result<JsonbValue<'a>> {
        Ok(match item.value {
            Value::Null => JsonbValue::Null,
            Value::Bool(v) => JsonbValue::Bool(v),
            Value::Number => JsonbValue::Number(Numeric::parse(item.raw)?),
            Value::String(s) => JsonbValue::String(s),
            Value::Array(items) => JsonbValue::Array(
                items
                    .into_iter()
                    .map(JsonbValue::of_text)
                    .collect::<Result<_>>()?,
            ),
            Value::Object(members) => JsonbValue::Object(
                members
                    .into_iter()
                    .map(|(key, item)| Ok((key, JsonbValue::of_text(item)?)))
                    .collect::<Result<_>>()?,
            ),
        })
    }

    /// A string.
    pub fn string(s: impl Into<Cow<'a, str>>) -> JsonbValue<'a> {
        JsonbValue::String(s.into())
    }

    /// The finished value.
    pub fn finish(self) -> Result<Jsonb> {
        let mut bytes = Builder::default();
        bytes.push_byte(0)?;
        let (kind, _) = self.write(&mut bytes)?;
        bytes[0] = kind as u8;
        if bytes.len() > PAYLOAD_MAX {
            return Err(too_large("array"));
        }
        match bytes.finish_bytes()? {
            Datum::Bytea(bytes) => Ok(Jsonb(bytes)),
            _ => Err(SqlError::internal("bytes were built, and are none")),
        }
    }

    /// Appends the payload; gives kind and height.
    fn write(self, out: &mut Builder) -> Result<(JsonType, usize)> {
        Ok(match self {
            JsonbValue::Null => (JsonType::Null, 0),
            JsonbValue::Bool(v) => (if v { JsonType::True } else { JsonType::False }, 0),
            JsonbValue::Number(n) => {
                encode_numeric(&n, out);
                out.step()?;
                (JsonType::Number, 0)
            }
            JsonbValue::String(s) => {
                if s.len() > PAYLOAD_MAX {
                    return Err(SqlError::new(
                        SqlState::PROGRAM_LIMIT_EXCEEDED,
                        "string too long to represent as jsonb string",
                    )
                    .detail(format!(
                        "Due to an implementation restriction, jsonb strings cannot exceed {PAYLOAD_MAX} bytes."
                    )));
                }
                out.push_str(&s)?;
                (JsonType::String, 0)
            }
            JsonbValue::View(view) => {
                out.push_bytes(view.payload)?;
                (view.kind, view.height())
            }
            JsonbValue::Array(items) => {
                let mut container = Container::start(items.len(), items.len(), "array", out)?;
                for item in items {
                    container.add(item, out)?;
                }
                (JsonType::Array, container.end(out)?)
            }
            JsonbValue::Object(mut members) => {
                // Of equal keys the last one is to come first, and to stay.
                members.reverse();
                members.sort_by(|(a, _), (b, _)| key_order(a.as_bytes(), b.as_bytes()));
                members.dedup_by(|(a, _), (b, _)| a == b);
                let mut container =
                    Container::start(members.len(), members.len() * 2, "object", out)?;
                let mut values = Vec::with_capacity(members.len());
                for (key, value) in members {
                    container.add(JsonbValue::String(key), out)?;
                    values.push(value);
                }
                for value in values {
                    container.add(value, out)?;
                }
                (JsonType::Object, container.end(out)?)
            }
        })
    }
}

/// An array or object that is being written.
struct Container {
    header: usize,
    next: usize,
    base: usize,
    highest: usize,
    what: &'static str,
}

impl Container {
    fn start(
        count: usize,
        entries: usize,
        what: &'static str,
        out: &mut Builder,
    ) -> Result<Container> {
        let header = out.len();
        out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_le_bytes());
        out.extend_from_slice(&[0, 0]);
        let next = out.len();
        out.push_many(0, entries * 4)?;
        Ok(Container {
            header,
            next,
            base: out.len(),
            highest: 0,
            what,
        })
    }

    fn add(&mut self, child: JsonbValue<'_>, out: &mut Builder) -> Result<()> {
        let (kind, height) = child.write(out)?;
        self.highest = self.highest.max(height);
        let end = out.len() - self.base;
        if end > PAYLOAD_MAX {
            return Err(too_large(self.what));
        }
        let entry = (u32::from(kind as u8) << 28) | end as u32;
        out[self.next..self.next + 4].copy_from_slice(&entry.to_le_bytes());
        self.next += 4;
        Ok(())
    }

    fn end(self, out: &mut [u8]) -> Result<usize> {
        let height = self.highest + 1;
        if height > NESTING_MAX {
            return Err(too_deep());
        }
        let at = self.header + 4;
        out[at..at + 2].copy_from_slice(&(height as u16).to_le_bytes());
        Ok(height)
    }
}

fn too_large(what: &str) -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("total size of jsonb {what} elements exceeds the maximum of {PAYLOAD_MAX} bytes"),
    )
}

const _: () = assert!(NESTING_MAX <= u16::MAX as usize, "a height has 16 bits");

#[cfg(test)]
mod tests;
