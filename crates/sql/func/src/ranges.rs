//! Functions and operators of ranges and multiranges. The rules and messages are PostgreSQL's.
//!
//! What asks for order alone (`<<`, `&<`, `-|-`, `lower`, ...) sees a multirange as the range from its beginning to its
//! end, so one function answers for every pair of the two. What asks for contents goes through the ranges in order, by
//! halving.

use super::arithmetic::bad_args;
use super::{AggregateState, Function, Rows};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::multirange::{self, ranges_in};
use logstead_sql_types::value::oid::{ANYELEMENT, ANYMULTIRANGE, ANYRANGE, DATE, INT4, INT8, TEXT};
use logstead_sql_types::value::range::{Bound, bounds, bounds_adjacent, empty, make, of, subtype};
use logstead_sql_types::value::{Datum, size_bytes};
use logstead_types::SqlState;
use std::cmp::Ordering;

type Ends = (Bound, Bound);

fn ends(range: &Datum) -> Result<Option<Ends>> {
    Ok(bounds(of(range)?))
}

/// Where a range or multirange begins and ends; none of an empty one.
fn span(datum: &Datum) -> Result<Option<Ends>> {
    let ([first, ..], [.., last]) = (ranges_in(datum)?, ranges_in(datum)?) else {
        return Ok(None);
    };
    Ok(ends(first)?
        .zip(ends(last)?)
        .map(|(first, last)| (first.0, last.1)))
}

fn one(a: &[Datum]) -> Result<&Datum> {
    match a {
        [range] => Ok(range),
        _ => Err(bad_args(a)),
    }
}

fn two(a: &[Datum]) -> Result<(&Datum, &Datum)> {
    match a {
        [left, right] => Ok((left, right)),
        _ => Err(bad_args(a)),
    }
}

/// Checks where two begin and end; of an empty one nothing is true.
fn judged(a: &[Datum], judge: fn(&Ends, &Ends) -> bool) -> Result<Datum> {
    let (left, right) = two(a)?;
    Ok(Datum::Bool(match (span(left)?, span(right)?) {
        (Some(left), Some(right)) => judge(&left, &right),
        _ => false,
    }))
}

fn overlap(a: &Ends, b: &Ends) -> bool {
    let begins_in = |x: &Ends, y: &Ends| {
        x.0.compare(&y.0) != Ordering::Less && x.0.compare(&y.1) != Ordering::Greater
    };
    begins_in(a, b) || begins_in(b, a)
}

fn holds(outer: &Ends, inner: &Ends) -> bool {
    outer.0.compare(&inner.0) != Ordering::Greater && outer.1.compare(&inner.1) != Ordering::Less
}

fn adjoin(a: &Ends, b: &Ends) -> bool {
    bounds_adjacent(&a.1, &b.0) || bounds_adjacent(&b.1, &a.0)
}

/// The first of some ranges in order that does not end before `begin`: if anything that begins there has to do with one
/// of them, with this one.
fn reaching(ranges: &[Datum], begin: &Bound) -> Result<Option<Ends>> {
    let at = ranges.partition_point(|range| match range {
        Datum::Array(range) => {
            bounds(range).is_some_and(|ends| ends.1.compare(begin) == Ordering::Less)
        }
        _ => false,
    });
    ranges.get(at).map_or(Ok(None), ends)
}

/// Is there one among the ranges of the first that does so with one among those of the second?
fn any_among(inner: &Datum, outer: &Datum, judge: fn(&Ends, &Ends) -> bool) -> Result<bool> {
    let outer = ranges_in(outer)?;
    for range in ranges_in(inner)? {
        if let Some(range) = ends(range)?
            && let Some(found) = reaching(outer, &range.0)?
            && judge(&found, &range)
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// `&&`
pub(super) fn overlaps(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    any_among(left, right, overlap).map(Datum::Bool)
}

/// `<<`
pub(super) fn before(a: &[Datum]) -> Result<Datum> {
    judged(a, |a, b| a.1.compare(&b.0) == Ordering::Less)
}

/// `>>`
pub(super) fn after(a: &[Datum]) -> Result<Datum> {
    judged(a, |a, b| a.0.compare(&b.1) == Ordering::Greater)
}

/// `&<`
pub(super) fn overleft(a: &[Datum]) -> Result<Datum> {
    judged(a, |a, b| a.1.compare(&b.1) != Ordering::Greater)
}

/// `&>`
pub(super) fn overright(a: &[Datum]) -> Result<Datum> {
    judged(a, |a, b| a.0.compare(&b.0) != Ordering::Less)
}

/// `-|-`
pub(super) fn adjacent(a: &[Datum]) -> Result<Datum> {
    judged(a, adjoin)
}

fn all_within(inner: &Datum, outer: &Datum) -> Result<Datum> {
    let outer = ranges_in(outer)?;
    for range in ranges_in(inner)? {
        let Some(range) = ends(range)? else { continue };
        let found = reaching(outer, &range.0)?;
        if !found.is_some_and(|found| holds(&found, &range)) {
            return Ok(Datum::Bool(false));
        }
    }
    Ok(Datum::Bool(true))
}

/// `@>` of ranges and multiranges
pub(super) fn contains(a: &[Datum]) -> Result<Datum> {
    let (outer, inner) = two(a)?;
    all_within(inner, outer)
}

/// `<@` of ranges and multiranges
pub(super) fn contained(a: &[Datum]) -> Result<Datum> {
    let (inner, outer) = two(a)?;
    all_within(inner, outer)
}

fn holds_value(ranges: &Datum, value: &Datum) -> Result<Datum> {
    let begin = Bound::new(Some(value.clone()), true, true);
    let end = Bound::new(Some(value.clone()), true, false);
    let found = reaching(ranges_in(ranges)?, &begin)?;
    Ok(Datum::Bool(
        found.is_some_and(|found| holds(&found, &(begin, end))),
    ))
}

/// `range @> value`
pub(super) fn contains_value(a: &[Datum]) -> Result<Datum> {
    let (ranges, value) = two(a)?;
    holds_value(ranges, value)
}

/// `value <@ range`
pub(super) fn value_contained(a: &[Datum]) -> Result<Datum> {
    let (value, ranges) = two(a)?;
    holds_value(ranges, value)
}

fn lesser(a: Bound, b: Bound) -> Bound {
    match a.compare(&b) {
        Ordering::Greater => b,
        _ => a,
    }
}

fn greater(a: Bound, b: Bound) -> Bound {
    match a.compare(&b) {
        Ordering::Less => b,
        _ => a,
    }
}

fn common(left: Ends, right: Ends) -> Result<Datum> {
    match overlap(&left, &right) {
        true => make(greater(left.0, right.0), lesser(left.1, right.1)),
        false => Ok(empty()),
    }
}

/// `range * range`
pub(super) fn intersect(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    match (ends(left)?, ends(right)?) {
        (Some(left), Some(right)) => common(left, right),
        _ => Ok(empty()),
    }
}

fn joined(a: &[Datum], strictly: bool) -> Result<Datum> {
    let (left, right) = two(a)?;
    match (ends(left)?, ends(right)?) {
        (None, _) => Ok(right.clone()),
        (_, None) => Ok(left.clone()),
        (Some(l), Some(r)) => {
            if strictly && !overlap(&l, &r) && !adjoin(&l, &r) {
                return Err(SqlError::new(
                    SqlState::DATA_EXCEPTION,
                    "result of range union would not be contiguous",
                ));
            }
            make(lesser(l.0, r.0), greater(l.1, r.1))
        }
    }
}

/// `range + range`
pub(super) fn union(a: &[Datum]) -> Result<Datum> {
    joined(a, true)
}

/// `range_merge` of two ranges, or of those of a multirange
pub(super) fn merge(a: &[Datum]) -> Result<Datum> {
    match a {
        [ranges] => span(ranges)?.map_or_else(|| Ok(empty()), |(lower, upper)| make(lower, upper)),
        _ => joined(a, false),
    }
}

/// `range - range`
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    let (whole, less) = two(a)?;
    let (Some(l), Some(r)) = (ends(whole)?, ends(less)?) else {
        return Ok(whole.clone());
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

/// `lower`
pub(super) fn lower(a: &[Datum]) -> Result<Datum> {
    let ends = span(one(a)?)?;
    Ok(ends
        .and_then(|(lower, _)| lower.value)
        .unwrap_or(Datum::Null))
}

/// `upper`
pub(super) fn upper(a: &[Datum]) -> Result<Datum> {
    let ends = span(one(a)?)?;
    Ok(ends
        .and_then(|(_, upper)| upper.value)
        .unwrap_or(Datum::Null))
}

fn asked(a: &[Datum], ask: fn(&Ends) -> bool) -> Result<Datum> {
    Ok(Datum::Bool(span(one(a)?)?.is_some_and(|ends| ask(&ends))))
}

/// `isempty`
pub(super) fn is_empty(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(ranges_in(one(a)?)?.is_empty()))
}

/// `lower_inc`
pub(super) fn lower_inc(a: &[Datum]) -> Result<Datum> {
    asked(a, |ends| ends.0.inclusive)
}

/// `upper_inc`
pub(super) fn upper_inc(a: &[Datum]) -> Result<Datum> {
    asked(a, |ends| ends.1.inclusive)
}

/// `lower_inf`
pub(super) fn lower_inf(a: &[Datum]) -> Result<Datum> {
    asked(a, |ends| ends.0.value.is_none())
}

/// `upper_inf`
pub(super) fn upper_inf(a: &[Datum]) -> Result<Datum> {
    asked(a, |ends| ends.1.value.is_none())
}

/// `int4range(1, 5)`, `int4range(1, 5, '[]')` and their like.
pub(super) fn construct(a: &[Datum]) -> Result<Datum> {
    constructed(a, |bound| bound)
}

/// The constructor of a user's range over whole numbers or days, which is kept as it is written.
fn construct_continuous(a: &[Datum]) -> Result<Datum> {
    constructed(a, Bound::continuous)
}

/// What makes a user's range of its bounds, and of the text that says whether they are in it.
pub(super) fn constructor(range: TypeId) -> &'static Function {
    const fn of(body: fn(&[Datum]) -> Result<Datum>) -> Function {
        super::function(
            0,
            "range_constructor",
            &[ANYELEMENT, ANYELEMENT, TEXT],
            None,
            ANYRANGE,
            false,
            super::Volatility::Immutable,
            super::FunctionImpl::Pure(body),
        )
    }
    static DISCRETE: Function = of(construct);
    static CONTINUOUS: Function = of(construct_continuous);
    match subtype(range) {
        Some(INT4 | INT8 | DATE) => &CONTINUOUS,
        _ => &DISCRETE,
    }
}

/// What makes a user's multirange of ranges.
pub(super) static MULTIRANGE_CONSTRUCTOR: Function = super::function(
    0,
    "multirange_constructor",
    &[],
    Some(ANYRANGE),
    ANYMULTIRANGE,
    false,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(construct_multirange),
);

fn constructed(a: &[Datum], kept: fn(Bound) -> Bound) -> Result<Datum> {
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
        kept(Bound::new(value(lower), from, true)),
        kept(Bound::new(value(upper), to, false)),
    )
}

/// `int4multirange()`, `int4multirange(range, ...)` and their like.
pub(super) fn construct_multirange(a: &[Datum]) -> Result<Datum> {
    if a.iter().any(Datum::is_null) {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "multirange values cannot contain null members",
        ));
    }
    multirange::make(a.to_vec())
}

/// `multirange + multirange`
pub(super) fn multirange_union(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    multirange::make([ranges_in(left)?, ranges_in(right)?].concat())
}

/// `multirange * multirange`
pub(super) fn multirange_intersect(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    let (mut left, mut right) = (ranges_in(left)?, ranges_in(right)?);
    let mut kept = Vec::new();
    while let ([l, left_rest @ ..], [r, right_rest @ ..]) = (left, right) {
        let (Some(l), Some(r)) = (ends(l)?, ends(r)?) else {
            return Err(bad_args(a));
        };
        // Which ends first meets no other.
        match l.1.compare(&r.1) {
            Ordering::Greater => right = right_rest,
            _ => left = left_rest,
        }
        let both = common(l, r)?;
        if bounds(of(&both)?).is_some() {
            kept.push(both);
        }
    }
    Ok(multirange::of_sorted(kept))
}

/// `multirange - multirange`
pub(super) fn multirange_minus(a: &[Datum]) -> Result<Datum> {
    let (left, right) = two(a)?;
    let mut less = ranges_in(right)?;
    let mut kept = Vec::new();
    for range in ranges_in(left)? {
        let Some((mut from, to)) = ends(range)? else {
            continue;
        };
        // What is left of it, from where nothing has been taken from.
        let mut rest = true;
        while let [first, others @ ..] = less {
            let Some(taken) = ends(first)? else {
                return Err(bad_args(a));
            };
            if taken.0.compare(&to) == Ordering::Greater {
                break;
            }
            if taken.1.compare(&from) != Ordering::Less {
                if from.compare(&taken.0) == Ordering::Less {
                    kept.push(make(from.clone(), taken.0.turned())?);
                }
                // It may take from the next range too.
                if taken.1.compare(&to) != Ordering::Less {
                    rest = false;
                    break;
                }
                from = taken.1.turned();
            }
            less = others;
        }
        if rest {
            kept.push(make(from, to)?);
        }
    }
    Ok(multirange::of_sorted(kept))
}

/// `unnest` of a multirange
pub(super) fn unnest(a: &[Datum]) -> Result<Rows> {
    Ok(ranges_in(one(a)?)?
        .iter()
        .map(|range| vec![range.clone()])
        .collect())
}

/// The state of `range_agg`: all ranges, NULL before the first.
#[derive(Default)]
pub(super) struct RangeAgg {
    ranges: Vec<Datum>,
    any: bool,
    bytes: usize,
}

impl AggregateState for RangeAgg {
    fn add(&mut self, args: &[Datum]) -> Result<()> {
        let ranges = ranges_in(one(args)?)?;
        self.any = true;
        self.bytes += ranges.iter().map(size_bytes).sum::<usize>();
        self.ranges.extend_from_slice(ranges);
        Ok(())
    }
    fn value(&self) -> Result<Datum> {
        match self.any {
            true => multirange::make(self.ranges.clone()),
            false => Ok(Datum::Null),
        }
    }
    fn finish(&mut self) -> Result<Datum> {
        match self.any {
            true => multirange::make(std::mem::take(&mut self.ranges)),
            false => Ok(Datum::Null),
        }
    }
    fn size_bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::value::{OutputStyle, SqlType, oid, text_io};

    fn read(ty: TypeId, text: &str) -> Datum {
        text_io::input(SqlType::of(ty), text, None).unwrap()
    }

    #[test]
    fn sets_of_numbers_agree_with_their_members() {
        // Every set of the numbers 0..6 as a multirange, against bits.
        let sets: Vec<Datum> = (0_u32..64)
            .map(|bits| {
                let members = (0..6).filter(|at| bits >> at & 1 == 1);
                let ranges = members.map(|at| read(oid::INT4RANGE, &format!("[{at},{at}]")));
                multirange::make(ranges.collect()).unwrap()
            })
            .collect();
        let set = |bits: usize| sets.get(bits).unwrap().clone();
        let shown = |d: &Datum| {
            text_io::message_text(d, SqlType::of(oid::INT4MULTIRANGE), &OutputStyle::UTC)
        };
        for a in 0..64 {
            assert_eq!(read(oid::INT4MULTIRANGE, &shown(&set(a))), set(a));
            for b in 0..64 {
                let both = [set(a), set(b)];
                let told = |f: fn(&[Datum]) -> Result<Datum>| f(&both).unwrap();
                assert_eq!(told(multirange_union), set(a | b), "{a} {b}");
                assert_eq!(told(multirange_intersect), set(a & b), "{a} {b}");
                assert_eq!(told(multirange_minus), set(a & !b), "{a} {b}");
                assert_eq!(told(overlaps), Datum::Bool(a & b != 0), "{a} {b}");
                assert_eq!(told(contains), Datum::Bool(a & b == b), "{a} {b}");
            }
            for value in 0..6 {
                let args = [set(a), Datum::Int4(value)];
                let is_in = a >> value & 1 == 1;
                assert_eq!(contains_value(&args).unwrap(), Datum::Bool(is_in));
            }
        }
    }
}
