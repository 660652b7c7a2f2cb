//! Functions that yield rows: generate_series and generate_subscripts.
//!
//! Rows are made at once, so their number is bounded.

use super::Context;
use super::datetime;
use super::numbers::bad_args;
use crate::error::{Result, SqlError};
use crate::value::{Datum, Numeric};
use logstead_types::SqlState;

/// Most rows a call makes.
const ROWS_MAX: usize = 20_000_000;

fn zero_step() -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        "step size cannot equal zero",
    )
}

fn push(rows: &mut Vec<Vec<Datum>>, d: Datum) -> Result<()> {
    if rows.len() >= ROWS_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("a set of more than {ROWS_MAX} rows"),
        ));
    }
    rows.push(vec![d]);
    Ok(())
}

fn integers(from: i64, to: i64, step: i64, make: fn(i64) -> Datum) -> Result<Vec<Vec<Datum>>> {
    if step == 0 {
        return Err(zero_step());
    }
    let mut rows = Vec::new();
    let mut v = from;
    while if step > 0 { v <= to } else { v >= to } {
        push(&mut rows, make(v))?;
        match v.checked_add(step) {
            Some(next) => v = next,
            None => break,
        }
    }
    Ok(rows)
}

fn numerics(from: &Numeric, to: &Numeric, step: &Numeric) -> Result<Vec<Vec<Datum>>> {
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
    let mut rows = Vec::new();
    let mut v = from.clone();
    while if step.signum() > 0 {
        v.compare(to).is_le()
    } else {
        v.compare(to).is_ge()
    } {
        push(&mut rows, Datum::numeric(v.clone()))?;
        v = v.add(step)?;
    }
    Ok(rows)
}

/// `generate_series` over integers, numerics and moments
pub(super) fn generate_series(cx: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
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
        ] => {
            let sign = step.span().signum();
            if sign == 0 {
                return Err(zero_step());
            }
            let (mut rows, mut v) = (Vec::new(), *f);
            while if sign > 0 { v <= *t } else { v >= *t } {
                push(&mut rows, Datum::Timestamp(v))?;
                v = datetime::add_to_timestamp(v, step)?;
            }
            Ok(rows)
        }
        [
            Datum::TimestampTz(f),
            Datum::TimestampTz(t),
            Datum::Interval(step),
        ] => {
            let sign = step.span().signum();
            if sign == 0 {
                return Err(zero_step());
            }
            let (mut rows, mut v) = (Vec::new(), *f);
            while if sign > 0 { v <= *t } else { v >= *t } {
                push(&mut rows, Datum::TimestampTz(v))?;
                v = datetime::add_to_timestamptz(v, step, cx.time_zone())?;
            }
            Ok(rows)
        }
        _ => Err(bad_args(a)),
    }
}

/// `generate_subscripts`
pub(super) fn generate_subscripts(_: &dyn Context, a: &[Datum]) -> Result<Vec<Vec<Datum>>> {
    let (Some(Datum::Array(v)), Some(Datum::Int4(dimension))) = (a.first(), a.get(1)) else {
        return Err(bad_args(a));
    };
    if *dimension != 1 || v.items.is_empty() {
        return Ok(Vec::new());
    }
    let mut subscripts: Vec<i64> = (0..v.items.len() as i64)
        .map(|i| i + i64::from(v.lower))
        .collect();
    if matches!(a.get(2), Some(Datum::Bool(true))) {
        subscripts.reverse();
    }
    Ok(subscripts
        .into_iter()
        .map(|i| vec![Datum::Int4(i as i32)])
        .collect())
}
