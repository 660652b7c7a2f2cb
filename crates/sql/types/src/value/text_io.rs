//! Text form of values: what clients send and see.
//!
//! Owns: [`input`] and [`output`] for every type, PostgreSQL 15's spellings, messages and SQLSTATEs. Output allocates
//! nothing for integers, text, booleans, dates and small numerics: it appends to the caller's buffer.

#[path = "array_text.rs"]
mod array_text;

use super::float_text::{float, write_f32, write_f64};
use super::object_text::{
    named_object, object_id, transaction_id, wide_transaction_id, write_object,
};
use crate::value::xml;
use array_text::{array_input, array_output};

use super::datetime::{DateForm, DateOrder, DateStyle, IntervalStyle};
use super::geometry::{self, Geometry};
use super::numeric::Numeric;
use super::types::{SqlType, oid};
use super::{
    Array, Bits, Datum, Inet, datetime, hstore, info, json, lsn, money, multirange, network, range,
    record, user,
};
use super::{snapshot, tid};
use crate::error::{Result, SqlError};
use crate::memory::{Builder, SMALL_BYTES, STRIDE_BYTES};
use crate::value::search::{query, query_parser, vector};
use crate::value::{DateTimeContext, IoContext};
use jiff::tz::TimeZone;
use logstead_types::SqlState;
use std::sync::Arc;

/// How dates are written that are read alike in every session.
const ISO: DateStyle = DateStyle {
    form: DateForm::Iso,
    order: DateOrder::Mdy,
};

/// What the session's settings say about output.
#[derive(Clone, Copy)]
pub struct OutputStyle<'a> {
    /// TimeZone
    pub time_zone: &'a TimeZone,
    /// extra_float_digits: above 0 the shortest exact form, else 15 + n (6 + n) digits
    pub extra_float_digits: i32,
    /// bytea_output = escape
    pub bytea_escape: bool,
    /// IntervalStyle
    pub interval: IntervalStyle,
    /// DateStyle
    pub date: DateStyle,
    /// Gives names to regclass and its kin; numbers are printed without it.
    pub names: Option<&'a dyn IoContext>,
    /// Values of regtype are users' types by their numbers: the text is kept.
    pub types_by_number: bool,
}

impl OutputStyle<'static> {
    /// Defaults in UTC.
    pub const UTC: OutputStyle<'static> = OutputStyle {
        time_zone: &TimeZone::UTC,
        extra_float_digits: 1,
        bytea_escape: false,
        interval: IntervalStyle::Postgres,
        date: ISO,
        names: None,
        types_by_number: false,
    };
}

impl<'a> OutputStyle<'a> {
    /// The style that a session's settings ask for.
    pub fn of(cx: &'a dyn IoContext) -> OutputStyle<'a> {
        OutputStyle {
            time_zone: cx.time_zone(),
            extra_float_digits: cx
                .setting("extra_float_digits")
                .and_then(|s| s.parse().ok())
                .unwrap_or(1),
            bytea_escape: cx
                .setting("bytea_output")
                .is_some_and(|s| s.eq_ignore_ascii_case("escape")),
            interval: cx
                .setting("intervalstyle")
                .map_or(IntervalStyle::Postgres, |s| IntervalStyle::named(&s)),
            date: DateStyle {
                form: cx.date_form(),
                order: cx.date_order(),
            },
            names: Some(cx),
            types_by_number: false,
        }
    }
}

impl OutputStyle<'_> {
    /// The same for a text that is kept: one that is read alike in every session, which intervals of the standard's
    /// style and dates of other styles are not.
    pub fn for_storage(self) -> Self {
        OutputStyle {
            interval: IntervalStyle::Postgres,
            date: ISO,
            ..self
        }
    }
}

/// "invalid input syntax for type T".
pub fn invalid_syntax(type_name: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_TEXT_REPRESENTATION,
        format!("invalid input syntax for type {type_name}: \"{text}\""),
    )
}

pub(super) fn is_space(b: u8) -> bool {
    b.is_ascii_whitespace() || b == 0x0b
}

pub(super) fn trim(s: &str) -> &str {
    s.trim_matches(|c: char| c.is_ascii() && is_space(c as u8))
}

pub(super) fn integer(text: &str, name: &str, min: i64, max: i64) -> Result<i64> {
    let t = trim(text).as_bytes();
    let (neg, digits) = match t.first() {
        Some(b'-') => (true, &t[1..]),
        Some(b'+') => (false, &t[1..]),
        _ => (false, t),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(invalid_syntax(name, text));
    }
    let mut v: i64 = 0;
    for d in digits {
        let d = i64::from(d - b'0');
        // Negative accumulation reaches the minimum.
        v = match v.checked_mul(10).and_then(|v| v.checked_sub(d)) {
            Some(v) => v,
            None => return Err(out_of_range_value(text, name)),
        };
    }
    let v = if neg { Some(v) } else { v.checked_neg() };
    v.filter(|v| (min..=max).contains(v))
        .ok_or_else(|| out_of_range_value(text, name))
}

fn out_of_range_value(text: &str, name: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("value \"{text}\" is out of range for type {name}"),
    )
}

/// Reads a boolean as PostgreSQL does: any unique prefix of true, false, yes, no, on, off; 1, 0.
pub fn parse_bool(text: &str) -> Option<bool> {
    let t = trim(text).to_ascii_lowercase();
    let prefix = |word: &str, least: usize| t.len() >= least && word.starts_with(t.as_str());
    if prefix("true", 1) || prefix("yes", 1) || t == "on" || t == "1" {
        Some(true)
    } else if prefix("false", 1) || prefix("no", 1) || prefix("off", 2) || t == "0" {
        Some(false)
    } else {
        None
    }
}

fn bytea(text: &str) -> Result<Datum> {
    let b = text.as_bytes();
    if let Some(hex) = b.strip_prefix(b"\\x") {
        return decode_hex(hex).map(|v| Datum::Bytea(v.into()));
    }
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while i < b.len() {
        if b[i] != b'\\' {
            out.push(b[i]);
            i += 1;
        } else if b.get(i + 1) == Some(&b'\\') {
            out.push(b'\\');
            i += 2;
        } else if let Some([x @ b'0'..=b'3', y @ b'0'..=b'7', z @ b'0'..=b'7']) =
            b.get(i + 1..i + 4)
        {
            out.push((x - b'0') << 6 | (y - b'0') << 3 | (z - b'0'));
            i += 4;
        } else {
            return Err(SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                "invalid input syntax for type bytea",
            ));
        }
    }
    Ok(Datum::Bytea(out.into()))
}

/// Hexadecimal digits (blanks between pairs allowed) to bytes.
pub fn decode_hex(hex: &[u8]) -> Result<Vec<u8>> {
    let invalid = |text: String| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, text);
    let mut out = Vec::with_capacity(hex.len() / 2);
    let digit = |c: u8| match c {
        b'0'..=b'9' => Ok(c - b'0'),
        b'a'..=b'f' => Ok(c - b'a' + 10),
        b'A'..=b'F' => Ok(c - b'A' + 10),
        _ => Err(invalid(format!(
            "invalid hexadecimal digit: \"{}\"",
            String::from_utf8_lossy(&[c])
        ))),
    };
    let mut i = 0;
    while i < hex.len() {
        if matches!(hex[i], b' ' | b'\n' | b'\t' | b'\r') {
            i += 1;
            continue;
        }
        let hi = digit(hex[i])?;
        let lo = match hex.get(i + 1) {
            Some(&c) => digit(c)?,
            None => {
                return Err(invalid(
                    "invalid hexadecimal data: odd number of digits".into(),
                ));
            }
        };
        out.push(hi << 4 | lo);
        i += 2;
    }
    Ok(out)
}

fn uuid(text: &str) -> Result<Datum> {
    let bad = || invalid_syntax("uuid", text);
    let b = text.as_bytes();
    let b = match (b.first(), b.last()) {
        (Some(b'{'), Some(b'}')) if b.len() > 2 => &b[1..b.len() - 1],
        _ => b,
    };
    let mut out = [0u8; 16];
    let mut i = 0;
    for (n, slot) in out.iter_mut().enumerate() {
        // A hyphen may follow every group of four digits.
        if n > 0 && n % 2 == 0 && b.get(i) == Some(&b'-') {
            i += 1;
        }
        let pair = b.get(i..i + 2).ok_or_else(bad)?;
        if !pair.iter().all(u8::is_ascii_hexdigit) {
            return Err(bad());
        }
        *slot = decode_hex(pair)?[0];
        i += 2;
    }
    if i != b.len() {
        return Err(bad());
    }
    Ok(Datum::Uuid(Box::new(out)))
}

/// Cuts a name at 63 bytes, on a character's border.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The part of a context that dates and times are read by.
fn times(cx: Option<&dyn IoContext>) -> Option<&dyn DateTimeContext> {
    cx.map(|cx| cx as _)
}

/// Reads the text form of a value of type `ty`. The modifier is applied as in an assignment: too long is an error.
/// `cx` gives the clock, the time zone and names; without it zone-less input is UTC and `now` is refused.
pub fn input(ty: SqlType, text: &str, cx: Option<&dyn IoContext>) -> Result<Datum> {
    let _room = super::admission::admit_input(ty, text)?;
    let ty = user::base_type(ty);
    let d = match ty.oid {
        oid::INT4 => {
            Datum::Int4(integer(text, "integer", i64::from(i32::MIN), i64::from(i32::MAX))? as i32)
        }
        oid::INT8 => Datum::Int8(integer(text, "bigint", i64::MIN, i64::MAX)?),
        oid::INT2 => {
            Datum::Int2(integer(text, "smallint", i64::from(i16::MIN), i64::from(i16::MAX))? as i16)
        }
        oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::CITEXT
        | oid::UNKNOWN
        | oid::PG_NODE_TREE
        | oid::ACLITEM
        | oid::REFCURSOR
        | oid::CSTRING => Datum::text(text),
        oid::NAME => Datum::text(truncate_name(text)),
        oid::BOOL => Datum::Bool(parse_bool(text).ok_or_else(|| invalid_syntax("boolean", text))?),
        oid::NUMERIC => Datum::numeric(Numeric::parse(text)?),
        oid::JSON => {
            json::text::parse(text, false)?;
            Datum::text(text)
        }
        oid::XML => {
            xml::check(text, xml::XmlOption::of(cx))?;
            Datum::text(text)
        }
        oid::JSONPATH => Datum::text(json::path::print(&json::path::parse(text)?)),
        oid::JSONB => Datum::Jsonb(json::Jsonb::parse(text)?),
        oid::FLOAT8 => Datum::Float8(float(text, "double precision")?),
        oid::FLOAT4 => {
            let wide = float(text, "real")?;
            let v: f32 = trim(text).parse().unwrap_or(wide as f32);
            if (v.is_infinite() && wide.is_finite()) || (v == 0.0 && wide != 0.0) {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("\"{}\" is out of range for type real", trim(text)),
                ));
            }
            Datum::Float4(v)
        }
        oid::BYTEA => bytea(text)?,
        oid::TSVECTOR => vector::parse(text)?,
        oid::TSQUERY => query_parser::input(text)?,
        oid::CHAR => Datum::Char(char_input(text)),
        oid::DATE => Datum::Date(datetime::parse_date(text, times(cx))?),
        oid::TIME => Datum::Time(datetime::parse_time(text, times(cx))?),
        oid::TIMETZ => Datum::TimeTz(datetime::parse_timetz(text, times(cx))?),
        oid::BIT | oid::VARBIT => Datum::Bits(Bits::parse(text)?),
        oid::TIMESTAMP => Datum::Timestamp(datetime::parse_timestamp(text, times(cx))?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(datetime::parse_timestamptz(text, times(cx))?),
        oid::INTERVAL => {
            let style = cx.and_then(|cx| cx.setting("intervalstyle"));
            let style = style.map_or(IntervalStyle::Postgres, |name| IntervalStyle::named(&name));
            let text = datetime::read_in(style, text);
            Datum::Interval(Box::new(datetime::parse_interval_as(&text, ty.typmod)?))
        }
        oid::UUID => uuid(text)?,
        oid::MONEY => Datum::Money(money::parse(text)?),
        oid::INET | oid::CIDR => Datum::inet(Inet::parse(text, ty.oid == oid::CIDR)?),
        oid::PG_LSN => Datum::Lsn(lsn::parse(text)?),
        _ if geometry::is_geometry(ty.oid) => Geometry::parse(ty.oid, text)?.datum(),
        oid::MACADDR => Datum::Mac(network::parse_mac(text)?),
        oid::MACADDR8 => Datum::Mac8(network::parse_mac8(text)?),
        oid::OID => Datum::Oid(object_id(text, "oid")?),
        oid::XID | oid::CID => Datum::Oid(transaction_id(text) as u32),
        oid::XID8 => Datum::Int8(wide_transaction_id(text)?),
        oid::TID => tid::parse(text)?,
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => snapshot::parse(text)?,
        oid::REGCLASS
        | oid::REGTYPE
        | oid::REGPROC
        | oid::REGNAMESPACE
        | oid::REGPROCEDURE
        | oid::REGOPER
        | oid::REGOPERATOR
        | oid::REGCOLLATION
        | oid::REGROLE
        | oid::REGCONFIG
        | oid::REGDICTIONARY => named_object(ty.oid, text, cx)?,
        oid::INT2VECTOR | oid::OIDVECTOR => {
            let element = if ty.oid == oid::INT2VECTOR {
                oid::INT2
            } else {
                oid::OID
            };
            let items: Result<Vec<Datum>> = text
                .split_ascii_whitespace()
                .map(|t| input(SqlType::of(element), t, cx))
                .collect();
            Datum::Array(Arc::new(Array {
                element,
                lower: 0,
                shape: None,
                items: items?,
            }))
        }
        oid::VOID => Datum::Null,
        oid::HSTORE => hstore::input(text)?,
        _ if user::is_enum(ty.oid) => user::enum_input(ty.oid, text)?,
        _ if record::is_record(ty.oid) => return record::record_input(ty, text, cx),
        _ if range::is_range(ty.oid) => return range::range_input(ty, text, cx),
        _ if multirange::is_multirange(ty.oid) => {
            return multirange::multirange_input(ty, text, cx);
        }
        _ => match info::element_of(ty.oid) {
            Some(element) => {
                return array_input(
                    SqlType {
                        oid: element,
                        typmod: ty.typmod,
                    },
                    text,
                    cx,
                );
            }
            None => {
                let name = match cx {
                    Some(cx) => cx.format_type_bare(ty.oid),
                    None => info::format_built_in(ty, false),
                };
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot accept a value of type {name}"),
                ));
            }
        },
    };
    if ty.typmod >= 0 {
        super::typmod::coerce_typmod(d, ty, false)
    } else {
        Ok(d)
    }
}

/// "char": the first byte, or `\ooo`.
pub fn char_input(text: &str) -> u8 {
    match text.as_bytes() {
        // What does not fit is cut, as PostgreSQL cuts it.
        [b'\\', x @ b'0'..=b'7', y @ b'0'..=b'7', z @ b'0'..=b'7'] => {
            (x - b'0') << 6 | (y - b'0') << 3 | (z - b'0')
        }
        b => b.first().copied().unwrap_or(0),
    }
}

/// Appends a decimal integer.
pub fn write_int(v: i64, out: &mut Vec<u8>) {
    let mut buf = [0u8; 20];
    let mut i = buf.len();
    let mut u = v.unsigned_abs();
    loop {
        i -= 1;
        buf[i] = b'0' + (u % 10) as u8;
        u /= 10;
        if u == 0 {
            break;
        }
    }
    if v < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&buf[i..]);
}

fn hex(b: &[u8], out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for &c in b {
        out.push(DIGITS[usize::from(c >> 4)]);
        out.push(DIGITS[usize::from(c & 15)]);
    }
}

/// Appends bytes as lower-case hexadecimal digits.
pub fn write_hex(b: &[u8], out: &mut Vec<u8>) {
    hex(b, out);
}

/// Appends bytes in bytea's escape form.
pub fn write_escaped(b: &[u8], out: &mut Vec<u8>) {
    for &c in b {
        match c {
            b'\\' => out.extend_from_slice(b"\\\\"),
            0x20..=0x7e => out.push(c),
            _ => out.extend_from_slice(&[
                b'\\',
                b'0' + (c >> 6),
                b'0' + (c >> 3 & 7),
                b'0' + (c & 7),
            ]),
        }
    }
}

/// Appends the text form. NULL appends nothing: the caller knows its own way to say NULL.
pub fn output(d: &Datum, ty: SqlType, style: &OutputStyle<'_>, out: &mut Vec<u8>) -> Result<()> {
    match d {
        Datum::Text(v) if v.len() < SMALL_BYTES && ty.oid != oid::XML => {
            out.extend_from_slice(v.as_bytes())
        }
        Datum::Text(_)
        | Datum::Bytea(_)
        | Datum::TsVector(_)
        | Datum::TsQuery(_)
        | Datum::Jsonb(_)
        | Datum::Bits(_)
        | Datum::Geometry(_)
        | Datum::Array(_) => {
            let mut builder = Builder::take(out);
            let result = append(d, ty, style, &mut builder);
            builder.give_back(out);
            return result;
        }
        _ => write(d, ty, style, out),
    }
    Ok(())
}

/// The same to what is being built.
pub fn append(d: &Datum, ty: SqlType, style: &OutputStyle<'_>, out: &mut Builder) -> Result<()> {
    match d {
        Datum::Text(v) if ty.oid == oid::XML => return out.push_str(&xml::shown(v)),
        Datum::Text(v) => return out.push_str(v),
        // An element of a tsvector takes some bytes, of which none prints as more than four.
        Datum::TsVector(v) => {
            out.reserve(v.len().saturating_mul(4))?;
            vector::output(v, out);
        }
        Datum::TsQuery(v) => {
            out.reserve(v.len().saturating_mul(8))?;
            query::output(v, out);
        }
        Datum::Bytea(v) if style.bytea_escape => {
            for part in v.chunks(STRIDE_BYTES / 4) {
                write_escaped(part, out);
                out.step()?;
            }
        }
        Datum::Bytea(v) => {
            out.reserve(v.len().saturating_mul(2).saturating_add(2))?;
            out.extend_from_slice(b"\\x");
            for part in v.chunks(STRIDE_BYTES) {
                hex(part, out);
                out.step()?;
            }
        }
        Datum::Jsonb(j) if ty.oid == oid::HSTORE => {
            out.reserve(j.bytes().len().saturating_mul(2).saturating_add(64))?;
            hstore::output(j.view(), out);
        }
        Datum::Jsonb(v) => return v.view().append(out),
        Datum::Geometry(v) => v.append(style.extra_float_digits, out)?,
        Datum::Bits(v) => {
            out.reserve(v.len() as usize)?;
            v.write(out)?;
        }
        Datum::Array(a) if a.element == record::FIELDS => {
            record::record_output(a, ty, style, out)?;
        }
        Datum::Array(a) if a.element == oid::ANYRANGE => range::range_output(a, ty, style, out)?,
        Datum::Array(a) if a.element == oid::ANYMULTIRANGE => {
            multirange::multirange_output(a, ty, style, out)?;
        }
        Datum::Array(a) => array_output(a, ty, style, out)?,
        _ => write(d, ty, style, out),
    }
    out.step()
}

/// What is no longer than a number.
fn write(d: &Datum, ty: SqlType, style: &OutputStyle<'_>, out: &mut Vec<u8>) {
    match d {
        Datum::Null => {}
        Datum::Bool(v) => out.push(if *v { b't' } else { b'f' }),
        Datum::Int2(v) => write_int(i64::from(*v), out),
        Datum::Int4(v) => write_int(i64::from(*v), out),
        Datum::Int8(v) if ty.oid == oid::TID => tid::write(*v, out),
        Datum::Int8(v) => write_int(*v, out),
        Datum::Float4(v) => write_f32(*v, style.extra_float_digits, out),
        Datum::Float8(v) => write_f64(*v, style.extra_float_digits, out),
        Datum::Numeric(v) => v.write(out),
        Datum::Oid(v) => write_object(*v, ty.oid, style, out),
        Datum::Char(0) => {}
        Datum::Char(v) if *v < 0x80 => out.push(*v),
        Datum::Char(v) => {
            out.extend_from_slice(&[b'\\', b'0' + (v >> 6), b'0' + (v >> 3 & 7), b'0' + (v & 7)])
        }
        Datum::Date(v) => style.date.write_date(*v, out),
        Datum::Time(v) => datetime::write_time(*v, out),
        Datum::Timestamp(v) => style.date.write_timestamp(*v, out),
        Datum::TimestampTz(v) => style.date.write_timestamptz(*v, style.time_zone, out),
        Datum::Interval(v) => style.interval.write(v, out),
        Datum::Uuid(v) => {
            for (i, range) in [0..4, 4..6, 6..8, 8..10, 10..16].into_iter().enumerate() {
                if i > 0 {
                    out.push(b'-');
                }
                hex(&v[range], out);
            }
        }
        Datum::Inet(v) => v.write(ty.oid == oid::CIDR, out),
        Datum::Mac(v) => network::write_mac(v, out),
        Datum::Mac8(v) => network::write_mac(v, out),
        Datum::TimeTz(v) => v.write(out),
        Datum::Money(v) => money::write(*v, out),
        Datum::Lsn(v) => lsn::write(*v, out),
        // A label that is not known is shown as what it is, a number.
        Datum::Enum(v) => match user::label(*v) {
            Some(label) => out.extend_from_slice(label.as_bytes()),
            None => out.extend_from_slice(format!("({})", v.ordinal).as_bytes()),
        },
        // What may be long is appended in steps.
        Datum::Text(_)
        | Datum::TsVector(_)
        | Datum::TsQuery(_)
        | Datum::Bytea(_)
        | Datum::Jsonb(_)
        | Datum::Bits(_)
        | Datum::Geometry(_)
        | Datum::Array(_) => {}
    }
}

/// The text form for people to read, in a message: of what is too large for one only that it is.
pub fn message_text(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> String {
    to_text(d, ty, style).unwrap_or_else(|_| "(too large)".to_owned())
}

/// The text form as a string.
pub fn to_text(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> Result<String> {
    let mut out = Builder::default();
    append(d, ty, style, &mut out)?;
    out.finish_string()
}
