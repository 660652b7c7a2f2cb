//! Reading intervals: PostgreSQL's verbose and SQL styles, and ISO 8601 durations; and the fields that a type modifier
//! names.

use std::borrow::Cow;

use super::IntervalStyle;
use crate::error::{Result, SqlError};
use crate::value::Interval;
use crate::value::calendar::{DAY, HOUR, MINUTE, SECOND};
use logstead_types::SqlState;

/// Fields of an interval type, a bit each, in the upper half of its modifier.
pub mod fields {
    #![allow(missing_docs, reason = "the names of the fields")]
    pub const MONTH: i32 = 1 << 1;
    pub const YEAR: i32 = 1 << 2;
    pub const DAY: i32 = 1 << 3;
    pub const HOUR: i32 = 1 << 10;
    pub const MINUTE: i32 = 1 << 11;
    pub const SECOND: i32 = 1 << 12;
    /// All of them.
    pub const ALL: i32 = 0x7fff;
    /// Of a modifier: no digits of seconds are named.
    pub const ANY_PRECISION: i32 = 0xffff;

    /// The fields that a modifier names.
    pub fn of(typmod: i32) -> i32 {
        match typmod < 0 {
            true => ALL,
            false => (typmod >> 16) & ALL,
        }
    }

    /// As in a type's name, with a blank in front; nothing for all of them.
    pub fn words(range: i32) -> &'static str {
        match range {
            YEAR => " year",
            MONTH => " month",
            DAY => " day",
            HOUR => " hour",
            MINUTE => " minute",
            SECOND => " second",
            r if r == YEAR | MONTH => " year to month",
            r if r == DAY | HOUR => " day to hour",
            r if r == DAY | HOUR | MINUTE => " day to minute",
            r if r == DAY | HOUR | MINUTE | SECOND => " day to second",
            r if r == HOUR | MINUTE => " hour to minute",
            r if r == HOUR | MINUTE | SECOND => " hour to second",
            r if r == MINUTE | SECOND => " minute to second",
            _ => "",
        }
    }

    /// What a number without a unit counts.
    pub(super) fn last(range: i32) -> &'static str {
        match range {
            ALL => "second",
            r if r & SECOND != 0 => "second",
            r if r & MINUTE != 0 => "minute",
            r if r & HOUR != 0 => "hour",
            r if r & DAY != 0 => "day",
            r if r & MONTH != 0 => "month",
            _ => "year",
        }
    }
}

/// An interval with nothing in it but what its fields may have: what is smaller is cut off, as PostgreSQL does.
pub fn within(range: i32, v: &Interval) -> Interval {
    use fields::{DAY as D, HOUR as H, MINUTE as M, MONTH, SECOND as S, YEAR};
    let cut = |unit: i64| v.micros / unit * unit;
    let (months, days, micros) = match range {
        YEAR => (v.months / 12 * 12, 0, 0),
        MONTH => (v.months, 0, 0),
        r if r == YEAR | MONTH => (v.months, 0, 0),
        D => (v.months, v.days, 0),
        r if r == H || r == D | H => (v.months, v.days, cut(HOUR)),
        r if r == M || r == H | M || r == D | H | M => (v.months, v.days, cut(MINUTE)),
        r if r & S != 0 => (v.months, v.days, v.micros),
        _ => (v.months, v.days, v.micros),
    };
    Interval {
        months,
        days,
        micros,
    }
}

#[derive(Default)]
struct IntervalBuilder {
    /// Units that have been told.
    seen: u32,
    years: i64,
    months: i64,
    days: i64,
    micros: i64,
}

enum IntervalError {
    Syntax,
    /// A field that is too large.
    Range,
    /// Fields that are too large together.
    Total,
}

/// Years, months and days are each as large as an integer at most.
fn field(v: i64) -> Option<i64> {
    i32::try_from(v).ok().map(i64::from)
}

/// A decimal number split exactly: whole part and millionths of the rest, both signed.
struct Number {
    whole: i64,
    /// Fraction as a double; units carry it down.
    fraction: f64,
}

fn number(s: &str) -> Result<Number, IntervalError> {
    let (neg, body) = match s.as_bytes().first() {
        None => return Err(IntervalError::Syntax),
        Some(b'-') => (true, &s[1..]),
        Some(b'+') => (false, &s[1..]),
        Some(_) => (false, s),
    };
    let (whole, frac) = body.split_once('.').unwrap_or((body, ""));
    let mut digits = whole.bytes().chain(frac.bytes());
    if (whole.is_empty() && frac.is_empty()) || !digits.all(|b| b.is_ascii_digit()) {
        return Err(IntervalError::Syntax);
    }
    let sign = if neg { "-" } else { "" };
    let whole = match whole {
        "" => 0,
        // With its sign: the least number has no positive one.
        digits => format!("{sign}{digits}")
            .parse()
            .map_err(|_| IntervalError::Range)?,
    };
    let fraction = match frac {
        "" => 0.0,
        digits => format!("{sign}0.{digits}")
            .parse()
            .map_err(|_| IntervalError::Syntax)?,
    };
    Ok(Number { whole, fraction })
}

/// A number of a duration as ISO 8601 has it, which PostgreSQL reads as a double.
fn iso_number(s: &str) -> Result<Number, IntervalError> {
    if !s.ends_with(|c: char| c.is_ascii_digit() || c == '.') {
        return Err(IntervalError::Syntax);
    }
    let v: f64 = s.parse().map_err(|_| IntervalError::Syntax)?;
    if v.is_nan() || v.abs() > 1e15 {
        return Err(IntervalError::Range);
    }
    Ok(Number {
        whole: v.trunc() as i64,
        fraction: v - v.trunc(),
    })
}

/// What names a unit in the first ten letters of a word, and the bits of it that may be told once only.
fn unit_of(word: &str) -> Option<(&'static str, u32)> {
    const MICROSECOND: u32 = 1;
    const MILLISECOND: u32 = 1 << 1;
    Some(match word.get(..10).unwrap_or(word) {
        "us" | "usec" | "usecs" | "usecond" | "useconds" | "microsecon" => {
            ("microsecond", MICROSECOND)
        }
        "ms" | "msec" | "msecs" | "msecond" | "mseconds" | "millisecon" => {
            ("millisecond", MILLISECOND)
        }
        "s" | "sec" | "secs" | "second" | "seconds" => ("second", SECONDS),
        "m" | "min" | "mins" | "minute" | "minutes" => ("minute", 1 << 3),
        "h" | "hr" | "hrs" | "hour" | "hours" => ("hour", 1 << 4),
        "d" | "day" | "days" => ("day", 1 << 5),
        "w" | "week" | "weeks" => ("week", 1 << 6),
        "mon" | "mons" | "month" | "months" => ("month", MONTHS),
        "y" | "yr" | "yrs" | "year" | "years" => ("year", 1 << 8),
        "dec" | "decs" | "decade" | "decades" => ("decade", 1 << 9),
        "c" | "cent" | "century" | "centuries" => ("century", 1 << 10),
        "mil" | "mils" | "millennium" | "millennia" => ("millennium", 1 << 11),
        _ => return None,
    })
}

const SECONDS: u32 = 1 << 2;
const MONTHS: u32 = 1 << 7;
/// Seconds with a fraction tell of what is smaller, too.
const ALL_SECONDS: u32 = 7;
/// Hours, minutes and seconds with colons.
const CLOCK: u32 = ALL_SECONDS | 1 << 3 | 1 << 4;

impl IntervalBuilder {
    fn micros(&mut self, n: i64, unit: i64) -> Result<(), IntervalError> {
        self.micros = n
            .checked_mul(unit)
            .and_then(|v| v.checked_add(self.micros))
            .ok_or(IntervalError::Range)?;
        Ok(())
    }

    fn micros_fraction(&mut self, f: f64, unit: i64) -> Result<(), IntervalError> {
        self.micros((f * unit as f64).round_ties_even() as i64, 1)
    }

    fn days_fraction(&mut self, days: f64) -> Result<(), IntervalError> {
        let whole = days.trunc();
        let sum = self.days.checked_add(whole as i64);
        self.days = sum.and_then(field).ok_or(IntervalError::Range)?;
        self.micros_fraction(days - whole, DAY)
    }

    fn add(&mut self, n: &Number, unit: &str) -> Result<(), IntervalError> {
        let years = |s: &mut IntervalBuilder, per: i64| -> Result<(), IntervalError> {
            s.years = n
                .whole
                .checked_mul(per)
                .and_then(|v| field(v.checked_add(s.years)?))
                .ok_or(IntervalError::Range)?;
            // Fractions of years and longer count whole months.
            let more = (n.fraction * (per * 12) as f64).round_ties_even() as i64;
            s.months = s
                .months
                .checked_add(more)
                .and_then(field)
                .ok_or(IntervalError::Range)?;
            Ok(())
        };
        match unit {
            "microsecond" => {
                self.micros(n.whole, 1)?;
                self.micros_fraction(n.fraction, 1)
            }
            "millisecond" => {
                self.micros(n.whole, 1000)?;
                self.micros_fraction(n.fraction, 1000)
            }
            "second" => {
                self.micros(n.whole, SECOND)?;
                self.micros_fraction(n.fraction, SECOND)
            }
            "minute" => {
                self.micros(n.whole, MINUTE)?;
                self.micros_fraction(n.fraction, MINUTE)
            }
            "hour" => {
                self.micros(n.whole, HOUR)?;
                self.micros_fraction(n.fraction, HOUR)
            }
            "day" => {
                self.days = self
                    .days
                    .checked_add(n.whole)
                    .and_then(field)
                    .ok_or(IntervalError::Range)?;
                self.micros_fraction(n.fraction, DAY)
            }
            "week" => {
                self.days = n
                    .whole
                    .checked_mul(7)
                    .and_then(|v| field(v.checked_add(self.days)?))
                    .ok_or(IntervalError::Range)?;
                self.days_fraction(n.fraction * 7.0)
            }
            "month" => {
                self.months = self
                    .months
                    .checked_add(n.whole)
                    .and_then(field)
                    .ok_or(IntervalError::Range)?;
                self.days_fraction(n.fraction * 30.0)
            }
            "year" => years(self, 1),
            "decade" => years(self, 10),
            "century" => years(self, 100),
            "millennium" => years(self, 1000),
            _ => Err(IntervalError::Syntax),
        }
    }

    /// The same of a word, which tells of its unit once only.
    fn add_once(&mut self, n: &Number, word: &str) -> Result<(), IntervalError> {
        let (unit, mut bits) = unit_of(word).ok_or(IntervalError::Syntax)?;
        if bits == SECONDS && n.fraction != 0.0 {
            bits = ALL_SECONDS;
        }
        self.add(n, unit)?;
        self.once(bits)
    }

    fn once(&mut self, bits: u32) -> Result<(), IntervalError> {
        if self.seen & bits != 0 {
            return Err(IntervalError::Syntax);
        }
        self.seen |= bits;
        Ok(())
    }

    /// One half of the alternative format of ISO 8601, `P0001-02-03T04:05:06`: fields by their places. Without
    /// separators they have their widths, if there are as many digits as that.
    fn iso_fields(
        &mut self,
        part: &str,
        separator: char,
        units: [&str; 3],
        widths: [usize; 3],
    ) -> Result<(), IntervalError> {
        if part.is_empty() {
            return Ok(());
        }
        let whole = part.split('.').next().unwrap_or(part);
        let packed = whole.len() == widths.iter().sum::<usize>()
            && whole.bytes().all(|b| b.is_ascii_digit());
        if packed {
            let (first, rest) = part.split_at(widths[0]);
            let (second, third) = rest.split_at(widths[1]);
            for (text, unit) in [first, second, third].into_iter().zip(units) {
                self.add(&iso_number(text)?, unit)?;
            }
            return Ok(());
        }
        // A separator directly before another is a sign: a field may be negative.
        let mut units = units.into_iter();
        let mut rest = part;
        loop {
            let unit = units.next().ok_or(IntervalError::Syntax)?;
            let from = usize::from(rest.starts_with(['-', '+']));
            let end = rest[from..].find(separator).map(|at| at + from);
            let text = end.map_or(rest, |end| &rest[..end]);
            self.add(&iso_number(text)?, unit)?;
            match end {
                Some(end) => rest = &rest[end + 1..],
                None => return Ok(()),
            }
        }
    }

    /// One half of a duration with a letter behind each number.
    fn iso_units(&mut self, part: &str, units: &[(char, &str)]) -> Result<(), IntervalError> {
        let mut rest = part;
        while !rest.is_empty() {
            let is_unit = |c: char| c.is_ascii_lowercase() && c != 'e';
            let end = rest.find(is_unit).ok_or(IntervalError::Syntax)?;
            let letter = rest[end..].chars().next();
            let unit = units.iter().find(|(c, _)| Some(*c) == letter);
            let (_, unit) = unit.ok_or(IntervalError::Syntax)?;
            self.add(&iso_number(&rest[..end])?, unit)?;
            rest = &rest[end + 1..];
        }
        Ok(())
    }

    fn done(self) -> Result<Interval, IntervalError> {
        Ok(Interval {
            months: i32::try_from(self.years * 12 + self.months)
                .map_err(|_| IntervalError::Total)?,
            days: i32::try_from(self.days).map_err(|_| IntervalError::Range)?,
            micros: self.micros,
        })
    }
}

/// `[+-]hh:mm[:ss[.fff]]` in microseconds.
fn clock(t: &str, range: i32, sum: &mut IntervalBuilder) -> Result<(), IntervalError> {
    let (sign, body) = match t.as_bytes().first() {
        Some(b'-') => (-1, &t[1..]),
        Some(b'+') => (1, &t[1..]),
        _ => (1, t),
    };
    let parts: Vec<&str> = body.split(':').collect();
    let int = |s: &str| -> Result<i64, IntervalError> {
        if s.is_empty() || !s.bytes().all(|b| b.is_ascii_digit()) {
            Err(IntervalError::Syntax)
        } else {
            s.parse().map_err(|_| IntervalError::Range)
        }
    };
    let (h, m, s) = match parts.as_slice() {
        [m, s] if s.contains('.') || range == fields::MINUTE | fields::SECOND => (0, int(m)?, *s),
        [h, m] => (int(h)?, int(m)?, "0"),
        [h, m, s] => (int(h)?, int(m)?, *s),
        _ => return Err(IntervalError::Syntax),
    };
    let sec = number(s)?;
    if m > 59 || sec.whole > 60 {
        return Err(IntervalError::Range);
    }
    sum.micros(sign * h, HOUR)?;
    sum.micros(sign * m, MINUTE)?;
    sum.micros(sign * sec.whole, SECOND)?;
    sum.micros_fraction(sign as f64 * sec.fraction, SECOND)
}

fn iso(body: &str) -> Result<IntervalBuilder, IntervalError> {
    let mut sum = IntervalBuilder::default();
    let (date, clock) = body
        .split_once('t')
        .map_or((body, None), |(d, c)| (d, Some(c)));
    if date.is_empty() && clock.is_none_or(str::is_empty) {
        return Err(IntervalError::Syntax);
    }
    let has_no_units = |part: &str| !part.contains(|c: char| c.is_ascii_lowercase());
    let dates = [('y', "year"), ('m', "month"), ('w', "week"), ('d', "day")];
    let clocks = [('h', "hour"), ('m', "minute"), ('s', "second")];
    match date {
        plain if has_no_units(plain) => {
            sum.iso_fields(plain, '-', ["year", "month", "day"], [4, 2, 2])?;
        }
        named => sum.iso_units(named, &dates)?,
    }
    match clock {
        None | Some("") => {}
        Some(plain) if has_no_units(plain) => {
            sum.iso_fields(plain, ':', ["hour", "minute", "second"], [2, 2, 2])?;
        }
        Some(named) => sum.iso_units(named, &clocks)?,
    }
    Ok(sum)
}

fn verbose(text: &str, range: i32) -> Result<IntervalBuilder, IntervalError> {
    let mut sum = IntervalBuilder::default();
    let mut rest = text.trim_start_matches('@').trim_start();
    let mut any = false;
    loop {
        // Punctuation that means nothing parts fields, as spaces do.
        let parts = |c: char| {
            c.is_ascii_whitespace() || c.is_ascii_punctuation() && !matches!(c, '+' | '-' | '.')
        };
        rest = rest.trim_start_matches(parts);
        if rest.is_empty() {
            break;
        }
        if rest == "ago" && any {
            sum = IntervalBuilder {
                seen: sum.seen,
                years: field(-sum.years).ok_or(IntervalError::Range)?,
                months: field(-sum.months).ok_or(IntervalError::Range)?,
                days: field(-sum.days).ok_or(IntervalError::Range)?,
                micros: sum.micros.checked_neg().ok_or(IntervalError::Range)?,
            };
            rest = "";
            continue;
        }
        let signed = usize::from(rest.starts_with(['+', '-']));
        let end = rest[signed..]
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))
            .map_or(rest.len(), |i| i + signed);
        let mut token = Cow::Borrowed(&rest[..end]);
        rest = &rest[end..];
        // A sign may stand apart from its number.
        if end == signed && signed > 0 {
            let number = rest.trim_start();
            let end = number
                .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))
                .unwrap_or(number.len());
            token.to_mut().push_str(&number[..end]);
            rest = &number[end..];
        }
        let token = &*token;
        any = true;
        if token.contains(':') {
            sum.once(CLOCK)?;
            clock(token, range, &mut sum)?;
            continue;
        }
        let n = number(token)?;
        // SQL style years-months: 1-2
        if let Some(tail) = rest.strip_prefix('-') {
            let end = tail
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(tail.len());
            let m: i64 = tail[..end].parse().map_err(|_| IntervalError::Syntax)?;
            if m > 11 {
                return Err(IntervalError::Range);
            }
            let sign = if token.starts_with('-') { -1 } else { 1 };
            sum.once(MONTHS)?;
            sum.add(&n, "year")?;
            sum.months = sum
                .months
                .checked_add(sign * m)
                .ok_or(IntervalError::Range)?;
            rest = &tail[end..];
            continue;
        }
        let tail = rest.trim_start();
        let end = tail
            .find(|c: char| !c.is_ascii_lowercase())
            .unwrap_or(tail.len());
        let unit = &tail[..end];
        if unit.is_empty() {
            // "1 04:05:06" counts days, and "1 2" of days to hours; a lone number at the end counts what the type ends
            // with.
            let hours = fields::last(range) == "hour" && number(tail).is_ok();
            let days = tail.contains(':') || hours;
            sum.add_once(&n, if days { "day" } else { fields::last(range) })?;
            if !tail.is_empty() && !days {
                return Err(IntervalError::Syntax);
            }
            continue;
        }
        sum.add_once(&n, unit)?;
        rest = &tail[end..];
    }
    if any {
        Ok(sum)
    } else {
        Err(IntervalError::Syntax)
    }
}

/// An interval's text as the style of the session has it read: in that of the standard, a sign in front of everything
/// is the sign of everything, unless there is another one.
pub fn read_in(style: IntervalStyle, text: &str) -> Cow<'_, str> {
    let mut words = text.split_ascii_whitespace();
    let first = words.next().filter(|word| word.starts_with('-'));
    let signed = |word: &str| word.starts_with(['+', '-']);
    let (IntervalStyle::SqlStandard, Some(first)) = (style, first) else {
        return Cow::Borrowed(text);
    };
    if words.clone().any(signed) {
        return Cow::Borrowed(text);
    }
    let mut all = first.to_owned();
    for word in words {
        all.push(' ');
        if word.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            all.push('-');
        }
        all.push_str(word);
    }
    Cow::Owned(all)
}

/// `interval` input.
pub fn parse_interval(text: &str) -> Result<Interval> {
    parse_interval_as(text, -1)
}

/// The same for a type with a modifier, which says what numbers without units count.
pub fn parse_interval_as(text: &str, typmod: i32) -> Result<Interval> {
    let lower = text.trim().to_ascii_lowercase();
    let read = if !lower.is_ascii() {
        Err(IntervalError::Syntax)
    } else if let Some(body) = lower.strip_prefix('p') {
        iso(body)
    } else {
        verbose(&lower, fields::of(typmod))
    };
    read.and_then(IntervalBuilder::done).map_err(|e| match e {
        IntervalError::Syntax => SqlError::new(
            SqlState::INVALID_DATETIME_FORMAT,
            format!("invalid input syntax for type interval: \"{text}\""),
        ),
        IntervalError::Total => {
            SqlError::new(SqlState::DATETIME_FIELD_OVERFLOW, "interval out of range")
        }
        IntervalError::Range => SqlError::new(
            SqlState::INTERVAL_FIELD_OVERFLOW,
            format!("interval field value out of range: \"{text}\""),
        ),
    })
}
