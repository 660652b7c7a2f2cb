//! Text of `money`, as in the C locale: `$1,234.56`.

use super::text_io::{invalid_syntax, is_space};
use crate::error::{Result, SqlError};
use logstead_types::SqlState;

/// Digits behind the point.
const FRACTION: u32 = 2;

/// Reads an amount: hundredths. A sign may stand before or behind it, or brackets around it; separators of thousands
/// may stand anywhere.
pub fn parse(text: &str) -> Result<i64> {
    let range = || {
        SqlError::new(
            SqlState::NUMERIC_VALUE_OUT_OF_RANGE,
            format!("value \"{text}\" is out of range for type money"),
        )
    };
    let mut rest = text.as_bytes();
    let mut negative = false;
    skip_symbol(&mut rest);
    match rest.first() {
        Some(b'-' | b'(') => {
            negative = true;
            rest = &rest[1..];
        }
        Some(b'+') => rest = &rest[1..],
        _ => {}
    }
    skip_symbol(&mut rest);
    // Built below zero, where there is one number more.
    let mut value: i64 = 0;
    let mut decimals = None;
    while let [c, tail @ ..] = rest {
        match (c, decimals) {
            (b'0'..=b'9', None | Some(0..FRACTION)) => {
                let digit = i64::from(c - b'0');
                value = value
                    .checked_mul(10)
                    .and_then(|v| v.checked_sub(digit))
                    .ok_or_else(range)?;
                decimals = decimals.map(|n: u32| n + 1);
            }
            (b'.', None) => decimals = Some(0),
            (b',', _) => {}
            _ => break,
        }
        rest = tail;
    }
    if let Some(b'5'..=b'9') = rest.first() {
        value = value.checked_sub(1).ok_or_else(range)?;
    }
    for _ in decimals.unwrap_or(0)..FRACTION {
        value = value.checked_mul(10).ok_or_else(range)?;
    }
    while let Some((b'0'..=b'9', tail)) = rest.split_first() {
        rest = tail;
    }
    for c in rest {
        match c {
            b')' | b'+' | b'$' => {}
            b'-' => negative = true,
            c if is_space(*c) => {}
            _ => return Err(invalid_syntax("money", text)),
        }
    }
    if negative {
        return Ok(value);
    }
    value.checked_neg().ok_or_else(range)
}

/// Blanks, a sign of the currency, blanks.
fn skip_symbol(rest: &mut &[u8]) {
    let blanks = |rest: &mut &[u8]| {
        while let Some((_, tail)) = rest.split_first().filter(|(c, _)| is_space(**c)) {
            *rest = tail;
        }
    };
    blanks(rest);
    if let Some(tail) = rest.strip_prefix(b"$") {
        *rest = tail;
    }
    blanks(rest);
}

/// Appends an amount.
pub fn write(v: i64, out: &mut Vec<u8>) {
    let size = v.unsigned_abs();
    if v < 0 {
        out.push(b'-');
    }
    out.push(b'$');
    let units = (size / 100).to_string();
    for (i, digit) in units.bytes().enumerate() {
        if i > 0 && (units.len() - i).is_multiple_of(3) {
            out.push(b',');
        }
        out.push(digit);
    }
    out.extend_from_slice(format!(".{:02}", size % 100).as_bytes());
}
