//! The stored form of a value inside a row: compact, self-contained per column, little-endian.
//!
//! Fixed-width numbers are their little-endian bytes; text and bytea are the raw bytes; numeric is a 16-bit scale (or a
//! special) and the mantissa's shortest two's complement; interval is months, days, microseconds; json is its text,
//! jsonb the form of [`super::json`]; tsvector and tsquery are forms that order as bytes (`crate::value::search`); an
//! enum's value is its label's place ([`super::user`]); inet and cidr are the length of the mask and the address's 4
//! or 16 bytes in the order of the network, as are the bytes of macaddr and macaddr8; timetz is
//! the local microseconds (i64) and how many seconds its zone is west (i32); bit and varbit are the number of bits
//! (u32) and the bytes, the first bit in the highest of the first; pg_lsn is a number of 64 bits, a geometric value its
//! numbers ([`super::geometry`]); an array is element OID, lower bound, count (in several dimensions: how many they are
//! with the highest bit set, then the lower bound and the length of each), then per element a length (u32, `u32::MAX`
//! for NULL) and the element's own stored form; a record is the number of its fields (u32) and per field the type whose
//! form it has (u32), its length and the form, so it is read without the catalog; a range is a byte of flags and its
//! finite bounds as fields of a record, a multirange per range a length (u32) and its form. NULL has no stored form:
//! rows keep it in their bitmap. Invariant: `decode(ty, encode(v)) == v`. Decoding never panics on damaged bytes: it
//! gives an error.

use super::array::{DIMENSIONS_MAX, Dim, items_of};
use super::geometry::{self, Geometry};
use super::numeric::Numeric;
use super::text_io::{self, OutputStyle};
use super::types::{SqlType, oid};
use super::{
    Array, Bits, Datum, EnumValue, Inet, Interval, Jsonb, TimeTz, binary_io, bits, info, json,
    multirange, range, record, user,
};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory;
use crate::thread_context::NESTED;
use num_bigint::BigInt;
use std::sync::Arc;

/// In the place of an array's count: it has several dimensions, as many as the other bits say. No count has this bit,
/// and builds that do not know it find more elements than there are bytes: they refuse the value.
const SHAPED: u32 = 1 << 31;

const NAN: u16 = 0xffff;
const INF: u16 = 0xfffe;
const NEG_INF: u16 = 0xfffd;

/// Appends the stored form. NULL appends nothing (callers never pass it).
pub fn encode(d: &Datum, out: &mut Vec<u8>) {
    match d {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Int8(v)
        | Datum::Money(v)
        | Datum::Time(v)
        | Datum::Timestamp(v)
        | Datum::TimestampTz(v) => {
            out.extend_from_slice(&v.to_le_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Oid(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
        Datum::Bytea(v) | Datum::TsVector(v) | Datum::TsQuery(v) => out.extend_from_slice(v),
        Datum::Uuid(v) => out.extend_from_slice(&**v),
        Datum::Interval(v) => {
            out.extend_from_slice(&v.months.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Datum::Numeric(n) => encode_numeric(n, out),
        Datum::Jsonb(j) => out.extend_from_slice(j.bytes()),
        Datum::Enum(v) => out.extend_from_slice(&v.ordinal.to_le_bytes()),
        Datum::Inet(v) => {
            out.push(v.bits);
            out.extend_from_slice(&v.bytes());
        }
        Datum::Mac(v) => out.extend_from_slice(v),
        Datum::Mac8(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => {
            out.extend_from_slice(&v.micros.to_le_bytes());
            out.extend_from_slice(&v.west.to_le_bytes());
        }
        Datum::Lsn(v) => out.extend_from_slice(&v.to_le_bytes()),
        Datum::Geometry(v) => v.encode(out),
        Datum::Bits(v) => {
            out.extend_from_slice(&v.len().to_le_bytes());
            out.extend_from_slice(v.bytes());
        }
        Datum::Array(a) if a.element == record::FIELDS => {
            out.extend_from_slice(&(a.items.len() as u32).to_le_bytes());
            for item in &a.items {
                out.extend_from_slice(&form_of(item).get().to_le_bytes());
                encode_item(item, out);
            }
        }
        Datum::Array(a) if a.element == oid::ANYRANGE => {
            out.push(a.lower as u8);
            for item in a.items.iter().filter(|item| !item.is_null()) {
                out.extend_from_slice(&form_of(item).get().to_le_bytes());
                encode_item(item, out);
            }
        }
        Datum::Array(a) if a.element == oid::ANYMULTIRANGE => {
            let count = u32::try_from(a.items.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&count.to_le_bytes());
            for item in &a.items {
                encode_item(item, out);
            }
        }
        Datum::Array(a) => {
            out.extend_from_slice(&a.element.get().to_le_bytes());
            out.extend_from_slice(&a.lower.to_le_bytes());
            match &a.shape {
                None => out.extend_from_slice(&(a.items.len() as u32).to_le_bytes()),
                Some(shape) => {
                    out.extend_from_slice(&(SHAPED | shape.len() as u32).to_le_bytes());
                    for dim in shape.iter() {
                        out.extend_from_slice(&dim.lower.to_le_bytes());
                        out.extend_from_slice(&dim.len.to_le_bytes());
                    }
                }
            }
            for item in &a.items {
                encode_item(item, out);
            }
        }
    }
}

/// A part of an array or record: its length and its form.
fn encode_item(item: &Datum, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&u32::MAX.to_le_bytes());
    if !item.is_null() {
        encode(item, out);
        let len = (out.len() - at - 4) as u32;
        out[at..at + 4].copy_from_slice(&len.to_le_bytes());
    }
}

/// The type as whose form a value is stored: of those that are stored alike it is one.
pub fn form_of(d: &Datum) -> TypeId {
    match d {
        Datum::Null | Datum::Text(_) => oid::TEXT,
        Datum::Bool(_) => oid::BOOL,
        Datum::Int2(_) => oid::INT2,
        Datum::Int4(_) => oid::INT4,
        Datum::Int8(_) => oid::INT8,
        Datum::Float4(_) => oid::FLOAT4,
        Datum::Float8(_) => oid::FLOAT8,
        Datum::Oid(_) => oid::OID,
        Datum::Char(_) => oid::CHAR,
        Datum::Numeric(_) => oid::NUMERIC,
        Datum::Bytea(_) => oid::BYTEA,
        Datum::TsVector(_) => oid::TSVECTOR,
        Datum::TsQuery(_) => oid::TSQUERY,
        Datum::Date(_) => oid::DATE,
        Datum::Time(_) => oid::TIME,
        Datum::Timestamp(_) => oid::TIMESTAMP,
        Datum::TimestampTz(_) => oid::TIMESTAMPTZ,
        Datum::Uuid(_) => oid::UUID,
        Datum::Interval(_) => oid::INTERVAL,
        Datum::Jsonb(_) => oid::JSONB,
        Datum::Array(a) if a.element == record::FIELDS => oid::RECORD,
        Datum::Array(a) if a.element == oid::ANYRANGE => oid::ANYRANGE,
        Datum::Array(a) if a.element == oid::ANYMULTIRANGE => oid::ANYMULTIRANGE,
        Datum::Array(_) => oid::ANYARRAY,
        Datum::Enum(v) => v.ty,
        Datum::Inet(v) if v.cidr => oid::CIDR,
        Datum::Inet(_) => oid::INET,
        Datum::Mac(_) => oid::MACADDR,
        Datum::Mac8(_) => oid::MACADDR8,
        Datum::Money(_) => oid::MONEY,
        Datum::TimeTz(_) => oid::TIMETZ,
        Datum::Bits(_) => oid::VARBIT,
        Datum::Lsn(_) => oid::PG_LSN,
        Datum::Geometry(v) => v.type_of(),
    }
}

pub(super) fn encode_numeric(n: &Numeric, out: &mut Vec<u8>) {
    match n {
        Numeric::NaN => out.extend_from_slice(&NAN.to_le_bytes()),
        Numeric::Infinity => out.extend_from_slice(&INF.to_le_bytes()),
        Numeric::NegInfinity => out.extend_from_slice(&NEG_INF.to_le_bytes()),
        Numeric::Small { mantissa, scale } => {
            out.extend_from_slice(&scale.to_le_bytes());
            let mantissa = mantissa.get();
            let bytes = mantissa.to_le_bytes();
            let bits = 128
                - if mantissa < 0 {
                    (!mantissa).leading_zeros()
                } else {
                    mantissa.leading_zeros()
                };
            // One bit more for the sign; zero needs no byte at all.
            let len = if mantissa == 0 {
                0
            } else {
                bits as usize / 8 + 1
            };
            out.extend_from_slice(&bytes[..len]);
        }
        Numeric::Big { mantissa, scale } => {
            out.extend_from_slice(&scale.to_le_bytes());
            out.extend_from_slice(&mantissa.to_signed_bytes_le());
        }
    }
}

fn damaged(ty: TypeId) -> SqlError {
    SqlError::internal(format!(
        "stored value of type {} is damaged",
        info::type_name(ty)
    ))
}

fn fixed<const N: usize>(ty: TypeId, b: &[u8]) -> Result<[u8; N]> {
    b.try_into().map_err(|_| damaged(ty))
}

/// A mantissa of 16 bytes at most, with its sign in the highest bit.
#[inline]
fn mantissa_of(bytes: &[u8]) -> i128 {
    // Nearly all have 8 at most.
    if let 1..=8 = bytes.len() {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let unused = 64 - 8 * bytes.len() as u32;
        return i128::from(i64::from_le_bytes(wide) << unused >> unused);
    }
    let fill = match bytes.last() {
        Some(last) if last & 0x80 != 0 => 0xff,
        _ => 0,
    };
    let mut wide = [fill; 16];
    let length = bytes.len().min(16);
    wide[..length].copy_from_slice(&bytes[..length]);
    i128::from_le_bytes(wide)
}

/// Reads a numeric from its stored form.
pub fn decode_numeric(b: &[u8]) -> Result<Numeric> {
    let Some((head, tail)) = b.split_first_chunk::<2>() else {
        return Err(damaged(oid::NUMERIC));
    };
    let scale = u16::from_le_bytes(*head);
    match scale {
        NAN => Ok(Numeric::NaN),
        INF => Ok(Numeric::Infinity),
        NEG_INF => Ok(Numeric::NegInfinity),
        _ if u32::from(scale) > super::numeric::SCALE_MAX => Err(damaged(oid::NUMERIC)),
        _ if tail.len() <= 16 => Ok(Numeric::new(mantissa_of(tail), scale)),
        _ => Ok(Numeric::from_big(
            BigInt::from_signed_bytes_le(tail),
            u32::from(scale),
        )),
    }
}

/// Most records in each other that are read. Whoever makes types and values sees to it that there are no more
/// ([`record::NESTING_MAX`]): what has more is damaged.
const NESTED_MAX: usize = 4 * record::NESTING_MAX;

fn decode_range(ty: TypeId, b: &[u8]) -> Result<Datum> {
    let (flags, mut rest) = b.split_first().ok_or_else(|| damaged(ty))?;
    let flags = i32::from(*flags);
    let has = |flag: i32| flags & flag != 0;
    if has(range::EMPTY) {
        return match rest.is_empty() && flags == range::EMPTY {
            true => Ok(range::empty()),
            false => Err(damaged(ty)),
        };
    }
    let mut items = Vec::with_capacity(2);
    for infinite in [range::LOWER_INFINITE, range::UPPER_INFINITE] {
        if has(infinite) {
            items.push(Datum::Null);
            continue;
        }
        let (form, tail) = rest.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
        let (len, tail) = tail.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
        let len = u32::from_le_bytes(*len) as usize;
        let (value, tail) = tail.split_at_checked(len).ok_or_else(|| damaged(ty))?;
        let form = TypeId::new(u32::from_le_bytes(*form));
        // Of what holds others in it a bound is an array alone.
        let plain = info::by_oid(form).is_some_and(|t| t.kind == 'b' && t.category != 'A');
        items.push(match form {
            oid::ANYARRAY => nested(ty, || decode_array(ty, value))?,
            _ if plain || user::is_enum(form) => decode(form, value)?,
            _ => return Err(damaged(ty)),
        });
        rest = tail;
    }
    match rest.is_empty() {
        true => Ok(Datum::Array(Arc::new(Array {
            element: oid::ANYRANGE,
            lower: flags,
            shape: None,
            items,
        }))),
        false => Err(damaged(ty)),
    }
}

fn decode_multirange(ty: TypeId, b: &[u8]) -> Result<Datum> {
    let (count, mut rest) = b.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
    let mut ranges = Vec::new();
    for _ in 0..u32::from_le_bytes(*count) {
        let (len, tail) = rest.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
        let len = u32::from_le_bytes(*len) as usize;
        let (range, tail) = tail.split_at_checked(len).ok_or_else(|| damaged(ty))?;
        ranges.push(decode_range(ty, range)?);
        rest = tail;
    }
    match rest.is_empty() {
        true => Ok(multirange::of_sorted(ranges)),
        false => Err(damaged(ty)),
    }
}

/// Reads what lies in another; one that lies in too many is damaged.
fn nested(ty: TypeId, read: impl FnOnce() -> Result<Datum>) -> Result<Datum> {
    struct NestingGuard;
    impl Drop for NestingGuard {
        fn drop(&mut self) {
            NESTED.set(NESTED.get().saturating_sub(1));
        }
    }
    NESTED.set(NESTED.get() + 1);
    let _up = NestingGuard;
    match NESTED.get() > NESTED_MAX {
        true => Err(damaged(ty)),
        false => read(),
    }
}

fn decode_record(ty: TypeId, b: &[u8]) -> Result<Datum> {
    nested(ty, || record_fields(ty, b))
}

fn record_fields(ty: TypeId, b: &[u8]) -> Result<Datum> {
    let mut rest = b;
    let word = |rest: &mut &[u8]| -> Result<u32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
        *rest = tail;
        Ok(u32::from_le_bytes(*head))
    };
    let count = word(&mut rest)? as usize;
    if count > rest.len() / 8 {
        return Err(damaged(ty));
    }
    let mut fields = Vec::with_capacity(count);
    for _ in 0..count {
        let (form, len) = (TypeId::new(word(&mut rest)?), word(&mut rest)?);
        if len == u32::MAX {
            fields.push(Datum::Null);
            continue;
        }
        let (field, tail) = rest
            .split_at_checked(len as usize)
            .ok_or_else(|| damaged(ty))?;
        fields.push(decode(form, field)?);
        rest = tail;
    }
    match rest.is_empty() {
        true => Ok(record::record(fields)),
        false => Err(damaged(ty)),
    }
}

/// The value of a stored form of type `ty`.
pub fn decode(ty: TypeId, b: &[u8]) -> Result<Datum> {
    Ok(match ty {
        oid::INT4 => Datum::Int4(i32::from_le_bytes(fixed(ty, b)?)),
        oid::INT8 | oid::XID8 | oid::TID => Datum::Int8(i64::from_le_bytes(fixed(ty, b)?)),
        oid::INT2 => Datum::Int2(i16::from_le_bytes(fixed(ty, b)?)),
        oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::CITEXT
        | oid::NAME
        | oid::UNKNOWN
        | oid::PG_NODE_TREE
        | oid::ACLITEM
        | oid::JSON
        | oid::XML
        | oid::JSONPATH
        | oid::PG_SNAPSHOT
        | oid::TXID_SNAPSHOT
        | oid::REFCURSOR
        | oid::CSTRING => Datum::Text(Arc::from(std::str::from_utf8(b).map_err(|_| damaged(ty))?)),
        oid::BOOL => Datum::Bool(fixed::<1>(ty, b)?[0] != 0),
        oid::CHAR => Datum::Char(fixed::<1>(ty, b)?[0]),
        oid::FLOAT4 => Datum::Float4(f32::from_le_bytes(fixed(ty, b)?)),
        oid::FLOAT8 => Datum::Float8(f64::from_le_bytes(fixed(ty, b)?)),
        oid::OID
        | oid::XID
        | oid::CID
        | oid::REGCLASS
        | oid::REGTYPE
        | oid::REGPROC
        | oid::REGNAMESPACE
        | oid::REGPROCEDURE
        | oid::REGOPER
        | oid::REGOPERATOR
        | oid::REGCOLLATION
        | oid::REGROLE
        | oid::REGCONFIG
        | oid::REGDICTIONARY => Datum::Oid(u32::from_le_bytes(fixed(ty, b)?)),
        oid::BYTEA => Datum::Bytea(Arc::from(b)),
        oid::TSVECTOR => Datum::TsVector(Arc::from(b)),
        oid::TSQUERY => Datum::TsQuery(Arc::from(b)),
        oid::DATE => Datum::Date(i32::from_le_bytes(fixed(ty, b)?)),
        oid::TIME => Datum::Time(i64::from_le_bytes(fixed(ty, b)?)),
        oid::TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(fixed(ty, b)?)),
        oid::TIMESTAMPTZ => Datum::TimestampTz(i64::from_le_bytes(fixed(ty, b)?)),
        oid::UUID => Datum::Uuid(Box::new(fixed(ty, b)?)),
        oid::INET | oid::CIDR => {
            let (bits, address) = b.split_first().ok_or_else(|| damaged(ty))?;
            let inet = Inet::of_bytes(address, *bits).ok_or_else(|| damaged(ty))?;
            Datum::inet(Inet {
                cidr: ty == oid::CIDR,
                ..inet
            })
        }
        oid::PG_LSN => Datum::Lsn(u64::from_le_bytes(fixed(ty, b)?)),
        _ if geometry::is_geometry(ty) => {
            let read = Geometry::decode(ty, b).ok_or_else(|| damaged(ty))?;
            Datum::Geometry(Arc::new(read))
        }
        oid::MACADDR => Datum::Mac(fixed(ty, b)?),
        oid::MACADDR8 => Datum::Mac8(fixed(ty, b)?),
        oid::MONEY => Datum::Money(i64::from_le_bytes(fixed(ty, b)?)),
        oid::TIMETZ => {
            let v: [u8; 12] = fixed(ty, b)?;
            let (micros, west) = v.split_at(8);
            Datum::TimeTz(TimeTz {
                micros: i64::from_le_bytes(fixed(ty, micros)?),
                west: i32::from_le_bytes(fixed(ty, west)?),
            })
        }
        oid::BIT | oid::VARBIT => {
            let (len, bytes) = b.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
            let len = u32::from_le_bytes(*len);
            if len > bits::BITS_MAX || bytes.len() != bits::bytes_of(len) {
                return Err(damaged(ty));
            }
            Datum::Bits(Bits::new(len, bytes.to_vec()))
        }
        oid::NUMERIC => Datum::numeric(decode_numeric(b)?),
        oid::HSTORE => super::hstore::from_stored(b)?,
        oid::JSONB => Datum::Jsonb(Jsonb::from_stored(b)?),
        oid::INTERVAL => {
            let v: [u8; 16] = fixed(ty, b)?;
            let word = |i: usize| i32::from_le_bytes([v[i], v[i + 1], v[i + 2], v[i + 3]]);
            let micros = i64::from(word(8) as u32) | (i64::from(word(12)) << 32);
            Datum::Interval(Box::new(Interval {
                months: word(0),
                days: word(4),
                micros,
            }))
        }
        _ if user::is_enum(ty) => Datum::Enum(EnumValue {
            ty,
            ordinal: u64::from_le_bytes(fixed(ty, b)?),
        }),
        _ if record::is_record(ty) => decode_record(ty, b)?,
        _ if range::is_range(ty) || ty == oid::ANYRANGE => decode_range(ty, b)?,
        _ if multirange::is_multirange(ty) || ty == oid::ANYMULTIRANGE => decode_multirange(ty, b)?,
        _ if info::category(ty) == 'A' || ty == oid::ANYARRAY => decode_array(ty, b)?,
        _ => {
            return Err(SqlError::internal(format!(
                "type {} has no stored form",
                info::type_name(ty)
            )));
        }
    })
}

fn decode_array(ty: TypeId, b: &[u8]) -> Result<Datum> {
    let mut rest = b;
    let word = |rest: &mut &[u8]| -> Result<u32> {
        let (head, tail) = rest.split_first_chunk::<4>().ok_or_else(|| damaged(ty))?;
        *rest = tail;
        Ok(u32::from_le_bytes(*head))
    };
    let element = TypeId::new(word(&mut rest)?);
    let lower = word(&mut rest)? as i32;
    let count = word(&mut rest)?;
    let mut dims = Vec::new();
    let count = match count & SHAPED {
        0 => count as usize,
        _ => {
            let several = 2..=DIMENSIONS_MAX;
            if !several.contains(&((count & !SHAPED) as usize)) {
                return Err(damaged(ty));
            }
            for _ in 0..count & !SHAPED {
                let (lower, len) = (word(&mut rest)? as i32, word(&mut rest)? as i32);
                dims.push(Dim { lower, len });
            }
            items_of(&dims).map_err(|_| damaged(ty))?
        }
    };
    if count > rest.len() / 4 {
        return Err(damaged(ty));
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let len = word(&mut rest)?;
        if len == u32::MAX {
            items.push(Datum::Null);
            continue;
        }
        if len as usize > rest.len() {
            return Err(damaged(ty));
        }
        let (item, tail) = rest.split_at(len as usize);
        // Arrays of arrays do not exist: the nesting is bounded.
        if info::category(element) == 'A' && !matches!(element, oid::INT2VECTOR | oid::OIDVECTOR) {
            return Err(damaged(ty));
        }
        items.push(decode(element, item)?);
        rest = tail;
    }
    let array = match dims.is_empty() {
        true => Array::flat(element, lower, items),
        false => Array::shaped(element, &dims, items).map_err(|_| damaged(ty))?,
    };
    Ok(Datum::Array(Arc::new(array)))
}

fn stored_label(ty: TypeId, stored: &[u8]) -> Result<Arc<str>> {
    user::known_label(EnumValue {
        ty,
        ordinal: u64::from_le_bytes(fixed(ty, stored)?),
    })
}

/// Text output straight from the stored form; common types make no [`Datum`].
pub fn stored_text_output(
    ty: SqlType,
    stored: &[u8],
    style: &OutputStyle<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match ty.oid {
        oid::INT4 => text_io::write_int(i64::from(i32::from_le_bytes(fixed(ty.oid, stored)?)), out),
        oid::INT8 => text_io::write_int(i64::from_le_bytes(fixed(ty.oid, stored)?), out),
        oid::INT2 => text_io::write_int(i64::from(i16::from_le_bytes(fixed(ty.oid, stored)?)), out),
        oid::TEXT | oid::VARCHAR | oid::BPCHAR | oid::CITEXT | oid::NAME | oid::JSON => {
            memory::ready(out, stored.len())?;
            out.extend_from_slice(stored);
        }
        oid::JSONB => json::checked(stored)?.write(out)?,
        oid::BOOL => out.push(if fixed::<1>(ty.oid, stored)?[0] != 0 {
            b't'
        } else {
            b'f'
        }),
        oid::NUMERIC => decode_numeric(stored)?.write(out),
        _ if user::is_enum(ty.oid) => {
            out.extend_from_slice(stored_label(ty.oid, stored)?.as_bytes())
        }
        _ => text_io::output(&decode(ty.oid, stored)?, ty, style, out)?,
    }
    Ok(())
}

/// Binary output straight from the stored form.
pub fn stored_binary_output(ty: SqlType, stored: &[u8], out: &mut Vec<u8>) -> Result<()> {
    memory::ready(out, stored.len())?;
    match ty.oid {
        oid::INT2
        | oid::INT4
        | oid::INT8
        | oid::FLOAT4
        | oid::FLOAT8
        | oid::OID
        | oid::DATE
        | oid::TIME
        | oid::TIMESTAMP
        | oid::TIMESTAMPTZ => out.extend(stored.iter().rev()),
        oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::CITEXT
        | oid::NAME
        | oid::JSON
        | oid::BYTEA
        | oid::BOOL
        | oid::UUID
        | oid::CHAR => {
            out.extend_from_slice(stored);
        }
        _ if user::is_enum(ty.oid) => {
            out.extend_from_slice(stored_label(ty.oid, stored)?.as_bytes())
        }
        _ => binary_io::binary_output(&decode(ty.oid, stored)?, ty, out)?,
    }
    Ok(())
}
