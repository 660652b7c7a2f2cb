//! Equality, order and hashing of values.
//!
//! Owns: [`compare`] (a total order over values of one type, and across the integer and float widths), [`hash`]
//! consistent with it, and the typed variants that know what a bare value does not: `char(n)` ignores trailing blanks,
//! `citext` the case of letters.

use super::types::oid;
use super::{Array, Datum, Numeric, hstore};
use crate::TypeId;
use crate::value::search::query;
use std::borrow::Cow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

/// Order of doubles as PostgreSQL sees it: -0 equals 0, NaN equals NaN and is above everything.
#[inline]
pub fn compare_f64(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b)
        .unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Total order of two values of the same type; also of two integers or two floats of different widths. NULL is above
/// every value. Values of unrelated types (a bug of the caller) order by type.
#[inline]
pub fn compare(a: &Datum, b: &Datum) -> Ordering {
    match (a, b) {
        (Datum::Int4(x), Datum::Int4(y)) => x.cmp(y),
        (Datum::Int8(x), Datum::Int8(y)) => x.cmp(y),
        (Datum::Text(x), Datum::Text(y)) => x.as_bytes().cmp(y.as_bytes()),
        _ => compare_rest(a, b),
    }
}

fn compare_rest(a: &Datum, b: &Datum) -> Ordering {
    use Datum::*;
    match (a, b) {
        (Null, Null) => Ordering::Equal,
        (Null, _) => Ordering::Greater,
        (_, Null) => Ordering::Less,
        (Bool(x), Bool(y)) => x.cmp(y),
        (Int2(x), Int2(y)) => x.cmp(y),
        (Int2(x), Int4(y)) => i32::from(*x).cmp(y),
        (Int2(x), Int8(y)) => i64::from(*x).cmp(y),
        (Int4(x), Int2(y)) => x.cmp(&i32::from(*y)),
        (Int4(x), Int8(y)) => i64::from(*x).cmp(y),
        (Int8(x), Int2(y)) => x.cmp(&i64::from(*y)),
        (Int8(x), Int4(y)) => x.cmp(&i64::from(*y)),
        (Float4(x), Float4(y)) => compare_f64(f64::from(*x), f64::from(*y)),
        (Float8(x), Float8(y)) => compare_f64(*x, *y),
        (Float4(x), Float8(y)) => compare_f64(f64::from(*x), *y),
        (Float8(x), Float4(y)) => compare_f64(*x, f64::from(*y)),
        (Numeric(x), Numeric(y)) => x.compare(y),
        (Oid(x), Oid(y)) => x.cmp(y),
        (Char(x), Char(y)) => x.cmp(y),
        (Bytea(x), Bytea(y)) | (TsVector(x), TsVector(y)) => x.cmp(y),
        (TsQuery(x), TsQuery(y)) => query::ordered(x).cmp(query::ordered(y)),
        (Date(x), Date(y)) => x.cmp(y),
        (Time(x), Time(y)) | (Timestamp(x), Timestamp(y)) | (TimestampTz(x), TimestampTz(y)) => {
            x.cmp(y)
        }
        (Uuid(x), Uuid(y)) => x.cmp(y),
        (Interval(x), Interval(y)) => x.span().cmp(&y.span()),
        (Jsonb(x), Jsonb(y)) => x.view().compare(y.view()),
        (Array(x), Array(y)) => compare_arrays(x, y),
        (Enum(x), Enum(y)) => x.ordinal.cmp(&y.ordinal),
        (Inet(x), Inet(y)) => x.compare(y),
        (Mac(x), Mac(y)) => x.cmp(y),
        (Mac8(x), Mac8(y)) => x.cmp(y),
        (TimeTz(x), TimeTz(y)) => x.compare(y),
        (Money(x), Money(y)) => x.cmp(y),
        (Bits(x), Bits(y)) => x.compare(y),
        (Lsn(x), Lsn(y)) => x.cmp(y),
        (Geometry(x), Geometry(y)) => x.compare(y),
        _ => rank(a).cmp(&rank(b)),
    }
}

fn compare_arrays(a: &Array, b: &Array) -> Ordering {
    if a.element == oid::ANYRANGE {
        return super::range::compare_ranges(a, b);
    }
    for (x, y) in a.items.iter().zip(&b.items) {
        let o = compare_as(a.element, x, y);
        if o != Ordering::Equal {
            return o;
        }
    }
    a.items
        .len()
        .cmp(&b.items.len())
        .then_with(|| a.compare_shapes(b))
}

fn rank(d: &Datum) -> u8 {
    use Datum::*;
    match d {
        Bool(_) => 0,
        Int2(_) | Int4(_) | Int8(_) => 1,
        Float4(_) | Float8(_) => 2,
        Numeric(_) => 3,
        Oid(_) => 4,
        Char(_) => 5,
        Text(_) => 6,
        Bytea(_) => 7,
        Date(_) => 8,
        Time(_) => 9,
        Timestamp(_) => 10,
        TimestampTz(_) => 11,
        Uuid(_) => 12,
        Interval(_) => 13,
        Array(_) => 14,
        Jsonb(_) => 15,
        Enum(_) => 16,
        Inet(_) => 17,
        Mac(_) => 18,
        Mac8(_) => 19,
        TimeTz(_) => 20,
        Bits(_) => 21,
        Money(_) => 22,
        TsVector(_) => 23,
        TsQuery(_) => 24,
        Lsn(_) => 25,
        Geometry(_) => 26,
        Null => u8::MAX,
    }
}

/// `char(n)` without the trailing blanks that comparisons ignore.
#[inline]
pub fn trim_blanks(s: &str) -> &str {
    s.trim_end_matches(' ')
}

/// What of a `citext` comparisons see: all letters are small.
pub fn folded(s: &str) -> Cow<'_, str> {
    let small = |c: u8| c.is_ascii() && !c.is_ascii_uppercase();
    match s.bytes().all(small) {
        true => Cow::Borrowed(s),
        false => Cow::Owned(super::case::lower_text(s)),
    }
}

/// [`compare`] for values of type `ty`.
#[inline]
pub fn compare_as(ty: TypeId, a: &Datum, b: &Datum) -> Ordering {
    match (ty, a, b) {
        (oid::BPCHAR, Datum::Text(x), Datum::Text(y)) => {
            trim_blanks(x).as_bytes().cmp(trim_blanks(y).as_bytes())
        }
        (oid::CITEXT, Datum::Text(x), Datum::Text(y)) => {
            folded(x).as_bytes().cmp(folded(y).as_bytes())
        }
        (oid::HSTORE, Datum::Jsonb(x), Datum::Jsonb(y)) => {
            let key = |v: &super::Jsonb| {
                let mut key = Vec::new();
                hstore::write_key(v.view(), &mut key);
                key
            };
            key(x).cmp(&key(y))
        }
        _ => compare(a, b),
    }
}

/// True unless the values differ: two NULLs are not distinct.
#[inline]
pub fn not_distinct(a: &Datum, b: &Datum) -> bool {
    compare(a, b) == Ordering::Equal
}

impl PartialEq for Datum {
    /// "Is not distinct from": NULL equals NULL.
    fn eq(&self, other: &Datum) -> bool {
        not_distinct(self, other)
    }
}

/// Feeds a hasher; values that compare equal feed the same (across integer and float widths too).
pub fn hash<H: Hasher>(d: &Datum, h: &mut H) {
    use Datum::*;
    match d {
        Null => h.write_u8(0xff),
        Bool(v) => h.write_u8(u8::from(*v)),
        Int2(v) => h.write_i64(i64::from(*v)),
        Int4(v) => h.write_i64(i64::from(*v)),
        Int8(v) => h.write_i64(*v),
        Float4(v) => hash_f64(f64::from(*v), h),
        Float8(v) => hash_f64(*v, h),
        Numeric(v) => v.hash_value(h),
        Oid(v) => h.write_u32(*v),
        Char(v) => h.write_u8(*v),
        Text(v) => v.as_bytes().hash(h),
        Bytea(v) | TsVector(v) => v.hash(h),
        TsQuery(v) => query::ordered(v).hash(h),
        Date(v) => h.write_i32(*v),
        Money(v) | Time(v) | Timestamp(v) | TimestampTz(v) => h.write_i64(*v),
        Uuid(v) => h.write(&**v),
        Interval(v) => h.write_i128(v.span()),
        Jsonb(v) => v.view().hash_value(h),
        Enum(v) => h.write_u64(v.ordinal),
        Inet(v) => {
            h.write_u8(u8::from(v.v6));
            h.write_u8(v.bits);
            h.write_u128(v.address);
        }
        Mac(v) => h.write(v),
        Mac8(v) => h.write(v),
        TimeTz(v) => {
            h.write_i64(v.utc_micros());
            h.write_i32(v.west);
        }
        Lsn(v) => h.write_u64(*v),
        Geometry(v) => v.hash_value(h),
        Bits(v) => {
            h.write_u32(v.len());
            h.write(v.bytes());
        }
        Array(v) => {
            if v.element == oid::ANYRANGE {
                h.write_i32(v.lower);
            }
            h.write_usize(v.items.len());
            for item in &v.items {
                hash_as(v.element, item, h);
            }
        }
    }
}

fn hash_f64<H: Hasher>(v: f64, h: &mut H) {
    let bits = if v == 0.0 {
        0
    } else if v.is_nan() {
        f64::NAN.to_bits()
    } else {
        v.to_bits()
    };
    h.write_u64(bits);
}

/// [`hash`] for a value of type `ty`, consistent with [`compare_as`].
pub fn hash_as<H: Hasher>(ty: TypeId, d: &Datum, h: &mut H) {
    match (ty, d) {
        (oid::BPCHAR, Datum::Text(v)) => trim_blanks(v).as_bytes().hash(h),
        (oid::CITEXT, Datum::Text(v)) => folded(v).as_bytes().hash(h),
        _ => hash(d, h),
    }
}

impl PartialOrd for Numeric {
    fn partial_cmp(&self, other: &Numeric) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Numeric {
    fn cmp(&self, other: &Numeric) -> Ordering {
        self.compare(other)
    }
}
