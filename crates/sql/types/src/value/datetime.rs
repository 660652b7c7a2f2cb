//! Text output of date and time types (DateStyle ISO; the other styles in `date_style`, intervals in
//! `interval_output`), and the entry points of their input.
//!
//! Input is in [`input`]: it takes everything PostgreSQL's usual spellings take, in the order of `DateStyle` where the
//! order is open.

#[path = "date_style.rs"]
mod date_style;
#[path = "datetime_input.rs"]
pub mod input;
#[path = "interval_input.rs"]
mod interval_input;
#[path = "interval_output.rs"]
mod interval_output;

pub use date_style::{DateForm, DateStyle, UNNAMED, zone_at};
pub use input::{
    DateOrder, parse_date, parse_time, parse_timestamp, parse_timestamptz, parse_timetz,
};
pub use interval_input::{fields, parse_interval, parse_interval_as, read_in, within};
pub use interval_output::{IntervalStyle, write_interval};

use super::calendar::{self, DAY, HOUR, MINUTE, SECOND};
use crate::error::Result;
use jiff::tz::TimeZone;

fn pad(v: i64, width: usize, out: &mut Vec<u8>) {
    let mut buf = [b'0'; 20];
    let mut i = buf.len();
    let mut u = v.unsigned_abs();
    while u > 0 {
        i -= 1;
        buf[i] = b'0' + (u % 10) as u8;
        u /= 10;
    }
    out.extend_from_slice(&buf[i.min(buf.len() - width)..]);
}

fn ymd(year: i64, month: i64, day: i64, out: &mut Vec<u8>) {
    pad(if year > 0 { year } else { 1 - year }, 4, out);
    out.push(b'-');
    pad(month, 2, out);
    out.push(b'-');
    pad(day, 2, out);
}

/// Appends a date.
pub fn write_date(d: i32, out: &mut Vec<u8>) {
    match d {
        i32::MIN => out.extend_from_slice(b"-infinity"),
        i32::MAX => out.extend_from_slice(b"infinity"),
        _ => {
            let (y, m, day) = calendar::civil_from_days(i64::from(d));
            ymd(y, m, day, out);
            if y <= 0 {
                out.extend_from_slice(b" BC");
            }
        }
    }
}

fn fraction(micros: i64, out: &mut Vec<u8>) {
    if micros != 0 {
        out.push(b'.');
        pad(micros, 6, out);
        while out.last() == Some(&b'0') {
            out.pop();
        }
    }
}

/// Appends a time of day.
pub fn write_time(t: i64, out: &mut Vec<u8>) {
    pad(t / HOUR, 2, out);
    out.push(b':');
    pad(t / MINUTE % 60, 2, out);
    out.push(b':');
    pad(t / SECOND % 60, 2, out);
    fraction(t % SECOND, out);
}

fn special(t: i64, out: &mut Vec<u8>) -> bool {
    match t {
        i64::MIN => out.extend_from_slice(b"-infinity"),
        i64::MAX => out.extend_from_slice(b"infinity"),
        _ => return false,
    }
    true
}

/// Appends a timestamp without zone.
pub fn write_timestamp(t: i64, out: &mut Vec<u8>) {
    if special(t, out) {
        return;
    }
    let p = calendar::parts(t);
    ymd(p.year, p.month, p.day, out);
    out.push(b' ');
    write_time(p.time, out);
    if p.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Appends an offset as PostgreSQL prints it: +HH, +HH:MM or +HH:MM:SS.
pub fn write_offset(seconds: i64, out: &mut Vec<u8>) {
    out.push(if seconds < 0 { b'-' } else { b'+' });
    let s = seconds.abs();
    pad(s / 3600, 2, out);
    if s % 3600 != 0 {
        out.push(b':');
        pad(s / 60 % 60, 2, out);
        if s % 60 != 0 {
            out.push(b':');
            pad(s % 60, 2, out);
        }
    }
}

/// Appends a timestamptz in the zone `tz`.
pub fn write_timestamptz(t: i64, tz: &TimeZone, out: &mut Vec<u8>) {
    if special(t, out) {
        return;
    }
    let (local, offset) = calendar::utc_to_local(t, tz);
    let p = calendar::parts(local);
    ymd(p.year, p.month, p.day, out);
    out.push(b' ');
    write_time(p.time, out);
    write_offset(offset, out);
    if p.year <= 0 {
        out.extend_from_slice(b" BC");
    }
}

/// Rounds microseconds to `precision` digits of a second, half away from zero.
pub fn round_micros(t: i64, precision: i32) -> i64 {
    let Some(unit) = 10i64
        .checked_pow((6 - precision).max(0) as u32)
        .filter(|&u| u > 1)
    else {
        return t;
    };
    if t == i64::MIN || t == i64::MAX {
        return t;
    }
    let half = unit / 2;
    if t >= 0 {
        t.saturating_add(half) / unit * unit
    } else {
        -((-t).saturating_add(half) / unit * unit)
    }
}

/// UTC moment as a timestamp in the zone `tz` (infinities stay).
pub fn to_local(t: i64, tz: &TimeZone) -> i64 {
    if t == i64::MIN || t == i64::MAX {
        t
    } else {
        calendar::utc_to_local(t, tz).0
    }
}

/// Timestamp in the zone `tz` as a UTC moment (infinities stay).
pub fn to_utc(t: i64, tz: &TimeZone) -> Result<i64> {
    if t == i64::MIN || t == i64::MAX {
        Ok(t)
    } else {
        calendar::local_to_utc(t, tz)
    }
}

/// Midnight of a date as a timestamp.
pub fn date_to_timestamp(d: i32) -> Result<i64> {
    match d {
        i32::MIN => Ok(i64::MIN),
        i32::MAX => Ok(i64::MAX),
        _ => calendar::combine(i64::from(d), 0).map_err(|_| {
            crate::error::SqlError::new(
                logstead_types::SqlState::DATETIME_FIELD_OVERFLOW,
                "date out of range for timestamp",
            )
        }),
    }
}

/// Date of a timestamp.
pub fn timestamp_to_date(t: i64) -> i32 {
    match t {
        i64::MIN => i32::MIN,
        i64::MAX => i32::MAX,
        _ => t.div_euclid(DAY) as i32,
    }
}
