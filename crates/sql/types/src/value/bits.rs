//! Values of `bit` and `bit varying`: strings of bits of any length.
//!
//! Invariant: the bits of the last byte behind the end are 0.

use super::Datum;
use crate::error::{Result, SqlError};
use crate::interrupt::check_for_interrupts;
use crate::memory;
use crate::memory::STRIDE_BYTES;
use logstead_types::SqlState;
use std::cmp::Ordering;
use std::sync::Arc;

/// The most bits that a string may have.
pub const BITS_MAX: u32 = 2_147_483_640;

/// A string of bits, the first in the highest bit of the first byte. One pointer, to keep values small.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    /// How many bits of the last byte are none (0 to 7), then the bytes.
    held: Arc<[u8]>,
}

/// The string would be too long.
pub fn too_long() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        format!("bit string length exceeds the maximum allowed ({BITS_MAX})"),
    )
}

/// Bytes that so many bits take.
pub fn bytes_of(len: u32) -> usize {
    len.div_ceil(8) as usize
}

impl Bits {
    /// A string of the first `len` bits of `bytes`, which has zeros behind its end if it is too short.
    pub fn new(len: u32, mut bytes: Vec<u8>) -> Bits {
        bytes.resize(bytes_of(len), 0);
        if let (Some(last), rest @ 1..) = (bytes.last_mut(), len % 8) {
            *last &= 0xff << (8 - rest);
        }
        let unused = (8 - len % 8) % 8;
        bytes.insert(0, unused as u8);
        Bits { held: bytes.into() }
    }

    /// How many bits.
    pub fn len(&self) -> u32 {
        let unused = self.held.first().copied().unwrap_or(0);
        // No longer than BITS_MAX.
        (self.bytes().len() as u32 * 8).saturating_sub(u32::from(unused))
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.bytes().is_empty()
    }

    /// What it is held in, for what asks how long it lives.
    pub(super) fn shared(&self) -> &Arc<[u8]> {
        &self.held
    }

    /// The bytes; what is behind the end is 0.
    pub fn bytes(&self) -> &[u8] {
        self.held.get(1..).unwrap_or_default()
    }

    /// A bit by its place; false behind the end.
    pub fn bit(&self, at: u32) -> bool {
        let byte = self.bytes().get((at / 8) as usize).copied().unwrap_or(0);
        byte & (0x80 >> (at % 8)) != 0
    }

    /// The bits from `start` up to `end`, which lie inside.
    pub fn slice(&self, start: u32, end: u32) -> Bits {
        let shift = start % 8;
        let from = &self.bytes()[((start / 8) as usize).min(self.bytes().len())..];
        let len = end.saturating_sub(start);
        let bytes = (0..bytes_of(len)).map(|i| {
            let high = from.get(i).copied().unwrap_or(0);
            let low = from.get(i + 1).copied().unwrap_or(0);
            (u16::from_be_bytes([high, low]) << shift).to_be_bytes()[0]
        });
        Bits::new(len, bytes.collect())
    }

    /// This string, then the other.
    pub fn concat(&self, other: &Bits) -> Result<Bits> {
        let len = self
            .len()
            .checked_add(other.len())
            .filter(|n| *n <= BITS_MAX);
        let len = len.ok_or_else(too_long)?;
        let mut bytes = self.bytes().to_vec();
        let shift = self.len() % 8;
        if shift == 0 {
            bytes.extend_from_slice(other.bytes());
        } else {
            for byte in other.bytes() {
                if let Some(last) = bytes.last_mut() {
                    *last |= byte >> shift;
                }
                bytes.push(byte << (8 - shift));
            }
        }
        Ok(Bits::new(len, bytes))
    }

    /// PostgreSQL's order: by the bits, a prefix before what it begins.
    pub fn compare(&self, other: &Bits) -> Ordering {
        let common = self.bytes().len().min(other.bytes().len());
        self.bytes()[..common]
            .cmp(&other.bytes()[..common])
            .then_with(|| self.len().cmp(&other.len()))
    }

    /// Appends zeros and ones.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        memory::ready(out, self.len() as usize)?;
        let mut from = 0;
        loop {
            let to = self.len().min(from + STRIDE_BYTES as u32);
            out.extend((from..to).map(|at| b'0' + u8::from(self.bit(at))));
            if to == self.len() {
                return Ok(());
            }
            from = to;
            check_for_interrupts()?;
        }
    }

    /// Reads zeros and ones, with a `b` before them or not, or hexadecimal digits behind an `x`.
    pub fn parse(text: &str) -> Result<Bits> {
        let (digits, hexadecimal) = match text.as_bytes() {
            [b'x' | b'X', ..] => (&text[1..], true),
            [b'b' | b'B', ..] => (&text[1..], false),
            _ => (text, false),
        };
        let bad = |c: char| {
            let kind = if hexadecimal { "hexadecimal" } else { "binary" };
            SqlError::new(
                SqlState::INVALID_TEXT_REPRESENTATION,
                format!("\"{c}\" is not a valid {kind} digit"),
            )
        };
        let count = u32::try_from(digits.len()).map_err(|_| too_long())?;
        if hexadecimal {
            if count > BITS_MAX / 4 {
                return Err(too_long());
            }
            let value = |c: char| c.to_digit(16).ok_or_else(|| bad(c));
            let values = digits.chars().map(value).collect::<Result<Vec<u32>>>()?;
            let pairs = values.chunks(2).map(|pair| {
                let low = pair.get(1).copied().unwrap_or(0);
                (pair[0] << 4 | low) as u8
            });
            return Ok(Bits::new(count * 4, pairs.collect()));
        }
        if count > BITS_MAX {
            return Err(too_long());
        }
        let mut bytes = vec![0; bytes_of(count)];
        for (at, c) in digits.chars().enumerate() {
            if at % STRIDE_BYTES == STRIDE_BYTES - 1 {
                check_for_interrupts()?;
            }
            match c {
                '0' => {}
                '1' => bytes[at / 8] |= 0x80 >> (at % 8),
                _ => return Err(bad(c)),
            }
        }
        Ok(Bits::new(count, bytes))
    }

    /// An integer's lowest `len` bits; what is beyond its own is its sign.
    pub fn of_integer(value: i64, len: u32) -> Bits {
        let mut bytes: Vec<u8> = vec![if value < 0 { 0xff } else { 0 }; bytes_of(len)];
        // Right aligned: the bits behind the last one push the number up.
        let wide = i128::from(value) << (bytes.len() as u32 * 8 - len);
        for (byte, piece) in bytes.iter_mut().rev().zip(wide.to_le_bytes()) {
            *byte = piece;
        }
        Bits::new(len, bytes)
    }

    /// The number that at most `width` bits are; `None` if there are more.
    pub fn to_integer(&self, width: u32) -> Option<u64> {
        if self.len() > width.min(64) {
            return None;
        }
        let value = |value: u128, byte: &u8| value << 8 | u128::from(*byte);
        let whole = self.bytes().iter().fold(0, value);
        u64::try_from(whole >> (self.bytes().len() as u32 * 8 - self.len())).ok()
    }
}

/// A value of `bit(len)`: a written cast cuts or fills with zeros, an assignment refuses other lengths.
pub fn to_length(v: &Bits, len: i32, explicit: bool) -> Result<Datum> {
    let wanted = match u32::try_from(len) {
        Ok(wanted @ 1..=BITS_MAX) if wanted != v.len() => wanted,
        _ => return Ok(Datum::Bits(v.clone())),
    };
    if !explicit {
        return Err(SqlError::new(
            SqlState::STRING_DATA_LENGTH_MISMATCH,
            format!(
                "bit string length {} does not match type bit({wanted})",
                v.len()
            ),
        ));
    }
    Ok(Datum::Bits(Bits::new(wanted, v.bytes().to_vec())))
}

/// A value of `bit varying(len)`: a written cast cuts, an assignment refuses longer ones.
pub fn to_length_at_most(v: &Bits, len: i32, explicit: bool) -> Result<Datum> {
    let most = match u32::try_from(len) {
        Ok(most @ 1..) if most < v.len() => most,
        _ => return Ok(Datum::Bits(v.clone())),
    };
    if !explicit {
        return Err(SqlError::new(
            SqlState::STRING_DATA_RIGHT_TRUNCATION,
            format!("bit string too long for type bit varying({most})"),
        ));
    }
    Ok(Datum::Bits(Bits::new(most, v.bytes().to_vec())))
}
