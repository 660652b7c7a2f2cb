//! Large values: how they are finished, and what they are charged.
//!
//! Owns: what a value holds outside of itself, which values are large, and how large one may be that is made of others.
//!
//! Invariants:
//! - A large value that a function gave is charged as long as it is in memory, wherever it is: a variable, a row, a
//!   plan.
//! - Small values are never charged; they cost a comparison.
//!
//! Does not: keep the accounts or build bytes (`crate::memory`).

use super::{Datum, Numeric, size_bytes};
use crate::error::{Result, SqlError};
use crate::memory::{
    Builder, ItemsBuilder, MemoryReservation, SMALL_BYTES, VALUE_BYTES_MAX, charge_while_alive,
    is_charged, too_large,
};
use logstead_types::SqlState;
use std::sync::{Arc, Weak};

/// A number of so many bits, some thousand digits, is one to look for interrupts at.
const LONG_NUMBER_BITS: u64 = 16 << 10;
/// What a row of one column takes beside what its value holds.
pub const ROW_BYTES: usize = 32;

impl Builder {
    /// The text that it has become.
    pub fn finish_text(mut self) -> Result<Datum> {
        // The value is a copy: both are there for a moment.
        self.hold_copy()?;
        match std::str::from_utf8(&self) {
            Ok(text) => Ok(Datum::text(text)),
            Err(_) => Err(SqlError::internal("what a function gave is not UTF-8")),
        }
    }

    /// The bytes that it has become.
    pub fn finish_bytes(mut self) -> Result<Datum> {
        self.hold_copy()?;
        Ok(Datum::Bytea(self.as_slice().into()))
    }

    /// The text that it is so far.
    pub fn copy_text(&self) -> Result<Datum> {
        let _copy = MemoryReservation::of(self.len())?;
        match std::str::from_utf8(self) {
            Ok(text) => Ok(Datum::text(text)),
            Err(_) => Err(SqlError::internal("what a function gave is not UTF-8")),
        }
    }

    /// The bytes that it is so far.
    pub fn copy_bytes(&self) -> Result<Datum> {
        let _copy = MemoryReservation::of(self.len())?;
        Ok(Datum::Bytea(self.as_slice().into()))
    }
}

impl ItemsBuilder<Datum> {
    /// Appends a text.
    #[inline]
    pub fn push_text(&mut self, text: &str) -> Result<()> {
        self.hold(text.len())?;
        self.push(Datum::text(text))
    }
}

/// What a value holds outside of itself, elements of elements left out.
pub fn outside_bytes(value: &Datum) -> usize {
    match value {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => bytes.len(),
        Datum::Bits(bits) => bits.bytes().len(),
        Datum::Jsonb(json) => json.bytes().len(),
        Datum::Geometry(v) => v.outside_bytes(),
        Datum::Numeric(Numeric::Big { mantissa, .. }) => (mantissa.bits() / 8) as usize,
        Datum::Array(array) => array.items.iter().map(item_bytes).sum(),
        _ => 0,
    }
}

fn item_bytes(item: &Datum) -> usize {
    match item {
        Datum::Array(array) => array.items.len() * size_of::<Datum>(),
        _ => size_of::<Datum>() + outside_bytes(item),
    }
}

/// Whether a value is worth a charge.
#[inline]
pub fn is_large(value: &Datum) -> bool {
    match value {
        Datum::Text(text) => text.len() >= SMALL_BYTES,
        Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => {
            bytes.len() >= SMALL_BYTES
        }
        Datum::Bits(bits) => bits.bytes().len() >= SMALL_BYTES,
        // Reckoning with so many digits takes long rather than much.
        Datum::Numeric(Numeric::Big { mantissa, .. }) => mantissa.bits() >= LONG_NUMBER_BITS,
        Datum::Jsonb(json) => json.bytes().len() >= SMALL_BYTES,
        Datum::Geometry(v) => v.outside_bytes() >= SMALL_BYTES,
        Datum::Array(array) => {
            array.items.len() >= SMALL_BYTES / size_of::<Datum>()
                || array.items.iter().map(item_bytes).sum::<usize>() >= SMALL_BYTES
        }
        _ => false,
    }
}

/// Charges a value as long as it is alive, if it is large; 54000 if it is too large for one, 53200 if the budget has no
/// room for it.
#[inline]
pub fn charge_value(value: Datum) -> Result<Datum> {
    match is_large(&value) {
        true => keep_large(value),
        false => Ok(value),
    }
}

#[cold]
#[inline(never)]
fn keep_large(value: Datum) -> Result<Datum> {
    match &value {
        Datum::Text(text) => keep(&value, Arc::as_ptr(text).cast(), Arc::downgrade(text)),
        Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => {
            keep_bytes(&value, bytes)
        }
        Datum::Bits(bits) => keep_bytes(&value, bits.shared()),
        Datum::Jsonb(json) => keep_bytes(&value, json.shared()),
        Datum::Geometry(v) => keep(&value, Arc::as_ptr(v).cast(), Arc::downgrade(v)),
        Datum::Array(array) => keep(&value, Arc::as_ptr(array).cast(), Arc::downgrade(array)),
        _ => Ok(()),
    }?;
    Ok(value)
}

fn keep_bytes(value: &Datum, bytes: &Arc<[u8]>) -> Result<()> {
    keep(value, Arc::as_ptr(bytes).cast(), Arc::downgrade(bytes))
}

/// Charges a value for as long as what it shares, which lies at `address`, is alive.
fn keep<T>(value: &Datum, address: *const u8, shared: Weak<T>) -> Result<()>
where
    T: ?Sized + Send + Sync + 'static,
{
    let address = address as usize;
    if is_charged(address) {
        return Ok(());
    }
    let bytes = match value {
        Datum::Array(_) => bounded_size(value)?,
        _ => outside_bytes(value),
    };
    if bytes > VALUE_BYTES_MAX && !matches!(value, Datum::Array(_)) {
        return Err(too_large(0, bytes));
    }
    charge_while_alive(address, shared, bytes)
}

/// The same for one that is made of others: a record's size is looked at if it holds records or arrays, which it
/// shares.
#[inline]
pub fn bounded(value: Datum) -> Result<Datum> {
    if let Datum::Array(array) = &value
        && array
            .items
            .iter()
            .any(|item| matches!(item, Datum::Array(_)))
    {
        bounded_size(&value)?;
    }
    charge_value(value)
}

/// What an array or a record holds; 54000 if that is more than one may. Records share their fields, so one of a few
/// bytes may be of any size when it is written: the walk ends when it is known to be too large.
pub fn bounded_size(value: &Datum) -> Result<usize> {
    fn walk(value: &Datum, sum: &mut usize, limit: usize) -> bool {
        match value {
            Datum::Array(array) => {
                *sum += 72;
                *sum <= limit && array.items.iter().all(|item| walk(item, sum, limit))
            }
            other => {
                *sum += size_bytes(other);
                *sum <= limit
            }
        }
    }
    // Each element has 24 bytes here, and fewer in PostgreSQL.
    let limit = match value {
        Datum::Array(array) if array.element == super::record::FIELDS => VALUE_BYTES_MAX,
        _ => 4 * VALUE_BYTES_MAX,
    };
    let mut sum = 0;
    match walk(value, &mut sum, limit) {
        true => Ok(sum),
        false => Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            format!("invalid memory alloc request size {sum}"),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::{ITEMS_MAX, charge_to, release_dropped};
    use logstead_engine::Memory;

    /// Runs `test` in a thread of its own whose account has so many bytes.
    fn with_budget(bytes: u64, test: impl FnOnce(&'static Memory) + Send) {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let memory = Memory::standalone(bytes);
                charge_to(memory);
                test(memory);
            });
        });
    }

    #[test]
    fn what_is_built_is_charged_before_it_is_allocated() {
        with_budget(8 << 20, |memory| {
            let mut builder = Builder::default();
            let chunk = [b'x'; 1 << 10];
            let error = loop {
                if let Err(error) = builder.push_bytes(&chunk) {
                    break error;
                }
            };
            assert_eq!(error.code(), SqlState::OUT_OF_MEMORY);
            assert!(builder.capacity() < 7 << 20, "{}", builder.capacity());
            assert!(memory.used_bytes() >= builder.capacity() as u64);
            drop(builder);
            assert_eq!(memory.used_bytes(), 0);
        });
    }

    #[test]
    fn what_is_appended_without_asking_is_charged_at_the_next_step() {
        with_budget(8 << 20, |memory| {
            let mut builder = Builder::default();
            let chunk = [b'x'; 100_000];
            let error = loop {
                // A separator fills the room that is left, and a number follows that asks for none.
                let end = builder.push_bytes(&chunk).and_then(|()| {
                    builder.push(b'1');
                    builder.step()
                });
                match end {
                    Ok(()) => assert!(memory.used_bytes() >= builder.capacity() as u64),
                    Err(error) => break error,
                }
            };
            assert_eq!(error.code(), SqlState::OUT_OF_MEMORY);
            assert!(builder.capacity() < 7 << 20, "{}", builder.capacity());

            // One that enlarged itself is charged for all of it, or refused.
            let mut builder = Builder::default();
            builder.extend_from_slice(&vec![b'x'; 10 << 20]);
            let error = builder.step().expect_err("more than the budget");
            assert_eq!(error.code(), SqlState::OUT_OF_MEMORY);
        });
    }

    #[test]
    fn no_value_is_larger_than_one_may_be() {
        let mut builder = Builder::default();
        let error = builder.reserve(VALUE_BYTES_MAX + 1).expect_err("a limit");
        assert_eq!(error.code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
        assert_eq!(builder.capacity(), 0, "nothing was allocated");
        let mut items: Vec<u64> = Vec::new();
        let error = MemoryReservation::default().reserve(&mut items, ITEMS_MAX + 1);
        assert_eq!(
            error.expect_err("a limit").code(),
            SqlState::PROGRAM_LIMIT_EXCEEDED
        );
    }

    #[test]
    fn a_large_value_is_charged_as_long_as_it_is_alive() {
        with_budget(8 << 20, |memory| {
            let value = charge_value(Datum::text("x".repeat(2 << 20))).expect("room");
            let again = charge_value(value.clone()).expect("the same one");
            assert_eq!(memory.used_bytes(), 2 << 20);
            release_dropped();
            assert_eq!(memory.used_bytes(), 2 << 20, "it is alive");
            drop((value, again));
            release_dropped();
            assert_eq!(memory.used_bytes(), 0);
        });
    }

    #[test]
    fn values_that_are_gone_make_room_for_others() {
        with_budget(8 << 20, |memory| {
            for _ in 0..20 {
                charge_value(Datum::text("x".repeat(3 << 20))).expect("the last one is gone");
            }
            assert!(memory.used_bytes() <= 8 << 20);
        });
        release_dropped();
    }

    #[test]
    fn a_record_of_records_is_as_large_as_it_is_written() {
        let mut record = super::super::record::record(vec![Datum::Int4(1)]);
        let error = loop {
            record = super::super::record::record(vec![record.clone(), record]);
            if let Err(error) = bounded_size(&record) {
                break error;
            }
        };
        assert_eq!(error.code(), SqlState::PROGRAM_LIMIT_EXCEEDED);
    }
}
