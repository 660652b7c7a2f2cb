//! The executor: runs plans on the engine's encoded rows.
//!
//! The life of a statement here:
//! 1. [`prepare`] looks at a plan once and recognises statements by key (`point_plan`); the result is cached with the
//!    plan.
//! 2. [`Execution::new`] makes one running instance; a portal keeps it between calls.
//! 3. [`Execution::run`] pulls batches from the operator tree (`operator`) and gives rows to a [`RowSink`]; a statement
//!    by key takes a straight path from stored bytes to the sink instead, with no operators and no batches.
//! 4. Operators are synchronous. What has to wait (a locked row) or has worked long enough comes up as a step, and only
//!    [`Execution::run`] awaits: no epoch guard is alive then.
//!
//! Owns: evaluation of expressions, operators, constraints of rows, the texts of their errors. Does not begin, lock
//! tables for, or end transactions, and knows nothing of clients.

#![forbid(unsafe_code)]

pub mod after_triggers;
mod batch;
mod call;
mod cancel;
mod constraints;
mod context;
mod deform;
mod direct_scan;
mod eval;
mod event_recorder;
pub mod index_keys;
mod key_table;
mod operator;
mod operator_memory;
mod point_plan;
mod prune_columns;
mod rescan_invariant;
mod routine;
mod security_quals;
mod sorter;
pub mod spill;
mod spill_threads;
mod stored_predicate;
mod trigger;
mod validate;
pub mod wait;
mod write_errors;

pub use after_triggers::{EventQueue, EventQueueMark, SetConstraintState};
pub use call::TriggerCall;
pub use call::{Caller, PendingCall, no_calls};
pub use cancel::{Cancel, CancelReason};
pub use constraints::check_deferred_constraints;
pub use context::{EvalContext, MEMORY_FACTOR, StatementContext};
pub use deform::StoredColumn;
pub use eval::columns_read;
pub use eval::{eval, evaluate};
pub use operator::write::Inserter;
pub use operator_memory::OperatorMemory;
pub use spill::{Spill, SpillAllowance, SpillCounts, SpillSpace};
pub use trigger::{stored_rows, truncate_calls};
pub use validate::validate;
pub use write_errors::may_show_key;

#[cfg(test)]
mod tests;

use batch::Step;
use batch::{BATCH_ROWS, Batch};
use context::{ExecutionState, ExecutorContext};
use logstead_engine::RowRef;
use logstead_fiber::{StackAllocError, poll_with_stack};
use logstead_sql_parse::{drop_deep, on_enough_stack};
use logstead_sql_plan::Plan;
use logstead_sql_plan::expr::Subquery;
use logstead_sql_plan::instrumentation::NodeStats;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use operator::PlanState;
use spill::{ReadStep, Spool, SpoolReader};
use std::collections::VecDeque;
use std::sync::Arc;
use wait::ExecError;

/// Takes a statement's result rows.
pub trait RowSink {
    /// A row of the plan's columns.
    fn row(&mut self, row: &[Datum]) -> Result<()>;

    /// A row straight from stored bytes: `columns` says where each result column is.
    fn stored_row(&mut self, row: RowRef<'_>, columns: &[StoredColumn]) -> Result<()> {
        let mut datums = Vec::with_capacity(columns.len());
        for column in columns {
            datums.push(column.decode(row)?);
        }
        self.row(&datums)
    }

    /// True when what was taken should be passed on before more is given.
    fn is_full(&self) -> bool {
        false
    }
}

/// How far an execution got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// To the end.
    Done {
        /// Rows written by INSERT, UPDATE, DELETE; rows given since the last start of `run` by everything else.
        rows: u64,
    },
    /// The rows asked for have been given; there may be more.
    Suspended,
    /// A function has to be run: [`Execution::answer`] it and call again.
    Call,
    /// The sink is full: empty it and call again with the rows still wanted.
    Full {
        /// Rows given by this call.
        rows: u64,
    },
}

/// A plan ready to run, any number of times.
pub struct Prepared {
    plan: Plan,
    /// Stack that it takes to run, show or drop it; 0 if any has it.
    stack_bytes: usize,
    point_plan: Option<point_plan::PointPlan>,
    /// Result columns of a plain scan.
    direct: Option<Vec<StoredColumn>>,
    /// Subqueries in expressions that are run before the plan, inner ones first.
    ahead: Vec<Arc<Subquery>>,
}

impl Prepared {
    /// The plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Stack that it takes to run, show or drop it; 0 if any has it.
    pub fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    /// Whether the statement runs by key, without operators.
    pub fn is_by_key(&self) -> bool {
        self.point_plan.is_some()
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.stack_bytes > 0 {
            let plan = std::mem::replace(&mut self.plan, Plan::nothing());
            let mut all = (
                plan,
                self.point_plan.take(),
                std::mem::take(&mut self.ahead),
            );
            drop_deep(
                &mut all,
                (Plan::nothing(), None, Vec::new()),
                self.stack_bytes,
            );
        }
    }
}

/// Makes a plan ready to run; on as much stack as that takes.
pub fn prepare(mut plan: Plan) -> Prepared {
    let stack_bytes = logstead_sql_plan::stack_bytes(&plan);
    // Only operators can stop before a call.
    let calls = logstead_sql_plan::walk::has_routine(&plan)
        || logstead_sql_plan::constraints::has_triggers(&plan);
    // One that is deep is made ready where it has a stack for it: when it is run.
    let is_deep = stack_bytes > 0;
    let point_plan = match calls || is_deep {
        true => None,
        false => point_plan::recognise(&plan),
    };
    let direct = if calls || is_deep || point_plan.is_some() {
        None
    } else {
        direct_scan::recognise(&plan)
    };
    if point_plan.is_none() && direct.is_none() {
        prune_columns::mark(&mut plan);
    }
    let ahead = operator::subquery::init_plans(&plan);
    Prepared {
        plan,
        stack_bytes,
        point_plan,
        direct,
        ahead,
    }
}

/// One run of a prepared plan.
pub struct Execution {
    prepared: Arc<Prepared>,
    state: ExecutionPhase,
    measure: bool,
    /// A call of a trigger that is fired when all is written.
    pending_call: Option<Box<PendingCall>>,
    /// How far it had got when it stopped for that.
    kept: Option<Progress>,
    /// What the trigger gave, if it was of a row that an action changes.
    answered: Option<VecDeque<Vec<Datum>>>,
}

enum ExecutionPhase {
    /// A statement by key, or a deep one, that has not run yet.
    Key,
    /// A plain scan.
    Direct(Box<direct_scan::DirectScan>),
    /// Everything else, and portals brought to their end early.
    General(Box<OperatorExecution>),
    Done,
}

struct OperatorExecution {
    running: PlanState,
    shared: ExecutionState,
    /// The call of a function that it has stopped for.
    pending_call: Option<Box<PendingCall>>,
    batch: Batch,
    /// Next row of `batch` to give.
    at: usize,
    /// Rows computed ahead of being asked for; given before everything else.
    ahead: Spool,
    held: operator_memory::OperatorMemory,
    ahead_at: usize,
    ahead_reader: SpoolReader,
    /// The operators have no more.
    ended: bool,
    /// Rows given before the call that is waited for.
    given: u64,
    affected: u64,
    /// It writes, be it in its WITH: it runs to its end at the first call.
    writes: bool,
    /// It is INSERT, UPDATE, DELETE or MERGE: it tells of the rows it wrote, not of those it gave.
    changes: bool,
    /// The subqueries that go before the plan have run.
    primed: bool,
}

impl Execution {
    /// An execution that has not started.
    pub fn new(prepared: Arc<Prepared>) -> Execution {
        let direct = || {
            prepared
                .direct
                .as_ref()
                .and_then(|_| direct_scan::DirectScan::new(&prepared.plan))
        };
        let state = if prepared.point_plan.is_some() || prepared.stack_bytes > 0 {
            ExecutionPhase::Key
        } else if let Some(direct) = direct() {
            ExecutionPhase::Direct(Box::new(direct))
        } else {
            general(&prepared)
        };
        Execution {
            prepared,
            state,
            measure: false,
            pending_call: None,
            kept: None,
            answered: None,
        }
    }

    /// An execution that measures its nodes, for EXPLAIN ANALYZE.
    pub fn measured(prepared: Arc<Prepared>) -> Execution {
        let state = match prepared.stack_bytes {
            0 => general(&prepared),
            _ => ExecutionPhase::Key,
        };
        Execution {
            prepared,
            state,
            measure: true,
            pending_call: None,
            kept: None,
            answered: None,
        }
    }

    /// The prepared plan.
    pub fn prepared(&self) -> &Arc<Prepared> {
        &self.prepared
    }

    /// What the nodes measured, in the order of [`children`](logstead_sql_plan::instrumentation::children): a node,
    /// then its inputs.
    pub fn stats(&self) -> Vec<NodeStats> {
        let stats = on_enough_stack(self.prepared.stack_bytes, || Ok(self.stats_here()));
        stats.unwrap_or_default()
    }

    fn stats_here(&self) -> Vec<NodeStats> {
        let mut stats = Vec::new();
        match &self.state {
            ExecutionPhase::General(general) => {
                general.running.collect_stats(
                    &self.prepared.plan,
                    &general.shared.ctes,
                    &mut stats,
                );
            }
            ExecutionPhase::Key | ExecutionPhase::Direct(_) | ExecutionPhase::Done => {
                logstead_sql_plan::instrumentation::never_ran(&self.prepared.plan, &mut stats)
            }
        }
        stats
    }

    /// Runs until `rows_max` rows are given (0: all), the sink is full, or the end. A statement that writes runs to its
    /// end at the first call, whatever the rows asked for. After an error the execution is finished.
    pub async fn run(
        &mut self,
        cx: &mut StatementContext<'_>,
        rows_max: u64,
        out: &mut dyn RowSink,
    ) -> Result<Progress> {
        match self.prepared.stack_bytes {
            0 => self.run_here(cx, rows_max, out).await,
            bytes => {
                let running = poll_with_stack(bytes, self.run_here(cx, rows_max, out));
                match Box::pin(running).await {
                    Ok(progress) => progress,
                    Err(StackAllocError) => Err(logstead_sql_types::error::too_deep()),
                }
            }
        }
    }

    async fn run_here(
        &mut self,
        cx: &mut StatementContext<'_>,
        rows_max: u64,
        out: &mut dyn RowSink,
    ) -> Result<Progress> {
        let progress = match self.kept.take() {
            Some(progress) => progress,
            None => self.run_on(cx, rows_max, out).await?,
        };
        if cx.events.has_due() && progress != Progress::Call && self.has_written() {
            cx.events.action.answered = self.answered.take();
            match constraints::check_due_constraints(cx).await {
                Ok(None) => {}
                Ok(Some(call)) => {
                    (self.pending_call, self.kept) = (Some(call), Some(progress));
                    return Ok(Progress::Call);
                }
                Err(error) => {
                    drop_deep(
                        &mut self.state,
                        ExecutionPhase::Done,
                        self.prepared.stack_bytes,
                    );
                    return Err(error);
                }
            }
        }
        Ok(progress)
    }

    /// Has a statement that writes rows written all of them?
    fn has_written(&self) -> bool {
        match &self.state {
            ExecutionPhase::General(general) => general.ended,
            ExecutionPhase::Key | ExecutionPhase::Direct(_) | ExecutionPhase::Done => true,
        }
    }

    async fn run_on(
        &mut self,
        cx: &mut StatementContext<'_>,
        rows_max: u64,
        out: &mut dyn RowSink,
    ) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        match &mut self.state {
            ExecutionPhase::Done => Ok(Progress::Done { rows: 0 }),
            ExecutionPhase::Key => {
                self.state = ExecutionPhase::Done;
                match &prepared.point_plan {
                    Some(point_plan) if rows_max == 0 || !point_plan.returns_rows() => {
                        let rows = point_plan::run(&prepared.plan, point_plan, cx, out).await?;
                        Ok(Progress::Done { rows })
                    }
                    _ => {
                        self.state = general(&prepared);
                        Box::pin(self.run_on(cx, rows_max, out)).await
                    }
                }
            }
            ExecutionPhase::Direct(direct) => {
                let columns = prepared.direct.as_deref().unwrap_or_default();
                let result = direct.run(&prepared.plan, columns, cx, rows_max, out).await;
                if matches!(result, Err(_) | Ok(Progress::Done { .. })) {
                    self.state = ExecutionPhase::Done;
                }
                result
            }
            ExecutionPhase::General(general) => {
                let result = general
                    .run(&prepared, cx, rows_max, out, self.measure)
                    .await;
                if result.is_err() {
                    drop_deep(&mut self.state, ExecutionPhase::Done, prepared.stack_bytes);
                }
                result
            }
        }
    }

    /// Have all rows been computed?
    pub fn has_ended(&self) -> bool {
        match &self.state {
            ExecutionPhase::General(general) => general.ended,
            ExecutionPhase::Key | ExecutionPhase::Direct(_) => false,
            ExecutionPhase::Done => true,
        }
    }

    /// Runs to the end now, keeping the rows for later calls of [`Execution::run`]: what a portal needs before another
    /// statement of the transaction changes what its snapshot would show.
    pub async fn materialize(&mut self, cx: &mut StatementContext<'_>) -> Result<Progress> {
        match self.prepared.stack_bytes {
            0 => self.run_ahead_here(cx).await,
            bytes => match Box::pin(poll_with_stack(bytes, self.run_ahead_here(cx))).await {
                Ok(progress) => progress,
                Err(StackAllocError) => Err(logstead_sql_types::error::too_deep()),
            },
        }
    }

    async fn run_ahead_here(&mut self, cx: &mut StatementContext<'_>) -> Result<Progress> {
        let prepared = Arc::clone(&self.prepared);
        if let ExecutionPhase::Direct(direct) = &mut self.state {
            let columns = prepared.direct.as_deref().unwrap_or_default();
            let mut ahead = AheadRows {
                rows: Spool::default(),
                memory_bytes: cx.work_mem_bytes,
                spill: cx.spill.map(|allowance| allowance.spill()),
            };
            let mut rest = OperatorExecution::new(&prepared);
            loop {
                let progress = direct
                    .run(&prepared.plan, columns, cx, 0, &mut ahead)
                    .await?;
                let held_bytes = ahead.rows.size_bytes();
                let memory = Some(cx.engine.memory());
                rest.held.set(held_bytes, memory)?;
                ExecutorContext::of(cx, &mut rest.shared, false)
                    .check_memory("A portal", held_bytes)?;
                if !matches!(progress, Progress::Full { .. }) {
                    break;
                }
                if let Some(obstacle) = ahead.rows.behind()? {
                    wait::wait_for(obstacle, cx.txn, cx.cancel).await?;
                }
            }
            rest.ahead = ahead.rows;
            rest.ended = true;
            self.state = ExecutionPhase::General(Box::new(rest));
            return Ok(Progress::Suspended);
        }
        if matches!(self.state, ExecutionPhase::Key) {
            self.state = general(&prepared);
        }
        match &mut self.state {
            ExecutionPhase::General(general) => {
                if !general.materialize(&prepared, cx, self.measure).await? {
                    return Ok(Progress::Call);
                }
            }
            _ => return Ok(Progress::Suspended),
        }
        cx.events.action.answered = self.answered.take();
        if cx.events.has_due()
            && let Some(call) = constraints::check_due_constraints(cx).await?
        {
            self.pending_call = Some(call);
            return Ok(Progress::Call);
        }
        Ok(Progress::Suspended)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        drop_deep(
            &mut self.state,
            ExecutionPhase::Done,
            self.prepared.stack_bytes,
        );
    }
}

impl Caller for Execution {
    fn take_call(&mut self) -> Option<Box<PendingCall>> {
        if let Some(call) = self.pending_call.take() {
            return Some(call);
        }
        match &mut self.state {
            ExecutionPhase::General(general) => general.pending_call.take(),
            _ => None,
        }
    }

    fn answer(&mut self, call: &PendingCall, rows: VecDeque<Vec<Datum>>) {
        match (call.number, &mut self.state) {
            // An AFTER trigger's, which says nothing.
            (0, _) => {}
            (call::ACTION, _) => self.answered = Some(rows),
            (number, ExecutionPhase::General(general)) => {
                general.shared.call_results.insert(number, rows);
            }
            _ => {}
        }
    }
}

fn general(prepared: &Prepared) -> ExecutionPhase {
    ExecutionPhase::General(Box::new(OperatorExecution::new(prepared)))
}

/// Keeps rows computed ahead of being asked for.
struct AheadRows {
    rows: Spool,
    memory_bytes: usize,
    spill: Option<Spill>,
}

/// Rows may be kept beyond `work_mem` between two looks at what they take, if there is nowhere else to put them.
const AHEAD_BYTES: usize = 1 << 20;

impl RowSink for AheadRows {
    fn row(&mut self, row: &[Datum]) -> Result<()> {
        self.rows
            .push(row, self.memory_bytes, || self.spill.clone())
    }

    fn is_full(&self) -> bool {
        match self.rows.behind() {
            Ok(None) => {
                let held_bytes = self.rows.size_bytes();
                self.spill.is_none() && held_bytes > self.memory_bytes.saturating_add(AHEAD_BYTES)
            }
            Ok(Some(_)) | Err(_) => true,
        }
    }
}

impl OperatorExecution {
    fn new(prepared: &Prepared) -> OperatorExecution {
        OperatorExecution {
            running: PlanState::new(&prepared.plan),
            shared: ExecutionState::default(),
            pending_call: None,
            batch: Batch::default(),
            at: 0,
            ahead: Spool::default(),
            held: operator_memory::OperatorMemory::default(),
            ahead_at: 0,
            ahead_reader: SpoolReader::default(),
            ended: false,
            affected: 0,
            given: 0,
            writes: prepared.plan.writes(),
            changes: prepared.plan.is_change(),
            primed: false,
        }
    }

    async fn run(
        &mut self,
        prepared: &Prepared,
        cx: &mut StatementContext<'_>,
        rows_max: u64,
        out: &mut dyn RowSink,
        measure: bool,
    ) -> Result<Progress> {
        if self.writes && rows_max > 0 && !self.materialize(prepared, cx, measure).await? {
            return Ok(Progress::Call);
        }
        let plan = &prepared.plan;
        // Those given before a call count as given now: who asks goes on with the same wish.
        let mut given = std::mem::take(&mut self.given);
        let mut cx = ExecutorContext::of(cx, &mut self.shared, measure);
        if !std::mem::replace(&mut self.primed, true) {
            operator::subquery::run_init_plans(&prepared.ahead, &mut cx).await?;
        }
        loop {
            while self.at < self.batch.len() {
                if rows_max > 0 && given == rows_max {
                    return Ok(Progress::Suspended);
                }
                if out.is_full() {
                    return Ok(Progress::Full { rows: given });
                }
                out.row(self.batch.row(self.at))?;
                self.at += 1;
                given += 1;
            }
            if self.ahead_at < self.ahead.len() {
                self.at = 0;
                self.batch
                    .start(logstead_sql_plan::instrumentation::width(plan));
                self.batch.set_capacity(BATCH_ROWS);
                while self.ahead_at < self.ahead.len() && !self.batch.is_full() {
                    let reader = &mut self.ahead_reader;
                    match reader.read(self.ahead_at, &self.ahead, &mut self.batch)? {
                        ReadStep::Row => self.ahead_at += 1,
                        ReadStep::End => {
                            return Err(SqlError::internal("a row that was kept is gone"));
                        }
                        ReadStep::Wait(_) if !self.batch.is_empty() => break,
                        ReadStep::Wait(reason) => {
                            let waited = cx.wait(reason).await;
                            waited.map_err(ExecError::without_calls)?;
                        }
                    }
                }
                continue;
            }
            // Whoever has what was asked for is told of the end when asking for more.
            if rows_max > 0 && given == rows_max {
                return Ok(Progress::Suspended);
            }
            if self.ended {
                // Of rows that are asked for in parts, only those of this part count.
                let in_parts = rows_max > 0 && plan.gives_rows();
                return Ok(Progress::Done {
                    rows: match self.changes && !in_parts {
                        true => self.affected,
                        false => given,
                    },
                });
            }
            let wanted = if rows_max > 0 {
                usize::try_from(rows_max - given).unwrap_or(BATCH_ROWS)
            } else {
                BATCH_ROWS
            };
            self.batch.set_capacity(wanted.min(BATCH_ROWS));
            self.at = 0;
            let stepped = step(&mut self.running, plan, &mut cx, &mut self.batch).await;
            self.affected += std::mem::take(&mut cx.affected);
            match stepped {
                Ok(more) => self.ended = !more,
                Err(ExecError::Call(call)) => {
                    self.pending_call = Some(call);
                    self.batch.start(0);
                    self.given = given;
                    return Ok(Progress::Call);
                }
                Err(ExecError::Sql(error)) => return Err(error),
            }
        }
    }

    async fn materialize(
        &mut self,
        prepared: &Prepared,
        cx: &mut StatementContext<'_>,
        measure: bool,
    ) -> Result<bool> {
        // What is left of a batch then is in memory as it is.
        if self.ended {
            return Ok(true);
        }
        let plan = &prepared.plan;
        let mut cx = ExecutorContext::of(cx, &mut self.shared, measure);
        if !std::mem::replace(&mut self.primed, true) {
            operator::subquery::run_init_plans(&prepared.ahead, &mut cx).await?;
        }
        let (allowance, work_mem_bytes) = (cx.spill, cx.work_mem_bytes);
        let spill = || allowance.map(|allowance| allowance.spill());
        for i in self.at..self.batch.len() {
            self.ahead.push(self.batch.row(i), work_mem_bytes, spill)?;
        }
        self.at = 0;
        self.batch.start(0);
        self.batch.set_capacity(BATCH_ROWS);
        while !self.ended {
            let stepped = step(&mut self.running, plan, &mut cx, &mut self.batch).await;
            self.affected += std::mem::take(&mut cx.affected);
            match stepped {
                Ok(more) => self.ended = !more,
                Err(ExecError::Call(call)) => {
                    self.pending_call = Some(call);
                    self.batch.start(0);
                    return Ok(false);
                }
                Err(ExecError::Sql(error)) => return Err(error),
            }
            self.ahead.append(&mut self.batch, work_mem_bytes, spill)?;
            let held_bytes = self.ahead.size_bytes();
            self.held.set(held_bytes, cx.memory())?;
            cx.check_memory("A portal", held_bytes)?;
            if let Some(reason) = self.ahead.behind()? {
                let waited = cx.wait(reason).await;
                waited.map_err(ExecError::without_calls)?;
            }
        }
        Ok(true)
    }
}

/// Takes a plan to its next batch, waiting and yielding on the way; false at the end.
pub(crate) async fn step<'a>(
    running: &mut PlanState,
    plan: &'a Plan,
    cx: &mut ExecutorContext<'a>,
    out: &mut Batch,
) -> Result<bool, ExecError> {
    loop {
        match running.next(plan, cx, out)? {
            Step::Batch => {
                if cx.take_pending_yield() {
                    tokio::task::yield_now().await;
                }
                return Ok(true);
            }
            Step::Done => return Ok(false),
            Step::Yield => tokio::task::yield_now().await,
            Step::Wait(blocker) => cx.wait(blocker).await?,
        }
    }
}
