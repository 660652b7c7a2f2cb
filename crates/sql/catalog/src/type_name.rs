//! Type names.

use logstead_sql_parse::lowered::Span;
use logstead_sql_parse::lowered::{
    self as ast, DataType as T, ExactNumberInfo, Spanned, TimezoneInfo, Visit, Visitor,
};
use logstead_sql_parse::name_parts;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::user::lookup;
use logstead_sql_types::value::{Oid, SqlType, datetime, info, oid, user};
use logstead_types::SqlState;
use std::ops::ControlFlow;

/// The type that a type name of the grammar means, with its modifier. It may be a domain, which no expression's type
/// ever is: see [`user::base_type`].
pub fn sql_type(data_type: &ast::DataType) -> Result<SqlType> {
    if let T::Array(inner, _) = data_type {
        let element = sql_type(inner)?;
        if user::class(element.oid) == Some(user::UserTypeClass::Domain)
            && info::element_of(element.oid).is_some()
        {
            return Err(SqlError::unsupported(
                "an array over a domain over an array",
            ));
        }
        if info::element_of(element.oid).is_some() {
            // int[][] is the same type as int[].
            return Ok(element);
        }
        let array = info::array_of(element.oid).ok_or_else(|| {
            SqlError::new(
                SqlState::UNDEFINED_OBJECT,
                format!(
                    "could not find array type for data type {}",
                    info::format_type(element)
                ),
            )
        })?;
        return Ok(SqlType {
            oid: array,
            typmod: element.typmod,
        });
    }
    let oid = base_type(data_type)?;
    let args = modifiers(data_type)?;
    let typmod = if args.is_empty() {
        default_typmod(data_type)
    } else {
        info::typmod_in(oid, &args)?
    };
    Ok(SqlType { oid, typmod })
}

/// A longer text is no type's name: each of its tokens would take some hundred bytes.
const TYPE_TEXT_BYTES_MAX: usize = 256 << 10;

/// The type that a text names, as `regtype` reads it.
pub fn type_by_text(text: &str) -> Result<Oid> {
    let plain = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || b" _[]".contains(&c);
    if text.bytes().all(plain)
        && let Some(found) = info::by_name(text)
    {
        return Ok(found);
    }
    let named = || format!("invalid type name \"{text}\"");
    if text.len() > TYPE_TEXT_BYTES_MAX {
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("type name of {} bytes is too long", text.len()),
        ));
    }
    let trimmed = text.trim();
    let starts = |word: &str| {
        let start = trimmed.get(..word.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    if trimmed.is_empty() || starts("setof ") {
        return Err(SqlError::new(SqlState::SYNTAX_ERROR, named()));
    }
    let wrong = |mut error: SqlError| {
        error.fields_mut().position = None;
        error.context(named())
    };
    let spelled = match array_word(trimmed) {
        Some(element) => format!("NULL::{element}[]"),
        None => format!("NULL::{trimmed}"),
    };
    let data_type = match logstead_sql_parse::parse_expr(&spelled).map_err(wrong)? {
        ast::Expr::Cast {
            expr, data_type, ..
        } if matches!(*expr, ast::Expr::Value(_)) => data_type,
        _ => return Err(SqlError::new(SqlState::SYNTAX_ERROR, named())),
    };
    match sql_type(&data_type) {
        Ok(ty) => Ok(ty.oid),
        // Who asks for it by name is told that there is none.
        Err(error) if error.code() == SqlState::FEATURE_NOT_SUPPORTED => Err(undefined(&data_type)),
        Err(error) => Err(error),
    }
}

/// The element type's name, if a type's ends with the word ARRAY, which may have a length behind it.
fn array_word(text: &str) -> Option<&str> {
    let lower = text.to_ascii_lowercase();
    let at = lower.rfind("array")?;
    let rest = lower.get(at + "array".len()..)?.trim_start();
    let length = rest
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let length = length.is_some_and(|n| n.bytes().all(|c| c.is_ascii_digit()));
    let before = text.get(..at)?;
    let apart = before.ends_with(|c: char| c.is_whitespace() || c == ')' || c == '"');
    ((rest.is_empty() || length) && apart && !before.trim().is_empty()).then_some(before)
}

/// `char` and `character` mean one character, `bit` one bit.
fn default_typmod(data_type: &ast::DataType) -> i32 {
    match data_type {
        T::Character(None) => 5,
        T::Bit(None) => 1,
        _ => -1,
    }
}

fn modifiers(data_type: &ast::DataType) -> Result<Vec<i64>> {
    let one = |n: u64| vec![i64::try_from(n).unwrap_or(i64::MAX)];
    Ok(match data_type {
        T::Character(Some(n)) | T::CharacterVarying(Some(n)) => one(*n),
        T::Numeric(n) => match n {
            ExactNumberInfo::None => Vec::new(),
            ExactNumberInfo::Precision(p) => one(*p),
            ExactNumberInfo::PrecisionAndScale(p, s) => {
                vec![i64::try_from(*p).unwrap_or(i64::MAX), *s]
            }
        },
        T::Time(Some(p), _) | T::Timestamp(Some(p), _) => one(*p),
        T::Bit(Some(n)) | T::BitVarying(Some(n)) => one(*n),
        T::Interval { fields, precision } => {
            let Some(fields) = fields else {
                return Ok(precision.map(one).unwrap_or_default());
            };
            let mut args = vec![i64::from(interval_fields(fields))];
            match precision {
                Some(p) => args.extend(one(*p)),
                None => args.push(i64::from(datetime::fields::ANY_PRECISION)),
            }
            args
        }
        T::Custom(_, args) => args
            .iter()
            .map(|arg| {
                arg.parse::<i64>().map_err(|_| {
                    SqlError::new(
                        SqlState::INVALID_PARAMETER_VALUE,
                        "type modifiers must be simple constants or identifiers",
                    )
                })
            })
            .collect::<Result<_>>()?,
        _ => Vec::new(),
    })
}

/// The OID of a type name, modifiers aside.
pub fn base_type(data_type: &ast::DataType) -> Result<Oid> {
    Ok(match data_type {
        T::Character(_) => oid::BPCHAR,
        T::CharacterVarying(_) => oid::VARCHAR,
        T::Uuid => oid::UUID,
        T::Numeric(_) => oid::NUMERIC,
        T::Int2 | T::SmallInt => oid::INT2,
        T::Int4 | T::Integer => oid::INT4,
        T::Int8 | T::BigInt => oid::INT8,
        T::Float4 | T::Real => oid::FLOAT4,
        T::Float8 | T::DoublePrecision => oid::FLOAT8,
        T::Bool | T::Boolean => oid::BOOL,
        T::Date => oid::DATE,
        T::Time(_, TimezoneInfo::None) => oid::TIME,
        T::Time(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => oid::TIMETZ,
        T::Timestamp(_, TimezoneInfo::None) => oid::TIMESTAMP,
        T::Timestamp(_, TimezoneInfo::WithTimeZone | TimezoneInfo::Tz) => oid::TIMESTAMPTZ,
        T::Interval { .. } => oid::INTERVAL,
        T::Regclass => oid::REGCLASS,
        T::Text => oid::TEXT,
        T::Bytea => oid::BYTEA,
        T::Custom(name, _) => {
            let parts = name_parts(name);
            let last = name.0.last();
            let quoted = last.is_some_and(|ident| ident.quote_style.is_some());
            let found = match parts.as_slice() {
                [name] => match custom(name, quoted) {
                    Some(found) => Some(found),
                    None => user::find(None, name)?,
                },
                [schema, name] if schema == "pg_catalog" => match custom(name, quoted) {
                    Some(found) => Some(found),
                    None => user::find(Some(schema), name)?,
                },
                [schema, name] if schema == "information_schema" => match of_standard(name) {
                    Some(found) => Some(found),
                    None => user::find(Some(schema), name)?,
                },
                [schema, name] => user::find(Some(schema), name)?,
                _ => None,
            };
            let absent = || match parts.as_slice() {
                [schema, _] => match lookup::existing(schema) {
                    Ok(()) => undefined(data_type),
                    Err(error) => error,
                },
                _ => undefined(data_type),
            };
            return found.ok_or_else(absent);
        }
        T::Trigger => oid::TRIGGER,
        T::TsVector => oid::TSVECTOR,
        T::TsQuery => oid::TSQUERY,
        T::Json => oid::JSON,
        T::Jsonb => oid::JSONB,
        T::Bit(_) => oid::BIT,
        T::BitVarying(_) => oid::VARBIT,
        T::Array(..) => return Err(undefined(data_type)),
    })
}

/// A type by the name that stands in `pg_type`, or an alias of SQL, which is none in quotes.
fn custom(name: &str, quoted: bool) -> Option<Oid> {
    match name {
        "char" => Some(oid::CHAR),
        _ if quoted => info::by_catalog_name(name),
        _ => info::by_name(name),
    }
}

/// The types behind `information_schema`'s domains. Nobody is asked whether a value is one of a domain's: what the
/// views give is.
fn of_standard(name: &str) -> Option<Oid> {
    match name {
        "cardinal_number" => Some(oid::INT4),
        "character_data" | "yes_or_no" => Some(oid::VARCHAR),
        "sql_identifier" => Some(oid::NAME),
        "time_stamp" => Some(oid::TIMESTAMPTZ),
        _ => None,
    }
}

fn undefined(data_type: &ast::DataType) -> SqlError {
    let name = match data_type {
        T::Custom(name, _) => name_parts(name).join("."),
        other => other.to_string().to_lowercase(),
    };
    SqlError::new(
        SqlState::UNDEFINED_OBJECT,
        format!("type \"{name}\" does not exist"),
    )
}

/// The users' types that a query or expression names in its casts, and where.
pub fn types_in(query: &impl Visit) -> Vec<(Span, Oid)> {
    struct Types(Vec<(Span, Oid)>);
    impl Visitor for Types {
        type Break = ();

        fn pre_visit_expr(&mut self, expr: &ast::Expr) -> ControlFlow<()> {
            let mut ty = match expr {
                ast::Expr::Cast { data_type, .. } => data_type,
                ast::Expr::TypedString(typed) => &typed.data_type,
                _ => return ControlFlow::Continue(()),
            };
            while let T::Array(inner, _) = ty {
                ty = inner;
            }
            if let T::Custom(name, _) = ty
                && let Ok(oid) = base_type(ty)
                && user::class(oid).is_some()
            {
                self.0.push((name.span(), oid));
            }
            ControlFlow::Continue(())
        }
    }
    let mut types = Types(Vec::new());
    let _all_visited = query.visit(&mut types);
    types.0
}

/// The fields of an interval type, as its modifier has them.
fn interval_fields(named: &ast::IntervalFields) -> i32 {
    use ast::IntervalFields as F;
    use datetime::fields::{DAY, HOUR, MINUTE, MONTH, SECOND, YEAR};
    match named {
        F::Year => YEAR,
        F::Month => MONTH,
        F::Day => DAY,
        F::Hour => HOUR,
        F::Minute => MINUTE,
        F::Second => SECOND,
        F::YearToMonth => YEAR | MONTH,
        F::DayToHour => DAY | HOUR,
        F::DayToMinute => DAY | HOUR | MINUTE,
        F::DayToSecond => DAY | HOUR | MINUTE | SECOND,
        F::HourToMinute => HOUR | MINUTE,
        F::HourToSecond => HOUR | MINUTE | SECOND,
        F::MinuteToSecond => MINUTE | SECOND,
    }
}
