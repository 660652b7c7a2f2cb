//! Line segments.

use super::arithmetic::{eq, ge, gt, le, less, lt, middle};
use super::points::found;
use crate::error::Result;
use crate::value::geometry::{Line, Lseg, Point, Rectangle};

impl Lseg {
    pub fn new(a: Point, b: Point) -> Lseg {
        Lseg { p: [a, b] }
    }

    fn slope(&self) -> Result<f64> {
        self.p[0].slope(&self.p[1])
    }

    fn length(&self) -> Result<f64> {
        self.p[0].distance(&self.p[1])
    }

    fn line(&self) -> Result<Line> {
        Line::through(&self.p[0], self.slope()?)
    }

    /// Is the point on it? Then it is as far by way of it.
    pub fn has(&self, p: &Point) -> Result<bool> {
        let way = p.distance(&self.p[0])? + p.distance(&self.p[1])?;
        Ok(eq(way, self.length()?))
    }

    /// Where it meets a line.
    pub fn meets_line(&self, line: &Line) -> Result<Option<Point>> {
        let Some(at) = self.line()?.meets(line)? else {
            return Ok(None);
        };
        if !self.has(&at)? {
            return Ok(None);
        }
        // An end is told exactly.
        let end = self.p.iter().find(|end| end.same(&at));
        Ok(Some(end.copied().unwrap_or(at)))
    }

    /// Where it meets another.
    pub fn meets(&self, other: &Lseg) -> Result<Option<Point>> {
        match self.meets_line(&other.line()?)? {
            Some(at) if other.has(&at)? => Ok(Some(at)),
            _ => Ok(None),
        }
    }

    /// The point of it that is nearest to a line, and how far away that is.
    fn nearest_to_line(&self, line: &Line) -> Result<(Point, f64)> {
        if let Some(at) = self.meets_line(line)? {
            return Ok((at, 0.0));
        }
        let [first, second] = self.p;
        let (to_first, to_second) = (line.nearest_to(&first)?.1, line.nearest_to(&second)?.1);
        Ok(match to_first < to_second {
            true => (first, to_first),
            false => (second, to_second),
        })
    }

    /// The point of it that is nearest to another, and how far away that is.
    pub fn nearest_to(&self, p: &Point) -> Result<(Point, f64)> {
        let perpendicular = Line::through(p, self.p[0].inverse_slope(&self.p[1])?)?;
        let (at, _) = self.nearest_to_line(&perpendicular)?;
        Ok((at, at.distance(p)?))
    }

    /// The point of it that is nearest to another segment, and how far away that is.
    pub fn nearest_to_lseg(&self, other: &Lseg) -> Result<(Point, f64)> {
        if let Some(at) = self.meets(other)? {
            return Ok((at, 0.0));
        }
        let mut best = self.nearest_to(&other.p[0])?;
        let second = self.nearest_to(&other.p[1])?;
        if less(second.1, best.1) {
            best = second;
        }
        // One of its own ends may be nearer still.
        for end in self.p {
            let distance = other.nearest_to(&end)?.1;
            if less(distance, best.1) {
                best = (end, distance);
            }
        }
        Ok(best)
    }
}

pub fn lseg_construct(a: &Point, b: &Point) -> Result<Lseg> {
    Ok(Lseg::new(*a, *b))
}

pub fn lseg_length(l: &Lseg) -> Result<f64> {
    l.length()
}

pub fn lseg_center(l: &Lseg) -> Result<Point> {
    let [a, b] = l.p;
    Ok(Point::new(middle(a.x, b.x)?, middle(a.y, b.y)?))
}

pub fn lseg_intersect(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(a.meets(b)?.is_some())
}

pub fn lseg_interpt(a: &Lseg, b: &Lseg) -> Result<Option<Point>> {
    a.meets(b)
}

pub fn lseg_parallel(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(eq(a.slope()?, b.slope()?))
}

pub fn lseg_perp(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(eq(a.slope()?, b.p[0].inverse_slope(&b.p[1])?))
}

pub fn lseg_vertical(l: &Lseg) -> Result<bool> {
    Ok(eq(l.p[0].x, l.p[1].x))
}

pub fn lseg_horizontal(l: &Lseg) -> Result<bool> {
    Ok(eq(l.p[0].y, l.p[1].y))
}

pub fn lseg_eq(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(a.p[0].same(&b.p[0]) && a.p[1].same(&b.p[1]))
}

pub fn lseg_ne(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(!lseg_eq(a, b)?)
}

pub fn lseg_lt(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(lt(a.length()?, b.length()?))
}

pub fn lseg_le(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(le(a.length()?, b.length()?))
}

pub fn lseg_gt(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(gt(a.length()?, b.length()?))
}

pub fn lseg_ge(a: &Lseg, b: &Lseg) -> Result<bool> {
    Ok(ge(a.length()?, b.length()?))
}

pub fn lseg_distance(a: &Lseg, b: &Lseg) -> Result<f64> {
    Ok(a.nearest_to_lseg(b)?.1)
}

pub fn dist_sl(l: &Lseg, line: &Line) -> Result<f64> {
    Ok(l.nearest_to_line(line)?.1)
}

pub fn dist_ls(line: &Line, l: &Lseg) -> Result<f64> {
    dist_sl(l, line)
}

pub fn dist_sb(l: &Lseg, b: &Rectangle) -> Result<f64> {
    Ok(b.nearest_to_lseg(l)?.1)
}

pub fn dist_bs(b: &Rectangle, l: &Lseg) -> Result<f64> {
    dist_sb(l, b)
}

pub fn close_lseg(a: &Lseg, b: &Lseg) -> Result<Option<Point>> {
    if a.slope()? == b.slope()? {
        return Ok(None);
    }
    b.nearest_to_lseg(a).map(found)
}

pub fn close_ls(line: &Line, l: &Lseg) -> Result<Option<Point>> {
    if l.slope()? == line.slope()? {
        return Ok(None);
    }
    l.nearest_to_line(line).map(found)
}

pub fn close_sb(l: &Lseg, b: &Rectangle) -> Result<Option<Point>> {
    b.nearest_to_lseg(l).map(found)
}

pub fn on_sl(l: &Lseg, line: &Line) -> Result<bool> {
    Ok(line.has(&l.p[0])? && line.has(&l.p[1])?)
}

pub fn on_sb(l: &Lseg, b: &Rectangle) -> Result<bool> {
    Ok(b.has(&l.p[0]) && b.has(&l.p[1]))
}

pub fn inter_sl(l: &Lseg, line: &Line) -> Result<bool> {
    Ok(l.meets_line(line)?.is_some())
}

pub fn inter_sb(l: &Lseg, b: &Rectangle) -> Result<bool> {
    b.meets(l)
}
