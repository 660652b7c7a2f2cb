//! Rows of the registry: functions of json and jsonb. Numbers are PostgreSQL's.

use super::cast;
use crate::func::Volatility::{self, Immutable};
use crate::func::numbers::compared;
use crate::func::{Body, Function};
use crate::value::oid::*;
use crate::value::{Datum, Oid};

#[allow(
    clippy::too_many_arguments,
    reason = "one call per row of a literal table"
)]
const fn f(
    oid: Oid,
    name: &'static str,
    args: &'static [Oid],
    variadic: Option<Oid>,
    result: Oid,
    strict: bool,
    volatility: Volatility,
    body: Body,
) -> Function {
    Function {
        oid,
        name,
        args,
        variadic,
        result,
        strict,
        volatility,
        body,
    }
}

/// Functions of json and jsonb.
#[rustfmt::skip]
pub(in crate::func) static FUNCTIONS: &[Function] = &[
    f(2580, "float8", &[JSONB], None, FLOAT8, true, Immutable, Body::Pure(cast::to_float8)),
    f(3449, "numeric", &[JSONB], None, NUMERIC, true, Immutable, Body::Pure(cast::to_numeric)),
    f(3450, "int2", &[JSONB], None, INT2, true, Immutable, Body::Pure(cast::to_int2)),
    f(3451, "int4", &[JSONB], None, INT4, true, Immutable, Body::Pure(cast::to_int4)),
    f(3452, "int8", &[JSONB], None, INT8, true, Immutable, Body::Pure(cast::to_int8)),
    f(3453, "float4", &[JSONB], None, FLOAT4, true, Immutable, Body::Pure(cast::to_float4)),
    f(3556, "bool", &[JSONB], None, BOOL, true, Immutable, Body::Pure(cast::to_bool)),
    f(4038, "jsonb_ne", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_ne))),
    f(4039, "jsonb_lt", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_lt))),
    f(4040, "jsonb_gt", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_gt))),
    f(4041, "jsonb_le", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_le))),
    f(4042, "jsonb_ge", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_ge))),
    f(4043, "jsonb_eq", &[JSONB, JSONB], None, BOOL, true, Immutable, Body::Pure(compared!(is_eq))),
];
