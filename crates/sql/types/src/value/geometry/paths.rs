//! Paths.

use super::arithmetic::{add, div, eq, less, mul, sub};
use super::polygons::is_inside;
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::VALUE_BYTES_MAX;
use crate::value::geometry::{Lseg, Path, Point, Polygon, Rectangle, too_many_points};
use logstead_types::SqlState;

/// A path is gone through so many points at a time between two looks for interrupts.
const STRIDE: usize = 1024;

impl Path {
    /// Its segments: of a closed one the last point is connected with the first.
    fn segments(&self) -> impl Iterator<Item = Lseg> {
        let last = self.points.last().filter(|_| self.closed);
        let before = last.into_iter().chain(&self.points);
        let from = if self.closed { 0 } else { 1 };
        let ends = self.points.get(from..).unwrap_or_default();
        before.zip(ends).map(|(a, b)| Lseg::new(*a, *b))
    }

    /// How far the nearest of its segments is.
    pub fn distance_to(&self, p: &Point) -> Result<f64> {
        let mut best: Option<f64> = None;
        for (i, segment) in self.segments().enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            let distance = segment.nearest_to(p)?.1;
            if best.is_none_or(|best| less(distance, best)) {
                best = Some(distance);
            }
        }
        Ok(best.unwrap_or(0.0))
    }

    /// Is the point on it, or in a closed one?
    pub fn has(&self, p: &Point) -> Result<bool> {
        if self.closed {
            return is_inside(p, &self.points);
        }
        let mut points = self.points.iter();
        let Some(mut before) = points.next() else {
            return Ok(false);
        };
        let mut to_before = p.distance(before)?;
        for (i, point) in points.enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            let to_point = p.distance(point)?;
            if eq(add(to_before, to_point)?, before.distance(point)?) {
                return Ok(true);
            }
            (before, to_before) = (point, to_point);
        }
        Ok(false)
    }

    /// Every point changed.
    fn changed(&self, change: impl Fn(&Point) -> Result<Point>) -> Result<Path> {
        Ok(Path {
            closed: self.closed,
            points: self.points.iter().map(change).collect::<Result<_>>()?,
        })
    }
}

pub fn path_area(path: &Path) -> Result<Option<f64>> {
    if !path.closed {
        return Ok(None);
    }
    let mut area = 0.0;
    let next = path.points.iter().cycle().skip(1);
    for (a, b) in path.points.iter().zip(next) {
        area = add(area, mul(a.x, b.y)?)?;
        area = sub(area, mul(a.y, b.x)?)?;
    }
    div(area.abs(), 2.0).map(Some)
}

fn count(path: &Path) -> i32 {
    i32::try_from(path.points.len()).unwrap_or(i32::MAX)
}

pub fn path_npoints(path: &Path) -> Result<i32> {
    Ok(count(path))
}

pub fn path_n_lt(a: &Path, b: &Path) -> Result<bool> {
    Ok(count(a) < count(b))
}

pub fn path_n_gt(a: &Path, b: &Path) -> Result<bool> {
    Ok(count(a) > count(b))
}

pub fn path_n_eq(a: &Path, b: &Path) -> Result<bool> {
    Ok(count(a) == count(b))
}

pub fn path_n_le(a: &Path, b: &Path) -> Result<bool> {
    Ok(count(a) <= count(b))
}

pub fn path_n_ge(a: &Path, b: &Path) -> Result<bool> {
    Ok(count(a) >= count(b))
}

pub fn path_isclosed(path: &Path) -> Result<bool> {
    Ok(path.closed)
}

pub fn path_isopen(path: &Path) -> Result<bool> {
    Ok(!path.closed)
}

pub fn path_close(path: &Path) -> Result<Path> {
    Ok(Path {
        closed: true,
        points: path.points.clone(),
    })
}

pub fn path_open(path: &Path) -> Result<Path> {
    Ok(Path {
        closed: false,
        points: path.points.clone(),
    })
}

pub fn path_inter(a: &Path, b: &Path) -> Result<bool> {
    if !Rectangle::around(&a.points).overlaps(&Rectangle::around(&b.points)) {
        return Ok(false);
    }
    for one in a.segments() {
        for (i, other) in b.segments().enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            if one.meets(&other)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The distance between the nearest two segments; none if there are none.
pub fn distance<I: Iterator<Item = Lseg>>(
    segments: impl Iterator<Item = Lseg>,
    others: impl Fn() -> I,
) -> Result<Option<f64>> {
    let mut best: Option<f64> = None;
    for one in segments {
        for (i, other) in others().enumerate() {
            if i % STRIDE == 0 {
                check_for_interrupts()?;
            }
            let distance = one.nearest_to_lseg(&other)?.1;
            if best.is_none_or(|best| less(distance, best)) {
                best = Some(distance);
            }
        }
    }
    Ok(best)
}

pub fn path_distance(a: &Path, b: &Path) -> Result<Option<f64>> {
    distance(a.segments(), || b.segments())
}

pub fn path_length(path: &Path) -> Result<f64> {
    let mut length = 0.0;
    for segment in path.segments() {
        length = add(length, segment.p[0].distance(&segment.p[1])?)?;
    }
    Ok(length)
}

pub fn path_add(a: &Path, b: &Path) -> Result<Option<Path>> {
    if a.closed || b.closed {
        return Ok(None);
    }
    if a.points.len() + b.points.len() > VALUE_BYTES_MAX / size_of::<Point>() {
        return Err(too_many_points());
    }
    Ok(Some(Path {
        closed: false,
        points: [a.points.as_slice(), &b.points].concat(),
    }))
}

pub fn path_add_pt(path: &Path, p: &Point) -> Result<Path> {
    path.changed(|point| point.plus(p))
}

pub fn path_sub_pt(path: &Path, p: &Point) -> Result<Path> {
    path.changed(|point| point.minus(p))
}

pub fn path_mul_pt(path: &Path, p: &Point) -> Result<Path> {
    path.changed(|point| point.times(p))
}

pub fn path_div_pt(path: &Path, p: &Point) -> Result<Path> {
    path.changed(|point| point.over(p))
}

pub fn path_poly(path: &Path) -> Result<Polygon> {
    match path.closed {
        true => Ok(Polygon::new(path.points.clone())),
        false => Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "open path cannot be converted to polygon",
        )),
    }
}
