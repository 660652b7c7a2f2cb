//! Sorting what does not fit in memory: records go in in any order and come out in theirs.
//!
//! Records are collected up to a number that is given, sorted, and written to a file behind one another as a *run*. At
//! the end all runs are read side by side. If there are many they are merged first, so that each is read in pieces of a
//! size that a disk likes.
//!
//! Invariants:
//! - Memory is bounded whatever is pushed: the buffer, and [`PIECE_BYTES`] for each of at most [`RUNS_MAX`] runs.
//! - Files have no name from the moment they were made, so nothing is left of them however the process ends.
//! - What comes out is what went in: a run that cannot be read back whole is an error.
//!
//! Does not: leave out what is there twice.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use logstead_env::{Access, File, Files, OpenMode};
use logstead_wal::varint::{self, LEN_MAX, Reader};

/// What of a run is in memory while it is read.
const PIECE_BYTES: usize = 64 << 10;
/// Runs that are read side by side.
const RUNS_MAX: usize = 128;

/// Where what does not fit in memory goes for a while.
#[derive(Clone)]
pub struct ScratchFiles {
    files: Arc<dyn Files>,
    dir: PathBuf,
    /// Told apart from those of others in the directory by this.
    prefix: String,
}

impl ScratchFiles {
    /// Files in this directory, whose names begin with `prefix` as long as they have one: a number of the process, for
    /// instance.
    pub fn new(files: Arc<dyn Files>, dir: PathBuf, prefix: String) -> ScratchFiles {
        ScratchFiles { files, dir, prefix }
    }

    fn file(&self, number: usize) -> io::Result<Box<dyn File>> {
        let path = self.dir.join(format!("{}-{number}", self.prefix));
        let mode = OpenMode::buffered(Access::CreateNew);
        let named =
            |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        let file = self.files.open(&path, mode).map_err(named)?;
        self.files.remove(&path).map_err(named)?;
        Ok(file)
    }
}

/// What is sorted: four numbers, compared from the first to the last.
pub(super) type SortRecord = [u64; 4];

/// Collects records.
pub(super) struct Sorter<'s> {
    scratch: &'s ScratchFiles,
    records: Vec<SortRecord>,
    records_max: usize,
    runs: Vec<Run>,
    number: usize,
}

impl<'s> Sorter<'s> {
    /// One that holds so many records in memory. Two that are there at a time have different numbers.
    pub(super) fn new(scratch: &'s ScratchFiles, records_max: usize, number: usize) -> Sorter<'s> {
        Sorter {
            scratch,
            records: Vec::new(),
            records_max: records_max.max(1),
            runs: Vec::new(),
            number,
        }
    }

    pub(super) fn push(&mut self, record: SortRecord) -> io::Result<()> {
        self.records.push(record);
        if self.records.len() >= self.records_max {
            self.records.sort_unstable();
            let mut run = self.begin_run()?;
            for record in self.records.drain(..) {
                run.push(&record)?;
            }
            self.runs.push(run.finish()?);
            if self.runs.len() >= RUNS_MAX {
                self.merge_runs()?;
            }
        }
        Ok(())
    }

    fn begin_run(&mut self) -> io::Result<RunWriter> {
        // Few are open at a time: names are free again at once.
        let file = self.scratch.file(self.number)?;
        Ok(RunWriter {
            file,
            before: [0; 4],
            bytes: Vec::new(),
            len: 0,
            count: 0,
        })
    }

    fn merge_runs(&mut self) -> io::Result<()> {
        let mut merged = SortedRecords::new(Vec::new(), std::mem::take(&mut self.runs))?;
        let mut run = self.begin_run()?;
        while let Some(record) = merged.next()? {
            run.push(&record)?;
        }
        self.runs.push(run.finish()?);
        Ok(())
    }

    /// All of them, in their order.
    pub(super) fn finish(mut self) -> io::Result<SortedRecords> {
        self.records.sort_unstable();
        SortedRecords::new(self.records, self.runs)
    }
}

struct RunWriter {
    file: Box<dyn File>,
    before: SortRecord,
    bytes: Vec<u8>,
    len: u64,
    count: u64,
}

impl RunWriter {
    /// The first number as its distance to the one before: records of neighbouring rows take few bytes.
    fn push(&mut self, record: &SortRecord) -> io::Result<()> {
        varint::put(record[0].wrapping_sub(self.before[0]), &mut self.bytes);
        for number in &record[1..] {
            varint::put(*number, &mut self.bytes);
        }
        self.before = *record;
        self.count += 1;
        if self.bytes.len() >= PIECE_BYTES {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> io::Result<()> {
        self.file.write_all_at(self.len, &self.bytes)?;
        self.len += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<Run> {
        self.write()?;
        Ok(Run {
            file: self.file,
            len: self.len,
            left: self.count,
            before: [0; 4],
            bytes: Vec::new(),
            at: 0,
            read: 0,
        })
    }
}

/// A sorted run in a file, and how far it was read.
struct Run {
    file: Box<dyn File>,
    len: u64,
    left: u64,
    before: SortRecord,
    bytes: Vec<u8>,
    at: usize,
    read: u64,
}

impl Run {
    fn next(&mut self) -> io::Result<Option<SortRecord>> {
        let Some(left) = self.left.checked_sub(1) else {
            return Ok(None);
        };
        if self.bytes.len() - self.at < 4 * LEN_MAX && self.read < self.len {
            self.bytes.drain(..self.at);
            self.at = 0;
            let start = self.bytes.len();
            let piece = (self.len - self.read).min(PIECE_BYTES as u64) as usize;
            self.bytes.resize(start + piece, 0);
            let got = self
                .file
                .read_full_at(self.read, &mut self.bytes[start..])?;
            if got < piece {
                return Err(lost());
            }
            self.read += piece as u64;
        }
        let mut from = Reader::new(&self.bytes[self.at..]);
        let mut record = [0; 4];
        for number in &mut record {
            *number = from.number().map_err(|_| lost())?;
        }
        record[0] = record[0].wrapping_add(self.before[0]);
        if record < self.before {
            return Err(lost());
        }
        self.at += from.at();
        self.before = record;
        self.left = left;
        Ok(Some(record))
    }
}

fn lost() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "a scratch file does not hold what was written to it",
    )
}

/// Records in their order.
pub(super) struct SortedRecords {
    records: std::vec::IntoIter<SortRecord>,
    runs: Vec<Run>,
    /// The next record of each run, and of what is in memory.
    heads: BinaryHeap<Reverse<(SortRecord, usize)>>,
}

/// Stands for what is in memory.
const IN_MEMORY: usize = usize::MAX;

impl SortedRecords {
    fn new(records: Vec<SortRecord>, runs: Vec<Run>) -> io::Result<SortedRecords> {
        let mut sorted = SortedRecords {
            records: records.into_iter(),
            heads: BinaryHeap::with_capacity(runs.len() + 1),
            runs,
        };
        for from in (0..sorted.runs.len()).chain([IN_MEMORY]) {
            sorted.fetch(from)?;
        }
        Ok(sorted)
    }

    fn fetch(&mut self, from: usize) -> io::Result<()> {
        let next = match self.runs.get_mut(from) {
            Some(run) => run.next()?,
            None => self.records.next(),
        };
        self.heads
            .extend(next.map(|record| Reverse((record, from))));
        Ok(())
    }

    /// The next one, without taking it.
    pub(super) fn peek(&self) -> Option<SortRecord> {
        self.heads.peek().map(|Reverse((record, _))| *record)
    }

    /// The next one.
    pub(super) fn next(&mut self) -> io::Result<Option<SortRecord>> {
        let Some(Reverse((record, from))) = self.heads.pop() else {
            return Ok(None);
        };
        self.fetch(from)?;
        Ok(Some(record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use logstead_env::Env;

    /// As many as asked for, from a seed: some are equal, some are as large as they can be.
    fn records(seed: u64, count: usize) -> Vec<SortRecord> {
        let mut state = seed;
        let mut number = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        (0..count)
            .map(|_| {
                let rid = match number(20) {
                    0 => u64::MAX,
                    _ => number(500),
                };
                [rid, number(3), u64::MAX - number(4), number(2)]
            })
            .collect()
    }

    #[test]
    fn everything_comes_out_in_order_however_little_fits_in_memory() {
        for (seed, count) in (0..40).zip([0, 1, 7, 400, 3_000].into_iter().cycle()) {
            let (env, files) = Env::simulated(seed);
            let dir = PathBuf::from("/scratch");
            env.files.create_dir(&dir).unwrap();
            let scratch = ScratchFiles::new(Arc::clone(&env.files), dir.clone(), "sort".to_owned());
            let records_max = [1, 5, 64, 10_000][seed as usize % 4];
            let mut sorter = Sorter::new(&scratch, records_max, 0);
            let mut expected = records(seed, count);
            for record in &expected {
                sorter.push(*record).unwrap();
            }
            assert!(sorter.runs.len() < RUNS_MAX);
            assert_eq!(sorter.runs.is_empty(), count < records_max);
            assert_eq!(env.files.list(&dir).unwrap(), Vec::<String>::new());
            expected.sort_unstable();
            let mut sorted = sorter.finish().unwrap();
            for record in expected {
                assert_eq!(sorted.peek(), Some(record));
                assert_eq!(sorted.next().unwrap(), Some(record));
            }
            assert_eq!(sorted.next().unwrap(), None);
            drop(files);
        }
    }
}
