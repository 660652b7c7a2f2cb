//! Dates and times by the templates of SQL's standard, as SQL/JSON reads them: the whole text by the whole template.

use super::parse::{FromCharMode, read};
use super::{FormatField, FormatNode, pieces};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::calendar::{DATE_END, DATE_MIN};
use logstead_types::SqlState;

/// Separators that a template may have outside of quotes.
const SEPARATORS: &str = "-./,':; ";

/// A template, and of what its fields are parts.
#[derive(Clone)]
pub(crate) struct Template {
    parts: Vec<FormatNode>,
    is_dated: bool,
    is_timed: bool,
    is_zoned: bool,
}

/// What a text has said; there is a date, or a time of day, if the template has fields of one.
pub(crate) struct ParsedTemplate {
    /// Days from 2000-01-01 on.
    pub(crate) date: Option<i64>,
    /// Microseconds of the day.
    pub(crate) time: Option<i64>,
    pub(crate) is_zoned: bool,
    /// Seconds east of UTC.
    pub(crate) east: Option<i64>,
}

fn is_time(field: FormatField) -> bool {
    matches!(
        field,
        FormatField::Hour12
            | FormatField::Hour24
            | FormatField::Minute
            | FormatField::Second
            | FormatField::Millis
            | FormatField::Micros
            | FormatField::Fraction(_)
            | FormatField::SecondsOfDay
            | FormatField::Meridiem { .. }
    )
}

fn is_zone(field: FormatField) -> bool {
    matches!(
        field,
        FormatField::Zone { .. }
            | FormatField::ZoneHours
            | FormatField::ZoneMinutes
            | FormatField::Offset
    )
}

impl Template {
    /// A template of the standard, which knows some separators only.
    pub(crate) fn standard(picture: &str) -> Result<Template> {
        let parts = pieces(picture)?;
        let strange = parts.iter().find_map(|part| match part {
            FormatNode::Bare(c) if !SEPARATORS.contains(*c) => Some(c),
            _ => None,
        });
        if let Some(c) = strange {
            return Err(SqlError::new(
                SqlState::INVALID_DATETIME_FORMAT,
                format!("invalid datetime format separator: \"{c}\""),
            ));
        }
        let has = |wanted: fn(FormatField) -> bool| {
            parts
                .iter()
                .any(|part| matches!(part, FormatNode::FormatField { field, .. } if wanted(*field)))
        };
        Ok(Template {
            is_dated: has(|field| !is_time(field) && !is_zone(field)),
            is_timed: has(is_time),
            is_zoned: has(is_zone),
            parts,
        })
    }

    /// Reads a text.
    pub(crate) fn read(&self, text: &str) -> Result<ParsedTemplate> {
        let moment = read(text, &self.parts, FromCharMode::Standard)?.put_together(text)?;
        let day = moment.day_number();
        if self.is_dated && !(DATE_MIN..DATE_END).contains(&day) {
            return Err(SqlError::new(
                SqlState::DATETIME_FIELD_OVERFLOW,
                format!("date out of range: \"{text}\""),
            ));
        }
        Ok(ParsedTemplate {
            date: self.is_dated.then_some(day),
            time: self.is_timed.then_some(moment.time),
            is_zoned: self.is_zoned,
            east: moment.offset,
        })
    }
}
