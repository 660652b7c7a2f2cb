//! Arrays with an element or a slice replaced: what `UPDATE t SET a[2] = 5, a[3:4] = '{1,2}'` stores. The rules are
//! PostgreSQL's: an array of one dimension grows, with NULLs between; one of several does not.

use super::arithmetic::bad_args;
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::MemoryReservation;
use logstead_sql_types::value::array::{DIMENSIONS_MAX, Dim, items_of, too_many_dimensions};
use logstead_sql_types::value::build;
use logstead_sql_types::value::{Array, Datum, oid};
use logstead_types::SqlState;
use std::sync::Arc;

/// `array[i]... = value`, which has no name in SQL: the array, the value, the subscripts.
pub static ARRAY_SET_ELEMENT: super::Function = super::function(
    0,
    "array_set_element",
    &[oid::ANYARRAY, oid::ANYELEMENT, oid::INT4],
    None,
    oid::ANYARRAY,
    false,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(set_element),
);

/// `array[low:high]... = array`: the array, the values, two bounds for each dimension; false stands for one that is
/// left out.
pub static ARRAY_SET_SLICE: super::Function = super::function(
    0,
    "array_set_slice",
    &[oid::ANYARRAY, oid::ANYARRAY, oid::INT4, oid::INT4],
    None,
    oid::ANYARRAY,
    false,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(set_slice),
);

fn wrong(message: &str) -> SqlError {
    SqlError::new(SqlState::ARRAY_SUBSCRIPT_ERROR, message)
}

fn null_subscript() -> SqlError {
    SqlError::new(
        SqlState::NULL_VALUE_NOT_ALLOWED,
        "array subscript in assignment must not be null",
    )
}

fn too_large() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "array size exceeds the maximum allowed (134217727)",
    )
}

/// The array that is changed: its element type, dimensions and elements.
fn parts(array: &Datum, element: TypeId) -> Result<(TypeId, Vec<Dim>, Vec<Datum>)> {
    match array {
        Datum::Null => Ok((element, Vec::new(), Vec::new())),
        Datum::Array(array) => Ok((array.element, array.dims(), array.items.clone())),
        _ => Err(bad_args(std::slice::from_ref(array))),
    }
}

/// Elements put behind an array one by one between two looks at what it takes.
const KEPT_EVERY: usize = 4096;

fn made(element: TypeId, dims: &[Dim], items: Vec<Datum>) -> Result<Datum> {
    Ok(Datum::Array(Arc::new(Array::shaped(element, dims, items)?)))
}

/// Makes room for subscripts from `low` to `high` in an array of one dimension.
fn grow(dim: &mut Dim, items: &mut Vec<Datum>, low: i32, high: i32) -> Result<()> {
    let before = i64::from(dim.lower) - i64::from(low);
    let after = i64::from(high) - (i64::from(dim.lower) + i64::from(dim.len) - 1);
    let (before, after) = (before.max(0), after.max(0));
    let len = i32::try_from(i64::from(dim.len) + before + after).map_err(|_| too_large())?;
    let lower = dim.lower.min(low);
    items_of(&[Dim { lower, len }])?;
    let before = usize::try_from(before).map_err(|_| too_large())?;
    let after = usize::try_from(after).map_err(|_| too_large())?;
    // The old places are there until the new ones are filled.
    let _room = MemoryReservation::of((2 * items.len() + before + after) * size_of::<Datum>())?;
    items.splice(0..0, std::iter::repeat_n(Datum::Null, before));
    items.resize(items.len() + after, Datum::Null);
    *dim = Dim { lower, len };
    Ok(())
}

/// Puts an element into an array where it is: one that nobody else holds is not copied, and grows at its end by one. On
/// an error it is as it was.
pub fn put_element(
    array: &mut Datum,
    element: TypeId,
    value: Datum,
    subscripts: &[Datum],
) -> Result<()> {
    if let (Datum::Array(held), [Datum::Int4(at)]) = (&mut *array, subscripts)
        && held.shape.is_none()
        && let Ok(place) = usize::try_from(i64::from(*at) - i64::from(held.lower))
    {
        let count = held.items.len();
        if place < count {
            Arc::make_mut(held).items[place] = value;
            return Ok(());
        }
        if place == count && count > 0 {
            let len = i32::try_from(count + 1).map_err(|_| too_large())?;
            items_of(&[Dim {
                lower: held.lower,
                len,
            }])?;
            // The rule of all arrays; it fails below.
            if held.lower.checked_add(len).is_some() {
                let items = &mut Arc::make_mut(held).items;
                MemoryReservation::default().reserve(items, 1)?;
                items.push(value);
                // Now and then it is charged as what it has become.
                if items.len().is_multiple_of(KEPT_EVERY) {
                    build::charge_value(array.clone())?;
                }
                return Ok(());
            }
        }
    }
    let mut args = vec![Datum::Oid(element.get()), array.clone(), value];
    args.extend_from_slice(subscripts);
    *array = build::charge_value(set_element(&args)?)?;
    Ok(())
}

/// The first argument is the type of the elements, which an array that is NULL does not tell.
fn set_element(a: &[Datum]) -> Result<Datum> {
    let [Datum::Oid(element), array, value, subscripts @ ..] = a else {
        return Err(bad_args(a));
    };
    let mut at = Vec::with_capacity(subscripts.len());
    for subscript in subscripts {
        match subscript {
            Datum::Null => return Err(null_subscript()),
            subscript => at.push(subscript.as_i32()?),
        }
    }
    if at.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions(at.len()));
    }
    let (element, mut dims, mut items) = parts(array, TypeId::new(*element))?;
    if dims.is_empty() {
        let dims: Vec<Dim> = at
            .iter()
            .map(|lower| Dim {
                lower: *lower,
                len: 1,
            })
            .collect();
        return made(element, &dims, vec![value.clone()]);
    }
    if dims.len() != at.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    if let ([dim], [at]) = (dims.as_mut_slice(), at.as_slice()) {
        grow(dim, &mut items, *at, *at)?;
    }
    let mut place = 0_usize;
    for (dim, at) in dims.iter().zip(&at) {
        if !(dim.lower..=dim.upper()).contains(at) {
            return Err(wrong("array subscript out of range"));
        }
        let offset = usize::try_from(i64::from(*at) - i64::from(dim.lower)).unwrap_or(0);
        place = place * usize::try_from(dim.len).unwrap_or(0) + offset;
    }
    let slot = items
        .get_mut(place)
        .ok_or_else(|| SqlError::internal("an element that is not in its array"))?;
    *slot = value.clone();
    made(element, &dims, items)
}

fn set_slice(a: &[Datum]) -> Result<Datum> {
    let [Datum::Oid(element), array, source, bounds @ ..] = a else {
        return Err(bad_args(a));
    };
    let mut given: Vec<[Option<i32>; 2]> = Vec::with_capacity(bounds.len() / 2);
    for pair in bounds.chunks_exact(2) {
        let mut bound = [None, None];
        for (slot, datum) in bound.iter_mut().zip(pair) {
            *slot = match datum {
                Datum::Null => return Err(null_subscript()),
                Datum::Bool(_) => None,
                datum => Some(datum.as_i32()?),
            };
        }
        given.push(bound);
    }
    if given.len() > DIMENSIONS_MAX {
        return Err(too_many_dimensions(given.len()));
    }
    let (element, mut dims, mut items) = parts(array, TypeId::new(*element))?;
    let source = match source {
        // Nothing to put in.
        Datum::Null => return made(element, &dims, items),
        Datum::Array(source) => &source.items,
        _ => return Err(bad_args(a)),
    };
    let small = || wrong("source array too small");
    if dims.is_empty() {
        let mut dims = Vec::with_capacity(given.len());
        for bound in &given {
            let [Some(low), Some(high)] = bound else {
                return Err(wrong("array slice subscript must provide both boundaries").detail(
                    "When assigning to a slice of an empty array value, slice boundaries must be fully specified.",
                ));
            };
            let len = i64::from(*high) - i64::from(*low) + 1;
            let len = i32::try_from(len).ok().filter(|len| *len >= 0);
            dims.push(Dim {
                lower: *low,
                len: len.ok_or_else(too_large)?,
            });
        }
        let count = items_of(&dims)?;
        let items = source.get(..count).ok_or_else(small)?.to_vec();
        return made(element, &dims, items);
    }
    if dims.len() < given.len() {
        return Err(wrong("wrong number of array subscripts"));
    }
    let single = dims.len() == 1;
    let mut ranges = Vec::with_capacity(dims.len());
    for (number, dim) in dims.iter_mut().enumerate() {
        let [low, high] = given.get(number).copied().unwrap_or_default();
        let (low, high) = (low.unwrap_or(dim.lower), high.unwrap_or(dim.upper()));
        if low > high {
            return Err(wrong("upper bound cannot be less than lower bound"));
        }
        if single {
            grow(dim, &mut items, low, high)?;
        } else if low < dim.lower || high > dim.upper() {
            return Err(wrong("array subscript out of range"));
        }
        let from = i64::from(low) - i64::from(dim.lower);
        let to = i64::from(high) - i64::from(dim.lower) + 1;
        ranges.push(from..to);
    }
    // The places of the slice, in the order in which the source fills them.
    let mut rest = source.iter();
    for (number, slot) in items.iter_mut().enumerate() {
        let mut place = i64::try_from(number).unwrap_or(i64::MAX);
        let within = ranges.iter().zip(&dims).rev().all(|(range, dim)| {
            let len = i64::from(dim.len).max(1);
            let at = place % len;
            place /= len;
            range.contains(&at)
        });
        if within {
            *slot = rest.next().ok_or_else(small)?.clone();
        }
    }
    made(element, &dims, items)
}
