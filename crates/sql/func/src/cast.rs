//! Conversions from one type to another: the code behind casts. Which of them is taken is `coercion`'s.

use super::arithmetic::{bad_args, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::compare::trim_blanks;
use logstead_sql_types::value::text_io::{self, OutputStyle, truncate_name};
use logstead_sql_types::value::{Datum, Numeric, SqlType, oid};
use logstead_types::SqlState;

fn round_even(v: f64, min: f64, end: f64, name: &str) -> Result<i64> {
    let r = v.round_ties_even();
    if r >= min && r < end {
        Ok(r as i64)
    } else {
        Err(out_of_range(name))
    }
}

fn integer(a: &[Datum], name: &str, min: f64, end: f64) -> Result<i64> {
    match a {
        [Datum::Int2(v)] => Ok(i64::from(*v)),
        [Datum::Int4(v)] => Ok(i64::from(*v)),
        [Datum::Int8(v)] => Ok(*v),
        [Datum::Oid(v)] => Ok(i64::from(*v)),
        [Datum::Char(v)] => Ok(i64::from(*v as i8)),
        [Datum::Bool(v)] => Ok(i64::from(*v)),
        [Datum::Float4(v)] => round_even(f64::from(*v), min, end, name),
        [Datum::Float8(v)] => round_even(*v, min, end, name),
        [Datum::Numeric(v)] => v.to_i64(name),
        _ => Err(bad_args(a)),
    }
}

/// To smallint.
pub(super) fn to_int2(a: &[Datum]) -> Result<Datum> {
    let v = integer(a, "smallint", -32_768.0, 32_768.0)?;
    i16::try_from(v)
        .map(Datum::Int2)
        .map_err(|_| out_of_range("smallint"))
}

/// To integer.
pub(super) fn to_int4(a: &[Datum]) -> Result<Datum> {
    let v = integer(a, "integer", -2_147_483_648.0, 2_147_483_648.0)?;
    i32::try_from(v)
        .map(Datum::Int4)
        .map_err(|_| out_of_range("integer"))
}

/// To bigint.
pub(super) fn to_int8(a: &[Datum]) -> Result<Datum> {
    integer(
        a,
        "bigint",
        -9_223_372_036_854_775_808.0,
        9_223_372_036_854_775_808.0,
    )
    .map(Datum::Int8)
}

/// OID (or reg* type) to integer: the bits.
pub(super) fn oid_to_int4(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Oid(v)] => Ok(Datum::Int4(*v as i32)),
        _ => Err(bad_args(a)),
    }
}

/// Integer to OID (or reg* type): the bits of integer and smallint, the range of bigint.
pub(super) fn to_oid(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int2(v)] => Ok(Datum::Oid(i32::from(*v) as u32)),
        [Datum::Int4(v)] => Ok(Datum::Oid(*v as u32)),
        [Datum::Int8(v)] => u32::try_from(*v)
            .map(Datum::Oid)
            .map_err(|_| out_of_range("OID")),
        _ => Err(bad_args(a)),
    }
}

fn float(a: &[Datum]) -> Result<f64> {
    match a {
        [Datum::Int2(v)] => Ok(f64::from(*v)),
        [Datum::Int4(v)] => Ok(f64::from(*v)),
        [Datum::Int8(v)] => Ok(*v as f64),
        [Datum::Float4(v)] => Ok(f64::from(*v)),
        [Datum::Float8(v)] => Ok(*v),
        [Datum::Numeric(v)] => {
            let f = v.to_f64();
            if f.is_infinite() && v.is_finite() {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("\"{v}\" is out of range for type double precision"),
                ));
            }
            Ok(f)
        }
        _ => Err(bad_args(a)),
    }
}

/// To double precision.
pub(super) fn to_float8(a: &[Datum]) -> Result<Datum> {
    float(a).map(Datum::Float8)
}

/// To real.
pub(super) fn to_float4(a: &[Datum]) -> Result<Datum> {
    let range = |w: &str| {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value out of range: {w}"),
        )
    };
    match a {
        [Datum::Int8(v)] => Ok(Datum::Float4(*v as f32)),
        [Datum::Numeric(v)] => {
            let wide = v.to_f64();
            let f: f32 = if v.is_finite() {
                v.to_string().parse().unwrap_or(wide as f32)
            } else {
                wide as f32
            };
            if v.is_finite() && (f.is_infinite() || (f == 0.0 && !v.is_zero())) {
                return Err(SqlError::new(
                    SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                    format!("\"{v}\" is out of range for type real"),
                ));
            }
            Ok(Datum::Float4(f))
        }
        _ => {
            let v = float(a)?;
            let f = v as f32;
            if f.is_infinite() && !v.is_infinite() {
                return Err(range("overflow"));
            }
            if f == 0.0 && v != 0.0 {
                return Err(range("underflow"));
            }
            Ok(Datum::Float4(f))
        }
    }
}

/// To numeric.
pub(super) fn to_numeric(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::numeric(match a {
        [Datum::Int2(v)] => Numeric::from(i32::from(*v)),
        [Datum::Int4(v)] => Numeric::from(*v),
        [Datum::Int8(v)] => Numeric::from(*v),
        [Datum::Float4(v)] => Numeric::from_f32(*v),
        [Datum::Float8(v)] => Numeric::from_f64(*v),
        _ => return Err(bad_args(a)),
    }))
}

/// Integer to boolean.
pub(super) fn to_bool(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int4(v)] => Ok(Datum::Bool(*v != 0)),
        _ => Err(bad_args(a)),
    }
}

/// boolean, "char", name and char(n) to text (char(n) loses its padding).
pub(super) fn to_text(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Bool(v)] => Ok(Datum::text(if *v { "true" } else { "false" })),
        [Datum::Char(_)] => Ok(Datum::text(text_io::message_text(
            &a[0],
            SqlType::of(oid::CHAR),
            &OutputStyle::UTC,
        ))),
        [Datum::Text(s)] => {
            let t = trim_blanks(s);
            Ok(if t.len() == s.len() {
                Datum::Text(s.clone())
            } else {
                Datum::text(t)
            })
        }
        _ => Err(bad_args(a)),
    }
}

/// Strings to name.
pub(super) fn to_name(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Text(s)] => Ok(Datum::text(truncate_name(s))),
        _ => Err(bad_args(a)),
    }
}

/// char(n) to name.
pub(super) fn bpchar_to_name(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Text(s)] => Ok(Datum::text(truncate_name(trim_blanks(s)))),
        _ => Err(bad_args(a)),
    }
}

/// name to text.
pub(super) fn name_to_text(a: &[Datum]) -> Result<Datum> {
    super::arithmetic::same(a)
}

/// Text or integer to "char".
pub(super) fn to_char(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Text(s)] => Ok(Datum::Char(logstead_sql_types::value::text_io::char_input(
            s,
        ))),
        [Datum::Int4(v)] => i8::try_from(*v)
            .map(|v| Datum::Char(v as u8))
            .map_err(|_| out_of_range("\"char\"")),
        _ => Err(bad_args(a)),
    }
}

/// Text to regclass.
pub(super) fn to_regclass(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Text(s)] => text_io::input(SqlType::of(oid::REGCLASS), s, Some(cx)),
        _ => Err(bad_args(a)),
    }
}
