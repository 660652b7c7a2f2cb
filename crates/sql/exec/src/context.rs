//! What a running statement sees of the world: transaction, parameters, session, limits.
//!
//! [`StatementContext`] is what the caller gives; `ExecutorContext` is the executor's own, with the stack of outer rows
//! and the state that operators share. Neither owns anything that outlives the call.
//!
//! Does not: run plans. Those that an execution keeps in its state it knows by what it asks of them: [`RunningPlan`]
//! and
//! [`SubPlan`].

use super::batch::check_memory;
use super::spill::{Spill, SpillAllowance};
use super::wait::WaitReason;
use super::wait::{EvalError, Evaluated, ExecError, unless_cancelled, wait_for};
use crate::after_triggers::EventQueue;
use crate::batch::{Batch, Step};
use crate::cancel::{Cancel, CancelReason};
use crate::key_table::KeyTable;
use crate::operator_memory::OperatorMemory;
use crate::spill::Spool;
use logstead_engine::{Engine, Index, Memory, Table, Txn};
use logstead_sql_catalog::Catalog;
use logstead_sql_catalog::context::Context;
use logstead_sql_catalog::trigger::TriggerEvent;
use logstead_sql_plan::expr::{Expr, Subquery};
use logstead_sql_plan::instrumentation::NodeStats;
use logstead_sql_plan::{Node, Plan, walk};
use logstead_sql_types::RelationId;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::interrupt::check_for_interrupts;
use logstead_sql_types::value::Datum;
use logstead_types::{IndexId, TableId};
use std::collections::{HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// What a statement runs with.
pub struct StatementContext<'a> {
    /// The transaction; the caller has begun the statement in it.
    pub txn: &'a mut Txn,
    /// Parameter values, of the types the plan was made for.
    pub params: &'a [Datum],
    /// The session, for functions.
    pub session: &'a dyn Context,
    /// The catalog the plan was made with.
    pub catalog: &'a Arc<Catalog>,
    /// The engine.
    pub engine: &'a Engine,
    /// Set to end the statement.
    pub cancel: &'a Cancel,
    /// Constraints the transaction has still to check.
    pub events: &'a mut EventQueue,
    /// `work_mem`: what an operator may hold before it writes to temporary files, or, where it cannot, a part of what
    /// it may hold at all ([`MEMORY_FACTOR`]).
    pub work_mem_bytes: usize,
    /// Where operators put what is more than `work_mem`; `None`: nowhere.
    pub spill: Option<SpillAllowance<'a>>,
}

/// How many times `work_mem` an operator may hold that cannot write it to temporary files, before the statement fails
/// with 53200: the limit is there to protect the server, not to shape plans.
pub const MEMORY_FACTOR: usize = 8;

/// A session's operators may hold so much in any case: a small `work_mem` asks for temporary files, not for failures.
const MEMORY_BYTES_LEAST: usize = 64 << 20;

/// What an expression alone is evaluated with: defaults, CHECK constraints of DDL, COPY. Subqueries are refused.
pub struct EvalContext<'a> {
    /// Parameter values.
    pub params: &'a [Datum],
    /// The session, for functions.
    pub session: &'a dyn Context,
}

/// The evaluation of one row's expressions. Where one of their subqueries finds something absent, or an advisory lock
/// is not free, it is given up: the operator waits, and evaluates the same row again. The subqueries go on where they
/// stood, and those that had come to an end are not run again; nor are volatile functions called again, but give what
/// they gave. So what is evaluated depends on the row alone, and comes to the same subqueries and calls in the same
/// order each time; and nothing else happens in it before its last subquery has come to its end.
#[derive(Default)]
pub(crate) struct ResumableEvaluation {
    /// 0: not begun.
    number: u64,
    /// What volatile functions gave.
    calls: Vec<Datum>,
    /// Whether something in what is evaluated may have to be waited for; found out the first time.
    may_wait: Option<bool>,
}

/// What volatile functions give in the evaluation that is running.
#[derive(Default)]
pub(crate) struct VolatileResults {
    values: Vec<Datum>,
    /// How many of them this attempt has come to.
    at: usize,
}

impl VolatileResults {
    /// How many this attempt has come to.
    pub(crate) fn made(&self) -> usize {
        self.at
    }

    /// This attempt goes past something that had come to its end in an earlier one, with so many calls by then.
    pub(crate) fn passed(&mut self, made: usize) {
        self.at = made;
    }

    /// The value of the next call: what it gave in an earlier attempt, or what it gives now.
    pub(crate) fn value<E>(
        cx: &mut ExecutorContext<'_>,
        call: impl FnOnce(&mut ExecutorContext<'_>) -> Result<Datum, E>,
    ) -> Result<Datum, E> {
        if let Some(value) = cx.calls.values.get(cx.calls.at) {
            cx.calls.at += 1;
            return Ok(value.clone());
        }
        let value = call(cx)?;
        cx.calls.values.push(value.clone());
        cx.calls.at += 1;
        Ok(value)
    }
}

impl ResumableEvaluation {
    /// Forgets what was given up: another row follows, or another version of it.
    pub(crate) fn reset(&mut self) {
        self.number = 0;
        self.calls.clear();
    }

    /// As [`run`](Self::run) of `exprs`, which are the same each time. Where none of them has a subquery or waits for
    /// an advisory lock nothing can be given up.
    pub(crate) fn of<'a, 'e, T>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
        cx: &mut ExecutorContext<'a>,
        evaluate: impl FnOnce(&mut ExecutorContext<'a>) -> Evaluated<T>,
    ) -> Result<Result<T, WaitReason>> {
        let may_wait = self
            .may_wait
            .get_or_insert_with(|| exprs.into_iter().any(walk::may_wait));
        match *may_wait {
            true => self.run(cx, evaluate),
            false => evaluate(cx).map(Ok).map_err(EvalError::unsuspended),
        }
    }

    /// Evaluates, or says what to wait for: then it is called again for the same row.
    pub(crate) fn run<'a, T>(
        &mut self,
        cx: &mut ExecutorContext<'a>,
        evaluate: impl FnOnce(&mut ExecutorContext<'a>) -> Evaluated<T>,
    ) -> Result<Result<T, WaitReason>> {
        if self.number == 0 {
            cx.shared.evaluations += 1;
            self.number = cx.shared.evaluations;
        }
        let enclosing = std::mem::replace(&mut cx.evaluation, self.number);
        let calls = VolatileResults {
            values: std::mem::take(&mut self.calls),
            at: 0,
        };
        let calls = std::mem::replace(&mut cx.calls, calls);
        let result = evaluate(cx);
        cx.evaluation = enclosing;
        self.calls = std::mem::replace(&mut cx.calls, calls).values;
        match result {
            Ok(value) => {
                self.reset();
                Ok(Ok(value))
            }
            Err(EvalError::Suspend(reason)) => Ok(Err(*reason)),
            Err(EvalError::Sql(error)) => Err(error),
        }
    }
}

/// A plan that runs, for whoever keeps one in the state of the execution: `operator::PlanState` is it.
pub(crate) trait RunningPlan {
    /// The next batch.
    fn next<'a>(
        &mut self,
        plan: &'a Plan,
        cx: &mut ExecutorContext<'a>,
        out: &mut Batch,
    ) -> Result<Step>;
    /// Starts over.
    fn rewind(&mut self, plan: &Plan, cx: &mut ExecutorContext<'_>);
    /// What its nodes have measured.
    fn collect_stats(&self, plan: &Plan, ctes: &[Option<Box<CteState>>], out: &mut Vec<NodeStats>);
}

/// A subquery of an expression, as the evaluation of expressions sees it: `operator::subquery` runs it.
pub(crate) trait SubPlan {
    /// Its value for a row.
    fn eval<'a>(
        &mut self,
        subquery: &'a Subquery,
        row: &[Datum],
        cx: &mut ExecutorContext<'a>,
    ) -> Evaluated<Datum>;
}

/// Makes one that has not run yet.
pub(crate) type NewSubPlan = fn(&Subquery) -> Box<dyn SubPlan>;

/// A WITH query being computed.
pub(crate) struct CteState {
    pub(crate) rows: Spool,
    pub(crate) held: OperatorMemory,
    /// `None` while it runs: its own state is borrowed then.
    pub(crate) producer: Option<Box<CteProducer>>,
    /// The recursive term is running and sees rows `working` of the result.
    pub(crate) inside: bool,
    pub(crate) working: (usize, usize),
    pub(crate) done: bool,
}

/// What gives a WITH query its rows.
pub(crate) struct CteProducer {
    pub(crate) definition: Box<dyn RunningPlan>,
    pub(crate) recursive: Option<Box<dyn RunningPlan>>,
    /// Rows already in the result, for UNION without ALL.
    pub(crate) seen: KeyTable,
    pub(crate) definition_done: bool,
    pub(crate) recursive_started: bool,
    pub(crate) batch: Batch,
    pub(crate) key: Vec<u8>,
}

/// State that belongs to an execution as a whole rather than to one operator. `operator::subquery` says what a new one
/// is: it knows how subqueries are run.
pub(crate) struct ExecutionState {
    /// Running WITH queries by slot.
    pub(crate) ctes: Vec<Option<Box<CteState>>>,
    /// Subqueries in expressions, by their address, which lives as long as the execution, or the number that copies of
    /// one share.
    pub(crate) subqueries: HashMap<usize, Box<dyn SubPlan>>,
    /// What makes them.
    pub(crate) new_subplan: NewSubPlan,
    /// Evaluations begun so far.
    pub(crate) evaluations: u64,
    /// Calls of functions that the session runs: how many were asked for, and answers.
    pub(crate) last_call: u64,
    /// See above.
    pub(crate) call_results: HashMap<u64, VecDeque<Vec<Datum>>>,
    /// Tables whose BEFORE triggers of a statement have been fired, by how they are changed: they fire once, be there
    /// several parts that do this.
    pub(crate) statements_begun: Vec<(RelationId, TriggerEvent)>,
    /// Rows of system relations read by this execution.
    pub(crate) system: HashMap<RelationId, Rc<Vec<Vec<Datum>>>>,
}

/// The part of the world that only a statement has, not an expression alone.
pub(crate) struct StorageContext<'a> {
    pub(crate) txn: &'a mut Txn,
    pub(crate) engine: &'a Engine,
    pub(crate) catalog: &'a Arc<Catalog>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) events: &'a mut EventQueue,
}

/// The executor's context. `'a` is also the lifetime of the plan being run.
pub(crate) struct ExecutorContext<'a> {
    pub(crate) storage: Option<StorageContext<'a>>,
    pub(crate) params: &'a [Datum],
    pub(crate) session: &'a dyn Context,
    pub(crate) work_mem_bytes: usize,
    pub(crate) spill: Option<SpillAllowance<'a>>,
    /// What an operator may hold that cannot write it to temporary files.
    pub(crate) memory_bytes_max: usize,
    pub(crate) shared: &'a mut ExecutionState,
    /// Enclosing rows, innermost last.
    pub(crate) outer: Vec<Vec<Datum>>,
    /// WITH nodes above the node being run, by slot, and how many rows enclose each: where a CTE's plan is found.
    pub(crate) withs: Vec<Option<(&'a Node, usize)>>,
    /// Rows written.
    pub(crate) affected: u64,
    /// Rows examined since the last yield.
    work: usize,
    /// Calls of [`tick`](Self::tick).
    ticks: u8,
    /// A subquery inside an expression, which cannot yield itself, wanted to: operators stop at the next row.
    pub(crate) yield_pending: bool,
    /// Whether nodes measure themselves.
    pub(crate) measure: bool,
    /// The [`ResumableEvaluation`] that is running, by its number; 0 if what is evaluated cannot be given up.
    pub(crate) evaluation: u64,
    /// Of that evaluation.
    pub(crate) calls: VolatileResults,
}

/// Rows examined between two yields: some tens of microseconds of work.
const WORK_ROWS: usize = 1024;

/// The same of a long statement, for which whoever comes in between has to wait: as a rule one batch.
const WORK_ROWS_LONG: usize = 255;

/// Ticks between two looks at the time.
const TICKS: u8 = 8;

impl<'a> ExecutorContext<'a> {
    /// The context of a statement.
    pub(crate) fn of(
        cx: &'a mut StatementContext<'_>,
        shared: &'a mut ExecutionState,
        measure: bool,
    ) -> ExecutorContext<'a> {
        ExecutorContext {
            storage: Some(StorageContext {
                txn: cx.txn,
                engine: cx.engine,
                catalog: cx.catalog,
                cancel: cx.cancel,
                events: cx.events,
            }),
            params: cx.params,
            session: cx.session,
            work_mem_bytes: cx.work_mem_bytes,
            spill: cx.spill,
            memory_bytes_max: cx.work_mem_bytes.saturating_mul(MEMORY_FACTOR),
            shared,
            outer: Vec::new(),
            withs: Vec::new(),
            affected: 0,
            work: 0,
            ticks: 0,
            yield_pending: false,
            measure,
            evaluation: 0,
            calls: VolatileResults::default(),
        }
    }

    /// The account that operators' memory is charged to.
    pub(crate) fn memory(&self) -> Option<&'static Memory> {
        self.storage.as_ref().map(|s| s.engine.memory())
    }

    /// Where operators put what is more than `work_mem`; `None`: nowhere.
    pub(crate) fn spill(&self) -> Option<Spill> {
        self.spill.map(|allowance| allowance.spill())
    }

    /// What a hash table may hold.
    pub(crate) fn hash_mem_bytes(&self) -> usize {
        let bytes = self.work_mem_bytes as f64 * self.session.hash_mem_multiplier();
        // Saturates.
        bytes as usize
    }

    /// Fails with 53200 when an operator holds more than it may that cannot write it to temporary files.
    pub(crate) fn check_memory(&self, operator: &str, held_bytes: usize) -> Result<()> {
        if held_bytes <= self.memory_bytes_max {
            return Ok(());
        }
        check_memory(operator, held_bytes, self.memory_bytes_most())
    }

    /// What an operator may hold that cannot write it to temporary files.
    pub(crate) fn memory_bytes_most(&self) -> usize {
        match self.spill {
            Some(_) => self.memory_bytes_max.max(MEMORY_BYTES_LEAST),
            None => self.memory_bytes_max,
        }
    }

    /// The context of an expression alone.
    pub(crate) fn bare(
        cx: &EvalContext<'a>,
        shared: &'a mut ExecutionState,
    ) -> ExecutorContext<'a> {
        ExecutorContext {
            storage: None,
            params: cx.params,
            session: cx.session,
            work_mem_bytes: usize::MAX,
            spill: None,
            memory_bytes_max: usize::MAX,
            shared,
            outer: Vec::new(),
            withs: Vec::new(),
            affected: 0,
            work: 0,
            ticks: 0,
            yield_pending: false,
            measure: false,
            evaluation: 0,
            calls: VolatileResults::default(),
        }
    }

    pub(crate) fn storage(&mut self) -> Result<&mut StorageContext<'a>> {
        self.storage
            .as_mut()
            .ok_or_else(|| SqlError::unsupported("a subquery in this place"))
    }

    #[inline]
    pub(crate) fn txn(&mut self) -> Result<&mut Txn> {
        Ok(self.storage()?.txn)
    }

    /// Waits until it is worth trying again what `obstacle` stood in the way of.
    pub(crate) async fn wait(&mut self, obstacle: WaitReason) -> Result<(), ExecError> {
        let obstacle = match obstacle {
            // Whoever runs the execution runs it.
            WaitReason::Call(call) => return Err(ExecError::Call(call)),
            WaitReason::Advisory(wanted) => {
                let locks = self.session.advisory_locking()?;
                let storage = self.storage()?;
                // Whoever waits for a row meanwhile is not to wait for who does nothing with it.
                storage.txn.pass_turn();
                let taken = locks.wait_for_advisory_lock(wanted);
                return Ok(unless_cancelled(taken, storage.cancel).await??);
            }
            obstacle => obstacle,
        };
        let storage = self.storage()?;
        Ok(wait_for(obstacle, storage.txn, storage.cancel).await?)
    }

    /// Storage of a table.
    pub(crate) fn table(&mut self, id: TableId) -> Result<Arc<Table>> {
        let storage = self.storage()?;
        storage
            .catalog
            .table(id, storage.engine)
            .ok_or_else(|| SqlError::internal(format!("no storage for table {id}")))
    }

    /// Storage of an index.
    pub(crate) fn index(&mut self, table: TableId, id: IndexId) -> Result<Arc<Index>> {
        self.table(table)?
            .index(id)
            .ok_or_else(|| SqlError::internal(format!("no storage for index {id}")))
    }

    /// Counts rows examined.
    #[inline]
    pub(crate) fn worked(&mut self, rows: usize) {
        self.work += rows;
    }

    /// Called by every leaf operator before a batch: fails when cancelled, says whether it is time to yield.
    #[inline]
    pub(crate) fn tick(&mut self) -> Result<bool> {
        let mut work_max = WORK_ROWS;
        if let Some(storage) = &self.storage {
            storage.cancel.check()?;
            if storage.cancel.is_long() {
                work_max = WORK_ROWS_LONG;
            }
        }
        self.work += 1;
        if self.work > work_max {
            self.work = 0;
            self.check_deadline()?;
            return Ok(true);
        }
        // Some operators ask for each row, and what comes to its end with the first batches reads no clock.
        self.ticks = self.ticks.wrapping_add(1);
        if self.ticks.is_multiple_of(TICKS) {
            check_for_interrupts()?;
        }
        Ok(self.take_pending_yield())
    }

    /// Rows that are there go first, before the step that made their operator stop. What it waits for it will meet
    /// again; a yield it would not, because the work that it came for is counted anew: it is owed.
    pub(crate) fn batch_before(&mut self, step: &Step) -> Step {
        self.yield_pending |= matches!(step, Step::Yield);
        Step::Batch
    }

    /// Has the statement been asked to end?
    pub(crate) fn is_cancelled(&self) -> bool {
        self.storage.as_ref().is_some_and(|s| s.cancel.is_set())
    }

    /// Whether a yield is owed; it no longer is.
    #[inline]
    pub(crate) fn take_pending_yield(&mut self) -> bool {
        std::mem::take(&mut self.yield_pending)
    }

    /// A timer cannot fire while an expression's subquery keeps the worker busy: the clock is asked now and then.
    fn check_deadline(&self) -> Result<()> {
        match &self.storage {
            Some(storage)
                if storage.cancel.deadline_us.load(Ordering::Relaxed)
                    <= self.session.clock_time()? =>
            {
                storage.cancel.cancel(CancelReason::StatementTimeout);
                storage.cancel.check()
            }
            _ => Ok(()),
        }
    }
}
