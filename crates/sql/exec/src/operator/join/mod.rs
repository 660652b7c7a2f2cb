//! What joins have in common, and the nested loop, which does what a hash join (`hash_join`) cannot: everything but
//! equalities.
//!
//! A nested loop whose right side depends on the left row (*lateral*: index joins, LATERAL) starts the right side over
//! for each left row; any other keeps the right side's rows, beyond `work_mem` in a temporary file. Both remember which
//! right rows matched when the kind asks for those that did not.

pub(crate) mod hash_join;
pub(crate) mod hash_table;
pub(crate) mod merge_join;

use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch, RowBuffer};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::holds;
use crate::operator::{PlanState, pull};
use crate::operator_memory::OperatorMemory;
use crate::rescan_invariant::is_rescan_invariant;
use crate::spill::{ReadStep, Spool, SpoolReader};
use crate::wait::WaitReason;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::instrumentation::width;
use logstead_sql_plan::{JoinKind, Node, Plan};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;

/// What happens to a joined pair or a row without a match; the same for both joins.
#[derive(Clone, Copy)]
pub(crate) struct JoinShape {
    pub(crate) kind: JoinKind,
    pub(crate) left_width: usize,
    pub(crate) right_width: usize,
}

impl JoinShape {
    pub(crate) fn of(kind: JoinKind, left: &Plan, right: &Plan) -> JoinShape {
        JoinShape {
            kind,
            left_width: width(left),
            right_width: width(right),
        }
    }

    pub(crate) fn width(self) -> usize {
        if self.left_only() {
            self.left_width
        } else {
            self.left_width + self.right_width
        }
    }

    /// Semi and anti joins give the left row alone.
    pub(crate) fn left_only(self) -> bool {
        matches!(self.kind, JoinKind::Semi | JoinKind::Anti)
    }

    /// Right rows without a match come out at the end.
    pub(crate) fn keeps_right(self) -> bool {
        matches!(self.kind, JoinKind::Right | JoinKind::Full)
    }

    /// What a left row gives when its matches are exhausted.
    pub(crate) fn end_left(self, left: &[Datum], matched: bool, out: &mut Batch) {
        match self.kind {
            JoinKind::Left | JoinKind::Full if !matched => out.push_padded(left, self.right_width),
            JoinKind::Anti if !matched => out.push_row(left),
            JoinKind::Semi if matched => out.push_row(left),
            _ => {}
        }
    }

    /// Gives a right row that matched nothing.
    pub(crate) fn end_right(self, right: &[Datum], out: &mut Batch) {
        for _ in 0..self.left_width {
            out.push(Datum::Null);
        }
        for datum in right {
            out.push(datum.clone());
        }
        out.end_row();
    }

    /// Gives right rows that matched nothing, from `at` on.
    pub(crate) fn unmatched(
        self,
        rows: &RowBuffer,
        matched: &[bool],
        at: &mut usize,
        out: &mut Batch,
    ) {
        while *at < rows.len() && !out.is_full() {
            if !matched.get(*at).copied().unwrap_or(false) {
                self.end_right(rows.row(*at), out);
            }
            *at += 1;
        }
    }
}

/// A pair being checked.
#[derive(Default)]
pub(crate) struct JoinPair {
    row: Vec<Datum>,
    pub(crate) evaluation: ResumableEvaluation,
}

impl JoinPair {
    /// Whether the further condition holds for a pair; or what is absent: then it is called again for the same one.
    pub(crate) fn holds<'a>(
        &mut self,
        condition: Option<&'a Expr>,
        left: &[Datum],
        right: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<bool, WaitReason>> {
        let Some(condition) = condition else {
            return Ok(Ok(true));
        };
        self.row.clear();
        self.row.extend_from_slice(left);
        self.row.extend_from_slice(right);
        let row = &self.row;
        self.evaluation
            .of([condition], cx, |cx| holds(condition, row, cx))
    }
}

/// State of a nested loop.
pub(crate) struct NestLoopState {
    pub(crate) left: PlanState,
    pub(crate) right: PlanState,
    left_batch: Batch,
    left_at: usize,
    /// Partners of the current left row: a batch of the right side, or the kept rows.
    right_batch: Batch,
    kept: Spool,
    /// The kept row that was last brought from a file, and its number.
    brought: Batch,
    brought_at: Option<usize>,
    reader: SpoolReader,
    held: OperatorMemory,
    kept_complete: bool,
    right_at: usize,
    /// In the middle of a left row.
    open: bool,
    matched: bool,
    /// The right side has been started before.
    started: bool,
    right_matched: Vec<bool>,
    left_done: bool,
    pair: JoinPair,
    /// Copy of the current left row, for a lateral right side.
    outer_row: Vec<Datum>,
    unmatched_at: usize,
    /// Whether the kept rows stay right when started over; found out the first time.
    right_fixed: Option<bool>,
}

impl NestLoopState {
    pub(crate) fn new(left: &Plan, right: &Plan) -> NestLoopState {
        NestLoopState {
            left: PlanState::new(left),
            right: PlanState::new(right),
            left_batch: Batch::default(),
            left_at: 0,
            right_batch: Batch::default(),
            kept: Spool::default(),
            brought: Batch::default(),
            brought_at: None,
            reader: SpoolReader::default(),
            held: OperatorMemory::default(),
            kept_complete: false,
            right_at: 0,
            open: false,
            matched: false,
            started: false,
            right_matched: Vec::new(),
            left_done: false,
            pair: JoinPair::default(),
            outer_row: Vec::new(),
            unmatched_at: 0,
            right_fixed: None,
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let Node::NestedLoop {
            left,
            right,
            kind,
            condition,
            lateral,
        } = &plan.node
        else {
            return Err(SqlError::internal(
                "a nested loop was given another node's plan",
            ));
        };
        let shape = JoinShape::of(*kind, left, right);
        let condition = condition.as_ref();
        out.start(shape.width());
        if !*lateral && !self.kept_complete {
            loop {
                if let Some(obstacle) = self.kept.behind()? {
                    return Ok(Step::Wait(obstacle));
                }
                if !pull!(self.right, right, cx, &mut self.right_batch) {
                    break;
                }
                let spill = || cx.spill();
                self.kept
                    .append(&mut self.right_batch, cx.work_mem_bytes, spill)?;
                let held_bytes = self.kept.size_bytes();
                cx.check_memory("A nested loop", held_bytes)?;
                self.held.set(held_bytes, cx.memory())?;
            }
            self.kept_complete = true;
            if shape.keeps_right() {
                self.right_matched = vec![false; self.kept.len()];
            }
        }
        loop {
            if self.left_done {
                if shape.keeps_right()
                    && let Some(step) = self.unmatched(shape, cx, out)?
                {
                    return Ok(match out.is_empty() {
                        true => step,
                        false => cx.batch_before(&step),
                    });
                }
                return Ok(if out.is_empty() {
                    Step::Done
                } else {
                    Step::Batch
                });
            }
            if !self.open {
                if self.left_at == self.left_batch.len() {
                    if !out.is_empty() {
                        return Ok(Step::Batch);
                    }
                    self.left_batch.set_capacity(if *lateral {
                        out.capacity().clamp(16, BATCH_ROWS)
                    } else {
                        BATCH_ROWS
                    });
                    self.left_at = 0;
                    self.left_batch.start(0);
                    if !pull!(self.left, left, cx, &mut self.left_batch) {
                        self.left_done = true;
                        continue;
                    }
                }
                if *lateral && std::mem::replace(&mut self.started, true) {
                    self.right.rewind(right, cx);
                }
                if *lateral {
                    self.outer_row.clear();
                    self.outer_row
                        .extend_from_slice(self.left_batch.row(self.left_at));
                }
                self.open = true;
                self.matched = false;
                self.right_at = 0;
                self.right_batch.start(0);
            }
            let ended = if *lateral {
                self.lateral_row(shape, right, condition, cx, out)?
            } else {
                self.kept_row(shape, condition, cx, out)?
            };
            match ended {
                LoopExit::Row => {}
                LoopExit::Step(step) if out.is_empty() => return Ok(step),
                // What made it stop says so again at the next call.
                LoopExit::Step(step) => return Ok(cx.batch_before(&step)),
                LoopExit::Full => return Ok(Step::Batch),
            }
            shape.end_left(self.left_batch.row(self.left_at), self.matched, out);
            self.left_at += 1;
            self.open = false;
            if out.is_full() {
                return Ok(Step::Batch);
            }
        }
    }

    /// Brings a kept row that is in a file; what to wait for.
    fn bring(&mut self, at: usize, shape: JoinShape) -> Result<Option<WaitReason>> {
        if self.kept.in_memory(at).is_some() || self.brought_at == Some(at) {
            return Ok(None);
        }
        self.brought_at = None;
        self.brought.start(shape.right_width);
        match self.reader.read(at, &self.kept, &mut self.brought)? {
            ReadStep::Row => {
                self.brought_at = Some(at);
                Ok(None)
            }
            ReadStep::Wait(obstacle) => Ok(Some(obstacle)),
            ReadStep::End => Err(SqlError::internal("a row that was kept is gone")),
        }
    }

    /// Gives kept rows that matched nothing. A step that comes before.
    fn unmatched(
        &mut self,
        shape: JoinShape,
        cx: &mut ExecutorContext<'_>,
        out: &mut Batch,
    ) -> Result<Option<Step>> {
        while self.unmatched_at < self.kept.len() && !out.is_full() {
            let at = self.unmatched_at;
            if !self.right_matched.get(at).copied().unwrap_or(false) {
                if cx.tick()? {
                    return Ok(Some(Step::Yield));
                }
                if let Some(obstacle) = self.bring(at, shape)? {
                    return Ok(Some(Step::Wait(obstacle)));
                }
                match self.kept.in_memory(at) {
                    Some(row) => shape.end_right(row, out),
                    None => shape.end_right(self.brought.row(0), out),
                }
            }
            self.unmatched_at += 1;
        }
        Ok(None)
    }

    /// Goes on with the current left row against the kept rows.
    fn kept_row<'a>(
        &mut self,
        shape: JoinShape,
        condition: Option<&'a Expr>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<LoopExit> {
        while self.right_at < self.kept.len() {
            if out.is_full() {
                return Ok(LoopExit::Full);
            }
            if cx.tick()? {
                return Ok(LoopExit::Step(Step::Yield));
            }
            if let Some(obstacle) = self.bring(self.right_at, shape)? {
                return Ok(LoopExit::Step(Step::Wait(obstacle)));
            }
            let left = self.left_batch.row(self.left_at);
            let right = match self.kept.in_memory(self.right_at) {
                Some(row) => row,
                None => self.brought.row(0),
            };
            let holds = match self.pair.holds(condition, left, right, cx)? {
                Ok(holds) => holds,
                Err(absent) => return Ok(LoopExit::Step(Step::Wait(absent))),
            };
            let at = self.right_at;
            self.right_at += 1;
            if !holds {
                continue;
            }
            self.matched = true;
            if let Some(matched) = self.right_matched.get_mut(at) {
                *matched = true;
            }
            if shape.left_only() {
                break;
            }
            out.push_joined(left, right);
        }
        Ok(LoopExit::Row)
    }

    /// Goes on with the current left row against a right side that depends on it.
    fn lateral_row<'a>(
        &mut self,
        shape: JoinShape,
        right: &'a Plan,
        condition: Option<&'a Expr>,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<LoopExit> {
        if shape.keeps_right() {
            return Err(SqlError::internal(
                "a RIGHT or FULL join cannot depend on its left side",
            ));
        }
        loop {
            while self.right_at < self.right_batch.len() {
                if out.is_full() {
                    return Ok(LoopExit::Full);
                }
                let (left, row) = (
                    self.left_batch.row(self.left_at),
                    self.right_batch.row(self.right_at),
                );
                let holds = match self.pair.holds(condition, left, row, cx)? {
                    Ok(holds) => holds,
                    Err(absent) => return Ok(LoopExit::Step(Step::Wait(absent))),
                };
                self.right_at += 1;
                if !holds {
                    continue;
                }
                self.matched = true;
                if shape.left_only() {
                    return Ok(LoopExit::Row);
                }
                out.push_joined(left, row);
            }
            self.right_at = 0;
            self.right_batch
                .set_capacity(if shape.left_only() && condition.is_none() {
                    1
                } else {
                    BATCH_ROWS
                });
            cx.outer.push(std::mem::take(&mut self.outer_row));
            let step = self.right.next(right, cx, &mut self.right_batch);
            self.outer_row = cx.outer.pop().unwrap_or_default();
            match step? {
                Step::Batch => {}
                Step::Done => return Ok(LoopExit::Row),
                other => return Ok(LoopExit::Step(other)),
            }
        }
    }

    pub(crate) fn rewind(
        &mut self,
        left: &Plan,
        right: &Plan,
        lateral: bool,
        cx: &mut ExecutorContext<'_>,
    ) {
        self.left.rewind(left, cx);
        if lateral {
            self.right.rewind(right, cx);
        } else if !self.kept_complete
            || !*self
                .right_fixed
                .get_or_insert_with(|| is_rescan_invariant(right))
        {
            self.right.rewind(right, cx);
            self.kept = Spool::default();
            self.reader = SpoolReader::default();
            self.brought_at = None;
            self.kept_complete = false;
        } else {
            self.right_matched.fill(false);
        }
        self.started = false;
        self.left_batch.start(0);
        self.left_at = 0;
        self.right_batch.start(0);
        self.right_at = 0;
        self.open = false;
        self.left_done = false;
        self.unmatched_at = 0;
        self.pair.evaluation.reset();
    }
}

/// How a stretch of work on one left row ended.
enum LoopExit {
    /// Its matches are exhausted.
    Row,
    /// `out` is full.
    Full,
    /// The right side has to wait.
    Step(Step),
}
