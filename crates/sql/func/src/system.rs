//! Functions about the session and the server: who, where, settings, sequences, names of types.

use super::arithmetic::bad_args;
use super::strings::type_of;
use super::{
    FunctionContext, RandomNumbers, RestorePointRequest, Sequences, SessionActions, SessionInfo,
};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{DateTimeContext, IoContext};
use logstead_sql_types::value::{Datum, Numeric, SqlType, info, oid, stored, text_io};
use logstead_sql_types::{RelationId, TypeId};
use logstead_types::SqlState;
use num_bigint::{BigInt, BigUint, Sign};

/// `version`
pub(super) fn version(_: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(concat!(
        "PostgreSQL 15.0 (Logstead ",
        env!("CARGO_PKG_VERSION"),
        ") on x86_64-unknown-linux-gnu, compiled by rustc, 64-bit"
    )))
}

/// `current_database`
pub(super) fn current_database(cx: &dyn SessionInfo, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(cx.database()))
}

/// `session_user`
pub(super) fn session_user(cx: &dyn SessionInfo, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(cx.session_user()))
}

/// `current_user`
pub(super) fn current_user(cx: &dyn SessionInfo, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::text(cx.current_user()))
}

/// `current_schema`: the first of the search path
pub(super) fn current_schema(cx: &dyn IoContext, _: &[Datum]) -> Result<Datum> {
    let path = cx.search_path();
    Ok(path
        .iter()
        .find(|s| *s != "pg_catalog")
        .or(path.first())
        .map_or(Datum::Null, |s| Datum::text(s.as_str())))
}

/// `current_schemas(include implicit)`
pub(super) fn current_schemas(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let implicit = a[0].as_bool()?;
    let path = cx.search_path();
    let mut names: Vec<&str> = path.iter().map(String::as_str).collect();
    if implicit && !names.contains(&"pg_catalog") {
        names.insert(0, "pg_catalog");
    } else if !implicit {
        names.retain(|n| *n != "pg_catalog");
    }
    let temporary = cx.temporary_schema();
    if let Some(own) = &temporary {
        match names.iter_mut().find(|n| **n == "pg_temp" || *n == own) {
            Some(name) => *name = own,
            None if implicit => names.insert(0, own),
            None => {}
        }
    }
    Ok(Datum::array(
        oid::NAME,
        names.into_iter().map(Datum::text).collect(),
    ))
}

/// `pg_backend_pid`
pub(super) fn backend_pid(cx: &dyn SessionInfo, _: &[Datum]) -> Result<Datum> {
    Ok(Datum::Int4(cx.backend_pid()))
}

/// `pg_typeof`, as far as a value tells its type: of columns the binder knows better and folds the call
pub(super) fn typeof_value(_: &dyn IoContext, types: &[SqlType], a: &[Datum]) -> Result<Datum> {
    // A NULL does not, what it was computed by does. An untyped one is a text there.
    let declared = types.first().filter(|ty| ty.oid != oid::TEXT);
    let found = match (a.first(), declared) {
        (Some(Datum::Null), Some(ty)) => ty.oid,
        (Some(value), _) => type_of(value).oid,
        (None, _) => oid::UNKNOWN,
    };
    Ok(Datum::Oid(found.get()))
}

/// `pg_collation_for` of what names no collation itself.
pub(super) fn collation_for(cx: &dyn IoContext, types: &[SqlType], _: &[Datum]) -> Result<Datum> {
    let Some(ty) = types.first() else {
        return Ok(Datum::Null);
    };
    let element = info::element_of(ty.oid).unwrap_or(ty.oid);
    match info::by_oid(element).map_or(0, |known| known.collation()) {
        0 if ty.oid == oid::UNKNOWN => Ok(Datum::Null),
        0 => Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "collations are not supported by type {}",
                cx.format_type_bare(ty.oid)
            ),
        )),
        _ if element == oid::NAME => Ok(Datum::text("\"C\"")),
        _ => Ok(Datum::text("\"default\"")),
    }
}

/// `format_type`
pub(super) fn format_type(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Oid(t), Datum::Int4(m)] => Ok(Datum::text(cx.format_type(SqlType {
            oid: TypeId::new(*t),
            typmod: *m,
        }))),
        [Datum::Oid(t), Datum::Null] => Ok(Datum::text(cx.format_type_bare(TypeId::new(*t)))),
        _ => Ok(Datum::Null),
    }
}

/// `pg_sleep`: seconds, and nothing for less than none
pub(super) fn sleep(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    // What is no number is none, and what is too large is for ever.
    cx.sleep((a[0].as_f64()? * 1e6) as u64)?;
    Ok(Datum::text(""))
}

/// `pg_sleep_for`: by the calendar, from now on
pub(super) fn sleep_for(cx: &dyn FunctionContext, a: &[Datum]) -> Result<Datum> {
    let now = Datum::TimestampTz(cx.clock_time()?);
    sleep_until(
        cx,
        &[super::datetime::plus_zoned(cx, &[now, a[0].clone()])?],
    )
}

/// `pg_sleep_until`
pub(super) fn sleep_until(cx: &dyn FunctionContext, a: &[Datum]) -> Result<Datum> {
    let left_us = a[0].as_timestamptz()?.saturating_sub(cx.clock_time()?);
    cx.actions()?.sleep(u64::try_from(left_us).unwrap_or(0))?;
    Ok(Datum::text(""))
}

/// `current_setting`
pub(super) fn current_setting(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let name = a[0].as_str()?;
    match cx.setting(name) {
        Some(v) => Ok(Datum::text(v)),
        None if matches!(a.get(1), Some(Datum::Bool(true))) => Ok(Datum::Null),
        None => Err(SqlError::new(
            SqlState::UNDEFINED_OBJECT,
            format!("unrecognized configuration parameter \"{name}\""),
        )),
    }
}

/// `set_config`
pub(super) fn set_config(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    let [name, value, local] = a else {
        return Err(bad_args(a));
    };
    if name.is_null() {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "SET requires parameter name",
        ));
    }
    let value = if value.is_null() { "" } else { value.as_str()? };
    let local = matches!(local, Datum::Bool(true));
    cx.set_setting(name.as_str()?, value, local)
        .map(Datum::text)
}

/// `logstead_create_restore_point`: its name
pub(super) fn create_restore_point(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    restore_point(cx, a, RestorePointRequest::Create)
}

/// `logstead_drop_restore_point`: its name
pub(super) fn drop_restore_point(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    restore_point(cx, a, RestorePointRequest::Drop)
}

fn restore_point(
    cx: &dyn SessionActions,
    a: &[Datum],
    request: fn(String) -> RestorePointRequest,
) -> Result<Datum> {
    let name = a[0].as_str()?;
    cx.restore_point(request(name.to_owned()))?;
    Ok(Datum::text(name))
}

/// `logstead_move_partition(partition, instance)`: true if it was another's; with NULL, if it was held where it is
pub(super) fn move_partition(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    if a[0].is_null() {
        return Ok(Datum::Null);
    }
    let instance = (!a[1].is_null()).then(|| a[1].as_i32()).transpose()?;
    let moved = cx.move_partition(a[0].as_i32()?, instance)?;
    Ok(Datum::Bool(moved))
}

/// `logstead_restart_instance(instance)`: true
pub(super) fn restart_instance(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    cx.restart_instance(a[0].as_i32()?)?;
    Ok(Datum::Bool(true))
}

/// `pg_promote(wait, wait_seconds)`: true
pub(super) fn promote(cx: &dyn SessionActions, a: &[Datum]) -> Result<Datum> {
    let wait = a.first().map_or(Ok(true), Datum::as_bool)?;
    let seconds = a.get(1).map_or(Ok(60), Datum::as_i32)?;
    cx.promote(wait, seconds)?;
    Ok(Datum::Bool(true))
}

/// `nextval`
pub(super) fn nextval(cx: &dyn Sequences, a: &[Datum]) -> Result<Datum> {
    cx.nextval(RelationId::new(a[0].as_oid()?)).map(Datum::Int8)
}

/// `currval`
pub(super) fn currval(cx: &dyn Sequences, a: &[Datum]) -> Result<Datum> {
    cx.currval(RelationId::new(a[0].as_oid()?)).map(Datum::Int8)
}

/// `lastval`
pub(super) fn lastval(cx: &dyn Sequences, _: &[Datum]) -> Result<Datum> {
    cx.lastval().map(Datum::Int8)
}

/// `setval`
pub(super) fn setval(cx: &dyn Sequences, a: &[Datum]) -> Result<Datum> {
    let called = a.get(2).map_or(Ok(true), Datum::as_bool)?;
    let sequence = RelationId::new(a[0].as_oid()?);
    cx.setval(sequence, a[1].as_i64()?, called).map(Datum::Int8)
}

/// `gen_random_uuid`: version 4
pub(super) fn random_uuid(cx: &dyn RandomNumbers, _: &[Datum]) -> Result<Datum> {
    let mut b = [0u8; 16];
    b[..8].copy_from_slice(&cx.random_u64().to_be_bytes());
    b[8..].copy_from_slice(&cx.random_u64().to_be_bytes());
    Ok(Datum::Uuid(Box::new(
        uuid::Builder::from_random_bytes(b).into_uuid().into_bytes(),
    )))
}

/// `pg_column_size`: bytes of the stored form
pub(super) fn column_size(a: &[Datum]) -> Result<Datum> {
    let mut out = Vec::new();
    stored::encode(&a[0], &mut out);
    Ok(Datum::Int4(out.len() as i32))
}

/// `pg_size_pretty`: of a bigint, or of a number, whose fraction only bytes show.
pub(super) fn size_pretty(a: &[Datum]) -> Result<Datum> {
    const UNITS: [&str; 6] = ["bytes", "kB", "MB", "GB", "TB", "PB"];
    let size = match &a[0] {
        Datum::Numeric(size) => {
            let text = size.to_string();
            let whole = size.trunc(0).to_string();
            match whole.parse::<BigInt>() {
                Ok(whole) if whole.magnitude() >= &BigUint::from(10_u32 * 1024) => whole,
                Ok(_) => return Ok(Datum::text(format!("{text} bytes"))),
                // NaN and the infinities are beyond all units.
                Err(_) => return Ok(Datum::text(format!("{text} PB"))),
            }
        }
        other => BigInt::from(other.as_integer()?),
    };
    let (mut size, mut unit) = (size, 0);
    // One bit more than shown is kept until the end, for rounding; what is cut off counts for nothing.
    if size.magnitude() >= &BigUint::from(10_u32 * 1024) {
        size /= 1 << 9;
        unit = 1;
        while unit < UNITS.len() - 1 && size.magnitude() >= &BigUint::from(20_u32 * 1024 - 1) {
            size /= 1 << 10;
            unit += 1;
        }
        let away = if size.sign() == Sign::Minus { -1 } else { 1 };
        size = (size + away) / 2;
    }
    Ok(Datum::text(format!("{size} {}", UNITS[unit])))
}

/// `pg_size_bytes`: a number, and the unit behind it
pub(super) fn size_bytes(a: &[Datum]) -> Result<Datum> {
    let said = a[0].as_str()?;
    let invalid = || {
        SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            format!("invalid size: \"{said}\""),
        )
    };
    let space = |c: char| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}');
    let text = said.trim_matches(space);
    let digits = |from: usize| {
        let part = text.get(from..).unwrap_or_default();
        part.bytes().take_while(u8::is_ascii_digit).count()
    };
    let sign = usize::from(text.starts_with(['+', '-']));
    let whole = digits(sign);
    let mut end = sign + whole;
    let mut some = whole > 0;
    if text.get(end..).is_some_and(|rest| rest.starts_with('.')) {
        let part = digits(end + 1);
        some |= part > 0;
        end += 1 + part;
    }
    if !some {
        return Err(invalid());
    }
    // An exponent is one only with digits.
    if text
        .get(end..)
        .is_some_and(|rest| rest.starts_with(['e', 'E']))
    {
        let signed = text
            .get(end + 1..)
            .is_some_and(|rest| rest.starts_with(['+', '-']));
        let from = end + 1 + usize::from(signed);
        if digits(from) > 0 {
            end = from + digits(from);
        }
    }
    let (number, unit) = text.split_at_checked(end).ok_or_else(invalid)?;
    let Datum::Numeric(number) = text_io::input(SqlType::of(oid::NUMERIC), number, None)? else {
        return Err(invalid());
    };
    let unit = unit.trim_start_matches(space);
    let names = ["bytes", "kb", "mb", "gb", "tb", "pb"];
    let power = match unit.to_ascii_lowercase().as_str() {
        "" => 0,
        lower => {
            match names.iter().position(|name| *name == lower) {
                Some(power) => power as u32,
                None => {
                    return Err(invalid()
                    .detail(format!("Invalid size unit: \"{unit}\"."))
                    .hint("Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."));
                }
            }
        }
    };
    let bytes = number.mul(&Numeric::from(1024_i64.pow(power)))?;
    bytes.to_i64("bigint").map(Datum::Int8)
}

/// `timeofday`
pub(super) fn time_of_day(cx: &dyn DateTimeContext, _: &[Datum]) -> Result<Datum> {
    let now = Datum::TimestampTz(cx.clock_time()?);
    super::format::to_char(cx, &[now, Datum::text("Dy Mon DD HH24:MI:SS.US YYYY TZ")])
}

/// A lookup that gives NULL where there is nothing of the name: `to_regclass` and its kin. A number is a name to
/// them, and so is a hyphen.
pub(super) fn to_reg(cx: &dyn IoContext, a: &[Datum], ty: TypeId) -> Result<Datum> {
    let text = a[0].as_str()?;
    let given = text.trim();
    let is_number = !given.is_empty() && given.bytes().all(|c| c.is_ascii_digit());
    let signed = matches!(ty, oid::REGPROCEDURE | oid::REGOPERATOR);
    let found = match is_number || given == "-" {
        true if ty == oid::REGTYPE => {
            let found = cx.type_by_text(given);
            found.map(|found| Datum::Oid(found.get()))
        }
        true if signed => Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            "expected a left parenthesis",
        )),
        true if ty == oid::REGOPER && is_number => Ok(Datum::Null),
        true if ty != oid::REGOPER => {
            let quoted = format!("\"{given}\"");
            text_io::input(SqlType::of(ty), &quoted, Some(cx))
        }
        _ => text_io::input(SqlType::of(ty), text, Some(cx)),
    };
    found.or_else(|error| match error.code() {
        SqlState::UNDEFINED_FUNCTION
        | SqlState::AMBIGUOUS_FUNCTION
        | SqlState::UNDEFINED_TABLE
        | SqlState::INVALID_SCHEMA_NAME => Ok(Datum::Null),
        // What is in the parentheses must be there.
        SqlState::UNDEFINED_OBJECT if !signed => Ok(Datum::Null),
        _ => Err(error),
    })
}

/// `pg_is_other_temp_schema`
pub(super) fn no(_: &[Datum]) -> Result<Datum> {
    Ok(Datum::Bool(false))
}
