//! Rows that are kept to be read later, once or often, from any place on: the first in memory, the others in a
//! temporary file.
//!
//! Readers go through a [`Spool`] by number while it grows. What was written last is still in memory, in the block
//! being filled, and is read there.

use super::record::{self, RecordLayout};
use super::{ReadStep, Spill, Stream, TempFile};
use crate::batch::{Batch, RowBuffer};
use crate::spill_threads::SpillTicket;
use crate::wait::WaitReason;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

/// See the module.
#[derive(Default)]
pub(crate) struct Spool {
    memory: RowBuffer,
    disk: Option<Disk>,
}

struct Disk {
    file: TempFile,
    stream: Stream,
    /// The number, from the first on disk, of each block's first row.
    starts: Vec<u64>,
}

impl Disk {
    fn push(&mut self, row: &[Datum]) -> Result<()> {
        self.stream.push(&[], row, &mut self.file)?;
        if self.stream.blocks.len() == self.starts.len() {
            self.starts.push(self.stream.rows());
        }
        Ok(())
    }
}

impl Spool {
    /// Rows so far.
    pub(crate) fn len(&self) -> usize {
        let written = self.disk.as_ref().map_or(0, |disk| disk.stream.rows());
        self.memory.len() + usize::try_from(written).unwrap_or(usize::MAX)
    }

    /// Row `number`, if it is in memory.
    pub(crate) fn in_memory(&self, number: usize) -> Option<&[Datum]> {
        (number < self.memory.len()).then(|| self.memory.row(number))
    }

    /// Moves all rows of `batch` in. Beyond `memory_bytes` they are written, if there is anywhere to write them to.
    pub(crate) fn append(
        &mut self,
        batch: &mut Batch,
        memory_bytes: usize,
        spill: impl FnOnce() -> Option<Spill>,
    ) -> Result<()> {
        let Some(disk) = self.disk(memory_bytes, spill) else {
            self.memory.append(batch);
            return Ok(());
        };
        for i in 0..batch.len() {
            disk.push(batch.row(i))?;
        }
        batch.start(0);
        Ok(())
    }

    /// Adds a copy of `row`.
    pub(crate) fn push(
        &mut self,
        row: &[Datum],
        memory_bytes: usize,
        spill: impl FnOnce() -> Option<Spill>,
    ) -> Result<()> {
        match self.disk(memory_bytes, spill) {
            Some(disk) => disk.push(row),
            None => {
                self.memory.push(row);
                Ok(())
            }
        }
    }

    /// Where the next rows are written to, if they are.
    fn disk(
        &mut self,
        memory_bytes: usize,
        spill: impl FnOnce() -> Option<Spill>,
    ) -> Option<&mut Disk> {
        if self.disk.is_none() && self.memory.size_bytes() > memory_bytes {
            self.disk = spill().map(|spill| Disk {
                file: TempFile::new(&spill, memory_bytes),
                stream: Stream::default(),
                starts: vec![0],
            });
        }
        self.disk.as_mut()
    }

    /// What to wait for before more is appended.
    pub(crate) fn behind(&self) -> Result<Option<WaitReason>> {
        match &self.disk {
            Some(disk) => disk.file.behind(),
            None => Ok(None),
        }
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        let disk = self.disk.as_ref();
        self.memory.size_bytes() + disk.map_or(0, |d| d.stream.open.len() + d.starts.len() * 40)
    }
}

/// A place in a [`Spool`].
#[derive(Default)]
pub(crate) struct SpoolReader {
    /// The row it is in front of, counted from the first on disk; and where that is: the block, and the place in it.
    next: u64,
    block: usize,
    at: usize,
    /// The block's bytes, once they have been read.
    bytes: Option<Vec<u8>>,
    asked: Option<SpillTicket>,
}

impl SpoolReader {
    /// Adds row `number` to `out`, whose width is the row's; rows are read fastest one after the other.
    pub(crate) fn read(
        &mut self,
        number: usize,
        spool: &Spool,
        out: &mut Batch,
    ) -> Result<ReadStep> {
        if number < spool.memory.len() {
            out.push_row(spool.memory.row(number));
            return Ok(ReadStep::Row);
        }
        let Some(disk) = &spool.disk else {
            return Ok(ReadStep::End);
        };
        let number = (number - spool.memory.len()) as u64;
        if number != self.next {
            let block = disk.starts.partition_point(|start| *start <= number);
            let block = block.saturating_sub(1);
            if block != self.block {
                (self.bytes, self.asked) = (None, None);
            }
            if block != self.block || number < self.next {
                (self.block, self.at) = (block, 0);
                self.next = disk.starts.get(block).copied().unwrap_or(0);
            }
        }
        loop {
            if !self.bring(disk)? {
                return Ok(match self.asked.clone() {
                    Some(ticket) => ReadStep::Wait(WaitReason::Spill(ticket)),
                    None => ReadStep::End,
                });
            }
            let bytes = match &self.bytes {
                Some(bytes) => bytes,
                None => &disk.stream.open,
            };
            if self.at >= bytes.len() {
                if self.block >= disk.stream.blocks.len() {
                    return Ok(ReadStep::End);
                }
                self.block += 1;
                self.at = 0;
                (self.bytes, self.asked) = (None, None);
                continue;
            }
            let RecordLayout { row, .. } = record::place(bytes, self.at)?;
            let end = row.end;
            let wanted = self.next == number;
            if wanted {
                let bytes = bytes.get(row).unwrap_or_default();
                out.push_decoded(|out: &mut Vec<Datum>| record::decode(bytes, out))?;
            }
            self.at = end;
            self.next += 1;
            if wanted {
                return Ok(ReadStep::Row);
            }
        }
    }

    /// Brings the block it is in, unless that is the one being filled; false if it has to be waited for.
    fn bring(&mut self, disk: &Disk) -> Result<bool> {
        let Some(block) = disk.stream.blocks.get(self.block) else {
            return Ok(true);
        };
        if self.bytes.is_none() {
            let ticket = self.asked.take();
            let ticket = ticket.unwrap_or_else(|| disk.file.read(*block));
            if !ticket.is_done() {
                self.asked = Some(ticket);
                return Ok(false);
            }
            self.bytes = Some(disk.file.finish_read(&ticket)?);
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spill::SpillSpace;
    use logstead_env::Env;

    /// Reads row `number`, waiting as long as it takes.
    fn read(reader: &mut SpoolReader, spool: &Spool, number: usize) -> Option<Vec<Datum>> {
        let mut out = Batch::default();
        out.start(2);
        loop {
            match reader.read(number, spool, &mut out).unwrap() {
                ReadStep::Row => return Some(out.row(0).to_vec()),
                ReadStep::End => return None,
                ReadStep::Wait(WaitReason::Spill(ticket)) => {
                    ticket.wait_here(|| Ok::<_, ()>(())).unwrap();
                }
                ReadStep::Wait(_) => panic!("a reader waits for its block only"),
            }
        }
    }

    #[test]
    fn rows_are_read_from_anywhere_while_more_come() {
        let space = SpillSpace::new(Env::real(), std::env::temp_dir());
        let spill = Spill::new(space);
        let mut spool = Spool::default();
        let (mut first, mut other) = (SpoolReader::default(), SpoolReader::default());
        let text = |i: usize| Datum::Text("x".repeat(i % 500).into());
        for i in 0..4000 {
            let mut batch = Batch::default();
            batch.start(2);
            batch.push_row(&[Datum::Int8(i as i64), text(i)]);
            spool
                .append(&mut batch, 1000, || Some(spill.clone()))
                .unwrap();
            // The newest, which is still in memory, right away; and one from long ago.
            let newest = read(&mut first, &spool, i).unwrap();
            assert_eq!(
                format!("{newest:?}"),
                format!("{:?}", [Datum::Int8(i as i64), text(i)])
            );
            assert!(read(&mut first, &spool, i + 1).is_none());
            let old = read(&mut other, &spool, i / 3).unwrap();
            assert_eq!(
                format!("{old:?}"),
                format!("{:?}", [Datum::Int8((i / 3) as i64), text(i / 3)])
            );
        }
        assert_eq!(spool.len(), 4000);
        assert!(spill.used_bytes() > 500_000, "{}", spill.used_bytes());
        for i in [3999, 0, 17, 2000, 1999, 2001, 3998] {
            let row = read(&mut first, &spool, i).unwrap();
            assert_eq!(
                format!("{:?}", row[0]),
                format!("{:?}", Datum::Int8(i as i64))
            );
        }
        drop(spool);
        assert_eq!(spill.used_bytes(), 0);
    }
}
