//! A stream of rows with their keys in a temporary file, and its reader.
//!
//! Invariant: rows come out in the order in which they went in, as often as somebody reads them, until their blocks are
//! freed.

use super::file::{SpillBlock, TempFile};
use super::record::{self, RecordLayout};
use crate::spill_threads::SpillTicket;
use crate::wait::WaitReason;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// A stream. It is of one [`TempFile`], which every call is given.
#[derive(Default)]
pub(crate) struct Stream {
    pub(super) blocks: Vec<SpillBlock>,
    /// The block being filled.
    pub(super) open: Vec<u8>,
    rows: u64,
}

impl Stream {
    /// Adds a row. The caller looks at [`TempFile::behind`] now and then.
    pub(crate) fn push(&mut self, key: &[u8], row: &[Datum], file: &mut TempFile) -> Result<()> {
        record::encode(key, row, &mut self.open)?;
        self.rows += 1;
        if self.open.len() >= file.block_bytes() {
            self.finish(file)?;
        }
        Ok(())
    }

    /// Has what is left written: no more rows come.
    pub(crate) fn finish(&mut self, file: &mut TempFile) -> Result<()> {
        if self.open.is_empty() {
            return Ok(());
        }
        let bytes = std::mem::take(&mut self.open);
        self.blocks.push(file.write(bytes)?);
        Ok(())
    }

    /// Memory that the block being filled holds.
    pub(crate) fn open_bytes(&self) -> usize {
        self.open.capacity()
    }

    /// Memory that a reader of the stream, once finished, holds at most: a block, and the one read ahead.
    pub(crate) fn reader_bytes(&self) -> usize {
        let two = self.blocks.iter().zip(self.blocks.iter().skip(1));
        let two = two.map(|(a, b)| a.len_bytes() + b.len_bytes()).max();
        two.unwrap_or_else(|| self.blocks.first().map_or(0, SpillBlock::len_bytes))
    }

    /// Rows so far.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Gives the room of a stream back that nobody reads any more, or that was not read to its end.
    pub(crate) fn free(self, file: &mut TempFile) {
        for block in self.blocks {
            file.free(block);
        }
    }
}

/// What came of a step.
pub(crate) enum ReadStep {
    /// A row.
    Row,
    /// No more rows.
    End,
    /// A block is not there yet: wait for it, and call again.
    Wait(WaitReason),
}

/// Reads a finished stream.
#[derive(Default)]
pub(crate) struct Reader {
    next: usize,
    block: Vec<u8>,
    at: usize,
    place: RecordLayout,
    ahead: Option<SpillTicket>,
}

impl Reader {
    /// Goes to the next row.
    pub(crate) fn advance(&mut self, stream: &Stream, file: &TempFile) -> Result<ReadStep> {
        loop {
            if self.at < self.block.len() {
                self.place = record::place(&self.block, self.at)?;
                self.at = self.place.row.end;
                return Ok(ReadStep::Row);
            }
            let ticket = match self.ahead.take() {
                Some(ticket) => ticket,
                None => match stream.blocks.get(self.next) {
                    Some(block) => file.read(*block),
                    None => return Ok(ReadStep::End),
                },
            };
            if !ticket.is_done() {
                let waits = WaitReason::Spill(ticket.clone());
                self.ahead = Some(ticket);
                return Ok(ReadStep::Wait(waits));
            }
            self.block = file.finish_read(&ticket)?;
            self.at = 0;
            self.next += 1;
            self.ahead = stream.blocks.get(self.next).map(|block| file.read(*block));
        }
    }

    /// The key of the row it stands at.
    pub(crate) fn key(&self) -> &[u8] {
        self.block.get(self.place.key.clone()).unwrap_or_default()
    }

    /// Adds the values of the row it stands at.
    pub(crate) fn row(&self, out: &mut Vec<Datum>) -> Result<()> {
        let bytes = self.block.get(self.place.row.clone()).unwrap_or_default();
        record::decode(bytes, out)
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        2 * self.block.capacity()
    }
}
