//! Subqueries inside expressions: scalar, EXISTS, ANY/ALL/IN, ARRAY(...).
//!
//! What a correlated one gave is kept by the values that it refers to (`memoize`).
//!
//! What refers to no enclosing row runs once per execution and is kept, IN lists in a hash table; as a rule it runs
//! before the plan, where it can yield and wait. What depends on a row runs inside the expression. An expression can
//! neither wait nor yield: what finds something absent, waits for a temporary file, or has worked for long enough gives
//! up the evaluation of the row, which is begun again after the operator has waited or others had their turn (see
//! `Evaluation`). Every operator that evaluates what may have subqueries does so in an `Evaluation`; if one did not
//! (`evaluation` 0), the worker would block until the statement is cancelled or what it needs is there.

use crate::batch::Step;
use crate::batch::{BATCH_ROWS, Batch, RowBuffer, check_memory};
use crate::context::{ExecutionState, ExecutorContext, SubPlan};
use crate::eval::{apply, as_bool, eval_in, subquery_identity, truth};
use crate::key_table::{KeyTable, row_key};
use crate::operator::PlanState;
use crate::operator::memoize::MemoizeCache;
use crate::operator_memory::OperatorMemory;
use crate::rescan_invariant::reads_cte_deep;
use crate::step;
use crate::wait::WaitReason;
use crate::wait::{EvalError, Evaluated, ExecError};
use logstead_sql_func::Function;
use logstead_sql_func::arrays::array_from_rows;
use logstead_sql_plan::expr::{Expr, Subquery, SubqueryKind};
use logstead_sql_plan::{Plan, walk};
use logstead_sql_types::TypeId;
use logstead_sql_types::error::{Result, SqlError, load_error};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::value::{Datum, key};
use logstead_types::SqlState;
use smallvec::SmallVec;
use std::collections::HashMap;
use std::sync::Arc;

/// A subquery's running plan and what is kept of its result.
pub(crate) struct SubPlanState {
    running: PlanState,
    batch: Batch,
    started: bool,
    kept: Option<SubPlanResult>,
    memo: Option<MemoizeCache>,
    /// Charges what is kept to the server's memory: as in PostgreSQL `work_mem` does not bound it, for it must be there
    /// as a whole.
    held: OperatorMemory,
    /// What the run under way has come to.
    partial: Partial,
    /// The evaluation that was given up in the middle of the run, which goes on with it.
    suspended: u64,
    /// The last value, the evaluation that it was computed for, and how many volatile calls that had come to then.
    known: Option<(u64, usize, Datum)>,
}

/// What a run of a subquery has found so far.
#[derive(Default)]
struct Partial {
    found: usize,
    value: Datum,
    rows: RowBuffer,
    held: OperatorMemory,
    decided: Option<bool>,
    unknown: bool,
}

impl Partial {
    /// Keeps the rows of a batch.
    fn append(&mut self, batch: &mut Batch, cx: &ExecutorContext<'_>) -> Result<()> {
        self.rows.append(batch);
        charge(&mut self.held, self.rows.size_bytes(), cx)
    }
}

/// Charges what a subquery holds.
fn charge(held: &mut OperatorMemory, held_bytes: usize, cx: &ExecutorContext<'_>) -> Result<()> {
    match cx.memory() {
        Some(memory) => held.set(held_bytes, Some(memory)),
        None => check_memory("A subquery", held_bytes, cx.memory_bytes_most()),
    }
}

enum SubPlanResult {
    Value(Datum),
    Rows(RowBuffer),
    Hashed(HashedSubPlan),
}

/// Rows of a hashable IN, ready to be looked up.
struct HashedSubPlan {
    keys: KeyTable,
    /// Some row has a NULL: what is not found is "unknown" or "no".
    has_null: bool,
    /// The distinct rows, when they have several columns: a NULL in one column does not hide a difference in another.
    rows: RowBuffer,
}

/// Expressions may have subqueries wherever they are evaluated: even one that is evaluated alone may compute something
/// once, in a row of its own.
impl Default for ExecutionState {
    fn default() -> ExecutionState {
        ExecutionState {
            ctes: Vec::new(),
            subqueries: HashMap::new(),
            new_subplan: |subquery| new_state(subquery),
            evaluations: 0,
            last_call: 0,
            call_results: HashMap::new(),
            statements_begun: Vec::new(),
            system: HashMap::new(),
        }
    }
}

impl SubPlan for SubPlanState {
    fn eval<'a>(
        &mut self,
        subquery: &'a Subquery,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Datum> {
        if cx.evaluation == 0 || subquery.uncorrelated {
            return self.compute(subquery, row, cx);
        }
        match &self.known {
            Some((evaluation, calls, value)) if *evaluation == cx.evaluation => {
                cx.calls.passed(*calls);
                Ok(value.clone())
            }
            _ => {
                let value = self.compute(subquery, row, cx)?;
                self.known = Some((cx.evaluation, cx.calls.made(), value.clone()));
                Ok(value)
            }
        }
    }
}

impl SubPlanState {
    fn compute<'a>(
        &mut self,
        subquery: &'a Subquery,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Datum> {
        match &subquery.kind {
            SubqueryKind::Compare {
                left,
                ops,
                equals,
                all,
                ..
            } => {
                let mut values: SmallVec<[Datum; 2]> = SmallVec::with_capacity(left.len());
                for expr in left {
                    values.push(eval_in(expr, row, cx)?);
                }
                let any_of = Comparison {
                    left,
                    values: &values,
                    ops,
                    equals,
                    all: *all,
                };
                if !subquery.uncorrelated {
                    return self.compare_streaming(subquery, &any_of, row, cx);
                }
                if self.kept.is_none() {
                    self.kept = Some(self.keep_rows(subquery, cx)?);
                }
                match &self.kept {
                    Some(SubPlanResult::Hashed(hashed)) => Ok(hashed.contains(&any_of, cx)?),
                    Some(SubPlanResult::Rows(rows)) => {
                        let mut unknown = false;
                        for i in 0..rows.len() {
                            if let Some(decided) = any_of.decide(rows.row(i), &mut unknown, cx)? {
                                return Ok(Datum::Bool(decided));
                            }
                        }
                        Ok(any_of.undecided(unknown))
                    }
                    _ => Err(SqlError::internal("a subquery kept something else than rows").into()),
                }
            }
            kind => {
                if let Some(SubPlanResult::Value(value)) = &self.kept {
                    return Ok(value.clone());
                }
                if let Some(memo) = &mut self.memo
                    && let Some(value) = memo.find(row, cx)
                {
                    return Ok(value);
                }
                let value = self.single(subquery, kind, row, cx)?;
                if subquery.uncorrelated {
                    self.kept = Some(SubPlanResult::Value(value.clone()));
                } else if let Some(memo) = &mut self.memo {
                    memo.keep(&value, cx)?;
                }
                Ok(value)
            }
        }
    }

    /// Scalar, EXISTS and ARRAY.
    fn single<'a>(
        &mut self,
        subquery: &'a Subquery,
        kind: &SubqueryKind,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Datum> {
        let Partial {
            found,
            value,
            rows,
            held,
            ..
        } = self.run(subquery, row, cx, |batch, partial, cx| {
            match kind {
                SubqueryKind::Array(_) => {
                    partial.append(batch, cx)?;
                    return Ok(true);
                }
                SubqueryKind::Exists => {
                    partial.found = 1;
                    return Ok(false);
                }
                SubqueryKind::Scalar | SubqueryKind::Compare { .. } => {}
            }
            if partial.found == 0 && !batch.is_empty() {
                partial.value = batch.row(0).first().cloned().unwrap_or_default();
            }
            partial.found += batch.len();
            Ok(partial.found <= 1)
        })?;
        match kind {
            SubqueryKind::Exists => Ok(Datum::Bool(found > 0)),
            SubqueryKind::Array(element) => {
                self.held = held;
                Ok(array_from_rows(*element, firsts(&rows))?)
            }
            _ if found > 1 => Err(more_than_one().into()),
            _ => Ok(value),
        }
    }

    fn compare_streaming<'a>(
        &mut self,
        subquery: &'a Subquery,
        comparison: &Comparison<'_>,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Datum> {
        let Partial {
            decided, unknown, ..
        } = self.run(subquery, row, cx, |batch, partial, cx| {
            for i in 0..batch.len() {
                partial.decided = comparison.decide(batch.row(i), &mut partial.unknown, cx)?;
                if partial.decided.is_some() {
                    return Ok(false);
                }
            }
            Ok(true)
        })?;
        Ok(decided.map_or_else(|| comparison.undecided(unknown), Datum::Bool))
    }

    /// Runs an uncorrelated plan to its end and keeps its rows in the form that answers fastest.
    fn keep_rows<'a>(
        &mut self,
        subquery: &'a Subquery,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<SubPlanResult> {
        let found = self.run(subquery, &[], cx, |batch, partial, cx| {
            partial.append(batch, cx)?;
            Ok(true)
        })?;
        self.held = found.held;
        Ok(keep(subquery, found.rows, &mut self.held, cx)?)
    }

    /// Runs the plan for `row`, handing each batch to `take` until that says `false`; gives what that has made of them.
    /// If the evaluation was given up in the middle of it, goes on.
    fn run<'a>(
        &mut self,
        subquery: &'a Subquery,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
        mut take: impl FnMut(&mut Batch, &mut Partial, &mut ExecutorContext<'a>) -> Result<bool>,
    ) -> Evaluated<Partial> {
        let suspended = std::mem::take(&mut self.suspended);
        if suspended == 0 || suspended != cx.evaluation {
            self.partial = Partial::default();
            if std::mem::replace(&mut self.started, true) {
                self.running.rewind(&subquery.plan, cx);
            }
        }
        // What is owed to the enclosing operators must not stop those of this plan.
        let mut yield_pending = cx.take_pending_yield();
        loop {
            // The plan's level 1 is this row; what `take` evaluates stands outside of it.
            cx.outer.push(row.to_vec());
            // What the plan's operators evaluate they say themselves.
            let evaluation = std::mem::take(&mut cx.evaluation);
            let step = self.running.next(&subquery.plan, cx, &mut self.batch);
            cx.evaluation = evaluation;
            cx.outer.pop();
            yield_pending |= cx.take_pending_yield();
            match step? {
                Step::Batch => {
                    if !take(&mut self.batch, &mut self.partial, cx)? {
                        break;
                    }
                }
                Step::Done => break,
                // An expression cannot yield or wait, but be evaluated again.
                Step::Yield if evaluation != 0 => {
                    return Err(self.suspend(evaluation, WaitReason::Turn));
                }
                Step::Wait(
                    reason @ (WaitReason::Locked(_)
                    | WaitReason::Absent(_)
                    | WaitReason::Spill(_)
                    | WaitReason::Call(_)
                    | WaitReason::Advisory(_)
                    | WaitReason::Turn),
                ) if evaluation != 0 => {
                    cx.yield_pending = yield_pending;
                    return Err(self.suspend(evaluation, reason));
                }
                Step::Yield | Step::Wait(WaitReason::Turn) => yield_pending = true,
                Step::Wait(WaitReason::Absent(absent)) => {
                    let loaded = absent.load_here(cx.txn()?);
                    loaded.map_err(|error| load_error(&error))?;
                }
                Step::Wait(WaitReason::Spill(ticket)) => {
                    let cancel = cx.storage()?.cancel;
                    ticket.wait_here(|| cancel.check())?;
                }
                Step::Wait(WaitReason::Call(_)) => {
                    return Err(SqlError::unsupported("a PL/pgSQL function in this place").into());
                }
                Step::Wait(WaitReason::Advisory(_)) => {
                    return Err(SqlError::unsupported(
                        "waiting for an advisory lock in this place",
                    )
                    .into());
                }
                Step::Wait(WaitReason::Locked(_)) => {
                    return Err(
                        SqlError::unsupported("FOR UPDATE in a subquery of an expression").into(),
                    );
                }
            }
        }
        cx.yield_pending = yield_pending;
        Ok(std::mem::take(&mut self.partial))
    }
}

impl SubPlanState {
    /// Gives up the evaluation that it runs in, to go on when the row is evaluated again.
    fn suspend(&mut self, evaluation: u64, reason: WaitReason) -> EvalError {
        self.suspended = evaluation;
        EvalError::Suspend(Box::new(reason))
    }
}

/// What an uncorrelated subquery keeps of its rows.
fn keep(
    subquery: &Subquery,
    rows: RowBuffer,
    held: &mut OperatorMemory,
    cx: &ExecutorContext<'_>,
) -> Result<SubPlanResult> {
    let first = |i: usize| rows.row(i).first().cloned().unwrap_or_default();
    Ok(match &subquery.kind {
        SubqueryKind::Scalar if rows.len() > 1 => return Err(more_than_one()),
        SubqueryKind::Scalar if rows.len() == 0 => SubPlanResult::Value(Datum::Null),
        SubqueryKind::Scalar => SubPlanResult::Value(first(0)),
        SubqueryKind::Exists => SubPlanResult::Value(Datum::Bool(rows.len() > 0)),
        SubqueryKind::Array(element) => {
            SubPlanResult::Value(array_from_rows(*element, firsts(&rows))?)
        }
        SubqueryKind::Compare {
            hashable: false, ..
        } => SubPlanResult::Rows(rows),
        SubqueryKind::Compare { left, .. } => {
            let types: Vec<TypeId> = left.iter().map(|expr| expr.ty().oid).collect();
            let mut hashed = HashedSubPlan {
                keys: KeyTable::default(),
                has_null: false,
                rows: RowBuffer::default(),
            };
            let mut bytes = Vec::new();
            for i in 0..rows.len() {
                let row = rows.row(i);
                hashed.has_null |= row.iter().any(Datum::is_null);
                row_key(&types, row, &mut bytes);
                if hashed.keys.insert(&bytes).1 && types.len() > 1 {
                    hashed.rows.push(row);
                }
                if i % BATCH_ROWS == 0 {
                    let table_bytes = hashed.keys.size_bytes() + hashed.rows.size_bytes();
                    charge(held, rows.size_bytes() + table_bytes, cx)?;
                    check_for_interrupts()?;
                }
            }
            drop(rows);
            held.shrink(hashed.keys.size_bytes() + hashed.rows.size_bytes());
            SubPlanResult::Hashed(hashed)
        }
    })
}

/// The first column of each row.
fn firsts(rows: &RowBuffer) -> Vec<Datum> {
    (0..rows.len())
        .map(|i| rows.row(i).first().cloned().unwrap_or_default())
        .collect()
}

fn more_than_one() -> SqlError {
    SqlError::new(
        SqlState::CARDINALITY_VIOLATION,
        "more than one row returned by a subquery used as an expression",
    )
}

/// The subqueries of `plan` that may run before it, inner ones first: they refer to no enclosing row, read no WITH
/// query, nor do subqueries of their own (that is computed when the plan runs), lock no rows, and call nothing whose
/// effect depends on how often it is called.
pub(crate) fn init_plans(plan: &Plan) -> Vec<Arc<Subquery>> {
    let mut found = Vec::new();
    walk::plan_exprs(plan, 0, &mut |expr, _| collect(expr, &mut found));
    found
}

fn collect(expr: &Expr, found: &mut Vec<Arc<Subquery>>) {
    if let Expr::Subquery(subquery) = expr {
        walk::plan_exprs(&subquery.plan, 0, &mut |inner, _| collect(inner, found));
        // It may do something as often as it is called.
        let mut volatile = walk::has_routine(&subquery.plan) || walk::locks_rows(&subquery.plan);
        walk::plan_exprs(&subquery.plan, 0, &mut |inner, _| {
            volatile = volatile || walk::is_volatile(inner);
        });
        if subquery.uncorrelated && !volatile && !reads_cte_deep(&subquery.plan) {
            found.push(Arc::clone(subquery));
        }
    }
    walk::children(expr, &mut |child| collect(child, found));
}

/// Runs uncorrelated subqueries before the plan that asks for them. One that fails is left to its expression, which may
/// never come to it; when it does, it fails again.
pub(crate) async fn run_init_plans<'a>(
    subqueries: &'a [Arc<Subquery>],
    cx: &mut ExecutorContext<'a>,
) -> Result<()> {
    for subquery in subqueries {
        let id = subquery_identity(subquery);
        if cx.shared.subqueries.contains_key(&id) {
            continue;
        }
        let mut state = new_state(subquery);
        match rows_ahead(subquery, &mut state, cx).await {
            Ok(kept) => {
                state.kept = Some(kept);
                cx.shared.subqueries.insert(id, state);
            }
            // Bad data: 21xxx, 22xxx.
            Err(error) if error.code().as_str().starts_with('2') => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn rows_ahead<'a>(
    subquery: &'a Subquery,
    state: &mut SubPlanState,
    cx: &mut ExecutorContext<'a>,
) -> Result<SubPlanResult> {
    let mut found = Partial::default();
    state.started = true;
    loop {
        let stepped = step(&mut state.running, &subquery.plan, cx, &mut state.batch).await;
        if !stepped.map_err(ExecError::without_calls)? {
            break;
        }
        found.append(&mut state.batch, cx)?;
        match subquery.kind {
            SubqueryKind::Exists => break,
            SubqueryKind::Scalar if found.rows.len() > 1 => break,
            _ => {}
        }
    }
    state.held = found.held;
    keep(subquery, found.rows, &mut state.held, cx)
}

fn new_state(subquery: &Subquery) -> Box<SubPlanState> {
    let capacity = if matches!(subquery.kind, SubqueryKind::Exists) {
        1
    } else {
        BATCH_ROWS
    };
    Box::new(SubPlanState {
        running: PlanState::new(&subquery.plan),
        batch: Batch::of(capacity),
        started: false,
        kept: None,
        memo: MemoizeCache::of(subquery),
        held: OperatorMemory::default(),
        partial: Partial::default(),
        suspended: 0,
        known: None,
    })
}

/// `left op ANY/ALL (rows)`.
struct Comparison<'c> {
    left: &'c [Expr],
    values: &'c [Datum],
    ops: &'c [&'static Function],
    equals: &'c [&'static Function],
    all: bool,
}

impl Comparison<'_> {
    /// What one row decides, if it does.
    fn decide(
        &self,
        row: &[Datum],
        unknown: &mut bool,
        cx: &mut ExecutorContext<'_>,
    ) -> Result<Option<bool>> {
        match self.compare(row, cx)? {
            Some(value) if value != self.all => Ok(Some(!self.all)),
            Some(_) => Ok(None),
            None => {
                *unknown = true;
                Ok(None)
            }
        }
    }

    fn undecided(&self, unknown: bool) -> Datum {
        truth(if unknown { None } else { Some(self.all) })
    }

    /// Row comparison: `=` is true when all columns are equal, `<>` when any differs.
    fn compare(&self, row: &[Datum], cx: &ExecutorContext<'_>) -> Result<Option<bool>> {
        if !self.equals.is_empty() {
            return self.compare_order(row, cx);
        }
        let differs = self.ops.first().is_some_and(|op| is_not_equal(op));
        let decisive = differs;
        let mut unknown = false;
        for ((left, op), right) in self.values.iter().zip(self.ops).zip(row) {
            let pair = [left.clone(), right.clone()];
            match as_bool(&apply(op, &pair, cx)?)? {
                Some(value) if value == decisive => return Ok(Some(decisive)),
                Some(value) if self.values.len() == 1 => return Ok(Some(value)),
                Some(_) => {}
                None => unknown = true,
            }
        }
        Ok(if unknown { None } else { Some(!decisive) })
    }

    /// Comparison of rows by their order: the last column, or the first one that is not equal, decides.
    fn compare_order(&self, row: &[Datum], cx: &ExecutorContext<'_>) -> Result<Option<bool>> {
        let columns = self.values.iter().zip(row).enumerate();
        for (at, (left, right)) in columns {
            let pair = [left.clone(), right.clone()];
            if at + 1 < self.values.len()
                && let Some(equals) = self.equals.get(at)
            {
                match as_bool(&apply(equals, &pair, cx)?)? {
                    Some(true) => continue,
                    Some(false) => {}
                    None => return Ok(None),
                }
            }
            return match self.ops.get(at) {
                Some(op) => as_bool(&apply(op, &pair, cx)?),
                None => Ok(None),
            };
        }
        Ok(None)
    }
}

fn is_not_equal(op: &Function) -> bool {
    op.name.ends_with("ne") || op.name.ends_with("neq")
}

impl HashedSubPlan {
    /// IN, or NOT IN when the comparison asks ALL.
    fn contains(&self, comparison: &Comparison<'_>, cx: &mut ExecutorContext<'_>) -> Result<Datum> {
        let negated = comparison.all;
        if self.keys.len() == 0 {
            return Ok(Datum::Bool(negated));
        }
        let left_null = comparison.values.iter().any(Datum::is_null);
        if !left_null {
            let mut bytes = Vec::with_capacity(32);
            for (expr, value) in comparison.left.iter().zip(comparison.values) {
                key::encode_key(expr.ty().oid, value, false, false, &mut bytes);
            }
            if self.keys.find(&bytes).is_some() {
                return Ok(Datum::Bool(!negated));
            }
        }
        if !left_null && !self.has_null {
            return Ok(Datum::Bool(negated));
        }
        if comparison.values.len() == 1 {
            return Ok(Datum::Null);
        }
        let mut unknown = false;
        for i in 0..self.rows.len() {
            comparison.decide(self.rows.row(i), &mut unknown, cx)?;
            if unknown {
                return Ok(Datum::Null);
            }
        }
        Ok(Datum::Bool(negated))
    }
}
