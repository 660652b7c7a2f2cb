//! The one error type of SQL: everything a PostgreSQL error response carries.

use logstead_engine::{FaultError, OutOfMemory};
use logstead_types::SqlState;
use std::fmt;
use std::panic::Location;

/// Result of anything that can fail with an error for the client.
pub type Result<T, E = SqlError> = std::result::Result<T, E>;

/// An error for the client. Boxed inside: one word to pass along the hot path.
#[derive(Clone, PartialEq, Eq)]
pub struct SqlError(Box<ErrorFields>);

/// The fields of an error response (PostgreSQL manual, 55.8).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorFields {
    /// SQLSTATE.
    pub code: SqlState,
    /// Primary message, PostgreSQL's text where people know it.
    pub message: String,
    /// Secondary message.
    pub detail: Option<String>,
    /// What to do about it.
    pub hint: Option<String>,
    /// Position in the statement, in characters from 1.
    pub position: Option<usize>,
    /// A statement inside of the client's, and the position in it.
    pub inner_query: Option<(usize, String)>,
    /// Schema of the object concerned.
    pub schema: Option<String>,
    /// Table concerned.
    pub table: Option<String>,
    /// Column concerned.
    pub column: Option<String>,
    /// Data type concerned.
    pub data_type: Option<String>,
    /// Constraint concerned.
    pub constraint: Option<String>,
    /// Where it happened ("COPY t, line 3").
    pub context: Option<String>,
    /// The function of PostgreSQL's source that raises it, where clients go by that.
    pub routine: Option<&'static str>,
    /// Where in this source it was raised.
    pub raised: &'static Location<'static>,
    /// True when the session cannot go on (FATAL).
    pub fatal: bool,
}

impl SqlError {
    /// An error with `code` and `message`, raised where this is called.
    #[track_caller]
    pub fn new(code: SqlState, message: impl Into<String>) -> SqlError {
        SqlError(Box::new(ErrorFields {
            code,
            message: message.into(),
            detail: None,
            hint: None,
            position: None,
            inner_query: None,
            schema: None,
            table: None,
            column: None,
            data_type: None,
            constraint: None,
            context: None,
            routine: None,
            raised: Location::caller(),
            fatal: false,
        }))
    }

    /// 0A000: `what` is not supported; the text names it.
    #[track_caller]
    pub fn unsupported(what: impl fmt::Display) -> SqlError {
        SqlError::new(
            SqlState::FEATURE_NOT_SUPPORTED,
            format!("{what} is not supported"),
        )
    }

    /// 0A000 with PostgreSQL's own text.
    pub fn unsupported_text(message: &'static str) -> SqlError {
        SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, message)
    }

    /// 25006: a replica, which is what PostgreSQL calls a hot standby, does not do it.
    #[track_caller]
    pub fn during_recovery(what: impl fmt::Display) -> SqlError {
        SqlError::new(
            SqlState::READ_ONLY_SQL_TRANSACTION,
            format!("cannot execute {what} during recovery"),
        )
    }

    /// XX000: a broken internal rule, never the user's fault.
    #[track_caller]
    pub fn internal(message: impl Into<String>) -> SqlError {
        SqlError::new(SqlState::INTERNAL_ERROR, message)
    }

    /// 57P01 for a transaction of which nothing was in the log when that could not be written any more: the server is
    /// about to end, as where another one took over, and the client connects again.
    pub fn log_failed(why: &dyn std::fmt::Display) -> SqlError {
        SqlError::new(
            SqlState::ADMIN_SHUTDOWN,
            format!(
                "terminating connection because the log cannot be written any more, and the transaction was not committed: {why}"
            ),
        )
        .fatal()
    }

    /// All fields.
    pub fn fields(&self) -> &ErrorFields {
        &self.0
    }

    /// All fields, to be changed.
    pub fn fields_mut(&mut self) -> &mut ErrorFields {
        &mut self.0
    }

    /// SQLSTATE.
    pub fn code(&self) -> SqlState {
        self.0.code
    }

    /// Adds a DETAIL line.
    #[must_use]
    pub fn detail(mut self, text: impl Into<String>) -> SqlError {
        self.0.detail = Some(text.into());
        self
    }

    /// Adds a HINT line.
    #[must_use]
    pub fn hint(mut self, text: impl Into<String>) -> SqlError {
        self.0.hint = Some(text.into());
        self
    }

    /// Sets the position (characters from 1) unless one is set already.
    #[must_use]
    pub fn at(mut self, position: Option<usize>) -> SqlError {
        if self.0.position.is_none() {
            self.0.position = position;
        }
        self
    }

    /// Names the table (and its schema) concerned.
    #[must_use]
    pub fn table(mut self, schema: impl Into<String>, table: impl Into<String>) -> SqlError {
        self.0.schema = Some(schema.into());
        self.0.table = Some(table.into());
        self
    }

    /// Names the function of PostgreSQL's source that raises it.
    #[must_use]
    pub fn routine(mut self, name: &'static str) -> SqlError {
        self.0.routine = Some(name);
        self
    }

    /// Names the column concerned.
    #[must_use]
    pub fn column(mut self, column: impl Into<String>) -> SqlError {
        self.0.column = Some(column.into());
        self
    }

    /// Names the constraint concerned.
    #[must_use]
    pub fn constraint(mut self, constraint: impl Into<String>) -> SqlError {
        self.0.constraint = Some(constraint.into());
        self
    }

    /// Names the data type (and its schema) concerned.
    #[must_use]
    pub fn data_type(mut self, schema: impl Into<String>, name: impl Into<String>) -> SqlError {
        self.0.schema = Some(schema.into());
        self.0.data_type = Some(name.into());
        self
    }

    /// Adds a CONTEXT line, behind those of what happened further inside.
    #[must_use]
    pub fn context(mut self, text: impl Into<String>) -> SqlError {
        let text = text.into();
        self.0.context = Some(match self.0.context.take() {
            Some(inside) => format!("{inside}\n{text}"),
            None => text,
        });
        self
    }

    /// Marks the error FATAL: the session ends after it.
    #[must_use]
    pub fn fatal(mut self) -> SqlError {
        self.0.fatal = true;
        self
    }
}

impl fmt::Debug for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl fmt::Display for SqlError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.0.code, self.0.message)
    }
}

impl std::error::Error for SqlError {}

/// 53200: the server's memory budget is used up.
pub fn out_of_memory(error: &OutOfMemory) -> SqlError {
    let budget_bytes = error.budget_bytes;
    SqlError::new(SqlState::OUT_OF_MEMORY, "out of memory")
        .detail(format!(
            "The memory budget of {} MB is used up (setting \"memory\").",
            budget_bytes >> 20
        ))
        .hint("What one transaction writes must fit: split a large load, update or delete into several. Otherwise truncate or drop a table, end long transactions, or raise \"memory\".")
}

/// The client's error for what cannot be brought into memory.
pub fn load_error(error: &FaultError) -> SqlError {
    match error {
        FaultError::Damaged(what) => SqlError::new(SqlState::DATA_CORRUPTED, what.clone()),
        FaultError::Unreachable(what) => SqlError::new(SqlState::IO_ERROR, what.clone()),
        FaultError::Older => SqlError::new(SqlState::FEATURE_NOT_SUPPORTED, error.to_string()),
        FaultError::TooOld(_) => SqlError::new(SqlState::SNAPSHOT_TOO_OLD, error.to_string()),
        FaultError::InstanceRestarted => instance_restarted(),
        FaultError::OutOfMemory(error) => out_of_memory(error),
        FaultError::Closing => SqlError::new(SqlState::ADMIN_SHUTDOWN, error.to_string()).fatal(),
    }
}

/// 54001, PostgreSQL's text.
pub fn too_deep() -> SqlError {
    SqlError::new(
        SqlState::STATEMENT_TOO_COMPLEX,
        "stack depth limit exceeded",
    )
    .hint("The statement is nested too deeply or chains too many operators.")
}

/// 57P01, as PostgreSQL says it.
pub fn shutting_down() -> SqlError {
    SqlError::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection due to administrator command",
    )
    .fatal()
}

/// 40001 of a transaction that needs what a restarted instance had in memory, or has changed it.
pub fn instance_restarted() -> SqlError {
    SqlError::new(
        SqlState::SERIALIZATION_FAILURE,
        "could not serialize access because an instance was restarted",
    )
    .hint("The transaction might succeed if retried.")
}

/// 57P02 of a session that waits for its client in the middle of such a transaction.
pub fn instance_restarts() -> SqlError {
    SqlError::new(
        SqlState::CRASH_SHUTDOWN,
        "terminating connection because an instance is restarted",
    )
    .detail("The open transaction has changed or locked rows of that instance, and is rolled back.")
    .hint(
        "In a moment you should be able to reconnect to the database and repeat your transaction.",
    )
    .fatal()
}

/// 57P01 of a replica that begins again: what its sessions read is not there any more.
pub fn replica_restarts() -> SqlError {
    SqlError::new(
        SqlState::ADMIN_SHUTDOWN,
        "terminating connection because the replica begins again at the primary's newest checkpoint",
    )
    .detail("What it would have had to read next was removed by the primary.")
    .hint("In a moment you should be able to reconnect to the database and repeat your command.")
    .fatal()
}

/// 55000 of functions that control the log, at a replica.
pub fn recovery_in_progress() -> SqlError {
    SqlError::new(
        SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE,
        "recovery is in progress",
    )
    .hint("WAL control functions cannot be executed during recovery.")
}
