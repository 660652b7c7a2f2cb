//! One aggregate call in one group: its state, and what DISTINCT or ORDER BY makes it keep until the end.

use crate::batch::Step;
use crate::context::{EvalContext, ExecutorContext};
use crate::eval::{eval, eval_in, holds, operand};
use crate::key_table::KeyTable;
use crate::operator::aggregate::GroupKeyBuffers;
use crate::operator::aggregate::user_aggregate::UserAggregateState;
use crate::operator::sort::external::{ExternalSorter, SortResult};
use crate::operator::sort::write_key;
use crate::spill::ReadStep;
use crate::wait::Evaluated;
use logstead_sql_func::AggregateState as State;
use logstead_sql_plan::expr::Expr;
use logstead_sql_plan::{AggregateCall, walk};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::build;
use logstead_sql_types::value::{Datum, SqlType, key, oid};
use smallvec::SmallVec;

/// One call in one group.
pub(super) struct AggPerGroup {
    state: Box<dyn State>,
    /// The state if a user has made the aggregate.
    pub(super) user: Option<Box<UserAggregateState>>,
    /// What a call with DISTINCT or ORDER BY keeps.
    pub(super) kept: Option<Box<AggInput>>,
}

#[derive(Default)]
pub(super) struct AggInput {
    pub(super) seen: KeyTable,
    pub(super) sorter: ExternalSorter,
    /// All of it, in order, once it is being given.
    pub(super) ordered: Option<SortResult>,
    /// The key of the row before.
    pub(super) last: Option<Vec<u8>>,
    /// The most that was on disk.
    pub(super) disk_bytes: u64,
}

impl AggInput {
    pub(super) fn size_bytes(&self) -> usize {
        self.sorter.sorter.size_bytes() + self.seen.size_bytes()
    }
}

impl AggPerGroup {
    /// The empty state of a call.
    pub(super) fn new(call: &AggregateCall) -> AggPerGroup {
        let types: SmallVec<[SqlType; 2]> = call.args.iter().map(Expr::ty).collect();
        let keeps = call.distinct || !call.order.is_empty();
        AggPerGroup {
            state: (call.aggregate.start)(&types),
            user: { call.user.as_ref() }.map(|user| Box::new(UserAggregateState::new(&user.plain))),
            kept: keeps.then(|| {
                Box::new(AggInput {
                    sorter: match call.distinct {
                        true => ExternalSorter::unique(),
                        false => ExternalSorter::default(),
                    },
                    ..AggInput::default()
                })
            }),
        }
    }

    /// Memory of an empty one, roughly.
    pub(super) fn size_bytes(&self) -> usize {
        let user_bytes = self.user.as_ref().map_or(0, |user| user.size_bytes());
        self.state.size_bytes() + size_of::<AggPerGroup>() + user_bytes
    }

    /// Takes one row; returns the memory it added, roughly. Nothing changes before everything is evaluated.
    pub(super) fn take<'a>(
        &mut self,
        call: &'a AggregateCall,
        row: &[Datum],
        scratch: &mut GroupKeyBuffers,
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<usize> {
        if let Some(filter) = &call.filter
            && !holds(filter, row, cx)?
        {
            return Ok(0);
        }
        if let ([arg], None) = (call.args.as_slice(), &self.kept) {
            // Most calls: a column stays where it is.
            let arg = operand(arg, row, cx)?;
            return match call.aggregate.strict && arg.is_null() {
                true => Ok(0),
                false => self.add(call, std::slice::from_ref(&*arg), cx),
            };
        }
        let mut args: SmallVec<[Datum; 2]> = SmallVec::with_capacity(call.args.len());
        for arg in &call.args {
            args.push(eval_in(arg, row, cx)?);
        }
        if call.aggregate.strict && args.iter().any(Datum::is_null) {
            return Ok(0);
        }
        let Some(kept) = &mut self.kept else {
            return self.add(call, &args, cx);
        };
        scratch.order.clear();
        write_key(&call.order, row, &mut scratch.order, cx)?;
        let before = kept.size_bytes();
        if call.distinct {
            scratch.key.clear();
            for (arg, datum) in call.args.iter().zip(&args) {
                key::encode_key(arg.ty().oid, datum, false, false, &mut scratch.key);
            }
            if !kept.seen.insert(&scratch.key).1 {
                return Ok(0);
            }
        }
        kept.sorter.sorter.push(&args, |out| -> Result<()> {
            out.extend_from_slice(&scratch.order);
            if call.distinct {
                // So those that are alike stand together.
                out.extend_from_slice(&scratch.key);
            }
            Ok(())
        })?;
        Ok(kept.size_bytes().saturating_sub(before))
    }

    /// Gives a row's arguments to the state; returns the memory that it grew by, roughly.
    fn add<'a>(
        &mut self,
        call: &'a AggregateCall,
        args: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<usize> {
        if let Some(user) = &call.user {
            return self.add_to_user(user, args, cx);
        }
        // Only values that hold memory can make a state grow.
        let growing = args.iter().any(|arg| {
            matches!(
                arg,
                Datum::Text(_)
                    | Datum::Bytea(_)
                    | Datum::TsVector(_)
                    | Datum::TsQuery(_)
                    | Datum::Bits(_)
                    | Datum::Geometry(_)
                    | Datum::Array(_)
                    | Datum::Jsonb(_)
            )
        }) || call.aggregate.name == "array_agg"
            || matches!(call.aggregate.result, oid::JSON | oid::JSONB);
        if !growing {
            self.state.add_in(cx.session, args)?;
            return Ok(0);
        }
        let before = self.state.size_bytes();
        self.state.add_in(cx.session, args)?;
        Ok(self.state.size_bytes().saturating_sub(before))
    }

    /// The value of the group; or a step that comes before.
    pub(super) fn finish<'a>(
        &mut self,
        call: &'a AggregateCall,
        cx: &mut ExecutorContext<'a>,
    ) -> Result<Result<Datum, Step>> {
        if let (Some(user), None) = (&call.user, &self.kept) {
            return self.finish_user(user, call, cx);
        }
        let Some(kept) = &mut self.kept else {
            return self.state.finish().and_then(build::charge_value).map(Ok);
        };
        if kept.ordered.is_none() {
            let spill = match kept.sorter.is_on_disk() {
                true => cx.spill(),
                false => None,
            };
            if let Some(step) = kept.sorter.settle(spill.as_ref(), cx)? {
                return Ok(Err(step));
            }
            kept.seen.clear();
            kept.disk_bytes = kept.sorter.disk_bytes();
            kept.ordered = Some(kept.sorter.take().finish(true));
        }
        if let Some(user) = &call.user {
            return self.finish_user(user, call, cx);
        }
        match &mut kept.ordered {
            Some(SortResult::Memory(sorted)) => {
                while let Some(row) = sorted.next() {
                    self.state.add_in(cx.session, row)?;
                }
            }
            Some(SortResult::Disk(merge, file)) => {
                let mut row = Vec::new();
                loop {
                    cx.worked(1);
                    if cx.tick()? {
                        return Ok(Err(Step::Yield));
                    }
                    match merge.advance(file)? {
                        ReadStep::Row => {}
                        ReadStep::End => break,
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
                    row.clear();
                    merge.row(&mut row)?;
                    self.state.add_in(cx.session, &row)?;
                }
            }
            None => {}
        }
        kept.ordered = None;
        if self.state.wants_direct()
            && let Some(direct) = call.args.first()
            && !walk::any(direct, &|e| {
                matches!(e, Expr::Column(..) | Expr::Outer { .. })
            })
            && !walk::has_subquery(direct)
        {
            let bare = EvalContext {
                params: cx.params,
                session: cx.session,
            };
            self.state.direct(eval(direct, &[], &bare)?);
        }
        self.state.finish().and_then(build::charge_value).map(Ok)
    }
}
