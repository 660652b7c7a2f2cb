//! `OVERLAPS`: whether two spans of time have a moment in common. Each has two ends in any order, or one and a length;
//! an end may be missing.

use super::arithmetic::bad_args;
use super::{datetime, timetz};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::compare::compare;
use std::cmp::Ordering;

/// `overlaps` of two pairs
pub(super) fn overlaps(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let [from, to, other_from, other_to] = a else {
        return Err(bad_args(a));
    };
    let (Some(x), Some(y)) = (span(cx, from, to)?, span(cx, other_from, other_to)?) else {
        return Ok(Datum::Null);
    };
    Ok(meet(&x, &y).map_or(Datum::Null, Datum::Bool))
}

/// The earlier end, and the later one if it is there.
type Span = (Datum, Option<Datum>);

fn span(cx: &dyn DateTimeContext, from: &Datum, to: &Datum) -> Result<Option<Span>> {
    let to = match to {
        Datum::Interval(_) if from.is_null() => Datum::Null,
        Datum::Interval(_) => {
            let pair = [from.clone(), to.clone()];
            match from {
                Datum::TimestampTz(_) => datetime::plus_zoned(cx, &pair)?,
                Datum::TimeTz(_) => timetz::plus(&pair)?,
                _ => datetime::plus(&pair)?,
            }
        }
        other => other.clone(),
    };
    Ok(match (from.is_null(), to.is_null()) {
        (true, true) => None,
        (true, false) => Some((to, None)),
        (false, true) => Some((from.clone(), None)),
        _ if compare(from, &to).is_gt() => Some((to, Some(from.clone()))),
        _ => Some((from.clone(), Some(to))),
    })
}

fn meet((from, to): &Span, (other_from, other_to): &Span) -> Option<bool> {
    let later = |from: &Datum, to: &Option<Datum>, other_to: &Option<Datum>| {
        // `from` begins behind the other.
        let end = other_to.as_ref()?;
        if compare(from, end).is_lt() {
            return Some(true);
        }
        to.as_ref().map(|_| false)
    };
    match compare(from, other_from) {
        Ordering::Greater => later(from, to, other_to),
        Ordering::Less => later(other_from, other_to, to),
        Ordering::Equal => (to.is_some() && other_to.is_some()).then_some(true),
    }
}
