//! Calls of functions that are run by the session: their rows, asked for as something to wait for.
//!
//! Owns: evaluating the arguments, and giving the rows once they are there. A body cannot be run inside of an operator:
//! it has statements of its own, which want the transaction. So the execution stops
//! ([`Progress::Call`](super::Progress)), as it does before anything that is not there yet, and goes on when it was
//! answered.

use super::batch::Batch;
use super::context::{ExecutorContext, ResumableEvaluation};
use super::eval::eval_in;
use super::wait::WaitReason;
use crate::batch::Step;
use crate::call::PendingCall;
use logstead_sql_plan::Callee;
use logstead_sql_plan::expr::Expr;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use std::collections::VecDeque;
use std::sync::Arc;

/// The state of a RoutineScan.
#[derive(Default)]
pub(crate) struct RoutineState {
    evaluation: ResumableEvaluation,
    args: Option<Vec<Datum>>,
    /// What was asked; 0 is nothing.
    call_number: u64,
    rows: Option<VecDeque<Vec<Datum>>>,
}

impl RoutineState {
    pub(crate) fn next<'a>(
        &mut self,
        callee: &'a Arc<Callee>,
        args: &'a [Expr],
        width: usize,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step> {
        out.start(width);
        if cx.tick()? {
            return Ok(Step::Yield);
        }
        if self.rows.is_none() {
            if self.args.is_none() {
                let evaluate = |cx: &mut ExecutorContext<'a>| {
                    let mut values = Vec::with_capacity(args.len());
                    for arg in args {
                        values.push(eval_in(arg, &[], cx)?);
                    }
                    Ok(values)
                };
                match self.evaluation.of(args, cx, evaluate)? {
                    Ok(values) => self.args = Some(values),
                    Err(obstacle) => return Ok(Step::Wait(obstacle)),
                }
            }
            let values = self.args.clone().unwrap_or_default();
            if callee.strict && values.iter().any(Datum::is_null) {
                let row = (!callee.set).then(|| vec![Datum::Null; width]);
                self.rows = Some(row.into_iter().collect());
            } else if let Some(rows) = cx.shared.call_results.remove(&self.call_number) {
                self.rows = Some(rows);
            } else {
                cx.shared.last_call += 1;
                self.call_number = cx.shared.last_call;
                return Ok(Step::Wait(WaitReason::Call(Box::new(PendingCall {
                    number: self.call_number,
                    callee: Arc::clone(callee),
                    args: values,
                    types: args.iter().map(Expr::ty).collect(),
                    trigger: None,
                }))));
            }
        }
        let rows = self.rows.get_or_insert_default();
        while !out.is_full()
            && let Some(row) = rows.pop_front()
        {
            for datum in row {
                out.push(datum);
            }
            out.end_row();
        }
        Ok(match out.is_empty() {
            true => Step::Done,
            false => Step::Batch,
        })
    }
}
