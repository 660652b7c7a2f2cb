//! Text output of dates and timestamps in the four styles of the setting `DateStyle`; [`super`] has that of ISO, which
//! is also how what is kept is written.

use super::{DateOrder, pad, special, write_date, write_time, write_timestamp, write_timestamptz};
use crate::value::calendar::{self, DAY};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// The form that the setting `DateStyle` names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DateForm {
    /// 1997-12-17 07:37:16-08
    #[default]
    Iso,
    /// 12/17/1997 07:37:16 PST
    Sql,
    /// Wed Dec 17 07:37:16 1997 PST
    Postgres,
    /// 17.12.1997 07:37:16 PST
    German,
}

impl DateForm {
    /// That of a value of the setting.
    pub fn of_style(style: &str) -> DateForm {
        match style.split(',').next().unwrap_or_default() {
            "SQL" => DateForm::Sql,
            "Postgres" => DateForm::Postgres,
            "German" => DateForm::German,
            _ => DateForm::Iso,
        }
    }
}

/// How dates are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DateStyle {
    /// The form.
    pub form: DateForm,
    /// What comes first, a day or a month.
    pub order: DateOrder,
}

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
/// From that of 2000-01-01 on.
const DAYS: [&str; 7] = ["Sat", "Sun", "Mon", "Tue", "Wed", "Thu", "Fri"];

/// What a time zone is called that has no name.
pub const UNNAMED: &str = "zone";

/// An abbreviation of a time zone has so many bytes at most.
const ZONE_BYTES_MAX: usize = 10;

impl DateStyle {
    fn numbers(self, (month, day): (i64, i64), sign: u8, out: &mut Vec<u8>) {
        let day_first = self.form == DateForm::German || self.order == DateOrder::Dmy;
        let (first, second) = if day_first {
            (day, month)
        } else {
            (month, day)
        };
        pad(first, 2, out);
        out.push(sign);
        pad(second, 2, out);
        out.push(sign);
    }

    fn year(year: i64, out: &mut Vec<u8>) {
        pad(if year > 0 { year } else { 1 - year }, 4, out);
    }

    fn before_christ(year: i64, out: &mut Vec<u8>) {
        if year <= 0 {
            out.extend_from_slice(b" BC");
        }
    }

    /// Appends a date.
    pub fn write_date(self, date: i32, out: &mut Vec<u8>) {
        let sign = match self.form {
            DateForm::Iso => return write_date(date, out),
            DateForm::Sql => b'/',
            DateForm::German => b'.',
            DateForm::Postgres => b'-',
        };
        if matches!(date, i32::MIN | i32::MAX) {
            return write_date(date, out);
        }
        let (year, month, day) = calendar::civil_from_days(i64::from(date));
        self.numbers((month, day), sign, out);
        DateStyle::year(year, out);
        DateStyle::before_christ(year, out);
    }

    /// Appends a timestamp without zone.
    pub fn write_timestamp(self, t: i64, out: &mut Vec<u8>) {
        match self.form {
            DateForm::Iso => write_timestamp(t, out),
            _ if special(t, out) => {}
            _ => self.local(t, None, out),
        }
    }

    /// Appends a moment in a time zone.
    pub fn write_timestamptz(self, t: i64, tz: &TimeZone, out: &mut Vec<u8>) {
        match self.form {
            DateForm::Iso => write_timestamptz(t, tz, out),
            _ if special(t, out) => {}
            _ => {
                let (local, offset) = calendar::utc_to_local(t, tz);
                self.local(local, Some(&zone_at(t, tz, offset)), out);
            }
        }
    }

    fn local(self, local: i64, zone: Option<&str>, out: &mut Vec<u8>) {
        let p = calendar::parts(local);
        match self.form {
            DateForm::Postgres => {
                let day = local.div_euclid(DAY).rem_euclid(7);
                let day = usize::try_from(day).unwrap_or(0);
                out.extend_from_slice(DAYS[day].as_bytes());
                out.push(b' ');
                let month = usize::try_from(p.month - 1).unwrap_or(0);
                let month = MONTHS.get(month).copied().unwrap_or_default();
                if self.order == DateOrder::Dmy {
                    pad(p.day, 2, out);
                    out.push(b' ');
                    out.extend_from_slice(month.as_bytes());
                } else {
                    out.extend_from_slice(month.as_bytes());
                    out.push(b' ');
                    pad(p.day, 2, out);
                }
                out.push(b' ');
                write_time(p.time, out);
                out.push(b' ');
                DateStyle::year(p.year, out);
            }
            _ => {
                let sign = if self.form == DateForm::Sql {
                    b'/'
                } else {
                    b'.'
                };
                self.numbers((p.month, p.day), sign, out);
                DateStyle::year(p.year, out);
                out.push(b' ');
                write_time(p.time, out);
            }
        }
        if let Some(zone) = zone {
            out.push(b' ');
            out.extend_from_slice(zone.as_bytes());
        }
        DateStyle::before_christ(p.year, out);
    }
}

/// What the time zone is called at a moment; its offset where it has no name.
pub fn zone_at(t: i64, tz: &TimeZone, offset: i64) -> String {
    let mut out = Vec::new();
    super::write_offset(offset, &mut out);
    let shown = String::from_utf8(out).unwrap_or_default();
    let micros = t.checked_sub(calendar::UNIX_EPOCH_DAY * DAY);
    let moment = micros.and_then(|micros| Timestamp::from_microsecond(micros).ok());
    if let Some(moment) = moment {
        let info = tz.to_offset_info(moment);
        let name = info.abbreviation();
        // One of an offset alone has none (`settings::session` makes it one with this name).
        if name == UNNAMED {
            return String::new();
        }
        // One of a number is called by its offset, which has no colon as the library's name.
        let is_number = tz.iana_name().is_none() && name == shown.replace(':', "");
        if !name.is_empty() && !is_number {
            return name.chars().take(ZONE_BYTES_MAX).collect();
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_the_week_are_right() {
        let style = DateStyle {
            form: DateForm::Postgres,
            order: DateOrder::Mdy,
        };
        let shown = |t: i64| {
            let mut out = Vec::new();
            style.write_timestamp(t, &mut out);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(shown(0), "Sat Jan 01 00:00:00 2000");
        assert_eq!(shown(-1), "Fri Dec 31 23:59:59.999999 1999");
        assert_eq!(shown(60 * DAY + 500_000), "Wed Mar 01 00:00:00.5 2000");
    }
}
