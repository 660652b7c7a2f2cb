//! Text form of values: what clients send and see.
//!
//! Owns: [`input`] and [`output`] for every type, PostgreSQL 15's spellings, messages and SQLSTATEs. Output allocates nothing for
//! integers, text, booleans, dates and small numerics: it appends to the caller's buffer.

#[path = "array_text.rs"]
mod array_text;

use array_text::{array_input, array_output};

use super::build::{Builder, SMALL_BYTES, STRIDE_BYTES};
use super::datetime::{DateForm, DateOrder, DateStyle, IntervalStyle};
use super::geometry::{self, Geometry};
use super::numeric::Numeric;
use super::types::{FIRST_USER_OID, Oid, SqlType, oid};
use super::{
    Array, Bits, Datum, Inet, datetime, hstore, info, json, lsn, money, multirange, network, range,
    record, user,
};
use super::{snapshot, tid};
use crate::catalog::text::split_qualified;
use crate::error::{Result, SqlError};
use crate::func::{self, Context};
use crate::search::{dictionary, query, reading, vector};
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
    pub names: Option<&'a dyn Context>,
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
    };
}

impl<'a> OutputStyle<'a> {
    /// The style that a session's settings ask for.
    pub fn of(cx: &'a dyn Context) -> OutputStyle<'a> {
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
        }
    }
}

impl OutputStyle<'_> {
    /// The same for a text that is kept: one that is read alike in every session, which intervals of the standard's style and dates of other styles are not.
    pub fn kept(self) -> Self {
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

fn integer(text: &str, name: &str, min: i64, max: i64) -> Result<i64> {
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

fn float(text: &str, name: &str) -> Result<f64> {
    let t = trim(text);
    let bad = || invalid_syntax(name, text);
    let body = t.strip_prefix(['+', '-']).unwrap_or(t);
    let neg = t.starts_with('-');
    if body.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Ok(if neg {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    // Rust would also take words that PostgreSQL does not.
    if body.is_empty()
        || !body
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return Err(bad());
    }
    let v: f64 = t.parse().map_err(|_| bad())?;
    let nonzero = body
        .bytes()
        .take_while(|b| !matches!(b, b'e' | b'E'))
        .any(|b| matches!(b, b'1'..=b'9'));
    if v.is_infinite() || (v == 0.0 && nonzero) {
        let message = format!("\"{}\" is out of range for type {name}", t);
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(v)
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

fn object_id(text: &str, name: &str) -> Result<u32> {
    let v = integer(text, name, i64::from(i32::MIN), i64::from(u32::MAX))?;
    Ok(v as u32)
}

/// A transaction's number, which C's `strtoul` reads: it may be hexadecimal or octal.
fn transaction_id(text: &str) -> Result<u32> {
    let t = trim(text);
    let digits = t.strip_prefix("0x").or_else(|| t.strip_prefix("0X"));
    let other = match digits {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None if t.len() > 1 && t.starts_with('0') => u32::from_str_radix(t, 8).ok(),
        None => None,
    };
    match other {
        Some(number) if !t.contains(['+', '_']) => Ok(number),
        _ => object_id(text, "xid"),
    }
}

/// Cuts a name at 63 bytes, on a character's border.
pub fn truncate_name(text: &str) -> &str {
    let mut end = text.len().min(63);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

fn named_object(ty: Oid, text: &str, cx: Option<&dyn Context>) -> Result<Datum> {
    let t = trim(text);
    // An operator has this name.
    if t == "-" && !matches!(ty, oid::REGOPER | oid::REGOPERATOR) {
        return Ok(Datum::Oid(0));
    }
    if !t.is_empty() && t.bytes().all(|b| b.is_ascii_digit()) {
        return object_id(t, "oid").map(Datum::Oid);
    }
    let no_session =
        || SqlError::internal(format!("reading {} needs a session", info::type_name(ty)));
    match ty {
        oid::REGCLASS => match cx.ok_or_else(no_session)?.relation_by_name(t)? {
            Some(o) => Ok(Datum::Oid(o)),
            None => Err(SqlError::new(
                SqlState::UNDEFINED_TABLE,
                format!(
                    "relation \"{}\" does not exist",
                    split_qualified(t)?.join(".")
                ),
            )),
        },
        oid::REGTYPE => crate::bind::type_by_text(t).map(Datum::Oid),
        oid::REGCONFIG => dictionary::named_config(t).map(|c| Datum::Oid(c.oid)),
        oid::REGDICTIONARY => dictionary::named_dictionary(t).map(|d| Datum::Oid(d.oid)),
        _ => {
            let call = match ty {
                oid::REGROLE => "regrolein",
                oid::REGPROC => "regprocin",
                oid::REGPROCEDURE => "regprocedurein",
                oid::REGOPER => "regoperin",
                oid::REGOPERATOR => "regoperatorin",
                oid::REGCOLLATION => "regcollationin",
                _ => "regnamespacein",
            };
            cx.ok_or_else(no_session)?
                .catalog_call(call, &[Datum::text(t)])
        }
    }
}

/// Reads the text form of a value of type `ty`. The modifier is applied as in an assignment: too long is an error.
/// `cx` gives the clock, the time zone and names; without it zone-less input is UTC and `now` is refused.
pub fn input(ty: SqlType, text: &str, cx: Option<&dyn Context>) -> Result<Datum> {
    let _room = func::admit_input(ty, text)?;
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
        oid::TSQUERY => reading::input(text)?,
        oid::CHAR => Datum::Char(char_input(text)),
        oid::DATE => Datum::Date(datetime::parse_date(text, cx)?),
        oid::TIME => Datum::Time(datetime::parse_time(text, cx)?),
        oid::TIMETZ => Datum::TimeTz(datetime::parse_timetz(text, cx)?),
        oid::BIT | oid::VARBIT => Datum::Bits(Bits::parse(text)?),
        oid::TIMESTAMP => Datum::Timestamp(datetime::parse_timestamp(text, cx)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(datetime::parse_timestamptz(text, cx)?),
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
        oid::XID => Datum::Oid(transaction_id(text)?),
        oid::CID => Datum::Oid(transaction_id(text)?),
        oid::XID8 => Datum::Int8(integer(text, "xid8", 0, i64::MAX)?),
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
                let name = info::format_type_bare(ty.oid);
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    format!("cannot accept a value of type {name}"),
                ));
            }
        },
    };
    if ty.typmod >= 0 {
        func::coerce_typmod(d, ty, false)
    } else {
        Ok(d)
    }
}

/// "char": the first byte, or `\ooo`.
pub(crate) fn char_input(text: &str) -> u8 {
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

/// Appends digits and exponent as C's %g would, given the shortest or rounded digits in scientific form. `limit` is the
/// exponent from which scientific notation is used.
fn write_scientific(s: &str, limit: i32, out: &mut Vec<u8>) {
    let (neg, body) = s.strip_prefix('-').map_or((false, s), |b| (true, b));
    let (mantissa, e) = body.split_once('e').unwrap_or((body, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    let mut digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    if neg {
        out.push(b'-');
    }
    if e < -4 || e >= limit {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.push(if e < 0 { b'-' } else { b'+' });
        let a = e.unsigned_abs();
        if a < 10 {
            out.push(b'0');
        }
        write_int(i64::from(a), out);
    } else if e < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-e - 1) as usize, b'0');
        out.extend_from_slice(&digits);
    } else {
        let whole = e as usize + 1;
        for i in 0..whole {
            out.push(digits.get(i).copied().unwrap_or(b'0'));
        }
        if digits.len() > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

fn special_float(v: f64, out: &mut Vec<u8>) -> bool {
    if v.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if v.is_infinite() {
        out.extend_from_slice(if v < 0.0 { b"-Infinity" } else { b"Infinity" });
    } else {
        return false;
    }
    true
}

/// Whether a decimal lies exactly between two neighbouring floats with so many bits. Reading it back gives the even one, but PostgreSQL does
/// not rely on that and writes more digits.
fn is_midway(text: &str, bits: u32) -> bool {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let fraction = mantissa
        .split_once('.')
        .map_or("", |(_, fraction)| fraction);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (Ok(digits), Ok(exponent)) = (digits.parse::<u128>(), exponent.parse::<i32>()) else {
        return false;
    };
    let tens = exponent - fraction.len() as i32;
    let Some(fives) = 5_u128.checked_pow(tens.unsigned_abs()) else {
        // Not a number with few bits.
        return false;
    };
    let odd = match tens >= 0 {
        true => digits.checked_mul(fives),
        false => (digits % fives == 0).then(|| digits / fives),
    };
    odd.is_some_and(|n| n != 0 && (n >> n.trailing_zeros()).ilog2() == bits)
}

/// The first of some texts of growing length that reads back and lies between no two floats.
fn exact(
    texts: impl Iterator<Item = String>,
    reads_back: impl Fn(&str) -> bool,
    bits: u32,
) -> Option<String> {
    let mut texts = texts;
    texts.find(|text| reads_back(text) && !is_midway(text, bits))
}

/// Appends a double.
pub fn write_f64(v: f64, extra: i32, out: &mut Vec<u8>) {
    if special_float(v, out) {
        return;
    }
    if extra > 0 {
        let mut text = format!("{v:e}");
        if is_midway(&text, f64::MANTISSA_DIGITS) {
            let longer = (1..17).map(|digits| format!("{v:.digits$e}"));
            text = exact(longer, |t| t.parse() == Ok(v), f64::MANTISSA_DIGITS).unwrap_or(text);
        }
        write_scientific(&text, 15, out);
    } else {
        let digits = (15 + extra).max(1);
        write_scientific(&format!("{:.*e}", digits as usize - 1, v), digits, out);
    }
}

/// Appends a real.
pub fn write_f32(v: f32, extra: i32, out: &mut Vec<u8>) {
    if special_float(f64::from(v), out) {
        return;
    }
    if extra > 0 {
        let mut text = format!("{v:e}");
        if is_midway(&text, f32::MANTISSA_DIGITS) {
            let longer = (1..9).map(|digits| format!("{v:.digits$e}"));
            text = exact(longer, |t| t.parse() == Ok(v), f32::MANTISSA_DIGITS).unwrap_or(text);
        }
        write_scientific(&text, 6, out);
    } else {
        let digits = (6 + extra).max(1);
        write_scientific(&format!("{:.*e}", digits as usize - 1, v), digits, out);
    }
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

fn write_object(v: u32, ty: Oid, style: &OutputStyle<'_>, out: &mut Vec<u8>) {
    let number = |out: &mut Vec<u8>| write_int(i64::from(v), out);
    match ty {
        oid::OID | oid::XID | oid::CID => number(out),
        oid::REGOPER | oid::REGOPERATOR if v == 0 => number(out),
        _ if v == 0 => out.push(b'-'),
        oid::REGTYPE => match info::exists(v).then_some(()) {
            Some(_) => out.extend_from_slice(info::format_type_bare(v).as_bytes()),
            None => number(out),
        },
        oid::REGPROC if v < FIRST_USER_OID && style.names.is_none() => {
            match func::name_of(v).or_else(|| crate::catalog::pg_catalog::io_function_name(v)) {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => number(out),
            }
        }
        oid::REGPROC | oid::REGPROCEDURE => {
            let call = if ty == oid::REGPROC {
                "regprocout"
            } else {
                "regprocedureout"
            };
            let name = style.names.and_then(|cx| {
                let name = cx.catalog_call(call, &[Datum::Oid(v)]).ok()?;
                match name {
                    Datum::Text(name) => Some(name),
                    _ => None,
                }
            });
            match name {
                Some(name) => out.extend_from_slice(name.as_bytes()),
                None => number(out),
            }
        }
        oid::REGCLASS => match style.names.and_then(|cx| cx.relation_name(v)) {
            Some(name) => out.extend_from_slice(name.as_bytes()),
            None => number(out),
        },
        oid::REGCONFIG => match dictionary::config_by_oid(v) {
            Some(config) => out.extend_from_slice(config.name.as_bytes()),
            None => number(out),
        },
        oid::REGDICTIONARY => match dictionary::dictionary_by_oid(v) {
            Some(dictionary) => out.extend_from_slice(dictionary.name.as_bytes()),
            None => number(out),
        },
        oid::REGCOLLATION => match crate::catalog::attributes::collation_name(v) {
            Some(name) => out.extend_from_slice(func::quote_identifier(name).as_bytes()),
            None => number(out),
        },
        oid::REGNAMESPACE | oid::REGROLE | oid::REGOPER | oid::REGOPERATOR => {
            let call = match ty {
                oid::REGROLE => "regroleout",
                oid::REGOPER => "regoperout",
                oid::REGOPERATOR => "regoperatorout",
                _ => "regnamespaceout",
            };
            match style
                .names
                .and_then(|cx| cx.catalog_call(call, &[Datum::Oid(v)]).ok())
            {
                Some(Datum::Text(name)) => out.extend_from_slice(name.as_bytes()),
                _ => number(out),
            }
        }
        _ => number(out),
    }
}

/// Appends the text form. NULL appends nothing: the caller knows its own way to say NULL.
pub fn output(d: &Datum, ty: SqlType, style: &OutputStyle<'_>, out: &mut Vec<u8>) -> Result<()> {
    match d {
        Datum::Text(v) if v.len() < SMALL_BYTES => out.extend_from_slice(v.as_bytes()),
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
pub(crate) fn append(
    d: &Datum,
    ty: SqlType,
    style: &OutputStyle<'_>,
    out: &mut Builder,
) -> Result<()> {
    match d {
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
            None => out.extend_from_slice(format!("({})", v.place).as_bytes()),
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
pub fn shown(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> String {
    to_text(d, ty, style).unwrap_or_else(|_| "(too large)".to_owned())
}

/// The text form as a string.
pub fn to_text(d: &Datum, ty: SqlType, style: &OutputStyle<'_>) -> Result<String> {
    let mut out = Builder::default();
    append(d, ty, style, &mut out)?;
    out.finish_string()
}
