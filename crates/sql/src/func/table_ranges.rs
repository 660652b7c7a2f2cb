//! Rows of the registry: ranges. Numbers are PostgreSQL's.

use super::Volatility::Immutable;
use super::numbers::compared;
use super::registry::Operator;
use super::table_operators::o;
use super::{Body, Function, ranges};
use crate::func::function as f;
use crate::value::Datum;
use crate::value::oid::*;

/// Functions.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(3840, "int4range", &[INT4, INT4], None, INT4RANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3841, "int4range", &[INT4, INT4, TEXT], None, INT4RANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3844, "numrange", &[NUMERIC, NUMERIC], None, NUMRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3845, "numrange", &[NUMERIC, NUMERIC, TEXT], None, NUMRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3848, "lower", &[ANYRANGE], None, ANYELEMENT, true, Immutable, Body::Pure(ranges::lower)),
    f(3849, "upper", &[ANYRANGE], None, ANYELEMENT, true, Immutable, Body::Pure(ranges::upper)),
    f(3850, "isempty", &[ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::is_empty)),
    f(3851, "lower_inc", &[ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::lower_inc)),
    f(3852, "upper_inc", &[ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::upper_inc)),
    f(3853, "lower_inf", &[ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::lower_inf)),
    f(3854, "upper_inf", &[ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::upper_inf)),
    f(3855, "range_eq", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_eq))),
    f(3856, "range_ne", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_ne))),
    f(3857, "range_overlaps", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::overlaps)),
    f(3858, "range_contains_elem", &[ANYRANGE, ANYELEMENT], None, BOOL, true, Immutable, Body::Pure(ranges::contains_value)),
    f(3859, "range_contains", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::contains)),
    f(3860, "elem_contained_by_range", &[ANYELEMENT, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::value_contained)),
    f(3861, "range_contained_by", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::contained)),
    f(3862, "range_adjacent", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::adjacent)),
    f(3863, "range_before", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::before)),
    f(3864, "range_after", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::after)),
    f(3865, "range_overleft", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::overleft)),
    f(3866, "range_overright", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(ranges::overright)),
    f(3867, "range_union", &[ANYRANGE, ANYRANGE], None, ANYRANGE, true, Immutable, Body::Pure(ranges::union)),
    f(3868, "range_intersect", &[ANYRANGE, ANYRANGE], None, ANYRANGE, true, Immutable, Body::Pure(ranges::intersect)),
    f(3869, "range_minus", &[ANYRANGE, ANYRANGE], None, ANYRANGE, true, Immutable, Body::Pure(ranges::minus)),
    f(3871, "range_lt", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_lt))),
    f(3872, "range_le", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_le))),
    f(3873, "range_ge", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_ge))),
    f(3874, "range_gt", &[ANYRANGE, ANYRANGE], None, BOOL, true, Immutable, Body::Pure(compared!(is_gt))),
    f(3933, "tsrange", &[TIMESTAMP, TIMESTAMP], None, TSRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3934, "tsrange", &[TIMESTAMP, TIMESTAMP, TEXT], None, TSRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3937, "tstzrange", &[TIMESTAMPTZ, TIMESTAMPTZ], None, TSTZRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3938, "tstzrange", &[TIMESTAMPTZ, TIMESTAMPTZ, TEXT], None, TSTZRANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3941, "daterange", &[DATE, DATE], None, DATERANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3942, "daterange", &[DATE, DATE, TEXT], None, DATERANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3945, "int8range", &[INT8, INT8], None, INT8RANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(3946, "int8range", &[INT8, INT8, TEXT], None, INT8RANGE, false, Immutable, Body::Pure(ranges::construct)),
    f(4057, "range_merge", &[ANYRANGE, ANYRANGE], None, ANYRANGE, true, Immutable, Body::Pure(ranges::merge)),
];

/// Operators.
#[rustfmt::skip]
pub(super) static OPERATORS: &[Operator] = &[
    o(3882, "=", ANYRANGE, ANYRANGE, BOOL, 3855, 3882, 3883),
    o(3883, "<>", ANYRANGE, ANYRANGE, BOOL, 3856, 3883, 3882),
    o(3884, "<", ANYRANGE, ANYRANGE, BOOL, 3871, 3887, 3886),
    o(3885, "<=", ANYRANGE, ANYRANGE, BOOL, 3872, 3886, 3887),
    o(3886, ">=", ANYRANGE, ANYRANGE, BOOL, 3873, 3885, 3884),
    o(3887, ">", ANYRANGE, ANYRANGE, BOOL, 3874, 3884, 3885),
    o(3888, "&&", ANYRANGE, ANYRANGE, BOOL, 3857, 3888, 0),
    o(3889, "@>", ANYRANGE, ANYELEMENT, BOOL, 3858, 3891, 0),
    o(3890, "@>", ANYRANGE, ANYRANGE, BOOL, 3859, 3892, 0),
    o(3891, "<@", ANYELEMENT, ANYRANGE, BOOL, 3860, 3889, 0),
    o(3892, "<@", ANYRANGE, ANYRANGE, BOOL, 3861, 3890, 0),
    o(3893, "<<", ANYRANGE, ANYRANGE, BOOL, 3863, 3894, 0),
    o(3894, ">>", ANYRANGE, ANYRANGE, BOOL, 3864, 3893, 0),
    o(3895, "&<", ANYRANGE, ANYRANGE, BOOL, 3865, 0, 0),
    o(3896, "&>", ANYRANGE, ANYRANGE, BOOL, 3866, 0, 0),
    o(3897, "-|-", ANYRANGE, ANYRANGE, BOOL, 3862, 3897, 0),
    o(3898, "+", ANYRANGE, ANYRANGE, ANYRANGE, 3867, 3898, 0),
    o(3899, "-", ANYRANGE, ANYRANGE, ANYRANGE, 3869, 0, 0),
    o(3900, "*", ANYRANGE, ANYRANGE, ANYRANGE, 3868, 3900, 0),
];
