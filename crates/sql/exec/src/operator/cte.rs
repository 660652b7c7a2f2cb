//! WITH: a query computed once, row by row as its readers ask, recursive ones included.
//!
//! What is more than `work_mem` goes to a temporary file, where each reader has a place of its own (`spill::spool`).
//!
//! The running definition lives in the execution's shared state by slot, since several `CteScan`s read it. A recursive
//! query's working table is a range of its own result: while the recursive term runs, a scan of the slot reads that
//! range; everywhere else it reads the result from the start. Asking for rows only as far as they are read makes
//! `WITH RECURSIVE ... LIMIT n` end.
//!
//! A definition that changes something runs to its end whoever reads it. What is left of it when the body has ended is
//! run then, the last definition first, as PostgreSQL does: nobody reads its rows any more. One that is read by a
//! subquery in an expression runs before the body, for an expression cannot wait for a locked row. All of it is one
//! statement: one snapshot, one command, and events are checked at the end of all.

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{CteProducer, CteState, ExecutorContext, RunningPlan};
use crate::key_table::{KeyTable, row_key};
use crate::operator::PlanState;
use crate::operator_memory::OperatorMemory;
use crate::spill::{ReadStep, Spool, SpoolReader};
use logstead_sql_plan::instrumentation::{NodeStats, never_ran};
use logstead_sql_plan::{CteExecution, Node, Plan};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError};

impl RunningPlan for PlanState {
    fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        PlanState::next(self, plan, cx, out)
    }

    fn rewind(&mut self, plan: &Plan, cx: &mut ExecutorContext<'_>) {
        PlanState::rewind(self, plan, cx);
    }

    fn collect_stats(&self, plan: &Plan, ctes: &[Option<Box<CteState>>], out: &mut Vec<NodeStats>) {
        PlanState::collect_stats(self, plan, ctes, out);
    }
}

/// State of a WITH node.
pub(crate) struct WithState {
    pub(crate) body: PlanState,
    /// What goes before the body has been done.
    begun: bool,
    body_done: bool,
}

impl WithState {
    pub(crate) fn new(body: &Plan) -> WithState {
        WithState {
            body: PlanState::new(body),
            begun: false,
            body_done: false,
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        slot: usize,
        node: &'a Node,
        body: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        if cx.withs.len() <= slot {
            cx.withs.resize(slot + 1, None);
        }
        cx.withs[slot] = Some((node, cx.outer.len()));
        let execution = match node {
            Node::With { execution, .. } => *execution,
            _ => return Err(SqlError::internal("WITH was given another node")),
        };
        if execution == CteExecution::Before && !self.begun {
            out.start(0);
            if let Some(step) = to_the_end(slot, true, cx)? {
                return Ok(step);
            }
            self.begun = true;
        }
        if !self.body_done {
            match self.body.next(body, cx, out)? {
                Step::Done if execution == CteExecution::ToTheEnd => self.body_done = true,
                other => return Ok(other),
            }
        }
        out.start(0);
        Ok(to_the_end(slot, false, cx)?.unwrap_or(Step::Done))
    }

    pub(crate) fn rewind(&mut self, slot: usize, body: &Plan, cx: &mut ExecutorContext<'_>) {
        if let Some(cte) = cx.shared.ctes.get_mut(slot) {
            *cte = None;
        }
        // What subqueries kept may come from the rows just dropped.
        cx.shared.subqueries.clear();
        // Nothing that changes something is started over: its WITH is the statement's.
        self.body.rewind(body, cx);
    }
}

/// State of a scan of a WITH query: the next row of the result.
#[derive(Default)]
pub(crate) struct CteScanState {
    at: usize,
    reader: SpoolReader,
}

impl CteScanState {
    pub(crate) fn next(
        &mut self,
        slot: usize,
        width: usize,
        cx: &mut ExecutorContext<'_>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        make_place(slot, cx);
        loop {
            if let Some(cte) = &cx.shared.ctes[slot] {
                let (start, end) = if cte.inside {
                    cte.working
                } else {
                    (0, cte.rows.len())
                };
                let from = start + self.at;
                if from < end {
                    let to = end.min(from + out.capacity());
                    out.start(width);
                    for i in from..to {
                        if out.is_full() {
                            break;
                        }
                        match self.reader.read(i, &cte.rows, out)? {
                            ReadStep::Row => {}
                            ReadStep::End => break,
                            ReadStep::Wait(obstacle) if out.is_empty() => {
                                return Ok(Step::Wait(obstacle));
                            }
                            // It is met again with the next batch.
                            ReadStep::Wait(_) => break,
                        }
                    }
                    if out.is_empty() {
                        return Err(SqlError::internal("a WITH query lost a row"));
                    }
                    self.at += out.len();
                    cx.worked(out.len());
                    return Ok(Step::Batch);
                }
                if cte.inside || cte.done {
                    return Ok(Step::Done);
                }
            }
            match produce(slot, true, cx)? {
                Step::Batch | Step::Done => {}
                other => return Ok(other),
            }
        }
    }
}

fn make_place(slot: usize, cx: &mut ExecutorContext<'_>) {
    if cx.shared.ctes.len() <= slot {
        cx.shared.ctes.resize_with(slot + 1, || None);
    }
}

/// Runs a WITH query to its end; or says what else is to be done first, then it is called again.
fn to_the_end(slot: usize, keep: bool, cx: &mut ExecutorContext<'_>) -> Result<Option<Step>> {
    make_place(slot, cx);
    loop {
        if cx.shared.ctes[slot].as_ref().is_some_and(|cte| cte.done) {
            return Ok(None);
        }
        if cx.tick()? {
            return Ok(Some(Step::Yield));
        }
        match produce(slot, keep, cx)? {
            Step::Batch | Step::Done => {}
            other => return Ok(Some(other)),
        }
    }
}

/// Computes more of a WITH query; `Done` when it is complete. `keep`: somebody may read the rows.
fn produce(slot: usize, keep: bool, cx: &mut ExecutorContext<'_>) -> Result<Step> {
    let Some(Some((
        Node::With {
            definition,
            recursive,
            ..
        },
        depth,
    ))) = cx.withs.get(slot).copied()
    else {
        return Err(SqlError::internal(format!("no WITH query for slot {slot}")));
    };
    let cte = cx.shared.ctes[slot].get_or_insert_with(|| {
        Box::new(CteState {
            rows: Spool::default(),
            held: OperatorMemory::default(),
            producer: Some(Box::new(CteProducer {
                definition: Box::new(PlanState::new(definition)),
                recursive: recursive
                    .as_ref()
                    .map(|(plan, _)| Box::new(PlanState::new(plan)) as Box<dyn RunningPlan>),
                seen: KeyTable::default(),
                definition_done: false,
                recursive_started: false,
                batch: Batch::default(),
                key: Vec::new(),
            })),
            inside: false,
            working: (0, 0),
            done: false,
        })
    });
    if let Some(obstacle) = cte.rows.behind()? {
        return Ok(Step::Wait(obstacle));
    }
    let Some(mut producer) = cte.producer.take() else {
        return Err(SqlError::internal(
            "a WITH query reads itself outside of its recursive term",
        ));
    };
    // The definition sees the rows that enclose WITH, not those that enclose this reader.
    let enclosing = cx.outer.split_off(depth.min(cx.outer.len()));
    // Only the statement itself tells how many rows it wrote.
    let affected = cx.affected;
    let step = if producer.definition_done {
        cte.inside = true;
        match (&mut producer.recursive, recursive) {
            (Some(running), Some((plan, _))) => running.next(plan, cx, &mut producer.batch),
            _ => Ok(Step::Done),
        }
    } else {
        producer
            .definition
            .next(definition, cx, &mut producer.batch)
    };
    cx.outer.extend(enclosing);
    cx.affected = affected;
    let memory = cx.memory();
    let allowance = cx.spill;
    let Some(cte) = &mut cx.shared.ctes[slot] else {
        return Err(SqlError::internal("a WITH query vanished while it ran"));
    };
    cte.inside = false;
    let mut step = step?;
    match step {
        Step::Batch if !keep => {}
        Step::Batch => {
            if recursive.as_ref().is_some_and(|(_, union_all)| !union_all) {
                let types: Vec<TypeId> = definition
                    .columns
                    .iter()
                    .map(|column| column.ty.oid)
                    .collect();
                let CteProducer {
                    seen, batch, key, ..
                } = &mut *producer;
                batch.retain(|row| {
                    row_key(&types, row, key);
                    Ok(seen.insert(key).1)
                })?;
            }
            cte.rows
                .append(&mut producer.batch, cx.work_mem_bytes, || {
                    allowance.map(|allowance| allowance.spill())
                })?;
            let held_bytes = cte.rows.size_bytes() + producer.seen.size_bytes();
            cte.held.set(held_bytes, memory)?;
            cx.check_memory("A WITH query", held_bytes)?;
        }
        Step::Done if recursive.is_none() => cte.done = true,
        Step::Done => {
            // The next round works on what the last one added; a round that adds nothing is the last.
            let from = if producer.definition_done {
                cte.working.1
            } else {
                0
            };
            producer.definition_done = true;
            cte.working = (from, cte.rows.len());
            if from == cte.rows.len() {
                cte.done = true;
            } else {
                if let (true, Some(running), Some((plan, _))) = (
                    producer.recursive_started,
                    &mut producer.recursive,
                    recursive,
                ) {
                    cte.producer = None;
                    running.rewind(plan, cx);
                }
                producer.recursive_started = true;
                step = Step::Batch;
            }
        }
        Step::Yield | Step::Wait(_) => {}
    }
    match &mut cx.shared.ctes[slot] {
        Some(cte) => cte.producer = Some(producer),
        None => return Err(SqlError::internal("a WITH query vanished while it ran")),
    }
    Ok(step)
}

/// Statistics of a WITH query's definition and recursive term.
pub(crate) fn collect_stats(
    cte: Option<&CteState>,
    definition: &Plan,
    recursive: Option<&Plan>,
    ctes: &[Option<Box<CteState>>],
    out: &mut Vec<NodeStats>,
) {
    let producer = cte.and_then(|cte| cte.producer.as_deref());
    match producer {
        Some(producer) => producer.definition.collect_stats(definition, ctes, out),
        None => never_ran(definition, out),
    }
    match (
        recursive,
        producer.and_then(|producer| producer.recursive.as_ref()),
    ) {
        (Some(plan), Some(running)) => running.collect_stats(plan, ctes, out),
        (Some(plan), None) => never_ran(plan, out),
        (None, _) => {}
    }
}
