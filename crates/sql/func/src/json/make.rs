//! SQL values as JSON: `to_json`, `json_build_object`, `row_to_json` and their kin.
//!
//! A json result is written straight as text, with PostgreSQL's blanks; a jsonb result is built. What a value becomes
//! follows from its type: booleans, numbers, JSON itself, arrays and records are what they are, dates are ISO 8601, all
//! else is a string.

use super::node::wrong_kind;
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::array::Dim;
use logstead_sql_types::value::json::{JsonbValue, text};
use logstead_sql_types::value::record::{is_record, tuple_desc_of, type_of_value};
use logstead_sql_types::value::{
    Array, Datum, Jsonb, Numeric, OutputStyle, SqlType, info, oid, text_io,
};
use logstead_types::SqlState;
use std::borrow::Cow;
use std::sync::Arc;

/// How values of a type are written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum JsonTypeCategory {
    Bool,
    Number,
    Moment,
    Json,
    Jsonb,
    Array,
    Record,
    Text,
}

fn form(ty: SqlType) -> JsonTypeCategory {
    match ty.oid {
        oid::BOOL => JsonTypeCategory::Bool,
        oid::INT2 | oid::INT4 | oid::INT8 | oid::FLOAT4 | oid::FLOAT8 | oid::NUMERIC => {
            JsonTypeCategory::Number
        }
        oid::DATE | oid::TIMESTAMP | oid::TIMESTAMPTZ => JsonTypeCategory::Moment,
        oid::JSON => JsonTypeCategory::Json,
        // An hstore is such a document.
        oid::JSONB | oid::HSTORE => JsonTypeCategory::Jsonb,
        _ if is_record(ty.oid) => JsonTypeCategory::Record,
        _ if info::element_of(ty.oid).is_some() => JsonTypeCategory::Array,
        _ => JsonTypeCategory::Text,
    }
}

/// True for arrays and records: aggregates put each on a line of its own.
pub(super) fn is_structured(ty: SqlType) -> bool {
    matches!(form(ty), JsonTypeCategory::Array | JsonTypeCategory::Record)
}

/// The text of a date or timestamp as ISO 8601 has it.
fn moment(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> String {
    let mut text = text_io::message_text(d, ty, &style.for_storage());
    if ty.oid == oid::DATE || text.ends_with("infinity") {
        return text;
    }
    if let Some(blank) = text.find(' ') {
        text.replace_range(blank..=blank, "T");
    }
    if ty.oid == oid::TIMESTAMPTZ {
        // The offset always has minutes.
        let end = text.find(' ').unwrap_or(text.len());
        let sign = text[..end].rfind(['+', '-']).unwrap_or(end);
        if !text[sign..end].contains(':') {
            text.insert_str(end, ":00");
        }
    }
    text
}

/// Element type of an array value of type `ty`.
fn element_type(array: &Array, ty: SqlType) -> SqlType {
    SqlType {
        oid: info::element_of(ty.oid).unwrap_or(array.element),
        typmod: ty.typmod,
    }
}

/// Names and types of a record's fields; f1, f2 ... for one of which nothing is known.
fn fields(record: &Array, ty: SqlType) -> Vec<(Arc<str>, SqlType)> {
    let shape = tuple_desc_of(ty);
    let of = |(i, item): (usize, &Datum)| match shape.as_ref().and_then(|shape| shape.get(i)) {
        Some(field) => field.clone(),
        None => (format!("f{}", i + 1).into(), type_of_value(item)),
    };
    record.items.iter().enumerate().map(of).collect()
}

/// Writes values as json text.
pub(super) struct JsonWriter<'a> {
    style: OutputStyle<'a>,
}

impl<'a> JsonWriter<'a> {
    pub(super) fn new(cx: &'a dyn IoContext) -> JsonWriter<'a> {
        JsonWriter {
            style: OutputStyle::of(cx),
        }
    }

    fn plain_style() -> JsonWriter<'static> {
        JsonWriter {
            style: OutputStyle::UTC,
        }
    }

    fn text(&self, d: &Datum, ty: SqlType) -> Result<String> {
        text_io::to_text(d, ty, &self.style)
    }

    /// Appends a value.
    pub(super) fn value(&self, d: &Datum, ty: SqlType, out: &mut Builder) -> Result<()> {
        match (form(ty), d) {
            (_, Datum::Null) => out.extend_from_slice(b"null"),
            (JsonTypeCategory::Bool, Datum::Bool(v)) => {
                out.extend_from_slice(if *v { b"true" } else { b"false" });
            }
            (JsonTypeCategory::Number, _) => {
                let number = self.text(d, ty)?;
                if number.ends_with(|c: char| c.is_ascii_digit()) {
                    out.extend_from_slice(number.as_bytes());
                } else {
                    text::write_string(&number, out);
                }
            }
            (JsonTypeCategory::Moment, _) => text::write_string(&moment(d, ty, &self.style), out),
            (JsonTypeCategory::Json, Datum::Text(json)) => out.push_str(json)?,
            (JsonTypeCategory::Jsonb, Datum::Jsonb(json)) => json.view().append(out)?,
            (JsonTypeCategory::Array, Datum::Array(array)) => self.array(array, ty, ",", out)?,
            (JsonTypeCategory::Record, Datum::Array(record)) => {
                self.record(record, ty, ",", out)?
            }
            (_, Datum::Text(t)) if ty.oid != oid::XML => text::append_string(t, out)?,
            _ => text::append_string(&self.text(d, ty)?, out)?,
        }
        out.step()
    }

    fn array(&self, array: &Array, ty: SqlType, between: &str, out: &mut Builder) -> Result<()> {
        let element = element_type(array, ty);
        self.dimension(&array.items, &array.dims(), element, between, out)
    }

    /// An array of arrays if there are more dimensions; only the outermost is laid out in lines.
    fn dimension(
        &self,
        items: &[Datum],
        dims: &[Dim],
        element: SqlType,
        between: &str,
        out: &mut Builder,
    ) -> Result<()> {
        out.push(b'[');
        let inner = dims.get(1..).unwrap_or_default();
        for (i, part) in items.chunks(part_len(items, dims)).enumerate() {
            if i > 0 {
                out.extend_from_slice(between.as_bytes());
            }
            match part {
                [item] if inner.is_empty() => self.value(item, element, out)?,
                part => self.dimension(part, inner, element, ",", out)?,
            }
        }
        out.push(b']');
        Ok(())
    }

    /// The same as a part of a jsonb value.
    fn build_dimension<'d>(
        &self,
        items: &'d [Datum],
        dims: &[Dim],
        element: SqlType,
    ) -> Result<JsonbValue<'d>> {
        let inner = dims.get(1..).unwrap_or_default();
        let parts = items.chunks(part_len(items, dims)).map(|part| match part {
            [item] if inner.is_empty() => self.build(item, element),
            part => self.build_dimension(part, inner, element),
        });
        Ok(JsonbValue::Array(parts.collect::<Result<_>>()?))
    }

    fn record(&self, record: &Array, ty: SqlType, between: &str, out: &mut Builder) -> Result<()> {
        out.push(b'{');
        for (i, (item, (name, ty))) in record.items.iter().zip(fields(record, ty)).enumerate() {
            if i > 0 {
                out.extend_from_slice(between.as_bytes());
            }
            text::append_string(&name, out)?;
            out.push(b':');
            self.value(item, ty, out)?;
        }
        out.push(b'}');
        Ok(())
    }

    /// The text of a key, which must be a scalar.
    pub(super) fn key(&self, d: &Datum, ty: SqlType) -> Result<String> {
        Ok(match (form(ty), d) {
            (
                JsonTypeCategory::Array
                | JsonTypeCategory::Record
                | JsonTypeCategory::Json
                | JsonTypeCategory::Jsonb,
                _,
            ) => {
                return Err(wrong_kind(
                    "key value must be scalar, not array, composite, or json",
                ));
            }
            (JsonTypeCategory::Bool, Datum::Bool(v)) => v.to_string(),
            (JsonTypeCategory::Moment, _) => moment(d, ty, &self.style),
            _ => self.text(d, ty)?,
        })
    }

    /// A value as a part of a jsonb value.
    pub(super) fn build<'d>(&self, d: &'d Datum, ty: SqlType) -> Result<JsonbValue<'d>> {
        Ok(match (form(ty), d) {
            (_, Datum::Null) => JsonbValue::Null,
            (JsonTypeCategory::Bool, Datum::Bool(v)) => JsonbValue::Bool(*v),
            (JsonTypeCategory::Number, Datum::Numeric(n)) if n.is_finite() => {
                JsonbValue::Number(n.clone())
            }
            (JsonTypeCategory::Number, _) => {
                let number = self.text(d, ty)?;
                if number.ends_with(|c: char| c.is_ascii_digit()) {
                    JsonbValue::Number(Numeric::parse(&number)?)
                } else {
                    JsonbValue::string(number)
                }
            }
            (JsonTypeCategory::Moment, _) => JsonbValue::string(moment(d, ty, &self.style)),
            (JsonTypeCategory::Json, Datum::Text(json)) => {
                JsonbValue::of_text(text::parse(json, true)?)?
            }
            (JsonTypeCategory::Text, Datum::Text(t)) if ty.oid != oid::XML => {
                JsonbValue::string(&**t)
            }
            (JsonTypeCategory::Jsonb, Datum::Jsonb(json)) => JsonbValue::View(json.view()),
            (JsonTypeCategory::Array, Datum::Array(array)) => {
                let element = element_type(array, ty);
                self.build_dimension(&array.items, &array.dims(), element)?
            }
            (JsonTypeCategory::Record, Datum::Array(record)) => {
                let pairs = record.items.iter().zip(fields(record, ty));
                let members = pairs.map(|(item, (name, ty))| {
                    Ok((Cow::Owned(name.to_string()), self.build(item, ty)?))
                });
                JsonbValue::Object(members.collect::<Result<_>>()?)
            }
            _ => JsonbValue::string(self.text(d, ty)?),
        })
    }
}

/// How many elements are in each part of the first dimension.
fn part_len(items: &[Datum], dims: &[Dim]) -> usize {
    let parts = dims.first().and_then(|dim| usize::try_from(dim.len).ok());
    (items.len() / parts.unwrap_or(1).max(1)).max(1)
}

pub(super) fn json(out: Builder) -> Result<Datum> {
    out.finish_text()
}

fn jsonb(build: JsonbValue<'_>) -> Result<Datum> {
    build.finish().map(Datum::Jsonb)
}

/// `to_json`
pub(super) fn to_json(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([value], [ty]) = (a, types) else {
        return Err(bad_args(a));
    };
    let mut out = Builder::default();
    JsonWriter::new(cx).value(value, *ty, &mut out)?;
    json(out)
}

/// `to_jsonb`
pub(super) fn to_jsonb(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([value], [ty]) = (a, types) else {
        return Err(bad_args(a));
    };
    jsonb(JsonWriter::new(cx).build(value, *ty)?)
}

/// `array_to_json(array [, line by line])`, `row_to_json(record [, line by line])`
pub(super) fn lines_to_json(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let between = match a.get(1) {
        Some(pretty) if pretty.as_bool()? => ",\n ",
        _ => ",",
    };
    let (Some(Datum::Array(value)), Some(ty)) = (a.first(), types.first()) else {
        return Err(bad_args(a));
    };
    let mut out = Builder::default();
    let writer = JsonWriter::new(cx);
    if form(*ty) == JsonTypeCategory::Record {
        writer.record(value, *ty, between, &mut out)?;
    } else {
        writer.array(value, *ty, between, &mut out)?;
    }
    json(out)
}

/// `json_build_array`
pub(super) fn build_array(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let writer = JsonWriter::new(cx);
    let mut out = Builder::default();
    out.push(b'[');
    for (i, (value, ty)) in a.iter().zip(types).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        writer.value(value, *ty, &mut out)?;
    }
    out.push(b']');
    json(out)
}

/// `jsonb_build_array`
pub(super) fn jsonb_build_array(
    cx: &dyn IoContext,
    types: &[SqlType],
    a: &[Datum],
) -> Result<Datum> {
    let writer = JsonWriter::new(cx);
    let items = a.iter().zip(types).map(|(d, ty)| writer.build(d, *ty));
    jsonb(JsonbValue::Array(items.collect::<Result<_>>()?))
}

fn even(a: &[Datum], name: &str) -> Result<()> {
    if a.len() % 2 == 1 {
        return Err(
            wrong_kind("argument list must have even number of elements").hint(format!(
                "The arguments of {name}() must consist of alternating keys and values."
            )),
        );
    }
    Ok(())
}

/// `json_build_object`
pub(super) fn build_object(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    even(a, "json_build_object")?;
    let writer = JsonWriter::new(cx);
    let mut out = Builder::default();
    out.push(b'{');
    for (i, (pair, types)) in a.chunks(2).zip(types.chunks(2)).enumerate() {
        let ([key, value], [key_type, value_type]) = (pair, types) else {
            return Err(bad_args(a));
        };
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        if key.is_null() {
            return Err(wrong_kind(format!("argument {} cannot be null", 2 * i + 1))
                .hint("Object keys should be text."));
        }
        text::append_string(&writer.key(key, *key_type)?, &mut out)?;
        out.extend_from_slice(b" : ");
        writer.value(value, *value_type, &mut out)?;
    }
    out.push(b'}');
    json(out)
}

/// `jsonb_build_object`
pub(super) fn jsonb_build_object(
    cx: &dyn IoContext,
    types: &[SqlType],
    a: &[Datum],
) -> Result<Datum> {
    even(a, "jsonb_build_object")?;
    let writer = JsonWriter::new(cx);
    let mut members = Vec::with_capacity(a.len() / 2);
    for (i, (pair, types)) in a.chunks(2).zip(types.chunks(2)).enumerate() {
        let ([key, value], [key_type, value_type]) = (pair, types) else {
            return Err(bad_args(a));
        };
        if key.is_null() {
            return Err(wrong_kind(format!(
                "argument {}: key must not be null",
                2 * i + 1
            )));
        }
        let key = Cow::Owned(writer.key(key, *key_type)?);
        members.push((key, writer.build(value, *value_type)?));
    }
    jsonb(JsonbValue::Object(members))
}

/// Keys and values of `json_object`: one array with both in turn, or two.
fn pairs(a: &[Datum]) -> Result<Vec<(&str, &Datum)>> {
    let subscripts = |message| SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
    let named = |key: &Datum| match key {
        Datum::Null => Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "null value not allowed for object key",
        )),
        _ => Ok(()),
    };
    let mut all = Vec::new();
    match a {
        [both] => {
            let both = both.as_array()?;
            let items = &both.items;
            match both.shape.as_deref() {
                None => {}
                Some([_, columns]) if columns.len == 2 => {}
                Some([_, _]) => return Err(subscripts("array must have two columns")),
                Some(_) => return Err(subscripts("wrong number of array subscripts")),
            }
            if items.len() % 2 == 1 {
                return Err(subscripts("array must have even number of elements"));
            }
            for two in items.chunks(2) {
                named(&two[0])?;
                all.push((two[0].as_str()?, &two[1]));
            }
        }
        [keys, values] => {
            let (keys, values) = (keys.as_array()?, values.as_array()?);
            if keys.shape.is_some() || values.shape.is_some() {
                return Err(subscripts("wrong number of array subscripts"));
            }
            let (keys, values) = (&keys.items, &values.items);
            if keys.len() != values.len() {
                return Err(subscripts("mismatched array dimensions"));
            }
            for two in keys.iter().zip(values) {
                named(two.0)?;
                all.push((two.0.as_str()?, two.1));
            }
        }
        _ => return Err(bad_args(a)),
    }
    Ok(all)
}

/// `json_object`
pub(super) fn object(a: &[Datum]) -> Result<Datum> {
    let mut out = Builder::default();
    out.push(b'{');
    for (i, (key, value)) in pairs(a)?.into_iter().enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        text::append_string(key, &mut out)?;
        out.extend_from_slice(b" : ");
        JsonWriter::plain_style().value(value, SqlType::of(oid::TEXT), &mut out)?;
    }
    out.push(b'}');
    json(out)
}

/// `jsonb_object`
pub(super) fn jsonb_object(a: &[Datum]) -> Result<Datum> {
    let mut members = Vec::new();
    for (key, value) in pairs(a)? {
        let value = match value {
            Datum::Null => JsonbValue::Null,
            value => JsonbValue::string(value.as_str()?),
        };
        members.push((Cow::Borrowed(key), value));
    }
    jsonb(JsonbValue::Object(members))
}

/// A value kept by an aggregate, on its own.
pub(super) fn kept(cx: &dyn IoContext, d: &Datum, ty: SqlType) -> Result<Jsonb> {
    JsonWriter::new(cx).build(d, ty)?.finish()
}
