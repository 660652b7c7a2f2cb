//! SQL types and values: what a value is, how it reads and prints, how it is stored and ordered.
//!
//! Owns: [`SqlType`], [`Datum`], text and binary input/output, the stored form inside rows, the memcmp-comparable key
//! form inside indexes. Invariant: `decode(encode(v)) == v` for every form, and keys compare exactly as values do.

mod types;

pub use types::{Oid, SqlType, oid};

use std::sync::Arc;

/// One SQL value. At most 24 bytes; cloning never copies text.
#[derive(Clone, Debug, Default)]
pub enum Datum {
    /// SQL NULL of any type.
    #[default]
    Null,
    /// boolean
    Bool(bool),
    /// smallint
    Int2(i16),
    /// integer
    Int4(i32),
    /// bigint
    Int8(i64),
    /// real
    Float4(f32),
    /// double precision
    Float8(f64),
    /// oid, regclass, regtype, regproc, regnamespace, regrole
    Oid(u32),
    /// "char": one byte
    Char(u8),
    /// text, varchar, char(n) (blank-padded to n), name, unknown literals: valid UTF-8
    Text(Arc<str>),
    /// bytea
    Bytea(Arc<[u8]>),
    /// date: days since 2000-01-01; `i32::MIN` / `i32::MAX` are -infinity / infinity
    Date(i32),
    /// time: microseconds since midnight
    Time(i64),
    /// timestamp: microseconds since 2000-01-01 00:00; `i64::MIN` / `i64::MAX` are -infinity / infinity
    Timestamp(i64),
    /// timestamptz: microseconds since 2000-01-01 00:00 UTC; infinities as for timestamp
    TimestampTz(i64),
    /// uuid, boxed to keep the enum small
    Uuid(Box<[u8; 16]>),
    /// interval, boxed
    Interval(Box<Interval>),
    /// one-dimensional array (also int2vector and oidvector)
    Array(Arc<Array>),
}

/// PostgreSQL's interval: three fields that do not carry into each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Interval {
    /// Months.
    pub months: i32,
    /// Days.
    pub days: i32,
    /// Microseconds.
    pub micros: i64,
}

/// A one-dimensional array value.
#[derive(Clone, Debug)]
pub struct Array {
    /// Element type.
    pub element: Oid,
    /// First subscript: 1 for arrays, 0 for int2vector and oidvector.
    pub lower: i32,
    /// Elements, NULLs included.
    pub items: Vec<Datum>,
}
