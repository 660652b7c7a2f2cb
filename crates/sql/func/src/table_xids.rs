//! Rows of the registry: tid, xid, xid8 and cid. Numbers are PostgreSQL's.

use super::CastContext::Explicit;
use super::Volatility::{Immutable, Stable};
use super::arithmetic::compared;
use super::{Function, FunctionImpl, Rows, arithmetic, network};
use crate::catalog_function::ServerFunction;
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::o;
use crate::pg_rows::{CastRow, Operator};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::snapshot::Snapshot;
use logstead_types::SqlState;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(1292, "tideq", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(1265, "tidne", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(2791, "tidlt", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(2793, "tidle", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(2790, "tidgt", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(2792, "tidge", &[TID, TID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(2794, "bttidcmp", &[TID, TID], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(2795, "tidlarger", &[TID, TID], None, TID, true, Immutable, FunctionImpl::Pure(larger)),
    f(2796, "tidsmaller", &[TID, TID], None, TID, true, Immutable, FunctionImpl::Pure(smaller)),
    f(69, "cideq", &[CID, CID], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(1319, "xideqint4", &[XID, INT4], None, BOOL, true, Immutable, FunctionImpl::Pair(|a, b| equals(a, b, true))),
    f(3309, "xidneqint4", &[XID, INT4], None, BOOL, true, Immutable, FunctionImpl::Pair(|a, b| equals(a, b, false))),
    f(1181, "age", &[XID], None, INT4, true, Stable, FunctionImpl::Server(ServerFunction::XidAge)),
    f(3939, "mxid_age", &[XID], None, INT4, true, Stable, FunctionImpl::Server(ServerFunction::XidAge)),
    f(5084, "xid8eq", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(5085, "xid8ne", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(5034, "xid8lt", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(5036, "xid8le", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(5035, "xid8gt", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(5037, "xid8ge", &[XID8, XID8], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(5096, "xid8cmp", &[XID8, XID8], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(5097, "xid8_larger", &[XID8, XID8], None, XID8, true, Immutable, FunctionImpl::Pure(larger)),
    f(5098, "xid8_smaller", &[XID8, XID8], None, XID8, true, Immutable, FunctionImpl::Pure(smaller)),
    f(5071, "xid", &[XID8], None, XID, true, Immutable, FunctionImpl::Pure(to_xid)),
    f(5059, "pg_current_xact_id", &[], None, XID8, true, Stable, FunctionImpl::Server(ServerFunction::CurrentXactId)),
    f(5060, "pg_current_xact_id_if_assigned", &[], None, XID8, true, Stable, FunctionImpl::Server(ServerFunction::CurrentXactIdIfAssigned)),
    f(5066, "pg_xact_status", &[XID8], None, TEXT, true, super::Volatility::Volatile, FunctionImpl::Server(ServerFunction::XactStatus)),
    f(3360, "txid_status", &[INT8], None, TEXT, true, super::Volatility::Volatile, FunctionImpl::Server(ServerFunction::XactStatus)),
    f(5061, "pg_current_snapshot", &[], None, PG_SNAPSHOT, true, Stable, FunctionImpl::Transaction(|cx, txn| cx.current_snapshot(txn))),
    f(5062, "pg_snapshot_xmin", &[PG_SNAPSHOT], None, XID8, true, Immutable, FunctionImpl::Pure(xmin)),
    f(5063, "pg_snapshot_xmax", &[PG_SNAPSHOT], None, XID8, true, Immutable, FunctionImpl::Pure(xmax)),
    f(5064, "pg_snapshot_xip", &[PG_SNAPSHOT], None, XID8, true, Immutable, FunctionImpl::Set(xip)),
    f(5065, "pg_visible_in_snapshot", &[XID8, PG_SNAPSHOT], None, BOOL, true, Immutable, FunctionImpl::Pure(visible)),
    f(2944, "txid_current_snapshot", &[], None, TXID_SNAPSHOT, true, Stable, FunctionImpl::Transaction(|cx, txn| cx.current_snapshot(txn))),
    f(2945, "txid_snapshot_xmin", &[TXID_SNAPSHOT], None, INT8, true, Immutable, FunctionImpl::Pure(xmin)),
    f(2946, "txid_snapshot_xmax", &[TXID_SNAPSHOT], None, INT8, true, Immutable, FunctionImpl::Pure(xmax)),
    f(2947, "txid_snapshot_xip", &[TXID_SNAPSHOT], None, INT8, true, Immutable, FunctionImpl::Set(xip)),
    f(2948, "txid_visible_in_snapshot", &[INT8, TXID_SNAPSHOT], None, BOOL, true, Immutable, FunctionImpl::Pure(visible)),
    f(3809, "pg_export_snapshot", &[], None, TEXT, true, super::Volatility::Volatile, FunctionImpl::Transaction(|cx, txn| cx.export_snapshot(txn))),
    f(3581, "pg_xact_commit_timestamp", &[XID], None, TIMESTAMPTZ, true, super::Volatility::Volatile, FunctionImpl::Pure(commit_timestamp)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(387, "=", TID, TID, BOOL, 1292, 387, 402),
    o(402, "<>", TID, TID, BOOL, 1265, 402, 387),
    o(2799, "<", TID, TID, BOOL, 2791, 2800, 2802),
    o(2800, ">", TID, TID, BOOL, 2790, 2799, 2801),
    o(2801, "<=", TID, TID, BOOL, 2793, 2802, 2800),
    o(2802, ">=", TID, TID, BOOL, 2792, 2801, 2799),
    o(385, "=", CID, CID, BOOL, 69, 385, 0),
    o(353, "=", XID, INT4, BOOL, 1319, 0, 3316),
    o(3316, "<>", XID, INT4, BOOL, 3309, 0, 353),
    o(5068, "=", XID8, XID8, BOOL, 5084, 5068, 5072),
    o(5072, "<>", XID8, XID8, BOOL, 5085, 5072, 5068),
    o(5073, "<", XID8, XID8, BOOL, 5034, 5074, 5076),
    o(5074, ">", XID8, XID8, BOOL, 5035, 5073, 5075),
    o(5075, "<=", XID8, XID8, BOOL, 5036, 5076, 5074),
    o(5076, ">=", XID8, XID8, BOOL, 5037, 5075, 5073),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(XID8, XID, 5071, Explicit, false),
];

/// xid = integer: both as 32 bits.
fn equals(xid: &Datum, number: &Datum, wanted: bool) -> Result<Datum> {
    match (xid, number) {
        (Datum::Oid(xid), Datum::Int4(number)) => {
            Ok(Datum::Bool((*xid == number.cast_unsigned()) == wanted))
        }
        _ => Err(arithmetic::bad_args(&[xid.clone(), number.clone()])),
    }
}

/// The low half.
fn to_xid(args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(xid)] => Ok(Datum::Oid(*xid as u32)),
        _ => Err(arithmetic::bad_args(args)),
    }
}

fn xmin(args: &[Datum]) -> Result<Datum> {
    match args {
        [of] => Snapshot::of(of).map(|snapshot| Datum::Int8(snapshot.xmin)),
        _ => Err(arithmetic::bad_args(args)),
    }
}

fn xmax(args: &[Datum]) -> Result<Datum> {
    match args {
        [of] => Snapshot::of(of).map(|snapshot| Datum::Int8(snapshot.xmax)),
        _ => Err(arithmetic::bad_args(args)),
    }
}

/// Transactions that ran, a row each.
fn xip(args: &[Datum]) -> Result<Rows> {
    match args {
        [of] => Ok(Snapshot::of(of)?
            .xip()
            .map(|xid| vec![Datum::Int8(xid)])
            .collect()),
        _ => Err(arithmetic::bad_args(args)),
    }
}

fn visible(args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(xid), of] => Ok(Datum::Bool(Snapshot::of(of)?.sees(*xid))),
        _ => Err(arithmetic::bad_args(args)),
    }
}

/// `track_commit_timestamp` is off: the log has no times.
fn commit_timestamp(_args: &[Datum]) -> Result<Datum> {
    Err(SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "could not get commit timestamp data",
    )
    .hint("Make sure the configuration parameter \"track_commit_timestamp\" is set."))
}

fn larger(args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(a), Datum::Int8(b)] => Ok(Datum::Int8(*a.max(b))),
        _ => Err(arithmetic::bad_args(args)),
    }
}

fn smaller(args: &[Datum]) -> Result<Datum> {
    match args {
        [Datum::Int8(a), Datum::Int8(b)] => Ok(Datum::Int8(*a.min(b))),
        _ => Err(arithmetic::bad_args(args)),
    }
}
