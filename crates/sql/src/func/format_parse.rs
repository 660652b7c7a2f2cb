//! `to_date` and `to_timestamp`: reading text by a picture.

use super::{DAYS, Field, MONTHS, Piece, ROMAN, pieces};
use crate::error::{Result, SqlError};
use crate::func::Context;
use crate::func::numbers::bad_args;
use crate::value::Datum;
use crate::value::calendar::{self, HOUR, MINUTE, SECOND};
use logstead_types::SqlState;

#[derive(Default)]
struct Read {
    year: Option<i64>,
    iso_year: Option<i64>,
    month: Option<i64>,
    day: Option<i64>,
    day_of_year: Option<i64>,
    iso_week: Option<i64>,
    iso_day: Option<i64>,
    week: Option<i64>,
    julian: Option<i64>,
    hour: i64,
    half: Option<bool>,
    twelve: bool,
    minute: i64,
    second: i64,
    micros: i64,
    seconds_of_day: Option<i64>,
    bc: bool,
    offset: Option<i64>,
    offset_minutes: i64,
}

fn format_error(text: String) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, text)
}

fn key_name(f: Field) -> &'static str {
    match f {
        Field::Hour12 => "HH12",
        Field::Hour24 => "HH24",
        Field::Minute => "MI",
        Field::Second => "SS",
        Field::Millis => "MS",
        Field::Micros => "US",
        Field::Fraction(_) => "FF",
        Field::SecondsOfDay => "SSSS",
        Field::YearComma => "Y,YYY",
        Field::Year(4) => "YYYY",
        Field::Year(3) => "YYY",
        Field::Year(2) => "YY",
        Field::Year(_) => "Y",
        Field::IsoYear(4) => "IYYY",
        Field::IsoYear(_) => "IY",
        Field::Month => "MM",
        Field::Day => "DD",
        Field::DayOfYear => "DDD",
        Field::IsoWeek => "IW",
        Field::WeekOfYear => "WW",
        Field::Julian => "J",
        _ => "field",
    }
}

/// Reads up to `most` digits (any number of them for 0), with an optional sign.
fn digits(rest: &mut &str, most: usize, f: Field) -> Result<(i64, usize)> {
    let t = rest.trim_start();
    let signed = usize::from(t.starts_with(['+', '-']));
    let limit = if most == 0 { usize::MAX } else { most };
    let n = t[signed..]
        .bytes()
        .take(limit)
        .take_while(u8::is_ascii_digit)
        .count();
    let shown: String = t.chars().take(if most == 0 { 10 } else { most }).collect();
    if n == 0 {
        if t.is_empty() {
            return Err(format_error(format!(
                "source string too short for \"{}\" formatting field",
                key_name(f)
            )));
        }
        return Err(
            format_error(format!("invalid value \"{shown}\" for \"{}\"", key_name(f)))
                .detail("Value must be an integer."),
        );
    }
    let v: i64 = t[..signed + n].parse().map_err(|_| {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!(
                "value for \"{}\" in source string is out of range",
                key_name(f)
            ),
        )
    })?;
    *rest = &t[signed + n..];
    Ok((v, n))
}

fn named(rest: &mut &str, names: &[&str], short: bool, what: &str) -> Result<i64> {
    let t = rest.trim_start();
    for (i, full) in names.iter().enumerate() {
        let name = if short {
            &full[..3.min(full.len())]
        } else {
            full
        };
        if t.get(..name.len())
            .is_some_and(|p| p.eq_ignore_ascii_case(name))
        {
            *rest = &t[name.len()..];
            return Ok(i as i64);
        }
    }
    let shown: String = t.chars().take_while(|c| !c.is_whitespace()).collect();
    Err(
        format_error(format!("invalid value \"{shown}\" for \"{what}\""))
            .detail("The given value did not match any of the allowed values for this field."),
    )
}

fn full_year(v: i64, digits_read: usize, wanted: u8) -> i64 {
    match (wanted, digits_read) {
        (4, _) | (_, 4..) => v,
        // The century nearest to 2020.
        (2 | 1, ..=2) => {
            if v < 70 {
                v + 2000
            } else {
                v + 1900
            }
        }
        _ => {
            if v < 520 {
                v + 2000
            } else {
                v + 1000
            }
        }
    }
}

fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation() || c.is_whitespace()
}

fn read(text: &str, picture: &str) -> Result<Read> {
    let parts = pieces(picture);
    let mut r = Read::default();
    let mut rest = text;
    for (i, piece) in parts.iter().enumerate() {
        let (field, fill) = match piece {
            Piece::Field { field, fill, .. } => (*field, *fill),
            Piece::Text(t) => {
                // Separators match any separators; other characters one character each.
                for c in t.chars() {
                    if is_separator(c) {
                        let start = rest.chars().next();
                        if start.is_some_and(is_separator) {
                            let keep_sign = start == Some('-') && c.is_whitespace();
                            if !keep_sign {
                                rest = &rest[start.map_or(0, char::len_utf8)..];
                            }
                        }
                        rest = rest.trim_start();
                    } else if let Some(x) = rest.chars().next() {
                        rest = &rest[x.len_utf8()..];
                    }
                }
                continue;
            }
        };
        // A field that touches the next one takes its exact width; otherwise all digits.
        let next_digits = matches!(parts.get(i + 1), Some(Piece::Field { .. }));
        let width = |w: usize| {
            if fill || !next_digits {
                if w == 4 { 0 } else { w }
            } else {
                w
            }
        };
        if rest.trim().is_empty() {
            break;
        }
        match field {
            Field::Hour12 => {
                r.hour = digits(&mut rest, width(2), field)?.0;
                r.twelve = true;
            }
            Field::Hour24 => r.hour = digits(&mut rest, width(2), field)?.0,
            Field::Minute => r.minute = digits(&mut rest, width(2), field)?.0,
            Field::Second => r.second = digits(&mut rest, width(2), field)?.0,
            Field::Millis | Field::Micros | Field::Fraction(_) => {
                let w = match field {
                    Field::Millis => 3,
                    Field::Fraction(n) => usize::from(n),
                    _ => 6,
                };
                let (v, n) = digits(&mut rest, w, field)?;
                r.micros += v * 10i64.pow(6u32.saturating_sub(n as u32));
            }
            Field::SecondsOfDay => r.seconds_of_day = Some(digits(&mut rest, width(5), field)?.0),
            Field::Meridiem { .. } => {
                let t = rest.trim_start();
                let pm = t.starts_with(['p', 'P']);
                let len = if t.get(1..2) == Some(".") { 4 } else { 2 };
                if !pm && !t.starts_with(['a', 'A']) {
                    let shown: String = t.chars().take(2).collect();
                    return Err(format_error(format!("invalid value \"{shown}\" for \"AM\""))
                        .detail("The given value did not match any of the allowed values for this field."));
                }
                r.half = Some(pm);
                rest = t.get(len..).unwrap_or("");
            }
            Field::YearComma => {
                let (thousands, _) = digits(&mut rest, 0, field)?;
                rest = rest.strip_prefix(',').unwrap_or(rest);
                let (ones, _) = digits(&mut rest, 3, field)?;
                r.year = Some(thousands * 1000 + ones);
            }
            Field::Year(n) => {
                let (v, d) = digits(
                    &mut rest,
                    if n == 4 { width(4) } else { usize::from(n) },
                    field,
                )?;
                r.year = Some(full_year(v, d, n));
            }
            Field::IsoYear(n) => {
                let (v, d) = digits(
                    &mut rest,
                    if n == 4 { width(4) } else { usize::from(n) },
                    field,
                )?;
                r.iso_year = Some(full_year(v, d, n));
            }
            Field::Era { .. } => {
                let t = rest.trim_start();
                r.bc = t.starts_with(['b', 'B']);
                let len = if t.get(1..2) == Some(".") { 4 } else { 2 };
                rest = t.get(len..).unwrap_or("");
            }
            Field::MonthName(_) => {
                r.month = Some(
                    named(&mut rest, &MONTHS, false, "MONTH")
                        .or_else(|e| named(&mut rest, &MONTHS, true, "MONTH").map_err(|_| e))?
                        + 1,
                );
            }
            Field::MonthShort(_) => r.month = Some(named(&mut rest, &MONTHS, true, "MON")? + 1),
            Field::Month => r.month = Some(digits(&mut rest, width(2), field)?.0),
            Field::DayName(_) => {
                named(&mut rest, &DAYS, false, "DAY")?;
            }
            Field::DayShort(_) => {
                named(&mut rest, &DAYS, true, "DY")?;
            }
            Field::DayOfYear => r.day_of_year = Some(digits(&mut rest, width(3), field)?.0),
            Field::IsoDayOfYear => {
                let v = digits(&mut rest, width(3), field)?.0;
                (r.iso_week, r.iso_day) = (Some((v - 1) / 7 + 1), Some((v - 1) % 7 + 1));
            }
            Field::Day => r.day = Some(digits(&mut rest, width(2), field)?.0),
            Field::DayOfWeek => {
                digits(&mut rest, 1, field)?;
            }
            Field::IsoDayOfWeek => r.iso_day = Some(digits(&mut rest, 1, field)?.0),
            Field::WeekOfMonth => {
                let w = digits(&mut rest, 1, field)?.0;
                r.day = Some((w - 1) * 7 + 1);
            }
            Field::WeekOfYear => r.week = Some(digits(&mut rest, width(2), field)?.0),
            Field::IsoWeek => r.iso_week = Some(digits(&mut rest, width(2), field)?.0),
            Field::Century => {
                let c = digits(&mut rest, width(2), field)?.0;
                if r.year.is_none() {
                    r.year = Some((c - 1) * 100 + 1);
                }
            }
            Field::Julian => r.julian = Some(digits(&mut rest, 0, field)?.0),
            Field::Quarter => {
                digits(&mut rest, 1, field)?;
            }
            Field::Roman { .. } => {
                // Longer numerals first: VIII before VII before VI.
                let t = rest.trim_start();
                let mut best: Option<(usize, usize)> = None;
                for (i, n) in ROMAN.iter().enumerate() {
                    if t.get(..n.len()).is_some_and(|p| p.eq_ignore_ascii_case(n))
                        && best.is_none_or(|(_, l)| n.len() > l)
                    {
                        best = Some((i, n.len()));
                    }
                }
                let (i, len) =
                    best.ok_or_else(|| format_error(format!("invalid value \"{t}\" for \"RM\"")))?;
                r.month = Some(i as i64 + 1);
                rest = &t[len..];
            }
            Field::ZoneHours => {
                let negative = rest.trim_start().starts_with('-');
                let v = digits(&mut rest, 2, field)?.0;
                r.offset = Some(v * 3600);
                if negative && v == 0 {
                    r.offset_minutes = -1;
                }
            }
            Field::ZoneMinutes => {
                let v = digits(&mut rest, 2, field)?.0 * 60;
                let hours = r.offset.unwrap_or(0);
                r.offset = Some(if hours < 0 || r.offset_minutes < 0 {
                    hours - v
                } else {
                    hours + v
                });
            }
            Field::Zone { .. } | Field::Offset => {
                return Err(SqlError::new(
                    SqlState::FEATURE_NOT_SUPPORTED,
                    "formatting field \"TZ\" is only supported in to_char",
                ));
            }
        }
    }
    Ok(r)
}

impl Read {
    fn out_of_range(text: &str) -> SqlError {
        SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date/time field value out of range: \"{text}\""),
        )
    }

    fn day_number(&self, text: &str) -> Result<i64> {
        let bad = || Self::out_of_range(text);
        if let Some(j) = self.julian {
            return Ok(j - calendar::EPOCH_JULIAN);
        }
        if let (Some(y), Some(w)) = (self.iso_year, self.iso_week) {
            return Ok(calendar::iso_week_start(y, w) + self.iso_day.unwrap_or(1) - 1);
        }
        let mut year = self
            .year
            .or(self.iso_year)
            .unwrap_or(if self.bc { 1 } else { 0 });
        if self.bc {
            year = 1 - year;
        } else if year == 0 {
            // A year left out is 1 BC, as in PostgreSQL.
            year = 0;
        } else if year < 0 {
            year += 1;
        }
        if let Some(d) = self.day_of_year {
            if !(1..=365 + i64::from(calendar::is_leap(year))).contains(&d) {
                return Err(bad());
            }
            return Ok(calendar::days_from_civil(year, 1, 1) + d - 1);
        }
        if let Some(w) = self.week {
            return Ok(calendar::days_from_civil(year, 1, 1) + (w - 1) * 7);
        }
        let (m, d) = (self.month.unwrap_or(1), self.day.unwrap_or(1));
        if !(1..=12).contains(&m)
            || !(1..=calendar::month_days(year, m)).contains(&d)
            || year.abs() > 6_000_000
        {
            return Err(bad());
        }
        Ok(calendar::days_from_civil(year, m, d))
    }

    fn time(&self, text: &str) -> Result<i64> {
        if let Some(s) = self.seconds_of_day {
            if !(0..86_400).contains(&s) {
                return Err(Self::out_of_range(text));
            }
            return Ok(s * SECOND + self.micros);
        }
        let mut hour = self.hour;
        if self.twelve && !(1..=12).contains(&hour) && self.hour != 0 {
            return Err(
                format_error(format!("hour \"{hour}\" is invalid for the 12-hour clock"))
                    .hint("Use the 24-hour clock, or give an hour between 1 and 12."),
            );
        }
        match self.half {
            Some(true) if hour < 12 => hour += 12,
            Some(false) if hour == 12 => hour = 0,
            _ => {}
        }
        if !(0..24).contains(&hour)
            || !(0..60).contains(&self.minute)
            || !(0..60).contains(&self.second)
        {
            return Err(Self::out_of_range(text));
        }
        Ok(hour * HOUR + self.minute * MINUTE + self.second * SECOND + self.micros)
    }
}

/// `to_date`
pub(in crate::func) fn to_date(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    let r = read(text, picture)?;
    let day = r.day_number(text)?;
    r.time(text)?;
    if !(calendar::DATE_MIN..calendar::DATE_END).contains(&day) {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: \"{text}\""),
        ));
    }
    Ok(Datum::Date(day as i32))
}

/// `to_timestamp(text, picture)`
pub(in crate::func) fn to_timestamp(cx: &dyn Context, a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    let r = read(text, picture)?;
    let local = calendar::combine(r.day_number(text)?, r.time(text)?)?;
    match r.offset {
        Some(o) => calendar::check_timestamp(local - o * SECOND),
        None => calendar::local_to_utc(local, cx.time_zone()),
    }
    .map(Datum::TimestampTz)
}
