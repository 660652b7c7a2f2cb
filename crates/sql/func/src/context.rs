//! What functions need of the session, by topic.
//!
//! Owns: the traits that a session implements for functions, and [`FunctionContext`], by which the few functions that
//! need several of them are called. Values as text, dates and times need less: `IoContext` and `DateTimeContext`.
//!
//! Invariant: no method has a default. A context that has no sequences, say, answers [`FunctionContext::sequences`]
//! with an error that names them, which the statement fails with.

use crate::Rows;
use crate::catalog_function::{CatalogFunction, CatalogSet, ServerFunction};
use logstead_engine::Txn;
use logstead_sql_types::RelationId;
use logstead_sql_types::error::Result;
use logstead_sql_types::value::{Datum, IoContext};
use std::sync::Arc;

/// Random numbers.
pub trait RandomNumbers {
    /// Random 64 bits that nobody can foretell: gen_random_uuid(), salts.
    fn random_u64(&self) -> u64;
    /// Random 64 bits of random(): they follow from the session's seed, if it has one.
    fn session_u64(&self) -> u64;
    /// setseed().
    fn seed(&self, seed: u64);
}

/// Who the session is.
pub trait SessionInfo {
    /// current_database().
    fn database(&self) -> &str;
    /// session_user.
    fn session_user(&self) -> String;
    /// current_user.
    fn current_user(&self) -> String;
    /// pg_backend_pid().
    fn backend_pid(&self) -> i32;
    /// pg_trigger_depth().
    fn trigger_depth(&self) -> i32;
    /// pg_listening_channels().
    fn listening_channels(&self) -> Vec<Arc<str>>;
}

/// Sequences, by the rights of the current role.
pub trait Sequences {
    /// nextval of the sequence with this OID.
    fn nextval(&self, sequence: RelationId) -> Result<i64>;
    /// nextval for the column that the sequence belongs to, which takes no right on the sequence.
    fn own_number(&self, sequence: RelationId) -> Result<i64>;
    /// currval.
    fn currval(&self, sequence: RelationId) -> Result<i64>;
    /// lastval.
    fn lastval(&self) -> Result<i64>;
    /// setval.
    fn setval(&self, sequence: RelationId, value: i64, is_called: bool) -> Result<i64>;
}

/// What functions change of the session, or ask it to do.
pub trait SessionActions {
    /// set_config(name, value, is_local).
    fn set_setting(&self, name: &str, value: &str, local: bool) -> Result<String>;
    /// Asks to sleep when the statement has run.
    fn sleep(&self, us: u64) -> Result<()>;
    /// Asks for a restore point to be made or dropped when the statement has run. The statement fails if that does.
    fn restore_point(&self, request: RestorePointRequest) -> Result<()>;
    /// Gives a partition of all divided tables to an instance, where it stays; false if it is that one's already.
    /// Without an instance the partition is released; false if it was not held.
    fn move_partition(&self, partition: i32, instance: Option<i32>) -> Result<bool>;
    /// Asks for an instance to be restarted when the statement has run. The statement fails if that does.
    fn restart_instance(&self, instance: i32) -> Result<()>;
    /// Asks that the replica become the primary; with `wait` the statement waits so many seconds for what comes of it.
    fn promote(&self, wait: bool, wait_seconds: i32) -> Result<()>;
}

/// What a statement asks for that blocks: it is done when the statement has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestorePointRequest {
    /// Make one of this name.
    Create(String),
    /// Drop that of this name.
    Drop(String),
}

/// The snapshot of the running transaction.
pub trait Snapshots {
    /// pg_current_snapshot().
    fn current_snapshot(&self, txn: &mut Txn) -> Result<Datum>;
    /// pg_export_snapshot().
    fn export_snapshot(&self, txn: &mut Txn) -> Result<Datum>;
}

/// Functions that read the catalog. NULLs are already handled for strict ones.
pub trait CatalogFunctions {
    /// Calls one.
    fn catalog_call(&self, function: CatalogFunction, args: &[Datum]) -> Result<Datum>;
    /// Calls one that yields rows.
    fn catalog_rows(&self, function: CatalogSet, args: &[Datum]) -> Result<Rows>;
}

/// Functions that tell of the server or act on it. NULLs are already handled for strict ones.
pub trait ServerFunctions {
    /// Calls one.
    fn server_call(&self, function: ServerFunction, args: &[Datum]) -> Result<Datum>;
}

/// What functions need of the session. Implemented by the session, by what stands for one where there is none, and by
/// a fixed one in tests.
pub trait FunctionContext: IoContext {
    /// Random numbers.
    fn random(&self) -> Result<&dyn RandomNumbers>;
    /// Who the session is.
    fn session_info(&self) -> Result<&dyn SessionInfo>;
    /// Sequences.
    fn sequences(&self) -> Result<&dyn Sequences>;
    /// What functions change of the session.
    fn actions(&self) -> Result<&dyn SessionActions>;
    /// The running transaction's snapshot.
    fn snapshots(&self) -> Result<&dyn Snapshots>;
    /// Functions that read the catalog.
    fn catalog_functions(&self) -> Result<&dyn CatalogFunctions>;
    /// Functions that tell of the server or act on it.
    fn server_functions(&self) -> Result<&dyn ServerFunctions>;
}
