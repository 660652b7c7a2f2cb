//! Records: one row change each, the body of an entry.
//!
//! ```text
//! record := kind:u8 table:varint rid:varint [len:varint bytes]     kind 1 insert, 2 update, 3 delete (no bytes)
//! ```
//!
//! The bytes are the engine's: a whole row for an insert, a delta for an update. This module does not look into them.
//!
//! Who reads records: `inspect` here, and in the engine `replay`, `replica::apply`, `chunk_tail`,
//! `checkpoint::restore` and `checkpoint::tail`. Another kind is another format version (docs/format.md);
//! CONTRIBUTING.md has what it takes.

use crate::FormatError;
use crate::varint::{self, Reader};
use logstead_types::{Rid, TableId};

const INSERT: u8 = 1;
const UPDATE: u8 = 2;
const DELETE: u8 = 3;

/// One row change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRecord<'a> {
    /// A new row.
    Insert {
        /// Its table.
        table: TableId,
        /// Its slot.
        rid: Rid,
        /// All of it.
        row: &'a [u8],
    },
    /// A changed row.
    Update {
        /// Its table.
        table: TableId,
        /// Its slot.
        rid: Rid,
        /// The changed columns.
        delta: &'a [u8],
    },
    /// A removed row.
    Delete {
        /// Its table.
        table: TableId,
        /// Its slot.
        rid: Rid,
    },
}

impl RowRecord<'_> {
    /// Appends the record's bytes to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let (kind, table, rid, bytes) = match *self {
            RowRecord::Insert { table, rid, row } => (INSERT, table, rid, Some(row)),
            RowRecord::Update { table, rid, delta } => (UPDATE, table, rid, Some(delta)),
            RowRecord::Delete { table, rid } => (DELETE, table, rid, None),
        };
        out.push(kind);
        varint::put(u64::from(table.get()), out);
        varint::put(rid.get(), out);
        if let Some(bytes) = bytes {
            varint::put(bytes.len() as u64, out);
            out.extend_from_slice(bytes);
        }
    }

    /// The table it changes.
    pub fn table(&self) -> TableId {
        let (RowRecord::Insert { table, .. }
        | RowRecord::Update { table, .. }
        | RowRecord::Delete { table, .. }) = self;
        *table
    }

    /// The row it changes.
    pub fn rid(&self) -> Rid {
        let (RowRecord::Insert { rid, .. }
        | RowRecord::Update { rid, .. }
        | RowRecord::Delete { rid, .. }) = self;
        *rid
    }
}

/// The records in some bytes, in order. After an error there are no more.
pub struct RecordReader<'a> {
    reader: Reader<'a>,
    broken: bool,
}

impl<'a> RecordReader<'a> {
    /// Reads records from `bytes`, which may be anything.
    pub fn new(bytes: &'a [u8]) -> RecordReader<'a> {
        RecordReader {
            reader: Reader::new(bytes),
            broken: false,
        }
    }

    /// Where the next record begins: how many of the bytes were read.
    pub fn at(&self) -> usize {
        self.reader.at()
    }

    fn read(&mut self) -> Result<RowRecord<'a>, FormatError> {
        let start = self.reader.at();
        let kind = self.reader.byte()?;
        if !matches!(kind, INSERT | UPDATE | DELETE) {
            return Err(FormatError::new("unknown kind of record", start));
        }
        let table = TableId(self.reader.number_u32()?);
        let rid = Rid(self.reader.number()?);
        if kind == DELETE {
            return Ok(RowRecord::Delete { table, rid });
        }
        let len = self.reader.number()?;
        let bytes = self.reader.bytes(len)?;
        Ok(if kind == INSERT {
            RowRecord::Insert {
                table,
                rid,
                row: bytes,
            }
        } else {
            RowRecord::Update {
                table,
                rid,
                delta: bytes,
            }
        })
    }
}

impl<'a> Iterator for RecordReader<'a> {
    type Item = Result<RowRecord<'a>, FormatError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.broken || self.reader.is_empty() {
            return None;
        }
        let record = self.read();
        self.broken = record.is_err();
        Some(record)
    }
}
