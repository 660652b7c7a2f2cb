//! A temporary file of one operator: blocks, written in the background and read on request.
//!
//! Room is given out in slots of `block_bytes`. A block that a single large row makes longer takes several slots in a
//! row, always at the end. Freed slots are used again, one by one.
//!
//! Invariants: jobs of a file are done in order, so a block can be asked for as soon as it was written; at most
//! [`UNWRITTEN_BYTES_MAX`], and what comes between two looks, wait to be written (an operator that is ahead waits, see
//! [`TempFile::behind`]); a failed write fails everything that is asked of the file later.

use super::space::{Spill, SpillSpace};
use crate::spill_threads::{SpillTicket, ticket};
use crate::wait::WaitReason;
use logstead_env::{File, is_disk_full};
use logstead_sql_types::error::{Result, SqlError};
use logstead_types::SqlState;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What may wait to be written.
const UNWRITTEN_BYTES_MAX: usize = 1 << 20;
/// Blocks are no smaller and no larger, however little or much memory there is.
const BLOCK_BYTES: std::ops::RangeInclusive<usize> = (8 << 10)..=(256 << 10);
/// How many blocks an operator's memory should hold: streams have one each while they are written, two while they are
/// read.
const BLOCKS_IN_MEMORY: usize = 32;

/// Where a block lies and what it is.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpillBlock {
    offset: u64,
    len: u32,
    check: u32,
}

impl SpillBlock {
    pub(super) fn len_bytes(&self) -> usize {
        self.len as usize
    }
}

/// The part that the pool's threads use.
struct OpenTempFile {
    space: Arc<SpillSpace>,
    number: u64,
    /// Made by the first write; only the file's own jobs, one after the other, look at it.
    file: Mutex<Option<Box<dyn File>>>,
    failed: Mutex<Option<SqlError>>,
    unwritten: AtomicUsize,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl OpenTempFile {
    fn write(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut file = lock(&self.file);
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(self.space.make(self.number)?),
        };
        file.write_all_at(offset, bytes)
    }

    fn read(&self, block: SpillBlock) -> io::Result<Vec<u8>> {
        let file = lock(&self.file);
        let file = file
            .as_ref()
            .ok_or_else(|| io::Error::other("it was never made"))?;
        let mut bytes = vec![0; block.len as usize];
        let count = file.read_full_at(block.offset, &mut bytes)?;
        if count != bytes.len() || crc32c::crc32c(&bytes) != block.check {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        Ok(bytes)
    }

    fn close(&self) {
        if lock(&self.file).take().is_some() {
            self.space.open.fetch_sub(1, Ordering::AcqRel);
        }
    }

    fn failed(&self) -> MutexGuard<'_, Option<SqlError>> {
        lock(&self.failed)
    }
}

/// See the module.
pub(crate) struct TempFile {
    spill: Spill,
    opened: Arc<OpenTempFile>,
    block_bytes: usize,
    fan_in: usize,
    /// Behind the last slot given out.
    end: u64,
    free: Vec<u64>,
    /// Bytes in blocks, now and at most.
    bytes: u64,
    peak: u64,
}

impl TempFile {
    /// A file for an operator that may hold `memory_bytes`. It is made when something is written.
    pub(crate) fn new(spill: &Spill, memory_bytes: usize) -> TempFile {
        let block =
            (memory_bytes / BLOCKS_IN_MEMORY).clamp(*BLOCK_BYTES.start(), *BLOCK_BYTES.end());
        TempFile {
            opened: Arc::new(OpenTempFile {
                space: Arc::clone(&spill.space),
                number: spill.space.number(),
                file: Mutex::default(),
                failed: Mutex::default(),
                unwritten: AtomicUsize::new(0),
            }),
            spill: spill.clone(),
            block_bytes: block,
            fan_in: memory_bytes / (2 * block),
            end: 0,
            free: Vec::new(),
            bytes: 0,
            peak: 0,
        }
    }

    /// A block is written when it has so many bytes.
    pub(crate) fn block_bytes(&self) -> usize {
        self.block_bytes
    }

    /// How many of its streams can be read side by side in the operator's memory: two blocks each.
    pub(crate) fn fan_in(&self) -> usize {
        self.fan_in
    }

    /// The most that was in it at once.
    pub(crate) fn peak_bytes(&self) -> u64 {
        self.peak
    }

    /// What an operator should wait for that has written faster than the disk takes it; fails if the disk has.
    pub(crate) fn behind(&self) -> Result<Option<WaitReason>> {
        if let Some(error) = &*self.opened.failed() {
            return Err(error.clone());
        }
        if !self.is_behind() {
            return Ok(None);
        }
        let (ticket, finish) = ticket();
        let job = Box::new(move || drop(finish));
        self.opened.space.pool.submit(self.opened.number, job);
        Ok(Some(WaitReason::Spill(ticket)))
    }

    /// Would [`behind`](Self::behind) say so?
    pub(crate) fn is_behind(&self) -> bool {
        self.unwritten_bytes() > UNWRITTEN_BYTES_MAX
    }

    /// What waits in memory to be written.
    pub(crate) fn unwritten_bytes(&self) -> usize {
        self.opened.unwritten.load(Ordering::Acquire)
    }

    /// Has a block written.
    pub(super) fn write(&mut self, bytes: Vec<u8>) -> Result<SpillBlock> {
        if let Some(error) = &*self.opened.failed() {
            return Err(error.clone());
        }
        let len = u32::try_from(bytes.len())
            .map_err(|_| SqlError::internal("a block that is too long"))?;
        self.spill.take(u64::from(len))?;
        self.bytes += u64::from(len);
        self.peak = self.peak.max(self.bytes);
        let slots = bytes.len().div_ceil(self.block_bytes).max(1);
        let offset = match self.free.pop() {
            Some(offset) if slots == 1 => offset,
            unfit => {
                self.free.extend(unfit);
                let offset = self.end;
                self.end += (slots * self.block_bytes) as u64;
                offset
            }
        };
        let block = SpillBlock {
            offset,
            len,
            check: crc32c::crc32c(&bytes),
        };
        let opened = Arc::clone(&self.opened);
        let before = opened.unwritten.fetch_add(bytes.len(), Ordering::AcqRel);
        let most = &opened.space.unwritten_bytes_max;
        most.fetch_max(before + bytes.len(), Ordering::Relaxed);
        let job = move || {
            if opened.failed().is_none()
                && let Err(error) = opened.write(offset, &bytes)
            {
                *opened.failed() = Some(cannot("write to", &error));
            }
            opened.unwritten.fetch_sub(bytes.len(), Ordering::AcqRel);
        };
        self.opened
            .space
            .pool
            .submit(self.opened.number, Box::new(job));
        Ok(block)
    }

    /// Has a block read, after all that has been written.
    pub(super) fn read(&self, block: SpillBlock) -> SpillTicket {
        let (ticket, finish) = ticket();
        let opened = Arc::clone(&self.opened);
        let job = move || finish.with(opened.read(block));
        self.opened
            .space
            .pool
            .submit(self.opened.number, Box::new(job));
        ticket
    }

    /// What a block that was asked for holds.
    pub(super) fn finish_read(&self, ticket: &SpillTicket) -> Result<Vec<u8>> {
        if let Some(error) = &*self.opened.failed() {
            return Err(error.clone());
        }
        ticket.take().map_err(|error| cannot("read from", &error))
    }

    /// A block is not needed any more.
    pub(super) fn free(&mut self, block: SpillBlock) {
        let slots = (block.len as usize).div_ceil(self.block_bytes).max(1);
        for slot in 0..slots {
            self.free
                .push(block.offset + (slot * self.block_bytes) as u64);
        }
        self.bytes = self.bytes.saturating_sub(u64::from(block.len));
        self.spill.give(u64::from(block.len));
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        self.spill.give(self.bytes);
        // Closing a large file takes the kernel a while. This is its last job.
        let (opened, number) = (Arc::clone(&self.opened), self.opened.number);
        let job = Box::new(move || opened.close());
        self.spill.space.pool.submit(number, job);
    }
}

fn cannot(what: &str, error: &io::Error) -> SqlError {
    if error.kind() == io::ErrorKind::InvalidData {
        return SqlError::new(
            SqlState::DATA_CORRUPTED,
            "a temporary file does not hold what was written to it",
        );
    }
    let code = match is_disk_full(error) {
        true => SqlState::DISK_FULL,
        false => SqlState::IO_ERROR,
    };
    SqlError::new(code, format!("could not {what} a temporary file: {error}"))
}
