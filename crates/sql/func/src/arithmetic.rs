//! Arithmetic and comparison operators of numbers, and the comparison macros used for every type.
//!
//! Overflow is an error everywhere: "integer out of range", "value out of range: overflow", as PostgreSQL says it.

use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Numeric};
use logstead_types::SqlState;

/// "X out of range".
pub(super) fn out_of_range(name: &str) -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        format!("{name} out of range"),
    )
}

/// "division by zero".
pub(super) fn division_by_zero() -> SqlError {
    SqlError::new(SqlState::DIVISION_BY_ZERO, "division by zero")
}

/// A call with arguments of types the function is not declared for: a bug of the planner.
pub(super) fn bad_args(a: &[Datum]) -> SqlError {
    SqlError::internal(format!("function called with wrong arguments: {a:?}"))
}

/// The same for code that takes two arguments side by side.
#[cold]
pub(super) fn bad_pair(a: &Datum, b: &Datum) -> SqlError {
    bad_args(&[a.clone(), b.clone()])
}

/// Checked integer arithmetic: `arith!(Int4, Int8 => Int8 i64 checked_add "bigint")`.
macro_rules! arith {
    ($l:ident, $r:ident => $o:ident $t:ty, $f:ident, $name:literal) => {
        |a, b| match (a, b) {
            (Datum::$l(x), Datum::$r(y)) => <$t>::from(*x)
                .$f(<$t>::from(*y))
                .map(Datum::$o)
                .ok_or_else(|| super::arithmetic::out_of_range($name)),
            _ => Err(crate::arithmetic::bad_pair(a, b)),
        }
    };
}
pub(super) use arith;

/// Integer division and remainder, with PostgreSQL's two special divisors.
macro_rules! divide {
    ($l:ident, $r:ident => $o:ident $t:ty, $f:ident, $name:literal) => {
        |a, b| match (a, b) {
            (Datum::$l(_), Datum::$r(0)) => Err(super::arithmetic::division_by_zero()),
            (Datum::$l(x), Datum::$r(y)) => <$t>::from(*x)
                .$f(<$t>::from(*y))
                .map(Datum::$o)
                .ok_or_else(|| super::arithmetic::out_of_range($name)),
            _ => Err(crate::arithmetic::bad_pair(a, b)),
        }
    };
}
pub(super) use divide;

/// Remainder: anything modulo -1 is 0, the smallest value included.
macro_rules! modulo {
    ($v:ident) => {
        |a, b| match (a, b) {
            (Datum::$v(_), Datum::$v(0)) => Err(super::arithmetic::division_by_zero()),
            (Datum::$v(x), Datum::$v(y)) => Ok(Datum::$v(x.wrapping_rem(*y))),
            _ => Err(crate::arithmetic::bad_pair(a, b)),
        }
    };
}
pub(super) use modulo;

/// Comparison of two values of one type (or of integers or floats of two widths): `compared!(is_lt)`.
macro_rules! compared {
    ($f:ident) => {
        |a, b| Ok(Datum::Bool(logstead_sql_types::value::compare(a, b).$f()))
    };
}
pub(super) use compared;

/// Comparison of `char(n)`: trailing blanks do not count.
macro_rules! compared_blank {
    ($f:ident) => {
        |a, b| {
            let order =
                logstead_sql_types::value::compare_as(logstead_sql_types::value::oid::BPCHAR, a, b);
            Ok(Datum::Bool(order.$f()))
        }
    };
}
pub(super) use compared_blank;

/// Comparison of records by the forms of their fields.
macro_rules! compared_images {
    ($f:ident) => {
        |a, b| {
            Ok(Datum::Bool(
                logstead_sql_types::value::compare_images(a, b)?.$f(),
            ))
        }
    };
}
pub(super) use compared_images;

/// Bitwise operations on integers: `bits!(Int4, &)`.
macro_rules! bits {
    ($v:ident, $op:tt) => {
        |a| match a {
            [Datum::$v(x), Datum::$v(y)] => Ok(Datum::$v(x $op y)),
            _ => Err(crate::arithmetic::bad_args(a)),
        }
    };
}
pub(super) use bits;

/// Shifts: the count wraps at the width, as the processor's do.
macro_rules! shift {
    // As C does it, and PostgreSQL: an int is shifted, by the lowest five bits, and what fits into a smallint is left.
    (Int2, $f:ident) => {
        |a| match a {
            [Datum::Int2(x), Datum::Int4(n)] => Ok(Datum::Int2(i32::from(*x).$f(*n as u32) as i16)),
            _ => Err(crate::arithmetic::bad_args(a)),
        }
    };
    ($v:ident, $f:ident) => {
        |a| match a {
            [Datum::$v(x), Datum::Int4(n)] => Ok(Datum::$v(x.$f(*n as u32))),
            _ => Err(crate::arithmetic::bad_args(a)),
        }
    };
}
pub(super) use shift;

/// Smaller or larger of two values.
macro_rules! pick {
    ($f:ident) => {
        |a| match a {
            [x, y] => Ok(if logstead_sql_types::value::compare(x, y).$f() {
                x.clone()
            } else {
                y.clone()
            }),
            _ => Err(crate::arithmetic::bad_args(a)),
        }
    };
}
pub(super) use pick;

fn check_float(v: f64, may_overflow: bool, may_underflow: bool) -> Result<f64> {
    if v.is_infinite() && may_overflow {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: overflow",
        ));
    }
    if v == 0.0 && may_underflow {
        return Err(SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            "value out of range: underflow",
        ));
    }
    Ok(v)
}

/// "value out of range: overflow" for infinities made from finite values.
pub(super) fn checked(v: f64, finite_in: bool) -> Result<f64> {
    check_float(v, finite_in, false)
}

fn float_op(x: f64, y: f64, op: u8) -> Result<f64> {
    let finite = x.is_finite() && y.is_finite();
    match op {
        b'+' => check_float(x + y, finite, false),
        b'-' => check_float(x - y, finite, false),
        b'*' => check_float(x * y, finite, x != 0.0 && y != 0.0),
        _ if y == 0.0 && !x.is_nan() => Err(division_by_zero()),
        _ => check_float(x / y, finite, x != 0.0 && !y.is_infinite()),
    }
}

fn float32_op(x: f32, y: f32, op: u8) -> Result<f32> {
    let finite = x.is_finite() && y.is_finite();
    let v = match op {
        b'+' => x + y,
        b'-' => x - y,
        b'*' => x * y,
        _ if y == 0.0 && !x.is_nan() => return Err(division_by_zero()),
        _ => x / y,
    };
    let vanishes = match op {
        b'*' => x != 0.0 && y != 0.0,
        b'/' => x != 0.0 && !y.is_infinite(),
        _ => false,
    };
    check_float(f64::from(v), finite, vanishes)?;
    Ok(v)
}

fn floats(a: &Datum, b: &Datum, op: u8) -> Result<Datum> {
    match (a, b) {
        (Datum::Float8(x), Datum::Float8(y)) => float_op(*x, *y, op).map(Datum::Float8),
        (Datum::Float4(x), Datum::Float8(y)) => float_op(f64::from(*x), *y, op).map(Datum::Float8),
        (Datum::Float8(x), Datum::Float4(y)) => float_op(*x, f64::from(*y), op).map(Datum::Float8),
        (Datum::Float4(x), Datum::Float4(y)) => float32_op(*x, *y, op).map(Datum::Float4),
        _ => Err(bad_pair(a, b)),
    }
}

/// real and double precision `+`
pub(super) fn float_add(a: &Datum, b: &Datum) -> Result<Datum> {
    floats(a, b, b'+')
}

/// real and double precision `-`
pub(super) fn float_sub(a: &Datum, b: &Datum) -> Result<Datum> {
    floats(a, b, b'-')
}

/// real and double precision `*`
pub(super) fn float_mul(a: &Datum, b: &Datum) -> Result<Datum> {
    floats(a, b, b'*')
}

/// real and double precision `/`
pub(super) fn float_div(a: &Datum, b: &Datum) -> Result<Datum> {
    floats(a, b, b'/')
}

fn numerics(
    a: &Datum,
    b: &Datum,
    f: impl FnOnce(&Numeric, &Numeric) -> Result<Numeric>,
) -> Result<Datum> {
    match (a, b) {
        (Datum::Numeric(x), Datum::Numeric(y)) => f(x, y).map(Datum::numeric),
        _ => Err(bad_pair(a, b)),
    }
}

/// numeric `+`
pub(super) fn numeric_add(a: &Datum, b: &Datum) -> Result<Datum> {
    numerics(a, b, Numeric::add)
}

/// numeric `-`
pub(super) fn numeric_sub(a: &Datum, b: &Datum) -> Result<Datum> {
    numerics(a, b, Numeric::sub)
}

/// numeric `*`
pub(super) fn numeric_mul(a: &Datum, b: &Datum) -> Result<Datum> {
    numerics(a, b, Numeric::mul)
}

/// numeric `/`
pub(super) fn numeric_div(a: &Datum, b: &Datum) -> Result<Datum> {
    numerics(a, b, Numeric::div)
}

/// numeric `%`
pub(super) fn numeric_mod(a: &Datum, b: &Datum) -> Result<Datum> {
    numerics(a, b, Numeric::rem)
}

/// Unary minus of any number.
pub(super) fn negate(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int2(v)] => v
            .checked_neg()
            .map(Datum::Int2)
            .ok_or_else(|| out_of_range("smallint")),
        [Datum::Int4(v)] => v
            .checked_neg()
            .map(Datum::Int4)
            .ok_or_else(|| out_of_range("integer")),
        [Datum::Int8(v)] => v
            .checked_neg()
            .map(Datum::Int8)
            .ok_or_else(|| out_of_range("bigint")),
        [Datum::Float4(v)] => Ok(Datum::Float4(-v)),
        [Datum::Float8(v)] => Ok(Datum::Float8(-v)),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.neg())),
        _ => Err(bad_args(a)),
    }
}

/// Unary plus of anything.
pub(super) fn same(a: &[Datum]) -> Result<Datum> {
    a.first().cloned().ok_or_else(|| bad_args(a))
}

/// Absolute value of any number.
pub(super) fn abs(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int2(v)] => v
            .checked_abs()
            .map(Datum::Int2)
            .ok_or_else(|| out_of_range("smallint")),
        [Datum::Int4(v)] => v
            .checked_abs()
            .map(Datum::Int4)
            .ok_or_else(|| out_of_range("integer")),
        [Datum::Int8(v)] => v
            .checked_abs()
            .map(Datum::Int8)
            .ok_or_else(|| out_of_range("bigint")),
        [Datum::Float4(v)] => Ok(Datum::Float4(v.abs())),
        [Datum::Float8(v)] => Ok(Datum::Float8(v.abs())),
        [Datum::Numeric(v)] => Ok(Datum::numeric(v.abs())),
        _ => Err(bad_args(a)),
    }
}

/// Bitwise not.
pub(super) fn bit_not(a: &[Datum]) -> Result<Datum> {
    match a {
        [Datum::Int2(v)] => Ok(Datum::Int2(!v)),
        [Datum::Int4(v)] => Ok(Datum::Int4(!v)),
        [Datum::Int8(v)] => Ok(Datum::Int8(!v)),
        _ => Err(bad_args(a)),
    }
}
