//! The binary format of COPY: header, rows of fields in their types' binary forms, trailer.
//!
//! Knows nothing of tables. Invariant: a row is looked at only when it has arrived whole, so how the client cut its
//! input makes no difference.

use super::copy_format::make_room;
use logstead_sql_types::encoding::{ConversionDirection, Encoding};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory::MemoryReservation;
use logstead_sql_types::value::{Datum, SqlType, binary_io};
use logstead_types::SqlState;
use std::ops::Range;

/// What every stream begins with.
const SIGNATURE: &[u8; 11] = b"PGCOPY\n\xff\r\n\0";

/// Flag of the header: rows begin with an object number, which no version that is alive writes.
const FLAG_OIDS: u32 = 1 << 16;

/// Most bytes of a row that has not arrived whole.
const ROW_BYTES_MAX: usize = 1 << 30;

fn bad(message: impl Into<String>) -> SqlError {
    SqlError::new(SqlState::BAD_COPY_FILE_FORMAT, message)
}

/// Appends the header.
pub(super) fn write_header(out: &mut Vec<u8>) {
    out.extend_from_slice(SIGNATURE);
    out.extend_from_slice(&0_i32.to_be_bytes());
    out.extend_from_slice(&0_i32.to_be_bytes());
}

/// Appends the trailer.
pub(super) fn write_trailer(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1_i16).to_be_bytes());
}

/// Appends a row; its texts in an encoding, unless that is UTF-8.
pub(super) fn write_row(
    row: &[Datum],
    columns: &[(SqlType, bool)],
    encoding: Option<Encoding>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let mut value = Vec::new();
    let count = i16::try_from(columns.len()).unwrap_or(i16::MAX);
    out.extend_from_slice(&count.to_be_bytes());
    for (datum, (ty, _)) in row.iter().zip(columns) {
        let at = out.len();
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        if !datum.is_null() {
            match encoding {
                None => binary_io::binary_output(datum, *ty, out)?,
                Some(encoding) => {
                    value.clear();
                    binary_io::binary_output(datum, *ty, &mut value)?;
                    encoding.convert_binary(ty.oid, &value, ConversionDirection::ToClient, out)?;
                }
            }
            let length = i32::try_from(out.len() - at - 4).unwrap_or(i32::MAX);
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
    }
    Ok(())
}

/// Cuts a stream of bytes into rows.
#[derive(Default)]
pub(super) struct BinaryRows {
    bytes: Vec<u8>,
    /// First byte not yet given out.
    start: usize,
    /// The header was read.
    begun: bool,
    /// The trailer was.
    ended: bool,
    /// Where the fields of the present row are, as far as it was read; none is NULL.
    fields: Vec<Option<Range<usize>>>,
    /// The present row's fields are being read.
    in_fields: bool,
    /// What `bytes` takes.
    charged: MemoryReservation,
}

/// What became of the next row.
pub(super) enum Next {
    /// It is there: its fields are.
    Row,
    /// More input is needed; at the end of it there is none.
    Nothing,
}

impl BinaryRows {
    /// Where to append input. What has been given out is forgotten.
    pub(super) fn room(&mut self) -> Result<&mut Vec<u8>> {
        self.bytes.drain(..self.start);
        self.start = 0;
        if self.bytes.len() > ROW_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a row of COPY data is longer than 1 GiB",
            ));
        }
        make_room(&mut self.bytes, &mut self.charged)?;
        Ok(&mut self.bytes)
    }

    /// Reads the header once it has arrived; false if it has not.
    pub(super) fn begin(&mut self, end: bool) -> Result<bool> {
        if self.begun {
            return Ok(true);
        }
        let mut at = 0;
        match self.bytes.get(..SIGNATURE.len()) {
            Some(found) if found == SIGNATURE => at += SIGNATURE.len(),
            None if !end => return Ok(false),
            _ => return Err(bad("COPY file signature not recognized")),
        }
        let Some(flags) = self.word(at) else {
            return match end {
                true => Err(bad("invalid COPY file header (missing flags)")),
                false => Ok(false),
            };
        };
        at += 4;
        let flags = flags.cast_unsigned();
        if flags & FLAG_OIDS != 0 {
            return Err(bad("invalid COPY file header (WITH OIDS)"));
        }
        if flags >> 16 != 0 {
            return Err(bad("unrecognized critical flags in COPY file header"));
        }
        let Some(extension) = self.word(at) else {
            return match end {
                true => Err(bad("invalid COPY file header (missing length)")),
                false => Ok(false),
            };
        };
        at += 4;
        let Ok(extension) = usize::try_from(extension) else {
            return Err(bad("invalid COPY file header (missing length)"));
        };
        if self.bytes.len() - at < extension {
            return match end {
                true => Err(bad("invalid COPY file header (wrong length)")),
                false => Ok(false),
            };
        }
        self.start = at + extension;
        self.begun = true;
        Ok(true)
    }

    /// The next row, of so many fields, whose header was read.
    pub(super) fn next(&mut self, columns: usize, end: bool) -> Result<Next> {
        if self.ended {
            return match self.bytes.len() > self.start {
                true => Err(bad("received copy data after EOF marker")),
                false => Ok(Next::Nothing),
            };
        }
        self.in_fields = false;
        let mut at = self.start;
        let Some(count) = self.short(at) else {
            // Without a trailer the stream may end here; half a number is one that is not there.
            return Ok(Next::Nothing);
        };
        at += 2;
        if count == -1 {
            self.start = at;
            self.ended = true;
            return self.next(columns, end);
        }
        if usize::try_from(count).ok() != Some(columns) {
            return Err(bad(format!(
                "row field count is {count}, expected {columns}"
            )));
        }
        self.fields.clear();
        self.in_fields = true;
        let lacking = || match end {
            true => Err(bad("unexpected EOF in COPY data")),
            false => Ok(Next::Nothing),
        };
        for _ in 0..columns {
            let Some(length) = self.word(at) else {
                return lacking();
            };
            at += 4;
            if length == -1 {
                self.fields.push(None);
                continue;
            }
            let Ok(length) = usize::try_from(length) else {
                return Err(bad("invalid field size"));
            };
            if self.bytes.len() - at < length {
                return lacking();
            }
            self.fields.push(Some(at..at + length));
            at += length;
        }
        self.start = at;
        self.in_fields = false;
        Ok(Next::Row)
    }

    /// The field that a row has failed at, if it was one.
    pub(super) fn failed_field(&self) -> Option<usize> {
        self.in_fields.then_some(self.fields.len())
    }

    /// Field `i` of the present row as a value of a type.
    pub(super) fn read(&self, i: usize, ty: SqlType, encoding: Option<Encoding>) -> Result<Datum> {
        let bytes = match self.fields.get(i) {
            Some(Some(range)) => self.bytes.get(range.clone()).unwrap_or_default(),
            _ => return Ok(Datum::Null),
        };
        let Some(encoding) = encoding else {
            return binary_io::binary_input(ty, bytes);
        };
        let mut converted = Vec::new();
        encoding.convert_binary(
            ty.oid,
            bytes,
            ConversionDirection::FromClient,
            &mut converted,
        )?;
        binary_io::binary_input(ty, &converted)
    }

    fn word(&self, at: usize) -> Option<i32> {
        let bytes = self.bytes.get(at..)?.first_chunk::<4>()?;
        Some(i32::from_be_bytes(*bytes))
    }

    fn short(&self, at: usize) -> Option<i16> {
        let bytes = self.bytes.get(at..)?.first_chunk::<2>()?;
        Some(i16::from_be_bytes(*bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_types::value::oid;

    fn stream(rows: &[Vec<Datum>], columns: &[(SqlType, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        write_header(&mut bytes);
        for row in rows {
            write_row(row, columns, None, &mut bytes).expect("short");
        }
        write_trailer(&mut bytes);
        bytes
    }

    /// Reads a stream that arrives in pieces of so many bytes.
    fn read(bytes: &[u8], piece: usize, types: &[SqlType]) -> Result<Vec<Vec<Datum>>> {
        let mut rows = BinaryRows::default();
        let mut out = Vec::new();
        let mut pieces = bytes.chunks(piece);
        loop {
            let end = match pieces.next() {
                Some(more) => {
                    rows.room()?.extend_from_slice(more);
                    false
                }
                None => true,
            };
            while rows.begin(end)? {
                match rows.next(types.len(), end)? {
                    Next::Nothing => break,
                    Next::Row => {
                        let row = types
                            .iter()
                            .enumerate()
                            .map(|(i, ty)| rows.read(i, *ty, None));
                        out.push(row.collect::<Result<Vec<_>>>()?);
                    }
                }
            }
            if end {
                return Ok(out);
            }
        }
    }

    #[test]
    fn what_is_written_is_read_however_it_is_cut() {
        let types = [SqlType::of(oid::INT4), SqlType::of(oid::TEXT)];
        let columns = types.map(|ty| (ty, false));
        let rows = vec![
            vec![Datum::Int4(7), Datum::text("seven")],
            vec![Datum::Null, Datum::text("")],
            vec![Datum::Int4(-1), Datum::Null],
        ];
        let bytes = stream(&rows, &columns);
        for piece in 1..=bytes.len() {
            let found = read(&bytes, piece, &types).unwrap();
            assert_eq!(format!("{found:?}"), format!("{rows:?}"), "{piece}");
        }
    }

    #[test]
    fn a_damaged_stream_is_named() {
        let types = [SqlType::of(oid::INT4)];
        let good = stream(&[vec![Datum::Int4(7)]], &[(types[0], false)]);
        let with = |at: usize, byte: u8| {
            let mut bytes = good.clone();
            bytes[at] = byte;
            bytes
        };
        let mut behind = good.clone();
        behind.push(0);
        let cases: [(Vec<u8>, &str); 9] = [
            (Vec::new(), "COPY file signature not recognized"),
            (with(3, b'x'), "COPY file signature not recognized"),
            (
                good[..13].to_vec(),
                "invalid COPY file header (missing flags)",
            ),
            (with(12, 1), "invalid COPY file header (WITH OIDS)"),
            (
                with(12, 2),
                "unrecognized critical flags in COPY file header",
            ),
            (with(18, 200), "invalid COPY file header (wrong length)"),
            (with(20, 2), "row field count is 2, expected 1"),
            (good[..26].to_vec(), "unexpected EOF in COPY data"),
            (behind, "received copy data after EOF marker"),
        ];
        for (bytes, message) in cases {
            for piece in [1, 5, 100] {
                let error = read(&bytes, piece, &types).unwrap_err();
                assert_eq!(error.fields().message, message, "{piece}");
            }
        }
        let error = read(&with(21, 0x80), 100, &types).unwrap_err();
        assert_eq!(error.fields().message, "invalid field size");
        let error = read(&with(24, 3), 100, &types).unwrap_err();
        assert_eq!(error.code(), SqlState::PROTOCOL_VIOLATION);
    }
}
