//! Functions and operators of `bit` and `bit varying`, and their casts from and to integers.

use super::arithmetic::{bad_args, out_of_range};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_sql_types::value::bits::{BITS_MAX, Bits, to_length, to_length_at_most};
use logstead_types::SqlState;

fn one(a: &[Datum]) -> Result<&Bits> {
    match a {
        [Datum::Bits(v), ..] => Ok(v),
        _ => Err(bad_args(a)),
    }
}

fn two(a: &[Datum]) -> Result<(&Bits, &Bits)> {
    match a {
        [Datum::Bits(x), Datum::Bits(y), ..] => Ok((x, y)),
        _ => Err(bad_args(a)),
    }
}

fn int(a: &[Datum], at: usize) -> Result<i32> {
    a.get(at).ok_or_else(|| bad_args(a))?.as_i32()
}

fn count(v: u32) -> Result<Datum> {
    i32::try_from(v)
        .map(Datum::Int4)
        .map_err(|_| out_of_range("integer"))
}

fn combined(x: &Bits, y: &Bits, word: &str, f: fn(u8, u8) -> u8) -> Result<Datum> {
    if x.len() != y.len() {
        return Err(SqlError::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!("cannot {word} bit strings of different sizes"),
        ));
    }
    let pairs = x.bytes().iter().zip(y.bytes());
    let bytes = pairs.map(|(x, y)| f(*x, *y)).collect();
    Ok(Datum::Bits(Bits::new(x.len(), bytes)))
}

/// `&`
pub(super) fn and(a: &[Datum]) -> Result<Datum> {
    two(a).and_then(|(x, y)| combined(x, y, "AND", |x, y| x & y))
}

/// `|`
pub(super) fn or(a: &[Datum]) -> Result<Datum> {
    two(a).and_then(|(x, y)| combined(x, y, "OR", |x, y| x | y))
}

/// `#`
pub(super) fn xor(a: &[Datum]) -> Result<Datum> {
    two(a).and_then(|(x, y)| combined(x, y, "XOR", |x, y| x ^ y))
}

/// `~`
pub(super) fn not(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    let bytes = v.bytes().iter().map(|b| !b).collect();
    Ok(Datum::Bits(Bits::new(v.len(), bytes)))
}

/// The bits moved to the left (to the right if negative), zeros after them; the length stays.
fn shifted(v: &Bits, by: i64) -> Result<Datum> {
    let len = v.len();
    let size = u32::try_from(by.unsigned_abs())
        .unwrap_or(u32::MAX)
        .min(len);
    let zeros = Bits::new(size, Vec::new());
    let moved = match by < 0 {
        true => zeros.concat(&v.slice(0, len - size))?,
        false => v.slice(size, len).concat(&zeros)?,
    };
    Ok(Datum::Bits(moved))
}

/// `<<`
pub(super) fn shift_left(a: &[Datum]) -> Result<Datum> {
    shifted(one(a)?, i64::from(int(a, 1)?))
}

/// `>>`
pub(super) fn shift_right(a: &[Datum]) -> Result<Datum> {
    shifted(one(a)?, -i64::from(int(a, 1)?))
}

/// `||`
pub(super) fn concat(a: &[Datum]) -> Result<Datum> {
    two(a).and_then(|(x, y)| x.concat(y)).map(Datum::Bits)
}

/// `length`, `bit_length`
pub(super) fn length(a: &[Datum]) -> Result<Datum> {
    count(one(a)?.len())
}

/// `octet_length`
pub(super) fn octet_length(a: &[Datum]) -> Result<Datum> {
    count(one(a)?.len().div_ceil(8))
}

/// `bit_count`
pub(super) fn bit_count(a: &[Datum]) -> Result<Datum> {
    let ones = one(a)?.bytes().iter().map(|b| i64::from(b.count_ones()));
    Ok(Datum::Int8(ones.sum()))
}

/// The bits from `from` (the first is 1), `len` of them or all; what lies outside is nothing.
fn part(v: &Bits, from: i64, len: Option<i64>) -> Result<Bits> {
    if len.is_some_and(|len| len < 0) {
        return Err(SqlError::new(
            SqlState::SUBSTRING_ERROR,
            "negative substring length not allowed",
        ));
    }
    let clamp = |at: i64| u32::try_from(at.clamp(0, i64::from(v.len()))).unwrap_or(0);
    let start = clamp(from - 1);
    let end = len.map_or(v.len(), |len| clamp(from - 1 + len)).max(start);
    Ok(v.slice(start, end))
}

/// `substring`
pub(super) fn substring(a: &[Datum]) -> Result<Datum> {
    let len = match a.len() {
        3 => Some(i64::from(int(a, 2)?)),
        _ => None,
    };
    part(one(a)?, i64::from(int(a, 1)?), len).map(Datum::Bits)
}

/// `overlay`
pub(super) fn overlay(a: &[Datum]) -> Result<Datum> {
    let (v, put) = two(a)?;
    let from = int(a, 2)?;
    let len = match a.len() {
        4 => int(a, 3)?,
        _ => i32::try_from(put.len()).map_err(|_| out_of_range("integer"))?,
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
    let head = part(v, 1, Some(i64::from(from) - 1))?;
    let tail = part(v, i64::from(rest), None)?;
    head.concat(put)?.concat(&tail).map(Datum::Bits)
}

/// `position`: the first place of the second in the first
pub(super) fn position(a: &[Datum]) -> Result<Datum> {
    let (v, sought) = two(a)?;
    if sought.len() > v.len() || v.is_empty() {
        return Ok(Datum::Int4(0));
    }
    let starts = 0..=v.len() - sought.len();
    let found = starts
        .into_iter()
        .find(|at| (0..sought.len()).all(|i| v.bit(at + i) == sought.bit(i)));
    count(found.map_or(0, |at| at + 1))
}

fn place(v: &Bits, at: i32) -> Result<u32> {
    let place = u32::try_from(at).ok().filter(|at| *at < v.len());
    place.ok_or_else(|| {
        SqlError::new(
            SqlState::ARRAY_SUBSCRIPT_ERROR,
            format!(
                "bit index {at} out of valid range (0..{})",
                i64::from(v.len()) - 1
            ),
        )
    })
}

/// `get_bit`
pub(super) fn get_bit(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    let at = place(v, int(a, 1)?)?;
    Ok(Datum::Int4(i32::from(v.bit(at))))
}

/// `set_bit`
pub(super) fn set_bit(a: &[Datum]) -> Result<Datum> {
    let v = one(a)?;
    let at = place(v, int(a, 1)?)?;
    let mask = 0x80 >> (at % 8);
    let mut bytes = v.bytes().to_vec();
    let byte = bytes.get_mut((at / 8) as usize);
    let byte = byte.ok_or_else(|| bad_args(a))?;
    match int(a, 2)? {
        0 => *byte &= !mask,
        1 => *byte |= mask,
        _ => {
            return Err(SqlError::new(
                SqlState::INVALID_PARAMETER_VALUE,
                "new bit must be 0 or 1",
            ));
        }
    }
    Ok(Datum::Bits(Bits::new(v.len(), bytes)))
}

/// Integer to `bit(n)`; the second argument is the type's modifier, and without one there is one bit.
pub(super) fn of_integer(a: &[Datum]) -> Result<Datum> {
    let value = a.first().ok_or_else(|| bad_args(a))?.as_integer()?;
    let len = u32::try_from(int(a, 1)?).unwrap_or(0);
    let len = if (1..=BITS_MAX).contains(&len) {
        len
    } else {
        1
    };
    Ok(Datum::Bits(Bits::of_integer(value, len)))
}

/// `bit` to integer
pub(super) fn to_int4(a: &[Datum]) -> Result<Datum> {
    let value = one(a)?.to_integer(32);
    let value = value.and_then(|v| u32::try_from(v).ok());
    value
        .map(|v| Datum::Int4(v as i32))
        .ok_or_else(|| out_of_range("integer"))
}

/// `bit` to bigint
pub(super) fn to_int8(a: &[Datum]) -> Result<Datum> {
    let value = one(a)?.to_integer(64);
    value
        .map(|v| Datum::Int8(v as i64))
        .ok_or_else(|| out_of_range("bigint"))
}

/// The functions `bit` and `varbit` of a string, a length and whether the cast was written: what the modifier does to a
/// value.
pub(super) fn fit(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bits(v), Datum::Int4(len), Datum::Bool(explicit)] = a else {
        return Err(bad_args(a));
    };
    to_length(v, *len, *explicit)
}

/// `varbit(varbit, integer, boolean)`
pub(super) fn fit_varying(a: &[Datum]) -> Result<Datum> {
    let [Datum::Bits(v), Datum::Int4(len), Datum::Bool(explicit)] = a else {
        return Err(bad_args(a));
    };
    to_length_at_most(v, *len, *explicit)
}
