//! Sorting rows in memory by keys that compare as bytes: short sorted runs, merged when they are read.
//!
//! Does not: write files (`operator::sort::external`) or know what keys are.

mod pg_qsort;

use crate::batch::RowBuffer;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::cmp::Ordering;

/// Rows with their sort keys.
#[derive(Default)]
pub(crate) struct Sorter {
    pub(crate) rows: RowBuffer,
    /// All keys, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Row numbers, sorted; rows from `run_start` on are in no run yet.
    runs: Vec<Vec<usize>>,
    run_start: usize,
    /// Rows were thrown away that nobody wants.
    pub(crate) has_dropped: bool,
}

impl Sorter {
    /// Adds a row under the key made by `write`.
    pub(crate) fn push<E>(
        &mut self,
        row: &[Datum],
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
    ) -> Result<(), E> {
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

    /// No rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.len() == 0
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
    pub(crate) fn keep_first(&mut self, rows: usize) {
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
        kept.has_dropped = true;
        *self = kept;
        self.end_run();
    }

    /// The rows in order, one by one; equal ones as PostgreSQL's sort leaves them, if they are few and `mixes` says
    /// that
    /// they need not stay as they came.
    pub(crate) fn finish(mut self, mixes: bool) -> SortedRuns {
        let count = self.rows.len();
        if mixes && self.runs.is_empty() && (2..=pg_qsort::FEW_ROWS).contains(&count) {
            let mut run: Vec<usize> = (0..count).collect();
            pg_qsort::sort(&mut run, &|a, b| self.key(a).cmp(self.key(b)));
            self.runs.push(run);
            self.run_start = count;
        }
        self.end_run();
        let mut sorted = SortedRuns {
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
pub(crate) struct SortedRuns {
    sorter: Sorter,
    /// Next place in each run.
    heads: Vec<usize>,
    /// Runs that have rows left: a heap, the run with the least next row on top.
    heap: Vec<usize>,
}

impl SortedRuns {
    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        self.sorter.size_bytes()
    }

    /// The next row.
    pub(crate) fn next(&mut self) -> Option<&[Datum]> {
        let row = self.next_number()?;
        Some(self.sorter.rows.row(row))
    }

    /// The next row with its key.
    pub(crate) fn next_with_key(&mut self) -> Option<(&[u8], &[Datum])> {
        let row = self.next_number()?;
        Some((self.sorter.key(row), self.sorter.rows.row(row)))
    }

    fn next_number(&mut self) -> Option<usize> {
        let run = *self.heap.first()?;
        let row = self.head(run);
        self.heads[run] += 1;
        if self.heads[run] == self.sorter.runs[run].len() {
            self.heap.swap_remove(0);
        }
        self.sift_down(0);
        Some(row)
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

/// Rows sorted at once: less than a millisecond.
pub(crate) const RUN_ROWS: usize = 4 * 1024;
