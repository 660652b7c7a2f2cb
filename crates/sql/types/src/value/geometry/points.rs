//! Points, and their distance from everything else.

use super::arithmetic::{add, div, eq, gt, hypot, lt, mul, same_number, sub};
use crate::error::Result;
use crate::value::geometry::{Circle, Line, Lseg, Path, Point, Polygon, Rectangle};

impl Point {
    /// Is it the same, NaN being NaN?
    pub fn same(&self, other: &Point) -> bool {
        (eq(self.x, other.x) && eq(self.y, other.y))
            || (same_number(self.x, other.x) && same_number(self.y, other.y))
    }

    /// The slope of the line to another point; infinite for a vertical one.
    pub fn slope(&self, other: &Point) -> Result<f64> {
        if eq(self.x, other.x) {
            return Ok(f64::INFINITY);
        }
        if eq(self.y, other.y) {
            return Ok(0.0);
        }
        div(sub(self.y, other.y)?, sub(self.x, other.x)?)
    }

    /// The slope of what is perpendicular to that line.
    pub fn inverse_slope(&self, other: &Point) -> Result<f64> {
        if eq(self.x, other.x) {
            return Ok(0.0);
        }
        if eq(self.y, other.y) {
            return Ok(f64::INFINITY);
        }
        div(sub(self.x, other.x)?, sub(other.y, self.y)?)
    }

    pub fn distance(&self, other: &Point) -> Result<f64> {
        hypot(sub(self.x, other.x)?, sub(self.y, other.y)?)
    }

    pub fn plus(&self, other: &Point) -> Result<Point> {
        Ok(Point::new(add(self.x, other.x)?, add(self.y, other.y)?))
    }

    pub fn minus(&self, other: &Point) -> Result<Point> {
        Ok(Point::new(sub(self.x, other.x)?, sub(self.y, other.y)?))
    }

    /// As complex numbers are multiplied.
    pub fn times(&self, other: &Point) -> Result<Point> {
        Ok(Point::new(
            sub(mul(self.x, other.x)?, mul(self.y, other.y)?)?,
            add(mul(self.x, other.y)?, mul(self.y, other.x)?)?,
        ))
    }

    /// As complex numbers are divided.
    pub fn over(&self, other: &Point) -> Result<Point> {
        let square = add(mul(other.x, other.x)?, mul(other.y, other.y)?)?;
        Ok(Point::new(
            div(add(mul(self.x, other.x)?, mul(self.y, other.y)?)?, square)?,
            div(sub(mul(self.y, other.x)?, mul(self.x, other.y)?)?, square)?,
        ))
    }
}

pub fn construct_point(x: &f64, y: &f64) -> Result<Point> {
    Ok(Point::new(*x, *y))
}

pub fn point_left(a: &Point, b: &Point) -> Result<bool> {
    Ok(lt(a.x, b.x))
}

pub fn point_right(a: &Point, b: &Point) -> Result<bool> {
    Ok(gt(a.x, b.x))
}

pub fn point_above(a: &Point, b: &Point) -> Result<bool> {
    Ok(gt(a.y, b.y))
}

pub fn point_below(a: &Point, b: &Point) -> Result<bool> {
    Ok(lt(a.y, b.y))
}

pub fn point_vert(a: &Point, b: &Point) -> Result<bool> {
    Ok(eq(a.x, b.x))
}

pub fn point_horiz(a: &Point, b: &Point) -> Result<bool> {
    Ok(eq(a.y, b.y))
}

pub fn point_eq(a: &Point, b: &Point) -> Result<bool> {
    Ok(a.same(b))
}

pub fn point_ne(a: &Point, b: &Point) -> Result<bool> {
    Ok(!a.same(b))
}

pub fn point_distance(a: &Point, b: &Point) -> Result<f64> {
    a.distance(b)
}

pub fn point_slope(a: &Point, b: &Point) -> Result<f64> {
    a.slope(b)
}

pub fn point_add(a: &Point, b: &Point) -> Result<Point> {
    a.plus(b)
}

pub fn point_sub(a: &Point, b: &Point) -> Result<Point> {
    a.minus(b)
}

pub fn point_mul(a: &Point, b: &Point) -> Result<Point> {
    a.times(b)
}

pub fn point_div(a: &Point, b: &Point) -> Result<Point> {
    a.over(b)
}

pub fn dist_pl(p: &Point, line: &Line) -> Result<f64> {
    dist_lp(line, p)
}

pub fn dist_lp(line: &Line, p: &Point) -> Result<f64> {
    Ok(line.nearest_to(p)?.1)
}

pub fn dist_ps(p: &Point, lseg: &Lseg) -> Result<f64> {
    dist_sp(lseg, p)
}

pub fn dist_sp(lseg: &Lseg, p: &Point) -> Result<f64> {
    Ok(lseg.nearest_to(p)?.1)
}

pub fn dist_pb(p: &Point, b: &Rectangle) -> Result<f64> {
    dist_bp(b, p)
}

pub fn dist_bp(b: &Rectangle, p: &Point) -> Result<f64> {
    Ok(b.nearest_to(p)?.1)
}

pub fn dist_ppath(p: &Point, path: &Path) -> Result<f64> {
    path.distance_to(p)
}

pub fn dist_pathp(path: &Path, p: &Point) -> Result<f64> {
    path.distance_to(p)
}

pub fn dist_ppoly(p: &Point, polygon: &Polygon) -> Result<f64> {
    polygon.distance_to(p)
}

pub fn dist_polyp(polygon: &Polygon, p: &Point) -> Result<f64> {
    polygon.distance_to(p)
}

pub fn dist_pc(p: &Point, circle: &Circle) -> Result<f64> {
    circle.distance_to(p)
}

pub fn dist_cpoint(circle: &Circle, p: &Point) -> Result<f64> {
    circle.distance_to(p)
}

pub fn close_pl(p: &Point, line: &Line) -> Result<Option<Point>> {
    line.nearest_to(p).map(found)
}

pub fn close_ps(p: &Point, lseg: &Lseg) -> Result<Option<Point>> {
    lseg.nearest_to(p).map(found)
}

pub fn close_pb(p: &Point, b: &Rectangle) -> Result<Option<Point>> {
    b.nearest_to(p).map(found)
}

/// The point, unless its distance is NaN.
pub fn found((point, distance): (Point, f64)) -> Option<Point> {
    (!distance.is_nan()).then_some(point)
}

pub fn on_pl(p: &Point, line: &Line) -> Result<bool> {
    line.has(p)
}

pub fn on_ps(p: &Point, lseg: &Lseg) -> Result<bool> {
    lseg.has(p)
}

pub fn on_pb(p: &Point, b: &Rectangle) -> Result<bool> {
    Ok(b.has(p))
}

pub fn on_ppath(p: &Point, path: &Path) -> Result<bool> {
    path.has(p)
}

pub fn path_contain_pt(path: &Path, p: &Point) -> Result<bool> {
    path.has(p)
}

pub fn pt_contained_poly(p: &Point, polygon: &Polygon) -> Result<bool> {
    polygon.has(p)
}

pub fn poly_contain_pt(polygon: &Polygon, p: &Point) -> Result<bool> {
    polygon.has(p)
}

pub fn pt_contained_circle(p: &Point, circle: &Circle) -> Result<bool> {
    circle.has(p)
}

pub fn circle_contain_pt(circle: &Circle, p: &Point) -> Result<bool> {
    circle.has(p)
}
