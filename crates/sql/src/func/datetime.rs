//! Dates, times and intervals: conversions, arithmetic, and the functions of the manual's chapter 9.9 (formatting is in `format`).

use super::Context;
use super::numbers::{bad_args, division_by_zero};
use crate::error::{Result, SqlError};
use crate::value::calendar::{self, DAY, HOUR, MINUTE, SECOND};
use crate::value::datetime as dt;
use crate::value::{Datum, Interval, Numeric};
use jiff::tz::TimeZone;
use logstead_types::SqlState;
use std::cmp::Ordering;

fn field_overflow(text: &str) -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, text)
}

/// "interval out of range".
pub(super) fn interval_out_of_range() -> SqlError {
    field_overflow("interval out of range")
}

fn infinite(t: i64) -> bool {
    t == i64::MAX || t == i64::MIN
}

pub(super) fn interval(v: Interval) -> Datum {
    Datum::Interval(Box::new(v))
}

/// Moment of a date without a range error: what lies beyond timestamps compares beyond them.
fn date_moment(d: i32) -> i128 {
    match d {
        i32::MIN => i128::from(i64::MIN),
        i32::MAX => i128::from(i64::MAX),
        _ => i128::from(d) * i128::from(DAY),
    }
}

/// Comparison of date and timestamp.
pub(super) fn compare_days(a: &[Datum], f: fn(Ordering) -> bool) -> Result<Datum> {
    let at = |d: &Datum| match d {
        Datum::Date(v) => Ok(date_moment(*v)),
        Datum::Timestamp(v) => Ok(i128::from(*v)),
        _ => Err(bad_args(a)),
    };
    match a {
        [x, y] => Ok(Datum::Bool(f(at(x)?.cmp(&at(y)?)))),
        _ => Err(bad_args(a)),
    }
}

/// Comparison with timestamptz: the other side is local to the session.
pub(super) fn compare_moments(cx: &dyn Context, a: &[Datum], f: fn(Ordering) -> bool) -> Result<Datum> {
    let at = |d: &Datum| match d {
        Datum::Date(v) => match dt::date_to_timestamp(*v) {
            Ok(t) => dt::to_utc(t, cx.time_zone()).map(i128::from),
            Err(_) => Ok(date_moment(*v)),
        },
        Datum::Timestamp(v) => dt::to_utc(*v, cx.time_zone()).map(i128::from),
        Datum::TimestampTz(v) => Ok(i128::from(*v)),
        _ => Err(bad_args(a)),
    };
    match a {
        [x, y] => Ok(Datum::Bool(f(at(x)?.cmp(&at(y)?)))),
        _ => Err(bad_args(a)),
    }
}

/// date to timestamp
pub(super) fn date_to_timestamp(a: &[Datum]) -> Result<Datum> {
    dt::date_to_timestamp(a[0].as_date()?).map(Datum::Timestamp)
}

/// date to timestamptz
pub(super) fn date_to_timestamptz(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    dt::to_utc(dt::date_to_timestamp(a[0].as_date()?)?, cx.time_zone()).map(Datum::TimestampTz)
}

/// time to interval
pub(super) fn time_to_interval(a: &[Datum]) -> Result<Datum> {
    Ok(interval(Interval { micros: a[0].as_time()?, ..Interval::default() }))
}

/// timestamp to date
pub(super) fn timestamp_to_date(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(dt::timestamp_to_date(a[0].as_timestamp()?)))
}

/// timestamp to time; an infinite one has none
pub(super) fn timestamp_to_time(a: &[Datum]) -> Result<Datum> {
    let t = a[0].as_timestamp()?;
    Ok(if infinite(t) { Datum::Null } else { Datum::Time(t.rem_euclid(DAY)) })
}

/// timestamp to timestamptz
pub(super) fn timestamp_to_timestamptz(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    dt::to_utc(a[0].as_timestamp()?, cx.time_zone()).map(Datum::TimestampTz)
}

/// timestamptz to date
pub(super) fn timestamptz_to_date(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(dt::timestamp_to_date(dt::to_local(a[0].as_timestamptz()?, cx.time_zone()))))
}

/// timestamptz to time
pub(super) fn timestamptz_to_time(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    let t = a[0].as_timestamptz()?;
    Ok(if infinite(t) { Datum::Null } else { Datum::Time(dt::to_local(t, cx.time_zone()).rem_euclid(DAY)) })
}

/// timestamptz to timestamp
pub(super) fn timestamptz_to_timestamp(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Timestamp(dt::to_local(a[0].as_timestamptz()?, cx.time_zone())))
}

/// interval to time: what is left of whole days
pub(super) fn interval_to_time(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(a[0].as_interval()?.micros.rem_euclid(DAY)))
}

/// Sum of two intervals.
pub(super) fn add_intervals(a: &Interval, b: &Interval) -> Result<Interval> {
    let sum = || {
        Some(Interval {
            months: a.months.checked_add(b.months)?,
            days: a.days.checked_add(b.days)?,
            micros: a.micros.checked_add(b.micros)?,
        })
    };
    sum().ok_or_else(interval_out_of_range)
}

/// An interval times a factor; fractions of months go to days, of days to time.
pub(super) fn scale_interval(v: &Interval, factor: f64) -> Result<Interval> {
    let months = f64::from(v.months) * factor;
    let days = f64::from(v.days) * factor;
    let fits = |x: f64| x.is_finite() && x >= f64::from(i32::MIN) && x <= f64::from(i32::MAX);
    if !fits(months) || !fits(days) {
        return Err(interval_out_of_range());
    }
    // PostgreSQL rounds the cascaded remainders to microseconds of a month and of a day.
    let micro = |x: f64| (x * 1e6).round_ties_even() / 1e6;
    let month_rest = micro((months - months.trunc()) * 30.0);
    let mut second_rest = micro((days - days.trunc() + month_rest - month_rest.trunc()) * 86_400.0);
    let mut carried = 0.0;
    if second_rest.abs() >= 86_400.0 {
        carried = (second_rest / 86_400.0).trunc();
        second_rest -= carried * 86_400.0;
    }
    let micros = (v.micros as f64 * factor + second_rest * 1e6).round_ties_even();
    if !micros.is_finite() || micros.abs() >= 9.223_372_036_854_775e18 {
        return Err(interval_out_of_range());
    }
    Ok(Interval { months: months as i32, days: (days.trunc() + month_rest.trunc() + carried) as i32, micros: micros as i64 })
}
