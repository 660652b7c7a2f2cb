//! `to_date` and `to_timestamp`: reading text by a picture.
//!
//! Fields are read one after the other, each as wide as it is where the next one begins with a digit, and as far as its
//! digits go where not; then they are put together. Between fields spaces and separators of picture and text match one
//! for one, or not at all, and a space more in the text takes the place of a character of the picture. A picture with
//! FX takes character for character, and so does SQL/JSON, which wants the same separators, too
//! (`FromCharMode::Standard`).

use super::{DAYS, FormatField, FormatNode, MONTHS, ROMAN, pieces};
use crate::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::value::DateTimeContext;
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::calendar::{self, HOUR, MINUTE, SECOND};
use logstead_types::SqlState;

/// How strictly text and picture must agree.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum FromCharMode {
    Lenient,
    /// That of SQL's standard: the whole text by the whole picture.
    Standard,
}

/// Which calendar's weeks the picture speaks of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FromCharDateMode {
    Gregorian,
    Iso,
}

/// What has been read. 0 is what is not there, as a field that says 0 says nothing.
#[derive(Default)]
pub(super) struct TmFromChar {
    convention: Option<FromCharDateMode>,
    year: i64,
    /// Places of the year's field.
    year_places: u8,
    century: i64,
    month: i64,
    day: i64,
    /// From 1, Sunday.
    weekday: i64,
    day_of_year: i64,
    week: i64,
    week_of_month: i64,
    julian: i64,
    hour: i64,
    pm: i64,
    twelve: bool,
    minute: i64,
    second: i64,
    seconds_of_day: i64,
    millis: i64,
    micros: i64,
    /// What FF1 to FF6 round to.
    places: Option<u8>,
    bc: i64,
    zone_sign: i64,
    zone_hours: i64,
    zone_minutes: i64,
}

fn format_error(text: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::INVALID_DATETIME_FORMAT, text)
}

fn no_such_name(shown: &str, name: &str) -> SqlError {
    format_error(format!("invalid value \"{shown}\" for \"{name}\""))
        .detail("The given value did not match any of the allowed values for this field.")
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t'..='\r')
}

fn is_separator(c: char) -> bool {
    c.is_ascii_punctuation()
}

/// A text being read.
struct TemplateReader<'a> {
    text: &'a str,
    at: usize,
}

impl TemplateReader<'_> {
    fn rest(&self) -> &str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn next(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn skip(&mut self) {
        self.at += self.next().map_or(0, char::len_utf8);
    }

    fn skip_spaces(&mut self) -> i64 {
        let spaces = self.rest().bytes().take_while(|b| is_space(char::from(*b)));
        let spaces = spaces.count();
        self.at += spaces;
        spaces as i64
    }

    /// One of some names; how many characters the longest has is no matter, the first that fits is it.
    fn named(&mut self, names: &[&str], key: &str) -> Result<i64> {
        let rest = self.rest();
        let found = names.iter().position(|name| {
            rest.get(..name.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(name))
        });
        let Some(found) = found else {
            let shown: String = rest.chars().take_while(|c| !is_space(*c)).collect();
            return Err(no_such_name(&shown, key));
        };
        self.at += names.get(found).map_or(0, |name| name.len());
        Ok(found as i64)
    }

    /// A number: of just so many characters, or as far as its digits go. Gives how many characters it took, too.
    fn number(&mut self, len: usize, fixed: bool, key: &str) -> Result<(i64, usize)> {
        let begin = self.at;
        self.skip_spaces();
        let shown: String = self.rest().chars().take(len).collect();
        let taken = if fixed { shown.as_str() } else { self.rest() };
        let signed = usize::from(taken.starts_with(['+', '-']));
        let digits = taken
            .bytes()
            .skip(signed)
            .take_while(u8::is_ascii_digit)
            .count();
        let used = if digits == 0 { 0 } else { signed + digits };
        const HINT: &str =
            "If your source string is not fixed-width, try using the \"FM\" modifier.";
        if fixed && shown.len() < len {
            return Err(format_error(format!(
                "source string too short for \"{key}\" formatting field"
            ))
            .detail(format!(
                "Field requires {len} characters, but only {} remain.",
                shown.len()
            ))
            .hint(HINT));
        }
        if fixed && used > 0 && used < shown.len() {
            return Err(
                format_error(format!("invalid value \"{shown}\" for \"{key}\""))
                    .detail(format!(
                        "Field requires {len} characters, but only {used} could be parsed."
                    ))
                    .hint(HINT),
            );
        }
        if used == 0 {
            return Err(
                format_error(format!("invalid value \"{shown}\" for \"{key}\""))
                    .detail("Value must be an integer."),
            );
        }
        let number = taken.get(..used).and_then(|digits| {
            let number = digits.parse::<i64>().ok()?;
            i32::try_from(number).ok()
        });
        let Some(number) = number else {
            return Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("value for \"{key}\" in source string is out of range"),
            )
            .detail(format!(
                "Value must be in the range {} to {}.",
                i32::MIN,
                i32::MAX
            )));
        };
        self.at += used;
        Ok((i64::from(number), self.at - begin))
    }
}

/// Sets a field, which may be said twice but not two ways.
fn set(field: &mut i64, value: i64, key: &str) -> Result<()> {
    if *field != 0 && *field != value {
        return Err(format_error(format!(
            "conflicting values for \"{key}\" field in formatting string"
        ))
        .detail("This value contradicts a previous setting for the same field type."));
    }
    *field = value;
    Ok(())
}

/// A year of less than four digits: the one nearest to 2020.
fn nearest_to_2020(year: i64) -> i64 {
    match year {
        ..70 => year + 2000,
        70..100 => year + 1900,
        100..520 => year + 2000,
        520..1000 => year + 1000,
        _ => year,
    }
}

/// Whose weeks a field counts; none if that is all the same to it.
fn convention(field: FormatField) -> Option<FromCharDateMode> {
    match field {
        FormatField::IsoYear(_)
        | FormatField::IsoDayOfYear
        | FormatField::IsoDayOfWeek
        | FormatField::IsoWeek => Some(FromCharDateMode::Iso),
        FormatField::Year(_)
        | FormatField::YearComma
        | FormatField::MonthName(_)
        | FormatField::MonthShort(_)
        | FormatField::Month
        | FormatField::DayOfYear
        | FormatField::Day
        | FormatField::DayOfWeek
        | FormatField::WeekOfMonth
        | FormatField::WeekOfYear
        | FormatField::Roman { .. } => Some(FromCharDateMode::Gregorian),
        _ => None,
    }
}

/// Whether a field begins with a digit.
fn is_digits(field: FormatField) -> bool {
    !matches!(
        field,
        FormatField::Meridiem { .. }
            | FormatField::Era { .. }
            | FormatField::MonthName(_)
            | FormatField::MonthShort(_)
            | FormatField::DayName(_)
            | FormatField::DayShort(_)
            | FormatField::Roman { .. }
            | FormatField::Zone { .. }
            | FormatField::ZoneHours
            | FormatField::Offset
    )
}

/// Whether what follows a field ends its digits.
fn ends_digits(next: Option<&FormatNode>) -> bool {
    match next {
        None | Some(FormatNode::Exact) => true,
        Some(FormatNode::FormatField { field, .. }) => !is_digits(*field),
        Some(FormatNode::Text(text)) => !text.starts_with(|c: char| c.is_ascii_digit()),
        Some(FormatNode::Bare(c)) => !c.is_ascii_digit(),
    }
}

pub(super) fn read(text: &str, parts: &[FormatNode], manner: FromCharMode) -> Result<TmFromChar> {
    let mut r = TmFromChar::default();
    let mut s = TemplateReader { text, at: 0 };
    let standard = manner == FromCharMode::Standard;
    let mut exact = standard;
    // Characters of the text that were passed over and that the picture does not have.
    let mut surplus = 0_i64;
    let mut all_read = true;
    'picture: for (i, piece) in parts.iter().enumerate() {
        if s.next().is_none() {
            all_read = false;
            break;
        }
        if i % 1024 == 1023 {
            check_for_interrupts()?;
        }
        if !exact
            && !matches!(piece, FormatNode::Exact)
            && (i == 0 || matches!(piece, FormatNode::FormatField { .. }))
        {
            surplus += s.skip_spaces();
            if s.next().is_none() && !matches!(piece, FormatNode::FormatField { .. }) {
                continue;
            }
        }
        let (field, key, fill, ordinal) = match piece {
            FormatNode::Exact => {
                exact = true;
                continue;
            }
            FormatNode::Bare(c) if is_space(*c) || is_separator(*c) => {
                if standard {
                    if s.next() != Some(*c) {
                        return Err(format_error(format!("unmatched format separator \"{c}\"")));
                    }
                    s.skip();
                } else if exact {
                    s.skip();
                } else {
                    surplus -= 1;
                    if s.next().is_some_and(|c| is_space(c) || is_separator(c)) {
                        s.skip();
                        surplus += 1;
                    }
                }
                continue;
            }
            FormatNode::Bare(c) => {
                literal(&mut s, *c, exact, standard, &mut surplus)?;
                continue;
            }
            FormatNode::Text(text) => {
                for c in text.chars() {
                    if s.next().is_none() {
                        all_read = false;
                        break 'picture;
                    }
                    literal(&mut s, c, exact, standard, &mut surplus)?;
                }
                continue;
            }
            FormatNode::FormatField {
                field,
                key,
                fill,
                ordinal,
            } => (*field, key.as_str(), *fill, ordinal.is_some()),
        };
        if let Some(convention) = convention(field) {
            if r.convention.is_some_and(|before| before != convention) {
                return Err(
                    format_error("invalid combination of date conventions").hint(
                        "Do not mix Gregorian and ISO week date conventions in a formatting template.",
                    ),
                );
            }
            r.convention = Some(convention);
        }
        let fixed = !(fill || ordinal || ends_digits(parts.get(i + 1)));
        let mut number = |len: usize| s.number(len, fixed, key);
        let mut digits = true;
        match field {
            FormatField::Hour12 => {
                set(&mut r.hour, number(2)?.0, key)?;
                r.twelve = true;
            }
            FormatField::Hour24 => set(&mut r.hour, number(2)?.0, key)?,
            FormatField::Minute => set(&mut r.minute, number(2)?.0, key)?,
            FormatField::Second => set(&mut r.second, number(2)?.0, key)?,
            FormatField::Millis => {
                let (value, len) = number(3)?;
                set(&mut r.millis, value, key)?;
                r.millis *= 10_i64.pow(3_u32.saturating_sub(len as u32));
            }
            FormatField::Micros | FormatField::Fraction(_) => {
                let places = match field {
                    FormatField::Fraction(places) => usize::from(places),
                    _ => 6,
                };
                if let FormatField::Fraction(places) = field {
                    r.places = Some(places);
                }
                let (value, len) = number(places)?;
                set(&mut r.micros, value, key)?;
                r.micros *= 10_i64.pow(6_u32.saturating_sub(len as u32));
            }
            FormatField::SecondsOfDay => set(&mut r.seconds_of_day, number(key.len())?.0, key)?,
            FormatField::YearComma => {
                let (years, len) = thousands(s.rest())
                    .ok_or_else(|| format_error("invalid input string for \"Y,YYY\""))?;
                s.at += len;
                set(&mut r.year, years, key)?;
                r.year_places = 4;
            }
            FormatField::Year(places) | FormatField::IsoYear(places) => {
                let (value, len) = number(usize::from(places))?;
                set(&mut r.year, value, key)?;
                if places < 4 && len < 4 {
                    r.year = nearest_to_2020(r.year);
                }
                r.year_places = places;
            }
            FormatField::Month => set(&mut r.month, number(2)?.0, key)?,
            FormatField::DayOfYear | FormatField::IsoDayOfYear => {
                set(&mut r.day_of_year, number(3)?.0, key)?
            }
            FormatField::Day => set(&mut r.day, number(2)?.0, key)?,
            FormatField::DayOfWeek => set(&mut r.weekday, number(1)?.0, key)?,
            FormatField::IsoDayOfWeek => {
                set(&mut r.weekday, number(1)?.0, key)?;
                // Monday is 1 there.
                r.weekday = if r.weekday >= 7 { 1 } else { r.weekday + 1 };
            }
            FormatField::WeekOfYear | FormatField::IsoWeek => set(&mut r.week, number(2)?.0, key)?,
            FormatField::WeekOfMonth => set(&mut r.week_of_month, number(1)?.0, key)?,
            FormatField::Century => set(&mut r.century, number(2)?.0, key)?,
            FormatField::Julian => set(&mut r.julian, number(1)?.0, key)?,
            // Which of a quarter's days is meant, nobody knows.
            FormatField::Quarter => {
                number(1)?;
            }
            other => {
                digits = false;
                name(&mut r, &mut s, other, key, fixed, surplus)?;
            }
        }
        if digits && ordinal {
            s.skip();
            s.skip();
        }
        if !exact {
            surplus = s.skip_spaces();
        }
    }
    if standard {
        if !all_read {
            return Err(format_error(
                "input string is too short for datetime format",
            ));
        }
        s.skip_spaces();
        if s.next().is_some() {
            return Err(format_error(
                "trailing characters remain in input string after datetime format",
            ));
        }
    }
    Ok(r)
}

/// A character of the picture that is no field and no separator: one of the text stands for it, whatever it is.
fn literal(
    s: &mut TemplateReader<'_>,
    c: char,
    exact: bool,
    standard: bool,
    surplus: &mut i64,
) -> Result<()> {
    if standard && s.next() != Some(c) {
        return Err(format_error(format!("unmatched format character \"{c}\"")));
    }
    if !exact && *surplus > 0 {
        *surplus -= 1;
    } else {
        s.skip();
    }
    Ok(())
}

/// A field that is a name, or a part of a time zone.
fn name(
    r: &mut TmFromChar,
    s: &mut TemplateReader<'_>,
    field: FormatField,
    key: &str,
    fixed: bool,
    surplus: i64,
) -> Result<()> {
    match field {
        FormatField::Meridiem { dots, .. } => {
            let names = if dots { ["a.m.", "p.m."] } else { ["am", "pm"] };
            let pm = s.named(&names, key)?;
            set(&mut r.pm, pm, key)?;
            r.twelve = true;
        }
        FormatField::Era { dots, .. } => {
            let names = if dots { ["a.d.", "b.c."] } else { ["ad", "bc"] };
            let bc = s.named(&names, key)?;
            set(&mut r.bc, bc, key)?;
        }
        FormatField::MonthName(_) => {
            let month = s.named(&MONTHS, key)? + 1;
            set(&mut r.month, month, key)?;
        }
        FormatField::MonthShort(_) => {
            let month = s.named(&MONTHS.map(|name| &name[..3]), key)? + 1;
            set(&mut r.month, month, key)?;
        }
        FormatField::DayName(_) => {
            let day = s.named(&DAYS, key)?;
            set(&mut r.weekday, day, key)?;
            r.weekday += 1;
        }
        FormatField::DayShort(_) => {
            let day = s.named(&DAYS.map(|name| &name[..3]), key)?;
            set(&mut r.weekday, day, key)?;
            r.weekday += 1;
        }
        FormatField::Roman { .. } => {
            // The last month first: VIII before VII before VI.
            let mut numerals = ROMAN;
            numerals.reverse();
            let month = 12 - s.named(&numerals, key)?;
            set(&mut r.month, month, key)?;
        }
        FormatField::ZoneHours => {
            match s.next() {
                Some(sign @ ('+' | '-' | ' ')) => {
                    r.zone_sign = if sign == '-' { -1 } else { 1 };
                    s.skip();
                }
                // A separator of the picture may have taken the sign.
                _ => {
                    let before = s.at.checked_sub(1).and_then(|at| s.text.as_bytes().get(at));
                    r.zone_sign = if surplus > 0 && before == Some(&b'-') {
                        -1
                    } else {
                        1
                    };
                }
            }
            let hours = s.number(2, fixed, key)?.0;
            set(&mut r.zone_hours, hours, key)?;
        }
        FormatField::ZoneMinutes => {
            if r.zone_sign == 0 {
                r.zone_sign = 1;
            }
            let minutes = s.number(2, fixed, key)?.0;
            set(&mut r.zone_minutes, minutes, key)?;
        }
        _ => {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!("formatting field \"{key}\" is only supported in to_char"),
            ));
        }
    }
    Ok(())
}

/// `1,999`, and how long that is.
fn thousands(text: &str) -> Option<(i64, usize)> {
    let integer = |text: &str, most: usize| {
        let begin = text.len() - text.trim_start_matches(is_space).len();
        let rest = text.get(begin..)?;
        let signed = usize::from(rest.starts_with(['+', '-']));
        let digits = rest
            .bytes()
            .take(most)
            .skip(signed)
            .take_while(u8::is_ascii_digit)
            .count();
        let number: i32 = rest.get(..signed + digits)?.parse().ok()?;
        Some((i64::from(number), begin + signed + digits))
    };
    let (millennia, len) = integer(text, usize::MAX)?;
    let behind = text.get(len..)?.strip_prefix(',')?;
    let (years, more) = integer(behind, 3)?;
    Some((millennia * 1000 + years, len + 1 + more))
}

/// What a text says, put together.
pub(super) struct ParsedDateTime {
    year: i64,
    month: i64,
    day: i64,
    /// Microseconds of the day.
    pub(super) time: i64,
    /// Seconds east of UTC, if the text says so.
    pub(super) offset: Option<i64>,
}

impl ParsedDateTime {
    pub(super) fn day_number(&self) -> i64 {
        calendar::days_from_civil(self.year, self.month, self.day)
    }
}

fn out_of_range(text: &str) -> SqlError {
    SqlError::new(
        SqlState::DATETIME_FIELD_OVERFLOW,
        format!("date/time field value out of range: \"{text}\""),
    )
}

impl TmFromChar {
    fn year(&self) -> Option<i64> {
        let century = if self.bc != 0 {
            -self.century
        } else {
            self.century
        };
        if self.year != 0 && century != 0 && self.year_places <= 2 {
            let low = self.year % 100;
            return Some(match (low, century >= 0) {
                (0, true) => century * 100,
                (0, false) => century * 100 + 1,
                (_, true) => low + (century - 1) * 100,
                (_, false) => (century + 1) * 100 - low + 1,
            });
        }
        if self.year != 0 {
            let year = if self.bc != 0 { -self.year } else { self.year };
            return Some(year + i64::from(year < 0));
        }
        match century {
            0 => None,
            1.. => Some((century - 1) * 100 + 1),
            _ => Some(century * 100 + 1),
        }
    }

    pub(super) fn put_together(mut self, text: &str) -> Result<ParsedDateTime> {
        let (mut year, mut month, mut day) = (0, 1, 1);
        // Which of them the text has said.
        let (mut has_month, mut has_day) = (false, false);
        let said = self.year();
        if let Some(said) = said {
            year = said;
        }
        let mut has_year = said.is_some();
        let mut whole = |days: i64, year: &mut i64, month: &mut i64, day: &mut i64| {
            (*year, *month, *day) = calendar::civil_from_days(days);
            (has_year, has_month, has_day) = (true, true, true);
        };
        if self.julian != 0 {
            let days = self.julian - calendar::EPOCH_JULIAN;
            whole(days, &mut year, &mut month, &mut day);
        }
        let iso = self.convention == Some(FromCharDateMode::Iso);
        if self.week != 0 && iso {
            let monday = calendar::iso_week_start(year, self.week);
            // From Sunday on, which is 1 and ends the week.
            let behind = match self.weekday {
                0 => 0,
                2.. => self.weekday - 2,
                _ => 6,
            };
            whole(monday + behind, &mut year, &mut month, &mut day);
        } else if self.week != 0 {
            self.day_of_year = (self.week - 1) * 7 + 1;
        }
        if self.week_of_month != 0 {
            self.day = (self.week_of_month - 1) * 7 + 1;
        }
        if self.day != 0 {
            (day, has_day) = (self.day, true);
        }
        if self.month != 0 {
            (month, has_month) = (self.month, true);
        }
        if self.day_of_year != 0 && (month <= 1 || day <= 1) {
            if year == 0 && self.bc == 0 {
                return Err(format_error(
                    "cannot calculate day of year without year information",
                ));
            }
            if iso {
                let days = calendar::iso_week_start(year, 1) + self.day_of_year - 1;
                (year, month, day) = calendar::civil_from_days(days);
                has_year = true;
            } else {
                let (its_month, its_day) = month_of(year, self.day_of_year);
                if month <= 1 {
                    month = its_month;
                }
                if day <= 1 {
                    day = its_day;
                }
            }
            (has_month, has_day) = (true, true);
        }
        if (has_month && !(1..=12).contains(&month))
            || (has_day && !(1..=31).contains(&day))
            || (has_year && has_month && has_day && day > calendar::month_days(year, month))
        {
            return Err(out_of_range(text));
        }
        Ok(ParsedDateTime {
            year,
            month,
            day,
            time: self.time(text)?,
            offset: self.offset(text)?,
        })
    }

    fn time(&self, text: &str) -> Result<i64> {
        let (mut hour, mut minute, mut second) = (
            self.seconds_of_day / 3600,
            self.seconds_of_day % 3600 / 60,
            self.seconds_of_day % 60,
        );
        if self.second != 0 {
            second = self.second;
        }
        if self.minute != 0 {
            minute = self.minute;
        }
        if self.hour != 0 {
            hour = self.hour;
        }
        if self.twelve {
            if !(1..=12).contains(&hour) {
                return Err(format_error(format!(
                    "hour \"{hour}\" is invalid for the 12-hour clock"
                ))
                .hint("Use the 24-hour clock, or give an hour between 1 and 12."));
            }
            match self.pm != 0 {
                true if hour < 12 => hour += 12,
                false if hour == 12 => hour = 0,
                _ => {}
            }
        }
        let micros = self.millis * 1000 + self.micros;
        if !(0..24).contains(&hour)
            || !(0..60).contains(&minute)
            || !(0..60).contains(&second)
            || !(0..SECOND).contains(&micros)
        {
            return Err(out_of_range(text));
        }
        // As a timestamp(n) does, half up.
        let unit = 10_i64.pow(6 - u32::from(self.places.unwrap_or(6)).min(6));
        let micros = (micros + unit / 2) / unit * unit;
        Ok(hour * HOUR + minute * MINUTE + second * SECOND + micros)
    }

    fn offset(&self, text: &str) -> Result<Option<i64>> {
        if self.zone_sign == 0 {
            return Ok(None);
        }
        if !(0..=15).contains(&self.zone_hours) || !(0..60).contains(&self.zone_minutes) {
            return Err(SqlError::new(
                SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                format!("time zone displacement out of range: \"{text}\""),
            ));
        }
        let seconds = self.zone_hours * 3600 + self.zone_minutes * 60;
        Ok(Some(self.zone_sign * seconds))
    }
}

/// The month of a year's day, and its day in it. Behind the year's end there is a thirteenth month.
fn month_of(year: i64, day_of_year: i64) -> (i64, i64) {
    let mut day = day_of_year;
    for month in 1..=12 {
        let days = calendar::month_days(year, month);
        if day <= days {
            return (month, day);
        }
        day -= days;
    }
    (13, day)
}

/// `to_date`
pub(crate) fn to_date(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    let day = read(text, &pieces(picture)?, FromCharMode::Lenient)?
        .put_together(text)?
        .day_number();
    if !(calendar::DATE_MIN..calendar::DATE_END).contains(&day) {
        return Err(SqlError::new(
            SqlState::DATETIME_FIELD_OVERFLOW,
            format!("date out of range: \"{text}\""),
        ));
    }
    Ok(Datum::Date(day as i32))
}

/// `to_timestamp(text, picture)`
pub(crate) fn to_timestamp(cx: &dyn DateTimeContext, a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    let moment = read(text, &pieces(picture)?, FromCharMode::Lenient)?.put_together(text)?;
    let local = calendar::combine(moment.day_number(), moment.time)?;
    match moment.offset {
        Some(o) => calendar::check_timestamp(local - o * SECOND),
        None => calendar::local_to_utc(local, cx.time_zone()),
    }
    .map(Datum::TimestampTz)
}
