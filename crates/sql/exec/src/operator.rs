//! The running form of a plan: one `Running` per node, holding that node's state.
//!
//! The plan is shared and never changes; state lives beside it in a tree of the same shape, and every call hands both
//! in. Operators are pulled: [`Running::next`] fills a batch. All of it is plain synchronous code: what would have to
//! wait says so (`Step::Yield`, `Step::Wait`) and is called again, so a blocking operator passes the step up and keeps
//! its state.
//!
//! Invariants: `next` clears `out` first; `Step::Batch` comes with at least one row, every other step, and an error,
//! with none. After `Done` it says `Done` again until `rewind`.
//!
//! Rows before an error: an operator that makes its rows one by one meets the error of a row in the middle of a batch.
//! The rows before it are given first, and the error when the next are asked for, so a client gets the rows that
//! PostgreSQL would have sent by then, and who wanted no more of them (LIMIT, EXISTS) never hears of the error.

use super::aggregate::AggregateState;
use super::batch::Batch;
use super::context::Cx;
use super::cte::{CteScanState, WithState};
use super::hash_join::HashJoinState;
use super::join::LoopState;
use super::lock::LockState;
use super::merge_join::MergeJoinState;
use super::routine::RoutineState;
use super::row_scan::RowState;
use super::scan::{FunctionState, IndexState, SeqState, SystemState};
use super::setop::{DistinctOnState, DistinctState, SetOpState};
use super::sort::SortState;
use super::stream::{FilterState, LimitState, ProjectSetState, ProjectState, ValuesState};
use super::wait::WaitReason;
use super::window::WindowState;
use super::write::{DeleteState, InsertState, MergeState, UpdateState};
use logstead_sql_plan::stats::{NodeDetail, NodeStats};
use logstead_sql_plan::{Node, Plan};
use logstead_sql_types::error::{Result, SqlError};

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

/// Pulls a batch: `true` if there is one, `false` at the end; hands every other step to the caller's caller.
macro_rules! pull {
    ($running:expr, $plan:expr, $cx:expr, $batch:expr) => {
        match $running.next($plan, $cx, $batch)? {
            $crate::operator::Step::Batch => true,
            $crate::operator::Step::Done => false,
            other => return Ok(other),
        }
    };
}
pub(crate) use pull;

/// A node being run.
pub(crate) struct Running {
    op: Op,
    stats: NodeStats,
    /// What the row behind those given last came to.
    failed: Option<SqlError>,
}

enum Op {
    /// OneRow: has it been given?
    OneRow(bool),
    Values(ValuesState),
    Seq(Box<SeqState>),
    Row(Box<RowState>),
    Index(Box<IndexState>),
    System(Box<SystemState>),
    Function(Box<FunctionState>),
    Routine(Box<RoutineState>),
    ProjectSet(Box<ProjectSetState>),
    Filter(Box<FilterState>),
    Project(Box<ProjectState>),
    Loop(Box<LoopState>),
    Hash(Box<HashJoinState>),
    Merged(Box<MergeJoinState>),
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
    Update(Box<UpdateState>),
    Delete(Box<DeleteState>),
    Merge(Box<MergeState>),
}

impl Running {
    /// The state of a plan about to run.
    pub(crate) fn new(plan: &Plan) -> Running {
        let op = match &plan.node {
            Node::OneRow => Op::OneRow(false),
            Node::Values(_) => Op::Values(ValuesState::default()),
            Node::SeqScan(scan) => Op::Seq(Box::new(SeqState::new(scan))),
            Node::RowScan { scan, .. } => Op::Row(Box::new(RowState::new(scan))),
            Node::IndexScan { scan, .. } => Op::Index(Box::new(IndexState::new(scan))),
            Node::VirtualScan { .. } => Op::System(Box::default()),
            Node::FunctionScan { .. } => Op::Function(Box::default()),
            Node::RoutineScan { .. } => Op::Routine(Box::default()),
            Node::ProjectSet { input, .. } => Op::ProjectSet(Box::new(ProjectSetState::new(input))),
            Node::Filter { input, .. } => Op::Filter(Box::new(FilterState::new(input))),
            Node::Project { input, .. } => Op::Project(Box::new(ProjectState::new(input))),
            Node::NestedLoop { left, right, .. } => Op::Loop(Box::new(LoopState::new(left, right))),
            Node::HashJoin { left, right, .. } => {
                Op::Hash(Box::new(HashJoinState::new(left, right)))
            }
            Node::MergeJoin { left, right, .. } => {
                Op::Merged(Box::new(MergeJoinState::new(left, right)))
            }
            Node::Aggregate { input, .. } => Op::Aggregate(Box::new(AggregateState::new(input))),
            Node::Sort { input, .. } => Op::Sort(Box::new(SortState::new(input))),
            Node::Window { input, window } => Op::Window(Box::new(WindowState::new(input, window))),
            Node::Limit { input, .. } => Op::Limit(Box::new(LimitState::new(input))),
            Node::Distinct(input) => Op::Distinct(Box::new(DistinctState::new(input))),
            Node::DistinctOn { input, .. } => Op::DistinctOn(Box::new(DistinctOnState::new(input))),
            Node::SetOp { left, right, .. } => Op::Set(Box::new(SetOpState::new(left, right))),
            Node::With { body, .. } => Op::With(Box::new(WithState::new(body))),
            Node::CteScan { .. } => Op::Cte(CteScanState::default()),
            Node::LockRows { input, .. } => Op::Lock(Box::new(LockState::new(input))),
            Node::Insert(insert) => Op::Insert(Box::new(InsertState::new(insert))),
            Node::Update(update) => Op::Update(Box::new(UpdateState::new(update))),
            Node::Delete(delete) => Op::Delete(Box::new(DeleteState::new(delete))),
            Node::Merge(merge) => Op::Merge(Box::new(MergeState::new(merge))),
        };
        Running {
            op,
            stats: NodeStats::default(),
            failed: None,
        }
    }

    /// Fills `out` with the next rows.
    pub(crate) fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut Cx<'a>,
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
        let start_us = cx.session.clock_time();
        let step = match self.step(plan, cx, out) {
            Ok(step) => step,
            Err(error) => self.fail(error, cx, out)?,
        };
        self.stats.loops = self.stats.loops.max(1);
        self.stats.time_us += u64::try_from(cx.session.clock_time() - start_us).unwrap_or(0);
        self.stats.rows += out.len() as u64;
        Ok(step)
    }

    /// Gives the rows before an error, if there are any, and keeps the error for the next call.
    #[cold]
    fn fail(&mut self, error: SqlError, cx: &Cx<'_>, out: &mut Batch) -> Result<Step> {
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
            Op::Values(_)
                | Op::Seq(_)
                | Op::Index(_)
                | Op::Function(_)
                | Op::Routine(_)
                | Op::ProjectSet(_)
                | Op::Filter(_)
                | Op::Project(_)
        )
    }

    fn step<'a>(&mut self, plan: &'a Plan, cx: &mut Cx<'a>, out: &mut Batch) -> Result<Step> {
        match (&mut self.op, &plan.node) {
            (Op::OneRow(given), Node::OneRow) => {
                out.start(0);
                if std::mem::replace(given, true) {
                    return Ok(Step::Done);
                }
                out.end_row();
                Ok(Step::Batch)
            }
            (Op::Values(state), Node::Values(rows)) => {
                state.next(rows, plan.columns.len(), cx, out)
            }
            (Op::Seq(state), Node::SeqScan(scan)) => state.next(scan, cx, out),
            (Op::Row(state), Node::RowScan { scan, cursor }) => state.next(scan, cursor, cx, out),
            (
                Op::Index(state),
                Node::IndexScan {
                    scan,
                    index,
                    range,
                    reverse,
                },
            ) => state.next(scan, index, range, *reverse, cx, out),
            (
                Op::System(state),
                Node::VirtualScan {
                    table,
                    columns,
                    filter,
                    ..
                },
            ) => state.next(table, columns, filter.as_ref(), cx, out),
            (
                Op::Function(state),
                Node::FunctionScan {
                    function,
                    args,
                    ordinality,
                    ..
                },
            ) => state.next(function, args, *ordinality, plan.columns.len(), cx, out),
            (Op::Routine(state), Node::RoutineScan { callee, args, .. }) => {
                state.next(callee, args, plan.columns.len(), cx, out)
            }
            (Op::ProjectSet(state), Node::ProjectSet { input, exprs }) => {
                state.next(input, exprs, cx, out)
            }
            (Op::Filter(state), Node::Filter { input, condition }) => {
                state.next(input, condition, cx, out)
            }
            (Op::Project(state), Node::Project { input, exprs }) => {
                state.next(input, exprs, cx, out)
            }
            (Op::Loop(state), Node::NestedLoop { .. }) => state.next(plan, cx, out),
            (Op::Hash(state), Node::HashJoin { .. }) => state.next(plan, cx, out),
            (Op::Merged(state), Node::MergeJoin { .. }) => state.next(plan, cx, out),
            (
                Op::Aggregate(state),
                Node::Aggregate {
                    input,
                    keys,
                    aggregates,
                    sets,
                },
            ) => state.next(input, keys, aggregates, sets.as_deref(), cx, out),
            (Op::Sort(state), Node::Sort { input, keys }) => state.next(input, keys, cx, out),
            (Op::Window(state), Node::Window { input, window }) => {
                state.next(input, window, cx, out)
            }
            (
                Op::Limit(state),
                Node::Limit {
                    input,
                    limit,
                    offset,
                    ties,
                },
            ) => state.next(input, (limit.as_ref(), offset.as_ref()), ties, cx, out),
            (Op::Distinct(state), Node::Distinct(input)) => state.next(input, cx, out),
            (Op::DistinctOn(state), Node::DistinctOn { input, keys }) => {
                state.next(input, keys, cx, out)
            }
            (
                Op::Set(state),
                Node::SetOp {
                    kind,
                    all,
                    left,
                    right,
                },
            ) => state.next(*kind, *all, left, right, cx, out),
            (Op::With(state), Node::With { slot, body, .. }) => {
                state.next(*slot, &plan.node, body, cx, out)
            }
            (Op::Cte(state), Node::CteScan { slot, .. }) => {
                state.next(*slot, plan.columns.len(), cx, out)
            }
            (
                Op::Lock(state),
                Node::LockRows {
                    input,
                    targets,
                    recheck,
                },
            ) => state.next(input, targets, recheck, cx, out),
            (Op::Insert(state), Node::Insert(insert)) => state.next(insert, cx, out),
            (Op::Update(state), Node::Update(update)) => state.next(update, cx, out),
            (Op::Delete(state), Node::Delete(delete)) => state.next(delete, cx, out),
            (Op::Merge(state), Node::Merge(merge)) => state.next(merge, cx, out),
            _ => Err(SqlError::internal(
                "an operator was given another node's plan",
            )),
        }
    }

    /// Makes it start over, for the next row of an enclosing loop. Operators on the path of index joins keep their
    /// buffers.
    pub(crate) fn rewind(&mut self, plan: &Plan, cx: &mut Cx<'_>) {
        self.stats.loops = self.stats.loops.max(1) + 1;
        self.failed = None;
        match (&mut self.op, &plan.node) {
            (Op::OneRow(given), _) => *given = false,
            (Op::Values(state), _) => *state = ValuesState::default(),
            (Op::Seq(state), _) => state.rewind(),
            (Op::Row(state), _) => state.rewind(),
            (Op::Index(state), _) => state.rewind(),
            (Op::System(state), _) => state.rewind(),
            (Op::Function(state), _) => **state = FunctionState::default(),
            (Op::Routine(state), _) => **state = RoutineState::default(),
            (Op::Filter(state), Node::Filter { input, .. }) => state.rewind(input, cx),
            (Op::Project(state), Node::Project { input, .. }) => state.rewind(input, cx),
            (Op::ProjectSet(state), Node::ProjectSet { input, .. }) => state.rewind(input, cx),
            (Op::Limit(state), Node::Limit { input, .. }) => state.rewind(input, cx),
            (
                Op::Loop(state),
                Node::NestedLoop {
                    left,
                    right,
                    lateral,
                    ..
                },
            ) => state.rewind(left, right, *lateral, cx),
            (
                Op::Hash(state),
                Node::HashJoin {
                    left,
                    right,
                    right_keys,
                    ..
                },
            ) => state.rewind(left, right, right_keys, cx),
            (Op::Merged(state), Node::MergeJoin { left, right, .. }) => {
                state.rewind(left, right, cx)
            }
            (Op::Aggregate(state), Node::Aggregate { input, .. }) => state.rewind(input, cx),
            (Op::Sort(state), Node::Sort { input, .. }) => state.rewind(input, cx),
            (Op::Window(state), Node::Window { input, window }) => state.rewind(input, window, cx),
            (Op::Distinct(state), Node::Distinct(input)) => state.rewind(input, cx),
            (Op::DistinctOn(state), Node::DistinctOn { input, .. }) => state.rewind(input, cx),
            (Op::Set(state), Node::SetOp { left, right, .. }) => state.rewind(left, right, cx),
            (Op::With(state), Node::With { slot, body, .. }) => state.rewind(*slot, body, cx),
            (Op::Cte(state), _) => *state = CteScanState::default(),
            (Op::Lock(state), Node::LockRows { input, .. }) => state.rewind(input, cx),
            // Writes stand at the top of a plan: nothing above them loops.
            _ => {}
        }
    }

    /// Tells a sort below that only its first `rows` rows are wanted.
    pub(crate) fn bound(&mut self, rows: usize) {
        match &mut self.op {
            Op::Sort(state) => state.bound(rows),
            Op::Project(state) => state.input.bound(rows),
            _ => {}
        }
    }

    /// Adds the statistics of this node and those below, in the order of [`logstead_sql_plan::stats::children`].
    pub(crate) fn collect_stats(
        &self,
        plan: &Plan,
        cx_ctes: &[Option<Box<super::cte::CteState>>],
        out: &mut Vec<NodeStats>,
    ) {
        out.push(NodeStats {
            detail: match &self.op {
                Op::Sort(state) => state.detail(),
                Op::Hash(state) => state.detail(),
                Op::Distinct(state) => state.detail(),
                Op::Set(state) => state.detail(),
                Op::Aggregate(state) => match &plan.node {
                    Node::Aggregate { keys, .. } => state.detail(keys),
                    _ => NodeDetail::None,
                },
                _ => NodeDetail::None,
            },
            ..self.stats
        });
        let (first, second) = match &self.op {
            Op::ProjectSet(state) => (Some(&state.input), None),
            Op::Filter(state) => (Some(&state.input), None),
            Op::Project(state) => (Some(&state.input), None),
            Op::Loop(state) => (Some(&state.left), Some(&state.right)),
            Op::Hash(state) => (Some(&state.left), Some(&state.right)),
            Op::Merged(state) => {
                let (left, right) = state.inputs();
                (Some(left), Some(right))
            }
            Op::Aggregate(state) => (Some(&state.input), None),
            Op::Sort(state) => (Some(&state.input), None),
            Op::Window(state) => (Some(&state.input), None),
            Op::Limit(state) => (Some(&state.input), None),
            Op::Distinct(state) => (Some(&state.input), None),
            Op::DistinctOn(state) => (Some(&state.input), None),
            Op::Set(state) => (Some(&state.left), Some(&state.right)),
            Op::Lock(state) => (Some(&state.input), None),
            Op::Insert(state) => (Some(&state.source), None),
            Op::Update(state) => (Some(&state.source), None),
            Op::Delete(state) => (Some(&state.source), None),
            Op::Merge(state) => (Some(&state.source), None),
            Op::With(state) => {
                if let Node::With {
                    slot,
                    definition,
                    recursive,
                    body,
                    ..
                } = &plan.node
                {
                    let cte = cx_ctes.get(*slot).and_then(Option::as_deref);
                    super::cte::collect_stats(
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
            .zip(logstead_sql_plan::stats::children(plan))
        {
            running.collect_stats(plan, cx_ctes, out);
        }
    }
}
