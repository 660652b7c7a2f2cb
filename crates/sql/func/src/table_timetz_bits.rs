//! Rows of the registry: time with time zone, and strings of bits. Numbers are PostgreSQL's.

use super::CastContext::{Assignment, Explicit, Implicit};
use super::Volatility::{Immutable, Stable};
use super::arithmetic::compared;
use super::{Function, FunctionImpl, bits, datetime, network, timetz};
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::{CastRow, Operator};
use crate::pg_rows::{PREFIX, o};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(1352, "timetz_eq", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(1353, "timetz_ne", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(1354, "timetz_lt", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(1355, "timetz_le", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(1356, "timetz_ge", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(1357, "timetz_gt", &[TIMETZ, TIMETZ], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(1358, "timetz_cmp", &[TIMETZ, TIMETZ], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(1379, "timetz_larger", &[TIMETZ, TIMETZ], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::larger)),
    f(1380, "timetz_smaller", &[TIMETZ, TIMETZ], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::smaller)),
    f(1273, "date_part", &[TEXT, TIMETZ], None, FLOAT8, true, Immutable, FunctionImpl::DateTime(datetime::date_part)),
    f(6201, "extract", &[TEXT, TIMETZ], None, NUMERIC, true, Immutable, FunctionImpl::DateTime(datetime::extract)),
    f(1297, "datetimetz_pl", &[DATE, TIMETZ], None, TIMESTAMPTZ, true, Immutable, FunctionImpl::Pure(timetz::on_date)),
    f(1298, "timetzdate_pl", &[TIMETZ, DATE], None, TIMESTAMPTZ, true, Immutable, FunctionImpl::Pure(timetz::on_date)),
    f(1359, "timestamptz", &[DATE, TIMETZ], None, TIMESTAMPTZ, true, Immutable, FunctionImpl::Pure(timetz::on_date)),
    f(1388, "timetz", &[TIMESTAMPTZ], None, TIMETZ, true, Stable, FunctionImpl::DateTime(timetz::of_timestamptz)),
    f(2047, "timetz", &[TIME], None, TIMETZ, true, Stable, FunctionImpl::DateTime(timetz::of_time)),
    f(2046, "time", &[TIMETZ], None, TIME, true, Immutable, FunctionImpl::Pure(timetz::to_time)),
    f(1749, "timetz_pl_interval", &[TIMETZ, INTERVAL], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::plus)),
    f(2547, "interval_pl_timetz", &[INTERVAL, TIMETZ], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::plus)),
    f(1750, "timetz_mi_interval", &[TIMETZ, INTERVAL], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::minus)),
    f(2037, "timezone", &[TEXT, TIMETZ], None, TIMETZ, true, Stable, FunctionImpl::DateTime(timetz::in_named_zone)),
    f(2038, "timezone", &[INTERVAL, TIMETZ], None, TIMETZ, true, Immutable, FunctionImpl::Pure(timetz::in_offset)),
    f(1581, "biteq", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(1582, "bitne", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(1592, "bitge", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(1593, "bitgt", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(1594, "bitle", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(1595, "bitlt", &[BIT, BIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(1666, "varbiteq", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(1667, "varbitne", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(1668, "varbitge", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(1669, "varbitgt", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(1670, "varbitle", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(1671, "varbitlt", &[VARBIT, VARBIT], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(1596, "bitcmp", &[BIT, BIT], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(1672, "varbitcmp", &[VARBIT, VARBIT], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(1673, "bitand", &[BIT, BIT], None, BIT, true, Immutable, FunctionImpl::Pure(bits::and)),
    f(1674, "bitor", &[BIT, BIT], None, BIT, true, Immutable, FunctionImpl::Pure(bits::or)),
    f(1675, "bitxor", &[BIT, BIT], None, BIT, true, Immutable, FunctionImpl::Pure(bits::xor)),
    f(1676, "bitnot", &[BIT], None, BIT, true, Immutable, FunctionImpl::Pure(bits::not)),
    f(1677, "bitshiftleft", &[BIT, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::shift_left)),
    f(1678, "bitshiftright", &[BIT, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::shift_right)),
    f(1679, "bitcat", &[VARBIT, VARBIT], None, VARBIT, true, Immutable, FunctionImpl::Pure(bits::concat)),
    f(1680, "substring", &[BIT, INT4, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::substring)),
    f(1699, "substring", &[BIT, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::substring)),
    f(1681, "length", &[BIT], None, INT4, true, Immutable, FunctionImpl::Pure(bits::length)),
    f(1682, "octet_length", &[BIT], None, INT4, true, Immutable, FunctionImpl::Pure(bits::octet_length)),
    f(1812, "bit_length", &[BIT], None, INT4, true, Immutable, FunctionImpl::Pure(bits::length)),
    f(1683, "bit", &[INT4, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::of_integer)),
    f(2075, "bit", &[INT8, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::of_integer)),
    f(1684, "int4", &[BIT], None, INT4, true, Immutable, FunctionImpl::Pure(bits::to_int4)),
    f(2076, "int8", &[BIT], None, INT8, true, Immutable, FunctionImpl::Pure(bits::to_int8)),
    f(1685, "bit", &[BIT, INT4, BOOL], None, BIT, true, Immutable, FunctionImpl::Pure(bits::fit)),
    f(1687, "varbit", &[VARBIT, INT4, BOOL], None, VARBIT, true, Immutable, FunctionImpl::Pure(bits::fit_varying)),
    f(1698, "position", &[BIT, BIT], None, INT4, true, Immutable, FunctionImpl::Pure(bits::position)),
    f(3030, "overlay", &[BIT, BIT, INT4, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::overlay)),
    f(3031, "overlay", &[BIT, BIT, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::overlay)),
    f(3032, "get_bit", &[BIT, INT4], None, INT4, true, Immutable, FunctionImpl::Pure(bits::get_bit)),
    f(3033, "set_bit", &[BIT, INT4, INT4], None, BIT, true, Immutable, FunctionImpl::Pure(bits::set_bit)),
    f(6162, "bit_count", &[BIT], None, INT8, true, Immutable, FunctionImpl::Pure(bits::bit_count)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(1550, "=", TIMETZ, TIMETZ, BOOL, 1352, 1550, 1551),
    o(1551, "<>", TIMETZ, TIMETZ, BOOL, 1353, 1551, 1550),
    o(1552, "<", TIMETZ, TIMETZ, BOOL, 1354, 1554, 1555),
    o(1553, "<=", TIMETZ, TIMETZ, BOOL, 1355, 1555, 1554),
    o(1554, ">", TIMETZ, TIMETZ, BOOL, 1357, 1552, 1553),
    o(1555, ">=", TIMETZ, TIMETZ, BOOL, 1356, 1553, 1552),
    o(1361, "+", DATE, TIMETZ, TIMESTAMPTZ, 1297, 1366, 0),
    o(1366, "+", TIMETZ, DATE, TIMESTAMPTZ, 1298, 1361, 0),
    o(1802, "+", TIMETZ, INTERVAL, TIMETZ, 1749, 2552, 0),
    o(1803, "-", TIMETZ, INTERVAL, TIMETZ, 1750, 0, 0),
    o(2552, "+", INTERVAL, TIMETZ, TIMETZ, 2547, 1802, 0),
    o(1784, "=", BIT, BIT, BOOL, 1581, 1784, 1785),
    o(1785, "<>", BIT, BIT, BOOL, 1582, 1785, 1784),
    o(1786, "<", BIT, BIT, BOOL, 1595, 1787, 1789),
    o(1787, ">", BIT, BIT, BOOL, 1593, 1786, 1788),
    o(1788, "<=", BIT, BIT, BOOL, 1594, 1789, 1787),
    o(1789, ">=", BIT, BIT, BOOL, 1592, 1788, 1786),
    o(1791, "&", BIT, BIT, BIT, 1673, 1791, 0),
    o(1792, "|", BIT, BIT, BIT, 1674, 1792, 0),
    o(1793, "#", BIT, BIT, BIT, 1675, 1793, 0),
    o(1794, "~", PREFIX, BIT, BIT, 1676, 0, 0),
    o(1795, "<<", BIT, INT4, BIT, 1677, 0, 0),
    o(1796, ">>", BIT, INT4, BIT, 1678, 0, 0),
    o(1797, "||", VARBIT, VARBIT, VARBIT, 1679, 0, 0),
    o(1804, "=", VARBIT, VARBIT, BOOL, 1666, 1804, 1805),
    o(1805, "<>", VARBIT, VARBIT, BOOL, 1667, 1805, 1804),
    o(1806, "<", VARBIT, VARBIT, BOOL, 1671, 1807, 1809),
    o(1807, ">", VARBIT, VARBIT, BOOL, 1669, 1806, 1808),
    o(1808, "<=", VARBIT, VARBIT, BOOL, 1670, 1809, 1807),
    o(1809, ">=", VARBIT, VARBIT, BOOL, 1668, 1808, 1806),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(TIME, TIMETZ, 2047, Implicit, false),
    c(TIMESTAMPTZ, TIMETZ, 1388, Assignment, false),
    c(TIMETZ, TIME, 2046, Assignment, false),
    c(BIT, VARBIT, 0, Implicit, false),
    c(VARBIT, BIT, 0, Implicit, false),
    c(INT8, BIT, 2075, Explicit, false),
    c(INT4, BIT, 1683, Explicit, false),
    c(BIT, INT8, 2076, Explicit, false),
    c(BIT, INT4, 1684, Explicit, false),
];
