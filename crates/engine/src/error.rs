//! Why operations fail. The engine knows no SQLSTATE: what a client is told of each is decided in `sql-catalog`
//! (`write_errors`).

use logstead_commit::LogFailed;
use logstead_types::{Csn, IndexId, Rid};
use logstead_wal::number_limits::NumbersExhausted;
use logstead_wal::recovery::RecoveryError;
use logstead_wal::recovery::follow::FollowError;

use crate::fault_error::FaultError;
use crate::index::AbsentIndexLeaf;
use crate::memory::OutOfMemory;
use crate::page_fault::PageFault;
use crate::row::RowError;
use crate::wait_cause::LockConflict;

/// Why a write did not happen. Whatever the reason, the write has left nothing behind.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    /// Another transaction holds what is needed: wait for the blocker, look again, call again.
    #[error("blocked by another transaction")]
    Blocked(LockConflict),
    /// Something that is needed is not in memory: wait for it, call again.
    #[error(transparent)]
    Absent(#[from] PageFault),
    /// Something that is needed cannot be brought into memory.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// READ COMMITTED: the row has a newer committed version than the one given: read the newest, check again what
    /// made you choose it, call again.
    #[error("the row was changed by another transaction")]
    Changed,
    /// READ COMMITTED: the row was deleted by another transaction, or by an earlier statement of this one.
    #[error("the row was deleted")]
    Gone,
    /// This statement has changed or deleted the row already.
    #[error("the row was already changed by this statement")]
    SelfModified,
    /// A statement inside of this one has changed or deleted the row.
    #[error("the row was changed by a statement inside of this one")]
    Overtaken,
    /// REPEATABLE READ: the row was changed after the snapshot (40001).
    #[error("could not serialize access due to concurrent update")]
    Serialization,
    /// REPEATABLE READ: the row was deleted after the snapshot (40001).
    #[error("could not serialize access due to concurrent delete")]
    SerializationDelete,
    /// SERIALIZABLE: the transaction cannot be put in order with others (40001); see [`CommitError::Serialization`].
    #[error("could not serialize access due to read/write dependencies among transactions")]
    Dependencies,
    /// What the transaction has to do with is taken out of memory, with its instance (40001). It might succeed if
    /// retried.
    #[error("could not serialize access because an instance was restarted")]
    InstanceRestarted,
    /// A row with the same key exists (23505). The answer depends on that row: it waits like a read (T15).
    #[error("a row with the same key exists")]
    Unique {
        /// The index that holds the key once.
        index: IndexId,
        /// The row that has it.
        rid: Rid,
    },
    /// An index has no key for the row: the expression it is on fails for it ([`KeyKind::Failed`](crate::KeyKind)).
    #[error("index {index} has no key for the row")]
    NoKey {
        /// The index.
        index: IndexId,
    },
    /// Waiting would never end (40P01).
    #[error("deadlock detected")]
    Deadlock,
    /// The row is longer than rows may be.
    #[error("the row is too large")]
    TooLarge,
    /// The memory budget is used up (53200). Reads, deletes and rollback go on.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The table is of the past, which nobody changes ([`AsOfDatabase`](crate::AsOfDatabase)).
    #[error("the past cannot be changed")]
    Past,
    /// The engine follows another server's log ([`Replica`](crate::Replica)), which alone changes what it has (25006).
    #[error("a replica cannot be changed")]
    Replica,
    /// The table has used up its row numbers.
    #[error("the table is full")]
    TableFull,
    /// The transaction has used up the numbers of its commands (54000). What it has written stays, and reading goes on.
    #[error("cannot have more than 2^32-2 commands in a transaction")]
    TooManyCommands,
}

impl From<AbsentIndexLeaf> for WriteError {
    #[cold]
    fn from(absent: AbsentIndexLeaf) -> WriteError {
        WriteError::Absent(absent.into())
    }
}

/// Why a commit failed. The transaction is rolled back, except after [`CommitError::LogFailed`] where recovery decides.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitError {
    /// The disk that holds the log is full (53100). Freeing space helps; nothing else was lost.
    #[error("the disk that holds the log is full; free some space and try again")]
    DiskFull,
    /// Too few of the homes that hold the log are there to store a large transaction (58030). It may succeed if
    /// retried.
    #[error("too few of the homes that hold the log are there to store the transaction; try again")]
    LogUnavailable,
    /// The memory budget has no room for the transaction's records on their way to the log (53200).
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// SERIALIZABLE: with the transaction committed, no order of transactions would explain what all of them have read
    /// (40001). It might succeed if retried.
    #[error("could not serialize access due to read/write dependencies among transactions")]
    Serialization,
    /// It has changed or locked rows that were taken out of memory, with their instance (40001). It might succeed if
    /// retried.
    #[error("could not serialize access because an instance was restarted")]
    InstanceRestarted,
    /// It was declared read-only and has changed rows.
    #[error("a transaction declared read-only has changed rows")]
    ReadOnly,
    /// The engine follows another server's log ([`Replica`](crate::Replica)): nothing is logged here, and no
    /// transaction has an id (25006).
    #[error("a replica cannot be changed")]
    Replica,
    /// A number that it would need is used up (54000). Nothing else was lost, and reading goes on.
    #[error(transparent)]
    UsedUp(#[from] NumbersExhausted),
    /// The log cannot be written any more; the process must stop.
    #[error(transparent)]
    LogFailed(#[from] LogFailed),
}

/// Why the engine did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The options make no sense.
    #[error("{0}")]
    Options(String),
    /// The rows in the log do not fit in the memory budget.
    #[error(
        "the rows in the log need about {needed_bytes} bytes of memory, without their indexes; the budget is {budget_bytes} bytes"
    )]
    Memory {
        /// What the rows take, as far as that can be told without holding them all.
        needed_bytes: u64,
        /// The budget.
        budget_bytes: u64,
    },
    /// The log could not be recovered.
    #[error(transparent)]
    Recovery(#[from] logstead_wal::recovery::RecoveryError),
}

/// Why a checkpoint or surviving records could not be applied: of the log, the checksums were right, the content was
/// not.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// A page of the checkpoint cannot be read.
    #[error("the checkpoint at CSN {csn} cannot be loaded: {source}")]
    Page {
        /// The checkpoint.
        csn: logstead_types::Csn,
        /// What is wrong.
        source: logstead_checkpoint::CheckpointError,
    },
    /// The records of a transaction do not decode.
    #[error("records of CSN {csn}: {source}")]
    Records {
        /// The transaction.
        csn: logstead_types::Csn,
        /// What is wrong.
        source: logstead_wal::FormatError,
    },
    /// A row or delta does not decode, or changes a row that does not exist.
    #[error("row {rid} of table {table} at CSN {csn}: {source}")]
    Row {
        /// The transaction.
        csn: logstead_types::Csn,
        /// The table.
        table: logstead_types::TableId,
        /// The row.
        rid: Rid,
        /// What is wrong.
        source: RowError,
    },
}

impl ReplayError {
    /// Whose records.
    pub fn csn(&self) -> logstead_types::Csn {
        match self {
            ReplayError::Page { csn, .. }
            | ReplayError::Records { csn, .. }
            | ReplayError::Row { csn, .. } => *csn,
        }
    }
}

/// Why a replica does not open, or does not go on. Unless the round may be repeated ([`ReplicaError::may_repeat`])
/// it is at its end: what its engine has stays readable, and grows old.
#[derive(Debug, thiserror::Error)]
pub enum ReplicaError {
    /// The engine does not open.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The primary has removed what was not read yet: open another replica, at the newest checkpoint.
    #[error(
        "the replica is too far behind: it has everything below CSN {next}, and what follows is gone since the checkpoint at CSN {checkpoint}"
    )]
    Removed {
        /// It has all that is below.
        next: Csn,
        /// The checkpoint that made it superfluous.
        checkpoint: Csn,
    },
    /// A start of the primary has accepted a loss of data that this replica has shown: open another one.
    #[error("the primary has lost what the replica has shown, from CSN {from} on")]
    Annulled {
        /// The first CSN that is lost.
        from: Csn,
    },
    /// There is another database in the home by now.
    #[error("the home {0} holds another database, or an earlier state of this one")]
    Replaced(String),
    /// The log is bad, or cannot be read now.
    #[error(transparent)]
    Log(RecoveryError),
    /// What the log says cannot be applied.
    #[error(transparent)]
    Apply(#[from] ReplayError),
    /// What the log changes cannot be brought into memory.
    #[error(transparent)]
    Fault(FaultError),
    /// The database does not fit into the memory budget, or sessions use it up just now.
    #[error("the database does not fit into the memory of the replica: {0}")]
    Memory(OutOfMemory),
    /// It has met one of these before.
    #[error("the replica has ended")]
    Ended,
}

impl ReplicaError {
    /// May the round be repeated? It goes on with what was not taken.
    pub fn may_repeat(&self) -> bool {
        matches!(
            self,
            ReplicaError::Log(RecoveryError::Home(_))
                | ReplicaError::Fault(FaultError::Unreachable(_))
                | ReplicaError::Memory(_)
        )
    }

    /// Is there no memory for it, at a start or later?
    pub fn is_memory(&self) -> bool {
        matches!(
            self,
            ReplicaError::Memory(_) | ReplicaError::Open(OpenError::Memory { .. })
        )
    }
}

impl From<RecoveryError> for ReplicaError {
    fn from(error: RecoveryError) -> ReplicaError {
        ReplicaError::Log(error)
    }
}

impl From<FollowError> for ReplicaError {
    fn from(error: FollowError) -> ReplicaError {
        match error {
            FollowError::Removed { next, checkpoint } => ReplicaError::Removed { next, checkpoint },
            FollowError::Annulled { from } => ReplicaError::Annulled { from },
            FollowError::Replaced(home) => ReplicaError::Replaced(home),
            FollowError::Log(error) => ReplicaError::Log(error),
        }
    }
}
