//! Quoting of identifiers and literals, and `format`, which uses it.

use super::arithmetic::bad_args;
use super::strings::{count_chars, invalid, s, show_as, shown_as, text};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::Builder;
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::names::is_plain_identifier;
pub use logstead_sql_types::value::names::quote_identifier;
use logstead_sql_types::value::{Datum, SqlType, oid};
use logstead_types::SqlState;

fn quote_with(t: &str, mark: u8, doubled: &[u8], out: &mut Builder) -> Result<()> {
    out.reserve(t.len().saturating_add(3))?;
    out.push_byte(mark)?;
    for &b in t.as_bytes() {
        if doubled.contains(&b) {
            out.push_byte(b)?;
        }
        out.push_byte(b)?;
    }
    out.push_byte(mark)
}

fn push_literal(t: &str, out: &mut Builder) -> Result<()> {
    if t.contains('\\') {
        out.push_byte(b'E')?;
    }
    quote_with(t, b'\'', b"'\\", out)
}

fn push_identifier(t: &str, out: &mut Builder) -> Result<()> {
    match is_plain_identifier(t) {
        true => out.push_str(t),
        false => quote_with(t, b'"', b"\"", out),
    }
}

/// `quote_ident`
pub(super) fn quote_ident(a: &[Datum]) -> Result<Datum> {
    let mut out = Builder::default();
    push_identifier(s(a, 0)?, &mut out)?;
    out.finish_text()
}

/// `quote_literal`
pub(super) fn quote_literal(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let value = a.first().ok_or_else(|| bad_args(a))?;
    let mut out = Builder::default();
    match value {
        Datum::Text(t) => push_literal(t, &mut out)?,
        // As the cast to text has it.
        Datum::Bool(true) => push_literal("true", &mut out)?,
        Datum::Bool(false) => push_literal("false", &mut out)?,
        value => push_literal(&shown_as(cx, types.first(), value)?, &mut out)?,
    }
    out.finish_text()
}

/// `quote_nullable`
pub(super) fn quote_nullable(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Null] => text("NULL"),
        _ => quote_literal(cx, types, a),
    }
}

/// `format`
pub(super) fn format(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let Some((pattern, args)) = a.split_first() else {
        return Err(bad_args(a));
    };
    if pattern.is_null() {
        return Ok(Datum::Null);
    }
    let unterminated =
        || invalid("unterminated format() type specifier").hint("For a single \"%\" use \"%%\".");
    let few = || invalid("too few arguments for format()");
    let mut out = Builder::default();
    let mut chars = pattern.as_str()?.chars().peekable();
    let mut next = 0usize;
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push_char(c)?;
            continue;
        }
        if chars.peek() == Some(&'%') {
            chars.next();
            out.push_byte(b'%')?;
            continue;
        }
        let digits =
            |chars: &mut std::iter::Peekable<std::str::Chars<'_>>| -> Result<Option<usize>> {
                let mut v: Option<usize> = None;
                while let Some(d) = chars.peek().and_then(|c| c.to_digit(10)) {
                    chars.next();
                    let n = v
                        .unwrap_or(0)
                        .checked_mul(10)
                        .and_then(|v| v.checked_add(d as usize));
                    v = Some(n.filter(|n| *n <= i32::MAX as usize).ok_or_else(|| {
                        SqlError::new(
                            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                            "number is out of range",
                        )
                    })?);
                }
                Ok(v)
            };
        let mut position: Option<usize> = None;
        let mut width: i64 = 0;
        let mut left = false;
        let number = digits(&mut chars)?;
        if number.is_some() && chars.peek() == Some(&'$') {
            chars.next();
            position = number;
            if number == Some(0) {
                return Err(invalid(
                    "format specifies argument 0, but arguments are numbered from 1",
                ));
            }
        } else if let Some(w) = number {
            width = w as i64;
        }
        if number.is_none() || position.is_some() {
            while chars.peek() == Some(&'-') {
                chars.next();
                left = true;
            }
            if chars.peek() == Some(&'*') {
                chars.next();
                let at = digits(&mut chars)?;
                let i = match at {
                    Some(i) => {
                        if chars.next() != Some('$') {
                            return Err(invalid("width argument position must be ended by \"$\""));
                        }
                        i.checked_sub(1).ok_or_else(|| {
                            invalid(
                                "format specifies argument 0, but arguments are numbered from 1",
                            )
                        })?
                    }
                    None => next,
                };
                next = i + 1;
                let d = args.get(i).ok_or_else(few)?;
                width = if d.is_null() { 0 } else { d.as_integer()? };
            } else if let Some(w) = digits(&mut chars)? {
                width = w as i64;
            }
        }
        if width < 0 {
            left = true;
            width = -width;
        }
        let kind = chars.next().ok_or_else(unterminated)?;
        if !matches!(kind, 's' | 'I' | 'L') {
            return Err(
                invalid(format!("unrecognized format() type specifier \"{kind}\""))
                    .hint("For a single \"%\" use \"%%\"."),
            );
        }
        let i = position.map_or(next, |p| p - 1);
        next = i + 1;
        let d = args.get(i).ok_or_else(few)?;
        let mut piece = Builder::default();
        match (kind, d) {
            ('s', Datum::Null) => {}
            ('I', Datum::Null) => {
                return Err(SqlError::new(
                    SqlState::NULL_VALUE_NOT_ALLOWED,
                    "null values cannot be formatted as an SQL identifier",
                ));
            }
            (_, Datum::Null) => piece.push_str("NULL")?,
            ('s', Datum::Text(t))
                if width == 0 && types.get(i + 1).is_none_or(|ty| ty.oid != oid::XML) =>
            {
                out.push_str(t)?;
                continue;
            }
            ('s', d) => show_as(cx, types.get(i + 1), d, &mut piece)?,
            ('I', d) => push_identifier(&shown_as(cx, types.get(i + 1), d)?, &mut piece)?,
            (_, d) => push_literal(&shown_as(cx, types.get(i + 1), d)?, &mut piece)?,
        }
        let missing = match width {
            0 => 0,
            width => {
                let shown = str::from_utf8(&piece).unwrap_or_default();
                (width as usize).saturating_sub(count_chars(shown)?)
            }
        };
        if !left {
            out.push_many(b' ', missing)?;
        }
        out.push_bytes(&piece)?;
        if left {
            out.push_many(b' ', missing)?;
        }
    }
    out.finish_text()
}
