//! The running state of an aggregate that a user has made.
//!
//! Owns: the state's value, and PostgreSQL's rules for functions that are not called for NULLs.
//!
//! Invariant: nothing of the state changes before its function has given a value. So an evaluation that is given up,
//! because the function has to be run by the session first, is made again with the same row.

use crate::batch::Step;
use crate::context::{EvalContext, ExecutorContext, ResumableEvaluation};
use crate::eval::{eval, eval_in};
use crate::operator::aggregate::per_group::{AggInput, AggPerGroup};
use crate::operator::sort::external::SortResult;
use crate::spill::ReadStep;
use crate::wait::Evaluated;
use crate::wait::WaitReason;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{AggregateCall, Transitions, UserAggregate, walk};
use logstead_sql_types::FunctionId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, size_bytes};
use logstead_types::SqlState;
use std::sync::Arc;

/// `pg_proc.oid` of array_append.
const ARRAY_APPEND: FunctionId = FunctionId::new(378);
/// Arrays of more are looked at from time to time, whether they are larger than a value may be: each time they have
/// grown by an eighth of a power of two.
const ITEMS_MAX: usize = 1 << 20;

fn is_looked_at(items: usize) -> bool {
    items >= ITEMS_MAX && items.trailing_zeros() + 3 >= items.ilog2()
}

/// A state of an aggregate.
pub(crate) struct UserAggregateState {
    value: Datum,
    /// How many rows' values it has.
    count: u64,
    /// The direct arguments of its call, once a row has told them.
    direct: Option<Vec<Datum>>,
    /// The row that is being added.
    row: Option<Vec<Datum>>,
    /// All that its call has kept is in it.
    fed: bool,
    /// Of a step, of what takes one back, and of the result.
    evaluations: [ResumableEvaluation; 3],
}

impl UserAggregateState {
    pub(crate) fn new(how: &Transitions) -> UserAggregateState {
        UserAggregateState {
            value: how.initial.clone(),
            count: 0,
            direct: None,
            row: None,
            fed: false,
            evaluations: Default::default(),
        }
    }

    /// Memory of the value, roughly.
    pub(crate) fn size_bytes(&self) -> usize {
        size_of::<UserAggregateState>() + size_bytes(&self.value)
    }

    /// A row of the state and the arguments. The state itself is in it, so that who changes it finds it nowhere else:
    /// it is to be put back.
    fn row_of(&mut self, args: &[Datum]) -> Vec<Datum> {
        let mut row = Vec::with_capacity(args.len() + 1);
        row.push(std::mem::take(&mut self.value));
        row.extend_from_slice(args);
        row
    }

    /// Adds a row's arguments within an evaluation that may be given up; returns by how much the state grew.
    pub(super) fn add<'a>(
        &mut self,
        how: &'a Transitions,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<usize> {
        if how.strict {
            if args.iter().any(Datum::is_null) {
                return Ok(0);
            }
            if self.value.is_null() {
                // Without a first state the first value is one. A state that the function has made NULL stays it.
                if self.count == 0
                    && how.initial.is_null()
                    && let Some(first) = args.first()
                {
                    self.value = first.clone();
                    self.count = 1;
                    return Ok(size_bytes(&self.value));
                }
                return Ok(0);
            }
        }
        if let Some(grown) = self.append(how, args) {
            return Ok(grown);
        }
        let before = size_bytes(&self.value);
        let mut row = self.row_of(args);
        match eval_in(&how.step, &row, cx) {
            Ok(value) => {
                if value.is_null() && how.inverse.is_some() {
                    return Err(SqlError::new(
                        SqlState::NULL_VALUE_NOT_ALLOWED,
                        "moving-aggregate transition function must not return null",
                    )
                    .into());
                }
                self.value = value;
                self.count += 1;
                Ok(size_bytes(&self.value).saturating_sub(before))
            }
            Err(error) => {
                self.value = row.swap_remove(0);
                Err(error)
            }
        }
    }

    /// Appends to an array that nobody else has where the step is array_append: an array that is copied for each row
    /// takes time by the square of them.
    fn append(&mut self, how: &Transitions, args: &[Datum]) -> Option<usize> {
        let Expr::Call {
            function, args: of, ..
        } = &how.step
        else {
            return None;
        };
        let ([Expr::Column(0, _), Expr::Column(1, _)], [item]) = (of.as_slice(), args) else {
            return None;
        };
        let Datum::Array(array) = &mut self.value else {
            return None;
        };
        if function.oid != ARRAY_APPEND || how.inverse.is_some() {
            return None;
        }
        let array = Arc::get_mut(array).filter(|array| {
            // What may be larger than a value may be goes the way on which that is looked at.
            array.shape.is_none() && !is_looked_at(array.items.len()) && !array.items.is_empty()
        })?;
        array.items.push(item.clone());
        self.count += 1;
        Some(size_bytes(item))
    }

    /// The same, alone.
    pub(crate) fn add_alone<'a>(
        &mut self,
        how: &'a Transitions,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        let mut evaluation = std::mem::take(&mut self.evaluations[0]);
        let added = evaluation.of([&how.step], cx, |cx| self.add(how, args, cx));
        self.evaluations[0] = evaluation;
        Ok(added?.map(drop))
    }

    /// Takes back the row that was added first; false if the state is to be made anew.
    pub(crate) fn remove<'a>(
        &mut self,
        how: &'a Transitions,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<bool, WaitReason>> {
        let Some(inverse) = &how.inverse else {
            return Ok(Ok(false));
        };
        if how.strict && args.iter().any(Datum::is_null) {
            return Ok(Ok(true));
        }
        if self.value.is_null() {
            return Err(SqlError::internal(
                "aggregate transition value is NULL before inverse transition",
            ));
        }
        // The last one is not taken back: the state begins anew.
        if self.count <= 1 {
            self.value = how.initial.clone();
            self.count = 0;
            return Ok(Ok(true));
        }
        let mut row = self.row_of(args);
        let mut evaluation = std::mem::take(&mut self.evaluations[1]);
        let value = evaluation.of([inverse], cx, |cx| eval_in(inverse, &row, cx));
        self.evaluations[1] = evaluation;
        match value {
            Ok(Ok(Datum::Null)) => Ok(Ok(false)),
            Ok(Ok(value)) => {
                self.value = value;
                self.count -= 1;
                Ok(Ok(true))
            }
            Ok(Err(obstacle)) => {
                self.value = row.swap_remove(0);
                Ok(Err(obstacle))
            }
            Err(error) => Err(error),
        }
    }

    /// The result so far.
    pub(crate) fn value<'a>(
        &mut self,
        how: &'a Transitions,
        direct: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Datum, WaitReason>> {
        let Some(finish) = &how.finish else {
            return Ok(Ok(self.value.clone()));
        };
        let mut row = Vec::with_capacity(1 + direct.len() + how.extra);
        row.push(self.value.clone());
        row.extend_from_slice(direct);
        row.resize(row.len() + how.extra, Datum::Null);
        let mut evaluation = std::mem::take(&mut self.evaluations[2]);
        let value = evaluation.of([finish], cx, |cx| eval_in(finish, &row, cx));
        self.evaluations[2] = evaluation;
        value
    }
}

impl AggPerGroup {
    /// Gives a row's arguments to a user's aggregate, if it is one.
    pub(super) fn add_to_user<'a>(
        &mut self,
        user: &'a UserAggregate,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<usize> {
        let (direct, args) = args.split_at(user.direct.min(args.len()));
        match &mut self.user {
            Some(state) => {
                if user.direct > 0 && state.direct.is_none() {
                    state.direct = Some(direct.to_vec());
                }
                state.add(&user.plain, args, cx)
            }
            None => Err(SqlError::internal("a user's aggregate without its state").into()),
        }
    }

    /// The value of a user's aggregate; or a step that comes before.
    pub(super) fn finish_user<'a>(
        &mut self,
        user: &'a UserAggregate,
        call: &'a AggregateCall,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Datum, Step>> {
        let Some(state) = &mut self.user else {
            return Err(SqlError::internal("a user's aggregate without its state"));
        };
        if let Some(kept) = &mut self.kept
            && !state.fed
        {
            if let Err(step) = add_ordered(state, kept, user, call, cx)? {
                return Ok(Err(step));
            }
            state.fed = true;
        }
        if state.direct.is_none() && user.direct > 0 {
            let direct = call.args.iter().take(user.direct);
            let mut values = Vec::with_capacity(user.direct);
            for arg in direct {
                let known =
                    !walk::any(arg, &|e| matches!(e, Expr::Column(..) | Expr::Outer { .. }))
                        && !walk::has_subquery(arg);
                let bare = EvalContext {
                    params: cx.params,
                    session: cx.session,
                };
                values.push(match known {
                    true => eval(arg, &[], &bare)?,
                    false => Datum::Null,
                });
            }
            state.direct = Some(values);
        }
        let direct = state.direct.clone().unwrap_or_default();
        Ok(state.value(&user.plain, &direct, cx)?.map_err(Step::Wait))
    }
}

/// Adds what a call with DISTINCT or ORDER BY has kept, in order.
fn add_ordered<'a>(
    state: &mut UserAggregateState,
    kept: &mut AggInput,
    user: &'a UserAggregate,
    call: &AggregateCall,
    cx: &mut ExecutorContext<'a>,
) -> Result<Result<(), Step>> {
    loop {
        let row = match state.row.take() {
            Some(row) => row,
            None => match &mut kept.ordered {
                Some(SortResult::Memory(sorted)) => match sorted.next() {
                    Some(row) => row.to_vec(),
                    None => return Ok(Ok(())),
                },
                Some(SortResult::Disk(merge, file)) => {
                    cx.worked(1);
                    if cx.tick()? {
                        return Ok(Err(Step::Yield));
                    }
                    match merge.advance(file)? {
                        ReadStep::Row => {}
                        ReadStep::End => return Ok(Ok(())),
                        ReadStep::Wait(obstacle) => return Ok(Err(Step::Wait(obstacle))),
                    }
                    if call.distinct {
                        if kept.last.as_deref() == Some(merge.key()) {
                            continue;
                        }
                        let last = kept.last.get_or_insert_default();
                        last.clear();
                        last.extend_from_slice(merge.key());
                    }
                    let mut row = Vec::new();
                    merge.row(&mut row)?;
                    row
                }
                None => return Ok(Ok(())),
            },
        };
        let (direct, args) = row.split_at(user.direct.min(row.len()));
        if user.direct > 0 && state.direct.is_none() {
            state.direct = Some(direct.to_vec());
        }
        if let Err(obstacle) = state.add_alone(&user.plain, args, cx)? {
            state.row = Some(row);
            return Ok(Err(Step::Wait(obstacle)));
        }
    }
}
