//! Grouping and aggregation by hash.
//!
//! Groups come out in order of arrival. DISTINCT and ORDER BY inside a call make it keep its arguments until the end.

use super::batch::{Batch, Rows, check_memory};
use super::context::{Cx, Evaluation};
use super::eval::{eval_in, holds};
use super::held::Held;
use super::keytable::KeyTable;
use super::operator::{Running, Step, pull};
use super::sort::{Sorter, write_key};
use crate::error::Result;
use crate::expr::Expr;
use crate::func::AggregateState as State;
use crate::plan::{AggregateCall, GroupingSets, Plan};
use crate::value::{Datum, SqlType, key, oid};
use logstead_engine::Absent;
use smallvec::SmallVec;

/// State of an aggregation.
pub(crate) struct AggregateState {
    pub(crate) input: Running,
    batch: Batch,
    /// The next row of the batch to be taken; its group, once that is known; and how many calls have taken it.
    row: usize,
    /// The keys of that row, once they are known, and the grouping set that takes it next.
    values: Option<SmallVec<[Datum; 4]>>,
    set: usize,
    group: Option<usize>,
    taken: usize,
    /// Of the keys, and of each call.
    evaluations: Vec<Evaluation>,
    groups: KeyTable,
    keys: Rows,
    /// With grouping sets: the set of each group.
    sets: Vec<u16>,
    /// Of group g and call c at `g * calls + c`.
    cells: Vec<Cell>,
    aggregated: bool,
    held: Held,
    held_bytes: usize,
    at: usize,
    scratch: Scratch,
}

/// Keys being made.
#[derive(Default)]
struct Scratch {
    key: Vec<u8>,
    order: Vec<u8>,
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
            row: 0,
            values: None,
            set: 0,
            group: None,
            taken: 0,
            evaluations: Vec::new(),
            groups: KeyTable::default(),
            keys: Rows::default(),
            sets: Vec::new(),
            cells: Vec::new(),
            aggregated: false,
            held: Held::default(),
            held_bytes: 0,
            at: 0,
            scratch: Scratch::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        sets: Option<&'a GroupingSets>,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(keys.len() + calls.len() + sets.map_or(0, |sets| sets.calls.len()));
        if !self.aggregated {
            if let Some(sets) = sets {
                if self.groups.len() == 0 {
                    self.open_empty_sets(keys, calls, sets);
                }
            } else if keys.is_empty() && self.groups.len() == 0 {
                self.groups.insert(&[]);
                self.open_group(calls);
            }
            self.evaluations
                .resize_with(1 + calls.len(), Evaluation::default);
            loop {
                while self.row < self.batch.len() {
                    if cx.take_owed() {
                        return Ok(Step::Yield);
                    }
                    if let Err(absent) = self.take(keys, calls, sets, cx)? {
                        return Ok(Step::Wait(absent.into()));
                    }
                }
                let held_bytes =
                    self.keys.size_bytes() + self.groups.size_bytes() + self.held_bytes;
                check_memory("An aggregation", held_bytes, cx.memory_bytes_max)?;
                self.held.set(held_bytes, cx.memory())?;
                self.row = 0;
                self.batch.start(0);
                if !pull!(self.input, input, cx, &mut self.batch) {
                    break;
                }
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
                out.push(cell.finish(cx)?);
            }
            if let Some(sets) = sets {
                let set = self.sets.get(self.at).map_or(0, |set| usize::from(*set));
                let has = sets.sets.get(set).map_or(&[][..], Vec::as_slice);
                for asked in &sets.calls {
                    let bits = asked
                        .iter()
                        .fold(0, |bits, key| bits << 1 | i32::from(!has.contains(key)));
                    out.push(Datum::Int4(bits));
                }
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

    /// The groups that are there without any row: those of sets without keys.
    fn open_empty_sets(&mut self, keys: &[Expr], calls: &[AggregateCall], sets: &GroupingSets) {
        let empty = |set: &(usize, &Vec<usize>)| set.1.is_empty();
        for (number, _) in sets.sets.iter().enumerate().filter(empty) {
            let number = u16::try_from(number).unwrap_or(u16::MAX);
            self.groups.insert(&number.to_be_bytes());
            self.keys.push(&vec![Datum::Null; keys.len()]);
            self.sets.push(number);
            self.open_group(calls);
        }
    }

    /// The group of the row whose keys are `values` in the grouping set that takes it next, which has the keys `set`.
    fn group_in_set(
        &mut self,
        values: &[Datum],
        keys: &[Expr],
        calls: &[AggregateCall],
        set: &[usize],
    ) -> usize {
        // There are fewer than 65,536 of them.
        let number = u16::try_from(self.set).unwrap_or(u16::MAX);
        let key = &mut self.scratch.key;
        key.clear();
        key.extend_from_slice(&number.to_be_bytes());
        for &part in set {
            if let (Some(expr), Some(datum)) = (keys.get(part), values.get(part)) {
                key::encode_key(expr.ty().oid, datum, false, false, key);
            }
        }
        let (group, new) = self.groups.insert(&self.scratch.key);
        if new {
            let mut row = vec![Datum::Null; keys.len()];
            for &part in set {
                if let (Some(to), Some(from)) = (row.get_mut(part), values.get(part)) {
                    to.clone_from(from);
                }
            }
            self.keys.push(&row);
            self.sets.push(number);
            self.open_group(calls);
        }
        group
    }

    /// Adds the next row of the batch to its groups; or says what is absent, and is called again for the same row.
    fn take<'a>(
        &mut self,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        sets: Option<&'a GroupingSets>,
        cx: &mut Cx<'a>,
    ) -> Result<Result<(), Absent>> {
        let Some(sets) = sets else {
            return self.take_once(keys, calls, cx);
        };
        let values = match self.values.take() {
            Some(values) => values,
            None => {
                let row = self.batch.row(self.row);
                let evaluate = |cx: &mut Cx<'a>| {
                    let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(keys.len());
                    for expr in keys {
                        values.push(eval_in(expr, row, cx)?);
                    }
                    Ok(values)
                };
                match self.evaluations[0].of(keys, cx, evaluate)? {
                    Ok(values) => values,
                    Err(absent) => return Ok(Err(absent)),
                }
            }
        };
        while let Some(set) = sets.sets.get(self.set) {
            let group = match self.group {
                Some(group) => group,
                None => self.group_in_set(&values, keys, calls, set),
            };
            if let Err(absent) = self.take_into(group, calls, cx)? {
                self.values = Some(values);
                return Ok(Err(absent));
            }
            self.set += 1;
        }
        (self.row, self.set) = (self.row + 1, 0);
        Ok(Ok(()))
    }

    /// Adds the row to its group where there is but one set of keys.
    fn take_once<'a>(
        &mut self,
        keys: &'a [Expr],
        calls: &'a [AggregateCall],
        cx: &mut Cx<'a>,
    ) -> Result<Result<(), Absent>> {
        let row = self.batch.row(self.row);
        let group = match self.group {
            Some(group) => group,
            None if keys.is_empty() => 0,
            None => {
                let key = &mut self.scratch.key;
                let evaluate = |cx: &mut Cx<'a>| {
                    let mut values: SmallVec<[Datum; 4]> = SmallVec::with_capacity(keys.len());
                    key.clear();
                    for expr in keys {
                        let datum = eval_in(expr, row, cx)?;
                        key::encode_key(expr.ty().oid, &datum, false, false, key);
                        values.push(datum);
                    }
                    Ok(values)
                };
                let values = match self.evaluations[0].of(keys, cx, evaluate)? {
                    Ok(values) => values,
                    Err(absent) => return Ok(Err(absent)),
                };
                let (group, new) = self.groups.insert(&self.scratch.key);
                if new {
                    self.keys.push(&values);
                    self.open_group(calls);
                }
                group
            }
        };
        if let Err(absent) = self.take_into(group, calls, cx)? {
            return Ok(Err(absent));
        }
        self.row += 1;
        Ok(Ok(()))
    }

    /// Gives the row to the calls of a group that have not taken it yet.
    fn take_into<'a>(
        &mut self,
        group: usize,
        calls: &'a [AggregateCall],
        cx: &mut Cx<'a>,
    ) -> Result<Result<(), Absent>> {
        self.group = Some(group);
        let row = self.batch.row(self.row);
        let cells = self
            .cells
            .get_mut(group * calls.len()..)
            .unwrap_or_default();
        let evaluations = self.evaluations.iter_mut().skip(1);
        let each = cells.iter_mut().zip(calls).zip(evaluations);
        for ((cell, call), evaluation) in each.skip(self.taken) {
            let scratch = &mut self.scratch;
            let order = call.order.iter().map(|key| &key.expr);
            let exprs = call.args.iter().chain(&call.filter).chain(order);
            match evaluation.of(exprs, cx, |cx| cell.take(call, row, scratch, cx))? {
                Ok(bytes) => self.held_bytes += bytes,
                Err(absent) => return Ok(Err(absent)),
            }
            self.taken += 1;
        }
        (self.group, self.taken) = (None, 0);
        Ok(Ok(()))
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
        self.batch.start(0);
        (self.row, self.set, self.group, self.taken) = (0, 0, None, 0);
        self.values = None;
        self.sets.clear();
        self.evaluations.iter_mut().for_each(Evaluation::reset);
        self.groups.clear();
        self.keys = Rows::default();
        self.cells.clear();
        self.aggregated = false;
        self.held_bytes = 0;
        self.at = 0;
    }
}

impl Cell {
    /// Takes one row; returns the memory it added, roughly. Nothing changes before everything is evaluated.
    fn take<'a>(
        &mut self,
        call: &'a AggregateCall,
        row: &[Datum],
        scratch: &mut Scratch,
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
            let growing = args.iter().any(|arg| {
                matches!(
                    arg,
                    Datum::Text(_) | Datum::Bytea(_) | Datum::Array(_) | Datum::Jsonb(_)
                )
            }) || call.aggregate.name == "array_agg"
                || matches!(call.aggregate.result, oid::JSON | oid::JSONB);
            if !growing {
                self.state.add_in(cx.session, &args)?;
                return Ok(0);
            }
            let before = self.state.size_bytes();
            self.state.add_in(cx.session, &args)?;
            return Ok(self.state.size_bytes().saturating_sub(before));
        };
        scratch.order.clear();
        write_key(&call.order, row, &mut scratch.order, cx)?;
        let before = kept.sorter.size_bytes() + kept.seen.size_bytes();
        if call.distinct {
            scratch.key.clear();
            for (arg, datum) in call.args.iter().zip(&args) {
                key::encode_key(arg.ty().oid, datum, false, false, &mut scratch.key);
            }
            if !kept.seen.insert(&scratch.key).1 {
                return Ok(0);
            }
        }
        let order = match call.order.is_empty() {
            true => &scratch.key,
            false => &scratch.order,
        };
        kept.sorter.push(&args, |out| {
            out.extend_from_slice(order);
            Ok(())
        })?;
        Ok((kept.sorter.size_bytes() + kept.seen.size_bytes()).saturating_sub(before))
    }

    fn finish(&mut self, cx: &Cx<'_>) -> Result<Datum> {
        if let Some(kept) = self.kept.take() {
            let mut sorted = kept.sorter.finish();
            while let Some(row) = sorted.next() {
                self.state.add_in(cx.session, row)?;
            }
        }
        self.state.finish()
    }
}
