//! Rows in memory: [`Batch`], what operators hand up, and [`RowBuffer`], what blocking operators keep.
//!
//! Both are flat: one vector of datums, rows one after the other, so that a batch costs no allocation per row and its
//! buffer is used again. Invariant: `data.len() == rows * width`. A batch is full by its rows or by the memory that
//! their values hold: wide rows come in smaller batches.

use crate::wait::WaitReason;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;

/// A bounded run of rows, filled by an operator and read by the one above it.
#[derive(Debug)]
pub(crate) struct Batch {
    width: usize,
    rows: usize,
    /// The operator that fills it stops here: a LIMIT above must not make rows below it lock or compute.
    capacity: usize,
    data: Vec<Datum>,
    /// What values hold outside of `data`.
    bytes: usize,
}

/// A batch with more than this in values is full.
const BATCH_BYTES: usize = 1 << 20;

/// Rows of a batch unless somebody above needs fewer: big enough to spread the cost of a step, small enough for the
/// cache.
pub(crate) const BATCH_ROWS: usize = 256;

impl Default for Batch {
    fn default() -> Batch {
        Batch {
            width: 0,
            rows: 0,
            capacity: BATCH_ROWS,
            data: Vec::new(),
            bytes: 0,
        }
    }
}

impl Batch {
    /// An empty batch of at most `capacity` rows.
    pub(crate) fn of(capacity: usize) -> Batch {
        Batch {
            capacity: capacity.max(1),
            ..Batch::default()
        }
    }

    /// Changes how many rows it takes.
    pub(crate) fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity.max(1);
    }

    /// How many rows it takes.
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// Empties it for rows of `width` columns.
    pub(crate) fn start(&mut self, width: usize) {
        self.data.clear();
        self.rows = 0;
        self.bytes = 0;
        self.width = width;
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// No rows.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// No room for another row.
    pub(crate) fn is_full(&self) -> bool {
        self.rows >= self.capacity || self.bytes > BATCH_BYTES
    }

    /// Row `i`.
    pub(crate) fn row(&self, i: usize) -> &[Datum] {
        &self.data[i * self.width..(i + 1) * self.width]
    }

    /// Row `i`, for somebody who takes its values out.
    pub(crate) fn row_mut(&mut self, i: usize) -> &mut [Datum] {
        &mut self.data[i * self.width..(i + 1) * self.width]
    }

    /// Adds one datum of the row being made.
    #[inline]
    pub(crate) fn push(&mut self, datum: Datum) {
        self.data.push(datum);
    }

    /// Ends the row being made.
    #[inline]
    pub(crate) fn end_row(&mut self) {
        for datum in self.data.iter().skip(self.rows * self.width) {
            self.bytes += outside_bytes(datum);
        }
        self.rows += 1;
        debug_assert_eq!(
            self.data.len(),
            self.rows * self.width,
            "a row has `width` datums"
        );
    }

    /// Forgets the datums of the row being made.
    pub(crate) fn abandon_row(&mut self) {
        self.data.truncate(self.rows * self.width);
    }

    /// The datums of the row being made.
    pub(crate) fn open_row(&mut self) -> &mut [Datum] {
        &mut self.data[self.rows * self.width..]
    }

    /// Adds a copy of `row`.
    pub(crate) fn push_row(&mut self, row: &[Datum]) {
        self.data.extend_from_slice(row);
        self.end_row();
    }

    /// Adds a row that `decode` appends.
    pub(crate) fn push_decoded(
        &mut self,
        decode: impl FnOnce(&mut Vec<Datum>) -> Result<()>,
    ) -> Result<()> {
        decode(&mut self.data)?;
        if self.data.len() != (self.rows + 1) * self.width {
            return Err(SqlError::internal("a row of another width"));
        }
        self.end_row();
        Ok(())
    }

    /// Adds `left` followed by `right`.
    pub(crate) fn push_joined(&mut self, left: &[Datum], right: &[Datum]) {
        self.data.extend_from_slice(left);
        self.data.extend_from_slice(right);
        self.end_row();
    }

    /// Adds `left` followed by `nulls` NULLs.
    pub(crate) fn push_padded(&mut self, left: &[Datum], nulls: usize) {
        self.data.extend_from_slice(left);
        self.data.extend(std::iter::repeat_n(Datum::Null, nulls));
        self.end_row();
    }

    /// Keeps the rows that `keep` says yes to; of a batch with a row of which it cannot say, those before that row.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&[Datum]) -> Result<bool>) -> Result<()> {
        let mut kept = 0;
        let mut said = Ok(());
        for i in 0..self.rows {
            let keeps = match keep(self.row(i)) {
                Ok(keeps) => keeps,
                Err(error) => {
                    said = Err(error);
                    break;
                }
            };
            if keeps {
                if kept != i {
                    for c in 0..self.width {
                        self.data.swap(kept * self.width + c, i * self.width + c);
                    }
                }
                kept += 1;
            }
        }
        self.truncate(kept);
        said
    }

    /// Drops rows from the front.
    pub(crate) fn drop_front(&mut self, rows: usize) {
        let rows = rows.min(self.rows);
        self.data.drain(..rows * self.width);
        self.rows -= rows;
    }

    /// Drops rows beyond `rows`.
    pub(crate) fn truncate(&mut self, rows: usize) {
        if rows < self.rows {
            self.rows = rows;
            self.data.truncate(rows * self.width);
        }
    }
}

/// Rows that an operator keeps, with an estimate of the memory they hold.
#[derive(Debug, Default)]
pub(crate) struct RowBuffer {
    width: usize,
    rows: usize,
    data: Vec<Datum>,
    bytes: usize,
}

impl RowBuffer {
    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows
    }

    /// Row `i`.
    pub(crate) fn row(&self, i: usize) -> &[Datum] {
        &self.data[i * self.width..(i + 1) * self.width]
    }

    /// Adds a copy of `row`; all rows have the width of the first.
    pub(crate) fn push(&mut self, row: &[Datum]) {
        self.width = row.len();
        self.bytes += row_size_bytes(row);
        self.data.extend_from_slice(row);
        self.rows += 1;
    }

    /// Adds the values of `row`, and leaves NULLs in their place; all rows have the width of the first.
    pub(crate) fn push_taken(&mut self, row: &mut [Datum]) {
        self.width = row.len();
        self.bytes += row_size_bytes(row);
        self.data.extend(row.iter_mut().map(std::mem::take));
        self.rows += 1;
    }

    /// Moves all rows of `batch` in.
    pub(crate) fn append(&mut self, batch: &mut Batch) {
        // The end of a result has no width.
        if batch.is_empty() {
            return;
        }
        self.width = batch.width;
        self.bytes += row_size_bytes(&batch.data);
        self.rows += batch.rows;
        self.data.append(&mut batch.data);
        (batch.rows, batch.bytes) = (0, 0);
    }

    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        self.bytes
    }

    /// Keeps the rows at `order`, in that order.
    pub(crate) fn select(&mut self, order: impl Iterator<Item = usize>) {
        let mut kept = RowBuffer::default();
        for i in order {
            let from = i * self.width;
            kept.bytes += row_size_bytes(&self.data[from..from + self.width]);
            kept.data.extend(
                self.data[from..from + self.width]
                    .iter_mut()
                    .map(std::mem::take),
            );
            kept.rows += 1;
        }
        kept.width = self.width;
        *self = kept;
    }
}

/// What a value holds outside of itself, if that can be much.
#[inline]
fn outside_bytes(datum: &Datum) -> usize {
    match datum {
        Datum::Text(text) => text.len(),
        Datum::Bytea(bytes) | Datum::TsVector(bytes) | Datum::TsQuery(bytes) => bytes.len(),
        Datum::Bits(bits) => bits.bytes().len(),
        Datum::Jsonb(json) => json.bytes().len(),
        Datum::Geometry(v) => v.outside_bytes(),
        Datum::Array(_) => logstead_sql_types::value::size_bytes(datum),
        _ => 0,
    }
}

/// Memory that datums hold, roughly.
pub(crate) fn row_size_bytes(row: &[Datum]) -> usize {
    row.iter().map(logstead_sql_types::value::size_bytes).sum()
}

/// Fails with 53200 when an operator holds more than it may.
pub(crate) fn check_memory(operator: &str, held_bytes: usize, max_bytes: usize) -> Result<()> {
    if held_bytes <= max_bytes {
        return Ok(());
    }
    Err(SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .detail(format!(
            "{operator} needs more than {} kB of memory.",
            max_bytes / 1024
        ))
        .hint("Raise work_mem, or make the statement read fewer rows."))
}

/// What a call of `next` came to.
pub(crate) enum Step {
    /// `out` has rows.
    Batch,
    /// No more rows.
    Done,
    /// Enough work for now: let others run, then call again.
    Yield,
    /// Another transaction is in the way, or something is not in memory: wait for it, then call again.
    Wait(WaitReason),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_full_by_rows_or_by_bytes() {
        let wide = Datum::Text("x".repeat(BATCH_BYTES / 4).into());
        let mut batch = Batch::default();
        batch.start(2);
        while !batch.is_full() {
            batch.push_row(&[wide.clone(), Datum::Int4(1)]);
        }
        assert_eq!(batch.len(), 5);
        batch.start(1);
        while !batch.is_full() {
            batch.push_row(&[Datum::Text("narrow".into())]);
        }
        assert_eq!(batch.len(), BATCH_ROWS);
    }
}
