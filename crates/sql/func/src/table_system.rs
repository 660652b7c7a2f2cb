//! Functions that tell of the server and its catalog as relations do, and `information_schema`'s own.

use super::Volatility::{Immutable, Stable, Volatile};
use super::arithmetic::bad_args;
use super::system::to_reg;
use super::{Function, FunctionImpl};
use crate::catalog_function::{CatalogFunction, CatalogSet, SystemRelationRows};
use crate::function as f;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, IoContext, SqlType, info, record, user};
use logstead_sql_types::{RelationId, TypeId};

/// All rows of a system relation.
const fn rows(relation: &'static str) -> FunctionImpl {
    without(relation, &[])
}

/// The same, without these columns.
const fn without(relation: &'static str, without: &'static [&'static str]) -> FunctionImpl {
    FunctionImpl::CatalogSet(CatalogSet::Relation(SystemRelationRows {
        relation,
        without,
    }))
}

/// A field of a row of a system relation that was given as a whole.
fn field(row: &Datum, relation: RelationId, name: &str) -> Option<Datum> {
    let shape = record::tuple_desc_of(SqlType::of(user::row_type_of(relation)?))?;
    let at = shape.iter().position(|(field, _)| **field == *name)?;
    match row {
        Datum::Array(fields) => fields.items.get(at).cloned(),
        _ => None,
    }
}

const PG_ATTRIBUTE: RelationId = RelationId::new(1249);
const PG_TYPE: RelationId = RelationId::new(1247);
const PG_ATTRIBUTE_ROW: TypeId = row_type(PG_ATTRIBUTE);
const PG_TYPE_ROW: TypeId = row_type(PG_TYPE);

const fn row_type(relation: RelationId) -> TypeId {
    match user::row_type_of(relation) {
        Some(ty) => ty,
        None => panic!("every system relation has a row type"),
    }
}

/// What a domain says of its base type, or else what the column says.
fn true_type(a: &[Datum], of_domain: &str, of_column: &str) -> Datum {
    let (column, ty) = (&a[0], &a[1]);
    let found = match field(ty, PG_TYPE, "typtype") {
        Some(Datum::Char(b'd')) => field(ty, PG_TYPE, of_domain),
        _ => field(column, PG_ATTRIBUTE, of_column),
    };
    found.unwrap_or(Datum::Null)
}

fn type_and_modifier(a: &[Datum]) -> Result<(TypeId, i32)> {
    match a {
        [Datum::Oid(ty), Datum::Int4(typmod)] => Ok((TypeId::new(*ty), *typmod)),
        _ => Err(bad_args(a)),
    }
}

fn number(found: Option<i32>) -> Result<Datum> {
    Ok(found.map_or(Datum::Null, Datum::Int4))
}

fn char_length(ty: TypeId, typmod: i32) -> Option<i32> {
    match ty {
        _ if typmod == -1 => None,
        BPCHAR | VARCHAR => typmod.checked_sub(4),
        BIT | VARBIT => Some(typmod),
        _ => None,
    }
}

fn octet_length(ty: TypeId, typmod: i32) -> Option<i32> {
    /// Bytes of a character of UTF-8 at most.
    const CHARACTER: i32 = 4;
    match ty {
        TEXT | BPCHAR | VARCHAR if typmod == -1 => Some(1 << 30),
        TEXT | BPCHAR | VARCHAR => char_length(ty, typmod)?.checked_mul(CHARACTER),
        _ => None,
    }
}

fn precision(ty: TypeId, typmod: i32) -> Option<i32> {
    match ty {
        INT2 => Some(16),
        INT4 => Some(32),
        INT8 => Some(64),
        NUMERIC if typmod == -1 => None,
        NUMERIC => Some(typmod.wrapping_sub(4) >> 16 & 65_535),
        FLOAT4 => Some(24),
        FLOAT8 => Some(53),
        _ => None,
    }
}

fn radix(ty: TypeId) -> Option<i32> {
    match ty {
        INT2 | INT4 | INT8 | FLOAT4 | FLOAT8 => Some(2),
        NUMERIC => Some(10),
        _ => None,
    }
}

fn scale(ty: TypeId, typmod: i32) -> Option<i32> {
    match ty {
        INT2 | INT4 | INT8 => Some(0),
        NUMERIC if typmod != -1 => Some(typmod.wrapping_sub(4) & 65_535),
        _ => None,
    }
}

fn datetime_precision(ty: TypeId, typmod: i32) -> Option<i32> {
    const FULL: i32 = 6;
    match ty {
        DATE => Some(0),
        TIME | TIMESTAMP | TIMESTAMPTZ | TIMETZ if typmod < 0 => Some(FULL),
        TIME | TIMESTAMP | TIMESTAMPTZ | TIMETZ => Some(typmod),
        INTERVAL if typmod < 0 || typmod & 65_535 == 65_535 => Some(FULL),
        INTERVAL => Some(typmod & 65_535),
        _ => None,
    }
}

/// The fields that an interval type says: `YEAR TO MONTH`.
fn interval_type(oid: TypeId, typmod: i32) -> Option<String> {
    if oid != INTERVAL {
        return None;
    }
    let shown = info::format_built_in(SqlType { oid, typmod }, true);
    let rest = shown.strip_prefix("interval")?;
    let rest = rest.trim_start_matches(|c: char| matches!(c, '(' | ')') || c.is_ascii_digit());
    // What comes behind a precision is nothing more.
    rest.strip_prefix(' ').map(str::to_uppercase)
}

/// Types by name, as `regtype` prints them.
fn vector_types(cx: &dyn IoContext, a: &[Datum]) -> Result<Datum> {
    let Datum::Array(types) = &a[0] else {
        return Ok(Datum::Null);
    };
    let names = types.items.iter().map(|ty| {
        let ty = ty.as_oid()?;
        Ok(match ty {
            0 => "-".to_owned(),
            ty => cx.format_type_bare(TypeId::new(ty)),
        })
    });
    let names: Result<Vec<String>> = names.collect();
    Ok(Datum::text(names?.join(", ")))
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(3083, "pg_available_extension_versions", &[], None, RECORD, true, Stable, without("pg_available_extension_versions", &["installed"])),
    f(3082, "pg_available_extensions", &[], None, RECORD, true, Stable, without("pg_available_extensions", &["installed_version"])),
    f(3400, "pg_config", &[], None, RECORD, true, Immutable, rows("pg_config")),
    f(2511, "pg_cursor", &[], None, RECORD, true, Stable, rows("pg_cursors")),
    f(3401, "pg_hba_file_rules", &[], None, RECORD, true, Volatile, rows("pg_hba_file_rules")),
    f(1371, "pg_lock_status", &[], None, RECORD, true, Volatile, rows("pg_locks")),
    f(2510, "pg_prepared_statement", &[], None, RECORD, true, Stable, rows("pg_prepared_statements")),
    f(3329, "pg_show_all_file_settings", &[], None, RECORD, true, Volatile, rows("pg_file_settings")),
    f(2084, "pg_show_all_settings", &[], None, RECORD, true, Stable, rows("pg_settings")),
    f(2599, "pg_timezone_abbrevs", &[], None, RECORD, true, Stable, rows("pg_timezone_abbrevs")),
    f(2856, "pg_timezone_names", &[], None, RECORD, true, Stable, rows("pg_timezone_names")),
    f(3073, "pg_is_wal_replay_paused", &[], None, BOOL, true, Volatile, FunctionImpl::Pure(|_| Ok(Datum::Bool(false)))),
    f(1137, "pg_get_wal_replay_pause_state", &[], None, TEXT, true, Volatile, FunctionImpl::Pure(|_| Ok(Datum::text("not paused")))),
    f(3830, "pg_last_xact_replay_timestamp", &[], None, TIMESTAMPTZ, true, Volatile, FunctionImpl::Pure(|_| Ok(Datum::Null))),
    f(3537, "pg_describe_object", &[OID, OID, INT4], None, TEXT, true, Stable, FunctionImpl::Catalog(CatalogFunction::DescribeObject)),
    f(3839, "pg_identify_object", &[OID, OID, INT4], None, RECORD, true, Stable, FunctionImpl::CatalogSet(CatalogSet::IdentifyObject)),
    f(3954, "pg_get_object_address", &[TEXT, TEXT_ARRAY, TEXT_ARRAY], None, RECORD, true, Stable, FunctionImpl::CatalogSet(CatalogSet::GetObjectAddress)),
    f(1349, "oidvectortypes", &[OIDVECTOR], None, TEXT, true, Stable, FunctionImpl::Io(vector_types)),
    f(3492, "to_regoper", &[TEXT], None, REGOPER, true, Stable, FunctionImpl::Io(|cx, a| to_reg(cx, a, REGOPER))),
    f(3476, "to_regoperator", &[TEXT], None, REGOPERATOR, true, Stable, FunctionImpl::Io(|cx, a| to_reg(cx, a, REGOPERATOR))),
    f(4195, "to_regcollation", &[TEXT], None, REGCOLLATION, true, Stable, FunctionImpl::Io(|cx, a| to_reg(cx, a, REGCOLLATION))),
    f(13209, "_pg_index_position", &[OID, INT2], None, INT4, true, Stable, FunctionImpl::Catalog(CatalogFunction::IndexPosition)),
    f(13210, "_pg_truetypid", &[PG_ATTRIBUTE_ROW, PG_TYPE_ROW], None, OID, true, Immutable, FunctionImpl::Pure(|a| Ok(true_type(a, "typbasetype", "atttypid")))),
    f(13211, "_pg_truetypmod", &[PG_ATTRIBUTE_ROW, PG_TYPE_ROW], None, INT4, true, Immutable, FunctionImpl::Pure(|a| Ok(true_type(a, "typtypmod", "atttypmod")))),
    f(13212, "_pg_char_max_length", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, m)| number(char_length(ty, m))))),
    f(13213, "_pg_char_octet_length", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, m)| number(octet_length(ty, m))))),
    f(13215, "_pg_numeric_precision", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, m)| number(precision(ty, m))))),
    f(13216, "_pg_numeric_precision_radix", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, _)| number(radix(ty))))),
    f(13217, "_pg_numeric_scale", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, m)| number(scale(ty, m))))),
    f(13218, "_pg_datetime_precision", &[OID, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).and_then(|(ty, m)| number(datetime_precision(ty, m))))),
    f(13219, "_pg_interval_type", &[OID, INT4], None, TEXT, true, Immutable, FunctionImpl::Pure(|a| type_and_modifier(a).map(|(ty, m)| interval_type(ty, m).map_or(Datum::Null, Datum::text)))),
];
