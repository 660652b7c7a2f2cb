//! Sorting, by memcmp-comparable keys; only the first rows are kept when no more are wanted.
//!
//! Rows are sorted in runs as they arrive, and the runs are merged as rows are asked for: no step takes long, however
//! many rows there are. What is more than `work_mem` goes to temporary files (`sort::external`).

pub(crate) mod external;

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::eval_in;
use crate::operator::PlanState;
use crate::operator::sort::external::{ExternalSorter, SortResult};
use crate::operator_memory::OperatorMemory;
use crate::spill::{ReadStep, Spill};
use crate::wait::Evaluated;
use logstead_sql_plan::instrumentation::{NodeDetail, width};
use logstead_sql_plan::{Node, Plan, SortKey};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, key};

/// Whether each row becomes several before they are sorted: PostgreSQL sorts first, so that those of one row stay
/// together
/// as they came.
fn is_of_sets(input: &Plan) -> bool {
    match &input.node {
        Node::ProjectSet { .. } => true,
        Node::Project { input, .. } => is_of_sets(input),
        _ => false,
    }
}

/// Adds the sort key of `row` to `out`.
pub(crate) fn write_key<'a>(
    keys: &'a [SortKey],
    row: &[Datum],
    out: &mut Vec<u8>,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<()> {
    for sort in keys {
        let datum = eval_in(&sort.expr, row, cx)?;
        key::encode_key(sort.expr.ty().oid, &datum, sort.desc, sort.nulls_first, out);
    }
    Ok(())
}

/// State of a sort.
pub(crate) struct SortState {
    pub(crate) input: PlanState,
    batch: Batch,
    /// The next row of the batch to be taken.
    at: usize,
    evaluation: ResumableEvaluation,
    sorter: ExternalSorter,
    /// Where to, once something is written.
    spill: Option<Spill>,
    /// The input has ended.
    ended: bool,
    sorted: Option<SortResult>,
    held: OperatorMemory,
    /// Rows wanted by a LIMIT above.
    bound: Option<usize>,
    /// How it was sorted, for EXPLAIN.
    detail: NodeDetail,
}

impl SortState {
    pub(crate) fn new(input: &Plan) -> SortState {
        SortState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            evaluation: ResumableEvaluation::default(),
            sorter: ExternalSorter::default(),
            spill: None,
            ended: false,
            sorted: None,
            held: OperatorMemory::default(),
            bound: None,
            detail: NodeDetail::None,
        }
    }

    pub(crate) fn bound(&mut self, rows: usize) {
        self.bound = Some(rows);
    }

    /// How it was sorted.
    pub(crate) fn detail(&self) -> NodeDetail {
        self.detail
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [SortKey],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if self.sorted.is_none()
            && let Some(step) = self.take(input, keys, cx)?
        {
            return Ok(step);
        }
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        out.start(width(input));
        match &mut self.sorted {
            None => {}
            Some(SortResult::Memory(sorted)) => {
                while !out.is_full() {
                    match sorted.next() {
                        Some(row) => out.push_row(row),
                        None => break,
                    }
                }
            }
            Some(SortResult::Disk(merge, file)) => {
                while !out.is_full() {
                    match merge.advance(file)? {
                        ReadStep::Row => out.push_decoded(|row| merge.row(row))?,
                        ReadStep::End => break,
                        ReadStep::Wait(obstacle) if out.is_empty() => {
                            return Ok(Step::Wait(obstacle));
                        }
                        // It is met again with the next batch.
                        ReadStep::Wait(_) => break,
                    }
                }
            }
        }
        cx.worked(out.len());
        Ok(if out.is_empty() {
            Step::Done
        } else {
            Step::Batch
        })
    }

    /// Takes all of the input; a step that comes before.
    fn take<'a>(
        &mut self,
        input: &'a Plan,
        keys: &'a [SortKey],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Option<Step>> {
        while !self.ended {
            if let Some(step) = self.sorter.work(cx)? {
                return Ok(Some(step));
            }
            while self.at < self.batch.len() {
                if cx.take_pending_yield() {
                    return Ok(Some(Step::Yield));
                }
                let row = self.batch.row(self.at);
                let exprs = keys.iter().map(|key| &key.expr);
                let sorter = &mut self.sorter.sorter;
                let taken = self.evaluation.of(exprs, cx, |cx| {
                    sorter.push(row, |out| write_key(keys, row, out, cx))
                })?;
                if let Err(obstacle) = taken {
                    return Ok(Some(Step::Wait(obstacle)));
                }
                self.at += 1;
            }
            let sorter = &mut self.sorter.sorter;
            // Throwing the surplus away at twice the bound costs each row one comparison sort in all.
            if let Some(bound) = self.bound
                && sorter.rows.len() > bound.saturating_mul(2).saturating_add(256)
            {
                sorter.keep_first(bound);
            }
            let held_bytes = sorter.size_bytes();
            self.held.set(held_bytes, cx.memory())?;
            if held_bytes > cx.work_mem_bytes {
                if self.spill.is_none() {
                    self.spill = cx.spill();
                }
                match &self.spill {
                    Some(spill) => {
                        self.sorter.write_run(spill, cx.work_mem_bytes);
                        continue;
                    }
                    None => cx.check_memory("A sort", held_bytes)?,
                }
            }
            self.at = 0;
            self.batch.start(0);
            match self.input.next(input, cx, &mut self.batch)? {
                Step::Batch => {}
                Step::Done => {
                    self.ended = true;
                    self.detail = self.how();
                }
                step => return Ok(Some(step)),
            }
        }
        let step = self.sorter.settle(self.spill.as_ref(), cx)?;
        self.held.set(self.sorter.size_bytes(), cx.memory())?;
        if let Some(step) = step {
            return Ok(Some(step));
        }
        if self.sorter.is_on_disk() {
            let bytes = self.sorter.disk_bytes();
            self.detail = NodeDetail::Sort {
                method: "external merge",
                disk: true,
                kib: bytes.div_ceil(1024),
            };
        }
        let sorted = std::mem::take(&mut self.sorter).finish(!is_of_sets(input));
        self.held.set(sorted.size_bytes(), cx.memory())?;
        self.sorted = Some(sorted);
        Ok(None)
    }

    /// How what is in memory is sorted.
    fn how(&self) -> NodeDetail {
        let sorter = &self.sorter.sorter;
        NodeDetail::Sort {
            method: match self.bound {
                Some(bound) if sorter.has_dropped || sorter.rows.len() > bound => "top-N heapsort",
                _ => "quicksort",
            },
            disk: false,
            kib: (sorter.size_bytes() as u64).div_ceil(1024),
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.evaluation.reset();
        self.sorter = ExternalSorter::default();
        self.ended = false;
        self.sorted = None;
    }
}
