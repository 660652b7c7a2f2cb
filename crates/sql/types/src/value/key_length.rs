//! Where the columns of a key end, read from its bytes alone.
//!
//! Owns: [`KeyShape`], how long the form of a value of a type is in a key that [`key`](super::key) has written for an
//! ascending column with NULLs last. Whoever divides an index by its leading columns asks it how many bytes they take.
//!
//! Invariants:
//! - Of a key that was written, the length is exactly what the column took.
//! - Any other bytes, as the bounds of a scan may be, have a length that follows from the bytes within it alone, or
//!   none. So two keys with the same leading bytes have the same columns there.
//!
//! Does not: know the types whose forms follow from more than the type's number, as records and users' ranges do. They
//! have no shape, with and without a catalog at hand.

use super::key::{NULL_LAST, VALUE};
use super::types::oid;
use super::{info, multirange, range, user};
use crate::TypeId;

/// How the values of a type stand in a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyShape {
    /// So many bytes.
    Fixed(usize),
    /// Escaped bytes up to two zeros.
    Bytes,
    /// A class, and digits for the finite ones.
    Numeric,
    /// A family, twice an address, and the length of the mask.
    Network,
    /// Escaped bytes, and a length in bits.
    Bits,
    /// Elements of a type, a zero, and dimensions.
    Array(TypeId),
    /// Two bounds of a type.
    Range(TypeId),
    /// Ranges with bounds of a type, and a zero.
    Multirange(TypeId),
}

impl KeyShape {
    /// The shape of a type's values; none if the type is not known here.
    pub fn of(ty: TypeId) -> Option<KeyShape> {
        Self::of_scalar(ty).or_else(|| {
            let known = |of: TypeId| Self::of_scalar(of).map(|_| of);
            if matches!(ty, oid::INT2VECTOR | oid::OIDVECTOR) {
                None
            } else if multirange::is_multirange(ty) {
                let of = multirange::range_of(ty).and_then(range::built_in_subtype);
                of.and_then(known).map(KeyShape::Multirange)
            } else if range::is_range(ty) {
                let of = range::built_in_subtype(ty);
                of.and_then(known).map(KeyShape::Range)
            } else {
                info::element_of(ty).and_then(known).map(KeyShape::Array)
            }
        })
    }

    fn of_scalar(ty: TypeId) -> Option<KeyShape> {
        Some(match ty {
            oid::INT2 | oid::INT4 | oid::INT8 | oid::XID8 | oid::TID => KeyShape::Fixed(8),
            oid::FLOAT4 | oid::FLOAT8 | oid::MONEY | oid::PG_LSN => KeyShape::Fixed(8),
            oid::TIME | oid::TIMESTAMP | oid::TIMESTAMPTZ | oid::MACADDR8 => KeyShape::Fixed(8),
            oid::DATE => KeyShape::Fixed(4),
            oid::BOOL | oid::CHAR => KeyShape::Fixed(1),
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
            | oid::REGDICTIONARY => KeyShape::Fixed(4),
            oid::UUID | oid::INTERVAL => KeyShape::Fixed(16),
            oid::TIMETZ => KeyShape::Fixed(12),
            oid::MACADDR => KeyShape::Fixed(6),
            oid::TEXT
            | oid::VARCHAR
            | oid::BPCHAR
            | oid::NAME
            | oid::CITEXT
            | oid::BYTEA
            | oid::TSVECTOR
            | oid::TSQUERY => KeyShape::Bytes,
            oid::NUMERIC => KeyShape::Numeric,
            oid::INET | oid::CIDR => KeyShape::Network,
            oid::BIT | oid::VARBIT => KeyShape::Bits,
            _ if user::is_enum(ty) => KeyShape::Fixed(8),
            _ => return None,
        })
    }

    /// How many of the first bytes are one column: the byte that tells of NULL, and the value.
    #[inline]
    pub fn column_length(self, key: &[u8]) -> Option<usize> {
        let (first, rest) = key.split_first()?;
        match *first {
            NULL_LAST => Some(1),
            VALUE => Some(1 + self.value_length(rest)?),
            _ => None,
        }
    }

    #[inline]
    fn value_length(self, value: &[u8]) -> Option<usize> {
        match self {
            KeyShape::Fixed(length) => (value.len() >= length).then_some(length),
            KeyShape::Bytes => bytes_length(value),
            KeyShape::Numeric => numeric_length(value),
            KeyShape::Network => {
                let address = match value.first()? {
                    0 => 4,
                    1 => 16,
                    _ => return None,
                };
                KeyShape::Fixed(2 + 2 * address).value_length(value)
            }
            KeyShape::Bits => {
                let length = bytes_length(value)? + 4;
                (value.len() >= length).then_some(length)
            }
            KeyShape::Array(element) => array_length(KeyShape::of_scalar(element)?, value),
            KeyShape::Range(subtype) => range_length(KeyShape::of_scalar(subtype)?, value),
            KeyShape::Multirange(subtype) => {
                let subtype = KeyShape::of_scalar(subtype)?;
                let mut at = 0;
                // An empty range is in none, so a zero is the end.
                while *value.get(at)? != 0 {
                    at += range_length(subtype, value.get(at..)?)?;
                }
                Some(at + 1)
            }
        }
    }
}

fn bytes_length(value: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += value.get(at..)?.iter().position(|byte| *byte == 0)? + 1;
        match value.get(at)? {
            0 => return Some(at + 1),
            0xff => at += 1,
            _ => return None,
        }
    }
}

fn numeric_length(value: &[u8]) -> Option<usize> {
    let end = match value.first()? {
        0 | 2 | 4 | 5 => return Some(1),
        // Behind the class everything is inverted.
        1 => 0xff,
        3 => 0,
        _ => return None,
    };
    const DIGITS: usize = 1 + 4;
    let digits = value.get(DIGITS..)?.iter().position(|byte| *byte == end)?;
    Some(DIGITS + digits + 1)
}

fn array_length(element: KeyShape, value: &[u8]) -> Option<usize> {
    let mut at = 0;
    while *value.get(at)? != 0 {
        at += element.column_length(value.get(at..)?)?;
    }
    let dimensions = usize::from(*value.get(at + 1)?);
    let length = at + 2 + 8 * dimensions;
    (value.len() >= length).then_some(length)
}

fn range_length(subtype: KeyShape, value: &[u8]) -> Option<usize> {
    match value.first()? {
        0 => return Some(1),
        1 => {}
        _ => return None,
    }
    let mut at = 1;
    // A lower bound begins with 1, an upper one with 0; an infinite one is the other byte alone.
    for finite in [1, 0] {
        let first = *value.get(at)?;
        at += 1;
        if first == finite {
            at += subtype.value_length(value.get(at..)?)? + 1;
        } else if first > 1 {
            return None;
        }
    }
    (value.len() >= at).then_some(at)
}
