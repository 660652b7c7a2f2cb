//! Sorting, by memcmp-comparable keys; only the first rows are kept when no more are wanted.
//!
//! Rows are sorted in runs as they arrive, and the runs are merged as rows are asked for: no step takes long, however many
//! rows there are.

use super::batch::{Batch, Rows, check_memory};
use super::context::{Cx, Evaluation};
use super::eval::eval_in;
use super::held::Held;
use super::operator::{Running, Step, pull};
use crate::error::Result;
use crate::plan::{Plan, SortKey};
use crate::value::{Datum, key};
use std::cmp::Ordering;

/// Rows sorted at once: some milliseconds.
const RUN_ROWS: usize = 16 * 1024;

/// Rows with their sort keys.
#[derive(Default)]
pub(crate) struct Sorter {
    rows: Rows,
    /// All keys, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Row numbers, sorted; rows from `run_start` on are in no run yet.
    runs: Vec<Vec<usize>>,
    run_start: usize,
}

impl Sorter {
    /// Adds a row under the key made by `write`.
    pub(crate) fn push(
        &mut self,
        row: &[Datum],
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let start = self.bytes.len();
        if let Err(error) = write(&mut self.bytes) {
            // It may come again.
            self.bytes.truncate(start);
            return Err(error);
        }
        self.ends.push(self.bytes.len());
        self.rows.push(row);
        if self.rows.len() - self.run_start == RUN_ROWS {
            self.end_run();
        }
        Ok(())
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// Order of two rows; of equal ones the first to arrive comes first.
    fn compare(&self, a: usize, b: usize) -> Ordering {
        self.key(a).cmp(self.key(b)).then(a.cmp(&b))
    }

    fn end_run(&mut self) {
        if self.run_start < self.rows.len() {
            let mut run: Vec<usize> = (self.run_start..self.rows.len()).collect();
            run.sort_unstable_by(|&a, &b| self.compare(a, b));
            self.runs.push(run);
            self.run_start = self.rows.len();
        }
    }

    /// Keeps the first `rows` rows.
    fn keep_first(&mut self, rows: usize) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|&a, &b| self.compare(a, b));
        order.truncate(rows);
        let mut kept = Sorter::default();
        for &i in &order {
            kept.bytes.extend_from_slice(self.key(i));
            kept.ends.push(kept.bytes.len());
        }
        self.rows.select(order.into_iter());
        kept.rows = std::mem::take(&mut self.rows);
        *self = kept;
        self.end_run();
    }

    /// The rows in order, one by one.
    pub(crate) fn finish(mut self) -> Sorted {
        self.end_run();
        let mut sorted = Sorted {
            heads: vec![0; self.runs.len()],
            heap: (0..self.runs.len()).collect(),
            sorter: self,
        };
        for at in (0..sorted.heap.len() / 2).rev() {
            sorted.sift_down(at);
        }
        sorted
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + self.bytes.len() + self.ends.len() * 16
    }
}

/// Sorted runs being merged.
pub(crate) struct Sorted {
    sorter: Sorter,
    /// Next place in each run.
    heads: Vec<usize>,
    /// Runs that have rows left: a heap, the run with the least next row on top.
    heap: Vec<usize>,
}

impl Sorted {
    /// The next row.
    pub(crate) fn next(&mut self) -> Option<&[Datum]> {
        let run = *self.heap.first()?;
        let row = self.head(run);
        self.heads[run] += 1;
        if self.heads[run] == self.sorter.runs[run].len() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Some(self.sorter.rows.row(row))
    }

    /// Columns of a row.
    fn width(&self) -> usize {
        if self.sorter.rows.len() == 0 {
            0
        } else {
            self.sorter.rows.row(0).len()
        }
    }

    fn head(&self, run: usize) -> usize {
        self.sorter.runs[run][self.heads[run]]
    }

    fn sift_down(&mut self, mut at: usize) {
        loop {
            let mut least = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < self.heap.len() {
                    let (a, b) = (self.head(self.heap[child]), self.head(self.heap[least]));
                    if self.sorter.compare(a, b) == Ordering::Less {
                        least = child;
                    }
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

/// Adds the sort key of `row` to `out`.
pub(crate) fn write_key<'a>(
    keys: &'a [SortKey],
    row: &[Datum],
    out: &mut Vec<u8>,
    cx: &mut Cx<'a>,
) -> Result<()> {
    for sort in keys {
        let datum = eval_in(&sort.expr, row, cx)?;
        key::encode_key(sort.expr.ty().oid, &datum, sort.desc, sort.nulls_first, out);
    }
    Ok(())
}

/// State of a sort.
pub(crate) struct SortState {
    pub(crate) input: Running,
    batch: Batch,
    /// The next row of the batch to be taken.
    at: usize,
    evaluation: Evaluation,
    sorter: Sorter,
    sorted: Option<Sorted>,
    held: Held,
    /// Rows wanted by a LIMIT above.
    bound: Option<usize>,
}

impl SortState {
    pub(crate) fn new(input: &Plan) -> SortState {
        SortState {
            input: Running::new(input),
            batch: Batch::default(),
            at: 0,
            evaluation: Evaluation::default(),
            sorter: Sorter::default(),
            sorted: None,
            held: Held::default(),
            bound: None,
        }
    }

    pub(crate) fn bound(&mut self, rows: usize) {
        self.bound = Some(rows);
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [SortKey],
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if self.sorted.is_none() {
            loop {
                while self.at < self.batch.len() {
                    if cx.take_owed() {
                        return Ok(Step::Yield);
                    }
                    let row = self.batch.row(self.at);
                    let exprs = keys.iter().map(|key| &key.expr);
                    let taken = self.evaluation.of(exprs, cx, |cx| {
                        self.sorter.push(row, |out| write_key(keys, row, out, cx))
                    })?;
                    if let Err(absent) = taken {
                        return Ok(Step::Wait(absent.into()));
                    }
                    self.at += 1;
                }
                // Throwing the surplus away at twice the bound costs each row one comparison sort in all.
                if let Some(bound) = self.bound
                    && self.sorter.rows.len() > bound.saturating_mul(2).saturating_add(256)
                {
                    self.sorter.keep_first(bound);
                }
                let held_bytes = self.sorter.size_bytes();
                check_memory("A sort", held_bytes, cx.memory_bytes_max)?;
                self.held.set(held_bytes, cx.memory())?;
                self.at = 0;
                self.batch.start(0);
                if !pull!(self.input, input, cx, &mut self.batch) {
                    break;
                }
            }
            self.sorted = Some(std::mem::take(&mut self.sorter).finish());
        }
        let Some(sorted) = &mut self.sorted else {
            return Ok(Step::Done);
        };
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        out.start(sorted.width());
        while !out.is_full() {
            match sorted.next() {
                Some(row) => out.push_row(row),
                None => break,
            }
        }
        cx.worked(out.len());
        Ok(if out.is_empty() {
            Step::Done
        } else {
            Step::Batch
        })
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut Cx<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.evaluation.reset();
        self.sorter = Sorter::default();
        self.sorted = None;
    }
}
