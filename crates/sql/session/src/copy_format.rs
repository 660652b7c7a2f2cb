//! The two text formats of COPY: reading records and fields out of bytes cut anywhere, and writing them.
//!
//! Knows nothing of tables: fields in, fields out. Invariant: a record is looked at only when it has arrived whole, so
//! how the client cut its input makes no difference. A record, and what is made of it, may be of any length: it is
//! charged, and every loop over it can be interrupted.

use logstead_sql_types::encoding::Encoding;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::{CancelChecker, check_for_interrupts};
use logstead_sql_types::memory::{MemoryReservation, STRIDE_BYTES};
use logstead_types::SqlState;
use std::ops::Range;

/// Longest record, as PostgreSQL's longest string.
const RECORD_BYTES_MAX: usize = 1 << 30;

/// The format of a COPY, as its options have it.
#[derive(Clone, Debug)]
pub(super) struct CopyFormat {
    pub(super) binary: bool,
    pub(super) csv: bool,
    pub(super) delimiter: u8,
    pub(super) null: String,
    pub(super) header: bool,
    /// The header names the columns that are copied.
    pub(super) header_matches: bool,
    pub(super) freeze: bool,
    pub(super) quote: u8,
    pub(super) escape: u8,
    pub(super) force_quote: ForceColumns,
    pub(super) force_not_null: Vec<String>,
    pub(super) force_null: Vec<String>,
    /// ENCODING; the client's unless it is given.
    pub(super) encoding: Option<Encoding>,
}

/// Columns of FORCE_QUOTE.
#[derive(Clone, Debug)]
pub(super) enum ForceColumns {
    All,
    These(Vec<String>),
}

/// Room for a piece of input behind what is there; 53200 if the budget has none. A buffer that was large for a record
/// that is gone is given back.
pub(super) fn make_room(bytes: &mut Vec<u8>, charged: &mut MemoryReservation) -> Result<()> {
    shrink(bytes, charged, bytes.len())?;
    charged.reserve(bytes, PIECE_BYTES)
}

/// Gives a large buffer back that is wanted for little.
#[inline]
fn shrink(bytes: &mut Vec<u8>, charged: &mut MemoryReservation, wanted: usize) -> Result<()> {
    if bytes.capacity() > KEPT_BYTES && wanted < KEPT_BYTES / 4 {
        bytes.shrink_to(KEPT_BYTES);
        charged.hold(bytes.capacity())?;
    }
    Ok(())
}

/// What a byte that means something costs, in bytes that mean nothing.
const MARK_STEPS: usize = 16;
/// Input comes in pieces of about so many bytes.
const PIECE_BYTES: usize = 256 << 10;
/// A buffer of so many bytes is kept for the next record.
const KEPT_BYTES: usize = 4 << 20;

/// Cuts a stream of bytes into records.
#[derive(Default)]
pub(super) struct Records {
    bytes: Vec<u8>,
    /// First byte not yet given out.
    start: usize,
    /// First byte not yet looked at.
    at: usize,
    in_quotes: bool,
    /// The end-of-data mark was seen: the rest is ignored.
    ended: bool,
    /// What `bytes` takes.
    charged: MemoryReservation,
    pace: CancelChecker,
}

impl Records {
    /// Where to append input. What has been given out is forgotten.
    pub(super) fn room(&mut self) -> Result<&mut Vec<u8>> {
        if self.ended {
            self.start = self.bytes.len();
        }
        if self.start > 0 {
            self.bytes.drain(..self.start);
            self.at = self.at.saturating_sub(self.start);
            self.start = 0;
        }
        // One record is unfinished: everything else has been given out.
        if self.bytes.len() > RECORD_BYTES_MAX {
            return Err(SqlError::new(
                SqlState::PROGRAM_LIMIT_EXCEEDED,
                "a line of COPY data is longer than 1 GiB",
            ));
        }
        make_room(&mut self.bytes, &mut self.charged)?;
        Ok(&mut self.bytes)
    }

    /// The next whole record without its end; at the `end` of input also one without a line end.
    pub(super) fn next(&mut self, format: &CopyFormat, end: bool) -> Result<Option<Range<usize>>> {
        if self.ended {
            return Ok(None);
        }
        loop {
            // Most bytes mean nothing here.
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            let means = match (format.csv, self.in_quotes) {
                (false, _) => memchr::memchr3(b'\n', b'\r', b'\\', rest),
                (true, false) => memchr::memchr3(b'\n', b'\r', format.quote, rest),
                (true, true) => memchr::memchr2(format.quote, format.escape, rest),
            };
            self.at += means.unwrap_or(rest.len());
            let Some(&byte) = self.bytes.get(self.at) else {
                break;
            };
            self.pace.spent(MARK_STEPS)?;
            match byte {
                b'\n' if !self.in_quotes => return Ok(self.record(self.at, self.at + 1, format)),
                b'\r' if !self.in_quotes => {
                    // Needs the next byte to tell \r from \r\n.
                    match self.bytes.get(self.at + 1) {
                        Some(b'\n') => return Ok(self.record(self.at, self.at + 2, format)),
                        Some(_) => return Ok(self.record(self.at, self.at + 1, format)),
                        None if end => return Ok(self.record(self.at, self.at + 1, format)),
                        None => return Ok(None),
                    }
                }
                b'\\' if !format.csv => {
                    if self.at + 1 >= self.bytes.len() && !end {
                        return Ok(None);
                    }
                    self.at += 2;
                }
                // In quotes, an escape that is not the quote itself protects the byte after it.
                byte if format.csv
                    && self.in_quotes
                    && byte == format.escape
                    && format.escape != format.quote =>
                {
                    if self.at + 1 >= self.bytes.len() && !end {
                        return Ok(None);
                    }
                    self.at += 2;
                }
                byte if format.csv && byte == format.quote => {
                    self.in_quotes = !self.in_quotes;
                    self.at += 1;
                }
                _ => self.at += 1,
            }
        }
        self.at = self.at.min(self.bytes.len());
        if end && self.start < self.bytes.len() {
            if self.in_quotes {
                return Err(SqlError::new(
                    SqlState::BAD_COPY_FILE_FORMAT,
                    "unterminated CSV quoted field",
                ));
            }
            let length = self.bytes.len();
            return Ok(self.record(length, length, format));
        }
        Ok(None)
    }

    fn record(&mut self, end: usize, next: usize, _format: &CopyFormat) -> Option<Range<usize>> {
        let range = self.start..end;
        self.start = next;
        self.at = next;
        self.in_quotes = false;
        if self.bytes.get(range.clone()) == Some(b"\\.") {
            self.ended = true;
            return None;
        }
        Some(range)
    }

    /// What has not been given out: shown when it is no record.
    pub(super) fn rest(&self) -> Range<usize> {
        self.start..self.bytes.len()
    }

    /// The bytes of a record just given.
    pub(super) fn bytes(&self, record: Range<usize>) -> &[u8] {
        self.bytes.get(record).unwrap_or_default()
    }
}

/// Bytes of a line shown in an error's context.
const SHOWN_BYTES_MAX: usize = 100;

/// The beginning of a line, or of a field, for an error's context.
pub(super) fn shorten(bytes: &[u8]) -> String {
    // What follows is not shown, and may be long.
    let bytes = bytes.get(..SHOWN_BYTES_MAX + 4).unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if text.len() <= SHOWN_BYTES_MAX {
        return text.into_owned();
    }
    let end = (0..=SHOWN_BYTES_MAX)
        .rev()
        .find(|i| text.is_char_boundary(*i))
        .unwrap_or(0);
    format!("{}...", &text[..end])
}

/// Where what is no UTF-8 begins.
pub(super) fn invalid_at(bytes: &[u8]) -> Result<Option<usize>> {
    let mut from = 0;
    while from < bytes.len() {
        let end = bytes.len().min(from + STRIDE_BYTES);
        match std::str::from_utf8(bytes.get(from..end).unwrap_or_default()) {
            Ok(_) => from = end,
            Err(error) => {
                let valid = error.valid_up_to();
                from += valid;
                // A character that was cut is looked at whole.
                if error.error_len().is_some() || end == bytes.len() || valid == 0 {
                    return Ok(Some(from));
                }
            }
        }
        if bytes.len() > STRIDE_BYTES {
            check_for_interrupts()?;
        }
    }
    Ok(None)
}

/// The fields of one record, unescaped into one buffer that is used again.
#[derive(Default)]
pub(super) struct RecordFields {
    text: Vec<u8>,
    /// Range in `text`, and whether it is NULL.
    fields: Vec<(Range<usize>, bool)>,
    /// What both take.
    charged: (MemoryReservation, MemoryReservation),
    pace: CancelChecker,
}

impl RecordFields {
    /// Splits a record. `force` tells of column `i`: (never NULL, NULL even if quoted).
    pub(super) fn split(
        &mut self,
        record: &[u8],
        format: &CopyFormat,
        force: impl Fn(usize) -> (bool, bool),
    ) -> Result<()> {
        self.text.clear();
        self.fields.clear();
        shrink(&mut self.text, &mut self.charged.0, record.len())?;
        // No field is longer than it is written.
        self.charged.0.reserve(&mut self.text, record.len())?;
        self.pace.spent(record.len().min(STRIDE_BYTES))?;
        if format.csv {
            self.split_csv(record, format, force)
        } else {
            self.split_text(record, format)
        }
    }

    /// Number of fields.
    pub(super) fn len(&self) -> usize {
        self.fields.len()
    }

    /// Field `i`; `None` is NULL.
    pub(super) fn get(&self, i: usize) -> Option<&[u8]> {
        let (range, null) = self.fields.get(i)?;
        if *null {
            None
        } else {
            self.text.get(range.clone())
        }
    }

    /// One field more, of what is in the text from here on.
    fn end_field(&mut self, start: usize, is_null: bool) -> Result<()> {
        self.charged.1.reserve(&mut self.fields, 1)?;
        self.fields.push((start..self.text.len(), is_null));
        Ok(())
    }

    fn split_text(&mut self, record: &[u8], format: &CopyFormat) -> Result<()> {
        let null = format.null.as_bytes();
        let (mut at, mut due) = (0, STRIDE_BYTES);
        loop {
            let (raw_start, start) = (at, self.text.len());
            loop {
                if at >= due {
                    due = at + STRIDE_BYTES;
                    check_for_interrupts()?;
                }
                let rest = record.get(at..).unwrap_or_default();
                let rest = rest.get(..STRIDE_BYTES).unwrap_or(rest);
                let means = memchr::memchr2(format.delimiter, b'\\', rest);
                let plain = rest.get(..means.unwrap_or(rest.len()));
                self.text.extend_from_slice(plain.unwrap_or_default());
                at += plain.map_or(0, <[u8]>::len);
                match record.get(at) {
                    Some(b'\\') => at += 1,
                    // Only a part of it was looked at.
                    Some(_) if means.is_none() => continue,
                    _ => break,
                }
                // A last one stands for itself.
                if at < record.len() {
                    at = self.unescape(record, at);
                } else {
                    self.text.push(b'\\');
                }
            }
            let is_null = record.get(raw_start..at) == Some(null);
            self.end_field(start, is_null)?;
            if at >= record.len() {
                return Ok(());
            }
            at += 1;
        }
    }

    /// One escape sequence, `at` is behind the backslash; gives the position behind it.
    fn unescape(&mut self, record: &[u8], at: usize) -> usize {
        let digits = |from: usize, most: usize, radix: u32| {
            let mut value = 0u32;
            let mut end = from;
            while end < from + most
                && let Some(digit) = record.get(end).and_then(|b| char::from(*b).to_digit(radix))
            {
                value = value * radix + digit;
                end += 1;
            }
            (value as u8, end)
        };
        let byte = match record.get(at) {
            Some(b'b') => 8,
            Some(b'f') => 12,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'v') => 11,
            Some(b'0'..=b'7') => {
                let (value, end) = digits(at, 3, 8);
                self.text.push(value);
                return end;
            }
            Some(b'x') if record.get(at + 1).is_some_and(u8::is_ascii_hexdigit) => {
                let (value, end) = digits(at + 1, 2, 16);
                self.text.push(value);
                return end;
            }
            Some(other) => *other,
            None => return at,
        };
        self.text.push(byte);
        at + 1
    }

    fn split_csv(
        &mut self,
        record: &[u8],
        format: &CopyFormat,
        force: impl Fn(usize) -> (bool, bool),
    ) -> Result<()> {
        let null = format.null.as_bytes();
        let (mut at, mut due) = (0, STRIDE_BYTES);
        loop {
            let start = self.text.len();
            let (mut quoted, mut in_quotes) = (false, false);
            while let Some(&byte) = record.get(at) {
                if at >= due {
                    due = at + STRIDE_BYTES;
                    check_for_interrupts()?;
                }
                if in_quotes {
                    let next = record.get(at + 1).copied();
                    if byte == format.escape
                        && next.is_some_and(|n| n == format.escape || n == format.quote)
                    {
                        self.text.extend(next);
                        at += 2;
                        continue;
                    }
                    at += 1;
                    if byte == format.quote {
                        in_quotes = false;
                    } else {
                        self.text.push(byte);
                    }
                } else if byte == format.delimiter {
                    break;
                } else {
                    at += 1;
                    if byte == format.quote {
                        in_quotes = true;
                        quoted = true;
                    } else {
                        self.text.push(byte);
                    }
                }
            }
            let (not_null, null_if_quoted) = force(self.fields.len());
            let matches = self.text.get(start..) == Some(null);
            let is_null = matches && if quoted { null_if_quoted } else { !not_null };
            self.end_field(start, is_null)?;
            if at >= record.len() {
                return Ok(());
            }
            at += 1;
        }
    }
}

/// Appends one field to a line of output.
pub(super) fn write_field(
    line: &mut Vec<u8>,
    value: Option<&[u8]>,
    format: &CopyFormat,
    quote_it: bool,
    alone: bool,
) -> Result<()> {
    let Some(value) = value else {
        line.extend_from_slice(format.null.as_bytes());
        return Ok(());
    };
    if !format.csv {
        by_parts(value, |part| {
            escape(line, part, format);
            true
        })?;
        return Ok(());
    }
    let special =
        |b: &u8| *b == format.delimiter || *b == format.quote || matches!(b, b'\n' | b'\r');
    let plain = !quote_it
        && value != format.null.as_bytes()
        && !(alone && value == b"\\.")
        && by_parts(value, |part| !part.iter().any(special))?;
    if !plain {
        line.push(format.quote);
    }
    by_parts(value, |part| {
        if plain {
            line.extend_from_slice(part);
            return true;
        }
        for &byte in part {
            if byte == format.quote || byte == format.escape {
                line.push(format.escape);
            }
            line.push(byte);
        }
        true
    })?;
    if !plain {
        line.push(format.quote);
    }
    Ok(())
}

/// Goes through a value of any length, until it is told to stop; whether it was not.
fn by_parts(value: &[u8], mut each: impl FnMut(&[u8]) -> bool) -> Result<bool> {
    if value.len() <= STRIDE_BYTES {
        return Ok(each(value));
    }
    for part in value.chunks(STRIDE_BYTES) {
        if !each(part) {
            return Ok(false);
        }
        check_for_interrupts()?;
    }
    Ok(true)
}

/// Appends bytes as the text format has them.
fn escape(line: &mut Vec<u8>, bytes: &[u8], format: &CopyFormat) {
    for &byte in bytes {
        let escaped = match byte {
            8 => b'b',
            12 => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            11 => b'v',
            b'\\' => b'\\',
            byte if byte == format.delimiter => byte,
            byte => {
                line.push(byte);
                continue;
            }
        };
        line.extend_from_slice(&[b'\\', escaped]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_sql_parse::ast::{DefArg, DefElem, DefElemAction, Location};

    fn records(format: &CopyFormat, bytes: &[u8], piece: usize) -> Vec<Vec<Option<String>>> {
        let mut records = Records::default();
        let mut fields = RecordFields::default();
        let mut found = Vec::new();
        let mut take = |records: &mut Records, end| {
            while let Some(range) = records.next(format, end).expect("whole records") {
                let split = fields.split(records.bytes(range), format, |_| (false, false));
                split.expect("short lines");
                let texts = (0..fields.len()).map(|i| {
                    fields
                        .get(i)
                        .map(|f| String::from_utf8_lossy(f).into_owned())
                });
                found.push(texts.collect());
            }
        };
        for piece in bytes.chunks(piece) {
            records
                .room()
                .expect("short lines")
                .extend_from_slice(piece);
            take(&mut records, false);
        }
        take(&mut records, true);
        found
    }

    fn strings(rows: &[&[Option<&str>]]) -> Vec<Vec<Option<String>>> {
        rows.iter()
            .map(|row| row.iter().map(|f| f.map(str::to_owned)).collect())
            .collect()
    }

    fn format_of(name: &str) -> DefElem {
        DefElem {
            namespace: None,
            name: "format".into(),
            arg: Some(DefArg::String(name.into())),
            action: DefElemAction::Unspecified,
            location: Location::UNKNOWN,
        }
    }

    #[test]
    fn text_in_any_pieces() {
        let format = CopyFormat::read(&[], true, "").expect("no options");
        let input = b"1\ta\\tb\\\\\n2\t\\N\r\n\\x41\\101\tlast\\\nline\n3\tno end";
        for piece in 1..input.len() {
            let expected = strings(&[
                &[Some("1"), Some("a\tb\\")],
                &[Some("2"), None],
                &[Some("AA"), Some("last\nline")],
                &[Some("3"), Some("no end")],
            ]);
            assert_eq!(
                records(&format, input, piece),
                expected,
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn csv_in_any_pieces() {
        let format = CopyFormat::read(&[format_of("csv")], true, "").expect("an option");
        let input = b"1,\"a,\"\"b\nc\",\n,\"\",x\r\n";
        for piece in 1..input.len() {
            let expected = strings(&[
                &[Some("1"), Some("a,\"b\nc"), None],
                &[None, Some(""), Some("x")],
            ]);
            assert_eq!(
                records(&format, input, piece),
                expected,
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn end_mark_ends() {
        let format = CopyFormat::read(&[], true, "").expect("no options");
        assert_eq!(
            records(&format, b"1\n\\.\n2\n", 3),
            strings(&[&[Some("1")]])
        );
    }

    #[test]
    fn what_is_written_reads_back() {
        for csv in [false, true] {
            let name = if csv { "csv" } else { "text" };
            let format = CopyFormat::read(&[format_of(name)], true, "").expect("an option");
            let values = [
                Some("plain"),
                None,
                Some(""),
                Some("a\tb,\"c\"\\\r\n"),
                Some("\\N"),
                Some("\\."),
            ];
            let mut line = Vec::new();
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    line.push(format.delimiter);
                }
                let value = value.map(str::as_bytes);
                write_field(&mut line, value, &format, false, false).expect("short values");
            }
            line.push(b'\n');
            assert_eq!(records(&format, &line, 7), strings(&[&values]), "{name}");
        }
    }
}
