//! Polygons.

use super::arithmetic::{div, ge, gt, is_zero, le, less, lt, middle, mul, sub};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::value::geometry::{Circle, Lseg, Path, Point, Polygon, Rectangle};
use logstead_types::SqlState;

/// What is left of the stack when a segment is not divided further.
const STACK_BYTES_MIN: usize = 64 << 10;
/// Where nobody knows the stack: how often one is divided.
const DEPTH_MAX: usize = 500;
/// A polygon is gone through so many points at a time between two looks for interrupts.
const STRIDE: usize = 1024;

/// How the boundary between two points, as seen from the origin, crosses the positive half of the axis: twice the
/// direction, once for a point on it. `None`: the origin is on the boundary.
fn crossing(x: f64, y: f64, before: Point) -> Result<Option<i32>> {
    if is_zero(y) {
        if is_zero(x) {
            return Ok(None);
        }
        let outside = |is: bool| if is { Some(0) } else { None };
        if gt(x, 0.0) {
            if is_zero(before.y) {
                return Ok(outside(gt(before.x, 0.0)));
            }
            return Ok(Some(if lt(before.y, 0.0) { 1 } else { -1 }));
        }
        if is_zero(before.y) {
            return Ok(outside(lt(before.x, 0.0)));
        }
        return Ok(Some(0));
    }
    let sign = if gt(y, 0.0) { 1 } else { -1 };
    if is_zero(before.y) {
        return Ok(Some(if lt(before.x, 0.0) { 0 } else { sign }));
    }
    if (sign < 0 && lt(before.y, 0.0)) || (sign > 0 && gt(before.y, 0.0)) {
        return Ok(Some(0));
    }
    if ge(x, 0.0) && gt(before.x, 0.0) {
        return Ok(Some(2 * sign));
    }
    if lt(x, 0.0) && le(before.x, 0.0) {
        return Ok(Some(0));
    }
    let z = sub(mul(sub(x, before.x)?, y)?, mul(sub(y, before.y)?, x)?)?;
    if is_zero(z) {
        return Ok(None);
    }
    if (sign < 0 && lt(z, 0.0)) || (sign > 0 && gt(z, 0.0)) {
        return Ok(Some(0));
    }
    Ok(Some(2 * sign))
}

/// Is the point in what these points are around, or on its border?
pub fn is_inside(p: &Point, around: &[Point]) -> Result<bool> {
    let (Some(first), rest) = (around.first(), around.get(1..).unwrap_or_default()) else {
        return Ok(false);
    };
    let first = first.minus(p)?;
    let mut before = first;
    let mut total = 0_i64;
    for (i, point) in rest.iter().enumerate() {
        if i % STRIDE == 0 {
            check_for_interrupts()?;
        }
        let now = point.minus(p)?;
        match crossing(now.x, now.y, before)? {
            Some(crossed) => total += i64::from(crossed),
            None => return Ok(true),
        }
        before = now;
    }
    match crossing(first.x, first.y, before)? {
        Some(crossed) => Ok(total + i64::from(crossed) != 0),
        None => Ok(true),
    }
}

impl Polygon {
    pub fn has(&self, p: &Point) -> Result<bool> {
        is_inside(p, &self.points)
    }

    /// Its edges, from that between the last point and the first on.
    fn edges(&self) -> impl Iterator<Item = Lseg> {
        let before = self.points.last().into_iter().chain(&self.points);
        before.zip(&self.points).map(|(a, b)| Lseg::new(*a, *b))
    }

    pub fn distance_to(&self, p: &Point) -> Result<f64> {
        if self.has(p)? {
            return Ok(0.0);
        }
        let (Some(first), Some(last)) = (self.points.first(), self.points.last()) else {
            return Ok(0.0);
        };
        let mut best = Lseg::new(*first, *last).nearest_to(p)?.1;
        for (i, edge) in self.points.windows(2).enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            let [a, b] = edge else { continue };
            let distance = Lseg::new(*a, *b).nearest_to(p)?.1;
            if less(distance, best) {
                best = distance;
            }
        }
        Ok(best)
    }

    /// A segment one end of which is on an edge while the other is not: what of it goes along the edge is passed over.
    /// Of one that leaves the edge this says yes; what it is is seen further on.
    fn has_touching(
        &self,
        on: &Point,
        off: &Point,
        edge: &Lseg,
        rest: (usize, usize),
    ) -> Result<bool> {
        let part = Lseg::new(*on, *off);
        let [first, second] = &edge.p;
        if on.same(first) {
            if part.has(second)? {
                return self.has_segment(off, second, rest);
            }
        } else if on.same(second) {
            if part.has(first)? {
                return self.has_segment(off, first, rest);
            }
        } else if part.has(first)? {
            return self.has_segment(off, first, rest);
        } else if part.has(second)? {
            return self.has_segment(off, second, rest);
        }
        Ok(true)
    }

    /// Is a segment within? Edges before `start` have been asked; `depth` is how often it has been divided.
    fn has_segment(&self, a: &Point, b: &Point, (start, depth): (usize, usize)) -> Result<bool> {
        let is_enough = match logstead_fiber::remaining_stack() {
            Some(remaining) => remaining >= STACK_BYTES_MIN,
            None => depth < DEPTH_MAX,
        };
        if !is_enough {
            return Err(SqlError::new(
                SqlState::STATEMENT_TOO_COMPLEX,
                "stack depth limit exceeded",
            ));
        }
        let asked = Lseg::new(*a, *b);
        let before = match start.checked_sub(1) {
            Some(before) => self.points.get(before),
            None => self.points.last(),
        };
        let Some(mut before) = before else {
            return Ok(false);
        };
        let mut crosses = false;
        let edges = self.points.get(start..).unwrap_or_default();
        for (next, point) in edges
            .iter()
            .zip(start + 1..)
            .map(|(point, next)| (next, point))
        {
            check_for_interrupts()?;
            let edge = Lseg::new(*before, *point);
            let rest = (next, depth + 1);
            let mut within = true;
            if edge.has(a)? {
                if edge.has(b)? {
                    return Ok(true);
                }
                within = self.has_touching(a, b, &edge, rest)?;
            } else if edge.has(b)? {
                within = self.has_touching(b, a, &edge, rest)?;
            } else if let Some(at) = asked.meets(&edge)? {
                crosses = true;
                within = self.has_segment(a, &at, rest)? && self.has_segment(b, &at, rest)?;
            }
            if !within {
                return Ok(false);
            }
            before = point;
        }
        // Of one that was divided the parts have been asked.
        if crosses {
            return Ok(true);
        }
        self.has(&Point::new(middle(a.x, b.x)?, middle(a.y, b.y)?))
    }

    fn has_polygon(&self, other: &Polygon) -> Result<bool> {
        if !self.bound.has_box(&other.bound) {
            return Ok(false);
        }
        for edge in other.edges() {
            if !self.has_segment(&edge.p[0], &edge.p[1], (0, 0))? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The circle around its middle.
    fn circle(&self) -> Result<Circle> {
        let count = self.points.len() as f64;
        let mut center = Point::default();
        for point in &self.points {
            center = center.plus(point)?;
        }
        center = Point::new(div(center.x, count)?, div(center.y, count)?);
        let mut radius = 0.0;
        for point in &self.points {
            radius = super::arithmetic::add(radius, point.distance(&center)?)?;
        }
        Ok(Circle {
            center,
            radius: div(radius, count)?,
        })
    }
}

pub fn poly_left(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.high.x < b.bound.low.x)
}

pub fn poly_overleft(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.high.x <= b.bound.high.x)
}

pub fn poly_right(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.low.x > b.bound.high.x)
}

pub fn poly_overright(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.low.x >= b.bound.low.x)
}

pub fn poly_below(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.high.y < b.bound.low.y)
}

pub fn poly_overbelow(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.high.y <= b.bound.high.y)
}

pub fn poly_above(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.low.y > b.bound.high.y)
}

pub fn poly_overabove(a: &Polygon, b: &Polygon) -> Result<bool> {
    Ok(a.bound.low.y >= b.bound.low.y)
}

/// The same points in a row, from any of them on, in either direction.
pub fn poly_same(a: &Polygon, b: &Polygon) -> Result<bool> {
    if a.points.len() != b.points.len() {
        return Ok(false);
    }
    let Some(first) = a.points.first() else {
        return Ok(true);
    };
    for (start, point) in b.points.iter().enumerate() {
        if start % STRIDE == 0 {
            check_for_interrupts()?;
        }
        if !point.same(first) {
            continue;
        }
        let (before, from) = b.points.split_at(start);
        let forward = from.iter().chain(before);
        if forward.zip(&a.points).all(|(x, y)| x.same(y)) {
            return Ok(true);
        }
        let (through, after) = b.points.split_at(start + 1);
        let backward = through.iter().rev().chain(after.iter().rev());
        if backward.zip(&a.points).all(|(x, y)| x.same(y)) {
            return Ok(true);
        }
    }
    Ok(false)
}

pub fn poly_overlap(a: &Polygon, b: &Polygon) -> Result<bool> {
    if !a.bound.overlaps(&b.bound) {
        return Ok(false);
    }
    for one in a.edges() {
        for (i, other) in b.edges().enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            if one.meets(&other)?.is_some() {
                return Ok(true);
            }
        }
    }
    let in_other = |p: Option<&Point>, other: &Polygon| match p {
        Some(p) => other.has(p),
        None => Ok(false),
    };
    Ok(in_other(a.points.first(), b)? || in_other(b.points.first(), a)?)
}

pub fn poly_contain(a: &Polygon, b: &Polygon) -> Result<bool> {
    a.has_polygon(b)
}

pub fn poly_contained(a: &Polygon, b: &Polygon) -> Result<bool> {
    b.has_polygon(a)
}

pub fn poly_distance(a: &Polygon, b: &Polygon) -> Result<Option<f64>> {
    match poly_overlap(a, b)? {
        true => Ok(Some(0.0)),
        // Neither is within the other: what is between them is between their borders.
        false => super::paths::distance(a.edges(), || b.edges()),
    }
}

pub fn poly_npoints(p: &Polygon) -> Result<i32> {
    Ok(i32::try_from(p.points.len()).unwrap_or(i32::MAX))
}

pub fn poly_center(p: &Polygon) -> Result<Point> {
    Ok(p.circle()?.center)
}

pub fn poly_circle(p: &Polygon) -> Result<Circle> {
    p.circle()
}

pub fn poly_box(p: &Polygon) -> Result<Rectangle> {
    Ok(p.bound)
}

pub fn poly_path(p: &Polygon) -> Result<Path> {
    Ok(Path {
        closed: true,
        points: p.points.clone(),
    })
}
