//! DISTINCT, DISTINCT ON and the set operations: rows are compared by their keys, NULLs equal.

use super::batch::{Batch, check_memory};
use super::context::{Cx, Evaluation};
use super::eval::eval_in;
use super::held::Held;
use super::keytable::{KeyTable, row_key};
use super::operator::{Running, Step, pull};
use super::stats::width;
use crate::error::Result;
use crate::expr::Expr;
use crate::plan::{Plan, SetOpKind};
use crate::value::{Oid, key};

fn types_of(plan: &Plan) -> Vec<Oid> {
    plan.columns.iter().map(|column| column.ty.oid).collect()
}

/// State of DISTINCT.
pub(crate) struct DistinctState {
    pub(crate) input: Running,
    types: Vec<Oid>,
    seen: KeyTable,
    held: Held,
    key: Vec<u8>,
}

impl DistinctState {
    pub(crate) fn new(input: &Plan) -> DistinctState {
        DistinctState {
            input: Running::new(input),
            types: types_of(input),
            seen: KeyTable::default(),
            held: Held::default(),
            key: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        loop {
            if !pull!(self.input, input, cx, out) {
                return Ok(Step::Done);
            }
            let DistinctState {
                types, seen, key, ..
            } = self;
            out.retain(|row| {
                row_key(types, row, key);
                Ok(seen.insert(key).1)
            })?;
            seen.check_memory("DISTINCT", cx.memory_bytes_max)?;
            self.held.set(self.seen.size_bytes(), cx.memory())?;
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut Cx<'_>) {
        self.input.rewind(input, cx);
        self.seen.clear();
    }
}

/// State of DISTINCT ON: the key of the row before.
pub(crate) struct DistinctOnState {
    pub(crate) input: Running,
    batch: Batch,
    at: usize,
    evaluation: Evaluation,
    last: Option<Vec<u8>>,
    key: Vec<u8>,
}

impl DistinctOnState {
    pub(crate) fn new(input: &Plan) -> DistinctOnState {
        DistinctOnState {
            input: Running::new(input),
            batch: Batch::default(),
            at: 0,
            evaluation: Evaluation::default(),
            last: None,
            key: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [Expr],
        cx: &mut Cx<'a>,
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
            let evaluate = |cx: &mut Cx<'a>| {
                key.clear();
                for expr in keys {
                    let datum = eval_in(expr, row, cx)?;
                    key::encode_key(expr.ty().oid, &datum, false, false, key);
                }
                Ok(())
            };
            match self.evaluation.of(keys, cx, evaluate)? {
                Ok(()) => {}
                Err(absent) if out.is_empty() => return Ok(Step::Wait(absent.into())),
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

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut Cx<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.evaluation.reset();
        self.last = None;
    }
}

/// State of a set operation.
pub(crate) struct SetOpState {
    pub(crate) left: Running,
    pub(crate) right: Running,
    types: Vec<Oid>,
    /// UNION: the left side is exhausted. Others: the right side is counted.
    second: bool,
    counted: KeyTable,
    /// How often each row of the right side is still to be matched; with ALL it counts down.
    counts: Vec<u64>,
    /// Rows given, for the operations without ALL.
    given: KeyTable,
    held: Held,
    batch: Batch,
    key: Vec<u8>,
}

impl SetOpState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> SetOpState {
        SetOpState {
            left: Running::new(left),
            right: Running::new(right),
            types: types_of(left),
            second: false,
            counted: KeyTable::default(),
            counts: Vec::new(),
            given: KeyTable::default(),
            held: Held::default(),
            batch: Batch::default(),
            key: Vec::new(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        kind: SetOpKind,
        all: bool,
        left: &'a Plan,
        right: &'a Plan,
        cx: &mut Cx<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if kind != SetOpKind::Union && !self.second {
            while pull!(self.right, right, cx, &mut self.batch) {
                for i in 0..self.batch.len() {
                    row_key(&self.types, self.batch.row(i), &mut self.key);
                    let (number, new) = self.counted.insert(&self.key);
                    if new {
                        self.counts.push(0);
                    }
                    self.counts[number] += 1;
                }
                self.counted
                    .check_memory("A set operation", cx.memory_bytes_max)?;
                self.held.set(self.counted.size_bytes(), cx.memory())?;
            }
            self.second = true;
        }
        loop {
            if kind == SetOpKind::Union && self.second {
                if !pull!(self.right, right, cx, out) {
                    return Ok(Step::Done);
                }
            } else if !pull!(self.left, left, cx, out) {
                if kind != SetOpKind::Union {
                    return Ok(Step::Done);
                }
                self.second = true;
                continue;
            }
            if kind == SetOpKind::Union && all {
                return Ok(Step::Batch);
            }
            let SetOpState {
                types,
                counted,
                counts,
                given,
                key,
                ..
            } = self;
            out.retain(|row| {
                row_key(types, row, key);
                let count = counted.find(key).and_then(|number| counts.get_mut(number));
                let in_right = count.as_ref().is_some_and(|count| **count > 0);
                if all && let Some(count) = count {
                    *count = count.saturating_sub(1);
                }
                let wanted = match kind {
                    SetOpKind::Union => true,
                    SetOpKind::Intersect => in_right,
                    SetOpKind::Except => !in_right,
                };
                Ok(wanted && (all || given.insert(key).1))
            })?;
            let held_bytes = counted.size_bytes() + given.size_bytes();
            check_memory("A set operation", held_bytes, cx.memory_bytes_max)?;
            self.held.set(held_bytes, cx.memory())?;
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
        }
    }

    pub(crate) fn rewind(&mut self, left: &Plan, right: &Plan, cx: &mut Cx<'_>) {
        self.left.rewind(left, cx);
        self.right.rewind(right, cx);
        self.second = false;
        self.counted.clear();
        self.counts.clear();
        self.given.clear();
    }
}
