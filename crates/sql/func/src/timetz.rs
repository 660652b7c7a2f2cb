//! `time with time zone`: conversions and arithmetic. A value's zone is a fixed offset, whatever zone it was made in.

use super::arithmetic::bad_args;
use super::datetime::{interval_out_of_range, zone};
use jiff::tz::TimeZone;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::calendar::{self, DAY, SECOND};
use logstead_sql_types::value::datetime as dt;
use logstead_sql_types::value::{Datum, TimeTz};
use logstead_types::SqlState;

fn one(a: &[Datum], at: usize) -> Result<TimeTz> {
    match a.get(at) {
        Some(Datum::TimeTz(v)) => Ok(*v),
        _ => Err(bad_args(a)),
    }
}

/// A local time in an offset, seconds east of UTC.
pub(super) fn made(micros: i64, east: i64) -> Result<Datum> {
    let west = i32::try_from(-east).map_err(|_| interval_out_of_range())?;
    Ok(Datum::TimeTz(TimeTz { micros, west }))
}

/// timestamptz to timetz; an infinite one has none
pub(super) fn of_timestamptz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let t = a.first().ok_or_else(|| bad_args(a))?.as_timestamptz()?;
    if t == i64::MIN || t == i64::MAX {
        return Ok(Datum::Null);
    }
    let (local, east) = calendar::utc_to_local(t, cx.time_zone());
    made(local.rem_euclid(DAY), east)
}

/// time to timetz: the session's zone, as it is today
pub(super) fn of_time(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let t = a.first().ok_or_else(|| bad_args(a))?.as_time()?;
    made(t, dt::input::offset_today(t, cx)?)
}

/// timetz to time
pub(super) fn to_time(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(one(a, 0)?.micros))
}

/// CURRENT_TIME
pub(super) fn current_time(cx: &dyn DateTimeContext, _: &[Datum]) -> Result<Datum> {
    of_timestamptz(cx, &[Datum::TimestampTz(cx.transaction_time()?)])
}

/// timetz `+` and `-` interval, interval `+` timetz: only the interval's time counts
pub(super) fn plus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::TimeTz(t), Datum::Interval(v)] | [Datum::Interval(v), Datum::TimeTz(t)] => {
            Ok(Datum::TimeTz(TimeTz {
                micros: (t.micros + v.micros % DAY).rem_euclid(DAY),
                ..*t
            }))
        }
        _ => Err(bad_args(a)),
    }
}

/// timetz `-` interval
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::TimeTz(t), Datum::Interval(v)] => Ok(Datum::TimeTz(TimeTz {
            micros: (t.micros - v.micros % DAY).rem_euclid(DAY),
            ..*t
        })),
        _ => Err(bad_args(a)),
    }
}

/// date `+` timetz, timetz `+` date: a moment
pub(super) fn on_date(a: &[Datum]) -> Result<Datum> {
    let (day, t) = match a {
        [Datum::Date(d), Datum::TimeTz(t)] | [Datum::TimeTz(t), Datum::Date(d)] => (*d, t),
        _ => return Err(bad_args(a)),
    };
    match day {
        i32::MIN => Ok(Datum::TimestampTz(i64::MIN)),
        i32::MAX => Ok(Datum::TimestampTz(i64::MAX)),
        _ => i64::from(day)
            .checked_mul(DAY)
            .and_then(|moment| moment.checked_add(t.utc_micros()))
            .ok_or_else(calendar::timestamp_out_of_range)
            .and_then(calendar::check_timestamp)
            .map(Datum::TimestampTz),
    }
}

fn in_zone(t: TimeTz, east: i64) -> Result<Datum> {
    made((t.utc_micros() + east * SECOND).rem_euclid(DAY), east)
}

/// `timezone(text, timetz)`: the zone as it is now
pub(super) fn in_named_zone(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let tz: TimeZone = zone(a.first().ok_or_else(|| bad_args(a))?.as_str()?)?;
    let (_, east) = calendar::utc_to_local(cx.transaction_time()?, &tz);
    in_zone(one(a, 1)?, east)
}

/// `timezone(interval, timetz)`
pub(super) fn in_offset(a: &[Datum]) -> Result<Datum> {
    let v = a.first().ok_or_else(|| bad_args(a))?.as_interval()?;
    if v.months != 0 || v.days != 0 {
        let mut text = Vec::new();
        dt::write_interval(&v, &mut text);
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!(
                "interval time zone \"{}\" must not include months or days",
                String::from_utf8_lossy(&text)
            ),
        ));
    }
    let east = v.micros / SECOND;
    if i32::try_from(east).is_err() {
        return Err(interval_out_of_range());
    }
    in_zone(one(a, 1)?, east)
}

/// The lower of two.
pub(super) fn smaller(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (one(a, 0)?, one(a, 1)?);
    Ok(Datum::TimeTz(if x.compare(&y).is_lt() { x } else { y }))
}

/// The higher of two.
pub(super) fn larger(a: &[Datum]) -> Result<Datum> {
    let (x, y) = (one(a, 0)?, one(a, 1)?);
    Ok(Datum::TimeTz(if x.compare(&y).is_gt() { x } else { y }))
}
