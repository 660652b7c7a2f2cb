//! Fields of dates, times and intervals: `extract`, `date_part`, `date_trunc`.

use super::{infinite, interval, zone};
use crate::arithmetic::bad_args;
use jiff::tz::TimeZone;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::calendar::{self, DAY, HOUR, MINUTE, SECOND};
use logstead_sql_types::value::datetime as dt;
use logstead_sql_types::value::{Datum, Interval, Numeric};
use logstead_types::SqlState;

/// A named unit of time.
fn unit(name: &str) -> Option<&'static str> {
    let w = name.trim().to_ascii_lowercase();
    Some(match w.as_str() {
        "microsecond" | "microseconds" | "us" | "usec" | "usecs" | "usecond" | "useconds" => {
            "microseconds"
        }
        "millisecond" | "milliseconds" | "ms" | "msec" | "msecs" | "msecond" | "mseconds" => {
            "milliseconds"
        }
        "second" | "seconds" | "s" | "sec" | "secs" => "second",
        "minute" | "minutes" | "m" | "min" | "mins" => "minute",
        "hour" | "hours" | "h" | "hr" | "hrs" => "hour",
        "day" | "days" | "d" => "day",
        "week" | "weeks" | "w" => "week",
        "month" | "months" | "mon" | "mons" => "month",
        "quarter" | "qtr" => "quarter",
        "year" | "years" | "y" | "yr" | "yrs" => "year",
        "decade" | "decades" | "dec" | "decs" => "decade",
        "century" | "centuries" | "c" | "cent" => "century",
        "millennium" | "millennia" | "mil" | "mils" => "millennium",
        "epoch" => "epoch",
        "dow" => "dow",
        "isodow" => "isodow",
        "doy" => "doy",
        "isoyear" => "isoyear",
        "julian" => "julian",
        "timezone" => "timezone",
        "timezone_hour" | "timezone_h" => "timezone_hour",
        "timezone_minute" | "timezone_m" => "timezone_minute",
        _ => return None,
    })
}

fn unknown_unit(name: &str, ty: &str) -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        format!(
            "unit \"{}\" not recognized for type {ty}",
            name.to_ascii_lowercase()
        ),
    )
}

fn unsupported_unit(name: &str, ty: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!(
            "unit \"{}\" not supported for type {ty}",
            name.to_ascii_lowercase()
        ),
    )
}

const TS: &str = "timestamp without time zone";
const TSTZ: &str = "timestamp with time zone";

fn whole(v: i64) -> Numeric {
    Numeric::from(v)
}

fn micros(v: i64, scale: u16) -> Numeric {
    Numeric::new(i128::from(v), scale)
}

/// Fields of a time of day (or of an interval's rest).
fn time_field(u: &str, t: i64) -> Option<Numeric> {
    Some(match u {
        "microseconds" => whole(t % MINUTE),
        "milliseconds" => micros(t % MINUTE, 3),
        "second" => micros(t % MINUTE, 6),
        "minute" => whole(t / MINUTE % 60),
        "hour" => whole(t / HOUR),
        _ => return None,
    })
}

fn century(y: i64) -> i64 {
    if y > 0 {
        (y + 99) / 100
    } else {
        -((99 - (y - 1)) / 100)
    }
}

fn millennium(y: i64) -> i64 {
    if y > 0 {
        (y + 999) / 1000
    } else {
        -((999 - (y - 1)) / 1000)
    }
}

/// Year as people count: there is no year 0.
fn shown_year(y: i64) -> i64 {
    if y > 0 { y } else { y - 1 }
}

fn date_field(u: &str, days: i64) -> Option<Numeric> {
    let (y, m, d) = calendar::civil_from_days(days);
    Some(whole(match u {
        "day" => d,
        "month" => m,
        "quarter" => (m - 1) / 3 + 1,
        "week" => calendar::iso_week(days).1,
        "year" => shown_year(y),
        "isoyear" => shown_year(calendar::iso_week(days).0),
        "decade" => y.div_euclid(10),
        "century" => century(y),
        "millennium" => millennium(y),
        "dow" => calendar::weekday(days),
        "isodow" => (calendar::weekday(days) + 6) % 7 + 1,
        "doy" => calendar::day_of_year(days),
        _ => return None,
    }))
}

/// Fields of an infinite moment: those that grow are infinite, those that repeat are NULL.
fn infinite_field(u: &str, negative: bool) -> Option<Numeric> {
    match u {
        "year" | "isoyear" | "decade" | "century" | "millennium" | "julian" | "epoch" => {
            Some(if negative {
                Numeric::NegInfinity
            } else {
                Numeric::Infinity
            })
        }
        _ => None,
    }
}

fn julian(days: i64, time: i64) -> Result<Numeric> {
    let fraction = Numeric::from(time).div(&Numeric::from(DAY))?;
    Numeric::from(days + calendar::EPOCH_JULIAN).add(&fraction)
}

fn extract_field(tz: &TimeZone, name: &str, d: &Datum) -> Result<Option<Numeric>> {
    let find = |ty: &str| unit(name).ok_or_else(|| unknown_unit(name, ty));
    match d {
        Datum::Date(v) => {
            let u = find("date")?;
            if *v == i32::MIN || *v == i32::MAX {
                if matches!(
                    u,
                    "microseconds"
                        | "milliseconds"
                        | "second"
                        | "minute"
                        | "hour"
                        | "timezone"
                        | "timezone_hour"
                        | "timezone_minute"
                ) {
                    return Err(unsupported_unit(name, "date"));
                }
                return Ok(infinite_field(u, *v == i32::MIN));
            }
            let days = i64::from(*v);
            match u {
                "epoch" => Ok(Some(whole((days - calendar::UNIX_EPOCH_DAY) * 86_400))),
                "julian" => Ok(Some(whole(days + calendar::EPOCH_JULIAN))),
                _ => date_field(u, days)
                    .map(Some)
                    .ok_or_else(|| unsupported_unit(name, "date")),
            }
        }
        Datum::Time(t) => {
            let ty = "time without time zone";
            match find(ty)? {
                "epoch" => Ok(Some(micros(*t, 6))),
                u => time_field(u, *t)
                    .map(Some)
                    .ok_or_else(|| unsupported_unit(name, ty)),
            }
        }
        Datum::TimeTz(t) => {
            let ty = "time with time zone";
            let east = -i64::from(t.west);
            match find(ty)? {
                "epoch" => Ok(Some(micros(t.utc_micros(), 6))),
                "timezone" => Ok(Some(whole(east))),
                "timezone_hour" => Ok(Some(whole(east / 3600))),
                "timezone_minute" => Ok(Some(whole(east / 60 % 60))),
                u => time_field(u, t.micros)
                    .map(Some)
                    .ok_or_else(|| unsupported_unit(name, ty)),
            }
        }
        Datum::Timestamp(t) => {
            let u = find(TS)?;
            if infinite(*t) {
                return Ok(infinite_field(u, *t == i64::MIN));
            }
            moment_field(u, *t, *t)
                .transpose()
                .unwrap_or_else(|| Err(unsupported_unit(name, TS)))
                .map(Some)
        }
        Datum::TimestampTz(t) => {
            let u = find(TSTZ)?;
            if infinite(*t) {
                return Ok(infinite_field(u, *t == i64::MIN));
            }
            let (local, offset) = calendar::utc_to_local(*t, tz);
            match u {
                "timezone" => Ok(Some(whole(offset))),
                "timezone_hour" => Ok(Some(whole(offset / 3600))),
                "timezone_minute" => Ok(Some(whole(offset / 60 % 60))),
                _ => moment_field(u, local, *t)
                    .transpose()
                    .unwrap_or_else(|| Err(unsupported_unit(name, TSTZ)))
                    .map(Some),
            }
        }
        Datum::Interval(v) => {
            let ty = "interval";
            let u = find(ty)?;
            let years = i64::from(v.months / 12);
            let r = match u {
                "day" => whole(i64::from(v.days)),
                "month" => whole(i64::from(v.months % 12)),
                "quarter" => whole(i64::from(v.months % 12 / 3 + 1)),
                "year" => whole(years),
                "decade" => whole(years / 10),
                "century" => whole(years / 100),
                "millennium" => whole(years / 1000),
                "epoch" => {
                    let quarter_days = 1461 * i128::from(v.months / 12)
                        + 120 * i128::from(v.months % 12)
                        + 4 * i128::from(v.days);
                    Numeric::new(quarter_days * 21_600 * 1_000_000 + i128::from(v.micros), 6)
                }
                _ => time_field(u, v.micros).ok_or_else(|| unsupported_unit(name, ty))?,
            };
            Ok(Some(r))
        }
        _ => Err(bad_args(std::slice::from_ref(d))),
    }
}

fn moment_field(u: &str, local: i64, utc: i64) -> Result<Option<Numeric>> {
    let (days, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
    Ok(match u {
        "epoch" => Some(Numeric::new(
            i128::from(utc) - i128::from(calendar::UNIX_EPOCH_DAY) * i128::from(DAY),
            6,
        )),
        "julian" => Some(julian(days, time)?),
        _ => time_field(u, time).or_else(|| date_field(u, days)),
    })
}

/// `extract`: numeric
pub(crate) fn extract(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let [name, d] = a else {
        return Err(bad_args(a));
    };
    Ok(extract_field(cx.time_zone(), name.as_str()?, d)?.map_or(Datum::Null, Datum::numeric))
}

/// `date_part`: double precision
pub(crate) fn date_part(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let [name, d] = a else {
        return Err(bad_args(a));
    };
    if let (Datum::Interval(v), Some("epoch")) = (d, unit(name.as_str()?)) {
        // Summed in PostgreSQL's order: the last digit shows it.
        let mut seconds = v.micros as f64 / 1e6;
        seconds += 365.25 * 86_400.0 * f64::from(v.months / 12);
        seconds += 30.0 * 86_400.0 * f64::from(v.months % 12);
        seconds += 86_400.0 * f64::from(v.days);
        return Ok(Datum::Float8(seconds));
    }
    // date_part of a date is that of its midnight.
    let moment = match d {
        Datum::Date(v) => Datum::Timestamp(dt::date_to_timestamp(*v)?),
        other => other.clone(),
    };
    Ok(extract_field(cx.time_zone(), name.as_str()?, &moment)?
        .map_or(Datum::Null, |n| Datum::Float8(n.to_f64())))
}

/// Units that truncation knows; the others are names of fields only.
fn trunc_unit(name: &str) -> Option<&'static str> {
    unit(name).filter(|u| {
        !matches!(
            *u,
            "epoch" | "dow" | "isodow" | "doy" | "isoyear" | "julian"
        )
    })
}

fn trunc_local(u: &str, t: i64) -> Result<Option<i64>> {
    let unit = match u {
        "microseconds" => return Ok(Some(t)),
        "milliseconds" => 1000,
        "second" => SECOND,
        "minute" => MINUTE,
        "hour" => HOUR,
        "day" => DAY,
        _ => 0,
    };
    if unit > 0 {
        return Ok(Some(t.div_euclid(unit) * unit));
    }
    let days = t.div_euclid(DAY);
    let (y, m, _) = calendar::civil_from_days(days);
    let first = match u {
        "week" => days - (calendar::weekday(days) + 6) % 7,
        "month" => calendar::days_from_civil(y, m, 1),
        "quarter" => calendar::days_from_civil(y, (m - 1) / 3 * 3 + 1, 1),
        "year" => calendar::days_from_civil(y, 1, 1),
        "decade" => calendar::days_from_civil(y.div_euclid(10) * 10, 1, 1),
        "century" => calendar::days_from_civil((y - 1).div_euclid(100) * 100 + 1, 1, 1),
        "millennium" => calendar::days_from_civil((y - 1).div_euclid(1000) * 1000 + 1, 1, 1),
        _ => return Ok(None),
    };
    calendar::combine(first, 0).map(Some)
}

/// `date_trunc`
pub(crate) fn date_trunc(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let name = a[0].as_str()?;
    match &a[1] {
        Datum::Timestamp(t) => {
            if infinite(*t) {
                return Ok(a[1].clone());
            }
            let u = trunc_unit(name).ok_or_else(|| unknown_unit(name, TS))?;
            trunc_local(u, *t)?
                .map(Datum::Timestamp)
                .ok_or_else(|| unsupported_unit(name, TS))
        }
        Datum::TimestampTz(t) => {
            if infinite(*t) {
                return Ok(a[1].clone());
            }
            let u = trunc_unit(name).ok_or_else(|| unknown_unit(name, TSTZ))?;
            let given = match a.get(2) {
                Some(z) => Some(zone(z.as_str()?)?),
                None => None,
            };
            let tz = given.as_ref().unwrap_or(cx.time_zone());
            let (local, offset) = calendar::utc_to_local(*t, tz);
            let cut = trunc_local(u, local)?.ok_or_else(|| unsupported_unit(name, TSTZ))?;
            // Within the day the offset is the moment's own; days begin by the calendar.
            if matches!(
                u,
                "microseconds" | "milliseconds" | "second" | "minute" | "hour"
            ) {
                return Ok(Datum::TimestampTz(cut - offset * SECOND));
            }
            calendar::local_to_utc(cut, tz).map(Datum::TimestampTz)
        }
        Datum::Interval(v) => {
            let u = trunc_unit(name).ok_or_else(|| unknown_unit(name, "interval"))?;
            let cut = |n: i32| Interval {
                months: v.months / n * n,
                days: 0,
                micros: 0,
            };
            let time = |n: i64| Interval {
                micros: v.micros / n * n,
                ..**v
            };
            Ok(interval(match u {
                "microseconds" => **v,
                "milliseconds" => time(1000),
                "second" => time(SECOND),
                "minute" => time(MINUTE),
                "hour" => time(HOUR),
                "day" => Interval { micros: 0, ..**v },
                "month" => cut(1),
                "quarter" => cut(3),
                "year" => cut(12),
                "decade" => cut(120),
                "century" => cut(1200),
                "millennium" => cut(12_000),
                "week" => {
                    return Err(unsupported_unit(name, "interval")
                        .detail("Months usually have fractional weeks."));
                }
                _ => return Err(unsupported_unit(name, "interval")),
            }))
        }
        _ => Err(bad_args(a)),
    }
}

/// Zone names, and numeric offsets in the ISO sense (positive is east).
pub(super) fn zone_or_offset(name: &str) -> Result<TimeZone> {
    let invalid = |message| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message);
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        let message = format!("invalid input syntax for type numeric time zone: \"{name}\"");
        let hint = "Numeric time zones must have \"-\" or \"+\" as first character.";
        return Err(invalid(message).hint(hint));
    }
    let hours = name.strip_prefix(['+', '-']).map(|rest| {
        let digits = rest.split(':').next().unwrap_or_default();
        digits
            .get(..digits.len().min(2))
            .and_then(|h| h.parse::<u32>().ok())
    });
    if hours.flatten().is_some_and(|hours| hours > 15) {
        return Err(invalid(format!(
            "numeric time zone \"{name}\" out of range"
        )));
    }
    match numeric_offset(name).and_then(calendar::fixed_zone) {
        Some(z) => Ok(z),
        None => zone(name),
    }
}

/// Seconds east of UTC of a sign and numbers, of which those that are missing are 0: `+1`, `+1:`, `+0130`, `-10:00:1`.
fn numeric_offset(name: &str) -> Option<i64> {
    let sign = match name.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let body = name.get(1..)?;
    let number = |part: &str| match part {
        "" => Some(0),
        part => calendar::parse_digits(part),
    };
    let parts: Vec<i64> = body.split(':').map(number).collect::<Option<_>>()?;
    let (hours, minutes, seconds) = match parts.as_slice() {
        [all] if body.len() > 2 => (all / 100, all % 100, 0),
        [hours] => (*hours, 0, 0),
        [hours, minutes] => (*hours, *minutes, 0),
        [hours, minutes, seconds] => (*hours, *minutes, *seconds),
        _ => return None,
    };
    let fits = !body.is_empty() && hours <= 15 && minutes <= 59 && seconds <= 59;
    fits.then_some(sign * (hours * 3600 + minutes * 60 + seconds))
}
