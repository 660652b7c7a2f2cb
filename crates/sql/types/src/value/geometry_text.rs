//! Reading the text of geometric values: `(1,2)`, `[(0,0),(1,1)]`, `<(1,2),3>`, `{1,-1,0}`, and what PostgreSQL takes
//! for these.

use super::geometry::{
    Circle, EPSILON, Geometry, Line, Lseg, Path, Point, Polygon, Rectangle, too_many_points,
};
use super::text_io::{invalid_syntax, is_space};
use super::types::oid;
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory::VALUE_BYTES_MAX;
use logstead_types::SqlState;

impl Geometry {
    /// Reads the text form.
    pub(super) fn parse(ty: TypeId, text: &str) -> Result<Geometry> {
        let mut reader = Reader::new(ty, text);
        match ty {
            oid::POINT => {
                let point = reader.pair()?;
                reader.end()?;
                Ok(Geometry::Point(point))
            }
            oid::BOX => {
                let (points, _) = reader.path(false, 2)?;
                reader.end()?;
                match points[..] {
                    [high, low] => Ok(Geometry::Box(Rectangle::of_corners(high, low))),
                    _ => Err(reader.bad()),
                }
            }
            oid::LSEG => {
                let (points, _) = reader.path(true, 2)?;
                reader.end()?;
                match points[..] {
                    [a, b] => Ok(Geometry::Lseg(Lseg { p: [a, b] })),
                    _ => Err(reader.bad()),
                }
            }
            oid::LINE => reader.line(),
            oid::PATH => {
                let count = reader.count()?;
                reader.blanks();
                let bracketed = reader.peek() == Some(b'(') && reader.is_last(b'(');
                if bracketed {
                    reader.at += 1;
                }
                let (points, open) = reader.path(true, count)?;
                if bracketed {
                    reader.expect(b')')?;
                    reader.blanks();
                }
                reader.end()?;
                let closed = !open;
                Ok(Geometry::Path(Path { closed, points }))
            }
            oid::POLYGON => {
                let count = reader.count()?;
                let (points, _) = reader.path(false, count)?;
                reader.end()?;
                Ok(Geometry::Polygon(Polygon::new(points)))
            }
            _ => reader.circle(),
        }
    }
}

/// Reads the text of a geometric value.
struct Reader<'a> {
    name: &'static str,
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn new(ty: TypeId, text: &'a str) -> Reader<'a> {
        let name = super::info::by_oid(ty).map_or("point", |t| t.name);
        Reader { name, text, at: 0 }
    }

    #[cold]
    fn bad(&self) -> SqlError {
        invalid_syntax(self.name, self.text)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while self.peek().is_some_and(is_space) {
            self.at += 1;
        }
    }

    fn expect(&mut self, c: u8) -> Result<()> {
        if self.peek() != Some(c) {
            return Err(self.bad());
        }
        self.at += 1;
        Ok(())
    }

    fn end(&self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.bad()),
        }
    }

    /// Is there no other such character behind this place?
    fn is_last(&self, c: u8) -> bool {
        self.text.as_bytes().iter().rposition(|b| *b == c) == Some(self.at)
    }

    /// How many points there must be, by the commas.
    fn count(&self) -> Result<usize> {
        let commas = self.text.bytes().filter(|b| *b == b',').count();
        if commas % 2 == 0 {
            return Err(self.bad());
        }
        let count = commas.div_ceil(2);
        match count > VALUE_BYTES_MAX / size_of::<Point>() {
            true => Err(too_many_points()),
            false => Ok(count),
        }
    }

    /// A number with the blanks around it.
    fn number(&mut self) -> Result<f64> {
        self.blanks();
        let rest = self.text.get(self.at..).unwrap_or_default();
        let bytes = rest.as_bytes();
        let sign = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let body = bytes.get(sign..).unwrap_or_default();
        let word = |word: &str| {
            let start = body.get(..word.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
        };
        let special = [
            ("nan", f64::NAN),
            ("infinity", f64::INFINITY),
            ("inf", f64::INFINITY),
        ];
        if let Some((found, value)) = special.into_iter().find(|(name, _)| word(name)) {
            self.at += sign + found.len();
            self.blanks();
            return Ok(if bytes.first() == Some(&b'-') {
                -value
            } else {
                value
            });
        }
        let digits = |from: usize| {
            let part = body.get(from..).unwrap_or_default();
            part.iter().take_while(|b| b.is_ascii_digit()).count()
        };
        let whole = digits(0);
        let mut length = whole;
        let mut fraction = 0;
        if body.get(whole) == Some(&b'.') {
            fraction = digits(whole + 1);
            length += 1 + fraction;
        }
        if whole + fraction == 0 {
            return Err(self.bad());
        }
        if let Some(b'e' | b'E') = body.get(length) {
            let signed = usize::from(matches!(body.get(length + 1), Some(b'+' | b'-')));
            let exponent = digits(length + 1 + signed);
            if exponent > 0 {
                length += 1 + signed + exponent;
            }
        }
        let written = rest.get(..sign + length).unwrap_or_default();
        let value: f64 = written.parse().map_err(|_| self.bad())?;
        let mantissa = written.bytes().take_while(|b| !matches!(b, b'e' | b'E'));
        let is_zero = mantissa.clone().all(|b| !matches!(b, b'1'..=b'9'));
        if value.is_infinite() || (value == 0.0 && !is_zero) {
            return Err(SqlError::new(
                SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
                format!("\"{written}\" is out of range for type double precision"),
            ));
        }
        self.at += sign + length;
        self.blanks();
        Ok(value)
    }

    /// Two numbers, with or without parentheses.
    fn pair(&mut self) -> Result<Point> {
        self.blanks();
        let bracketed = self.peek() == Some(b'(');
        if bracketed {
            self.at += 1;
        }
        let x = self.number()?;
        self.expect(b',')?;
        let y = self.number()?;
        if bracketed {
            self.expect(b')')?;
            self.blanks();
        }
        Ok(Point { x, y })
    }

    /// So many points, and whether brackets say that they are open.
    fn path(&mut self, may_be_open: bool, count: usize) -> Result<(Vec<Point>, bool)> {
        self.blanks();
        let open = self.peek() == Some(b'[');
        let mut depth = 0;
        if open {
            if !may_be_open {
                return Err(self.bad());
            }
            depth = 1;
            self.at += 1;
        } else if self.peek() == Some(b'(') {
            let alone = self.is_last(b'(');
            let start = self.at;
            self.at += 1;
            self.blanks();
            match self.peek() == Some(b'(') || alone {
                true => depth = 1,
                false => self.at = start,
            }
        }
        let mut points = Vec::with_capacity(count);
        for _ in 0..count {
            points.push(self.pair()?);
            if self.peek() == Some(b',') {
                self.at += 1;
            }
        }
        if depth > 0 {
            match self.peek() {
                Some(b')') => {}
                Some(b']') if open => {}
                _ => return Err(self.bad()),
            }
            self.at += 1;
            self.blanks();
        }
        Ok((points, open))
    }

    fn line(&mut self) -> Result<Geometry> {
        let wrong = |what: &str| {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid line specification: {what}"),
            )
        };
        self.blanks();
        if self.peek() != Some(b'{') {
            let (points, _) = self.path(true, 2)?;
            self.end()?;
            let [a, b] = points[..] else {
                return Err(self.bad());
            };
            if a.same(&b) {
                return Err(wrong("must be two distinct points"));
            }
            return Line::through(&a, a.slope(&b)?).map(Geometry::Line);
        }
        self.at += 1;
        let a = self.number()?;
        self.expect(b',')?;
        let b = self.number()?;
        self.expect(b',')?;
        let c = self.number()?;
        self.expect(b'}')?;
        self.blanks();
        self.end()?;
        if a.abs() <= EPSILON && b.abs() <= EPSILON {
            return Err(wrong("A and B cannot both be zero"));
        }
        Ok(Geometry::Line(Line { a, b, c }))
    }

    fn circle(&mut self) -> Result<Geometry> {
        self.blanks();
        let mut depth = 0;
        let pointed = self.peek() == Some(b'<');
        if pointed {
            depth = 1;
            self.at += 1;
        } else if self.peek() == Some(b'(') {
            let start = self.at;
            self.at += 1;
            self.blanks();
            match self.peek() == Some(b'(') {
                true => depth = 1,
                false => self.at = start,
            }
        }
        let center = self.pair()?;
        if self.peek() == Some(b',') {
            self.at += 1;
        }
        let radius = self.number()?;
        if radius < 0.0 {
            return Err(self.bad());
        }
        if depth > 0 {
            match self.peek() {
                Some(b')' | b'>') => self.at += 1,
                _ => return Err(self.bad()),
            }
            self.blanks();
        }
        self.end()?;
        Ok(Geometry::Circle(Circle { center, radius }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPES: [TypeId; 7] = [
        oid::POINT,
        oid::LINE,
        oid::LSEG,
        oid::BOX,
        oid::PATH,
        oid::POLYGON,
        oid::CIRCLE,
    ];

    #[test]
    fn no_text_makes_a_panic() {
        let parts = [
            "(", ")", "[", "]", "<", ">", "{", ",", "1", "-", "e5", "nan", "é", " ",
        ];
        let count = parts.len();
        for number in 0..count.pow(4) {
            let chosen =
                [1, count, count.pow(2), count.pow(3)].map(|by| parts[number / by % count]);
            let text = chosen.concat();
            for ty in TYPES {
                let _either_way = Geometry::parse(ty, &text);
                let _either_way = Geometry::parse(ty, &format!("(1,2),{text}"));
            }
        }
    }

    #[test]
    fn every_form_reads_back_and_damaged_ones_are_refused() {
        let key = |v: &Geometry| {
            let mut key = Vec::new();
            v.write_key(&mut key);
            key
        };
        for (ty, text) in [
            (oid::POINT, "(NaN,-0)"),
            (oid::LINE, "{1,-1,Infinity}"),
            (oid::LSEG, "[(1,2),(3,4)]"),
            (oid::BOX, "(1,2),(3,4)"),
            (oid::PATH, "[(1,2),(3,4),(5,6)]"),
            (oid::PATH, "((1,2))"),
            (oid::POLYGON, "((1,2),(3,4))"),
            (oid::CIRCLE, "<(1,2),3>"),
        ] {
            let value = Geometry::parse(ty, text).unwrap();
            let (mut stored, mut sent) = (Vec::new(), Vec::new());
            value.encode(&mut stored);
            value.send(&mut sent);
            let kept = Geometry::decode(ty, &stored).unwrap();
            assert_eq!(key(&kept), key(&value), "{text}");
            assert_eq!(
                key(&Geometry::receive(ty, &sent).unwrap()),
                key(&value),
                "{text}"
            );
            for end in 0..sent.len() {
                assert!(Geometry::receive(ty, &sent[..end]).is_err(), "{text} {end}");
            }
            for end in 0..stored.len() {
                let part = Geometry::decode(ty, &stored[..end]);
                // Fewer points are a path too.
                assert!(part.is_none() || matches!(ty, oid::PATH | oid::POLYGON));
            }
        }
    }
}
