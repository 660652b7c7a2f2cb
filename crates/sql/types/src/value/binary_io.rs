//! Binary wire form of values: PostgreSQL's send and receive functions.
//!
//! Owns: [`binary_input`] and [`binary_output`]. Input comes from clients: every length is checked, wrong ones are
//! 22P03 or 08P01.

use super::array::{Dim, items_of};
use super::build;
use super::geometry::{self, Geometry};
use super::numeric::Numeric;
use super::types::{SqlType, oid};
use super::{
    Array, Bits, Datum, Inet, Interval, TimeTz, bits, calendar, info, json, network, record,
    timetz, user,
};
use super::{snapshot, tid};
use crate::TypeId;
use crate::error::{Result, SqlError};
use crate::memory;
use crate::value::search::{query, vector};
use crate::value::xml;
use logstead_types::SqlState;
use std::sync::Arc;

/// The only version of jsonb's wire form.
const JSONB_VERSION: u8 = 1;

fn bad_length() -> SqlError {
    SqlError::new(
        SqlState::INVALID_BINARY_REPRESENTATION,
        "incorrect binary data format",
    )
}

pub(super) fn too_short() -> SqlError {
    SqlError::new(
        SqlState::PROTOCOL_VIOLATION,
        "insufficient data left in message",
    )
}

fn fixed<const N: usize>(b: &[u8]) -> Result<[u8; N]> {
    if b.len() < N {
        return Err(too_short());
    }
    b.try_into().map_err(|_| bad_length())
}

/// Text as clients send it: UTF-8 without zero bytes.
pub fn text(b: &[u8]) -> Result<&str> {
    let invalid = |bytes: &[u8]| {
        let list: Vec<String> = bytes.iter().map(|b| format!("0x{b:02x}")).collect();
        SqlError::new(
            SqlState::CHARACTER_NOT_IN_REPERTOIRE,
            format!(
                "invalid byte sequence for encoding \"UTF8\": {}",
                list.join(" ")
            ),
        )
    };
    if b.contains(&0) {
        return Err(invalid(&[0]));
    }
    std::str::from_utf8(b).map_err(|e| {
        let at = e.valid_up_to();
        let len = e.error_len().unwrap_or(b.len() - at);
        invalid(&b[at..at + len])
    })
}

/// Reads the binary form of a value. The modifier is applied as in an assignment.
pub fn binary_input(ty: SqlType, b: &[u8]) -> Result<Datum> {
    let ty = user::base_type(ty);
    let d = match ty.oid {
        oid::INT4 => Datum::Int4(i32::from_be_bytes(fixed(b)?)),
        oid::TID => tid::receive(fixed(b)?),
        oid::INT8 | oid::XID8 => Datum::Int8(i64::from_be_bytes(fixed(b)?)),
        oid::INT2 => Datum::Int2(i16::from_be_bytes(fixed(b)?)),
        oid::FLOAT4 => Datum::Float4(f32::from_be_bytes(fixed(b)?)),
        oid::FLOAT8 => Datum::Float8(f64::from_be_bytes(fixed(b)?)),
        oid::BOOL => Datum::Bool(fixed::<1>(b)?[0] != 0),
        oid::CHAR => Datum::Char(fixed::<1>(b)?[0]),
        oid::TEXT
        | oid::VARCHAR
        | oid::BPCHAR
        | oid::CITEXT
        | oid::REFCURSOR
        | oid::UNKNOWN
        | oid::CSTRING => Datum::text(text(b)?),
        oid::NAME => {
            let t = text(b)?;
            if t.len() > 63 {
                return Err(
                    SqlError::new(SqlState::NAME_TOO_LONG, "identifier too long")
                        .detail("Identifier must be less than 64 characters."),
                );
            }
            Datum::text(t)
        }
        oid::JSON => {
            let t = text(b)?;
            json::text::parse(t, false)?;
            Datum::text(t)
        }
        oid::XML => {
            let t = xml::received(b)?;
            xml::check(&t, xml::XmlOption::of(None))?;
            Datum::text(t)
        }
        oid::HSTORE => return super::hstore::receive(b),
        oid::JSONB => {
            let (version, rest) = b.split_first().ok_or_else(too_short)?;
            if *version != JSONB_VERSION {
                return Err(SqlError::internal(format!(
                    "unsupported jsonb version number {version}"
                )));
            }
            Datum::Jsonb(json::Jsonb::parse(text(rest)?)?)
        }
        oid::JSONPATH => {
            let (version, rest) = b.split_first().ok_or_else(too_short)?;
            if *version != JSONB_VERSION {
                return Err(SqlError::internal(format!(
                    "unsupported jsonpath version number: {version}"
                )));
            }
            Datum::text(json::path::print(&json::path::parse(text(rest)?)?))
        }
        oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT => snapshot::receive(b)?,
        oid::BYTEA => Datum::Bytea(Arc::from(b)),
        oid::TSVECTOR => vector::receive(b)?,
        oid::TSQUERY => query::receive(b)?,
        oid::UUID => Datum::Uuid(Box::new(fixed(b)?)),
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
        | oid::REGDICTIONARY => Datum::Oid(u32::from_be_bytes(fixed(b)?)),
        oid::DATE => {
            let v = i32::from_be_bytes(fixed(b)?);
            if v != i32::MIN
                && v != i32::MAX
                && !(calendar::DATE_MIN..calendar::DATE_END).contains(&i64::from(v))
            {
                return Err(SqlError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "date out of range",
                ));
            }
            Datum::Date(v)
        }
        oid::TIME => {
            let v = i64::from_be_bytes(fixed(b)?);
            if !(0..=calendar::DAY).contains(&v) {
                return Err(SqlError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "time out of range",
                ));
            }
            Datum::Time(v)
        }
        oid::TIMETZ => {
            let v: [u8; 12] = fixed(b)?;
            let (micros, west) = v.split_at(8);
            let (micros, west) = (
                i64::from_be_bytes(fixed(micros)?),
                i32::from_be_bytes(fixed(west)?),
            );
            if !(0..=calendar::DAY).contains(&micros) {
                return Err(SqlError::new(
                    SqlState::DATETIME_FIELD_OVERFLOW,
                    "time out of range",
                ));
            }
            if west <= -timetz::WEST_END || west >= timetz::WEST_END {
                return Err(SqlError::new(
                    SqlState::INVALID_TIME_ZONE_DISPLACEMENT_VALUE,
                    "time zone displacement out of range",
                ));
            }
            Datum::TimeTz(TimeTz { micros, west })
        }
        oid::BIT | oid::VARBIT => {
            let mut rest = b;
            let len = u32::try_from(word(&mut rest)?)
                .ok()
                .filter(|n| *n <= bits::BITS_MAX);
            let len = len.ok_or_else(|| {
                SqlError::new(
                    SqlState::INVALID_BINARY_REPRESENTATION,
                    "invalid length in external bit string",
                )
            })?;
            if rest.len() < bits::bytes_of(len) {
                return Err(too_short());
            }
            if rest.len() > bits::bytes_of(len) {
                return Err(bad_length());
            }
            Datum::Bits(Bits::new(len, rest.to_vec()))
        }
        oid::TIMESTAMP => Datum::Timestamp(moment(b)?),
        oid::TIMESTAMPTZ => Datum::TimestampTz(moment(b)?),
        oid::INTERVAL => {
            let v: [u8; 16] = fixed(b)?;
            let (micros, rest) = v.split_at(8);
            Datum::Interval(Box::new(Interval {
                micros: i64::from_be_bytes(fixed(micros)?),
                days: i32::from_be_bytes(fixed(&rest[..4])?),
                months: i32::from_be_bytes(fixed(&rest[4..])?),
            }))
        }
        oid::NUMERIC => Datum::numeric(numeric_input(b)?),
        oid::INET | oid::CIDR => Datum::inet(inet_input(b, ty.oid == oid::CIDR)?),
        oid::PG_LSN => Datum::Lsn(u64::from_be_bytes(fixed(b)?)),
        _ if geometry::is_geometry(ty.oid) => Geometry::receive(ty.oid, b)?.datum(),
        oid::MACADDR => Datum::Mac(fixed(b)?),
        oid::MONEY => Datum::Money(i64::from_be_bytes(fixed(b)?)),
        oid::MACADDR8 => Datum::Mac8(match b.len() {
            6 => network::widen(fixed(b)?),
            _ => fixed(b)?,
        }),
        _ if user::is_enum(ty.oid) => user::enum_input(ty.oid, text(b)?)?,
        _ if super::record::is_record(ty.oid) => return super::record::record_receive(ty, b),
        _ if super::range::is_range(ty.oid) => return super::range::range_receive(ty, b),
        _ if super::multirange::is_multirange(ty.oid) => {
            return super::multirange::multirange_receive(ty, b);
        }
        _ if info::category(ty.oid) == 'A' => array_input(ty.oid, b)?,
        _ => {
            let name = info::format_type_bare(ty.oid);
            return Err(SqlError::new(
                SqlState::UNDEFINED_FUNCTION,
                format!("no binary input function available for type {name}"),
            ));
        }
    };
    if ty.typmod >= 0 {
        super::typmod::coerce_typmod(d, ty, false)
    } else {
        Ok(d)
    }
}

/// The numbers that stand for the families in the wire form.
const FAMILY_V4: u8 = 2;
const FAMILY_V6: u8 = 3;

fn inet_input(b: &[u8], cidr: bool) -> Result<Inet> {
    let name = if cidr { "cidr" } else { "inet" };
    let invalid = |what: &str| {
        SqlError::new(
            SqlState::INVALID_BINARY_REPRESENTATION,
            format!("invalid {what}external \"{name}\" value"),
        )
    };
    // The third byte, whether it is a cidr, was never asked.
    let Some(([family, bits, _, length], address)) = b.split_first_chunk::<4>() else {
        return Err(too_short());
    };
    let size = match *family {
        FAMILY_V4 => 4,
        FAMILY_V6 => 16,
        _ => return Err(invalid("address family in ")),
    };
    if usize::from(*bits) > size * 8 {
        return Err(invalid("bits in "));
    }
    if usize::from(*length) != size {
        return Err(invalid("length in "));
    }
    if address.len() < size {
        return Err(too_short());
    }
    let found = Inet::of_bytes(address, *bits).filter(|_| address.len() == size);
    let found = found.ok_or_else(bad_length)?;
    if cidr && found.address != found.network() {
        return Err(invalid("").detail("Value has bits set to right of mask."));
    }
    Ok(Inet { cidr, ..found })
}

fn moment(b: &[u8]) -> Result<i64> {
    let v = i64::from_be_bytes(fixed(b)?);
    if v == i64::MIN || v == i64::MAX {
        Ok(v)
    } else {
        calendar::check_timestamp(v)
    }
}

fn word(b: &mut &[u8]) -> Result<i32> {
    let (head, tail) = b.split_first_chunk::<4>().ok_or_else(too_short)?;
    *b = tail;
    Ok(i32::from_be_bytes(*head))
}

fn short(b: &mut &[u8]) -> Result<u16> {
    let (head, tail) = b.split_first_chunk::<2>().ok_or_else(too_short)?;
    *b = tail;
    Ok(u16::from_be_bytes(*head))
}

fn array_input(ty: TypeId, b: &[u8]) -> Result<Datum> {
    let invalid = |m: String| SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, m);
    let vector = matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR);
    let mut b = b;
    let dimensions = word(&mut b)?;
    let flags = word(&mut b)?;
    let element = TypeId::new(word(&mut b)?.cast_unsigned());
    if !(0..=6).contains(&dimensions) {
        return Err(invalid(format!(
            "invalid number of dimensions: {dimensions}"
        )));
    }
    if flags != 0 && flags != 1 {
        return Err(invalid(format!("invalid array flags: {flags}")));
    }
    let wanted = info::element_of(ty).unwrap_or(oid::INVALID);
    if element != wanted {
        return Err(SqlError::new(
            SqlState::DATATYPE_MISMATCH,
            format!(
                "binary data has array element type {element} ({}) instead of expected {wanted} ({})",
                info::format_type_bare(element),
                info::format_type_bare(wanted)
            ),
        ));
    }
    let mut dims = Vec::new();
    for _ in 0..dimensions {
        let (len, lower) = (word(&mut b)?, word(&mut b)?);
        if len < 0 {
            return Err(bad_length());
        }
        if lower.checked_add(len).is_none() {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                format!("array lower bound is too large: {lower}"),
            ));
        }
        dims.push(Dim { lower, len });
    }
    let count = if dims.is_empty() { 0 } else { items_of(&dims)? };
    if count > b.len() / 4 {
        return Err(too_short());
    }
    if vector && dims.len() > 1 {
        return Err(invalid(format!(
            "invalid number of dimensions: {dimensions}"
        )));
    }
    let mut items = Vec::with_capacity(count);
    for _ in 0..count {
        let len = word(&mut b)?;
        if len == -1 {
            items.push(Datum::Null);
            continue;
        }
        let len = usize::try_from(len).map_err(|_| too_short())?;
        if len > b.len() {
            return Err(too_short());
        }
        let (item, tail) = b.split_at(len);
        items.push(binary_input(SqlType::of(element), item)?);
        b = tail;
    }
    if !b.is_empty() {
        return Err(bad_length());
    }
    let array = match vector {
        true => Array::flat(element, dims.first().map_or(0, |dim| dim.lower), items),
        false => Array::shaped(element, &dims, items)?,
    };
    Ok(Datum::Array(Arc::new(array)))
}

const SIGN_NEGATIVE: u16 = 0x4000;
const SIGN_NAN: u16 = 0xc000;
const SIGN_INF: u16 = 0xd000;
const SIGN_NEG_INF: u16 = 0xf000;

fn numeric_input(b: &[u8]) -> Result<Numeric> {
    let invalid = |m: &str| SqlError::new(SqlState::INVALID_BINARY_REPRESENTATION, m);
    let mut b = b;
    let count = short(&mut b)?;
    let weight = short(&mut b)? as i16;
    let sign = short(&mut b)?;
    let scale = short(&mut b)?;
    match sign {
        SIGN_NAN => return Ok(Numeric::NaN),
        SIGN_INF => return Ok(Numeric::Infinity),
        SIGN_NEG_INF => return Ok(Numeric::NegInfinity),
        0 | SIGN_NEGATIVE => {}
        _ => return Err(invalid("invalid sign in external \"numeric\" value")),
    }
    if u32::from(scale) > super::numeric::SCALE_MAX {
        return Err(invalid("invalid scale in external \"numeric\" value"));
    }
    // Digits are collected as decimal text: exact, whatever their number.
    let mut text = Vec::with_capacity(usize::from(count) * 4 + 8);
    if sign == SIGN_NEGATIVE {
        text.push(b'-');
    }
    text.push(b'0');
    for _ in 0..count {
        let d = short(&mut b)?;
        if d > 9999 {
            return Err(invalid("invalid digit in external \"numeric\" value"));
        }
        text.extend_from_slice(format!("{d:04}").as_bytes());
    }
    if !b.is_empty() {
        return Err(bad_length());
    }
    let exponent = (i64::from(weight) + 1 - i64::from(count)) * 4;
    text.extend_from_slice(format!("e{exponent}").as_bytes());
    let text = String::from_utf8(text).map_err(|_| bad_length())?;
    let n = Numeric::parse(&text)?;
    // The declared scale cuts (never rounds) the digits, as numeric_recv does.
    Ok(if scale == 0 || n.scale() != Some(u32::from(scale)) {
        rescale(&n, scale)
    } else {
        n
    })
}

fn rescale(n: &Numeric, scale: u16) -> Numeric {
    match n.big() {
        Some((m, s)) if s <= u32::from(scale) => Numeric::from_big(
            m * super::numeric::pow10(u32::from(scale) - s),
            u32::from(scale),
        ),
        Some((m, s)) => Numeric::from_big(
            m / super::numeric::pow10(s - u32::from(scale)),
            u32::from(scale),
        ),
        None => n.clone(),
    }
}

fn numeric_output(n: &Numeric, out: &mut Vec<u8>) {
    let head = |count: u16, weight: i16, sign: u16, scale: u16, out: &mut Vec<u8>| {
        out.extend_from_slice(&count.to_be_bytes());
        out.extend_from_slice(&weight.to_be_bytes());
        out.extend_from_slice(&sign.to_be_bytes());
        out.extend_from_slice(&scale.to_be_bytes());
    };
    let scale = match n {
        Numeric::NaN => return head(0, 0, SIGN_NAN, 0, out),
        Numeric::Infinity => return head(0, 0, SIGN_INF, 0x20, out),
        Numeric::NegInfinity => return head(0, 0, SIGN_NEG_INF, 0x20, out),
        Numeric::Small { scale, .. } | Numeric::Big { scale, .. } => *scale,
    };
    let (digits, e) = n.digits();
    if digits.is_empty() {
        return head(0, 0, 0, scale, out);
    }
    let weight = e.div_euclid(4);
    // Blank digits in front so that groups of four align with the decimal point.
    let lead = (3 - e.rem_euclid(4)) as usize;
    let total = (lead + digits.len()).div_ceil(4);
    let sign = if n.signum() < 0 { SIGN_NEGATIVE } else { 0 };
    head(total as u16, weight as i16, sign, scale, out);
    for g in 0..total {
        let mut v = 0u16;
        for i in 0..4 {
            let at = (g * 4 + i).checked_sub(lead);
            let d = at.and_then(|i| digits.get(i)).map_or(0, |c| c - b'0');
            v = v * 10 + u16::from(d);
        }
        out.extend_from_slice(&v.to_be_bytes());
    }
}

/// Appends the binary form. NULL appends nothing.
pub fn binary_output(d: &Datum, ty: SqlType, out: &mut Vec<u8>) -> Result<()> {
    match d {
        Datum::Text(_)
        | Datum::Bytea(_)
        | Datum::TsVector(_)
        | Datum::TsQuery(_)
        | Datum::Geometry(_)
        | Datum::Bits(_) => {
            // None of these forms is much longer than the value.
            memory::ready(out, build::outside_bytes(d).saturating_mul(2))?;
        }
        _ => {}
    }
    match d {
        Datum::Null => {}
        Datum::Bool(v) => out.push(u8::from(*v)),
        Datum::Int2(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int4(v) | Datum::Date(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Int8(v) if ty.oid == oid::TID => tid::send(*v, out),
        Datum::Int8(v)
        | Datum::Money(v)
        | Datum::Time(v)
        | Datum::Timestamp(v)
        | Datum::TimestampTz(v) => {
            out.extend_from_slice(&v.to_be_bytes());
        }
        Datum::Float4(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Float8(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Oid(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Char(v) => out.push(*v),
        Datum::Text(v) if ty.oid == oid::JSONPATH => {
            out.push(JSONB_VERSION);
            out.extend_from_slice(v.as_bytes());
        }
        Datum::Text(v) if matches!(ty.oid, oid::PG_SNAPSHOT | oid::TXID_SNAPSHOT) => {
            snapshot::send(v, out)?;
        }
        Datum::Text(v) if ty.oid == oid::XML => {
            out.extend_from_slice(xml::shown(v).as_bytes());
        }
        Datum::Text(v) => out.extend_from_slice(v.as_bytes()),
        Datum::TsVector(v) => vector::send(v, out),
        Datum::TsQuery(v) => query::send(v, out),
        Datum::Bytea(v) => out.extend_from_slice(v),
        Datum::Uuid(v) => out.extend_from_slice(&**v),
        Datum::Interval(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.days.to_be_bytes());
            out.extend_from_slice(&v.months.to_be_bytes());
        }
        Datum::Numeric(n) => numeric_output(n, out),
        Datum::Jsonb(j) if ty.oid == oid::HSTORE => super::hstore::send(j.view(), out),
        Datum::Jsonb(j) => {
            out.push(JSONB_VERSION);
            j.view().write(out)?;
        }
        Datum::Inet(v) => {
            let bytes = v.bytes();
            out.push(if v.v6 { FAMILY_V6 } else { FAMILY_V4 });
            out.push(v.bits);
            out.push(u8::from(ty.oid == oid::CIDR));
            out.push(bytes.len() as u8);
            out.extend_from_slice(&bytes);
        }
        Datum::Mac(v) => out.extend_from_slice(v),
        Datum::Mac8(v) => out.extend_from_slice(v),
        Datum::TimeTz(v) => {
            out.extend_from_slice(&v.micros.to_be_bytes());
            out.extend_from_slice(&v.west.to_be_bytes());
        }
        Datum::Lsn(v) => out.extend_from_slice(&v.to_be_bytes()),
        Datum::Geometry(v) => v.send(out),
        Datum::Bits(v) => {
            out.extend_from_slice(&v.len().to_be_bytes());
            out.extend_from_slice(v.bytes());
        }
        Datum::Enum(v) => match user::label(*v) {
            Some(label) => out.extend_from_slice(label.as_bytes()),
            None => out.extend_from_slice(format!("({})", v.ordinal).as_bytes()),
        },
        Datum::Array(a) if a.element == record::FIELDS => super::record::record_send(a, ty, out)?,
        Datum::Array(a) if a.element == oid::ANYRANGE => super::range::range_send(a, ty, out)?,
        Datum::Array(a) if a.element == oid::ANYMULTIRANGE => {
            super::multirange::multirange_send(a, ty, out)?;
        }
        Datum::Array(a) => {
            let element = info::element_type(ty).unwrap_or(SqlType::of(a.element));
            // An empty vector still has its one dimension.
            let empty = a.items.is_empty() && !matches!(ty.oid, oid::INT2VECTOR | oid::OIDVECTOR);
            let dimensions = match &a.shape {
                Some(shape) => shape.len() as i32,
                None => i32::from(!empty),
            };
            out.extend_from_slice(&dimensions.to_be_bytes());
            out.extend_from_slice(&i32::from(a.items.iter().any(Datum::is_null)).to_be_bytes());
            out.extend_from_slice(&element.oid.get().to_be_bytes());
            if empty {
                return Ok(());
            }
            match &a.shape {
                Some(shape) => {
                    for dim in shape.iter() {
                        out.extend_from_slice(&dim.len.to_be_bytes());
                        out.extend_from_slice(&dim.lower.to_be_bytes());
                    }
                }
                None => {
                    out.extend_from_slice(&(a.items.len() as i32).to_be_bytes());
                    out.extend_from_slice(&a.lower.to_be_bytes());
                }
            }
            for item in &a.items {
                let at = out.len();
                out.extend_from_slice(&(-1i32).to_be_bytes());
                if !item.is_null() {
                    binary_output(item, element, out)?;
                    let len = (out.len() - at - 4) as i32;
                    out[at..at + 4].copy_from_slice(&len.to_be_bytes());
                }
                memory::step(out)?;
            }
        }
    }
    Ok(())
}
