//! A value put at a place of a jsonb document: what `UPDATE t SET j['a'][0] = '1'` stores. The rules are PostgreSQL's:
//! what is missing on the way is made, an array grows, with nulls between, and no element changes its place.

use crate::arithmetic::bad_args;
use crate::{Function, FunctionImpl, Volatility, function};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::json::{JsonType, JsonbRef, JsonbValue};
use logstead_sql_types::value::{Datum, oid};
use logstead_types::SqlState;
use std::borrow::Cow;

/// `document[step]... = value`, which has no name in SQL: whether an array is wanted where there is no document, the
/// document, the value, the steps as texts.
pub static JSONB_SET_ELEMENT: Function = function(
    0,
    "jsonb_set_element",
    &[oid::BOOL, oid::JSONB, oid::JSONB],
    Some(oid::TEXT),
    oid::JSONB,
    false,
    Volatility::Immutable,
    FunctionImpl::Pure(set_element),
);

/// The most elements that PostgreSQL's arrays of jsonb have.
const ELEMENTS_MAX: usize = 33_554_431;

fn set_element(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bool(array), document, value, steps @ ..] = a else {
        return Err(bad_args(a));
    };
    let mut path = Vec::with_capacity(steps.len());
    for step in steps {
        if step.is_null() {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "jsonb subscript in assignment must not be null",
            ));
        }
        path.push(step.as_str()?);
    }
    let value = match value {
        Datum::Null => JsonbValue::Null,
        value => JsonbValue::View(value.as_jsonb()?),
    };
    let made = match document {
        Datum::Null if *array => set_in_array(Vec::new(), &path, 0, value)?,
        Datum::Null => set_in_object(Vec::new(), &path, 0, value)?,
        document => set(document.as_jsonb()?, &path, 0, value)?,
    };
    made.finish().map(Datum::Jsonb)
}

/// The number that a step is, as C's strtol reads it.
fn number(step: &str) -> Option<i32> {
    super::access::subscript(step)
}

fn set<'a>(
    view: JsonbRef<'a>,
    path: &[&'a str],
    level: usize,
    value: JsonbValue<'a>,
) -> Result<JsonbValue<'a>> {
    match view.kind() {
        JsonType::Object => {
            let members = view.members();
            let members = members.map(|(key, value)| (key.into(), JsonbValue::View(value)));
            set_in_object(members.collect(), path, level, value)
        }
        JsonType::Array => set_in_array(
            view.elements().map(JsonbValue::View).collect(),
            path,
            level,
            value,
        ),
        _ => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "cannot replace existing key",
        )
        .detail("The path assumes key is a composite object, but it is a scalar value.")),
    }
}

/// What stands at a place: the value, or what was there with the value further in.
fn inner<'a>(
    before: Option<JsonbValue<'a>>,
    path: &[&'a str],
    level: usize,
    value: JsonbValue<'a>,
) -> Result<JsonbValue<'a>> {
    if level + 1 == path.len() {
        return Ok(value);
    }
    match (before, path.get(level + 1)) {
        (Some(JsonbValue::View(view)), _) => set(view, path, level + 1, value),
        // Nothing there: what the next step is tells what it is a step in.
        (_, Some(step)) => match number(step) {
            Some(index) => {
                // An array that is made begins with the first element, wherever from its end one was asked for.
                let at = usize::try_from(index).unwrap_or(0);
                put(Vec::new(), at, path, level + 1, value)
            }
            None => set_in_object(Vec::new(), path, level + 1, value),
        },
        (_, None) => Ok(value),
    }
}

fn set_in_object<'a>(
    mut members: Vec<(Cow<'a, str>, JsonbValue<'a>)>,
    path: &[&'a str],
    level: usize,
    value: JsonbValue<'a>,
) -> Result<JsonbValue<'a>> {
    let key = *path
        .get(level)
        .ok_or_else(|| SqlError::internal("a path that ends too early"))?;
    match members.iter_mut().find(|(name, _)| name == key) {
        Some((_, slot)) => {
            let before = std::mem::replace(slot, JsonbValue::Null);
            *slot = inner(Some(before), path, level, value)?;
        }
        None => members.push((key.into(), inner(None, path, level, value)?)),
    }
    Ok(JsonbValue::Object(members))
}

fn set_in_array<'a>(
    items: Vec<JsonbValue<'a>>,
    path: &[&'a str],
    level: usize,
    value: JsonbValue<'a>,
) -> Result<JsonbValue<'a>> {
    let step = *path
        .get(level)
        .ok_or_else(|| SqlError::internal("a path that ends too early"))?;
    let place = level + 1;
    let index = number(step).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("path element at position {place} is not an integer: \"{step}\""),
        )
    })?;
    let at = match usize::try_from(index) {
        Ok(at) => Some(at),
        // From the end.
        Err(_) => items.len().checked_sub(index.unsigned_abs() as usize),
    };
    let Some(at) = at else {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("path element at position {place} is out of range: {index}"),
        ));
    };
    put(items, at, path, level, value)
}

/// Puts the value, or what leads to it, at a place of an array.
fn put<'a>(
    mut items: Vec<JsonbValue<'a>>,
    at: usize,
    path: &[&'a str],
    level: usize,
    value: JsonbValue<'a>,
) -> Result<JsonbValue<'a>> {
    if at >= ELEMENTS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("number of jsonb array elements exceeds the maximum allowed ({ELEMENTS_MAX})"),
        ));
    }
    match items.get_mut(at) {
        Some(slot) => {
            let before = std::mem::replace(slot, JsonbValue::Null);
            *slot = inner(Some(before), path, level, value)?;
        }
        None => {
            while items.len() < at {
                items.push(JsonbValue::Null);
            }
            items.push(inner(None, path, level, value)?);
        }
    }
    Ok(JsonbValue::Array(items))
}
