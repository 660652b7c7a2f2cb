//! Bits of a `bytea`, parts of it replaced, LIKE over bytes.

use super::arithmetic::{bad_args, out_of_range};
use super::like::{escape_at_end, escape_too_long};
use super::strings::invalid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::memory::STRIDE_BYTES;
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;

fn one(a: &[Datum]) -> Result<&[u8]> {
    match a {
        [Datum::Bytea(b), ..] => Ok(b),
        _ => Err(bad_args(a)),
    }
}

fn two(a: &[Datum]) -> Result<(&[u8], &[u8])> {
    match a {
        [Datum::Bytea(x), Datum::Bytea(y), ..] => Ok((x, y)),
        _ => Err(bad_args(a)),
    }
}

fn bytea(v: Vec<u8>) -> Result<Datum> {
    Ok(Datum::Bytea(v.into()))
}

/// The byte and the mask of a bit; the lowest bit of a byte comes first.
fn bit_at(bytes: &[u8], at: i64) -> Result<(usize, u8)> {
    let byte = usize::try_from(at / 8).ok().filter(|_| at >= 0);
    byte.filter(|byte| *byte < bytes.len())
        .map(|byte| (byte, 1 << (at % 8)))
        .ok_or_else(|| {
            let last = bytes.len() as i64 * 8 - 1;
            SqlError::new(
                SqlState::ARRAY_SUBSCRIPT_ERROR,
                format!("index {at} out of valid range, 0..{last}"),
            )
        })
}

/// `get_bit`
pub(super) fn get_bit(a: &[Datum]) -> Result<Datum> {
    let (bytes, [_, Datum::Int8(at)]) = (one(a)?, a) else {
        return Err(bad_args(a));
    };
    let (byte, mask) = bit_at(bytes, *at)?;
    let set = bytes.get(byte).is_some_and(|b| b & mask != 0);
    Ok(Datum::Int4(i32::from(set)))
}

/// `set_bit`
pub(super) fn set_bit(a: &[Datum]) -> Result<Datum> {
    let (bytes, [_, Datum::Int8(at), Datum::Int4(bit)]) = (one(a)?, a) else {
        return Err(bad_args(a));
    };
    let (byte, mask) = bit_at(bytes, *at)?;
    if !(0..=1).contains(bit) {
        return Err(invalid("new bit must be 0 or 1"));
    }
    let mut out = bytes.to_vec();
    if let Some(b) = out.get_mut(byte) {
        *b = if *bit == 1 { *b | mask } else { *b & !mask };
    }
    bytea(out)
}

/// `bit_count`
pub(super) fn bit_count(a: &[Datum]) -> Result<Datum> {
    let ones = one(a)?.iter().map(|b| i64::from(b.count_ones()));
    Ok(Datum::Int8(ones.sum()))
}

/// `overlay`
pub(super) fn overlay(a: &[Datum]) -> Result<Datum> {
    let (bytes, put) = two(a)?;
    let from = a.get(2).ok_or_else(|| bad_args(a))?.as_i32()?;
    let len = match a.get(3) {
        Some(len) => len.as_i32()?,
        None => i32::try_from(put.len()).map_err(|_| out_of_range("integer"))?,
    };
    if from <= 0 {
        return Err(SqlError::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let rest = from
        .checked_add(len)
        .ok_or_else(|| out_of_range("integer"))?;
    let clamp = |at: i32| usize::try_from(at - 1).unwrap_or(0).min(bytes.len());
    let mut out = bytes[..clamp(from)].to_vec();
    out.extend_from_slice(put);
    out.extend_from_slice(&bytes[clamp(rest.max(1))..]);
    bytea(out)
}

/// True if bytes match a pattern of bytes (`%`, `_`, escape `\`).
fn like_bytes(t: &[u8], p: &[u8]) -> Result<bool> {
    let (mut ti, mut pi) = (0, 0);
    // Behind the last %, and the next byte to try it at.
    let mut resume: Option<(usize, usize)> = None;
    let mut steps = 0_usize;
    while ti < t.len() {
        steps += 1;
        if steps.is_multiple_of(STRIDE_BYTES) {
            check_for_interrupts()?;
        }
        let step = match p.get(pi) {
            Some(b'%') => {
                pi += 1;
                resume = Some((pi, ti));
                continue;
            }
            Some(b'_') => 1,
            Some(b'\\') => match p.get(pi + 1) {
                None => return Err(escape_at_end()),
                Some(c) => 2 * usize::from(t.get(ti) == Some(c)),
            },
            other => usize::from(other.is_some() && t.get(ti) == other),
        };
        if step > 0 {
            (ti, pi) = (ti + 1, pi + step);
            continue;
        }
        match resume {
            Some((at, from)) => {
                resume = Some((at, from + 1));
                (pi, ti) = (at, from + 1);
            }
            None => return Ok(false),
        }
    }
    Ok(p.get(pi..).unwrap_or_default().iter().all(|c| *c == b'%'))
}

/// `~~`
pub(super) fn like(a: &[Datum]) -> Result<Datum> {
    let (t, p) = two(a)?;
    like_bytes(t, p).map(Datum::Bool)
}

/// `!~~`
pub(super) fn not_like(a: &[Datum]) -> Result<Datum> {
    let (t, p) = two(a)?;
    like_bytes(t, p).map(|m| Datum::Bool(!m))
}

/// Rewrites a pattern with its own escape byte to one with a backslash.
pub(super) fn like_escape(a: &[Datum]) -> Result<Datum> {
    let (pattern, escape) = two(a)?;
    if escape.len() > 1 {
        return Err(escape_too_long());
    }
    let own = escape.first();
    let mut out = Vec::with_capacity(pattern.len() + 4);
    let mut after = false;
    for c in pattern {
        if Some(c) == own && !after {
            out.push(b'\\');
            after = true;
            continue;
        }
        if *c == b'\\' && !after {
            out.push(b'\\');
        }
        out.push(*c);
        after = false;
    }
    bytea(out)
}
