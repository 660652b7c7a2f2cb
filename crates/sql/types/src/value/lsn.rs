//! `pg_lsn`: a place in a log, a number of 64 bits that is written as its two halves, `16/B374D848`.

use super::text_io::invalid_syntax;
use crate::error::Result;

/// Reads a place: up to eight hexadecimal digits for each half.
pub fn parse(text: &str) -> Result<u64> {
    let half = |digits: &str| {
        let length = 1..=8;
        let plain = digits.bytes().all(|c| c.is_ascii_hexdigit());
        match length.contains(&digits.len()) && plain {
            true => u64::from_str_radix(digits, 16).ok(),
            false => None,
        }
    };
    text.split_once('/')
        .and_then(|(high, low)| Some(half(high)? << 32 | half(low)?))
        .ok_or_else(|| invalid_syntax("pg_lsn", text))
}

/// Appends a place.
pub fn write(v: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("{:X}/{:X}", v >> 32, v & 0xffff_ffff).as_bytes());
}
