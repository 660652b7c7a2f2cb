//! The running form of a plan: one `PlanState` per node, holding that node's state.
//!
//! The plan is shared and never changes; state lives beside it in a tree of the same shape, and every call hands both
//! in. Operators are pulled: [`PlanState::next`] fills a batch. All of it is plain synchronous code: what would have to
//! wait says so (`Step::Yield`, `Step::Wait`) and is called again, so a blocking operator passes the step up and keeps
//! its state.
//!
//! Invariants: `next` clears `out` first; `Step::Batch` comes with at least one row, every other step, and an error,
//! with none. After `Done` it says `Done` again until `rewind`.
//!
//! Rows before an error: an operator that makes its rows one by one meets the error of a row in the middle of a batch.
//! The rows before it are given first, and the error when the next are asked for, so a client gets the rows that
//! PostgreSQL would have sent by then, and who wanted no more of them (LIMIT, EXISTS) never hears of the error.

mod aggregate;
mod cte;
pub(crate) mod index_scan;
mod join;
mod lock_rows;
mod memoize;
mod row_by_row;
pub(crate) mod scan;
mod setop;
mod sort;
pub(crate) mod subquery;
mod tid_scan;
mod window;
pub(crate) mod write;

use super::batch::Batch;
use super::context::{CteState, ExecutorContext};
use super::routine::RoutineState;
use crate::batch::Step;
use crate::operator::aggregate::AggregateState;
use crate::operator::cte::{CteScanState, WithState};
use crate::operator::join::NestLoopState;
use crate::operator::join::hash_join::HashJoinState;
use crate::operator::join::merge_join::MergeJoinState;
use crate::operator::lock_rows::LockState;
use crate::operator::row_by_row::{
    FilterState, LimitState, ProjectSetState, ProjectState, ValuesScanState,
};
use crate::operator::scan::{FunctionScanState, IndexScanState, SeqScanState, VirtualScanState};
use crate::operator::setop::{DistinctOnState, DistinctState, SetOpState};
use crate::operator::sort::SortState;
use crate::operator::tid_scan::TidScanState;
use crate::operator::window::WindowState;
use crate::operator::write::{InsertState, MergeState, ModifyTableState};
use logstead_sql_plan::instrumentation::{NodeDetail, NodeStats};
use logstead_sql_plan::{Delete, Node, Plan, Update};
use logstead_sql_types::error::{Result, SqlError};

/// Pulls a batch: `true` if there is one, `false` at the end; hands every other step to the caller's caller.
macro_rules! pull {
    ($running:expr, $plan:expr, $cx:expr, $batch:expr) => {
        match $running.next($plan, $cx, $batch)? {
            $crate::batch::Step::Batch => true,
            $crate::batch::Step::Done => false,
            other => return Ok(other),
        }
    };
}
pub(crate) use pull;

/// A node being run.
pub(crate) struct PlanState {
    op: OperatorState,
    stats: NodeStats,
    /// What the row behind those given last came to.
    failed: Option<SqlError>,
}

enum OperatorState {
    /// OneRow: has it been given?
    OneRow(bool),
    Values(ValuesScanState),
    Seq(Box<SeqScanState>),
    Row(Box<TidScanState>),
    Index(Box<IndexScanState>),
    System(Box<VirtualScanState>),
    Function(Box<FunctionScanState>),
    Routine(Box<RoutineState>),
    ProjectSet(Box<ProjectSetState>),
    Filter(Box<FilterState>),
    Project(Box<ProjectState>),
    NestLoop(Box<NestLoopState>),
    HashJoin(Box<HashJoinState>),
    MergeJoin(Box<MergeJoinState>),
    Aggregate(Box<AggregateState>),
    Sort(Box<SortState>),
    Window(Box<WindowState>),
    Limit(Box<LimitState>),
    Distinct(Box<DistinctState>),
    DistinctOn(Box<DistinctOnState>),
    Set(Box<SetOpState>),
    With(Box<WithState>),
    Cte(CteScanState),
    Lock(Box<LockState>),
    Insert(Box<InsertState>),
    Update(Box<ModifyTableState<Update>>),
    Delete(Box<ModifyTableState<Delete>>),
    Merge(Box<MergeState>),
}

impl PlanState {
    /// The state of a plan about to run.
    pub(crate) fn new(plan: &Plan) -> PlanState {
        let op = match &plan.node {
            Node::OneRow => OperatorState::OneRow(false),
            Node::Values(_) => OperatorState::Values(ValuesScanState::default()),
            Node::SeqScan(scan) => OperatorState::Seq(Box::new(SeqScanState::new(scan))),
            Node::RowScan { scan, .. } => OperatorState::Row(Box::new(TidScanState::new(scan))),
            Node::IndexScan { scan, .. } => {
                OperatorState::Index(Box::new(IndexScanState::new(scan)))
            }
            Node::VirtualScan { .. } => OperatorState::System(Box::default()),
            Node::FunctionScan { .. } => OperatorState::Function(Box::default()),
            Node::RoutineScan { .. } => OperatorState::Routine(Box::default()),
            Node::ProjectSet { input, .. } => {
                OperatorState::ProjectSet(Box::new(ProjectSetState::new(input)))
            }
            Node::Filter { input, .. } => OperatorState::Filter(Box::new(FilterState::new(input))),
            Node::Project { input, .. } => {
                OperatorState::Project(Box::new(ProjectState::new(input)))
            }
            Node::NestedLoop { left, right, .. } => {
                OperatorState::NestLoop(Box::new(NestLoopState::new(left, right)))
            }
            Node::HashJoin { left, right, .. } => {
                OperatorState::HashJoin(Box::new(HashJoinState::new(left, right)))
            }
            Node::MergeJoin { left, right, .. } => {
                OperatorState::MergeJoin(Box::new(MergeJoinState::new(left, right)))
            }
            Node::Aggregate { input, .. } => {
                OperatorState::Aggregate(Box::new(AggregateState::new(input)))
            }
            Node::Sort { input, .. } => OperatorState::Sort(Box::new(SortState::new(input))),
            Node::Window { input, window } => {
                OperatorState::Window(Box::new(WindowState::new(input, window)))
            }
            Node::Limit { input, .. } => OperatorState::Limit(Box::new(LimitState::new(input))),
            Node::Distinct(input) => OperatorState::Distinct(Box::new(DistinctState::new(input))),
            Node::DistinctOn { input, .. } => {
                OperatorState::DistinctOn(Box::new(DistinctOnState::new(input)))
            }
            Node::SetOp { left, right, .. } => {
                OperatorState::Set(Box::new(SetOpState::new(left, right)))
            }
            Node::With { body, .. } => OperatorState::With(Box::new(WithState::new(body))),
            Node::CteScan { .. } => OperatorState::Cte(CteScanState::default()),
            Node::LockRows { input, .. } => OperatorState::Lock(Box::new(LockState::new(input))),
            Node::Insert(insert) => OperatorState::Insert(Box::new(InsertState::new(insert))),
            Node::Update(update) => OperatorState::Update(Box::new(ModifyTableState::new(update))),
            Node::Delete(delete) => OperatorState::Delete(Box::new(ModifyTableState::new(delete))),
            Node::Merge(merge) => OperatorState::Merge(Box::new(MergeState::new(merge))),
        };
        PlanState {
            op,
            stats: NodeStats::default(),
            failed: None,
        }
    }

    /// Fills `out` with the next rows.
    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        if let Some(error) = self.failed.take() {
            out.start(0);
            return Err(error);
        }
        if !cx.measure {
            let step = self.step(plan, cx, out);
            return match step {
                Ok(step) => Ok(step),
                Err(error) => self.fail(error, cx, out),
            };
        }
        let start_us = cx.session.clock_time()?;
        let step = match self.step(plan, cx, out) {
            Ok(step) => step,
            Err(error) => self.fail(error, cx, out)?,
        };
        self.stats.loops = self.stats.loops.max(1);
        self.stats.time_us += u64::try_from(cx.session.clock_time()? - start_us).unwrap_or(0);
        self.stats.rows += out.len() as u64;
        Ok(step)
    }

    /// Gives the rows before an error, if there are any, and keeps the error for the next call.
    #[cold]
    fn fail(&mut self, error: SqlError, cx: &ExecutorContext<'_>, out: &mut Batch) -> Result<Step> {
        out.abandon_row();
        // Nothing is said of a statement that is asked to end.
        if cx.is_cancelled() || out.is_empty() || !self.adds_whole_rows() {
            out.start(0);
            return Err(error);
        }
        self.failed = Some(error);
        Ok(Step::Batch)
    }

    /// Are the rows in its batch good whenever it fails, all of them, in their order? Others join, sort or write, or
    /// pass on what an operator below has put there.
    fn adds_whole_rows(&self) -> bool {
        matches!(
            self.op,
            OperatorState::Values(_)
                | OperatorState::Seq(_)
                | OperatorState::Index(_)
                | OperatorState::Function(_)
                | OperatorState::Routine(_)
                | OperatorState::ProjectSet(_)
                | OperatorState::Filter(_)
                | OperatorState::Project(_)
        )
    }

    fn step<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        match (&mut self.op, &plan.node) {
            (OperatorState::OneRow(given), Node::OneRow) => {
                out.start(0);
                if std::mem::replace(given, true) {
                    return Ok(Step::Done);
                }
                out.end_row();
                Ok(Step::Batch)
            }
            (OperatorState::Values(state), Node::Values(rows)) => {
                state.next(rows, plan.columns.len(), cx, out)
            }
            (OperatorState::Seq(state), Node::SeqScan(scan)) => state.next(scan, cx, out),
            (OperatorState::Row(state), Node::RowScan { scan, cursor }) => {
                state.next(scan, cursor, cx, out)
            }
            (
                OperatorState::Index(state),
                Node::IndexScan {
                    scan,
                    index,
                    range,
                    reverse,
                },
            ) => state.next(scan, index, range, *reverse, cx, out),
            (
                OperatorState::System(state),
                Node::VirtualScan {
                    table,
                    columns,
                    filter,
                    ..
                },
            ) => state.next(table, columns, filter.as_ref(), cx, out),
            (
                OperatorState::Function(state),
                Node::FunctionScan {
                    function,
                    args,
                    ordinality,
                    ..
                },
            ) => state.next(function, args, *ordinality, plan.columns.len(), cx, out),
            (OperatorState::Routine(state), Node::RoutineScan { callee, args, .. }) => {
                state.next(callee, args, plan.columns.len(), cx, out)
            }
            (OperatorState::ProjectSet(state), Node::ProjectSet { input, exprs }) => {
                state.next(input, exprs, cx, out)
            }
            (OperatorState::Filter(state), Node::Filter { input, condition }) => {
                state.next(input, condition, cx, out)
            }
            (OperatorState::Project(state), Node::Project { input, exprs }) => {
                state.next(input, exprs, cx, out)
            }
            (OperatorState::NestLoop(state), Node::NestedLoop { .. }) => state.next(plan, cx, out),
            (OperatorState::HashJoin(state), Node::HashJoin { .. }) => state.next(plan, cx, out),
            (OperatorState::MergeJoin(state), Node::MergeJoin { .. }) => state.next(plan, cx, out),
            (
                OperatorState::Aggregate(state),
                Node::Aggregate {
                    input,
                    keys,
                    aggregates,
                    sets,
                },
            ) => state.next(input, keys, aggregates, sets.as_deref(), cx, out),
            (OperatorState::Sort(state), Node::Sort { input, keys }) => {
                state.next(input, keys, cx, out)
            }
            (OperatorState::Window(state), Node::Window { input, window }) => {
                state.next(input, window, cx, out)
            }
            (
                OperatorState::Limit(state),
                Node::Limit {
                    input,
                    limit,
                    offset,
                    ties,
                },
            ) => state.next(input, (limit.as_ref(), offset.as_ref()), ties, cx, out),
            (OperatorState::Distinct(state), Node::Distinct(input)) => state.next(input, cx, out),
            (OperatorState::DistinctOn(state), Node::DistinctOn { input, keys }) => {
                state.next(input, keys, cx, out)
            }
            (
                OperatorState::Set(state),
                Node::SetOp {
                    kind,
                    all,
                    left,
                    right,
                },
            ) => state.next(*kind, *all, left, right, cx, out),
            (OperatorState::With(state), Node::With { slot, body, .. }) => {
                state.next(*slot, &plan.node, body, cx, out)
            }
            (OperatorState::Cte(state), Node::CteScan { slot, .. }) => {
                state.next(*slot, plan.columns.len(), cx, out)
            }
            (
                OperatorState::Lock(state),
                Node::LockRows {
                    input,
                    targets,
                    recheck,
                },
            ) => state.next(input, targets, recheck, cx, out),
            (OperatorState::Insert(state), Node::Insert(insert)) => state.next(insert, cx, out),
            (OperatorState::Update(state), Node::Update(update)) => state.next(update, cx, out),
            (OperatorState::Delete(state), Node::Delete(delete)) => state.next(delete, cx, out),
            (OperatorState::Merge(state), Node::Merge(merge)) => state.next(merge, cx, out),
            _ => Err(SqlError::internal(
                "an operator was given another node's plan",
            )),
        }
    }

    /// Makes it start over, for the next row of an enclosing loop. Operators on the path of index joins keep their
    /// buffers.
    pub(crate) fn rewind(&mut self, plan: &Plan, cx: &mut ExecutorContext<'_>) {
        self.stats.loops = self.stats.loops.max(1) + 1;
        self.failed = None;
        match (&mut self.op, &plan.node) {
            (OperatorState::OneRow(given), _) => *given = false,
            (OperatorState::Values(state), _) => *state = ValuesScanState::default(),
            (OperatorState::Seq(state), _) => state.rewind(),
            (OperatorState::Row(state), _) => state.rewind(),
            (OperatorState::Index(state), _) => state.rewind(),
            (OperatorState::System(state), _) => state.rewind(),
            (OperatorState::Function(state), _) => **state = FunctionScanState::default(),
            (OperatorState::Routine(state), _) => **state = RoutineState::default(),
            (OperatorState::Filter(state), Node::Filter { input, .. }) => state.rewind(input, cx),
            (OperatorState::Project(state), Node::Project { input, .. }) => state.rewind(input, cx),
            (OperatorState::ProjectSet(state), Node::ProjectSet { input, .. }) => {
                state.rewind(input, cx)
            }
            (OperatorState::Limit(state), Node::Limit { input, .. }) => state.rewind(input, cx),
            (
                OperatorState::NestLoop(state),
                Node::NestedLoop {
                    left,
                    right,
                    lateral,
                    ..
                },
            ) => state.rewind(left, right, *lateral, cx),
            (
                OperatorState::HashJoin(state),
                Node::HashJoin {
                    left,
                    right,
                    right_keys,
                    ..
                },
            ) => state.rewind(left, right, right_keys, cx),
            (OperatorState::MergeJoin(state), Node::MergeJoin { left, right, .. }) => {
                state.rewind(left, right, cx)
            }
            (OperatorState::Aggregate(state), Node::Aggregate { input, .. }) => {
                state.rewind(input, cx)
            }
            (OperatorState::Sort(state), Node::Sort { input, .. }) => state.rewind(input, cx),
            (OperatorState::Window(state), Node::Window { input, window }) => {
                state.rewind(input, window, cx)
            }
            (OperatorState::Distinct(state), Node::Distinct(input)) => state.rewind(input, cx),
            (OperatorState::DistinctOn(state), Node::DistinctOn { input, .. }) => {
                state.rewind(input, cx)
            }
            (OperatorState::Set(state), Node::SetOp { left, right, .. }) => {
                state.rewind(left, right, cx)
            }
            (OperatorState::With(state), Node::With { slot, body, .. }) => {
                state.rewind(*slot, body, cx)
            }
            (OperatorState::Cte(state), _) => *state = CteScanState::default(),
            (OperatorState::Lock(state), Node::LockRows { input, .. }) => state.rewind(input, cx),
            // Writes stand at the top of a plan: nothing above them loops.
            _ => {}
        }
    }

    /// Tells a sort below that only its first `rows` rows are wanted.
    pub(crate) fn bound(&mut self, rows: usize) {
        match &mut self.op {
            OperatorState::Sort(state) => state.bound(rows),
            OperatorState::Project(state) => state.input.bound(rows),
            _ => {}
        }
    }

    /// Adds the statistics of this node and those below, in the order of
    /// [`logstead_sql_plan::instrumentation::children`].
    pub(crate) fn collect_stats(
        &self,
        plan: &Plan,
        cx_ctes: &[Option<Box<CteState>>],
        out: &mut Vec<NodeStats>,
    ) {
        out.push(NodeStats {
            detail: match &self.op {
                OperatorState::Sort(state) => state.detail(),
                OperatorState::HashJoin(state) => state.detail(),
                OperatorState::Distinct(state) => state.detail(),
                OperatorState::Set(state) => state.detail(),
                OperatorState::Aggregate(state) => match &plan.node {
                    Node::Aggregate { keys, .. } => state.detail(keys),
                    _ => NodeDetail::None,
                },
                _ => NodeDetail::None,
            },
            ..self.stats
        });
        let (first, second) = match &self.op {
            OperatorState::ProjectSet(state) => (Some(&state.input), None),
            OperatorState::Filter(state) => (Some(&state.input), None),
            OperatorState::Project(state) => (Some(&state.input), None),
            OperatorState::NestLoop(state) => (Some(&state.left), Some(&state.right)),
            OperatorState::HashJoin(state) => (Some(&state.left), Some(&state.right)),
            OperatorState::MergeJoin(state) => {
                let (left, right) = state.inputs();
                (Some(left), Some(right))
            }
            OperatorState::Aggregate(state) => (Some(&state.input), None),
            OperatorState::Sort(state) => (Some(&state.input), None),
            OperatorState::Window(state) => (Some(&state.input), None),
            OperatorState::Limit(state) => (Some(&state.input), None),
            OperatorState::Distinct(state) => (Some(&state.input), None),
            OperatorState::DistinctOn(state) => (Some(&state.input), None),
            OperatorState::Set(state) => (Some(&state.left), Some(&state.right)),
            OperatorState::Lock(state) => (Some(&state.input), None),
            OperatorState::Insert(state) => (Some(&state.source), None),
            OperatorState::Update(state) => (Some(&state.source), None),
            OperatorState::Delete(state) => (Some(&state.source), None),
            OperatorState::Merge(state) => (Some(&state.source), None),
            OperatorState::With(state) => {
                if let Node::With {
                    slot,
                    definition,
                    recursive,
                    body,
                    ..
                } = &plan.node
                {
                    let cte = cx_ctes.get(*slot).and_then(Option::as_deref);
                    crate::operator::cte::collect_stats(
                        cte,
                        definition,
                        recursive.as_ref().map(|(plan, _)| &**plan),
                        cx_ctes,
                        out,
                    );
                    state.body.collect_stats(body, cx_ctes, out);
                }
                (None, None)
            }
            _ => (None, None),
        };
        for (running, plan) in first
            .into_iter()
            .chain(second)
            .zip(logstead_sql_plan::instrumentation::children(plan))
        {
            running.collect_stats(plan, cx_ctes, out);
        }
    }
}
