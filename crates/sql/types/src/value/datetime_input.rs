//! Reading dates, times and timestamps.
//!
//! Text is cut into tokens (numbers, dates with separators, times, words, offsets), each token fills fields, and the
//! fields make the value: PostgreSQL's scheme, so that the same spellings are taken and the same ones refused with the
//! same SQLSTATE.

mod time_of_day;

pub use time_of_day::{offset_today, parse_time, parse_timetz};

use crate::error::{Result, SqlError};
use crate::value::DateTimeContext;
use crate::value::abbreviations::{Abbreviation, abbreviation, offset_of};
use crate::value::calendar::{self, CivilDateTime, DAY, HOUR, MINUTE, SECOND};
use crate::value::datetime_units;
use jiff::tz::TimeZone;
use logstead_types::SqlState;

/// Why text is no date; becomes an error with the type's name and the text.
#[derive(Debug)]
enum DtError {
    Syntax,
    Range,
    Field,
    FieldHint,
    Zone(String),
    Displacement,
    Clock,
}

impl DtError {
    fn error(self, ty: &str, text: &str) -> SqlError {
        let overflow = || {
            SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date/time field value out of range: \"{text}\""),
            )
        };
        match self {
            DtError::Syntax => SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid input syntax for type {ty}: \"{text}\""),
            ),
            DtError::Range => out_of_range("timestamp", text),
            DtError::Field => overflow(),
            DtError::FieldHint => {
                overflow().hint("Perhaps you need a different \"datestyle\" setting.")
            }
            DtError::Zone(name) => SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                format!("time zone \"{name}\" not recognized"),
            ),
            DtError::Displacement => SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ),
            DtError::Clock => SqlError::internal(format!("\"{text}\" needs the session's clock")),
        }
    }
}

/// The order of a date's numbers where the first of them is no year.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateOrder {
    /// 1/31/2024
    #[default]
    Mdy,
    /// 31/1/2024
    Dmy,
    /// 24/1/31
    Ymd,
}

impl DateOrder {
    /// That of a value of the setting `DateStyle`.
    pub fn of_style(style: &str) -> DateOrder {
        match style {
            style if style.ends_with("DMY") => DateOrder::Dmy,
            style if style.ends_with("YMD") => DateOrder::Ymd,
            _ => DateOrder::Mdy,
        }
    }
}

/// Special words that stand for a whole value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Special {
    Infinity,
    NegInfinity,
    Epoch,
    Now,
}

enum Zone {
    Offset(i64),
    Named(TimeZone),
    /// What it means hangs on the time.
    Abbreviated(String, TimeZone),
}

#[derive(Default)]
struct Fields {
    order: DateOrder,
    /// Numbers that make the date, in order, with their count of digits.
    numbers: Vec<(i64, usize)>,
    month: Option<i64>,
    /// A whole date given at once (20240131, J2451187, today).
    day_number: Option<i64>,
    time: Option<i64>,
    bc: bool,
    pm: Option<bool>,
    zone: Option<Zone>,
    special: Option<Special>,
    /// Days from today, for today / tomorrow / yesterday.
    relative: Option<i64>,
    /// True when words or dates forbid reading a lone number as something else.
    separated: bool,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const MONTHS_LONG: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
const WEEKDAYS: [&str; 7] = [
    "sunday",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
];

/// Month 1..=12 of an English name or its abbreviation (lower case).
pub fn month_by_name(w: &str) -> Option<i64> {
    let i = MONTHS
        .iter()
        .position(|m| *m == w)
        .or_else(|| MONTHS_LONG.iter().position(|m| *m == w));
    i.or_else(|| (w == "sept").then_some(8))
        .map(|i| i as i64 + 1)
}

fn is_weekday(w: &str) -> bool {
    w.len() >= 3
        && (WEEKDAYS.iter().any(|d| *d == w || &d[..3] == w)
            || matches!(w, "tues" | "weds" | "wedn" | "thur" | "thurs"))
}

/// Fraction of a second in microseconds, rounded.
fn fraction_micros(digits: &str) -> Option<i64> {
    if digits.is_empty() {
        return Some(0);
    }
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut v = 0i64;
    for i in 0..7 {
        v = v * 10 + i64::from(digits.as_bytes().get(i).map_or(0, |b| b - b'0'));
    }
    Some((v + 5) / 10)
}

fn clock(h: i64, m: i64, s: i64, us: i64) -> Result<i64, DtError> {
    // 24:00:00 is the end of the day, and second 60 carries.
    if m > 59 || s > 60 || h > 24 || (h == 24 && (m > 0 || s > 0 || us > 0)) {
        return Err(DtError::Field);
    }
    let time = h * HOUR + m * MINUTE + s * SECOND + us;
    // Second 60 of the last minute is as far as a day goes.
    if time > DAY {
        return Err(DtError::Field);
    }
    Ok(time)
}

fn read_time(t: &str) -> Result<i64, DtError> {
    let (body, frac) = t.split_once('.').map_or((t, None), |(b, f)| (b, Some(f)));
    let us = fraction_micros(frac.unwrap_or("")).ok_or(DtError::Syntax)?;
    let mut f = [0i64; 3];
    let mut n = 0;
    for part in body.split(':') {
        if n == 3 {
            return Err(DtError::Syntax);
        }
        f[n] = calendar::parse_digits(part).ok_or(DtError::Syntax)?;
        n += 1;
    }
    match (n, frac) {
        // mm:ss.fff
        (2, Some(_)) => clock(0, f[0], f[1], us),
        (2 | 3, _) => clock(f[0], f[1], f[2], us),
        _ => Err(DtError::Syntax),
    }
}

fn take_while(s: &str, f: impl Fn(u8) -> bool) -> (&str, &str) {
    let end = s.bytes().position(|b| !f(b)).unwrap_or(s.len());
    s.split_at(end)
}

fn scan(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<Fields, DtError> {
    if !text.is_ascii() {
        return Err(DtError::Syntax);
    }
    let lower = text.to_ascii_lowercase();
    let mut rest = lower.as_str();
    let mut f = Fields {
        order: cx.map_or(DateOrder::Mdy, DateTimeContext::date_order),
        ..Fields::default()
    };
    let mut any = false;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
        let Some(&c) = rest.as_bytes().first() else {
            break;
        };
        if matches!(c, b',' | b'/' | b';') {
            // It only stands between fields.
            rest = &rest[1..];
            continue;
        }
        any = true;
        match c {
            b'0'..=b'9' => rest = number(rest, &mut f)?,
            b'a'..=b'z' => rest = word(rest, &mut f)?,
            b'+' | b'-' => {
                let (tail, after) = take_while(&rest[1..], |b| b.is_ascii_digit() || b == b':');
                if tail.is_empty() {
                    if rest[1..].starts_with("infinity") && c == b'-' {
                        set_special(&mut f, Special::NegInfinity)?;
                        rest = &rest["-infinity".len()..];
                        continue;
                    }
                    return Err(DtError::Syntax);
                }
                if f.zone.is_some() {
                    return Err(DtError::Syntax);
                }
                let seconds =
                    calendar::parse_offset(&rest[..1 + tail.len()]).ok_or(DtError::Displacement)?;
                f.zone = Some(Zone::Offset(seconds));
                rest = after;
            }
            _ => return Err(DtError::Syntax),
        }
    }
    if any { Ok(f) } else { Err(DtError::Syntax) }
}

fn set_special(f: &mut Fields, s: Special) -> Result<(), DtError> {
    if f.special.replace(s).is_some() {
        Err(DtError::Syntax)
    } else {
        Ok(())
    }
}

fn set_time(f: &mut Fields, t: i64) -> Result<(), DtError> {
    if f.time.replace(t).is_some() {
        Err(DtError::Syntax)
    } else {
        Ok(())
    }
}

fn number<'a>(rest: &'a str, f: &mut Fields) -> Result<&'a str, DtError> {
    let (digits, after) = take_while(rest, |b| b.is_ascii_digit());
    let next = after.as_bytes().first().copied().unwrap_or(0);
    let second = after.as_bytes().get(1).copied().unwrap_or(0);
    if next == b':' {
        let (t, after) = take_while(rest, |b| b.is_ascii_digit() || b == b':' || b == b'.');
        set_time(f, read_time(t)?)?;
        return Ok(after);
    }
    let date_known = f.day_number.is_some()
        || f.relative.is_some()
        || f.numbers.len() + usize::from(f.month.is_some()) >= 3;
    if matches!(next, b'-' | b'/' | b'.')
        && (second.is_ascii_digit() || second.is_ascii_lowercase())
        && !date_known
        && !(next == b'.' && digits.len() >= 6)
    {
        return separated(rest, f, next);
    }
    let value = calendar::parse_digits(digits).ok_or(DtError::Field)?;
    let (frac, after) = match after.strip_prefix('.') {
        Some(tail) => {
            let (d, a) = take_while(tail, |b| b.is_ascii_digit());
            (Some(d), a)
        }
        None => (None, after),
    };
    if date_known && f.time.is_none() {
        let us = fraction_micros(frac.unwrap_or("")).ok_or(DtError::Syntax)?;
        match digits.len() {
            6 => set_time(
                f,
                clock(value / 10_000, value / 100 % 100, value % 100, us)?,
            )?,
            4 if frac.is_none() => set_time(f, clock(value / 100, value % 100, 0, 0)?)?,
            // "8 pm"
            1 | 2 if after.trim_start().starts_with(['a', 'p']) => {
                set_time(f, clock(value, 0, 0, 0)?)?
            }
            _ => return Err(DtError::Syntax),
        }
        return Ok(after);
    }
    if frac.is_some() {
        return Err(DtError::Syntax);
    }
    if f.numbers.is_empty() && f.month.is_none() && f.day_number.is_none() {
        if digits.len() >= 7 {
            f.numbers = vec![
                (value / 10_000, digits.len() - 4),
                (value / 100 % 100, 2),
                (value % 100, 2),
            ];
            return Ok(after);
        }
        if digits.len() == 6 {
            f.numbers = vec![
                (value / 10_000, 2),
                (value / 100 % 100, 2),
                (value % 100, 2),
            ];
            f.separated = true;
            let year = f.numbers[0].0;
            f.numbers[0] = (if year < 70 { 2000 + year } else { 1900 + year }, 4);
            return Ok(after);
        }
    }
    if after.trim_start().starts_with("am") || after.trim_start().starts_with("pm") {
        set_time(f, clock(value, 0, 0, 0)?)?;
        return Ok(after);
    }
    f.numbers.push((value, digits.len()));
    if f.numbers.len() > 3 {
        return Err(DtError::Syntax);
    }
    Ok(after)
}

/// A date with separators, like 2024-01-31, 1/31/2024, 31-Jan-2024.
fn separated<'a>(mut rest: &'a str, f: &mut Fields, separator: u8) -> Result<&'a str, DtError> {
    for i in 0..3 {
        if rest.starts_with(|c: char| c.is_ascii_lowercase()) {
            let (w, after) = take_while(rest, |b| b.is_ascii_lowercase());
            let m = month_by_name(w).ok_or(DtError::Syntax)?;
            // A name behind two numbers is no month.
            if i == 2 || f.month.replace(m).is_some() {
                return Err(DtError::Syntax);
            }
            rest = after;
        } else {
            let (d, after) = take_while(rest, |b| b.is_ascii_digit());
            f.numbers
                .push((calendar::parse_digits(d).ok_or(DtError::Syntax)?, d.len()));
            rest = after;
        }
        if i < 2 {
            match rest.as_bytes().first() {
                Some(&b) if b == separator => rest = &rest[1..],
                _ => break,
            }
        }
    }
    Ok(rest)
}

/// Was a number taken for the month that can be no day, so that a month's name has no place left?
fn hides_number(f: &Fields) -> bool {
    let is_day = |number: &i64| (1..=31).contains(number);
    match (f.order, f.numbers.as_slice()) {
        (order, [(_, digits), (second, _)]) if *digits >= 3 || order == DateOrder::Ymd => {
            !is_day(second)
        }
        (_, [_, _]) => true,
        (DateOrder::Mdy, [(first, digits)]) if *digits < 3 => !is_day(first),
        _ => false,
    }
}

/// A date, and perhaps a time, whose fields have their units in front.
fn with_units<'a>(rest: &'a str, f: &mut Fields) -> Result<&'a str, DtError> {
    let (units, after) = datetime_units::fields(rest).ok_or(DtError::Syntax)?;
    if f.has_date() {
        return Err(DtError::Syntax);
    }
    f.numbers = vec![(units.year, 4), (units.month, 2), (units.day, 2)];
    if let Some((hour, minute, second)) = units.time {
        let (whole, part) = second.split_once('.').unwrap_or((second, ""));
        let whole = calendar::parse_digits(whole).ok_or(DtError::Syntax)?;
        let part = fraction_micros(part).ok_or(DtError::Syntax)?;
        set_time(f, clock(hour, minute, whole, part)?)?;
    }
    Ok(after)
}

fn word<'a>(rest: &'a str, f: &mut Fields) -> Result<&'a str, DtError> {
    let (w, after) = take_while(rest, |b| b.is_ascii_lowercase() || b == b'_');
    let next = after.as_bytes().first().copied().unwrap_or(0);
    if matches!(next, b'-' | b'/' | b'.')
        && month_by_name(w).is_some()
        && after.as_bytes().get(1).is_some_and(u8::is_ascii_digit)
    {
        return separated(rest, f, next);
    }
    if let Some(m) = month_by_name(w) {
        if hides_number(f) {
            return Err(DtError::Syntax);
        }
        return if f.month.replace(m).is_some() {
            Err(DtError::Syntax)
        } else {
            Ok(after)
        };
    }
    if next == b'/'
        || (next == b'-'
            && abbreviation(w).is_none()
            && after[1..].starts_with(|c: char| c.is_ascii_lowercase()))
    {
        let (name, after) = take_while(rest, |b| {
            b.is_ascii_alphanumeric() || matches!(b, b'/' | b'_' | b'-' | b'+')
        });
        return named_zone(name, after, f);
    }
    match w {
        "am" | "pm" => f.pm = Some(w == "pm"),
        "bc" => f.bc = true,
        "ad" | "at" | "on" => {}
        "y" if next.is_ascii_digit() => return with_units(rest, f),
        "t" if next.is_ascii_digit() => {}
        "t" => return Err(DtError::Syntax),
        "j" | "julian" if next.is_ascii_digit() => {
            let (d, after) = take_while(after, |b| b.is_ascii_digit());
            f.day_number =
                Some(calendar::parse_digits(d).ok_or(DtError::Syntax)? - calendar::EPOCH_JULIAN);
            // A part of the day behind a point is its time.
            if let Some(tail) = after.strip_prefix('.') {
                let (part, after) = take_while(tail, |b| b.is_ascii_digit());
                let part: f64 = format!("0.{part}0").parse().map_err(|_| DtError::Syntax)?;
                set_time(f, (part * DAY as f64).round_ties_even() as i64)?;
                return Ok(after);
            }
            return Ok(after);
        }
        "now" => set_special(f, Special::Now)?,
        "today" | "tomorrow" | "yesterday" => {
            f.relative = Some(match w {
                "today" => 0,
                "tomorrow" => 1,
                _ => -1,
            });
        }
        "infinity" | "inf" => set_special(f, Special::Infinity)?,
        "epoch" => set_special(f, Special::Epoch)?,
        "allballs" => {
            set_time(f, 0)?;
            f.zone = Some(Zone::Offset(0));
        }
        _ if is_weekday(w) => {}
        _ => return named_zone(w, after, f),
    }
    Ok(after)
}

fn named_zone<'a>(name: &str, after: &'a str, f: &mut Fields) -> Result<&'a str, DtError> {
    if f.zone.is_some() {
        return Err(DtError::Syntax);
    }
    // "UTC+3" and "PST-03:00": an offset that follows at once counts to the west, whatever the name is.
    if abbreviation(name).is_some() && after.starts_with(['+', '-']) {
        let (o, tail) = take_while(&after[1..], |b| b.is_ascii_digit() || b == b':');
        if let Some(west) = calendar::parse_offset(&after[..1 + o.len()]) {
            f.zone = Some(Zone::Offset(-west));
            return Ok(tail);
        }
    }
    if let Some(Abbreviation::Of(zone)) = abbreviation(name)
        && let Ok(zone) = TimeZone::get(zone)
    {
        f.zone = Some(Zone::Abbreviated(name.to_owned(), zone));
        return Ok(after);
    }
    if let Some(Abbreviation::Fixed(seconds)) = abbreviation(name) {
        f.zone = Some(Zone::Offset(seconds));
        return Ok(after);
    }
    match calendar::zone_by_name(name) {
        Some(tz) => f.zone = Some(Zone::Named(tz)),
        None if name.contains('/') => return Err(DtError::Zone(name.to_owned())),
        None => return Err(DtError::Syntax),
    }
    Ok(after)
}

impl Fields {
    fn has_date(&self) -> bool {
        !self.numbers.is_empty()
            || self.month.is_some()
            || self.day_number.is_some()
            || self.relative.is_some()
    }

    /// Day number of the date fields.
    fn day(&self) -> Result<i64, DtError> {
        if let Some(d) = self.day_number {
            return Ok(d);
        }
        let n = &self.numbers;
        let (year, month, day) = match (self.month, n.as_slice()) {
            (Some(m), &[a, b]) => {
                let year_first = self.order == DateOrder::Ymd && b.1 < 3;
                if a.1 >= 3 || year_first {
                    (a, m, b.0)
                } else {
                    (b, m, a.0)
                }
            }
            // 2024 followed by the day of the year: 2024.031
            (None, &[y, d]) if y.1 >= 3 && d.1 == 3 => {
                let first = calendar::days_from_civil(self.year(y)?, 1, 1);
                return if (1..=366).contains(&d.0) {
                    Ok(first + d.0 - 1)
                } else {
                    Err(DtError::Field)
                };
            }
            (None, &[a, b, c]) => match self.order {
                _ if a.1 >= 3 => (a, b.0, c.0),
                DateOrder::Ymd => (a, b.0, c.0),
                DateOrder::Dmy => (c, b.0, a.0),
                DateOrder::Mdy => (c, a.0, b.0),
            },
            _ => return Err(DtError::Syntax),
        };
        let year = self.year(year)?;
        if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return Err(DtError::FieldHint);
        }
        if day > calendar::month_days(year, month) {
            return Err(DtError::Field);
        }
        Ok(calendar::days_from_civil(year, month, day))
    }

    fn year(&self, (y, digits): (i64, usize)) -> Result<i64, DtError> {
        if y > 9_999_999 {
            return Err(DtError::Field);
        }
        if self.bc {
            return if y >= 1 {
                Ok(1 - y)
            } else {
                Err(DtError::Field)
            };
        }
        match (y, digits) {
            (0..=69, 1 | 2) if !self.separated => Ok(2000 + y),
            (70..=99, 1 | 2) if !self.separated => Ok(1900 + y),
            (0, _) => Err(DtError::Field),
            _ => Ok(y),
        }
    }

    fn time_of_day(&self) -> Result<i64, DtError> {
        let t = self.time.unwrap_or(0);
        let hour = t / HOUR;
        match self.pm {
            None => Ok(t),
            Some(_) if !(0..=12).contains(&hour) => Err(DtError::Field),
            Some(true) if hour < 12 => Ok(t + 12 * HOUR),
            Some(false) if hour == 12 => Ok(t - 12 * HOUR),
            Some(_) => Ok(t),
        }
    }
}

fn zone_of(cx: Option<&dyn DateTimeContext>) -> TimeZone {
    cx.map_or(TimeZone::UTC, |c| c.time_zone().clone())
}

/// Seconds east of UTC that an abbreviation means at a local moment.
pub fn abbreviated_offset(local: i64, word: &str, zone: &TimeZone) -> i64 {
    let offset = calendar::local_offset(local, zone);
    let utc = local.saturating_sub(offset * SECOND);
    offset_of(word, zone, utc).unwrap_or(offset)
}

fn local_now(cx: Option<&dyn DateTimeContext>) -> Result<i64, DtError> {
    let cx = cx.ok_or(DtError::Clock)?;
    let now = cx.transaction_time().map_err(|_| DtError::Clock)?;
    Ok(calendar::utc_to_local(now, cx.time_zone()).0)
}

/// Local moment, and the zone it was given in.
fn moment(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<(i64, Option<Zone>), DtError> {
    let mut f = scan(text, cx)?;
    match f.special {
        Some(_) if f.has_date() || f.time.is_some() => return Err(DtError::Syntax),
        Some(Special::Infinity) => return Ok((i64::MAX, None)),
        Some(Special::NegInfinity) => return Ok((i64::MIN, None)),
        Some(Special::Epoch) => return Ok((calendar::UNIX_EPOCH_DAY * DAY, Some(Zone::Offset(0)))),
        Some(Special::Now) => return Ok((local_now(cx)?, None)),
        None => {}
    }
    if !f.has_date() {
        return Err(DtError::Syntax);
    }
    let day = match f.relative {
        Some(n) => local_now(cx)?.div_euclid(DAY) + n,
        None => f.day()?,
    };
    let time = f.time_of_day()?;
    let t = day
        .checked_mul(DAY)
        .and_then(|d| d.checked_add(time))
        .ok_or(DtError::Range)?;
    Ok((t, f.zone.take()))
}

fn out_of_range(ty: &str, text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("{ty} out of range: \"{text}\""),
    )
}

fn is_infinite(t: i64) -> bool {
    t == i64::MAX || t == i64::MIN
}

/// `timestamp` input: a zone in the text is checked and ignored.
pub fn parse_timestamp(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<i64> {
    let (t, _) = moment(text, cx).map_err(|e| e.error("timestamp", text))?;
    if is_infinite(t) {
        return Ok(t);
    }
    calendar::check_timestamp(t).map_err(|_| out_of_range("timestamp", text))
}

/// `timestamptz` input: without a zone in the text the session's holds.
pub fn parse_timestamptz(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<i64> {
    let (t, zone) = moment(text, cx).map_err(|e| e.error("timestamp with time zone", text))?;
    if is_infinite(t) {
        return Ok(t);
    }
    let offset = match zone {
        Some(Zone::Offset(s)) => s,
        Some(Zone::Named(tz)) => calendar::local_offset(t, &tz),
        Some(Zone::Abbreviated(word, tz)) => abbreviated_offset(t, &word, &tz),
        None => calendar::local_offset(t, &zone_of(cx)),
    };
    t.checked_sub(offset * SECOND)
        .ok_or_else(calendar::timestamp_out_of_range)
        .and_then(calendar::check_timestamp)
        .map_err(|_| out_of_range("timestamp", text))
}

/// `date` input.
pub fn parse_date(text: &str, cx: Option<&dyn DateTimeContext>) -> Result<i32> {
    // Dates reach further than moments: the day is taken without multiplying it out.
    let day = (|| -> Result<Option<i64>, DtError> {
        let f = scan(text, cx)?;
        if f.special.is_none() && f.relative.is_none() && f.has_date() {
            f.time_of_day()?;
            return f.day().map(Some);
        }
        Ok(None)
    })()
    .map_err(|e| e.error("date", text))?;
    if let Some(d) = day {
        return if (calendar::DATE_MIN..calendar::DATE_END).contains(&d) {
            Ok(d as i32)
        } else {
            Err(out_of_range("date", text))
        };
    }
    let (t, _) = moment(text, cx).map_err(|e| e.error("date", text))?;
    Ok(super::timestamp_to_date(t))
}

/// Year, month, day and time of a local moment; re-exported for formatting.
pub fn parts(t: i64) -> CivilDateTime {
    calendar::parts(t)
}
