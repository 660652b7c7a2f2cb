//! Functions and operators of ranges. The rules and messages are PostgreSQL's.

use super::numbers::bad_args;
use crate::error::{Result, SqlError};
use crate::value::range::{
    Bound, LOWER_INCLUSIVE, LOWER_INFINITE, UPPER_INCLUSIVE, UPPER_INFINITE, bounds, empty, make,
    of,
};
use crate::value::{Array, Datum};
use logstead_types::SqlState;
use std::cmp::Ordering;

fn two(a: &[Datum]) -> Result<(&Array, &Array)> {
    match a {
        [left, right] => Ok((of(left)?, of(right)?)),
        _ => Err(bad_args(a)),
    }
}

fn one(a: &[Datum]) -> Result<&Array> {
    match a {
        [range] => of(range),
        _ => Err(bad_args(a)),
    }
}

type Ends = (Bound, Bound);

/// Judges the bounds of two ranges; what is said of an empty one is `otherwise`.
fn judged(a: &[Datum], otherwise: bool, judge: fn(&Ends, &Ends) -> bool) -> Result<Datum> {
    let (left, right) = two(a)?;
    Ok(Datum::Bool(match (bounds(left), bounds(right)) {
        (Some(left), Some(right)) => judge(&left, &right),
        _ => otherwise,
    }))
}

fn overlap(a: &Ends, b: &Ends) -> bool {
    let begins_in = |x: &Ends, y: &Ends| {
        x.0.compare(&y.0) != Ordering::Less && x.0.compare(&y.1) != Ordering::Greater
    };
    begins_in(a, b) || begins_in(b, a)
}

/// Is nothing between where one ends and where another begins?
fn meet(upper: &Bound, lower: &Bound) -> bool {
    match upper.compare_values(lower) {
        Ordering::Greater => false,
        Ordering::Equal => upper.value.is_some() && upper.inclusive != lower.inclusive,
        // What is between them; only of integers and dates that may be nothing.
        Ordering::Less => {
            let discrete = matches!(
                (&upper.value, &lower.value),
                (Some(Datum::Int4(_)), Some(_))
                    | (Some(Datum::Int8(_)), Some(_))
                    | (Some(Datum::Date(_)), Some(_))
            );
            let between = discrete.then(|| make(upper.turned(), lower.turned()));
            matches!(between, Some(Ok(range)) if of(&range).is_ok_and(|r| bounds(r).is_none()))
        }
    }
}

fn adjoin(a: &Ends, b: &Ends) -> bool {
    meet(&a.1, &b.0) || meet(&b.1, &a.0)
}

/// `&&`
pub(super) fn overlaps(a: &[Datum]) -> Result<Datum> {
    judged(a, false, overlap)
}

/// `<<`
pub(super) fn before(a: &[Datum]) -> Result<Datum> {
    judged(a, false, |a, b| a.1.compare(&b.0) == Ordering::Less)
}

/// `>>`
pub(super) fn after(a: &[Datum]) -> Result<Datum> {
    judged(a, false, |a, b| a.0.compare(&b.1) == Ordering::Greater)
}

/// `&<`
pub(super) fn overleft(a: &[Datum]) -> Result<Datum> {
    judged(a, false, |a, b| a.1.compare(&b.1) != Ordering::Greater)
}

/// `&>`
pub(super) fn overright(a: &[Datum]) -> Result<Datum> {
    judged(a, false, |a, b| a.0.compare(&b.0) != Ordering::Less)
}

/// `-|-`
pub(super) fn adjacent(a: &[Datum]) -> Result<Datum> {
    judged(a, false, adjoin)
}

fn holds(outer: &Array, inner: &Array) -> bool {
    match (bounds(outer), bounds(inner)) {
        (_, None) => true,
        (None, Some(_)) => false,
        (Some(o), Some(i)) => {
            o.0.compare(&i.0) != Ordering::Greater && o.1.compare(&i.1) != Ordering::Less
        }
    }
}

/// `range @> range`
pub(super) fn contains(a: &[Datum]) -> Result<Datum> {
    let (outer, inner) = two(a)?;
    Ok(Datum::Bool(holds(outer, inner)))
}

/// `range <@ range`
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    let (inner, outer) = two(a)?;
    Ok(Datum::Bool(holds(outer, inner)))
}

fn holds_value(range: &Datum, value: &Datum) -> Result<Datum> {
    let Some((lower, upper)) = bounds(of(range)?) else {
        return Ok(Datum::Bool(false));
    };
    let begin = Bound::new(Some(value.clone()), true, true);
    let end = Bound::new(Some(value.clone()), true, false);
    let within =
        lower.compare(&begin) != Ordering::Greater && upper.compare(&end) != Ordering::Less;
    Ok(Datum::Bool(within))
}

/// `range @> value`
pub(super) fn contains_value(a: &[Datum]) -> Result<Datum> {
    match a {
        [range, value] => holds_value(range, value),
        _ => Err(bad_args(a)),
    }
}

/// `value <@ range`
pub(super) fn value_contained(a: &[Datum]) -> Result<Datum> {
    match a {
        [value, range] => holds_value(range, value),
        _ => Err(bad_args(a)),
    }
}

fn lesser(a: Bound, b: Bound) -> Bound {
    if a.compare(&b) == Ordering::Greater {
        b
    } else {
        a
    }
}

fn greater(a: Bound, b: Bound) -> Bound {
    if a.compare(&b) == Ordering::Less {
        b
    } else {
        a
    }
}

/// `range * range`
pub(super) fn intersect(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    match (bounds(left), bounds(right)) {
        (Some(l), Some(r)) if overlap(&l, &r) => make(greater(l.0, r.0), lesser(l.1, r.1)),
        _ => Ok(empty()),
    }
}

fn joined(a: &[Datum], strictly: bool) -> Result<Datum> {
    let (left, right) = two(a)?;
    match (bounds(left), bounds(right), a) {
        (None, _, [_, other]) | (_, None, [other, _]) => Ok(other.clone()),
        (Some(l), Some(r), _) => {
            if strictly && !overlap(&l, &r) && !adjoin(&l, &r) {
                return Err(SqlError::new(
                    SqlState::DATA_EXCEPTION,
                    "result of range union would not be contiguous",
                ));
            }
            make(lesser(l.0, r.0), greater(l.1, r.1))
        }
        _ => Err(bad_args(a)),
    }
}

/// `range + range`
pub(super) fn union(a: &[Datum]) -> Result<Datum> {
    joined(a, true)
}

/// `range_merge`
pub(super) fn merge(a: &[Datum]) -> Result<Datum> {
    joined(a, false)
}

/// `range - range`
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    let (Some(l), Some(r), [whole, _]) = (bounds(left), bounds(right), a) else {
        return a.first().cloned().ok_or_else(|| bad_args(a));
    };
    let begins = l.0.compare(&r.0);
    let ends = l.1.compare(&r.1);
    if begins == Ordering::Less && ends == Ordering::Greater {
        return Err(SqlError::new(
            SqlState::DATA_EXCEPTION,
            "result of range difference would not be contiguous",
        ));
    }
    if !overlap(&l, &r) {
        return Ok(whole.clone());
    }
    if begins != Ordering::Less && ends != Ordering::Greater {
        return Ok(empty());
    }
    match begins {
        Ordering::Less => make(l.0, r.0.turned()),
        _ => make(r.1.turned(), l.1),
    }
}

fn end(a: &[Datum], lower: bool) -> Result<Datum> {
    Ok(bounds(one(a)?).map_or(Datum::Null, |ends| {
        let bound = if lower { ends.0 } else { ends.1 };
        bound.value.unwrap_or_default()
    }))
}

/// `lower`
pub(super) fn lower(a: &[Datum]) -> Result<Datum> {
    end(a, true)
}

/// `upper`
pub(super) fn upper(a: &[Datum]) -> Result<Datum> {
    end(a, false)
}

fn flag(a: &[Datum], flag: i32) -> Result<Datum> {
    Ok(Datum::Bool(one(a)?.lower & flag != 0))
}

/// `isempty`
pub(super) fn is_empty(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(bounds(one(a)?).is_none()))
}

/// `lower_inc`
pub(super) fn lower_inc(a: &[Datum]) -> Result<Datum> {
    flag(a, LOWER_INCLUSIVE)
}

/// `upper_inc`
pub(super) fn upper_inc(a: &[Datum]) -> Result<Datum> {
    flag(a, UPPER_INCLUSIVE)
}

/// `lower_inf`
pub(super) fn lower_inf(a: &[Datum]) -> Result<Datum> {
    flag(a, LOWER_INFINITE)
}

/// `upper_inf`
pub(super) fn upper_inf(a: &[Datum]) -> Result<Datum> {
    flag(a, UPPER_INFINITE)
}

/// `int4range(1, 5)`, `int4range(1, 5, '[]')` and their like.
pub(super) fn construct(a: &[Datum]) -> Result<Datum> {
    let (lower, upper, flags) = match a {
        [lower, upper] => (lower, upper, "[)"),
        [_, _, Datum::Null] => {
            return Err(SqlError::new(
                SqlState::DATA_EXCEPTION,
                "range constructor flags argument must not be null",
            ));
        }
        [lower, upper, flags] => (lower, upper, flags.as_str()?),
        _ => return Err(bad_args(a)),
    };
    let (from, to) = match flags {
        "[]" => (true, true),
        "[)" => (true, false),
        "(]" => (false, true),
        "()" => (false, false),
        _ => {
            return Err(
                SqlError::new(SqlState::SYNTAX_ERROR, "invalid range bound flags")
                    .hint("Valid values are \"[]\", \"[)\", \"(]\", and \"()\"."),
            );
        }
    };
    let value = |datum: &Datum| (!datum.is_null()).then(|| datum.clone());
    make(
        Bound::new(value(lower), from, true),
        Bound::new(value(upper), to, false),
    )
}
