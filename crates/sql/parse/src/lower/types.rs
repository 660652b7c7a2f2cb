//! Names of types.

use super::Lower;
use crate::ast::{
    Const, Expr, Location, Name, TypeName, TypeRef, Value, interval_fields as fields,
};
use crate::lowered as library;
use crate::lowered::{DataType as T, ExactNumberInfo, TimezoneInfo};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;

/// What the name of a type begins with that is named by its OID.
const STORED_TYPE: char = '\u{2}';

impl Lower<'_> {
    /// Lowers the name of a type.
    pub(crate) fn data_type(&self, name: &TypeName) -> Result<library::DataType> {
        let mut data_type = self.element_type(name)?;
        for bound in &name.array_bounds {
            let bound = bound.and_then(|bound| u64::try_from(bound).ok());
            data_type = T::Array(Box::new(data_type), bound);
        }
        Ok(data_type)
    }

    fn element_type(&self, name: &TypeName) -> Result<library::DataType> {
        let names = match &name.name {
            TypeRef::Named(names) => names,
            TypeRef::Stored(oid) => {
                let mark = self.marked(&format!("{STORED_TYPE}{oid}"), self.span(name.location));
                let modifiers = self.modifiers(name)?;
                return Ok(T::Custom(library::ObjectName::from(vec![mark]), modifiers));
            }
        };
        let known = match names.as_slice() {
            [schema, word] if **schema == *"pg_catalog" && !self.is_schema(name.location) => {
                self.system_type(word, name)?
            }
            [word] if !self.is_quoted(name.location) => self.known_type(word, name)?,
            _ => None,
        };
        match known {
            Some(known) => Ok(known),
            None => Ok(T::Custom(
                self.object_name(names, name.location),
                self.modifiers(name)?,
            )),
        }
    }

    /// Is the schema of PostgreSQL's own types written at a place?
    fn is_schema(&self, location: Location) -> bool {
        let written = self.token(location).map(|token| self.written(token));
        let written = written.map(|written| written.trim_matches('"'));
        written.is_some_and(|written| written.eq_ignore_ascii_case("pg_catalog"))
    }

    /// A type that the grammar names by words of its own.
    fn system_type(&self, word: &str, name: &TypeName) -> Result<Option<library::DataType>> {
        let zone = |with| match with {
            true => TimezoneInfo::WithTimeZone,
            false => TimezoneInfo::None,
        };
        Ok(Some(match word {
            "int2" => T::SmallInt,
            "int4" => T::Integer,
            "int8" => T::BigInt,
            "float4" => T::Real,
            "float8" => T::DoublePrecision,
            "bool" => T::Boolean,
            "numeric" => T::Numeric(self.exact_number(name)?),
            "bit" => T::Bit(self.precision(name)?),
            "varbit" => T::BitVarying(self.precision(name)?),
            "time" | "timetz" => T::Time(self.precision(name)?, zone(word == "timetz")),
            "timestamp" | "timestamptz" => {
                T::Timestamp(self.precision(name)?, zone(word == "timestamptz"))
            }
            "bpchar" => T::Character(self.precision(name)?),
            "varchar" => T::CharacterVarying(self.precision(name)?),
            "interval" => self.interval_type(name)?,
            _ => return Ok(None),
        }))
    }

    /// A type whose name is a word where it is not in quotes.
    fn known_type(&self, word: &str, name: &TypeName) -> Result<Option<library::DataType>> {
        let precision = || self.precision(name);
        let of_precision = match word {
            "timestamptz" => Some(T::Timestamp(precision()?, TimezoneInfo::Tz)),
            "timetz" => Some(T::Time(precision()?, TimezoneInfo::Tz)),
            _ => None,
        };
        if of_precision.is_some() || !name.typmods.is_empty() {
            return Ok(of_precision);
        }
        Ok(Some(match word {
            "bool" => T::Bool,
            "bytea" => T::Bytea,
            "date" => T::Date,
            "float4" => T::Float4,
            "float8" => T::Float8,
            "int2" => T::Int2,
            "int4" => T::Int4,
            "int8" => T::Int8,
            "json" => T::Json,
            "jsonb" => T::Jsonb,
            "regclass" => T::Regclass,
            "text" => T::Text,
            "trigger" => T::Trigger,
            "tsquery" => T::TsQuery,
            "tsvector" => T::TsVector,
            "uuid" => T::Uuid,
            _ => return Ok(None),
        }))
    }

    /// What stands in parentheses behind a type, except for what the grammar has put there.
    fn written_typmods(name: &TypeName) -> &[Expr] {
        match name.typmods.as_slice() {
            [Expr::Const(only)] if only.location == Location::UNKNOWN => &[],
            typmods => typmods,
        }
    }

    /// Modifiers of a type that has a name of its own.
    fn modifiers(&self, name: &TypeName) -> Result<Vec<String>> {
        let typmods = Self::written_typmods(name).iter();
        typmods.map(modifier).collect()
    }

    fn numbers(&self, name: &TypeName) -> Result<Vec<i64>> {
        let typmods = Self::written_typmods(name).iter();
        typmods
            .map(|typmod| modifier(typmod)?.parse().map_err(|_| no_modifier()))
            .collect()
    }

    /// The one number of a type.
    fn precision(&self, name: &TypeName) -> Result<Option<u64>> {
        match self.numbers(name)?.as_slice() {
            [] => Ok(None),
            [number] => u64::try_from(*number)
                .map(Some)
                .map_err(|_| invalid_modifier()),
            _ => Err(invalid_modifier()),
        }
    }

    fn exact_number(&self, name: &TypeName) -> Result<ExactNumberInfo> {
        let positive = |number: i64| u64::try_from(number).map_err(|_| invalid_modifier());
        Ok(match self.numbers(name)?.as_slice() {
            [] => ExactNumberInfo::None,
            [precision] => ExactNumberInfo::Precision(positive(*precision)?),
            [precision, scale] => ExactNumberInfo::PrecisionAndScale(positive(*precision)?, *scale),
            _ => {
                return Err(SqlError::new(
                    SqlState::INVALID_PARAMETER_VALUE,
                    "invalid NUMERIC type modifier",
                ));
            }
        })
    }

    fn interval_type(&self, name: &TypeName) -> Result<library::DataType> {
        let (mask, precision) = interval_modifiers(name);
        let fields = match mask {
            Some(mask) => interval_fields(mask),
            None => None,
        };
        Ok(T::Interval { fields, precision })
    }
}

/// The fields of an interval and its precision.
pub(super) fn interval_modifiers(name: &TypeName) -> (Option<i32>, Option<u64>) {
    let number = |at: usize| match name.typmods.get(at) {
        Some(Expr::Const(Const {
            value: Value::Integer(number),
            ..
        })) => Some(*number),
        _ => None,
    };
    let mask = number(0).filter(|mask| *mask != fields::FULL_RANGE);
    (
        mask,
        number(1).and_then(|number| u64::try_from(number).ok()),
    )
}

fn interval_fields(mask: i32) -> Option<library::IntervalFields> {
    use fields::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    use library::IntervalFields as F;
    let all = [
        (YEAR, F::Year),
        (MONTH, F::Month),
        (DAY, F::Day),
        (HOUR, F::Hour),
        (MINUTE, F::Minute),
        (SECOND, F::Second),
        (YEAR | MONTH, F::YearToMonth),
        (DAY | HOUR, F::DayToHour),
        (DAY | HOUR | MINUTE, F::DayToMinute),
        (DAY | HOUR | MINUTE | SECOND, F::DayToSecond),
        (HOUR | MINUTE, F::HourToMinute),
        (HOUR | MINUTE | SECOND, F::HourToSecond),
        (MINUTE | SECOND, F::MinuteToSecond),
    ];
    let found = all.into_iter().find(|(fields, _)| *fields == mask);
    found.map(|(_, fields)| fields)
}

/// A modifier as it is written.
fn modifier(typmod: &Expr) -> Result<String> {
    Ok(match typmod {
        Expr::Const(node) => match &node.value {
            Value::Integer(number) => number.to_string(),
            Value::Float(text) | Value::String(text) => text.to_string(),
            _ => return Err(no_modifier()),
        },
        Expr::ColumnRef(column) if !column.star => match column.fields.as_slice() {
            [name] => Name::to_string(name),
            _ => return Err(no_modifier()),
        },
        _ => return Err(no_modifier()),
    })
}

fn no_modifier() -> SqlError {
    SqlError::new(
        SqlState::INVALID_PARAMETER_VALUE,
        "type modifiers must be simple constants or identifiers",
    )
}

fn invalid_modifier() -> SqlError {
    SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "invalid type modifier")
}
