//! External merge sort: sorted runs in a temporary file, merged as rows are asked for.
//!
//! A [`ExternalSorter`] takes rows like a `Sorter` until those hold more than it may; then they are written as a run,
//! in order. When there are more runs than can be read side by side, neighbouring ones become one, level by level. Of
//! rows with equal keys the first to arrive comes first: runs are numbered in order of arrival, and only neighbours are
//! joined.
//!
//! Everything that takes long is done in pieces: [`ExternalSorter::work`] says when to yield or to wait, and is called
//! again.

use crate::batch::Step;
use crate::context::ExecutorContext;
use crate::sorter::{SortedRuns, Sorter};
use crate::spill::{ReadStep, Reader, Spill, Stream, TempFile};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::cmp::Ordering;

/// Rows moved between two looks at the clock.
const ROWS_AT_ONCE: usize = 256;
/// Runs read side by side, at least and at most; PostgreSQL's.
const FAN_IN: std::ops::RangeInclusive<usize> = 6..=500;

/// Sorted runs being merged.
pub(crate) struct RunMerge {
    inputs: Vec<(Stream, Reader)>,
    /// Inputs that have a row: a heap, the least on top.
    heap: Vec<usize>,
    /// Inputs that have been asked for their first row.
    started: usize,
    /// The input on top has given its row.
    given: bool,
    /// What all readers hold at most.
    reader_bytes: usize,
}

impl RunMerge {
    fn new(runs: Vec<Stream>) -> RunMerge {
        RunMerge {
            reader_bytes: runs.iter().map(Stream::reader_bytes).sum(),
            inputs: runs
                .into_iter()
                .map(|run| (run, Reader::default()))
                .collect(),
            heap: Vec::new(),
            started: 0,
            given: false,
        }
    }

    /// Goes to the next row.
    pub(crate) fn advance(&mut self, file: &TempFile) -> Result<ReadStep> {
        while let Some((run, reader)) = self.inputs.get_mut(self.started) {
            match reader.advance(run, file)? {
                ReadStep::Row => {
                    self.heap.push(self.started);
                    self.sift_up();
                }
                ReadStep::End => {}
                wait => return Ok(wait),
            }
            self.started += 1;
        }
        if self.given
            && let Some(&top) = self.heap.first()
            && let Some((run, reader)) = self.inputs.get_mut(top)
        {
            match reader.advance(run, file)? {
                ReadStep::Row => {}
                ReadStep::End => {
                    self.heap.swap_remove(0);
                }
                wait => return Ok(wait),
            }
            self.sift_down();
        }
        self.given = !self.heap.is_empty();
        Ok(match self.given {
            true => ReadStep::Row,
            false => ReadStep::End,
        })
    }

    fn top(&self) -> Option<&Reader> {
        let (_, reader) = self.inputs.get(*self.heap.first()?)?;
        Some(reader)
    }

    /// The key of the row it stands at.
    pub(crate) fn key(&self) -> &[u8] {
        self.top().map_or(&[], Reader::key)
    }

    /// Adds the values of the row it stands at.
    pub(crate) fn row(&self, out: &mut Vec<Datum>) -> Result<()> {
        self.top().map_or(Ok(()), |reader| reader.row(out))
    }

    fn free(self, file: &mut TempFile) {
        for (run, _) in self.inputs {
            run.free(file);
        }
    }

    /// Memory held at most, roughly: it is charged before the first block is there.
    pub(crate) fn size_bytes(&self) -> usize {
        self.reader_bytes
    }

    fn compare(&self, a: usize, b: usize) -> Ordering {
        let key = |i: usize| {
            self.inputs
                .get(i)
                .map_or(&[][..], |(_, reader)| reader.key())
        };
        key(a).cmp(key(b)).then(a.cmp(&b))
    }

    fn sift_up(&mut self) {
        let mut at = self.heap.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.compare(self.heap[parent], self.heap[at]) == Ordering::Less {
                return;
            }
            self.heap.swap(parent, at);
            at = parent;
        }
    }

    fn sift_down(&mut self) {
        let mut at = 0;
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len()
                    && self.compare(self.heap[child], self.heap[least]) == Ordering::Less
                {
                    least = child;
                }
            }
            if least == at {
                return;
            }
            self.heap.swap(at, least);
            at = least;
        }
    }
}

/// What a [`ExternalSorter`] is doing.
enum ExternalSortPhase {
    /// It takes rows.
    Loading,
    /// It writes a run.
    Writing(Box<SortedRuns>, Stream),
    /// It joins runs: those already joined, and what it is at.
    Merging(Vec<Stream>, Box<RunMerge>, Stream),
}

/// See the module.
pub(crate) struct ExternalSorter {
    /// What is in memory.
    pub(crate) sorter: Sorter,
    runs: Vec<Stream>,
    doing: ExternalSortPhase,
    file: Option<TempFile>,
    /// Of rows with equal keys only the first is wanted.
    unique: bool,
    last: Option<Vec<u8>>,
}

impl Default for ExternalSorter {
    fn default() -> ExternalSorter {
        ExternalSorter {
            sorter: Sorter::default(),
            runs: Vec::new(),
            doing: ExternalSortPhase::Loading,
            file: None,
            unique: false,
            last: None,
        }
    }
}

/// A sorted result.
pub(crate) enum SortResult {
    /// In memory.
    Memory(Box<SortedRuns>),
    /// Runs being merged.
    Disk(Box<RunMerge>, TempFile),
}

impl SortResult {
    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            SortResult::Memory(sorted) => sorted.size_bytes(),
            SortResult::Disk(merge, _) => merge.size_bytes(),
        }
    }
}

impl ExternalSorter {
    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        let file = self.file.as_ref().map_or(0, TempFile::unwritten_bytes);
        let doing = match &self.doing {
            ExternalSortPhase::Loading => 0,
            ExternalSortPhase::Writing(sorted, run) => sorted.size_bytes() + run.open_bytes(),
            ExternalSortPhase::Merging(_, merge, run) => merge.size_bytes() + run.open_bytes(),
        };
        self.sorter.size_bytes() + doing + file
    }

    /// What it holds beside the rows that it takes: a run being written, runs being joined.
    pub(crate) fn beside_bytes(&self) -> usize {
        self.size_bytes().saturating_sub(self.sorter.size_bytes())
    }

    /// One that gives each key once, with the row that came first.
    pub(crate) fn unique() -> ExternalSorter {
        ExternalSorter {
            unique: true,
            ..ExternalSorter::default()
        }
    }

    /// Leaves an empty one in its place.
    pub(crate) fn take(&mut self) -> ExternalSorter {
        let empty = ExternalSorter {
            unique: self.unique,
            ..ExternalSorter::default()
        };
        std::mem::replace(self, empty)
    }

    /// Has something been written?
    pub(crate) fn is_on_disk(&self) -> bool {
        self.file.is_some()
    }

    /// The most that was on disk at once.
    pub(crate) fn disk_bytes(&self) -> u64 {
        self.file.as_ref().map_or(0, TempFile::peak_bytes)
    }

    /// From now on writes what it holds as a run; `work` does it.
    pub(crate) fn write_run(&mut self, spill: &Spill, memory_bytes: usize) {
        if self.sorter.is_empty() {
            return;
        }
        self.file
            .get_or_insert_with(|| TempFile::new(spill, memory_bytes));
        let sorted = std::mem::take(&mut self.sorter).finish(false);
        self.doing = ExternalSortPhase::Writing(Box::new(sorted), Stream::default());
    }

    /// Goes on with what it is doing; nothing when that is done and it takes rows again.
    pub(crate) fn work(&mut self, cx: &mut ExecutorContext<'_>) -> Result<Option<Step>> {
        let Some(file) = &mut self.file else {
            return Ok(None);
        };
        loop {
            if matches!(self.doing, ExternalSortPhase::Loading) {
                return Ok(None);
            }
            if let Some(obstacle) = file.behind()? {
                return Ok(Some(Step::Wait(obstacle)));
            }
            if cx.tick()? {
                return Ok(Some(Step::Yield));
            }
            cx.worked(ROWS_AT_ONCE);
            match &mut self.doing {
                ExternalSortPhase::Loading => {}
                ExternalSortPhase::Writing(sorted, run) => {
                    let mut ended = false;
                    for _ in 0..ROWS_AT_ONCE {
                        let Some((key, row)) = sorted.next_with_key() else {
                            ended = true;
                            break;
                        };
                        if self.unique {
                            if self.last.as_deref() == Some(key) {
                                continue;
                            }
                            let last = self.last.get_or_insert_default();
                            last.clear();
                            last.extend_from_slice(key);
                        }
                        run.push(key, row, file)?;
                    }
                    if ended {
                        run.finish(file)?;
                        self.runs.push(std::mem::take(run));
                        self.last = None;
                        self.doing = ExternalSortPhase::Loading;
                    }
                }
                ExternalSortPhase::Merging(joined, merge, run) => {
                    let mut row = Vec::new();
                    let mut ended = false;
                    for _ in 0..ROWS_AT_ONCE {
                        match merge.advance(file)? {
                            ReadStep::Row => {}
                            ReadStep::End => {
                                ended = true;
                                break;
                            }
                            ReadStep::Wait(obstacle) => return Ok(Some(Step::Wait(obstacle))),
                        }
                        if self.unique && self.last.as_deref() == Some(merge.key()) {
                            continue;
                        }
                        if self.unique {
                            self.last = Some(merge.key().to_vec());
                        }
                        row.clear();
                        merge.row(&mut row)?;
                        run.push(merge.key(), &row, file)?;
                    }
                    if !ended {
                        continue;
                    }
                    run.finish(file)?;
                    joined.push(std::mem::take(run));
                    self.last = None;
                    let mut joined = std::mem::take(joined);
                    let done = ExternalSortPhase::Loading;
                    if let ExternalSortPhase::Merging(_, merge, _) =
                        std::mem::replace(&mut self.doing, done)
                    {
                        merge.free(file);
                    }
                    if self.runs.is_empty() {
                        self.runs = joined;
                        continue;
                    }
                    // The rest of this level.
                    let next = next_runs(&mut self.runs, fan_in(file));
                    if next.len() == 1 {
                        joined.extend(next);
                        self.runs = joined;
                        continue;
                    }
                    let merge = Box::new(RunMerge::new(next));
                    self.doing = ExternalSortPhase::Merging(joined, merge, Stream::default());
                }
            }
        }
    }

    /// No more rows come: what is left in memory becomes a run if there are others, and runs are joined until they can
    /// be read side by side. To be called until it gives nothing; then comes [`finish`](Self::finish).
    pub(crate) fn settle(
        &mut self,
        spill: Option<&Spill>,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<Option<Step>> {
        loop {
            if let Some(step) = self.work(cx)? {
                return Ok(Some(step));
            }
            let (Some(file), Some(spill)) = (&self.file, spill) else {
                return Ok(None);
            };
            if !self.sorter.is_empty() {
                self.write_run(spill, cx.work_mem_bytes);
                continue;
            }
            let fan_in = fan_in(file);
            if self.runs.len() <= fan_in {
                return Ok(None);
            }
            let merge = RunMerge::new(next_runs(&mut self.runs, fan_in));
            self.doing = ExternalSortPhase::Merging(Vec::new(), Box::new(merge), Stream::default());
        }
    }

    /// The rows in order; see [`Sorter::finish`].
    pub(crate) fn finish(self, mixes: bool) -> SortResult {
        match self.file {
            Some(file) => SortResult::Disk(Box::new(RunMerge::new(self.runs)), file),
            None => SortResult::Memory(Box::new(self.sorter.finish(mixes))),
        }
    }
}

/// How many runs are read side by side.
fn fan_in(file: &TempFile) -> usize {
    file.fan_in().clamp(*FAN_IN.start(), *FAN_IN.end())
}

/// Takes the next neighbours.
fn next_runs(runs: &mut Vec<Stream>, fan_in: usize) -> Vec<Stream> {
    let rest = runs.split_off(fan_in.min(runs.len()));
    std::mem::replace(runs, rest)
}
