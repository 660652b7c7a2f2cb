//! `jsonb_path_query` and its kin: what is made of the items that a path finds.
//!
//! Those with `_tz` bring times without a zone into the session's where they are compared with times that have one.

use super::path::{SINGLETON, run};
use crate::Rows;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::json::{JsonType, JsonbValue};

fn exists_of(a: &[Datum], zone: Option<&dyn DateTimeContext>, silent: bool) -> Result<Datum> {
    let (whole, found) = run(a, zone, silent, true)?;
    Ok(match whole {
        true => Datum::Bool(!found.is_empty()),
        false => Datum::Null,
    })
}

/// `jsonb_path_exists`
pub(super) fn exists(a: &[Datum]) -> Result<Datum> {
    exists_of(a, None, false)
}

/// `jsonb_path_exists_tz`
pub(super) fn exists_tz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    exists_of(a, Some(cx), false)
}

/// `@?`
pub(super) fn exists_silent(a: &[Datum]) -> Result<Datum> {
    exists_of(a, None, true)
}

fn match_of(a: &[Datum], zone: Option<&dyn DateTimeContext>, silent: bool) -> Result<Datum> {
    let (_, found) = run(a, zone, silent, false)?;
    let silent = match a.get(3) {
        Some(silent) => silent.as_bool()?,
        None => silent,
    };
    match found.as_slice() {
        [one] if one.view().kind() == JsonType::True => Ok(Datum::Bool(true)),
        [one] if one.view().kind() == JsonType::False => Ok(Datum::Bool(false)),
        [one] if one.view().kind() == JsonType::Null => Ok(Datum::Null),
        _ if silent => Ok(Datum::Null),
        _ => Err(SqlError::new(
            SINGLETON,
            "single boolean result is expected",
        )),
    }
}

/// `jsonb_path_match`
pub(super) fn matches(a: &[Datum]) -> Result<Datum> {
    match_of(a, None, false)
}

/// `jsonb_path_match_tz`
pub(super) fn matches_tz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    match_of(a, Some(cx), false)
}

/// `@@`
pub(super) fn matches_silent(a: &[Datum]) -> Result<Datum> {
    match_of(a, None, true)
}

fn query_of(a: &[Datum], zone: Option<&dyn DateTimeContext>) -> Result<Rows> {
    let (_, found) = run(a, zone, false, false)?;
    Ok(found.into_iter().map(|v| vec![Datum::Jsonb(v)]).collect())
}

/// `jsonb_path_query`
pub(super) fn query(a: &[Datum]) -> Result<Rows> {
    query_of(a, None)
}

/// `jsonb_path_query_tz`
pub(super) fn query_tz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Rows> {
    query_of(a, Some(cx))
}

fn array_of(a: &[Datum], zone: Option<&dyn DateTimeContext>) -> Result<Datum> {
    let (_, found) = run(a, zone, false, false)?;
    let items = found.iter().map(|v| JsonbValue::View(v.view())).collect();
    JsonbValue::Array(items).finish().map(Datum::Jsonb)
}

/// `jsonb_path_query_array`
pub(super) fn query_array(a: &[Datum]) -> Result<Datum> {
    array_of(a, None)
}

/// `jsonb_path_query_array_tz`
pub(super) fn query_array_tz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    array_of(a, Some(cx))
}

fn first_of(a: &[Datum], zone: Option<&dyn DateTimeContext>) -> Result<Datum> {
    let (_, found) = run(a, zone, false, false)?;
    let first = found.into_iter().next();
    Ok(first.map_or(Datum::Null, Datum::Jsonb))
}

/// `jsonb_path_query_first`
pub(super) fn query_first(a: &[Datum]) -> Result<Datum> {
    first_of(a, None)
}

/// `jsonb_path_query_first_tz`
pub(super) fn query_first_tz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    first_of(a, Some(cx))
}
