//! Names of types.

use super::ObjectName;
use std::fmt;

/// The name of a type, with its modifiers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the types' own names")]
pub enum DataType {
    SmallInt,
    Integer,
    BigInt,
    Int2,
    Int4,
    Int8,
    Real,
    DoublePrecision,
    Float4,
    Float8,
    Numeric(ExactNumberInfo),
    Boolean,
    Bool,
    Bit(Option<u64>),
    BitVarying(Option<u64>),
    Character(Option<u64>),
    CharacterVarying(Option<u64>),
    Text,
    Bytea,
    Date,
    Time(Option<u64>, TimezoneInfo),
    Timestamp(Option<u64>, TimezoneInfo),
    Interval {
        fields: Option<IntervalFields>,
        precision: Option<u64>,
    },
    Uuid,
    Json,
    Jsonb,
    Regclass,
    Trigger,
    TsQuery,
    TsVector,
    /// An array of a type, with a bound that says nothing.
    Array(Box<DataType>, Option<u64>),
    /// Any other one by its name, with what stands in parentheses behind it.
    Custom(ObjectName, Vec<String>),
}

/// What stands behind NUMERIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum ExactNumberInfo {
    None,
    Precision(u64),
    PrecisionAndScale(u64, i64),
}

/// What a name says of time zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimezoneInfo {
    /// Nothing: there is none.
    None,
    /// WITH TIME ZONE.
    WithTimeZone,
    /// The name ends with `tz`.
    Tz,
}

/// The fields of an interval type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "SQL's own words")]
pub enum IntervalFields {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    YearToMonth,
    DayToHour,
    DayToMinute,
    DayToSecond,
    HourToMinute,
    HourToSecond,
    MinuteToSecond,
}

impl IntervalFields {
    fn words(self) -> &'static str {
        match self {
            IntervalFields::Year => "YEAR",
            IntervalFields::Month => "MONTH",
            IntervalFields::Day => "DAY",
            IntervalFields::Hour => "HOUR",
            IntervalFields::Minute => "MINUTE",
            IntervalFields::Second => "SECOND",
            IntervalFields::YearToMonth => "YEAR TO MONTH",
            IntervalFields::DayToHour => "DAY TO HOUR",
            IntervalFields::DayToMinute => "DAY TO MINUTE",
            IntervalFields::DayToSecond => "DAY TO SECOND",
            IntervalFields::HourToMinute => "HOUR TO MINUTE",
            IntervalFields::HourToSecond => "HOUR TO SECOND",
            IntervalFields::MinuteToSecond => "MINUTE TO SECOND",
        }
    }
}

/// A name with the number in parentheses, if there is one.
fn measured(f: &mut fmt::Formatter<'_>, name: &str, number: Option<u64>) -> fmt::Result {
    match number {
        Some(number) => write!(f, "{name}({number})"),
        None => f.write_str(name),
    }
}

fn of_time(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    precision: Option<u64>,
    zone: TimezoneInfo,
) -> fmt::Result {
    match zone {
        TimezoneInfo::None => measured(f, name, precision),
        TimezoneInfo::Tz => measured(f, &format!("{name}TZ"), precision),
        TimezoneInfo::WithTimeZone => {
            measured(f, name, precision)?;
            f.write_str(" WITH TIME ZONE")
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            DataType::SmallInt => "SMALLINT",
            DataType::Integer => "INTEGER",
            DataType::BigInt => "BIGINT",
            DataType::Int2 => "INT2",
            DataType::Int4 => "INT4",
            DataType::Int8 => "INT8",
            DataType::Real => "REAL",
            DataType::DoublePrecision => "DOUBLE PRECISION",
            DataType::Float4 => "FLOAT4",
            DataType::Float8 => "FLOAT8",
            DataType::Boolean => "BOOLEAN",
            DataType::Bool => "BOOL",
            DataType::Text => "TEXT",
            DataType::Bytea => "BYTEA",
            DataType::Date => "DATE",
            DataType::Uuid => "UUID",
            DataType::Json => "JSON",
            DataType::Jsonb => "JSONB",
            DataType::Regclass => "REGCLASS",
            DataType::Trigger => "TRIGGER",
            DataType::TsQuery => "TSQUERY",
            DataType::TsVector => "TSVECTOR",
            DataType::Bit(length) => return measured(f, "BIT", *length),
            DataType::BitVarying(length) => return measured(f, "BIT VARYING", *length),
            DataType::Character(length) => return measured(f, "CHARACTER", *length),
            DataType::CharacterVarying(length) => {
                return measured(f, "CHARACTER VARYING", *length);
            }
            DataType::Time(precision, zone) => return of_time(f, "TIME", *precision, *zone),
            DataType::Timestamp(precision, zone) => {
                return of_time(f, "TIMESTAMP", *precision, *zone);
            }
            DataType::Numeric(info) => {
                return match info {
                    ExactNumberInfo::None => f.write_str("NUMERIC"),
                    ExactNumberInfo::Precision(precision) => write!(f, "NUMERIC({precision})"),
                    ExactNumberInfo::PrecisionAndScale(precision, scale) => {
                        write!(f, "NUMERIC({precision},{scale})")
                    }
                };
            }
            DataType::Interval { fields, precision } => {
                f.write_str("INTERVAL")?;
                if let Some(fields) = fields {
                    write!(f, " {}", fields.words())?;
                }
                return measured(f, "", *precision);
            }
            DataType::Array(element, None) => return write!(f, "{element}[]"),
            DataType::Array(element, Some(bound)) => return write!(f, "{element}[{bound}]"),
            DataType::Custom(name, modifiers) if modifiers.is_empty() => return name.fmt(f),
            DataType::Custom(name, modifiers) => {
                return write!(f, "{name}({})", modifiers.join(", "));
            }
        })
    }
}
