//! Arithmetic of coordinates that fails where PostgreSQL's does.
//!
//! Comparisons are PostgreSQL's: what differs by less than [`EPSILON`] is the same, and a comparison of NaN is false.

use super::EPSILON;
use crate::error::{Result, SqlError};
use crate::value::compare::compare_f64;
use logstead_types::SqlState;

#[cold]
fn overflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: overflow",
    )
}

#[cold]
fn underflow() -> SqlError {
    SqlError::new(
        SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
        "value out of range: underflow",
    )
}

pub(super) fn add(a: f64, b: f64) -> Result<f64> {
    let sum = a + b;
    match sum.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(overflow()),
        false => Ok(sum),
    }
}

pub(super) fn sub(a: f64, b: f64) -> Result<f64> {
    let difference = a - b;
    match difference.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(overflow()),
        false => Ok(difference),
    }
}

pub(super) fn mul(a: f64, b: f64) -> Result<f64> {
    let product = a * b;
    if product.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    match product == 0.0 && a != 0.0 && b != 0.0 {
        true => Err(underflow()),
        false => Ok(product),
    }
}

pub(super) fn div(a: f64, b: f64) -> Result<f64> {
    if b == 0.0 && !a.is_nan() {
        return Err(SqlError::new(
            SqlState::DIVISION_BY_ZERO,
            "division by zero",
        ));
    }
    let quotient = a / b;
    if quotient.is_infinite() && !a.is_infinite() {
        return Err(overflow());
    }
    match quotient == 0.0 && a != 0.0 && !b.is_infinite() {
        true => Err(underflow()),
        false => Ok(quotient),
    }
}

/// The length of the hypotenuse.
pub(super) fn hypot(x: f64, y: f64) -> Result<f64> {
    if x.is_infinite() || y.is_infinite() {
        return Ok(f64::INFINITY);
    }
    if x.is_nan() || y.is_nan() {
        return Ok(f64::NAN);
    }
    let (x, y) = (x.abs(), y.abs());
    let (long, short) = if x < y { (y, x) } else { (x, y) };
    if short == 0.0 {
        return Ok(long);
    }
    let ratio = short / long;
    let length = long * (1.0 + ratio * ratio).sqrt();
    if length.is_infinite() {
        return Err(overflow());
    }
    match length == 0.0 {
        true => Err(underflow()),
        false => Ok(length),
    }
}

pub(super) fn is_zero(a: f64) -> bool {
    a.abs() <= EPSILON
}

pub(super) fn eq(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

pub(super) fn ne(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}

pub(super) fn lt(a: f64, b: f64) -> bool {
    a + EPSILON < b
}

pub(super) fn le(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}

pub(super) fn gt(a: f64, b: f64) -> bool {
    a > b + EPSILON
}

pub(super) fn ge(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Exactly less, NaN above everything.
pub(super) fn less(a: f64, b: f64) -> bool {
    compare_f64(a, b).is_lt()
}

pub(super) fn min(a: f64, b: f64) -> f64 {
    if less(a, b) { a } else { b }
}

pub(super) fn max(a: f64, b: f64) -> f64 {
    if less(b, a) { a } else { b }
}

/// Exactly equal, NaN to NaN.
pub(super) fn same_number(a: f64, b: f64) -> bool {
    compare_f64(a, b).is_eq()
}

/// The middle between two numbers.
pub(super) fn middle(a: f64, b: f64) -> Result<f64> {
    div(add(a, b)?, 2.0)
}

/// No minus before zero.
pub(super) fn plain_zero(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v }
}
