//! Tables, versions, indexes, transactions, garbage collection.
//!
//! The life of a write:
//! 1. [`Txn::insert`], [`Txn::update`], [`Txn::delete`] install an uncommitted version at the top of the row's chain
//!    (which is the row lock), maintain the indexes, and append a record to the transaction's own buffer.
//! 2. [`Txn::precommit`] takes room in the worker's lane, sets the transaction Committing, draws its CSN, copies the
//!    entry into the lane, and flips it to Precommitted: its versions are visible and its row locks free, before
//!    anything is durable.
//! 3. [`Worker::flush`] writes the lane's block; the home's completion moves the lane's lowest CSN, the horizon is
//!    computed again, and [`Engine::acknowledged`] wakes who waited for it. Only then does a client hear of it.
//! 4. [`Worker::collect_garbage`] unlinks what no snapshot can see and the horizon has passed.
//!
//! Invariants:
//! - A snapshot sees exactly the transactions whose CSN is below it (T4).
//! - Nothing is collected or used again before what superseded it is below the horizon (T1).
//! - No operation blocks: where another transaction is in the way, the caller gets a [`Blocker`] to await.
//!
//! It knows no SQL, types or names: rows are columns of bytes, indexes get their keys from a [`KeyExtractor`]. It knows
//! no runtime: whoever waits is a [`std::task::Waker`].
#![deny(unsafe_code)]

pub mod delta;
mod engine;
mod error;
mod garbage;
mod index;
mod precommit;
mod replay;
pub mod row;
mod row_lock;
mod rows;
mod savepoint;
mod snapshots;
mod state;
mod stats;
mod table;
mod table_lock;
mod txn;
#[allow(
    unsafe_code,
    reason = "lock-free version chains: the one module with unsafe code"
)]
mod version;
mod wait;
mod worker;
mod write;

pub use engine::{Acknowledged, Engine, EngineOptions};
pub use error::{CommitError, OpenError, ReplayError, WriteError};
pub use index::{Index, IndexCursor, KeyExtractor, KeyKind};
pub use logstead_commit::LogFailed;
pub use logstead_wal::{FlushMode, FlushOutcome};
pub use precommit::{Receipt, TryCommitError};
pub use replay::RecoveryReport;
pub use row::{RowBuilder, RowError, RowRef};
pub use row_lock::RowLock;
pub use savepoint::SavepointId;
pub use state::TxnId;
pub use stats::Stats;
pub use table::Table;
pub use table_lock::TableLock;
pub use txn::{Isolation, Outcome, Row, ScanCursor, Txn, VersionId, View};
pub use version::Guard;
pub use wait::{Blocker, LockWait, WaitError};
pub use worker::Worker;
