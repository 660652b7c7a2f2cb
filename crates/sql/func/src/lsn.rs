//! `pg_lsn`: arithmetic and comparisons, and the places of this server's log.
//!
//! What PostgreSQL tells as a byte's place in its log is here a transaction's: the log is several lanes, and what
//! orders it is the commit sequence number (CSN). `pg_current_wal_lsn()` and `pg_current_wal_insert_lsn()` are the next
//! CSN that will be drawn, so that whatever was committed before is below; `pg_current_wal_flush_lsn()` is the horizon,
//! below which everything is durable. They never go back, also not when the server is started anew. A difference is a
//! count of transactions, not of bytes.

use super::Volatility::{Immutable, Volatile};
use super::arithmetic::{bad_args, compared};
use super::{Function, FunctionImpl, hashes};
use crate::catalog_function::CatalogFunction;
use crate::function as f;
use crate::pg_rows::Operator;
use crate::pg_rows::o;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, Numeric};
use logstead_types::SqlState;
use num_bigint::BigInt;
use std::cmp::Ordering;

/// Bytes of a segment of PostgreSQL's log, of which `pg_walfile_name` tells the name.
const SEGMENT_BYTES: u64 = 16 << 20;

fn two(a: &[Datum]) -> Result<(u64, u64)> {
    match a {
        [Datum::Lsn(x), Datum::Lsn(y)] => Ok((*x, *y)),
        _ => Err(bad_args(a)),
    }
}

fn refused(message: &str) -> SqlError {
    SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
}

fn number(v: u64) -> Numeric {
    Numeric::from_big(BigInt::from(v), 0)
}

/// A number as a place: rounded, 22003 if there is none.
fn place(v: &Numeric) -> Result<Datum> {
    if v.is_nan() {
        return Err(refused("cannot convert NaN to pg_lsn"));
    }
    if matches!(v, Numeric::Infinity | Numeric::NegInfinity) {
        return Err(refused("cannot convert infinity to pg_lsn"));
    }
    v.round(0)
        .whole()
        .and_then(|v| u64::try_from(v).ok())
        .map(Datum::Lsn)
        .ok_or_else(|| SqlError::new(SqlState::INVALID_PARAMETER_VALUE, "pg_lsn out of range"))
}

/// `pg_lsn(numeric)`
fn of_numeric(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Numeric(v)] => place(v),
        _ => Err(bad_args(a)),
    }
}

/// `-`, `pg_wal_lsn_diff`
fn difference(a: &[Datum]) -> Result<Datum> {
    let (x, y) = two(a)?;
    let difference = BigInt::from(x) - BigInt::from(y);
    Ok(Datum::Numeric(Numeric::from_big(difference, 0)))
}

/// `+`
fn plus(a: &[Datum]) -> Result<Datum> {
    let ([Datum::Lsn(v), Datum::Numeric(n)] | [Datum::Numeric(n), Datum::Lsn(v)]) = a else {
        return Err(bad_args(a));
    };
    if n.is_nan() {
        return Err(refused("cannot add NaN to pg_lsn"));
    }
    place(&number(*v).add(n)?)
}

/// `-` of a number
fn minus(a: &[Datum]) -> Result<Datum> {
    let [Datum::Lsn(v), Datum::Numeric(n)] = a else {
        return Err(bad_args(a));
    };
    if n.is_nan() {
        return Err(refused("cannot subtract NaN from pg_lsn"));
    }
    place(&number(*v).sub(n)?)
}

fn compare(a: &[Datum]) -> Result<Datum> {
    let (x, y) = two(a)?;
    Ok(Datum::Int4(match x.cmp(&y) {
        Ordering::Less => -1,
        Ordering::Equal => 0,
        Ordering::Greater => 1,
    }))
}

fn larger(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::Lsn(x.max(y)))
}

fn smaller(a: &[Datum]) -> Result<Datum> {
    two(a).map(|(x, y)| Datum::Lsn(x.min(y)))
}

fn hash(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Lsn(v)] => hashes::bigint(&[Datum::Int8(v.cast_signed())]),
        _ => Err(bad_args(a)),
    }
}

/// `pg_walfile_name`: what PostgreSQL would call the segment of a log of bytes. No file has this name here.
fn segment_name(a: &[Datum]) -> Result<Datum> {
    let [Datum::Lsn(v)] = a else {
        return Err(bad_args(a));
    };
    // A place at a border belongs to the segment before it.
    let segment = v.wrapping_sub(1) / SEGMENT_BYTES;
    let in_group = (1_u64 << 32) / SEGMENT_BYTES;
    let name = format!(
        "{:08X}{:08X}{:08X}",
        1,
        segment / in_group,
        segment % in_group
    );
    Ok(Datum::text(name))
}

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(2849, "pg_current_wal_lsn", &[], None, PG_LSN, true, Volatile, FunctionImpl::Catalog(CatalogFunction::CurrentWalLsn)),
    f(2851, "pg_walfile_name", &[PG_LSN], None, TEXT, true, Immutable, FunctionImpl::Pure(segment_name)),
    f(2852, "pg_current_wal_insert_lsn", &[], None, PG_LSN, true, Volatile, FunctionImpl::Catalog(CatalogFunction::CurrentWalInsertLsn)),
    f(3165, "pg_wal_lsn_diff", &[PG_LSN, PG_LSN], None, NUMERIC, true, Immutable, FunctionImpl::Pure(difference)),
    f(3231, "pg_lsn_lt", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(3232, "pg_lsn_le", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(3233, "pg_lsn_eq", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(3234, "pg_lsn_ge", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(3235, "pg_lsn_gt", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(3236, "pg_lsn_ne", &[PG_LSN, PG_LSN], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(3237, "pg_lsn_mi", &[PG_LSN, PG_LSN], None, NUMERIC, true, Immutable, FunctionImpl::Pure(difference)),
    f(3251, "pg_lsn_cmp", &[PG_LSN, PG_LSN], None, INT4, true, Immutable, FunctionImpl::Pure(compare)),
    f(3252, "pg_lsn_hash", &[PG_LSN], None, INT4, true, Immutable, FunctionImpl::Pure(hash)),
    f(3330, "pg_current_wal_flush_lsn", &[], None, PG_LSN, true, Volatile, FunctionImpl::Catalog(CatalogFunction::CurrentWalFlushLsn)),
    f(3820, "pg_last_wal_receive_lsn", &[], None, PG_LSN, true, Volatile, FunctionImpl::Catalog(CatalogFunction::LastWalReplayLsn)),
    f(3821, "pg_last_wal_replay_lsn", &[], None, PG_LSN, true, Volatile, FunctionImpl::Catalog(CatalogFunction::LastWalReplayLsn)),
    f(4187, "pg_lsn_larger", &[PG_LSN, PG_LSN], None, PG_LSN, true, Immutable, FunctionImpl::Pure(larger)),
    f(4188, "pg_lsn_smaller", &[PG_LSN, PG_LSN], None, PG_LSN, true, Immutable, FunctionImpl::Pure(smaller)),
    f(5022, "pg_lsn_pli", &[PG_LSN, NUMERIC], None, PG_LSN, true, Immutable, FunctionImpl::Pure(plus)),
    f(5023, "numeric_pl_pg_lsn", &[NUMERIC, PG_LSN], None, PG_LSN, true, Immutable, FunctionImpl::Pure(plus)),
    f(5024, "pg_lsn_mii", &[PG_LSN, NUMERIC], None, PG_LSN, true, Immutable, FunctionImpl::Pure(minus)),
    f(6103, "pg_lsn", &[NUMERIC], None, PG_LSN, true, Immutable, FunctionImpl::Pure(of_numeric)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(3222, "=", PG_LSN, PG_LSN, BOOL, 3233, 3222, 3223),
    o(3223, "<>", PG_LSN, PG_LSN, BOOL, 3236, 3223, 3222),
    o(3224, "<", PG_LSN, PG_LSN, BOOL, 3231, 3225, 3227),
    o(3225, ">", PG_LSN, PG_LSN, BOOL, 3235, 3224, 3226),
    o(3226, "<=", PG_LSN, PG_LSN, BOOL, 3232, 3227, 3225),
    o(3227, ">=", PG_LSN, PG_LSN, BOOL, 3234, 3226, 3224),
    o(3228, "-", PG_LSN, PG_LSN, NUMERIC, 3237, 0, 0),
    o(5025, "+", PG_LSN, NUMERIC, PG_LSN, 5022, 5026, 0),
    o(5026, "+", NUMERIC, PG_LSN, PG_LSN, 5023, 5025, 0),
    o(5027, "-", PG_LSN, NUMERIC, PG_LSN, 5024, 0, 0),
];
