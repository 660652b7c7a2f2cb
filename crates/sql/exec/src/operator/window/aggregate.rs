//! An aggregate over frames.
//!
//! A state is kept from row to row: rows that come into the frame are added to it; rows that leave it are taken back
//! where the aggregate can do that exactly, else it is computed anew. So a frame that only grows costs each row once,
//! and so does a moving one of sum, count or avg over exact types.

use super::frame::FrameRanges;
use super::partition::Partition;
use crate::context::ExecutorContext;
use crate::eval::{eval_in, holds};
use crate::operator::aggregate::user_aggregate::UserAggregateState;
use crate::wait::WaitReason;
use crate::wait::{EvalError, Evaluated};
use logstead_sql_func::{Aggregate, AggregateState};
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{Transitions, WindowCall};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, SqlType};
use smallvec::SmallVec;

/// An aggregate's state over the frame of the last row.
pub(super) struct MovingAggregate {
    state: Box<dyn AggregateState>,
    /// The state if a user has made the aggregate.
    user: Option<Box<UserAggregateState>>,
    /// Frames begin with different rows.
    moves: bool,
    /// The rows it is over. With exclusions: what of the frame it is over so far.
    from: usize,
    to: usize,
    /// The runs that it is over or on its way to, when rows are left out.
    runs: FrameRanges,
    /// How many rows of the runs it has.
    done: usize,
    value: Option<Datum>,
}

impl MovingAggregate {
    pub(super) fn new(aggregate: &Aggregate, call: &WindowCall, moves: bool) -> MovingAggregate {
        MovingAggregate {
            state: start(aggregate, call),
            user: how(call, moves).map(|how| Box::new(UserAggregateState::new(how))),
            moves,
            from: 0,
            to: 0,
            runs: FrameRanges::new(),
            done: 0,
            value: None,
        }
    }

    /// Memory of its state, roughly.
    pub(super) fn size_bytes(&self) -> usize {
        self.state.size_bytes() + self.user.as_ref().map_or(0, |user| user.size_bytes())
    }

    /// The first row that it still may have to take back.
    pub(super) fn first_needed(&self) -> usize {
        self.from
    }

    /// The first row that it has not looked at.
    pub(super) fn upto(&self) -> usize {
        self.to
    }

    /// The value over the frame; `None` when `work` is used up first, or what to wait for: what was done is kept.
    #[allow(clippy::too_many_arguments, reason = "a step of one call")]
    pub(super) fn over<'a>(
        &mut self,
        aggregate: &'static Aggregate,
        call: &'a WindowCall,
        (head, tail): (usize, usize),
        rows: &Partition,
        work: &mut usize,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Option<Datum>, WaitReason>> {
        if head == self.from
            && tail == self.to
            && let Some(value) = &self.value
        {
            return Ok(Ok(Some(value.clone())));
        }
        self.value = None;
        if head < self.from || head >= self.to || tail < self.to {
            // Nothing in common with the frame before, or of no use.
            if (self.from, self.to) != (head, head) {
                self.restart(aggregate, call, head);
            }
        }
        while self.from < head {
            if *work == 0 {
                return Ok(Ok(None));
            }
            *work -= 1;
            let row = rows.row(self.from)?;
            let taken = match arguments(aggregate, call, row, cx).map_err(EvalError::unsuspended)? {
                Some(args) => match self.take_back(call, &args, cx)? {
                    Ok(taken) => taken,
                    Err(obstacle) => return Ok(Err(obstacle)),
                },
                None => true,
            };
            if !taken {
                self.restart(aggregate, call, head);
                break;
            }
            self.from += 1;
        }
        while self.to < tail {
            if *work == 0 {
                return Ok(Ok(None));
            }
            *work -= 1;
            if let Some(args) = arguments(aggregate, call, rows.row(self.to)?, cx)
                .map_err(EvalError::unsuspended)?
                && let Err(obstacle) = self.add(call, &args, cx)?
            {
                return Ok(Err(obstacle));
            }
            self.to += 1;
        }
        self.result(call, cx)
    }

    /// The user's aggregate that it is, and how it is computed.
    fn user_how<'a>(
        &mut self,
        call: &'a WindowCall,
    ) -> Option<(&mut UserAggregateState, &'a Transitions)> {
        let how = how(call, self.moves)?;
        Some((self.user.as_deref_mut()?, how))
    }

    fn add<'a>(
        &mut self,
        call: &'a WindowCall,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<(), WaitReason>> {
        match self.user_how(call) {
            Some((user, how)) => user.add_alone(how, args, cx),
            None => self.state.add_in(cx.session, args).map(Ok),
        }
    }

    fn take_back<'a>(
        &mut self,
        call: &'a WindowCall,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<bool, WaitReason>> {
        match self.user_how(call) {
            Some((user, how)) => user.remove(how, args, cx),
            None => self.state.remove(args).map(Ok),
        }
    }

    fn result<'a>(
        &mut self,
        call: &'a WindowCall,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Option<Datum>, WaitReason>> {
        let value = match self.user_how(call) {
            Some((user, how)) => match user.value(how, &[], cx)? {
                Ok(value) => value,
                Err(obstacle) => return Ok(Err(obstacle)),
            },
            None => self.state.value()?,
        };
        self.value = Some(value.clone());
        Ok(Ok(Some(value)))
    }

    /// As [`MovingAggregate::over`] where rows are left out of the frame: always anew.
    pub(super) fn over_runs<'a>(
        &mut self,
        aggregate: &'static Aggregate,
        call: &'a WindowCall,
        runs: &FrameRanges,
        rows: &Partition,
        work: &mut usize,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Option<Datum>, WaitReason>> {
        if self.runs != *runs {
            let head = runs.first().map_or(0, |(from, _)| *from);
            self.restart(aggregate, call, head);
            self.runs.clone_from(runs);
            self.done = 0;
            self.value = None;
        }
        if let Some(value) = &self.value {
            return Ok(Ok(Some(value.clone())));
        }
        let mut passed = 0;
        for &(from, to) in runs {
            while self.done < passed + (to - from) {
                if *work == 0 {
                    return Ok(Ok(None));
                }
                *work -= 1;
                let row = rows.row(from + self.done - passed)?;
                if let Some(args) =
                    arguments(aggregate, call, row, cx).map_err(EvalError::unsuspended)?
                    && let Err(obstacle) = self.add(call, &args, cx)?
                {
                    return Ok(Err(obstacle));
                }
                self.done += 1;
            }
            passed += to - from;
        }
        self.result(call, cx)
    }

    fn restart(&mut self, aggregate: &Aggregate, call: &WindowCall, head: usize) {
        self.state = start(aggregate, call);
        if let (Some(user), Some(how)) = (&mut self.user, how(call, self.moves)) {
            **user = UserAggregateState::new(how);
        }
        (self.from, self.to) = (head, head);
        self.value = None;
    }
}

/// How a user's aggregate is computed over frames whose first row moves, or does not.
fn how(call: &WindowCall, moves: bool) -> Option<&Transitions> {
    let user = call.user.as_ref()?;
    match &user.moving {
        Some(moving) if moves => Some(moving),
        _ => Some(&user.plain),
    }
}

fn start(aggregate: &Aggregate, call: &WindowCall) -> Box<dyn AggregateState> {
    let types: SmallVec<[SqlType; 2]> = call.args.iter().map(Expr::ty).collect();
    (aggregate.start)(&types)
}

/// What a row gives to the aggregate, if anything.
fn arguments<'a>(
    aggregate: &Aggregate,
    call: &'a WindowCall,
    row: &[Datum],
    cx: &mut ExecutorContext<'a>,
) -> Evaluated<Option<SmallVec<[Datum; 2]>>> {
    if let Some(filter) = &call.filter
        && !holds(filter, row, cx)?
    {
        return Ok(None);
    }
    let mut args: SmallVec<[Datum; 2]> = SmallVec::with_capacity(call.args.len());
    for arg in &call.args {
        args.push(eval_in(arg, row, cx)?);
    }
    Ok((!aggregate.strict || !args.iter().any(Datum::is_null)).then_some(args))
}
