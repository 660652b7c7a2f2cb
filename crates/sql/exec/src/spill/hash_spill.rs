//! What a full hash table cannot take: rows by the hash of their keys, for later.
//!
//! A table of groups (aggregates, DISTINCT, set operations) that is full takes no new key; rows of keys that it has go
//! on as before, all others are written, to [`FANOUT`] parts by hash. When the input has ended and the table has given
//! what it holds, each part is an input of its own, for an empty table. So every group is made in one piece and of its
//! rows in their order, and no group's state is ever written. Every pass finishes some groups, so this ends however the
//! hashes fall.

use super::{FANOUT, ReadStep, Reader, Spill, Stream, TempFile, partition_of};
use crate::wait::WaitReason;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;

struct OverflowPartition {
    rows: Stream,
    level: u32,
}

/// See the module.
pub(crate) struct HashSpill {
    file: TempFile,
    /// The part that is the input now, and where it is read.
    current: Option<(OverflowPartition, Reader)>,
    /// Where rows go now; none before the table is full.
    streams: Vec<Stream>,
    waiting: Vec<OverflowPartition>,
    passes: u64,
}

impl HashSpill {
    /// For a table that may hold `memory_bytes`.
    pub(crate) fn new(spill: &Spill, memory_bytes: usize) -> HashSpill {
        HashSpill {
            file: TempFile::new(spill, memory_bytes),
            current: None,
            streams: Vec::new(),
            waiting: Vec::new(),
            passes: 1,
        }
    }

    /// Writes a row; `hashed` of its key decides where to.
    pub(crate) fn push(&mut self, hashed: &[u8], key: &[u8], row: &[Datum]) -> Result<()> {
        let level = self.level();
        if self.streams.is_empty() {
            self.streams.resize_with(FANOUT, Stream::default);
        }
        match self.streams.get_mut(partition_of(hashed, level)) {
            Some(stream) => stream.push(key, row, &mut self.file),
            None => Ok(()),
        }
    }

    fn level(&self) -> u32 {
        self.current.as_ref().map_or(0, |(part, _)| part.level)
    }

    /// What to wait for before more is written.
    pub(crate) fn behind(&self) -> Result<Option<WaitReason>> {
        self.file.behind()
    }

    /// Is there something to wait for?
    pub(crate) fn is_behind(&self) -> bool {
        self.file.is_behind()
    }

    /// Memory held, roughly: blocks being filled, read or waiting to be written.
    pub(crate) fn size_bytes(&self) -> usize {
        let streams: usize = self.streams.iter().map(Stream::open_bytes).sum();
        let read = self.current.as_ref().map_or(0, |(_, r)| r.size_bytes());
        streams + read + self.file.unwritten_bytes()
    }

    /// Is a part the input, no longer what is below?
    pub(crate) fn is_reading(&self) -> bool {
        self.current.is_some()
    }

    /// The input has ended and the table is empty again: goes to the next part; false if there is none.
    pub(crate) fn next_part(&mut self) -> Result<bool> {
        let level = self.level() + 1;
        if let Some((part, _)) = self.current.take() {
            part.rows.free(&mut self.file);
        }
        for mut rows in self.streams.drain(..) {
            rows.finish(&mut self.file)?;
            if rows.rows() > 0 {
                self.waiting.push(OverflowPartition { rows, level });
            }
        }
        let next = self.waiting.pop();
        self.passes += u64::from(next.is_some());
        self.current = next.map(|part| (part, Reader::default()));
        Ok(self.current.is_some())
    }

    /// Goes to the next row of the part.
    pub(crate) fn advance(&mut self) -> Result<ReadStep> {
        match &mut self.current {
            Some((part, reader)) => reader.advance(&part.rows, &self.file),
            None => Ok(ReadStep::End),
        }
    }

    /// The key of the row it stands at.
    pub(crate) fn key(&self) -> &[u8] {
        self.current
            .as_ref()
            .map_or(&[], |(_, reader)| reader.key())
    }

    /// Adds the values of the row it stands at.
    pub(crate) fn row(&self, out: &mut Vec<Datum>) -> Result<()> {
        let current = self.current.as_ref();
        current.map_or(Ok(()), |(_, reader)| reader.row(out))
    }

    /// Inputs so far, the first one included.
    pub(crate) fn passes(&self) -> u64 {
        self.passes
    }

    /// The most that was on disk at once.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.file.peak_bytes()
    }
}
