//! Waiting for what is in the way, with an ear to cancellation: another transaction, or something that is not in
//! memory.
//!
//! Every place that calls the engine and may be refused waits here and then calls again, with no guard and no row held
//! in between.
//!
//! What has to wait is a variant of an error that says so, `EvalError` or `ExecError`. Neither becomes a
//! [`SqlError`] by itself: whoever meets one does what it asks for, or says that it cannot be asked there.
//!
//! - An expression can neither wait nor yield, so its evaluation is given up and begun again
//!   (`context::ResumableEvaluation`).
//! - An execution waits by itself, but for a function that the session runs: it stops with the call, and goes on when
//!   that was answered ([`Caller`](crate::call::Caller)).

use crate::call::PendingCall;
use crate::cancel::Cancel;
use crate::spill_threads::SpillTicket;
use logstead_engine::{LockConflict, PageFault, Txn, WriteError};
use logstead_sql_catalog::context::AdvisoryLockRequest;
use logstead_sql_types::error::{Result, SqlError, load_error};
use logstead_types::SqlState;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What an operation has to wait for, to be tried again then.
pub enum WaitReason {
    /// Another transaction.
    Locked(LockConflict),
    /// Something is not in memory. That is no lock: who does not wait for locks waits for it all the same.
    Absent(PageFault),
    /// A block of a temporary file is on its way.
    Spill(SpillTicket),
    /// A function that the session runs has to be run.
    Call(Box<PendingCall>),
    /// An advisory lock that others hold.
    Advisory(AdvisoryLockRequest),
    /// The others' turn: something in the middle of an expression has worked for long enough.
    Turn,
}

impl From<LockConflict> for WaitReason {
    fn from(blocker: LockConflict) -> WaitReason {
        WaitReason::Locked(blocker)
    }
}

impl From<PageFault> for WaitReason {
    fn from(absent: PageFault) -> WaitReason {
        WaitReason::Absent(absent)
    }
}

impl WaitReason {
    /// What a refused write is to wait for, if that is why it was refused.
    pub fn of(error: WriteError) -> Result<WaitReason, WriteError> {
        match error {
            WriteError::Blocked(blocker) => Ok(WaitReason::Locked(blocker)),
            WriteError::Absent(absent) => Ok(WaitReason::Absent(absent)),
            error => Err(error),
        }
    }
}

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
    /// The error of an evaluation that cannot be given up: no
    /// [`ResumableEvaluation`](super::context::ResumableEvaluation) is running, so what is evaluated waits where it
    /// stands.
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
    Call(Box<PendingCall>),
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

/// Waits for a temporary file, outside of any transaction.
pub async fn wait_for_file(obstacle: WaitReason, cancel: &Cancel) -> Result<()> {
    match obstacle {
        WaitReason::Spill(ticket) => {
            let _loading = cancel.begin_load();
            unless_cancelled(ticket.wait(), cancel).await
        }
        WaitReason::Turn
        | WaitReason::Locked(_)
        | WaitReason::Absent(_)
        | WaitReason::Call(_)
        | WaitReason::Advisory(_) => Err(SqlError::internal("a file waits for its blocks only")),
    }
}

/// The same, of a transaction that runs no plan.
pub async fn wait_for(obstacle: WaitReason, txn: &mut Txn, cancel: &Cancel) -> Result<()> {
    match obstacle {
        WaitReason::Locked(blocker) => {
            let released = blocker.wait(txn);
            unless_cancelled(released, cancel)
                .await?
                .map_err(|_| deadlock())
        }
        WaitReason::Absent(absent) => {
            // Not a lock: its time limit does not run.
            let _loading = cancel.begin_load();
            let loaded = absent.wait(txn);
            unless_cancelled(loaded, cancel)
                .await?
                .map_err(|error| load_error(&error))
        }
        // Nor is this.
        WaitReason::Spill(_) => wait_for_file(obstacle, cancel).await,
        WaitReason::Call(_) => Err(SqlError::unsupported("a PL/pgSQL function in this place")),
        WaitReason::Advisory(_) => Err(SqlError::unsupported(
            "waiting for an advisory lock in this place",
        )),
        WaitReason::Turn => {
            tokio::task::yield_now().await;
            cancel.check()
        }
    }
}

/// What `work` gives, unless the statement is to end before.
pub(crate) async fn unless_cancelled<T>(
    work: impl Future<Output = T>,
    cancel: &Cancel,
) -> Result<T> {
    let mut work = pin!(work);
    poll_fn(|task| {
        // Registered before the flag is read: a request in between still wakes this task.
        cancel.register(task.waker());
        if let Err(error) = cancel.check() {
            return Poll::Ready(Err(error));
        }
        work.as_mut().poll(task).map(Ok)
    })
    .await
}

/// 40P01.
pub(crate) fn deadlock() -> SqlError {
    SqlError::new(SqlState::DEADLOCK_DETECTED, "deadlock detected")
        .hint("See server log for query details.")
}
