//! Pictures for numbers: `to_char(number, picture)` and `to_number`.
//!
//! A picture is read into items and a description of the whole; the number becomes digits as wide as the picture
//! allows, and then both are walked together, as PostgreSQL does: what one item writes hangs on how far the digits and
//! the sign have come.

use super::ordinal_suffix;
use crate::arithmetic::{bad_args, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, Numeric};
use logstead_types::SqlState;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    Nine,
    Zero,
    Point,
    Comma,
    Group,
    Blank,
    /// C, SP: nothing.
    Nothing,
    Exponent,
    Fill,
    Currency,
    Minus,
    Plus,
    Brackets,
    Roman(bool),
    Both,
    Sign,
    Ordinal(bool),
    Multiply,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NumNode {
    Key(Key),
    Text(char),
}

/// Words of pictures, in the order in which they are looked for; each in capitals or in small letters.
const KEYS: [(&str, Key); 20] = [
    (",", Key::Comma),
    (".", Key::Point),
    ("0", Key::Zero),
    ("9", Key::Nine),
    ("B", Key::Blank),
    ("C", Key::Nothing),
    ("D", Key::Point),
    ("EEEE", Key::Exponent),
    ("FM", Key::Fill),
    ("G", Key::Group),
    ("L", Key::Currency),
    ("MI", Key::Minus),
    ("PL", Key::Plus),
    ("PR", Key::Brackets),
    ("RN", Key::Roman(false)),
    ("SG", Key::Both),
    ("SP", Key::Nothing),
    ("S", Key::Sign),
    ("TH", Key::Ordinal(false)),
    ("V", Key::Multiply),
];

/// Where S stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Anchor {
    #[default]
    None,
    Before,
    Behind,
}

/// What a picture says as a whole.
#[derive(Clone, Debug, Default)]
struct NumDesc {
    items: Vec<NumNode>,
    /// Digits in front of the point and behind it.
    before: usize,
    after: usize,
    anchor: Anchor,
    /// Digits in front of S.
    before_sign: usize,
    /// Digits behind V.
    multiply: usize,
    zero_start: usize,
    zero_end: usize,
    zero: bool,
    point: bool,
    fill: bool,
    blank: bool,
    sign: bool,
    brackets: bool,
    minus: bool,
    plus: bool,
    roman: bool,
    multiplies: bool,
    exponent: bool,
}

fn syntax(text: &str) -> SqlError {
    SqlError::new(SqlState::SYNTAX_ERROR, text)
}

fn parse(picture: &str) -> Result<NumDesc> {
    let mut p = NumDesc::default();
    let mut rest = picture;
    while let Some(c) = rest.chars().next() {
        let found = KEYS.iter().find_map(|(word, key)| {
            if rest.starts_with(word) {
                return Some((word.len(), *key));
            }
            let key = match key {
                Key::Roman(_) => Key::Roman(true),
                Key::Ordinal(_) => Key::Ordinal(true),
                other => *other,
            };
            rest.starts_with(&word.to_ascii_lowercase())
                .then_some((word.len(), key))
        });
        if let Some((len, key)) = found {
            p.describe(key)?;
            p.items.push(NumNode::Key(key));
            rest = rest.get(len..).unwrap_or_default();
            continue;
        }
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
        if c == '"' {
            let mut inside = rest.chars();
            loop {
                match inside.next() {
                    None | Some('"') => break,
                    // Whatever stands behind a backslash is meant.
                    Some('\\') => match inside.next() {
                        Some(c) => p.items.push(NumNode::Text(c)),
                        None => p.items.push(NumNode::Text('\\')),
                    },
                    Some(c) => p.items.push(NumNode::Text(c)),
                }
            }
            rest = inside.as_str();
        } else if c == '\\' && rest.starts_with('"') {
            p.items.push(NumNode::Text('"'));
            rest = rest.get(1..).unwrap_or_default();
        } else {
            p.items.push(NumNode::Text(c));
        }
    }
    Ok(p)
}

impl NumDesc {
    fn describe(&mut self, key: Key) -> Result<()> {
        if self.exponent && key != Key::Exponent {
            return Err(syntax("\"EEEE\" must be the last pattern used"));
        }
        match key {
            Key::Nine if self.brackets => return Err(syntax("\"9\" must be ahead of \"PR\"")),
            Key::Nine if self.multiplies => self.multiply += 1,
            Key::Nine if self.point => self.after += 1,
            Key::Nine => self.before += 1,
            Key::Zero => {
                if self.brackets {
                    return Err(syntax("\"0\" must be ahead of \"PR\""));
                }
                if !self.zero && !self.point {
                    self.zero = true;
                    self.zero_start = self.before + 1;
                }
                match self.point {
                    true => self.after += 1,
                    false => self.before += 1,
                }
                self.zero_end = self.before + self.after;
            }
            Key::Blank => self.blank |= self.before == 0 && self.after == 0 && !self.zero,
            Key::Point if self.point => return Err(syntax("multiple decimal points")),
            Key::Point | Key::Multiply if self.point || self.multiplies && key == Key::Point => {
                return Err(syntax("cannot use \"V\" and decimal point together"));
            }
            Key::Point => self.point = true,
            Key::Multiply => self.multiplies = true,
            Key::Fill => self.fill = true,
            Key::Sign => {
                if self.sign {
                    return Err(syntax("cannot use \"S\" twice"));
                }
                if self.plus || self.minus || self.brackets {
                    return Err(syntax(
                        "cannot use \"S\" and \"PL\"/\"MI\"/\"SG\"/\"PR\" together",
                    ));
                }
                self.sign = true;
                if self.point {
                    self.anchor = Anchor::Behind;
                } else {
                    self.anchor = Anchor::Before;
                    self.before_sign = self.before;
                }
            }
            Key::Minus if self.sign => return Err(syntax("cannot use \"S\" and \"MI\" together")),
            Key::Minus => self.minus = true,
            Key::Plus if self.sign => return Err(syntax("cannot use \"S\" and \"PL\" together")),
            Key::Plus => self.plus = true,
            Key::Both if self.sign => return Err(syntax("cannot use \"S\" and \"SG\" together")),
            Key::Both => (self.minus, self.plus) = (true, true),
            Key::Brackets if self.sign || self.plus || self.minus => {
                return Err(syntax(
                    "cannot use \"PR\" and \"S\"/\"PL\"/\"MI\"/\"SG\" together",
                ));
            }
            Key::Brackets => self.brackets = true,
            Key::Roman(_) => self.roman = true,
            Key::Exponent if self.exponent => return Err(syntax("cannot use \"EEEE\" twice")),
            Key::Exponent => {
                let others = self.blank
                    || self.fill
                    || self.sign
                    || self.brackets
                    || self.minus
                    || self.plus
                    || self.roman
                    || self.multiplies;
                if others {
                    return Err(syntax("\"EEEE\" is incompatible with other formats").detail(
                        "\"EEEE\" may only be used together with digit and decimal point patterns.",
                    ));
                }
                self.exponent = true;
            }
            Key::Comma | Key::Group | Key::Nothing | Key::Currency | Key::Ordinal(_) => {}
        }
        Ok(())
    }
}

fn roman(mut n: i64) -> String {
    const STEPS: [(i64, &str); 13] = [
        (1000, "M"),
        (900, "CM"),
        (500, "D"),
        (400, "CD"),
        (100, "C"),
        (90, "XC"),
        (50, "L"),
        (40, "XL"),
        (10, "X"),
        (9, "IX"),
        (5, "V"),
        (4, "IV"),
        (1, "I"),
    ];
    if !(1..4000).contains(&n) {
        return "#".repeat(15);
    }
    let mut s = String::new();
    for (v, letters) in STEPS {
        while n >= v {
            s.push_str(letters);
            n -= v;
        }
    }
    s
}

/// A number as a float's `%e` writes it: two digits of exponent at least.
fn scientific_float(v: f64, after: usize) -> String {
    let s = format!("{v:.after$e}");
    let (mantissa, exponent) = s.split_once('e').unwrap_or((&s, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

/// The same of a numeric, whose digits are exact.
fn scientific_numeric(n: &Numeric, after: usize) -> Result<String> {
    let text = n.abs().to_string();
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let digits = format!("{whole}{fraction}");
    let leading = digits.bytes().take_while(|b| *b == b'0').count();
    let significant = digits.get(leading..).unwrap_or_default();
    let exponent = match significant.is_empty() {
        true => 0,
        false => whole.len() as i64 - leading as i64 - 1,
    };
    let (first, others) = match significant.is_empty() {
        true => ("0", ""),
        false => significant.split_at(1),
    };
    let mantissa = Numeric::parse(&format!("{first}.{others}0"))?.round(after as i32);
    let mantissa = if n.signum() < 0 {
        mantissa.neg()
    } else {
        mantissa
    };
    let sign = if exponent < 0 { '-' } else { '+' };
    Ok(format!("{mantissa}e{sign}{:02}", exponent.abs()))
}

/// Ten to the power of `count` times a number that must stay one of the type.
fn multiplied(v: i64, count: usize, limit: i64, name: &str) -> Result<i64> {
    let factor = 10_i64.checked_pow(u32::try_from(count).unwrap_or(u32::MAX));
    factor
        .and_then(|factor| v.checked_mul(factor))
        .filter(|v| (-limit - 1..=limit).contains(v))
        .ok_or_else(|| out_of_range(name))
}

/// `to_char` of a number.
pub(super) fn number_to_char(d: &Datum, picture: &str) -> Result<String> {
    let mut p = parse(picture)?;
    if picture.is_empty() {
        return Ok(String::new());
    }
    if p.roman {
        let n = match d {
            Datum::Numeric(v) => v.round(0).to_i64("integer")?,
            Datum::Float4(v) => f64::from(*v).round_ties_even() as i64,
            Datum::Float8(v) => v.round_ties_even() as i64,
            other => other.as_integer()?,
        };
        return NumProc::new(&mut p, &roman(n), 0, '\0').write();
    }
    if p.exponent {
        let text = match d {
            Datum::Float4(v) if v.is_finite() => scientific_float(f64::from(*v), p.after),
            Datum::Float8(v) if v.is_finite() => scientific_float(*v, p.after),
            Datum::Numeric(v) if v.is_finite() => scientific_numeric(v, p.after)?,
            Datum::Float4(_) | Datum::Float8(_) | Datum::Numeric(_) => {
                // Room for a sign, the point and an exponent of two digits.
                let mut text = vec![b'#'; p.before + p.after + 6];
                text[0] = b' ';
                if let Some(point) = text.get_mut(p.before + 1) {
                    *point = b'.';
                }
                return Ok(String::from_utf8_lossy(&text).into_owned());
            }
            Datum::Int8(v) => scientific_numeric(&Numeric::from(*v), p.after)?,
            other => scientific_float(other.as_integer()? as f64, p.after),
        };
        return Ok(match text.starts_with('-') {
            true => text,
            false => format!(" {text}"),
        });
    }
    let text = match d {
        Datum::Numeric(v) => {
            let v = match p.multiplies {
                true => v.mul(&Numeric::from(10i128.pow(p.multiply.min(30) as u32)))?,
                false => v.clone(),
            };
            v.round(p.after as i32).to_string()
        }
        Datum::Float4(v) => {
            let factor = 10f64.powi(p.multiply as i32);
            float_digits(f64::from((f64::from(*v) * factor) as f32), 6, &mut p)
        }
        Datum::Float8(v) => float_digits(*v * 10f64.powi(p.multiply as i32), 15, &mut p),
        other => {
            let v = other.as_integer()?;
            let (limit, name) = match other {
                Datum::Int8(_) => (i64::MAX, "bigint"),
                _ => (i64::from(i32::MAX), "integer"),
            };
            let v = multiplied(v, p.multiply, limit, name)?;
            match p.after {
                0 => v.to_string(),
                after => format!("{v}.{}", "0".repeat(after)),
            }
        }
    };
    p.before += p.multiply;
    let (sign, text) = match text.strip_prefix('-') {
        Some(text) => ('-', text),
        None => ('+', text.as_str()),
    };
    let whole = text.find('.').unwrap_or(text.len());
    if whole > p.before {
        let mut full = "#".repeat(p.before + p.after + 1);
        full.replace_range(p.before..=p.before, ".");
        return NumProc::new(&mut p, &full, 0, sign).write();
    }
    let spaces = p.before - whole;
    NumProc::new(&mut p, text, spaces, sign).write()
}

/// Digits of a float, no more of them than the type has.
fn float_digits(v: f64, digits_max: usize, p: &mut NumDesc) -> String {
    if !v.is_finite() {
        let text = if v.is_nan() {
            "NaN"
        } else if v < 0.0 {
            "-Infinity"
        } else {
            "Infinity"
        };
        let len = text.trim_start_matches('-').len();
        p.after = p.after.min(digits_max.saturating_sub(len));
        return text.to_owned();
    }
    let whole = format!("{:.0}", v.abs()).len();
    p.after = p.after.min(digits_max.saturating_sub(whole));
    let after = p.after;
    format!("{v:.after$}")
}

/// A picture and digits being walked together.
struct NumProc<'a> {
    p: &'a NumDesc,
    number: &'a [u8],
    /// How far the digits are written.
    at: usize,
    /// Places in front of the first digit.
    spaces: usize,
    sign: char,
    sign_wrote: bool,
    /// The last place that FM shows.
    last_relevant: Option<usize>,
    count: usize,
    current: usize,
    /// A digit has just been written.
    digit: bool,
    out: String,
}

impl<'a> NumProc<'a> {
    fn new(p: &'a mut NumDesc, number: &'a str, spaces: usize, sign: char) -> NumProc<'a> {
        p.zero_start = p.zero_start.saturating_sub(1);
        let number = number.as_bytes();
        let sign_wrote = if p.plus || p.minus {
            p.minus
        } else {
            if sign != '-' && p.fill {
                p.brackets = false;
            }
            if p.anchor == Anchor::Before && p.before == p.before_sign {
                p.anchor = Anchor::Behind;
            }
            sign == '+' && p.fill && !p.sign
        };
        let mut last_relevant = None;
        if p.fill && p.point {
            last_relevant = last_relevant_digit(number);
            if let Some(last) = &mut last_relevant
                && p.zero_end > spaces
            {
                let zero = (number.len().saturating_sub(1)).min(p.zero_end - spaces);
                *last = zero.max(*last);
            }
        }
        let mut count = (p.before + p.after).saturating_sub(1);
        if !sign_wrote && spaces == 0 {
            count += 1;
        }
        NumProc {
            p,
            number,
            at: 0,
            spaces,
            sign,
            sign_wrote,
            last_relevant,
            count,
            current: 0,
            digit: false,
            out: String::new(),
        }
    }

    fn byte(&self) -> u8 {
        self.number.get(self.at).copied().unwrap_or(0)
    }

    /// The 0 in front of the point, which pictures without 0 leave out.
    fn leading_zero(&self) -> bool {
        !self.p.zero && self.at == 0 && self.byte() == b'0' && self.p.after != 0
    }

    fn ends_with_point(&self) -> bool {
        self.last_relevant
            .is_some_and(|last| self.number.get(last) == Some(&b'.'))
    }

    fn write(mut self) -> Result<String> {
        let p = self.p;
        for item in &p.items {
            let key = match item {
                NumNode::Text(c) => {
                    self.out.push(*c);
                    continue;
                }
                NumNode::Key(key) => *key,
            };
            match key {
                Key::Nine | Key::Zero | Key::Point => self.place(key),
                Key::Comma | Key::Group if self.digit => self.out.push(','),
                Key::Comma | Key::Group if !p.fill => self.out.push(' '),
                Key::Currency => self.out.push(' '),
                Key::Roman(lower) if p.roman => {
                    let text = String::from_utf8_lossy(self.number);
                    let text = match lower {
                        true => text.to_ascii_lowercase(),
                        false => text.into_owned(),
                    };
                    let text = if p.fill { text } else { format!("{text:>15}") };
                    self.out.push_str(&text);
                }
                Key::Ordinal(lower)
                    if !p.roman
                        && self.number.first() != Some(&b'#')
                        && self.sign != '-'
                        && !p.point =>
                {
                    let text = String::from_utf8_lossy(self.number);
                    if !text.ends_with(|c: char| c.is_ascii_digit()) {
                        return Err(SqlError::new(
                            SqlState::INVALID_TEXT_REPRESENTATION,
                            format!("\"{text}\" is not a number"),
                        ));
                    }
                    self.out.push_str(ordinal_suffix(&text, lower));
                }
                Key::Minus if self.sign == '-' => self.out.push('-'),
                Key::Plus if self.sign == '+' => self.out.push('+'),
                Key::Minus | Key::Plus if !p.fill => self.out.push(' '),
                Key::Both => self.out.push(self.sign),
                _ => {}
            }
        }
        // A place behind the last digit that a float has ends the text.
        if let Some(end) = self.out.find('\0') {
            self.out.truncate(end);
        }
        Ok(self.out)
    }

    /// The sign, where digits begin.
    fn lead(&mut self) {
        let p = self.p;
        let begins = self.current >= self.spaces || (p.zero && p.zero_start == self.current);
        if self.sign_wrote || !begins || (self.leading_zero() && !self.ends_with_point()) {
            return;
        }
        if p.sign {
            if p.anchor == Anchor::Before {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
                self.sign_wrote = true;
            }
            return;
        }
        self.sign_wrote = true;
        if p.brackets {
            self.out.push(if self.sign == '+' { ' ' } else { '<' });
        } else if self.sign == '-' {
            self.out.push('-');
        } else if !p.fill {
            self.out.push(' ');
        }
    }

    /// One place of digits, or the point.
    fn place(&mut self, key: Key) {
        let p = self.p;
        if p.roman {
            return;
        }
        self.digit = false;
        self.lead();
        let in_front = self.current < self.spaces;
        if in_front && (!p.zero || p.zero_start > self.current) {
            if !p.fill {
                self.out.push(' ');
            }
        } else if in_front {
            self.out.push('0');
            self.digit = true;
        } else {
            if self.byte() == b'.' {
                self.out.push('.');
            } else if self.last_relevant.is_some_and(|last| self.at > last) && key != Key::Zero {
                // FM leaves it out.
            } else if self.leading_zero() {
                if !p.fill {
                    self.out.push(' ');
                } else if self.ends_with_point() {
                    self.out.push('0');
                }
            } else {
                self.out.push(char::from(self.byte()));
                self.digit = true;
            }
            if self.at < self.number.len() {
                self.at += 1;
            }
        }
        let mut end = self.count + usize::from(self.spaces > 0) + usize::from(p.point);
        if self.last_relevant == Some(self.at) {
            end = self.current;
        }
        if self.current + 1 == end {
            if self.sign_wrote && p.brackets {
                self.out.push(if self.sign == '+' { ' ' } else { '>' });
            } else if p.sign && p.anchor == Anchor::Behind {
                self.out.push(if self.sign == '-' { '-' } else { '+' });
            }
        }
        self.current += 1;
    }
}

/// The last digit behind the point that is not 0, or the point; none without a point.
fn last_relevant_digit(number: &[u8]) -> Option<usize> {
    let point = number.iter().position(|b| *b == b'.')?;
    let behind = number.iter().rposition(|b| *b != b'0');
    Some(behind.map_or(point, |last| last.max(point)))
}

/// A text being read by a picture.
struct NumReader<'a> {
    p: &'a NumDesc,
    text: &'a [u8],
    at: usize,
    sign: Option<u8>,
    digits: String,
    read_before: usize,
    read_after: usize,
    point: bool,
}

impl NumReader<'_> {
    fn byte(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    /// One character forward, whatever its length.
    fn skip(&mut self) {
        self.at += 1;
        while self.byte().is_some_and(|b| b & 0xc0 == 0x80) {
            self.at += 1;
        }
    }

    /// Passes over characters that are no part of a number.
    fn skip_others(&mut self, count: usize) {
        for _ in 0..count {
            match self.byte() {
                Some(b) if !b"0123456789.,+-".contains(&b) => self.skip(),
                _ => return,
            }
        }
    }

    /// Reads one place. The caller goes on to the next character.
    fn place(&mut self, key: Key) {
        let p = self.p;
        if self.byte() == Some(b' ') {
            self.at += 1;
        }
        let Some(mut byte) = self.byte() else { return };
        let none_read = self.read_before + self.read_after == 0;
        if self.sign.is_none() && matches!(key, Key::Nine | Key::Zero) && none_read {
            let sign = match byte {
                b'-' | b'+' => Some(byte),
                b'<' if p.brackets => Some(b'-'),
                _ => None,
            };
            if sign.is_some() {
                self.sign = sign;
                self.at += 1;
            }
        }
        match self.byte() {
            Some(now) => byte = now,
            None => return,
        }
        let mut read = false;
        if byte.is_ascii_digit() {
            if self.point && self.read_after == p.after {
                return;
            }
            self.digits.push(char::from(byte));
            match self.point {
                true => self.read_after += 1,
                false => self.read_before += 1,
            }
            read = true;
        } else if p.point && !self.point && byte == b'.' {
            self.digits.push('.');
            self.point = true;
            read = true;
        }
        if self.sign.is_some() || self.read_before + self.read_after == 0 {
            return;
        }
        // A sign behind the last digit.
        let next = self.text.get(self.at + 1).copied();
        if p.sign && read {
            if let Some(next @ (b'-' | b'+')) = next {
                self.sign = Some(next);
                self.at += 1;
            }
        } else if !read && !p.sign && (p.plus || p.minus) && matches!(byte, b'-' | b'+') {
            self.sign = Some(byte);
        }
    }
}

/// `to_number`
pub(crate) fn to_number(a: &[Datum]) -> Result<Datum> {
    let [Datum::Text(text), Datum::Text(picture)] = a else {
        return Err(bad_args(a));
    };
    if picture.is_empty() {
        return Ok(Datum::Null);
    }
    let p = parse(picture)?;
    let refused = |what: &str| {
        SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("\"{what}\" not supported for input"),
        )
    };
    if p.exponent {
        return Err(refused("EEEE"));
    }
    if p.roman {
        return Err(refused("RN"));
    }
    let mut r = NumReader {
        p: &p,
        text: text.as_bytes(),
        at: 0,
        sign: None,
        digits: String::new(),
        read_before: 0,
        read_after: 0,
        point: false,
    };
    for item in &p.items {
        let Some(byte) = r.byte() else { break };
        let key = match item {
            NumNode::Text(_) => {
                r.skip();
                continue;
            }
            NumNode::Key(key) => *key,
        };
        match key {
            Key::Nine | Key::Zero | Key::Point => {
                r.place(key);
                r.at += 1;
            }
            // Whether digits have come is not known here, and makes no difference but with FM.
            Key::Comma | Key::Group if !p.fill && byte == b',' => r.at += 1,
            Key::Currency => r.skip_others(1),
            Key::Ordinal(_) if !p.point => r.skip_others(2),
            Key::Minus | Key::Both if byte == b'-' => {
                r.sign = Some(b'-');
                r.at += 1;
            }
            Key::Plus | Key::Both if byte == b'+' => {
                r.sign = Some(b'+');
                r.at += 1;
            }
            Key::Minus | Key::Plus | Key::Both => r.skip_others(1),
            _ => {}
        }
    }
    let digits = r.digits.strip_suffix('.').unwrap_or(&r.digits);
    if digits.is_empty() {
        let sign = r.sign.map_or(' ', char::from);
        return Err(SqlError::new(
            SqlState::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type numeric: \"{sign}\""),
        ));
    }
    let mut n = Numeric::parse(digits)?;
    if r.sign == Some(b'-') {
        n = n.neg();
    }
    // The picture says how many digits there are in front of the point, and the text how many behind it.
    let precision = p.before + p.multiply + r.read_after;
    if precision <= 1000 {
        n = n.apply_typmod((((precision as i32) << 16) | r.read_after as i32) + 4)?;
    }
    if p.multiplies {
        let shift = Numeric::from(-i64::try_from(p.multiply).unwrap_or(0));
        n = n.mul(&Numeric::from(10_i32).power(&shift)?)?;
    }
    Ok(Datum::numeric(n))
}
