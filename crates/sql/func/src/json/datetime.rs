//! Dates and times that `.datetime()` makes in a jsonpath: read by ISO 8601 or by a template, compared, and written.

use crate::format::{ParsedTemplate, Template};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::calendar::{self, DAY, SECOND};
use logstead_sql_types::value::datetime::{input, write_date, write_time, write_timestamp};
use logstead_sql_types::value::timetz::TimeTz;
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::OnceLock;

/// ISO formats of dates, times and timestamps, in the order in which they are tried; timestamps with `T`, too, as
/// `to_json` writes them.
const FORMATS: [&str; 19] = [
    "yyyy-mm-dd",
    "HH24:MI:SS.USTZH:TZM",
    "HH24:MI:SS.USTZH",
    "HH24:MI:SSTZH:TZM",
    "HH24:MI:SSTZH",
    "HH24:MI:SS.US",
    "HH24:MI:SS",
    "yyyy-mm-dd HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd HH24:MI:SS.USTZH",
    "yyyy-mm-dd HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd HH24:MI:SSTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SS.USTZH",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH:TZM",
    "yyyy-mm-dd\"T\"HH24:MI:SSTZH",
    "yyyy-mm-dd HH24:MI:SS.US",
    "yyyy-mm-dd HH24:MI:SS",
    "yyyy-mm-dd\"T\"HH24:MI:SS.US",
    "yyyy-mm-dd\"T\"HH24:MI:SS",
];

/// A date or a time.
#[derive(Clone, Copy, Debug)]
pub(super) enum JsonDatetime {
    Date(i32),
    Time(i64),
    TimeTz(TimeTz),
    Timestamp(i64),
    /// In UTC, and the seconds east of it that the text said.
    TimestampTz(i64, i64),
}

impl JsonDatetime {
    /// The type's name, as `.type()` gives it.
    pub(super) fn type_name(self) -> &'static str {
        match self {
            JsonDatetime::Date(_) => "date",
            JsonDatetime::Time(_) => "time without time zone",
            JsonDatetime::TimeTz(_) => "time with time zone",
            JsonDatetime::Timestamp(_) => "timestamp without time zone",
            JsonDatetime::TimestampTz(..) => "timestamp with time zone",
        }
    }

    /// As XML Schema writes it.
    pub(super) fn text(self) -> String {
        let mut out = Vec::new();
        let stamp = |local: i64, out: &mut Vec<u8>| {
            let begin = out.len();
            write_timestamp(local, out);
            if let Some(blank) = out[begin..].iter().position(|b| *b == b' ') {
                out[begin + blank] = b'T';
            }
        };
        match self {
            JsonDatetime::Date(day) => write_date(day, &mut out),
            JsonDatetime::Time(time) => write_time(time, &mut out),
            JsonDatetime::TimeTz(time) => {
                write_time(time.micros, &mut out);
                write_offset(-i64::from(time.west), &mut out);
            }
            JsonDatetime::Timestamp(local) => stamp(local, &mut out),
            JsonDatetime::TimestampTz(utc, east) => {
                stamp(utc + east * SECOND, &mut out);
                // The era stands behind the zone.
                let era = out.ends_with(b" BC");
                if era {
                    out.truncate(out.len() - 3);
                }
                write_offset(east, &mut out);
                if era {
                    out.extend_from_slice(b" BC");
                }
            }
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    /// The order of two, if they can be compared; with a time zone if the caller has one.
    pub(super) fn compare(
        self,
        other: JsonDatetime,
        zone: Option<&dyn DateTimeContext>,
    ) -> Result<Option<Ordering>> {
        use JsonDatetime as M;
        Ok(Some(match (self, other) {
            (M::Date(a), M::Date(b)) => a.cmp(&b),
            (M::Time(a), M::Time(b)) => a.cmp(&b),
            (M::TimeTz(a), M::TimeTz(b)) => a.compare(&b),
            (M::Time(a), M::TimeTz(b)) => in_zone(a, zone)?.compare(&b),
            (M::TimeTz(a), M::Time(b)) => a.compare(&in_zone(b, zone)?),
            (M::Timestamp(a), M::Timestamp(b)) => a.cmp(&b),
            (M::Date(a), M::Timestamp(b)) => midnight(a).cmp(&i128::from(b)),
            (M::Timestamp(a), M::Date(b)) => i128::from(a).cmp(&midnight(b)),
            (M::TimestampTz(a, _), M::TimestampTz(b, _)) => a.cmp(&b),
            (M::Date(a), M::TimestampTz(b, _)) => {
                utc("date", midnight(a), zone)?.cmp(&i128::from(b))
            }
            (M::TimestampTz(a, _), M::Date(b)) => {
                i128::from(a).cmp(&utc("date", midnight(b), zone)?)
            }
            (M::Timestamp(a), M::TimestampTz(b, _)) => {
                utc("timestamp", i128::from(a), zone)?.cmp(&i128::from(b))
            }
            (M::TimestampTz(a, _), M::Timestamp(b)) => {
                i128::from(a).cmp(&utc("timestamp", i128::from(b), zone)?)
            }
            _ => return Ok(None),
        }))
    }
}

/// Hours and minutes always, and seconds if there are any.
fn write_offset(east: i64, out: &mut Vec<u8>) {
    let (sign, seconds) = (if east < 0 { '-' } else { '+' }, east.abs());
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    out.extend_from_slice(format!("{sign}{hours:02}:{minutes:02}").as_bytes());
    if seconds % 60 != 0 {
        out.extend_from_slice(format!(":{:02}", seconds % 60).as_bytes());
    }
}

/// A day's first moment; it may lie behind all timestamps.
fn midnight(day: i32) -> i128 {
    i128::from(day) * i128::from(DAY)
}

fn needs_zone(from: &str, to: &str) -> SqlError {
    SqlError::new(
        SqlState::FEATURE_NOT_SUPPORTED,
        format!("cannot convert value from {from} to {to} without time zone usage"),
    )
    .hint("Use *_tz() function for time zone support.")
}

/// A local moment in UTC. What is out of range stays so.
fn utc(from: &str, local: i128, zone: Option<&dyn DateTimeContext>) -> Result<i128> {
    let cx = zone.ok_or_else(|| needs_zone(from, "timestamptz"))?;
    let moment = i64::try_from(local).ok();
    let moment = moment.and_then(|local| calendar::local_to_utc(local, cx.time_zone()).ok());
    Ok(moment.map_or(local, i128::from))
}

/// A time of day in the session's zone, as it is today.
fn in_zone(time: i64, zone: Option<&dyn DateTimeContext>) -> Result<TimeTz> {
    let cx = zone.ok_or_else(|| needs_zone("time", "timetz"))?;
    let east = input::offset_today(time, cx)?;
    Ok(TimeTz {
        micros: time,
        west: i32::try_from(-east).unwrap_or(0),
    })
}

/// Reads a text by a template, whose own errors nothing forgives: those are the outer ones.
pub(super) fn read(text: &str, template: Option<&str>) -> Result<Result<JsonDatetime>> {
    if let Some(template) = template {
        let template = Template::standard(template)?;
        return Ok(template.read(text).and_then(moment));
    }
    static KNOWN: OnceLock<Result<Vec<Template>>> = OnceLock::new();
    let known = KNOWN.get_or_init(|| FORMATS.iter().map(|f| Template::standard(f)).collect());
    let known = known.as_ref().map_err(Clone::clone)?;
    let found = known
        .iter()
        .find_map(|t| t.read(text).and_then(moment).ok());
    Ok(found.ok_or_else(|| {
        SqlError::new(
            SqlState::INVALID_ARGUMENT_FOR_SQL_JSON_DATETIME_FUNCTION,
            format!("datetime format is not recognized: \"{text}\""),
        )
        .hint("Use a datetime template argument to specify the input data format.")
    }))
}

/// What a text that was read is: as much as its template has of a date, a time and a zone.
fn moment(read: ParsedTemplate) -> Result<JsonDatetime> {
    let malformed = |message: &str| Err(SqlError::new(SqlState::INVALID_DATETIME_FORMAT, message));
    match (read.date, read.time, read.is_zoned) {
        (Some(days), Some(time), true) => {
            let Some(east) = read.east else {
                return malformed("missing time zone in input string for type timestamptz");
            };
            let local = calendar::combine(days, time)?;
            let utc = calendar::check_timestamp(local - east * SECOND)?;
            Ok(JsonDatetime::TimestampTz(utc, east))
        }
        (Some(days), Some(time), false) => {
            calendar::combine(days, time).map(JsonDatetime::Timestamp)
        }
        (Some(_), None, true) => malformed("datetime format is zoned but not timed"),
        (Some(days), None, false) => Ok(JsonDatetime::Date(days as i32)),
        (None, Some(time), true) => match read.east {
            Some(east) => Ok(JsonDatetime::TimeTz(TimeTz {
                micros: time,
                west: i32::try_from(-east).unwrap_or(0),
            })),
            None => malformed("missing time zone in input string for type timetz"),
        },
        (None, Some(time), false) => Ok(JsonDatetime::Time(time)),
        (None, None, _) => malformed("datetime format is not dated and not timed"),
    }
}
