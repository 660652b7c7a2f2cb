//! `to_char`, `to_date` and `to_timestamp` over dates and times: the pictures of the manual's chapter 9.8.
//!
//! Pictures for numbers are in [`number`].

#[path = "format_number.rs"]
mod number;
#[path = "format_parse.rs"]
mod parse;
#[path = "format_standard.rs"]
mod standard;

pub(super) use number::to_number;
pub(super) use parse::{to_date, to_timestamp};
pub(super) use standard::{ParsedTemplate, Template};

use super::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::MemoryReservation;
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::calendar::{self, DAY, HOUR, MINUTE, SECOND};
use logstead_sql_types::value::datetime::zone_at;
use logstead_sql_types::value::{Datum, Interval};
use logstead_types::SqlState;

/// What a piece of a picture stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FormatField {
    Hour12,
    Hour24,
    Minute,
    Second,
    Millis,
    Micros,
    Fraction(u8),
    SecondsOfDay,
    Meridiem { lower: bool, dots: bool },
    YearComma,
    Year(u8),
    IsoYear(u8),
    Era { lower: bool, dots: bool },
    MonthName(NameCase),
    MonthShort(NameCase),
    Month,
    DayName(NameCase),
    DayShort(NameCase),
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    WeekOfMonth,
    WeekOfYear,
    IsoWeek,
    Century,
    Julian,
    Quarter,
    Roman { lower: bool },
    Zone { lower: bool },
    ZoneHours,
    ZoneMinutes,
    Offset,
}

/// Letter case of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NameCase {
    Upper,
    Lower,
    Title,
}

/// A piece of a picture.
#[derive(Clone, Debug)]
pub(super) enum FormatNode {
    /// A field with its FM prefix and its TH suffix (lower case or upper case), and its name as the picture spells it.
    FormatField {
        field: FormatField,
        key: String,
        fill: bool,
        ordinal: Option<bool>,
    },
    /// Text in quotes, copied as it is.
    Text(String),
    /// Any other character, copied too; for reading it may be a separator.
    Bare(char),
    /// FX, which reading obeys.
    Exact,
}

/// Keywords; of several that fit the longest is taken, so longer ones stand first.
const KEYWORDS: &[(&str, FormatField)] = &[
    ("SSSSS", FormatField::SecondsOfDay),
    ("Y,YYY", FormatField::YearComma),
    ("MONTH", FormatField::MonthName(NameCase::Upper)),
    ("Month", FormatField::MonthName(NameCase::Title)),
    ("month", FormatField::MonthName(NameCase::Lower)),
    (
        "A.D.",
        FormatField::Era {
            lower: false,
            dots: true,
        },
    ),
    (
        "B.C.",
        FormatField::Era {
            lower: false,
            dots: true,
        },
    ),
    (
        "a.d.",
        FormatField::Era {
            lower: true,
            dots: true,
        },
    ),
    (
        "b.c.",
        FormatField::Era {
            lower: true,
            dots: true,
        },
    ),
    (
        "A.M.",
        FormatField::Meridiem {
            lower: false,
            dots: true,
        },
    ),
    (
        "P.M.",
        FormatField::Meridiem {
            lower: false,
            dots: true,
        },
    ),
    (
        "a.m.",
        FormatField::Meridiem {
            lower: true,
            dots: true,
        },
    ),
    (
        "p.m.",
        FormatField::Meridiem {
            lower: true,
            dots: true,
        },
    ),
    ("HH24", FormatField::Hour24),
    ("HH12", FormatField::Hour12),
    ("IDDD", FormatField::IsoDayOfYear),
    ("IYYY", FormatField::IsoYear(4)),
    ("SSSS", FormatField::SecondsOfDay),
    ("YYYY", FormatField::Year(4)),
    ("DAY", FormatField::DayName(NameCase::Upper)),
    ("Day", FormatField::DayName(NameCase::Title)),
    ("day", FormatField::DayName(NameCase::Lower)),
    ("DDD", FormatField::DayOfYear),
    ("FF1", FormatField::Fraction(1)),
    ("FF2", FormatField::Fraction(2)),
    ("FF3", FormatField::Fraction(3)),
    ("FF4", FormatField::Fraction(4)),
    ("FF5", FormatField::Fraction(5)),
    ("FF6", FormatField::Fraction(6)),
    ("IYY", FormatField::IsoYear(3)),
    ("MON", FormatField::MonthShort(NameCase::Upper)),
    ("Mon", FormatField::MonthShort(NameCase::Title)),
    ("mon", FormatField::MonthShort(NameCase::Lower)),
    ("TZH", FormatField::ZoneHours),
    ("TZM", FormatField::ZoneMinutes),
    ("YYY", FormatField::Year(3)),
    (
        "AD",
        FormatField::Era {
            lower: false,
            dots: false,
        },
    ),
    (
        "BC",
        FormatField::Era {
            lower: false,
            dots: false,
        },
    ),
    (
        "ad",
        FormatField::Era {
            lower: true,
            dots: false,
        },
    ),
    (
        "bc",
        FormatField::Era {
            lower: true,
            dots: false,
        },
    ),
    (
        "AM",
        FormatField::Meridiem {
            lower: false,
            dots: false,
        },
    ),
    (
        "PM",
        FormatField::Meridiem {
            lower: false,
            dots: false,
        },
    ),
    (
        "am",
        FormatField::Meridiem {
            lower: true,
            dots: false,
        },
    ),
    (
        "pm",
        FormatField::Meridiem {
            lower: true,
            dots: false,
        },
    ),
    ("CC", FormatField::Century),
    ("DD", FormatField::Day),
    ("DY", FormatField::DayShort(NameCase::Upper)),
    ("Dy", FormatField::DayShort(NameCase::Title)),
    ("dy", FormatField::DayShort(NameCase::Lower)),
    ("HH", FormatField::Hour12),
    ("ID", FormatField::IsoDayOfWeek),
    ("IW", FormatField::IsoWeek),
    ("IY", FormatField::IsoYear(2)),
    ("MI", FormatField::Minute),
    ("MM", FormatField::Month),
    ("MS", FormatField::Millis),
    ("OF", FormatField::Offset),
    ("RM", FormatField::Roman { lower: false }),
    ("rm", FormatField::Roman { lower: true }),
    ("SS", FormatField::Second),
    ("TZ", FormatField::Zone { lower: false }),
    ("tz", FormatField::Zone { lower: true }),
    ("US", FormatField::Micros),
    ("WW", FormatField::WeekOfYear),
    ("YY", FormatField::Year(2)),
    ("D", FormatField::DayOfWeek),
    ("I", FormatField::IsoYear(1)),
    ("J", FormatField::Julian),
    ("Q", FormatField::Quarter),
    ("W", FormatField::WeekOfMonth),
    ("Y", FormatField::Year(1)),
];

/// Keywords whose lower-case spelling means the same as the upper-case one.
fn either_case(f: FormatField) -> bool {
    !matches!(
        f,
        FormatField::MonthName(_)
            | FormatField::MonthShort(_)
            | FormatField::DayName(_)
            | FormatField::DayShort(_)
            | FormatField::Era { .. }
            | FormatField::Meridiem { .. }
            | FormatField::Roman { .. }
            | FormatField::Zone { .. }
    )
}

/// Takes a picture apart.
pub(super) fn pieces(picture: &str) -> Result<Vec<FormatNode>> {
    let mut out: Vec<FormatNode> = Vec::new();
    let mut rest = picture;
    let mut room = MemoryReservation::default();
    while let Some(c) = rest.chars().next() {
        room.reserve(&mut out, 1)?;
        if out.len() % 1024 == 1023 {
            check_for_interrupts()?;
        }
        if c == '"' {
            let mut text = String::new();
            let mut chars = rest[1..].chars();
            loop {
                match chars.next() {
                    None | Some('"') => break,
                    // Whatever stands behind a backslash is meant.
                    Some('\\') => text.push(chars.next().unwrap_or('\\')),
                    Some(c) => text.push(c),
                }
            }
            out.push(FormatNode::Text(text));
            rest = chars.as_str();
            continue;
        }
        let mut fill = false;
        match rest.get(..2) {
            Some("FM" | "fm") => (fill, rest) = (true, &rest[2..]),
            Some("TM" | "tm") => rest = &rest[2..],
            _ => {}
        }
        let Some(c) = rest.chars().next() else { break };
        if let Some(behind) = rest.strip_prefix("FX").or(rest.strip_prefix("fx")) {
            out.push(FormatNode::Exact);
            rest = behind;
            continue;
        }
        let found = KEYWORDS.iter().find(|(k, f)| {
            rest.starts_with(k)
                || (either_case(*f)
                    && rest
                        .get(..k.len())
                        .is_some_and(|b| b.bytes().eq(k.bytes().map(|k| k.to_ascii_lowercase()))))
        });
        let Some((key, field)) = found else {
            if c == '"' {
                continue;
            }
            // A backslash means something in front of a quote alone.
            let escaped = rest.strip_prefix("\\\"");
            out.push(FormatNode::Bare(if escaped.is_some() { '"' } else { c }));
            rest = escaped.unwrap_or(&rest[c.len_utf8()..]);
            continue;
        };
        let key = rest[..key.len()].to_owned();
        rest = &rest[key.len()..];
        let mut ordinal = None;
        loop {
            match rest.get(..2) {
                Some("TH") => ordinal = Some(false),
                Some("th") => ordinal = Some(true),
                Some("SP") => {}
                _ => break,
            }
            rest = &rest[2..];
        }
        out.push(FormatNode::FormatField {
            field: *field,
            key,
            fill,
            ordinal,
        });
    }
    Ok(out)
}

/// English month names.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
/// English day names, from Sunday.
pub(super) const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
/// Roman numerals of the months.
pub(super) const ROMAN: [&str; 12] = [
    "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII",
];

fn cased(name: &str, case: NameCase) -> String {
    match case {
        NameCase::Upper => name.to_ascii_uppercase(),
        NameCase::Lower => name.to_ascii_lowercase(),
        NameCase::Title => name.to_owned(),
    }
}

/// "st", "nd", "rd" or "th" for a number.
pub(super) fn ordinal_suffix(digits: &str, lower: bool) -> &'static str {
    let n: i64 = digits.trim_start_matches('-').parse().unwrap_or(0);
    let i = match (n % 100, n % 10) {
        (11..=13, _) => 3,
        (_, 1) => 0,
        (_, 2) => 1,
        (_, 3) => 2,
        _ => 3,
    };
    if lower {
        ["st", "nd", "rd", "th"][i]
    } else {
        ["ST", "ND", "RD", "TH"][i]
    }
}

/// What is formatted: a moment taken apart, or an interval.
struct Value {
    year: i64,
    month: i64,
    day: i64,
    /// Day number; 0 for intervals.
    days: i64,
    hour: i64,
    minute: i64,
    second: i64,
    micros: i64,
    /// Offset in seconds, for timestamptz.
    offset: Option<i64>,
    zone_name: String,
    interval: bool,
}

impl Value {
    fn day_of_year(&self) -> i64 {
        match self.interval {
            true => self.year * 360 + self.month * 30 + self.day,
            false => calendar::day_of_year(self.days),
        }
    }
}

/// A Julian day of an interval's parts, as if they were a date's: PostgreSQL computes one even where there is no such
/// month.
fn julian_of_parts(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year + 4800, month + 1)
    } else {
        (year + 4799, month + 13)
    };
    let century = year / 100;
    year * 365 - 32_167 + year / 4 - century + century / 4 + 7834 * month / 256 + day
}

fn padded(v: i64, width: usize, fill: bool) -> String {
    if fill {
        return v.to_string();
    }
    if v < 0 {
        format!("-{:0w$}", -v, w = width)
    } else {
        format!("{v:0width$}")
    }
}

fn field_text(f: FormatField, fill: bool, v: &Value) -> String {
    let name = |s: String, width: usize| if fill { s } else { format!("{s:width$}") };
    let shown = if v.interval || v.year > 0 {
        v.year
    } else {
        1 - v.year
    };
    match f {
        FormatField::Hour12 => {
            let h = v.hour % 12;
            // The sign of an interval's hours takes a place, here too.
            let width = if v.hour < 0 { 3 } else { 2 };
            padded(if h == 0 { 12 } else { h }, width, fill)
        }
        FormatField::Hour24 => padded(v.hour, 2, fill),
        FormatField::Minute => padded(v.minute, 2, fill),
        FormatField::Second => padded(v.second, 2, fill),
        FormatField::Millis => padded(v.micros / 1000, 3, false),
        FormatField::Micros => padded(v.micros, 6, false),
        FormatField::Fraction(n) => {
            let cut = v.micros / 10i64.pow(6 - u32::from(n));
            padded(cut, usize::from(n), false)
        }
        FormatField::SecondsOfDay => (v.hour * 3600 + v.minute * 60 + v.second).to_string(),
        FormatField::Meridiem { lower, dots } => {
            let s = match (v.hour.rem_euclid(24) >= 12, dots) {
                (true, true) => "P.M.",
                (true, false) => "PM",
                (false, true) => "A.M.",
                (false, false) => "AM",
            };
            if lower {
                s.to_ascii_lowercase()
            } else {
                s.to_owned()
            }
        }
        FormatField::YearComma => format!("{},{:03}", shown / 1000, shown % 1000),
        FormatField::Year(n) => year_text(shown, n, fill),
        FormatField::IsoYear(n) => {
            let y = if v.interval {
                v.year
            } else {
                calendar::iso_week(v.days).0
            };
            year_text(if y > 0 || v.interval { y } else { 1 - y }, n, fill)
        }
        FormatField::Era { lower, dots } => {
            let s = match (v.year <= 0 && !v.interval, dots) {
                (true, true) => "B.C.",
                (true, false) => "BC",
                (false, true) => "A.D.",
                (false, false) => "AD",
            };
            if lower {
                s.to_ascii_lowercase()
            } else {
                s.to_owned()
            }
        }
        FormatField::MonthName(c) => {
            month(v).map_or(String::new(), |m| name(cased(MONTHS[m], c), 9))
        }
        FormatField::MonthShort(c) => month(v).map_or(String::new(), |m| cased(&MONTHS[m][..3], c)),
        FormatField::Month => padded(v.month, 2, fill),
        FormatField::DayName(c) => name(cased(DAYS[calendar::weekday(v.days) as usize], c), 9),
        FormatField::DayShort(c) => cased(&DAYS[calendar::weekday(v.days) as usize][..3], c),
        FormatField::DayOfYear => padded(v.day_of_year(), 3, fill),
        FormatField::IsoDayOfYear => {
            let (y, _) = calendar::iso_week(v.days);
            padded(v.days - calendar::iso_week_start(y, 1) + 1, 3, fill)
        }
        FormatField::Day => padded(v.day, 2, fill),
        FormatField::DayOfWeek => (calendar::weekday(v.days) + 1).to_string(),
        FormatField::IsoDayOfWeek => ((calendar::weekday(v.days) + 6) % 7 + 1).to_string(),
        FormatField::WeekOfMonth => ((v.day - 1) / 7 + 1).to_string(),
        FormatField::WeekOfYear => padded((v.day_of_year() - 1) / 7 + 1, 2, fill),
        FormatField::IsoWeek => padded(calendar::iso_week(v.days).1, 2, fill),
        FormatField::Century => {
            let c = if v.interval {
                v.year / 100
            } else if v.year > 0 {
                (v.year - 1) / 100 + 1
            } else {
                v.year / 100 - 1
            };
            if (-99..=99).contains(&c) {
                padded(c, 2, fill)
            } else {
                c.to_string()
            }
        }
        FormatField::Julian if v.interval => julian_of_parts(v.year, v.month, v.day).to_string(),
        FormatField::Julian => (v.days + calendar::EPOCH_JULIAN).to_string(),
        FormatField::Quarter => month(v).map_or(String::new(), |m| (m / 3 + 1).to_string()),
        FormatField::Roman { lower } => roman_month(v).map_or(String::new(), |m| {
            let s = if lower {
                ROMAN[m].to_ascii_lowercase()
            } else {
                ROMAN[m].to_owned()
            };
            name(s, 4)
        }),
        FormatField::Zone { lower } => {
            if lower {
                v.zone_name.to_ascii_lowercase()
            } else {
                v.zone_name.clone()
            }
        }
        FormatField::ZoneHours => v.offset.map_or(String::new(), |o| {
            format!("{}{:02}", if o < 0 { '-' } else { '+' }, o.abs() / 3600)
        }),
        FormatField::ZoneMinutes => v
            .offset
            .map_or(String::new(), |o| format!("{:02}", o.abs() / 60 % 60)),
        FormatField::Offset => v.offset.map_or(String::new(), |o| {
            let sign = if o < 0 { '-' } else { '+' };
            let minutes = o.abs() / 60 % 60;
            if minutes == 0 {
                format!("{sign}{:02}", o.abs() / 3600)
            } else {
                format!("{sign}{:02}:{minutes:02}", o.abs() / 3600)
            }
        }),
    }
}

fn year_text(y: i64, digits: u8, fill: bool) -> String {
    match digits {
        4 => padded(y, 4, fill),
        n => padded(y % 10i64.pow(u32::from(n)), usize::from(n), fill),
    }
}

/// The month that RM names: of an interval of whole years the last one, or the first before none.
fn roman_month(v: &Value) -> Option<usize> {
    match (v.interval, v.month, v.year) {
        (true, 0, 0) => None,
        (true, 0, years) => Some(if years > 0 { 11 } else { 0 }),
        _ => month(v),
    }
}

fn month(v: &Value) -> Option<usize> {
    if v.interval && v.month == 0 {
        return None;
    }
    // A negative month of an interval counts back from the year's end.
    Some(if v.month > 0 {
        v.month as usize - 1
    } else {
        (v.month + 12).clamp(0, 11) as usize
    })
}

/// Fields that an interval does not have.
fn of_dates_only(f: FormatField) -> bool {
    matches!(
        f,
        FormatField::Era { .. }
            | FormatField::MonthName(_)
            | FormatField::MonthShort(_)
            | FormatField::DayName(_)
            | FormatField::DayShort(_)
            | FormatField::DayOfWeek
            | FormatField::IsoDayOfWeek
            | FormatField::Zone { .. }
            | FormatField::ZoneHours
            | FormatField::ZoneMinutes
            | FormatField::Offset
    )
}

fn render(picture: &str, v: &Value) -> Result<String> {
    let mut out = String::new();
    for piece in pieces(picture)? {
        match piece {
            FormatNode::Text(t) => out.push_str(&t),
            FormatNode::Bare(c) => out.push(c),
            FormatNode::Exact => {}
            FormatNode::FormatField { field, .. } if v.interval && of_dates_only(field) => {
                return Err(SqlError::new(
                    SqlState::INVALID_DATETIME_FORMAT,
                    "invalid format specification for an interval value",
                )
                .hint("Intervals are not tied to specific calendar dates."));
            }
            FormatNode::FormatField {
                field,
                fill,
                ordinal,
                key: _,
            } => {
                let text = field_text(field, fill, v);
                out.push_str(&text);
                if let Some(lower) = ordinal
                    && text.bytes().any(|b| b.is_ascii_digit())
                {
                    out.push_str(ordinal_suffix(&text, lower));
                }
            }
        }
    }
    Ok(out)
}

fn of_moment(local: i64, offset: Option<i64>, zone_name: String) -> Value {
    let p = calendar::parts(local);
    Value {
        year: p.year,
        month: p.month,
        day: p.day,
        days: local.div_euclid(DAY),
        hour: p.time / HOUR,
        minute: p.time / MINUTE % 60,
        second: p.time / SECOND % 60,
        micros: p.time % SECOND,
        offset,
        zone_name,
        interval: false,
    }
}

fn of_interval(v: &Interval) -> Value {
    Value {
        year: i64::from(v.months / 12),
        month: i64::from(v.months % 12),
        day: i64::from(v.days),
        days: 0,
        hour: v.micros / HOUR,
        minute: v.micros / MINUTE % 60,
        second: v.micros / SECOND % 60,
        micros: v.micros % SECOND,
        offset: None,
        zone_name: String::new(),
        interval: true,
    }
}

/// `to_char` of anything that has a picture
pub(super) fn to_char(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let [d, picture] = a else {
        return Err(bad_args(a));
    };
    let picture = picture.as_str()?;
    match d {
        // PostgreSQL gives NULL for infinite moments and for empty pictures.
        Datum::Timestamp(i64::MIN | i64::MAX) | Datum::TimestampTz(i64::MIN | i64::MAX) => {
            Ok(Datum::Null)
        }
        Datum::Timestamp(_) | Datum::TimestampTz(_) | Datum::Interval(_) if picture.is_empty() => {
            Ok(Datum::Null)
        }
        Datum::Timestamp(t) => {
            render(picture, &of_moment(*t, Some(0), String::new())).map(Datum::text)
        }
        Datum::TimestampTz(t) => {
            let tz = cx.time_zone();
            let (local, offset) = calendar::utc_to_local(*t, tz);
            render(
                picture,
                &of_moment(local, Some(offset), zone_at(*t, tz, offset)),
            )
            .map(Datum::text)
        }
        Datum::Interval(v) => render(picture, &of_interval(v)).map(Datum::text),
        _ => number::number_to_char(d, picture).map(Datum::text),
    }
}
