//! hstore: functions of PostgreSQL's extension of this name.

use super::arithmetic::bad_args;
use super::{Rows, strings};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::hstore::{HstorePair, make, pairs};
use logstead_sql_types::value::json::{JsonType, JsonbRef, JsonbValue};
use logstead_sql_types::value::{Datum, Numeric, SqlType, compare_as, oid, record};
use logstead_types::SqlState;
use std::cmp::Ordering;

fn two(a: &[Datum]) -> Result<(&Datum, &Datum)> {
    match a {
        [left, right] => Ok((left, right)),
        _ => Err(bad_args(a)),
    }
}

fn one(a: &[Datum]) -> Result<JsonbRef<'_>> {
    match a {
        [value] => value.as_jsonb(),
        _ => Err(bad_args(a)),
    }
}

/// Pairs that are there already.
fn known<'a>(view: JsonbRef<'a>) -> impl Iterator<Item = HstorePair<'a>> {
    pairs(view).map(|(key, value)| (key.into(), value.map(Into::into)))
}

/// What is under a key: `Some(None)` is a NULL.
fn under<'a>(view: JsonbRef<'a>, key: &str) -> Option<Option<&'a str>> {
    let value = view.member(key)?;
    Some((value.kind() == JsonType::String).then(|| value.as_str()))
}

fn text(value: Option<&str>) -> Datum {
    value.map_or(Datum::Null, Datum::text)
}

/// The keys of an array; a NULL is none.
fn keys(array: &Datum) -> Result<Vec<&str>> {
    let items = &array.as_array()?.items;
    let named = items.iter().filter(|item| !item.is_null());
    named.map(Datum::as_str).collect()
}

/// `-> text`
pub(super) fn fetch(a: &[Datum]) -> Result<Datum> {
    let (value, key) = two(a)?;
    Ok(text(under(value.as_jsonb()?, key.as_str()?).flatten()))
}

/// `-> text[]`
pub(super) fn slice_array(a: &[Datum]) -> Result<Datum> {
    let (value, wanted) = two(a)?;
    let view = value.as_jsonb()?;
    let array = wanted.as_array()?;
    let found: Result<Vec<Datum>> = array
        .items
        .iter()
        .map(|key| match key {
            Datum::Null => Ok(Datum::Null),
            key => Ok(text(under(view, key.as_str()?).flatten())),
        })
        .collect();
    let array = array.with_items(oid::TEXT, found?);
    Ok(Datum::Array(std::sync::Arc::new(array)))
}

/// `slice`
pub(super) fn slice(a: &[Datum]) -> Result<Datum> {
    let (value, wanted) = two(a)?;
    let view = value.as_jsonb()?;
    let wanted = keys(wanted)?.into_iter();
    make(wanted.filter_map(|key| Some((key.into(), under(view, key)?.map(Into::into)))))
}

/// `?`
pub(super) fn exists(a: &[Datum]) -> Result<Datum> {
    let (value, key) = two(a)?;
    let found = under(value.as_jsonb()?, key.as_str()?);
    Ok(Datum::Bool(found.is_some()))
}

/// `?|`
pub(super) fn exists_any(a: &[Datum]) -> Result<Datum> {
    let (value, wanted) = two(a)?;
    let view = value.as_jsonb()?;
    let mut wanted = keys(wanted)?.into_iter();
    Ok(Datum::Bool(wanted.any(|key| under(view, key).is_some())))
}

/// `?&`
pub(super) fn exists_all(a: &[Datum]) -> Result<Datum> {
    let (value, wanted) = two(a)?;
    let view = value.as_jsonb()?;
    let mut wanted = keys(wanted)?.into_iter();
    Ok(Datum::Bool(wanted.all(|key| under(view, key).is_some())))
}

/// `defined`
pub(super) fn defined(a: &[Datum]) -> Result<Datum> {
    let (value, key) = two(a)?;
    let found = under(value.as_jsonb()?, key.as_str()?).flatten();
    Ok(Datum::Bool(found.is_some()))
}

/// `- text`
pub(super) fn delete_key(a: &[Datum]) -> Result<Datum> {
    let (value, gone) = two(a)?;
    let gone = gone.as_str()?;
    make(known(value.as_jsonb()?).filter(|(key, _)| key != gone))
}

/// `- text[]`
pub(super) fn delete_keys(a: &[Datum]) -> Result<Datum> {
    let (value, gone) = two(a)?;
    let gone: std::collections::HashSet<&str> = keys(gone)?.into_iter().collect();
    make(known(value.as_jsonb()?).filter(|(key, _)| !gone.contains(&**key)))
}

/// `- hstore`: pairs go that are in both.
pub(super) fn delete_pairs(a: &[Datum]) -> Result<Datum> {
    let (value, gone) = two(a)?;
    let gone = gone.as_jsonb()?;
    make(known(value.as_jsonb()?).filter(|(key, value)| under(gone, key) != Some(value.as_deref())))
}

/// `||`
pub(super) fn concat(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    make(known(right.as_jsonb()?).chain(known(left.as_jsonb()?)))
}

fn holds(outer: &Datum, inner: &Datum) -> Result<Datum> {
    let outer = outer.as_jsonb()?;
    let mut inner = pairs(inner.as_jsonb()?);
    Ok(Datum::Bool(
        inner.all(|(key, value)| under(outer, key) == Some(value)),
    ))
}

/// `@>`
pub(super) fn contains(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    holds(left, right)
}

/// `<@`
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    holds(right, left)
}

fn null_key() -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        "null value not allowed for hstore key",
    )
}

fn wrong_array(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

fn pair<'a>(key: &'a Datum, value: &'a Datum) -> Result<HstorePair<'a>> {
    if key.is_null() {
        return Err(null_key());
    }
    let value = match value {
        Datum::Null => None,
        value => Some(value.as_str()?.into()),
    };
    Ok((key.as_str()?.into(), value))
}

/// `hstore(key, value)`
pub(super) fn of_text(a: &[Datum]) -> Result<Datum> {
    let (key, value) = two(a)?;
    match key {
        Datum::Null => Ok(Datum::Null),
        key => make([pair(key, value)?]),
    }
}

/// `hstore(keys, values)`
pub(super) fn of_arrays(a: &[Datum]) -> Result<Datum> {
    let (keys, values) = two(a)?;
    if keys.is_null() {
        return Ok(Datum::Null);
    }
    let keys = keys.as_array()?;
    if keys.dims().len() > 1 {
        return Err(wrong_array("wrong number of array subscripts"));
    }
    let none = vec![Datum::Null; keys.items.len()];
    let values = match values {
        Datum::Null => &none,
        values => {
            let values = values.as_array()?;
            if values.dims().len() > 1 {
                return Err(wrong_array("wrong number of array subscripts"));
            }
            let same = values.items.len() == keys.items.len()
                && (keys.items.is_empty() || values.lower == keys.lower);
            if !same {
                return Err(wrong_array("arrays must have same bounds"));
            }
            &values.items
        }
    };
    let read: Result<Vec<HstorePair<'_>>> = keys
        .items
        .iter()
        .zip(values)
        .map(|(key, value)| pair(key, value))
        .collect();
    make(read?)
}

/// `hstore(text[])`: keys and values in turn, or in two columns.
pub(super) fn of_array(a: &[Datum]) -> Result<Datum> {
    let [array] = a else { return Err(bad_args(a)) };
    let array = array.as_array()?;
    match array.dims().as_slice() {
        [] => {}
        [dim] if dim.len % 2 == 1 => {
            return Err(wrong_array("array must have even number of elements"));
        }
        [_, columns] if columns.len != 2 => {
            return Err(wrong_array("array must have two columns"));
        }
        [_] | [_, _] => {}
        _ => return Err(wrong_array("wrong number of array subscripts")),
    }
    let both = array.items.chunks_exact(2);
    let read: Result<Vec<HstorePair<'_>>> = both
        .map(|both| match both {
            [key, value] => pair(key, value),
            _ => Err(null_key()),
        })
        .collect();
    make(read?)
}

/// `hstore(record)`: the fields as texts, by their names.
pub(super) fn of_record(cx: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    let ([value], [ty]) = (a, types) else {
        return Err(bad_args(a));
    };
    let shape = record::tuple_desc_of(*ty)
        .ok_or_else(|| SqlError::unsupported("hstore of a record whose fields are not known"))?;
    let none = vec![Datum::Null; shape.len()];
    let fields = match value {
        Datum::Null => &none,
        value => &value.as_array()?.items,
    };
    let fields = fields.iter().zip(shape.iter());
    let pairs: Result<Vec<_>> = fields
        .map(|(value, (name, ty))| {
            let text = match value {
                Datum::Null => None,
                value => Some(strings::shown_as(cx, Some(ty), value)?.into()),
            };
            Ok((name.to_string().into(), text))
        })
        .collect();
    make(pairs?)
}

/// What a text that JSON has another kind for is there.
fn loose(value: &str) -> Option<JsonbValue<'_>> {
    match value {
        "t" => Some(JsonbValue::Bool(true)),
        "f" => Some(JsonbValue::Bool(false)),
        value => is_number(value).then(|| Numeric::parse(value).ok().map(JsonbValue::Number))?,
    }
}

/// Is it a number as JSON writes them?
fn is_number(text: &str) -> bool {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let rest = text.strip_prefix('-').unwrap_or(text);
    let whole = digits(rest);
    if whole == 0 || (whole > 1 && rest.starts_with('0')) {
        return false;
    }
    let mut rest = rest.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix('.') {
        let count = digits(fraction);
        if count == 0 {
            return false;
        }
        rest = fraction.get(count..).unwrap_or_default();
    }
    if let Some(exponent) = rest.strip_prefix(['e', 'E']) {
        let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        let count = digits(exponent);
        return count > 0 && count == exponent.len();
    }
    rest.is_empty()
}

fn document(view: JsonbRef<'_>, is_loose: bool) -> JsonbValue<'_> {
    JsonbValue::Object(
        pairs(view)
            .map(|(key, value)| {
                let made = match value {
                    None => JsonbValue::Null,
                    Some(value) if is_loose => {
                        loose(value).unwrap_or_else(|| JsonbValue::String(value.into()))
                    }
                    Some(value) => JsonbValue::String(value.into()),
                };
                (key.into(), made)
            })
            .collect(),
    )
}

/// `hstore_to_jsonb`
pub(super) fn to_jsonb(a: &[Datum]) -> Result<Datum> {
    document(one(a)?, false).finish().map(Datum::Jsonb)
}

/// `hstore_to_jsonb_loose`
pub(super) fn to_jsonb_loose(a: &[Datum]) -> Result<Datum> {
    document(one(a)?, true).finish().map(Datum::Jsonb)
}

fn json(view: JsonbRef<'_>, is_loose: bool) -> Result<Datum> {
    let mut out = vec![b'{'];
    for (i, (key, value)) in pairs(view).enumerate() {
        if i > 0 {
            out.extend_from_slice(b", ");
        }
        logstead_sql_types::value::json::text::write_string(key, &mut out);
        out.extend_from_slice(b": ");
        match value {
            None => out.extend_from_slice(b"null"),
            Some("t") if is_loose => out.extend_from_slice(b"true"),
            Some("f") if is_loose => out.extend_from_slice(b"false"),
            Some(value) if is_loose && is_number(value) => out.extend_from_slice(value.as_bytes()),
            Some(value) => logstead_sql_types::value::json::text::write_string(value, &mut out),
        }
    }
    out.push(b'}');
    Ok(Datum::text(String::from_utf8_lossy(&out)))
}

/// `hstore_to_json`
pub(super) fn to_json(a: &[Datum]) -> Result<Datum> {
    json(one(a)?, false)
}

/// `hstore_to_json_loose`
pub(super) fn to_json_loose(a: &[Datum]) -> Result<Datum> {
    json(one(a)?, true)
}

/// `hstore_to_array`
pub(super) fn to_array(a: &[Datum]) -> Result<Datum> {
    let both = pairs(one(a)?).flat_map(|(key, value)| [Datum::text(key), text(value)]);
    Ok(Datum::array(oid::TEXT, both.collect()))
}

/// `hstore_to_matrix`
pub(super) fn to_matrix(a: &[Datum]) -> Result<Datum> {
    let both = pairs(one(a)?)
        .map(|(key, value)| Datum::array(oid::TEXT, vec![Datum::text(key), text(value)]));
    let rows: Vec<Datum> = both.collect();
    if rows.is_empty() {
        return Ok(Datum::array(oid::TEXT, Vec::new()));
    }
    let stacked = logstead_sql_types::value::array::stacked(oid::TEXT, &rows)?;
    Ok(Datum::Array(std::sync::Arc::new(stacked)))
}

/// `akeys`
pub(super) fn keys_array(a: &[Datum]) -> Result<Datum> {
    let keys = pairs(one(a)?).map(|(key, _)| Datum::text(key));
    Ok(Datum::array(oid::TEXT, keys.collect()))
}

/// `avals`
pub(super) fn values_array(a: &[Datum]) -> Result<Datum> {
    let values = pairs(one(a)?).map(|(_, value)| text(value));
    Ok(Datum::array(oid::TEXT, values.collect()))
}

/// `skeys`
pub(super) fn keys_set(a: &[Datum]) -> Result<Rows> {
    Ok(pairs(one(a)?)
        .map(|(key, _)| vec![Datum::text(key)])
        .collect())
}

/// `svals`
pub(super) fn values_set(a: &[Datum]) -> Result<Rows> {
    Ok(pairs(one(a)?).map(|(_, value)| vec![text(value)]).collect())
}

/// `each`
pub(super) fn each(a: &[Datum]) -> Result<Rows> {
    Ok(pairs(one(a)?)
        .map(|(key, value)| vec![Datum::text(key), text(value)])
        .collect())
}

/// The order of two values.
pub(super) fn order(a: &[Datum]) -> Result<Ordering> {
    let (left, right) = two(a)?;
    Ok(compare_as(oid::HSTORE, left, right))
}

/// Comparison of two values: `compared_pairs!(is_lt)`.
macro_rules! compared_pairs {
    ($f:ident) => {
        |a| Ok(Datum::Bool(crate::hstore::order(a)?.$f()))
    };
}
pub(super) use compared_pairs;

/// `hstore_cmp`
pub(super) fn cmp(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(order(a)? as i32))
}
