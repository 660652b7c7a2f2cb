//! Lines.

use super::arithmetic::{add, div, eq, hypot, is_zero, mul, plain_zero, same_number, sub};
use crate::error::{Result, SqlError};
use crate::value::geometry::{Line, Point};
use logstead_types::SqlState;

impl Line {
    /// The line through a point that has this slope; an infinite one is that of a vertical line.
    pub fn through(p: &Point, slope: f64) -> Result<Line> {
        if slope.is_infinite() {
            return Ok(Line {
                a: -1.0,
                b: 0.0,
                c: p.x,
            });
        }
        if slope == 0.0 {
            return Ok(Line {
                a: 0.0,
                b: -1.0,
                c: p.y,
            });
        }
        Ok(Line {
            a: slope,
            b: -1.0,
            c: plain_zero(sub(p.y, mul(slope, p.x)?)?),
        })
    }

    pub fn slope(&self) -> Result<f64> {
        if is_zero(self.a) {
            return Ok(0.0);
        }
        if is_zero(self.b) {
            return Ok(f64::INFINITY);
        }
        div(self.a, -self.b)
    }

    fn inverse_slope(&self) -> Result<f64> {
        if is_zero(self.a) {
            return Ok(f64::INFINITY);
        }
        if is_zero(self.b) {
            return Ok(0.0);
        }
        div(self.b, self.a)
    }

    /// Where it meets another line; none of parallel ones.
    pub fn meets(&self, other: &Line) -> Result<Option<Point>> {
        // Two that are vertical are parallel; of the others one with a slope gives the height.
        let (l, m) = match (is_zero(self.b), is_zero(other.b)) {
            (false, _) => (self, other),
            (true, false) => (other, self),
            (true, true) => return Ok(None),
        };
        if eq(m.a, mul(l.a, div(m.b, l.b)?)?) {
            return Ok(None);
        }
        let x = div(
            sub(mul(l.b, m.c)?, mul(m.b, l.c)?)?,
            sub(mul(l.a, m.b)?, mul(m.a, l.b)?)?,
        )?;
        let y = div(-add(mul(l.a, x)?, l.c)?, l.b)?;
        Ok(Some(Point::new(plain_zero(x), plain_zero(y))))
    }

    /// The point of it that is nearest to another, and how far away that is.
    pub fn nearest_to(&self, p: &Point) -> Result<(Point, f64)> {
        let perpendicular = Line::through(p, self.inverse_slope()?)?;
        match perpendicular.meets(self)? {
            Some(at) => Ok((at, at.distance(p)?)),
            // With NaN in them they meet nowhere.
            None => Ok((*p, f64::NAN)),
        }
    }

    pub fn has(&self, p: &Point) -> Result<bool> {
        let sum = add(add(mul(self.a, p.x)?, mul(self.b, p.y)?)?, self.c)?;
        Ok(is_zero(sum))
    }
}

pub fn line_construct_pp(a: &Point, b: &Point) -> Result<Line> {
    if a.same(b) {
        return Err(SqlError::new(
            SqlState::INVALID_PARAMETER_VALUE,
            "invalid line specification: must be two distinct points",
        ));
    }
    Line::through(a, a.slope(b)?)
}

pub fn line_intersect(a: &Line, b: &Line) -> Result<bool> {
    Ok(a.meets(b)?.is_some())
}

pub fn line_parallel(a: &Line, b: &Line) -> Result<bool> {
    Ok(a.meets(b)?.is_none())
}

pub fn line_interpt(a: &Line, b: &Line) -> Result<Option<Point>> {
    a.meets(b)
}

pub fn line_perp(a: &Line, b: &Line) -> Result<bool> {
    if is_zero(a.a) {
        return Ok(is_zero(b.b));
    }
    if is_zero(b.a) {
        return Ok(is_zero(a.b));
    }
    if is_zero(a.b) {
        return Ok(is_zero(b.a));
    }
    if is_zero(b.b) {
        return Ok(is_zero(a.a));
    }
    Ok(eq(div(mul(a.a, b.a)?, mul(a.b, b.b)?)?, -1.0))
}

pub fn line_vertical(l: &Line) -> Result<bool> {
    Ok(is_zero(l.b))
}

pub fn line_horizontal(l: &Line) -> Result<bool> {
    Ok(is_zero(l.a))
}

/// Something to divide by.
fn is_number(v: f64) -> bool {
    !is_zero(v) && !v.is_nan()
}

pub fn line_eq(a: &Line, b: &Line) -> Result<bool> {
    let ratio = if is_number(b.a) {
        div(a.a, b.a)?
    } else if is_number(b.b) {
        div(a.b, b.b)?
    } else if is_number(b.c) {
        div(a.c, b.c)?
    } else {
        1.0
    };
    let scaled =
        eq(a.a, mul(ratio, b.a)?) && eq(a.b, mul(ratio, b.b)?) && eq(a.c, mul(ratio, b.c)?);
    Ok(scaled || (same_number(a.a, b.a) && same_number(a.b, b.b) && same_number(a.c, b.c)))
}

pub fn line_distance(a: &Line, b: &Line) -> Result<f64> {
    if a.meets(b)?.is_some() {
        return Ok(0.0);
    }
    let ratio = if is_number(a.a) && is_number(b.a) {
        div(a.a, b.a)?
    } else if is_number(a.b) && is_number(b.b) {
        div(a.b, b.b)?
    } else {
        1.0
    };
    div(sub(a.c, mul(ratio, b.c)?)?.abs(), hypot(a.a, a.b)?)
}
