//! What a statement is given of its session, by topic.
//!
//! Owns: the traits that a session implements for binding, planning, running and DDL, beyond what functions need
//! ([`FunctionContext`]), [`Context`], by which statements are given them, and the rows of views of sessions. Where
//! there is no session, [`partial`] makes a context of what there is.
//!
//! Invariant: no method has a default that stands for an answer. A context that has no server, say, answers
//! [`Context::server`] with an error that names it.

pub mod namespace;
pub mod partial;

use logstead_sql_func::{AdvisoryLockScope, FunctionContext};
use logstead_sql_types::error::Result;
use logstead_sql_types::value::Datum;
use logstead_sql_types::{DatabaseOid, RelationId, RoleId, TypeId};
use logstead_types::Csn;
use namespace::NamespaceContext;
use std::future::Future;
use std::pin::Pin;

/// As whom a statement is run.
pub trait RoleContext {
    /// The role that is session_user.
    fn session_role(&self) -> RoleId;
    /// The role that is current_user: what it may do, a statement may do.
    fn current_role(&self) -> RoleId;
    /// From now on what is run is run as this role, by its privileges and as its current_user; without one as the
    /// session's. Which it was before.
    fn act_as(&self, role: Option<RoleId>) -> Option<RoleId>;
    /// What errors may tell the current role of the rows of a table.
    fn detail_visibility(&self, relation: &crate::Relation) -> crate::privileges::DetailVisibility;
    /// `row_security`: who is subject to policies is, instead of being refused.
    fn row_security(&self) -> bool;
}

/// Catalogs beside the one that a statement is bound with.
pub trait CatalogContext {
    /// The catalog as it is now, whatever the statement reads.
    fn present_catalog(&self) -> Option<std::sync::Arc<crate::Catalog>>;
    /// The catalog of a database as it is now.
    fn catalog_of(&self, database: DatabaseOid) -> Option<std::sync::Arc<crate::Catalog>>;
    /// A text that is kept, with the names that functions of users have now.
    fn routines_shown(&self, text: String) -> String;
    /// A column of an index as errors name it, an expression with the names that its functions and types have now.
    fn index_column_shown(&self, column: &crate::IndexColumn, table: &crate::Relation) -> String;

    /// The catalog as it is now, if `catalog` is one of the past.
    fn present_of(&self, catalog: &crate::Catalog) -> Option<std::sync::Arc<crate::Catalog>> {
        catalog.past.as_ref().and_then(|_| self.present_catalog())
    }
}

/// What the session wants of plans.
pub trait PlannerOptions {
    /// Which ways of reading and joining the session wants.
    fn scans(&self) -> crate::settings::PlannerSettings;
    /// `work_mem`, for the planner; what runs has its own.
    fn work_mem_bytes(&self) -> usize;
    /// How many times `work_mem` a hash table may hold.
    fn hash_mem_multiplier(&self) -> f64;
    /// Is a cursor's query being planned? Its volatile functions are run when their rows are fetched, with what there
    /// is to be seen then.
    fn plans_cursor(&self) -> bool;
    /// An error if the statement has been asked to end: for work that goes on for long without waiting.
    fn interrupted(&self) -> Result<()>;
}

/// What the reply of a statement rests on beside what it has read.
pub trait ReplyDependencies {
    /// The states of sequences were read: what is told rests on their records.
    fn reads_sequences(&self);
    /// What is told rests on all commits below this one.
    fn rests_on_commits_below(&self, next: Csn);
}

/// Advisory locks.
pub trait AdvisoryLocking {
    /// Asks for an advisory lock: the value of the call, or what to wait for.
    fn ask_advisory_lock(
        &self,
        scope: AdvisoryLockScope,
        args: &[Datum],
    ) -> Result<Result<Datum, AdvisoryLockRequest>>;
    /// Waits for an advisory lock that was not free; the call that wanted it is made again then.
    fn wait_for_advisory_lock(
        &self,
        wanted: AdvisoryLockRequest,
    ) -> Pin<Box<dyn Future<Output = Result<()>> + '_>>;
}

/// The session's own objects, for the views that show them.
pub trait SessionObjects {
    /// All settings: pg_settings.
    fn settings(&self) -> Vec<crate::settings::SettingRow>;
    /// The session's prepared statements: pg_prepared_statements.
    fn prepared_statements(&self) -> Vec<PreparedRow>;
    /// The session's cursors: pg_cursors.
    fn cursors(&self) -> Vec<CursorRow>;
}

/// The server around the session.
pub trait ServerContext {
    /// When a table was analyzed by itself.
    fn autoanalyzed(&self, table: RelationId) -> Option<crate::AutoanalyzeEntry>;
    /// Ends all sessions in a database: DROP DATABASE ... WITH (FORCE).
    fn terminate_sessions(&self, database: DatabaseOid) -> Result<()>;
    /// What is in the files of settings: pg_file_settings.
    fn file_settings(&self) -> Result<Vec<crate::settings::FileSetting>>;
    /// Advisory locks of all sessions: pg_locks.
    fn advisory_locks(&self) -> Vec<AdvisoryLockRow>;
    /// All sessions of the server: pg_stat_activity.
    fn activity(&self) -> Vec<BackendActivity>;
    /// What has held the workers: logstead_workers.
    fn workers_held(&self) -> Vec<WorkerRow>;
    /// What instances have and do: logstead_instances.
    fn instances(&self) -> Vec<InstanceRow>;
    /// pg_stat_statements.
    fn statement_statistics(&self) -> Vec<StatementRow>;
}

/// What statements need of the session. Implemented by the session, by what stands for one where there is none, and by
/// a fixed one in tests.
pub trait Context:
    FunctionContext + RoleContext + CatalogContext + PlannerOptions + NamespaceContext
{
    /// What the reply rests on.
    fn reply_dependencies(&self) -> Result<&dyn ReplyDependencies>;
    /// Advisory locks.
    fn advisory_locking(&self) -> Result<&dyn AdvisoryLocking>;
    /// The session's own objects.
    fn session_objects(&self) -> Result<&dyn SessionObjects>;
    /// The server around the session.
    fn server(&self) -> Result<&dyn ServerContext>;
}

/// An advisory lock that is not free, wanted by an expression that is given up until it is.
#[derive(Clone, Copy, Debug)]
pub struct AdvisoryLockRequest {
    /// Of two numbers the first, of one the higher half.
    pub class: u32,
    /// The other.
    pub object: u32,
    /// 1: one bigint; 2: two integers.
    pub kind: i16,
    /// It goes with other shared ones.
    pub shared: bool,
    /// It is the transaction's.
    pub of_transaction: bool,
}

/// A row of `pg_locks` about an advisory lock.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the columns of pg_locks")]
pub struct AdvisoryLockRow {
    pub database: DatabaseOid,
    pub class: u32,
    pub object: u32,
    /// `objsubid`
    pub kind: i16,
    pub pid: i32,
    pub mode: &'static str,
    pub granted: bool,
}

/// A row of `pg_prepared_statements`; the time in microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the columns of pg_prepared_statements")]
pub struct PreparedRow {
    pub name: String,
    pub statement: String,
    pub prepared_at: i64,
    pub types: Vec<TypeId>,
    pub from_sql: bool,
    /// All of them with the one plan for all parameters.
    pub runs: i64,
}

/// A row of `pg_cursors`; the time in microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the columns of pg_cursors")]
pub struct CursorRow {
    pub name: String,
    pub statement: String,
    pub holdable: bool,
    pub binary: bool,
    pub scrollable: bool,
    pub created: i64,
    pub current: CurrentRow,
}

/// What WHERE CURRENT OF finds of a cursor.
#[derive(Clone, Debug, Default)]
pub struct CurrentRow {
    /// Its transaction has committed.
    pub persisted: bool,
    /// It stands on a row.
    pub on_row: bool,
    /// Its query locks rows.
    pub locks: bool,
    /// The tables whose rows it tells, with the number of the current row; none where an outer join has none.
    pub rows: Vec<(RelationId, Option<i64>)>,
}

/// A row of `logstead_workers`.
#[derive(Clone, Debug)]
pub struct WorkerRow {
    /// The worker.
    pub worker: i32,
    /// How often one session held it for longer than a tenth of a second.
    pub held: u64,
    /// How long at most.
    pub longest: std::time::Duration,
    /// When that was found the last time, by which session, and for how long.
    pub last: Option<(i64, i32, std::time::Duration)>,
    /// Its statement.
    pub query: Option<String>,
    /// Transactions that are undone behind their sessions, and the writes of theirs that are left.
    pub undone: u64,
    /// See there.
    pub undone_writes: u64,
}

/// A row of `logstead_instances`.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the columns of logstead_instances")]
pub struct InstanceRow {
    pub instance: i32,
    /// Cores that its workers are pinned to, as far as that is told.
    pub cores: Vec<usize>,
    pub workers: u64,
    pub lanes: u64,
    pub partitions: u64,
    /// Those of them that were moved by hand, and stay.
    pub pinned: u64,
    /// Chunks of rows of its partitions that are in memory, and about how much they take.
    pub chunks_in_memory: u64,
    pub row_bytes: u64,
    pub sessions: u64,
    pub transactions_inside: u64,
    pub transactions_across: u64,
    pub foreign_accesses: u64,
    pub sessions_in: u64,
    pub sessions_out: u64,
    pub partitions_in: u64,
    pub partitions_out: u64,
    /// The most that its lanes' buffers take.
    pub buffer_bytes: u64,
    /// Chunks of its partitions that checkpoints have stored.
    pub checkpoint_chunks: u64,
    pub is_restarting: bool,
    pub restarts: u64,
    /// Of the last restart: until all of it was served again, and until all of it was in memory.
    pub takeover: Option<std::time::Duration>,
    pub loaded: Option<std::time::Duration>,
}

/// A row of `pg_stat_activity`; times in microseconds since 2000-01-01 UTC.
#[derive(Clone, Debug, Default)]
#[allow(missing_docs, reason = "the columns of pg_stat_activity")]
pub struct BackendActivity {
    pub pid: i32,
    pub database: DatabaseOid,
    pub database_name: String,
    /// None while the session begins.
    pub role: Option<RoleId>,
    pub user: String,
    pub application_name: Option<String>,
    pub client_address: Option<String>,
    pub client_port: Option<i32>,
    pub backend_start: Option<i64>,
    pub transaction_start: Option<i64>,
    pub query_start: Option<i64>,
    pub state_change: Option<i64>,
    pub waits_for_client: bool,
    /// The kind of lock that is waited for.
    pub waits_for_lock: Option<&'static str>,
    /// active, idle, idle in transaction ...
    pub state: Option<&'static str>,
    pub query: String,
    /// Of a session that sends the log to a replica.
    pub replication: Option<ReplicationRow>,
}

/// How far a replica has come that follows by a stream: a part of a row of `pg_stat_replication`. Times are in
/// microseconds, since 2000 where they are moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplicationRow {
    /// The highest horizon that was sent.
    pub sent: Csn,
    /// The replica's snapshots see everything below.
    pub replayed: Csn,
    /// How long it took from the sending of a horizon until the replica told that it shows it.
    pub lag_us: Option<i64>,
    /// When the replica has sent its last message, by its clock.
    pub reply_time: Option<i64>,
    /// Which of [`ReplicaHoldReport`](logstead_engine::ReplicaHoldReport)'s is its.
    pub holder: u64,
}

/// A row of `pg_stat_statements`; times in milliseconds.
#[derive(Clone, Debug)]
#[allow(missing_docs, reason = "the columns of pg_stat_statements")]
pub struct StatementRow {
    pub role: RoleId,
    pub database: DatabaseOid,
    /// None, as the query: it is none of the asker's business.
    pub query_id: Option<i64>,
    pub query: Option<std::sync::Arc<str>>,
    pub calls: i64,
    pub rows: i64,
    pub total_ms: f64,
    pub min_ms: f64,
    pub max_ms: f64,
    pub mean_ms: f64,
    pub deviation_ms: f64,
}
