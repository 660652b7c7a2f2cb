//! Window functions, over rows sorted by partition and order.
//!
//! Rows are kept from the first that a call may still look at, and a row is given as soon as everything that its calls
//! look at has come: a running number or sum streams, what needs the whole partition waits for its end.
//!
//! Invariants: what a row costs is counted, and after some work the operator yields, keeping what is computed of the
//! row; partition and order are columns of the input, and nothing that it evaluates can have to wait, but the frame's
//! offsets, which are evaluated once before the first row.

mod aggregate;
mod frame;
mod partition;

use crate::batch::Batch;
use crate::batch::Step;
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::eval_in;
use crate::operator::{PlanState, pull};
use crate::operator_memory::OperatorMemory;
use crate::wait::EvalError;
use crate::wait::WaitReason;
use aggregate::MovingAggregate;
use frame::{Frames, Lookahead};
use logstead_sql_func::WindowKind;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{FrameBound, Plan, Window, WindowCall, WindowFunction};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::Datum;
use logstead_types::SqlState;
use partition::{Partition, WindowKeys};

/// Rows that calls look at between two yields.
const WORK_MAX: usize = 4096;

/// State of a window.
pub(crate) struct WindowState {
    pub(crate) input: PlanState,
    batch: Batch,
    /// The next row of the batch to be taken.
    next: usize,
    /// The input has ended.
    ended: bool,
    keys: WindowKeys,
    frames: Option<Frames>,
    offsets: ResumableEvaluation,
    lookahead: Lookahead,
    rows: Partition,
    /// The next row to be given, and its group of peers.
    at: usize,
    group: usize,
    calls: Vec<WindowCallState>,
    /// What calls gave for row `at` before the work was used up.
    given: Vec<Datum>,
    /// What a call of the row waits for.
    waits: Option<WaitReason>,
    held: OperatorMemory,
}

/// State of a call.
enum WindowCallState {
    Own,
    Ntile(Option<Ntile>),
    Aggregate(Box<MovingAggregate>),
}

/// Where ntile is.
struct Ntile {
    bucket: i32,
    /// Rows of this bucket so far, and in all.
    rows: i64,
    boundary: i64,
    /// Buckets that have a row more.
    remainder: i64,
}

impl WindowState {
    pub(crate) fn new(input: &Plan, window: &Window) -> WindowState {
        WindowState {
            input: PlanState::new(input),
            batch: Batch::default(),
            next: 0,
            ended: false,
            keys: WindowKeys::of(window),
            frames: None,
            offsets: ResumableEvaluation::default(),
            lookahead: Lookahead::PARTITION,
            rows: Partition::default(),
            at: 0,
            group: 0,
            calls: Vec::new(),
            given: Vec::new(),
            waits: None,
            held: OperatorMemory::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        window: &'a Window,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(0);
        if self.frames.is_none() {
            let ends = [&window.frame.start, &window.frame.end];
            let offsets = ends.into_iter().filter_map(FrameBound::offset);
            let keys = &self.keys;
            let frames = self
                .offsets
                .of(offsets, cx, |cx| Frames::new(window, keys, cx))?;
            match frames {
                Ok(frames) => {
                    self.lookahead = lookahead(window, &frames);
                    self.frames = Some(frames);
                }
                Err(absent) => return Ok(Step::Wait(absent)),
            }
            self.open(window);
        }
        loop {
            if self.is_ready(self.at) {
                return self.give(window, cx, out);
            }
            if self.rows.complete {
                if self.ended {
                    return Ok(Step::Done);
                }
                self.rows.clear();
                (self.at, self.group) = (0, 0);
                self.open(window);
            }
            while self.next < self.batch.len()
                && self.rows.push(self.batch.row(self.next), &self.keys)?
            {
                self.next += 1;
            }
            if self.next < self.batch.len() {
                continue;
            }
            self.account(cx)?;
            if self.ended {
                self.rows.complete = true;
                continue;
            }
            if self.is_ready(self.at) {
                continue;
            }
            self.rows.make_room(cx.work_mem_bytes, || cx.spill());
            if let Some(obstacle) = self.rows.behind()? {
                return Ok(Step::Wait(obstacle));
            }
            self.batch.start(0);
            self.next = 0;
            if !pull!(self.input, input, cx, &mut self.batch) {
                self.ended = true;
            }
        }
    }

    /// Starts the calls on a partition.
    fn open(&mut self, window: &Window) {
        self.calls.clear();
        for call in &window.calls {
            self.calls.push(match call.function {
                WindowFunction::Own(own) if own.kind == WindowKind::Ntile => {
                    WindowCallState::Ntile(None)
                }
                WindowFunction::Own(_) => WindowCallState::Own,
                WindowFunction::Aggregate(aggregate) => {
                    let moves = !matches!(window.frame.start, FrameBound::Unbounded);
                    WindowCallState::Aggregate(Box::new(MovingAggregate::new(
                        aggregate, call, moves,
                    )))
                }
            });
        }
        if let Some(frames) = &mut self.frames {
            frames.restart();
        }
    }

    /// Whether everything that row `at` looks at is there.
    fn is_ready(&self, at: usize) -> bool {
        if at >= self.rows.len() {
            return false;
        }
        let Lookahead {
            rows,
            peers,
            partition,
        } = self.lookahead;
        let has_rows = self.rows.len() - at > rows;
        let has_peers = || !peers || self.rows.group_start(self.rows.groups() - 1) > at;
        self.rows.complete || !partition && has_rows && has_peers()
    }

    /// Fails when too much is held.
    fn account(&mut self, cx: &ExecutorContext<'_>) -> Result<()> {
        let states = self.calls.iter().map(|call| match call {
            WindowCallState::Aggregate(moving) => moving.size_bytes(),
            WindowCallState::Own | WindowCallState::Ntile(_) => 0,
        });
        let held_bytes = self.rows.size_bytes() + states.sum::<usize>();
        cx.check_memory("A window", held_bytes)?;
        self.held.set(held_bytes, cx.memory())
    }

    /// Gives rows that are ready, until there are enough or enough was done.
    fn give<'a>(
        &mut self,
        window: &'a Window,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        out.start(self.rows.width() + window.calls.len());
        let mut work = WORK_MAX;
        while !out.is_full() && self.is_ready(self.at) {
            // Only now: whether the last row known is the last of its peers was not known before the next came.
            while self.group + 1 < self.rows.groups()
                && self.rows.group_start(self.group + 1) <= self.at
            {
                self.group += 1;
            }
            // However it ends, the row goes on where it stands.
            match self.compute(window, &mut work, cx) {
                Ok(true) => {}
                Ok(false) if self.waits.is_some() => match self.waits.take() {
                    Some(obstacle) if out.is_empty() => return Ok(Step::Wait(obstacle)),
                    // It is met again with the next batch.
                    _ => break,
                },
                Ok(false) => {
                    cx.yield_pending = true;
                    break;
                }
                Err(error) => {
                    let Some(missed) = self.rows.take_missed() else {
                        return Err(error);
                    };
                    work = work.saturating_sub(1);
                    match self.rows.bring(missed)? {
                        None => continue,
                        Some(obstacle) if out.is_empty() => {
                            return Ok(Step::Wait(obstacle));
                        }
                        // It is met again with the next batch.
                        Some(_) => break,
                    }
                }
            }
            for datum in self.rows.row(self.at)? {
                out.push(datum.clone());
            }
            for datum in self.given.drain(..) {
                out.push(datum);
            }
            out.end_row();
            self.at += 1;
            work = work.saturating_sub(1);
        }
        cx.worked(WORK_MAX - work);
        self.trim(window);
        self.account(cx)?;
        Ok(match out.is_empty() {
            false => Step::Batch,
            true => {
                cx.take_pending_yield();
                Step::Yield
            }
        })
    }

    /// What the calls give for row `at`, into `given`; false when `work` is used up first, or when a call `waits`.
    fn compute<'a>(
        &mut self,
        window: &'a Window,
        work: &mut usize,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<bool> {
        let Some(frames) = &mut self.frames else {
            return Err(SqlError::internal("a window without frames"));
        };
        let (at, group, rows) = (self.at, self.group, &self.rows);
        let frame = match window.calls.iter().any(uses_frame) {
            true => frames.of(at, group, rows, cx)?,
            false => (0, 0),
        };
        let calls = window.calls.iter().zip(&mut self.calls);
        for (call, state) in calls.skip(self.given.len()) {
            let value = match (call.function, state) {
                (WindowFunction::Aggregate(aggregate), WindowCallState::Aggregate(moving)) => {
                    let value = if frames.excludes() {
                        let runs = frames.runs(frame, at, group, rows);
                        moving.over_runs(aggregate, call, &runs, rows, work, cx)?
                    } else {
                        moving.over(aggregate, call, frame, rows, work, cx)?
                    };
                    match value {
                        Ok(Some(value)) => value,
                        Ok(None) => return Ok(false),
                        Err(obstacle) => {
                            self.waits = Some(obstacle);
                            return Ok(false);
                        }
                    }
                }
                (WindowFunction::Own(own), state) => {
                    own_value(own.kind, call, state, frames, frame, (at, group), rows, cx)?
                }
                _ => return Err(SqlError::internal("a call was given another call's state")),
            };
            self.given.push(value);
        }
        // The row itself is given, too.
        rows.row(at)?;
        Ok(true)
    }

    /// Drops rows that nothing looks at any more.
    fn trim(&mut self, window: &Window) {
        let Some(frames) = &self.frames else { return };
        let mut first = self.at;
        for (call, state) in window.calls.iter().zip(&self.calls) {
            let needed = match (call.function, state) {
                // What only grows needs nothing of what it has.
                (_, WindowCallState::Aggregate(_))
                    if frames.starts_unbounded() && !frames.excludes() =>
                {
                    self.at
                }
                (_, WindowCallState::Aggregate(moving)) => {
                    moving.first_needed().min(frames.first_needed())
                }
                (WindowFunction::Own(own), _) => match own.kind {
                    WindowKind::Lag | WindowKind::Lead => match distance(call, own.kind) {
                        Some(rows) if rows < 0 => self
                            .at
                            .saturating_sub(usize::try_from(-rows).unwrap_or(usize::MAX)),
                        Some(_) => self.at,
                        None => 0,
                    },
                    kind if kind.uses_frame() => frames.first_needed(),
                    _ => self.at,
                },
                _ => 0,
            };
            first = first.min(needed);
        }
        // A growing aggregate may be behind the row; its frame never is.
        if let Some(upto) = self.calls.iter().filter_map(WindowCallState::upto).min() {
            first = first.min(upto);
        }
        self.rows.drop_before(first);
    }

    pub(crate) fn rewind(&mut self, input: &Plan, window: &Window, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.next = 0;
        self.ended = false;
        self.frames = None;
        self.offsets.reset();
        self.rows.clear();
        (self.at, self.group) = (0, 0);
        self.given.clear();
        self.open(window);
    }
}

impl WindowCallState {
    /// The first row that an aggregate has not looked at.
    fn upto(&self) -> Option<usize> {
        match self {
            WindowCallState::Aggregate(moving) => Some(moving.upto()),
            WindowCallState::Own | WindowCallState::Ntile(_) => None,
        }
    }
}

fn uses_frame(call: &WindowCall) -> bool {
    match call.function {
        WindowFunction::Own(own) => own.kind.uses_frame(),
        WindowFunction::Aggregate(_) => true,
    }
}

/// What has to be known for all calls.
fn lookahead(window: &Window, frames: &Frames) -> Lookahead {
    let one = |call: &WindowCall| match call.function {
        WindowFunction::Aggregate(_) => frames.lookahead(),
        WindowFunction::Own(own) => match own.kind {
            WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => {
                Lookahead::default()
            }
            WindowKind::PercentRank | WindowKind::CumeDist | WindowKind::Ntile => {
                Lookahead::PARTITION
            }
            WindowKind::Lag | WindowKind::Lead => {
                distance(call, own.kind).map_or(Lookahead::PARTITION, Lookahead::rows)
            }
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                frames.lookahead()
            }
        },
    };
    window
        .calls
        .iter()
        .map(one)
        .fold(Lookahead::default(), Lookahead::and)
}

/// How many rows after its own a call of lag or lead looks at, if that is the same for all rows.
fn distance(call: &WindowCall, kind: WindowKind) -> Option<i64> {
    let rows = match call.args.get(1) {
        None => 1,
        Some(Expr::Const(Datum::Int4(rows), _)) => i64::from(*rows),
        Some(Expr::Const(Datum::Null, _)) => 0,
        Some(_) => return None,
    };
    Some(if kind == WindowKind::Lag { -rows } else { rows })
}

/// What a function of windows gives for row `at`, of group `group`.
#[allow(
    clippy::too_many_arguments,
    reason = "all that a row's value may depend on"
)]
fn own_value<'a>(
    kind: WindowKind,
    call: &'a WindowCall,
    state: &mut WindowCallState,
    frames: &Frames,
    frame: (usize, usize),
    (at, group): (usize, usize),
    rows: &Partition,
    cx: &mut ExecutorContext<'a>,
) -> Result<Datum> {
    let int8 = |n: usize| Datum::Int8(i64::try_from(n).unwrap_or(i64::MAX));
    let ratio = |a: usize, b: usize| Datum::Float8(a as f64 / b as f64);
    Ok(match kind {
        WindowKind::RowNumber => int8(at + 1),
        WindowKind::Rank => int8(rows.group_start(group) + 1),
        WindowKind::DenseRank => int8(group + 1),
        WindowKind::PercentRank if rows.len() <= 1 => Datum::Float8(0.0),
        WindowKind::PercentRank => ratio(rows.group_start(group), rows.len() - 1),
        WindowKind::CumeDist => ratio(rows.group_start(group + 1), rows.len()),
        WindowKind::Ntile => {
            let WindowCallState::Ntile(state) = state else {
                return Err(SqlError::internal("ntile without its state"));
            };
            let state = match state {
                Some(state) => state,
                None => {
                    let buckets = arg(call, 0, rows.row(at)?, cx)?;
                    if buckets.is_null() {
                        return Ok(Datum::Null);
                    }
                    state.insert(Ntile::new(buckets.as_i32()?, rows.len())?)
                }
            };
            Datum::Int4(state.next())
        }
        WindowKind::Lag | WindowKind::Lead => {
            let row = rows.row(at)?;
            let by = match call.args.len() {
                1 => 1,
                _ => match arg(call, 1, row, cx)? {
                    Datum::Null => return Ok(Datum::Null),
                    by => i64::from(by.as_i32()?),
                },
            };
            let by = if kind == WindowKind::Lag { -by } else { by };
            let there = i64::try_from(at).ok().and_then(|at| at.checked_add(by));
            let there = there.and_then(|there| usize::try_from(there).ok());
            match there.filter(|there| *there < rows.len()) {
                Some(there) => arg(call, 0, rows.row(there)?, cx)?,
                None if call.args.len() > 2 => arg(call, 2, row, cx)?,
                None => Datum::Null,
            }
        }
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            let runs = frames.runs(frame, at, group, rows);
            let found = match kind {
                WindowKind::FirstValue => runs.first().map(|(from, _)| *from),
                WindowKind::LastValue => runs.last().map(|(_, to)| to - 1),
                _ => {
                    let n = match arg(call, 1, rows.row(at)?, cx)? {
                        Datum::Null => return Ok(Datum::Null),
                        n => n.as_i32()?,
                    };
                    if n <= 0 {
                        return Err(SqlError::new(
                            SqlState::INVALID_ARGUMENT_FOR_NTH_VALUE,
                            "argument of nth_value must be greater than zero",
                        ));
                    }
                    let mut left = usize::try_from(n).unwrap_or(usize::MAX) - 1;
                    let mut found = None;
                    for (from, to) in runs {
                        if left < to - from {
                            found = Some(from + left);
                            break;
                        }
                        left -= to - from;
                    }
                    found
                }
            };
            match found {
                Some(found) => arg(call, 0, rows.row(found)?, cx)?,
                None => Datum::Null,
            }
        }
    })
}

/// An argument of a call on a row.
fn arg<'a>(
    call: &'a WindowCall,
    i: usize,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Result<Datum> {
    match call.args.get(i) {
        Some(arg) => eval_in(arg, row, cx).map_err(EvalError::unsuspended),
        None => Err(SqlError::internal("a window function without its argument")),
    }
}

impl Ntile {
    fn new(buckets: i32, rows: usize) -> Result<Ntile> {
        if buckets <= 0 {
            return Err(SqlError::new(
                SqlState::INVALID_ARGUMENT_FOR_NTILE,
                "argument of ntile must be greater than zero",
            ));
        }
        let (rows, buckets) = (i64::try_from(rows).unwrap_or(i64::MAX), i64::from(buckets));
        let (boundary, remainder) = match rows / buckets {
            0 => (1, 0),
            each => (each + i64::from(rows % buckets != 0), rows % buckets),
        };
        Ok(Ntile {
            bucket: 1,
            rows: 0,
            boundary,
            remainder,
        })
    }

    /// The bucket of the next row.
    fn next(&mut self) -> i32 {
        self.rows += 1;
        if self.boundary < self.rows {
            // The buckets with a row more come first.
            if self.remainder != 0 && i64::from(self.bucket) == self.remainder {
                self.remainder = 0;
                self.boundary -= 1;
            }
            self.bucket += 1;
            self.rows = 1;
        }
        self.bucket
    }
}
