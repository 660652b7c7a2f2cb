//! Geometric values: points, lines, line segments, boxes, paths, polygons and circles; their text, binary and stored
//! forms.
//!
//! Owns: [`Geometry`] and the shapes in it, reading and writing them. What is computed with them is in modules by
//! their names.
//!
//! Invariants: of a [`Rectangle`] `high` is above and right of `low` (NaN is above everything); a path and a polygon
//! have a point at least; a line's first two numbers are not both zero when it was read. Numbers may be NaN and
//! infinite.

mod arithmetic;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod boxes;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod circles;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod lines;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod paths;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod points;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod polygons;
#[allow(missing_docs, reason = "functions of pg_proc, by their names there")]
pub mod segments;

use super::compare::compare_f64;
use super::float_text::write_f64;
use super::types::oid;
use super::{Datum, key};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::Builder;
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// What is nearer than this is the same, as in PostgreSQL.
pub const EPSILON: f64 = 1.0e-6;

/// A point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// Right of the origin.
    pub x: f64,
    /// Above it.
    pub y: f64,
}

/// A line: `ax + by + c = 0`.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// `A`
    pub a: f64,
    /// `B`
    pub b: f64,
    /// `C`
    pub c: f64,
}

/// A line segment between two points.
#[derive(Clone, Copy, Debug)]
pub struct Lseg {
    /// Its ends.
    pub p: [Point; 2],
}

/// A box.
#[derive(Clone, Copy, Debug)]
pub struct Rectangle {
    /// The corner at the top right.
    pub high: Point,
    /// The corner at the bottom left.
    pub low: Point,
}

/// A path.
#[derive(Clone, Debug)]
pub struct Path {
    /// From the last point it goes back to the first.
    pub closed: bool,
    /// Its points.
    pub points: Vec<Point>,
}

/// A polygon.
#[derive(Clone, Debug)]
pub struct Polygon {
    /// The smallest box around it.
    pub bound: Rectangle,
    /// Its points.
    pub points: Vec<Point>,
}

/// A circle.
#[derive(Clone, Copy, Debug)]
pub struct Circle {
    /// Its center.
    pub center: Point,
    /// Its radius.
    pub radius: f64,
}

/// A value of a geometric type.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the names of the types")]
pub enum Geometry {
    Point(Point),
    Line(Line),
    Lseg(Lseg),
    Box(Rectangle),
    Path(Path),
    Polygon(Polygon),
    Circle(Circle),
}

/// True for the geometric types.
pub fn is_geometry(ty: TypeId) -> bool {
    matches!(
        ty,
        oid::POINT | oid::LINE | oid::LSEG | oid::BOX | oid::PATH | oid::POLYGON | oid::CIRCLE
    )
}

/// What a fixed-length type consists of, how many of it, and how many numbers each of these is; none for types without
/// subscripts.
pub fn parts_of(ty: TypeId) -> Option<(TypeId, usize)> {
    match ty {
        oid::POINT => Some((oid::FLOAT8, 2)),
        oid::LINE => Some((oid::FLOAT8, 3)),
        oid::LSEG | oid::BOX => Some((oid::POINT, 2)),
        _ => None,
    }
}

impl Point {
    /// A point.
    pub fn new(x: f64, y: f64) -> Point {
        Point { x, y }
    }
}

impl Rectangle {
    /// The box of two opposite corners.
    pub fn new(a: Point, b: Point) -> Rectangle {
        let above = |a: f64, b: f64| compare_f64(a, b) == Ordering::Greater;
        let pick = |a: f64, b: f64| if above(a, b) { (a, b) } else { (b, a) };
        let ((high_x, low_x), (high_y, low_y)) = (pick(a.x, b.x), pick(a.y, b.y));
        Rectangle {
            high: Point::new(high_x, high_y),
            low: Point::new(low_x, low_y),
        }
    }

    /// As [`Rectangle::new`]; of corners that are equal the first is the high one.
    pub(super) fn of_corners(high: Point, low: Point) -> Rectangle {
        let below = |a: f64, b: f64| compare_f64(a, b) == Ordering::Less;
        let pick = |a: f64, b: f64| if below(a, b) { (b, a) } else { (a, b) };
        let ((high_x, low_x), (high_y, low_y)) = (pick(high.x, low.x), pick(high.y, low.y));
        Rectangle {
            high: Point::new(high_x, high_y),
            low: Point::new(low_x, low_y),
        }
    }

    /// The smallest box around points.
    pub fn around(points: &[Point]) -> Rectangle {
        let first = points.first().copied().unwrap_or_default();
        let mut bound = Rectangle {
            high: first,
            low: first,
        };
        for p in points {
            if compare_f64(p.x, bound.low.x) == Ordering::Less {
                bound.low.x = p.x;
            }
            if compare_f64(p.x, bound.high.x) == Ordering::Greater {
                bound.high.x = p.x;
            }
            if compare_f64(p.y, bound.low.y) == Ordering::Less {
                bound.low.y = p.y;
            }
            if compare_f64(p.y, bound.high.y) == Ordering::Greater {
                bound.high.y = p.y;
            }
        }
        bound
    }
}

impl Polygon {
    /// A polygon of these points.
    pub fn new(points: Vec<Point>) -> Polygon {
        Polygon {
            bound: Rectangle::around(&points),
            points,
        }
    }
}

/// 54000, as PostgreSQL refuses them.
pub fn too_many_points() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        "too many points requested",
    )
}

impl Geometry {
    /// The type.
    pub fn type_of(&self) -> TypeId {
        match self {
            Geometry::Point(_) => oid::POINT,
            Geometry::Line(_) => oid::LINE,
            Geometry::Lseg(_) => oid::LSEG,
            Geometry::Box(_) => oid::BOX,
            Geometry::Path(_) => oid::PATH,
            Geometry::Polygon(_) => oid::POLYGON,
            Geometry::Circle(_) => oid::CIRCLE,
        }
    }

    /// The part with this number; none of what has no such part.
    pub fn part(&self, index: usize) -> Option<Datum> {
        let point = |p: &Point| Geometry::Point(*p).datum();
        match (self, index) {
            (Geometry::Point(v), 0) => Some(Datum::Float8(v.x)),
            (Geometry::Point(v), 1) => Some(Datum::Float8(v.y)),
            (Geometry::Line(v), 0) => Some(Datum::Float8(v.a)),
            (Geometry::Line(v), 1) => Some(Datum::Float8(v.b)),
            (Geometry::Line(v), 2) => Some(Datum::Float8(v.c)),
            (Geometry::Lseg(v), _) => v.p.get(index).map(point),
            (Geometry::Box(v), 0) => Some(point(&v.high)),
            (Geometry::Box(v), 1) => Some(point(&v.low)),
            _ => None,
        }
    }

    /// The same with another part in place of one. Corners of a box are not put in order, as PostgreSQL does not.
    pub fn with_part(&self, index: usize, part: &Datum) -> Option<Geometry> {
        let mut changed = self.clone();
        match (&mut changed, part) {
            (Geometry::Point(v), Datum::Float8(part)) => {
                *[&mut v.x, &mut v.y].into_iter().nth(index)? = *part;
            }
            (Geometry::Line(v), Datum::Float8(part)) => {
                *[&mut v.a, &mut v.b, &mut v.c].into_iter().nth(index)? = *part;
            }
            (whole, Datum::Geometry(part)) => {
                let Geometry::Point(part) = **part else {
                    return None;
                };
                match whole {
                    Geometry::Lseg(v) => *v.p.get_mut(index)? = part,
                    Geometry::Box(v) => {
                        *[&mut v.high, &mut v.low].into_iter().nth(index)? = part;
                    }
                    _ => return None,
                }
            }
            _ => return None,
        }
        Some(changed)
    }

    /// As a value.
    pub fn datum(self) -> Datum {
        Datum::Geometry(Arc::new(self))
    }

    fn points(&self) -> &[Point] {
        match self {
            Geometry::Path(v) => &v.points,
            Geometry::Polygon(v) => &v.points,
            _ => &[],
        }
    }

    /// What it holds outside of itself.
    pub fn outside_bytes(&self) -> usize {
        size_of_val(self.points())
    }

    /// Its numbers, one after the other.
    fn each(&self, mut give: impl FnMut(f64)) {
        let mut point = |p: &Point| {
            give(p.x);
            give(p.y);
        };
        match self {
            Geometry::Point(v) => point(v),
            Geometry::Lseg(v) => v.p.iter().for_each(point),
            Geometry::Box(v) => {
                point(&v.high);
                point(&v.low);
            }
            Geometry::Path(_) | Geometry::Polygon(_) => self.points().iter().for_each(point),
            Geometry::Line(v) => [v.a, v.b, v.c].into_iter().for_each(give),
            Geometry::Circle(v) => {
                point(&v.center);
                give(v.radius);
            }
        }
    }

    /// Some total order. It is none of SQL's: these types have no operator class.
    pub(super) fn compare(&self, other: &Geometry) -> Ordering {
        let form = |v: &Geometry| {
            let mut bytes = Vec::new();
            v.write_key(&mut bytes);
            bytes
        };
        form(self).cmp(&form(other))
    }

    /// Bytes in that order.
    pub(super) fn write_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.type_of().get().to_be_bytes());
        if let Geometry::Path(v) = self {
            out.push(u8::from(v.closed));
        }
        out.extend_from_slice(&(self.points().len() as u64).to_be_bytes());
        self.each(|v| key::float(v, out));
    }

    /// Feeds a hasher, consistent with that order.
    pub(super) fn hash_value<H: Hasher>(&self, h: &mut H) {
        let mut bytes = Vec::new();
        self.write_key(&mut bytes);
        bytes.hash(h);
    }

    /// The stored form: the numbers, each eight bytes; before a path's a byte that says whether it is closed.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        if let Geometry::Path(v) = self {
            out.push(u8::from(v.closed));
        }
        self.each(|v| out.extend_from_slice(&v.to_le_bytes()));
    }

    /// Reads the stored form; nothing of damaged bytes.
    pub(super) fn decode(ty: TypeId, bytes: &[u8]) -> Option<Geometry> {
        let (closed, bytes) = match (ty, bytes.split_first()) {
            (oid::PATH, Some((closed @ 0..=1, rest))) => (*closed == 1, rest),
            (oid::PATH, _) => return None,
            _ => (false, bytes),
        };
        Geometry::of_numbers(ty, closed, bytes, f64::from_le_bytes)
    }

    fn of_numbers(
        ty: TypeId,
        closed: bool,
        bytes: &[u8],
        number: fn([u8; 8]) -> f64,
    ) -> Option<Geometry> {
        let (numbers, []) = bytes.as_chunks::<8>() else {
            return None;
        };
        if matches!(ty, oid::PATH | oid::POLYGON) {
            let (pairs, []) = numbers.as_chunks::<2>() else {
                return None;
            };
            if pairs.is_empty() {
                return None;
            }
            let points: Vec<Point> = pairs
                .iter()
                .map(|[x, y]| Point::new(number(*x), number(*y)))
                .collect();
            return Some(match ty {
                oid::PATH => Geometry::Path(Path { closed, points }),
                _ => Geometry::Polygon(Polygon::new(points)),
            });
        }
        let mut all = [0.0; 4];
        if numbers.len() > all.len() {
            return None;
        }
        for (to, from) in all.iter_mut().zip(numbers) {
            *to = number(*from);
        }
        let [a, b, c, d] = all;
        Some(match (ty, numbers.len()) {
            (oid::POINT, 2) => Geometry::Point(Point::new(a, b)),
            (oid::LINE, 3) => Geometry::Line(Line { a, b, c }),
            (oid::CIRCLE, 3) => Geometry::Circle(Circle {
                center: Point::new(a, b),
                radius: c,
            }),
            (oid::LSEG, 4) => Geometry::Lseg(Lseg {
                p: [Point::new(a, b), Point::new(c, d)],
            }),
            (oid::BOX, 4) => Geometry::Box(Rectangle {
                high: Point::new(a, b),
                low: Point::new(c, d),
            }),
            _ => return None,
        })
    }

    /// The binary form.
    pub(super) fn send(&self, out: &mut Vec<u8>) {
        if let Geometry::Path(v) = self {
            out.push(u8::from(v.closed));
        }
        if let Geometry::Path(_) | Geometry::Polygon(_) = self {
            let count = i32::try_from(self.points().len()).unwrap_or(i32::MAX);
            out.extend_from_slice(&count.to_be_bytes());
        }
        self.each(|v| out.extend_from_slice(&v.to_be_bytes()));
    }

    /// Reads the binary form.
    pub(super) fn receive(ty: TypeId, bytes: &[u8]) -> Result<Geometry> {
        let wrong = |message: &str| SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, message);
        let short = || {
            SqlError::new(
                SqlState::PROTOCOL_VIOLATION,
                "insufficient data left in message",
            )
        };
        let mut rest = bytes;
        let mut closed = false;
        if ty == oid::PATH {
            let (first, tail) = rest.split_first().ok_or_else(short)?;
            closed = *first != 0;
            rest = tail;
        }
        let size = match ty {
            oid::PATH | oid::POLYGON => {
                let (count, tail) = rest.split_first_chunk::<4>().ok_or_else(short)?;
                rest = tail;
                let count = usize::try_from(i32::from_be_bytes(*count)).unwrap_or(0);
                if count == 0 || count >= i32::MAX as usize / size_of::<Point>() - 1 {
                    let name = if closed || ty == oid::PATH {
                        "path"
                    } else {
                        "polygon"
                    };
                    return Err(wrong(&format!(
                        "invalid number of points in external \"{name}\" value"
                    )));
                }
                count * size_of::<Point>()
            }
            oid::POINT => 16,
            oid::LINE | oid::CIRCLE => 24,
            _ => 32,
        };
        if rest.len() < size {
            return Err(short());
        }
        let read = Geometry::of_numbers(ty, closed, rest, f64::from_be_bytes)
            .filter(|_| rest.len() == size)
            .ok_or_else(|| wrong("incorrect binary data format"))?;
        match read {
            Geometry::Line(v) if v.a.abs() <= EPSILON && v.b.abs() <= EPSILON => Err(wrong(
                "invalid line specification: A and B cannot both be zero",
            )),
            Geometry::Circle(v) if v.radius < 0.0 => {
                Err(wrong("invalid radius in external \"circle\" value"))
            }
            Geometry::Box(v) => Ok(Geometry::Box(Rectangle::of_corners(v.high, v.low))),
            other => Ok(other),
        }
    }

    /// Appends the text form; `digits` is `extra_float_digits`.
    pub(super) fn append(&self, digits: i32, out: &mut Builder) -> Result<()> {
        let number = |v: f64, out: &mut Builder| write_f64(v, digits, out);
        let point = |p: &Point, out: &mut Builder| {
            out.push(b'(');
            number(p.x, out);
            out.push(b',');
            number(p.y, out);
            out.push(b')');
        };
        let list = |points: &[Point], out: &mut Builder| -> Result<()> {
            for (i, p) in points.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                point(p, out);
                out.step()?;
            }
            Ok(())
        };
        let (open, close) = match self {
            Geometry::Lseg(_) => (b'[', b']'),
            Geometry::Path(v) if !v.closed => (b'[', b']'),
            _ => (b'(', b')'),
        };
        match self {
            Geometry::Point(v) => point(v, out),
            Geometry::Box(v) => list(&[v.high, v.low], out)?,
            Geometry::Lseg(Lseg { p }) => {
                out.push(open);
                list(p, out)?;
                out.push(close);
            }
            Geometry::Path(_) | Geometry::Polygon(_) => {
                out.push(open);
                list(self.points(), out)?;
                out.push(close);
            }
            Geometry::Line(v) => {
                out.push(b'{');
                number(v.a, out);
                out.push(b',');
                number(v.b, out);
                out.push(b',');
                number(v.c, out);
                out.push(b'}');
            }
            Geometry::Circle(v) => {
                out.push(b'<');
                point(&v.center, out);
                out.push(b',');
                number(v.radius, out);
                out.push(b'>');
            }
        }
        out.step()
    }
}

/// What `=` says of two values of a type, for IS DISTINCT FROM; what it fails for is distinct.
pub fn same_geometry(a: &Geometry, b: &Geometry) -> bool {
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
