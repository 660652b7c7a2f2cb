//! DISTINCT, DISTINCT ON and the set operations: rows are compared by their keys, NULLs equal.
//!
//! A table of keys that is full takes no new ones: their rows are written and looked at later, part by part
//! (`spill::hash_spill`). Of a set operation all rows of the right side are written before any of the left, so they
//! come back so, too.

use crate::batch::Step;
use crate::batch::{Batch, check_memory};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::eval_in;
use crate::key_table::{KEY_BYTES_MAX, KeyTable, row_key};
use crate::operator::{PlanState, pull};
use crate::operator_memory::OperatorMemory;
use crate::spill::ReadStep;
use crate::spill::hash_spill::HashSpill;
use crate::wait::WaitReason;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::instrumentation::{NodeDetail, width};
use logstead_sql_plan::{Plan, SetOpKind};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, key};

fn types_of(plan: &Plan) -> Vec<TypeId> {
    plan.columns.iter().map(|column| column.ty.oid).collect()
}

/// Rows by their keys, and those that there was no room for.
struct KeyedRows {
    keys: KeyTable,
    /// No new key is taken any more: its row is written.
    full: bool,
    overflow: Option<Box<HashSpill>>,
    held: OperatorMemory,
    most_bytes: usize,
}

impl KeyedRows {
    fn new() -> KeyedRows {
        KeyedRows {
            keys: KeyTable::default(),
            full: false,
            overflow: None,
            held: OperatorMemory::default(),
            most_bytes: 0,
        }
    }

    /// Adds a new key, or, if it is full, writes the row under `written`. False: it was written.
    fn add(&mut self, key: &[u8], written: &[u8], row: &[Datum]) -> Result<bool> {
        match &mut self.overflow {
            Some(overflow) if self.full => {
                overflow.push(key, written, row)?;
                Ok(false)
            }
            _ => {
                self.keys.insert(key);
                Ok(true)
            }
        }
    }

    /// Looks whether it is full; what to wait for before more is written.
    fn check(
        &mut self,
        operator: &str,
        more: usize,
        cx: &ExecutorContext<'_>,
    ) -> Result<Option<WaitReason>> {
        let held_bytes = self.keys.size_bytes() + more;
        self.most_bytes = self.most_bytes.max(held_bytes);
        let open_bytes = self.overflow.as_ref().map_or(0, |o| o.size_bytes());
        self.held.set(held_bytes + open_bytes, cx.memory())?;
        if held_bytes > cx.work_mem_bytes
            && held_bytes > cx.hash_mem_bytes().min(KEY_BYTES_MAX)
            && !self.full
        {
            if self.overflow.is_none()
                && let Some(spill) = cx.spill()
            {
                let overflow = HashSpill::new(&spill, cx.hash_mem_bytes());
                self.overflow = Some(Box::new(overflow));
            }
            match self.overflow {
                Some(_) => self.full = true,
                None => check_memory(operator, held_bytes, cx.memory_bytes_max)?,
            }
        }
        match &self.overflow {
            Some(overflow) => overflow.behind(),
            None => Ok(None),
        }
    }

    /// The input has ended: goes to the next part, if there is one.
    fn next_part(&mut self) -> Result<bool> {
        let Some(overflow) = &mut self.overflow else {
            return Ok(false);
        };
        self.keys.clear();
        self.full = false;
        overflow.next_part()
    }

    fn clear(&mut self) {
        self.keys.clear();
        self.full = false;
        self.overflow = None;
    }

    fn detail(&self) -> NodeDetail {
        let overflow = self.overflow.as_ref();
        NodeDetail::Groups {
            batches: overflow.map_or(1, |overflow| overflow.passes()),
            memory_kib: (self.most_bytes as u64).div_ceil(1024),
            disk_kib: overflow.map_or(0, |overflow| overflow.peak_bytes().div_ceil(1024)),
        }
    }
}

/// State of DISTINCT.
pub(crate) struct DistinctState {
    pub(crate) input: PlanState,
    types: Vec<TypeId>,
    seen: KeyedRows,
    done: bool,
    key: Vec<u8>,
}

impl DistinctState {
    pub(crate) fn new(input: &Plan) -> DistinctState {
        DistinctState {
            input: PlanState::new(input),
            types: types_of(input),
            seen: KeyedRows::new(),
            done: false,
            key: Vec::new(),
        }
    }

    /// How it went.
    pub(crate) fn detail(&self) -> NodeDetail {
        self.seen.detail()
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(width(input));
        while !self.done {
            if let Some(obstacle) = self.seen.check("DISTINCT", 0, cx)? {
                return Ok(Step::Wait(obstacle));
            }
            if self.seen.overflow.as_ref().is_some_and(|o| o.is_reading()) {
                return self.next_of_part(input, cx, out);
            }
            if !pull!(self.input, input, cx, out) {
                self.done = !self.seen.next_part()?;
                continue;
            }
            let DistinctState {
                types, seen, key, ..
            } = self;
            out.retain(|row| {
                row_key(types, row, key);
                Ok(seen.keys.find(key).is_none() && seen.add(key, key, row)?)
            })?;
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
        }
        Ok(Step::Done)
    }

    /// The same for a part that was written.
    fn next_of_part(
        &mut self,
        input: &Plan,
        cx: &mut ExecutorContext<'_>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(width(input));
        let mut row = Vec::new();
        loop {
            if cx.tick()? {
                return Ok(match out.is_empty() {
                    true => Step::Yield,
                    false => Step::Batch,
                });
            }
            let Some(overflow) = &mut self.seen.overflow else {
                return Ok(Step::Done);
            };
            match overflow.advance()? {
                ReadStep::Row => {}
                ReadStep::End => {
                    self.done = !self.seen.next_part()?;
                    return Ok(match out.is_empty() {
                        true => Step::Yield,
                        false => Step::Batch,
                    });
                }
                ReadStep::Wait(obstacle) if out.is_empty() => return Ok(Step::Wait(obstacle)),
                // It is met again with the next batch.
                ReadStep::Wait(_) => return Ok(Step::Batch),
            }
            self.key.clear();
            self.key.extend_from_slice(overflow.key());
            if self.seen.keys.find(&self.key).is_some() {
                continue;
            }
            row.clear();
            overflow.row(&mut row)?;
            if self.seen.add(&self.key, &self.key, &row)? {
                out.push_row(&row);
                if out.is_full() {
                    return Ok(Step::Batch);
                }
            }
            if let Some(obstacle) = self.seen.check("DISTINCT", 0, cx)? {
                return Ok(match out.is_empty() {
                    true => Step::Wait(obstacle),
                    false => Step::Batch,
                });
            }
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.seen.clear();
        self.done = false;
    }
}

/// State of DISTINCT ON: the key of the row before.
pub(crate) struct DistinctOnState {
    pub(crate) input: PlanState,
    batch: Batch,
    at: usize,
    evaluation: ResumableEvaluation,
    last: Option<Vec<u8>>,
    key: Vec<u8>,
}

impl DistinctOnState {
    pub(crate) fn new(input: &Plan) -> DistinctOnState {
        DistinctOnState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            evaluation: ResumableEvaluation::default(),
            last: None,
            key: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [Expr],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(width(input));
        loop {
            if self.at == self.batch.len() {
                if !out.is_empty() {
                    return Ok(Step::Batch);
                }
                self.at = 0;
                self.batch.start(0);
                self.batch.set_capacity(out.capacity());
                if !pull!(self.input, input, cx, &mut self.batch) {
                    return Ok(Step::Done);
                }
            }
            let (row, key) = (self.batch.row(self.at), &mut self.key);
            let evaluate = |cx: &mut ExecutorContext<'a>| {
                key.clear();
                for expr in keys {
                    let datum = eval_in(expr, row, cx)?;
                    key::encode_key(expr.ty().oid, &datum, false, false, key);
                }
                Ok(())
            };
            match self.evaluation.of(keys, cx, evaluate)? {
                Ok(()) => {}
                Err(absent) if out.is_empty() => return Ok(Step::Wait(absent)),
                // It is met again with the next batch.
                Err(_) => return Ok(Step::Batch),
            }
            if self.last.as_deref() != Some(self.key.as_slice()) {
                self.last.get_or_insert_default().clone_from(&self.key);
                out.push_row(row);
            }
            self.at += 1;
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.evaluation.reset();
        self.last = None;
    }
}

/// Which side a written row is of; it stands in front of its key.
const RIGHT: u8 = 0;
const LEFT: u8 = 1;

/// State of a set operation.
pub(crate) struct SetOpState {
    pub(crate) left: PlanState,
    pub(crate) right: PlanState,
    types: Vec<TypeId>,
    /// UNION: the left side is exhausted. Others: the right side is counted.
    second: bool,
    /// Both sides have ended: what is left was written.
    ended: bool,
    done: bool,
    table: KeyedRows,
    /// By number of the key: how often the right side has it and it is still to be matched, and whether it was given.
    counts: Vec<(u64, bool)>,
    batch: Batch,
    /// The side, then the key.
    key: Vec<u8>,
}

impl SetOpState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> SetOpState {
        SetOpState {
            left: PlanState::new(left),
            right: PlanState::new(right),
            types: types_of(left),
            second: false,
            ended: false,
            done: false,
            table: KeyedRows::new(),
            counts: Vec::new(),
            batch: Batch::default(),
            key: Vec::new(),
        }
    }

    /// How it went.
    pub(crate) fn detail(&self) -> NodeDetail {
        match self.table.most_bytes {
            // UNION ALL has no table.
            0 => NodeDetail::None,
            _ => self.table.detail(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        kind: SetOpKind,
        all: bool,
        left: &'a Plan,
        right: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if kind == SetOpKind::Union && all {
            return self.append(left, right, cx, out);
        }
        let counts_bytes = |counts: &Vec<(u64, bool)>| counts.len() * size_of::<(u64, bool)>();
        let rule = SetOpRule { kind, all };
        while !self.ended {
            let more = counts_bytes(&self.counts);
            if let Some(obstacle) = self.table.check("A set operation", more, cx)? {
                return Ok(Step::Wait(obstacle));
            }
            if kind != SetOpKind::Union && !self.second {
                if !pull!(self.right, right, cx, &mut self.batch) {
                    self.second = true;
                    continue;
                }
                for i in 0..self.batch.len() {
                    side_key(RIGHT, &self.types, self.batch.row(i), &mut self.key);
                    rule.right(&self.key, &mut self.table, &mut self.counts)?;
                }
                continue;
            }
            if kind == SetOpKind::Union && self.second {
                if !pull!(self.right, right, cx, out) {
                    self.ended = true;
                    break;
                }
            } else if !pull!(self.left, left, cx, out) {
                self.second = true;
                self.ended = kind != SetOpKind::Union;
                continue;
            }
            let SetOpState {
                types,
                table,
                counts,
                key,
                ..
            } = self;
            out.retain(|row| {
                side_key(LEFT, types, row, key);
                rule.left(key, row, table, counts)
            })?;
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
        }
        out.start(width(left));
        let mut row = Vec::new();
        while !self.done && !out.is_full() {
            let more = counts_bytes(&self.counts);
            let behind = self.table.check("A set operation", more, cx)?;
            let waits = match behind {
                Some(obstacle) => Some(Step::Wait(obstacle)),
                None if cx.tick()? => Some(Step::Yield),
                None => None,
            };
            let waits = match (waits, &mut self.table.overflow) {
                (Some(step), _) => Some(step),
                (None, Some(overflow)) if overflow.is_reading() => match overflow.advance()? {
                    ReadStep::Row => {
                        self.key.clear();
                        self.key.extend_from_slice(overflow.key());
                        row.clear();
                        overflow.row(&mut row)?;
                        let (table, counts) = (&mut self.table, &mut self.counts);
                        if self.key.first() == Some(&RIGHT) {
                            rule.right(&self.key, table, counts)?;
                        } else if rule.left(&self.key, &row, table, counts)? {
                            out.push_row(&row);
                        }
                        continue;
                    }
                    ReadStep::End => None,
                    ReadStep::Wait(obstacle) => Some(Step::Wait(obstacle)),
                },
                _ => None,
            };
            match waits {
                // It is met again with the next batch.
                Some(_) if !out.is_empty() => break,
                Some(step) => return Ok(step),
                None => {
                    self.counts.clear();
                    self.done = !self.table.next_part()?;
                }
            }
        }
        Ok(match out.is_empty() {
            true => Step::Done,
            false => Step::Batch,
        })
    }

    /// UNION ALL.
    fn append<'a>(
        &mut self,
        left: &'a Plan,
        right: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        if !self.second {
            if pull!(self.left, left, cx, out) {
                return Ok(Step::Batch);
            }
            self.second = true;
        }
        self.right.next(right, cx, out)
    }

    pub(crate) fn rewind(&mut self, left: &Plan, right: &Plan, cx: &mut ExecutorContext<'_>) {
        self.left.rewind(left, cx);
        self.right.rewind(right, cx);
        (self.second, self.ended, self.done) = (false, false, false);
        self.table.clear();
        self.counts.clear();
    }
}

fn side_key(side: u8, types: &[TypeId], row: &[Datum], out: &mut Vec<u8>) {
    out.clear();
    out.push(side);
    for (ty, datum) in types.iter().zip(row) {
        key::encode_key(*ty, datum, false, false, out);
    }
}

/// What a set operation makes of its rows.
#[derive(Clone, Copy)]
struct SetOpRule {
    kind: SetOpKind,
    all: bool,
}

impl SetOpRule {
    /// Counts a row of the right side, whose values nobody asks for.
    fn right(self, key: &[u8], table: &mut KeyedRows, counts: &mut Vec<(u64, bool)>) -> Result<()> {
        let bare = key.get(1..).unwrap_or_default();
        match table.keys.find(bare) {
            Some(number) => {
                if let Some((count, _)) = counts.get_mut(number) {
                    *count += 1;
                }
            }
            None => {
                if table.add(bare, key, &[])? {
                    counts.push((1, false));
                }
            }
        }
        Ok(())
    }

    /// Whether a row of the left side (for UNION, of either) is given. One whose key may have been written is written,
    /// too.
    fn left(
        self,
        key: &[u8],
        row: &[Datum],
        table: &mut KeyedRows,
        counts: &mut Vec<(u64, bool)>,
    ) -> Result<bool> {
        let bare = key.get(1..).unwrap_or_default();
        let found = table.keys.find(bare);
        let Some((count, given)) = found.and_then(|number| counts.get_mut(number)) else {
            if table.full {
                return table.add(bare, key, row);
            }
            // It is not on the right side.
            return Ok(match (self.kind, self.all) {
                (SetOpKind::Intersect, _) => false,
                (SetOpKind::Except, true) => true,
                (SetOpKind::Except, false) | (SetOpKind::Union, _) => {
                    counts.push((0, true));
                    table.add(bare, key, row)?
                }
            });
        };
        let in_right = *count > 0;
        if self.all {
            *count = count.saturating_sub(1);
        }
        let wanted = match self.kind {
            SetOpKind::Union => true,
            SetOpKind::Intersect => in_right,
            SetOpKind::Except => !in_right,
        };
        Ok(wanted && (self.all || !std::mem::replace(given, true)))
    }
}
