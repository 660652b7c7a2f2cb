//! Sorting, by memcmp-comparable keys; only the first rows are kept when no more are wanted.

use super::batch::{Batch, Rows, check_memory};
use super::context::Cx;
use super::eval::eval_in;
use super::operator::{Running, Step, pull};
use crate::error::Result;
use crate::plan::{Plan, SortKey};
use crate::value::{Datum, key};

/// Rows with their sort keys.
#[derive(Default)]
pub(crate) struct Sorter {
    rows: Rows,
    /// All keys, one after the other, and where each ends.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Sorter {
    /// Adds a row under the key made by `write`.
    pub(crate) fn push(
        &mut self,
        row: &[Datum],
        write: impl FnOnce(&mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        write(&mut self.bytes)?;
        self.ends.push(self.bytes.len());
        self.rows.push(row);
        Ok(())
    }

    fn key(&self, i: usize) -> &[u8] {
        let start = if i == 0 { 0 } else { self.ends[i - 1] };
        &self.bytes[start..self.ends[i]]
    }

    /// Row numbers in order, rows of equal keys in order of arrival.
    fn order(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_unstable_by(|&a, &b| self.key(a).cmp(self.key(b)).then(a.cmp(&b)));
        order
    }

    /// Keeps the first `rows` rows.
    fn keep_first(&mut self, rows: usize) {
        let mut order = self.order();
        order.truncate(rows);
        let mut kept = Sorter::default();
        for &i in &order {
            kept.bytes.extend_from_slice(self.key(i));
            kept.ends.push(kept.bytes.len());
        }
        self.rows.select(order.into_iter());
        kept.rows = std::mem::take(&mut self.rows);
        *self = kept;
    }

    /// The rows in order.
    pub(crate) fn finish(mut self) -> Rows {
        let order = self.order();
        self.rows.select(order.into_iter());
        self.rows
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + self.bytes.len() + self.ends.len() * 16
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
    sorter: Sorter,
    sorted: Option<Rows>,
    at: usize,
    /// Rows wanted by a LIMIT above.
    bound: Option<usize>,
}

impl SortState {
    pub(crate) fn new(input: &Plan) -> SortState {
        SortState {
            input: Running::new(input),
            batch: Batch::default(),
            sorter: Sorter::default(),
            sorted: None,
            at: 0,
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
            while pull!(self.input, input, cx, &mut self.batch) {
                for i in 0..self.batch.len() {
                    let row = self.batch.row(i);
                    self.sorter.push(row, |out| write_key(keys, row, out, cx))?;
                }
                // Throwing the surplus away at twice the bound costs each row one comparison sort in all.
                if let Some(bound) = self.bound
                    && self.sorter.rows.len() > bound.saturating_mul(2).saturating_add(256)
                {
                    self.sorter.keep_first(bound);
                }
                check_memory("A sort", self.sorter.size_bytes(), cx.memory_bytes_max)?;
            }
            self.sorted = Some(std::mem::take(&mut self.sorter).finish());
        }
        let Some(rows) = &self.sorted else {
            return Ok(Step::Done);
        };
        let end = rows.len().min(self.at + out.capacity());
        if self.at == end {
            return Ok(Step::Done);
        }
        out.start(rows.row(self.at).len());
        for i in self.at..end {
            out.push_row(rows.row(i));
        }
        self.at = end;
        Ok(Step::Batch)
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut Cx<'_>) {
        self.input.rewind(input, cx);
        self.sorter = Sorter::default();
        self.sorted = None;
        self.at = 0;
    }
}
