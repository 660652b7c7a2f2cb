//! Dates, times and intervals: conversions, arithmetic, and the functions of the manual's chapter 9.9 (formatting is in
//! `format`).

#[path = "datetime_fields.rs"]
mod fields;

pub(super) use fields::{date_part, date_trunc, extract};

use super::arithmetic::{bad_args, bad_pair, division_by_zero};
use jiff::tz::TimeZone;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::abbreviations::{Abbreviation, abbreviation, offset_of};
use logstead_sql_types::value::calendar::{self, DAY, HOUR, MINUTE, SECOND};
use logstead_sql_types::value::datetime as dt;
use logstead_sql_types::value::{Datum, Interval};
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
pub fn date_moment(d: i32) -> i128 {
    match d {
        i32::MIN => i128::MIN,
        i32::MAX => i128::MAX,
        _ => i128::from(d) * i128::from(DAY),
    }
}

/// The same of a timestamp: the infinite ones lie beyond all days.
pub fn timestamp_moment(t: i64) -> i128 {
    match t {
        i64::MIN => i128::MIN,
        i64::MAX => i128::MAX,
        _ => i128::from(t),
    }
}

/// The moment of a timestamp that is local to a zone: one that UTC has no timestamp for lies beyond those, but is not
/// infinite.
fn local_moment(t: i64, cx: &dyn DateTimeContext) -> i128 {
    match dt::to_utc(t, cx.time_zone()) {
        Ok(utc) => timestamp_moment(utc),
        Err(_) if t < 0 => i128::from(i64::MIN),
        Err(_) => i128::from(i64::MAX),
    }
}

/// Comparison of date and timestamp.
pub(super) fn compare_days(a: &Datum, b: &Datum, f: fn(Ordering) -> bool) -> Result<Datum> {
    let at = |d: &Datum| match d {
        Datum::Date(v) => Ok(date_moment(*v)),
        Datum::Timestamp(v) => Ok(timestamp_moment(*v)),
        _ => Err(bad_pair(a, b)),
    };
    Ok(Datum::Bool(f(at(a)?.cmp(&at(b)?))))
}

/// Comparison with timestamptz: the other side is local to the session.
pub(super) fn compare_moments(
    cx: &dyn DateTimeContext,
    a: &[Datum],
    f: fn(Ordering) -> bool,
) -> Result<Datum> {
    let at = |d: &Datum| match d {
        Datum::Date(v) => match dt::date_to_timestamp(*v) {
            Ok(t) => Ok(local_moment(t, cx)),
            Err(_) => Ok(date_moment(*v)),
        },
        Datum::Timestamp(v) => Ok(local_moment(*v, cx)),
        Datum::TimestampTz(v) => Ok(timestamp_moment(*v)),
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
pub(super) fn date_to_timestamptz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let moment = dt::to_utc(dt::date_to_timestamp(a[0].as_date()?)?, cx.time_zone());
    moment
        .map(Datum::TimestampTz)
        .map_err(|_| field_overflow("date out of range for timestamp"))
}

/// time to interval
pub(super) fn time_to_interval(a: &[Datum]) -> Result<Datum> {
    Ok(interval(Interval {
        micros: a[0].as_time()?,
        ..Interval::default()
    }))
}

/// timestamp to date
pub(super) fn timestamp_to_date(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(dt::timestamp_to_date(a[0].as_timestamp()?)))
}

/// timestamp to time; an infinite one has none
pub(super) fn timestamp_to_time(a: &[Datum]) -> Result<Datum> {
    let t = a[0].as_timestamp()?;
    Ok(if infinite(t) {
        Datum::Null
    } else {
        Datum::Time(t.rem_euclid(DAY))
    })
}

/// timestamp to timestamptz
pub(super) fn timestamp_to_timestamptz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    dt::to_utc(a[0].as_timestamp()?, cx.time_zone()).map(Datum::TimestampTz)
}

/// timestamptz to date
pub(super) fn timestamptz_to_date(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(dt::timestamp_to_date(dt::to_local(
        a[0].as_timestamptz()?,
        cx.time_zone(),
    ))))
}

/// timestamptz to time
pub(super) fn timestamptz_to_time(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let t = a[0].as_timestamptz()?;
    Ok(if infinite(t) {
        Datum::Null
    } else {
        Datum::Time(dt::to_local(t, cx.time_zone()).rem_euclid(DAY))
    })
}

/// timestamptz to timestamp
pub(super) fn timestamptz_to_timestamp(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Timestamp(dt::to_local(
        a[0].as_timestamptz()?,
        cx.time_zone(),
    )))
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

/// An interval times a factor.
pub(super) fn scale_interval(v: &Interval, factor: f64) -> Result<Interval> {
    scaled(v, |x| x * factor)
}

/// An interval divided: not the same as times one part, which may be rounded.
pub(super) fn divide_interval(v: &Interval, by: f64) -> Result<Interval> {
    scaled(v, |x| x / by)
}

/// Fractions of months go to days, of days to time.
fn scaled(v: &Interval, scale: impl Fn(f64) -> f64) -> Result<Interval> {
    let months = scale(f64::from(v.months));
    let days = scale(f64::from(v.days));
    let fits = |x: f64| x >= f64::from(i32::MIN) && x < -f64::from(i32::MIN);
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
    let micros = (scale(v.micros as f64) + second_rest * 1e6).round_ties_even();
    if !micros.is_finite() || micros.abs() >= 9.223_372_036_854_775e18 {
        return Err(interval_out_of_range());
    }
    let days = days.trunc() + month_rest.trunc() + carried;
    if !fits(days) {
        return Err(interval_out_of_range());
    }
    Ok(Interval {
        months: months as i32,
        days: days as i32,
        micros: micros as i64,
    })
}

fn add_months(t: i64, months: i32) -> Result<i64> {
    let p = calendar::parts(t);
    let total = p.year * 12 + (p.month - 1) + i64::from(months);
    let (year, month) = (total.div_euclid(12), total.rem_euclid(12) + 1);
    let day = p.day.min(calendar::month_days(year, month));
    calendar::combine(calendar::days_from_civil(year, month, day), p.time)
}

fn add_days(t: i64, days: i32) -> Result<i64> {
    // More days than an i64 has microseconds for may lie between two moments.
    let moved = i128::from(t) + i128::from(days) * i128::from(DAY);
    i64::try_from(moved).map_err(|_| calendar::timestamp_out_of_range())
}

/// timestamp + interval: months, then days, then time.
pub(super) fn add_to_timestamp(t: i64, v: &Interval) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    let mut t = t;
    if v.months != 0 {
        t = add_months(t, v.months)?;
    }
    t = add_days(t, v.days)?;
    t.checked_add(v.micros)
        .ok_or_else(calendar::timestamp_out_of_range)
        .and_then(calendar::check_timestamp)
}

/// timestamptz + interval: months and days by the zone's calendar, time by the clock.
pub fn add_to_timestamptz(t: i64, v: &Interval, tz: &TimeZone) -> Result<i64> {
    if infinite(t) {
        return Ok(t);
    }
    let mut t = t;
    if v.months != 0 {
        t = calendar::local_to_utc(add_months(calendar::utc_to_local(t, tz).0, v.months)?, tz)?;
    }
    if v.days != 0 {
        t = calendar::local_to_utc(add_days(calendar::utc_to_local(t, tz).0, v.days)?, tz)?;
    }
    t.checked_add(v.micros)
        .ok_or_else(calendar::timestamp_out_of_range)
        .and_then(calendar::check_timestamp)
}

fn negated(v: &Interval) -> Result<Interval> {
    let n = || {
        Some(Interval {
            months: v.months.checked_neg()?,
            days: v.days.checked_neg()?,
            micros: v.micros.checked_neg()?,
        })
    };
    n().ok_or_else(interval_out_of_range)
}

/// date and time `+` and `-` that depend on no time zone
pub(super) fn plus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Date(d), Datum::Int4(n)] | [Datum::Int4(n), Datum::Date(d)] => {
            shift_date(*d, i64::from(*n))
        }
        [Datum::Date(d), Datum::Interval(v)] | [Datum::Interval(v), Datum::Date(d)] => {
            add_to_timestamp(dt::date_to_timestamp(*d)?, v).map(Datum::Timestamp)
        }
        [Datum::Date(d), Datum::Time(t)] | [Datum::Time(t), Datum::Date(d)] => {
            let day = dt::date_to_timestamp(*d)?;
            if infinite(day) {
                return Ok(Datum::Timestamp(day));
            }
            calendar::check_timestamp(day + t).map(Datum::Timestamp)
        }
        [Datum::Timestamp(t), Datum::Interval(v)] | [Datum::Interval(v), Datum::Timestamp(t)] => {
            add_to_timestamp(*t, v).map(Datum::Timestamp)
        }
        [Datum::Time(t), Datum::Interval(v)] | [Datum::Interval(v), Datum::Time(t)] => {
            Ok(Datum::Time((t + v.micros % DAY).rem_euclid(DAY)))
        }
        [Datum::Interval(x), Datum::Interval(y)] => add_intervals(x, y).map(interval),
        _ => Err(bad_args(a)),
    }
}

fn shift_date(d: i32, by: i64) -> Result<Datum> {
    if d == i32::MAX || d == i32::MIN {
        return Ok(Datum::Date(d));
    }
    let day = i64::from(d) + by;
    if !(calendar::DATE_MIN..calendar::DATE_END).contains(&day) {
        return Err(field_overflow("date out of range"));
    }
    Ok(Datum::Date(day as i32))
}

/// Time between two moments, in days and time.
fn between(x: i64, y: i64) -> Result<Datum> {
    if infinite(x) || infinite(y) {
        return Err(field_overflow("cannot subtract infinite timestamps"));
    }
    let micros = x.checked_sub(y).ok_or_else(interval_out_of_range)?;
    Ok(interval(Interval {
        months: 0,
        days: (micros / DAY) as i32,
        micros: micros % DAY,
    }))
}

/// `-` of dates, times and intervals
pub(super) fn minus(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Date(x), Datum::Date(y)] => {
            if [*x, *y].iter().any(|d| *d == i32::MAX || *d == i32::MIN) {
                return Err(field_overflow("cannot subtract infinite dates"));
            }
            Ok(Datum::Int4(x.wrapping_sub(*y)))
        }
        [Datum::Date(d), Datum::Int4(n)] => shift_date(*d, -i64::from(*n)),
        [Datum::Timestamp(x), Datum::Timestamp(y)]
        | [Datum::TimestampTz(x), Datum::TimestampTz(y)] => between(*x, *y),
        [Datum::Time(x), Datum::Time(y)] => Ok(interval(Interval {
            micros: x - y,
            ..Interval::default()
        })),
        [x, Datum::Interval(v)] => match x {
            Datum::Time(t) => Ok(Datum::Time((t - v.micros % DAY).rem_euclid(DAY))),
            _ => plus(&[x.clone(), interval(negated(v)?)]),
        },
        [Datum::Interval(v)] => negated(v).map(interval),
        _ => Err(bad_args(a)),
    }
}

/// timestamptz `+` interval
pub(super) fn plus_zoned(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::TimestampTz(t), Datum::Interval(v)]
        | [Datum::Interval(v), Datum::TimestampTz(t)] => {
            add_to_timestamptz(*t, v, cx.time_zone()).map(Datum::TimestampTz)
        }
        _ => Err(bad_args(a)),
    }
}

/// timestamptz `-` interval
pub(super) fn minus_zoned(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::TimestampTz(t), Datum::Interval(v)] => {
            add_to_timestamptz(*t, &negated(v)?, cx.time_zone()).map(Datum::TimestampTz)
        }
        _ => Err(bad_args(a)),
    }
}

/// interval `*` number
pub(super) fn interval_mul(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Interval(v), Datum::Float8(f)] | [Datum::Float8(f), Datum::Interval(v)] => {
            scale_interval(v, *f).map(interval)
        }
        _ => Err(bad_args(a)),
    }
}

/// interval `/` number
pub(super) fn interval_div(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Interval(_), Datum::Float8(f)] if *f == 0.0 => Err(division_by_zero()),
        [Datum::Interval(v), Datum::Float8(f)] => divide_interval(v, *f).map(interval),
        _ => Err(bad_args(a)),
    }
}

pub(super) fn zone(name: &str) -> Result<TimeZone> {
    calendar::zone_by_name(name).ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("time zone \"{name}\" not recognized"),
        )
    })
}

/// Difference in years, months, days and time, by the calendar.
fn calendar_difference(x: i64, y: i64) -> Interval {
    let negative = x < y;
    let (hi, lo) = if negative { (y, x) } else { (x, y) };
    let (p, q) = (calendar::parts(hi), calendar::parts(lo));
    let (mut years, mut months, mut days, mut time) = (
        p.year - q.year,
        p.month - q.month,
        p.day - q.day,
        p.time - q.time,
    );
    if time < 0 {
        time += DAY;
        days -= 1;
    }
    // Days are borrowed from the month of the earlier moment.
    let borrow = calendar::month_days(q.year, q.month);
    while days < 0 {
        days += borrow;
        months -= 1;
    }
    while months < 0 {
        months += 12;
        years -= 1;
    }
    let sign = if negative { -1 } else { 1 };
    Interval {
        months: (sign * (years * 12 + months)) as i32,
        days: (sign * days) as i32,
        micros: sign * time,
    }
}

/// `age`
pub(super) fn age(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let tz = cx.time_zone();
    // With one argument: from today's midnight.
    let today = || -> Result<i64> {
        let (now, _) = calendar::utc_to_local(cx.transaction_time()?, tz);
        Ok(now.div_euclid(DAY) * DAY)
    };
    let (x, y) = match a {
        [Datum::Timestamp(x), Datum::Timestamp(y)] => (*x, *y),
        [Datum::TimestampTz(x), Datum::TimestampTz(y)] => {
            (dt::to_local(*x, tz), dt::to_local(*y, tz))
        }
        [Datum::Timestamp(y)] => (today()?, *y),
        [Datum::TimestampTz(y)] => (today()?, dt::to_local(*y, tz)),
        _ => return Err(bad_args(a)),
    };
    // The end of all times is a moment to PostgreSQL 15 here, the beginning is none.
    if x == i64::MIN || y == i64::MIN {
        return Err(field_overflow("timestamp out of range"));
    }
    Ok(interval(calendar_difference(x, y)))
}

/// `make_date`
pub(super) fn make_date(a: &[Datum]) -> Result<Datum> {
    let (y, m, d) = (
        i64::from(a[0].as_i32()?),
        i64::from(a[1].as_i32()?),
        i64::from(a[2].as_i32()?),
    );
    valid_date(y, m, d)
        .map(|d| Datum::Date(d as i32))
        .ok_or_else(|| field_overflow(&format!("date field value out of range: {y}-{m:02}-{d:02}")))
}

fn valid_date(y: i64, m: i64, d: i64) -> Option<i64> {
    // Negative years are BC.
    let year = match y {
        0 => return None,
        i64::MIN..0 => y + 1,
        _ => y,
    };
    if !(1..=12).contains(&m) || d < 1 || d > calendar::month_days(year, m) {
        return None;
    }
    Some(calendar::days_from_civil(year, m, d))
        .filter(|d| (calendar::DATE_MIN..calendar::DATE_END).contains(d))
}

fn clock(h: i32, m: i32, s: f64) -> Result<i64> {
    let bad = || field_overflow(&format!("time field value out of range: {h}:{m:02}:{s}"));
    if !(0..=24).contains(&h)
        || !(0..=59).contains(&m)
        || !(0.0..=60.0).contains(&s)
        || (h == 24 && (m > 0 || s > 0.0))
    {
        return Err(bad());
    }
    Ok(i64::from(h) * HOUR + i64::from(m) * MINUTE + (s * 1e6).round_ties_even() as i64)
}

/// `make_time`
pub(super) fn make_time(a: &[Datum]) -> Result<Datum> {
    clock(a[0].as_i32()?, a[1].as_i32()?, a[2].as_f64()?).map(Datum::Time)
}

fn made_timestamp(a: &[Datum]) -> Result<i64> {
    let (y, m, d) = (
        i64::from(a[0].as_i32()?),
        i64::from(a[1].as_i32()?),
        i64::from(a[2].as_i32()?),
    );
    let day = valid_date(y, m, d).ok_or_else(|| {
        field_overflow(&format!("date field value out of range: {y}-{m:02}-{d:02}"))
    })?;
    calendar::combine(day, clock(a[3].as_i32()?, a[4].as_i32()?, a[5].as_f64()?)?)
}

/// `make_timestamp`
pub(super) fn make_timestamp(a: &[Datum]) -> Result<Datum> {
    made_timestamp(a).map(Datum::Timestamp)
}

/// `make_timestamptz`
pub(super) fn make_timestamptz(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let local = made_timestamp(a)?;
    match a.get(6) {
        Some(z) => calendar::local_to_utc(local, &fields::zone_or_offset(z.as_str()?)?),
        None => calendar::local_to_utc(local, cx.time_zone()),
    }
    .map(Datum::TimestampTz)
}

/// `make_interval(years, months, weeks, days, hours, mins, secs)`, each with default 0
pub(super) fn make_interval(a: &[Datum]) -> Result<Datum> {
    let n = |i: usize| a.get(i).map_or(Ok(0), Datum::as_i32);
    let seconds = a.get(6).map_or(Ok(0.0), Datum::as_f64)?;
    if !seconds.is_finite() {
        return Err(interval_out_of_range());
    }
    let build = |y: i32, mo: i32, w: i32, d: i32, h: i32, mi: i32| {
        let micros = i64::from(h) * HOUR + i64::from(mi) * MINUTE;
        Some(Interval {
            months: y.checked_mul(12)?.checked_add(mo)?,
            days: w.checked_mul(7)?.checked_add(d)?,
            micros: micros.checked_add((seconds * 1e6).round_ties_even() as i64)?,
        })
    };
    build(n(0)?, n(1)?, n(2)?, n(3)?, n(4)?, n(5)?)
        .map(interval)
        .ok_or_else(interval_out_of_range)
}

/// `justify_hours`
pub(super) fn justify_hours(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_interval()?;
    let mut days = i64::from(v.days) + v.micros / DAY;
    let mut micros = v.micros % DAY;
    if days > 0 && micros < 0 {
        micros += DAY;
        days -= 1;
    } else if days < 0 && micros > 0 {
        micros -= DAY;
        days += 1;
    }
    i32::try_from(days)
        .map(|days| interval(Interval { days, micros, ..v }))
        .map_err(|_| interval_out_of_range())
}

/// `justify_days`
pub(super) fn justify_days(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_interval()?;
    let mut months = i64::from(v.months) + i64::from(v.days / 30);
    let mut days = v.days % 30;
    if months > 0 && days < 0 {
        days += 30;
        months -= 1;
    } else if months < 0 && days > 0 {
        days -= 30;
        months += 1;
    }
    i32::try_from(months)
        .map(|months| interval(Interval { months, days, ..v }))
        .map_err(|_| interval_out_of_range())
}

/// `justify_interval`
pub(super) fn justify_interval(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_interval()?;
    let mut days = i64::from(v.days) + v.micros / DAY;
    let mut micros = v.micros % DAY;
    let mut months = i64::from(v.months) + days / 30;
    days %= 30;
    if months > 0 && (days < 0 || (days == 0 && micros < 0)) {
        days += 30;
        months -= 1;
    } else if months < 0 && (days > 0 || (days == 0 && micros > 0)) {
        days -= 30;
        months += 1;
    }
    if days > 0 && micros < 0 {
        micros += DAY;
        days -= 1;
    } else if days < 0 && micros > 0 {
        micros -= DAY;
        days += 1;
    }
    i32::try_from(months)
        .map(|months| {
            interval(Interval {
                months,
                days: days as i32,
                micros,
            })
        })
        .map_err(|_| interval_out_of_range())
}

fn shifted(t: i64, seconds: i64) -> Result<i64> {
    t.checked_add(seconds * SECOND)
        .ok_or_else(calendar::timestamp_out_of_range)
        .and_then(calendar::check_timestamp)
}

/// The moment behind a zone, in a zone that is so many seconds east of UTC.
fn by_offset(east: i64, a: &[Datum]) -> Result<Datum> {
    match &a[1] {
        Datum::Timestamp(t) => shifted(*t, -east).map(Datum::TimestampTz),
        Datum::TimestampTz(t) => shifted(*t, east).map(Datum::Timestamp),
        _ => Err(bad_args(a)),
    }
}

/// `timezone(zone, moment)`, the function behind AT TIME ZONE
pub(super) fn timezone(a: &[Datum]) -> Result<Datum> {
    // An infinite moment is one everywhere.
    match &a[1] {
        Datum::Timestamp(t) if infinite(*t) => return Ok(Datum::TimestampTz(*t)),
        Datum::TimestampTz(t) if infinite(*t) => return Ok(Datum::Timestamp(*t)),
        _ => {}
    }
    let tz = match &a[0] {
        Datum::Text(name) => {
            if let Some(Abbreviation::Of(zone)) = abbreviation(name.trim())
                && let Ok(zone) = TimeZone::get(zone)
            {
                let word = name.trim();
                return match &a[1] {
                    Datum::Timestamp(t) => {
                        shifted(*t, -dt::input::abbreviated_offset(*t, word, &zone))
                            .map(Datum::TimestampTz)
                    }
                    Datum::TimestampTz(t) => {
                        let offset = offset_of(word, &zone, *t);
                        let offset = offset.unwrap_or_else(|| calendar::offset_at(*t, &zone));
                        shifted(*t, offset).map(Datum::Timestamp)
                    }
                    _ => Err(bad_args(a)),
                };
            }
            match zone(name) {
                Ok(zone) => zone,
                // More hours than a day has.
                Err(error) => {
                    let east = calendar::posix_zone(name).ok_or(error)?;
                    return by_offset(east, a);
                }
            }
        }
        Datum::Interval(v) => {
            if v.months != 0 || v.days != 0 {
                let mut text = Vec::new();
                dt::write_interval(v, &mut text);
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    format!(
                        "interval time zone \"{}\" must not include months or days",
                        String::from_utf8_lossy(&text)
                    ),
                ));
            }
            // Any number of hours, more than a time zone can have.
            return by_offset(v.micros / SECOND, a);
        }
        _ => return Err(bad_args(a)),
    };
    match &a[1] {
        Datum::Timestamp(t) => dt::to_utc(*t, &tz).map(Datum::TimestampTz),
        Datum::TimestampTz(t) => Ok(Datum::Timestamp(dt::to_local(*t, &tz))),
        _ => Err(bad_args(a)),
    }
}

/// `isfinite`
pub(super) fn isfinite(a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(match &a[0] {
        Datum::Date(d) => *d != i32::MIN && *d != i32::MAX,
        Datum::Timestamp(t) | Datum::TimestampTz(t) => !infinite(*t),
        _ => true,
    }))
}

/// `to_timestamp(seconds since 1970)`
pub(super) fn to_timestamp(a: &[Datum]) -> Result<Datum> {
    let s = a[0].as_f64()?;
    if s.is_nan() {
        return Err(field_overflow("timestamp cannot be NaN"));
    }
    if s.is_infinite() {
        return Ok(Datum::TimestampTz(if s < 0.0 {
            i64::MIN
        } else {
            i64::MAX
        }));
    }
    let micros = ((s + (calendar::UNIX_EPOCH_DAY * 86_400) as f64) * 1e6).round_ties_even();
    if micros < calendar::TIMESTAMP_MIN as f64 || micros >= calendar::TIMESTAMP_END as f64 {
        return Err(field_overflow(&format!("timestamp out of range: \"{s}\"")));
    }
    Ok(Datum::TimestampTz(micros as i64))
}

/// `date_bin(stride, moment, origin)`
pub(super) fn date_bin(a: &[Datum]) -> Result<Datum> {
    let v = a[0].as_interval()?;
    if v.months != 0 {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "timestamps cannot be binned into intervals containing months or years",
        ));
    }
    let stride = i64::from(v.days)
        .checked_mul(DAY)
        .and_then(|d| d.checked_add(v.micros))
        .ok_or_else(interval_out_of_range)?;
    if stride <= 0 {
        return Err(field_overflow("stride must be greater than zero"));
    }
    let bin = |t: i64, o: i64| -> Result<i64> {
        if infinite(t) {
            return Ok(t);
        }
        if infinite(o) {
            return Err(field_overflow("origin out of range"));
        }
        let strides = t.checked_sub(o).map(|d| d.div_euclid(stride));
        let strides = strides.ok_or_else(interval_out_of_range)?;
        let begins = strides.checked_mul(stride).and_then(|d| d.checked_add(o));
        calendar::check_timestamp(begins.ok_or_else(calendar::timestamp_out_of_range)?)
    };
    match (&a[1], &a[2]) {
        (Datum::Timestamp(t), Datum::Timestamp(o)) => bin(*t, *o).map(Datum::Timestamp),
        (Datum::TimestampTz(t), Datum::TimestampTz(o)) => bin(*t, *o).map(Datum::TimestampTz),
        _ => Err(bad_args(a)),
    }
}

/// `now`, `transaction_timestamp`, CURRENT_TIMESTAMP (with an optional precision)
pub(super) fn now(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(rounded(cx.transaction_time()?, a)?))
}

fn rounded(t: i64, a: &[Datum]) -> Result<i64> {
    Ok(match a.first() {
        Some(p) => dt::round_micros(t, p.as_i32()?.clamp(0, 6)),
        None => t,
    })
}

/// `statement_timestamp`
pub(super) fn statement_timestamp(cx: &dyn DateTimeContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(cx.statement_time()?))
}

/// `clock_timestamp`
pub(super) fn clock_timestamp(cx: &dyn DateTimeContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::TimestampTz(cx.clock_time()?))
}

/// CURRENT_DATE
pub(super) fn current_date(cx: &dyn DateTimeContext, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Date(dt::timestamp_to_date(dt::to_local(
        cx.transaction_time()?,
        cx.time_zone(),
    ))))
}

/// LOCALTIME (with an optional precision)
pub(super) fn local_time(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Time(rounded(
        dt::to_local(cx.transaction_time()?, cx.time_zone()).rem_euclid(DAY),
        a,
    )?))
}

/// LOCALTIMESTAMP (with an optional precision)
pub(super) fn local_timestamp(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    Ok(Datum::Timestamp(rounded(
        dt::to_local(cx.transaction_time()?, cx.time_zone()),
        a,
    )?))
}
