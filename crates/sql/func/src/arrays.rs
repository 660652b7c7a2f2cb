//! Functions and operators of arrays. What lies in an array of several dimensions is a list of elements to those that
//! ask of elements.

use super::AggregateState;
use super::arithmetic::bad_args;
use super::strings::{SplitParts, show, type_of};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::{Builder, ItemsBuilder};
use logstead_sql_types::value::IoContext;
use logstead_sql_types::value::array::{
    DIMENSIONS_MAX, Dim, items_of, stacked, too_many_dimensions,
};
use logstead_sql_types::value::build::ROW_BYTES;
use logstead_sql_types::value::{Array, Datum, SqlType, compare_as, info, oid, size_bytes};
use logstead_types::SqlState;
use std::sync::Arc;

fn array(a: &[Datum], i: usize) -> Result<Option<&Array>> {
    match a.get(i) {
        Some(Datum::Array(v)) => Ok(Some(v)),
        Some(Datum::Null) => Ok(None),
        _ => Err(bad_args(a)),
    }
}

fn made(element: TypeId, lower: i32, items: Vec<Datum>) -> Result<Datum> {
    Ok(Datum::Array(Arc::new(Array::flat(element, lower, items))))
}

fn shaped(element: TypeId, dims: &[Dim], items: Vec<Datum>) -> Result<Datum> {
    Array::shaped(element, dims, items).map(|array| Datum::Array(Arc::new(array)))
}

fn same(element: TypeId, x: &Datum, y: &Datum) -> bool {
    match (x.is_null(), y.is_null()) {
        (true, true) => true,
        (false, false) => compare_as(element, x, y).is_eq(),
        _ => false,
    }
}

fn of_one_dimension(v: &Array) -> Result<()> {
    match v.shape {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::DATA_EXCEPTION,
            "argument must be empty or one-dimensional array",
        )),
    }
}

/// A copy of elements, with room for so many behind them.
fn copied(from: &[Datum], more: usize) -> Result<ItemsBuilder<Datum>> {
    let mut items = ItemsBuilder::with_capacity(from.len() + more)?;
    items.extend(from)?;
    Ok(items)
}

/// `array_append`, `array || element`
pub(super) fn append(a: &[Datum]) -> Result<Datum> {
    match array(a, 0)? {
        Some(v) => {
            of_one_dimension(v)?;
            let mut items = copied(&v.items, 1)?;
            items.push(a[1].clone())?;
            made(v.element, v.lower, items.finish())
        }
        None => made(type_of(&a[1]).oid, 1, vec![a[1].clone()]),
    }
}

/// `array_prepend`, `element || array`
pub(super) fn prepend(a: &[Datum]) -> Result<Datum> {
    match array(a, 1)? {
        Some(v) => {
            of_one_dimension(v)?;
            let mut items = ItemsBuilder::with_capacity(v.items.len() + 1)?;
            items.push(a[0].clone())?;
            items.extend(&v.items)?;
            made(v.element, v.lower, items.finish())
        }
        None => made(type_of(&a[0]).oid, 1, vec![a[0].clone()]),
    }
}

/// `array_cat`, `array || array`: along the first dimension; one of a dimension less is one more part of the other.
pub(super) fn cat(a: &[Datum]) -> Result<Datum> {
    let (x, y) = match (array(a, 0)?, array(a, 1)?) {
        (None, None) => return Ok(Datum::Null),
        (Some(_), None) => return Ok(a[0].clone()),
        (None, Some(_)) => return Ok(a[1].clone()),
        (Some(x), Some(_)) if x.items.is_empty() => return Ok(a[1].clone()),
        (Some(_), Some(y)) if y.items.is_empty() => return Ok(a[0].clone()),
        (Some(x), Some(y)) => (x, y),
    };
    let incompatible = |detail: String| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "cannot concatenate incompatible arrays",
        )
        .detail(detail)
    };
    let (left, right) = (x.dims(), y.dims());
    let (mut dims, more, fits, kind) = match left.len() as i64 - right.len() as i64 {
        0 => (
            left.clone(),
            right[0].len,
            left[1..] == right[1..],
            "element ",
        ),
        1 => (left.clone(), 1, left[1..] == right[..], ""),
        -1 => (right.clone(), 1, left[..] == right[1..], ""),
        _ => {
            return Err(incompatible(format!(
                "Arrays of {} and {} dimensions are not compatible for concatenation.",
                left.len(),
                right.len()
            )));
        }
    };
    if !fits {
        return Err(incompatible(format!(
            "Arrays with differing {kind}dimensions are not compatible for concatenation."
        )));
    }
    dims[0].len = dims[0].len.saturating_add(more);
    let mut items = copied(&x.items, y.items.len())?;
    items.extend(&y.items)?;
    shaped(x.element, &dims, items.finish())
}

/// `array_remove`
pub(super) fn remove(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    if v.shape.is_some() {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "removing elements from multidimensional arrays is not supported",
        ));
    }
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
    Ok(Datum::Array(Arc::new(v.with_items(v.element, items))))
}

fn searched(v: &Array) -> Result<()> {
    match v.shape {
        None => Ok(()),
        Some(_) => Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "searching for elements in multidimensional arrays is not supported",
        )),
    }
}

/// `array_position`
pub(super) fn position(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    searched(v)?;
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
    searched(v)?;
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

/// The dimension that is asked for.
fn dimension(a: &[Datum]) -> Result<Option<Dim>> {
    let Some(v) = array(a, 0)? else {
        return Ok(None);
    };
    let number = a.get(1).map_or(Ok(1), Datum::as_i32)?;
    let at = usize::try_from(i64::from(number) - 1).ok();
    Ok(at.and_then(|at| v.dims().get(at).copied()))
}

/// `array_length`
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    Ok(dimension(a)?.map_or(Datum::Null, |dim| Datum::Int4(dim.len)))
}

/// `array_lower`
pub(super) fn lower(a: &[Datum]) -> Result<Datum> {
    Ok(dimension(a)?.map_or(Datum::Null, |dim| Datum::Int4(dim.lower)))
}

/// `array_upper`
pub(super) fn upper(a: &[Datum]) -> Result<Datum> {
    Ok(dimension(a)?.map_or(Datum::Null, |dim| Datum::Int4(dim.upper())))
}

/// `array_ndims`
pub(super) fn ndims(a: &[Datum]) -> Result<Datum> {
    Ok(match array(a, 0)?.map_or(0, |v| v.dims().len()) {
        0 => Datum::Null,
        count => Datum::Int4(count as i32),
    })
}

/// `array_dims`
pub(super) fn dims(a: &[Datum]) -> Result<Datum> {
    let dims = array(a, 0)?.map_or_else(Vec::new, Array::dims);
    if dims.is_empty() {
        return Ok(Datum::Null);
    }
    let shown = dims
        .iter()
        .map(|dim| format!("[{}:{}]", dim.lower, dim.upper()));
    Ok(Datum::text(shown.collect::<String>()))
}

/// `cardinality`
pub(super) fn cardinality(a: &[Datum]) -> Result<Datum> {
    Ok(array(a, 0)?.map_or(Datum::Null, |v| Datum::Int4(v.items.len() as i32)))
}

/// `trim_array`: of the first dimension
pub(super) fn trim_array(a: &[Datum]) -> Result<Datum> {
    let Some(v) = array(a, 0)? else {
        return Ok(Datum::Null);
    };
    let n = a[1].as_i32()?;
    let len = v.dims().first().map_or(0, |dim| dim.len);
    if n < 0 || n > len {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!("number of elements to trim must be between 0 and {len}"),
        ));
    }
    let end = i64::from(v.lower) + i64::from(len) - 1 - i64::from(n);
    part(v, &[(i64::from(v.lower), end)])
}

/// `array_fill(value, lengths [, first subscripts])`
pub(super) fn fill(a: &[Datum]) -> Result<Datum> {
    let null = || {
        SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "dimension array or low bound array cannot be null",
        )
    };
    let numbers = |at: usize| -> Result<Vec<i32>> {
        let given = array(a, at)?.ok_or_else(null)?;
        if given.shape.is_some() {
            return Err(SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                "wrong number of array subscripts",
            )
            .detail("Dimension array must be one dimensional."));
        }
        if given.items.iter().any(Datum::is_null) {
            return Err(SqlError::new(
                SqlState::NULL_VALUE_NOT_ALLOWED,
                "dimension values cannot be null",
            ));
        }
        given.items.iter().map(Datum::as_i32).collect()
    };
    let lengths = numbers(1)?;
    let lowers = match a.len() {
        3 => numbers(2)?,
        _ => vec![1; lengths.len()],
    };
    if lowers.len() != lengths.len() {
        return Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )
        .detail("Low bound array has different size than dimensions array."));
    }
    if lengths.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions(lengths.len()));
    }
    let dims = lengths.iter().zip(&lowers);
    let dims = dims.map(|(len, lower)| Dim {
        lower: *lower,
        len: (*len).max(0),
    });
    let dims: Vec<Dim> = dims.collect();
    let count = if dims.is_empty() { 0 } else { items_of(&dims)? };
    let dims = if count == 0 { &[][..] } else { &dims[..] };
    // What is filled in holds nothing of its own but the number in a box.
    let mut items = ItemsBuilder::with_capacity(count)?;
    for _ in 0..count {
        if matches!(
            a[0],
            Datum::Uuid(_) | Datum::Interval(_) | Datum::Inet(_) | Datum::Numeric(_)
        ) {
            items.hold(size_bytes(&a[0]))?;
        }
        items.push(a[0].clone())?;
    }
    shaped(type_of(&a[0]).oid, dims, items.finish())
}
/// `array_to_string`
pub(super) fn to_string(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let (Some(v), Some(Datum::Text(by))) = (array(a, 0)?, a.get(1)) else {
        return Ok(Datum::Null);
    };
    let null = match a.get(2) {
        Some(Datum::Text(t)) => Some(t.clone()),
        _ => None,
    };
    let mut out = Builder::default();
    let mut first = true;
    for item in &v.items {
        if item.is_null() && null.is_none() {
            continue;
        }
        if !first {
            out.push_str(by)?;
        }
        first = false;
        match (&null, item) {
            (Some(n), Datum::Null) => out.push_str(n)?,
            _ => show(cx, item, &mut out)?,
        }
    }
    out.finish_text()
}

/// Gives each piece of a text to `each`; false if there is no text.
fn pieces(a: &[Datum], each: &mut dyn FnMut(Option<&str>) -> Result<()>) -> Result<bool> {
    let Some(Datum::Text(t)) = a.first() else {
        return Ok(false);
    };
    let null = match a.get(2) {
        Some(Datum::Text(n)) => Some(n.clone()),
        _ => None,
    };
    let mut item = |s: &str| each((null.as_deref() != Some(s)).then_some(s));
    if t.is_empty() {
        return Ok(true);
    }
    match a.get(1) {
        Some(Datum::Text(by)) if by.is_empty() => item(t)?,
        Some(Datum::Text(by)) => {
            let mut divided = SplitParts::new(t, by);
            while let Some(part) = divided.next_part()? {
                item(part)?;
            }
        }
        _ => {
            for c in t.chars() {
                item(c.encode_utf8(&mut [0; 4]))?;
            }
        }
    }
    Ok(true)
}

/// `string_to_array`
pub(super) fn string_to_array(a: &[Datum]) -> Result<Datum> {
    let mut items = ItemsBuilder::new();
    let found = pieces(a, &mut |piece| match piece {
        Some(piece) => items.push_text(piece),
        None => items.push(Datum::Null),
    })?;
    Ok(match found {
        true => Datum::array(oid::TEXT, items.finish()),
        false => Datum::Null,
    })
}

/// `string_to_table`
pub(super) fn string_to_table(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let mut rows = ItemsBuilder::new();
    pieces(a, &mut |piece| {
        rows.hold(ROW_BYTES + piece.map_or(0, str::len))?;
        rows.push(vec![piece.map_or(Datum::Null, Datum::text)])
    })?;
    Ok(rows.finish())
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
pub(super) fn unnest(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let mut rows = ItemsBuilder::new();
    for item in array(a, 0)?.map_or(&[][..], |v| &v.items) {
        rows.hold(ROW_BYTES)?;
        rows.push(vec![item.clone()])?;
    }
    Ok(rows.finish())
}

/// `_pg_expandarray`: elements with their numbers
pub(super) fn expand(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let mut rows = ItemsBuilder::new();
    for (item, n) in array(a, 0)?.map_or(&[][..], |v| &v.items).iter().zip(1..) {
        rows.hold(2 * ROW_BYTES)?;
        rows.push(vec![item.clone(), Datum::Int4(n)])?;
    }
    Ok(rows.finish())
}

/// `pg_options_to_table`: `name=value` texts as rows
pub(super) fn options_to_table(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
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

/// `array[low:high]...`, which has no name in SQL: two bounds for each dimension, as far as they are written.
pub static ARRAY_SLICE: super::Function = super::function(
    0,
    "array_slice",
    &[oid::ANYARRAY, oid::INT4, oid::INT4],
    None,
    oid::ANYARRAY,
    true,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(slice),
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
    super::FunctionImpl::Pure(row_is_null),
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
    super::FunctionImpl::Pure(row_is_not_null),
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

/// `array[i][j]...` of two subscripts or more, which has no name in SQL either.
pub static ARRAY_ELEMENT: super::Function = super::function(
    0,
    "array_element",
    &[oid::ANYARRAY, oid::INT4, oid::INT4],
    None,
    oid::ANYELEMENT,
    true,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(element),
);

fn subscripts(a: &[Datum]) -> Result<(&Array, Vec<i32>)> {
    let [Datum::Array(array), subscripts @ ..] = a else {
        return Err(bad_args(a));
    };
    let subscripts = subscripts
        .iter()
        .map(Datum::as_i32)
        .collect::<Result<_>>()?;
    Ok((array, subscripts))
}

/// An element; NULL if there is none.
fn element(a: &[Datum]) -> Result<Datum> {
    let (array, subscripts) = subscripts(a)?;
    Ok(array.at(&subscripts).cloned().unwrap_or_default())
}

/// What of the array lies between the bounds; its subscripts begin at 1 again.
fn slice(a: &[Datum]) -> Result<Datum> {
    let (array, bounds) = subscripts(a)?;
    let pairs = bounds.chunks_exact(2);
    let bounds: Vec<(i64, i64)> = pairs
        .map(|pair| (i64::from(pair[0]), i64::from(pair[1])))
        .collect();
    part(array, &bounds)
}

fn part(array: &Array, bounds: &[(i64, i64)]) -> Result<Datum> {
    let dims = array.dims();
    let nothing = || made(array.element, 1, Vec::new());
    if bounds.len() > dims.len() {
        return nothing();
    }
    let mut ranges = Vec::with_capacity(dims.len());
    for (i, dim) in dims.iter().enumerate() {
        let (low, high) = bounds.get(i).copied().unwrap_or((i64::MIN, i64::MAX));
        let low = low.max(i64::from(dim.lower)) - i64::from(dim.lower);
        let end = high.min(i64::from(dim.upper())) - i64::from(dim.lower) + 1;
        match (usize::try_from(low), usize::try_from(end)) {
            (Ok(low), Ok(end)) if low < end => ranges.push(low..end),
            _ => return nothing(),
        }
    }
    // Whether the element with this number lies within all ranges: its place in each dimension, from the last one.
    let within = |number: usize| {
        let mut rest = number;
        ranges.iter().zip(&dims).rev().all(|(range, dim)| {
            let len = usize::try_from(dim.len).unwrap_or(1).max(1);
            let place = rest % len;
            rest /= len;
            range.contains(&place)
        })
    };
    let items = array.items.iter().enumerate();
    let items: Vec<Datum> = items
        .filter(|(number, _)| within(*number))
        .map(|(_, item)| item.clone())
        .collect();
    let dims: Vec<Dim> = ranges
        .iter()
        .map(|range| Dim {
            lower: 1,
            len: i32::try_from(range.len()).unwrap_or(i32::MAX),
        })
        .collect();
    shaped(array.element, &dims, items)
}

/// What ARRAY(subquery) makes of its rows: an array of these, or of a dimension more if they are arrays.
pub fn array_from_rows(element: TypeId, items: Vec<Datum>) -> Result<Datum> {
    let inner = match info::array_of(element) {
        Some(_) => None,
        None => info::element_of(element),
    };
    let (Some(inner), false) = (inner, items.is_empty()) else {
        return Ok(Datum::Array(Arc::new(Array {
            element: inner.unwrap_or(element),
            lower: 1,
            shape: None,
            items,
        })));
    };
    let mut stack = ArrayOfArraysAgg {
        element: inner,
        parts: Vec::new(),
        bytes: 0,
    };
    for item in items {
        stack.add(&[item])?;
    }
    stack.value()
}

/// `array_agg` of arrays: one of a dimension more.
struct ArrayOfArraysAgg {
    element: TypeId,
    parts: Vec<Datum>,
    bytes: usize,
}

/// The state of `array_agg` of arrays.
pub(super) fn stack(types: &[SqlType]) -> Box<dyn AggregateState> {
    Box::new(ArrayOfArraysAgg {
        element: types
            .first()
            .and_then(|ty| info::element_of(ty.oid))
            .unwrap_or(oid::TEXT),
        parts: Vec::new(),
        bytes: 0,
    })
}

impl AggregateState for ArrayOfArraysAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let refused = |state, message| Err(SqlError::new(state, message));
        let part = match args.first() {
            Some(part @ Datum::Array(array)) => {
                let unlike = match self.parts.first() {
                    Some(Datum::Array(first)) => first.dims() != array.dims(),
                    _ => false,
                };
                if array.items.is_empty() {
                    let message = "cannot accumulate empty arrays";
                    return refused(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
                }
                if unlike {
                    let message = "cannot accumulate arrays of different dimensionality";
                    return refused(SqlState::ARRAY_SUBSCRIPT_ERROR, message);
                }
                part
            }
            Some(Datum::Null) => {
                let message = "cannot accumulate null arrays";
                return refused(SqlState::NULL_VALUE_NOT_ALLOWED, message);
            }
            _ => return Err(bad_args(args)),
        };
        self.bytes += size_bytes(part);
        self.parts.push(part.clone());
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        if self.parts.is_empty() {
            return Ok(Datum::Null);
        }
        stacked(self.element, &self.parts).map(|array| Datum::Array(Arc::new(array)))
    }
    fn size_bytes(&self) -> usize {
        self.bytes
    }
}
