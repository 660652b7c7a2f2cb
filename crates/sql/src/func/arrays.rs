//! Functions and operators of one-dimensional arrays.

use super::Context;
use super::numbers::bad_args;
use super::strings::{show, type_of};
use crate::error::{Result, SqlError};
use crate::value::{Array, Datum, compare_as, oid};
use logstead_types::SqlState;
use std::sync::Arc;

fn array(a: &[Datum], i: usize) -> Result<Option<&Array>> {
    match a.get(i) {
        Some(Datum::Array(v)) => Ok(Some(v)),
        Some(Datum::Null) => Ok(None),
        _ => Err(bad_args(a)),
    }
}

fn made(element: u32, lower: i32, items: Vec<Datum>) -> Result<Datum> {
    Ok(Datum::Array(Arc::new(Array {
        element,
        lower,
        items,
    })))
}

fn same(element: u32, x: &Datum, y: &Datum) -> bool {
    match (x.is_null(), y.is_null()) {
        (true, true) => true,
        (false, false) => compare_as(element, x, y).is_eq(),
        _ => false,
    }
}

/// `array_append`, `array || element`
pub(super) fn append(a: &[Datum]) -> Result<Datum> {
    match array(a, 0)? {
        Some(v) => {
            let mut items = v.items.clone();
            items.push(a[1].clone());
            made(v.element, v.lower, items)
        }
        None => made(type_of(&a[1]).oid, 1, vec![a[1].clone()]),
    }
}

/// `array_prepend`, `element || array`
pub(super) fn prepend(a: &[Datum]) -> Result<Datum> {
    match array(a, 1)? {
        Some(v) => {
            let mut items = Vec::with_capacity(v.items.len() + 1);
            items.push(a[0].clone());
            items.extend_from_slice(&v.items);
            made(v.element, v.lower, items)
        }
        None => made(type_of(&a[0]).oid, 1, vec![a[0].clone()]),
    }
}

/// `array_cat`, `array || array`
pub(super) fn cat(a: &[Datum]) -> Result<Datum> {
    match (array(a, 0)?, array(a, 1)?) {
        (None, None) => Ok(Datum::Null),
        (Some(_), None) => Ok(a[0].clone()),
        (None, Some(_)) => Ok(a[1].clone()),
        (Some(x), Some(_)) if x.items.is_empty() => Ok(a[1].clone()),
        (Some(x), Some(y)) => made(
            x.element,
            x.lower,
            x.items.iter().chain(&y.items).cloned().collect(),
        ),
    }
}

/// `array_remove`
pub(super) fn remove(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    made(
        v.element,
        v.lower,
        v.items
            .iter()
            .filter(|i| !same(v.element, i, &a[1]))
            .cloned()
            .collect(),
    )
}

/// `array_replace`
pub(super) fn replace(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    let items = v
        .items
        .iter()
        .map(|i| {
            if same(v.element, i, &a[1]) {
                a[2].clone()
            } else {
                i.clone()
            }
        })
        .collect();
    made(v.element, v.lower, items)
}

/// `array_position`
pub(super) fn position(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    let from = match a.get(2) {
        Some(Datum::Null) => {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "initial position must not be null",
            ));
        }
        Some(d) => (i64::from(d.as_i32()?) - i64::from(v.lower)).max(0) as usize,
        None => 0,
    };
    let found = v
        .items
        .iter()
        .enumerate()
        .skip(from)
        .find(|(_, i)| same(v.element, i, &a[1]));
    Ok(found.map_or(Datum::Null, |(i, _)| Datum::Int4(v.lower + i as i32)))
}

/// `array_positions`
pub(super) fn positions(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    let found = v
        .items
        .iter()
        .enumerate()
        .filter(|(_, i)| same(v.element, i, &a[1]));
    Ok(Datum::array(
        oid::INT4,
        found
            .map(|(i, _)| Datum::Int4(v.lower + i as i32))
            .collect(),
    ))
}

fn bounds(a: &[Datum]) -> Result<Option<(i32, i32)>> {
    let Some(v) = array(a, 0)? else {
        return Ok(None);
    };
    let dimension = a.get(1).map_or(Ok(1), Datum::as_i32)?;
    Ok((dimension == 1 && !v.items.is_empty())
        .then(|| (v.lower, v.lower + v.items.len() as i32 - 1)))
}

/// `array_length`
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    Ok(bounds(a)?.map_or(Datum::Null, |(lo, hi)| Datum::Int4(hi - lo + 1)))
}

/// `array_lower`
pub(super) fn lower(a: &[Datum]) -> Result<Datum> {
    Ok(bounds(a)?.map_or(Datum::Null, |(lo, _)| Datum::Int4(lo)))
}

/// `array_upper`
pub(super) fn upper(a: &[Datum]) -> Result<Datum> {
    Ok(bounds(a)?.map_or(Datum::Null, |(_, hi)| Datum::Int4(hi)))
}

/// `array_ndims`
pub(super) fn ndims(a: &[Datum]) -> Result<Datum> {
    Ok(bounds(a)?.map_or(Datum::Null, |_| Datum::Int4(1)))
}

/// `array_dims`
pub(super) fn dims(a: &[Datum]) -> Result<Datum> {
    Ok(bounds(a)?.map_or(Datum::Null, |(lo, hi)| Datum::text(format!("[{lo}:{hi}]"))))
}

/// `cardinality`
pub(super) fn cardinality(a: &[Datum]) -> Result<Datum> {
    Ok(array(a, 0)?.map_or(Datum::Null, |v| Datum::Int4(v.items.len() as i32)))
}

/// `trim_array`
pub(super) fn trim_array(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    let n = a[1].as_i32()?;
    if n < 0 || n as usize > v.items.len() {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!(
                "number of elements to trim must be between 0 and {}",
                v.items.len()
            ),
        ));
    }
    made(
        v.element,
        v.lower,
        v.items[..v.items.len() - n as usize].to_vec(),
    )
}

/// `array_fill(value, {n})`
pub(super) fn fill(a: &[Datum]) -> Result<Datum> {
    let null = || {
        SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "dimension array or low bound array cannot be null",
        )
    };
    let sizes = array(a, 1)?.ok_or_else(null)?;
    let lower = if a.len() > 2 {
        array(a, 2)?
            .ok_or_else(null)?
            .items
            .first()
            .map_or(Ok(1), Datum::as_i32)?
    } else {
        1
    };
    match sizes.items.as_slice() {
        [] => made(type_of(&a[0]).oid, 1, Vec::new()),
        [n] => {
            let n = n.as_i32()?.max(0) as usize;
            if n > 134_217_727 {
                return Err(SqlError::new(
                    SqlState::PROGRAM_LIMIT_EXCEEDED,
                    "array size exceeds the maximum allowed (134217727)",
                ));
            }
            made(type_of(&a[0]).oid, lower, vec![a[0].clone(); n])
        }
        _ => Err(SqlError::unsupported("multidimensional array")),
    }
}

/// `array_to_string`
pub(super) fn to_string(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    let (Some(v), Some(Datum::Text(by))) = (array(a, 0)?, a.get(1)) else {
        return Ok(Datum::Null);
    };
    let null = match a.get(2) {
        Some(Datum::Text(t)) => Some(t.clone()),
        _ => None,
    };
    let mut out = Vec::new();
    let mut first = true;
    for item in &v.items {
        if item.is_null() && null.is_none() {
            continue;
        }
        if !first {
            out.extend_from_slice(by.as_bytes());
        }
        first = false;
        match (&null, item) {
            (Some(n), Datum::Null) => out.extend_from_slice(n.as_bytes()),
            _ => show(cx, item, &mut out),
        }
    }
    Ok(Datum::text(String::from_utf8_lossy(&out).into_owned()))
}

fn pieces(a: &[Datum]) -> Result<Option<Vec<Datum>>> {
    let Some(Datum::Text(t)) = a.first() else {
        return Ok(None);
    };
    let null = match a.get(2) {
        Some(Datum::Text(n)) => Some(n.clone()),
        _ => None,
    };
    let item = |s: &str| {
        if null.as_deref() == Some(s) {
            Datum::Null
        } else {
            Datum::text(s)
        }
    };
    if t.is_empty() {
        return Ok(Some(Vec::new()));
    }
    Ok(Some(match a.get(1) {
        Some(Datum::Text(by)) if by.is_empty() => vec![item(t)],
        Some(Datum::Text(by)) => t.split(&**by).map(item).collect(),
        _ => t
            .chars()
            .map(|c| item(c.encode_utf8(&mut [0; 4])))
            .collect(),
    }))
}

/// `string_to_array`
pub(super) fn string_to_array(a: &[Datum]) -> Result<Datum> {
    Ok(pieces(a)?.map_or(Datum::Null, |items| Datum::array(oid::TEXT, items)))
}

/// `string_to_table`
pub(super) fn string_to_table(_: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    Ok(pieces(a)?
        .unwrap_or_default()
        .into_iter()
        .map(|d| vec![d])
        .collect())
}

fn contains(big: &Array, small: &Array) -> bool {
    small.items.iter().all(|x| {
        !x.is_null()
            && big
                .items
                .iter()
                .any(|y| !y.is_null() && same(big.element, x, y))
    })
}

/// `@>`
pub(super) fn contain(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(contains(a[0].as_array()?, a[1].as_array()?)))
}

/// `<@`
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(contains(a[1].as_array()?, a[0].as_array()?)))
}

/// `&&`
pub(super) fn overlap(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (a[0].as_array()?, a[1].as_array()?);
    let hit = x
        .items
        .iter()
        .filter(|i| !i.is_null())
        .any(|i| y.items.iter().any(|j| same(x.element, i, j)));
    Ok(Datum::Bool(hit))
}

/// `unnest`
pub(super) fn unnest(_: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    Ok(array(a, 0)?.map_or_else(Vec::new, |v| {
        v.items.iter().map(|d| vec![d.clone()]).collect()
    }))
}

/// `_pg_expandarray`: elements with their numbers
pub(super) fn expand(_: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    Ok(array(a, 0)?.map_or_else(Vec::new, |v| {
        let numbered = v.items.iter().zip(1..);
        numbered
            .map(|(d, n)| vec![d.clone(), Datum::Int4(n)])
            .collect()
    }))
}

/// `pg_options_to_table`: `name=value` texts as rows
pub(super) fn options_to_table(_: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let Some(v) = array(a, 0)? else {
        return Ok(Vec::new());
    };
    let texts = v.items.iter().filter_map(|d| d.as_str().ok());
    Ok(texts
        .map(|t| match t.split_once('=') {
            Some((name, value)) => vec![Datum::text(name), Datum::text(value)],
            None => vec![Datum::text(t), Datum::Null],
        })
        .collect())
}

/// `array[low:high]`, which has no name in SQL.
pub static ARRAY_SLICE: super::Function = super::function(
    0,
    "array_slice",
    &[oid::ANYARRAY, oid::INT4, oid::INT4],
    None,
    oid::ANYARRAY,
    true,
    super::Volatility::Immutable,
    super::Body::Pure(slice),
);

/// `record IS NULL`, of a record of which nothing is known when the statement is planned.
pub static ROW_IS_NULL: super::Function = super::function(
    0,
    "row_is_null",
    &[oid::RECORD],
    None,
    oid::BOOL,
    false,
    super::Volatility::Immutable,
    super::Body::Pure(row_is_null),
);

/// `record IS NOT NULL`.
pub static ROW_IS_NOT_NULL: super::Function = super::function(
    0,
    "row_is_not_null",
    &[oid::RECORD],
    None,
    oid::BOOL,
    false,
    super::Volatility::Immutable,
    super::Body::Pure(row_is_not_null),
);

fn row_is_null(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Array(record)] => Ok(Datum::Bool(record.items.iter().all(Datum::is_null))),
        [value] => Ok(Datum::Bool(value.is_null())),
        _ => Err(bad_args(a)),
    }
}

fn row_is_not_null(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Array(record)] => Ok(Datum::Bool(!record.items.iter().any(Datum::is_null))),
        [value] => Ok(Datum::Bool(!value.is_null())),
        _ => Err(bad_args(a)),
    }
}

/// What of the array lies between two places; it begins at 1 again.
fn slice(a: &[Datum]) -> Result<Datum> {
    let [Datum::Array(array), Datum::Int4(low), Datum::Int4(high)] = a else {
        return Err(bad_args(a));
    };
    let first = i64::from(*low).max(i64::from(array.lower)) - i64::from(array.lower);
    let end = i64::from(*high) - i64::from(array.lower) + 1;
    let end = end.min(array.items.len() as i64);
    let items = match (usize::try_from(first), usize::try_from(end)) {
        (Ok(first), Ok(end)) => array.items.get(first..end).unwrap_or_default().to_vec(),
        _ => Vec::new(),
    };
    Ok(Datum::array(array.element, items))
}
