//! Sessions: one client's conversation with the database.
//!
//! Owns: named statements and portals, the transaction block, settings, and the rule of what may be told when. A
//! session lives on one worker as a task; it never blocks, it awaits.
//!
//! Invariants:
//! - Replies leave only after [`Session::settle`]: everything they tell is Committed (results and errors alike, T15),
//!   unless the session has said that it does not care (`synchronous_commit = off`, `reply_dependencies`).
//! - A plan runs only while its tables are locked and the catalog is the one it was made with; the catalog's CSN is
//!   among the transaction's dependencies (T10).
//! - Whatever ends a session (an error, a broken connection, a panic) aborts its transaction: dropping does it.

#![forbid(unsafe_code)]

mod activity;
mod advisory;
mod advisory_wait;
mod alter_system;
mod as_of;
mod as_of_catalogs;
mod as_of_snapshot;
mod auto_parameterize;
mod autoanalyze;
mod autoanalyze_history;
mod backend_status;
mod background_undo;
mod cached_plan;
mod capturing_client;
mod checkpoint;
mod checkpoint_requests;
mod client;
mod context;
mod copy_binary;
mod copy_format;
mod copy_in;
mod copy_options;
mod copy_out;
mod copy_reader;
mod create_as;
mod current_of;
mod cursor;
mod database;
mod ddl;
mod explain;
mod exported_snapshots;
mod extended;
mod fill_index_expressions;
mod function_call;
mod instance;
mod instance_restart;
mod instance_rows;
mod instance_status;
mod large_object_descriptors;
mod large_objects;
mod limits;
mod mailbox;
mod notify;
mod open_transaction;
mod pause;
mod permissions;
mod pg_stat_statements;
mod placement;
mod plan_cache;
mod portal;
mod prepared;
mod promotion;
mod random;
mod replica;
mod replication;
mod reply_dependencies;
mod routine;
mod run;
mod scheduler;
mod schema_elements;
mod serialize;
mod serialized_session;
mod session_move;
mod set;
mod set_constraints;
mod signals;
mod sleep;
mod snapshot;
mod startup;
mod statement_statistics;
mod task;
mod temporary;
mod transaction;
mod transaction_modes;
mod turns;
mod undo;
mod unwind;
mod utility;
mod watchdog;
mod worker_sessions;
mod worker_stalls;
mod xid;

pub use autoanalyze::analyze_changed;
pub use client::{Client, ConnectionLost, CopyInput, LocalFuture};
pub use context::SessionContext;
pub use function_call::FunctionCallRequest;
pub use instance::Instance;
pub use instance_status::MovingPlace;
pub use mailbox::Notification;
pub use pause::{Encryption, HandoverTarget, PauseEvent, PausedSession, SerializedClient};
pub use portal::BindRequest;
pub use promotion::Promotion;
pub use replication::{FollowedLog, ReplicationCommand, ReplicationSender, SystemIdentity};
pub use serialized_session::SerializedSession;
pub use session_move::MovingSession;
pub use signals::Signals;
pub use startup::StartupRequest;
pub use task::Task;
pub use watchdog::WatchdogState;
pub use worker_sessions::WorkerSessions;

use activity::RunningStatement;
use as_of_snapshot::AsOfSnapshot;
use background_undo::{AbortedSubtransaction, PriorTransaction};
use cached_plan::{PermittedPlan, Statement};
use cursor::Cursors;
use instance_status::SessionAtWorker;
use logstead_sql_catalog::{DatabaseConnection, TempObjects};
use logstead_sql_exec::Execution;
use logstead_sql_parse::ast::{DiscardMode, ReindexTarget, Stmt, TransactionStmtKind};
use logstead_sql_plan::OutputColumn;
use logstead_sql_types::DatabaseOid;
use logstead_sql_types::error::{Result, SqlError};
use logstead_sql_types::memory;
use logstead_sql_types::value::Datum;
use logstead_types::{SqlState, TableId};
use open_transaction::{BlockState, OpenTransaction, Savepoint};
use placement::SessionPlacement;
use portal::Portal;
use reply_dependencies::ReplyDependencies;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use transaction::only_in_block;
use transaction_modes::TransactionModes;
use worker_sessions::{WaitingGuard, WorkingGuard};

/// What a statement that is not a planned query answers.
pub(crate) enum Reply {
    /// A command tag.
    Tag(String),
    /// Rows and then the tag.
    Rows {
        columns: Vec<OutputColumn>,
        rows: Vec<Vec<Datum>>,
        tag: String,
    },
}

impl Reply {
    pub(crate) fn tag(tag: &str) -> Reply {
        Reply::Tag(tag.to_owned())
    }
}

/// One client's session.
pub struct Session {
    worker: Rc<WorkerSessions>,
    context: Rc<SessionContext>,
    signals: Arc<Signals>,
    secret: i32,
    database: DatabaseOid,
    block: BlockState,
    modes: TransactionModes,
    open: Option<OpenTransaction>,
    /// Its temporary objects.
    temporary: Rc<TempObjects>,
    /// The past that transactions read, if `logstead.as_of` names one.
    as_of_snapshot: Option<Rc<AsOfSnapshot>>,
    /// The past that the statement at hand names with AS OF: the next transaction is its own, and takes this.
    as_of_clause: Option<Rc<AsOfSnapshot>>,
    savepoints: Vec<Savepoint>,
    portals: HashMap<String, Portal, foldhash::fast::RandomState>,
    /// Portals in the middle of their rows.
    suspended: usize,
    cursors: Cursors,
    /// The statement came in a simple query: what it answers is described with it, in text.
    in_simple_query: bool,
    /// What unsent replies wait for.
    reply_dependencies: ReplyDependencies,
    working: Option<WorkingGuard>,
    /// The statement whose time is being counted.
    running: Option<RunningStatement>,
    /// Bodies of routines that are being run, one in another.
    routines: usize,
    /// The bodies that run, the innermost last.
    frames: Vec<routine::Frame>,
    /// How deep the stack was when the outermost of them began.
    stack_begins: usize,
    /// How much around them goes on in the transaction: they may not end it unless nothing does.
    atomic: usize,
    /// How many have begun.
    bodies: u32,
    /// Functions among them that are not volatile.
    stable: usize,
    /// Tables that the statements around them read or write.
    in_use: Vec<TableId>,
    /// What functions have said with no client at hand.
    buffered_notices: Vec<(&'static str, logstead_sql_types::error::ErrorFields)>,
    /// Names that cursors of bodies have been given so far.
    unnamed_cursors: u32,
    /// Bodies of functions that are ready to be run.
    functions: routine::RoutineCache,
    sql_functions: routine::SqlFunctions,
    /// When the first message came of an extended query that is not over, if its time is limited.
    extended_since: Option<i64>,
    /// Its last transaction, if that may still be undone behind it.
    prior: Option<Rc<PriorTransaction>>,
    /// The transaction that is open, while the part of it that failed behind a savepoint is undone.
    subtransaction: Option<Rc<AbortedSubtransaction>>,
    /// It is one of a replication connection.
    replication: bool,
    /// Where its transactions lead; none if sessions stay where they are.
    placement: Option<Box<SessionPlacement>>,
    /// It goes on at another worker: what others have of it stays.
    leaves: bool,
    /// It is counted there, where there are several instances.
    at_worker: Option<SessionAtWorker>,
    /// It leaves its database last of all. One of a replication connection is in none.
    entered: Option<DatabaseConnection>,
}

impl Session {
    /// Opens a session, or says why not (28000, 3D000, 53300, a bad setting).
    pub fn open(worker: &Rc<WorkerSessions>, request: StartupRequest) -> Result<Session> {
        let instance = Arc::clone(&worker.instance);
        if request.user.is_empty() {
            return Err(SqlError::new(
                SqlState::INVALID_AUTHORIZATION_SPECIFICATION,
                "no PostgreSQL user name specified in startup packet",
            ));
        }
        let place = instance.admit(&worker.scheduler)?;
        let pid = place.pid;
        // From here on the place must be given back.
        let session = Session::admitted(worker, request, place, None);
        if session.is_err() {
            instance.forget(pid);
        }
        session.map(|session| session.at_its_worker())
    }

    /// Waits until the database that is asked for may be entered: while it is copied nobody comes into it.
    pub async fn until_open(worker: &Rc<WorkerSessions>, request: &StartupRequest) {
        let name = match request.database.as_str() {
            "" => &request.user,
            name => name,
        };
        database::until_open(&worker.instance, name).await;
    }

    /// The context shared with whoever prints values.
    pub fn context(&self) -> Rc<SessionContext> {
        Rc::clone(&self.context)
    }

    /// Process number and secret for cancel requests.
    pub fn key(&self) -> (i32, i32) {
        (self.context.pid, self.secret)
    }

    /// How the world reaches this session.
    pub fn signals(&self) -> Arc<Signals> {
        Arc::clone(&self.signals)
    }

    /// Settings a new client is told.
    pub fn reported(&self) -> Vec<(&'static str, String)> {
        self.context.settings.borrow().reported().collect()
    }

    /// Reported settings that changed since the last call.
    pub fn take_changed_settings(&mut self) -> Vec<(&'static str, String)> {
        self.context.settings.borrow_mut().take_changed()
    }

    /// Transaction status for ReadyForQuery.
    pub fn status(&self) -> u8 {
        match self.block {
            BlockState::None => b'I',
            BlockState::Open => b'T',
            BlockState::Failed => b'E',
        }
    }

    /// Is a transaction open that its client may still end?
    pub fn in_transaction(&self) -> bool {
        self.block != BlockState::None || self.open.is_some()
    }

    /// How long the client may stay silent now, and the error that ends the session then.
    pub fn idle_limit(&self) -> Option<(Duration, SqlError)> {
        let settings = self.context.settings.borrow();
        let typed = settings.typed();
        let (ms, code, message) = if self.block == BlockState::None {
            (
                typed.idle_session_ms,
                SqlState::new(b"57P05"),
                "terminating connection due to idle-session timeout",
            )
        } else {
            (
                typed.idle_in_transaction_ms,
                SqlState::new(b"25P03"),
                "terminating connection due to idle-in-transaction timeout",
            )
        };
        (ms > 0).then(|| {
            (
                Duration::from_millis(ms),
                SqlError::new(code, message).fatal(),
            )
        })
    }

    /// A request has arrived: the worker counts this session as busy until [`Session::end_request`].
    pub fn begin_request(&mut self) {
        if self.working.is_none() {
            self.working = Some(WorkingGuard::new(&self.worker));
        }
    }

    /// The request is done as far as this session can: what is left is waiting.
    pub fn end_request(&mut self) {
        self.working = None;
    }

    /// Waits until everything that unsent replies tell is Committed, but for what they told under `synchronous_commit =
    /// off`. Rows of an open block are provisional until COMMIT returns; those of a statement outside a block, also
    /// before Sync has ended its transaction, are final. That a lock is had is final, too, wherever it is told: it is
    /// acted upon elsewhere, so what its former holder did is waited for.
    pub async fn settle(&mut self) -> Result<()> {
        self.depend_on_lock_holders();
        if self.block == BlockState::None
            && let Some(open) = &self.open
        {
            let synchronous = self.context.synchronous.get();
            self.reply_dependencies
                .merge(&open.txn.commit_wait(), synchronous);
            self.reply_dependencies
                .merge(&self.context.depends_on.borrow(), synchronous);
        }
        if !self.reply_dependencies.waits_for().is_none() {
            let engine = &self.worker.instance.engine;
            // Kept until it is over: who gives up this wait waits again.
            let waits_for = self.reply_dependencies.waits_for().clone();
            if !engine.is_committed(&waits_for) {
                let _count = WaitingGuard::new(&self.worker);
                engine.acknowledged(waits_for).await.map_err(|error| {
                    SqlError::new(
                        SqlState::TRANSACTION_RESOLUTION_UNKNOWN,
                        format!("the log failed before the transaction was durable; its outcome is unknown: {error}"),
                    )
                    .fatal()
                })?;
            }
            self.reply_dependencies.settled();
        }
        Ok(())
    }

    /// Tells the client of an error and ends what it ends: the transaction, or the part since the last savepoint.
    pub fn fail(&mut self, error: SqlError, client: &mut dyn Client) {
        self.extended_since = None;
        self.forget_running();
        self.fail_transaction();
        client.error(&error);
    }

    /// The session says goodbye: its transaction is rolled back and its locks are free, then the last replies are
    /// settled.
    pub async fn finish(&mut self) -> Result<()> {
        self.undo_all().await;
        self.rollback();
        self.settle().await
    }

    /// Ends the session: the transaction is rolled back, its locks are free. At once, whatever it has written
    /// ([`Session::undo_all`]).
    pub fn close(mut self) {
        self.rollback();
    }

    /// Fixes the statement's start time and forgets late cancel requests.
    fn begin_statement(&mut self) {
        self.context
            .statement_time
            .set(self.worker.instance.env.clock.now_micros_since_2000());
        if self.open.is_none() && self.block == BlockState::None {
            // Planning may look at it: 'now' is a constant.
            let now = self.context.statement_time.get();
            self.context.transaction_time.set(now);
        }
        self.context.in_block.set(self.block != BlockState::None);
        self.follow_configuration();
        if self.worker.instance.instances.is_some()
            && self.open.is_none()
            && self.subtransaction.is_none()
        {
            // In this order: what a restart asks of the former transaction comes before, or not at all.
            self.context.live.has_no_transaction();
            self.signals.forget_transaction();
        }
        self.signals.begin_statement();
        memory::charge_to(self.worker.instance.engine.memory());
        memory::release_dropped();
        task::statement_begins(&self.signals, self.context.pid);
        self.routines = 0;
        self.frames.clear();
        self.atomic = 0;
        self.stable = 0;
        self.context.act_as(None);
        self.in_use.clear();
        self.context.level.set(self.savepoints.len());
        // Whatever it is, it has a time: what runs beside the planned queries looks at it, too.
        self.set_deadline(self.limits());
        if !self.is_held_by_as_of() {
            self.forget_clause();
        }
    }

    /// A simple query: all statements of `text`. Errors of statements are answered here; `Err` means the session ends.
    pub async fn simple_query(&mut self, text: &str, client: &mut dyn Client) -> Result<()> {
        self.drop_portal("");
        self.in_simple_query = true;
        self.extended_since = None;
        match self.run_text(text, client).await {
            Err(error) if !error.fields().fatal => {
                self.unwind().await;
                self.fail(error, client);
            }
            result => result?,
        }
        self.rest();
        Ok(())
    }

    /// The client has its answer and may think for long: a READ COMMITTED transaction keeps no snapshot meanwhile,
    /// unless a portal is to go on.
    fn rest(&mut self) {
        memory::release_dropped();
        self.signals.end_statement();
        self.rest_snapshot();
    }

    fn rest_snapshot(&mut self) {
        if self.suspended == 0
            && !self.cursors.are_running()
            && let Some(open) = &mut self.open
        {
            open.txn.end_statement();
        }
    }

    async fn run_text(&mut self, text: &str, client: &mut dyn Client) -> Result<()> {
        let conforming = self.conforming(text, client)?;
        let text = conforming.as_deref().unwrap_or(text);
        if self.run_parameterized(text, client).await? {
            return Ok(());
        }
        let parsed = self.worker.caches.borrow_mut().parse(text)?;
        self.tell_of_truncated(&parsed, client);
        let count = parsed.statements.len();
        if count == 0 {
            client.empty_query();
        }
        for index in 0..count {
            self.begin_statement();
            let statement = Statement::new(Rc::clone(&parsed), Some(index), Vec::new());
            self.report_activity(text);
            self.begin_timing(&statement);
            self.refuse_in_failed_block(&statement)?;
            self.refuse_beside_as_of()?;
            if statement.needs_catalog() {
                self.follow_as_of().await?;
                self.follow_token().await?;
            }
            let in_implicit_block = count > 1;
            self.context
                .in_block
                .set(in_implicit_block || self.block != BlockState::None);
            let reply = self
                .run_simple(&statement, in_implicit_block, client)
                .await?;
            // A statement outside a block is committed before its tag says that it is done.
            if self.block == BlockState::None && (!in_implicit_block || index + 1 == count) {
                self.commit(client).await?;
            }
            match reply {
                Reply::Tag(tag) => client.command_complete(&tag),
                Reply::Rows { columns, rows, tag } => {
                    client.row_description(&columns, &[]);
                    portal::send_buffered(columns, rows.into(), Some(tag), &[], 0, client)?;
                }
            }
            self.worker.step();
        }
        Ok(())
    }

    async fn run_simple(
        &mut self,
        statement: &Statement,
        implicit: bool,
        client: &mut dyn Client,
    ) -> Result<Reply> {
        self.enter_as_of(statement, &[]).await?;
        if !statement.is_query() {
            self.refuse_in_block(statement, implicit)?;
            return self.run_utility(statement, &[], &[], client).await;
        }
        let plan = self.prepare_run(statement).await?;
        let rows = self.run_to_end(&plan, &[], client).await?;
        Ok(Reply::Tag(run::CommandTag(plan.command, rows).to_string()))
    }

    /// Describes and runs a plan; the number of rows given or written.
    async fn run_to_end(
        &mut self,
        plan: &PermittedPlan,
        params: &[Datum],
        client: &mut dyn Client,
    ) -> Result<u64> {
        let mark = client.mark();
        if plan.gives_rows() {
            client.row_description(&plan.columns, &[]);
        }
        client.start_rows(&plan.columns, &[]);
        let mut execution = Execution::new(Arc::clone(&plan.prepared));
        let ran = self.run(plan, &mut execution, params, true, 0, client);
        let ran = ran.await;
        // PostgreSQL tells of what a statement has changed when all of it is.
        if ran.is_err() && plan.writes() {
            client.take_back(mark);
        }
        match ran? {
            run::RunOutcome::Done { rows } => Ok(rows),
            run::RunOutcome::Suspended => Ok(0),
        }
    }

    /// 25P02 unless the statement ends the failed block.
    fn refuse_in_failed_block(&self, statement: &Statement) -> Result<()> {
        if self.block != BlockState::Failed {
            return Ok(());
        }
        let ends_it = statement
            .parsed()
            .is_none_or(|parsed| match &**parsed.statement {
                Stmt::Transaction(transaction) => matches!(
                    transaction.kind,
                    TransactionStmtKind::Commit { .. }
                        | TransactionStmtKind::Rollback { .. }
                        | TransactionStmtKind::RollbackTo(_)
                        | TransactionStmtKind::Prepare(_)
                ),
                _ => false,
            });
        if ends_it {
            return Ok(());
        }
        Err(aborted())
    }

    /// 25001 for what cannot run inside a block.
    fn refuse_in_block(&self, statement: &Statement, implicit: bool) -> Result<()> {
        let Some(parsed) = statement.parsed() else {
            return Ok(());
        };
        let stmt: &Stmt = &parsed.statement;
        let what = match stmt {
            Stmt::DeclareCursor(declare) if !declare.hold => {
                // What is wrong with its words is told first.
                cursor::DeclareCursor::of(declare, &statement.text.text)?;
                return match self.block {
                    BlockState::None if !implicit || !self.in_simple_query => {
                        Err(only_in_block("DECLARE CURSOR"))
                    }
                    _ => Ok(()),
                };
            }
            Stmt::Createdb(_)
            | Stmt::Dropdb(_)
            | Stmt::AlterSystem(_)
            | Stmt::Discard(DiscardMode::All) => stmt.tag(),
            Stmt::AlterDatabase(alter) if logstead_sql_ddl::moves_database(alter) => stmt.tag(),
            Stmt::Index(index) if index.concurrent => "CREATE INDEX CONCURRENTLY",
            Stmt::Drop(drop) if drop.concurrent => "DROP INDEX CONCURRENTLY",
            Stmt::Vacuum(vacuum) if vacuum.is_vacuumcmd => "VACUUM",
            Stmt::Reindex(reindex) => match &reindex.target {
                ReindexTarget::Schema(_) => "REINDEX SCHEMA",
                ReindexTarget::System(_) | ReindexTarget::Database(_) => "REINDEX DATABASE",
                _ if logstead_sql_ddl::is_concurrent_reindex(reindex)? => "REINDEX CONCURRENTLY",
                _ => return Ok(()),
            },
            _ => return Ok(()),
        };
        let message = if self.block != BlockState::None || (implicit && self.in_simple_query) {
            format!("{what} cannot run inside a transaction block")
        } else if implicit {
            format!("{what} cannot be executed within a pipeline")
        } else {
            return Ok(());
        };
        Err(SqlError::new(SqlState::ACTIVE_SQL_TRANSACTION, message))
    }
}

/// 25P02.
pub(crate) fn aborted() -> SqlError {
    SqlError::new(
        SqlState::IN_FAILED_SQL_TRANSACTION,
        "current transaction is aborted, commands ignored until end of transaction block",
    )
}

impl Drop for Session {
    fn drop(&mut self) {
        if self.leaves {
            return;
        }
        self.take_back();
        self.unlisten_all();
        self.forget_advisory_locks();
        // Nothing if its transaction has ended as it should.
        self.transaction_over(false);
        self.worker.instance.forget(self.context.pid);
    }
}
