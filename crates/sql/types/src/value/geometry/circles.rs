//! Circles.

use super::arithmetic::{add, div, eq, ge, gt, hypot, is_zero, le, lt, mul, ne, sub};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory::{MemoryReservation, VALUE_BYTES_MAX};
use crate::value::geometry::{Circle, Point, Polygon, Rectangle, too_many_points};
use logstead_types::SqlState;
use std::f64::consts::PI;

/// A polygon's points are made so many at a time between two looks for interrupts.
const STRIDE: usize = 1024;

impl Circle {
    fn right(&self) -> Result<f64> {
        add(self.center.x, self.radius)
    }

    fn left(&self) -> Result<f64> {
        sub(self.center.x, self.radius)
    }

    fn top(&self) -> Result<f64> {
        add(self.center.y, self.radius)
    }

    fn bottom(&self) -> Result<f64> {
        sub(self.center.y, self.radius)
    }

    fn area(&self) -> Result<f64> {
        mul(mul(self.radius, self.radius)?, PI)
    }

    pub fn distance_to(&self, p: &Point) -> Result<f64> {
        Ok(not_negative(sub(p.distance(&self.center)?, self.radius)?))
    }

    pub fn has(&self, p: &Point) -> Result<bool> {
        Ok(self.center.distance(p)? <= self.radius)
    }
}

fn not_negative(v: f64) -> f64 {
    if v < 0.0 { 0.0 } else { v }
}

pub fn circle_same(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(
        ((a.radius.is_nan() && b.radius.is_nan()) || eq(a.radius, b.radius))
            && a.center.same(&b.center),
    )
}

pub fn circle_overlap(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(le(a.center.distance(&b.center)?, add(a.radius, b.radius)?))
}

pub fn circle_overleft(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(le(a.right()?, b.right()?))
}

pub fn circle_left(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(lt(a.right()?, b.left()?))
}

pub fn circle_right(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(gt(a.left()?, b.right()?))
}

pub fn circle_overright(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(ge(a.left()?, b.left()?))
}

pub fn circle_contained(a: &Circle, b: &Circle) -> Result<bool> {
    circle_contain(b, a)
}

pub fn circle_contain(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(le(a.center.distance(&b.center)?, sub(a.radius, b.radius)?))
}

pub fn circle_below(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(lt(a.top()?, b.bottom()?))
}

pub fn circle_above(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(gt(a.bottom()?, b.top()?))
}

pub fn circle_overbelow(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(le(a.top()?, b.top()?))
}

pub fn circle_overabove(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(ge(a.bottom()?, b.bottom()?))
}

pub fn circle_eq(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(eq(a.area()?, b.area()?))
}

pub fn circle_ne(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(ne(a.area()?, b.area()?))
}

pub fn circle_lt(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(lt(a.area()?, b.area()?))
}

pub fn circle_gt(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(gt(a.area()?, b.area()?))
}

pub fn circle_le(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(le(a.area()?, b.area()?))
}

pub fn circle_ge(a: &Circle, b: &Circle) -> Result<bool> {
    Ok(ge(a.area()?, b.area()?))
}

pub fn circle_add_pt(c: &Circle, p: &Point) -> Result<Circle> {
    Ok(Circle {
        center: c.center.plus(p)?,
        radius: c.radius,
    })
}

pub fn circle_sub_pt(c: &Circle, p: &Point) -> Result<Circle> {
    Ok(Circle {
        center: c.center.minus(p)?,
        radius: c.radius,
    })
}

pub fn circle_mul_pt(c: &Circle, p: &Point) -> Result<Circle> {
    Ok(Circle {
        center: c.center.times(p)?,
        radius: mul(c.radius, hypot(p.x, p.y)?)?,
    })
}

pub fn circle_div_pt(c: &Circle, p: &Point) -> Result<Circle> {
    Ok(Circle {
        center: c.center.over(p)?,
        radius: div(c.radius, hypot(p.x, p.y)?)?,
    })
}

pub fn circle_area(c: &Circle) -> Result<f64> {
    c.area()
}

pub fn circle_diameter(c: &Circle) -> Result<f64> {
    mul(c.radius, 2.0)
}

pub fn circle_radius(c: &Circle) -> Result<f64> {
    Ok(c.radius)
}

pub fn circle_center(c: &Circle) -> Result<Point> {
    Ok(c.center)
}

pub fn circle_distance(a: &Circle, b: &Circle) -> Result<f64> {
    let between = a.center.distance(&b.center)?;
    Ok(not_negative(sub(between, add(a.radius, b.radius)?)?))
}

pub fn dist_cpoly(c: &Circle, polygon: &Polygon) -> Result<f64> {
    Ok(not_negative(sub(
        polygon.distance_to(&c.center)?,
        c.radius,
    )?))
}

pub fn dist_polyc(polygon: &Polygon, c: &Circle) -> Result<f64> {
    dist_cpoly(c, polygon)
}

pub fn cr_circle(center: &Point, radius: &f64) -> Result<Circle> {
    Ok(Circle {
        center: *center,
        radius: *radius,
    })
}

pub fn circle_box(c: &Circle) -> Result<Rectangle> {
    let delta = div(c.radius, 2.0_f64.sqrt())?;
    Ok(Rectangle {
        high: Point::new(add(c.center.x, delta)?, add(c.center.y, delta)?),
        low: Point::new(sub(c.center.x, delta)?, sub(c.center.y, delta)?),
    })
}

/// Of twelve points.
pub fn circle_poly_twelve(c: &Circle) -> Result<Polygon> {
    circle_poly(&12, c)
}

pub fn circle_poly(count: &i32, c: &Circle) -> Result<Polygon> {
    if is_zero(c.radius) {
        return Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            "cannot convert circle with radius zero to polygon",
        ));
    }
    if *count < 2 {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "must request at least 2 points",
        ));
    }
    let size = usize::try_from(*count).unwrap_or(0);
    if size > VALUE_BYTES_MAX / size_of::<Point>() {
        return Err(too_many_points());
    }
    let _room = MemoryReservation::of(size * size_of::<Point>())?;
    let step = div(2.0 * PI, f64::from(*count))?;
    let mut points = Vec::with_capacity(size);
    for i in 0..size {
        if i % STRIDE == 0 {
            check_for_interrupts()?;
        }
        let angle = mul(step, i as f64)?;
        points.push(Point::new(
            sub(c.center.x, mul(c.radius, angle.cos())?)?,
            add(c.center.y, mul(c.radius, angle.sin())?)?,
        ));
    }
    Ok(Polygon::new(points))
}
