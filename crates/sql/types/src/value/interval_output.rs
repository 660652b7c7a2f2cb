//! Text output of intervals, in the four styles of the setting `IntervalStyle`.

use super::super::Interval;
use super::calendar::{HOUR, MINUTE, SECOND};
use super::{fraction, pad};

/// The setting `IntervalStyle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IntervalStyle {
    /// `1 year 2 mons 3 days 04:05:06`
    #[default]
    Postgres,
    /// `@ 1 year 2 mons 3 days 4 hours 5 mins 6 secs`
    PostgresVerbose,
    /// `+1-2 +3 +4:05:06`
    SqlStandard,
    /// `P1Y2M3DT4H5M6S`
    Iso8601,
}

impl IntervalStyle {
    /// The style of a setting's value; what is none is the default.
    pub fn named(name: &str) -> IntervalStyle {
        match name.to_ascii_lowercase().as_str() {
            "postgres_verbose" => IntervalStyle::PostgresVerbose,
            "sql_standard" => IntervalStyle::SqlStandard,
            "iso_8601" => IntervalStyle::Iso8601,
            _ => IntervalStyle::Postgres,
        }
    }

    /// Appends an interval.
    pub fn write(self, v: &Interval, out: &mut Vec<u8>) {
        match self {
            IntervalStyle::Postgres => write_interval(v, out),
            IntervalStyle::PostgresVerbose => write_verbose(&IntervalParts::of(v), out),
            IntervalStyle::SqlStandard => write_standard(&IntervalParts::of(v), out),
            IntervalStyle::Iso8601 => write_iso(&IntervalParts::of(v), out),
        }
    }
}

/// An interval's fields, each with its own sign.
#[derive(Clone, Copy)]
struct IntervalParts {
    years: i64,
    months: i64,
    days: i64,
    hours: i64,
    minutes: i64,
    seconds: i64,
    micros: i64,
}

impl IntervalParts {
    fn of(v: &Interval) -> IntervalParts {
        IntervalParts {
            years: i64::from(v.months / 12),
            months: i64::from(v.months % 12),
            days: i64::from(v.days),
            hours: v.micros / HOUR,
            minutes: v.micros / MINUTE % 60,
            seconds: v.micros / SECOND % 60,
            micros: v.micros % SECOND,
        }
    }

    fn all(&self) -> [i64; 7] {
        let IntervalParts {
            years,
            months,
            days,
            hours,
            minutes,
            seconds,
            micros,
        } = *self;
        [years, months, days, hours, minutes, seconds, micros]
    }

    fn negated(&self) -> IntervalParts {
        IntervalParts {
            years: -self.years,
            months: -self.months,
            days: -self.days,
            hours: -self.hours,
            minutes: -self.minutes,
            seconds: -self.seconds,
            micros: -self.micros,
        }
    }

    /// Seconds with their fraction, without their sign; `wide`: in two digits at least.
    fn write_seconds(&self, wide: bool, out: &mut Vec<u8>) {
        if wide {
            pad(self.seconds.abs(), 2, out);
        } else {
            number(self.seconds.abs(), out);
        }
        fraction(self.micros.abs(), out);
    }
}

fn number(n: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(n.to_string().as_bytes());
}

fn write_iso(p: &IntervalParts, out: &mut Vec<u8>) {
    if p.all() == [0; 7] {
        out.extend_from_slice(b"PT0S");
        return;
    }
    let part = |n: i64, unit: u8, out: &mut Vec<u8>| {
        if n != 0 {
            number(n, out);
            out.push(unit);
        }
    };
    out.push(b'P');
    part(p.years, b'Y', out);
    part(p.months, b'M', out);
    part(p.days, b'D', out);
    if [p.hours, p.minutes, p.seconds, p.micros] == [0; 4] {
        return;
    }
    out.push(b'T');
    part(p.hours, b'H', out);
    part(p.minutes, b'M', out);
    if p.seconds != 0 || p.micros != 0 {
        if p.seconds < 0 || p.micros < 0 {
            out.push(b'-');
        }
        p.write_seconds(false, out);
        out.push(b'S');
    }
}

fn write_standard(p: &IntervalParts, out: &mut Vec<u8>) {
    let negative = p.all().iter().any(|&n| n < 0);
    let positive = p.all().iter().any(|&n| n > 0);
    let year_month = p.years != 0 || p.months != 0;
    let day_time = p.all()[2..].iter().any(|&n| n != 0);
    if !negative && !positive {
        out.push(b'0');
        return;
    }
    let clock = |p: &IntervalParts, out: &mut Vec<u8>| {
        number(p.hours.abs(), out);
        out.push(b':');
        pad(p.minutes.abs(), 2, out);
        out.push(b':');
        p.write_seconds(true, out);
    };
    if (negative && positive) || (year_month && day_time) {
        // No value of the standard: every group has its sign, so that it is read back as what it is.
        let sign = |negative: bool| if negative { b'-' } else { b'+' };
        out.push(sign(p.years < 0 || p.months < 0));
        number(p.years.abs(), out);
        out.push(b'-');
        number(p.months.abs(), out);
        out.extend_from_slice(&[b' ', sign(p.days < 0)]);
        number(p.days.abs(), out);
        out.extend_from_slice(&[b' ', sign(p.all()[3..].iter().any(|&n| n < 0))]);
        clock(p, out);
        return;
    }
    let p = if negative {
        out.push(b'-');
        p.negated()
    } else {
        *p
    };
    if year_month {
        number(p.years, out);
        out.push(b'-');
        number(p.months, out);
        return;
    }
    if p.days != 0 {
        number(p.days, out);
        out.push(b' ');
    }
    clock(&p, out);
}

fn write_verbose(p: &IntervalParts, out: &mut Vec<u8>) {
    out.push(b'@');
    let (mut zero, mut ago) = (true, false);
    let units = ["year", "mon", "day", "hour", "min"];
    for (n, unit) in p.all().into_iter().zip(units) {
        if n == 0 {
            continue;
        }
        // The first field's sign is everybody's.
        if zero {
            ago = n < 0;
            zero = false;
        }
        let n = if ago { -n } else { n };
        out.push(b' ');
        number(n, out);
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if n != 1 {
            out.push(b's');
        }
    }
    if p.seconds != 0 || p.micros != 0 {
        let negative = p.seconds < 0 || p.micros < 0;
        out.push(b' ');
        if zero {
            ago = negative;
        } else if negative != ago {
            out.push(b'-');
        }
        zero = false;
        p.write_seconds(false, out);
        out.extend_from_slice(b" sec");
        if p.seconds.abs() != 1 || p.micros != 0 {
            out.push(b's');
        }
    }
    if zero {
        out.extend_from_slice(b" 0");
    }
    if ago {
        out.extend_from_slice(b" ago");
    }
}

/// Appends an interval in PostgreSQL's style.
pub fn write_interval(v: &Interval, out: &mut Vec<u8>) {
    let (mut zero, mut before) = (true, false);
    let (years, months) = (v.months / 12, v.months % 12);
    for (n, unit) in [(years, "year"), (months, "mon"), (v.days, "day")] {
        if n == 0 {
            continue;
        }
        if !zero {
            out.push(b' ');
        }
        if before && n > 0 {
            out.push(b'+');
        }
        out.extend_from_slice(n.to_string().as_bytes());
        out.push(b' ');
        out.extend_from_slice(unit.as_bytes());
        if n != 1 {
            out.push(b's');
        }
        before = n < 0;
        zero = false;
    }
    if zero || v.micros != 0 {
        if !zero {
            out.push(b' ');
        }
        if v.micros < 0 {
            out.push(b'-');
        } else if before {
            out.push(b'+');
        }
        let u = v.micros.unsigned_abs();
        let (hour, rest) = ((u / HOUR as u64) as i64, (u % HOUR as u64) as i64);
        pad(hour, 2, out);
        out.push(b':');
        pad(rest / MINUTE, 2, out);
        out.push(b':');
        pad(rest / SECOND % 60, 2, out);
        fraction(rest % SECOND, out);
    }
}
