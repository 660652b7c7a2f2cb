//! Keys of indexes: byte strings that compare with `memcmp` exactly as the values do, and can be concatenated.
//!
//! One column: a byte for NULL or not (its value depends on where NULLs sort), then the value's own form, inverted for
//! descending columns. Every form is self-delimiting. The form of an integer does not depend on its width, so that a
//! `bigint` value can search an `integer` index. Text is in C order: bytes, with 0 escaped and a double terminator.
//! Equal values have equal keys: -0 and 0, NaNs, numerics of different scale, `char(n)` with different padding,
//! `citext` of different case.

use super::compare::{folded, trim_blanks};
use super::numeric::Numeric;
use super::stored::decode;
use super::types::oid;
use super::{Datum, info, record};
use crate::TypeId;
use crate::error::Result;
use crate::value::search::query;

const NULL_FIRST: u8 = 0x00;
pub(super) const VALUE: u8 = 0x01;
pub(super) const NULL_LAST: u8 = 0x02;

/// Appends one column of a key.
pub fn encode_key(ty: TypeId, d: &Datum, desc: bool, nulls_first: bool, out: &mut Vec<u8>) {
    if d.is_null() {
        out.push(if nulls_first { NULL_FIRST } else { NULL_LAST });
        return;
    }
    out.push(VALUE);
    let start = out.len();
    value_key(ty, d, out);
    if desc {
        invert(&mut out[start..]);
    }
}

/// Appends one column of a key from the value's stored form (`None` for NULL).
pub fn encode_key_stored(
    ty: TypeId,
    stored: Option<&[u8]>,
    desc: bool,
    nulls_first: bool,
    out: &mut Vec<u8>,
) -> Result<()> {
    let Some(b) = stored else {
        out.push(if nulls_first { NULL_FIRST } else { NULL_LAST });
        return Ok(());
    };
    out.push(VALUE);
    let start = out.len();
    match ty {
        oid::INT4 | oid::INT8 | oid::INT2 if !b.is_empty() && b.len() <= 8 => {
            let fill = if b[b.len() - 1] & 0x80 != 0 { 0xff } else { 0 };
            let mut wide = [fill; 8];
            wide[..b.len()].copy_from_slice(b);
            integer(i64::from_le_bytes(wide), out);
        }
        oid::TEXT | oid::VARCHAR | oid::NAME | oid::BYTEA | oid::TSVECTOR => {
            bytes(b, out);
        }
        oid::BPCHAR => {
            let end = b.iter().rposition(|&c| c != b' ').map_or(0, |i| i + 1);
            bytes(&b[..end], out);
        }
        oid::UUID => out.extend_from_slice(b),
        _ => value_key(ty, &decode(ty, b)?, out),
    }
    if desc {
        invert(&mut out[start..]);
    }
    Ok(())
}

fn invert(b: &mut [u8]) {
    for x in b {
        *x = !*x;
    }
}

fn integer(v: i64, out: &mut Vec<u8>) {
    out.extend_from_slice(&((v as u64) ^ (1 << 63)).to_be_bytes());
}

pub(super) fn bytes(b: &[u8], out: &mut Vec<u8>) {
    if b.contains(&0) {
        for &c in b {
            out.push(c);
            if c == 0 {
                out.push(0xff);
            }
        }
    } else {
        // No text has it.
        out.extend_from_slice(b);
    }
    out.extend_from_slice(&[0, 0]);
}

pub(super) fn float(v: f64, out: &mut Vec<u8>) {
    let v = if v == 0.0 {
        0.0
    } else if v.is_nan() {
        f64::NAN.copysign(1.0)
    } else {
        v
    };
    let bits = v.to_bits();
    let ordered = if bits >> 63 == 1 {
        !bits
    } else {
        bits | (1 << 63)
    };
    out.extend_from_slice(&ordered.to_be_bytes());
}

fn value_key(ty: TypeId, d: &Datum, out: &mut Vec<u8>) {
    match d {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => integer(i64::from(*v), out),
        Datum::Int4(v) => integer(i64::from(*v), out),
        Datum::Int8(v) => integer(*v, out),
        Datum::Float4(v) => float(f64::from(*v), out),
        Datum::Float8(v) => float(*v, out),
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) if ty == oid::BPCHAR => bytes(trim_blanks(v).as_bytes(), out),
        Datum::Text(v) if ty == oid::CITEXT => bytes(folded(v).as_bytes(), out),
        Datum::Text(v) => bytes(v.as_bytes(), out),
        Datum::Bytea(v) | Datum::TsVector(v) => bytes(v, out),
        Datum::TsQuery(v) => bytes(query::ordered(v), out),
        Datum::Date(v) => out.extend_from_slice(&((*v as u32) ^ (1 << 31)).to_be_bytes()),
        Datum::Money(v) | Datum::Time(v) | Datum::Timestamp(v) | Datum::TimestampTz(v) => {
            integer(*v, out)
        }
        Datum::Uuid(v) => out.extend_from_slice(&**v),
        Datum::Interval(v) => {
            out.extend_from_slice(&((v.span() as u128) ^ (1 << 127)).to_be_bytes())
        }
        Datum::Numeric(n) => numeric(n, out),
        Datum::Jsonb(j) if ty == oid::HSTORE => super::hstore::write_key(j.view(), out),
        Datum::Jsonb(j) => j.view().write_key(out),
        // Places order labels, and never change.
        Datum::Enum(v) => out.extend_from_slice(&v.ordinal.to_be_bytes()),
        // As they order: the family, the network, the mask, and what of the address is behind it.
        Datum::Inet(v) => {
            out.push(u8::from(v.v6));
            let network = super::Inet {
                address: v.network(),
                ..**v
            };
            out.extend_from_slice(&network.bytes());
            out.push(v.bits);
            out.extend_from_slice(&v.bytes());
        }
        Datum::Mac(v) => out.extend_from_slice(v),
        Datum::Mac8(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => {
            integer(v.utc_micros(), out);
            out.extend_from_slice(&((v.west as u32) ^ (1 << 31)).to_be_bytes());
        }
        Datum::Geometry(v) => v.write_key(out),
        Datum::Lsn(v) => out.extend_from_slice(&v.to_be_bytes()),
        // Of strings of the same bytes the one with more bits is longer.
        Datum::Bits(v) => {
            bytes(v.bytes(), out);
            out.extend_from_slice(&v.len().to_be_bytes());
        }
        Datum::Array(a) if a.element == oid::ANYRANGE => {
            super::range::write_key(a, out, &|value, out| value_key(oid::INVALID, value, out));
        }
        Datum::Array(a) if a.element == oid::ANYMULTIRANGE => {
            super::multirange::write_key(a, out, &|value, out| value_key(oid::INVALID, value, out));
        }
        Datum::Array(a) => {
            let element = match a.element {
                record::FIELDS => oid::RECORD,
                oid::INVALID => info::element_of(ty).unwrap_or(oid::INVALID),
                element => element,
            };
            for item in &a.items {
                encode_key(element, item, false, false, out);
            }
            // Below every element's first byte: a prefix sorts before its extensions.
            out.push(0);
            // Of arrays with the same elements: the number of dimensions, their lengths, their first subscripts. A
            // record has none.
            if a.element == record::FIELDS {
                return;
            }
            let dims = a.dims();
            out.push(dims.len() as u8);
            for dim in &dims {
                out.extend_from_slice(&dim.len.to_be_bytes());
            }
            for dim in &dims {
                out.extend_from_slice(&((dim.lower as u32) ^ (1 << 31)).to_be_bytes());
            }
        }
    }
}

/// Class byte, exponent, digits in pairs (1..=100), a zero at the end; all but the class inverted for negative values.
pub(super) fn numeric(n: &Numeric, out: &mut Vec<u8>) {
    let class = match n {
        Numeric::NegInfinity => 0,
        Numeric::Infinity => 4,
        Numeric::NaN => 5,
        _ if n.is_zero() => 2,
        _ if n.signum() < 0 => 1,
        _ => 3,
    };
    out.push(class);
    if class != 1 && class != 3 {
        return;
    }
    let start = out.len();
    let (digits, e) = n.digits();
    out.extend_from_slice(&((e as i32 as u32) ^ (1 << 31)).to_be_bytes());
    for pair in digits.chunks(2) {
        let hi = pair[0] - b'0';
        let lo = pair.get(1).map_or(0, |c| c - b'0');
        out.push(hi * 10 + lo + 1);
    }
    out.push(0);
    if class == 1 {
        invert(&mut out[start..]);
    }
}
