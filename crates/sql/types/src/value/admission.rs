//! Texts that are read as values: what that will take is charged before.
//!
//! Owns: an upper bound, from a text and its type alone, of what reading it allocates without asking.

use super::types::{SqlType, oid};
use super::{info, user};
use crate::error::Result;
use crate::interrupt::check_for_interrupts;
use crate::memory::{MemoryReservation, SMALL_BYTES};

/// What a node of a JSON tree takes while it is read or changed: vectors of them are enlarged by copying.
pub const NODE_BYTES: usize = 170;
/// What a part of an array, an hstore or a tsvector takes while its text is read.
const PART_BYTES: usize = 200;

/// What the tree of a JSON text takes at most: a node for each of the characters that begin one or part two.
pub fn json_text_bytes(text: &str) -> usize {
    if text.len() < SMALL_BYTES / 4 {
        return 0;
    }
    (count_of(text, b"[{,:") + 1) * NODE_BYTES + 2 * text.len()
}

/// How often a text has any of these characters.
fn count_of(text: &str, marks: &[u8]) -> usize {
    let bytes = text.as_bytes().chunks(1 << 16);
    bytes
        .map(|part| part.iter().filter(|b| marks.contains(b)).count())
        .sum()
}

/// Charges what reading a value from its text takes.
#[inline]
pub fn admit_input(ty: SqlType, text: &str) -> Result<MemoryReservation> {
    match text.len() < SMALL_BYTES / 4 {
        true => Ok(MemoryReservation::default()),
        false => admit_long_input(ty, text),
    }
}

#[cold]
#[inline(never)]
fn admit_long_input(ty: SqlType, text: &str) -> Result<MemoryReservation> {
    check_for_interrupts()?;
    MemoryReservation::of(match ty.oid {
        oid::JSON | oid::JSONB | oid::JSONPATH => json_text_bytes(text),
        // Hexadecimal digits become numbers first.
        oid::BIT | oid::VARBIT if text.starts_with(['x', 'X']) => 5 * text.len(),
        oid::BIT | oid::VARBIT => text.len() / 4,
        oid::BYTEA => 2 * text.len(),
        oid::TSVECTOR | oid::TSQUERY => {
            count_of(text, b" ':,&|!()<\t\n") * PART_BYTES + 2 * text.len()
        }
        // A point is twice as long as the two numbers' shortest text and its comma.
        oid::PATH | oid::POLYGON => 8 * count_of(text, b",") + text.len(),
        oid::HSTORE => count_of(text, b",=") * PART_BYTES + 2 * text.len(),
        ty if info::element_of(ty).is_some() || user::is_composite(ty) || ty == oid::RECORD => {
            count_of(text, b",{( \t\n") * PART_BYTES + 3 * text.len()
        }
        _ => 2 * text.len(),
    })
}
