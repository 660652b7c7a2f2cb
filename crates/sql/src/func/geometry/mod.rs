//! Functions and operators of the geometric types.
//!
//! Owns: how arguments are taken and results given (`one!`, `pair!`), and arithmetic that fails where PostgreSQL's does. The shapes are in
//! [`crate::value::geometry`]; what is asked of them in the modules by their names.
//!
//! Comparisons are PostgreSQL's: what differs by less than [`EPSILON`] is the same, and a comparison of NaN is false.

mod boxes;
mod circles;
mod lines;
mod paths;
mod points;
mod polygons;
mod segments;
pub(super) mod table;

use super::numbers::bad_args;
use crate::error::{Result, SqlError};
use crate::value::Datum;
use crate::value::geometry::{
    Circle, EPSILON, Geometry, Line, Lseg, Path, Point, Polygon, Rectangle,
};
use crate::value::oid::{ANYELEMENT, INT4};
use logstead_types::SqlState;

/// What a function takes.
trait Argument: Sized {
    fn of(datum: &Datum) -> Option<&Self>;
}

macro_rules! argument {
    ($($shape:ident: $variant:ident;)*) => {
        $(
            impl Argument for $shape {
                fn of(datum: &Datum) -> Option<&$shape> {
                    match datum {
                        Datum::Geometry(v) => match &**v {
                            Geometry::$variant(v) => Some(v),
                            _ => None,
                        },
                        _ => None,
                    }
                }
            }

            impl Give for $shape {
                fn give(self) -> Datum {
                    Geometry::$variant(self).datum()
                }
            }
        )*
    };
}

argument! {
    Point: Point;
    Line: Line;
    Lseg: Lseg;
    Rectangle: Box;
    Path: Path;
    Polygon: Polygon;
    Circle: Circle;
}

impl Argument for f64 {
    fn of(datum: &Datum) -> Option<&f64> {
        match datum {
            Datum::Float8(v) => Some(v),
            _ => None,
        }
    }
}

impl Argument for i32 {
    fn of(datum: &Datum) -> Option<&i32> {
        match datum {
            Datum::Int4(v) => Some(v),
            _ => None,
        }
    }
}

/// What a function gives.
trait Give {
    fn give(self) -> Datum;
}

impl Give for bool {
    fn give(self) -> Datum {
        Datum::Bool(self)
    }
}

impl Give for f64 {
    fn give(self) -> Datum {
        Datum::Float8(self)
    }
}

impl Give for i32 {
    fn give(self) -> Datum {
        Datum::Int4(self)
    }
}

impl<T: Give> Give for Option<T> {
    fn give(self) -> Datum {
        self.map_or(Datum::Null, T::give)
    }
}

fn with_one<A: Argument, R: Give>(a: &[Datum], f: impl FnOnce(&A) -> Result<R>) -> Result<Datum> {
    match a {
        [x] => match A::of(x) {
            Some(x) => f(x).map(R::give),
            None => Err(bad_args(a)),
        },
        _ => Err(bad_args(a)),
    }
}

fn with_two<A: Argument, B: Argument, R: Give>(
    a: &[Datum],
    f: impl FnOnce(&A, &B) -> Result<R>,
) -> Result<Datum> {
    match a {
        [x, y] => match (A::of(x), B::of(y)) {
            (Some(x), Some(y)) => f(x, y).map(R::give),
            _ => Err(bad_args(a)),
        },
        _ => Err(bad_args(a)),
    }
}

/// Code that takes one value.
macro_rules! one {
    ($f:path) => {
        super::super::Body::Pure(|a| super::with_one(a, $f))
    };
}

/// Code that takes two.
macro_rules! pair {
    ($f:path) => {
        super::super::Body::Pure(|a| super::with_two(a, $f))
    };
}

use {one, pair};

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

fn add(a: f64, b: f64) -> Result<f64> {
    let sum = a + b;
    match sum.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(overflow()),
        false => Ok(sum),
    }
}

fn sub(a: f64, b: f64) -> Result<f64> {
    let difference = a - b;
    match difference.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        true => Err(overflow()),
        false => Ok(difference),
    }
}

fn mul(a: f64, b: f64) -> Result<f64> {
    let product = a * b;
    if product.is_infinite() && !a.is_infinite() && !b.is_infinite() {
        return Err(overflow());
    }
    match product == 0.0 && a != 0.0 && b != 0.0 {
        true => Err(underflow()),
        false => Ok(product),
    }
}

fn div(a: f64, b: f64) -> Result<f64> {
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
fn hypot(x: f64, y: f64) -> Result<f64> {
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

fn is_zero(a: f64) -> bool {
    a.abs() <= EPSILON
}

fn eq(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= EPSILON
}

fn ne(a: f64, b: f64) -> bool {
    a != b && (a - b).abs() > EPSILON
}

fn lt(a: f64, b: f64) -> bool {
    a + EPSILON < b
}

fn le(a: f64, b: f64) -> bool {
    a <= b + EPSILON
}

fn gt(a: f64, b: f64) -> bool {
    a > b + EPSILON
}

fn ge(a: f64, b: f64) -> bool {
    a + EPSILON >= b
}

/// Exactly less, NaN above everything.
fn less(a: f64, b: f64) -> bool {
    crate::value::compare::compare_f64(a, b).is_lt()
}

fn min(a: f64, b: f64) -> f64 {
    if less(a, b) { a } else { b }
}

fn max(a: f64, b: f64) -> f64 {
    if less(b, a) { a } else { b }
}

/// Exactly equal, NaN to NaN.
fn same_number(a: f64, b: f64) -> bool {
    crate::value::compare::compare_f64(a, b).is_eq()
}

/// The middle between two numbers.
fn middle(a: f64, b: f64) -> Result<f64> {
    div(add(a, b)?, 2.0)
}

/// No minus before zero.
fn plain_zero(v: f64) -> f64 {
    if v == 0.0 { 0.0 } else { v }
}

/// What `=` says of two values of a type, for IS DISTINCT FROM; what it fails for is distinct.
pub(crate) fn same_geometry(a: &Geometry, b: &Geometry) -> bool {
    let equal = match (a, b) {
        (Geometry::Point(a), Geometry::Point(b)) => points::point_eq(a, b),
        (Geometry::Line(a), Geometry::Line(b)) => lines::line_eq(a, b),
        (Geometry::Lseg(a), Geometry::Lseg(b)) => segments::lseg_eq(a, b),
        (Geometry::Box(a), Geometry::Box(b)) => boxes::box_eq(a, b),
        (Geometry::Path(a), Geometry::Path(b)) => paths::path_n_eq(a, b),
        (Geometry::Polygon(a), Geometry::Polygon(b)) => polygons::poly_same(a, b),
        (Geometry::Circle(a), Geometry::Circle(b)) => circles::circle_eq(a, b),
        _ => Ok(false),
    };
    equal.unwrap_or(false)
}

/// Assignment to a part of what consists of a fixed number of parts: the value, the new part, which one. It stays as it is where it or the part is NULL.
pub(crate) static SET_FIXED_ELEMENT: super::Function = super::function(
    0,
    "array_set_element",
    &[ANYELEMENT, ANYELEMENT, INT4],
    None,
    ANYELEMENT,
    false,
    super::Volatility::Immutable,
    super::Body::Pure(set_part),
);

/// The same with the subscripts in a list, of which there must be one.
pub(crate) fn put_fixed_element(old: &Datum, part: Datum, subscripts: &[Datum]) -> Result<Datum> {
    match subscripts {
        [index] => set_part(&[old.clone(), part, index.clone()]),
        _ => Err(SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "wrong number of array subscripts",
        )),
    }
}

fn set_part(a: &[Datum]) -> Result<Datum> {
    let [old, part, index] = a else {
        return Err(bad_args(a));
    };
    let Datum::Int4(index) = index else {
        return Err(SqlError::new(
            SqlState::NULL_VALUE_NOT_ALLOWED,
            "array subscript in assignment must not be null",
        ));
    };
    let (Datum::Geometry(whole), false) = (old, part.is_null()) else {
        return Ok(old.clone());
    };
    let changed = usize::try_from(*index)
        .ok()
        .and_then(|index| whole.with_part(index, part));
    changed.map(Geometry::datum).ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            "array subscript out of range",
        )
    })
}
