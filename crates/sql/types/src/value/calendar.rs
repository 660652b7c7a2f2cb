//! Calendar arithmetic over PostgreSQL's whole range (4713 BC to 294276 AD, dates to 5874897 AD) and time zones.
//!
//! Owns: civil date <-> day number, local <-> UTC. Day numbers count from 2000-01-01, moments in microseconds from its
//! midnight. The calendar is the proleptic Gregorian one; year 0 is 1 BC. Zone rules come from the library, which knows
//! years -9999 to 9999; beyond, the offset at the end of its range holds.

use super::abbreviations::{Abbreviation, abbreviation};
use crate::error::{Result, SqlError};
use jiff::tz::{AmbiguousOffset, TimeZone};
use logstead_types::SqlState;

/// Microseconds of a day.
pub const DAY: i64 = 86_400_000_000;
/// Microseconds of an hour.
pub const HOUR: i64 = 3_600_000_000;
/// Microseconds of a minute.
pub const MINUTE: i64 = 60_000_000;
/// Microseconds of a second.
pub const SECOND: i64 = 1_000_000;
/// Day number of 1970-01-01.
pub const UNIX_EPOCH_DAY: i64 = -10_957;
/// Julian day of 2000-01-01.
pub const EPOCH_JULIAN: i64 = 2_451_545;
/// First valid moment of a timestamp.
pub const TIMESTAMP_MIN: i64 = -211_813_488_000_000_000;
/// First moment beyond timestamps.
pub const TIMESTAMP_END: i64 = 9_223_371_331_200_000_000;
/// First valid day.
pub const DATE_MIN: i64 = -EPOCH_JULIAN;
/// First day beyond dates.
pub const DATE_END: i64 = 2_147_483_494 - EPOCH_JULIAN;

/// Day number of a date (month 1..=12; the day may lie outside the month and carries).
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let era = y.div_euclid(400);
    let yoe = y - era * 400;
    let mp = (month + 9) % 12;
    let doy = (153 * mp + 2) / 5;
    let doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
    // 730,425 days from 0000-03-01 to 2000-01-01.
    era * 146_097 + doe - 730_425 + (day - 1)
}

/// Year (0 is 1 BC), month, day of a day number.
pub fn civil_from_days(days: i64) -> (i64, i64, i64) {
    let z = days + 730_425;
    let era = z.div_euclid(146_097);
    let doe = z - era * 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let day = doy - (153 * mp + 2) / 5 + 1;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (yoe + era * 400 + i64::from(month <= 2), month, day)
}

/// Days in a month.
pub fn month_days(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// True for leap years.
pub fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

/// Day of the week, Sunday is 0.
pub fn weekday(days: i64) -> i64 {
    (days + 6).rem_euclid(7)
}

/// Day of the year, from 1.
pub fn day_of_year(days: i64) -> i64 {
    let (y, _, _) = civil_from_days(days);
    days - days_from_civil(y, 1, 1) + 1
}

/// ISO 8601 week-numbering year and week.
pub fn iso_week(days: i64) -> (i64, i64) {
    // The week's Thursday decides its year.
    let monday = days - (weekday(days) + 6) % 7;
    let (year, _, _) = civil_from_days(monday + 3);
    let week = (monday + 3 - days_from_civil(year, 1, 1)) / 7 + 1;
    (year, week)
}

/// Day number of the Monday of an ISO week.
pub fn iso_week_start(year: i64, week: i64) -> i64 {
    let fourth = days_from_civil(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7 + (week - 1) * 7
}

/// A moment taken apart.
#[derive(Clone, Copy, Debug)]
pub struct CivilDateTime {
    /// Year, 0 is 1 BC.
    pub year: i64,
    /// 1..=12
    pub month: i64,
    /// 1..=31
    pub day: i64,
    /// Microseconds since midnight.
    pub time: i64,
}

/// Takes a local moment apart.
pub fn parts(t: i64) -> CivilDateTime {
    let days = t.div_euclid(DAY);
    let (year, month, day) = civil_from_days(days);
    CivilDateTime {
        year,
        month,
        day,
        time: t - days * DAY,
    }
}

/// "timestamp out of range".
pub fn timestamp_out_of_range() -> SqlError {
    SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "timestamp out of range")
}

/// Checks that a finite moment is in range.
pub fn check_timestamp(t: i64) -> Result<i64> {
    if (TIMESTAMP_MIN..TIMESTAMP_END).contains(&t) {
        Ok(t)
    } else {
        Err(timestamp_out_of_range())
    }
}

/// Moment of a day number and a time of day.
pub fn combine(days: i64, time: i64) -> Result<i64> {
    days.checked_mul(DAY)
        .and_then(|d| d.checked_add(time))
        .ok_or_else(timestamp_out_of_range)
        .and_then(check_timestamp)
}

/// Seconds since 1970 brought into the library's range by whole cycles of the calendar (400 years), which keep the
/// rules.
pub fn within_zone_rules(seconds: i64) -> i64 {
    const CYCLE: i64 = 146_097 * 86_400;
    const END: i64 = 253_000_000_000;
    const START: i64 = -377_000_000_000;
    if seconds > END {
        seconds - (seconds - END).div_euclid(CYCLE) * CYCLE - CYCLE
    } else if seconds < START {
        seconds + ((START - seconds).div_euclid(CYCLE) + 1) * CYCLE
    } else {
        seconds
    }
}

/// Offset in seconds east of UTC at a UTC moment.
pub fn offset_at(utc: i64, tz: &TimeZone) -> i64 {
    let seconds = utc.div_euclid(SECOND) - UNIX_EPOCH_DAY * 86_400;
    match jiff::Timestamp::from_second(within_zone_rules(seconds)) {
        Ok(ts) => i64::from(tz.to_offset(ts).seconds()),
        Err(_) => 0,
    }
}

/// Local moment and offset of a UTC moment.
pub fn utc_to_local(utc: i64, tz: &TimeZone) -> (i64, i64) {
    let offset = offset_at(utc, tz);
    (utc.saturating_add(offset * SECOND), offset)
}

/// Offset of a local moment: in a gap the one before, in a fold the one after (PostgreSQL's choice).
pub fn local_offset(local: i64, tz: &TimeZone) -> i64 {
    let p = parts(local);
    let year = if (-9990..=9990).contains(&p.year) {
        p.year
    } else {
        p.year.rem_euclid(400) + if p.year > 0 { 9200 } else { -9600 }
    };
    let (year, day) = (year as i16, p.day);
    let (h, m, s) = (p.time / HOUR, p.time / MINUTE % 60, p.time / SECOND % 60);
    let Ok(civil) =
        jiff::civil::DateTime::new(year, p.month as i8, day as i8, h as i8, m as i8, s as i8, 0)
    else {
        return 0;
    };
    match tz.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => i64::from(offset.seconds()),
        AmbiguousOffset::Gap { before, .. } => i64::from(before.seconds()),
        AmbiguousOffset::Fold { after, .. } => i64::from(after.seconds()),
    }
}

/// UTC moment of a local moment.
pub fn local_to_utc(local: i64, tz: &TimeZone) -> Result<i64> {
    local
        .checked_sub(local_offset(local, tz) * SECOND)
        .ok_or_else(timestamp_out_of_range)
        .and_then(check_timestamp)
}

/// Time zone by name, abbreviation or offset, as `SET TIME ZONE` and `AT TIME ZONE` take it. A bare or signed offset
/// counts hours (POSIX sign: positive is west) as PostgreSQL reads zone *names*.
pub fn zone_by_name(name: &str) -> Option<TimeZone> {
    let name = name.trim();
    match abbreviation(name) {
        Some(Abbreviation::Fixed(seconds)) => return fixed_zone(seconds),
        Some(Abbreviation::Of(zone)) => return TimeZone::get(zone).ok(),
        None => {}
    }
    let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+');
    if name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.bytes().all(plain)
        && let Ok(tz) = TimeZone::get(name)
    {
        return Some(tz);
    }
    match posix_zone(name) {
        Some(offset) => fixed_zone(offset),
        None => posix_rules(name),
    }
}

/// A zone in POSIX's form with a name for summer, and perhaps the rules of its days: `PST8PDT,M3.2.0,M11.1.0`. Without
/// them
/// those of the United States hold, as in the time zone library.
fn posix_rules(name: &str) -> Option<TimeZone> {
    if !name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '<')
        || !name.contains(|c: char| c.is_ascii_digit())
    {
        return None;
    }
    match name.contains(',') {
        true => TimeZone::posix(name).ok(),
        false => TimeZone::posix(&format!("{name},M3.2.0,M11.1.0")).ok(),
    }
}

/// Seconds east of UTC of a zone in POSIX's form, a name and an offset to the west: `PST-03:00`, `<+03>-03`, `+5`.
pub fn posix_zone(name: &str) -> Option<i64> {
    let offset = match name.strip_prefix('<') {
        Some(quoted) => quoted.split_once('>')?.1,
        None => name.trim_start_matches(|c: char| !matches!(c, '0'..='9' | ',' | '+' | '-')),
    };
    let (sign, body) = match offset.strip_prefix('-') {
        Some(body) => (1, body),
        None => (-1, offset.strip_prefix('+').unwrap_or(offset)),
    };
    let mut seconds = 0;
    let mut parts = body.split(':');
    // A week of hours, as the time zone library has it.
    for (unit, most) in [(3600, 167), (60, 59), (1, 60)] {
        let Some(part) = parts.next() else {
            return (unit != 3600).then_some(sign * seconds);
        };
        let number = parse_digits(part).filter(|number| *number <= most)?;
        seconds += number * unit;
    }
    parts.next().is_none().then_some(sign * seconds)
}

/// A zone with a fixed offset in seconds east of UTC.
pub fn fixed_zone(seconds: i64) -> Option<TimeZone> {
    let offset = jiff::tz::Offset::from_seconds(i32::try_from(seconds).ok()?).ok()?;
    Some(TimeZone::fixed(offset))
}

/// `[+-]hh[:mm[:ss]]` or `[+-]hhmm` in seconds.
pub fn parse_offset(text: &str) -> Option<i64> {
    let (sign, body) = match text.as_bytes().first()? {
        b'-' => (-1, &text[1..]),
        b'+' => (1, &text[1..]),
        _ => (1, text),
    };
    let mut fields = [0i64; 3];
    if body.contains(':') {
        let mut n = 0;
        for (i, part) in body.split(':').enumerate() {
            if i > 2 || part.is_empty() || part.len() > 2 {
                return None;
            }
            fields[i] = parse_digits(part)?;
            n += 1;
        }
        if n < 2 {
            return None;
        }
    } else {
        let d = parse_digits(body)?;
        match body.len() {
            1 | 2 => fields[0] = d,
            3 | 4 => (fields[0], fields[1]) = (d / 100, d % 100),
            6 => fields = [d / 10_000, d / 100 % 100, d % 100],
            _ => return None,
        }
    }
    if fields[0] > 15 || fields[1] > 59 || fields[2] > 59 {
        return None;
    }
    Some(sign * (fields[0] * 3600 + fields[1] * 60 + fields[2]))
}

/// Digits only, at most 18 of them.
pub fn parse_digits(s: &str) -> Option<i64> {
    if s.is_empty() || s.len() > 18 || !s.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    s.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_dates_agree() {
        assert_eq!(days_from_civil(2000, 1, 1), 0);
        assert_eq!(days_from_civil(1970, 1, 1), UNIX_EPOCH_DAY);
        for d in (-2_500_000..2_500_000).step_by(997) {
            let (y, m, day) = civil_from_days(d);
            assert_eq!(days_from_civil(y, m, day), d);
        }
        assert_eq!(weekday(0), 6);
        assert_eq!(iso_week(days_from_civil(2021, 1, 3)), (2020, 53));
        assert_eq!(iso_week_start(2021, 1), days_from_civil(2021, 1, 4));
    }

    #[test]
    fn gaps_and_folds_follow_postgresql() {
        let tz = zone_by_name("America/New_York").expect("zone");
        let at = |m, d, h, mi| days_from_civil(2024, m, d) * DAY + h * HOUR + mi * MINUTE;
        assert_eq!(local_offset(at(3, 10, 2, 30), &tz), -5 * 3600);
        assert_eq!(local_offset(at(11, 3, 1, 30), &tz), -5 * 3600);
        assert_eq!(local_offset(at(7, 1, 12, 0), &tz), -4 * 3600);
        assert_eq!(offset_at(at(7, 1, 12, 0), &tz), -4 * 3600);
    }
}
