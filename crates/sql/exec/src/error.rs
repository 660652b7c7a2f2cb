//! Why an evaluation or an execution does not go on: it failed, or something has to happen first.
//!
//! Owns: [`EvalError`] and [`ExecError`]. Neither becomes a [`SqlError`] by itself: whoever meets one handles what it
//! asks for, or says that it cannot be asked there.
//!
//! - An expression can neither wait nor yield, so its evaluation is given up and begun again
//!   ([`Evaluation`](crate::context::Evaluation)).
//! - An execution waits by itself, but for a function that the session runs: it stops with the call, and goes on when
//!   that was answered ([`Caller`](crate::routine::Caller)).

use super::routine::Call;
use super::wait::WaitReason;
use logstead_sql_types::error::SqlError;

/// Why an evaluation ended without a value.
pub(crate) enum EvalError {
    /// The statement fails.
    Sql(SqlError),
    /// What has to be waited for before the same row is evaluated again.
    Suspend(Box<WaitReason>),
}

/// What an evaluation gives.
pub(crate) type Evaluated<T> = Result<T, EvalError>;

impl EvalError {
    /// The error of an evaluation that cannot be given up: no [`Evaluation`](crate::context::Evaluation) is running, so
    /// what is evaluated waits where it stands.
    #[cold]
    pub(crate) fn unsuspended(self) -> SqlError {
        match self {
            EvalError::Sql(error) => error,
            EvalError::Suspend(_) => {
                SqlError::internal("an evaluation was given up that nobody begins again")
            }
        }
    }
}

impl From<SqlError> for EvalError {
    #[inline]
    fn from(error: SqlError) -> EvalError {
        EvalError::Sql(error)
    }
}

/// Why an execution stopped.
pub(crate) enum ExecError {
    /// The statement fails.
    Sql(SqlError),
    /// The session has to run a function first.
    Call(Box<Call>),
}

impl ExecError {
    /// The error where nobody can run a function: 0A000.
    #[cold]
    pub(crate) fn without_calls(self) -> SqlError {
        match self {
            ExecError::Sql(error) => error,
            ExecError::Call(_) => SqlError::unsupported("a PL/pgSQL function in this place"),
        }
    }

    /// With more said of what failed.
    pub(crate) fn map_sql(self, f: impl FnOnce(SqlError) -> SqlError) -> ExecError {
        match self {
            ExecError::Sql(error) => ExecError::Sql(f(error)),
            call @ ExecError::Call(_) => call,
        }
    }
}

impl From<SqlError> for ExecError {
    fn from(error: SqlError) -> ExecError {
        ExecError::Sql(error)
    }
}
