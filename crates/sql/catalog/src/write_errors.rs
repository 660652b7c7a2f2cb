//! What clients are told when a write or a commit of the engine fails.
//!
//! Does not: know failures that are waited for; whoever can wait handles those first.

use logstead_engine::{CommitError, WriteError};
use logstead_sql_types::error::{SqlError, instance_restarted, load_error, out_of_memory};
use logstead_types::SqlState;

/// 40001: the transactions would not be serializable with this one.
pub fn dependency_failure() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access due to read/write dependencies among transactions",
    )
    .hint("The transaction might succeed if retried.")
}

/// 54000, as PostgreSQL says it.
pub fn too_many_commands() -> SqlError {
    SqlError::new(
        SqlState::PROGRAM_LIMIT_EXCEEDED,
        WriteError::TooManyCommands.to_string(),
    )
}

const REPLICA: &str = "cannot change anything in a replica";

/// 25006: a replica's tables are its primary's. Who knows which statement it is says that instead.
pub fn replica_error() -> SqlError {
    SqlError::new(SqlState::READ_ONLY_SQL_TRANSACTION, REPLICA)
}

/// Is it that one?
pub fn is_replica_error(error: &SqlError) -> bool {
    error.code() == SqlState::READ_ONLY_SQL_TRANSACTION && *error.fields().message == *REPLICA
}

/// 40001: a statement reads with a snapshot of a replica to which another catalog belongs than it was planned with.
pub fn conflict_with_recovery() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "canceling statement due to conflict with recovery",
    )
    .detail("The primary has changed the catalog since the statement was planned.")
    .hint("The transaction might succeed if retried.")
}

/// What a write failure means where no other writer can be in the way.
pub fn write_error(error: &WriteError) -> SqlError {
    match error {
        WriteError::Deadlock => SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected"),
        WriteError::Serialization | WriteError::SerializationDelete => SqlError::new(
            SqlState::SERIALIZATION_FAILURE,
            "could not serialize access due to concurrent update",
        ),
        WriteError::Dependencies => dependency_failure(),
        WriteError::InstanceRestarted => instance_restarted(),
        WriteError::TooLarge => {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, "the row is too large")
        }
        WriteError::TooManyCommands => too_many_commands(),
        WriteError::Replica => replica_error(),
        WriteError::OutOfMemory(error) => out_of_memory(error),
        WriteError::Fault(error) => load_error(error),
        // Here nobody can wait for it.
        WriteError::Absent(absent) if absent.is_room() => SqlError::new(
            SqlState::OUT_OF_MEMORY,
            "the memory budget is used up for the moment",
        ),
        other => SqlError::internal(format!("writing the catalog: {other}")),
    }
}

/// The client's error for a failed commit.
pub fn commit_error(error: &CommitError) -> SqlError {
    match error {
        CommitError::DiskFull => SqlError::new(SqlState::DISK_FULL, error.to_string()),
        CommitError::LogUnavailable => SqlError::new(SqlState::IO_ERROR, error.to_string()),
        CommitError::OutOfMemory(error) => out_of_memory(error),
        CommitError::UsedUp(_) => {
            SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, error.to_string())
        }
        CommitError::LogFailed(why) => SqlError::log_failed(why),
        CommitError::Serialization => dependency_failure(),
        CommitError::InstanceRestarted => instance_restarted(),
        CommitError::Replica => SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            "cannot change anything in a replica",
        ),
        CommitError::ReadOnly => SqlError::internal(error.to_string()),
    }
}
