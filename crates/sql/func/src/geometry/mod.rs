//! Functions and operators of the geometric types.
//!
//! Owns: how arguments are taken and results given (`one!`, `pair!`). The shapes, and what is asked of them, are in
//! [`logstead_sql_types::value::geometry`].

pub(super) mod table;

use super::arithmetic::bad_args;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::geometry::{
    Circle, Geometry, Line, Lseg, Path, Point, Polygon, Rectangle,
};
use logstead_sql_types::value::oid::{ANYELEMENT, INT4};
use logstead_types::SqlState;

/// What a function takes.
trait FromDatum: Sized {
    fn of(datum: &Datum) -> Option<&Self>;
}

macro_rules! argument {
    ($($shape:ident: $variant:ident;)*) => {
        $(
            impl FromDatum for $shape {
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

            impl IntoDatum for $shape {
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

impl FromDatum for f64 {
    fn of(datum: &Datum) -> Option<&f64> {
        match datum {
            Datum::Float8(v) => Some(v),
            _ => None,
        }
    }
}

impl FromDatum for i32 {
    fn of(datum: &Datum) -> Option<&i32> {
        match datum {
            Datum::Int4(v) => Some(v),
            _ => None,
        }
    }
}

/// What a function gives.
trait IntoDatum {
    fn give(self) -> Datum;
}

impl IntoDatum for bool {
    fn give(self) -> Datum {
        Datum::Bool(self)
    }
}

impl IntoDatum for f64 {
    fn give(self) -> Datum {
        Datum::Float8(self)
    }
}

impl IntoDatum for i32 {
    fn give(self) -> Datum {
        Datum::Int4(self)
    }
}

impl<T: IntoDatum> IntoDatum for Option<T> {
    fn give(self) -> Datum {
        self.map_or(Datum::Null, T::give)
    }
}

fn with_one<A: FromDatum, R: IntoDatum>(
    a: &[Datum],
    f: impl FnOnce(&A) -> Result<R>,
) -> Result<Datum> {
    match a {
        [x] => match A::of(x) {
            Some(x) => f(x).map(R::give),
            None => Err(bad_args(a)),
        },
        _ => Err(bad_args(a)),
    }
}

fn with_two<A: FromDatum, B: FromDatum, R: IntoDatum>(
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
        super::super::FunctionImpl::Pure(|a| super::with_one(a, $f))
    };
}

/// Code that takes two.
macro_rules! pair {
    ($f:path) => {
        super::super::FunctionImpl::Pure(|a| super::with_two(a, $f))
    };
}

use {one, pair};

/// Assignment to a part of what consists of a fixed number of parts: the value, the new part, which one. It stays as
/// it is where it or the part is NULL.
pub static SET_FIXED_ELEMENT: super::Function = super::function(
    0,
    "array_set_element",
    &[ANYELEMENT, ANYELEMENT, INT4],
    None,
    ANYELEMENT,
    false,
    super::Volatility::Immutable,
    super::FunctionImpl::Pure(set_part),
);

/// The same with the subscripts in a list, of which there must be one.
pub fn put_fixed_element(old: &Datum, part: Datum, subscripts: &[Datum]) -> Result<Datum> {
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
