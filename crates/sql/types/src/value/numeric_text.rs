//! NUMERIC as text, and to and from floats, which PostgreSQL converts through text.

use super::{DIGITS_MAX, Numeric, SCALE_MAX, digits_i128, div_round, overflow, pow10};
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use logstead_types::SqlState;
use num_bigint::{BigInt, Sign};

/// A number of more digits takes some hundredths of a millisecond to read.
const LONG_DIGITS: i64 = 4096;

impl Numeric {
    /// Parses PostgreSQL's input syntax (surrounding blanks allowed).
    pub fn parse(text: &str) -> Result<Numeric> {
        let syntax = || {
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("invalid input syntax for type numeric: \"{text}\""),
            )
        };
        let t = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\u{b}');
        let b = t.as_bytes();
        let (neg, body) = match b.first() {
            Some(b'-') => (true, &b[1..]),
            Some(b'+') => (false, &b[1..]),
            Some(_) => (false, b),
            None => return Err(syntax()),
        };
        if body.first().is_some_and(u8::is_ascii_alphabetic) {
            if t.eq_ignore_ascii_case("nan") {
                return Ok(Numeric::NaN);
            }
            if body.eq_ignore_ascii_case(b"infinity") || body.eq_ignore_ascii_case(b"inf") {
                return Ok(Self::infinity(if neg { -1 } else { 1 }));
            }
            return Err(syntax());
        }
        let mut i = 0;
        let mut m: i128 = 0;
        let mut big: Option<Vec<u8>> = None;
        let mut count = 0usize;
        let mut scale: i64 = 0;
        let mut point = false;
        while let Some(&c) = body.get(i) {
            match c {
                b'0'..=b'9' => {
                    count += 1;
                    if point {
                        scale += 1;
                    }
                    let d = c - b'0';
                    match &mut big {
                        Some(v) => v.push(c),
                        None => {
                            match m.checked_mul(10).and_then(|x| x.checked_add(i128::from(d))) {
                                Some(x) => m = x,
                                None => {
                                    let mut v = m.to_string().into_bytes();
                                    v.push(c);
                                    big = Some(v);
                                }
                            }
                        }
                    }
                }
                b'.' if !point => point = true,
                _ => break,
            }
            i += 1;
        }
        if count == 0 {
            return Err(syntax());
        }
        if matches!(body.get(i), Some(b'e' | b'E')) {
            let tail = std::str::from_utf8(&body[i + 1..]).map_err(|_| syntax())?;
            let digits = tail.strip_prefix(['+', '-']).unwrap_or(tail);
            if digits.is_empty() || !digits.bytes().all(|c| c.is_ascii_digit()) {
                return Err(syntax());
            }
            let e: i64 = tail.parse().map_err(|_| overflow())?;
            if !(-1_000_000_000..=1_000_000_000).contains(&e) {
                return Err(overflow());
            }
            scale -= e;
            i = body.len();
        }
        if i != body.len() {
            return Err(syntax());
        }
        if big.is_none() && m == 0 {
            return Ok(Numeric::new(0, scale.clamp(0, i64::from(SCALE_MAX)) as u16));
        }
        let digits = big.as_ref().map_or(digits_i128(m), |v| v.len() as i64);
        if digits - scale > DIGITS_MAX {
            return Err(overflow());
        }
        if digits.max(-scale) > LONG_DIGITS {
            // As many take long to read, and a document holds many such numbers.
            check_for_interrupts()?;
        }
        let n = match big {
            None if (0..=i64::from(SCALE_MAX)).contains(&scale) => {
                return Ok(Numeric::new(if neg { -m } else { m }, scale as u16));
            }
            None => BigInt::from(m),
            Some(v) => BigInt::parse_bytes(&v, 10).ok_or_else(syntax)?,
        };
        let n = if neg { -n } else { n };
        if scale < 0 {
            return Numeric::from_big(n * pow10((-scale) as u32), 0).checked();
        }
        if scale > i64::from(SCALE_MAX) {
            let drop = scale - i64::from(SCALE_MAX);
            if drop > digits + 1 {
                return Ok(Numeric::new(0, SCALE_MAX as u16));
            }
            return Ok(Numeric::from_big(
                div_round(&n, &pow10(drop as u32)),
                SCALE_MAX,
            ));
        }
        Numeric::from_big(n, scale as u32).checked()
    }

    /// Appends the text form.
    pub fn write(&self, out: &mut Vec<u8>) {
        match self {
            Numeric::NaN => out.extend_from_slice(b"NaN"),
            Numeric::Infinity => out.extend_from_slice(b"Infinity"),
            Numeric::NegInfinity => out.extend_from_slice(b"-Infinity"),
            Numeric::Small { mantissa, scale } => {
                let mut buf = [0u8; 40];
                let mut i = buf.len();
                let mantissa = mantissa.get();
                let mut u = mantissa.unsigned_abs();
                while u > u128::from(u64::MAX) {
                    i -= 1;
                    buf[i] = b'0' + (u % 10) as u8;
                    u /= 10;
                }
                let mut u = u as u64;
                while u > 0 {
                    i -= 1;
                    buf[i] = b'0' + (u % 10) as u8;
                    u /= 10;
                }
                write_digits(mantissa < 0, &buf[i..], usize::from(*scale), out);
            }
            Numeric::Big { mantissa, scale } => {
                let text = mantissa.magnitude().to_string();
                write_digits(
                    mantissa.sign() == Sign::Minus,
                    text.as_bytes(),
                    usize::from(*scale),
                    out,
                );
            }
        }
    }

    /// Digits without sign, without trailing zeros, and the decimal exponent of the first; empty for zero.
    pub(in crate::value) fn digits(&self) -> (Vec<u8>, i64) {
        let mut v = match self {
            Numeric::Small { mantissa, .. } if mantissa.get() == 0 => Vec::new(),
            Numeric::Small { mantissa, .. } => {
                mantissa.get().unsigned_abs().to_string().into_bytes()
            }
            Numeric::Big { mantissa, .. } => mantissa.magnitude().to_string().into_bytes(),
            _ => Vec::new(),
        };
        let e = v.len() as i64 - 1 - i64::from(self.scale().unwrap_or(0));
        while v.last() == Some(&b'0') {
            v.pop();
        }
        (v, e)
    }

    /// From a double, at 15 significant digits as PostgreSQL's cast.
    pub fn from_f64(v: f64) -> Numeric {
        Self::from_float(v, 15)
    }

    /// From a real, at 6 significant digits.
    pub fn from_f32(v: f32) -> Numeric {
        Self::from_float(f64::from(v), 6)
    }

    fn from_float(v: f64, digits: usize) -> Numeric {
        if v.is_nan() {
            return Numeric::NaN;
        }
        if v.is_infinite() {
            return Self::infinity(if v < 0.0 { -1 } else { 1 });
        }
        let s = format!("{:.*e}", digits - 1, v);
        let (m, e) = s.split_once('e').unwrap_or((&s, "0"));
        let m = if m.contains('.') {
            m.trim_end_matches('0').trim_end_matches('.')
        } else {
            m
        };
        Numeric::parse(&format!("{m}e{e}")).unwrap_or(Numeric::NaN)
    }
}

fn write_digits(neg: bool, digits: &[u8], scale: usize, out: &mut Vec<u8>) {
    if neg {
        out.push(b'-');
    }
    if digits.len() > scale {
        let (whole, frac) = digits.split_at(digits.len() - scale);
        out.extend_from_slice(whole);
        if scale > 0 {
            out.push(b'.');
            out.extend_from_slice(frac);
        }
    } else {
        out.push(b'0');
        if scale > 0 {
            out.push(b'.');
            out.resize(out.len() + scale - digits.len(), b'0');
            out.extend_from_slice(digits);
        }
    }
}

impl std::fmt::Display for Numeric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut out = Vec::with_capacity(24);
        self.write(&mut out);
        f.write_str(&String::from_utf8_lossy(&out))
    }
}
