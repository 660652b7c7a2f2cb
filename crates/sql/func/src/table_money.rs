//! Rows of the registry: money. Numbers are PostgreSQL's.

use super::CastContext::Assignment;
use super::Volatility::{Immutable, Stable};
use super::arithmetic::compared;
use super::{Function, FunctionImpl, money, network};
use crate::function as f;
use crate::pg_rows::c;
use crate::pg_rows::o;
use crate::pg_rows::{CastRow, Operator};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(888, "cash_eq", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_eq))),
    f(889, "cash_ne", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ne))),
    f(890, "cash_lt", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_lt))),
    f(891, "cash_le", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_le))),
    f(892, "cash_gt", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_gt))),
    f(893, "cash_ge", &[MONEY, MONEY], None, BOOL, true, Immutable, FunctionImpl::Pair(compared!(is_ge))),
    f(377, "cash_cmp", &[MONEY, MONEY], None, INT4, true, Immutable, FunctionImpl::Pure(network::cmp)),
    f(846, "cash_mul_flt4", &[MONEY, FLOAT4], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times)),
    f(847, "cash_div_flt4", &[MONEY, FLOAT4], None, MONEY, true, Immutable, FunctionImpl::Pure(money::by_float)),
    f(848, "flt4_mul_cash", &[FLOAT4, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times)),
    f(3399, "int8_mul_cash", &[INT8, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(862, "int4_mul_cash", &[INT4, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(863, "int2_mul_cash", &[INT2, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(3344, "cash_mul_int8", &[MONEY, INT8], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(3345, "cash_div_int8", &[MONEY, INT8], None, MONEY, true, Immutable, FunctionImpl::Pure(money::by_integer)),
    f(864, "cash_mul_int4", &[MONEY, INT4], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(865, "cash_div_int4", &[MONEY, INT4], None, MONEY, true, Immutable, FunctionImpl::Pure(money::by_integer)),
    f(866, "cash_mul_int2", &[MONEY, INT2], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times_integer)),
    f(867, "cash_div_int2", &[MONEY, INT2], None, MONEY, true, Immutable, FunctionImpl::Pure(money::by_integer)),
    f(894, "cash_pl", &[MONEY, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::plus)),
    f(895, "cash_mi", &[MONEY, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::minus)),
    f(896, "cash_mul_flt8", &[MONEY, FLOAT8], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times)),
    f(897, "cash_div_flt8", &[MONEY, FLOAT8], None, MONEY, true, Immutable, FunctionImpl::Pure(money::by_float)),
    f(898, "cashlarger", &[MONEY, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::larger)),
    f(899, "cashsmaller", &[MONEY, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::smaller)),
    f(919, "flt8_mul_cash", &[FLOAT8, MONEY], None, MONEY, true, Immutable, FunctionImpl::Pure(money::times)),
    f(935, "cash_words", &[MONEY], None, TEXT, true, Immutable, FunctionImpl::Pure(money::words)),
    f(3822, "cash_div_cash", &[MONEY, MONEY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(money::ratio)),
    f(3823, "numeric", &[MONEY], None, NUMERIC, true, Stable, FunctionImpl::Pure(money::to_numeric)),
    f(3824, "money", &[NUMERIC], None, MONEY, true, Stable, FunctionImpl::Pure(money::of_numeric)),
    f(3811, "money", &[INT4], None, MONEY, true, Stable, FunctionImpl::Pure(money::of_integer)),
    f(3812, "money", &[INT8], None, MONEY, true, Stable, FunctionImpl::Pure(money::of_integer)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(843, "*", MONEY, FLOAT4, MONEY, 846, 845, 0),
    o(844, "/", MONEY, FLOAT4, MONEY, 847, 0, 0),
    o(845, "*", FLOAT4, MONEY, MONEY, 848, 843, 0),
    o(900, "=", MONEY, MONEY, BOOL, 888, 900, 901),
    o(901, "<>", MONEY, MONEY, BOOL, 889, 901, 900),
    o(902, "<", MONEY, MONEY, BOOL, 890, 903, 905),
    o(903, ">", MONEY, MONEY, BOOL, 892, 902, 904),
    o(904, "<=", MONEY, MONEY, BOOL, 891, 905, 903),
    o(905, ">=", MONEY, MONEY, BOOL, 893, 904, 902),
    o(906, "+", MONEY, MONEY, MONEY, 894, 906, 0),
    o(907, "-", MONEY, MONEY, MONEY, 895, 0, 0),
    o(908, "*", MONEY, FLOAT8, MONEY, 896, 916, 0),
    o(909, "/", MONEY, FLOAT8, MONEY, 897, 0, 0),
    o(3346, "*", MONEY, INT8, MONEY, 3344, 3349, 0),
    o(3347, "/", MONEY, INT8, MONEY, 3345, 0, 0),
    o(912, "*", MONEY, INT4, MONEY, 864, 917, 0),
    o(913, "/", MONEY, INT4, MONEY, 865, 0, 0),
    o(914, "*", MONEY, INT2, MONEY, 866, 918, 0),
    o(915, "/", MONEY, INT2, MONEY, 867, 0, 0),
    o(916, "*", FLOAT8, MONEY, MONEY, 919, 908, 0),
    o(3349, "*", INT8, MONEY, MONEY, 3399, 3346, 0),
    o(917, "*", INT4, MONEY, MONEY, 862, 912, 0),
    o(918, "*", INT2, MONEY, MONEY, 863, 914, 0),
    o(3825, "/", MONEY, MONEY, FLOAT8, 3822, 0, 0),
];

/// Casts.
#[rustfmt::skip]
pub(super) static CASTS: &[CastRow] = &[
    c(MONEY, NUMERIC, 3823, Assignment, false),
    c(NUMERIC, MONEY, 3824, Assignment, false),
    c(INT4, MONEY, 3811, Assignment, false),
    c(INT8, MONEY, 3812, Assignment, false),
];
