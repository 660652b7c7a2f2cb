//! Functions that PostgreSQL's aggregates are computed with, and that aggregates of users name. The built-in ones here
//! have states of their own (`aggregate`).
//!
//! Not here: those whose state is internal.

use super::Volatility::Immutable;
use super::arithmetic::{self, bad_args, pick};
use super::{Function, FunctionImpl};
use crate::function as f;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::oid::*;
use logstead_sql_types::value::{Datum, Numeric, compare_as};
use logstead_types::SqlState;

/// Functions that aggregates are computed with.
#[rustfmt::skip]
pub(super) static FUNCTIONS: &[Function] = &[
    f(1138, "date_larger", &[DATE, DATE], None, DATE, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1139, "date_smaller", &[DATE, DATE], None, DATE, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(209, "float4larger", &[FLOAT4, FLOAT4], None, FLOAT4, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(211, "float4smaller", &[FLOAT4, FLOAT4], None, FLOAT4, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(223, "float8larger", &[FLOAT8, FLOAT8], None, FLOAT8, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(224, "float8smaller", &[FLOAT8, FLOAT8], None, FLOAT8, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(770, "int2larger", &[INT2, INT2], None, INT2, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(771, "int2smaller", &[INT2, INT2], None, INT2, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1236, "int8larger", &[INT8, INT8], None, INT8, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1237, "int8smaller", &[INT8, INT8], None, INT8, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1198, "interval_larger", &[INTERVAL, INTERVAL], None, INTERVAL, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1197, "interval_smaller", &[INTERVAL, INTERVAL], None, INTERVAL, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1767, "numeric_larger", &[NUMERIC, NUMERIC], None, NUMERIC, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1766, "numeric_smaller", &[NUMERIC, NUMERIC], None, NUMERIC, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1965, "oidlarger", &[OID, OID], None, OID, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1966, "oidsmaller", &[OID, OID], None, OID, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(458, "text_larger", &[TEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(459, "text_smaller", &[TEXT, TEXT], None, TEXT, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1063, "bpchar_larger", &[BPCHAR, BPCHAR], None, BPCHAR, true, Immutable, FunctionImpl::Pure(|a| blank_larger(a, true))),
    f(1064, "bpchar_smaller", &[BPCHAR, BPCHAR], None, BPCHAR, true, Immutable, FunctionImpl::Pure(|a| blank_larger(a, false))),
    f(1377, "time_larger", &[TIME, TIME], None, TIME, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1378, "time_smaller", &[TIME, TIME], None, TIME, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(2036, "timestamp_larger", &[TIMESTAMP, TIMESTAMP], None, TIMESTAMP, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(2035, "timestamp_smaller", &[TIMESTAMP, TIMESTAMP], None, TIMESTAMP, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(1196, "timestamptz_larger", &[TIMESTAMPTZ, TIMESTAMPTZ], None, TIMESTAMPTZ, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(1195, "timestamptz_smaller", &[TIMESTAMPTZ, TIMESTAMPTZ], None, TIMESTAMPTZ, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(515, "array_larger", &[ANYARRAY, ANYARRAY], None, ANYARRAY, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(516, "array_smaller", &[ANYARRAY, ANYARRAY], None, ANYARRAY, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(3525, "enum_larger", &[ANYENUM, ANYENUM], None, ANYENUM, true, Immutable, FunctionImpl::Pure(pick!(is_gt))),
    f(3524, "enum_smaller", &[ANYENUM, ANYENUM], None, ANYENUM, true, Immutable, FunctionImpl::Pure(pick!(is_lt))),
    f(2515, "booland_statefunc", &[BOOL, BOOL], None, BOOL, true, Immutable, FunctionImpl::Pure(|a| truths(a, |x, y| x && y))),
    f(2516, "boolor_statefunc", &[BOOL, BOOL], None, BOOL, true, Immutable, FunctionImpl::Pure(|a| truths(a, |x, y| x || y))),
    f(2804, "int8inc_any", &[INT8, ANY], None, INT8, true, Immutable, FunctionImpl::Pure(|a| step(a, 1))),
    f(3546, "int8dec", &[INT8], None, INT8, true, Immutable, FunctionImpl::Pure(|a| step(a, -1))),
    f(1840, "int2_sum", &[INT8, INT2], None, INT8, false, Immutable, FunctionImpl::Pure(int_sum)),
    f(1841, "int4_sum", &[INT8, INT4], None, INT8, false, Immutable, FunctionImpl::Pure(int_sum)),
    f(1842, "int8_sum", &[NUMERIC, INT8], None, NUMERIC, false, Immutable, FunctionImpl::Pure(numeric_sum)),
    f(1962, "int2_avg_accum", &[INT8_ARRAY, INT2], None, INT8_ARRAY, true, Immutable, FunctionImpl::Pure(avg_accum)),
    f(1963, "int4_avg_accum", &[INT8_ARRAY, INT4], None, INT8_ARRAY, true, Immutable, FunctionImpl::Pure(avg_accum)),
    f(3324, "int4_avg_combine", &[INT8_ARRAY, INT8_ARRAY], None, INT8_ARRAY, true, Immutable, FunctionImpl::Pure(avg_combine)),
    f(1964, "int8_avg", &[INT8_ARRAY], None, NUMERIC, true, Immutable, FunctionImpl::Pure(int_avg)),
    f(222, "float8_accum", &[FLOAT8_ARRAY, FLOAT8], None, FLOAT8_ARRAY, true, Immutable, FunctionImpl::Pure(float_accum)),
    f(208, "float4_accum", &[FLOAT8_ARRAY, FLOAT4], None, FLOAT8_ARRAY, true, Immutable, FunctionImpl::Pure(float_accum)),
    f(1830, "float8_avg", &[FLOAT8_ARRAY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(|a| moments(a, 1.0, |n, sum, _| sum / n))),
    f(2512, "float8_var_pop", &[FLOAT8_ARRAY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(|a| moments(a, 1.0, |n, _, sxx| sxx / n))),
    f(1831, "float8_var_samp", &[FLOAT8_ARRAY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(|a| moments(a, 2.0, |n, _, sxx| sxx / (n - 1.0)))),
    f(2513, "float8_stddev_pop", &[FLOAT8_ARRAY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(|a| moments(a, 1.0, |n, _, sxx| (sxx / n).sqrt()))),
    f(1832, "float8_stddev_samp", &[FLOAT8_ARRAY], None, FLOAT8, true, Immutable, FunctionImpl::Pure(|a| moments(a, 2.0, |n, _, sxx| (sxx / (n - 1.0)).sqrt()))),
];

fn two(args: &[Datum]) -> Result<(&Datum, &Datum)> {
    match args {
        [a, b] => Ok((a, b)),
        _ => Err(bad_args(args)),
    }
}

fn truths(args: &[Datum], f: fn(bool, bool) -> bool) -> Result<Datum> {
    let (a, b) = two(args)?;
    Ok(Datum::Bool(f(a.as_bool()?, b.as_bool()?)))
}

/// The larger, or smaller, of two of char(n), whose blanks at the end do not count.
fn blank_larger(args: &[Datum], larger: bool) -> Result<Datum> {
    let (a, b) = two(args)?;
    let order = compare_as(BPCHAR, a, b);
    let first = if larger { order.is_ge() } else { order.is_le() };
    Ok(if first { a.clone() } else { b.clone() })
}

fn step(args: &[Datum], by: i64) -> Result<Datum> {
    let from = args.first().ok_or_else(|| bad_args(args))?.as_i64()?;
    let to = from.checked_add(by).map(Datum::Int8);
    to.ok_or_else(|| arithmetic::out_of_range("bigint"))
}

/// A sum whose first value is NULL.
fn int_sum(args: &[Datum]) -> Result<Datum> {
    match two(args)? {
        (sum, Datum::Null) => Ok(sum.clone()),
        (Datum::Null, value) => Ok(Datum::Int8(value.as_integer()?)),
        (sum, value) => Ok(Datum::Int8(sum.as_i64()?.wrapping_add(value.as_integer()?))),
    }
}

fn numeric_sum(args: &[Datum]) -> Result<Datum> {
    match two(args)? {
        (sum, Datum::Null) => Ok(sum.clone()),
        (Datum::Null, value) => Ok(Datum::numeric(Numeric::from(value.as_integer()?))),
        (sum, value) => {
            let value = Numeric::from(value.as_integer()?);
            sum.as_numeric()?.add(&value).map(Datum::numeric)
        }
    }
}

/// The items of a state, of which there are so many, none NULL.
fn state<const N: usize>(state: &Datum, wrong: &str) -> Result<[Datum; N]> {
    let items = match state {
        Datum::Array(array) if array.shape.is_none() => array.items.clone(),
        _ => Vec::new(),
    };
    let items: Option<[Datum; N]> = items.try_into().ok();
    let items = items.filter(|items| !items.iter().any(Datum::is_null));
    items.ok_or_else(|| SqlError::new(SqlState::new(b"XX000"), wrong.to_owned()))
}

/// Count and sum of integers.
fn counted(array: &Datum) -> Result<(i64, i64)> {
    let [count, sum] = state::<2>(array, "expected 2-element int8 array")?;
    Ok((count.as_i64()?, sum.as_i64()?))
}

fn avg_accum(args: &[Datum]) -> Result<Datum> {
    let (array, value) = two(args)?;
    let (count, sum) = counted(array)?;
    let value = value.as_integer()?;
    let items = vec![Datum::Int8(count + 1), Datum::Int8(sum.wrapping_add(value))];
    Ok(Datum::array(INT8, items))
}

fn avg_combine(args: &[Datum]) -> Result<Datum> {
    let (a, b) = two(args)?;
    let ((n, sum), (m, other)) = (counted(a)?, counted(b)?);
    let items = vec![Datum::Int8(n + m), Datum::Int8(sum.wrapping_add(other))];
    Ok(Datum::array(INT8, items))
}

fn int_avg(args: &[Datum]) -> Result<Datum> {
    let (count, sum) = counted(args.first().ok_or_else(|| bad_args(args))?)?;
    match count {
        0 => Ok(Datum::Null),
        _ => Numeric::from(sum)
            .div(&Numeric::from(count))
            .map(Datum::numeric),
    }
}

/// Count, sum and sum of squared differences.
fn floats(array: &Datum, name: &str) -> Result<[f64; 3]> {
    let items = state::<3>(array, &format!("{name}: expected 3-element float8 array"))?;
    let [n, sum, sxx] = &items;
    Ok([n.as_f64()?, sum.as_f64()?, sxx.as_f64()?])
}

fn float_accum(args: &[Datum]) -> Result<Datum> {
    let (array, value) = two(args)?;
    let [before, sum_before, mut sxx] = floats(array, "float8_accum")?;
    let value = match value {
        Datum::Float4(value) => f64::from(*value),
        value => value.as_f64()?,
    };
    let (n, sum) = (before + 1.0, sum_before + value);
    if before > 0.0 {
        let t = value * n - sum;
        sxx += t * t / (n * before);
        if sum.is_infinite() || sxx.is_infinite() {
            arithmetic::checked(f64::INFINITY, sum_before.is_finite() && value.is_finite())?;
            sxx = f64::NAN;
        }
    } else if !value.is_finite() {
        sxx = f64::NAN;
    }
    let items = [n, sum, sxx].into_iter().map(Datum::Float8);
    Ok(Datum::array(FLOAT8, items.collect()))
}

/// A figure of a state with at least so many values.
fn moments(args: &[Datum], least: f64, f: fn(f64, f64, f64) -> f64) -> Result<Datum> {
    let [n, sum, sxx] = floats(args.first().ok_or_else(|| bad_args(args))?, "float8_avg")?;
    Ok(if n < least {
        Datum::Null
    } else {
        Datum::Float8(f(n, sum, sxx))
    })
}
