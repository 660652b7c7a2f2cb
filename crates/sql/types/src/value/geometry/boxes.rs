//! Boxes.

use super::arithmetic::{eq, ge, gt, le, less, lt, max, middle, min, mul, sub};
use crate::error::Result;
use crate::value::geometry::{Circle, Line, Lseg, Point, Polygon, Rectangle};

impl Rectangle {
    pub fn overlaps(&self, other: &Rectangle) -> bool {
        le(self.low.x, other.high.x)
            && le(other.low.x, self.high.x)
            && le(self.low.y, other.high.y)
            && le(other.low.y, self.high.y)
    }

    pub fn has_box(&self, other: &Rectangle) -> bool {
        ge(self.high.x, other.high.x)
            && le(self.low.x, other.low.x)
            && ge(self.high.y, other.high.y)
            && le(self.low.y, other.low.y)
    }

    /// Is the point in it or on its border, exactly?
    pub fn has(&self, p: &Point) -> bool {
        self.high.x >= p.x && self.low.x <= p.x && self.high.y >= p.y && self.low.y <= p.y
    }

    fn width(&self) -> Result<f64> {
        sub(self.high.x, self.low.x)
    }

    fn height(&self) -> Result<f64> {
        sub(self.high.y, self.low.y)
    }

    fn area(&self) -> Result<f64> {
        mul(self.width()?, self.height()?)
    }

    fn center(&self) -> Result<Point> {
        Ok(Point::new(
            middle(self.high.x, self.low.x)?,
            middle(self.high.y, self.low.y)?,
        ))
    }

    /// Its sides: left, top, bottom, right.
    fn sides(&self) -> [Lseg; 4] {
        let (high, low) = (self.high, self.low);
        let (top_left, bottom_right) = (Point::new(low.x, high.y), Point::new(high.x, low.y));
        [
            Lseg::new(low, top_left),
            Lseg::new(high, top_left),
            Lseg::new(low, bottom_right),
            Lseg::new(high, bottom_right),
        ]
    }

    /// The nearest of what its sides say.
    fn nearest(&self, of: impl Fn(&Lseg) -> Result<(Point, f64)>) -> Result<(Point, f64)> {
        let [first, rest @ ..] = self.sides();
        let mut best = of(&first)?;
        for side in &rest {
            let found = of(side)?;
            if less(found.1, best.1) {
                best = found;
            }
        }
        Ok(best)
    }

    /// The point of it that is nearest to another, and how far away that is.
    pub fn nearest_to(&self, p: &Point) -> Result<(Point, f64)> {
        match self.has(p) {
            true => Ok((*p, 0.0)),
            false => self.nearest(|side| side.nearest_to(p)),
        }
    }

    /// Is some of the segment in it?
    pub fn meets(&self, lseg: &Lseg) -> Result<bool> {
        let [a, b] = lseg.p;
        let around = Rectangle {
            high: Point::new(max(a.x, b.x), max(a.y, b.y)),
            low: Point::new(min(a.x, b.x), min(a.y, b.y)),
        };
        if !around.overlaps(self) {
            return Ok(false);
        }
        if self.has(&a) || self.has(&b) {
            return Ok(true);
        }
        for side in self.sides() {
            if side.meets(lseg)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The point of it that is nearest to a segment, and how far away that is. Where they overlap it is the segment's
    /// nearest to the center.
    pub fn nearest_to_lseg(&self, lseg: &Lseg) -> Result<(Point, f64)> {
        match self.meets(lseg)? {
            true => Ok((lseg.nearest_to(&self.center()?)?.0, 0.0)),
            false => self.nearest(|side| side.nearest_to_lseg(lseg)),
        }
    }
}

pub fn box_same(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(a.high.same(&b.high) && a.low.same(&b.low))
}

pub fn box_overlap(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(a.overlaps(b))
}

pub fn box_left(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(lt(a.high.x, b.low.x))
}

pub fn box_overleft(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(le(a.high.x, b.high.x))
}

pub fn box_right(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(gt(a.low.x, b.high.x))
}

pub fn box_overright(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(ge(a.low.x, b.low.x))
}

pub fn box_below(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(lt(a.high.y, b.low.y))
}

pub fn box_overbelow(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(le(a.high.y, b.high.y))
}

pub fn box_above(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(gt(a.low.y, b.high.y))
}

pub fn box_overabove(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(ge(a.low.y, b.low.y))
}

pub fn box_below_eq(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(le(a.high.y, b.low.y))
}

pub fn box_above_eq(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(ge(a.low.y, b.high.y))
}

pub fn box_contain(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(a.has_box(b))
}

pub fn box_contained(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(b.has_box(a))
}

pub fn box_contain_pt(b: &Rectangle, p: &Point) -> Result<bool> {
    Ok(b.has(p))
}

pub fn box_lt(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(lt(a.area()?, b.area()?))
}

pub fn box_gt(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(gt(a.area()?, b.area()?))
}

pub fn box_eq(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(eq(a.area()?, b.area()?))
}

pub fn box_le(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(le(a.area()?, b.area()?))
}

pub fn box_ge(a: &Rectangle, b: &Rectangle) -> Result<bool> {
    Ok(ge(a.area()?, b.area()?))
}

pub fn box_area(b: &Rectangle) -> Result<f64> {
    b.area()
}

pub fn box_width(b: &Rectangle) -> Result<f64> {
    b.width()
}

pub fn box_height(b: &Rectangle) -> Result<f64> {
    b.height()
}

pub fn box_distance(a: &Rectangle, b: &Rectangle) -> Result<f64> {
    a.center()?.distance(&b.center()?)
}

pub fn box_center(b: &Rectangle) -> Result<Point> {
    b.center()
}

pub fn box_intersect(a: &Rectangle, b: &Rectangle) -> Result<Option<Rectangle>> {
    Ok(a.overlaps(b).then(|| Rectangle {
        high: Point::new(min(a.high.x, b.high.x), min(a.high.y, b.high.y)),
        low: Point::new(max(a.low.x, b.low.x), max(a.low.y, b.low.y)),
    }))
}

pub fn boxes_bound_box(a: &Rectangle, b: &Rectangle) -> Result<Rectangle> {
    Ok(Rectangle {
        high: Point::new(max(a.high.x, b.high.x), max(a.high.y, b.high.y)),
        low: Point::new(min(a.low.x, b.low.x), min(a.low.y, b.low.y)),
    })
}

pub fn box_diagonal(b: &Rectangle) -> Result<Lseg> {
    Ok(Lseg::new(b.high, b.low))
}

pub fn points_box(a: &Point, b: &Point) -> Result<Rectangle> {
    Ok(Rectangle::new(*a, *b))
}

pub fn point_box(p: &Point) -> Result<Rectangle> {
    Ok(Rectangle { high: *p, low: *p })
}

pub fn box_add(b: &Rectangle, p: &Point) -> Result<Rectangle> {
    Ok(Rectangle {
        high: b.high.plus(p)?,
        low: b.low.plus(p)?,
    })
}

pub fn box_sub(b: &Rectangle, p: &Point) -> Result<Rectangle> {
    Ok(Rectangle {
        high: b.high.minus(p)?,
        low: b.low.minus(p)?,
    })
}

pub fn box_mul(b: &Rectangle, p: &Point) -> Result<Rectangle> {
    Ok(Rectangle::new(b.high.times(p)?, b.low.times(p)?))
}

pub fn box_div(b: &Rectangle, p: &Point) -> Result<Rectangle> {
    Ok(Rectangle::new(b.high.over(p)?, b.low.over(p)?))
}

pub fn box_poly(b: &Rectangle) -> Result<Polygon> {
    let (high, low) = (b.high, b.low);
    Ok(Polygon {
        bound: Rectangle::new(high, low),
        points: vec![
            low,
            Point::new(low.x, high.y),
            high,
            Point::new(high.x, low.y),
        ],
    })
}

pub fn box_circle(b: &Rectangle) -> Result<Circle> {
    let center = b.center()?;
    Ok(Circle {
        center,
        radius: center.distance(&b.high)?,
    })
}

pub fn inter_lb(line: &Line, b: &Rectangle) -> Result<bool> {
    let (high, low) = (b.high, b.low);
    let (top_left, bottom_right) = (Point::new(low.x, high.y), Point::new(high.x, low.y));
    let sides = [
        Lseg::new(low, top_left),
        Lseg::new(high, top_left),
        Lseg::new(high, bottom_right),
        Lseg::new(low, bottom_right),
    ];
    for side in sides {
        if side.meets_line(line)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}
