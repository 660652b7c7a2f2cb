//! Functions that have a name to call them by.
//!
//! Those with default arguments have one row per number of arguments; the code fills in the rest.

use super::Volatility::{self, Immutable};
use super::{Body, Function, numbers};
use crate::value::oid::*;
use crate::value::Oid;


#[allow(clippy::too_many_arguments, reason = "one call per row of a literal table")]
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
    Function { oid, name, args, variadic, result, strict, volatility, body }
}

/// Functions by name.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(1394, "abs", &[FLOAT4], None, FLOAT4, true, Immutable, Body::Pure(numbers::abs)),
    f(1395, "abs", &[FLOAT8], None, FLOAT8, true, Immutable, Body::Pure(numbers::abs)),
    f(1396, "abs", &[INT8], None, INT8, true, Immutable, Body::Pure(numbers::abs)),
    f(1397, "abs", &[INT4], None, INT4, true, Immutable, Body::Pure(numbers::abs)),
    f(1398, "abs", &[INT2], None, INT2, true, Immutable, Body::Pure(numbers::abs)),
    f(1705, "abs", &[NUMERIC], None, NUMERIC, true, Immutable, Body::Pure(numbers::abs)),
];
