//! Self-describing encoded rows.
//!
//! Layout, little endian:
//!
//! ```text
//! 0  u16  schema version that wrote the row
//! 2  u16  number of columns (bits 0..15), bit 15: end offsets are u32 instead of u16
//! 4  null bitmap, one bit per column, lowest bit first, 1 = NULL; (columns + 7) / 8 bytes
//!    end offsets, one per column, relative to the start of the data; a NULL column ends where its predecessor ends
//!    data
//! ```
//!
//! Owns: building, reading and checking that layout. It knows nothing of types: a column is bytes or NULL, and a column
//! beyond the row's count is *missing* (the table has grown since; the schema gives its value).

use std::fmt;

/// Bytes before the null bitmap.
const HEADER_BYTES: usize = 4;
/// Set in the second word when end offsets take four bytes.
const WIDE: u16 = 1 << 15;
/// The most columns a row can have.
pub const COLUMNS_MAX: usize = (WIDE - 1) as usize;
/// The largest encoded row.
pub const ROW_BYTES_MAX: usize = (1 << 28) - 1;

/// Bytes that are not a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowError(&'static str);

impl RowError {
    pub(crate) const fn new(what: &'static str) -> RowError {
        RowError(what)
    }

    pub(crate) fn what(self) -> &'static str {
        self.0
    }
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a valid row: {}", self.0)
    }
}

impl std::error::Error for RowError {}

/// An encoded row. Cheap to copy; columns decode without touching the others.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RowRef<'a>(&'a [u8]);

impl<'a> RowRef<'a> {
    /// Wraps bytes that a [`RowBuilder`] made. Bytes from elsewhere go through [`RowRef::parse`]; on bytes that are
    /// not a row, columns read as NULL or wrong, never out of bounds.
    #[inline]
    pub fn new(bytes: &'a [u8]) -> RowRef<'a> {
        RowRef(bytes)
    }

    /// Checks untrusted bytes completely.
    pub fn parse(bytes: &'a [u8]) -> Result<RowRef<'a>, RowError> {
        if bytes.len() < HEADER_BYTES {
            return Err(RowError("shorter than its header"));
        }
        if bytes.len() > ROW_BYTES_MAX {
            return Err(RowError("too long"));
        }
        let row = RowRef(bytes);
        let columns = row.column_count();
        let data = row.data_start();
        if bytes.len() < data {
            return Err(RowError("shorter than its offsets"));
        }
        let mut before = 0;
        for i in 0..columns {
            let end = row.end(i);
            if end < before || data + end > bytes.len() {
                return Err(RowError("column offset out of order or range"));
            }
            if row.null_bit(i) && end != before {
                return Err(RowError("a NULL column with data"));
            }
            before = end;
        }
        if data + before != bytes.len() {
            return Err(RowError("bytes after the last column"));
        }
        Ok(row)
    }

    #[inline]
    fn word(&self, at: usize) -> u16 {
        match self.0.get(at..at + 2) {
            Some(b) => u16::from_le_bytes([b[0], b[1]]),
            None => 0,
        }
    }

    /// The encoded bytes.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.0
    }

    /// The schema version that wrote the row.
    #[inline]
    pub fn schema_version(&self) -> u16 {
        self.word(0)
    }

    /// How many columns the row has.
    #[inline]
    pub fn column_count(&self) -> usize {
        usize::from(self.word(2) & !WIDE)
    }

    #[inline]
    fn wide(&self) -> bool {
        self.word(2) & WIDE != 0
    }

    #[inline]
    fn data_start(&self) -> usize {
        let columns = self.column_count();
        HEADER_BYTES + columns.div_ceil(8) + columns * if self.wide() { 4 } else { 2 }
    }

    #[inline]
    fn null_bit(&self, i: usize) -> bool {
        self.0
            .get(HEADER_BYTES + i / 8)
            .is_none_or(|b| b & (1 << (i % 8)) != 0)
    }

    /// Where column `i` ends, relative to the data.
    #[inline]
    fn end(&self, i: usize) -> usize {
        let columns = self.column_count();
        let at = HEADER_BYTES + columns.div_ceil(8);
        if self.wide() {
            match self.0.get(at + i * 4..at + i * 4 + 4) {
                Some(b) => u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as usize,
                None => 0,
            }
        } else {
            usize::from(self.word(at + i * 2))
        }
    }

    /// Column `i`'s bytes; `None` is NULL, or a column the row does not have ([`RowRef::is_missing`] tells).
    #[inline]
    pub fn column(&self, i: usize) -> Option<&'a [u8]> {
        if i >= self.column_count() || self.null_bit(i) {
            return None;
        }
        let data = self.data_start();
        let start = if i == 0 { 0 } else { self.end(i - 1) };
        self.0.get(data + start..data + self.end(i))
    }

    /// Is column `i` beyond what the row's schema version had?
    #[inline]
    pub fn is_missing(&self, i: usize) -> bool {
        i >= self.column_count()
    }
}

impl fmt::Debug for RowRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.schema_version())?;
        f.debug_list()
            .entries((0..self.column_count()).map(|i| self.column(i)))
            .finish()
    }
}

/// Builds encoded rows in a buffer that is used again and again.
#[derive(Default)]
pub struct RowBuilder {
    buffer: Vec<u8>,
    columns: usize,
    pushed: usize,
    data: usize,
    /// End offsets; written into the buffer as they come, kept for the case that they turn out too wide.
    ends: Vec<u32>,
}

impl RowBuilder {
    /// An empty builder.
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// Begins a row of `columns` columns. Columns that are not pushed are NULL.
    pub fn start(&mut self, schema_version: u16, columns: usize) {
        assert!(
            columns <= COLUMNS_MAX,
            "a row has at most {COLUMNS_MAX} columns"
        );
        self.columns = columns;
        self.pushed = 0;
        self.ends.clear();
        self.buffer.clear();
        self.buffer.extend_from_slice(&schema_version.to_le_bytes());
        self.buffer
            .extend_from_slice(&(columns as u16).to_le_bytes());
        self.data = HEADER_BYTES + columns.div_ceil(8) + columns * 2;
        self.buffer.resize(self.data, 0);
    }

    /// Appends the next column.
    #[inline]
    pub fn push(&mut self, column: Option<&[u8]>) {
        match column {
            Some(bytes) => {
                self.buffer.extend_from_slice(bytes);
                self.column_done();
            }
            None => self.push_null(),
        }
    }

    /// Appends the next column as NULL.
    #[inline]
    pub fn push_null(&mut self) {
        if self.pushed < self.columns {
            self.buffer[HEADER_BYTES + self.pushed / 8] |= 1 << (self.pushed % 8);
        }
        self.column_done();
    }

    /// Appends the next column; `write` appends its bytes to the buffer it gets and touches nothing before.
    #[inline]
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.buffer);
        self.column_done();
    }

    #[inline]
    fn column_done(&mut self) {
        assert!(
            self.pushed < self.columns,
            "more columns than the row was started with"
        );
        let end = self.buffer.len() - self.data;
        let at = HEADER_BYTES + self.columns.div_ceil(8) + self.pushed * 2;
        self.buffer[at..at + 2].copy_from_slice(&(end as u16).to_le_bytes());
        self.ends.push(end as u32);
        self.pushed += 1;
    }

    /// How many bytes the row takes so far.
    pub fn byte_count(&self) -> usize {
        self.buffer.len()
    }

    /// Ends the row and gives its bytes, valid until the next [`RowBuilder::start`].
    pub fn finish(&mut self) -> &[u8] {
        while self.pushed < self.columns {
            self.push_null();
        }
        if self.buffer.len() - self.data > usize::from(u16::MAX) {
            let at = HEADER_BYTES + self.columns.div_ceil(8);
            self.buffer[3] |= (WIDE >> 8) as u8;
            let wide: Vec<u8> = self.ends.iter().flat_map(|e| e.to_le_bytes()).collect();
            self.buffer.splice(at..self.data, wide);
            self.data = at + self.columns * 4;
        }
        &self.buffer
    }
}

#[cfg(test)]
mod tests;
