//! Operators that pass rows through one by one: VALUES, filter, projection, set-returning select lists, LIMIT.

use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch, row_size_bytes};
use crate::context::{ExecutorContext, ResumableEvaluation};
use crate::eval::{eval_in, holds};
use crate::operator::{PlanState, pull};
use crate::operator_memory::OperatorMemory;
use crate::wait::{EvalError, Evaluated};
use logstead_sql_func::{self as func, Function, FunctionImpl, Series};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Plan, walk};
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory;
use logstead_sql_types::value::{Datum, SqlType, build, info, key, oid, record};
use logstead_types::SqlState;

/// State of VALUES: the next row.
#[derive(Default)]
pub(crate) struct ValuesScanState {
    at: usize,
    evaluation: ResumableEvaluation,
}

impl ValuesScanState {
    pub(crate) fn next<'a>(
        &mut self,
        rows: &'a [Vec<Expr>],
        width: usize,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(rows.first().map_or(width, Vec::len));
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        while let Some(row) = rows.get(self.at).filter(|_| !out.is_full()) {
            let evaluate = |cx: &mut ExecutorContext<'a>| {
                for expr in row {
                    out.push(eval_in(expr, &[], cx)?);
                }
                Ok(())
            };
            let all = rows.iter().flatten();
            if let Err(absent) = self.evaluation.of(all, cx, evaluate)? {
                out.abandon_row();
                if out.is_empty() {
                    return Ok(Step::Wait(absent));
                }
                // It is met again with the next batch.
                break;
            }
            out.end_row();
            self.at += 1;
        }
        cx.worked(out.len());
        Ok(if out.is_empty() {
            Step::Done
        } else {
            Step::Batch
        })
    }
}

/// State of a filter.
pub(crate) struct FilterState {
    pub(crate) input: PlanState,
    /// Input being filtered, if the condition has a subquery: it may stop at any row.
    batch: Batch,
    at: usize,
    has_subquery: Option<bool>,
    /// Is the condition the same for all rows?
    is_one_time: Option<bool>,
    /// Then: whether it holds, once that is known.
    gate: Option<bool>,
    evaluation: ResumableEvaluation,
}

impl FilterState {
    pub(crate) fn new(input: &Plan) -> FilterState {
        FilterState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            has_subquery: None,
            is_one_time: None,
            gate: None,
            evaluation: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        condition: &'a Expr,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        if *self
            .is_one_time
            .get_or_insert_with(|| walk::is_one_time_filter(input, condition))
        {
            return self.once(input, condition, cx, out);
        }
        if *self
            .has_subquery
            .get_or_insert_with(|| walk::may_wait(condition))
        {
            return self.row_by_row(input, condition, cx, out);
        }
        loop {
            if !pull!(self.input, input, cx, out) {
                return Ok(Step::Done);
            }
            out.retain(|row| holds(condition, row, cx).map_err(EvalError::unsuspended))?;
            if !out.is_empty() {
                return Ok(Step::Batch);
            }
        }
    }

    /// Asks once, before the input is started: PostgreSQL's Result with a One-Time Filter.
    fn once<'a>(
        &mut self,
        input: &'a Plan,
        condition: &'a Expr,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let open = match self.gate {
            Some(open) => open,
            None => {
                out.start(logstead_sql_plan::instrumentation::width(input));
                if cx.take_pending_yield() {
                    return Ok(Step::Yield);
                }
                match self.evaluation.run(cx, |cx| holds(condition, &[], cx))? {
                    Ok(open) => *self.gate.insert(open),
                    Err(absent) => return Ok(Step::Wait(absent)),
                }
            }
        };
        if open && pull!(self.input, input, cx, out) {
            return Ok(Step::Batch);
        }
        Ok(Step::Done)
    }

    fn row_by_row<'a>(
        &mut self,
        input: &'a Plan,
        condition: &'a Expr,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(logstead_sql_plan::instrumentation::width(input));
        if cx.take_pending_yield() {
            return Ok(Step::Yield);
        }
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
            let row = self.batch.row(self.at);
            let holds = match self.evaluation.run(cx, |cx| holds(condition, row, cx))? {
                Ok(holds) => holds,
                Err(absent) if out.is_empty() => return Ok(Step::Wait(absent)),
                // It is met again with the next batch.
                Err(_) => return Ok(Step::Batch),
            };
            self.at += 1;
            if holds {
                out.push_row(row);
            }
            if cx.yield_pending || out.is_full() {
                let rest = cx.yield_pending && out.is_empty() && cx.take_pending_yield();
                return Ok(if rest { Step::Yield } else { Step::Batch });
            }
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.gate = None;
        self.evaluation.reset();
    }
}

/// State of a projection.
pub(crate) struct ProjectState {
    pub(crate) input: PlanState,
    batch: Batch,
    at: usize,
    evaluation: ResumableEvaluation,
}

impl ProjectState {
    pub(crate) fn new(input: &Plan) -> ProjectState {
        ProjectState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            evaluation: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        exprs: &'a [Expr],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(exprs.len());
        if cx.take_pending_yield() {
            return Ok(Step::Yield);
        }
        if self.at == self.batch.len() {
            self.at = 0;
            self.batch.start(0);
            self.batch.set_capacity(out.capacity());
            if !pull!(self.input, input, cx, &mut self.batch) {
                return Ok(Step::Done);
            }
        }
        while self.at < self.batch.len() && !cx.yield_pending && !out.is_full() {
            let row = self.batch.row(self.at);
            let evaluate = |cx: &mut ExecutorContext<'a>| {
                for expr in exprs {
                    out.push(eval_in(expr, row, cx)?);
                }
                Ok(())
            };
            if let Err(absent) = self.evaluation.of(exprs, cx, evaluate)? {
                out.abandon_row();
                if out.is_empty() {
                    return Ok(Step::Wait(absent));
                }
                // It is met again with the next batch.
                return Ok(Step::Batch);
            }
            out.end_row();
            self.at += 1;
        }
        // The input may owe a yield with its rows.
        Ok(if out.is_empty() && cx.take_pending_yield() {
            Step::Yield
        } else {
            Step::Batch
        })
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.evaluation.reset();
    }
}

/// State of a select list with set-returning functions.
pub(crate) struct ProjectSetState {
    pub(crate) input: PlanState,
    batch: Batch,
    at: usize,
    /// The current row's columns: what each expression yields.
    columns: Vec<Column>,
    /// In the middle of an input row, of which so many rows have been given.
    open: bool,
    given: usize,
    held: OperatorMemory,
    evaluation: ResumableEvaluation,
}

enum Column {
    One(Datum),
    Set(SetResult),
}

/// What a function in a place that takes sets gives.
pub(crate) enum SetResult {
    /// All rows.
    Rows(Vec<Vec<Datum>>),
    /// Rows of one column, made when they are asked for.
    Series(Series),
}

impl SetResult {
    /// Memory held, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        match self {
            SetResult::Rows(rows) => rows.iter().map(|row| 24 + row_size_bytes(row)).sum(),
            SetResult::Series(_) => 0,
        }
    }
}

impl ProjectSetState {
    pub(crate) fn new(input: &Plan) -> ProjectSetState {
        ProjectSetState {
            input: PlanState::new(input),
            batch: Batch::default(),
            at: 0,
            columns: Vec::new(),
            open: false,
            given: 0,
            held: OperatorMemory::default(),
            evaluation: ResumableEvaluation::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        exprs: &'a [Expr],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(exprs.len());
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        while !out.is_full() {
            if self.open {
                cx.worked(1);
                // Sets that are shorter go on with NULLs until the longest has ended.
                let mut more = None;
                for column in &mut self.columns {
                    let value = match column {
                        Column::One(datum) => {
                            out.push(datum.clone());
                            continue;
                        }
                        Column::Set(SetResult::Rows(rows)) => {
                            let row = rows.get_mut(self.given);
                            row.map(|row| row.first_mut().map(std::mem::take).unwrap_or_default())
                        }
                        Column::Set(SetResult::Series(series)) => series.next(cx.session)?,
                    };
                    more = Some(more.unwrap_or(false) || value.is_some());
                    out.push(value.unwrap_or_default());
                }
                // Without any set there is one row.
                if more.unwrap_or(self.given == 0) {
                    out.end_row();
                    self.given += 1;
                } else {
                    out.abandon_row();
                    self.open = false;
                }
                continue;
            }
            if self.at == self.batch.len() {
                if !out.is_empty() {
                    break;
                }
                self.at = 0;
                self.batch.start(0);
                if !pull!(self.input, input, cx, &mut self.batch) {
                    return Ok(Step::Done);
                }
            }
            let row = self.batch.row(self.at);
            let columns = &mut self.columns;
            self.given = 0;
            let evaluate = |cx: &mut ExecutorContext<'a>| {
                columns.clear();
                for expr in exprs {
                    columns.push(match expr {
                        Expr::Call { function, args, ty } if function.is_set() => {
                            let mut set = call_set(function, args, row, cx)?;
                            if let SetResult::Rows(rows) = &mut set
                                && record::is_record(ty.oid)
                                && !record_of_array(function, args)
                            {
                                for row in rows {
                                    *row = vec![record::record(std::mem::take(row))];
                                }
                            }
                            Column::Set(set)
                        }
                        _ => Column::One(eval_in(expr, row, cx)?),
                    });
                }
                Ok(())
            };
            if let Err(absent) = self.evaluation.of(exprs, cx, evaluate)? {
                if out.is_empty() {
                    return Ok(Step::Wait(absent));
                }
                // It is met again with the next batch.
                break;
            }
            let sets = self.columns.iter().map(|column| match column {
                Column::One(_) => 0,
                Column::Set(set) => set.size_bytes(),
            });
            let held_bytes = sets.sum();
            self.held.set(held_bytes, cx.memory())?;
            cx.check_memory("A set", held_bytes)?;
            self.open = true;
            self.at += 1;
        }
        Ok(match out.is_empty() {
            true => Step::Yield,
            false => Step::Batch,
        })
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.batch.start(0);
        self.at = 0;
        self.open = false;
        self.evaluation.reset();
    }
}

/// True for what takes an array of records apart: each of its rows is a record already.
fn record_of_array(function: &Function, args: &[Expr]) -> bool {
    let array = args.first().and_then(|arg| info::element_of(arg.ty().oid));
    function.result == oid::ANYELEMENT && array.is_some_and(record::is_record)
}

/// The same in FROM, where the fields of records are columns.
pub(crate) fn call_table<'a>(
    function: &'static Function,
    args: &'a [Expr],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<SetResult> {
    let mut set = call_set(function, args, &[], cx)?;
    if let SetResult::Rows(rows) = &mut set
        && record_of_array(function, args)
    {
        let array = args.first().map(Expr::ty);
        let element = array.and_then(info::element_type);
        let shape = element.and_then(record::tuple_desc_of);
        let width = shape.map_or(0, |shape| shape.len());
        for row in rows {
            *row = match row.first() {
                Some(Datum::Array(fields)) => fields.items.clone(),
                _ => vec![Datum::Null; width],
            };
        }
    }
    Ok(set)
}

/// Rows of a function in a place that takes sets; any other function gives one row.
pub(crate) fn call_set<'a>(
    function: &'static Function,
    args: &'a [Expr],
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<SetResult> {
    let mut values = Vec::with_capacity(args.len());
    for arg in args {
        values.push(eval_in(arg, row, cx)?);
    }
    let _room = match values.iter().any(build::is_large) {
        true => func::admit(function, &values)?,
        false => memory::MemoryReservation::default(),
    };
    Ok(SetResult::Rows(match function.body {
        FunctionImpl::Series(_) if function.strict && values.iter().any(Datum::is_null) => {
            Vec::new()
        }
        FunctionImpl::Series(body) => return Ok(SetResult::Series(body(&values)?)),
        FunctionImpl::Set(_) | FunctionImpl::ContextSet(_) | FunctionImpl::CatalogSet(_)
            if function.strict && values.iter().any(Datum::is_null) =>
        {
            Vec::new()
        }
        FunctionImpl::Set(body) => body(&values)?,
        FunctionImpl::ContextSet(body) => body(cx.session, &values)?,
        FunctionImpl::CatalogSet(set) => {
            let functions = cx.session.catalog_functions()?;
            functions.catalog_rows(set, &values)?
        }
        FunctionImpl::TypedSet(_) if function.strict && values.iter().any(Datum::is_null) => {
            Vec::new()
        }
        FunctionImpl::TypedSet(body) => {
            let types: Vec<SqlType> = args.iter().map(Expr::ty).collect();
            body(cx.session, &types, &values)?
        }
        FunctionImpl::Typed(body) => {
            let value = crate::eval::apply_typed(function, body, args, &values, cx)?;
            // A record's fields are the columns.
            let record = args
                .first()
                .map(Expr::ty)
                .filter(|ty| record::is_record(ty.oid));
            let shape = record.filter(|_| function.result == oid::ANYELEMENT);
            vec![match (value, shape.and_then(record::tuple_desc_of)) {
                (Datum::Array(fields), Some(_)) => fields.items.clone(),
                (Datum::Null, Some(shape)) => vec![Datum::Null; shape.len()],
                (value, _) => vec![value],
            }]
        }
        FunctionImpl::Transaction(body) if cx.storage.is_some() => {
            vec![vec![crate::eval::apply_to_transaction(function, body, cx)?]]
        }
        _ => vec![vec![crate::eval::apply(function, &values, cx)?]],
    }))
}

/// State of LIMIT / OFFSET.
pub(crate) struct LimitState {
    pub(crate) input: PlanState,
    /// Rows still to skip and to give; `None` before they are known.
    left: Option<(u64, u64)>,
    evaluation: ResumableEvaluation,
    ties: TiesState,
}

/// WITH TIES: where it stands in the input, and the keys of the last row that counts.
#[derive(Default)]
struct TiesState {
    batch: Batch,
    at: usize,
    last: Vec<u8>,
    key: Vec<u8>,
    over: bool,
    evaluation: ResumableEvaluation,
}

impl LimitState {
    pub(crate) fn new(input: &Plan) -> LimitState {
        LimitState {
            input: PlanState::new(input),
            left: None,
            evaluation: ResumableEvaluation::default(),
            ties: TiesState::default(),
        }
    }

    pub(crate) fn next<'a>(
        &mut self,
        input: &'a Plan,
        (limit, offset): (Option<&'a Expr>, Option<&'a Expr>),
        ties: &'a [Expr],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let (mut skip, mut give) = match self.left {
            Some(left) => left,
            None => {
                // PostgreSQL's order: OFFSET is computed first.
                let evaluate = |cx: &mut ExecutorContext<'a>| {
                    let skip = count(
                        offset,
                        SqlState::INVALID_ROW_COUNT_IN_OFFSET,
                        "OFFSET must not be negative",
                        cx,
                    )?;
                    let give = count(
                        limit,
                        SqlState::INVALID_ROW_COUNT_IN_LIMIT,
                        "LIMIT must not be negative",
                        cx,
                    )?;
                    Ok((skip, give))
                };
                let both = limit.into_iter().chain(offset);
                let (skip, give) = match self.evaluation.of(both, cx, evaluate)? {
                    Ok(counts) => counts,
                    Err(absent) => {
                        out.start(0);
                        return Ok(Step::Wait(absent));
                    }
                };
                let left = (skip.unwrap_or(0), give.unwrap_or(u64::MAX));
                let rows = usize::try_from(left.0.saturating_add(left.1));
                if let Ok(rows) = rows
                    && ties.is_empty()
                {
                    self.input.bound(rows);
                }
                self.ties.over = left.1 == 0;
                left
            }
        };
        if !ties.is_empty() {
            self.left = Some((skip, give));
            return self.next_tied(input, ties, cx, out);
        }
        let capacity = out.capacity();
        let step = loop {
            self.left = Some((skip, give));
            if give == 0 {
                out.start(0);
                break Step::Done;
            }
            let wanted = skip
                .saturating_add(give)
                .min(capacity.max(BATCH_ROWS) as u64);
            out.set_capacity(
                usize::try_from(wanted)
                    .unwrap_or(BATCH_ROWS)
                    .min(if skip > 0 { BATCH_ROWS } else { capacity }),
            );
            match self.input.next(input, cx, out) {
                Ok(Step::Batch) => {}
                other => {
                    out.set_capacity(capacity);
                    return other;
                }
            }
            let skipped = skip.min(out.len() as u64);
            skip -= skipped;
            out.drop_front(usize::try_from(skipped).unwrap_or(usize::MAX));
            out.truncate(usize::try_from(give).unwrap_or(usize::MAX));
            give -= out.len() as u64;
            self.left = Some((skip, give));
            if !out.is_empty() {
                break Step::Batch;
            }
        };
        out.set_capacity(capacity);
        Ok(step)
    }

    /// Rows up to the last one that counts, and those that tie with it. Once the counts are known.
    fn next_tied<'a>(
        &mut self,
        input: &'a Plan,
        ties: &'a [Expr],
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        let (mut skip, mut give) = self.left.unwrap_or_default();
        let state = &mut self.ties;
        out.start(input.columns.len());
        loop {
            self.left = Some((skip, give));
            if state.over {
                return Ok(if out.is_empty() {
                    Step::Done
                } else {
                    Step::Batch
                });
            }
            if state.at == state.batch.len() {
                if !out.is_empty() {
                    return Ok(Step::Batch);
                }
                state.at = 0;
                state.batch.start(0);
                state.batch.set_capacity(out.capacity());
                if !pull!(self.input, input, cx, &mut state.batch) {
                    state.over = true;
                }
                continue;
            }
            if skip > 0 {
                skip -= 1;
                state.at += 1;
                continue;
            }
            let row = state.batch.row(state.at);
            if give > 1 {
                give -= 1;
                out.push_row(row);
                state.at += 1;
                continue;
            }
            let key = &mut state.key;
            let evaluate = |cx: &mut ExecutorContext<'a>| {
                key.clear();
                for expr in ties {
                    let datum = eval_in(expr, row, cx)?;
                    key::encode_key(expr.ty().oid, &datum, false, false, key);
                }
                Ok(())
            };
            match state.evaluation.of(ties, cx, evaluate)? {
                Ok(()) => {}
                Err(absent) if out.is_empty() => return Ok(Step::Wait(absent)),
                // It is met again with the next batch.
                Err(_) => return Ok(Step::Batch),
            }
            if give == 1 {
                give = 0;
                state.last.clone_from(&state.key);
            } else if state.last != state.key {
                state.over = true;
                continue;
            }
            out.push_row(row);
            state.at += 1;
        }
    }

    pub(crate) fn rewind(&mut self, input: &Plan, cx: &mut ExecutorContext<'_>) {
        self.input.rewind(input, cx);
        self.left = None;
        self.evaluation.reset();
        self.ties = TiesState::default();
    }
}

fn count<'a>(
    expr: Option<&'a Expr>,
    code: SqlState,
    negative: &str,
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Option<u64>> {
    let Some(expr) = expr else { return Ok(None) };
    match eval_in(expr, &[], cx)? {
        Datum::Null => Ok(None),
        Datum::Int8(rows) => u64::try_from(rows)
            .map(Some)
            .map_err(|_| SqlError::new(code, negative).into()),
        _ => Err(SqlError::internal("a row count is not bigint").into()),
    }
}
