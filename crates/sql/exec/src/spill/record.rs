//! Rows as bytes: what stands in a temporary file.
//!
//! A record is the length of its key (u32), the length of its row (u32), the key, and the row's values one after the
//! other, each a byte that says which kind of [`Datum`] it is, then its bytes. What has no fixed length is preceded by
//! it (u32). Nothing of this outlives the server that wrote it, so there are no versions; blocks are checked as a whole
//! (`file`), and what does not make sense all the same is an error, never a panic.

use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::array::Dim;
use logstead_sql_types::value::geometry::is_geometry;
use logstead_sql_types::value::{Array, Datum, EnumValue, Interval, Jsonb, oid, stored};
use logstead_types::SqlState;
use std::ops::Range;
use std::sync::Arc;

/// Bytes in front of a record's key.
const HEAD_BYTES: usize = 8;

mod tag {
    pub(super) const NULL: u8 = 0;
    pub(super) const BOOL: u8 = 1;
    pub(super) const INT2: u8 = 2;
    pub(super) const INT4: u8 = 3;
    pub(super) const INT8: u8 = 4;
    pub(super) const FLOAT4: u8 = 5;
    pub(super) const FLOAT8: u8 = 6;
    pub(super) const OID: u8 = 7;
    pub(super) const CHAR: u8 = 8;
    pub(super) const TEXT: u8 = 9;
    pub(super) const NUMERIC: u8 = 10;
    pub(super) const BYTEA: u8 = 11;
    pub(super) const DATE: u8 = 12;
    pub(super) const TIME: u8 = 13;
    pub(super) const TIMESTAMP: u8 = 14;
    pub(super) const TIMESTAMPTZ: u8 = 15;
    pub(super) const UUID: u8 = 16;
    pub(super) const INTERVAL: u8 = 17;
    pub(super) const JSONB: u8 = 18;
    pub(super) const ARRAY: u8 = 19;
    pub(super) const ENUM: u8 = 20;
    pub(super) const INET: u8 = 21;
    pub(super) const CIDR: u8 = 22;
    pub(super) const MACADDR: u8 = 23;
    pub(super) const MACADDR8: u8 = 24;
    pub(super) const TIMETZ: u8 = 25;
    pub(super) const BIT: u8 = 26;
    pub(super) const MONEY: u8 = 27;
    pub(super) const TSVECTOR: u8 = 28;
    pub(super) const TSQUERY: u8 = 29;
    pub(super) const GEOMETRY: u8 = 30;
    pub(super) const LSN: u8 = 31;
}

/// Arrays (records are arrays of their fields) lie within each other no deeper than statements nest.
const DEPTH_MAX: usize = 1000;

/// Where a record's parts lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RecordLayout {
    pub(super) key: Range<usize>,
    pub(super) row: Range<usize>,
}

/// Adds a record; `out` is as before if it fails.
pub(super) fn encode(key: &[u8], row: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; HEAD_BYTES]);
    out.extend_from_slice(key);
    for datum in row {
        encode_datum(datum, out);
    }
    let row_len = out.len() - start - HEAD_BYTES - key.len();
    let (Ok(key_len), Ok(row_len), Ok(_)) = (
        u32::try_from(key.len()),
        u32::try_from(row_len),
        // A block is as long as a u32 can say.
        u32::try_from(out.len()),
    ) else {
        out.truncate(start);
        return Err(SqlError::new(
            SqlState::PROGRAM_LIMIT_EXCEEDED,
            "a row is too large for a temporary file",
        ));
    };
    out[start..start + 4].copy_from_slice(&key_len.to_le_bytes());
    out[start + 4..start + HEAD_BYTES].copy_from_slice(&row_len.to_le_bytes());
    Ok(())
}

fn length(bytes: &[u8], out: &mut Vec<u8>) {
    // Longer ones fail as a whole record.
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&len.to_le_bytes());
    out.extend_from_slice(bytes);
}

/// A value in its stored form, which says how long it is.
fn encode_stored(tag: u8, datum: &Datum, out: &mut Vec<u8>) {
    out.push(tag);
    stored_part(datum, out);
}

fn stored_part(datum: &Datum, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    stored::encode(datum, out);
    let len = u32::try_from(out.len() - at - 4).unwrap_or(u32::MAX);
    out[at..at + 4].copy_from_slice(&len.to_le_bytes());
}

fn encode_datum(datum: &Datum, out: &mut Vec<u8>) {
    let mut with = |tag: u8, bytes: &[u8]| {
        out.push(tag);
        out.extend_from_slice(bytes);
    };
    match datum {
        Datum::Null => out.push(tag::NULL),
        Datum::Bool(v) => with(tag::BOOL, &[u8::from(*v)]),
        Datum::Int2(v) => with(tag::INT2, &v.to_le_bytes()),
        Datum::Int4(v) => with(tag::INT4, &v.to_le_bytes()),
        Datum::Int8(v) => with(tag::INT8, &v.to_le_bytes()),
        Datum::Float4(v) => with(tag::FLOAT4, &v.to_le_bytes()),
        Datum::Float8(v) => with(tag::FLOAT8, &v.to_le_bytes()),
        Datum::Oid(v) => with(tag::OID, &v.to_le_bytes()),
        Datum::Char(v) => with(tag::CHAR, &[*v]),
        Datum::Date(v) => with(tag::DATE, &v.to_le_bytes()),
        Datum::Time(v) => with(tag::TIME, &v.to_le_bytes()),
        Datum::Timestamp(v) => with(tag::TIMESTAMP, &v.to_le_bytes()),
        Datum::TimestampTz(v) => with(tag::TIMESTAMPTZ, &v.to_le_bytes()),
        Datum::Uuid(v) => with(tag::UUID, &v[..]),
        Datum::Text(v) => {
            out.push(tag::TEXT);
            length(v.as_bytes(), out);
        }
        Datum::Bytea(v) => {
            out.push(tag::BYTEA);
            length(v, out);
        }
        Datum::TsVector(v) => {
            out.push(tag::TSVECTOR);
            length(v, out);
        }
        Datum::TsQuery(v) => {
            out.push(tag::TSQUERY);
            length(v, out);
        }
        Datum::Jsonb(v) => {
            out.push(tag::JSONB);
            length(v.bytes(), out);
        }
        Datum::Mac(v) => with(tag::MACADDR, v),
        Datum::Mac8(v) => with(tag::MACADDR8, v),
        Datum::Money(v) => with(tag::MONEY, &v.to_le_bytes()),
        Datum::Numeric(_) => encode_stored(tag::NUMERIC, datum, out),
        Datum::Inet(v) if v.cidr => encode_stored(tag::CIDR, datum, out),
        Datum::Inet(_) => encode_stored(tag::INET, datum, out),
        Datum::TimeTz(_) => encode_stored(tag::TIMETZ, datum, out),
        Datum::Bits(_) => encode_stored(tag::BIT, datum, out),
        Datum::Lsn(v) => with(tag::LSN, &v.to_le_bytes()),
        Datum::Geometry(v) => {
            out.push(tag::GEOMETRY);
            out.extend_from_slice(&v.type_of().get().to_le_bytes());
            stored_part(datum, out);
        }
        Datum::Interval(v) => {
            out.push(tag::INTERVAL);
            out.extend_from_slice(&v.months.to_le_bytes());
            out.extend_from_slice(&v.days.to_le_bytes());
            out.extend_from_slice(&v.micros.to_le_bytes());
        }
        Datum::Enum(v) => {
            out.push(tag::ENUM);
            out.extend_from_slice(&v.ty.get().to_le_bytes());
            out.extend_from_slice(&v.ordinal.to_le_bytes());
        }
        Datum::Array(v) => {
            out.push(tag::ARRAY);
            out.extend_from_slice(&v.element.get().to_le_bytes());
            out.extend_from_slice(&v.lower.to_le_bytes());
            let shape = v.shape.as_deref().unwrap_or_default();
            out.push(u8::try_from(shape.len()).unwrap_or(u8::MAX));
            for dim in shape {
                out.extend_from_slice(&dim.lower.to_le_bytes());
                out.extend_from_slice(&dim.len.to_le_bytes());
            }
            let count = u32::try_from(v.items.len()).unwrap_or(u32::MAX);
            out.extend_from_slice(&count.to_le_bytes());
            for item in &v.items {
                encode_datum(item, out);
            }
        }
    }
}

fn damaged() -> SqlError {
    SqlError::new(
        SqlState::DATA_CORRUPTED,
        "a temporary file has been changed by somebody else",
    )
}

/// Where the record at `at` of a block lies.
pub(super) fn place(block: &[u8], at: usize) -> Result<RecordLayout> {
    let head = block.get(at..at + HEAD_BYTES).ok_or_else(damaged)?;
    let mut from = Cursor(head);
    let (key, row) = (from.u32()? as usize, from.u32()? as usize);
    let key_start = at + HEAD_BYTES;
    let row_start = key_start.checked_add(key).ok_or_else(damaged)?;
    let end = row_start.checked_add(row).ok_or_else(damaged)?;
    if end > block.len() {
        return Err(damaged());
    }
    Ok(RecordLayout {
        key: key_start..row_start,
        row: row_start..end,
    })
}

/// Adds the values of a row.
pub(super) fn decode(bytes: &[u8], out: &mut Vec<Datum>) -> Result<()> {
    let mut from = Cursor(bytes);
    while !from.0.is_empty() {
        out.push(from.datum(0)?);
    }
    Ok(())
}

struct Cursor<'b>(&'b [u8]);

impl<'b> Cursor<'b> {
    fn bytes(&mut self, len: usize) -> Result<&'b [u8]> {
        let (head, tail) = self.0.split_at_checked(len).ok_or_else(damaged)?;
        self.0 = tail;
        Ok(head)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        self.bytes(N)?.try_into().map_err(|_| damaged())
    }

    fn u32(&mut self) -> Result<u32> {
        Ok(u32::from_le_bytes(self.fixed()?))
    }

    fn long(&mut self) -> Result<&'b [u8]> {
        let len = self.u32()?;
        self.bytes(len as usize)
    }

    fn datum(&mut self, depth: usize) -> Result<Datum> {
        if depth > DEPTH_MAX {
            return Err(damaged());
        }
        let [kind] = self.fixed()?;
        Ok(match kind {
            tag::NULL => Datum::Null,
            tag::BOOL => Datum::Bool(self.fixed::<1>()? != [0]),
            tag::INT2 => Datum::Int2(i16::from_le_bytes(self.fixed()?)),
            tag::INT4 => Datum::Int4(i32::from_le_bytes(self.fixed()?)),
            tag::INT8 => Datum::Int8(i64::from_le_bytes(self.fixed()?)),
            tag::FLOAT4 => Datum::Float4(f32::from_le_bytes(self.fixed()?)),
            tag::FLOAT8 => Datum::Float8(f64::from_le_bytes(self.fixed()?)),
            tag::OID => Datum::Oid(self.u32()?),
            tag::CHAR => Datum::Char(self.fixed::<1>()?[0]),
            tag::DATE => Datum::Date(i32::from_le_bytes(self.fixed()?)),
            tag::TIME => Datum::Time(i64::from_le_bytes(self.fixed()?)),
            tag::TIMESTAMP => Datum::Timestamp(i64::from_le_bytes(self.fixed()?)),
            tag::TIMESTAMPTZ => Datum::TimestampTz(i64::from_le_bytes(self.fixed()?)),
            tag::UUID => Datum::Uuid(Box::new(self.fixed()?)),
            tag::TEXT => {
                let text = std::str::from_utf8(self.long()?).map_err(|_| damaged())?;
                Datum::Text(Arc::from(text))
            }
            tag::BYTEA => Datum::Bytea(Arc::from(self.long()?)),
            tag::TSVECTOR => Datum::TsVector(Arc::from(self.long()?)),
            tag::TSQUERY => Datum::TsQuery(Arc::from(self.long()?)),
            tag::JSONB => Datum::Jsonb(Jsonb::from_stored(self.long()?)?),
            tag::NUMERIC => stored::decode(oid::NUMERIC, self.long()?)?,
            tag::INET => stored::decode(oid::INET, self.long()?)?,
            tag::CIDR => stored::decode(oid::CIDR, self.long()?)?,
            tag::TIMETZ => stored::decode(oid::TIMETZ, self.long()?)?,
            tag::BIT => stored::decode(oid::BIT, self.long()?)?,
            tag::LSN => Datum::Lsn(u64::from_le_bytes(self.fixed()?)),
            tag::GEOMETRY => {
                let ty = TypeId::new(self.u32()?);
                match is_geometry(ty) {
                    true => stored::decode(ty, self.long()?)?,
                    false => return Err(damaged()),
                }
            }
            tag::MACADDR => Datum::Mac(self.fixed()?),
            tag::MONEY => Datum::Money(i64::from_le_bytes(self.fixed()?)),
            tag::MACADDR8 => Datum::Mac8(self.fixed()?),
            tag::INTERVAL => Datum::Interval(Box::new(Interval {
                months: i32::from_le_bytes(self.fixed()?),
                days: i32::from_le_bytes(self.fixed()?),
                micros: i64::from_le_bytes(self.fixed()?),
            })),
            tag::ENUM => Datum::Enum(EnumValue {
                ty: TypeId::new(self.u32()?),
                ordinal: u64::from_le_bytes(self.fixed()?),
            }),
            tag::ARRAY => {
                let element = TypeId::new(self.u32()?);
                let lower = i32::from_le_bytes(self.fixed()?);
                let [dimensions] = self.fixed()?;
                let mut dims = Vec::new();
                for _ in 0..dimensions {
                    let lower = i32::from_le_bytes(self.fixed()?);
                    let len = i32::from_le_bytes(self.fixed()?);
                    dims.push(Dim { lower, len });
                }
                let count = self.u32()? as usize;
                // An item takes a byte at least.
                if count > self.0.len() {
                    return Err(damaged());
                }
                let mut items = Vec::with_capacity(count);
                for _ in 0..count {
                    items.push(self.datum(depth + 1)?);
                }
                Datum::Array(Arc::new(match dims.is_empty() {
                    true => Array::flat(element, lower, items),
                    false => Array::shaped(element, &dims, items).map_err(|_| damaged())?,
                }))
            }
            _ => return Err(damaged()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::value::geometry::{Geometry, Path, Point};
    use logstead_sql_types::value::{Bits, Inet, TimeTz};

    fn samples() -> Vec<Datum> {
        let numeric = |text: &str| {
            let ty = logstead_sql_types::value::SqlType::of(oid::NUMERIC);
            logstead_sql_types::value::text_io::input(ty, text, None).unwrap()
        };
        vec![
            Datum::Null,
            Datum::Bool(true),
            Datum::Int2(-3),
            Datum::Int4(i32::MIN),
            Datum::Int8(i64::MAX),
            Datum::Float4(-0.0),
            Datum::Float8(f64::NEG_INFINITY),
            Datum::Oid(u32::MAX),
            Datum::Char(200),
            Datum::Text("".into()),
            Datum::Text("höher".into()),
            numeric("1.00"),
            numeric("NaN"),
            numeric("-123456789012345678901234567890123456789012345678901234567890.5"),
            Datum::Bytea(Arc::from([0u8, 255].as_slice())),
            Datum::Date(i32::MAX),
            Datum::Time(1),
            Datum::Timestamp(i64::MIN),
            Datum::TimestampTz(-1),
            Datum::Uuid(Box::new([9; 16])),
            Datum::Interval(Box::new(Interval {
                months: -1,
                days: 2,
                micros: -3,
            })),
            Datum::Jsonb(Jsonb::parse(r#"{"a": [1, null]}"#).unwrap()),
            Datum::inet(Inet::parse("10.1.2.3/8", false).unwrap()),
            Datum::inet(Inet::parse("::/0", true).unwrap()),
            Datum::Mac([1, 2, 3, 4, 5, 6]),
            Datum::Mac8([8; 8]),
            Datum::Money(-1),
            Datum::Lsn(u64::MAX),
            Geometry::Point(Point {
                x: 1.5,
                y: f64::NAN,
            })
            .datum(),
            Geometry::Path(Path {
                closed: true,
                points: vec![Point { x: -0.0, y: 2.0 }],
            })
            .datum(),
            Datum::TimeTz(TimeTz {
                micros: 1,
                west: -3600,
            }),
            Datum::Bits(Bits::parse("10101").unwrap()),
            Datum::Array(Arc::new(Array {
                element: oid::RECORD,
                lower: 1,
                shape: None,
                items: vec![
                    Datum::Null,
                    Datum::Array(Arc::new(Array {
                        element: oid::TEXT,
                        lower: -2,
                        shape: None,
                        items: vec![Datum::Text("x".into())],
                    })),
                ],
            })),
            Datum::Enum(EnumValue {
                ty: TypeId::new(8),
                ordinal: 99,
            }),
        ]
    }

    #[test]
    fn every_kind_of_value_comes_back_as_it_went() {
        let row = samples();
        let mut block = b"before".to_vec();
        encode(b"key", &row, &mut block).unwrap();
        encode(b"", &[], &mut block).unwrap();
        let first = place(&block, 6).unwrap();
        assert_eq!(&block[first.key.clone()], b"key");
        let mut back = Vec::new();
        decode(&block[first.row.clone()], &mut back).unwrap();
        // Debug tells 1.0 from 1.00 and 0.0 from -0.0, which equality does not.
        assert_eq!(format!("{back:?}"), format!("{row:?}"));
        let second = place(&block, first.row.end).unwrap();
        assert_eq!((second.key.len(), second.row.end), (0, block.len()));
    }

    #[test]
    fn damaged_bytes_are_an_error() {
        let mut block = Vec::new();
        encode(b"key", &samples(), &mut block).unwrap();
        let whole = place(&block, 0).unwrap();
        assert!(place(&block[..block.len() - 1], 0).is_err());
        assert!(place(&block, block.len() - 3).is_err());
        for at in whole.row {
            for wrong in [0, 1, 19, 77, 255] {
                let mut bytes = block.clone();
                bytes[at] = wrong;
                // Whatever it says, it says it without a panic.
                let mut out = Vec::new();
                let _either_way = place(&bytes, 0).map(|p| decode(&bytes[p.row], &mut out));
            }
        }
    }
}
