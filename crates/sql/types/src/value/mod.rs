//! SQL types and values: what a value is, how it reads and prints, how it is stored and ordered.
//!
//! Owns: [`SqlType`], [`Datum`], text and binary input/output, the stored form inside rows, the memcmp-comparable key
//! form inside indexes. Invariant: `decode(encode(v)) == v` for every form, and keys compare exactly as values do.

pub mod abbreviations;
pub mod admission;
pub mod array;
pub mod binary_io;
pub mod bits;
pub mod build;
pub mod calendar;
pub mod case;
mod client_encoding;
pub mod collations;
pub mod compare;
pub mod datetime;
mod datetime_units;
pub mod escapes;
mod float_text;
pub mod geometry;
mod geometry_text;
pub mod hstore;
mod image;
pub mod info;
pub mod io_context;
pub mod json;
pub mod key;
pub mod key_length;
pub mod lsn;
pub mod money;
pub mod multirange;
pub mod names;
pub mod network;
pub mod numeric;
mod numeric_math;
mod object_text;
pub mod range;
pub mod record;
mod row_types;
pub mod search;
pub mod snapshot;
pub mod stored;
pub mod text_io;
pub mod tid;
pub mod timetz;
mod types;
pub mod typmod;
pub mod user;
pub mod xml;

pub use array::Array;
pub use bits::Bits;
pub use compare::{compare, compare_as, hash, hash_as, not_distinct, trim_blanks};
pub use image::compare_images;
pub use info::TypeInfo;
pub use io_context::{
    Clock, DateTimeContext, IoContext, ObjectNames, RegType, SettingValues, needs_session,
};
pub use json::Jsonb;
pub use network::Inet;
pub use numeric::Numeric;
pub use text_io::OutputStyle;
pub use timetz::TimeTz;
pub use types::{FIRST_EXTENSION_OID, FIRST_USER_OID, Oid, SqlType, oid};
pub use user::EnumValue;

use crate::TypeId;
use crate::error::{Result, SqlError};
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
    /// text, varchar, char(n) (blank-padded to n), name, json, unknown literals: valid UTF-8
    Text(Arc<str>),
    /// numeric
    Numeric(Numeric),
    /// bytea
    Bytea(Arc<[u8]>),
    /// tsvector: its form in `search`, which orders as bytes
    TsVector(Arc<[u8]>),
    /// tsquery, likewise
    TsQuery(Arc<[u8]>),
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
    /// jsonb, hstore
    Jsonb(Jsonb),
    /// array (also int2vector, oidvector, records, ranges and multiranges)
    Array(Arc<Array>),
    /// a value of an enum
    Enum(EnumValue),
    /// inet, cidr, boxed to keep the enum small
    Inet(Box<Inet>),
    /// macaddr
    Mac([u8; 6]),
    /// macaddr8
    Mac8([u8; 8]),
    /// money: hundredths
    Money(i64),
    /// timetz
    TimeTz(TimeTz),
    /// bit, bit varying
    Bits(Bits),
    /// point, line, lseg, box, path, polygon, circle
    Geometry(Arc<geometry::Geometry>),
    /// pg_lsn
    Lsn(u64),
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

macro_rules! accessors {
    ($($(#[$doc:meta])* $name:ident: $variant:ident -> $t:ty;)*) => {
        $(
            $(#[$doc])*
            #[inline]
            pub fn $name(&self) -> Result<$t> {
                match self {
                    Datum::$variant(v) => Ok(*v),
                    _ => Err(self.mismatch(stringify!($variant))),
                }
            }
        )*
    };
}

impl Datum {
    /// A text value.
    pub fn text(s: impl Into<Arc<str>>) -> Datum {
        Datum::Text(s.into())
    }

    /// An inet or cidr value.
    pub fn inet(v: Inet) -> Datum {
        Datum::Inet(Box::new(v))
    }

    /// A numeric value.
    #[inline]
    pub fn numeric(n: Numeric) -> Datum {
        Datum::Numeric(n)
    }

    /// A one-dimensional array with subscripts from 1.
    pub fn array(element: TypeId, items: Vec<Datum>) -> Datum {
        Datum::Array(Arc::new(Array::flat(element, 1, items)))
    }

    /// True for SQL NULL.
    #[inline]
    pub fn is_null(&self) -> bool {
        matches!(self, Datum::Null)
    }

    fn mismatch(&self, wanted: &str) -> SqlError {
        SqlError::internal(format!("value {self:?} where {wanted} was expected"))
    }

    accessors! {
        /// The boolean inside.
        as_bool: Bool -> bool;
        /// The smallint inside.
        as_i16: Int2 -> i16;
        /// The integer inside.
        as_i32: Int4 -> i32;
        /// The bigint inside.
        as_i64: Int8 -> i64;
        /// The real inside.
        as_f32: Float4 -> f32;
        /// The double inside.
        as_f64: Float8 -> f64;
        /// The OID inside (reg* types too).
        as_oid: Oid -> u32;
        /// The "char" byte inside.
        as_char: Char -> u8;
        /// The date inside.
        as_date: Date -> i32;
        /// The time inside.
        as_time: Time -> i64;
        /// The timestamp inside.
        as_timestamp: Timestamp -> i64;
        /// The timestamptz inside.
        as_timestamptz: TimestampTz -> i64;
    }

    /// The text inside.
    #[inline]
    pub fn as_str(&self) -> Result<&str> {
        match self {
            Datum::Text(s) => Ok(s),
            _ => Err(self.mismatch("Text")),
        }
    }

    /// The bytes inside.
    pub fn as_bytes(&self) -> Result<&[u8]> {
        match self {
            Datum::Bytea(b) => Ok(b),
            _ => Err(self.mismatch("Bytea")),
        }
    }

    /// The form of the tsvector inside.
    pub fn as_tsvector(&self) -> Result<&[u8]> {
        match self {
            Datum::TsVector(b) => Ok(b),
            _ => Err(self.mismatch("TsVector")),
        }
    }

    /// The form of the tsquery inside.
    pub fn as_tsquery(&self) -> Result<&[u8]> {
        match self {
            Datum::TsQuery(b) => Ok(b),
            _ => Err(self.mismatch("TsQuery")),
        }
    }

    /// The jsonb inside.
    pub fn as_jsonb(&self) -> Result<json::JsonbRef<'_>> {
        match self {
            Datum::Jsonb(j) => Ok(j.view()),
            _ => Err(self.mismatch("Jsonb")),
        }
    }

    /// The numeric inside.
    pub fn as_numeric(&self) -> Result<&Numeric> {
        match self {
            Datum::Numeric(n) => Ok(n),
            _ => Err(self.mismatch("Numeric")),
        }
    }

    /// The interval inside.
    pub fn as_interval(&self) -> Result<Interval> {
        match self {
            Datum::Interval(v) => Ok(**v),
            _ => Err(self.mismatch("Interval")),
        }
    }

    /// The uuid inside.
    pub fn as_uuid(&self) -> Result<[u8; 16]> {
        match self {
            Datum::Uuid(v) => Ok(**v),
            _ => Err(self.mismatch("Uuid")),
        }
    }

    /// The array inside.
    pub fn as_array(&self) -> Result<&Array> {
        match self {
            Datum::Array(v) => Ok(v),
            _ => Err(self.mismatch("Array")),
        }
    }

    /// Any of the three integer types, widened.
    pub fn as_integer(&self) -> Result<i64> {
        match self {
            Datum::Int2(v) => Ok(i64::from(*v)),
            Datum::Int4(v) => Ok(i64::from(*v)),
            Datum::Int8(v) => Ok(*v),
            _ => Err(self.mismatch("an integer")),
        }
    }
}

impl Interval {
    /// The length used for comparisons: months of 30 days, days of 24 hours.
    pub fn span(&self) -> i128 {
        (i128::from(self.months) * 30 + i128::from(self.days)) * 86_400_000_000
            + i128::from(self.micros)
    }
}

/// Rough size of a value in memory, for memory limits.
pub fn size_bytes(d: &Datum) -> usize {
    24 + match d {
        Datum::Text(s) => s.len() + 16,
        Datum::Bytea(b) => b.len() + 16,
        Datum::Bits(b) => b.bytes().len() + 16,
        Datum::Jsonb(j) => j.bytes().len() + 16,
        Datum::Numeric(Numeric::Big { mantissa, .. }) => 32 + (mantissa.bits() / 8) as usize,
        Datum::Uuid(_) | Datum::Interval(_) => 16,
        Datum::Inet(_) => 32,
        Datum::Geometry(v) => 64 + v.outside_bytes(),
        Datum::Array(a) => 48 + a.items.iter().map(size_bytes).sum::<usize>(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
