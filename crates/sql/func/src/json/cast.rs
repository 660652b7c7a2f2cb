//! jsonb to boolean and to numbers.

use crate::arithmetic::bad_args;
use crate::cast;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::JsonType;
use logstead_types::SqlState;

fn cannot(kind: JsonType, target: &str) -> SqlError {
    let source = match kind {
        JsonType::Number => "numeric",
        other => other.name(),
    };
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!("cannot cast jsonb {source} to type {target}"),
    )
}

/// To boolean.
pub(super) fn to_bool(a: &[Datum]) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    match value.as_jsonb()?.kind() {
        JsonType::True => Ok(Datum::Bool(true)),
        JsonType::False => Ok(Datum::Bool(false)),
        other => Err(cannot(other, "boolean")),
    }
}

/// The number, which `convert` brings to the type that the error names.
fn number(a: &[Datum], target: &str, convert: fn(&[Datum]) -> Result<Datum>) -> Result<Datum> {
    let [value] = a else { return Err(bad_args(a)) };
    let value = value.as_jsonb()?;
    match value.as_number() {
        Some(n) => convert(&[Datum::numeric(n)]),
        None => Err(cannot(value.kind(), target)),
    }
}

/// To numeric.
pub(super) fn to_numeric(a: &[Datum]) -> Result<Datum> {
    number(a, "numeric", super::super::arithmetic::same)
}

/// To smallint.
pub(super) fn to_int2(a: &[Datum]) -> Result<Datum> {
    number(a, "smallint", cast::to_int2)
}

/// To integer.
pub(super) fn to_int4(a: &[Datum]) -> Result<Datum> {
    number(a, "integer", cast::to_int4)
}

/// To bigint.
pub(super) fn to_int8(a: &[Datum]) -> Result<Datum> {
    number(a, "bigint", cast::to_int8)
}

/// To real.
pub(super) fn to_float4(a: &[Datum]) -> Result<Datum> {
    number(a, "real", cast::to_float4)
}

/// To double precision.
pub(super) fn to_float8(a: &[Datum]) -> Result<Datum> {
    number(a, "double precision", cast::to_float8)
}
