//! Waiting for what is in the way, with an ear to cancellation: another transaction, or something that is not in
//! memory.
//!
//! Every place that calls the engine and may be refused waits here and then calls again, with no guard and no row held
//! in between.

use super::context::{Cancel, Cx};
use super::error::ExecError;
use super::routine::Call;
use super::spill::Ticket;
use super::write::deadlock;
use logstead_engine::{Absent, Blocker, Txn, WriteError};
use logstead_sql_catalog::context::AdvisoryWanted;
use logstead_sql_types::error::{Result, SqlError, fault};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;

/// What an operation has to wait for, to be tried again then.
pub enum WaitReason {
    /// Another transaction.
    Locked(Blocker),
    /// Something is not in memory. That is no lock: who does not wait for locks waits for it all the same.
    Absent(Absent),
    /// A block of a temporary file is on its way.
    Spill(Ticket),
    /// A function that the session runs has to be run.
    Call(Box<Call>),
    /// An advisory lock that others hold.
    Advisory(AdvisoryWanted),
    /// The others' turn: something in the middle of an expression has worked for long enough.
    Turn,
}

impl From<Blocker> for WaitReason {
    fn from(blocker: Blocker) -> WaitReason {
        WaitReason::Locked(blocker)
    }
}

impl From<Absent> for WaitReason {
    fn from(absent: Absent) -> WaitReason {
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

/// Waits until it is worth trying again what `obstacle` stood in the way of.
pub(crate) async fn wait(obstacle: WaitReason, cx: &mut Cx<'_>) -> Result<(), ExecError> {
    let obstacle = match obstacle {
        // Whoever runs the execution runs it.
        WaitReason::Call(call) => return Err(ExecError::Call(call)),
        WaitReason::Advisory(wanted) => {
            let session = cx.session;
            let storage = cx.storage()?;
            // Whoever waits for a row meanwhile is not to wait for who does nothing with it.
            storage.txn.pass_turn();
            let taken = session.wait_for_advisory_lock(wanted);
            return Ok(unless_cancelled(taken, storage.cancel).await??);
        }
        obstacle => obstacle,
    };
    let storage = cx.storage()?;
    Ok(wait_for(obstacle, storage.txn, storage.cancel).await?)
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
                .map_err(|error| fault(&error))
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
async fn unless_cancelled<T>(work: impl Future<Output = T>, cancel: &Cancel) -> Result<T> {
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
