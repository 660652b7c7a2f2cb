//! Time zones by their names.
//!
//! Owns: the meaning of TimeZone's value, and the zones that were read so far: a bounded number of them stays for
//! good.

use jiff::tz::TimeZone;
use logstead_sql_types::value::datetime::UNNAMED;
use parking_lot::Mutex;
use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::OnceLock;

/// Different time zones that one process will remember: all names of the database and as many made-up ones.
const TIME_ZONES_MAX: usize = 4096;

/// Reads a time zone, canonical name and rules. Each is read once and kept for the life of the process, so that a
/// session
/// switches zones for the price of a lookup; their number is bounded.
pub(super) fn read_time_zone(value: &str) -> Option<(String, &'static TimeZone)> {
    type Zones = HashMap<String, (String, &'static TimeZone)>;
    static ZONES: OnceLock<Mutex<Zones>> = OnceLock::new();
    let value = value.trim();
    let mut zones = ZONES.get_or_init(Mutex::default).lock();
    if let Some(known) = zones.get(value) {
        return Some(known.clone());
    }
    let (name, zone) = parse_time_zone(value)?;
    if zones.len() >= TIME_ZONES_MAX {
        return None;
    }
    let kept = (name, &*Box::leak(Box::new(zone)));
    zones.insert(value.to_owned(), kept.clone());
    Some(kept)
}

/// Parses a time zone: a name of the database, UTC's other names, a POSIX form, or hours east of Greenwich.
fn parse_time_zone(value: &str) -> Option<(String, TimeZone)> {
    let upper = value.to_ascii_uppercase();
    if matches!(upper.as_str(), "UTC" | "DEFAULT" | "LOCAL") {
        return Some(("UTC".to_owned(), TimeZone::UTC));
    }
    if let Ok(hours) = value.parse::<f64>()
        && hours.abs() <= 168.0
    {
        // The POSIX form that PostgreSQL shows has the sign the other way round.
        let seconds = (hours * 3600.0).round() as i64;
        let (sign, opposite) = if seconds < 0 { ('-', '+') } else { ('+', '-') };
        let (h, m) = (seconds.abs() / 3600, seconds.abs() / 60 % 60);
        let digits = if m == 0 {
            format!("{h:02}")
        } else {
            format!("{h:02}:{m:02}")
        };
        let zone = jiff::tz::Offset::from_seconds(i32::try_from(seconds).ok()?)
            .ok()?
            .to_time_zone();
        return Some((format!("<{sign}{digits}>{opposite}{digits}"), zone));
    }
    if let Ok(zone) = TimeZone::get(value) {
        let name = zone.iana_name().unwrap_or(value).to_owned();
        return Some((name, zone));
    }
    // A bare offset with minutes is a POSIX zone without a name: its sign counts west of Greenwich.
    if value.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '-' | '+')) {
        return TimeZone::posix(&format!("<{UNNAMED}>{value}"))
            .ok()
            .map(|zone| (value.to_owned(), zone));
    }
    // PostgreSQL's own name of an offset with minutes has a colon, which no POSIX name may have.
    let posix = match value.split_once('>') {
        Some((name, rest)) if name.starts_with('<') => {
            Cow::Owned(format!("{}>{rest}", name.replace(':', "")))
        }
        _ => Cow::Borrowed(value),
    };
    TimeZone::posix(&posix)
        .ok()
        .map(|zone| (value.to_owned(), zone))
}
