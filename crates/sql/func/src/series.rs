//! Functions that yield rows: generate_series and generate_subscripts.
//!
//! The rows of generate_series are made one by one, as they are asked for: however many there are, they cost no memory,
//! and whoever asks may stop.

use super::arithmetic::bad_args;
use super::datetime;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::{Datum, Interval, Numeric};
use logstead_types::SqlState;

fn zero_step() -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        "step size cannot equal zero",
    )
}

/// A set of one column whose rows are made when they are asked for.
pub struct Series(SeriesKind);

enum SeriesKind {
    Integers {
        next: Option<i64>,
        last: i64,
        step: i64,
        make: fn(i64) -> Datum,
    },
    Numerics {
        next: Numeric,
        last: Numeric,
        step: Numeric,
        /// The first has been given.
        begun: bool,
    },
    Timestamps {
        next: i64,
        last: i64,
        step: Interval,
        sign: i32,
        begun: bool,
        has_zone: bool,
    },
}

impl Series {
    /// The next row's value.
    pub fn next(&mut self, cx: &dyn DateTimeContext) -> Result<Option<Datum>> {
        match &mut self.0 {
            SeriesKind::Integers {
                next,
                last,
                step,
                make,
            } => {
                let reached = |v: &i64| if *step > 0 { v <= last } else { v >= last };
                let Some(value) = next.filter(reached) else {
                    return Ok(None);
                };
                *next = value.checked_add(*step);
                Ok(Some(make(value)))
            }
            SeriesKind::Numerics {
                next,
                last,
                step,
                begun,
            } => {
                if std::mem::replace(begun, true) {
                    // What no number can be is beyond the last one.
                    let Ok(sum) = next.add(step) else {
                        return Ok(None);
                    };
                    *next = sum;
                }
                let order = next.compare(last);
                let reached = match step.signum() > 0 {
                    true => order.is_le(),
                    false => order.is_ge(),
                };
                Ok(reached.then(|| Datum::numeric(next.clone())))
            }
            SeriesKind::Timestamps {
                next,
                last,
                step,
                sign,
                begun,
                has_zone,
            } => {
                if std::mem::replace(begun, true) {
                    *next = match has_zone {
                        true => datetime::add_to_timestamptz(*next, step, cx.time_zone())?,
                        false => datetime::add_to_timestamp(*next, step)?,
                    };
                }
                let reached = if *sign > 0 {
                    *next <= *last
                } else {
                    *next >= *last
                };
                Ok(reached.then_some(match has_zone {
                    true => Datum::TimestampTz(*next),
                    false => Datum::Timestamp(*next),
                }))
            }
        }
    }
}

fn integers(from: i64, to: i64, step: i64, make: fn(i64) -> Datum) -> Result<Series> {
    if step == 0 {
        return Err(zero_step());
    }
    Ok(Series(SeriesKind::Integers {
        next: Some(from),
        last: to,
        step,
        make,
    }))
}

fn numerics(from: &Numeric, to: &Numeric, step: &Numeric) -> Result<Series> {
    let check = |n: &Numeric, what: &str| -> Result<()> {
        let bad = |w: &str| {
            Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("{what} {w}"),
            ))
        };
        match n {
            Numeric::NaN => bad("cannot be NaN"),
            Numeric::Infinity | Numeric::NegInfinity => bad("cannot be infinity"),
            _ => Ok(()),
        }
    };
    check(from, "start value")?;
    check(to, "stop value")?;
    check(step, "step size")?;
    if step.is_zero() {
        return Err(zero_step());
    }
    Ok(Series(SeriesKind::Numerics {
        next: from.clone(),
        last: to.clone(),
        step: step.clone(),
        begun: false,
    }))
}

fn moments(from: i64, to: i64, step: &Interval, has_zone: bool) -> Result<Series> {
    let sign = match step.span().signum() {
        0 => return Err(zero_step()),
        sign if sign > 0 => 1,
        _ => -1,
    };
    Ok(Series(SeriesKind::Timestamps {
        next: from,
        last: to,
        step: *step,
        sign,
        begun: false,
        has_zone,
    }))
}

/// `generate_series` over integers, numerics and moments
pub(super) fn generate_series(a: &[Datum]) -> Result<Series> {
    match a {
        [Datum::Int4(f), Datum::Int4(t)] => {
            integers(i64::from(*f), i64::from(*t), 1, |v| Datum::Int4(v as i32))
        }
        [Datum::Int4(f), Datum::Int4(t), Datum::Int4(s)] => {
            integers(i64::from(*f), i64::from(*t), i64::from(*s), |v| {
                Datum::Int4(v as i32)
            })
        }
        [Datum::Int8(f), Datum::Int8(t)] => integers(*f, *t, 1, Datum::Int8),
        [Datum::Int8(f), Datum::Int8(t), Datum::Int8(s)] => integers(*f, *t, *s, Datum::Int8),
        [Datum::Numeric(f), Datum::Numeric(t)] => numerics(f, t, &Numeric::new(1, 0)),
        [Datum::Numeric(f), Datum::Numeric(t), Datum::Numeric(s)] => numerics(f, t, s),
        [
            Datum::Timestamp(f),
            Datum::Timestamp(t),
            Datum::Interval(step),
        ] => moments(*f, *t, step, false),
        [
            Datum::TimestampTz(f),
            Datum::TimestampTz(t),
            Datum::Interval(step),
        ] => moments(*f, *t, step, true),
        _ => Err(bad_args(a)),
    }
}

/// `generate_subscripts`
pub(super) fn generate_subscripts(a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let (Some(Datum::Array(v)), Some(Datum::Int4(dimension))) = (a.first(), a.get(1)) else {
        return Err(bad_args(a));
    };
    let at = usize::try_from(i64::from(*dimension) - 1).ok();
    let Some(dim) = at.and_then(|at| v.dims().get(at).copied()) else {
        return Ok(Vec::new());
    };
    let mut subscripts: Vec<i64> = (0..i64::from(dim.len))
        .map(|i| i + i64::from(dim.lower))
        .collect();
    if matches!(a.get(2), Some(Datum::Bool(true))) {
        subscripts.reverse();
    }
    Ok(subscripts
        .into_iter()
        .map(|i| vec![Datum::Int4(i as i32)])
        .collect())
}
