//! Grouping and aggregation by hash.
//!
//! Groups come out in order of arrival. DISTINCT and ORDER BY inside a call make it keep its arguments until the end.

use super::batch::{Batch, Rows, check_memory};
use super::context::Cx;
use super::eval::{eval_in, holds};
use super::held::Held;
use super::keytable::KeyTable;
use super::operator::{Running, Step, pull};
use super::sort::{Sorter, write_key};
use crate::error::Result;
use crate::expr::Expr;
use crate::func::AggregateState as State;
use crate::plan::{AggregateCall, Plan};
use crate::value::{Datum, SqlType, key};
use smallvec::SmallVec;

/// State of an aggregation.
pub(crate) struct AggregateState {
    pub(crate) input: Running,
    batch: Batch,
    groups: KeyTable,
    keys: Rows,
    /// Of group g and call c at `g * calls + c`.
    cells: Vec<Cell>,
    aggregated: bool,
    held: Held,
    held_bytes: usize,
    at: usize,
    key: Vec<u8>,
}

/// One call in one group.
struct Cell {
    state: Box<dyn State>,
    /// What a call with DISTINCT or ORDER BY keeps.
    kept: Option<Box<Kept>>,
}

#[derive(Default)]
struct Kept {
    seen: KeyTable,
    sorter: Sorter,
}

impl AggregateState {
    pub(crate) fn new(input: &Plan) -> AggregateState {
        AggregateState {
            input: Running::new(input),
            batch: Batch::default(),
            groups: KeyTable::default(),
            keys: Rows::default(),
            cells: Vec::new(),
            aggregated: false,
            held: Held::default(),
            held_bytes: 0,
            at: 0,
            key: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(keys.len() + calls.len());
        if !self.aggregated {
            if keys.is_empty() && self.groups.len() == 0 {
                self.groups.insert(&[]);
                self.open_group(calls);
            }
            while pull!(self.input, input, cx, &mut self.batch) {
                for i in 0..self.batch.len() {
                    self.take(i, keys, calls, cx)?;
                }
                let held_bytes =
                    self.keys.size_bytes() + self.groups.size_bytes() + self.held_bytes;
                check_memory("An aggregation", held_bytes, cx.memory_bytes_max)?;
                self.held.set(held_bytes, cx.memory())?;
            }
            self.aggregated = true;
        }
        while self.at < self.groups.len() && !out.is_full() {
            if !keys.is_empty() {
                for datum in self.keys.row(self.at) {
                    out.push(datum.clone());
                }
            }
            for cell in self
                .cells
                .iter_mut()
                .skip(self.at * calls.len())
                .take(calls.len())
            {
                out.push(cell.finish()?);
            }
            out.end_row();
            self.at += 1;
        }
        Ok(if out.is_empty() {
            Step::Done
        } else {
            Step::Batch
        })
    }

    /// Adds row `i` of the batch to its group.
    fn take<'a>(
        &mut self,
        i: usize,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        cx: &mut Cx<'a>,
    ) -> Result<()> {
        let row = self.batch.row(i);
        let group = if keys.is_empty() {
            0
        } else {
            let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(keys.len());
            self.key.clear();
            for expr in keys {
                let datum = eval_in(expr, row, cx)?;
                key::encode_key(expr.ty().oid, &datum, false, false, &mut self.key);
                values.push(datum);
            }
            let (group, new) = self.groups.insert(&self.key);
            if new {
                self.keys.push(&values);
                self.open_group(calls);
            }
            group
        };
        let row = self.batch.row(i);
        let cells = self
            .cells
            .get_mut(group * calls.len()..)
            .unwrap_or_default();
        for (cell, call) in cells.iter_mut().zip(calls) {
            self.held_bytes += cell.take(call, row, &mut self.key, cx)?;
        }
        Ok(())
    }

    fn open_group(&mut self, calls: &[AggregateCall]) {
        for call in calls {
            let types: SmallVec<[SqlType; 2]> = call.args.iter().map(Expr::ty).collect();
            let keeps = call.distinct || !call.order.is_empty();
            let cell = Cell {
                state: (call.aggregate.start)(&types),
                kept: keeps.then(Box::default),
            };
            self.held_bytes += cell.state.size_bytes() + size_of::<Cell>();
            self.cells.push(cell);
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut Cx<'_>) {
        self.input.rewind(input, cx);
        self.groups.clear();
        self.keys = Rows::default();
        self.cells.clear();
        self.aggregated = false;
        self.held_bytes = 0;
        self.at = 0;
    }
}

impl Cell {
    /// Takes one row; returns the memory it added, roughly.
    fn take<'a>(
        &mut self,
        call: &'a AggregateCall,
        row: &[Datum],
        scratch: &mut Vec<u8>,
        cx: &mut Cx<'a>,
    ) -> Result<usize> {
        if let Some(filter) = &call.filter
            && !holds(filter, row, cx)?
        {
            return Ok(0);
        }
        let mut args: SmallVec<[Datum; 2]> = SmallVec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(eval_in(arg, row, cx)?);
        }
        if call.aggregate.strict && args.iter().any(Datum::is_null) {
            return Ok(0);
        }
        let Some(kept) = &mut self.kept else {
            // Only values that hold memory can make a state grow.
            let growing = args
                .iter()
                .any(|arg| matches!(arg, Datum::Text(_) | Datum::Bytea(_) | Datum::Array(_)))
                || call.aggregate.name == "array_agg";
            if !growing {
                self.state.add(&args)?;
                return Ok(0);
            }
            let before = self.state.size_bytes();
            self.state.add(&args)?;
            return Ok(self.state.size_bytes().saturating_sub(before));
        };
        let before = kept.sorter.size_bytes() + kept.seen.size_bytes();
        if call.distinct {
            scratch.clear();
            for (arg, datum) in call.args.iter().zip(&args) {
                key::encode_key(arg.ty().oid, datum, false, false, scratch);
            }
            if !kept.seen.insert(scratch).1 {
                return Ok(0);
            }
        }
        if call.order.is_empty() {
            let bytes = &*scratch;
            kept.sorter.push(&args, |out| {
                out.extend_from_slice(bytes);
                Ok(())
            })?;
        } else {
            kept.sorter
                .push(&args, |out| write_key(&call.order, row, out, cx))?;
        }
        Ok((kept.sorter.size_bytes() + kept.seen.size_bytes()).saturating_sub(before))
    }

    fn finish(&mut self) -> Result<Datum> {
        if let Some(kept) = self.kept.take() {
            let mut sorted = kept.sorter.finish();
            while let Some(row) = sorted.next() {
                self.state.add(row)?;
            }
        }
        self.state.finish()
    }
}
