//! Dates whose fields have their units in front: `Y2001M12D27H04M05S06.789`.

use super::calendar;

/// The fields that were named.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Units<'t> {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    /// Hours and minutes, and seconds as they are written.
    pub(super) time: Option<(i64, i64, &'t str)>,
}

/// Reads all fields of a date, and perhaps those of a time, from a text in small letters; what is behind them is given
/// back.
pub(super) fn fields(text: &str) -> Option<(Units<'_>, &str)> {
    let (year, rest) = field(text, &["y"])?;
    let (month, rest) = field(rest, &["m"])?;
    let (day, rest) = field(rest, &["d"])?;
    let mut units = Units {
        year,
        month,
        day,
        time: None,
    };
    let Some((hour, rest)) = field(rest, &["h"]) else {
        return Some((units, rest));
    };
    let (minute, rest) = field(rest, &["mm", "m"])?;
    let rest = rest.strip_prefix('s')?;
    let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.'));
    let (second, rest) = rest.split_at(end.unwrap_or(rest.len()));
    units.time = Some((hour, minute, second));
    Some((units, rest))
}

/// A number behind one of these units.
fn field<'t>(text: &'t str, units: &[&str]) -> Option<(i64, &'t str)> {
    let rest = units.iter().find_map(|unit| text.strip_prefix(unit))?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    let (digits, rest) = rest.split_at(end.unwrap_or(rest.len()));
    Some((calendar::parse_digits(digits)?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_stand_in_front() {
        let (units, rest) = fields("y2001m12d27h04mm05s06.789+08").unwrap();
        let time = Some((4, 5, "06.789"));
        let wanted = Units {
            year: 2001,
            month: 12,
            day: 27,
            time,
        };
        assert_eq!((units, rest), (wanted, "+08"));
        assert!(fields("y2001m12").is_none());
    }
}
