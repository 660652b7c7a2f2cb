//! Running one planned statement inside a transaction.
//!
//! Owns: table locks before the plan is trusted, and holding back a full batch of rows until what it tells is
//! Committed.

use super::Session;
use super::cached_plan::{CachedPlan, PermittedPlan, Statement};
use super::client::Client;
use crate::limits::{StatementTimeouts, run_with_limits};
use crate::open_transaction::OpenTransaction;
use logstead_engine::{Isolation, Table, TableLock, Txn, WaitError, WriteError};
use logstead_sql_catalog::Catalog;
use logstead_sql_exec::{
    CancelReason, Execution, Progress, StatementContext, check_deferred_constraints,
};
use logstead_sql_parse::Parsed;
use logstead_sql_plan::Command;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::value::{Datum, user};
use logstead_types::SqlState;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

/// Takes a table lock, waiting if need be.
pub(super) async fn lock(txn: &mut Txn, table: &Arc<Table>, mode: TableLock) -> Result<()> {
    loop {
        match txn.lock_table(table, mode) {
            Ok(()) => return Ok(()),
            Err(WriteError::Blocked(blocker)) => match blocker.wait(txn).await {
                Ok(()) => {}
                Err(WaitError::Deadlock) => return Err(deadlock()),
            },
            Err(WriteError::Deadlock) => return Err(deadlock()),
            Err(error) => return Err(SqlError::internal(error.to_string())),
        }
    }
}

fn deadlock() -> SqlError {
    SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .hint("See server log for query details.")
}

/// How far a run came.
pub(super) enum RunOutcome {
    /// All rows are out.
    Done { rows: u64 },
    /// The row limit was reached.
    Suspended,
}

impl OpenTransaction {
    /// A statement's view begins: the one that it was planned by, if it was taken for that.
    pub(super) fn begin_statement(&mut self) {
        if !std::mem::take(&mut self.has_view) {
            self.txn.begin_statement();
        }
        self.fix_snapshot();
    }

    /// A statement that reads begins, or has been run: REPEATABLE READ and SERIALIZABLE see from then on what was
    /// committed by then, whether or not it looks at a table.
    #[inline]
    pub(super) fn fix_snapshot(&mut self) {
        if self.txn.isolation() != Isolation::ReadCommitted {
            self.txn.snapshot();
        }
    }
}

impl Session {
    pub(super) fn limits(&self) -> StatementTimeouts {
        let settings = self.context.settings.borrow();
        let typed = settings.typed();
        let mut limits = StatementTimeouts {
            statement_ms: typed.statement_timeout_ms,
            lock_ms: typed.lock_timeout_ms,
        };
        // What a routine does has no more time than the statement around it.
        if self.routines > 0 {
            let left_us = self.signals.statement().left_us(self.context.wall_clock());
            let left_ms = left_us.map(|us| u64::try_from(us / 1000).unwrap_or(0).max(1));
            limits.statement_ms = left_ms.unwrap_or(0);
        }
        limits
    }

    /// A message of an extended query: its time begins with the first, and is up, if it is, when the next has come.
    pub(super) fn extended_goes_on(&mut self) -> Result<()> {
        let limits = self.limits();
        if limits.statement_ms == 0 {
            return Ok(());
        }
        let now = self.context.wall_clock();
        let since = *self.extended_since.get_or_insert(now);
        let past_us = u64::try_from(now.saturating_sub(since)).unwrap_or(0);
        if past_us / 1000 < limits.statement_ms {
            return Ok(());
        }
        let cancel = self.signals.statement();
        cancel.cancel(CancelReason::StatementTimeout);
        cancel.check()
    }

    /// 0A000 for all that is not a query in a function that is not volatile, as in PostgreSQL: such statements move the
    /// view that the statement around the function reads with.
    pub(super) fn refuse_utility_in_stable(&self, parsed: &Parsed) -> Result<()> {
        if self.stable == 0 {
            return Ok(());
        }
        Err(SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!(
                "{} is not allowed in a non-volatile function",
                parsed.statement.tag()
            ),
        ))
    }

    /// 0A000 for what changes something in a function that is not volatile.
    pub(super) fn refuse_in_stable(&self, plan: &CachedPlan) -> Result<()> {
        if self.stable > 0 && (plan.writes() || plan.writes_lasting) {
            return Err(SqlError::new(
                SqlState::FEATURE_NOT_SUPPORTED,
                format!(
                    "{} is not allowed in a non-volatile function",
                    command_name(plan)
                ),
            ));
        }
        Ok(())
    }

    /// Plans and locks: afterwards the plan is right for the catalog, and stays so until the transaction ends.
    pub(super) async fn prepare_run(&mut self, statement: &Statement) -> Result<PermittedPlan> {
        statement.runs.set(statement.runs.get() + 1);
        if self.modes_for_statement()?.deferrable {
            // Before locks are held: those waited for may want them, and this wait is not in the wait-for graph.
            self.transaction()?;
            self.wait_for_snapshot().await?;
        }
        self.follow_token().await?;
        loop {
            let plan = self.plan(statement)?;
            if let Some(error) = &plan.fails {
                return Err(error.clone());
            }
            self.refuse_in_stable(&plan)?;
            if self.prior.is_some() {
                let writes = plan.writes_lasting || plan.writes();
                let locks = plan.locks.iter().map(|(_, mode)| *mode);
                self.waits_for_prior(writes, locks).await?;
            }
            if plan.writes_lasting && self.modes_for_statement()?.read_only {
                return Err(SqlError::new(
                    SqlState::READ_ONLY_SQL_TRANSACTION,
                    format!(
                        "cannot execute {} in a read-only transaction",
                        command_name(&plan)
                    ),
                ));
            }
            let limits = self.limits();
            let signals = Arc::clone(&self.signals);
            let open = self.transaction()?;
            let mut waited = false;
            for (table, mode) in &plan.locks {
                match open.txn.lock_table(table, *mode) {
                    Ok(()) => {}
                    // The common case above makes no future.
                    Err(_) => {
                        run_with_limits(&signals, limits, lock(&mut open.txn, table, *mode))
                            .await?;
                        waited = true;
                    }
                }
            }
            if self.as_of_snapshot().is_some() {
                let tables: Vec<_> = plan.locks.iter().map(|(table, _)| table.id()).collect();
                self.load_indexes(&tables).await?;
            }
            if self.is_at_replica() {
                // Few come here: the future of the others stays small.
                Box::pin(self.take_view()).await?;
            }
            // DDL may have committed before the locks were held: then the plan is made again.
            let catalog = self.catalog()?;
            if Arc::ptr_eq(&catalog, &plan.catalog) {
                let open = self.transaction()?;
                open.txn.depends_on(plan.catalog.csn);
                return self.context.permitted(plan);
            }
            if waited {
                self.worker.step();
            }
        }
    }

    /// What was made read-only behind a savepoint is so no more.
    pub(super) fn restore_read_only(&mut self, index: usize) {
        if let Some(savepoint) = self.savepoints.get(index) {
            self.modes.read_only = savepoint.read_only || self.as_of_snapshot().is_some();
            self.context.take_modes(&self.modes);
        }
    }

    pub(super) fn modes_for_statement(
        &mut self,
    ) -> Result<super::transaction_modes::TransactionModes> {
        let mut modes = match self.is_idle() {
            true => self.default_modes()?,
            false => self.modes,
        };
        modes.read_only |= self.reads_as_of();
        Ok(modes)
    }

    /// A statement's own view of the data begins, planned with this catalog.
    pub(super) async fn begin_run(&mut self, catalog: &Arc<Catalog>) -> Result<()> {
        self.begin_view().await?;
        match self.is_at_replica() {
            true => self.check_seen(catalog),
            false => Ok(()),
        }
    }

    async fn begin_view(&mut self) -> Result<()> {
        self.context.restore_points.borrow_mut().clear();
        self.context.restarts_asked.borrow_mut().clear();
        self.context.promotion_asked.take();
        self.context.as_of_asked.borrow_mut().take();
        self.settle_suspended().await?;
        self.show_cursors();
        self.context.advisory.borrow_mut().begin_statement();
        let in_block = !self.savepoints.is_empty();
        let stable = self.stable > 0;
        let open = self.transaction()?;
        // What a STABLE function reads is what the statement around it reads.
        if stable {
            return Ok(());
        }
        open.begin_statement();
        if !in_block {
            open.events.compact();
        }
        Ok(())
    }

    /// A statement's time begins, unless it has begun: however many functions it calls and cursors it reads, it has the
    /// time of one.
    pub(super) fn set_deadline(&self, limits: StatementTimeouts) {
        if self.routines > 0 || self.signals.statement().has_deadline() {
            return;
        }
        if let Some(limit_us) = i64::try_from(limits.statement_ms)
            .ok()
            .filter(|limit_ms| *limit_ms > 0)
            .and_then(|limit_ms| limit_ms.checked_mul(1000))
        {
            let deadline_us = self.context.wall_clock().saturating_add(limit_us);
            self.signals.statement().set_deadline(Some(deadline_us));
        }
    }

    /// The limits as they are now that the statement has had some of its time; 57014 if it has had all of it.
    pub(super) fn limits_left(&self, limits: StatementTimeouts) -> Result<StatementTimeouts> {
        let cancel = self.signals.statement();
        let Some(left_us) = cancel.left_us(self.context.wall_clock()) else {
            return Ok(limits);
        };
        if left_us == 0 {
            cancel.cancel(CancelReason::StatementTimeout);
            cancel.check()?;
        }
        let statement_ms = u64::try_from(left_us / 1000).unwrap_or(0).max(1);
        Ok(StatementTimeouts {
            statement_ms,
            ..limits
        })
    }

    /// Runs an execution on; `first` when it has not run before.
    pub(super) async fn run(
        &mut self,
        plan: &CachedPlan,
        execution: &mut Execution,
        params: &[Datum],
        first: bool,
        rows_max: u64,
        client: &mut dyn Client,
    ) -> Result<RunOutcome> {
        let mut limits = self.limits();
        let work_mem_bytes = self.context.settings.borrow().typed().work_mem_bytes;
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        let engine = self.worker.instance.engine.clone();
        context.catalog.replace(Arc::clone(&plan.catalog));
        user::enter(&plan.catalog);
        // A statement that failed may have left some.
        context.sleep_us.set(0);
        if first {
            self.begin_run(&plan.catalog).await?;
        }
        self.flush_notices(client);
        self.set_deadline(limits);
        let mut rows_left = rows_max;
        // Rows given in batches that have been sent already; a statement that writes counts its rows itself.
        let mut given = 0;
        loop {
            let open = self.transaction()?;
            let mut cx = StatementContext {
                txn: &mut open.txn,
                params,
                session: &*context,
                catalog: &plan.catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes,
                spill: Some(context.spill()),
            };
            let sink: &mut dyn logstead_sql_exec::RowSink = &mut *client;
            let progress =
                run_with_limits(&signals, limits, execution.run(&mut cx, rows_left, sink)).await?;
            self.serve_functions(client).await?;
            match progress {
                Progress::Done { rows } => {
                    // It may have asked for its own end.
                    signals.statement().check()?;
                    let rows = match plan.command {
                        Command::Select => given + rows,
                        _ if rows_max > 0 && plan.gives_rows() => given + rows,
                        _ => rows,
                    };
                    context.rows.set(rows);
                    return Ok(RunOutcome::Done { rows });
                }
                Progress::Call => {
                    self.answer(execution, plan, client).await?;
                    limits = self.limits_left(limits)?;
                }
                Progress::Suspended => return Ok(RunOutcome::Suspended),
                Progress::Full { rows } => {
                    // Each run counts its work anew.
                    logstead_sql_types::interrupt::check_for_interrupts()?;
                    given += rows;
                    if rows_max > 0 {
                        rows_left = rows_left.saturating_sub(rows).max(1);
                    }
                    self.flush_batch(client).await?;
                }
            }
        }
    }

    /// Tells what functions have said with no client at hand.
    pub(super) fn flush_notices(&mut self, client: &mut dyn Client) {
        for (severity, fields) in std::mem::take(&mut self.buffered_notices) {
            client.notice(severity, &fields);
        }
    }

    /// Does what functions have asked for and could not do while they were evaluated.
    pub(super) async fn serve_functions(&mut self, client: &mut dyn Client) -> Result<()> {
        let context = Rc::clone(&self.context);
        if !context.restore_points.borrow().is_empty() {
            self.do_restore_points().await?;
        }
        if !context.restarts_asked.borrow().is_empty() {
            self.do_restarts().await?;
        }
        if let Some((number, limit)) = context.promotion_asked.take() {
            Box::pin(self.wait_for_promotion(number, limit)).await?;
        }
        if !context.warnings.borrow().is_empty() {
            for text in context.warnings.take() {
                self.warn(client, SqlState::new(b"01000"), &text);
            }
        }
        if context.advisory.borrow().has_work() {
            for text in self.wait_for_advisory_locks().await? {
                self.warn(client, SqlState::new(b"01000"), &text);
            }
        }
        if context.read_only_asked.take() {
            self.modes.read_only = true;
        }
        let asked = context.as_of_asked.borrow_mut().take();
        if let Some(value) = asked.filter(|value| !value.is_empty()) {
            // The statement fails if there is no such point.
            self.open_as_of(&value).await?;
        }
        if context.sleep_us.get() > 0 {
            self.sleep_as_asked().await?;
        }
        Ok(())
    }

    /// Checks deferred constraints: all of them, or those that SET CONSTRAINTS has just made immediate.
    pub(super) async fn check_deferred_constraints(
        &mut self,
        catalog: &Arc<Catalog>,
        all: bool,
        altered: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let mut limits = self.limits();
        let signals = Arc::clone(&self.signals);
        let context = Rc::clone(&self.context);
        let engine = self.worker.instance.engine.clone();
        context.catalog.replace(Arc::clone(catalog));
        user::enter(catalog);
        self.transaction()?.txn.depends_on(catalog.csn);
        loop {
            let open = self.transaction()?;
            let mut cx = StatementContext {
                txn: &mut open.txn,
                params: &[],
                session: &*context,
                catalog,
                engine: &engine,
                cancel: signals.statement(),
                events: &mut open.events,
                work_mem_bytes: usize::MAX >> 8,
                spill: Some(context.spill()),
            };
            match run_with_limits(
                &signals,
                limits,
                check_deferred_constraints(&mut cx, all, altered),
            )
            .await?
            {
                None => return Ok(()),
                Some(call) => {
                    self.answer_alone(call, catalog, client).await?;
                    limits = self.limits_left(limits)?;
                }
            }
        }
    }

    /// Sends a full batch. Outside a block it is final, so it waits until what it contains is Committed; inside a block
    /// rows are provisional until COMMIT returns.
    pub(super) async fn flush_batch(&mut self, client: &mut dyn Client) -> Result<()> {
        let was_working = self.working.take().is_some();
        if let Err(error) = self.settle().await {
            client.discard();
            return Err(error);
        }
        client.flush().await.map_err(|_| connection_lost())?;
        if was_working {
            self.begin_request();
        }
        Ok(())
    }
}

/// The connection broke in the middle of a statement; nobody will read this.
pub(super) fn connection_lost() -> SqlError {
    SqlError::new(SqlState::CONNECTION_FAILURE, "connection to client lost").fatal()
}

fn command_name(plan: &CachedPlan) -> &'static str {
    match plan.command {
        Command::Select if plan.writes() => "SELECT",
        Command::Select => "SELECT FOR UPDATE",
        Command::Insert => "INSERT",
        Command::Update => "UPDATE",
        Command::Delete => "DELETE",
        Command::Merge => "MERGE",
    }
}

/// The command tag of a planned statement: what it was, and how many rows.
#[derive(Clone, Copy)]
pub(super) struct CommandTag(pub(super) Command, pub(super) u64);

impl fmt::Display for CommandTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CommandTag(command, rows) = self;
        let name = match command {
            Command::Select => "SELECT",
            Command::Insert => "INSERT 0",
            Command::Update => "UPDATE",
            Command::Delete => "DELETE",
            Command::Merge => "MERGE",
        };
        write!(f, "{name} {rows}")
    }
}
