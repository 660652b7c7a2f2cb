//! Values of `tid`: a block and the place of a row in it, as one number that has their order.
//!
//! A table has no blocks here: those of its `ctid` are chunks of 64 rows, by the rows' numbers.

use super::Datum;
use super::text_io::{invalid_syntax, trim, write_int};
use crate::error::Result;

/// Bits of the place in a block.
const OFFSET_BITS: u32 = 16;
/// Rows of a block: those that leave memory together.
const BLOCK_ROWS: i64 = 64;

fn of_parts(block: i64, offset: i64) -> Datum {
    Datum::Int8(block << OFFSET_BITS | offset)
}

fn parts(value: i64) -> (i64, i64) {
    (value >> OFFSET_BITS, value & ((1 << OFFSET_BITS) - 1))
}

/// Of the row with this number. Places are counted from 1.
pub fn of_rid(rid: i64) -> Datum {
    of_parts(rid / BLOCK_ROWS, rid % BLOCK_ROWS + 1)
}

/// Reads `(block,offset)`.
pub(super) fn parse(text: &str) -> Result<Datum> {
    let failed = || invalid_syntax("tid", text);
    let inner = trim(text).strip_prefix('(').ok_or_else(failed)?;
    let inner = inner.strip_suffix(')').ok_or_else(failed)?;
    let (block, offset) = inner.split_once(',').ok_or_else(failed)?;
    // Blocks count without a sign, and may be written with one.
    let block: i64 = block.trim_start().parse().map_err(|_| failed())?;
    let block = u32::try_from(block)
        .or_else(|_| i32::try_from(block).map(|block| block as u32))
        .map_err(|_| failed())?;
    let offset: u16 = offset.trim_start().parse().map_err(|_| failed())?;
    Ok(of_parts(i64::from(block), i64::from(offset)))
}

/// Appends the text.
pub(super) fn write(value: i64, out: &mut Vec<u8>) {
    let (block, offset) = parts(value);
    out.push(b'(');
    write_int(block, out);
    out.push(b',');
    write_int(offset, out);
    out.push(b')');
}

/// Reads the binary form.
pub(super) fn receive(bytes: [u8; 6]) -> Datum {
    let [a, b, c, d, e, f] = bytes;
    let (block, offset) = (u32::from_be_bytes([a, b, c, d]), u16::from_be_bytes([e, f]));
    of_parts(i64::from(block), i64::from(offset))
}

/// Appends the binary form.
pub(super) fn send(value: i64, out: &mut Vec<u8>) {
    let (block, offset) = parts(value);
    // What does not fit is beyond what a client of PostgreSQL can have.
    out.extend_from_slice(&(block as u32).to_be_bytes());
    out.extend_from_slice(&(offset as u16).to_be_bytes());
}
