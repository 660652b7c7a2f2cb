//! Floating-point numbers as text.
//!
//! Owns: reading of `real` and `double precision`, and the shortest text that reads back the same, as PostgreSQL
//! writes it.

use super::text_io::{invalid_syntax, trim, write_int};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

pub(super) fn float(text: &str, name: &str) -> Result<f64> {
    let t = trim(text);
    let bad = || invalid_syntax(name, text);
    let body = t.strip_prefix(['+', '-']).unwrap_or(t);
    let neg = t.starts_with('-');
    if body.eq_ignore_ascii_case("nan") {
        return Ok(f64::NAN);
    }
    if body.eq_ignore_ascii_case("infinity") || body.eq_ignore_ascii_case("inf") {
        return Ok(if neg {
            f64::NEG_INFINITY
        } else {
            f64::INFINITY
        });
    }
    // Rust would also take words that PostgreSQL does not.
    if body.is_empty()
        || !body
            .bytes()
            .all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'))
    {
        return Err(bad());
    }
    let v: f64 = t.parse().map_err(|_| bad())?;
    let nonzero = body
        .bytes()
        .take_while(|b| !matches!(b, b'e' | b'E'))
        .any(|b| matches!(b, b'1'..=b'9'));
    if v.is_infinite() || (v == 0.0 && nonzero) {
        let message = format!("\"{}\" is out of range for type {name}", t);
        return Err(SqlError::new(SqlState::NUMERIC_VALUE_OUT_OF_RANGE, message));
    }
    Ok(v)
}

/// Appends digits and exponent as C's %g would, given the shortest or rounded digits in scientific form. `limit` is the
/// exponent from which scientific notation is used.
fn write_scientific(s: &str, limit: i32, out: &mut Vec<u8>) {
    let (neg, body) = s.strip_prefix('-').map_or((false, s), |b| (true, b));
    let (mantissa, e) = body.split_once('e').unwrap_or((body, "0"));
    let e: i32 = e.parse().unwrap_or(0);
    let mut digits: Vec<u8> = mantissa.bytes().filter(|b| *b != b'.').collect();
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    if neg {
        out.push(b'-');
    }
    if e < -4 || e >= limit {
        out.push(digits[0]);
        if digits.len() > 1 {
            out.push(b'.');
            out.extend_from_slice(&digits[1..]);
        }
        out.push(b'e');
        out.push(if e < 0 { b'-' } else { b'+' });
        let a = e.unsigned_abs();
        if a < 10 {
            out.push(b'0');
        }
        write_int(i64::from(a), out);
    } else if e < 0 {
        out.extend_from_slice(b"0.");
        out.resize(out.len() + (-e - 1) as usize, b'0');
        out.extend_from_slice(&digits);
    } else {
        let whole = e as usize + 1;
        for i in 0..whole {
            out.push(digits.get(i).copied().unwrap_or(b'0'));
        }
        if digits.len() > whole {
            out.push(b'.');
            out.extend_from_slice(&digits[whole..]);
        }
    }
}

fn special_float(v: f64, out: &mut Vec<u8>) -> bool {
    if v.is_nan() {
        out.extend_from_slice(b"NaN");
    } else if v.is_infinite() {
        out.extend_from_slice(if v < 0.0 { b"-Infinity" } else { b"Infinity" });
    } else {
        return false;
    }
    true
}

/// Whether a decimal lies exactly between two neighbouring floats with so many bits. Reading it back gives the even
/// one, but PostgreSQL does
/// not rely on that and writes more digits.
fn is_midway(text: &str, bits: u32) -> bool {
    let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let fraction = mantissa
        .split_once('.')
        .map_or("", |(_, fraction)| fraction);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let (Ok(digits), Ok(exponent)) = (digits.parse::<u128>(), exponent.parse::<i32>()) else {
        return false;
    };
    let tens = exponent - fraction.len() as i32;
    let Some(fives) = 5_u128.checked_pow(tens.unsigned_abs()) else {
        // Not a number with few bits.
        return false;
    };
    let odd = match tens >= 0 {
        true => digits.checked_mul(fives),
        false => (digits % fives == 0).then(|| digits / fives),
    };
    odd.is_some_and(|n| n != 0 && (n >> n.trailing_zeros()).ilog2() == bits)
}

/// The first of some texts of growing length that reads back and lies between no two floats.
fn exact(
    texts: impl Iterator<Item = String>,
    reads_back: impl Fn(&str) -> bool,
    bits: u32,
) -> Option<String> {
    let mut texts = texts;
    texts.find(|text| reads_back(text) && !is_midway(text, bits))
}

/// Appends a double.
pub(super) fn write_f64(v: f64, extra: i32, out: &mut Vec<u8>) {
    if special_float(v, out) {
        return;
    }
    if extra > 0 {
        let mut text = format!("{v:e}");
        if is_midway(&text, f64::MANTISSA_DIGITS) {
            let longer = (1..17).map(|digits| format!("{v:.digits$e}"));
            text = exact(longer, |t| t.parse() == Ok(v), f64::MANTISSA_DIGITS).unwrap_or(text);
        }
        write_scientific(&text, 15, out);
    } else {
        let digits = (15 + extra).max(1);
        write_scientific(&format!("{:.*e}", digits as usize - 1, v), digits, out);
    }
}

/// Appends a real.
pub(super) fn write_f32(v: f32, extra: i32, out: &mut Vec<u8>) {
    if special_float(f64::from(v), out) {
        return;
    }
    if extra > 0 {
        let mut text = format!("{v:e}");
        if is_midway(&text, f32::MANTISSA_DIGITS) {
            let longer = (1..9).map(|digits| format!("{v:.digits$e}"));
            text = exact(longer, |t| t.parse() == Ok(v), f32::MANTISSA_DIGITS).unwrap_or(text);
        }
        write_scientific(&text, 6, out);
    } else {
        let digits = (6 + extra).max(1);
        write_scientific(&format!("{:.*e}", digits as usize - 1, v), digits, out);
    }
}
