//! Records: their text and binary forms, and their shapes, which are the names and types of the fields.
//!
//! Owns: the list of the shapes of anonymous records met by this process. The modifier of the type `record` says which
//! one it is: 0 and up are positions in the list, -1 is a record of which nothing is known. The shape of a composite
//! type, or of a table's rows, is the catalog's ([`user::UserTypes::shape`]). A record's value is an array of its
//! fields whose element type is [`FIELDS`], whatever its type's name; one whose element type is `record` is an array of
//! records. That array's modifier is its elements'.
//!
//! Invariants: one shape has one modifier; the list only grows, to `SHAPES_MAX` at most.

use super::text_io::{OutputStyle, append, input, is_space};
use super::{Array, Datum, SqlType, binary_io, info, oid, stored, user};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::{Builder, STRIDE_BYTES};
use crate::value::IoContext;
use foldhash::HashMap;
use logstead_types::SqlState;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// Names and types of a record's fields.
pub type TupleDesc = Arc<[(Arc<str>, SqlType)]>;

/// The element type of a record's value, which is no type's number: it tells a record from an array of records.
pub const FIELDS: TypeId = TypeId::new(u32::MAX);

/// Most shapes that are told apart: they are never forgotten, and statements choose the names.
const SHAPES_MAX: usize = 100_000;

/// Most records in each other that a type may ask for.
pub const NESTING_MAX: usize = 64;

#[derive(Default)]
struct RecordTypmodRegistry {
    list: Vec<TupleDesc>,
    known: HashMap<TupleDesc, i32>,
}

fn shapes() -> &'static RwLock<RecordTypmodRegistry> {
    static SHAPES: OnceLock<RwLock<RecordTypmodRegistry>> = OnceLock::new();
    SHAPES.get_or_init(RwLock::default)
}

/// The type of records with these fields.
pub fn record_type(fields: &[(Arc<str>, SqlType)]) -> Result<SqlType> {
    let mut shapes = shapes().write().unwrap_or_else(PoisonError::into_inner);
    let typmod = match shapes.known.get(fields) {
        Some(typmod) => *typmod,
        None if shapes.list.len() >= SHAPES_MAX => {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("more than {SHAPES_MAX} kinds of records have been used"),
            ));
        }
        None => {
            let typmod = i32::try_from(shapes.list.len()).unwrap_or(-1);
            let shape: TupleDesc = fields.into();
            shapes.list.push(Arc::clone(&shape));
            shapes.known.insert(shape, typmod);
            typmod
        }
    };
    Ok(SqlType {
        oid: oid::RECORD,
        typmod,
    })
}

/// True for types whose values are records: `record` itself, composite types, the types of tables' rows.
#[inline]
pub fn is_record(ty: TypeId) -> bool {
    ty == oid::RECORD || user::is_composite(ty)
}

/// The fields of a record type; `None` if nothing is known of them.
pub fn tuple_desc_of(ty: SqlType) -> Option<TupleDesc> {
    if user::is_composite(ty.oid) {
        return user::tuple_desc(ty.oid);
    }
    anonymous_desc(ty)
}

/// The fields of a type `record` whose modifier says which they are; `None` for any other type.
pub(super) fn anonymous_desc(ty: SqlType) -> Option<TupleDesc> {
    let at = usize::try_from(ty.typmod)
        .ok()
        .filter(|_| ty.oid == oid::RECORD)?;
    let shapes = shapes().read().unwrap_or_else(PoisonError::into_inner);
    shapes.list.get(at).cloned()
}

/// A record's value.
pub fn record(fields: Vec<Datum>) -> Datum {
    Datum::Array(Arc::new(Array {
        element: FIELDS,
        lower: 1,
        shape: None,
        items: fields,
    }))
}

/// The element type of an array of type `ty`: of an array of records it is known if the array's is.
pub fn element_of(array: &Array, ty: SqlType) -> SqlType {
    match (array.element, ty.oid) {
        (oid::RECORD, oid::RECORD_ARRAY) => SqlType {
            oid: oid::RECORD,
            typmod: ty.typmod,
        },
        (element, _) => SqlType::of(element),
    }
}

fn types(record: &Array, ty: SqlType) -> impl Iterator<Item = (&Datum, SqlType)> {
    let shape = tuple_desc_of(ty);
    record.items.iter().enumerate().map(move |(i, item)| {
        let ty = shape.as_ref().and_then(|shape| shape.get(i));
        (item, ty.map_or_else(|| type_of_value(item), |(_, ty)| *ty))
    })
}

/// The type of a field of which nothing but its value is known: one whose values look the same.
pub fn type_of_value(value: &Datum) -> SqlType {
    SqlType::of(match value {
        Datum::Array(array) => match stored::form_of(value) {
            oid::ANYARRAY => info::array_of(array.element).unwrap_or(oid::ANYARRAY),
            // A range does not say whose it is.
            oid::ANYRANGE | oid::ANYMULTIRANGE => oid::TEXT,
            form => form,
        },
        value => stored::form_of(value),
    })
}

/// The text form: `(1,"a b",)`.
pub(super) fn record_output(
    record: &Array,
    ty: SqlType,
    style: &OutputStyle<'_>,
    out: &mut Builder,
) -> Result<()> {
    out.push(b'(');
    let mut word = Builder::default();
    for (i, (item, ty)) in types(record, ty).enumerate() {
        if i > 0 {
            out.push(b',');
        }
        if item.is_null() {
            continue;
        }
        word.clear();
        append(item, ty, style, &mut word)?;
        let special = |c: u8| matches!(c, b'"' | b'\\' | b'(' | b')' | b',') || is_space(c);
        if !word.is_empty() && !word.iter().any(|c| special(*c)) {
            out.push_bytes(&word)?;
            continue;
        }
        quoted(&word, true, out)?;
    }
    out.push_byte(b')')
}

/// Appends a word in quotes: quotes and backslashes in it are doubled, or have a backslash before them.
pub(super) fn quoted(word: &[u8], doubled: bool, out: &mut Builder) -> Result<()> {
    out.push_byte(b'"')?;
    for part in word.chunks(STRIDE_BYTES) {
        let marks = part.iter().filter(|c| matches!(c, b'"' | b'\\')).count();
        out.reserve(part.len() + marks)?;
        for c in part {
            if matches!(c, b'"' | b'\\') {
                out.push(if doubled { *c } else { b'\\' });
            }
            out.push(*c);
        }
        out.step()?;
    }
    out.push_byte(b'"')
}

/// The binary form: number of fields, then type, length and bytes of each.
pub(super) fn record_send(record: &Array, ty: SqlType, out: &mut Vec<u8>) -> Result<()> {
    let count = i32::try_from(record.items.len()).unwrap_or(i32::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for (item, ty) in types(record, ty) {
        out.extend_from_slice(&ty.oid.get().to_be_bytes());
        let at = out.len();
        out.extend_from_slice(&(-1i32).to_be_bytes());
        if !item.is_null() {
            binary_io::binary_output(item, ty, out)?;
            let len = (out.len() - at - 4) as i32;
            out[at..at + 4].copy_from_slice(&len.to_be_bytes());
        }
    }
    Ok(())
}

fn malformed(text: &str, detail: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("malformed record literal: \"{text}\""),
    )
    .detail(detail)
}

/// One field's text, which ends at a comma or closing parenthesis outside of quotes, and where that is.
fn field_text(whole: &str, from: usize) -> Result<(String, usize)> {
    let end = || malformed(whole, "Unexpected end of input.");
    let mut text = String::new();
    let mut quoted = false;
    let mut rest = whole.get(from..).unwrap_or_default().char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            ',' | ')' if !quoted => return Ok((text, from + at)),
            '\\' => text.push(rest.next().ok_or_else(end)?.1),
            '"' if !quoted => quoted = true,
            // Two within quotes are one.
            '"' if rest.as_str().starts_with('"') => {
                rest.next();
                text.push('"');
            }
            '"' => quoted = false,
            c => text.push(c),
        }
    }
    Err(end())
}

/// Reads the text form of a record of type `ty`.
pub(super) fn record_input(ty: SqlType, text: &str, cx: Option<&dyn IoContext>) -> Result<Datum> {
    let Some(shape) = tuple_desc_of(ty) else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "input of anonymous composite types is not implemented",
        ));
    };
    user::refuse_unchecked_domains(ty)?;
    let blank = |c: char| c.is_ascii() && is_space(c as u8);
    let start = text.len() - text.trim_start_matches(blank).len();
    if !text[start..].starts_with('(') {
        return Err(malformed(text, "Missing left parenthesis."));
    }
    let mut at = start + 1;
    let mut fields = Vec::with_capacity(shape.len());
    for (number, (_, ty)) in shape.iter().enumerate() {
        if number > 0 {
            match text.as_bytes().get(at) {
                Some(b',') => at += 1,
                _ => return Err(malformed(text, "Too few columns.")),
            }
        }
        // Nothing at all is NULL.
        if matches!(text.as_bytes().get(at), Some(b',' | b')')) {
            fields.push(Datum::Null);
            continue;
        }
        let (field, end) = field_text(text, at)?;
        fields.push(input(*ty, &field, cx)?);
        at = end;
    }
    if text.as_bytes().get(at) != Some(&b')') {
        return Err(malformed(text, "Too many columns."));
    }
    if !text[at + 1..].trim_start_matches(blank).is_empty() {
        return Err(malformed(text, "Junk after right parenthesis."));
    }
    Ok(record(fields))
}

/// Reads the binary form.
pub(super) fn record_receive(ty: SqlType, bytes: &[u8]) -> Result<Datum> {
    let Some(shape) = tuple_desc_of(ty) else {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "input of anonymous composite types is not implemented",
        ));
    };
    user::refuse_domains(ty.oid)?;
    let short = || {
        SqlError::new(
            SqlState::PROTOCOL_VIOLATION,
            "insufficient data left in message",
        )
    };
    let mut rest = bytes;
    let word = |rest: &mut &[u8]| -> Result<i32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        *rest = tail;
        Ok(i32::from_be_bytes(*head))
    };
    let count = word(&mut rest)?;
    if usize::try_from(count) != Ok(shape.len()) {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!("wrong number of columns: {count}, expected {}", shape.len()),
        ));
    }
    let mut fields = Vec::with_capacity(shape.len());
    for (number, (_, ty)) in (1..).zip(shape.iter()) {
        let sent = TypeId::new(word(&mut rest)?.cast_unsigned());
        // A field of a domain may come as its base type, and the other way round.
        if sent != ty.oid && user::base_type(SqlType::of(sent)).oid != ty.oid {
            return Err(SqlError::new(
                SqlState::DATATYPE_MISMATCH,
                format!(
                    "binary data has type {sent} ({}) instead of expected {} ({}) in record column {number}",
                    info::format_type_bare(sent),
                    ty.oid,
                    info::format_type_bare(ty.oid)
                ),
            ));
        }
        let len = word(&mut rest)?;
        if len == -1 {
            fields.push(Datum::Null);
            continue;
        }
        let len = usize::try_from(len).map_err(|_| short())?;
        let (field, tail) = rest.split_at_checked(len).ok_or_else(short)?;
        fields.push(binary_io::binary_input(*ty, field)?);
        rest = tail;
    }
    if !rest.is_empty() {
        return Err(SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            "improper binary format in record",
        ));
    }
    Ok(record(fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn style_free(d: &Datum, ty: SqlType) -> String {
        super::super::text_io::message_text(d, ty, &OutputStyle::UTC)
    }

    #[test]
    fn one_shape_has_one_type() {
        let fields = [
            (Arc::from("a"), SqlType::of(oid::INT4)),
            (Arc::from("b"), SqlType::of(oid::TEXT)),
        ];
        let ty = record_type(&fields).unwrap();
        assert_eq!(ty, record_type(&fields).unwrap());
        assert_ne!(ty, record_type(&fields[..1]).unwrap());
        assert_eq!(tuple_desc_of(ty).unwrap()[1].0.as_ref(), "b");
        assert!(tuple_desc_of(SqlType::of(oid::RECORD)).is_none());
        let value = record(vec![Datum::Int4(1), Datum::text("a \"b\"")]);
        assert_eq!(style_free(&value, ty), "(1,\"a \"\"b\"\"\")");
        assert_eq!(
            style_free(&record(vec![Datum::Null, Datum::text("")]), ty),
            "(,\"\")"
        );
        let mut sent = Vec::new();
        binary_io::binary_output(&record(vec![Datum::Int4(7), Datum::Null]), ty, &mut sent)
            .expect("short");
        assert_eq!(
            sent,
            [
                0, 0, 0, 2, 0, 0, 0, 23, 0, 0, 0, 4, 0, 0, 0, 7, 0, 0, 0, 25, 255, 255, 255, 255
            ]
        );
    }
}
